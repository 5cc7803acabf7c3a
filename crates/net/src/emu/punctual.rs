//! What lets the emulator's thread be on time, where the machine allows it: priority, timer slack, a processor of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::sys;
use crate::sys::become_real_time;

/// Asks for all of it for the calling thread; returns why it is not real-time, where it is not.
pub(super) fn be_punctual() -> (Option<String>, Pinned) {
    // 1 ns: the default of 50 us would let the kernel wake us that much later (prctl(2), PR_SET_TIMERSLACK).
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    let result = sys::become_emulator().or_else(|_| become_real_time());
    (result.err().map(|error| error.to_string()), Pinned::new())
}

/// A thread that stays where its caches are, where there are processors enough for the rest to go round it: on the last one,
/// and beside other emulators of this process one further down for each, in the upper half.
pub(super) struct Pinned;

impl Pinned {
    fn new() -> Self {
        let before = RUNNING.fetch_add(1, Ordering::Relaxed);
        if let Ok(allowed) = rustix::thread::sched_getaffinity(None) {
            let count = allowed.count();
            let upper_half = (count / 2).max(1);
            let mut from_the_last =
                (0..rustix::thread::CpuSet::MAX_CPU).rev().filter(|&cpu| allowed.is_set(cpu));
            let place = from_the_last.nth(before % upper_half as usize);
            if let Some(cpu) = place.filter(|_| count >= LEAST_CPUS_TO_PIN) {
                let mut only = rustix::thread::CpuSet::new();
                only.set(cpu);
                // Where it is not allowed, the thread runs where the scheduler puts it: lateness tells.
                let _ = rustix::thread::sched_setaffinity(None, &only);
            }
        }
        Self
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long before a departure a sleep ends: as long as sleeps were seen to wake up late, where no other emulator of this
/// process would spin beside this one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spin {
    ns: u64,
}

impl Spin {
    pub(super) const fn new() -> Self {
        Self { ns: LEAST_SPIN_NS }
    }

    pub(super) fn ns(self) -> u64 {
        if RUNNING.load(Ordering::Relaxed) > 1 { LEAST_SPIN_NS } else { self.ns }
    }

    /// A sleep has ended so much too late: what is later than all before is prepared for at once, and forgotten slowly.
    pub(super) fn on_woken(&mut self, late_ns: u64) {
        let forgotten = self.ns - (self.ns - LEAST_SPIN_NS) / FORGETTING;
        self.ns = forgotten.max(late_ns + late_ns / 4).min(MOST_SPIN_NS);
    }
}

/// Emulators that run in this process.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// With fewer, a pinned real-time thread stands in the others' way.
const LEAST_CPUS_TO_PIN: u32 = 4;
/// Sleeps end at least this long before a departure, since they wake up late by about that much (measured;
/// docs/emulation.md), and at most so long: a spinning real-time thread keeps a processor from all others.
const LEAST_SPIN_NS: u64 = 60_000;
const MOST_SPIN_NS: u64 = 150_000;
/// The part of what the spin is above its least that each punctual wake-up takes off (chosen: halves in 70).
const FORGETTING: u64 = 100;
