//! DCCP's sequence numbers: 48 bits that count packets and wrap (RFC 4340 §3.1, §7.1), and their short form
//! of 24 bits (§7.6).

use core::fmt;

/// A sequence or acknowledgement number modulo 2^48.
///
/// There is no total order: compare with [`Seq::is_before`] and its kin, which go the shorter way round
/// (RFC 4340 §3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(u64);

impl Seq {
    /// The number whose low 48 bits are `value`'s.
    #[inline]
    pub const fn new(value: u64) -> Self {
        Self(value & MASK)
    }

    /// The bare number, below 2^48.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns `self + count` modulo 2^48.
    #[must_use]
    #[inline]
    pub const fn wrapping_add(self, count: u64) -> Self {
        Self::new(self.0.wrapping_add(count))
    }

    /// Returns `self - count` modulo 2^48.
    #[must_use]
    #[inline]
    pub const fn wrapping_sub(self, count: u64) -> Self {
        Self::new(self.0.wrapping_sub(count))
    }

    /// The number that follows.
    #[must_use]
    #[inline]
    pub const fn next(self) -> Self {
        self.wrapping_add(1)
    }

    /// The distance by which `self` lies after `other`. It is negative if `self` lies before. Half the circle
    /// counts as before.
    #[inline]
    pub const fn distance_from(self, other: Self) -> i64 {
        // The shift carries the 48th bit to the sign, and back.
        ((self.0.wrapping_sub(other.0) << UNUSED_BITS) as i64) >> UNUSED_BITS
    }

    /// Returns true if `self` comes before `other` on the shorter way round.
    #[inline]
    pub const fn is_before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// Returns true if `self` comes after `other` on the shorter way round.
    #[inline]
    pub const fn is_after(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }

    /// Returns true if `self` lies in the range from `low` to `high`, both included.
    #[inline]
    pub const fn is_within(self, low: Self, high: Self) -> bool {
        !self.is_before(low) && !self.is_after(high)
    }

    /// The later of the two.
    #[must_use]
    #[inline]
    pub const fn max(self, other: Self) -> Self {
        if self.is_before(other) { other } else { self }
    }

    /// The low 24 bits, as a packet with short sequence numbers carries them (RFC 4340 §5.1).
    #[must_use]
    #[inline]
    pub const fn short(self) -> Self {
        Self(self.0 & SHORT_MASK)
    }

    /// The number nearest to `reference` whose low 24 bits are `self`'s (RFC 4340 §7.6).
    #[must_use]
    #[inline]
    pub const fn extended(self, reference: Self) -> Self {
        let gap = self.0.wrapping_sub(reference.0) << (64 - SHORT_BITS);
        let signed = (gap as i64) >> (64 - SHORT_BITS);
        Self::new(reference.0.wrapping_add_signed(signed))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// RFC 4340 §5.1: 48 bits.
const MASK: u64 = (1 << 48) - 1;
const UNUSED_BITS: u32 = 64 - 48;
/// RFC 4340 §5.1: 24 bits if X = 0.
const SHORT_BITS: u32 = 24;
const SHORT_MASK: u64 = (1 << SHORT_BITS) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4340 §3.1: circular arithmetic modulo 2^48.
    #[test]
    fn order_goes_the_shorter_way_round_the_wrap() {
        let (before, after) = (Seq::new(MASK), Seq::new(2));
        assert!(before.is_before(after) && after.is_after(before));
        assert_eq!((after.distance_from(before), before.distance_from(after)), (3, -3));
        assert_eq!((before.next(), Seq::new(0).wrapping_sub(1)), (Seq::new(0), before));
        assert!(Seq::new(0).is_within(before, after) && !Seq::new(3).is_within(before, after));
    }

    /// RFC 4340 §7.6: the three branches of its procedure, and the ends of the range.
    #[test]
    fn a_short_number_extends_to_the_nearest_one() {
        let reference = Seq::new(0x0000_12ff_fff0);
        for (short, full) in
            [(0xff_fff5, 0x0000_12ff_fff5_u64), (0x00_0003, 0x0000_1300_0003), (0xff_ff00, 0x0000_12ff_ff00)]
        {
            assert_eq!(Seq::new(short).extended(reference), Seq::new(full));
        }
        assert_eq!(Seq::new(0xff_fffe).extended(Seq::new(0x13_0000_0001)), Seq::new(0x12_ffff_fffe));
        assert_eq!(Seq::new(2).extended(Seq::new(MASK)), Seq::new(2));
        let full = Seq::new(0xabcd_ef01_2345);
        assert_eq!(full.short().extended(full.wrapping_add(100)), full);
    }
}
