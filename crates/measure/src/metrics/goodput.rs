//! Goodput: payload bits that reached the far application, over the time they had for it.
//!
//! The time runs from max(`start`, `warm_up`) to `duration`, or, where the workload has an end of its own, to the last
//! delivery. A stream counts every byte read, whether or not it completes a message; a datagram transport counts the first
//! copy of each message. Both count by the instant of reading, so data sent during warm-up and read after it counts.

use core::ops::Range;

use talkpath_units::Instant;

use crate::{Fate, FlowRecord};

/// Payload bits a second over the flow's forward leg; `None` where no time passed.
pub fn goodput_bps(flow: &FlowRecord, window: &Range<Instant>) -> Option<f64> {
    let from = window.start.max(flow.info.start);
    let last = deliveries(flow).map(|(at, _)| at).max();
    let to = if flow.info.bounded { last.unwrap_or(window.end) } else { window.end };
    let span = to.since(from);
    let bytes: u128 =
        deliveries(flow).filter(|&(at, _)| from <= at && at <= to).map(|(_, bytes)| u128::from(bytes)).sum();
    (!span.is_zero()).then(|| bytes as f64 * 8.0 / span.as_secs_f64())
}

/// When the far application read how many bytes for the first time.
fn deliveries(flow: &FlowRecord) -> impl Iterator<Item = (Instant, u64)> + '_ {
    let reads = flow.forward.reads.iter().map(|&(at, bytes)| (at, bytes.get()));
    // A stream has reads and counts those; otherwise whole messages.
    let is_stream = !flow.forward.reads.is_empty();
    let messages = flow
        .forward
        .messages
        .iter()
        .filter(move |row| !is_stream && row.fate == Fate::Delivered)
        .filter_map(|row| Some((row.received?, row.size.get())));
    reads.chain(messages)
}
