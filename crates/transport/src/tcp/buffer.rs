//! The send buffer: written and unacknowledged bytes, and when there is room for more.
//!
//! Fixed, or grown with the congestion window as Linux does (tcp_sndbuf_expand): room for twice the window, each
//! segment charged what its memory costs. Linux charges each write its memory too; ours charges payload alone.
//!
//! A message is taken whole where it fits. Winsock's buffer takes one, however large, as long as it holds less than its
//! room (`overfill`): a send completes while the socket is within its SO_SNDBUF quota (Microsoft, "Design issues: Sending
//! small data segments over TCP with Winsock", KB 214397). Left out of that: the one send more that is taken beyond the quota
//! while a single earlier one is unfinished.

use talkpath_units::Bytes;

/// How large the send buffer is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendBuffer {
    capacity: u64,
    autotuned: bool,
    overfill: bool,
}

impl SendBuffer {
    /// A buffer of `fixed` bytes, or an autotuned one; `overfill` takes what does not fit.
    pub(crate) const fn new(fixed: Option<Bytes>, overfill: bool) -> Self {
        match fixed {
            Some(capacity) => Self { capacity: capacity.get(), autotuned: false, overfill },
            None => Self { capacity: WMEM_DEFAULT, autotuned: true, overfill },
        }
    }

    /// `cwnd` segments of `mss` bytes may be in flight: an autotuned buffer holds two such windows. It never shrinks.
    pub(crate) fn expand(&mut self, cwnd: u64, mss: u32) {
        if self.autotuned {
            let per_segment = (u64::from(mss) + HEADER_ROOM).next_power_of_two() + SK_BUFF;
            let wanted = cwnd.max(INIT_CWND).saturating_mul(2 * per_segment);
            self.capacity = self.capacity.max(wanted.min(WMEM_MAX));
        }
    }

    /// The largest message that could ever fit.
    pub(crate) const fn largest_message(&self) -> Bytes {
        match (self.overfill, self.autotuned) {
            (true, _) => Bytes::MAX,
            (false, true) => Bytes::new(WMEM_MAX),
            (false, false) => Bytes::new(self.capacity),
        }
    }

    /// Whether a message fits beside the `queued` bytes.
    pub(crate) const fn fits(&self, queued: u64, size: u64) -> bool {
        if self.overfill { queued < self.capacity } else { queued.saturating_add(size) <= self.capacity }
    }

    /// Room to report: none until a third of the buffer is free (sk_stream_is_writeable), so that a writer is not
    /// woken for every segment.
    pub(crate) const fn writable(&self, queued: u64) -> Bytes {
        let free = self.capacity.saturating_sub(queued);
        if self.overfill {
            return if free > 0 { Bytes::MAX } else { Bytes::ZERO };
        }
        Bytes::new(if free >= queued / 2 { free } else { 0 })
    }
}

/// net.ipv4.tcp_wmem[1].
const WMEM_DEFAULT: u64 = 16 << 10;
/// net.ipv4.tcp_wmem[2].
const WMEM_MAX: u64 = 4 << 20;
/// TCP_INIT_CWND.
const INIT_CWND: u64 = 10;
/// MAX_TCP_HEADER and skb_shared_info on x86-64, 320 B each.
const HEADER_ROOM: u64 = 640;
/// struct sk_buff on x86-64, in whole cache lines.
const SK_BUFF: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// The 87,040 B that a fresh Linux socket shows with an MSS of 1460.
    #[test]
    fn a_fresh_connection_has_linux_room() {
        let mut buffer = SendBuffer::new(None, false);
        buffer.expand(10, 1460);
        assert_eq!(buffer.capacity, 87_040);
        buffer.expand(100, 1460);
        assert_eq!(buffer.capacity, 870_400);
        buffer.expand(1, 1460);
        assert_eq!(buffer.capacity, 870_400);
    }

    #[test]
    fn a_buffer_is_writable_when_a_third_is_free() {
        let buffer = SendBuffer::new(Some(Bytes::new(3000)), false);
        assert_eq!(buffer.writable(2000), Bytes::new(1000));
        assert_eq!(buffer.writable(2001), Bytes::ZERO);
        assert!(buffer.fits(2001, 999) && !buffer.fits(2001, 1000));
    }

    #[test]
    fn an_overfilled_buffer_takes_any_message_until_it_is_full() {
        let buffer = SendBuffer::new(Some(Bytes::new(8192)), true);
        assert!(buffer.fits(8191, 60 << 10) && !buffer.fits(8192, 1));
        assert_eq!((buffer.writable(8191), buffer.writable(8192)), (Bytes::MAX, Bytes::ZERO));
    }
}
