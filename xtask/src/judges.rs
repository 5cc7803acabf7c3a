//! Judges that are not ours: scripts in Python beside the scenarios that they judge (`xtask/judges`).
//!
//! - `recount.py` computes shares in time, opinion scores and winners again, from the rows and the reference
//!   pages alone.
//! - `speech.py` holds opinion scores against PESQ on recorded speech.
//!
//! Their packages come from PyPI into a virtual environment, and the recordings from two packages of Debian,
//! all under `target/judges`. What cannot be had is a reason to skip.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::ci::{exit_code_until, only_run};
use crate::venv::{self, done};

/// How a judge ended.
pub(crate) enum Judged {
    /// What it found.
    Agrees(String),
    /// It found a difference, or could not be run.
    Differs(String),
    /// What is missing.
    Missing(String),
}

/// Recounts the cells of three scenarios.
pub(crate) fn recount(root: &Path, deadline: Instant) -> Judged {
    judge(root, deadline, "recount", &["calls", "both", "game"], &[])
}

/// Holds calls against PESQ on recorded speech.
pub(crate) fn speech(root: &Path, deadline: Instant) -> Judged {
    match recordings(root, deadline) {
        Ok(found) if found.is_empty() => {
            let names = SOUNDS.map(|(package, ..)| package).join(", ");
            Judged::Missing(format!("no recorded speech: apt-get install {names}"))
        }
        Ok(found) => judge(root, deadline, "speech", &["speech"], &found),
        Err(why) => Judged::Missing(why),
    }
}

/// Runs `scenarios` in the release build, and `script` on what they leave behind and on `inputs`.
fn judge(root: &Path, deadline: Instant, script: &str, scenarios: &[&str], inputs: &[PathBuf]) -> Judged {
    let python = match environment(root, deadline) {
        Ok(python) => python,
        Err(why) => return Judged::Missing(why),
    };
    let folder = root.join("xtask").join("judges");
    let mut command = Command::new(python);
    command.arg(folder.join(format!("{script}.py")));
    for scenario in scenarios {
        let out = root.join("target").join("judges").join(scenario);
        let _ = fs::remove_dir_all(&out);
        let mut run = Command::new(root.join("target").join("release").join("talkpath"));
        run.arg("run").arg(folder.join(format!("{scenario}.toml"))).arg("--out").arg(&out);
        run.args(["--quiet", "--series", "sampled"]).stdout(Stdio::null());
        match exit_code_until(&mut run, deadline) {
            Ok(Some(0)) => {}
            Ok(Some(code)) => return Judged::Differs(format!("{scenario}.toml: exit code {code}")),
            Ok(None) => return Judged::Differs(format!("{scenario}.toml did not end in time")),
            Err(why) => return Judged::Differs(why),
        }
        match only_run(&out) {
            Ok(run) => command.arg(run),
            Err(why) => return Judged::Differs(why),
        };
    }
    command.args(inputs);
    match output(&mut command, deadline) {
        Ok((true, closing)) => Judged::Agrees(closing),
        Ok((false, closing)) => Judged::Differs(closing),
        Err(why) => Judged::Differs(why),
    }
}

/// A Python that has the packages of both scripts.
fn environment(root: &Path, deadline: Instant) -> Result<PathBuf, String> {
    let folder = root.join("target").join("judges").join("python");
    // PESQ is built from C and needs what comes before it.
    venv::environment(&folder, READY, (&["--no-build-isolation"], &[&BUILDING[..], &PACKAGES[..]]), deadline)
}

/// The recordings, from where Debian puts them, or from its packages without installing them.
fn recordings(root: &Path, deadline: Instant) -> Result<Vec<PathBuf>, String> {
    let folder = root.join("target").join("judges").join("sounds");
    let mut found = Vec::new();
    for (package, place, names) in SOUNDS {
        let installed = Path::new("/").join(place);
        let unpacked = folder.join(place);
        if !installed.exists() && !unpacked.exists() {
            fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            let mut download = Command::new("apt-get");
            download.current_dir(&folder).args(["download", "-qq", package]);
            done(&mut download, deadline).map_err(|why| format!("{package}: {why}"))?;
            let archives = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            let of_package = |path: &PathBuf| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(package))
            };
            for archive in archives.flatten().map(|entry| entry.path()).filter(of_package) {
                let mut unpack = Command::new("dpkg");
                unpack.arg("-x").arg(archive).arg(&folder);
                done(&mut unpack, deadline).map_err(|why| format!("{package}: {why}"))?;
            }
        }
        let place = if installed.exists() { installed } else { unpacked };
        found.extend(names.iter().map(|name| place.join(name)).filter(|path| path.exists()));
    }
    Ok(found)
}

/// Whether it succeeded, and the last line that it printed; all of it is printed on.
fn output(command: &mut Command, deadline: Instant) -> Result<(bool, String), String> {
    let place = std::env::temp_dir().join(format!("talkpath-judge-{}", std::process::id()));
    let file = fs::File::create(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let code = exit_code_until(command.stdout(file), deadline);
    let text = fs::read_to_string(&place).unwrap_or_default();
    let _ = fs::remove_file(&place);
    print!("{text}");
    let closing = text.lines().last().unwrap_or("it printed nothing").to_owned();
    match code? {
        Some(code) => Ok((code == 0, closing)),
        None => Err("it did not end in time".to_owned()),
    }
}

/// Marks an environment that is whole; another name when a package changes.
const READY: &str = "ready-1";
const BUILDING: [&str; 4] = ["numpy", "cython", "setuptools", "wheel"];
/// pyarrow reads the record files; pesq wraps the reference code of ITU-T P.862.
const PACKAGES: [&str; 2] = ["pyarrow", "pesq==0.0.4"];
/// Packages of Debian, where they put their recordings, and some of these. Asterisk's prompts
/// are by Allison Smith (CC BY-SA 3.0); the others are from LibriVox (public domain).
const SOUNDS: [(&str, &str, &[&str]); 2] = [
    (
        "asterisk-core-sounds-en-wav",
        "usr/share/asterisk/sounds/en_US_f_Allison",
        &["demo-congrats.wav", "priv-callee-options.wav", "basic-pbx-ivr-main.wav"],
    ),
    (
        "pocketsphinx-testdata",
        "usr/share/pocketsphinx/test/data/librivox",
        &[
            "sense_and_sensibility_01_austen_64kb-0870.wav",
            "sense_and_sensibility_01_austen_64kb-0880.wav",
            "sense_and_sensibility_01_austen_64kb-0890.wav",
            "sense_and_sensibility_01_austen_64kb-0920.wav",
            "sense_and_sensibility_01_austen_64kb-0930.wav",
        ],
    ),
];
