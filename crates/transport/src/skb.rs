//! The memory that Linux charges a socket for a packet (struct sk_buff, its `truesize`), x86-64.
//!
//! ```text
//!   truesize = sk_buff │ head: bytes and headers, in cache lines │ skb_shared_info
//!                      └──── one object of the allocator: a small one of its own, else a power of two ────┘
//! ```
//!
//! Since Linux 6.3 small heads have objects of their own (skbuff_small_head), a little larger than what TCP's
//! segments need. Their size follows from how the kernel was built; earlier kernels have none ([`Heads`]).
//!
//! A datagram lies in one piece behind room for a link's header, as a packet socket, a virtual cable and a
//! driver that copies make it. Left out: drivers that give each packet a share of a page (virtio_net, and
//! most of fast hardware) charge by that share, whatever the packet's size; packets above a page, whose rest
//! lies in pages.

use talkpath_config::{CACHE_LINE, SHARED_INFO};
use talkpath_units::Bytes;

/// struct sk_buff, in whole cache lines.
pub(crate) const SK_BUFF: u64 = 256;

/// The allocator's objects for heads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    /// The size of a small head's object. Zero if there is none.
    small: u64,
}

impl Heads {
    /// Those of a kernel with this `small_head`, if it has any.
    pub(crate) const fn new(small_head: Option<Bytes>) -> Self {
        match small_head {
            Some(size) => Self { small: size.get() },
            None => Self { small: 0 },
        }
    }

    /// The memory of an sk_buff whose head has `bytes` before its skb_shared_info (SKB_TRUESIZE).
    #[inline]
    pub(crate) const fn sk_buff(self, bytes: u64) -> u64 {
        let head = bytes.next_multiple_of(CACHE_LINE) + SHARED_INFO;
        SK_BUFF + if head <= self.small { self.small } else { head.next_power_of_two() }
    }
}

/// A UDP datagram of `payload` bytes as it waits in a socket, over a path whose packets are of at most `mtu`
/// bytes: the sum of its fragments (ip_frag_reasm).
#[inline]
pub(crate) const fn datagram(payload: u64, mtu: u64, heads: Heads) -> u64 {
    let packet = payload + UDP_HEADER;
    if packet + IPV4_HEADER <= mtu {
        return heads.sk_buff(LINK + IPV4_HEADER + packet);
    }
    fragments(packet, mtu, heads)
}

#[cold]
const fn fragments(packet: u64, mtu: u64, heads: Heads) -> u64 {
    // RFC 791 §3.2: whole units of 8 B in all but the last.
    let most = mtu.saturating_sub(IPV4_HEADER) / 8 * 8;
    let most = if most == 0 { 8 } else { most };
    let whole = (packet - 1) / most;
    let (piece, rest) = (heads.sk_buff(LINK + IPV4_HEADER + most), packet - whole * most);
    // The second of two goes to the end of the first one's memory, if that has room (skb_try_coalesce).
    let spare = piece.saturating_sub(SK_BUFF + SHARED_INFO + LINK_HEADER + IPV4_HEADER + most);
    if whole == 1 && rest <= spare { piece } else { whole * piece + heads.sk_buff(LINK + IPV4_HEADER + rest) }
}

/// Room for a link's header (LL_RESERVED_SPACE of Ethernet), and that header, which lies in it, once more
/// (packet_snd).
const LINK_HEADER: u64 = 16;
const LINK: u64 = LINK_HEADER + 14;
const IPV4_HEADER: u64 = 20;
const UDP_HEADER: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_config::small_head;

    /// A kernel without wireless networks and tunnels.
    const LEAN: Heads = Heads::new(Some(small_head(Bytes::new(192))));

    /// Linux 6.18: as many datagrams of each size as a socket took, sent through a packet socket and a veth
    /// cable.
    #[test]
    fn a_datagram_is_charged_what_its_memory_takes() {
        for (payload, charged) in [(20, 832), (198, 832), (199, 1280), (646, 1280), (647, 2304), (1472, 2304)]
        {
            assert_eq!(datagram(payload, 1500, LEAN), charged, "{payload} B");
        }
    }

    #[test]
    fn a_fragmented_datagram_is_charged_for_each_piece() {
        let measured = [
            (1473, 2304),
            (1680, 2304),
            (1690, 3584),
            (2000, 3584),
            (2952, 4608),
            (2953, 5440),
            (5000, 8192),
            (9000, 14_656),
        ];
        for (payload, charged) in measured {
            assert_eq!(datagram(payload, 1500, LEAN), charged, "{payload} B");
        }
        assert_eq!(datagram(100, 28, LEAN), 14 * 832);
    }

    /// Linux before 6.3: each head is a power of two (kmalloc).
    #[test]
    fn without_small_heads_the_next_power_of_two_is_charged() {
        let none = Heads::new(None);
        for (payload, charged) in [(20, 768), (134, 768), (135, 1280), (646, 1280), (647, 2304)] {
            assert_eq!(datagram(payload, 1500, none), charged, "{payload} B");
        }
        assert_eq!((none.sk_buff(320), LEAN.sk_buff(192)), (1280, 832));
    }
}
