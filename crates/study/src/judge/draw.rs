//! Draws the figures of the publication again and fills its tables, from the cells that ran under the base
//! set.

use super::cells::{CellKey, JudgedCells};
use crate::TraceLine;
use crate::arena::ArenaName;
use crate::band::band;
use crate::fit::fit;
use crate::outcome::{
    Drawing, FigureLine, FigureOutcome, FigurePoint, RowOutcome, RunShare, TableOutcome, TracePanel,
};
use crate::over_time::is_flow_or_copy;
use crate::sample::{CellSamples, KeptTrace, Sample, clip};
use crate::stats::{Median, median};
use crate::study::{
    AxisTitles, BASE_SET, Figure, FigureAxis, FigureKind, Kinds, LabelledCells, MedianLine, throughput_link,
};
use crate::table::{PublishedRow, PublishedTable};
use talkpath_units::counted;

/// The number of percentiles in [`Sample::delays`], which are the percentiles 1 to 99.
const PERCENTILES: usize = 99;

/// Draws `figure`. Returns `None` if there is nothing to draw because none of its cells ran.
pub(super) fn draw(figure: &Figure, cells: &JudgedCells<'_>) -> Option<FigureOutcome> {
    let (titles, drawing) = match &figure.kind {
        FigureKind::Trace { series, seconds, cap, levels, .. } => {
            let panels = panels(&figure.kind, cells);
            if lack_points(&panels, series) {
                return earlier_curves(figure, cells);
            }
            let drawing = Drawing::Traces { panels, seconds: *seconds, levels: levels.clone() };
            (AxisTitles { x: "time, s".to_owned(), y: trace_title(series, *cap) }, drawing)
        }
        FigureKind::Cells { x, titles, lines } => {
            let lines = median_lines(x, lines, cells);
            let drawing = match x {
                FigureAxis::Numbers(_) => Drawing::Lines { lines },
                FigureAxis::Names(names) => Drawing::Groups { names: names.clone(), lines },
            };
            (titles.clone(), drawing)
        }
        FigureKind::Quantiles { cell, flows } => draw_quantiles(cell, flows, cells)?,
        FigureKind::Scatter { x, y, titles, points } => {
            let lines = scatter_lines(x, y, points, cells);
            let all_points: Vec<_> =
                lines.iter().flat_map(|line| &line.points).map(|point| (point.x, point.median)).collect();
            (titles.clone(), Drawing::Scatter { lines, fit: fit(&all_points) })
        }
        FigureKind::Absent(why) => {
            (AxisTitles { x: String::new(), y: String::new() }, Drawing::Absent { why: why.clone() })
        }
    };
    if drawing.lacks_lines() {
        return None;
    }
    Some(FigureOutcome {
        number: figure.number.clone(),
        title: figure.title.clone(),
        x_title: titles.x,
        y_title: titles.y,
        note: figure.note.clone(),
        drawing,
    })
}

impl Drawing {
    /// Returns whether the drawing consists of lines, and no line has a point.
    fn lacks_lines(&self) -> bool {
        match self {
            Self::Lines { lines }
            | Self::Groups { lines, .. }
            | Self::Quantiles { lines }
            | Self::Scatter { lines, .. } => lines.is_empty(),
            Self::Traces { .. } | Self::Absent { .. } => false,
        }
    }
}

/// Returns a figure of curves as the earlier run drew it, if its cell is taken from that run.
fn earlier_curves(figure: &Figure, cells: &JudgedCells<'_>) -> Option<FigureOutcome> {
    let FigureKind::Trace { cell, .. } = &figure.kind else { return None };
    let mut arenas = cells.selection.arenas.iter();
    let earlier = arenas.find_map(|&arena| cells.taken_from(CellKey::base(cell, arena)))?;
    let mut drawn = earlier.figure(&figure.number)?.clone();
    let Drawing::Traces { panels, .. } = &mut drawn.drawing else { return None };
    for panel in panels {
        // A kept run has no points any more. A panel without losses has none either, and is as well there.
        panel.is_elsewhere |= panel.steps.is_empty() && panel.loss_runs.is_empty();
    }
    Some(FigureOutcome { title: figure.title.clone(), note: figure.note.clone(), ..drawn })
}

/// Fills `table` with the medians of the run. Returns `None` if none of its cells ran.
pub(super) fn fill(table: &PublishedTable, cells: &JudgedCells<'_>) -> Option<TableOutcome> {
    let rows: Vec<RowOutcome> = table.rows.iter().map(|row| fill_row(row, cells)).collect();
    let has_values = rows.iter().any(|row| !row.values.is_empty());
    has_values.then(|| TableOutcome { title: table.title.clone(), rows })
}

/// Puts the medians of every arena of the run beside the printed figures of `row`.
fn fill_row(row: &PublishedRow, cells: &JudgedCells<'_>) -> RowOutcome {
    let mut values = Vec::new();
    for &arena in &cells.selection.arenas {
        values.extend(cells.value(CellKey::base(&row.cell, arena), &row.metric));
    }
    // A share of 0 is not defined.
    let printed_mean = row.mean().filter(|mean| *mean != 0.0);
    let off = match (values.first(), printed_mean) {
        (Some(first), Some(printed)) => Some((first.median - printed) / printed.abs()),
        _ => None,
    };
    RowOutcome {
        published_row: row.clone(),
        own_unit: cells.study.units.get(&row.metric).copied(),
        values,
        off,
    }
}

/// Returns the end of a label that names `arena`. It is empty if the run has only one arena.
fn arena_suffix(cells: &JudgedCells<'_>, arena: ArenaName) -> String {
    if cells.selection.arenas.len() > 1 { format!(", {arena}") } else { String::new() }
}

/// Returns the title of the vertical axis of a trace.
fn trace_title(series: &str, cap: Option<f64>) -> String {
    match (series, cap) {
        ("loss-runs", _) => "packets lost in a row".to_owned(),
        ("cwnd", None) => "cwnd, packets".to_owned(),
        ("cwnd", Some(cap)) => format!("window: cwnd, at most {cap} packets"),
        ("goodput", _) => "goodput in each second, kb/s".to_owned(),
        _ => match throughput_link(series) {
            Some(link) => format!("throughput of {link} in each second, kb/s"),
            None => "waiting packets".to_owned(),
        },
    }
}

/// Returns whether `panels` show nothing. Panels of loss runs without a loss show that no packet was lost.
fn lack_points(panels: &[TracePanel], series: &str) -> bool {
    let are_empty = panels.iter().all(|panel| panel.steps.is_empty() && panel.loss_runs.is_empty());
    panels.is_empty() || (series != "loss-runs" && are_empty)
}

/// Draws the panels of a trace: one for each kind of run if the figure knows kinds, otherwise a single one.
fn panels(figure: &FigureKind, cells: &JudgedCells<'_>) -> Vec<TracePanel> {
    let FigureKind::Trace { cell, kinds, .. } = figure else { return Vec::new() };
    let mut arenas_and_samples = Vec::new();
    for &arena in &cells.selection.arenas {
        if let Some(samples) = cells.samples(CellKey::base(cell, arena)) {
            arenas_and_samples.push((arena, samples));
        }
    }
    match kinds {
        Some(kinds) => match arenas_and_samples.first() {
            Some((_, samples)) => panels_by_kind(samples, kinds, figure, cells),
            None => Vec::new(),
        },
        None => single_panel(&arenas_and_samples, figure, cells).into_iter().collect(),
    }
}

/// Draws one panel with the first kept repetition of every arena. Bands are drawn only if the run has one
/// arena.
fn single_panel(
    arenas_and_samples: &[(ArenaName, &CellSamples)],
    figure: &FigureKind,
    cells: &JudgedCells<'_>,
) -> Option<TracePanel> {
    let mut panel = TracePanel::default();
    let mut has_trace = false;
    for &(arena, samples) in arenas_and_samples {
        let Some(kept) = samples.traces.first() else { continue };
        add_trace(&mut panel, kept, figure, &arena_suffix(cells, arena));
        let valid: Vec<&Sample> = samples.valid().collect();
        if cells.selection.arenas.len() == 1 {
            add_bands(&mut panel, &valid, figure, cells);
        }
        panel.repetition = kept.repetition;
        panel.runs = RunShare { of_kind: 1, all: valid.len() as u64 };
        has_trace = true;
    }
    has_trace.then_some(panel)
}

/// Draws one panel for each kind of run, the most frequent kind first.
fn panels_by_kind(
    samples: &CellSamples,
    kinds: &Kinds,
    figure: &FigureKind,
    cells: &JudgedCells<'_>,
) -> Vec<TracePanel> {
    let mut panels: Vec<TracePanel> = Vec::new();
    for kept in &samples.traces {
        let Some(mut panel) = kind_panel(kept, kinds, samples, figure) else { continue };
        // Some traces are kept for the kinds of another figure. Only the first trace of each kind is shown.
        if panels.iter().any(|shown| shown.kind == panel.kind) {
            continue;
        }
        let is_of_kind = |sample: &&Sample| sample.values.get(&kinds.metric).copied() == panel.kind;
        let of_kind: Vec<&Sample> = samples.valid().filter(is_of_kind).collect();
        add_bands(&mut panel, &of_kind, figure, cells);
        panels.push(panel);
    }
    panels.sort_by_key(|panel| (core::cmp::Reverse(panel.runs.of_kind), panel.repetition));
    panels
}

/// Draws the panel of the kind that the kept run is of.
fn kind_panel(
    kept: &KeptTrace,
    kinds: &Kinds,
    samples: &CellSamples,
    figure: &FigureKind,
) -> Option<TracePanel> {
    let (_, kind) = kept.kinds.iter().find(|(metric, _)| *metric == kinds.metric)?;
    let values = samples.values(&kinds.metric);
    let of_kind = values.iter().filter(|value| *value == kind).count();
    let runs = RunShare { of_kind: of_kind as u64, all: values.len() as u64 };
    let title = format!(
        "{} {}: {} of {}; run {} is shown",
        crate::words::format_number(None, kind * kinds.times),
        kinds.what,
        runs.of_kind,
        counted(runs.all, "run"),
        kept.repetition + 1
    );
    let mut panel =
        TracePanel { title, kind: Some(*kind), repetition: kept.repetition, runs, ..TracePanel::default() };
    add_trace(&mut panel, kept, figure, "");
    Some(panel)
}

/// Adds the lines or the loss runs of one repetition to `panel`. `suffix` ends the name of each line.
fn add_trace(panel: &mut TracePanel, kept: &KeptTrace, figure: &FigureKind, suffix: &str) {
    let FigureKind::Trace { series, entity, seconds, cap, .. } = figure else { return };
    if series == "loss-runs" {
        for run in &kept.trace.loss_runs {
            if run.flow.starts_with(entity) && seconds.holds(run.at_s) {
                panel.loss_runs.push(run.clone());
            }
        }
        return;
    }
    for line in &kept.trace.lines {
        if line.kind == *series && line.entity.starts_with(entity) {
            let points = clip(line.points.iter().copied(), *seconds);
            panel.steps.push(TraceLine {
                entity: format!("{}{suffix}", line.entity),
                kind: line.kind.clone(),
                points: match cap {
                    Some(cap) => cap_points(points, *cap),
                    None => cap_points(points, f64::INFINITY),
                },
            });
        }
    }
}

/// Lowers the values of `points` to `cap`, and leaves out points that do not change the value.
fn cap_points(points: Vec<(f64, f64)>, cap: f64) -> Vec<(f64, f64)> {
    let mut capped: Vec<(f64, f64)> = points.into_iter().map(|(at, value)| (at, value.min(cap))).collect();
    capped.dedup_by(|(_, later), (_, earlier)| later == earlier);
    capped
}

/// Adds the band of each line of `panel`. The band shows where the same line lies in all of `samples`.
fn add_bands(panel: &mut TracePanel, samples: &[&Sample], figure: &FigureKind, cells: &JudgedCells<'_>) {
    let FigureKind::Trace { series, cell, seconds, .. } = figure else { return };
    let arena = cells.selection.arenas.first().copied().unwrap_or(ArenaName::Sim);
    let Some(cell) = cells.study.cell(cell, arena, BASE_SET) else { return };
    let Some(&stretch) = cell.kept.traces.get(series) else { return };
    panel.bands.clear();
    for line in &panel.steps {
        let key = line.key();
        let instants: Vec<&[f64]> =
            samples.iter().filter_map(|sample| sample.instants.get(&key)).map(Vec::as_slice).collect();
        panel.bands.extend(band(&line.entity, &instants, stretch, *seconds));
    }
}

/// Draws the lines of medians of every arena. Lines without a point are left out.
fn median_lines(x: &FigureAxis, lines: &[MedianLine], cells: &JudgedCells<'_>) -> Vec<FigureLine> {
    let mut drawn = Vec::new();
    for &arena in &cells.selection.arenas {
        for line in lines {
            let points = median_points(x, line, arena, cells);
            if !points.is_empty() {
                let label = format!("{}{}", line.label, arena_suffix(cells, arena));
                drawn.push(FigureLine { label, points });
            }
        }
    }
    drawn
}

/// Returns the points of one line in one arena, one for each cell that ran.
fn median_points(
    x: &FigureAxis,
    line: &MedianLine,
    arena: ArenaName,
    cells: &JudgedCells<'_>,
) -> Vec<FigurePoint> {
    let mut points = Vec::new();
    for (index, cell) in line.cells.iter().enumerate() {
        let x = match x {
            FigureAxis::Numbers(numbers) => numbers.get(index).copied(),
            FigureAxis::Names(_) => Some(index as f64),
        };
        let value = cells.value(CellKey::base(cell, arena), &line.metric);
        let (Some(x), Some(value)) = (x, value) else { continue };
        let printed = line.published.get(index).cloned().unwrap_or_default();
        points.push(FigurePoint {
            published: printed.values,
            role: printed.role,
            ..FigurePoint::new(x, value.median, value.ci95)
        });
    }
    points
}

/// Draws one point for each cell that ran in the first arena, by the labels of the cells. The horizontal axis
/// shows the metric `x`, the vertical axis shows the metric `y`.
fn scatter_lines(x: &str, y: &str, groups: &[LabelledCells], cells: &JudgedCells<'_>) -> Vec<FigureLine> {
    let Some(&arena) = cells.selection.arenas.first() else { return Vec::new() };
    let mut lines = Vec::new();
    for group in groups {
        let mut points = Vec::new();
        for cell in &group.cells {
            let x_value = cells.value(CellKey::base(cell, arena), x);
            let y_value = cells.value(CellKey::base(cell, arena), y);
            if let (Some(x), Some(y)) = (x_value, y_value) {
                points.push(FigurePoint::new(x.median, y.median, y.ci95));
            }
        }
        if !points.is_empty() {
            lines.push(FigureLine { label: group.label.clone(), points });
        }
    }
    lines
}

/// Draws the delay quantiles of `flows` in the arena of the model over the quantiles in the arena of the
/// measure. Returns `None` unless `cell` ran in two arenas.
fn draw_quantiles(cell: &str, flows: &[String], cells: &JudgedCells<'_>) -> Option<(AxisTitles, Drawing)> {
    let mut arenas = cells.selection.arenas.clone();
    // The order of arenas is from the model to the world.
    arenas.sort_unstable();
    let [model, .., measure] = arenas.as_slice() else { return None };
    let model_samples = cells.samples(CellKey::base(cell, *model))?;
    let measure_samples = cells.samples(CellKey::base(cell, *measure))?;
    let titles = AxisTitles { x: format!("delay in {measure}, ms"), y: format!("delay in {model}, ms") };
    let lines = quantile_lines(model_samples, measure_samples, flows);
    Some((titles, Drawing::Quantiles { lines }))
}

/// Returns the lines of a figure of quantiles, one for each flow. A point is one percentile: its median over
/// the repetitions of both arenas.
fn quantile_lines(model: &CellSamples, measure: &CellSamples, flows: &[String]) -> Vec<FigureLine> {
    let Some(first) = model.valid().next() else { return Vec::new() };
    let mut lines = Vec::new();
    for name in first.delays.keys() {
        if !flows.iter().any(|wanted| is_flow_or_copy(name, wanted)) {
            continue;
        }
        let mut points = Vec::new();
        for index in 0..PERCENTILES {
            let x = median_delay(measure, name, index);
            let y = median_delay(model, name, index);
            if let (Some(x), Some(y)) = (x, y) {
                points.push(FigurePoint::new(x.median, y.median, None));
            }
        }
        if !points.is_empty() {
            lines.push(FigureLine { label: name.clone(), points });
        }
    }
    lines
}

/// Returns the median over the repetitions of one percentile of a flow's delays. The percentile is `index` +
/// 1.
fn median_delay(samples: &CellSamples, flow: &str, index: usize) -> Option<Median> {
    let delay = |sample: &Sample| sample.delays.get(flow)?.get(index).copied();
    let delays: Vec<f64> = samples.valid().filter_map(delay).collect();
    median(&delays)
}
