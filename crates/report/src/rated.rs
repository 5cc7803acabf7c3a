//! What is said beside a call's score: the share of its repetitions that gaps bar, and the inputs that the
//! E-model was not made for.

use std::collections::{BTreeMap, BTreeSet};

use talkpath_measure::summary::{CallSummary, JudgedFigure, ModelInput, OutsideModel};

use crate::number::list;

/// The share of the repetitions that gaps bar.
pub(crate) fn barred(judged: &BTreeMap<u64, JudgedFigure>) -> f64 {
    judged.values().filter(|judged| judged.barred).count() as f64 / judged.len().max(1) as f64
}

/// The calls of one name that the E-model was not made for.
struct OutsideCalls {
    name: String,
    /// The inputs outside of the model's table, each where it lies furthest out.
    furthest: BTreeMap<ModelInput, OutsideModel>,
}

/// The names among `calls` that have inputs outside of the model's table. A call without a played frame is
/// not rated by the model: its score is the worst whatever the inputs are.
fn outside_calls<'a>(calls: impl Iterator<Item = (String, &'a CallSummary)>) -> Vec<OutsideCalls> {
    let mut named: Vec<OutsideCalls> = Vec::new();
    for (name, call) in calls.filter(|(_, call)| call.played > 0) {
        for input in &call.outside_model {
            let at = named.iter().position(|known| known.name == name).unwrap_or_else(|| {
                named.push(OutsideCalls { name: name.clone(), furthest: BTreeMap::new() });
                named.len() - 1
            });
            let furthest = named[at].furthest.entry(input.input).or_insert(*input);
            if input.excess() > furthest.excess() {
                *furthest = *input;
            }
        }
    }
    named
}

/// Which calls the E-model was not made for, and by how much, as the meaning of the term `outside`. `None` if
/// all lie within its table.
pub(crate) fn outside_meaning<'a>(calls: impl Iterator<Item = (String, &'a CallSummary)>) -> Option<String> {
    let named = outside_calls(calls);
    if named.is_empty() {
        return None;
    }
    let ranges: BTreeMap<ModelInput, String> = named
        .iter()
        .flat_map(|call| call.furthest.values())
        .map(|outside| (outside.input, outside.table()))
        .collect();
    let ranges: Vec<String> = ranges.into_values().collect();
    let more = named.len().saturating_sub(MAX_NAMED);
    let each = named.iter().take(MAX_NAMED).map(|call| {
        let inputs: Vec<String> = call.furthest.values().map(OutsideModel::text).collect();
        format!("{} ({})", call.name, inputs.join(", "))
    });
    let each: Vec<String> = each.chain((more > 0).then(|| format!("{more} more"))).collect();
    Some(format!(
        "beyond what the table of the E-model has (ITU-T G.107: {}), at the furthest: {}",
        ranges.join("; "),
        list(&each)
    ))
}

/// Whose scores the E-model was not made for, as a sentence of an answer about `all` transports; the term
/// `outside` says how far. `None` if all lie within its table.
pub(crate) fn outside_sentence<'a>(
    calls: impl Iterator<Item = (String, &'a CallSummary)>,
    all: usize,
) -> Option<String> {
    let named = outside_calls(calls);
    let inputs = named.iter().flat_map(|call| call.furthest.keys().copied());
    let inputs: BTreeSet<ModelInput> = inputs.collect();
    let inputs: Vec<&str> = inputs.into_iter().map(ModelInput::name).collect();
    let names: Vec<String> = named.into_iter().map(|call| call.name).collect();
    let scores = match names.len() {
        0 => return None,
        1 => format!("The score of {} lies", names[0]),
        some if some == all => "All scores lie".to_owned(),
        _ => format!("The scores of {} lie", list(&names)),
    };
    Some(format!("{scores} outside of what the E-model was made for ({}).", inputs.join(", ")))
}

/// Calls that are named one by one; chosen: as many as a comparison has transports.
const MAX_NAMED: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inputs_that_lie_furthest_outside_of_the_model_are_named_once_a_call() {
        let range = |input| if input == ModelInput::Loss { (0.0, 0.2) } else { (1.0, 8.0) };
        let outside =
            |&(input, value): &(ModelInput, f64)| OutsideModel { input, value, range: range(input) };
        let call = |inputs: &[(ModelInput, f64)]| CallSummary {
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
            outside_meaning(calls.iter().map(|(name, it)| ((*name).to_owned(), it)))
        };
        let text = "beyond what the table of the E-model has (ITU-T G.107: loss 0 to 20 %, rated as it is; burst ratio \
                    1 to 8, rated as the nearest of these), at the furthest: TCP (loss 42.00 %, burst ratio 37.6) and \
                    QUIC stream (burst ratio 9.0)";
        assert_eq!(named(&calls).as_deref(), Some(text));
        assert_eq!(named(&calls[1..2]), None);

        let sentence = |calls: &[(&str, CallSummary)]| {
            outside_sentence(calls.iter().map(|(name, it)| ((*name).to_owned(), it)), 3)
        };
        let says = "The scores of TCP and QUIC stream lie outside of what the E-model was made for (loss, burst ratio).";
        assert_eq!(sentence(&calls).as_deref(), Some(says));
        let says = "The score of QUIC stream lies outside of what the E-model was made for (burst ratio).";
        assert_eq!(sentence(&calls[3..5]).as_deref(), Some(says));
        assert_eq!(sentence(&calls[1..2]), None);
    }

    #[test]
    fn an_input_below_its_range_lies_the_further_out_the_smaller_it_is() {
        let outside = |value| OutsideModel { input: ModelInput::BurstRatio, value, range: (1.0, 8.0) };
        let call =
            |value| CallSummary { played: 1, outside_model: vec![outside(value)], ..CallSummary::default() };
        let calls = [call(0.9), call(0.5), call(0.7)];
        let text = outside_meaning(calls.iter().map(|call| ("TCP".to_owned(), call))).unwrap();
        assert!(
            text.ends_with("1 to 8, rated as the nearest of these), at the furthest: TCP (burst ratio 0.5)"),
            "{text}"
        );
    }
}
