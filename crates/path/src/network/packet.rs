//! A packet on its way over the network.

use talkpath_units::{Bytes, Ecn};

use crate::carried::{Carried, Tag};
use crate::dscp::Dscp;
use crate::fragment::FragmentRange;

/// Which way a packet travels in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the near end, the sending application's, to the far one.
    Out,
    /// From the far end to the near one.
    Back,
}

/// A packet, or a fragment of one: what routers see of it, and what its owner knows it by.
///
/// It is copied at each of its links. Its fields share two words, so that it is moved in registers: a copy
/// through memory of fields that were just written one by one makes the processor wait, which took as long as
/// the rest of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathPacket<T> {
    /// The owner's; the network does not read it. All fragments of a packet have the same.
    pub tag: T,
    /// In the upper half the packet's place in the routes: where it goes next. In the lower one its flow, and
    /// its direction in the lowest bit.
    way: u64,
    /// In the upper half the length of the part of its datagram that it carries. In the lower one, from the
    /// lowest bit: the ECN field (2 bits), whether more of the datagram follows (1), the part's offset
    /// without its three lowest bits, which are zero (13), the DSCP (6), and whether a wire damaged it (1).
    content: u64,
}

const ECN: u64 = 0b011;
const MORE: u64 = 0b100;
/// The offset of a fragment has 13 bits and counts eight bytes (RFC 791 §3.1).
const OFFSET: u64 = 0xfff8;
const DSCP_SHIFT: u32 = 16;
const DSCP: u64 = 0b11_1111 << DSCP_SHIFT;
const DAMAGED: u64 = 1 << 22;

impl<T> PathPacket<T> {
    /// A packet that is to travel in `direction` of the flow with this index in
    /// [`NetworkConfig::flows`](crate::NetworkConfig::flows). It carries this `part` of its datagram.
    #[inline(always)]
    pub fn new(flow: u32, direction: Direction, part: FragmentRange, ecn: Ecn, tag: T) -> Self {
        assert!(flow <= u32::MAX / 2, "fewer than 2^31 flows");
        let way = u64::from(flow) << 1 | direction as u64;
        Self { tag, way, content: content(part, ecn) }
    }

    /// The same packet with this DSCP. A new packet has CS0.
    #[inline(always)]
    #[must_use]
    pub fn with_dscp(self, dscp: Dscp) -> Self {
        Self { content: self.content & !DSCP | u64::from(dscp.number()) << DSCP_SHIFT, ..self }
    }

    /// The same packet with another tag.
    #[must_use]
    pub fn with_tag(self, tag: T) -> Self {
        Self { tag, ..self }
    }

    /// True if a wire damaged it, and the link did not notice.
    #[inline(always)]
    pub const fn is_damaged(&self) -> bool {
        self.content & DAMAGED != 0
    }

    /// The index of its flow.
    #[inline(always)]
    pub const fn flow(&self) -> u32 {
        self.way as u32 >> 1
    }

    /// Which way it travels.
    #[inline(always)]
    pub const fn direction(&self) -> Direction {
        if self.way & 1 == 0 { Direction::Out } else { Direction::Back }
    }

    /// Which part of its datagram it carries.
    #[inline(always)]
    pub const fn part(&self) -> FragmentRange {
        FragmentRange {
            offset: (self.content & OFFSET) as u32,
            length: (self.content >> 32) as u32,
            more: self.content & MORE != 0,
        }
    }

    /// The same packet with another part of the datagram.
    pub(super) fn with_part(self, part: FragmentRange) -> Self {
        let kept = self.content & (ECN | DSCP | DAMAGED);
        Self { content: content(part, Ecn::NotEct) | kept, ..self }
    }

    /// Its place in the routes.
    #[inline(always)]
    pub(super) const fn place(&self) -> u32 {
        (self.way >> 32) as u32
    }

    /// The same packet at another place in the routes.
    #[inline(always)]
    pub(super) fn at_place(self, place: u32) -> Self {
        Self { way: u64::from(place) << 32 | u64::from(self.way as u32), ..self }
    }
}

/// See [`PathPacket::content`].
#[inline(always)]
fn content(part: FragmentRange, ecn: Ecn) -> u64 {
    let more = if part.more { MORE } else { 0 };
    u64::from(part.length) << 32 | u64::from(part.offset) & OFFSET | more | ecn as u64
}

impl<T: Tag> Carried for PathPacket<T> {
    #[inline(always)]
    fn wire_size(&self) -> Bytes {
        self.part().wire_size()
    }

    #[inline(always)]
    fn flow_id(&self) -> u32 {
        self.way as u32
    }

    fn dscp(&self) -> Dscp {
        let number = (self.content & DSCP) >> DSCP_SHIFT;
        Dscp::numbered(number as u8).unwrap_or_default()
    }

    #[inline(always)]
    fn ecn(&self) -> Ecn {
        match self.content & ECN {
            0 => Ecn::NotEct,
            1 => Ecn::Ect0,
            2 => Ecn::Ect1,
            _ => Ecn::Ce,
        }
    }

    fn set_ce(&mut self) {
        self.content |= Ecn::Ce as u64;
    }

    fn damage(&mut self) {
        self.content |= DAMAGED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_share_a_word_do_not_touch_each_other() {
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            for (offset, length, more) in [(0, 0, false), (65_528, 65_535, true), (1480, u32::MAX, true)] {
                let part = FragmentRange { offset, length, more };
                let voice = Dscp::named("EF").unwrap();
                for direction in [Direction::Out, Direction::Back] {
                    let packet = PathPacket::new(u32::MAX / 2, direction, part, ecn, 7).at_place(u32::MAX);
                    assert_eq!(packet.dscp(), Dscp::default());
                    let packet = packet.with_dscp(Dscp::numbered(63).unwrap()).with_dscp(voice);
                    let packet = packet.at_place(packet.place() - 1);
                    assert_eq!((packet.flow(), packet.direction()), (u32::MAX / 2, direction));
                    assert_eq!((packet.part(), packet.ecn(), packet.place()), (part, ecn, u32::MAX - 1));
                    let whole = FragmentRange { offset: 0, length: 9, more: false };
                    let mut other = packet.with_part(whole);
                    assert_eq!((other.part(), other.ecn(), other.flow_id()), (whole, ecn, packet.flow_id()));
                    other.set_ce();
                    assert_eq!((packet.dscp(), other.dscp()), (voice, voice));
                    assert!(!other.is_damaged());
                    other.damage();
                    assert!(other.is_damaged() && other.with_part(part).is_damaged());
                    assert_eq!((other.part(), other.ecn(), other.dscp()), (whole, Ecn::Ce, voice));
                    assert_eq!((other.part(), other.ecn(), other.tag), (whole, Ecn::Ce, 7));
                }
            }
        }
    }
}
