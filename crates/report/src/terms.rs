//! What the words of the tables mean, for the foot of a table and for the page.

use core::cmp::Ordering;
use std::collections::BTreeSet;

use talkpath_measure::metrics::in_time;
use talkpath_measure::ranking::Standing;
use talkpath_measure::ranking::interval::{MIN_RESAMPLED, Method};
use talkpath_measure::summary::{Basis, CallSummary, JudgedBy, Summary};

use crate::number::{UNKNOWN, counted};
use crate::sweep::Sweep;
use crate::tables::{CLUSTERS, DIFFERENCE, ECHOED, IN_TIME, MOS, WAIT};
use crate::verdict::{ConditionVerdict, rule};
use crate::view::{CellView, DelayKind, names};

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
    judged: &[ConditionVerdict<'_>],
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
    terms.extend(verdict.map(|verdict| figure((verdict.by, verdict.floor), cells(), flow)));
    let standings: Vec<&Standing> = judged
        .iter()
        .filter_map(|(_, verdict)| verdict.as_ref())
        .flat_map(|verdict| &verdict.ranking.standings)
        .collect();
    let by = verdict.map_or(JudgedBy::Mos, |verdict| verdict.by);
    terms.extend(shown.contains(DIFFERENCE).then(|| ("vs", difference(&standings, by))));
    let text = "the repetitions fall into two clusters (Hartigan's dip test, 1 %): the mean of each, and its share; \
                `usable` is a share, too, if the floor lies between them";
    terms.extend(shown.contains(CLUSTERS).then(|| (CLUSTERS, text.to_owned())));
    terms.extend(verdict.map(|verdict| ("ranking", rule(verdict.by))));
    let text = "median time in that link's queue";
    terms.extend(shown.contains(WAIT).then(|| ("wait", text.to_owned())));
    let calls: Vec<&CallSummary> =
        cells().filter_map(|cell| cell.flow(cell.resolve(flow)?)?.call.as_ref()).collect();
    if !calls.is_empty() {
        let text =
            "median from the speaker's mouth to the listener's ear: a frame, the path, the receiver's wait";
        terms.push(("mouth to ear", text.to_owned()));
        terms.push(("late", late(&calls)));
    }
    let has = |kind| conditions().any(|condition| condition.delay_kind(flow) == kind);
    terms.extend(delay_terms(["round trip", "one way"], has));
    terms.extend(turn_round(shown));
    // A transfer's goodput is what it is judged by.
    let is_judged = |name: &str| terms.iter().any(|(known, _)| *known == name);
    let others: Terms = common(has(DelayKind::RoundTrip), has(DelayKind::OneWay))
        .into_iter()
        .filter(|(name, _)| !is_judged(name))
        .collect();
    terms.extend(others);
    let beside = conditions().any(|condition| !condition.other_flows(flow).is_empty());
    terms.extend(beside.then(resent));
    // A difference off the scale has a dash, too, and its own explanation.
    let dashes = shown.matches(UNKNOWN).count();
    let is_unknown = dashes > standings.iter().filter(|standing| standing.is_off_scale).count();
    terms.extend(missing(summary, is_unknown));
    terms
}

/// The words of the table over a sweep.
pub(crate) fn of_sweep(sweep: &Sweep<'_>, judged: &[ConditionVerdict<'_>]) -> Terms {
    let mut terms = Terms::new();
    if sweep.is_compared() {
        let text = "of the transports; several if they serve alike or if the repetitions do not decide; the least bad if \
                    nothing is usable";
        terms.push(("best", text.to_owned()));
    }
    let cells = judged.iter().flat_map(|(condition, _)| &condition.cells);
    terms.push(figure((sweep.by, sweep.floor), cells, sweep.flow));
    terms.extend(sweep.is_compared().then(|| ("ranking", rule(sweep.by))));
    let outcomes: BTreeSet<&str> = sweep.combinations.iter().map(|it| it.outcome().word()).collect();
    let meanings = OUTCOMES.iter().filter(|(word, _)| sweep.is_compared() && outcomes.contains(word));
    let meanings: Vec<String> = meanings.map(|(word, meaning)| format!("{word}: {meaning}")).collect();
    terms.extend((!meanings.is_empty()).then(|| ("outcome", meanings.join("; "))));
    terms
}

/// What the words of a sweep's outcomes mean.
const OUTCOMES: [(&str, &str); 4] = [
    ("distinct", "one is best, by the 95 % intervals of the differences"),
    ("alike", "take any of the named"),
    ("undecided", "more repetitions may decide"),
    ("unusable", "even the best is not usable"),
];

/// The intervals of the differences, and how their ends were found.
fn difference(standings: &[&Standing], by: JudgedBy) -> String {
    let methods: BTreeSet<Method> = standings.iter().filter_map(|standing| standing.method).collect();
    let cut = match by {
        JudgedBy::Mos => ", cut at the scale's width of 3.5",
        JudgedBy::InTime => ", cut at 100 points",
        JudgedBy::Goodput => "",
    };
    let student = format!("Student's t, because there are fewer than {MIN_RESAMPLED} pairs{cut}");
    let has = |method| methods.contains(&method);
    let how = match (has(Method::Bootstrap), has(Method::Student)) {
        (true, true) => {
            format!(" (bootstrap; where there are fewer than {MIN_RESAMPLED} pairs Student's t{cut})")
        }
        (true, false) => " (bootstrap)".to_owned(),
        (false, true) => format!(" ({student})"),
        // All pairs are the same: there is nothing to estimate.
        (false, false) => String::new(),
    };
    let off_scale = match standings.iter().any(|standing| standing.is_off_scale) {
        true => format!("; {UNKNOWN} if both are at the scale's lower end, which cannot distinguish them"),
        false => String::new(),
    };
    format!(
        "95 % interval of the mean difference, this row minus that transport, over pairs of repetitions with one \
         seed{how}{off_scale}"
    )
}

/// Which frames are late or missing, and of which direction.
fn late(calls: &[&CallSummary]) -> String {
    // Where the clocks are not trusted, an echo flow's frame and its echo count as one.
    let is_both = calls.iter().any(|call| call.basis == Basis::HalfRoundTrip && call.direction.is_none());
    let way = if is_both { "lost in either direction" } else { "missing, in the worse direction alone" };
    let is_adaptive = calls.iter().any(|call| call.playout == "adaptive");
    let rule = if is_adaptive { " (adaptive: Ramjee et al. 1994)" } else { "" };
    format!("frames that came after their playout time{rule} or are {way}")
}

/// What the flow is judged by.
fn figure<'a>(
    (by, floor): (JudgedBy, f64),
    mut cells: impl Iterator<Item = &'a CellView<'a>>,
    flow: &str,
) -> (&'static str, String) {
    match by {
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
        flows.flat_map(|(cell, run)| names(run).map(|flow| cell.delay_kind(flow))).any(|it| it == kind)
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
    terms.extend(common(has(DelayKind::RoundTrip), has(DelayKind::OneWay)));
    terms.push(resent());
    let text = "how Foderaro (1995) would call a burst, by the mean delay";
    let of = if several { "; repetition 0's" } else { "" };
    terms.extend(flows().any(|flow| flow.verdict.is_some()).then(|| ("in words", format!("{text}{of}"))));
    let text = "delivered while the receiver echoed a mark, which it does until the sender has answered (RFC 3168): more than \
                 were marked";
    terms.extend(shown.contains(ECHOED).then(|| ("echoed", text.to_owned())));
    if several {
        let text = "figures of flows are medians over the repetitions; the tables of groups and links are repetition 0's";
        terms.push(("medians", text.to_owned()));
    }
    terms.extend(missing(summary, shown.contains(UNKNOWN)));
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

fn common(has_round_trip: bool, has_one_way: bool) -> Terms {
    let way = match (has_round_trip, has_one_way) {
        (true, false) => "missing / sent, over the round trip,",
        (true, true) => "missing / sent, over the round trip where there is an echo,",
        (false, _) => "missing / sent, one way,",
    };
    let jitter =
        "90th percentile of the unsigned IPDV |D(i) - D(i-1)| over consecutive delivered messages (RFC 3393)";
    vec![
        ("jitter", jitter.to_owned()),
        ("loss", format!("{way} by sequence number; unfinished ones left out")),
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

/// Why figures are missing, if any are, and how well two clocks are known.
fn missing(summary: &Summary, is_unknown: bool) -> Terms {
    let mut terms = Terms::new();
    if is_unknown {
        let text = "not known in this arena, or there is no such thing: no arrival, or a transport that never resends";
        terms.push((UNKNOWN, text.to_owned()));
    }
    let clock = &summary.clock;
    if !clock.trusted {
        terms.push(("clock", format!("one-way figures are left out: {}", clock.why)));
    } else if clock.uncertainty_ms.is_some_and(|bound| bound > 0.0) {
        // Two clocks.
        terms.push(("clock", clock.why.clone()));
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
