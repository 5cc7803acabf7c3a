//! Whether a flow is usable over its repetitions, and which calls the E-model was not made for: what stands
//! beside a figure.

use std::collections::BTreeMap;

use talkpath_measure::judge::Receiver;
use talkpath_measure::ranking::clusters::{Clusters, clusters};
use talkpath_measure::summary::{CallSummary, Judged, JudgedBy, ModelInput, OutsideModel};

use crate::number::{counted, list};
use crate::receiver::named_receiver;
use crate::verdict::{cluster_gap, written};
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

    /// Whether the flow counts as usable, as `ranking` has it.
    pub(crate) fn is_usable(&self) -> bool {
        self.mean >= self.floor && self.barred < 0.5
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

/// With either receiver, and the second one if there is one: `yes`, or `no / yes` if they differ.
pub(crate) fn with_both(own: &str, other: Option<&str>) -> String {
    match other.filter(|other| *other != own) {
        Some(other) => format!("{own} / {other}"),
        None => own.to_owned(),
    }
}

/// A call over its repetitions, with its own receiver and the second one.
pub(crate) struct UsableCall {
    pub own: Usable,
    pub other: Option<Usable>,
}

impl UsableCall {
    /// Of the flow `name` of `cell`, one copy or copies that are summed up; `None` if it is no call.
    pub(crate) fn of(cell: &CellView<'_>, name: &str) -> Option<Self> {
        let judged = cell.judged(name);
        if judged.values().any(|it| it.by != JudgedBy::Mos) {
            return None;
        }
        let other = Usable::of(&cell.judged_with(name, Receiver::Other));
        Some(Self { own: Usable::of(&judged)?, other })
    }

    pub(crate) fn text(&self) -> String {
        with_both(&self.own.text(), self.other.map(|other| other.text()).as_deref())
    }

    /// Whether it is usable depends on the receiver.
    fn depends(&self) -> bool {
        self.other.is_some_and(|other| other.is_usable() != self.own.is_usable())
    }
}

/// A sentence for each call of `cell` of which the receiver decides whether it is usable, but for the flows
/// that `is_answered` says: an answer speaks of these.
pub(crate) fn receivers_decide(cell: &CellView<'_>, is_answered: impl Fn(&str) -> bool) -> Vec<String> {
    let of = |name: &String| {
        let call = UsableCall::of(cell, name).filter(UsableCall::depends)?;
        let summary = cell.flow(name).and_then(|flow| flow.call.as_deref());
        let own = summary.map_or("adaptive", |call| call.playout.as_str());
        let other =
            summary.and_then(|call| call.other_receiver.as_ref()).map_or("fixed", |it| it.playout.as_str());
        let written = written(JudgedBy::Mos);
        let figure = |it: Usable| {
            format!("MOS {}{}", written.number(it.mean), if it.is_usable() { "" } else { ", not usable" })
        };
        Some(format!(
            "{name}: whether it is usable depends on the receiver: {} with {}; {} with {}.",
            figure(call.own),
            named_receiver(own),
            figure(call.other?),
            named_receiver(other)
        ))
    };
    let mut sentences: Vec<String> = cell.names().filter(|name| !is_answered(name)).filter_map(of).collect();
    let more = sentences.len().saturating_sub(MAX_NAMED);
    sentences.truncate(MAX_NAMED);
    sentences.extend((more > 0).then(|| format!("It does so for {}.", counted(more as u64, "more call"))));
    sentences
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
