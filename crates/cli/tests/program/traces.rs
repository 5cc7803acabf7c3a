//! Traces as a user has them: beside the scenario, copied into the run directory, and with mistakes reported
//! in both files.

use std::fs;

use crate::harness::{Bench, names};
use crate::quiet::undisturbed;

const CALL: &str = r#"
name = "a traced call"
duration = "1 s"
drain = "200 ms"

[path]
up = { rate = { trace = "lines/up.trace" }, delay = "5 ms", loss = { kind = "trace", file = "lines/up.loss" } }
down = { rate = "1 Mbps", delay = "5 ms", jitter = { kind = "trace", file = "lines/down.ms" } }

[flow.call]
transport = "udp"
workload = { kind = "voice", echo = true }
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("lines")).unwrap();
    bench.file("call.toml", CALL);
    bench.file("lines/up.trace", "3\n5\n8\n");
    bench.file("lines/up.loss", "# one in four\n0001\n");
    bench.file("lines/down.ms", "0\n4.5\n");
    bench
}

#[test]
fn a_run_directory_holds_the_traces_and_repeats_the_run_without_the_first_files() {
    let bench = bench();
    bench.run(&["run", "call.toml"]).succeeds();
    let run = bench.only_run();
    assert_eq!(names(&run.join("traces")), ["down.ms", "up.loss", "up.trace"]);
    let packets = fs::read(run.join("packets.parquet")).unwrap();
    fs::remove_dir_all(bench.path("lines")).unwrap();
    let scenario = run.join("scenario.toml");
    bench.run(&["run", &scenario.to_string_lossy(), "--out", "again"]).succeeds();
    let again = fs::read_dir(bench.path("again")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read(again.join("packets.parquet")).unwrap(), packets);
    bench
        .run(&["run", "call.toml"])
        .fails(2, &["call.toml:7:", "path.up.rate.trace: lines/up.trace: no such file"]);
}

#[test]
fn a_mistake_in_a_trace_names_both_files_and_lines() {
    let bench = bench();
    bench.file("lines/up.trace", "3\nfive\n");
    bench.run(&["check", "call.toml"]).fails(
        2,
        &[
            "call.toml:7:",
            "path.up.rate.trace: lines/up.trace:2: \"five\" is not a whole number of milliseconds",
        ],
    );
    bench.file("lines/up.trace", [0xff, 0xfe]);
    bench.run(&["check", "call.toml"]).fails(2, &["lines/up.trace: not UTF-8 text"]);
}

#[test]
fn an_emulated_run_plays_the_traces_and_its_replay_finds_no_difference() {
    undisturbed(|| {
        let bench = bench();
        let Some(seen) = bench.emulate(&["run", "call.toml", "--arena", "emu"]) else { return };
        seen.succeeds();
        let run = bench.only_run();
        let text = fs::read_to_string(run.join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        let (flow, link) = (&summary["runs"][0]["flows"]["call"], &summary["runs"][0]["links"]["up"]);
        // Fifty frames, of which every fourth is marked lost.
        assert_eq!((flow["sent"].as_u64(), link["lost"].as_u64()), (Some(50), Some(12)), "{flow} {link}");
        assert_eq!(flow["lost_forward"].as_u64(), Some(12));
        bench.run(&["replay", &run.to_string_lossy()]).succeeds();
    });
}

/// Case 01: milliseconds since 1970, microseconds, and a column of speeds.
#[test]
fn what_a_trace_was_read_as_is_said_by_check_run_and_page_and_a_wrong_unit_is_warned_of() {
    let bench = Bench::new();
    let scenario = |trace: &str| {
        format!(
            "name = \"traced\"\nduration = \"10 s\"\n[path]\nup = {{ rate = {{ trace = \"{trace}\" }} }}\n\
             down = {{ rate = \"8 Mbps\" }}\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n"
        )
    };
    let lines =
        |from: u64, step: u64| -> String { (1..=1000).map(|n| format!("{}\n", from + step * n)).collect() };
    for (name, text) in [
        ("x.up", lines(0, 10)),
        ("epoch.up", lines(1_402_530_000_000, 10)),
        ("microseconds.up", lines(0, 10_000)),
        ("speeds.up", "2\n2\n3\n4\n4\n5\n5\n".to_owned()),
    ] {
        bench.file(name, text);
        bench.file(&format!("{name}.toml"), scenario(name));
    }
    let check = |name: &str| bench.run(&["check", &format!("{name}.toml")]);
    let good = check("x.up");
    let line = "x.up: 1000 deliveries, 1.2 Mb/s in the mean, repeats after 10 s";
    assert!(good.succeeds().out.contains(line), "{}", good.out);
    assert_eq!(good.err, "");
    let json = bench.run(&["check", "x.up.toml", "--json=runs"]).summary();
    assert_eq!(json["understood"], serde_json::json!([line]));
    let seen = bench.run(&["run", "x.up.toml"]);
    assert!(seen.succeeds().out.contains(line), "{}", seen.out);
    let page = fs::read_to_string(bench.only_run().join("report.html")).unwrap();
    assert!(page.contains(line));
    let epoch = check("epoch.up");
    for words in ["the first delivery comes after", "subtract the first, which gives 1.2 Mb/s"] {
        assert!(epoch.succeeds().err.contains(words), "{}", epoch.err);
    }
    let micros = check("microseconds.up");
    assert!(micros.succeeds().err.contains("uses 0.1 % of the trace"), "{}", micros.err);
    let speeds = check("speeds.up");
    assert!(
        speeds.out.contains("speeds.up: 7 deliveries, 16.8 Mb/s in the mean, repeats after 5 ms"),
        "{}",
        speeds.out
    );
    bench.file("bad.csv", "time,kbps\n0,1200\n");
    bench.file("bad.toml", scenario("bad.csv"));
    bench
        .run(&["check", "bad.toml"])
        .fails(2, &["bad.csv:1: \"time,kbps\"", "a line for each packet of 1500 B"]);
}
