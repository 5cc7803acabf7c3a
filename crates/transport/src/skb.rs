//! The memory that Linux charges a socket for a packet (struct sk_buff, its `truesize`), x86-64.
//!
//! ```text
//!   truesize = sk_buff │ head: bytes and headers, in cache lines │ skb_shared_info
//!                      └──── one object of the allocator: a small one of its own, else a power of two ────┘
//! ```
//!
//! A datagram lies in one piece behind room for a link's header, as a packet socket, a virtual cable and a
//! driver that copies make it. Left out: drivers that give each packet a share of a page (virtio_net, and
//! most of fast hardware) charge by that share, whatever the packet's size; packets above a page, whose rest
//! lies in pages.

/// struct sk_buff and struct skb_shared_info, in whole cache lines.
pub(crate) const SK_BUFF: u64 = 256;
pub(crate) const SHARED_INFO: u64 = 320;
/// L1_CACHE_BYTES.
pub(crate) const CACHE_LINE: u64 = 64;

/// The small heads' object if `room` bytes are kept free for headers: no power of two
/// (SKB_SMALL_HEAD_CACHE_SIZE).
pub(crate) const fn small_head(room: u64) -> u64 {
    let head = (room + SHARED_INFO).next_multiple_of(CACHE_LINE);
    if head.is_power_of_two() { head + CACHE_LINE } else { head }
}

/// A UDP datagram of `payload` bytes as it waits in a socket, over a path whose packets are of at most `mtu`
/// bytes: the sum of its fragments (ip_frag_reasm).
#[inline]
pub(crate) const fn datagram(payload: u64, mtu: u64) -> u64 {
    let packet = payload + UDP_HEADER;
    if packet + IPV4_HEADER <= mtu {
        return linear(IPV4_HEADER + packet);
    }
    fragments(packet, mtu)
}

#[cold]
const fn fragments(packet: u64, mtu: u64) -> u64 {
    // RFC 791 §3.2: whole units of 8 B in all but the last.
    let most = mtu.saturating_sub(IPV4_HEADER) / 8 * 8;
    let most = if most == 0 { 8 } else { most };
    let whole = (packet - 1) / most;
    let (piece, rest) = (linear(IPV4_HEADER + most), packet - whole * most);
    // The second of two goes to the end of the first one's memory, if that has room (skb_try_coalesce).
    let spare = piece.saturating_sub(SK_BUFF + SHARED_INFO + LINK_HEADER + IPV4_HEADER + most);
    if whole == 1 && rest <= spare { piece } else { whole * piece + linear(IPV4_HEADER + rest) }
}

/// The memory of an IP packet of `packet` bytes.
#[inline]
const fn linear(packet: u64) -> u64 {
    let head = (LINK + packet).next_multiple_of(CACHE_LINE) + SHARED_INFO;
    SK_BUFF + if head <= SMALL_HEAD { SMALL_HEAD } else { head.next_power_of_two() }
}

/// Room for a link's header (LL_RESERVED_SPACE of Ethernet), and that header, which lies in it, once more
/// (packet_snd).
const LINK_HEADER: u64 = 16;
const LINK: u64 = LINK_HEADER + 14;
const IPV4_HEADER: u64 = 20;
const UDP_HEADER: u64 = 8;
/// Of a kernel without wireless networks or tunnels; others have 640 B, or 704 B since Linux 6.14.
const SMALL_HEAD: u64 = small_head(192);

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.18: as many datagrams of each size as a socket took, sent through a packet socket and a veth
    /// cable.
    #[test]
    fn a_datagram_is_charged_what_its_memory_takes() {
        for (payload, charged) in [(20, 832), (198, 832), (199, 1280), (646, 1280), (647, 2304), (1472, 2304)]
        {
            assert_eq!(datagram(payload, 1500), charged, "{payload} B");
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
            assert_eq!(datagram(payload, 1500), charged, "{payload} B");
        }
        assert_eq!(datagram(100, 28), 14 * 832);
    }

    /// Linux 6.18: a segment's head without wireless networks and tunnels is 832 B.
    #[test]
    fn the_small_heads_are_no_power_of_two() {
        assert_eq!((small_head(192), small_head(320)), (576, 640));
    }
}
