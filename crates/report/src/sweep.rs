//! A sweep as a whole: for one judged flow the combinations of the other swept keys, and at each the
//! transports' figures and the answer.
//!
//! ```text
//! cells ─► conditions (differ in the flow's transport alone) ─► one combination each ─► terminal table
//!                                                               on the axes             lines, heat maps
//! ```

pub(crate) mod axis;
pub(crate) mod table;

use std::collections::BTreeMap;

use talkpath_measure::judge::Receiver;
use talkpath_measure::metrics::confidence::Confidence;
use talkpath_measure::ranking::clusters::Clusters;
use talkpath_measure::summary::{AnswerKind, JudgedBy, Spread};

pub(crate) use self::axis::Axis;
use crate::condition::Condition;
use crate::display::Look;
use crate::number::{UNKNOWN, count, counted, list};
use crate::select::vary;
use crate::usable::Usable;
use crate::verdict::{ConditionVerdict, JudgedFlow, Verdict, figure_style};
use crate::view::{CellView, TransportView};

/// With more combinations than this the page has no table for each, and refers to summary.json; chosen: each
/// takes about 2 kB, so that the page stays below 10 MB.
pub(crate) const MAX_ON_PAGE: usize = 2000;

/// One judged flow over the combinations of the other swept keys.
pub(crate) struct Sweep<'a> {
    pub flow: &'a str,
    /// The swept keys beside the flow's transport, each with two or more values.
    pub axes: Vec<Axis>,
    /// The transports, in the order of the cells.
    pub series: Vec<TransportView>,
    /// How the line of each looks; those of one transport differ in dash and marker.
    pub looks: Vec<Look>,
    /// In the order of the cells.
    pub combinations: Vec<Combination<'a>>,
    /// Combinations that lack the key of an axis, and so have no place: runs side by side may have swept
    /// different keys.
    pub without_place: usize,
    /// The flows that run beside it.
    pub beside: Vec<String>,
    /// What the flow is judged by.
    pub by: JudgedBy,
}

/// One value of each axis.
pub(crate) struct Combination<'a> {
    /// Index of the value on each axis.
    pub at: Vec<usize>,
    /// One a series; `None` if its figure is not known.
    pub figures: Vec<Option<Served>>,
    /// `None` if there are not two transports to compare.
    pub verdict: Option<&'a Verdict>,
    /// Index of the series that leads: the answer's first, or without an answer the one with the best mean.
    pub leader: Option<usize>,
}

/// How one transport serves the flow at a combination.
pub(crate) struct Served {
    /// The judged figure over the repetitions.
    pub spread: Spread,
    /// The two clusters into which they fall, if they do.
    clusters: Option<Clusters>,
    /// Whether it is usable, with the receiver of the figure; a sweep may have several floors.
    pub own: Usable,
    /// The same with the second receiver of a call, if there is one.
    other: Option<Usable>,
}

impl<'a> Sweep<'a> {
    /// `None` if there is but one combination with a place on every axis, or nothing that the flow is judged
    /// by.
    pub(crate) fn new(judged: &'a JudgedFlow<'a>) -> Option<Self> {
        let (flow, conditions) = (judged.flow, &judged.conditions);
        let layout = Layout::new(judged);
        let mut confidence = Confidence::default();
        let combination = |judged| layout.combination(judged, &mut confidence);
        let combinations: Vec<Combination<'a>> = conditions.iter().filter_map(combination).collect();
        if combinations.len() < 2 {
            return None;
        }
        let by = conditions.iter().find_map(|judged| layout.judged_by(judged.condition))?;
        let without_place = conditions.len() - combinations.len();
        let beside = conditions.first().map(|judged| judged.condition.other_flows(flow)).unwrap_or_default();
        let Layout { axes, series, .. } = layout;
        let mut looks: Vec<Look> = series.iter().map(|view| Look::from(view.display)).collect();
        vary(looks.iter_mut());
        Some(Self { flow, axes, series, looks, combinations, without_place, beside, by })
    }

    /// What is to be reached, of each figure.
    pub(crate) fn floors(&self) -> impl Iterator<Item = f64> {
        self.combinations
            .iter()
            .flat_map(|combination| combination.figures.iter().flatten())
            .map(|served| served.own.floor)
    }

    /// What is to be reached, if it is the same everywhere.
    pub(crate) fn floor(&self) -> Option<f64> {
        let first = self.floors().next()?;
        self.floors().all(|floor| floor.total_cmp(&first).is_eq()).then_some(first)
    }

    /// Whether there are more combinations than a page has tables for.
    pub(crate) fn is_large(&self) -> bool {
        self.combinations.len() > MAX_ON_PAGE
    }

    /// Where combinations are that lines are not drawn for: `are in the table below`.
    pub(crate) fn elsewhere(&self) -> &'static str {
        match (self.is_large(), self.is_compared(), self.has_answers()) {
            (true, ..) => "are in summary.json",
            (_, true, _) => "are under Transports compared; the table below has the best of each",
            (_, _, true) => "are in the table below",
            // Runs side by side.
            _ => "are under Transports compared",
        }
    }

    /// What has no place in a figure, as the end of its caption.
    pub(crate) fn placeless(&self) -> String {
        let keys = || list(&self.axes.iter().map(|axis| axis.key.clone()).collect::<Vec<_>>());
        match self.without_place as u64 {
            0 => String::new(),
            1 => format!(" 1 more combination does not set all of {} and is not drawn.", keys()),
            n => format!(" {} more combinations do not set all of {} and are not drawn.", count(n), keys()),
        }
    }

    /// Whether there is one answer at each combination: the best transport, or how the only one does. Several
    /// runs side by side have none.
    pub(crate) fn has_answers(&self) -> bool {
        self.is_compared() || self.series.len() == 1
    }

    /// Whether transports are compared at all.
    pub(crate) fn is_compared(&self) -> bool {
        self.combinations.iter().any(|combination| combination.verdict.is_some())
    }

    /// The answers in one sentence, by how often each came out.
    pub(crate) fn headline(&self) -> String {
        let total = self.combinations.len() as u64;
        let keys: Vec<String> = self.axes.iter().map(|axis| axis.key.clone()).collect();
        let over = match &keys[..] {
            [only] => format!("{} of {only}", counted(total, "value")),
            keys => format!("{} of {}", counted(total, "combination"), list(keys)),
        };
        if !self.is_compared() {
            return format!("{} over {over}: {}.", self.flow, self.extremes());
        }
        let parts: Vec<String> = self
            .tally()
            .into_iter()
            .map(|(outcome, n)| {
                let n = count(n);
                match outcome {
                    Outcome::Distinct(name) => format!("{name} is best in {n}"),
                    Outcome::Alike(names) => format!("{names}, alike, in {n}"),
                    Outcome::Undecided => format!("undecided in {n}"),
                    Outcome::DependsOnReceiver => format!("it depends on the receiver in {n}"),
                    Outcome::Unusable => format!("nothing usable in {n}"),
                    Outcome::Unknown => format!("no answer in {n}"),
                }
            })
            .collect();
        format!("{} over {over}: {}.{}", self.flow, parts.join("; "), self.what_would_decide())
    }

    /// Where one repetition left the best open, how to go on.
    fn what_would_decide(&self) -> &'static str {
        let is_open = |verdict: &Verdict| {
            matches!(verdict.answer.outcome, AnswerKind::Undecided) && verdict.ranking.more.is_none()
        };
        if self.combinations.iter().filter_map(|combination| combination.verdict).any(is_open) {
            " One repetition does not tell which is best; try --repeat 20."
        } else {
            ""
        }
    }

    /// How often each answer came out: the most frequent first, then what is no name.
    pub(crate) fn tally(&self) -> Vec<(Outcome, u64)> {
        let mut tally: BTreeMap<Outcome, u64> = BTreeMap::new();
        for combination in &self.combinations {
            *tally.entry(combination.outcome()).or_default() += 1;
        }
        let mut tally: Vec<(Outcome, u64)> = tally.into_iter().collect();
        tally.sort_by_key(|(outcome, n)| (outcome.rank(), u64::MAX - n));
        tally
    }

    /// For a flow over one transport: from where to where its figure goes, and how often it is usable. Of two
    /// outcomes both count, and one that is not usable makes the cell unusable.
    fn extremes(&self) -> String {
        let each = || self.combinations.iter().flat_map(|combination| combination.figures.iter().flatten());
        let range = range(self.by, each().map(Served::outcomes)).unwrap_or_else(|| UNKNOWN.to_owned());
        let style = figure_style(self.by);
        let head = format!("{} {}", style.head.0, style.head.1).trim().to_owned();
        let below = each().filter(|served| served.usable() < 1.0 || served.depends()).count() as u64;
        let depends = match each().filter(|served| served.depends()).count() as u64 {
            0 => String::new(),
            n => format!("; in {} it depends on the receiver", count(n)),
        };
        match self.by {
            JudgedBy::Goodput => format!("{head} {range}"),
            JudgedBy::Mos | JudgedBy::InTime => {
                format!(
                    "{head} {range}, {} usable{depends}",
                    if below == 0 { "all".to_owned() } else { self.share_usable(below) }
                )
            }
        }
    }

    fn share_usable(&self, below: u64) -> String {
        let all = self
            .combinations
            .iter()
            .map(|combination| combination.figures.iter().flatten().count() as u64)
            .sum::<u64>();
        format!("{} of {}", count(all - below), counted(all, "cell"))
    }
}

/// On which a sweep's figures are laid out: the axes, and at each combination of their values the series.
struct Layout<'a> {
    flow: &'a str,
    axes: Vec<Axis>,
    /// One an axis: the index of each value on it, by its JSON.
    places: Vec<BTreeMap<String, usize>>,
    series: Vec<TransportView>,
}

impl<'a> Layout<'a> {
    fn new(judged: &'a JudgedFlow<'a>) -> Self {
        let flow = judged.flow;
        let conditions = || judged.conditions.iter().map(|judged| judged.condition);
        let axes = Axis::all(conditions().flat_map(|condition| condition.common_pairs(flow)));
        let mut series: Vec<TransportView> = Vec::new();
        for cell in conditions().flat_map(|condition| &condition.cells) {
            let view = cell.transport(flow);
            if series.iter().all(|known| known.label != view.label) {
                series.push(view);
            }
        }
        Self { flow, places: axes.iter().map(Axis::places).collect(), axes, series }
    }

    /// Index of the condition's value on each axis; `None` if it lacks the key of one.
    fn place(&self, condition: &Condition<'_>) -> Option<Vec<usize>> {
        let index = |(axis, places): (&Axis, &BTreeMap<String, usize>)| {
            let (_, value) = condition.common_pairs(self.flow).find(|(key, _)| **key == axis.key)?;
            places.get(&value.to_string()).copied()
        };
        self.axes.iter().zip(&self.places).map(index).collect()
    }

    /// Index of the series that a cell belongs to.
    fn series_of(&self, cell: &CellView<'_>) -> Option<usize> {
        let label = cell.transport(self.flow).label;
        self.series.iter().position(|view| view.label == label)
    }

    /// What the flow is judged by, under a condition with a place.
    fn judged_by(&self, condition: &Condition<'_>) -> Option<JudgedBy> {
        self.place(condition)?;
        condition.cells.iter().find_map(|cell| Some(cell.judged_figures(self.flow).values().next()?.by))
    }

    /// `None` if it has no place on an axis.
    fn combination(
        &self,
        judged: &'a ConditionVerdict<'a>,
        confidence: &mut Confidence,
    ) -> Option<Combination<'a>> {
        let ConditionVerdict { condition, verdict } = judged;
        let at = self.place(condition)?;
        let figures = self.figures(judged, confidence);
        // The verdict sums its means in another order than `spread`: they are the same but for the last bit.
        let leader = match verdict {
            Some(verdict) => condition.cells.get(verdict.leader_cell).and_then(|cell| self.series_of(cell)),
            None => best_of(&figures),
        };
        Some(Combination { at, figures, verdict: verdict.as_deref(), leader })
    }

    /// How each series serves the flow under a condition.
    fn figures(&self, judged: &ConditionVerdict<'_>, confidence: &mut Confidence) -> Vec<Option<Served>> {
        let mut figures: Vec<Option<Served>> = self.series.iter().map(|_| None).collect();
        for (index, cell) in judged.condition.cells.iter().enumerate() {
            let repetitions = cell.judged_figures(self.flow);
            let values: Vec<f64> = repetitions.values().map(|judged| judged.worst).collect();
            let Some((series, own)) = self.series_of(cell).zip(Usable::new(&repetitions)) else { continue };
            let Some(spread) = confidence.spread(&values) else { continue };
            // Goodputs are held against the best transport's.
            let clusters = match &judged.verdict {
                Some(verdict) => verdict.clusters(index),
                None => own.clusters,
            };
            let other = Usable::new(&cell.judged_figures_with(self.flow, Receiver::Other));
            figures[series] = Some(Served { spread, clusters, own, other });
        }
        figures
    }
}

/// What came out at a combination, as far as it can be counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Distinct(String),
    Alike(String),
    Undecided,
    DependsOnReceiver,
    Unusable,
    Unknown,
}

impl Outcome {
    /// The word of `summary.json`.
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

    const fn rank(&self) -> u8 {
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

impl Served {
    /// The share of the repetitions that are usable.
    pub(crate) fn usable(&self) -> f64 {
        self.own.share
    }

    /// Whether one of two receivers alone makes it usable.
    pub(crate) fn depends(&self) -> bool {
        self.other.is_some_and(|other| other.is_usable() != self.own.is_usable())
    }

    /// The lowest and highest outcome.
    fn outcomes(&self) -> (f64, f64) {
        outcomes(self.spread.mean, self.clusters)
    }
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

    /// The lowest and highest outcome of the best transport, or of the only one.
    pub(crate) fn outcomes_of_best(&self) -> Option<(f64, f64)> {
        Some(outcomes(self.best()?, self.led().and_then(|served| served.clusters)))
    }

    /// Whether one of two receivers alone makes the best transport, or the only one, usable.
    pub(crate) fn best_depends(&self) -> bool {
        self.led().is_some_and(Served::depends)
    }

    /// The share of the repetitions in which the best transport, or the only one, is usable.
    pub(crate) fn usable_of_best(&self) -> Option<f64> {
        Some(self.led()?.usable())
    }

    /// The series that leads.
    fn led(&self) -> Option<&Served> {
        self.figures[self.leader?].as_ref()
    }

    /// The same as text, without a unit: `4.38`, or `2.10 or 4.33` of two outcomes.
    pub(crate) fn figure_of_best(&self, by: JudgedBy) -> Option<String> {
        let style = figure_style(by);
        let (low, high) = self.outcomes_of_best()?;
        let is_one = low.total_cmp(&high).is_eq();
        let low = style.number(low);
        Some(if is_one { low } else { format!("{low} or {}", style.number(high)) })
    }

    /// The mean of the best transport, or of the only one.
    pub(crate) fn best(&self) -> Option<f64> {
        match self.verdict {
            Some(verdict) => Some(verdict.ranking.standings[verdict.ranking.leader].mean),
            None => self.figures.iter().flatten().map(|served| served.spread.mean).max_by(f64::total_cmp),
        }
    }
}

/// The lowest and highest outcome of repetitions: both are their `mean`, unless they fall into two clusters:
/// then no repetition has the mean.
fn outcomes(mean: f64, clusters: Option<Clusters>) -> (f64, f64) {
    clusters.map_or((mean, mean), |two| (two.low, two.high))
}

/// The lowest to the highest of `outcomes`, which are (lowest, highest) each; `None` without any.
fn range(by: JudgedBy, outcomes: impl Iterator<Item = (f64, f64)>) -> Option<String> {
    let (low, high) = outcomes.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let style = figure_style(by);
    Some(match (style.number(low), style.number(high)) {
        (low, high) if low == high => low,
        (low, high) => format!("{low} to {high}"),
    })
}

/// Index of the best mean.
fn best_of(figures: &[Option<Served>]) -> Option<usize> {
    let known =
        figures.iter().enumerate().filter_map(|(at, served)| Some((at, served.as_ref()?.spread.mean)));
    known.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(at, _)| at)
}
