//! `[program]` in scenarios: programs of the user in each repetition of a run. The programs are talkpath's
//! own and the shell, so that every machine has them.

use std::fs;
use std::path::Path;

use crate::harness::{Bench, Seen, read_json, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_talkpath");

/// A scenario whose program is the shell with this script.
fn script(duration: &str, script: &str, more: &str) -> String {
    format!(
        "duration = \"{duration}\"\npath = \"lan\"\n[flow]\n[program]\ncommand = [\"sh\", \"-c\", {script:?}]\n{more}\n"
    )
}

/// Runs the scenario `text` with its program. `None` where this machine does not allow it, which is printed.
fn run(bench: &Bench, text: &str, more: &[&str]) -> Option<Seen> {
    bench.file("a.toml", text);
    bench.emulate(&[&["run", "a.toml", "--allow-program"], more].concat())
}

/// Whether a process has this text in its command line.
fn is_running(text: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(text))
}

#[test]
fn a_program_runs_only_if_the_user_allows_it_and_the_refusal_says_what_it_would_run() {
    let bench = Bench::new();
    let marker = bench.path("it-ran");
    let command = format!("touch {}", marker.display());
    bench.file("a.toml", script("5 s", &command, ""));
    let shown = format!("`sh -c \"{command}\"`");
    for arguments in
        [&["run", "a.toml"][..], &["run", "a.toml", "--arena", "emu"], &["run", "a.toml", "--shard", "1/2"]]
    {
        bench.run(arguments).fails(2, &[&shown, "--allow-program"]);
    }
    // A directory from somebody else runs nothing either.
    let dir = bench.path("theirs");
    fs::create_dir_all(dir.join("parts")).unwrap();
    fs::copy(bench.path("a.toml"), dir.join("scenario.toml")).unwrap();
    fs::write(dir.join("parts/plan.json"), "{}").unwrap();
    bench.run(&["run", "--resume", "theirs"]).fails(2, &[&shown, "--allow-program"]);
    bench
        .run(&["run", "a.toml", "--allow-program", "--arena", "sim"])
        .fails(2, &["Only `talkpath run --allow-program`", "emu"]);
    bench.file("c.toml", "name = \"c\"\nlength = \"1 h\"\nhost.a.local = true\n[measure.m]\nscenario = \"a.toml\"\nevery = \"10 min\"\n");
    let campaign = bench.run(&["campaign", "check", "c.toml"]);
    assert_eq!(campaign.code, Some(2), "{}", campaign.err);
    assert!(!marker.exists() && bench.runs().is_empty());
}

/// A reflector at the far end, and a prober at the near end whose JSON is read back. Its round trips are the
/// delays of the path, so the figure can be checked by hand.
#[test]
fn a_figure_of_a_program_is_swept_like_any_figure_and_thresholds_name_it() {
    let bench = Bench::new();
    let text = format!(
        "duration = \"20 s\"\nrepeat = 2\npath = {{ up = {{ rate = \"10 Mbps\", delay = \"5 ms\" }}, down = {{ rate = \"10 Mbps\", delay = \"5 ms\" }} }}\n\
         [flow]\n[program]\ncommand = [{PROGRAM:?}, \"stamp\", \"--to\", \"192.0.2.2\", \"--count\", \"10\", \"--interval\", \"10ms\", \"--wait\", \"500ms\", \"--json\"]\n\
         server = [{PROGRAM:?}, \"stamp\", \"--reflect\", \"--open\"]\n\
         figures.rtt = {{ json = \"$.round_trip_delay_ms.min\", unit = \"ms\", better = \"less\" }}\n\
         figures.received = {{ regex = '\"received\": ([0-9]+)' }}\n\
         [sweep]\n\"path.up.delay\" = [\"5 ms\", \"30 ms\"]\n\"path.down.delay\" = [\"5 ms\", \"60 ms\"]\n\
         [thresholds]\n\"program.received.min\" = \">= 10\"\n\"program.rtt@path.up.delay=30 ms, path.down.delay=60 ms\" = \">= 90\"\n"
    );
    let Some(seen) = run(&bench, &text, &[]) else { return };
    seen.succeeds();
    assert!(seen.out.contains("The program") && seen.out.contains("rtt, ms"), "{}", seen.out);
    assert!(seen.out.contains("--allow-program"), "it can be run again: {}", seen.out);
    let dir = bench.only_run();
    let summary = read_json(&dir.join("summary.json"));
    let cells = summary["cells"].as_array().unwrap();
    for (cell, least) in cells.iter().zip([10.0, 65.0, 35.0, 90.0]) {
        let rtt = &cell["program"]["rtt"];
        let mean = rtt["mean"].as_f64().unwrap();
        assert!((least..least + 20.0).contains(&mean), "{}: {mean}", cell["sweep"]);
        assert_eq!(cell["program"]["received"]["mean"], 10.0);
    }
    assert_eq!(summary["runs"].as_array().unwrap().len(), 8);
    assert!(fs::read_to_string(dir.join("program.txt")).unwrap().matches("=== ").count() == 8);
    bench.run(&["report", &dir.to_string_lossy(), "--figures", "figures"]).succeeds();
    let map = fs::read_to_string(bench.path("figures/heat-program-rtt.svg")).unwrap();
    assert!(map.contains("rtt, ms"), "{map}");
    bench.run(&["replay", &dir.to_string_lossy()]).succeeds();
    assert!(!is_running("--reflect"), "the server has ended with the command");
    let wrong = text.replace("program.received.min", "program.recieved");
    bench.file("b.toml", wrong);
    bench
        .run(&["run", "b.toml", "--allow-program"])
        .fails(2, &["the program has no figure `recieved`", "did you mean `received`?"]);
}

#[test]
fn a_program_that_fails_or_takes_too_long_is_a_failed_repetition_whose_output_is_kept() {
    let bench = Bench::new();
    let figures = "timeout = \"1 s\"\nfigures.score = { regex = \"score ([0-9]+)\" }\n[sweep]\n\"program.command\" = [\
        [\"sh\", \"-c\", \"echo score 7\"], [\"sh\", \"-c\", \"echo some words; echo more >&2; exit 3\"], \
        [\"sh\", \"-c\", \"echo begun; sleep 5479\"], [\"sh\", \"-c\", \"echo no figure\"], [\"sh\", \"-c\", \"kill -KILL $$\"]]";
    let Some(seen) = run(&bench, &script("20 s", "true", figures), &[]) else { return };
    seen.fails(1, &["the program failed in 4 of 5 repetitions"]);
    let summary = read_json(&bench.only_run().join("summary.json"));
    let failure =
        |cell: usize| summary["runs"][cell]["program"]["failure"].as_str().unwrap_or_default().to_owned();
    let score = |cell: usize| summary["runs"][cell]["program"]["figures"]["score"].clone();
    assert_eq!((failure(0), score(0)), (String::new(), 7.0.into()));
    for (cell, expected) in [
        (1, "it ended with exit code 3"),
        (2, "it took longer than its timeout of 1 s"),
        (3, "its figure score is not there: nothing in the output matches score ([0-9]+)"),
        (4, "signal 9 ended it"),
    ] {
        assert_eq!((failure(cell), score(cell).is_null()), (expected.to_owned(), true));
    }
    let kept = fs::read_to_string(bench.only_run().join("program.txt")).unwrap();
    for expected in ["some words", "--- standard error\nmore", "begun", "no figure"] {
        assert!(kept.contains(expected), "{kept}");
    }
    assert!(!is_running("sleep 5479"), "what a command leaves behind is killed");
    // A program that cannot be run at all is a mistake, and no result.
    let missing = script("20 s", "", "").replace("\"sh\"", "\"no-such-program\"");
    bench.file("a.toml", missing);
    bench.run(&["run", "a.toml", "--allow-program"]).fails(3, &["no-such-program cannot be run"]);
}

#[test]
fn a_killed_run_leaves_no_program_and_goes_on_only_if_the_user_allows_it_again() {
    let bench = Bench::new();
    let text = script(
        "30 s",
        "sleep 0.3; test -e go-on || exec sleep 5481",
        "[sweep]\n\"path.up.delay\" = [\"1 ms\", \"2 ms\", \"3 ms\"]",
    );
    bench.file("a.toml", &text);
    bench.file("go-on", "");
    let Some(_) = bench.emulate(&[
        "run",
        &bench.file("probe.toml", script("2 s", "true", "")).to_string_lossy(),
        "--allow-program",
        "--out",
        "probe",
    ]) else {
        return;
    };
    let mut child = bench.start(&["run", "a.toml", "--allow-program"]);
    wait_until("a part is there", || bench.runs().first().is_some_and(|dir| has_parts(dir)));
    fs::remove_file(bench.path("go-on")).unwrap();
    wait_until("the next one sleeps", || is_running("sleep 5481"));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the program has gone", || !is_running("sleep 5481"));
    bench.file("go-on", "");
    let dir = bench.only_run();
    let dir = dir.to_string_lossy();
    bench.run(&["run", "--resume", &dir]).fails(2, &["--allow-program"]);
    bench.run(&["run", "--resume", &dir, "--allow-program"]).succeeds();
    assert_eq!(read_json(&Path::new(&*dir).join("summary.json"))["runs"].as_array().unwrap().len(), 3);
}

fn has_parts(dir: &Path) -> bool {
    fs::metadata(dir.join("parts/figures-0.jsonl")).is_ok_and(|file| file.len() > 0)
}
