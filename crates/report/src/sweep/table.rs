//! The best of each combination, as a table that fits a screen: in full if there is room, else neighbours of
//! one answer share a row, else all values of a key do.

use std::collections::BTreeMap;

use talkpath_measure::summary::JudgedBy;

use super::{Combination, Outcome, Sweep, range};
use crate::grid::{Column, Grid, Role, Row};
use crate::number::{UNKNOWN, count};
use crate::verdict::figure_style;

/// A table, and what it does not show one by one.
pub(crate) struct SweepTable {
    pub grid: Grid,
    /// Combinations that have no row of their own; empty if all have.
    pub note: Option<String>,
}

/// Neighbouring combinations that share a row.
struct Group<'a> {
    /// First and last index on each axis; `None` for an axis that is summed up.
    spans: Vec<Option<(usize, usize)>>,
    members: Vec<&'a Combination<'a>>,
}

impl Sweep<'_> {
    /// At most `max` rows.
    pub(crate) fn table_within(&self, max: usize) -> SweepTable {
        let singles = self.singles();
        if singles.len() <= max {
            return SweepTable { grid: self.grid(&singles), note: None };
        }
        let merged = (0..self.axes.len()).map(|axis| self.merged(axis));
        if let Some(groups) = merged.min_by_key(Vec::len).filter(|groups| groups.len() <= max) {
            let alone = groups.iter().filter(|group| group.members.len() == 1).count();
            let note = self.note("Neighbours with one answer share a row", singles.len() - alone);
            return SweepTable { grid: self.grid(&groups), note: Some(note) };
        }
        let mut summed = vec![false; self.axes.len()];
        let mut groups = singles;
        while groups.len() > max && summed.iter().filter(|is_summed| !**is_summed).count() > 1 {
            let left = (0..self.axes.len()).filter(|&axis| !summed[axis]);
            let Some(longest) = left.max_by_key(|&axis| self.axes[axis].values.len()) else { break };
            summed[longest] = true;
            groups = self.summed_up(&summed);
        }
        let named = self.axes.iter().zip(&summed).filter(|(_, is_summed)| **is_summed);
        let keys: Vec<&str> = named.map(|(axis, _)| axis.key.as_str()).collect();
        let rows = groups.len();
        groups.truncate(max);
        let shown: usize = if keys.is_empty() { groups.len() } else { 0 };
        let why = match (keys.is_empty(), rows > max) {
            (true, _) => format!("The first {max} rows"),
            (false, false) => format!("A row sums up all values of {}", keys.join(" and ")),
            (false, true) => {
                format!("A row sums up all values of {}; the first {max} of {rows} rows", keys.join(" and "))
            }
        };
        let note = self.note(&why, self.combinations.len() - shown);
        SweepTable { grid: self.grid(&groups), note: Some(note) }
    }

    fn note(&self, why: &str, hidden: usize) -> String {
        let key = if self.is_compared() { "comparisons" } else { "cells" };
        let (hidden, all) = (count(hidden as u64), count(self.combinations.len() as u64));
        let page = if self.is_large() { "" } else { "report.html, and in " };
        format!(
            "{why}: {hidden} of the {all} combinations are not shown one by one. All are in {page}summary.json under \
             {key}."
        )
    }

    fn singles(&self) -> Vec<Group<'_>> {
        let single = |combination| Group { spans: spans(combination), members: vec![combination] };
        self.combinations.iter().map(single).collect()
    }

    /// Combinations that follow one another on `axis` alone and have one answer.
    fn merged(&self, axis: usize) -> Vec<Group<'_>> {
        let mut ordered: Vec<&Combination<'_>> = self.combinations.iter().collect();
        let rest = |combination: &Combination<'_>| {
            combination
                .at
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != axis)
                .map(|(_, value)| *value)
                .collect::<Vec<_>>()
        };
        ordered.sort_by_key(|combination| (rest(combination), combination.at[axis]));
        let mut groups: Vec<Group<'_>> = Vec::new();
        for combination in ordered {
            let last = groups.last_mut().filter(|group| {
                let before = group.members[group.members.len() - 1];
                let follows =
                    rest(before) == rest(combination) && before.at[axis] + 1 == combination.at[axis];
                follows
                    && before.outcome() == combination.outcome()
                    && self.name(before) == self.name(combination)
            });
            match last {
                Some(group) => {
                    group.members.push(combination);
                    if let Some(Some(span)) = group.spans.get_mut(axis) {
                        span.1 = combination.at[axis];
                    }
                }
                None => groups.push(Group { spans: spans(combination), members: vec![combination] }),
            }
        }
        groups
    }

    /// One row for all values of the axes in `summed`.
    fn summed_up(&self, summed: &[bool]) -> Vec<Group<'_>> {
        let mut groups: BTreeMap<Vec<usize>, Group<'_>> = BTreeMap::new();
        for combination in &self.combinations {
            let key: Vec<usize> =
                combination.at.iter().zip(summed).filter(|(_, is)| !**is).map(|(at, _)| *at).collect();
            let spans =
                || combination.at.iter().zip(summed).map(|(at, is)| (!is).then_some((*at, *at))).collect();
            let group = groups.entry(key).or_insert_with(|| Group { spans: spans(), members: Vec::new() });
            group.members.push(combination);
        }
        groups.into_values().collect()
    }

    fn grid(&self, groups: &[Group<'_>]) -> Grid {
        let shown: Vec<usize> = (0..self.axes.len())
            .filter(|&axis| groups.iter().any(|group| group.spans[axis].is_some()))
            .collect();
        let style = figure_style(self.by);
        let mut columns: Vec<Column> =
            shown.iter().map(|&axis| Column::words(&self.axes[axis].key)).collect();
        columns.push(Column::words(if self.is_compared() { "best" } else { "transport" }));
        columns.push(Column::numbers(style.head.0, style.head.1));
        columns.push(Column { group: String::new(), ..Column::words("outcome") });
        let rows = groups.iter().map(|group| {
            let spans = shown.iter().map(|&axis| match group.spans[axis] {
                Some((first, last)) => self.axes[axis].span(first, last),
                None => String::new(),
            });
            let cells = spans.chain([self.names(group), self.figures(group), self.outcomes(group)]);
            // A row has a colour only if one transport is best.
            let display = match &group.members[..] {
                [only] if matches!(only.outcome(), Outcome::Distinct(_)) => {
                    only.leader.map(|at| self.series[at].display)
                }
                _ => None,
            };
            Row { cells: cells.collect(), role: Role::Plain, display }
        });
        Grid { rows: rows.collect(), columns }
    }

    fn name(&self, combination: &Combination<'_>) -> String {
        match combination.verdict {
            Some(verdict) if !verdict.is_valid => UNKNOWN.to_owned(),
            Some(verdict) => verdict.best_by_name.clone(),
            None => combination.leader.map_or(UNKNOWN.to_owned(), |at| self.series[at].label.clone()),
        }
    }

    /// The best of each, with its number if there are several.
    fn names(&self, group: &Group<'_>) -> String {
        counted_words(group.members.iter().map(|combination| self.name(combination)))
    }

    fn outcomes(&self, group: &Group<'_>) -> String {
        counted_words(group.members.iter().map(|combination| match combination.verdict {
            Some(_) => combination.outcome().word().to_owned(),
            None => self.usable(combination).to_owned(),
        }))
    }

    /// Of a flow over one transport: whether it reaches its floor, and no gaps bar it.
    fn usable(&self, combination: &Combination<'_>) -> &'static str {
        match combination.usable_of_best().filter(|_| self.by != JudgedBy::Goodput) {
            None => Outcome::Unknown.word(),
            Some(_) if combination.best_depends() => Outcome::DependsOnReceiver.word(),
            Some(share) if share >= 1.0 => "usable",
            // Two outcomes that the floor divides, or gaps in some repetitions.
            Some(share) if share > 0.0 => "partly usable",
            Some(_) => Outcome::Unusable.word(),
        }
    }

    fn figures(&self, group: &Group<'_>) -> String {
        if let [only] = &group.members[..] {
            return only.figure_of_best(self.by).unwrap_or_else(|| UNKNOWN.to_owned());
        }
        range(self.by, group.members.iter().filter_map(|combination| combination.outcomes_of_best()))
            .unwrap_or_else(|| UNKNOWN.to_owned())
    }
}

fn spans(combination: &Combination<'_>) -> Vec<Option<(usize, usize)>> {
    combination.at.iter().map(|at| Some((*at, *at))).collect()
}

/// `UDP`, or `UDP 12, TCP 3`: the most frequent first.
fn counted_words(words: impl Iterator<Item = String>) -> String {
    let mut tally: BTreeMap<String, u64> = BTreeMap::new();
    words.for_each(|word| *tally.entry(word).or_default() += 1);
    let mut tally: Vec<(String, u64)> = tally.into_iter().collect();
    tally.sort_by_key(|(_, n)| u64::MAX - n);
    match &tally[..] {
        [(only, _)] => only.clone(),
        several => several.iter().map(|(word, n)| format!("{word} {n}")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::Summary;

    use super::*;
    use crate::figure::sweep_lines;
    use crate::fixture;
    use crate::verdict::FlowCells;

    /// Twenty repetitions over `losses` values of loss, in which UDP's calls have MOS 2.1 or 4.3, and the
    /// others 1.0. With `alone`, only UDP's.
    fn two_outcomes(losses: u64, alone: bool) -> Summary {
        let mut summary = fixture::summary(20);
        let runs = core::mem::take(&mut summary.runs);
        for (loss, run) in (0..losses).flat_map(|loss| runs.iter().map(move |run| (loss, run.clone()))) {
            let transport = run.cell;
            if alone && transport > 0 {
                continue;
            }
            let mut run = run;
            run.cell = loss * 3 + transport;
            run.sweep.insert("path.up.loss".to_owned(), (loss as f64 / 100.0).into());
            let mos = if run.repetition < 8 { 2.1 } else { 4.3 };
            let call = run.flows.get_mut("call").and_then(|flow| flow.call.as_mut()).unwrap();
            call.mos = if transport == 0 { mos } else { 1.0 };
            summary.runs.push(run);
        }
        fixture::refresh(&mut summary);
        summary
    }

    /// The table's columns but the first, of at most `max` rows, and the headline.
    fn table(summary: &Summary, max: usize) -> (Vec<Vec<String>>, String) {
        let flows = FlowCells::all(summary);
        let judged = flows[0].judge();
        let sweep = Sweep::new(&judged).unwrap();
        let rows = sweep.table_within(max).grid.rows;
        (rows.into_iter().map(|row| row.cells[row.cells.len() - 3..].to_vec()).collect(), sweep.headline())
    }

    #[test]
    fn of_two_outcomes_a_row_of_several_combinations_has_both_and_not_their_mean() {
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
            run.flows.get_mut("call").unwrap().call.as_mut().unwrap().mos = mos;
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
            (flow.call.as_mut().unwrap().mos, flow.floor) = (3.5, Some(3.0 + 0.4 * (run.cell / 3) as f64));
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
        let figure = sweep_lines(&sweep).unwrap();
        assert!(!figure.svg.unwrap().0.contains("class=\"limit\""), "no one line is the limit");
        assert!(figure.legend.iter().all(|entry| !entry.name.contains("usable")));
    }

    #[test]
    fn of_one_transport_with_two_outcomes_the_floor_divides_the_figures_too() {
        let summary = two_outcomes(4, true);
        let (single, headline) = table(&summary, 10);
        assert!(single.iter().all(|row| row == &["UDP", "2.10 or 4.30", "partly usable"]), "{single:?}");
        assert!(headline.contains("MOS 2.10 to 4.30, 0 of 4 cells usable"), "{headline}");
    }
}
