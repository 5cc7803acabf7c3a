//! What a person reads: the tables of the terminal, the charts, and the pages.
//!
//! ```text
//! Summary ─► view (cells, flows, figures) ─┬► tables ─► grid ─┬► terminal
//!                                          └► verdict ────────┤
//! chart data ─► select (series) ─► chart ─► plot (SVG) ───────┴► html ─► page.js
//! Summary ─► sweep (a flow over the swept keys) ─► table, charts ─► terminal, html
//! ```
//!
//! Every number is in the summary, or in the chart data of `measure`. This crate chooses, formats and draws
//! numbers. It computes only the ranking of the cells, with the functions of `measure`. The names, colours,
//! dashes and markers of transports are in one table, `display`.
//!
//! - *cell*: one combination of a sweep's values, over its repetitions.
//! - *condition*: the cells that differ in the transport of one flow alone, and so can be compared.
//! - *verdict*: the answer for one condition: which transport serves the flow best, and why.
//! - *cure*: the same cells with `fq_codel` on a link, where no transport was usable without.
//! - *receiver*: how a call is played. A call whose scenario names none is judged with two.
//! - *combination*: one value of each swept key but the transport: a point of a sweep.
//! - *figure*: a number.
//! - *chart*: a drawing with its title, legend and caption.
//! - *series*: what one line of a chart shows: one flow of one cell, or one transport of a sweep.
//! - *grid*: a table before it is text or HTML.
//! - *term*: a word of a table, and its meaning.
//!
//! Begin to read with `view.rs`, then `verdict.rs` for the answer and `tables.rs` for the tables.

mod animation;
mod campaign;
mod chart;
mod columns;
mod condition;
mod details;
mod display;
mod grid;
mod html;
mod metric;
mod number;
mod path_changes;
mod play;
mod plot;
mod program;
mod rated;
mod receiver;
mod select;
mod several;
mod sound;
mod study;
mod sweep;
mod tables;
mod term;
mod terminal;
mod terms;
mod usable;
mod verdict;
mod view;

#[cfg(test)]
#[path = "../tests/fixture/mod.rs"]
mod fixture;

pub use animation::{Animation, Place, PlayFate, PlayFlow, PlayHop, PlayLink, PlayNode};
pub use campaign::campaign_page;
pub use grid::Style;
pub use html::{ChartFile, Network, Page, chart_files, html};
pub use path_changes::CellChanges;
pub use play::play_page;
pub use several::{RunPart, side_by_side};
pub use sound::{ColumnHeard, PageSound, SoundColumn, Sounds, sound_page};
pub use study::{PageMistake, Picture, fill_page, page_pictures, study_changes, study_page, study_table};
pub use terminal::{comparison_table, run_table};
pub use verdict::{HOPELESS, Lacking, QueueSize, comparisons, lacking};
