//! Parts of which charts are drawn: scales with ticks, SVG elements, panels with axes, and names beside
//! lines.
//!
//! A *panel* is a rectangle with two scales. A *scale* maps values to SVG units. Read `panel` first.

pub(crate) mod label;
pub(crate) mod marker;
pub(crate) mod panel;
pub(crate) mod scale;
pub(crate) mod svg;
