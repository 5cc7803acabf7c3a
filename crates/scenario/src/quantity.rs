//! Quantities with units: `"20 ms"`, `"1.5 Mbps"`, `"64 KiB"`, `"16 packets"`.
//!
//! A number is decimal digits with at most one point; it is scaled to the base unit (ns, bps, B, packets) in
//! integers, so what the file says is what runs. What is finer than the base unit is a mistake, not rounded.

use core::fmt;

use talkpath_units::{Bytes, Duration, Packets, Rate};

/// What kind of thing is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// Nanoseconds.
    Duration,
    /// Bits per second.
    Rate,
    /// Bytes.
    Size,
    /// Packets.
    Packets,
    /// Thousandths of an event a second.
    Frequency,
}

/// A dimension, and how little and how much is allowed, in its base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) dimension: Dimension,
    pub(crate) least: u64,
    pub(crate) most: u64,
}

/// So much, in the base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) dimension: Dimension,
    pub(crate) count: u64,
}

/// What is wrong with a value: what was found and what would be right, and perhaps a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// `1%` as 0.01. `None` if the text is no number with a percent sign.
pub fn percentage(text: &str) -> Option<f64> {
    let percent = text.trim().strip_suffix('%')?.trim();
    percent.parse::<f64>().ok()?;
    // Written so, the quotient is the number nearest to it: 1.1 % is 0.011.
    format!("{percent}e-2").parse().ok()
}

/// A share of 1 in per cent: 0.011 is `1.1%`.
pub fn as_percent(share: f64) -> String {
    // Written so, no digit of a quotient shows: 0.011 is 1.1%.
    let percent = format!("{share}e2").parse().unwrap_or(100.0 * share);
    format!("{percent}%")
}

/// The mistake in a bare 1 on a command line in place of a share: it may be 1 % or all.
pub(crate) fn bare_one(text: &str) -> Option<Problem> {
    let is_one = text.trim().parse::<f64>().ok()? == 1.0;
    is_one.then(|| {
        Problem::new(format!("found {}, expected per cent or a number below 1", text.trim()))
            .with_help("did you mean 1% or 100%?")
    })
}

/// What is probably meant by a `share` above 1, if it may be one in per cent: 2 is 2%.
pub(crate) fn percent_help(share: f64) -> Option<String> {
    let meant = percentage(&format!("{share}%")).filter(|_| share > 1.0 && share <= 100.0)?;
    Some(format!("did you mean {share}%? As a share of 1 it is {meant}"))
}

/// The mistake in values between commas, if some have a percent sign and one other than 0 has none: `1` in
/// `0,1,5%` would be the whole.
pub(crate) fn mixed_shares(values: &str) -> Option<Problem> {
    let words = || values.split(',').map(str::trim);
    let percent = words().find(|word| percentage(word).is_some())?;
    let (bare, number) =
        words().filter_map(|word| Some((word, word.parse::<f64>().ok()?))).find(|it| it.1 != 0.0)?;
    let whole = format!("{number}e2").parse::<f64>().ok().filter(|whole| *whole <= 100.0);
    let or_whole = whole.map_or_else(String::new, |whole| format!(" or {whole}%"));
    Some(
        Problem::new(format!("found {bare} beside {percent}, expected all values with `%` or all without"))
            .with_help(format!("did you mean {bare}%{or_whole}?")),
    )
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

impl Dimension {
    pub(crate) const ALL: [Self; 5] =
        [Self::Duration, Self::Rate, Self::Size, Self::Packets, Self::Frequency];

    /// The units and how many base units each has; the first of each size is the preferred spelling.
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

    /// "a duration".
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Duration => "a duration",
            Self::Rate => "a rate",
            Self::Size => "a size",
            Self::Packets => "a number of packets",
            Self::Frequency => "a frequency",
        }
    }

    /// A quantity that shows the form.
    pub(crate) const fn example(self) -> &'static str {
        match self {
            Self::Duration => "20 ms",
            Self::Rate => "1.5 Mbps",
            Self::Size => "64 kB",
            Self::Packets => "16 packets",
            Self::Frequency => "60 Hz",
        }
    }

    /// The units in which programs give bare numbers, and how many decades a value may be further from the
    /// usual to be as likely in this one: JSON, ns-2 and netem have milliseconds, bits a second and bytes.
    /// Chosen.
    const fn bare_units(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Duration => &[("ms", 0.0), ("s", 0.5), ("us", 1.5), ("ns", 2.0), ("min", 3.0), ("h", 3.0)],
            Self::Rate => &[("bps", 0.0), ("kbps", 0.0), ("Mbps", 0.0), ("Gbps", 0.0)],
            Self::Size => &[("B", 0.0), ("kB", 0.5), ("MB", 1.0), ("GB", 1.5)],
            Self::Packets => &[("packets", 0.0)],
            Self::Frequency => &[("Hz", 0.0), ("kHz", 0.5), ("mHz", 1.0)],
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
                let units = Dimension::Frequency.units().iter().rev();
                let whole = units.into_iter().find(|(_, size)| self.count.is_multiple_of(*size));
                whole.map_or(Ok(()), |(unit, size)| write!(f, "{} {unit}", self.count / size))
            }
        }
    }
}

/// Reads `text` as one of `measures`.
///
/// # Errors
/// What was found and what would be right.
pub(crate) fn parse(text: &str, measures: &[Measure]) -> Result<Amount, Problem> {
    let trimmed = text.trim();
    let (negative, unsigned) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, unit) = unsigned.split_at(end);
    let unit = unit.trim();
    let Some((whole, fraction)) = digits(number) else {
        return Err(Problem::new(format!("found {}, expected {}", quote(text), expected(measures))));
    };
    if unit.is_empty() {
        return Err(Problem::new(format!(
            "found {} without a unit, expected {}",
            quote(text),
            expected(measures)
        ))
        .with_help(format!("units: {}", unit_list(measures))));
    }
    let Some((measure, factor)) = find_unit(unit, measures) else {
        return Err(wrong_unit(unit, number, measures));
    };
    let least = Amount { dimension: measure.dimension, count: measure.least };
    let most = Amount { dimension: measure.dimension, count: measure.most };
    let too_little = || Err(Problem::new(format!("found {}, expected at least {least}", quote(text))));
    let count = match scale(whole, fraction, factor) {
        Scaled::Exact(count) => count,
        Scaled::TooLarge if !negative => {
            return Err(Problem::new(format!("found {}, expected at most {most}", quote(text))));
        }
        Scaled::TooFine => {
            let base = measure.dimension.units().first().map_or("", |(name, _)| name);
            return Err(Problem::new(format!("found {}, which is finer than 1 {base}", quote(text))));
        }
        Scaled::TooLarge => return too_little(),
    };
    match count {
        0 if negative => Ok(Amount { dimension: measure.dimension, count }),
        _ if negative || count < measure.least => too_little(),
        _ if count > measure.most => {
            Err(Problem::new(format!("found {}, expected at most {most}", quote(text))))
        }
        _ => Ok(Amount { dimension: measure.dimension, count }),
    }
}

/// Reads a duration as scenario files have it, `"20 ms"`, of at most `most`.
///
/// # Errors
/// What was found and what would be right, in one line.
pub fn parse_duration(text: &str, most: Duration) -> Result<Duration, String> {
    let measure = Measure { dimension: Dimension::Duration, least: 0, most: most.as_nanos() };
    parse_line(text, measure).map(Duration::from_nanos)
}

/// Reads a rate as scenario files have it, `"10 Mbps"`, of at least 1 bps.
///
/// # Errors
/// As [`parse_duration`].
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    let measure = Measure { dimension: Dimension::Rate, least: 1, most: u64::MAX };
    parse_line(text, measure).map(Rate::from_bps)
}

fn parse_line(text: &str, measure: Measure) -> Result<u64, String> {
    match parse(text, &[measure]) {
        Ok(amount) => Ok(amount.count),
        Err(Problem { message, help: None }) => Err(message),
        Err(Problem { message, help: Some(help) }) => Err(format!("{message}; {help}")),
    }
}

/// The quantity that the bare `number` most likely is, where `usual` says from what to what each dimension's
/// amounts usually are; `None` if it is usual in no unit.
pub(crate) fn proposal(
    number: &str,
    measures: &[Measure],
    usual: impl Fn(Dimension) -> Option<(u64, u64)>,
) -> Option<String> {
    let (whole, fraction) = digits(number)?;
    let mut best: Option<(f64, String)> = None;
    for measure in measures {
        let dimension = measure.dimension;
        let Some((low, high)) = usual(dimension) else { continue };
        let middle = (low as f64 * high as f64).sqrt();
        for (unit, farther) in dimension.bare_units() {
            let factor =
                dimension.units().iter().find(|(name, _)| name == unit).map_or(1, |(_, factor)| *factor);
            let Scaled::Exact(count) = scale(whole, fraction, factor) else { continue };
            if !(low.max(measure.least)..=high.min(measure.most)).contains(&count) {
                continue;
            }
            let distance = (count as f64 / middle).log10().abs() + farther;
            if best.as_ref().is_none_or(|(least, _)| distance < *least) {
                let is_mixed = !whole.is_empty() && !fraction.is_empty();
                let text = match *unit {
                    "min" | "h" => format!("{number} {unit}"),
                    _ if is_mixed => format!("{number} {unit}"),
                    _ => plainly(Amount { dimension, count }),
                };
                best = Some((distance, text));
            }
        }
    }
    best.map(|(_, text)| text)
}

/// An amount in the largest unit in which it is whole: `64 kB`.
pub(crate) fn plainly(amount: Amount) -> String {
    let whole = |(_, size): &&(&str, u64)| amount.count > 0 && amount.count.is_multiple_of(*size);
    match amount.dimension {
        Dimension::Size => {
            // Those in powers of ten come first, from the least to the most.
            let units = Dimension::Size.units().iter().take_while(|(unit, _)| !unit.contains('i'));
            let unit = units.filter(whole).last();
            unit.map_or_else(|| amount.to_string(), |(unit, size)| format!("{} {unit}", amount.count / size))
        }
        _ => amount.to_string(),
    }
}

/// A quantity in the unit of the SI that its kind of thing has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiAmount {
    /// `s`, `bps`, `bytes`, `packets` or `hz`: what ends a column's name.
    pub unit: &'static str,
    /// The number of these units. Rates, sizes and packets are whole.
    pub value: f64,
}

/// The quantity that `text` writes, as scenario files have it; `None` if it is none.
pub fn si_amount(text: &str) -> Option<SiAmount> {
    let any = Dimension::ALL.map(|dimension| Measure { dimension, least: 0, most: u64::MAX });
    let amount = parse(text, &any).ok()?;
    let (unit, parts) = match amount.dimension {
        Dimension::Duration => ("s", 1e9),
        Dimension::Rate => ("bps", 1.0),
        Dimension::Size => ("bytes", 1.0),
        Dimension::Packets => ("packets", 1.0),
        Dimension::Frequency => ("hz", 1e3),
    };
    Some(SiAmount { unit, value: amount.count as f64 / parts })
}

/// "a duration such as \"20 ms\"", or both forms if two dimensions are allowed.
pub(crate) fn expected(measures: &[Measure]) -> String {
    let forms = measures.iter().map(|measure| measure.dimension);
    forms
        .map(|form| format!("{} such as \"{}\"", form.noun(), form.example()))
        .collect::<Vec<_>>()
        .join(" or ")
}

/// Every unit of `measures`, for a hint.
pub(crate) fn unit_list(measures: &[Measure]) -> String {
    let units = measures.iter().flat_map(|measure| measure.dimension.units());
    units.map(|(name, _)| *name).filter(|name| *name != "packet").collect::<Vec<_>>().join(", ")
}

/// `text` in quotes, cut if it is long.
pub(crate) fn quote(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        format!("{text:?}")
    } else {
        format!("{:?}...", text.chars().take(LONGEST).collect::<String>())
    }
}

/// The digits before and after the point, without zeros that say nothing; `None` if `number` is no number.
fn digits(number: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    Some((whole.trim_start_matches('0'), fraction.trim_end_matches('0')))
}

enum Scaled {
    Exact(u64),
    TooLarge,
    TooFine,
}

/// `whole.fraction` times `factor`.
fn scale(whole: &str, fraction: &str, factor: u64) -> Scaled {
    // 10^20 of any unit is past 2^64, and factors have at most 13 decimal digits and 30 binary ones: longer
    // fractions than 30 digits are never whole.
    if whole.len() > 20 {
        return Scaled::TooLarge;
    }
    if fraction.len() > 30 {
        return Scaled::TooFine;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(u128::MAX) };
    let mut count = whole.saturating_mul(u128::from(factor));
    let mut rest = u128::from(factor);
    let mut below = 0_u128;
    // Digit by digit: below / 10^k is what the fraction's digits so far leave over, always under 10^30.
    let mut scale = 1_u128;
    for digit in fraction.bytes() {
        let Some(next) = scale.checked_mul(10) else { return Scaled::TooFine };
        scale = next;
        below = below * 10 + u128::from(digit - b'0');
    }
    // below < 10^30 < 2^100 and factor < 2^42 could pass 2^128: divide out common factors first.
    while scale > 1 && rest.is_multiple_of(10) {
        rest /= 10;
        scale /= 10;
    }
    while scale > 1 && rest.is_multiple_of(2) && below.is_multiple_of(5) && scale.is_multiple_of(10) {
        // below rest / scale = (below / 5) (rest / 2) / (scale / 10)
        below /= 5;
        rest /= 2;
        scale /= 10;
    }
    let Some(product) = below.checked_mul(rest) else { return Scaled::TooFine };
    if !product.is_multiple_of(scale) {
        return Scaled::TooFine;
    }
    count = count.saturating_add(product / scale);
    u64::try_from(count).map_or(Scaled::TooLarge, Scaled::Exact)
}

fn find_unit<'a>(unit: &str, measures: &'a [Measure]) -> Option<(&'a Measure, u64)> {
    measures.iter().find_map(|measure| {
        let found = measure.dimension.units().iter().find(|(name, _)| *name == unit);
        found.map(|(_, factor)| (measure, *factor))
    })
}

fn wrong_unit(unit: &str, number: &str, measures: &[Measure]) -> Problem {
    let list = unit_list(measures);
    let other = Dimension::ALL.into_iter().find(|other| other.units().iter().any(|(name, _)| *name == unit));
    if let Some(other) = other {
        let message = format!(
            "found {}, {}; expected {}",
            quote(&format!("{number} {unit}")),
            other.noun(),
            expected(measures)
        );
        let takes_rate = measures.iter().any(|measure| measure.dimension == Dimension::Rate);
        let help = match other {
            Dimension::Frequency if takes_rate => {
                "a `cbr` workload takes messages a second as `message_rate`".to_owned()
            }
            _ => format!("units: {list}"),
        };
        return Problem::new(message).with_help(help);
    }
    let problem = Problem::new(format!("found the unit {}, expected one of {list}", quote(unit)));
    if measures.iter().any(|measure| measure.dimension == Dimension::Rate)
        && let Some(size) = bytes_a_second(unit)
    {
        let any = [Measure { dimension: Dimension::Size, least: 0, most: u64::MAX }];
        let bytes = parse(&format!("{number} {size}"), &any).ok().map(|amount| amount.count);
        return problem.with_help(match bytes.and_then(|bytes| bytes.checked_mul(8)).map(Rate::from_bps) {
            Some(rate) => format!("a rate counts bits: did you mean \"{rate}\"?"),
            None => "a rate counts bits, 8 to a byte".to_owned(),
        });
    }
    let meant = OTHER_SPELLINGS
        .iter()
        .filter(|(spelling, meant)| {
            spelling.eq_ignore_ascii_case(unit) && find_unit(meant, measures).is_some()
        })
        .map(|(_, meant)| *meant)
        .next();
    let same_letters = || {
        let names = measures.iter().flat_map(|measure| measure.dimension.units()).map(|(name, _)| *name);
        names.filter(|name| name.eq_ignore_ascii_case(unit)).collect::<Vec<_>>().into_iter().next()
    };
    match meant.or_else(same_letters) {
        // Minutes to some, and a slip for milliseconds to others: which one is not guessed.
        None if unit == "m" && find_unit("ms", measures).is_some() => {
            problem.with_help(format!("did you mean \"{number} ms\" or \"{number} min\"?"))
        }
        Some(meant) => problem.with_help(format!("did you mean \"{number} {meant}\"?")),
        None if unit.starts_with([',', '_']) => {
            problem.with_help("digits are not grouped, and the decimal sign is a point")
        }
        None if unit.starts_with(['e', 'E']) => {
            problem.with_help("write the number out, without an exponent")
        }
        None => problem,
    }
}

/// The unit of size in a unit of bytes a second, `MB/s` or `MBps`: only its B distinguishes it from bits.
fn bytes_a_second(unit: &str) -> Option<&str> {
    let size = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps"))?;
    let size = if size == "KB" { "kB" } else { size };
    Dimension::Size.units().iter().any(|(name, _)| *name == size).then_some(size)
}

/// How else people write these units.
const OTHER_SPELLINGS: &[(&str, &str)] = &[
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

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: &[Measure] =
        &[Measure { dimension: Dimension::Duration, least: 1, most: 1_000_000 * 1_000_000_000 }];
    const ROOM: &[Measure] = &[
        Measure { dimension: Dimension::Packets, least: 1, most: 1_000_000 },
        Measure { dimension: Dimension::Size, least: 1, most: 1 << 40 },
    ];

    fn ns(text: &str) -> Option<u64> {
        parse(text, DURATION).ok().map(|amount| amount.count)
    }

    #[test]
    fn decimals_are_exact_down_to_the_base_unit() {
        assert_eq!(ns("0.1 s"), Some(100_000_000));
        assert_eq!(ns("20ms"), Some(20_000_000));
        assert_eq!(ns("  1.000000001 s"), Some(1_000_000_001));
        assert_eq!(ns("1.5000000000000000000000000 min"), Some(90_000_000_000));
        assert_eq!(ns(".5 us"), Some(500));
        assert_eq!(ns("5. us"), Some(5_000));
        assert_eq!(ns("0.0000000001 s"), None, "finer than a nanosecond");
        assert_eq!(parse("0.125 KiB", ROOM).unwrap().count, 128);
        assert_eq!(parse("0.0009765625 KiB", ROOM).unwrap().count, 1);
        assert_eq!(parse("0.000000000931322574615478515625 GiB", ROOM).unwrap().count, 1);
        assert!(parse("0.00048828125 KiB", ROOM).unwrap_err().message.contains("finer than 1 B"));
    }

    #[test]
    fn bounds_hold_and_name_themselves() {
        assert_eq!(ns("1000000 s"), Some(1_000_000_000_000_000));
        for text in ["1000000.000000001 s", "99999999999999999999999999999999 h", "18446744073709551616 ns"] {
            assert!(
                parse(text, DURATION).unwrap_err().message.ends_with("expected at most 1000000 s"),
                "{text}"
            );
        }
        for text in ["0 s", "-5 ms", "-99999999999999999999999 s"] {
            assert!(parse(text, DURATION).unwrap_err().message.ends_with("expected at least 1 ns"), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_shows_the_form() {
        for text in ["", "s", "nan s", "inf s", ".", "1.2.3 s", "five s"] {
            let problem = parse(text, DURATION).unwrap_err();
            assert!(problem.message.contains("a duration such as \"20 ms\""), "{text}: {problem:?}");
        }
        let problem = parse("16", ROOM).unwrap_err();
        assert!(problem.message.contains("without a unit"), "{problem:?}");
        assert_eq!(problem.help.as_deref(), Some("units: packets, B, kB, MB, GB, KiB, MiB, GiB"));
    }

    #[test]
    fn other_spellings_of_a_unit_lead_to_ours() {
        for (spelling, unit) in OTHER_SPELLINGS {
            let all = Dimension::ALL;
            let dimension = all.into_iter().find(|d| d.units().iter().any(|(name, _)| name == unit)).unwrap();
            let measure = [Measure { dimension, least: 0, most: u64::MAX }];
            let problem = parse(&format!("2 {spelling}"), &measure).unwrap_err();
            assert_eq!(problem.help.unwrap(), format!("did you mean \"2 {unit}\"?"), "{spelling}");
        }
        assert_eq!(
            parse("20 m", DURATION).unwrap_err().help.unwrap(),
            "did you mean \"20 ms\" or \"20 min\"?"
        );
        assert_eq!(parse("2 MS", DURATION).unwrap_err().help.unwrap(), "did you mean \"2 ms\"?");
        assert!(parse("2 Mbps", DURATION).unwrap_err().message.contains("a rate; expected a duration"));
        let rate = [Measure { dimension: Dimension::Rate, least: 1, most: u64::MAX }];
        assert_eq!(parse("2M", &rate).unwrap_err().help.unwrap(), "did you mean \"2 Mbps\"?");
        assert_eq!(parse("2M", ROOM).unwrap_err().help.unwrap(), "did you mean \"2 MB\"?");
        for (text, meant) in [
            ("1 MB/s", "8 Mbps"),
            ("1 MBps", "8 Mbps"),
            ("0.5 KB/s", "4 kbps"),
            ("3 B/s", "24 bps"),
            ("1 KiB/s", "8192 bps"),
        ] {
            let help = format!("a rate counts bits: did you mean \"{meant}\"?");
            assert_eq!(parse(text, &rate).unwrap_err().help.unwrap(), help, "{text}");
        }
        assert_eq!(parse("1 Mb/s", &rate).unwrap_err().help.unwrap(), "did you mean \"1 Mbps\"?");
        assert!(parse("1e3 s", DURATION).unwrap_err().help.unwrap().contains("exponent"));
    }

    #[test]
    fn an_amount_is_known_in_the_units_of_the_si() {
        let si = |text: &str| si_amount(text).map(|it| (it.unit, it.value));
        assert_eq!(si("1.5 Mbps"), Some(("bps", 1_500_000.0)));
        assert_eq!(si("20 ms"), Some(("s", 0.02)));
        assert_eq!(si("64 KiB"), Some(("bytes", 65_536.0)));
        assert_eq!(si("16 packets"), Some(("packets", 16.0)));
        assert_eq!(si("60 Hz"), Some(("hz", 60.0)));
        assert_eq!((si("tcp"), si("never"), si("16")), (None, None, None));
    }

    #[test]
    fn a_printed_amount_reads_back() {
        for (text, measures) in [("1500 us", DURATION), ("7 packets", ROOM), ("65536 B", ROOM)] {
            let amount = parse(text, measures).unwrap();
            assert_eq!(parse(&amount.to_string(), measures), Ok(amount));
        }
    }
}
