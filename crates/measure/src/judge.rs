//! What a flow is judged by in one repetition, and what that figure rests on.
//!
//! ```text
//!  voice                 MOS             of the playout and the E-model (`metrics/call.rs`)
//!  any other on a clock  share in time   counted (`metrics/in_time.rs`)
//!  bulk, file            goodput
//!  burst, no deadline    nothing
//! ```
//!
//! Two directions of one flow (`direction = "both"`) are one conversation, which is as good as its worse
//! direction. Of several copies (`count`) all are judged: the median and the worst. A flow whose figure is
//! not known, or that has nothing to judge, is not judged: `None`.
//!
//! A call also has to pass the gap rule (`metrics/gaps.rs`): one that the rule bars is not usable, whatever
//! its score is.

use std::collections::BTreeMap;

use crate::figures::Scale;
use crate::metrics::confidence::Confidence;
use crate::summary::{Basis, CallSummary, Direction, FlowSummary, JudgedBy, JudgedFigure, RunSummary};

/// The least MOS of a usable call, unless the scenario's `floor` says otherwise: where R is 60, below which
/// nearly all users are dissatisfied (ITU-T G.109 (09/1999), Table 1: MOS 3.1).
pub const CALL_FLOOR: f64 = 3.1;

/// The least share of messages in time that is usable, unless the scenario's `floor` says otherwise. Chosen:
/// a game that misses one update in twenty.
pub const IN_TIME_FLOOR: f64 = 0.95;

/// With which receiver a call is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The one that the scenario names, or the adaptive one.
    Own,
    /// The second one, if the scenario names none.
    Other,
}

/// What `flow`, a flow of `run` or the name that its copies share, is judged by.
pub fn judge(run: &RunSummary, flow: &str) -> Option<JudgedFigure> {
    judge_with(run, flow, Receiver::Own)
}

/// The same with this receiver; `None` of the second one if there is none.
pub fn judge_with(run: &RunSummary, flow: &str, receiver: Receiver) -> Option<JudgedFigure> {
    match run.flows.get_key_value(flow) {
        Some((name, figures)) => judge_flow_with(name, figures, receiver),
        None => {
            let group = run.groups.get(flow)?;
            match receiver {
                Receiver::Own => group.judged.clone(),
                Receiver::Other => group.judged_with_other_receiver.clone(),
            }
        }
    }
}

/// What one flow or one copy, named `name`, is judged by.
pub fn judge_flow(name: &str, flow: &FlowSummary) -> Option<JudgedFigure> {
    judge_flow_with(name, flow, Receiver::Own)
}

/// The same with this receiver; `None` of the second one if there is none.
fn judge_flow_with(name: &str, flow: &FlowSummary, receiver: Receiver) -> Option<JudgedFigure> {
    let by = |by, figure, floor: f64, basis, direction| JudgedFigure {
        by,
        median: figure,
        worst: figure,
        worst_flow: name.to_owned(),
        floor: flow.floor.unwrap_or(floor),
        basis,
        direction,
        barred: false,
        longest_gap_ms: None,
    };
    if let Some(call) = flow.call.as_deref() {
        let CallSummary { mos, basis, direction, longest_gap_ms, .. } = *call;
        return match receiver {
            Receiver::Own => {
                let judged = by(JudgedBy::Mos, mos, CALL_FLOOR, basis, direction);
                Some(JudgedFigure { barred: call.is_barred(), longest_gap_ms, ..judged })
            }
            Receiver::Other => {
                let other = call.other_receiver.as_ref()?;
                let judged = by(JudgedBy::Mos, other.mos, CALL_FLOOR, basis, other.direction);
                let longest_gap_ms = Some(other.longest_gap_ms);
                Some(JudgedFigure { barred: other.is_barred(), longest_gap_ms, ..judged })
            }
        };
    }
    if receiver == Receiver::Other {
        return None;
    }
    // A transfer is neither on a clock nor a burst, which has a verdict in words.
    if let (None, None, None, Some(goodput)) =
        (flow.in_time, flow.deadline_ms, &flow.verdict, flow.goodput_bps)
    {
        return Some(by(JudgedBy::Goodput, goodput, 0.0, Basis::OneWay, Some(Direction::Forward)));
    }
    let share = flow.in_time?;
    // Of an echo flow the losses of the way back are known, of any other there are none.
    let (basis, direction) = match flow.lost_return {
        Some(_) => (Basis::RoundTrip, None),
        None => (Basis::OneWay, Some(Direction::Forward)),
    };
    Some(by(JudgedBy::InTime, share, IN_TIME_FLOOR, basis, direction))
}

/// What the flow `group` with these copies is judged by: `NAME-1`, `NAME-up`, `NAME-1-up` and so on. `None`
/// also where one copy's figure is unknown though it had messages to send.
pub fn judge_copies<'a>(
    group: &str,
    copies: impl IntoIterator<Item = (&'a str, &'a FlowSummary)>,
    receiver: Receiver,
) -> Option<JudgedFigure> {
    let mut talks: BTreeMap<&str, JudgedFigure> = BTreeMap::new();
    let (mut barred, mut longest_gap_ms) = (false, None);
    for (name, flow) in copies {
        if flow.sent + flow.refused == 0 {
            continue;
        }
        let judged = judge_flow_with(name, flow, receiver)?;
        barred |= judged.barred;
        longest_gap_ms = judged.longest_gap_ms.into_iter().chain(longest_gap_ms).reduce(f64::max);
        let talk = conversation(group, name);
        if talks.get(talk).is_none_or(|other| judged.worst < other.worst) {
            talks.insert(talk, judged);
        }
    }
    let figures: Vec<f64> = talks.values().map(|judged| judged.worst).collect();
    let median = Confidence::default().spread(&figures)?.median;
    let worst = talks.into_values().min_by(|a, b| a.worst.total_cmp(&b.worst))?;
    Some(JudgedFigure { median, barred, longest_gap_ms, ..worst })
}

/// What both directions of one copy share of the copy's name.
pub(crate) fn conversation<'a>(group: &str, copy: &'a str) -> &'a str {
    let rest = copy.strip_prefix(group).unwrap_or(copy);
    rest.strip_suffix("-up").or(rest.strip_suffix("-down")).unwrap_or(rest)
}

impl JudgedBy {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Mos, Self::InTime, Self::Goodput];

    /// The figure's place in summary.json, below its flow.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Mos => "call.mos",
            Self::InTime => "in_time",
            Self::Goodput => "goodput_bps",
        }
    }

    /// How the figure is written where transports are compared.
    pub const fn scale(self) -> Scale {
        match self {
            Self::Mos => Scale::SCORE,
            Self::InTime => Scale::PERCENT,
            Self::Goodput => Scale::MBPS,
        }
    }

    /// What the figure is called there, with the unit of [`Self::scale`]: `goodput, Mb/s`.
    pub fn title(self) -> String {
        let name = match self {
            Self::Mos => "MOS",
            Self::InTime => "in time",
            Self::Goodput => "goodput",
        };
        match self.scale().unit {
            "" => name.to_owned(),
            unit => format!("{name}, {unit}"),
        }
    }

    /// The least and the most that such a figure can be.
    pub const fn possible(self) -> (f64, f64) {
        match self {
            // ITU-T G.107 Annex B.
            Self::Mos => (1.0, 4.5),
            Self::InTime => (0.0, 1.0),
            Self::Goodput => (0.0, f64::INFINITY),
        }
    }
}

impl JudgedFigure {
    /// Whether even the worst copy reaches the floor, and no copy's gaps bar it.
    pub fn is_usable(&self) -> bool {
        self.worst >= self.floor && !self.barred
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(mos: f64) -> FlowSummary {
        let call = CallSummary { mos, basis: Basis::OneWay, ..CallSummary::default() };
        FlowSummary { sent: 500, in_time: Some(1.0), call: Some(Box::new(call)), ..FlowSummary::default() }
    }

    fn state(in_time: f64) -> FlowSummary {
        FlowSummary { sent: 500, in_time: Some(in_time), ..FlowSummary::default() }
    }

    fn copies(group: &str, copies: &[(&str, FlowSummary)]) -> Option<JudgedFigure> {
        judge_copies(group, copies.iter().map(|(name, flow)| (*name, flow)), Receiver::Own)
    }

    #[test]
    fn a_call_is_judged_by_its_score_and_any_other_flow_by_its_share_in_time() {
        let judged = judge_flow("call", &call(4.2)).unwrap();
        assert_eq!((judged.by, judged.worst, judged.floor), (JudgedBy::Mos, 4.2, CALL_FLOOR));
        let judged = judge_flow("state", &state(0.9)).unwrap();
        assert_eq!((judged.by, judged.worst, judged.floor), (JudgedBy::InTime, 0.9, IN_TIME_FLOOR));
        assert!(!judged.is_usable());
        let echo = FlowSummary { lost_return: Some(0), ..state(0.9) };
        assert_eq!(judge_flow("state", &echo).unwrap().basis, Basis::RoundTrip);
        let transfer = FlowSummary { sent: 9, goodput_bps: Some(2e6), ..FlowSummary::default() };
        let judged = judge_flow("transfer", &transfer).unwrap();
        assert_eq!((judged.by, judged.worst, judged.is_usable()), (JudgedBy::Goodput, 2e6, true));
        let burst = FlowSummary { verdict: Some("great".to_owned()), ..transfer.clone() };
        let untrusted = FlowSummary { deadline_ms: Some(150.0), ..transfer };
        assert_eq!([judge_flow("burst", &burst), judge_flow("state", &untrusted)], [None, None]);
    }

    #[test]
    fn the_scenarios_floor_counts() {
        let own = FlowSummary { floor: Some(0.8), ..state(0.9) };
        assert!(judge_flow("state", &own).unwrap().is_usable());
    }

    #[test]
    fn a_call_in_both_directions_is_judged_by_its_worse_one() {
        let judged = copies("call", &[("call-down", call(4.4)), ("call-up", call(1.5))]).unwrap();
        assert_eq!((judged.median, judged.worst, judged.worst_flow.as_str()), (1.5, 1.5, "call-up"));
    }

    #[test]
    fn of_several_copies_the_median_and_the_worst_are_given() {
        let judged = copies("call", &[("call-1", call(4.4)), ("call-2", call(2.0)), ("call-3", call(3.0))]);
        let judged = judged.unwrap();
        assert_eq!((judged.median, judged.worst, judged.worst_flow.as_str()), (3.0, 2.0, "call-2"));
        // The two directions of a copy are one conversation, of which the worse one counts.
        let both = [
            ("call-1-up", call(1.0)),
            ("call-1-down", call(4.0)),
            ("call-2-up", call(3.0)),
            ("call-2-down", call(3.5)),
        ];
        let judged = copies("call", &both).unwrap();
        assert_eq!((judged.median, judged.worst, judged.worst_flow.as_str()), (2.0, 1.0, "call-1-up"));
    }

    #[test]
    fn gaps_of_any_copy_bar_a_flow_that_its_worst_score_calls_usable() {
        let with_gap = |mos, longest_gap_ms| {
            let mut flow = call(mos);
            flow.call.as_mut().unwrap().longest_gap_ms = Some(longest_gap_ms);
            flow
        };
        let judged = judge_flow("call", &with_gap(4.3, 980.0)).unwrap();
        assert!(!judged.barred && judged.is_usable());
        let judged = judge_flow("call", &with_gap(4.3, 1000.0)).unwrap();
        assert!(judged.barred && !judged.is_usable());
        let both = [("call-up", with_gap(4.3, 1400.0)), ("call-down", with_gap(4.0, 20.0))];
        let judged = copies("call", &both).unwrap();
        assert_eq!((judged.worst_flow.as_str(), judged.longest_gap_ms), ("call-down", Some(1400.0)));
        assert!(!judged.is_usable());
    }

    #[test]
    fn an_unknown_copy_leaves_the_flow_unjudged_and_an_idle_one_does_not() {
        let unknown = FlowSummary { sent: 5, ..FlowSummary::default() };
        assert_eq!(copies("call", &[("call-up", call(4.0)), ("call-down", unknown)]), None);
        let judged = copies("call", &[("call-1", call(4.0)), ("call-2", FlowSummary::default())]);
        assert_eq!(judged.map(|judged| judged.worst), Some(4.0));
        assert_eq!(copies("call", &[]), None);
    }

    #[test]
    fn a_name_that_merely_ends_like_a_direction_is_its_own_conversation() {
        assert_eq!(conversation("call", "call-2-up"), conversation("call", "call-2-down"));
        assert_eq!(conversation("state-up", "state-up-1"), "-1");
        assert_eq!(conversation("state-up", "state-up-2"), "-2");
    }
}
