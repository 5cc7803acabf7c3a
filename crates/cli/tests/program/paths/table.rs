//! The self-check: a call over each transport at the same time, over one hostile path after the other. Each
//! row of the table says how many of its frames came back, what curl made of a file beside them, and the
//! sentence that the run printed.

use std::fmt::Write as _;
use std::fs;
use std::ops::RangeInclusive;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::lab::{FILE_SIZE, Host, Lab, Marked, NAME, SERVER, SERVER_BY_NAT64, SERVER_V6, TooBig};
use crate::harness::{Seen, calls};
use crate::sockets::{REFUSALS, without_options, without_trains};

/// The flows, in the order of the table's columns.
const FLOWS: [(&str, &str); 5] = [
    ("udp", "{ kind = \"udp\", ecn = true }\ndscp = \"EF\""),
    ("tcp", "\"tcp-nodelay\""),
    ("quic", "\"quic\""),
    ("stream", "\"quic-stream\""),
    ("dccp", "\"dccp-ccid2\""),
];
/// How long the calls last, and how many frames each of them has. It leaves two seconds after what happens
/// at the second one.
const SECONDS: u64 = 5;
const DUE: u64 = 50 * SECONDS;

/// How many rows are measured at a time. Each waits most of its time; more would disturb each other.
const AT_A_TIME: usize = 3;

/// All frames but those of an opening, which meets the loss of a first packet at most once.
const WHOLE: RangeInclusive<u64> = DUE - 5..=DUE;
/// No frame.
const NONE: RangeInclusive<u64> = 0..=0;
/// What a break of two or three seconds leaves.
const BROKEN: RangeInclusive<u64> = 20..=DUE - 40;
/// Whatever comes.
const ANY: RangeInclusive<u64> = 0..=DUE;

/// A path of the table.
struct Row {
    path: &'static str,
    /// What the path is like from the beginning.
    before: fn(&Lab),
    /// What happens to it two seconds after the client began.
    meanwhile: fn(&Lab),
    /// The frames of each flow that must come back, in the order of [`FLOWS`].
    frames: [RangeInclusive<u64>; 5],
    /// What the run must say.
    says: &'static [&'static str],
    /// A program that the row needs.
    needs: Option<&'static str>,
    /// A file that the client must leave behind.
    leaves: Option<&'static str>,
    /// How the client is started.
    client: fn(&Lab, &[&str]) -> Command,
    /// The host from which curl fetches a file beside the calls.
    curl_from: &'static str,
    /// The seconds after which something happens, and how long the calls last.
    times: Times,
    code: i32,
}

/// When something happens to a path, and how long the calls over it last, in seconds.
#[derive(Clone, Copy)]
struct Times {
    meanwhile: u64,
    calls: u64,
}

/// A path that nothing happens to.
const KIND: Row = Row {
    path: "nothing done",
    before: |_| {},
    meanwhile: |_| {},
    frames: [WHOLE, WHOLE, WHOLE, WHOLE, WHOLE],
    says: &[],
    needs: None,
    leaves: None,
    client: |lab, words| lab.client_command(SERVER, words),
    curl_from: SERVER,
    times: Times { meanwhile: 2, calls: SECONDS },
    code: 0,
};

/// Messages that leave as trains, in the third second of the calls.
const BURST: &str = r#"
[flow.burst]
transport = "udp"
start = "3 s"
workload = { kind = "burst", count = 500, size = "500 B" }
"#;

/// Messages that fit into packets of Ethernet's MTU, and not into those of a tunnel.
const LARGE: &str = r#"
[flow.large]
transport = "quic"
workload = { kind = "cbr", rate = "416 kbps", size = "1300 B" }
"#;

/// Adds a flow to the scenario of the calls.
fn add_flow(lab: &Lab, flow: &str) {
    let calls = fs::read_to_string(lab.bench.path("calls.toml")).unwrap();
    lab.bench.file("calls.toml", calls + flow);
}

/// UDP does not get through, but TCP does.
const NO_UDP: [RangeInclusive<u64>; 5] = [NONE, WHOLE, NONE, NONE, NONE];

fn rows() -> Vec<Row> {
    vec![
        KIND,
        Row {
            path: "MTU 1420, \"too big\" reported",
            before: |lab| lab.tunnel(1420, TooBig::Reported),
            says: &["on the way there packets of 1420 B pass, and of 1440 B do not,"],
            ..KIND
        },
        Row {
            path: "MTU 1492, silent",
            before: |lab| lab.tunnel(1492, TooBig::Silent),
            says: &["packets of 1492 B pass, and of 1500 B do not"],
            ..KIND
        },
        Row {
            path: "MTU 1420, silent",
            before: |lab| lab.tunnel(1420, TooBig::Silent),
            says: &["packets of 1420 B pass, and of 1440 B do not (and no router says so)"],
            ..KIND
        },
        Row {
            path: "MTU 1280, silent",
            before: |lab| lab.tunnel(1280, TooBig::Silent),
            says: &["packets of 1280 B pass, and of 1340 B do not (and no router says so)"],
            ..KIND
        },
        Row {
            path: "MTU 1420 over IPv6, \"too big\" reported",
            before: |lab| lab.tunnel(1420, TooBig::Reported),
            says: &["path over IPv6", "on the way there packets of 1420 B pass, and of 1440 B do not,"],
            client: |lab, words| lab.client_command(SERVER_V6, words),
            curl_from: SERVER_V6,
            ..KIND
        },
        Row {
            path: "MTU 1280 over IPv6, silent",
            before: |lab| lab.tunnel(1280, TooBig::Silent),
            says: &["packets of 1280 B pass, and of 1340 B do not (and no router says so)"],
            client: |lab, words| lab.client_command(SERVER_V6, words),
            curl_from: SERVER_V6,
            ..KIND
        },
        Row {
            path: "MTU falls from 1500 to 1280 in the run, silent",
            meanwhile: |lab| lab.tunnel(1280, TooBig::Silent),
            client: |lab, words| {
                add_flow(lab, LARGE);
                lab.client_command(SERVER, words)
            },
            // The calls' frames are small, and the large messages find no room.
            says: &[
                "flow large: during the run packets of more than 1200 B from this host stopped getting through",
                "flow large: this host refused",
            ],
            ..KIND
        },
        Row {
            path: "every packet marked CE",
            before: |lab| lab.mark(Marked::All),
            says: &["flow udp: on the way out all 250 datagrams came marked CE", "every packet is marked CE"],
            ..KIND
        },
        Row {
            path: "half of the packets marked CE",
            before: |lab| lab.mark(Marked::Half),
            frames: [WHOLE, WHOLE, ANY, ANY, WHOLE],
            ..KIND
        },
        Row {
            path: "ECN field and DSCP cleared",
            before: |lab| {
                lab.rule("ip ecn set not-ect");
                lab.rule("ip dscp set cs0");
            },
            says: &["the path cleared the ECN field", "with the DSCP CS0, not EF: the path changed it"],
            ..KIND
        },
        Row {
            path: "UDP off",
            before: Lab::block_udp,
            frames: NO_UDP,
            says: &["nothing of it arrived at the server"],
            ..KIND
        },
        Row {
            path: "UDP off on the way back",
            before: |lab| lab.rule("iifname \"toserver\" meta l4proto udp drop"),
            frames: NO_UDP,
            says: &["it arrives at the server, and the answers do not come back"],
            ..KIND
        },
        Row {
            path: "UDP off after some seconds",
            meanwhile: Lab::block_udp,
            frames: [BROKEN, WHOLE, BROKEN, BROKEN, BROKEN],
            says: &["nothing came over UDP port 7160, while the control connection over TCP went on"],
            ..KIND
        },
        Row {
            path: "a translator forgets, and gives new ports",
            before: Lab::translate,
            meanwhile: Lab::forget_mappings,
            frames: [20..=DUE - 1, WHOLE, WHOLE, WHOLE, 20..=DUE],
            says: &[
                "10.66.1.2 here is 10.66.2.1 there, by a translator",
                "flow udp: its address or port changed once",
                "flow quic: its address or port changed once during the run; the QUIC connection followed",
            ],
            ..KIND
        },
        Row {
            path: "two lines, UDP by the other one",
            before: Lab::two_lines,
            frames: NO_UDP,
            says: &["your UDP comes from 10.66.2.9, your TCP from 10.66.2.1: a router with two lines"],
            ..KIND
        },
        Row {
            path: "a name whose IPv6 is broken",
            before: |lab| lab.rule("meta nfproto ipv6 drop"),
            says: &["the server's first address, fd66:3::2, does not serve over IPv6"],
            client: Lab::client_to_name,
            curl_from: NAME,
            ..KIND
        },
        Row {
            path: "a name, and IPv6 without UDP",
            before: |lab| lab.rule("meta nfproto ipv6 meta l4proto udp drop"),
            frames: NO_UDP,
            says: &[
                "over IPv6 nothing of it arrived at the server, over IPv4 it does",
                "-4 measures over IPv4",
            ],
            client: Lab::client_to_name,
            curl_from: NAME,
            ..KIND
        },
        Row {
            path: "IPv6 alone, to an IPv4 server (NAT64)",
            before: Lab::translate_to_ipv4,
            // The translator copies the byte with DSCP and ECN field (RFC 7915 §5.1).
            says: &["path over IPv6: fd66:1::2 here is 10.66.2.1 there, by a translator"],
            needs: Some("tayga"),
            client: |lab, words| lab.client_command(SERVER_BY_NAT64, words),
            curl_from: SERVER_BY_NAT64,
            ..KIND
        },
        Row {
            path: "a proxy that splits TCP, 20 ms each way",
            before: Lab::split_tcp,
            says: &["a device on the path opens TCP connections in place of the server"],
            needs: Some("python3"),
            ..KIND
        },
        Row {
            path: "the first packets of connections lost",
            before: |lab| {
                lab.lose_first_syns(1);
                lab.lose_first_large_datagrams(2);
            },
            frames: [WHOLE, 150..=DUE - 40, 150..=DUE - 40, 150..=DUE - 40, WHOLE],
            ..KIND
        },
        Row {
            path: "the client's device down for 2 s",
            meanwhile: |lab| {
                lab.ip(Host::Client, "link set toserver down");
                thread::sleep(Duration::from_secs(2));
                lab.ip(Host::Client, "link set toserver up");
                lab.ip(Host::Client, "route replace default via 10.66.1.1");
            },
            frames: [BROKEN, 200..=DUE, BROKEN, 200..=DUE, ANY],
            says: &["flow udp: this host had no network for"],
            ..KIND
        },
        Row {
            path: "the client gets another address",
            meanwhile: |lab| {
                lab.ip(Host::Client, "addr del 10.66.1.2/24 dev toserver");
                lab.ip(Host::Client, "addr add 10.66.1.77/24 dev toserver");
                lab.ip(Host::Client, "route replace default via 10.66.1.1");
            },
            // From a second after the change on, the run follows. Over TCP nothing comes any more.
            frames: [BROKEN, 60..=DUE - 60, BROKEN, 60..=DUE, ANY],
            says: &[
                "this host's address changed from 10.66.1.2 to 10.66.1.77",
                "the run continued from there",
            ],
            ..KIND
        },
        Row {
            path: "the far host stands still for 4 s",
            meanwhile: |lab| {
                lab.signal_server("STOP");
                thread::sleep(Duration::from_secs(4));
                lab.signal_server("CONT");
            },
            frames: [ANY, ANY, ANY, ANY, ANY],
            says: &["the far host stood still, as its own senders show"],
            ..KIND
        },
        Row {
            path: "no /proc at the client",
            client: |lab, words| {
                let words = [words, &["--to", SERVER]].concat();
                lab.shell_at_client("mount -t tmpfs none /proc && exec \"$0\" \"$@\"", &words)
            },
            ..KIND
        },
        Row {
            path: "socket options refused at the client",
            client: |lab, words| {
                let mut command = lab.client_command(SERVER, words);
                without_options(&lab.bench, &mut command);
                command
            },
            says: &["this host's kernel does not take the socket option IP_RECVTOS"],
            needs: Some("cc"),
            ..KIND
        },
        Row {
            path: "trains of messages (UDP_SEGMENT) refused at the client",
            client: |lab, words| {
                add_flow(lab, BURST);
                let mut command = lab.client_command(SERVER, words);
                without_trains(&lab.bench, &mut command);
                command
            },
            leaves: Some(REFUSALS),
            needs: Some("cc"),
            ..KIND
        },
        Row {
            path: "the folder of runs is read-only",
            client: |lab, words| {
                let words = [words, &["--to", SERVER, "--out", "sealed/runs"]].concat();
                let script = "mkdir -p sealed && mount -t tmpfs -o ro none sealed && exec \"$0\" \"$@\"";
                lab.shell_at_client(script, &words)
            },
            frames: [ANY, ANY, ANY, ANY, ANY],
            says: &["Read-only file system", "`--out DIR` names another folder"],
            code: 1,
            ..KIND
        },
    ]
}

/// Paths on which something happens late or for long.
fn long_rows() -> Vec<Row> {
    vec![
        Row {
            path: "UDP off after 10 s",
            meanwhile: Lab::block_udp,
            frames: [300..=600, 900 - 5..=900, 300..=600, 300..=600, 300..=600],
            says: &["nothing came over UDP port 7160, while the control connection over TCP went on"],
            times: Times { meanwhile: 10, calls: 18 },
            ..KIND
        },
        Row {
            path: "the client's device down for 15 s",
            meanwhile: |lab| {
                lab.ip(Host::Client, "link set toserver down");
                thread::sleep(Duration::from_secs(15));
                lab.ip(Host::Client, "link set toserver up");
                lab.ip(Host::Client, "route replace default via 10.66.1.1");
            },
            // Of 2,000 frames those of 15 s never leave over UDP, and at most those of two seconds more.
            frames: [1150..=1260, 1900..=2000, 300..=2000, 1900..=2000, 300..=2000],
            says: &["flow udp: this host had no network for"],
            times: Times { meanwhile: 2, calls: 40 },
            ..KIND
        },
    ]
}

/// Measures one row. Returns its line of the table, and what is not as it must be.
fn measure(row: &Row) -> Option<(String, Vec<String>)> {
    if let Some(program) = row.needs.filter(|program| !is_installed(program)) {
        return Some((
            format!("| {} | – | – | – | – | – | – | not measured: no {program} here |", row.path),
            Vec::new(),
        ));
    }
    let lab = Lab::new()?;
    let has_peer = is_installed("curl") && is_installed("python3");
    if has_peer {
        lab.serve_file();
    }
    (row.before)(&lab);
    let flows: Vec<(&str, &str)> = FLOWS.to_vec();
    let Times { meanwhile, calls: seconds } = row.times;
    let all = 50 * seconds;
    lab.bench.file("calls.toml", calls(&format!("{seconds} s"), &flows));
    let words = ["run", "calls.toml", "--json=runs", "--run-again", "0s"];
    let mut run = (row.client)(&lab, &words);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The file takes some seconds, so that what happens is in them.
    thread::sleep(Duration::from_secs(meanwhile - 1));
    let mut curl = lab.curl(row.curl_from);
    let curl = has_peer.then(|| curl.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    thread::sleep(Duration::from_secs(1));
    (row.meanwhile)(&lab);
    let seen = Seen::of_child(run);
    let peer = curl.map_or_else(|| "not here".to_owned(), of_curl);
    let summary: Value = serde_json::from_str(&seen.out).unwrap_or_default();
    let mut wrong = Vec::new();
    let mut line = format!("| {} |", row.path);
    for ((name, _), frames) in FLOWS.iter().zip(&row.frames) {
        let ledger = &summary["runs"][0]["flows"][name]["ledger"];
        match (ledger["delivered"].as_u64(), ledger["due"].as_u64()) {
            (Some(delivered), Some(due)) => {
                let _ = write!(line, " {delivered} |");
                if due != all || !frames.contains(&delivered) {
                    wrong.push(format!("{name}: {delivered} of {due}, expected {frames:?} of {all}"));
                }
            }
            _ if row.code == 0 => wrong.push(format!("{name}: no ledger")),
            _ => line += " – |",
        }
    }
    // Notes are in the summary alone.
    let said = format!("{}{}", seen.err, seen.out);
    let unsaid = row.says.iter().filter(|says| !said.contains(**says));
    wrong.extend(unsaid.map(|says| format!("no `{says}`")));
    let left = row.leaves.filter(|file| !lab.bench.path(file).exists());
    wrong.extend(left.map(|file| format!("no file `{file}`")));
    if seen.code != Some(row.code) {
        wrong.push(format!("exit code {:?}", seen.code));
    }
    if !wrong.is_empty() {
        wrong.push(format!("standard error: {}; warnings: {}", seen.err, summary["warnings"]));
    }
    let _ = write!(line, " {peer} | {} |", row.says.join("; "));
    Some((line, wrong.into_iter().map(|what| format!("{}: {what}", row.path)).collect()))
}

/// Says what curl made of the file. If it does not end within 20 s, it is ended.
fn of_curl(mut curl: Child) -> String {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) && curl.try_wait().is_ok_and(|status| status.is_none()) {
        thread::sleep(Duration::from_millis(100));
    }
    let _ = curl.kill();
    let seen = Seen::of_child(curl);
    let mut numbers = seen.out.split(' ').map(|number| number.parse::<f64>().unwrap_or(0.0));
    let (size, seconds) = (numbers.next().unwrap_or(0.0) as usize, numbers.next().unwrap_or(0.0));
    match seen.code {
        Some(0) if size == FILE_SIZE => format!("whole in {seconds:.1} s"),
        Some(code) => format!("{} of {} kB, exit code {code}", size / 1000, FILE_SIZE / 1000),
        None => "no end within 20 s".to_owned(),
    }
}

fn is_installed(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program} >/dev/null")])
        .status()
        .is_ok_and(|it| it.success())
}

/// Measures the rows, prints the table, and fails if a row is not as it must be.
fn judge(rows: &[Row]) {
    let mut wrong = Vec::new();
    println!(
        "| path | UDP | TCP_NODELAY | QUIC datagrams | QUIC stream | DCCP CCID 2 | curl | the run says |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for rows in rows.chunks(AT_A_TIME) {
        let measured: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = rows.iter().map(|row| scope.spawn(|| measure(row))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for row in measured {
            let Some((line, wrong_here)) = row else { return };
            println!("{line}");
            wrong.extend(wrong_here);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn over_each_hostile_path_every_transport_has_its_figures_and_the_run_says_why() {
    judge(&rows());
}

#[test]
#[ignore = "it takes minutes: `cargo xtask weekly --only long-paths`"]
fn over_paths_that_change_late_or_for_long_every_transport_has_its_figures_too() {
    judge(&long_rows());
}
