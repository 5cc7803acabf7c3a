//! `talkpath shell`: programs of the user on a path. The programs are talkpath's own, so that every machine
//! has them.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use serde_json::Value;
use talkpath_measure::pcapng;

use crate::harness::{Bench, Seen, first_line, read_json, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_talkpath");

/// `talkpath shell` with these arguments, whose sockets are in the bench's folder.
fn shell(bench: &Bench, arguments: &[&str]) -> Command {
    let mut command = bench.command(&[&["shell"], arguments].concat());
    fs::create_dir_all(bench.path("run")).unwrap();
    command.env("XDG_RUNTIME_DIR", bench.path("run"));
    command
}

/// Runs `talkpath shell` to its end; `None` where this machine does not allow it, which is printed.
fn run(bench: &Bench, arguments: &[&str]) -> Option<Seen> {
    let seen = Seen::of(shell(bench, arguments).output().unwrap());
    if seen.code == Some(125) && seen.err.contains("help:") {
        eprintln!("SKIP: no network namespaces here: {}", seen.err);
        return None;
    }
    Some(seen)
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts a far end, and waits until it waits for its path.
fn start_far(bench: &Bench, arguments: &[&str]) -> Child {
    let mut child = start(shell(bench, arguments));
    let line = first_line(child.stderr.as_mut().unwrap());
    assert!(line.starts_with("waiting for the path"), "{line}");
    child
}

/// The flows of the only run of the bench.
fn flows(bench: &Bench) -> Value {
    read_json(&bench.only_run().join("summary.json"))["runs"][0]["flows"].clone()
}

/// The sizes of the packets that one end of the only run saw.
fn sizes(bench: &Bench, end: &str) -> Vec<u32> {
    let (run, file) = (bench.only_run(), bench.path("capture.pcapng"));
    let paths = [run.to_string_lossy(), file.to_string_lossy()];
    bench.run(&["export", &paths[0], "--format", "pcapng", "--at", end, "-o", &paths[1]]).succeeds();
    let bytes = fs::read(&file).unwrap();
    pcapng::read_packets(&bytes).map(|packet| packet.unwrap().original_size).collect()
}

#[test]
fn a_line_by_its_tariff_is_the_path_of_a_shell_and_another_form_is_refused() {
    let bench = Bench::new();
    let refused = Seen::of(shell(&bench, &["--line", "50"]).output().unwrap());
    assert!(
        refused.err.contains("DOWNLOAD/UPLOAD[/DELAY]") && refused.err.contains("50/10/20ms"),
        "{}",
        refused.err
    );
    let refused =
        Seen::of(shell(&bench, &["--line", "50/10", "--path", "lte", "--", "true"]).output().unwrap());
    assert!(refused.err.contains("--line with --path: a line is a path of its own"), "{}", refused.err);
    let Some(seen) = run(&bench, &["--line", "50/10", "--", "true"]) else { return };
    assert_eq!(seen.code, Some(0), "{}", seen.err);
    let says = "--line 50/10: assumed a delay of 12ms each way and queues of 250ms up and 100ms down";
    assert!(seen.err.split_whitespace().collect::<Vec<_>>().join(" ").contains(says), "{}", seen.err);
    let summary = read_json(&bench.only_run().join("summary.json"));
    assert_eq!(summary["understood"]["assumed_queues"], serde_json::json!(["up", "down"]));
}

#[test]
fn the_exit_code_is_the_commands_and_ours_if_that_is_0() {
    let bench = Bench::new();
    let Some(seen) = run(&bench, &["--path", "lan", "--", "sh", "-c", "echo out; exit 7"]) else { return };
    assert_eq!((seen.code, seen.out.as_str()), (Some(7), "out\n"), "{}", seen.err);
    let code = |arguments: &[&str]| run(&bench, arguments).unwrap().code;
    assert_eq!(code(&["--path", "lan", "--", "sh", "-c", "kill -TERM $$"]), Some(143));
    assert_eq!(code(&["--path", "lan", "--", "no-such-program"]), Some(127));
    assert_eq!(code(&["--path", "lan", "--", "/"]), Some(126));
    let never = "link.up.utilisation >= 0.99";
    assert_eq!(code(&["--path", "lan", "--require", never, "--", "true"]), Some(5));
    assert_eq!(
        code(&["--path", "lan", "--require", never, "--", "false"]),
        Some(1),
        "the command's goes first"
    );
    Seen::of(shell(&bench, &["--path", "nowhere", "--", "true"]).output().unwrap())
        .fails(125, &["expected the name of a path"]);
    Seen::of(shell(&bench, &["--pair", "a", "--beside", "bulk", "--", "true"]).output().unwrap())
        .fails(125, &["belongs to the shell that makes the path"]);
}

/// A reflector behind the path answers each packet; the rows say what each way of the path did with each of
/// them.
#[test]
fn every_packet_between_the_two_shells_of_a_pair_is_a_row_and_takes_the_path() {
    let bench = Bench::new();
    let Some(_) = run(&bench, &["--path", "lan", "--", "true"]) else { return };
    fs::remove_dir_all(bench.path("talkpath-runs")).unwrap();
    let far = start_far(&bench, &["--pair", "stamp", "--", PROGRAM, "stamp", "--reflect", "--open"]);
    let pings = format!("'{PROGRAM}' stamp --to $TALKPATH_PEER --count 50 --interval 10ms --json");
    let path = ["--pair", "stamp", "--up", "10Mbps/10ms", "--down", "10Mbps/30ms", "--capture"];
    let seen = run(&bench, &[&path[..], &["--", "sh", "-c", &pings]].concat()).unwrap();
    seen.succeeds();
    let far = Seen::of_child(far);
    assert!(far.err.contains("the path is over"), "{}", far.err);
    let stamp: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!((&stamp["sent"], &stamp["received"]), (&50.into(), &50.into()));
    // Twice 40 ms of propagation less what both ways share: 10 ms there, 30 ms back.
    assert!(stamp["round_trip_delay_ms"]["min"].as_f64().unwrap() >= 40.0, "{stamp}");
    let flows = flows(&bench);
    for (name, least) in [("udp-862-1-up", 10.0), ("udp-862-1-down", 30.0)] {
        let flow = &flows[name];
        assert_eq!((&flow["sent"], &flow["received"]), (&50.into(), &50.into()), "{flows}");
        assert!(flow["one_way_delay_ms"]["min"].as_f64().unwrap() >= least, "{flow}");
    }
    assert_eq!((sizes(&bench, "near").len(), sizes(&bench, "far").len()), (100, 100));
    let run = bench.only_run();
    let replayed = bench.run(&["replay", &run.to_string_lossy()]);
    assert!(replayed.succeeds().out.contains("100 arrivals, the same 100 departures"), "{}", replayed.out);
}

/// The near end starts its command when the server at the far end waits for packets. Nobody waits for a far
/// end that comes later, or for a command that has ended.
#[test]
fn a_client_at_the_near_end_finds_a_server_that_takes_its_time_to_start() {
    let bench = Bench::new();
    let Some(_) = run(&bench, &["--path", "lan", "--", "true"]) else { return };
    let slow = format!("sleep 1; exec '{PROGRAM}' stamp --reflect --open");
    let far = start_far(&bench, &["--pair", "slow", "--", "sh", "-c", &slow]);
    let client =
        format!("'{PROGRAM}' stamp --to $TALKPATH_PEER --count 5 --interval 10ms --wait 500ms --json");
    let path = ["--pair", "slow", "--path", "lan"];
    let seen = run(&bench, &[&path[..], &["--", "sh", "-c", &client]].concat()).unwrap();
    let stamp: Value = serde_json::from_str(&seen.succeeds().out).unwrap();
    assert_eq!((&stamp["sent"], &stamp["received"]), (&5.into(), &5.into()), "{}", seen.err);
    assert!(!seen.err.contains("no socket"), "{}", seen.err);
    let _ = Seen::of_child(far);
    let begun = std::time::Instant::now();
    let far = start_far(&bench, &["--pair", "slow", "--", "true"]);
    run(&bench, &[&path[..], &["--", "true"]].concat()).unwrap().succeeds();
    Seen::of_child(far).succeeds();
    assert!(begun.elapsed() < Duration::from_secs(5), "a command that has ended is not waited for");
}

/// A kernel hands its device 64 KiB of a stream at once if the device can cut them. The queue of the path
/// must see the packets that a wire would carry, and no packet may be unaccounted for.
#[test]
fn a_transfer_over_tcp_crosses_the_path_in_packets_of_a_wire_and_each_is_forwarded_dropped_or_inside() {
    let bench = Bench::new();
    let Some(_) = run(&bench, &["--path", "lan", "--", "true"]) else { return };
    fs::remove_dir_all(bench.path("talkpath-runs")).unwrap();
    let file = bench.file("file", vec![7; 3_000_000]);
    let far = start_far(&bench, &["--pair", "tcp", "--", PROGRAM, "serve", "--open"]);
    let send = format!("'{PROGRAM}' send '{}' --to $TALKPATH_PEER --out sent -q", file.to_string_lossy());
    let path = ["--pair", "tcp", "--up", "30Mbps/5ms/32kB", "--down", "30Mbps/5ms", "--capture"];
    run(&bench, &[&path[..], &["--", "sh", "-c", &send]].concat()).unwrap().succeeds();
    let _ = Seen::of_child(far);
    let (near, far) = (sizes(&bench, "near"), sizes(&bench, "far"));
    let largest = near.iter().chain(&far).max().unwrap();
    assert!((1400..=1500).contains(largest), "{largest} B");
    assert!(near.len() > 2000, "{}", near.len());
    let flows = flows(&bench);
    let sum = |key: &str| -> u64 {
        let flows = flows.as_object().unwrap().values();
        flows.map(|flow| flow[key].as_u64().unwrap_or_default()).sum()
    };
    let (sent, received, lost) = (sum("sent"), sum("received"), sum("lost"));
    assert!(lost > 0, "a queue of 32 kB drops packets of a slow start");
    assert_eq!(sent, received + lost + sum("unfinished"), "{flows}");
    let arrivals = Command::new(PROGRAM).args(["replay"]).arg(bench.only_run()).output().unwrap();
    let counts = String::from_utf8(arrivals.stdout).unwrap();
    assert!(counts.contains(&format!("{sent} arrivals")), "{counts}; {sent}");
    assert!(counts.contains(&format!("{lost} drops")), "{counts}; {lost}");
    // Both captures are whole: what is in one and not in the other was dropped, or is still inside.
    assert_eq!(near.len() + far.len(), usize::try_from(sent + received).unwrap());
    let upload = flows.as_object().unwrap().values().max_by_key(|flow| flow["sent"].as_u64()).unwrap();
    assert!(upload["retransmissions"].as_u64().unwrap() > 0, "{upload}");
}

#[test]
fn the_flows_of_a_program_are_required_by_name_and_reported_while_they_run() {
    let bench = Bench::new();
    let Some(_) = run(&bench, &["--path", "lan", "--", "true"]) else { return };
    fs::remove_dir_all(bench.path("talkpath-runs")).unwrap();
    bench.file("file", vec![7; 1_500_000]);
    let serve = ["--pair", "json", "--", PROGRAM, "serve", "--open", "--bind", "0.0.0.0:7001"];
    let far = start_far(&bench, &serve);
    let send = format!("'{PROGRAM}' send file --to $TALKPATH_PEER:7001 --out sent -q");
    let path = ["--pair", "json", "--up", "8Mbps/20ms", "--down", "8Mbps/20ms", "--json-stream", "lines"];
    let demands = ["tcp-7001-up.one_way_delay_ms.p50 >= 20", "tcp-7001.loss_rate <= 0.7"];
    let demands: Vec<&str> = demands.into_iter().flat_map(|demand| ["--require", demand]).collect();
    let seen = run(&bench, &[&path[..], &demands, &["--", "sh", "-c", &send]].concat()).unwrap();
    let _ = Seen::of_child(far);
    assert_eq!(seen.succeeds().err.matches("\nholds  ").count(), 2, "{}", seen.err);
    let words = seen.err.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, round_trip) = words.split_once("its round trips took ").unwrap_or_else(|| panic!("{words}"));
    let median: f64 = round_trip.split(' ').next().unwrap().parse().unwrap();
    assert!((40.0..2000.0).contains(&median), "{median} ms over 2 x 20 ms");
    let lines = fs::read_to_string(bench.path("lines")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let flows = flows(&bench);
    for key in ["sent", "received", "lost"] {
        let reported: u64 = lines.iter().map(|line| line[key].as_u64().unwrap()).sum();
        let recorded: u64 = flows.as_object().unwrap().values().map(|flow| flow[key].as_u64().unwrap()).sum();
        assert_eq!(reported, recorded, "{key}");
    }
    let seconds: BTreeSet<u64> = lines.iter().map(|line| line["from_s"].as_f64().unwrap() as u64).collect();
    assert!(seconds.len() >= 2, "{seconds:?}");
    let absent = ["--path", "lan", "--require", "tcp-7002.loss_rate <= 0", "--", "true"];
    assert_eq!(run(&bench, &absent).unwrap().code, Some(5), "there was no such flow");
}

/// A sender of G.711 in packets of 20 ms, whose packets leave up to 10 ms after their times.
const SPEAKER: &str = r#"
import os, socket, struct, time
speaker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begun = time.monotonic()
for number in range(150):
    time.sleep(max(0, begun + 0.02 * number + 0.005 * (number % 3) - time.monotonic()))
    header = struct.pack(">BBHII", 0x80, 8, (number + 65500) % 65536, (160 * number + 2**32 - 5000) % 2**32, 7)
    speaker.sendto(header + bytes(160), (os.environ["TALKPATH_PEER"], 4000))
time.sleep(0.3)
"#;

#[test]
fn a_stream_of_rtp_has_a_row_with_its_loss_its_jitter_and_a_score() {
    let bench = Bench::new();
    let Some(_) = run(&bench, &["--path", "lan", "--", "true"]) else { return };
    fs::remove_dir_all(bench.path("talkpath-runs")).unwrap();
    if Command::new("python3").arg("--version").output().is_err() {
        return eprintln!("SKIP: no python3 here");
    }
    bench.file("speaker.py", SPEAKER);
    let path = ["--isolated", "--up", "1Mbps/30ms", "--down", "1Mbps/30ms", "--loss", "4%"];
    let demand = ["--require", "rtp-8-up.call.mos >= 1", "--", "python3", "speaker.py"];
    run(&bench, &[&path[..], &["--capture"], &demand].concat()).unwrap().succeeds();
    let flows = flows(&bench);
    let stream = &flows["rtp-8-1-up"];
    assert_eq!((&stream["sent"], &stream["transport"]), (&150.into(), &"rtp".into()), "{flows}");
    let lost = flows["udp-4000-1-up"]["lost"].as_u64().unwrap();
    assert!(lost > 0 && stream["lost"] == lost, "{stream}");
    let jitter = stream["rtp_jitter_ms"].as_f64();
    assert!(jitter.is_some_and(|jitter| (2.0..12.0).contains(&jitter)), "{stream}");
    let score = stream["call"]["mos"].as_f64().unwrap();
    assert!((1.0..4.4).contains(&score), "{stream}");

    // The capture at the far end gives the stream's loss and jitter back.
    let recorded = bench.only_run().to_string_lossy().into_owned();
    bench.run(&["export", &recorded, "--format", "pcapng", "--at", "far", "-o", "far.pcapng"]).succeeds();
    let rated = bench.run(&["rate", "far.pcapng", "--one-way", "30ms", "--json=runs"]).succeeds().summary();
    let captured = &rated["runs"][0]["flows"]["call-1"];
    assert_eq!(captured["received"], stream["received"], "{captured} {stream}");
    // A capture does not show packets that were lost before the first or behind the last one.
    assert!(captured["lost"].as_u64().unwrap() <= lost, "{captured} {stream}");
    let captured_jitter = captured["rtp_jitter_ms"].as_f64().unwrap();
    assert!((captured_jitter - jitter.unwrap()).abs() < 0.1, "{captured_jitter} {stream}");
}

#[test]
fn two_shells_nest_and_each_has_a_network_of_its_own() {
    let bench = Bench::new();
    let inner = ["shell", "-q", "--path", "lan", "--", "sh", "-c", "exit 3"];
    let Some(seen) = run(&bench, &[&["--path", "lan", "--", PROGRAM][..], &inner].concat()) else { return };
    assert_eq!(seen.code, Some(3), "{}", seen.err);
}

#[test]
fn twenty_killed_shells_leave_no_process_and_no_device() {
    let bench = Bench::new();
    let Some(_) = run(&bench, &["--path", "lan", "--", "true"]) else { return };
    let devices = || fs::read_dir("/sys/class/net").unwrap().count();
    let before = devices();
    // Its arguments are found among all processes.
    let seconds = format!("8{}", std::process::id());
    let orphans = format!("(setsid sleep {seconds} &); sleep {seconds} & sleep {seconds}");
    for kill in 0..20_u64 {
        let pair = format!("kill-{kill}");
        let far = start(shell(&bench, &["--pair", &pair, "--", "sleep", &seconds]));
        let mut near = start(shell(&bench, &["--pair", &pair, "--path", "lan", "--", "sh", "-c", &orphans]));
        thread::sleep(Duration::from_millis(20 * kill));
        near.kill().unwrap();
        near.wait().unwrap();
        // A far end that has not met the path goes on waiting for it.
        let _ = Command::new("kill").arg(far.id().to_string()).status();
        let _ = far.wait_with_output();
    }
    wait_until("every process to end", || processes(&seconds).is_empty());
    wait_until("every device to go", || devices() <= before);
}

/// A terminal sends SIGINT to the whole group of processes in its foreground. `script` is that terminal.
#[test]
fn ctrl_c_reaches_the_command_and_the_record_is_written_and_nothing_is_left() {
    let bench = Bench::new();
    let Some(_) = run(&bench, &["--path", "lan", "--", "true"]) else { return };
    fs::remove_dir_all(bench.path("talkpath-runs")).unwrap();
    // A shell without job control starts a background process with SIGINT ignored, so Ctrl-C leaves it alive.
    let seconds = format!("7{}", std::process::id());
    let work = format!("trap 'exit 42' INT\nsleep {seconds} &\n: >ready\nwhile :; do sleep 0.05; done\n");
    bench.file("work.sh", work);
    let line = format!("exec '{PROGRAM}' shell --path lan -- sh work.sh");
    let mut terminal = bench.prepared(Command::new("script"), &["-qec", &line, "/dev/null"]);
    terminal.env("XDG_RUNTIME_DIR", bench.path("run")).env("SHELL", "/bin/sh");
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut terminal) = terminal.spawn() else {
        return eprintln!("SKIP: no script (util-linux) here, which makes a terminal");
    };
    wait_until("the command to run", || bench.path("ready").exists());
    wait_until("the process in the background", || processes(&seconds).len() == 1);
    let mut keys = terminal.stdin.take().unwrap();
    keys.write_all(b"\x03").unwrap();
    let seen = Seen::of_child(terminal);
    assert_eq!(seen.code, Some(42), "{}{}", seen.out, seen.err);
    assert!(seen.out.contains("Report: "), "{}", seen.out);
    assert!(bench.only_run().join("summary.json").exists());
    assert_eq!(processes(&seconds), [""; 0], "the process in the background");
}

/// The processes with `word` as an argument.
fn processes(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let has_word = |pid: &String| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0).any(|argument| argument == word.as_bytes())
    };
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(has_word).collect()
}

/// The command as user `nobody`; `None` where this test cannot become another user.
fn as_nobody(bench: &Bench, arguments: &[&str]) -> Option<Command> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIP: only root can become another user");
        return None;
    }
    fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    // The program may lie where only root can go.
    let program = bench.path("talkpath");
    if !program.exists() {
        fs::copy(PROGRAM, &program).unwrap();
        fs::create_dir(bench.path("nobody")).unwrap();
        fs::set_permissions(bench.path("nobody"), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut command = Command::new("setpriv");
    let drop = ["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"];
    command.args(drop).arg(program).arg("shell").args(arguments).current_dir(bench.path("nobody"));
    Some(command)
}

#[test]
fn without_root_the_command_keeps_its_user_and_has_no_capability() {
    let bench = Bench::new();
    let script = "id -u; grep -E 'Cap(Prm|Eff|Inh|Amb)' /proc/self/status";
    let Some(mut command) = as_nobody(&bench, &["-q", "--path", "lan", "--", "sh", "-c", script]) else {
        return;
    };
    command.env("XDG_RUNTIME_DIR", bench.path("nobody"));
    let Ok(output) = command.output() else {
        return eprintln!("SKIP: no setpriv here to give up root with");
    };
    let seen = Seen::of(output);
    if seen.code == Some(125) {
        return eprintln!("SKIP: user namespaces are not allowed here: {}", seen.err);
    }
    let lines: Vec<&str> = seen.succeeds().out.lines().collect();
    assert_eq!(lines[0], "65534");
    assert!(lines[1..].iter().all(|line| line.ends_with("\t0000000000000000")), "{lines:?}");
    assert_eq!(lines.len(), 5);
}

#[test]
fn addresses_are_in_the_record_only_with_names() {
    let record = |names: &[&str]| {
        let bench = Bench::new();
        let ping =
            format!("'{PROGRAM}' stamp --to $TALKPATH_PEER --count 3 --interval 10ms --wait 10ms; true");
        let path = ["--path", "lan", "--isolated"];
        run(&bench, &[&path[..], names, &["--", "sh", "-c", &ping]].concat())?.succeeds();
        let run = bench.only_run();
        Some(
            ["summary.json", "scenario.toml", "report.html", "log.txt"]
                .map(|file| fs::read_to_string(run.join(file)).unwrap()),
        )
    };
    let Some(without) = record(&[]) else { return };
    assert!(
        without.iter().all(|text| !text.contains("192.0.2.") && !text.contains("TALKPATH_PEER")),
        "{without:?}"
    );
    let [summary, scenario, ..] = record(&["--names"]).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let ip = &summary["runs"][0]["flows"]["udp-862-1-up"]["ip"];
    assert_eq!(ip["far"], "192.0.2.2:862", "{ip}");
    assert!(ip["near"].as_str().unwrap().starts_with("192.0.2.1:"), "{ip}");
    assert!(scenario.contains("TALKPATH_PEER"), "{scenario}");
}

/// The disk is a small tmpfs in a mount namespace of its own.
#[test]
fn a_full_disk_ends_the_record_and_not_the_command() {
    let bench = Bench::new();
    fs::create_dir(bench.path("full")).unwrap();
    let arguments = "shell --path lan --isolated --out full/runs --json-stream full/stream -- sh -c \
         'head -c 1M /dev/zero > full/fill; sleep 1.5; echo it ran on; exit 7'";
    let script = format!("mount -t tmpfs -o size=300k none full && exec '{PROGRAM}' {arguments}");
    let mut command = bench.prepared(Command::new("unshare"), &["--mount", "sh", "-c", &script]);
    let seen = Seen::of(command.env("XDG_RUNTIME_DIR", bench.path("run")).output().unwrap());
    if !seen.out.contains("it ran on")
        && (seen.err.contains("unshare") || seen.err.contains("mount") || seen.code == Some(125))
    {
        eprintln!("SKIP: no mounts or namespaces here: {}", seen.err);
        return;
    }
    assert_eq!((seen.code, seen.out.as_str()), (Some(7), "it ran on\n"), "{}", seen.err);
    assert!(
        seen.err.contains("cannot write full/runs/") && seen.err.contains("No space left"),
        "{}",
        seen.err
    );
}

/// The upload goes on until the program ends, so its end is no break of the path, and its window is averaged
/// over this time.
#[test]
fn a_flow_beside_the_command_ends_with_it_and_the_page_says_how_the_path_is_replayed() {
    let bench = Bench::new();
    let path = ["--up", "1Mbps/20ms", "--down", "8Mbps/20ms", "--isolated", "--beside", "bulk"];
    let Some(seen) = run(&bench, &[&path[..], &["--", "sleep", "3"]].concat()) else { return };
    assert!(!seen.succeeds().err.contains("nothing came any more"), "{}", seen.err);
    let upload = &flows(&bench)["upload"];
    assert_eq!(upload["breaks"], Value::Array(Vec::new()), "{upload}");
    let page = fs::read_to_string(bench.only_run().join("report.html")).unwrap();
    assert!(page.contains("talkpath replay ") && !page.contains("scenario.toml --arena emu"));
}

/// The path of a scenario with `[[change]]` changes under the command, and its flows run beside.
#[test]
fn a_path_that_changes_does_so_under_the_command() {
    let bench = Bench::new();
    bench.file(
        "a.toml",
        "duration = \"9 s\"\npath = { up = { rate = \"10 Mbps\", delay = \"5 ms\" }, down = { rate = \"10 Mbps\", delay = \"5 ms\" } }\n\
         [[change]]\nat = \"1 s\"\nlink = \"up\"\ndelay = \"65 ms\"\n",
    );
    let send = format!(
        "for n in 1 2; do '{PROGRAM}' stamp --to $TALKPATH_PEER --count 10 --interval 10ms --wait 0ms; sleep 1.2; done; true"
    );
    let Some(seen) = run(&bench, &["--background", "a.toml", "--isolated", "--", "sh", "-c", &send]) else {
        return;
    };
    seen.succeeds();
    let flows = flows(&bench);
    // The far host answers by ICMP, which is a conversation, too.
    let is_stamp = |name: &str| name.starts_with("udp-862-") && name.ends_with("-up");
    let stamps = flows.as_object().unwrap().iter().filter(|(name, _)| is_stamp(name));
    let least: Vec<f64> = stamps.map(|(_, flow)| flow["one_way_delay_ms"]["min"].as_f64().unwrap()).collect();
    let [before, after] = least[..] else { panic!("{flows}") };
    assert!((5.0..40.0).contains(&before) && (65.0..100.0).contains(&after), "{flows}");
}
