//! Campaigns: hosts are addresses of loopback, one of them behind an `ssh` of the test's own; a coordinator
//! that is killed goes on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{Bench, Seen, Served, names, read_json, wait_until};

/// `there` has a server, `new` is given one over ssh each time, `down` has none.
const CAMPAIGN: &str = r#"
name = "Two days"
key_file = "key"
between = { kind = "hub", hub = "here" }

[host.here]
local = true
at_once = 3

[host.there]
address = "THERE"

[host.new]
address = "127.0.0.3:PORT"
ssh = "new"
program = "PROGRAM"
server = "start"

[host.down]
address = "127.0.0.4:PORT"

[measure.call]
transports = ["udp", "tcp"]
duration = "300 ms"
drain = "200 ms"
rounds = 1

[schedule]
every = "1 s"
days = 2
day = "2 s"
window = "60 s"
retry = "100 ms"
"#;

/// Words after the options: `--`, the host, the command.
const SSH: &str =
    "#!/bin/sh\nwhile test \"$1\" != --; do shift; done\ntest \"$2\" = new || exit 255\nexec sh -c \"$3\"\n";

const KEY: &str = "0123456789abcdef0123456789abcdef\n";

struct Lab {
    bench: Bench,
    _served: Served,
}

impl Lab {
    fn new(window: &str) -> Self {
        let bench = Bench::new();
        bench.file("key", KEY);
        let served = Served::start(&bench, &["--key-file", "key", "--max-sessions", "64"]);
        let ssh = bench.file("ssh", SSH);
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let text = CAMPAIGN
            .replace("THERE", &served.address)
            .replace("PROGRAM", env!("CARGO_BIN_EXE_talkpath"))
            .replace("PORT", &free_port().to_string())
            .replace("60 s", window);
        bench.file("campaign.toml", text);
        Self { bench, _served: served }
    }

    fn command(&self, what: &str, more: &[&str]) -> Command {
        let arguments: Vec<&str> =
            ["campaign", what, "campaign.toml"].into_iter().chain(more.iter().copied()).collect();
        let mut command = self.bench.command(&arguments);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.bench.path("").display()));
        command
    }

    fn run(&self, what: &str, more: &[&str]) -> Seen {
        Seen::of(self.command(what, more).output().unwrap())
    }

    fn records(&self) -> Vec<String> {
        names(&self.bench.path("talkpath-runs/campaign-two-days/records"))
            .into_iter()
            .filter(|name| !name.starts_with('.'))
            .collect()
    }

    /// The ids that the journal calls done, and how often.
    fn done(&self) -> Vec<String> {
        let journal = self.bench.path("talkpath-runs/campaign-two-days/journal.jsonl");
        let text = fs::read_to_string(journal).unwrap();
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut ids: Vec<String> = entries
            .filter(|entry| entry["event"] == "done")
            .map(|entry| entry["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    }
}

#[test]
fn every_host_is_measured_on_every_day_and_one_that_is_down_has_its_reason() {
    let lab = Lab::new("12 s");
    let checked = lab.run("check", &[]);
    checked.succeeds();
    assert!(checked.out.contains("4 hosts, 12 measurements"), "{}", checked.out);
    let seen = lab.run("run", &["--json"]);
    seen.succeeds();
    let findings: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!((&findings["planned"], &findings["done"]), (&12.into(), &8.into()), "{}", seen.err);
    assert_eq!(lab.records(), lab.done());
    let matrix = findings["matrix"].as_array().unwrap();
    let rows: Vec<_> =
        matrix.iter().map(|row| (row["far"].as_str().unwrap(), row["transport"].as_str().unwrap())).collect();
    assert_eq!(rows, [("new", "tcp"), ("new", "udp"), ("there", "tcp"), ("there", "udp")]);
    for row in matrix {
        assert_eq!(row["measurements"], 4);
        assert!(row["delay_ms_p50"]["median"].as_f64().unwrap() > 0.0, "{row}");
    }
    for missing in findings["missing"].as_array().unwrap() {
        assert_eq!(missing["measurement"]["far"], "down");
        let why = missing["why"].as_str().unwrap();
        assert!(why.contains("down: ") || why.contains("because of a failure"), "{why}");
    }
    let page = fs::read_to_string(lab.bench.path("talkpath-runs/campaign-two-days/report.html")).unwrap();
    roxmltree::Document::parse(&page).unwrap();
    assert!(page.contains("here → there, day 2"), "rows name hosts and days");
    let status: Value = serde_json::from_str(&lab.run("status", &["--json"]).out).unwrap();
    assert_eq!((&status["done"], &status["abandoned"], &status["later"]), (&8.into(), &4.into(), &0.into()));
    lab.run("run", &["--strict"]).fails(1, &["4 of 12 were not measured"]);
    // Nothing is measured again, and no server or client stays behind.
    assert_eq!(lab.done().len(), 8);
    let changed =
        fs::read_to_string(lab.bench.path("campaign.toml")).unwrap().replace("rounds = 1", "rounds = 2");
    lab.bench.file("campaign.toml", changed);
    lab.run("status", &[]).fails(2, &["its plan was made from another file"]);
}

#[test]
fn a_coordinator_that_is_killed_goes_on_and_measures_nothing_twice() {
    let lab = Lab::new("60 s");
    let mut child = lab.command("run", &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("a record", || !lab.records().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    let before = lab.records();
    let journal = lab.bench.path("talkpath-runs/campaign-two-days/journal.jsonl");
    // As if it had been killed in the middle of a line.
    let torn = fs::read(&journal).unwrap().into_iter().chain(*b"{\"at_ms\":17").collect::<Vec<u8>>();
    fs::write(&journal, torn).unwrap();
    lab.run("status", &[]).succeeds();
    // It waits a minute for `down`: until the others are there.
    let mut child = lab.command("run", &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("all records", || lab.records().len() == 8);
    wait_until("all lines", || lab.done().len() == 8);
    rustix::process::kill_process(pid(&child), rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let done = lab.done();
    assert_eq!(done, lab.records(), "once each");
    assert!(before.iter().all(|id| done.contains(id)));
    for id in &done {
        let summary =
            read_json(&lab.bench.path(&format!("talkpath-runs/campaign-two-days/records/{id}/summary.json")));
        assert_eq!(summary["runs"].as_array().unwrap().len(), 2, "{id}");
    }
    let report = lab.run("report", &["-o", "page.html"]);
    report.succeeds();
    assert!(Path::new(&lab.bench.path("page.html")).exists());
}

#[test]
fn an_emulated_way_is_measured_like_any_other() {
    let bench = Bench::new();
    bench.file(
        "way.toml",
        "path = \"lan\"\n\n[far_clock]\noffset = \"3 s\"\njump = \"100 ms\"\njump_every = \"400 ms\"\n",
    );
    bench.file(
        "campaign.toml",
        "[host.cu]\nlocal = true\n[host.au]\nemulated = \"way.toml\"\n[measure.call]\ntransports = [\"udp\"]\nduration = \"1 s\"\n\
         drain = \"100 ms\"\nrounds = 1\n[schedule]\nevery = \"1 s\"\ndays = 1\nday = \"1 s\"\nwindow = \"30 s\"\n",
    );
    bench.file(
        "probe.toml",
        "duration = \"100 ms\"\npath = \"lan\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n",
    );
    if bench.emulate(&["run", "probe.toml", "--arena", "emu", "--out", "probe"]).is_none() {
        return;
    }
    let seen = bench.run(&["campaign", "run", "campaign.toml", "--json"]);
    seen.succeeds();
    let findings: Value = serde_json::from_str(&seen.out).unwrap();
    let row = &findings["matrix"][0];
    assert_eq!(
        (&row["near"], &row["far"], &row["clock_trusted"]),
        (&"cu".into(), &"au".into(), &0.into()),
        "{}",
        seen.err
    );
    assert!(row["clock_why"].as_str().is_some());
    // The preset's path takes less than a millisecond; its clock is three seconds off.
    assert!(row["delay_ms_p50"]["median"].as_f64().unwrap() < 500.0);
}

#[test]
fn every_mistake_of_a_campaign_is_told_at_once() {
    let bench = Bench::new();
    bench.file(
        "c.toml",
        "between = { kind = \"hub\", hub = \"a\" }\n[host.a]\nlocal = true\n[host.b]\naddres = \"b\"\n[measure.m]\nscenario = \"none.toml\"\n\
         [schedule]\nevery = \"6 hours\"\ndays = 5\nzone = \"Europe/Paris2\"\n",
    );
    let seen = bench.run(&["campaign", "check", "c.toml"]);
    seen.fails(
        2,
        &[
            "c.toml:5:1: host.b.addres",
            "did you mean `address`?",
            "c.toml:9:9: schedule.every",
            "c.toml:11:8: schedule.zone",
            "3 mistakes in c.toml",
        ],
    );
    bench.file("c.toml", "[host.a]\nlocal = true\n[host.b]\naddress = \"b\"\n[measure.m]\nscenario = \"none.toml\"\n[schedule]\nevery = \"6 h\"\ndays = 5\n");
    bench.run(&["campaign", "check", "c.toml"]).fails(2, &["none.toml: no such file"]);
    bench.run(&["campaign", "status", "none.toml"]).fails(2, &["no such file"]);
    assert!(bench.run(&["campaign", "check", "--keys"]).out.contains("| `start_within` |"));
}

fn pid(child: &std::process::Child) -> rustix::process::Pid {
    rustix::process::Pid::from_child(child)
}

/// One that is free now, on every address of loopback.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.3:0").unwrap().local_addr().unwrap().port()
}
