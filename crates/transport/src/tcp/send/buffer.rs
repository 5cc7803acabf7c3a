//! The send buffer: the bytes that were written and are not acknowledged, and the room for more.
//!
//! There are three kinds of buffer:
//!
//! | kind | what counts | capacity | a message is accepted |
//! | --- | --- | --- | --- |
//! | fixed | payload | the scenario's | as a whole, if it fits |
//! | Linux (`memory`) | payload and overhead | autotuned, or twice SO_SNDBUF | as a whole, if it fits |
//! | Winsock (`may_overfill`) | payload | the scenario's | as a whole, while any room is left |
//!
//! A sender asks four questions about room:
//!
//! - [`SendBuffer::has_room_for`]: is a message of this size accepted as a whole now?
//! - [`SendBuffer::fits_when_empty`]: if not, would it be accepted as a whole later? Then it waits.
//! - [`SendBuffer::next_part`]: if not, how much of it is accepted now? Then it is written in parts.
//! - [`SendBuffer::reported_room`]: how much room does the application see? It is zero while little is free.
//!
//! **Linux** keeps the bytes in sk_buffs, and charges the buffer for the payload and for the overhead of each
//! sk_buff (sk_wmem_queued):
//!
//! - A sent sk_buff holds one burst. An unsent sk_buff holds as much as a segmenting device takes. Each write
//!   first fills up the last sk_buff.
//! - A write begins a new sk_buff while less than the capacity is charged. So the last sk_buff may exceed the
//!   capacity.
//! - The application is woken when at least half as much is free as is charged (sk_stream_is_writeable).
//! - An autotuned capacity is two congestion windows (BBR: three), and each segment counts as if it were
//!   alone in its sk_buff. The capacity grows when an acknowledgement arrives while the application waits for
//!   room (SOCK_NOSPACE) and `cwnd` is not full (tcp_sndbuf_expand). The capacity never shrinks.
//! - The overhead of an sk_buff depends on how the kernel was built. A kernel with wireless networks or
//!   tunnels keeps 320 B free for headers (MAX_TCP_HEADER, `header_room`), another kernel 192 B. A full
//!   segment of Ethernet is then charged 4352 B or 2304 B.
//!
//! **Winsock** completes a send while the socket is within its SO_SNDBUF quota, whatever the size of the
//! message (Microsoft, "Design issues: Sending small data segments over TCP with Winsock", KB 214397). Left
//! out: the one further send that Winsock takes beyond the quota while a single earlier send is unfinished.

use talkpath_config::{SHARED_INFO, Stack, TcpConfig};
use talkpath_units::Bytes;
use talkpath_wire::WRITE;

use crate::skb::{Heads, SK_BUFF};

/// The capacity before the first expansion (Linux: net.ipv4.tcp_wmem[1]).
const WMEM_DEFAULT: u64 = 16 << 10;
/// The smallest `cwnd` that the buffer has room for (Linux: TCP_INIT_CWND).
const INIT_CWND: u64 = 10;
/// The number of congestion windows for which an autotuned buffer has room (Linux: tcp_sndbuf_expand).
const WINDOWS: u64 = 2;
/// The number of congestion windows for which an autotuned buffer has room with BBR (Linux:
/// bbr_sndbuf_expand).
const BBR_WINDOWS: u64 = 3;
/// The smallest capacity that an application can set: twice the sum of 2048 B and a struct sk_buff.
const SOCK_MIN_SNDBUF: u64 = 2 * (2048 + SK_BUFF);
/// The largest sk_buff with its headers (Linux: GSO_LEGACY_MAX_SIZE).
const MAX_SKB: u64 = 65_536;
/// The largest window that is not halved (Linux: TCP_MSS_DEFAULT in tcp_bound_to_half_wnd).
const MSS_DEFAULT: u64 = 536;

/// The size of the send buffer, and whether the application waits for room.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    /// The capacity in bytes.
    capacity: u64,
    /// True for Winsock's buffer, which accepts a message of any size while any room is left.
    may_overfill: bool,
    /// How Linux charges for memory. `None` if payload alone counts.
    memory: Option<LinuxMemory>,
    writer: Writer,
    /// The largest `cwnd`, in segments, for which [`Self::check`] has made room.
    expanded_for_cwnd: u64,
}

/// Whether the application waits for room in Linux's buffer (SOCK_NOSPACE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    /// The application may write.
    Woken,
    /// The application wrote until there was no room, and was not woken since.
    Waiting,
    /// The application waits, and an acknowledgement has arrived since. The acknowledgement may have made
    /// room.
    WaitingAcked,
}

/// How Linux charges for memory. Amounts are in bytes.
#[derive(Clone, Copy, Debug)]
struct LinuxMemory {
    /// The room for headers in front of the payload (MAX_TCP_HEADER).
    header_room: u64,
    /// The largest capacity that autotuning reaches (tcp_wmem[2]).
    max_capacity: u64,
    /// The memory of an sk_buff without its payload (SKB_TRUESIZE).
    skb_overhead: u64,
    /// The number of congestion windows for which autotuning makes room. `None` if the application set the
    /// capacity, so that it is not autotuned (SOCK_SNDBUF_LOCK).
    autotuned_windows: Option<u64>,
}

/// The contents of the buffer, with the segment size and the window that decide the size of an sk_buff.
/// Amounts are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// The bytes that were written and are not acknowledged.
    pub(super) bytes: u64,
    /// The part of `bytes` that was never sent.
    pub(super) unsent: u64,
    /// The number of sk_buffs that were sent and are not acknowledged.
    pub(super) skbs: u64,
    /// The payload of a full segment, without TCP options.
    pub(super) smss: u64,
    /// The largest window that the far end has offered.
    pub(super) max_window: u64,
}

impl SendBuffer {
    /// Returns the buffer that `config` describes. `is_rate_based` is true for a congestion control like BBR.
    pub(super) const fn new(config: &TcpConfig, is_rate_based: bool) -> Self {
        let (capacity, memory) = match config.send_buffer {
            None => {
                let windows = if is_rate_based { BBR_WINDOWS } else { WINDOWS };
                (WMEM_DEFAULT, Some(LinuxMemory::new(config, Some(windows))))
            }
            Some(requested) if matches!(config.stack, Stack::Linux) && !config.overfill => {
                let doubled = requested.get().saturating_mul(2);
                let capacity = if doubled < SOCK_MIN_SNDBUF { SOCK_MIN_SNDBUF } else { doubled };
                (capacity, Some(LinuxMemory::new(config, None)))
            }
            Some(capacity) => (capacity.get(), None),
        };
        Self { capacity, may_overfill: config.overfill, memory, writer: Writer::Woken, expanded_for_cwnd: 0 }
    }

    /// Gives an autotuned buffer room for its congestion windows ([`WINDOWS`], [`BBR_WINDOWS`]). A window has
    /// `cwnd` segments of `mss` bytes, which include TCP options.
    pub(super) fn expand(&mut self, cwnd: u64, mss: u32) {
        let Some(memory) = self.memory else { return };
        let Some(windows) = memory.autotuned_windows else { return };
        let segment = (u64::from(mss) + memory.header_room + SHARED_INFO).next_power_of_two() + SK_BUFF;
        let wanted = cwnd.max(INIT_CWND).saturating_mul(windows * segment);
        self.capacity = self.capacity.max(wanted.min(memory.max_capacity));
    }

    /// Records that the application waits for room, because a write found none.
    pub(super) const fn on_refused(&mut self) {
        if self.memory.is_some() && matches!(self.writer, Writer::Woken) {
            self.writer = Writer::Waiting;
        }
    }

    /// Records that the application waits for room, if a write left none (Linux: tcp_poll). `queue` includes
    /// the bytes of the write.
    #[inline]
    pub(super) fn on_write(&mut self, queue: Queue) {
        if self.memory.is_some() && self.writer == Writer::Woken && self.reported_room(queue) == Bytes::ZERO {
            self.writer = Writer::Waiting;
        }
    }

    /// Records that an acknowledgement has arrived.
    #[inline]
    pub(super) const fn on_ack(&mut self) {
        if matches!(self.writer, Writer::Waiting) {
            self.writer = Writer::WaitingAcked;
        }
    }

    /// Returns true if an acknowledgement arrived while the application waited.
    #[inline]
    pub(super) const fn awaits_check(&self) -> bool {
        matches!(self.writer, Writer::WaitingAcked)
    }

    /// Lets the buffer grow if `may_grow` is true, and then wakes the application if there is room (Linux:
    /// tcp_check_space, tcp_new_space). The caller first sends the segments that the acknowledgement allows,
    /// so `queue` counts them as sent.
    pub(super) fn check(&mut self, queue: Queue, may_grow: bool, cwnd: u64, mss: u32) {
        if !self.awaits_check() {
            return;
        }
        if may_grow && cwnd > self.expanded_for_cwnd {
            self.expand(cwnd, mss);
            self.expanded_for_cwnd = cwnd;
        }
        let has_room = self.reported_room(queue) > Bytes::ZERO;
        self.writer = if has_room { Writer::Woken } else { Writer::Waiting };
    }

    /// Returns true if the buffer accepts a message of `size` bytes as a whole now.
    pub(super) fn has_room_for(&self, queue: Queue, size: u64) -> bool {
        if self.may_overfill {
            return queue.bytes < self.capacity;
        }
        size <= self.largest_write(queue)
    }

    /// Returns the largest write that is accepted as a whole now.
    fn largest_write(&self, queue: Queue) -> u64 {
        match self.memory {
            Some(memory) => {
                let max_skb = memory.max_skb(queue);
                let free = self.capacity.saturating_sub(memory.charge(queue, max_skb));
                memory.largest_write(free, queue, max_skb)
            }
            None => self.capacity.saturating_sub(queue.bytes),
        }
    }

    /// Returns how many bytes of a write are accepted now, if the write does not fit as a whole. `written` is
    /// the number of bytes that the application has written in parts since it was woken. After each part, the
    /// caller sends what may depart in bursts of `burst` bytes, and asks for the next part.
    ///
    /// Linux checks the charge only when it begins a new sk_buff (tcp_sendmsg_locked). So the last sk_buff is
    /// filled up first, whatever is charged. Only then the buffer decides whether another sk_buff may begin.
    pub(super) fn next_part(&self, queue: Queue, burst: u64, written: Bytes) -> Bytes {
        let Some(memory) = self.memory else { return Bytes::new(self.largest_write(queue)) };
        let max_skb = memory.max_skb(queue);
        let room_in_last_skb = memory.room_in_last_skb(queue, burst, written.get());
        let may_begin_skb = memory.charge(queue, max_skb) < self.capacity;
        let part = if room_in_last_skb == 0 && may_begin_skb { max_skb } else { room_in_last_skb };
        let remaining_in_call = WRITE - written.get() % WRITE;
        Bytes::new(part.min(remaining_in_call))
    }

    /// Returns true if the buffer would accept a message of `size` bytes as a whole if it were empty.
    pub(super) fn fits_when_empty(&self, queue: Queue, size: u64) -> bool {
        let empty = Queue { bytes: 0, unsent: 0, skbs: 0, ..queue };
        self.may_overfill || size <= self.largest_write(empty)
    }

    /// Returns the room to report to the application. The room is zero while less than half as much is free
    /// as is charged, which is while less than a third of the capacity is free. So the application is not
    /// woken for every segment (Linux: sk_stream_is_writeable).
    #[inline]
    pub(super) fn reported_room(&self, queue: Queue) -> Bytes {
        // The sent sk_buffs alone often take all the room. Their charge needs no division by the size of an
        // sk_buff, so this check comes first.
        let in_flight = queue.bytes + self.memory.map_or(0, |memory| queue.skbs * memory.skb_overhead);
        if self.capacity.saturating_sub(in_flight) < in_flight / 2 && !self.may_overfill {
            return Bytes::ZERO;
        }
        self.computed_room(queue)
    }

    /// Returns the same as [`Self::reported_room`], with the charge of the unsent sk_buffs.
    fn computed_room(&self, queue: Queue) -> Bytes {
        let max_skb = self.memory.map_or(0, |memory| memory.max_skb(queue));
        let charged = self.memory.map_or(queue.bytes, |memory| memory.charge(queue, max_skb));
        let free = self.capacity.saturating_sub(charged);
        if self.may_overfill {
            return if free > 0 { Bytes::MAX } else { Bytes::ZERO };
        }
        if free < charged / 2 {
            return Bytes::ZERO;
        }
        Bytes::new(self.memory.map_or(free, |memory| memory.largest_write(free, queue, max_skb)))
    }
}

impl LinuxMemory {
    const fn new(config: &TcpConfig, autotuned_windows: Option<u64>) -> Self {
        let header_room = config.header_room.get();
        Self {
            header_room,
            max_capacity: config.send_buffer_max.get(),
            skb_overhead: Heads::new(config.small_head).sk_buff(header_room),
            autotuned_windows,
        }
    }

    /// Returns the charge for the queue (sk_wmem_queued), whose unsent sk_buffs hold `max_skb` bytes each.
    fn charge(self, queue: Queue, max_skb: u64) -> u64 {
        let skbs = queue.skbs + queue.unsent.div_ceil(max_skb);
        queue.bytes + skbs * self.skb_overhead
    }

    /// Returns the largest write that is accepted while `free` bytes are not charged (Linux:
    /// tcp_sendmsg_locked). The write fills up the last sk_buff, and begins new ones as long as any byte is
    /// free.
    fn largest_write(self, free: u64, queue: Queue, max_skb: u64) -> u64 {
        let room_in_last_skb = queue.unsent.next_multiple_of(max_skb) - queue.unsent;
        let free = free.saturating_sub(room_in_last_skb);
        room_in_last_skb + free.div_ceil(max_skb + self.skb_overhead) * max_skb
    }

    /// Returns how many bytes the next part of a write adds to the last sk_buff. The application has written
    /// `written` bytes in parts since it was woken, and a burst has `burst` bytes.
    ///
    /// When a burst departs in the middle of a write, it is cut from the last sk_buff, which then has room
    /// again (tcp_push_one, tso_fragment). This ends when one call has written more than half of the far
    /// end's largest window. From then on an sk_buff departs as a whole (forced_push).
    fn room_in_last_skb(self, queue: Queue, burst: u64, written: u64) -> u64 {
        let max_skb = self.max_skb(queue);
        if written == 0 && queue.unsent > max_skb {
            // An earlier write has filled the last sk_buff. A part of the first unsent sk_buff has departed,
            // so `unsent` is not a multiple of `max_skb` although nothing is free.
            return 0;
        }
        if queue.unsent > 0 {
            return queue.unsent.next_multiple_of(max_skb) - queue.unsent;
        }
        let written_in_call = written % WRITE;
        let forced_push = queue.max_window / 2 + 1;
        if burst < max_skb && (1..forced_push).contains(&written_in_call) {
            return (forced_push - written_in_call).next_multiple_of(burst.max(1)).min(max_skb);
        }
        0
    }

    /// Returns the payload of a full unsent sk_buff. It is as many whole segments as fit into 64 KiB less
    /// headers, and into half of the largest window that the far end has offered (Linux: tcp_xmit_size_goal).
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
        let memory = LinuxMemory::new(&linux(LEAN), Some(2));
        assert_eq!(memory.max_skb(queue(0, 0, 0)), 31_856);
        assert_eq!(memory.charge(queue(14_480 + 31_856, 31_856, 5), 31_856), 51_328);
        assert_eq!(memory.charge(queue(28_960 + 2896, 2896, 10), 31_856), 41_008);
        let later = Queue { max_window: 1 << 20, ..queue(0, 0, 0) };
        assert_eq!(memory.max_skb(later), 45 * 1448);
        assert_eq!(LinuxMemory::new(&linux(FULL), Some(2)).skb_overhead, 896);
        let old = TcpConfig { small_head: None, ..linux(FULL) };
        assert_eq!(LinuxMemory::new(&old, Some(2)).skb_overhead, 1280, "Linux before 6.3");
    }

    /// sk_stream_memory_free decides when an sk_buff begins.
    #[test]
    fn the_last_sk_buff_may_overshoot() {
        let mut buffer = auto(LEAN);
        buffer.expand(10, 1460);
        assert_eq!(buffer.reported_room(queue(0, 0, 0)), Bytes::new(2 * 31_856));
        assert_eq!(buffer.reported_room(queue(51_000, 30_000, 10)), Bytes::ZERO);
        assert!(
            buffer.has_room_for(queue(51_000, 30_000, 10), 1856)
                && !buffer.has_room_for(queue(51_000, 30_000, 10), 1857)
        );
    }

    #[test]
    fn what_an_empty_buffer_holds_waits_for_room_as_a_whole() {
        let mut buffer = auto(LEAN);
        buffer.expand(10, 1460);
        let (empty, few) = (queue(0, 0, 0), queue(10_000, 0, 7));
        assert!(buffer.has_room_for(empty, 63_712) && !buffer.has_room_for(empty, 63_713));
        assert!(buffer.reported_room(few) > Bytes::ZERO && !buffer.has_room_for(few, 63_712));
        assert!(buffer.fits_when_empty(few, 63_712) && !buffer.fits_when_empty(few, 63_713));
    }

    /// Linux 6.18, SO_SNDBUF 64,000 B, ten segments of `cwnd`: a write of 128 KiB was taken, 10,832 B of the
    /// next, and no more.
    #[test]
    fn a_sk_buff_that_is_cut_up_is_filled_up_without_asking_for_memory() {
        let buffer = fixed(64_000, Stack::Linux, false);
        let (mut written, mut sent, mut parts) = (0, 0, Vec::new());
        loop {
            let part = buffer
                .next_part(queue(written, written - sent, sent / 2896), 2896, Bytes::new(written))
                .get();
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
        let first = buffer.next_part(sent(0), 2896, Bytes::ZERO).get();
        let second = buffer.next_part(sent(first), 2896, Bytes::new(first)).get();
        assert_eq!((first, first + second), (65_160, 53 * 1448));
        assert_eq!(buffer.next_part(sent(first + second), 2896, Bytes::new(first + second)), Bytes::ZERO);
        let whole = 45 * 1448;
        assert_eq!(buffer.next_part(sent(whole), whole, Bytes::new(whole)), Bytes::ZERO, "nothing is cut up");
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
        assert!(buffer.reported_room(freed) > Bytes::ZERO);
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
        assert_eq!(buffer.reported_room(queue(2000, 0, 0)), Bytes::new(1000));
        assert_eq!(buffer.reported_room(queue(2001, 0, 0)), Bytes::ZERO);
        assert!(buffer.has_room_for(queue(2001, 0, 0), 999) && !buffer.has_room_for(queue(2001, 0, 0), 1000));
    }

    /// SO_SNDBUF = 48,000 B of Linux 6.18, each segment of 1448 B an sk_buff of its own: writable while no
    /// more than two thirds of 96,000 B are charged, 28 skbs of 2280 B.
    #[test]
    fn a_size_that_linux_is_asked_for_is_doubled_and_charged_for_memory() {
        let mut buffer = fixed(48_000, Stack::Linux, false);
        buffer.expand(1000, 1460);
        assert_eq!(buffer.capacity, 96_000);
        let sent = |skbs| queue(skbs * 1448, 0, skbs);
        assert!(buffer.reported_room(sent(28)) > Bytes::ZERO);
        assert_eq!(buffer.reported_room(sent(29)), Bytes::ZERO);
        assert_eq!(fixed(1024, Stack::Linux, false).capacity, 4608);
        assert!(
            fixed(1024, Stack::Linux, false).has_room_for(Queue { max_window: 100, ..queue(0, 0, 0) }, 1024)
        );
    }

    #[test]
    fn an_overfilled_buffer_takes_any_message_until_it_is_full() {
        let buffer = fixed(8192, Stack::Rfc, true);
        assert!(
            buffer.has_room_for(queue(8191, 0, 0), 60 << 10) && !buffer.has_room_for(queue(8192, 0, 0), 1)
        );
        assert_eq!(
            (buffer.reported_room(queue(8191, 0, 0)), buffer.reported_room(queue(8192, 0, 0))),
            (Bytes::MAX, Bytes::ZERO)
        );
    }
}
