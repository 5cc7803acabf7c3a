//! Deliveries as mahimahi and other loggers write them: a time in each line, at which one packet was
//! delivered.

use talkpath_path::RateTrace;
use talkpath_units::{Rate, counted};

use crate::args::TimeUnit;
use crate::path_changes::rate;

/// The times of deliveries, from the first one on.
pub(super) struct Deliveries {
    /// The first time, in `unit`.
    first: u64,
    unit: TimeUnit,
    /// Whether the user named the unit.
    unit_is_given: bool,
    /// Nanoseconds since the first time, in order.
    times: Vec<u64>,
}

/// Times in milliseconds since 1970 are above this since 1973, and no run lasts as long.
const SINCE_1970_MS: u64 = 100_000_000_000;
/// Bits of a delivery: an IP packet of 1500 B, as in mahimahi.
const BITS: u64 = 12_000;
const SECOND: u64 = 1_000_000_000;
/// Bit/s below which we ask whether the times are in another unit: eight packets of 1500 B a second. We chose
/// it because hardly any link in use is as slow, and a trace read as a thousandth of its rate mostly is.
const SLOW: u64 = 100_000;

impl Deliveries {
    /// Reads a whole number in each line. Without a `unit`, the times are in milliseconds, or in the unit in
    /// which they are times since 1970.
    ///
    /// # Errors
    /// Returns the line that is no such number, or that is earlier than the line before.
    pub(super) fn read(text: &str, unit: Option<TimeUnit>) -> Result<Self, String> {
        let mut written: Vec<u64> = Vec::new();
        for (number, line) in (1_u32..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let time = line.trim().parse().map_err(|_| {
                let found: String = line.trim().chars().take(40).collect();
                format!(
                    "line {number}: found {found:?}, expected a whole number. For a table add a first line that names its \
                     columns, such as `time_s rate_mbps`"
                )
            })?;
            if written.last().is_some_and(|last| *last > time) {
                return Err(format!("line {number}: found {time}, which is earlier than the line before"));
            }
            written.push(time);
        }
        let Some(&first) = written.first() else { return Err("found no line".to_owned()) };
        let unit_is_given = unit.is_some();
        let unit = unit.unwrap_or_else(|| unit_since_1970(first));
        let times = written.iter().map(|time| (time - first).saturating_mul(unit.nanos())).collect();
        Ok(Self { first, unit, unit_is_given, times })
    }

    /// The number of deliveries, their times and their rates.
    pub(super) fn in_words(&self) -> String {
        let Self { first, unit, unit_is_given, times } = self;
        let length = times.last().copied().unwrap_or(0);
        let since =
            if unit_since_1970(*first) == *unit && *first >= SINCE_1970_MS { ", since 1970" } else { "" };
        let mut text = format!(
            "{} over {} s, from {first} {} on{since}",
            counted(times.len(), "delivery"),
            length as f64 / 1e9,
            unit.word()
        );
        if length > 0 {
            let mean = (u128::from(BITS) * (times.len() as u128 - 1) * u128::from(SECOND)
                / u128::from(length)) as u64;
            text += &format!("; {} in the mean, with packets of 1500 B", rate(Rate::from_bps(mean)));
            if mean < SLOW && *unit == TimeUnit::Ms && !unit_is_given {
                let in_microseconds = rate(Rate::from_bps(mean.saturating_mul(1000)));
                text += &format!(
                    ", which is slow for a link; if the times are microseconds, --unit us reads {in_microseconds}"
                );
            }
        }
        if length >= 2 * SECOND {
            let (least, most) = self.extremes(length);
            let [least, most] = [least, most].map(|count| rate(Rate::from_bps(BITS * count)));
            text += &format!("; {least} to {most} within a second");
        }
        if *first > 0 || *unit != TimeUnit::Ms {
            text += "; a scenario takes milliseconds from the run's beginning: -o FILE writes it so";
        }
        text
    }

    /// The least and the greatest number of deliveries in a whole second.
    fn extremes(&self, length: u64) -> (u64, u64) {
        let mut counts =
            vec![0_u64; usize::try_from(length / SECOND).unwrap_or(0).min(self.times.len() * 4 + 1)];
        for time in &self.times {
            if let Some(count) = usize::try_from(time / SECOND).ok().and_then(|second| counts.get_mut(second))
            {
                *count += 1;
            }
        }
        (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0))
    }

    /// The trace that `rate = { trace = FILE }` reads: milliseconds from the first delivery on, rounded. If
    /// all deliveries fall on one millisecond, the trace is as long as that.
    pub(super) fn as_trace(&self) -> String {
        let ms = |nanos: &u64| nanos.saturating_add(500_000) / 1_000_000;
        let mut lines: Vec<String> = self.times.iter().map(|time| ms(time).to_string()).collect();
        let text = lines.join("\n") + "\n";
        if text.parse::<RateTrace>().is_err() {
            // A trace must last for some time.
            lines.push("1".to_owned());
            return lines.join("\n") + "\n";
        }
        text
    }
}

/// The unit in which `time` is one since 1970; milliseconds if it is none.
const fn unit_since_1970(time: u64) -> TimeUnit {
    match time {
        // From 1973 to 5138 in each unit.
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
    fn a_line_that_is_no_time_is_refused_with_the_header_to_add() {
        let why = |text: &str| Deliveries::read(text, None).err().unwrap();
        assert!(
            why("0\n1.5\n").contains("line 2: found \"1.5\"")
                && why("0\n1.5\n").contains("`time_s rate_mbps`")
        );
        assert!(why("5\n4\n").contains("line 2: found 4, which is earlier"));
        assert_eq!(why("\n"), "found no line");
    }
}
