//! What the coordinator needs of every process that it starts: the end of its standard error, a wait with a
//! timeout, and an environment without secrets.

use std::io::{self, Read};
use std::process::{Child, ChildStderr, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time between two checks whether a process has ended. We chose 20 ms because no time here has to be
/// more exact.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The time in which the last text of a process must arrive after the process has ended. We chose 0.5 s: the
/// text is in a pipe already, and only the reading thread has to run.
const STDERR_TIMEOUT: Duration = Duration::from_millis(500);
/// The number of bytes of standard error that are kept. We chose 16 KiB because only the last message is
/// shown.
const MAX_STDERR_BYTES: usize = 16_384;

/// The last bytes that a process has written to its standard error. A thread reads them, so that the process
/// never waits for a reader.
#[derive(Default)]
pub(super) struct StderrTail {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl StderrTail {
    /// Starts the thread that reads `stream`. If there is no stream, the text stays empty.
    pub(super) fn new(stream: Option<ChildStderr>) -> io::Result<Self> {
        let mut tail = Self::default();
        if let Some(stream) = stream {
            let bytes = Arc::clone(&tail.bytes);
            tail.reader = Some(thread::Builder::new().spawn(move || read_tail(stream, &bytes))?);
        }
        Ok(tail)
    }

    /// Returns the text of a process that has ended.
    pub(super) fn text(&self) -> String {
        // The wait has a timeout, because another process may still hold the stream open.
        let start = Instant::now();
        let is_reading = || self.reader.as_ref().is_some_and(|reader| !reader.is_finished());
        while is_reading() && start.elapsed() < STDERR_TIMEOUT {
            thread::sleep(POLL_INTERVAL);
        }
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Reads `stream` to its end, and keeps the last bytes in `tail`.
fn read_tail(mut stream: ChildStderr, tail: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&buffer[..count]);
        let excess = tail.len().saturating_sub(MAX_STDERR_BYTES);
        tail.drain(..excess);
    }
}

/// Waits until `child` ends. If it does not end within `timeout`, it is killed, and the result is `None`.
pub(super) fn wait_with_timeout(child: &mut Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > timeout {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Removes variables from the environment of `command` if their names begin with one of `prefixes`.
pub(super) fn remove_variables(command: &mut Command, prefixes: &[&str]) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if prefixes.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_end_is_killed() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(wait_with_timeout(&mut child, Duration::from_millis(100)).unwrap(), None);
        let mut child = Command::new("true").spawn().unwrap();
        assert!(wait_with_timeout(&mut child, Duration::from_secs(30)).unwrap().unwrap().success());
    }
}
