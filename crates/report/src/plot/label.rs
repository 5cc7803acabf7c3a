//! Names beside lines, only if there is room: the legend has them all, so a name that would cover another
//! name or a line is left out.

use super::panel::{LEFT, Panel, RIGHT, WIDTH};

/// A name placed beside its line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed {
    /// Which line.
    pub line: usize,
    /// The text's start, on its baseline.
    pub at: (f64, f64),
}

#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Mean width of a character at the figures' 12 units, bold; a little too wide rather than too narrow.
const CHARACTER: f64 = 8.4;
/// Height of a line of text.
const LINE: f64 = 14.0;

/// Finds room right of each line for its name. `lines` holds each line's points in SVG units.
pub(crate) fn place(lines: &[Vec<(f64, f64)>], names: &[&str], panel: &Panel) -> Vec<Placed> {
    let mut taken: Vec<Area> = Vec::new();
    let mut placed = Vec::new();
    for (index, (line, name)) in lines.iter().zip(names).enumerate() {
        let width = CHARACTER * name.chars().count() as f64;
        let step = (line.len() / 60).max(1);
        let spot = line.iter().step_by(step).map(|(x, y)| (x + 8.0, y + 4.0)).find(|(x, y)| {
            let area = Area { left: *x, right: x + width, top: y - LINE + 2.0, bottom: y + 4.0 };
            let inside = area.left > LEFT + 4.0
                && area.right < WIDTH - RIGHT
                && area.top > panel.top + LINE
                && area.bottom < panel.bottom - 2.0;
            inside
                && taken.iter().all(|other| !area.overlaps(other))
                && lines.iter().all(|line| !area.crosses(line))
        });
        if let Some((x, y)) = spot {
            taken.push(Area { left: x, right: x + width, top: y - LINE, bottom: y + 4.0 });
            placed.push(Placed { line: index, at: (x, y) });
        }
    }
    placed
}

impl Area {
    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Whether a stepped line passes through: each of its corners joins its neighbours across and then
    /// upwards.
    fn crosses(&self, line: &[(f64, f64)]) -> bool {
        line.windows(2).any(|pair| {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            let across = Self { left: x1.min(x2), right: x1.max(x2) + 0.1, top: y1 - 0.1, bottom: y1 + 0.1 };
            let upwards = Self { left: x2 - 0.1, right: x2 + 0.1, top: y1.min(y2), bottom: y1.max(y2) + 0.1 };
            self.overlaps(&across) || self.overlaps(&upwards)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::scale::Scale;

    fn panel() -> Panel {
        Panel {
            top: 10.0,
            bottom: 310.0,
            x: Scale::linear((0.0, 1.0), (LEFT, WIDTH - RIGHT)),
            y: Scale::linear((0.0, 1.0), (310.0, 10.0)),
        }
    }

    #[test]
    fn a_name_stands_right_of_its_line_and_on_no_other() {
        let falling = |x: f64| (0..60).map(|i| (x, 20.0 + 4.5 * f64::from(i))).collect::<Vec<_>>();
        let lines = [falling(100.0), falling(140.0), falling(300.0)];
        let placed = place(&lines, &["TCP_NODELAY", "UDP", "TCP"], &panel());
        // 40 units between the first two are too few for eleven characters.
        assert_eq!(placed.iter().map(|name| name.line).collect::<Vec<_>>(), [1, 2]);
        assert!(placed.iter().all(|name| name.at.0 > lines[name.line][0].0));
    }

    #[test]
    fn two_names_never_share_a_place() {
        let line: Vec<(f64, f64)> = (0..60).map(|i| (200.0, 20.0 + 4.5 * f64::from(i))).collect();
        let placed = place(&[line.clone(), line], &["UDP", "TCP"], &panel());
        assert_eq!(placed.len(), 2);
        assert!((placed[0].at.1 - placed[1].at.1).abs() >= LINE);
    }
}
