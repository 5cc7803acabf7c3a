//! Studies as files: what loads, what is refused and where, and what verdicts follow from samples.

use std::collections::BTreeMap;

use talkpath_scenario::{Diagnostics, Source};
use talkpath_study::{
    CellSamples, Outcome, Sample, Selection, Stands, Study, Verdict, embedded, judge, load,
};

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
check = [{ name = "loss", metric = "flows.call.loss_rate", cell = "call-far", value = 0.01, within = "10%" }]

[[claim]]
id = "C2"
text = "Far calls lose more"
published = "an order"
expected = "differs"
why = "Distance does not drop packets."
check = [{ name = "order", metric = "flows.call.loss_rate", rising = ["call-near", "call-far"] }]
"#;

fn read(text: &str) -> Result<Study, Diagnostics> {
    load("test-1999", &Source::new("study.toml", text), &[Source::new("call.toml", SCENARIO)])
}

fn study() -> Study {
    read(STUDY).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn mistakes(from: &str, to: &str) -> String {
    assert!(STUDY.contains(from), "{from}");
    read(&STUDY.replacen(from, to, 1)).expect_err("a mistake").to_string()
}

/// Six repetitions of each named cell, `losses` its loss rates.
fn samples(study: &Study, losses: &[(&str, &str, [f64; 6])]) -> Vec<CellSamples> {
    let one = |&(cell, assumption, values): &(&str, &str, [f64; 6])| CellSamples {
        cell: cell.to_owned(),
        assumption: assumption.to_owned(),
        samples: (0..)
            .zip(values)
            .map(|(repetition, value)| Sample {
                repetition,
                seed: repetition,
                values: BTreeMap::from([("flows.call.loss_rate".to_owned(), value)]),
            })
            .collect(),
        valid: true,
        ..CellSamples::default()
    };
    assert!(losses.iter().all(|(cell, ..)| study.cell(cell, 0).is_some()));
    losses.iter().map(one).collect()
}

fn outcome(losses: &[(&str, &str, [f64; 6])]) -> Outcome {
    let study = study();
    judge(&study, &Selection::default(), "sim", &samples(&study, losses))
}

const ONE: [f64; 6] = [0.010, 0.011, 0.009, 0.010, 0.010, 0.010];
const TWO: [f64; 6] = [0.020, 0.021, 0.019, 0.020, 0.020, 0.020];

#[test]
fn every_study_that_is_built_in_loads_and_reads_only_cells_that_it_has() {
    for entry in embedded() {
        let study = load(entry.name, &entry.source(), &entry.files()).unwrap_or_else(|it| panic!("{it}"));
        assert!(entry.readme.len() > 500, "{}: a README says what was found", entry.name);
        for claim in &study.claims {
            let has_reason = claim.why.as_ref().is_some_and(|why| !why.is_empty());
            assert!(claim.expected == Verdict::Reproduced || has_reason, "{}: why?", claim.id);
            for name in claim.checks.iter().flat_map(|check| &check.cells) {
                assert!(study.cell(name, 0).is_some(), "{}: no cell {name} under the base set", claim.id);
            }
        }
        let selection = Selection { quick: true, claims: Vec::new() };
        assert!(selection.cells(&study).len() < study.cells.len());
    }
}

#[test]
fn axes_are_multiplied_out_and_assumptions_come_last() {
    let study = study();
    let names: Vec<_> = study.cells.iter().map(|cell| (cell.name.as_str(), cell.assumption)).collect();
    assert_eq!(names, [("call-near", 0), ("call-far", 0), ("call-near", 1), ("call-far", 1)]);
    let up = |index: usize| study.cells[index].scenario.links[0].config.clone();
    assert_eq!(up(1).delay.as_millis(), 50);
    assert_eq!((up(0).rate == up(1).rate, up(1).rate == up(3).rate), (true, false));
    assert_ne!(study.cells[0].fingerprint, study.cells[2].fingerprint);
}

#[test]
fn mistakes_stand_at_their_line_and_column() {
    let unknown_key = mistakes("year = 1999", "yeer = 1999");
    assert!(unknown_key.starts_with("study.toml:3:1: ") && unknown_key.contains("yeer"), "{unknown_key}");
    let wrong_type = mistakes("repeat = 6", "repeat = \"six\"");
    assert!(wrong_type.starts_with("study.toml:7:10: "), "{wrong_type}");
    let no_axis =
        mistakes("axes = { delay = [\"near\", \"far\"] }", "axes = { delay = [\"near\", \"fat\"] }");
    assert!(no_axis.contains(":27:27: ") && no_axis.contains("no value \"fat\""), "{no_axis}");
    let no_cell = mistakes("cell = \"call-far\"", "cell = \"call-fat\"");
    assert!(no_cell.contains("no cell called \"call-fat\""), "{no_cell}");
    let no_form = mistakes("value = 0.01, within = \"10%\"", "value = 0.01");
    assert!(no_form.contains("expected one of: `cell` with `value` and `within`"), "{no_form}");
    let no_set = mistakes("sensitivity = [\"slow\"]", "sensitivity = [\"slo\"]");
    assert!(no_set.contains(":9:16: ") && no_set.contains("there are: base, slow"), "{no_set}");
}

#[test]
fn a_mistake_in_a_scenario_key_stands_where_the_study_sets_it() {
    let unknown = mistakes("\"path.up.rate\" = \"1 Mbps\"", "\"path.up.rat\" = \"1 Mbps\"");
    assert!(unknown.starts_with("study.toml:18:") && unknown.contains("rate"), "{unknown}");
    let wrong = mistakes("\"path.up.delay\" = \"50 ms\"", "\"path.up.delay\" = \"50 miles\"");
    assert!(wrong.starts_with("study.toml:22:"), "{wrong}");
}

#[test]
fn a_claim_is_reproduced_where_one_set_bears_it_and_names_the_sets() {
    let found = outcome(&[
        ("call-near", "base", TWO),
        ("call-far", "base", ONE),
        ("call-near", "slow", ONE),
        ("call-far", "slow", TWO),
    ]);
    let first = &found.claims[0];
    assert_eq!((first.verdict, first.stands), (Verdict::Reproduced, Stands::Some));
    assert_eq!((first.assumptions.as_slice(), first.n), (["base".to_owned()].as_slice(), 6));
    assert!(first.why.contains("not under slow"), "{}", first.why);
    let second = &found.claims[1];
    assert_eq!(
        (second.verdict, second.assumptions.as_slice()),
        (Verdict::Reproduced, ["slow".to_owned()].as_slice())
    );
    let unexpected: Vec<_> = found.unexpected().map(|claim| claim.id.as_str()).collect();
    assert_eq!(unexpected, ["C2"]);
}

#[test]
fn what_differs_says_by_how_much_and_why() {
    let found = outcome(&[
        ("call-near", "base", TWO),
        ("call-far", "base", ONE),
        ("call-near", "slow", TWO),
        ("call-far", "slow", ONE),
    ]);
    let second = &found.claims[1];
    assert_eq!((second.verdict, second.stands), (Verdict::Differs, Stands::None));
    assert!(
        second.why.contains("2 [1.9, 2.1] %") && second.why.ends_with("Distance does not drop packets."),
        "{}",
        second.why
    );
    assert_eq!(found.claims[0].why, "");
    assert_eq!(found.unexpected().count(), 0);
}

#[test]
fn cells_that_did_not_run_to_their_end_decide_nothing() {
    let mut short = samples(&study(), &[("call-far", "base", ONE)]);
    short[0].samples.pop();
    let found = judge(&study(), &Selection::default(), "sim", &short);
    assert!(found.claims.iter().all(|claim| claim.verdict == Verdict::NotTested && !claim.why.is_empty()));
    assert!(!found.valid);
    assert_eq!(found.unexpected().count(), 2);
}

#[test]
fn single_repetitions_are_counted_and_do_not_decide() {
    let mixed = [0.010, 0.010, 0.010, 0.010, 0.5, 0.5];
    let found = outcome(&[("call-near", "base", ONE), ("call-far", "base", mixed)]);
    let check = &found.claims[0].by_assumption[0].checks[0];
    assert_eq!((check.holds, check.single_hits, check.single_runs), (Some(true), 4, 6));
    // Ranks 1 and 6 of 6: the interval reaches 0.5.
    assert!(!check.certain);
}

#[test]
fn the_json_has_the_promised_shape() {
    let found = outcome(&[("call-near", "base", ONE), ("call-far", "base", TWO)]);
    let json = serde_json::to_value(&found).unwrap();
    let claim = &json["claims"][1];
    for key in ["id", "claim", "published", "reproduced", "verdict", "expected", "assumptions", "why"] {
        assert!(!claim[key].is_null(), "{key}");
    }
    assert_eq!(
        (&claim["verdict"], &json["study"], &json["arena"]),
        (&"reproduced".into(), &"test-1999".into(), &"sim".into())
    );
    assert_eq!(json["cells"][0]["metrics"]["flows.call.loss_rate"]["median"], 0.01);
}
