//! The sounds of the calls of a run. Its packets have no speech, so the speaker reads a recording.

use core::ops::Range;

use talkpath_experiment::part::{REPORT, SUMMARY};
use talkpath_experiment::run_dir::{RunDir, SCENARIO};
use talkpath_measure::summary::{Basis, Direction};
use talkpath_measure::{FlowRecord, Hearing};
use talkpath_scenario::{Options, Scenario};
use talkpath_sound::{Recording, Sound, Speaker, render};
use talkpath_units::Instant;

use super::chosen::{ChosenCall, choose, records};
use super::heard::{Figures, HeardCall, HeardCalls, limits};
use crate::arenas::Arenas;
use crate::args::ListenArgs;
use crate::command::report::refuse_lossy_page;
use crate::failure::Failure;
use crate::scenario_file::load_file;
use crate::summary_file::read_summary;
use crate::terminal::Terminal;

/// Opens the directory of the run.
pub(super) fn open(args: &ListenArgs) -> Result<RunDir, Failure> {
    let path = &args.source;
    let why = |why: String| Err(Failure::Usage(format!("{}: {why}", path.display())));
    if let Some(option) = args.reading.first_given() {
        return why(format!("{option} is for captures, and this is a directory"));
    }
    if path.join(SUMMARY).exists() && !path.join(SCENARIO).exists() {
        return why(
            "a capture was rated here, and its speech is not in it; listen to the capture itself".to_owned()
        );
    }
    let dir = RunDir::open(path)?;
    if args.report {
        refuse_lossy_page(&dir, &dir.file(REPORT))?;
    }
    Ok(dir)
}

/// Makes the sound of each call that the command line asks for.
pub(super) fn hear(
    args: &ListenArgs,
    dir: &RunDir,
    recording: &Recording,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<HeardCalls, Failure> {
    let summary = read_summary(dir, terminal)?;
    let plan = load_file(&dir.file(SCENARIO), &Options::default())?;
    let chosen = choose(args, &plan, &summary)?;
    let mut calls = Vec::new();
    for (record, call) in records(dir, &summary, &chosen, arenas)? {
        let sound = sound(args, &record, call, recording)?;
        calls.push(HeardCall::new(sound, figures(call, &record)));
    }
    Ok(HeardCalls { title: summary.name, has_cells: plan.cells.len() > 1, calls, rated: None })
}

/// Makes the sound of a call.
fn sound(
    args: &ListenArgs,
    record: &FlowRecord,
    call: &ChosenCall<'_>,
    recording: &Recording,
) -> Result<Sound, Failure> {
    let unheard = |why: String| {
        let (flow, cell) = (&call.flow.name, call.id.cell);
        Failure::Usage(format!("{}: flow `{flow}`, cell {cell}: {why}", args.source.display()))
    };
    let hearing = Hearing::of(record, &window(call.scenario), direction(call, record));
    let hearing = hearing.ok_or_else(|| unheard("it is not known which frames arrived".to_owned()))?;
    let Some(voice) = call.flow.workload.voice() else {
        return Err(unheard("it is not a call".to_owned()));
    };
    let sound = render(&hearing, &voice.coding, Speaker::Reads(recording), limits(args, None));
    sound.map_err(|why| unheard(why.to_string()))
}

/// The part of a run in which frames count.
fn window(scenario: &Scenario) -> Range<Instant> {
    let at = |time| Instant::ZERO.saturating_add(time);
    at(scenario.warm_up)..at(scenario.duration)
}

/// The direction that the score of the call is of.
fn direction(call: &ChosenCall<'_>, record: &FlowRecord) -> Option<Direction> {
    let Some(rated) = call.rated else { return Some(Direction::Forward) };
    match rated.basis {
        Basis::HalfRoundTrip if record.echo.is_some() => None,
        Basis::HalfRoundTrip | Basis::OneWay | Basis::RoundTrip => {
            Some(rated.direction.unwrap_or(Direction::Forward))
        }
    }
}

fn figures(call: &ChosenCall<'_>, record: &FlowRecord) -> Figures {
    Figures {
        flow: call.flow.name.clone(),
        transport: Some(call.transport.to_owned()),
        cell: Some(call.id.cell),
        repetition: Some(call.id.repetition),
        direction: direction(call, record),
        codec: record.info.terms.call.map_or("", |terms| terms.codec.name()),
        playout: record.info.terms.call.map_or_else(String::new, |terms| terms.playout.words()),
        mos: call.rated.and_then(|rated| rated.mos),
        ..Figures::default()
    }
}
