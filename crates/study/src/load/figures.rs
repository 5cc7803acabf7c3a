//! Figures.

use super::Loader;
use super::sense::Known;
use crate::file::{FigureEntry, MediansEntry, TraceEntry};
use crate::metric::Metrics;
use crate::study::{Figure, FigureKind};

impl Loader<'_, '_> {
    pub(super) fn figure(&mut self, entry: &FigureEntry, known: (&Known, &Metrics)) -> Option<Figure> {
        let kind = match (&entry.trace, &entry.medians, &entry.quantiles) {
            (Some(trace), None, None) => self.trace(trace),
            (None, Some(medians), None) => self.medians(medians, known),
            (None, None, Some(quantiles)) => {
                self.known_cell(quantiles.cell.get_ref(), quantiles.cell.span(), "figure.quantiles.cell");
                FigureKind::Quantiles {
                    cell: quantiles.cell.get_ref().clone(),
                    flows: quantiles.flows.clone(),
                }
            }
            _ => {
                let message = "expected one of `trace`, `medians` or `quantiles`";
                self.mistakes.add(entry.number.span(), "figure", message, None);
                return None;
            }
        };
        Some(Figure { number: entry.number.get_ref().clone(), title: entry.title.clone(), kind })
    }

    fn trace(&mut self, trace: &TraceEntry) -> FigureKind {
        self.known_cell(trace.cell.get_ref(), trace.cell.span(), "figure.trace.cell");
        let series = trace.series.get_ref();
        if !SERIES.contains(&series.as_str()) {
            let message = format!("found \"{series}\", expected one of {}", SERIES.join(", "));
            self.mistakes.add(trace.series.span(), "figure.trace.series", message, None);
        }
        FigureKind::Trace {
            series: series.clone(),
            entity: trace.entity.clone(),
            cell: trace.cell.get_ref().clone(),
            seconds: trace.seconds,
        }
    }

    fn medians(&mut self, medians: &MediansEntry, (known, derived): (&Known, &Metrics)) -> FigureKind {
        for line in &medians.lines {
            for name in line.cells.get_ref() {
                self.known_cell(name, line.cells.span(), "figure.medians.lines");
                let place = (medians.metric.span(), "figure.medians.metric");
                self.known_metric((name, medians.metric.get_ref()), place, known, derived);
            }
            if line.cells.get_ref().len() != medians.x.len() {
                let message = format!("expected {} cells, one for each value of `x`", medians.x.len());
                self.mistakes.add(line.cells.span(), "figure.medians.lines", message, None);
            }
        }
        FigureKind::Cells {
            metric: medians.metric.get_ref().clone(),
            x_title: medians.x_title.clone(),
            y_title: medians.y_title.clone(),
            x: medians.x.clone(),
            lines: medians.lines.iter().map(|it| (it.label.clone(), it.cells.get_ref().clone())).collect(),
        }
    }
}

/// What a trace may show.
const SERIES: [&str; 4] = ["cwnd", "queue", "loss-runs", "goodput"];
