//! Our QUIC beside other implementations', over an emulated path with 3 % loss: the job `quic-peers` of
//! `cargo xtask nightly`, and `cargo xtask quic-peers [PEER]...` alone.
//!
//! `crates/emu/examples/quic_beside.rs` is our end, the path and the comparison. The peers are small programs
//! in `xtask/judges/quic`, of aioquic (PyPI) and quic-go (Go's module proxy). A peer that cannot be had is a
//! printed SKIP with its reason; without any nothing was compared. One that is there and does not compile is
//! a failure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::ci::{UNAVAILABLE, cargo, exit_code_until};
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

const PEERS: [Peer; 2] =
    [Peer { name: "aioquic", prepare: aioquic }, Peer { name: "quic-go", prepare: quic_go }];

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

/// The Go on the path, or where its own packages put it.
fn go() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = PathBuf::from("/usr/local/go/bin");
    std::env::split_paths(&path).chain([usual]).map(|folder| folder.join("go")).find(|it| it.is_file())
}

/// The command alone may build all of it (chosen).
const LIMIT: Duration = Duration::from_secs(1800);

#[cfg(test)]
mod tests {
    use std::fs;

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
}
