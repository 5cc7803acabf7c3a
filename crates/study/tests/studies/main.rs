//! Studies as files: what loads, what is refused and where, and what verdicts follow from samples.

mod arenas;
mod basis;
mod campaign;
mod disturbed;
mod figures;
mod mistakes;
mod results;
mod reuse;
mod standing;

use std::collections::BTreeMap;

use talkpath_scenario::{Diagnostics, Source};
use talkpath_study::{
    ArenaName, ArenaVerdict, Basis, CellSamples, Changes, Kept, Outcome, Role, Sample, Selection, Standing,
    Study, Verdict, embedded, judge, load, load_with,
};
use talkpath_units::Duration;

const SCENARIO: &str = r#"
duration = "1 s"
path = "lan"
[flow.call]
transport = "udp"
workload = "voice"
"#;

const STUDY: &str = r#"title = "A title"
authors = ["A. Author"]
year = 1999
source = "Somewhere"
question = "Why?"
set_up = "Two hosts."
repeat = 6
quick = { repeat = 2, assumptions = ["base"] }
sensitivity = ["slow"]

[[assumption]]
name = "base"
text = "As written."

[[assumption]]
name = "slow"
text = "Slower."
set = { "path.up.rate" = "1 Mbps" }

[axis.delay]
near = { "path.up.delay" = "1 ms" }
far = { "path.up.delay" = "50 ms" }

[[cells]]
name = "call-{delay}"
scenario = "call.toml"
axes = { delay = ["near", "far"] }

[[claim]]
id = "C1"
text = "Far calls lose 1 %"
published = "1 %"
expected = "reproduced"
why = "The loss rate is fitted."
basis = "predicted"
check = [{ name = "loss", metric = "flows.call.loss_rate", cell = "call-far", value = 0.01, within = "10%" }]

[[claim]]
id = "C2"
text = "Far calls lose more"
published = "an order"
expected = "differs"
why = "Distance does not drop packets."
basis = "predicted"
check = [{ name = "order", metric = "flows.call.loss_rate", rising = ["call-near", "call-far"] }]
"#;

fn read(text: &str) -> Result<Study, Diagnostics> {
    load("test-1999", &Source::new("study.toml", text), &[Source::new("call.toml", SCENARIO)])
}

/// Reads a study without mistakes.
fn valid(text: &str) -> Study {
    read(text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Reads a study with mistakes, and returns the message.
fn refused(text: &str) -> String {
    read(text).expect_err("a mistake").to_string()
}

fn study() -> Study {
    valid(STUDY)
}

fn mistakes(from: &str, to: &str) -> String {
    assert!(STUDY.contains(from), "{from}");
    refused(&STUDY.replacen(from, to, 1))
}

/// Six repetitions of each named cell in `arena`, `losses` its loss rates.
fn samples_in(
    study: &Study,
    arena: ArenaName,
    selection: &Selection,
    losses: &[(&str, &str, [f64; 6])],
) -> Vec<CellSamples> {
    let one = |&(name, assumption, values): &(&str, &str, [f64; 6])| {
        let index = study.assumptions.iter().position(|it| it.name == assumption).expect("a set");
        let cell = study.cell(name, arena, index).expect("a cell");
        let mut samples = CellSamples::new(cell, assumption, "");
        samples.samples = (0..)
            .zip(values)
            .map(|(repetition, value)| Sample {
                repetition,
                seed: repetition,
                values: BTreeMap::from([("flows.call.loss_rate".to_owned(), value)]),
                ..Sample::default()
            })
            .take(selection.runs(cell).map_or(0, |plan| plan.repeat as usize))
            .collect();
        samples
    };
    losses.iter().map(one).collect()
}

fn samples(study: &Study, losses: &[(&str, &str, [f64; 6])]) -> Vec<CellSamples> {
    samples_in(study, ArenaName::Sim, &Selection::default(), losses)
}

fn outcome(losses: &[(&str, &str, [f64; 6])]) -> Outcome {
    let study = study();
    judge(&study, &Selection::default(), &samples(&study, losses))
}

/// The verdict on the first claim in the simulator.
fn first_verdict(study: &Study, losses: &[(&str, &str, [f64; 6])]) -> ArenaVerdict {
    judge(study, &Selection::default(), &samples(study, losses)).claims.remove(0).in_first_arena
}

const ONE: [f64; 6] = [0.010, 0.0105, 0.0095, 0.010, 0.010, 0.010];
/// The same median, of other runs.
const ONE_AGAIN: [f64; 6] = [0.0105, 0.010, 0.0095, 0.010, 0.010, 0.010];
const TWO_AGAIN: [f64; 6] = [0.021, 0.020, 0.019, 0.020, 0.020, 0.020];
const TWO: [f64; 6] = [0.020, 0.021, 0.019, 0.020, 0.020, 0.020];

#[test]
fn every_study_that_is_built_in_loads_and_reads_only_cells_that_it_has() {
    for entry in embedded() {
        let study = load(entry.name, &entry.source(), &entry.files()).unwrap_or_else(|it| panic!("{it}"));
        for claim in &study.claims {
            let runs_somewhere =
                |name: &str| claim.arenas.iter().any(|arena| study.cell(name, *arena, 0).is_some());
            for name in claim.cells() {
                assert!(runs_somewhere(name), "{}: no cell {name} under the base set", claim.id);
            }
        }
        let runs = |quick| -> u64 {
            let selection = Selection { is_quick: quick, ..Selection::default() };
            let cells = selection.cells(&study);
            cells.iter().filter_map(|cell| selection.runs(cell)).map(|plan| plan.repeat).sum()
        };
        assert!(runs(true) < runs(false), "{}: --quick is shorter", entry.name);
    }
}

#[test]
fn nor_s_three_senders_begin_200_ms_after_each_other() {
    let entry = embedded().iter().find(|entry| entry.name == "nor-2010").expect("built in");
    let study = load(entry.name, &entry.source(), &entry.files()).unwrap_or_else(|it| panic!("{it}"));
    let claim = study.claims.iter().find(|claim| claim.id == "N6").expect("a claim");
    for name in claim.cells() {
        let cell = study.cell(name, ArenaName::Sim, 0).expect("a cell under the base set");
        let flows = cell.full_runs.scenario.flows.iter().filter(|flow| flow.name != "ftp");
        let starts: Vec<_> = flows.map(|flow| flow.start).collect();
        let at = |ms| (Duration::from_millis(ms), Duration::from_millis(ms));
        assert_eq!(starts, [at(20_000), at(20_200), at(20_400)], "{name}");
    }
}

#[test]
fn a_study_holds_its_files_and_no_others() {
    let files = [Source::new("call.toml", SCENARIO), Source::new("other.toml", "x = 1\n")];
    let study = load("test-1999", &Source::new("here/study.toml", STUDY), &files);
    let files = study.unwrap_or_else(|mistakes| panic!("{mistakes}")).files;
    let text = |text: &str| text.to_owned();
    assert_eq!(files, [(text("study.toml"), text(STUDY)), (text("call.toml"), text(SCENARIO))]);
}

#[test]
fn axes_are_multiplied_out_and_assumptions_come_last() {
    let study = study();
    let in_sim: Vec<_> = study.cells.iter().filter(|cell| cell.arena == ArenaName::Sim).collect();
    let names: Vec<_> = in_sim.iter().map(|cell| (cell.name.as_str(), cell.assumption)).collect();
    assert_eq!(names, [("call-near", 0), ("call-far", 0), ("call-near", 1), ("call-far", 1)]);
    let up = |index: usize| in_sim[index].full_runs.scenario.links[0].config.clone();
    assert_eq!(up(1).delay.as_millis(), 50);
    assert_eq!((up(0).rate == up(1).rate, up(1).rate == up(3).rate), (true, false));
    assert_ne!(in_sim[0].full_runs.fingerprint, in_sim[2].full_runs.fingerprint);
}

#[test]
fn a_verdict_is_the_base_s_and_its_standing_names_the_other_sets() {
    let found = outcome(&[
        ("call-near", "base", TWO),
        ("call-far", "base", ONE),
        ("call-near", "slow", ONE),
        ("call-far", "slow", TWO),
    ]);
    let first = &found.claims[0];
    let first = &first.in_first_arena;
    assert_eq!((first.verdict, first.standing, first.n), (Verdict::Reproduced, Some(Standing::Fragile), 6));
    assert_eq!(
        (&first.holds_under[..], &first.fails_under[..]),
        (&["base".to_owned()][..], &["slow".to_owned()][..])
    );
    assert_eq!(
        (first.holds_under_base, first.under.as_str()),
        (Some(true), "holds under base alone; fails under slow")
    );
    let second = &found.claims[1].in_first_arena;
    assert_eq!((second.verdict, second.standing), (Verdict::Differs, Some(Standing::OnlyUnder)));
    assert_eq!(second.holds_under, ["slow"]);
    assert_eq!(
        (second.holds_under_base, second.under.as_str()),
        (Some(false), "fails under base; holds under slow")
    );
    assert_eq!(found.unexpected().count(), 0);
}

#[test]
fn what_differs_says_by_how_much_and_why() {
    let found = outcome(&[
        ("call-near", "base", TWO),
        ("call-far", "base", ONE),
        ("call-near", "slow", TWO_AGAIN),
        ("call-far", "slow", ONE),
    ]);
    let second = &found.claims[1].in_first_arena;
    assert_eq!((second.verdict, second.standing), (Verdict::Differs, Some(Standing::Robust)));
    assert!(
        second.why.contains("2 [1.9, 2.1] %") && second.why.ends_with("Distance does not drop packets."),
        "{}",
        second.why
    );
    assert_eq!(found.unexpected().count(), 0);
}

#[test]
fn what_is_reproduced_under_every_set_says_what_it_rests_on() {
    let found = outcome(&[("call-far", "base", ONE), ("call-far", "slow", ONE_AGAIN)]);
    let first = &found.claims[0].in_first_arena;
    assert_eq!((first.verdict, first.standing), (Verdict::Reproduced, Some(Standing::Robust)));
    assert_eq!(first.why, "The loss rate is fitted.");
    assert_eq!((first.holds_under_base, first.under.as_str()), (Some(true), "holds under base and slow"));
}

#[test]
fn a_base_that_did_not_run_is_said_first() {
    let found = outcome(&[("call-far", "slow", ONE)]);
    let first = &found.claims[0].in_first_arena;
    assert_eq!((first.verdict, first.standing, first.holds_under_base), (Verdict::NotTested, None, None));
    assert_eq!(first.under, "base not judged; holds under slow; 1 more set did not run to its end");
    assert!(first.why.contains("--resume"), "{}", first.why);
}

#[test]
fn a_standing_is_open_until_every_set_has_run() {
    // The base fails; the other set, which would hold, has not run.
    let found = outcome(&[("call-near", "base", TWO), ("call-far", "base", ONE), ("call-near", "slow", ONE)]);
    let second = &found.claims[1].in_first_arena;
    assert_eq!((second.verdict, second.standing), (Verdict::Differs, None));
    assert_eq!(second.sets_not_run, ["slow"]);
    assert_eq!(second.under, "fails under base; 1 more set did not run to its end");
    assert!(!found.valid);
}

#[test]
fn a_claim_of_fitted_checks_alone_is_consistent() {
    let fitted = STUDY.replacen("basis = \"predicted\"", "basis = \"fitted\"", 1);
    let verdict = |text: &str| {
        let study = valid(text);
        let all = samples(&study, &[("call-near", "base", ONE), ("call-far", "base", ONE)]);
        judge(&study, &Selection::default(), &all).claims.remove(0).in_first_arena
    };
    let found = verdict(&fitted);
    assert_eq!((found.verdict, found.by_assumption[0].checks[0].basis), (Verdict::Consistent, Basis::Fitted));
    // One check that was not fitted makes it more than that.
    let two = NOT_IN_QUICK.replace("name = \"near\",", "name = \"near\", basis = \"predicted\",");
    assert_eq!(verdict(&fitted.replacen("within = \"10%\" }]", &two, 1)).verdict, Verdict::Reproduced);
    let none = mistakes("basis = \"predicted\"\n", "");
    assert!(none.contains("claim.check.basis: expected a `basis`"), "{none}");
}

/// A figure of the queue over time, which the first claim reads of one cell.
fn with_queue(metric: &str) -> Result<Study, Diagnostics> {
    let text = STUDY.replace("[axis.delay]", &format!("[metric]\nlow = {metric}\n\n[axis.delay]"));
    let check = "metric = \"low\", cell = \"call-far\", at_most = 2.0";
    read(&text.replacen(
        "metric = \"flows.call.loss_rate\", cell = \"call-far\", value = 0.01, within = \"10%\"",
        check,
        1,
    ))
}

#[test]
fn a_cell_keeps_whole_series_if_a_claim_reads_a_figure_of_them() {
    let study = with_queue("{ quantile = 0.05, queue = \"up\", seconds = [0.1, 0.9] }");
    let study = study.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let kept = |name| study.cell(name, ArenaName::Sim, 1).unwrap().kept.over_time.clone();
    assert_eq!((kept("call-far"), kept("call-near")), (vec!["low".to_owned()], Vec::new()));
    // Also where it is a part of what is read, or read by something else than a claim.
    let low =
        "{ quantile = 0.05, queue = \"up\", seconds = [0.1, 0.9] }\nhalf = { scaled = \"low\", by = 0.5 }";
    let text = STUDY.replace("[axis.delay]", &format!("[metric]\nlow = {low}\n\n[axis.delay]"));
    let also = read(&text.replacen("repeat = 6", "repeat = 6\nalso = [\"half\"]", 1));
    let also = also.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert!(also.cells.iter().all(|cell| cell.kept.over_time == ["low"]));
    let told = |metric| with_queue(metric).expect_err("a mistake").to_string();
    let unknown = told("{ quantile = 0.05, queue = \"wan\", seconds = [0.1, 0.9] }");
    assert!(
        unknown.contains("reads the link \"wan\", which does not exist")
            && unknown.contains("there are: up, down"),
        "{unknown}"
    );
    for seconds in ["[0.9, 0.1]", "[-1.0, 0.5]", "[0.0, inf]"] {
        let metric = format!("{{ quantile = 0.05, queue = \"up\", seconds = {seconds} }}");
        let told = with_queue(&metric).expect_err("a mistake").to_string();
        assert!(told.contains("expected a stretch of run time") || told.contains("finite"), "{told}");
    }
    for half in
        ["{ quantile = 0.05, queue = \"up\" }", "{ quantile = 5.0, queue = \"up\", seconds = [0.1, 0.9] }"]
    {
        assert!(told(half).contains("metric.low: expected one of"), "{half}");
    }
}

#[test]
fn a_cell_that_ran_without_a_number_is_not_called_unfinished() {
    let study = study();
    let mut far = samples(&study, &[("call-far", "base", ONE)]);
    for sample in &mut far[0].samples {
        sample.values.clear();
    }
    let found = judge(&study, &Selection::default(), &far).claims.remove(0).in_first_arena;
    assert_eq!(found.verdict, Verdict::NotTested);
    let why = "call-far ran, and more than half of its repetitions have no number for flows.call.loss_rate";
    assert!(found.why.contains(why), "{}", found.why);
}

#[test]
fn a_median_over_some_of_the_repetitions_says_so_and_one_over_few_is_none() {
    let study = study();
    let judged = |without: usize| {
        let mut far = samples(&study, &[("call-far", "base", ONE)]);
        far[0].samples[..without].iter_mut().for_each(|sample| sample.values.clear());
        judge(&study, &Selection::default(), &far)
    };
    let found = judged(2);
    assert_eq!(found.claims[0].in_first_arena.verdict, Verdict::Reproduced);
    let warning = "sim: call-far under base: 2 of 6 repetitions have no flows.call.loss_rate; its median is of the others";
    assert!(found.warnings.iter().any(|it| it == warning), "{:?}", found.warnings);
    assert!(!judged(0).warnings.iter().any(|it| it.contains("have no")));
    assert_eq!(judged(4).claims[0].in_first_arena.verdict, Verdict::NotTested);
}

#[test]
fn a_why_that_was_written_for_another_verdict_says_so() {
    let found = outcome(&[("call-near", "base", ONE), ("call-far", "base", TWO)]);
    let [first, second] = [0, 1].map(|claim| &found.claims[claim].in_first_arena);
    assert_eq!((first.verdict, second.verdict), (Verdict::Differs, Verdict::Reproduced));
    let note = "Of the expected verdict (reproduced) the study says: The loss rate is fitted.";
    assert!(first.why.ends_with(note), "{}", first.why);
    let note = "Of the expected verdict (differs) the study says: Distance does not drop packets.";
    assert!(second.why.ends_with(note), "{}", second.why);
}

#[test]
fn cells_that_did_not_run_to_their_end_decide_nothing() {
    let mut short = samples(&study(), &[("call-far", "base", ONE)]);
    short[0].samples.pop();
    let found = judge(&study(), &Selection::default(), &short);
    let is_open = |verdict: &ArenaVerdict| verdict.verdict == Verdict::NotTested && !verdict.why.is_empty();
    assert!(
        found.claims.iter().all(|claim| is_open(&claim.in_first_arena) && !claim.in_first_arena.left_out)
    );
    assert!(!found.valid);
    assert_eq!(found.unexpected().count(), 2);
}

#[test]
fn single_repetitions_are_counted_and_do_not_decide() {
    let mixed = [0.010, 0.010, 0.010, 0.010, 0.5, 0.5];
    let found = outcome(&[("call-near", "base", ONE), ("call-far", "base", mixed)]);
    let check = &found.claims[0].in_first_arena.by_assumption[0].checks[0];
    assert_eq!((check.holds, check.single_hits, check.single_runs), (Some(true), 4, 6));
    // Ranks 1 and 6 of 6: the interval reaches 0.5.
    assert!(!check.certain);
}

#[test]
fn a_repetition_that_one_cell_lacks_is_not_held_against_another_of_the_other_cell() {
    let (near, far) = ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]);
    let mut runs = samples(&study(), &[("call-near", "base", near), ("call-far", "base", far)]);
    runs[0].samples[0].disturbed = Some("late".to_owned());
    let found = judge(&study(), &Selection::default(), &runs);
    let check = &found.claims[1].in_first_arena.by_assumption[0].checks[0];
    assert_eq!((check.single_hits, check.single_runs), (5, 5));
}

#[test]
fn the_json_has_the_promised_shape() {
    let found = outcome(&[("call-near", "base", ONE), ("call-far", "base", TWO)]);
    let json = serde_json::to_value(&found).unwrap();
    let claim = &json["claims"][1];
    for key in
        ["id", "claim", "published", "reproduced", "verdict", "expected", "holds_under", "fails_under", "why"]
    {
        assert!(!claim[key].is_null(), "{key}");
    }
    assert_eq!(
        (&claim["verdict"], &json["study"], &json["arena"]),
        (&"reproduced".into(), &"test-1999".into(), &"sim".into())
    );
    assert_eq!(json["cells"][0]["metrics"]["flows.call.loss_rate"]["median"], 0.01);
}

/// The study with a shorter form for real time, and claims over several arenas and metrics.
const ARENAS: &str = r#"
[arena.emu]
repeat = 3
assumptions = ["base"]
set = { duration = "500 ms" }
quick = { repeat = 1, set = { duration = "200 ms" } }

[metric]
spared = { difference = ["flows.call.in_time", "flows.call.loss_rate"] }

[[claim]]
id = "C3"
text = "The simulator agrees with the kernel"
published = "5 %"
expected = "reproduced"
why = "One model of loss in both."
basis = "assumed"
check = [{ name = "loss", metric = "flows.call.loss_rate", cell = "call-far", agree = "5%" }]

[[claim]]
id = "C4"
text = "Far is twice near"
published = "2"
expected = { sim = "reproduced", emu = "differs" }
why = "Made up."
basis = "assumed"
check = [{ name = "ratio", metric = "flows.call.loss_rate", ratio = ["call-far", "call-near"], between = [1.9, 2.1] }]
"#;

#[test]
fn an_entry_s_shorter_form_keeps_its_places() {
    let entry = "axes = { delay = [\"near\", \"far\"] }\nquick = { repeat = 1, set = { duration = \"100 ms\" } }\nemu = { quick = false }";
    let text = STUDY.replacen("axes = { delay = [\"near\", \"far\"] }", entry, 1);
    let study = valid(&text);
    let quick = |arena| study.cell("call-far", arena, 0).unwrap().quick_runs.clone();
    let sim = quick(ArenaName::Sim).unwrap();
    assert_eq!((sim.repeat, sim.scenario.duration.as_millis()), (1, 100));
    assert_eq!(quick(ArenaName::Emu), None);
    let in_emu = read(&text.replace("emu = { quick = false }", "emu = { quick = { repeat = 2 } }")).unwrap();
    assert_eq!(in_emu.cell("call-far", ArenaName::Emu, 0).unwrap().quick_runs.as_ref().unwrap().repeat, 2);
    let wrong = refused(&text.replace("\"100 ms\"", "\"100 miles\""));
    assert!(wrong.starts_with("study.toml:28:"), "{wrong}");
}

#[test]
fn a_seed_and_keys_of_the_caller_stand_over_those_of_every_cell() {
    // The second claim compares what the change makes the same.
    let source = Source::new(
        "study.toml",
        STUDY.split("\n\n[[claim]]").take(2).collect::<Vec<_>>().join("\n\n[[claim]]"),
    );
    let files = [Source::new("call.toml", SCENARIO)];
    let changed = |seed, set: &[(&str, &str)]| {
        let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        load_with("test-1999", &source, &files, &Changes { seed, set })
    };
    let study =
        changed(Some(7), &[("path.up.delay", "3 ms")]).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    for cell in &study.cells {
        assert_eq!(cell.full_runs.scenario.seed.get(), 7);
        assert_eq!(
            cell.full_runs.scenario.links[0].config.delay.as_millis(),
            3,
            "the study sets 1 ms and 50 ms"
        );
    }
    assert_ne!(
        study.cells[0].full_runs.fingerprint,
        changed(Some(8), &[]).unwrap().cells[0].full_runs.fingerprint
    );
    let outcome = judge(&study, &Selection::default(), &[]);
    assert_eq!((outcome.seed, outcome.set.len()), (Some(7), 1));
    assert!(outcome.warnings[0].contains("path.up.delay = 3 ms"), "{:?}", outcome.warnings);
    // Not over what makes a set differ from the base: it would keep its name and its words.
    for key in ["path.up.rate", "path.up", "path"] {
        let refused = changed(None, &[(key, "2 Mbps")]).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("--set {key}=2 Mbps changes path.up.rate, by which the set \"slow\"")),
            "{refused}"
        );
    }
    let wrong = changed(None, &[("flow.cal.start", "1 s")]).unwrap_err().to_string();
    assert!(wrong.contains("--set flow.cal.start") && wrong.contains("no flow called"), "{wrong}");
}

/// A second check, which the shorter run does not judge anywhere.
const NOT_IN_QUICK: &str = "within = \"10%\" }, { name = \"near\", metric = \"flows.call.loss_rate\", cell = \"call-near\", \
                            at_most = 0.015, quick = [] }]";

/// A check that fails of `TWO`, and that the shorter run does not judge in emu.
const TWO_CHECKS: &str = "within = \"10%\" }, { name = \"near\", metric = \"flows.call.loss_rate\", cell = \"call-near\", \
                          at_most = 0.015, quick = [\"sim\"] }]";

const TABLE: &str = "\n[[table]]\ntitle = \"Loss\"\nrows = \"paper.csv\"\n";

fn with_table(csv: &str) -> Result<Study, Diagnostics> {
    let text = format!("{STUDY}{TABLE}");
    let files = [Source::new("call.toml", SCENARIO), Source::new("paper.csv", csv)];
    load("test-1999", &Source::new("study.toml", text.as_str()), &files)
}

#[test]
fn printed_figures_stand_beside_ours_with_what_they_were_used_for() {
    let csv = "cell,metric,published,role,note\n# A comment.\n\
               call-far, flows.call.loss_rate, 0.012,,\"Table 2, row 1\"\ncall-near,flows.call.loss_rate,0.02,fitted,\n";
    let study = with_table(csv).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let all = samples(&study, &[("call-far", "base", ONE)]);
    let found = judge(&study, &Selection::default(), &all);
    let rows = &found.tables[0].rows;
    assert_eq!(
        (rows[0].published_row.role, rows[0].published_row.note.as_str()),
        (Role::Predicted, "Table 2, row 1")
    );
    assert_eq!(rows[0].values[0].median, 0.010);
    assert!((rows[0].off.unwrap() + 1.0 / 6.0).abs() < 1e-12);
    assert_eq!((rows[1].published_row.role, rows[1].values.len(), rows[1].off), (Role::Fitted, 0, None));
    // Of a file with several tables, one.
    let second = format!("{STUDY}{TABLE}number = \"2\"\n");
    let loaded = |csv: &str| {
        let files = [Source::new("call.toml", SCENARIO), Source::new("paper.csv", csv)];
        load("test-1999", &Source::new("study.toml", second.as_str()), &files)
    };
    let head = "table,cell,metric,published\n1,call-far,flows.call.loss_rate,0.1\n";
    let two =
        loaded(&format!("{head}2,call-near,flows.call.loss_rate,0.2\n")).unwrap_or_else(|it| panic!("{it}"));
    assert_eq!(two.tables[0].rows.iter().map(|row| row.cell.as_str()).collect::<Vec<_>>(), ["call-near"]);
    let none = loaded(head).expect_err("a mistake").to_string();
    assert!(none.contains("paper.csv has no row of table \"2\""), "{none}");
    let wrong = with_table("cell,metric,published\nx,flows.call.loss_rate,0.1\ncall-far,y,many\n");
    let wrong = wrong.expect_err("mistakes").to_string();
    assert!(wrong.contains("no cell called \"x\"") && wrong.contains("in paper.csv"), "{wrong}");
}

#[test]
fn a_share_of_repetitions_is_pooled_over_the_orders_of_all_days() {
    let order = "metric = \"flows.call.loss_rate\", rising = [\"call-near\", \"call-far\"]";
    let pooled = "metric = \"flows.call.loss_rate\", rising = [\"call-near{day}\", \"call-far{day}\"], at_least = 0.6, \
                  pool = { day = [\"\", \"-2\"] }";
    let second_day =
        "near-2 = { \"path.up.delay\" = \"2 ms\" }\nfar-2 = { \"path.up.delay\" = \"60 ms\" }\n\n[[cells]]";
    let text = STUDY.replace(order, pooled).replace("\n[[cells]]", second_day);
    let study = valid(&text.replace("[\"near\", \"far\"]", "[\"near\", \"far\", \"near-2\", \"far-2\"]"));
    let first_day = [("call-near", "base", ONE), ("call-far", "base", TWO)];
    let losses =
        [first_day.as_slice(), &[("call-near-2", "base", TWO), ("call-far-2", "base", ONE)]].concat();
    let outcome = judge(&study, &Selection::default(), &samples(&study, &losses));
    let check = &outcome.claims[1].in_first_arena.by_assumption[0].checks[0];
    // Near loses less than far in all six repetitions of the first day, and in none of the second.
    assert_eq!((check.single_hits, check.single_runs, check.figure), (6, 12, Some(0.5)));
    assert_eq!(check.holds, Some(false));
    let medians = mistakes(order, &format!("{order}, pool = {{ day = [\"1\"] }}"));
    assert!(medians.contains("only a share of repetitions can be pooled"), "{medians}");
}

#[test]
fn cells_with_draws_of_their_own_have_seeds_of_their_own_under_every_set_and_others_share_theirs() {
    let seeds = |draws: &str, seed: Option<u64>| {
        let text = STUDY.replace("[[cells]]\n", &format!("[[cells]]\n{draws}"));
        let source = Source::new("study.toml", text);
        let changes = Changes { seed, set: Vec::new() };
        let files = [Source::new("call.toml", SCENARIO)];
        let study = load_with("test-1999", &source, &files, &changes).expect("valid");
        let of_cell = |cell: &talkpath_study::Cell| {
            (cell.name.clone(), cell.full_runs.scenario.seed.get(), cell.full_runs.source.seed)
        };
        study.cells.iter().map(of_cell).collect::<Vec<_>>()
    };
    let shared = seeds("", None);
    assert!(shared.iter().all(|(_, seed, own)| *seed == shared[0].1 && own.is_none()), "{shared:?}");
    let own = seeds("draws = \"own\"\n", None);
    for (name, seed, stated) in &own {
        assert_eq!(*stated, Some(*seed), "{name}");
        let alike = own.iter().filter(|(_, other, _)| other == seed);
        assert!(alike.clone().count() > 0 && alike.clone().all(|(other, _, _)| other == name), "{own:?}");
    }
    assert!(seeds("draws = \"own\"\n", Some(2)).iter().zip(&own).all(|(two, one)| two.1 != one.1));
}

#[test]
fn figures_in_a_reason_are_those_of_the_run_that_is_shown() {
    let text = STUDY.replace(
        "The loss rate is fitted.",
        "It loses {loss ; digits 2}, and {loss ; under slow} if it is slow.",
    );
    let study = valid(&text);
    let why = |losses: &[(&str, &str, [f64; 6])]| first_verdict(&study, losses).why;
    let both = [("call-far", "base", [0.0101; 6]), ("call-far", "slow", [0.2; 6])];
    assert_eq!(why(&both), "It loses 1.01 %, and 20 % if it is slow.");
    assert_eq!(why(&both[..1]), "It loses 1.01 %, and (not in this run) if it is slow.");
    let unknown = refused(&text.replace("{loss ;", "{los ;"));
    assert!(unknown.contains("C1: there is no check `los`"), "{unknown}");
    let unknown = refused(&text.replace("under slow}", "under slower}"));
    assert!(unknown.contains("there is no assumption set \"slower\""), "{unknown}");
}
