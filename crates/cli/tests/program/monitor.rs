//! `talkpath monitor` and `talkpath stamp` against a far end on loopback.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Bench, Seen, Served, entries, first_line, read_json, wait_until};
use crate::quiet::undisturbed;

/// A monitor whose events are read as they come.
struct Monitored {
    child: Child,
    lines: BufReader<ChildStdout>,
    events: Vec<Value>,
}

impl Monitored {
    fn start(bench: &Bench, to: &str, more: &[&str]) -> Self {
        let mut arguments =
            vec!["monitor", "--to", to, "--json-stream", "--interval", "1s", "--session", "1s"];
        arguments.extend(more);
        let mut child = bench.start(&arguments);
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines, events: Vec::new() }
    }

    fn next(&mut self) -> Option<&Value> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        if line.is_empty() {
            return None;
        }
        self.events.push(serde_json::from_str(&line).unwrap());
        self.events.last()
    }

    /// Reads until `count` events of this name have come in all.
    #[track_caller]
    fn read(&mut self, name: &str, count: usize) {
        while self.of(name).len() < count {
            assert!(self.next().is_some(), "no {name}: {:?}", self.events);
        }
    }

    fn of(&self, name: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["event"] == name).map(|event| &event["data"]).collect()
    }

    /// Ctrl-C; reads the rest.
    fn end(&mut self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        while self.next().is_some() {}
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{err}");
    }
}

impl Drop for Monitored {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sum of a key of the streams of all intervals.
fn summed(monitored: &Monitored, key: &str) -> u64 {
    monitored.of("interval").iter().map(|data| data["streams"][0]["counts"][key].as_u64().unwrap()).sum()
}

#[test]
fn a_monitor_tells_every_message_once_and_keeps_it() {
    undisturbed(|| {
        let bench = Bench::new();
        let served = Served::start(&bench, &["--open"]);
        let textfile = bench.path("talkpath.prom");
        let mut monitored = Monitored::start(
            &bench,
            &served.address,
            &["--metrics", "127.0.0.1:0", "--textfile", &textfile.to_string_lossy()],
        );
        let metrics = first_line(monitored.child.stderr.as_mut().unwrap());
        let metrics =
            metrics.strip_prefix("metrics: http://").unwrap().strip_suffix("/metrics").unwrap().to_owned();
        monitored.read("interval", 3);
        assert!(scraped(&metrics, "").contains("talkpath_messages_sent_total{"));
        let open = scraped(&metrics, "Accept: application/openmetrics-text\r\n");
        assert!(open.ends_with("# EOF\n") && open.contains("talkpath_up{"), "{open}");
        monitored.end();

        let names: Vec<_> = monitored.events.iter().map(|event| event["event"].as_str().unwrap()).collect();
        assert_eq!((names[0], names[names.len() - 1]), ("start", "end"), "{names:?}");
        let intervals = monitored.of("interval");
        // All but the last, which the signal cut short, are whole; each begins where the one before ended.
        for pair in intervals.windows(2) {
            assert_eq!(pair[0]["sum"]["end"], pair[1]["sum"]["start"]);
            assert_eq!(pair[0]["streams"][0]["packets"], 50, "{}", pair[0]);
        }
        let end = monitored.of("end")[0];
        let udp = &end["streams"][0]["udp"];
        for key in ["sent", "received", "lost", "unfinished", "refused", "bytes"] {
            assert_eq!(udp["counts"][key], summed(&monitored, key), "{key}");
        }
        assert!(udp["round_trip_delay_ms"]["p50"].as_f64().unwrap() > 0.0);
        assert_eq!((&end["outages"], &end["intervals"]), (&0.into(), &intervals.len().into()));

        let text = fs::read_to_string(&textfile).unwrap();
        let sent = format!(" {}\n", udp["counts"]["sent"]);
        assert!(text.lines().any(|line| {
            line.starts_with("talkpath_messages_sent_total{") && format!("{line}\n").ends_with(&sent)
        }));
        let folder = entries(&bench.path("talkpath-runs")).remove(0);
        let run = entries(&folder).remove(0);
        let summary = read_json(&run.join("summary.json"));
        let of_records: u64 = summary["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["flows"]["call"]["sent"].as_u64().unwrap())
            .sum();
        assert_eq!(of_records, summed(&monitored, "sent"), "the records hold what was told");
        let kept = fs::read_to_string(run.join("events.jsonl")).unwrap();
        let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(kept, monitored.events);
        assert!(run.join("packets.parquet").is_file() && !run.join("parts").exists());
    });
}

/// The body of the answer to a scrape.
fn scraped(address: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: a\r\n{headers}\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn a_server_that_is_killed_and_comes_back_is_an_outage_and_no_end() {
    undisturbed(|| {
        let bench = Bench::new();
        let mut served = Served::start(&bench, &["--open"]);
        let address = served.address.clone();
        let mut monitored = Monitored::start(&bench, &address, &["--records", "none"]);
        monitored.read("interval", 2);
        served.child.kill().unwrap();
        served.child.wait().unwrap();
        monitored.read("outage", 1);
        thread::sleep(Duration::from_millis(500));
        let again = bench.command(&["serve", "--open", "--bind", &address]);
        let _again = Served::of(again);
        monitored.read("recovered", 1);
        let before = monitored.of("interval").len();
        monitored.read("interval", before + 2);
        monitored.end();
        let (outage, recovered) = (monitored.of("outage")[0], monitored.of("recovered")[0]);
        assert_eq!(outage["start"], recovered["start"]);
        assert!(recovered["seconds"].as_f64().unwrap() > 0.4, "{recovered}");
        let end = monitored.of("end")[0];
        let seconds = |key: &str| end[key].as_f64().unwrap();
        let told: f64 =
            monitored.of("interval").iter().map(|data| data["sum"]["seconds"].as_f64().unwrap()).sum();
        assert!((seconds("measured_seconds") - told).abs() < 1e-6);
        // Every moment from the first session on is in an interval or in an outage.
        let first = monitored.of("interval")[0]["sum"]["start"].as_f64().unwrap();
        let last = monitored.of("interval").last().unwrap()["sum"]["end"].as_f64().unwrap();
        let both = seconds("measured_seconds") + seconds("outage_seconds");
        assert!((last - first - both).abs() < 1e-6, "{first} to {last}: {both}");
        assert!(!bench.path("talkpath-runs").exists(), "--records none keeps nothing");
    });
}

#[test]
fn a_monitor_judges_its_thresholds_and_ends_when_one_fails() {
    undisturbed(|| {
        let bench = Bench::new();
        let served = Served::start(&bench, &["--open"]);
        let monitor = [
            "monitor",
            "--to",
            &served.address,
            "--json-stream",
            "--interval",
            "1s",
            "--session",
            "1s",
            "--records",
            "none",
            "--require",
            "call.loss_rate <= 50%",
            "--require",
            "call.round_trip_delay_ms.p50 <= 0",
            "--until-fails",
        ];
        let seen = bench.run(&monitor);
        seen.fails(5, &["did not hold all the time:", "call.round_trip_delay_ms.p50 <= 0"]);
        assert!(!seen.err.contains("call.loss_rate"), "{}", seen.err);
        let events: Vec<Value> = seen.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let changes: Vec<&Value> = events
            .iter()
            .filter(|event| event["event"] == "threshold")
            .map(|event| &event["data"]["change"])
            .collect();
        let outcome = |threshold: &str| {
            let change = changes.iter().find(|change| change["threshold"] == threshold);
            change.map(|change| {
                (change["was"].clone(), change["outcome"].clone(), change["repetitions"].clone())
            })
        };
        assert_eq!(outcome("call.loss_rate <= 0.5"), Some((Value::Null, "holds".into(), 2.into())));
        let failed = Some((Value::Null, "fails".into(), 2.into()));
        assert_eq!(outcome("call.round_trip_delay_ms.p50 <= 0"), failed);
        let end = &events.last().unwrap()["data"];
        assert_eq!(end["thresholds"][1]["has_failed"], true);
        let unknown = bench.run(&["monitor", "--to", &served.address, "--require", "call.mosh >= 3"]);
        unknown.fails(2, &["mosh"]);
    });
}

#[test]
fn a_wrong_key_is_said_and_ends_the_monitor_with_4() {
    let bench = Bench::new();
    bench.file("key", "0123456789abcdef0123456789abcdef\n");
    bench.file("other", "fedcba9876543210fedcba9876543210\n");
    let served = Served::start(&bench, &["--key-file", "key"]);
    let monitor = ["monitor", "--to", &served.address, "--records", "none", "--key-file", "other"];
    let seen = bench.run(&monitor);
    seen.fails(4, &["the key is not this server's"]);
    assert!(!seen.out.contains("OUTAGE"), "{}", seen.out);
}

#[test]
fn what_a_monitor_cannot_do_is_said_before_it_begins() {
    let bench = Bench::new();
    bench.file(
        "sweep.toml",
        "name = \"a\"\nduration = \"1 s\"\npath = \"lan\"\n[flow.call]\ntransport = \"udp\"\n\
         workload = { kind = \"voice\", codec = \"g711\" }\n[sweep]\n\"flow.call.transport\" = [\"udp\", \"tcp\"]\n",
    );
    let to = ["monitor", "--to", "127.0.0.1:9"];
    let with = |more: &[&str]| bench.run(&[&to[..], more].concat());
    with(&["--metrics", "0.0.0.0:9160"]).fails(2, &["--metrics-open"]);
    with(&["--json"]).fails(2, &["--json-stream"]);
    let uneven = [&to[..], &["--interval", "7s", "--session", "10s"]].concat();
    let variable = bench.command(&uneven).env("TALKPATH_JSON", "1").output().unwrap();
    Seen::of(variable).fails(2, &["whole number of intervals"]);
    with(&["--interval", "7s", "--session", "10s"]).fails(2, &["whole number of intervals"]);
    with(&["--interval", "0.5s"]).fails(2, &["at least 1 s"]);
    with(&["--textfile", "metrics.txt"]).fails(2, &[".prom"]);
    with(&["--rotate", "10s"]).fails(2, &["at least 1 min"]);
    with(&["--transport", "carrier-pigeon"]).fails(2, &["carrier-pigeon"]);
    with(&["sweep.toml"]).fails(2, &["2 cells"]);
    assert!(!bench.path("talkpath-runs").exists());
}

#[test]
fn a_reader_that_stalls_holds_up_neither_records_nor_the_end() {
    undisturbed(|| {
        let bench = Bench::new();
        let served = Served::start(&bench, &["--open"]);
        let mut monitored = Monitored::start(&bench, &served.address, &[]);
        // Less than three intervals.
        rustix::pipe::fcntl_setpipe_size(monitored.lines.get_ref(), 4096).unwrap();
        let events = || -> Option<PathBuf> {
            let folder = entries(&bench.path("talkpath-runs")).pop()?;
            Some(entries(&folder).pop()?.join("events.jsonl"))
        };
        let kept = || events().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        wait_until("a sixth event", || kept().lines().count() >= 6);
        let since = Instant::now();
        kill_process(Pid::from_child(&monitored.child), Signal::INT).unwrap();
        assert_eq!(monitored.child.wait().unwrap().code(), Some(1), "not all was printed");
        assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
        assert!(kept().lines().last().is_some_and(|line| line.contains("\"end\"")));
        let run = events().unwrap();
        assert!(run.with_file_name("summary.json").is_file() && !run.with_file_name("parts").exists());
    });
}

#[test]
fn a_monitor_without_a_thread_says_so() {
    let bench = Bench::new();
    let monitor = ["monitor", "--to", "127.0.0.1:9", "--records", "none"];
    // The limit counts all processes of a user, and does not bind root. A shell calls it -u or -p.
    let limits: &[u32] = if rustix::process::geteuid().is_root() { &[1, 2, 3] } else { &[1] };
    for limit in limits {
        let mut command = bench.limited(&format!("-u {limit} 2>/dev/null || ulimit -p {limit}"), &monitor);
        if rustix::process::geteuid().is_root() {
            // A user without any process; it need not enter the folder.
            command.current_dir("/").uid(64_998).gid(64_998);
        }
        let seen = Seen::of(command.arg("--metrics=127.0.0.1:0").output().unwrap());
        if seen.code == Some(126) {
            eprintln!("SKIP: another user may not run the program: {}", seen.err);
            return;
        }
        seen.fails(3, &["cannot start a thread", "help: "]);
    }
}

#[test]
fn stamp_measures_against_its_own_reflector() {
    undisturbed(|| {
        let bench = Bench::new();
        for stateful in [false, true] {
            let mut arguments = vec!["stamp", "--reflect", "--bind", "127.0.0.1:0"];
            arguments.extend(stateful.then_some("--stateful"));
            let mut reflector = bench.start(&arguments);
            let line = first_line(reflector.stdout.as_mut().unwrap());
            let to = line.strip_prefix("reflecting on ").unwrap();
            let send = [
                "stamp",
                "--to",
                to,
                "--count",
                "20",
                "--interval",
                "5ms",
                "--dscp",
                "46/10",
                "--size",
                "200",
            ];
            let summary = bench.run(&[&send[..], &["--json"]].concat()).succeeds().summary();
            assert_eq!((&summary["sent"], &summary["received"]), (&20.into(), &20.into()));
            assert_eq!((&summary["lost_forward"], &summary["lost_return"]), (&0.into(), &0.into()));
            let class = &summary["class_of_service"];
            assert_eq!((&class["dscp_there"], &class["dscp_back"]), (&46.into(), &10.into()), "{class}");
            let p50 = |key: &str| summary[key]["p50"].as_f64().unwrap();
            // What each way took, and the turn-round, are the round trip's parts.
            assert!(p50("round_trip_delay_ms") > 0.0 && p50("turn_round_ms") > 0.0, "{summary}");
            assert_eq!(summary["clock"]["trusted"], true, "{summary}");
            let words = bench.run(&send).succeeds().out.clone();
            assert!(
                words.contains("20 sent, 20 received, 0 lost") && words.contains("turn-round"),
                "{words}"
            );
            kill_process(Pid::from_child(&reflector), Signal::INT).unwrap();
            let seen = Seen::of_child(reflector);
            assert_eq!(seen.code, Some(0));
            assert!(seen.err.contains("answered 40 packets"), "{}", seen.err);
        }
    });
}

#[test]
fn stamp_that_is_stopped_waits_for_what_is_on_its_way_and_ends_with_130() {
    let (bench, far) = (Bench::new(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let to = far.local_addr().unwrap().to_string();
    let stopped = |wait: &str, answers: bool| {
        let arguments = ["stamp", "--to", &to, "--interval", "20ms", "--wait", wait, "--json"];
        let mut child = bench.start(&[&arguments[..], &["--count", "5000"]].concat());
        far.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut packet = [0; 44];
        let (_, from) = far.recv_from(&mut packet).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        thread::sleep(Duration::from_millis(100));
        far.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        loop {
            // RFC 8762 §4.3.1: what came, with the stamps of the reflector, here T1 for all.
            let [base, stamp, sender] = [&packet[..16], &packet[4..12], &packet[..14]];
            let answer = [base, stamp, sender, &[0, 0, 64, 0, 0, 0]].concat();
            assert!(!answers || far.send_to(&answer, from).unwrap() == 44);
            if far.recv_from(&mut packet).is_err() {
                break;
            }
        }
        child.wait().unwrap();
        Seen::of_child(child)
    };
    let seen = stopped("20s", true);
    let summary = seen.summary();
    assert_eq!((seen.code, &summary["lost"]), (Some(130), &0.into()), "{}", seen.err);
    assert!(summary["received"].as_u64().unwrap() > 0 && seen.err.contains("interrupted"), "{summary}");
    let seen = stopped("200ms", false);
    assert_eq!(seen.code, Some(130));
    assert!(seen.err.contains("answered none of") && seen.out.is_empty(), "{}", seen.err);
}

#[test]
fn a_monitor_goes_on_when_its_output_cannot_be_written() {
    let bench = Bench::new();
    let far = Served::start(&bench, &[]);
    let arguments = ["monitor", "--to", &far.address, "--json-stream", "--interval", "1s", "--session", "1s"];
    let mut command = bench.command(&arguments);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("two intervals", || {
        let folder = bench.path("talkpath-runs");
        let monitors = fs::read_dir(folder).into_iter().flatten().flatten();
        let runs = monitors.flat_map(|it| fs::read_dir(it.path()).into_iter().flatten().flatten());
        let events = runs.filter_map(|run| fs::read_to_string(run.path().join("events.jsonl")).ok());
        events.map(|text| text.matches("\"event\":\"interval\"").count()).sum::<usize>() >= 2
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let seen = Seen::of_child(child);
    assert_eq!(seen.code, Some(1), "{}", seen.err);
    assert!(seen.err.contains("cannot write standard output") && seen.err.contains("the monitor continues"));
}

#[test]
fn stamp_without_a_reflector_is_exit_code_4_and_a_reflector_for_everybody_is_asked_for() {
    let bench = Bench::new();
    let nobody = ["stamp", "--to", "127.0.0.1:9", "--count", "2", "--interval", "1ms", "--wait", "10ms"];
    bench.run(&nobody).fails(4, &["answered none of 2 packets"]);
    bench.run(&["stamp", "--reflect"]).fails(2, &["--open"]);
    bench.run(&["stamp", "--to", "a", "--dscp", "64"]).fails(2, &["0 to 63"]);
    bench.run(&["stamp", "--to", "a", "--dscp", "1", "--size", "50"]).fails(2, &["52 B"]);
    bench.run(&["stamp"]).fails(2, &["--to"]);
    wait_until("nothing is left behind", || !bench.path("talkpath-runs").exists());
}
