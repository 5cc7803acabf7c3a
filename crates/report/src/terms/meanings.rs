//! The meanings of single words of the tables.
//!
//! A *floor* is the least judged figure with which a flow is usable. An *interval* is a 95 % confidence
//! interval.

use std::collections::BTreeSet;

use talkpath_measure::judge::Receiver;
use talkpath_measure::ranking::Standing;
use talkpath_measure::ranking::interval::{MIN_RESAMPLED, Method};
use talkpath_measure::summary::{Basis, CallSummary, FlowSummary, JudgedBy, Summary};

use crate::metric::DelayKind;
use crate::number::UNKNOWN;
use crate::plot::scale::tick_label;
use crate::rated::outside_meaning;
use crate::receiver::{named_receiver, wait_text};
use crate::term::{Term, Terms, Topic};
use crate::verdict::{figure_style, limit_ms};
use crate::view::CellView;

/// A meaning names at most 3 floors. We chose 3 because more floors are a list, which the conditions have.
const MAX_FLOORS: usize = 3;

/// The rule that makes a call unusable because of its gaps (`measure::metrics::gaps`).
pub(super) const GAP_RULE: &str = " with no gap of 1 s, or two of 200 ms a minute";

/// Explains the figure that `flow` is judged by. `floors` has the floor of each of its conditions.
pub(super) fn judged_figure<'a>(
    by: JudgedBy,
    floors: impl Iterator<Item = f64>,
    mut cells: impl Iterator<Item = &'a CellView<'a>>,
    flow: &str,
) -> Term {
    let term = match by {
        JudgedBy::Mos => {
            let is_half = cells.any(|cell| {
                cell.judged_figures(flow).values().any(|judged| judged.basis == Basis::HalfRoundTrip)
            });
            let (usable, half) = (usable_from(by, floors), half_round_trip(is_half));
            let meaning = format!(
                "mean opinion score of the worse direction, 1 to 4.5 (ITU-T G.107), mean over the \
                 repetitions{usable}{half}"
            );
            Term::new("MOS", meaning)
        }
        JudgedBy::Heard => Term::new(
            "heard",
            "share of what is heard in the worse direction that was not concealed, mean over the repetitions",
        ),
        JudgedBy::Goodput => {
            Term::new("goodput", "payload bits delivered a second, mean over the repetitions")
        }
        JudgedBy::InTime => {
            let flows = cells.filter_map(|cell| cell.flow(cell.resolve(flow)?));
            let meaning = in_time(flows.filter(|flow| flow.in_time.is_some()));
            Term::new("in time", format!("{meaning}; mean over the repetitions{}", usable_from(by, floors)))
        }
    };
    term.about(Topic::JudgedFigure)
}

/// The term of the column that says whether a call is usable.
pub(crate) fn usable() -> Term {
    let meaning = "whether a repetition's score reaches the floor and no gaps bar the call, for each direction by itself; a share is \
                   that of the repetitions";
    Term::new("usable", meaning)
}

/// Writes the floors as the end of a meaning: `; usable from 3.1 or 3.6`. Empty if there are none, or too
/// many to name.
pub(super) fn usable_from(by: JudgedBy, floors: impl Iterator<Item = f64>) -> String {
    let mut floors: Vec<f64> = floors.collect();
    floors.sort_by(f64::total_cmp);
    floors.dedup();
    if floors.is_empty() || floors.len() > MAX_FLOORS {
        return String::new();
    }
    let floors: Vec<String> =
        floors.into_iter().map(|floor| tick_label(floor * figure_style(by).scale.factor)).collect();
    let (unit, gaps) = match by {
        JudgedBy::Mos => ("", GAP_RULE),
        JudgedBy::InTime => (" %", ""),
        JudgedBy::Heard | JudgedBy::Goodput => ("", ""),
    };
    format!("; usable from {}{unit}{gaps}", floors.join(" or "))
}

/// Writes that the delay of a score is half the round trip, as the end of a meaning. Empty if it is not.
pub(super) const fn half_round_trip(is_half: bool) -> &'static str {
    if is_half { "; delay is half the round trip" } else { "" }
}

/// Explains the share in time, with the deadlines of `flows`.
pub(super) fn in_time<'a>(flows: impl Iterator<Item = &'a FlowSummary>) -> String {
    let mut deadlines: Vec<f64> = Vec::new();
    let mut has_usual_deadlines = true;
    for flow in flows {
        // A message with an echo is in time if its echo is back before the deadline.
        let kind = if flow.lost_return.is_some() { DelayKind::RoundTrip } else { DelayKind::OneWay };
        if let Some(deadline) = flow.deadline_ms {
            has_usual_deadlines &= deadline.total_cmp(&limit_ms(kind)).is_eq();
            deadlines.push(deadline);
        }
    }
    if has_usual_deadlines {
        return "of all that were due, those there within 150 ms, or back within 300 ms; a missing message is late (ITU-T G.114)"
            .to_owned();
    }
    deadlines.sort_by(f64::total_cmp);
    deadlines.dedup();
    let deadlines: Vec<String> = deadlines.iter().map(f64::to_string).collect();
    let deadlines = deadlines.join(" or ");
    format!(
        "of all that were due, those that came within their deadline of {deadlines} ms; a missing message is late"
    )
}

/// Explains the intervals of the differences, and the method by which they were found.
pub(super) fn difference(standings: &[&Standing], by: JudgedBy) -> Term {
    let methods: BTreeSet<Method> = standings.iter().filter_map(|standing| standing.method).collect();
    let cut = match by {
        JudgedBy::Mos => ", cut at the scale's width of 3.5",
        JudgedBy::InTime | JudgedBy::Heard => ", cut at 100 points",
        JudgedBy::Goodput => "",
    };
    let student = format!("Student's t, because there are fewer than {MIN_RESAMPLED} pairs{cut}");
    let is_used = |method| methods.contains(&method);
    let method_note = match (is_used(Method::Bootstrap), is_used(Method::Student)) {
        (true, true) => {
            format!(" (bootstrap; where there are fewer than {MIN_RESAMPLED} pairs Student's t{cut})")
        }
        (true, false) => " (bootstrap)".to_owned(),
        (false, true) => format!(" ({student})"),
        // All pairs are equal, so there is nothing to estimate.
        (false, false) => String::new(),
    };
    let off_scale = if standings.iter().any(|standing| standing.is_off_scale) {
        format!("; {UNKNOWN} if both are at the scale's lower end, which cannot distinguish them")
    } else {
        String::new()
    };
    let meaning = format!(
        "95 % interval of the mean difference, this row minus that transport, over pairs of repetitions with one \
         seed{method_note}{off_scale}"
    );
    Term::new("vs", meaning).about(Topic::JudgedFigure)
}

/// Explains the late and missing frames of a call, and their direction.
pub(super) fn late(calls: &[&CallSummary]) -> Term {
    // If the clocks are not trusted, a frame and its echo count as one frame.
    let has_both_directions =
        calls.iter().any(|call| call.basis == Basis::HalfRoundTrip && call.direction.is_none());
    let missing = if has_both_directions {
        "lost in either direction"
    } else {
        "missing, in the worse direction alone"
    };
    // Summaries of earlier versions have the receiver of 1994 by this name.
    let is_adaptive = calls.iter().any(|call| call.stretched.is_some());
    let meaning = if is_adaptive {
        "speech that was made up, because its frame was missing or not there yet, in the worse direction alone; a late \
         frame is played all the same, later"
            .to_owned()
    } else {
        let is_ramjee = calls.iter().any(|call| matches!(call.playout.as_str(), "adaptive" | "ramjee"));
        let rule = if is_ramjee { " (Ramjee et al. 1994)" } else { "" };
        format!("frames that came after their playout time{rule} or are {missing}")
    };
    Term::new("late", meaning).about(Topic::Playout)
}

/// Says how far the calls `flow` of these cells are outside the table of the E-model. Each call is named by
/// its transport. Returns `None` if no call is outside.
pub(super) fn outside_the_model<'a>(
    cells: impl Iterator<Item = &'a CellView<'a>>,
    flow: &str,
) -> Option<Term> {
    let meaning = outside_meaning(cells.flat_map(|cell| {
        let name = cell.resolve(flow).unwrap_or(flow);
        let calls = cell.runs.iter().filter_map(|run| run.flows.get(name)?.call.as_deref());
        calls.map(|call| (cell.transport(flow).label, call))
    }));
    meaning.map(outside)
}

/// The finding about calls outside the table of the E-model.
pub(super) fn outside(meaning: String) -> Term {
    Term::finding("outside", meaning).about(Topic::Receiver)
}

/// Explains the second receiver of a call. Returns `None` if the call has one receiver.
pub(super) fn second_receiver(call: &CallSummary) -> Option<Term> {
    let other = call.other_receiver.as_ref()?;
    let waits = match &call.patient_receiver {
        Some(_) => format!(" and of {}", wait_text(Receiver::Patient)),
        None => String::new(),
    };
    let meaning = format!(
        "the same call with {}{waits}, which is judged beside the adaptive receiver: `usable` has both where they differ, all \
         else is with the adaptive one",
        named_receiver(&other.playout)
    );
    Some(Term::new(wait_text(Receiver::Other), meaning).about(Topic::Receiver))
}

/// Explains a delay of this kind. `name` is its name in the tables. `has_program` says whether a program of
/// the user sends some of the packets.
pub(crate) fn delay(name: &'static str, kind: DelayKind, has_program: bool) -> Term {
    let end = match kind {
        DelayKind::RoundTrip => "its echo was read",
        DelayKind::OneWay => "the far end read it",
    };
    let mut meaning =
        format!("delay from the moment a message was due until {end}; waiting in the sender counts");
    if has_program {
        meaning.push_str("; of a program's packet from the path's begin to its end");
    }
    Term::new(name, meaning).about(Topic::Delay)
}

/// Explains the share of lost messages. The flows have a round trip, a delay one way, or both kinds occur.
pub(super) fn loss(has_round_trip: bool, has_one_way: bool) -> Term {
    let trip = match (has_round_trip, has_one_way) {
        (true, false) => "lost / due, over the round trip,",
        (true, true) => "lost / due, over the round trip where there is an echo,",
        (false, _) => "lost / due, one way,",
    };
    let meaning = format!("{trip} by sequence number, sent or not; unfinished ones left out");
    Term::new("loss", meaning).about(Topic::Loss)
}

/// Explains messages that were on their way at the end.
pub(crate) fn unfinished() -> Term {
    let meaning =
        "of the messages sent, those still queued or in flight at the end: no share of losses has them";
    Term::new("unfinished", meaning).about(Topic::Unfinished)
}

/// Explains a dash, if the tables have one, and says how well the clocks are known.
pub(super) fn missing(summary: &Summary, is_unknown: bool) -> Terms {
    let mut terms = Terms::new();
    if is_unknown {
        let meaning = "not known in this arena, or there is no such thing: no arrival, or a transport that never resends";
        terms.push(Term::new(UNKNOWN, meaning).about(Topic::Reading));
    }
    let clock = &summary.clock;
    if !clock.trusted {
        let meaning = format!("one-way figures are left out: {}", clock.why);
        terms.push(Term::finding("clock", meaning).about(Topic::Reading));
    } else if clock.uncertainty_ms.is_some_and(|bound| bound > 0.0) {
        // An uncertainty above zero means two clocks.
        terms.push(Term::finding("clock", clock.why.clone()).about(Topic::Reading));
    }
    terms
}

/// Says which figures are means over the repetitions and which are medians (`measure::statistic`). `more` is
/// added to the meaning.
pub(super) fn repetitions(more: &str) -> Term {
    let meaning = format!(
        "scores, shares, counts and goodputs are means over the repetitions; times, windows and queues are medians{more}"
    );
    Term::finding("repetitions", meaning).about(Topic::Reading)
}
