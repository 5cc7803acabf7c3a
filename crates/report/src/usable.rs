//! Whether a flow is usable over its repetitions, with each receiver of a call.

use std::collections::BTreeMap;

use talkpath_measure::judge::Receiver;
use talkpath_measure::ranking::clusters::{Clusters, clusters};
use talkpath_measure::summary::{JudgedBy, JudgedFigure};

use crate::number::counted;
use crate::rated::barred;
use crate::receiver::named_receiver;
use crate::verdict::{cluster_gap, figure_style};
use crate::view::CellView;

/// Whether one flow is usable, over its repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usable {
    /// Mean of the figure that the flow is judged by.
    pub mean: f64,
    /// What the figure has to reach.
    pub floor: f64,
    /// The two clusters into which the repetitions fall, if they do.
    pub clusters: Option<Clusters>,
    /// Share of the repetitions that gaps bar.
    barred: f64,
    /// Share of the repetitions that are usable: those that gaps do not bar, of all if their mean reaches the
    /// floor, or of the higher cluster where the floor divides two.
    pub share: f64,
}

impl Usable {
    /// `None` without repetitions.
    pub(crate) fn new(judged: &BTreeMap<u64, JudgedFigure>) -> Option<Self> {
        let JudgedFigure { by, floor, .. } = *judged.values().next()?;
        let figures: Vec<f64> = judged.values().map(|judged| judged.worst).collect();
        let mean = figures.iter().sum::<f64>() / figures.len() as f64;
        let clusters = clusters(&figures, cluster_gap(by, &figures));
        let divided = clusters.filter(|found| found.low < floor && floor <= found.high);
        let reaches = |judged: &JudgedFigure| match divided {
            // Of two means every figure belongs to the nearer one.
            Some(Clusters { low, high, .. }) => judged.worst > f64::midpoint(low, high),
            None => mean >= floor,
        };
        let usable = judged.values().filter(|judged| !judged.barred && reaches(judged)).count();
        let share = usable as f64 / figures.len() as f64;
        Some(Self { mean, floor, clusters, barred: barred(judged), share })
    }

    /// `yes`, `no`, or the share of the repetitions that are usable, where the floor divides two outcomes or
    /// gaps bar some.
    pub(crate) fn text(&self) -> String {
        match self.share {
            share if share >= 1.0 => "yes".to_owned(),
            share if share <= 0.0 => "no".to_owned(),
            share => format!("{} %", (100.0 * share).round()),
        }
    }

    /// Whether the flow counts as usable, as `ranking` has it.
    pub(crate) fn is_usable(&self) -> bool {
        self.reaches_floor() && self.barred < 0.5
    }

    /// Whether gaps alone make it unusable: its figure would do.
    pub(crate) fn is_barred(&self) -> bool {
        self.reaches_floor() && !self.is_usable()
    }

    fn reaches_floor(&self) -> bool {
        self.mean >= self.floor
    }
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
    pub(crate) fn new(cell: &CellView<'_>, name: &str) -> Option<Self> {
        let judged = cell.judged_figures(name);
        if judged.values().any(|judged| judged.by != JudgedBy::Mos) {
            return None;
        }
        let other = Usable::new(&cell.judged_figures_with(name, Receiver::Other));
        Some(Self { own: Usable::new(&judged)?, other })
    }

    pub(crate) fn text(&self) -> String {
        with_both(&self.own.text(), self.other.map(|other| other.text()).as_deref())
    }

    /// Whether it is usable depends on the receiver.
    fn depends(&self) -> bool {
        self.other.is_some_and(|other| other.is_usable() != self.own.is_usable())
    }
}

/// A sentence for each call of `cell` that is usable with one receiver alone. Flows for which `is_answered`
/// holds are left out: their answer says it.
pub(crate) fn receivers_decide(cell: &CellView<'_>, is_answered: impl Fn(&str) -> bool) -> Vec<String> {
    let sentence = |name: &String| {
        let call = UsableCall::new(cell, name).filter(UsableCall::depends)?;
        let summary = cell.flow(name).and_then(|flow| flow.call.as_deref());
        let own = summary.map_or("adaptive", |call| call.playout.as_str());
        let other = summary
            .and_then(|call| call.other_receiver.as_ref())
            .map_or("fixed", |other| other.playout.as_str());
        let style = figure_style(JudgedBy::Mos);
        let figure = |usable: Usable| {
            format!(
                "MOS {}{}",
                style.number(usable.mean),
                if usable.is_usable() { "" } else { ", not usable" }
            )
        };
        Some(format!(
            "{name}: whether it is usable depends on the receiver: {} with {}; {} with {}.",
            figure(call.own),
            named_receiver(own),
            figure(call.other?),
            named_receiver(other)
        ))
    };
    let mut sentences: Vec<String> =
        cell.names().filter(|name| !is_answered(name)).filter_map(sentence).collect();
    let more = sentences.len().saturating_sub(MAX_NAMED);
    sentences.truncate(MAX_NAMED);
    sentences.extend((more > 0).then(|| format!("It does so for {}.", counted(more as u64, "more call"))));
    sentences
}

/// Calls that are named one by one; chosen: as many as a comparison has transports.
const MAX_NAMED: usize = 6;

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
