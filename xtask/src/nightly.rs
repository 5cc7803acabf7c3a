//! What takes long or judges the machine: `cargo xtask nightly`, and what takes longer still,
//! `cargo xtask weekly`.
//!
//! Each job has a bound in minutes and ends as passed, failed or skipped with a reason. What passed for a
//! state of the sources is kept in `target/nightly`, so that a run that was cut short continues with the
//! rest:
//!
//! ```text
//!   cargo xtask nightly                 all jobs that have not passed yet for these sources, then the table
//!   cargo xtask nightly --only peers    this job alone, also if it has passed; may be repeated
//!   cargo xtask nightly --fresh         all jobs anew
//!   cargo xtask nightly --list          the jobs, their bounds, and what they do
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::campaigns;
use crate::command::{UNAVAILABLE, cargo, exit_code_until, only_run, read};
use crate::judges::{self, Judged};
use crate::{
    kernel_disciplines, kernel_peer, kernel_queues, namespaces, peers, python, quic_peers, seeds, vendored,
};

/// A job: its name, how many minutes it may take, what it does, and the code that does it.
struct Job {
    name: &'static str,
    minutes: u64,
    what: &'static str,
    run: fn(&Path, Instant) -> Outcome,
}

/// How a job ended.
enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
}

impl From<Judged> for Outcome {
    fn from(judged: Judged) -> Self {
        match judged {
            Judged::Agrees(what) => Self::Passed(what),
            Judged::Differs(what) => Self::Failed(what),
            Judged::Missing(what) => Self::Skipped(what),
        }
    }
}

/// At most 123 minutes together.
const NIGHTLY: [Job; 32] = [
    Job {
        name: "dependencies",
        minutes: 1,
        what: "licences, bans and sources by deny.toml; vendor/ against the released crate and its patch",
        run: dependencies,
    },
    Job {
        name: "release",
        minutes: 7,
        what: "README's command; record files as a debug build's",
        run: release,
    },
    Job {
        name: "recount",
        minutes: 2,
        what: "shares, scores and winners of 108 cells again, in Python from their rows",
        run: |root, end| judges::recount(root, end).into(),
    },
    Job {
        name: "speech",
        minutes: 1,
        what: "opinion scores beside PESQ (ITU-T P.862.1) on recorded speech",
        run: |root, end| judges::speech(root, end).into(),
    },
    Job {
        name: "browser",
        minutes: 2,
        what: "a report, a player and a study's page in Chromium, by axe-core and by use",
        run: |root, end| judges::browser(root, end).into(),
    },
    Job {
        name: "ui",
        minutes: 5,
        what: "the window in Chromium: each tab and each task from an empty folder, by axe-core and by use",
        run: |root, end| judges::ui(root, end).into(),
    },
    Job {
        name: "shell",
        minutes: 3,
        what: "ping, irtt, sipp, iperf3, aioquic and a call of Chromium in `talkpath shell`, with tcpdump at both ends",
        run: |root, end| judges::shell(root, end).into(),
    },
    Job {
        name: "operations",
        minutes: 1,
        what: "a monitor's metrics by promtool and an OpenMetrics parser, systemd units, STAMP by stamp-suite",
        run: |root, end| judges::operations(root, end).into(),
    },
    Job {
        name: "python",
        minutes: 3,
        what: "the wheel: its tests, types and notebooks",
        run: |root, end| python::nightly(root, end).into(),
    },
    Job {
        name: "zhang-emu",
        minutes: 3,
        what: "the 2004 study's short form in emu",
        run: |root, end| study(root, "zhang-schulzrinne-2004", end),
    },
    Job {
        name: "foderaro-emu",
        minutes: 2,
        what: "the 1995 study's short form in emu",
        run: |root, end| study(root, "foderaro-1995", end),
    },
    Job {
        name: "spoor-emu",
        minutes: 3,
        what: "the 2014 study's short form in emu",
        run: |root, end| study(root, "spoor-2014", end),
    },
    Job {
        name: "conformance",
        minutes: 24,
        what: "the simulator against the kernel, both arenas",
        run: conformance,
    },
    Job {
        name: "campaign",
        minutes: 5,
        what: "a campaign over namespaces, its coordinator killed 24 times, hosts killed and frozen",
        run: |root, end| campaigns::kills(root, end).into(),
    },
    Job {
        name: "paths",
        minutes: 8,
        what: "live runs over hostile paths in namespaces, and a table of 26 such paths with every transport",
        run: |root, end| namespaces::hostile_paths(root, end).into(),
    },
    Job { name: "kernel-peer", minutes: 2, what: "our DCCP against Linux 6.1 under qemu", run: dccp_kernel },
    Job {
        name: "quic-peers",
        minutes: 7,
        what: "our QUIC beside aioquic, quic-go and quiche (if built ahead), both roles, over 3 % loss",
        run: |root, end| quic_peers::run(root, &[], end).into(),
    },
    Job {
        name: "peers",
        minutes: 9,
        what: "the 1997 dumbbell in ns-2 and ns-3, CoDel in ns-3, ten seeds",
        run: |root, _| other_simulators(root, &["", "queues"]),
    },
    Job {
        name: "properties",
        minutes: 4,
        what: "all properties with a fresh seed, four times as many cases",
        run: properties,
    },
    Job {
        name: "no-fast-path",
        minutes: 4,
        what: "the digests of TCP without its fast path",
        run: no_fast_path,
    },
    Job {
        name: "fuzz-arrival-log",
        minutes: 5,
        what: "a minute of fuzzing, after all targets' build (three minutes cold)",
        run: |root, end| fuzz(root, "arrival_log", end),
    },
    Job {
        name: "fuzz-dccp-codec",
        minutes: 2,
        what: "a minute of fuzzing",
        run: |root, end| fuzz(root, "dccp_codec", end),
    },
    Job {
        name: "fuzz-dccp-connection",
        minutes: 2,
        what: "a minute of fuzzing",
        run: |root, end| fuzz(root, "dccp_connection", end),
    },
    Job {
        name: "fuzz-far-rows",
        minutes: 2,
        what: "a minute of fuzzing",
        run: |root, end| fuzz(root, "far_rows", end),
    },
    Job {
        name: "fuzz-files",
        minutes: 2,
        what: "a minute of fuzzing: what a foreign directory or file holds, five targets in turn",
        run: |root, end| {
            fuzz_in_turn(
                root,
                &["summary_file", "state_files", "campaign_file", "trace", "capture_file"],
                end,
            )
        },
    },
    Job {
        name: "fuzz-live-control",
        minutes: 2,
        what: "a minute of fuzzing",
        run: |root, end| fuzz(root, "live_control", end),
    },
    Job {
        name: "fuzz-live-datagram",
        minutes: 2,
        what: "a minute of fuzzing",
        run: |root, end| fuzz(root, "live_datagram", end),
    },
    Job {
        name: "fuzz-other-hosts",
        minutes: 2,
        what: "a minute of fuzzing: a reflector's answers and a scraper's requests, in turn",
        run: |root, end| fuzz_in_turn(root, &["stamp_answers", "metrics_request"], end),
    },
    Job {
        name: "fuzz-quic-datagram",
        minutes: 2,
        what: "a minute of fuzzing",
        run: |root, end| fuzz(root, "quic_datagram", end),
    },
    Job {
        name: "fuzz-record-files",
        minutes: 2,
        what: "a minute of fuzzing",
        run: |root, end| fuzz(root, "record_files", end),
    },
    Job {
        name: "fuzz-scenario-file",
        minutes: 2,
        what: "a minute of fuzzing",
        run: |root, end| fuzz(root, "scenario_file", end),
    },
    Job {
        name: "fuzz-session-plan",
        minutes: 2,
        what: "a minute of fuzzing",
        run: |root, end| fuzz(root, "session_plan", end),
    },
];

const WEEKLY: [Job; 13] = [
    Job {
        name: "seeds",
        minutes: 40,
        what: "compare on each path preset with twenty other seeds",
        run: other_seeds,
    },
    Job {
        name: "campaign",
        minutes: 60,
        what: "the 2004 paper's campaign in small, killed 20 times, judged by the study's claims",
        run: |root, end| campaigns::columbia(root, end).into(),
    },
    Job {
        name: "store",
        minutes: 20,
        what: "a campaign copied by rclone to moto's S3, killed and without its server meanwhile, read with polars",
        run: |root, end| judges::store(root, end).into(),
    },
    Job {
        name: "monitor",
        minutes: 63,
        what: "a monitor of fifty calls beside irtt for an hour, a bridge between the hosts that counts",
        run: |root, end| judges::monitor(root, end).into(),
    },
    Job {
        name: "long-paths",
        minutes: 5,
        what: "live runs over paths whose UDP goes off after 10 s, and whose device is down for 15 s",
        run: |root, end| namespaces::long_paths(root, end).into(),
    },
    Job {
        name: "neteq",
        minutes: 40,
        what: "Chromium's jitter buffer on 29 paths, recorded anew, and our adaptive receiver on the same arrivals",
        run: |root, end| judges::neteq(root, end).into(),
    },
    Job {
        name: "hearing",
        minutes: 60,
        what: "opinion scores beside PESQ, PLCMOS and ViSQOL on the sounds of `listen`, five kinds of path",
        run: |root, end| judges::hearing(root, end).into(),
    },
    Job {
        name: "engines",
        minutes: 45,
        what: "sweeps on the cores, Ray, Dask and Slurm beside the local one, workers killed meanwhile",
        run: |root, end| judges::engines(root, end).into(),
    },
    Job {
        name: "kernel-queues",
        minutes: 25,
        what: "CoDel and FQ-CoDel against Linux 6.1's under qemu, decision by decision",
        run: |root, end| of_a_kernel(kernel_queues::run(root, Some(end))),
    },
    Job {
        name: "kernel-disciplines",
        minutes: 15,
        what: "shaper, policer, classes, loss, copies and damage against Linux 6.1's under qemu",
        run: |root, _| of_a_kernel(kernel_disciplines::run(root, &[])),
    },
    Job {
        name: "peers-radio",
        minutes: 60,
        what: "ns-3's LTE and 802.11n beside ours, 1 to 10 users and stations",
        run: |root, _| other_simulators(root, &["cellular", "wifi"]),
    },
    Job {
        name: "sawashima",
        minutes: 180,
        what: "the 1997 study whole: 51,076 runs",
        run: |root, end| whole_study(root, "sawashima-1997", end),
    },
    Job {
        name: "zhang",
        minutes: 60,
        what: "the 2004 study whole in sim",
        run: |root, end| whole_study(root, "zhang-schulzrinne-2004", end),
    },
];

/// Runs the nightly jobs.
///
/// # Errors
/// The table, if a job failed; or what is wrong with the arguments.
pub(crate) fn nightly(root: &Path, arguments: &[String]) -> Result<String, String> {
    run(root, &NIGHTLY, arguments)
}

/// Runs the weekly jobs.
///
/// # Errors
/// As [`nightly`].
pub(crate) fn weekly(root: &Path, arguments: &[String]) -> Result<String, String> {
    run(root, &WEEKLY, arguments)
}

/// What the command line chose.
struct Choice {
    only: Vec<String>,
    is_fresh: bool,
}

fn run(root: &Path, jobs: &[Job], arguments: &[String]) -> Result<String, String> {
    if arguments.iter().any(|argument| argument == "--list") {
        let lines =
            jobs.iter().map(|job| format!("{:<22} {:>3} min at most   {}", job.name, job.minutes, job.what));
        return Ok(lines.collect::<Vec<_>>().join("\n"));
    }
    let choice = choose(jobs, arguments)?;
    let kept = kept(root)?;
    let mut rows = Vec::new();
    let (mut failed, mut is_built) = (0, false);
    for job in jobs {
        let is_named = choice.only.iter().any(|name| name == job.name);
        let is_chosen = is_named || choice.only.is_empty();
        let file = kept.join(job.name);
        let before = fs::read_to_string(&file).ok();
        if let Some(row) = before.filter(|_| !choice.is_fresh && !is_named) {
            rows.push(row);
        } else if is_chosen {
            if !is_built {
                build(root)?;
                is_built = true;
            }
            let (row, has_failed) = run_job(root, job, &file)?;
            failed += usize::from(has_failed);
            rows.push(row);
        } else {
            rows.push(format!("{:<22} {:>6}  not run: --only named others", job.name, "-"));
        }
    }
    let table = format!("{:<22} {:>6}  outcome\n{}", "job", "min", rows.join("\n"));
    if failed == 0 { Ok(table) } else { Err(format!("{table}\n{failed} failed")) }
}

/// Builds the program that most jobs run, before the first of them, so that no job's minutes go to it.
fn build(root: &Path) -> Result<(), String> {
    let deadline = Instant::now() + MOST_OF_A_BUILD;
    match exit_code_until(&mut cargo(root, &["build", "--release"]), deadline)? {
        Some(0) => Ok(()),
        Some(code) => Err(format!("cargo build --release: exit code {code}")),
        None => Err("cargo build --release did not end in time".to_owned()),
    }
}

/// Chosen: from nothing it takes 5.4 min on two idle processors (docs/reference/building.md).
const MOST_OF_A_BUILD: Duration = Duration::from_secs(20 * 60);

/// Where is kept what passed for these sources.
fn kept(root: &Path) -> Result<PathBuf, String> {
    let kept = root.join("target").join("nightly").join(state_of_sources(root)?);
    fs::create_dir_all(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    Ok(kept)
}

/// Runs one job; its row of the table, which is kept if it passed, and whether it failed.
fn run_job(root: &Path, job: &Job, file: &Path) -> Result<(String, bool), String> {
    println!("nightly: {}: {}", job.name, job.what);
    let began = Instant::now();
    let outcome = (job.run)(root, began + Duration::from_secs(60 * job.minutes));
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let (word, why) = match &outcome {
        Outcome::Passed(why) => ("passed", why),
        Outcome::Failed(why) => ("FAILED", why),
        Outcome::Skipped(why) => ("SKIPPED", why),
    };
    let why = why.lines().last().unwrap_or_default();
    let row = format!("{:<22} {minutes:>6.1}  {word}: {why}", job.name);
    println!("nightly: {row}");
    if matches!(outcome, Outcome::Passed(_)) {
        fs::write(file, &row).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok((row, matches!(outcome, Outcome::Failed(_))))
}

fn choose(jobs: &[Job], arguments: &[String]) -> Result<Choice, String> {
    let mut choice = Choice { only: Vec::new(), is_fresh: false };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--fresh" => choice.is_fresh = true,
            "--only" => {
                let name = words.next().ok_or("--only: which job? --list names them")?;
                if !jobs.iter().any(|job| job.name == name) {
                    return Err(format!("--only {name}: no such job; --list names them"));
                }
                choice.only.push(name.clone());
            }
            _ => return Err(format!("{word}: expected --only NAME, --fresh or --list")),
        }
    }
    Ok(choice)
}

/// The commit, and a number for what is changed beside it.
fn state_of_sources(root: &Path) -> Result<String, String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(root).args(arguments).output();
        output.map_err(|error| format!("git: {error}")).map(|output| output.stdout)
    };
    let commit = String::from_utf8_lossy(&git(&["rev-parse", "--short=12", "HEAD"])?).trim().to_owned();
    let changes = [git(&["diff", "HEAD"])?, git(&["status", "--porcelain"])?].concat();
    if changes.is_empty() {
        return Ok(commit);
    }
    // FNV-1a with 64 bits: two different states should not meet by chance, and nobody attacks this.
    let number = changes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Ok(format!("{commit}-{number:016x}"))
}

/// A debug build on one job writes the record files of a release build on two.
fn release(root: &Path, deadline: Instant) -> Outcome {
    let runs = root.join("target").join("nightly-release");
    let _ = fs::remove_dir_all(&runs);
    let (release, debug) = (runs.join("release"), runs.join("debug"));
    let builds: [(&PathBuf, &[&str]); 2] = [
        (&release, &["run", "--release", "--", "compare", "--records", "all", "--jobs", "2"]),
        (&debug, &["run", "--", "compare", "--records", "all", "--jobs", "1"]),
    ];
    for (out, arguments) in builds {
        let mut command = cargo(root, arguments);
        command.env("TALKPATH_OUT", out).stdout(Stdio::null());
        if let Some(outcome) = unless_success(exit_code_until(&mut command, deadline)) {
            return outcome;
        }
    }
    let compared: Result<Vec<usize>, String> = ["packets.parquet", "series.parquet"]
        .iter()
        .map(|file| {
            let [left, right] =
                [read(&only_run(&release)?.join(file))?, read(&only_run(&debug)?.join(file))?];
            let is_same = left == right;
            is_same
                .then_some(left.len())
                .ok_or_else(|| format!("{file}: the two builds write different bytes"))
        })
        .collect();
    match compared {
        Ok(sizes) => {
            Outcome::Passed(format!("the same {} bytes from both builds", sizes.iter().sum::<usize>()))
        }
        Err(why) => Outcome::Failed(why),
    }
}

/// The short form of a study over the kernel's stacks.
fn study(root: &Path, name: &str, deadline: Instant) -> Outcome {
    run_study(root, &["study", "run", name, "--arena", "emu", "--quick"], deadline)
}

/// A study whole, in its own arena.
fn whole_study(root: &Path, name: &str, deadline: Instant) -> Outcome {
    run_study(root, &["study", "run", name], deadline)
}

fn conformance(root: &Path, deadline: Instant) -> Outcome {
    run_study(root, &["study", "run", "conformance", "--arena", "sim,emu"], deadline)
}

fn run_study(root: &Path, arguments: &[&str], deadline: Instant) -> Outcome {
    let mut command = Command::new(root.join("target").join("release").join("talkpath"));
    command.current_dir(root).args(arguments).arg("--out").arg(root.join("target").join("nightly-studies"));
    match exit_code_until(&mut command, deadline) {
        Ok(Some(0)) => Outcome::Passed("every verdict as expected".to_owned()),
        Ok(Some(UNAVAILABLE)) => Outcome::Skipped("the arena is not available here".to_owned()),
        Ok(Some(code)) => Outcome::Failed(format!("exit code {code}: see the verdicts above")),
        // On a disturbed machine an emulated study repeats runs, so that its time has no bound of its own.
        Ok(None) => Outcome::Skipped("no verdict: it did not end within its time".to_owned()),
        Err(why) => Outcome::Failed(why),
    }
}

fn dccp_kernel(root: &Path, _: Instant) -> Outcome {
    match kernel_peer::run(root) {
        Ok(closing) if closing.contains("0 passed") => Outcome::Skipped(closing),
        Ok(closing) => Outcome::Passed(closing),
        Err(closing) => Outcome::Failed(closing),
    }
}

/// What a comparison with a kernel came to.
fn of_a_kernel(closing: Result<String, String>) -> Outcome {
    match closing {
        Ok(closing) if closing.contains(": 0 passed") => Outcome::Skipped(closing),
        Ok(closing) => Outcome::Passed(closing),
        Err(closing) => Outcome::Failed(closing),
    }
}

/// Runs these parts of `cargo xtask peers`. The empty name is the dumbbell.
fn other_simulators(root: &Path, parts: &[&str]) -> Outcome {
    let (mut said, mut skipped) = (Vec::new(), Vec::new());
    for part in parts {
        let words: Vec<String> = part.split_whitespace().map(str::to_owned).collect();
        match peers::run(root, &words) {
            Ok(closing) => said.push(closing),
            Err(why) if why.contains("no other simulator is installed") => skipped.push(why),
            Err(why) => return Outcome::Failed(why),
        }
    }
    if said.is_empty() {
        return Outcome::Skipped(skipped.join("; "));
    }
    Outcome::Passed([said, skipped].concat().join("; "))
}

fn other_seeds(root: &Path, deadline: Instant) -> Outcome {
    let kept = match kept(root) {
        Ok(kept) => kept.join("seeds-by-path"),
        Err(why) => return Outcome::Failed(why),
    };
    match seeds::run(root, &kept, deadline) {
        Ok(closing) => Outcome::Passed(closing),
        Err(why) => Outcome::Failed(why),
    }
}

/// The properties of all crates with cases that no run before had.
fn properties(root: &Path, deadline: Instant) -> Outcome {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seed = since.as_secs().to_string();
    // PROPTEST_CASES counts for each property alike, and the slowest would take the time.
    for (cases, test) in PROPERTIES {
        let mut command = cargo(root, &["test"]);
        command.args(test).env("PROPTEST_RNG_SEED", &seed).env("PROPTEST_CASES", cases.to_string());
        if let Some(outcome) = unless_success(exit_code_until(&mut command, deadline)) {
            return match outcome {
                Outcome::Failed(what) => Outcome::Failed(format!("{what}; PROPTEST_RNG_SEED={seed}")),
                other => other,
            };
        }
    }
    Outcome::Passed(format!("seed {seed}"))
}

/// Crates with properties, the number of cases, and the tests that are properties. Chosen: about four times
/// those of `cargo test`.
const PROPERTIES: [(u32, &[&str]); 4] = [
    (
        1024,
        &[
            "-p",
            "talkpath-units",
            "-p",
            "talkpath-scenario",
            "-p",
            "talkpath-transport",
            "-p",
            "talkpath-wire",
        ],
    ),
    (1024, &["-p", "talkpath-measure", "-p", "talkpath-path"]),
    (192, &["-p", "talkpath-sim", "properties"]),
    (96, &["-p", "talkpath-quic", "expire"]),
];

fn no_fast_path(root: &Path, deadline: Instant) -> Outcome {
    let test = ["test", "-p", "talkpath-sim", "--features", "no-fast-path", "--test", "digests"];
    match unless_success(exit_code_until(&mut cargo(root, &test), deadline)) {
        Some(outcome) => outcome,
        None => Outcome::Passed("the digests are those with it".to_owned()),
    }
}

fn dependencies(root: &Path, deadline: Instant) -> Outcome {
    let vendored = match vendored::check(root) {
        Err(vendored::Problem::Differs(what)) => return Outcome::Failed(what),
        result => result,
    };
    if !is_installed("deny") {
        return Outcome::Skipped("cargo-deny is missing: cargo install cargo-deny --locked".to_owned());
    }
    let check = ["deny", "check", "licenses", "bans", "sources"];
    match (unless_success(exit_code_until(&mut cargo(root, &check), deadline)), vendored) {
        (Some(outcome), _) => outcome,
        (None, Ok(vendored)) => Outcome::Passed(format!("what deny.toml allows; {vendored}")),
        (None, Err(why)) => Outcome::Skipped(why.into()),
    }
}

/// Whether cargo has a subcommand of this name.
fn is_installed(subcommand: &str) -> bool {
    let has = Command::new("cargo").args([subcommand, "--version"]).output();
    has.is_ok_and(|output| output.status.success())
}

/// A minute of fuzzing, from the committed corpus.
fn fuzz(root: &Path, target: &str, deadline: Instant) -> Outcome {
    fuzz_in_turn(root, &[target], deadline)
}

/// A minute of fuzzing for `targets` together, each from its committed corpus.
fn fuzz_in_turn(root: &Path, targets: &[&str], deadline: Instant) -> Outcome {
    if !is_installed("fuzz") {
        return Outcome::Skipped("cargo-fuzz is missing: cargo install cargo-fuzz".to_owned());
    }
    let seconds = format!("-max_total_time={}", 60 / targets.len());
    for target in targets {
        let mut command = Command::new("cargo");
        let arguments = ["fuzz", "run", target, "--", &seconds, "-rss_limit_mb=2048"];
        // The sanitizer's flags are unstable; with this a stable compiler takes them.
        command.current_dir(root.join("fuzz")).env("RUSTC_BOOTSTRAP", "1").args(arguments);
        if let Some(outcome) = unless_success(exit_code_until(&mut command, deadline)) {
            return match outcome {
                Outcome::Failed(what) => Outcome::Failed(format!("{target}: {what}")),
                other => other,
            };
        }
    }
    Outcome::Passed("no input made it fail in a minute".to_owned())
}

/// The outcome of a command that did not end with exit code 0.
fn unless_success(ended: Result<Option<i32>, String>) -> Option<Outcome> {
    match ended {
        Ok(Some(0)) => None,
        Ok(Some(code)) => Some(Outcome::Failed(format!("exit code {code}"))),
        Ok(None) => Some(Outcome::Failed("it did not end within its time".to_owned())),
        Err(why) => Some(Outcome::Failed(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nightly_jobs_take_at_most_123_minutes_together_as_the_usage_says() {
        let minutes: u64 = NIGHTLY.iter().map(|job| job.minutes).sum();
        assert!(minutes <= 123, "{minutes} minutes");
        assert!(crate::USAGE.contains("at most 123 minutes"), "what the usage says");
    }

    #[test]
    fn an_unknown_job_is_a_mistake_that_names_the_list() {
        let words = ["--only".to_owned(), "everything".to_owned()];
        let why = choose(&NIGHTLY, &words).map(|_| ()).unwrap_err();
        assert!(why.contains("everything") && why.contains("--list"), "{why}");
    }
}
