//! The chart of delay over time. Each series has a panel, in which a point is a message. Ticks at the bottom
//! are missing messages.

use super::legend::LegendEntry;
use super::shared::{Chart, extent, not_drawn_note, shared_limit, shared_scale_note};
use crate::metric::DelayKind;
use crate::path_changes;
use crate::plot::panel::{LEFT, LIMIT_STYLE, Panel, PanelStack, Quantity, X_RANGE};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{PathData, Svg, SvgName, SvgPath, SvgText, coordinate};
use crate::select::{FlowSeries, MAX_PANELS, Selection};
use crate::verdict::limit_ms;

const TOP: f64 = 24.0;
const PANEL_HEIGHT: f64 = 120.0;
const GAP: f64 = 30.0;
/// So few points are drawn larger. We chose 300: twice as many touch each other.
const FEW_MESSAGES: usize = 300;
/// The length of the tick for a missing message.
const LOSS_TICK: f64 = 9.0;
/// The space between the ticks and the smallest delay.
const LOSS_TICK_GAP: f64 = 4.0;
/// The least distance of two ticks. Ticks that are closer look like one tick.
const MIN_TICK_DISTANCE: f64 = 0.5;

/// Draws the delays of `selection`. Returns `None` if no series has delays or missing messages.
pub(crate) fn delay_over_time(selection: &Selection<FlowSeries<'_>>, kind: DelayKind) -> Option<Chart> {
    let mut series: Vec<&FlowSeries<'_>> =
        selection.series.iter().filter(|series| has_messages(series)).collect();
    let not_drawn = selection.not_drawn + series.len().saturating_sub(MAX_PANELS);
    series.truncate(MAX_PANELS);
    if series.is_empty() {
        return None;
    }
    let names: Vec<&str> = series.iter().map(|series| series.label.as_str()).collect();
    let description = format!("Delay of each message over time in a panel for each of {}.", names.join(", "));
    let id = format!("{}delay-{}", selection.id_prefix, kind.abbreviation());
    let drawing = draw_panels(&series, kind);
    let title = match kind {
        DelayKind::RoundTrip => "Round trip delay over time",
        DelayKind::OneWay => "One-way delay over time",
    };
    Some(Chart {
        title: title.to_owned(),
        legend: legend(&series, kind, drawing.limit),
        svg: Some(drawing.svg.finish(SvgName {
            id: &id,
            title: "Delay over time",
            description: &description,
        })),
        caption: format!(
            "Each point is a message at the moment it was due; of many that fall together, the fastest and the slowest.{}{}{}",
            path_changes::caption(series.iter().map(|series| series.changes)),
            shared_scale_note(series.len()),
            not_drawn_note(not_drawn, "panels")
        ),
        id,
    })
}

struct Drawing {
    svg: Svg,
    /// The limit of the delay, if it lies within the panels.
    limit: Option<f64>,
}

fn has_messages(series: &FlowSeries<'_>) -> bool {
    !series.flow.delay.is_empty() || !series.flow.losses.is_empty()
}

fn draw_panels(series: &[&FlowSeries<'_>], kind: DelayKind) -> Drawing {
    let stack = PanelStack { count: series.len(), top: TOP, panel_height: PANEL_HEIGHT, gap: GAP };
    let mut drawing = Drawing { svg: stack.svg(), limit: None };
    let svg = &mut drawing.svg;
    let delays = || series.iter().flat_map(|series| series.flow.delay.iter());
    let losses = series.iter().flat_map(|series| series.flow.losses.iter());
    let (_, end) = extent(delays().map(|(due, _)| *due).chain(losses.copied()));
    let delay_extent = extent(delays().map(|(_, delay)| *delay));
    let limit = shared_limit(series);
    for (index, (series, span)) in series.iter().zip(stack.spans()).enumerate() {
        let panel = Panel {
            top: span.top,
            bottom: span.bottom,
            x: Scale::linear((0.0, end), X_RANGE),
            y: Scale::fitting(delay_extent, (span.bottom - LOSS_TICK - LOSS_TICK_GAP, span.top)),
        };
        panel.draw_vertical_axis(svg, 4, tick_label);
        panel.draw_horizontal_axis(svg, 8, stack.is_last(index).then_some("time since the start, s"));
        if let Some(limit) = limit {
            panel.draw_horizontal_limit(svg, limit);
            drawing.limit = drawing.limit.or(panel.y.contains(limit).then_some(limit));
        }
        panel.open_over_time(svg, Quantity { name: "delay", unit: "ms" });
        svg.open_data_group();
        path_changes::mark(svg, &panel, series.changes);
        draw_delays(svg, &panel, series);
        draw_losses(svg, &panel, series);
        svg.close_group();
        let name_point = (LEFT, panel.top - 7.0);
        let name_style = series.look.fill_style();
        svg.text(SvgText::starting_at(name_point, "name", &series.label).with_style(&name_style));
        svg.close_group();
    }
    svg.vertical_axis_title(stack.whole_span(), axis_title(kind));
    drawing
}

fn draw_delays(svg: &mut Svg, panel: &Panel, series: &FlowSeries<'_>) {
    let mut dots = PathData::default();
    for message in &series.flow.delay {
        dots.dot(panel.point(*message));
    }
    let mut style = format!("stroke:{}", series.look.colour());
    if series.flow.delay.len() <= FEW_MESSAGES {
        style.push_str(";stroke-width:4");
    }
    let (series, data) = (series.label.as_str(), dots.finish());
    svg.path(&SvgPath { class: "dots", style: &style, series, data: &data, ..SvgPath::default() });
}

fn draw_losses(svg: &mut Svg, panel: &Panel, series: &FlowSeries<'_>) {
    let mut ticks = String::new();
    let mut last_x = f64::NEG_INFINITY;
    for due in &series.flow.losses {
        let x = panel.x.at(*due);
        if x - last_x >= MIN_TICK_DISTANCE {
            let foot = coordinate(panel.bottom - 1.0);
            ticks.push_str(&format!("M{} {foot}v-{LOSS_TICK}", coordinate(x)));
            last_x = x;
        }
    }
    if !ticks.is_empty() {
        let series = series.label.as_str();
        svg.path(&SvgPath { class: "lost", series, data: &ticks, ..SvgPath::default() });
    }
}

pub(super) fn axis_title(kind: DelayKind) -> &'static str {
    match kind {
        DelayKind::RoundTrip => "round trip delay, ms",
        DelayKind::OneWay => "one-way delay, ms",
    }
}

fn legend(series: &[&FlowSeries<'_>], kind: DelayKind, limit: Option<f64>) -> Vec<LegendEntry> {
    let mut entries = Vec::new();
    for series in series {
        // A thick line with round ends and long gaps is a row of dots.
        let colour = series.look.colour();
        let dots = format!("stroke:{colour};stroke-width:4;stroke-dasharray:.1 6;stroke-linecap:round");
        entries.push(LegendEntry::plain_line(&series.label, dots));
    }
    if series.iter().any(|series| !series.flow.losses.is_empty()) {
        // A thick line with gaps is a row of ticks.
        let ticks = format!("stroke:var(--bad);stroke-width:{LOSS_TICK};stroke-dasharray:1.4 5");
        entries.push(LegendEntry::plain_line("missing message", ticks));
    }
    if let Some(limit) = limit {
        let text = tick_label(limit);
        let name = match kind {
            _ if limit.total_cmp(&limit_ms(kind)).is_ne() => format!("{text} ms, the deadline"),
            DelayKind::RoundTrip => format!("{text} ms, twice the 150 ms of ITU-T G.114"),
            DelayKind::OneWay => format!("{text} ms, from ITU-T G.114"),
        };
        entries.push(LegendEntry::plain_line(&name, LIMIT_STYLE));
    }
    entries
}
