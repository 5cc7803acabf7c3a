//! A campaign as an arena of a study. The figures of the campaign's measurements become samples of the
//! study's cells.
//!
//! A section `[[campaign]]` of a study names a cell, two hosts, a measure, perhaps a day, and a transport for
//! each flow of the cell. The flows of a cell run at the same time, but a campaign measures one transport
//! after the other. So repetition k of the cell consists of the k-th round of each transport. Left out:
//! links, figures of single packets, and series, because summaries do not have them.

use std::collections::BTreeMap;

use talkpath_measure::summary::{FlowSummary, RunSummary};
use talkpath_study::{ArenaName, CampaignCell, Cell, CellSamples, RunId, Sample, Study};

use crate::findings::{Recorded, main_flow, transport};

/// Makes the samples that the claims of `study` read from the measurements in `recorded`. A cell without a
/// measurement is left out.
pub fn samples(study: &Study, recorded: &[Recorded<'_>]) -> Vec<CellSamples> {
    let mut by_ends: BTreeMap<(&str, &str, &str), Vec<&Recorded<'_>>> = BTreeMap::new();
    for item in recorded {
        let measurement = item.measurement;
        let ends = (measurement.near.as_str(), measurement.far.as_str(), measurement.measure.as_str());
        by_ends.entry(ends).or_default().push(item);
    }
    // A campaign measures under the first assumption of the study.
    let assumption = study.assumptions.first().map_or("", |assumption| assumption.name.as_str());
    let cells: BTreeMap<&str, &Cell> = study
        .cells
        .iter()
        .filter(|cell| cell.arena == ArenaName::Campaign)
        .map(|cell| (cell.name.as_str(), cell))
        .collect();
    let mut all = Vec::new();
    for section in &study.campaign {
        // Only cells of this arena are measured by a campaign.
        let Some(cell) = cells.get(section.cell.as_str()) else { continue };
        let mut samples = CellSamples::begin(cell, assumption, &cell.full.fingerprint);
        let ends = (section.near.as_str(), section.far.as_str(), section.measure.as_str());
        let between = by_ends.get(&ends).map_or(&[][..], Vec::as_slice);
        let is_wanted = |item: &&&Recorded<'_>| section.day.is_none_or(|day| item.measurement.day == day);
        for item in between.iter().filter(is_wanted) {
            add_rounds(&mut samples, item, section, study);
        }
        if !samples.samples.is_empty() {
            all.push(samples);
        }
    }
    all
}

/// Adds each round of one measurement to `made` as a repetition.
fn add_rounds(made: &mut CellSamples, recorded: &Recorded<'_>, section: &CampaignCell, study: &Study) {
    let summary = recorded.summary;
    let mut rounds: BTreeMap<u64, BTreeMap<String, (&RunSummary, &FlowSummary)>> = BTreeMap::new();
    for run in &summary.runs {
        let Some((name, flow)) = main_flow(run).and_then(|name| Some((name, run.flows.get(name)?))) else {
            continue;
        };
        rounds.entry(run.repetition).or_default().insert(transport(run, name, flow), (run, flow));
    }
    for by_transport in rounds.values() {
        let flows: BTreeMap<&str, &FlowSummary> = section
            .flows
            .iter()
            .filter_map(|(flow, transport)| Some((flow.as_str(), by_transport.get(transport)?.1)))
            .collect();
        // A round without any of the section's transports is left out.
        let Some((run, _)) = by_transport.values().next().filter(|_| !flows.is_empty()) else { continue };
        let is_disturbed = by_transport.values().any(|(run, _)| recorded.is_disturbed(run));
        let disturbing = is_disturbed.then_some(summary.warnings.as_slice());
        // Days follow each other, each with all its rounds.
        let id = RunId { repetition: made.samples.len() as u64, seed: run.seed };
        made.add(Sample::of_campaign(&flows, &summary.clock, id, disturbing, study));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use talkpath_measure::summary::{MachineSummary, Summary};
    use talkpath_scenario::Source;
    use talkpath_study::{Selection, Verdict, judge, load};

    use super::*;
    use crate::plan::Measurement;

    const SCENARIO: &str = "duration = \"1 s\"\npath = \"lan\"\n\
        [flow.udp]\ntransport = \"udp\"\nworkload = { kind = \"voice\", echo = true }\n\
        [flow.tcp]\ntransport = \"tcp\"\nworkload = { kind = \"voice\", echo = true }\n";

    const STUDY: &str = r#"
title = "t"
authors = ["a"]
year = 2004
source = "s"
question = "q"
set_up = "u"
repeat = 6
quick = { repeat = 2, assumptions = ["base"] }
[[assumption]]
name = "base"
text = "t"
[[cells]]
name = "CAM"
scenario = "s.toml"
[[campaign]]
cell = "CAM"
near = "cu"
far = "cam"
measure = "call"
flows = { udp = "udp", tcp = "tcp" }
[[claim]]
id = "Z1"
text = "Nagle costs round trips"
published = "2.3 to 3.0"
expected = { sim = "reproduced", emu = "reproduced", campaign = "reproduced" }
why = "w"
basis = "predicted"
check = [
    { name = "TCP over UDP", cell = "CAM", ratio = [{ metric = "flows.tcp.round_trip_delay_ms.p90" }, { metric = "flows.udp.round_trip_delay_ms.p90" }], between = [2.3, 3.0] },
]
[[claim]]
id = "Z8"
text = "Its clock is good"
published = "-"
arenas = ["campaign"]
expected = "reproduced"
why = "w"
basis = "predicted"
check = [{ name = "trusted", metric = "clock.trusted=true", cell = "CAM", at_least = 1.0 }]
"#;

    fn measurement(far: &str, day: u64) -> Measurement {
        Measurement {
            id: format!("d{day}.{far}"),
            near: "cu".to_owned(),
            far: far.to_owned(),
            measure: "call".to_owned(),
            day,
            local: String::new(),
            due_ms: 0,
            until_ms: 0,
            seed: 1,
        }
    }

    /// Makes the summary of two rounds, with a delay of 75 ms over UDP and `factor` times as much over TCP.
    fn summary(factor: f64, valid: bool) -> Summary {
        let delay = |p90: f64| json!({"min": 1.0, "mean": p90, "p50": p90, "p90": p90, "p95": p90, "p99": p90, "p999": p90, "max": p90});
        let run = |cell: u64, transport: &str, repetition: u64, p90: f64| {
            let mut flow = serde_json::to_value(FlowSummary::default()).unwrap();
            flow["round_trip_delay_ms"] = delay(p90);
            json!({"cell": cell, "sweep": {"flow.call.transport": transport}, "repetition": repetition, "seed": 7,
                   "flows": {"call": flow}, "groups": {}, "links": {}})
        };
        let rounds =
            (0..2).flat_map(|round| [run(0, "udp", round, 75.0), run(1, "tcp", round, 75.0 * factor)]);
        serde_json::from_value(json!({
            "talkpath": "0", "name": "call", "arena": "emu", "started": "", "wall_s": 0.0, "cpu_s": 0.0, "valid": valid,
            "warnings": ["it was late"], "percentiles": "exact",
            "clock": {"offset_ms": 0.0, "skew_ppm": 0.0, "uncertainty_ms": 0.0, "trusted": true, "why": ""},
            "runs": rounds.collect::<Vec<_>>(), "cells": [],
        }))
        .unwrap()
    }

    /// Returns the verdicts of Z1 and Z8 over two days with [`summary`], and the number of repetitions.
    fn judged(factor: f64, valid: bool) -> (Verdict, Verdict, u64) {
        judged_of(&summary(factor, valid))
    }

    fn judged_of(summary: &Summary) -> (Verdict, Verdict, u64) {
        let files = [Source::new("s.toml", SCENARIO)];
        let study = load("t", &Source::new("study.toml", STUDY), &files).unwrap_or_else(|it| panic!("{it}"));
        let of = [("cam", 1), ("cam", 2), ("uv", 1)];
        let measurements = of.map(|(far, day)| measurement(far, day));
        let recorded: Vec<_> =
            measurements.iter().map(|measurement| Recorded { measurement, summary }).collect();
        let selection = Selection { arenas: vec![ArenaName::Campaign], ..Selection::default() };
        let outcome = judge(&study, &selection, &samples(&study, &recorded));
        let [first, second] = outcome.claims.as_slice() else { panic!("two claims") };
        (first.in_first_arena.verdict, second.in_first_arena.verdict, first.in_first_arena.n)
    }

    #[test]
    fn a_claim_is_judged_by_the_rounds_of_all_days_and_flips_when_nagle_is_off() {
        assert_eq!(judged(2.8, true), (Verdict::Reproduced, Verdict::Reproduced, 4));
        assert_eq!(judged(1.05, true), (Verdict::Differs, Verdict::Reproduced, 4));
    }

    #[test]
    fn measurements_that_the_machine_disturbed_give_no_verdict() {
        assert_eq!(judged(2.8, false), (Verdict::Disturbed, Verdict::Disturbed, 0));
    }

    #[test]
    fn a_round_of_which_one_transport_was_disturbed_is_left_out_alone() {
        let mut summary = summary(2.8, false);
        for (at, run) in summary.runs.iter_mut().enumerate() {
            let machine = MachineSummary { valid: Some(at != 1), ..MachineSummary::default() };
            run.machine = Some(Box::new(machine));
        }
        // One round of two, on each of two days.
        assert_eq!(judged_of(&summary), (Verdict::Reproduced, Verdict::Reproduced, 2));
    }
}
