//! The events of a monitor, each a JSON object on a line: `{"event": NAME, "data": {...}}`.
//!
//! The events `start`, `interval` and `end` use the keys of iperf3's `--json-stream` for the quantities that
//! iperf3 measures too, and have further keys. The events `outage`, `recovered` and `error` have the same
//! form. Two keys of iperf3 are left out: `connected`, because each session has sockets of its own, and the
//! load of the processors.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use talkpath_measure::summary::{Clock, DelayMs, FlowSummary};

use super::Epoch;
use super::interval::{Counts, Interval, delays};
use super::totals::Totals;

/// An event.
#[derive(Serialize)]
struct Event<T> {
    event: &'static str,
    data: T,
}

/// Writes an event as a line, with a line feed at the end.
fn line(event: &'static str, data: impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(&Event { event, data }).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A time in the form of iperf3. `time` is in the form of RFC 3339.
#[derive(Serialize)]
struct Timestamp {
    time: String,
    timesecs: i64,
    timemillisecs: i64,
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(at: DateTime<Utc>) -> Self {
        Self {
            time: at.to_rfc3339_opts(SecondsFormat::Millis, true),
            timesecs: at.timestamp(),
            timemillisecs: at.timestamp_millis(),
        }
    }
}

/// The data of the event `start`: what the monitor measures.
pub(crate) struct MonitorStart<'a> {
    pub(crate) epoch: Epoch,
    pub(crate) system: String,
    pub(crate) host: &'a str,
    /// The name and the transport of each flow, and the payload of a message in bytes, or `None` if the
    /// messages differ in size.
    pub(crate) flows: Vec<(String, String, Option<u64>)>,
    pub(crate) interval_s: f64,
    pub(crate) session_s: f64,
}

/// The event that the monitor begins.
pub(crate) fn start(begun: &MonitorStart<'_>) -> Vec<u8> {
    #[derive(Serialize)]
    struct ConnectingTo<'a> {
        host: &'a str,
    }
    #[derive(Serialize)]
    struct TestStart<'a> {
        protocol: &'a str,
        num_streams: usize,
        blksize: Option<u64>,
        omit: u64,
        /// 0, as iperf3 writes a test without an end.
        duration: u64,
        interval: f64,
        session: f64,
    }
    #[derive(Serialize)]
    struct FlowStart<'a> {
        socket: usize,
        flow: &'a str,
        transport: &'a str,
    }
    #[derive(Serialize)]
    struct Start<'a> {
        version: String,
        system_info: &'a str,
        timestamp: Timestamp,
        connecting_to: ConnectingTo<'a>,
        test_start: TestStart<'a>,
        streams: Vec<FlowStart<'a>>,
    }
    let numbered = begun.flows.iter().enumerate();
    let streams =
        numbered.map(|(index, (flow, transport, _))| FlowStart { socket: index + 1, flow, transport });
    line(
        "start",
        Start {
            version: format!("talkpath {}", env!("CARGO_PKG_VERSION")),
            system_info: &begun.system,
            timestamp: begun.epoch.wall.into(),
            connecting_to: ConnectingTo { host: begun.host },
            test_start: TestStart {
                protocol: begun.flows.first().map_or("", |flow| &flow.1),
                num_streams: begun.flows.len(),
                blksize: begun.flows.first().and_then(|flow| flow.2),
                omit: 0,
                duration: 0,
                interval: begun.interval_s,
                session: begun.session_s,
            },
            streams: streams.collect(),
        },
    )
}

/// The messages of a stretch of time. Its start and end are in seconds since the monitor began.
#[derive(Serialize)]
struct Span {
    start: f64,
    end: f64,
    seconds: f64,
    bytes: u64,
    bits_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter_ms: Option<f64>,
    lost_packets: u64,
    packets: u64,
    lost_percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_of_order: Option<u64>,
    omitted: bool,
    sender: bool,
}

impl Span {
    fn new((start, end): (f64, f64), seconds: f64, counts: &Counts) -> Self {
        Self {
            start,
            end,
            seconds,
            bytes: counts.bytes,
            bits_per_second: if seconds > 0.0 { counts.bytes as f64 * 8.0 / seconds } else { 0.0 },
            jitter_ms: None,
            lost_packets: counts.lost,
            packets: counts.sent,
            lost_percent: counts.lost_percent(),
            out_of_order: None,
            omitted: false,
            sender: true,
        }
    }
}

/// One flow in an interval.
#[derive(Serialize)]
struct Stream<'a> {
    socket: usize,
    flow: &'a str,
    transport: &'a str,
    #[serde(flatten)]
    span: Span,
    counts: &'a Counts,
    /// The same figures as in summary.json.
    figures: &'a FlowSummary,
}

/// The event that an interval has ended.
pub(crate) fn interval(epoch: Epoch, number: u64, interval: &Interval) -> Vec<u8> {
    #[derive(Serialize)]
    struct Data<'a> {
        streams: Vec<Stream<'a>>,
        sum: Span,
        interval: u64,
        timestamp: Timestamp,
        valid: bool,
        clock: Option<&'a Clock>,
        warnings: &'a [String],
        cut: Option<&'a str>,
    }
    let seconds = interval.length.as_secs_f64();
    // Both times are counted from the beginning of the monitor. So the end of an interval and the beginning
    // of the next one are the same number.
    let end_ns = interval.start_ns.saturating_add_unsigned(interval.length.as_nanos());
    let span = (epoch.seconds(interval.start_ns), epoch.seconds(end_ns));
    let streams = interval.flows.iter().enumerate().map(|(index, flow)| Stream {
        socket: index + 1,
        flow: &flow.name,
        transport: &flow.figures.transport,
        span: Span {
            jitter_ms: flow.figures.rtp_jitter_ms,
            out_of_order: Some(flow.counts.reordered),
            ..Span::new(span, seconds, &flow.counts)
        },
        counts: &flow.counts,
        figures: &flow.figures,
    });
    line(
        "interval",
        Data {
            streams: streams.collect(),
            sum: Span::new(span, seconds, &interval.sum()),
            interval: number,
            timestamp: epoch.wall(interval.start_ns).into(),
            valid: interval.valid,
            clock: interval.clock.as_ref(),
            warnings: &interval.warnings,
            cut: interval.cut.as_deref(),
        },
    )
}

/// The event that nothing has been measured since `from_ns` of CLOCK_MONOTONIC.
pub(crate) fn outage(epoch: Epoch, from_ns: i64, why: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Data<'a> {
        start: f64,
        timestamp: Timestamp,
        why: &'a str,
    }
    line("outage", Data { start: epoch.seconds(from_ns), timestamp: epoch.wall(from_ns).into(), why })
}

/// The event that the monitor measures again since `to_ns`, after an outage that began at `from_ns`.
pub(crate) fn recovered(epoch: Epoch, from_ns: i64, to_ns: i64, attempts: u64) -> Vec<u8> {
    #[derive(Serialize)]
    struct Data {
        start: f64,
        end: f64,
        seconds: f64,
        attempts: u64,
        timestamp: Timestamp,
    }
    let (start, end) = (epoch.seconds(from_ns), epoch.seconds(to_ns));
    let timestamp = epoch.wall(to_ns).into();
    line("recovered", Data { start, end, seconds: end - start, attempts, timestamp })
}

/// The event that something failed which the user should repair. The monitor goes on.
pub(crate) fn error(what: &str) -> Vec<u8> {
    line("error", what)
}

/// The event that the monitor ends at `end_ns` of CLOCK_MONOTONIC.
pub(crate) fn end(epoch: Epoch, end_ns: i64, totals: &Totals) -> Vec<u8> {
    #[derive(Serialize)]
    struct FlowEnd<'a> {
        socket: usize,
        flow: &'a str,
        transport: &'a str,
        #[serde(flatten)]
        span: Span,
        counts: &'a Counts,
        round_trip_delay_ms: Option<DelayMs>,
        one_way_delay_ms: Option<DelayMs>,
    }
    /// The end of a flow in the form of iperf3: the key is `udp` for datagrams, and `sender` for connections.
    #[derive(Serialize)]
    struct StreamEnd<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        udp: Option<FlowEnd<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sender: Option<FlowEnd<'a>>,
    }
    #[derive(Serialize)]
    struct Data<'a> {
        streams: Vec<StreamEnd<'a>>,
        sum: Span,
        intervals: u64,
        invalid_intervals: u64,
        measured_seconds: f64,
        outages: u64,
        outage_seconds: f64,
        timestamp: Timestamp,
    }
    let (measured_s, end_s) = (totals.measured.as_secs_f64(), epoch.seconds(end_ns));
    let flows = totals.flows.iter().enumerate().map(|(index, (flow, totals))| FlowEnd {
        socket: index + 1,
        flow,
        transport: &totals.transport,
        span: Span {
            jitter_ms: totals.last.rtp_jitter_ms,
            out_of_order: Some(totals.counts.reordered),
            ..Span::new((0.0, end_s), measured_s, &totals.counts)
        },
        counts: &totals.counts,
        round_trip_delay_ms: delays(&totals.round_trips),
        one_way_delay_ms: delays(&totals.one_way),
    });
    let streams = flows.map(|flow| {
        let is_connection = flow.transport.starts_with("tcp");
        let (udp, sender) = if is_connection { (None, Some(flow)) } else { (Some(flow), None) };
        StreamEnd { udp, sender }
    });
    line(
        "end",
        Data {
            streams: streams.collect(),
            sum: Span::new((0.0, end_s), measured_s, &totals.sum()),
            intervals: totals.intervals,
            invalid_intervals: totals.invalid_intervals,
            measured_seconds: measured_s,
            outages: totals.outages,
            outage_seconds: totals.outage_s(end_ns),
            timestamp: epoch.wall(end_ns).into(),
        },
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use talkpath_units::Duration;

    use super::*;
    use crate::monitor::interval::split;
    use crate::monitor::interval::tests::session;

    fn epoch() -> Epoch {
        Epoch::at(1_000, DateTime::from_timestamp(1_764_000_000, 0).unwrap())
    }

    fn parse(line: &[u8]) -> Value {
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        serde_json::from_slice(line).unwrap()
    }

    #[test]
    fn an_interval_has_iperf3s_keys_for_what_both_measure() {
        let intervals = split(&session(0, 1_000, 2_000, 10), Duration::from_secs(1));
        let event = parse(&interval(epoch(), 7, &intervals[1]));
        assert_eq!(event["event"], "interval");
        let (data, stream) = (&event["data"], &event["data"]["streams"][0]);
        for span in [stream, &data["sum"]] {
            assert_eq!(
                (&span["start"], &span["end"], &span["seconds"]),
                (&1.0.into(), &2.0.into(), &1.0.into())
            );
            assert_eq!((&span["packets"], &span["lost_packets"]), (&50.into(), &5.into()));
            assert_eq!((&span["bytes"], &span["bits_per_second"]), (&7_200.into(), &57_600.0.into()));
            assert_eq!((&span["lost_percent"], &span["omitted"]), (&10.0.into(), &false.into()));
        }
        assert_eq!((&stream["socket"], &stream["flow"]), (&1.into(), &"call".into()));
        assert_eq!((&stream["figures"]["sent"], &data["interval"]), (&50.into(), &7.into()));
        assert_eq!(data["timestamp"]["time"], "2025-11-24T16:00:01.000Z");
    }

    #[test]
    fn the_end_has_the_sums_and_the_time_without_figures() {
        let mut totals = Totals::default();
        for interval in split(&session(0, 1_000, 2_000, 10), Duration::from_secs(1)) {
            totals.add(&interval);
        }
        totals.go_down(2_000_001_000);
        let event = parse(&end(epoch(), 5_000_001_000, &totals));
        let udp = &event["data"]["streams"][0]["udp"];
        assert_eq!((&udp["packets"], &udp["lost_packets"]), (&100.into(), &10.into()));
        assert_eq!(udp["one_way_delay_ms"]["p50"], 3.0);
        let data = &event["data"];
        assert_eq!((&data["measured_seconds"], &data["outage_seconds"]), (&2.0.into(), &3.0.into()));
        assert_eq!((&data["intervals"], &data["outages"]), (&2.into(), &1.into()));
    }

    #[test]
    fn an_outage_has_its_ends() {
        let event = parse(&recovered(epoch(), 1_000, 2_500_001_000, 3));
        assert_eq!((&event["data"]["seconds"], &event["data"]["attempts"]), (&2.5.into(), &3.into()));
        let event = parse(&outage(epoch(), 1_000, "refused"));
        assert_eq!((&event["data"]["start"], &event["data"]["why"]), (&0.0.into(), &"refused".into()));
    }
}
