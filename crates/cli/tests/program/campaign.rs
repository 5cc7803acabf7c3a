//! Campaigns: hosts are addresses of loopback, one of them behind an `ssh` of the test's own; a coordinator
//! that is killed goes on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Bench, Seen, Served, entries, first_line, names, read_json, wait_until};

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
window = "150 s"
retry = "100 ms"
"#;

/// Words after the options: `--`, the host, the command. Nothing of the coordinator's own reaches a host.
const SSH: &str = "#!/bin/sh\nenv | grep -q -e ^AWS_ -e ^TALKPATH_ && exit 254\nwhile test \"$1\" != --; do shift; done\ntest \"$2\" = new || exit 255\nexec sh -c \"$3\"\n";

pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef\n";

struct Lab {
    bench: Bench,
    served: Served,
}

impl Lab {
    /// With these words of the file replaced.
    fn new(changes: &[(&str, &str)]) -> Self {
        let bench = Bench::new();
        bench.file("key", KEY);
        let served = Served::start(&bench, &["--key-file", "key", "--max-sessions", "64"]);
        let ssh = bench.file("ssh", SSH);
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let text = CAMPAIGN
            .replace("THERE", &served.address)
            .replace("PROGRAM", env!("CARGO_BIN_EXE_talkpath"))
            .replace("PORT", &free_port().to_string());
        let text = changes.iter().fold(text, |text, (from, to)| text.replace(from, to));
        bench.file("campaign.toml", text);
        Self { bench, served }
    }

    fn command(&self, what: &str, more: &[&str]) -> Command {
        let arguments: Vec<&str> =
            ["campaign", what, "campaign.toml"].into_iter().chain(more.iter().copied()).collect();
        let mut command = self.bench.command(&arguments);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.bench.path("").display()));
        command.env("AWS_SECRET_ACCESS_KEY", "secret").env("TALKPATH_OUT", "talkpath-runs");
        command
    }

    fn start(&self) -> Child {
        self.command("run", &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
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
        let Ok(text) = fs::read_to_string(journal) else { return Vec::new() };
        // The last line may be half written.
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut ids: Vec<String> = entries
            .filter(|entry| entry["event"] == "done")
            .map(|entry| entry["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    }
}

#[test]
fn a_coordinator_that_is_killed_goes_on_and_measures_every_host_on_every_day_once() {
    let lab = Lab::new(&[]);
    let checked = lab.run("check", &[]);
    checked.succeeds();
    assert!(checked.out.contains("4 hosts, 12 measurements"), "{}", checked.out);
    let mut child = lab.start();
    wait_until("a record", || !lab.records().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    let before = lab.records();
    let journal = lab.bench.path("talkpath-runs/campaign-two-days/journal.jsonl");
    // As if it had been killed in the middle of a line.
    let torn = fs::read(&journal).unwrap().into_iter().chain(*b"{\"at_ms\":17").collect::<Vec<u8>>();
    fs::write(&journal, torn).unwrap();
    lab.run("status", &[]).succeeds();
    let mut child = lab.command("run", &[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let found = first_line(child.stderr.as_mut().unwrap());
    let at_least = format!("found {} of 12 measured", before.len());
    assert!(found.contains("Two days: goes on; ") && found.contains(&at_least), "{found}");
    wait_until("a coordinator", || lab.run("status", &[]).out.contains("a coordinator is at work"));
    lab.run("run", &[]).fails(2, &["another process works on it"]);
    // It goes on with `down` while its windows last: until the others are there.
    let give_up = Instant::now() + Duration::from_secs(140);
    while lab.done().len() < 8 && Instant::now() < give_up {
        thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let done = lab.done();
    assert_eq!((done.len(), &done), (8, &lab.records()), "once each");
    assert!(before.iter().all(|id| done.contains(id)));
    let status: Value = serde_json::from_str(&lab.run("status", &["--json"]).out).unwrap();
    assert_eq!((&status["done"], &status["abandoned"], &status["later"]), (&8.into(), &0.into(), &0.into()));
    assert!(status["hosts"][3]["last_failure"].as_str().unwrap().contains("refused the connection"));
    let failing = status["failing"].as_array().unwrap();
    assert!(failing.iter().any(|it| it["next_try"].is_string()), "{status}");
    assert!(lab.run("status", &[]).out.contains("; next try: "));
    let seen = lab.run("report", &["--json", "-o", "page.html"]);
    seen.succeeds();
    let findings: Value = serde_json::from_str(&seen.out).unwrap();
    let matrix = findings["matrix"].as_array().unwrap();
    let name = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows: Vec<_> = matrix.iter().map(|row| (name(row, "far"), name(row, "transport"))).collect();
    let expected = [("new", "tcp"), ("new", "udp"), ("there", "tcp"), ("there", "udp")];
    assert_eq!(rows, expected.map(|(far, transport)| (far.to_owned(), transport.to_owned())));
    for row in matrix {
        assert_eq!(row["measurements"], 4);
        assert!(row["delay_ms_p50"]["median"].as_f64().unwrap() > 0.0, "{row}");
    }
    let plan = "talkpath-runs/campaign-two-days/plan.json";
    lab.run("report", &["-o", plan]).fails(2, &[plan, "would be lost; name another file"]);
    let page = fs::read_to_string(lab.bench.path("page.html")).unwrap();
    roxmltree::Document::parse(page.strip_prefix("<!DOCTYPE html>").unwrap()).unwrap();
    assert!(page.contains("here → there, day 2"), "rows name hosts and days");
    a_study_judges(&lab);
    let file = lab.bench.path("campaign.toml");
    let changed = fs::read_to_string(&file).unwrap().replace("rounds = 1", "rounds = 2");
    fs::write(&file, changed).unwrap();
    lab.run("status", &[]).fails(2, &["its plan was made from another file"]);
}

#[test]
fn every_host_is_met_before_a_campaign_begins_and_each_failure_is_said_at_its_host() {
    let lab = Lab::new(&[]);
    let seen = lab.run("check", &["--hosts"]);
    seen.fails(4, &["1 of 5 hosts and pairs does not work"]);
    for line in ["here (local): talkpath ", "new (ssh new): talkpath ", "here > there: ", "here > new: "] {
        assert!(seen.out.contains(line) && !seen.out.contains(&format!("{line}FAILED")), "{}", seen.out);
    }
    assert!(seen.out.contains("here > down: FAILED: down: "), "{}", seen.out);
    assert!(!lab.bench.path("talkpath-runs").exists(), "nothing of it is kept");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let seen = Seen::of(lab.command("check", &["--hosts"]).stdout(full).output().unwrap());
    seen.fails(4, &["1 of 5 hosts and pairs does not work", "cannot write standard output"]);
    let lab = Lab::new(&[
        ("ssh = \"new\"", "ssh = \"nwe\""),
        ("[host.down]", "[host.down]\nserver = \"standing\""),
    ]);
    let seen = lab.run("check", &["--hosts", "--json"]);
    seen.fails(4, &["3 of 5"]);
    let met: Value = serde_json::from_str(&seen.out).unwrap();
    let host = |name: &str| met["hosts"].as_array().unwrap().iter().find(|it| it["host"] == name).unwrap();
    assert!(host("new")["why"].as_str().unwrap().starts_with("ssh: "), "{met}");
    assert_eq!(host("here")["why"], Value::Null);
    let pair = met["pairs"].as_array().unwrap().iter().find(|it| it["far"] == "new").unwrap();
    assert_eq!(pair["why"], "not tried, because of new");
    lab.run("check", &["--json"]).fails(2, &["has no result to print as JSON"]);
}

#[test]
fn a_program_or_a_tool_that_a_host_lacks_is_said_before_a_campaign_begins() {
    let lab = Lab::new(&[("program = \"", "program = \"/nowhere")]);
    let seen = lab.run("check", &["--hosts"]);
    seen.fails(4, &[]);
    assert!(seen.out.contains("new (ssh new): FAILED: ") && seen.out.contains("not found"), "{}", seen.out);
    let lab =
        Lab::new(&[(&format!("program = \"{}\"", env!("CARGO_BIN_EXE_talkpath")), "program = \"true\"")]);
    assert!(lab.run("check", &["--hosts"]).out.contains("its `true` is no talkpath"));
}

/// A study of two claims, of which the second reads a host that was not measured.
const STUDY: &str = r#"
title = "Calls between sites"
authors = ["A. Author"]
year = 2026
source = "nowhere"
question = "Does it lose?"
set_up = "Two hosts."
repeat = 6
quick = { repeat = 2, assumptions = ["base"] }
[[assumption]]
name = "base"
text = "As it is."
[[cells]]
name = "{host}"
scenario = "call.toml"
axes = { host = ["there", "down"] }
[axis.host]
there = {}
down = { duration = "2 s" }
[[campaign]]
cell = "{host}"
each = { host = ["there", "down"] }
near = "here"
far = "{host}"
measure = "call"
flows = { udp = "udp", tcp = "tcp" }
[[claim]]
id = "C1"
text = "Nothing is lost"
published = "0"
expected = { sim = "reproduced", emu = "reproduced", campaign = "EXPECTED" }
why = "It is loopback."
basis = "predicted"
check = [{ name = "udp", metric = "flows.udp.loss_rate", cell = "there", at_most = 0.1 }]
[[claim]]
id = "C2"
text = "It is far"
published = "-"
arenas = ["campaign"]
expected = "not-tested"
why = "It is down."
basis = "predicted"
check = [{ name = "udp", metric = "flows.udp.loss_rate", cell = "down", at_most = 0.1 }]
"#;

fn a_study_judges(lab: &Lab) {
    let dir = lab.bench.path("talkpath-runs/campaign-two-days");
    for id in lab.records() {
        let path = dir.join("records").join(id).join("summary.json");
        let mut summary = read_json(&path);
        // Whatever a busy machine did to it: what is judged here is the way of the figures.
        summary["valid"] = true.into();
        for run in summary["runs"].as_array_mut().unwrap() {
            run["machine"]["valid"] = true.into();
        }
        fs::write(&path, summary.to_string()).unwrap();
    }
    fs::create_dir(lab.bench.path("sites")).unwrap();
    lab.bench.file(
        "sites/call.toml",
        "duration = \"1 s\"\npath = \"lan\"\n[flow.udp]\ntransport = \"udp\"\nworkload = \"voice\"\n\
         [flow.tcp]\ntransport = \"tcp\"\nworkload = \"voice\"\n",
    );
    let judge = |expected: &str| {
        lab.bench.file("sites/study.toml", STUDY.replace("EXPECTED", expected));
        lab.bench.run(&["study", "judge", "sites", "--campaign", "talkpath-runs/campaign-two-days"])
    };
    let seen = judge("reproduced");
    seen.succeeds();
    assert!(seen.out.contains("reproduced") && seen.out.contains("not-tested"), "{}", seen.out);
    let about = seen.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(about.contains("medians over 4 repetitions of a cell"), "{about}");
    assert!(seen.err.contains("1 of 2 cells is not in the campaign's records"), "{}", seen.err);
    assert!(fs::read_to_string(dir.join("sites.html")).unwrap().contains("study judge sites --campaign"));
    judge("differs").fails(1, &["sites/C1 reproduced, expected differs"]);
    lab.bench
        .run(&["study", "judge", "foderaro-1995", "--campaign", "x"])
        .fails(2, &["missing [[campaign]]"]);
    lab.bench.run(&["study", "judge", "sites", "--campaign", "x"]).fails(2, &["has not begun"]);
}

#[test]
fn what_is_not_measured_has_its_reason() {
    let hub = "between = { kind = \"hub\", hub = \"here\" }";
    let lab =
        Lab::new(&[(hub, "between = { kind = \"pairs\", pairs = [\"here > down\"] }"), ("150 s", "1 s")]);
    lab.run("run", &["--strict"]).fails(1, &["4 of 4 were not measured"]);
    let findings: Value = serde_json::from_str(&lab.run("report", &["--json"]).out).unwrap();
    let missing = findings["missing"].as_array().unwrap();
    assert_eq!(missing.len(), 4);
    for missing in missing {
        assert_eq!(missing["measurement"]["far"], "down");
        let why = missing["why"].as_str().unwrap();
        let reasons = ["refused the connection", "were not both free", "did not run in its window"];
        assert!(reasons.iter().any(|reason| why.contains(reason)), "{why}");
    }
    assert!(lab.run("status", &[]).out.contains("Not measured:"));
    // What has ended is not begun again.
    lab.run("run", &[]).succeeds();
    assert!(lab.records().is_empty());
}

/// Two times, over loopback; a script in the place of rclone copies to the folder SHARE.
const COPIED: &str = r#"
name = "Copied"
key_file = "key"
store_command = ["sh", "copy.sh", "{file}", "{key}", "SHARE"]
[host.here]
local = true
[host.there]
address = "THERE"
[measure.call]
transports = ["udp"]
duration = "300 ms"
drain = "200 ms"
rounds = 1
[schedule]
every = "1 s"
days = 1
day = "2 s"
window = "60 s"
retry = "100 ms"
"#;

/// The coordinator's own variables do not reach the copy; the variables that a store needs do.
const COPY: &str = r#"
env | grep -q ^TALKPATH_ && exit 9
test "$AWS_SECRET_ACCESS_KEY" = secret || exit 8
test -d "$3" || { echo "there is no folder $3" >&2; exit 1; }
mkdir -p "$(dirname "$3/$2")" && cp "$1" "$3/$2"
"#;

#[test]
fn a_campaign_judges_its_thresholds_over_all_measurements_of_a_pair() {
    let lab = Lab::new(&[]);
    let lines = COPIED.lines().filter(|line| !line.starts_with("store_command"));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let text = text.replace("THERE", &lab.served.address);
    let demanding = |demands: &str| text.replace("rounds = 1", &format!("rounds = 1\nrequire = [{demands}]"));
    lab.bench.file("campaign.toml", demanding("\"call.mosh >= 3\""));
    lab.run("check", &[]).fails(2, &["mosh"]);
    lab.bench.file("campaign.toml", demanding("\"call.loss_rate\""));
    lab.run("check", &[]).fails(2, &["measure.call.require: ", "call.mos >= 3.6"]);
    let demands = "\"call.loss_rate <= 50%\", \"call.round_trip_delay_ms.p50 <= 0\"";
    lab.bench.file("campaign.toml", demanding(demands));
    // A machine under load disturbs measurements, which are not judged. If it disturbed both, they run again.
    let run_and_report = || {
        let _ = fs::remove_dir_all(lab.bench.path("talkpath-runs"));
        let seen = lab.run("run", &[]);
        let report = lab.run("report", &["--json", "-o", "page.html"]).out;
        let findings: Value = serde_json::from_str(&report).unwrap();
        let valid = findings["matrix"][0]["valid"].as_u64().unwrap();
        (valid > 0).then_some((seen, findings, valid))
    };
    let (seen, findings, valid) =
        (0..5).find_map(|_| run_and_report()).expect("a measurement that the machine did not disturb");
    seen.fails(5, &["1 of 2 thresholds do not hold"]);
    assert!(seen.out.contains("here > there, call:\n  holds  call.loss_rate"), "{}", seen.out);
    assert!(seen.out.contains("\n  FAILS  call.round_trip_delay_ms.p50"), "{}", seen.out);
    assert!(lab.run("status", &[]).out.contains("  holds  call.loss_rate"));
    assert_eq!(findings["matrix"][0]["measurements"], 2, "{findings}");
    let judged = &findings["thresholds"][0];
    assert_eq!((&judged["near"], &judged["far"]), (&"here".into(), &"there".into()));
    assert_eq!(judged["thresholds"][0]["repetitions"], valid, "of all undisturbed measurements: {findings}");
    let page = fs::read_to_string(lab.bench.path("page.html")).unwrap();
    assert!(page.contains("call.round_trip_delay_ms.p50 "), "the page has the thresholds");
}

#[test]
fn what_is_measured_is_copied_and_a_store_that_is_down_costs_no_measurement() {
    let lab = Lab::new(&[]);
    let share = lab.bench.path("share");
    let text = COPIED.replace("SHARE", share.to_str().unwrap()).replace("THERE", &lab.served.address);
    lab.bench.file("campaign.toml", text);
    lab.bench.file("copy.sh", COPY);
    let down = lab.run("run", &[]);
    down.succeeds();
    for says in [
        "not copied to the store: sh: exit code 1: there is no folder",
        "2 measurements not copied yet by `sh copy.sh '{file}' '{key}' ",
        "campaign push` copies the rest",
    ] {
        assert!(down.err.contains(says), "{}", down.err);
    }
    let directory = lab.bench.path("talkpath-runs/campaign-copied");
    assert_eq!(names(&directory.join("records")).len(), 2);
    lab.run("push", &[]).fails(4, &["there is no folder", "the same command goes on"]);
    fs::create_dir(&share).unwrap();
    // A coordinator that finds all done copies what is left.
    lab.run("run", &[]).succeeds();
    let status: Value = serde_json::from_str(&lab.run("status", &["--json"]).out).unwrap();
    assert_eq!((&status["store"]["there"], &status["store"]["failing"]), (&2.into(), &Value::Null));
    let seen: Value = serde_json::from_str(&lab.run("push", &["--json"]).out).unwrap();
    assert_eq!((&seen["copied"], &seen["before"]), (&1.into(), &2.into()), "the plan alone");
    assert!(lab.run("push", &[]).out.contains("; 2 measurements copied before"));
    let seen: Value = serde_json::from_str(&lab.run("push", &["--all", "--json"]).out).unwrap();
    assert!(seen["copied"].as_u64().unwrap() >= 9 && seen["before"] == 0, "{seen}");
    // A run around midnight has two days.
    let days = names(&share.join("copied")).into_iter().filter(|name| name.starts_with("day="));
    let pairs = days.map(|day| share.join("copied").join(day).join("pair=here-to-there"));
    let mut copied = 0;
    for folder in pairs.flat_map(|pair| entries(&pair)) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let records = directory.join("records").join(name.strip_prefix("measurement=").unwrap());
        let rows = |folder: &Path| fs::read(folder.join("packets.parquet")).unwrap();
        assert!(rows(&folder) == rows(&records), "{name}");
        copied += 1;
    }
    assert_eq!(copied, 2);
}

#[test]
fn copying_needs_a_command_and_a_plan() {
    let bench = Bench::new();
    bench.file("key", KEY);
    let text = COPIED.replace("THERE", "192.0.2.1");
    let line = text.lines().find(|line| line.starts_with("store_command")).unwrap();
    bench.file("campaign.toml", text.replace(line, ""));
    bench.run(&["campaign", "push", "campaign.toml"]).fails(2, &["missing `store_command`"]);
    bench.file("campaign.toml", &text);
    bench.run(&["campaign", "push", "campaign.toml"]).fails(2, &["this campaign has not begun"]);
    bench.file("campaign.toml", text.replace(line, "store = \"s3://records/lab\""));
    let instead = "store_command = [\"rclone\", \"copyto\", \"{file}\", \":s3,env_auth,provider=AWS:records/lab/{key}\"]";
    bench.run(&["campaign", "run", "campaign.toml"]).fails(2, &["4:1: store", instead]);
}

#[test]
fn a_signal_ends_a_copy_that_hangs() {
    let lab = Lab::new(&[]);
    let text = COPIED.replace("SHARE", ".").replace("THERE", &lab.served.address);
    lab.bench.file("campaign.toml", text);
    lab.bench.file("copy.sh", "echo $$ > copying; exec sleep 600");
    let mut child = lab.start();
    wait_until("a copy hangs", || {
        fs::read_to_string(lab.bench.path("copying")).is_ok_and(|id| id.ends_with('\n'))
    });
    let id = fs::read_to_string(lab.bench.path("copying")).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let status = fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    assert!(status.is_empty() || status.contains(") Z "), "{status}");
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

/// A near host and far ones in namespaces of their own, each joined to the near one by a cable; gone when
/// dropped. Far host N has the address 10.77.N.2.
pub(crate) struct Namespaces {
    pub(crate) near: String,
    pub(crate) far: Vec<String>,
}

impl Namespaces {
    /// `None` where this machine does not allow it, which is printed.
    pub(crate) fn new(count: usize) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let near = format!("tp-near-{id}");
        let far: Vec<String> = (0..count).map(|at| format!("tp-far{at}-{id}")).collect();
        let made = Self { near, far };
        let near = &made.near;
        let mut script = format!("ip netns add {near}");
        for (at, far) in made.far.iter().enumerate() {
            script += &format!(
                " && ip netns add {far} && ip -n {near} link add v{at} type veth peer name w{at} netns {far} && \
                 ip -n {near} addr add 10.77.{at}.1/24 dev v{at} && ip -n {far} addr add 10.77.{at}.2/24 dev w{at} && \
                 ip -n {near} link set v{at} up && ip -n {far} link set w{at} up"
            );
        }
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        if !output.status.success() {
            eprintln!("SKIP: no namespaces here: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(made)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in self.far.iter().chain([&self.near]) {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

/// `via` of a host in namespace `name`.
pub(crate) fn via(name: &str) -> String {
    format!("local = true\nvia = [\"ip\", \"netns\", \"exec\", \"{name}\"]\n")
}

#[test]
fn hosts_in_namespaces_are_measured_and_the_server_is_started_for_it() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let bench = Bench::new();
    bench.file("key", KEY);
    let text = format!(
        "key_file = \"key\"\n[host.near]\n{}[host.far]\n{}address = \"10.77.0.2\"\nserver = \"start\"\n[measure.call]\n\
         transports = [\"udp\"]\nduration = \"300 ms\"\ndrain = \"200 ms\"\nrounds = 1\n\
         [schedule]\nevery = \"1 s\"\ndays = 1\nday = \"1 s\"\nwindow = \"30 s\"\n",
        via(&namespaces.near),
        via(&namespaces.far[0])
    );
    bench.file("campaign.toml", text);
    let seen = bench.run(&["campaign", "run", "campaign.toml", "--json"]);
    seen.succeeds();
    let findings: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(
        (&findings["done"], &findings["matrix"][0]["far"]),
        (&1.into(), &"far".into()),
        "{}",
        seen.err
    );
    assert_eq!(findings["matrix"][0]["loss_rate"], 0.0);
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

/// One that is free now, on every address of loopback.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.3:0").unwrap().local_addr().unwrap().port()
}
