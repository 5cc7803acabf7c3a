//! Keeps processors from sleeping during a measurement.
//!
//! A processor that sleeps wakes up late. A virtual processor wakes up tens or hundreds of microseconds late,
//! because its hypervisor has to schedule it again. On a real machine the kernel's PM QoS interface limits
//! this time (Documentation/power/pm_qos_interface.rst). On a virtual machine only work keeps a processor
//! from sleeping. So a thread of the class SCHED_IDLE (sched(7)) spins on each processor. It runs only if no
//! other thread has work.
//!
//! A quota of processor time (`cpu.max`, Documentation/admin-guide/cgroup-v2.rst) counts these threads as all
//! others. They would use the quota up, and the kernel would stop the whole group until its next period. So
//! no such thread is started if there is a quota. Left out: quotas of cgroup v1.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::sys::become_idle;

/// Keeps the kernel from choosing deep sleeps, until the value is dropped.
#[derive(Debug)]
pub struct ShallowSleep(
    #[expect(dead_code, reason = "the kernel looks at whether it is open")] std::fs::File,
);

impl ShallowSleep {
    /// Begins. Returns `None` if the interface is not allowed or does not exist.
    pub fn begin() -> Option<Self> {
        let mut file = std::fs::OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
        // The value is the tolerable latency, us.
        file.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Self(file))
    }
}

/// Keeps every processor that this process may use awake, until the value is dropped.
#[derive(Debug)]
pub struct KeepAwake {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl KeepAwake {
    /// Begins. A thread that may not have the idle class, or not run on its processor, ends at once, because
    /// it would take time from other threads.
    ///
    /// # Errors
    /// Returns `Unsupported` if there is a quota of processor time, which the threads would use up. Returns
    /// the system's error if a thread cannot be started, or if the processors are not known.
    pub fn begin() -> io::Result<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        match quota(Path::new("/sys/fs/cgroup"), &own) {
            Some(quota) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("cpu.max of this cgroup is {quota}, and threads that spin would use it up"),
            )),
            None => Self::spin(),
        }
    }

    fn spin() -> io::Result<Self> {
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
            // The thread does nothing that could fail, so the result is ignored.
            let _ = thread.join();
        }
    }
}

/// Reads the quota of processor time from `cpu.max` of this process's cgroup, or of a cgroup around it. `own`
/// is the text of /proc/self/cgroup, and `root` is the folder of all cgroups. The root itself has a `cpu.max`
/// only in a container.
fn quota(root: &Path, own: &str) -> Option<String> {
    let group = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = root.join(group);
    let around = folder.ancestors().take_while(|folder| folder.starts_with(root));
    let limits = around.filter_map(|folder| std::fs::read_to_string(folder.join("cpu.max")).ok());
    limits.map(|limit| limit.trim().to_owned()).find(|limit| !limit.is_empty() && !limit.starts_with("max"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_of_the_own_cgroup_or_of_one_around_it_is_found() {
        let root = std::env::temp_dir().join(format!("talkpath-cpu-max-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        let limit = |group: &str, text: &str| std::fs::write(root.join(group).join("cpu.max"), text).unwrap();
        let found = |own: &str| quota(&root, own);
        assert_eq!(found("0::/a/b\n"), None, "no file");
        limit("a/b", "max 100000\n");
        assert_eq!(found("0::/a/b\n"), None);
        limit("a", "50000 100000\n");
        assert_eq!(found("1:cpu:/x\n0::/a/b\n").as_deref(), Some("50000 100000"), "around it");
        assert_eq!(found("0::/\n"), None);
        limit("", "150000 100000\n");
        assert_eq!(found("0::/\n").as_deref(), Some("150000 100000"), "a container's own");
        assert_eq!(found("1:cpu:/a\n"), None, "version 1");
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_thread_for_each_processor_spins_in_the_idle_class_and_ends() {
        let awake = KeepAwake::spin().unwrap();
        assert_eq!(awake.threads.len(), sched_getaffinity(None).unwrap().count() as usize);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(awake.threads.iter().all(|thread| !thread.is_finished()), "idle is always allowed");
        drop(awake);
    }
}
