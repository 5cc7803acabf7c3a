//! Runs the first cell of a scenario file in the emulated arena, and tells what came of it:
//! `emu_run SCENARIO.toml [KEY=VALUE]...`, each pair as `--set` has it.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use talkpath_arena::{Arena, RunPlan};
use talkpath_emu::{EmuArena, replay};
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summarise::summarise;
use talkpath_scenario::{Options, Setting, Source, load};
use talkpath_wire::machine::Machines;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let name = words.next().ok_or("usage: emu_run SCENARIO.toml [KEY=VALUE]...")?;
    let text = std::fs::read_to_string(&name).map_err(|error| format!("{name}: {error}"))?;
    let set = words
        .map(|word| word.split_once('=').map(|(key, value)| Setting::new(key, value)))
        .collect::<Option<_>>()
        .ok_or("a change is KEY=VALUE")?;
    let options = Options { set, ..Options::default() };
    let plan = load(&Source::new(name, text), &options).map_err(|mistakes| format!("{mistakes:#?}"))?;
    let scenario = &plan.cells.first().ok_or("the scenario has no cell")?.scenario;
    let mut arena = EmuArena::default().with_machines(Machines::made_by(talkpath_transport::new_machine));
    let interrupt = AtomicBool::new(false);
    let run = RunPlan {
        cell: 0,
        repetition: 0,
        seed: plan.seed,
        series: Some(SeriesDetail::Sampled),
        rows: true,
        interrupt: &interrupt,
        progress: &|_| {},
    };
    let record = arena.run(scenario, run).map_err(|error| error.to_string())?;
    let summary = summarise(&record, &Default::default());
    for (name, flow) in &summary.flows {
        println!(
            "{name}: {} sent, {} received, {} lost, goodput {:?} bit/s, retransmit rate {:?}, blocked {:?} ms",
            flow.sent, flow.received, flow.lost, flow.goodput_bps, flow.retransmit_rate, flow.blocked_ms
        );
        println!("  one way {:?}", flow.one_way_delay_ms);
        println!("  round trip {:?}", flow.round_trip_delay_ms);
    }
    for (name, link) in &summary.links {
        println!("{name}: {link:?}");
    }
    if let Some(report) = arena.report() {
        println!("{report}");
    }
    println!("valid: {}", record.valid);
    record.warnings.iter().for_each(|warning| println!("warning: {warning}"));
    let log = arena.take_arrival_log().ok_or("there is no log")?;
    println!("log of {} bytes; {:?}", log.len(), replay(&log, scenario).map_err(|error| error.to_string())?);
    Ok(())
}
