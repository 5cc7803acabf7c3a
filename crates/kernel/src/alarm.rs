//! The alarm, which wakes the pacer before the deadline that it sleeps to.
//!
//! The deadlines of a clock are known when the pacer goes to sleep. The deadlines of a connection are not: a
//! packet that arrives in another thread may bring the next deadline forward. The thread that handles the
//! packet then rings the alarm.
//!
//! ```text
//!  pacer:     take what came forward ─► serve who is due ─► sleep_until(the nearest deadline) ─┐
//!               ▲                                               ▲ woken, or on time            │
//!               └───────────────────────────────────────────────┼──────────────────────────────┘
//!  receiver:  handle a datagram ─► bring_forward(end, deadline) ─► rings if it is nearer
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration as StdDuration;

use talkpath_units::wheel::Key;
use talkpath_units::{Duration, Instant};

use crate::clock::{RunClock, SPIN_NS};
use crate::rest::{REST_NS, Rest};

/// The alarm of one pacer.
#[derive(Debug, Default)]
pub struct Alarm {
    /// The deadline that the pacer sleeps to, or last slept to, ns since the run's beginning.
    until: AtomicU64,
    /// The ends whose deadline came forward since the pacer last took them, with the new deadlines.
    forward: Mutex<Vec<(Key, Instant)>>,
    bell: Condvar,
}

impl Alarm {
    /// Tells the pacer that the next deadline of the end `key` is now `deadline`. The pacer knew a later one.
    pub(crate) fn bring_forward(&self, key: Key, deadline: Instant) {
        // The pacer holds the lock from its look until it sleeps. So a pacer that looks after this push finds
        // the entry, and a pacer that looked before it already sleeps and hears the bell.
        self.forward().push((key, deadline));
        if deadline.as_nanos() < self.until.load(Ordering::SeqCst) {
            self.bell.notify_one();
        }
    }

    /// Moves the deadlines that came forward into `into`, which is empty.
    pub fn take(&self, into: &mut Vec<(Key, Instant)>) {
        core::mem::swap(&mut *self.forward(), into);
    }

    /// Sleeps until `deadline`, for `max`, or until the bell rings, whichever comes first. It does not sleep
    /// if a deadline came forward that was not taken. The sleep is as precise as [`RunClock::sleep_until`],
    /// unless the thread owes a rest or deadlines are a crowd ([`Rest`]). Then it ends up to 0.2 ms late.
    pub fn sleep_until(&self, clock: RunClock, deadline: Instant, max: Duration, rest: &mut Rest) {
        self.until.store(deadline.as_nanos(), Ordering::SeqCst);
        let left = deadline.since(clock.now());
        let (is_near, is_rest) = (left <= max, rest.is_due());
        let is_crowded = rest.is_crowded();
        let is_slept = is_rest || is_crowded;
        let least_ns = if is_crowded { CROWD_NS } else { REST_NS }.unsigned_abs();
        let nap = match (is_near, is_slept) {
            (true, true) => left.as_nanos().max(least_ns),
            (true, false) => left.as_nanos().saturating_sub(SPIN_NS.unsigned_abs()),
            (false, _) => max.as_nanos(),
        };
        let forward = self.forward();
        if !forward.is_empty() {
            // A thread that always has work rests too.
            drop(forward);
            if is_rest {
                rest.take();
            }
            return;
        }
        if nap > 0 {
            // The wait uses CLOCK_MONOTONIC and the timer slack of the thread (futex(2), prctl(2)).
            let waited = rest.during(|| self.bell.wait_timeout(forward, StdDuration::from_nanos(nap)));
            let is_woken = !waited.unwrap_or_else(PoisonError::into_inner).0.is_empty();
            if is_woken || is_slept {
                return;
            }
        } else {
            // The lock is released, so that a thread that brings a deadline forward does not wait for the
            // spin.
            drop(forward);
        }
        // The thread spins for the rest of the time. If the wait ended early for no reason, more time is left
        // than a spin takes, and the caller calls again.
        if is_near && deadline.since(clock.now()).as_nanos() <= SPIN_NS.unsigned_abs() {
            clock.sleep_until(deadline, max);
        }
    }

    fn forward(&self) -> MutexGuard<'_, Vec<(Key, Instant)>> {
        self.forward.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shortest sleep in a crowd of deadlines, so that one wake-up serves several of them. Chosen: with this
/// sleep, 512 and 1,000 calls take as much of a processor as in iperf3 (docs/reference/performance.md).
const CROWD_NS: i64 = 150_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::HostClock;

    #[test]
    fn a_sleep_ends_at_its_deadline_or_when_one_comes_before_it() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let alarm = Alarm::default();
        let rest = &mut Rest::new();
        alarm.sleep_until(clock, Instant::from_millis(3), Duration::from_secs(1), rest);
        assert!(clock.now() >= Instant::from_millis(3));
        let long = Instant::from_secs(60);
        alarm.sleep_until(clock, long, Duration::from_millis(1), rest);
        assert!(clock.now() < long, "the limit ends the sleep");
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                alarm.sleep_until(clock, long, Duration::from_secs(60), &mut Rest::new());
            });
            while alarm.until.load(Ordering::SeqCst) != long.as_nanos() {
                std::thread::yield_now();
            }
            // It sleeps by now, and a ring has to wake it.
            std::thread::sleep(StdDuration::from_millis(20));
            assert!(!sleeper.is_finished());
            alarm.bring_forward(Key(0), Instant::from_secs(59));
        });
        assert!(clock.now() < long, "an earlier deadline ends the sleep");
    }

    #[test]
    fn what_came_forward_before_the_sleep_is_not_lost() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let alarm = Alarm::default();
        let rest = &mut Rest::new();
        let mut came = Vec::new();
        alarm.bring_forward(Key(7), Instant::from_secs(50));
        alarm.sleep_until(clock, Instant::from_secs(60), Duration::from_secs(60), rest);
        assert!(clock.now() < Instant::from_secs(50));
        alarm.take(&mut came);
        assert_eq!(came, [(Key(7), Instant::from_secs(50))]);
        came.clear();
        alarm.take(&mut came);
        assert!(came.is_empty(), "once");
    }

    #[test]
    fn a_thread_that_owes_rest_sleeps_instead_of_spinning() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let (alarm, mut rest) = (Alarm::default(), Rest::new());
        while !rest.is_due() {}
        let before = clock.now();
        alarm.sleep_until(clock, before, Duration::from_secs(1), &mut rest);
        assert!(clock.now().since(before).as_nanos() >= REST_NS.unsigned_abs());
        // A thread that lost its processor meanwhile owes more, and sleeps again.
        let is_rested = (0..100).any(|_| {
            let is_due = rest.is_due();
            alarm.sleep_until(clock, clock.now(), Duration::from_secs(1), &mut rest);
            !is_due
        });
        assert!(is_rested);
    }

    #[test]
    fn in_a_crowd_of_deadlines_a_near_one_waits_for_those_after_it() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let (alarm, mut rest) = (Alarm::default(), Rest::new());
        rest.count_deadlines(1_000);
        let before = clock.now();
        alarm.sleep_until(clock, before, Duration::from_secs(1), &mut rest);
        assert!(clock.now().since(before).as_nanos() >= CROWD_NS.unsigned_abs());
    }

    #[test]
    fn a_thread_that_may_not_spin_sleeps_to_each_deadline_however_near() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let (alarm, mut rest) = (Alarm::default(), Rest::without_spinning());
        for _ in 0..3 {
            let before = clock.now();
            alarm.sleep_until(clock, before, Duration::from_secs(1), &mut rest);
            assert!(clock.now().since(before).as_nanos() >= REST_NS.unsigned_abs());
        }
    }

    #[test]
    fn who_brings_a_deadline_forward_does_not_wait_for_the_spin() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let (alarm, mut rest) = (Alarm::default(), Rest::new());
        std::thread::scope(|scope| {
            let spinner = scope.spawn(|| {
                let until = clock.now() + Duration::from_millis(40);
                while clock.now() < until {
                    let near = clock.now() + Duration::from_micros(50);
                    alarm.sleep_until(clock, near, Duration::from_secs(1), &mut rest);
                }
            });
            let (mut free, mut held) = (0, 0);
            while !spinner.is_finished() {
                match alarm.forward.try_lock() {
                    Ok(_) => free += 1,
                    Err(_) => held += 1,
                }
                std::thread::sleep(StdDuration::from_micros(10));
            }
            assert!(free > 4 * held, "free {free} times, held {held} times");
        });
    }
}
