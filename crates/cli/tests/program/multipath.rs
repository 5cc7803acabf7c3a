//! Multipath TCP between hosts of two cables (RFC 8684): the client's kernel has a second address for it, the
//! server's knows nothing of it.

use std::process::Command;

use crate::campaign::Namespaces;
use crate::harness::{Bench, Seen, Served};

const UPLOAD: &str = r#"
name = "two cables"
duration = "2 s"
drain = "2 s"

[flow.upload]
transport = { kind = "tcp", multipath = true }
workload = { kind = "cbr", rate = "2 Mbps", size = "1000 B" }
due = "opening"

[flow.plain]
transport = "tcp"
workload = { kind = "cbr", rate = "200 kbps", size = "1000 B" }
due = "opening"
"#;

/// A second cable with the addresses 10.78.0.1 and 10.78.0.2; what comes from the former leaves over it.
fn second_cable(hosts: &Namespaces) -> bool {
    let (near, far) = (&hosts.near, &hosts.far[0]);
    let script = format!(
        "ip -n {near} link add v9 type veth peer name w9 netns {far} && ip -n {near} addr add 10.78.0.1/24 dev v9 && \
         ip -n {far} addr add 10.78.0.2/24 dev w9 && ip -n {near} link set v9 up && ip -n {far} link set w9 up && \
         ip -n {near} rule add from 10.78.0.1 table 9 && ip -n {near} route add 10.77.0.2 dev v9 table 9 && \
         ip -n {near} mptcp endpoint add 10.78.0.1 dev v9 subflow"
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    if !output.status.success() {
        eprintln!("SKIP: no second path here: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

#[test]
fn a_connection_between_hosts_with_two_cables_has_a_subflow_over_each() {
    let Some(hosts) = Namespaces::new(1) else { return };
    if !second_cable(&hosts) {
        return;
    }
    let bench = Bench::new();
    bench.file("upload.toml", UPLOAD);
    let inside = |host: &str, arguments: &[&str]| {
        let words = [&["netns", "exec", host, env!("CARGO_BIN_EXE_talkpath")], arguments].concat();
        bench.prepared(Command::new("ip"), &words)
    };
    let served = Served::of(inside(&hosts.far[0], &["serve", "--bind", "10.77.0.2:0", "--open"]));
    let run = ["run", "upload.toml", "--to", &served.address, "--json=runs"];
    let seen = Seen::of(inside(&hosts.near, &run).output().unwrap());
    seen.succeeds();
    let summary = seen.summary();
    let flow = |name: &str| summary["runs"][0]["flows"][name].clone();
    let upload = flow("upload");
    assert_eq!(upload["multipath"]["fell_back"], false, "{}", seen.err);
    assert_eq!(upload["multipath"]["subflows_max"], 2, "{}", seen.err);
    assert_eq!((&upload["lost"], &upload["unfinished"]), (&0.into(), &0.into()));
    assert!(flow("plain")["multipath"].is_null());
    assert!(!seen.err.contains("multipath"), "nothing is to be said: {}", seen.err);
}

#[test]
fn multipath_is_refused_in_sim_with_what_to_do() {
    let bench = Bench::new();
    bench.file("upload.toml", UPLOAD.replace("duration =", "path = \"lan\"\nduration ="));
    bench
        .run(&["run", "upload.toml"])
        .fails(2, &["the simulator has no Multipath TCP", "--arena emu or --to HOST"]);
}
