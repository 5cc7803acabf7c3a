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

/// Emulators that run in this process.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// With fewer, a pinned real-time thread stands in the others' way.
const LEAST_CPUS_TO_PIN: u32 = 4;
