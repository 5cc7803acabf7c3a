//! Rates, byte counts and packet counts.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

use crate::counted::counted;

/// A rate in bits per second, at the layer that its owner names. As text the bare number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(u64);

/// A count of bytes, at the layer that its owner names. As text the bare count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(u64);

/// A count of packets. As text the bare count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Packets(u64);

impl Rate {
    /// A rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
}

macro_rules! count {
    ($name:ident) => {
        impl $name {
            /// None.
            pub const ZERO: Self = Self(0);
            /// As many as can be counted.
            pub const MAX: Self = Self(u64::MAX);

            /// This many.
            pub const fn new(count: u64) -> Self {
                Self(count)
            }

            /// The bare count.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// `self - other`, stopping at zero.
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// `self + other`, stopping at the maximum.
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }

        impl core::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
                counts.fold(Self::ZERO, Self::saturating_add)
            }
        }
    };
}

count!(Bytes);
count!(Packets);

impl fmt::Display for Rate {
    /// The largest unit in which the rate is a whole number: `1500 kbps`, `2 Mbps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            bps if bps > 0 && bps % 1_000_000_000 == 0 => (bps / 1_000_000_000, "Gbps"),
            bps if bps > 0 && bps % 1_000_000 == 0 => (bps / 1_000_000, "Mbps"),
            bps if bps > 0 && bps % 1_000 == 0 => (bps / 1_000, "kbps"),
            bps => (bps, "bps"),
        };
        write!(f, "{value} {unit}")
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.0, "packet"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_prints_in_its_largest_whole_unit() {
        assert_eq!(Rate::from_bps(1_500_000).to_string(), "1500 kbps");
        assert_eq!(Rate::from_bps(10_000_000).to_string(), "10 Mbps");
        assert_eq!(Rate::from_bps(1).to_string(), "1 bps");
    }
}
