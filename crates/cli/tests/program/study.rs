//! `talkpath study` as a user sees it: the built-in ones, one of one's own, its mistakes, its expectation, its resume.

use crate::harness::{Bench, CALL, read_json};

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
check = [
    { name = "more of it", metric = "flows.call.loss_rate", rising = ["call-no", "call-some"] },
    { name = "not more than so much", metric = "flows.call.loss_rate", cell = "call-some", at_most = 0.5 },
]

[[claim]]
id = "C2"
text = "The kernel's echo takes as long"
published = "within 15 %"
expected = "reproduced"
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
    bench.run(&["study", "run", "conformance", "--arena", "sim,live"]).fails(2, &["--arena live"]);
}

#[test]
fn a_study_of_ones_own_is_judged_and_leaves_its_outcome() {
    let bench = bench(STUDY);
    let seen = bench.run(&["study", "run", "study.toml", "--json"]);
    let outcome = seen.succeeds().summary();
    let first = claim(&outcome, "C1");
    assert_eq!(
        (&first["verdict"], &first["n"], &first["why"]),
        (&"reproduced".into(), &6.into(), &"".into())
    );
    // What compares arenas needs both; a run in one of them disagrees with nothing.
    let second = claim(&outcome, "C2");
    assert_eq!((&second["verdict"], &second["left_out"]), (&"not-tested".into(), &true.into()));
    assert!(second["why"].as_str().unwrap().contains("--arena sim,emu"), "{second}");
    let run = bench.only_run();
    assert_eq!(read_json(&run.join("study.json")), outcome);
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Figure 1: Loss") && page.contains("Loss is lost"));
}

#[test]
fn an_expectation_that_does_not_hold_is_exit_code_1() {
    let wrong =
        STUDY.replace("rising = [\"call-no\", \"call-some\"]", "falling = [\"call-no\", \"call-some\"]");
    let bench = bench(&wrong);
    let seen = bench.run(&["study", "run", "study.toml", "--quick"]);
    seen.fails(1, &["C1 differs, expected reproduced"]);
    assert!(seen.out.contains("should fall"), "{}", seen.out);
    assert!(bench.only_run().join("study.json").is_file());
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
    assert!(again.succeeds().err.contains("2 of 2 cells are kept"), "{}", again.err);
    bench.file("study.toml", STUDY.replace("\"path.up.loss\" = 0.2", "\"path.up.loss\" = 0.1"));
    let edited = bench.run(&["study", "run", "study.toml", "--resume"]);
    assert!(edited.succeeds().err.contains("1 of 2 cells are kept"), "{}", edited.err);
    assert_eq!(bench.runs().len(), 1);
    bench.run(&["study", "run", "study.toml", "--resume", "--quick"]).fails(2, &["--resume"]);
}

#[test]
fn another_seed_runs_anew_and_is_kept_apart() {
    let bench = bench(STUDY);
    let outcome = |arguments: &[&str]| -> serde_json::Value {
        let command = [&["study", "run", "study.toml", "--quick", "--json"], arguments].concat();
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
fn two_arenas_are_judged_side_by_side() {
    let bench = bench(STUDY);
    let Some(seen) = bench.emulate(&["study", "run", "study.toml", "--arena", "sim,emu", "--json"]) else {
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
