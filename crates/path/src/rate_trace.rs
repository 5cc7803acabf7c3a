//! A rate as it was recorded: mahimahi's packet-delivery traces (Netravali et al., *Mahimahi: Accurate
//! Record-and-Replay for HTTP*, 2015; the format is that of its `mm-link`).
//!
//! Each line is a moment in whole milliseconds from the trace's beginning, never lower than the line before,
//! at which the link may deliver 1504 bytes; a moment is written once for each such opportunity. The trace
//! repeats with the last line as its period. What is not used at an opportunity is gone. A packet may be
//! spread over several opportunities and leaves with its last one; packets that wait share what is left of an
//! opportunity. A packet uses only opportunities after its arrival: mahimahi spends those of the present
//! millisecond before it takes in a packet.
//!
//! mahimahi counts four bytes of the TUN device's header with each packet, which is why 1504 bytes carry one
//! packet of 1500; so does this. Unlike mahimahi, which lets a partly sent packet leave its queue's count and
//! keeps an untouched head in it, the packet at the head here is always in service: `in_service = true` on a
//! drop-tail queue counts it.

use std::str::FromStr;
use std::sync::Arc;

use talkpath_units::{Bytes, Duration, Instant, Rate};

/// Delivery opportunities over one period, in order; cheap to clone. At least one, the last after zero.
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
    /// Not a whole number of milliseconds that fits a run.
    #[error("{found:?} is not a whole number of milliseconds")]
    NotMilliseconds {
        /// The line's beginning.
        found: String,
    },
    /// A whole number that no run reaches.
    #[error("{found} ms is later than any run lasts: expected milliseconds from the trace's beginning")]
    TooLate {
        /// The line.
        found: String,
    },
    /// Lower than the line before.
    #[error("{found} ms comes after {previous} ms: moments must not go back")]
    GoesBack {
        /// This line's moment.
        found: u64,
        /// The moment before it.
        previous: u64,
    },
    /// Nothing at all.
    #[error("the trace is empty")]
    Empty,
    /// In a loss trace, something else than a mark.
    #[error("{found:?} is neither 0 (arrives) nor 1 (lost)")]
    NoMark {
        /// The character.
        found: char,
    },
    /// In a delay trace, a line that is no addition.
    #[error("{found:?} is no number of milliseconds from 0 to 86400000 with up to six decimals")]
    NoDelay {
        /// The line's beginning.
        found: String,
    },
    /// In a table of values over time, no name of a column.
    #[error(
        "found {found:?}, expected a header that names the columns with their units, such as `time_s rate_mbps`: one of time_s \
         and time_ms, and one or more of rate_bps, rate_kbps, rate_mbps, delay_s, delay_ms, delay_us, loss, loss_percent"
    )]
    NoHeader {
        /// The name, or the line.
        found: String,
    },
    /// Two columns for one thing.
    #[error("the header names {found:?} beside a column of the same kind")]
    ColumnTwice {
        /// The later name.
        found: String,
    },
    /// A row has more or fewer columns than the header.
    #[error("found {found} columns, expected {expected} as in the header")]
    OtherColumns {
        /// Those of the row.
        found: usize,
        /// Those of the header.
        expected: usize,
    },
    /// No number, or one that no link has.
    #[error("found {found:?}, expected a number from 0 to {most}")]
    NoValue {
        /// The cell's beginning.
        found: String,
        /// The largest, in the column's unit.
        most: f64,
    },
    /// A row is earlier than the row before it.
    #[error("the time {found} s comes after {previous} s: times must not go back")]
    TimeGoesBack {
        /// This row's time, in seconds.
        found: f64,
        /// The time of the row before, in seconds.
        previous: f64,
    },
    /// A header alone.
    #[error("no row follows the header")]
    NoRows,
    /// All moments are zero.
    #[error("the trace ends at 0 ms: it must last for some time")]
    NoTime,
}

/// What one opportunity delivers: an Ethernet-sized packet with its TUN header (mahimahi's `PACKET_SIZE`).
const OPPORTUNITY: Bytes = Bytes::new(1504);
/// The IP packet of an opportunity.
const IP_PACKET: Bytes = Bytes::new(1500);
/// What mahimahi counts with each IP packet: the TUN device's packet information.
const TUN_HEADER: Bytes = Bytes::new(4);
/// No run lasts longer than this; keeps nanoseconds within a tenth of their range.
const LONGEST_MS: u64 = u64::MAX / 1_000_000 / 10;
/// How much of a wrong line an error quotes.
const QUOTED_CHARS: usize = 40;

impl RateTrace {
    /// How long the trace lasts before it repeats.
    pub fn period(&self) -> Duration {
        self.opportunities.last().copied().unwrap_or(Duration::MAX)
    }

    /// The first delivery opportunity.
    pub fn first(&self) -> Duration {
        self.opportunities.first().copied().unwrap_or(Duration::MAX)
    }

    /// What it delivers in the mean of a period, in packets of 1500 B; rounded down.
    pub fn mean_rate(&self) -> Rate {
        rate_over(self.opportunities.len() as u64, self.period())
    }

    /// The same if the first line were the beginning of time: `None` if all lines are the same.
    pub fn mean_rate_from_first(&self) -> Option<Rate> {
        let length = self.period().saturating_sub(self.first());
        (!length.is_zero()).then(|| rate_over(self.opportunities.len() as u64 - 1, length))
    }

    /// Whether each millisecond of a period has as many opportunities as any other, or one more: so are
    /// traces of a constant rate.
    pub fn is_steady(&self) -> bool {
        let ms = |moment: &Duration| moment.as_nanos().div_ceil(1_000_000).max(1);
        let mut counts = std::collections::BTreeMap::<u64, u64>::new();
        for moment in self.opportunities.iter() {
            *counts.entry(ms(moment)).or_default() += 1;
        }
        let has_all = counts.len() as u64 == ms(&self.period());
        let least = if has_all { counts.values().min().copied().unwrap_or(0) } else { 0 };
        counts.values().all(|count| *count <= least + 1)
    }

    /// Delivery opportunities in one period.
    pub fn opportunities(&self) -> &[Duration] {
        &self.opportunities
    }
}

impl FromStr for RateTrace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let mut opportunities: Vec<Duration> = Vec::new();
        let mut previous = 0;
        for (line, found) in (1..).zip(text.lines()) {
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

/// The rate of `packets` full packets in `length`.
fn rate_over(packets: u64, length: Duration) -> Rate {
    let bits = u128::from(packets) * u128::from(IP_PACKET.get()) * 8;
    let bps = bits * 1_000_000_000 / u128::from(length.as_nanos().max(1));
    Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
}

/// The beginning of a wrong line.
pub(crate) fn quoted(line: &str) -> String {
    line.chars().take(QUOTED_CHARS).collect()
}

/// A trace being played.
#[derive(Debug)]
pub(crate) struct TraceClock {
    trace: RateTrace,
    /// When the present repetition of the trace began.
    began: Instant,
    /// Index of the next opportunity in it.
    next: usize,
    /// The last opportunity used ...
    current: Instant,
    /// ... and the bytes of it that are left.
    left: Bytes,
}

impl TraceClock {
    /// The trace begins with the run.
    pub(crate) fn new(trace: RateTrace) -> Self {
        Self { trace, began: Instant::ZERO, next: 0, current: Instant::ZERO, left: Bytes::ZERO }
    }

    /// A packet comes at `now` and nothing is in service: it uses later opportunities only.
    pub(crate) fn pass_by(&mut self, now: Instant) {
        if self.current <= now {
            self.left = Bytes::ZERO;
            self.skip_to_after(now);
        }
    }

    /// When the last byte of a packet of `size` is delivered, after all that was served before.
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

    /// Passes the opportunities up to `now` by.
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
