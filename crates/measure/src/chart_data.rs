//! What the report draws, computed here so that the report only draws.

use core::ops::Range;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use talkpath_units::{Instant, SignedDuration};

use crate::metrics::{delay, histogram, loss};
use crate::{Fate, FlowRecord, FlowTally, RunRecord, Series, SeriesKind};

/// Everything drawn about one flow of one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowFigures {
    /// Flow name.
    pub flow: String,
    /// Transport as the user wrote it; names and colours come from the report's one table.
    pub transport: String,
    /// Whether `delay` and `cdf` are round trips (an echo flow) or one way.
    pub round_trip: bool,
    /// Complementary distribution: (delay in ms, share of sent messages later than that or never), thinned to
    /// at most 400 points spaced by rank so that the tail keeps its last messages. Loss stays as the floor.
    pub ccdf: Vec<(f64, f64)>,
    /// (due in s, delay in ms) thinned to at most 1,500 points: the minimum and the maximum of each time
    /// bucket.
    pub delay: Vec<(f64, f64)>,
    /// Due times in s of missing messages, at most 1,500.
    pub losses: Vec<f64>,
    /// How many runs of length 1, 2, 3, ...
    pub loss_runs: Vec<u64>,
}

/// A step line over time: (time in s, value), thinned to at most 1,500 points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepLine {
    /// Flow or link.
    pub entity: String,
    /// `cwnd`, `queue_delay`, ...
    pub kind: String,
    /// Steps.
    pub points: Vec<(f64, f64)>,
}

/// Everything drawn about one repetition of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellFigures {
    /// Index in the sweep.
    pub cell: u64,
    /// Which repetition it is; before it was kept it was always the first, 0.
    #[serde(default)]
    pub repetition: u64,
    /// What distinguishes this cell from the others, for a legend: `udp`, `loss 0.01`; empty without a sweep.
    pub label: String,
    /// By flow; of a flow with copies the first [`MAX_COPIES`].
    pub flows: Vec<FlowFigures>,
    /// cwnd, queueing delay, send buffer, goodput (bits a second): of each the first [`MAX_LINES`].
    pub lines: Vec<StepLine>,
    /// How many lines of a kind there are beyond those.
    #[serde(default)]
    pub more_lines: BTreeMap<String, u64>,
}

/// Chosen: a page draws at most eight lines in a panel.
pub const MAX_COPIES: usize = 8;

/// Chosen likewise: a page draws at most four lines of flows or links in a panel over time.
pub const MAX_LINES: usize = 8;

/// What the report draws of one repetition; `label` distinguishes its cell from the others.
///
/// Only messages due in the window are drawn, so that a figure and the table beside it speak of the same
/// messages; lines run from the start to the end.
pub fn figures(record: &RunRecord, label: &str) -> CellFigures {
    let window = record.window_start..record.window_end;
    let mut lines = Lines::default();
    for series in record.series.iter().filter(|series| is_drawn(series.kind)) {
        lines.add(series.kind.name(), || Some(step_line(series)));
    }
    for flow in record.flows.iter().filter(|flow| has_goodput(flow)) {
        lines.add(GOODPUT, || goodput(flow, record.window_end));
    }
    let mut copies: BTreeMap<&str, usize> = BTreeMap::new();
    let mut flows = Vec::new();
    for flow in &record.flows {
        let seen = copies.entry(&flow.info.group).or_default();
        *seen += 1;
        if *seen <= MAX_COPIES {
            flows.push(flow_figures(flow, &window));
        }
    }
    CellFigures {
        cell: record.cell,
        repetition: record.repetition,
        label: label.to_owned(),
        flows,
        lines: lines.lines,
        more_lines: lines.more,
    }
}

/// The first lines of each kind; the others are counted and not made.
#[derive(Default)]
struct Lines<'a> {
    lines: Vec<StepLine>,
    kept: BTreeMap<&'a str, usize>,
    more: BTreeMap<String, u64>,
}

impl<'a> Lines<'a> {
    fn add(&mut self, kind: &'a str, line: impl FnOnce() -> Option<StepLine>) {
        let kept = self.kept.entry(kind).or_default();
        if *kept < MAX_LINES {
            let line = line();
            *kept += usize::from(line.is_some());
            self.lines.extend(line);
        } else {
            *self.more.entry(kind.to_owned()).or_default() += 1;
        }
    }
}

/// Payload bits a second that the forward leg delivered, as the mean over each of [`GOODPUT_STEPS`] equal
/// spans from the start to `end`. A message that fills more than a packet came bit by bit: it counts evenly
/// over the time since the one before it, the first since it was due. `None` if no delivery has a place in
/// time.
fn goodput(flow: &FlowRecord, end: Instant) -> Option<StepLine> {
    let span = end.as_secs_f64() / GOODPUT_STEPS as f64;
    let delivered = flow.forward.messages.iter().filter(|row| row.fate == Fate::Delivered);
    let mut delivered: Vec<(f64, f64, f64)> = delivered
        .filter_map(|row| Some((row.received?.as_secs_f64(), row.due.as_secs_f64(), row.size.get() as f64)))
        .collect();
    delivered.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut before = delivered.first()?.1;
    if span <= 0.0 {
        return None;
    }
    let mut bytes = vec![0.0; GOODPUT_STEPS];
    for (at, _, size) in delivered {
        let last = (at / span) as usize;
        let from = if size > MAX_PACKET { before.min(at) } else { at };
        let first = (from / span) as usize;
        for (step, bytes) in bytes.iter_mut().enumerate().take(last.saturating_add(1)).skip(first) {
            let within = at.min((step + 1) as f64 * span) - from.max(step as f64 * span);
            *bytes += if at > from { size * within / (at - from) } else { size };
        }
        before = at;
    }
    let point = |(step, bytes): (usize, f64)| (step as f64 * span, bytes * 8.0 / span);
    Some(StepLine {
        entity: flow.info.name.clone(),
        kind: GOODPUT.to_owned(),
        points: bytes.into_iter().enumerate().map(point).collect(),
    })
}

/// Whether [`goodput`] finds a delivery with a place in time.
fn has_goodput(flow: &FlowRecord) -> bool {
    flow.forward.messages.iter().any(|row| row.fate == Fate::Delivered && row.received.is_some())
}

/// The kind of [`goodput`]'s lines.
const GOODPUT: &str = "goodput";

fn flow_figures(flow: &FlowRecord, window: &Range<Instant>) -> FlowFigures {
    if let Some(tally) = &flow.tally {
        return tally_figures(flow, tally);
    }
    let trips = flow.trips(window);
    let round_trip = flow.echo.is_some();
    let counts = loss::LossCounts::of(&trips);
    let (mut ccdf, mut delays) = (Vec::new(), Vec::new());
    // One-way delays off a clock that is not trusted are not shown.
    if round_trip || flow.info.clock_trusted {
        ccdf = complementary(&delay::sorted_delays(&trips), counts.sent - counts.unfinished);
        let points: Vec<_> =
            trips.iter().filter_map(|trip| Some((trip.due, trip.delay()?.as_millis_f64()))).collect();
        delays = thin_extremes(&points, MAX_POINTS / 2, false);
    }
    let losses: Vec<_> = trips.iter().filter(|trip| trip.is_missing()).map(|trip| trip.due).collect();
    FlowFigures {
        flow: flow.info.name.clone(),
        transport: flow.info.transport.clone(),
        round_trip,
        ccdf,
        delay: delays,
        losses: thin_evenly(&losses, MAX_POINTS).into_iter().map(Instant::as_secs_f64).collect(),
        loss_runs: loss::runs(&trips).histogram,
    }
}

/// Without rows there is a distribution, and no delay or loss has a place in time.
fn tally_figures(flow: &FlowRecord, tally: &FlowTally) -> FlowFigures {
    let delays = tally.round_trip.as_ref().unwrap_or(&tally.one_way);
    let points = histogram::complementary(delays, tally.trips.counts.sent - tally.trips.counts.unfinished);
    FlowFigures {
        flow: flow.info.name.clone(),
        transport: flow.info.transport.clone(),
        round_trip: tally.round_trip.is_some(),
        ccdf: ranks(points.len(), MAX_CCDF_POINTS).into_iter().map(|index| points[index]).collect(),
        delay: Vec::new(),
        losses: Vec::new(),
        loss_runs: tally.trips.loss_runs.clone().finish().histogram,
    }
}

/// (delay, share of the `decided` messages later than that or never), thinned by rank.
fn complementary(sorted: &[SignedDuration], decided: u64) -> Vec<(f64, f64)> {
    let point = |index: usize| {
        let later = decided.saturating_sub(index as u64 + 1);
        (sorted[index].as_millis_f64(), later as f64 / decided as f64)
    };
    ranks(sorted.len(), MAX_CCDF_POINTS).into_iter().map(point).collect()
}

/// Up to `limit` indices below `count`, ascending: half of them even in rank, for the body, and half even in
/// the logarithm of the rank from the end, for the tail. The first and the last are always among them.
fn ranks(count: usize, limit: usize) -> Vec<usize> {
    if count <= limit {
        return (0..count).collect();
    }
    let half = limit / 2;
    let steps = (half - 1) as f64;
    let body = (0..half).map(|step| step * (count - 1) / (half - 1));
    let tail = (0..half).map(|step| {
        let from_end = libm::pow(count as f64, step as f64 / steps);
        count.saturating_sub(from_end as usize)
    });
    let mut indices: Vec<_> = body.chain(tail).collect();
    indices.sort_unstable();
    indices.dedup();
    indices
}

fn thin_evenly<T: Copy>(values: &[T], limit: usize) -> Vec<T> {
    if values.len() <= limit {
        return values.to_vec();
    }
    (0..limit).map(|step| values[step * (values.len() - 1) / (limit - 1)]).collect()
}

/// (time in s, value): of each of `buckets` equal spans of time the smallest and the largest value, and the
/// last value if `keep_last`. Points that already fit stay as they are.
fn thin_extremes(points: &[(Instant, f64)], buckets: usize, keep_last: bool) -> Vec<(f64, f64)> {
    let seconds = |&(at, value): &(Instant, f64)| (at.as_secs_f64(), value);
    let per_bucket = if keep_last { 3 } else { 2 };
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    if points.len() <= buckets * per_bucket {
        return points.iter().map(seconds).collect();
    }
    let (span, count) = (u128::from(last.0.since(first.0).as_nanos()) + 1, buckets as u128);
    let since_first = |point: &(Instant, f64)| u128::from(point.0.since(first.0).as_nanos());
    let by_value = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
    let mut thinned = Vec::with_capacity(buckets * per_bucket);
    let mut start = 0;
    while start < points.len() {
        // Where a bucket begins and ends is found once: a division for each point takes longer than all else.
        let bucket = since_first(&points[start]) * count / span;
        let within = (bucket * span).div_ceil(count)..((bucket + 1) * span).div_ceil(count);
        let others = points[start..].iter().take_while(|point| within.contains(&since_first(point)));
        let range = start..start + others.count();
        start = range.end;
        let last = if keep_last { range.clone().last() } else { None };
        let mut kept: Vec<_> =
            [range.clone().min_by(by_value), range.max_by(by_value), last].into_iter().flatten().collect();
        kept.sort_unstable();
        kept.dedup();
        thinned.extend(kept.into_iter().map(|index| seconds(&points[index])));
    }
    thinned
}

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
        points: thin_extremes(&series.points, MAX_POINTS / 3, true),
    }
}

/// Chosen: a curve of 400 points is smooth at the width of a page.
const MAX_CCDF_POINTS: usize = 400;
/// Chosen: a step of 0.6 s in a minute, in which a call sends 30 frames.
const GOODPUT_STEPS: usize = 100;
/// Payload of a full packet on Ethernet, bytes.
const MAX_PACKET: f64 = 1_500.0;
/// Chosen: about one a pixel across a page.
const MAX_POINTS: usize = 1_500;

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_units::Bytes;

    use crate::testing::{flow, ms, run};

    #[test]
    fn the_distribution_ends_on_the_floor_of_what_never_came() {
        let figures = figures(&run(vec![flow(&[Some(20), None, Some(10), Some(40)])]), "udp");
        assert_eq!(figures.label, "udp");
        let flow = &figures.flows[0];
        assert_eq!(flow.ccdf, [(10.0, 0.75), (20.0, 0.5), (40.0, 0.25)]);
        assert_eq!(flow.delay, [(0.0, 20.0), (0.04, 10.0), (0.06, 40.0)]);
        assert_eq!(flow.losses, [0.02]);
        assert_eq!(flow.loss_runs, [1]);
    }

    #[test]
    fn one_way_delays_off_an_untrusted_clock_are_not_drawn() {
        let mut flow = flow(&[Some(20), None]);
        flow.info.clock_trusted = false;
        let figures = figures(&run(vec![flow]), "");
        assert!(figures.flows[0].ccdf.is_empty() && figures.flows[0].delay.is_empty());
        assert_eq!(figures.flows[0].losses.len(), 1);
    }

    #[test]
    fn thinning_by_rank_keeps_the_ends_and_the_last_messages_of_the_tail() {
        let indices = ranks(100_000, 400);
        assert!(indices.len() <= 400 && indices.len() > 300, "{}", indices.len());
        assert_eq!(indices.first(), Some(&0));
        assert!((99_990..100_000).all(|index| indices.contains(&index)));
        assert_eq!(ranks(3, 400), [0, 1, 2]);
    }

    #[test]
    fn thinning_over_time_keeps_every_bucket_s_extremes() {
        let mut points: Vec<_> = (0..50_000).map(|step| (ms(step), (step % 7) as f64)).collect();
        points[12_345].1 = 99.0;
        let thinned = thin_extremes(&points, 750, false);
        assert!(thinned.len() <= 1_500 && thinned.len() > 1_400, "{}", thinned.len());
        assert!(thinned.contains(&(12.345, 99.0)));
        assert!(thinned.is_sorted_by(|a, b| a.0 < b.0));
        let steps = thin_extremes(&points, 500, true);
        assert!(steps.len() <= 1_500);
        assert_eq!(steps.last(), Some(&(49.999, f64::from(49_999 % 7))));
        assert_eq!(thin_evenly(&points, 1_500).len(), 1_500);
    }

    #[test]
    fn goodput_is_what_each_hundredth_of_the_time_delivered() {
        // 160 B in the first 0.6 s, two frames in the second, and one that never comes.
        let mut delays = vec![None; 40];
        (delays[0], delays[31], delays[32]) = (Some(20), Some(20), Some(20));
        let lines = figures(&run(vec![flow(&delays)]), "").lines;
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
        let lines = figures(&run(vec![large]), "").lines;
        let points = &lines[0].points;
        // 600 kbit within 1.5 s: 400 kb/s over two whole steps and a half.
        for (point, bps) in points[..4].iter().zip([4e5, 4e5, 2e5, 0.0]) {
            assert!((point.1 - bps).abs() < 1e-3, "{point:?}");
        }
    }

    #[test]
    fn only_what_the_report_draws_becomes_a_line() {
        let mut record = run(vec![]);
        let series = |kind| Series { entity: "up".to_owned(), kind, points: vec![(ms(500), 3.0)] };
        record.series = vec![series(SeriesKind::Srtt), series(SeriesKind::QueueDelay)];
        let lines = figures(&record, "").lines;
        assert_eq!(lines.len(), 1);
        assert_eq!((lines[0].kind.as_str(), lines[0].points.as_slice()), ("queue_delay", &[(0.5, 3.0)][..]));
    }
}
