//! What a person reads: the terminal's tables, the SVG figures and the one-page report.
//!
//! ```text
//! Summary ─► view (which cell, which flow, which figure) ─┬► tables ─► grid ─┬► terminal
//!                                                         └► verdict ────────┤
//! CellFigures ─► select (which series) ─► figure/* ─► plot/* (scales, SVG) ──┴► html
//! ```
//!
//! Nothing here computes a statistic: every number stands in the [`Summary`] or in [`CellFigures`] and is only
//! chosen, formatted and drawn. Names, colours, dashes and markers of transports come from one table, `display`.

mod details;
mod display;
mod figure;
mod grid;
mod html;
mod number;
mod plot;
mod select;
mod several;
mod study;
mod tables;
mod terminal;
mod terms;
mod verdict;
mod view;

#[cfg(test)]
#[path = "../tests/fixture/mod.rs"]
mod fixture;

use talkpath_measure::figures::CellFigures;
use talkpath_measure::summary::Summary;

pub use html::html;
pub use several::{RunPart, side_by_side};
pub use study::{study_page, study_table};
pub use terminal::{comparison_table, run_table};
pub use verdict::{Winner, winner};

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; tables leave columns out below about 80, and text wraps.
    pub width: usize,
    /// Whether ANSI colours may be used; the caller knows the terminal and `NO_COLOR`.
    pub color: bool,
}

/// What the one-page report shows.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Every table and sentence.
    pub summary: &'a Summary,
    /// Every figure, one entry a cell; cells without an entry have tables only.
    pub figures: &'a [CellFigures],
    /// The scenario as resolved, in full.
    pub scenario_toml: &'a str,
    /// The command that repeats the run.
    pub command: &'a str,
}
