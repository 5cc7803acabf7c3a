//! Starts a command on a host, within a shell. The shell stops the command when its standard input ends, or
//! when its time is over.
//!
//! The standard input ends when the coordinator ends, even if the coordinator is killed, and also over ssh.
//! So no command outlives the coordinator. A host that loses its connection to the coordinator may learn of
//! that only after hours, so the shell has a time limit too.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use talkpath_scenario::campaign::Host;
use talkpath_units::printable;

use crate::terminal::shell_word;

/// A command that was started on a host. Dropping it stops the command.
pub(crate) struct Started {
    child: Child,
    /// The standard input of the command ends when this is dropped, and that stops the command.
    input: Option<Sender<Infallible>>,
    stderr: StandardError,
}

/// The last bytes that a process has written to its standard error. A thread reads them.
#[derive(Default)]
pub(crate) struct StandardError {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl StandardError {
    /// Starts the thread that reads `stream`. Without a stream the text stays empty.
    pub(crate) fn of(stream: Option<ChildStderr>) -> io::Result<Self> {
        let mut error = Self::default();
        error.reader = stream.map(|stream| keep(stream, Arc::clone(&error.kept))).transpose()?;
        Ok(error)
    }

    /// Returns the text of a process that has ended.
    pub(crate) fn text(&self) -> String {
        // Another process may still hold the stream open, so the wait for its end is short.
        let start = Instant::now();
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) && start.elapsed() < A_MOMENT {
            thread::sleep(POLL);
        }
        String::from_utf8_lossy(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// A script to start on a host.
pub(crate) struct Script<'a> {
    /// The text of the script. It follows [`SHELL`].
    pub(crate) text: &'a str,
    pub(crate) arguments: &'a [String],
    /// The parts that are written to the standard input of the script. A thread writes them, so that a host
    /// that does not read cannot block the coordinator.
    pub(crate) input: Vec<Vec<u8>>,
    /// Where the standard output of the script goes.
    pub(crate) output: Stdio,
    /// The host stops the script after this time.
    pub(crate) limit: Duration,
}

impl Started {
    /// Starts `script` on `host`.
    pub(crate) fn start(host: &Host, script: Script<'_>) -> Result<Self, String> {
        let Script { text, arguments, input, output, limit } = script;
        let times = [limit.as_secs() + 1, GRACE.as_secs()].map(|seconds| seconds.to_string());
        let arguments: Vec<String> = times.into_iter().chain(arguments.iter().cloned()).collect();
        let mut command = command(host, &format!("{SHELL}{text}"), &arguments);
        command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::piped());
        // A signal of the terminal must reach only the coordinator, which then stops the command.
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|why| format!("{} cannot be started: {why}", command.get_program().to_string_lossy()))?;
        let (stderr, stdin) = (child.stderr.take(), child.stdin.take());
        let (input_open, wait_for_close) = mpsc::channel::<Infallible>();
        // If an error follows, `started` is dropped, and that stops the command.
        let mut started = Self { child, input: Some(input_open), stderr: StandardError::default() };
        let no_thread = |why| format!("cannot start a thread for the command's input and output: {why}");
        started.stderr = StandardError::of(stderr).map_err(no_thread)?;
        if let Some(mut stdin) = stdin {
            let feed = move || {
                // If writing fails, the command has ended, and its exit status says why.
                let _ = input.iter().try_for_each(|part| stdin.write_all(part));
                // The input stays open until `Started::input` is dropped.
                let _ = wait_for_close.recv();
            };
            thread::Builder::new().spawn(feed).map_err(no_thread)?;
        }
        Ok(started)
    }

    /// Takes the standard output of the command, if it is a pipe.
    pub(crate) fn output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Returns the exit status of the command if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops the command in three steps. First its input ends, so that the shell stops the command and
    /// removes its folder. If the shell does not end, it receives SIGTERM, which has the same effect. If that
    /// does not help either, the shell and everything that it started is killed.
    pub(crate) fn stop(&mut self) {
        drop(self.input.take());
        let group = Pid::from_child(&self.child);
        for (wait, signal) in [(GRACE + A_FEW_SECONDS, Signal::TERM), (A_FEW_SECONDS, Signal::KILL)] {
            let start = Instant::now();
            while start.elapsed() < wait {
                if self.ended().is_some() {
                    return;
                }
                thread::sleep(POLL);
            }
            // The child has not been waited for, so no other process can have its number.
            let _ = kill_process_group(group, signal);
        }
        let _ = self.child.wait();
    }

    /// Returns the reason why the command ended: its last line with `error:`, or its last line if it has no
    /// such line.
    pub(crate) fn last_message(&self) -> String {
        last_message(&self.stderr.text())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits until `child` ends. After the time `most` the child is killed, and the result is `None`.
pub(crate) fn wait_at_most(child: &mut Child, most: Duration) -> io::Result<Option<ExitStatus>> {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if since.elapsed() > most {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

/// Makes the command that runs `script` in a shell on `host`. The words of `via` come before the shell. For
/// ssh the whole line is quoted.
fn command(host: &Host, script: &str, arguments: &[String]) -> Command {
    let shell = ["sh", "-c", script, "talkpath"].map(str::to_owned);
    let words: Vec<String> = host.via.iter().cloned().chain(shell).chain(arguments.iter().cloned()).collect();
    let words: Vec<OsString> = match &host.ssh {
        None => words.into_iter().map(OsString::from).collect(),
        Some(name) => {
            let quoted = words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
            let ssh =
                SSH.iter().map(|word| (*word).to_owned()).chain(["--".to_owned(), name.clone(), quoted]);
            ssh.map(OsString::from).collect()
        }
    };
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    // The command must see neither the settings of the coordinator nor the credentials of its store.
    remove_variables(&mut command, &["TALKPATH_", "AWS_", "RCLONE_"]);
    command
}

/// Removes variables from the environment of `command` if their names begin with one of `prefixes`.
pub(crate) fn remove_variables(command: &mut Command, prefixes: &[&str]) {
    let is_removed = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_removed(&name.to_string_lossy())) {
        command.env_remove(name);
    }
}

/// Starts a thread that reads `stream` and keeps its last bytes.
fn keep(mut stream: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&buffer[..read]);
            let beyond = kept.len().saturating_sub(MOST_KEPT);
            kept.drain(..beyond);
        }
    })
}

fn last_message(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().filter_map(|line| line.strip_prefix("error: ")).next_back();
    let line = error.or_else(|| lines().next_back()).unwrap_or("it said nothing");
    printable(line, MOST_SHOWN)
}

/// The ssh command. With `BatchMode` ssh does not prompt. The other options end ssh if the host does not
/// answer, or stops answering.
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
/// The beginning of every script.
///
/// Its arguments are the time in seconds after which the script is stopped, the time in seconds that its
/// command then has to end, and the arguments of the script. `$d` is an empty folder, and file descriptor 3
/// is the standard input of the script. While the script waits for a process, `$r` is the number of that
/// process.
///
/// `read_file BYTES FILE` copies that number of bytes from the input to a file, by POSIX's `dd` with blocks
/// of one byte. `run COMMAND...` runs a command until it ends or the input does, and returns its exit code.
pub(crate) const SHELL: &str = r#"
umask 077
t=$1 g=$2 r= v= w=
shift 2
d=$(mktemp -d) || exit 9
trap 'kill $v $w 2>/dev/null; rm -rf "$d"' EXIT
halt() {
  trap : HUP INT TERM
  if test -n "$r"; then
    ( kill "$r"; sleep "$g"; kill -9 "$r" ) </dev/null >/dev/null 2>&1 3<&- &
    k=$!
    wait "$r"
    kill "$k" 2>/dev/null
  fi
  exit 9
}
trap halt HUP INT TERM
( s=; trap 'kill $s; exit' TERM; sleep "$t" & s=$!; wait "$s"; kill "$$" ) </dev/null >/dev/null 2>&1 &
v=$!
exec 3<&0
wait_for() { r=$1; wait "$1"; c=$?; r=; return "$c"; }
read_file() { dd bs=1 count="$1" of="$2" <&3 2>/dev/null & wait_for "$!"; }
run() {
  "$@" </dev/null 3<&- &
  r=$!
  ( cat >/dev/null; kill "$$" ) <&3 >/dev/null 2>&1 3<&- &
  w=$!
  exec 3<&-
  wait_for "$r"
}
"#;
/// How long a command has to end after its input has ended. After that its shell kills it. The time is enough
/// for a run, which waits 10 s for a silent far host and then writes its records.
const GRACE: Duration = Duration::from_secs(30);
/// How long a shell may take to notice the end of its input and to remove its folder (chosen).
const A_FEW_SECONDS: Duration = Duration::from_secs(5);
/// How often a waiting thread checks (chosen: no time here has to be more exact).
const POLL: Duration = Duration::from_millis(20);
/// How long the text of a process that has ended may take to arrive (chosen).
const A_MOMENT: Duration = Duration::from_millis(500);
/// How many bytes of standard error are kept (chosen).
const MOST_KEPT: usize = 16_384;
/// How many characters a reason has at most (chosen: a line of the journal stays readable).
const MOST_SHOWN: usize = 400;

#[cfg(test)]
mod tests {
    use talkpath_scenario::Source;
    use talkpath_scenario::campaign::Campaign;

    use super::*;

    const A_MINUTE: Duration = Duration::from_secs(60);

    fn local() -> Host {
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
    fn a_process_that_does_not_end_is_killed_and_input_that_is_not_read_blocks_nobody() {
        let since = Instant::now();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(wait_at_most(&mut child, Duration::from_millis(100)).unwrap(), None);
        let mut child = Command::new("true").spawn().unwrap();
        assert!(wait_at_most(&mut child, Duration::from_secs(30)).unwrap().unwrap().success());
        // More than a pipe holds, and nobody reads it.
        let host = local();
        let script = Script {
            text: "run sleep 5",
            arguments: &[],
            input: vec![vec![0; 1 << 20]],
            output: Stdio::null(),
            limit: A_MINUTE,
        };
        let mut started = Started::start(&host, script).unwrap();
        assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
        assert!(started.ended().is_none());
    }

    /// How `body` ends after [`SHELL`], with a time and a grace of a second, and whether its folder is left.
    fn ended(body: &str, limit: &str) -> (Option<i32>, usize, Duration) {
        let folder = tempfile::tempdir().unwrap();
        let since = Instant::now();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{SHELL}{body}"), "talkpath", limit, "1"]).env("TMPDIR", folder.path());
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = shell.spawn().unwrap();
        // Its input never ends by itself.
        let input = child.stdin.take();
        let status = wait_at_most(&mut child, Duration::from_secs(20)).unwrap();
        drop(input);
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        (status.and_then(|status| status.code()), left, since.elapsed())
    }

    #[test]
    fn a_host_that_is_cut_off_ends_what_it_runs_and_removes_its_folder() {
        assert_eq!(ended("run sh -c 'exit 4'", "60").0, Some(4));
        for body in ["run sleep 60", "read_file 9 \"$d/key\"", "yes & wait_for \"$!\""] {
            let (code, left, _) = ended(body, "1");
            assert_eq!((code, left), (Some(9), 0), "{body}");
        }
        // One that heeds no signal.
        let (code, left, took) = ended("run sh -c 'trap : TERM; while :; do sleep 1; done'", "1");
        assert_eq!((code, left), (Some(9), 0));
        assert!(took >= Duration::from_secs(2), "{took:?}");
    }

    #[test]
    fn the_reason_is_the_last_error() {
        assert_eq!(last_message("note\nerror: no such host\nhelp: x\n"), "no such host");
        assert_eq!(last_message("bash: talkpath: not found\n\n"), "bash: talkpath: not found");
        assert_eq!(last_message(""), "it said nothing");
    }
}
