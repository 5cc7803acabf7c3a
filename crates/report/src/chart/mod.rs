//! The charts of the report. A chart has a title, a legend, an SVG drawing and a caption.
//!
//! In this crate a *chart* is a drawing, and a *figure* is a number. A *series* is one flow of one cell, or
//! the state of one cell over time. A *panel* is a rectangle with two axes. A chart with several panels has
//! one scale for all of them, so that a reader can compare them.
//!
//! Begin to read with [`Chart`], and then with [`delay_over_time`], which is the simplest chart.

mod bars;
mod ccdf;
mod delay;
mod figure_line;
mod figure_map;
mod file;
mod heat;
mod legend;
mod lines;
mod shared;
mod sweep;
mod timeline;

pub(crate) use self::bars::loss_runs;
pub(crate) use self::ccdf::ccdf;
pub(crate) use self::delay::delay_over_time;
pub(crate) use self::figure_line::{FigureLine, figure_line};
pub(crate) use self::figure_map::{FigureMap, figure_maps};
pub(crate) use self::heat::{HeatMapKind, heat_map};
pub(crate) use self::legend::{LegendEntry, Sample};
pub(crate) use self::lines::{LineKind, over_time};
pub(crate) use self::shared::{Chart, extent, id_part};
pub(crate) use self::sweep::sweep_lines;
pub(crate) use self::timeline::changes_over_time;
