//! What the Debian package has beside the files of the archive: control, copyright, changelog, and the judge
//! of all that, lintian.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::tree::{write, write_compressed};
use crate::venv;

/// The maintainer unless `DEBEMAIL` names one: the project has no address, and `.invalid` is nobody's (RFC
/// 6761 §6.4).
const NOBODY: &str = "The talkpath authors <talkpath@talkpath.invalid>";

/// Writes DEBIAN/control.
pub(super) fn control(tree: &Path, version: &str, glibc: &str) -> Result<(), String> {
    let folder = tree.join("DEBIAN");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let text = format!(
        "Package: talkpath
Version: {version}
Architecture: amd64
Maintainer: {}
Section: net
Priority: optional
Depends: libc6 (>= {glibc}), libgcc-s1
Recommends: iproute2
Suggests: ca-certificates
Description: which transport for a call, a game or a transfer, on which path
 One scenario file runs in a simulator, over an emulated path with real sockets,
 and between live hosts. It says which transport holds up, how much later
 messages come, how many are missing, and what that costs the traffic beside
 them.
",
        maintainer()
    );
    write(&folder.join("control"), text.as_bytes())
}

/// Writes the copyright file and the changelog under `tree`, as Debian's policy §12.5 and §12.7 have them.
pub(super) fn documents(root: &Path, tree: &Path, version: &str) -> Result<(), String> {
    let folder = tree.join("usr").join("share").join("doc").join("talkpath");
    let read = |name: &str| fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"));
    write(&folder.join("copyright"), copyright(&read("LICENSE-MIT")?)?.as_bytes())?;
    let changes = read("CHANGELOG.md")?;
    let day = day_of(&changes, version)?;
    let mut date = Command::new("date");
    date.args(["--utc", "--rfc-email", &format!("--date={day}")]);
    let output = date.env("LC_ALL", "C").output().map_err(|error| format!("date: {error}"))?;
    if !output.status.success() {
        return Err(format!("CHANGELOG.md: {version}: `{day}` is no date"));
    }
    let text = changelog(version, &maintainer(), String::from_utf8_lossy(&output.stdout).trim());
    // Without a revision in its version a package is native to Debian, and its changelog has this name.
    write_compressed(&folder.join("changelog.gz"), text.as_bytes())
}

/// What lintian says of `package`: a line.
///
/// # Errors
/// If it finds an error.
pub(super) fn lintian(package: &Path, deadline: Instant) -> Result<String, String> {
    let mut command = Command::new("lintian");
    if !command.arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok("untested: Debian's policy: no lintian: apt-get install lintian".to_owned());
    }
    let mut command = Command::new("lintian");
    command.args(["--fail-on", "error"]).arg(package);
    venv::done_aloud(&mut command, deadline).map_err(|why| format!("lintian: {why}: see above"))?;
    Ok("lintian found no error in the Debian package".to_owned())
}

/// Who packs it, by the variables of Debian's own tools (devscripts).
fn maintainer() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    match (variable("DEBFULLNAME"), variable("DEBEMAIL")) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (None, Some(address)) => format!("The talkpath authors <{address}>"),
        (_, None) => NOBODY.to_owned(),
    }
}

/// The copyright file: the notice, the MIT licence whole, and where Debian has the other.
fn copyright(mit: &str) -> Result<String, String> {
    let notice = mit.lines().find(|line| line.starts_with("Copyright "));
    let notice = notice.ok_or("LICENSE-MIT: no line begins with `Copyright`")?;
    Ok(format!(
        "talkpath is under the MIT or the Apache-2.0 licence, at your choice.

{notice}

Apache-2.0: on a Debian system the text is in /usr/share/common-licenses/Apache-2.0.

{mit}"
    ))
}

/// The day in the heading of `version`: `## 0.3.0, 2026-11-25`.
fn day_of<'a>(changelog: &'a str, version: &str) -> Result<&'a str, String> {
    let heading = format!("## {version}, ");
    let day = changelog.lines().find_map(|line| line.strip_prefix(&heading));
    day.ok_or_else(|| format!("CHANGELOG.md: no heading `{heading}DATE`"))
}

fn changelog(version: &str, maintainer: &str, date: &str) -> String {
    format!(
        "talkpath ({version}) unstable; urgency=medium\n\n  * What changed is in CHANGELOG.md beside this file.\n\n -- {maintainer}  {date}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_without_a_dated_heading_is_a_mistake_that_names_it() {
        let text = "# Changelog\n\n## Unreleased\n\n## 0.3.0, 2026-11-25\n\n- 0.2.0, 2025-01-01\n";
        assert_eq!(day_of(text, "0.3.0").unwrap(), "2026-11-25");
        assert!(day_of(text, "0.2.0").unwrap_err().contains("## 0.2.0, DATE"));
    }

    #[test]
    fn the_copyright_file_has_the_notice_and_names_debians_copy() {
        let text = copyright("MIT License\n\nCopyright (c) 2026 Someone\n\nPermission is\n").unwrap();
        assert!(
            text.contains("choice.\n\nCopyright (c) 2026 Someone\n") && text.ends_with("Permission is\n")
        );
        assert!(text.contains("/usr/share/common-licenses/Apache-2.0"));
        assert!(copyright("MIT License\n").is_err());
    }
}
