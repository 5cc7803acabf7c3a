//! Marks of the moments at which the path changes, on every axis of time.
//!
//! Few changes are lines from the bottom of a panel to its top, and a ramp or an outage is a band. Many
//! changes, such as those of a file with a row for each second, are short ticks at the top of the panel,
//! because lines would hide the data.

use crate::number::counted;
use crate::plot::panel::Panel;
use crate::plot::scale::tick_label;
use crate::plot::svg::{Svg, unit};

/// The changes of the path in the repetition of a cell that the figures show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellChanges {
    /// The index of the cell in the sweep.
    pub cell: u64,
    /// The changes in order of time.
    pub changes: Vec<PathChange>,
}

/// A change of the path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathChange {
    /// When the change begins, in s.
    pub from_s: f64,
    /// When its ramp or outage is over, in s. It is `from_s` if the change has neither.
    pub until_s: f64,
    /// What changes, in words: `up: delay 38 ms`.
    pub text: String,
}

/// With more changes than this, a panel has ticks. Chosen: 24 lines still leave three letters of room between
/// each other on the page.
const MOST_LINES: usize = 24;
/// A caption lists this many changes. Chosen: they take three rows on a phone.
const MOST_LISTED: usize = 6;
/// The length of a tick, in SVG units.
const TICK: f64 = 7.0;

/// Marks `changes` in `panel`. The caller has opened the part of the panel that moves when it is enlarged.
pub(crate) fn mark(svg: &mut Svg, panel: &Panel, changes: &[PathChange]) {
    let shown = changes.iter().filter(|change| panel.x.holds(change.from_s));
    let (mut lines, mut last) = (String::new(), f64::NEG_INFINITY);
    let are_few = changes.len() <= MOST_LINES;
    let (from, to) = if are_few { (panel.bottom, panel.top) } else { (panel.top + TICK, panel.top) };
    for change in shown {
        let (x, end) = (panel.x.at(change.from_s), panel.x.at(change.until_s));
        if are_few && end - x >= 1.0 {
            svg.rect("change-band", "", "", (x, panel.top), (end - x, panel.bottom - panel.top));
        }
        // Marks that fall on the same half unit cannot be told apart.
        if x - last >= 0.5 {
            lines.push_str(&format!("M{} {}V{}", unit(x), unit(from), unit(to)));
            last = x;
        }
    }
    if !lines.is_empty() {
        svg.path("change", "", &lines);
    }
}

/// The sentence of a caption that says what the marks are. Empty if nothing changes.
pub(crate) fn short_caption<'a>(mut cells: impl Iterator<Item = &'a [PathChange]>) -> &'static str {
    if cells.any(|changes| !changes.is_empty()) { " The marks are the changes of the path." } else { "" }
}

/// The sentences of a caption that list the changes of all drawn cells. Empty if nothing changes.
pub(crate) fn caption<'a>(cells: impl Iterator<Item = &'a [PathChange]>) -> String {
    let mut all: Vec<&[PathChange]> = cells.filter(|changes| !changes.is_empty()).collect();
    all.dedup();
    let Some(first) = all.first() else { return String::new() };
    if all.len() > 1 {
        return " Upright lines mark the changes of the path, which differ between the panels.".to_owned();
    }
    let time = |change: &PathChange| {
        let from = tick_label(change.from_s);
        match change.until_s > change.from_s {
            true => format!("{from} to {} s", tick_label(change.until_s)),
            false => format!("{from} s"),
        }
    };
    let listed: Vec<String> =
        first.iter().take(MOST_LISTED).map(|change| format!("{}, {}", time(change), change.text)).collect();
    let more = match first.len() - listed.len() {
        0 => String::new(),
        more => format!("; and {}", counted(more as u64, "more change")),
    };
    let marks = if first.len() <= MOST_LINES { "Upright lines" } else { "Ticks at the top" };
    format!(" {marks} mark the changes of the path: {}{more}.", listed.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::scale::Scale;

    fn changes(count: usize) -> Vec<PathChange> {
        let change =
            |n: usize| PathChange { from_s: n as f64, until_s: n as f64, text: format!("delay {n} ms") };
        (0..count).map(change).collect()
    }

    fn drawn(changes: &[PathChange], end: f64) -> String {
        let (x, y) = (Scale::linear((0.0, end), (0.0, 100.0)), Scale::linear((0.0, 1.0), (50.0, 10.0)));
        let panel = Panel { top: 10.0, bottom: 50.0, x, y };
        let mut svg = Svg::new(100.0, 100.0);
        mark(&mut svg, &panel, changes);
        svg.finish("a", "b", "c").0
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
        let outage = PathChange { from_s: 8.0, until_s: 13.0, text: "up: outage".to_owned() };
        let svg = drawn(core::slice::from_ref(&outage), 10.0);
        assert!(svg.contains("class=\"change-band\" x=\"80\" y=\"10\" width=\"20\" height=\"40\""), "{svg}");
        assert!(!drawn(&[outage], 7.0).contains("change"), "it comes after the end of the axis");
    }

    #[test]
    fn a_caption_lists_the_first_changes_and_counts_the_others() {
        let one = [PathChange { from_s: 30.0, until_s: 32.5, text: "up: outage".to_owned() }];
        let of = |all: &[&[PathChange]]| caption(all.iter().copied());
        assert_eq!(
            of(&[&one, &one]),
            " Upright lines mark the changes of the path: 30 to 32.5 s, up: outage."
        );
        let many = changes(30);
        assert!(of(&[&many]).ends_with("5 s, delay 5 ms; and 24 more changes."), "{}", of(&[&many]));
        assert!(of(&[&many]).starts_with(" Ticks at the top"));
        assert!(of(&[&many, &one]).contains("differ between the panels"));
        assert_eq!(of(&[&[]]), "");
        let short = |all: &[&[PathChange]]| short_caption(all.iter().copied());
        assert_eq!((short(&[&[], &one]), short(&[&[]])), (" The marks are the changes of the path.", ""));
    }
}
