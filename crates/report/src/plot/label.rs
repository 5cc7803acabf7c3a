//! Places the names of lines beside the lines, where there is room.
//!
//! The legend has all names, so a name that would cover another name or a line is left out.

use super::panel::{LEFT, Panel, RIGHT, WIDTH};
use super::svg::Point;

/// The mean width of a bold character of 12 units. It is a little too wide, because a name that is narrower
/// than its area covers nothing.
const CHARACTER_WIDTH: f64 = 8.4;
/// The height of a line of text.
const TEXT_HEIGHT: f64 = 14.0;
/// A line has hundreds of points. Its name is tried at 60 points or a few more, which are spread evenly.
const TRIALS: usize = 60;

/// A name that has a place beside its line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlacedName {
    /// The index of the line.
    pub line: usize,
    /// The start of the text, on its baseline.
    pub start: Point,
}

#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Finds room for the name of each line, right of the line. `lines` has the points of each line in SVG units.
/// Returns only the names that have room.
pub(crate) fn place_names(lines: &[Vec<Point>], names: &[&str], panel: &Panel) -> Vec<PlacedName> {
    let mut taken: Vec<Area> = Vec::new();
    let mut placed = Vec::new();
    for (index, (line, name)) in lines.iter().zip(names).enumerate() {
        let width = CHARACTER_WIDTH * name.chars().count() as f64;
        let step = (line.len() / TRIALS).max(1);
        let starts = line.iter().step_by(step).map(|(x, y)| (x + 8.0, y + 4.0));
        for (x, y) in starts {
            let glyphs = Area { left: x, right: x + width, top: y - TEXT_HEIGHT + 2.0, bottom: y + 4.0 };
            let is_free = glyphs.is_within(panel)
                && taken.iter().all(|other| !glyphs.overlaps(other))
                && lines.iter().all(|drawn_line| !glyphs.is_crossed_by(drawn_line));
            if is_free {
                taken.push(Area { top: y - TEXT_HEIGHT, ..glyphs });
                placed.push(PlacedName { line: index, start: (x, y) });
                break;
            }
        }
    }
    placed
}

impl Area {
    fn is_within(&self, panel: &Panel) -> bool {
        self.left > LEFT + 4.0
            && self.right < WIDTH - RIGHT
            && self.top > panel.top + TEXT_HEIGHT
            && self.bottom < panel.bottom - 2.0
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Whether a line of steps passes through the area. A step goes first across, and then up or down.
    fn is_crossed_by(&self, line: &[Point]) -> bool {
        line.windows(2).any(|corners| {
            let ((x1, y1), (x2, y2)) = (corners[0], corners[1]);
            let across = Self { left: x1.min(x2), right: x1.max(x2) + 0.1, top: y1 - 0.1, bottom: y1 + 0.1 };
            let upwards = Self { left: x2 - 0.1, right: x2 + 0.1, top: y1.min(y2), bottom: y1.max(y2) + 0.1 };
            self.overlaps(&across) || self.overlaps(&upwards)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::panel::X_RANGE;
    use crate::plot::scale::Scale;

    fn panel() -> Panel {
        Panel {
            top: 10.0,
            bottom: 310.0,
            x: Scale::linear((0.0, 1.0), X_RANGE),
            y: Scale::linear((0.0, 1.0), (310.0, 10.0)),
        }
    }

    #[test]
    fn a_name_is_right_of_its_line_and_covers_no_other_line() {
        let falling_line = |x: f64| (0..60).map(|i| (x, 20.0 + 4.5 * f64::from(i))).collect::<Vec<_>>();
        let lines = [falling_line(100.0), falling_line(140.0), falling_line(300.0)];
        let placed = place_names(&lines, &["TCP_NODELAY", "UDP", "TCP"], &panel());
        // 40 units between the first two lines are too few for eleven characters.
        assert_eq!(placed.iter().map(|name| name.line).collect::<Vec<_>>(), [1, 2]);
        assert!(placed.iter().all(|name| name.start.0 > lines[name.line][0].0));
    }

    #[test]
    fn two_names_never_overlap() {
        let line: Vec<Point> = (0..60).map(|i| (200.0, 20.0 + 4.5 * f64::from(i))).collect();
        let placed = place_names(&[line.clone(), line], &["UDP", "TCP"], &panel());
        assert_eq!(placed.len(), 2);
        assert!((placed[0].start.1 - placed[1].start.1).abs() >= TEXT_HEIGHT);
    }
}
