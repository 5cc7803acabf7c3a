//! How the view of an experiment is drawn.
//!
//! ```text
//!  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━───────────────  75 %
//!  flow  transport  of   p50, ms  p99, ms  loss, %  kb/s   p50 one after the other
//!  call  udp         3      41.0     82.0     1.00  64.0   ▁▄█   round trip
//!
//!  UDP is best for this call: ...
//!  6 of 8 repetitions, 20 s left
//! ```

use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::symbols::bar;
use ratatui::text::Line;
use ratatui::widgets::{Cell, LineGauge, Paragraph, Row as TableRow, Table, Wrap};
use talkpath_units::counted;

use super::view::{Row, View};

/// The levels of a line of bars, from low to high.
const LEVELS: [&str; 8] = [
    bar::ONE_EIGHTH,
    bar::ONE_QUARTER,
    bar::THREE_EIGHTHS,
    bar::HALF,
    bar::FIVE_EIGHTHS,
    bar::THREE_QUARTERS,
    bar::SEVEN_EIGHTHS,
    bar::FULL,
];
/// The smallest span of the delays in a line of bars, as a share of the largest of them. We chose 5 %, so
/// that delays which hardly differ do not look as if they did.
const SMALLEST_SPAN: f64 = 0.05;

/// Draws `view` as it is at `now`.
pub(super) fn draw(view: &View, now: Instant, frame: &mut Frame<'_>) {
    let answer_lines = u16::try_from(2 * view.answers.len()).unwrap_or(u16::MAX).min(frame.area().height / 3);
    // The last line keeps its place in a small terminal.
    let [gauge, rows, answers, last] = Layout::vertical([
        Constraint::Max(1),
        Constraint::Fill(1),
        Constraint::Max(answer_lines),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let share = view.reading.as_ref().map_or_else(|| Some(view.run.share()), |reading| reading.share);
    if let Some(share) = share.filter(|_| frame.area().height > 1) {
        let label = format!("{:.0} %", 100.0 * share);
        let line = LineGauge::default().filled_symbol("━").unfilled_symbol("─");
        frame.render_widget(line.ratio(share).label(label), gauge);
    }
    draw_rows(view, rows, frame);
    let lines: Vec<Line<'_>> = view.answers.iter().map(|answer| Line::from(answer.as_str())).collect();
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }), answers);
    frame.render_widget(Paragraph::new(last_line(view, now)), last);
}

fn draw_rows(view: &View, area: Rect, frame: &mut Frame<'_>) {
    let has_swept = view.rows.keys().any(|(_, swept, _)| !swept.is_empty());
    let mut heads =
        vec!["flow", "transport", "of", "p50, ms", "p99, ms", "loss, %", "kb/s", "p50 one after the other"];
    let mut widths = vec![
        Constraint::Max(12),
        Constraint::Max(24),
        Constraint::Length(5),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(9),
        Constraint::Fill(1),
    ];
    if has_swept {
        heads.insert(2, "at");
        widths.insert(2, Constraint::Max(30));
    }
    let mut rows = Vec::new();
    for ((flow, swept, transport), row) in &view.rows {
        let mut cells = vec![
            flow.clone(),
            transport.clone(),
            row.repetitions.to_string(),
            number(row.median_ms.value(), 1),
            number(row.tail_ms.value(), 1),
            number(row.loss.value().map(|share| 100.0 * share), 2),
            number(row.rate_bps.value().map(|rate| rate / 1000.0), 1),
            format!("{}  {}", bars(row), if row.is_round_trip { "round trip" } else { "one way" }),
        ];
        if has_swept {
            cells.insert(2, swept.clone());
        }
        rows.push(TableRow::new(cells.into_iter().map(Cell::from)));
    }
    if !rows.is_empty() {
        let head = TableRow::new(heads).style(Style::new().add_modifier(Modifier::BOLD));
        frame.render_widget(Table::new(rows, widths).header(head), area);
    }
}

/// Says how far the run is, and how much longer it takes.
fn last_line(view: &View, now: Instant) -> String {
    if let Some(reading) = &view.reading {
        return reading.last_line.clone();
    }
    let done = format!("{} of {}", view.run.finished, counted(view.run.repetitions, "repetition"));
    match view.run.left_s(now) {
        Some(left) => format!("{done}, {} left", seconds(left)),
        None => done,
    }
}

/// Writes a time that is left, which is an estimate.
fn seconds(left: f64) -> String {
    let whole = left.ceil().max(0.0) as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

/// Draws the median delay of each of the latest repetitions as a bar, from the smallest to the largest of
/// them.
fn bars(row: &Row) -> String {
    let least = row.medians_ms.iter().copied().fold(f64::INFINITY, f64::min);
    let most = row.medians_ms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = (most - least).max(SMALLEST_SPAN * most.abs());
    let level = |delay: &f64| {
        let share = if span > 0.0 { (delay - least) / span } else { 0.0 };
        LEVELS[((share * 7.0).round() as usize).min(LEVELS.len() - 1)]
    };
    row.medians_ms.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_has_two_units_at_most() {
        let written = [0.2, 59.0, 61.0, 3_599.5, 7_260.0].map(seconds);
        assert_eq!(written, ["1 s", "59 s", "1 min 1 s", "1 h 0 min", "2 h 1 min"]);
    }
}
