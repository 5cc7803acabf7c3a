//! Run directories: what is in them, that a seed repeats them byte for byte, and what a signal leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Bench, LONG, SHORT, Seen, entries, journal_lines, names, read_json, wait_until};

const RECORDS: [&str; 2] = ["packets.parquet", "series.parquet"];

#[test]
fn a_finished_run_holds_the_promised_files_and_nothing_else() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let seen = bench.run(&["run", "call.toml"]);
    let run = bench.only_run();
    let files =
        ["log.txt", "packets.parquet", "report.html", "scenario.toml", "series.parquet", "summary.json"];
    assert_eq!(names(&run), files);
    assert!(seen.succeeds().out.contains(&format!("Report: {}", "talkpath-runs/")), "{}", seen.out);
    let name = run.file_name().unwrap().to_str().unwrap();
    assert!(
        name.ends_with("Z-short-call") && name.len() == "2026-11-21T19-05-07Z-short-call".len(),
        "{name}"
    );
}

#[test]
fn a_summary_names_the_revision_that_the_program_was_built_from() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let summary = bench.run(&["run", "call.toml", "--json=runs"]).succeeds().summary();
    let here = env!("CARGO_MANIFEST_DIR");
    let git = Command::new("git").args(["-C", here, "ls-files", "--error-unmatch", "build.rs"]).output();
    let is_checkout = git.is_ok_and(|output| output.status.success());
    match summary["provenance"]["revision"].as_str() {
        None => assert!(!is_checkout, "{}", summary["provenance"]),
        Some(revision) => {
            let digits = revision.strip_suffix("-dirty").unwrap_or(revision);
            // As long as build.rs wants it.
            let is_long = digits.len() >= 12;
            assert!(is_long && digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{revision}");
        }
    }
}

#[test]
fn the_resolved_scenario_repeats_the_run() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    bench.run(&["run", "call.toml", "--seed", "5", "--set", "path.up.loss=0.1", "--out", "first"]).succeeds();
    let first = entries(&bench.path("first")).remove(0);
    let resolved = first.join("scenario.toml");
    bench.run(&["run", resolved.to_str().unwrap(), "--out", "second"]).succeeds();
    let second = entries(&bench.path("second")).remove(0);
    assert_eq!(fs::read(resolved).unwrap(), fs::read(second.join("scenario.toml")).unwrap());
    assert_same_records(&first, &second);
}

#[test]
fn records_are_the_same_bytes_on_any_number_of_jobs_and_differ_with_the_seed() {
    let bench = Bench::new();
    bench.file("long.toml", LONG);
    let run = |out: &str, jobs: &str, seed: &str| {
        let arguments = ["run", "long.toml", "--repeat", "3", "--set", "path.up.loss=0.01"];
        let mut command = bench.command(&arguments);
        let output = command.args(["--jobs", jobs, "--seed", seed, "--out", out]).output().unwrap();
        Seen::of(output).succeeds();
        entries(&bench.path(out)).remove(0)
    };
    let one = run("one", "1", "1");
    assert_same_records(&one, &run("five", "5", "1"));
    let packets = |run: &Path| fs::read(run.join("packets.parquet")).unwrap();
    assert!(packets(&one) != packets(&run("other", "2", "2")), "another seed loses the same messages");
}

#[test]
fn runs_of_the_same_second_have_directories_of_their_own() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let children: Vec<Child> = (0..4).map(|_| bench.start(&["run", "call.toml"])).collect();
    for child in children {
        Seen::of_child(child).succeeds();
    }
    assert_eq!(bench.runs().len(), 4);
}

#[test]
fn a_flow_whose_connection_never_opens_is_warned_of() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let run = |transport: &str| {
        let transport = format!("flow.call.transport={transport}");
        let set = ["--set", "path.up.loss=100%", "--set", &transport, "--repeat", "2"];
        bench.run(&[&["run", "call.toml"], &set[..]].concat()).succeeds().out.clone()
    };
    let seen = run("tcp");
    assert_eq!(seen.matches("no message was sent by call: the connection did not open").count(), 1, "{seen}");
    let seen = run("udp");
    assert!(!seen.contains("no message was sent"), "{seen}");
}

#[test]
fn records_none_and_summary_leave_files_out_and_the_summary_whole() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let run = |records: &str| {
        bench.run(&["run", "call.toml", "--records", records, "--out", records]).succeeds();
        entries(&bench.path(records)).remove(0)
    };
    let (all, summary, none) = (run("all"), run("summary"), run("none"));
    assert_eq!(
        names(&summary),
        ["log.txt", "report.html", "scenario.toml", "series.parquet", "summary.json"]
    );
    assert_eq!(names(&none), ["log.txt", "report.html", "scenario.toml", "summary.json"]);
    let figures = |run: &Path| read_json(&run.join("summary.json"))["runs"].clone();
    assert_eq!(figures(&all), figures(&summary));
    assert_eq!(figures(&all), figures(&none));
}

#[test]
fn the_report_can_be_written_again_from_the_run_directory() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    bench.run(&["run", "call.toml", "--set", "path.up.loss=0.05"]).succeeds();
    let run = bench.only_run();
    let page = run.join("report.html");
    let first = fs::read_to_string(&page).unwrap();
    fs::remove_file(&page).unwrap();
    let name = format!("talkpath-runs/{}", run.file_name().unwrap().to_str().unwrap());
    bench.run(&["report", &name]).succeeds();
    assert_eq!(fs::read_to_string(&page).unwrap(), first);
    bench.run(&["report", &name, "-o", "page.html"]).succeeds();
    assert_eq!(fs::read_to_string(bench.path("page.html")).unwrap(), first);
}

#[test]
fn a_simulated_run_without_rows_is_run_again_for_its_page_its_figures_and_its_tables() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let run = |records: &str| {
        let sweep = ["run", "call.toml", "--sweep", "path.up.loss=0,0.05", "--repeat", "2"];
        bench.run(&[&sweep[..], &["--records", records, "--out", records]].concat()).succeeds();
        format!("{records}/{}", names(&bench.path(records))[0])
    };
    let (all, none) = (run("all"), run("none"));
    for table in ["messages", "series"] {
        let rows = |name: &str| {
            let export = ["export", name, "--format", "csv", "--table", table];
            bench.run(&export).succeeds().out.clone()
        };
        assert!(rows(&none).lines().count() > 5, "{table}");
        assert!(rows(&all) == rows(&none), "{table}");
    }
    let seen = bench.run(&["report", &none, "--figures", "figures"]);
    assert!(seen.succeeds().out.contains("Report:"), "{}", seen.out);
    assert!(names(&bench.path("figures")).contains(&"sweep-call.svg".to_owned()));
    let figures = |name: &str| figures_of(&bench.path(name).join("report.html"));
    assert!(figures(&all) == figures(&none), "the page of a run without rows draws the same");
    let older = bench.path(&none).join("summary.json");
    let text = fs::read_to_string(&older).unwrap();
    let version = concat!("\"talkpath\": \"", env!("CARGO_PKG_VERSION"), "\"");
    assert!(text.contains(version));
    fs::write(&older, text.replace(version, "\"talkpath\": \"0.0.1\"")).unwrap();
    bench.run(&["report", &none]).fails(2, &["there is no packets.parquet beside it"]);
    let export = bench.run(&["export", &none, "--format", "csv"]);
    export.fails(2, &["packets.parquet", "version 0.0.1 ran it, and another may draw other numbers"]);
}

/// What is drawn on a page.
fn figures_of(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    text.split("<figure").skip(1).map(|it| it.split("</figure>").next().unwrap().to_owned()).collect()
}

#[test]
fn compare_writes_no_rows_in_sim_and_loses_nothing_by_it() {
    let bench = Bench::new();
    let compare = |out: &str, flags: &[&str]| {
        let arguments =
            ["compare", "--transports", "udp,tcp", "--repeat", "3", "--duration", "5s", "--out", out];
        bench.run(&[&arguments[..], flags].concat()).succeeds();
        entries(&bench.path(out)).remove(0)
    };
    let (kept, all) = (compare("kept", &[]), compare("all", &["--records", "all"]));
    assert_eq!(names(&kept), ["log.txt", "report.html", "scenario.toml", "summary.json"]);
    let figures = |run: &Path| {
        let summary = read_json(&run.join("summary.json"));
        (summary["runs"].clone(), summary["cells"].clone(), summary["percentiles"].clone())
    };
    assert!(figures(&kept) == figures(&all), "figures are exact without rows on disk");
    let drawn = figures_of(&kept.join("report.html"));
    assert!(drawn.len() > 3 && drawn == figures_of(&all.join("report.html")), "{}", drawn.len());
    fs::remove_file(kept.join("report.html")).unwrap();
    bench.run(&["report", kept.to_str().unwrap()]).succeeds();
    assert!(drawn == figures_of(&kept.join("report.html")), "drawn again");
    let rows = |run: &Path| {
        let name = run.to_str().unwrap();
        bench.run(&["export", name, "--format", "csv"]).succeeds().out.clone()
    };
    assert!(rows(&kept) == rows(&all));
}

#[test]
fn json_has_the_repetitions_only_if_they_are_asked_for() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let run = |flag: &str| bench.run(&["run", "call.toml", "--repeat", "5", flag]);
    let (short, long) = (run("--json"), run("--json=runs"));
    let (cells, all) = (short.succeeds().summary(), long.succeeds().summary());
    assert!(cells.get("runs").is_none() && cells["cells"] == all["cells"]);
    assert_eq!(all["runs"].as_array().unwrap().len(), 5);
    assert!(2 * short.out.len() < long.out.len());
    run("--json=cells").fails(2, &["--json=runs"]);
}

#[test]
fn on_a_full_disk_the_answer_is_printed_and_then_the_error() {
    let bench = Bench::new();
    bench.file("minute.toml", SHORT);
    let program = env!("CARGO_BIN_EXE_talkpath");
    // No file may be larger: as a full disk, but for the errno.
    let limited = |blocks: u32, flags: &str| {
        let keys = "--set 'duration=90 s' --set 'flow.call.workload.ptime=10 ms'";
        let run = format!("run minute.toml {keys} --repeat 8 {flags}");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec '{program}' {run}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]);
        let seen = Seen::of(bench.prepared(shell, &[]).output().unwrap());
        assert!(seen.out.contains("call") && seen.out.contains("MOS"), "{}", seen.out);
        seen
    };
    // The rows of some repetitions fit (13 kB each) and the summary (69 kB), and not those of all (105 kB).
    limited(160, "").fails(1, &["cannot write", "`--records none` writes the figures alone"]);
    let kept = bench.only_run();
    assert!(!kept.join("packets.parquet").exists() && kept.join("parts").is_dir());
    assert_eq!(read_json(&kept.join("summary.json"))["runs"].as_array().unwrap().len(), 8);
    bench.run(&["run", "--resume", kept.to_str().unwrap()]).succeeds();
    assert!(
        kept.join("packets.parquet").is_file() && !kept.join("parts").exists(),
        "whole once there is room"
    );
    // Not even those of one: all eight are in the answer all the same.
    let seen = limited(20, "--out small");
    seen.fails(1, &["cannot write", "`--out DIR` names another folder"]);
    assert!(seen.out.contains("8 repetitions"), "{}", seen.out);
    limited(400, "--records none --out none").succeeds();
}

#[test]
fn a_sweep_is_answered_on_a_screen_and_its_figures_become_files() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let losses: Vec<String> = (0..20).map(|at| (f64::from(at) / 400.0).to_string()).collect();
    let delays: Vec<String> = (1..=3).map(|at| format!("{} ms", 20 * at)).collect();
    let set = [
        "flow.call.transport=udp,tcp-nodelay".to_owned(),
        format!("path.*.loss=[{}]", losses.join(",")),
        format!("path.up.delay={}", delays.join(",")),
    ];
    let set: Vec<&str> = set.iter().flat_map(|set| ["--sweep", set]).collect();
    let seen = bench.run(&[&["run", "call.toml", "--repeat", "2", "--records", "all"], &set[..]].concat());
    let lines: Vec<&str> = seen.succeeds().out.lines().collect();
    assert!(lines.len() <= 60, "{} lines for 120 cells", lines.len());
    let place = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap();
    assert!(place("call over 60 combinations of") < place("outcome"), "the answer stands first");
    let run = bench.only_run();
    let summary = read_json(&run.join("summary.json"));
    let comparisons = summary["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 60);
    for comparison in comparisons {
        let keys: Vec<&String> = comparison["sweep"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["path.*.loss", "path.up.delay"], "the other swept keys");
        assert_eq!((&comparison["flow"], comparison["cells"].as_array().unwrap().len()), (&"call".into(), 2));
    }
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    let name = format!("talkpath-runs/{}", run.file_name().unwrap().to_str().unwrap());
    bench.run(&["report", &name, "--figures", "figures"]).succeeds();
    let again = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(again == page, "another page than the run's: {} and {} bytes", again.len(), page.len());
    let files = names(&bench.path("figures"));
    for file in ["sweep-call.svg", "heat-winner-call.svg", "first-ccdf-rtt.svg", "last-goodput.svg"] {
        assert!(files.contains(&file.to_owned()), "{file} is not among {files:?}");
    }
    let refused = bench.run(&["report", &name, &name, "--figures", "f"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
}

#[test]
fn a_swept_comparison_names_the_commands_that_write_its_maps_and_its_table() {
    let bench = Bench::new();
    let swept = ["--sweep", "path.*.loss=0,2%", "--sweep", "path.*.delay=10ms,50ms"];
    let short = ["compare", "--alone", "--transports", "udp,tcp", "--duration", "2s", "--repeat", "3"];
    let seen = bench.run(&[&short[..], &swept[..], &["--explain"]].concat());
    let out = &seen.succeeds().out;
    let after = |text: &str| {
        let line = out.lines().find_map(|line| line.strip_prefix(text));
        let line = line.unwrap_or_else(|| panic!("no {text} in {out}"));
        line.split(' ').skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let figures = after("The report's figures as files, heat maps among them: ").join(" ");
    let figures = figures.replace("DIR", "figures");
    bench.run(&figures.split(' ').collect::<Vec<_>>()).succeeds();
    let map = fs::read_to_string(bench.path("figures").join("heat-winner-call.svg")).unwrap();
    for said in ["loss, each way (path.*.loss)", ">2%<", ">50ms<", "No other traffic beside"] {
        assert!(map.contains(said), "no {said} in {map}");
    }
    let table = after("The figures of every cell as a table: ");
    let table = bench.run(&table.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(table.succeeds().out.lines().any(|row| row.contains("tcp") && row.contains("call.mos")));
    let place = |text: &str| out.find(text).unwrap_or_else(|| panic!("no {text} in {out}"));
    let note = place("note: the repetitions of all cells with path.*.loss=0 are the same");
    assert!(place("outcome") < note && note < place("best     of the transports"), "{out}");
    assert!(!out.contains("warning:"), "{out}");
    assert!(out.contains("outcome  distinct: one is best"), "{out}");
}

#[test]
fn several_runs_are_laid_side_by_side_on_one_page() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    for (out, loss) in [("monday", "0.0"), ("tuesday", "0.05")] {
        bench.run(&["run", "call.toml", "--out", out, "--set", &format!("path.up.loss={loss}")]).succeeds();
    }
    let run = |out: &str| {
        let entry = fs::read_dir(bench.path(out)).unwrap().next().unwrap().unwrap().path();
        entry.to_str().unwrap().to_owned()
    };
    bench.run(&["report", &run("monday"), &run("tuesday"), "-o", "both.html"]).succeeds();
    let page = fs::read_to_string(bench.path("both.html")).unwrap();
    let loss = |out: &str| {
        let summary = read_json(&Path::new(&run(out)).join("summary.json"));
        let share = summary["runs"][0]["flows"]["call"]["loss_rate"].as_f64().unwrap();
        format!("{:.2}", share * 100.0)
    };
    assert_ne!(loss("monday"), loss("tuesday"));
    assert!([loss("monday"), loss("tuesday")].iter().all(|loss| page.contains(&format!(">{loss}<"))));
    assert!(page.contains("Transports compared") && !page.contains("class=\"verdict\""));
}

#[test]
fn exports_hold_one_line_a_message_and_leg() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    bench.run(&["run", "call.toml"]).succeeds();
    let run = bench.only_run();
    let run = run.to_str().unwrap();
    let csv = bench.run(&["export", run, "--format", "csv"]);
    let lines: Vec<&str> = csv.succeeds().out.lines().collect();
    assert!(lines[0].starts_with("cell,repetition,flow,leg,seq,size,due_ns"), "{}", lines[0]);
    // 2 s of a frame every 20 ms, there and back.
    assert_eq!(lines.len(), 1 + 2 * 100);
    bench.run(&["export", run, "--format", "jsonl", "-o", "rows.jsonl"]).succeeds();
    let rows = fs::read_to_string(bench.path("rows.jsonl")).unwrap();
    let first: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!((&first["flow"], &first["size"]), (&"call".into(), &172.into()));
    assert_eq!(rows.lines().count(), 2 * 100);
    let log = bench.run(&["export", run, "--format", "log"]);
    assert!(log.succeeds().out.contains("Packets expected: 100"), "{}", log.out);
}

#[test]
fn an_interrupted_run_keeps_what_is_finished_and_says_what_is_missing() {
    let bench = Bench::new();
    bench.file("long.toml", LONG);
    for signal in [Signal::INT, Signal::TERM] {
        let out = format!("{signal:?}");
        let child = bench.start(&["run", "long.toml", "--json=runs", "--out", &out]);
        wait_until("a finished repetition", || finished_parts(&bench.path(&out)) >= 2);
        send(&child, signal);
        let seen = Seen::of_child(child);
        seen.fails(130, &["interrupted", "talkpath run --resume"]);
        let summary = seen.summary();
        assert_eq!(summary["valid"], false);
        let warning = summary["warnings"].to_string();
        assert!(warning.contains("repetitions are missing"), "{warning}");
        let run = entries(&bench.path(&out)).remove(0);
        assert_eq!(read_json(&run.join("summary.json")), summary);
        assert_eq!(exported(&bench, &run), summarised(&summary));
        assert!(!summarised(&summary).is_empty());
    }
}

#[test]
fn a_killed_run_leaves_whole_repetitions_and_resumes_to_the_same_bytes() {
    let bench = Bench::new();
    bench.file("long.toml", LONG);
    bench.run(&["run", "long.toml", "--out", "whole"]).succeeds();
    let whole = entries(&bench.path("whole")).remove(0);
    let mut child = bench.start(&["run", "long.toml", "--out", "killed"]);
    for wanted in [1, 4, 9] {
        wait_until("a finished repetition", || finished_parts(&bench.path("killed")) >= wanted);
        child.kill().unwrap();
        child.wait().unwrap();
        let run = entries(&bench.path("killed")).remove(0);
        for line in journal_lines(&run) {
            let files = line["files"].as_array().unwrap().iter().map(|file| file[0].as_str().unwrap());
            assert_eq!(files.collect::<Vec<_>>(), ["packets.parquet", "series.parquet"]);
            assert!(line["part"]["summary"].is_object());
        }
        assert!(!run.join("summary.json").exists());
        child = bench.start(&["run", "--resume", run.to_str().unwrap()]);
    }
    Seen::of_child(child).succeeds();
    let run = entries(&bench.path("killed")).remove(0);
    assert_eq!(names(&run), names(&whole));
    assert_same_records(&run, &whole);
    let runs = |run: &Path| read_json(&run.join("summary.json"))["runs"].clone();
    assert_eq!(runs(&run), runs(&whole));
}

/// As above, where nothing but figures is kept.
#[test]
fn a_killed_sweep_without_records_resumes_to_the_same_figures() {
    let bench = Bench::new();
    bench.file("long.toml", LONG);
    let none = ["--records", "none"];
    bench.run(&[&["run", "long.toml", "--out", "whole"][..], &none].concat()).succeeds();
    let whole = entries(&bench.path("whole")).remove(0);
    let mut child = bench.start(&[&["run", "long.toml", "--out", "killed"][..], &none].concat());
    let run = || entries(&bench.path("killed")).remove(0);
    let journal = |run: &Path| -> Vec<_> {
        let is_journal = |path: &PathBuf| path.extension().is_some_and(|it| it == "jsonl");
        entries(&run.join("parts")).into_iter().filter(is_journal).collect()
    };
    let lines = |path: &PathBuf| fs::read_to_string(path).unwrap().matches('\n').count();
    let kept =
        || entries(&bench.path("killed")).first().map_or(0, |run| journal(run).iter().map(lines).sum());
    for wanted in [1, 4, 9] {
        wait_until("a finished repetition", || kept() >= wanted);
        child.kill().unwrap();
        child.wait().unwrap();
        // As if it had been killed in the middle of a line.
        let path = journal(&run()).remove(0);
        let text = fs::read(&path).unwrap();
        fs::write(&path, [&text[..], b"{\"summary\":{\"cell\":0"].concat()).unwrap();
        child = bench.start(&["run", "--resume", run().to_str().unwrap()]);
    }
    Seen::of_child(child).succeeds();
    assert_eq!(names(&run()), names(&whole));
    let runs = |run: &Path| read_json(&run.join("summary.json"))["runs"].clone();
    assert_eq!(runs(&run()), runs(&whole));
}

#[test]
fn resuming_refuses_another_scenario_a_whole_run_and_company() {
    let bench = Bench::new();
    bench.file("long.toml", LONG);
    bench.file("call.toml", SHORT);
    let mut child = bench.start(&["run", "long.toml", "--jobs", "1"]);
    wait_until("a finished repetition", || finished_parts(&bench.path("talkpath-runs")) >= 1);
    let run = bench.only_run();
    let run = run.to_str().unwrap();
    bench.run(&["run", "--resume", run]).fails(2, &["another process"]);
    child.kill().unwrap();
    child.wait().unwrap();
    bench.run(&["run", "call.toml", "--resume", run]).fails(2, &["another scenario"]);
    bench.run(&["run", "--resume", run, "--seed", "99"]).fails(2, &["another scenario"]);
    bench.run(&["run", "--resume", run, "--arena", "emu"]).fails(2, &["another arena"]);
    bench
        .run(&["run", "--resume", run, "--to", "elsewhere"])
        .fails(2, &["ran to no far host, not to elsewhere"]);
    let plan = Path::new(run).join("parts/plan.json");
    let text = fs::read_to_string(&plan).unwrap();
    let mut begun: Value = serde_json::from_str(&text).unwrap();
    if !begun["provenance"]["revision"].is_null() {
        begun["provenance"]["revision"] = "0123456789ab".into();
        fs::write(&plan, begun.to_string()).unwrap();
        bench.run(&["run", "--resume", run]).fails(2, &["revision 0123456789ab began it"]);
        fs::write(&plan, text).unwrap();
    }
    bench.run(&["run", "call.toml", "--out", "short"]).succeeds();
    let whole = entries(&bench.path("short")).remove(0);
    bench.run(&["run", "--resume", whole.to_str().unwrap()]).fails(2, &["it has no parts to go on with"]);
}

#[test]
fn a_game_beside_an_upload_has_its_round_trips_and_the_size_at_which_an_assumed_queue_decides() {
    let bench = Bench::new();
    let game = ["compare", "--line", "10/2", "--workload", "game-60hz", "--repeat", "2", "--duration", "10s"];
    let seen = bench.run(&[&game[..], &["--transports", "udp,tcp-nodelay"]].concat());
    let out = seen.succeeds().out.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [
        "No transport makes the flow game usable while the upload runs: a p50 round trip of ",
        " ms without the flow upload), and ",
        "With fq_codel on the uplink, shaped to 1.9 Mb/s (in the router, ",
        "the flow upload held to 1.6 Mb/s the program that sends it yes 100.00 ",
        "The size of the queue of the uplink decides: it is usable up to ",
    ] {
        assert!(out.contains(text), "no {text} in: {out}");
    }
    let sizes = ["--transports", "udp", "--sweep", "path.up.queue.limit=10ms,400ms"];
    let seen = bench.run(&[&game[..], &sizes].concat());
    assert!(seen.succeeds().out.contains("400ms"), "{}", seen.out);
}

#[test]
fn compare_answers_with_cause_and_cure_and_says_what_to_type_next() {
    let bench = Bench::new();
    let seen = bench.run(&["compare"]);
    for text in [
        "UDP",
        "TCP_NODELAY",
        "QUIC datagrams",
        "QUIC stream/msg",
        "MOS",
        "Report: talkpath-runs/",
        "compare --to HOST",
    ] {
        assert!(seen.succeeds().out.contains(text), "no {text} in: {}", seen.out);
    }
    assert!(!seen.err.contains("repetitions are the same"), "{}", seen.err);
    let run = bench.only_run();
    let summary = read_json(&run.join("summary.json"));
    let runs = summary["runs"].as_array().unwrap();
    let firsts = runs.iter().filter(|run| run["repetition"] == 0);
    let transports: Vec<_> = firsts.map(|run| &run["flows"]["call"]["transport"]).collect();
    let deployed = ["udp", "tcp", "tcp-nodelay", "quic-datagram", "quic-stream", "quic-stream-per-message"];
    // All transports over the line as it is. Then two of them in four variants: the upload is held to a rate,
    // has another congestion control, or is left out, or a router has another queue.
    let (as_given, variants) = transports.split_at(deployed.len());
    assert!(as_given.iter().zip(deployed).all(|(found, expected)| *found == expected), "{as_given:?}");
    assert_eq!(variants.len(), 8);
    assert!(variants.chunks(2).all(|pair| pair == &variants[..2] && *pair[0] == "udp"), "{variants:?}");
    assert_eq!(runs.len() as u64, 14 * summary["cells"][0]["n"].as_u64().unwrap());
    let answer = &summary["comparisons"][0]["answer"];
    assert_eq!(answer["outcome"], "unusable", "64 kB at 1 Mbps hold 512 ms: {answer}");
    assert_eq!(answer["cure"]["change"]["path.up.queue"], "fq_codel");
    assert!(answer["cure"]["mos"].as_f64().unwrap() > 4.0, "{answer}");
    let tried = answer["tried"].as_array().unwrap();
    let is_control = |change: &&Value| change["change"].get("flow.upload.transport.cc").is_some();
    assert_eq!((tried.len(), tried.iter().filter(is_control).count()), (4, 1), "{answer}");
    let others = tried.iter().filter(|change| !is_control(change));
    assert!(others.clone().all(|change| change["mos"].as_f64().unwrap() > 4.0), "{answer}");
    assert_eq!(answer["cure"]["change"]["path.up.rate"], "950 kbps", "{answer}");
    let shown: Vec<&str> = seen.out.split_whitespace().collect();
    for line in ["line", "why", "neighbours"].map(|key| answer[key].as_str().unwrap()) {
        assert!(shown.join(" ").contains(line), "not in the output: {line}");
    }
    for run in runs {
        // 60 s of a frame every 20 ms, less what a handshake over a busy uplink of 64 kB takes (512 ms at 1
        // Mbps).
        let call = &run["flows"]["call"];
        let due = call["sent"].as_u64().unwrap() + call["refused"].as_u64().unwrap();
        assert!((2970..=3000).contains(&due), "{due}");
        // No path is faster than its propagation, 20 ms each way.
        assert!(call["round_trip_delay_ms"]["min"].as_f64().unwrap() > 40.0);
        let Some(upload) = run["flows"].get("upload") else { continue };
        let goodput = upload["goodput_bps"].as_f64().unwrap();
        assert!(goodput > 0.0 && goodput < 1e6, "{goodput} on an uplink of 1 Mbps");
    }
    // What the run directory holds gives the same again, cure included.
    let scenario = run.join("scenario.toml");
    bench.run(&["run", scenario.to_str().unwrap(), "--out", "again", "--records", "none"]).succeeds();
    let again = read_json(&entries(&bench.path("again")).remove(0).join("summary.json"));
    assert_eq!(again["comparisons"], summary["comparisons"]);
}

#[test]
fn repetitions_are_added_until_the_answer_is_settled_and_a_fixed_number_stays() {
    let bench = Bench::new();
    let of = |arguments: &[&str]| {
        let few = ["compare", "--transports", "udp,tcp,tcp-nodelay", "--path", "starlink"];
        let quick = [&few[..], &["--records", "none", "--json=runs", "--quiet"]].concat();
        let seen = bench.run(&[&quick[..], arguments].concat());
        serde_json::from_str::<Value>(&seen.succeeds().out).unwrap()
    };
    let fixed = of(&["--repeat", "2"]);
    assert_eq!(
        (&fixed["cells"][0]["n"], &fixed["comparisons"][0]["answer"]["outcome"]),
        (&2.into(), &"undecided".into())
    );
    let settled = of(&[]);
    assert!(settled["cells"][0]["n"].as_u64().unwrap() >= 20);
    assert_eq!(settled["comparisons"][0]["answer"]["best"], serde_json::json!(["udp", "tcp-nodelay"]));
}

/// Twenty seeds on every path are a job of `cargo xtask weekly`; here are the paths that cost least. On
/// home-adsl-fq one repetition of seed 3 has the call and the upload in one queue of FQ-CoDel, by a collision
/// of its hash, and that one repetition makes UDP the best where the others find it alike.
#[test]
fn other_seeds_give_the_same_answer() {
    let bench = Bench::new();
    for path in ["home-cable-fq", "starlink"] {
        let answers = ["2", "3", "4"].map(|seed| {
            let few = ["compare", "--transports", "udp,tcp,tcp-nodelay", "--path", path, "--seed", seed];
            let seen = bench.run(&[&few[..], &["--records", "none", "--json=runs"]].concat());
            let summary: Value = serde_json::from_str(&seen.succeeds().out).unwrap();
            let answer = &summary["comparisons"][0]["answer"];
            (answer["best"].clone(), answer["outcome"].clone())
        });
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{path}: {answers:?}");
    }
}

/// The k-th repetition of each transport draws the same numbers: only so are differences paired.
#[test]
fn repetitions_share_their_random_numbers_across_transports() {
    let bench = Bench::new();
    let compare = ["compare", "--repeat", "3", "--path", "home-adsl-fq"];
    bench.run(&compare).succeeds();
    let csv =
        bench.run(&["export", bench.only_run().to_str().unwrap(), "--format", "csv"]).succeeds().out.clone();
    let mut rows = csv.lines();
    let head: Vec<&str> = rows.next().unwrap().split(',').collect();
    let at = |name: &str| {
        head.iter().position(|column| *column == name).unwrap_or_else(|| panic!("no {name} in {head:?}"))
    };
    let [cell, repetition, flow, due] = ["cell", "repetition", "flow", "due_ns"].map(at);
    // The upload's first message is due when its connection opens: a round trip after an instant drawn from
    // the first second, and the call's packets before its SYN on the uplink, 1.8 ms each.
    let mut starts: std::collections::BTreeMap<(String, String), u64> = std::collections::BTreeMap::new();
    for row in rows.map(|row| row.split(',').collect::<Vec<_>>()).filter(|row| row[flow] == "upload") {
        let start = starts.entry((row[repetition].to_owned(), row[cell].to_owned())).or_insert(u64::MAX);
        *start = (*start).min(row[due].parse().unwrap());
    }
    let of =
        |number: &str| (0..3).map(|cell| starts[&(number.to_owned(), cell.to_string())]).collect::<Vec<_>>();
    for number in ["0", "1", "2"] {
        let starts = of(number);
        let near = |start: &u64| start.abs_diff(starts[0]) < 10_000_000;
        assert!(starts.iter().all(near), "repetition {number}: {starts:?}");
    }
    assert!(of("0")[0].abs_diff(of("1")[0]) > 10_000_000);
}

#[test]
fn the_commands_to_type_next_keep_what_was_chosen() {
    let bench = Bench::new();
    let chosen = ["--transports", "udp,tcp", "--seed", "7", "--repeat", "2"];
    for (path, named) in [
        (&["--path", "lan"][..], " --path lan"),
        (&[], " --path home-adsl"),
        (&["--up", "5Mbps/20ms", "--down", "20Mbps/20ms"], " --up 5Mbps/20ms --down 20Mbps/20ms"),
    ] {
        let seen = bench.run(&[&["compare"][..], path, &chosen].concat());
        for text in [
            format!("compare --arena emu{named} --transports udp,tcp --seed 7 --repeat 2\n"),
            "compare --to HOST --transports udp,tcp --seed 7 --repeat 2 here\n".to_owned(),
        ] {
            assert!(seen.succeeds().out.contains(&text), "no {text} in: {}", seen.out);
        }
    }
}

#[track_caller]
fn assert_same_records(left: &Path, right: &Path) {
    for file in RECORDS {
        let (left, right) = (fs::read(left.join(file)).unwrap(), fs::read(right.join(file)).unwrap());
        assert!(left == right && left.len() > 100, "{file}: {} and {} bytes differ", left.len(), right.len());
    }
}

/// How many repetitions the one run under `out` has finished.
fn finished_parts(out: &Path) -> usize {
    entries(out).first().map_or(0, |run| journal_lines(run).len())
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// (cell, repetition) of every row in packets.parquet.
fn exported(bench: &Bench, run: &Path) -> Vec<(u64, u64)> {
    let csv = bench.run(&["export", run.to_str().unwrap(), "--format", "csv"]);
    let id = |line: &str| {
        let mut fields = line.split(',').map(|field| field.parse().unwrap());
        (fields.next().unwrap(), fields.next().unwrap())
    };
    let mut ids: Vec<_> = csv.succeeds().out.lines().skip(1).map(id).collect();
    ids.dedup();
    ids
}

/// (cell, repetition) of every run in the summary.
fn summarised(summary: &Value) -> Vec<(u64, u64)> {
    let id = |run: &Value| (run["cell"].as_u64().unwrap(), run["repetition"].as_u64().unwrap());
    summary["runs"].as_array().unwrap().iter().map(id).collect()
}
