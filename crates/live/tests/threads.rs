//! A host that cannot start a thread: a server and a monitor end with a message, and do not panic.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64};

use crate::support::{scenario, voice};
use talkpath_arena::ArenaError;
use talkpath_live::{LiveOptions, Monitor, ServeError, ServeOptions, Server};

/// RUST_MIN_STACK (std::thread) is the size of each thread's stack. No process has an address space of 2^50 B
/// (x86_64 and aarch64: 2^47 or 2^48), so it can begin no thread.
#[test]
fn a_server_and_a_monitor_without_a_thread_say_so_and_end() {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "threads::a_host_without_threads", "--ignored", "--test-threads=1"])
        .env("RUST_MIN_STACK", (1_u64 << 50).to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&status.stdout);
    assert!(status.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "run by another test, where no thread begins"]
fn a_host_without_threads() {
    assert!(std::thread::Builder::new().spawn(|| {}).is_err());
    let options = ServeOptions { bind: vec!["127.0.0.1:0".parse().unwrap()], ..ServeOptions::default() };
    let served = Server::bind(options).unwrap().run(&AtomicBool::new(false));
    assert!(matches!(served, Err(ServeError::Thread { .. })), "{served:?}");
    let monitor = Monitor {
        host: "127.0.0.1:9",
        options: LiveOptions::default(),
        scenario: &scenario(1_000, vec![voice("call", "udp")]),
        series: None,
        interrupt: &AtomicBool::new(false),
        measured_until_ns: &AtomicI64::new(0),
    };
    let ended = monitor.run(&mut |happening| panic!("{happening:?}"));
    assert!(matches!(ended, Err(ArenaError::Unavailable { .. })), "{ended:?}");
}
