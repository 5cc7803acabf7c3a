//! Whether a flow is usable over its repetitions, with each receiver of a call.

use std::collections::BTreeMap;

use talkpath_measure::judge::Receiver;
use talkpath_measure::ranking::clusters::{Clusters, clusters};
use talkpath_measure::summary::{Judged, JudgedBy};

use crate::number::counted;
use crate::rated::barred;
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
}
