//! Round-trip time and retransmission timeout (RFC 6298), by the RFC's rule or by Linux's.
//!
//! The RFC floors the whole timeout at `min_rto`. Linux (tcp_rtt_estimator, tcp_set_rto) floors the variance term
//! alone, so that RTO = SRTT + at least 200 ms; it lets that term fall once a round trip and weighs a falling round
//! trip less. A clock of granularity G rounds timeouts up to its ticks. BSD (tcp_xmit_timer) counts all of it in ticks and
//! truncates: 8 SRTT and 4 RTTVAR are whole numbers of ticks, of which less than four never decay, so that with round
//! trips below a tick the RTO stays at three to five ticks and not at the least of two. Linux keeps timers
//! in a wheel whose buckets get coarser with the distance.

use talkpath_units::{Duration, Instant};

use super::clock::HostClock;

/// Whose estimator.
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
    granularity: Duration,
    /// Whose ticks they are.
    clock: HostClock,
    min_rto: Duration,
    /// 8 SRTT in nanoseconds; zero before the first sample.
    srtt_x8: u64,
    /// 4 RTTVAR in nanoseconds: the term that is added to SRTT.
    variance_term: u64,
    /// Linux: 4 times the mean deviation, and its maximum over the current round trip.
    mdev: u64,
    mdev_max: u64,
    /// Linux: the round trip that `mdev_max` belongs to ends when this is acknowledged.
    round_end: u64,
    /// The RTO before back-off.
    base_rto: Duration,
    /// How often it has been doubled.
    backoff: u32,
    /// The RTO with its back-off.
    rto: Duration,
    /// In ticks: a sample of so many nanoseconds changed nothing, nor would it now; zero where none is known, since none is so short.
    idle_sample: u64,
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
            idle_sample: 0,
        }
    }

    /// On the ticks of `clock`.
    #[must_use]
    pub(crate) const fn with_clock(mut self, clock: HostClock) -> Self {
        self.clock = clock;
        self
    }

    /// SRTT; `None` before the first sample.
    #[inline]
    pub(crate) fn srtt(&self) -> Option<Duration> {
        (self.srtt_x8 > 0).then_some(Duration::from_nanos(self.srtt_x8 / 8))
    }

    /// The RTO with its back-off.
    #[inline]
    pub(crate) const fn rto(&self) -> Duration {
        self.rto
    }

    /// `base_rto` or `backoff` has changed.
    const fn follow(&mut self) {
        let doublings = if self.backoff < MAX_BACKOFF { self.backoff } else { MAX_BACKOFF };
        let factor = 1_u64 << doublings;
        let rto = self.base_rto.saturating_mul(factor);
        let most = self.rule.max_rto();
        self.rto = if rto.as_nanos() > most.as_nanos() { most } else { rto };
    }

    /// When a timer started `now` fires: after so many whole ticks of the clock, counted from the last tick.
    pub(crate) fn deadline(&self, now: Instant) -> Instant {
        self.after(self.rto(), now)
    }

    /// When a probe of a closed window is due (RFC 9293 §3.8.6.1): an RTO, doubled `backoff` times. Linux
    /// (tcp_probe0_base) takes no less than its minimum RTO.
    pub(crate) fn persist_deadline(&self, backoff: u32, now: Instant) -> Instant {
        let base = if self.base_rto > self.min_rto { self.base_rto } else { self.min_rto };
        let interval = base.saturating_mul(1_u64 << backoff.min(MAX_BACKOFF));
        self.after(interval.min(self.rule.max_rto()), now)
    }

    /// `span` after `now` by this clock, which rounds up to its ticks.
    #[inline]
    pub(crate) fn after(&self, span: Duration, now: Instant) -> Instant {
        if self.rule == RttRule::Linux && self.granularity.as_nanos() == JIFFY {
            return self.clock.when(on_wheel(span, self.clock.read(now), JIFFY));
        }
        self.after_ticks(span, now)
    }

    /// As [`Self::after`]; apart, since it is long and asked for in many places.
    #[inline(never)]
    fn after_ticks(&self, span: Duration, now: Instant) -> Instant {
        let read = self.clock.read(now);
        let due = match self.granularity.as_nanos() {
            0 => return now.saturating_add(span),
            tick if self.rule == RttRule::Linux => on_wheel(span, read, tick),
            JIFFY => on_tick::<JIFFY>(span, read),
            SLOW_TICK => on_tick::<SLOW_TICK>(span, read),
            tick => {
                let last_tick = Instant::from_nanos(read.as_nanos() / tick * tick);
                last_tick.saturating_add(span.round_up_to(self.granularity))
            }
        };
        self.clock.when(due)
    }

    pub(crate) const fn min_rto(&self) -> Duration {
        self.min_rto
    }

    /// RFC 6298 §5.5.
    pub(crate) const fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
        self.idle_sample = 0;
        self.follow();
    }

    /// RFC 6298 §5.7: the SYN timed out and no sample was had, so that data starts with 3 s.
    pub(crate) const fn fall_back_after_syn_loss(&mut self) {
        if self.srtt_x8 == 0 {
            self.base_rto = FALLBACK_RTO;
            self.backoff = 0;
            self.follow();
        }
    }

    /// The span from `sent` to `now` as this clock measures it.
    pub(crate) fn measure(&self, sent: Instant, now: Instant) -> Duration {
        let tick = self.granularity.as_nanos();
        if self.rule == RttRule::Ticks && tick > 0 {
            // tcp_slowtimo counts t_rtt up at each tick between the two.
            let (now, sent) = (self.clock.read(now).as_nanos(), self.clock.read(sent).as_nanos());
            let ticks = match tick {
                SLOW_TICK => (now / SLOW_TICK).saturating_sub(sent / SLOW_TICK),
                tick => divide(now, tick).saturating_sub(divide(sent, tick)),
            };
            return Duration::from_nanos(ticks * tick);
        }
        now.since(sent)
    }

    /// Takes a sample of a segment that was sent once (RFC 6298 §3, Karn) or that a timestamp identifies.
    #[inline(always)]
    pub(crate) fn on_sample(&mut self, rtt: Duration, snd_una: u64, snd_nxt: u64) {
        let rtt = rtt.as_nanos().max(1);
        let rto = match self.rule {
            RttRule::Ticks if self.granularity.as_nanos() > 0 => {
                if rtt == self.idle_sample {
                    debug_assert!(self.clone().update_ticks(rtt).is_none(), "it changes something");
                    return;
                }
                match self.update_ticks(rtt) {
                    Some(rto) => rto,
                    None => return,
                }
            }
            RttRule::Rfc6298 | RttRule::Ticks => self.update_rfc(rtt),
            RttRule::Linux => self.update_linux(rtt, snd_una, snd_nxt),
        };
        if self.stands_for(rto) {
            debug_assert_eq!(self.bounded(rto), self.base_rto, "it stands");
        } else {
            self.set(rto);
        }
    }

    /// Whether the RTO is what [`Self::set`] would make of `rto`, as that of most samples is: they round up to the same jiffy.
    #[inline]
    fn stands_for(&self, rto: Duration) -> bool {
        let (rto, base) = (rto.as_nanos(), self.base_rto.as_nanos());
        self.granularity.as_nanos() == JIFFY && self.backoff == 0 && rto <= base && base - rto < JIFFY
    }

    /// The RTO is `rto`, rounded up to the clock's ticks, without back-off.
    fn set(&mut self, rto: Duration) {
        self.base_rto = self.bounded(rto);
        self.backoff = 0;
        self.follow();
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
        let rto = Duration::from_nanos(self.srtt_x8 / 8).saturating_add(Duration::from_nanos(term));
        if rto < self.min_rto { self.min_rto } else { rto }
    }

    /// tcp_xmit_timer: t_srtt is 8 SRTT and t_rttvar 4 RTTVAR, in ticks; shifts truncate. A first sample counts the tick that it
    /// began in, later ones do not. `None` where all is as the sample before left it, and so the RTO too: most do.
    #[inline(never)]
    fn update_ticks(&mut self, rtt: u64) -> Option<Duration> {
        match self.granularity.as_nanos() {
            SLOW_TICK => self.update_by(SLOW_TICK, rtt, |nanos| nanos / SLOW_TICK),
            tick => self.update_by(tick, rtt, |nanos| divide(nanos, tick)),
        }
    }

    #[inline(always)]
    fn update_by(&mut self, tick: u64, rtt: u64, in_ticks: impl Fn(u64) -> u64) -> Option<Duration> {
        let (sample, srtt, rttvar) = (in_ticks(rtt), in_ticks(self.srtt_x8), in_ticks(self.variance_term));
        let (srtt, rttvar) = if srtt == 0 {
            (8 * (sample + 1), 2 * (sample + 1))
        } else {
            let error = (srtt / 8).abs_diff(sample);
            ((srtt - srtt / 8 + sample).max(1), (rttvar - rttvar / 4 + error).max(1))
        };
        let found = (srtt.saturating_mul(tick), rttvar.saturating_mul(tick));
        let rto = Duration::from_nanos(tick.saturating_mul(srtt / 8 + rttvar)).max(self.min_rto);
        if found == (self.srtt_x8, self.variance_term) && self.backoff == 0 {
            debug_assert_eq!(self.bounded(rto), self.base_rto, "it follows from the two");
            self.idle_sample = rtt;
            return None;
        }
        (self.srtt_x8, self.variance_term) = found;
        self.idle_sample = 0;
        Some(rto)
    }

    /// Linux's tcp_rtt_estimator.
    #[inline(always)]
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

    /// Linux: a quarter of the new deviation, or a thirty-second where the round trip fell and the deviation grew by
    /// it: a falling round trip is no reason for a longer timeout.
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

    fn bounded(&self, rto: Duration) -> Duration {
        let rto = match self.granularity.as_nanos() {
            JIFFY => rto.round_up_to(Duration::from_nanos(JIFFY)),
            SLOW_TICK => rto.round_up_to(Duration::from_nanos(SLOW_TICK)),
            _ => rto.round_up_to(self.granularity),
        };
        rto.min(self.rule.max_rto())
    }
}

/// When a timer of `span` fires in Linux's timer wheel (kernel/time/timer.c, __calc_wheel_index) with jiffies of `tick`
/// nanoseconds, above zero. No timer fires early: it is put into the bucket after the one that its time falls in. A bucket is a jiffy wide
/// below 63 jiffies, and eight times as wide with each eightfold of that.
#[inline]
pub(crate) fn on_wheel(span: Duration, now: Instant, tick: u64) -> Instant {
    // Rounded up; no timer is near the end of time.
    let span = span.as_nanos().saturating_add(tick - 1);
    let (now, delta) = match tick {
        JIFFY => (now.as_nanos() / JIFFY, span / JIFFY),
        tick => (divide(now.as_nanos(), tick), divide(span, tick)),
    };
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

/// How many whole ticks, of more than no time, are in `nanos`: of those that the presets have, without a division.
#[inline(always)]
pub(crate) fn whole_ticks(nanos: u64, tick: u64) -> u64 {
    match tick {
        FAST_TICK => nanos / FAST_TICK,
        JIFFY => nanos / JIFFY,
        tick => divide(nanos, tick),
    }
}

/// Apart, so that the compiler does not join it with the divisions by constants, which are multiplications.
#[inline(never)]
const fn divide(nanos: u64, tick: u64) -> u64 {
    nanos / tick
}

/// As [`RttEstimator::after`], by a clock whose tick is known when this is compiled.
#[inline]
fn on_tick<const TICK: u64>(span: Duration, now: Instant) -> Instant {
    let last_tick = Instant::from_nanos(now.as_nanos() / TICK * TICK);
    last_tick.saturating_add(span.round_up_to(Duration::from_nanos(TICK)))
}

/// LVL_START(1): jiffies that the wheel's finest level reaches.
const WHEEL_REACH: u64 = 63;
/// LVL_SHIFT(LVL_DEPTH - 1) at HZ above 100: the coarsest level's buckets are so wide, as a power of two.
const WHEEL_COARSEST: u32 = 24;
/// Linux at HZ = 1000, and BSD's tcp_slowtimo: each ACK counts in ticks, and dividing by a constant is a multiplication.
pub(crate) const JIFFY: u64 = 1_000_000;
const SLOW_TICK: u64 = 500_000_000;
/// BSD's tcp_fasttimo: 200 ms.
const FAST_TICK: u64 = 200_000_000;
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
/// Doublings beyond this change nothing: the shortest RTO, 1 ns, would exceed every maximum by then.
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

    /// tcp_xmit_timer: `rttvar >> 2` is nothing below four, so that no run of short round trips brings the timeout to
    /// its least value.
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

    /// kernel/time/timer.c, the table of levels for HZ = 1000: 0 to 62 ms by 1 ms, 63 to 503 ms by 8 ms, 504 ms to 4 s by 64 ms.
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
