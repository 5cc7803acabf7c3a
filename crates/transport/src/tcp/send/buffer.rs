//! The send buffer: the bytes that were written and are not acknowledged, and the room for more.
//!
//! There are three kinds of buffer:
//!
//! | kind | what counts | capacity | a message is taken |
//! | --- | --- | --- | --- |
//! | fixed | payload | the scenario's | whole, if it fits |
//! | Linux (`memory`) | payload and its memory | autotuned, or twice SO_SNDBUF | whole, if it fits |
//! | Winsock (`overfill`) | payload | the scenario's | whole, while any room is left |
//!
//! **Linux** keeps the bytes in sk_buffs, and charges the buffer for the payload and for the head of each
//! sk_buff (sk_wmem_queued):
//!
//! - A sent sk_buff holds one burst. An unsent one holds as much as a segmenting device takes, and each write
//!   first fills up the last one.
//! - A write begins a new sk_buff while less than the capacity is charged. So the last one may exceed the
//!   capacity.
//! - The application is woken when at least half as much is free as is charged (sk_stream_is_writeable).
//! - An autotuned capacity is two congestion windows (BBR: three), each segment counted as if it were alone
//!   in its sk_buff. It grows when an acknowledgement arrives, the application waits for room (SOCK_NOSPACE),
//!   and `cwnd` is not full (tcp_sndbuf_expand). It never shrinks.
//! - The size of a head depends on how the kernel was built. A kernel with wireless networks or tunnels keeps
//!   320 B free for headers (MAX_TCP_HEADER, `header_room`), another kernel 192 B. A full segment of Ethernet
//!   is then charged 4352 B or 2304 B.
//!
//! A message is taken whole if it fits. If an empty buffer would hold the message, the message waits until it
//! fits. A larger message is written in parts ([`SendBuffer::part`]) once the buffer is writable.
//!
//! **Winsock** completes a send while the socket is within its SO_SNDBUF quota, whatever the size of the
//! message (Microsoft, "Design issues: Sending small data segments over TCP with Winsock", KB 214397). Left
//! out: the one further send that Winsock takes beyond the quota while a single earlier send is unfinished.

use talkpath_config::{SHARED_INFO, Stack, TcpConfig};
use talkpath_units::Bytes;
use talkpath_wire::WRITE;

use crate::skb::{Heads, SK_BUFF};

/// The size of the send buffer, and whether the application waits for room.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    /// In bytes.
    capacity: u64,
    /// True for Winsock's buffer.
    overfill: bool,
    /// How Linux charges for memory. `None` if payload alone counts.
    memory: Option<Memory>,
    writer: Writer,
    /// The largest `cwnd`, in segments, for which [`Self::check`] has made room.
    expanded_for: u64,
}

/// Whether the application waits for room in Linux's buffer (SOCK_NOSPACE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    /// The application may write.
    Woken,
    /// The application wrote until there was no room, and was not woken since.
    Waiting,
    /// As `Waiting`, and an acknowledgement has arrived that may have made room.
    WaitingAcked,
}

/// How Linux charges for memory. Amounts are in bytes.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// The room for headers in front of the payload (MAX_TCP_HEADER).
    header_room: u64,
    /// The largest capacity that autotuning reaches (tcp_wmem[2]).
    max: u64,
    /// The memory of an sk_buff without its payload (SKB_TRUESIZE).
    head: u64,
    /// The number of congestion windows that fit. Zero if the application set the size (SOCK_SNDBUF_LOCK).
    windows: u64,
}

/// The contents of the buffer, and two quantities that decide the size of an sk_buff. Amounts are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// Written and not acknowledged.
    pub(super) bytes: u64,
    /// Those of `bytes` that were never sent.
    pub(super) unsent: u64,
    /// The number of sk_buffs that were sent and are not acknowledged.
    pub(super) skbs: u64,
    /// Payload of a full segment.
    pub(super) smss: u64,
    /// The largest window that the far end has offered.
    pub(super) max_window: u64,
}

impl SendBuffer {
    /// The buffer that `config` describes. `is_rate_based` is true for a congestion control like BBR.
    pub(super) const fn new(config: &TcpConfig, is_rate_based: bool) -> Self {
        let (capacity, memory) = match config.send_buffer {
            None => {
                let windows = if is_rate_based { BBR_WINDOWS } else { WINDOWS };
                (WMEM_DEFAULT, Some(Memory::new(config, windows)))
            }
            Some(asked) if matches!(config.stack, Stack::Linux) && !config.overfill => {
                let doubled = asked.get().saturating_mul(2);
                let capacity = if doubled < SOCK_MIN_SNDBUF { SOCK_MIN_SNDBUF } else { doubled };
                (capacity, Some(Memory::new(config, 0)))
            }
            Some(capacity) => (capacity.get(), None),
        };
        Self { capacity, overfill: config.overfill, memory, writer: Writer::Woken, expanded_for: 0 }
    }

    /// Gives an autotuned buffer room for two or three windows of `cwnd` segments with `mss` bytes each.
    pub(super) fn expand(&mut self, cwnd: u64, mss: u32) {
        if let Some(memory) = self.memory.filter(|memory| memory.windows > 0) {
            let segment = (u64::from(mss) + memory.header_room + SHARED_INFO).next_power_of_two() + SK_BUFF;
            let wanted = cwnd.max(INIT_CWND).saturating_mul(memory.windows * segment);
            self.capacity = self.capacity.max(wanted.min(memory.max));
        }
    }

    /// Has the application wait, because a write found no room.
    pub(super) const fn on_refused(&mut self) {
        if self.memory.is_some() && matches!(self.writer, Writer::Woken) {
            self.writer = Writer::Waiting;
        }
    }

    /// Has the application wait if no room is left after a write (Linux: tcp_poll). `queue` includes the
    /// write.
    #[inline]
    pub(super) fn on_write(&mut self, queue: Queue) {
        if self.memory.is_some() && self.writer == Writer::Woken && self.writable(queue) == Bytes::ZERO {
            self.writer = Writer::Waiting;
        }
    }

    /// Takes note of an acknowledgement.
    #[inline]
    pub(super) const fn on_ack(&mut self) {
        if matches!(self.writer, Writer::Waiting) {
            self.writer = Writer::WaitingAcked;
        }
    }

    /// True if an acknowledgement arrived while the application waited.
    #[inline]
    pub(super) const fn awaits_check(&self) -> bool {
        matches!(self.writer, Writer::WaitingAcked)
    }

    /// Lets the buffer grow if it `may_grow`, and then wakes the application if there is room (Linux:
    /// tcp_check_space, tcp_new_space). The segments that the acknowledgement released have left before.
    pub(super) fn check(&mut self, queue: Queue, may_grow: bool, cwnd: u64, mss: u32) {
        if !self.awaits_check() {
            return;
        }
        if may_grow && cwnd > self.expanded_for {
            self.expand(cwnd, mss);
            self.expanded_for = cwnd;
        }
        let has_room = self.writable(queue) > Bytes::ZERO;
        self.writer = if has_room { Writer::Woken } else { Writer::Waiting };
    }

    /// True if a message of `size` bytes is taken as a whole, with `queue` in the buffer.
    pub(super) fn fits(&self, queue: Queue, size: u64) -> bool {
        if self.overfill {
            return queue.bytes < self.capacity;
        }
        size <= self.room(queue)
    }

    fn room(&self, queue: Queue) -> u64 {
        match self.memory {
            Some(memory) => {
                let max_skb = memory.max_skb(queue);
                memory.room(self.capacity.saturating_sub(memory.charge(queue, max_skb)), queue, max_skb)
            }
            None => self.capacity.saturating_sub(queue.bytes),
        }
    }

    /// The part of a write that is taken now, if the write does not fit as a whole. After each part the
    /// segments that may leave do so, in bursts of `burst` bytes, and the application writes the next part.
    /// It has written `written` bytes in parts since it was woken.
    ///
    /// Linux checks the charge only when it begins a new sk_buff (tcp_sendmsg_locked), so the rest of the
    /// last sk_buff can always be filled. A burst that leaves in the middle of a write makes room in the last
    /// sk_buff again (tcp_push_one, tso_fragment). That ends when one call has written more than half of the
    /// far end's largest window: then the sk_buff is pushed as a whole (forced_push).
    pub(super) fn part(&self, queue: Queue, burst: u64, written: Bytes) -> Bytes {
        let Some(memory) = self.memory else { return Bytes::new(self.room(queue)) };
        let max_skb = memory.max_skb(queue);
        let in_call = written.get() % WRITE;
        let half = queue.max_window / 2;
        let part = if written == Bytes::ZERO && queue.unsent > max_skb {
            // The last sk_buff is full, and a part of the earlier ones has left.
            0
        } else if queue.unsent > 0 {
            queue.unsent.next_multiple_of(max_skb) - queue.unsent
        } else if burst < max_skb && (1..=half).contains(&in_call) {
            (half + 1 - in_call).next_multiple_of(burst.max(1)).min(max_skb)
        } else {
            0
        };
        let is_free = memory.charge(queue, max_skb) < self.capacity;
        let part = if part == 0 && is_free { max_skb } else { part };
        Bytes::new(part.min(WRITE - in_call))
    }

    /// True if an empty buffer would hold a message of `size` bytes.
    pub(super) fn holds(&self, queue: Queue, size: u64) -> bool {
        let empty = Queue { bytes: 0, unsent: 0, skbs: 0, ..queue };
        self.overfill || size <= self.room(empty)
    }

    /// The room to report to the application. It is zero until a third of the buffer is free, so that the
    /// application is not woken for every segment (Linux: sk_stream_is_writeable).
    #[inline]
    pub(super) fn writable(&self, queue: Queue) -> Bytes {
        // The bytes in flight alone often take all the room. This comparison needs no division.
        let in_flight = queue.bytes + self.memory.map_or(0, |memory| queue.skbs * memory.head);
        if self.capacity.saturating_sub(in_flight) < in_flight / 2 && !self.overfill {
            return Bytes::ZERO;
        }
        self.writable_room(queue)
    }

    fn writable_room(&self, queue: Queue) -> Bytes {
        let max_skb = self.memory.map_or(0, |memory| memory.max_skb(queue));
        let charged = self.memory.map_or(queue.bytes, |memory| memory.charge(queue, max_skb));
        let free = self.capacity.saturating_sub(charged);
        if self.overfill {
            return if free > 0 { Bytes::MAX } else { Bytes::ZERO };
        }
        if free < charged / 2 {
            return Bytes::ZERO;
        }
        Bytes::new(self.memory.map_or(free, |memory| memory.room(free, queue, max_skb)))
    }
}

impl Memory {
    const fn new(config: &TcpConfig, windows: u64) -> Self {
        let header_room = config.header_room.get();
        Self {
            header_room,
            max: config.send_buffer_max.get(),
            head: Heads::new(config.small_head).sk_buff(header_room),
            windows,
        }
    }

    /// The charge for the queue (sk_wmem_queued), whose unsent sk_buffs hold `max_skb` bytes each.
    fn charge(self, queue: Queue, max_skb: u64) -> u64 {
        let skbs = queue.skbs + queue.unsent.div_ceil(max_skb);
        queue.bytes + skbs * self.head
    }

    /// The largest write that is taken while `free` bytes are not charged (Linux: tcp_sendmsg_locked). It
    /// fills up the last sk_buff, and begins new ones as long as any byte is free.
    fn room(self, free: u64, queue: Queue, max_skb: u64) -> u64 {
        let rest_of_last = queue.unsent.next_multiple_of(max_skb) - queue.unsent;
        let free = free.saturating_sub(rest_of_last);
        rest_of_last + free.div_ceil(max_skb + self.head) * max_skb
    }

    /// The payload of a full unsent sk_buff: as many whole segments as fit into 64 KiB less headers and into
    /// half of the largest window that the far end has offered (Linux: tcp_xmit_size_goal).
    fn max_skb(self, queue: Queue) -> u64 {
        let smss = queue.smss.max(1);
        let bound = match queue.max_window {
            0..=MSS_DEFAULT => queue.max_window,
            window => window / 2,
        };
        let bytes = bound.min(MAX_SKB - 1 - self.header_room.min(MAX_SKB / 2));
        (bytes / smss).max(1) * smss
    }
}
/// The capacity before the first expansion (Linux: net.ipv4.tcp_wmem[1]).
const WMEM_DEFAULT: u64 = 16 << 10;
/// The smallest `cwnd` that the buffer has room for (Linux: TCP_INIT_CWND).
const INIT_CWND: u64 = 10;
/// Congestion windows in an autotuned buffer (Linux: tcp_sndbuf_expand).
const WINDOWS: u64 = 2;
/// The same for BBR (Linux: bbr_sndbuf_expand).
const BBR_WINDOWS: u64 = 3;
/// The smallest capacity that an application can set: twice the sum of 2048 B and a struct sk_buff.
const SOCK_MIN_SNDBUF: u64 = 2 * (2048 + SK_BUFF);
/// The largest sk_buff with its headers (Linux: GSO_LEGACY_MAX_SIZE).
const MAX_SKB: u64 = 65_536;
/// A window of at most this size is not halved (Linux: TCP_MSS_DEFAULT in tcp_bound_to_half_wnd).
const MSS_DEFAULT: u64 = 536;

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel without wireless networks or tunnels.
    const LEAN: Bytes = Bytes::new(192);
    const FULL: Bytes = Bytes::new(320);

    const fn queue(bytes: u64, unsent: u64, skbs: u64) -> Queue {
        Queue { bytes, unsent, skbs, smss: 1448, max_window: 64_088 }
    }

    fn auto(header_room: Bytes) -> SendBuffer {
        SendBuffer::new(&linux(header_room), false)
    }

    fn linux(header_room: Bytes) -> TcpConfig {
        let small_head = Some(talkpath_config::small_head(header_room));
        TcpConfig { header_room, small_head, ..TcpConfig::preset(Stack::Linux, false) }
    }

    fn fixed(bytes: u64, stack: Stack, overfill: bool) -> SendBuffer {
        let send_buffer = Some(Bytes::new(bytes));
        let preset = TcpConfig::preset(stack, false);
        let small_head = Some(talkpath_config::small_head(LEAN));
        let config = TcpConfig { send_buffer, header_room: LEAN, small_head, overfill, ..preset };
        SendBuffer::new(&config, false)
    }

    /// The 87,040 B that a fresh Linux socket shows with an MSS of 1460, and 46,080 B where the kernel is
    /// lean.
    #[test]
    fn a_fresh_connection_has_linux_room() {
        let mut buffer = auto(FULL);
        buffer.expand(10, 1460);
        assert_eq!(buffer.capacity, 87_040);
        buffer.expand(100, 1460);
        assert_eq!(buffer.capacity, 870_400);
        buffer.expand(1, 1460);
        assert_eq!(buffer.capacity, 870_400);
        let mut lean = auto(LEAN);
        lean.expand(10, 1460);
        assert_eq!(lean.capacity, 46_080);
        lean.expand(141, 1460);
        assert_eq!(lean.capacity, 649_728);
    }

    /// Linux 6.18, SO_MEMINFO: ten segments in five skbs and 31,856 B unsent were 51,328 B; twenty in ten and
    /// 2896 B, 41,008 B.
    #[test]
    fn each_sk_buff_is_charged_its_head() {
        let memory = Memory::new(&linux(LEAN), 2);
        assert_eq!(memory.max_skb(queue(0, 0, 0)), 31_856);
        assert_eq!(memory.charge(queue(14_480 + 31_856, 31_856, 5), 31_856), 51_328);
        assert_eq!(memory.charge(queue(28_960 + 2896, 2896, 10), 31_856), 41_008);
        let later = Queue { max_window: 1 << 20, ..queue(0, 0, 0) };
        assert_eq!(memory.max_skb(later), 45 * 1448);
        assert_eq!(Memory::new(&linux(FULL), 2).head, 896);
        let old = TcpConfig { small_head: None, ..linux(FULL) };
        assert_eq!(Memory::new(&old, 2).head, 1280, "Linux before 6.3");
    }

    /// sk_stream_memory_free decides when an sk_buff begins.
    #[test]
    fn the_last_sk_buff_may_overshoot() {
        let mut buffer = auto(LEAN);
        buffer.expand(10, 1460);
        assert_eq!(buffer.writable(queue(0, 0, 0)), Bytes::new(2 * 31_856));
        assert_eq!(buffer.writable(queue(51_000, 30_000, 10)), Bytes::ZERO);
        assert!(
            buffer.fits(queue(51_000, 30_000, 10), 1856) && !buffer.fits(queue(51_000, 30_000, 10), 1857)
        );
    }

    #[test]
    fn what_an_empty_buffer_holds_waits_for_room_as_a_whole() {
        let mut buffer = auto(LEAN);
        buffer.expand(10, 1460);
        let (empty, few) = (queue(0, 0, 0), queue(10_000, 0, 7));
        assert!(buffer.fits(empty, 63_712) && !buffer.fits(empty, 63_713));
        assert!(buffer.writable(few) > Bytes::ZERO && !buffer.fits(few, 63_712));
        assert!(buffer.holds(few, 63_712) && !buffer.holds(few, 63_713));
    }

    /// Linux 6.18, SO_SNDBUF 64,000 B, ten segments of `cwnd`: a write of 128 KiB was taken, 10,832 B of the
    /// next, and no more.
    #[test]
    fn a_sk_buff_that_is_cut_up_is_filled_up_without_asking_for_memory() {
        let buffer = fixed(64_000, Stack::Linux, false);
        let (mut written, mut sent, mut parts) = (0, 0, Vec::new());
        loop {
            let part =
                buffer.part(queue(written, written - sent, sent / 2896), 2896, Bytes::new(written)).get();
            if part == 0 {
                break;
            }
            parts.push(part);
            written += part;
            sent = written.min(10 * 1448);
        }
        assert_eq!(parts, [31_856, 14_480, 31_856, 31_856, 21_024, 10_832]);
    }

    /// Linux 6.18, SO_SNDBUF 16,000 B, a max_skb window of some 150 kB and a `cwnd` of which more was free:
    /// 53 segments were taken.
    #[test]
    fn half_a_window_that_one_call_has_written_is_pushed_and_then_memory_is_asked_for() {
        let buffer = fixed(16_000, Stack::Linux, false);
        let sent = |bytes: u64| Queue { max_window: 150_000, ..queue(bytes, 0, bytes / 2896) };
        let first = buffer.part(sent(0), 2896, Bytes::ZERO).get();
        let second = buffer.part(sent(first), 2896, Bytes::new(first)).get();
        assert_eq!((first, first + second), (65_160, 53 * 1448));
        assert_eq!(buffer.part(sent(first + second), 2896, Bytes::new(first + second)), Bytes::ZERO);
        let whole = 45 * 1448;
        assert_eq!(buffer.part(sent(whole), whole, Bytes::new(whole)), Bytes::ZERO, "nothing is cut up");
    }

    /// tcp_new_space grows the buffer before sk_stream_write_space asks whether it is writable.
    #[test]
    fn the_acknowledgement_that_makes_room_also_makes_the_buffer_grow() {
        let mut buffer = auto(LEAN);
        buffer.expand(10, 1460);
        let freed = queue(18_784, 0, 9);
        buffer.on_write(freed);
        buffer.on_ack();
        assert!(!buffer.awaits_check() && buffer.capacity == 46_080);
        buffer.on_write(queue(25_600, 11_544, 10));
        buffer.on_ack();
        assert!(buffer.awaits_check());
        assert!(buffer.writable(freed) > Bytes::ZERO);
        buffer.check(freed, false, 15, 1460);
        assert_eq!(buffer.capacity, 46_080);
        buffer.on_write(queue(25_600, 11_544, 10));
        buffer.on_ack();
        assert!(buffer.awaits_check());
        buffer.check(freed, true, 15, 1460);
        assert_eq!(buffer.capacity, 69_120);
        buffer.check(freed, true, 20, 1460);
        assert_eq!(buffer.capacity, 69_120);
    }

    #[test]
    fn a_buffer_is_writable_when_a_third_is_free() {
        let buffer = fixed(3000, Stack::Rfc, false);
        assert_eq!(buffer.writable(queue(2000, 0, 0)), Bytes::new(1000));
        assert_eq!(buffer.writable(queue(2001, 0, 0)), Bytes::ZERO);
        assert!(buffer.fits(queue(2001, 0, 0), 999) && !buffer.fits(queue(2001, 0, 0), 1000));
    }

    /// SO_SNDBUF = 48,000 B of Linux 6.18, each segment of 1448 B an sk_buff of its own: writable while no
    /// more than two thirds of 96,000 B are charged, 28 skbs of 2280 B.
    #[test]
    fn a_size_that_linux_is_asked_for_is_doubled_and_charged_for_memory() {
        let mut buffer = fixed(48_000, Stack::Linux, false);
        buffer.expand(1000, 1460);
        assert_eq!(buffer.capacity, 96_000);
        let sent = |skbs| queue(skbs * 1448, 0, skbs);
        assert!(buffer.writable(sent(28)) > Bytes::ZERO);
        assert_eq!(buffer.writable(sent(29)), Bytes::ZERO);
        assert_eq!(fixed(1024, Stack::Linux, false).capacity, 4608);
        assert!(fixed(1024, Stack::Linux, false).fits(Queue { max_window: 100, ..queue(0, 0, 0) }, 1024));
    }

    #[test]
    fn an_overfilled_buffer_takes_any_message_until_it_is_full() {
        let buffer = fixed(8192, Stack::Rfc, true);
        assert!(buffer.fits(queue(8191, 0, 0), 60 << 10) && !buffer.fits(queue(8192, 0, 0), 1));
        assert_eq!(
            (buffer.writable(queue(8191, 0, 0)), buffer.writable(queue(8192, 0, 0))),
            (Bytes::MAX, Bytes::ZERO)
        );
    }
}
