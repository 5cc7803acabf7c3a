//! Tables for other tools: their columns, and that the tools read them with the lines of the guide.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{Bench, SHORT, Seen, Served, entries};

/// A run of the guide's sweep.
fn swept(bench: &Bench) -> PathBuf {
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/use-the-data.md")).unwrap();
    let scenario = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    bench.file("sweep.toml", scenario);
    bench.run(&["run", "sweep.toml", "--set", "duration=2 s"]).succeeds();
    bench.only_run()
}

fn export(bench: &Bench, run: &Path, table: &str, format: &str) -> String {
    let run = run.to_str().unwrap();
    bench.run(&["export", run, "--table", table, "--format", format]).succeeds().out.clone()
}

fn header(csv: &str) -> Vec<&str> {
    csv.lines().next().unwrap().split(',').collect()
}

#[test]
fn tables_have_a_typed_column_for_each_swept_key_and_one_row_for_each_thing() {
    let bench = Bench::new();
    let run = swept(&bench);
    let swept = ["flow_call_transport", "path_up_loss", "path_up_rate_bps"];

    let repetitions = export(&bench, &run, "repetitions", "csv");
    let columns = header(&repetitions);
    assert_eq!(columns[..7], ["cell", "repetition", swept[0], swept[1], swept[2], "seed", "flow"]);
    assert!(columns.contains(&"call_mos") && columns.contains(&"round_trip_delay_ms_p99"), "{columns:?}");
    assert_eq!(columns.len(), columns.iter().collect::<BTreeSet<_>>().len(), "each once: {columns:?}");
    assert_eq!(repetitions.lines().count(), 1 + 12 * 3);
    assert!(repetitions.lines().nth(1).unwrap().starts_with("0,0,udp,0.0,1000000,"), "{repetitions}");
    assert!(repetitions.lines().all(|line| line.split(',').count() == columns.len()), "no field has a comma");

    let cells = export(&bench, &run, "cells", "csv");
    assert_eq!(
        header(&cells),
        [
            &["cell"][..],
            &swept,
            &["repetitions", "flow", "figure", "median", "mean", "mean_ci95_low", "mean_ci95_high"]
        ]
        .concat()
    );
    let of_mos = cells.lines().filter(|line| line.contains(",call,call.mos,")).count();
    assert_eq!(of_mos, 12, "one row a cell");

    let links = export(&bench, &run, "links", "csv");
    assert!(header(&links).contains(&"queue_delay_ms_p95") && header(&links).contains(&"link"));
    assert_eq!(links.lines().count(), 1 + 12 * 3 * 2);

    let lines = export(&bench, &run, "messages", "jsonl");
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!((&first["path_up_rate_bps"], &first["path_up_loss"]), (&1_000_000.into(), &0.0.into()));
    assert_eq!(first["flow_call_transport"], "udp");
    // The same rows in every format.
    assert_eq!(export(&bench, &run, "messages", "csv").lines().count(), 1 + lines.lines().count());
}

#[test]
fn without_a_table_and_a_sweep_the_columns_are_those_of_packets_parquet() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    bench.run(&["run", "call.toml"]).succeeds();
    let run = bench.only_run();
    let seen = bench.run(&["export", run.to_str().unwrap(), "--format", "csv"]);
    let expected = "cell,repetition,flow,leg,seq,size,due_ns,sent_ns,wire_ns,received_ns,fate,drop_cause,copies,transmissions\n";
    assert!(seen.succeeds().out.starts_with(expected), "{}", seen.out.lines().next().unwrap());
    let run = run.to_str().unwrap();
    for format in ["log", "nam"] {
        bench.run(&["export", run, "--format", format, "--table", "cells"]).fails(2, &["--table belongs to"]);
    }
}

#[test]
fn an_option_that_belongs_to_another_format_is_refused_and_not_ignored() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    bench.run(&["run", "call.toml"]).succeeds();
    let run = bench.only_run();
    for (format, option, says) in [
        ("csv", &["--cell", "1"][..], "--cell belongs to --format pcapng, qlog and nam, not to csv"),
        (
            "jsonl",
            &["--repetition", "0"],
            "--repetition belongs to --format pcapng, qlog and nam, not to jsonl",
        ),
        ("parquet", &["--at", "near"], "--at belongs to --format pcapng and qlog, not to parquet"),
        ("log", &["--from", "1 s"], "--from belongs to --format nam, not to log"),
        ("qlog", &["--for", "1 s"], "--for belongs to --format nam, not to qlog"),
        ("nam", &["--encapsulated"], "--encapsulated belongs to --format pcapng, not to nam"),
    ] {
        let export = ["export", run.to_str().unwrap(), "--format", format, "-o", "rows"];
        bench.run(&[&export[..], option].concat()).fails(2, &[says]);
    }
    assert!(!bench.path("rows").exists());
}

#[test]
fn no_command_writes_over_what_a_run_has_left() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let write = |arguments: &[&str], target: &str| bench.run(&[arguments, &[target]].concat());
    bench.run(&["run", "call.toml"]).succeeds();
    let path = bench.only_run();
    let run = path.to_str().unwrap();
    let files = || {
        let names = entries(&path);
        names.into_iter().map(|name| (fs::read(&name).unwrap(), name)).collect::<Vec<_>>()
    };
    let before = files();
    let inside = |name: &str| format!("{run}/{name}");
    symlink(inside("summary.json"), bench.path("link.html")).unwrap();
    symlink(run, bench.path("same")).unwrap();
    let csv = ["export", run, "--format", "csv", "-o"];
    let refused = |seen: Seen, target: &str| {
        seen.fails(2, &[target, "would be lost; name another"]);
    };
    for target in
        [inside("packets.parquet"), inside("report.html"), "talkpath-runs/../same/series.parquet".to_owned()]
    {
        refused(write(&csv, &target), &target);
    }
    refused(write(&["play", run, "-o"], &inside("summary.json")), "summary.json");
    refused(write(&["report", run, "-o"], "link.html"), "link.html");
    refused(write(&["run", "call.toml", "--junit"], "same/scenario.toml"), "same/scenario.toml");
    refused(write(&["plan", "call.toml", "-o"], "same"), "same");
    assert!(files() == before, "something was written");
    write(&["play", run, "-o"], &inside("play.html")).succeeds();
    write(&["report", run, "-o"], &inside("report.html")).succeeds();
    write(&csv, &inside("rows.csv")).succeeds();
}

/// Each line of Python on the guide's page, over tables that the page's commands write.
#[test]
fn polars_pandas_and_duckdb_read_the_tables_with_the_lines_of_the_guide() {
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/use-the-data.md")).unwrap();
    let lines: Vec<&str> =
        page.split("```python\n").nth(1).unwrap().split("```").next().unwrap().lines().collect();
    assert_eq!(lines.len(), 3);
    let bench = Bench::new();
    let run = swept(&bench);
    for (table, format) in [("cells", "csv"), ("repetitions", "parquet"), ("messages", "parquet")] {
        let (run, file) = (run.to_str().unwrap(), format!("{table}.{format}"));
        bench.run(&["export", run, "--table", table, "--format", format, "-o", &file]).succeeds();
    }
    let python = std::env::var("TALKPATH_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let says = |code: &str| {
        Command::new(&python).args(["-c", code]).current_dir(bench.path("")).output().map(Seen::of)
    };
    for line in lines {
        let package = line.split([' ', ';']).nth(1).unwrap();
        match says(&format!("import {package}")) {
            Ok(seen) if seen.code == Some(0) => {}
            _ => {
                eprintln!(
                    "SKIP: {package} is not there for {python}; TALKPATH_TEST_PYTHON names another Python"
                );
                continue;
            }
        }
        let seen = says(line).unwrap();
        assert!(seen.code == Some(0) && seen.out.contains("udp"), "{line}: {} {}", seen.out, seen.err);
        let types = format!(
            "import {package} as m\nt = m.{}\nassert 'path_up_rate_bps' in str(t), t",
            match package {
                "duckdb" => "sql(\"DESCRIBE SELECT * FROM 'messages.parquet'\")",
                "polars" => "read_parquet('messages.parquet').schema",
                _ => "read_csv('cells.csv').dtypes",
            }
        );
        assert_eq!(says(&types).unwrap().err, "", "{package}");
    }
}

/// A call over QUIC, which keeps its connection alive.
const QUIC_CALL: &str = "\
name = \"a call over QUIC\"
duration = \"1 s\"
drain = \"1 s\"
path = \"lan\"

[flow.call]
transport = { kind = \"quic\", idle_timeout = \"20 s\", keep_alive = \"5 s\" }
workload = { kind = \"voice\", echo = true }
";

/// The file of a live run is as that of a simulated one: each record is JSON behind a record separator
/// (draft-ietf-quic-qlog-main-schema §11.2).
#[test]
fn a_live_run_keeps_the_qlog_of_its_near_end_if_it_is_asked_to() {
    let bench = Bench::new();
    let served = Served::start(&bench, &["--open"]);
    bench.file("call.toml", QUIC_CALL);
    bench.run(&["run", "call.toml", "--qlog"]).fails(2, &["--qlog belongs to --arena emu and live"]);
    for (folder, flags) in [("without", &[][..]), ("with", &["--qlog"])] {
        let words = ["run", "call.toml", "--to", &served.address, "--run-again", "0s", "--out", folder];
        bench.run(&[&words[..], flags].concat()).succeeds();
    }
    let export = |folder: &str, more: &[&str]| {
        let run = entries(&bench.path(folder)).remove(0).display().to_string();
        bench.run(&[&["export", &run, "--format", "qlog", "-o", "call.qlog"], more].concat())
    };
    export("without", &[]).fails(2, &["only runs over QUIC with --qlog keep it"]);
    export("with", &["--at", "far"]).fails(2, &["keeps the qlog of its near end"]);
    export("with", &[]).succeeds();
    let text = fs::read_to_string(bench.path("call.qlog")).unwrap();
    let records = text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap());
    let records: Vec<Value> = records.collect();
    assert_eq!(records[0]["trace"]["vantage_point"]["type"], "client");
    let of = |name: &str| records.iter().filter(|record| record["name"] == name).collect::<Vec<_>>();
    assert!(of("quic:packet_sent").len() >= 50 && of("quic:packet_received").len() >= 50);
    let said = of("quic:parameters_set");
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().all(|event| event["data"]["max_idle_timeout"] == 20_000), "{said:?}");
    let closed = of("quic:connection_closed");
    assert!(closed.len() == 1 && closed[0]["data"]["trigger"] == "application", "{closed:?}");
}

/// Two flows over two links, one of which loses and the other overflows.
const TWO_LINKS: &str = r#"
name = "two links"
duration = "5 s"
drain = "2 s"
link.access = { rate = "2 Mbps", delay = "3 ms", loss = 0.02 }
link.wan = { rate = "500 kbps", delay = "20 ms", queue = { kind = "drop-tail", limit = "5 packets" } }
link.back = { rate = "2 Mbps", delay = "20 ms" }

[flow.call]
transport = "udp"
workload = "voice"
route = ["access", "wan"]
return_route = ["back"]

[flow.file]
transport = "tcp"
workload = "bulk"
route = ["access", "wan"]
return_route = ["back"]
"#;

/// The reader is `xtask/judges/nam.py`, written from the ns manual. Debian's nam 1.15 does not start without
/// a display.
#[test]
fn an_independent_reader_of_nam_s_grammar_finds_what_became_of_each_packet() {
    let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/../../xtask/judges/nam.py");
    let python = std::env::var("TALKPATH_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let bench = Bench::new();
    let reads =
        |trace: &str| Command::new(&python).args([reader, trace]).current_dir(bench.path("")).output();
    if reads("none.nam").is_err() {
        return eprintln!("SKIP: no {python} here; TALKPATH_TEST_PYTHON names another Python");
    }
    bench.file("two.toml", TWO_LINKS);
    let summary = bench.run(&["run", "two.toml", "--json=runs"]).succeeds().summary();
    let run = bench.only_run().to_string_lossy().into_owned();
    bench.run(&["export", &run, "--format", "nam", "-o", "two.nam"]).succeeds();
    let seen = Seen::of(reads("two.nam").unwrap());
    let flows: Value = serde_json::from_str(&seen.succeeds().out).unwrap();
    let call = &summary["runs"][0]["flows"]["call"];
    let (packets, arrived, dropped) =
        (&flows["0"]["packets"], &flows["0"]["arrived"], &flows["0"]["dropped"]);
    assert_eq!((packets, arrived, dropped), (&call["sent"], &call["received"], &call["lost"]), "{flows}");
    assert!(dropped.as_u64() > Some(0) && flows["1"]["dropped"].as_u64() > Some(0), "{flows}");

    // It finds what is wrong: an unknown line, a link that is not declared, an unknown flag, a step left out.
    let trace = fs::read_to_string(bench.path("two.nam")).unwrap();
    for (line, instead, says) in [
        ("\n- -t 0.003800000 -s 1 -d 2 ", "\n# ", "no line of nam begins with '#'"),
        ("\nl -t * -s 2 -d 0 ", "\nl -t * -s 2 -d 1 ", "a queue on ('2', '0'), which is no link"),
        (" -p udp -e 200 ", " -P udp -e 200 ", "missing flags ['p'], unknown flags ['P']"),
        (
            "\nh -t 0.003800000 -s 1 -d 2 ",
            "\nr -t 0.003800000 -s 1 -d 2 ",
            "`r` of packet ('0', '0') after `-`",
        ),
    ] {
        assert!(trace.contains(line), "{line}");
        bench.file("wrong.nam", trace.replacen(line, instead, 1));
        let seen = Seen::of(reads("wrong.nam").unwrap());
        assert!(seen.code == Some(1) && seen.err.contains(says), "{says}: {}", seen.err);
    }
}
