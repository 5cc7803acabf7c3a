//! Figures.

use super::Loader;
use super::sense::Known;
use crate::file::{FigureEntry, LineEntry, MediansEntry, ScatterEntry, TraceEntry};
use crate::study::{AxisTitles, Figure, FigureAxis, FigureKind, Kinds, LabelledCells, MedianLine, Printed};
use crate::table::PublishedRow;
use talkpath_units::counted;

impl Loader<'_, '_> {
    pub(super) fn figure(&mut self, entry: &FigureEntry, known: &Known<'_>) -> Option<Figure> {
        let kind = match (&entry.trace, &entry.medians, &entry.quantiles, &entry.scatter, &entry.absent) {
            (Some(trace), None, None, None, None) => self.trace(trace, known),
            (None, Some(medians), None, None, None) => self.medians(medians, known)?,
            (None, None, Some(quantiles), None, None) => {
                self.known_cell(quantiles.cell.get_ref(), quantiles.cell.span(), "figure.quantiles.cell");
                FigureKind::Quantiles {
                    cell: quantiles.cell.get_ref().clone(),
                    flows: quantiles.flows.clone(),
                }
            }
            (None, None, None, Some(scatter), None) => self.scatter(scatter, known),
            (None, None, None, None, Some(why)) => FigureKind::Absent(why.clone()),
            _ => {
                let message = "expected one of `trace`, `medians`, `quantiles`, `scatter` or `absent`";
                self.mistakes.add(entry.number.span(), "figure", message, None);
                return None;
            }
        };
        let (number, title, note) = (entry.number.get_ref().clone(), entry.title.clone(), entry.note.clone());
        Some(Figure { number, title, note, kind })
    }

    fn trace(&mut self, trace: &TraceEntry, known: &Known<'_>) -> FigureKind {
        self.known_cell(trace.cell.get_ref(), trace.cell.span(), "figure.trace.cell");
        let series = trace.series.get_ref();
        if !SERIES.contains(&series.as_str()) {
            let message = format!("found \"{series}\", expected one of {}", SERIES.join(", "));
            self.mistakes.add(trace.series.span(), "figure.trace.series", message, None);
        }
        let (key, to) = ("figure.trace.seconds", trace.seconds.to);
        self.stretch(trace.seconds, trace.series.span(), key);
        if let Some(end) = known.duration_s(trace.cell.get_ref()).filter(|end| to > *end) {
            let message = format!("found {to} s, after the cell's end at {end} s");
            self.mistakes.add(trace.series.span(), key, message, None);
        }
        let kinds = trace.kinds.as_ref().map(|kinds| {
            let (cell, key) = (trace.cell.get_ref(), "figure.trace.kinds.metric");
            self.known_metric(cell, kinds.metric.get_ref(), kinds.metric.span(), key, known);
            Kinds { metric: kinds.metric.get_ref().clone(), times: kinds.times, what: kinds.what.clone() }
        });
        FigureKind::Trace {
            series: series.clone(),
            entity: trace.entity.clone(),
            cell: trace.cell.get_ref().clone(),
            seconds: trace.seconds,
            cap: trace.cap,
            kinds,
            levels: trace.levels.clone(),
        }
    }

    fn medians(&mut self, medians: &MediansEntry, known: &Known<'_>) -> Option<FigureKind> {
        let axis = match (&medians.x, &medians.names) {
            (Some(x), None) => FigureAxis::Numbers(x.clone()),
            (None, Some(names)) => FigureAxis::Names(names.clone()),
            _ => {
                let span = medians.lines.first().map_or(0..0, |line| line.cells.span());
                let message = "expected either `x`, numbers, or `names`";
                self.mistakes.add(span, "figure.medians", message, None);
                return None;
            }
        };
        let printed = match &medians.published {
            Some(name) => self.rows(name, "figure.medians.published")?,
            None => Vec::new(),
        };
        let count = match &axis {
            FigureAxis::Numbers(x) => x.len(),
            FigureAxis::Names(names) => names.len(),
        };
        let lines: Vec<_> = medians
            .lines
            .iter()
            .filter_map(|line| self.median_line(medians, line, count, &printed, known))
            .collect();
        if let Some(name) = &medians.published
            && lines.iter().all(|line| line.published.iter().all(|it| it.values.is_empty()))
        {
            let message = format!("{} prints nothing of the figure's cells and metrics", name.get_ref());
            self.mistakes.add(name.span(), "figure.medians.published", message, None);
        }
        let titles = AxisTitles { x: medians.x_title.clone(), y: medians.y_title.clone() };
        Some(FigureKind::Cells { x: axis, titles, lines })
    }

    /// A line with `count` cells, and what is `printed` of each.
    fn median_line(
        &mut self,
        medians: &MediansEntry,
        line: &LineEntry,
        count: usize,
        printed: &[PublishedRow],
        known: &Known<'_>,
    ) -> Option<MedianLine> {
        let cells = line.cells.get_ref();
        let Some(metric) = line.metric.as_ref().or(medians.metric.as_ref()) else {
            let message = "a line without a `metric`, in a figure that has none for all";
            self.mistakes.add(line.cells.span(), "figure.medians.lines", message, None);
            return None;
        };
        for name in cells {
            self.known_cell(name, line.cells.span(), "figure.medians.lines");
            self.known_metric(name, metric.get_ref(), metric.span(), "figure.medians.metric", known);
        }
        if cells.len() != count {
            let message =
                format!("expected {}, one for each value of `x` or `names`", counted(count, "cell"));
            self.mistakes.add(line.cells.span(), "figure.medians.lines", message, None);
        }
        let of_cell = |cell: &String| {
            let rows = || printed.iter().filter(|row| row.cell == *cell && row.metric == *metric.get_ref());
            Printed {
                values: rows().flat_map(|row| row.published.iter().copied()).collect(),
                role: rows().next().map(|row| row.role).unwrap_or_default(),
            }
        };
        Some(MedianLine {
            label: line.label.clone(),
            metric: metric.get_ref().clone(),
            cells: cells.clone(),
            published: cells.iter().map(of_cell).collect(),
        })
    }

    fn scatter(&mut self, scatter: &ScatterEntry, known: &Known<'_>) -> FigureKind {
        for points in &scatter.points {
            for name in points.cells.get_ref() {
                self.known_cell(name, points.cells.span(), "figure.scatter.points");
                for metric in [&scatter.x, &scatter.y] {
                    self.known_metric(name, metric.get_ref(), metric.span(), "figure.scatter", known);
                }
            }
            if let Some(metric) = &points.metric {
                let message = "points have the metrics `x` and `y` of the whole figure";
                self.mistakes.add(metric.span(), "figure.scatter.points", message, None);
            }
        }
        let labelled = |line: &LineEntry| LabelledCells {
            label: line.label.clone(),
            cells: line.cells.get_ref().clone(),
        };
        FigureKind::Scatter {
            x: scatter.x.get_ref().clone(),
            y: scatter.y.get_ref().clone(),
            titles: AxisTitles { x: scatter.x_title.clone(), y: scatter.y_title.clone() },
            points: scatter.points.iter().map(labelled).collect(),
        }
    }
}

/// What a trace may show.
const SERIES: [&str; 4] = ["cwnd", "queue", "loss-runs", "goodput"];
