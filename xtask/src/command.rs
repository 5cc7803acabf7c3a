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
///
/// The variables that `cargo xtask` sets for xtask itself are taken out. Ring's build script reads them, so
/// that ring and all its users would be built anew, and once more by the next cargo outside of xtask.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(arguments);
    for (variable, _) in std::env::vars_os() {
        if variable.to_str().is_some_and(is_of_xtask) {
            command.env_remove(variable);
        }
    }
    command
}

/// Whether cargo sets this variable for the package that it runs.
fn is_of_xtask(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
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
    let text = format!("{command:?}").replace('"', "");
    // `env -u NAME -u NAME cargo ...` where variables of xtask are taken out.
    let mut words: Vec<&str> = text.split(' ').collect();
    while let Some(at) = words.windows(2).position(|pair| pair[0] == "-u" && is_of_xtask(pair[1])) {
        words.drain(at..at + 2);
        words.retain(|word| *word != "env");
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_says_of_xtask_is_kept_from_another_cargo_and_out_of_what_is_shown() {
        assert!(["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"].into_iter().all(is_of_xtask));
        assert!(!["CARGO_TARGET_DIR", "CARGO_HOME", "CARGO_PROFILE_DEV_DEBUG"].into_iter().any(is_of_xtask));
        let mut command = Command::new("cargo");
        command.args(["test", "-p", "x"]).env_remove("CARGO_PKG_NAME").env_remove("CARGO_MANIFEST_DIR");
        assert_eq!(shown(&command), "cargo test -p x");
        assert_eq!(shown(command.env("A", "1")), "A=1 cargo test -p x");
    }
}
