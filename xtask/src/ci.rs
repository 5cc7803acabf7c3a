//! What CI runs, so that it can be run at home: each step in order, the first failure ends it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Runs the steps named in `chosen`, or all of them.
pub(crate) fn run(root: &Path, chosen: &[String]) -> Result<String, String> {
    if chosen.iter().any(|argument| argument == "--list") {
        return Ok(STEPS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("\n"));
    }
    if let Some(unknown) = chosen.iter().find(|argument| !STEPS.iter().any(|(name, _)| name == argument)) {
        return Err(format!("no step `{unknown}`; `cargo xtask ci --list` names them"));
    }
    let mut passed = 0;
    for (name, step) in STEPS {
        if chosen.is_empty() || chosen.iter().any(|argument| argument == name) {
            println!("ci: {name}");
            step(root).map_err(|why| format!("{why}\nci: {name} failed"))?;
            passed += 1;
        }
    }
    Ok(format!("ci: {passed} passed, 0 failed"))
}

type Step = fn(&Path) -> Result<(), String>;

const STEPS: [(&str, Step); 10] = [
    ("test", |root| cargo(root, &["test", "--workspace"])),
    ("format", |root| cargo(root, &["fmt", "--all", "--check"])),
    ("clippy", |root| cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("docs", docs),
    ("tidy", |root| crate::tidy::run(root).map(|closing| println!("{closing}"))),
    ("citations", |root| crate::citations::run(root).map(|closing| println!("{closing}"))),
    ("kernel-peer", |root| crate::kernel_peer::run(root).map(|closing| println!("{closing}"))),
    ("smoke", smoke),
    ("studies", |root| studies(root, &STUDIES)),
    ("long-studies", |root| studies(root, &LONG_STUDIES)),
];

/// The measured papers whose short form the gate runs over the kernel's own stacks, two minutes each on an idle machine.
const STUDIES: [&str; 2] = ["zhang-schulzrinne-2004", "foderaro-1995"];
/// The others, with the same time for themselves. They run with `cargo xtask ci`, not in the gate.
const LONG_STUDIES: [&str; 1] = ["spoor-2014"];
/// What one step's studies may take together. A disturbed machine repeats runs, so that the time has no bound of its own.
const STUDIES_TIME: Duration = Duration::from_secs(300);
/// talkpath's exit code where an arena is not available.
const UNAVAILABLE: i32 = 3;

fn cargo(root: &Path, arguments: &[&str]) -> Result<(), String> {
    run_command(Command::new("cargo").current_dir(root).args(arguments))
}

fn docs(root: &Path) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.current_dir(root).env("RUSTDOCFLAGS", "-D warnings");
    run_command(command.args(["doc", "--workspace", "--no-deps"]))
}

/// The README's first command, and: a debug build on one job writes the record files of a release build on two.
fn smoke(root: &Path) -> Result<(), String> {
    let runs = root.join("target").join("ci-smoke");
    if runs.exists() {
        fs::remove_dir_all(&runs).map_err(|error| format!("{}: {error}", runs.display()))?;
    }
    let release = runs.join("release");
    let debug = runs.join("debug");
    run_command(compare(root, &release).args(["run", "--release", "--", "compare", "--jobs", "2"]))?;
    run_command(compare(root, &debug).args(["run", "--", "compare", "--jobs", "1"]).stdout(Stdio::null()))?;
    for file in ["packets.parquet", "series.parquet"] {
        let [left, right] = [read(&only_run(&release)?.join(file))?, read(&only_run(&debug)?.join(file))?];
        if left != right {
            return Err(format!("{file}: the debug build's differs from the release build's"));
        }
        println!(
            "{file}: {} bytes, the same from a release build on 2 jobs and a debug build on 1",
            left.len()
        );
    }
    Ok(())
}

/// The short form of `studies` in the emulated arena, within [`STUDIES_TIME`] in all. What the machine disturbs has no
/// verdict and fails nothing; what time or machine leave out is skipped, and says so.
fn studies(root: &Path, studies: &[&str]) -> Result<(), String> {
    cargo(root, &["build", "--release"])?;
    let program = root.join("target").join("release").join("talkpath");
    let out = root.join("target").join("ci-studies");
    let deadline = Instant::now() + STUDIES_TIME;
    for study in studies {
        let began = Instant::now();
        let mut command = Command::new(&program);
        command
            .current_dir(root)
            .args(["study", "run", study, "--arena", "emu", "--quick", "--out"])
            .arg(&out);
        match exit_code_until(&mut command, deadline)? {
            Some(0) => println!("ci: {study} in emu: as expected, {} s", began.elapsed().as_secs()),
            Some(UNAVAILABLE) => {
                println!("ci: SKIP: {study} in emu did not run: the arena is not available here");
            }
            Some(code) => return Err(format!("{study} in emu: exit code {code}")),
            None => println!("ci: SKIP: {study} in emu has no verdict: it did not end within five minutes"),
        }
    }
    Ok(())
}

/// Runs `command` to its end, or ends it at `deadline` and returns nothing.
fn exit_code_until(command: &mut Command, deadline: Instant) -> Result<Option<i32>, String> {
    let shown = shown(command);
    println!("$ {shown}");
    let failed = |error: io::Error| format!("{shown}: {error}");
    let mut child = command.spawn().map_err(failed)?;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return status.code().map(Some).ok_or_else(|| format!("{shown}: {status}"));
        }
        if Instant::now() >= deadline {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn compare(root: &Path, out: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).env("TALKPATH_OUT", out);
    command
}

fn only_run(out: &Path) -> Result<PathBuf, String> {
    let mut entries = fs::read_dir(out).map_err(|error| format!("{}: {error}", out.display()))?;
    match (entries.next(), entries.next()) {
        (Some(Ok(entry)), None) => Ok(entry.path()),
        _ => Err(format!("{}: expected one run directory", out.display())),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn run_command(command: &mut Command) -> Result<(), String> {
    match exit_code(command)? {
        0 => Ok(()),
        code => Err(format!("{}: exit code {code}", shown(command))),
    }
}

/// Runs `command` to its end.
fn exit_code(command: &mut Command) -> Result<i32, String> {
    let shown = shown(command);
    println!("$ {shown}");
    let status = command.status().map_err(|error| format!("{shown}: {error}"))?;
    status.code().ok_or_else(|| format!("{shown}: {status}"))
}

fn shown(command: &Command) -> String {
    format!("{command:?}").replace('"', "")
}
