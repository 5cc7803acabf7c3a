//! Reads the schedule of a campaign.

use jiff::civil::DateTime;
use jiff::tz::TimeZoneDatabase;
use talkpath_units::{Duration, counted};

use super::types::Schedule;
use crate::diagnostic::Log;
use crate::keys::SCHEDULE;
use crate::quantity::{Problem, quote};
use crate::read::{KeyPath, nearest};
use crate::section::Section;
use crate::tree::Table;

/// Reads `[schedule]`. Returns `None` if a key of it is missing or wrong.
pub(super) fn read_schedule(root: &Table, log: &mut Log) -> Option<Schedule> {
    let entry = root.entry("schedule")?;
    let at = KeyPath::ROOT.key("schedule");
    let section = Section::new(entry.node.as_table()?, SCHEDULE.keys, at, &entry.place);
    // The keys are read before the first `?`, so that one mistake does not hide another.
    let zone = section.text("zone")?.to_owned();
    if let Err(problem) = check_zone(&zone) {
        section.problem("zone", problem, log);
    }
    let start = read_start(&section, log);
    let every = section.duration("every");
    let start_within = section.duration("start_within")?;
    let window = section.duration("window").or(every);
    if let Some(window) = window {
        check_start_within(start_within, window, &section, log);
    }
    let schedule = Schedule {
        zone,
        start,
        every: every?,
        days: section.count("days")?,
        day: section.duration("day")?,
        start_within,
        window: window?,
        retry: section.duration("retry")?,
    };
    check_every(&schedule, &section, log);
    Some(schedule)
}

/// Checks that the time zone database, which is a part of the program, has a zone called `name`.
fn check_zone(name: &str) -> Result<(), Problem> {
    let database = TimeZoneDatabase::bundled();
    if database.get(name).is_ok() {
        return Ok(());
    }
    let known_names: Vec<String> = database.available().map(|zone| zone.to_string()).collect();
    let help = match nearest(name, known_names.iter().map(String::as_str)) {
        Some(similar) => format!("did you mean \"{similar}\"?"),
        None => "such as \"UTC\" or \"Europe/Berlin\"".to_owned(),
    };
    let message = format!("found {}, expected a zone of the IANA time zone database", quote(name));
    Err(Problem::new(message).with_help(help))
}

/// Reads `start`, for example `2026-12-01 06:00`. Seconds may follow.
fn read_start(section: &Section<'_>, log: &mut Log) -> Option<DateTime> {
    let text = section.text("start")?;
    let start = text.trim().parse().ok();
    if start.is_none() {
        let message =
            format!("found {}, expected a date and a time such as \"2026-12-01 06:00\"", quote(text));
        section.problem("start", message, log);
    }
    start
}

/// Checks that a measurement with the longest random delay still begins in its window.
fn check_start_within(start_within: Duration, window: Duration, section: &Section<'_>, log: &mut Log) {
    if start_within > window {
        let message = format!(
            "found {start_within}, expected at most {window}, the window in which a measurement may begin"
        );
        section.problem("start_within", message, log);
    }
}

/// Checks that the campaign measures at least once, and at most [`MAX_SLOTS`] times.
fn check_every(schedule: &Schedule, section: &Section<'_>, log: &mut Log) {
    let Schedule { every, days, day, .. } = *schedule;
    if every > day.saturating_mul(days) {
        let message =
            format!("found {every}, expected at most the whole campaign, {} of {day}", counted(days, "day"));
        section.problem("every", message, log);
    }
    // The product of nanoseconds and days can be above 2^64.
    let slots = u128::from(day.as_nanos()) * u128::from(days) / u128::from(every.as_nanos());
    if slots > u128::from(MAX_SLOTS) {
        let message = format!("found {every}, expected at most {MAX_SLOTS} times in the whole campaign");
        section.problem("every", message, log);
    }
}

/// We chose 100,000 times of measurement, one a minute for two months, because the whole plan is in memory.
const MAX_SLOTS: u64 = 100_000;
