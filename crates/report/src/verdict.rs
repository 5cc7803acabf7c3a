//! Which transport served a flow best, and why.
//!
//! # The rule
//!
//! Three steps; each takes out what is behind the step's best. Who is left after the last one is the winner.
//!
//! 1. **In time.** A message that comes later than a conversation bears is as useless as a missing one: the
//!    larger share of messages within 150 ms one way or 300 ms there and back (ITU-T G.114,
//!    `measure::metrics::in_time`). A workload without a clock has no such limit; there the share that
//!    arrived counts.
//! 2. **The lower p90.**
//! 3. **The lower p99.**
//!
//! *Behind* is what differs by more than one percentage point, or by more than 5 % and 1 ms, in the medians
//! over the repetitions, if the 95 % interval of the paired difference has one sign: pairs are repetitions of
//! one seed, so that what chance did to both transports does not count. With one repetition there is no
//! interval; the answer then says that it rests on one repetition. The point, the 5 % and the 1 ms are
//! chosen: nobody hears less. Who did better in the median than one who stays is not taken out either,
//! however sure the repetitions are of it.
//!
//! If several are left, they are *alike* if no step's figures differ by more than that, else *undecided*: the
//! repetitions do not decide.
//!
//! A flow with copies (`direction = "both"`, `count`) is judged by its worst copy, which the answer names. If
//! no transport has more than half of its messages in time, the answer begins with that, and no row stands
//! out in the table.

mod words;

use core::cmp::Ordering;
use std::collections::BTreeMap;

use talkpath_measure::metrics::in_time;
use talkpath_measure::summary::{Answer, AnswerKind, Comparison, Spread, Summary};

use self::words::Told;
use crate::view::{
    CellView, Condition, DelayKind, Metric, Quantile, RUN_KEY, TransportView, conditions, is_copy, main_flow,
    transport_key,
};

/// Shares this close do not decide; chosen.
const SHARE_TOLERANCE: f64 = 0.01;
/// If no transport gets more than this share of the messages there in time, none is called the best of
/// anything; chosen: a conversation that misses every second word is none.
const USABLE_SHARE: f64 = 0.5;
/// Delays this close do not decide; chosen.
const DELAY_TOLERANCE: f64 = 0.05;
/// Nor do delays this close, in milliseconds; chosen.
const DELAY_TOLERANCE_MS: f64 = 1.0;

/// The rule in one sentence, for a table's foot.
pub(crate) const RULE: &str = "the larger share in time wins, then the lower p90, then the lower p99; differences within 1 point \
    of a share, 5 % or 1 ms of a delay, or with a 95 % interval around zero do not decide";

/// The answers of `summary`: who served the flow whose transport is swept best, for each group of cells that
/// differ in that alone. Nothing if there are not two transports with figures.
pub fn comparisons(summary: &Summary) -> Vec<Comparison> {
    let flow = main_flow(summary);
    let own_keys = [transport_key(&flow), RUN_KEY.to_owned()];
    let conditions = conditions(summary, &flow);
    let judged = conditions.iter().filter_map(|condition| Some((condition, judge(condition, &flow)?)));
    judged
        .map(|(condition, verdict)| {
            let first = &condition.cells[0].cell.sweep;
            let common = first.iter().filter(|(key, _)| !own_keys.contains(key));
            let sweep: BTreeMap<_, _> = common.map(|(key, value)| (key.clone(), value.clone())).collect();
            let cells = condition.cells.iter().map(|cell| cell.cell.cell).collect();
            Comparison { flow: flow.clone(), sweep, cells, answer: verdict.answer }
        })
        .collect()
}

/// An answer, and where it stands among the condition's cells.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub answer: Answer,
    /// The same by name alone: `UDP`, or `UDP or TCP, no clear winner`.
    pub short: String,
    /// Index of the first named transport's cell, from which the differences of the others are stated.
    pub first: usize,
    /// Indices of the cells that stand out; none if nothing is usable.
    pub best: Vec<usize>,
}

/// One transport.
struct Candidate<'a> {
    index: usize,
    cell: &'a CellView<'a>,
    view: TransportView,
    /// The judged flow: the worst copy, if there are copies.
    flow: &'a str,
}

/// A step of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The share of messages in time.
    InTime,
    /// The share that arrived at all.
    Arrived,
    P90(DelayKind),
    P99(DelayKind),
}

/// A step that took somebody out, the nearest to its best first.
struct Cut<'a> {
    step: Step,
    out: Vec<Candidate<'a>>,
}

/// Applies the rule to cells that differ in the transport only.
pub(crate) fn judge(condition: &Condition<'_>, flow: &str) -> Option<Verdict> {
    if condition.cells.iter().any(CellView::is_of_several) {
        return None;
    }
    let kind = condition.delay_kind(flow);
    let is_timed = |cell: &CellView<'_>| cell.value(cell.resolve(flow)?, Metric::InTime);
    let share = match condition.cells.iter().any(|cell| is_timed(cell).is_some()) {
        true => Step::InTime,
        false => Step::Arrived,
    };
    let steps = [share, Step::P90(kind), Step::P99(kind)];
    let cells = condition.cells.iter().enumerate();
    let mut left: Vec<_> = cells.filter_map(|(at, cell)| candidate(at, cell, flow, kind)).collect();
    if left.len() < 2 {
        return None;
    }
    let is_usable = share == Step::Arrived || left.iter().any(|it| share.figure(it) > USABLE_SHARE);
    let (mut cuts, mut is_alike) = (Vec::new(), true);
    for step in steps {
        left.sort_by(|a, b| step.order(a, b));
        let (leader, others) = left.split_first()?;
        // Nobody goes who did better than one who stays.
        let stay = others.iter().rposition(|it| !step.is_behind(it, leader)).map_or(1, |last| last + 2);
        let out = left.split_off(stay);
        is_alike &= left.iter().all(|it| !step.differs(it, &left[0]));
        if !out.is_empty() {
            cuts.push(Cut { step, out });
        }
    }
    left.sort_by_key(|it| it.index);
    let repetitions = condition.cells.iter().map(|cell| cell.cell.n).max().unwrap_or(0);
    let outcome = match (is_usable, left.len()) {
        (false, _) => AnswerKind::Unusable,
        (true, _) if repetitions < 2 => AnswerKind::Undecided,
        (true, 1) => AnswerKind::Distinct,
        (true, _) if is_alike => AnswerKind::Alike,
        (true, _) => AnswerKind::Undecided,
    };
    let (left, cuts) = (&left, &cuts);
    let told = Told { condition, flow, kind, steps, left, cuts, is_usable, is_alike, repetitions };
    let names = left.iter().map(|it| it.view.kind.clone()).collect();
    Some(Verdict {
        short: told.short(),
        first: left[0].index,
        best: left.iter().map(|it| it.index).filter(|_| is_usable).collect(),
        answer: Answer { best: names, outcome, line: told.line() },
    })
}

/// `None` if the flow is absent, or its delay is not known although messages came.
fn candidate<'a>(index: usize, cell: &'a CellView<'a>, flow: &str, kind: DelayKind) -> Option<Candidate<'a>> {
    let name = cell.resolve(flow)?;
    let is_known = cell.value(name, Metric::Delay(kind, Quantile::P90)).is_some();
    let nothing_came = cell.flow(name).is_some_and(|flow| flow.sent > 0 && flow.received == 0);
    (is_known || nothing_came).then(|| Candidate { index, cell, view: cell.transport(flow), flow: name })
}

impl Step {
    /// What it reads; in all but the share in time less is better.
    fn metric(self) -> Metric {
        match self {
            Self::InTime => Metric::InTime,
            Self::Arrived => Metric::LossRate,
            Self::P90(kind) => Metric::Delay(kind, Quantile::P90),
            Self::P99(kind) => Metric::Delay(kind, Quantile::P99),
        }
    }

    /// A share from 0 to 1, or a delay in ms; if nothing came, 0 and infinity.
    fn figure(self, of: &Candidate<'_>) -> f64 {
        let value = of.cell.value(of.flow, self.metric());
        match self {
            Self::InTime => value.unwrap_or(0.0),
            Self::Arrived => 1.0 - value.unwrap_or(1.0),
            Self::P90(_) | Self::P99(_) => value.unwrap_or(f64::INFINITY),
        }
    }

    fn is_share(self) -> bool {
        matches!(self, Self::InTime | Self::Arrived)
    }

    /// The better one first.
    fn order(self, a: &Candidate<'_>, b: &Candidate<'_>) -> Ordering {
        let (a, b) = (self.figure(a), self.figure(b));
        if self.is_share() { b.total_cmp(&a) } else { a.total_cmp(&b) }
    }

    /// Whether the two differ by more than the tolerance.
    fn differs(self, a: &Candidate<'_>, b: &Candidate<'_>) -> bool {
        let (a, b) = (self.figure(a), self.figure(b));
        let apart = (a - b).abs();
        match self.is_share() {
            true => apart > SHARE_TOLERANCE,
            false => apart > DELAY_TOLERANCE_MS && apart > DELAY_TOLERANCE * a.min(b),
        }
    }

    /// By how much `leader` is better than `it`, over pairs of repetitions; `None` if no pair knows it.
    fn lead(self, it: &Candidate<'_>, leader: &Candidate<'_>) -> Option<Spread> {
        match self {
            Self::InTime => leader.cell.difference(leader.flow, it.cell, it.flow, self.metric()),
            _ => it.cell.difference(it.flow, leader.cell, leader.flow, self.metric()),
        }
    }

    /// Whether `it` is worse than `leader`, which is no worse in the medians, and the repetitions agree on
    /// it.
    fn is_behind(self, it: &Candidate<'_>, leader: &Candidate<'_>) -> bool {
        let agree = || match self.lead(it, leader).map(|lead| lead.ci95) {
            Some(Some((low, _))) => low > 0.0,
            // One repetition has no interval; if nothing arrived over one of the two, there is no pair.
            Some(None) | None => {
                it.cell.runs.len().min(leader.cell.runs.len()) < 2 || self.figure(it).is_infinite()
            }
        };
        self.differs(it, leader) && agree()
    }
}

impl Condition<'_> {
    /// Round trip if any of the cells has one.
    pub(crate) fn delay_kind(&self, flow: &str) -> DelayKind {
        let kinds = self.cells.iter().filter_map(|cell| Some(cell.delay_kind(cell.resolve(flow)?)));
        kinds.min().unwrap_or(DelayKind::OneWay)
    }

    /// The flows beside `flow`, in the first cell's order.
    pub(crate) fn other_flows(&self, flow: &str) -> Vec<String> {
        let Some(run) = self.cells.first().and_then(CellView::run) else { return Vec::new() };
        run.flows.keys().filter(|name| *name != flow && !is_copy(name, flow)).cloned().collect()
    }
}

/// Until when a message is in time, in ms.
pub(crate) fn limit_ms(round_trip: bool) -> f64 {
    in_time::limit(round_trip).as_millis_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use talkpath_measure::summary::FlowSummary;

    /// Changes one transport's call in every repetition.
    fn set(summary: &mut Summary, cell: u64, change: impl Fn(&mut FlowSummary, f64)) {
        for run in summary.runs.iter_mut().filter(|run| run.cell == cell) {
            let repetition = run.repetition as f64;
            change(run.flows.get_mut("call").unwrap(), repetition);
        }
        fixture::refresh(summary);
    }

    /// Gives one transport's call these figures in every repetition.
    fn set_all(summary: &mut Summary, cell: u64, in_time: f64, p90: f64, p99: f64) {
        set(summary, cell, |flow, _| {
            let delay = flow.round_trip_delay_ms.as_mut().unwrap();
            (delay.p90, delay.p99) = (p90, p99);
            (flow.in_time, flow.loss_rate) = (Some(in_time), Some(0.0));
        });
    }

    fn answer(summary: &Summary) -> Answer {
        comparisons(summary).remove(0).answer
    }

    #[test]
    fn the_lower_p90_wins_among_equals_in_time() {
        let mut summary = fixture::summary(3);
        set_all(&mut summary, 0, 1.0, 50.0, 60.0);
        set_all(&mut summary, 1, 0.999, 120.0, 140.0);
        set_all(&mut summary, 2, 1.0, 60.0, 70.0);
        let answer = answer(&summary);
        assert_eq!(
            (answer.best.as_slice(), answer.outcome),
            (["udp".to_owned()].as_slice(), AnswerKind::Distinct)
        );
        assert!(
            answer.line.starts_with(
                "UDP wins: p90 round trip 50.0 ms against 60.0 ms (TCP_NODELAY) and 120 ms (TCP). 100 % of its messages \
                 come back within 300 ms, 0 % are lost. upload: "
            ),
            "{}",
            answer.line
        );
    }

    #[test]
    fn a_fast_transport_that_loses_much_is_out_and_not_among_the_reasons() {
        let mut summary = fixture::summary(3);
        set_all(&mut summary, 0, 0.92, 44.0, 45.0);
        set_all(&mut summary, 1, 0.998, 100.0, 286.0);
        set_all(&mut summary, 2, 0.999, 100.0, 103.0);
        let answer = answer(&summary);
        assert!(
            answer.line.starts_with(
                "TCP_NODELAY wins: p99 round trip 103 ms against 286 ms (TCP). 99.9 % of its messages come back within 300 ms, \
                 0 % are lost. Out before that: UDP (92 % in time). "
            ),
            "{}",
            answer.line
        );
    }

    #[test]
    fn the_share_in_time_decides_where_it_took_the_last_one_out() {
        let mut summary = fixture::summary(3);
        set_all(&mut summary, 0, 0.92, 44.0, 45.0);
        set_all(&mut summary, 1, 0.952, 100.0, 286.0);
        set_all(&mut summary, 2, 0.9996, 100.0, 103.0);
        let line = answer(&summary).line;
        let says = "TCP_NODELAY wins: 99.96 % of its messages come back within 300 ms against 95.2 % (TCP) and 92 % (UDP). \
                    It lost 0 %.";
        assert!(line.starts_with(says), "{line}");
    }

    #[test]
    fn what_differs_by_less_than_the_tolerance_is_alike() {
        let mut summary = fixture::summary(3);
        set_all(&mut summary, 0, 1.0, 100.0, 120.0);
        set_all(&mut summary, 1, 1.0, 240.0, 290.0);
        set_all(&mut summary, 2, 0.995, 104.9, 120.0);
        let tie = answer(&summary);
        assert_eq!((tie.best.len(), tie.outcome), (2, AnswerKind::Alike));
        for says in [
            "No clear winner between UDP and TCP_NODELAY: they are within 1 point of each other's share and 5 % or 1 ms of",
            "p90 round trip 100 ms and 105 ms, p99 120 ms. 99.5 to 100 % of their messages come back within 300 ms",
            "% are lost. Out before that: TCP (p90 240 ms).",
        ] {
            assert!(tie.line.contains(says), "no {says} in: {}", tie.line);
        }
        set_all(&mut summary, 2, 0.995, 106.0, 120.0);
        assert_eq!(answer(&summary).outcome, AnswerKind::Distinct);
    }

    #[test]
    fn repetitions_that_disagree_name_no_winner_and_say_so() {
        let mut summary = fixture::summary(5);
        set_all(&mut summary, 0, 1.0, 100.0, 120.0);
        set_all(&mut summary, 1, 1.0, 400.0, 420.0);
        // Better by 20 ms twice and worse by 40 ms three times, in p90 and p99.
        set(&mut summary, 2, |flow, repetition| {
            let delay = flow.round_trip_delay_ms.as_mut().unwrap();
            let by = if repetition < 2.0 { -20.0 } else { 40.0 };
            (delay.p90, delay.p99) = (100.0 + by, 120.0 + by);
            flow.in_time = Some(1.0);
        });
        let tie = answer(&summary);
        assert_eq!((tie.best.len(), tie.outcome), (2, AnswerKind::Undecided));
        let says = "No clear winner between UDP and TCP_NODELAY: 5 repetitions do not tell them apart, more may \
                    (--repeat); p90 round trip 100 ms and 140 ms, p99 120 ms and 160 ms. 100 % of";
        assert!(tie.line.starts_with(says), "{}", tie.line);
        assert!(tie.line.contains(" Out before that: TCP (p90 400 ms). "), "{}", tie.line);
    }

    #[test]
    fn nobody_goes_who_did_better_than_one_who_stays() {
        let mut summary = fixture::summary(5);
        set_all(&mut summary, 0, 1.0, 100.0, 120.0);
        // Worse in each repetition, but by less than TCP_NODELAY is in the median of repetitions that
        // disagree.
        set_all(&mut summary, 1, 1.0, 110.0, 132.0);
        set(&mut summary, 2, |flow, repetition| {
            let delay = flow.round_trip_delay_ms.as_mut().unwrap();
            let by = if repetition < 2.0 { -20.0 } else { 40.0 };
            (delay.p90, delay.p99) = (100.0 + by, 120.0 + by);
            flow.in_time = Some(1.0);
        });
        let tie = answer(&summary);
        assert_eq!((tie.best.len(), tie.outcome), (3, AnswerKind::Undecided), "{}", tie.line);
        set_all(&mut summary, 2, 1.0, 100.0, 120.0);
        assert_eq!(answer(&summary).best, ["udp", "tcp-nodelay"]);
    }

    #[test]
    fn what_chance_does_to_both_transports_does_not_hide_their_difference() {
        let mut summary = fixture::summary(5);
        for (cell, more) in [(0, 0.0), (1, 50.0), (2, 10.0)] {
            set(&mut summary, cell, |flow, repetition| {
                let delay = flow.round_trip_delay_ms.as_mut().unwrap();
                // 100 to 200 ms by chance, and 8 to 12 ms between UDP and TCP_NODELAY in each repetition.
                delay.p90 = 100.0 + 25.0 * repetition + more * (0.8 + 0.1 * repetition);
                (flow.in_time, flow.loss_rate) = (Some(1.0), Some(0.0));
            });
        }
        let answer = answer(&summary);
        assert_eq!(answer.outcome, AnswerKind::Distinct);
        let says = "UDP wins: p90 round trip 150 ms against 160 ms (TCP_NODELAY) and 200 ms (TCP) (8.04 to 12.0 ms less than \
                    TCP_NODELAY, 95 %).";
        assert!(answer.line.starts_with(says), "{}", answer.line);
    }

    #[test]
    fn one_repetition_names_who_did_best_and_that_it_is_one() {
        let mut summary = fixture::summary(1);
        set_all(&mut summary, 0, 1.0, 50.0, 60.0);
        set_all(&mut summary, 1, 1.0, 120.0, 140.0);
        set_all(&mut summary, 2, 1.0, 60.0, 70.0);
        let answer = answer(&summary);
        assert_eq!((answer.best.len(), answer.outcome), (1, AnswerKind::Undecided));
        assert!(answer.line.starts_with("UDP did best: p90 round trip 50.0 ms against"), "{}", answer.line);
        assert!(answer.line.ends_with("This rests on 1 repetition: --repeat 20 shows what hangs on chance."));
    }

    #[test]
    fn where_half_the_messages_are_late_over_all_transports_nothing_is_usable_and_no_row_is_best() {
        let mut summary = fixture::summary(3);
        for (cell, in_time) in [(0, 0.5), (1, 0.02), (2, 0.31)] {
            set_all(&mut summary, cell, in_time, 480.0, 900.0);
        }
        let verdict = judge(&conditions(&summary, "call")[0], "call").unwrap();
        assert_eq!((verdict.best.len(), verdict.answer.outcome), (0, AnswerKind::Unusable));
        assert!(
            verdict.answer.line.starts_with(
                "Nothing here is usable for the flow call: over no transport does more than half of its messages come back within \
                 300 ms. UDP is the least bad: 50 % of its messages come back within 300 ms against 31 % (TCP_NODELAY) and 2 % (TCP)."
            ),
            "{}",
            verdict.answer.line
        );
        set_all(&mut summary, 0, 0.501, 480.0, 900.0);
        let verdict = judge(&conditions(&summary, "call")[0], "call").unwrap();
        assert!(verdict.answer.line.starts_with("UDP wins"), "{}", verdict.answer.line);
        assert_eq!(verdict.best, [0]);
    }

    #[test]
    fn without_a_clock_the_share_that_arrived_counts_and_nothing_is_called_unusable() {
        let mut summary = fixture::summary(3);
        for (cell, lost) in [(0, 0.6), (1, 0.0), (2, 0.0)] {
            set_all(&mut summary, cell, 0.0, 4_000.0 + cell as f64 * 300.0, 9_000.0);
            set(&mut summary, cell, |flow, _| (flow.in_time, flow.loss_rate) = (None, Some(lost)));
        }
        let answer = answer(&summary);
        assert!(
            answer.line.starts_with(
                "TCP wins: p90 round trip 4300 ms against 4600 ms (TCP_NODELAY). 100 % of its messages arrive. Out before \
                 that: UDP (40 % arrived)."
            ),
            "{}",
            answer.line
        );
    }

    #[test]
    fn a_transport_through_which_nothing_came_ranks_last() {
        let mut summary = fixture::summary(3);
        for (cell, p90) in [(1, 120.0), (2, 100.0)] {
            set_all(&mut summary, cell, 1.0, p90, 200.0);
        }
        set(&mut summary, 0, |flow, _| {
            (flow.received, flow.lost, flow.loss_rate, flow.in_time) = (0, flow.sent, Some(1.0), Some(0.0));
            flow.round_trip_delay_ms = None;
        });
        let answer = answer(&summary);
        assert_eq!(answer.best, ["tcp-nodelay"]);
        assert!(answer.line.contains("Out before that: UDP (0 % in time)"), "{}", answer.line);
    }

    #[test]
    fn the_copy_that_a_transport_is_judged_by_is_named() {
        let mut summary = fixture::summary(3);
        for run in &mut summary.runs {
            let down = run.flows.remove("call").unwrap();
            let mut up = down.clone();
            up.in_time = Some(0.1);
            let delay = up.round_trip_delay_ms.as_mut().unwrap();
            (delay.p90, delay.p99, delay.max) = (2510.0, 2522.0, 2530.0);
            run.flows.insert("call-down".to_owned(), down);
            run.flows.insert("call-up".to_owned(), up);
        }
        fixture::refresh(&mut summary);
        let line = answer(&summary).line;
        assert!(
            line.contains(". Judged by call-up, the worst of its copies. It makes no difference which of"),
            "{line}"
        );
        assert!(line.contains("p90 round trip 2510 ms, p99"), "{line}");
    }

    #[test]
    fn what_four_uploads_got_is_told_as_a_range() {
        let mut summary = fixture::summary(2);
        let sweep = BTreeMap::from([("flow.call.transport".to_owned(), "dccp-ccid3".into())]);
        let mut fourth: Vec<_> = summary.runs.iter().filter(|run| run.cell == 2).cloned().collect();
        for run in &mut fourth {
            (run.cell, run.sweep) = (3, sweep.clone());
            run.flows.get_mut("call").unwrap().transport = "dccp-ccid3".to_owned();
        }
        summary.runs.extend(fourth);
        fixture::refresh(&mut summary);
        let line = answer(&summary).line;
        assert_eq!(line.matches(" beside ").count(), 2, "{line}");
    }

    #[test]
    fn an_answer_stands_beside_its_cells_and_what_they_have_in_common() {
        let (summary, _) = fixture::sweep(2);
        let found = comparisons(&summary);
        assert_eq!(found.len(), 2);
        assert_eq!((found[1].flow.as_str(), found[1].cells.as_slice()), ("call", [3, 4, 5].as_slice()));
        assert_eq!(found[1].sweep, BTreeMap::from([("path.up.loss".to_owned(), 0.01.into())]));
    }

    #[test]
    fn one_transport_alone_wins_nothing() {
        let mut summary = fixture::summary(1);
        summary.cells.truncate(1);
        assert!(comparisons(&summary).is_empty());
        assert!(judge(&conditions(&fixture::summary(1), "no-such-flow")[0], "no-such-flow").is_none());
    }
}
