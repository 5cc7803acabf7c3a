//! Counts the goodput of a flow during the run. `goodput.rs` has the definition.

use core::ops::Range;

use talkpath_units::{Bytes, Instant};

use crate::FlowInfo;

/// Counts the goodput of a flow during the run, without its rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GoodputCounter {
    start: Instant,
    window_end: Instant,
    /// Whether the workload ends by itself, so that deliveries after the window count.
    is_bounded: bool,
    bytes: u128,
    last_delivery: Option<Instant>,
}

impl GoodputCounter {
    pub(crate) fn new(info: &FlowInfo, window: &Range<Instant>) -> Self {
        Self {
            start: window.start.max(info.start),
            window_end: window.end,
            is_bounded: info.bounded,
            bytes: 0,
            last_delivery: None,
        }
    }

    /// Counts the delivery of a whole message.
    #[inline]
    pub(crate) fn add_message(&mut self, at: Instant, size: Bytes) {
        if self.start <= at && (self.is_bounded || at <= self.window_end) {
            self.bytes += u128::from(size.get());
        }
        self.last_delivery = self.last_delivery.max(Some(at));
    }

    /// Counts the reads of a stream, which are in the order of time.
    #[inline]
    pub(crate) fn add_reads(&mut self, reads: &[(Instant, Bytes)]) {
        let (Some(&(first, _)), Some(&(last, _))) = (reads.first(), reads.last()) else { return };
        debug_assert!(reads.is_sorted_by_key(|read| read.0), "time goes on");
        let counted = self.start..=if self.is_bounded { Instant::MAX } else { self.window_end };
        let bytes: u64 = if counted.contains(&first) && counted.contains(&last) {
            // All reads count. This is the usual case, and needs no comparison for each read.
            reads.iter().map(|read| read.1.get()).sum()
        } else {
            reads.iter().filter(|read| counted.contains(&read.0)).map(|read| read.1.get()).sum()
        };
        self.bytes += u128::from(bytes);
        self.last_delivery = self.last_delivery.max(Some(last));
    }

    /// Returns what [`goodput_bps`](super::goodput::goodput_bps) returns for the rows of the flow.
    pub(crate) fn bps(&self) -> Option<f64> {
        let end = match self.last_delivery {
            Some(last) if self.is_bounded => last,
            _ => self.window_end,
        };
        let time = end.since(self.start);
        (!time.is_zero()).then(|| self.bytes as f64 * 8.0 / time.as_secs_f64())
    }
}
