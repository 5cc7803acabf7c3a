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
    let (cell, timeline) = selection.series.iter().find_map(|cell| Some((cell, cell.timeline?)))?;
    let all_groups = groups(cell.changes);
    let drawn = &all_groups[..all_groups.len().min(MAX_ROWS)];
    let stack = PanelStack { count: drawn.len(), top: TOP, panel_height: ROW_HEIGHT, gap: GAP };
    let mut svg = stack.svg();
    let x = Scale::linear((0.0, timeline.seconds), X_RANGE);
    for (index, (group, span)) in drawn.iter().zip(stack.spans()).enumerate() {
        let y = Scale::linear((0.0, 1.0), (span.bottom, span.top));
        let panel = Panel { top: span.top, bottom: span.bottom, x, y };
        panel.draw_horizontal_axis(&mut svg, 8, stack.is_last(index).then_some("time since the start, s"));
        let (first, end) = (group[0], group[group.len() - 1]);
        let times = group.iter().map(|change| change.times).sum();
        let name = format!("{} ({})", group_name(first), times_words(times, first.from_s, end.until_s));
        svg.text(SvgText::starting_at((LEFT, span.top - 6.0), "name", &name));
        let worse = timeline.worse.get(group_name(first)).map_or(&[][..], Vec::as_slice);
        draw_worse(&mut svg, &panel, group, worse);
        draw_group(&mut svg, &panel, group, worse);
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

/// Draws the times in which a value is worse than at the start, between the ramps to it and back. Of a group
/// without ramps they are left out, since its steps or silences say as much.
fn draw_worse(svg: &mut Svg, panel: &Panel, group: &[&PathChange], worse: &[(f64, f64)]) {
    let ramps = || group.iter().filter(|change| change.kind == ChangeKind::Ramp);
    for &(from, until) in worse.iter().filter(|_| ramps().next().is_some()) {
        let begun = ramps().filter(|ramp| ramp.from_s == from).map(|ramp| ramp.until_s).fold(from, f64::max);
        let back = ramps().filter(|ramp| ramp.until_s == until && ramp.from_s > from);
        let back = back.map(|ramp| ramp.from_s).fold(until, f64::min);
        let (left, right) = (panel.x.at(begun), panel.x.at(back).min(X_RANGE.1));
        if right > left {
            svg.rect(&SvgRect {
                class: "change-worse",
                style: RAMP,
                left,
                top: panel.top,
                width: right - left,
                height: panel.bottom - panel.top,
                ..SvgRect::default()
            });
        }
    }
}

/// Draws the marks of a group. A ramp falls if a time with a worse value ends with it.
fn draw_group(svg: &mut Svg, panel: &Panel, group: &[&PathChange], worse: &[(f64, f64)]) {
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
                let is_back =
                    worse.iter().any(|(from, until)| *until == change.until_s && *from < change.from_s);
                let peak = if is_back { &left } else { &right };
                let data = format!("M{left} {bottom}L{peak} {top}L{right} {bottom}Z");
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
        (
            ChangeKind::Ramp,
            "a ramp to new values, which hold",
            "stroke:var(--accent);stroke-opacity:.45;stroke-width:9",
        ),
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
    use crate::path_changes::CellChanges;

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
        changes.push(change(40.0, 45.0, ChangeKind::Ramp, "rain"));
        changes.push(change(50.0, 55.0, ChangeKind::Ramp, "rain"));
        let worse = [("rain".to_owned(), vec![(40.0, 55.0)])].into();
        let timeline = CellChanges { cell: 0, changes: changes.clone(), worse, seconds: 60.0 };
        let cell = CellChartData {
            cell: 0,
            repetition: 0,
            label: String::new(),
            flows: Vec::new(),
            lines: Vec::new(),
            more_lines: BTreeMap::new(),
        };
        let selection = |timeline| Selection {
            series: vec![CellSeries {
                label: "UDP".to_owned(),
                look: display::display("udp").into(),
                cell: &cell,
                changes: &changes,
                timeline,
            }],
            not_drawn: 0,
            id_prefix: "",
        };
        let chart = changes_over_time(&selection(Some(&timeline))).unwrap();
        let svg = chart.svg.unwrap().0;
        assert!(
            svg.contains("handover (3 times, first at 15 s)") && svg.contains("outage (30 to 32 s)"),
            "{svg}"
        );
        for (class, count) in
            [("change-step", 3), ("change-silence", 1), ("change-ramp", 2), ("change-worse", 1)]
        {
            assert_eq!(svg.matches(&format!("class=\"{class}\"")).count(), count, "{svg}");
        }
        assert!(svg.contains("<title>30 to 32 s: outage!</title>"), "{svg}");
        assert_eq!(chart.legend.len(), 3);
        // The first ramp rises to its end, and the second falls from its beginning.
        let peaks: Vec<&str> =
            svg.split("change-ramp").skip(1).filter_map(|ramp| ramp.split(['M', 'Z']).nth(1)).collect();
        let corner = |ramp: &str, number: usize| {
            ramp.split('L').nth(number).unwrap().split(' ').next().unwrap().to_owned()
        };
        assert_eq!(corner(peaks[0], 1), corner(peaks[0], 2), "{peaks:?}");
        assert_eq!(corner(peaks[1], 1), corner(peaks[1], 0), "{peaks:?}");
        assert!(changes_over_time(&selection(None)).is_none());
    }
}
