//! Playout buffers that decide frame by frame: each frame is played, late or missing. The receiver of
//! browsers is in `adaptive/mod.rs`.
//!
//! ```text
//!  due ──── network, transport ────► received ─── waits ───► played
//!   └────────────── playout delay, the same for a whole talkspurt ──────┘
//! ```
//!
//! A **fixed** playout delay is the delay of the first frame plus a wait that the scenario sets. It never
//! changes. A real receiver knows no more about the network's delay, because its clock differs from the
//! sender's.
//!
//! The receiver **ramjee** follows the network's delay as in Ramjee, Kurose, Towsley and Schulzrinne,
//! "Adaptive playout mechanisms for packetized audio applications in wide-area networks", INFOCOM 1994,
//! algorithm 4. It keeps running averages of the delay and of its variation, each with weight 1/8. In a
//! second mode, for spikes, the mean follows the delay frame by frame. A frame is played at its due time plus
//! the mean and four variations. The receiver is strict: if a queue fills within a talkspurt, it counts the
//! frames as late. Studies use it. It rests on these assumptions:
//!
//! - **Talkspurts.** The receiver changes its playout delay only in pauses of speech. Our calls send silence
//!   as well, so we take every talkspurt to last as long as the mean one of ITU-T P.59, 1.004 s.
//! - **At least one frame.** A receiver passes whole frames to the sound card, so it waits at least one frame
//!   beyond the mean delay. RAT, the audio tool of UCL, also waited no less than the time between packets.
//! - **Order.** Frames are taken in the order of their numbers. A frame that came after a later one enters
//!   the averages before that one.
//!
//! A call with the adaptive receiver of browsers is also rated with two other receivers, whose playout delay
//! is the smallest delay of the whole call and one of [`OTHER_WAITS`] (`minimum_plus_wait.rs`). If one of
//! them disagrees on whether the call is usable, the answer says so.

use talkpath_units::{Duration, SignedDuration};

use crate::PlayoutRule;

/// The waits of the other receivers beyond the smallest delay: that of the second receiver, and that of the
/// patient one. We chose three and ten frames of 20 ms: a buffer for talking, and one that plays nearly all.
pub const OTHER_WAITS: [Duration; 2] = [Duration::from_millis(60), Duration::from_millis(200)];

/// [`OTHER_WAITS`] as text.
pub const OTHER_WAIT_TEXTS: [&str; 2] = ["60 ms", "200 ms"];

/// The mean duration of a talkspurt (ITU-T P.59, Table 1).
const TALKSPURT: Duration = Duration::from_millis(1004);

/// The weight of a new value in the running averages (Ramjee et al. 1994, algorithm 4).
const WEIGHT: f64 = 1.0 / 8.0;

/// A spike begins with a step of this size beyond two variations: 800 samples at 8 kHz (the same).
const SPIKE_NS: f64 = 100e6;

/// A spike ends when the average of its slope is at most this: 63 samples (the same).
const FLAT_NS: f64 = 7.875e6;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The frame was there at its playout time.
    Played,
    /// The frame came after its playout time.
    Late,
    /// The frame never came.
    Missing,
}

/// A receiver of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Playout {
    frame: Duration,
    rule: PlayoutRule,
    /// The averages of an adaptive receiver. `None` before the first frame.
    averages: Option<DelayAverages>,
    /// The current talkspurt. A fixed receiver has only one.
    talkspurt: Option<Talkspurt>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Talkspurt {
    number: u64,
    playout_delay_ns: i64,
}

/// The running averages of algorithm 4, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DelayAverages {
    mean: f64,
    /// The mean distance of a delay from `mean`.
    variation: f64,
    last_delay: f64,
    delay_before_last: f64,
    /// The average slope of the current spike. `None` outside of a spike.
    spike_slope: Option<f64>,
}

impl Playout {
    /// Makes a receiver of a call with a frame every `frame`.
    pub const fn new(frame: Duration, rule: PlayoutRule) -> Self {
        Self { frame, rule, averages: None, talkspurt: None }
    }

    /// Takes the next frame in the order of numbers, and returns what becomes of it. `delay` is the time from
    /// its due time to its arrival, or `None` if it never came.
    pub fn take(&mut self, seq: u64, delay: Option<SignedDuration>) -> Heard {
        let Some(delay) = delay else { return Heard::Missing };
        let delay_ns = delay.as_nanos();
        let playout_delay_ns = match self.rule {
            // The receiver of browsers does not decide frame by frame (`adaptive/mod.rs`).
            PlayoutRule::Adaptive | PlayoutRule::Ramjee => self.adapt(seq, delay_ns),
            PlayoutRule::Fixed(wait) => {
                let wait_ns = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
                let first = Talkspurt { number: 0, playout_delay_ns: delay_ns.saturating_add(wait_ns) };
                self.talkspurt.get_or_insert(first).playout_delay_ns
            }
        };
        if delay_ns <= playout_delay_ns { Heard::Played } else { Heard::Late }
    }

    /// Adds the delay of frame `seq` to the averages. Returns the playout delay of the frame's talkspurt.
    fn adapt(&mut self, seq: u64, delay_ns: i64) -> i64 {
        let number = seq / self.frames_per_talkspurt();
        let averages = self.averages.get_or_insert(DelayAverages::new(delay_ns as f64));
        averages.add(delay_ns as f64);
        match self.talkspurt {
            Some(current) if current.number == number => current.playout_delay_ns,
            Some(_) | None => {
                let wait = (4.0 * averages.variation).max(self.frame.as_nanos() as f64);
                // The conversion saturates, but no delay comes near the end of the range.
                let playout_delay_ns = (averages.mean + wait).ceil() as i64;
                self.talkspurt = Some(Talkspurt { number, playout_delay_ns });
                playout_delay_ns
            }
        }
    }

    /// Returns the playout delay of the current talkspurt. Returns `None` before the first frame.
    pub fn delay(&self) -> Option<SignedDuration> {
        Some(SignedDuration::from_nanos(self.talkspurt?.playout_delay_ns))
    }

    fn frames_per_talkspurt(&self) -> u64 {
        (TALKSPURT.as_nanos() / self.frame.as_nanos().max(1)).max(1)
    }
}

impl DelayAverages {
    /// Makes the averages before the first frame, which has this delay.
    const fn new(delay: f64) -> Self {
        Self { mean: delay, variation: 0.0, last_delay: delay, delay_before_last: delay, spike_slope: None }
    }

    fn add(&mut self, delay: f64) {
        let (last, before_last) = (self.last_delay, self.delay_before_last);
        (self.last_delay, self.delay_before_last) = (delay, last);
        match &mut self.spike_slope {
            None if (delay - last).abs() > 2.0 * self.variation + SPIKE_NS => self.spike_slope = Some(0.0),
            None => {}
            Some(slope) => {
                *slope = *slope / 2.0 + ((2.0 * delay - last - before_last) / 8.0).abs();
                if *slope <= FLAT_NS {
                    // The frame that ends a spike changes no average.
                    self.spike_slope = None;
                    return;
                }
            }
        }
        match self.spike_slope {
            None => self.mean += (delay - self.mean) * WEIGHT,
            Some(_) => self.mean += delay - last,
        }
        self.variation += ((delay - self.mean).abs() - self.variation) * WEIGHT;
    }
}

/// Describes a second receiver with this wait: `fixed 60 ms beyond the smallest delay`.
pub fn beyond_least_words(wait: Duration) -> String {
    format!("fixed {wait} beyond the smallest delay")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRAME: Duration = Duration::from_millis(20);

    fn ms(ms: i64) -> SignedDuration {
        SignedDuration::from_nanos(ms * 1_000_000)
    }

    /// Returns what becomes of frames with these delays, and the playout delay of each, ms.
    fn play(delays: &[Option<i64>]) -> (Vec<Heard>, Vec<f64>) {
        play_by(PlayoutRule::Ramjee, delays)
    }

    fn play_by(rule: PlayoutRule, delays: &[Option<i64>]) -> (Vec<Heard>, Vec<f64>) {
        let mut playout = Playout::new(FRAME, rule);
        (0..)
            .zip(delays)
            .map(|(seq, delay)| {
                let heard = playout.take(seq, delay.map(ms));
                (heard, playout.delay().map_or(f64::NAN, |delay| delay.as_nanos() as f64 / 1e6))
            })
            .unzip()
    }

    #[test]
    fn an_even_path_costs_one_frame() {
        let (heard, delays) = play(&[Some(30); 200]);
        assert!(heard.iter().all(|frame| *frame == Heard::Played));
        assert!(delays.iter().all(|delay| (delay - 50.0).abs() < 1e-6), "{delays:?}");
    }

    #[test]
    fn the_wait_follows_the_jitter_from_talkspurt_to_talkspurt_and_not_within_one() {
        // 30 and 50 ms in turn. After a frame of 30 ms the mean is 39 1/3 in the end, after one of 50 ms
        // 40 2/3: m = m + (30 - m) / 8 and so on. So each is 9 1/3 away from the mean.
        let delays: Vec<_> = (0..200).map(|seq| Some(30 + seq % 2 * 20)).collect();
        let (heard, playout) = play(&delays);
        for talkspurt in playout.chunks(50) {
            assert!(talkspurt.iter().all(|delay| delay.to_bits() == talkspurt[0].to_bits()));
        }
        assert!((playout[0] - 50.0).abs() < 1e-6, "the first frame's delay and one frame");
        assert!((playout[199] - (39.0 + 4.0 * 9.0 + 5.0 / 3.0)).abs() < 1e-3, "{}", playout[199]);
        assert!(
            heard.iter().all(|frame| *frame == Heard::Played),
            "50 ms is the first talkspurt's playout delay"
        );
    }

    #[test]
    fn a_frame_that_comes_after_its_playout_time_is_late_and_one_that_never_comes_missing() {
        let mut delays = [Some(30); 100];
        delays[10] = Some(51);
        delays[11] = None;
        let (heard, _) = play(&delays);
        assert_eq!((heard[10], heard[11], heard[12]), (Heard::Late, Heard::Missing, Heard::Played));
        assert_eq!(heard.iter().filter(|frame| **frame == Heard::Played).count(), 98);
    }

    /// A lost segment of a stream: frames wait behind it and come at once.
    #[test]
    fn a_spike_is_followed_and_left() {
        let mut delays = [Some(30); 300];
        for (behind, delay) in delays[40..55].iter_mut().enumerate() {
            *delay = Some(330 - 20 * behind as i64);
        }
        let (heard, playout) = play(&delays);
        let late = heard.iter().filter(|frame| **frame == Heard::Late).count();
        // 300 ms in steps of 20; the talkspurt that begins within the spike waits longer.
        assert!((8..=14).contains(&late), "{late}");
        assert!(playout[50] > 130.0, "the second talkspurt begins at 130 ms: {}", playout[50]);
        assert!((playout[299] - 50.0).abs() < 2.0, "and the last one is as before: {}", playout[299]);
    }

    #[test]
    fn a_talkspurt_whose_first_frames_are_missing_begins_with_the_first_that_came() {
        let delays = [None, None, Some(30), Some(45)];
        let (heard, playout) = play(&delays);
        assert_eq!(heard, [Heard::Missing, Heard::Missing, Heard::Played, Heard::Played]);
        assert!(playout[0].is_nan() && (playout[2] - 50.0).abs() < 1e-6);
    }

    #[test]
    fn a_fixed_delay_is_the_first_frames_and_its_wait_and_stays() {
        let rule = PlayoutRule::Fixed(Duration::from_millis(60));
        let delays = [None, Some(30), Some(90), Some(91), Some(10), None];
        let (heard, playout) = play_by(rule, &delays);
        let [missing, played, late] = [Heard::Missing, Heard::Played, Heard::Late];
        assert_eq!(heard, [missing, played, played, late, played, missing]);
        assert!(playout[0].is_nan() && playout[1..].iter().all(|delay| delay.to_bits() == 90_f64.to_bits()));
        // Minutes of growing delay do not move it.
        let growing: Vec<_> = (0..9_000).map(|seq| Some(30 + seq / 100)).collect();
        let (heard, playout) = play_by(rule, &growing);
        assert_eq!((playout[8_999], heard[6_000], heard[8_999]), (90.0, played, late));
    }

    fn any_rule() -> impl Strategy<Value = PlayoutRule> {
        let fixed = (0_u64..500).prop_map(|ms| PlayoutRule::Fixed(Duration::from_millis(ms)));
        prop_oneof![Just(PlayoutRule::Ramjee), fixed]
    }

    proptest! {
        #![proptest_config(talkpath_testing::properties(256))]

        #[test]
        fn every_frame_is_played_late_or_missing_and_none_is_played_before_it_came(
            delays in proptest::collection::vec(proptest::option::weighted(0.9, -1_000_i64..100_000), 0..400),
            frame_ms in 1_u64..200,
            rule in any_rule(),
        ) {
            let mut playout = Playout::new(Duration::from_millis(frame_ms), rule);
            for (seq, delay) in (0..).zip(&delays) {
                let delay = delay.map(ms);
                match (playout.take(seq, delay), delay) {
                    (Heard::Missing, None) => {}
                    (Heard::Played, Some(delay)) => prop_assert!(Some(delay) <= playout.delay()),
                    (Heard::Late, Some(delay)) => prop_assert!(Some(delay) > playout.delay()),
                    (heard, delay) => prop_assert!(false, "{heard:?} after {delay:?}"),
                }
            }
        }
    }
}
