//! The table over a sweep: the best transport of each combination.
//!
//! The table has at most a given number of rows. If there are more combinations, neighbouring combinations
//! with one outcome share a row. If these rows are still too many, all values of a key share a row.

use std::collections::BTreeMap;

use talkpath_measure::summary::JudgedBy;

use super::{Axis, Combination, FigureRange, Outcome, Sweep};
use crate::display::Display;
use crate::grid::{Column, Grid, Role, Row};
use crate::number::{UNKNOWN, count, percent};
use crate::term::Term;
use crate::verdict::figure_style;

pub(crate) struct SweepTable {
    pub grid: Grid,
    /// Says which combinations do not have a row of their own. `None` if each has a row.
    pub note: Option<String>,
}

/// The combinations that share a row.
struct RowGroup<'a> {
    /// The values on each axis. `None` if the row has all values of the axis.
    spans: Vec<Option<IndexSpan>>,
    members: Vec<&'a Combination<'a>>,
}

/// Neighbouring values on an axis, by their indices.
#[derive(Clone, Copy)]
struct IndexSpan {
    first: usize,
    last: usize,
}

impl<'a> RowGroup<'a> {
    fn single(combination: &'a Combination<'a>) -> Self {
        let spans =
            combination.value_indices.iter().map(|&index| Some(IndexSpan { first: index, last: index }));
        Self { spans: spans.collect(), members: vec![combination] }
    }
}

impl Sweep<'_> {
    pub(crate) fn table_within(&self, max_rows: usize) -> SweepTable {
        let singles: Vec<RowGroup<'_>> = self.combinations.iter().map(RowGroup::single).collect();
        if singles.len() <= max_rows {
            return SweepTable { grid: self.grid(&singles), note: None };
        }
        if let Some(table) = self.matrix(max_rows) {
            return table;
        }
        let by_axis = (0..self.axes.len()).map(|axis| self.merge_neighbours(axis));
        if let Some(groups) = by_axis.min_by_key(Vec::len).filter(|groups| groups.len() <= max_rows) {
            let alone = groups.iter().filter(|group| group.members.len() == 1).count();
            let note = self.note("Neighbours with one answer share a row", singles.len() - alone);
            return SweepTable { grid: self.grid(&groups), note: Some(note) };
        }
        self.table_of_merged_keys(singles, max_rows)
    }

    /// The table over one transport that has a column for each value of a key of the path, and a row for each
    /// combination of the other keys. A cell is a figure, in parentheses if the flow is not usable with it.
    /// Returns `None` if it has too many rows or columns, or if there is no other key.
    fn matrix(&self, max_rows: usize) -> Option<SweepTable> {
        let of_flow = format!("flow.{}.", self.flow);
        let across = (0..self.axes.len())
            .filter(|axis| !self.axes[*axis].key.starts_with(&of_flow))
            .max_by_key(|axis| self.axes[*axis].values.len())?;
        let others: Vec<usize> = (0..self.axes.len()).filter(|axis| *axis != across).collect();
        let values = self.axes[across].values.len();
        let groups = self.group_by_values(&others);
        let is_small = groups.len() <= max_rows && values <= MAX_ACROSS;
        if self.is_compared() || self.series.len() != 1 || others.is_empty() || !is_small {
            return None;
        }
        let mut columns: Vec<Column> =
            others.iter().map(|axis| Column::words(&self.axes[*axis].key)).collect();
        let Axis { key, .. } = &self.axes[across];
        columns
            .extend((0..values).map(|index| Column::numbers(key, &self.axes[across].percent_label(index))));
        let rows = groups.iter().map(|group| {
            let of_row = group.first().map(|combination| &combination.value_indices);
            let label = |axis: &usize| {
                of_row.map_or_else(String::new, |of_row| self.axes[*axis].label(of_row[*axis]))
            };
            let at =
                |index: usize| group.iter().find(|combination| combination.value_indices[across] == index);
            let cells = others.iter().map(label).chain((0..values).map(|index| {
                at(index)
                    .and_then(|combination| self.matrix_cell(combination))
                    .unwrap_or_else(|| UNKNOWN.to_owned())
            }));
            Row { cells: cells.collect(), role: Role::Plain, display: None }
        });
        let rows = rows.collect();
        let style = figure_style(self.judged_by);
        let name = [style.column_group, style.column_head].join(" ");
        let is_barred = |combination: &Combination<'_>| {
            combination.best_result().is_some_and(|result| result.usable.is_barred())
        };
        let floor = match self.judged_by.has_floor() {
            true if self.combinations.iter().any(is_barred) => {
                "; in parentheses: not usable, because the mean is below the floor or gaps bar half of the repetitions"
            }
            true => "; in parentheses: not usable",
            false => "",
        };
        let note = format!(
            "{} at each {key}{floor}. report.html has a row for each combination, and summary.json, under cells.",
            name.trim()
        );
        Some(SweepTable { grid: Grid { columns, rows }, note: Some(note) })
    }

    /// The rule is that of [`Self::choices`], so that the table and the sentences agree.
    fn matrix_cell(&self, combination: &Combination<'_>) -> Option<String> {
        let figure = combination.best_figure(self.judged_by)?;
        let is_usable = !self.judged_by.has_floor()
            || combination.best_result().is_some_and(|result| result.usable.is_usable());
        Some(if is_usable { figure } else { format!("({figure})") })
    }

    /// The table in which all values of some keys share a row. The keys with the most values are merged
    /// first, until the rows fit. One key is never merged. If its values still have too many rows, the table
    /// is cut.
    fn table_of_merged_keys(&self, singles: Vec<RowGroup<'_>>, max_rows: usize) -> SweepTable {
        let mut groups = singles;
        let mut merged_axes: Vec<usize> = Vec::new();
        while groups.len() > max_rows && merged_axes.len() + 1 < self.axes.len() {
            let remaining = (0..self.axes.len()).filter(|axis| !merged_axes.contains(axis));
            let Some(longest) = remaining.max_by_key(|&axis| self.axes[axis].values.len()) else { break };
            merged_axes.push(longest);
            groups = self.merge_axes(&merged_axes);
        }
        let row_count = groups.len();
        groups.truncate(max_rows);
        merged_axes.sort_unstable();
        let keys: Vec<&str> = merged_axes.iter().map(|&axis| self.axes[axis].key.as_str()).collect();
        let keys = keys.join(" and ");
        let (reason, shown_alone) = if merged_axes.is_empty() {
            (format!("The first {max_rows} rows"), groups.len())
        } else if row_count > max_rows {
            let rows = format!("the first {max_rows} of {row_count} rows");
            (format!("A row sums up all values of {keys}; {rows}"), 0)
        } else {
            (format!("A row sums up all values of {keys}"), 0)
        };
        let note = self.note(&reason, self.combinations.len() - shown_alone);
        SweepTable { grid: self.grid(&groups), note: Some(note) }
    }

    /// The note about combinations that do not have a row of their own.
    fn note(&self, reason: &str, hidden: usize) -> String {
        let key = if self.is_compared() { "comparisons" } else { "cells" };
        let (hidden, all) = (count(hidden as u64), count(self.combinations.len() as u64));
        let page = if self.is_large() { "" } else { "report.html, and in " };
        format!(
            "{reason}: {hidden} of the {all} combinations are not shown one by one. All are in {page}summary.json under \
             {key}."
        )
    }

    /// Groups combinations that have one outcome and are neighbours on `axis`. On all other axes they are
    /// equal.
    fn merge_neighbours(&self, axis: usize) -> Vec<RowGroup<'_>> {
        let other_axes: Vec<usize> = (0..self.axes.len()).filter(|&other| other != axis).collect();
        let mut ordered: Vec<&Combination<'_>> = self.combinations.iter().collect();
        ordered
            .sort_by_key(|combination| (combination.values_on(&other_axes), combination.value_indices[axis]));
        let mut groups: Vec<RowGroup<'_>> = Vec::new();
        for combination in ordered {
            let index = combination.value_indices[axis];
            if let Some(group) = groups.last_mut()
                && let Some(previous) = group.members.last()
                && previous.values_on(&other_axes) == combination.values_on(&other_axes)
                && previous.value_indices[axis] + 1 == index
                && previous.outcome() == combination.outcome()
                && self.best_names(previous) == self.best_names(combination)
            {
                group.members.push(combination);
                if let Some(span) = &mut group.spans[axis] {
                    span.last = index;
                }
            } else {
                groups.push(RowGroup::single(combination));
            }
        }
        groups
    }

    /// Groups combinations that are equal on all axes but those in `merged_axes`.
    fn merge_axes(&self, merged_axes: &[usize]) -> Vec<RowGroup<'_>> {
        let kept_axes: Vec<usize> = (0..self.axes.len()).filter(|axis| !merged_axes.contains(axis)).collect();
        let mut groups: BTreeMap<Vec<usize>, RowGroup<'_>> = BTreeMap::new();
        for combination in &self.combinations {
            let group = groups.entry(combination.values_on(&kept_axes)).or_insert_with(|| {
                let mut group = RowGroup::single(combination);
                group.members.clear();
                for &axis in merged_axes {
                    group.spans[axis] = None;
                }
                group
            });
            group.members.push(combination);
        }
        groups.into_values().collect()
    }

    fn grid(&self, groups: &[RowGroup<'_>]) -> Grid {
        // An axis whose values are all merged has no column.
        let shown_axes: Vec<usize> = (0..self.axes.len())
            .filter(|&axis| groups.iter().any(|group| group.spans[axis].is_some()))
            .collect();
        let style = figure_style(self.judged_by);
        let mut columns: Vec<Column> = Vec::new();
        for &axis in &shown_axes {
            columns.push(Column::words(&self.axes[axis].key));
            if self.has_losses_on(axis) {
                columns.push(Column::numbers("lost", "%").explained(Term::new("lost", LOST_ON_LINKS)));
            }
        }
        columns.push(Column::words(if self.is_compared() { "best" } else { "transport" }));
        columns.push(Column::numbers(style.column_group, style.column_head));
        if self.has_scores_beside() {
            let style = figure_style(JudgedBy::Mos);
            columns.push(Column::numbers(style.column_group, style.column_head));
        }
        columns.push(Column { group: String::new(), ..Column::words("outcome") });
        Grid { columns, rows: groups.iter().map(|group| self.row(group, &shown_axes)).collect() }
    }

    fn row(&self, group: &RowGroup<'_>, shown_axes: &[usize]) -> Row {
        let mut cells: Vec<String> = Vec::new();
        for &axis in shown_axes {
            let span = group.spans[axis];
            cells.push(
                span.map_or_else(String::new, |span| self.axes[axis].range_label(span.first, span.last)),
            );
            if self.has_losses_on(axis) {
                cells.push(lost_on_links(group, axis));
            }
        }
        cells.push(counted_words(group.members.iter().map(|combination| self.best_names(combination))));
        cells.push(self.figure(group));
        if self.has_scores_beside() {
            cells.push(score(group));
        }
        let outcomes = group.members.iter().map(|combination| self.outcome_word(combination));
        cells.push(counted_words(outcomes));
        Row { cells, role: Role::Plain, display: self.colour_of(group) }
    }

    /// Whether the axis is a loss of links whose packets were counted.
    fn has_losses_on(&self, axis: usize) -> bool {
        self.combinations.iter().any(|combination| combination.lost_on_links[axis].is_some())
    }

    /// A row has the colour of a transport only if this transport alone is best.
    fn colour_of(&self, group: &RowGroup<'_>) -> Option<&'static Display> {
        let [only] = &group.members[..] else { return None };
        match only.outcome() {
            Outcome::Distinct(_) => only.leader.map(|series| self.series[series].display),
            _ => None,
        }
    }

    /// The names of the best transports at a combination, or the name of the only one.
    fn best_names(&self, combination: &Combination<'_>) -> String {
        match combination.verdict {
            Some(verdict) if !verdict.is_valid => UNKNOWN.to_owned(),
            Some(verdict) => verdict.best_by_name.clone(),
            None => combination.leader.map_or(UNKNOWN.to_owned(), |series| self.series[series].label.clone()),
        }
    }

    /// The figure of the best transport. Several combinations have the range from the lowest to the highest
    /// figure.
    fn figure(&self, group: &RowGroup<'_>) -> String {
        let figure = match &group.members[..] {
            [only] => only.best_figure(self.judged_by),
            several => {
                let ranges = several.iter().filter_map(|combination| combination.best_range());
                ranges.reduce(FigureRange::including).map(|range| range.text(self.judged_by))
            }
        };
        figure.unwrap_or_else(|| UNKNOWN.to_owned())
    }

    /// The outcome in a word. Over one transport the word says whether the flow is usable, and in which share
    /// of the repetitions if not in all: the floor divides two clusters, or some repetitions have gaps.
    fn outcome_word(&self, combination: &Combination<'_>) -> String {
        if combination.verdict.is_some() {
            return combination.outcome().word().to_owned();
        }
        let Some(result) = combination.best_result() else { return Outcome::Unknown.word().to_owned() };
        let word = if !self.judged_by.has_floor() {
            // Gaps bar a call without a floor, too.
            if result.usable.is_barred() { BARRED } else { Outcome::Unknown.word() }
        } else if result.depends_on_receiver() {
            Outcome::DependsOnReceiver.word()
        } else if result.is_usable_always() {
            "usable"
        } else if result.usable_share() > 0.0 {
            return format!("usable in {}", result.usable.text());
        } else if result.usable.is_barred() {
            BARRED
        } else {
            Outcome::Unusable.word()
        };
        word.to_owned()
    }
}

/// The outcome of a call that gaps alone make unusable.
const BARRED: &str = "barred by gaps";

/// A table has at most 8 values of a key beside each other. We chose 8, which fit in 120 columns.
const MAX_ACROSS: usize = 8;

/// The meaning of the column of lost packets.
const LOST_ON_LINKS: &str = "of the packets on these links those that the wire lost, in all repetitions: what came of the loss that \
                             was asked for";

/// The share of the packets that were lost on the links of an axis: `0.87`. Several combinations have the
/// range.
fn lost_on_links(group: &RowGroup<'_>, axis: usize) -> String {
    let shares = group.members.iter().filter_map(|combination| combination.lost_on_links[axis]);
    let (low, high) =
        shares.fold((f64::INFINITY, 0.0_f64), |(low, high), share| (low.min(share), high.max(share)));
    if low > high {
        return UNKNOWN.to_owned();
    }
    let (low, high) = (percent(Some(low)), percent(Some(high)));
    if low == high { low } else { format!("{low} to {high}") }
}

/// The score of the only combination of a row, if its best transport has one.
fn score(group: &RowGroup<'_>) -> String {
    let score = match &group.members[..] {
        [only] => only.best_result().and_then(|result| result.score),
        _ => None,
    };
    score.map_or_else(|| UNKNOWN.to_owned(), |score| figure_style(JudgedBy::Mos).number(score))
}

/// Writes equal words once: `UDP`. If there are several, it counts them, the most frequent first: `UDP 12,
/// TCP 3`.
fn counted_words(words: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| core::cmp::Reverse(*count));
    match &counts[..] {
        [(only, _)] => only.clone(),
        several => {
            several.iter().map(|(word, count)| format!("{word} {count}")).collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::Summary;

    use super::*;
    use crate::chart::sweep_lines;
    use crate::fixture;
    use crate::verdict::FlowCells;

    /// Twenty repetitions over `losses` values of loss. Calls over UDP have MOS 2.1 or 4.3, and calls over
    /// other transports have MOS 1.0. `udp_alone` leaves the other transports out.
    fn two_outcomes(losses: u64, udp_alone: bool) -> Summary {
        let mut summary = fixture::summary(20);
        let runs = core::mem::take(&mut summary.runs);
        for (loss, run) in (0..losses).flat_map(|loss| runs.iter().map(move |run| (loss, run.clone()))) {
            let transport = run.cell;
            if udp_alone && transport > 0 {
                continue;
            }
            let mut run = run;
            run.cell = loss * 3 + transport;
            run.sweep.insert("path.up.loss".to_owned(), (loss as f64 / 100.0).into());
            let mos = if run.repetition < 8 { 2.1 } else { 4.3 };
            let call = run.flows.get_mut("call").and_then(|flow| flow.call.as_mut()).unwrap();
            call.mos = Some(if transport == 0 { mos } else { 1.0 });
            summary.runs.push(run);
        }
        fixture::refresh(&mut summary);
        summary
    }

    /// The last three columns of the table with at most `max` rows, and the headline.
    fn table(summary: &Summary, max: usize) -> (Vec<Vec<String>>, String) {
        let flows = FlowCells::all(summary);
        let judged = flows[0].judge();
        let sweep = Sweep::new(&judged).unwrap();
        let rows = sweep.table_within(max).grid.rows;
        (rows.into_iter().map(|row| row.cells[row.cells.len() - 3..].to_vec()).collect(), sweep.headline())
    }

    #[test]
    fn a_row_of_several_combinations_with_two_outcomes_has_both_and_not_their_mean() {
        let summary = two_outcomes(4, false);
        let (single, _) = table(&summary, 10);
        assert_eq!(single.len(), 4);
        assert!(single.iter().all(|row| row == &["UDP", "2.10 or 4.30", "distinct"]), "{single:?}");
        let (grouped, _) = table(&summary, 1);
        assert_eq!(grouped, [["UDP", "2.10 to 4.30", "distinct"]], "the mean is 3.42");
    }

    #[test]
    fn merged_rows_are_neighbours_by_value_whatever_the_order_in_the_file() {
        let mut summary = two_outcomes(5, false);
        let delays = ["20 ms", "1 ms", "1000 us", "0.04 s", "30 ms"];
        for run in &mut summary.runs {
            let (at, transport) = ((run.cell / 3) as usize, run.cell % 3);
            run.sweep.remove("path.up.loss");
            run.sweep.insert("path.up.delay".to_owned(), delays[at].into());
            let mos = if transport == 0 && at != 3 { 4.0 } else { 1.0 };
            run.flows.get_mut("call").unwrap().call.as_mut().unwrap().mos = Some(mos);
        }
        fixture::refresh(&mut summary);
        let flows = FlowCells::all(&summary);
        let judged = flows[0].judge();
        let sweep = Sweep::new(&judged).unwrap();
        let rows = |max| sweep.table_within(max).grid.rows.into_iter().map(|row| row.cells[0].clone());
        assert_eq!(rows(2).collect::<Vec<_>>(), ["1 ms to 30 ms", "0.04 s"]);
        assert_eq!(rows(5).collect::<Vec<_>>(), delays, "one by one in the file's order");
    }

    #[test]
    fn beside_the_loss_asked_for_is_the_loss_that_happened() {
        let mut summary = two_outcomes(3, true);
        for run in &mut summary.runs {
            let lost = run.cell / 3 * 9;
            let link = serde_json::json!({
                "queue_packets": { "mean": 0.0, "p99": 0, "max": 0 },
                "forwarded": 1000 - lost, "lost": lost, "dropped": 7, "utilisation": 0.1,
            });
            run.links.insert("up".to_owned(), Box::new(serde_json::from_value(link).unwrap()));
        }
        let flows = FlowCells::all(&summary);
        let judged = flows[0].judge();
        let sweep = Sweep::new(&judged).unwrap();
        let grid = sweep.table_within(10).grid;
        assert_eq!(grid.columns[1].title(), "lost %");
        let lost = |max| {
            let rows = sweep.table_within(max).grid.rows;
            rows.into_iter().map(|row| row.cells[1].clone()).collect::<Vec<_>>()
        };
        assert_eq!(lost(10), ["0.00", "0.90", "1.80"]);
        assert_eq!(lost(1), ["0.00 to 1.80"]);
    }

    #[test]
    fn many_cells_over_one_transport_have_a_column_for_each_loss() {
        let mut summary = two_outcomes(4, true);
        let runs = core::mem::take(&mut summary.runs);
        for (number, red) in [0_u64, 1, 2].into_iter().enumerate() {
            for run in &runs {
                let mut run = run.clone();
                run.cell += 12 * number as u64;
                run.sweep.insert("flow.call.workload.red".to_owned(), red.into());
                let loss = run.sweep["path.up.loss"].as_f64().unwrap();
                let call = run.flows.get_mut("call").unwrap().call.as_mut().unwrap();
                call.mos = Some(4.4 - 60.0 * loss / (1.0 + red as f64));
                summary.runs.push(run);
            }
        }
        fixture::refresh(&mut summary);
        let flows = FlowCells::all(&summary);
        let judged = flows[0].judge();
        let sweep = Sweep::new(&judged).unwrap();
        let SweepTable { grid, note } = sweep.table_within(10);
        let titles: Vec<String> = grid.columns.iter().map(Column::title).collect();
        let loss = |percent: &str| format!("path.up.loss {percent}");
        assert_eq!(titles[1..], ["0%", "1%", "2%", "3%"].map(loss));
        let cells: Vec<Vec<String>> = grid.rows.into_iter().map(|row| row.cells).collect();
        assert_eq!(cells[0], ["0", "4.40", "3.80", "3.20", "(2.60)"]);
        assert_eq!(cells[2], ["2", "4.40", "4.20", "4.00", "3.80"]);
        assert!(note.unwrap().starts_with("MOS at each path.up.loss; in parentheses: not usable."));
    }

    #[test]
    fn a_call_that_gaps_bar_in_half_of_the_repetitions_is_not_usable_in_the_matrix_and_in_the_sentence() {
        let mut summary = two_outcomes(4, true);
        for run in &mut summary.runs {
            let (loss, red) = (run.cell / 3 % 2, run.cell / 6);
            run.sweep.insert("path.up.loss".to_owned(), (loss as f64 / 100.0).into());
            run.sweep.insert("flow.call.workload.red".to_owned(), red.into());
            let has_gap = loss == 1 && run.repetition % 2 == 0;
            let call = run.flows.get_mut("call").unwrap().call.as_mut().unwrap();
            (call.mos, call.longest_gap_ms) = (Some(4.0), has_gap.then_some(1_900.0));
        }
        summary.runs.retain(|run| run.repetition < 4);
        fixture::refresh(&mut summary);
        let flows = FlowCells::all(&summary);
        let judged = flows[0].judge();
        let sweep = Sweep::new(&judged).unwrap();
        let choices = sweep.choices().join(" ");
        assert!(choices.contains("none is usable, because of gaps"), "{choices}");
        let SweepTable { grid, note } = sweep.table_within(3);
        let cells: Vec<Vec<String>> = grid.rows.into_iter().map(|row| row.cells).collect();
        assert_eq!(cells[0], ["0", "4.00", "(4.00)"], "{choices}");
        assert!(note.as_ref().is_some_and(|it| it.contains("gaps bar half of the repetitions.")), "{note:?}");
    }

    #[test]
    fn a_share_in_time_has_the_unit_in_the_head_of_its_column_alone() {
        let mut summary = two_outcomes(2, false);
        for run in &mut summary.runs {
            let share = if run.cell % 3 == 0 { 0.998 } else { 0.5 };
            let flow = run.flows.get_mut("call").unwrap();
            (flow.call, flow.in_time, flow.deadline_ms) = (None, Some(share), Some(100.0));
        }
        fixture::refresh(&mut summary);
        let (single, _) = table(&summary, 10);
        assert!(single.iter().all(|row| row == &["UDP", "99.80", "distinct"]), "{single:?}");
    }

    #[test]
    fn each_value_of_a_swept_floor_counts_for_its_own_combination() {
        let mut summary = two_outcomes(3, true);
        for run in &mut summary.runs {
            let flow = run.flows.get_mut("call").unwrap();
            (flow.call.as_mut().unwrap().mos, flow.floor) =
                (Some(3.5), Some(3.0 + 0.4 * (run.cell / 3) as f64));
        }
        fixture::refresh(&mut summary);
        let (rows, headline) = table(&summary, 10);
        let outcomes: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(outcomes, ["usable", "usable", "unusable"], "floors 3.0, 3.4 and 3.8");
        assert!(headline.contains("MOS 3.50, 2 of 3 cells usable"), "{headline}");
        let flows = FlowCells::all(&summary);
        let judged = flows[0].judge();
        let sweep = Sweep::new(&judged).unwrap();
        assert_eq!(sweep.floor(), None);
        let chart = sweep_lines(&sweep).unwrap();
        assert!(!chart.svg.unwrap().0.contains("class=\"limit\""), "no one line is the limit");
        assert!(chart.legend.iter().all(|entry| !entry.name.contains("usable")));
    }

    #[test]
    fn the_floor_divides_two_outcomes_of_the_only_transport() {
        let summary = two_outcomes(4, true);
        let (single, headline) = table(&summary, 10);
        assert!(single.iter().all(|row| row == &["UDP", "2.10 or 4.30", "usable in 60 %"]), "{single:?}");
        let says = "MOS 2.10 to 4.30, 0 of 4 cells usable in all repetitions, and 4 in a part of them";
        assert!(headline.contains(says), "{headline}");
    }

    #[test]
    fn a_score_above_the_floor_that_gaps_bar_is_not_called_unusable_without_a_reason() {
        let mut summary = two_outcomes(2, true);
        for run in &mut summary.runs {
            let call = run.flows.get_mut("call").unwrap().call.as_mut().unwrap();
            (call.mos, call.longest_gap_ms) = (Some(4.0), (run.cell < 3).then_some(1_900.0));
        }
        fixture::refresh(&mut summary);
        let (rows, _) = table(&summary, 10);
        let outcomes: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(outcomes, ["barred by gaps", "usable"]);
    }
}
