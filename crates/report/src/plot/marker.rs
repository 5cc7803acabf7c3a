//! The outlines of the markers on lines, as the `d` attributes of SVG paths.

use super::svg::{Point, coordinate};
use crate::display::Marker;

/// The outline of a marker around `centre`. A marker is about 8 units wide.
pub(crate) fn marker_outline(marker: Marker, centre: Point) -> String {
    let start = |dx: f64, dy: f64| format!("{} {}", coordinate(centre.0 + dx), coordinate(centre.1 + dy));
    match marker {
        Marker::Circle => format!("M{}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", start(-4.0, 0.0)),
        Marker::Square => format!("M{}h7v7h-7Z", start(-3.5, -3.5)),
        Marker::Triangle => format!("M{}l4.5 8h-9Z", start(0.0, -5.0)),
        Marker::Diamond => format!("M{}l5 5l-5 5l-5 -5Z", start(0.0, -5.0)),
        Marker::Cross => format!("M{}h3v-3h3v3h3v3h-3v3h-3v-3h-3Z", start(-4.5, -1.5)),
    }
}

/// The outline of a ring around a marker at `centre`.
pub(crate) fn ring_outline((x, y): Point) -> String {
    format!("M{} {}a6.5 6.5 0 1 0 13 0a6.5 6.5 0 1 0 -13 0Z", coordinate(x - 6.5), coordinate(y))
}
