//! Losses and delay additions as they were recorded, packet by packet.
//!
//! | trace | text | a packet takes |
//! | --- | --- | --- |
//! | [`LossTrace`] | `0` (it arrives) and `1` (it is lost), with or without space between | the next mark |
//! | [`DelayTrace`] | one addition a line, milliseconds with up to six decimals | the next line |
//!
//! What follows `#` in a line is a remark. A trace begins with the link's first packet on the wire and
//! repeats. The formats are this project's own: there is no common one (chosen; docs/models/path.md).

use std::str::FromStr;
use std::sync::Arc;

use talkpath_units::Duration;

use crate::rate_trace::{TraceError, TraceMistake, quoted};

/// Which packets were lost, in order; cheap to clone. At least one mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossTrace {
    marks: Arc<[bool]>,
}

/// What was added to each packet's delay, in order; cheap to clone. At least one addition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTrace {
    additions: Arc<[Duration]>,
}

impl LossTrace {
    /// For each packet of one period, whether it is lost.
    pub fn marks(&self) -> &[bool] {
        &self.marks
    }

    /// The share of its packets that are lost.
    pub fn share(&self) -> f64 {
        self.marks.iter().filter(|lost| **lost).count() as f64 / self.marks.len().max(1) as f64
    }
}

impl DelayTrace {
    /// For each packet of one period, what it adds.
    pub fn additions(&self) -> &[Duration] {
        &self.additions
    }

    /// What it adds to a packet in the mean, rounded down to a nanosecond.
    pub fn mean(&self) -> Duration {
        let sum: u128 = self.additions.iter().map(|addition| u128::from(addition.as_nanos())).sum();
        Duration::from_nanos(u64::try_from(sum / self.additions.len().max(1) as u128).unwrap_or(u64::MAX))
    }

    /// The most that it adds to a packet.
    pub fn largest(&self) -> Duration {
        self.additions.iter().copied().max().unwrap_or(Duration::ZERO)
    }
}

impl FromStr for LossTrace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let mut marks = Vec::new();
        for (line, found) in (1..).zip(text.lines()) {
            for mark in without_remark(found).chars().filter(|mark| !mark.is_whitespace()) {
                match mark {
                    '0' => marks.push(false),
                    '1' => marks.push(true),
                    found => return Err(TraceError { line, mistake: TraceMistake::NoMark { found } }),
                }
            }
        }
        if marks.is_empty() {
            return Err(TraceError { line: 1, mistake: TraceMistake::Empty });
        }
        Ok(Self { marks: marks.into() })
    }
}

impl FromStr for DelayTrace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let mut additions = Vec::new();
        for (line, whole) in (1..).zip(text.lines()) {
            let found = without_remark(whole).trim();
            if found.is_empty() {
                continue;
            }
            let mistake = || TraceError { line, mistake: TraceMistake::NoDelay { found: quoted(found) } };
            additions.push(milliseconds(found).ok_or_else(mistake)?);
        }
        if additions.is_empty() {
            return Err(TraceError { line: 1, mistake: TraceMistake::Empty });
        }
        Ok(Self { additions: additions.into() })
    }
}

fn without_remark(line: &str) -> &str {
    line.split_once('#').map_or(line, |(before, _)| before)
}

/// `12` or `12.345678` milliseconds, exactly.
fn milliseconds(text: &str) -> Option<Duration> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_plain = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_plain(whole) || !is_plain(decimals) || decimals.len() > DECIMALS {
        return None;
    }
    let whole: u64 = whole.parse().ok().filter(|&ms| ms <= LONGEST_MS)?;
    let nanoseconds: u64 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
    Some(Duration::from_nanos(whole * 1_000_000 + nanoseconds))
}

/// A millisecond has a million nanoseconds.
const DECIMALS: usize = 6;
/// A day: past any delay, and far from overflow.
const LONGEST_MS: u64 = 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_additions_are_read_past_remarks_and_white_space() {
        let loss: LossTrace = "# measured on a train\n0 0 1\r\n10\n".parse().unwrap();
        assert_eq!(loss.marks(), [false, false, true, true, false]);
        let delay: DelayTrace = "0\n12.5 # a handover\n\n0.000001\r\n".parse().unwrap();
        let nanos: Vec<_> = delay.additions().iter().map(|addition| addition.as_nanos()).collect();
        assert_eq!(nanos, [0, 12_500_000, 1]);
    }

    #[test]
    fn shares_and_means_are_those_of_one_period() {
        let loss: LossTrace = "0001".parse().unwrap();
        assert!((loss.share() - 0.25).abs() < 1e-12);
        let delay: DelayTrace = "0\n1\n5\n".parse().unwrap();
        assert_eq!((delay.mean(), delay.largest()), (Duration::from_millis(2), Duration::from_millis(5)));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let loss = |text: &str| text.parse::<LossTrace>().unwrap_err();
        assert_eq!(loss("01\n0x\n"), TraceError { line: 2, mistake: TraceMistake::NoMark { found: 'x' } });
        assert_eq!(loss("# nothing\n").mistake, TraceMistake::Empty);
        for bad in ["-1", "1.", ".5", "1e3", "1.0000001", "ms", "99999999999", "1 2"] {
            let error = format!("0\n{bad}\n").parse::<DelayTrace>().unwrap_err();
            assert_eq!((error.line, error.mistake), (2, TraceMistake::NoDelay { found: bad.to_owned() }));
        }
        assert_eq!("".parse::<DelayTrace>().unwrap_err().mistake, TraceMistake::Empty);
    }
}
