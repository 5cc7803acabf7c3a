//! What wakes the pacer before the deadline that it sleeps to.
//!
//! A clock's deadlines are known when the pacer goes to sleep. A connection's are not: what arrives in
//! another thread may bring the next packet's time forward. Whoever handles it then says so here.
//!
//! ```text
//!  pacer:     listen ─► check every end ───► sleep_until(the nearest deadline) ─┐
//!               ▲                                   ▲ woken, or on time         │
//!               └───────────────────────────────────┼───────────────────────────┘
//!  receiver:  handle a datagram ─► bring_forward(the end's deadline) ─► rings if it is nearer
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration as StdDuration;

use talkpath_units::{Duration, Instant};

use crate::clock::RunClock;

/// The alarm of one pacer.
#[derive(Debug, Default)]
pub struct Alarm {
    /// The deadline that the pacer sleeps to, ns into the run; the maximum while the pacer goes through its
    /// ends, since a deadline of an end that it has passed may come forward.
    until: AtomicU64,
    has_rung: Mutex<bool>,
    bell: Condvar,
}

impl Alarm {
    /// The pacer is about to go through its ends: a deadline that comes forward from now on wakes it.
    pub fn listen(&self) {
        self.until.store(u64::MAX, Ordering::SeqCst);
    }

    /// An end's next deadline is `deadline` now.
    pub(crate) fn bring_forward(&self, deadline: Instant) {
        if deadline.as_nanos() < self.until.load(Ordering::SeqCst) {
            *self.has_rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.bell.notify_one();
        }
    }

    /// Sleeps until `deadline`, for `max`, or until it rings, whatever comes first. If it `spins`, it is as
    /// precise as [`RunClock::sleep_until`]; if not, the kernel wakes it some 60 us late.
    pub fn sleep_until(&self, clock: RunClock, deadline: Instant, max: Duration, spins: bool) {
        self.until.store(deadline.as_nanos(), Ordering::SeqCst);
        let left = deadline.since(clock.now());
        let spin = if spins { SPIN_NS } else { 0 };
        let nap = if left <= max { left.as_nanos().saturating_sub(spin) } else { max.as_nanos() };
        let mut has_rung = self.has_rung.lock().unwrap_or_else(PoisonError::into_inner);
        if !*has_rung && nap > 0 {
            // The wait's clock is CLOCK_MONOTONIC, and its slack the thread's (futex(2), prctl(2)).
            let waited = self.bell.wait_timeout(has_rung, StdDuration::from_nanos(nap));
            has_rung = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let is_woken = std::mem::take(&mut *has_rung);
        drop(has_rung);
        if spins && !is_woken && left <= max {
            // No sleep: what is left is spun.
            clock.sleep_until(deadline, max);
        }
    }
}

/// How long before a deadline the sleep ends, as in `clock.rs`.
const SPIN_NS: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::HostClock;

    #[test]
    fn a_sleep_ends_at_its_deadline_or_when_one_comes_before_it() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let alarm = Alarm::default();
        alarm.listen();
        alarm.sleep_until(clock, Instant::from_millis(3), Duration::from_secs(1), true);
        assert!(clock.now() >= Instant::from_millis(3));
        let long = Instant::from_secs(60);
        alarm.sleep_until(clock, long, Duration::from_millis(1), true);
        assert!(clock.now() < long, "the limit ends the sleep");
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                alarm.listen();
                alarm.sleep_until(clock, long, Duration::from_secs(60), true);
            });
            while !sleeper.is_finished() {
                alarm.bring_forward(Instant::from_secs(59));
                std::thread::yield_now();
            }
        });
        assert!(clock.now() < long, "an earlier deadline ends the sleep");
    }

    #[test]
    fn what_comes_forward_while_the_ends_are_looked_at_is_not_lost() {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let alarm = Alarm::default();
        alarm.listen();
        alarm.bring_forward(Instant::from_secs(50));
        alarm.sleep_until(clock, Instant::from_secs(60), Duration::from_secs(60), true);
        assert!(clock.now() < Instant::from_secs(50));
        alarm.sleep_until(clock, Instant::from_millis(1), Duration::from_secs(60), true);
        alarm.bring_forward(Instant::from_secs(2));
        assert!(!*alarm.has_rung.lock().unwrap(), "later than the deadline slept to");
    }
}
