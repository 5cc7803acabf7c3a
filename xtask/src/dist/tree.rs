//! The tree of files that the Debian package and the archive have: the program, a manual page for each of its
//! commands, completions, licences and pages.

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

/// What stands in the folder of documentation.
const DOCUMENTS: [&str; 5] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "CITATION.cff"];

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
    // Debian's own name for it: policy §12.5.
    let copyright = "talkpath is under the MIT or the Apache-2.0 licence, at your choice:\nLICENSE-MIT and LICENSE-APACHE beside this file.\n";
    write(&place("share/doc/talkpath/copyright")?, copyright.as_bytes())
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

/// Writes DEBIAN/control.
pub(super) fn control(tree: &Path, version: &str, glibc: &str) -> Result<(), String> {
    let folder = tree.join("DEBIAN");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let text = format!(
        "Package: talkpath
Version: {version}
Architecture: amd64
Maintainer: The talkpath authors <talkpath@localhost>
Section: net
Priority: optional
Depends: libc6 (>= {glibc}), libgcc-s1
Recommends: iproute2
Description: which transport for calls, games and live media, on which path
 One scenario file runs in a simulator, over an emulated path with real sockets,
 and between live hosts. It says which transport holds up, how much later
 messages come, how many are missing, and what that costs the traffic beside
 them.
"
    );
    write(&folder.join("control"), text.as_bytes())
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

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// Manual pages are compressed: Debian's policy §12.1.
fn write_compressed(path: &Path, bytes: &[u8]) -> Result<(), String> {
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
