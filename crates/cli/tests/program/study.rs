//! `talkpath study` as a user sees it: the built-in ones, one of one's own, its mistakes, its expectation,
//! its resume.

use crate::harness::{Bench, CALL, Seen, read_json};

const STUDY: &str = r#"
title = "Calls of one's own"
authors = ["A. Author"]
year = 2026
source = "nowhere"
question = "How long does an echo take?"
set_up = "A call alone on an ADSL line."
repeat = 6
quick = { repeat = 2, assumptions = ["base"] }

[arena.emu]
repeat = 1

[[assumption]]
name = "base"
text = "As it is."

[axis.loss]
no = {}
some = { "path.up.loss" = 0.2 }

[[cells]]
name = "call-{loss}"
scenario = "call.toml"
axes = { loss = ["no", "some"] }

[[claim]]
id = "C1"
text = "Loss is lost"
published = "20 %"
expected = "reproduced"
why = "The loss is set in the scenario."
basis = "assumed"
check = [
    { name = "more of it", metric = "flows.call.loss_rate", rising = ["call-no", "call-some"] },
    { name = "not more than so much", metric = "flows.call.loss_rate", cell = "call-some", at_most = 0.5 },
]

[[claim]]
id = "C2"
text = "The kernel's echo takes as long"
published = "within 15 %"
expected = "reproduced"
why = "The path is the same in both."
basis = "predicted"
check = [{ name = "p50", metric = "flows.call.round_trip_delay_ms.p50", cell = "call-no", agree = "15%" }]

[[figure]]
number = "1"
title = "Loss"
medians = { metric = "flows.call.loss_rate", x_title = "case", y_title = "loss, %", x = [0.0, 1.0], lines = [{ label = "call", cells = ["call-no", "call-some"] }] }
"#;

fn bench(study: &str) -> Bench {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    bench.file("study.toml", study);
    bench
}

fn claim<'a>(outcome: &'a serde_json::Value, id: &str) -> &'a serde_json::Value {
    let claims = outcome["claims"].as_array().unwrap();
    claims.iter().find(|claim| claim["id"] == id).unwrap()
}

#[test]
fn the_studies_are_listed_and_shown() {
    let bench = Bench::new();
    let list = bench.run(&["study", "list"]);
    assert!(
        list.succeeds().out.contains("sawashima-1997") && list.out.contains("conformance"),
        "{}",
        list.out
    );
    let shown = bench.run(&["study", "show", "conformance"]);
    assert!(
        shown.succeeds().out.contains("--arena emu: ") && shown.out.contains("expected:"),
        "{}",
        shown.out
    );
    bench.run(&["study", "show", "sawashima-1979"]).fails(2, &["no study", "sawashima-1997"]);
    bench.run(&["study", "run", "conformance", "--claim", "Z9"]).fails(2, &["--claim Z9", "E1"]);
    bench.run(&["study", "run", "conformance", "--arena", "sim,live"]).fails(2, &["live", "sim, emu"]);
}

#[test]
fn a_study_of_ones_own_is_judged_and_leaves_its_outcome() {
    let bench = bench(STUDY);
    let seen = bench.run(&["study", "run", "study.toml", "--json=runs"]);
    let outcome = seen.succeeds().summary();
    let first = claim(&outcome, "C1");
    assert_eq!(
        (&first["verdict"], &first["n"], &first["why"]),
        (&"reproduced".into(), &6.into(), &"The loss is set in the scenario.".into())
    );
    // What compares arenas needs both; a run in one of them disagrees with nothing.
    let second = claim(&outcome, "C2");
    assert_eq!((&second["verdict"], &second["left_out"]), (&"not-tested".into(), &true.into()));
    assert!(second["why"].as_str().unwrap().contains("--arena sim,emu"), "{second}");
    let run = bench.only_run();
    assert_eq!(read_json(&run.join("study.json")), outcome);
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Figure 1: Loss") && page.contains("Loss is lost"));
    let words = "reproduced</abbr>: holds under base. The loss is set in the scenario.";
    assert!(page.contains(words), "{page}");
}

#[test]
fn a_reproduced_claim_says_what_it_rests_on_in_the_terminal() {
    let bench = bench(STUDY);
    let seen = bench.run(&["study", "run", "study.toml", "--claim", "C1", "--quick"]);
    assert!(seen.succeeds().out.contains("\n    why: The loss is set in the scenario.\n"), "{}", seen.out);
    let shown = bench.run(&["study", "show", "study.toml"]);
    assert!(shown.succeeds().out.contains("why:       The loss is set in the scenario."), "{}", shown.out);
}

#[test]
fn the_base_comes_first_in_a_verdict_and_in_the_count() {
    let two_sets = STUDY.replace("[axis.loss]", &format!("{ANOTHER_SET}[axis.loss]"));
    let bench = bench(&format!("{two_sets}{UNDER_ANOTHER_SET}"));
    let seen = bench.run(&["study", "run", "study.toml"]);
    let out = &seen.succeeds().out;
    assert!(
        out.contains("/C1  reproduced, fragile: holds under base alone; fails under lossless\n"),
        "{out}"
    );
    assert!(out.contains("/C3  differs, only-under: fails under base; holds under lossless\n"), "{out}");
    let count = "1 reproduced (1 fragile), 1 differ (1 only-under), 1 not tested.";
    assert!(out.contains(&format!("\n{count}\n")), "{out}");
    let page = std::fs::read_to_string(bench.only_run().join("report.html")).unwrap();
    let explained = "differs</abbr>, <abbr title=\"It fails under the base";
    assert!(page.contains(explained), "{page}");
    assert!(page.contains("only-under</abbr>: fails under base; holds under lossless"), "{page}");
    assert!(page.contains(count), "{page}");
}

/// Sections V and VI of the paper: three senders begin 200 ms after each other, and "there is no packet
/// drop".
#[test]
fn the_three_senders_of_nor_2010_drop_nothing() {
    let bench = Bench::new();
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/nor-2010/senders.toml");
    let seen = bench.run(&["run", scenario, "--json=runs"]);
    let run = &seen.succeeds().summary()["runs"][0];
    assert_eq!(run["links"]["bottleneck"]["dropped"], 0);
    for call in ["first", "second", "third"] {
        let flow = &run["flows"][call];
        assert_eq!((&flow["lost"], &flow["transport"]), (&0.into(), &"dccp-ccid2".into()));
        assert!(flow["received"].as_u64().unwrap() > 3900, "{flow}");
    }
}

const ANOTHER_SET: &str = r#"
[[assumption]]
name = "lossless"
text = "Nothing is lost."
set = { "path.up.loss" = 0.0 }

"#;

/// A claim that holds under that set alone.
const UNDER_ANOTHER_SET: &str = r#"
[[claim]]
id = "C3"
text = "Nothing is lost"
published = "0 %"
expected = "differs"
why = "The loss is set in the scenario."
basis = "assumed"
check = [{ name = "loss", metric = "flows.call.loss_rate", cell = "call-some", at_most = 0.0 }]
"#;

#[test]
fn a_shorter_run_that_leaves_a_deciding_check_out_says_partly_judged() {
    let left_out = STUDY.replace("at_most = 0.5 }", "at_most = 0.5, quick = [] }");
    let judged_bench = bench(&left_out);
    let seen = judged_bench.run(&["study", "run", "study.toml", "--quick", "--strict"]);
    let out = &seen.succeeds().out;
    assert!(out.contains("/C1  partly-judged: 1 of 2 checks judged: holds under base\n"), "{out}");
    assert!(out.contains("0 reproduced, 1 partly judged, 0 differ, 1 not tested."), "{out}");
    assert!(
        seen.err.contains("C1: partly judged") && seen.err.contains("run without --quick"),
        "{}",
        seen.err
    );
    let run = judged_bench.only_run();
    assert_eq!(claim(&read_json(&run.join("study.json")), "C1")["verdict"], "partly-judged");
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("partly-judged</abbr>: 1 of 2 checks judged: holds under base."), "{page}");
    // Without --quick nothing is left out; and what fails is an error whatever was.
    judged_bench.run(&["study", "run", "study.toml"]).succeeds();
    let wrong = left_out.replace("rising = ", "falling = ");
    let seen = bench(&wrong).run(&["study", "run", "study.toml", "--quick", "--strict"]);
    seen.fails(1, &["C1 differs, expected reproduced"]);
}

#[test]
fn a_claim_without_a_why_does_not_load() {
    let silent = STUDY.replace("why = \"The loss is set in the scenario.\"\n", "");
    let seen = bench(&silent).run(&["study", "run", "study.toml"]);
    seen.fails(2, &["1 mistake", "claim.why", "C1 needs a `why`"]);
}

#[test]
fn an_expectation_that_does_not_hold_is_exit_code_1() {
    let wrong =
        STUDY.replace("rising = [\"call-no\", \"call-some\"]", "falling = [\"call-no\", \"call-some\"]");
    let bench = bench(&wrong);
    let seen = bench.run(&["study", "run", "study.toml", "--quick"]);
    seen.fails(1, &["C1 differs, expected reproduced"]);
    assert!(seen.out.contains("asked: "), "{}", seen.out);
    assert!(bench.only_run().join("study.json").is_file());
    // Whether anybody reads the table changes nothing.
    let mut child = bench.start(&["study", "run", "study.toml", "--quick", "--resume"]);
    drop(child.stdout.take());
    Seen::of_child(child).fails(1, &["C1 differs, expected reproduced"]);
}

#[test]
fn every_mistake_is_told_at_once_with_its_place() {
    let wrong = STUDY
        .replace("text = \"As it is.\"", "tekst = \"As it is.\"")
        .replace("at_most = 0.5", "at_mots = 0.5");
    bench(&wrong)
        .run(&["study", "run", "study.toml"])
        .fails(2, &["2 mistakes", "tekst", "at_mots", "study.toml:16:"]);
    let keys = STUDY
        .replace("\"path.up.loss\" = 0.2", "\"path.up.los\" = 0.2")
        .replace("cell = \"call-no\"", "cell = \"call-nix\"");
    bench(&keys).run(&["study", "run", "study.toml"]).fails(2, &["los", "no cell called \"call-nix\""]);
}

#[test]
fn resuming_keeps_what_ran_and_runs_what_was_edited() {
    let bench = bench(STUDY);
    bench.run(&["study", "run", "study.toml", "--quiet"]).succeeds();
    let again = bench.run(&["study", "run", "study.toml", "--resume"]);
    assert!(again.succeeds().err.contains("kept 2 of 2 cells"), "{}", again.err);
    bench.file("study.toml", STUDY.replace("\"path.up.loss\" = 0.2", "\"path.up.loss\" = 0.1"));
    let edited = bench.run(&["study", "run", "study.toml", "--resume"]);
    assert!(edited.succeeds().err.contains("kept 1 of 2 cells"), "{}", edited.err);
    assert_eq!(bench.runs().len(), 1);
    bench.run(&["study", "run", "study.toml", "--resume", "--quick"]).fails(2, &["--resume"]);
}

#[test]
fn another_seed_runs_anew_and_is_kept_apart() {
    let bench = bench(STUDY);
    let outcome = |arguments: &[&str]| -> serde_json::Value {
        let command = [&["study", "run", "study.toml", "--quick", "--json=runs"], arguments].concat();
        serde_json::from_str(&bench.run(&command).succeeds().out).unwrap()
    };
    let loss = |outcome: &serde_json::Value| {
        outcome["cells"][1]["metrics"]["flows.call.loss_rate"]["median"].as_f64().unwrap()
    };
    let (own, other) = (outcome(&[]), outcome(&["--seed", "77"]));
    assert_eq!((&own["seed"], &other["seed"]), (&serde_json::Value::Null, &77.into()));
    assert!((loss(&own) - loss(&other)).abs() > 1e-9, "other draws");
    let resumed = outcome(&["--seed", "77", "--resume"]);
    assert_eq!(resumed, other);
    bench.run(&["study", "run", "study.toml", "--quick", "--seed", "78", "--resume"]).fails(2, &["--resume"]);
    let longer = outcome(&["--set", "duration=2 s"]);
    assert!(longer["warnings"][0].as_str().unwrap().contains("duration = 2 s"), "{longer}");
    bench.run(&["study", "run", "study.toml", "--set", "duratoin=2 s"]).fails(2, &["duratoin", "duration"]);
}

#[test]
fn a_run_s_directory_alone_repeats_it() {
    let bench = bench(STUDY);
    let first = bench.run(&["study", "run", "study.toml", "--quick", "--json=runs"]).succeeds().summary();
    let run = bench.only_run();
    std::fs::remove_file(bench.path("study.toml")).unwrap();
    std::fs::remove_file(bench.path("call.toml")).unwrap();
    let copy = run.join("study").join(first["study"].as_str().unwrap());
    let again =
        bench.run(&["study", "run", copy.to_str().unwrap(), "--quick", "--json=runs"]).succeeds().summary();
    assert_eq!(again, first);
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    let command = format!("talkpath study run study/{}", first["study"].as_str().unwrap());
    assert!(page.contains(&command), "{page}");
}

#[test]
fn the_smallest_study_is_valid_and_comes_out_as_it_expects() {
    let bench = Bench::new();
    let new = bench.run(&["study", "new", "mine-2026"]);
    assert!(new.succeeds().out.contains("study check mine-2026"), "{}", new.out);
    let check = bench.run(&["study", "check", "mine-2026"]);
    assert_eq!(check.succeeds().out, "mine-2026: valid: 2 cells, 2 assumption sets, 1 claim, 1 check\n");
    let run = bench.run(&["study", "run", "mine-2026"]);
    let verdict = "mine-2026/A1  reproduced, fragile: holds under base alone; fails under little-loss\n";
    assert!(run.succeeds().out.contains(verdict), "{}", run.out);
    bench.run(&["study", "run", "mine-2026", "--quick", "--claim", "mine-2026/A1"]).succeeds();
    bench.run(&["study", "new", "mine-2026"]).fails(2, &["the folder exists already"]);
}

#[test]
fn check_tells_every_mistake_and_runs_nothing() {
    let wrong = STUDY
        .replace("cell = \"call-some\"", "cell = \"call-many\"")
        .replace("flows.call.loss_rate\", rising", "flows.call.loss\", rising")
        .replace("basis = \"predicted\"\n", "");
    let bench = bench(&wrong);
    let told =
        ["3 mistakes", "no cell called \"call-many\"", "flows.call has no \"loss\"", "expected a `basis`"];
    bench.run(&["study", "check", "."]).fails(2, &told);
    assert!(bench.runs().is_empty());
    bench.run(&["study", "check", "conformance"]).succeeds();
}

#[test]
fn two_arenas_are_judged_side_by_side() {
    let bench = bench(STUDY);
    let Some(seen) = bench.emulate(&["study", "run", "study.toml", "--arena", "sim,emu", "--json=runs"])
    else {
        return;
    };
    // On a busy machine a repetition may be disturbed; then there is no verdict, and it is said.
    let outcome = seen.summary();
    assert_eq!(outcome["arenas"], serde_json::json!(["sim", "emu"]));
    let second = claim(&outcome, "C2");
    assert_eq!((&second["arena"], &second["left_out"]), (&"sim,emu".into(), &false.into()));
    let elsewhere = &claim(&outcome, "C1")["elsewhere"][0];
    assert_eq!(elsewhere["arena"], "emu");
    let disturbed = outcome["cells"].as_array().unwrap().iter().any(|cell| cell["disturbed"] != 0);
    if !disturbed && outcome["valid"] == true {
        assert_eq!((&second["verdict"], &elsewhere["verdict"]), (&"reproduced".into(), &"reproduced".into()));
    }
    assert!(seen.err.contains("emu: 2 repetitions in real time"), "{}", seen.err);
}

/// A run in real time, as its study.json says it: it needs no namespaces here.
#[test]
fn a_run_over_real_sockets_is_kept_with_its_day_and_quoted_beside_the_simulators() {
    let bench = bench(STUDY);
    bench.run(&["study", "run", "study.toml", "--out", "own"]).succeeds();
    let own = crate::harness::entries(&bench.path("own")).remove(0);
    let mut outcome = read_json(&own.join("study.json"));
    assert!(outcome.get("day").is_none(), "the simulator's figures have no day");
    bench.run(&["study", "keep", &own.display().to_string(), "sim.json"]).succeeds();
    (outcome["arena"], outcome["arenas"]) = ("emu".into(), serde_json::json!(["emu"]));
    for cell in outcome["cells"].as_array_mut().unwrap() {
        cell["arena"] = "emu".into();
    }
    let write = |outcome: &serde_json::Value| bench.file("run.json", outcome.to_string());
    let keep = ["study", "keep", "run.json", "emu.json"];
    write(&outcome);
    bench.run(&keep).fails(2, &["run.json: it has no day", "--arena emu --resume` judges it again"]);
    (outcome["day"], outcome["valid"]) = ("2026-01-02".into(), false.into());
    write(&outcome);
    bench.run(&keep).fails(2, &["run.json: the run is not valid", "--resume` runs what is missing"]);
    outcome["valid"] = true.into();
    write(&outcome);
    bench.run(&keep).succeeds();
    let study = outcome["study"].as_str().unwrap();
    bench.file("page.md", format!("<!-- study {study} verdicts -->\n<!-- end -->\n"));
    let fill = ["study", "fill", "page.md", "--from", "emu.json", "--from", "sim.json"];
    bench.run(&fill).succeeds();
    let page = std::fs::read_to_string(bench.path("page.md")).unwrap();
    assert!(page.contains("| claim | what it says | published | here | verdict |"), "{page}");
    assert!(page.contains("**Over real sockets**") && page.contains("One run, of 2026-01-02"), "{page}");
    bench.run(&[&fill[..], &["--check"]].concat()).succeeds();
    bench
        .run(&[&fill[..], &["--from", "run.json"]].concat())
        .fails(2, &["run.json are both runs of", "in emu"]);
}

/// A study that grew by an assumption set, with the kept run of what it was before.
#[test]
fn a_set_that_was_added_runs_alone_and_the_rest_is_taken_from_the_kept_run() {
    let bench = bench(&format!("{STUDY}{UNDER_ANOTHER_SET}"));
    bench.run(&["study", "run", "study.toml", "--out", "before"]).succeeds();
    let before = crate::harness::entries(&bench.path("before")).remove(0).display().to_string();
    bench.run(&["study", "keep", &before, "kept.json.gz"]).succeeds();
    let grown = STUDY.replace("[axis.loss]", &format!("{ANOTHER_SET}[axis.loss]"));
    bench.file("study.toml", format!("{grown}{UNDER_ANOTHER_SET}"));
    let run = ["study", "run", "study.toml", "--json=runs"];
    let whole = bench.run(&run).succeeds().summary();
    let part = bench.run(&[&run[..], &["--reuse", "kept.json.gz", "--out", "part"]].concat());
    assert!(part.succeeds().err.contains("sim: 2 of 4 cells are those of the earlier run"), "{}", part.err);
    let outcome = part.summary();
    assert_eq!(outcome["claims"], whole["claims"]);
    assert_eq!(claim(&outcome, "C3")["standing"], "only-under");
    let parts = crate::harness::entries(&bench.path("part")).remove(0).join("parts/cells-0.jsonl");
    let lines = std::fs::read_to_string(parts).unwrap();
    assert_eq!(lines.lines().count(), 12, "six repetitions of two cells");
    assert!(lines.lines().all(|line| line.contains("\"lossless\"")), "{lines}");
    // Pages quote it like any other run, and the next one can go on from it.
    let part = crate::harness::entries(&bench.path("part")).remove(0).display().to_string();
    bench.run(&["study", "keep", &part, "next.json.gz"]).succeeds();
    let next = bench.run(&[&run[..], &["--reuse", "next.json.gz", "--out", "next"]].concat());
    assert!(next.succeeds().err.contains("sim: 4 of 4 cells are those"), "{}", next.err);
    assert_eq!(next.summary()["claims"], whole["claims"]);
    let told = ["--reuse kept.json.gz: it is a run with the seed of each scenario, and this run has 2"];
    bench.run(&["study", "run", "study.toml", "--seed", "2", "--reuse", "kept.json.gz"]).fails(2, &told);
}

/// One run with the scenarios' own seeds and one with another, held against each other, kept, and quoted.
#[test]
fn two_runs_are_held_against_each_other_and_a_page_quotes_what_is_kept() {
    let bench = bench(STUDY);
    let own = bench.run(&["study", "run", "study.toml", "--out", "own"]);
    own.succeeds();
    bench.run(&["study", "run", "study.toml", "--seed", "2", "--out", "two"]).succeeds();
    let only = |out: &str| crate::harness::entries(&bench.path(out)).remove(0).display().to_string();
    let (own, two) = (only("own"), only("two"));
    let same = bench.run(&["study", "diff", &own, &two]);
    assert!(same.succeeds().out.contains("seed 2, in full against the scenarios' own seeds"), "{}", same.out);
    assert!(same.out.ends_with("no verdict changes\n"), "{}", same.out);
    let printed = bench.run(&["study", "diff", &own, &two, "--json=runs"]).succeeds().summary();
    assert_eq!(printed, serde_json::json!([{ "run": two, "changes": [] }]));
    bench.run(&["study", "keep", &own, "kept.json", "--seed-of", &two]).succeeds();
    let kept = read_json(&bench.path("kept.json"));
    assert_eq!(
        claim(&kept, "C1")["by_seed"],
        serde_json::json!([{ "seed": 2, "verdict": "reproduced", "standing": null }])
    );
    let outcome = format!("{own}/study.json");
    let before = std::fs::read(&outcome).unwrap();
    bench.run(&["study", "keep", &own, &outcome]).fails(2, &["would be lost; name another file"]);
    assert_eq!(std::fs::read(&outcome).unwrap(), before);
    let differs = std::fs::read_to_string(&outcome).unwrap().replace(": \"reproduced\"", ": \"differs\"");
    bench.file("differs.json", differs);
    let mut child = bench.start(&["study", "diff", &own, "differs.json"]);
    drop(child.stdout.take());
    Seen::of_child(child).fails(1, &["changed: "]);
    bench.run(&["study", "keep", &own, "kept.json", "--seed-of", &own]).fails(2, &["no seed of its own"]);
    let study = kept["study"].as_str().unwrap();
    let place = |query: &str, text: &str| format!("<!-- study {study} {query} -->{text}<!-- end -->");
    let (loss, verdict) = ("claim C1: not more than so much ; digits 0", "verdict C1");
    bench.file("page.md", format!("It loses {}: {}.\n", place(loss, "much"), place(verdict, "")));
    let checked = ["study", "fill", "page.md", "--from", "kept.json", "--check"];
    bench.run(&checked).fails(1, &["page.md:1: shows `It loses"]);
    bench.run(&checked[..5]).succeeds();
    let page = std::fs::read_to_string(bench.path("page.md")).unwrap();
    assert!(page.contains("-->22 %<!--"), "{page}");
    assert!(page.contains("reproduced: holds under base; the same with seed 2"), "{page}");
    bench.run(&checked).succeeds();
    // Compressed it is the same run.
    bench.run(&["study", "keep", &own, "kept.json.gz", "--seed-of", &two]).succeeds();
    bench.run(&["study", "diff", "kept.json", "kept.json.gz"]).succeeds();
    bench.run(&["study", "fill", "page.md", "--from", "kept.json.gz", "--check"]).succeeds();
    let packed = std::fs::read(bench.path("kept.json.gz")).unwrap();
    assert!(packed.len() < std::fs::read(bench.path("kept.json")).unwrap().len());
    bench.file("cut.json.gz", &packed[..packed.len() / 2]);
    bench
        .run(&["study", "diff", "kept.json", "cut.json.gz"])
        .fails(2, &["cut.json.gz: not a whole gzip file"]);
    // A second run of the same arena leaves open which one is quoted.
    let twice = ["study", "fill", "page.md", "--from", "kept.json", "--from", &own];
    bench.run(&twice).fails(2, &["kept.json and", "are both runs of", "in sim; give one for each arena"]);
    bench.file("page.md", place("claim C9: loss", ""));
    bench.run(&checked).fails(2, &["page.md:1", "no claim C9"]);
}

#[test]
fn one_cell_runs_as_an_ordinary_run_and_a_study_keeps_rows_where_it_is_asked_to() {
    let bench = bench(STUDY);
    bench.run(&["study", "run", "study.toml", "--claim", "C1", "--records", "all"]).succeeds();
    let study = bench.only_run();
    let rows = |repetition: u64| {
        std::fs::read(study.join(format!("records/sim/base/call-some/{repetition}/packets.parquet"))).unwrap()
    };
    assert!(rows(0) != rows(5), "each repetition has rows of its own");
    let medians = read_json(&study.join("study.json"));
    let cells = medians["cells"].as_array().unwrap();
    let cell = cells.iter().find(|cell| cell["cell"] == "call-some").unwrap();
    let median = &cell["metrics"]["flows.call.loss_rate"]["median"];
    std::fs::remove_dir_all(&study).unwrap();

    let seen = bench.run(&["study", "cell", "study.toml", "call-some", "--json=runs"]);
    let summary = seen.succeeds().summary();
    assert!(summary["name"].as_str().unwrap().starts_with("call-some of "), "{}", summary["name"]);
    assert_eq!(summary["runs"].as_array().unwrap().len(), 6);
    assert_eq!(&summary["cells"][0]["flows"]["call"]["loss_rate"]["median"], median);
    assert!(bench.only_run().join("packets.parquet").is_file());

    let unknown = ["study", "cell", "study.toml", "call-sone"];
    bench.run(&unknown).fails(2, &["no cell \"call-sone\"", "there are call-some, call-no"]);
    bench
        .run(&["study", "cell", "study.toml", "call-no", "--under", "b"])
        .fails(2, &["--under b", "has base"]);
}

#[test]
fn a_study_sends_a_file_that_is_beside_it() {
    let text = "duration = \"2 s\"\npath = \"lan\"\n[flow.sent]\ntransport = \"tcp\"\n\
                workload = { kind = \"file\", source = \"letter.txt\" }\n";
    let study = STUDY
        .split("[[claim]]")
        .next()
        .unwrap()
        .replace("[axis.loss]\nno = {}\nsome = { \"path.up.loss\" = 0.2 }\n", "");
    let study = study
        .replace("name = \"call-{loss}\"", "name = \"file\"")
        .replace("axes = { loss = [\"no\", \"some\"] }\n", "");
    let claim = "[[claim]]\nid = \"C1\"\ntext = \"t\"\npublished = \"p\"\nexpected = \"reproduced\"\nwhy = \"w\"\nbasis = \"predicted\"\n\
                 check = [{ name = \"all of it\", metric = \"flows.sent.received\", cell = \"file\", between = [0.5, 1.5] }]\n";
    let bench = Bench::new();
    bench.file("call.toml", text);
    bench.file("study.toml", format!("{study}{claim}"));
    bench.run(&["study", "check", "study.toml"]).fails(2, &["letter.txt", "no such file beside the study"]);
    bench.file("letter.txt", "Sehr geehrte Damen und Herren");
    bench.run(&["study", "run", "study.toml"]).succeeds();
    let run = bench.only_run();
    let copies: Vec<_> =
        std::fs::read_dir(run.join("study")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let copy = std::fs::read_to_string(copies[0].join("letter.txt")).unwrap();
    assert_eq!(copy, "Sehr geehrte Damen und Herren");
}
