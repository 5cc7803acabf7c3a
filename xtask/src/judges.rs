//! Judges that are not ours: scripts in Python beside the scenarios that they judge (`xtask/judges`).
//!
//! - `recount.py` computes shares in time, opinion scores and winners again, from the rows and the reference
//!   pages alone.
//! - `speech.py` holds opinion scores against PESQ on recorded speech.
//! - `hearing.py` holds opinion scores against PESQ, PLCMOS (`raters.py`) and ViSQOL on the sounds of
//!   `talkpath listen`.
//! - `ui.py` does in Chromium what a user does in the window.
//! - `browser.py` opens a report, a player and a study's page in Chromium.
//! - `shell.py` runs programs of others at both ends of a path of `talkpath shell`, and a call of Chromium.
//! - `operations.py` holds a monitor's metrics, the systemd units and STAMP against others' programs.
//! - `monitor.py` runs a monitor of fifty calls beside irtt, and counts both on a bridge between the hosts.
//! - `engines.py` runs sweeps on the cores, Ray, Dask and Slurm, and kills workers.
//! - `neteq.py` records what the jitter buffer of Chromium does on 29 paths. A test replays it.
//! - `store.py` has a campaign copied by rclone to moto's S3 and to a folder, kills the copying, and reads it
//!   with polars.
//!
//! Their packages come from PyPI into a virtual environment, and the recordings from two packages of Debian,
//! all under `target/judges`. What cannot be had is a reason to skip.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::command::{UNAVAILABLE, cargo, exit_code_until, only_run};
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
    match recordings(root, &SOUNDS, deadline) {
        Ok(found) if found.is_empty() => {
            let names = SOUNDS.map(|(package, ..)| package).join(", ");
            Judged::Missing(format!("no recorded speech: apt-get install {names}"))
        }
        Ok(found) => judge(root, deadline, "speech", &["speech"], &found),
        Err(why) => Judged::Missing(why),
    }
}

/// Holds scores against judges that hear the sounds of the same calls.
pub(crate) fn hearing(root: &Path, deadline: Instant) -> Judged {
    let folder = root.join("target").join("judges").join("hearing");
    let packages = (&["--no-build-isolation"][..], &[&BUILDING[..], &HEARING_PACKAGES[..]][..]);
    let python = match venv::environment(&folder, HEARING_READY, packages, deadline) {
        Ok(python) => python,
        Err(why) => return Judged::Missing(why),
    };
    match recordings(root, &SOUNDS, deadline) {
        Ok(speech) if speech.is_empty() => {
            Judged::Missing(format!("no recorded speech: apt-get install {}", SOUNDS[1].0))
        }
        Ok(speech) => judge_with(root, deadline, &python, "hearing", &HEARING_PATHS, &speech),
        Err(why) => Judged::Missing(why),
    }
}

/// Opens a report of a sweep, a player and a study's page in Chromium.
pub(crate) fn browser(root: &Path, deadline: Instant) -> Judged {
    let python = match browser_environment(root, deadline) {
        Ok(python) => python,
        Err(why) => return Judged::Missing(why),
    };
    let pages = match pages(root, deadline) {
        Ok(pages) => pages,
        Err(why) => return Judged::Differs(why),
    };
    let mut command = Command::new(python);
    command.arg(root.join("xtask").join("judges").join("browser.py"));
    command.arg(root.join("target").join("judges").join("screenshots")).args(pages);
    verdict(output(&mut command, deadline))
}

/// Records Chromium's jitter buffer anew, and runs the test of our receiver on the new recording.
pub(crate) fn neteq(root: &Path, deadline: Instant) -> Judged {
    let (python, speech) = match (environment(root, deadline), recordings(root, &SOUNDS[1..], deadline)) {
        (Ok(_), Ok(speech)) if speech.is_empty() => {
            return Judged::Missing(format!("no recorded speech: apt-get install {}", SOUNDS[1].0));
        }
        (Ok(python), Ok(speech)) => (python, speech),
        (Err(why), _) | (_, Err(why)) => return Judged::Missing(why),
    };
    let folder = root.join("target").join("judges").join("neteq");
    let mut command = Command::new(python);
    command.arg(root.join("xtask").join("judges").join("neteq.py")).arg("record").arg(&folder).args(speech);
    let recorded = match verdict(output(&mut command, deadline)) {
        Judged::Agrees(closing) => closing,
        other => return other,
    };
    let mut test = cargo(root, &["test", "-p", "talkpath-measure", "--test", "neteq", "--", "--nocapture"]);
    match exit_code_until(test.env("TALKPATH_NETEQ", &folder), deadline) {
        Ok(Some(0)) => Judged::Agrees(recorded),
        Ok(Some(_)) => Judged::Differs(format!("{recorded}: see the differences above")),
        Ok(None) => Judged::Differs("the test did not end in time".to_owned()),
        Err(why) => Judged::Differs(why),
    }
}

/// Runs programs of others in `talkpath shell`.
pub(crate) fn shell(root: &Path, deadline: Instant) -> Judged {
    let folder = root.join("target").join("judges").join("shell");
    let packages = (&[][..], &[&SHELL_PACKAGES[..]][..]);
    let python = match venv::environment(&folder, SHELL_READY, packages, deadline) {
        Ok(python) => python,
        Err(why) => return Judged::Missing(why),
    };
    let mut command = Command::new(python);
    command.arg(root.join("xtask").join("judges").join("shell.py"));
    command.arg(root.join("target").join("release").join("talkpath"));
    verdict(output(&mut command, deadline))
}

/// Does in Chromium what a user does in the window.
pub(crate) fn ui(root: &Path, deadline: Instant) -> Judged {
    let python = match browser_environment(root, deadline) {
        Ok(python) => python,
        Err(why) => return Judged::Missing(why),
    };
    let target = root.join("target");
    let mut command = Command::new(python);
    command.arg(root.join("xtask").join("judges").join("ui.py"));
    command.arg(target.join("release").join("talkpath")).arg(target.join("judges").join("ui"));
    verdict(output(&mut command, deadline))
}

/// Makes the pages with the release build.
fn pages(root: &Path, deadline: Instant) -> Result<Vec<PathBuf>, String> {
    let out = root.join("target").join("judges").join("pages");
    let _ = fs::remove_dir_all(&out);
    let talkpath = |arguments: &[&str], name: &str| {
        let mut run = Command::new(root.join("target").join("release").join("talkpath"));
        run.args(arguments).arg("--out").arg(out.join(name)).arg("--quiet");
        match exit_code_until(run.stdout(Stdio::null()), deadline)? {
            Some(0) => only_run(&out.join(name)),
            Some(code) => Err(format!("talkpath {}: exit code {code}", arguments.join(" "))),
            None => Err(format!("talkpath {} did not end in time", arguments.join(" "))),
        }
    };
    let scenario = root.join("xtask").join("judges").join("pages.toml");
    let scenario = scenario.to_string_lossy();
    let sweep = talkpath(&["run", &scenario], "sweep")?;
    let study = talkpath(&["study", "run", "foderaro-1995", "--quick"], "study")?;
    let mut play = Command::new(root.join("target").join("release").join("talkpath"));
    done(play.arg("play").arg(&sweep), deadline).map_err(|why| format!("talkpath play: {why}"))?;
    Ok(vec![sweep.join("report.html"), sweep.join("play.html"), study.join("report.html")])
}

/// Holds what runs for ever against others' programs: metrics, units, STAMP.
pub(crate) fn operations(root: &Path, deadline: Instant) -> Judged {
    let target = root.join("target");
    let suite = target.join("judges").join("stamp").join("bin").join("stamp-suite");
    let inputs = [target.join("release").join("talkpath"), root.join("packaging"), suite];
    judge(root, deadline, "operations", &[], &inputs)
}

/// Holds what a campaign has copied by rclone against moto's server, a folder and polars.
pub(crate) fn store(root: &Path, deadline: Instant) -> Judged {
    if done(Command::new("rclone").arg("version"), deadline).is_err() {
        return Judged::Missing("no rclone: apt-get install rclone".to_owned());
    }
    let folder = root.join("target").join("judges").join("store");
    let python =
        match venv::environment(&folder.join("python"), STORE_READY, (&[], &[&STORE_PACKAGES[..]]), deadline)
        {
            Ok(python) => python,
            Err(why) => return Judged::Missing(why),
        };
    let mut command = Command::new(python);
    command.arg(root.join("xtask").join("judges").join("store.py"));
    command.arg(root.join("target").join("release").join("talkpath")).arg(folder.join("campaign"));
    verdict(output(&mut command, deadline))
}

/// Runs a monitor beside irtt for an hour, over namespaces and a bridge that counts.
pub(crate) fn monitor(root: &Path, deadline: Instant) -> Judged {
    let mut command = Command::new("python3");
    command.arg(root.join("xtask").join("judges").join("monitor.py"));
    command.arg(root.join("target").join("release").join("talkpath")).arg("3600");
    verdict(output(&mut command, deadline))
}

/// Holds sweeps on the cores, Ray, Dask and Slurm against the run of one program, with workers killed.
pub(crate) fn engines(root: &Path, deadline: Instant) -> Judged {
    let target = root.join("target");
    let folder = target.join("judges").join("engines");
    let packages = (&[][..], &[&ENGINES_PACKAGES[..]][..]);
    let python = match venv::environment(&folder.join("python"), ENGINES_READY, packages, deadline) {
        Ok(python) => python,
        Err(why) => return Judged::Missing(why),
    };
    let mut command = Command::new(python);
    command.arg(root.join("xtask").join("judges").join("engines.py"));
    command.arg(target.join("release").join("talkpath")).arg(folder.join("sweeps"));
    verdict(output(&mut command, deadline))
}

/// Runs `scenarios` in the release build, and `script` on what they leave behind and on `inputs`.
fn judge(root: &Path, deadline: Instant, script: &str, scenarios: &[&str], inputs: &[PathBuf]) -> Judged {
    match environment(root, deadline) {
        Ok(python) => judge_with(root, deadline, &python, script, scenarios, inputs),
        Err(why) => Judged::Missing(why),
    }
}

/// Runs the scenarios, and the script on their directories and on `inputs`.
fn judge_with(
    root: &Path,
    deadline: Instant,
    python: &Path,
    script: &str,
    scenarios: &[&str],
    inputs: &[PathBuf],
) -> Judged {
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
    verdict(output(&mut command, deadline))
}

/// A script's exit code and last line as a verdict.
fn verdict(ended: Result<(i32, String), String>) -> Judged {
    match ended {
        Ok((0, closing)) => Judged::Agrees(closing),
        Ok((UNAVAILABLE, closing)) => Judged::Missing(closing),
        Ok((_, closing)) => Judged::Differs(closing),
        Err(why) => Judged::Differs(why),
    }
}

/// A Python that has the packages of all scripts, if Chromium is there, too.
fn browser_environment(root: &Path, deadline: Instant) -> Result<PathBuf, String> {
    let mut version = Command::new("chromium");
    if done(version.arg("--version"), deadline).is_err() {
        return Err("no chromium: apt-get install chromium".to_owned());
    }
    environment(root, deadline)
}

/// A Python that has the packages of all scripts.
fn environment(root: &Path, deadline: Instant) -> Result<PathBuf, String> {
    let folder = root.join("target").join("judges").join("python");
    // PESQ is built from C and needs what comes before it.
    venv::environment(&folder, READY, (&["--no-build-isolation"], &[&BUILDING[..], &PACKAGES[..]]), deadline)
}

/// The recordings, from where Debian puts them, or from its packages without installing them.
fn recordings(root: &Path, sounds: &[Sounds], deadline: Instant) -> Result<Vec<PathBuf>, String> {
    let folder = root.join("target").join("judges").join("sounds");
    let mut found = Vec::new();
    for (package, place, names) in sounds {
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

/// Its exit code, and the last line that it printed; all of it is printed on.
fn output(command: &mut Command, deadline: Instant) -> Result<(i32, String), String> {
    let place = std::env::temp_dir().join(format!("talkpath-judge-{}", std::process::id()));
    let file = fs::File::create(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let code = exit_code_until(command.stdout(file), deadline);
    let text = fs::read_to_string(&place).unwrap_or_default();
    let _ = fs::remove_file(&place);
    print!("{text}");
    let closing = text.lines().last().unwrap_or("it printed nothing").to_owned();
    match code? {
        Some(code) => Ok((code, closing)),
        None => Err("it did not end in time".to_owned()),
    }
}

/// Marks an environment that is whole; another name when a package changes.
const READY: &str = "ready-2";
const BUILDING: [&str; 4] = ["numpy", "cython", "setuptools", "wheel"];
/// pyarrow reads the record files; pesq wraps the reference code of ITU-T P.862; playwright drives Chromium,
/// and axe-playwright-python brings axe-core; prometheus-client has a parser of OpenMetrics.
const PACKAGES: [&str; 5] =
    ["pyarrow", "pesq==0.0.4", "playwright==1.65.2", "axe-playwright-python==0.1.8", "prometheus-client"];
/// As [`READY`], of [`hearing`].
const HEARING_READY: &str = "ready-2";
/// PESQ as above, a network that hears concealment with what runs it, and ViSQOL in Python alone.
const HEARING_PACKAGES: [&str; 4] =
    ["pesq==0.0.4", "speechmos==0.0.1.1", "onnxruntime==1.32.0", "visqol-python[accel]==3.5.0"];
/// The kinds of path whose calls are heard.
const HEARING_PATHS: [&str; 5] =
    ["hearing-losses", "hearing-bursts", "hearing-jitter", "hearing-queue", "hearing-pauses"];
/// As [`READY`], of [`shell`].
const SHELL_READY: &str = "ready-1";
/// A QUIC endpoint of others.
const SHELL_PACKAGES: [&str; 1] = ["aioquic==1.7.2"];
/// As [`READY`], of [`store`].
const STORE_READY: &str = "ready-1";
/// moto has a server that speaks S3 and checks signatures, boto3 its clients; polars reads from S3.
const STORE_PACKAGES: [&str; 3] = ["moto[server]==5.2.5", "boto3", "polars==2.1.0"];
/// As [`READY`], of [`engines`].
const ENGINES_READY: &str = "ready-1";
/// The two engines that are Python packages (Slurm is Debian's), a server that speaks S3 and fsspec's client.
const ENGINES_PACKAGES: [&str; 4] = ["ray==2.60.0", "distributed==2026.8.0", "moto[server]==5.2.5", "s3fs"];
/// A package of Debian, where it puts its recordings, and some of these.
type Sounds = (&'static str, &'static str, &'static [&'static str]);
/// The packages with recordings. Asterisk's prompts
/// are by Allison Smith (CC BY-SA 3.0); the others are from LibriVox (public domain).
const SOUNDS: [Sounds; 2] = [
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
