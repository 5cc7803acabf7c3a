//! A recorded rate, as one of mahimahi's packet-delivery traces. The format is that of mahimahi's `mm-link`
//! (Netravali et al., *Mahimahi: Accurate Record-and-Replay for HTTP*, 2015).
//!
//! - *opportunity*: a time at which the link may deliver up to 1504 bytes. Each line of a trace is one
//!   opportunity, in whole milliseconds from the beginning of the trace. A time with several opportunities is
//!   written several times. No line is lower than the line before.
//! - *period*: the time of the last line. After it the trace begins again.
//!
//! Bytes that are not used at an opportunity are gone. A large packet uses several opportunities, and leaves
//! with the last of them. Waiting packets share the bytes of an opportunity. A packet uses only opportunities
//! that are later than its arrival, because mahimahi uses the opportunities of a millisecond before it
//! accepts a packet.
//!
//! mahimahi adds the four bytes of the TUN device's header to each packet, so 1504 bytes carry one packet of
//! 1500 bytes. This file does the same. It differs in one point: the packet at the head of the queue is
//! always in service here. mahimahi does not count the head in the queue once a part of it was sent, and
//! counts it before. `in_service = true` on a drop-tail queue always counts it.

use std::str::FromStr;
use std::sync::Arc;

use talkpath_units::{Bytes, Duration, Instant, Rate};

/// The delivery opportunities of one period, in order of time. There is at least one, and the last one is
/// later than the beginning of the trace. A clone is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTrace {
    opportunities: Arc<[Duration]>,
}

/// A trace that cannot be used, and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("line {line}: {mistake}")]
pub struct TraceError {
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub mistake: TraceMistake,
}

/// What can be wrong with a line of a trace.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TraceMistake {
    /// The line is not a whole number of milliseconds.
    #[error("{found:?} is not a whole number of milliseconds")]
    NotMilliseconds {
        /// The line's beginning.
        found: String,
    },
    /// The line is a whole number, but no run lasts so many milliseconds.
    #[error("{found} ms is later than any run lasts: expected milliseconds from the trace's beginning")]
    TooLate {
        /// The line.
        found: String,
    },
    /// The line is lower than the line before.
    #[error("{found} ms comes after {previous} ms: moments must not go back")]
    GoesBack {
        /// This line's moment.
        found: u64,
        /// The moment before it.
        previous: u64,
    },
    /// The trace has no line.
    #[error("the trace is empty")]
    Empty,
    /// A character of a loss trace is not one of its two marks.
    #[error("{found:?} is neither 0 (arrives) nor 1 (lost)")]
    NoMark {
        /// The character.
        found: char,
    },
    /// A line of a delay trace is not a delay.
    #[error("{found:?} is no number of milliseconds from 0 to 86400000 with up to six decimals")]
    NoDelay {
        /// The line's beginning.
        found: String,
    },
    /// The first line of a table of values over time does not name the columns.
    #[error(
        "found {found:?}, expected a header that names the columns with their units, such as `time_s rate_mbps`: one of time_s, \
         time_ms, time_us, time_ns and time (dates), and one or more of rate_bps, rate_kbps, rate_mbps, delay_s, delay_ms, \
         delay_us, rtt_s, rtt_ms, rtt_us, loss, loss_percent; a column that begins with up_ or down_ is about one direction, \
         as in up_kbps"
    )]
    NoHeader {
        /// The name, or the line.
        found: String,
    },
    /// The header of a table names a time alone.
    #[error("found {found:?} alone, expected a value beside the time, as in `time_s rate_mbps`")]
    NoValueColumn {
        /// The line.
        found: String,
    },
    /// The name of a column says bytes a second.
    #[error(
        "{found:?} is in bytes a second, and rates are in bits: multiply by 8, and call the column rate_{bits}bps"
    )]
    RateInBytes {
        /// The name.
        found: String,
        /// The prefix of the unit in bits: `m`.
        bits: String,
    },
    /// The header of a table names two columns for the same quantity.
    #[error("the header names {found:?} beside a column of the same kind")]
    ColumnTwice {
        /// The later name.
        found: String,
    },
    /// A row has more or fewer columns than the header.
    #[error(
        "found {found} columns, expected {expected} as in the header{}",
        if *has_comma { "; a comma separates columns here. With decimal commas separate the columns by semicolons" } else { "" }
    )]
    OtherColumns {
        /// The number of columns of the row.
        found: usize,
        /// The number of columns of the header.
        expected: usize,
        /// Whether commas made more columns than the header has.
        has_comma: bool,
    },
    /// A row has no rate.
    #[error(
        "{column} is empty; write 0 where nothing was delivered, and leave out rows that were not measured: the row before then holds"
    )]
    EmptyRate {
        /// The name of the column.
        column: String,
    },
    /// A cell of a table is not a number, or it is a value that no link can have.
    #[error("found {found:?}, expected a number from 0 to {most}")]
    NoValue {
        /// The cell's beginning.
        found: String,
        /// The largest, in the column's unit.
        most: f64,
    },
    /// A loss that is a share is above 1.
    #[error(
        "found {found:?} under `loss`, which has shares from 0 to 1; a column of per cent is called `loss_percent`"
    )]
    PerCentAsShare {
        /// The cell's beginning.
        found: String,
    },
    /// The time of a row is not a number, or is later than any run lasts.
    #[error(
        "found {found:?}, expected a time from 0 to {most}, or one since 1970; of times in a finer unit the column is called \
         time_ms, time_us or time_ns, and of dates `time`"
    )]
    NoTimeOfRow {
        /// The cell's beginning.
        found: String,
        /// The latest, in the column's unit.
        most: f64,
    },
    /// The first time is later than any run lasts, and implausible as a time since 1970.
    #[error("found {found}, which as time since 1970 is in the year {year}{right}")]
    NoTimeSince1970 {
        /// The number.
        found: String,
        /// The year that the number would be in.
        year: u64,
        /// The column that it fits, with its semicolon. Empty if none does.
        right: String,
    },
    /// A cell of the column `time` is no date.
    #[error(
        "found {found:?} under `time`, expected a date such as 2026-11-29T14:00:00Z or 2026-11-29 14:00:00; a column of numbers \
         has its unit in its name: time_s, time_ms, time_us or time_ns"
    )]
    NoDate {
        /// The cell's beginning.
        found: String,
    },
    /// A cell of a column of numbers is a date.
    #[error("found the date {found:?}; a column of dates is called `time`")]
    DateUnderNumber {
        /// The cell's beginning.
        found: String,
    },
    /// A date is earlier than that of the row before.
    #[error(
        "the date {found} comes after {previous}: times must not go back. Local time does when summer time ends: write UTC, or the \
         zone of each date, as in 2026-10-25T02:30:00+01:00"
    )]
    DateGoesBack {
        /// This row's date.
        found: String,
        /// The date of the row before.
        previous: String,
    },
    /// A row is earlier than the row before it.
    #[error("the time {found} s comes after {previous} s: times must not go back")]
    TimeGoesBack {
        /// This row's time, in seconds.
        found: f64,
        /// The time of the row before, in seconds.
        previous: f64,
    },
    /// A table has a header but no row.
    #[error("no row follows the header")]
    NoRows,
    /// All lines are zero, so the trace has no length.
    #[error("the trace ends at 0 ms: it must last for some time")]
    NoTime,
}

/// The number of bytes that an opportunity delivers: an IP packet with its TUN header (mahimahi's
/// `PACKET_SIZE`).
const OPPORTUNITY: Bytes = Bytes::new(1504);
/// The largest IP packet that one opportunity delivers.
const IP_PACKET: Bytes = Bytes::new(1500);
/// The packet information of the TUN device, which mahimahi adds to the size of each IP packet.
const TUN_HEADER: Bytes = Bytes::new(4);
/// The latest opportunity, in milliseconds. We chose a tenth of the range of 64-bit nanoseconds, so that sums
/// of such times cannot overflow. No run is that long.
const LONGEST_MS: u64 = u64::MAX / 1_000_000 / 10;
/// The number of characters of a wrong line that an error quotes.
const QUOTED_CHARS: usize = 40;

impl RateTrace {
    /// Returns the time after which the trace repeats.
    pub fn period(&self) -> Duration {
        self.opportunities.last().copied().unwrap_or(Duration::MAX)
    }

    /// Returns the time of the first delivery opportunity.
    pub fn first(&self) -> Duration {
        self.opportunities.first().copied().unwrap_or(Duration::MAX)
    }

    /// Returns the mean rate of a period in packets of 1500 B, rounded down.
    pub fn mean_rate(&self) -> Rate {
        rate_over(self.opportunities.len() as u64, self.period())
    }

    /// Returns the mean rate between the first opportunity and the last. Returns `None` if all lines are the
    /// same. The first opportunity begins this time, so what it delivers is not counted.
    pub fn mean_rate_from_first(&self) -> Option<Rate> {
        let length = self.period().saturating_sub(self.first());
        (!length.is_zero()).then(|| rate_over(self.opportunities.len() as u64 - 1, length))
    }

    /// Returns true if the trace has a constant rate. Then the numbers of opportunities in any two
    /// milliseconds of a period differ by at most one, because the rate need not be a whole number for each
    /// millisecond.
    pub fn is_steady(&self) -> bool {
        let millisecond = |moment: &Duration| moment.as_nanos().div_ceil(1_000_000).max(1);
        let mut counts = std::collections::BTreeMap::<u64, u64>::new();
        for moment in self.opportunities.iter() {
            *counts.entry(millisecond(moment)).or_default() += 1;
        }
        let has_every_millisecond = counts.len() as u64 == millisecond(&self.period());
        let fewest = if has_every_millisecond { counts.values().min().copied().unwrap_or(0) } else { 0 };
        counts.values().all(|count| *count <= fewest + 1)
    }

    /// Returns the delivery opportunities of one period.
    pub fn opportunities(&self) -> &[Duration] {
        &self.opportunities
    }
}

impl FromStr for RateTrace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let mut opportunities: Vec<Duration> = Vec::new();
        let mut previous = 0;
        for (line, found) in (1..).zip(without_mark(text).lines()) {
            let not_milliseconds = || TraceMistake::NotMilliseconds { found: quoted(found) };
            let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
            let ms = match found.trim().parse() {
                Ok(ms) if ms <= LONGEST_MS => ms,
                _ if is_whole(found.trim()) => {
                    let found = quoted(found.trim());
                    return Err(TraceError { line, mistake: TraceMistake::TooLate { found } });
                }
                _ => return Err(TraceError { line, mistake: not_milliseconds() }),
            };
            if ms < previous {
                return Err(TraceError { line, mistake: TraceMistake::GoesBack { found: ms, previous } });
            }
            opportunities.push(Duration::from_millis(ms));
            previous = ms;
        }
        match (opportunities.len(), previous) {
            (0, _) => Err(TraceError { line: 1, mistake: TraceMistake::Empty }),
            (line, 0) => Err(TraceError { line, mistake: TraceMistake::NoTime }),
            _ => Ok(Self { opportunities: opportunities.into() }),
        }
    }
}

/// Returns the rate of `packets` full packets in `length`.
fn rate_over(packets: u64, length: Duration) -> Rate {
    let bits = u128::from(packets) * u128::from(IP_PACKET.get()) * 8;
    let bps = bits * 1_000_000_000 / u128::from(length.as_nanos().max(1));
    Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
}

/// Returns the text without the byte order mark (U+FEFF) that some programs write before UTF-8.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns the beginning of a wrong line, for an error.
pub(crate) fn quoted(line: &str) -> String {
    line.chars().take(QUOTED_CHARS).collect()
}

/// The position in a trace that a link follows.
#[derive(Debug)]
pub(crate) struct TraceClock {
    trace: RateTrace,
    /// The time at which this repetition of the trace began.
    began: Instant,
    /// The index of the next opportunity of this repetition.
    next: usize,
    /// The time of the opportunity that is being used.
    current: Instant,
    /// The bytes of that opportunity that are not used yet.
    left: Bytes,
}

impl TraceClock {
    /// Begins a trace at the beginning of a run.
    pub(crate) fn new(trace: RateTrace) -> Self {
        Self { trace, began: Instant::ZERO, next: 0, current: Instant::ZERO, left: Bytes::ZERO }
    }

    /// Skips the opportunities up to `now`, because a packet arrives at `now` and nothing is in service.
    pub(crate) fn pass_by(&mut self, now: Instant) {
        if self.current <= now {
            self.left = Bytes::ZERO;
            self.skip_to_after(now);
        }
    }

    /// Returns the time at which the last byte of a packet of `size` is delivered. The packet follows all
    /// packets that were served before.
    pub(crate) fn serve(&mut self, size: Bytes) -> Instant {
        let mut missing = size.saturating_add(TUN_HEADER);
        loop {
            let taken = missing.min(self.left);
            missing -= taken;
            self.left -= taken;
            if missing == Bytes::ZERO || self.current == Instant::MAX {
                return self.current;
            }
            self.advance();
        }
    }

    /// Goes to the next opportunity.
    fn advance(&mut self) {
        let Some(&offset) = self.trace.opportunities.get(self.next) else {
            self.began = self.began.saturating_add(self.trace.period());
            self.next = 0;
            return;
        };
        self.current = self.began.saturating_add(offset);
        self.left = OPPORTUNITY;
        self.next += 1;
    }

    /// Skips the opportunities up to `now`.
    fn skip_to_after(&mut self, now: Instant) {
        let period = self.trace.period();
        let repetitions = now.since(self.began).as_nanos() / period.as_nanos().max(1);
        if repetitions > 0 {
            self.began = self.began.saturating_add(period.saturating_mul(repetitions));
            self.next = 0;
        }
        let into = now.since(self.began);
        let passed = self.trace.opportunities[self.next..].partition_point(|&offset| offset <= into);
        self.next += passed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    impl TraceClock {
        /// When a packet of `size` that came at `came` is delivered.
        fn serve_from(&mut self, size: Bytes, came: Instant) -> Instant {
            self.pass_by(came);
            self.serve(size)
        }
    }

    fn clock(text: &str) -> TraceClock {
        TraceClock::new(text.parse().expect("a good trace"))
    }

    #[test]
    fn full_packets_take_one_opportunity_each_and_the_trace_repeats() {
        let mut clock = clock("1\n1\n4\n10\n");
        let finishes: Vec<Instant> = (0..9).map(|_| clock.serve_from(Bytes::new(1500), ms(0))).collect();
        assert_eq!(finishes, [1, 1, 4, 10, 11, 11, 14, 20, 21].map(ms));
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_span_several() {
        let mut clock = clock("5\n");
        // 3 x (498 + 4) = 1506: the third needs two bytes of the second opportunity.
        let finishes: Vec<Instant> = (0..3).map(|_| clock.serve_from(Bytes::new(498), ms(0))).collect();
        assert_eq!(finishes, [5, 5, 10].map(ms));
        // 1502 are left there; 3000 + 4 take them and 1502 of the third.
        assert_eq!(clock.serve_from(Bytes::new(3000), ms(0)), ms(15));
    }

    #[test]
    fn what_nobody_waited_for_is_gone() {
        let mut clock = clock("5\n");
        assert_eq!(clock.serve_from(Bytes::new(96), ms(0)), ms(5));
        // 1404 bytes are left, but a packet that arrives at that very moment has missed them.
        assert_eq!(clock.serve_from(Bytes::new(96), ms(5)), ms(10));
        // One that came before has not.
        assert_eq!(clock.serve_from(Bytes::new(96), ms(9)), ms(10));
        // A long silence passes by whole repetitions.
        assert_eq!(clock.serve_from(Bytes::new(96), ms(5_000_001)), ms(5_000_005));
        assert_eq!(clock.serve_from(Bytes::new(96), ms(6_000_000)), ms(6_000_005));
        // The moment of arrival itself is missed even where nobody used it.
        assert_eq!(self::clock("5\n8\n").serve_from(Bytes::new(96), ms(5)), ms(8));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let mistake = |text: &str| text.parse::<RateTrace>().expect_err("a bad trace");
        let not_milliseconds = |line, found: &str| TraceError {
            line,
            mistake: TraceMistake::NotMilliseconds { found: found.to_owned() },
        };
        assert_eq!(mistake("1\nx\n"), not_milliseconds(2, "x"));
        assert_eq!(mistake("1\n\n2\n"), not_milliseconds(2, ""));
        assert_eq!(mistake("-1\n"), not_milliseconds(1, "-1"));
        for number in ["18446744073709551615", "1402530000000000", "99999999999999999999999"] {
            let mistake = mistake(&format!("{number}\n"));
            assert_eq!(mistake.mistake, TraceMistake::TooLate { found: number.to_owned() });
        }
        assert_eq!(
            mistake("3\n2\n"),
            TraceError { line: 2, mistake: TraceMistake::GoesBack { found: 2, previous: 3 } }
        );
        assert_eq!(mistake(""), TraceError { line: 1, mistake: TraceMistake::Empty });
        assert_eq!(mistake("0\n0\n"), TraceError { line: 2, mistake: TraceMistake::NoTime });
        assert_eq!(mistake("3\n2\n").to_string(), "line 2: 2 ms comes after 3 ms: moments must not go back");
    }

    #[test]
    fn the_mean_rate_counts_packets_of_1500_bytes() {
        let trace: RateTrace = "10\n20\n30\n40\n".parse().unwrap();
        assert_eq!(
            (trace.mean_rate(), trace.first()),
            (Rate::from_bps(1_200_000), Duration::from_millis(10))
        );
        let epoch: RateTrace = "1402530000010\n1402530000020\n1402530000030\n".parse().unwrap();
        assert_eq!(epoch.mean_rate(), Rate::from_bps(0));
        assert_eq!(epoch.mean_rate_from_first(), Some(Rate::from_bps(1_200_000)));
        assert_eq!("5\n".parse::<RateTrace>().unwrap().mean_rate_from_first(), None);
    }

    #[test]
    fn a_trace_of_a_constant_rate_is_steady() {
        let is_steady = |text: &str| text.parse::<RateTrace>().unwrap().is_steady();
        for text in ["1\n", "1\n1\n1\n", "2\n4\n6\n", "1\n1\n2\n2\n2\n", "0\n1\n2\n3\n"] {
            assert!(is_steady(text), "{text:?}");
        }
        for text in ["2\n2\n3\n3\n4\n5\n5\n", "10\n10\n10\n", "1\n1\n4\n10\n"] {
            assert!(!is_steady(text), "{text:?}");
        }
    }

    #[test]
    fn windows_line_ends_are_read() {
        assert_eq!("1\r\n2\r\n".parse::<RateTrace>(), "1\n2".parse());
    }
}
