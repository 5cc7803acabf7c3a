//! What CI runs, so that it can be run at home: each step in order, the first failure ends it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::command::{UNAVAILABLE, cargo, debug_program, exit_code, only_run, read, run_cargo, run_command};

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

fn docs(root: &Path) -> Result<(), String> {
    run_command(cargo(root, &["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
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
