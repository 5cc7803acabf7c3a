//! Heat maps over two swept parameters: who is best at each combination, and how good the best is. Each
//! combination is a cell with its text, so that nothing hangs on colour alone. A cell has the colour of the
//! first transport in its text.

use std::collections::{BTreeMap, BTreeSet};

use talkpath_measure::summary::JudgedBy;

use super::sweep::{along, axis_title};
use super::{Entry, Figure, Sample, colour};
use crate::display::Look;
use crate::number::{count, list};
use crate::plot::panel::{RIGHT, WIDTH};
use crate::plot::svg::{Anchor, Svg};
use crate::sweep::{Combination, Outcome, Sweep};
use crate::view::TransportView;

/// Room left of the cells for the values of the vertical axis.
const LEFT: f64 = 96.0;
/// Room above the cells for the title of the vertical axis, and for the name of one map of several above it.
const TOP: f64 = 26.0;
const NAME_ROW: f64 = 18.0;
/// Where both begin.
const TITLE_LEFT: f64 = 8.0;
const ROW: f64 = 26.0;
/// Room under the cells for the values of the horizontal axis and its title.
const FOOT: f64 = 46.0;
/// Sets of names behind a +N that a caption writes out; chosen: more are longer than the rest of the caption.
const MAX_SETS: usize = 3;
/// Maps under one another, one for each combination of further keys; chosen.
const MAX_MAPS: usize = 6;
/// Letters below this size are not read; chosen.
const LEGIBLE: f64 = 7.0;

/// What a map shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heat {
    Winner,
    Figure,
}

/// The figure, with `conditions` as the end of its caption; `None` if fewer than two parameters are swept, if
/// the page shows several runs, or for the winner if nothing is compared.
pub(crate) fn heat_map(sweep: &Sweep<'_>, heat: Heat, conditions: &str) -> Option<Figure> {
    let (x, mut others) = along(sweep)?;
    let y = *others.iter().max_by_key(|&&at| sweep.axes[at].values.len())?;
    if !sweep.has_answers() || heat == Heat::Winner && !sweep.is_compared() {
        return None;
    }
    others.retain(|at| *at != y);
    let map = HeatMap { sweep, heat, x, y, range: figure_range(sweep) };
    let (maps, left_out) = maps(sweep, &others);
    let (id, title) = (format!("heat-{}-{}", map.word(), super::word(sweep.flow)), map.title());
    Some(Figure {
        legend: if heat == Heat::Winner { legend(sweep) } else { Vec::new() },
        svg: Some(map.draw(&maps).finish(&id, &title, &map.description())),
        caption: format!("{}{left_out}{}{conditions}", map.caption(), sweep.placeless()),
        id,
        title,
    })
}

/// One kind of map, perhaps several under one another.
struct HeatMap<'a> {
    sweep: &'a Sweep<'a>,
    heat: Heat,
    /// The axis across.
    x: usize,
    /// The axis upwards.
    y: usize,
    range: FigureRange,
}

/// The combinations of one map, and its name if it is one of several.
struct MapCells<'a> {
    name: String,
    combinations: Vec<&'a Combination<'a>>,
}

/// The figures that have the faintest and the strongest colour.
#[derive(Clone, Copy)]
struct FigureRange {
    faintest: f64,
    strongest: f64,
}

/// What a cell of a map shows.
struct CellLook {
    text: String,
    style: String,
}

impl CellLook {
    fn new(text: impl Into<String>, style: impl Into<String>) -> Self {
        Self { text: text.into(), style: style.into() }
    }
}

impl HeatMap<'_> {
    fn word(&self) -> &'static str {
        match self.heat {
            Heat::Winner => "winner",
            Heat::Figure => "figure",
        }
    }

    fn title(&self) -> String {
        let (flow, figure) = (self.sweep.flow, axis_title(self.sweep.by));
        match self.heat {
            Heat::Winner => format!("Which transport is best for {flow}"),
            Heat::Figure if self.sweep.is_compared() => {
                format!("How good the best transport is for {flow}: {figure}")
            }
            Heat::Figure => format!("How good it is for {flow}: {figure}"),
        }
    }

    fn description(&self) -> String {
        format!(
            "A cell for each of the {} combinations of {} and {}.",
            self.sweep.combinations.len(),
            self.sweep.axes[self.x].key,
            self.sweep.axes[self.y].key
        )
    }

    fn caption(&self) -> String {
        match self.heat {
            Heat::Winner => format!(
                "A full colour: one is best. A faint one: the named serve alike, +N is N more of them{}. \"?\": the repetitions \
                 do not decide. \"~\": it depends on the receiver. \"no\": nothing is usable. The number is the {} of the best: a mean over the repetitions, or both outcomes where there are two.",
                hidden_names(self.sweep),
                axis_title(self.sweep.by)
            ),
            Heat::Figure => {
                "Means over the repetitions, or both outcomes where there are two; the better, the stronger the colour. In \
                 brackets: not usable, or not in each repetition or with each receiver."
                    .to_owned()
            }
        }
    }

    fn columns(&self) -> usize {
        self.sweep.axes[self.x].values.len()
    }

    fn rows(&self) -> usize {
        self.sweep.axes[self.y].values.len()
    }

    /// The width of a cell.
    fn cell_width(&self) -> f64 {
        (WIDTH - RIGHT - LEFT) / self.columns() as f64
    }

    /// Where the row of the axis' value `at` begins, below the `top` of its map: the first value is lowest.
    fn row_top(&self, top: f64, at: usize) -> f64 {
        top + (self.rows() - 1 - at) as f64 * ROW
    }

    fn draw(&self, maps: &[MapCells<'_>]) -> Svg {
        let has_names = maps.iter().any(|map| !map.name.is_empty());
        let head = if has_names { TOP + NAME_ROW } else { TOP };
        let height = head + self.rows() as f64 * ROW + FOOT;
        let mut svg = Svg::new(WIDTH, height * maps.len() as f64);
        for (index, map) in maps.iter().enumerate() {
            let top = head + index as f64 * height;
            if !map.name.is_empty() {
                svg.text("name", "", (TITLE_LEFT, top - 9.0 - NAME_ROW), Anchor::Start, &map.name);
            }
            self.draw_axes(&mut svg, top);
            for combination in &map.combinations {
                self.draw_cell(&mut svg, combination, top);
            }
        }
        svg
    }

    /// The values beside the rows and under the columns.
    fn draw_axes(&self, svg: &mut Svg, top: f64) {
        let (across, upwards) = (&self.sweep.axes[self.x], &self.sweep.axes[self.y]);
        let (width, bottom) = (self.cell_width(), top + self.rows() as f64 * ROW);
        let longest = (0..self.columns()).map(|at| across.typed(at).chars().count()).max().unwrap_or(1);
        // Where the labels are wider than the cells, only every second or third has one.
        let step = ((7.2 * longest as f64 + 4.0) / width).ceil().max(1.0) as usize;
        for at in (0..self.columns()).step_by(step) {
            let middle = LEFT + (at as f64 + 0.5) * width;
            svg.text("tick", "", (middle, bottom + 17.0), Anchor::Middle, &across.typed(at));
        }
        for at in 0..self.rows() {
            let middle = self.row_top(top, at) + ROW / 2.0 + 4.0;
            svg.text("tick", "", (LEFT - 7.0, middle), Anchor::End, &upwards.typed(at));
        }
        svg.text("title", "", (LEFT, bottom + 37.0), Anchor::Start, &across.in_words());
        // Above the values and not beside them: few rows are less high than the words are long.
        svg.text("title", "", (TITLE_LEFT, top - 9.0), Anchor::Start, &upwards.in_words());
    }

    fn draw_cell(&self, svg: &mut Svg, combination: &Combination<'_>, top: f64) {
        let width = self.cell_width();
        let CellLook { text, style } = match self.heat {
            Heat::Winner => winner(self.sweep, combination, width),
            Heat::Figure => figure(self.sweep, combination, self.range),
        };
        let corner =
            (LEFT + combination.at[self.x] as f64 * width, self.row_top(top, combination.at[self.y]));
        let size = letter_size(&text, width).clamp(4.0, 12.0);
        svg.cell(&style, (corner, (width - 1.0, ROW - 1.0)), size, &text, &self.cell_title(combination));
    }

    /// What a pointer over the cell reads.
    fn cell_title(&self, combination: &Combination<'_>) -> String {
        let Sweep { axes, by, .. } = self.sweep;
        let values = axes.iter().zip(&combination.at);
        let values: Vec<String> =
            values.map(|(axis, at)| format!("{} = {}", axis.key, axis.typed(*at))).collect();
        let figure = combination.figure_of_best(*by);
        let figure = figure.map_or_else(String::new, |text| format!(", {} {text}", axis_title(*by)));
        let name = match combination.verdict {
            Some(verdict) if !verdict.is_valid => " no answer, the run is not valid".to_owned(),
            Some(verdict) => format!(" {}, {}", verdict.best_by_name, combination.outcome().word()),
            None => String::new(),
        };
        format!("{}:{name}{figure}", values.join(", "))
    }
}

/// One map for each combination of the other axes, and how many are not drawn.
fn maps<'s>(sweep: &'s Sweep<'_>, others: &[usize]) -> (Vec<MapCells<'s>>, String) {
    let mut maps: Vec<MapCells<'_>> = Vec::new();
    let mut places: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for combination in &sweep.combinations {
        let key: Vec<usize> = others.iter().map(|&axis| combination.at[axis]).collect();
        let place = *places.entry(key).or_insert_with(|| {
            let parts = others.iter().map(|&axis| {
                format!("{} = {}", sweep.axes[axis].key, sweep.axes[axis].typed(combination.at[axis]))
            });
            let name = parts.collect::<Vec<_>>().join(", ");
            maps.push(MapCells { name, combinations: Vec::new() });
            maps.len() - 1
        });
        maps[place].combinations.push(combination);
    }
    let all = maps.len();
    let hidden: usize = maps.iter().skip(MAX_MAPS).map(|map| map.combinations.len()).sum();
    maps.truncate(MAX_MAPS);
    let left_out = match hidden {
        0 => String::new(),
        hidden => {
            let keys: Vec<String> = others.iter().map(|axis| sweep.axes[*axis].key.clone()).collect();
            format!(
                " Drawn for the first {MAX_MAPS} of {} values of {}; the other {} combinations are in {}.",
                count(all as u64),
                list(&keys),
                count(hidden as u64),
                if sweep.is_large() { "summary.json" } else { "the table below" }
            )
        }
    };
    (maps, left_out)
}

/// The size in which `text` fills a cell. A character is about 0.6 of the font's size wide.
fn letter_size(text: &str, width: f64) -> f64 {
    (width - 3.0) / (0.6 * text.chars().count().max(2) as f64)
}

/// Who is best, in a few letters, and how good, if there is room for it.
fn winner(sweep: &Sweep<'_>, combination: &Combination<'_>, width: f64) -> CellLook {
    let CellLook { text: who, style } = names_and_colour(sweep, combination);
    let both = combination.figure_of_best(sweep.by).map(|figure| format!("{who} {figure}"));
    let has_room = |both: &String| letter_size(both, width) >= LEGIBLE;
    let both = both.filter(|both| combination.outcome() != Outcome::Unknown && has_room(both));
    CellLook { text: both.unwrap_or(who), style }
}

/// Who is best, in a few letters.
fn names_and_colour(sweep: &Sweep<'_>, combination: &Combination<'_>) -> CellLook {
    let named = combination.verdict.map(|verdict| &verdict.best_labels[..]).unwrap_or_default();
    let letters: Vec<String> = named.iter().map(|name| code(name)).collect();
    let first = named.first().and_then(|name| sweep.series.iter().position(|view| view.label == *name));
    let leader = first.or(combination.leader).map(|at| colour(sweep.looks[at]));
    let leader = leader.unwrap_or_else(|| "var(--soft)".to_owned());
    match combination.outcome() {
        Outcome::Distinct(_) => CellLook::new(short(&letters), format!("fill:{leader};fill-opacity:.55")),
        Outcome::Alike(_) => CellLook::new(short(&letters), format!("fill:{leader};fill-opacity:.2")),
        Outcome::Undecided => CellLook::new("?", "fill:var(--soft);fill-opacity:.12"),
        Outcome::DependsOnReceiver => CellLook::new("~", "fill:var(--bad);fill-opacity:.08"),
        Outcome::Unusable => CellLook::new("no", "fill:var(--bad);fill-opacity:.16"),
        Outcome::Unknown => CellLook::new("–", "fill:none"),
    }
}

/// `U`, `U/T`, `U+4`
fn short(names: &[String]) -> String {
    match names {
        [first, _, _, ..] => format!("{first}+{}", names.len() - 1),
        few => few.join("/"),
    }
}

/// Whose names the letters with a +N leave out, for the caption: ` (U+2: UDP, TCP and QUIC stream)`.
fn hidden_names(sweep: &Sweep<'_>) -> String {
    let named = sweep
        .combinations
        .iter()
        .filter(|combination| matches!(combination.outcome(), Outcome::Distinct(_) | Outcome::Alike(_)));
    let named = named.filter_map(|combination| Some(&combination.verdict?.best_labels));
    let named = named.filter(|names| names.len() > 2);
    let sets: BTreeSet<String> = named
        .map(|names| {
            let letters: Vec<String> = names.iter().map(|name| code(name)).collect();
            format!("{}: {}", short(&letters), list(names))
        })
        .collect();
    match sets.len() {
        0 => String::new(),
        1..=MAX_SETS => format!(" ({})", sets.into_iter().collect::<Vec<_>>().join("; ")),
        _ => " (the report's table of combinations has their names)".to_owned(),
    }
}

fn figure_range(sweep: &Sweep<'_>) -> FigureRange {
    let (faintest, strongest) = match sweep.by {
        JudgedBy::Mos => (1.0, 4.5),
        JudgedBy::InTime => (0.0, 1.0),
        JudgedBy::Goodput => {
            (0.0, sweep.combinations.iter().filter_map(Combination::best).fold(0.0, f64::max))
        }
    };
    FigureRange { faintest, strongest }
}

/// How good the best is, in a colour within the range.
fn figure(sweep: &Sweep<'_>, combination: &Combination<'_>, range: FigureRange) -> CellLook {
    let (Some(best), Some(text)) = (combination.best(), combination.figure_of_best(sweep.by)) else {
        return CellLook::new("–", "fill:none");
    };
    let FigureRange { faintest, strongest } = range;
    let share = match strongest > faintest {
        true => ((best - faintest) / (strongest - faintest)).clamp(0.0, 1.0),
        false => 0.0,
    };
    let is_unusable =
        combination.best_depends() || combination.usable_of_best().is_some_and(|share| share < 1.0);
    let text = if is_unusable { format!("({text})") } else { text };
    CellLook::new(text, format!("fill:var(--accent);fill-opacity:{:.2}", 0.05 + 0.55 * share))
}

/// The transports' letters and colours.
fn legend(sweep: &Sweep<'_>) -> Vec<Entry> {
    let entry = |(view, look): (&TransportView, &Look)| Entry {
        name: format!("{} ({})", view.label, code(&view.label)),
        samples: vec![Sample::line(
            format!("stroke:{};stroke-width:9;stroke-opacity:.55", colour(*look)),
            None,
        )],
    };
    sweep.series.iter().zip(&sweep.looks).map(entry).collect()
}

/// The first letter of each word, and its number: `TCP_NODELAY` is TN, `DCCP CCID 2` is DC2. No two
/// transports have the same letters.
fn code(label: &str) -> String {
    let words = label.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words
        .filter_map(|word| {
            let first = word.chars().next()?;
            Some(if first.is_ascii_digit() { word.to_owned() } else { first.to_uppercase().to_string() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::code;
    use crate::display::all;

    #[test]
    fn no_two_transports_have_the_same_letters() {
        let mut known = BTreeMap::new();
        for display in all() {
            let other = known.insert(code(display.name), display.name);
            assert_eq!(other, None, "{}", display.name);
        }
    }
}
