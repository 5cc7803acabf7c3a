//! A run of several machines: its plan, its parts, and what becomes of them.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Bench, LONG, Seen, entries, journal_lines, names, read_json, wait_until};

/// Two transports over three losses, with a connection that repairs them: cells of unlike cost.
const SWEEP: &str = r#"
name = "parts"
duration = "2 s"
repeat = 3
path = "home-adsl"

[flow.call]
transport = "udp"
workload = { kind = "voice", codec = "g711", echo = true }

[flow.upload]
transport = "tcp"
workload = { kind = "bulk" }
start = { from = "0 s", to = "1 s" }

[sweep]
"flow.call.transport" = ["udp", "tcp"]
"path.up.loss" = [0.0, 0.01, 0.05]
"#;

/// Runs part `shard` of `scenario` into the folder `to`.
#[track_caller]
fn part(bench: &Bench, scenario: &str, shard: &str, to: &str, more: &[&str]) -> Seen {
    let seen = bench.run(&[&["run", scenario, "--shard", shard, "-o", to], more].concat());
    seen.succeeds();
    seen
}

/// The one run under `out`.
fn only(bench: &Bench, out: &str) -> PathBuf {
    entries(&bench.path(out)).remove(0)
}

/// summary.json from `runs` on, without the machine's names.
fn figures(run: &Path) -> String {
    let text = fs::read_to_string(run.join("summary.json")).unwrap();
    let from = text.find("\n  \"runs\": [").unwrap();
    let to = text.find("\n  \"provenance\": {").unwrap();
    text[from..to].to_owned()
}

#[track_caller]
fn assert_same_run(left: &Path, right: &Path) {
    assert_eq!(names(left), names(right));
    for file in ["packets.parquet", "series.parquet"].iter().filter(|file| left.join(file).exists()) {
        let (left, right) = (fs::read(left.join(file)).unwrap(), fs::read(right.join(file)).unwrap());
        assert!(left == right && left.len() > 100, "{file}: {} and {} bytes differ", left.len(), right.len());
    }
    assert!(figures(left) == figures(right), "summary.json differs: {} {}", left.display(), right.display());
    assert!(figures(left).contains("\"comparisons\": [\n"), "the transports are compared");
}

#[test]
fn merged_parts_are_the_run_of_one_machine_byte_for_byte() {
    let bench = Bench::new();
    bench.file("parts.toml", SWEEP);
    for (records, name) in [("all", "a"), ("none", "n")] {
        let (whole, merged) = (format!("whole-{name}"), format!("merged-{name}"));
        let more = ["--records", records];
        bench.run(&[&["run", "parts.toml", "--out", &whole], &more[..]].concat()).succeeds();
        let folders: Vec<_> = (1..=3).map(|at| format!("{name}{at}")).collect();
        let counts: Vec<u64> = (1..=3)
            .map(|at| {
                let (shard, to) = (format!("{at}/4"), &folders[at - 1]);
                let shard = if at == 3 { "3-4/4".to_owned() } else { shard };
                let told = part(&bench, "parts.toml", &shard, to, &[&more[..], &["--json=runs"]].concat());
                assert_eq!(told.summary()["shard"], shard);
                told.summary()["repetitions"].as_u64().unwrap()
            })
            .collect();
        assert!(counts.iter().all(|&count| count >= 3) && counts.iter().sum::<u64>() == 18, "{counts:?}");
        let folders: Vec<&str> = folders.iter().rev().map(String::as_str).collect();
        let seen = bench.run(&[&["merge", "-o", &merged], &folders[..]].concat());
        assert!(seen.succeeds().out.contains("Report: merged-"), "{}", seen.out);
        assert_same_run(&bench.path(&merged), &only(&bench, &whole));
        let resolved = |run: &Path| fs::read(run.join("scenario.toml")).unwrap();
        assert_eq!(resolved(&bench.path(&merged)), resolved(&only(&bench, &whole)));
        assert_eq!(entries(&bench.path(folders[0])).len(), 2, "merge leaves the parts as they were");
    }
}

#[test]
fn a_killed_part_goes_on_where_it_was_and_changes_nothing() {
    let bench = Bench::new();
    bench.file("long.toml", LONG);
    let again = ["run", "long.toml", "--shard", "1/2", "-o", "killed", "--jobs", "1"];
    let finished = || journal_lines(&bench.path("killed")).len();
    let mut child = bench.start(&again);
    for wanted in [1, 3] {
        wait_until("a finished repetition", || finished() >= wanted);
        // Stopped, it cannot end meanwhile, and still holds its part.
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        bench.run(&again).fails(2, &["another process works on it"]);
        child.kill().unwrap();
        child.wait().unwrap();
        let seen = bench.run(&["merge", "killed", "-o", "merged"]);
        seen.fails(2, &["of 80 repetitions are missing", "talkpath run --resume killed", "part 2/2"]);
        assert!(!bench.path("merged").exists(), "nothing is written");
        child = bench.start(&again);
    }
    Seen::of_child(child).succeeds();
    part(&bench, "long.toml", "2/2", "second", &[]);
    bench.run(&["merge", "killed", "second", "-o", "merged"]).succeeds();
    bench.run(&["run", "long.toml"]).succeeds();
    assert_same_run(&bench.path("merged"), &bench.only_run());
}

#[test]
fn parts_that_do_not_make_one_run_are_refused_by_name() {
    let bench = Bench::new();
    bench.file("parts.toml", SWEEP);
    let none = ["--records", "none"];
    let with = |more: &[&'static str]| [&none[..], more].concat();
    part(&bench, "parts.toml", "1/3", "a", &none);
    part(&bench, "parts.toml", "2/3", "b", &none);
    part(&bench, "parts.toml", "2/3", "b-again", &none);
    part(&bench, "parts.toml", "3/3", "c", &none);
    part(&bench, "parts.toml", "3/4", "of-four", &none);
    part(&bench, "parts.toml", "3/3", "seed", &with(&["--seed", "9"]));
    part(&bench, "parts.toml", "3/3", "repeat", &with(&["--repeat", "2"]));
    part(&bench, "parts.toml", "3/3", "scenario", &with(&["--set", "duration=3 s"]));
    part(&bench, "parts.toml", "3/3", "rows", &["--records", "summary"]);
    part(&bench, "parts.toml", "3/3", "version", &none);
    let plan = bench.path("version/parts/plan.json");
    let text = fs::read_to_string(&plan).unwrap();
    fs::write(&plan, text.replace("\"talkpath\": \"", "\"talkpath\": \"9.")).unwrap();
    part(&bench, "parts.toml", "3/3", "foreign", &none);
    let journal = bench.path("foreign/parts/figures-0.jsonl");
    let others = fs::read(bench.path("a/parts/figures-0.jsonl")).unwrap();
    fs::write(&journal, [fs::read(&journal).unwrap(), others].concat()).unwrap();
    bench.run(&["run", "parts.toml", "--records", "none"]).succeeds();
    let whole = bench.only_run().to_str().unwrap().to_owned();
    for (third, says) in [
        ("b-again", "b and b-again both hold part 2/3"),
        ("of-four", "of-four: part 3/4, but a is part 1/3"),
        ("seed", "seed: seed 9, but a has seed 1"),
        ("repeat", "repeat: 2 repetitions, but a has 3"),
        ("scenario", "scenario: part of another scenario than a: `duration = \"3 s\"` here"),
        ("rows", "rows: --records summary, but a has --records none"),
        ("version", "version: talkpath 9."),
        ("foreign", "foreign: holds cell "),
        ("nothing", "nothing: no such directory"),
        (&whole, "a run, not a part of one"),
    ] {
        bench.run(&["merge", "a", "b", third, "-o", "merged"]).fails(2, &[says]);
        assert!(!bench.path("merged").exists(), "{third}");
    }
    bench.run(&["merge", "a", "b", "-o", "merged"]).fails(2, &["not among the directories: part 3/3"]);
    bench.run(&["merge", "a", "b", "c", "-o", "a"]).fails(2, &["a: is there already"]);
    bench.run(&["merge", "a", "b", "--partial", "-o", "some", "--json=runs"]).succeeds();
    let some = read_json(&bench.path("some/summary.json"));
    assert_eq!((&some["valid"], &some["comparisons"]), (&Value::Bool(false), &Value::Array(Vec::new())));
    assert!(some["warnings"][0].as_str().unwrap().contains("of 18 repetitions are missing"), "{some}");
    bench.run(&["merge", "a", "b", "c", "-o", "merged"]).succeeds();
    for (arguments, says) in [
        (&["run", "parts.toml", "--shard", "4/3"][..], "as in 2/4"),
        (&["run", "parts.toml", "--shard", "1/3", "-o", "b"], "b: holds part 2/3, not 1/3"),
        (&["run", "parts.toml", "--shard", "1/3", "-o", "a", "--seed", "5"], "another scenario"),
        (&["run", "parts.toml", "--shard", "1/3", "--arena", "emu"], "one machine runs them all"),
        (&["run", "parts.toml", "--shard", "1/3", "--strict"], "neither --strict nor --junit"),
        (&["compare", "--shard", "1/3"], "`compare` adds repetitions"),
        (&["report", "a"], "part 1/3 of a run"),
        (&["export", "a", "--format", "csv"], "part 1/3 of a run"),
    ] {
        bench.run(arguments).fails(2, &[says]);
    }
}

#[test]
fn a_plan_has_every_cell_with_its_keys_the_seeds_and_a_cost() {
    let bench = Bench::new();
    bench.file("parts.toml", SWEEP);
    let plan = bench.run(&["plan", "parts.toml", "--json=runs", "--seed", "7"]).summary();
    bench.run(&["run", "parts.toml", "--seed", "7", "--records", "none"]).succeeds();
    let summary = read_json(&bench.only_run().join("summary.json"));
    let runs = summary["runs"].as_array().unwrap();
    let cells = plan["cells"].as_array().unwrap();
    assert_eq!((cells.len(), plan["repeat"].as_u64()), (6, Some(3)));
    for run in runs {
        let cell = &cells[usize::try_from(run["cell"].as_u64().unwrap()).unwrap()];
        assert_eq!((&cell["cell"], &cell["sweep"]), (&run["cell"], &run["sweep"]));
        let repetition = usize::try_from(run["repetition"].as_u64().unwrap()).unwrap();
        assert_eq!(plan["seeds"][repetition], run["seed"]);
    }
    let cost = |of: &Value| of["cost_s"].as_f64().unwrap();
    let all: f64 = cells.iter().map(cost).sum::<f64>() * 3.0;
    assert!(cells.iter().all(|cell| cost(cell) > 0.0) && (all - cost(&plan)).abs() < 1e-6, "{plan}");
    let told = bench.run(&["plan", "parts.toml", "-o", "given"]);
    assert!(
        told.succeeds().out.contains("18 repetitions in all: 6 cells, 3 repetitions of each"),
        "{}",
        told.out
    );
    // What is written is what a machine without the user's file runs its part of.
    part(&bench, "given/scenario.toml", "1/2", "one", &[]);
    part(&bench, "parts.toml", "2/2", "two", &[]);
    bench.run(&["merge", "one", "two", "-o", "merged"]).succeeds();
}
