//! Messages about units that a key does not take.

use talkpath_units::Rate;

use super::decimal::{Decimal, Product};
use super::dimension::{Dimension, DimensionRange, expected, find_unit, unit_list};
use super::problem::{Problem, quote};

/// Returns the problem with `unit`, which is not a unit of `ranges`. `number` is the number before the
/// unit.
pub(super) fn unknown_unit(unit: &str, number: &str, ranges: &[DimensionRange]) -> Problem {
    let of_unit =
        Dimension::ALL.into_iter().find(|dimension| dimension.units().iter().any(|(name, _)| *name == unit));
    if let Some(dimension) = of_unit {
        return unit_of_other_dimension(unit, number, dimension, ranges);
    }
    let problem =
        Problem::new(format!("found the unit {}, expected one of {}", quote(unit), unit_list(ranges)));
    match spelling_help(unit, number, ranges) {
        Some(help) => problem.with_help(help),
        None => problem,
    }
}

fn unit_of_other_dimension(
    unit: &str,
    number: &str,
    dimension: Dimension,
    ranges: &[DimensionRange],
) -> Problem {
    let message = format!(
        "found {}, {}; expected {}",
        quote(&format!("{number} {unit}")),
        dimension.noun(),
        expected(ranges)
    );
    let help = if dimension == Dimension::Frequency && takes_rate(ranges) {
        "a `cbr` workload takes messages a second as `message_rate`".to_owned()
    } else {
        format!("units: {}", unit_list(ranges))
    };
    Problem::new(message).with_help(help)
}

fn takes_rate(ranges: &[DimensionRange]) -> bool {
    ranges.iter().any(|range| range.dimension == Dimension::Rate)
}

fn spelling_help(unit: &str, number: &str, ranges: &[DimensionRange]) -> Option<String> {
    if takes_rate(ranges)
        && let Some(unit_bytes) = bytes_per_second(unit)
    {
        return Some(bits_help(number, unit_bytes));
    }
    if let Some(similar) = similar_unit(unit, ranges) {
        return Some(format!("did you mean \"{number} {similar}\"?"));
    }
    // Some people write m for minutes, and others leave out a letter of ms.
    if unit == "m" && find_unit("ms", ranges).is_some() {
        return Some(format!("did you mean \"{number} ms\" or \"{number} min\"?"));
    }
    if unit.starts_with([',', '_']) {
        return Some("digits are not grouped, and the decimal sign is a point".to_owned());
    }
    if unit.starts_with(['e', 'E']) {
        return Some("write the number out, without an exponent".to_owned());
    }
    None
}

/// Returns the number of bytes in a unit such as `MB/s` or `MBps`. Such a unit differs from one of bits in
/// the B alone.
fn bytes_per_second(unit: &str) -> Option<u64> {
    let size_unit = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps"))?;
    let size_unit = if size_unit == "KB" { "kB" } else { size_unit };
    Dimension::Size.units().iter().find(|(name, _)| *name == size_unit).map(|(_, bytes)| *bytes)
}

/// Converts a rate in bytes to one in bits. `unit_bytes` is the number of bytes in its unit.
fn bits_help(number: &str, unit_bytes: u64) -> String {
    let bytes = match Decimal::parse(number).map(|decimal| decimal.times(unit_bytes)) {
        Some(Product::Exact(bytes)) => Some(bytes),
        _ => None,
    };
    match bytes.and_then(|bytes| bytes.checked_mul(8)) {
        Some(bits) => format!("a rate counts bits: did you mean \"{}\"?", Rate::from_bps(bits)),
        None => "a rate counts bits, 8 to a byte".to_owned(),
    }
}

/// Returns the unit of `ranges` that is spelled similarly: with other letters, or with another case.
fn similar_unit(unit: &str, ranges: &[DimensionRange]) -> Option<&'static str> {
    for (spelling, correct) in OTHER_SPELLINGS {
        if spelling.eq_ignore_ascii_case(unit) && find_unit(correct, ranges).is_some() {
            return Some(correct);
        }
    }
    let mut units = ranges.iter().flat_map(|range| range.dimension.units()).map(|(name, _)| *name);
    units.find(|name| name.eq_ignore_ascii_case(unit))
}

/// Other spellings of units, each with the spelling of scenario files.
pub(super) const OTHER_SPELLINGS: &[(&str, &str)] = &[
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("mins", "min"),
    ("minute", "min"),
    ("minutes", "min"),
    ("hr", "h"),
    ("hour", "h"),
    ("hours", "h"),
    ("msec", "ms"),
    ("msecs", "ms"),
    ("milliseconds", "ms"),
    ("usec", "us"),
    ("µs", "us"),
    ("μs", "us"),
    ("microseconds", "us"),
    ("nsec", "ns"),
    ("nanoseconds", "ns"),
    ("bit/s", "bps"),
    ("b/s", "bps"),
    ("kbit/s", "kbps"),
    ("kb/s", "kbps"),
    ("kbit", "kbps"),
    ("Mbit/s", "Mbps"),
    ("Mb/s", "Mbps"),
    ("Mbit", "Mbps"),
    ("Gbit/s", "Gbps"),
    ("Gb/s", "Gbps"),
    ("Gbit", "Gbps"),
    ("K", "kbps"),
    ("M", "Mbps"),
    ("G", "Gbps"),
    ("Mb", "Mbps"),
    ("Kb", "kbps"),
    ("Gb", "Gbps"),
    ("M", "MB"),
    ("G", "GB"),
    ("byte", "B"),
    ("bytes", "B"),
    ("octets", "B"),
    ("k", "kB"),
    ("kbytes", "kB"),
    ("kib", "KiB"),
    ("pkt", "packets"),
    ("pkts", "packets"),
    ("p", "packets"),
    ("segments", "packets"),
];
