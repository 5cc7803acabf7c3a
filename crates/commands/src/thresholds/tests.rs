use std::collections::BTreeMap;

use talkpath_measure::summarise::cell_summaries;
use talkpath_measure::summary::{CallSummary, FlowSummary, Swept};
use talkpath_scenario::{Options, Source, load};

use super::*;

const SCENARIO: &str = concat!(
    "duration = \"1 s\"\npath = \"lan\"\n",
    "[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\ndirection = \"both\"\n",
    "[flow.game]\ntransport = \"udp\"\nworkload = { kind = \"cbr\", rate = \"64 kbps\", size = \"160 B\" }\n",
    "[sweep]\n\"path.up.loss\" = [0.0, 0.01]\n",
);

fn plan(thresholds: &str) -> Plan {
    let source = Source::new("s.toml", format!("{SCENARIO}[thresholds]\n{thresholds}"));
    load(&source, &Options::default()).unwrap()
}

/// A repetition in which the game has this share in time and the call's directions these scores.
fn run(cell: u64, repetition: u64, in_time: Option<f64>, mos: [Option<f64>; 2]) -> RunSummary {
    let call = |mos: Option<f64>| FlowSummary {
        call: mos.map(|mos| CallSummary { mos, ..CallSummary::default() }),
        ..FlowSummary::default()
    };
    let game = FlowSummary { in_time, ..FlowSummary::default() };
    let flows = [("call-up", call(mos[0])), ("call-down", call(mos[1])), ("game", game)];
    RunSummary {
        cell,
        sweep: Swept::default(),
        repetition,
        seed: 1,
        flows: flows.into_iter().map(|(name, flow)| (name.to_owned(), Box::new(flow))).collect(),
        groups: BTreeMap::new(),
        links: BTreeMap::new(),
        machine: None,
    }
}

fn summary(runs: Vec<RunSummary>) -> Summary {
    let text = serde_json::json!({
        "talkpath": "0", "name": "", "arena": "sim", "started": "", "wall_s": 0.0, "cpu_s": 0.0, "valid": true,
        "warnings": [], "percentiles": "exact", "runs": [], "cells": [],
        "clock": { "offset_ms": 0.0, "skew_ppm": 0.0, "uncertainty_ms": 0.0, "trusted": true, "why": "" },
    });
    let cells = cell_summaries(&runs);
    Summary { runs, cells, ..serde_json::from_value(text).unwrap() }
}

/// The line of each threshold, over these repetitions.
fn told(thresholds: &str, runs: Vec<RunSummary>) -> Vec<String> {
    let judged = judge(&plan(thresholds), &summary(runs));
    lines(&judged).lines().map(str::to_owned).collect()
}

fn both(in_time: [f64; 2]) -> Vec<RunSummary> {
    (0..).zip(in_time).map(|(cell, in_time)| run(cell, 0, Some(in_time), [Some(4.2), Some(4.1)])).collect()
}

#[test]
fn each_cell_must_hold_and_the_one_with_the_least_margin_is_shown() {
    assert_eq!(
        told("\"game.in_time\" = [\">= 0.9\", \">= 0.8\"]", both([0.99, 0.85])),
        [
            "FAILS  game.in_time 0.85, must be >= 0.9 (path.up.loss=0.01; fails in 1 of 2 cells)",
            "holds  game.in_time 0.85, must be >= 0.8 (path.up.loss=0.01; least margin of 2 cells)",
        ]
    );
    assert_eq!(
        told("\"game.in_time@path.up.loss=0\" = \">= 0.9\"", both([0.99, 0.85])),
        ["holds  game.in_time@path.up.loss=0 0.99, must be >= 0.9 (path.up.loss=0.0)"]
    );
}

#[test]
fn each_direction_must_hold_and_the_worst_is_named() {
    let runs = vec![run(0, 0, None, [Some(4.2), Some(3.0)]), run(1, 0, None, [Some(4.0), Some(3.9)])];
    assert_eq!(
        told("\"call.mos\" = \">= 3.6\"", runs.clone()),
        ["FAILS  call.mos 3, must be >= 3.6 (call-down; path.up.loss=0.0; fails in 1 of 2 cells)"]
    );
    assert_eq!(
        told("\"call-up.mos\" = \">= 3.6\"", runs),
        ["holds  call-up.mos 4, must be >= 3.6 (path.up.loss=0.01; least margin of 2 cells)"]
    );
}

#[test]
fn the_median_over_the_repetitions_counts_and_null_is_the_worst_of_them() {
    let at = |values: &[Option<f64>]| {
        let run = |(repetition, in_time): (u64, &Option<f64>)| run(0, repetition, *in_time, [None, None]);
        told("\"game.in_time@path.up.loss=0\" = \">= 0.9\"", (0..).zip(values).map(run).collect()).remove(0)
    };
    let median = at(&[Some(0.1), Some(0.95), Some(0.97)]);
    assert_eq!(
        median,
        "holds  game.in_time@path.up.loss=0 0.95, must be >= 0.9 (path.up.loss=0.0; median of 3 repetitions)"
    );
    assert!(at(&[None, Some(0.95), Some(0.97)]).starts_with("holds  game.in_time@path.up.loss=0 0.95,"));
    assert!(
        at(&[None, None, Some(0.97)])
            .starts_with("FAILS  game.in_time@path.up.loss=0 is not known (null), must be >= 0.9")
    );
    assert!(
        at(&[Some(0.8), Some(0.96)]).starts_with("FAILS  game.in_time@path.up.loss=0 0.88,"),
        "the mean of the middle two"
    );
    assert!(
        at(&[]).starts_with("FAILS  game.in_time@path.up.loss=0 is not known (null)"),
        "nothing of the cell was kept"
    );
    let bound = Bound { operator: Operator::AtMost, value: 1.0 };
    assert_eq!(median_of(&[None, Some(0.5), Some(0.7)], bound), Some(0.7), "null is the worst here too");
}

fn median_of(values: &[Option<f64>], bound: Bound) -> Option<f64> {
    median(values, bound)
}

#[test]
fn a_figure_that_is_not_there_is_an_error_with_what_is() {
    let refused = |thresholds: &str| {
        let plan = plan(thresholds);
        let before = before_the_run(&plan).map_err(|why| why.to_string());
        before
            .map(|()| unknown(&judge(&plan, &summary(both([1.0, 1.0])))).unwrap().to_string())
            .unwrap_or_else(|why| why)
    };
    let misspelt = refused("\"game.in_tme\" = \">= 0.9\"");
    assert!(
        misspelt.contains("the flow game has no figure `in_tme`")
            && misspelt.contains("did you mean `in_time`?")
    );
    assert!(before_the_run(&plan("\"game.speed\" = \">= 0.9\"")).is_err(), "before the run");
    assert!(before_the_run(&plan("\"link.up.speed\" = \">= 0.9\"")).is_err(), "before the run");
    assert!(before_the_run(&plan("\"link.up.queue_delay_ms.p95\" = \"<= 9\"")).is_ok());
    assert!(before_the_run(&plan("\"call.jain_index\" = \">= 0.9\"")).is_ok(), "copies together have it");
    let deeper = refused("\"call-up.call.mso\" = \">= 0.9\"");
    assert!(deeper.contains("did you mean `call.mos`?"), "{deeper}");
    assert!(refused("\"call.loss_runs\" = \">= 1\"").contains("has no figure"), "no single figure");
}

#[test]
fn a_cell_without_the_flow_or_the_figure_is_not_counted_and_each_threshold_is_judged_by_itself() {
    let text = concat!(
        "duration = \"1 s\"\npath = \"lan\"\n",
        "[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n",
        "[sweep]\n\"flow.call.direction\" = [\"up\", \"both\"]\n[thresholds]\n",
        "\"call-down.mos\" = \">= 3.6\"\n\"call.jain_index\" = \">= 0.5\"\n\"call.call.mso\" = \">= 3\"\n",
    );
    let plan = load(&Source::new("s.toml", text.to_owned()), &Options::default()).unwrap();
    let mut up = run(0, 0, None, [None, None]);
    let call = up.flows.remove("call-up").unwrap();
    up.flows = [("call".to_owned(), call)].into();
    let mut both = run(1, 0, None, [Some(4.2), Some(4.1)]);
    let group = serde_json::json!({ "flows": 2, "sent": 0, "received": 0, "lost": 0, "jain_index": 0.9 });
    both.groups.insert("call".to_owned(), serde_json::from_value(group).unwrap());
    let judged = judge(&plan, &summary(vec![up, both]));
    let told = lines(&judged);
    let told: Vec<_> = told.lines().collect();
    let place = "(flow.call.direction=both)";
    assert!(told.contains(&format!("holds  call-down.mos 4.1, must be >= 3.6 {place}").as_str()), "{told:?}");
    assert!(
        told.contains(&format!("holds  call.jain_index 0.9, must be >= 0.5 {place}").as_str()),
        "{told:?}"
    );
    assert!(told.contains(&"FAILS  call.call.mso is no figure of this run, must be >= 3"), "{told:?}");
    assert!(failure(&judged, true).is_none(), "what is unknown does not fail, too");
    let unknown = unknown(&judged).unwrap();
    assert_eq!(unknown.exit_code(), 2);
    assert!(unknown.to_string().contains("has no figure `call.mso`"), "{unknown}");
}

#[test]
fn a_flag_must_hold_in_each_repetition() {
    let is = |text: &str| Bound { operator: Operator::Equal, value: if text == "true" { 1.0 } else { 0.0 } };
    let value = |flags: &[Looked], bound| Found::of(None, "", flags, bound).value;
    let damaged = [Looked::Flag(true), Looked::Flag(false), Looked::Flag(true)];
    assert_eq!(value(&damaged, is("true")), Some(0.0), "one of three files is damaged");
    assert_eq!(value(&damaged, is("false")), Some(1.0));
    assert_eq!(value(&[Looked::Flag(true); 3], is("true")), Some(1.0));
    assert_eq!(value(&[Looked::Flag(true), Looked::Null], is("true")), None, "not known is the worst");
}

#[test]
fn what_does_not_hold_is_exit_code_5() {
    let judged = |least: f64| {
        let plan = plan(&format!("\"game.in_time\" = [\">= {least}\", \"> 0\"]"));
        judge(&plan, &summary(both([0.99, 0.85])))
    };
    assert!(failure(&judged(0.8), true).is_none());
    let failing = failure(&judged(0.9), false).unwrap();
    assert_eq!((failing.exit_code(), failing.to_string().as_str()), (5, "1 of 2 thresholds do not hold"));
    let with_lines = failure(&judged(0.9), true).unwrap().to_string();
    assert!(with_lines.contains("\n  game.in_time 0.85, must be >= 0.9"), "{with_lines}");
}

#[test]
fn junit_has_a_case_for_each_threshold_and_escapes_what_needs_it() {
    let judged = judge(&plan("\"game.in_time\" = [\">= 0.9\", \"> 0\"]"), &summary(both([0.99, 0.85])));
    let text = String::from_utf8(junit::xml("a \"<name>\" & more", &judged).unwrap()).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap_or_else(|why| panic!("{why}: {text}"));
    let suite = document.root_element().first_element_child().unwrap();
    assert_eq!(document.root_element().tag_name().name(), "testsuites");
    assert_eq!(suite.attribute("name"), Some("a \"<name>\" & more"));
    assert_eq!((suite.attribute("tests"), suite.attribute("failures")), (Some("2"), Some("1")));
    let cases: Vec<_> = suite.children().filter(|it| it.has_tag_name("testcase")).collect();
    assert_eq!(cases[0].attribute("name"), Some("game.in_time >= 0.9"));
    let failure = cases[0].first_element_child().unwrap();
    assert_eq!(failure.tag_name().name(), "failure");
    assert!(failure.attribute("message").unwrap().contains("must be >= 0.9"), "{text}");
    assert!(cases[1].first_element_child().is_none(), "{text}");
}

#[test]
fn a_figure_is_shown_finely_enough_to_be_told_from_its_bound() {
    let shown = [3.599_96, 12.0, 0.01, 1_234_567.891, 0.000_001_5, -2.5].map(number);
    assert_eq!(shown, ["3.59996", "12", "0.01", "1234568", "0.0000015", "-2.5"]);
}
