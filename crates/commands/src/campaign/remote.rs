//! Starts a shell script on a host of a campaign, over ssh or on this machine.
//!
//! Every script begins with `scripts/begin.sh`. That part stops the script when its standard input ends, or
//! when its time limit is over. The standard input ends when the coordinator ends, even if the coordinator is
//! killed, and also over ssh. So no command outlives the coordinator. A host that loses its connection to the
//! coordinator may learn of that only after hours, so each script has a time limit, too.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use talkpath_scenario::campaign::Host;
use talkpath_units::printable;

use super::process::{POLL_INTERVAL, StderrTail, remove_variables};
use crate::terminal::shell_word;

/// The beginning of every script.
const BEGIN: &str = include_str!("scripts/begin.sh");
/// The exit code of a script that was stopped, or that could not make its folder.
pub(super) const SCRIPT_FAILED: i32 = 9;
/// The exit code of ssh if it cannot reach the host (ssh(1)).
pub(super) const SSH_FAILED: i32 = 255;
/// The message of a process that ended without a message.
pub(super) const NO_MESSAGE: &str = "no error message";
/// The time that a command has to end when it is stopped. After that it is killed. A run needs up to 10 s to
/// give up a silent far host, and then it writes its records.
const GRACE: Duration = Duration::from_secs(30);
/// The time that a script has to end besides its command, to see that it is stopped and to remove its folder.
/// We chose 5 s because a loaded host may need a second or two.
const SCRIPT_END_TIME: Duration = Duration::from_secs(5);
/// A message is cut after this many characters. We chose 400 so that a line of the journal stays readable.
const MAX_MESSAGE_CHARS: usize = 400;
/// The ssh command. With `BatchMode` ssh does not ask for passwords. The other options end ssh if the host
/// does not answer, or stops answering.
const SSH: [&str; 9] = [
    "ssh",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=15",
    "-o",
    "ServerAliveCountMax=4",
];

/// A script to start on a host.
pub(super) struct Script<'a> {
    /// The part of the script that follows [`BEGIN`].
    pub(super) text: &'a str,
    pub(super) arguments: &'a [String],
    /// The files that the script reads from its standard input.
    pub(super) input: Vec<Vec<u8>>,
    /// Where the standard output of the script goes.
    pub(super) stdout: Stdio,
    /// The time after which the host stops the script.
    pub(super) limit: Duration,
}

/// A script that was started on a host. Dropping it stops the script.
pub(super) struct RemoteCommand {
    /// The shell on this machine, or ssh.
    child: Child,
    /// The standard input of the script stays open until this is dropped. Its end stops the script.
    open_input: Option<Sender<()>>,
    stderr: StderrTail,
}

impl RemoteCommand {
    pub(super) fn start(host: &Host, script: Script<'_>) -> Result<Self, String> {
        let mut command = shell_command(host, &script);
        command.stdin(Stdio::piped()).stdout(script.stdout).stderr(Stdio::piped());
        // A signal of the terminal must reach only the coordinator, which then stops the script.
        command.process_group(0);
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        // If an error follows, `remote` is dropped, and that stops the script.
        let mut remote = Self { child, open_input: None, stderr: StderrTail::default() };
        let no_thread = |error| format!("cannot start a thread: {error}");
        remote.stderr = StderrTail::new(stderr).map_err(no_thread)?;
        if let Some(stdin) = stdin {
            let (open_input, closed) = mpsc::channel();
            remote.open_input = Some(open_input);
            // A thread writes the input, so that a host that does not read cannot block the coordinator.
            thread::Builder::new()
                .spawn(move || write_input(stdin, &script.input, &closed))
                .map_err(no_thread)?;
        }
        Ok(remote)
    }

    /// Takes the standard output of the script, if it is a pipe.
    pub(super) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Returns the exit status of the script if it has ended.
    pub(super) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops the script in three steps. First its input ends, so that the shell stops its command and removes
    /// its folder. If the shell does not end, it receives SIGTERM, which has the same effect. If that does
    /// not help either, the shell and everything that it started is killed.
    pub(super) fn stop(&mut self) {
        drop(self.open_input.take());
        if self.has_ended_within(GRACE + SCRIPT_END_TIME) {
            return;
        }
        // The pid cannot belong to another process, because the child has not been waited for.
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::TERM);
        if self.has_ended_within(SCRIPT_END_TIME) {
            return;
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }

    fn has_ended_within(&mut self, timeout: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < timeout {
            if self.exit_status().is_some() {
                return true;
            }
            thread::sleep(POLL_INTERVAL);
        }
        false
    }

    /// Returns the reason why the script ended: the last line of its standard error that begins with
    /// `error:`, or its last line if no line does.
    pub(super) fn last_message(&self) -> String {
        last_message(&self.stderr.text())
    }
}

impl Drop for RemoteCommand {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Writes the input of a script, and keeps the input open until the sender of `closed` is dropped.
fn write_input(mut stdin: ChildStdin, input: &[Vec<u8>], closed: &Receiver<()>) {
    for file in input {
        if stdin.write_all(file).is_err() {
            // The script has ended, and its exit status says why.
            return;
        }
    }
    // Nothing is ever sent, so this waits until the sender is dropped.
    let _ = closed.recv();
}

/// Makes the command that runs `script` in a shell on `host`. The words of `via`, such as `sudo`, come before
/// the shell. ssh gives the host one line, in which each word is quoted.
fn shell_command(host: &Host, script: &Script<'_>) -> Command {
    // sleep(1) of POSIX takes whole seconds. The limit is rounded up, so that no script is stopped too early.
    let limit_s = script.limit.as_secs() + 1;
    let mut words = host.via.clone();
    words.extend(["sh", "-c", &format!("{BEGIN}{}", script.text), "talkpath"].map(str::to_owned));
    words.extend([limit_s.to_string(), GRACE.as_secs().to_string()]);
    words.extend_from_slice(script.arguments);
    if let Some(name) = &host.ssh {
        let line = words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        words = SSH.map(str::to_owned).to_vec();
        words.extend(["--".to_owned(), name.clone(), line]);
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    // The script must see neither the settings of the coordinator nor the credentials of its store.
    remove_variables(&mut command, &["TALKPATH_", "AWS_", "RCLONE_"]);
    command
}

fn last_message(stderr: &str) -> String {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let last_error = lines().filter_map(|line| line.strip_prefix("error: ")).next_back();
    let message = last_error.or_else(|| lines().next_back()).unwrap_or(NO_MESSAGE);
    printable(message, MAX_MESSAGE_CHARS)
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::Source;
    use talkpath_scenario::campaign::Campaign;

    use super::*;
    use crate::campaign::process::wait_with_timeout;

    fn local_host() -> Host {
        let text = "[host.a]\nlocal = true\n[host.b]\naddress = \"192.0.2.1\"\n[measure.m]\n\
                    [schedule]\nevery = \"1 s\"\ndays = 1\n";
        Campaign::load(&Source::new("c.toml", text)).unwrap().hosts.remove(0)
    }

    #[test]
    fn a_word_survives_a_shell() {
        for word in ["plain", "two words", "it's", "$(rm)", "", "a\nb", "\\"] {
            let output =
                Command::new("sh").args(["-c", &format!("printf %s {}", shell_word(word))]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }

    #[test]
    fn input_that_is_not_read_blocks_nobody() {
        let start = Instant::now();
        let host = local_host();
        let script = Script {
            text: "run sleep 5",
            arguments: &[],
            // This is more than a pipe holds.
            input: vec![vec![0; 1 << 20]],
            stdout: Stdio::null(),
            limit: Duration::from_secs(60),
        };
        let mut remote = RemoteCommand::start(&host, script).unwrap();
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
        assert!(remote.exit_status().is_none());
    }

    struct Ended {
        code: Option<i32>,
        /// The number of folders that the script has left.
        folders_left: usize,
        took: Duration,
    }

    /// Runs [`BEGIN`] and `body` with a grace of a second. The standard input of the script does not end.
    fn run_script(body: &str, limit: &str) -> Ended {
        let folder = tempfile::tempdir().unwrap();
        let start = Instant::now();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{BEGIN}{body}"), "talkpath", limit, "1"]).env("TMPDIR", folder.path());
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = shell.spawn().unwrap();
        let open_input = child.stdin.take();
        let status = wait_with_timeout(&mut child, Duration::from_secs(20)).unwrap();
        drop(open_input);
        Ended {
            code: status.and_then(|status| status.code()),
            folders_left: std::fs::read_dir(folder.path()).unwrap().count(),
            took: start.elapsed(),
        }
    }

    #[test]
    fn a_host_that_is_cut_off_ends_what_it_runs_and_removes_its_folder() {
        assert_eq!(run_script("run sh -c 'exit 4'", "60").code, Some(4));
        for body in ["run sleep 60", "read_file 9 \"$folder/key\"", "yes & wait_for \"$!\""] {
            let ended = run_script(body, "1");
            assert_eq!((ended.code, ended.folders_left), (Some(SCRIPT_FAILED), 0), "{body}");
        }
        let ignores_signals = run_script("run sh -c 'trap : TERM; while :; do sleep 1; done'", "1");
        assert_eq!((ignores_signals.code, ignores_signals.folders_left), (Some(SCRIPT_FAILED), 0));
        assert!(ignores_signals.took >= Duration::from_secs(2), "{:?}", ignores_signals.took);
    }

    #[test]
    fn the_reason_is_the_last_error() {
        assert_eq!(last_message("note\nerror: no such host\nhelp: x\n"), "no such host");
        assert_eq!(last_message("bash: talkpath: not found\n\n"), "bash: talkpath: not found");
        assert_eq!(last_message(""), NO_MESSAGE);
    }
}
