//! Pacing: how bursts of segments are spread over the round trip, and how large they are
//! (tcp_update_pacing_rate, tcp_tso_autosize, tcp_update_skb_after_send).
//!
//! The rate is the congestion control's if it has one. Otherwise it is twice the window in a round trip below
//! half of `ssthresh`, because slow start may still double, and 1.2 times above. Segments leave in bursts of
//! a millisecond's worth, at least two, and in larger ones if the round trip is a few milliseconds. A sender
//! that is not paced has the same bursts without time between them. The first ten segments are not paced. A
//! burst that left late gives back up to half of its time.
//!
//! Which bursts are deferred is in `burst`.

use talkpath_units::{Duration, Instant, Rate};

/// The burst that leaves now, and when the next may.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Pacing {
    is_paced: bool,
    in_bursts: bool,
    /// When the last burst left, or, paced, when its time is over (tcp_wstamp_ns).
    next: Instant,
    unpaced: u32,
    /// The number of segments that may still leave with the last one. `repairs` if they are retransmissions.
    burst: u32,
    repairs: bool,
    /// How late the burst left: what it may give back of its time.
    late: Duration,
}

/// What the rate follows from, in segments.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Pace {
    pub(in crate::tcp) cwnd: u64,
    pub(in crate::tcp) ssthresh: u64,
    /// Unacknowledged.
    pub(in crate::tcp) outstanding: u64,
    pub(in crate::tcp) smss: u32,
    pub(in crate::tcp) srtt: Option<Duration>,
    /// Zero before any sample.
    pub(in crate::tcp) min_rtt: Duration,
    /// The congestion control's own rate.
    pub(in crate::tcp) rate: Option<Rate>,
    /// The smallest burst, in segments.
    pub(in crate::tcp) min_burst: u32,
}

impl Pacing {
    /// Paced segments leave in bursts, and so do a kernel's (`in_bursts`).
    pub(in crate::tcp) const fn new(is_paced: bool, in_bursts: bool) -> Self {
        Self {
            is_paced,
            in_bursts: is_paced || in_bursts,
            next: Instant::ZERO,
            unpaced: UNPACED,
            burst: 0,
            repairs: false,
            late: Duration::ZERO,
        }
    }

    /// True if segments are spread over the round trip.
    #[inline]
    pub(in crate::tcp) const fn is_enabled(&self) -> bool {
        self.is_paced
    }

    /// When the next segment may leave, if that is later than `now`.
    #[inline]
    pub(in crate::tcp) fn waits_until(&self, now: Instant) -> Option<Instant> {
        (self.is_paced && self.burst == 0 && self.next > now).then_some(self.next)
    }

    /// When the last burst left or, paced, when its time is over.
    pub(in crate::tcp) const fn departs(&self) -> Instant {
        self.next
    }

    /// True if segments leave in bursts.
    #[inline]
    pub(in crate::tcp) const fn in_bursts(&self) -> bool {
        self.in_bursts
    }

    /// True if the next segment belongs to the burst that has begun. `repairs` if it is a retransmission.
    #[inline]
    pub(in crate::tcp) const fn continues_burst(&self, repairs: bool) -> bool {
        self.burst > 0 && self.repairs == repairs
    }

    /// This number of `segments` may leave together now.
    #[inline]
    pub(in crate::tcp) fn begin_burst(&mut self, segments: u32, repairs: bool, now: Instant) {
        (self.burst, self.repairs) = (segments, repairs);
        self.late = now.since(self.next);
        self.next = self.next.max(now);
    }

    /// Nothing is left that could leave now. What leaves later is a burst of its own.
    #[inline]
    pub(in crate::tcp) const fn end_burst(&mut self) {
        self.burst = 0;
    }

    /// A segment of the burst leaves.
    #[inline]
    pub(in crate::tcp) const fn on_sent(&mut self) {
        self.burst = self.burst.saturating_sub(1);
    }

    /// The segment carries `payload` bytes: the next burst waits for as long as they take.
    pub(in crate::tcp) fn pace(&mut self, payload: u32, pace: &Pace) {
        if self.unpaced > 0 {
            self.unpaced -= 1;
            return;
        }
        let span = pace.span(payload);
        let given_back = (span / 2).min(self.late);
        self.late = self.late.saturating_sub(given_back);
        self.next += span.saturating_sub(given_back);
    }
}

impl Pace {
    /// How long `payload` bytes take at the pacing rate. Nothing before the first round trip was measured.
    fn span(&self, payload: u32) -> Duration {
        let Some((bytes, nanos)) = self.rate() else { return Duration::ZERO };
        let span = u128::from(payload) * nanos / bytes.max(1);
        Duration::from_nanos(u64::try_from(span).unwrap_or(u64::MAX))
    }

    /// The pacing rate: bytes, in nanoseconds.
    fn rate(&self) -> Option<(u128, u128)> {
        if let Some(rate) = self.rate {
            return Some((u128::from(rate.as_bps()), 8 * NANOS_IN_S));
        }
        let srtt = self.srtt?;
        let window = self.cwnd.max(self.outstanding).max(1).saturating_mul(u64::from(self.smss));
        Some((u128::from(window) * u128::from(self.percent()), u128::from(srtt.as_nanos()) * 100))
    }

    /// The bytes that the pacing rate sends in 2^-10 s.
    fn bytes_a_burst(&self) -> Option<u64> {
        if let Some(rate) = self.rate {
            return Some((rate.as_bps() / 8) >> BURST_SHIFT);
        }
        let bytes = self.segments_in_srtt_seconds().saturating_mul(u64::from(self.smss));
        Some((bytes / self.srtt?.as_micros().max(1)) >> BURST_SHIFT)
    }

    /// The segments that the pacing rate sends in as many seconds as the round trip has microseconds.
    const fn segments_in_srtt_seconds(&self) -> u64 {
        let segments = if self.cwnd > self.outstanding { self.cwnd } else { self.outstanding };
        // Percent of a window a microsecond, to segments a second.
        (if segments == 0 { 1 } else { segments }).saturating_mul(self.percent() * (MICROS_IN_S / 100))
    }

    /// True if the rate sends less than `min_burst` and one segment in 2^-10 s. Most rates do, and this needs
    /// no division.
    fn is_below_one_more(&self) -> bool {
        let (None, Some(srtt)) = (self.rate, self.srtt) else { return false };
        let one_more = (u64::from(self.min_burst) + 1) << BURST_SHIFT;
        self.segments_in_srtt_seconds() < one_more.saturating_mul(srtt.as_micros().max(1))
    }

    /// Windows a round trip, in percent.
    const fn percent(&self) -> u64 {
        if self.cwnd < self.ssthresh / 2 { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT }
    }

    /// The largest burst, in segments (tcp_tso_autosize).
    pub(in crate::tcp) fn burst(&self) -> u32 {
        let shift = self.min_rtt.as_micros() >> RTT_SHIFT;
        let short_path = if shift < u64::from(u32::BITS) { MAX_BURST >> shift } else { 0 };
        if short_path == 0 && self.is_below_one_more() {
            return self.min_burst;
        }
        let Some(bytes) = self.bytes_a_burst() else { return self.min_burst };
        let segments = bytes.saturating_add(short_path).min(MAX_BURST) / u64::from(self.smss.max(1));
        u32::try_from(segments).unwrap_or(u32::MAX).max(self.min_burst)
    }
}

const NANOS_IN_S: u128 = 1_000_000_000;
const MICROS_IN_S: u64 = 1_000_000;
/// net.ipv4.tcp_pacing_ss_ratio.
const SLOW_START_PERCENT: u64 = 200;
/// net.ipv4.tcp_pacing_ca_ratio.
const AVOIDANCE_PERCENT: u64 = 120;
/// tcp_update_skb_after_send, after sch_fq's initial quantum of ten segments.
const UNPACED: u32 = 10;
/// sk_pacing_shift: 2^-10 s.
const BURST_SHIFT: u32 = 10;
/// net.ipv4.tcp_tso_rtt_log.
const RTT_SHIFT: u32 = 9;
/// sk_gso_max_size.
const MAX_BURST: u64 = 65_536;

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
            rate: None,
            min_burst: 2,
        }
    }

    #[test]
    fn a_window_takes_half_a_round_trip_in_slow_start_and_five_sixths_later() {
        assert_eq!(pace(10, u64::MAX).span(1000), Duration::from_millis(6));
        assert_eq!(pace(10, 20).span(1000), Duration::from_millis(10));
    }

    #[test]
    fn the_congestion_controls_own_rate_is_used_first() {
        let pace = Pace { rate: Some(Rate::from_bps(8_000_000)), ..pace(10, 20) };
        assert_eq!(pace.span(1000), Duration::from_millis(1));
    }

    fn send(pacing: &mut Pacing, segments: u32, at: Instant) {
        assert!(pacing.waits_until(at).is_none());
        pacing.begin_burst(segments, false, at);
        for _ in 0..segments {
            assert!(pacing.continues_burst(false) && !pacing.continues_burst(true));
            pacing.on_sent();
            if pacing.is_enabled() {
                pacing.pace(1000, &pace(10, 20));
            }
        }
        assert!(!pacing.continues_burst(false));
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
        pacing.unpaced = 0;
        let start = Instant::from_millis(100);
        pacing.next = start;
        pacing.begin_burst(2, false, start);
        pacing.on_sent();
        pacing.pace(1000, &pace(10, 20));
        assert_eq!(pacing.waits_until(start), None);
        pacing.end_burst();
        assert_eq!(pacing.waits_until(start), Some(Instant::from_millis(110)));
    }

    #[test]
    fn bursts_without_pacing_wait_for_nothing() {
        let mut pacing = Pacing::new(false, true);
        for _ in 0..20 {
            send(&mut pacing, 2, Instant::from_millis(100));
        }
        assert_eq!(pacing.departs(), Instant::from_millis(100));
    }

    /// tcp_tso_autosize: 2^-10 s at 100 Mbit/s are 12 segments; on 1 ms half of 64 KiB more.
    #[test]
    fn bursts_grow_with_the_rate_and_on_short_paths() {
        let fast = Pace { rate: Some(Rate::from_bps(100_000_000)), ..pace(10, 20) };
        assert_eq!((pace(10, 20).burst(), fast.burst()), (2, 12));
        let short = Pace { min_rtt: Duration::from_millis(1), ..fast };
        assert_eq!(short.burst(), (12_207 + 32_768) / 1000);
    }
}
