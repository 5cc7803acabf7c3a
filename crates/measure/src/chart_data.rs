//! Computes the points of the report's charts, so that the report only draws.
//!
//! Charts show the messages that were due in the window, as the table beside them does. Lines over time run
//! from the start of the run to its end. A run may have millions of messages, so each list of points is
//! *thinned*: the points that a reader can see are kept, such as the extremes and the tail.
//!
//! Begin to read with [`cell_chart_data`].

use core::ops::Range;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use talkpath_units::{Instant, SignedDuration};

use crate::metrics::{delay, histogram, loss};
use crate::{Fate, FlowRecord, FlowTally, RunRecord, Series, SeriesKind};

/// How many copies of a flow are drawn. We chose 8, because a page draws at most eight lines in a panel.
pub const MAX_COPIES: usize = 8;

/// How many lines of the same kind are kept. We chose 8 here, too, although a panel over time has at most
/// four lines.
pub const MAX_LINES: usize = 8;

/// How many points a distribution has. We chose 400, because the curve is then smooth at the width of a page.
const MAX_CCDF_POINTS: usize = 400;

/// How many points a chart over time has. We chose 1,500, which is about one for each pixel across a page.
const MAX_POINTS: usize = 1_500;

/// How many steps the goodput has over the whole run. We chose 100. In a run of a minute a step is then 0.6
/// s, in which a call sends 30 frames.
const GOODPUT_STEPS: usize = 100;

/// The kind of the lines that show the goodput.
const GOODPUT: &str = "goodput";

/// The payload of a full packet on Ethernet, bytes.
const MAX_PACKET: f64 = 1_500.0;

/// The chart data of one flow of one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowChartData {
    /// The name of the flow.
    pub flow: String,
    /// The transport as the user wrote it. The report has one table of names and colours for it.
    pub transport: String,
    /// Whether `delay` and `ccdf` are round trips, because the flow has an echo. Otherwise they are one way.
    pub round_trip: bool,
    /// The complementary distribution of the delays, as points of the delay in ms and the share of messages
    /// with a larger delay or none. The share does not fall to 0 if messages are missing.
    pub ccdf: Vec<(f64, f64)>,
    /// The delays over time, as points of the due time in s and the delay in ms.
    pub delay: Vec<(f64, f64)>,
    /// The due times of missing messages, s.
    pub losses: Vec<f64>,
    /// How many runs of missing messages have the length 1, 2, 3 and so on.
    pub loss_runs: Vec<u64>,
}

/// A line over time. Its value holds from each point to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepLine {
    /// The name of the flow or link.
    pub entity: String,
    /// The name of the quantity: `cwnd`, `queue_delay`, `goodput` and so on.
    pub kind: String,
    /// Points of the time in s and the value.
    pub points: Vec<(f64, f64)>,
}

/// The chart data of one repetition of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellChartData {
    /// The index of the cell in the sweep.
    pub cell: u64,
    /// The number of the repetition. Versions that did not write it drew the first one, 0.
    #[serde(default)]
    pub repetition: u64,
    /// What distinguishes this cell from the others in a legend: `udp`, `loss 0.01`. Empty without a sweep.
    pub label: String,
    /// The flows. At most [`MAX_COPIES`] copies of the same flow are kept.
    pub flows: Vec<FlowChartData>,
    /// Lines of cwnd, queueing delay, send buffer and goodput (bits per second), at most [`MAX_LINES`] of
    /// each kind.
    pub lines: Vec<StepLine>,
    /// How many lines of each kind are left out.
    #[serde(default)]
    pub more_lines: BTreeMap<String, u64>,
}

/// Computes the chart data of one repetition. `label` distinguishes its cell from the others.
pub fn cell_chart_data(record: &RunRecord, label: &str) -> CellChartData {
    let mut lines = LinesByKind::default();
    for series in record.series.iter().filter(|series| is_drawn(series.kind)) {
        lines.add(series.kind.name(), || Some(step_line(series)));
    }
    for flow in record.flows.iter().filter(|flow| has_goodput(flow)) {
        lines.add(GOODPUT, || goodput_line(flow, record.window_end));
    }

    let window = record.window_start..record.window_end;
    let mut copies_of_flow: BTreeMap<&str, usize> = BTreeMap::new();
    let mut flows = Vec::new();
    for flow in &record.flows {
        let copies = copies_of_flow.entry(&flow.info.group).or_default();
        *copies += 1;
        if *copies <= MAX_COPIES {
            flows.push(flow_chart_data(flow, &window));
        }
    }
    CellChartData {
        cell: record.cell,
        repetition: record.repetition,
        label: label.to_owned(),
        flows,
        lines: lines.lines,
        more_lines: lines.left_out,
    }
}

/// Collects the first [`MAX_LINES`] lines of each kind, and counts the others.
#[derive(Default)]
struct LinesByKind<'a> {
    lines: Vec<StepLine>,
    kept: BTreeMap<&'a str, usize>,
    left_out: BTreeMap<String, u64>,
}

impl<'a> LinesByKind<'a> {
    /// Adds the line that `make_line` returns, if there is room. A line that is left out is not computed.
    fn add(&mut self, kind: &'a str, make_line: impl FnOnce() -> Option<StepLine>) {
        let kept = self.kept.entry(kind).or_default();
        if *kept >= MAX_LINES {
            *self.left_out.entry(kind.to_owned()).or_default() += 1;
        } else if let Some(line) = make_line() {
            *kept += 1;
            self.lines.push(line);
        }
    }
}

/// Returns whether the report draws a quantity.
fn is_drawn(kind: SeriesKind) -> bool {
    match kind {
        SeriesKind::Cwnd | SeriesKind::QueueDelay | SeriesKind::SendBuffer => true,
        SeriesKind::Queue
        | SeriesKind::Ssthresh
        | SeriesKind::Srtt
        | SeriesKind::Rto
        | SeriesKind::PacingRate
        | SeriesKind::BottleneckRate
        | SeriesKind::Pto
        | SeriesKind::BytesInFlight
        | SeriesKind::LostPackets => false,
    }
}

fn step_line(series: &Series) -> StepLine {
    StepLine {
        entity: series.entity.clone(),
        kind: series.kind.name().to_owned(),
        points: thin_over_time(&series.points, Kept::ExtremesAndLast),
    }
}

/// A message that arrived. Times are in seconds.
struct Delivery {
    received_s: f64,
    due_s: f64,
    bytes: f64,
}

/// Returns the payload that the forward leg delivered, in bits per second. The time from the start to `end`
/// is cut into [`GOODPUT_STEPS`] equal steps, and each point is the mean over a step. Returns `None` if
/// nobody knows when messages arrived.
fn goodput_line(flow: &FlowRecord, end: Instant) -> Option<StepLine> {
    let step_s = end.as_secs_f64() / GOODPUT_STEPS as f64;
    let deliveries = deliveries(flow);
    if deliveries.is_empty() || step_s <= 0.0 {
        return None;
    }
    let mut points = Vec::with_capacity(GOODPUT_STEPS);
    for (step, bytes) in bytes_in_each_step(&deliveries, step_s).into_iter().enumerate() {
        points.push((step as f64 * step_s, bytes * 8.0 / step_s));
    }
    Some(StepLine { entity: flow.info.name.clone(), kind: GOODPUT.to_owned(), points })
}

/// Returns whether [`deliveries`] finds any.
fn has_goodput(flow: &FlowRecord) -> bool {
    flow.forward.messages.iter().any(|row| row.fate == Fate::Delivered && row.received.is_some())
}

/// Returns the deliveries of the forward leg in the order of their arrival.
fn deliveries(flow: &FlowRecord) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for row in &flow.forward.messages {
        if row.fate == Fate::Delivered
            && let Some(received) = row.received
        {
            deliveries.push(Delivery {
                received_s: received.as_secs_f64(),
                due_s: row.due.as_secs_f64(),
                bytes: row.size.get() as f64,
            });
        }
    }
    deliveries.sort_by(|a, b| a.received_s.total_cmp(&b.received_s));
    deliveries
}

/// Returns how many bytes arrived in each step. A message of more than one packet arrives bit by bit, so its
/// bytes are spread evenly over the time since the arrival before, or since its due time if it is the first.
fn bytes_in_each_step(deliveries: &[Delivery], step_s: f64) -> Vec<f64> {
    let mut bytes_of_step = vec![0.0; GOODPUT_STEPS];
    let mut previous_arrival_s = deliveries.first().map_or(0.0, |delivery| delivery.due_s);
    for &Delivery { received_s: end_s, bytes, .. } in deliveries {
        let start_s = if bytes > MAX_PACKET { previous_arrival_s.min(end_s) } else { end_s };
        let (first_step, last_step) = ((start_s / step_s) as usize, (end_s / step_s) as usize);
        let steps = bytes_of_step.iter_mut().enumerate().take(last_step.saturating_add(1)).skip(first_step);
        for (step, bytes_of_step) in steps {
            let in_step_s = end_s.min((step + 1) as f64 * step_s) - start_s.max(step as f64 * step_s);
            *bytes_of_step += if end_s > start_s { bytes * in_step_s / (end_s - start_s) } else { bytes };
        }
        previous_arrival_s = end_s;
    }
    bytes_of_step
}

fn flow_chart_data(flow: &FlowRecord, window: &Range<Instant>) -> FlowChartData {
    if let Some(tally) = &flow.tally {
        return tally_chart_data(flow, tally);
    }
    let trips = flow.trips(window);
    let round_trip = flow.echo.is_some();
    let counts = loss::LossCounts::of(&trips);
    let (mut ccdf, mut delays) = (Vec::new(), Vec::new());
    // If the clocks of the two ends cannot be compared, one-way delays are not shown.
    if round_trip || flow.info.clock_trusted {
        ccdf = complementary(&delay::sorted_delays(&trips), counts.sent - counts.unfinished);
        let delays_over_time: Vec<(Instant, f64)> =
            trips.iter().filter_map(|trip| Some((trip.due, trip.delay()?.as_millis_f64()))).collect();
        delays = thin_over_time(&delays_over_time, Kept::Extremes);
    }
    let losses: Vec<Instant> = trips.iter().filter(|trip| trip.is_missing()).map(|trip| trip.due).collect();
    FlowChartData {
        flow: flow.info.name.clone(),
        transport: flow.info.transport.clone(),
        round_trip,
        ccdf,
        delay: delays,
        losses: thin_evenly(&losses, MAX_POINTS).into_iter().map(Instant::as_secs_f64).collect(),
        loss_runs: loss::runs(&trips).histogram,
    }
}

/// Returns the chart data of a flow without rows. There are no points over time, because only rows have
/// times.
fn tally_chart_data(flow: &FlowRecord, tally: &FlowTally) -> FlowChartData {
    let delays = tally.round_trip.as_ref().unwrap_or(&tally.one_way);
    let points = histogram::complementary(delays, tally.trips.counts.sent - tally.trips.counts.unfinished);
    FlowChartData {
        flow: flow.info.name.clone(),
        transport: flow.info.transport.clone(),
        round_trip: tally.round_trip.is_some(),
        ccdf: thinned_ranks(points.len(), MAX_CCDF_POINTS).into_iter().map(|rank| points[rank]).collect(),
        delay: Vec::new(),
        losses: Vec::new(),
        loss_runs: tally.trips.loss_runs.clone().finish().histogram,
    }
}

/// Returns the complementary distribution of `sorted_delays`. `decided` is the number of messages that
/// arrived or are missing, so those without a delay count as later than any delay.
fn complementary(sorted_delays: &[SignedDuration], decided: u64) -> Vec<(f64, f64)> {
    let point = |rank: usize| {
        let later = decided.saturating_sub(rank as u64 + 1);
        (sorted_delays[rank].as_millis_f64(), later as f64 / decided as f64)
    };
    thinned_ranks(sorted_delays.len(), MAX_CCDF_POINTS).into_iter().map(point).collect()
}

/// Returns up to `limit` ranks below `count` in ascending order. One half is spaced evenly, for the body of a
/// distribution. The other half is spaced evenly in the logarithm of the distance from the end, for the tail.
/// The first and the last rank are always included.
fn thinned_ranks(count: usize, limit: usize) -> Vec<usize> {
    if count <= limit {
        return (0..count).collect();
    }
    let half = limit / 2;
    let last_step = half - 1;
    let body = (0..half).map(|step| step * (count - 1) / last_step);
    let tail = (0..half).map(|step| {
        let from_end = libm::pow(count as f64, step as f64 / last_step as f64);
        count.saturating_sub(from_end as usize)
    });
    let mut ranks: Vec<usize> = body.chain(tail).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// Returns at most `limit` of the values, spaced evenly.
fn thin_evenly<T: Copy>(values: &[T], limit: usize) -> Vec<T> {
    if values.len() <= limit {
        return values.to_vec();
    }
    (0..limit).map(|step| values[step * (values.len() - 1) / (limit - 1)]).collect()
}

/// Which points are kept of each span of time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// The smallest and the largest value.
    Extremes,
    /// The extremes, and the last value, which holds until the next span.
    ExtremesAndLast,
}

impl Kept {
    const fn points_per_span(self) -> usize {
        match self {
            Self::Extremes => 2,
            Self::ExtremesAndLast => 3,
        }
    }
}

/// Thins points of a time and a value to at most [`MAX_POINTS`]. Time is cut into equal spans, and `kept`
/// says which points of each span are kept. Points that already fit stay as they are. Returns times in s.
fn thin_over_time(points: &[(Instant, f64)], kept: Kept) -> Vec<(f64, f64)> {
    let in_seconds = |&(at, value): &(Instant, f64)| (at.as_secs_f64(), value);
    let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) else { return Vec::new() };
    let span_count = MAX_POINTS / kept.points_per_span();
    if points.len() <= span_count * kept.points_per_span() {
        return points.iter().map(in_seconds).collect();
    }
    // The product of a time in nanoseconds and the number of spans may need more than 64 bits.
    let (total_ns, span_count) = (u128::from(last.since(*first).as_nanos()) + 1, span_count as u128);
    let since_first_ns = |point: &(Instant, f64)| u128::from(point.0.since(*first).as_nanos());
    let mut thinned = Vec::with_capacity(MAX_POINTS);
    let mut start = 0;
    while start < points.len() {
        // The bounds of a span are computed once, because a division for each point would take most of the
        // time.
        let span = since_first_ns(&points[start]) * span_count / total_ns;
        let bounds = (span * total_ns).div_ceil(span_count)..((span + 1) * total_ns).div_ceil(span_count);
        let length =
            points[start..].iter().take_while(|point| bounds.contains(&since_first_ns(point))).count();
        let points_of_span = &points[start..start + length];
        start += length;
        thinned.extend(
            kept_of_span(points_of_span, kept).into_iter().map(|index| in_seconds(&points_of_span[index])),
        );
    }
    thinned
}

/// Returns the indices of the points that are kept, in the order of time.
fn kept_of_span(points: &[(Instant, f64)], kept: Kept) -> Vec<usize> {
    let by_value = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
    let indices = 0..points.len();
    let mut kept_indices = Vec::with_capacity(kept.points_per_span());
    kept_indices.extend(indices.clone().min_by(by_value));
    kept_indices.extend(indices.clone().max_by(by_value));
    if kept == Kept::ExtremesAndLast {
        kept_indices.extend(indices.last());
    }
    kept_indices.sort_unstable();
    kept_indices.dedup();
    kept_indices
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_units::Bytes;

    use crate::testing::{flow, ms, run};

    #[test]
    fn the_distribution_ends_at_the_share_of_missing_messages() {
        let data = cell_chart_data(&run(vec![flow(&[Some(20), None, Some(10), Some(40)])]), "udp");
        assert_eq!(data.label, "udp");
        let flow = &data.flows[0];
        assert_eq!(flow.ccdf, [(10.0, 0.75), (20.0, 0.5), (40.0, 0.25)]);
        assert_eq!(flow.delay, [(0.0, 20.0), (0.04, 10.0), (0.06, 40.0)]);
        assert_eq!(flow.losses, [0.02]);
        assert_eq!(flow.loss_runs, [1]);
    }

    #[test]
    fn one_way_delays_off_an_untrusted_clock_are_not_drawn() {
        let mut flow = flow(&[Some(20), None]);
        flow.info.clock_trusted = false;
        let data = cell_chart_data(&run(vec![flow]), "");
        assert!(data.flows[0].ccdf.is_empty() && data.flows[0].delay.is_empty());
        assert_eq!(data.flows[0].losses.len(), 1);
    }

    #[test]
    fn thinning_by_rank_keeps_the_ends_and_the_last_messages_of_the_tail() {
        let indices = thinned_ranks(100_000, 400);
        assert!(indices.len() <= 400 && indices.len() > 300, "{}", indices.len());
        assert_eq!(indices.first(), Some(&0));
        assert!((99_990..100_000).all(|index| indices.contains(&index)));
        assert_eq!(thinned_ranks(3, 400), [0, 1, 2]);
    }

    #[test]
    fn thinning_over_time_keeps_the_extremes_of_each_span() {
        let mut points: Vec<_> = (0..50_000).map(|step| (ms(step), (step % 7) as f64)).collect();
        points[12_345].1 = 99.0;
        let thinned = thin_over_time(&points, Kept::Extremes);
        assert!(thinned.len() <= 1_500 && thinned.len() > 1_400, "{}", thinned.len());
        assert!(thinned.contains(&(12.345, 99.0)));
        assert!(thinned.is_sorted_by(|a, b| a.0 < b.0));
        let steps = thin_over_time(&points, Kept::ExtremesAndLast);
        assert!(steps.len() <= 1_500);
        assert_eq!(steps.last(), Some(&(49.999, f64::from(49_999 % 7))));
        assert_eq!(thin_evenly(&points, 1_500).len(), 1_500);
    }

    #[test]
    fn goodput_is_the_mean_over_each_hundredth_of_the_time() {
        // 160 B in the first 0.6 s, two frames in the second, and one that never comes.
        let mut delays = vec![None; 40];
        (delays[0], delays[31], delays[32]) = (Some(20), Some(20), Some(20));
        let lines = cell_chart_data(&run(vec![flow(&delays)]), "").lines;
        let line = &lines[0];
        assert_eq!((line.entity.as_str(), line.kind.as_str(), line.points.len()), ("call", "goodput", 100));
        for (point, frames) in line.points[..3].iter().zip([1.0, 2.0, 0.0]) {
            assert!((point.1 - frames * 160.0 * 8.0 / 0.6).abs() < 1e-6, "{point:?}");
        }
    }

    #[test]
    fn a_large_message_counts_over_the_time_that_it_took() {
        let mut large = flow(&[Some(1_500)]);
        large.forward.messages[0].size = Bytes::new(75_000);
        let lines = cell_chart_data(&run(vec![large]), "").lines;
        let points = &lines[0].points;
        // 600 kbit within 1.5 s: 400 kb/s over two whole steps and a half.
        for (point, bps) in points[..4].iter().zip([4e5, 4e5, 2e5, 0.0]) {
            assert!((point.1 - bps).abs() < 1e-3, "{point:?}");
        }
    }

    #[test]
    fn only_a_quantity_that_the_report_draws_becomes_a_line() {
        let mut record = run(vec![]);
        let series = |kind| Series { entity: "up".to_owned(), kind, points: vec![(ms(500), 3.0)] };
        record.series = vec![series(SeriesKind::Srtt), series(SeriesKind::QueueDelay)];
        let lines = cell_chart_data(&record, "").lines;
        assert_eq!(lines.len(), 1);
        assert_eq!((lines[0].kind.as_str(), lines[0].points.as_slice()), ("queue_delay", &[(0.5, 3.0)][..]));
    }
}
