//! `talkpath run`: a scenario file, from the beginning or from where it was stopped.

use std::path::Path;

use talkpath_report::run_table;
use talkpath_scenario::{Options, Plan, Setting};

use super::{conclude, jobs, program};
use crate::arenas::Place;
use crate::args::{Common, RunArgs};
use crate::experiment::{Experiment, Outcome, resumable};
use crate::failure::Failure;
use crate::run_dir::{RunDir, SCENARIO};
use crate::scenario_file::load_file;
use crate::terminal::{self, Terminal};
use crate::thresholds::{self, Demands};

/// Runs or resumes.
pub(crate) fn run(args: &RunArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let (outcome, place, plan) = match (&args.resume, &args.scenario) {
        (Some(path), _) => resume(path, args, common, terminal)?,
        (None, Some(scenario)) => fresh(scenario, args, common, terminal)?,
        (None, None) => return Err(Failure::Usage("run needs a scenario file".to_owned())),
    };
    let table = run_table(&outcome.summary, &terminal::style());
    let again =
        format!("Again: {} run {}{}\n", program(), outcome.dir.file(SCENARIO).display(), place.flags());
    let demands = Demands { plan: &plan, junit: args.demand.junit.as_deref() };
    conclude(outcome, &table, &again, &demands, common, args.place.strict, terminal)
}

fn fresh(
    scenario: &Path,
    args: &RunArgs,
    common: &Common,
    terminal: Terminal,
) -> Result<(Outcome, Place, Plan), Failure> {
    let place = Place::new(&args.place)?;
    let plan = load_file(scenario, &options(args))?;
    let outcome = run_plan(&plan, place.clone(), args.rounds, common, terminal)?;
    Ok((outcome, place, plan))
}

/// Runs all of `plan` in a new directory; each repetition's cells in an order of its own if it `takes_turns`.
pub(super) fn run_plan(
    plan: &Plan,
    place: Place,
    takes_turns: bool,
    common: &Common,
    terminal: Terminal,
) -> Result<Outcome, Failure> {
    thresholds::before_the_run(plan)?;
    let experiment = Experiment {
        plan,
        growth: None,
        takes_turns,
        place,
        records: common.records,
        series: common.series,
        jobs: jobs(common),
        terminal,
    };
    experiment.run(&common.out)
}

fn resume(
    path: &Path,
    args: &RunArgs,
    common: &Common,
    terminal: Terminal,
) -> Result<(Outcome, Place, Plan), Failure> {
    let refuse = |why: &str| Failure::Usage(format!("--resume {}: {why}", path.display()));
    let dir = RunDir::open(path)?;
    let recorded = dir.file(SCENARIO);
    let plan = load_file(&recorded, &Options::default())?;
    let asked_for = load_file(args.scenario.as_deref().unwrap_or(&recorded), &options(args))?;
    if (&asked_for.resolved, &asked_for.traces) != (&plan.resolved, &plan.traces) {
        return Err(refuse("it ran another scenario (or seed, or repeat) than the one asked for"));
    }
    if !dir.has_parts() {
        return Err(refuse("this run is whole, nothing is missing"));
    }
    let begun = resumable(&dir)?;
    if begun.talkpath != env!("CARGO_PKG_VERSION") {
        let why = format!("version {} began it, and another may draw other numbers", begun.talkpath);
        return Err(refuse(&why));
    }
    let place = Place {
        arena: begun.arena()?,
        to: begun.to.clone(),
        key_file: args.place.key_file.clone(),
        clocks_synchronised: args.place.clocks_synchronised,
        capture: args.place.capture,
        keep_awake: args.place.keep_awake,
    };
    if args.place.arena.is_some_and(|arena| arena != place.arena) {
        return Err(refuse("it ran in another arena"));
    }
    let (records, series) = (begun.records()?, begun.series()?);
    let experiment = Experiment {
        plan: &plan,
        growth: None,
        takes_turns: args.rounds,
        place,
        records,
        series,
        jobs: jobs(common),
        terminal,
    };
    let outcome = experiment.resume(dir, &begun)?;
    Ok((outcome, experiment.place, plan))
}

fn options(args: &RunArgs) -> Options {
    Options {
        set: args.set.iter().cloned().map(Setting::from).chain(args.demand.settings()).collect(),
        seed: args.place.seed,
        repeat: args.place.repeat,
    }
}
