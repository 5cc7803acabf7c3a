//! The publication's figures and tables, from what ran under the base assumptions.

use super::ran::Ran;
use crate::TraceLine;
use crate::arena::ArenaName;
use crate::outcome::{FigureLine, FigureOutcome, FigurePoint, RowOutcome, TableOutcome};
use crate::over_time::is_flow_of;
use crate::sample::{CellSamples, StateTrace};
use crate::stats::median;
use crate::study::{Figure, FigureKind};
use crate::table::{PublishedRow, PublishedTable};

/// The figure; `None` if nothing of it ran.
pub(super) fn draw(figure: &Figure, ran: &Ran<'_>) -> Option<FigureOutcome> {
    let mut drawn = FigureOutcome {
        number: figure.number.clone(),
        title: figure.title.clone(),
        x_title: String::new(),
        y_title: String::new(),
        steps: Vec::new(),
        loss_runs: Vec::new(),
        lines: Vec::new(),
        is_quantiles: false,
        seconds: None,
    };
    match &figure.kind {
        FigureKind::Trace { series, entity, cell, seconds } => {
            let traces = ran.selection.arenas.iter().filter_map(|&arena| {
                let trace = ran.get(cell, arena, 0)?.trace.as_ref()?;
                Some((arena, trace))
            });
            drawn.x_title = "time, s".to_owned();
            drawn.seconds = Some(*seconds);
            for (arena, trace) in traces {
                add_trace(&mut drawn, trace, series, entity, &suffix(ran, arena));
            }
            drawn.y_title = match series.as_str() {
                "loss-runs" => "packets lost in a row",
                "cwnd" => "cwnd, packets",
                "goodput" => "goodput in each second, kb/s",
                _ => "waiting packets",
            }
            .to_owned();
            if drawn.steps.is_empty() && drawn.loss_runs.is_empty() && series != "loss-runs" {
                return None;
            }
        }
        FigureKind::Cells { metric, x_title, y_title, x, lines } => {
            drawn.x_title.clone_from(x_title);
            drawn.y_title.clone_from(y_title);
            for &arena in &ran.selection.arenas {
                for (label, cells) in lines {
                    let point = |(x, cell): (&f64, &String)| {
                        ran.value(cell, arena, 0, metric).map(|value| FigurePoint {
                            x: *x,
                            median: value.median,
                            ci95: value.ci95,
                        })
                    };
                    let points: Vec<_> = x.iter().zip(cells).filter_map(point).collect();
                    drawn.lines.push(FigureLine { label: format!("{label}{}", suffix(ran, arena)), points });
                }
            }
        }
        FigureKind::Quantiles { cell, flows } => {
            let mut arenas = ran.selection.arenas.clone();
            arenas.sort_unstable();
            let [model, .., measure] = arenas.as_slice() else { return None };
            drawn.is_quantiles = true;
            drawn.x_title = format!("delay in {measure}, ms");
            drawn.y_title = format!("delay in {model}, ms");
            drawn.lines = quantile_lines(ran.get(cell, *model, 0)?, ran.get(cell, *measure, 0)?, flows);
        }
    }
    drawn.lines.retain(|line| !line.points.is_empty());
    let has_lines = !matches!(figure.kind, FigureKind::Trace { .. });
    (!has_lines || !drawn.lines.is_empty()).then_some(drawn)
}

/// The table with what came out; `None` if nothing of it ran.
pub(super) fn fill(table: &PublishedTable, ran: &Ran<'_>) -> Option<TableOutcome> {
    let row = |row: &PublishedRow| {
        let arenas = ran.selection.arenas.iter();
        let values: Vec<_> =
            arenas.filter_map(|&arena| ran.value(&row.cell, arena, 0, &row.metric)).collect();
        let off = values
            .first()
            .filter(|_| row.published != 0.0)
            .map(|value| (value.median - row.published) / row.published.abs());
        RowOutcome { row: row.clone(), values, off }
    };
    let rows: Vec<RowOutcome> = table.rows.iter().map(row).collect();
    let has_values = rows.iter().any(|row| !row.values.is_empty());
    has_values.then(|| TableOutcome { title: table.title.clone(), rows })
}

/// What distinguishes an arena's line from another's.
fn suffix(ran: &Ran<'_>, arena: ArenaName) -> String {
    if ran.selection.arenas.len() > 1 { format!(", {arena}") } else { String::new() }
}

fn add_trace(drawn: &mut FigureOutcome, trace: &StateTrace, series: &str, entity: &str, suffix: &str) {
    let (from, to) = drawn.seconds.unwrap_or((0.0, f64::INFINITY));
    if series == "loss-runs" {
        let runs = trace.loss_runs.iter().filter(|run| run.flow.starts_with(entity));
        let within = runs.filter(|run| run.at_s >= from && run.at_s <= to);
        drawn.loss_runs.extend(within.cloned());
        return;
    }
    let of = |line: &&TraceLine| line.kind == *series && line.entity.starts_with(entity);
    let named = trace.lines.iter().filter(of).map(|line| TraceLine {
        entity: format!("{}{suffix}", line.entity),
        kind: line.kind.clone(),
        points: line.points.clone(),
    });
    drawn.steps.extend(named);
}

/// One line a flow: each percentile's median over repetitions in the one arena over that in the other.
fn quantile_lines(model: &CellSamples, measure: &CellSamples, flows: &[String]) -> Vec<FigureLine> {
    let Some(first) = model.valid().next() else { return Vec::new() };
    let names = first.delays.keys().filter(|name| flows.iter().any(|wanted| is_flow_of(name, wanted)));
    names
        .map(|name| {
            let points = (0..99).filter_map(|index| {
                let at = |samples: &CellSamples| {
                    let values: Vec<f64> = samples
                        .valid()
                        .filter_map(|sample| sample.delays.get(name)?.get(index).copied())
                        .collect();
                    median(&values)
                };
                let (y, x) = (at(model)?, at(measure)?);
                Some(FigurePoint { x: x.median, median: y.median, ci95: None })
            });
            FigureLine { label: name.clone(), points: points.collect() }
        })
        .collect()
}
