//! Delay over time, one panel a series under one another, all with one vertical scale; missing messages as
//! ticks.

use super::{Entry, Figure, colour, extent, left_out, shared};
use crate::path_changes;
use crate::plot::panel::{BOTTOM, LEFT, LIMIT_STYLE, Panel, RIGHT, WIDTH, stack};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Anchor, PathData, Svg, unit};
use crate::select::{MAX_PANELS, Selection, Series};
use crate::verdict::limit_ms;

const TOP: f64 = 24.0;
const HEIGHT: f64 = 120.0;
const GAP: f64 = 30.0;
/// Length of a tick for a missing message.
const LOSS_TICK: f64 = 9.0;

/// The figure; `None` if no series has anything over time.
pub(crate) fn delay_over_time(selection: &Selection<Series<'_>>, round_trip: bool) -> Option<Figure> {
    let any = |series: &&Series<'_>| !series.flow.delay.is_empty() || !series.flow.losses.is_empty();
    let all: Vec<&Series<'_>> = selection.shown.iter().filter(any).collect();
    let drawn = &all[..all.len().min(MAX_PANELS)];
    if drawn.is_empty() {
        return None;
    }
    let places = stack(drawn.len(), TOP, HEIGHT, GAP);
    let bottom = places.last().map_or(TOP, |place| place.1);
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    let times = drawn.iter().flat_map(|series| {
        series.flow.delay.iter().map(|point| point.0).chain(series.flow.losses.iter().copied())
    });
    let (_, end) = extent(times);
    let delays = extent(drawn.iter().flat_map(|series| series.flow.delay.iter().map(|point| point.1)));
    let limit = limit_ms(round_trip);
    let mut limit_shown = false;
    for (index, (series, (top, bottom))) in drawn.iter().zip(&places).enumerate() {
        let panel = Panel {
            top: *top,
            bottom: *bottom,
            x: Scale::linear((0.0, end), (LEFT, WIDTH - RIGHT)),
            y: Scale::fitting(delays, (bottom - LOSS_TICK - 4.0, *top)),
        };
        panel.vertical_axis(&mut svg, 4, tick_label);
        let last = index + 1 == drawn.len();
        panel.horizontal_axis(&mut svg, 8, last.then_some("time since the start, s"));
        panel.across(&mut svg, limit);
        limit_shown |= panel.y.holds(limit);
        panel.open(&mut svg, "time", ("time", "s"), ("delay", "ms"));
        points(&mut svg, series, &panel);
        svg.close();
    }
    svg.vertical_title((TOP, bottom), if round_trip { "round trip delay, ms" } else { "one-way delay, ms" });
    let names: Vec<&str> = drawn.iter().map(|series| series.label.as_str()).collect();
    let kind = if round_trip { "Round trip" } else { "One-way" };
    let description = format!("Delay of each message over time in a panel for each of {}.", names.join(", "));
    let caption = format!(
        "Each point is a message at the moment it was due; of many that fall together, the fastest and the slowest.{}{}{}",
        path_changes::caption(drawn.iter().map(|series| series.changes)),
        shared(drawn.len()),
        left_out(selection.left_out + all.len() - drawn.len(), "panels")
    );
    let limit = match round_trip {
        true => format!("{} ms, twice the 150 ms of ITU-T G.114", tick_label(limit)),
        false => format!("{} ms, from ITU-T G.114", tick_label(limit)),
    };
    // A thick line with gaps is a row of ticks.
    let ticks = format!("stroke:var(--bad);stroke-width:{LOSS_TICK};stroke-dasharray:1.4 5");
    let any_lost = drawn.iter().any(|series| !series.flow.losses.is_empty());
    let lost = any_lost.then(|| Entry::line("missing message", ticks));
    let limit = limit_shown.then(|| Entry::line(&limit, LIMIT_STYLE));
    let dots = |series: &&Series<'_>| {
        Entry::line(
            &series.label,
            format!(
                "stroke:{};stroke-width:4;stroke-dasharray:.1 6;stroke-linecap:round",
                colour(series.look)
            ),
        )
    };
    let entries = drawn.iter().map(dots);
    let id = format!("{}{}", selection.id, if round_trip { "delay-rtt" } else { "delay-owd" });
    Some(Figure {
        title: format!("{kind} delay over time"),
        legend: entries.chain(lost).chain(limit).collect(),
        svg: Some(svg.finish(&id, "Delay over time", &description)),
        caption,
        id,
    })
}

fn points(svg: &mut Svg, series: &Series<'_>, panel: &Panel) {
    svg.open_data();
    path_changes::mark(svg, panel, series.changes);
    let mut dots = PathData::default();
    for point in &series.flow.delay {
        let (x, y) = panel.at(*point);
        dots.dot(x, y);
    }
    svg.data("dots", &format!("stroke:{}", colour(series.look)), &series.label, &dots.finish());
    let mut ticks = String::new();
    let mut last = f64::NEG_INFINITY;
    for lost in &series.flow.losses {
        let x = panel.x.at(*lost);
        // Ticks that fall on the same half unit cannot be distinguished.
        if x - last >= 0.5 {
            ticks.push_str(&format!("M{} {}v-{LOSS_TICK}", unit(x), unit(panel.bottom - 1.0)));
            last = x;
        }
    }
    if !ticks.is_empty() {
        svg.data("lost", "", &series.label, &ticks);
    }
    svg.close();
    let style = format!("fill:{}", colour(series.look));
    svg.text("name", &style, (LEFT, panel.top - 7.0), Anchor::Start, &series.label);
}
