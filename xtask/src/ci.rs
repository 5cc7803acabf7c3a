//! What CI runs, so that it can be run at home: each step in order, the first failure ends it.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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

const STEPS: [(&str, Step); 9] = [
    ("test", |root| run_cargo(root, &["test", "--workspace"])),
    ("format", |root| run_cargo(root, &["fmt", "--all", "--check"])),
    ("clippy", |root| run_cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("docs", docs),
    ("tidy", |root| crate::tidy::run(root).map(|closing| println!("{closing}"))),
    ("citations", |root| crate::citations::run(root, &[]).map(|closing| println!("{closing}"))),
    ("smoke", smoke),
    ("python", crate::python::smoke),
    ("pages", |root| crate::docs::run(root, &["--check".to_owned()]).map(|closing| println!("{closing}"))),
];

/// talkpath's exit code if an arena is not available, and that of `quic_beside`.
pub(crate) const UNAVAILABLE: i32 = 3;

/// cargo with `arguments`, at the workspace's root.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(arguments);
    command
}

fn run_cargo(root: &Path, arguments: &[&str]) -> Result<(), String> {
    run_command(&mut cargo(root, arguments))
}

fn docs(root: &Path) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.current_dir(root).env("RUSTDOCFLAGS", "-D warnings");
    run_command(command.args(["doc", "--workspace", "--no-deps"]))
}

/// One scenario in each arena, by the debug build that the tests have made. The simulator's record files are
/// the same on one job and on two.
fn smoke(root: &Path) -> Result<(), String> {
    let runs = root.join("target").join("ci-smoke");
    if runs.exists() {
        fs::remove_dir_all(&runs).map_err(|error| format!("{}: {error}", runs.display()))?;
    }
    let program = debug_program(root)?;
    fs::create_dir_all(&runs).map_err(|error| format!("{}: {error}", runs.display()))?;
    let scenario = runs.join("call.toml");
    fs::write(&scenario, SMOKE).map_err(|error| format!("{}: {error}", scenario.display()))?;
    let run = |out: &str, arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("run").arg(&scenario).args(arguments).arg("--out").arg(runs.join(out));
        command
    };
    run_command(&mut run("one", &["--jobs", "1"]))?;
    run_command(run("two", &["--jobs", "2"]).stdout(Stdio::null()))?;
    for file in ["packets.parquet", "series.parquet"] {
        let [left, right] = [
            read(&only_run(&runs.join("one"))?.join(file))?,
            read(&only_run(&runs.join("two"))?.join(file))?,
        ];
        if left != right {
            return Err(format!("{file}: differs on one job and on two"));
        }
        println!("{file}: {} bytes, the same on one job and on two", left.len());
    }
    match exit_code(&mut run("emu", &["--arena", "emu", "--repeat", "1"]))? {
        0 => {}
        UNAVAILABLE => println!("ci: SKIP: the smoke run in emu: the arena is not available here"),
        code => return Err(format!("the smoke run in emu: exit code {code}")),
    }
    let mut server = Command::new(&program);
    server.args(["serve", "--open", "--bind", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut server = server.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    let live = address_of(&mut server)
        .and_then(|address| run_command(&mut run("live", &["--to", &address, "--repeat", "1"])));
    server.kill().and_then(|()| server.wait()).map_err(|error| format!("serve: {error}"))?;
    live
}

/// The debug build's program, as the tests have built it. `cargo build` would build it once more: without the
/// tests' dependencies some crates have other features.
pub(crate) fn debug_program(root: &Path) -> Result<PathBuf, String> {
    run_cargo(root, &["test", "--quiet", "--workspace", "--test", "program", "--no-run"])?;
    Ok(root.join("target").join("debug").join("talkpath"))
}

/// A second of a call over two transports.
const SMOKE: &str = "\
name = \"smoke\"
duration = \"1 s\"
drain = \"1 s\"
repeat = 4
path = \"home-adsl\"

[flow.call]
transport = \"udp\"
workload = { kind = \"voice\", codec = \"g711\", echo = true }

[sweep]
\"flow.call.transport\" = [\"udp\", \"tcp\"]
";

/// The address on which a server that was just started listens.
fn address_of(server: &mut Child) -> Result<String, String> {
    let stdout = server.stdout.take().ok_or("serve: no output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).map_err(|error| format!("serve: {error}"))?;
    let address = line.trim().strip_prefix("listening on ");
    address.map(str::to_owned).ok_or_else(|| format!("serve said {line:?}"))
}

/// Runs `command` to its end, or ends it at `deadline` and returns nothing.
pub(crate) fn exit_code_until(command: &mut Command, deadline: Instant) -> Result<Option<i32>, String> {
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

pub(crate) fn only_run(out: &Path) -> Result<PathBuf, String> {
    let mut entries = fs::read_dir(out).map_err(|error| format!("{}: {error}", out.display()))?;
    match (entries.next(), entries.next()) {
        (Some(Ok(entry)), None) => Ok(entry.path()),
        _ => Err(format!("{}: expected one run directory", out.display())),
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
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
