//! Plotting by hand: scales and ticks, SVG elements, one panel with axes, labels beside lines.

pub(crate) mod label;
pub(crate) mod panel;
pub(crate) mod scale;
pub(crate) mod svg;
