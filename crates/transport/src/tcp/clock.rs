//! A host's clock. Its timers expire on the clock's ticks.
//!
//! A kernel checks its timers at the ticks of one clock (tcp_slowtimo each 500 ms in BSD, a jiffy in Linux).
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
}
