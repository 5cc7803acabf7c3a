//! The bound of the rows that a server may report of a session. It follows from the planned messages and from
//! the messages that this host sent and received, with room for copies and retransmissions. Without a bound a
//! false server could fill this host's memory.

use talkpath_kernel::log::sample_interval;
use talkpath_kernel::progress::EndProgress;
use talkpath_kernel::spec::{FlowSpec, SessionSpec};
use talkpath_units::Duration;

/// Returns the largest number of rows of all flows of `spec` together. `moved` gives the progress of each
/// flow at this host.
pub(super) fn report_bound(spec: &SessionSpec, moved: impl Iterator<Item = EndProgress>) -> u64 {
    let flows = spec.flows.iter().zip(moved);
    let flow_rows = |(flow, moved): (&FlowSpec, EndProgress)| {
        let planned = flow.message_bound(spec.duration_ns).unwrap_or(0).saturating_mul(2);
        let moved = moved.sent.max(moved.received);
        let message_rows = if flow.features().keeps_messages {
            planned.max(moved).saturating_mul(ROWS_OF_A_MESSAGE)
        } else {
            planned.saturating_mul(ROWS_OF_A_MESSAGE).saturating_add(moved / BYTES_OF_A_READ)
        };
        message_rows.saturating_add(SLACK)
    };
    let whole = Duration::from_nanos(spec.duration_ns.saturating_add(spec.drain_ns));
    let interval = sample_interval(Duration::from_nanos(spec.duration_ns));
    let samples = whole.as_nanos().div_ceil(interval.as_nanos().max(1)).saturating_mul(SAMPLES_AT_ONCE);
    flows.map(flow_rows).fold(0, |sum: u64, rows| sum.saturating_add(rows).saturating_add(samples))
}

/// The largest number of rows of one message. A message has a row when it is sent, when it leaves the host,
/// when it arrives and when it is read. It also has a row for each copy, and a few rows for retransmissions.
/// We chose four times these four rows.
const ROWS_OF_A_MESSAGE: u64 = 16;

/// The least bytes of one read of a stream. A read takes at least one segment. The payload of a segment is 48
/// B or more, unless the message itself is smaller (TCP_MIN_SND_MSS of Linux). We chose a third of 48 B.
const BYTES_OF_A_READ: u64 = 16;

/// The largest number of rows of one sample of state. We chose what several connections of a flow have,
/// each with the state of its recovery.
const SAMPLES_AT_ONCE: u64 = 32;

/// The additional rows of each flow, for messages that waited in the far host's queues and reached no
/// receiver. We chose the number.
const SLACK: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a second of a flow downwards.
    fn session(transport: &serde_json::Value, workload: &serde_json::Value) -> SessionSpec {
        let flow = serde_json::from_value(serde_json::json!({
            "transport": transport, "workload": workload,
            "echo_per_read": null, "is_up": false, "start_ns": 0, "due": "start", "file": null,
        }));
        SessionSpec {
            flows: vec![flow.unwrap()],
            warm_up_ns: 0,
            duration_ns: 500_000_000,
            drain_ns: 100_000_000,
        }
    }

    #[test]
    fn a_short_run_has_thousands_of_rows_at_most_and_more_only_if_more_came() {
        let call = session(
            &serde_json::json!({ "udp": { "receive_buffer": null } }),
            &serde_json::json!({ "voice": { "ptime_ns": 20_000_000, "size": 160 } }),
        );
        let bound =
            |received| report_bound(&call, [EndProgress { received, ..EndProgress::default() }].into_iter());
        // Of up to 50 B each: the 929 MB of a false far end become half a megabyte.
        assert!((10_000..12_000).contains(&bound(25)), "{}", bound(25));
        assert!(bound(100_000) > 1_000_000, "copies of what came are believed");
    }
}
