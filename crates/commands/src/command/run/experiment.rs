//! The experiment that a command runs, and the changes that the command line makes to its scenario.

use std::num::NonZeroUsize;

use talkpath_scenario::{Options, Plan};

use crate::arenas::Arenas;
use crate::args::{Common, RunArgs};
use crate::command::jobs;
use crate::page::Pages;
use crate::running::TerminalObserver;
use crate::terminal::Terminal;
use talkpath_experiment::Experiment;
use talkpath_experiment::choice::ArenaKind;
use talkpath_experiment::place::Place;
use talkpath_experiment::shard::Shard;

/// Describes the experiment that runs `plan`, or its part `shard`, with the default of everything that
/// `common` leaves open.
pub(in crate::command) fn new_experiment<'p>(
    plan: &'p Plan,
    shard: Option<Shard>,
    place: Place,
    common: &Common,
    arenas: &'p dyn Arenas,
    terminal: Terminal,
) -> Experiment<'p> {
    let at_once = match place.arena {
        ArenaKind::Sim => jobs(common),
        // Concurrent runs disturb each other in real time, so they run at once only if the user asks.
        ArenaKind::Emu => common.jobs.map_or(1, NonZeroUsize::get),
        ArenaKind::Live => 1,
    };
    Experiment {
        plan,
        growth: None,
        takes_turns: false,
        shard,
        place,
        arenas,
        records: common.records(),
        exact: false,
        series: common.series,
        at_once,
        jobs: jobs(common),
        observer: Box::new(TerminalObserver::new(terminal, common.records())),
        findings: &Pages,
    }
}

/// The changes that the command line makes to the scenario.
pub(super) fn options(args: &RunArgs) -> Options {
    Options {
        set: args.change.settings().chain(args.demand.settings()).collect(),
        seed: args.place.seed,
        repeat: args.place.repeat,
        ..Options::default()
    }
}
