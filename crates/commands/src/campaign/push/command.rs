//! Runs the user's command that copies one file to a store. The command is started without a shell. It is
//! stopped when its timeout is over, or when the coordinator stops.

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

use super::CopyError;
use crate::campaign::process::{StderrTail, remove_variables};
use crate::campaign::remote::NO_MESSAGE;
use crate::terminal::shell_word;

/// The first pause between two checks whether the command has ended. Each pause is twice as long as the one
/// before.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause between two checks. We chose 20 ms, because copying a file over a network takes longer.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// The time that a command has to end after SIGTERM. We chose 5 s, which is enough to remove an incomplete
/// upload.
const GRACE: Duration = Duration::from_secs(5);
/// A reason is cut after this many characters. We chose 400 so that a line of `uploads.jsonl` stays readable.
const MAX_REASON_CHARS: usize = 400;

/// Writes the command as a person would type it into a shell. This text also names the store in
/// uploads.jsonl.
pub(crate) fn quoted_command(command: &StoreCommand) -> String {
    let words: Vec<String> = command.words.iter().map(|word| shell_word(word)).collect();
    printable(&words.join(" "), usize::MAX)
}

/// Copies `file` to the store under `key`. The command has copied the file if its exit code is 0.
pub(super) fn copy(
    command: &StoreCommand,
    file: &Path,
    key: &str,
    stop: &AtomicBool,
) -> Result<(), CopyError> {
    if stop.load(Ordering::Relaxed) {
        return Err(CopyError::Stopped);
    }
    // The path is made absolute, so that no command takes it for an option.
    let file = absolute(file).map_err(|why| CopyError::read(file, &why))?;
    let mut running = Running::start(command, &file, key)?;
    let limit = Duration::from_nanos(command.timeout.as_nanos());
    let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        let ended = running.child.try_wait().map_err(|why| running.failed(&format!("cannot wait: {why}")))?;
        if let Some(status) = ended {
            return running.outcome(status);
        }
        if stop.load(Ordering::Relaxed) {
            return Err(CopyError::Stopped);
        }
        if start.elapsed() > limit {
            let timeout = command.timeout;
            return Err(running.failed(&format!(
                "timeout: it did not end within {timeout} and was stopped; `store_timeout` sets the time"
            )));
        }
        thread::sleep(pause);
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}

/// A command that runs in a process group of its own. Dropping this ends the whole group.
struct Running {
    program: String,
    child: Child,
    stderr: StderrTail,
}

impl Running {
    fn start(command: &StoreCommand, file: &Path, key: &str) -> Result<Self, CopyError> {
        let mut words = command.words_for(file.as_os_str(), key).into_iter();
        let mut started = Command::new(words.next().unwrap_or_default());
        started.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // A signal of the terminal must reach only the coordinator, which then ends the command.
        started.process_group(0);
        // The command must not see the settings of the coordinator, but it needs the credentials of the
        // store.
        remove_variables(&mut started, &["TALKPATH_"]);
        let program = printable(command.words.first().map_or("", String::as_str), usize::MAX);
        let child = started.spawn().map_err(|why| CopyError::Store(cannot_start(&program, &why)))?;
        let mut running = Self { program, child, stderr: StderrTail::default() };
        running.stderr = StderrTail::new(running.child.stderr.take())
            .map_err(|why| running.failed(&format!("cannot start a thread: {why}")))?;
        Ok(running)
    }

    fn outcome(&self, status: ExitStatus) -> Result<(), CopyError> {
        let status = match status.code() {
            Some(0) => return Ok(()),
            Some(code) => format!("exit code {code}"),
            None => status.to_string(),
        };
        Err(self.failed(&format!("{status}: {}", reason(&self.stderr.text()))))
    }

    fn failed(&self, why: &str) -> CopyError {
        CopyError::Store(format!("{}: {why}", self.program))
    }

    /// Returns whether the command has ended. Its status is not collected here, so that no other process can
    /// get its pid.
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
        // If this fails, the group has already ended.
        let _ = kill_process_group(group, Signal::TERM);
        let start = Instant::now();
        while !self.has_ended() && start.elapsed() < GRACE {
            thread::sleep(LONGEST_PAUSE);
        }
        // This also ends processes of the group that outlived the command.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Returns the last message of a command. It is the last line. If that line continues earlier ones, they are
/// part of the message: `rclone` writes the cause on the first line of a message, and begins the other lines
/// with a tab or with `caused by`.
fn reason(stderr: &str) -> String {
    let mut message: Vec<&str> = Vec::new();
    for line in stderr.lines().rev().filter(|line| !line.trim().is_empty()) {
        message.insert(0, line.trim());
        if !line.starts_with(char::is_whitespace) && !line.starts_with("caused by") {
            break;
        }
    }
    if message.is_empty() { NO_MESSAGE.to_owned() } else { printable(&message.join(" "), MAX_REASON_CHARS) }
}

fn cannot_start(program: &str, why: &io::Error) -> String {
    format!("cannot start {program}: {why}: install it, or correct `store_command`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_last_line_with_the_lines_that_it_continues() {
        let rclone = "2026/11/29 ERROR : Attempt 1/1 failed\n2026/11/29 Failed to copyto: NoSuchBucket: none\n\
                      \tstatus code: 404\ncaused by: a\u{1b}[2J\n\n";
        let expected =
            "2026/11/29 Failed to copyto: NoSuchBucket: none status code: 404 caused by: a\\u{1b}[2J";
        assert_eq!(reason(rclone), expected);
        assert_eq!(reason("cp: no space left\n"), "cp: no space left");
        assert_eq!(reason(" \n"), NO_MESSAGE);
    }
}
