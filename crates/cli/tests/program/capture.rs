//! `export --format pcapng`: captures of simulated and emulated runs, read by tshark where it is installed.

use serde_json::Value;

use crate::harness::Bench;

/// Every transport at once, on a path that loses.
const SIMULATED: &str = r#"
name = "every transport"
duration = "5 s"

[path]
up = { rate = "2 Mbps", delay = "20 ms", loss = 0.02 }
down = { rate = "2 Mbps", delay = "20 ms", loss = 0.01 }

[flow.call]
transport = "udp"
workload = { kind = "voice", codec = "g711" }

[flow.nagle]
transport = "tcp"
workload = { kind = "voice", codec = "g711" }

[flow.nodelay]
transport = "tcp-nodelay"
workload = { kind = "voice", codec = "g711", echo = true }

[flow.upload]
transport = { kind = "tcp", cc = "reno" }
workload = "bulk"

[flow.ccid2]
transport = "dccp-ccid2"
workload = { kind = "voice", codec = "g711", echo = true }

[flow.ccid3]
transport = "dccp-ccid3"
workload = { kind = "voice", codec = "g711" }

[flow.ccid4]
transport = "dccp-ccid4"
direction = "down"
workload = { kind = "voice", codec = "g711" }
"#;

/// A simulated run is made again for its capture: nothing malformed, no errors, every checksum right, as many packets as the
/// summary tells, and tshark's figures of the call those of the summary to the printed digit.
#[test]
fn a_simulated_runs_capture_has_every_transport_and_the_summarys_figures() {
    let bench = Bench::new();
    bench.file("every.toml", SIMULATED);
    let summary: Value =
        serde_json::from_str(&bench.run(&["run", "every.toml", "--json"]).succeeds().out).unwrap();
    let run = bench.only_run().to_string_lossy().into_owned();
    for (at, file) in [("near", "near.pcapng"), ("far", "far.pcapng")] {
        bench.run(&["export", &run, "--format", "pcapng", "--at", at, "-o", file]).succeeds();
        assert!(std::fs::metadata(bench.path(file)).unwrap().len() > 500_000, "{file}");
    }
    let flow = |name: &str| &summary["runs"][0]["flows"][name];
    let sent = |name: &str| flow(name)["sent"].as_u64().unwrap() as usize;
    for file in ["near.pcapng", "far.pcapng"] {
        let bad = tshark(&bench, file, "_ws.malformed || _ws.expert.severity == error", &["frame.number"]);
        let Some(bad) = bad else { return };
        assert_eq!(bad, [""; 0], "{file}");
        for (protocol, least) in [("udp", 200), ("tcp", 1000), ("dccp", 800)] {
            let field = format!("{protocol}.checksum.status");
            let checks = tshark(&bench, file, protocol, &[&field]).unwrap();
            assert!(checks.len() > least, "{file}: {} of {protocol}", checks.len());
            assert!(checks.iter().all(|status| status == "1"), "{file}: {protocol}");
        }
    }
    // What the near ends gave to the path.
    let near = |filter: &str| tshark(&bench, "near.pcapng", filter, &["frame.number"]).unwrap().len();
    assert_eq!(near("udp && ip.src == 10.0.0.1"), sent("call"));
    let again =
        "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || tcp.analysis.out_of_order";
    let upload = tshark(&bench, "near.pcapng", "tcp.len > 1000", &["tcp.stream"]).unwrap();
    let resent = near(&format!("({again}) && tcp.stream == {}", upload[0]));
    assert_eq!(resent as u64, flow("upload")["retransmissions"].as_u64().unwrap());
    let row = rtp_stream(&bench, "far.pcapng");
    let figures = |part: &str| {
        ["min", "mean", "max"]
            .map(|of| format!("{:.3}", flow("call")["rtp_stream"][part][of].as_f64().unwrap()))
    };
    assert_eq!(row[8..10], [flow("call")["received"].to_string(), flow("call")["lost"].to_string()]);
    assert_eq!((&row[11..14], &row[14..17]), (&figures("delta_ms")[..], &figures("jitter_ms")[..]));
}

/// The fields of the only line of tshark's table of RTP streams: start, end, addresses and ports, SSRC and payload, then packets,
/// lost and its share, time between arrivals, jitter.
fn rtp_stream(bench: &Bench, file: &str) -> Vec<String> {
    let mut command = std::process::Command::new("tshark");
    command.arg("-r").arg(bench.path(file)).args([
        "-n",
        "-d",
        "udp.port==5004,rtp",
        "-q",
        "-z",
        "rtp,streams",
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    let row =
        table.lines().find(|line| line.contains("g711U")).unwrap_or_else(|| panic!("no stream: {table}"));
    row.split_whitespace().map(str::to_owned).collect()
}

const EMULATED: &str = r#"
name = "captured"
duration = "1 s"
drain = "500 ms"

[path]
up = { rate = "4 Mbps", delay = "5 ms" }
down = { rate = "4 Mbps", delay = "5 ms" }

[flow.ccid2]
transport = "dccp-ccid2"
workload = { kind = "voice", codec = "g711", echo = true }

[flow.ccid3]
transport = "dccp-ccid3"
direction = "down"
workload = { kind = "voice", codec = "g711" }

[flow.call]
transport = "udp"
workload = { kind = "voice", codec = "g711" }

[flow.stream]
transport = "tcp"
workload = { kind = "cbr", rate = "64 kbps", size = "160 B" }
"#;

/// What tshark prints of `fields` of the packets of `file` that `filter` takes; `None` where it is not installed.
fn tshark(bench: &Bench, file: &str, filter: &str, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = std::process::Command::new("tshark");
    command.arg("-r").arg(bench.path(file)).args([
        "-o",
        "dccp.check_checksum:TRUE",
        "-o",
        "udp.check_checksum:TRUE",
    ]);
    command.args(["-o", "tcp.check_checksum:TRUE", "-Y", filter, "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        eprintln!("SKIP: tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

/// `export --format pcapng` of an emulated run, read by tshark: nothing malformed, all checksums right, each end's packets.
#[test]
fn an_emulated_runs_capture_has_both_ends_packets_with_right_checksums() {
    let bench = Bench::new();
    bench.file("captured.toml", EMULATED);
    let seen = bench.run(&["run", "captured.toml", "--arena", "emu", "--capture", "--json"]);
    if seen.code == Some(3) {
        eprintln!("SKIP: the emulated arena is not available here: {}", seen.err);
        return;
    }
    let summary: Value = serde_json::from_str(&seen.succeeds().out).unwrap();
    let run = bench.only_run();
    let export = |at: &str, more: &[&str], file: &str| {
        let run = run.to_string_lossy().into_owned();
        let mut arguments = vec!["export", &run, "--format", "pcapng", "--at", at, "-o", file];
        arguments.extend(more);
        bench.run(&arguments).succeeds();
    };
    export("near", &[], "near.pcapng");
    export("far", &[], "far.pcapng");
    export("near", &["--encapsulated"], "wrapped.pcapng");
    let Some(bad) =
        tshark(&bench, "near.pcapng", "_ws.malformed || _ws.expert.severity == error", &["frame.number"])
    else {
        return;
    };
    assert!(bad.is_empty(), "{bad:?}");
    let sent = |flow: &str| summary["runs"][0]["flows"][flow]["sent"].as_u64().unwrap() as usize;
    let data = "dccp.type == 2 || dccp.type == 4";
    for (file, is_near) in [("near.pcapng", true), ("far.pcapng", false)] {
        let checks = tshark(&bench, file, "dccp", &["dccp.checksum.status"]).unwrap();
        assert!(checks.len() > 100 && checks.iter().all(|status| status == "1"), "{file}: {checks:?}");
        for protocol in ["udp", "tcp"] {
            let field = format!("{protocol}.checksum.status");
            let checks = tshark(&bench, file, protocol, &[&field]).unwrap();
            assert!(!checks.is_empty() && checks.iter().all(|status| status == "1"), "{file}: {protocol}");
        }
        // The echoing call's messages go both ways, the other's one; nothing was lost on this path.
        let packets = tshark(&bench, file, data, &["dccp.srcport"]).unwrap();
        assert_eq!(packets.len(), 2 * sent("ccid2") + sent("ccid3"), "{file}");
        let handshakes =
            tshark(&bench, file, "dccp.type == 0 || dccp.type == 1 || dccp.type == 7", &["dccp.type"]);
        let types = handshakes.unwrap();
        for (number, count) in [("0", 2), ("1", 2), ("7", 2)] {
            assert_eq!(types.iter().filter(|kind| *kind == number).count(), count, "{file}: {types:?}");
        }
        assert_eq!(tshark(&bench, file, "udp", &["udp.length"]).unwrap().len(), sent("call"));
        // A near end sends before the far one sees it.
        let first = tshark(&bench, file, "dccp.type == 0", &["frame.time_epoch"]).unwrap();
        let at: f64 = first[0].parse().unwrap();
        assert!(if is_near { at < 1.0 } else { at >= 0.005 }, "{file}: {first:?}");
    }
    assert!(tshark(&bench, "wrapped.pcapng", "dccp", &["frame.number"]).unwrap().is_empty());
    assert!(tshark(&bench, "wrapped.pcapng", "udp", &["udp.length"]).unwrap().len() > 2 * sent("call"));
}

#[test]
fn a_run_without_a_capture_says_so_when_it_is_exported() {
    let bench = Bench::new();
    bench.file("short.toml", EMULATED);
    bench.run(&["run", "short.toml", "--capture"]).fails(2, &["--capture belongs to --arena emu"]);
    let seen = bench.run(&["run", "short.toml", "--arena", "emu", "--json"]);
    if seen.code == Some(3) {
        eprintln!("SKIP: the emulated arena is not available here: {}", seen.err);
        return;
    }
    let run = bench.only_run();
    let seen = bench.run(&["export", &run.to_string_lossy(), "--format", "pcapng"]);
    seen.fails(2, &["only runs with --arena emu --capture"]);
}
