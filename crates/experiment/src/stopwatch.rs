//! When a command started, and what it took.

use std::path::Path;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use rustix::time::{ClockId, clock_gettime};
use talkpath_units::Instant;

/// Runs from `start`.
#[derive(Debug)]
pub struct Stopwatch {
    started: DateTime<Utc>,
    since: std::time::Instant,
}

impl Stopwatch {
    /// One that starts now.
    pub fn start() -> Self {
        Self { started: Utc::now(), since: std::time::Instant::now() }
    }

    /// RFC 3339, UTC, to the second.
    pub fn started(&self) -> String {
        self.started.format("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// As [`FILE_NAME_TIME`].
    pub fn started_for_file_name(&self) -> String {
        self.started.format(FILE_NAME_TIME).to_string()
    }

    /// Elapsed real time, seconds.
    pub fn wall_s(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }

    /// CPU time of the whole process, seconds.
    pub fn cpu_s(&self) -> f64 {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }
}

/// How the names of run directories begin: RFC 3339, UTC, to the second, without the colons that some file
/// systems refuse.
pub const FILE_NAME_TIME: &str = "%Y-%m-%dT%H-%M-%SZ";

/// When the run in `directory` began, by the directory's name; `None` if somebody renamed it.
pub fn began(directory: &Path) -> Option<DateTime<Utc>> {
    let name = directory.file_name()?.to_str()?;
    let at = NaiveDateTime::parse_and_remainder(name, FILE_NAME_TIME).ok()?.0;
    Some(at.and_utc())
}

/// Writes the instants of a run that began at `base` as dates and times, UTC, to the microsecond.
pub fn stamps_from(base: DateTime<Utc>) -> impl Fn(Instant) -> String {
    move |at| {
        let since = TimeDelta::nanoseconds(i64::try_from(at.as_nanos()).unwrap_or(i64::MAX));
        let at = base.checked_add_signed(since).unwrap_or(base);
        at.format("%Y-%m-%d %H:%M:%S%.6f").to_string()
    }
}
