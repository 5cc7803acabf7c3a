//! Goodput: the payload bits that reached the far application, per second.
//!
//! The time begins at the later of `start` and `warm_up`. It ends at `duration`, or at the last delivery if
//! the workload ends by itself. A stream counts every byte that is read, even if it completes no message. A
//! datagram transport counts the first copy of each message. The time of reading decides, so data that was
//! sent during the warm-up and read after it counts.

use core::ops::Range;

use talkpath_units::{Duration, Instant};

use crate::FlowRecord;

/// Returns the payload bits per second on the forward leg. Returns `None` if no time passed, or if nobody
/// knows what arrived.
pub fn goodput_bps(flow: &FlowRecord, window: &Range<Instant>) -> Option<f64> {
    if flow.forward.arrivals_unknown {
        return None;
    }
    let from = window.start.max(flow.info.start);
    let last = flow.forward.deliveries().map(|(at, _)| at).max();
    let to = if flow.info.bounded { last.unwrap_or(window.end) } else { window.end };
    let span = to.since(from);
    let bytes: u128 = flow
        .forward
        .deliveries()
        .filter(|&(at, _)| from <= at && at <= to)
        .map(|(_, bytes)| u128::from(bytes))
        .sum();
    (!span.is_zero()).then(|| bytes as f64 * 8.0 / span.as_secs_f64())
}

/// Returns the payload bits on the forward leg in each whole second of `window`.
pub fn bits_per_second(flow: &FlowRecord, window: &Range<Instant>) -> Vec<u64> {
    let second = Duration::from_secs(1).as_nanos();
    let count = window.end.since(window.start).as_nanos() / second;
    let mut bits = vec![0; usize::try_from(count).unwrap_or(0)];
    for (at, bytes) in flow.forward.deliveries().filter(|(at, _)| *at >= window.start) {
        let index = usize::try_from(at.since(window.start).as_nanos() / second).unwrap_or(usize::MAX);
        if let Some(bits) = bits.get_mut(index) {
            *bits += bytes * 8;
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use talkpath_units::Bytes;

    use super::*;
    use crate::testing::{flow, ms};

    #[test]
    fn datagrams_count_their_payload_over_the_window() {
        // 160 B read at 30, 50 and 90 ms; 2 × 1,280 bit within 40 to 100 ms, however long ago they were due.
        let flow = flow(&[Some(30), Some(30), None, Some(30)]);
        assert_eq!(goodput_bps(&flow, &(ms(40)..ms(100))), Some(2.0 * 1_280.0 / 0.06));
    }

    #[test]
    fn a_duplicate_adds_nothing() {
        let mut flow = flow(&[Some(30)]);
        flow.forward.messages[0].copies = 5;
        flow.forward.arrivals = vec![0; 5];
        assert_eq!(goodput_bps(&flow, &(ms(0)..ms(1_000))), Some(1_280.0));
    }

    #[test]
    fn the_time_before_the_flow_starts_is_not_its_time() {
        let mut flow = flow(&[None, None, Some(30)]);
        flow.info.start = ms(40);
        assert_eq!(goodput_bps(&flow, &(ms(0)..ms(140))), Some(12_800.0));
    }

    #[test]
    fn a_stream_counts_bytes_read_and_not_whole_messages() {
        let mut flow = flow(&[Some(30)]);
        flow.forward.reads =
            vec![(ms(10), Bytes::new(100)), (ms(30), Bytes::new(60)), (ms(60), Bytes::new(90))];
        assert_eq!(goodput_bps(&flow, &(ms(20)..ms(100))), Some(150.0 * 8.0 / 0.08));
    }

    #[test]
    fn a_bounded_workload_is_timed_to_its_last_delivery() {
        // Also if that is after `duration`, while the run drains.
        let mut flow = flow(&[Some(500), Some(980)]);
        flow.info.bounded = true;
        assert_eq!(goodput_bps(&flow, &(ms(0)..ms(100))), Some(2_560.0));
    }

    #[test]
    fn seconds_count_what_was_read_in_them() {
        // Read at 990, 1010 and 1040 ms.
        let flow = flow(&[Some(990), Some(990), Some(1000)]);
        assert_eq!(bits_per_second(&flow, &(ms(0)..ms(2900))), [1280, 2560]);
        assert_eq!(bits_per_second(&flow, &(ms(1020)..ms(2020))), [1280]);
    }

    #[test]
    fn nothing_delivered_is_zero_and_no_time_is_unknown() {
        assert_eq!(goodput_bps(&flow(&[None]), &(ms(0)..ms(100))), Some(0.0));
        assert_eq!(goodput_bps(&flow(&[None]), &(ms(100)..ms(100))), None);
    }
}
