//! Commands: how they are run and what they leave.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// talkpath's exit code if an arena is not available, and that of `quic_beside`.
pub(crate) const UNAVAILABLE: i32 = 3;

/// cargo with `arguments`, at the workspace's root.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(arguments);
    command
}

/// Runs cargo with `arguments` to its end.
pub(crate) fn run_cargo(root: &Path, arguments: &[&str]) -> Result<(), String> {
    run_command(&mut cargo(root, arguments))
}

/// The debug build's program, as the tests have built it. `cargo build` would build it once more: without the
/// tests' dependencies some crates have other features.
pub(crate) fn debug_program(root: &Path) -> Result<PathBuf, String> {
    run_cargo(root, &["test", "--quiet", "--workspace", "--test", "program", "--no-run"])?;
    Ok(root.join("target").join("debug").join("talkpath"))
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

/// The one run directory in `out`.
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

/// Runs `command`, which is to end with 0.
pub(crate) fn run_command(command: &mut Command) -> Result<(), String> {
    match exit_code(command)? {
        0 => Ok(()),
        code => Err(format!("{}: exit code {code}", shown(command))),
    }
}

/// Runs `command` to its end.
pub(crate) fn exit_code(command: &mut Command) -> Result<i32, String> {
    let shown = shown(command);
    println!("$ {shown}");
    let status = command.status().map_err(|error| format!("{shown}: {error}"))?;
    status.code().ok_or_else(|| format!("{shown}: {status}"))
}

fn shown(command: &Command) -> String {
    format!("{command:?}").replace('"', "")
}
