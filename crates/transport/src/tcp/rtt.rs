//! Round-trip time and retransmission timeout: SRTT, RTTVAR, RTO (RFC 6298 §2 and §5).
//!
//! ```text
//!             variance term              bounds of the RTO       ticks
//!   Rfc6298   4 RTTVAR, at least G       min_rto to 60 s         timeouts are rounded up to whole ticks
//!   Linux     as above, at least         up to 120 s             the timer wheel, which is coarser for long
//!             min_rto (200 ms)                                   timeouts
//!   Ticks     8 SRTT and 4 RTTVAR are    min_rto to 64 s         counted from the last tick
//!             whole ticks, truncated
//! ```
//!
//! Linux (tcp_rtt_estimator, tcp_set_rto) sets its minimum under the variance term alone, so that the RTO is
//! SRTT and at least 200 ms. It lets the term fall once in a round trip, and gives less weight to a falling
//! round trip. BSD (tcp_xmit_timer) counts in ticks and truncates: less than four ticks of 4 RTTVAR never
//! decay, so that with round trips below a tick the RTO stays at three to five ticks instead of its minimum
//! of two.

use talkpath_units::{Duration, Instant};

use super::clock::{HostClock, round_up, whole_ticks};

/// By which rule SRTT, RTTVAR and RTO are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RttRule {
    /// RFC 6298 §2.
    Rfc6298,
    /// tcp_xmit_timer of 4.3BSD-Reno.
    Ticks,
    /// tcp_rtt_estimator.
    Linux,
}

/// SRTT, RTTVAR and RTO of one connection.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    rule: RttRule,
    /// The clock's tick G. Zero for a clock as fine as the arena's.
    granularity: Duration,
    clock: HostClock,
    min_rto: Duration,
    /// 8 SRTT in nanoseconds. Zero before the first sample.
    srtt_x8: u64,
    /// 4 RTTVAR in nanoseconds: the term that is added to SRTT.
    variance_term: u64,
    /// Linux: 4 times the mean deviation, and its maximum over the current round trip.
    mdev: u64,
    mdev_max: u64,
    /// Linux: the round trip of `mdev_max` ends when this is acknowledged.
    round_end: u64,
    /// The RTO before back-off.
    base_rto: Duration,
    /// The number of times that it was doubled.
    backoff: u32,
    /// The RTO with its back-off.
    rto: Duration,
}

impl RttRule {
    /// No timeout is longer.
    const fn max_rto(self) -> Duration {
        match self {
            Self::Rfc6298 => MAX_RTO_RFC,
            Self::Ticks => MAX_RTO_BSD,
            Self::Linux => MAX_RTO_LINUX,
        }
    }
}

impl RttEstimator {
    pub(crate) const fn new(rule: RttRule, granularity: Duration, min_rto: Duration) -> Self {
        Self {
            rule,
            granularity,
            clock: HostClock::COMMON,
            min_rto,
            srtt_x8: 0,
            variance_term: 0,
            mdev: 0,
            mdev_max: 0,
            round_end: 0,
            base_rto: INITIAL_RTO,
            backoff: 0,
            rto: INITIAL_RTO,
        }
    }

    /// The same, on the ticks of `clock`.
    #[must_use]
    pub(crate) const fn with_clock(mut self, clock: HostClock) -> Self {
        self.clock = clock;
        self
    }

    /// SRTT. `None` before the first sample.
    #[inline]
    pub(crate) fn srtt(&self) -> Option<Duration> {
        (self.srtt_x8 > 0).then_some(Duration::from_nanos(self.srtt_x8 / 8))
    }

    /// The RTO with its back-off.
    #[inline]
    pub(crate) const fn rto(&self) -> Duration {
        self.rto
    }

    pub(crate) const fn min_rto(&self) -> Duration {
        self.min_rto
    }

    /// When a retransmission timer expires that starts `now`.
    #[inline]
    pub(crate) fn deadline(&self, now: Instant) -> Instant {
        self.after(self.rto(), now)
    }

    /// When a probe of a closed window is due (RFC 9293 §3.8.6.1): after an RTO, doubled `backoff` times.
    /// Linux (tcp_probe0_base) takes no less than its minimum RTO.
    pub(crate) fn persist_deadline(&self, backoff: u32, now: Instant) -> Instant {
        let base = self.base_rto.max(self.min_rto);
        let interval = base.saturating_mul(1_u64 << backoff.min(MAX_BACKOFF));
        self.after(interval.min(self.rule.max_rto()), now)
    }

    /// `span` after `now` by this clock, which rounds up to its ticks.
    #[inline]
    pub(crate) fn after(&self, span: Duration, now: Instant) -> Instant {
        let reading = self.clock.read(now);
        let due = match self.granularity.as_nanos() {
            0 => return now.saturating_add(span),
            tick if self.rule == RttRule::Linux => on_wheel(span, reading, tick),
            tick => {
                let last_tick = Instant::from_nanos(whole_ticks(reading.as_nanos(), tick) * tick);
                last_tick.saturating_add(round_up(span, self.granularity))
            }
        };
        self.clock.when(due)
    }

    /// RFC 6298 §5.5.
    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
        self.update_rto();
    }

    /// RFC 6298 §5.7: the SYN timed out and gave no sample, so that data starts with 3 s.
    pub(crate) fn fall_back_after_syn_loss(&mut self) {
        if self.srtt_x8 == 0 {
            self.base_rto = FALLBACK_RTO;
            self.backoff = 0;
            self.update_rto();
        }
    }

    /// `base_rto` or `backoff` has changed.
    fn update_rto(&mut self) {
        let factor = 1_u64 << self.backoff.min(MAX_BACKOFF);
        self.rto = self.base_rto.saturating_mul(factor).min(self.rule.max_rto());
    }

    /// The time from `sent` to `now` as this clock measures it. BSD counts the ticks between (tcp_slowtimo).
    #[inline]
    pub(crate) fn measure(&self, sent: Instant, now: Instant) -> Duration {
        let tick = self.granularity.as_nanos();
        if self.rule == RttRule::Ticks && tick > 0 {
            let (now, sent) = (self.clock.read(now).as_nanos(), self.clock.read(sent).as_nanos());
            let ticks = whole_ticks(now, tick).saturating_sub(whole_ticks(sent, tick));
            return Duration::from_nanos(ticks * tick);
        }
        now.since(sent)
    }

    /// Takes a sample of a segment that was sent once (RFC 6298 §3, Karn's algorithm) or that a timestamp
    /// identifies.
    #[inline]
    pub(crate) fn on_sample(&mut self, rtt: Duration, snd_una: u64, snd_nxt: u64) {
        let rtt = rtt.as_nanos().max(1);
        let rto = match self.rule {
            RttRule::Ticks if self.granularity.as_nanos() > 0 => self.update_ticks(rtt),
            RttRule::Rfc6298 | RttRule::Ticks => self.update_rfc(rtt),
            RttRule::Linux => self.update_linux(rtt, snd_una, snd_nxt),
        };
        self.base_rto = round_up(rto, self.granularity).min(self.rule.max_rto());
        self.backoff = 0;
        self.rto = self.base_rto;
    }

    /// RFC 6298 §2.2 and §2.3, alpha = 1/8, beta = 1/4, K = 4.
    fn update_rfc(&mut self, rtt: u64) -> Duration {
        if self.srtt_x8 == 0 {
            self.srtt_x8 = rtt.saturating_mul(8);
            self.variance_term = rtt.saturating_mul(2);
        } else {
            let error = (self.srtt_x8 / 8).abs_diff(rtt);
            self.variance_term = self.variance_term - self.variance_term / 4 + error;
            self.srtt_x8 = self.srtt_x8 - self.srtt_x8 / 8 + rtt;
        }
        let term = self.variance_term.max(self.granularity.as_nanos());
        Duration::from_nanos((self.srtt_x8 / 8).saturating_add(term)).max(self.min_rto)
    }

    /// tcp_xmit_timer: t_srtt is 8 SRTT and t_rttvar 4 RTTVAR, in ticks. Shifts truncate. A first sample
    /// counts the tick that it began in, later ones do not.
    fn update_ticks(&mut self, rtt: u64) -> Duration {
        let tick = self.granularity.as_nanos();
        let in_ticks = |nanos| whole_ticks(nanos, tick);
        let (sample, srtt, rttvar) = (in_ticks(rtt), in_ticks(self.srtt_x8), in_ticks(self.variance_term));
        let (srtt, rttvar) = if srtt == 0 {
            (8 * (sample + 1), 2 * (sample + 1))
        } else {
            let error = (srtt / 8).abs_diff(sample);
            ((srtt - srtt / 8 + sample).max(1), (rttvar - rttvar / 4 + error).max(1))
        };
        self.srtt_x8 = srtt.saturating_mul(tick);
        self.variance_term = rttvar.saturating_mul(tick);
        Duration::from_nanos(tick.saturating_mul(srtt / 8 + rttvar)).max(self.min_rto)
    }

    /// tcp_rtt_estimator: the variance term is the largest deviation of a round trip. It rises at once, and
    /// falls by a quarter of the difference at the end of each.
    #[inline]
    fn update_linux(&mut self, rtt: u64, snd_una: u64, snd_nxt: u64) -> Duration {
        let floor = self.min_rto.as_nanos();
        if self.srtt_x8 == 0 {
            self.srtt_x8 = rtt.saturating_mul(8);
            self.mdev = rtt.saturating_mul(2);
            self.variance_term = self.mdev.max(floor);
            self.mdev_max = self.variance_term;
            self.round_end = snd_nxt;
        } else {
            self.deviate(rtt);
            self.srtt_x8 = self.srtt_x8 - self.srtt_x8 / 8 + rtt;
            if self.mdev > self.mdev_max {
                self.mdev_max = self.mdev;
                self.variance_term = self.variance_term.max(self.mdev_max);
            }
            if snd_una > self.round_end {
                self.variance_term -= self.variance_term.saturating_sub(self.mdev_max) / 4;
                self.round_end = snd_nxt;
                self.mdev_max = floor;
            }
        }
        Duration::from_nanos((self.srtt_x8 / 8).saturating_add(self.variance_term))
    }

    /// Linux: a quarter of the new deviation counts. If the round trip fell and the deviation grew by it, a
    /// thirty-second: a falling round trip is no reason for a longer timeout.
    fn deviate(&mut self, rtt: u64) {
        let srtt = self.srtt_x8 / 8;
        let error = srtt.abs_diff(rtt);
        let old = self.mdev / 4;
        if error <= old {
            self.mdev -= old - error;
        } else if rtt < srtt {
            self.mdev += (error - old) / 8;
        } else {
            self.mdev += error - old;
        }
    }
}

/// When a timer of `span` expires in Linux's timer wheel (kernel/time/timer.c, __calc_wheel_index) with
/// jiffies of `tick` nanoseconds, above zero. No timer is early: it is put into the bucket after the one of
/// its time. A bucket is a jiffy wide below 63 jiffies, and eight times as wide for each eightfold of that.
#[inline]
pub(crate) fn on_wheel(span: Duration, now: Instant, tick: u64) -> Instant {
    // Rounded up. No timer is near the end of time.
    let delta = whole_ticks(span.as_nanos().saturating_add(tick - 1), tick);
    let now = whole_ticks(now.as_nanos(), tick);
    if delta < WHEEL_REACH {
        return Instant::from_nanos((now + delta + 1).saturating_mul(tick));
    }
    let (mut shift, mut reach) = (3, WHEEL_REACH * 8);
    while delta >= reach && shift < WHEEL_COARSEST {
        (shift, reach) = (shift + 3, reach * 8);
    }
    let expires = now.saturating_add(delta);
    Instant::from_nanos(((expires >> shift) + 1).saturating_mul(tick.saturating_mul(1 << shift)))
}

/// LVL_START(1): jiffies that the wheel's finest level reaches.
const WHEEL_REACH: u64 = 63;
/// LVL_SHIFT(LVL_DEPTH - 1) at HZ above 100: the width of the coarsest level's buckets, as a power of two.
const WHEEL_COARSEST: u32 = 24;
/// RFC 6298 §2.1; Linux's TCP_TIMEOUT_INIT. BSD took 6 s, before RFC 2988.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// RFC 6298 §5.7; Linux's TCP_TIMEOUT_FALLBACK.
const FALLBACK_RTO: Duration = Duration::from_secs(3);
/// RFC 6298 §2.5: at least 60 s.
const MAX_RTO_RFC: Duration = Duration::from_secs(60);
/// BSD's TCPTV_REXMTMAX, 64 s.
const MAX_RTO_BSD: Duration = Duration::from_secs(64);
/// Linux's TCP_RTO_MAX, 120 s.
const MAX_RTO_LINUX: Duration = Duration::from_secs(120);
/// Doublings beyond this change nothing: the shortest RTO, 1 ns, exceeds every maximum by then.
const MAX_BACKOFF: u32 = 40;

#[cfg(test)]
mod tests {
    use talkpath_units::Seed;

    use super::*;
    use crate::{Role, Ticks};

    const MS: u64 = 1_000_000;

    fn sample(estimator: &mut RttEstimator, ms: u64) {
        estimator.on_sample(Duration::from_millis(ms), 0, 0);
    }

    /// RFC 6298 §2.2 and §2.3.
    #[test]
    fn the_rfc_estimator_follows_its_equations() {
        let mut estimator = RttEstimator::new(RttRule::Rfc6298, Duration::ZERO, Duration::ZERO);
        assert_eq!(estimator.rto(), Duration::from_secs(1));
        sample(&mut estimator, 100);
        assert_eq!(estimator.rto(), Duration::from_millis(300));
        sample(&mut estimator, 180);
        // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110.
        assert_eq!(estimator.srtt(), Some(Duration::from_millis(110)));
        assert_eq!(estimator.rto(), Duration::from_millis(340));
    }

    /// RFC 6298 §2.4 and §2.5, §5.5.
    #[test]
    fn the_timeout_stays_between_its_bounds() {
        let mut estimator = RttEstimator::new(RttRule::Rfc6298, Duration::ZERO, Duration::from_secs(1));
        sample(&mut estimator, 10);
        assert_eq!(estimator.rto(), Duration::from_secs(1));
        for _ in 0..70 {
            estimator.back_off();
        }
        assert_eq!(estimator.rto(), Duration::from_secs(60));
        sample(&mut estimator, 10);
        assert_eq!(estimator.rto(), Duration::from_secs(1));
    }

    /// RFC 6298 §4: 105 ms and a tick of 10 ms, in whole ticks.
    #[test]
    fn a_variance_of_nothing_counts_as_one_tick() {
        let mut estimator = RttEstimator::new(RttRule::Rfc6298, Duration::from_millis(10), Duration::ZERO);
        for _ in 0..200 {
            sample(&mut estimator, 105);
        }
        assert_eq!(estimator.rto(), Duration::from_millis(120));
    }

    /// tcp_slowtimo: a span of ticks counts from the last one, and a round trip is the ticks between.
    #[test]
    fn a_host_whose_clock_is_ahead_ticks_earlier() {
        let (tick, second) = (Duration::from_millis(500), Duration::from_secs(1));
        let clock = HostClock::new(Ticks::Own, Seed::new(3), Role::Active);
        let estimator = RttEstimator::new(RttRule::Ticks, tick, second).with_clock(clock);
        let phase = clock.read(Instant::ZERO).as_nanos() % tick.as_nanos();
        let first_tick = Instant::from_nanos(tick.as_nanos() - phase);
        let before = Instant::from_nanos(first_tick.as_nanos() - 1);
        assert_eq!(estimator.after(second, first_tick), first_tick + second);
        assert_eq!(estimator.after(second, before), first_tick + tick);
        assert_eq!(estimator.measure(before, first_tick), tick);
        assert_eq!(estimator.measure(first_tick, first_tick + Duration::from_millis(499)), Duration::ZERO);
    }

    /// tcp_set_rto: the floor is under the variance term.
    #[test]
    fn linux_adds_its_minimum_to_the_round_trip() {
        let mut estimator =
            RttEstimator::new(RttRule::Linux, Duration::from_millis(1), Duration::from_millis(200));
        for round in 0..20 {
            estimator.on_sample(Duration::from_millis(50), round, round);
        }
        assert_eq!(estimator.rto(), Duration::from_millis(250));
    }

    /// tcp_slowtimo: 500 ms ticks, at least two of them.
    #[test]
    fn a_coarse_clock_fires_on_its_ticks() {
        let mut estimator =
            RttEstimator::new(RttRule::Ticks, Duration::from_millis(500), Duration::from_secs(1));
        let sent = Instant::from_nanos(400 * MS);
        assert_eq!(estimator.measure(sent, Instant::from_millis(499)), Duration::ZERO);
        assert_eq!(estimator.measure(sent, Instant::from_millis(501)), Duration::from_millis(500));
        sample(&mut estimator, 0);
        assert_eq!(estimator.rto(), Duration::from_millis(1500));
        assert_eq!(estimator.deadline(Instant::from_millis(1700)), Instant::from_millis(3000));
    }

    /// tcp_xmit_timer: `rttvar >> 2` is nothing below four, so that no run of short round trips brings the
    /// timeout to its least value.
    #[test]
    fn a_coarse_estimate_does_not_decay_below_three_ticks() {
        let mut estimator =
            RttEstimator::new(RttRule::Ticks, Duration::from_millis(500), Duration::from_secs(1));
        for round in 0..100 {
            sample(&mut estimator, if round % 4 == 0 { 500 } else { 0 });
        }
        let mut seen = Vec::new();
        for round in 0..100 {
            sample(&mut estimator, if round % 4 == 0 { 500 } else { 0 });
            seen.push(estimator.rto().as_nanos() / 500_000_000);
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [3, 4, 5]);
    }

    /// kernel/time/timer.c, the table of levels for HZ = 1000: 0 to 62 ms by 1 ms, 63 to 503 ms by 8 ms, 504
    /// ms to 4 s by 64 ms.
    #[test]
    fn a_wheels_timers_are_never_early_and_coarser_the_longer_they_are() {
        let fires = |ms, at_ms, tick_ms| {
            on_wheel(Duration::from_millis(ms), Instant::from_millis(at_ms), tick_ms * MS).as_nanos() / MS
        };
        assert_eq!((fires(40, 100, 1), fires(62, 100, 1)), (141, 163));
        assert_eq!((fires(63, 100, 1), fires(210, 5, 1)), (168, 216));
        assert_eq!((fires(504, 0, 1), fires(1000, 0, 1)), (512, 1024));
        // A kernel of HZ = 250 acknowledged 40.03 and 43.3 ms after the data.
        assert_eq!((fires(40, 252, 4), fires(40, 255, 4)), (296, 296));
    }

    #[test]
    fn a_lost_syn_makes_data_start_with_three_seconds() {
        let mut estimator = RttEstimator::new(RttRule::Rfc6298, Duration::ZERO, Duration::from_secs(1));
        estimator.back_off();
        estimator.fall_back_after_syn_loss();
        assert_eq!(estimator.rto(), Duration::from_secs(3));
    }
}
