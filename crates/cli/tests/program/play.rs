//! `play` and `export --format nam`: a simulated run packet by packet, on a page and for nam.

use std::fs;
use std::process::Child;
use std::thread;
use std::time::Duration;

use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Bench, Seen, wait_until};

const CALLS: &str = r#"
name = "two calls beside an upload"
duration = "4 s"

[path]
up = { rate = "1 Mbps", delay = "20 ms", queue = { kind = "drop-tail", limit = "20 packets" }, loss = 0.01 }
down = { rate = "2 Mbps", delay = "20 ms" }

[flow.call]
count = 2
transport = "udp"
workload = "voice"

[flow.upload]
transport = { kind = "tcp", cc = "reno" }
workload = "bulk"
"#;

/// The columns of the page's data.
fn played(page: &str) -> serde_json::Value {
    let data = page.split("id=\"run\">").nth(1).unwrap().split("</script>").next().unwrap();
    serde_json::from_str(data).unwrap()
}

#[test]
fn a_page_has_the_drops_of_the_summary_and_every_sender_s_window_and_nam_the_same_events() {
    let bench = Bench::new();
    bench.file("calls.toml", CALLS);
    let summary = bench.run(&["run", "calls.toml", "--json=runs"]).succeeds().summary();
    let run = bench.only_run();
    let name = run.to_string_lossy().into_owned();
    bench.run(&["play", &name]).succeeds();
    let page = fs::read_to_string(run.join("play.html")).unwrap();
    let data = played(&page);
    let fates: Vec<u64> =
        data["hops"]["fate"].as_array().unwrap().iter().map(|fate| fate.as_u64().unwrap()).collect();
    let count = |fate: u64| fates.iter().filter(|it| **it == fate).count() as u64;
    let links = &summary["runs"][0]["links"];
    let of = |key: &str| ["up", "down"].iter().map(|link| links[*link][key].as_u64().unwrap()).sum::<u64>();
    assert!(of("dropped") > 0 && of("lost") > 0, "{links}");
    // The page has what had begun by the end of sending; the summary counts up to that moment.
    assert_eq!(count(1), of("dropped"));
    assert!((of("lost")..=of("lost") + 2).contains(&count(2)), "{} {}", count(2), of("lost"));
    assert_eq!(data["flows"][2][0], "upload");
    assert!(data["flows"][2][3].as_array().unwrap().len() > 10, "its window moves");
    let nam = bench.run(&["export", &name, "--format", "nam"]).succeeds().out.clone();
    let lines = |event: &str| nam.lines().filter(|line| line.starts_with(event)).count();
    assert_eq!(lines("+ ") as u64, count(0) + count(1) + count(2));
    assert_eq!(lines("d ") as u64, count(1) + count(2));
}

#[test]
fn a_window_shortens_the_page_and_what_lies_outside_the_run_is_refused() {
    let bench = Bench::new();
    bench.file("calls.toml", CALLS);
    bench.run(&["run", "calls.toml"]).succeeds();
    let name = bench.only_run().to_string_lossy().into_owned();
    bench.run(&["play", &name, "--from", "1 s", "--for", "500 ms", "-o", "part.html"]).succeeds();
    let data = played(&fs::read_to_string(bench.path("part.html")).unwrap());
    assert_eq!((data["from"].as_u64(), data["length"].as_u64()), (Some(1_000_000), Some(500_000)));
    let entered = data["hops"]["entered"].as_array().unwrap();
    assert!(entered.iter().all(|at| at.as_i64().unwrap() <= 500_000), "{entered:?}");
    bench.run(&["play", &name, "--from", "4 s"]).fails(2, &["--from: expected a time within the run"]);
    bench.run(&["play", &name, "--for", "soon"]).fails(2, &["--for: found \"soon\""]);
    bench
        .run(&["play", &name, "--cell", "1"])
        .fails(2, &["--cell 1: the run has no such cell, expected 0, the only one"]);
}

#[test]
fn the_first_interrupt_ends_what_runs_a_simulation_again_and_leaves_no_part_of_a_file() {
    let bench = Bench::new();
    let quic =
        "\n[flow.media]\ntransport = \"quic-datagram\"\nworkload = { kind = \"voice\", codec = \"g711\" }\n";
    bench.file("calls.toml", format!("{CALLS}{quic}"));
    bench.run(&["run", "calls.toml"]).succeeds();
    let run = bench.only_run();
    // The same run, a hundred times as long: made again it takes seconds, and need not have run.
    let file = run.join("scenario.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"4 s\""), "{text}");
    fs::write(&file, text.replace("\"4 s\"", "\"100000 s\"")).unwrap();
    let name = run.to_string_lossy().into_owned();
    let commands: [&[&str]; 4] = [
        &["play", &name, "--from", "99999 s"],
        &["export", &name, "--format", "nam", "-o", "a.nam", "--from", "99999 s"],
        &["export", &name, "--format", "pcapng", "-o", "a.pcapng"],
        &["export", &name, "--format", "qlog", "-o", "a.qlog"],
    ];
    for command in commands {
        let child = bench.start(command);
        let status = format!("/proc/{}/status", child.id());
        wait_until("a handler for interrupts", || catches_interrupts(&status));
        interrupt(&child);
        let seen = Seen::of_child(child);
        seen.fails(130, &["interrupted"]);
    }
    let left = ["a.nam", "a.pcapng", "a.qlog"].into_iter().find(|name| bench.path(name).exists());
    assert!(left.is_none() && !run.join("play.html").exists(), "{left:?}");
}

#[test]
fn a_second_interrupt_ends_at_once_what_cannot_stop() {
    let bench = Bench::new();
    bench.file("calls.toml", CALLS);
    bench.run(&["run", "calls.toml"]).succeeds();
    let name = bench.only_run().to_string_lossy().into_owned();
    // Nobody reads what it writes: it waits at a full pipe, and does not see that it is to stop.
    let mut child = bench.start(&["export", &name, "--format", "nam"]);
    let mut before = 0;
    wait_until("a full pipe", || {
        thread::sleep(Duration::from_millis(100));
        let now = ioctl_fionread(child.stdout.as_ref().unwrap()).unwrap();
        now > 0 && core::mem::replace(&mut before, now) == now
    });
    interrupt(&child);
    // Twice as long as two signals of one request may be apart.
    thread::sleep(Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none(), "the first one has to wait for the pipe");
    interrupt(&child);
    let mut ended = None;
    wait_until("the end", || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(130));
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

/// Whether the process handles SIGINT, signal 2: proc(5), `SigCgt`.
fn catches_interrupts(status: &str) -> bool {
    let text = fs::read_to_string(status).unwrap();
    let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
}
