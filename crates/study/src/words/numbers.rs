//! Writes numbers with their units. Rates are written in Mb/s, and shares in percent.

use talkpath_measure::figures::Unit;
use talkpath_measure::figures::text::{four_digits, rounded};

use crate::outcome::Value;

/// Writes `value` with its unit, such as `1.37 Mb/s`.
pub fn format_number(unit: Option<Unit>, value: f64) -> String {
    Scale::new(unit).number_with_unit(value)
}

/// Writes a median with its confidence interval, such as `1.37 [1.36, 1.38] Mb/s`.
pub fn format_median(value: &Value) -> String {
    Scale::new(value.unit()).with_interval(value.median, value.ci95)
}

/// Returns what follows a number of this unit: ` ms`, `/s`, or nothing.
pub fn unit_suffix(unit: Option<Unit>) -> &'static str {
    Scale::new(unit).suffix
}

/// Writes a range, such as `77.1 to 83 ms`, or one number if both ends are written alike. The numbers have
/// this many `decimals`, or four significant digits if it is `None`.
pub fn format_range(unit: Option<Unit>, (low, high): (f64, f64), decimals: Option<usize>) -> String {
    let scale = Scale::new(unit);
    let number = |value: f64| match decimals {
        Some(decimals) => rounded(value * scale.factor, decimals),
        None => scale.number(value),
    };
    let (low, high, suffix) = (number(low), number(high), scale.suffix);
    if low == high { format!("{low}{suffix}") } else { format!("{low} to {high}{suffix}") }
}

/// How numbers of one unit are written.
pub(super) struct Scale {
    /// The factor from the unit of summary.json to the unit that is written.
    factor: f64,
    /// The unit that is written, with the space before it.
    suffix: &'static str,
}

impl Scale {
    pub(super) const fn new(unit: Option<Unit>) -> Self {
        let (factor, suffix) = match unit {
            Some(Unit::Bps) => (1e-6, " Mb/s"),
            Some(Unit::Pps) => (1.0, "/s"),
            Some(Unit::Share) => (100.0, " %"),
            Some(Unit::Ms) => (1.0, " ms"),
            _ => (1.0, ""),
        };
        Self { factor, suffix }
    }

    fn number(&self, value: f64) -> String {
        four_digits(value * self.factor)
    }

    fn number_with_unit(&self, value: f64) -> String {
        format!("{}{}", self.number(value), self.suffix)
    }

    /// Writes `2.6 [2.5, 2.7] ms`. If all repetitions have the same value, the interval says nothing more,
    /// and this writes `2.6 ms`.
    pub(super) fn with_interval(&self, value: f64, ci95: Option<(f64, f64)>) -> String {
        match ci95 {
            Some((low, high)) if low < high => {
                let [value, low, high] = [value, low, high].map(|value| self.number(value));
                format!("{value} [{low}, {high}]{}", self.suffix)
            }
            _ => self.number_with_unit(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_no_negative_zero() {
        assert_eq!(format_range(None, (-0.001, 0.0), Some(2)), "0.00");
        assert_eq!(format_range(None, (-0.011, 0.0), Some(2)), "-0.01 to 0.00");
    }

    #[test]
    fn values_carry_four_digits_and_their_unit() {
        assert_eq!(format_number(Some(Unit::Bps), 1_370_400.0), "1.37 Mb/s");
        assert_eq!(format_number(Some(Unit::Pps), 1249.6), "1250/s");
        assert_eq!(format_number(Some(Unit::Share), 0.031_26), "3.126 %");
        assert_eq!(format_number(Some(Unit::Packets), 9.304), "9.304");
        assert_eq!(format_number(Some(Unit::Count), 4.0), "4");
        assert_eq!(format_number(None, 4.0), "4");
    }
}
