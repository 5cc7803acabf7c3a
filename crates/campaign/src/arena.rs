//! A campaign as an arena of a study: the measurements of the campaign become samples of the study's cells.
//!
//! A `[[campaign]]` entry of a study names a cell, two hosts, a measure, perhaps a day, and a transport for
//! each flow of the cell. The flows of a cell run at the same time, but a campaign measures one transport
//! after the other. So one *round*, in which each transport has run once, is one repetition of the cell.
//!
//! The samples have no figures of links or of single packets, and no series, because summaries do not have
//! them.

use std::collections::BTreeMap;

use talkpath_measure::LateFlow;
use talkpath_measure::summary::{FlowSummary, RunSummary};
use talkpath_study::{ArenaName, CampaignCell, Cell, CellSamples, RunId, Sample, Study};

use crate::findings::{PairKey, Recorded, main_flow, transport_name};

/// Makes the samples that the claims of `study` read from the measurements in `records`. A cell without a
/// measurement is left out.
pub fn samples(study: &Study, records: &[Recorded<'_>]) -> Vec<CellSamples> {
    let mut records_of_pairs: BTreeMap<PairKey<'_>, Vec<&Recorded<'_>>> = BTreeMap::new();
    for record in records {
        records_of_pairs.entry(PairKey::new(record.measurement)).or_default().push(record);
    }
    let mut campaign_cells: BTreeMap<&str, &Cell> = BTreeMap::new();
    for cell in study.cells.iter().filter(|cell| cell.arena == ArenaName::Campaign) {
        campaign_cells.insert(&cell.name, cell);
    }
    // A campaign measures under the first assumption set of the study, the base.
    let base = study.assumptions.first().map_or("", |set| set.name.as_str());
    let mut samples_of_cells = Vec::new();
    for entry in &study.campaign {
        let Some(cell) = campaign_cells.get(entry.cell.as_str()) else { continue };
        let pair = PairKey { near: &entry.near, far: &entry.far, measure: &entry.measure };
        let mut samples = CellSamples::new(cell, base, &cell.full_runs.fingerprint);
        for record in records_of_pairs.get(&pair).into_iter().flatten() {
            if entry.day.is_none_or(|day| record.measurement.day == day) {
                add_rounds(&mut samples, record, entry, study);
            }
        }
        if !samples.samples.is_empty() {
            samples_of_cells.push(samples);
        }
    }
    samples_of_cells
}

/// The run of one transport in a round.
struct TransportRun<'a> {
    run: &'a RunSummary,
    flow: &'a FlowSummary,
}

/// Adds each round of a measurement to `samples` as a repetition.
fn add_rounds(samples: &mut CellSamples, record: &Recorded<'_>, entry: &CampaignCell, study: &Study) {
    let summary = record.summary;
    for round in rounds(&summary.runs) {
        let mut flows: BTreeMap<&str, &FlowSummary> = BTreeMap::new();
        for (flow_name, transport) in &entry.flows {
            if let Some(transport_run) = round.get(transport) {
                flows.insert(flow_name, transport_run.flow);
            }
        }
        let Some(first) = round.values().next() else { continue };
        if flows.is_empty() {
            // The round has none of the transports of the entry.
            continue;
        }
        // Late packets bend single figures. Any other disturbance bars the whole round.
        let is_lost = |run: &RunSummary| record.is_disturbed(run) && late_flows(run).is_empty();
        let disturbing = round.values().any(|turn| is_lost(turn.run)).then_some(summary.warnings.as_slice());
        let late = late_flows_of_cell(&round, entry);
        // The repetitions of all days are numbered in one sequence.
        let id = RunId { repetition: samples.samples.len() as u64, seed: first.run.seed };
        samples.add(Sample::from_campaign(&flows, &summary.clock, id, &late, disturbing, study));
    }
}

/// Returns the flows whose packets the machine made late in `run`, if it disturbed the run in no other way.
fn late_flows(run: &RunSummary) -> &[LateFlow] {
    run.machine.as_ref().map_or(&[], |machine| &machine.late_flows)
}

/// Returns the late flows of a round under the names that they have in the cell of `entry`. Late probes of
/// the clock are left out: no figure of a flow rests on them.
fn late_flows_of_cell(round: &BTreeMap<String, TransportRun<'_>>, entry: &CampaignCell) -> Vec<LateFlow> {
    let mut late_of_cell = Vec::new();
    for (flow_name, transport) in &entry.flows {
        let Some(TransportRun { run, .. }) = round.get(transport) else { continue };
        let measured = main_flow(run);
        let late = late_flows(run).iter().find(|late| Some(late.name.as_str()) == measured);
        late_of_cell.extend(late.map(|late| LateFlow { name: flow_name.clone(), ..late.clone() }));
    }
    late_of_cell
}

/// Groups the runs of a measurement by round. In a round, each transport has one run.
fn rounds(runs: &[RunSummary]) -> Vec<BTreeMap<String, TransportRun<'_>>> {
    let mut by_number: BTreeMap<u64, BTreeMap<String, TransportRun<'_>>> = BTreeMap::new();
    for run in runs {
        let Some(name) = main_flow(run) else { continue };
        let Some(flow) = run.flows.get(name) else { continue };
        let round = by_number.entry(run.repetition).or_default();
        round.insert(transport_name(run, name, flow), TransportRun { run, flow });
    }
    by_number.into_values().collect()
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
    fn verdicts(factor: f64, valid: bool) -> (Verdict, Verdict, u64) {
        verdicts_of(&summary(factor, valid))
    }

    fn verdicts_of(summary: &Summary) -> (Verdict, Verdict, u64) {
        let files = [Source::new("s.toml", SCENARIO)];
        let study = load("t", &Source::new("study.toml", STUDY), &files)
            .unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let measurements = [("cam", 1), ("cam", 2), ("uv", 1)].map(|(far, day)| measurement(far, day));
        let recorded: Vec<_> =
            measurements.iter().map(|measurement| Recorded { measurement, summary }).collect();
        let selection = Selection { arenas: vec![ArenaName::Campaign], ..Selection::default() };
        let outcome = judge(&study, &selection, &samples(&study, &recorded));
        let [first, second] = outcome.claims.as_slice() else { panic!("two claims") };
        (first.in_first_arena.verdict, second.in_first_arena.verdict, first.in_first_arena.n)
    }

    #[test]
    fn a_claim_is_judged_by_the_rounds_of_all_days_and_flips_when_nagle_is_off() {
        assert_eq!(verdicts(2.8, true), (Verdict::Reproduced, Verdict::Reproduced, 4));
        assert_eq!(verdicts(1.05, true), (Verdict::Differs, Verdict::Reproduced, 4));
    }

    #[test]
    fn measurements_that_the_machine_disturbed_give_no_verdict() {
        assert_eq!(verdicts(2.8, false), (Verdict::Disturbed, Verdict::Disturbed, 0));
    }

    #[test]
    fn a_round_of_which_one_transport_was_disturbed_is_left_out_alone() {
        let mut summary = summary(2.8, false);
        for (index, run) in summary.runs.iter_mut().enumerate() {
            let machine = MachineSummary { valid: Some(index != 1), ..MachineSummary::default() };
            run.machine = Some(Box::new(machine));
        }
        // One round of two, on each of two days.
        assert_eq!(verdicts_of(&summary), (Verdict::Reproduced, Verdict::Reproduced, 2));
    }

    #[test]
    fn a_round_with_late_packets_keeps_the_quantiles_that_they_leave() {
        let late_in_first_udp_run = |late: u64| {
            let mut summary = summary(2.8, false);
            for (index, run) in summary.runs.iter_mut().enumerate() {
                let late = LateFlow { name: "call".to_owned(), messages: 100, late };
                let late_flows = if index == 0 { vec![late] } else { Vec::new() };
                let machine =
                    MachineSummary { valid: Some(index != 0), late_flows, ..MachineSummary::default() };
                run.machine = Some(Box::new(machine));
            }
            verdicts_of(&summary)
        };
        // The 90th percentile of 100 messages bears two late messages. With three only one of the two rounds
        // has the figure.
        assert_eq!(late_in_first_udp_run(2), (Verdict::Reproduced, Verdict::Reproduced, 4));
        assert_eq!(late_in_first_udp_run(3), (Verdict::Reproduced, Verdict::Reproduced, 2));
    }
}
