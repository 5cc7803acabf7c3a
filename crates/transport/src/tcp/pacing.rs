//! Pacing: segments spread over the round trip, at the rate that Linux gives a paced socket (tcp_update_pacing_rate).
//!
//! The rate is twice the window a round trip below half of `ssthresh`, 1.2 times above: slow start may still double. The first
//! ten segments are not paced (tcp_update_skb_after_send). A segment that left late gives back up to half of its time.

use talkpath_units::{Duration, Instant};

/// When the next segment may leave.
#[derive(Clone, Debug)]
pub(super) struct Pacing {
    enabled: bool,
    next: Instant,
    unpaced: u32,
}

/// What the rate follows from, in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) cwnd: u64,
    pub(super) ssthresh: u64,
    /// Unacknowledged.
    pub(super) outstanding: u64,
    pub(super) smss: u32,
    pub(super) srtt: Option<Duration>,
}

impl Pacing {
    pub(super) const fn new(enabled: bool) -> Self {
        Self { enabled, next: Instant::ZERO, unpaced: UNPACED }
    }

    /// When the next segment may leave, if that is later than `now`.
    #[inline]
    pub(super) fn waits_until(&self, now: Instant) -> Option<Instant> {
        (self.enabled && self.next > now).then_some(self.next)
    }

    /// A segment of `payload` bytes leaves.
    #[inline]
    pub(super) fn on_sent(&mut self, payload: u32, now: Instant, pace: impl FnOnce() -> Pace) {
        if !self.enabled {
            return;
        }
        if self.unpaced > 0 {
            self.unpaced -= 1;
            return;
        }
        let span = pace().span(payload);
        let late = now.since(self.next);
        self.next = now + span.saturating_sub((span / 2).min(late));
    }
}

impl Pace {
    /// How long `payload` bytes take at the pacing rate; nothing before the first round trip was measured.
    fn span(self, payload: u32) -> Duration {
        let Some(srtt) = self.srtt else { return Duration::ZERO };
        let percent = if self.cwnd < self.ssthresh / 2 { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        let window = self.cwnd.max(self.outstanding).max(1).saturating_mul(u64::from(self.smss));
        let part = u128::from(srtt.as_nanos()) * u128::from(payload) * 100;
        let span = part / (u128::from(window) * percent);
        Duration::from_nanos(u64::try_from(span).unwrap_or(u64::MAX))
    }
}

/// net.ipv4.tcp_pacing_ss_ratio.
const SLOW_START_PERCENT: u128 = 200;
/// net.ipv4.tcp_pacing_ca_ratio.
const AVOIDANCE_PERCENT: u128 = 120;
/// tcp_update_skb_after_send, after sch_fq's initial quantum of ten segments.
const UNPACED: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(cwnd: u64, ssthresh: u64) -> Pace {
        Pace { cwnd, ssthresh, outstanding: 5, smss: 1000, srtt: Some(Duration::from_millis(120)) }
    }

    #[test]
    fn a_window_takes_half_a_round_trip_in_slow_start_and_five_sixths_later() {
        assert_eq!(pace(10, u64::MAX).span(1000), Duration::from_millis(6));
        assert_eq!(pace(10, 20).span(1000), Duration::from_millis(10));
    }

    #[test]
    fn the_first_ten_leave_at_once_and_a_late_one_gives_back_half() {
        let mut pacing = Pacing::new(true);
        let start = Instant::from_millis(100);
        for _ in 0..10 {
            pacing.on_sent(1000, start, || pace(10, 20));
            assert_eq!(pacing.waits_until(start), None);
        }
        pacing.next = start;
        pacing.on_sent(1000, start, || pace(10, 20));
        assert_eq!(pacing.waits_until(start), Some(Instant::from_millis(110)));
        pacing.on_sent(1000, Instant::from_millis(113), || pace(10, 20));
        assert_eq!(pacing.waits_until(start), Some(Instant::from_millis(120)));
        pacing.on_sent(1000, Instant::from_millis(200), || pace(10, 20));
        assert_eq!(pacing.waits_until(start), Some(Instant::from_millis(205)));
    }
}
