//! Our QUIC beside other implementations', over an emulated path with 3 % loss: the job `quic-peers` of
//! `cargo xtask nightly`, and `cargo xtask quic-peers [PEER]...` alone.
//!
//! `crates/emu/examples/quic_beside.rs` is our end, the path and the comparison. The peers are small programs
//! in `xtask/judges/quic`, of aioquic (PyPI), quic-go (Go's module proxy) and quiche (crates.io). A peer that
//! cannot be had is a printed SKIP with its reason; without any nothing was compared. One that is there and
//! does not compile is a failure.
//!
//! quiche builds BoringSSL, for which the nightly job has no time. `cargo xtask quic-peers quiche` makes that
//! build ahead and keeps it in `target/judges/quiche`. Without it the job skips quiche.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::command::{UNAVAILABLE, cargo, exit_code_until};
use crate::judges::Judged;
use crate::venv::{self, done};

/// Another implementation.
struct Peer {
    name: &'static str,
    /// The program and its first arguments, made if need be.
    prepare: fn(&Path, Instant) -> Result<Vec<PathBuf>, Unprepared>,
}

/// Why a peer cannot be run.
enum Unprepared {
    /// It cannot be had here.
    Missing(String),
    /// It does not compile.
    Broken(String),
}

const PEERS: [Peer; 3] = [
    Peer { name: "aioquic", prepare: aioquic },
    Peer { name: "quic-go", prepare: quic_go },
    Peer { name: "quiche", prepare: quiche },
];

/// The cases of `quic_beside` and what carries a message in each, with the seed of the path's losses. Those
/// of datagrams lose no packet of the handshake. A message that leaves before the server has the client's
/// last flight may be discarded (RFC 9001 §5.7), and the arrival log does not know of it.
const CASES: [(&str, &str, u64); 8] = [
    ("server", "datagram", 1),
    ("server", "stream", 2),
    ("server", "stream-per-message", 3),
    ("client", "datagram", 1),
    ("client", "stream", 2),
    ("words", "stream-per-message", 3),
    ("server-refused", "stream", 1),
    ("client-refused", "stream", 1),
];

/// The command of its own.
///
/// # Errors
/// What differs, or why nothing was compared.
pub(crate) fn command(root: &Path, wanted: &[String]) -> Result<String, String> {
    match run(root, wanted, Instant::now() + LIMIT) {
        Judged::Agrees(what) => Ok(what),
        Judged::Differs(what) => Err(what),
        Judged::Missing(why) => Err(format!("SKIP: {why}: nothing was compared")),
    }
}

/// Runs all cases with each peer; `wanted` names some of them, or is empty.
pub(crate) fn run(root: &Path, wanted: &[String], deadline: Instant) -> Judged {
    if let Some(unknown) = wanted.iter().find(|name| PEERS.iter().all(|peer| peer.name != **name)) {
        return Judged::Differs(format!("{unknown}: no such peer"));
    }
    let mut build = cargo(root, &["build", "--release", "-p", "talkpath-emu", "--example", "quic_beside"]);
    if let Err(why) = done(&mut build, deadline) {
        return Judged::Differs(format!("quic_beside was not built: {why}"));
    }
    let beside = root.join("target").join("release").join("examples").join("quic_beside");
    let mut found = Found::default();
    for peer in PEERS.iter().filter(|peer| wanted.is_empty() || wanted.iter().any(|name| name == peer.name)) {
        let program = match (peer.prepare)(root, deadline) {
            Ok(program) => program,
            Err(Unprepared::Missing(why)) => {
                println!("SKIP: {}: {why}", peer.name);
                found.missing.push(format!("{}: {why}", peer.name));
                continue;
            }
            Err(Unprepared::Broken(why)) => {
                found.failed.push(format!("{}: {why}", peer.name));
                continue;
            }
        };
        let mut passed = 0;
        for (case, carry, seed) in CASES {
            println!("quic-peers: {}: {case} {carry}", peer.name);
            let mut command = Command::new(&beside);
            command.args([case, carry, &seed.to_string(), "--"]).args(&program);
            let ended = exit_code_until(&mut command, deadline);
            match found.take(&format!("{} {case} {carry}", peer.name), ended) {
                Ok(has_passed) => passed += u32::from(has_passed),
                Err(missing) => return missing,
            }
        }
        found.held.push(format!("{}: {passed} of {} cases", peer.name, CASES.len()));
    }
    found.judged()
}

/// What all cases showed.
#[derive(Default)]
struct Found {
    /// Whether a case ran to its end.
    has_run: bool,
    held: Vec<String>,
    failed: Vec<String>,
    missing: Vec<String>,
}

impl Found {
    /// Takes how a `case` ended, and returns whether it passed.
    ///
    /// # Errors
    /// There is no arena here: no other case can run, and none did.
    fn take(&mut self, case: &str, ended: Result<Option<i32>, String>) -> Result<bool, Judged> {
        let why = match ended {
            Ok(Some(UNAVAILABLE)) if !self.has_run && self.failed.is_empty() => {
                return Err(Judged::Missing("the arena is not available here".to_owned()));
            }
            Ok(Some(0)) => {
                self.has_run = true;
                return Ok(true);
            }
            Ok(Some(UNAVAILABLE)) => "the arena is not available".to_owned(),
            Ok(Some(code)) => format!("exit code {code}"),
            Ok(None) => "it did not end in time".to_owned(),
            Err(why) => why,
        };
        self.failed.push(format!("{case}: {why}"));
        Ok(false)
    }

    fn judged(self) -> Judged {
        let Self { held, failed, missing, .. } = self;
        let closing = |what: &[String]| what.join("; ");
        match (failed.is_empty(), held.is_empty()) {
            (false, _) => Judged::Differs(closing(&[held, failed].concat())),
            (true, true) => Judged::Missing(closing(&missing)),
            (true, false) => {
                let skipped = missing.iter().map(|why| format!("skipped {why}"));
                Judged::Agrees(closing(&held.into_iter().chain(skipped).collect::<Vec<_>>()))
            }
        }
    }
}

/// aioquic in a Python of its own.
fn aioquic(root: &Path, deadline: Instant) -> Result<Vec<PathBuf>, Unprepared> {
    let folder = root.join("target").join("judges").join("aioquic");
    let python = venv::environment(&folder, "ready-1.7.2", (&[], &[&["aioquic==1.7.2"]]), deadline)
        .map_err(Unprepared::Missing)?;
    Ok(vec![python, root.join("xtask").join("judges").join("quic").join("aioquic_peer.py")])
}

/// quic-go, built from Go's module proxy as `go.sum` has it.
fn quic_go(root: &Path, deadline: Instant) -> Result<Vec<PathBuf>, Unprepared> {
    let source = root.join("xtask").join("judges").join("quic").join("go");
    let program = root.join("target").join("judges").join("quic-go-peer");
    let go = go().ok_or("no Go: https://go.dev/dl, or Debian's package golang-go".to_owned());
    let go = go.map_err(Unprepared::Missing)?;
    let mut download = Command::new(&go);
    download.current_dir(&source).args(["mod", "download"]);
    done(&mut download, deadline).map_err(|why| Unprepared::Missing(format!("go mod download: {why}")))?;
    let mut build = Command::new(&go);
    build.current_dir(&source).args(["build", "-o"]).arg(&program).arg(".");
    done(&mut build, deadline).map_err(|why| Unprepared::Broken(format!("go build: {why}")))?;
    Ok(vec![program])
}

/// quiche, in a package of its own. `Cargo.lock` is copied beside the build once its dependencies are built,
/// so that another version counts as not built.
fn quiche(root: &Path, deadline: Instant) -> Result<Vec<PathBuf>, Unprepared> {
    let source = root.join("xtask").join("judges").join("quic").join("quiche");
    let target = root.join("target").join("judges").join("quiche");
    let (lock, built) = (source.join("Cargo.lock"), target.join("built.lock"));
    let is_built = matches!((fs::read(&lock), fs::read(&built)), (Ok(lock), Ok(built)) if lock == built);
    if !is_built && Instant::now() + BORINGSSL > deadline {
        let why = "its BoringSSL is not built, and there is no time for it here: `cargo xtask quic-peers \
                   quiche` builds it";
        return Err(Unprepared::Missing(why.to_owned()));
    }
    let build = |arguments: &[&str]| {
        let mut build = Command::new("cargo");
        build.current_dir(&source).args(["build", "--locked", "--target-dir"]).arg(&target).args(arguments);
        done(&mut build, deadline)
    };
    build(&["-p", "quiche"]).map_err(|why| {
        let needs = "it needs cmake, a C++ compiler and libclang (Debian: cmake, g++, libclang-dev)";
        Unprepared::Missing(format!("cargo build -p quiche: {why}: {needs}"))
    })?;
    fs::copy(&lock, &built).map_err(|error| Unprepared::Broken(format!("{}: {error}", built.display())))?;
    build(&[]).map_err(|why| Unprepared::Broken(format!("cargo build: {why}")))?;
    if Instant::now() + CASES_TIME > deadline {
        let why = "no time is left for its cases: `cargo xtask quic-peers quiche` runs them alone";
        return Err(Unprepared::Missing(why.to_owned()));
    }
    Ok(vec![target.join("debug").join("quiche-peer")])
}

/// The Go on the path, or where its own packages put it.
fn go() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = PathBuf::from("/usr/local/go/bin");
    std::env::split_paths(&path).chain([usual]).map(|folder| folder.join("go")).find(|it| it.is_file())
}

/// The command may have to build everything (chosen).
const LIMIT: Duration = Duration::from_secs(1800);

/// What BoringSSL's build may take, longer than the nightly job has. Chosen: it took 4 min of processor time
/// and, on a machine with five times as much to do as it could, 18 min.
const BORINGSSL: Duration = Duration::from_secs(1200);

/// What the cases of a peer take at most, which last as long as their runs.
const CASES_TIME: Duration = Duration::from_secs(110);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_that_is_missing_hides_no_case_that_ran_before() {
        let mut found = Found::default();
        assert!(matches!(found.take("a", Ok(Some(UNAVAILABLE))), Err(Judged::Missing(_))));
        for (before, expected) in [
            (Some(0), "b: the arena is not available"),
            (Some(1), "a: exit code 1; b: the arena is not available"),
        ] {
            let mut found = Found::default();
            assert!(found.take("a", Ok(before)).is_ok());
            assert!(found.take("b", Ok(Some(UNAVAILABLE))).is_ok());
            assert!(matches!(found.judged(), Judged::Differs(why) if why == expected));
        }
    }

    #[test]
    fn a_peer_in_go_that_does_not_compile_is_no_peer_that_is_missing() {
        if go().is_none() {
            println!("SKIP: no Go");
            return;
        }
        let root = std::env::temp_dir().join(format!("talkpath-quic-peers-{}", std::process::id()));
        let source = root.join("xtask").join("judges").join("quic").join("go");
        fs::create_dir_all(&source).unwrap();
        fs::write(source.join("go.mod"), "module peer\n\ngo 1.18\n").unwrap();
        fs::write(source.join("main.go"), "package main\n\nfunc main() { nothing() }\n").unwrap();
        let ended = quic_go(&root, Instant::now() + LIMIT);
        fs::remove_dir_all(&root).unwrap();
        assert!(matches!(ended, Err(Unprepared::Broken(_))));
    }

    /// A package as quiche's peer, with these texts as its program and as the library `quiche`.
    fn package_of_quiche(name: &str, program: &str, library: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("talkpath-quiche-{name}-{}", std::process::id()));
        let source = root.join("xtask").join("judges").join("quic").join("quiche");
        let files = [
            ("Cargo.toml", PROGRAM_MANIFEST),
            ("Cargo.lock", LOCK),
            ("src/main.rs", program),
            ("quiche/Cargo.toml", LIBRARY_MANIFEST),
            ("quiche/src/lib.rs", library),
        ];
        for (file, text) in files {
            let path = source.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn quiche_is_built_ahead_or_skipped_with_the_command_that_builds_it() {
        let root = package_of_quiche("ahead", "fn main() {}\n", "");
        let soon = Instant::now() + Duration::from_secs(420);
        let before = quiche(&root, soon);
        let built = quiche(&root, Instant::now() + LIMIT);
        let after = quiche(&root, soon);
        let late = quiche(&root, Instant::now() + Duration::from_secs(60));
        let lock = root.join("xtask/judges/quic/quiche/Cargo.lock");
        fs::write(&lock, LOCK.replace("0.0.1", "0.0.2")).unwrap();
        let other = quiche(&root, soon);
        fs::remove_dir_all(&root).unwrap();
        for skipped in [before, other, late] {
            assert!(matches!(skipped, Err(Unprepared::Missing(why)) if why.contains("quic-peers quiche`")));
        }
        assert!(built.is_ok() && after.is_ok());
    }

    #[test]
    fn a_quiche_that_does_not_build_is_missing_and_a_peer_of_ours_that_does_not_is_broken() {
        for (name, program, library, is_missing) in [
            ("library", "fn main() {}\n", "fn broken( {}\n", true),
            ("program", "fn main() { nothing() }\n", "", false),
        ] {
            let root = package_of_quiche(name, program, library);
            let ended = quiche(&root, Instant::now() + LIMIT);
            fs::remove_dir_all(&root).unwrap();
            match ended {
                Err(Unprepared::Missing(why)) => {
                    assert!(is_missing && why.contains("cmake"), "{name}: {why}");
                }
                Err(Unprepared::Broken(why)) => assert!(!is_missing, "{name}: {why}"),
                Ok(_) => panic!("{name}: it was built"),
            }
        }
    }

    const PROGRAM_MANIFEST: &str = "[package]\nname = \"quiche-peer\"\nversion = \"0.0.0\"\n\
        edition = \"2024\"\n[dependencies]\nquiche = { path = \"quiche\" }\n[workspace]\n";
    const LIBRARY_MANIFEST: &str = "[package]\nname = \"quiche\"\nversion = \"0.0.1\"\nedition = \"2024\"\n";
    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"quiche\"\nversion = \"0.0.1\"\n\n\
        [[package]]\nname = \"quiche-peer\"\nversion = \"0.0.0\"\ndependencies = [\n \"quiche\",\n]\n";
}
