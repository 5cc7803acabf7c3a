//! A throttle keeps a real-time thread from using a processor all the time.
//!
//! The kernel suspends real-time threads that use too much processor time. By default they may run for 950 ms
//! of each second, and are suspended for the other 50 ms (sched(7), sched_rt_runtime_us). Since Linux 6.12,
//! the fair server gives these 50 ms to ordinary threads that wait (`fair_server` in
//! kernel/sched/deadline.c). A packet that is due during such a suspension is up to 50 ms late. So a thread
//! with a [`Throttle`] sleeps often and briefly by itself, and does not reach the kernel's limit.
//!
//! - *spin*: a loop that reads the clock in the last 60 us before a deadline ([`SPIN_NS`]). A spin ends more
//!   precisely than a sleep, but it takes processor time.
//! - *sleep debt*: the time that the thread has to sleep, because it was awake.
//! - *spin demand*: the processor time that spins to the recent deadlines would take.
//!
//! Sleep debt and spin demand are leaky buckets:
//!
//! | bucket | fills by | drains by | above its limit, the thread |
//! | --- | --- | --- | --- |
//! | sleep debt | 1 ns in 11 ns awake | 1 ns in 1 ns asleep | sleeps at once ([`Throttle::must_sleep`]) |
//! | spin demand | 60 us at each deadline | 1 ns in 4 ns | does not spin ([`Throttle::is_crowded`]) |
//!
//! Example: 64 calls with a message every 20 ms have 3,200 deadlines in a second. Spins to all of them would
//! take 192 ms, which is less than a quarter of the time, so the thread spins. For 128 calls the spins would
//! take 384 ms, so the thread sleeps. A sleep that ends late then serves several deadlines at once.

use rustix::time::{ClockId, Timespec};

use crate::clock::{SPIN_NS, monotonic};

/// The duration of a short sleep, ns. We chose 30 us, which is half of the time that a wake-up takes on a
/// virtual machine. A packet is then no later after a short sleep than after any other sleep.
pub const SHORT_SLEEP_NS: i64 = 30_000;
/// The sleep debt above which the thread has to sleep, ns. One short sleep pays it.
const MAX_SLEEP_DEBT_NS: i64 = SHORT_SLEEP_NS;
/// The time awake that adds 1 ns of sleep debt, ns. We chose 11, so that the thread is awake for at most 11
/// of 12 parts of the time. These are 917 ms of a second, which is less than the kernel's 950 ms.
const AWAKE_NS_PER_DEBT_NS: i64 = 11;
/// The sleep that a thread can have in advance, ns. With these 20 ms the thread may be awake for 220 ms
/// without a sleep. It still sleeps for 65 ms of a second that begins with these 220 ms.
const MAX_SLEEP_CREDIT_NS: i64 = 20_000_000;

/// The time in which the spin demand drains by 1 ns, ns. So a thread spins for at most a quarter of the time.
const NS_PER_SPIN_DRAIN_NS: i64 = 4;
/// The spin demand above which deadlines are crowded, ns. We chose 5 ms, so that the thread spins to each
/// deadline of a burst of 80.
const CROWDED_SPIN_DEMAND_NS: i64 = 5_000_000;
/// The largest spin demand, ns. It drains to the limit of a crowd within 20 ms, so the thread spins again 20
/// ms after a crowd of any size.
const MAX_SPIN_DEMAND_NS: i64 = 2 * CROWDED_SPIN_DEMAND_NS;

/// The throttle of one thread. All times are ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    may_spin: bool,
    sleep_debt: SleepDebt,
    spin_demand: SpinDemand,
}

impl Throttle {
    /// Makes the throttle of a thread that owes no sleep yet.
    pub fn new() -> Self {
        let now_ns = monotonic();
        Self { may_spin: true, sleep_debt: SleepDebt::new(now_ns), spin_demand: SpinDemand::new(now_ns) }
    }

    /// Makes the throttle of a thread that never spins, because its clients decide how many deadlines it has.
    /// The thread wakes up about 60 us after each deadline.
    pub fn without_spinning() -> Self {
        Self { may_spin: false, ..Self::new() }
    }

    /// Returns true if the thread has to sleep now, even if it has work to do.
    pub fn must_sleep(&self) -> bool {
        !self.may_spin || self.sleep_debt.at(monotonic()) > MAX_SLEEP_DEBT_NS
    }

    /// Returns true if the recent deadlines are so many that the thread should not spin to the next one.
    pub fn is_crowded(&self) -> bool {
        self.spin_demand.is_crowded(monotonic())
    }

    /// Counts `count` deadlines that have passed, whether or not the thread has spun to them.
    pub fn count_deadlines(&mut self, count: usize) {
        self.spin_demand.add(count, monotonic());
    }

    /// Sleeps for [`SHORT_SLEEP_NS`].
    pub fn sleep_briefly(&mut self) {
        let request = Timespec { tv_sec: 0, tv_nsec: SHORT_SLEEP_NS };
        // A signal may end the sleep early. Then the debt is not paid in full, and the next sleep follows
        // sooner.
        let _ = self.sleep_with(|| rustix::thread::clock_nanosleep_relative(ClockId::Monotonic, &request));
    }

    /// Calls `sleep`, and subtracts the time that it takes from the sleep debt.
    pub fn sleep_with<T>(&mut self, sleep: impl FnOnce() -> T) -> T {
        let begin_ns = monotonic();
        let result = sleep();
        self.sleep_debt.pay(begin_ns, monotonic());
        result
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new()
    }
}

/// The sleep debt of a thread.
#[derive(Clone, Copy, Debug)]
struct SleepDebt {
    /// The debt at `updated_ns`. It is negative after a long sleep.
    debt_ns: i64,
    /// The end of the last sleep. The thread has been awake since.
    updated_ns: i64,
}

impl SleepDebt {
    const fn new(now_ns: i64) -> Self {
        Self { debt_ns: 0, updated_ns: now_ns }
    }

    /// Returns the debt at `now_ns`, if the thread has been awake since the last sleep.
    const fn at(&self, now_ns: i64) -> i64 {
        self.debt_ns + (now_ns - self.updated_ns) / AWAKE_NS_PER_DEBT_NS
    }

    /// Subtracts a sleep from `begin_ns` to `end_ns`.
    fn pay(&mut self, begin_ns: i64, end_ns: i64) {
        let asleep_ns = end_ns - begin_ns;
        self.debt_ns = (self.at(begin_ns) - asleep_ns).max(-MAX_SLEEP_CREDIT_NS);
        self.updated_ns = end_ns;
    }
}

/// The spin demand of a thread.
#[derive(Clone, Copy, Debug)]
struct SpinDemand {
    /// The demand at `updated_ns`.
    demand_ns: i64,
    updated_ns: i64,
}

impl SpinDemand {
    const fn new(now_ns: i64) -> Self {
        Self { demand_ns: 0, updated_ns: now_ns }
    }

    const fn is_crowded(&self, now_ns: i64) -> bool {
        self.at(now_ns) > CROWDED_SPIN_DEMAND_NS
    }

    const fn at(&self, now_ns: i64) -> i64 {
        let drained_ns = (now_ns - self.updated_ns) / NS_PER_SPIN_DRAIN_NS;
        let demand_ns = self.demand_ns - drained_ns;
        if demand_ns > 0 { demand_ns } else { 0 }
    }

    /// Adds a spin for each of `deadlines`.
    fn add(&mut self, deadlines: usize, now_ns: i64) {
        let spins_ns = SPIN_NS.saturating_mul(i64::try_from(deadlines).unwrap_or(i64::MAX));
        self.demand_ns = self.at(now_ns).saturating_add(spins_ns).min(MAX_SPIN_DEMAND_NS);
        self.updated_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    /// Returns the time asleep in each of three seconds, for a thread that sleeps only when it has to. Each
    /// sleep takes `sleep_ns`. The thread begins with `credit_ns` of sleep in advance.
    fn asleep_in_each_second(sleep_ns: i64, credit_ns: i64) -> Vec<i64> {
        let mut sleep_debt = SleepDebt { debt_ns: -credit_ns, updated_ns: 0 };
        let (mut now_ns, mut asleep_ns) = (0, vec![0; 3]);
        while now_ns < 3 * SECOND_NS {
            if sleep_debt.at(now_ns) > MAX_SLEEP_DEBT_NS {
                asleep_ns[(now_ns / SECOND_NS) as usize] += sleep_ns;
                sleep_debt.pay(now_ns, now_ns + sleep_ns);
                now_ns += sleep_ns;
            } else {
                now_ns += 1_000;
            }
        }
        asleep_ns
    }

    #[test]
    fn a_thread_that_always_has_work_sleeps_for_longer_than_the_kernel_would_suspend_it() {
        // A sleep is as long as requested, or longer on a virtual processor that has to be woken.
        for sleep_ns in [SHORT_SLEEP_NS, 3 * SHORT_SLEEP_NS] {
            for credit_ns in [0, MAX_SLEEP_CREDIT_NS] {
                let asleep_ns = asleep_in_each_second(sleep_ns, credit_ns);
                assert!(
                    asleep_ns.iter().all(|&ns| ns > 60_000_000),
                    "{sleep_ns}, {credit_ns}: {asleep_ns:?}"
                );
                assert!(asleep_ns[1] < 90_000_000, "not much longer: {asleep_ns:?}");
            }
        }
    }

    #[test]
    fn a_long_sleep_gives_no_more_than_the_largest_credit() {
        let mut sleep_debt = SleepDebt { debt_ns: SHORT_SLEEP_NS, updated_ns: 0 };
        sleep_debt.pay(0, 3600 * SECOND_NS);
        assert_eq!(sleep_debt.at(3600 * SECOND_NS), -MAX_SLEEP_CREDIT_NS);
    }

    /// Returns the number of 10,000 deadlines that a thread spins to, if they are `interval_ns` apart.
    fn spins(interval_ns: i64) -> usize {
        let mut spin_demand = SpinDemand::new(0);
        let mut spins = 0;
        for number in 0..10_000 {
            let now_ns = number * interval_ns;
            spin_demand.add(1, now_ns);
            spins += usize::from(!spin_demand.is_crowded(now_ns));
        }
        spins
    }

    #[test]
    fn a_thread_that_would_spin_for_more_than_a_quarter_of_the_time_does_not_spin() {
        assert_eq!(spins(20_000_000 / 64), 10_000);
        // A thread spins to the first deadlines of a crowd.
        for interval_ns in [20_000_000 / 128, 20_000] {
            assert!((83..300).contains(&spins(interval_ns)), "{}", spins(interval_ns));
        }
    }

    #[test]
    fn a_thread_spins_again_soon_after_a_crowd_of_deadlines() {
        let mut spin_demand = SpinDemand::new(0);
        spin_demand.add(1_000_000, 0);
        assert!(spin_demand.is_crowded(19_000_000));
        assert!(!spin_demand.is_crowded(20_000_000));
    }

    #[test]
    fn a_short_sleep_pays_a_part_of_the_debt() {
        let mut throttle = Throttle::new();
        throttle.sleep_debt.debt_ns = 2 * SHORT_SLEEP_NS;
        assert!(throttle.must_sleep());
        let before_ns = monotonic();
        throttle.sleep_briefly();
        assert!(monotonic() - before_ns >= SHORT_SLEEP_NS);
        assert!(throttle.sleep_debt.debt_ns <= SHORT_SLEEP_NS);
    }
}
