//! Reads a Mahimahi file, and writes it as the trace of rates that a scenario reads.
//!
//! A *delivery* is one IP packet of 1500 B that leaves a link. Each line of the file has the time of one
//! delivery. Other loggers write the same form with other units, or with times since 1970.

use std::collections::BTreeMap;

use talkpath_path::RateTrace;
use talkpath_units::{Rate, counted};

use crate::args::TimeUnit;
use crate::path_changes::rate as format_rate;

/// The bits of a delivery: an IP packet of 1500 B, as in Mahimahi.
const DELIVERY_BITS: u64 = 12_000;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A time of at least this many milliseconds is a time since 1970, because it is in 1973 or later, and no run
/// lasts as long.
const FIRST_MS_SINCE_1970: u64 = 100_000_000_000;

/// The seconds since 1970 from the year 1990 to 2100. If such a number were milliseconds, the trace would
/// begin a week to a month and a half after time 0, which no trace does.
const SECONDS_SINCE_1970: core::ops::Range<u64> = 631_152_000..4_102_444_800;

/// Below this mean rate, in bit/s, the description says that the times may be in another unit. We chose eight
/// deliveries a second, because hardly any link in use is as slow. A trace in microseconds that is read as
/// milliseconds appears 1000 times slower than it is, so it is mostly below this rate.
const SLOW_RATE_BPS: u64 = 100_000;

/// The times of deliveries.
pub(crate) struct Deliveries {
    /// The time in the first line, in `unit`.
    first_time: u64,
    unit: TimeUnit,
    /// Whether the user named the unit. Otherwise it was guessed.
    is_unit_given: bool,
    /// The time of each delivery in nanoseconds since the first delivery, in increasing order.
    nanos_since_first: Vec<u64>,
}

impl Deliveries {
    /// Reads a whole number from each line that is not empty. If `unit` is `None`, the unit is guessed by
    /// the first time.
    ///
    /// # Errors
    /// Returns a message with the number of the first line that is not a whole number, or that is earlier
    /// than the line before. Returns an error, too, if all lines are empty.
    pub(crate) fn read(text: &str, unit: Option<TimeUnit>) -> Result<Self, String> {
        let mut times: Vec<u64> = Vec::new();
        for (line_number, line) in (1_u32..).zip(text.lines().map(str::trim)) {
            if line.is_empty() {
                continue;
            }
            let time = line.parse().map_err(|_| {
                let line_start: String = line.chars().take(40).collect();
                format!(
                    "line {line_number}: found {line_start:?}, expected a whole number. For a table add a first line that \
                     names its columns, such as `time_s rate_mbps`"
                )
            })?;
            if times.last().is_some_and(|time_before| *time_before > time) {
                return Err(format!(
                    "line {line_number}: found {time}, which is earlier than the line before"
                ));
            }
            times.push(time);
        }
        let Some(&first_time) = times.first() else { return Err("found no line".to_owned()) };
        let is_unit_given = unit.is_some();
        if !is_unit_given && SECONDS_SINCE_1970.contains(&first_time) {
            return Err(format!(
                "found {first_time}, which is a time since 1970 in seconds: too coarse for the times of packets. Expected milliseconds, \
                 or microseconds or nanoseconds since 1970; --unit of `talkpath trace` says another"
            ));
        }
        let unit = unit.unwrap_or_else(|| guess_unit(first_time));
        let nanos_since_first =
            times.iter().map(|time| (time - first_time).saturating_mul(unit.nanos())).collect();
        Ok(Self { first_time, unit, is_unit_given, nanos_since_first })
    }

    /// Describes the deliveries by their number, their times and their rates.
    pub(crate) fn in_words(&self) -> String {
        let Self { first_time, unit, nanos_since_first, .. } = self;
        let is_since_1970 = self.is_since_1970();
        let mut text = format!(
            "{} over {} s, from {first_time} {} on{}",
            counted(nanos_since_first.len(), "delivery"),
            self.length_nanos() as f64 / NANOS_PER_SECOND as f64,
            unit.word(),
            if is_since_1970 { ", since 1970" } else { "" }
        );
        if let Some(mean_bps) = self.mean_rate_bps() {
            text += &format!("; {} in the mean, with packets of 1500 B", format_bps(mean_bps));
            if mean_bps < SLOW_RATE_BPS && *unit == TimeUnit::Ms && !self.is_unit_given {
                let rate_in_microseconds = format_bps(mean_bps.saturating_mul(1000));
                text += &format!(
                    ", which is slow for a link; if the times are microseconds, --unit us reads {rate_in_microseconds}"
                );
            }
        }
        if self.length_nanos() >= 2 * NANOS_PER_SECOND {
            let PerSecond { fewest, most } = self.count_per_second();
            let least_rate = format_bps(DELIVERY_BITS * fewest);
            let most_rate = format_bps(DELIVERY_BITS * most);
            text += &format!("; {least_rate} to {most_rate} within a second");
        }
        if let Some((length, from)) = self.longest_hole() {
            let seconds = |nanos: u64| nanos as f64 / NANOS_PER_SECOND as f64;
            text += &format!(
                "; the longest time without a delivery is {} s, from {} s on",
                seconds(length),
                seconds(from)
            );
        }
        if *first_time > 0 || *unit != TimeUnit::Ms {
            text += "; a scenario takes milliseconds from the run's beginning: -o FILE writes it so";
        }
        text
    }

    /// Whether the times are not milliseconds from the beginning of the trace: they are since 1970 or in
    /// another unit, or the first delivery is later than the trace is long.
    pub(crate) fn begins_elsewhere(&self) -> bool {
        let first = self.first_time.saturating_mul(self.unit.nanos());
        self.unit != TimeUnit::Ms || self.is_since_1970() || first > self.length_nanos()
    }

    fn is_since_1970(&self) -> bool {
        self.first_time >= FIRST_MS_SINCE_1970 && guess_unit(self.first_time) == self.unit
    }

    /// The time of the first delivery: `1700000000000 ms, since 1970`.
    pub(crate) fn first_in_words(&self) -> String {
        let since_1970 = if self.is_since_1970() { ", since 1970" } else { "" };
        format!("{} {}{since_1970}", self.first_time, self.unit.word())
    }

    /// Returns the longest time between two deliveries, and when it begins, in nanoseconds since the first
    /// delivery. `None` if all deliveries have the same time.
    fn longest_hole(&self) -> Option<(u64, u64)> {
        let holes = self.nanos_since_first.windows(2).map(|pair| (pair[1] - pair[0], pair[0]));
        holes.rev().max_by_key(|(length, _)| *length).filter(|(length, _)| *length > 0)
    }

    /// Returns the time from the first to the last delivery.
    fn length_nanos(&self) -> u64 {
        self.nanos_since_first.last().copied().unwrap_or(0)
    }

    /// Returns the mean rate in bit/s. The first delivery only begins the time that is measured, so its bits
    /// do not count. Returns `None` if all deliveries have the same time.
    fn mean_rate_bps(&self) -> Option<u64> {
        let counted_bits = u128::from(DELIVERY_BITS) * (self.nanos_since_first.len() as u128 - 1);
        let bits_and_nanos = counted_bits * u128::from(NANOS_PER_SECOND);
        bits_and_nanos.checked_div(u128::from(self.length_nanos())).map(|bps| bps as u64)
    }

    /// Counts the deliveries in each whole second. The last second is left out, because it is not whole.
    fn count_per_second(&self) -> PerSecond {
        let whole_seconds = self.length_nanos() / NANOS_PER_SECOND;
        // A second without a delivery has no entry, so a trace with a very long gap needs little memory.
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for nanos in &self.nanos_since_first {
            let second = nanos / NANOS_PER_SECOND;
            if second < whole_seconds {
                *counts.entry(second).or_default() += 1;
            }
        }
        let has_empty_second = (counts.len() as u64) < whole_seconds;
        let fewest = if has_empty_second { 0 } else { counts.values().min().copied().unwrap_or(0) };
        PerSecond { fewest, most: counts.values().max().copied().unwrap_or(0) }
    }

    /// Writes the trace that `rate = { trace = FILE }` reads: the time of each delivery in milliseconds since
    /// the first one, rounded to a whole number.
    pub(crate) fn as_trace(&self) -> String {
        let mut text = String::new();
        for nanos in &self.nanos_since_first {
            let rounded_ms = nanos.saturating_add(500_000) / 1_000_000;
            text.push_str(&format!("{rounded_ms}\n"));
        }
        if text.parse::<RateTrace>().is_err() {
            // All deliveries are in the same millisecond, but a trace must last for some time. A further
            // delivery makes it last 1 ms.
            text.push_str("1\n");
        }
        text
    }
}

/// The number of deliveries in the whole second with the fewest, and in the one with the most.
struct PerSecond {
    fewest: u64,
    most: u64,
}

fn format_bps(bps: u64) -> String {
    format_rate(Rate::from_bps(bps))
}

/// Guesses the unit of a time. A large number is a time since 1970. In each unit, these limits are in 1973,
/// and the next larger limit is in the year 5138. A small number is in milliseconds, as in Mahimahi.
const fn guess_unit(time: u64) -> TimeUnit {
    match time {
        100_000_000_000_000_000.. => TimeUnit::Ns,
        100_000_000_000_000.. => TimeUnit::Us,
        _ => TimeUnit::Ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_since_1970_become_times_from_the_first_one() {
        let ms = Deliveries::read("1700000000000\n1700000000010\n1700000000020\n", None).unwrap();
        assert_eq!(ms.as_trace(), "0\n10\n20\n");
        let words = ms.in_words();
        assert!(
            words.starts_with("3 deliveries over 0.02 s, from 1700000000000 ms on, since 1970"),
            "{words}"
        );
        assert!(words.contains("1.2 Mb/s in the mean") && words.contains("-o FILE writes it so"), "{words}");
        let us = Deliveries::read("1700000000000000\n1700000000010000\n", None).unwrap();
        assert_eq!(us.as_trace(), "0\n10\n");
    }

    #[test]
    fn a_trace_that_is_slow_in_milliseconds_is_asked_for_its_unit() {
        let lines = "0\n10000\n20000\n";
        let words = Deliveries::read(lines, None).unwrap().in_words();
        assert!(words.contains("if the times are microseconds, --unit us reads 1.2 Mb/s"), "{words}");
        for unit in [TimeUnit::Ms, TimeUnit::Us] {
            let words = Deliveries::read(lines, Some(unit)).unwrap().in_words();
            assert!(!words.contains("--unit"), "{words}");
        }
    }

    #[test]
    fn a_unit_that_is_said_holds() {
        let us = Deliveries::read("0\n5000\n10000\n", Some(TimeUnit::Us)).unwrap();
        assert_eq!(us.as_trace(), "0\n5\n10\n");
        assert!(us.in_words().contains("over 0.01 s, from 0 us on"), "{}", us.in_words());
    }

    #[test]
    fn the_extremes_are_those_of_whole_seconds() {
        let text: String =
            (0..1000).chain((1000..2000).step_by(10)).chain([2000]).map(|ms| format!("{ms}\n")).collect();
        let words = Deliveries::read(&text, None).unwrap().in_words();
        assert!(words.contains("1.2 Mb/s to 12 Mb/s within a second"), "{words}");
    }

    #[test]
    fn a_busy_second_after_a_long_gap_is_the_one_with_the_most_deliveries() {
        let words = Deliveries::read("0\n100000\n100000\n102000\n", None).unwrap().in_words();
        assert!(words.contains("0 kb/s to 24 kb/s within a second"), "{words}");
    }

    #[test]
    fn deliveries_at_the_same_time_have_neither_a_rate_nor_a_time_without_a_delivery() {
        let words = Deliveries::read("5\n5\n", None).unwrap().in_words();
        let says = "2 deliveries over 0 s, from 5 ms on; a scenario takes milliseconds from the run's beginning: -o FILE \
                    writes it so";
        assert_eq!(words, says);
    }

    #[test]
    fn a_line_that_is_no_time_is_refused_with_the_header_to_add() {
        let why = |text: &str| Deliveries::read(text, None).err().unwrap();
        assert!(
            why("0\n1.5\n").contains("line 2: found \"1.5\"")
                && why("0\n1.5\n").contains("`time_s rate_mbps`")
        );
        assert!(why("5\n4\n").contains("line 2: found 4, which is earlier"));
        assert_eq!(why("\n"), "found no line");
        assert!(why("1700000000\n1700000000\n").contains("since 1970 in seconds: too coarse"));
        assert!(Deliveries::read("1700000000\n", Some(TimeUnit::Ms)).is_ok());
    }
}
