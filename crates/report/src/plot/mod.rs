//! Plotting by hand: scales and ticks, SVG elements, one panel with axes.

pub(crate) mod svg;
