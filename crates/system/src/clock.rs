//! This host's clock, as runs read it.
//!
//! Time is CLOCK_MONOTONIC, which no one steps; at the beginning of a session it is anchored at
//! CLOCK_REALTIME, so that two hosts' readings are comparable numbers. The kernel's stamps are
//! CLOCK_REALTIME: [`WallStamps`], a reading of both clocks at one moment, turns them into run time, so that
//! a step of the wall clock between two packets bends neither.

use rustix::time::{ClockId, Timespec, clock_gettime};
use talkpath_units::{Duration, Instant};

/// CLOCK_MONOTONIC anchored once at CLOCK_REALTIME.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    /// What to add to CLOCK_MONOTONIC.
    shift_ns: i64,
    /// CLOCK_MONOTONIC at the anchoring.
    anchored_ns: i64,
}

/// Counts from a run's beginning on this host.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    /// CLOCK_MONOTONIC at the run's beginning.
    epoch_ns: i64,
    host: HostClock,
}

/// A reading of both clocks; see [`RunClock::beside_wall`].
#[derive(Clone, Copy, Debug)]
pub struct WallStamps {
    /// CLOCK_REALTIME at the run's beginning, as if it had gone like CLOCK_MONOTONIC since.
    epoch_ns: i64,
    latest_ns: i64,
    /// Stamps before this say nothing.
    oldest_ns: i64,
}

impl WallStamps {
    /// Whether a stamp of CLOCK_REALTIME was made before this reading.
    pub const fn follows(self, stamp_ns: i64) -> bool {
        stamp_ns <= self.latest_ns
    }

    /// The run time of a stamp of CLOCK_REALTIME. A stamp is not used if it is later than the reading, from
    /// before the clocks were anchored, or a second or more old and the wall clock was stepped meanwhile: it
    /// counts as of the reading, as a packet without a stamp does.
    pub fn at(self, stamp_ns: i64) -> Instant {
        let is_usable = (self.oldest_ns..=self.latest_ns).contains(&stamp_ns);
        let stamp_ns = if is_usable { stamp_ns } else { self.latest_ns };
        Instant::from_nanos(u64::try_from(stamp_ns - self.epoch_ns).unwrap_or(0))
    }
}

impl HostClock {
    /// Anchors now.
    pub fn anchor() -> Self {
        let (wall_ns, anchored_ns) = both();
        Self { shift_ns: wall_ns - anchored_ns, anchored_ns }
    }

    /// Nanoseconds since 1970 as of the anchor, plus what CLOCK_MONOTONIC counted since.
    pub fn now_ns(self) -> i64 {
        monotonic() + self.shift_ns
    }

    /// What this clock shows when CLOCK_MONOTONIC shows `monotonic_ns`.
    pub const fn at_monotonic(self, monotonic_ns: i64) -> i64 {
        monotonic_ns + self.shift_ns
    }

    /// CLOCK_MONOTONIC when this clock shows `wall_ns`.
    pub const fn to_monotonic(self, wall_ns: i64) -> i64 {
        wall_ns - self.shift_ns
    }

    /// The run clock whose zero is `wall_ns` on this clock.
    pub fn run_from(self, wall_ns: i64) -> RunClock {
        RunClock { epoch_ns: wall_ns - self.shift_ns, host: self }
    }
}

impl RunClock {
    /// Time since the run's beginning; zero before it.
    pub fn now(self) -> Instant {
        self.at(monotonic())
    }

    /// The run time at which the kernel stamped a datagram with `stamp_ns` on CLOCK_REALTIME; now if there is
    /// no stamp.
    pub fn stamped(self, stamp_ns: Option<i64>) -> Instant {
        stamp_ns.map_or_else(|| self.now(), |stamp_ns| self.beside_wall().at(stamp_ns))
    }

    /// What turns the kernel's stamps into run time, as of now: for stamps of the last moments.
    pub fn beside_wall(self) -> WallStamps {
        let (wall_ns, monotonic_ns) = both();
        self.beside(wall_ns, monotonic_ns)
    }

    /// The same of a reading.
    const fn beside(self, wall_ns: i64, monotonic_ns: i64) -> WallStamps {
        let shift_ns = wall_ns - monotonic_ns;
        // Both clocks are slewed alike (adjtimex(2)): as long as neither was stepped, they stay as far from
        // each other, and a stamp is right however long its packet has waited.
        let is_stepped = (shift_ns - self.host.shift_ns).abs() > STEP_NS;
        let begun_ns = self.host.anchored_ns + self.host.shift_ns;
        let recent_ns = wall_ns - OLDEST_STAMP_NS;
        let oldest_ns = if is_stepped || begun_ns > recent_ns { recent_ns } else { begun_ns };
        WallStamps { epoch_ns: self.epoch_ns + shift_ns, latest_ns: wall_ns, oldest_ns }
    }

    /// Sleeps until `deadline`, or for `max` if that comes first.
    ///
    /// The last 60 us are spun, since a sleep wakes up late by about that much (chosen; see
    /// docs/models/live.md).
    pub fn sleep_until(self, deadline: Instant, max: Duration) {
        let now = monotonic();
        let due = self.epoch_ns.saturating_add(i64::try_from(deadline.as_nanos()).unwrap_or(i64::MAX));
        let limit = now.saturating_add(i64::try_from(max.as_nanos()).unwrap_or(i64::MAX));
        let spins = due <= limit;
        let until = if spins { due - SPIN_NS } else { limit };
        if until > now {
            let request = Timespec { tv_sec: until.div_euclid(SECOND), tv_nsec: until.rem_euclid(SECOND) };
            // A signal ends the sleep early; the caller reads the clock again anyway.
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

/// CLOCK_REALTIME and CLOCK_MONOTONIC at one moment, ns.
fn both() -> (i64, i64) {
    // Whoever is interrupted between two readings reads again: what counts is the narrowest of some.
    let (mut wall_ns, mut monotonic_ns, mut width) = (0, 0, i64::MAX);
    for _ in 0..READINGS {
        let before = monotonic();
        let wall = read(ClockId::Realtime);
        let after = monotonic();
        if after - before < width {
            (wall_ns, monotonic_ns, width) = (wall, i64::midpoint(before, after), after - before);
        }
        if width < NARROW_NS {
            break;
        }
    }
    (wall_ns, monotonic_ns)
}

/// CLOCK_MONOTONIC, ns.
pub fn monotonic() -> i64 {
    read(ClockId::Monotonic)
}

/// CLOCK_REALTIME, ns since 1970.
pub fn wall() -> i64 {
    read(ClockId::Realtime)
}

fn read(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec.saturating_mul(SECOND).saturating_add(now.tv_nsec)
}

/// ns in a second.
const SECOND: i64 = 1_000_000_000;
/// How long before a deadline the sleep ends and the spin begins: about as long as a wake-up takes on a
/// virtual machine (chosen; see docs/models/live.md).
pub const SPIN_NS: i64 = 60_000;
/// Two readings within this are of one moment (chosen: ten times what a reading takes); at most `READINGS`
/// are tried.
const NARROW_NS: i64 = 1_000;
const READINGS: u32 = 4;
/// Two readings that differ by more are of before and after a step (chosen: more than a reading is wrong by,
/// and a tenth of the smallest step that NTP makes by itself, RFC 5905 §10: STEPT, 125 ms).
const STEP_NS: i64 = 12_500_000;
/// If the wall clock was stepped, a stamp older than this is taken for one from before the step (chosen).
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
    fn a_stamp_of_the_wall_clock_is_the_run_time_of_that_moment() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns() - SECOND);
        let before = clock.now();
        let stamp = read(ClockId::Realtime);
        let after = clock.now();
        let stamps = clock.beside_wall();
        // Two readings are of one moment within the width of the narrowest that was found; here that may be a
        // time slice.
        let slack = Duration::from_millis(50);
        assert!(
            stamps.at(stamp).saturating_add(slack) >= before
                && stamps.at(stamp) <= after.saturating_add(slack)
        );
        let read_at = stamps.at(stamps.latest_ns);
        assert_eq!(stamps.at(stamps.latest_ns - 1_000).saturating_add(Duration::from_micros(1)), read_at);
        for stepped_by in [-3_600, 1, 3_600] {
            assert_eq!(
                stamps.at(stamps.latest_ns + stepped_by * SECOND),
                read_at,
                "the wall clock was stepped"
            );
        }
        assert!(stamps.follows(stamp) && !stamps.follows(stamps.latest_ns + 1));
    }

    #[test]
    fn one_datagrams_stamp_counts_as_a_readings_do() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns() - 10 * SECOND);
        let before = clock.now();
        let stamp = read(ClockId::Realtime);
        let stamped = clock.stamped(Some(stamp - 1_000_000));
        let slack = Duration::from_millis(50);
        assert!(stamped < clock.now() && stamped.saturating_add(slack) >= before);
        for no_stamp in [None, Some(stamp - 2 * SECOND), Some(stamp + 3_600 * SECOND)] {
            assert!(clock.stamped(no_stamp).saturating_add(slack) >= before, "{no_stamp:?} counts as now");
        }
    }

    #[test]
    fn a_packet_that_waited_for_seconds_came_when_its_stamp_says_unless_the_clock_was_stepped() {
        let host = HostClock { shift_ns: 1_000 * SECOND, anchored_ns: 50 * SECOND };
        let clock = host.run_from(1_060 * SECOND);
        // 100 s on the monotonic clock: 40 s of the run.
        let even = clock.beside(1_100 * SECOND, 100 * SECOND);
        assert_eq!(even.at(1_097 * SECOND), Instant::from_secs(37), "the thread was stopped for 3 s");
        assert_eq!(even.at(1_049 * SECOND), Instant::from_secs(40), "older than this clock");
        let stepped = clock.beside(1_102 * SECOND, 100 * SECOND);
        assert_eq!(stepped.at(1_099 * SECOND), Instant::from_secs(40), "before the step or after it");
        assert_eq!(stepped.at(1_101_500_000_000), Instant::from_nanos(39_500_000_000));
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
