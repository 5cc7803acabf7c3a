//! The tree of files that the Debian package and the archive have: the program, a manual page for each of its
//! commands, completions and pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::copy;

/// Shells with completions, and where Debian looks for them.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/talkpath"),
    ("zsh", "share/zsh/vendor-completions/_talkpath"),
    ("fish", "share/fish/vendor_completions.d/talkpath.fish"),
];

/// What is put into the folder of documentation.
const DOCUMENTS: [&str; 3] = ["README.md", "CHANGELOG.md", "CITATION.cff"];

/// What the archive has besides. Debian wants them in its copyright file.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// Puts the files under `tree`, with `prefix` before `bin` and `share`.
pub(super) fn install(root: &Path, program: &Path, tree: &Path, prefix: &Path) -> Result<(), String> {
    let place = |name: &str| -> Result<PathBuf, String> {
        let path = tree.join(prefix).join(name);
        let folder = path.parent().unwrap_or(tree);
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(path)
    };
    copy(program, &place("bin/talkpath")?)?;
    for (shell, name) in SHELLS {
        write(&place(name)?, &output(program, &["completions", shell])?)?;
    }
    write_compressed(&place("share/man/man1/talkpath.1.gz")?, &output(program, &["man"])?)?;
    for command in commands(&String::from_utf8_lossy(&output(program, &["--help"])?)) {
        let page = format!("share/man/man1/talkpath-{command}.1.gz");
        write_compressed(&place(&page)?, &output(program, &["man", &command])?)?;
    }
    for name in DOCUMENTS {
        copy(&root.join(name), &place(&format!("share/doc/talkpath/{name}"))?)?;
    }
    Ok(())
}

/// Puts the licences into the folder of documentation of a `tree` without a prefix.
pub(super) fn licences(root: &Path, tree: &Path) -> Result<(), String> {
    let folder = tree.join("share").join("doc").join("talkpath");
    LICENCES.iter().try_for_each(|name| copy(&root.join(name), &folder.join(name)))
}

/// Puts the units of systemd and their users under `tree`, if the project has any. None is enabled: that is
/// the administrator's.
pub(super) fn units(root: &Path, tree: &Path) -> Result<(), String> {
    let systemd = root.join("packaging").join("systemd");
    put(&systemd, "service", &tree.join("usr/lib/systemd/system"))?;
    put(&systemd.join("sysusers"), "conf", &tree.join("usr/lib/sysusers.d"))
}

/// Copies the files of `from`, if it is there, that are called `*.extension`.
fn put(from: &Path, extension: &str, folder: &Path) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(name) = path.file_name() else { continue };
        if path.extension().is_some_and(|it| it == extension) {
            copy(&path, &folder.join(name))?;
        }
    }
    Ok(())
}

/// The commands that the help lists, without `help` itself.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn output(program: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let shown = || format!("talkpath {}", arguments.join(" "));
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{}: {error}", shown()))?;
    match output.status.success() && !output.stdout.is_empty() {
        true => Ok(output.stdout),
        false => Err(format!("{}: {}", shown(), output.status)),
    }
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// Manual pages and changelogs are compressed: Debian's policy §12.1 and §12.7.
pub(super) fn write_compressed(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let plain = path.with_extension("");
    write(&plain, bytes)?;
    let status = Command::new("gzip").args(["-9nf"]).arg(&plain).stdout(Stdio::null()).status();
    match status.map_err(|error| format!("gzip: {error}"))?.success() {
        true => Ok(()),
        false => Err(format!("gzip {}: failed", plain.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_help_without_help() {
        let help = "About\n\nUsage: x\n\nCommands:\n  compare  Run\n  run      Run\n  help     Print\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["compare", "run"]);
    }
}
