//! The child processes that the page started: the program itself, each in its own process group, so that a
//! Ctrl-C in the terminal of the window does not reach it.
//!
//! A child is started with `--progress json`, and its standard error is read line by line. What it says is
//! kept as a state that does not grow: the last progress, the last figures of each cell, the last answers and
//! the last messages.

use std::collections::{BTreeMap, VecDeque};
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use talkpath_experiment::store::lock::O_NOFOLLOW;

use crate::files::{PRIVATE, make_private_folder, read_plain};

/// The most runs at a time. We chose 4: in real time more would disturb each other.
const MAX_RUNS: usize = 4;
/// The most servers at a time. We chose 2, one for each kind of guest.
const MAX_SERVERS: usize = 2;
/// The most short commands at a time: pages, checks. We chose 4.
const MAX_SHORT: usize = 4;
/// The most jobs that are remembered. We chose 50, which a person can overlook.
const MAX_JOBS: usize = 50;
/// The most messages of a job that are remembered. We chose 500 lines, more than a screen shows.
const MAX_MESSAGES: usize = 500;
/// The most cells whose last figures are remembered. We chose 64: a table of more is read in the report.
const MAX_CELLS: usize = 64;
/// The longest line of a child, B. A line with the figures of 64 flows has 20 kB.
const MAX_LINE: u64 = 1 << 20;
/// The most of standard output that is kept, B. The result of a run is in its directory.
const MAX_OUTPUT: u64 = 1 << 20;
/// How long a short command may take.
const SHORT_TIME: Duration = Duration::from_secs(120);
/// How often a child that has closed its output is asked whether it has ended.
const WAIT_INTERVAL: Duration = Duration::from_millis(20);
/// How long a server has to end before it is killed.
const SERVER_END_TIME: Duration = Duration::from_secs(3);
/// The file with the names of the run directories that windows on this folder started, a JSON object a line.
const OURS: &str = "started.jsonl";
/// The most bytes of that file that are read: 100,000 runs.
const MAX_OURS: u64 = 16 << 20;

/// What a job is bounded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// It makes a run directory. It may go on without the window.
    Run,
    /// It serves others until it is ended. It ends with the window.
    Server,
    /// It writes a page, and ends by itself.
    Short,
}

/// What is to be started.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) kind: JobKind,
    /// The name of the task, for the page.
    pub(crate) task: String,
    /// The words behind the program's name.
    pub(crate) words: Vec<String>,
    /// The far host of the run, if it has one.
    pub(crate) to: Option<String>,
    /// Folders that must be there when it starts.
    pub(crate) folders: Vec<PathBuf>,
}

/// All jobs.
pub(crate) struct Jobs {
    program: PathBuf,
    out: PathBuf,
    quote: fn(&str) -> String,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    jobs: VecDeque<Arc<Job>>,
    next: u64,
}

/// A child process, running or ended.
pub(crate) struct Job {
    pub(crate) id: u64,
    kind: JobKind,
    task: String,
    command: String,
    to: Option<String>,
    begun: Instant,
    state: Mutex<JobState>,
    child: Mutex<Child>,
}

#[derive(Default)]
struct JobState {
    progress: Value,
    answers: BTreeMap<String, Value>,
    figures: BTreeMap<u64, Value>,
    messages: VecDeque<Value>,
    /// The number of messages so far, those that were forgotten included.
    message_count: u64,
    directory: Option<PathBuf>,
    output: String,
    is_cancelled: bool,
    ended: Option<Ended>,
}

#[derive(Clone, Copy)]
struct Ended {
    exit_code: i32,
    after: Duration,
}

/// A run directory that a window on this folder started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) name: String,
    pub(crate) to: Option<String>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Jobs {
    pub(crate) fn new(program: PathBuf, out: &Path, quote: fn(&str) -> String) -> Self {
        Self { program, out: out.to_path_buf(), quote, list: Mutex::default() }
    }

    /// The command line that does the same in a shell.
    pub(crate) fn command_text(&self, words: &[String]) -> String {
        let mut text = "talkpath".to_owned();
        for word in words {
            text.push(' ');
            text.push_str(&(self.quote)(word));
        }
        text
    }

    /// Starts a job.
    ///
    /// # Errors
    /// Returns what is wrong, for the user: too many jobs, or the system starts no process.
    pub(crate) fn start(&self, order: Order) -> Result<Arc<Job>, String> {
        let Order { kind, task, words, to, folders } = order;
        let mut list = locked(&self.list);
        let (most, what) = match kind {
            JobKind::Run => (MAX_RUNS, "runs"),
            JobKind::Server => (MAX_SERVERS, "far ends"),
            JobKind::Short => (MAX_SHORT, "commands"),
        };
        let running = list.jobs.iter().filter(|job| job.kind == kind && job.is_running()).count();
        if running >= most {
            return Err(format!(
                "{running} {what} go on already, which is the bound: wait for one, or cancel it"
            ));
        }
        for folder in &folders {
            make_private_folder(folder).map_err(|why| why.to_string())?;
        }
        let mut child = self.spawn(&words).map_err(|why| format!("cannot start talkpath: {why}"))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        list.next += 1;
        let job = Arc::new(Job {
            id: list.next,
            kind,
            task,
            command: self.command_text(&words),
            to,
            begun: Instant::now(),
            state: Mutex::default(),
            child: Mutex::new(child),
        });
        let (watched, out) = (Arc::clone(&job), self.out.clone());
        let watching = thread::Builder::new().name("job".to_owned()).spawn(move || {
            let printing = stdout.map(|stdout| {
                let job = Arc::clone(&watched);
                thread::Builder::new().name("job-output".to_owned()).spawn(move || job.read_output(stdout))
            });
            if let Some(stderr) = stderr {
                watched.read_events(stderr, &out);
            }
            if let Some(Ok(printing)) = printing {
                let _ = printing.join();
            }
            watched.wait();
        });
        if let Err(why) = watching {
            let _ = locked(&job.child).kill();
            return Err(format!("cannot start a thread: {why}"));
        }
        list.jobs.push_back(Arc::clone(&job));
        while list.jobs.len() > MAX_JOBS {
            let Some(oldest) = list.jobs.iter().position(|job| !job.is_running()) else { break };
            list.jobs.remove(oldest);
        }
        Ok(job)
    }

    fn spawn(&self, words: &[String]) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--progress=json").arg("--out").arg(&self.out);
        // The words alone say what runs, as the page shows them.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TALKPATH_") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).spawn()
    }

    /// Runs a short command to its end, and returns what it printed and its exit code.
    ///
    /// # Errors
    /// Returns what is wrong, for the user.
    pub(crate) fn run_short(&self, task: &str, words: Vec<String>) -> Result<Finished, String> {
        let job = self.start(Order {
            kind: JobKind::Short,
            task: task.to_owned(),
            words,
            to: None,
            folders: Vec::new(),
        })?;
        while job.is_running() {
            if job.begun.elapsed() > SHORT_TIME {
                let _ = locked(&job.child).kill();
                return Err(format!("it took longer than {} s", SHORT_TIME.as_secs()));
            }
            thread::sleep(WAIT_INTERVAL);
        }
        let state = locked(&job.state);
        let exit_code = state.ended.map_or(-1, |ended| ended.exit_code);
        let is_error = |message: &&Value| message["event"] == "error";
        let errors = state.messages.iter().filter(is_error);
        let error = errors.filter_map(|message| message["text"].as_str()).collect::<Vec<_>>().join("\n");
        Ok(Finished { output: state.output.clone(), error, exit_code })
    }

    pub(crate) fn find(&self, id: u64) -> Option<Arc<Job>> {
        locked(&self.list).jobs.iter().find(|job| job.id == id).map(Arc::clone)
    }

    /// All jobs but the short ones, the newest first, without their messages.
    pub(crate) fn overview(&self) -> Vec<Value> {
        let jobs: Vec<Arc<Job>> = locked(&self.list).jobs.iter().rev().map(Arc::clone).collect();
        jobs.iter().filter(|job| job.kind != JobKind::Short).map(|job| job.describe(u64::MAX)).collect()
    }

    /// The commands that run, those of short jobs left out.
    pub(crate) fn running(&self) -> Vec<String> {
        let list = locked(&self.list);
        let running = list.jobs.iter().filter(|job| job.kind != JobKind::Short && job.is_running());
        running.map(|job| job.command.clone()).collect()
    }

    /// Asks all jobs to end.
    pub(crate) fn cancel_all(&self) {
        for job in &locked(&self.list).jobs {
            job.cancel();
        }
    }

    /// Ends servers and short commands. Runs go on. Returns the commands of those.
    pub(crate) fn end_what_is_not_left(&self) -> Vec<String> {
        let jobs: Vec<Arc<Job>> = locked(&self.list).jobs.iter().map(Arc::clone).collect();
        let (runs, others): (Vec<_>, Vec<_>) =
            jobs.into_iter().filter(|job| job.is_running()).partition(|job| job.kind == JobKind::Run);
        for job in &others {
            job.cancel();
        }
        let asked = Instant::now();
        while others.iter().any(|job| job.is_running()) && asked.elapsed() < SERVER_END_TIME {
            thread::sleep(WAIT_INTERVAL);
        }
        for job in others.iter().filter(|job| job.is_running()) {
            let _ = locked(&job.child).kill();
        }
        runs.iter().filter(|job| !locked(&job.state).is_cancelled).map(|job| job.command.clone()).collect()
    }

    /// The run directories that windows on this folder started.
    pub(crate) fn ours(&self) -> Vec<Started> {
        let bytes = read_plain(&self.out.join(PRIVATE).join(OURS), MAX_OURS).unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        lines
            .filter_map(|line| {
                let line: Value = serde_json::from_slice(line).ok()?;
                let to = line["to"].as_str().map(str::to_owned);
                Some(Started { name: line["name"].as_str()?.to_owned(), to })
            })
            .collect()
    }
}

/// A short command that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) output: String,
    pub(crate) error: String,
    pub(crate) exit_code: i32,
}

impl Job {
    fn is_running(&self) -> bool {
        locked(&self.state).ended.is_none()
    }

    /// Asks the child to end, as Ctrl-C does. A second time ends it at once.
    pub(crate) fn cancel(&self) {
        // The child is reaped under this lock alone, so the number still belongs to it.
        let child = locked(&self.child);
        if !self.is_running() {
            return;
        }
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::INT);
            locked(&self.state).is_cancelled = true;
        }
    }

    /// Waits until the child has ended, and notes how.
    fn wait(&self) {
        loop {
            let mut child = locked(&self.child);
            let ended = child.try_wait();
            if !matches!(ended, Ok(None)) {
                let status = ended.ok().flatten();
                let code = status.and_then(|status| status.code().or_else(|| Some(128 + status.signal()?)));
                locked(&self.state).ended =
                    Some(Ended { exit_code: code.unwrap_or(-1), after: self.begun.elapsed() });
                return;
            }
            drop(child);
            thread::sleep(WAIT_INTERVAL);
        }
    }

    fn read_output(&self, mut stdout: impl Read) {
        let mut kept = Vec::new();
        let _ = stdout.by_ref().take(MAX_OUTPUT).read_to_end(&mut kept);
        let text = String::from_utf8_lossy(&kept).into_owned();
        if self.kind == JobKind::Server {
            return;
        }
        locked(&self.state).output = text;
        // The child would wait if nobody read on.
        let _ = io::copy(&mut stdout, &mut io::sink());
    }

    fn read_events(&self, stderr: impl Read, out: &Path) {
        let mut lines = BufReader::new(stderr);
        let mut line = Vec::new();
        loop {
            line.clear();
            match lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => self.note(&line, out),
            }
        }
    }

    fn note(&self, line: &[u8], out: &Path) {
        let text = String::from_utf8_lossy(line);
        let plain = text.trim_end();
        // The page has no options to look up.
        if plain.is_empty() || plain.starts_with("For more information, try") {
            return;
        }
        let event: Value = serde_json::from_slice(line).unwrap_or_else(|_| {
            // Before the program has read its options, and in a panic, it prints plain text.
            json!({ "event": "error", "text": plain.strip_prefix("error: ").unwrap_or(plain) })
        });
        let mut state = locked(&self.state);
        match event["event"].as_str().unwrap_or_default() {
            "progress" => state.progress = event,
            "answer" => {
                let key = format!("{} {}", event["flow"], event["sweep"]);
                if state.answers.len() < MAX_CELLS || state.answers.contains_key(&key) {
                    state.answers.insert(key, event);
                }
            }
            "figures" => {
                let cell = event["cell"].as_u64().unwrap_or_default();
                if state.figures.len() < MAX_CELLS || state.figures.contains_key(&cell) {
                    state.figures.insert(cell, event);
                }
            }
            "directory" => {
                let path = PathBuf::from(event["path"].as_str().unwrap_or_default());
                self.note_ours(&path, out);
                state.directory = Some(path);
            }
            "repetition" => {}
            _ => {
                state.messages.push_back(event);
                state.message_count += 1;
                if state.messages.len() > MAX_MESSAGES {
                    state.messages.pop_front();
                }
            }
        }
    }

    /// Writes down that this window started the run in `path`.
    fn note_ours(&self, path: &Path, out: &Path) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600).custom_flags(O_NOFOLLOW);
        if let Ok(mut file) = options.open(out.join(PRIVATE).join(OURS)) {
            // Without the line the run is continued on the command line alone.
            let _ = writeln!(file, "{}", json!({ "name": name, "to": self.to }));
        }
    }

    /// The state for the page, with the messages from number `after` on.
    pub(crate) fn describe(&self, after: u64) -> Value {
        let state = locked(&self.state);
        let first = state.message_count - state.messages.len() as u64;
        let skipped = usize::try_from(after.saturating_sub(first)).unwrap_or(usize::MAX);
        let messages: Vec<&Value> = state.messages.iter().skip(skipped).collect();
        let directory = state.directory.as_ref().and_then(|path| path.file_name());
        json!({
            "id": self.id,
            "task": self.task,
            "command": self.command,
            "server": self.kind == JobKind::Server,
            "elapsed_s": state.ended.map_or_else(|| self.begun.elapsed(), |ended| ended.after).as_secs_f64(),
            "progress": state.progress,
            "answers": state.answers.values().collect::<Vec<_>>(),
            "figures": state.figures.values().collect::<Vec<_>>(),
            "messages": messages,
            "next_message": state.message_count,
            "run": directory.map(|name| name.to_string_lossy()),
            "cancelled": state.is_cancelled,
            "output": if after == u64::MAX { "" } else { state.output.as_str() },
            "exit_code": state.ended.map(|ended| ended.exit_code),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLEEP: &str = "exec sleep 60";

    fn jobs(folder: &Path) -> Jobs {
        make_private_folder(&folder.join(PRIVATE)).unwrap();
        Jobs::new(PathBuf::from("/bin/sh"), folder, str::to_owned)
    }

    /// Runs `script` in place of the program.
    fn order(kind: JobKind, script: &str) -> Order {
        let words = vec!["-c".to_owned(), script.to_owned()];
        Order { kind, task: "compare".to_owned(), words, to: Some("h".to_owned()), folders: Vec::new() }
    }

    fn ended(job: &Job) -> Value {
        let begun = Instant::now();
        while job.is_running() {
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not end");
            thread::sleep(WAIT_INTERVAL);
        }
        job.describe(0)
    }

    #[test]
    fn a_fifth_run_is_refused_and_a_cancelled_one_makes_way() {
        let out = tempfile::tempdir().unwrap();
        let jobs = jobs(out.path());
        let started: Vec<_> =
            (0..MAX_RUNS).map(|_| jobs.start(order(JobKind::Run, SLEEP)).unwrap()).collect();
        let refused = jobs.start(order(JobKind::Run, SLEEP)).err().unwrap();
        assert!(refused.contains("4 runs go on already"), "{refused}");
        assert_eq!(jobs.running().len(), MAX_RUNS);
        started[0].cancel();
        assert_eq!(ended(&started[0])["exit_code"], 128 + 2);
        jobs.start(order(JobKind::Run, SLEEP)).unwrap();
        jobs.cancel_all();
    }

    #[test]
    fn what_a_child_says_is_kept_within_bounds_and_its_directory_is_ours() {
        let out = tempfile::tempdir().unwrap();
        // The child is a shell: `--progress=json` and what follows are its arguments.
        let lines = r#"echo '{"event":"directory","path":"runs/2026-a"}' >&2
            for share in 1 2 3; do echo "{\"event\":\"progress\",\"share\":0.$share}" >&2; done
            for cell in $(seq 0 99); do echo "{\"event\":\"figures\",\"cell\":$cell}" >&2; done
            for n in $(seq 1 600); do echo "{\"event\":\"note\",\"text\":\"$n\"}" >&2; done
            echo 'error: not JSON' >&2; echo >&2; echo "For more information, try '--help'." >&2; exit 3"#;
        let jobs = jobs(out.path());
        let job = jobs.start(order(JobKind::Run, lines)).unwrap();
        let state = ended(&job);
        assert_eq!((state["exit_code"].as_i64(), state["run"].as_str()), (Some(3), Some("2026-a")));
        assert_eq!(state["progress"]["share"], 0.3);
        assert_eq!(state["figures"].as_array().unwrap().len(), MAX_CELLS);
        let messages = state["messages"].as_array().unwrap();
        assert_eq!((messages.len(), messages[0]["text"].as_str()), (MAX_MESSAGES, Some("102")));
        assert_eq!(messages[MAX_MESSAGES - 1]["text"], "not JSON");
        assert_eq!(job.describe(600)["messages"].as_array().unwrap().len(), 1);
        assert_eq!(jobs.ours(), [Started { name: "2026-a".to_owned(), to: Some("h".to_owned()) }]);
    }

    #[test]
    fn a_run_is_left_when_the_window_ends_and_a_server_is_not() {
        let out = tempfile::tempdir().unwrap();
        let jobs = jobs(out.path());
        let run = jobs.start(order(JobKind::Run, SLEEP)).unwrap();
        let server = jobs.start(order(JobKind::Server, SLEEP)).unwrap();
        assert_eq!(jobs.end_what_is_not_left().len(), 1);
        assert!(run.is_running() && !server.is_running());
        run.cancel();
        ended(&run);
    }
}
