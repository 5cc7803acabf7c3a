//! A sweep's lines: the judged figure of each transport over one swept parameter, with its interval as
//! a band.

use std::collections::BTreeMap;

use talkpath_measure::summary::JudgedBy;

use super::{Entry, Figure, Sample, colour, extent, marker, ring, stroke};
use crate::display::Look;
use crate::number::{count, list};
use crate::plot::panel::{BOTTOM, LEFT, LIMIT_STYLE, Panel, RIGHT, WIDTH, stack};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Anchor, Svg, unit};
use crate::sweep::{Axis, Combination, Served, Sweep};
use crate::verdict::figure_style;

const TOP: f64 = 26.0;
/// Heights of a single panel, and of a panel among several.
const HEIGHT: f64 = 260.0;
const LOW_HEIGHT: f64 = 130.0;
const GAP: f64 = 34.0;
/// Panels under one another; chosen: with more the first is out of sight when the last is read.
const MAX_PANELS: usize = 6;
/// Above this ratio of the largest to the smallest value the axis is logarithmic: swept values that far apart
/// are mostly powers of two or ten; chosen.
const LOG_RATIO: f64 = 12.0;
/// Least distance of two labels under an axis.
const LABEL_ROOM: f64 = 46.0;

/// The axis that the lines run along, and those whose values tell panels apart.
pub(super) fn along(sweep: &Sweep<'_>) -> Option<(usize, Vec<usize>)> {
    let rank = |&at: &usize| (sweep.axes[at].numbers.is_some(), sweep.axes[at].values.len());
    let x = (0..sweep.axes.len()).rev().max_by_key(rank)?;
    Some((x, (0..sweep.axes.len()).filter(|at| *at != x).collect()))
}

/// The figure; `None` if no key but the transport is swept.
pub(crate) fn sweep_lines(sweep: &Sweep<'_>) -> Option<Figure> {
    let (x, others) = along(sweep)?;
    let axis = &sweep.axes[x];
    let (panels, left_out) = panels(sweep, &others);
    let height = if panels.len() > 1 { LOW_HEIGHT } else { HEIGHT };
    let places = stack(panels.len(), TOP, height, GAP);
    let bottom = places.last().map_or(TOP, |place| place.1);
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    let (mut has_band, mut has_barred) = (false, false);
    for (index, (combinations, place)) in panels.iter().zip(&places).enumerate() {
        let panel =
            Panel { top: place.0, bottom: place.1, x: scale(axis), y: y_scale(sweep, (place.1, place.0)) };
        let values: Vec<(f64, String)> =
            (0..axis.values.len()).map(|at| (self::place(axis, at), axis.label(at))).collect();
        panel.open_swept(&mut svg, &axis.key, axis_title(sweep.by), &values);
        panel.vertical_axis(&mut svg, if panels.len() > 1 { 4 } else { 6 }, tick_label);
        x_axis(&mut svg, &panel, axis, (index + 1 == panels.len()).then(|| axis.title()));
        if let Some(floor) = sweep.floor() {
            panel.across(&mut svg, floor * factor(sweep.by));
        }
        if !others.is_empty() {
            let text = label(sweep, &others, combinations);
            svg.text("name", "", (LEFT, panel.top - 8.0), Anchor::Start, &text);
        }
        svg.open_data();
        for (at, view) in sweep.series.iter().enumerate() {
            let line = SweptLine {
                axis,
                points: points(combinations, axis, x, at),
                look: sweep.looks[at],
                name: &view.label,
                factor: factor(sweep.by),
            };
            line.draw(&mut svg, &panel);
            has_band |= line.has_band();
            has_barred |= line.has_barred();
        }
        svg.close();
        svg.close();
    }
    svg.vertical_title((TOP, bottom), axis_title(sweep.by));
    let what = match sweep.by {
        JudgedBy::Mos => "MOS",
        JudgedBy::InTime => "Share in time",
        JudgedBy::Goodput => "Goodput",
    };
    let title = format!("{what} of {} over {}", sweep.flow, axis.key);
    let names: Vec<String> = sweep.series.iter().map(|view| view.label.clone()).collect();
    let entries = sweep.series.iter().zip(&sweep.looks).map(|(view, look)| Entry {
        name: view.label.clone(),
        samples: vec![Sample::line(stroke(*look), Some(*look))],
    });
    let floor = sweep.floor().filter(|floor| *floor > 0.0).map(|floor| {
        Entry::line(&format!("usable from {}", tick_label(floor * factor(sweep.by))), LIMIT_STYLE)
    });
    let barred = has_barred.then(|| Entry::new("barred by gaps", Sample::ring()));
    let band = if has_band { " The band is the 95 % interval of the mean (Student's t)." } else { "" };
    let id = format!("sweep-{}", super::word(sweep.flow));
    let description = format!("{what} over {} for {}.", axis.key, list(&names));
    Some(Figure {
        legend: entries.chain(floor).chain(barred).collect(),
        svg: Some(svg.finish(&id, &title, &description)),
        caption: format!("Means over the repetitions.{band}{left_out}{}", sweep.placeless()),
        id,
        title,
    })
}

/// One panel for each combination of the other axes; of many, some that are spread evenly, and how many are
/// not drawn.
fn panels<'s>(sweep: &'s Sweep<'_>, others: &[usize]) -> (Vec<Vec<&'s Combination<'s>>>, String) {
    let mut panels: BTreeMap<Vec<usize>, Vec<&Combination<'_>>> = BTreeMap::new();
    for combination in &sweep.combinations {
        panels
            .entry(others.iter().map(|axis| combination.at[*axis]).collect())
            .or_default()
            .push(combination);
    }
    let panels: Vec<_> = panels.into_values().collect();
    let all = panels.len();
    let kept = |at: &usize| {
        let places = (0..MAX_PANELS).map(|step| step * (all - 1) / (MAX_PANELS - 1));
        all <= MAX_PANELS || places.into_iter().any(|place| place == *at)
    };
    let kept: Vec<usize> = (0..all).filter(kept).collect();
    let left_out = match all - kept.len() {
        0 => String::new(),
        hidden => {
            let keys: Vec<String> = others.iter().map(|axis| sweep.axes[*axis].key.clone()).collect();
            format!(
                " Drawn at {} of the {} values of {}; the other {} {}.",
                count(kept.len() as u64),
                count(all as u64),
                list(&keys),
                count(hidden as u64),
                sweep.elsewhere()
            )
        }
    };
    (kept.into_iter().map(|at| panels[at].clone()).collect(), left_out)
}

/// `path.up.loss = 0.01`
fn label(sweep: &Sweep<'_>, others: &[usize], combinations: &[&Combination<'_>]) -> String {
    let Some(first) = combinations.first() else { return String::new() };
    let parts = others
        .iter()
        .map(|&axis| format!("{} = {}", sweep.axes[axis].key, sweep.axes[axis].label(first.at[axis])));
    parts.collect::<Vec<_>>().join(", ")
}

/// One transport at one value of the axis.
struct SweptPoint<'s> {
    /// Index of the value on the axis.
    index: usize,
    served: &'s Served,
}

/// The line of one transport.
struct SweptLine<'s> {
    axis: &'s Axis,
    /// From the left to the right.
    points: Vec<SweptPoint<'s>>,
    look: Look,
    name: &'s str,
    /// From the judged figure to the axis.
    factor: f64,
}

/// The points of the transport `series`, from the left to the right.
fn points<'s>(
    combinations: &[&'s Combination<'_>],
    axis: &Axis,
    x: usize,
    series: usize,
) -> Vec<SweptPoint<'s>> {
    let point = |combination: &&'s Combination<'_>| {
        Some(SweptPoint { index: combination.at[x], served: combination.figures[series].as_ref()? })
    };
    let mut points: Vec<SweptPoint<'s>> = combinations.iter().filter_map(point).collect();
    points.sort_by_key(|point| point.index);
    points.sort_by(|a, b| place(axis, a.index).total_cmp(&place(axis, b.index)));
    points
}

impl SweptLine<'_> {
    /// Line, markers and band, with a ring around each point that gaps bar.
    fn draw(&self, svg: &mut Svg, panel: &Panel) {
        if self.points.is_empty() {
            return;
        }
        let at = |point: &SweptPoint<'_>, value: f64| {
            panel.at((place(self.axis, point.index), value * self.factor))
        };
        let mean = |point: &SweptPoint<'_>| at(point, point.served.spread.mean);
        let corner = |(x, y): (f64, f64)| format!("{} {}", unit(x), unit(y));
        if self.has_band() {
            let ends = self.points.iter().filter_map(|point| Some((point, point.served.spread.ci95?)));
            let upper = ends.clone().map(|(point, (_, high))| corner(at(point, high)));
            let lower = ends.rev().map(|(point, (low, _))| corner(at(point, low)));
            let outline: Vec<String> = upper.chain(lower).collect();
            let fill = format!("fill:{}", colour(self.look));
            svg.data("band", &fill, self.name, &format!("M{}Z", outline.join("L")));
        }
        let line: Vec<String> = self.points.iter().map(|point| corner(mean(point))).collect();
        svg.data("series", &stroke(self.look), self.name, &format!("M{}", line.join("L")));
        let mark = |point: &SweptPoint<'_>| {
            let (x, y) = mean(point);
            marker(self.look.marker(), x, y)
        };
        let marks: String = self.points.iter().map(mark).collect();
        svg.data("mark", &format!("fill:{}", colour(self.look)), self.name, &marks);
        if self.has_barred() {
            let barred = self.points.iter().filter(|point| point.served.own.is_barred());
            let rings: String = barred.map(|point| ring(mean(point))).collect();
            svg.data("lost", "", self.name, &rings);
        }
    }

    /// Whether two points or more have an interval.
    fn has_band(&self) -> bool {
        self.points.iter().filter(|point| point.served.spread.ci95.is_some()).count() > 1
    }

    fn has_barred(&self) -> bool {
        self.points.iter().any(|point| point.served.own.is_barred())
    }
}

/// The position of a value on the axis: its number, or its index if it is a word.
fn place(axis: &Axis, index: usize) -> f64 {
    axis.numbers.as_ref().map_or(index as f64, |numbers| numbers.values[index])
}

fn scale(axis: &Axis) -> Scale {
    let range = (LEFT + 12.0, WIDTH - RIGHT - 12.0);
    let (low, high) = extent((0..axis.values.len()).map(|index| place(axis, index)));
    match axis.numbers.is_some() && low > 0.0 && high / low > LOG_RATIO {
        true => Scale::log((low, high), range),
        false => Scale::linear((low, high), range),
    }
}

/// Ticks at the swept values themselves, with the labels that have room.
fn x_axis(svg: &mut Svg, panel: &Panel, axis: &Axis, title: Option<String>) {
    svg.line("axis", (LEFT, panel.bottom), (WIDTH - RIGHT, panel.bottom));
    let mut places: Vec<(f64, usize)> =
        (0..axis.values.len()).map(|index| (panel.x.at(place(axis, index)), index)).collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free_from = f64::NEG_INFINITY;
    for (x, index) in places {
        svg.line("axis", (x, panel.bottom), (x, panel.bottom + 4.0));
        if title.is_some() && x >= free_from {
            let text = axis
                .numbers
                .as_ref()
                .map_or_else(|| axis.label(index), |numbers| tick_label(numbers.values[index]));
            free_from = x + LABEL_ROOM.max(8.0 * text.chars().count() as f64);
            svg.text("tick", "", (x, panel.bottom + 18.0), Anchor::Middle, &text);
        }
    }
    if let Some(title) = title {
        svg.text("title", "", (LEFT, panel.bottom + 38.0), Anchor::Start, &title);
    }
}

fn y_scale(sweep: &Sweep<'_>, range: (f64, f64)) -> Scale {
    match sweep.by {
        JudgedBy::Mos => Scale::linear((1.0, 4.5), range),
        JudgedBy::InTime => Scale::linear((0.0, 100.0), range),
        JudgedBy::Goodput => {
            let figures =
                sweep.combinations.iter().flat_map(|combination| combination.figures.iter().flatten());
            let means = figures.map(|served| &served.spread);
            let (_, high) = extent(means.map(|it| it.ci95.map_or(it.mean, |it| it.1) * factor(sweep.by)));
            Scale::fitting((0.0, high), range)
        }
    }
}

/// From the judged figure to the axis.
pub(super) fn factor(by: JudgedBy) -> f64 {
    figure_style(by).scale.factor
}

pub(super) fn axis_title(by: JudgedBy) -> &'static str {
    match by {
        JudgedBy::Mos => "MOS",
        JudgedBy::InTime => "in time, %",
        JudgedBy::Goodput => "goodput, Mb/s",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::verdict::FlowCells;

    #[test]
    fn a_point_above_the_floor_that_gaps_bar_has_a_ring_and_the_legend_says_so() {
        let (mut summary, _) = fixture::sweep(3);
        for run in &mut summary.runs {
            run.flows.get_mut("call").unwrap().call.as_mut().unwrap().mos = 4.0;
        }
        let lines = |summary: &talkpath_measure::summary::Summary| {
            let flows = FlowCells::all(summary);
            let judged = flows[0].judge();
            let figure = sweep_lines(&Sweep::new(&judged).unwrap()).unwrap();
            let names: Vec<String> = figure.legend.iter().map(|entry| entry.name.clone()).collect();
            (
                figure.svg.unwrap().0.matches("a6.5 6.5 0 1 0 13 0").count(),
                names.contains(&"barred by gaps".to_owned()),
            )
        };
        assert_eq!(lines(&summary), (0, false));
        // Of two combinations one transport; a score below the floor needs no ring.
        let calls =
            summary.runs.iter_mut().map(|run| run.flows.get_mut("call").unwrap().call.as_mut().unwrap());
        for (number, call) in calls.enumerate() {
            call.longest_gap_ms = [1, 4, 7].contains(&number).then_some(1_200.0);
            if number == 7 {
                call.mos = 2.0;
            }
        }
        assert_eq!(lines(&summary), (2, true));
    }
}
