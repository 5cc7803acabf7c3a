//! Heat maps over two swept keys: which transport is best at each combination, and how good the best one is.
//!
//! Each combination is a rectangle, a *cell of the map*, with a text, so that nobody has to tell it by its
//! colour. The colour is that of the first transport in the text. If more than two keys are swept, each
//! combination of the further keys has a map.

use std::collections::BTreeSet;

use talkpath_measure::summary::JudgedBy;

use super::legend::{LegendEntry, Sample};
use super::shared::{Chart, id_part};
use super::sweep::{ChartAxes, axis_title};
use crate::number::{count, list};
use crate::plot::panel::{RIGHT, WIDTH};
use crate::plot::svg::{Svg, SvgHeatCell, SvgName, SvgRect, SvgText};
use crate::sweep::{Axis, Combination, Outcome, Sweep};

/// The room left of the cells for the values of the vertical axis.
const LEFT: f64 = 96.0;
/// The room above the cells for the title of the vertical axis.
const TOP: f64 = 26.0;
/// The further room above the cells for the name of a map. The only map has no name.
const NAME_ROW: f64 = 18.0;
/// The left side of titles and names.
const TITLE_LEFT: f64 = 8.0;
const ROW_HEIGHT: f64 = 26.0;
/// The room below the cells for the values and the title of the horizontal axis.
const FOOT: f64 = 46.0;
/// The space between two cells.
const CELL_GAP: f64 = 1.0;
/// The width of a letter of the values below the cells, rounded up.
const LABEL_LETTER_WIDTH: f64 = 7.2;
/// The smallest and the largest font size in a cell.
const FONT_SIZES: (f64, f64) = (4.0, 12.0);
/// The smallest font size that can be read. A cell leaves its figure out rather than use a smaller one.
const LEGIBLE_FONT_SIZE: f64 = 7.0;
/// The most maps under one another. We chose 6 as for the panels of the lines over a sweep.
pub(super) const MAX_MAPS: usize = 6;
/// The most abbreviated lists of transports that a caption writes out. We chose 3 because more are longer
/// than the rest of the caption.
const MAX_EXPLAINED_LISTS: usize = 3;

/// The content of the cells of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeatMapKind {
    /// The best transport.
    Winner,
    /// The figure of the best transport.
    Figure,
}

/// Draws a heat map. `conditions` is the end of its caption. Returns `None` if fewer than two keys are swept,
/// if there are no answers, or if the map should show the best transport and transports are not compared.
pub(crate) fn heat_map(sweep: &Sweep<'_>, kind: HeatMapKind, conditions: &str) -> Option<Chart> {
    let ChartAxes { x, others } = ChartAxes::choose(sweep)?;
    let y = *others.iter().max_by_key(|&&axis| sweep.axes[axis].values.len())?;
    if !sweep.has_answers() || kind == HeatMapKind::Winner && !sweep.is_compared() {
        return None;
    }
    let further_axes: Vec<usize> = others.into_iter().filter(|axis| *axis != y).collect();
    let MapSelection { maps, not_drawn_note } = MapSelection::new(sweep, &further_axes);
    let chart = HeatMapChart { sweep, kind, x, y, range: ColourRange::new(sweep) };
    let id = format!("heat-{}-{}", chart.id_word(), id_part(sweep.flow));
    let (title, description) = (chart.title(), chart.description());
    Some(Chart {
        legend: if kind == HeatMapKind::Winner { legend(sweep) } else { Vec::new() },
        svg: Some(chart.draw(&maps).finish(SvgName { id: &id, title: &title, description: &description })),
        caption: format!("{}{not_drawn_note}{}{conditions}", chart.caption(), sweep.not_placed_note()),
        id,
        title,
    })
}

struct HeatMap<'a> {
    /// The values of the further keys. Empty if there are none.
    name: String,
    combinations: Vec<&'a Combination<'a>>,
}

/// The maps that are drawn.
struct MapSelection<'a> {
    maps: Vec<HeatMap<'a>>,
    /// The sentence of the caption about the maps that are not drawn. Empty if all are drawn.
    not_drawn_note: String,
}

impl<'a> MapSelection<'a> {
    /// Selects the first maps. Each combination of values on `further_axes` has a map.
    fn new(sweep: &'a Sweep<'_>, further_axes: &[usize]) -> Self {
        let groups = sweep.group_by_values(further_axes);
        let hidden: usize = groups.iter().skip(MAX_MAPS).map(Vec::len).sum();
        let mut not_drawn_note = String::new();
        if hidden > 0 {
            let keys: Vec<String> = further_axes.iter().map(|&axis| sweep.axes[axis].key.clone()).collect();
            not_drawn_note = format!(
                " Drawn for the first {MAX_MAPS} of {} values of {}; the other {} combinations are in {}.",
                count(groups.len() as u64),
                list(&keys),
                count(hidden as u64),
                if sweep.is_large() { "summary.json" } else { "the table below" }
            );
        }
        let maps = groups.into_iter().take(MAX_MAPS).map(|combinations| HeatMap {
            name: sweep.values_text(combinations[0], further_axes.iter().copied(), Axis::percent_label),
            combinations,
        });
        Self { maps: maps.collect(), not_drawn_note }
    }
}

/// The maps of one kind.
struct HeatMapChart<'a> {
    sweep: &'a Sweep<'a>,
    kind: HeatMapKind,
    /// The index of the horizontal axis.
    x: usize,
    /// The index of the vertical axis.
    y: usize,
    range: ColourRange,
}

impl HeatMapChart<'_> {
    /// The kind as a part of the chart's id.
    fn id_word(&self) -> &'static str {
        match self.kind {
            HeatMapKind::Winner => "winner",
            HeatMapKind::Figure => "figure",
        }
    }

    fn title(&self) -> String {
        let (flow, figure) = (self.sweep.flow, axis_title(self.sweep.judged_by));
        match self.kind {
            HeatMapKind::Winner => format!("Which transport is best for {flow}"),
            HeatMapKind::Figure if self.sweep.is_compared() => {
                format!("How good the best transport is for {flow}: {figure}")
            }
            HeatMapKind::Figure => format!("How good it is for {flow}: {figure}"),
        }
    }

    fn description(&self) -> String {
        format!(
            "A cell for each of the {} combinations of {} and {}.",
            self.sweep.combinations.len(),
            self.frame().x_axis.key,
            self.frame().y_axis.key
        )
    }

    fn caption(&self) -> String {
        match self.kind {
            HeatMapKind::Winner => format!(
                "A full colour: one is best. A faint one: the named serve alike, +N is N more of them{}. \"?\": the repetitions \
                 do not decide. \"~\": it depends on the receiver. \"no\": nothing is usable. The number is the {} of the best: a mean over the repetitions, or both outcomes where there are two.",
                explained_lists(self.sweep),
                axis_title(self.sweep.judged_by)
            ),
            HeatMapKind::Figure => {
                "Means over the repetitions, or both outcomes where there are two; the better, the stronger the colour. In \
                 brackets: not usable, or not in each repetition or with each receiver."
                    .to_owned()
            }
        }
    }

    fn draw(&self, maps: &[HeatMap<'_>]) -> Svg {
        let frame = self.frame();
        let has_names = maps.iter().any(|map| !map.name.is_empty());
        let mut svg = Svg::new(WIDTH, frame.height(has_names) * maps.len() as f64);
        for (index, map) in maps.iter().enumerate() {
            let map_top = frame.begin(&mut svg, index, &map.name, has_names);
            for combination in &map.combinations {
                self.draw_cell(&mut svg, combination, map_top);
            }
        }
        svg
    }

    fn frame(&self) -> MapFrame<'_> {
        MapFrame { x_axis: &self.sweep.axes[self.x], y_axis: &self.sweep.axes[self.y] }
    }

    fn draw_cell(&self, svg: &mut Svg, combination: &Combination<'_>, map_top: f64) {
        let frame = self.frame();
        let width = frame.column_width();
        let look = match self.kind {
            HeatMapKind::Winner => winner_and_figure(self.sweep, combination, width),
            HeatMapKind::Figure => self.figure(combination),
        };
        let place = (combination.value_indices[self.x], combination.value_indices[self.y]);
        frame.draw_cell(svg, place, map_top, &look, &self.tooltip(combination));
    }

    /// The figure of the best transport. The colour is stronger the better the figure is.
    fn figure(&self, combination: &Combination<'_>) -> CellLook {
        let (Some(mean), Some(figure)) =
            (combination.best_mean(), combination.best_figure(self.sweep.judged_by))
        else {
            return CellLook::unknown();
        };
        let is_usable = match combination.best_result() {
            Some(result) => !result.depends_on_receiver() && result.usable_share() >= 1.0,
            None => true,
        };
        let opacity = 0.05 + 0.55 * self.range.share(mean);
        CellLook {
            text: if is_usable { figure } else { format!("({figure})") },
            style: format!("fill:var(--accent);fill-opacity:{opacity:.2}"),
        }
    }

    /// The text for a pointer over a cell.
    fn tooltip(&self, combination: &Combination<'_>) -> String {
        let Sweep { axes, judged_by, .. } = self.sweep;
        let values = self.sweep.values_text(combination, 0..axes.len(), Axis::percent_label);
        let answer = match combination.verdict {
            Some(verdict) if !verdict.is_valid => " no answer, the run is not valid".to_owned(),
            Some(verdict) => format!(" {}, {}", verdict.best_by_name, combination.outcome().word()),
            None => String::new(),
        };
        let figure = combination.best_figure(*judged_by);
        let figure =
            figure.map_or_else(String::new, |figure| format!(", {} {figure}", axis_title(*judged_by)));
        format!("{values}:{answer}{figure}")
    }
}

/// The axes of maps, and the places of their cells.
pub(super) struct MapFrame<'a> {
    /// The horizontal axis.
    pub(super) x_axis: &'a Axis,
    /// The vertical axis. Its first value has the lowest row.
    pub(super) y_axis: &'a Axis,
}

impl MapFrame<'_> {
    fn column_count(&self) -> usize {
        self.x_axis.values.len()
    }

    fn row_count(&self) -> usize {
        self.y_axis.values.len()
    }

    pub(super) fn column_width(&self) -> f64 {
        (WIDTH - RIGHT - LEFT) / self.column_count() as f64
    }

    fn map_height(&self) -> f64 {
        self.row_count() as f64 * ROW_HEIGHT
    }

    fn head(has_names: bool) -> f64 {
        if has_names { TOP + NAME_ROW } else { TOP }
    }

    /// The height of a map with its axes. Maps under one another have names.
    pub(super) fn height(&self, has_names: bool) -> f64 {
        Self::head(has_names) + self.map_height() + FOOT
    }

    /// The top of the row of a value. `map_top` is the top of the map.
    fn row_top(&self, map_top: f64, value_index: usize) -> f64 {
        map_top + (self.row_count() - 1 - value_index) as f64 * ROW_HEIGHT
    }

    /// Draws the axes and the name of the map with this index from above. Returns the top of its cells.
    pub(super) fn begin(&self, svg: &mut Svg, index: usize, name: &str, has_names: bool) -> f64 {
        let map_top = Self::head(has_names) + index as f64 * self.height(has_names);
        if !name.is_empty() {
            let point = (TITLE_LEFT, map_top - 9.0 - NAME_ROW);
            svg.text(SvgText::starting_at(point, "name", name));
        }
        self.draw_axes(svg, map_top);
        map_top
    }

    fn draw_axes(&self, svg: &mut Svg, map_top: f64) {
        let (x_axis, y_axis) = (self.x_axis, self.y_axis);
        let (width, bottom) = (self.column_width(), map_top + self.map_height());
        let label_length = |index: usize| x_axis.percent_label(index).chars().count();
        let longest_label = (0..self.column_count()).map(label_length).max().unwrap_or(1);
        // If the labels are wider than the cells, only each second value has a label, or each third, and so
        // on.
        let stride = ((LABEL_LETTER_WIDTH * longest_label as f64 + 4.0) / width).ceil().max(1.0) as usize;
        for index in (0..self.column_count()).step_by(stride) {
            let middle = LEFT + (index as f64 + 0.5) * width;
            let label = x_axis.percent_label(index);
            svg.text(SvgText::centred_at((middle, bottom + 17.0), "tick", &label));
        }
        for index in 0..self.row_count() {
            let baseline = self.row_top(map_top, index) + ROW_HEIGHT / 2.0 + 4.0;
            let label = y_axis.percent_label(index);
            svg.text(SvgText::ending_at((LEFT - 7.0, baseline), "tick", &label));
        }
        svg.text(SvgText::starting_at((LEFT, bottom + 37.0), "title", &x_axis.title_in_words()));
        // The title is above the values, because a map with few rows is lower than the title is long.
        svg.text(SvgText::starting_at((TITLE_LEFT, map_top - 9.0), "title", &y_axis.title_in_words()));
    }

    /// Draws a cell. `place` has the indices of its values on both axes.
    pub(super) fn draw_cell(
        &self,
        svg: &mut Svg,
        place: (usize, usize),
        map_top: f64,
        look: &CellLook,
        tooltip: &str,
    ) {
        let width = self.column_width();
        let (x_value, y_value) = place;
        svg.heat_cell(&SvgHeatCell {
            rect: SvgRect {
                style: &look.style,
                left: LEFT + x_value as f64 * width,
                top: self.row_top(map_top, y_value),
                width: width - CELL_GAP,
                height: ROW_HEIGHT - CELL_GAP,
                ..SvgRect::default()
            },
            text: &look.text,
            font_size: fitting_font_size(&look.text, width).clamp(FONT_SIZES.0, FONT_SIZES.1),
            tooltip,
        });
    }
}

/// The figures that have the faintest and the strongest colour.
#[derive(Clone, Copy)]
struct ColourRange {
    faintest: f64,
    strongest: f64,
}

impl ColourRange {
    fn new(sweep: &Sweep<'_>) -> Self {
        match sweep.judged_by {
            JudgedBy::Mos => Self { faintest: 1.0, strongest: 4.5 },
            JudgedBy::InTime | JudgedBy::Heard => Self { faintest: 0.0, strongest: 1.0 },
            JudgedBy::Goodput => {
                let means = sweep.combinations.iter().filter_map(Combination::best_mean);
                Self { faintest: 0.0, strongest: means.fold(0.0, f64::max) }
            }
        }
    }

    /// The place of `figure` in the range, from 0 to 1.
    fn share(self, figure: f64) -> f64 {
        if self.strongest <= self.faintest {
            return 0.0;
        }
        ((figure - self.faintest) / (self.strongest - self.faintest)).clamp(0.0, 1.0)
    }
}

pub(super) struct CellLook {
    pub(super) text: String,
    pub(super) style: String,
}

impl CellLook {
    pub(super) fn unknown() -> Self {
        Self { text: "–".to_owned(), style: "fill:none".to_owned() }
    }
}

/// The best transport in a few letters, with its figure if there is room.
fn winner_and_figure(sweep: &Sweep<'_>, combination: &Combination<'_>, width: f64) -> CellLook {
    let mut cell = winner(sweep, combination);
    if combination.outcome() == Outcome::Unknown {
        return cell;
    }
    if let Some(figure) = combination.best_figure(sweep.judged_by) {
        let with_figure = format!("{} {figure}", cell.text);
        if fitting_font_size(&with_figure, width) >= LEGIBLE_FONT_SIZE {
            cell.text = with_figure;
        }
    }
    cell
}

fn winner(sweep: &Sweep<'_>, combination: &Combination<'_>) -> CellLook {
    let best_labels = combination.verdict.map(|verdict| &verdict.best_labels[..]).unwrap_or_default();
    let first = best_labels.first();
    let first = first.and_then(|label| sweep.series.iter().position(|series| series.label == *label));
    let colour = match first.or(combination.leader) {
        Some(series) => sweep.looks[series].colour(),
        None => "var(--soft)".to_owned(),
    };
    let (text, style) = match combination.outcome() {
        Outcome::Distinct(_) => (abbreviate_list(best_labels), format!("fill:{colour};fill-opacity:.55")),
        Outcome::Alike(_) => (abbreviate_list(best_labels), format!("fill:{colour};fill-opacity:.2")),
        Outcome::Undecided => ("?".to_owned(), "fill:var(--soft);fill-opacity:.12".to_owned()),
        Outcome::DependsOnReceiver => ("~".to_owned(), "fill:var(--bad);fill-opacity:.08".to_owned()),
        Outcome::Unusable => ("no".to_owned(), "fill:var(--bad);fill-opacity:.16".to_owned()),
        Outcome::Unknown => return CellLook::unknown(),
    };
    CellLook { text, style }
}

/// The font size with which `text` fills a cell of this width. A character is about 0.6 of its font size
/// wide.
fn fitting_font_size(text: &str, width: f64) -> f64 {
    (width - 3.0) / (0.6 * text.chars().count().max(2) as f64)
}

/// Abbreviates the names of transports: `U`, `U/T`, or `U+4` for five transports.
fn abbreviate_list(labels: &[String]) -> String {
    let letters: Vec<String> = labels.iter().map(|label| abbreviate(label)).collect();
    match &letters[..] {
        [first, _, _, ..] => format!("{first}+{}", letters.len() - 1),
        few => few.join("/"),
    }
}

/// Abbreviates the name of a transport by the first letter of each word, and its numbers: `TCP_NODELAY` is
/// TN, `DCCP CCID 2` is DC2. No two transports have the same abbreviation.
fn abbreviate(label: &str) -> String {
    let mut letters = String::new();
    for word in label.split(|c: char| !c.is_alphanumeric()) {
        match word.chars().next() {
            Some(first) if first.is_ascii_digit() => letters.push_str(word),
            Some(first) => letters.extend(first.to_uppercase()),
            None => {}
        }
    }
    letters
}

/// Writes out the lists that cells abbreviate with +N, for the caption: ` (U+2: UDP, TCP and QUIC stream)`.
fn explained_lists(sweep: &Sweep<'_>) -> String {
    let mut lists: BTreeSet<String> = BTreeSet::new();
    for combination in &sweep.combinations {
        let Some(verdict) = combination.verdict else { continue };
        let is_named = matches!(combination.outcome(), Outcome::Distinct(_) | Outcome::Alike(_));
        if is_named && verdict.best_labels.len() > 2 {
            lists.insert(format!(
                "{}: {}",
                abbreviate_list(&verdict.best_labels),
                list(&verdict.best_labels)
            ));
        }
    }
    match lists.len() {
        0 => String::new(),
        1..=MAX_EXPLAINED_LISTS => format!(" ({})", lists.into_iter().collect::<Vec<_>>().join("; ")),
        _ => " (the report's table of combinations has their names)".to_owned(),
    }
}

/// The names, the abbreviations and the colours of the transports.
fn legend(sweep: &Sweep<'_>) -> Vec<LegendEntry> {
    let entries = sweep.series.iter().zip(&sweep.looks).map(|(transport, look)| {
        let name = format!("{} ({})", transport.label, abbreviate(&transport.label));
        let style = format!("stroke:{};stroke-width:9;stroke-opacity:.55", look.colour());
        LegendEntry::new(&name, Sample::line(style))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::abbreviate;
    use crate::display::all;

    #[test]
    fn no_two_transports_have_the_same_abbreviation() {
        let mut known = BTreeMap::new();
        for display in all() {
            let other = known.insert(abbreviate(display.name), display.name);
            assert_eq!(other, None, "{}", display.name);
        }
    }
}
