//! Marks of the moments at which the path changes, on every axis of time.
//!
//! Few changes are lines from the bottom of a panel to its top, and a ramp or an outage is a band. Many
//! changes, such as those of a file with a row for each second, are short ticks at the top of the panel,
//! because lines would hide the data.

use std::collections::BTreeMap;

use talkpath_measure::summary::PathChange;

use crate::number::counted;
use crate::plot::panel::Panel;
use crate::plot::scale::tick_label;
use crate::plot::svg::{Svg, SvgPath, SvgRect, coordinate};

/// The changes of the path in the repetition of a cell that the figures show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellChanges {
    /// The index of the cell in the sweep.
    pub cell: u64,
    /// The changes in order of time.
    pub changes: Vec<PathChange>,
    /// The times in s in which a value is worse than at the start, by the group that set it.
    pub worse: BTreeMap<String, Vec<(f64, f64)>>,
    /// The time for which the flows send, in s.
    pub seconds: f64,
}

/// A panel marks at most 24 changes with lines, and more changes with ticks. We chose 24 because three
/// letters then still fit between two lines.
const MAX_LINES: usize = 24;
/// A caption lists at most 6 kinds of changes. We chose 6 because they take three rows on a phone.
const MAX_LISTED: usize = 6;
/// The length of a tick, in SVG units.
const TICK: f64 = 7.0;
/// Marks are at least this far apart. Closer marks look like one mark.
const MIN_MARK_DISTANCE: f64 = 0.5;
/// A band is at least this wide. A narrower band is hidden by its line.
const MIN_BAND_WIDTH: f64 = 1.0;

/// Marks `changes` in `panel`, within the group of the panel that moves if the reader enlarges it.
pub(crate) fn mark(svg: &mut Svg, panel: &Panel, changes: &[PathChange]) {
    let has_lines = changes.len() <= MAX_LINES;
    let foot = if has_lines { panel.bottom } else { panel.top + TICK };
    let (mut marks, mut last_x) = (String::new(), f64::NEG_INFINITY);
    for change in changes.iter().filter(|change| panel.x.contains(change.from_s)) {
        let (x, end) = (panel.x.at(change.from_s), panel.x.at(change.until_s));
        if has_lines && end - x >= MIN_BAND_WIDTH {
            svg.rect(&SvgRect {
                class: "change-band",
                left: x,
                top: panel.top,
                width: end - x,
                height: panel.bottom - panel.top,
                ..SvgRect::default()
            });
        }
        if x - last_x >= MIN_MARK_DISTANCE {
            marks.push_str(&format!("M{} {}V{}", coordinate(x), coordinate(foot), coordinate(panel.top)));
            last_x = x;
        }
    }
    if !marks.is_empty() {
        svg.path(&SvgPath { class: "change", data: &marks, ..SvgPath::default() });
    }
}

/// The sentence of a caption that names the marks. Empty if no drawn cell has changes.
pub(crate) fn short_caption<'a>(mut cells: impl Iterator<Item = &'a [PathChange]>) -> &'static str {
    if cells.any(|changes| !changes.is_empty()) { " The marks are the changes of the path." } else { "" }
}

/// The sentence of a caption that lists the changes of all drawn cells. Empty if no drawn cell has changes.
pub(crate) fn caption<'a>(cells: impl Iterator<Item = &'a [PathChange]>) -> String {
    let mut changes_of_cells: Vec<&[PathChange]> = cells.filter(|changes| !changes.is_empty()).collect();
    changes_of_cells.dedup();
    let changes = match changes_of_cells[..] {
        [] => return String::new(),
        [changes] => changes,
        _ => {
            return " Upright lines mark the changes of the path, which differ between the panels."
                .to_owned();
        }
    };
    let groups = groups(changes);
    let mut listed: Vec<String> = groups.iter().take(MAX_LISTED).map(|group| describe(group)).collect();
    let more = groups.len() - listed.len();
    if more > 0 {
        listed.push(format!("and {}", counted(more as u64, "more kind")));
    }
    let marks = if changes.len() <= MAX_LINES { "Upright lines" } else { "Ticks at the top" };
    format!(" {marks} mark the changes of the path: {}.", listed.join("; "))
}

/// The changes of each group, the groups in the order in which they begin. In the summary of an earlier
/// version changes have no group: changes with the same text are then a group.
pub(crate) fn groups(changes: &[PathChange]) -> Vec<Vec<&PathChange>> {
    let mut groups: Vec<Vec<&PathChange>> = Vec::new();
    for change in changes {
        let name = group_name(change);
        match groups.iter_mut().find(|group| group_name(group[0]) == name) {
            Some(group) => group.push(change),
            None => groups.push(vec![change]),
        }
    }
    groups
}

/// The name of the group of `change`.
pub(crate) fn group_name(change: &PathChange) -> &str {
    if change.group.is_empty() { &change.text } else { &change.group }
}

/// Describes the changes of a group: `up: outage (30 to 32.5 s)`, or `up: outage (19 times, first at 45 s)`.
fn describe(group: &Vec<&PathChange>) -> String {
    let (first, last) = (group[0], group[group.len() - 1]);
    let times: u64 = group.iter().map(|change| change.times).sum();
    format!("{} ({})", group_name(first), times_words(times, first.from_s, last.until_s))
}

/// Says when the changes of a group come: `at 20 s`, `30 to 32.5 s`, or `19 times, first at 45 s`.
pub(crate) fn times_words(times: u64, first_s: f64, until_s: f64) -> String {
    let first = tick_label(first_s);
    match times {
        0 | 1 if until_s > first_s => format!("{first} to {} s", tick_label(until_s)),
        0 | 1 => format!("at {first} s"),
        times => format!("{}, first at {first} s", counted(times, "time")),
    }
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::ChangeKind;

    use super::*;
    use crate::plot::scale::Scale;
    use crate::plot::svg::SvgName;

    fn step(from_s: f64, until_s: f64, text: &str) -> PathChange {
        let (text, kind) = (text.to_owned(), ChangeKind::Step);
        PathChange { from_s, until_s, text, kind, group: String::new(), times: 1 }
    }

    fn changes(count: usize) -> Vec<PathChange> {
        let change = |n: usize| step(n as f64, n as f64, &format!("delay {n} ms"));
        (0..count).map(change).collect()
    }

    fn drawn(changes: &[PathChange], end: f64) -> String {
        let (x, y) = (Scale::linear((0.0, end), (0.0, 100.0)), Scale::linear((0.0, 1.0), (50.0, 10.0)));
        let panel = Panel { top: 10.0, bottom: 50.0, x, y };
        let mut svg = Svg::new(100.0, 100.0);
        mark(&mut svg, &panel, changes);
        svg.finish(SvgName { id: "a", title: "b", description: "c" }).0
    }

    #[test]
    fn a_few_changes_are_lines_and_many_are_ticks() {
        assert!(drawn(&changes(3), 10.0).contains("d=\"M0 50V10M10 50V10M20 50V10\""));
        let many = drawn(&changes(100), 200.0);
        assert!(many.contains("M0 17V10M0.5 17V10") && !many.contains("50V10"), "{many}");
        assert!(!drawn(&[], 10.0).contains("change"));
    }

    #[test]
    fn an_outage_is_a_band_that_ends_with_the_axis() {
        let outage = step(8.0, 13.0, "up: outage");
        let svg = drawn(core::slice::from_ref(&outage), 10.0);
        assert!(svg.contains("class=\"change-band\" x=\"80\" y=\"10\" width=\"20\" height=\"40\""), "{svg}");
        assert!(!drawn(&[outage], 7.0).contains("change"), "it comes after the end of the axis");
    }

    #[test]
    fn a_caption_lists_the_first_changes_and_counts_the_others() {
        let one = [step(30.0, 32.5, "up: outage")];
        let caption_of = |all: &[&[PathChange]]| caption(all.iter().copied());
        assert_eq!(
            caption_of(&[&one, &one]),
            " Upright lines mark the changes of the path: up: outage (30 to 32.5 s)."
        );
        let many = changes(30);
        assert!(
            caption_of(&[&many]).ends_with("delay 5 ms (at 5 s); and 24 more kinds."),
            "{}",
            caption_of(&[&many])
        );
        assert!(caption_of(&[&many]).starts_with(" Ticks at the top"));
        let handovers: Vec<PathChange> = (1..20)
            .map(|number| PathChange {
                group: "handover".to_owned(),
                ..step(f64::from(15 * number), 0.0, "delay")
            })
            .collect();
        assert!(caption_of(&[&handovers]).ends_with(": handover (19 times, first at 15 s)."));
        assert!(caption_of(&[&many, &one]).contains("differ between the panels"));
        assert_eq!(caption_of(&[&[]]), "");
        let short = |all: &[&[PathChange]]| short_caption(all.iter().copied());
        assert_eq!((short(&[&[], &one]), short(&[&[]])), (" The marks are the changes of the path.", ""));
    }
}
