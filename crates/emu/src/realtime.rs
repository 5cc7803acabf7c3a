//! The means that keep the emulator's thread on time, if the machine allows them: priority, timer slack and a
//! processor of its own.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use talkpath_kernel::host::fork;
use talkpath_kernel::sys::become_real_time;

use crate::world::Setting;

/// Gives the calling thread the highest priority that the machine allows. Returns why the thread has no
/// real-time priority above the endpoints' threads, if it has none.
pub(super) fn raise_priority() -> Option<String> {
    // 1 ns: the default of 50 us would let the kernel wake us that much later (prctl(2), PR_SET_TIMERSLACK).
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    let denied = fork::take_emulator_priority().err()?;
    // An RLIMIT_RTPRIO of 1 allows at least the priority of the endpoints' threads.
    Some(match become_real_time() {
        Ok(()) => format!("{denied}; it has the endpoints' priority"),
        Err(_) => denied.to_string(),
    })
}

/// The processor that an emulator has for itself, as far as this process can arrange it. The threads of its
/// endpoints run on other processors, and the kernel does the hosts' part of receiving on other processors.
///
/// The first emulator takes the last processor. A concurrent emulator of this process takes the next lower
/// one that is free, but only in the upper half. An emulator that finds no free processor runs anywhere. So
/// does every thread on a machine with one processor.
pub(super) struct OwnProcessor {
    /// The processor's place, counted down from the last processor, and the processors that this process may
    /// use.
    taken: Option<(u32, CpuSet)>,
}

impl OwnProcessor {
    /// Takes a processor until the value is dropped.
    pub(super) fn take() -> Self {
        let Ok(allowed) = sched_getaffinity(None) else { return Self::none() };
        let places = (allowed.count() / 2).min(u64::BITS);
        let free = |taken: u64| (0..places).find(|place| taken >> place & 1 == 0);
        let claimed = TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            free(taken).map(|place| taken | 1 << place)
        });
        Self { taken: claimed.ok().and_then(free).map(|place| (place, allowed)) }
    }

    /// Takes no processor, so that the emulator runs anywhere.
    pub(super) const fn none() -> Self {
        Self { taken: None }
    }

    /// Pins the calling thread to the processor. The error is ignored: if that is not allowed, the lateness
    /// in the report shows the effect.
    pub(super) fn pin(&self) {
        let Some(cpu) = self.cpu() else { return };
        let mut only = CpuSet::new();
        only.set(cpu);
        let _ = sched_setaffinity(None, &only);
    }

    /// Keeps the calling thread off the processor.
    pub(super) fn leave(&self) {
        if let Some(others) = self.others() {
            let _ = sched_setaffinity(None, &others);
        }
    }

    /// The setting that makes the kernel receive for a host on the other processors (receive packet steering,
    /// Documentation/networking/scaling.rst; Linux 6.3 for the default of new devices). Without it the thread
    /// that writes a packet to a host also does all the work of the host's kernel with the packet.
    pub(super) fn steering(&self) -> Option<Setting> {
        let others = self.others()?;
        Some((STEERING, Cow::Owned(mask(|cpu| others.is_set(cpu)).into_bytes())))
    }

    fn cpu(&self) -> Option<usize> {
        let (place, allowed) = self.taken.as_ref()?;
        (0..CpuSet::MAX_CPU).rev().filter(|&cpu| allowed.is_set(cpu)).nth(*place as usize)
    }

    fn others(&self) -> Option<CpuSet> {
        let (_, mut others) = self.taken?;
        others.unset(self.cpu()?);
        Some(others)
    }
}

impl Drop for OwnProcessor {
    fn drop(&mut self) {
        if let Some((place, _)) = self.taken {
            TAKEN.fetch_and(!(1 << place), Ordering::Relaxed);
        }
    }
}

/// Writes a set of processors as the kernel reads it: hexadecimal words of 32 bits with commas, the highest
/// word first.
fn mask(is_set: impl Fn(usize) -> bool) -> String {
    let word =
        |word: usize| (0..32).fold(0_u32, |bits, bit| bits | u32::from(is_set(word * 32 + bit)) << bit);
    let words = (0..CpuSet::MAX_CPU.div_ceil(32)).rev().map(word).skip_while(|word| *word == 0);
    words.map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(",")
}

/// One bit for each place that an emulator of this process has taken.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// The file with the mask of receive packet steering, for devices that are made later in the namespace.
pub(super) const STEERING: &core::ffi::CStr = c"/proc/sys/net/core/rps_default_mask";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulators_beside_each_other_have_different_processors_or_none() {
        let taken: Vec<_> = (0..3).map(|_| OwnProcessor::take()).collect();
        let mut cpus: Vec<_> = taken.iter().filter_map(OwnProcessor::cpu).collect();
        let count = sched_getaffinity(None).unwrap().count() as usize;
        assert!(cpus.len() <= count / 2);
        cpus.dedup();
        assert_eq!(cpus.len(), taken.iter().filter(|place| place.taken.is_some()).count());
        for place in &taken {
            if let (Some(cpu), Some(others)) = (place.cpu(), place.others()) {
                assert!(!others.is_set(cpu) && others.count() as usize == count - 1);
            }
        }
    }

    #[test]
    fn a_set_of_processors_is_written_as_the_kernel_reads_it() {
        assert_eq!(mask(|cpu| cpu == 0), "00000001");
        assert_eq!(mask(|cpu| cpu < 3 || cpu == 35), "00000008,00000007");
        assert_eq!(mask(|_| false), "");
    }
}
