//! A host's clock, and when the timers of the host expire.
//!
//! A kernel checks its timers at the ticks of one clock (tcp_slowtimo each 500 ms in BSD, a jiffy in Linux).
//! A timer for `span` that is started at `now`:
//!
//! ```text
//!   exact clock         expires at now + span
//!   BSD                 counts span, rounded up to whole ticks, from the last tick
//!   Linux's wheel       expires when the first bucket begins after now + span
//!
//!   span in jiffies     0 to 62   63 to 503   504 to 4031   ...
//!   bucket in jiffies   1         8           64            eight times as wide at each level
//! ```
//!
//! The wheel keeps timers in buckets, and all timers of a bucket expire together. No timer expires early.
//!
//! Hosts that were not started together tick at different times. If all hosts of a simulation tick at once,
//! their timeouts coincide, which no network does: twelve connections that share a full queue of 16 packets
//! then lose a tenth fewer packets.

use talkpath_units::{Duration, Instant, Seed};

use talkpath_config::{Role, Ticks};

/// A host's clock, which is ahead of the run's clock by a constant time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostClock {
    /// The time by which the clock is ahead, in nanoseconds.
    ahead: u64,
}

impl HostClock {
    /// The run's own clock.
    pub(crate) const COMMON: Self = Self { ahead: 0 };

    /// The clock of the host at `role`'s end of a flow. `seed` is the flow's.
    pub(crate) fn new(ticks: Ticks, seed: Seed, role: Role) -> Self {
        let name = match role {
            Role::Active => "tcp/ticks/active",
            Role::Passive => "tcp/ticks/passive",
        };
        match ticks {
            Ticks::Common => Self::COMMON,
            Ticks::Own => Self { ahead: seed.stream(name).bits() % MAX_LEAD },
        }
    }

    /// Returns what the host's clock reads at `now`.
    #[inline]
    pub(crate) const fn read(self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos().saturating_add(self.ahead))
    }

    /// Returns the instant at which the host's clock reads `reading`, and the beginning of the run if that is
    /// later.
    #[inline]
    pub(crate) const fn when(self, reading: Instant) -> Instant {
        Instant::from_nanos(reading.as_nanos().saturating_sub(self.ahead))
    }
}

/// The timers of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostTimers {
    clock: HostClock,
    /// A tick of the clock. Zero means that the clock is exact.
    tick: Duration,
    expire: Expire,
}

/// When a timer expires on a clock with ticks.
#[derive(Clone, Copy, Debug)]
enum Expire {
    /// After a number of ticks, counted from the last one.
    AfterTicks,
    /// When a bucket of Linux's timer wheel begins.
    WithBucket,
}

impl HostTimers {
    /// BSD's timers. The ticks of `clock` are `tick` long.
    pub(crate) const fn on_ticks(clock: HostClock, tick: Duration) -> Self {
        Self { clock, tick, expire: Expire::AfterTicks }
    }

    /// Linux's timers. A jiffy of `clock` is `tick` long.
    pub(crate) const fn on_wheel(clock: HostClock, tick: Duration) -> Self {
        Self { clock, tick, expire: Expire::WithBucket }
    }

    #[inline]
    pub(crate) const fn tick(&self) -> Duration {
        self.tick
    }

    /// Returns the time at which a timer of `span` expires if it is started `now`.
    #[inline]
    pub(crate) fn expiry(&self, span: Duration, now: Instant) -> Instant {
        let tick = self.tick.as_nanos();
        if tick == 0 {
            return now.saturating_add(span);
        }
        let reading = self.clock.read(now);
        let expires_at = match self.expire {
            Expire::WithBucket => bucket_after(span, reading, tick),
            Expire::AfterTicks => {
                let last_tick = Instant::from_nanos(whole_ticks(reading.as_nanos(), tick) * tick);
                last_tick.saturating_add(round_up(span, self.tick))
            }
        };
        // The host's clock reads `expires_at` when the timer expires. The caller needs the run's time.
        self.clock.when(expires_at)
    }

    /// Returns the time from `from` to `to` as a host measures it that counts the ticks between the two.
    #[inline]
    pub(crate) fn measure(&self, from: Instant, to: Instant) -> Duration {
        let tick = self.tick.as_nanos();
        if tick == 0 {
            return to.since(from);
        }
        let ticks = |at| whole_ticks(self.clock.read(at).as_nanos(), tick);
        Duration::from_nanos(ticks(to).saturating_sub(ticks(from)) * tick)
    }
}

/// Returns the time at which a timer of `span` expires in Linux's timer wheel (kernel/time/timer.c,
/// __calc_wheel_index). A jiffy has `tick` nanoseconds, more than zero.
#[inline]
fn bucket_after(span: Duration, now: Instant, tick: u64) -> Instant {
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

/// Returns the number of whole ticks in `nanos`. The ticks of the presets are constants, so that the compiler
/// replaces the division by a multiplication. A division takes as long as a cache miss, and each
/// acknowledgement needs several.
#[inline]
pub(crate) fn whole_ticks(nanos: u64, tick: u64) -> u64 {
    match tick {
        JIFFY => nanos / JIFFY,
        SLOW_TICK => nanos / SLOW_TICK,
        FAST_TICK => nanos / FAST_TICK,
        tick => divide(nanos, tick),
    }
}

/// Returns `span`, rounded up to whole ticks. A `tick` of zero means that the clock is exact.
#[inline]
pub(crate) fn round_up(span: Duration, tick: Duration) -> Duration {
    match tick.as_nanos() {
        0 => span,
        tick => Duration::from_nanos(whole_ticks(span.as_nanos().saturating_add(tick - 1), tick) * tick),
    }
}

/// Divides by any tick. This is a separate function, so that the compiler does not merge it with the
/// divisions by constants.
#[inline(never)]
const fn divide(nanos: u64, tick: u64) -> u64 {
    nanos / tick
}

/// Linux's tick at HZ = 1000, in nanoseconds.
const JIFFY: u64 = 1_000_000;
/// The ticks of BSD's timers (tcp_slowtimo, tcp_fasttimo), in nanoseconds.
const SLOW_TICK: u64 = 500_000_000;
const FAST_TICK: u64 = 200_000_000;
/// The finest level of the wheel holds spans of fewer jiffies than this (LVL_START(1)).
const WHEEL_REACH: u64 = 63;
/// A bucket of the coarsest level has 2 to this power of jiffies (LVL_SHIFT(LVL_DEPTH - 1) at HZ above 100).
const WHEEL_COARSEST: u32 = 24;
/// The bound of a clock's lead, in nanoseconds (18 minutes). We chose it far longer than any tick, so that
/// each phase is equally likely, and far shorter than the range of an [`Instant`].
const MAX_LEAD: u64 = 1 << 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_tick_each_in_its_own_phase_or_all_at_once() {
        let own = |seed, role| HostClock::new(Ticks::Own, Seed::new(seed), role);
        assert_ne!(own(1, Role::Active), own(1, Role::Passive));
        assert_ne!(own(1, Role::Active), own(2, Role::Active));
        assert_eq!(own(1, Role::Active), own(1, Role::Active));
        assert_eq!(HostClock::new(Ticks::Common, Seed::new(1), Role::Active), HostClock::COMMON);
    }

    #[test]
    fn a_reading_is_shown_when_it_was_read() {
        let clock = HostClock::new(Ticks::Own, Seed::new(7), Role::Active);
        let now = Instant::from_millis(1234);
        assert!(clock.read(now) > now);
        assert_eq!(clock.when(clock.read(now)), now);
    }

    /// kernel/time/timer.c, the table of levels for HZ = 1000: 0 to 62 ms by 1 ms, 63 to 503 ms by 8 ms, 504
    /// ms to 4 s by 64 ms.
    #[test]
    fn a_wheels_timers_are_never_early_and_coarser_the_longer_they_are() {
        const MS: u64 = 1_000_000;
        let fires = |ms, at_ms, tick_ms| {
            bucket_after(Duration::from_millis(ms), Instant::from_millis(at_ms), tick_ms * MS).as_nanos() / MS
        };
        assert_eq!((fires(40, 100, 1), fires(62, 100, 1)), (141, 163));
        assert_eq!((fires(63, 100, 1), fires(210, 5, 1)), (168, 216));
        assert_eq!((fires(504, 0, 1), fires(1000, 0, 1)), (512, 1024));
        // A kernel of HZ = 250 acknowledged 40.03 and 43.3 ms after the data.
        assert_eq!((fires(40, 252, 4), fires(40, 255, 4)), (296, 296));
    }
}
