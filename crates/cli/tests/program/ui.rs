//! The window with the real program behind it: what the page does, said over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Bench, Seen};

/// A window that the program serves.
struct Window {
    child: Child,
    port: u16,
    token: String,
}

impl Window {
    fn open(bench: &Bench) -> Self {
        let mut command = bench.command(&["ui", "--no-open"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let (host, token) = address.trim().strip_prefix("http://").unwrap().split_once("/#").unwrap();
        let port = host.strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
        Self { child, port, token: token.to_owned() }
    }

    fn ask(&self, path: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let (port, token, body) = (self.port, &self.token, body.to_string());
        write!(
            stream,
            "POST /api/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    /// Starts a task and waits for its end.
    fn finish(&self, task: &str, values: &Value) -> Value {
        let (status, started) = self.ask("jobs", &json!({ "task": task, "values": values }));
        assert_eq!(status, 200, "{started}");
        let begun = Instant::now();
        loop {
            let (_, job) = self.ask("job", &json!({ "id": started["id"] }));
            if !job["exit_code"].is_null() {
                return job;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{job}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends the window, and waits for it.
    fn end(self, cancel: bool) -> Seen {
        assert_eq!(self.ask("end", &json!({ "cancel": cancel })).0, 200);
        let ended = self.child.wait_with_output().unwrap();
        Seen::of(ended)
    }
}

const QUICK: [(&str, &str); 4] =
    [("transports", "udp,tcp"), ("duration", "5s"), ("repeat", "2"), ("beside", "--alone")];

fn values(pairs: &[(&str, &str)]) -> Value {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn a_run_from_the_window_is_a_run_and_the_figures_shown_are_those_of_its_summary() {
    let bench = Bench::new();
    let window = Window::open(&bench);
    let job = window.finish("compare", &values(&QUICK));
    assert_eq!(job["exit_code"], 0, "{job}");
    let run = bench.path("talkpath-runs").join(job["run"].as_str().unwrap());
    let summary: Value = serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap();
    let (_, shown) = window.ask("run", &json!({ "name": job["run"] }));
    for key in ["name", "arena", "valid", "warnings", "comparisons", "cells"] {
        assert_eq!(shown["figures"][key], summary[key], "{key}");
    }
    let last = job["answers"].as_array().unwrap().last().unwrap();
    assert_eq!(last["line"], summary["comparisons"][0]["answer"]["line"]);
    assert_eq!(job["progress"]["finished"], 4);
    assert!(job["figures"].as_array().unwrap().iter().any(|cell| cell["flows"]["call"]["mos"].is_number()));
    let (_, listed) = window.ask("runs", &json!({ "search": "home-adsl sim" }));
    assert_eq!(listed[0]["name"], job["run"]);
    let command = job["command"].as_str().unwrap();
    assert_eq!(command, "talkpath compare --alone --transports=udp,tcp --duration=5s --repeat=2");
    window.end(false).succeeds();
}

#[test]
fn a_scenario_with_a_program_is_refused_from_the_window() {
    let bench = Bench::new();
    let window = Window::open(&bench);
    let text = "name = \"p\"\nduration = \"1 s\"\npath = \"lan\"\n[flow]\n[program]\ncommand = [\"touch\", \"ran\"]\n";
    assert_eq!(window.ask("scenario", &json!({ "name": "p.toml", "text": text })).0, 200);
    let job = window.finish("scenario", &json!({ "file": "p.toml" }));
    assert_eq!(job["exit_code"], 2, "{job}");
    assert!(job["messages"].to_string().contains("--allow-program"), "{job}");
    let smuggled = json!({ "task": "scenario", "values": { "file": "p.toml", "allow_program": "true" } });
    assert_eq!(window.ask("jobs", &smuggled).0, 422);
    assert!(!bench.path("ran").exists());
    window.end(false).succeeds();
}

#[test]
fn mistakes_of_a_scenario_are_at_their_lines_and_errors_are_those_of_the_command_line() {
    let bench = Bench::new();
    let window = Window::open(&bench);
    let (_, checked) =
        window.ask("check", &json!({ "text": "name = \"a\"\nduration = \"1 x\"\npth = \"lan\"\n" }));
    let lines: Vec<_> =
        checked["mistakes"].as_array().unwrap().iter().map(|it| it["line"].as_u64()).collect();
    assert!(lines.contains(&Some(2)) && lines.contains(&Some(3)), "{checked}");
    let job = window.finish("compare", &json!({ "line": "fast" }));
    let seen = bench.run(&["compare", "--line=fast"]);
    assert_eq!(job["exit_code"].as_i64(), seen.code.map(i64::from));
    let said = job["messages"][0]["text"].as_str().unwrap();
    assert!(!said.is_empty() && seen.err.contains(said), "{said:?} is not in {:?}", seen.err);
    let job = window.finish("burst", &json!({ "to": "127.0.0.1:9", "count": "10" }));
    assert_eq!(job["exit_code"], 4, "{job}");
    window.end(false).succeeds();
}

#[test]
fn a_run_that_is_cancelled_goes_on_from_the_window_and_one_that_is_left_ends_without_it() {
    let bench = Bench::new();
    let window = Window::open(&bench);
    let long = json!({ "task": "compare", "values": { "transports": "udp,tcp", "repeat": "60" } });
    let (_, started) = window.ask("jobs", &long);
    let id = &started["id"];
    let begun = Instant::now();
    let run = loop {
        let (_, job) = window.ask("job", &json!({ "id": id }));
        if job["progress"]["finished"].as_u64().is_some_and(|finished| finished > 0) {
            break job["run"].clone();
        }
        assert!(begun.elapsed() < Duration::from_secs(60) && job["exit_code"].is_null(), "{job}");
        thread::sleep(Duration::from_millis(20));
    };
    window.ask("cancel", &json!({ "id": id }));
    while window.ask("job", &json!({ "id": id })).1["exit_code"].is_null() {
        assert!(begun.elapsed() < Duration::from_secs(90));
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(window.ask("job", &json!({ "id": id })).1["exit_code"], 130);
    let (_, shown) = window.ask("run", &json!({ "name": run }));
    assert_eq!((&shown["unfinished"], &shown["ours"]), (&json!(true), &json!(true)), "{shown}");
    let (status, resumed) = window.ask("resume", &json!({ "name": run }));
    assert_eq!(status, 200, "{resumed}");
    let seen = window.end(false);
    assert_eq!(seen.code, Some(0));
    assert!(seen.err.contains("left running") && seen.err.contains("--resume"), "{}", seen.err);
    // The run ends without the window, or a second run of the same is refused because it goes on.
    let whole = bench.path("talkpath-runs").join(run.as_str().unwrap());
    while whole.join("parts").exists() {
        assert!(begun.elapsed() < Duration::from_secs(240), "{whole:?} does not end");
        thread::sleep(Duration::from_millis(200));
    }
    assert!(whole.join("summary.json").exists());
}

#[test]
fn a_burst_between_two_windows_has_its_statistics_and_its_log_at_both_ends() {
    let (here, there) = (Bench::new(), Bench::new());
    let (window, far) = (Window::open(&here), Window::open(&there));
    let port = free_port();
    let (_, served) =
        far.ask("jobs", &json!({ "task": "serve", "values": { "who": "--open", "port": port } }));
    let begun = Instant::now();
    let sent = loop {
        let to =
            json!({ "to": format!("127.0.0.1:{port}"), "transport": "tcp", "size": "1024", "count": "10" });
        let job = window.finish("burst", &to);
        if job["exit_code"] == 0 {
            break job;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{job}");
    };
    let (_, log) = window.ask("text", &json!({ "name": sent["run"], "which": "log" }));
    let log = log["text"].as_str().unwrap();
    assert!(log.contains("10") && log.contains("1024"), "{log}");
    let (_, shown) = window.ask("run", &json!({ "name": sent["run"] }));
    assert_eq!(shown["figures"]["cells"][0]["flows"]["transfer"]["received"]["mean"], 10.0);
    let received = there.path("talkpath-runs").join("received").join("receive-log.txt");
    let received = std::fs::read_to_string(received).unwrap();
    assert!(received.contains("Packet size: 1024 bytes\nPackets received: 10\n"), "{received}");
    let (_, far_job) = far.ask("job", &json!({ "id": served["id"] }));
    assert!(far_job["messages"].to_string().contains("127.0.0.1"), "{far_job}");
    window.end(false).succeeds();
    far.end(true).succeeds();
}

/// A port that nobody listens on.
fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}
