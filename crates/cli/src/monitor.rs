//! What `talkpath monitor` makes of sessions: intervals, totals, events, metrics and records.
//!
//! ```text
//!  live::Monitor ─► Measured (a session) ─► intervals ─► events (--json-stream)
//!                                              └─► totals ─► metrics (--metrics, --textfile), the end event
//!                          └─► records: run directories that rotate
//! ```
//!
//! A session's rows live until it is split into intervals. What stays is bounded: counts and histograms of
//! each flow.

pub(crate) mod events;
pub(crate) mod http;
pub(crate) mod interval;
pub(crate) mod openmetrics;
pub(crate) mod records;
pub(crate) mod totals;

use chrono::{DateTime, TimeDelta, Utc};
use talkpath_kernel::clock::monotonic;

/// The monitor's beginning on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    monotonic_ns: i64,
    wall: DateTime<Utc>,
}

impl Epoch {
    pub(crate) fn now() -> Self {
        Self { monotonic_ns: monotonic(), wall: Utc::now() }
    }

    /// Seconds since the beginning at `monotonic_ns` of CLOCK_MONOTONIC.
    pub(crate) fn seconds(self, monotonic_ns: i64) -> f64 {
        (monotonic_ns - self.monotonic_ns) as f64 / 1e9
    }

    /// The date and time then, as the wall clock would have it that was not set since the beginning.
    pub(crate) fn wall(self, monotonic_ns: i64) -> DateTime<Utc> {
        let since = TimeDelta::nanoseconds(monotonic_ns - self.monotonic_ns);
        self.wall.checked_add_signed(since).unwrap_or(self.wall)
    }
}
