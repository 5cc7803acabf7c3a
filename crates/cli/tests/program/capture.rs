//! `export --format pcapng`: captures of simulated and emulated runs, read by tshark where it is installed.

use std::process::Command;

use crate::harness::Bench;
use crate::quiet::undisturbed;

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

/// A simulated run is made again for its capture: nothing malformed, no errors, every checksum right, as many
/// packets as the summary tells, and tshark's figures of the call those of the summary to the printed digit.
#[test]
fn a_simulated_runs_capture_has_every_transport_and_the_summarys_figures() {
    let bench = Bench::new();
    bench.file("every.toml", SIMULATED);
    let summary = bench.run(&["run", "every.toml", "--json=runs"]).succeeds().summary();
    let run = bench.only_run().to_string_lossy().into_owned();
    for (at, file) in [("near", "near.pcapng"), ("far", "far.pcapng")] {
        bench.run(&["export", &run, "--format", "pcapng", "--at", at, "-o", file]).succeeds();
        assert!(std::fs::metadata(bench.path(file)).unwrap().len() > 500_000, "{file}");
    }
    let flow = |name: &str| &summary["runs"][0]["flows"][name];
    let sent = |name: &str| flow(name)["sent"].as_u64().unwrap() as usize;
    for file in ["near.pcapng", "far.pcapng"] {
        let bad = fields(&bench, file, "_ws.malformed || _ws.expert.severity == error", &["frame.number"]);
        let Some(bad) = bad else { return };
        assert_eq!(bad, [""; 0], "{file}");
        for (protocol, least) in [("udp", 200), ("tcp", 1000), ("dccp", 800)] {
            let field = format!("{protocol}.checksum.status");
            let checks = fields(&bench, file, protocol, &[&field]).unwrap();
            assert!(checks.len() > least, "{file}: {} of {protocol}", checks.len());
            assert!(checks.iter().all(|status| status == "1"), "{file}: {protocol}");
        }
    }
    // What the near ends gave to the path.
    let near = |filter: &str| fields(&bench, "near.pcapng", filter, &["frame.number"]).unwrap().len();
    assert_eq!(near("udp && ip.src == 10.0.0.1"), sent("call"));
    let again =
        "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || tcp.analysis.out_of_order";
    let upload = fields(&bench, "near.pcapng", "tcp.len > 1000", &["tcp.stream"]).unwrap();
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

/// The fields of the only line of tshark's table of RTP streams: start, end, addresses and ports, SSRC and
/// payload, then packets, lost and its share, time between arrivals, jitter.
fn rtp_stream(bench: &Bench, file: &str) -> Vec<String> {
    let table = tshark(bench, file, &["-n", "-d", "udp.port==5004,rtp", "-q", "-z", "rtp,streams"]).unwrap();
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
due = "opening"

[flow.ccid3]
transport = "dccp-ccid3"
direction = "down"
workload = { kind = "voice", codec = "g711" }
due = "opening"

[flow.call]
transport = "udp"
workload = { kind = "voice", codec = "g711" }

[flow.stream]
transport = "tcp"
workload = { kind = "cbr", rate = "64 kbps", size = "160 B" }
"#;

/// What tshark prints of `fields` of the packets of `file` that `filter` takes; `None` where it is not
/// installed.
fn fields(bench: &Bench, file: &str, filter: &str, fields: &[&str]) -> Option<Vec<String>> {
    let mut arguments = Vec::new();
    let checked = ["dccp", "udp", "tcp"].map(|protocol| format!("{protocol}.check_checksum:TRUE"));
    for preference in &checked {
        arguments.extend(["-o", preference]);
    }
    arguments.extend(["-Y", filter, "-T", "fields"]);
    for field in fields {
        arguments.extend(["-e", field]);
    }
    Some(tshark(bench, file, &arguments)?.lines().map(str::to_owned).collect())
}

/// What tshark prints of `file`; `None` where it is not installed, which is printed.
fn tshark(bench: &Bench, file: &str, arguments: &[&str]) -> Option<String> {
    let command = Command::new("tshark").arg("-r").arg(bench.path(file)).args(arguments).output();
    let Ok(output) = command else {
        eprintln!("SKIP: tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// `export --format pcapng` of an emulated run, read by tshark: nothing malformed, all checksums right, each
/// end's packets.
#[test]
fn an_emulated_runs_capture_has_both_ends_packets_with_right_checksums() {
    undisturbed(|| {
        let bench = Bench::new();
        bench.file("captured.toml", EMULATED);
        let arguments = ["run", "captured.toml", "--arena", "emu", "--capture", "--json=runs"];
        let Some(seen) = bench.emulate(&arguments) else { return };
        let summary = seen.succeeds().summary();
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
            fields(&bench, "near.pcapng", "_ws.malformed || _ws.expert.severity == error", &["frame.number"])
        else {
            return;
        };
        assert!(bad.is_empty(), "{bad:?}");
        let sent = |flow: &str| summary["runs"][0]["flows"][flow]["sent"].as_u64().unwrap() as usize;
        let data = "dccp.type == 2 || dccp.type == 4";
        for (file, is_near) in [("near.pcapng", true), ("far.pcapng", false)] {
            let checks = fields(&bench, file, "dccp", &["dccp.checksum.status"]).unwrap();
            assert!(checks.len() > 100 && checks.iter().all(|status| status == "1"), "{file}: {checks:?}");
            for protocol in ["udp", "tcp"] {
                let field = format!("{protocol}.checksum.status");
                let checks = fields(&bench, file, protocol, &[&field]).unwrap();
                assert!(
                    !checks.is_empty() && checks.iter().all(|status| status == "1"),
                    "{file}: {protocol}"
                );
            }
            // The echoing call's messages go both ways, the other's one; nothing was lost on this path.
            let packets = fields(&bench, file, data, &["dccp.srcport"]).unwrap();
            assert_eq!(packets.len(), 2 * sent("ccid2") + sent("ccid3"), "{file}");
            let handshakes =
                fields(&bench, file, "dccp.type == 0 || dccp.type == 1 || dccp.type == 7", &["dccp.type"]);
            let types = handshakes.unwrap();
            for (number, count) in [("0", 2), ("1", 2), ("7", 2)] {
                assert_eq!(types.iter().filter(|kind| *kind == number).count(), count, "{file}: {types:?}");
            }
            assert_eq!(fields(&bench, file, "udp", &["udp.length"]).unwrap().len(), sent("call"));
            // A near end sends before the far one sees it.
            let first = fields(&bench, file, "dccp.type == 0", &["frame.time_epoch"]).unwrap();
            let at: f64 = first[0].parse().unwrap();
            assert!(if is_near { at < 1.0 } else { at >= 0.005 }, "{file}: {first:?}");
        }
        assert!(fields(&bench, "wrapped.pcapng", "dccp", &["frame.number"]).unwrap().is_empty());
        assert!(fields(&bench, "wrapped.pcapng", "udp", &["udp.length"]).unwrap().len() > 2 * sent("call"));
    });
}

#[test]
fn a_run_without_a_capture_says_so_when_it_is_exported() {
    let bench = Bench::new();
    bench.file("short.toml", EMULATED);
    bench.run(&["run", "short.toml", "--capture"]).fails(2, &["--capture belongs to --arena emu"]);
    if bench.emulate(&["run", "short.toml", "--arena", "emu", "--json=runs"]).is_none() {
        return;
    }
    let run = bench.only_run();
    let seen = bench.run(&["export", &run.to_string_lossy(), "--format", "pcapng"]);
    seen.fails(2, &["only runs with --arena emu --capture"]);
}
