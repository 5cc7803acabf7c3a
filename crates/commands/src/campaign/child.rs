//! What is started on a host: a shell that runs one command, and stops it when its standard input ends or its
//! time is over.
//!
//! Its input ends when the coordinator ends, however that happens, also over ssh: nothing outlives a
//! coordinator that is killed. A host that is cut off from the coordinator may not see that end for hours, so
//! it has the time, too.

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

/// A command on a host.
pub(crate) struct Started {
    child: Child,
    /// Dropped to end its input, which stops it.
    input: Option<Sender<Infallible>>,
    stderr: StandardError,
}

/// The end of what a process says on its standard error, read in a thread as long as it speaks.
#[derive(Default)]
pub(crate) struct StandardError {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl StandardError {
    /// Of a stream, if there is one.
    pub(crate) fn of(stream: Option<ChildStderr>) -> io::Result<Self> {
        let mut said = Self::default();
        said.reader = stream.map(|stream| keep(stream, Arc::clone(&said.kept))).transpose()?;
        Ok(said)
    }

    /// What it has said once it has ended, or soon after.
    pub(crate) fn text(&self) -> String {
        // It may be held by what outlives the process: what is there by now is enough.
        let since = Instant::now();
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) && since.elapsed() < A_MOMENT {
            thread::sleep(POLL);
        }
        String::from_utf8_lossy(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// A script to start on a host.
pub(crate) struct Script<'a> {
    /// What follows [`SHELL`].
    pub(crate) text: &'a str,
    pub(crate) arguments: &'a [String],
    /// Written to its standard input, part after part, in a thread of its own: a host that does not read
    /// does not block the coordinator.
    pub(crate) input: Vec<Vec<u8>>,
    /// Where its standard output goes.
    pub(crate) output: Stdio,
    /// The host ends it after this time.
    pub(crate) limit: Duration,
}

impl Started {
    /// Starts `script` on `host`, after [`SHELL`].
    pub(crate) fn start(host: &Host, script: Script<'_>) -> Result<Self, String> {
        let Script { text, arguments, input, output, limit } = script;
        let times = [limit.as_secs() + 1, GRACE.as_secs()].map(|it| it.to_string());
        let arguments: Vec<String> = times.into_iter().chain(arguments.iter().cloned()).collect();
        let mut command = command(host, &format!("{SHELL}{text}"), &arguments);
        command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::piped());
        // A signal of the terminal is for the coordinator, which then stops what it started.
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|why| format!("{} cannot be started: {why}", command.get_program().to_string_lossy()))?;
        let (stderr, stdin) = (child.stderr.take(), child.stdin.take());
        let (hold, held) = mpsc::channel::<Infallible>();
        // From here on its drop stops it.
        let mut started = Self { child, input: Some(hold), stderr: StandardError::default() };
        let no_thread = |why| format!("this machine gives no thread for what it is told and says: {why}");
        started.stderr = StandardError::of(stderr).map_err(no_thread)?;
        if let Some(mut stdin) = stdin {
            let feed = move || {
                // A command that has ended says why by its exit status.
                let _ = input.iter().try_for_each(|part| stdin.write_all(part));
                // Until `hold` is dropped.
                let _ = held.recv();
            };
            thread::Builder::new().spawn(feed).map_err(no_thread)?;
        }
        Ok(started)
    }

    /// Its standard output, if it is a pipe.
    pub(crate) fn output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Whether it has ended, and how.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops it: first by the end of its input, by which its shell stops what it runs and removes its folder;
    /// if the shell hangs, by a signal that has the same effect; at last by force, with all that it started.
    pub(crate) fn stop(&mut self) {
        drop(self.input.take());
        let group = Pid::from_child(&self.child);
        for (wait, signal) in [(GRACE + A_FEW_SECONDS, Signal::TERM), (A_FEW_SECONDS, Signal::KILL)] {
            let since = Instant::now();
            while since.elapsed() < wait {
                if self.ended().is_some() {
                    return;
                }
                thread::sleep(POLL);
            }
            // It has not been waited for, so its number is still its own.
            let _ = kill_process_group(group, signal);
        }
        let _ = self.child.wait();
    }

    /// What it said that ended it: its last `error:` line, or else its last line.
    pub(crate) fn last_words(&self) -> String {
        last_words(&self.stderr.text())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits for `child`, which is killed after `most`: `None` then.
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

/// The command line: `via`, then a shell. Over ssh the whole line is quoted.
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
    // The coordinator's own settings, and the credentials of a store, are not those of what it starts.
    remove_variables(&mut command, &["TALKPATH_", "AWS_", "RCLONE_"]);
    command
}

/// Leaves out of the environment of `command` the variables whose names begin with one of `prefixes`.
pub(crate) fn remove_variables(command: &mut Command, prefixes: &[&str]) {
    let is_removed = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_removed(&name.to_string_lossy())) {
        command.env_remove(name);
    }
}

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

fn last_words(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().filter_map(|line| line.strip_prefix("error: ")).next_back();
    let line = error.or_else(|| lines().next_back()).unwrap_or("it said nothing");
    printable(line, MOST_SHOWN)
}

/// `BatchMode` lets ssh prompt for nothing. The other options end it if the host does not answer, or no
/// longer does.
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
/// What every script begins with.
///
/// Its arguments: the time in seconds after which the script is ended, the grace in seconds that its command
/// then has, and the script's own arguments. `$d` is an empty folder, and file descriptor 3 is the script's
/// standard input. While the script waits for a process, `$r` is the process's number.
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
/// How long what runs has to end by itself; then its shell kills it. A run waits 10 s for a far end that is
/// silent, and writes down what it has.
const GRACE: Duration = Duration::from_secs(30);
/// Chosen: what a shell needs to notice, and to remove a folder.
const A_FEW_SECONDS: Duration = Duration::from_secs(5);
/// Chosen: nothing here is timed to less.
const POLL: Duration = Duration::from_millis(20);
const A_MOMENT: Duration = Duration::from_millis(500);
/// Bytes of standard error that are kept. Chosen.
const MOST_KEPT: usize = 16_384;
/// Characters of a reason. Chosen: a line of the journal.
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
    fn what_does_not_end_is_killed_and_what_is_not_read_keeps_nobody() {
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
        assert_eq!(last_words("note\nerror: no such host\nhelp: x\n"), "no such host");
        assert_eq!(last_words("bash: talkpath: not found\n\n"), "bash: talkpath: not found");
        assert_eq!(last_words(""), "it said nothing");
    }
}
