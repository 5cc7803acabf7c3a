//! Campaigns that go wrong: a coordinator killed again and again, a host that is killed and comes back, one
//! that is frozen, one where nobody is, and a disk that is full.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::campaign::{KEY, Namespaces, via};
use crate::harness::{Bench, Seen, Served, names, read_json, wait_at_most};

/// 24 measurements: four hosts, six times.
const SCHEDULE: &str = r#"
[measure.call]
transports = ["udp"]
duration = "300 ms"
drain = "200 ms"
rounds = 1

[schedule]
every = "2 s"
days = 2
day = "6 s"
window = "150 s"
retry = "200 ms"
"#;

/// A campaign from `near` to four hosts.
struct Lab {
    bench: Bench,
    hosts: Namespaces,
}

impl Lab {
    fn new() -> Option<Self> {
        let hosts = Namespaces::new(4)?;
        let bench = Bench::new();
        bench.file("key", KEY);
        let text = format!(
            "key_file = \"key\"\nbetween = {{ kind = \"hub\", hub = \"near\" }}\n[host.near]\n{}at_once = 4\n\
             [host.started]\n{}address = \"10.77.0.2\"\nserver = \"start\"\n[host.killed]\naddress = \"10.77.1.2\"\n\
             [host.frozen]\naddress = \"10.77.2.2\"\n[host.nobody]\naddress = \"10.77.3.2\"\n{SCHEDULE}",
            via(&hosts.near),
            via(&hosts.far[0])
        );
        bench.file("campaign.toml", text);
        Some(Self { bench, hosts })
    }

    /// A standing server on far host `at`.
    fn serve(&self, at: usize) -> Served {
        let address = format!("10.77.{at}.2");
        let program = env!("CARGO_BIN_EXE_talkpath");
        let words =
            ["netns", "exec", &self.hosts.far[at], program, "serve", "--key-file", "key", "--bind", &address];
        Served::of(self.bench.prepared(Command::new("ip"), &words))
    }

    fn start(&self) -> Child {
        let mut command = self.bench.command(&["campaign", "run", "campaign.toml", "--dir", "c"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn dir(&self) -> PathBuf {
        self.bench.path("c")
    }

    fn report(&self) -> Value {
        let seen = self.bench.run(&["campaign", "report", "campaign.toml", "--dir", "c", "--json"]);
        seen.succeeds();
        serde_json::from_str(&seen.out).unwrap()
    }
}

/// The whole lines of a campaign's journal.
fn journal(dir: &Path) -> Vec<Value> {
    let Ok(text) = fs::read_to_string(dir.join("journal.jsonl")) else { return Vec::new() };
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Why attempts failed, by the host at which they did.
fn failures(dir: &Path) -> BTreeMap<String, Vec<String>> {
    let mut by_host: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in journal(dir).iter().filter(|entry| entry["event"] == "failed") {
        let word = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        by_host.entry(word("host")).or_default().push(word("why"));
    }
    by_host
}

/// How often each measurement has ended in the journal, by the event that ended it.
fn ends(dir: &Path) -> BTreeMap<(String, String), usize> {
    let mut ends = BTreeMap::new();
    for entry in journal(dir) {
        let event = entry["event"].as_str().unwrap().to_owned();
        if event == "done" || event == "abandoned" {
            *ends.entry((entry["id"].as_str().unwrap().to_owned(), event)).or_default() += 1;
        }
    }
    ends
}

fn has_ended(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_some()
}

/// What of a report does not hang on the time at which it was measured.
fn shape(findings: &Value) -> Vec<String> {
    let rows = |table: &str, keys: &[&str]| -> Vec<String> {
        let row = |row: &Value| {
            let words: Vec<String> = keys.iter().map(|key| row.pointer(key).unwrap().to_string()).collect();
            format!("{table} {}", words.join(" "))
        };
        findings[table].as_array().unwrap().iter().map(row).collect()
    };
    let mut shape = vec![format!("{} {} {}", findings["planned"], findings["done"], findings["hosts"])];
    let figures = ["/near", "/far", "/transport", "/measurements", "/loss_rate", "/delay_ms_p50/n"];
    shape.extend(rows("matrix", &figures));
    shape.extend(rows("days", &["/near", "/far", "/day", "/transport", "/loss_rate", "/delay_ms_p90/n"]));
    shape.extend(rows("missing", &["/measurement/id"]));
    shape
}

/// The seed of each record, and what was sent with it.
fn sent(dir: &Path) -> BTreeMap<String, (Value, Value)> {
    let of = |name: String| {
        let run = read_json(&dir.join("records").join(&name).join("summary.json"))["runs"][0].take();
        (name, (run["seed"].clone(), run["flows"]["call"]["sent"].clone()))
    };
    names(&dir.join("records")).into_iter().map(of).collect()
}

/// Kills of the coordinator. The issue asks for 20.
const KILLS: u32 = 24;

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only campaign`"]
fn a_coordinator_that_is_killed_24_times_measures_all_once_and_reports_as_one_that_was_not() {
    let (Some(lab), Some(calm)) = (Lab::new(), Lab::new()) else { return };
    // Beside it, the same campaign, left alone.
    let _calm_servers = [calm.serve(1), calm.serve(2)];
    let mut undisturbed = calm.start();

    let (killed, frozen) = (lab.serve(1), lab.serve(2));
    drop(killed);
    let frozen_pid = Pid::from_child(&frozen.child);
    kill_process(frozen_pid, Signal::STOP).unwrap();
    // An LCG's high bits (Knuth, MMIX): other moments each time, and the same in every run.
    let mut state = 2004_u64;
    for _ in 0..KILLS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut child = lab.start();
        thread::sleep(Duration::from_millis(200 + (state >> 33) % 2_000));
        assert!(!has_ended(&mut child), "it hits one at work");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut last = lab.start();
    let both = ["killed", "frozen"];
    wait_at_most(Duration::from_secs(90), "a failure at each", || {
        both.iter().all(|host| failures(&lab.dir()).contains_key(*host))
    });
    let _back = lab.serve(1);
    kill_process(frozen_pid, Signal::CONT).unwrap();
    wait_at_most(Duration::from_secs(300), "its end", || has_ended(&mut last));
    wait_at_most(Duration::from_secs(300), "the other's end", || has_ended(&mut undisturbed));
    assert!(last.wait().unwrap().success() && undisturbed.wait().unwrap().success());

    let dir = lab.dir();
    let plan = read_json(&dir.join("plan.json"));
    let planned: BTreeSet<String> = plan["measurements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect();
    let ends = ends(&dir);
    assert!(ends.values().all(|times| *times == 1), "{ends:?}");
    assert_eq!(ends.keys().map(|(id, _)| id.clone()).collect::<BTreeSet<_>>(), planned);
    for (id, event) in ends.keys() {
        assert_eq!(event == "abandoned", id.contains(".nobody."), "{id} {event}");
    }
    let done: Vec<_> = ends.keys().filter(|(_, event)| event == "done").map(|(id, _)| id.clone()).collect();
    assert_eq!(names(&dir.join("records")), done, "nothing half fetched is left");
    let of = |event: &str| journal(&dir).iter().filter(|entry| entry["event"] == event).count();
    assert!(of("begun") > of("done") + of("failed"), "kills cut attempts short");
    let failures = failures(&dir);
    let says = |host: &str, words: &str| failures[host].iter().any(|why| why.contains(words));
    assert!(says("killed", "refused the connection") && says("frozen", "it hangs"), "{failures:?}");
    assert!(
        lab.report()["missing"].as_array().unwrap().iter().all(|it| !it["why"].as_str().unwrap().is_empty())
    );
    assert_eq!(shape(&lab.report()), shape(&calm.report()));
    assert_eq!(sent(&dir), sent(&calm.dir()), "each with its own seed");
}

/// A small file system in memory; gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where this machine does not allow it, which is printed.
    fn new(at: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "talkpath-test"]).arg(&at);
        let output = mount.output().unwrap();
        if !output.status.success() {
            eprintln!("SKIP: no tmpfs here: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(Self(at))
    }

    /// Fills it but for `left` bytes, and gives the file that does.
    fn fill(&self, left: u64) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length - left).unwrap();
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_is_a_reason_and_nothing_is_lost_once_there_is_room() {
    let bench = Bench::new();
    let Some(disk) = SmallDisk::new(bench.path("small"), "32m") else { return };
    bench.file("key", KEY);
    let served = Served::start(&bench, &["--key-file", "key"]);
    let address = &served.address;
    bench.file(
        "campaign.toml",
        format!(
            "key_file = \"key\"\n[host.here]\nlocal = true\n[host.there]\naddress = \"{address}\"\n[measure.call]\n\
             transports = [\"udp\"]\nduration = \"300 ms\"\ndrain = \"200 ms\"\nrounds = 1\npairs = [\"here > there\"]\n\
             [schedule]\nevery = \"1 s\"\ndays = 1\nday = \"3 s\"\nwindow = \"100 s\"\nretry = \"200 ms\"\n"
        ),
    );
    // Room for the journal, and for no records.
    let filler = disk.fill(32 * 1024);
    let child = bench.start(&["campaign", "run", "campaign.toml", "--dir", "small/c"]);
    let dir = bench.path("small/c");
    let is_full = || failures(&dir).values().flatten().any(|why| why.contains("No space left on device"));
    wait_at_most(Duration::from_secs(60), "a failure for want of room", is_full);
    fs::remove_file(filler).unwrap();
    let seen = Seen::of_child(child);
    seen.succeeds();
    assert!(seen.out.contains("3 of 3 measured, 0 not measured"), "{}", seen.out);
    let ends = ends(&dir);
    assert_eq!((ends.len(), ends.values().sum::<usize>()), (3, 3), "{ends:?}");
    assert!(ends.keys().all(|(_, event)| event == "done"), "{ends:?}");
    assert_eq!(names(&dir.join("records")).len(), 3);
}
