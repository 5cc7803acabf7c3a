//! Round-trip time and retransmission timeout: SRTT, RTTVAR, RTO (RFC 6298 §2 and §5).
//!
//! ```text
//!   rule      RTO                                              at least   at most
//!   Rfc6298   SRTT + max(4 RTTVAR, G)                          min_rto    60 s
//!   Linux     SRTT + max(4 RTTVAR, min_rto)                    -          120 s
//!   Ticks     SRTT + 4 RTTVAR, each truncated to whole ticks   min_rto    64 s
//! ```
//!
//! G is the tick of the host's clock. The rules differ in three more points:
//!
//! - **When a timer expires.** Linux's timer wheel rounds the time up, and the longer the timer, the coarser
//!   the step ([`on_wheel`]). Under the other two rules a timer expires at a tick: the timeout is rounded up
//!   to whole ticks and counts from the last tick.
//! - **How RTTVAR falls.** Under Linux's rule it is the largest deviation of a round trip, so it rises at
//!   once and falls only once per round trip. A sample below SRTT raises it by less
//!   ([`LinuxDeviation::on_sample`]).
//! - **What truncation does.** Under the rule Ticks (BSD) a round trip below a tick cannot bring 4 RTTVAR
//!   below two or three ticks, because a quarter of less than four ticks is truncated to nothing. The RTO
//!   then stays at three to five ticks, and never reaches its minimum of two.
//!
//! Sources: tcp_rtt_estimator and tcp_set_rto of Linux; tcp_xmit_timer of 4.3BSD-Reno.

use talkpath_config::Stack;
use talkpath_units::{Duration, Instant};

use super::clock::{HostClock, round_up, whole_ticks};

/// The rule that SRTT, RTTVAR and RTO follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RttRule {
    /// RFC 6298 §2.
    Rfc6298,
    /// 4.3BSD-Reno (tcp_xmit_timer).
    Ticks,
    /// Linux (tcp_rtt_estimator).
    Linux,
}

/// SRTT, RTTVAR and RTO of one connection.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    rule: RttRule,
    /// The tick G of the host's clock. Zero means that the clock is exact.
    granularity: Duration,
    clock: HostClock,
    min_rto: Duration,
    /// 8 SRTT in nanoseconds. Zero before the first sample. A multiple of G under the rule Ticks.
    ///
    /// All rules count SRTT in eighths and RTTVAR in quarters, because these are the weights of a sample. So
    /// no sample has to be divided ([`smooth`]).
    srtt_x8: u64,
    /// 4 RTTVAR in nanoseconds. A multiple of G under the rule Ticks, at least `min_rto` under Linux's.
    rttvar_x4: u64,
    /// Only Linux's rule uses it.
    deviation: LinuxDeviation,
    /// The RTO before back-off.
    base_rto: Duration,
    /// The number of times that `base_rto` is doubled.
    backoff: u32,
    /// The RTO after back-off.
    rto: Duration,
}

/// What Linux derives RTTVAR from.
#[derive(Clone, Copy, Debug)]
struct LinuxDeviation {
    /// 4 times the mean deviation of the samples from SRTT, in nanoseconds (mdev_us).
    mean_x4: u64,
    /// The maximum of `mean_x4` over the current round trip, but at least `min_rto` (mdev_max_us).
    round_max_x4: u64,
    /// The current round trip ends when this offset is acknowledged (rtt_seq).
    round_end: u64,
}

impl RttRule {
    /// The upper bound of every timeout.
    const fn max_rto(self) -> Duration {
        match self {
            Self::Rfc6298 => Stack::Rfc.max_rto(),
            Self::Ticks => Stack::BsdReno.max_rto(),
            Self::Linux => Stack::Linux.max_rto(),
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
            rttvar_x4: 0,
            deviation: LinuxDeviation { mean_x4: 0, round_max_x4: 0, round_end: 0 },
            base_rto: INITIAL_RTO,
            backoff: 0,
            rto: INITIAL_RTO,
        }
    }

    /// The same estimator, on a host whose ticks are those of `clock`.
    #[must_use]
    pub(crate) const fn with_clock(mut self, clock: HostClock) -> Self {
        self.clock = clock;
        self
    }

    /// SRTT. `None` before the first sample.
    #[inline]
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.has_sample().then_some(Duration::from_nanos(self.srtt_x8 / 8))
    }

    /// True if a round trip was measured. Each sample counts as 1 ns at least, so SRTT is zero only before
    /// the first one.
    #[inline]
    const fn has_sample(&self) -> bool {
        self.srtt_x8 > 0
    }

    /// The RTO after back-off.
    #[inline]
    pub(crate) const fn rto(&self) -> Duration {
        self.rto
    }

    /// The time at which a retransmission timer expires if it is started `now`.
    #[inline]
    pub(crate) fn deadline(&self, now: Instant) -> Instant {
        self.after(self.rto(), now)
    }

    /// The time of the next probe of a closed window (RFC 9293 §3.8.6.1), after `backoff` probes were sent.
    /// The first interval is the RTO or `min_rto`, whichever is longer (Linux: tcp_probe0_base). Each further
    /// interval is twice as long as the interval before it.
    pub(crate) fn persist_deadline(&self, backoff: u32, now: Instant) -> Instant {
        let base = self.base_rto.max(self.min_rto);
        let interval = base.saturating_mul(1_u64 << backoff.min(MAX_BACKOFF));
        self.after(interval.min(self.rule.max_rto()), now)
    }

    /// The time at which a timer of `span` expires if it is started `now`. If the host's clock has ticks, a
    /// timer expires at a tick, because the host checks its timers at ticks only.
    #[inline]
    pub(crate) fn after(&self, span: Duration, now: Instant) -> Instant {
        let tick = self.granularity.as_nanos();
        if tick == 0 {
            return now.saturating_add(span);
        }
        let reading = self.clock.read(now);
        let expires_at = match self.rule {
            RttRule::Linux => on_wheel(span, reading, tick),
            // The host counts the ticks of the span from its last tick on.
            RttRule::Rfc6298 | RttRule::Ticks => {
                let last_tick = Instant::from_nanos(whole_ticks(reading.as_nanos(), tick) * tick);
                last_tick.saturating_add(round_up(span, self.granularity))
            }
        };
        // The host's clock reads `expires_at` when the timer expires. The caller needs the run's time.
        self.clock.when(expires_at)
    }

    /// Doubles the RTO (RFC 6298 §5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
        self.update_rto();
    }

    /// Sets the RTO to 3 s for the first data after a lost SYN, if no sample was taken (RFC 6298 §5.7).
    pub(crate) fn fall_back_after_syn_loss(&mut self) {
        if !self.has_sample() {
            self.base_rto = FALLBACK_RTO;
            self.backoff = 0;
            self.update_rto();
        }
    }

    /// Computes `rto` from `base_rto` and `backoff`.
    fn update_rto(&mut self) {
        let factor = 1_u64 << self.backoff.min(MAX_BACKOFF);
        self.rto = self.base_rto.saturating_mul(factor).min(self.rule.max_rto());
    }

    /// The time from `sent` to `now` as this host measures it. Under the rule Ticks (BSD) the host counts the
    /// ticks between the two (tcp_slowtimo). A round trip below a tick is then measured as zero or one tick.
    #[inline]
    pub(crate) fn measure(&self, sent: Instant, now: Instant) -> Duration {
        let tick = self.granularity.as_nanos();
        if self.rule == RttRule::Ticks && tick > 0 {
            let ticks_at_sent = whole_ticks(self.clock.read(sent).as_nanos(), tick);
            let ticks_at_now = whole_ticks(self.clock.read(now).as_nanos(), tick);
            let ticks = ticks_at_now.saturating_sub(ticks_at_sent);
            return Duration::from_nanos(ticks * tick);
        }
        now.since(sent)
    }

    /// Takes a round-trip sample, when the far end has acknowledged everything below `snd_una`, and
    /// everything below `snd_nxt` was sent. The caller must know which transmission was acknowledged: the
    /// segment was sent only once (RFC 6298 §3, Karn's algorithm), or a timestamp says which.
    #[inline]
    pub(crate) fn on_sample(&mut self, rtt: Duration, snd_una: u64, snd_nxt: u64) {
        // A sample of zero would leave SRTT at zero, which means that there is no sample.
        let rtt_ns = rtt.as_nanos().max(1);
        let rto = match self.rule {
            // Without ticks, the BSD rule's equations are the RFC's.
            RttRule::Ticks if self.granularity.as_nanos() > 0 => self.update_ticks(rtt_ns),
            RttRule::Rfc6298 | RttRule::Ticks => self.update_rfc(rtt_ns),
            RttRule::Linux => self.update_linux(rtt_ns, snd_una, snd_nxt),
        };
        // A host with ticks waits for whole ticks.
        self.base_rto = round_up(rto, self.granularity).min(self.rule.max_rto());
        // A sample ends the back-off (RFC 6298 §5).
        self.backoff = 0;
        self.rto = self.base_rto;
    }

    /// The rule of RFC 6298 §2.2 and §2.3, with alpha = 1/8, beta = 1/4 and K = 4. Returns the RTO.
    ///
    /// ```text
    ///   first sample R    RTTVAR = R / 2                           SRTT = R
    ///   later sample R    RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|     SRTT = 7/8 SRTT + 1/8 R
    ///
    ///   RTO = SRTT + max(G, 4 RTTVAR), at least min_rto
    /// ```
    ///
    /// The code holds 8 SRTT and 4 RTTVAR, so 4 RTTVAR of the first sample is 2 R.
    fn update_rfc(&mut self, rtt_ns: u64) -> Duration {
        if self.has_sample() {
            let error = (self.srtt_x8 / 8).abs_diff(rtt_ns);
            self.rttvar_x4 = smooth(self.rttvar_x4, 4, error);
            self.srtt_x8 = smooth(self.srtt_x8, 8, rtt_ns);
        } else {
            self.srtt_x8 = rtt_ns.saturating_mul(8);
            self.rttvar_x4 = rtt_ns.saturating_mul(2);
        }
        let margin = self.rttvar_x4.max(self.granularity.as_nanos());
        Duration::from_nanos((self.srtt_x8 / 8).saturating_add(margin)).max(self.min_rto)
    }

    /// The rule of 4.3BSD-Reno (tcp_xmit_timer): the RFC's equations without G, in whole ticks. Every
    /// division truncates. Returns the RTO.
    ///
    /// The first sample is made one tick longer. BSD's counter of ticks begins at 1, and its code subtracts
    /// that 1 from all samples except the first.
    fn update_ticks(&mut self, rtt_ns: u64) -> Duration {
        let tick = self.granularity.as_nanos();
        let sample = whole_ticks(rtt_ns, tick);
        let mut srtt_x8_ticks = whole_ticks(self.srtt_x8, tick);
        let mut rttvar_x4_ticks = whole_ticks(self.rttvar_x4, tick);
        if srtt_x8_ticks == 0 {
            srtt_x8_ticks = 8 * (sample + 1);
            rttvar_x4_ticks = 2 * (sample + 1);
        } else {
            let error = (srtt_x8_ticks / 8).abs_diff(sample);
            // BSD sets a sum of zero to 1, since zero means "no sample".
            rttvar_x4_ticks = smooth(rttvar_x4_ticks, 4, error).max(1);
            srtt_x8_ticks = smooth(srtt_x8_ticks, 8, sample).max(1);
        }
        self.srtt_x8 = srtt_x8_ticks.saturating_mul(tick);
        self.rttvar_x4 = rttvar_x4_ticks.saturating_mul(tick);
        let rto_ticks = srtt_x8_ticks / 8 + rttvar_x4_ticks;
        Duration::from_nanos(tick.saturating_mul(rto_ticks)).max(self.min_rto)
    }

    /// Linux's rule (tcp_rtt_estimator). Returns the RTO.
    ///
    /// SRTT moves as in RFC 6298, and RTO = SRTT + 4 RTTVAR. RTTVAR is not smoothed with each sample. It
    /// follows the maximum that the mean deviation had in a round trip:
    ///
    /// - RTTVAR rises to this maximum at once.
    /// - RTTVAR falls only at the end of a round trip, by a quarter of its distance from the maximum.
    /// - At the beginning of a round trip, 4 times the maximum is `min_rto`. So 4 RTTVAR never falls below
    ///   `min_rto`.
    #[inline]
    fn update_linux(&mut self, rtt_ns: u64, snd_una: u64, snd_nxt: u64) -> Duration {
        let min_round_max_x4 = self.min_rto.as_nanos();
        if self.has_sample() {
            let deviation = &mut self.deviation;
            deviation.on_sample(rtt_ns, self.srtt_x8 / 8);
            self.srtt_x8 = smooth(self.srtt_x8, 8, rtt_ns);
            if deviation.mean_x4 > deviation.round_max_x4 {
                deviation.round_max_x4 = deviation.mean_x4;
                self.rttvar_x4 = self.rttvar_x4.max(deviation.round_max_x4);
            }
            // A round trip is over when the first byte that was sent after its beginning is acknowledged.
            if snd_una > deviation.round_end {
                self.rttvar_x4 -= self.rttvar_x4.saturating_sub(deviation.round_max_x4) / 4;
                deviation.round_end = snd_nxt;
                deviation.round_max_x4 = min_round_max_x4;
            }
        } else {
            self.srtt_x8 = rtt_ns.saturating_mul(8);
            let mean_x4 = rtt_ns.saturating_mul(2);
            self.rttvar_x4 = mean_x4.max(min_round_max_x4);
            self.deviation = LinuxDeviation { mean_x4, round_max_x4: self.rttvar_x4, round_end: snd_nxt };
        }
        Duration::from_nanos((self.srtt_x8 / 8).saturating_add(self.rttvar_x4))
    }
}

impl LinuxDeviation {
    /// Moves the mean deviation towards the deviation of this sample from `srtt_ns`, by a quarter of the
    /// difference. So 4 times the mean moves by the whole difference.
    ///
    /// If the sample is shorter than SRTT and raises the mean, the mean moves by only an eighth of the
    /// difference: a shorter round trip is no reason for a longer timeout.
    fn on_sample(&mut self, rtt_ns: u64, srtt_ns: u64) {
        let error = srtt_ns.abs_diff(rtt_ns);
        let mean = self.mean_x4 / 4;
        if error <= mean {
            self.mean_x4 -= mean - error;
        } else if rtt_ns < srtt_ns {
            self.mean_x4 += (error - mean) / 8;
        } else {
            self.mean_x4 += error - mean;
        }
    }
}

/// Takes `sample` into a mean in which a sample weighs 1/`n`. The mean is given and returned `n` times as
/// large, so `mean = (n - 1)/n mean + 1/n sample` becomes `scaled = scaled - scaled / n + sample`.
#[inline(always)]
const fn smooth(scaled_mean: u64, n: u64, sample: u64) -> u64 {
    scaled_mean - scaled_mean / n + sample
}

/// The time at which a timer of `span` expires in Linux's timer wheel (kernel/time/timer.c,
/// __calc_wheel_index). A jiffy has `tick` nanoseconds, more than zero.
///
/// The wheel keeps timers in buckets, and all timers of a bucket expire together. The longer the span, the
/// wider the bucket:
///
/// ```text
///   span in jiffies     0 to 62   63 to 503   504 to 4031   ...
///   bucket in jiffies   1         8           64            eight times as wide at each level
/// ```
///
/// A timer expires when a bucket begins: the first one that begins after the timer's time. So no timer
/// expires early.
#[inline]
pub(crate) fn on_wheel(span: Duration, now: Instant, tick: u64) -> Instant {
    // The span is rounded up to jiffies. The sum cannot overflow: no timer is near the end of time.
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

/// The finest level of the wheel holds spans of fewer jiffies than this (LVL_START(1)).
const WHEEL_REACH: u64 = 63;
/// A bucket of the coarsest level has 2 to this power of jiffies (LVL_SHIFT(LVL_DEPTH - 1) at HZ above 100).
const WHEEL_COARSEST: u32 = 24;
/// The RTO before the first sample (RFC 6298 §2.1; Linux: TCP_TIMEOUT_INIT). BSD took 6 s, before RFC 2988.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// The RTO after a lost SYN (RFC 6298 §5.7; Linux: TCP_TIMEOUT_FALLBACK).
const FALLBACK_RTO: Duration = Duration::from_secs(3);
/// The largest number of doublings. Further doublings change nothing, because an RTO of 1 ns exceeds every
/// maximum after 40 of them.
const MAX_BACKOFF: u32 = 40;

#[cfg(test)]
mod tests {
    use talkpath_units::Seed;

    use super::*;
    use talkpath_config::{Role, Ticks};

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

    /// tcp_set_rto: the minimum applies to the variance term alone, so that the RTO is at least SRTT + 200
    /// ms.
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
