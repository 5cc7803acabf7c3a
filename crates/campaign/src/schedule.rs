//! From a schedule to moments: by the clocks of its time zone.
//!
//! Times are counted on the calendar and then looked up in the zone (the IANA time zone database, built in),
//! so that "every 6 h" is at the same hours before and after summer time begins. A time that a clock skips is
//! taken as long after the gap as it would have been without it, and one that it shows twice at the first
//! (RFC 5545 §3.3.5, as for recurring events). A moment that a later time falls on again is taken once.

use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use talkpath_scenario::campaign::Schedule;
use talkpath_units::{Duration, Instant};

/// One time at which every pair is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// From 0.
    pub number: u64,
    /// The campaign's day, from 1.
    pub day: u64,
    /// What the zone's clocks show: `2026-12-01 06:00:00`.
    pub local: String,
    /// Nanoseconds since the Unix epoch.
    pub at: Instant,
}

/// Every time of `schedule`, in order. `made` is when the plan is made: the beginning, if the file has none.
///
/// # Errors
/// What is beyond the calendar.
pub fn slots(schedule: &Schedule, made: Instant) -> Result<Vec<Slot>, String> {
    let zone = zone(&schedule.zone)?;
    let start = match schedule.start {
        Some(start) => start,
        None => whole_second(made, &zone)?,
    };
    let whole = schedule.day.saturating_mul(schedule.days);
    let mut slots: Vec<Slot> = Vec::new();
    let mut since = Duration::ZERO;
    while since < whole {
        let civil = later(start, since)?;
        let zoned = zone.to_ambiguous_zoned_datetime(civil).compatible().map_err(|why| why.to_string())?;
        let at = u64::try_from(zoned.timestamp().as_nanosecond())
            .map_err(|_| format!("{civil} is before 1970, or too far ahead"))?;
        let (at, local) = (Instant::from_nanos(at), zoned.datetime().strftime("%F %T").to_string());
        if slots.last().is_none_or(|last| last.at < at) {
            let (number, day) = (slots.len() as u64, since.as_nanos() / schedule.day.as_nanos() + 1);
            slots.push(Slot { number, day, local, at });
        }
        since = since.saturating_add(schedule.every);
    }
    Ok(slots)
}

/// What clocks of the time zone `name` show at `at`, as in [`Slot::local`]; UTC if there is no such zone.
pub(crate) fn local(name: &str, at: Instant) -> String {
    let seconds = i64::try_from(at.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX);
    let at = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    zone(name).unwrap_or(TimeZone::UTC).to_datetime(at).strftime("%F %T").to_string()
}

fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZoneDatabase::bundled().get(name).map_err(|why| why.to_string())
}

/// The first whole second from `at` on, on the zone's clocks.
fn whole_second(at: Instant, zone: &TimeZone) -> Result<DateTime, String> {
    let seconds = at.as_nanos().div_ceil(1_000_000_000);
    let seconds = i64::try_from(seconds).map_err(|why| why.to_string())?;
    let at = Timestamp::from_second(seconds).map_err(|why| why.to_string())?;
    Ok(zone.to_datetime(at))
}

fn later(start: DateTime, since: Duration) -> Result<DateTime, String> {
    let nanos = i64::try_from(since.as_nanos()).map_err(|_| "the campaign is too long".to_owned())?;
    start.checked_add(SignedDuration::from_nanos(nanos)).map_err(|why| why.to_string())
}
