//! `talkpath monitor` turns each session into intervals, totals, events, metrics and records.
//!
//! ```text
//!  live::Monitor ─► MonitorSession ───────► intervals ─► events (--json-stream)
//!                                              ├─► totals ─► metrics (--metrics, --textfile), the end event
//!                                              └─► alerts: the thresholds over the last intervals
//!                          └─► records: run directories that rotate
//! ```
//!
//! The rows of a session are kept until the session has been split into intervals. After that only counts and
//! histograms of each flow stay, so the memory of a monitor does not grow.

pub(crate) mod alerts;
pub(crate) mod event_file;
pub(crate) mod events;
pub(crate) mod http;
pub(crate) mod interval;
pub(crate) mod openmetrics;
pub(crate) mod printer;
pub(crate) mod records;
pub(crate) mod totals;

use chrono::{DateTime, TimeDelta, Utc};
use talkpath_system::clock::monotonic;

/// The time at which the monitor began, and an anchor that relates CLOCK_MONOTONIC to the wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    /// The beginning of the monitor, in ns of CLOCK_MONOTONIC and on the wall clock.
    monotonic_ns: i64,
    wall: DateTime<Utc>,
    /// Both clocks at the moment at which they were read last: ns of CLOCK_MONOTONIC, and the wall clock.
    anchor: (i64, DateTime<Utc>),
}

impl Epoch {
    /// Makes the epoch of a monitor that begins now.
    pub(crate) fn now() -> Self {
        Self::at(monotonic(), Utc::now())
    }

    fn at(monotonic_ns: i64, wall: DateTime<Utc>) -> Self {
        Self { monotonic_ns, wall, anchor: (monotonic_ns, wall) }
    }

    /// Reads both clocks again, which is done once a session. A monitor runs for weeks. Meanwhile the wall
    /// clock may be set, and NTP makes it faster or slower by up to 500 ppm, which is 43 s a day (RFC 5905
    /// §11.3).
    pub(crate) fn anchored(self) -> Self {
        self.anchored_at(monotonic(), Utc::now())
    }

    fn anchored_at(self, monotonic_ns: i64, wall: DateTime<Utc>) -> Self {
        Self { anchor: (monotonic_ns, wall), ..self }
    }

    /// Returns the seconds from the beginning of the monitor to `monotonic_ns` of CLOCK_MONOTONIC.
    pub(crate) fn seconds(self, monotonic_ns: i64) -> f64 {
        (monotonic_ns - self.monotonic_ns) as f64 / 1e9
    }

    /// Returns the date and time at `monotonic_ns` of CLOCK_MONOTONIC. It is right unless the wall clock was
    /// set after the anchor was read.
    pub(crate) fn wall(self, monotonic_ns: i64) -> DateTime<Utc> {
        let (anchor_ns, wall) = self.anchor;
        wall.checked_add_signed(TimeDelta::nanoseconds(monotonic_ns - anchor_ns)).unwrap_or(wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_follow_a_wall_clock_that_is_set_and_seconds_do_not() {
        let begun = DateTime::from_timestamp(1_764_000_000, 0).unwrap_or_default();
        let epoch = Epoch::at(1_000, begun);
        let day_ns = 86_400_000_000_000;
        // A day later NTP has made the wall clock 43 s faster.
        let set = begun + TimeDelta::seconds(86_443);
        let later = epoch.anchored_at(1_000 + day_ns, set);
        assert_eq!(later.wall(1_000 + day_ns + 2_000_000_000), set + TimeDelta::seconds(2));
        assert_eq!(epoch.wall(1_000 + day_ns), begun + TimeDelta::seconds(86_400));
        assert_eq!((later.seconds(1_000 + day_ns), later.wall), (86_400.0, begun));
    }
}
