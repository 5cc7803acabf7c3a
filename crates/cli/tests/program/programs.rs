//! `[program]` in scenarios: programs of the user in each repetition of a run. The programs are talkpath's
//! own and the shell, so that every machine has them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{fs, thread};

use serde_json::Value;

use crate::harness::{Bench, Seen, read_json, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_talkpath");

/// A scenario whose program is the shell with this script.
fn script(duration: &str, script: &str, more: &str) -> String {
    format!(
        "duration = \"{duration}\"\npath = \"lan\"\n[program]\ncommand = [\"sh\", \"-c\", {script:?}]\n{more}\n"
    )
}

/// Runs the scenario `text` with its program. `None` where this machine does not allow it, which is printed.
fn run(bench: &Bench, text: &str, more: &[&str]) -> Option<Seen> {
    bench.file("a.toml", text);
    bench.emulate(&[&["run", "a.toml", "--allow-program"], more].concat())
}

/// Whether a process that runs in the folder of `bench` has this text in its command line.
fn is_running(bench: &Bench, text: &str) -> bool {
    let folder = bench.path("").canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    // Other tests run such commands at the same time, in folders of their own.
    processes
        .filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder)))
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
    // A campaign measures between live hosts.
    bench.file("key", "0123456789abcdef0123456789abcdef");
    let hosts = "key_file = \"key\"\n[host.here]\nlocal = true\n[host.there]\naddress = \"127.0.0.3\"\n";
    let schedule = "[measure.m]\nscenario = \"a.toml\"\n[schedule]\nevery = \"6 h\"\ndays = 5\n";
    bench.file("c.toml", [hosts, schedule].concat());
    bench
        .run(&["campaign", "check", "c.toml"])
        .fails(2, &["measure.m", &shown, "Only `talkpath run --allow-program`"]);
    assert!(!marker.exists() && bench.runs().is_empty());
}

/// A reflector at the far end, and a prober at the near end whose JSON is read back. Its round trips are the
/// delays of the path, so the figure can be checked by hand.
#[test]
fn a_figure_of_a_program_is_swept_like_any_figure_and_thresholds_name_it() {
    let bench = Bench::new();
    let text = format!(
        "duration = \"20 s\"\nrepeat = 2\npath = {{ up = {{ rate = \"10 Mbps\", delay = \"5 ms\" }}, down = {{ rate = \"10 Mbps\", delay = \"5 ms\" }} }}\n\
         [program]\ncommand = [{PROGRAM:?}, \"stamp\", \"--to\", \"192.0.2.2\", \"--count\", \"10\", \"--interval\", \"10ms\", \"--wait\", \"500ms\", \"--json\"]\n\
         server = [{PROGRAM:?}, \"stamp\", \"--reflect\", \"--open\"]\n\
         figures.rtt = {{ json = \"$.round_trip_delay_ms.min\", unit = \"ms\", better = \"less\" }}\n\
         figures.received = {{ regex = '\"received\": ([0-9]+)' }}\n\
         [sweep]\n\"path.up.delay\" = [\"5 ms\", \"30 ms\"]\n\"path.down.delay\" = [\"5 ms\", \"60 ms\"]\n\
         [thresholds]\n\"program.received.min\" = \">= 10\"\n\"program.rtt.min@path.up.delay=30 ms, path.down.delay=60 ms\" = \">= 90\"\n"
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
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("scenario.toml --arena emu --allow-program"), "the page repeats the run");
    let export = |table: &str| {
        let run = dir.to_string_lossy();
        let seen = bench.run(&["export", &run, "--format", "jsonl", "--table", table]);
        seen.succeeds();
        seen.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let repetitions = export("program");
    assert_eq!(repetitions.len(), 8);
    for (row, run) in repetitions.iter().zip(summary["runs"].as_array().unwrap()) {
        let figures = &run["program"]["figures"];
        assert_eq!((&row["figures_rtt"], &row["figures_received"]), (&figures["rtt"], &figures["received"]));
        assert_eq!((&row["seconds"], &row["failure"]), (&run["program"]["seconds"], &Value::Null), "{row}");
        assert_eq!((&row["cell"], &row["repetition"]), (&run["cell"], &run["repetition"]));
    }
    let delay = repetitions[7]["path_down_delay_s"].as_f64();
    assert_eq!(delay, Some(0.06), "{}", repetitions[7]);
    let of_cells: Vec<Value> = export("cells").into_iter().filter(|row| row["flow"] == "program").collect();
    let rtts: Vec<&Value> =
        of_cells.iter().filter(|row| row["figure"] == "rtt").map(|row| &row["mean"]).collect();
    assert_eq!(rtts, cells.iter().map(|cell| &cell["program"]["rtt"]["mean"]).collect::<Vec<_>>());
    assert_eq!(of_cells.len(), 8, "two figures in each of four cells");
    bench.run(&["replay", &dir.to_string_lossy()]).succeeds();
    assert!(!is_running(&bench, "--reflect"), "the server has ended with the command");
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
    let run = bench.only_run();
    let rows = bench.run(&["export", &run.to_string_lossy(), "--format", "csv", "--table", "program"]);
    let rows: Vec<&str> = rows.succeeds().out.lines().collect();
    assert!(
        rows[0].ends_with(",seed,failure,seconds,figures_score") && rows[1].ends_with(",7.0"),
        "{rows:?}"
    );
    assert!(rows[2].contains(",it ended with exit code 3,") && rows[2].ends_with(','), "{rows:?}");
    assert!(!is_running(&bench, "sleep 5479"), "what a command leaves behind is killed");
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
    wait_until("the next one sleeps", || is_running(&bench, "sleep 5481"));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the program has gone", || !is_running(&bench, "sleep 5481"));
    bench.file("go-on", "");
    let dir = bench.only_run();
    let dir = dir.to_string_lossy();
    bench.run(&["run", "--resume", &dir]).fails(2, &["--allow-program"]);
    bench.run(&["run", "--resume", &dir, "--allow-program"]).succeeds();
    assert_eq!(read_json(&Path::new(&*dir).join("summary.json"))["runs"].as_array().unwrap().len(), 3);
}

/// A name that every process of a test inherits in its environment, and by which it is found.
const MARK: &str = "PROGRAMS_TEST";

/// The processes with this text as the value of [`MARK`], by their folders in /proc.
fn marked(value: &str) -> Vec<PathBuf> {
    let entry = format!("{MARK}={value}");
    let is_marked = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
    };
    let processes = fs::read_dir("/proc").unwrap().filter_map(|process| Some(process.ok()?.path()));
    processes.filter(is_marked).collect()
}

/// A namespace lives as long as a process is inside it or has a descriptor of it, and every process of a run
/// has the mark. Half of the runs have a server, the other half a way out by pasta where pasta is installed.
/// Both ends leave a process behind that is in another session. A run starts its program after 1 to 2 s.
#[test]
fn twenty_runs_killed_at_random_times_leave_no_process_and_no_device() {
    let bench = Bench::new();
    let Some(_) = run(&bench, &script("2 s", "true", ""), &["--out", "probe"]) else { return };
    let devices = || fs::read_dir("/sys/class/net").unwrap().count();
    let before = devices();
    let orphans = "(setsid sleep 5483 &); sleep 5483 & exec sleep 5483";
    let sweep = "[sweep]\n\"path.up.delay\" = [\"1 ms\", \"2 ms\"]";
    bench.file("way-out.toml", script("30 s", orphans, sweep));
    let listener = format!("({orphans}) & exec '{PROGRAM}' stamp --reflect --open");
    let server = format!("server = [\"sh\", \"-c\", {listener:?}]\n{sweep}");
    bench.file("server.toml", script("30 s", orphans, &server));
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    let mut random = talkpath_units::Seed::new(49).stream("kills");
    let (mut met, mut longest) = (0, 0);
    for kill in 0..20 {
        let file = if kill % 2 == 0 { "server.toml" } else { "way-out.toml" };
        let value = format!("{}-{kill}", std::process::id());
        let mut command = bench.command(&["run", file, "--allow-program", "--out", "killed"]);
        command.env(MARK, &value).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let wait = random.below(3000);
        thread::sleep(Duration::from_millis(wait));
        let processes = marked(&value);
        let network = |process: &PathBuf| fs::read_link(process.join("ns/net")).ok();
        met += usize::from(processes.iter().filter_map(network).any(|network| network != own));
        longest = longest.max(processes.len());
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until(&format!("every process of {file}, killed after {wait} ms, to end"), || {
            marked(&value).is_empty()
        });
    }
    assert!(met > 0 && longest > 3, "no kill met a program: {met}, {longest} processes at most");
    wait_until("every device to go", || devices() <= before);
}

/// A study of one claim about a figure that a program prints.
const STUDY: &str = r#"
title = "A program's delay"
authors = ["A. Author"]
year = 2026
source = "nowhere"
question = "Is a longer path longer?"
set_up = "a path"
repeat = 2
quick = { repeat = 2, assumptions = ["base"] }
[[assumption]]
name = "base"
text = "nothing"
[axis.delay]
short = { "path.up.delay" = "5 ms" }
long = { "path.up.delay" = "45 ms" }
[[cells]]
name = "probe-{delay}"
scenario = "probe.toml"
axes = { delay = ["short", "long"] }
[[claim]]
id = "A1"
text = "The round trip is longer by what the path is longer"
published = "40 ms"
expected = "reproduced"
why = "A round trip has the delay of both ways"
basis = "predicted"
check = [{ name = "long less short", metric = "program.figures.rtt", difference = ["probe-long", "probe-short"], between = [30.0, 60.0] }]
"#;

#[test]
fn a_study_judges_the_figures_of_programs_if_the_user_allows_them() {
    let bench = Bench::new();
    fs::create_dir(bench.path("probe")).unwrap();
    bench.file("probe/study.toml", STUDY);
    let scenario = format!(
        "duration = \"20 s\"\npath = {{ up = {{ rate = \"10 Mbps\", delay = \"5 ms\" }}, down = {{ rate = \"10 Mbps\", delay = \"5 ms\" }} }}\n\
         [program]\ncommand = [{PROGRAM:?}, \"stamp\", \"--to\", \"192.0.2.2\", \"--count\", \"10\", \"--interval\", \"10ms\", \"--wait\", \"500ms\", \"--json\"]\n\
         server = [{PROGRAM:?}, \"stamp\", \"--reflect\", \"--open\"]\nfigures.rtt = {{ json = \"$.round_trip_delay_ms.min\" }}\n"
    );
    bench.file("probe/probe.toml", &scenario);
    bench.run(&["study", "run", "probe"]).fails(2, &["the study probe", "--reflect", "--allow-program"]);
    assert!(bench.runs().is_empty());
    let run = ["study", "run", "probe", "--allow-program", "--json"];
    let Some(seen) = bench.emulate(&run) else { return };
    let outcome = seen.succeeds().summary();
    assert_eq!(
        (&outcome["claims"][0]["verdict"], &outcome["arenas"][0]),
        (&"reproduced".into(), &"emu".into())
    );
    let kept = fs::read_to_string(bench.only_run().join("program.txt")).unwrap();
    // A repetition that the machine disturbed has run again.
    for (cell, repetition) in [("short", 0), ("short", 1), ("long", 0), ("long", 1)] {
        let title =
            format!("=== probe-{cell} under base, repetition {repetition}: it ended with exit code 0");
        assert!(kept.contains(&title), "{kept}");
    }
    bench.run(&["study", "run", "probe", "--resume"]).fails(2, &["--allow-program"]);
    bench.run(&["study", "run", "probe", "--resume", "--allow-program"]).succeeds();
    // A metric that the program does not print is a mistake of the study, and a program that fails has no
    // figure.
    bench.file("probe/study.toml", STUDY.replace("figures.rtt", "figures.rrt"));
    bench.run(&["study", "check", "probe"]).fails(2, &["program.figures has no \"rrt\""]);
    bench.file("probe/study.toml", STUDY);
    bench.file("probe/probe.toml", scenario.replace("\"--json\"", "\"--no-such-option\""));
    let failed = bench.run(&["study", "run", "probe", "--allow-program"]);
    failed.fails(1, &["the program failed (it ended with exit code 2)", "program.txt"]);
}

fn has_parts(dir: &Path) -> bool {
    fs::metadata(dir.join("parts/figures-0.jsonl")).is_ok_and(|file| file.len() > 0)
}
