//! Runs the program in a folder of its own, without the environment's TALKPATH_* variables.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A folder in which the program runs; gone when dropped.
pub(crate) struct Bench {
    folder: TempDir,
}

/// What a finished program left.
pub(crate) struct Seen {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// The program, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.prepared(Command::new(env!("CARGO_BIN_EXE_talkpath")), arguments)
    }

    /// The program under a limit of file descriptors that leaves it `free` of them beside its standard
    /// streams, and that limit (`ulimit -n`). The program inherits those that this test's parent left open,
    /// such as a lock's: they take numbers below the limit, but are not the program's.
    pub(crate) fn with_descriptors(&self, free: usize, kind: &str, arguments: &[&str]) -> (Command, u64) {
        let mut taken = inherited_descriptors();
        taken.extend([0, 1, 2]);
        let limit = (0..).filter(|number| !taken.contains(number)).nth(free).expect("numbers do not end");
        (self.limited(&format!("{kind} {limit}"), arguments), limit)
    }

    /// The program under the limits of a shell's `ulimit`, such as `-v 3000000`, not started yet.
    pub(crate) fn limited(&self, limit: &str, arguments: &[&str]) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_talkpath")]);
        self.prepared(shell, arguments)
    }

    pub(crate) fn prepared(&self, mut command: Command, arguments: &[&str]) -> Command {
        // Names need not be UTF-8.
        let is_ours = |name: &str| name.starts_with("TALKPATH_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_ours(&name.to_string_lossy())) {
            command.env_remove(name);
        }
        command.env("NO_COLOR", "1").current_dir(self.folder.path()).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Seen {
        Seen::of(self.command(arguments).output().unwrap())
    }

    /// As [`Bench::run`], for arguments with the emulated arena; `None` where this machine does not allow
    /// that, which is printed, and leaves nothing behind.
    #[track_caller]
    pub(crate) fn emulate(&self, arguments: &[&str]) -> Option<Seen> {
        let seen = self.run(arguments);
        if seen.code == Some(3) {
            seen.fails(3, &["help:"]);
            assert!(self.runs().is_empty(), "nothing runs where an arena is missing");
            eprintln!("SKIP: the emulated arena is not available here: {}", seen.err);
            return None;
        }
        Some(seen)
    }

    /// Starts the program, its output kept.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The run directories that exist, in order of name.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        entries(&self.path("talkpath-runs"))
    }

    /// The one run directory.
    pub(crate) fn only_run(&self) -> PathBuf {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].clone()
    }
}

impl Seen {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Waits for a program that was started.
    pub(crate) fn of_child(child: Child) -> Self {
        Self::of(child.wait_with_output().unwrap())
    }

    /// The program ended with `code`, said why, and did not panic.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, says: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "standard error: {}", self.err);
        for text in says {
            assert!(self.err.contains(text), "no `{text}` in: {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    /// The program did what it was asked.
    #[track_caller]
    pub(crate) fn succeeds(&self) -> &Self {
        assert_eq!(self.code, Some(0), "standard error: {}", self.err);
        self
    }

    /// Standard output as the summary, and nothing beside it.
    #[track_caller]
    pub(crate) fn summary(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{why}: {}", self.out))
    }
}

/// A scenario of this `duration` with a call for each name and its transport, whose frames the far host sends
/// back. A transport is what stands behind `transport =`, and may have more of the flow's lines behind it.
pub(crate) fn calls(duration: &str, flows: &[(&str, &str)]) -> String {
    let mut text = format!("name = \"calls\"\nduration = \"{duration}\"\ndrain = \"1 s\"\npath = \"lan\"\n");
    for (name, transport) in flows {
        text += &format!(
            "\n[flow.{name}]\ntransport = {transport}\nworkload = {{ kind = \"voice\", echo = true }}\n"
        );
    }
    text
}

/// The open file descriptors that a program inherits from this one: those that are not closed on exec.
fn inherited_descriptors() -> BTreeSet<u64> {
    let is_inherited = |number: &u64| {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        // O_CLOEXEC of fcntl.h, where flags are octal (proc_pid_fdinfo(5)).
        flags
            .and_then(|flags| u64::from_str_radix(flags.trim(), 8).ok())
            .is_some_and(|it| it & 0o2_000_000 == 0)
    };
    let open = entries(Path::new("/proc/self/fd"));
    open.iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok()).filter(is_inherited).collect()
}

/// What a folder holds, in order of name; nothing where it is not there.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = found.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Names in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    entries(folder).iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

pub(crate) fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The repetitions that the journals of an unfinished `run` hold: every line that is whole.
pub(crate) fn journal_lines(run: &Path) -> Vec<Value> {
    let journals = entries(&run.join("parts")).into_iter();
    let texts = journals.filter(|path| path.extension().is_some_and(|it| it == "jsonl")).map(|path| {
        let text = fs::read_to_string(path).unwrap();
        text.rsplit_once('\n').map_or_else(String::new, |(whole, _)| whole.to_owned())
    });
    let texts: Vec<String> = texts.collect();
    texts.iter().flat_map(|text| text.lines()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A server that ends with the test.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Served {
    pub(crate) fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let mut all = vec!["serve", "--bind", "127.0.0.1:0"];
        all.extend(arguments);
        Self::of(bench.command(&all))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let line = first_line(child.stdout.as_mut().unwrap());
        let address = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `condition` holds; gives up after a time that only a hang reaches.
#[track_caller]
pub(crate) fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    wait_at_most(Duration::from_secs(30), what, condition);
}

/// Waits until `condition` holds; gives up after `time`.
#[track_caller]
pub(crate) fn wait_at_most(time: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let give_up = Instant::now() + time;
    while !condition() {
        assert!(Instant::now() < give_up, "{what} did not happen within {} s", time.as_secs());
        thread::sleep(Duration::from_millis(2));
    }
}

/// Reads what a running child writes until it has written a whole line.
pub(crate) fn first_line(stream: &mut impl Read) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

/// A short call: one cell, and milliseconds to simulate.
pub(crate) const SHORT: &str = "\
name = \"short call\"
duration = \"2 s\"
path = \"home-adsl\"

[flow.call]
transport = \"udp\"
workload = { kind = \"voice\", codec = \"g711\", echo = true }
";

/// One second of a call, and what an emulated run of it takes besides.
pub(crate) const CALL: &str = r#"
name = "a call"
duration = "1 s"
drain = "200 ms"
path = "home-adsl"

[flow.call]
transport = "udp"
workload = { kind = "voice", codec = "g711", echo = true }
"#;

/// Many repetitions, so that a signal comes in the middle.
pub(crate) const LONG: &str = "\
name = \"long\"
duration = \"20 s\"
repeat = 40
path = \"home-adsl\"

[flow.call]
transport = \"udp\"
workload = { kind = \"voice\", codec = \"g711\", echo = true }

[flow.upload]
transport = \"tcp\"
workload = { kind = \"bulk\" }

[sweep]
\"flow.call.transport\" = [\"udp\", \"tcp\"]
";
