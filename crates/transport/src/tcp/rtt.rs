//! Round-trip time and retransmission timeout of one connection (RFC 6298 §2 and §5).
//!
//! ```text
//!   round trips ──► estimate: SRTT, RTTVAR ──► timeout: RTO, doubled by each back-off ──► timers: a deadline
//!
//!   stack      RTO before back-off                              at least   at most
//!   rfc        SRTT + max(4 RTTVAR, G)                          min_rto    60 s
//!   linux      SRTT + max(4 RTTVAR, min_rto)                    -          120 s
//!   bsd-reno   SRTT + 4 RTTVAR, each truncated to whole ticks   min_rto    64 s
//! ```
//!
//! G is the tick of the host's clock. How SRTT and RTTVAR move is in `rtt/estimate`, and when a timer expires
//! is in `clock`.

mod estimate;

use talkpath_config::Stack;
use talkpath_units::{Duration, Instant};

use self::estimate::Estimate;
use super::clock::{HostClock, HostTimers, round_up};

/// SRTT, RTTVAR and RTO of one connection.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    estimate: Estimate,
    timeout: Timeout,
    timers: HostTimers,
    min_rto: Duration,
}

/// The RTO, and the number of times that it was doubled.
#[derive(Clone, Copy, Debug)]
struct Timeout {
    /// The RTO before back-off.
    base: Duration,
    doublings: u32,
    /// The RTO after back-off.
    rto: Duration,
    /// The upper bound of every timeout.
    max: Duration,
}

impl Timeout {
    const fn new(max: Duration) -> Self {
        Self { base: INITIAL_RTO, doublings: 0, rto: INITIAL_RTO, max }
    }

    /// Sets the RTO, and ends the back-off.
    fn set(&mut self, rto: Duration) {
        self.base = rto.min(self.max);
        self.doublings = 0;
        self.rto = self.base;
    }

    fn double(&mut self) {
        self.doublings = self.doublings.saturating_add(1);
        self.rto = self.doubled(self.base, self.doublings);
    }

    /// Doubles `span` this number of `times`, up to the upper bound.
    fn doubled(&self, span: Duration, times: u32) -> Duration {
        span.saturating_mul(1_u64 << times.min(MAX_DOUBLINGS)).min(self.max)
    }
}

impl RttEstimator {
    /// The rules are those of `stack`. The ticks of `clock` are `tick` long. A `tick` of zero means that the
    /// clock is exact.
    pub(crate) const fn new(stack: Stack, tick: Duration, min_rto: Duration, clock: HostClock) -> Self {
        let timers = match stack {
            Stack::Linux => HostTimers::on_wheel(clock, tick),
            Stack::Rfc | Stack::BsdReno => HostTimers::on_ticks(clock, tick),
        };
        Self {
            estimate: Estimate::new(stack, tick, min_rto),
            timeout: Timeout::new(stack.max_rto()),
            timers,
            min_rto,
        }
    }

    /// SRTT. `None` before the first sample.
    #[inline]
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.estimate.srtt()
    }

    /// The RTO after back-off.
    #[inline]
    pub(crate) const fn rto(&self) -> Duration {
        self.timeout.rto
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
        let first = self.timeout.base.max(self.min_rto);
        self.after(self.timeout.doubled(first, backoff), now)
    }

    /// The time at which a timer of `span` expires if it is started `now`.
    #[inline]
    pub(crate) fn after(&self, span: Duration, now: Instant) -> Instant {
        self.timers.expiry(span, now)
    }

    /// Doubles the RTO (RFC 6298 §5.5).
    pub(crate) fn back_off(&mut self) {
        self.timeout.double();
    }

    /// Sets the RTO to 3 s for the first data after a lost SYN, if no sample was taken (RFC 6298 §5.7).
    pub(crate) fn fall_back_after_syn_loss(&mut self) {
        if self.srtt().is_none() {
            self.timeout.set(FALLBACK_RTO);
        }
    }

    /// The time from `sent` to `now` as this host measures it. The stack `bsd-reno` counts the ticks between
    /// the two (tcp_slowtimo). It measures a round trip below a tick as zero or one tick.
    #[inline]
    pub(crate) fn measure(&self, sent: Instant, now: Instant) -> Duration {
        match self.estimate {
            Estimate::Ticks(_) => self.timers.measure(sent, now),
            Estimate::Rfc6298(_) | Estimate::Linux(_) => now.since(sent),
        }
    }

    /// Takes a round-trip sample, when the far end has acknowledged everything below `snd_una`, and
    /// everything below `snd_nxt` was sent. The caller must know which transmission was acknowledged: the
    /// segment was sent only once (RFC 6298 §3, Karn's algorithm), or a timestamp says which. A sample ends
    /// the back-off (RFC 6298 §5).
    #[inline]
    pub(crate) fn on_sample(&mut self, rtt: Duration, snd_una: u64, snd_nxt: u64) {
        let rto = self.estimate.on_sample(rtt, snd_una, snd_nxt);
        // A host with ticks waits for whole ticks.
        self.timeout.set(round_up(rto, self.timers.tick()));
    }
}

/// The RTO before the first sample (RFC 6298 §2.1; Linux: TCP_TIMEOUT_INIT). BSD took 6 s, before RFC 2988.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// The RTO after a lost SYN (RFC 6298 §5.7; Linux: TCP_TIMEOUT_FALLBACK).
const FALLBACK_RTO: Duration = Duration::from_secs(3);
/// The largest number of doublings. Further doublings change nothing, because an RTO of 1 ns exceeds every
/// maximum after 40 of them.
const MAX_DOUBLINGS: u32 = 40;

#[cfg(test)]
mod tests {
    use talkpath_units::Seed;

    use super::*;
    use talkpath_config::{Role, Ticks};

    /// An estimator with a tick of `tick_ms`, on a host whose clock is the run's.
    fn estimator(stack: Stack, tick_ms: u64, min_rto_ms: u64) -> RttEstimator {
        let (tick, min_rto) = (Duration::from_millis(tick_ms), Duration::from_millis(min_rto_ms));
        RttEstimator::new(stack, tick, min_rto, HostClock::COMMON)
    }

    fn sample(estimator: &mut RttEstimator, ms: u64) {
        estimator.on_sample(Duration::from_millis(ms), 0, 0);
    }

    /// RFC 6298 §2.2 and §2.3.
    #[test]
    fn the_rfc_estimator_follows_its_equations() {
        let mut estimator = estimator(Stack::Rfc, 0, 0);
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
        let mut estimator = estimator(Stack::Rfc, 0, 1000);
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
        let mut estimator = estimator(Stack::Rfc, 10, 0);
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
        let estimator = RttEstimator::new(Stack::BsdReno, tick, second, clock);
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
        let mut estimator = estimator(Stack::Linux, 1, 200);
        for round in 0..20 {
            estimator.on_sample(Duration::from_millis(50), round, round);
        }
        assert_eq!(estimator.rto(), Duration::from_millis(250));
    }

    /// tcp_slowtimo: 500 ms ticks, at least two of them.
    #[test]
    fn a_coarse_clock_fires_on_its_ticks() {
        let mut estimator = estimator(Stack::BsdReno, 500, 1000);
        let sent = Instant::from_millis(400);
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
        let mut estimator = estimator(Stack::BsdReno, 500, 1000);
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

    #[test]
    fn a_lost_syn_makes_data_start_with_three_seconds() {
        let mut estimator = estimator(Stack::Rfc, 0, 1000);
        estimator.back_off();
        estimator.fall_back_after_syn_loss();
        assert_eq!(estimator.rto(), Duration::from_secs(3));
    }
}
