//! What lets the emulator's thread be on time, if the machine allows it: priority, timer slack, a processor
//! of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

use talkpath_kernel::host::fork;
use talkpath_kernel::sys::become_real_time;

/// Gives the calling thread all of it that the machine allows; returns why the thread is not real-time if it
/// is not.
pub(super) fn raise_priority() -> (Option<String>, Pinned) {
    // 1 ns: the default of 50 us would let the kernel wake us that much later (prctl(2), PR_SET_TIMERSLACK).
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    let result = fork::become_emulator().or_else(|_| become_real_time());
    (result.err().map(|error| error.to_string()), Pinned::new())
}

/// A thread that stays on one processor, with its caches, if there are enough processors for the rest: on the
/// last one, and beside other emulators of this process one further down for each, in the upper half.
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
            if let Some(cpu) = place.filter(|_| count >= MIN_CPUS_TO_PIN) {
                let mut only = rustix::thread::CpuSet::new();
                only.set(cpu);
                // If this is not allowed, the scheduler chooses the processor, and the lateness report shows
                // the effect.
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
const MIN_CPUS_TO_PIN: u32 = 4;
