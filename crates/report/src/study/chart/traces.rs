//! The chart of state over time: steps or loss runs. Each kind of run has a panel.
//!
//! A *trace* is the state of a flow or a link over the time of one run. A *band* is the range in which the
//! traces of several runs lie. A *level* is a value of the publication, drawn as a line across.

use talkpath_study::{BandPoint, FigureOutcome, Level, Stretch, TracePanel};

use super::shared::{HEIGHT, TOP, UntitledChart, line_legend, line_styles, sentences};
use crate::chart::{LegendEntry, extent};
use crate::plot::panel::{LEFT, Panel, PanelStack, RIGHT, WIDTH, X_RANGE};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{PathData, Svg, SvgPath, SvgText};

/// The height of each of several panels.
const STACKED_HEIGHT: f64 = 130.0;
/// The room above a panel for its title.
const GAP: f64 = 40.0;
/// The further room above the first panel for its title.
const TITLE_HEIGHT: f64 = 14.0;
/// A band of at least this many runs shows the range of nine tenths of them. A band of fewer runs shows the
/// range of all.
const RUNS_FOR_TENTHS: u64 = 20;

pub(super) fn draw(
    figure: &FigureOutcome,
    panels: &[TracePanel],
    seconds: Stretch,
    levels: &[Level],
) -> UntitledChart {
    let chart = TraceChart { figure, panels, seconds, levels };
    UntitledChart { svg: chart.draw(), legend: chart.legend(), caption: chart.caption() }
}

struct TraceChart<'a> {
    figure: &'a FigureOutcome,
    panels: &'a [TracePanel],
    seconds: Stretch,
    levels: &'a [Level],
}

impl TraceChart<'_> {
    /// Whether the chart shows loss runs, whose vertical axis counts packets.
    fn shows_loss_runs(&self) -> bool {
        self.panels.iter().any(|panel| !panel.loss_runs.is_empty())
    }

    fn draw(&self) -> Svg {
        let has_titles = self.panels.iter().any(|panel| !panel.title.is_empty());
        let stack = PanelStack {
            count: self.panels.len(),
            top: if has_titles { TOP + TITLE_HEIGHT } else { TOP },
            panel_height: if self.panels.len() > 1 { STACKED_HEIGHT } else { HEIGHT },
            gap: GAP,
        };
        let mut svg = stack.svg();
        let highest = self.highest();
        // More ticks than packets would be at fractions of a packet.
        let tick_count = if self.shows_loss_runs() { highest.clamp(1.0, 4.0) as usize } else { 4 };
        for (index, (trace, span)) in self.panels.iter().zip(stack.spans()).enumerate() {
            let panel = Panel {
                top: span.top,
                bottom: span.bottom,
                x: Scale::linear(self.seconds.into(), X_RANGE),
                y: Scale::fitting((0.0, highest), (span.bottom, span.top)),
            };
            panel.draw_vertical_axis(&mut svg, tick_count, tick_label);
            let x_title = stack.is_last(index).then_some(self.figure.x_title.as_str());
            panel.draw_horizontal_axis(&mut svg, 8, x_title);
            svg.text(SvgText::starting_at((LEFT, span.top - 8.0), "name", &trace.title));
            self.draw_trace(&mut svg, &panel, trace);
            self.draw_levels(&mut svg, &panel);
        }
        svg.vertical_axis_title(stack.whole_span(), &self.figure.y_title);
        svg
    }

    fn highest(&self) -> f64 {
        let panels = || self.panels.iter();
        let steps = panels().flat_map(|panel| &panel.steps).flat_map(|line| &line.points);
        let bands = panels().flat_map(|panel| &panel.bands).flat_map(|band| &band.points);
        let loss_runs = panels().flat_map(|panel| &panel.loss_runs);
        let values = steps
            .map(|(_, value)| *value)
            .chain(bands.map(|point| point.high))
            .chain(loss_runs.map(|run| run.length as f64))
            .chain(self.levels.iter().map(|level| level.value));
        let (_, highest) = extent(values);
        if highest.is_finite() { highest } else { 1.0 }
    }

    fn draw_trace(&self, svg: &mut Svg, panel: &Panel, trace: &TracePanel) {
        let styles = line_styles(trace.steps.iter().map(|line| line.entity.as_str()));
        // All bands are behind all lines.
        for (line, style) in trace.steps.iter().zip(&styles) {
            for band in trace.bands.iter().filter(|band| band.entity == line.entity) {
                let (style, data) =
                    (format!("fill:{}", style.colour), self.band_outline(panel, &band.points));
                svg.path(&SvgPath { class: "band", style: &style, data: &data, ..SvgPath::default() });
            }
        }
        for (line, style) in trace.steps.iter().zip(&styles) {
            let data = self.stepped_line(panel, &line.points);
            svg.path(&SvgPath { class: "state", style: &style.stroke, data: &data, ..SvgPath::default() });
        }
        for run in &trace.loss_runs {
            svg.line("lost", panel.point((run.at_s, 0.0)), panel.point((run.at_s, run.length as f64)));
        }
    }

    /// The outline of a band: along its upper side, and back along its lower side.
    fn band_outline(&self, panel: &Panel, points: &[BandPoint]) -> String {
        let mut upper = Vec::new();
        let mut lower = Vec::new();
        for (index, point) in points.iter().enumerate() {
            let until = points.get(index + 1).map_or(self.seconds.to, |next| next.at_s);
            for time in [point.at_s, until] {
                upper.push(panel.point((time, point.high)));
                lower.push(panel.point((time, point.low)));
            }
        }
        let corners = upper.into_iter().chain(lower.into_iter().rev());
        let corners: Vec<String> = corners.map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        if corners.is_empty() { String::new() } else { format!("M{}Z", corners.join("L")) }
    }

    /// The path of a trace. Its last value holds until the end of the panel.
    fn stepped_line(&self, panel: &Panel, points: &[(f64, f64)]) -> String {
        let end = points.last().map(|(_, value)| (self.seconds.to, *value));
        PathData::stepped_line(points.iter().copied().chain(end).map(|point| panel.point(point)))
    }

    fn draw_levels(&self, svg: &mut Svg, panel: &Panel) {
        for level in self.levels {
            panel.draw_horizontal_limit(svg, level.value);
            let point = (WIDTH - RIGHT - 4.0, panel.y.at(level.value) - 4.0);
            let text = format!("{} {}", level.label, tick_label(level.value));
            svg.text(SvgText::ending_at(point, "halo", &text));
        }
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let Some(first) = self.panels.first() else { return Vec::new() };
        let names: Vec<&str> = first.steps.iter().map(|line| line.entity.as_str()).collect();
        line_legend(&names, &[])
    }

    fn caption(&self) -> String {
        let loss_runs = if self.shows_loss_runs() { "One upright line a loss run" } else { "" };
        let levels = if self.levels.is_empty() { "" } else { "Dotted lines across are printed figures" };
        sentences(&[&self.about_runs(), &self.about_bands(), loss_runs, levels])
    }

    /// The sentence about the runs that the panels show.
    fn about_runs(&self) -> String {
        let all = self.panels.first().map_or(0, |panel| panel.runs.all);
        match self.panels {
            [only] if only.title.is_empty() => {
                let total = if all > 1 { format!(" of {all}") } else { String::new() };
                format!("Run {}{total} under the base assumptions", only.repetition + 1)
            }
            _ => "One panel for each kind of run under the base assumptions, the most frequent first; the first run of the kind is shown"
                .to_owned(),
        }
    }

    /// The sentence about the bands. Empty if there are none.
    fn about_bands(&self) -> String {
        let bands = self.panels.iter().flat_map(|panel| &panel.bands);
        let Some(runs) = bands.map(|band| band.runs).max() else { return String::new() };
        if self.panels.len() > 1 {
            return "Shaded is where nine tenths of the runs of the kind lie at that moment (all, of fewer than 20), if it \
                    has six"
                .to_owned();
        }
        if runs < RUNS_FOR_TENTHS {
            format!("Shaded is where all {runs} runs lie at that moment")
        } else {
            format!("Shaded is where nine tenths of all {runs} runs lie at that moment")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chart;
    use super::*;
    use talkpath_study::{Drawing, LossRun, RunShare, TraceBand, TraceLine};

    fn figure(panels: Vec<TracePanel>, levels: Vec<Level>) -> FigureOutcome {
        FigureOutcome {
            number: "8".to_owned(),
            title: "title".to_owned(),
            x_title: "time, s".to_owned(),
            y_title: "packets".to_owned(),
            note: "The paper prints a curve alone".to_owned(),
            drawing: Drawing::Traces { panels, seconds: Stretch { from: 0.0, to: 10.0 }, levels },
        }
    }

    #[test]
    fn packets_lost_in_a_row_are_counted_in_whole_numbers() {
        for length in 1..=9 {
            let run = LossRun { flow: "call".to_owned(), at_s: 1.0, length };
            let panel = TracePanel { loss_runs: vec![run], ..TracePanel::default() };
            let svg = chart(&figure(vec![panel], Vec::new())).svg.unwrap().into_string();
            assert!(!svg.contains(".5</text>"), "{length}: {svg}");
        }
    }

    #[test]
    fn a_band_lies_behind_its_line_and_the_caption_counts_its_runs() {
        let line = |value| TraceLine {
            entity: "wan".to_owned(),
            kind: "queue".to_owned(),
            points: vec![(0.0, value)],
        };
        let points =
            vec![BandPoint { at_s: 0.0, low: 1.0, high: 8.0 }, BandPoint { at_s: 5.0, low: 2.0, high: 4.0 }];
        let band = TraceBand { entity: "wan".to_owned(), runs: 20, points };
        let panel = TracePanel { steps: vec![line(3.0)], bands: vec![band], ..TracePanel::default() };
        let chart = chart(&figure(vec![panel], Vec::new()));
        let svg = chart.svg.unwrap().into_string();
        let (band, state) = (svg.find("class=\"band\"").unwrap(), svg.find("class=\"state\"").unwrap());
        assert!(band < state, "{svg}");
        let outline = svg[band..].split("d=\"").nth(1).unwrap().split('"').next().unwrap();
        // Two corners a point on either side.
        assert_eq!(outline.matches('L').count(), 2 * 2 * 2 - 1, "{outline}");
        assert!(chart.caption.contains("nine tenths of all 20 runs"), "{}", chart.caption);
    }

    #[test]
    fn each_kind_of_run_has_a_panel_with_its_share_and_the_printed_level() {
        let kind = |title: &str| TracePanel {
            title: title.to_owned(),
            runs: RunShare { of_kind: 3, all: 9 },
            steps: vec![TraceLine {
                entity: "wan".to_owned(),
                kind: "queue".to_owned(),
                points: vec![(0.0, 4.0)],
            }],
            ..TracePanel::default()
        };
        let level = Level { label: "printed mean".to_owned(), value: 7.3 };
        let chart = chart(&figure(vec![kind("all lose: 6 of 9"), kind("none: 3 of 9")], vec![level]));
        let svg = chart.svg.unwrap().into_string();
        assert!(svg.contains("all lose: 6 of 9") && svg.contains("none: 3 of 9"), "{svg}");
        assert_eq!(svg.matches("printed mean 7.3").count(), 2);
        assert!(chart.caption.ends_with("The paper prints a curve alone."), "{}", chart.caption);
    }
}
