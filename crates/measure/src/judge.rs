//! Judges how well a flow was served in one repetition, by one figure.
//!
//! ```text
//!  workload                        judged by       computed in
//!  voice                           MOS             metrics/call.rs (playout and E-model)
//!  voice without published score   share heard     metrics/call.rs (playout)
//!  other workloads with a clock    share in time   metrics/in_time.rs
//!  bulk, file                      goodput         metrics/goodput.rs
//!  burst without a deadline        not judged
//! ```
//!
//! The two directions of a flow (`direction = "both"`) are one conversation, which is as good as its worse
//! direction. If a flow has several copies (`count`), every copy is judged, and the result has the median and
//! the worst figure. A flow is not judged (`None`) if its figure is not known.
//!
//! A call also has to pass the gap rule (`metrics/gaps.rs`). A call that the rule bars is not usable,
//! whatever its score is.
//!
//! A call whose coding has no published impairment is not rated. It is judged by the share of what is heard
//! that was not concealed, and no floor says from which share on it is usable.

use std::collections::BTreeMap;

use crate::figures::Scale;
use crate::metrics::confidence::Confidence;
pub use crate::receiver::Receiver;
use crate::summary::{Basis, Direction, FlowSummary, JudgedBy, JudgedFigure, RunSummary};

/// The least MOS of a usable call on the narrow scale, unless the scenario's `floor` says otherwise.
pub const CALL_FLOOR: f64 = talkpath_config::Scale::Narrow.floor();

/// The least share of messages in time with which a flow is usable, unless the scenario's `floor` says
/// otherwise. We chose 95 %, which is a game that misses one update in twenty.
pub const IN_TIME_FLOOR: f64 = 0.95;

/// Judges `flow` in `run`, with the receiver [`Receiver::Own`]. `flow` is the name of a flow, or the name
/// that several copies share.
pub fn judge(run: &RunSummary, flow: &str) -> Option<JudgedFigure> {
    judge_with(run, flow, Receiver::Own)
}

/// Judges `flow` in `run`, with `receiver`. `flow` is the name of a flow, or the name that several copies
/// share. Returns `None` also if the flow does not have this receiver.
pub fn judge_with(run: &RunSummary, flow: &str, receiver: Receiver) -> Option<JudgedFigure> {
    if let Some((name, figures)) = run.flows.get_key_value(flow) {
        return judge_flow_with(name, figures, receiver);
    }
    let group = run.groups.get(flow)?;
    match receiver {
        Receiver::Own => group.judged.clone(),
        Receiver::Other => group.judged_with_other_receiver.clone(),
        Receiver::Patient => group.judged_with_patient_receiver.clone(),
    }
}

/// Judges one flow or one copy, with the receiver [`Receiver::Own`]. `name` is the name of the flow or copy.
pub fn judge_flow(name: &str, flow: &FlowSummary) -> Option<JudgedFigure> {
    judge_flow_with(name, flow, Receiver::Own)
}

/// Judges one flow or one copy, with `receiver`. Returns `None` also if the flow does not have this receiver.
fn judge_flow_with(name: &str, flow: &FlowSummary, receiver: Receiver) -> Option<JudgedFigure> {
    if flow.call.is_some() {
        return judge_call(name, flow, receiver);
    }
    // Only calls have other receivers.
    if receiver != Receiver::Own {
        return None;
    }
    // A burst has a verdict in words, and a flow on a clock has a deadline. A transfer has neither.
    let is_transfer = flow.in_time.is_none() && flow.deadline_ms.is_none() && flow.verdict.is_none();
    if is_transfer && let Some(goodput_bps) = flow.goodput_bps {
        let goodput = judged_figure(name, flow, JudgedBy::Goodput, goodput_bps, 0.0);
        return Some(JudgedFigure { basis: Basis::OneWay, direction: Some(Direction::Forward), ..goodput });
    }
    let in_time = judged_figure(name, flow, JudgedBy::InTime, flow.in_time?, IN_TIME_FLOOR);
    // Only a flow with an echo knows the losses of the return direction.
    let is_echo = flow.lost_return.is_some();
    Some(if is_echo {
        JudgedFigure { basis: Basis::RoundTrip, direction: None, ..in_time }
    } else {
        JudgedFigure { basis: Basis::OneWay, direction: Some(Direction::Forward), ..in_time }
    })
}

/// The least MOS of a usable call on the scale of this name.
fn call_floor(scale: &str) -> f64 {
    talkpath_config::Scale::named(scale).map_or(CALL_FLOOR, talkpath_config::Scale::floor)
}

/// Judges a call with `receiver`: by its score, or by the share that is heard if it is not rated. Returns
/// `None` if the call does not have this receiver.
fn judge_call(name: &str, flow: &FlowSummary, receiver: Receiver) -> Option<JudgedFigure> {
    let call = flow.call.as_deref()?;
    let judged = |score: Option<f64>, heard: Option<f64>| match score {
        Some(score) => Some(judged_figure(name, flow, JudgedBy::Mos, score, call_floor(&call.scale))),
        // The floor of the scenario is an opinion score.
        None => Some(JudgedFigure { floor: 0.0, ..judged_figure(name, flow, JudgedBy::Heard, heard?, 0.0) }),
    };
    Some(match receiver {
        Receiver::Own => JudgedFigure {
            basis: call.basis,
            direction: call.direction,
            barred: call.is_barred(),
            longest_gap_ms: call.longest_gap_ms,
            ..judged(call.score(), call.concealed.map(|concealed| 1.0 - concealed))?
        },
        Receiver::Other | Receiver::Patient => {
            let other = call.receiver(receiver)?;
            JudgedFigure {
                basis: call.basis,
                direction: other.direction,
                barred: other.is_barred(),
                longest_gap_ms: Some(other.longest_gap_ms),
                ..judged(other.mos, other.heard(call.missing))?
            }
        }
    })
}

/// The judged figure of one flow or copy that no gaps bar, for one direction.
fn judged_figure(
    name: &str,
    flow: &FlowSummary,
    by: JudgedBy,
    figure: f64,
    default_floor: f64,
) -> JudgedFigure {
    JudgedFigure {
        by,
        median: figure,
        worst: figure,
        worst_flow: name.to_owned(),
        floor: flow.floor.unwrap_or(default_floor),
        basis: Basis::OneWay,
        direction: None,
        barred: false,
        longest_gap_ms: None,
    }
}

/// Judges all copies of the flow `group` together. The copies are named `NAME-1`, `NAME-up`, `NAME-1-up` and
/// so on. A copy that had no messages to send does not count. Returns `None` if there is no other copy, or if
/// the figure of one of the other copies is not known.
pub fn judge_copies<'a>(
    group: &str,
    copies: impl IntoIterator<Item = (&'a str, &'a FlowSummary)>,
    receiver: Receiver,
) -> Option<JudgedFigure> {
    let mut worse_directions: BTreeMap<&str, JudgedFigure> = BTreeMap::new();
    let mut is_any_barred = false;
    let mut longest_gap_ms: Option<f64> = None;
    for (name, flow) in copies {
        if flow.sent + flow.refused == 0 {
            continue;
        }
        let judged = judge_flow_with(name, flow, receiver)?;
        is_any_barred |= judged.barred;
        longest_gap_ms = judged.longest_gap_ms.into_iter().chain(longest_gap_ms).reduce(f64::max);
        let conversation = conversation(group, name);
        let is_worse = match worse_directions.get(conversation) {
            Some(other_direction) => judged.worst < other_direction.worst,
            None => true,
        };
        if is_worse {
            worse_directions.insert(conversation, judged);
        }
    }
    let figures: Vec<f64> = worse_directions.values().map(|judged| judged.worst).collect();
    let median = Confidence::default().spread(&figures)?.median;
    let worst = worse_directions.into_values().min_by(|a, b| a.worst.total_cmp(&b.worst))?;
    Some(JudgedFigure { median, barred: is_any_barred, longest_gap_ms, ..worst })
}

/// The part of a copy's name that the two directions of the copy share: `-1` for `call-1-up` in the group
/// `call`.
pub(crate) fn conversation<'a>(group: &str, copy: &'a str) -> &'a str {
    let suffix = copy.strip_prefix(group).unwrap_or(copy);
    suffix.strip_suffix("-up").or(suffix.strip_suffix("-down")).unwrap_or(suffix)
}

impl JudgedBy {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Mos, Self::InTime, Self::Goodput, Self::Heard];

    /// The path of the figure in summary.json, below the flow. `None` of [`Self::Heard`], which is what
    /// `call.concealed` leaves.
    pub const fn path(self) -> Option<&'static str> {
        match self {
            Self::Mos => Some("call.mos"),
            Self::Heard => None,
            Self::InTime => Some("in_time"),
            Self::Goodput => Some("goodput_bps"),
        }
    }

    /// Whether a floor of the figure says from where on a flow is usable.
    pub const fn has_floor(self) -> bool {
        match self {
            Self::Mos | Self::InTime => true,
            Self::Heard | Self::Goodput => false,
        }
    }

    /// Whether a flow that is judged by the figure is a call.
    pub const fn is_of_call(self) -> bool {
        match self {
            Self::Mos | Self::Heard => true,
            Self::InTime | Self::Goodput => false,
        }
    }

    /// How the figure is written where transports are compared.
    pub const fn scale(self) -> Scale {
        match self {
            Self::Mos => Scale::SCORE,
            Self::Heard | Self::InTime => Scale::PERCENT,
            Self::Goodput => Scale::MBPS,
        }
    }

    /// The title of the figure where transports are compared, with the unit of [`Self::scale`]: `goodput,
    /// Mb/s`.
    pub fn title(self) -> String {
        let name = match self {
            Self::Mos => "MOS",
            Self::Heard => "heard",
            Self::InTime => "in time",
            Self::Goodput => "goodput",
        };
        match self.scale().unit {
            "" => name.to_owned(),
            unit => format!("{name}, {unit}"),
        }
    }

    /// The least and the greatest possible figure.
    pub const fn possible(self) -> (f64, f64) {
        match self {
            // ITU-T G.107 Annex B.
            Self::Mos => (1.0, 4.5),
            Self::Heard | Self::InTime => (0.0, 1.0),
            Self::Goodput => (0.0, f64::INFINITY),
        }
    }
}

impl JudgedFigure {
    /// Whether the worst copy reaches the floor, and the gaps of no copy bar the call.
    pub fn is_usable(&self) -> bool {
        self.worst >= self.floor && !self.barred
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{CallSummary, OtherReceiver};

    fn call(mos: f64) -> FlowSummary {
        let call =
            CallSummary { mos: Some(mos), r: Some(60.0), basis: Basis::OneWay, ..CallSummary::default() };
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
    fn a_call_that_is_not_rated_is_judged_by_the_share_that_is_heard_and_barred_by_its_gaps() {
        let other = OtherReceiver { played: 90, late: 6, ..OtherReceiver::default() };
        let call = CallSummary {
            concealed: Some(0.02),
            missing: 4,
            longest_gap_ms: Some(980.0),
            other_receiver: Some(other),
            ..CallSummary::default()
        };
        let flow = |call| FlowSummary { floor: Some(3.6), call: Some(Box::new(call)), ..state(1.0) };
        let heard = flow(call.clone());
        let judged = judge_flow("call", &heard).unwrap();
        assert_eq!(
            (judged.by, judged.worst, judged.floor, judged.is_usable()),
            (JudgedBy::Heard, 0.98, 0.0, true)
        );
        let judged = judge_flow_with("call", &heard, Receiver::Other).unwrap();
        assert_eq!((judged.by, judged.worst), (JudgedBy::Heard, 0.9));
        let barred = flow(CallSummary { longest_gap_ms: Some(1000.0), ..call.clone() });
        assert!(!judge_flow("call", &barred).unwrap().is_usable());
        let unknown = flow(CallSummary { concealed: None, ..call });
        assert_eq!(judge_flow("call", &unknown), None);
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
