//! `cargo xtask vendored`: whether the crate in `vendor/` is the released one with the patch beside it, byte
//! for byte; with `--write` the patch is written anew from the two.
//!
//! ```text
//!   the registry's crate ──► less what is left out ──► patched ──┬─ equal?
//!   vendor/quinn-proto ──────────────────────────────────────────┘
//! ```
//!
//! Everything is done in `target/vendored`. The released crate comes by `cargo metadata` of a package there
//! that names it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why the two could not be compared, or how they differ.
pub(crate) enum Problem {
    /// The released crate, or a tool, could not be had.
    Missing(String),
    /// They differ.
    Differs(String),
}

impl From<Problem> for String {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Missing(what) | Problem::Differs(what) => what,
        }
    }
}

/// The command.
///
/// # Errors
/// What could not be had, or how the folder differs.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<String, String> {
    match arguments {
        [] => Ok(check(root)?),
        [flag] if flag == "--write" => write(root),
        _ => Err("usage: cargo xtask vendored [--write]".to_owned()),
    }
}

/// Holds `vendor/quinn-proto` against the released crate with the patch.
pub(crate) fn check(root: &Path) -> Result<String, Problem> {
    let scratch = scratch(root)?;
    let patched = scratch.join("a");
    let mut apply = git(&scratch, &patched);
    apply.args(["apply", "--whitespace=nowarn"]).arg(root.join(PATCH));
    let output = apply.output().map_err(|error| Problem::Missing(format!("git: {error}")))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Problem::Differs(format!("{PATCH} does not fit the released crate: {why}")));
    }
    let (expected, found) = (files(&patched)?, files(&scratch.join("b"))?);
    if let Some(path) = expected
        .iter()
        .chain(&found)
        .find(|path| fs::read(patched.join(path)).ok() != fs::read(scratch.join("b").join(path)).ok())
    {
        let path = path.display();
        let help = "put it back, or write the patch anew: cargo xtask vendored --write";
        return Err(Problem::Differs(format!(
            "{FOLDER}/{path} is not the released file with {PATCH}; {help}"
        )));
    }
    Ok(format!("{FOLDER} is the released crate with {PATCH}: {} files", found.len()))
}

fn write(root: &Path) -> Result<String, String> {
    let scratch = scratch(root)?;
    let mut diff = git(&scratch, &scratch);
    diff.args(["diff", "--no-index", "--no-prefix", "--no-color", "a", "b"]);
    let output = diff.output().map_err(|error| format!("git: {error}"))?;
    fs::write(root.join(PATCH), &output.stdout).map_err(|error| format!("{PATCH}: {error}"))?;
    Ok(format!("{PATCH}: {} lines", output.stdout.iter().filter(|byte| **byte == b'\n').count()))
}

/// A folder with the released crate, less what is left out, in `a`, and ours in `b`.
fn scratch(root: &Path) -> Result<PathBuf, Problem> {
    let released = released(root)?;
    let scratch = root.join("target").join("vendored");
    for (from, to) in [(released, "a"), (root.join(FOLDER), "b")] {
        let to = scratch.join(to);
        let _ = fs::remove_dir_all(&to);
        for path in files(&from)? {
            let target = to.join(&path);
            let copied = fs::create_dir_all(target.parent().unwrap_or(&to))
                .and_then(|()| fs::copy(from.join(&path), &target));
            copied.map_err(|error| Problem::Missing(format!("{}: {error}", target.display())))?;
        }
    }
    Ok(scratch)
}

/// The folder of the registry's own copy, after a download if need be.
fn released(root: &Path) -> Result<PathBuf, Problem> {
    let missing = |what: String| Problem::Missing(what);
    let manifest = fs::read_to_string(root.join("Cargo.toml")).map_err(|error| missing(error.to_string()))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix(REQUIREMENT)?.split('"').next());
    let version = version.ok_or_else(|| missing(format!("Cargo.toml: no line begins with {REQUIREMENT}")))?;
    let package = root.join("target").join("vendored").join("package");
    let manifest = package.join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"released\"\nedition = \"2021\"\n\n[dependencies]\n\
         {CRATE} = {{ version = \"={version}\", default-features = false }}\n\n[workspace]\n"
    );
    let written = fs::create_dir_all(package.join("src"))
        .and_then(|()| fs::write(&manifest, text))
        .and_then(|()| fs::write(package.join("src").join("lib.rs"), ""));
    written.map_err(|error| missing(format!("{}: {error}", package.display())))?;
    let mut metadata = Command::new("cargo");
    metadata
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(&manifest)
        .current_dir(&package);
    let output = metadata.output().map_err(|error| missing(format!("cargo: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // No JSON is read here: the path ends so in one place.
    let end = format!("{CRATE}-{version}/Cargo.toml\"");
    let path =
        text.split("\"manifest_path\":\"").find_map(|rest| rest.split_once(&end)).map(|(path, _)| path);
    let path = path.filter(|path| !path.contains('"')).ok_or_else(|| {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        missing(format!("{CRATE} {version} cannot be had: {why}"))
    })?;
    Ok(Path::new(path).join(format!("{CRATE}-{version}")))
}

/// The files below `folder`, less what the copy leaves out, as paths from there, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let entries = fs::read_dir(folder.join(&inner))
            .map_err(|error| Problem::Missing(format!("{}: {error}", folder.join(&inner).display())))?;
        for entry in entries.flatten() {
            let path = inner.join(entry.file_name());
            if LEFT_OUT.iter().any(|left_out| path == Path::new(left_out)) {
                continue;
            }
            if folder.join(&path).is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

/// Git in `folder`, which is no part of a repository to it: it then patches plain files.
fn git(scratch: &Path, folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder).env("GIT_CEILING_DIRECTORIES", scratch.parent().unwrap_or(scratch));
    git
}

const CRATE: &str = "quinn-proto";
const FOLDER: &str = "vendor/quinn-proto";
const PATCH: &str = "vendor/quinn-proto.patch";
/// How its line in the root's manifest begins.
const REQUIREMENT: &str = "quinn-proto = { version = \"=";
/// Cargo's mark, a lock file that nobody reads in a dependency, and the crate's own tests, whose
/// dependencies are not ours.
const LEFT_OUT: [&str; 3] = [".cargo-ok", "Cargo.lock", "src/tests"];
