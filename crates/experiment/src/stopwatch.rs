//! The start of a command, and how much time the command has taken.

use std::path::Path;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use rustix::time::{ClockId, clock_gettime};
use talkpath_units::Instant;

/// The time format with which the names of run directories begin: RFC 3339, UTC, to the second. Some file
/// systems refuse colons, so hyphens take their place.
pub const FILE_NAME_TIME: &str = "%Y-%m-%dT%H-%M-%SZ";

/// Measures the time of a command.
#[derive(Debug)]
pub struct Stopwatch {
    /// The start by the wall clock, which the user sees.
    start_date: DateTime<Utc>,
    /// The start by the monotonic clock, which nobody can set while the command runs.
    start: std::time::Instant,
}

impl Stopwatch {
    /// Starts a stopwatch.
    pub fn start() -> Self {
        Self { start_date: Utc::now(), start: std::time::Instant::now() }
    }

    /// Returns the start in the form of RFC 3339, in UTC and to the second.
    pub fn started(&self) -> String {
        self.start_date.format("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Returns the start in the form of [`FILE_NAME_TIME`].
    pub fn started_for_file_name(&self) -> String {
        self.start_date.format(FILE_NAME_TIME).to_string()
    }

    /// Returns the real time since the start, in seconds.
    pub fn wall_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Returns the CPU time of the whole process, in seconds.
    pub fn cpu_s(&self) -> f64 {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }
}

/// Returns the start of the run in `directory`, which the directory's name says. Returns `None` if somebody
/// renamed the directory.
pub fn start_of_run(directory: &Path) -> Option<DateTime<Utc>> {
    let name = directory.file_name()?.to_str()?;
    let (start, _rest_of_name) = NaiveDateTime::parse_and_remainder(name, FILE_NAME_TIME).ok()?;
    Some(start.and_utc())
}

/// Returns a function that writes an instant of a run as a date and time, in UTC and to the microsecond. The
/// run began at `start`.
pub fn instant_formatter(start: DateTime<Utc>) -> impl Fn(Instant) -> String {
    move |instant| {
        let since_start = TimeDelta::nanoseconds(i64::try_from(instant.as_nanos()).unwrap_or(i64::MAX));
        // An instant so far away that a date cannot hold it gets the date of the start.
        let date = start.checked_add_signed(since_start).unwrap_or(start);
        date.format("%Y-%m-%d %H:%M:%S%.6f").to_string()
    }
}
