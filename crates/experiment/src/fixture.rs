//! Records for tests.

use talkpath_measure::{Fate, FlowInfo, FlowRecord, LegRecord, MessageRecord, RunRecord};
use talkpath_units::{Bytes, Duration, Instant};

/// A repetition of a call of this many milliseconds, a message every 20 ms, of which every seventh is missing.
pub(crate) fn record(ms: u64) -> RunRecord {
    let message = |seq: u64| {
        let due = Instant::from_millis(20 * seq);
        let is_lost = seq % 7 == 6;
        MessageRecord {
            seq,
            size: Bytes::new(160),
            due,
            sent: Some(due),
            wire: None,
            received: (!is_lost).then(|| Instant::from_millis(20 * seq + 3)),
            fate: if is_lost { Fate::Missing } else { Fate::Delivered },
            drop_cause: None,
            copies: u32::from(!is_lost),
            transmissions: 0,
        }
    };
    let messages: Vec<_> = (0..ms.div_ceil(20)).map(message).collect();
    let arrivals = messages.iter().filter(|row| row.copies > 0).map(|row| row.seq).collect();
    let forward = LegRecord { messages, arrivals, ..LegRecord::default() };
    RunRecord {
        window_end: Instant::ZERO.saturating_add(Duration::from_millis(ms)),
        flows: vec![FlowRecord { forward, ..FlowRecord::new(FlowInfo::on_a_clock("call")) }],
        valid: true,
        ..RunRecord::default()
    }
}
