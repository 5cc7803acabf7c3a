//! How a call sounds: playout decides what is heard, and the E-model rates it.
//!
//! A flow without echo is one direction. An echo flow is a call in both: each message there is a frame one
//! way, and its echo a frame the other way. The call is as good as its worse direction. Where the two clocks
//! are not trusted, a frame's delay is half its round trip, and a frame that was lost either way is lost.
//!
//! Two flows without echo, one each way, are a call in both directions, too. Where the clocks are not
//! trusted, the delays of both are off by one offset, with opposite signs. Playout does not see it, because a
//! receiver needs no clock but its own, and the sum of both delays is free of it. Half that sum is then the
//! delay of either ([`CallCounter::halve`]).

use talkpath_units::SignedDuration;

use super::e_model::{self, Codec};
use super::playout::{Heard, Playout};
use super::trip::round_trip;
use crate::summary::{Basis, CallSummary, Direction, MouthToEarMs};
use crate::{CallTerms, Fate, MessageRecord, PlayoutRule};

/// Counts one call, frame by frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallCounter {
    /// One way; whether between clocks that are trusted.
    OneWay(Listener, bool),
    /// There and back.
    BothWays(Listener, Listener),
    /// Half of there and back.
    Halves(Listener),
}

/// What one listener hears.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listener {
    terms: CallTerms,
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
    /// Nothing yet of a call.
    pub(crate) fn new(terms: CallTerms, is_echo: bool, clock_trusted: bool) -> Self {
        let listener = || Listener::new(terms);
        match (is_echo, clock_trusted) {
            (false, _) => Self::OneWay(listener(), clock_trusted),
            (true, true) => Self::BothWays(listener(), listener()),
            (true, false) => Self::Halves(listener()),
        }
    }

    /// The next frame by number, and its echo if that was written.
    pub(crate) fn add(&mut self, row: &MessageRecord, back: Option<&MessageRecord>) {
        match self {
            Self::OneWay(out, _) => out.add(row.seq, arrival(row, row)),
            Self::BothWays(out, way_back) => {
                out.add(row.seq, arrival(row, row));
                if let Some(back) = back {
                    way_back.add(row.seq, arrival(back, back));
                }
            }
            Self::Halves(halves) => {
                let half = |delay: SignedDuration| SignedDuration::from_nanos(delay.as_nanos() / 2);
                halves.add(row.seq, round_trip(row, back).delay().map(half));
            }
        }
    }

    /// The figures; `None` without a frame, or one way between clocks that are not trusted.
    pub(crate) fn finish(&self) -> Option<CallSummary> {
        let forward = (Basis::OneWay, Some(Direction::Forward));
        match self {
            Self::OneWay(out, clock_trusted) => {
                out.summary(forward, out.mouth_to_ear_ms()).filter(|_| *clock_trusted)
            }
            Self::BothWays(out, back) => {
                let there = out.summary(forward, out.mouth_to_ear_ms());
                let return_ = (Basis::OneWay, Some(Direction::Return));
                let back = back.summary(return_, back.mouth_to_ear_ms());
                let worse = |a: &CallSummary, b: &CallSummary| {
                    (a.played > 0).cmp(&(b.played > 0)).then(a.r.total_cmp(&b.r))
                };
                [there, back].into_iter().flatten().min_by(worse)
            }
            Self::Halves(halves) => halves.summary((Basis::HalfRoundTrip, None), halves.mouth_to_ear_ms()),
        }
    }

    /// The figures of one direction of a call whose `other` direction is a flow of its own, between clocks
    /// that are not trusted: the mean delay of both is half their sum. `None` without a frame, and of an echo
    /// flow. If one of them played nothing, its delay is not known, and loss alone decides.
    pub(crate) fn halve(&self, other: &Self) -> Option<CallSummary> {
        let (Self::OneWay(this, _), Self::OneWay(other, _)) = (self, other) else { return None };
        let halved = this.mouth_to_ear_ms().zip(other.mouth_to_ear_ms()).map(|(this, other)| {
            let offset = (other.mean - this.mean) / 2.0;
            MouthToEarMs { mean: this.mean + offset, p50: this.p50 + offset, p95: this.p95 + offset }
        });
        this.summary((Basis::HalfRoundTrip, Some(Direction::Forward)), halved)
    }
}

/// From when `due` was due to the arrival of `read`, if it came.
fn arrival(due: &MessageRecord, read: &MessageRecord) -> Option<SignedDuration> {
    let received = read.received.filter(|_| read.fate == Fate::Delivered)?;
    Some(received.signed_since(due.due))
}

impl Listener {
    const fn new(terms: CallTerms) -> Self {
        Self {
            terms,
            playout: Playout::new(terms.frame, terms.playout),
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

    fn summary(
        &self,
        (basis, direction): (Basis, Option<Direction>),
        mouth_to_ear_ms: Option<MouthToEarMs>,
    ) -> Option<CallSummary> {
        let due = self.played + self.late + self.missing;
        if due == 0 {
            return None;
        }
        let lost = self.late + self.missing;
        let loss = lost as f64 / due as f64;
        let burst_ratio = burst_ratio(loss, lost, self.gaps);
        let call = e_model::Call {
            // Without a frame that was played the loss alone decides.
            mouth_to_ear_ms: mouth_to_ear_ms.as_ref().map_or(0.0, |delay| delay.mean.max(0.0)),
            loss,
            // Nothing was played: a gap without an end. The model's limit is below all that is heard in part.
            burst_ratio: if self.played == 0 { f64::INFINITY } else { burst_ratio },
            codec: if self.terms.is_concealed { Codec::G711_CONCEALED } else { Codec::G711 },
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
            codec: "g711".to_owned(),
            playout: match self.terms.playout {
                PlayoutRule::Adaptive => "adaptive".to_owned(),
                PlayoutRule::Fixed(wait) => format!("fixed {wait}"),
            },
            concealment: if self.terms.is_concealed { "g711-appendix-i" } else { "none" }.to_owned(),
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
        let frame_ms = self.terms.frame.as_millis_f64();
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
    use talkpath_units::Duration;

    use super::*;
    use crate::testing::message;

    const TERMS: CallTerms =
        CallTerms { frame: Duration::from_millis(20), playout: PlayoutRule::Adaptive, is_concealed: false };

    fn counted(
        terms: CallTerms,
        clock_trusted: bool,
        delays: impl IntoIterator<Item = Option<u64>>,
    ) -> CallCounter {
        let mut call = CallCounter::new(terms, false, clock_trusted);
        for (seq, delay) in (0..).zip(delays) {
            call.add(&message(seq, delay), None);
        }
        call
    }

    fn one_way(delays: impl IntoIterator<Item = Option<u64>>) -> Option<CallSummary> {
        counted(TERMS, true, delays).finish()
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
        let rated = |clock_trusted| {
            let mut call = CallCounter::new(TERMS, true, clock_trusted);
            for seq in 0..500 {
                let there = message(seq, Some(30));
                let due = there.received.unwrap();
                // The way back takes 230 ms.
                let received = Some(due + Duration::from_millis(230));
                let back = MessageRecord { due, received, ..there };
                call.add(&there, Some(&back));
            }
            call.finish().unwrap()
        };
        let trusted = rated(true);
        assert!((trusted.mouth_to_ear_ms.unwrap().p50 - 270.0).abs() < 1e-3);
        assert_eq!((trusted.basis, trusted.direction), (Basis::OneWay, Some(Direction::Return)));
        let halved = rated(false);
        assert!((halved.mouth_to_ear_ms.unwrap().p50 - 170.0).abs() < 1e-3);
        assert_eq!((halved.basis, halved.direction), (Basis::HalfRoundTrip, None));
        assert!(halved.mos > trusted.mos);
    }

    #[test]
    fn of_two_flows_between_wrong_clocks_each_has_half_the_round_trip_and_its_own_losses() {
        // 30 ms there and 390 ms back; the far clock is 300 ms ahead, which the stamps show as 330 and 90 ms.
        let up = counted(TERMS, false, (0..500).map(|_| Some(330)));
        let lossy = |seq: u64| (seq % 10 != 3).then_some(90);
        let down = counted(TERMS, false, (0..500).map(lossy));
        assert_eq!((up.finish(), down.finish()), (None, None));
        let (above, below) = (up.halve(&down).unwrap(), down.halve(&up).unwrap());
        // Half of 420 ms, a frame time until a frame is due, and one in the receiver.
        for call in [&above, &below] {
            assert!((call.mouth_to_ear_ms.as_ref().unwrap().mean - 250.0).abs() < 1e-3, "{call:?}");
            assert_eq!(call.basis, Basis::HalfRoundTrip);
        }
        assert_eq!((above.missing, below.missing), (0, 50));
        assert!(below.mos < above.mos);
    }

    #[test]
    fn concealment_changes_how_loss_sounds_and_nothing_else() {
        let lossy = |seq: u64| (seq % 33 != 3).then_some(30);
        let plain = counted(TERMS, true, (0..3_300).map(lossy)).finish().unwrap();
        let terms = CallTerms { is_concealed: true, ..TERMS };
        let concealed = counted(terms, true, (0..3_300).map(lossy)).finish().unwrap();
        assert_eq!((plain.concealment.as_str(), concealed.concealment.as_str()), ("none", "g711-appendix-i"));
        let rated = |bpl| {
            let (loss, codec) = (100.0 / 3_300.0, Codec { ie: 0.0, bpl });
            e_model::Call { mouth_to_ear_ms: 70.0, loss, burst_ratio: 1.0, codec }.rate().r
        };
        assert!((plain.r - rated(4.3)).abs() < 1e-3 && (concealed.r - rated(25.1)).abs() < 1e-3);
        let (mos, r, concealment) = (plain.mos, plain.r, plain.concealment.clone());
        assert_eq!(CallSummary { mos, r, concealment, ..concealed }, plain);
    }

    #[test]
    fn a_fixed_wait_sets_the_delay_and_what_is_late() {
        let terms = CallTerms { playout: PlayoutRule::Fixed(Duration::from_millis(60)), ..TERMS };
        let delays = (0..500).map(|seq| Some(if seq % 50 == 49 { 91 } else { 30 }));
        let call = counted(terms, true, delays).finish().unwrap();
        assert_eq!((call.played, call.late, call.missing), (490, 10, 0));
        assert_eq!(call.playout, "fixed 60 ms");
        // A frame until it is due, the first frame's 30 ms, and the wait.
        assert!((call.mouth_to_ear_ms.unwrap().p95 - 110.0).abs() < 1e-3);
    }

    #[test]
    fn a_call_of_which_nothing_came_is_rated_one_and_a_call_without_frames_not_at_all() {
        let silent = one_way([None; 100]).unwrap();
        assert_eq!((silent.mouth_to_ear_ms.clone(), silent.missing), (None, 100));
        assert_eq!((silent.mos, silent.burst_ratio), (1.0, 1.0), "{silent:?}");
        assert_eq!(one_way([]), None);
        assert_eq!(counted(TERMS, false, [Some(30)]).finish(), None);
    }

    #[test]
    fn a_call_of_which_nothing_is_heard_is_below_one_that_is_heard_in_part() {
        // With concealment, and half of each second lost in one run: R is below 0 here, and MOS 1.
        let terms = CallTerms { is_concealed: true, ..TERMS };
        let half = counted(terms, true, (0..3_000).map(|seq| (seq % 500 < 250).then_some(30))).finish();
        let dead = counted(terms, true, [None; 3_000]).finish();
        let (half, dead) = (half.unwrap(), dead.unwrap());
        assert_eq!((half.mos, dead.mos), (1.0, 1.0));
        assert!(dead.r < half.r && dead.r.is_finite(), "{} and {}", dead.r, half.r);
    }

    #[test]
    fn a_direction_of_which_nothing_is_heard_is_the_worse_one() {
        let terms = CallTerms { is_concealed: true, ..TERMS };
        let mut call = CallCounter::new(terms, true, true);
        for seq in 0..3_000 {
            let there = message(seq, (seq % 500 < 250).then_some(30));
            call.add(&there, Some(&message(seq, None)));
        }
        let call = call.finish().unwrap();
        assert_eq!((call.direction, call.played, call.missing), (Some(Direction::Return), 0, 3_000));
    }

    proptest! {
        #![proptest_config(talkpath_testing::properties(256))]

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
