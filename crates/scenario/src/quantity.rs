//! Reads quantities with units: `"20 ms"`, `"1.5 Mbps"`, `"64 KiB"`, `"16 packets"`.
//!
//! - A *dimension* is a kind of quantity, such as a duration. Each has a *base unit*: ns, bps, B, packets,
//!   mHz.
//! - An *amount* is a whole number of base units. The scenario runs with exactly the value in the file,
//!   because a value that is finer than the base unit is a mistake and is not rounded.
//! - A *range* is a dimension with the smallest and the largest amount that a key allows.
//! - A *share* is a number from 0 to 1, which may be written in per cent ([`percentage`]).
//!
//! Begin to read with [`parse`].

mod decimal;
mod dimension;
mod problem;
mod proposal;
mod share;
mod unit_help;

use talkpath_units::{Duration, Rate};

use self::decimal::{Decimal, Product};
use self::dimension::find_unit;
pub(crate) use self::dimension::{Amount, Dimension, DimensionRange, expected, unit_list};
pub(crate) use self::problem::{Problem, quote};
pub(crate) use self::proposal::{in_largest_unit, proposal};
pub use self::share::{as_percent, percentage};
pub(crate) use self::share::{bare_one, mixed_shares, percent_help};
use self::unit_help::unknown_unit;

/// Reads `text` as a quantity of one of `ranges`.
///
/// # Errors
/// Returns the reason if `text` is not a quantity, has another unit, is out of range, or is finer than the
/// base unit.
pub(crate) fn parse(text: &str, ranges: &[DimensionRange]) -> Result<Amount, Problem> {
    let found = quote(text);
    let trimmed = text.trim();
    let (is_negative, unsigned) = match trimmed.strip_prefix('-') {
        Some(after_sign) => (true, after_sign.trim_start()),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let number_len = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, unit) = unsigned.split_at(number_len);
    let unit = unit.trim();

    let Some(decimal) = Decimal::parse(number) else {
        return Err(Problem::new(format!("found {found}, expected {}", expected(ranges))));
    };
    if unit.is_empty() {
        let message = format!("found {found} without a unit, expected {}", expected(ranges));
        return Err(Problem::new(message).with_help(format!("units: {}", unit_list(ranges))));
    }
    let Some((range, unit_size)) = find_unit(unit, ranges) else {
        return Err(unknown_unit(unit, number, ranges));
    };

    let DimensionRange { dimension, least, most } = *range;
    let too_small = || {
        let bound = Amount { dimension, count: least };
        Err(Problem::new(format!("found {found}, expected at least {bound}")))
    };
    let too_large = || {
        let bound = Amount { dimension, count: most };
        Err(Problem::new(format!("found {found}, expected at most {bound}")))
    };
    match decimal.times(unit_size) {
        Product::TooFine => {
            let finest = match dimension {
                Dimension::DelayProduct => "0.001 bdp".to_owned(),
                _ => format!("1 {}", dimension.units().first().map_or("", |(name, _)| name)),
            };
            Err(Problem::new(format!("found {found}, which is finer than {finest}")))
        }
        Product::TooLarge if is_negative => too_small(),
        Product::TooLarge => too_large(),
        // Minus zero is zero.
        Product::Exact(count) if count < least || (is_negative && count > 0) => too_small(),
        Product::Exact(count) if count > most => too_large(),
        Product::Exact(count) => Ok(Amount { dimension, count }),
    }
}

/// Reads a duration of at most `most`, in the form of scenario files: `"20 ms"`.
///
/// # Errors
/// Returns what was found and what was expected, on one line.
pub fn parse_duration(text: &str, most: Duration) -> Result<Duration, String> {
    let range = DimensionRange { dimension: Dimension::Duration, least: 0, most: most.as_nanos() };
    parse_count(text, range).map(Duration::from_nanos)
}

/// Reads a rate of at least 1 bps, in the form of scenario files: `"10 Mbps"`.
///
/// # Errors
/// Returns what was found and what was expected, on one line.
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    let range = DimensionRange { dimension: Dimension::Rate, least: 1, most: u64::MAX };
    parse_count(text, range).map(Rate::from_bps)
}

fn parse_count(text: &str, range: DimensionRange) -> Result<u64, String> {
    match parse(text, &[range]) {
        Ok(amount) => Ok(amount.count),
        Err(Problem { message, help: None }) => Err(message),
        Err(Problem { message, help: Some(help) }) => Err(format!("{message}; {help}")),
    }
}

/// A quantity in the unit that tables of results use for its dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiAmount {
    /// The unit, which is the end of a column's name: `s`, `bps`, `bytes`, `packets`, `hz` or `bdp`.
    pub unit: &'static str,
    /// The number of these units. Rates, sizes and packets are whole numbers.
    pub value: f64,
}

/// Reads a quantity of any dimension, in the form of scenario files. Returns `None` if `text` is not a
/// quantity.
pub fn si_amount(text: &str) -> Option<SiAmount> {
    let amount = parse_any(text)?;
    let (unit, base_units) = match amount.dimension {
        Dimension::Duration => ("s", 1e9),
        Dimension::Rate => ("bps", 1.0),
        Dimension::Size => ("bytes", 1.0),
        Dimension::Packets => ("packets", 1.0),
        Dimension::Frequency => ("hz", 1e3),
        Dimension::DelayProduct => ("bdp", 1e3),
    };
    Some(SiAmount { unit, value: amount.count as f64 / base_units })
}

/// Reads a quantity of any dimension, however large.
pub(crate) fn parse_any(text: &str) -> Option<Amount> {
    let ranges = Dimension::ALL.map(|dimension| DimensionRange { dimension, least: 0, most: u64::MAX });
    parse(text, &ranges).ok()
}

#[cfg(test)]
mod tests;
