//! Whether a flow is usable over its repetitions, and which calls the E-model was not made for: what stands
//! beside a figure.

use std::collections::BTreeMap;

use talkpath_measure::judge::judge_flow;
use talkpath_measure::ranking::clusters::{Clusters, clusters};
use talkpath_measure::summary::{CallSummary, Judged, JudgedBy, ModelInput, OutsideModel};

use crate::number::list;
use crate::verdict::cluster_gap;
use crate::view::CellView;

/// What repetitions of one flow came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usable {
    /// Of the figure that the flow is judged by.
    pub mean: f64,
    pub clusters: Option<Clusters>,
    /// Share of the repetitions that gaps bar.
    pub barred: f64,
    pub floor: f64,
}

impl Usable {
    /// `None` without repetitions.
    pub(crate) fn of(judged: &BTreeMap<u64, Judged>) -> Option<Self> {
        let first = judged.values().next()?;
        let figures: Vec<f64> = judged.values().map(|it| it.worst).collect();
        Some(Self {
            mean: figures.iter().sum::<f64>() / figures.len() as f64,
            clusters: clusters(&figures, cluster_gap(first.by, &figures)),
            barred: barred(judged),
            floor: first.floor,
        })
    }

    /// `yes`, `no`, or the share of the repetitions that are usable, where the floor divides two outcomes or
    /// gaps bar some.
    pub(crate) fn text(&self) -> String {
        let share = self.share();
        match share {
            _ if share >= 1.0 => "yes".to_owned(),
            _ if share <= 0.0 => "no".to_owned(),
            _ => format!("{} %", (100.0 * share).round()),
        }
    }

    /// The share of the repetitions that are usable: where there are no two outcomes, all or none of them by
    /// their mean.
    pub(crate) fn share(&self) -> f64 {
        let Self { mean, clusters, barred, floor } = *self;
        let by_figure = match clusters {
            Some(found) if found.low < floor && floor <= found.high => 1.0 - found.low_share,
            _ if mean >= floor => 1.0,
            _ => 0.0,
        };
        by_figure.min(1.0 - barred)
    }
}

/// The share of the repetitions that gaps bar.
pub(crate) fn barred(judged: &BTreeMap<u64, Judged>) -> f64 {
    judged.values().filter(|it| it.barred).count() as f64 / judged.len().max(1) as f64
}

/// What the flow `name` of `cell`, one copy or copies that are summed up, is as a call; `None` if it is none.
pub(crate) fn usable_call(cell: &CellView<'_>, name: &str) -> Option<String> {
    let of = |run: &&talkpath_measure::summary::RunSummary| {
        let judged = match run.flows.get_key_value(name) {
            Some((name, flow)) => judge_flow(name, flow),
            None => run.groups.get(name)?.judged.clone(),
        };
        Some((run.repetition, judged.filter(|it| it.by == JudgedBy::Mos)?))
    };
    Some(Usable::of(&cell.runs.iter().filter_map(of).collect())?.text())
}

/// Which calls the E-model was not made for, and by how much: of each named call its inputs that lie outside
/// of the model's table, where they lie furthest out. `None` if all lie within.
pub(crate) fn outside<'a>(calls: impl Iterator<Item = (String, &'a CallSummary)>) -> Option<String> {
    let mut named: Vec<(String, BTreeMap<ModelInput, OutsideModel>)> = Vec::new();
    for (name, call) in calls {
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
    let more = named.len().saturating_sub(MAX_NAMED);
    let each = named.iter().take(MAX_NAMED).map(|(name, inputs)| {
        let inputs = inputs.values().map(|it| format!("{} {}", it.input.name(), it.input.text(it.value)));
        format!("{name} ({})", inputs.collect::<Vec<_>>().join(", "))
    });
    let each: Vec<String> = each.chain((more > 0).then(|| format!("{more} more"))).collect();
    (!each.is_empty()).then(|| list(&each))
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

    fn usable(mean: f64, clusters: Option<Clusters>, barred: f64) -> String {
        Usable { mean, clusters, barred, floor: 3.1 }.text()
    }

    #[test]
    fn gaps_of_some_repetitions_leave_a_share_and_gaps_of_all_a_no() {
        assert_eq!(usable(4.0, None, 0.0), "yes");
        assert_eq!(usable(4.0, None, 0.25), "75 %");
        assert_eq!(usable(4.0, None, 1.0), "no");
        assert_eq!(usable(3.0, None, 0.25), "no");
        let two = Some(Clusters { low: 2.0, high: 4.0, low_share: 0.4 });
        assert_eq!((usable(3.2, two, 0.0), usable(3.2, two, 0.7)), ("60 %".to_owned(), "30 %".to_owned()));
    }

    #[test]
    fn the_inputs_that_lie_furthest_outside_of_the_model_are_named_once_a_call() {
        let call = |inputs: &[(ModelInput, f64)]| CallSummary {
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
        ];
        let named =
            |calls: &[(&str, CallSummary)]| outside(calls.iter().map(|(name, it)| ((*name).to_owned(), it)));
        let text = "TCP (loss 42.00 %, burst ratio 37.6) and QUIC stream (burst ratio 9.0)";
        assert_eq!(named(&calls).as_deref(), Some(text));
        assert_eq!(named(&calls[1..2]), None);
    }
}
