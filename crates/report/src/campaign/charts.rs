//! The charts of a campaign's page: for each pair of hosts the 90th percentiles of delay and jitter, day by
//! day, with a bar for each transport. So Zhang and Schulzrinne (2004, figures 4.2.1 to 4.2.8) show each
//! node.

use maud::{Markup, html};
use talkpath_campaign::{DayRow, Estimate, Findings};
use talkpath_study::{Drawing, FigureLine, FigureOutcome, FigurePoint};

use crate::chart::{Chart, id_part};
use crate::display::display;
use crate::number::{counted, distinct};
use crate::study::chart::titled;

/// At most this many pairs of hosts are drawn. We chose 24: each has two charts, and the tables have all
/// pairs.
const MAX_PAIRS: usize = 24;

/// A figure of a day that is drawn.
struct DrawnFigure {
    name: &'static str,
    estimate: fn(&DayRow) -> Option<&Estimate>,
}

const FIGURES: [DrawnFigure; 2] = [
    DrawnFigure { name: "delay", estimate: |row| row.delay_ms_p90.as_ref() },
    DrawnFigure { name: "jitter", estimate: |row| row.ipdv_ms_p90.as_ref() },
];

/// The charts of one measure. Empty if nothing was measured.
pub(super) fn charts_by_pair(findings: &Findings, measure: &str) -> Markup {
    let rows: Vec<&DayRow> = findings.days.iter().filter(|row| row.measure == measure).collect();
    let pairs = distinct(rows.iter().map(|row| (row.near.as_str(), row.far.as_str())));
    let more = pairs.len().saturating_sub(MAX_PAIRS);
    html! {
        @for (near, far) in pairs.iter().take(MAX_PAIRS) {
            @let of_pair: Vec<&DayRow> =
                rows.iter().copied().filter(|row| row.near == *near && row.far == *far).collect();
            @for figure in &FIGURES {
                @if let Some(chart) = chart_of_pair(measure, (near, far), &of_pair, figure) { (chart.html()) }
            }
        }
        @if more > 0 {
            p { (counted(more as u64, "more pair")) " of hosts: the tables have their figures." }
        }
    }
}

/// Draws a figure of one pair of hosts. Returns `None` if it is not known of any day.
fn chart_of_pair(
    measure: &str,
    (near, far): (&str, &str),
    rows: &[&DayRow],
    figure: &DrawnFigure,
) -> Option<Chart> {
    let mut days = distinct(rows.iter().map(|row| row.day));
    days.sort_unstable();
    let mut lines = Vec::new();
    for transport in distinct(rows.iter().map(|row| row.transport.as_str())) {
        let mut points = Vec::new();
        for row in rows.iter().filter(|row| row.transport == transport) {
            let place = days.iter().position(|day| *day == row.day);
            if let (Some(place), Some(Estimate { median, ci95, .. })) = (place, (figure.estimate)(row)) {
                points.push(FigurePoint::new(place as f64, *median, *ci95));
            }
        }
        if !points.is_empty() {
            lines.push(FigureLine { label: label(transport), points });
        }
    }
    if lines.is_empty() {
        return None;
    }
    let title = format!("{near} → {far}: p90 of {} day by day, {measure}", figure.name);
    let drawn = FigureOutcome {
        number: String::new(),
        title: title.clone(),
        x_title: "day".to_owned(),
        y_title: format!("p90 of {}, ms", figure.name),
        note: String::new(),
        drawing: Drawing::Groups { names: days.iter().map(u64::to_string).collect(), lines },
    };
    Some(titled(&drawn, &id_part(&format!("{measure}-{near}-{far}-{}", figure.name)), title))
}

/// The transport's name for people. Its options follow the name in scenarios after a space.
fn label(transport: &str) -> String {
    match transport.split_once(' ') {
        Some((kind, options)) => format!("{} {options}", display(kind).name),
        None => display(transport).name.to_owned(),
    }
}
