//! The results of the transports at one combination of swept values.

use std::collections::BTreeMap;

use talkpath_measure::ranking::clusters::Clusters;
use talkpath_measure::summary::{AnswerKind, JudgedBy, Spread};

use crate::usable::Usable;
use crate::verdict::{Verdict, figure_style};

/// One value of each axis, and the results of the transports there.
pub(crate) struct Combination<'a> {
    /// The index of the value on each axis.
    pub value_indices: Vec<usize>,
    /// The result of each series. `None` if the figure of the series is not known.
    pub results: Vec<Option<SeriesResult>>,
    /// The kind of the results' figures.
    pub judged_by: JudgedBy,
    /// For each axis that is a loss, the share of the packets on its links that were lost. `None` for other
    /// axes, and if the run does not have the links.
    pub lost_on_links: Vec<Option<f64>>,
    /// `None` if there are not two transports to compare.
    pub verdict: Option<&'a Verdict>,
    /// The index of the series that leads: the first in the verdict. Without a verdict it is the series with
    /// the best mean.
    pub leader: Option<usize>,
}

/// The judged figure of one transport at a combination.
pub(crate) struct SeriesResult {
    /// The judged figure over the repetitions.
    pub spread: Spread,
    /// The two clusters of the repetitions. `None` if the repetitions do not fall into two clusters.
    pub clusters: Option<Clusters>,
    /// Whether the flow is usable, with the receiver that the figure is from.
    pub usable: Usable,
    /// Whether a call is usable with its second receiver. `None` if there is no second receiver.
    pub usable_with_second: Option<Usable>,
    /// The judged figure of each repetition.
    pub figures: BTreeMap<u64, f64>,
    /// The scale of a call's score. Empty if it has none.
    pub scale: String,
    /// The mean score of a call that is judged by what is heard, because calls of other combinations have no
    /// score. `None` if it has none, and if calls are judged by their scores.
    pub score: Option<f64>,
    /// The goodput of the flow.
    pub goodput_bps: Option<f64>,
    /// What the flow sends, with the headers of UDP and IPv4. `None` if it is not over UDP.
    pub sent_bps: Option<f64>,
}

/// The lowest and the highest figure of several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FigureRange {
    pub lowest: f64,
    pub highest: f64,
}

/// The outcome of the comparison at a combination. Equal outcomes can be counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// The named transport is best.
    Distinct(String),
    /// The named transports are alike.
    Alike(String),
    Undecided,
    DependsOnReceiver,
    Unusable,
    /// The run is not valid, or nothing is compared.
    Unknown,
}

impl Combination<'_> {
    pub(crate) fn outcome(&self) -> Outcome {
        let Some(verdict) = self.verdict.filter(|verdict| verdict.is_valid) else { return Outcome::Unknown };
        match verdict.answer.outcome {
            AnswerKind::Distinct => Outcome::Distinct(verdict.best_by_name.clone()),
            AnswerKind::Alike => Outcome::Alike(verdict.best_by_name.clone()),
            AnswerKind::Undecided => Outcome::Undecided,
            AnswerKind::Unusable => Outcome::Unusable,
            AnswerKind::DependsOnReceiver => Outcome::DependsOnReceiver,
        }
    }

    /// The indices of the values on some of the axes.
    pub(crate) fn values_on(&self, axes: &[usize]) -> Vec<usize> {
        axes.iter().map(|&axis| self.value_indices[axis]).collect()
    }

    /// The result of the best transport, or of the only one.
    pub(crate) fn best_result(&self) -> Option<&SeriesResult> {
        self.results[self.leader?].as_ref()
    }

    /// The mean of the best transport, or of the only one.
    pub(crate) fn best_mean(&self) -> Option<f64> {
        match self.verdict.filter(|verdict| verdict.judged_by == self.judged_by) {
            Some(verdict) => Some(verdict.ranking.standings[verdict.ranking.leader].mean),
            None => self.results.iter().flatten().map(|result| result.spread.mean).max_by(f64::total_cmp),
        }
    }

    /// The range of the best transport, or of the only one.
    pub(crate) fn best_range(&self) -> Option<FigureRange> {
        let clusters = self.best_result().and_then(|result| result.clusters);
        Some(FigureRange::of_repetitions(self.best_mean()?, clusters))
    }

    /// Writes the figure of the best transport, or of the only one, without its unit: `4.38`. If the
    /// repetitions fall into two clusters, it writes both: `2.10 or 4.33`.
    pub(crate) fn best_figure(&self, judged_by: JudgedBy) -> Option<String> {
        let style = figure_style(judged_by);
        let FigureRange { lowest, highest } = self.best_range()?;
        if lowest.total_cmp(&highest).is_eq() {
            return Some(style.number(lowest));
        }
        Some(format!("{} or {}", style.number(lowest), style.number(highest)))
    }
}

impl SeriesResult {
    pub(crate) fn usable_share(&self) -> f64 {
        self.usable.share
    }

    pub(crate) fn is_usable_always(&self) -> bool {
        self.usable_share() >= 1.0
    }

    /// Whether the flow is usable with one of two receivers and not with the other.
    pub(crate) fn depends_on_receiver(&self) -> bool {
        self.usable_with_second.is_some_and(|second| second.is_usable() != self.usable.is_usable())
    }

    pub(crate) fn range(&self) -> FigureRange {
        FigureRange::of_repetitions(self.spread.mean, self.clusters)
    }
}

impl FigureRange {
    /// The range of several repetitions. It is their mean alone, unless the repetitions fall into two
    /// clusters. Then no repetition has the mean, and the range goes from the lower cluster to the higher
    /// one.
    fn of_repetitions(mean: f64, clusters: Option<Clusters>) -> Self {
        match clusters {
            Some(clusters) => Self { lowest: clusters.low, highest: clusters.high },
            None => Self { lowest: mean, highest: mean },
        }
    }

    /// The range that includes both ranges.
    pub(crate) fn including(self, other: Self) -> Self {
        Self { lowest: self.lowest.min(other.lowest), highest: self.highest.max(other.highest) }
    }

    /// Writes the range without the unit: `2.10 to 4.33`. If both numbers look the same, it writes one.
    pub(crate) fn text(&self, judged_by: JudgedBy) -> String {
        let style = figure_style(judged_by);
        let (lowest, highest) = (style.number(self.lowest), style.number(self.highest));
        if lowest == highest { lowest } else { format!("{lowest} to {highest}") }
    }
}

impl Outcome {
    /// The word for the outcome in `summary.json`.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Distinct(_) => "distinct",
            Self::Alike(_) => "alike",
            Self::Undecided => "undecided",
            Self::DependsOnReceiver => "depends-on-receiver",
            Self::Unusable => "unusable",
            Self::Unknown => "–",
        }
    }

    /// The place of the outcome in a list of outcomes.
    pub(super) const fn rank(&self) -> u8 {
        match self {
            Self::Distinct(_) => 0,
            Self::Alike(_) => 1,
            Self::Undecided => 2,
            Self::DependsOnReceiver => 3,
            Self::Unusable => 4,
            Self::Unknown => 5,
        }
    }
}
