//! This host's clock, as runs read it.
//!
//! Time is CLOCK_MONOTONIC, which no one steps; at the beginning of a session it is anchored at CLOCK_REALTIME, so that
//! two hosts' readings are comparable numbers. Kernel receive stamps are CLOCK_REALTIME: they are turned into ages
//! against a reading taken beside them, which a step of the wall clock between two packets cannot bend.

use rustix::time::{ClockId, Timespec, clock_gettime};
use talkpath_units::{Duration, Instant};

/// CLOCK_MONOTONIC anchored once at CLOCK_REALTIME.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostClock {
    /// What to add to CLOCK_MONOTONIC.
    shift_ns: i64,
}

/// Counts from a run's beginning on this host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunClock {
    /// CLOCK_MONOTONIC at the run's beginning.
    epoch_ns: i64,
}

impl HostClock {
    /// Anchors now.
    pub(crate) fn anchor() -> Self {
        Self { shift_ns: read(ClockId::Realtime) - monotonic() }
    }

    /// Nanoseconds since 1970 as of the anchor, plus what CLOCK_MONOTONIC counted since.
    pub(crate) fn now_ns(self) -> i64 {
        monotonic() + self.shift_ns
    }

    /// The run clock whose zero is `wall_ns` on this clock.
    pub(crate) fn run_from(self, wall_ns: i64) -> RunClock {
        RunClock { epoch_ns: wall_ns - self.shift_ns }
    }
}

impl RunClock {
    /// Time since the run's beginning; zero before it.
    pub(crate) fn now(self) -> Instant {
        self.at(monotonic())
    }

    /// The run time at which the kernel stamped a datagram with `stamp_ns` on CLOCK_REALTIME; now where it did not.
    pub(crate) fn stamped(self, stamp_ns: Option<i64>) -> Instant {
        let age = stamp_ns.map_or(0, |stamp| (read(ClockId::Realtime) - stamp).clamp(0, OLDEST_STAMP_NS));
        self.at(monotonic() - age)
    }

    /// Sleeps until `deadline`, or for `most` where that comes first.
    ///
    /// The last 60 us are spun, since a sleep wakes up late by about that much (chosen; see docs/live.md).
    pub(crate) fn sleep_until(self, deadline: Instant, most: Duration) {
        let now = monotonic();
        let due = self.epoch_ns.saturating_add(i64::try_from(deadline.as_nanos()).unwrap_or(i64::MAX));
        let limit = now.saturating_add(i64::try_from(most.as_nanos()).unwrap_or(i64::MAX));
        let spins = due <= limit;
        let until = if spins { due - SPIN_NS } else { limit };
        if until > now {
            let request = Timespec { tv_sec: until.div_euclid(SECOND), tv_nsec: until.rem_euclid(SECOND) };
            // A signal ends the sleep early; the caller looks at the clock again anyway.
            let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &request);
        }
        while spins && monotonic() < due && due - monotonic() <= SPIN_NS {
            std::hint::spin_loop();
        }
    }

    fn at(self, monotonic_ns: i64) -> Instant {
        Instant::from_nanos(u64::try_from(monotonic_ns - self.epoch_ns).unwrap_or(0))
    }
}

/// CLOCK_MONOTONIC, ns.
pub(crate) fn monotonic() -> i64 {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec.saturating_mul(SECOND).saturating_add(now.tv_nsec)
}

/// ns in a second.
const SECOND: i64 = 1_000_000_000;
/// How long before a deadline the sleep ends and the spin begins.
const SPIN_NS: i64 = 60_000;
/// A stamp older than this was made before the wall clock was stepped: it is cut off here.
const OLDEST_STAMP_NS: i64 = SECOND;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_clock_counts_from_its_beginning_and_never_below_zero() {
        let host = HostClock::anchor();
        let begun = host.run_from(host.now_ns() - 5_000_000);
        assert!(begun.now() >= Instant::from_millis(5));
        assert_eq!(host.run_from(host.now_ns() + SECOND).now(), Instant::ZERO);
    }

    #[test]
    fn a_sleep_ends_at_its_deadline_and_not_before() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let deadline = Instant::from_millis(3);
        clock.sleep_until(deadline, Duration::from_secs(1));
        assert!(clock.now() >= deadline);
        let long = Instant::from_secs(60);
        clock.sleep_until(long, Duration::from_millis(1));
        assert!(clock.now() < long, "the limit ends the sleep");
    }
}
