//! Records made by hand, for this crate's tests.

use talkpath_units::{Bytes, Instant};

use crate::metrics::in_time;
use crate::{DropCause, Fate, FlowInfo, FlowRecord, LegRecord, MessageRecord, RunRecord, Terms};

/// Whole milliseconds since the run's start.
pub(crate) fn ms(value: u64) -> Instant {
    Instant::from_millis(value)
}

/// Message `seq` of 160 B, due every 20 ms and sent at once, read `delay_ms` later, or missing.
pub(crate) fn message(seq: u64, delay_ms: Option<u64>) -> MessageRecord {
    let due = ms(20 * seq);
    MessageRecord {
        seq,
        size: Bytes::new(160),
        due,
        sent: Some(due),
        wire: Some(due),
        received: delay_ms.map(|delay| ms(20 * seq + delay)),
        fate: if delay_ms.is_some() { Fate::Delivered } else { Fate::Missing },
        drop_cause: if delay_ms.is_some() { None } else { Some(DropCause::Queue) },
        copies: u32::from(delay_ms.is_some()),
        transmissions: 1,
    }
}

/// A leg whose arrivals are in order of reading.
pub(crate) fn leg(messages: Vec<MessageRecord>) -> LegRecord {
    let mut stamps: Vec<_> =
        messages.iter().filter_map(|row| Some((row.received?, row.seq, row.copies))).collect();
    stamps.sort_unstable();
    let arrivals =
        stamps.into_iter().flat_map(|(_, seq, copies)| core::iter::repeat_n(seq, copies as usize)).collect();
    LegRecord { messages, arrivals, ..LegRecord::default() }
}

/// A one-way flow named `call` with these delays in milliseconds.
pub(crate) fn flow(delays_ms: &[Option<u64>]) -> FlowRecord {
    flow_of(leg((0..).zip(delays_ms).map(|(seq, &delay)| message(seq, delay)).collect()))
}

/// A one-way flow named `call` with this forward leg.
pub(crate) fn flow_of(forward: LegRecord) -> FlowRecord {
    let terms = Terms { deadline: Some(in_time::limit(false)), ..Terms::default() };
    FlowRecord { forward, ..FlowRecord::new(FlowInfo { terms, ..FlowInfo::on_a_clock("call") }) }
}

/// A run of 60 s with these flows.
pub(crate) fn run(flows: Vec<FlowRecord>) -> RunRecord {
    RunRecord { window_end: Instant::from_secs(60), flows, valid: true, ..RunRecord::default() }
}
