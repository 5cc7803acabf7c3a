//! The formats of docs/reference/format.md: what this version writes, and what it still reads.

use std::fs;
use std::path::Path;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::harness::{Bench, CALL, Served, entries, read_json};

const SCHEMA: &str = include_str!("../../../../docs/reference/summary.schema.json");
/// A run in the form of 0.2.0: its keys are those of that version's structs.
const SUMMARY_V1: &str = include_str!("../../../measure/tests/data/summary-v1.json");
/// A run as 0.3.0 wrote it before format 3.
const SUMMARY_V2: &str = include_str!("../../../measure/tests/data/summary-v2.json");

/// Every workload, copies, a queue that marks, and a flow without an echo.
const ALL_SORTS: &str = r#"
name = "all sorts"
duration = "2 s"
repeat = 2

[path]
up = { rate = "2 Mbps", delay = "15 ms", queue = "fq_codel", loss = 0.02 }
down = { rate = "8 Mbps", delay = "15 ms" }

[flow.call]
transport = "udp"
workload = { kind = "voice", echo = true }

[flow.one-way]
transport = "dccp-ccid3"
workload = { kind = "voice" }

[flow.game]
transport = "udp"
workload = { kind = "cbr", message_rate = "60 Hz", size = "200 B", deadline = "100 ms", state = true, echo = true }
count = 2

[flow.test]
transport = "udp"
workload = { kind = "burst", count = 50, size = "128 B" }

[flow.upload]
transport = { kind = "tcp", ecn = true }
workload = { kind = "bulk" }
start = "500 ms"

[sweep]
"flow.call.transport" = ["udp", "tcp"]
"#;

fn validator() -> Validator {
    let schema = serde_json::from_str(SCHEMA).unwrap();
    assert!(jsonschema::meta::is_valid(&schema), "the schema is none");
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn assert_valid(summary: &Value) {
    let mistakes: Vec<_> =
        validator().iter_errors(summary).take(5).map(|it| format!("{}: {it}", it.instance_path())).collect();
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

fn only_summary(out: &Path) -> Value {
    read_json(&entries(out).remove(0).join("summary.json"))
}

#[test]
fn simulated_summaries_are_as_the_schema_says_and_broken_ones_are_not() {
    let bench = Bench::new();
    bench.file("sorts.toml", ALL_SORTS);
    bench.run(&["run", "sorts.toml", "--out", "rows"]).succeeds();
    let summary = only_summary(&bench.path("rows"));
    assert_valid(&summary);
    bench.run(&["run", "sorts.toml", "--out", "none", "--records", "none"]).succeeds();
    assert_valid(&only_summary(&bench.path("none")));
    let compare = ["compare", "--repeat", "2", "--duration", "5s", "--out", "compare", "--records", "none"];
    bench.run(&compare).succeeds();
    let compared = only_summary(&bench.path("compare"));
    assert_valid(&compared);
    assert!(!compared["comparisons"].as_array().unwrap().is_empty());
    let validator = validator();
    let broken: [fn(&mut Value); 5] = [
        |summary| summary["format"] = json!(1),
        |summary| summary["runs"][0]["flows"]["call"]["sent"] = json!(-1),
        |summary| summary["runs"][0]["flows"]["call"]["call"]["mos"] = json!("4.4"),
        |summary| summary["runs"][0]["links"]["up"]["unknown"] = json!(1),
        |summary| drop(summary["cells"][0].as_object_mut().unwrap().remove("n")),
    ];
    for (at, of) in broken.iter().enumerate() {
        let mut broken = summary.clone();
        of(&mut broken);
        assert!(!validator.is_valid(&broken), "{at} is not noticed");
    }
}

#[test]
fn summaries_over_real_sockets_are_as_the_schema_says() {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    let served = Served::start(&bench, &["--open"]);
    bench.run(&["run", "call.toml", "--to", &served.address, "--out", "live"]).succeeds();
    assert_valid(&only_summary(&bench.path("live")));
    let file = bench.file("some.bin", [7; 50_000]);
    let send = ["send", file.to_str().unwrap(), "--to", &served.address, "--out", "sent"];
    bench.run(&send).succeeds();
    assert_valid(&only_summary(&bench.path("sent")));
    if bench.emulate(&["run", "call.toml", "--arena", "emu", "--out", "emu"]).is_some() {
        assert_valid(&only_summary(&bench.path("emu")));
    }
}

#[test]
fn a_run_of_a_format_before_is_read_and_what_it_lacks_is_said() {
    let bench = Bench::new();
    bench.file(
        "call.toml",
        CALL.replace("name", "repeat = 2\nname") + "[sweep]\n\"flow.call.transport\" = [\"udp\", \"tcp\"]\n",
    );
    bench.run(&["run", "call.toml", "--out", "new"]).succeeds();
    fs::create_dir(bench.path("old")).unwrap();
    fs::copy(entries(&bench.path("new")).remove(0).join("scenario.toml"), bench.path("old/scenario.toml"))
        .unwrap();
    bench.file("old/summary.json", SUMMARY_V1);
    let says = "old: talkpath 0.2.0 made it, in format 1: it may lack opinion scores";
    let seen = bench.run(&["report", "old"]);
    assert!(seen.succeeds().err.contains(says), "{}", seen.err);
    let page = fs::read_to_string(bench.path("old/report.html")).unwrap();
    assert!(page.contains("a call beside an upload") && page.contains("UDP"), "the page has the run's rows");
    let seen = bench.run(&["export", "old", "--table", "repetitions", "--format", "csv"]);
    assert!(seen.succeeds().err.contains(says), "{}", seen.err);
    let header = seen.out.lines().next().unwrap();
    assert!(header.contains("round_trip_delay_ms_p90") && !header.contains("call_mos"), "{header}");
    assert_eq!(seen.out.lines().count(), 9, "two flows of two cells, twice, and the header");
    let newer = SUMMARY_V1.replacen("\"talkpath\"", "\"format\": 4, \"talkpath\"", 1);
    bench.file("old/summary.json", newer);
    bench.run(&["report", "old"]).fails(2, &["summary.json: format 4", "reads formats 1 to 3"]);
    bench.file("old/summary.json", SUMMARY_V2);
    let says = "old: talkpath 0.3.0 made it, in format 2: it may lack times to open and ledgers";
    let seen = bench.run(&["report", "old"]);
    assert!(seen.succeeds().err.contains(says), "{}", seen.err);
    let seen = bench.run(&["export", "old", "--table", "repetitions", "--format", "csv"]);
    let header = seen.succeeds().out.lines().next().unwrap();
    assert!(header.contains("call_mos") && !header.contains("ledger"), "{header}");
}

#[test]
fn record_files_name_their_units() {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    let bench = Bench::new();
    bench.file("call.toml", CALL);
    bench.run(&["run", "call.toml"]).succeeds();
    for (file, key, unit) in [
        ("packets.parquet", "talkpath.unit.due_ns", "ns"),
        ("packets.parquet", "talkpath.unit.size", "B"),
        ("series.parquet", "talkpath.unit.value.srtt", "ms"),
    ] {
        let file = fs::File::open(bench.only_run().join(file)).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let entries = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let found = entries.iter().find(|entry| entry.key == key).unwrap();
        assert_eq!(found.value.as_deref(), Some(unit), "{key}");
    }
}
