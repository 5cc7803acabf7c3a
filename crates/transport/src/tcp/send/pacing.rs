//! Pacing: how large the bursts of segments are, and how much time passes between two bursts.
//!
//! ```text
//!   pacing rate = P * max(cwnd, segments sent and not acknowledged) / SRTT
//!                 P = 2    if cwnd < ssthresh / 2, so that slow start can double cwnd in a round trip
//!                 P = 1.2  otherwise
//!
//!   burst       = pacing rate * 2^-10 s + 64 KiB / 2^n, where n = min RTT / 512 us, rounded down;
//!                 at least two segments, at most 64 KiB
//!
//!   pause       = bytes of the burst / pacing rate, from the start of one burst to the start of the next
//! ```
//!
//! For example, `cwnd` = 100 segments of 1000 B in congestion avoidance and SRTT = 60 ms make 2 MB/s. That
//! rate sends 1953 B in 2^-10 s, which is less than two segments. So a burst has two, and a pause takes 1 ms.
//! The second term makes bursts larger on short paths: by 32 KiB at 1 ms of minimum round trip (n = 1), by
//! nothing at 10 ms (n = 19).
//!
//! - A congestion control that has a pacing rate of its own (BBR) replaces the formula of the rate.
//! - A sender that is not paced may still send in bursts of this size, as a kernel does, but with no pause
//!   between them. Or it sends each segment by itself.
//! - The first ten segments of a connection leave without a pause.
//! - If a burst leaves late, the pause after it is shortened by the delay, but at most by half.
//!
//! The file `burst.rs` decides whether a small burst waits until it can be larger. Source: Linux
//! (tcp_update_pacing_rate, tcp_tso_autosize, tcp_update_skb_after_send).

use talkpath_units::{Duration, Instant, Rate};

/// The burst that leaves now, and the pause after it.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Pacing {
    /// True if there is a pause between two bursts.
    is_paced: bool,
    /// True if segments leave in bursts. Paced segments always do.
    in_bursts: bool,
    /// The end of the pause after the last burst (Linux: tcp_wstamp_ns). Without pacing a pause takes no
    /// time, so this is when the last burst began.
    pause_end: Instant,
    /// The number of segments that still leave without a pause at the beginning of the connection.
    unpaced_left: u32,
    /// The number of segments that the current burst may still send.
    left_in_burst: u32,
    /// What the current burst consists of.
    kind: BurstKind,
    /// How late the current burst began, less the time by which pauses were shortened since.
    lateness: Duration,
}

/// What a burst consists of. New data and retransmissions never share a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum BurstKind {
    NewData,
    Retransmissions,
}

/// What the pacing rate and the size of a burst follow from.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Pace {
    /// In segments.
    pub(in crate::tcp) cwnd: u64,
    /// In segments.
    pub(in crate::tcp) ssthresh: u64,
    /// The number of segments that were sent and are not acknowledged.
    pub(in crate::tcp) outstanding: u64,
    /// Payload bytes of a full segment.
    pub(in crate::tcp) smss: u32,
    /// `None` before the first sample.
    pub(in crate::tcp) srtt: Option<Duration>,
    /// The shortest round trip of the last minutes. Zero before the first sample.
    pub(in crate::tcp) min_rtt: Duration,
    /// The pacing rate of a congestion control that has its own (BBR). `None` if the rate follows from `cwnd`
    /// and SRTT.
    pub(in crate::tcp) own_rate: Option<Rate>,
    /// The smallest burst, in segments.
    pub(in crate::tcp) min_burst: u32,
}

/// The pacing rate as a fraction: `bytes` leave in `nanos` nanoseconds. A rate in whole bytes per second
/// would lose a part of a byte, and each pause would be wrong by a little.
#[derive(Clone, Copy, Debug)]
struct ExactRate {
    bytes: u128,
    nanos: u128,
}

impl Pacing {
    /// `in_bursts` is true for a sender that has a kernel's bursts, with or without pacing.
    pub(in crate::tcp) const fn new(is_paced: bool, in_bursts: bool) -> Self {
        Self {
            is_paced,
            in_bursts: is_paced || in_bursts,
            pause_end: Instant::ZERO,
            unpaced_left: UNPACED,
            left_in_burst: 0,
            kind: BurstKind::NewData,
            lateness: Duration::ZERO,
        }
    }

    /// True if there is a pause between two bursts.
    #[inline]
    pub(in crate::tcp) const fn is_enabled(&self) -> bool {
        self.is_paced
    }

    /// The end of the pause, if no segment may leave before it. `None` if a segment may leave now, as part of
    /// the current burst or because the pause is over.
    #[inline]
    pub(in crate::tcp) fn waits_until(&self, now: Instant) -> Option<Instant> {
        let is_between_bursts = self.left_in_burst == 0;
        (self.is_paced && is_between_bursts && self.pause_end > now).then_some(self.pause_end)
    }

    /// The end of the pause after the last burst. Without pacing, when the last burst began.
    pub(in crate::tcp) const fn pause_end(&self) -> Instant {
        self.pause_end
    }

    /// True if segments leave in bursts.
    #[inline]
    pub(in crate::tcp) const fn in_bursts(&self) -> bool {
        self.in_bursts
    }

    /// True if the next segment, which is of `kind`, belongs to the current burst.
    #[inline]
    pub(in crate::tcp) fn continues_burst(&self, kind: BurstKind) -> bool {
        self.left_in_burst > 0 && self.kind == kind
    }

    /// Begins a burst of at most this number of `segments`.
    #[inline]
    pub(in crate::tcp) fn begin_burst(&mut self, segments: u32, kind: BurstKind, now: Instant) {
        self.left_in_burst = segments;
        self.kind = kind;
        // The burst could have left at the end of the pause. The next pause counts from the burst's
        // beginning, and is zero until a segment lengthens it.
        self.lateness = now.since(self.pause_end);
        self.pause_end = self.pause_end.max(now);
    }

    /// Ends the current burst, because no further segment may leave now.
    #[inline]
    pub(in crate::tcp) const fn end_burst(&mut self) {
        self.left_in_burst = 0;
    }

    /// Counts a segment of the current burst.
    #[inline]
    pub(in crate::tcp) const fn on_sent(&mut self) {
        self.left_in_burst = self.left_in_burst.saturating_sub(1);
    }

    /// Lengthens the pause after the current burst by the time that `payload` bytes take at the pacing rate.
    ///
    /// If the burst began late, each segment's part of the pause is shortened, at most by half, until the
    /// delay is made up for. So the sender catches up, but never sends at more than twice the rate.
    pub(in crate::tcp) fn lengthen_pause(&mut self, payload: u32, pace: &Pace) {
        if self.unpaced_left > 0 {
            self.unpaced_left -= 1;
            return;
        }
        let pause = pace.time_of(payload);
        let shortened_by = (pause / 2).min(self.lateness);
        self.lateness = self.lateness.saturating_sub(shortened_by);
        self.pause_end += pause.saturating_sub(shortened_by);
    }
}

impl Pace {
    /// The time that `payload` bytes take at the pacing rate. Zero before the first round trip is measured.
    fn time_of(&self, payload: u32) -> Duration {
        let Some(ExactRate { bytes, nanos }) = self.exact_rate() else { return Duration::ZERO };
        let time = u128::from(payload) * nanos / bytes.max(1);
        Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// The pacing rate, for the length of a pause: P * max(cwnd, outstanding) / SRTT. `None` before the first
    /// round trip is measured.
    fn exact_rate(&self) -> Option<ExactRate> {
        if let Some(rate) = self.own_rate {
            return Some(ExactRate { bytes: u128::from(rate.as_bps()), nanos: 8 * NANOS_PER_S });
        }
        let srtt = self.srtt?;
        let window_bytes = self.window_segments().saturating_mul(u64::from(self.smss));
        Some(ExactRate {
            bytes: u128::from(window_bytes) * u128::from(self.windows_per_srtt_percent()),
            nanos: u128::from(srtt.as_nanos()) * 100,
        })
    }

    /// max(cwnd, outstanding) in segments, at least one.
    const fn window_segments(&self) -> u64 {
        let segments = if self.cwnd > self.outstanding { self.cwnd } else { self.outstanding };
        if segments == 0 { 1 } else { segments }
    }

    /// The factor P of the pacing rate, in percent: in slow start `cwnd` can double in a round trip, so the
    /// sender needs twice the rate of `cwnd`.
    const fn windows_per_srtt_percent(&self) -> u64 {
        if self.cwnd < self.ssthresh / 2 { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT }
    }

    /// The largest burst, in segments: what the pacing rate sends in 2^-10 s, and more on a short path.
    ///
    /// A size in whole segments needs no exact rate. The rate is computed in 64 bits here and SRTT is in
    /// microseconds, as in Linux.
    pub(in crate::tcp) fn max_burst(&self) -> u32 {
        // A short path adds 64 KiB, halved for each 512 us of its minimum round trip.
        let halvings = self.min_rtt.as_micros() >> HALVING_TIME_SHIFT;
        let short_path_bytes = if halvings < u64::from(u32::BITS) { MAX_BURST_BYTES >> halvings } else { 0 };
        if short_path_bytes == 0 && self.sends_at_most_min_burst() {
            return self.min_burst;
        }
        let Some(rate_bytes) = self.bytes_per_burst_time() else { return self.min_burst };
        let bytes = rate_bytes.saturating_add(short_path_bytes).min(MAX_BURST_BYTES);
        let segments = bytes / u64::from(self.smss.max(1));
        u32::try_from(segments).unwrap_or(u32::MAX).max(self.min_burst)
    }

    /// True if the pacing rate sends less than `min_burst` + 1 segments in 2^-10 s. Both sides of the
    /// comparison are multiplied by SRTT. So a burst of the smallest size, as at most rates, takes no
    /// division.
    fn sends_at_most_min_burst(&self) -> bool {
        let (None, Some(srtt)) = (self.own_rate, self.srtt) else { return false };
        let segments_per_s = (u64::from(self.min_burst) + 1) << BURST_TIME_SHIFT;
        self.rate_times_srtt() < segments_per_s.saturating_mul(srtt.as_micros().max(1))
    }

    /// The number of bytes that the pacing rate sends in 2^-10 s. `None` before the first round trip is
    /// measured.
    fn bytes_per_burst_time(&self) -> Option<u64> {
        if let Some(rate) = self.own_rate {
            return Some((rate.as_bps() / 8) >> BURST_TIME_SHIFT);
        }
        let byte_rate_times_srtt = self.rate_times_srtt().saturating_mul(u64::from(self.smss));
        let bytes_per_s = byte_rate_times_srtt / self.srtt?.as_micros().max(1);
        Some(bytes_per_s >> BURST_TIME_SHIFT)
    }

    /// The pacing rate in segments per second, multiplied by SRTT in microseconds.
    const fn rate_times_srtt(&self) -> u64 {
        self.window_segments().saturating_mul(self.windows_per_srtt_percent() * (MICROS_PER_S / 100))
    }
}

const NANOS_PER_S: u128 = 1_000_000_000;
const MICROS_PER_S: u64 = 1_000_000;
/// P in slow start, in percent (Linux: net.ipv4.tcp_pacing_ss_ratio).
const SLOW_START_PERCENT: u64 = 200;
/// P in congestion avoidance, in percent (Linux: net.ipv4.tcp_pacing_ca_ratio).
const AVOIDANCE_PERCENT: u64 = 120;
/// The first ten segments are not paced (Linux: tcp_update_skb_after_send; the number is that of sch_fq's
/// initial quantum).
const UNPACED: u32 = 10;
/// A burst is what the pacing rate sends in 2^-10 s (Linux: sk_pacing_shift).
const BURST_TIME_SHIFT: u32 = 10;
/// The bytes that a short path adds to a burst are halved for each 2^9 us of minimum round trip (Linux:
/// net.ipv4.tcp_tso_rtt_log).
const HALVING_TIME_SHIFT: u32 = 9;
/// The largest burst, and what the shortest path adds to one (Linux: sk_gso_max_size).
const MAX_BURST_BYTES: u64 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(cwnd: u64, ssthresh: u64) -> Pace {
        Pace {
            cwnd,
            ssthresh,
            outstanding: 5,
            smss: 1000,
            srtt: Some(Duration::from_millis(120)),
            min_rtt: Duration::from_millis(100),
            own_rate: None,
            min_burst: 2,
        }
    }

    #[test]
    fn a_window_takes_half_a_round_trip_in_slow_start_and_five_sixths_later() {
        assert_eq!(pace(10, u64::MAX).time_of(1000), Duration::from_millis(6));
        assert_eq!(pace(10, 20).time_of(1000), Duration::from_millis(10));
    }

    #[test]
    fn the_congestion_controls_own_rate_is_used_first() {
        let pace = Pace { own_rate: Some(Rate::from_bps(8_000_000)), ..pace(10, 20) };
        assert_eq!(pace.time_of(1000), Duration::from_millis(1));
    }

    fn send(pacing: &mut Pacing, segments: u32, at: Instant) {
        assert!(pacing.waits_until(at).is_none());
        pacing.begin_burst(segments, BurstKind::NewData, at);
        for _ in 0..segments {
            assert!(pacing.continues_burst(BurstKind::NewData));
            assert!(!pacing.continues_burst(BurstKind::Retransmissions));
            pacing.on_sent();
            if pacing.is_enabled() {
                pacing.lengthen_pause(1000, &pace(10, 20));
            }
        }
        assert!(!pacing.continues_burst(BurstKind::NewData));
    }

    #[test]
    fn the_first_ten_leave_at_once_and_a_late_burst_gives_back_half() {
        let mut pacing = Pacing::new(true, false);
        let start = Instant::from_millis(100);
        send(&mut pacing, 10, start);
        send(&mut pacing, 2, start);
        assert_eq!(pacing.waits_until(start), Some(Instant::from_millis(120)));
        send(&mut pacing, 2, Instant::from_millis(123));
        assert_eq!(pacing.waits_until(start), Some(Instant::from_millis(140)));
        send(&mut pacing, 2, Instant::from_millis(200));
        assert_eq!(pacing.waits_until(start), Some(Instant::from_millis(210)));
    }

    #[test]
    fn a_burst_that_ran_out_of_data_is_over() {
        let mut pacing = Pacing::new(true, false);
        pacing.unpaced_left = 0;
        let start = Instant::from_millis(100);
        pacing.pause_end = start;
        pacing.begin_burst(2, BurstKind::NewData, start);
        pacing.on_sent();
        pacing.lengthen_pause(1000, &pace(10, 20));
        assert_eq!(pacing.waits_until(start), None);
        pacing.end_burst();
        assert_eq!(pacing.waits_until(start), Some(Instant::from_millis(110)));
    }

    /// The example of the module: 1.2 * 100 segments of 1000 B per 60 ms are 2 MB/s.
    #[test]
    fn two_segments_leave_each_millisecond_at_two_megabytes_per_second() {
        let pace = Pace { srtt: Some(Duration::from_millis(60)), ..pace(100, 20) };
        assert_eq!((pace.max_burst(), pace.time_of(2000)), (2, Duration::from_millis(1)));
    }

    #[test]
    fn bursts_without_pacing_wait_for_nothing() {
        let mut pacing = Pacing::new(false, true);
        for _ in 0..20 {
            send(&mut pacing, 2, Instant::from_millis(100));
        }
        assert_eq!(pacing.pause_end(), Instant::from_millis(100));
    }

    /// tcp_tso_autosize: 2^-10 s at 100 Mbit/s are 12 segments; on 1 ms half of 64 KiB more.
    #[test]
    fn bursts_grow_with_the_rate_and_on_short_paths() {
        let fast = Pace { own_rate: Some(Rate::from_bps(100_000_000)), ..pace(10, 20) };
        assert_eq!((pace(10, 20).max_burst(), fast.max_burst()), (2, 12));
        let short = Pace { min_rtt: Duration::from_millis(1), ..fast };
        assert_eq!(short.max_burst(), (12_207 + 32_768) / 1000);
    }
}
