//! Reads quantities with units: `"20 ms"`, `"1.5 Mbps"`, `"64 KiB"`, `"16 packets"`.
//!
//! - A *dimension* is a kind of quantity, such as a duration. Each has a *base unit*: ns, bps, B, packets, mHz.
//! - An *amount* is a whole number of base units. The scenario runs with exactly the value in the file, because
//!   a value that is finer than the base unit is a mistake and is not rounded.
//! - A *measure* is a dimension with the smallest and the largest amount that a key allows.
//! - A *share* is a number from 0 to 1, which may be written in per cent ([`percentage`]).
//!
//! Begin to read with [`parse`].

mod decimal;
mod proposal;
mod share;
mod unit_help;

use core::fmt;

use talkpath_units::{Bytes, Duration, Packets, Rate};

use self::decimal::{Decimal, Product};
pub(crate) use self::proposal::{in_largest_unit, proposal};
pub use self::share::{as_percent, percentage};
pub(crate) use self::share::{bare_one, mixed_shares, percent_help};
use self::unit_help::unknown_unit;

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
}

/// A dimension with its allowed range, in the base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measure {
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

/// The reason why a value is wrong: what was found, what was expected, and a hint if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Reads `text` as a quantity of one of `measures`.
///
/// # Errors
/// Returns the reason if `text` is not a quantity, has another unit, is out of range, or is finer than the base
/// unit.
pub(crate) fn parse(text: &str, measures: &[Measure]) -> Result<Amount, Problem> {
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
        return Err(Problem::new(format!("found {found}, expected {}", expected(measures))));
    };
    if unit.is_empty() {
        let message = format!("found {found} without a unit, expected {}", expected(measures));
        return Err(Problem::new(message).with_help(format!("units: {}", unit_list(measures))));
    }
    let Some((measure, unit_size)) = find_unit(unit, measures) else {
        return Err(unknown_unit(unit, number, measures));
    };

    let Measure { dimension, least, most } = *measure;
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
            let base_unit = dimension.units().first().map_or("", |(name, _)| name);
            Err(Problem::new(format!("found {found}, which is finer than 1 {base_unit}")))
        }
        Product::TooLarge if is_negative => too_small(),
        Product::TooLarge => too_large(),
        // Minus zero is zero.
        Product::Exact(count) if count < least || (is_negative && count > 0) => too_small(),
        Product::Exact(count) if count > most => too_large(),
        Product::Exact(count) => Ok(Amount { dimension, count }),
    }
}

/// Returns the measure that has the unit `unit`, and the number of base units in that unit.
fn find_unit<'a>(unit: &str, measures: &'a [Measure]) -> Option<(&'a Measure, u64)> {
    for measure in measures {
        if let Some((_, size)) = measure.dimension.units().iter().find(|(name, _)| *name == unit) {
            return Some((measure, *size));
        }
    }
    None
}

/// Reads a duration of at most `most`, in the form of scenario files: `"20 ms"`.
///
/// # Errors
/// Returns what was found and what was expected, on one line.
pub fn parse_duration(text: &str, most: Duration) -> Result<Duration, String> {
    let measure = Measure { dimension: Dimension::Duration, least: 0, most: most.as_nanos() };
    parse_count(text, measure).map(Duration::from_nanos)
}

/// Reads a rate of at least 1 bps, in the form of scenario files: `"10 Mbps"`.
///
/// # Errors
/// Returns what was found and what was expected, on one line.
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    let measure = Measure { dimension: Dimension::Rate, least: 1, most: u64::MAX };
    parse_count(text, measure).map(Rate::from_bps)
}

fn parse_count(text: &str, measure: Measure) -> Result<u64, String> {
    match parse(text, &[measure]) {
        Ok(amount) => Ok(amount.count),
        Err(Problem { message, help: None }) => Err(message),
        Err(Problem { message, help: Some(help) }) => Err(format!("{message}; {help}")),
    }
}

/// A quantity in the unit that tables of results use for its dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiAmount {
    /// The unit, which is the end of a column's name: `s`, `bps`, `bytes`, `packets` or `hz`.
    pub unit: &'static str,
    /// The number of these units. Rates, sizes and packets are whole numbers.
    pub value: f64,
}

/// Reads a quantity of any dimension, in the form of scenario files. Returns `None` if `text` is not a quantity.
pub fn si_amount(text: &str) -> Option<SiAmount> {
    let amount = parse_any(text)?;
    let (unit, base_units) = match amount.dimension {
        Dimension::Duration => ("s", 1e9),
        Dimension::Rate => ("bps", 1.0),
        Dimension::Size => ("bytes", 1.0),
        Dimension::Packets => ("packets", 1.0),
        Dimension::Frequency => ("hz", 1e3),
    };
    Some(SiAmount { unit, value: amount.count as f64 / base_units })
}

/// Reads a quantity of any dimension, however large.
pub(crate) fn parse_any(text: &str) -> Option<Amount> {
    let measures = Dimension::ALL.map(|dimension| Measure { dimension, least: 0, most: u64::MAX });
    parse(text, &measures).ok()
}

impl Dimension {
    pub(crate) const ALL: [Self; 5] =
        [Self::Duration, Self::Rate, Self::Size, Self::Packets, Self::Frequency];

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
        }
    }
}

/// Describes the quantities that a key takes: "a duration such as \"20 ms\"". The forms of two dimensions are
/// joined by "or".
pub(crate) fn expected(measures: &[Measure]) -> String {
    let forms: Vec<String> = measures
        .iter()
        .map(|measure| format!("{} such as \"{}\"", measure.dimension.noun(), measure.dimension.example()))
        .collect();
    forms.join(" or ")
}

/// Lists the units of `measures` for a message. The singular "packet" is left out.
pub(crate) fn unit_list(measures: &[Measure]) -> String {
    let units = measures.iter().flat_map(|measure| measure.dimension.units()).map(|(name, _)| *name);
    units.filter(|name| *name != "packet").collect::<Vec<_>>().join(", ")
}

/// Puts `text` in quotes for a message, and cuts it if it is long.
pub(crate) fn quote(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    if text.chars().count() <= MAX_CHARS {
        format!("{text:?}")
    } else {
        format!("{:?}...", text.chars().take(MAX_CHARS).collect::<String>())
    }
}

#[cfg(test)]
mod tests;
