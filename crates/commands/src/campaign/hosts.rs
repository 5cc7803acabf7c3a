//! `campaign check --hosts` tries every host of a campaign before the campaign begins.
//!
//! ```text
//! 1. each host on which a command is started:  ssh, shell, tools, `talkpath --version`   all at the same time
//! 2. each pair of hosts:  a call of 0.2 s, started like a measurement                   at the same time
//! ```
//!
//! In the second step a far host takes one call at a time, because each call starts a server that needs the
//! port for itself. Each step has a time limit. If the path is emulated, only the near host is tried.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use talkpath_measure::summary::Summary;
use talkpath_scenario::campaign::{Host, HostPair};
use talkpath_units::{counted, printable};

use super::attempt::{Attempt, program};
use super::child::{Script, Started};
use super::load::Loaded;
use super::now;
use crate::failure::Failure;
use crate::interrupt;
use talkpath_experiment::part::SUMMARY;
use talkpath_experiment::store::whole::read_json;

/// The result of `campaign check --hosts`, in the form in which `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Met {
    pub(crate) hosts: Vec<MetHost>,
    pub(crate) pairs: Vec<MetPair>,
}

/// A host on which a measurement starts something.
#[derive(Debug, Serialize)]
pub(crate) struct MetHost {
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
pub(crate) struct MetPair {
    pub(crate) near: String,
    pub(crate) far: String,
    /// How many messages the call sent.
    pub(crate) sent: u64,
    /// How many messages the far host sent back.
    pub(crate) received: u64,
    /// What does not work, or `null` if everything works.
    pub(crate) why: Option<String>,
}

impl Met {
    /// Tries all hosts of the campaign, and then all pairs whose hosts work.
    pub(crate) fn all(loaded: &Loaded) -> Result<Self, Failure> {
        let stop = interrupt::install()?;
        let campaign = &loaded.campaign;
        let pairs: BTreeSet<HostPair> =
            campaign.measures.iter().flat_map(|measure| measure.pairs.iter().copied()).collect();
        let is_near = |at: usize| pairs.iter().any(|pair| pair.near == at);
        let is_server =
            |at: usize| campaign.hosts[at].starts_server && pairs.iter().any(|pair| pair.far == at);
        let started = campaign.hosts.iter().enumerate().filter(|(at, _)| is_near(*at) || is_server(*at));
        let stop = &*stop;
        let hosts = side_by_side(
            started,
            |(at, host)| meet(host, if is_near(at) { NEAR_TOOLS } else { FAR_TOOLS }, stop),
            |(_, host), why| MetHost { why: Some(why), ..MetHost::new(host) },
        );
        let folder = Temporary::new()?;
        let failing = |host: &Host| hosts.iter().any(|met| met.host == host.name && met.why.is_some());
        let mut met = Vec::new();
        let mut open = Vec::new();
        for (near, far) in pairs.iter().map(|pair| (&campaign.hosts[pair.near], &campaign.hosts[pair.far])) {
            if far.emulated.is_some() {
                continue;
            }
            match [near, far].into_iter().find(|host| failing(host)) {
                Some(host) => met.push(MetPair::without_call(near, far, &host.name)),
                None => open.push((near, far)),
            }
        }
        met.extend(calls(open, loaded, &folder.path, stop));
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::interrupted("interrupted; nothing was changed"));
        }
        Ok(Self { hosts, pairs: met })
    }

    /// Returns how many hosts and pairs do not work, and how many there are in all.
    pub(crate) fn failed(&self) -> (usize, usize) {
        let why = self.hosts.iter().map(|host| &host.why).chain(self.pairs.iter().map(|pair| &pair.why));
        (why.filter(|why| why.is_some()).count(), self.hosts.len() + self.pairs.len())
    }

    /// Writes a line for each host and each pair.
    pub(crate) fn text(&self) -> String {
        let hosts = self.hosts.iter().map(|host| {
            let found = match (&host.why, &host.version) {
                (Some(why), _) => format!("FAILED: {why}"),
                (None, Some(version)) => version.clone(),
                (None, None) => "works".to_owned(),
            };
            format!("{} ({}): {found}\n", host.host, host.way)
        });
        let pairs = self.pairs.iter().map(|pair| {
            let found = match &pair.why {
                Some(why) => format!("FAILED: {why}"),
                None => format!("{} of {} came back", pair.received, counted(pair.sent, "message")),
            };
            format!("{} > {}: {found}\n", pair.near, pair.far)
        });
        hosts.chain(pairs).collect()
    }
}

/// A folder of this process for the records of its calls. It is removed when this is dropped.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn new() -> Result<Self, Failure> {
        let name = format!("talkpath-check-{}-{}", std::process::id(), now().as_nanos());
        let path = std::env::temp_dir().join(name);
        // If the folder exists, this is an error, because somebody else may have put files into it.
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|why| Failure::folder(&path, why))?;
        Ok(Self { path })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // If this fails, only a few small files stay.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl MetHost {
    fn new(host: &Host) -> Self {
        let way = host.ssh.as_ref().map_or_else(|| "local".to_owned(), |name| format!("ssh {name}"));
        Self { host: host.name.clone(), way, version: None, why: None }
    }
}

impl MetPair {
    fn new(near: &Host, far: &Host, why: Option<String>) -> Self {
        Self { near: near.name.clone(), far: far.name.clone(), sent: 0, received: 0, why }
    }

    fn without_call(near: &Host, far: &Host, failing: &str) -> Self {
        Self::new(near, far, Some(format!("not tried, because of {failing}")))
    }
}

/// Does `work` on all items at the same time, each in a thread of its own. If a thread cannot be started for
/// an item, `unable` makes the result of that item.
fn side_by_side<T: Copy + Send, R: Send>(
    items: impl Iterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
    unable: impl Fn(T, String) -> R,
) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        let start = |item| (item, thread::Builder::new().spawn_scoped(scope, move || work(item)));
        let threads: Vec<_> = items.map(start).collect();
        let done = |(item, thread): (T, std::io::Result<thread::ScopedJoinHandle<'_, R>>)| match thread {
            Ok(thread) => thread.join().ok(),
            Err(why) => Some(unable(item, format!("not tried, as no thread can be started: {why}"))),
        };
        threads.into_iter().filter_map(done).collect()
    })
}

/// Tries `host`: all of `tools` must be there, and `talkpath --version` must run.
fn meet(host: &Host, tools: &[&str], stop: &AtomicBool) -> MetHost {
    let mut met = MetHost::new(host);
    match version(host, tools, stop) {
        Ok(version) => met.version = Some(version),
        Err(why) => met.why = Some(why),
    }
    met
}

/// Returns the output of `talkpath --version` on `host`, or the reason why it cannot be had.
fn version(host: &Host, tools: &[&str], stop: &AtomicBool) -> Result<String, String> {
    let arguments: Vec<String> =
        core::iter::once(program(host)).chain(tools.iter().map(|tool| (*tool).to_owned())).collect();
    let script = Script {
        text: VERSION,
        arguments: &arguments,
        input: Vec::new(),
        output: Stdio::piped(),
        limit: MEET_TIME,
    };
    let since = Instant::now();
    let mut started = Started::start(host, script)?;
    let output = started.output();
    // A thread reads only the beginning of the output, because a host may write without an end. The output
    // may also stay open after the program has ended, if another process holds it.
    let (report, answer) = mpsc::channel();
    let read = move || {
        let mut text = Vec::new();
        let _ = output.map(|output| output.take(MOST_READ).read_to_end(&mut text));
        let _ = report.send(String::from_utf8_lossy(&text).into_owned());
    };
    let reader = thread::Builder::new().spawn(read);
    reader.map_err(|why| format!("cannot start a thread to read what it says: {why}"))?;
    let status = loop {
        if let Some(status) = started.ended() {
            break status;
        }
        if since.elapsed() > MEET_TIME || stop.load(Ordering::Relaxed) {
            return Err(format!("no answer within {} s", since.elapsed().as_secs()));
        }
        thread::sleep(POLL);
    };
    let words = started.last_message();
    drop(started);
    match status.code() {
        Some(0) => {
            let text = answer.recv_timeout(READ_TIME).unwrap_or_default();
            let line = text.lines().rev().find(|line| line.starts_with("talkpath ")).unwrap_or("");
            match line {
                "" => Err(format!("its `{}` is no talkpath", program(host))),
                line => Ok(printable(line, MOST_SHOWN)),
            }
        }
        Some(255) if host.ssh.is_some() => Err(format!("ssh: {words}")),
        _ => Err(words),
    }
}

/// Makes a call between each pair in `open`. Calls to different far hosts run at the same time.
fn calls(mut open: Vec<(&Host, &Host)>, loaded: &Loaded, folder: &Path, stop: &AtomicBool) -> Vec<MetPair> {
    let mut met = Vec::new();
    while !open.is_empty() && !stop.load(Ordering::Relaxed) {
        let mut busy: Vec<&str> = Vec::new();
        let (now, later): (Vec<_>, Vec<_>) = open.into_iter().partition(|(_, far)| {
            let is_free = busy.len() < MOST_AT_ONCE && !busy.contains(&far.name.as_str());
            if is_free {
                busy.push(&far.name);
            }
            is_free
        });
        open = later;
        met.extend(side_by_side(
            now.into_iter(),
            |(near, far)| call(near, far, loaded, folder, stop),
            |(near, far), why| MetPair::new(near, far, Some(why)),
        ));
    }
    met
}

/// Makes a call from `near` to `far`, started like a measurement.
fn call(near: &Host, far: &Host, loaded: &Loaded, folder: &Path, stop: &AtomicBool) -> MetPair {
    let name = format!("{}.{}", near.name, far.name);
    let attempt = Attempt {
        near: near.clone(),
        far: far.clone(),
        scenario: CALL.to_owned(),
        key_file: far.key_file.as_ref().map(|file| loaded.file(file)),
        seed: 1,
        records: "none".to_owned(),
        repetitions: 1,
        limit: CALL_TIME,
        draft: folder.join(format!(".{name}")),
        target: folder.join(&name),
    };
    let mut met = MetPair::new(near, far, None);
    if let Err(fault) = attempt.run(&|| stop.load(Ordering::Relaxed)) {
        met.why = Some(fault.why);
        return met;
    }
    match read_json::<Summary>(&attempt.target.join(SUMMARY)) {
        Ok(summary) => {
            let flows = || summary.runs.iter().flat_map(|run| run.flows.values());
            met.sent = flows().map(|flow| flow.sent).sum();
            met.received = flows().map(|flow| flow.received).sum();
            if met.received == 0 {
                let why = "it was reached over TCP, but none of the UDP messages came back: is its port open for UDP?";
                met.why = Some(format!("{}: {why}", far.name));
            }
        }
        Err(why) => met.why = Some(why.to_string()),
    }
    met
}

/// The script that prints the version, which follows [`SHELL`](super::child::SHELL). Its arguments are the
/// program and the tools that must be there.
const VERSION: &str = r#"
p=$1
shift
for tool do
  command -v "$tool" >/dev/null || { echo "error: there is no $tool" >&2; exit 127; }
done
run "$p" --version
"#;
/// The tools that a near host needs, besides `sh` and `mktemp`.
const NEAR_TOOLS: &[&str] = &["dd", "tar"];
/// The tools that a host needs on which a server is started, besides `sh` and `mktemp`.
const FAR_TOOLS: &[&str] = &["dd"];
/// The scenario of a call of ten frames. The far host sends each frame back.
const CALL: &str = "name = \"check\"\nduration = \"200 ms\"\ndrain = \"2 s\"\n\n[flow.call]\ntransport = \"udp\"\n\
                    workload = { kind = \"voice\", echo = true }\n";
/// How long a host may take to answer (chosen: a little more than ssh may take to connect).
const MEET_TIME: Duration = Duration::from_secs(25);
/// How long a call may take, with the time that ssh needs to connect (chosen).
const CALL_TIME: Duration = Duration::from_secs(30);
/// How many calls run at the same time (chosen: not more than the sessions that a server allows by default).
const MOST_AT_ONCE: usize = 16;
const POLL: Duration = Duration::from_millis(20);
/// How long the output of a program may take to arrive after the program has ended (chosen).
const READ_TIME: Duration = Duration::from_secs(2);
/// How many bytes of the output of a host are read (chosen).
const MOST_READ: u64 = 4096;
/// How many characters of the version are shown (chosen).
const MOST_SHOWN: usize = 100;
