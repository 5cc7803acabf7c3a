//! The unit that was probably meant by a number without a unit.

use super::decimal::{Decimal, Product};
use super::dimension::{Amount, Dimension, DimensionRange};

/// Returns the quantity that was probably meant by `number`, which has no unit. `usual` returns the usual
/// range of a dimension for the key. The result is `None` if the number is in the usual range in no unit.
pub(crate) fn proposal(
    number: &str,
    ranges: &[DimensionRange],
    usual: impl Fn(Dimension) -> Option<(u64, u64)>,
) -> Option<String> {
    let decimal = Decimal::parse(number)?;
    let mut best: Option<Candidate> = None;
    for range in ranges {
        let dimension = range.dimension;
        let Some((usual_least, usual_most)) = usual(dimension) else { continue };
        let middle = (usual_least as f64 * usual_most as f64).sqrt();
        for unit in dimension.bare_units() {
            let Some((_, unit_size)) = dimension.units().iter().find(|(name, _)| *name == unit.name) else {
                continue;
            };
            let Product::Exact(count) = decimal.times(*unit_size) else { continue };
            let plausible = usual_least.max(range.least)..=usual_most.min(range.most);
            if !plausible.contains(&count) {
                continue;
            }
            let distance = (count as f64 / middle).log10().abs() + unit.handicap;
            if best.as_ref().is_none_or(|best| distance < best.distance) {
                best = Some(Candidate { distance, unit: unit.name, amount: Amount { dimension, count } });
            }
        }
    }
    let Candidate { unit, amount, .. } = best?;
    // 1.5 stays 1.5, and minutes stay minutes. 0.5 and 1500 change to the unit in which they read best.
    let is_mixed = !decimal.whole.is_empty() && !decimal.fraction.is_empty();
    if is_mixed || matches!(unit, "min" | "h") {
        Some(format!("{number} {unit}"))
    } else {
        Some(in_largest_unit(amount))
    }
}

/// A quantity that was perhaps meant.
struct Candidate {
    /// The distance from the middle of the usual range, in decades, with the handicap of the unit.
    distance: f64,
    unit: &'static str,
    amount: Amount,
}

/// A unit in which other programs write numbers without a unit.
struct BareUnit {
    name: &'static str,
    /// The number of decades that is added to the distance, because few programs use the unit.
    handicap: f64,
}

impl Dimension {
    /// The units of bare numbers. JSON files, ns-2 and netem have milliseconds, bits per second and bytes, so
    /// we chose these as the likely ones, and a larger handicap for units that are rarer.
    const fn bare_units(self) -> &'static [BareUnit] {
        const fn unit(name: &'static str, handicap: f64) -> BareUnit {
            BareUnit { name, handicap }
        }
        const DURATION: &[BareUnit] = &[
            unit("ms", 0.0),
            unit("s", 0.5),
            unit("us", 1.5),
            unit("ns", 2.0),
            unit("min", 3.0),
            unit("h", 3.0),
        ];
        const RATE: &[BareUnit] =
            &[unit("bps", 0.0), unit("kbps", 0.0), unit("Mbps", 0.0), unit("Gbps", 0.0)];
        const SIZE: &[BareUnit] = &[unit("B", 0.0), unit("kB", 0.5), unit("MB", 1.0), unit("GB", 1.5)];
        const PACKETS: &[BareUnit] = &[unit("packets", 0.0)];
        const FREQUENCY: &[BareUnit] = &[unit("Hz", 0.0), unit("kHz", 0.5), unit("mHz", 1.0)];
        match self {
            Self::Duration => DURATION,
            Self::Rate => RATE,
            Self::Size => SIZE,
            Self::Packets => PACKETS,
            Self::Frequency => FREQUENCY,
            // No program gives it as a bare number.
            Self::DelayProduct => &[],
        }
    }
}

/// Writes an amount in the largest unit in which it is a whole number: `64 kB`.
pub(crate) fn in_largest_unit(amount: Amount) -> String {
    if amount.dimension != Dimension::Size || amount.count == 0 {
        return amount.to_string();
    }
    // A size is displayed in bytes. The units in powers of two, KiB and above, come last and are left out.
    let decimal_units = Dimension::Size.units().iter().take_while(|(name, _)| !name.contains('i'));
    match decimal_units.filter(|(_, size)| amount.count.is_multiple_of(*size)).last() {
        Some((name, size)) => format!("{} {name}", amount.count / size),
        None => amount.to_string(),
    }
}
