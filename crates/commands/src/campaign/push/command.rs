//! One run of the store's command, for one file: started without a shell, and ended when its time is over or
//! when the coordinator stops.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, absolute};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use talkpath_scenario::campaign::StoreCommand;
use talkpath_units::printable;

use super::Uncopied;
use crate::campaign::child::{StandardError, remove_variables};
use crate::terminal::shell_word;

/// The command as a person would type it into a shell. Notes name the store by it.
pub(crate) fn shown(command: &StoreCommand) -> String {
    let words: Vec<String> = command.words.iter().map(|word| shell_word(word)).collect();
    printable(&words.join(" "), usize::MAX)
}

/// Has `file` copied as the object `key`. A command has done it if its exit code is 0.
pub(super) fn copy(
    command: &StoreCommand,
    file: &Path,
    key: &str,
    stop: &AtomicBool,
) -> Result<(), Uncopied> {
    if stop.load(Ordering::Relaxed) {
        return Err(Uncopied::Stopped);
    }
    // Absolute, so that no command takes it for an option.
    let file = absolute(file).map_err(|why| Uncopied::Unread(super::unread(file, &why)))?;
    let mut running = Running::start(command, &file, key)?;
    let limit = Duration::from_nanos(command.timeout.as_nanos());
    let (since, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        let ended = running.child.try_wait().map_err(|why| running.failed(&format!("cannot wait: {why}")))?;
        if let Some(status) = ended {
            return running.outcome(status);
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Uncopied::Stopped);
        }
        if since.elapsed() > limit {
            let timeout = command.timeout;
            return Err(running.failed(&format!(
                "did not end within {timeout} and was ended; `store_timeout` gives it longer"
            )));
        }
        thread::sleep(pause);
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}

/// A command that runs, in a process group of its own. It and what it started are ended when this is dropped.
struct Running {
    program: String,
    child: Child,
    stderr: StandardError,
}

impl Running {
    fn start(command: &StoreCommand, file: &Path, key: &str) -> Result<Self, Uncopied> {
        let mut words = command.words_for(file.as_os_str(), key).into_iter();
        let mut started = Command::new(words.next().unwrap_or_default());
        started.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // A signal of the terminal is for the coordinator, which then ends what it started.
        started.process_group(0);
        // The coordinator's own settings. Credentials of the store stay.
        remove_variables(&mut started, &["TALKPATH_"]);
        let program = printable(command.words.first().map_or("", String::as_str), usize::MAX);
        let child = started.spawn().map_err(|why| Uncopied::Store(cannot_start(&program, &why)))?;
        let mut running = Self { program, child, stderr: StandardError::default() };
        running.stderr = StandardError::of(running.child.stderr.take())
            .map_err(|why| running.failed(&format!("its output cannot be read: {why}")))?;
        Ok(running)
    }

    fn outcome(&self, status: ExitStatus) -> Result<(), Uncopied> {
        let how = match status.code() {
            Some(0) => return Ok(()),
            Some(code) => format!("exit code {code}"),
            None => status.to_string(),
        };
        Err(self.failed(&format!("{how}: {}", reason(&self.stderr.text()))))
    }

    fn failed(&self, why: &str) -> Uncopied {
        Uncopied::Store(format!("{}: {why}", self.program))
    }

    /// Whether it has ended. Its number stays its own, since its status is left to be read.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let group = Pid::from_child(&self.child);
        // A group that is gone needs no signal.
        let _ = kill_process_group(group, Signal::TERM);
        let since = Instant::now();
        while !self.has_ended() && since.elapsed() < GRACE {
            thread::sleep(LONGEST_PAUSE);
        }
        // Also what it started and what outlived it.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// What a command said last: its last line, with those before it if it goes on from them. `rclone` has the
/// cause in the first of such lines, and begins the others with a tab or `caused by`.
fn reason(stderr: &str) -> String {
    let mut said: Vec<&str> = Vec::new();
    for line in stderr.lines().rev().filter(|line| !line.trim().is_empty()) {
        said.insert(0, line.trim());
        if !line.starts_with(char::is_whitespace) && !line.starts_with("caused by") {
            break;
        }
    }
    if said.is_empty() { "it said nothing".to_owned() } else { printable(&said.join(" "), MOST_SHOWN) }
}

fn cannot_start(program: &str, why: &io::Error) -> String {
    format!("cannot start {program}: {why}: install it, or correct `store_command`")
}

const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Chosen: what copies a file over a network takes longer.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// How long a command has to end by itself after SIGTERM. Chosen: time to remove an upload that is not whole.
const GRACE: Duration = Duration::from_secs(5);
/// Characters of a reason. Chosen: a line of `uploads.jsonl`.
const MOST_SHOWN: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_last_line_with_what_it_goes_on_from() {
        let rclone = "2026/11/29 ERROR : Attempt 1/1 failed\n2026/11/29 Failed to copyto: NoSuchBucket: none\n\
                      \tstatus code: 404\ncaused by: a\u{1b}[2J\n\n";
        let said = "2026/11/29 Failed to copyto: NoSuchBucket: none status code: 404 caused by: a\\u{1b}[2J";
        assert_eq!(reason(rclone), said);
        assert_eq!(reason("cp: no space left\n"), "cp: no space left");
        assert_eq!(reason(" \n"), "it said nothing");
    }
}
