//! The rests of a real-time thread, which leave processor time to ordinary threads.
//!
//! The kernel stops real-time threads that leave too little time to ordinary threads. By default real-time
//! threads have 950 ms of each second, and then nothing for 50 ms (sched(7), sched_rt_runtime_us). Since
//! Linux 6.12 the fair server gives these 50 ms to ordinary threads that wait (`fair_server` in
//! kernel/sched/deadline.c). A thread that spins before its deadlines reaches this limit when the deadlines
//! are closer together than the time that it spins. So the thread rests by itself. It rests often, and each
//! rest is so short that nothing becomes later than a wake-up makes it.
//!
//! ```text
//!  awake  ████████████ ████████████ ██████         awake: work and spinning
//!  rest               ▪            ▪      ▪▪▪▪▪▪   rest: sleep, wanted or imposed
//!  owed  ／／／／／／＼／／／／／／＼／／／＼＿＿＿   grows awake, falls asleep; above a bound, sleep
//! ```
//!
//! A pacer stops spinning long before it reaches the kernel's limit. If deadlines are a crowd, one sleep that
//! ends a little late costs less than a spin to each deadline ([`Rest::is_crowded`]).

use rustix::time::Timespec;

use crate::clock::{SPIN_NS, monotonic};

/// The account of one thread: the rest that it owes other threads, in ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    /// The time for which `owed_ns` was computed. The thread has been awake since.
    settled_ns: i64,
    /// The rest that the thread owes, ns. Negative after a long sleep.
    owed_ns: i64,
    /// True if the thread may spin.
    spins: bool,
    /// The time that spins before the latest deadlines would have taken, ns. It grows with each deadline, and
    /// falls by one part in [`PARTS_PER_SPIN`] of the time.
    wanted_ns: i64,
    /// The time for which `wanted_ns` was computed.
    wanted_at_ns: i64,
}

impl Rest {
    /// Makes the account of a thread that owes no rest yet.
    pub fn new() -> Self {
        Self::at(monotonic(), 0)
    }

    const fn at(now_ns: i64, owed_ns: i64) -> Self {
        Self { settled_ns: now_ns, owed_ns, spins: true, wanted_ns: 0, wanted_at_ns: now_ns }
    }

    /// Makes the account of a thread that never spins, because clients decide how much work it has. It always
    /// sleeps, and wakes some 60 us after its deadlines.
    pub fn without_spinning() -> Self {
        Self { spins: false, ..Self::new() }
    }

    /// Returns true if the thread has to sleep now instead of spinning or working on.
    pub fn is_due(&self) -> bool {
        !self.spins || self.owed_at(monotonic()) > REST_NS
    }

    /// Takes note of `count` deadlines that have come, with or without a spin.
    pub fn count_deadlines(&mut self, count: usize) {
        self.count_deadlines_at(monotonic(), count);
    }

    /// Returns true if deadlines are so close together that the thread would spin for more than a quarter of
    /// its time. It shall sleep then, because a sleep that ends late serves several deadlines at once.
    pub fn is_crowded(&self) -> bool {
        self.is_crowded_at(monotonic())
    }

    fn count_deadlines_at(&mut self, now_ns: i64, count: usize) {
        let spins_ns = SPIN_NS.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
        self.wanted_ns = self.wanted_at(now_ns).saturating_add(spins_ns).min(MAX_WANTED_NS);
        self.wanted_at_ns = now_ns;
    }

    const fn is_crowded_at(&self, now_ns: i64) -> bool {
        self.wanted_at(now_ns) > MAX_WANTED_NS / 2
    }

    const fn wanted_at(&self, now_ns: i64) -> i64 {
        let left = self.wanted_ns - (now_ns - self.wanted_at_ns) / PARTS_PER_SPIN;
        if left > 0 { left } else { 0 }
    }

    /// Runs `sleep` and subtracts its time from the rest that the thread owes.
    pub fn during<T>(&mut self, sleep: impl FnOnce() -> T) -> T {
        let before = monotonic();
        let result = sleep();
        self.settle(before, monotonic());
        result
    }

    /// Sleeps for as long as a rest takes.
    pub fn take(&mut self) {
        // A signal may end the sleep early. The next rest is then due sooner.
        let _ = self.during(|| {
            rustix::thread::clock_nanosleep_relative(
                rustix::time::ClockId::Monotonic,
                &Timespec { tv_sec: 0, tv_nsec: REST_NS },
            )
        });
    }

    const fn owed_at(&self, now_ns: i64) -> i64 {
        self.owed_ns + (now_ns - self.settled_ns) / AWAKE_PER_REST
    }

    fn settle(&mut self, slept_ns: i64, woken_ns: i64) {
        self.owed_ns = (self.owed_at(slept_ns) - (woken_ns - slept_ns)).max(-MAX_CREDIT_NS);
        self.settled_ns = woken_ns;
    }
}

impl Default for Rest {
    fn default() -> Self {
        Self::new()
    }
}

/// A thread is awake for at most this many times as long as it rests: 11 of 12 parts, 917 ms of a second
/// (chosen: below the kernel's 950 ms).
const AWAKE_PER_REST: i64 = 11;
/// A thread spins for at most one part of its time in this many (chosen: it spins to the deadlines of 64
/// calls, which take 19 % of its time, and not to those of 128).
const PARTS_PER_SPIN: i64 = 4;
/// The most spinning time that is counted as saved; from half of that on nothing is spun (chosen: a burst
/// of 80 deadlines is spun to, and 20 ms after a crowd a thread spins again).
const MAX_WANTED_NS: i64 = 10_000_000;
/// How long one rest takes, and what may be owed before it (chosen: half of what a wake-up takes on a
/// virtual machine, so that a rest makes nothing later than a sleep would).
pub const REST_NS: i64 = 30_000;
/// A sleep saves up to this much: 220 ms awake without a rest. A second that begins with them still has
/// 65 ms of rest.
const MAX_CREDIT_NS: i64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Time asleep in each second of a thread that sleeps only when it has to, each time for `rest_ns`, from
    /// an account with `saved_ns` in it.
    fn asleep(rest_ns: i64, saved_ns: i64) -> Vec<i64> {
        let mut rest = Rest::at(0, -saved_ns);
        let (mut now, mut asleep) = (0, vec![0; 3]);
        while now < 3 * SECOND {
            if rest.owed_at(now) > REST_NS {
                asleep[(now / SECOND) as usize] += rest_ns;
                rest.settle(now, now + rest_ns);
                now += rest_ns;
            } else {
                now += 1_000;
            }
        }
        asleep
    }

    #[test]
    fn a_thread_that_always_has_work_leaves_each_second_more_than_the_kernel_would_take() {
        // As short as asked, and as long as a sleeping virtual processor makes it.
        for rest_ns in [REST_NS, 3 * REST_NS] {
            for saved_ns in [0, MAX_CREDIT_NS] {
                let asleep = asleep(rest_ns, saved_ns);
                assert!(asleep.iter().all(|&ns| ns > 60_000_000), "{rest_ns}, {saved_ns}: {asleep:?}");
                assert!(asleep[1] < 90_000_000, "and not much more: {asleep:?}");
            }
        }
    }

    #[test]
    fn a_long_sleep_saves_no_more_than_its_bound() {
        let mut rest = Rest::at(0, REST_NS);
        rest.settle(0, 3600 * SECOND);
        assert_eq!(rest.owed_at(3600 * SECOND), -MAX_CREDIT_NS);
    }

    /// Before how many of 10,000 deadlines, each `ns_between` after the one before, a thread spins.
    fn spun_to(ns_between: i64) -> usize {
        let mut rest = Rest::at(0, 0);
        let is_spun_to = |n: &i64| {
            rest.count_deadlines_at(n * ns_between, 1);
            !rest.is_crowded_at(n * ns_between)
        };
        (0..10_000).filter(is_spun_to).count()
    }

    #[test]
    fn who_would_spin_for_more_than_a_quarter_of_its_time_does_not_spin() {
        assert_eq!(spun_to(20_000_000 / 64), 10_000);
        // The first of a crowd are spun to.
        for ns_between in [20_000_000 / 128, 20_000] {
            assert!((83..300).contains(&spun_to(ns_between)), "{}", spun_to(ns_between));
        }
    }

    #[test]
    fn a_thread_spins_again_soon_after_a_crowd_of_deadlines() {
        let mut rest = Rest::at(0, 0);
        rest.count_deadlines_at(0, 1_000_000);
        assert!(rest.is_crowded_at(19_000_000));
        assert!(!rest.is_crowded_at(20_000_000));
    }

    #[test]
    fn a_rest_is_slept() {
        let mut rest = Rest::new();
        rest.owed_ns = 2 * REST_NS;
        assert!(rest.is_due());
        let before = monotonic();
        rest.take();
        assert!(monotonic() - before >= REST_NS);
        assert!(rest.owed_ns <= REST_NS);
    }
}
