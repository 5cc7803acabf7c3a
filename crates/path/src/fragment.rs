//! IPv4 fragmentation: which bytes of a datagram's payload each fragment carries (RFC 791 §2.3, §3.2).
//!
//! ```text
//!  datagram   | header 20 | payload ............................................. |
//!  fragments  | header 20 | 0 .. 1480 |   | header 20 | 1480 .. 2960 |   | header 20 | 2960 .. end |
//!               more                        more                         last: more as the datagram had it
//! ```
//!
//! Every fragment but the last carries a multiple of eight bytes, so that offsets fit the header's units. A
//! fragment that meets a smaller link is fragmented again, and only the destination puts together
//! (`reassembly.rs`).
//!
//! Left out: header options, the don't-fragment bit and path MTU discovery (senders here know their path's
//! MTU), and IPv6, where only the source fragments. Identification is the driver's: it keys what belongs
//! together.

use talkpath_units::Bytes;

/// The part of a datagram's payload that one IPv4 packet carries. A whole datagram is the part from 0 to the
/// end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentRange {
    /// First byte of the payload, a multiple of 8.
    pub offset: u32,
    /// Bytes of payload.
    pub length: u32,
    /// Whether more of the datagram comes after: the header's more-fragments flag.
    pub more: bool,
}

/// The fragments of a datagram or of a fragment, first to last.
#[derive(Clone, Debug)]
pub struct Fragments {
    /// What is still to be given out; `None` at the end.
    rest: Option<FragmentRange>,
    /// Payload of every fragment but the last.
    room: u32,
}

/// An IPv4 header without options (RFC 791 §3.1).
pub const IPV4_HEADER: Bytes = Bytes::new(20);
/// The smallest MTU of an IPv4 link: what every module forwards unfragmented (RFC 791 §3.2).
pub const MIN_MTU: Bytes = Bytes::new(68);
/// Offsets count in units of eight bytes (RFC 791 §3.1).
const OFFSET_UNIT: u64 = 8;

/// The fragments of a datagram of `total_wire` bytes, its IPv4 header included, for a link with this `mtu`.
///
/// One that covers the whole datagram where it fits. An `mtu` under [`MIN_MTU`] counts as that.
pub fn fragments(total_wire: Bytes, mtu: Bytes) -> Fragments {
    FragmentRange::whole(total_wire).fragments(mtu)
}

impl FragmentRange {
    /// A whole datagram of `total_wire` bytes, its IPv4 header included.
    pub fn whole(total_wire: Bytes) -> Self {
        let payload = total_wire.saturating_sub(IPV4_HEADER).get();
        // An IPv4 datagram has at most 65,535 bytes (RFC 791 §3.1), so nothing real is cut here.
        Self { offset: 0, length: u32::try_from(payload).unwrap_or(u32::MAX), more: false }
    }

    /// Whether this is a whole datagram.
    pub const fn is_whole(self) -> bool {
        self.offset == 0 && !self.more
    }

    /// One past the last byte of the payload.
    pub const fn end(self) -> u32 {
        self.offset.saturating_add(self.length)
    }

    /// Bytes of the IPv4 packet that carries it, header included.
    pub fn wire_size(self) -> Bytes {
        IPV4_HEADER + Bytes::new(u64::from(self.length))
    }

    /// The same bytes in packets of at most `mtu`; an `mtu` under [`MIN_MTU`] counts as that.
    pub fn fragments(self, mtu: Bytes) -> Fragments {
        let mtu = mtu.max(MIN_MTU);
        let room = if self.wire_size() <= mtu {
            u64::from(self.length)
        } else {
            (mtu - IPV4_HEADER).get() / OFFSET_UNIT * OFFSET_UNIT
        };
        Fragments { rest: Some(self), room: u32::try_from(room).unwrap_or(u32::MAX) }
    }
}

impl Iterator for Fragments {
    type Item = FragmentRange;

    fn next(&mut self) -> Option<FragmentRange> {
        let rest = self.rest?;
        if u64::from(rest.length) <= u64::from(self.room) {
            self.rest = None;
            return Some(rest);
        }
        let first = FragmentRange { offset: rest.offset, length: self.room, more: true };
        self.rest =
            Some(FragmentRange { offset: first.end(), length: rest.length - self.room, more: rest.more });
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(fragments: Fragments) -> Vec<(u32, u32, bool)> {
        fragments.map(|part| (part.offset, part.length, part.more)).collect()
    }

    /// RFC 791 §3.2, the example procedure: NFB = (MTU - header) / 8 blocks in all but the last.
    #[test]
    fn all_fragments_but_the_last_carry_as_many_blocks_of_eight_as_fit() {
        // 4000 bytes over 1500: the textbook's case.
        assert_eq!(
            ranges(fragments(Bytes::new(4000), Bytes::new(1500))),
            [(0, 1480, true), (1480, 1480, true), (2960, 1020, false)]
        );
        // An MTU whose room is no multiple of eight: 1006 - 20 = 986 gives 984.
        assert_eq!(
            ranges(fragments(Bytes::new(2000), Bytes::new(1006))),
            [(0, 984, true), (984, 984, true), (1968, 12, false)]
        );
    }

    #[test]
    fn what_fits_stays_whole() {
        let whole = FragmentRange::whole(Bytes::new(1500));
        assert_eq!(fragments(Bytes::new(1500), Bytes::new(1500)).collect::<Vec<_>>(), [whole]);
        assert!(whole.is_whole() && whole.wire_size() == Bytes::new(1500));
        assert_eq!(ranges(fragments(Bytes::new(20), Bytes::new(1500))), [(0, 0, false)]);
    }

    /// RFC 791 §3.2: the last piece of a fragment keeps the fragment's own more-fragments flag.
    #[test]
    fn a_fragment_is_fragmented_again_where_the_next_link_is_smaller() {
        let middle = FragmentRange { offset: 1480, length: 1480, more: true };
        assert_eq!(
            ranges(middle.fragments(Bytes::new(576))),
            [(1480, 552, true), (2032, 552, true), (2584, 376, true)]
        );
        let last = FragmentRange { offset: 2960, length: 1020, more: false };
        assert_eq!(ranges(last.fragments(Bytes::new(576))), [(2960, 552, true), (3512, 468, false)]);
    }

    #[test]
    fn sizes_at_the_ends_of_their_range_end() {
        assert_eq!(ranges(fragments(Bytes::ZERO, Bytes::ZERO)), [(0, 0, false)]);
        assert_eq!(fragments(Bytes::new(100), Bytes::ZERO).count(), 2);
        assert_eq!(fragments(Bytes::MAX, Bytes::MAX).count(), 1);
    }
}
