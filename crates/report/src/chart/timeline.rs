//! The chart of the path's changes over time: a row for each kind of change.
//!
//! ```text
//!  handover (59 times, first at 15 s)
//!   │   │   │   │   │   │   │   │        a step holds at once
//!  up: outage (30 to 32.5 s)
//!          ███                           no packet leaves
//!  rain (150 to 750 s)
//!        ◢██████████◣                    a ramp; then its values hold
//! ```

use maud::html;
use talkpath_measure::summary::{ChangeKind, PathChange};

use super::legend::LegendEntry;
use super::shared::Chart;
use crate::number::counted;
use crate::path_changes::{group_name, groups, times_words};
use crate::plot::panel::{LEFT, Panel, PanelStack, X_RANGE};
use crate::plot::scale::Scale;
use crate::plot::svg::{Svg, SvgName, SvgPath, SvgRect, SvgText, coordinate};
use crate::select::{CellSeries, Selection};

const TOP: f64 = 22.0;
const ROW_HEIGHT: f64 = 18.0;
/// The room above a row for its name.
const GAP: f64 = 22.0;
/// We chose at most 12 rows because a page has room for no more beside the charts that they explain.
const MAX_ROWS: usize = 12;
/// A silence or a ramp is at least this wide, in SVG units, so that it is seen.
const MIN_WIDTH: f64 = 2.0;
/// The styles are here and not in the style sheet, which every chart's file holds.
const RAMP: &str = "fill:var(--accent);fill-opacity:.45";
const STEP: &str = "fill:none;stroke:var(--accent);stroke-width:2";
/// Steps are at least this far apart. Closer steps look like one step.
const MIN_STEP_DISTANCE: f64 = 2.0;

/// Draws the changes of the first cell whose path changes. Returns `None` if no path changes.
pub(crate) fn changes_over_time(selection: &Selection<CellSeries<'_>>) -> Option<Chart> {
    let cell = selection.series.iter().find(|cell| !cell.changes.is_empty())?;
    let all_groups = groups(cell.changes);
    let drawn = &all_groups[..all_groups.len().min(MAX_ROWS)];
    let stack = PanelStack { count: drawn.len(), top: TOP, panel_height: ROW_HEIGHT, gap: GAP };
    let mut svg = stack.svg();
    let last = cell.changes.iter().map(|change| change.until_s).fold(cell.seconds, f64::max);
    let x = Scale::linear((0.0, if cell.seconds > 0.0 { cell.seconds } else { last }), X_RANGE);
    for (index, (group, span)) in drawn.iter().zip(stack.spans()).enumerate() {
        let y = Scale::linear((0.0, 1.0), (span.bottom, span.top));
        let panel = Panel { top: span.top, bottom: span.bottom, x, y };
        panel.draw_horizontal_axis(&mut svg, 8, stack.is_last(index).then_some("time since the start, s"));
        let (first, end) = (group[0], group[group.len() - 1]);
        let times = group.iter().map(|change| change.times).sum();
        let name = format!("{} ({})", group_name(first), times_words(times, first.from_s, end.until_s));
        svg.text(SvgText::starting_at((LEFT, span.top - 6.0), "name", &name));
        draw_group(&mut svg, &panel, group);
    }
    let not_drawn = all_groups.len() - drawn.len();
    let more = match not_drawn {
        0 => String::new(),
        count => format!(" {} of change are not drawn.", counted(count as u64, "more kind")),
    };
    let differ = selection.series.iter().any(|other| other.changes != cell.changes);
    let of_cell =
        if differ { format!(" As in {}; the other cells differ.", cell.label) } else { String::new() };
    let id = format!("{}path-changes", selection.id_prefix);
    Some(Chart {
        title: "Changes of the path".to_owned(),
        legend: legend(cell.changes),
        svg: Some(svg.finish(SvgName {
            id: &id,
            title: "Changes of the path",
            description: "When each kind of change of the path comes, and how long it takes.",
        })),
        caption: format!("A pointer over a mark says what changes and when.{of_cell}{more}"),
        id,
    })
}

fn draw_group(svg: &mut Svg, panel: &Panel, group: &[&PathChange]) {
    let mut last_step = f64::NEG_INFINITY;
    for change in group.iter().filter(|change| panel.x.contains(change.from_s)) {
        let (left, right) = (panel.x.at(change.from_s), panel.x.at(change.until_s).min(X_RANGE.1));
        let width = (right - left).max(MIN_WIDTH);
        if change.kind == ChangeKind::Step {
            if left - last_step < MIN_STEP_DISTANCE {
                continue;
            }
            last_step = left;
        }
        let when = times_words(1, change.from_s, change.until_s);
        svg.open_group(&html! { g { title { (when) ": " (change.text) } } });
        let (top, bottom) = (coordinate(panel.top), coordinate(panel.bottom));
        match change.kind {
            ChangeKind::Silence => svg.rect(&SvgRect {
                class: "change-silence",
                style: "fill:var(--bad)",
                left,
                top: panel.top,
                width,
                height: panel.bottom - panel.top,
                ..SvgRect::default()
            }),
            ChangeKind::Ramp => {
                let (left, right) = (coordinate(left), coordinate(left + width));
                let data = format!("M{left} {bottom}L{right} {top}V{bottom}Z");
                svg.path(&SvgPath { class: "change-ramp", style: RAMP, data: &data, ..SvgPath::default() });
            }
            ChangeKind::Step => {
                let data = format!("M{} {bottom}V{top}", coordinate(left));
                svg.path(&SvgPath { class: "change-step", style: STEP, data: &data, ..SvgPath::default() });
            }
        }
        svg.close_group();
    }
}

fn legend(changes: &[PathChange]) -> Vec<LegendEntry> {
    let kinds = [
        (ChangeKind::Step, "values that hold at once", "stroke:var(--accent);stroke-width:2"),
        (ChangeKind::Ramp, "a ramp to new values", "stroke:var(--accent);stroke-opacity:.45;stroke-width:9"),
        (ChangeKind::Silence, "no packet leaves", "stroke:var(--bad);stroke-width:9"),
    ];
    let is_drawn = |kind| changes.iter().any(|change| change.kind == kind);
    let drawn = kinds.into_iter().filter(|(kind, ..)| is_drawn(*kind));
    drawn.map(|(_, name, style)| LegendEntry::plain_line(name, style)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use talkpath_measure::chart_data::CellChartData;

    use super::*;
    use crate::display;

    fn change(from_s: f64, until_s: f64, kind: ChangeKind, group: &str) -> PathChange {
        PathChange { from_s, until_s, text: format!("{group}!"), kind, group: group.to_owned(), times: 1 }
    }

    #[test]
    fn each_kind_of_change_has_a_row_and_its_own_look_and_each_mark_says_what_it_is() {
        let mut changes: Vec<PathChange> = (1..4)
            .map(|number| {
                change(15.0 * f64::from(number), 15.0 * f64::from(number), ChangeKind::Step, "handover")
            })
            .collect();
        changes.push(change(30.0, 32.0, ChangeKind::Silence, "outage"));
        changes.push(change(40.0, 50.0, ChangeKind::Ramp, "rain"));
        let cell = CellChartData {
            cell: 0,
            repetition: 0,
            label: String::new(),
            flows: Vec::new(),
            lines: Vec::new(),
            more_lines: BTreeMap::new(),
        };
        let series = |changes| CellSeries {
            label: "UDP".to_owned(),
            look: display::display("udp").into(),
            cell: &cell,
            changes,
            seconds: 60.0,
        };
        let selection = |changes| Selection { series: vec![series(changes)], not_drawn: 0, id_prefix: "" };
        let chart = changes_over_time(&selection(&changes)).unwrap();
        let svg = chart.svg.unwrap().0;
        assert!(
            svg.contains("handover (3 times, first at 15 s)") && svg.contains("outage (30 to 32 s)"),
            "{svg}"
        );
        for (class, count) in [("change-step", 3), ("change-silence", 1), ("change-ramp", 1)] {
            assert_eq!(svg.matches(&format!("class=\"{class}\"")).count(), count, "{svg}");
        }
        assert!(svg.contains("<title>30 to 32 s: outage!</title>"), "{svg}");
        assert_eq!(chart.legend.len(), 3);
        assert!(changes_over_time(&selection(&[])).is_none());
    }
}
