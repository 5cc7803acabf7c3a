//! Sizes that follow from a configuration. Scenarios are checked against them.

use talkpath_units::Bytes;

/// The size of a cache line in bytes: L1_CACHE_BYTES of x86-64.
pub const CACHE_LINE: u64 = 64;
/// The size of struct skb_shared_info of Linux in bytes, in whole cache lines.
pub const SHARED_INFO: u64 = 320;

/// The size of the headers of IPv4 and UDP (RFC 791 §3.1, RFC 768).
pub const UDP_OVER_IPV4: Bytes = Bytes::new(20 + 8);

/// The size of the memory object for a small head if `header_room` is kept free for headers (MAX_TCP_HEADER).
/// It is never a power of two (SKB_SMALL_HEAD_CACHE_SIZE, Linux 6.3 to 6.13). Later kernels also keep space
/// for GRO, and 640 B become 704 B.
pub const fn small_head(header_room: Bytes) -> Bytes {
    let head = (header_room.get() + SHARED_INFO).next_multiple_of(CACHE_LINE);
    Bytes::new(if head.is_power_of_two() { head + CACHE_LINE } else { head })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.18: a segment's head without wireless networks and tunnels is 832 B.
    #[test]
    fn the_size_of_a_small_head_is_not_a_power_of_two() {
        assert_eq!(small_head(Bytes::new(192)), Bytes::new(576));
        assert_eq!(small_head(Bytes::new(320)), Bytes::new(640));
    }
}
