//! Points in time, spans between them, and differences of two hosts' clocks, all in integer nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since the run began, on one host's clock.
///
/// Two instants of different hosts must not be compared before clock correction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time in nanoseconds, never negative. As text the bare number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(u64);

/// A difference of two clock readings in nanoseconds; between two hosts' clocks it can be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignedDuration(i64);

impl Instant {
    /// The run's beginning.
    pub const ZERO: Self = Self(0);
    /// Later than any instant that a run reaches (584 years).
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the run's beginning.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// The instant `us` microseconds after the run's beginning.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// The instant `ms` milliseconds after the run's beginning.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// The instant `s` seconds after the run's beginning.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// Nanoseconds since the run's beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the run's beginning, for printing and for floats inside a controller.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span since `earlier`; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The signed difference `self - other`, as for a one-way delay between two hosts' clocks.
    pub const fn signed_since(self, other: Self) -> SignedDuration {
        SignedDuration(self.0.wrapping_sub(other.0) as i64)
    }

    /// `self + span`, stopping at [`Instant::MAX`].
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// `self - span`, stopping at the run's beginning.
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// The span nearest to `s` seconds; zero for a negative or undefined `s`, [`Duration::MAX`] past the
    /// range.
    pub fn from_secs_f64(s: f64) -> Self {
        // A float-to-integer `as` saturates and maps NaN to zero, which is the documented behaviour.
        Self(libm::round(s * 1e9) as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Milliseconds, for printing.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds, for printing and for floats inside a controller.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, stopping at zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self + other`, stopping at [`Duration::MAX`].
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// `self × factor`, stopping at [`Duration::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl SignedDuration {
    /// No difference.
    pub const ZERO: Self = Self(0);

    /// A difference of `ns` nanoseconds.
    pub const fn from_nanos(ns: i64) -> Self {
        Self(ns)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Milliseconds, for printing.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The size of the difference, without its sign.
    pub const fn abs(self) -> Duration {
        Duration(self.0.unsigned_abs())
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        self.0 += span.0;
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Duration {
    type Output = Self;
    /// Panics in debug builds if `other` is longer: use `saturating_sub` for input.
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    /// Rounds down.
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Sub for SignedDuration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for SignedDuration {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl From<core::time::Duration> for Duration {
    fn from(span: core::time::Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for core::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_nanos(span.0)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Display for Duration {
    /// The largest unit in which the span is a whole number: `20 ms`, `1500 us`, `5 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0 => (0, "s"),
            ns if ns % 1_000_000_000 == 0 => (ns / 1_000_000_000, "s"),
            ns if ns % 1_000_000 == 0 => (ns / 1_000_000, "ms"),
            ns if ns % 1_000 == 0 => (ns / 1_000, "us"),
            ns => (ns, "ns"),
        };
        write!(f, "{value} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_two_hosts_clocks_can_be_negative() {
        let sent = Instant::from_millis(30);
        let received = Instant::from_millis(10);
        assert_eq!(received.signed_since(sent), SignedDuration::from_nanos(-20_000_000));
        assert_eq!(received.since(sent), Duration::ZERO);
    }

    #[test]
    fn a_span_prints_in_its_largest_whole_unit() {
        assert_eq!(Duration::from_micros(1500).to_string(), "1500 us");
        assert_eq!(Duration::from_secs(60).to_string(), "60 s");
        assert_eq!(Duration::ZERO.to_string(), "0 s");
    }

    #[test]
    fn seconds_out_of_range_saturate_and_undefined_ones_are_zero() {
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(1e300), Duration::MAX);
        assert_eq!(Duration::from_secs_f64(0.02), Duration::from_millis(20));
    }
}
