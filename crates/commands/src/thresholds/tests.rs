use std::collections::BTreeMap;

use talkpath_measure::figures::{FLOW, GROUP, LINK, Table, Unit};
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summarise::cell_summaries;
use talkpath_measure::summary::{CallSummary, FlowSummary, OtherReceiver, Swept};
use talkpath_report::{Style, run_table};
use talkpath_scenario::{Bound, Operator, Options, Source, Threshold, load, split_threshold};
use talkpath_units::Seed;

use super::cell::{CellFigure, CellName, MemberFigures};
use super::figure::{ANY, FigureValue, RepetitionFigure};
use super::figure_names::StatisticChoice;
use super::outcome::sorted_values;
use super::*;
use crate::shares::percent_of;

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
        call: mos
            .map(|mos| Box::new(CallSummary { mos: Some(mos), r: Some(60.0), ..CallSummary::default() })),
        ..FlowSummary::default()
    };
    let game = FlowSummary { in_time, sent: 1000, received: 1000, ..FlowSummary::default() };
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
        path: None,
        program: None,
        changes: None,
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
            "FAILS  game.in_time 0.85, must be >= 0.9 (path.up.loss=0.01; mean of 1 repetition; fails in 1 of 2 cells)",
            "holds  game.in_time 0.85, must be >= 0.8 (path.up.loss=0.01; mean of 1 repetition; least margin of 2 cells)",
        ]
    );
    assert_eq!(
        told("\"game.in_time@path.up.loss=0\" = \">= 0.9\"", both([0.99, 0.85])),
        ["holds  game.in_time@path.up.loss=0 0.99, must be >= 0.9 (path.up.loss=0.0; mean of 1 repetition)"]
    );
}

#[test]
fn each_direction_must_hold_and_the_worst_is_named() {
    let runs = vec![run(0, 0, None, [Some(4.2), Some(3.0)]), run(1, 0, None, [Some(4.0), Some(3.9)])];
    assert_eq!(
        told("\"call.mos\" = \">= 3.6\"", runs.clone()),
        [
            "FAILS  call.mos 3, must be >= 3.6 (call-down; path.up.loss=0.0; mean of 1 repetition; fails in 1 of 2 cells)"
        ]
    );
    assert_eq!(
        told("\"call-up.mos\" = \">= 3.6\"", runs),
        [
            "holds  call-up.mos 4, must be >= 3.6 (path.up.loss=0.01; mean of 1 repetition; least margin of 2 cells)"
        ]
    );
}

/// The line of a threshold on the game's share in time, over repetitions with these values.
fn told_of(threshold: &str, values: &[Option<f64>]) -> String {
    let run = |(repetition, in_time): (u64, &Option<f64>)| run(0, repetition, *in_time, [None, None]);
    told(threshold, (0..).zip(values).map(run).collect()).remove(0)
}

#[test]
fn the_statistic_is_that_of_the_tables_unless_another_is_named_and_the_line_names_it() {
    let values = [0.5, 0.95, 0.95, 0.96, 0.96, 0.97, 0.98, 0.98, 0.98].map(Some);
    let at = |statistic: &str| {
        told_of(&format!("\"game.in_time{statistic}@path.up.loss=0\" = \">= 0.93\""), &values)
    };
    let place = |word: &str| format!("must be >= 0.93 (path.up.loss=0.0; {word} of 9 repetitions)");
    let line = at("");
    assert!(line.starts_with("UNDECIDED  game.in_time@path.up.loss=0 0.914444, "), "{line}");
    assert!(line.contains(&place("mean")) && at(".mean").contains(&place("mean")), "{line}");
    assert_eq!(at(".median"), format!("holds  game.in_time.median@path.up.loss=0 0.96, {}", place("median")));
    assert!(at(".p10").contains(" 0.5,") && at(".p10").contains(&place("p10")), "{}", at(".p10"));
    assert!(at(".min").starts_with("FAILS") && at(".min").contains(&place("min")), "{}", at(".min"));
}

#[test]
fn a_bound_within_the_interval_is_undecided_and_says_how_many_repetitions_more_would_decide() {
    let at = |figure: &str, scores: &[f64]| {
        let run = |(repetition, mos): (u64, &f64)| run(0, repetition, None, [Some(*mos), Some(4.4)]);
        let plan = plan(&format!("\"call-up.{figure}@path.up.loss=0\" = \">= 3.6\""));
        judge(&plan, &summary((0..).zip(scores).map(run).collect())).remove(0)
    };
    // 3.66 ± 0.258 by Student's t with four degrees of freedom.
    let judged = at("mos", &[3.4, 3.5, 3.7, 3.8, 3.9]);
    assert_eq!((judged.outcome, judged.needed), (ThresholdOutcome::Undecided, None));
    let (low, high) = judged.interval.unwrap();
    assert!((low - 3.402).abs() < 1e-3 && (high - 3.918).abs() < 1e-3, "{low} {high}");
    let more = judged.needed_repetitions.unwrap() - 5;
    let reason = format!(
        "(path.up.loss=0.0; mean of 5 repetitions): its 95 % interval is 3.4 to 3.92; about {more} repetitions more would decide"
    );
    assert!(judged.text.ends_with(&reason), "{}", judged.text);
    // As many again with the same spread decide.
    let scores: Vec<f64> =
        [3.4, 3.5, 3.7, 3.8, 3.9].into_iter().cycle().take((more as usize).next_multiple_of(5) + 5).collect();
    assert_eq!(at("mos", &scores).outcome, ThresholdOutcome::Holds);
    for (figure, scores, outcome) in [
        ("mos", &[4.0, 4.1][..], ThresholdOutcome::Undecided),
        ("mos", &[4.0, 4.01], ThresholdOutcome::Holds),
        ("mos", &[3.0, 3.01, 2.99], ThresholdOutcome::Fails),
        // All repetitions came out the same.
        ("mos", &[3.6, 3.6], ThresholdOutcome::Holds),
        // One repetition has no interval.
        ("mos", &[3.61], ThresholdOutcome::Holds),
        // Of nine values the second smallest is the lower end of the interval.
        ("mos.median", &[2.0, 3.6, 3.7, 3.7, 3.8, 3.8, 3.9, 3.9, 4.0], ThresholdOutcome::Holds),
        ("mos.median", &[2.0, 3.5, 3.7, 3.7, 3.8, 3.8, 3.9, 3.9, 4.0], ThresholdOutcome::Undecided),
        // These describe the repetitions that ran.
        ("mos.min", &[3.6, 3.7, 4.4], ThresholdOutcome::Holds),
        ("mos.p10", &[3.5, 3.7, 4.4], ThresholdOutcome::Fails),
    ] {
        let judged = at(figure, scores);
        assert_eq!(judged.outcome, outcome, "{scores:?}: {}", judged.text);
    }
}

#[test]
fn a_bound_at_an_end_of_what_is_possible_is_a_count_and_equality_needs_an_interval_without_width() {
    let at = |bound: &str, scores: [f64; 2]| {
        let runs = scores.map(|mos| run(0, u64::from(mos > 3.0), None, [Some(mos), Some(4.4)]));
        judge(&plan(&format!("\"call-up.mos@path.up.loss=0\" = \"{bound}\"")), &summary(runs.into()))
            .remove(0)
            .outcome
    };
    assert_eq!(at("<= 4.5", [2.0, 4.0]), ThresholdOutcome::Holds);
    assert_eq!(at("> 1", [2.0, 4.0]), ThresholdOutcome::Holds);
    assert_eq!(at("> 1.1", [2.0, 4.0]), ThresholdOutcome::Undecided);
    assert_eq!(at("== 3", [2.0, 4.0]), ThresholdOutcome::Undecided);
    assert_eq!(at("== 4", [4.0, 4.0]), ThresholdOutcome::Holds);
    assert_eq!(at("!= 4", [4.0, 4.0]), ThresholdOutcome::Fails);
    assert_eq!(at("== 3", [4.0, 4.0]), ThresholdOutcome::Fails);
}

#[test]
fn null_is_the_worst_of_the_repetitions_whatever_the_statistic() {
    let at = |statistic: &str, values: &[Option<f64>]| {
        told_of(&format!("\"game.in_time{statistic}@path.up.loss=0\" = \">= 0.9\""), values)
    };
    let unknown = " is not known (null), must be >= 0.9";
    assert!(at("", &[None, Some(0.95), Some(0.97)]).contains(unknown), "a mean rests on all of them");
    let median = at(".median", &[None, Some(0.95), Some(0.97)]);
    assert!(median.starts_with("holds  game.in_time.median@path.up.loss=0 0.95,"), "{median}");
    assert!(at(".median", &[None, None, Some(0.97)]).contains(unknown));
    assert!(at(".min", &[None, Some(0.95)]).contains(unknown));
    assert!(at("", &[]).starts_with("FAILS  game.in_time@path.up.loss=0 is not known (null)"));
    let bound = Bound { operator: Operator::AtMost, value: 1.0 };
    let sorted = sorted_values(&[None, Some(0.5), Some(0.7)], bound);
    assert_eq!(Statistic::Median.over(&sorted), Some(0.7), "null is the worst here too");
}

#[test]
fn a_key_that_is_called_as_a_statistic_is_goes_before_it() {
    let with_delay = |repetition, min: f64, p95: f64| {
        let mut run = run(0, repetition, None, [Some(4.0), Some(4.0)]);
        let delay = serde_json::json!({ "min": min, "mean": p95, "p50": p95, "p90": p95, "p95": p95,
            "p99": p95, "p999": p95, "max": p95 });
        let game = run.flows.get_mut("game").unwrap();
        game.round_trip_delay_ms = Some(serde_json::from_value(delay).unwrap());
        run
    };
    let runs = [with_delay(0, 10.0, 50.0), with_delay(1, 12.0, 70.0), with_delay(2, 40.0, 90.0)];
    let at = |figure: &str| {
        told(&format!("\"game.{figure}@path.up.loss=0\" = \"<= 100\""), runs.to_vec()).remove(0)
    };
    for (figure, found) in [
        ("round_trip_delay_ms.min", " 12, must be <= 100 (path.up.loss=0.0; median of 3 "),
        ("round_trip_delay_ms.min.min", " 10, must be <= 100 (path.up.loss=0.0; min of 3 "),
        ("round_trip_delay_ms.p95.min", " 50, must be <= 100 (path.up.loss=0.0; min of 3 "),
        ("round_trip_delay_ms.mean", " 70, must be <= 100 (path.up.loss=0.0; median of 3 "),
        ("round_trip_delay_ms.mean.mean", " 70, must be <= 100 (path.up.loss=0.0; mean of 3 "),
    ] {
        assert!(at(figure).contains(found), "{figure}: {}", at(figure));
    }
}

#[test]
fn a_call_whose_directions_take_turns_fails_as_the_table_has_it_although_each_mean_would_hold() {
    let runs = vec![run(0, 0, None, [Some(4.4), Some(3.0)]), run(0, 1, None, [Some(3.0), Some(4.4)])];
    let line = told("\"call.mos@path.up.loss=0\" = \">= 3.6\"", runs.clone()).remove(0);
    assert!(
        line.starts_with("FAILS  call.mos@path.up.loss=0 3, must be >= 3.6 (the worst of each"),
        "{line}"
    );
    let up = told("\"call-up.mos@path.up.loss=0\" = \">= 3.6\"", runs).remove(0);
    assert!(up.starts_with("UNDECIDED  call-up.mos@path.up.loss=0 3.7,"), "{up}");
}

/// Fifteen cells of twenty repetitions: most calls are good, and a tail of them is bad, the longer the more
/// loss there is. There the median is usable and the mean is not.
#[test]
fn of_fifteen_cells_table_answer_and_threshold_say_the_same() {
    let text = concat!(
        "duration = \"1 s\"\npath = \"lan\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n",
        "[sweep]\n\"path.up.loss\" = [0.0, 0.01, 0.02, 0.03, 0.04]\n\"path.up.delay\" = [\"1 ms\", \"2 ms\", \"3 ms\"]\n",
        "[thresholds]\n\"call.mos\" = \">= 3.1\"\n",
    );
    let mut plan = load(&Source::new("s.toml", text.to_owned()), &Options::default()).unwrap();
    let mut stream = Seed::new(46).stream("mos");
    let runs = plan.cells.iter().flat_map(|cell| {
        let tail = 0.2 + 0.15 * cell.index as f64;
        let mos: Vec<f64> = (0..20).map(|_| (4.0 - tail * stream.exponential()).max(1.0)).collect();
        (0..).zip(mos).map(|(repetition, mos)| {
            let mut run = run(cell.index, repetition, None, [Some(mos), None]);
            let call = run.flows.remove("call-up").unwrap();
            run.flows = [("call".to_owned(), call)].into();
            run.sweep = std::sync::Arc::clone(&cell.sweep).into();
            run
        })
    });
    let summary = summary(runs.collect());
    let table = run_table(&summary, &Style { width: 120, color: false, explain: true });
    let whole = judge(&plan, &summary).remove(0);
    let threshold = plan.thresholds.remove(0);
    let (mut fails, mut undecided, mut differ) = (0, 0, 0);
    for cell in &summary.cells {
        plan.thresholds = vec![Threshold { cells: vec![cell.cell], ..threshold.clone() }];
        let judged = judge(&plan, &summary).remove(0);
        let spread = &cell.flows["call"]["call.mos"];
        assert_eq!((judged.statistic, judged.found), (Some(Statistic::Mean), Some(spread.mean)));
        let (loss, delay) = (&cell.sweep["path.up.loss"], cell.sweep["path.up.delay"].as_str().unwrap());
        let row = table.lines().find(|row| row.starts_with(delay) && row.contains(&format!("   {loss} ")));
        let row = row.unwrap_or_else(|| panic!("no row of {loss} and {delay}: {table}"));
        let row = row.trim_end();
        let is_usable = row.ends_with(" usable");
        // Of two outcomes, on both sides of the floor, both are shown, and the mean decides.
        if !row.contains("usable in ") {
            assert!(row.contains(&format!(" {:.2} ", spread.mean)), "{} {row}", spread.mean);
            assert!(is_usable || row.ends_with("unusable"), "{row}");
            if judged.outcome != ThresholdOutcome::Undecided {
                assert_eq!(judged.outcome == ThresholdOutcome::Holds, is_usable, "{row}: {}", judged.text);
            }
        }
        let (low, high) = spread.ci95.unwrap();
        let expected = match (low >= 3.1, high >= 3.1) {
            (true, true) => ThresholdOutcome::Holds,
            (false, false) => ThresholdOutcome::Fails,
            _ => ThresholdOutcome::Undecided,
        };
        assert_eq!(judged.outcome, expected, "{row}: {}", judged.text);
        fails += u64::from(expected == ThresholdOutcome::Fails);
        undecided += u64::from(expected == ThresholdOutcome::Undecided);
        differ += u64::from(spread.median >= 3.1 && spread.mean < 3.1);
    }
    assert!(differ > 0 && fails > 0 && undecided > 0 && fails + undecided < 15, "{differ} {fails}: {table}");
    assert_eq!((whole.outcome, whole.cells), (ThresholdOutcome::Fails, 15));
    assert_eq!((whole.failing, whole.undecided), (fails, undecided));
    assert!(whole.text.contains("mean of 20 repetitions"), "{}", whole.text);
}

/// A game that lost so many of its messages in one repetition.
fn lossy(cell: u64, repetition: u64, lost: u64, of: u64) -> RunSummary {
    let mut run = run(cell, repetition, Some(1.0 - lost as f64 / of as f64), [Some(4.0), Some(4.0)]);
    let game = run.flows.get_mut("game").unwrap();
    (game.sent, game.received, game.lost) = (of, of - lost, lost);
    game.loss_rate = Some(lost as f64 / of as f64);
    run
}

#[test]
fn a_share_of_few_messages_is_undecided_and_says_how_many_are_needed() {
    let at = |threshold: &str, runs: &[(u64, u64)]| {
        let runs = (0..).zip(runs).map(|(repetition, &(lost, of))| lossy(0, repetition, lost, of)).collect();
        judge(&plan(&format!("\"game.{threshold}\"")), &summary(runs)).remove(0)
    };
    let judged = at("loss_rate@path.up.loss=0\" = \"<= 0.1%", &[(0, 200)]);
    assert_eq!((judged.outcome, judged.needed), (ThresholdOutcome::Undecided, Some(3000)));
    assert_eq!(
        lines(&[judged]),
        "UNDECIDED  game.loss_rate@path.up.loss=0 0, must be <= 0.001 (path.up.loss=0.0; mean of 1 repetition): its \
         95 % interval is 0 to 0.015 with 200 messages; about 2800 messages more would decide\n"
    );
    for (threshold, runs, outcome) in [
        // The same from the other end, and whichever way it is asked.
        ("in_time@path.up.loss=0\" = \">= 99.9%", &[(0, 200)][..], ThresholdOutcome::Undecided),
        ("loss_rate@path.up.loss=0\" = \"> 0.1%", &[(0, 200)], ThresholdOutcome::Undecided),
        ("loss_rate@path.up.loss=0\" = \"== 0.1%", &[(0, 200)], ThresholdOutcome::Undecided),
        ("loss_rate@path.up.loss=0\" = \"!= 0.1%", &[(0, 200)], ThresholdOutcome::Undecided),
        // One message of them decides nothing, and ten do.
        ("loss_rate@path.up.loss=0\" = \"<= 0.1%", &[(1, 200)], ThresholdOutcome::Undecided),
        ("loss_rate@path.up.loss=0\" = \"<= 0.1%", &[(10, 200)], ThresholdOutcome::Fails),
        ("loss_rate@path.up.loss=0\" = \"> 0.1%", &[(10, 200)], ThresholdOutcome::Holds),
        // Together the repetitions have enough for a mean, and none of them alone for a median.
        ("loss_rate@path.up.loss=0\" = \"<= 0.1%", &[(0, 200); 15], ThresholdOutcome::Holds),
        ("loss_rate.median@path.up.loss=0\" = \"<= 0.1%", &[(0, 200); 15], ThresholdOutcome::Undecided),
        // None of 200 may be 1.5 %, and three of them 0.5 to 4.3 %.
        ("loss_rate@path.up.loss=0\" = \"<= 1%", &[(0, 200)], ThresholdOutcome::Undecided),
        ("loss_rate@path.up.loss=0\" = \"<= 1%", &[(3, 200)], ThresholdOutcome::Undecided),
        ("loss_rate@path.up.loss=0\" = \"<= 1%", &[(0, 300)], ThresholdOutcome::Holds),
        ("loss_rate@path.up.loss=0\" = \"<= 1%", &[(9, 200)], ThresholdOutcome::Fails),
        // None at all, and all, are counts.
        ("loss_rate@path.up.loss=0\" = \"<= 0", &[(0, 200)], ThresholdOutcome::Holds),
        ("in_time@path.up.loss=0\" = \">= 100%", &[(1, 200)], ThresholdOutcome::Fails),
    ] {
        assert_eq!(at(threshold, runs).outcome, outcome, "{threshold} of {runs:?}");
    }
}

#[test]
fn losses_in_runs_tell_less_and_need_more_messages() {
    let at = |independent: Option<f64>| {
        let mut run = lossy(0, 0, 24, 2_000);
        run.flows.get_mut("game").unwrap().loss_independent = independent;
        judge(&plan("\"game.loss_rate@path.up.loss=0\" = \"<= 0.5%\""), &summary(vec![run])).remove(0)
    };
    assert_eq!(at(Some(2_000.0)).outcome, ThresholdOutcome::Fails);
    let judged = at(Some(87.0));
    // By hand: 1.96² · 0.005 · 0.995 / 0.007² = 391 independent messages, each as 2000 / 87 of these.
    assert_eq!((judged.outcome, judged.needed), (ThresholdOutcome::Undecided, Some(8_989)));
    assert!(
        judged.text.ends_with(
            ", as 2000 messages in runs tell as little as 87; about 6989 messages more would decide"
        ),
        "{}",
        judged.text
    );
}

#[test]
fn a_loss_of_messages_most_of_which_are_unfinished_is_undecided_unless_nothing_can_change_it() {
    // Of 500 messages 10 arrived.
    let at = |threshold: &str, lost: u64, unfinished: u64| {
        let mut run = lossy(0, 0, lost, 10);
        let game = run.flows.get_mut("game").unwrap();
        (game.sent, game.unfinished) = (game.sent + unfinished, unfinished);
        if game.received + game.lost == 0 {
            game.loss_rate = None;
        }
        judge(&plan(&format!("\"game.loss_rate@path.up.loss=0\" = \"{threshold}\"")), &summary(vec![run]))
            .remove(0)
    };
    let judged = at("<= 1%", 0, 490);
    assert_eq!((judged.outcome, judged.needed), (ThresholdOutcome::Undecided, None));
    assert_eq!(
        judged.text,
        "game.loss_rate@path.up.loss=0 0, must be <= 0.01 (path.up.loss=0.0; mean of 1 repetition): 490 of 500 messages \
         were still queued or in flight at the end, and what becomes of them decides"
    );
    // Half of the 10 lost are 1 % of all, and at most 99 %.
    assert_eq!(at("<= 99%", 5, 490).outcome, ThresholdOutcome::Holds);
    assert_eq!(at("<= 0.5%", 5, 490).outcome, ThresholdOutcome::Fails);
    assert_eq!(at("<= 50%", 5, 490).outcome, ThresholdOutcome::Undecided);
    // As many that ended as are unfinished.
    assert_eq!(at("<= 50%", 0, 10).outcome, ThresholdOutcome::Holds);
}

#[test]
fn a_threshold_on_the_score_of_a_call_without_published_impairment_is_refused_with_the_reason() {
    let refused = |figure: &str, bitrates: &str| {
        let text = format!(
            "duration = \"1 s\"\npath = \"lan\"\n[flow.call]\ntransport = \"udp\"\n\
             workload = {{ kind = \"voice\", codec = \"opus\" }}\n\
             [sweep]\n\"flow.call.workload.bitrate\" = [{bitrates}]\n[thresholds]\n\"{figure}\" = \">= 1\"\n"
        );
        let plan = load(&Source::new("s.toml", text), &Options::default()).unwrap();
        refuse_unknown_figures(&plan).map_err(|why| why.to_string())
    };
    let (rated, both) = ("\"24 kbps\"", "\"24 kbps\", \"64 kbps\"");
    for figure in ["call.mos", "call.call.mos.p10", "call.usable", "call.call.patient_receiver.r"] {
        assert_eq!(refused(figure, rated), Ok(()), "{figure}");
        let why = refused(figure, both).unwrap_err();
        assert!(why.contains("the call has no score in the cell") && why.contains("64"), "{why}");
        assert!(why.contains("Alahmadi") && why.contains("`call.concealed`"), "{why}");
    }
    assert_eq!(refused("call.call.concealed", both), Ok(()));
    assert_eq!(refused("call.mos@flow.call.workload.bitrate=24 kbps", both), Ok(()));
}

#[test]
fn undecided_is_exit_code_6_and_5_where_another_threshold_fails() {
    let runs = || vec![lossy(0, 0, 0, 200), lossy(1, 0, 0, 200)];
    let ended = |thresholds: &str| {
        let judged = judge(&plan(thresholds), &summary(runs()));
        failure(&judged, true).map(|why| (why.exit_code(), why.to_string()))
    };
    let (code, text) = ended("\"game.loss_rate\" = \"<= 0.1%\"").unwrap();
    assert_eq!(code, 6);
    assert!(text.starts_with("the threshold is undecided:\n  game.loss_rate 0, must be"), "{text}");
    assert!(
        text.contains("undecided in 2 of 2 cells") && text.contains("about 2800 messages more"),
        "{text}"
    );
    let both = "\"game.loss_rate\" = \"<= 0.1%\"\n\"call.mos\" = \">= 4.4\"";
    let (code, text) = ended(both).unwrap();
    assert_eq!(code, 5);
    assert!(text.contains("1 of 2 thresholds do not hold") && text.contains("are undecided"), "{text}");
    assert_eq!(ended("\"call.mos\" = \">= 3.1\""), None);
}

#[test]
fn a_figure_that_is_not_there_is_an_error_with_what_is() {
    let refused = |thresholds: &str| {
        let plan = plan(thresholds);
        let before = refuse_unknown_figures(&plan).map_err(|why| why.to_string());
        before
            .map(|()| unknown(&judge(&plan, &summary(both([1.0, 1.0])))).unwrap().to_string())
            .unwrap_or_else(|why| why)
    };
    let misspelt = refused("\"game.in_tme\" = \">= 0.9\"");
    assert!(
        misspelt.contains("the flow game has no figure `in_tme`")
            && misspelt.contains("did you mean `in_time`?")
    );
    assert!(refuse_unknown_figures(&plan("\"game.speed\" = \">= 0.9\"")).is_err(), "before the run");
    assert!(refuse_unknown_figures(&plan("\"link.up.speed\" = \">= 0.9\"")).is_err(), "before the run");
    assert!(refuse_unknown_figures(&plan("\"link.up.queue_delay_ms.p95\" = \"<= 9\"")).is_ok());
    assert!(
        refuse_unknown_figures(&plan("\"call.jain_index\" = \">= 0.9\"")).is_ok(),
        "copies together have it"
    );
    let statistic = refused("\"call-up.mos.p50\" = \">= 0.9\"");
    assert!(statistic.contains("are .mean, .median, .p10, .min"), "{statistic}");
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
    let place = "(flow.call.direction=both; mean of 1 repetition)";
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
fn what_the_table_of_figures_has_as_a_share_is_one_where_thresholds_are_read_and_nothing_else_is() {
    fn check<T>(table: &'static Table<T>, of: &str) {
        for figure in table.rows() {
            let split =
                |value: &str| split_threshold(&format!("{of}.{} <= {value}", figure.path), false, percent_of);
            let is_share = figure.unit == Unit::Share;
            assert_eq!(split("5").is_err(), is_share, "{}", figure.path);
            let may_be = figure.unit == Unit::Judged || figure.path == "jain_index";
            let takes_percent = is_share || may_be;
            assert_eq!(split("5%").is_ok(), takes_percent, "{}", figure.path);
        }
    }
    check(&FLOW, "call");
    check(&GROUP, "call");
    check(&LINK, "link.up");
}

#[test]
fn a_flag_must_hold_in_each_repetition() {
    let is = |text: &str| Bound { operator: Operator::Equal, value: if text == "true" { 1.0 } else { 0.0 } };
    let value = |values: &[FigureValue], bound| {
        let repetitions =
            values.iter().map(|&value| RepetitionFigure { value, messages: None, possible: ANY }).collect();
        let figures = MemberFigures { member: None, repetitions };
        CellFigure::new(
            figures,
            CellName::default(),
            bound,
            StatisticChoice::Usual(Statistic::Mean),
            Level::Shown,
        )
        .value
    };
    let damaged = [FigureValue::Flag(true), FigureValue::Flag(false), FigureValue::Flag(true)];
    assert_eq!(value(&damaged, is("true")), Some(0.0), "one of three files is damaged");
    assert_eq!(value(&damaged, is("false")), Some(1.0));
    assert_eq!(value(&[FigureValue::Flag(true); 3], is("true")), Some(1.0));
    assert_eq!(
        value(&[FigureValue::Flag(true), FigureValue::Null], is("true")),
        None,
        "not known is the worst"
    );
}

#[test]
fn a_call_that_is_not_usable_says_in_which_repetitions_and_why() {
    let told_with = |change: &dyn Fn(u64, &mut CallSummary)| {
        let runs = (0..9).map(|repetition| {
            let mut run = run(0, repetition, None, [Some(4.2), Some(4.1)]);
            let flow = run.flows.get_mut("call-up").unwrap();
            flow.floor = Some(3.1);
            let call = flow.call.as_mut().unwrap();
            call.usable = Some(true);
            change(repetition, call);
            run
        });
        told("\"call-up.usable@path.up.loss=0\" = \"== true\"", runs.collect()).remove(0)
    };
    let two_gaps = told_with(&|repetition, call| {
        if repetition == 3 || repetition == 7 {
            (call.usable, call.longest_gap_ms, call.gaps_in_a_minute) = (Some(false), Some(300.0), Some(2));
        }
    });
    assert!(
        two_gaps.ends_with(
            "worst of 9 repetitions); usable in 77 %, and call-up.usable.mean demands a share; not in \
             repetitions 3, 7; in 3, 2 gaps of 200 ms or more begin within a minute, the longest of 300 ms"
        ),
        "{two_gaps}"
    );
    let one_gap = told_with(&|repetition, call| {
        if repetition == 4 {
            (call.usable, call.longest_gap_ms) = (Some(false), Some(1_240.0));
        }
    });
    assert!(one_gap.ends_with("; not in repetition 4; in 4, speech stops for 1240 ms"), "{one_gap}");
    let scored = told_with(&|_, call| (call.usable, call.mos) = (Some(false), Some(2.5)));
    assert!(
        scored.ends_with("worst of 9 repetitions); not in repetitions 0, 1, 2, 3, 4, 5 and 3 more; in 0, MOS is 2.50, below 3.10"),
        "{scored}"
    );
    assert!(!told_with(&|_, _| {}).contains("not in"));
}

#[test]
fn a_conversation_is_usable_where_both_of_its_directions_are() {
    let runs = || {
        (0..20).map(|repetition| {
            let mut run = run(0, repetition, None, [Some(4.2), Some(4.1)]);
            for (name, barred) in [("call-up", &[8][..]), ("call-down", &[3, 18])] {
                let call = run.flows.get_mut(name).unwrap().call.as_mut().unwrap();
                call.usable = Some(!barred.contains(&repetition));
                call.longest_gap_ms = Some(if barred.contains(&repetition) { 1_240.0 } else { 40.0 });
            }
            run
        })
    };
    let all = told("\"call.usable@path.up.loss=0\" = \"== true\"", runs().collect()).remove(0);
    assert!(
        all.ends_with("usable in 85 %, and call.usable.mean demands a share; not in repetitions 3, 8, 18; in 3 of call-down, speech stops for 1240 ms"),
        "{all}"
    );
    let share = told("\"call.usable.mean@path.up.loss=0\" = \">= 97%\"", runs().collect()).remove(0);
    assert!(
        share.contains("call.usable.mean@path.up.loss=0 0.85, must be >= 0.97 (the worst of each"),
        "{share}"
    );
    let close = told("\"call.usable.mean@path.up.loss=0\" = \">= 80%\"", runs().collect()).remove(0);
    assert!(close.contains("its 95 % interval is 0.679 to 1;"), "a share is at most 1: {close}");
    let up = told("\"call-up.usable.mean@path.up.loss=0\" = \">= 97%\"", runs().collect()).remove(0);
    assert!(up.contains(" 0.95, must be"), "{up}");
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
fn junit_has_an_undecided_threshold_as_an_error_with_what_is_needed() {
    let judged =
        judge(&plan("\"game.loss_rate@path.up.loss=0\" = \"<= 0.1%\""), &summary(vec![lossy(0, 0, 0, 200)]));
    let text = String::from_utf8(junit::xml("few", &judged).unwrap()).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap_or_else(|why| panic!("{why}: {text}"));
    let suite = document.root_element().first_element_child().unwrap();
    assert_eq!((suite.attribute("failures"), suite.attribute("errors")), (Some("0"), Some("1")), "{text}");
    let find = |name: &str| document.descendants().find(|it| it.has_tag_name(name)).unwrap();
    assert_eq!(find("error").attribute("type"), Some("undecided"));
    let property = find("property");
    assert_eq!((property.attribute("name"), property.attribute("value")), (Some("needed"), Some("3000")));
}

#[test]
fn a_score_that_holds_says_so_where_gaps_bar_the_call_or_the_other_receiver_fails() {
    let of = |gap: f64, other: f64, bound: &str| {
        let mut run = run(0, 0, None, [Some(4.2), Some(4.1)]);
        for flow in run.flows.values_mut() {
            flow.floor = Some(3.1);
            if let Some(call) = &mut flow.call {
                call.longest_gap_ms = Some(gap);
                let playout = "fixed 60 ms beyond the smallest delay".to_owned();
                call.other_receiver =
                    Some(OtherReceiver { playout, mos: Some(other), ..OtherReceiver::default() });
            }
        }
        told(&format!("\"call.mos@path.up.loss=0\" = \">= {bound}\""), vec![run]).remove(0)
    };
    let barred = of(1200.0, 4.0, "3.1");
    assert!(barred.starts_with("holds  call.mos"), "{barred}");
    assert!(barred.contains("gaps bar 2 of 2 calls") && barred.contains("call.usable == true"), "{barred}");
    let other = of(100.0, 1.0, "3.1");
    assert!(
        other.contains("with the receiver `fixed 60 ms beyond the smallest delay` it is 1.00"),
        "{other}"
    );
    for silent in [of(100.0, 4.0, "3.1"), of(1200.0, 1.0, "2"), of(1200.0, 1.0, "4.4")] {
        assert!(!silent.contains("; but "), "{silent}");
    }
}

#[test]
fn one_score_demanded_on_two_scales_says_so_with_their_floors() {
    let told_of = |scales: [&str; 2]| {
        let mut run = run(0, 0, None, [Some(4.2), Some(4.1)]);
        for (name, scale) in ["call-up", "call-down"].into_iter().zip(scales) {
            let flow = run.flows.get_mut(name).unwrap();
            flow.floor = Some(if scale == "nb" { 3.1 } else { 2.1 });
            flow.call.as_mut().unwrap().scale = scale.to_owned();
        }
        told("\"call.mos@path.up.loss=0\" = \">= 3.6\"", vec![run]).remove(0)
    };
    let two = told_of(["nb", "swb"]);
    assert!(two.ends_with("not comparable: nb (usable from 3.10 on), swb (usable from 2.10 on)"), "{two}");
    assert!(!told_of(["nb", "nb"]).contains("comparable"));
}
