//! Reads the figures of the publication that the study draws again.

use talkpath_units::counted;
use toml::Spanned;

use super::Loader;
use super::lookup::{CellMetric, Lookup};
use crate::file::{FigureEntry, LineEntry, MediansEntry, ScatterEntry, TraceEntry};
use crate::mistakes::names_help;
use crate::study::{
    AxisTitles, Figure, FigureAxis, FigureKind, Kinds, LabelledCells, MedianLine, Printed, THROUGHPUT,
};
use crate::table::PublishedRow;

/// The series that a trace can show.
const TRACE_SERIES: [&str; 5] = ["cwnd", "queue", "loss-runs", "goodput", THROUGHPUT];

/// What the lines of a figure of medians have in common.
struct MediansFigure<'a> {
    /// The metric of the lines that name no metric.
    metric: Option<&'a Spanned<String>>,
    /// The number of values on the horizontal axis.
    point_count: usize,
    /// The rows of the file of printed figures.
    printed_rows: Vec<PublishedRow>,
}

impl Loader<'_, '_> {
    pub(super) fn figure(&mut self, entry: &FigureEntry, lookup: &Lookup<'_>) -> Option<Figure> {
        let kind = match (&entry.trace, &entry.medians, &entry.quantiles, &entry.scatter, &entry.absent) {
            (Some(trace), None, None, None, None) => self.trace(trace, lookup),
            (None, Some(medians), None, None, None) => self.medians(medians, lookup)?,
            (None, None, Some(quantiles), None, None) => {
                let cell = quantiles.cell.get_ref();
                self.require_cell(cell, quantiles.cell.span(), "figure.quantiles.cell");
                FigureKind::Quantiles { cell: cell.clone(), flows: quantiles.flows.clone() }
            }
            (None, None, None, Some(scatter), None) => self.scatter(scatter, lookup),
            (None, None, None, None, Some(reason)) => FigureKind::Absent(reason.clone()),
            _ => {
                let message = "expected one of `trace`, `medians`, `quantiles`, `scatter` or `absent`";
                self.mistakes.add(entry.number.span(), "figure", message);
                return None;
            }
        };
        let (number, title, note) = (entry.number.get_ref().clone(), entry.title.clone(), entry.note.clone());
        Some(Figure { number, title, note, kind })
    }

    /// Reads a figure of a series over time.
    fn trace(&mut self, entry: &TraceEntry, lookup: &Lookup<'_>) -> FigureKind {
        let cell = entry.cell.get_ref();
        self.require_cell(cell, entry.cell.span(), "figure.trace.cell");
        let series = entry.series.get_ref();
        if !TRACE_SERIES.contains(&series.as_str()) {
            let message = format!("found \"{series}\", expected one of {}", TRACE_SERIES.join(", "));
            self.mistakes.add(entry.series.span(), "figure.trace.series", message);
        }
        self.require_stretch(entry.seconds, entry.series.span(), "figure.trace.seconds");
        let shown_until = entry.seconds.to;
        if let Some(cell_end) = lookup.duration_s(cell)
            && shown_until > cell_end
        {
            let message = format!("found {shown_until} s, after the cell's end at {cell_end} s");
            self.mistakes.add(entry.series.span(), "figure.trace.seconds", message);
        }
        let kinds = entry.kinds.as_ref().map(|kinds| {
            let metric = kinds.metric.get_ref();
            let wanted = CellMetric { cell, metric };
            self.require_metric(wanted, kinds.metric.span(), "figure.trace.kinds.metric", lookup);
            Kinds { metric: metric.clone(), times: kinds.times, what: kinds.what.clone() }
        });
        FigureKind::Trace {
            series: self.series_with_link(entry, lookup),
            entity: entry.entity.clone(),
            cell: cell.clone(),
            seconds: entry.seconds,
            cap: entry.cap,
            kinds,
            levels: entry.levels.clone(),
        }
    }

    /// Returns the series of a trace. That of the throughput has the name of its link.
    fn series_with_link(&mut self, entry: &TraceEntry, lookup: &Lookup<'_>) -> String {
        let series = entry.series.get_ref();
        let is_throughput = series == THROUGHPUT;
        let key = "figure.trace.link";
        let Some(link) = &entry.link else {
            if is_throughput {
                self.mistakes.add(
                    entry.series.span(),
                    key,
                    "missing `link`: the link whose throughput is drawn",
                );
            }
            return series.clone();
        };
        if !is_throughput {
            self.mistakes.add(
                link.span(),
                key,
                format!("\"{series}\" has no link: expected it of \"{THROUGHPUT}\" alone"),
            );
        }
        if let Some(scenario) = lookup.scenario(entry.cell.get_ref()) {
            let names = || scenario.links.iter().map(|link| link.name.as_str());
            if !names().any(|name| name == link.get_ref()) {
                let message =
                    format!("\"{}\" has no link called \"{}\"", entry.cell.get_ref(), link.get_ref());
                self.mistakes.add_with_help(link.span(), key, message, names_help(names()));
            }
        }
        format!("{THROUGHPUT} {}", link.get_ref())
    }

    /// Reads a figure of medians over cells.
    fn medians(&mut self, entry: &MediansEntry, lookup: &Lookup<'_>) -> Option<FigureKind> {
        let x = match (&entry.x, &entry.names) {
            (Some(numbers), None) => FigureAxis::Numbers(numbers.clone()),
            (None, Some(names)) => FigureAxis::Names(names.clone()),
            _ => {
                let span = entry.lines.first().map_or(0..0, |line| line.cells.span());
                self.mistakes.add(span, "figure.medians", "expected either `x`, numbers, or `names`");
                return None;
            }
        };
        let point_count = match &x {
            FigureAxis::Numbers(numbers) => numbers.len(),
            FigureAxis::Names(names) => names.len(),
        };
        let printed_rows = match &entry.published {
            Some(file_name) => self.published_rows(file_name, "figure.medians.published")?,
            None => Vec::new(),
        };
        let figure = MediansFigure { metric: entry.metric.as_ref(), point_count, printed_rows };
        let mut lines = Vec::new();
        for line_entry in &entry.lines {
            lines.extend(self.median_line(line_entry, &figure, lookup));
        }
        let is_nothing_printed = |line: &MedianLine| line.published.iter().all(|cell| cell.values.is_empty());
        if let Some(file_name) = &entry.published
            && lines.iter().all(is_nothing_printed)
        {
            let message = format!("{} prints nothing of the figure's cells and metrics", file_name.get_ref());
            self.mistakes.add(file_name.span(), "figure.medians.published", message);
        }
        let titles = AxisTitles { x: entry.x_title.clone(), y: entry.y_title.clone() };
        Some(FigureKind::Cells { x, titles, lines })
    }

    /// Reads a line of medians, and finds the printed figures of its cells.
    fn median_line(
        &mut self,
        entry: &LineEntry,
        figure: &MediansFigure<'_>,
        lookup: &Lookup<'_>,
    ) -> Option<MedianLine> {
        let span = entry.cells.span();
        let Some(metric_entry) = entry.metric.as_ref().or(figure.metric) else {
            let message = "missing `metric`: expected it in the line or in the figure";
            self.mistakes.add(span, "figure.medians.lines", message);
            return None;
        };
        let metric = metric_entry.get_ref();
        let cells = entry.cells.get_ref();
        for cell in cells {
            self.require_cell(cell, span.clone(), "figure.medians.lines");
            let wanted = CellMetric { cell, metric };
            self.require_metric(wanted, metric_entry.span(), "figure.medians.metric", lookup);
        }
        if cells.len() != figure.point_count {
            let expected = counted(figure.point_count, "cell");
            let message = format!("expected {expected}, one for each value of `x` or `names`");
            self.mistakes.add(span, "figure.medians.lines", message);
        }
        let printed_of = |cell| printed(CellMetric { cell, metric }, &figure.printed_rows);
        let published = cells.iter().map(|cell| printed_of(cell)).collect();
        Some(MedianLine {
            label: entry.label.clone(),
            metric: metric.clone(),
            cells: cells.clone(),
            published,
        })
    }

    /// Reads a figure of one metric over another.
    fn scatter(&mut self, entry: &ScatterEntry, lookup: &Lookup<'_>) -> FigureKind {
        let mut points = Vec::new();
        for line in &entry.points {
            for cell in line.cells.get_ref() {
                self.require_cell(cell, line.cells.span(), "figure.scatter.points");
                for metric in [&entry.x, &entry.y] {
                    let wanted = CellMetric { cell, metric: metric.get_ref() };
                    self.require_metric(wanted, metric.span(), "figure.scatter", lookup);
                }
            }
            if let Some(metric) = &line.metric {
                let message = "points have the metrics `x` and `y` of the whole figure";
                self.mistakes.add(metric.span(), "figure.scatter.points", message);
            }
            points.push(LabelledCells { label: line.label.clone(), cells: line.cells.get_ref().clone() });
        }
        FigureKind::Scatter {
            x: entry.x.get_ref().clone(),
            y: entry.y.get_ref().clone(),
            titles: AxisTitles { x: entry.x_title.clone(), y: entry.y_title.clone() },
            points,
        }
    }
}

/// Returns what the publication prints for a metric of a cell. The role is that of the first row.
fn printed(wanted: CellMetric<'_>, rows: &[PublishedRow]) -> Printed {
    let mut printed = Printed::default();
    let rows = rows.iter().filter(|row| row.cell == wanted.cell && row.metric == wanted.metric);
    for (index, row) in rows.enumerate() {
        printed.values.extend(&row.published);
        if index == 0 {
            printed.role = row.role;
        }
    }
    printed
}
