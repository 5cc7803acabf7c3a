//! `campaign check --hosts` tries every host of a campaign before the campaign begins.
//!
//! ```text
//! 1. each host on which a command is started:  ssh, shell, tools, `talkpath --version`   all at the same time
//! 2. each pair of hosts:  a call of 0.2 s, started like a measurement                   at the same time
//! ```
//!
//! In the second step a far host takes one call at a time, because each call starts a server that needs the
//! port for itself. Each step has a time limit. If the path is emulated, only the near host is tried. A
//! *call* is a short voice flow whose messages come back. Begin to read with [`HostChecks::run`].

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use talkpath_experiment::part::SUMMARY;
use talkpath_experiment::store::whole::read_json;
use talkpath_measure::summary::Summary;
use talkpath_scenario::campaign::{Host, HostPair};
use talkpath_units::{counted, printable};

use super::attempt::{Attempt, program};
use super::load::Loaded;
use super::now;
use super::process::POLL_INTERVAL;
use super::remote::{RemoteCommand, SSH_FAILED, Script};
use crate::failure::Failure;
use crate::interrupt;

/// The script that prints the version of the program on a host.
const VERSION_SCRIPT: &str = include_str!("scripts/version.sh");
/// The tools that a near host needs, besides `sh` and `mktemp`.
const NEAR_TOOLS: &[&str] = &["dd", "tar"];
/// The tools that a host needs on which a server is started, besides `sh` and `mktemp`.
const FAR_TOOLS: &[&str] = &["dd"];
/// The scenario of a call of ten frames. The far host sends each frame back.
const CALL_SCENARIO: &str = "name = \"check\"\nduration = \"200 ms\"\ndrain = \"2 s\"\n\n[flow.call]\ntransport = \"udp\"\n\
                             workload = { kind = \"voice\", echo = true }\n";
/// The time in which a host must print its version. ssh takes up to 15 s to connect, and we chose 10 s more.
const VERSION_TIMEOUT: Duration = Duration::from_secs(25);
/// The time in which a call must end. ssh takes up to 15 s to connect, and we chose 15 s more.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of calls that run at the same time. We chose the number of sessions that a server allows by
/// default.
const MAX_CONCURRENT_CALLS: usize = 16;
/// The time in which the output of a program must arrive after the program has ended. We chose 2 s: the
/// output is in a pipe already, and only the reading thread has to run.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of bytes of the output that are read. We chose 4 KiB, because a version is one line.
const MAX_OUTPUT_BYTES: u64 = 4096;
/// A version is cut after this many characters. We chose 100 so that it stays on one line of a terminal.
const MAX_VERSION_CHARS: usize = 100;

/// The result of `campaign check --hosts`, in the form in which `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct HostChecks {
    pub(crate) hosts: Vec<HostCheck>,
    pub(crate) pairs: Vec<PairCheck>,
}

/// A host on which a measurement starts a command.
#[derive(Debug, Serialize)]
pub(crate) struct HostCheck {
    pub(crate) host: String,
    /// How the host is reached: `ssh NAME`, or `local`.
    pub(crate) way: String,
    /// The output of `talkpath --version` on the host.
    pub(crate) version: Option<String>,
    /// What does not work, or `null` if everything works.
    pub(crate) why: Option<String>,
}

/// Two hosts between which a measurement is planned.
#[derive(Debug, Serialize)]
pub(crate) struct PairCheck {
    pub(crate) near: String,
    pub(crate) far: String,
    /// The number of messages that the call sent.
    pub(crate) sent: u64,
    /// The number of messages that the far host sent back.
    pub(crate) received: u64,
    /// What does not work, or `null` if everything works.
    pub(crate) why: Option<String>,
}

/// The near host and the far host of a call.
#[derive(Clone, Copy)]
struct Pair<'a> {
    near: &'a Host,
    far: &'a Host,
}

impl HostChecks {
    /// Tries all hosts of the campaign, and then all pairs whose hosts work.
    pub(crate) fn run(loaded: &Loaded) -> Result<Self, Failure> {
        let signal = interrupt::install()?;
        let stop = &*signal;
        let hosts = check_hosts(loaded, stop);
        let folder = TemporaryFolder::new()?;
        let is_failing =
            |host: &Host| hosts.iter().any(|check| check.host == host.name && check.why.is_some());
        let mut pairs = Vec::new();
        let mut working = Vec::new();
        for pair in planned_pairs(loaded) {
            if pair.far.emulated.is_some() {
                continue;
            }
            match [pair.near, pair.far].into_iter().find(|host| is_failing(host)) {
                Some(failing) => {
                    pairs.push(PairCheck::failed(pair, format!("not tried, because of {}", failing.name)));
                }
                None => working.push(pair),
            }
        }
        pairs.extend(check_pairs(working, loaded, &folder.path, stop));
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::interrupted("interrupted; nothing was changed"));
        }
        Ok(Self { hosts, pairs })
    }

    /// Returns the number of hosts and pairs that do not work.
    pub(crate) fn failed(&self) -> usize {
        let failed_hosts = self.hosts.iter().filter(|host| host.why.is_some()).count();
        failed_hosts + self.pairs.iter().filter(|pair| pair.why.is_some()).count()
    }

    /// Returns the number of hosts and pairs that were tried.
    pub(crate) const fn tried(&self) -> usize {
        self.hosts.len() + self.pairs.len()
    }

    /// Writes a line for each host and each pair.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for HostCheck { host, way, version, why } in &self.hosts {
            let result = match (why, version) {
                (Some(why), _) => format!("FAILED: {why}"),
                (None, Some(version)) => version.clone(),
                (None, None) => "works".to_owned(),
            };
            text.push_str(&format!("{host} ({way}): {result}\n"));
        }
        for PairCheck { near, far, sent, received, why } in &self.pairs {
            let result = match why {
                Some(why) => format!("FAILED: {why}"),
                None => format!("{received} of {} came back", counted(*sent, "message")),
            };
            text.push_str(&format!("{near} > {far}: {result}\n"));
        }
        text
    }
}

/// Lists the pairs of hosts of all measures, each once.
fn planned_pairs(loaded: &Loaded) -> Vec<Pair<'_>> {
    let campaign = &loaded.campaign;
    let indices: BTreeSet<&HostPair> = campaign.measures.iter().flat_map(|measure| &measure.pairs).collect();
    let pair = |pair: &HostPair| Pair { near: &campaign.hosts[pair.near], far: &campaign.hosts[pair.far] };
    indices.into_iter().map(pair).collect()
}

/// Tries every host on which a measurement starts a command, all at the same time.
fn check_hosts(loaded: &Loaded, stop: &AtomicBool) -> Vec<HostCheck> {
    let pairs = planned_pairs(loaded);
    let is_near = |host: &Host| pairs.iter().any(|pair| pair.near.name == host.name);
    let is_server = |host: &Host| host.starts_server && pairs.iter().any(|pair| pair.far.name == host.name);
    let hosts = loaded.campaign.hosts.iter().filter(|host| is_near(host) || is_server(host));
    run_concurrently(
        hosts,
        |host| {
            let tools = if is_near(host) { NEAR_TOOLS } else { FAR_TOOLS };
            HostCheck::new(host, version(host, tools, stop))
        },
        |host, error| HostCheck::new(host, Err(error)),
    )
}

impl HostCheck {
    fn new(host: &Host, version: Result<String, String>) -> Self {
        let way = host.ssh.as_ref().map_or_else(|| "local".to_owned(), |name| format!("ssh {name}"));
        let (version, why) = match version {
            Ok(version) => (Some(version), None),
            Err(error) => (None, Some(error)),
        };
        Self { host: host.name.clone(), way, version, why }
    }
}

impl PairCheck {
    fn failed(pair: Pair<'_>, why: String) -> Self {
        let (near, far) = (pair.near.name.clone(), pair.far.name.clone());
        Self { near, far, sent: 0, received: 0, why: Some(why) }
    }
}

/// Runs `work` on all items at the same time, each in a thread of its own. If a thread cannot be started,
/// `no_thread` makes the result of the item from the error.
fn run_concurrently<T: Copy + Send, R: Send>(
    items: impl Iterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
    no_thread: impl Fn(T, String) -> R,
) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for item in items {
            threads.push((item, thread::Builder::new().spawn_scoped(scope, move || work(item))));
        }
        let mut results = Vec::new();
        for (item, thread) in threads {
            match thread {
                // If a thread panicked, the panic has printed a message.
                Ok(thread) => results.extend(thread.join().ok()),
                Err(error) => {
                    results.push(no_thread(item, format!("not tried: cannot start a thread: {error}")));
                }
            }
        }
        results
    })
}

/// Returns the output of `talkpath --version` on `host`, or the reason why the host does not work. All of
/// `tools` must be there.
fn version(host: &Host, tools: &[&str], stop: &AtomicBool) -> Result<String, String> {
    let mut arguments = vec![program(host)];
    arguments.extend(tools.iter().map(|tool| (*tool).to_owned()));
    let script = Script {
        text: VERSION_SCRIPT,
        arguments: &arguments,
        input: Vec::new(),
        stdout: Stdio::piped(),
        limit: VERSION_TIMEOUT,
    };
    let start = Instant::now();
    let mut remote = RemoteCommand::start(host, script)?;
    let output = read_beginning(remote.take_stdout())?;
    let status = loop {
        if let Some(status) = remote.exit_status() {
            break status;
        }
        if start.elapsed() > VERSION_TIMEOUT || stop.load(Ordering::Relaxed) {
            return Err(format!("timeout: no answer within {} s", start.elapsed().as_secs()));
        }
        thread::sleep(POLL_INTERVAL);
    };
    let message = remote.last_message();
    drop(remote);
    match status.code() {
        Some(0) => {
            let text = output.recv_timeout(OUTPUT_TIMEOUT).unwrap_or_default();
            match text.lines().rev().find(|line| line.starts_with("talkpath ")) {
                Some(line) => Ok(printable(line, MAX_VERSION_CHARS)),
                None => Err(format!("its `{}` is no talkpath", program(host))),
            }
        }
        Some(SSH_FAILED) if host.ssh.is_some() => Err(format!("ssh: {message}")),
        _ => Err(message),
    }
}

/// Starts a thread that reads the beginning of an output and sends it. The caller does not wait for the end
/// of the output: a host may write without an end, and another process may hold the output open.
fn read_beginning(stdout: Option<ChildStdout>) -> Result<Receiver<String>, String> {
    let (send_text, text) = mpsc::channel();
    let read = move || {
        let mut bytes = Vec::new();
        if let Some(stdout) = stdout {
            // If reading fails, the text ends there.
            let _ = stdout.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
        }
        let _ = send_text.send(String::from_utf8_lossy(&bytes).into_owned());
    };
    thread::Builder::new().spawn(read).map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(text)
}

/// Makes a call between each pair. Calls to different far hosts run at the same time.
fn check_pairs(
    mut waiting: Vec<Pair<'_>>,
    loaded: &Loaded,
    folder: &Path,
    stop: &AtomicBool,
) -> Vec<PairCheck> {
    let mut checks = Vec::new();
    while !waiting.is_empty() && !stop.load(Ordering::Relaxed) {
        // Each round has at most one call to each far host.
        let mut round: Vec<Pair<'_>> = Vec::new();
        let mut later = Vec::new();
        for pair in waiting {
            let is_far_busy = round.iter().any(|other| other.far.name == pair.far.name);
            if round.len() < MAX_CONCURRENT_CALLS && !is_far_busy {
                round.push(pair);
            } else {
                later.push(pair);
            }
        }
        checks.extend(run_concurrently(
            round.into_iter(),
            |pair| check_pair(pair, loaded, folder, stop),
            PairCheck::failed,
        ));
        waiting = later;
    }
    checks
}

/// Makes a call from the near host to the far host. It is started like a measurement.
fn check_pair(pair: Pair<'_>, loaded: &Loaded, folder: &Path, stop: &AtomicBool) -> PairCheck {
    let Pair { near, far } = pair;
    let name = format!("{}.{}", near.name, far.name);
    let attempt = Attempt {
        near: near.clone(),
        far: far.clone(),
        scenario: CALL_SCENARIO.to_owned(),
        key_file: far.key_file.as_ref().map(|file| loaded.file(file)),
        seed: 1,
        records_flag: "none".to_owned(),
        repetitions: 1,
        limit: CALL_TIMEOUT,
        draft: folder.join(format!(".{name}")),
        target: folder.join(&name),
    };
    if let Err(fault) = attempt.run(&|| stop.load(Ordering::Relaxed)) {
        return PairCheck::failed(pair, fault.why);
    }
    let summary = match read_json::<Summary>(&attempt.target.join(SUMMARY)) {
        Ok(summary) => summary,
        Err(error) => return PairCheck::failed(pair, error.to_string()),
    };
    let (mut sent, mut received) = (0, 0);
    for flow in summary.runs.iter().flat_map(|run| run.flows.values()) {
        sent += flow.sent;
        received += flow.received;
    }
    let why = (received == 0).then(|| {
        let problem =
            "it was reached over TCP, but none of the UDP messages came back: is its port open for UDP?";
        format!("{}: {problem}", far.name)
    });
    PairCheck { near: near.name.clone(), far: far.name.clone(), sent, received, why }
}

/// A folder of this process for the records of its calls. It is removed when this is dropped.
struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    fn new() -> Result<Self, Failure> {
        let name = format!("talkpath-check-{}-{}", std::process::id(), now().as_nanos());
        let path = std::env::temp_dir().join(name);
        // If the folder exists, this is an error, because somebody else may have put files into it.
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| Failure::folder(&path, error))?;
        Ok(Self { path })
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // If this fails, only a few small files stay.
        let _ = fs::remove_dir_all(&self.path);
    }
}
