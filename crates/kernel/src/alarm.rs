//! The alarm of a pacer. It wakes the pacer if a deadline moves forward while the pacer sleeps.
//!
//! The pacer knows the deadlines of a constant bit rate in advance. It does not know those of a connection: a
//! packet that another thread receives may move the connection's next deadline forward. That thread then
//! rings the alarm, if the pacer sleeps beyond the new deadline.
//!
//! - *spin*: to read the clock in a loop until a deadline. A spin is more precise than a sleep, but takes
//!   processor time.
//! - *throttle*: the limit on the processor time of the pacer. It may forbid the spin, or ask for a sleep.
//! - *crowded*: there are so many deadlines that a spin to each would exceed the throttle.
//!
//! ```text
//!  pacer:     take the moved deadlines ─► serve the ends that are due ─► sleep until the next deadline ─┐
//!               ▲                                                         ▲ woken, or on time           │
//!               └─────────────────────────────────────────────────────────┼─────────────────────────────┘
//!  receiver:  handle a datagram ─► move_forward(end, deadline) ─► ring if the pacer sleeps beyond it
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration as StdDuration;

use talkpath_units::wheel::Key;
use talkpath_units::{Duration, Instant};

use crate::clock::{RunClock, SPIN_NS};
use crate::throttle::{SHORT_SLEEP_NS, Throttle};

/// The shortest sleep between crowded deadlines, ns, so that one wake-up serves several deadlines. We chose
/// 150 us: with this sleep, 512 and 1,000 calls take as much processor time as in iperf3
/// (docs/reference/performance.md).
const CROWDED_SLEEP_NS: u64 = 150_000;
/// The time before a deadline at which a precise sleep ends and the spin begins, ns.
const SPIN: u64 = SPIN_NS.unsigned_abs();

/// The alarm of one pacer.
#[derive(Debug, Default)]
pub struct Alarm {
    /// The deadline that the pacer sleeps to, or last slept to, ns since the run's beginning.
    sleeps_until: AtomicU64,
    /// The ends whose deadlines have moved forward since the pacer last took them, with the new deadlines.
    moved: Mutex<Vec<(Key, Instant)>>,
    bell: Condvar,
}

/// A plan to wait for a deadline: a sleep, and perhaps a spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WaitPlan {
    sleep_ns: u64,
    /// True if the pacer spins to the deadline after the sleep.
    spins: bool,
}

impl Alarm {
    /// Moves the next deadline of the end `key` forward to `deadline`. The pacer knew a later one.
    pub(crate) fn move_forward(&self, key: Key, deadline: Instant) {
        // No ring is lost. The pacer first stores until when it will sleep. Then it holds the lock from its
        // check of the list until it sleeps. So the pacer either finds this entry, or it already sleeps and
        // hears the bell.
        self.lock_moved().push((key, deadline));
        if deadline.as_nanos() < self.sleeps_until.load(Ordering::SeqCst) {
            self.bell.notify_one();
        }
    }

    /// Swaps the deadlines that have moved forward with `taken`, which is empty.
    pub fn take_moved_deadlines(&self, taken: &mut Vec<(Key, Instant)>) {
        core::mem::swap(&mut *self.lock_moved(), taken);
    }

    /// Sleeps until `deadline`, for `max`, or until the bell rings, whichever comes first. Returns at once if
    /// a deadline has moved forward and was not yet taken. The sleep is as precise as
    /// [`RunClock::sleep_until`], but up to 0.2 ms late if `throttle` forbids the spin. It may also end
    /// early. The caller then calls again.
    pub fn sleep_until(&self, clock: RunClock, deadline: Instant, max: Duration, throttle: &mut Throttle) {
        self.sleeps_until.store(deadline.as_nanos(), Ordering::SeqCst);
        let left = deadline.since(clock.now());
        let must_sleep = throttle.must_sleep();
        let is_crowded = throttle.is_crowded();
        let plan = plan_wait(left, max, must_sleep, is_crowded);
        let moved = self.lock_moved();
        if !moved.is_empty() {
            // The throttle also limits a pacer that finds a moved deadline at each call and so never sleeps.
            drop(moved);
            if must_sleep {
                throttle.sleep_briefly();
            }
            return;
        }
        if plan.sleep_ns == 0 {
            // The lock is released before the spin, because another thread may have to move a deadline
            // forward.
            drop(moved);
        } else if self.sleep_until_bell(moved, plan.sleep_ns, throttle) {
            return;
        }
        // The sleep may end early for no reason. If more time is left than a spin takes, the caller calls
        // again.
        if plan.spins && deadline.since(clock.now()).as_nanos() <= SPIN {
            clock.sleep_until(deadline, max);
        }
    }

    /// Sleeps until the bell rings, or for `sleep_ns`. Returns true if a deadline has moved forward. The
    /// sleep uses CLOCK_MONOTONIC and the timer slack of the thread (futex(2), prctl(2)).
    fn sleep_until_bell(
        &self,
        moved: MutexGuard<'_, Vec<(Key, Instant)>>,
        sleep_ns: u64,
        throttle: &mut Throttle,
    ) -> bool {
        let timeout = StdDuration::from_nanos(sleep_ns);
        let woken = throttle.sleep_with(|| self.bell.wait_timeout(moved, timeout));
        let (moved, _) = woken.unwrap_or_else(PoisonError::into_inner);
        !moved.is_empty()
    }

    fn lock_moved(&self) -> MutexGuard<'_, Vec<(Key, Instant)>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Plans the wait for a deadline that comes in `left`. If the deadline is more than `max` away, the sleep is
/// `max`. Otherwise it ends at the deadline, or later if the throttle asks for a longer sleep.
fn plan_wait(left: Duration, max: Duration, must_sleep: bool, is_crowded: bool) -> WaitPlan {
    let (left_ns, max_ns) = (left.as_nanos(), max.as_nanos());
    if left > max {
        WaitPlan { sleep_ns: max_ns, spins: false }
    } else if is_crowded {
        WaitPlan { sleep_ns: left_ns.max(CROWDED_SLEEP_NS), spins: false }
    } else if must_sleep {
        WaitPlan { sleep_ns: left_ns.max(SHORT_SLEEP_NS.unsigned_abs()), spins: false }
    } else {
        WaitPlan { sleep_ns: left_ns.saturating_sub(SPIN), spins: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::HostClock;

    #[test]
    fn a_sleep_ends_at_its_deadline_or_when_one_comes_before_it() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let alarm = Alarm::default();
        let throttle = &mut Throttle::new();
        alarm.sleep_until(clock, Instant::from_millis(3), Duration::from_secs(1), throttle);
        assert!(clock.now() >= Instant::from_millis(3));
        let long = Instant::from_secs(60);
        alarm.sleep_until(clock, long, Duration::from_millis(1), throttle);
        assert!(clock.now() < long, "the limit ends the sleep");
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                alarm.sleep_until(clock, long, Duration::from_secs(60), &mut Throttle::new());
            });
            while alarm.sleeps_until.load(Ordering::SeqCst) != long.as_nanos() {
                std::thread::yield_now();
            }
            // It sleeps by now, and a ring has to wake it.
            std::thread::sleep(StdDuration::from_millis(20));
            assert!(!sleeper.is_finished());
            alarm.move_forward(Key(0), Instant::from_secs(59));
        });
        assert!(clock.now() < long, "an earlier deadline ends the sleep");
    }

    #[test]
    fn a_deadline_that_moved_forward_before_the_sleep_ends_the_sleep() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let alarm = Alarm::default();
        let throttle = &mut Throttle::new();
        let mut taken = Vec::new();
        alarm.move_forward(Key(7), Instant::from_secs(50));
        alarm.sleep_until(clock, Instant::from_secs(60), Duration::from_secs(60), throttle);
        assert!(clock.now() < Instant::from_secs(50));
        alarm.take_moved_deadlines(&mut taken);
        assert_eq!(taken, [(Key(7), Instant::from_secs(50))]);
        taken.clear();
        alarm.take_moved_deadlines(&mut taken);
        assert!(taken.is_empty(), "once");
    }

    #[test]
    fn a_thread_that_must_sleep_does_not_spin() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let (alarm, mut throttle) = (Alarm::default(), Throttle::new());
        while !throttle.must_sleep() {}
        let before = clock.now();
        alarm.sleep_until(clock, before, Duration::from_secs(1), &mut throttle);
        assert!(clock.now().since(before).as_nanos() >= SHORT_SLEEP_NS.unsigned_abs());
        // A thread that lost its processor meanwhile has a larger sleep debt, and sleeps again.
        let has_slept_enough = (0..100).any(|_| {
            let must_sleep = throttle.must_sleep();
            alarm.sleep_until(clock, clock.now(), Duration::from_secs(1), &mut throttle);
            !must_sleep
        });
        assert!(has_slept_enough);
    }

    #[test]
    fn between_crowded_deadlines_one_sleep_serves_several() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let (alarm, mut throttle) = (Alarm::default(), Throttle::new());
        throttle.count_deadlines(1_000);
        let before = clock.now();
        alarm.sleep_until(clock, before, Duration::from_secs(1), &mut throttle);
        assert!(clock.now().since(before).as_nanos() >= CROWDED_SLEEP_NS);
    }

    #[test]
    fn a_thread_that_may_not_spin_sleeps_to_each_deadline_however_near() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let (alarm, mut throttle) = (Alarm::default(), Throttle::without_spinning());
        for _ in 0..3 {
            let before = clock.now();
            alarm.sleep_until(clock, before, Duration::from_secs(1), &mut throttle);
            assert!(clock.now().since(before).as_nanos() >= SHORT_SLEEP_NS.unsigned_abs());
        }
    }

    #[test]
    fn a_thread_that_moves_a_deadline_forward_does_not_wait_for_the_spin() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let (alarm, mut throttle) = (Alarm::default(), Throttle::new());
        std::thread::scope(|scope| {
            let spinner = scope.spawn(|| {
                let until = clock.now() + Duration::from_millis(40);
                while clock.now() < until {
                    let near = clock.now() + Duration::from_micros(50);
                    alarm.sleep_until(clock, near, Duration::from_secs(1), &mut throttle);
                }
            });
            let (mut free, mut held) = (0, 0);
            while !spinner.is_finished() {
                match alarm.moved.try_lock() {
                    Ok(_) => free += 1,
                    Err(_) => held += 1,
                }
                std::thread::sleep(StdDuration::from_micros(10));
            }
            assert!(free > 4 * held, "free {free} times, held {held} times");
        });
    }
}
