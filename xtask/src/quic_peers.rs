//! Our QUIC beside other implementations', over an emulated path with 3 % loss: the job `quic-peers` of
//! `cargo xtask nightly`, and `cargo xtask quic-peers [PEER]...` alone.
//!
//! `crates/emu/examples/quic_beside.rs` is our end, the path and the comparison. The peers are small programs
//! in `xtask/judges/quic`, of aioquic (PyPI) and quic-go (Go's module proxy). A peer that cannot be had is a
//! printed SKIP with its reason; without any nothing was compared.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::ci::exit_code_until;
use crate::judges::Judged;
use crate::venv::{self, done};

/// Another implementation.
struct Peer {
    name: &'static str,
    /// The program and its first arguments, made if need be.
    prepare: fn(&Path, Instant) -> Result<Vec<PathBuf>, String>,
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
    let mut build = Command::new("cargo");
    build.current_dir(root).args(["build", "--release", "-p", "talkpath-emu", "--example", "quic_beside"]);
    if let Err(why) = done(&mut build, deadline) {
        return Judged::Differs(format!("quic_beside was not built: {why}"));
    }
    let beside = root.join("target").join("release").join("examples").join("quic_beside");
    let (mut held, mut failed, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for peer in PEERS.iter().filter(|peer| wanted.is_empty() || wanted.iter().any(|name| name == peer.name)) {
        let program = match (peer.prepare)(root, deadline) {
            Ok(program) => program,
            Err(why) => {
                println!("SKIP: {}: {why}", peer.name);
                missing.push(format!("{}: {why}", peer.name));
                continue;
            }
        };
        let mut passed = 0;
        for (case, carry, seed) in CASES {
            println!("quic-peers: {}: {case} {carry}", peer.name);
            let mut command = Command::new(&beside);
            command.args([case, carry, &seed.to_string(), "--"]).args(&program);
            match exit_code_until(&mut command, deadline) {
                Ok(Some(0)) => passed += 1,
                Ok(Some(NO_ARENA)) => return Judged::Missing("the arena is not available here".to_owned()),
                Ok(Some(code)) => failed.push(format!("{} {case} {carry}: exit code {code}", peer.name)),
                Ok(None) => failed.push(format!("{} {case} {carry}: it did not end in time", peer.name)),
                Err(why) => failed.push(format!("{} {case} {carry}: {why}", peer.name)),
            }
        }
        held.push(format!("{}: {passed} of {} cases", peer.name, CASES.len()));
    }
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

/// aioquic in a Python of its own.
fn aioquic(root: &Path, deadline: Instant) -> Result<Vec<PathBuf>, String> {
    let folder = root.join("target").join("judges").join("aioquic");
    let python = venv::environment(&folder, "ready-1.7.2", (&[], &[&["aioquic==1.7.2"]]), deadline)?;
    Ok(vec![python, root.join("xtask").join("judges").join("quic").join("aioquic_peer.py")])
}

/// quic-go, built from Go's module proxy as `go.sum` has it.
fn quic_go(root: &Path, deadline: Instant) -> Result<Vec<PathBuf>, String> {
    let program = root.join("target").join("judges").join("quic-go-peer");
    let mut build = Command::new(go().ok_or("no Go: https://go.dev/dl, or Debian's package golang-go")?);
    build.current_dir(root.join("xtask").join("judges").join("quic").join("go"));
    build.args(["build", "-o"]).arg(&program).arg(".");
    done(&mut build, deadline).map_err(|why| format!("go build: {why}"))?;
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
/// What `quic_beside` ends with if there is no emulator.
const NO_ARENA: i32 = 3;
