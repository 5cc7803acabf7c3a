//! The experiment that a command runs, and the changes that the command line makes to its scenario.

use std::num::NonZeroUsize;

use talkpath_scenario::{Options, Plan};

use crate::args::RunArgs;
use crate::command::{Context, jobs};
use crate::page::Pages;
use crate::running::TerminalObserver;
use crate::scenario_file::path_setting;
use talkpath_experiment::Experiment;
use talkpath_experiment::choice::ArenaKind;
use talkpath_experiment::place::Place;
use talkpath_experiment::shard::Shard;

/// Describes the experiment that runs `plan`, or its part `shard`, with the defaults of everything that the
/// user left open.
pub(in crate::command) fn new_experiment<'p>(
    plan: &'p Plan,
    shard: Option<Shard>,
    place: Place,
    context: Context<'p>,
) -> Experiment<'p> {
    let at_once = match place.arena {
        ArenaKind::Sim => jobs(context.common),
        // Concurrent runs disturb each other in real time, so they run at once only if the user asks.
        ArenaKind::Emu => context.common.jobs.map_or(1, NonZeroUsize::get),
        ArenaKind::Live => 1,
    };
    let records = context.common.records();
    let observer = Box::new(TerminalObserver::new(context.terminal, records));
    Experiment {
        shard,
        records,
        series: context.common.series,
        at_once,
        jobs: jobs(context.common),
        ..Experiment::new(plan, place, context.arenas, observer, &Pages)
    }
}

/// Returns the changes that the command line makes to the scenario.
pub(super) fn options(args: &RunArgs) -> Options {
    let path = args.path.as_ref().map(|path| path_setting(path, args.scenario.as_deref()));
    Options {
        set: path.into_iter().chain(args.change.settings()).chain(args.demand.settings()).collect(),
        seed: args.place.seed,
        repeat: args.place.repeat,
        ..Options::default()
    }
}
