//! `talkpath run` runs a scenario file. With `--shard` it runs one part of the scenario's repetitions, and
//! with `--resume` it goes on with a run, or with a part, that an earlier process began.

mod conclusion;
mod earlier;
mod experiment;

use std::path::Path;

use talkpath_measure::summary::Summary;
use talkpath_scenario::Plan;

use self::conclusion::{conclude_part, conclude_run};
use self::earlier::EarlierRun;
pub(super) use self::experiment::new_experiment;
use self::experiment::options;
use crate::args::RunArgs;
use crate::command::Context;
use crate::command::allowed::{check_plan, usual_arena};
use crate::command::until_decided::UntilDecided;
use crate::failure::Failure;
use crate::output_file::refuse_junit;
use crate::place;
use crate::running::{self, Outcome};
use crate::scenario_file::{load_file, note_path};
use crate::thresholds;
use talkpath_experiment::choice::ArenaKind;
use talkpath_experiment::place::Place;
use talkpath_experiment::run_dir::RunDir;
use talkpath_experiment::shard::Shard;
use talkpath_experiment::{Destination, Error, Experiment};

/// Runs the scenario, one part of it, or what is missing of an earlier run.
pub fn run(args: &RunArgs, context: Context<'_>) -> Result<(), Failure> {
    if let Some(path) = &args.resume {
        let (dir, earlier) = EarlierRun::open(path, "--resume", args, context)?;
        return match earlier.shard {
            Some(shard) => earlier.resume_part(dir, shard, context),
            None => earlier.resume(dir, args, context),
        };
    }
    let Some(scenario) = &args.scenario else {
        return Err(Failure::Usage("run needs a scenario file".to_owned()));
    };
    match args.shard.shard {
        Some(shard) => run_shard(scenario, shard, args, context),
        None => run_whole(scenario, args, context),
    }
}

/// Runs all repetitions of `scenario` in a new directory, and prints the tables.
fn run_whole(scenario: &Path, args: &RunArgs, context: Context<'_>) -> Result<(), Failure> {
    let plan = load_file(scenario, &options(args))?;
    note_path(&plan, context.terminal);
    check_plan(&plan, args.allow_program)?;
    let place = place::with_usual_arena(&args.place, usual_arena(&plan))?;
    refuse_junit(args.demand.junit.as_deref(), &[])?;
    let until = UntilDecided::begin(args.until.until_decided, &plan, context.terminal)?;
    let outcome = run_plan(&plan, place.clone(), args.rounds, until.as_ref(), context)?;
    conclude_run(outcome, &place, &plan, args, context)
}

/// Runs all repetitions of `plan` in a new directory. If the cells take turns (`takes_turns`), each
/// repetition runs them in a random order of its own. With `until` more repetitions run until it ends them.
pub(super) fn run_plan(
    plan: &Plan,
    place: Place,
    takes_turns: bool,
    until: Option<&UntilDecided>,
    context: Context<'_>,
) -> Result<Outcome, Failure> {
    thresholds::refuse_unknown_figures(plan)?;
    let growth = |plan: &Plan, summary: &Summary| match until {
        Some(until) => until.next_plan(plan, summary).map_err(|why| Error::Unusable(why.in_full())),
        None => Ok(None),
    };
    let defaults = new_experiment(plan, None, place, context);
    let experiment =
        Experiment { takes_turns, growth: if until.is_some() { Some(&growth) } else { None }, ..defaults };
    running::run(&experiment, Destination::Under(&context.common.out))
}

/// Runs the part `shard` of a scenario, in a new directory or in the one where the part was begun.
fn run_shard(scenario: &Path, shard: Shard, args: &RunArgs, context: Context<'_>) -> Result<(), Failure> {
    let place = place::from_flags(&args.place)?;
    refuse_shard_flags(&place, args)?;
    if let Some(path) = &args.shard.output
        && RunDir::is_begun(path)
    {
        return resume_shard(path, shard, args, context);
    }
    let plan = load_file(scenario, &options(args))?;
    check_plan(&plan, args.allow_program)?;
    thresholds::refuse_unknown_figures(&plan)?;
    let experiment = new_experiment(&plan, Some(shard), place, context);
    let destination = match &args.shard.output {
        Some(path) => Destination::At(path),
        None => Destination::Under(&context.common.out),
    };
    let part = running::run_part(&experiment, destination)?;
    conclude_part(part, shard, context)
}

/// Refuses the arenas and flags that a part of a run cannot have.
fn refuse_shard_flags(place: &Place, args: &RunArgs) -> Result<(), Failure> {
    if place.arena != ArenaKind::Sim {
        return Err(Failure::Usage(
            "--shard belongs to --arena sim: in real time a repetition's figures depend on the machine that runs \
             it, so one machine runs them all"
                .to_owned(),
        ));
    }
    if args.demand.strict || args.demand.junit.is_some() {
        return Err(Failure::Usage(
            "--shard: a part has no figures to judge, so it takes neither --strict nor --junit; `merge` judges \
             the scenario's thresholds"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Runs the missing repetitions of the part `shard`, which an earlier process began at `path`.
fn resume_shard(path: &Path, shard: Shard, args: &RunArgs, context: Context<'_>) -> Result<(), Failure> {
    let (dir, earlier) = EarlierRun::open(path, "-o", args, context)?;
    let path = path.display();
    match earlier.shard {
        Some(found) if found == shard => earlier.resume_part(dir, shard, context),
        Some(found) => Err(Failure::Usage(format!("{path}: holds part {found}, not {shard}"))),
        None => Err(Failure::Usage(format!("{path}: holds a whole run, not a part of one"))),
    }
}
