//! What limits the opinion score of a call: gaps that make the call unusable, inputs for which the E-model
//! (ITU-T G.107) has no values, and losses in runs, which a listener minds more than the score does.
//!
//! A repetition is *barred* if the gaps of the call alone make it unusable, whatever its score is. An input
//! is *outside the model* if its value lies beyond the range that the model was made for.

use std::collections::{BTreeMap, BTreeSet};

use talkpath_measure::Codec;
use talkpath_measure::summary::{CallSummary, JudgedFigure, ModelInput, OutsideModel, Summary};

use crate::number::list;

/// A sentence names at most 6 calls. We chose 6 because a comparison has about as many transports.
const MAX_NAMED: usize = 6;

/// The share of the repetitions that gaps bar.
pub(crate) fn barred(judged: &BTreeMap<u64, JudgedFigure>) -> f64 {
    judged.values().filter(|judged| judged.barred).count() as f64 / judged.len().max(1) as f64
}

/// From this burst ratio on losses come in runs. We chose 1.5: losses of 5 % at random have up to 1.3 in
/// calls of 20 s.
const BURSTY: f64 = 1.5;
/// The shares of concealed speech for which PESQ rated such calls. Below the smallest share nobody hears the
/// concealment.
const CONCEALED: core::ops::RangeInclusive<f64> = 0.005..=0.06;

/// Writes by how much the scores of G.711 may be too high if its losses come in runs. Returns `None` if no
/// call of the run has such losses. The figures are those of calls with runs of four frames and a loss of up
/// to 5 % (docs/notes/2026-11-25-mos-beside-pesq.md).
pub(crate) fn bursts_sentence(summary: &Summary) -> Option<String> {
    let is_bursty = |call: &CallSummary| {
        let is_concealed =
            call.codec == Codec::G711.name() && call.concealment == Codec::G711.concealment(true);
        let is_heard = call.concealed.is_some_and(|share| CONCEALED.contains(&share));
        is_concealed && is_heard && call.mos.is_some() && call.burst_ratio >= BURSTY
    };
    let mut calls = summary.counted_runs().flat_map(|run| run.flows.values());
    calls.any(|flow| flow.call.as_deref().is_some_and(is_bursty)).then(|| BURSTS.to_owned())
}

/// The sentence about losses in runs.
const BURSTS: &str = "Losses come in runs here: PESQ, which hears the concealment of G.711 fade, gives such calls 0.1 to 1.0 less \
                      than these scores.";

/// The calls of one name, and their inputs outside the model.
struct OutsideCalls {
    name: String,
    furthest: BTreeMap<ModelInput, OutsideModel>,
}

/// Finds the calls with inputs outside the model. A call without a played frame is not among them, because
/// its score is always the worst, and the model does not rate it.
fn find_outside_calls<'a>(calls: impl Iterator<Item = (String, &'a CallSummary)>) -> Vec<OutsideCalls> {
    let mut outside_calls: Vec<OutsideCalls> = Vec::new();
    for (name, call) in calls.filter(|(_, call)| call.played > 0) {
        for outside in &call.outside_model {
            let known = outside_calls.iter().position(|known| known.name == name);
            let index = known.unwrap_or_else(|| {
                outside_calls.push(OutsideCalls { name: name.clone(), furthest: BTreeMap::new() });
                outside_calls.len() - 1
            });
            let furthest = outside_calls[index].furthest.entry(outside.input).or_insert(*outside);
            if outside.excess() > furthest.excess() {
                *furthest = *outside;
            }
        }
    }
    outside_calls
}

/// Writes the meaning of the term `outside`: the ranges of the model, and how far each call is outside.
/// Returns `None` if no call is outside.
pub(crate) fn outside_meaning<'a>(calls: impl Iterator<Item = (String, &'a CallSummary)>) -> Option<String> {
    let outside_calls = find_outside_calls(calls);
    if outside_calls.is_empty() {
        return None;
    }
    let mut ranges: BTreeMap<ModelInput, String> = BTreeMap::new();
    for outside in outside_calls.iter().flat_map(|call| call.furthest.values()) {
        ranges.insert(outside.input, outside.table());
    }
    let ranges: Vec<String> = ranges.into_values().collect();
    let mut listed = Vec::new();
    for call in outside_calls.iter().take(MAX_NAMED) {
        let inputs: Vec<String> = call.furthest.values().map(OutsideModel::text).collect();
        listed.push(format!("{} ({})", call.name, inputs.join(", ")));
    }
    if outside_calls.len() > MAX_NAMED {
        listed.push(format!("{} more", outside_calls.len() - MAX_NAMED));
    }
    Some(format!(
        "beyond what the table of the E-model has (ITU-T G.107: {}), at the furthest: {}",
        ranges.join("; "),
        list(&listed)
    ))
}

/// Writes the sentence of an answer about calls outside the model. `all` is the number of transports in the
/// answer. The term `outside` says how far the calls are outside. Returns `None` if no call is outside.
pub(crate) fn outside_sentence<'a>(
    calls: impl Iterator<Item = (String, &'a CallSummary)>,
    all: usize,
) -> Option<String> {
    let calls: Vec<(String, &CallSummary)> = calls.collect();
    let mut without_score: BTreeMap<String, &OutsideModel> = BTreeMap::new();
    for (name, call) in &calls {
        if let Some(beyond) = call.beyond_model().next().filter(|_| call.played > 0) {
            without_score.entry(name.clone()).or_insert(beyond);
        }
    }
    let with_score = calls.into_iter().filter(|(name, _)| !without_score.contains_key(name));
    let no_score = no_score_sentence(&without_score);
    let rated = rated_outside_sentence(with_score, all);
    let sentences: Vec<String> = no_score.into_iter().chain(rated).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Writes that calls have no score, with the first value of each that lies beyond the model.
fn no_score_sentence(without_score: &BTreeMap<String, &OutsideModel>) -> Option<String> {
    let listed = without_score.iter().map(|(name, beyond)| {
        format!("{name} ({}; the model ends at {})", beyond.text(), beyond.largest_text())
    });
    let listed: Vec<String> = listed.take(MAX_NAMED).collect();
    let have = match listed.as_slice() {
        [] => return None,
        [_] => "has no score and counts as MOS 1.00",
        _ => "have no score and count as MOS 1.00",
    };
    Some(format!("{} {have}.", list(&listed)))
}

/// Writes the sentence about calls that have a score although an input lies outside the model.
fn rated_outside_sentence<'a>(
    calls: impl Iterator<Item = (String, &'a CallSummary)>,
    all: usize,
) -> Option<String> {
    let outside_calls = find_outside_calls(calls);
    let inputs: BTreeSet<ModelInput> =
        outside_calls.iter().flat_map(|call| call.furthest.keys().copied()).collect();
    let inputs: Vec<&str> = inputs.into_iter().map(ModelInput::name).collect();
    let names: Vec<String> = outside_calls.into_iter().map(|call| call.name).collect();
    let scores = match names.as_slice() {
        [] => return None,
        [only] => format!("The score of {only} lies"),
        several if several.len() == all => "All scores lie".to_owned(),
        several => format!("The scores of {} lie", list(several)),
    };
    Some(format!("{scores} outside of what the E-model was made for ({}).", inputs.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_names_the_values_of_its_inputs_that_are_furthest_outside_the_model() {
        let range = |input| if input == ModelInput::Loss { (0.0, 0.2) } else { (1.0, 8.0) };
        let outside =
            |&(input, value): &(ModelInput, f64)| OutsideModel { input, value, range: range(input) };
        let call = |inputs: &[(ModelInput, f64)]| CallSummary {
            mos: Some(2.0),
            played: 1,
            outside_model: inputs.iter().map(outside).collect(),
            ..CallSummary::default()
        };
        let (loss, burst) = (ModelInput::Loss, ModelInput::BurstRatio);
        let calls = [
            ("TCP", call(&[(loss, 0.3), (burst, 37.6)])),
            ("UDP", call(&[])),
            ("TCP", call(&[(loss, 0.42)])),
            ("QUIC stream", call(&[(burst, 9.0)])),
            ("QUIC stream", call(&[(burst, 8.5)])),
            ("silent", CallSummary { played: 0, ..call(&[(loss, 1.0)]) }),
        ];
        let named = |calls: &[(&str, CallSummary)]| {
            outside_meaning(calls.iter().map(|(name, call)| ((*name).to_owned(), call)))
        };
        let text = "beyond what the table of the E-model has (ITU-T G.107: loss 0 to 20 %, worse than the model rates; burst ratio \
                    1 to 8, rated as the nearest of these), at the furthest: TCP (loss 42.00 %, burst ratio 37.6) and \
                    QUIC stream (burst ratio 9.0)";
        assert_eq!(named(&calls).as_deref(), Some(text));
        assert_eq!(named(&calls[1..2]), None);

        let sentence = |calls: &[(&str, CallSummary)]| {
            outside_sentence(calls.iter().map(|(name, call)| ((*name).to_owned(), call)), 3)
        };
        let says = "The scores of TCP and QUIC stream lie outside of what the E-model was made for (loss, burst ratio).";
        assert_eq!(sentence(&calls).as_deref(), Some(says));
        let says = "The score of QUIC stream lies outside of what the E-model was made for (burst ratio).";
        assert_eq!(sentence(&calls[3..5]).as_deref(), Some(says));
        assert_eq!(sentence(&calls[1..2]), None);
    }

    #[test]
    fn a_call_beyond_the_model_has_no_score_and_the_sentence_says_value_and_bound() {
        let beyond = OutsideModel { input: ModelInput::MouthToEarMs, value: 516.0, range: (0.0, 500.0) };
        let call = CallSummary { played: 1, outside_model: vec![beyond], ..CallSummary::default() };
        let sentence = outside_sentence([("UDP".to_owned(), &call)].into_iter(), 2);
        let says = "UDP (mouth to ear 516 ms; the model ends at 500 ms) has no score and counts as MOS 1.00.";
        assert_eq!(sentence.as_deref(), Some(says));
    }

    #[test]
    fn a_score_of_g711_with_losses_in_runs_says_what_it_may_be_off_by() {
        let said = |change: &dyn Fn(&mut CallSummary)| {
            let mut summary = crate::fixture::summary(1);
            for flow in summary.runs.iter_mut().flat_map(|run| run.flows.values_mut()) {
                let Some(call) = &mut flow.call else { continue };
                (call.codec, call.concealment) = ("g711".to_owned(), "g711-appendix-i".to_owned());
                (call.mos, call.concealed, call.burst_ratio) = (Some(4.0), Some(0.02), 2.2);
                change(call);
            }
            bursts_sentence(&summary)
        };
        assert!(said(&|_| {}).unwrap().contains("0.1 to 1.0 less"));
        assert_eq!(said(&|call| call.burst_ratio = 1.1), None);
        assert_eq!(said(&|call| call.concealed = Some(0.001)), None);
        assert_eq!(said(&|call| call.concealed = Some(0.2)), None);
        assert_eq!(said(&|call| call.codec = "opus".to_owned()), None);
        assert_eq!(said(&|call| call.concealment = "none".to_owned()), None);
    }

    #[test]
    fn a_smaller_input_below_its_range_is_further_outside() {
        let outside = |value| OutsideModel { input: ModelInput::BurstRatio, value, range: (1.0, 8.0) };
        let call = |value| CallSummary {
            mos: Some(2.0),
            played: 1,
            outside_model: vec![outside(value)],
            ..CallSummary::default()
        };
        let calls = [call(0.9), call(0.5), call(0.7)];
        let text = outside_meaning(calls.iter().map(|call| ("TCP".to_owned(), call))).unwrap();
        assert!(
            text.ends_with("1 to 8, rated as the nearest of these), at the furthest: TCP (burst ratio 0.5)"),
            "{text}"
        );
    }
}
