//! The playout buffer (jitter buffer): when a receiver plays the frames of a call. Each is played, late or
//! missing.
//!
//! ```text
//!  due ──── network, transport ────► received ─── waits ───► played
//!   └────────────── playout delay, the same for a whole talkspurt ──────┘
//! ```
//!
//! A **fixed** playout delay is the first frame's delay and a wait that the scenario sets: a receiver whose
//! clock is its own knows no more of the network's delay. It never changes.
//!
//! An **adaptive** one follows the network's as in Ramjee, Kurose, Towsley and Schulzrinne, "Adaptive playout
//! mechanisms for packetized audio applications in wide-area networks", INFOCOM 1994, algorithm 4: a mean and
//! a variation, each a running average of weight 1/8, and a second mode for spikes, in which the mean follows
//! the delay frame by frame. A frame is played the mean and four variations after it was due.
//!
//! The adaptive receiver of 1994 makes more of a verdict than many a path does: it sees a queue that fills
//! within a talkspurt as late frames. So a call whose scenario names no receiver is rated with a second one,
//! too: a buffer of [`OTHER_WAIT`] beyond the smallest delay of the whole call (`beyond_least.rs`). Where the
//! two disagree on what is usable, the answer says so.
//!
//! What is assumed of the adaptive one:
//!
//! - **Talkspurts.** A receiver changes its delay in pauses of speech alone. Our calls send silence, too, so
//!   a talkspurt is taken to last as long as the mean one of ITU-T P.59, 1.004 s.
//! - **One frame at least.** A receiver gives whole frames to the sound card, so it waits a frame time beyond
//!   the mean delay at least (so did RAT, UCL's audio tool: no less than the gap between packets).
//! - **Order.** Frames are taken by number. One that came after a later one counts for the averages before
//!   it.

use talkpath_units::{Duration, SignedDuration};

use crate::PlayoutRule;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Was there at its playout time.
    Played,
    /// Came after it.
    Late,
    /// Never came.
    Missing,
}

/// A receiver of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Playout {
    frame: Duration,
    rule: PlayoutRule,
    average: Option<Average>,
    /// The talkspurt that is being played: its number, and its playout delay, ns. With a fixed delay there is
    /// one.
    talkspurt: Option<(u64, i64)>,
}

/// The averages of algorithm 4, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Average {
    /// Of the delay.
    mean: f64,
    /// Of its distance from the mean.
    variation: f64,
    /// The delays of the last frame and of the one before.
    last: [f64; 2],
    /// In a spike, how steep its slope has been of late.
    slope: Option<f64>,
}

impl Playout {
    /// A receiver of frames that are `frame` apart.
    pub const fn new(frame: Duration, rule: PlayoutRule) -> Self {
        Self { frame, rule, average: None, talkspurt: None }
    }

    /// Frame `seq` came `delay` after it was due, or never. Frames are given in order of `seq`. Returns what
    /// became of it.
    pub fn take(&mut self, seq: u64, delay: Option<SignedDuration>) -> Heard {
        let Some(delay) = delay else { return Heard::Missing };
        let delay = delay.as_nanos();
        let playout = match self.rule {
            PlayoutRule::Adaptive => self.adapt(seq, delay),
            PlayoutRule::Fixed(wait) => {
                let wait = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
                self.talkspurt.get_or_insert((0, delay.saturating_add(wait))).1
            }
        };
        if delay <= playout { Heard::Played } else { Heard::Late }
    }

    /// The playout delay of frame `seq`, which came after `delay`; both ns.
    fn adapt(&mut self, seq: u64, delay: i64) -> i64 {
        let number = seq / self.frames_of_talkspurt();
        let average = self.average.get_or_insert(Average::beginning(delay as f64));
        average.add(delay as f64);
        match self.talkspurt {
            Some((current, playout)) if current == number => playout,
            Some(_) | None => {
                let wait = (4.0 * average.variation).max(self.frame.as_nanos() as f64);
                // Saturates: no delay is near the end of the range.
                let playout = (average.mean + wait).ceil() as i64;
                self.talkspurt = Some((number, playout));
                playout
            }
        }
    }

    /// From a frame's due time to its playout in the current talkspurt; `None` before the first frame.
    pub fn delay(&self) -> Option<SignedDuration> {
        self.talkspurt.map(|(_, playout)| SignedDuration::from_nanos(playout))
    }

    fn frames_of_talkspurt(&self) -> u64 {
        (TALKSPURT.as_nanos() / self.frame.as_nanos().max(1)).max(1)
    }
}

impl Average {
    /// Before the first frame, whose delay this is.
    const fn beginning(delay: f64) -> Self {
        Self { mean: delay, variation: 0.0, last: [delay; 2], slope: None }
    }

    fn add(&mut self, delay: f64) {
        let [last, before] = self.last;
        self.last = [delay, last];
        match &mut self.slope {
            None if (delay - last).abs() > 2.0 * self.variation + SPIKE_NS => self.slope = Some(0.0),
            None => {}
            Some(slope) => {
                *slope = *slope / 2.0 + ((2.0 * delay - last - before) / 8.0).abs();
                if *slope <= FLAT_NS {
                    self.slope = None;
                    return;
                }
            }
        }
        match self.slope {
            None => self.mean += (delay - self.mean) / 8.0,
            Some(_) => self.mean += delay - last,
        }
        self.variation += ((delay - self.mean).abs() - self.variation) / 8.0;
    }
}

/// How long the second receiver waits beyond the smallest delay. Chosen: three frames of 20 ms.
pub const OTHER_WAIT: Duration = Duration::from_millis(60);

/// [`OTHER_WAIT`] as people read it.
pub const OTHER_WAIT_TEXT: &str = "60 ms";

/// How a second receiver plays that waits for this long: `fixed 60 ms beyond the smallest delay`.
pub fn beyond_least_words(wait: Duration) -> String {
    format!("fixed {wait} beyond the smallest delay")
}

/// ITU-T P.59, Table 1: the mean duration of a talkspurt.
const TALKSPURT: Duration = Duration::from_millis(1004);
/// Ramjee et al. 1994, algorithm 4: a spike begins with a step of 800 samples at 8 kHz beyond two variations.
const SPIKE_NS: f64 = 100e6;
/// The same: it ends when the slope's average is down to 63 samples.
const FLAT_NS: f64 = 7.875e6;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRAME: Duration = Duration::from_millis(20);

    fn ms(ms: i64) -> SignedDuration {
        SignedDuration::from_nanos(ms * 1_000_000)
    }

    /// What became of frames with these delays, and the playout delay of each, ms.
    fn play(delays: &[Option<i64>]) -> (Vec<Heard>, Vec<f64>) {
        play_by(PlayoutRule::Adaptive, delays)
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
        assert!(heard.iter().all(|it| *it == Heard::Played));
        assert!(delays.iter().all(|it| (it - 50.0).abs() < 1e-6), "{delays:?}");
    }

    #[test]
    fn the_wait_follows_the_jitter_from_talkspurt_to_talkspurt_and_not_within_one() {
        // 30 and 50 ms in turn. After a frame of 30 ms the mean is 39 1/3 in the end, after one of 50 ms
        // 40 2/3: m = m + (30 - m) / 8 and so on. So each is 9 1/3 away from the mean.
        let delays: Vec<_> = (0..200).map(|seq| Some(30 + seq % 2 * 20)).collect();
        let (heard, playout) = play(&delays);
        for talkspurt in playout.chunks(50) {
            assert!(talkspurt.iter().all(|it| it.to_bits() == talkspurt[0].to_bits()));
        }
        assert!((playout[0] - 50.0).abs() < 1e-6, "the first frame's delay and one frame");
        assert!((playout[199] - (39.0 + 4.0 * 9.0 + 5.0 / 3.0)).abs() < 1e-3, "{}", playout[199]);
        assert!(heard.iter().all(|it| *it == Heard::Played), "50 ms is the first talkspurt's playout delay");
    }

    #[test]
    fn a_frame_that_comes_after_its_playout_time_is_late_and_one_that_never_comes_missing() {
        let mut delays = [Some(30); 100];
        delays[10] = Some(51);
        delays[11] = None;
        let (heard, _) = play(&delays);
        assert_eq!((heard[10], heard[11], heard[12]), (Heard::Late, Heard::Missing, Heard::Played));
        assert_eq!(heard.iter().filter(|it| **it == Heard::Played).count(), 98);
    }

    /// A lost segment of a stream: frames wait behind it and come at once.
    #[test]
    fn a_spike_is_followed_and_left() {
        let mut delays = [Some(30); 300];
        for (behind, delay) in delays[40..55].iter_mut().enumerate() {
            *delay = Some(330 - 20 * behind as i64);
        }
        let (heard, playout) = play(&delays);
        let late = heard.iter().filter(|it| **it == Heard::Late).count();
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
        assert!(playout[0].is_nan() && playout[1..].iter().all(|it| it.to_bits() == 90_f64.to_bits()));
        // Minutes of growing delay do not move it.
        let growing: Vec<_> = (0..9_000).map(|seq| Some(30 + seq / 100)).collect();
        let (heard, playout) = play_by(rule, &growing);
        assert_eq!((playout[8_999], heard[6_000], heard[8_999]), (90.0, played, late));
    }

    fn any_rule() -> impl Strategy<Value = PlayoutRule> {
        let fixed = (0_u64..500).prop_map(|ms| PlayoutRule::Fixed(Duration::from_millis(ms)));
        prop_oneof![Just(PlayoutRule::Adaptive), fixed]
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
