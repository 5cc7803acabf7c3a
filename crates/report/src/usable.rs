//! Says whether a flow is usable over its repetitions, with each receiver of a call.

use std::collections::BTreeMap;

use talkpath_measure::judge::Receiver;
use talkpath_measure::ranking::clusters::{Clusters, clusters};
use talkpath_measure::summary::{JudgedBy, JudgedFigure};

use crate::number::counted;
use crate::rated::barred;
use crate::receiver::named_receiver;
use crate::verdict::{cluster_gap, figure_style};
use crate::view::CellView;

/// The most calls with a sentence. The others are counted. We chose 6 because a comparison has about as many
/// transports.
const MAX_NAMED: usize = 6;

/// Whether one flow is usable, over its repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usable {
    /// The mean of the judged figure.
    pub mean: f64,
    /// The least judged figure with which the flow is usable.
    pub floor: f64,
    /// The two clusters of the repetitions. `None` if the repetitions do not fall into two clusters.
    pub clusters: Option<Clusters>,
    /// The share of the repetitions that gaps bar.
    barred: f64,
    /// The share of the repetitions that are usable. Gaps bar none of these. If the floor lies between two
    /// clusters, the repetitions of the higher cluster are usable. Otherwise all of them are usable if their
    /// mean reaches the floor.
    pub share: f64,
}

impl Usable {
    /// Returns `None` if there is no repetition.
    pub(crate) fn new(judged: &BTreeMap<u64, JudgedFigure>) -> Option<Self> {
        let first = judged.values().next()?;
        let floor = first.floor;
        let figures: Vec<f64> = judged.values().map(|judged| judged.worst).collect();
        let mean = figures.iter().sum::<f64>() / figures.len() as f64;
        let clusters = clusters(&figures, cluster_gap(first.by, &figures));
        let divided_by_floor = clusters.filter(|clusters| clusters.low < floor && floor <= clusters.high);
        let reaches_floor = |figure: f64| match divided_by_floor {
            // A figure belongs to the cluster whose mean is nearer.
            Some(clusters) => figure > f64::midpoint(clusters.low, clusters.high),
            None => mean >= floor,
        };
        let usable = judged.values().filter(|judged| !judged.barred && reaches_floor(judged.worst)).count();
        let share = usable as f64 / figures.len() as f64;
        Some(Self { mean, floor, clusters, barred: barred(judged), share })
    }

    /// `yes`, `no`, or the share of the repetitions that are usable if some are and some are not.
    pub(crate) fn text(&self) -> String {
        if self.share >= 1.0 {
            "yes".to_owned()
        } else if self.share <= 0.0 {
            "no".to_owned()
        } else {
            format!("{} %", (100.0 * self.share).round())
        }
    }

    /// The share of the repetitions that gaps bar.
    pub(crate) const fn barred(&self) -> f64 {
        self.barred
    }

    /// Whether the flow counts as usable, by the rule of `measure::ranking`.
    pub(crate) fn is_usable(&self) -> bool {
        self.reaches_floor() && self.barred < 0.5
    }

    /// Whether the flow is not usable because of gaps alone, although its mean reaches the floor.
    pub(crate) fn is_barred(&self) -> bool {
        self.reaches_floor() && !self.is_usable()
    }

    fn reaches_floor(&self) -> bool {
        self.mean >= self.floor
    }
}

/// Joins the texts of both receivers: `yes` if the texts are the same, `no / yes` if they differ. `second` is
/// `None` if there is no second receiver.
pub(crate) fn with_both(own: &str, second: Option<&str>) -> String {
    match second {
        Some(second) if second != own => format!("{own} / {second}"),
        _ => own.to_owned(),
    }
}

/// Whether a call is usable, with each of its receivers.
pub(crate) struct UsableCall {
    /// With the scenario's receiver, or with the adaptive one if the scenario names none.
    pub own: Usable,
    /// With the first of the other receivers that disagrees, or with the first one if all agree. `None` if
    /// there is no other receiver.
    pub second: Option<Usable>,
    /// The receiver of `second`.
    pub second_receiver: Receiver,
}

impl UsableCall {
    /// Judges the flow `name` of `cell`: one flow, one copy, one direction, or copies that are summed up.
    /// Returns `None` if the flow is not a call that is rated.
    pub(crate) fn new(cell: &CellView<'_>, name: &str) -> Option<Self> {
        Self::judged_by(|receiver| cell.judged_figures_with(name, receiver))
    }

    /// Judges the call that the flow `name` of `cell` belongs to: of two directions the worse one counts.
    fn of_conversation(cell: &CellView<'_>, name: &str) -> Option<Self> {
        Self::judged_by(|receiver| cell.conversation_figures_with(name, receiver))
    }

    fn judged_by(figures: impl Fn(Receiver) -> BTreeMap<u64, JudgedFigure>) -> Option<Self> {
        let judged = figures(Receiver::Own);
        if judged.values().any(|judged| judged.by != JudgedBy::Mos) {
            return None;
        }
        let own = Usable::new(&judged)?;
        let (second_receiver, second) = second_opinion(figures, &own);
        Some(Self { own, second, second_receiver })
    }

    /// `yes`, `no`, a share of the repetitions, or `no / yes` if the receivers differ.
    pub(crate) fn text(&self) -> String {
        let second = self.second.map(|second| second.text());
        with_both(&self.own.text(), second.as_deref())
    }

    /// Whether the call is usable with one of two receivers and not with the other.
    fn depends_on_receiver(&self) -> bool {
        self.second.is_some_and(|second| second.is_usable() != self.own.is_usable())
    }
}

/// Judges a flow with the other receivers, by the `figures` with each. Returns the first one that disagrees
/// with `own` on whether the call is usable, or else the first one.
pub(crate) fn second_opinion(
    figures: impl Fn(Receiver) -> BTreeMap<u64, JudgedFigure>,
    own: &Usable,
) -> (Receiver, Option<Usable>) {
    let judge = |receiver| Usable::new(&figures(receiver));
    let second = judge(Receiver::Other);
    let disagrees = |other: &Usable| other.is_usable() != own.is_usable();
    match (second, judge(Receiver::Patient)) {
        (Some(second), Some(patient)) if !disagrees(&second) && disagrees(&patient) => {
            (Receiver::Patient, Some(patient))
        }
        _ => (Receiver::Other, second),
    }
}

/// Writes a sentence for each call of `cell` with two directions: such a call is as good as its worse
/// direction. A flow for which `is_answered` holds has no sentence, because its answer says the same.
pub(crate) fn conversations(cell: &CellView<'_>, is_answered: impl Fn(&str) -> bool) -> Vec<String> {
    let names = cell.groups().filter(|name| !is_answered(name));
    let sentences = names.filter_map(|name| conversation(cell, name)).collect();
    first_named(sentences, |more| format!("{more} of two directions are in summary.json under groups."))
}

/// Keeps the first [`MAX_NAMED`] sentences, and adds what `others` writes of the number of the others: `3
/// more calls`.
fn first_named(mut sentences: Vec<String>, others: impl Fn(&str) -> String) -> Vec<String> {
    let more = sentences.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        sentences.truncate(MAX_NAMED);
        sentences.push(others(&counted(more as u64, "more call")));
    }
    sentences
}

/// Writes the sentence for the call `name`. Returns `None` if it does not have two directions, or no score.
fn conversation(cell: &CellView<'_>, name: &str) -> Option<String> {
    cell.flow(&format!("{name}-up")).and(cell.flow(&format!("{name}-down")))?;
    let judged = cell.judged_figures(name);
    let by = judged.values().next()?.by;
    if by != JudgedBy::Mos {
        return None;
    }
    let usable = Usable::new(&judged)?;
    let repetitions = judged.len() as u64;
    let is_usable = match usable.share {
        share if share >= 1.0 => "usable".to_owned(),
        share if share <= 0.0 && usable.is_barred() => "not usable, because of its gaps".to_owned(),
        share if share <= 0.0 => "not usable".to_owned(),
        _ => format!("usable in {} of {}", usable.text(), counted(repetitions, "repetition")),
    };
    let (mean, most) = if repetitions > 1 { (" on average", " in most repetitions") } else { ("", "") };
    Some(format!(
        "{name}: MOS {}{mean} in the worse direction ({}{most}), {is_usable}.",
        figure_style(by).number(usable.mean),
        cell.resolve(name)?
    ))
}

/// Writes a sentence for each call of `cell` that is usable with one of two receivers and not with the other.
/// A flow for which `is_answered` holds has no sentence, because its answer says the same. The two
/// directions of a call have one sentence.
pub(crate) fn receivers_decide(cell: &CellView<'_>, is_answered: impl Fn(&str) -> bool) -> Vec<String> {
    let is_second = |name: &str| name.ends_with("-down") && cell.other_direction(name).is_some();
    let names = cell.names().filter(|name| !is_answered(name) && !is_second(name));
    let sentences = names.filter_map(|name| receiver_decides(cell, name)).collect();
    first_named(sentences, |more| format!("It does so for {more}."))
}

/// Writes the sentence for the call `name`. Returns `None` if both receivers agree.
fn receiver_decides(cell: &CellView<'_>, name: &str) -> Option<String> {
    let usable = UsableCall::of_conversation(cell, name).filter(UsableCall::depends_on_receiver)?;
    let score = |usable: Usable| {
        let mos = figure_style(JudgedBy::Mos).number(usable.mean);
        if usable.is_usable() { format!("MOS {mos}") } else { format!("MOS {mos}, not usable") }
    };
    // Copies that are summed up have no summary of their own.
    let call = cell.flow(name).and_then(|flow| flow.call.as_deref());
    let own_playout = call.map_or("adaptive", |call| call.playout.as_str());
    let second = call.and_then(|call| call.receiver(usable.second_receiver));
    let second_playout = second.map_or("fixed", |second| second.playout.as_str());
    let conversation = if cell.other_direction(name).is_some() { name.strip_suffix("-up") } else { None };
    Some(format!(
        "{}: whether it is usable depends on the receiver: {} with {}; {} with {}.",
        conversation.unwrap_or(name),
        score(usable.own),
        named_receiver(own_playout),
        score(usable.second?),
        named_receiver(second_playout)
    ))
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::Basis;

    use super::*;

    /// Repetitions with these scores, each with whether gaps bar it.
    fn usable(repetitions: impl Iterator<Item = (f64, bool)>) -> String {
        let judged = |(number, (worst, barred)): (usize, (f64, bool))| {
            let judged = JudgedFigure {
                by: JudgedBy::Mos,
                median: worst,
                worst,
                worst_flow: "call".to_owned(),
                floor: 3.1,
                basis: Basis::OneWay,
                direction: None,
                barred,
                longest_gap_ms: None,
            };
            (number as u64, judged)
        };
        Usable::new(&repetitions.enumerate().map(judged).collect()).unwrap().text()
    }

    #[test]
    fn gaps_of_some_repetitions_leave_a_share_and_gaps_of_all_a_no() {
        let barred = |mos, barred: usize| usable((0..20).map(move |number| (mos, number < barred)));
        assert_eq!(barred(4.0, 0), "yes");
        assert_eq!(barred(4.0, 5), "75 %");
        assert_eq!(barred(4.0, 20), "no");
        assert_eq!(barred(3.0, 5), "no");
    }

    #[test]
    fn repetitions_that_are_both_low_and_barred_are_counted_once_and_those_of_either_kind_both() {
        // 8 of 20 are in the lower cluster.
        let two = |barred: core::ops::Range<usize>| {
            usable((0..20).map(move |number| (if number < 8 { 2.0 } else { 4.0 }, barred.contains(&number))))
        };
        assert_eq!(two(0..0), "60 %");
        assert_eq!(two(0..8), "60 %", "gaps bar the lower ones alone");
        assert_eq!(two(12..20), "20 %", "gaps bar higher ones alone");
        assert_eq!(two(4..12), "40 %");
    }
}
