//! The chart of loss runs: how many runs of missing messages have which length.
//!
//! A *loss run* is a number of consecutive messages that are all missing. Each length has one bar for each
//! series.

use super::legend::{LegendEntry, Sample};
use super::shared::{Chart, not_drawn_note};
use crate::number::list;
use crate::plot::panel::{BOTTOM, Panel, WIDTH, X_RANGE};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Svg, SvgName, SvgRect, SvgText};
use crate::select::{FlowSeries, Selection};

const TOP: f64 = 12.0;
const HEIGHT: f64 = 180.0;
const BOTTOM_EDGE: f64 = TOP + HEIGHT;
/// The longest run with bars of its own. Longer runs share the last bars. We chose 20 because the labels of
/// more lengths do not fit.
const MAX_LENGTH: usize = 20;
/// The axis has at least this many lengths, so that few bars are not too wide.
const MIN_LENGTHS: usize = 5;
/// The share of a length's room that its bars take. The rest separates the lengths.
const BAR_SHARE: f64 = 0.8;
const MAX_BAR_WIDTH: f64 = 40.0;
/// The smallest height of a bar, so that one run beside thousands can be seen.
const MIN_BAR_HEIGHT: f64 = 1.5;
/// The opacity of the last of several bars of one transport. We chose 0.3 because such a bar is still
/// visible.
const LEAST_OPACITY: f64 = 0.3;

/// Draws the loss runs of `selection`. Returns `None` if the selection is empty. If no message is missing,
/// the chart has no drawing, and its caption says so.
pub(crate) fn loss_runs(selection: &Selection<FlowSeries<'_>>) -> Option<Chart> {
    if selection.series.is_empty() {
        return None;
    }
    let has_losses = |series: &&FlowSeries<'_>| series.flow.loss_runs.iter().any(|count| *count > 0);
    let (lossy, complete): (Vec<&FlowSeries<'_>>, Vec<&FlowSeries<'_>>) =
        selection.series.iter().partition(has_losses);
    let mut caption =
        "A run is so many consecutive messages that are all missing; a codec conceals a run of one or two frames, not of \
         ten."
            .to_owned();
    if !complete.is_empty() {
        let names: Vec<String> = complete.iter().map(|series| series.label.clone()).collect();
        caption.push_str(&format!(" Nothing is missing: {}.", list(&names)));
    }
    caption.push_str(&not_drawn_note(selection.not_drawn, "flows"));
    let id = format!("{}loss-runs", selection.id_prefix);
    let title = "Runs of missing messages";
    let bars = bars(&lossy);
    let svg = (!bars.is_empty()).then(|| {
        let names: Vec<&str> = lossy.iter().map(|series| series.label.as_str()).collect();
        let description = format!("Bars: how many runs of each length for {}.", names.join(", "));
        draw(&bars).finish(SvgName { id: &id, title, description: &description })
    });
    Some(Chart { legend: legend(&bars), title: title.to_owned(), svg, caption, id })
}

struct SeriesBars<'a> {
    name: &'a str,
    style: String,
    /// The number of runs of length 1, 2, 3, and so on. The entry behind [`MAX_LENGTH`] counts all longer
    /// runs.
    counts: Vec<u64>,
}

fn bars<'a>(series: &[&'a FlowSeries<'_>]) -> Vec<SeriesBars<'a>> {
    let bars = series.iter().zip(bar_styles(series)).map(|(series, style)| SeriesBars {
        name: &series.label,
        style,
        counts: count_by_length(&series.flow.loss_runs),
    });
    bars.collect()
}

fn count_by_length(loss_runs: &[u64]) -> Vec<u64> {
    let mut counts: Vec<u64> = loss_runs.iter().take(MAX_LENGTH).copied().collect();
    if loss_runs.len() > MAX_LENGTH {
        counts.push(loss_runs[MAX_LENGTH..].iter().sum());
    }
    counts
}

/// Returns the style of each series' bars. Bars have neither dashes nor markers, so several series of one
/// transport differ in their opacity: the first is solid, and each further one is fainter.
fn bar_styles(series: &[&FlowSeries<'_>]) -> Vec<String> {
    let transports: Vec<&str> = series.iter().map(|series| series.look.display.kind).collect();
    let mut styles = Vec::new();
    for (index, series) in series.iter().enumerate() {
        let count_equal = |transports: &[&str]| {
            transports.iter().filter(|transport| **transport == series.look.display.kind).count() as f64
        };
        let step = (1.0 - LEAST_OPACITY) / (count_equal(&transports) - 1.0).max(1.0);
        let opacity = 1.0 - step * count_equal(&transports[..index]);
        styles.push(format!("{};fill-opacity:{opacity:.2}", series.look.fill_style()));
    }
    styles
}

fn legend(bars: &[SeriesBars<'_>]) -> Vec<LegendEntry> {
    let entry = |bars: &SeriesBars<'_>| {
        let sample = Sample::shape(bars.style.clone(), "M1 2.5H27V11.5H1Z".to_owned());
        LegendEntry::new(bars.name, sample)
    };
    bars.iter().map(entry).collect()
}

fn draw(bars: &[SeriesBars<'_>]) -> Svg {
    let longest = bars.iter().map(|bars| bars.counts.len()).max().unwrap_or(0).max(MIN_LENGTHS);
    let highest_count = bars.iter().flat_map(|bars| &bars.counts).max().copied().unwrap_or(0).max(1);
    let panel = Panel {
        top: TOP,
        bottom: BOTTOM_EDGE,
        x: Scale::linear((0.5, longest as f64 + 0.5), X_RANGE),
        y: Scale::fitting((0.0, highest_count as f64), (BOTTOM_EDGE, TOP)),
    };
    let mut svg = Svg::new(WIDTH, BOTTOM_EDGE + BOTTOM);
    // More ticks than runs would be at fractions of a run.
    panel.draw_vertical_axis(&mut svg, highest_count.min(4) as usize, tick_label);
    panel.draw_horizontal_line(&mut svg, BOTTOM_EDGE);
    for length in 1..=longest {
        let label = if length > MAX_LENGTH { format!("{length}+") } else { length.to_string() };
        let point = (panel.x.at(length as f64), BOTTOM_EDGE + 18.0);
        svg.text(SvgText::centred_at(point, "tick", &label));
    }
    panel.draw_horizontal_title(&mut svg, "length of the run, messages");
    svg.vertical_axis_title(panel.span(), "runs");
    draw_bars(&mut svg, &panel, bars);
    svg
}

fn draw_bars(svg: &mut Svg, panel: &Panel, bars: &[SeriesBars<'_>]) {
    let length_width = panel.x.at(2.0) - panel.x.at(1.0);
    let bar_width = (BAR_SHARE * length_width / bars.len() as f64).min(MAX_BAR_WIDTH);
    for (index, SeriesBars { name, style, counts }) in bars.iter().enumerate() {
        let offset = (index as f64 - bars.len() as f64 / 2.0) * bar_width;
        for (length, count) in (1_u32..).zip(counts).filter(|(_, count)| **count > 0) {
            let top = panel.y.at(*count as f64).min(BOTTOM_EDGE - MIN_BAR_HEIGHT);
            svg.rect(&SvgRect {
                class: "bar",
                style,
                series: name,
                left: panel.x.at(f64::from(length)) + offset,
                top,
                width: bar_width - 1.0,
                height: BOTTOM_EDGE - top,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::display;
    use talkpath_measure::chart_data::FlowChartData;

    fn lossy_flow(name: &str, loss_runs: &[u64]) -> FlowChartData {
        FlowChartData {
            flow: name.to_owned(),
            transport: "udp".to_owned(),
            round_trip: false,
            ccdf: Vec::new(),
            delay: Vec::new(),
            losses: Vec::new(),
            loss_runs: loss_runs.to_vec(),
        }
    }

    fn udp_series(flow: &FlowChartData) -> FlowSeries<'_> {
        FlowSeries {
            label: format!("{}, udp", flow.flow),
            look: display("udp").into(),
            flow,
            limit_ms: Some(300.0),
            changes: &[],
        }
    }

    #[test]
    fn counts_are_labelled_with_whole_numbers() {
        for count in 1..=9 {
            let flow = lossy_flow("call", &[count]);
            let selection = Selection { series: vec![udp_series(&flow)], not_drawn: 0, id_prefix: "" };
            let svg = loss_runs(&selection).unwrap().svg.unwrap().into_string();
            assert!(!svg.contains(".5</text>"), "{count}: {svg}");
        }
    }

    #[test]
    fn bars_of_one_transport_differ_and_flows_without_bars_are_counted() {
        let flows: Vec<FlowChartData> = (1..=8).map(|n| lossy_flow(&format!("call-{n}"), &[3, 1])).collect();
        let mut series: Vec<FlowSeries<'_>> = flows.iter().map(udp_series).collect();
        series[7].look = display("tcp").into();
        let chart = loss_runs(&Selection { series, not_drawn: 4, id_prefix: "" }).unwrap();
        let caption = &chart.caption;
        assert!(caption.ends_with(" 4 more flows are not drawn; the tables have all."), "{caption}");
        let svg = chart.svg.unwrap().0;
        let bars = svg.split("<rect ").filter(|rect| rect.contains("class=\"bar\""));
        let styles: Vec<&str> =
            bars.map(|bar| bar.split_once("style=\"").unwrap().1.split_once('"').unwrap().0).collect();
        let mut distinct = styles.clone();
        distinct.dedup();
        assert_eq!((styles.len(), distinct.len()), (16, 8), "{styles:?}");
        assert!(styles[0].ends_with(":1.00") && styles[14].ends_with(":1.00"), "the first of each is solid");
        for (entry, style) in chart.legend.iter().zip(distinct) {
            assert!(format!("{:?}", entry.samples).contains(style), "{entry:?}");
        }
    }

    #[test]
    fn runs_longer_than_the_longest_bar_share_a_bar() {
        let mut loss_runs = vec![0; 40];
        (loss_runs[0], loss_runs[25], loss_runs[39]) = (7, 2, 1);
        let counts = count_by_length(&loss_runs);
        assert_eq!((counts.len(), counts[0], counts[MAX_LENGTH]), (MAX_LENGTH + 1, 7, 3));
    }
}
