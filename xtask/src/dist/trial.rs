//! Each package in a bare root of Debian 12: Python and nothing to compile with. The root is made by
//! mmdebstrap, which is taken out of its own package if it is not installed, and needs the rights of root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::command::exit_code_until;
use crate::venv::done;

/// What nobody has tried here, and the last lines say.
const UNTRIED: [&str; 6] = [
    "untested: another system than Debian 12, and another processor than x86-64",
    "untested: a system with an older glibc, and musl",
    "untested: pip install from the sources, and cargo install --path crates/cli",
    "untested: a container's image",
    "untested: the units of systemd: nothing is started in the root",
    "untested: completions, other than that they are there",
];

/// A wheel, a Debian package and an archive, each with how it is installed, where the program is then, and
/// how it is removed.
struct Trial<'a> {
    package: &'a Path,
    install: Vec<String>,
    program: &'static str,
    remove: Vec<String>,
}

/// Tries the packages; a line for each, and what was not tried.
///
/// # Errors
/// A package that cannot be installed, or does not answer as the program itself.
pub(super) fn run(packages: &Path, made: [&Path; 3], deadline: Instant) -> Result<String, String> {
    let mut lines = Vec::new();
    match bare_root(packages, deadline) {
        Err(why) => lines.extend(made.map(|it| format!("untested: {}: {why}", name(it)))),
        Ok(root) => {
            let answer = answer(&own_answer(packages)?)?;
            for trial in trials(made) {
                lines.push(try_one(&root, &trial, &answer, deadline)?);
            }
        }
    }
    lines.extend(UNTRIED.map(str::to_owned));
    Ok(lines.join("\n"))
}

fn trials([wheel, debian, archive]: [&Path; 3]) -> [Trial<'_>; 3] {
    let folder = name(archive).trim_end_matches(".tar.gz").to_owned();
    let lines = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    [
        Trial {
            package: wheel,
            install: lines(&[
                "python3 -m venv v",
                &format!("v/bin/pip install --quiet --no-index {}", name(wheel)),
                "v/bin/python -c 'import talkpath'",
            ]),
            program: "v/bin/talkpath",
            remove: lines(&["v/bin/pip uninstall --quiet --yes talkpath", "test ! -e v/bin/talkpath"]),
        },
        Trial {
            package: debian,
            install: lines(&[
                &format!("dpkg -i {}", name(debian)),
                "test -s /usr/share/man/man1/talkpath-compare.1.gz",
                "test -s /usr/share/bash-completion/completions/talkpath",
                "test -s /usr/share/doc/talkpath/copyright",
                "test -s /usr/share/doc/talkpath/changelog.gz",
            ]),
            program: "talkpath",
            // The root is used again, and so must be as bare as before.
            remove: lines(&["dpkg --purge talkpath", "test ! -e /usr/bin/talkpath"]),
        },
        Trial {
            package: archive,
            install: lines(&[&format!("tar -xzf {}", name(archive)), &format!("ln -s {folder} unpacked")]),
            program: "unpacked/bin/talkpath",
            remove: Vec::new(),
        },
    ]
}

/// Installs one package in `root`, runs `compare`, and holds its answer against `answer`.
fn try_one(root: &Path, trial: &Trial<'_>, answer: &str, deadline: Instant) -> Result<String, String> {
    let shown = name(trial.package);
    let folder = root.join("trial");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    super::copy(trial.package, &folder.join(&shown))?;
    let began = Instant::now();
    let compare = [format!("{} compare >answer", trial.program)];
    let no_compiler =
        ["for tool in cc gcc rustc cargo; do if command -v $tool; then exit 9; fi; done".to_owned()];
    in_root(root, &script(&[&no_compiler, &trial.install, &compare]), deadline)
        .map_err(|why| format!("{shown}: {why}"))?;
    let seconds = began.elapsed().as_secs_f64();
    if !trial.remove.is_empty() {
        in_root(root, &script(&[&trial.remove]), deadline)
            .map_err(|why| format!("{shown}: removal: {why}"))?;
    }
    let printed = fs::read_to_string(folder.join("answer")).map_err(|error| format!("{shown}: {error}"))?;
    let found = self::answer(&printed)?;
    if found != answer {
        return Err(format!("{shown}: it answers\n{found}\nand the program itself\n{answer}"));
    }
    Ok(format!("tried in Debian 12 without a compiler: {shown}: installed and compared in {seconds:.1} s"))
}

/// The lines one after the other; the first that fails ends them. With `&&` between them it would not: `set
/// -e` ignores what fails before the last `&&`.
fn script(groups: &[&[String]]) -> String {
    format!("set -e\n{}", groups.concat().join("\n"))
}

/// Runs `script` in `root`, in the folder of the trial.
fn in_root(root: &Path, script: &str, deadline: Instant) -> Result<(), String> {
    // Namespaces of its own: /proc is there, nothing is left mounted, and there is no network.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--mount-proc"]);
    command.arg(format!("--root={}", root.display())).arg("--wd=/trial");
    command.args(["/bin/sh", "-c", script]).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    match exit_code_until(command.stdout(Stdio::null()), deadline)? {
        Some(0) => Ok(()),
        Some(9) => Err("the bare root has a compiler".to_owned()),
        Some(code) => Err(format!("exit code {code} in the bare root")),
        None => Err("it did not end in time".to_owned()),
    }
}

/// A root of Debian 12 with Python's venv.
fn bare_root(packages: &Path, deadline: Instant) -> Result<PathBuf, String> {
    let root = packages.join("bookworm");
    let ready = root.join("ready");
    if ready.exists() {
        return Ok(root);
    }
    // What an interrupted try left is no root, and mmdebstrap wants an empty folder.
    let _ = fs::remove_dir_all(&root);
    let mut command = mmdebstrap(packages, deadline)?;
    command.args(["--quiet", "--variant=minbase", "--include=python3-venv", "bookworm"]).arg(&root);
    done(&mut command, deadline).map_err(|why| format!("mmdebstrap: {why}"))?;
    fs::write(&ready, "").map_err(|error| format!("{}: {error}", ready.display()))?;
    Ok(root)
}

/// mmdebstrap as it is installed, or out of Debian's package; the arguments are to follow.
fn mmdebstrap(packages: &Path, deadline: Instant) -> Result<Command, String> {
    // A mount namespace of its own: what it mounts in the root goes with it, however it ends.
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if Command::new("mmdebstrap").arg("--version").output().is_ok() {
        command.arg("mmdebstrap");
        return Ok(command);
    }
    let folder = packages.join("mmdebstrap");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut download = Command::new("apt-get");
    done(download.current_dir(&folder).args(["download", "-qq", "mmdebstrap"]), deadline)
        .map_err(|why| format!("mmdebstrap cannot be had: {why}"))?;
    let archive = super::only(&folder, "deb")?;
    let mut unpack = Command::new("dpkg");
    done(unpack.arg("-x").arg(archive).arg(&folder), deadline)?;
    command.arg("perl").arg(folder.join("usr/bin/mmdebstrap"));
    Ok(command)
}

/// What the program prints here.
fn own_answer(packages: &Path) -> Result<String, String> {
    let mut command = Command::new(packages.join("talkpath"));
    let output = command.arg("compare").arg("--out").arg(packages.join("runs")).output();
    let output = output.map_err(|error| format!("compare: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The answer and its tables: all before what names this run and this machine.
fn answer(printed: &str) -> Result<String, String> {
    match printed.split_once("\nReport: ") {
        Some((answer, _)) if answer.contains("MOS") => Ok(answer.to_owned()),
        _ => Err(format!("compare printed no answer, but:\n{printed}")),
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_a_trial_that_fails_ends_it() {
        let status = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            Command::new("/bin/sh").args(["-c", &script(&[&lines, &["true".to_owned()]])]).status().unwrap()
        };
        assert!(status(&["true", "true"]).success());
        assert!(!status(&["false", "true"]).success() && !status(&["true", "false"]).success());
    }

    #[test]
    fn an_answer_ends_before_what_differs_from_run_to_run() {
        assert_eq!(answer("MOS 1.00 at best.\n\nReport: a/b\nmore").unwrap(), "MOS 1.00 at best.\n");
        assert!(answer("error").is_err() && answer("nothing\nReport: x").is_err());
    }
}
