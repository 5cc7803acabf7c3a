//! Processors that do not sleep while something is measured.
//!
//! A processor that sleeps comes back late, a virtual one by tens or hundreds of microseconds: its hypervisor
//! has to schedule it again. On a real machine the kernel's PM QoS interface bounds that
//! (Documentation/power/pm_qos_interface.rst). On a virtual one only work keeps a processor from sleeping: so
//! a thread of the class for which nothing else is left to do (SCHED_IDLE, sched(7)) spins on each.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::sys::become_idle;

/// Keeps the kernel from choosing deep sleeps, until it is dropped.
#[derive(Debug)]
pub struct ShallowSleep(
    #[expect(dead_code, reason = "the kernel looks at whether it is open")] std::fs::File,
);

impl ShallowSleep {
    /// `None` where that is not allowed, or not offered.
    pub fn begin() -> Option<Self> {
        let mut file = std::fs::OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
        // The latency that is tolerable, us.
        file.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Self(file))
    }
}

/// Keeps every processor that this process may use awake, until it is dropped.
#[derive(Debug)]
pub struct KeepAwake {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl KeepAwake {
    /// Begins. A thread that may not be of the idle class, or not on its processor, ends at once: it would
    /// take time from others.
    ///
    /// # Errors
    /// The system's: no threads, or the processors are not known.
    pub fn begin() -> std::io::Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let mut awake = Self { stop: Arc::default(), threads: Vec::new() };
        for cpu in (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)) {
            let stop = Arc::clone(&awake.stop);
            let spin = move || {
                let mut only = CpuSet::new();
                only.set(cpu);
                if become_idle().is_err() || sched_setaffinity(None, &only).is_err() {
                    return;
                }
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            awake.threads.push(std::thread::Builder::new().name("keep-awake".to_owned()).spawn(spin)?);
        }
        Ok(awake)
    }
}

impl Drop for KeepAwake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It does nothing that could fail.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_for_each_processor_spins_in_the_idle_class_and_ends() {
        let awake = KeepAwake::begin().unwrap();
        assert_eq!(awake.threads.len(), sched_getaffinity(None).unwrap().count() as usize);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(awake.threads.iter().all(|thread| !thread.is_finished()), "idle is always allowed");
        drop(awake);
    }
}
