//! How a call sounds: playout decides what is heard, and the E-model rates it.
//!
//! A flow without echo is one direction. An echo flow is a call in both: each message there is a frame one
//! way, and its echo a frame the other way. The call is as good as its worse direction. Where the two clocks
//! are not trusted, a frame's delay is half its round trip, and a frame that was lost either way is lost.

use talkpath_units::{Duration, SignedDuration};

use super::e_model::{self, Codec};
use super::playout::{Heard, Playout};
use crate::summary::{Basis, CallSummary, Direction, MouthToEarMs};
use crate::{Fate, MessageRecord};

/// Counts one call, frame by frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallCounter {
    out: Listener,
    /// Of an echo flow: the way back, and half of there and back.
    echo: Option<(Listener, Listener)>,
}

/// What one listener hears.
#[derive(Clone, Debug, PartialEq)]
struct Listener {
    frame: Duration,
    playout: Playout,
    played: u64,
    late: u64,
    missing: u64,
    /// Runs of frames that were not played, and whether the last frame is in one.
    gaps: u64,
    is_in_gap: bool,
    /// How many frames were played with which playout delay: one entry a talkspurt.
    delays: Vec<(SignedDuration, u64)>,
}

impl CallCounter {
    /// Nothing yet of a call whose frames are `frame` apart.
    pub(crate) fn new(frame: Duration, is_echo: bool) -> Self {
        let listener = || Listener::new(frame);
        Self { out: listener(), echo: is_echo.then(|| (listener(), listener())) }
    }

    /// The next frame by number, and its echo if that was written.
    pub(crate) fn add(&mut self, row: &MessageRecord, back: Option<&MessageRecord>) {
        self.out.add(row.seq, arrival(row, row));
        let Some((way_back, halves)) = &mut self.echo else { return };
        if let Some(back) = back {
            way_back.add(row.seq, arrival(back, back));
        }
        let round_trip = back.and_then(|back| arrival(row, back));
        halves.add(row.seq, round_trip.map(|delay| SignedDuration::from_nanos(delay.as_nanos() / 2)));
    }

    /// The figures; `None` without a frame, or one way between clocks that are not trusted.
    pub(crate) fn finish(&self, clock_trusted: bool) -> Option<CallSummary> {
        match &self.echo {
            None => self.out.summary(Basis::OneWay, Some(Direction::Forward)).filter(|_| clock_trusted),
            Some((back, _)) if clock_trusted => {
                let way = |listener: &Listener, direction| listener.summary(Basis::OneWay, Some(direction));
                let ways = [way(&self.out, Direction::Forward), way(back, Direction::Return)];
                ways.into_iter().flatten().min_by(|a, b| a.r.total_cmp(&b.r))
            }
            Some((_, halves)) => halves.summary(Basis::HalfRoundTrip, None),
        }
    }
}

/// From when `due` was due to the arrival of `read`, if it came.
fn arrival(due: &MessageRecord, read: &MessageRecord) -> Option<SignedDuration> {
    let received = read.received.filter(|_| read.fate == Fate::Delivered)?;
    Some(received.signed_since(due.due))
}

impl Listener {
    const fn new(frame: Duration) -> Self {
        Self {
            frame,
            playout: Playout::new(frame),
            played: 0,
            late: 0,
            missing: 0,
            gaps: 0,
            is_in_gap: false,
            delays: Vec::new(),
        }
    }

    fn add(&mut self, seq: u64, delay: Option<SignedDuration>) {
        let heard = self.playout.take(seq, delay);
        match heard {
            Heard::Played => self.played += 1,
            Heard::Late => self.late += 1,
            Heard::Missing => self.missing += 1,
        }
        let is_gap = heard != Heard::Played;
        self.gaps += u64::from(is_gap && !self.is_in_gap);
        self.is_in_gap = is_gap;
        if let (Heard::Played, Some(delay)) = (heard, self.playout.delay()) {
            match self.delays.last_mut() {
                Some((last, count)) if *last == delay => *count += 1,
                _ => self.delays.push((delay, 1)),
            }
        }
    }

    fn summary(&self, basis: Basis, direction: Option<Direction>) -> Option<CallSummary> {
        let due = self.played + self.late + self.missing;
        if due == 0 {
            return None;
        }
        let lost = self.late + self.missing;
        let loss = lost as f64 / due as f64;
        let mouth_to_ear_ms = self.mouth_to_ear_ms();
        let burst_ratio = burst_ratio(loss, lost, self.gaps);
        let call = e_model::Call {
            // Without a frame that was played the loss alone decides.
            mouth_to_ear_ms: mouth_to_ear_ms.as_ref().map_or(0.0, |delay| delay.mean.max(0.0)),
            loss,
            burst_ratio,
            codec: Codec::G711,
        };
        let e_model::Rating { r, mos, .. } = call.rate();
        Some(CallSummary {
            mos,
            r,
            played: self.played,
            late: self.late,
            missing: self.missing,
            mouth_to_ear_ms,
            burst_ratio,
            playout: "adaptive".to_owned(),
            basis,
            direction,
        })
    }

    /// A frame is due when its last sample is spoken; its first one was spoken a frame time before.
    fn mouth_to_ear_ms(&self) -> Option<MouthToEarMs> {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        let mut total = 0_i128;
        for &(delay, count) in &delays {
            total += i128::from(delay.as_nanos()) * i128::from(count);
        }
        let frame_ms = self.frame.as_millis_f64();
        // Nearest rank.
        let quantile = |percent: u64| {
            let rank = (self.played * percent).div_ceil(100).max(1);
            let mut below = 0;
            let found = delays.iter().find(|(_, count)| {
                below += count;
                below >= rank
            });
            found.map(|(delay, _)| frame_ms + delay.as_nanos() as f64 / 1e6)
        };
        let mean = frame_ms + total as f64 / self.played.max(1) as f64 / 1e6;
        Some(MouthToEarMs { mean, p50: quantile(50)?, p95: quantile(95)? })
    }
}

/// ITU-T G.107 §7.5: the mean length of the gaps over the mean length if each frame were lost at random,
/// 1 / (1 - loss). Not below 1: gaps that are spread more evenly than at random are taken for random ones.
fn burst_ratio(loss: f64, lost: u64, gaps: u64) -> f64 {
    if gaps == 0 {
        return 1.0;
    }
    (lost as f64 / gaps as f64 * (1.0 - loss)).max(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::message;

    const FRAME: Duration = Duration::from_millis(20);

    fn one_way(delays: impl IntoIterator<Item = Option<u64>>) -> Option<CallSummary> {
        let mut call = CallCounter::new(FRAME, false);
        for (seq, delay) in (0..).zip(delays) {
            call.add(&message(seq, delay), None);
        }
        call.finish(true)
    }

    #[test]
    fn an_even_path_of_30_ms_is_70_ms_from_mouth_to_ear() {
        let call = one_way([Some(30); 500]).unwrap();
        assert_eq!((call.played, call.late, call.missing), (500, 0, 0));
        let delay = call.mouth_to_ear_ms.unwrap();
        // A frame time until it is due, the path, and a frame time in the receiver.
        for figure in [delay.mean, delay.p50, delay.p95] {
            assert!((figure - 70.0).abs() < 1e-3, "{figure}");
        }
        let by_hand =
            e_model::Call { mouth_to_ear_ms: 70.0, loss: 0.0, burst_ratio: 1.0, codec: Codec::G711 };
        assert!((call.r - by_hand.rate().r).abs() < 1e-6, "{}", call.r);
    }

    #[test]
    fn loss_in_bursts_has_a_burst_ratio_and_sounds_worse() {
        let call = |is_lost: fn(usize) -> bool| {
            one_way((0..10_000).map(|seq| (!is_lost(seq)).then_some(30))).unwrap()
        };
        let (single, bursts) = (call(|seq| seq % 50 == 7), call(|seq| seq % 200 < 4));
        assert_eq!((single.missing, bursts.missing), (200, 200));
        assert_eq!(single.burst_ratio.to_bits(), 1_f64.to_bits());
        assert!((bursts.burst_ratio - 4.0 * 0.98).abs() < 1e-9, "{}", bursts.burst_ratio);
        assert!(bursts.mos < single.mos && single.mos < 3.5);
    }

    #[test]
    fn a_call_in_both_directions_is_as_good_as_its_worse_one() {
        let mut call = CallCounter::new(FRAME, true);
        for seq in 0..500 {
            let there = message(seq, Some(30));
            let due = there.received.unwrap();
            // The way back takes 230 ms.
            let received = Some(due + Duration::from_millis(230));
            let back = MessageRecord { due, received, ..there };
            call.add(&there, Some(&back));
        }
        let trusted = call.finish(true).unwrap();
        assert!((trusted.mouth_to_ear_ms.unwrap().p50 - 270.0).abs() < 1e-3);
        assert_eq!((trusted.basis, trusted.direction), (Basis::OneWay, Some(Direction::Return)));
        let halved = call.finish(false).unwrap();
        assert!((halved.mouth_to_ear_ms.unwrap().p50 - 170.0).abs() < 1e-3);
        assert_eq!((halved.basis, halved.direction), (Basis::HalfRoundTrip, None));
        assert!(halved.mos > trusted.mos);
    }

    #[test]
    fn a_call_of_which_nothing_came_is_rated_one_and_a_call_without_frames_not_at_all() {
        let silent = one_way([None; 100]).unwrap();
        assert_eq!((silent.mouth_to_ear_ms.clone(), silent.missing), (None, 100));
        assert!(silent.mos < 1.1, "{silent:?}");
        assert_eq!(one_way([]), None);
        let mut untrusted = CallCounter::new(FRAME, false);
        untrusted.add(&message(0, Some(30)), None);
        assert_eq!(untrusted.finish(false), None);
    }

    proptest! {
        #[test]
        fn played_late_and_missing_are_all_that_was_due(
            delays in proptest::collection::vec(proptest::option::weighted(0.8, 0_u64..2_000), 1..300),
        ) {
            let call = one_way(delays.iter().copied()).unwrap();
            prop_assert_eq!(call.played + call.late + call.missing, delays.len() as u64);
            prop_assert_eq!(call.missing, delays.iter().filter(|delay| delay.is_none()).count() as u64);
            prop_assert!((1.0..=4.5).contains(&call.mos) && call.burst_ratio >= 1.0 && call.r.is_finite());
        }
    }
}
