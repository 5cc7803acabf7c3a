//! What stands beside a call's score: the share of its repetitions that gaps bar, and the inputs that the
//! E-model was not made for.

use std::collections::{BTreeMap, BTreeSet};

use talkpath_measure::summary::{CallSummary, Judged, ModelInput, OutsideModel};

use crate::number::list;

/// The share of the repetitions that gaps bar.
pub(crate) fn barred(judged: &BTreeMap<u64, Judged>) -> f64 {
    judged.values().filter(|it| it.barred).count() as f64 / judged.len().max(1) as f64
}

/// The inputs of one name's calls that lie outside of the E-model's table, each where it lies furthest out.
type Furthest = (String, BTreeMap<ModelInput, OutsideModel>);

/// The names among `calls` that have inputs outside of the model's table. A call of which nothing was played
/// is not rated by the model: its score is the worst whatever the inputs are.
fn furthest<'a>(calls: impl Iterator<Item = (String, &'a CallSummary)>) -> Vec<Furthest> {
    let mut named: Vec<Furthest> = Vec::new();
    for (name, call) in calls.filter(|(_, call)| call.played > 0) {
        for it in &call.outside_model {
            let at = named.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                named.push((name.clone(), BTreeMap::new()));
                named.len() - 1
            });
            let furthest = named[at].1.entry(it.input).or_insert(*it);
            if it.value > furthest.value {
                *furthest = *it;
            }
        }
    }
    named
}

/// Which calls the E-model was not made for, and by how much. `None` if all lie within its table.
pub(crate) fn outside<'a>(calls: impl Iterator<Item = (String, &'a CallSummary)>) -> Option<String> {
    let named = furthest(calls);
    let more = named.len().saturating_sub(MAX_NAMED);
    let each = named.iter().take(MAX_NAMED).map(|(name, inputs)| {
        let inputs = inputs.values().map(|it| format!("{} {}", it.input.name(), it.input.text(it.value)));
        format!("{name} ({})", inputs.collect::<Vec<_>>().join(", "))
    });
    let each: Vec<String> = each.chain((more > 0).then(|| format!("{more} more"))).collect();
    (!each.is_empty()).then(|| list(&each))
}

/// Whose scores the E-model was not made for, as a sentence of an answer about `all` transports; the term
/// `outside` says how far. `None` if all lie within its table.
pub(crate) fn outside_sentence<'a>(
    calls: impl Iterator<Item = (String, &'a CallSummary)>,
    all: usize,
) -> Option<String> {
    let named = furthest(calls);
    let inputs: BTreeSet<ModelInput> = named.iter().flat_map(|(_, inputs)| inputs.keys().copied()).collect();
    let inputs: Vec<&str> = inputs.into_iter().map(ModelInput::name).collect();
    let names: Vec<String> = named.into_iter().map(|(name, _)| name).collect();
    let scores = match names.len() {
        0 => return None,
        1 => format!("The score of {} lies", names[0]),
        some if some == all => "All scores lie".to_owned(),
        _ => format!("The scores of {} lie", list(&names)),
    };
    Some(format!(
        "{scores} beyond what the E-model was made for ({}); `outside` below says how far.",
        inputs.join(", ")
    ))
}

/// The meaning of what is named as outside of the model.
pub(crate) fn outside_term(named: &str) -> (&'static str, String) {
    let text = format!(
        "beyond what the table of the E-model has (ITU-T G.107: loss to 20 %, burst ratio 1 to 8, 500 ms from mouth to \
         ear), at most: {named}; a burst ratio is then rated as 8, loss and delay as they are"
    );
    ("outside", text)
}

/// Calls that are named one by one; chosen: as many as a comparison has transports.
const MAX_NAMED: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inputs_that_lie_furthest_outside_of_the_model_are_named_once_a_call() {
        let call = |inputs: &[(ModelInput, f64)]| CallSummary {
            played: 1,
            outside_model: inputs
                .iter()
                .map(|&(input, value)| OutsideModel { input, value, range: (0.0, 0.2) })
                .collect(),
            ..CallSummary::default()
        };
        let (loss, burst) = (ModelInput::Loss, ModelInput::BurstRatio);
        let calls = [
            ("TCP", call(&[(loss, 0.3), (burst, 37.6)])),
            ("UDP", call(&[])),
            ("TCP", call(&[(loss, 0.42)])),
            ("QUIC stream", call(&[(burst, 9.0)])),
            ("silent", CallSummary { played: 0, ..call(&[(loss, 1.0)]) }),
        ];
        let named =
            |calls: &[(&str, CallSummary)]| outside(calls.iter().map(|(name, it)| ((*name).to_owned(), it)));
        let text = "TCP (loss 42.00 %, burst ratio 37.6) and QUIC stream (burst ratio 9.0)";
        assert_eq!(named(&calls).as_deref(), Some(text));
        assert_eq!(named(&calls[1..2]), None);

        let sentence = |calls: &[(&str, CallSummary)]| {
            outside_sentence(calls.iter().map(|(name, it)| ((*name).to_owned(), it)), 3)
        };
        let says = "The scores of TCP and QUIC stream lie beyond what the E-model was made for (loss, burst ratio); \
                    `outside` below says how far.";
        assert_eq!(sentence(&calls).as_deref(), Some(says));
        let says = "The score of QUIC stream lies beyond what the E-model was made for (burst ratio); `outside` below \
                    says how far.";
        assert_eq!(sentence(&calls[3..4]).as_deref(), Some(says));
        assert_eq!(sentence(&calls[1..2]), None);
    }
}
