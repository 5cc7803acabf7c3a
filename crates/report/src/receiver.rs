//! The receivers of a run's calls in words. A *receiver* plays a call: it has a codec, a way to conceal lost
//! frames, and a playout buffer. The opinion score of a call depends on its receiver. A call whose coding has
//! no published impairment has a receiver and no score.

use std::collections::BTreeSet;

use talkpath_measure::judge::Receiver;
use talkpath_measure::metrics::playout::OTHER_WAIT_TEXTS;
use talkpath_measure::summary::{CallSummary, Summary};
use talkpath_measure::{Codec, Scale};

use crate::grid::printable;

/// The most flows that are named with their receiver. The others are counted.
const MAX_NAMED: usize = 4;

struct ReceiverFlows<'a> {
    receiver: String,
    flows: BTreeSet<&'a str>,
}

/// Describes the receivers: `MOS for G.711 without concealment, adaptive playout`. If there are several, each
/// is followed by its flows. If no call is rated, the text begins with `no MOS for`. Returns `None` if the
/// run has no call.
pub(crate) fn receivers(summary: &Summary) -> Option<String> {
    let receivers = flows_by_receiver(summary);
    let text = match receivers.as_slice() {
        [] => return None,
        [only] => only.receiver.clone(),
        // A flow has several receivers if the sweep is over the receiver. The labels of the cells then have
        // the receivers.
        several if has_flow_with_several(several) => {
            several.iter().map(|entry| entry.receiver.as_str()).collect::<Vec<_>>().join("; or ")
        }
        several => {
            let entries = several.iter();
            let entries = entries.map(|entry| format!("{} ({})", entry.receiver, list_flows(&entry.flows)));
            entries.collect::<Vec<_>>().join("; ")
        }
    };
    let note = if has_several_scales(summary) { "; not compared: different scales" } else { "" };
    let what = if calls(summary).any(CallSummary::is_rated) { "MOS" } else { "no MOS" };
    Some(format!("{what} for {text}{note}"))
}

fn calls(summary: &Summary) -> impl Iterator<Item = &CallSummary> {
    summary.runs.iter().flat_map(|run| run.flows.values()).filter_map(|flow| flow.call.as_deref())
}

/// Whether the calls are rated on more than one scale. Their scores are then not comparable.
fn has_several_scales(summary: &Summary) -> bool {
    let scales: BTreeSet<&str> = calls(summary).filter_map(scale).collect();
    scales.len() > 1
}

/// Returns the scale of a call's score. Old summaries name none. At that time narrowband was the only one.
/// Returns `None` if the call is not rated.
pub(crate) fn scale(call: &CallSummary) -> Option<&str> {
    if !call.is_rated() {
        return None;
    }
    Some(if call.scale.is_empty() { Scale::Narrow.name() } else { &call.scale })
}

fn flows_by_receiver(summary: &Summary) -> Vec<ReceiverFlows<'_>> {
    let mut receivers: Vec<ReceiverFlows<'_>> = Vec::new();
    for (name, flow) in summary.runs.iter().flat_map(|run| &run.flows) {
        let Some(call) = &flow.call else { continue };
        let receiver = describe_receiver(call);
        match receivers.iter_mut().find(|known| known.receiver == receiver) {
            Some(known) => _ = known.flows.insert(name),
            None => receivers.push(ReceiverFlows { receiver, flows: [name.as_str()].into() }),
        }
    }
    receivers
}

fn has_flow_with_several(receivers: &[ReceiverFlows<'_>]) -> bool {
    let flows: Vec<&str> = receivers.iter().flat_map(|entry| entry.flows.iter().copied()).collect();
    let distinct: BTreeSet<&str> = flows.iter().copied().collect();
    distinct.len() < flows.len()
}

/// Describes a receiver: `G.711 without concealment, adaptive playout`.
fn describe_receiver(call: &CallSummary) -> String {
    let mut text = format!("{}{} {}, {}", codec(call), scale_note(call), concealment(call), playout(call));
    match (&call.other_receiver, &call.patient_receiver) {
        (Some(_), Some(_)) => {
            let waits = [Receiver::Other, Receiver::Patient].map(wait_text);
            text.push_str(&format!(
                ", and with fixed buffers of {} beyond the smallest delay",
                waits.join(" and ")
            ));
        }
        (Some(other), None) | (None, Some(other)) => {
            text.push_str(&format!(", and with {}", named_receiver(&other.playout)));
        }
        (None, None) => {}
    }
    text
}

/// Names the scale, if it is not that of narrowband: ` on the swb scale`. A call that is not rated has the
/// reason instead.
fn scale_note(call: &CallSummary) -> String {
    match scale(call) {
        None => ", whose impairment in this form nobody published,".to_owned(),
        Some(scale) if scale == Scale::Narrow.name() => String::new(),
        Some(scale) => {
            let source =
                Codec::named(&call.codec).and_then(|codec| codec.rated(true)).map(|rated| rated.source);
            let source = source.map_or_else(String::new, |source| {
                format!(" ({source}; not compared with the ITU's calculators)")
            });
            format!(" on the {} scale{source}", printable(scale))
        }
    }
}

fn codec(call: &CallSummary) -> String {
    // Old summaries name no codec. At that time G.711 was the only one.
    let name = if call.codec.is_empty() { Codec::G711.name() } else { call.codec.as_str() };
    Codec::named(name).map_or_else(|| printable(name), |codec| codec.row().title.to_owned())
}

fn concealment(call: &CallSummary) -> String {
    let name = call.concealment.as_str();
    if matches!(name, "" | "none") {
        return "without concealment".to_owned();
    }
    let mut known = Codec::ALL.iter().map(|codec| codec.row().concealment);
    let title = known.find(|concealed| concealed.name == name).map(|concealed| concealed.title.to_owned());
    format!("with concealment ({})", title.unwrap_or_else(|| printable(name)))
}

/// Describes the playout of a call: `adaptive playout`, `playout fixed 60 ms`.
pub(crate) fn playout(call: &CallSummary) -> String {
    match call.playout.strip_prefix("fixed") {
        Some(wait) => format!("playout fixed{}", printable(wait)),
        None => format!("{} playout", printable(&call.playout)),
    }
}

/// Returns the wait of one of the other receivers, as the head of a column.
pub(crate) const fn wait_text(receiver: Receiver) -> &'static str {
    match receiver {
        Receiver::Own => "",
        Receiver::Other => OTHER_WAIT_TEXTS[0],
        Receiver::Patient => OTHER_WAIT_TEXTS[1],
    }
}

/// Names a receiver in a sentence: `the adaptive receiver`, `a fixed buffer of 60 ms beyond the smallest
/// delay`.
pub(crate) fn named_receiver(playout: &str) -> String {
    match playout.strip_prefix("fixed ") {
        Some(wait) => format!("a fixed buffer of {}", printable(wait)),
        None => format!("the {} receiver", printable(playout)),
    }
}

/// Lists the first few flows, and counts the others.
fn list_flows(flows: &BTreeSet<&str>) -> String {
    let names: Vec<String> = flows.iter().take(MAX_NAMED).map(|name| printable(name)).collect();
    match flows.len().saturating_sub(MAX_NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn one_receiver_has_no_flows_and_two_have_their_flows_in_brackets() {
        let mut summary = fixture::summary(1);
        let usual = "MOS for G.711 without concealment, adaptive playout";
        assert_eq!(receivers(&summary).as_deref(), Some(usual));
        let run = &mut summary.runs[0];
        let mut talk = run.flows["call"].clone();
        let call = talk.call.as_mut().unwrap();
        (call.playout, call.concealment) = ("fixed 60 ms".to_owned(), "g711-appendix-i".to_owned());
        run.flows.insert("talk".to_owned(), talk);
        let both = "MOS for G.711 without concealment, adaptive playout (call); G.711 with concealment (Appendix I), \
                    playout fixed 60 ms (talk)";
        assert_eq!(receivers(&summary).as_deref(), Some(both));
    }

    #[test]
    fn scores_of_two_scales_are_said_not_to_be_compared() {
        let mut summary = fixture::summary(1);
        let call = summary.runs[1].flows.get_mut("call").unwrap().call.as_mut().unwrap();
        (call.codec, call.scale) = ("opus".to_owned(), "swb".to_owned());
        call.concealment = "opus".to_owned();
        let swept = "MOS for G.711 without concealment, adaptive playout; or Opus on the swb scale (Alahmadi et al. 2021; not \
                     compared with the ITU's calculators) with concealment (its own), adaptive playout; not compared: different scales";
        assert_eq!(receivers(&summary).as_deref(), Some(swept));
    }

    #[test]
    fn a_call_that_is_not_rated_has_a_receiver_and_no_score() {
        let mut summary = fixture::summary(1);
        for run in &mut summary.runs {
            let call = run.flows.get_mut("call").unwrap().call.as_mut().unwrap();
            (call.mos, call.r, call.codec) = (None, None, "opus".to_owned());
        }
        let unrated = "no MOS for Opus, whose impairment in this form nobody published, without concealment, adaptive playout";
        assert_eq!(receivers(&summary).as_deref(), Some(unrated));
    }

    #[test]
    fn a_sweep_over_the_receiver_names_no_flow_and_a_run_without_a_call_has_no_receiver() {
        let mut summary = fixture::summary(1);
        let call = summary.runs[1].flows.get_mut("call").unwrap().call.as_mut().unwrap();
        call.concealment = "g711-appendix-i".to_owned();
        let swept = "MOS for G.711 without concealment, adaptive playout; or G.711 with concealment (Appendix I), \
                     adaptive playout";
        assert_eq!(receivers(&summary).as_deref(), Some(swept));
        summary.runs.iter_mut().for_each(|run| run.flows.get_mut("call").unwrap().call = None);
        assert_eq!(receivers(&summary), None);
    }
}
