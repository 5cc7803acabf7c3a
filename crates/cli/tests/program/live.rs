//! Two processes over the loopback interface: `serve`, and a run against it.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Child;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Bench, Seen, entries, first_line, names, read_json, wait_until};

/// One second of a call.
const CALL: &str = "\
name = \"live call\"
duration = \"1 s\"
drain = \"1 s\"
path = \"lan\"

[flow.call]
transport = \"udp\"
workload = { kind = \"voice\", codec = \"g711\", echo = true }
";

/// A server that ends with the test.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let mut all = vec!["serve", "--bind", "127.0.0.1:0"];
        all.extend(arguments);
        let mut child = bench.start(&all);
        let line = first_line(child.stdout.as_mut().unwrap());
        let address = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_call_over_loopback_is_measured_as_in_the_simulator() {
    let bench = Bench::new();
    let served = Served::start(&bench, &["--open"]);
    bench.file("call.toml", CALL);
    for transport in ["udp", "tcp", "tcp-nodelay"] {
        let set = format!("flow.call.transport={transport}");
        let arguments =
            ["run", "call.toml", "--to", &served.address, "--set", &set, "--out", transport, "--json"];
        let summary = bench.run(&arguments).succeeds().summary();
        assert_eq!(summary["arena"], "live");
        let call = &summary["runs"][0]["flows"]["call"];
        // 1 s of a frame every 20 ms; loopback loses nothing.
        assert_eq!((&call["sent"], &call["received"], &call["lost"]), (&50.into(), &50.into(), &0.into()));
        assert!(call["round_trip_delay_ms"]["p50"].as_f64().unwrap() > 0.0);
        let run = entries(&bench.path(transport)).remove(0);
        let files =
            ["log.txt", "packets.parquet", "report.html", "scenario.toml", "series.parquet", "summary.json"];
        assert_eq!(names(&run), files);
    }
}

#[test]
fn a_file_is_kept_where_serve_was_told_and_its_check_is_in_the_summary_and_the_log() {
    let bench = Bench::new();
    fs::create_dir(bench.path("kept")).unwrap();
    let kept = bench.path("kept");
    let served = Served::start(&bench, &["--open", "--keep", &kept.to_string_lossy()]);
    bench.file("talk.wav", vec![7; 50_000]);
    let scenario = CALL.replace(
        "{ kind = \"voice\", codec = \"g711\", echo = true }",
        "{ kind = \"file\", source = \"talk.wav\" }",
    );
    bench.file("file.toml", scenario);
    let summary = bench.run(&["run", "file.toml", "--to", &served.address, "--json"]).succeeds().summary();
    let run = &summary["runs"][0];
    let file = &run["flows"]["call"]["file"];
    assert_eq!((&file["intact"], &file["received_bytes"]), (&true.into(), &50_000.into()), "{file}");
    assert_eq!((&file["name"], &file["kept_as"]), (&"talk.wav".into(), &"talk.wav".into()));
    assert!(run["machine"]["real_time"].is_boolean() && run["machine"]["socket_drops"] == 0, "{run}");
    assert_eq!(fs::read(kept.join("talk.wav")).unwrap(), vec![7; 50_000]);
    let log = fs::read_to_string(bench.only_run().join("log.txt")).unwrap();
    for line in [
        "Receiver timeout: 1000 ms",
        "File: talk.wav, 50000 bytes",
        "File check: intact",
        "File kept as: talk.wav",
    ] {
        assert!(log.lines().any(|it| it == line), "no `{line}` in\n{log}");
    }
    // The simulator has no bytes to check: it models the transfer.
    let summary = bench.run(&["run", "file.toml", "--json"]).succeeds().summary();
    let flow = &summary["runs"][0]["flows"]["call"];
    assert!(flow["file"].is_null() && summary["runs"][0]["machine"].is_null());
    assert_eq!(flow["sent"], 35, "34.1 datagrams of 1464 B of it");
}

#[test]
fn a_folder_that_is_not_there_cannot_keep_files() {
    let bench = Bench::new();
    let seen = bench.run(&["serve", "--open", "--bind", "127.0.0.1:0", "--keep", "nowhere"]);
    seen.fails(3, &["cannot keep files in nowhere", "--keep DIR needs a folder"]);
}

#[test]
fn a_far_end_that_is_not_there_is_exit_code_4_and_leaves_nothing() {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let cases = [
        ("nowhere.invalid", "nowhere.invalid"),
        (closed.as_str(), closed.as_str()),
        ("127.0.0.1:notaport", "notaport"),
        ("[::1", "bracket"),
    ];
    for (to, says) in cases {
        bench.run(&["run", "call.toml", "--to", to]).fails(4, &[says]);
        bench.run(&["compare", "--to", to]).fails(4, &[says]);
    }
    assert!(bench.runs().is_empty());
}

#[test]
fn a_reflector_that_answers_garbage_is_exit_code_4() {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    let answers: [&'static [u8]; 5] = [
        b"",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        b"\x00\xff\xfe\x01\x80garbage\n\n\n",
        b"{\"talkpath\":\"\",\"nonce\":[]}\n",
        &[0xff; 100_000],
    ];
    for answer in answers {
        let to = garbage(answer);
        bench.run(&["run", "call.toml", "--to", &to]).fails(4, &[&to]);
    }
    assert!(bench.runs().is_empty());
}

/// Answers every connection with `answer`, for as long as the test runs.
fn garbage(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let talk = |mut stream: TcpStream| {
        let mut hello = [0; 1024];
        let _ = stream.read(&mut hello);
        let _ = stream.write_all(answer);
    };
    thread::spawn(move || listener.incoming().flatten().for_each(talk));
    address
}

#[test]
fn a_port_in_use_is_exit_code_3() {
    let bench = Bench::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap().to_string();
    bench.run(&["serve", "--bind", &address]).fails(3, &[&address, "--bind"]);
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = udp.local_addr().unwrap().to_string();
    bench.run(&["serve", "--bind", &address]).fails(3, &[&address, "--bind"]);
    bench.run(&["serve", "--bind", "somewhere"]).fails(2, &["--bind"]);
}

#[test]
fn a_key_lets_in_and_a_wrong_one_does_not() {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    bench.file("right.key", "0123456789abcdef0123456789abcdef\n");
    bench.file("wrong.key", "fedcba9876543210fedcba9876543210\n");
    bench.file("short.key", "abc\n");
    let served = Served::start(&bench, &["--key-file", "right.key"]);
    let to = &served.address;
    bench.run(&["run", "call.toml", "--to", to, "--key-file", "wrong.key"]).fails(4, &["key"]);
    bench.run(&["run", "call.toml", "--to", to]).fails(4, &["key"]);
    bench.run(&["run", "call.toml", "--to", to, "--key-file", "short.key"]).fails(2, &["short.key"]);
    bench.run(&["run", "call.toml", "--to", to, "--key-file", "no.key"]).fails(2, &["no.key"]);
    bench.run(&["serve", "--key-file", "short.key"]).fails(2, &["short.key"]);
    assert!(bench.runs().is_empty());
    bench.run(&["run", "call.toml", "--to", to, "--key-file", "right.key"]).succeeds();
}

#[test]
fn a_far_end_that_dies_leaves_whole_records_and_exit_code_4() {
    let bench = Bench::new();
    let mut served = Served::start(&bench, &["--open"]);
    bench.file("call.toml", CALL.replace("\"1 s\"\ndrain", "\"30 s\"\ndrain"));
    let child = bench.start(&["run", "call.toml", "--to", &served.address, "--json"]);
    wait_until("a run directory", || !bench.runs().is_empty());
    thread::sleep(std::time::Duration::from_millis(1500));
    served.child.kill().unwrap();
    let seen = Seen::of_child(child);
    seen.fails(4, &["talkpath run --resume"]);
    let summary = seen.summary();
    assert_eq!(summary["valid"], false);
    assert!(summary["warnings"].to_string().contains("missing or cut short"), "{}", summary["warnings"]);
    assert_kept(&bench, &summary);
}

#[test]
fn an_interrupted_live_run_keeps_what_was_measured() {
    let bench = Bench::new();
    let served = Served::start(&bench, &["--open"]);
    bench.file("call.toml", CALL.replace("\"1 s\"\ndrain", "\"30 s\"\ndrain"));
    let child = bench.start(&["run", "call.toml", "--to", &served.address, "--json"]);
    wait_until("a run directory", || !bench.runs().is_empty());
    thread::sleep(std::time::Duration::from_millis(1500));
    interrupt(&child);
    let seen = Seen::of_child(child);
    seen.fails(130, &["interrupted"]);
    assert_kept(&bench, &seen.summary());
}

#[test]
fn a_server_ends_with_ctrl_c() {
    let bench = Bench::new();
    let mut served = Served::start(&bench, &[]);
    interrupt(&served.child);
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    served.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("--key-file"), "{said}");
}

/// The messages measured before the end are in the summary and in the record file.
#[track_caller]
fn assert_kept(bench: &Bench, summary: &serde_json::Value) {
    let run = bench.only_run();
    assert_eq!(&read_json(&run.join("summary.json")), summary);
    assert!(summary["runs"][0]["flows"]["call"]["sent"].as_u64().unwrap() > 10, "{summary}");
    let csv = bench.run(&["export", run.to_str().unwrap(), "--format", "csv"]);
    assert!(csv.succeeds().out.lines().count() > 10);
    assert!(no_drafts(&run), "{:?}", names(&run));
}

fn no_drafts(run: &Path) -> bool {
    names(run).iter().all(|name| !name.starts_with('.'))
        && fs::metadata(run.join("report.html")).unwrap().len() > 1000
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}
