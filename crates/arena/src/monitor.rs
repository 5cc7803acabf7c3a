//! What a monitor of two live hosts reports: sessions, and outages between them.

use talkpath_measure::RunRecord;
use talkpath_units::Duration;

/// What a monitor reports, in order of time.
#[derive(Debug)]
pub enum Happening {
    /// A session is over.
    Measured(Box<MonitorSession>),
    /// Nothing is measured since `from_ns`: the far end is not there, or refuses.
    Down {
        /// CLOCK_MONOTONIC, ns.
        from_ns: i64,
        /// In one line for a person.
        why: String,
    },
    /// It is measured again.
    Up {
        /// Since when it was not: CLOCK_MONOTONIC, ns.
        from_ns: i64,
        /// When the next session began.
        to_ns: i64,
        /// Sessions that could not begin meanwhile.
        attempts: u64,
    },
}

/// One session that is over.
#[derive(Debug)]
pub struct MonitorSession {
    /// From 0.
    pub number: u64,
    /// CLOCK_MONOTONIC when it began, ns.
    pub start_ns: i64,
    /// Messages were due for this long: the scenario's duration unless it was cut short.
    pub length: Duration,
    /// What was measured; `None` if nothing was.
    pub record: Option<RunRecord>,
    /// Why it did not come to its end, if so.
    pub cut: Option<String>,
}
