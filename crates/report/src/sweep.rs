//! A sweep: one judged flow at each combination of the swept values.
//!
//! An *axis* is a swept key other than the flow's transport. A *combination* is one value of each axis. At
//! each combination the flow runs over several transports, and each transport is a *series* of the sweep. The
//! *answer* of a combination names its best transport.
//!
//! ```text
//! cells ─► conditions ─► combinations ─┬► table (terminal, page)
//!          (layout.rs)                 └► charts: lines, heat maps
//! ```
//!
//! Begin to read with [`Sweep`], and then with [`Combination`].

pub(crate) mod axis;
mod choice;
mod combination;
mod equal_rate;
mod layout;
pub(crate) mod table;

use std::collections::BTreeMap;

use talkpath_measure::summary::{AnswerKind, JudgedBy};

pub(crate) use self::axis::Axis;
pub(crate) use self::combination::{Combination, FigureRange, Outcome, SeriesResult};
use crate::display::Look;
use crate::number::{UNKNOWN, count, counted, list};
use crate::verdict::{JudgedFlow, figure_style};
use crate::view::TransportView;

/// A page has tables of at most 2000 combinations. We chose 2000: a combination takes about 2 kB, so the
/// tables take about 4 MB, and the page with its charts stays below 10 MB.
pub(crate) const MAX_ON_PAGE: usize = 2000;

/// One judged flow at all combinations of the swept values.
pub(crate) struct Sweep<'a> {
    pub flow: &'a str,
    /// The swept keys other than the flow's transport. Each has two or more values.
    pub axes: Vec<Axis>,
    /// The transports, in the order of the cells.
    pub series: Vec<TransportView>,
    /// The look of each transport's line. Lines of one transport differ in dash and marker.
    pub looks: Vec<Look>,
    /// The combinations in the order of the cells.
    pub combinations: Vec<Combination<'a>>,
    /// The number of combinations that do not set the key of every axis. There are some if the page shows
    /// several runs that swept different keys.
    pub not_placed: usize,
    /// The flows that run at the same time as the judged flow.
    pub other_flows: Vec<String>,
    /// The kind of figure that the flow is judged by.
    pub judged_by: JudgedBy,
}

impl<'a> Sweep<'a> {
    /// Returns the sweep, or `None` if the page needs no sweep: a flow whose transports are compared at only
    /// one combination has one answer, and the page shows that answer elsewhere.
    pub(crate) fn beyond_answers(judged: &'a JudgedFlow<'a>) -> Option<Self> {
        let sweep = Self::new(judged)?;
        let answer_says_all = sweep.is_compared() && judged.answers().len() == 1;
        (!answer_says_all).then_some(sweep)
    }

    /// Whether the transports are compared. They are if the flow has several of them, and if the page shows
    /// only one run.
    pub(crate) fn is_compared(&self) -> bool {
        self.combinations.iter().any(|combination| combination.verdict.is_some())
    }

    /// Whether each combination has one answer: the best of the compared transports, or the result of the
    /// only transport. If the page shows several runs with several transports, there is no answer.
    pub(crate) fn has_answers(&self) -> bool {
        self.is_compared() || self.series.len() == 1
    }

    /// Whether there are more combinations than a page has tables for.
    pub(crate) fn is_large(&self) -> bool {
        self.combinations.len() > MAX_ON_PAGE
    }

    /// The floor of each result: the least figure with which the flow is usable.
    pub(crate) fn floors(&self) -> impl Iterator<Item = f64> {
        self.results().map(|result| result.usable.floor)
    }

    /// The floor, if all results have the same one.
    pub(crate) fn floor(&self) -> Option<f64> {
        let first = self.floors().next()?;
        self.floors().all(|floor| floor.total_cmp(&first).is_eq()).then_some(first)
    }

    /// Whether calls are judged by what is heard although some have a score.
    pub(crate) fn has_scores_beside(&self) -> bool {
        self.results().any(|result| result.score.is_some())
    }

    fn results(&self) -> impl Iterator<Item = &SeriesResult> {
        self.combinations.iter().flat_map(|combination| combination.results.iter().flatten())
    }

    pub(crate) fn axis_keys(&self) -> Vec<String> {
        self.axes.iter().map(|axis| axis.key.clone()).collect()
    }

    /// Writes the values of a combination on some of the axes: `path.up.loss = 0.01, path.up.delay = 5 ms`.
    /// `label` writes the value with an index on an axis.
    pub(crate) fn values_text(
        &self,
        combination: &Combination<'_>,
        axes: impl Iterator<Item = usize>,
        label: impl Fn(&Axis, usize) -> String,
    ) -> String {
        self.values_text_of(&combination.value_indices, axes, label)
    }

    /// The values of some keys, of which `value_indices` has the numbers of all keys.
    fn values_text_of(
        &self,
        value_indices: &[usize],
        axes: impl Iterator<Item = usize>,
        label: impl Fn(&Axis, usize) -> String,
    ) -> String {
        let values = axes.map(|axis_index| {
            let axis = &self.axes[axis_index];
            format!("{} = {}", axis.key, label(axis, value_indices[axis_index]))
        });
        values.collect::<Vec<_>>().join(", ")
    }

    /// Groups the combinations that have the same values on `axes`. The groups are in the order of the cells.
    pub(crate) fn group_by_values(&self, axes: &[usize]) -> Vec<Vec<&Combination<'a>>> {
        let mut groups: Vec<Vec<&Combination<'_>>> = Vec::new();
        let mut group_by_values: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        for combination in &self.combinations {
            let group = *group_by_values.entry(combination.values_on(axes)).or_insert(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(combination);
        }
        groups
    }

    /// Returns the end of the caption "the other 12 ...": where the page shows the combinations that a chart
    /// does not draw.
    pub(crate) fn place_of_not_drawn(&self) -> &'static str {
        if self.is_large() {
            "are in summary.json"
        } else if self.is_compared() {
            "are under Transports compared; the table below has the best of each"
        } else if self.has_answers() {
            "are in the table below"
        } else {
            // Several runs on one page.
            "are under Transports compared"
        }
    }

    /// The sentence of a caption about combinations that have no place on the axes. Empty if there are none.
    pub(crate) fn not_placed_note(&self) -> String {
        let keys = list(&self.axis_keys());
        match self.not_placed as u64 {
            0 => String::new(),
            1 => format!(" 1 more combination does not set all of {keys} and is not drawn."),
            n => format!(" {} more combinations do not set all of {keys} and are not drawn.", count(n)),
        }
    }

    /// The answers of all combinations in one sentence.
    pub(crate) fn headline(&self) -> String {
        let total = self.combinations.len() as u64;
        let swept = match &self.axis_keys()[..] {
            [only] => format!("{} of {only}", counted(total, "value")),
            keys => format!("{} of {}", counted(total, "combination"), list(keys)),
        };
        if !self.is_compared() {
            return format!("{} over {swept}: {}.", self.flow, self.figures_in_brief());
        }
        let counts: Vec<String> = self.outcome_counts().iter().map(OutcomeCount::phrase).collect();
        let advice = if self.needs_repetitions() {
            " One repetition does not tell which is best; try --repeat 20."
        } else {
            ""
        };
        format!("{} over {swept}: {}.{advice}", self.flow, counts.join("; "))
    }

    /// Counts each outcome. Outcomes that name a transport come first, and of these the most frequent one.
    fn outcome_counts(&self) -> Vec<OutcomeCount> {
        let mut counts: BTreeMap<Outcome, u64> = BTreeMap::new();
        for combination in &self.combinations {
            *counts.entry(combination.outcome()).or_default() += 1;
        }
        let mut counts: Vec<OutcomeCount> =
            counts.into_iter().map(|(outcome, count)| OutcomeCount { outcome, count }).collect();
        counts.sort_by_key(|entry| (entry.outcome.rank(), core::cmp::Reverse(entry.count)));
        counts
    }

    /// Whether a combination is undecided because it has one repetition.
    fn needs_repetitions(&self) -> bool {
        let verdicts = self.combinations.iter().filter_map(|combination| combination.verdict);
        verdicts
            .filter(|verdict| matches!(verdict.answer.outcome, AnswerKind::Undecided))
            .any(|verdict| verdict.ranking.more.is_none())
    }

    /// For a flow over one transport: the range of its figure, and the number of cells in which it is usable.
    fn figures_in_brief(&self) -> String {
        let range = self.results().map(SeriesResult::range).reduce(FigureRange::including);
        let range = range.map_or_else(|| UNKNOWN.to_owned(), |range| range.text(self.judged_by));
        let figures = figure_style(self.judged_by).range(&range);
        if !self.judged_by.has_floor() {
            return figures;
        }
        let all = self.results().count() as u64;
        let depends = self.results().filter(|result| result.depends_on_receiver()).count() as u64;
        let agreed = || self.results().filter(|result| !result.depends_on_receiver());
        let always = agreed().filter(|result| result.is_usable_always()).count() as u64;
        let partly = agreed().filter(|result| !result.is_usable_always() && result.usable_share() > 0.0);
        let usable = match (always, partly.count() as u64) {
            (always, _) if always == all => "all usable".to_owned(),
            (always, 0) => format!("{} of {} usable", count(always), counted(all, "cell")),
            (always, partly) => format!(
                "{} of {} usable in all repetitions, and {} in a part of them",
                count(always),
                counted(all, "cell"),
                count(partly)
            ),
        };
        let depends = match depends {
            0 => String::new(),
            depends => format!("; in {} it depends on the receiver", count(depends)),
        };
        let from = self.floor().map_or_else(String::new, |floor| {
            format!(" (from {} on)", figure_style(self.judged_by).bare(floor))
        });
        format!("{figures}, {usable}{from}{depends}")
    }
}

/// How often an outcome came out.
struct OutcomeCount {
    outcome: Outcome,
    count: u64,
}

impl OutcomeCount {
    fn phrase(&self) -> String {
        let times = count(self.count);
        match &self.outcome {
            Outcome::Distinct(name) => format!("{name} is best in {times}"),
            Outcome::Alike(names) => format!("{names}, alike, in {times}"),
            Outcome::Undecided => format!("undecided in {times}"),
            Outcome::DependsOnReceiver => format!("it depends on the receiver in {times}"),
            Outcome::Unusable => format!("nothing usable in {times}"),
            Outcome::Unknown => format!("no answer in {times}"),
        }
    }
}
