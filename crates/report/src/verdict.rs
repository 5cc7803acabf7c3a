//! Which transport served a flow best, and why, in words with figures.
//!
//! # The rule
//!
//! 1. **In time first.** A message that comes later than a conversation bears is as useless as a missing one. The
//!    limit is 150 ms one way: ITU-T G.114 (05/2003) finds that below it nearly every application behaves as if there
//!    were no delay, and plans no network beyond 400 ms. A round trip has twice the 150 ms. (G.114 counts from mouth to
//!    ear; what is measured here is the network's and the transport's part of it.) The share in time is read off the
//!    figures at hand: the highest reported percentile within the limit, times the share that was not missing. The
//!    truth lies between that and the next percentile ("90 to 95 %"); the rule takes the lower end.
//! 2. Transports whose share is within one percentage point of the best stay in the contest.
//! 3. **Then the lower p90**, and among those whose p90 is alike **the lower p99**: delays are alike within 5 % or 1 ms
//!    of the lower one, or where with repetitions their 95 % intervals overlap. Where p99 is alike too there is no
//!    clear winner among these, and the sentence says so.
//!
//! The point, the 5 % and the 1 ms are chosen: differences below them would not outlive another seed.

use talkpath_measure::summary::Summary;

use crate::number::{list, ms, rate, share};
use crate::view::{CellView, Condition, DelayKind, Figure, Metric, Quantile, TransportView, conditions};

/// The outcome of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Winner {
    /// The best transport as the user wrote it: `tcp-nodelay`.
    pub transport: String,
    /// Its name for people: `TCP_NODELAY`.
    pub name: String,
    /// Names of those that are as good within the rule's tolerance; empty where the winner is clear.
    pub tied: Vec<String>,
    /// Who won and why, or that nobody did, with the figures.
    pub sentence: String,
}

/// ITU-T G.114 (05/2003); see the module's documentation.
const ONE_WAY_LIMIT_MS: f64 = 150.0;
/// Both ways.
const ROUND_TRIP_LIMIT_MS: f64 = 2.0 * ONE_WAY_LIMIT_MS;
/// Shares in time this close do not decide; chosen.
const SHARE_TOLERANCE: f64 = 0.01;
/// Delays this close do not decide; chosen.
const DELAY_TOLERANCE: f64 = 0.05;
/// Nor do delays this close, in milliseconds; chosen.
const DELAY_TOLERANCE_MS: f64 = 1.0;

/// More flows beside than these are told as a range: the table has them all.
const MOST_UPLOADS: usize = 3;

/// The rule in one sentence, for a table's foot.
pub(crate) const RULE: &str = "the larger share of messages in time wins (150 ms one way, 300 ms round trip, after ITU-T \
    G.114; a missing message is late; of a range the lower end counts); within 1 point of the best share, the lower p90; \
    among p90 that are alike (within 5 % or 1 ms, or 95 % intervals overlap), the lower p99; where that is alike too \
    there is no clear winner";

/// Which transport served `flow` best. `None` where there are not two to compare, or where more than the transport
/// was swept, so that each condition has its own winner (the tables name each).
pub fn winner(summary: &Summary, flow: &str) -> Option<Winner> {
    let conditions = conditions(summary, flow);
    match conditions.as_slice() {
        [only] => judge(only, flow).map(|verdict| verdict.winner),
        _ => None,
    }
}

impl Winner {
    /// Only the names: `UDP`, or `UDP or TCP, no clear winner`.
    pub(crate) fn short(&self) -> String {
        match self.tied.as_slice() {
            [] => self.name.clone(),
            tied => format!("{} or {}, no clear winner", self.name, tied.join(" or ")),
        }
    }
}

/// A winner, and where it stands among the condition's cells.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub winner: Winner,
    /// Indices into the condition's cells of the winner and those tied with it.
    pub best: Vec<usize>,
}

/// Which step of the rule named the winner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecidedBy {
    Share,
    P90,
    P99,
}

/// What the rule looks at.
struct Candidate {
    index: usize,
    view: TransportView,
    /// At least this share came in time ...
    in_time: f64,
    /// ... and at most this one.
    at_most: f64,
    p90: Option<Figure>,
    p99: Option<Figure>,
    loss: Option<f64>,
}

/// Applies the rule to cells that differ in the transport only.
pub(crate) fn judge(condition: &Condition<'_>, flow: &str) -> Option<Verdict> {
    if condition.cells.iter().any(CellView::is_of_several) {
        return None;
    }
    let kind = condition.delay_kind(flow);
    let cells = condition.cells.iter().enumerate();
    let mut candidates: Vec<Candidate> =
        cells.filter_map(|(i, cell)| candidate(i, cell, flow, kind)).collect();
    if candidates.len() < 2 {
        return None;
    }
    let best_share = candidates.iter().map(|c| c.in_time).fold(0.0, f64::max);
    let p90 = |candidate: &Candidate| candidate.p90.map_or(f64::INFINITY, |figure| figure.value);
    let in_contest = |candidate: &Candidate| candidate.in_time >= best_share - SHARE_TOLERANCE;
    candidates.sort_by(|a, b| {
        in_contest(b).cmp(&in_contest(a)).then(if in_contest(a) {
            p90(a).total_cmp(&p90(b))
        } else {
            b.in_time.total_cmp(&a.in_time)
        })
    });
    // Those alike in p90 stand first; among them p99 decides.
    let alike =
        candidates.iter().take_while(|c| in_contest(c) && close(&candidates[0], c, |c| c.p90)).count();
    let p99 = |candidate: &Candidate| candidate.p99.map_or(f64::INFINITY, |figure| figure.value);
    candidates[..alike.max(1)].sort_by(|a, b| p99(a).total_cmp(&p99(b)));
    let (first, others) = candidates.split_first()?;
    first.p90?;
    let rivals = &others[..alike.saturating_sub(1)];
    let tied: Vec<&Candidate> = rivals.iter().filter(|c| close(first, c, |c| c.p99)).collect();
    let decided = match (rivals.is_empty(), others.iter().any(|c| !in_contest(c))) {
        (false, _) => DecidedBy::P99,
        (true, true) => DecidedBy::Share,
        (true, false) => DecidedBy::P90,
    };
    let sentence = match tied.is_empty() {
        true => won(first, others, kind, decided),
        false => undecided(first, &tied, others, kind),
    } + &upload(condition, flow, &candidates);
    let best = [first.index].into_iter().chain(tied.iter().map(|c| c.index)).collect();
    let tied = tied.iter().map(|c| c.view.label.clone()).collect();
    let winner =
        Winner { transport: first.view.kind.clone(), name: first.view.label.clone(), tied, sentence };
    Some(Verdict { winner, best })
}

impl Condition<'_> {
    /// Round trip where any of the cells has one.
    pub(crate) fn delay_kind(&self, flow: &str) -> DelayKind {
        let kinds = self.cells.iter().filter_map(|cell| Some(cell.delay_kind(cell.resolve(flow)?)));
        kinds.min().unwrap_or(DelayKind::OneWay)
    }

    /// The flows beside `flow`, in the first cell's order.
    pub(crate) fn other_flows(&self, flow: &str) -> Vec<String> {
        let Some(run) = self.cells.first().and_then(|cell| cell.run) else { return Vec::new() };
        let copy =
            |name: &str| name.strip_prefix(flow).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        run.flows.keys().filter(|name| !copy(name)).cloned().collect()
    }
}

/// Reads what the rule needs; `None` where the flow is absent or its delay is not known although messages came.
fn candidate(index: usize, cell: &CellView<'_>, flow: &str, kind: DelayKind) -> Option<Candidate> {
    let name = cell.resolve(flow)?;
    let quantile = |quantile| cell.value(name, Metric::Delay(kind, quantile));
    let limit = kind.limit_ms();
    let steps = [
        (Quantile::Max, 1.0),
        (Quantile::P999, 0.999),
        (Quantile::P99, 0.99),
        (Quantile::P95, 0.95),
        (Quantile::P90, 0.90),
        (Quantile::P50, 0.50),
    ];
    let within = steps.iter().position(|(step, _)| quantile(*step).is_some_and(|delay| delay <= limit));
    let p90 = cell.figure(name, Metric::Delay(kind, Quantile::P90));
    let p99 = cell.figure(name, Metric::Delay(kind, Quantile::P99));
    let loss = cell.value(name, Metric::LossRate);
    let nothing_came = cell.flow(name).is_some_and(|flow| flow.sent > 0 && flow.received == 0);
    if p90.is_none() && !nothing_came {
        return None;
    }
    let delivered = 1.0 - loss.unwrap_or(0.0);
    let in_time = within.map_or(0.0, |at| steps[at].1 * delivered);
    let next = within.unwrap_or(steps.len()).saturating_sub(1);
    let at_most = if p90.is_some() { steps[next].1 * delivered } else { 0.0 };
    Some(Candidate { index, view: cell.transport(flow), in_time, at_most, p90, p99, loss })
}

impl DelayKind {
    fn limit_ms(self) -> f64 {
        limit_ms(self == Self::RoundTrip)
    }
}

/// Until when a message is in time, counted as its delay is.
pub(crate) fn limit_ms(round_trip: bool) -> f64 {
    if round_trip { ROUND_TRIP_LIMIT_MS } else { ONE_WAY_LIMIT_MS }
}

/// Whether two delays are too close to call.
fn close(a: &Candidate, b: &Candidate, figure: impl Fn(&Candidate) -> Option<Figure>) -> bool {
    let (Some(a), Some(b)) = (figure(a), figure(b)) else { return false };
    let apart = (a.value - b.value).abs();
    let overlap = match (a.ci95, b.ci95) {
        (Some(a), Some(b)) => a.0 <= b.1 && b.0 <= a.1,
        _ => false,
    };
    apart <= DELAY_TOLERANCE_MS || apart <= DELAY_TOLERANCE * a.value.min(b.value) || overlap
}

fn won(first: &Candidate, others: &[Candidate], kind: DelayKind, decided: DecidedBy) -> String {
    let shares = shares(first, others, kind);
    let p90 = format!("p90 {} {} against {}", kind.name(), delay(first), each(others, delay));
    let p99 = format!("p99 {} {} against {}", kind.name(), tail(first), each(others, tail));
    let (why, also) = match decided {
        DecidedBy::Share => (shares, p90),
        DecidedBy::P90 => (p90, shares),
        DecidedBy::P99 => (p99, format!("{p90}; {shares}")),
    };
    format!("{} wins: {why}; {also}; {}.", first.view.label, losses(first, others))
}

fn undecided(first: &Candidate, tied: &[&Candidate], others: &[Candidate], kind: DelayKind) -> String {
    let names: Vec<String> =
        [first].into_iter().chain(tied.iter().copied()).map(|c| c.view.label.clone()).collect();
    let intervals = first.p90.is_some_and(|figure| figure.ci95.is_some());
    let how = if intervals { ", or their 95 % intervals overlap" } else { "" };
    let alike = |text: fn(&Candidate) -> String| -> String {
        list(&[first].into_iter().chain(tied.iter().copied()).map(text).collect::<Vec<_>>())
    };
    let behind = others.iter().filter(|c| tied.iter().all(|tied| tied.index != c.index));
    let behind: Vec<String> =
        behind.map(|c| format!("{} ({} and {})", c.view.label, delay(c), tail(c))).collect();
    let behind = if behind.is_empty() { String::new() } else { format!("; behind them {}", list(&behind)) };
    format!(
        "No clear winner between {}: p90 {} {}, and p99 {}, are within 5 % or 1 ms{how}{behind}; {}; {}.",
        list(&names),
        kind.name(),
        alike(delay),
        alike(tail),
        shares(first, others, kind),
        losses(first, others)
    )
}

fn shares(first: &Candidate, others: &[Candidate], kind: DelayKind) -> String {
    let limit = ms(kind.limit_ms());
    let come = match kind {
        DelayKind::RoundTrip => "back within",
        DelayKind::OneWay => "there within",
    };
    let common = in_time(first);
    match exceptions(first, others, in_time) {
        Some(but) => format!("each has {common} of its messages {come} {limit}{but}"),
        None => format!("{common} of its messages {come} {limit} against {}", each(others, in_time)),
    }
}

/// The share in time as far as the percentiles tell it: `98.2 %`, `50 to 90 %`, `under 50 %`.
fn in_time(candidate: &Candidate) -> String {
    let (low, high) = (share(candidate.in_time), share(candidate.at_most));
    match candidate.in_time == 0.0 {
        _ if low == high => low,
        true => format!("under {high}"),
        false => format!("{} to {high}", low.trim_end_matches(" %")),
    }
}

fn losses(first: &Candidate, others: &[Candidate]) -> String {
    let text = |c: &Candidate| c.loss.map_or_else(|| "an unknown share".to_owned(), share);
    match exceptions(first, others, text) {
        Some(but) => format!("each lost {}{but}", text(first)),
        None => format!("lost {} against {}", text(first), each(others, text)),
    }
}

/// Who differs from what `first` and others say: nothing where all say the same, ` but TCP (1.2 %)` where fewer than half do
/// not; `None` where more do.
fn exceptions(
    first: &Candidate,
    others: &[Candidate],
    text: impl Fn(&Candidate) -> String,
) -> Option<String> {
    let common = text(first);
    let differing: Vec<String> = others
        .iter()
        .filter(|c| text(c) != common)
        .map(|c| format!("{} ({})", c.view.label, text(c)))
        .collect();
    match differing.len() {
        0 => Some(String::new()),
        count => (2 * count < others.len()).then(|| format!(" but {}", list(&differing))),
    }
}

/// What the flows beside it got, where there are any.
fn upload(condition: &Condition<'_>, flow: &str, ranked: &[Candidate]) -> String {
    let mut text = String::new();
    for other in condition.other_flows(flow).iter().take(2) {
        let goodput = |c: &Candidate| condition.cells[c.index].value(other, Metric::GoodputBps);
        let mut figures: Vec<(f64, &str)> =
            ranked.iter().filter_map(|c| Some((goodput(c)?, c.view.label.as_str()))).collect();
        let words = |(bps, label): &(f64, &str)| format!("{} beside {label}", rate(*bps));
        let told = if figures.len() > MOST_UPLOADS {
            figures.sort_by(|a, b| a.0.total_cmp(&b.0));
            format!("{} to {}", words(&figures[0]), words(&figures[figures.len() - 1]))
        } else {
            list(&figures.iter().map(words).collect::<Vec<_>>())
        };
        if !told.is_empty() {
            text.push_str(&format!(" {other}: {told}."));
        }
    }
    text
}

/// `420 ms (TCP) and 610 ms (UDP)`; once where all say the same.
fn each(candidates: &[Candidate], text: impl Fn(&Candidate) -> String) -> String {
    match candidates {
        [first, _, ..] if candidates.iter().all(|c| text(c) == text(first)) => {
            format!("{} (the others)", text(first))
        }
        _ => list(&candidates.iter().map(|c| format!("{} ({})", text(c), c.view.label)).collect::<Vec<_>>()),
    }
}

fn delay(candidate: &Candidate) -> String {
    in_words(candidate.p90)
}

fn tail(candidate: &Candidate) -> String {
    in_words(candidate.p99)
}

fn in_words(delay: Option<Figure>) -> String {
    delay.map_or_else(|| "unknown, as nothing arrived".to_owned(), |figure| ms(figure.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use talkpath_measure::summary::FlowSummary;

    /// Sets one transport's call in all its places of a summary of one repetition.
    fn set(summary: &mut Summary, cell: usize, change: impl Fn(&mut FlowSummary)) {
        change(summary.runs[cell].flows.get_mut("call").unwrap());
    }

    fn set_delay(summary: &mut Summary, cell: usize, p50: f64, p90: f64, rest: f64) {
        set(summary, cell, |flow| {
            let delay = flow.round_trip_delay_ms.as_mut().unwrap();
            (delay.p50, delay.p90, delay.p95) = (p50, p90, rest);
            (delay.p99, delay.p999, delay.max) = (rest, rest, rest);
            flow.loss_rate = Some(0.0);
        });
    }

    #[test]
    fn the_lower_p90_wins_among_equals_in_time() {
        let mut summary = fixture::summary(1);
        set_delay(&mut summary, 0, 40.0, 50.0, 60.0);
        set_delay(&mut summary, 1, 40.0, 120.0, 140.0);
        set_delay(&mut summary, 2, 40.0, 60.0, 70.0);
        let winner = winner(&summary, "call").unwrap();
        assert_eq!((winner.transport.as_str(), winner.name.as_str()), ("udp", "UDP"));
        assert!(winner.tied.is_empty());
        assert!(
            winner.sentence.starts_with(
                "UDP wins: p90 round trip 50.0 ms against 60.0 ms (TCP_NODELAY) and 120 ms (TCP); each has 100 % of its"
            ),
            "{}",
            winner.sentence
        );
    }

    #[test]
    fn a_fast_transport_that_loses_much_does_not_win() {
        let mut summary = fixture::summary(1);
        set_delay(&mut summary, 0, 40.0, 50.0, 60.0);
        set(&mut summary, 0, |flow| flow.loss_rate = Some(0.08));
        set_delay(&mut summary, 1, 40.0, 120.0, 400.0);
        set_delay(&mut summary, 2, 40.0, 110.0, 200.0);
        let winner = winner(&summary, "call").unwrap();
        assert_eq!(winner.transport, "tcp-nodelay");
        assert!(
            winner
                .sentence
                .contains("100 % of its messages back within 300 ms against 92 % (UDP) and 90 to 95 % (TCP)"),
            "{}",
            winner.sentence
        );
        assert!(winner.sentence.contains("lost 0 % against 8 % (UDP) and 0 % (TCP)"), "{}", winner.sentence);
    }

    #[test]
    fn delays_within_a_twentieth_are_named_as_a_tie() {
        let mut summary = fixture::summary(1);
        set_delay(&mut summary, 0, 40.0, 100.0, 120.0);
        set_delay(&mut summary, 1, 40.0, 240.0, 290.0);
        set_delay(&mut summary, 2, 40.0, 104.9, 120.0);
        let tie = winner(&summary, "call").unwrap();
        assert_eq!(tie.tied, ["TCP_NODELAY"]);
        assert!(tie.sentence.starts_with("No clear winner between UDP and TCP_NODELAY"), "{}", tie.sentence);
        set_delay(&mut summary, 2, 40.0, 106.0, 120.0);
        assert!(winner(&summary, "call").unwrap().tied.is_empty());
        for says in [
            "p90 round trip 100 ms and 105 ms, and p99 120 ms and 120 ms,",
            "behind them TCP (240 ms and 290 ms);",
        ] {
            assert!(tie.sentence.contains(says), "no {says} in: {}", tie.sentence);
        }
    }

    #[test]
    fn what_all_but_one_of_four_have_in_common_is_said_once() {
        let mut summary = fixture::summary(1);
        let sweep = [("flow.call.transport".to_owned(), "dccp-ccid3".into())];
        let mut run = summary.runs[2].clone();
        (run.cell, run.sweep) = (3, sweep.clone().into());
        run.flows.get_mut("call").unwrap().transport = "dccp-ccid3".to_owned();
        summary.runs.push(run);
        let mut spreads = summary.cells[2].clone();
        (spreads.cell, spreads.sweep) = (3, sweep.into());
        summary.cells.push(spreads);
        for (cell, p90) in [50.0, 150.0, 100.0, 120.0].into_iter().enumerate() {
            set_delay(&mut summary, cell, 40.0, p90, 290.0);
        }
        assert!(winner(&summary, "call").unwrap().sentence.contains("; each lost 0 %. upload: "));
        set(&mut summary, 3, |flow| flow.loss_rate = Some(0.002));
        let sentence = winner(&summary, "call").unwrap().sentence;
        assert!(sentence.contains("; each lost 0 % but DCCP CCID 3 (0.2 %). upload: "), "{sentence}");
        set(&mut summary, 1, |flow| flow.loss_rate = Some(0.004));
        let sentence = winner(&summary, "call").unwrap().sentence;
        assert!(sentence.contains("lost 0 % against 0 % (TCP_NODELAY), 0.2 % (DCCP CCID 3)"), "{sentence}");
        assert_eq!(sentence.matches(" beside ").count(), 2, "four uploads are told as a range: {sentence}");
    }

    #[test]
    fn among_alike_p90_the_lower_p99_decides() {
        let mut summary = fixture::summary(1);
        set_delay(&mut summary, 0, 40.0, 103.0, 120.0);
        set_delay(&mut summary, 1, 40.0, 200.0, 240.0);
        set_delay(&mut summary, 2, 40.0, 100.0, 180.0);
        for cell in 0..3 {
            set(&mut summary, cell, |flow| flow.loss_rate = Some(0.0));
        }
        let winner = winner(&summary, "call").unwrap();
        assert_eq!((winner.transport.as_str(), winner.tied.len()), ("udp", 0));
        assert!(winner.sentence.contains("wins: p99"), "{}", winner.sentence);
    }

    #[test]
    fn repetitions_whose_intervals_overlap_are_named_as_a_tie() {
        let mut summary = fixture::summary(5);
        let key = "round_trip_delay_ms.p90";
        for (cell, (median, low, high)) in
            [(100.0, 80.0, 125.0), (400.0, 380.0, 420.0), (130.0, 120.0, 140.0)].into_iter().enumerate()
        {
            let metrics = summary.cells[cell].flows.get_mut("call").unwrap();
            for quantile in ["p50", "p95", "p99", "p999", "max"] {
                metrics.get_mut(&format!("round_trip_delay_ms.{quantile}")).unwrap().median = median;
            }
            metrics.get_mut("loss_rate").unwrap().median = 0.0;
            for key in [key, "round_trip_delay_ms.p99"] {
                let spread = metrics.get_mut(key).unwrap();
                (spread.median, spread.ci95) = (median, Some((low, high)));
            }
        }
        assert_eq!(winner(&summary, "call").unwrap().tied, ["TCP_NODELAY"]);
        summary.cells[2].flows.get_mut("call").unwrap().get_mut(key).unwrap().ci95 = Some((126.0, 140.0));
        assert!(winner(&summary, "call").unwrap().tied.is_empty());
    }

    #[test]
    fn a_transport_through_which_nothing_came_ranks_last() {
        let mut summary = fixture::summary(1);
        set(&mut summary, 0, |flow| {
            (flow.received, flow.lost, flow.loss_rate) = (0, flow.sent, Some(1.0));
            flow.round_trip_delay_ms = None;
        });
        let winner = winner(&summary, "call").unwrap();
        assert_ne!(winner.transport, "udp");
        assert!(winner.sentence.contains("nothing arrived (UDP)"), "{}", winner.sentence);
    }

    #[test]
    fn one_transport_alone_wins_nothing() {
        let mut summary = fixture::summary(1);
        summary.cells.truncate(1);
        assert_eq!(winner(&summary, "call"), None);
        assert_eq!(winner(&fixture::summary(1), "no-such-flow"), None);
    }
}
