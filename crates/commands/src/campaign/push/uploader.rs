//! A thread of the coordinator that copies what is measured. A store that is down delays no measurement: what
//! is not there yet is tried again, after a wait that doubles. A measurement that cannot be copied holds up
//! no other, because what has failed least often comes first. What is new is tried at once.

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

/// The thread, and how it learns of a measurement.
pub(crate) struct Uploader {
    measured: Sender<()>,
    thread: JoinHandle<usize>,
    /// The command as messages show it.
    name: String,
}

/// The thread's own.
struct Worker {
    push: Push,
    plan: Plan,
    retry: Duration,
    terminal: Terminal,
}

impl Uploader {
    /// Starts it. `retry` is the wait after the first failure.
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
            Failure::unavailable(format!("this machine gives no thread for that: {why}"), how)
        })?;
        Ok(Self { measured, thread, name })
    }

    /// A measurement is in the records.
    pub(crate) fn measured(&self) {
        // Without the thread nothing is copied, and `close` says so.
        let _ = self.measured.send(());
    }

    /// Lets it try what is left once more, and says what is not there.
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

    /// Waits until a command that runs has been ended, after the flag to stop was set.
    pub(crate) fn stopped(self) {
        let Self { measured, thread, .. } = self;
        drop(measured);
        // A thread that panicked has said so.
        let _ = thread.join();
    }
}

impl Worker {
    /// Copies until the coordinator has gone. Returns how many measurements are left.
    fn work(&self, news: &Receiver<()>) -> usize {
        // By measurement: how often it could not be copied.
        let mut failures: BTreeMap<String, u32> = BTreeMap::new();
        // Since when, and after how many passes over all that copied nothing.
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
                // What failed before waits for its time.
                Ok(()) => {
                    while news.try_recv().is_ok() {}
                    Which::New
                }
                Err(RecvTimeoutError::Timeout) => Which::All,
                Err(RecvTimeoutError::Disconnected) => return self.copy(&mut failures, Which::All).left,
            };
            // Of what failed for the first time, the wait begins now.
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

    /// Copies what is measured and not there, what has failed least often first, until the store
    /// fails too often in a row.
    fn copy(&self, failures: &mut BTreeMap<String, u32>, which: Which) -> Pass {
        let there = uploads(&self.push.directory, self.push.name()).there;
        let measured = self.plan.measurements.iter().filter(|it| self.push.is_measured(it));
        let mut left: Vec<_> = measured.filter(|it| !there.contains(&it.id)).collect();
        let failed = |id: &str, failures: &BTreeMap<String, u32>| failures.get(id).copied().unwrap_or(0);
        left.sort_by_key(|it| failed(&it.id, failures));
        let (mut copied, mut in_a_row) = (0, 0);
        let mut needs_plan = there.is_empty();
        for measurement in &left {
            let is_left_out = which == Which::New && failed(&measurement.id, failures) > 0;
            if is_left_out || in_a_row == MOST_IN_A_ROW || self.push.stop.load(Ordering::Relaxed) {
                break;
            }
            // Without the plan no measurement is tried: each would fail by it again.
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
        // What is cut short by a signal has not failed.
        if matches!(why, Uncopied::Stopped) {
            return;
        }
        self.push.note(&measurement.id, Some(&why.to_string()));
        self.terminal.warning(&format!("{} not copied to the store: {why}", measurement.id));
        *failures.entry(measurement.id.clone()).or_default() += 1;
    }
}

/// What a pass tries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// What is not there.
    All,
    /// Of that, what has not failed yet.
    New,
}

/// What a pass did.
struct Pass {
    copied: usize,
    /// Measurements that are not there.
    left: usize,
}

/// How long after the begin of the last attempt the next one begins.
fn wait_after(failures: u32, retry: Duration) -> Duration {
    retry.saturating_mul(1 << failures.saturating_sub(1).min(MOST_DOUBLINGS))
}

/// As that of a host that fails: up to 16 times the first wait.
const MOST_DOUBLINGS: u32 = 4;
/// No measurement is due sooner than somebody says so.
const A_DAY: Duration = Duration::from_secs(86_400);

/// How many of `measurements` are not there after the first pass.
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
