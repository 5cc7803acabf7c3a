//! A thread of the coordinator that copies the records of finished measurements to a store.
//!
//! A store that is down does not delay the measurements. A *pass* tries all measurements that were not copied
//! yet, those that have failed least often first, so that one that always fails does not delay the others.
//! After a pass that copied nothing, the thread waits, and the wait doubles each time. A measurement that
//! finishes during the wait is tried at once.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use talkpath_campaign::{Measurement, Plan};
use talkpath_units::counted;

use super::{Copied, CopyError, MAX_FAILURES_IN_A_ROW, Push, uploads};
use crate::failure::Failure;
use crate::terminal::{Terminal, program};

/// The wait doubles at most this many times, up to 16 times the first wait, as for a host that fails.
const MAX_DOUBLINGS: u32 = 4;
/// The wait if everything is copied. A finished measurement ends the wait, so that we chose a long one: a
/// day.
const IDLE_WAIT: Duration = Duration::from_secs(86_400);

/// The thread, and the channel by which it learns that a measurement has finished.
pub(crate) struct Uploader {
    report_measured: Sender<()>,
    /// The thread returns the number of measurements that were not copied.
    thread: JoinHandle<usize>,
    /// The text of the command in messages.
    name: String,
}

/// The state of the thread.
struct Worker {
    push: Push,
    plan: Plan,
    /// The wait after the first pass that copied nothing.
    retry: Duration,
    terminal: Terminal,
}

/// The measurements that a pass tries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PassScope {
    /// All measurements that were not copied.
    All,
    /// Only those that have not failed yet.
    New,
}

/// The result of a pass.
struct Pass {
    copied: usize,
    /// The number of measurements that are still not copied.
    remaining: usize,
}

/// The number of failed attempts to copy each measurement, by its id.
type FailureCounts = BTreeMap<String, u32>;

impl Uploader {
    /// Starts the thread. `retry` is the wait after the first failure.
    pub(crate) fn start(
        push: Push,
        plan: &Plan,
        retry: Duration,
        terminal: Terminal,
    ) -> Result<Self, Failure> {
        let (report_measured, measured) = mpsc::channel();
        let name = push.name().to_owned();
        let worker = Worker { push, plan: plan.clone(), retry, terminal };
        let thread = thread::Builder::new().spawn(move || worker.work(&measured)).map_err(|error| {
            let help = format!("`{} campaign push` copies what is measured", program());
            Failure::unavailable(format!("cannot start a thread: {error}"), help)
        })?;
        Ok(Self { report_measured, thread, name })
    }

    /// Tells the thread that a measurement has finished.
    pub(crate) fn measured(&self) {
        // This fails only if the thread has ended, and `close` reports that.
        let _ = self.report_measured.send(());
    }

    /// Lets the thread try once more, waits for its end, and reports what was not copied.
    pub(crate) fn close(self, terminal: Terminal) {
        let Self { report_measured, thread, name } = self;
        drop(report_measured);
        match thread.join() {
            Ok(0) => {}
            Ok(remaining) => terminal.warning(&format!(
                "{} not copied yet by `{name}`: `{} campaign push` copies the rest",
                counted(remaining, "measurement"),
                program()
            )),
            Err(_) => terminal.warning(&format!("nothing more was copied by `{name}`")),
        }
    }

    /// Waits for the end of the thread, after the flag to stop was set.
    pub(crate) fn stopped(self) {
        let Self { report_measured, thread, .. } = self;
        drop(report_measured);
        // If the thread panicked, the panic has printed a message.
        let _ = thread.join();
    }
}

impl Worker {
    /// Copies until the coordinator closes the channel, or until the user stops it. Returns the number of
    /// measurements that were not copied.
    fn work(&self, measured: &Receiver<()>) -> usize {
        let mut failures = FailureCounts::new();
        // The number of passes in a row that have copied nothing.
        let mut failed_passes = 0_u32;
        let mut wait_began = Instant::now();
        let mut pass = self.copy(&mut failures, PassScope::All);
        while !self.push.stop.load(Ordering::Relaxed) {
            let wait = if pass.remaining == 0 {
                IDLE_WAIT
            } else {
                wait_after(failed_passes + 1, self.retry).saturating_sub(wait_began.elapsed())
            };
            let scope = match measured.recv_timeout(wait) {
                Ok(()) => {
                    // One pass tries all measurements that have finished meanwhile.
                    while measured.try_recv().is_ok() {}
                    PassScope::New
                }
                Err(RecvTimeoutError::Timeout) => PassScope::All,
                Err(RecvTimeoutError::Disconnected) => {
                    return self.copy(&mut failures, PassScope::All).remaining;
                }
            };
            // A pass over new measurements does not prolong the wait of those that failed before.
            if scope == PassScope::All || pass.remaining == 0 {
                wait_began = Instant::now();
            }
            pass = self.copy(&mut failures, scope);
            if pass.copied > 0 || pass.remaining == 0 {
                failed_passes = 0;
            } else if scope == PassScope::All {
                failed_passes = failed_passes.saturating_add(1);
            }
        }
        pass.remaining
    }

    /// Makes a pass. It ends early if the store fails too often in a row.
    fn copy(&self, failures: &mut FailureCounts, scope: PassScope) -> Pass {
        let copied_before = uploads(&self.push.directory, self.push.name()).there;
        let count = |id: &str, failures: &FailureCounts| failures.get(id).copied().unwrap_or(0);
        let mut uncopied: Vec<&Measurement> = self.plan.measurements.iter().collect();
        uncopied.retain(|measurement| {
            self.push.is_measured(measurement) && !copied_before.contains(&measurement.id)
        });
        uncopied.sort_by_key(|measurement| count(&measurement.id, failures));
        let (mut copied, mut failed_in_a_row) = (0, 0);
        let mut needs_plan = copied_before.is_empty();
        for measurement in &uncopied {
            // The measurements after this one have failed, too.
            let has_failed = count(&measurement.id, failures) > 0;
            let is_out_of_scope = scope == PassScope::New && has_failed;
            let is_stopped = self.push.stop.load(Ordering::Relaxed);
            if is_out_of_scope || is_stopped || failed_in_a_row == MAX_FAILURES_IN_A_ROW {
                break;
            }
            // The plan is copied first. If that fails, the measurements would fail, too.
            if needs_plan && let Err(error) = self.push.copy_plan(&mut Copied::default()) {
                self.add_failure(measurement, &error, failures);
                break;
            }
            needs_plan = false;
            match self.copy_measurement(measurement) {
                Ok(()) => {
                    copied += 1;
                    failed_in_a_row = 0;
                }
                Err(error) => {
                    self.add_failure(measurement, &error, failures);
                    if let CopyError::Store(_) = error {
                        failed_in_a_row += 1;
                    }
                }
            }
        }
        Pass { copied, remaining: uncopied.len() - copied }
    }

    fn copy_measurement(&self, measurement: &Measurement) -> Result<(), CopyError> {
        let mut copied = Copied::default();
        self.push.copy_measurement(measurement, &mut copied)?;
        self.push.write_note(&measurement.id, None);
        let (id, files) = (&measurement.id, copied.files);
        self.terminal.detail(&format!("{id}: {files} files copied by `{}`", self.push.name()));
        Ok(())
    }

    fn add_failure(&self, measurement: &Measurement, error: &CopyError, failures: &mut FailureCounts) {
        // A copy that the user cut short has not failed.
        if matches!(error, CopyError::Stopped) {
            return;
        }
        self.push.write_note(&measurement.id, Some(&error.to_string()));
        self.terminal.warning(&format!("{} not copied to the store: {error}", measurement.id));
        *failures.entry(measurement.id.clone()).or_default() += 1;
    }
}

/// Returns the time from the beginning of a pass to the beginning of the next one, after a number of failed
/// passes.
fn wait_after(failed_passes: u32, retry: Duration) -> Duration {
    retry.saturating_mul(1 << failed_passes.saturating_sub(1).min(MAX_DOUBLINGS))
}

/// Returns how many of `measurements` are not copied after the first pass.
#[cfg(test)]
pub(super) fn first_pass(push: Push, measurements: &[Measurement]) -> usize {
    let plan = Plan {
        talkpath: String::new(),
        name: String::new(),
        fingerprint: String::new(),
        made_ms: 0,
        zone: String::new(),
        hosts: Vec::new(),
        measurements: measurements.to_vec(),
    };
    let worker = Worker { push, plan, retry: IDLE_WAIT, terminal: Terminal::plain() };
    worker.copy(&mut FailureCounts::new(), PassScope::All).remaining
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_after_a_failure_doubles_up_to_sixteen_times_the_first() {
        let waits = [1, 2, 3, 4, 5, 6, u32::MAX].map(|failures| wait_after(failures, Duration::from_secs(1)));
        assert_eq!(waits.map(|wait| wait.as_secs()), [1, 2, 4, 8, 16, 16, 16]);
    }
}
