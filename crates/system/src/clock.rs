//! The clock of this host, as runs read it.
//!
//! Time is CLOCK_MONOTONIC, which nobody steps. At the beginning of a session it is anchored at
//! CLOCK_REALTIME, so that the readings of two hosts can be compared. The kernel stamps packets with
//! CLOCK_REALTIME. [`WallStamps`] is a reading of both clocks at one moment and converts stamps into run
//! time. So a step of the wall clock between two packets changes the time of neither packet.

use rustix::time::{ClockId, Timespec, clock_gettime};
use talkpath_units::{Duration, Instant};

/// The number of nanoseconds in a second.
const SECOND: i64 = 1_000_000_000;
/// The time before a deadline at which the sleep ends and the spin begins, ns. We chose 60 us, which is about
/// the time of a wake-up on a virtual machine (docs/models/live.md).
pub const SPIN_NS: i64 = 60_000;
/// The time within which two readings count as made at one moment, ns. We chose 1 us, which is ten times the
/// time of a reading.
const NARROW_NS: i64 = 1_000;
/// The largest number of readings that are tried.
const READINGS: u32 = 4;
/// The change of the difference between the clocks above which the wall clock was stepped, ns. We chose 12.5
/// ms, which is more than the error of a reading, and a tenth of the smallest step that NTP makes by itself
/// (RFC 5905 §10: STEPT, 125 ms).
const STEP_NS: i64 = 12_500_000;
/// The age above which a stamp is not used if the wall clock was stepped, ns. An older stamp may be from
/// before the step. We chose 1 s.
const OLDEST_STAMP_NS: i64 = SECOND;

/// CLOCK_MONOTONIC anchored once at CLOCK_REALTIME.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    /// The difference between this clock and CLOCK_MONOTONIC, ns.
    shift_ns: i64,
    /// CLOCK_MONOTONIC at the time of the anchor, ns.
    anchored_ns: i64,
}

/// A clock that counts from a run's beginning on this host.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    /// CLOCK_MONOTONIC at the run's beginning, ns.
    epoch_ns: i64,
    host: HostClock,
}

/// A reading of CLOCK_REALTIME and CLOCK_MONOTONIC at one moment ([`RunClock::beside_wall`]).
#[derive(Clone, Copy, Debug)]
pub struct WallStamps {
    /// CLOCK_REALTIME at the run's beginning, computed as if it had run like CLOCK_MONOTONIC since then, ns.
    epoch_ns: i64,
    /// CLOCK_REALTIME at the reading, ns.
    latest_ns: i64,
    /// The oldest stamp that is used, ns.
    oldest_ns: i64,
}

impl WallStamps {
    /// Returns true if a stamp of CLOCK_REALTIME was made before this reading.
    pub const fn follows(self, stamp_ns: i64) -> bool {
        stamp_ns <= self.latest_ns
    }

    /// Converts a stamp of CLOCK_REALTIME into run time.
    ///
    /// A stamp is not used if it is later than the reading, or older than the anchor of the clocks. If the
    /// wall clock was stepped since the anchor, a stamp that is more than a second old is not used either. A
    /// stamp that is not used counts as made at the time of the reading, as if the packet had no stamp.
    pub fn at(self, stamp_ns: i64) -> Instant {
        let is_usable = (self.oldest_ns..=self.latest_ns).contains(&stamp_ns);
        let stamp_ns = if is_usable { stamp_ns } else { self.latest_ns };
        Instant::from_nanos(u64::try_from(stamp_ns - self.epoch_ns).unwrap_or(0))
    }
}

impl HostClock {
    /// Anchors the clock now.
    pub fn anchor() -> Self {
        let (wall_ns, anchored_ns) = read_both();
        Self { shift_ns: wall_ns - anchored_ns, anchored_ns }
    }

    /// Returns the nanoseconds since 1970 at the anchor, plus the time that CLOCK_MONOTONIC has counted
    /// since.
    pub fn now_ns(self) -> i64 {
        monotonic() + self.shift_ns
    }

    /// Returns the time of this clock when CLOCK_MONOTONIC shows `monotonic_ns`.
    pub const fn at_monotonic(self, monotonic_ns: i64) -> i64 {
        monotonic_ns + self.shift_ns
    }

    /// Returns the time of CLOCK_MONOTONIC when this clock shows `wall_ns`.
    pub const fn to_monotonic(self, wall_ns: i64) -> i64 {
        wall_ns - self.shift_ns
    }

    /// Makes the run clock whose zero is `wall_ns` on this clock.
    pub fn run_from(self, wall_ns: i64) -> RunClock {
        RunClock { epoch_ns: wall_ns - self.shift_ns, host: self }
    }
}

impl RunClock {
    /// Returns the time since the run's beginning, or zero before the beginning.
    pub fn now(self) -> Instant {
        self.at(monotonic())
    }

    /// Returns the run time at which the kernel stamped a datagram with `stamp_ns` of CLOCK_REALTIME. Returns
    /// the time now if there is no stamp.
    pub fn stamped(self, stamp_ns: Option<i64>) -> Instant {
        stamp_ns.map_or_else(|| self.now(), |stamp_ns| self.beside_wall().at(stamp_ns))
    }

    /// Reads both clocks now. The reading converts stamps of the last moments into run time.
    pub fn beside_wall(self) -> WallStamps {
        let (wall_ns, monotonic_ns) = read_both();
        self.beside(wall_ns, monotonic_ns)
    }

    /// Makes the reading from the times of both clocks.
    const fn beside(self, wall_ns: i64, monotonic_ns: i64) -> WallStamps {
        let shift_ns = wall_ns - monotonic_ns;
        // Both clocks are slewed alike (adjtimex(2)). Unless the wall clock is stepped, their difference
        // stays the same, and a stamp is right however long its packet has waited.
        let is_stepped = (shift_ns - self.host.shift_ns).abs() > STEP_NS;
        let begun_ns = self.host.anchored_ns + self.host.shift_ns;
        let recent_ns = wall_ns - OLDEST_STAMP_NS;
        let oldest_ns = if is_stepped || begun_ns > recent_ns { recent_ns } else { begun_ns };
        WallStamps { epoch_ns: self.epoch_ns + shift_ns, latest_ns: wall_ns, oldest_ns }
    }

    /// Sleeps until `deadline`, or for `max` if that is shorter.
    ///
    /// The thread spins for the last 60 us before the deadline, because a sleep ends late by about that time
    /// (docs/models/live.md).
    pub fn sleep_until(self, deadline: Instant, max: Duration) {
        let now = monotonic();
        let due = self.epoch_ns.saturating_add(i64::try_from(deadline.as_nanos()).unwrap_or(i64::MAX));
        let limit = now.saturating_add(i64::try_from(max.as_nanos()).unwrap_or(i64::MAX));
        let spins = due <= limit;
        let until = if spins { due - SPIN_NS } else { limit };
        if until > now {
            let request = Timespec { tv_sec: until.div_euclid(SECOND), tv_nsec: until.rem_euclid(SECOND) };
            // A signal may end the sleep early. The caller reads the clock again in any case.
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

/// Reads CLOCK_REALTIME and CLOCK_MONOTONIC at one moment, ns.
fn read_both() -> (i64, i64) {
    // The thread may be interrupted between two readings. So it reads several times and takes the narrowest
    // reading.
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

/// Reads CLOCK_MONOTONIC, ns.
pub fn monotonic() -> i64 {
    read(ClockId::Monotonic)
}

/// Reads CLOCK_REALTIME, ns since 1970.
pub fn wall() -> i64 {
    read(ClockId::Realtime)
}

fn read(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec.saturating_mul(SECOND).saturating_add(now.tv_nsec)
}

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
