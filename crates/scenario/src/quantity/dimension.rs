//! Dimensions of quantities, with their units.

use core::fmt;

use talkpath_units::{Bytes, Duration, Packets, Rate};

/// The kind of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// A time, in nanoseconds.
    Duration,
    /// A data rate, in bits per second.
    Rate,
    /// A size, in bytes.
    Size,
    /// A number of packets.
    Packets,
    /// A number of events per second, in thousandths of an event.
    Frequency,
    /// A multiple of a path's bandwidth-delay product, in thousandths of the product.
    DelayProduct,
}

/// A dimension with its allowed range, in the base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DimensionRange {
    pub(crate) dimension: Dimension,
    pub(crate) least: u64,
    pub(crate) most: u64,
}

/// A quantity, as a number of base units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) dimension: Dimension,
    pub(crate) count: u64,
}

impl Dimension {
    pub(crate) const ALL: [Self; 6] =
        [Self::Duration, Self::Rate, Self::Size, Self::Packets, Self::Frequency, Self::DelayProduct];

    /// The units of the dimension, each with the number of base units in it. The base unit comes first.
    pub(crate) const fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Self::Duration => &[
                ("ns", 1),
                ("us", 1_000),
                ("ms", 1_000_000),
                ("s", 1_000_000_000),
                ("min", 60_000_000_000),
                ("h", 3_600_000_000_000),
            ],
            Self::Rate => &[("bps", 1), ("kbps", 1_000), ("Mbps", 1_000_000), ("Gbps", 1_000_000_000)],
            Self::Size => &[
                ("B", 1),
                ("kB", 1_000),
                ("MB", 1_000_000),
                ("GB", 1_000_000_000),
                ("KiB", 1 << 10),
                ("MiB", 1 << 20),
                ("GiB", 1 << 30),
            ],
            Self::Packets => &[("packets", 1), ("packet", 1)],
            Self::Frequency => &[("mHz", 1), ("Hz", 1_000), ("kHz", 1_000_000)],
            Self::DelayProduct => &[("bdp", 1_000)],
        }
    }

    /// The name of the dimension in messages: "a duration".
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Duration => "a duration",
            Self::Rate => "a rate",
            Self::Size => "a size",
            Self::Packets => "a number of packets",
            Self::Frequency => "a frequency",
            Self::DelayProduct => "a multiple of the bandwidth-delay product",
        }
    }

    /// An example for messages.
    pub(crate) const fn example(self) -> &'static str {
        match self {
            Self::Duration => "20 ms",
            Self::Rate => "1.5 Mbps",
            Self::Size => "64 kB",
            Self::Packets => "16 packets",
            Self::Frequency => "60 Hz",
            Self::DelayProduct => "1 bdp",
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dimension {
            Dimension::Duration => Duration::from_nanos(self.count).fmt(f),
            Dimension::Rate => Rate::from_bps(self.count).fmt(f),
            Dimension::Size => Bytes::new(self.count).fmt(f),
            Dimension::Packets => Packets::new(self.count).fmt(f),
            Dimension::Frequency => {
                // The largest unit comes last, and every count is a multiple of the base unit.
                for (unit, size) in self.dimension.units().iter().rev() {
                    if self.count.is_multiple_of(*size) {
                        return write!(f, "{} {unit}", self.count / size);
                    }
                }
                Ok(())
            }
            Dimension::DelayProduct => write!(f, "{} bdp", self.count as f64 / 1e3),
        }
    }
}

/// Returns the range that has the unit `unit`, and the number of base units in that unit.
pub(super) fn find_unit<'a>(unit: &str, ranges: &'a [DimensionRange]) -> Option<(&'a DimensionRange, u64)> {
    for range in ranges {
        if let Some((_, size)) = range.dimension.units().iter().find(|(name, _)| *name == unit) {
            return Some((range, *size));
        }
    }
    None
}

/// Describes the quantities that a key takes: "a duration such as \"20 ms\"". The forms of two dimensions are
/// joined by "or".
pub(crate) fn expected(ranges: &[DimensionRange]) -> String {
    let forms: Vec<String> = ranges
        .iter()
        .map(|range| format!("{} such as \"{}\"", range.dimension.noun(), range.dimension.example()))
        .collect();
    forms.join(" or ")
}

/// Lists the units of `ranges` for a message. The singular "packet" is left out.
pub(crate) fn unit_list(ranges: &[DimensionRange]) -> String {
    let units = ranges.iter().flat_map(|range| range.dimension.units()).map(|(name, _)| *name);
    units.filter(|name| *name != "packet").collect::<Vec<_>>().join(", ")
}
