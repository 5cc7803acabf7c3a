//! `cargo xtask dist`: what people install, made from one build (the profile `dist`) and tried where nothing
//! is.
//!
//! ```text
//!   cargo build ──► program ──┬─ stripped ─┬─► wheel (maturin's, with the stripped program)
//!                             │            ├─► Debian package (dpkg-deb)
//!                             │            └─► archive (tar)
//!                             └─ symbols ────► talkpath-VERSION-TARGET.debug
//! ```
//!
//! All is put into `target/packages`, with the bill of materials that maturin writes into the wheel
//! (CycloneDX) and the SHA-256 of each file. Each package is then tried in a bare root of Debian 12
//! ([`trial`]). The last lines say what was tried and what was not.
//!
//! The Debian package is written by `dpkg-deb` from a tree and a control file: the two need no tool beside
//! Debian's own. Units of systemd are taken from `packaging/systemd`, if there are any.

mod debian;
mod tree;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::venv;

/// The stripped program may be this large: what docs/reference/packages.md promises.
const MAX_BYTES: u64 = 16_000_000;

/// A whole run, with the build. Chosen: the build takes 9 minutes of CPU time, and took 40 minutes with a
/// quarter of a core (2026-11-26).
const BOUND: Duration = Duration::from_secs(90 * 60);

/// Marks an environment that is whole; another name when a package changes.
const READY: &str = "ready-1";
/// maturin builds the wheel, and wheel packs it again.
const PACKAGES: [&str; 2] = ["maturin>=1.10,<2", "wheel>=0.45"];

/// rustc refuses LTO with incremental state, which a developer may have switched on for all builds.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

/// What is built for.
const TARGET: &str = "x86_64-linux";

/// For rustc, at the program alone: functions with the same code become one. rust-lld can do it, by which
/// rustc links on this target; GNU ld cannot. `safe` folds nothing here: it needs a list of the functions
/// whose addresses matter, which rustc does not write. None of Rust's do: LLVM also folds them.
const LINKING: [&str; 2] = ["-C", "link-arg=-Wl,--icf=all"];

/// Makes all packages, and tries them unless `--untried` is given.
///
/// # Errors
/// What could not be made, or a trial that failed.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<String, String> {
    let is_tried = match arguments {
        [] => true,
        [flag] if flag == "--untried" => false,
        _ => return Err("usage: cargo xtask dist [--untried]".to_owned()),
    };
    let deadline = Instant::now() + BOUND;
    let packages = root.join("target").join("packages");
    for old in ["wheel", "debian", "archive", "made"] {
        let _ = fs::remove_dir_all(packages.join(old));
    }
    let made = packages.join("made");
    fs::create_dir_all(&made).map_err(|error| format!("{}: {error}", made.display()))?;
    let dist = Dist { root, packages: &packages, made: &made, version: version(root)?, deadline };
    let program = dist.program()?;
    let wheel = dist.wheel(&program)?;
    let glibc = needed_glibc(&program)?;
    let debian = dist.debian(&program, &glibc)?;
    let archive = dist.archive(&program)?;
    dist.checksums()?;
    let policy = debian::lintian(&debian, deadline)?;
    let stripped = size(&program)?;
    let sizes = format!(
        "{}the stripped program: {stripped} B of at most {MAX_BYTES} B; it needs glibc {glibc}\n{policy}\n",
        sizes(&made)?
    );
    if !is_tried {
        return Ok(format!("{sizes}untried: --untried"));
    }
    let trials = trial::run(&packages, [&wheel, &debian, &archive], deadline)?;
    Ok(format!("{sizes}{trials}"))
}

/// One making of all packages.
struct Dist<'a> {
    root: &'a Path,
    /// The folder of what they are made from.
    packages: &'a Path,
    /// Where they are put.
    made: &'a Path,
    version: String,
    deadline: Instant,
}

impl Dist<'_> {
    /// Builds the program, and puts its symbols apart.
    fn program(&self) -> Result<PathBuf, String> {
        self.must(&mut cargo(self.root))?;
        let whole = self.root.join("target").join("dist").join("talkpath");
        let program = self.packages.join("talkpath");
        let symbols = self.made.join(format!("talkpath-{}-{TARGET}.debug", self.version));
        let mut split = Command::new("objcopy");
        split.args(["--only-keep-debug", "--compress-debug-sections"]).arg(&whole).arg(&symbols);
        self.must(&mut split)?;
        let mut strip = Command::new("strip");
        strip.arg("--strip-all").arg("-o").arg(&program).arg(&whole);
        self.must(&mut strip)?;
        let mut link = Command::new("objcopy");
        link.arg(format!("--add-gnu-debuglink={}", symbols.display())).arg(&program);
        self.must(&mut link)?;
        let bytes = size(&program)?;
        if bytes > MAX_BYTES {
            return Err(format!("the stripped program has {bytes} bytes, more than {MAX_BYTES}"));
        }
        Ok(program)
    }

    /// maturin's wheel, with the stripped program in the place of the one with symbols.
    fn wheel(&self, program: &Path) -> Result<PathBuf, String> {
        let folder = self.packages.join("wheel");
        let python =
            venv::environment(&self.packages.join("python"), READY, (&[], &[&PACKAGES[..]]), self.deadline)?;
        self.must(&mut maturin(self.root, &python, &folder))?;
        let built = only(&folder, "whl")?;
        let mut unpack = Command::new(&python);
        unpack.args(["-m", "wheel", "unpack", "--dest"]).arg(&folder).arg(&built);
        self.must(&mut unpack)?;
        let tree = folder.join(format!("talkpath-{}", self.version));
        let inside = tree.join(format!("talkpath-{}.data", self.version)).join("scripts").join("talkpath");
        copy(program, &inside)?;
        let sboms = tree.join(format!("talkpath-{}.dist-info", self.version)).join("sboms");
        let bill = only(&sboms, "json")?;
        copy(&bill, &self.made.join(format!("talkpath-{}.cdx.json", self.version)))?;
        let mut pack = Command::new(&python);
        pack.args(["-m", "wheel", "pack", "--dest-dir"]).arg(self.made).arg(&tree);
        self.must(&mut pack)?;
        only(self.made, "whl")
    }

    /// The Debian package.
    fn debian(&self, program: &Path, glibc: &str) -> Result<PathBuf, String> {
        let tree = self.packages.join("debian");
        tree::install(self.root, program, &tree, Path::new("usr"))?;
        tree::units(self.root, &tree)?;
        debian::documents(self.root, &tree, &self.version)?;
        debian::control(&tree, &self.version, glibc)?;
        let package = self.made.join(format!("talkpath_{}_amd64.deb", self.version));
        let mut build = Command::new("dpkg-deb");
        build.args(["--root-owner-group", "--build"]).arg(&tree).arg(&package);
        self.must(&mut build)?;
        Ok(package)
    }

    /// The archive for everybody else: to be unpacked under a prefix.
    fn archive(&self, program: &Path) -> Result<PathBuf, String> {
        let name = format!("talkpath-{}-{TARGET}", self.version);
        let folder = self.packages.join("archive");
        tree::install(self.root, program, &folder.join(&name), Path::new(""))?;
        tree::licences(self.root, &folder.join(&name))?;
        let archive = self.made.join(format!("{name}.tar.gz"));
        let mut pack = Command::new("tar");
        // The same files give the same bytes.
        pack.args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mtime=@0",
            "--use-compress-program",
        ]);
        pack.arg("gzip -9n").arg("-cf").arg(&archive).arg("-C").arg(&folder).arg(&name);
        self.must(&mut pack)?;
        Ok(archive)
    }

    /// SHA256SUMS of all that was made.
    fn checksums(&self) -> Result<(), String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.made).map_err(|error| error.to_string())? {
            names.push(entry.map_err(|error| error.to_string())?.file_name());
        }
        names.sort();
        let output = Command::new("sha256sum").current_dir(self.made).args(&names).output();
        let output = output.map_err(|error| format!("sha256sum: {error}"))?;
        let place = self.made.join("SHA256SUMS");
        fs::write(&place, output.stdout).map_err(|error| format!("{}: {error}", place.display()))
    }

    fn must(&self, command: &mut Command) -> Result<(), String> {
        venv::done(command, self.deadline).map_err(|why| format!("{command:?}: {why}").replace('"', ""))
    }
}

/// The build of the program.
fn cargo(root: &Path) -> Command {
    let mut build = Command::new("cargo");
    build.current_dir(root).args(["rustc", "--profile", "dist", "--locked", "-p", "talkpath"]);
    build.args(FEATURES).arg("--").args(LINKING).env(INCREMENTAL, "0");
    build
}

/// What people install plays calls in Opus, too.
const FEATURES: [&str; 2] = ["--features", "opus"];

/// The build of the wheel, with the same flags: otherwise the program would be compiled twice.
fn maturin(root: &Path, python: &Path, folder: &Path) -> Command {
    let mut build = Command::new(python);
    build.current_dir(root).args(["-m", "maturin", "build", "--profile", "dist", "--out"]).arg(folder);
    build.args(FEATURES).arg("--").args(LINKING).env(INCREMENTAL, "0");
    build
}

/// `workspace.package.version`, which is the one place of the version.
///
/// # Errors
/// If Cargo.toml cannot be read or has none.
pub(crate) fn version(root: &Path) -> Result<String, String> {
    let place = root.join("Cargo.toml");
    let text = fs::read_to_string(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let package = text.split("[workspace.package]").nth(1).unwrap_or_default();
    let line = package.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.strip_suffix('"'));
    version.map(str::to_owned).ok_or_else(|| format!("{}: no workspace.package.version", place.display()))
}

/// The newest version of a symbol of glibc that `program` needs, as `2.35`.
fn needed_glibc(program: &Path) -> Result<String, String> {
    let output = Command::new("objdump").arg("-T").arg(program).output();
    let output = output.map_err(|error| format!("objdump: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    newest_glibc(&text).ok_or_else(|| format!("{}: it needs no version of glibc", program.display()))
}

fn newest_glibc(symbols: &str) -> Option<String> {
    let versions = symbols.split("GLIBC_").skip(1);
    let versions =
        versions.map(|rest| rest.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap_or(""));
    let number =
        |version: &str| -> Vec<u32> { version.split('.').filter_map(|part| part.parse().ok()).collect() };
    versions.max_by_key(|version| number(version)).map(str::to_owned)
}

/// A line for each file that was made, with its bytes.
fn sizes(made: &Path) -> Result<String, String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(made).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        lines.push(format!("{:>10} B  {}\n", size(&path)?, path.display()));
    }
    lines.sort_by(|a, b| a.split("  ").nth(1).cmp(&b.split("  ").nth(1)));
    Ok(lines.concat())
}

fn size(path: &Path) -> Result<u64, String> {
    fs::metadata(path).map(|meta| meta.len()).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(|_| ()).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

/// The only file of `folder` with this extension.
pub(crate) fn only(folder: &Path, extension: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found = entries.flatten().map(|entry| entry.path());
    let mut found = found.by_ref().filter(|path| path.extension().is_some_and(|it| it == extension));
    match (found.next(), found.next()) {
        (Some(path), None) => Ok(path),
        _ => Err(format!("{}: expected one file .{extension}", folder.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::workspace_root;

    #[test]
    fn one_edit_changes_the_version_of_everything() {
        let root = workspace_root();
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        let version = version(&root).unwrap();
        assert!(version.split('.').all(|part| part.parse::<u32>().is_ok()), "{version}");
        for entry in fs::read_dir(root.join("crates")).unwrap() {
            let manifest = entry.unwrap().path().join("Cargo.toml");
            let text = fs::read_to_string(&manifest).unwrap();
            assert!(text.contains("version.workspace = true"), "{}", manifest.display());
        }
        let python = read("pyproject.toml");
        assert!(python.contains("dynamic = [\"version\"]") && !python.contains("\nversion ="));
        // `cargo xtask docs` writes it there.
        assert!(read("CITATION.cff").contains(&format!("\nversion: {version}\n")));
    }

    #[test]
    fn the_wheel_is_built_as_the_program_is() {
        let root = Path::new("/");
        let arguments = |command: &Command| -> Vec<String> {
            command.get_args().map(|it| it.to_string_lossy().into_owned()).collect()
        };
        let after = |command: &Command| {
            let arguments = arguments(command);
            arguments[arguments.iter().position(|it| it == "--").unwrap()..].to_vec()
        };
        let (program, wheel) = (cargo(root), maturin(root, Path::new("python"), Path::new("wheel")));
        assert_eq!(after(&program), after(&wheel));
        assert_eq!(after(&program).join(" "), "-- -C link-arg=-Wl,--icf=all");
        assert!(arguments(&program).join(" ").starts_with("rustc --profile dist --locked -p talkpath "));
        assert!(arguments(&wheel).join(" ").starts_with("-m maturin build --profile dist --out wheel "));
    }

    #[test]
    fn the_newest_glibc_is_by_number_and_not_by_letter() {
        let symbols = "a (GLIBC_2.9) b\nc (GLIBC_2.35) hypot\nd (GLIBC_2.4)\ne (GLIBC_2.34) f";
        assert_eq!(newest_glibc(symbols).as_deref(), Some("2.35"));
        assert_eq!(newest_glibc("none"), None);
    }
}
