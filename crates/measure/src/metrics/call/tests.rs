use proptest::prelude::*;
use talkpath_config::{Codec, Impairment, Rated, Scale};
use talkpath_units::Duration;

use super::*;
use crate::Carriage;
use crate::summary::{FlowSummary, ModelInput};
use crate::testing::message;
use crate::{PlayoutRule, judge};

pub(super) const FLOOR: f64 = judge::CALL_FLOOR;
pub(super) const TERMS: CallTerms = CallTerms {
    codec: Codec::G711,
    rated: Some(Rated {
        scale: Scale::Narrow,
        impairment: Impairment { ie: 0.0, bpl: 4.3 },
        bursty_bpl: None,
        source: "ITU-T G.113",
    }),
    carriage: Carriage { copies: 1, earlier: 0 },
    frame: Duration::from_millis(20),
    playout: PlayoutRule::Ramjee,
    is_concealed: false,
    others: false,
};
/// The receiver of browsers.
pub(super) const ADAPTIVE: CallTerms =
    CallTerms { playout: PlayoutRule::Adaptive, others: true, ..CONCEALED };
/// With the other receivers.
const BOTH: CallTerms = CallTerms { others: true, ..CONCEALED };
const CONCEALED: CallTerms = CallTerms {
    rated: Some(Rated {
        scale: Scale::Narrow,
        impairment: Impairment { ie: 0.0, bpl: 25.1 },
        bursty_bpl: None,
        source: "ITU-T G.113",
    }),
    is_concealed: true,
    ..TERMS
};

fn counted(
    terms: CallTerms,
    clock_trusted: bool,
    delays: impl IntoIterator<Item = Option<u64>>,
) -> CallCounter {
    let clocks = if clock_trusted { Clocks::One } else { Clocks::Untrusted };
    let mut call = CallCounter::new(terms, false, clocks);
    for (seq, delay) in (0..).zip(delays) {
        call.add(&message(seq, delay), None);
    }
    call
}

fn one_way(delays: impl IntoIterator<Item = Option<u64>>) -> Option<CallSummary> {
    counted(TERMS, true, delays).finish(FLOOR)
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
    let by_hand = e_model::Call {
        mouth_to_ear_ms: 70.0,
        loss: 0.0,
        burst_ratio: 1.0,
        codec: Codec::G711.rated(false).unwrap(),
    };
    assert!((call.r.unwrap() - by_hand.rate().r).abs() < 1e-6, "{:?}", call.r);
}

#[test]
fn loss_in_bursts_has_a_burst_ratio_and_sounds_worse() {
    let call =
        |is_lost: fn(usize) -> bool| one_way((0..10_000).map(|seq| (!is_lost(seq)).then_some(30))).unwrap();
    let (single, bursts) = (call(|seq| seq % 50 == 7), call(|seq| seq % 200 < 4));
    assert_eq!((single.missing, bursts.missing), (200, 200));
    assert_eq!(single.burst_ratio.to_bits(), 1_f64.to_bits());
    assert!((bursts.burst_ratio - 4.0 * 0.98).abs() < 1e-9, "{}", bursts.burst_ratio);
    assert!(bursts.score().unwrap() < single.score().unwrap() && single.score().unwrap() < 3.5);
}

#[test]
fn a_call_in_both_directions_is_as_good_as_its_worse_one() {
    let rated = |clocks| {
        let mut call = CallCounter::new(TERMS, true, clocks);
        for seq in 0..500 {
            let there = message(seq, Some(30));
            let due = there.received.unwrap();
            // The way back takes 230 ms.
            let received = Some(due + Duration::from_millis(230));
            let back = MessageRecord { due, received, ..there };
            call.add(&there, Some(&back));
        }
        call.finish(FLOOR).unwrap()
    };
    let trusted = rated(Clocks::One);
    assert!((trusted.mouth_to_ear_ms.as_ref().unwrap().p50 - 270.0).abs() < 1e-3);
    assert_eq!((trusted.basis, trusted.direction), (Basis::OneWay, Some(Direction::Return)));
    let halved = rated(Clocks::Untrusted);
    assert!((halved.mouth_to_ear_ms.as_ref().unwrap().p50 - 170.0).abs() < 1e-3);
    assert_eq!((halved.basis, halved.direction), (Basis::HalfRoundTrip, None));
    assert!(halved.score().unwrap() > trusted.score().unwrap());
}

#[test]
fn of_two_flows_between_wrong_clocks_each_has_half_the_round_trip_and_its_own_losses() {
    // 30 ms there and 390 ms back; the far clock is 300 ms ahead, which the stamps show as 330 and 90 ms.
    let up = counted(TERMS, false, (0..500).map(|_| Some(330)));
    let lossy = |seq: u64| (seq % 10 != 3).then_some(90);
    let down = counted(TERMS, false, (0..500).map(lossy));
    assert_eq!((up.finish(FLOOR), down.finish(FLOOR)), (None, None));
    let (above, below) = (up.halve(&down, FLOOR).unwrap(), down.halve(&up, FLOOR).unwrap());
    // Half of 420 ms, a frame time until a frame is due, and one in the receiver.
    for call in [&above, &below] {
        assert!((call.mouth_to_ear_ms.as_ref().unwrap().mean - 250.0).abs() < 1e-3, "{call:?}");
        assert_eq!(call.basis, Basis::HalfRoundTrip);
    }
    assert_eq!((above.missing, below.missing), (0, 50));
    assert!(below.score().unwrap() < above.score().unwrap());
}

#[test]
fn concealment_changes_how_loss_sounds_and_nothing_else() {
    let lossy = |seq: u64| (seq % 33 != 3).then_some(30);
    let plain = counted(TERMS, true, (0..3_300).map(lossy)).finish(FLOOR).unwrap();
    let terms = CONCEALED;
    let concealed = counted(terms, true, (0..3_300).map(lossy)).finish(FLOOR).unwrap();
    assert_eq!((plain.concealment.as_str(), concealed.concealment.as_str()), ("none", "g711-appendix-i"));
    let rated = |bpl| {
        let loss = 100.0 / 3_300.0;
        let codec = Rated { impairment: Impairment { ie: 0.0, bpl }, ..TERMS.rated.unwrap() };
        e_model::Call { mouth_to_ear_ms: 70.0, loss, burst_ratio: 1.0, codec }.rate().r
    };
    assert!(
        (plain.r.unwrap() - rated(4.3)).abs() < 1e-3 && (concealed.r.unwrap() - rated(25.1)).abs() < 1e-3
    );
    let CallSummary { mos, r, usable, .. } = plain;
    assert_eq!((usable, concealed.usable), (Some(false), Some(true)));
    let concealment = plain.concealment.clone();
    assert_eq!(CallSummary { mos, r, usable, concealment, ..concealed }, plain);
}

#[test]
fn a_fixed_wait_sets_the_delay_and_what_is_late() {
    let terms = CallTerms { playout: PlayoutRule::Fixed(Duration::from_millis(60)), ..TERMS };
    let delays = (0..500).map(|seq| Some(if seq % 50 == 49 { 91 } else { 30 }));
    let call = counted(terms, true, delays).finish(FLOOR).unwrap();
    assert_eq!((call.played, call.late, call.missing), (490, 10, 0));
    assert_eq!(call.playout, "fixed 60 ms");
    // A frame until it is due, the first frame's 30 ms, and the wait.
    assert!((call.mouth_to_ear_ms.unwrap().p95 - 110.0).abs() < 1e-3);
}

#[test]
fn a_call_of_which_nothing_came_is_rated_one_and_a_call_without_frames_not_at_all() {
    let silent = one_way([None; 100]).unwrap();
    assert_eq!((silent.mouth_to_ear_ms.clone(), silent.missing), (None, 100));
    assert_eq!((silent.mos, silent.burst_ratio), (Some(1.0), 1.0), "{silent:?}");
    assert_eq!(one_way([]), None);
    assert_eq!(counted(TERMS, false, [Some(30)]).finish(FLOOR), None);
}

#[test]
fn nothing_is_rated_below_a_call_of_which_nothing_is_heard() {
    // With concealment, and half of each second lost in one run.
    let terms = CONCEALED;
    let half = counted(terms, true, (0..3_000).map(|seq| (seq % 500 < 250).then_some(30))).finish(FLOOR);
    let dead = counted(terms, true, [None; 3_000]).finish(FLOOR);
    let (half, dead) = (half.unwrap(), dead.unwrap());
    assert_eq!((half.mos, dead.mos, dead.r), (Some(1.0), Some(1.0), Some(0.0)));
    assert!(half.r >= dead.r);
    // 41 of 500 frames in one gap: the ratio is kept, and rated as the table's last.
    let gap = |seq: u64| (!(200..241).contains(&seq)).then_some(30);
    let gap = counted(terms, true, (0..500).map(gap)).finish(FLOOR).unwrap();
    assert!((gap.burst_ratio - 41.0 * 459.0 / 500.0).abs() < 1e-9);
    let said: Vec<_> = gap.outside_model.iter().map(|it| it.input).collect();
    assert_eq!(said, [ModelInput::BurstRatio]);
    assert!(gap.score().unwrap() > 3.0, "{gap:?}");
}

#[test]
fn a_gap_of_a_second_bars_a_call_that_its_score_calls_usable() {
    let terms = CONCEALED;
    let with = |frames: u64| {
        let heard = |seq: u64| (!(200..200 + frames).contains(&seq)).then_some(30);
        counted(terms, true, (0..3_000).map(heard)).finish(FLOOR).unwrap()
    };
    let (short, long) = (with(49), with(50));
    assert_eq!((short.longest_gap_ms, short.usable), (Some(980.0), Some(true)));
    assert_eq!((long.longest_gap_ms, long.usable), (Some(1000.0), Some(false)));
    assert!(long.score().unwrap() > 3.8, "{long:?}");
    // Late frames make gaps as missing ones do.
    let fixed = CallTerms { playout: PlayoutRule::Fixed(Duration::from_millis(60)), ..terms };
    let late = |seq: u64| Some(if (200..250).contains(&seq) { 900 } else { 30 });
    let late = counted(fixed, true, (0..3_000).map(late)).finish(FLOOR).unwrap();
    assert!(late.missing == 0 && late.usable == Some(false), "{late:?}");
}

#[test]
fn the_direction_that_gaps_bar_is_the_worse_one() {
    let mut call = CallCounter::new(CONCEALED, true, Clocks::One);
    for seq in 0..3_000 {
        // One gap of a second there, and 3 % of single losses back, which score lower.
        let there = message(seq, (!(200..250).contains(&seq)).then_some(30));
        let back = message(seq, (seq % 33 != 3).then_some(30));
        call.add(&there, there.received.map(|_| &back));
    }
    let call = call.finish(FLOOR).unwrap();
    assert_eq!((call.direction, call.usable), (Some(Direction::Forward), Some(false)));
}

#[test]
fn a_direction_of_which_nothing_is_heard_is_the_worse_one() {
    let terms = CONCEALED;
    let mut call = CallCounter::new(terms, true, Clocks::One);
    for seq in 0..3_000 {
        let there = message(seq, (seq % 500 < 250).then_some(30));
        call.add(&there, Some(&message(seq, None)));
    }
    let call = call.finish(FLOOR).unwrap();
    assert_eq!((call.direction, call.played, call.missing), (Some(Direction::Return), 0, 3_000));
}

/// A queue that fills within a talkspurt: 20 ms, then 2 ms more a frame up to 72 ms, from frame 10 on.
fn filling(seq: u64) -> Option<u64> {
    Some(if seq < 10 { 20 } else { (20 + 2 * (seq - 10)).min(72) })
}

#[test]
fn a_queue_that_fills_splits_the_two_receivers_and_the_call_says_so() {
    let call = counted(BOTH, true, (0..200).map(filling)).finish(FLOOR).unwrap();
    // The adaptive one set its delay by the first frames, and one talkspurt is late from the 20th on.
    assert!(call.late > 20 && call.usable == Some(false), "{call:?}");
    let other = call.other_receiver.as_ref().unwrap();
    assert_eq!((other.played, other.late, other.usable), (200, 0, Some(true)));
    assert_eq!(other.mouth_to_ear_ms, Some(100.0), "a frame, 20 ms and 60 ms");
    let matters = call.receiver_matters.as_ref().unwrap();
    assert_eq!(matters.playout, "fixed 60 ms beyond the smallest delay");
    assert!(matters.mos > 4.3 && Some(matters.mos) == other.mos);
    // A scenario that names its receiver is judged with that one.
    let named = counted(CallTerms { others: false, ..BOTH }, true, (0..200).map(filling));
    let named = named.finish(FLOOR).unwrap();
    assert_eq!((named.other_receiver.is_none(), named.receiver_matters.is_none()), (true, true));
    assert_eq!(named.score().unwrap().to_bits(), call.score().unwrap().to_bits());
}

#[test]
fn each_receiver_says_which_direction_is_the_worse_one_with_it() {
    let mut call = CallCounter::new(BOTH, true, Clocks::One);
    for seq in 0..200 {
        // There a queue fills, which the adaptive receiver hears as late frames. Back one frame in 33 is
        // missing with either.
        let there = message(seq, filling(seq));
        call.add(&there, Some(&message(seq, (seq % 33 != 3).then_some(30))));
    }
    let call = call.finish(FLOOR).unwrap();
    let other = call.other_receiver.as_ref().unwrap();
    assert_eq!((call.direction, other.direction), (Some(Direction::Forward), Some(Direction::Return)));
    assert_eq!((other.played, other.late), (194, 0));
    let flow = FlowSummary { sent: 200, call: Some(Box::new(call)), ..FlowSummary::default() };
    let direction = |receiver| judge::judge_copies("call", [("call", &flow)], receiver).unwrap().direction;
    assert_eq!(direction(judge::Receiver::Own), Some(Direction::Forward));
    assert_eq!(direction(judge::Receiver::Other), Some(Direction::Return));
}

#[test]
fn the_smallest_delay_of_the_whole_call_counts_and_not_the_first_frames() {
    // The first frame waited for its connection.
    let delays = (0..500).map(|seq| Some(if seq == 0 { 300 } else { 30 + seq % 2 * 61 }));
    let call = counted(BOTH, true, delays).finish(FLOOR).unwrap();
    let other = call.other_receiver.unwrap();
    // Every second frame comes 61 ms after the fastest.
    assert_eq!((other.played, other.late), (249, 251));
}

#[test]
fn the_second_receiver_of_two_flows_has_half_the_round_trip_too() {
    let up = counted(BOTH, false, (0..500).map(|_| Some(330)));
    let down = counted(BOTH, false, (0..500).map(|_| Some(90)));
    let (above, below) = (up.halve(&down, FLOOR).unwrap(), down.halve(&up, FLOOR).unwrap());
    for call in [above, below] {
        let other = call.other_receiver.unwrap();
        assert_eq!(other.mouth_to_ear_ms, Some(20.0 + 60.0 + 210.0));
    }
}

fn adaptive(delays: impl IntoIterator<Item = Option<u64>>) -> CallSummary {
    counted(ADAPTIVE, true, delays).finish(FLOOR).unwrap()
}

#[test]
fn the_receiver_of_browsers_hears_an_even_path_whole_and_rates_it_in_windows() {
    let call = adaptive([Some(30); 1_000]);
    assert_eq!((call.played, call.late, call.missing, call.late_played), (1_000, 0, 0, Some(0)));
    assert_eq!((call.concealed, call.gaps), (Some(0.0), Some(0)));
    // The delay grows towards the first target of 80 ms, and then shrinks below the upper limit of 40 ms.
    assert!(call.stretched.is_some_and(|share| (0.001..0.005).contains(&share)), "{:?}", call.stretched);
    assert_eq!((call.playout.as_str(), call.usable), ("adaptive", Some(true)));
    // 19 s without the opening second.
    let CallWindows { count, seconds } = call.windows.unwrap();
    assert!(count == 2 && (9.5..9.55).contains(&seconds), "{seconds}");
    assert_eq!(call.opening_second, Some(OpeningSecond { lost: 0.0, first_target_ms: Some(20) }));
    // A frame until it is due, the path, half a block of the sound card, and 25 ms of the growth.
    assert!((call.mouth_to_ear_ms.unwrap().p95 - 80.0).abs() < 1e-3);
}

#[test]
fn what_happens_in_the_opening_second_does_not_count_and_is_shown() {
    let even = adaptive([Some(30); 1_000]);
    // Ten frames of the first second are missing.
    let rough = adaptive((0..1_000).map(|seq| (!(20..30).contains(&seq)).then_some(30)));
    assert_eq!((rough.missing, rough.gaps), (10, Some(0)));
    // The delay after the opening second is another one by less than a join of made-up speech.
    assert!((rough.mos.unwrap() - even.mos.unwrap()).abs() < 0.001, "{:?} {:?}", rough.mos, even.mos);
    assert!((rough.opening_second.unwrap().lost - 0.2).abs() < 0.02, "{rough:?}");
}

#[test]
fn frames_that_were_due_before_the_connection_was_open_count() {
    let rated = |missing: usize| {
        let even = core::iter::repeat_n(Some(30), 1_000 - missing);
        adaptive(core::iter::repeat_n(None, missing).chain(even))
    };
    let (at_once, late) = (rated(3), rated(155));
    assert_eq!((at_once.longest_gap_ms, at_once.usable), (Some(60.0), Some(true)));
    assert_eq!((late.longest_gap_ms, late.usable), (Some(3_100.0), Some(false)));
    assert!(late.score().unwrap() < at_once.score().unwrap());
}

#[test]
fn a_late_frame_is_played_and_a_lost_one_is_concealed() {
    let delay = |seq: u64| match seq {
        300..310 => Some(230 - 20 * (seq - 300)),
        600 => None,
        _ => Some(30),
    };
    let call = adaptive((0..1_000).map(delay));
    assert_eq!((call.played, call.late, call.missing, call.discarded), (999, 0, 1, Some(0)));
    assert!(call.late_played >= Some(7) && call.gaps == Some(2), "{call:?}");
    let concealed_ms = call.concealed.unwrap() * 20_200.0;
    assert!((180.0..230.0).contains(&concealed_ms), "{concealed_ms}");
}

/// A join after each lost frame removes 0.5 ms, so almost all of them begin and end within blocks of the
/// sound card.
#[test]
fn with_the_receiver_of_browsers_a_lost_frame_counts_as_one_frame() {
    for every in [100, 40, 10] {
        let lossy = |seq: u64| (seq % every != 7).then_some(30);
        let call = adaptive((0..3_000).map(lossy));
        let loss = 1.0 / every as f64;
        let mouth_to_ear_ms = call.mouth_to_ear_ms.as_ref().unwrap().mean;
        let codec = ADAPTIVE.rated.unwrap();
        let by_hand = e_model::Call { mouth_to_ear_ms, loss, burst_ratio: 1.0, codec }.rate().r;
        assert!((call.r.unwrap() - by_hand).abs() < 0.3, "1 in {every}: {:?} and {by_hand}", call.r);
        assert_eq!((call.longest_gap_ms, call.burst_ratio), (Some(20.0), 1.0), "1 in {every}");
        assert!((call.concealed.unwrap() - loss).abs() < 0.002, "1 in {every}: {:?}", call.concealed);
    }
}

#[test]
fn a_delay_or_a_loss_beyond_the_model_leaves_no_score_and_no_usable_call() {
    let far = adaptive([Some(520); 1_000]);
    assert_eq!((far.mos, far.score(), far.r, far.usable), (None, Some(1.0), Some(0.0), Some(false)));
    let beyond: Vec<_> = far.beyond_model().map(ToString::to_string).collect();
    assert_eq!(beyond, ["mouth to ear 570 ms (the table has 0 to 500 ms, worse than the model rates)"]);
    let lossy = adaptive((0..1_000).map(|seq| (seq % 4 != 1).then_some(30)));
    assert_eq!((lossy.mos, lossy.usable), (None, Some(false)));
    assert!(lossy.beyond_model().all(|outside| outside.input == ModelInput::Loss));
    assert!(serde_json::to_string(&far).unwrap().starts_with("{\"mos\":null,"));
}

#[test]
fn what_was_due_before_the_first_frame_came_counts_as_concealed() {
    let opens_late = adaptive((0..1_000).map(|seq| (seq >= 150).then_some(30)));
    let concealed = opens_late.concealed.unwrap();
    // 150 of 1,000 frames. What is heard lasts a little longer than the frames, by the delay of the buffer.
    assert!((0.149..=0.15).contains(&concealed), "{concealed}");
    assert_eq!(adaptive([None; 1_000]).concealed, Some(1.0));
    assert_eq!(adaptive([Some(30); 1_000]).concealed.map(|share| share < 0.01), Some(true));
}

#[test]
fn a_call_without_published_impairment_has_all_figures_but_its_score() {
    let delay = |seq: u64| (seq % 100 != 7).then_some(if seq % 50 == 20 { 75 } else { 30 });
    let call =
        |rated| counted(CallTerms { rated, ..ADAPTIVE }, true, (0..1_000).map(delay)).finish(FLOOR).unwrap();
    let (rated, unrated) = (call(ADAPTIVE.rated), call(None));
    assert!(rated.is_rated() && !unrated.is_rated() && unrated.concealed > Some(0.0), "{unrated:?}");
    let other = |call: &CallSummary| OtherReceiver {
        mos: None,
        r: None,
        usable: None,
        ..call.other_receiver.clone().unwrap()
    };
    let patient = |call: &CallSummary| OtherReceiver {
        mos: None,
        r: None,
        usable: None,
        ..call.patient_receiver.clone().unwrap()
    };
    let without_score = CallSummary {
        mos: None,
        r: None,
        usable: None,
        windows: None,
        scale: String::new(),
        receiver_matters: None,
        other_receiver: Some(other(&rated)),
        patient_receiver: Some(patient(&rated)),
        ..rated
    };
    assert_eq!(unrated, without_score);
    // Gaps bar it as they bar any call.
    let gap = |seq: u64| (!(400..455).contains(&seq)).then_some(30);
    let barred =
        counted(CallTerms { rated: None, ..ADAPTIVE }, true, (0..1_000).map(gap)).finish(FLOOR).unwrap();
    assert_eq!((barred.usable, barred.score()), (Some(false), None));
    // Each frame of the way back comes, and each fifth of the way there does not.
    let mut echo = CallCounter::new(CallTerms { rated: None, ..ADAPTIVE }, true, Clocks::One);
    for seq in 0..500 {
        let frame = message(seq, (seq % 5 != 2).then_some(30));
        echo.add(&frame, (seq % 5 != 2).then(|| message(seq, Some(60))).as_ref());
    }
    assert_eq!(echo.finish(FLOOR).unwrap().direction, Some(Direction::Forward));
}

#[test]
fn the_first_of_the_other_receivers_that_disagrees_is_said() {
    // Two frames in five come 150 ms late, in order: only the patient receiver plays them.
    let delay =
        |seq: u64| Some(if seq % 50 < 10 { 30 + 190_u64.saturating_sub(20 * (seq % 50)) } else { 30 });
    let call = counted(ADAPTIVE, true, (0..3_000).map(delay)).finish(FLOOR).unwrap();
    let (other, patient) = (call.other_receiver.clone().unwrap(), call.patient_receiver.clone().unwrap());
    assert_eq!((other.usable, patient.usable, patient.late), (Some(false), Some(true), 0));
    let expected = [&other, &patient].into_iter().find(|receiver| receiver.usable != call.usable);
    assert_eq!(call.receiver_matters.map(|matters| matters.playout), expected.map(|it| it.playout.clone()));
}

proptest! {
    #![proptest_config(talkpath_testing::properties(256))]

    #[test]
    fn the_receiver_of_browsers_accounts_for_each_frame(
        delays in proptest::collection::vec(proptest::option::weighted(0.9, 0_u64..400), 1..400),
        is_one_clock in any::<bool>(),
    ) {
        let clocks = if is_one_clock { Clocks::One } else { Clocks::Trusted };
        let mut call = CallCounter::new(ADAPTIVE, false, clocks);
        for (seq, delay) in (0..).zip(&delays) {
            call.add(&message(seq, *delay), None);
        }
        let call = call.finish(FLOOR).unwrap();
        prop_assert_eq!(call.played + call.late + call.missing, delays.len() as u64);
        prop_assert_eq!(call.missing, delays.iter().filter(|delay| delay.is_none()).count() as u64);
        prop_assert!((0.0..=1.0).contains(&call.concealed.unwrap()));
        prop_assert!((1.0..=4.5).contains(&call.score().unwrap()) && (0.0..=93.3).contains(&call.r.unwrap()));
        prop_assert!(call.usable == Some(false) || call.score().unwrap() >= FLOOR);
        // Neither does the order in which the two kinds of clocks let frames through matter.
        let mut again = CallCounter::new(ADAPTIVE, false, Clocks::One);
        (0..).zip(&delays).for_each(|(seq, delay)| again.add(&message(seq, *delay), None));
        prop_assert_eq!(again.finish(FLOOR).unwrap(), call);
    }

    /// Over patterns of lost frames, with a receiver whose delay does not depend on them.
    #[test]
    fn more_lost_frames_never_raise_the_score_of_a_call(
        lost in proptest::collection::vec((1_usize..1_500, 1_usize..40), 0..12), more in 1_usize..1_500,
    ) {
        let terms = CallTerms { playout: PlayoutRule::Fixed(Duration::from_millis(60)), is_concealed: true, ..TERMS };
        let mut pattern = vec![Some(30); 1_500];
        for (begin, length) in lost {
            pattern[begin..(begin + length).min(1_500)].fill(None);
        }
        let before = counted(terms, true, pattern.iter().copied()).finish(FLOOR).unwrap();
        pattern[more] = None;
        let after = counted(terms, true, pattern).finish(FLOOR).unwrap();
        prop_assert!(after.score().unwrap() <= before.score().unwrap() + 1e-9 && after.usable <= before.usable);
        prop_assert!(after.longest_gap_ms >= before.longest_gap_ms);
    }

    #[test]
    fn played_late_and_missing_are_all_that_was_due(
        delays in proptest::collection::vec(proptest::option::weighted(0.8, 0_u64..2_000), 1..300),
    ) {
        let call = one_way(delays.iter().copied()).unwrap();
        prop_assert_eq!(call.played + call.late + call.missing, delays.len() as u64);
        prop_assert_eq!(call.missing, delays.iter().filter(|delay| delay.is_none()).count() as u64);
        prop_assert!((1.0..=4.5).contains(&call.score().unwrap()) && call.burst_ratio >= 1.0);
        prop_assert!((0.0..=93.3).contains(&call.r.unwrap()), "{call:?}");
        // All is lost, or it is rated no lower than that.
        let dead = one_way(delays.iter().map(|_| None)).unwrap();
        prop_assert!(call.score().unwrap() >= dead.score().unwrap() && call.r >= dead.r);
    }

    /// Against the definition, frame by frame.
    #[test]
    fn the_second_receiver_plays_what_came_within_60_ms_of_the_smallest_delay(
        delays in proptest::collection::vec(proptest::option::weighted(0.9, 0_u64..200), 1..300),
    ) {
        let call = counted(BOTH, true, delays.iter().copied()).finish(FLOOR).unwrap();
        let other = call.other_receiver.unwrap();
        let least = delays.iter().flatten().min().copied().unwrap_or(0);
        let played = delays.iter().flatten().filter(|delay| **delay <= least + 60).count() as u64;
        prop_assert_eq!(other.played, played);
        prop_assert_eq!(other.played + other.late + call.missing, delays.len() as u64);
        let patient = call.patient_receiver.unwrap();
        let is_disputed = call.usable != other.usable || call.usable != patient.usable;
        prop_assert_eq!(call.receiver_matters.is_some(), is_disputed);
        prop_assert!((1.0..=4.5).contains(&other.mos.unwrap()) && other.r >= Some(0.0));
    }

    #[test]
    fn no_call_is_usable_that_its_gaps_bar_or_whose_score_is_below_the_floor(
        runs in proptest::collection::vec((1_usize..800, 1_usize..60), 0..6), is_concealed in any::<bool>(),
    ) {
        let played = |frames| core::iter::repeat_n(Some(30), frames);
        let frames = runs.iter().flat_map(|&(on, off)| played(on).chain(core::iter::repeat_n(None, off)));
        let terms = CallTerms { is_concealed, ..TERMS };
        let call = counted(terms, true, frames.chain(played(100))).finish(FLOOR).unwrap();
        let longest = runs.iter().map(|(_, off)| off).max().copied().unwrap_or(0);
        let is_barred = longest >= 50 || call.gaps_in_a_minute >= Some(2);
        prop_assert_eq!(call.usable, Some(call.score().unwrap() >= FLOOR && !is_barred));
    }
}
