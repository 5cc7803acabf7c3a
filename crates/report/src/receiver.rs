//! What the receivers of a run's calls do, in words. The opinion scores rest on it.

use std::collections::BTreeSet;

use talkpath_measure::Codec;
use talkpath_measure::summary::{CallSummary, Summary};

use crate::grid::printable;

/// Flows that are named beside what their receivers do; chosen.
const MAX_NAMED: usize = 4;

/// `MOS for G.711 without concealment, adaptive playout`. Receivers that differ are listed one after the
/// other, each with its flows. `None` without a call.
pub(crate) fn receivers(summary: &Summary) -> Option<String> {
    let mut kinds: Vec<(String, BTreeSet<&str>)> = Vec::new();
    for (name, flow) in summary.runs.iter().flat_map(|run| &run.flows) {
        let Some(call) = &flow.call else { continue };
        let text = receiver(call);
        match kinds.iter_mut().find(|(known, _)| *known == text) {
            Some((_, flows)) => _ = flows.insert(name),
            None => kinds.push((text, [name.as_str()].into())),
        }
    }
    let flows = kinds.iter().flat_map(|(_, flows)| flows);
    let is_told_by_flow = flows.clone().count() == flows.collect::<BTreeSet<_>>().len();
    let text = match kinds.as_slice() {
        [] => return None,
        [(only, _)] => only.clone(),
        // A sweep over the receiver: the labels of the cells say which has which.
        several if !is_told_by_flow => {
            several.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join("; or ")
        }
        several => {
            let each = several.iter().map(|(text, flows)| format!("{text} ({})", named(flows)));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    Some(format!("MOS for {text}"))
}

/// `G.711 without concealment, adaptive playout`
fn receiver(call: &CallSummary) -> String {
    // Summaries of before have no codec, and G.711 was the only one.
    let word = if call.codec.is_empty() { Codec::G711.name() } else { call.codec.as_str() };
    let codec = Codec::named(word).map_or_else(|| printable(word), |codec| codec.row().title.to_owned());
    let concealment = match call.concealment.as_str() {
        "" | "none" => "without concealment".to_owned(),
        other => {
            let own = Codec::ALL.iter().map(|codec| codec.row().concealed).find(|own| own.name == other);
            let title = own.map_or_else(|| printable(other), |own| own.title.to_owned());
            format!("with concealment ({title})")
        }
    };
    format!("{codec} {concealment}, {}{}", playout(call), beside(call))
}

/// `adaptive playout`, `playout fixed 60 ms`
pub(crate) fn playout(call: &CallSummary) -> String {
    match call.playout.strip_prefix("fixed") {
        Some(wait) => format!("playout fixed{}", printable(wait)),
        None => format!("{} playout", printable(&call.playout)),
    }
}

/// `, and with a fixed buffer of 60 ms beyond the smallest delay`, if there is a second receiver.
fn beside(call: &CallSummary) -> String {
    let other = call.other_receiver.as_ref();
    other.map_or_else(String::new, |other| format!(", and with {}", named_receiver(&other.playout)))
}

/// A receiver in a sentence: `the adaptive receiver`, `a fixed buffer of 60 ms beyond the smallest delay`
pub(crate) fn named_receiver(playout: &str) -> String {
    match playout.strip_prefix("fixed ") {
        Some(wait) => format!("a fixed buffer of {}", printable(wait)),
        None => format!("the {} receiver", printable(playout)),
    }
}

fn named(flows: &BTreeSet<&str>) -> String {
    let names: Vec<_> = flows.iter().take(MAX_NAMED).map(|name| printable(name)).collect();
    match flows.len().saturating_sub(MAX_NAMED) {
        0 => names.join(", "),
        rest => format!("{} and {rest} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn one_receiver_is_one_text_and_two_stand_with_their_flows() {
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
    fn a_sweep_over_the_receiver_names_no_flow_and_without_a_call_there_is_nothing() {
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
