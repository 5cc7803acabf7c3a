//! The events of a monitor, each a JSON object on a line: `{"event": NAME, "data": {...}}`.
//!
//! | event | is written when |
//! | --- | --- |
//! | `start` | the monitor begins |
//! | `interval` | an interval has ended |
//! | `threshold` | the outcome of a threshold has changed |
//! | `outage` | nothing can be measured |
//! | `recovered` | the monitor measures again |
//! | `error` | something failed that the user should repair |
//! | `end` | the monitor ends |
//!
//! The events `start`, `interval` and `end` use the keys of iperf3's `--json-stream` for the quantities that
//! iperf3 measures, too, and have further keys. The field names below are these keys. Two keys of iperf3 are
//! left out: `connected`, because each session has sockets of its own, and the load of the processors.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use talkpath_measure::summary::{DelayMs, FlowSummary};

use super::Epoch;
use super::alerts::Change;
use super::interval::{Counts, FlowInterval, Interval, delays};
use super::totals::{FlowTotals, Totals};

/// Writes an event as a line, with a line feed at the end.
fn line(event: &str, data: &Value) -> Vec<u8> {
    format!("{}\n", json!({ "event": event, "data": data })).into_bytes()
}

/// Returns a time in the form of iperf3. `time` is in the form of RFC 3339.
fn timestamp(at: DateTime<Utc>) -> Value {
    json!({
        "time": at.to_rfc3339_opts(SecondsFormat::Millis, true),
        "timesecs": at.timestamp(),
        "timemillisecs": at.timestamp_millis(),
    })
}

/// The beginning of a monitor, and what it measures.
pub(crate) struct MonitorStart<'a> {
    pub(crate) epoch: Epoch,
    pub(crate) system: String,
    pub(crate) host: &'a str,
    pub(crate) flows: Vec<MonitoredFlow>,
    pub(crate) interval_s: f64,
    pub(crate) session_s: f64,
}

/// A flow that a monitor measures.
pub(crate) struct MonitoredFlow {
    pub(crate) name: String,
    pub(crate) transport: String,
    /// The payload of a message in bytes, or `None` if the messages differ in size.
    pub(crate) message_bytes: Option<u64>,
}

/// Writes the event that the monitor begins. The protocol and the size of messages are those of the first
/// flow.
pub(crate) fn start(begun: &MonitorStart<'_>) -> Vec<u8> {
    let mut streams = Vec::new();
    for (index, MonitoredFlow { name, transport, .. }) in begun.flows.iter().enumerate() {
        // The number of a flow begins at 1.
        streams.push(json!({ "socket": index + 1, "flow": name, "transport": transport }));
    }
    let first = begun.flows.first();
    let data = json!({
        "version": format!("talkpath {}", env!("CARGO_PKG_VERSION")),
        "system_info": begun.system,
        "timestamp": timestamp(begun.epoch.wall),
        "connecting_to": { "host": begun.host },
        "test_start": {
            "protocol": first.map_or("", |flow| &flow.transport),
            "num_streams": begun.flows.len(),
            "blksize": first.and_then(|flow| flow.message_bytes),
            "omit": 0,
            // iperf3 writes 0 for a test without an end.
            "duration": 0,
            "interval": begun.interval_s,
            "session": begun.session_s,
        },
        "streams": streams,
    });
    line("start", &data)
}

/// The messages of a stretch of time.
#[derive(Serialize)]
struct Span {
    /// The beginning of the stretch, in s since the monitor began.
    start: f64,
    /// The end of the stretch, in s since the monitor began.
    end: f64,
    /// The time of the stretch in which the monitor measured, in s.
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

#[derive(Clone, Copy)]
struct SpanTimes {
    start: f64,
    end: f64,
    seconds: f64,
}

impl Span {
    /// Adds up the messages of all flows.
    fn of_all_flows(times: SpanTimes, counts: &Counts) -> Self {
        let SpanTimes { start, end, seconds } = times;
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

    /// Describes the messages of one flow, which also has a jitter and an order.
    fn of_flow(times: SpanTimes, counts: &Counts, figures: &FlowSummary) -> Self {
        Self {
            jitter_ms: figures.rtp_jitter_ms,
            out_of_order: Some(counts.reordered),
            ..Self::of_all_flows(times, counts)
        }
    }
}

/// One flow in an interval.
#[derive(Serialize)]
struct IntervalStream<'a> {
    socket: usize,
    flow: &'a str,
    transport: &'a str,
    #[serde(flatten)]
    span: Span,
    counts: &'a Counts,
    /// The same figures as in summary.json.
    figures: &'a FlowSummary,
}

/// Writes the event that an interval has ended.
pub(crate) fn interval(epoch: Epoch, number: u64, interval: &Interval) -> Vec<u8> {
    // Both times are counted from the beginning of the monitor. So the end of an interval and the beginning
    // of the next one are the same number.
    let end_ns = interval.start_ns.saturating_add_unsigned(interval.length.as_nanos());
    let times = SpanTimes {
        start: epoch.seconds(interval.start_ns),
        end: epoch.seconds(end_ns),
        seconds: interval.length.as_secs_f64(),
    };
    let mut streams = Vec::new();
    for (index, FlowInterval { name, counts, figures, .. }) in interval.flows.iter().enumerate() {
        streams.push(IntervalStream {
            socket: index + 1,
            flow: name,
            transport: &figures.transport,
            span: Span::of_flow(times, counts, figures),
            counts,
            figures,
        });
    }
    let data = json!({
        "streams": streams,
        "sum": Span::of_all_flows(times, &interval.sum()),
        "interval": number,
        "timestamp": timestamp(epoch.wall(interval.start_ns)),
        "valid": interval.valid,
        "clock": interval.clock,
        "warnings": interval.warnings,
        "cut": interval.cut,
    });
    line("interval", &data)
}

/// Writes the event that the outcome of a threshold has changed with the interval that ended at `at_ns` of
/// CLOCK_MONOTONIC.
pub(crate) fn threshold(epoch: Epoch, at_ns: i64, change: &Change) -> Vec<u8> {
    let at = timestamp(epoch.wall(at_ns));
    let data = json!({ "time": epoch.seconds(at_ns), "timestamp": at, "change": change });
    line("threshold", &data)
}

/// Writes the event that nothing has been measured since `from_ns` of CLOCK_MONOTONIC.
pub(crate) fn outage(epoch: Epoch, from_ns: i64, why: &str) -> Vec<u8> {
    let at = timestamp(epoch.wall(from_ns));
    line("outage", &json!({ "start": epoch.seconds(from_ns), "timestamp": at, "why": why }))
}

/// Writes the event that the monitor measures again since `to_ns`, after an outage that began at `from_ns`.
pub(crate) fn recovered(epoch: Epoch, from_ns: i64, to_ns: i64, attempts: u64) -> Vec<u8> {
    let (start, end) = (epoch.seconds(from_ns), epoch.seconds(to_ns));
    let data = json!({
        "start": start,
        "end": end,
        "seconds": end - start,
        "attempts": attempts,
        "timestamp": timestamp(epoch.wall(to_ns)),
    });
    line("recovered", &data)
}

/// Writes the event that something failed which the user should repair. The monitor continues.
pub(crate) fn error(message: &str) -> Vec<u8> {
    line("error", &message.into())
}

/// One flow over the whole monitor.
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

/// Writes the event that the monitor ends at `end_ns` of CLOCK_MONOTONIC.
pub(crate) fn end(epoch: Epoch, end_ns: i64, totals: &Totals) -> Vec<u8> {
    let measured_seconds = totals.measured.as_secs_f64();
    let times = SpanTimes { start: 0.0, end: epoch.seconds(end_ns), seconds: measured_seconds };
    let mut streams = Vec::new();
    for (index, (name, flow)) in totals.flows.iter().enumerate() {
        let FlowTotals { transport, counts, last, .. } = flow;
        let flow_end = FlowEnd {
            socket: index + 1,
            flow: name,
            transport,
            span: Span::of_flow(times, counts, last),
            counts,
            round_trip_delay_ms: delays(&flow.round_trips),
            one_way_delay_ms: delays(&flow.one_way),
        };
        // The key is that of iperf3: `sender` for connections, and `udp` for datagrams.
        let key = if transport.starts_with("tcp") { "sender" } else { "udp" };
        streams.push(json!({ key: flow_end }));
    }
    let data = json!({
        "streams": streams,
        "sum": Span::of_all_flows(times, &totals.sum()),
        "intervals": totals.intervals,
        "invalid_intervals": totals.invalid_intervals,
        "measured_seconds": measured_seconds,
        "outages": totals.outages,
        "outage_seconds": totals.outage_s(end_ns),
        "thresholds": totals.thresholds,
        "timestamp": timestamp(epoch.wall(end_ns)),
    });
    line("end", &data)
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
