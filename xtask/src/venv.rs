//! Virtual environments of Python under `target`, each made once: what is in one comes from PyPI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::command::exit_code_until;

/// The Python of the environment in `folder`, made unless the file `ready` says that it is whole: change that
/// name when a package changes. `groups` are installed one after the other, with `flags`.
///
/// # Errors
/// What cannot be had, and why.
pub(crate) fn environment(
    folder: &Path,
    ready: &str,
    (flags, groups): (&[&str], &[&[&str]]),
    deadline: Instant,
) -> Result<PathBuf, String> {
    let python = folder.join("bin").join("python");
    let ready = folder.join(ready);
    if ready.exists() {
        return Ok(python);
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(folder);
    done(&mut make, deadline).map_err(|why| format!("no virtual environment of Python: {why}"))?;
    for packages in groups {
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet"]).args(flags).args(*packages);
        done(&mut install, deadline).map_err(|why| format!("pip install {}: {why}", packages.join(" ")))?;
    }
    fs::write(&ready, "").map_err(|error| format!("{}: {error}", ready.display()))?;
    Ok(python)
}

/// Runs `command` to its end, without its standard output.
pub(crate) fn done(command: &mut Command, deadline: Instant) -> Result<(), String> {
    done_aloud(command.stdout(Stdio::null()), deadline)
}

/// As [`done`], with its standard output.
pub(crate) fn done_aloud(command: &mut Command, deadline: Instant) -> Result<(), String> {
    match exit_code_until(command, deadline)? {
        Some(0) => Ok(()),
        Some(code) => Err(format!("exit code {code}")),
        None => Err("it did not end in time".to_owned()),
    }
}
