//! A thread of the coordinator that copies what is measured. A store that is down delays no measurement: what
//! is not there yet is tried again, after a wait that doubles.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use talkpath_campaign::Plan;

use super::{Copied, Push, uploads};
use crate::terminal::{Terminal, counted, program};

/// The thread, and how it learns of a measurement.
pub(crate) struct Uploader {
    measured: Sender<()>,
    thread: JoinHandle<usize>,
    url: String,
}

/// The thread's own.
struct Worker {
    push: Push,
    plan: Plan,
    retry: Duration,
    terminal: Terminal,
    stop: Arc<AtomicBool>,
}

impl Uploader {
    /// Starts it. `retry` is the wait after the first failure; once `stop` is set no measurement is begun.
    pub(crate) fn start(
        push: Push,
        plan: &Plan,
        retry: Duration,
        terminal: Terminal,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        let (measured, news) = mpsc::channel();
        let url = push.url().to_owned();
        let worker = Worker { push, plan: plan.clone(), retry, terminal, stop: Arc::clone(stop) };
        Self { measured, thread: thread::spawn(move || worker.work(&news)), url }
    }

    /// A measurement is in the records.
    pub(crate) fn measured(&self) {
        // Without the thread nothing is copied, and `close` says so.
        let _ = self.measured.send(());
    }

    /// Lets it try what is left once more, and says what is not there.
    pub(crate) fn close(self, terminal: Terminal) {
        let Self { measured, thread, url } = self;
        drop(measured);
        match thread.join() {
            Ok(0) => {}
            Ok(left) => terminal.warning(&format!(
                "{} not copied to {url} yet: `{} campaign push` copies the rest",
                counted(left, "measurement"),
                program()
            )),
            Err(_) => terminal.warning(&format!("nothing more was copied to {url}")),
        }
    }
}

impl Worker {
    /// Copies until the coordinator has gone. Returns how many measurements are left.
    fn work(&self, news: &Receiver<()>) -> usize {
        let mut failures = 0_u32;
        loop {
            let began = Instant::now();
            let left = self.copy();
            failures = if left == 0 { 0 } else { failures.saturating_add(1) };
            if self.stop.load(Ordering::Relaxed) {
                return left;
            }
            let wait = wait_after(failures, self.retry);
            // News do not shorten the wait after a failure.
            loop {
                let waits = if left == 0 { A_DAY } else { wait.saturating_sub(began.elapsed()) };
                match news.recv_timeout(waits) {
                    Ok(()) if left == 0 => break,
                    Ok(()) => {}
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return self.copy(),
                }
            }
        }
    }

    /// Copies what is measured and not there, up to the first failure. Returns how many are left.
    fn copy(&self) -> usize {
        let there = uploads(&self.push.directory, &self.push.url).there;
        let measured = self.plan.measurements.iter().filter(|it| self.push.is_measured(it));
        let mut left = measured.filter(|it| !there.contains(&it.id)).peekable();
        while let Some(measurement) = left.peek() {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let plan = if there.is_empty() {
                self.push.plan(&BTreeMap::new(), &mut Copied::default())
            } else {
                Ok(())
            };
            match plan.and_then(|()| self.push.one(measurement)) {
                Ok(copied) => {
                    self.push.note(&measurement.id, None);
                    self.terminal.detail(&format!(
                        "{}: {} objects copied to {}",
                        measurement.id, copied.copied, self.push.url
                    ));
                    left.next();
                }
                Err(why) => {
                    self.push.note(&measurement.id, Some(&why));
                    self.terminal.warning(&format!("not copied to {}: {why}", self.push.url));
                    break;
                }
            }
        }
        left.count()
    }
}

/// How long after the begin of the last attempt the next one begins.
fn wait_after(failures: u32, retry: Duration) -> Duration {
    retry.saturating_mul(1 << failures.saturating_sub(1).min(MOST_DOUBLINGS))
}

/// As that of a host that fails: up to 16 times the first wait.
const MOST_DOUBLINGS: u32 = 4;
/// No measurement is due sooner than somebody says so.
const A_DAY: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_after_a_failure_doubles_up_to_sixteen_times_the_first() {
        let waits = [1, 2, 3, 4, 5, 6, u32::MAX].map(|failures| wait_after(failures, Duration::from_secs(1)));
        assert_eq!(waits.map(|wait| wait.as_secs()), [1, 2, 4, 8, 16, 16, 16]);
    }
}
