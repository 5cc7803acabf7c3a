//! The reports of a monitor of two live hosts: the sessions, and the outages between sessions.

use talkpath_measure::RunRecord;
use talkpath_units::Duration;

/// One report of a monitor. The reports come in order of time.
#[derive(Debug)]
pub enum MonitorEvent {
    /// A session is over.
    Measured(Box<MonitorSession>),
    /// An outage has begun.
    Down {
        /// CLOCK_MONOTONIC when the outage began, ns.
        from_ns: i64,
        /// The reason of the outage, in one line for a person.
        why: String,
    },
    /// An outage is over, because a session has begun.
    Up {
        /// CLOCK_MONOTONIC when the outage began, ns.
        from_ns: i64,
        /// CLOCK_MONOTONIC when the session began, ns.
        to_ns: i64,
        /// The number of sessions that could not begin during the outage.
        attempts: u64,
    },
}

/// One session that is over.
#[derive(Debug)]
pub struct MonitorSession {
    /// The number of the session, from 0.
    pub number: u64,
    /// CLOCK_MONOTONIC when the session began, ns.
    pub start_ns: i64,
    /// The time in which messages were due. It is the scenario's duration, unless the session was cut short.
    pub length: Duration,
    /// The record of the session. `None` if nothing was measured.
    pub record: Option<RunRecord>,
    /// The reason why the session was cut short. `None` if it was not.
    pub cut: Option<String>,
}
