//! The answer with two receivers, and what gaps bar.

use talkpath_measure::summary::{OtherReceiver, RunSummary};
use talkpath_units::Seed;

use super::*;
use crate::Style;
use crate::fixture;
use crate::terminal::{comparison_table, run_table};

const OTHER: &str = "fixed 60 ms beyond the smallest delay";

/// What one transport's call came to with each receiver: the score, and the longest gap in ms.
type Heard = [(f64, f64); 2];

/// Eight repetitions of three transports, of which each has a call like this in each repetition.
fn heard(of: impl Fn(usize, u64) -> Heard) -> Summary {
    let mut summary = fixture::summary(8);
    for run in &mut summary.runs {
        let [(mos, gap), (other_mos, other_gap)] = of(run.cell as usize, run.repetition);
        let call = run.flows.get_mut("call").unwrap().call.as_mut().unwrap();
        (call.mos, call.longest_gap_ms) = (Some(mos), Some(gap));
        call.usable = Some(mos >= 3.1 && gap < 1000.0);
        call.other_receiver = Some(OtherReceiver {
            playout: OTHER.to_owned(),
            mos: Some(other_mos),
            longest_gap_ms: other_gap,
            usable: Some(other_mos >= 3.1 && other_gap < 1000.0),
            ..OtherReceiver::default()
        });
    }
    fixture::refresh(&mut summary);
    summary
}

/// The same as if the scenario had named one of the receivers.
fn with_one(mut summary: Summary, receiver: Receiver) -> Summary {
    for call in calls(&mut summary.runs) {
        let other = call.other_receiver.take().unwrap();
        if receiver == Receiver::Other {
            (call.mos, call.longest_gap_ms, call.playout) =
                (other.mos, Some(other.longest_gap_ms), other.playout);
        }
    }
    fixture::refresh(&mut summary);
    summary
}

fn calls(runs: &mut [RunSummary]) -> impl Iterator<Item = &mut Box<talkpath_measure::summary::CallSummary>> {
    runs.iter_mut().map(|run| run.flows.get_mut("call").unwrap().call.as_mut().unwrap())
}

fn answer(summary: &Summary) -> Answer {
    comparisons(summary).remove(0).answer
}

#[test]
fn receivers_that_disagree_on_usable_are_the_answer() {
    let summary = heard(|_, _| [(2.59, 0.0), (3.55, 0.0)]);
    let answer = answer(&summary);
    assert_eq!(answer.outcome, AnswerKind::DependsOnReceiver);
    let line = "The answer depends on the receiver. With the adaptive receiver: No transport makes this call usable: MOS 2.59 \
                at best. With a fixed buffer of 60 ms beyond the smallest delay: It makes no difference for this call which \
                of UDP, TCP and TCP_NODELAY carries it: MOS 3.55, 3.55 and 3.55.";
    assert_eq!(answer.line.replace(" while the upload runs", ""), line);
    let outcomes: Vec<_> = answer.receivers.iter().map(|it| (it.playout.as_str(), it.outcome)).collect();
    assert_eq!(outcomes, [("adaptive", AnswerKind::Unusable), (OTHER, AnswerKind::Alike)]);
    assert_eq!(answer.best, ["udp", "tcp", "tcp-nodelay"], "what is usable with one of them");
    let style = Style { width: 100, color: false, explain: true };
    let text = comparison_table(&summary, "call", &style);
    let udp = text.lines().find(|line| line.starts_with("UDP ")).unwrap();
    let cells: Vec<&str> = udp.split_whitespace().collect();
    assert_eq!(cells[1..6], ["2.59", "3.55", "no", "/", "yes"], "{text}");
    assert!(text.contains("adaptive   60 ms"), "{text}");
}

#[test]
fn receivers_that_disagree_on_the_best_are_the_answer_and_those_that_agree_are_silent() {
    let best_is_other =
        heard(|cell, _| [[(4.2, 0.0), (4.3, 0.0)], [(3.5, 0.0), (4.35, 0.0)], [(1.0, 0.0); 2]][cell]);
    let told = answer(&best_is_other);
    // UDP is best with both, and TCP is as good with one of them.
    assert_eq!((told.outcome, told.best), (AnswerKind::Distinct, vec!["udp".to_owned()]));
    assert!(told.why.contains("depends on the receiver. With a fixed buffer"), "{}", told.why);
    assert_eq!(told.receivers[1].best, ["udp", "tcp"]);
    let disjoint =
        heard(|cell, _| [[(4.2, 0.0), (3.5, 0.0)], [(3.5, 0.0), (4.2, 0.0)], [(1.0, 0.0); 2]][cell]);
    let told = answer(&disjoint);
    assert_eq!(
        (told.outcome, told.best),
        (AnswerKind::DependsOnReceiver, vec!["udp".to_owned(), "tcp".to_owned()])
    );
    let same = heard(|cell, _| [[(4.2, 0.0), (4.35, 0.0)], [(3.5, 0.0), (3.9, 0.0)], [(1.0, 0.0); 2]][cell]);
    let told = answer(&same);
    assert_eq!((told.outcome, told.receivers.len()), (AnswerKind::Distinct, 0));
    assert!(!told.line.contains("receiver"), "{}", told.line);
}

#[test]
fn gaps_make_the_better_score_the_worse_transport_and_are_the_reason_if_all_have_them() {
    let one = heard(|cell, _| [[(4.2, 1400.0); 2], [(3.8, 60.0); 2], [(2.0, 0.0); 2]][cell]);
    let told = answer(&one);
    assert_eq!((told.outcome, told.best), (AnswerKind::Distinct, vec!["tcp".to_owned()]));
    assert!(told.line.contains("4.20 (UDP, barred by gaps)"), "{}", told.line);
    let mut runs = heard(|_, _| [(4.2, 1400.0); 2]);
    for run in &mut runs.runs {
        run.flows.get_mut("call").unwrap().call.as_mut().unwrap().gaps_in_a_minute = Some(3 + run.cell);
    }
    let all = answer(&runs);
    assert_eq!(all.outcome, AnswerKind::Unusable);
    assert!(all.line.contains("MOS 4.20 (barred by gaps)"), "{}", all.line);
    assert!(
        all.why.contains(
            "Speech stops in 100 % of the repetitions over UDP, for 1400 ms at the longest, up to 3 times a minute for \
             200 ms or more: a gap"
        ),
        "{}",
        all.why
    );
}

#[test]
fn a_run_says_of_each_call_whether_its_receiver_decides() {
    let mut summary = heard(|_, _| [(1.0, 0.0), (4.35, 0.0)]);
    summary.runs.retain(|run| run.cell == 0);
    summary.runs.iter_mut().for_each(|run| run.sweep.clear());
    fixture::refresh(&mut summary);
    let text = run_table(&summary, &Style { width: 140, color: false, explain: true });
    let line = "call: whether it is usable depends on the receiver: MOS 1.00, not usable with the adaptive receiver; MOS 4.35 with";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("no / yes"), "{text}");
    let agreed =
        run_table(&with_one(summary, Receiver::Own), &Style { width: 140, color: false, explain: true });
    assert!(!agreed.contains("depends on the receiver"), "{agreed}");
}

/// Each answer against those that a scenario gets that names one of the two receivers.
#[test]
fn in_random_runs_the_answer_depends_on_the_receiver_where_the_two_receivers_answers_differ() {
    let mut draw = Seed::new(46).stream("receivers");
    let (mut differ, mut agree) = (0, 0);
    for _ in 0..120 {
        let means: Vec<[f64; 2]> =
            (0..3).map(|_| [2.2 + 2.2 * draw.unit(), 2.2 + 2.2 * draw.unit()]).collect();
        let is_alike = draw.unit() < 0.6;
        let spread = 0.3 * draw.unit();
        let gaps = [draw.unit(), draw.unit()].map(|it| if it < 0.2 { 1500.0 } else { 100.0 });
        let noise: Vec<f64> = (0..48).map(|_| spread * (draw.unit() - 0.5)).collect();
        let summary = heard(|cell, repetition| {
            let noise = &noise[2 * (8 * cell + repetition as usize)..];
            let mean = |which: usize| if is_alike { means[cell][0] } else { means[cell][which] };
            [0, 1].map(|which| ((mean(which) + noise[which]).clamp(1.0, 4.5), gaps[which]))
        });
        let [own, other] = [Receiver::Own, Receiver::Other].map(|it| answer(&with_one(summary.clone(), it)));
        let told = answer(&summary);
        let is_unusable = |it: &Answer| it.outcome == AnswerKind::Unusable;
        let is_same =
            is_unusable(&own) == is_unusable(&other) && (is_unusable(&own) || own.best == other.best);
        let all = format!("{} {}", told.line, told.why);
        assert_eq!(
            all.contains("depends on the receiver"),
            !is_same,
            "{all} | {} | {}",
            own.line,
            other.line
        );
        let share_one = own.best.iter().any(|kind| other.best.contains(kind));
        let is_open = is_unusable(&own) != is_unusable(&other) || !is_unusable(&own) && !share_one;
        assert_eq!(told.outcome == AnswerKind::DependsOnReceiver, is_open, "{all}");
        if !is_open {
            assert_eq!((&told.line, told.outcome, &told.best), (&own.line, own.outcome, &own.best));
        }
        if is_same {
            agree += 1;
        } else {
            differ += 1;
            assert!(all.contains(&own.line) && all.contains(&other.line), "{all}");
            let lines: Vec<_> = told.receivers.into_iter().map(|it| (it.outcome, it.best, it.line)).collect();
            let each = [own, other].map(|it| (it.outcome, it.best, it.line));
            assert_eq!(lines, each);
        }
    }
    assert!(differ >= 20 && agree >= 20, "{differ} differ and {agree} agree");
}
