//! Sequence numbers that wrap (RFC 1982, RFC 9293 §3.4).

use core::cmp::Ordering;

/// A 32-bit sequence number that counts modulo 2^32, as TCP's does (RFC 9293 §3.4).
///
/// There is no total order, so `Ord` is left out: compare with [`SeqNum::is_before`] and its kin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNum(u32);

impl SeqNum {
    /// The sequence number `value`.
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// The bare number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// `self + count` modulo 2^32.
    #[must_use]
    pub const fn wrapping_add(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// How far `self` lies after `other`: negative if it lies before; half the circle counts as before.
    pub const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// Whether `self` comes before `other` on the shorter way round.
    pub const fn is_before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// Whether `self` comes after `other` on the shorter way round.
    pub const fn is_after(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }

    /// The unbounded offset nearest to `near` that this number is the low 32 bits of.
    ///
    /// State machines count in 64 bits and put 32 on the wire; this is the way back.
    pub const fn extend(self, near: u64) -> u64 {
        let distance = self.distance_from(Self(near as u32)) as i64;
        near.wrapping_add_signed(distance)
    }
}

impl PartialOrd for SeqNum {
    /// The order on the shorter way round; `None` for two numbers at a distance of exactly half the circle.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.distance_from(*other) {
            i32::MIN => None,
            distance => Some(distance.cmp(&0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_goes_the_shorter_way_round_the_wrap() {
        let before = SeqNum::new(u32::MAX - 1);
        let after = SeqNum::new(3);
        assert!(before.is_before(after) && after.is_after(before));
        assert_eq!(after.distance_from(before), 5);
        assert_eq!(SeqNum::new(0).partial_cmp(&SeqNum::new(1 << 31)), None);
    }

    #[test]
    fn a_wire_number_extends_to_the_offset_nearest_to_the_expected_one() {
        let near = (7 << 32) + 10;
        assert_eq!(SeqNum::new(15).extend(near), near + 5);
        assert_eq!(SeqNum::new(u32::MAX).extend(near), near - 11);
    }
}
