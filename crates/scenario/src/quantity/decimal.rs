//! Decimal numbers that are multiplied exactly.

/// A decimal number without a sign, as its digits before and after the point.
pub(super) struct Decimal<'a> {
    /// The digits before the point, without zeros at the beginning.
    pub(super) whole: &'a str,
    /// The digits after the point, without zeros at the end.
    pub(super) fraction: &'a str,
}

/// The product of a decimal number and a unit.
pub(super) enum Product {
    /// The product is this whole number.
    Exact(u64),
    /// The product is 2^64 or more.
    TooLarge,
    /// The product is not a whole number.
    TooFine,
}

impl<'a> Decimal<'a> {
    /// Reads digits with at most one point. Returns `None` for any other text.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        Some(Self { whole: whole.trim_start_matches('0'), fraction: fraction.trim_end_matches('0') })
    }

    /// Multiplies the number by `unit_size`, the number of base units in a unit. It must not be 0.
    pub(super) fn times(&self, unit_size: u64) -> Product {
        if self.whole.len() > MAX_WHOLE_DIGITS {
            return Product::TooLarge;
        }
        if self.fraction.len() > MAX_FRACTION_DIGITS {
            return Product::TooFine;
        }
        // An empty text is zero.
        let whole: u128 = self.whole.parse().unwrap_or(0);
        let numerator: u128 = self.fraction.parse().unwrap_or(0);
        let denominator = 10_u128.pow(self.fraction.len() as u32);

        // The fraction is numerator / denominator of a unit. After the common factors of the unit and the
        // denominator are divided out, the product is whole only if the rest of the denominator divides the
        // numerator.
        let unit_size = u128::from(unit_size);
        let common = greatest_common_divisor(unit_size, denominator);
        let (reduced_size, reduced_denominator) = (unit_size / common, denominator / common);
        if !numerator.is_multiple_of(reduced_denominator) {
            return Product::TooFine;
        }
        let from_fraction = numerator / reduced_denominator * reduced_size;
        let count = whole * unit_size + from_fraction;
        u64::try_from(count).map_or(Product::TooLarge, Product::Exact)
    }
}

/// A number of 21 digits is above 2^64 in any unit. A number of 20 digits times the largest unit, 2^42 ns in
/// an hour, is below 2^128.
const MAX_WHOLE_DIGITS: usize = 20;

/// The largest power of two in a unit is 2^30 (GiB), and the largest power of five is smaller. A fraction of
/// more digits therefore is not a whole number of base units. 10^30 is below 2^128.
const MAX_FRACTION_DIGITS: usize = 30;

const fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
