//! Two processes over the loopback interface: `serve`, and a run against it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Bench, Seen, Served, entries, first_line, names, read_json, wait_until};
use crate::quiet::undisturbed;

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

#[test]
fn a_call_over_loopback_is_measured_as_in_the_simulator() {
    undisturbed(|| {
        let bench = Bench::new();
        let served = Served::start(&bench, &["--open"]);
        bench.file("call.toml", CALL);
        for transport in ["udp", "tcp", "tcp-nodelay"] {
            let set = format!("flow.call.transport={transport}");
            let arguments = [
                "run",
                "call.toml",
                "--to",
                &served.address,
                "--set",
                &set,
                "--out",
                transport,
                "--json=runs",
            ];
            let summary = bench.run(&arguments).succeeds().summary();
            assert_eq!(summary["arena"], "live");
            let call = &summary["runs"][0]["flows"]["call"];
            // 1 s of a frame every 20 ms; loopback loses nothing, and opens within a frame.
            let ledger = &call["ledger"];
            assert_eq!((&ledger["due"], &ledger["missing"]), (&50.into(), &0.into()), "{ledger}");
            let delivered = ledger["delivered"].as_u64().unwrap();
            assert!(delivered == 50 || (transport != "udp" && delivered == 49), "{transport}: {ledger}");
            assert!(call["round_trip_delay_ms"]["p50"].as_f64().unwrap() > 0.0);
            let run = entries(&bench.path(transport)).remove(0);
            let files = [
                "log.txt",
                "packets.parquet",
                "report.html",
                "scenario.toml",
                "series.parquet",
                "summary.json",
            ];
            assert_eq!(names(&run), files);
        }
    });
}

#[test]
fn a_file_is_kept_where_serve_was_told_and_its_check_is_in_the_summary_and_the_log() {
    undisturbed(|| {
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
        let summary =
            bench.run(&["run", "file.toml", "--to", &served.address, "--json=runs"]).succeeds().summary();
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
        let summary = bench.run(&["run", "file.toml", "--json=runs"]).succeeds().summary();
        let flow = &summary["runs"][0]["flows"]["call"];
        assert!(flow["file"].is_null() && summary["runs"][0]["machine"].is_null());
        assert_eq!(flow["sent"], 35, "34.1 datagrams of 1464 B of it");
    });
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
    let cases = [("nowhere.invalid", "nowhere.invalid"), (closed.as_str(), closed.as_str())];
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
    let right = bench.file("right.key", "0123456789abcdef0123456789abcdef\n");
    fs::set_permissions(right, fs::Permissions::from_mode(0o600)).unwrap();
    bench.file("wrong.key", "fedcba9876543210fedcba9876543210\n");
    bench.file("short.key", "abc\n");
    let mut served = Served::start(&bench, &["--key-file", "right.key"]);
    let to = &served.address.clone();
    bench.run(&["run", "call.toml", "--to", to, "--key-file", "wrong.key"]).fails(4, &["key"]);
    bench.run(&["run", "call.toml", "--to", to]).fails(4, &["key"]);
    bench.run(&["run", "call.toml", "--to", to, "--key-file", "short.key"]).fails(2, &["short.key"]);
    bench.run(&["run", "call.toml", "--to", to, "--key-file", "no.key"]).fails(2, &["no.key"]);
    bench.run(&["serve", "--key-file", "short.key"]).fails(2, &["short.key"]);
    assert!(bench.runs().is_empty());
    // The log has a line a session, also where the machine disturbs one.
    let once = ["--key-file", "right.key", "--run-again", "0s"];
    let seen = bench.run(&[&["run", "call.toml", "--to", to], &once[..]].concat());
    seen.succeeds();
    let again = format!("scenario.toml --to {to} --key-file right.key --run-again 0s\n");
    assert!(
        seen.out.contains(&again),
        "what is said to run it again runs it in the same place: {}",
        seen.out
    );
    let as_stream = ["--set", "flow.call.transport=quic-stream"];
    bench.run(&[&["run", "call.toml", "--to", to], &as_stream[..], &once].concat()).succeeds();
    let log = ended_log(&mut served);
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].ends_with("refused: the key is not this server's"), "{log}");
    assert!(lines[1].contains("refused: it asks for a key"), "{log}");
    assert!(lines[2].contains("received 50 messages, sent 50 messages; ended"), "{log}");
    assert!(lines[3].contains("B of streams, sent") && lines[3].contains("B of streams; ended"), "{log}");
}

#[test]
fn a_far_end_that_dies_leaves_whole_records_and_exit_code_4() {
    undisturbed(|| {
        let bench = Bench::new();
        let mut served = Served::start(&bench, &["--open"]);
        bench.file("call.toml", CALL.replace("\"1 s\"\ndrain", "\"30 s\"\ndrain"));
        let child = bench.start(&["run", "call.toml", "--to", &served.address, "--json=runs"]);
        wait_until("a run directory", || !bench.runs().is_empty());
        thread::sleep(Duration::from_millis(1500));
        served.child.kill().unwrap();
        let seen = Seen::of_child(child);
        seen.fails(4, &["talkpath run --resume"]);
        let summary = seen.summary();
        assert_eq!(summary["valid"], false);
        assert!(summary["warnings"].to_string().contains("missing or cut short"), "{}", summary["warnings"]);
        assert_kept(&bench, &summary);
    });
}

#[test]
fn an_interrupted_live_run_keeps_what_was_measured() {
    undisturbed(|| {
        let bench = Bench::new();
        let served = Served::start(&bench, &["--open"]);
        bench.file("call.toml", CALL.replace("\"1 s\"\ndrain", "\"30 s\"\ndrain"));
        let child = bench.start(&["run", "call.toml", "--to", &served.address, "--json=runs"]);
        wait_until("a run directory", || !bench.runs().is_empty());
        thread::sleep(Duration::from_millis(1500));
        // As `timeout` does, which signals its child and then the child's process group.
        interrupt(&child);
        thread::sleep(Duration::from_millis(20));
        interrupt(&child);
        let seen = Seen::of_child(child);
        seen.fails(130, &["interrupted"]);
        assert_kept(&bench, &seen.summary());
    });
}

/// A far host that does nothing for a while is not the network.
#[test]
fn a_far_host_that_stands_still_makes_the_run_not_valid_and_is_named() {
    undisturbed(|| {
        let bench = Bench::new();
        let served = Served::start(&bench, &["--open"]);
        let chat = CALL.split_once("[flow.call]").unwrap().1.replace("\"udp\"", "\"tcp-nodelay\"");
        let both = format!("{}\n[flow.chat]{chat}", CALL.replace("\"1 s\"\ndrain", "\"4 s\"\ndrain"));
        bench.file("both.toml", both);
        let child =
            bench.start(&["run", "both.toml", "--to", &served.address, "--json=runs", "--run-again", "0s"]);
        wait_until("a run directory", || !bench.runs().is_empty());
        thread::sleep(Duration::from_millis(1500));
        let pid = Pid::from_raw(i32::try_from(served.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        thread::sleep(Duration::from_millis(1200));
        kill_process(pid, Signal::CONT).unwrap();
        let seen = Seen::of_child(child);
        let summary = seen.succeeds().summary();
        assert_eq!(summary["valid"], false);
        assert!(summary["comparisons"].as_array().unwrap().is_empty());
        let warnings = summary["warnings"].to_string();
        for flow in ["call", "chat"] {
            let figures = &summary["runs"][0]["flows"][flow];
            let of = |key: &str| figures[key]["max"].as_f64().unwrap_or_else(|| panic!("{key} in {figures}"));
            let (held, round_trip) = (of("turn_round_ms"), of("round_trip_delay_ms"));
            assert!(held > 1_000.0, "{flow}: {held}");
            // Each datagram has its stamp. Segments that were merged have one, the last one's, so that a part
            // of the stop stays in a stream's round trips.
            let remains = if flow == "chat" { held } else { 100.0 };
            assert!(round_trip < remains, "{flow}: {round_trip} beside {held}");
            assert!(figures["turn_round_ms"]["p99"].as_f64().unwrap() > 5.0, "{figures}");
            assert!(warnings.contains(&format!("flow {flow}: the far host held its")), "{warnings}");
        }
    });
}

#[test]
fn transports_take_turns_in_rounds_whose_order_is_drawn_anew() {
    let bench = Bench::new();
    let served = Served::start(&bench, &["--open"]);
    let seen = bench.run(&[
        "compare",
        "--to",
        &served.address,
        "--transports",
        "udp,tcp",
        "--set",
        "duration=100 ms",
        "--set",
        "drain=100 ms",
        "--run-again",
        "0s",
        "-v",
    ]);
    // `cell 1 repetition 0 seed 1: done`, or `: disturbed ...`, in the order in which they ran.
    let lines = seen.succeeds().err.lines().filter(|line| line.starts_with("cell "));
    let done = lines.filter_map(|line| Some(line.split_once(": ")?.0));
    let ran: Vec<(u64, u64)> = done
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().rev().collect();
            (words[2].parse().unwrap(), words[4].parse().unwrap())
        })
        .collect();
    let rounds: Vec<&[(u64, u64)]> = ran.chunks(2).collect();
    assert_eq!(rounds.len(), 5, "{ran:?}");
    for (number, round) in (0..).zip(&rounds) {
        let mut both = round.to_vec();
        both.sort_unstable();
        assert_eq!(both, [(number, 0), (number, 1)], "each transport has its turn in each round: {ran:?}");
    }
    let firsts: Vec<u64> = rounds.iter().map(|round| round[0].1).collect();
    assert!(firsts.contains(&0) && firsts.contains(&1), "seed 1 draws both orders: {ran:?}");
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

#[test]
fn a_server_that_cannot_go_on_ends_with_3_so_that_it_is_started_again() {
    let bench = Bench::new();
    // The thread for signals has 2 GiB of a stack, and there is no room for a second one.
    let mut serve = bench.limited("-v 3000000", &["serve", "--bind", "127.0.0.1:0"]);
    serve.env("RUST_MIN_STACK", (2_u64 << 30).to_string());
    let seen = Seen::of(serve.output().unwrap());
    seen.fails(3, &["cannot start a thread", "ulimit -u"]);
    assert!(seen.out.starts_with("listening on "), "{}", seen.out);
}

#[test]
fn a_server_says_each_address_that_it_listens_on() {
    let bench = Bench::new();
    let mut served = Served::start(&bench, &["--bind", "127.0.0.2:0"]);
    let second = first_line(served.child.stdout.as_mut().unwrap());
    assert!(served.address.starts_with("127.0.0.1:"), "{}", served.address);
    assert!(second.starts_with("listening on 127.0.0.2:"), "{second}");
}

#[test]
fn beyond_loopback_a_server_wants_to_know_whom_to_serve() {
    let bench = Bench::new();
    for (bind, named) in
        [(None, "every address"), (Some("0.0.0.0:0"), "0.0.0.0:0"), (Some("127.0.0.1:0,[::]:0"), "[::]:0")]
    {
        let bind = bind.map_or(vec![], |bind| vec!["--bind", bind]);
        let arguments = [&["serve"][..], &bind].concat();
        bench
            .run(&arguments)
            .fails(2, &[named, "--key-file FILE", "/dev/urandom", "--open", "--bind 127.0.0.1"]);
    }
}

#[test]
fn the_bounds_of_a_server_are_set_on_the_command_line_and_its_log_has_a_line_a_session() {
    let bench = Bench::new();
    let down = CALL.replace("echo = true }", "echo = true }\ndirection = \"down\"");
    bench.file("call.toml", CALL);
    bench.file("down.toml", &down);
    bench.file("two.toml", format!("{CALL}\n{}", CALL.split_once("\n\n").unwrap().1.replace("call", "chat")));
    let bounds =
        ["--max-flows", "1", "--max-rate", "150 kbps", "--max-packets", "40", "--max-duration", "5 s"];
    let faster = r#"flow.call.workload={ kind = "cbr", rate = "80 kbps", size = "160 B", echo = true }"#;
    let mut served = Served::start(&bench, &[&["--open", "--max-sessions", "1"], &bounds[..]].concat());
    let to =
        |scenario| ["run", scenario, "--to", &served.address, "--set", "drain=200 ms", "--run-again", "0s"];
    for (arguments, says) in [
        ([&to("two.toml")[..], &[]].concat(), "2 flows; this server takes 1 to 1"),
        ([&to("call.toml")[..], &["--set", faster]].concat(), "160000 bps"),
        ([&to("down.toml")[..], &[]].concat(), "at most 40 a second"),
        ([&to("call.toml")[..], &["--set", "duration=5 s"]].concat(), "this server takes 5 s"),
    ] {
        bench.run(&arguments).fails(2, &[says]);
    }
    bench.run(&to("call.toml")).succeeds();
    let log = ended_log(&mut served);
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 5, "four were refused and one had its session: {log}");
    for line in &lines {
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(
            chrono::DateTime::parse_from_rfc3339(time).is_ok() && rest.starts_with("127.0.0.1:"),
            "{line}"
        );
    }
    assert!(lines[4].contains("session of 1 flow"), "{log}");
    assert!(lines[4].contains("received 50 messages, sent 50 messages; ended"), "{log}");
    bench.run(&["serve", "--open", "--max-sessions", "0"]).fails(2, &["from 1"]);
    bench.run(&["serve", "--open", "--max-rate", "20"]).fails(2, &["without a unit"]);
}

/// A control connection with a session of `flows` TCP flows upwards, running, and the opening lines of its
/// flows.
fn session_of_streams(address: &str, flows: usize) -> (BufReader<TcpStream>, Vec<String>) {
    let (nonce, filling) = ("0".repeat(32), ".".repeat(512));
    let hello = |version: &str| {
        let mut control = BufReader::new(TcpStream::connect(address).unwrap());
        let hello = format!(r#"{{"hello":{{"version":{version},"nonce":"{nonce}","filling":"{filling}"}}}}"#);
        let answer = ask(&mut control, &hello);
        (control, answer)
    };
    // A client of another version gets the server's version as the answer.
    let (_, refused) = hello("0");
    let why = refused["refused"]["why"].as_str().unwrap();
    let version = why.split(' ').find(|word| word.parse::<u32>().is_ok()).unwrap();
    let (mut control, welcome) = hello(version);
    assert!(welcome["welcome"].is_object(), "{welcome}");
    let tcp = r#"{"tcp":{"nodelay":false,"cc":"reno","mss":null,"send_buffer":null,"receive_buffer":null}}"#;
    let voice = r#"{"voice":{"ptime_ns":20000000,"size":160}}"#;
    let flow = format!(
        r#"{{"transport":{tcp},"workload":{voice},"echo_per_read":null,"is_up":true,"start_ns":0,"due":"start","file":null}}"#
    );
    let session = format!(
        r#"{{"session":{{"flows":[{}],"warm_up_ns":0,"duration_ns":60000000000,"drain_ns":0}}}}"#,
        vec![flow; flows].join(",")
    );
    let ready = ask(&mut control, &session);
    let admissions = ready["ready"]["flows"].as_array().unwrap_or_else(|| panic!("{ready}"));
    let line = |it: &serde_json::Value| format!("{{\"data\":{{\"secret\":{}}}}}\n", it["secret"]);
    let lines = admissions.iter().map(line).collect();
    assert!(ask(&mut control, r#"{"go":{"start_ns":0}}"#)["going"].is_object());
    (control, lines)
}

/// What the server answers to a line.
fn ask(control: &mut BufReader<TcpStream>, line: &str) -> serde_json::Value {
    control.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    control.read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap_or_else(|why| panic!("{why}: {answer:?}"))
}

/// Processor time that a process has used, in ticks of 10 ms (proc_pid_stat(5): utime and stime; USER_HZ is
/// 100).
fn ticks(child: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let after_name = stat.rsplit(") ").next().unwrap();
    after_name.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_server_without_descriptors_rests_serves_those_inside_and_says_so_once() {
    undisturbed(|| {
        let bench = Bench::new();
        bench.file("call.toml", CALL);
        let arguments = ["serve", "--open", "--bind", "127.0.0.1:0"];
        let (serve, limit) = bench.with_descriptors(21, "-n", &arguments);
        let mut served = Served::of(serve);
        let (mut control, lines) = session_of_streams(&served.address, 40);
        // The kernel's queue takes each of them, the server as many as it has descriptors for.
        let mut streams = Vec::new();
        for line in lines {
            let mut stream = TcpStream::connect(&served.address).unwrap();
            stream.write_all(line.as_bytes()).unwrap();
            streams.push(stream);
        }
        thread::sleep(Duration::from_millis(300));
        let (before, begun) = (ticks(&served.child), Instant::now());
        for _ in 0..10 {
            assert!(ask(&mut control, "\"ask\"")["progress"].is_object(), "those inside are served");
            thread::sleep(Duration::from_millis(100));
        }
        let share = (ticks(&served.child) - before) as f64 / 100.0 / begun.elapsed().as_secs_f64();
        assert!(share < 0.25, "{share:.2} of a processor to do nothing");
        drop((streams, control));
        // Whoever waited at the door gets in now.
        bench.run(&["run", "call.toml", "--to", &served.address]).succeeds();
        served.child.kill().unwrap();
        let mut said = String::new();
        served.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said.matches("no new connections for now").count(), 1, "{said}");
        assert!(said.contains(&format!("{limit} file descriptors")) && said.contains("ulimit -n"), "{said}");
    });
}

#[test]
fn silent_strangers_leave_descriptors_for_those_who_come_to_measure() {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    let serve = ["serve", "--open", "--bind", "127.0.0.1:0"];
    let served = Served::of(bench.with_descriptors(21, "-n", &serve).0);
    let silent: Vec<_> = (0..60).map(|_| TcpStream::connect(&served.address).unwrap()).collect();
    bench.run(&["run", "call.toml", "--to", &served.address]).succeeds();
    drop(silent);
}

#[test]
fn a_server_takes_all_the_descriptors_that_the_administrator_allows() {
    let bench = Bench::new();
    let (serve, limit) = bench.with_descriptors(21, "-S -n", &["serve", "--open", "--bind", "127.0.0.1:0"]);
    let served = Served::of(serve);
    let limits = fs::read_to_string(format!("/proc/{}/limits", served.child.id())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let columns: Vec<&str> = files.split_ascii_whitespace().collect();
    assert_eq!(columns[3], columns[4], "soft and hard: {files}");
    assert_ne!(columns[3], limit.to_string());
}

/// Whether a thread of a process is in SCHED_FIFO (proc_pid_stat(5): the policy is field 41, and FIFO is 1).
fn has_real_time_thread(child: &Child) -> bool {
    entries(Path::new(&format!("/proc/{}/task", child.id()))).iter().any(|task| {
        let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|after_name| after_name.split(' ').nth(38)) == Some("1")
    })
}

#[test]
fn a_server_runs_in_real_time_only_where_it_was_told_to() {
    let bench = Bench::new();
    let down = "workload = { kind = \"voice\", codec = \"g711\" }\ndirection = \"down\"";
    bench.file(
        "call.toml",
        CALL.replace("workload = { kind = \"voice\", codec = \"g711\", echo = true }", down),
    );
    for flags in [&["--open"][..], &["--open", "--real-time"]] {
        if flags.len() > 1 && !bench.run(&["doctor"]).out.contains("timed threads run before others") {
            bench
                .run(&["serve", "--open", "--bind", "127.0.0.1:0", "--real-time"])
                .fails(3, &["--real-time"]);
            eprintln!("SKIP: real-time scheduling is not allowed here");
            continue;
        }
        let served = Served::start(&bench, flags);
        let mut run = bench.start(&["run", "call.toml", "--to", &served.address, "--quiet"]);
        let mut was_real_time = false;
        while run.try_wait().unwrap().is_none() {
            was_real_time |= has_real_time_thread(&served.child);
            thread::sleep(Duration::from_millis(5));
        }
        Seen::of_child(run).succeeds();
        assert_eq!(was_real_time, flags.len() > 1, "{flags:?}");
    }
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

/// Ends the server as Ctrl-C does, and returns what it logged.
fn ended_log(served: &mut Served) -> String {
    interrupt(&served.child);
    served.child.wait().unwrap();
    let mut log = String::new();
    served.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    log
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}
