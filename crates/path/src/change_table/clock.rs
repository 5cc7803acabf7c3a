//! The times of a table: numbers in the unit that the column's name says, or dates.
//!
//! Times count from the beginning of the run. If the first time is later than any run lasts, as times since
//! 1970 and dates are, all count from the first one. Dates are those of ISO 8601, with a `T` or a blank
//! before the time of day. A date without a zone is taken as UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use talkpath_units::Duration;

use crate::rate_trace::{TraceMistake, quoted};

/// What the column of times holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TimeColumn {
    /// Numbers. The unit in nanoseconds.
    Number(f64),
    Date,
}

/// Reads the times of a table, row by row.
#[derive(Debug)]
pub(super) struct Clock {
    column: TimeColumn,
    /// `None` before the first row.
    first: Option<FirstTime>,
    /// The cell and the time of the row before.
    previous: (String, Duration),
    /// Whether a date had no zone.
    assumes_utc: bool,
    doubt: Option<String>,
}

/// From which time all times count.
#[derive(Clone, Copy, Debug)]
enum FirstTime {
    RunBegins,
    /// In the column's unit.
    Number(f64),
    Date(Timestamp),
}

/// No row is later than this: 11 days and a half, as in scenarios.
const MOST_NANOS: f64 = 1e15;

/// The columns of times and their units in nanoseconds.
const UNITS: [(&str, f64); 4] = [("time_s", 1e9), ("time_ms", 1e6), ("time_us", 1e3), ("time_ns", 1.0)];

/// A time since 1970 of a trace lies in this range of seconds, 1990 to 2100. We chose it because there were
/// no traces of rates before. A time in this range is outside of it in every other unit.
const PLAUSIBLE_SECONDS: core::ops::Range<f64> = 631_152_000.0..4_102_444_800.0;

impl Clock {
    pub(super) const fn new(column: TimeColumn) -> Self {
        Self {
            column,
            first: None,
            previous: (String::new(), Duration::ZERO),
            assumes_utc: false,
            doubt: None,
        }
    }

    /// Reads the time of a row, counted from the beginning of the run.
    pub(super) fn read(&mut self, cell: &str) -> Result<Duration, TraceMistake> {
        let at = match self.column {
            TimeColumn::Number(unit) => self.read_number(cell, unit)?,
            TimeColumn::Date => self.read_date(cell)?,
        };
        let (earlier, earlier_at) = &self.previous;
        if at < *earlier_at {
            return Err(self.goes_back(cell, earlier));
        }
        self.previous = (cell.to_owned(), at);
        Ok(at)
    }

    fn goes_back(&self, cell: &str, earlier: &str) -> TraceMistake {
        match self.column {
            TimeColumn::Date => TraceMistake::DateGoesBack { found: quoted(cell), previous: quoted(earlier) },
            TimeColumn::Number(unit) => {
                let seconds = |cell: &str| number(cell).unwrap_or(0.0) * unit / 1e9;
                TraceMistake::TimeGoesBack { found: seconds(cell), previous: seconds(earlier) }
            }
        }
    }

    fn read_number(&mut self, cell: &str, unit: f64) -> Result<Duration, TraceMistake> {
        let most = MOST_NANOS / unit;
        let wrong = || TraceMistake::NoTimeOfRow { found: quoted(cell), most };
        let number = match number(cell) {
            Some(number) => number,
            None if date(cell).is_some() => {
                return Err(TraceMistake::DateUnderNumber { found: quoted(cell) });
            }
            None => return Err(wrong()),
        };
        let first = match self.first {
            Some(first) => first,
            None => {
                let first = self.first_number(number, unit)?;
                self.first = Some(first);
                first
            }
        };
        let FirstTime::Number(first) = first else {
            let is_within = (0.0..=most).contains(&number);
            return if is_within { Ok(nanos(number * unit)) } else { Err(wrong()) };
        };
        // In the column's own unit, because whole numbers below 2^53 are exact.
        let passed = number - first;
        if passed < 0.0 {
            return Err(self.goes_back(cell, &self.previous.0));
        }
        if passed > most {
            return Err(wrong());
        }
        // To the microsecond: a float of seconds since 1970 is no finer.
        Ok(nanos((passed * unit / 1e3).round() * 1e3))
    }

    /// Returns from which time the numbers of a column count. `number` is the first of the column.
    fn first_number(&mut self, number: f64, unit: f64) -> Result<FirstTime, TraceMistake> {
        let is_plausible = |unit: f64| PLAUSIBLE_SECONDS.contains(&(number * unit / 1e9));
        let other = UNITS.iter().find(|(_, other)| is_plausible(*other)).map(|(name, _)| *name);
        if number * unit <= MOST_NANOS {
            if let Some(other) = other {
                self.doubt = Some(format!(
                    "the first time is {number}, which in {other} is a time since 1970 ({}): then call the column {other}",
                    self.date_of(number, other)
                ));
            }
            return Ok(FirstTime::RunBegins);
        }
        if is_plausible(unit) {
            return Ok(FirstTime::Number(number));
        }
        let found = quoted(&number.to_string());
        let right = other.map_or_else(String::new, |other| {
            format!("; in {other} it is {}: call the column {other}", self.date_of(number, other))
        });
        Err(TraceMistake::NoTimeSince1970 {
            found,
            year: ((number * unit / 1e9 / SECONDS_OF_A_YEAR) as u64).saturating_add(1970),
            right,
        })
    }

    /// The date of a time since 1970 in the unit of the column `name`.
    fn date_of(&self, number: f64, name: &str) -> String {
        let unit = UNITS.iter().find(|(known, _)| *known == name).map_or(1e9, |(_, unit)| *unit);
        date_of_seconds(number * unit / 1e9)
    }

    fn read_date(&mut self, cell: &str) -> Result<Duration, TraceMistake> {
        let no_date = || TraceMistake::NoDate { found: quoted(cell) };
        let (date, has_zone) = date(cell).ok_or_else(no_date)?;
        self.assumes_utc |= !has_zone;
        let first = *self.first.get_or_insert(FirstTime::Date(date));
        let FirstTime::Date(first) = first else { return Err(no_date()) };
        let passed = date.as_nanosecond() - first.as_nanosecond();
        match u64::try_from(passed) {
            Err(_) => Err(self.goes_back(cell, &self.previous.0)),
            Ok(passed) if passed as f64 > MOST_NANOS => {
                Err(TraceMistake::NoTimeOfRow { found: quoted(cell), most: MOST_NANOS / 1e9 })
            }
            Ok(passed) => Ok(Duration::from_nanos(passed)),
        }
    }

    /// The first time of the file, if all times count from it: `1700000000 s, 2023-11-14T22:13:20Z`.
    pub(super) fn origin(&self) -> Option<String> {
        match self.first? {
            FirstTime::RunBegins => None,
            FirstTime::Number(number) => {
                let TimeColumn::Number(unit) = self.column else { return None };
                let seconds = number * unit / 1e9;
                Some(format!("{seconds} s, {}", date_of_seconds(seconds)))
            }
            FirstTime::Date(date) => {
                let zone = if self.assumes_utc { " (no zone is stated: taken as UTC)" } else { "" };
                Some(format!("{date}{zone}"))
            }
        }
    }

    /// Says what is implausible in the first time. `None` if nothing is.
    pub(super) fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }
}

/// The Julian year (IAU), of 365.25 days.
const SECONDS_OF_A_YEAR: f64 = 31_557_600.0;

fn number(cell: &str) -> Option<f64> {
    cell.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Reads a date, and whether it has a zone.
fn date(cell: &str) -> Option<(Timestamp, bool)> {
    if let Ok(date) = cell.parse::<Timestamp>() {
        return Some((date, true));
    }
    let date: DateTime = cell.parse().ok()?;
    Some((TimeZone::UTC.to_timestamp(date).ok()?, false))
}

/// The date, to the second, that is `seconds` after 1970.
fn date_of_seconds(seconds: f64) -> String {
    Timestamp::from_second(seconds as i64).map_or_else(|_| "no date".to_owned(), |date| date.to_string())
}

fn nanos(number: f64) -> Duration {
    Duration::from_nanos(number.round() as u64)
}
