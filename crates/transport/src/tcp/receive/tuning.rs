//! How Linux grows the offered window from its first 64 KiB (`initial_rwnd`) on: tcp_grow_window,
//! tcp_rcv_space_adjust, tcp_rcvbuf_grow.
//!
//! ```text
//!   threshold <= clamp <= limit
//!
//!   threshold (rcv_ssthresh)  the largest window that is offered. Each new segment raises it by two segments
//!                             (beyond a gap: only with SACK)
//!   clamp (window_clamp)      rises after a round trip in which the application read more than in any before:
//!                             to 2 read + 2 growth + bytes beyond a gap, where
//!                             growth = 2 read * (read - most read before) / most read before
//!   limit                     the receive buffer
//! ```
//!
//! A window that grows is acknowledged at once, so that a sender in slow start gets an ACK for each segment.
//! Amounts are bytes of payload. Linux counts memory, and measures which share of it is payload.

use talkpath_units::{Duration, Instant};

/// The state of one receiver.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    limit: u64,
    clamp: u64,
    threshold: u64,
    /// The largest number of bytes that was read in a round trip (rcvq_space.space).
    most_read: u64,
    /// The offset up to which the application had read when this round trip began.
    read_at_start: u64,
    /// When this round trip began.
    round_start: Instant,
    /// Eight times the round trip as the receiver sees it (rcv_rtt_est). Zero before the first sample.
    rtt_x8: Duration,
    /// The timestamp whose echo gave the last sample.
    last_echo: u32,
}

impl Tuning {
    /// A window that is `limit` from the beginning and does not grow.
    pub(super) const fn fixed(limit: u64) -> Self {
        Self {
            limit,
            clamp: limit,
            threshold: limit,
            most_read: 0,
            read_at_start: 1,
            round_start: Instant::ZERO,
            rtt_x8: Duration::ZERO,
            last_echo: 0,
        }
    }

    /// A window that grows from `initial` up to `limit`. `initial` is half of the first buffer (tcp_rmem[1]),
    /// because before the first segment Linux takes half of the memory for payload. The first segment shows
    /// the share of payload, [`PAYLOAD_256THS`], from which the first clamp follows (tcp_measure_rcv_mss).
    pub(super) fn growing(initial: u64, limit: u64) -> Self {
        let (clamp, threshold) = (limit.min(2 * initial * PAYLOAD_256THS / 256), limit.min(initial));
        Self { clamp, threshold, ..Self::fixed(limit) }
    }

    /// Takes note that the handshake is done. Full segments carry `smss` bytes (Linux:
    /// tcp_init_buffer_space).
    pub(super) fn on_established(&mut self, smss: u32, now: Instant) {
        self.most_read = self.threshold.min(INIT_CWND * u64::from(smss));
        self.round_start = now;
    }

    pub(super) const fn clamp(&self) -> u64 {
        self.clamp
    }

    pub(super) const fn threshold(&self) -> u64 {
        self.threshold
    }

    /// True while arrivals and reads may still open the window.
    #[inline]
    pub(super) const fn is_growing(&self) -> bool {
        self.threshold < self.limit
    }

    /// Raises the threshold after a segment of `payload` bytes arrived, while `unread` bytes wait for the
    /// application. Returns true if the threshold rose.
    #[inline]
    pub(super) fn on_data(&mut self, payload: u32, smss: u32, unread: u64) -> bool {
        let room = self.clamp.saturating_sub(unread).saturating_sub(self.threshold);
        if payload < MIN_COUNTED || room == 0 {
            return false;
        }
        self.threshold += room.min(2 * u64::from(payload.max(smss)));
        true
    }

    /// Measures the round trip from a full segment that echoes the timestamp `echo`. The timestamp left `rtt`
    /// ago, and gives one sample only (Linux: tcp_rcv_rtt_measure_ts).
    #[inline]
    pub(super) fn on_echo(&mut self, echo: u32, rtt: impl FnOnce() -> Duration) {
        if echo != self.last_echo {
            self.last_echo = echo;
            self.on_rtt(rtt());
        }
    }

    /// Takes a round trip as the receiver sees it. A shorter sample replaces the estimate, a longer sample
    /// moves it by an eighth (Linux: tcp_rcv_rtt_update).
    #[inline]
    pub(super) fn on_rtt(&mut self, rtt: Duration) {
        let sample = rtt.saturating_mul(8);
        self.rtt_x8 = if self.rtt_x8.is_zero() || sample < self.rtt_x8 {
            sample
        } else {
            self.rtt_x8.saturating_sub(self.rtt_x8 / 8).saturating_add(rtt)
        };
    }

    /// Raises the clamp if a round trip is over. The application has read up to the offset `read_to`, and
    /// data beyond a gap spans `beyond_gap` bytes.
    #[inline]
    pub(super) fn on_read(&mut self, read_to: u64, beyond_gap: u64, now: Instant) {
        if self.rtt_x8.is_zero() || now.since(self.round_start) < self.rtt_x8 / 8 {
            return;
        }
        let copied = read_to - self.read_at_start;
        if copied > self.most_read {
            let before = self.most_read.max(1);
            let growth = u128::from(2 * copied) * u128::from(copied - self.most_read) / u128::from(before);
            let growth = u64::try_from(growth).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
            let window = 2 * copied + 2 * growth + beyond_gap;
            self.clamp = self.clamp.max(window.min(self.limit));
            self.most_read = copied;
        }
        (self.read_at_start, self.round_start) = (read_to, now);
    }
}

/// The share of memory that payload can use, in 1/256: a full segment of Ethernet has 1448 B of payload in
/// 2304 B of memory (Linux: tun_build_skb; drivers that copy into a page have about the same share).
const PAYLOAD_256THS: u64 = 160;
/// The initial window of Linux, in segments (TCP_INIT_CWND).
const INIT_CWND: u64 = 10;
/// The smallest payload that opens the window, in bytes (Linux: tcp_event_data_recv).
const MIN_COUNTED: u32 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// tcp_grow_window: twice each segment, to 131,072 B of memory.
    #[test]
    fn each_segment_opens_the_window_by_two() {
        let mut tuning = Tuning::growing(64 << 10, 16 << 20);
        assert_eq!(tuning.threshold(), 65_536);
        for segment in 1..=5 {
            assert!(tuning.on_data(1448, 1448, 0));
            assert_eq!(tuning.threshold(), 65_536 + 2896 * segment);
        }
        assert!(tuning.on_data(1448, 1448, 0) && tuning.threshold() == 81_920);
        assert!(!tuning.on_data(1448, 1448, 0) && !tuning.on_data(100, 1448, 0));
    }

    /// tcp_rcvbuf_grow: a kernel's buffer grew to 274,224 B, 171,390 B of payload, when 20 segments followed
    /// the first ten.
    #[test]
    fn a_round_trip_that_read_twice_as_much_raises_the_clamp() {
        let mut tuning = Tuning::growing(64 << 10, 16 << 20);
        tuning.on_established(1460, Instant::ZERO);
        tuning.on_rtt(Duration::from_millis(41));
        tuning.on_read(1 + 14_480, 0, Instant::from_millis(41));
        assert_eq!(tuning.clamp(), 81_920);
        tuning.on_read(1 + 14_480 + 20_000, 0, Instant::from_millis(81));
        assert_eq!(tuning.clamp(), 81_920);
        tuning.on_read(1 + 14_480 + 28_960, 0, Instant::from_millis(82));
        assert!(tuning.clamp().abs_diff(171_390) < 1000, "{}", tuning.clamp());
    }

    #[test]
    fn a_limit_below_the_first_window_is_all_there_is() {
        let mut tuning = Tuning::growing(64 << 10, 23_360);
        assert_eq!((tuning.threshold(), tuning.is_growing()), (23_360, false));
        assert!(!tuning.on_data(1460, 1460, 0));
    }
}
