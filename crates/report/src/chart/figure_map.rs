//! Heat maps of a figure that no transport is judged by, such as one of the user's program.

use super::heat::{CellLook, MAX_MAPS, MapFrame};
use super::shared::Chart;
use crate::number::{count, list};
use crate::plot::panel::WIDTH;
use crate::plot::svg::{Svg, SvgName};
use crate::sweep::Axis;
use talkpath_measure::figures::text::four_digits;

/// The index of the value on each axis, and the figure there, if it is known.
pub(crate) type PlacedFigure = (Vec<usize>, Option<f64>);

/// A figure at combinations of swept values.
pub(crate) struct FigureMap<'a> {
    pub id: String,
    pub title: String,
    pub caption: String,
    pub axes: &'a [Axis],
    /// The index of the value on each axis, and the figure there, if it is known.
    pub values: Vec<PlacedFigure>,
    /// The figures that have the faintest and the strongest colour.
    pub range: (f64, f64),
}

/// Draws a map for each combination of values on the axes but the two longest. Returns `None` if there are
/// fewer than two axes.
pub(crate) fn figure_maps(figure: &FigureMap<'_>) -> Option<Chart> {
    // The longest axis of numbers is the horizontal one, and the longest of the others is the vertical one.
    // `max_by_key` takes the last of equal axes. So the search runs backwards, and finds the first.
    let backwards = || (0..figure.axes.len()).rev();
    let x =
        backwards().max_by_key(|&axis| (figure.axes[axis].is_numeric(), figure.axes[axis].values.len()))?;
    let y = backwards().filter(|axis| *axis != x).max_by_key(|&axis| figure.axes[axis].values.len())?;
    let further: Vec<usize> = (0..figure.axes.len()).filter(|axis| ![x, y].contains(axis)).collect();
    let frame = MapFrame { x_axis: &figure.axes[x], y_axis: &figure.axes[y] };
    let mut maps: Vec<(Vec<usize>, Vec<&PlacedFigure>)> = Vec::new();
    for entry in &figure.values {
        let key: Vec<usize> = further.iter().map(|&axis| entry.0[axis]).collect();
        match maps.iter_mut().find(|(known, _)| *known == key) {
            Some((_, entries)) => entries.push(entry),
            None => maps.push((key, vec![entry])),
        }
    }
    let hidden: usize = maps.iter().skip(MAX_MAPS).map(|(_, entries)| entries.len()).sum();
    maps.truncate(MAX_MAPS);
    let height = frame.height(!further.is_empty());
    let mut svg = Svg::new(WIDTH, height * maps.len() as f64);
    for (index, (key, entries)) in maps.iter().enumerate() {
        let names = further.iter().zip(key).map(|(&axis, &value)| {
            let axis = &figure.axes[axis];
            format!("{} = {}", axis.key, axis.percent_label(value))
        });
        let map_top =
            frame.begin(&mut svg, index, &names.collect::<Vec<_>>().join(", "), !further.is_empty());
        for (place, value) in entries {
            let look = value.map_or_else(CellLook::unknown, |value| figure.look(value));
            frame.draw_cell(
                &mut svg,
                (place[x], place[y]),
                map_top,
                &look,
                &figure.tooltip(place, &look.text),
            );
        }
    }
    let not_drawn = match hidden {
        0 => String::new(),
        hidden => {
            let keys: Vec<String> = further.iter().map(|&axis| figure.axes[axis].key.clone()).collect();
            format!(
                " Drawn for the first {MAX_MAPS} values of {}; the other {} combinations are in summary.json.",
                list(&keys),
                count(hidden as u64)
            )
        }
    };
    let description =
        format!("A cell for each combination of {} and {}.", frame.x_axis.key, frame.y_axis.key);
    Some(Chart {
        legend: Vec::new(),
        svg: Some(svg.finish(SvgName { id: &figure.id, title: &figure.title, description: &description })),
        caption: format!("{}{not_drawn}", figure.caption),
        id: figure.id.clone(),
        title: figure.title.clone(),
    })
}

impl FigureMap<'_> {
    /// The colour of a figure: the nearer to the strongest one, the stronger.
    fn look(&self, value: f64) -> CellLook {
        let (faintest, strongest) = self.range;
        let width = strongest - faintest;
        let share = if width == 0.0 { 0.0 } else { ((value - faintest) / width).clamp(0.0, 1.0) };
        let style = format!("fill:var(--accent);fill-opacity:{:.2}", 0.05 + 0.55 * share);
        CellLook { text: four_digits(value), style }
    }

    /// The text for a pointer over a cell.
    fn tooltip(&self, place: &[usize], text: &str) -> String {
        let values = self.axes.iter().zip(place);
        let values = values.map(|(axis, &value)| format!("{} = {}", axis.key, axis.percent_label(value)));
        format!("{}: {text}", values.collect::<Vec<_>>().join(", "))
    }
}
