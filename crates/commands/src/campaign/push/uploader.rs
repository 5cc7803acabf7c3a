//! A thread of the coordinator that copies the records of finished measurements. A store that is down does
//! not delay the measurements. Records that could not be copied are tried again after a wait, which doubles
//! each time. Those that have failed least often come first, so that one that always fails does not delay the
//! others. New records are tried at once.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use talkpath_campaign::{Measurement, Plan};
use talkpath_units::counted;

use super::{Copied, MOST_IN_A_ROW, Push, Uncopied, uploads};
use crate::failure::Failure;
use crate::terminal::{Terminal, program};

/// The thread, and the channel by which it learns that a measurement has finished.
pub(crate) struct Uploader {
    measured: Sender<()>,
    thread: JoinHandle<usize>,
    /// The text of the command in messages.
    name: String,
}

/// The state of the thread.
struct Worker {
    push: Push,
    plan: Plan,
    retry: Duration,
    terminal: Terminal,
}

impl Uploader {
    /// Starts the thread. `retry` is the wait after the first failure.
    pub(crate) fn start(
        push: Push,
        plan: &Plan,
        retry: Duration,
        terminal: Terminal,
    ) -> Result<Self, Failure> {
        let (measured, news) = mpsc::channel();
        let name = push.name().to_owned();
        let worker = Worker { push, plan: plan.clone(), retry, terminal };
        let thread = thread::Builder::new().spawn(move || worker.work(&news));
        let thread = thread.map_err(|why| {
            let how = format!("`{} campaign push` copies what is measured", program());
            Failure::unavailable(format!("cannot start a thread: {why}"), how)
        })?;
        Ok(Self { measured, thread, name })
    }

    /// Tells the thread that a measurement has finished.
    pub(crate) fn measured(&self) {
        // This fails only if the thread has ended, and `close` reports that.
        let _ = self.measured.send(());
    }

    /// Lets the thread try once more, waits for its end, and reports what was not copied.
    pub(crate) fn close(self, terminal: Terminal) {
        let Self { measured, thread, name } = self;
        drop(measured);
        match thread.join() {
            Ok(0) => {}
            Ok(left) => terminal.warning(&format!(
                "{} not copied yet by `{name}`: `{} campaign push` copies the rest",
                counted(left, "measurement"),
                program()
            )),
            Err(_) => terminal.warning(&format!("nothing more was copied by `{name}`")),
        }
    }

    /// Waits until the thread has ended a command that runs. The flag to stop must be set before.
    pub(crate) fn stopped(self) {
        let Self { measured, thread, .. } = self;
        drop(measured);
        // If the thread panicked, the panic has printed a message.
        let _ = thread.join();
    }
}

impl Worker {
    /// Copies until the coordinator closes the channel. Returns how many measurements were not copied.
    fn work(&self, news: &Receiver<()>) -> usize {
        // How often each measurement could not be copied.
        let mut failures: BTreeMap<String, u32> = BTreeMap::new();
        // The beginning of the current wait, and how many passes over all measurements have copied nothing.
        let (mut began, mut fruitless) = (Instant::now(), 0_u32);
        let mut pass = self.copy(&mut failures, Which::All);
        loop {
            if self.push.stop.load(Ordering::Relaxed) {
                return pass.left;
            }
            let wait = match pass.left {
                0 => A_DAY,
                _ => wait_after(fruitless + 1, self.retry).saturating_sub(began.elapsed()),
            };
            let which = match news.recv_timeout(wait) {
                // A new measurement is tried at once. Those that failed before wait for their time.
                Ok(()) => {
                    while news.try_recv().is_ok() {}
                    Which::New
                }
                Err(RecvTimeoutError::Timeout) => Which::All,
                Err(RecvTimeoutError::Disconnected) => return self.copy(&mut failures, Which::All).left,
            };
            // If something fails in this pass for the first time, its wait begins now.
            if which == Which::All || pass.left == 0 {
                began = Instant::now();
            }
            pass = self.copy(&mut failures, which);
            fruitless = match (pass.copied, which) {
                (0, Which::All) if pass.left > 0 => fruitless.saturating_add(1),
                (0, Which::New) if pass.left > 0 => fruitless,
                _ => 0,
            };
        }
    }

    /// Copies the measurements that are not in the store yet, those that have failed least often first. It
    /// stops if the store fails too often in a row.
    fn copy(&self, failures: &mut BTreeMap<String, u32>, which: Which) -> Pass {
        let there = uploads(&self.push.directory, self.push.name()).there;
        let measured = self.plan.measurements.iter().filter(|measurement| self.push.is_measured(measurement));
        let mut left: Vec<_> = measured.filter(|measurement| !there.contains(&measurement.id)).collect();
        let failed = |id: &str, failures: &BTreeMap<String, u32>| failures.get(id).copied().unwrap_or(0);
        left.sort_by_key(|measurement| failed(&measurement.id, failures));
        let (mut copied, mut in_a_row) = (0, 0);
        let mut needs_plan = there.is_empty();
        for measurement in &left {
            let is_left_out = which == Which::New && failed(&measurement.id, failures) > 0;
            if is_left_out || in_a_row == MOST_IN_A_ROW || self.push.stop.load(Ordering::Relaxed) {
                break;
            }
            // The plan is copied first. If that fails, the measurements would fail too.
            if needs_plan && let Err(why) = self.push.plan(&mut Copied::default()) {
                self.note_failure(measurement, &why, failures);
                break;
            }
            needs_plan = false;
            let mut taken = Copied::default();
            match self.push.files(measurement, &mut taken) {
                Ok(()) => {
                    self.push.note(&measurement.id, None);
                    let (id, files) = (&measurement.id, taken.files);
                    self.terminal.detail(&format!("{id}: {files} files copied by `{}`", self.push.name()));
                    (copied, in_a_row) = (copied + 1, 0);
                }
                Err(why) => {
                    self.note_failure(measurement, &why, failures);
                    in_a_row += usize::from(why.is_of_the_store());
                }
            }
        }
        Pass { copied, left: left.len() - copied }
    }

    fn note_failure(&self, measurement: &Measurement, why: &Uncopied, failures: &mut BTreeMap<String, u32>) {
        // A copy that a signal cut short has not failed.
        if matches!(why, Uncopied::Stopped) {
            return;
        }
        self.push.note(&measurement.id, Some(&why.to_string()));
        self.terminal.warning(&format!("{} not copied to the store: {why}", measurement.id));
        *failures.entry(measurement.id.clone()).or_default() += 1;
    }
}

/// The measurements that a pass tries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// All that are not in the store.
    All,
    /// Only those that have not failed yet.
    New,
}

/// The result of a pass.
struct Pass {
    copied: usize,
    /// How many measurements are not in the store.
    left: usize,
}

/// The time from the beginning of an attempt to the beginning of the next one, after a number of failures.
fn wait_after(failures: u32, retry: Duration) -> Duration {
    retry.saturating_mul(1 << failures.saturating_sub(1).min(MOST_DOUBLINGS))
}

/// The wait doubles four times at most, up to 16 times the first wait, as for a host that fails.
const MOST_DOUBLINGS: u32 = 4;
/// The wait if nothing is left to copy. A finished measurement ends the wait.
const A_DAY: Duration = Duration::from_secs(86_400);

/// Returns how many of `measurements` are not in the store after the first pass.
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
    let worker = Worker { push, plan, retry: A_DAY, terminal: Terminal::plain() };
    worker.copy(&mut BTreeMap::new(), Which::All).left
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
