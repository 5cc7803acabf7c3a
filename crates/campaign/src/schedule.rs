//! The slots of a schedule, by the clocks of its time zone.
//!
//! The local times of the slots are counted on the calendar. Then each local time is looked up in the time
//! zone (the IANA time zone database, built in). So "every 6 h" means the same hours before and after summer
//! time begins. If the clocks skip a local time, the slot is later by the length of the gap. If the clocks
//! show a local time twice, the slot is at the first of the two (RFC 5545 §3.3.5, as for recurring events).
//! If two local times give the same moment, there is one slot.

use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use talkpath_scenario::campaign::Schedule;
use talkpath_units::{Duration, Instant};

/// The format of a local time, such as `2026-12-01 06:00:00`.
const LOCAL_FORMAT: &str = "%F %T";

/// One time at which every pair of hosts is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The number of the slot, from 0.
    pub number: u64,
    /// The campaign's day, from 1.
    pub day: u64,
    /// The local time of the slot: `2026-12-01 06:00:00`.
    pub local: String,
    /// The time of the slot, nanoseconds since the Unix epoch.
    pub at: Instant,
}

/// Returns the slots of `schedule`, in order of time. `made` is the time at which the plan is made. It is the
/// beginning of the campaign if the file has no `start`.
///
/// # Errors
/// Returns a text if a time is beyond the calendar, or if the time zone is unknown.
pub fn slots(schedule: &Schedule, made: Instant) -> Result<Vec<Slot>, String> {
    let zone = zone(&schedule.zone)?;
    let start = match schedule.start {
        Some(start) => start,
        None => whole_second(made, &zone)?,
    };
    let campaign_length = schedule.day.saturating_mul(schedule.days);
    let mut slots: Vec<Slot> = Vec::new();
    let mut since_start = Duration::ZERO;
    while since_start < campaign_length {
        let local_time = add(start, since_start)?;
        let zoned =
            zone.to_ambiguous_zoned_datetime(local_time).compatible().map_err(|error| error.to_string())?;
        let at = u64::try_from(zoned.timestamp().as_nanosecond())
            .map(Instant::from_nanos)
            .map_err(|_| format!("{local_time} is before 1970, or too far ahead"))?;
        // A local time that the clocks skip can give the same moment as the next local time.
        let is_new = slots.last().is_none_or(|last| last.at < at);
        if is_new {
            slots.push(Slot {
                number: slots.len() as u64,
                day: since_start.as_nanos() / schedule.day.as_nanos() + 1,
                local: zoned.datetime().strftime(LOCAL_FORMAT).to_string(),
                at,
            });
        }
        since_start = since_start.saturating_add(schedule.every);
    }
    Ok(slots)
}

/// Returns the local time at `at` in the time zone called `name`, written as in [`Slot::local`]. Returns the
/// time in UTC if the time zone is unknown.
pub(crate) fn local(name: &str, at: Instant) -> String {
    let seconds = i64::try_from(at.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX);
    let at = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    zone(name).unwrap_or(TimeZone::UTC).to_datetime(at).strftime(LOCAL_FORMAT).to_string()
}

fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZoneDatabase::bundled().get(name).map_err(|error| error.to_string())
}

/// Returns the local time of the first whole second that is not before `at`.
fn whole_second(at: Instant, zone: &TimeZone) -> Result<DateTime, String> {
    let seconds = at.as_nanos().div_ceil(1_000_000_000);
    let seconds = i64::try_from(seconds).map_err(|error| error.to_string())?;
    let at = Timestamp::from_second(seconds).map_err(|error| error.to_string())?;
    Ok(zone.to_datetime(at))
}

/// Adds a time to a local time on the calendar, without regard to summer time.
fn add(start: DateTime, duration: Duration) -> Result<DateTime, String> {
    let nanos = i64::try_from(duration.as_nanos()).map_err(|_| "the campaign is too long".to_owned())?;
    start.checked_add(SignedDuration::from_nanos(nanos)).map_err(|error| error.to_string())
}
