//! The publication's figures and tables, from what ran under the base assumptions.

use super::ran::Ran;
use crate::TraceLine;
use crate::arena::ArenaName;
use crate::band::band;
use crate::fit::fit;
use crate::outcome::{
    Drawing, FigureLine, FigureOutcome, FigurePoint, RowOutcome, RunShare, TableOutcome, TracePanel,
};
use crate::over_time::is_flow_of;
use crate::sample::{CellSamples, KeptTrace, Sample, cut};
use crate::stats::median;
use crate::study::{AxisTitles, Figure, FigureAxis, FigureKind, Kinds, LabelledCells, MedianLine};
use crate::table::{PublishedRow, PublishedTable};
use talkpath_units::counted;

/// The figure; `None` if none of its cells ran.
pub(super) fn draw(figure: &Figure, ran: &Ran<'_>) -> Option<FigureOutcome> {
    let (titles, drawing) = match &figure.kind {
        FigureKind::Trace { series, seconds, cap, levels, .. } => {
            let panels = panels(&figure.kind, ran);
            let is_empty = |panel: &TracePanel| panel.steps.is_empty() && panel.loss_runs.is_empty();
            if panels.is_empty() || series != "loss-runs" && panels.iter().all(is_empty) {
                return None;
            }
            let drawing = Drawing::Traces { panels, seconds: *seconds, levels: levels.clone() };
            (AxisTitles { x: "time, s".to_owned(), y: trace_title(series, *cap) }, drawing)
        }
        FigureKind::Cells { x, titles, lines } => {
            let lines = median_lines(x, lines, ran);
            let drawing = match x {
                FigureAxis::Numbers(_) => Drawing::Lines { lines },
                FigureAxis::Names(names) => Drawing::Groups { names: names.clone(), lines },
            };
            (titles.clone(), drawing)
        }
        FigureKind::Quantiles { cell, flows } => {
            let mut arenas = ran.selection.arenas.clone();
            arenas.sort_unstable();
            let [model, .., measure] = arenas.as_slice() else { return None };
            let lines = quantile_lines(ran.get(cell, *model, 0)?, ran.get(cell, *measure, 0)?, flows);
            let titles =
                AxisTitles { x: format!("delay in {measure}, ms"), y: format!("delay in {model}, ms") };
            (titles, Drawing::Quantiles { lines })
        }
        FigureKind::Scatter { x, y, titles, points } => {
            let lines = scatter_lines(x, y, points, ran);
            let all: Vec<_> =
                lines.iter().flat_map(|line| &line.points).map(|point| (point.x, point.median)).collect();
            (titles.clone(), Drawing::Scatter { lines, fit: fit(&all) })
        }
        FigureKind::Absent(why) => {
            (AxisTitles { x: String::new(), y: String::new() }, Drawing::Absent { why: why.clone() })
        }
    };
    let drawn = FigureOutcome {
        number: figure.number.clone(),
        title: figure.title.clone(),
        x_title: titles.x,
        y_title: titles.y,
        note: figure.note.clone(),
        drawing,
    };
    drawn.has_something().then_some(drawn)
}

impl FigureOutcome {
    /// Whether there is something to draw: a line with a point, or a trace.
    fn has_something(&self) -> bool {
        match &self.drawing {
            Drawing::Lines { lines }
            | Drawing::Groups { lines, .. }
            | Drawing::Quantiles { lines }
            | Drawing::Scatter { lines, .. } => !lines.is_empty(),
            Drawing::Traces { .. } | Drawing::Absent { .. } => true,
        }
    }
}

/// The table with what came out; `None` if none of its cells ran.
pub(super) fn fill(table: &PublishedTable, ran: &Ran<'_>) -> Option<TableOutcome> {
    let row = |row: &PublishedRow| {
        let arenas = ran.selection.arenas.iter();
        let values: Vec<_> =
            arenas.filter_map(|&arena| ran.value(&row.cell, arena, 0, &row.metric)).collect();
        let mean = row.mean().filter(|mean| *mean != 0.0);
        let off = values.first().zip(mean).map(|(value, mean)| (value.median - mean) / mean.abs());
        RowOutcome { row: row.clone(), own_unit: ran.study.units.get(&row.metric).copied(), values, off }
    };
    let rows: Vec<RowOutcome> = table.rows.iter().map(row).collect();
    let has_values = rows.iter().any(|row| !row.values.is_empty());
    has_values.then(|| TableOutcome { title: table.title.clone(), rows })
}

/// What distinguishes an arena's line from another's.
fn suffix(ran: &Ran<'_>, arena: ArenaName) -> String {
    if ran.selection.arenas.len() > 1 { format!(", {arena}") } else { String::new() }
}

fn trace_title(series: &str, cap: Option<f64>) -> String {
    match (series, cap) {
        ("loss-runs", _) => "packets lost in a row".to_owned(),
        ("cwnd", None) => "cwnd, packets".to_owned(),
        ("cwnd", Some(cap)) => format!("window: cwnd, at most {cap} packets"),
        ("goodput", _) => "goodput in each second, kb/s".to_owned(),
        _ => "waiting packets".to_owned(),
    }
}

/// One panel with the first repetition in every arena, or one for each kind of run in the first arena, the
/// most frequent first.
fn panels(figure: &FigureKind, ran: &Ran<'_>) -> Vec<TracePanel> {
    let FigureKind::Trace { cell, kinds, .. } = figure else { return Vec::new() };
    let mut of_arenas =
        ran.selection.arenas.iter().filter_map(|&arena| Some((arena, ran.get(cell, arena, 0)?)));
    let Some(kinds) = kinds else {
        let mut panel = TracePanel::default();
        let mut has_any = false;
        for (arena, samples) in of_arenas {
            let Some(kept) = samples.traces.first() else { continue };
            add_trace(&mut panel, kept, figure, &suffix(ran, arena));
            if ran.selection.arenas.len() == 1 {
                let valid: Vec<&Sample> = samples.valid().collect();
                add_bands(&mut panel, &valid, figure, ran);
            }
            panel.repetition = kept.repetition;
            panel.runs = RunShare { of_kind: 1, all: samples.valid().count() as u64 };
            has_any = true;
        }
        return has_any.then_some(panel).into_iter().collect();
    };
    let Some((_, samples)) = of_arenas.next() else { return Vec::new() };
    let mut panels: Vec<TracePanel> = Vec::new();
    for kept in &samples.traces {
        // Traces are kept for the other figures' kinds too: the first of each of this one's is shown.
        let panel = kind_panel(kept, kinds, samples, figure).map(|mut panel| {
            let is_of_kind = |sample: &&Sample| sample.values.get(&kinds.metric).copied() == panel.kind;
            let of_kind: Vec<&Sample> = samples.valid().filter(is_of_kind).collect();
            add_bands(&mut panel, &of_kind, figure, ran);
            panel
        });
        panels.extend(panel.filter(|panel| panels.iter().all(|it| it.kind != panel.kind)));
    }
    panels.sort_by_key(|panel| (core::cmp::Reverse(panel.runs.of_kind), panel.repetition));
    panels
}

fn kind_panel(
    kept: &KeptTrace,
    kinds: &Kinds,
    samples: &CellSamples,
    figure: &FigureKind,
) -> Option<TracePanel> {
    let value = kept.kinds.iter().find_map(|(metric, value)| (*metric == kinds.metric).then_some(*value))?;
    let all = samples.values(&kinds.metric);
    let of_kind = all.iter().filter(|it| **it == value).count();
    let runs = RunShare { of_kind: of_kind as u64, all: all.len() as u64 };
    let title = format!(
        "{} {}: {} of {}; run {} is shown",
        crate::words::shown(None, value * kinds.times),
        kinds.what,
        runs.of_kind,
        counted(runs.all, "run"),
        kept.repetition + 1
    );
    let mut panel =
        TracePanel { title, kind: Some(value), repetition: kept.repetition, runs, ..TracePanel::default() };
    add_trace(&mut panel, kept, figure, "");
    Some(panel)
}

fn add_trace(panel: &mut TracePanel, kept: &KeptTrace, figure: &FigureKind, suffix: &str) {
    let FigureKind::Trace { series, entity, seconds, cap, .. } = figure else { return };
    let trace = &kept.trace;
    if series == "loss-runs" {
        let runs = trace.loss_runs.iter().filter(|run| run.flow.starts_with(entity));
        panel.loss_runs.extend(runs.filter(|run| seconds.holds(run.at_s)).cloned());
        return;
    }
    let of = |line: &&TraceLine| line.kind == *series && line.entity.starts_with(entity);
    let cap = cap.unwrap_or(f64::INFINITY);
    let capped = |points: &[(f64, f64)]| {
        let mut points: Vec<_> = cut(points.iter().copied(), *seconds)
            .into_iter()
            .map(|(at, value)| (at, value.min(cap)))
            .collect();
        // What moves beyond the cap alone does not move.
        points.dedup_by(|later, before| later.1 == before.1);
        points
    };
    panel.steps.extend(trace.lines.iter().filter(of).map(|line| TraceLine {
        entity: format!("{}{suffix}", line.entity),
        kind: line.kind.clone(),
        points: capped(&line.points),
    }));
}

/// The band of each line of `panel`, over `samples`.
fn add_bands(panel: &mut TracePanel, samples: &[&Sample], figure: &FigureKind, ran: &Ran<'_>) {
    let FigureKind::Trace { series, cell, seconds, .. } = figure else { return };
    let arena = ran.selection.arenas.first().copied().unwrap_or(ArenaName::Sim);
    let stretch = ran.study.cell(cell, arena, 0).and_then(|cell| cell.kept.traces.get(series).copied());
    let Some(stretch) = stretch else { return };
    let of_line = |line: &TraceLine| {
        let values = samples.iter().filter_map(|sample| sample.instants.get(&line.key()));
        band(&line.entity, &values.map(Vec::as_slice).collect::<Vec<_>>(), stretch, *seconds)
    };
    panel.bands = panel.steps.iter().filter_map(of_line).collect();
}

/// Lines with a point for each cell that ran, those without any left out.
fn median_lines(x: &FigureAxis, lines: &[MedianLine], ran: &Ran<'_>) -> Vec<FigureLine> {
    let place = |index: usize| match x {
        FigureAxis::Numbers(values) => values.get(index).copied(),
        FigureAxis::Names(_) => Some(index as f64),
    };
    let one = |arena: ArenaName, line: &MedianLine| {
        let point = |(index, cell): (usize, &String)| {
            let value = ran.value(cell, arena, 0, &line.metric)?;
            let printed = line.published.get(index).cloned().unwrap_or_default();
            Some(FigurePoint {
                published: printed.values,
                role: printed.role,
                ..FigurePoint::new(place(index)?, value.median, value.ci95)
            })
        };
        let points = line.cells.iter().enumerate().filter_map(point).collect();
        FigureLine { label: format!("{}{}", line.label, suffix(ran, arena)), points }
    };
    let arenas = ran.selection.arenas.iter();
    let all = arenas.flat_map(|&arena| lines.iter().map(move |line| one(arena, line)));
    all.filter(|line| !line.points.is_empty()).collect()
}

/// Labels with a point for each of their cells that ran: the metric `x` to the right, `y` upwards.
fn scatter_lines(x: &str, y: &str, points: &[LabelledCells], ran: &Ran<'_>) -> Vec<FigureLine> {
    let Some(&arena) = ran.selection.arenas.first() else { return Vec::new() };
    let point = |cell: &String| {
        let (x, y) = (ran.value(cell, arena, 0, x)?, ran.value(cell, arena, 0, y)?);
        Some(FigurePoint::new(x.median, y.median, y.ci95))
    };
    let lines = points.iter().map(|labelled| FigureLine {
        label: labelled.label.clone(),
        points: labelled.cells.iter().filter_map(point).collect(),
    });
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// One line a flow: each percentile's median over repetitions in the one arena over that in the other.
fn quantile_lines(model: &CellSamples, measure: &CellSamples, flows: &[String]) -> Vec<FigureLine> {
    let Some(first) = model.valid().next() else { return Vec::new() };
    let names = first.delays.keys().filter(|name| flows.iter().any(|wanted| is_flow_of(name, wanted)));
    let line = |name: &String| {
        let points = (0..99).filter_map(|index| {
            let at = |samples: &CellSamples| {
                let values: Vec<f64> = samples
                    .valid()
                    .filter_map(|sample| sample.delays.get(name)?.get(index).copied())
                    .collect();
                median(&values)
            };
            let (y, x) = (at(model)?, at(measure)?);
            Some(FigurePoint::new(x.median, y.median, None))
        });
        FigureLine { label: name.clone(), points: points.collect() }
    };
    names.map(line).filter(|line| !line.points.is_empty()).collect()
}
