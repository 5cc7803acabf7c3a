//! How Linux grows the offered window from its first 64 KiB (`initial_rwnd`) on: tcp_grow_window,
//! tcp_rcv_space_adjust, tcp_rcvbuf_grow.
//!
//! ```text
//!   threshold (rcv_ssthresh)  what is offered: two segments more with each new one that arrives (beyond
//!                             a gap: only with SACK),
//!   clamp (window_clamp)      up to here; a round trip in which the application read more than ever before
//!                             raises it, to twice as much and as much again as the reading grew,
//!   limit                     up to here
//! ```
//!
//! A window that grows is acknowledged at once, so that a sender in slow start sees an acknowledgement for
//! each segment. Amounts are payload. Linux counts memory, and measures which share of it is payload.

use talkpath_units::{Duration, Instant};

/// The state of one receiver.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    limit: u64,
    clamp: u64,
    threshold: u64,
    /// The most that was read in a round trip (rcvq_space.space).
    most_read: u64,
    /// What had been read when this round trip began, and when that was.
    read_before: u64,
    since: Instant,
    /// Eight times the round trip as the receiver sees it (rcv_rtt_est), and the echo that it was measured
    /// by.
    rtt_x8: Duration,
    last_echo: u32,
}

impl Tuning {
    /// A window that is all of `limit` from the beginning.
    pub(super) const fn fixed(limit: u64) -> Self {
        Self {
            limit,
            clamp: limit,
            threshold: limit,
            most_read: 0,
            read_before: 1,
            since: Instant::ZERO,
            rtt_x8: Duration::ZERO,
            last_echo: 0,
        }
    }

    /// A window that grows from `initial` up to `limit`. `initial` is half of the first buffer
    /// (tcp_rmem[1]): what is offered before a segment has shown how much of its memory is payload. Once one
    /// has, payload can use 1448 B of 2304 B, in 1/256 (tcp_measure_rcv_mss, tun_build_skb; drivers that copy
    /// into a page have about the same).
    pub(super) fn growing(initial: u64, limit: u64) -> Self {
        let (clamp, threshold) = (limit.min(2 * initial * PAYLOAD_256THS / 256), limit.min(initial));
        Self { clamp, threshold, ..Self::fixed(limit) }
    }

    /// Full segments carry `smss` bytes (tcp_init_buffer_space).
    pub(super) fn on_established(&mut self, smss: u32, now: Instant) {
        self.most_read = self.threshold.min(INIT_CWND * u64::from(smss));
        self.since = now;
    }

    /// window_clamp.
    pub(super) const fn clamp(&self) -> u64 {
        self.clamp
    }

    /// rcv_ssthresh.
    pub(super) const fn threshold(&self) -> u64 {
        self.threshold
    }

    /// True while arrivals and reads may still open the window.
    #[inline]
    pub(super) const fn is_growing(&self) -> bool {
        self.threshold < self.limit
    }

    /// A segment of `payload` bytes arrived, and `unread` bytes wait for the application. Returns whether the
    /// window grows.
    #[inline]
    pub(super) fn on_data(&mut self, payload: u32, smss: u32, unread: u64) -> bool {
        let room = self.clamp.saturating_sub(unread).saturating_sub(self.threshold);
        if payload < MIN_COUNTED || room == 0 {
            return false;
        }
        self.threshold += room.min(2 * u64::from(payload.max(smss)));
        true
    }

    /// A full segment echoed the timestamp `echo`, which left `rtt` ago (tcp_rcv_rtt_measure_ts).
    #[inline]
    pub(super) fn on_echo(&mut self, echo: u32, rtt: impl FnOnce() -> Duration) {
        if echo != self.last_echo {
            self.last_echo = echo;
            self.on_rtt(rtt());
        }
    }

    /// A round trip as the receiver sees it: the shortest counts, a longer one by an eighth
    /// (tcp_rcv_rtt_update).
    #[inline]
    pub(super) fn on_rtt(&mut self, rtt: Duration) {
        let sample = rtt.saturating_mul(8);
        self.rtt_x8 = if self.rtt_x8.is_zero() || sample < self.rtt_x8 {
            sample
        } else {
            self.rtt_x8.saturating_sub(self.rtt_x8 / 8).saturating_add(rtt)
        };
    }

    /// The application has read up to `read`; `missing` bytes beyond a gap have arrived.
    #[inline]
    pub(super) fn on_read(&mut self, read: u64, missing: u64, now: Instant) {
        if self.rtt_x8.is_zero() || now.since(self.since) < self.rtt_x8 / 8 {
            return;
        }
        let copied = read - self.read_before;
        if copied > self.most_read {
            let before = self.most_read.max(1);
            let growth = u128::from(2 * copied) * u128::from(copied - self.most_read) / u128::from(before);
            let growth = u64::try_from(growth).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
            let window = 2 * copied + 2 * growth + missing;
            self.clamp = self.clamp.max(window.min(self.limit));
            self.most_read = copied;
        }
        (self.read_before, self.since) = (read, now);
    }
}

/// 1448 * 256 / 2304.
const PAYLOAD_256THS: u64 = 160;
/// TCP_INIT_CWND.
const INIT_CWND: u64 = 10;
/// tcp_event_data_recv: smaller segments do not open the window.
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
