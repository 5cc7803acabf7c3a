//! The figures of a program of the user (`[program]`): a table with a row for each cell, and a chart of each
//! figure: a line over one swept key, or a heat map over two.

use std::collections::BTreeMap;

use maud::{Markup, html};
use talkpath_measure::figures::text::four_digits;
use talkpath_measure::summary::{CellSummary, ProgramFigureSummary, ProgramSummary, Summary};

use crate::chart::{Chart, FigureLine, FigureMap, extent, figure_line, figure_maps, id_part};
use crate::grid::{Column, Grid, Role, Row};
use crate::number::{UNKNOWN, count};
use crate::sweep::{Axis, MAX_ON_PAGE};
use crate::view::plain;

/// The program of a run with the cells that have its figures.
pub(crate) struct ProgramFigures<'a> {
    program: &'a ProgramSummary,
    summary: &'a Summary,
    axes: Vec<Axis>,
    /// For each axis: the index of each value, by the value's JSON.
    indices: Vec<BTreeMap<String, usize>>,
}

impl<'a> ProgramFigures<'a> {
    /// Returns `None` if no program of the user ran.
    pub(crate) fn new(summary: &'a Summary) -> Option<Self> {
        let program = summary.program.as_ref()?;
        let axes = Axis::all(summary.cells.iter().flat_map(|cell| cell.sweep.iter()));
        let indices = axes.iter().map(Axis::index_by_json).collect();
        Some(Self { program, summary, axes, indices })
    }

    /// The table of the first `max_rows` cells, and a note about the others.
    pub(crate) fn table(&self, max_rows: usize) -> (Grid, Option<String>) {
        let mut columns: Vec<Column> = self.axes.iter().map(|axis| Column::words(&axis.key)).collect();
        for (name, figure) in &self.program.figures {
            columns.push(Column::numbers("", &title(name, figure)));
        }
        columns.push(Column::numbers("", "repetitions"));
        columns.push(Column::numbers("", "failed"));
        let cells = &self.summary.cells;
        let rows = cells.iter().take(max_rows).map(|cell| self.row(cell)).collect();
        let note = (cells.len() > max_rows).then(|| {
            let (shown, all) = (count(max_rows as u64), count(cells.len() as u64));
            format!("The first {shown} of {all} cells. All are in summary.json under cells.")
        });
        (Grid { columns, rows }, note)
    }

    fn row(&self, cell: &CellSummary) -> Row {
        let value = |axis: &Axis| cell.sweep.get(&axis.key).map(plain).unwrap_or_default();
        let mut texts: Vec<String> = self.axes.iter().map(value).collect();
        let figure = |name: &String| cell.program.get(name).map(|spread| four_digits(spread.mean));
        texts.extend(self.program.figures.keys().map(|name| figure(name).unwrap_or(UNKNOWN.to_owned())));
        let outcomes = self
            .summary
            .runs
            .iter()
            .filter(|run| run.cell == cell.cell)
            .filter_map(|run| run.program.as_ref());
        let (mut all, mut failed) = (0, 0);
        for outcome in outcomes {
            all += 1;
            failed += u64::from(outcome.failure.is_some());
        }
        texts.extend([count(all), count(failed)]);
        Row { cells: texts, role: Role::Plain, display: None }
    }

    /// The section of the page.
    pub(crate) fn html(&self) -> Markup {
        let (grid, note) = self.table(MAX_ON_PAGE);
        html! {
            p.about { "The program: " code { (self.program.command.join(" ")) } }
            @for chart in self.charts() { (chart.html()) }
            (grid.html("The figures of the program: means over the repetitions that did not fail"))
            @if let Some(note) = note { p.about { (note) } }
        }
    }

    /// A chart of each figure. There is none if no key is swept.
    pub(crate) fn charts(&self) -> Vec<Chart> {
        let figures = self.program.figures.iter();
        figures.filter_map(|(name, figure)| self.chart(name, figure)).collect()
    }

    fn chart(&self, name: &str, figure: &ProgramFigureSummary) -> Option<Chart> {
        let mean = |cell: &CellSummary| cell.program.get(name).map(|spread| spread.mean);
        let range = extent(self.summary.cells.iter().filter_map(mean));
        let values = self.summary.cells.iter().map(|cell| (cell, mean(cell)));
        let title = format!("The program's {}", title(name, figure));
        let better = if figure.less_is_better { "smaller" } else { "larger" };
        if let [axis] = &self.axes[..] {
            let cells = self.summary.cells.iter();
            return figure_line(FigureLine {
                id: format!("line-program-{}", id_part(name)),
                caption: format!(
                    "The mean over the repetitions that did not fail, with its 95 % interval. The {better}, the better."
                ),
                title,
                axis,
                values: cells
                    .filter_map(|cell| Some((self.place(cell)?[0], cell.program.get(name)?)))
                    .collect(),
            });
        }
        figure_maps(&FigureMap {
            id: format!("heat-program-{}", id_part(name)),
            caption: format!(
                "{title}, in each combination: the mean over the repetitions that did not fail. The {better}, the \
                 stronger the colour."
            ),
            title,
            axes: &self.axes,
            values: values.filter_map(|(cell, mean)| Some((self.place(cell)?, mean))).collect(),
            range: if figure.less_is_better { (range.1, range.0) } else { range },
        })
    }

    /// The index of the cell's value on each axis.
    fn place(&self, cell: &CellSummary) -> Option<Vec<usize>> {
        let index = |(axis, indices): (&Axis, &BTreeMap<String, usize>)| {
            indices.get(&cell.sweep.get(&axis.key)?.to_string()).copied()
        };
        self.axes.iter().zip(&self.indices).map(index).collect()
    }
}

/// The name of a figure with its unit.
fn title(name: &str, figure: &ProgramFigureSummary) -> String {
    match figure.unit.as_str() {
        "" => name.to_owned(),
        unit => format!("{name}, {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use talkpath_measure::summarise::cell_summaries;
    use talkpath_measure::summary::{ProgramRunSummary, RunSummary};

    use super::*;
    use crate::Style;
    use crate::fixture;

    /// A program at two rates and two delays. It failed at one combination, and its stalls are there else
    /// rate times delay.
    fn swept() -> Summary {
        let mut summary = fixture::summary(1);
        let run = summary.runs[0].clone();
        summary.runs.clear();
        for (cell, (rate, delay)) in
            [(1.0, 10.0), (1.0, 20.0), (2.0, 10.0), (2.0, 20.0)].into_iter().enumerate()
        {
            let has_failed = cell == 3;
            let stalls = (!has_failed).then_some(rate * delay);
            summary.runs.push(RunSummary {
                cell: cell as u64,
                sweep: [
                    ("path.up.rate".to_owned(), Value::from(format!("{rate} Mbps"))),
                    ("path.up.delay".to_owned(), Value::from(format!("{delay} ms"))),
                ]
                .into(),
                program: Some(Box::new(ProgramRunSummary {
                    failure: has_failed.then(|| "it ended with exit code 1".to_owned()),
                    seconds: 1.0,
                    figures: [("stalls".to_owned(), stalls)].into(),
                })),
                flows: BTreeMap::new(),
                ..run.clone()
            });
        }
        summary.cells = cell_summaries(&summary.runs);
        summary.program = Some(ProgramSummary {
            command: vec!["player".to_owned()],
            figures: [(
                "stalls".to_owned(),
                ProgramFigureSummary { unit: "s".to_owned(), less_is_better: true },
            )]
            .into(),
        });
        summary
    }

    #[test]
    fn a_cell_of_a_sweep_has_a_row_with_the_programs_figure_and_a_failed_one_says_so() {
        let summary = swept();
        let (grid, note) = ProgramFigures::new(&summary).unwrap().table(32);
        let text = grid.text(&Style { width: 100, color: false, explain: false }).text;
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(rows.contains(&vec!["20", "ms", "1", "Mbps", "20", "1", "0"]), "{text}");
        assert!(rows.contains(&vec!["20", "ms", "2", "Mbps", "–", "1", "1"]), "{text}");
        assert!(text.contains("stalls, s") && note.is_none(), "{text}");
        let (grid, note) = ProgramFigures::new(&summary).unwrap().table(2);
        assert_eq!((grid.rows.len(), note.unwrap().contains("first 2 of 4 cells")), (2, true));
    }

    #[test]
    fn one_swept_key_gives_a_line_over_it_with_a_point_for_each_combination_that_has_the_figure() {
        let mut one_key = swept();
        one_key.cells.truncate(2);
        let charts = ProgramFigures::new(&one_key).unwrap().charts();
        let [chart] = &charts[..] else { panic!("one figure, one line") };
        assert_eq!(chart.id, "line-program-stalls");
        let svg = &chart.svg.as_ref().unwrap().0;
        assert_eq!(svg.matches("class=\"mark\"").count(), 1, "{svg}");
        assert!(svg.contains("path.up.delay"), "{svg}");
        assert!(chart.caption.contains("The smaller, the better"), "{}", chart.caption);
        one_key.cells.iter_mut().for_each(|cell| cell.program = Default::default());
        assert!(ProgramFigures::new(&one_key).unwrap().charts().is_empty());
    }

    #[test]
    fn two_swept_keys_give_a_heat_map_whose_strongest_cell_is_the_best_one() {
        let summary = swept();
        let charts = ProgramFigures::new(&summary).unwrap().charts();
        let [chart] = &charts[..] else { panic!("one figure, one map") };
        assert_eq!(chart.id, "heat-program-stalls");
        let svg = chart.svg.as_ref().unwrap().0.clone();
        // 10 s of stalls is the best of 10, 20 and 20; the failed combination has no colour.
        assert_eq!(svg.matches("fill-opacity:0.60").count(), 1, "{svg}");
        assert_eq!(svg.matches("fill-opacity:0.05").count(), 2);
        assert_eq!(svg.matches("fill:none").count(), 1);
        assert!(chart.caption.contains("The smaller, the stronger"), "{}", chart.caption);
        assert!(ProgramFigures::new(&fixture::summary(1)).is_none());
    }
}
