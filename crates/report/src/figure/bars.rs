//! Runs of consecutive missing messages: how many of each length.

use super::{Entry, Figure, Sample, colour, left_out};
use crate::number::list;
use crate::plot::panel::{BOTTOM, LEFT, Panel, RIGHT, WIDTH};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Anchor, Svg};
use crate::select::{Selection, Series};

const TOP: f64 = 12.0;
const HEIGHT: f64 = 180.0;
/// Lengths with bars of their own; longer runs share the last bar. Chosen: what fits with a label each.
const MAX_LENGTH: usize = 20;

/// The figure; its caption says so if nothing is missing. `None` without series.
pub(crate) fn loss_runs(selection: &Selection<Series<'_>>) -> Option<Figure> {
    if selection.shown.is_empty() {
        return None;
    }
    let (lossy, whole): (Vec<&Series<'_>>, Vec<&Series<'_>>) =
        selection.shown.iter().partition(|series| series.flow.loss_runs.iter().any(|count| *count > 0));
    let names: Vec<String> = whole.iter().map(|series| series.label.clone()).collect();
    let mut caption =
        "A run is so many consecutive messages that are all missing; a codec conceals a run of one or two \
                       frames, not of ten."
            .to_owned();
    if !names.is_empty() {
        caption.push_str(&format!(" Nothing is missing: {}.", list(&names)));
    }
    caption.push_str(&left_out(selection.left_out, "flows"));
    let id = format!("{}loss-runs", selection.id);
    let title = "Runs of missing messages".to_owned();
    if lossy.is_empty() {
        return Some(Figure { id, title, legend: Vec::new(), svg: None, caption });
    }
    let counts: Vec<Vec<u64>> = lossy.iter().map(|series| binned(&series.flow.loss_runs)).collect();
    let styles = styles(&lossy);
    let sample = |(series, style): (&&Series<'_>, &String)| {
        Entry::new(&series.label, Sample::shape(style.clone(), "M1 2.5H27V11.5H1Z".to_owned()))
    };
    let legend = lossy.iter().zip(&styles).map(sample).collect();
    let described: Vec<&str> = lossy.iter().map(|series| series.label.as_str()).collect();
    let description = format!("Bars: how many runs of each length for {}.", described.join(", "));
    let svg = draw(&lossy, &styles, &counts).finish(&id, "Runs of missing messages", &description);
    Some(Figure { id, title, legend, svg: Some(svg), caption })
}

/// Counts by length, those past `MAX_LENGTH` together.
fn binned(histogram: &[u64]) -> Vec<u64> {
    let mut bins: Vec<u64> = histogram.iter().take(MAX_LENGTH).copied().collect();
    if histogram.len() > MAX_LENGTH {
        bins.push(histogram[MAX_LENGTH..].iter().sum());
    }
    bins
}

/// A bar's `style`: the colour of its transport, and of several series with one transport the first solid and
/// each further one fainter. Bars have no dash and no marker.
fn styles(lossy: &[&Series<'_>]) -> Vec<String> {
    let kinds: Vec<&str> = lossy.iter().map(|series| series.look.display.kind).collect();
    let style = |(index, series): (usize, &&Series<'_>)| {
        let own = series.look.display.kind;
        let same = |kinds: &[&str]| kinds.iter().filter(|kind| **kind == own).count() as f64;
        let step = (1.0 - FAINTEST) / (same(&kinds) - 1.0).max(1.0);
        format!("fill:{};fill-opacity:{:.2}", colour(series.look), 1.0 - step * same(&kinds[..index]))
    };
    lossy.iter().enumerate().map(style).collect()
}

/// Opacity; chosen: a bar that is still visible on the page.
const FAINTEST: f64 = 0.3;

fn draw(lossy: &[&Series<'_>], styles: &[String], counts: &[Vec<u64>]) -> Svg {
    let bottom = TOP + HEIGHT;
    let lengths = counts.iter().map(Vec::len).max().unwrap_or(1).max(5);
    let most = counts.iter().flatten().max().copied().unwrap_or(1).max(1);
    let x = Scale::linear((0.5, lengths as f64 + 0.5), (LEFT, WIDTH - RIGHT));
    let y = Scale::fitting((0.0, most as f64), (bottom, TOP));
    let panel = Panel { top: TOP, bottom, x, y };
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    // There is no half a run.
    panel.vertical_axis(&mut svg, most.min(4) as usize, tick_label);
    svg.line("axis", (LEFT, bottom), (WIDTH - RIGHT, bottom));
    for length in 1..=lengths {
        let name = if length > MAX_LENGTH { format!("{length}+") } else { length.to_string() };
        svg.text("tick", "", (panel.x.at(length as f64), bottom + 18.0), Anchor::Middle, &name);
    }
    svg.text("title", "", (LEFT, bottom + 38.0), Anchor::Start, "length of the run, messages");
    svg.vertical_title((TOP, bottom), "runs");
    // A fifth of each length's room stays free between neighbours.
    let room = 0.8 * (panel.x.at(2.0) - panel.x.at(1.0));
    let width = (room / lossy.len() as f64).min(40.0);
    for (index, ((series, style), counts)) in lossy.iter().zip(styles).zip(counts).enumerate() {
        for (length, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let middle = panel.x.at(length as f64 + 1.0);
            let left = middle + (index as f64 - lossy.len() as f64 / 2.0) * width;
            let top = panel.y.at(*count as f64).min(bottom - 1.5);
            svg.rect("bar", style, &series.label, (left, top), (width - 1.0, bottom - top));
        }
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::display;
    use talkpath_measure::chart_data::FlowFigures;

    fn lossy(name: &str, loss_runs: &[u64]) -> FlowFigures {
        FlowFigures {
            flow: name.to_owned(),
            transport: "udp".to_owned(),
            round_trip: false,
            ccdf: Vec::new(),
            delay: Vec::new(),
            losses: Vec::new(),
            loss_runs: loss_runs.to_vec(),
        }
    }

    fn over<'a>(transport: &str, flow: &'a FlowFigures) -> Series<'a> {
        Series {
            label: format!("{}, {transport}", flow.flow),
            look: display(transport).into(),
            flow,
            changes: &[],
        }
    }

    #[test]
    fn counts_are_labelled_with_whole_numbers() {
        for most in 1..=9 {
            let flow = lossy("call", &[most]);
            let series = over("udp", &flow);
            let svg = draw(&[&series], &[String::new()], &[vec![most]]);
            let svg = svg.finish("id", "title", "description").into_string();
            assert!(!svg.contains(".5</text>"), "{most}: {svg}");
        }
    }

    #[test]
    fn bars_of_one_transport_differ_and_what_is_not_drawn_is_counted() {
        let flows: Vec<FlowFigures> = (1..=8).map(|n| lossy(&format!("call-{n}"), &[3, 1])).collect();
        let mut shown: Vec<Series<'_>> = flows.iter().map(|flow| over("udp", flow)).collect();
        shown[7].look = display("tcp").into();
        let figure = loss_runs(&Selection { shown, left_out: 4, id: "" }).unwrap();
        assert!(
            figure.caption.ends_with(" 4 more flows are not drawn; the tables have all."),
            "{}",
            figure.caption
        );
        let svg = figure.svg.unwrap().0;
        let bars = svg.split("<rect ").filter(|it| it.contains("class=\"bar\""));
        let styles: Vec<&str> =
            bars.map(|bar| bar.split_once("style=\"").unwrap().1.split_once('"').unwrap().0).collect();
        let mut different = styles.clone();
        different.dedup();
        assert_eq!((styles.len(), different.len()), (16, 8), "{styles:?}");
        assert!(styles[0].ends_with(":1.00") && styles[14].ends_with(":1.00"), "the first of each is solid");
        for (entry, style) in figure.legend.iter().zip(different) {
            assert!(format!("{:?}", entry.samples).contains(style), "{entry:?}");
        }
    }

    #[test]
    fn runs_too_long_for_a_bar_of_their_own_share_one() {
        let mut histogram = vec![0; 40];
        (histogram[0], histogram[25], histogram[39]) = (7, 2, 1);
        let bins = binned(&histogram);
        assert_eq!((bins.len(), bins[0], bins[MAX_LENGTH]), (MAX_LENGTH + 1, 7, 3));
    }
}
