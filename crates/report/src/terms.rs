//! What the words of the tables mean, for the foot of a table and for the page.

use core::cmp::Ordering;

use talkpath_measure::metrics::in_time;
use talkpath_measure::summary::{Basis, JudgedBy, Summary};

use crate::number::{UNKNOWN, counted};
use crate::tables::{CLUSTERS, DIFFERENCE, ECHOED, IN_TIME, MOS, WAIT};
use crate::verdict::{Verdict, rule};
use crate::view::{CellView, Condition, DelayKind, Metric};

/// Words and their meanings, in the order to show them.
pub(crate) type Terms = Vec<(&'static str, String)>;

/// `sim, 1 repetition, seed 1, percentiles exact`.
pub(crate) fn about_run(summary: &Summary) -> String {
    let n = summary.cells.iter().map(|cell| cell.n).max().unwrap_or(0);
    let first = summary.runs.iter().min_by_key(|run| (run.repetition, run.cell));
    let seed = match (first, n) {
        (None, _) => "no finished repetition".to_owned(),
        (Some(run), 0 | 1) => format!("1 repetition, seed {}", run.seed),
        (Some(run), n) => {
            format!("medians of {}, first seed {}", counted(n, "repetition"), run.seed)
        }
    };
    format!("{}, {seed}, percentiles {}", summary.arena, summary.percentiles)
}

/// The words of a comparison; `shown` is the text above, searched for figures that are not there.
pub(crate) fn of_comparison(
    summary: &Summary,
    judged: &[(&Condition<'_>, Option<Verdict>)],
    flow: &str,
    shown: &str,
) -> Terms {
    let mut terms = Terms::new();
    let conditions = || judged.iter().map(|(condition, _)| *condition);
    let cells = || conditions().flat_map(|condition| &condition.cells);
    for cell in cells() {
        let display = cell.transport(flow).display;
        if !display.about.is_empty() && terms.iter().all(|(name, _)| *name != display.name) {
            terms.push((display.name, display.about.to_owned()));
        }
    }
    let verdict = judged.iter().find_map(|(_, verdict)| verdict.as_ref());
    terms.extend(verdict.map(|verdict| figure(verdict, cells(), flow)));
    let text = "95 % interval of the mean difference to that transport, over pairs of repetitions with one seed (bootstrap)";
    terms.extend(shown.contains(DIFFERENCE).then(|| ("vs", text.to_owned())));
    let text =
        "the repetitions fall into two clusters (Hartigan's dip test, 1 %): the mean of each, and its share";
    terms.extend(shown.contains(CLUSTERS).then(|| (CLUSTERS, text.to_owned())));
    terms.extend(verdict.map(|verdict| ("ranking", rule(verdict.by))));
    let text = "median time in that link's queue";
    terms.extend(shown.contains(WAIT).then(|| ("wait", text.to_owned())));
    let is_call =
        cells().any(|cell| cell.resolve(flow).and_then(|name| cell.value(name, Metric::NotPlayed)).is_some());
    if is_call {
        let text =
            "median from the speaker's mouth to the listener's ear: a frame, the path, the receiver's wait";
        terms.push(("mouth to ear", text.to_owned()));
        terms.push((
            "late",
            "frames that came after their playout time (adaptive; Ramjee et al. 1994)".to_owned(),
        ));
    }
    let has = |kind| conditions().any(|condition| condition.delay_kind(flow) == kind);
    terms.extend(delay_terms(["round trip", "one way"], has));
    terms.extend(turn_round(shown));
    // A transfer's goodput is what it is judged by.
    let is_judged = |name: &str| terms.iter().any(|(known, _)| *known == name);
    let others: Terms = common().into_iter().filter(|(name, _)| !is_judged(name)).collect();
    terms.extend(others);
    let beside = conditions().any(|condition| !condition.other_flows(flow).is_empty());
    terms.extend(beside.then(resent));
    terms.extend(missing(summary, shown));
    terms
}

/// What the flow is judged by.
fn figure<'a>(
    verdict: &Verdict,
    mut cells: impl Iterator<Item = &'a CellView<'a>>,
    flow: &str,
) -> (&'static str, String) {
    let floor = verdict.floor;
    match verdict.by {
        JudgedBy::Mos => {
            let is_half = cells
                .any(|cell| cell.judged(flow).values().any(|judged| judged.basis == Basis::HalfRoundTrip));
            let half = if is_half { "; delay is half the round trip" } else { "" };
            let text = format!(
                "mean opinion score of the worse direction, 1 to 4.5 (ITU-T G.107), mean over the repetitions; usable \
                 from {floor}{half}"
            );
            (MOS, text)
        }
        JudgedBy::Goodput => {
            ("goodput", "payload bits delivered a second, mean over the repetitions".to_owned())
        }
        JudgedBy::InTime => {
            let timed =
                cells.filter_map(|cell| cell.flow(cell.resolve(flow)?).filter(|it| it.in_time.is_some()));
            let (name, text) = in_time_term(timed.map(|flow| flow.deadline_ms).collect());
            (name, format!("{text}; mean over the repetitions; usable from {} %", floor * 100.0))
        }
    }
}

/// The words of the table of every flow.
pub(crate) fn of_run(summary: &Summary, cells: &[CellView<'_>], shown: &str) -> Terms {
    let has = |kind| {
        let flows = cells.iter().filter_map(|cell| Some((cell, cell.run()?)));
        flows.flat_map(|(cell, run)| run.flows.keys().map(|flow| cell.delay_kind(flow))).any(|it| it == kind)
    };
    let flows = || cells.iter().filter_map(CellView::run).flat_map(|run| run.flows.values());
    let mut terms = Terms::new();
    let several = cells.iter().any(|cell| cell.cell.n > 1);
    let text = "mean opinion score of a call's worse direction, 1 to 4.5 (ITU-T G.107); usable from 3.1";
    let of = if several {
        "; the median over the repetitions, but their mean in an answer and beside it"
    } else {
        ""
    };
    terms.extend(flows().any(|flow| flow.call.is_some()).then(|| (MOS, format!("{text}{of}"))));
    let timed = flows().filter(|flow| flow.in_time.is_some() && flow.call.is_none());
    let deadlines: Vec<_> = timed.map(|flow| flow.deadline_ms).collect();
    terms.extend((!deadlines.is_empty()).then(|| in_time_term(deadlines)));
    terms.extend(delay_terms(["rtt", "owd"], has));
    terms.extend(turn_round(shown));
    terms.extend(common());
    terms.push(resent());
    let text = "how Foderaro (1995) would call a burst, by the mean delay";
    terms.extend(flows().any(|flow| flow.verdict.is_some()).then(|| ("in words", text.to_owned())));
    let text = "delivered while the receiver echoed a mark, which it does until the sender has answered (RFC 3168): more than \
                 were marked";
    terms.extend(shown.contains(ECHOED).then(|| ("echoed", text.to_owned())));
    if several {
        terms.push((
            "medians",
            "of each column over the repetitions; words, groups and links are repetition 0's".to_owned(),
        ));
    }
    terms.extend(missing(summary, shown));
    terms
}

fn delay_terms(
    names: [&'static str; 2],
    has: impl Fn(DelayKind) -> bool,
) -> impl Iterator<Item = (&'static str, String)> {
    let end = [(DelayKind::RoundTrip, "its echo was read"), (DelayKind::OneWay, "the far end read it")];
    let shown: Vec<_> = end.into_iter().zip(names).filter(|((kind, _), _)| has(*kind)).collect();
    shown.into_iter().map(|((_, end), name)| {
        (name, format!("delay from the moment a message was due until {end}; waiting in the sender counts"))
    })
}

/// Where a table has it.
fn turn_round(shown: &str) -> Option<(&'static str, String)> {
    let text = "what the echoing host took, from its kernel's receive stamp to the echo's hand-over; not in the round trip";
    shown.contains("turn-round").then(|| ("turn-round", text.to_owned()))
}

fn common() -> Terms {
    let jitter =
        "90th percentile of the unsigned IPDV |D(i) - D(i-1)| over consecutive delivered messages (RFC 3393)";
    vec![
        ("jitter", jitter.to_owned()),
        ("loss", "missing / sent, by sequence number; unfinished ones left out".to_owned()),
        ("goodput", "payload delivered a second".to_owned()),
    ]
}

/// With the deadlines of the table's flows, ms.
fn in_time_term(mut deadlines: Vec<Option<f64>>) -> (&'static str, String) {
    deadlines.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    deadlines.dedup();
    let of_a_conversation = |deadline: &Option<f64>| {
        let usual = [false, true].map(|is_echo| in_time::limit(is_echo).as_millis_f64());
        deadline.is_none_or(|deadline| usual.contains(&deadline))
    };
    let text = if deadlines.iter().all(of_a_conversation) {
        "of all that were due, those there within 150 ms, or back within 300 ms; a missing message is late (ITU-T G.114)"
            .to_owned()
    } else {
        let deadlines: Vec<_> = deadlines.iter().flatten().map(|deadline| format!("{deadline}")).collect();
        let deadlines = deadlines.join(" or ");
        format!(
            "of all that were due, those that came within their deadline of {deadlines} ms; a missing message is late"
        )
    };
    (IN_TIME, text)
}

fn resent() -> (&'static str, String) {
    (
        "resent",
        "data packets sent again / data packets sent: what the queue dropped or the wire lost".to_owned(),
    )
}

/// Why figures are missing, if any are.
fn missing(summary: &Summary, shown: &str) -> Terms {
    let mut terms = Terms::new();
    if shown.contains(UNKNOWN) {
        let text = "not known in this arena, or there is no such thing: no arrival, or a transport that never resends";
        terms.push((UNKNOWN, text.to_owned()));
    }
    if !summary.clock.trusted {
        terms.push(("clock", format!("one-way figures are left out: {}", summary.clock.why)));
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_in_time_says_the_deadline_that_it_counts_against() {
        for usual in [&[None][..], &[Some(150.0)], &[Some(150.0), Some(300.0)]] {
            assert!(in_time_term(usual.to_vec()).1.contains("150 ms, or back within 300 ms"), "{usual:?}");
        }
        let own = in_time_term(vec![Some(100.0), Some(300.0)]).1;
        assert!(own.contains("within their deadline of 100 or 300 ms"), "{own}");
    }
}
