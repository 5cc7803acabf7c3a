//! `talkpath compare`: the main job, with every choice made.

use talkpath_report::comparison_table;
use talkpath_scenario::{Options, compare_scenario, preset, presets};
use talkpath_units::Duration;

use super::{conclude, jobs, program};
use crate::arenas::Place;
use crate::args::{ArenaKind, Common, CompareArgs, HOME};
use crate::experiment::Experiment;
use crate::failure::Failure;
use crate::scenario_file::load_text;
use crate::terminal::{self, Terminal};

/// Runs one voice call over each transport.
pub(crate) fn run(args: &CompareArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let place = Place::new(&args.place)?;
    if preset(&args.path).is_none() {
        let known: Vec<_> = presets().iter().map(|preset| preset.name).collect();
        return Err(Failure::Usage(format!(
            "--path {}: no such preset; there are {}",
            args.path,
            known.join(", ")
        )));
    }
    let duration = if place.arena == ArenaKind::Sim { SIM_DURATION } else { REAL_TIME_DURATION };
    // Somebody else's network is not filled unasked.
    let load = args.load || place.arena != ArenaKind::Live;
    let text = compare_scenario(&args.path, &args.transports(), load, duration);
    // A live run's path is the network: it is named after where it went.
    let name = place.to.as_ref().map(|host| ("name".to_owned(), format!("voice to {host}")));
    let set = name.into_iter().collect();
    let options = Options { set, seed: args.place.seed, repeat: args.place.repeat };
    let plan = load_text("the scenario of `talkpath compare`", text, &options)?;
    let way_on = way_on(args, &place);
    let experiment = Experiment { plan: &plan, place, records: common.records, jobs: jobs(common), terminal };
    let outcome = experiment.run(&common.out)?;
    let table = comparison_table(&outcome.summary, CALL, &terminal::style());
    conclude(outcome, &table, &way_on, common, args.place.strict, terminal)
}

/// What to type next: the same over real sockets, or in the simulator.
fn way_on(args: &CompareArgs, place: &Place) -> String {
    let compare = format!("{} compare", program());
    let mut choices = String::new();
    if !args.transports.is_empty() {
        choices += &format!(" --transports {}", args.transports.join(","));
    }
    for (flag, number) in [("seed", args.place.seed), ("repeat", args.place.repeat)] {
        choices += &number.map_or_else(String::new, |number| format!(" --{flag} {number}"));
    }
    // Between two hosts the path is the network.
    let path = if args.path == HOME { String::new() } else { format!(" --path {}", args.path) };
    match place.arena {
        ArenaKind::Sim => format!(
            "The same over real sockets: {compare} --arena emu{path}{choices}\n\
             Between two hosts: `{} serve` on the other, then {compare} --to HOST{choices} here\n",
            program()
        ),
        ArenaKind::Emu => format!("The same in the simulator: {compare}{path}{choices}\n"),
        ArenaKind::Live => format!("The same in the simulator: {compare}{choices}\n"),
    }
}

/// The flow that is compared, as the scenario names it.
const CALL: &str = "call";
/// docs/interface.md: 60 s in `sim`.
const SIM_DURATION: Duration = Duration::from_secs(60);
/// docs/interface.md: 10 s a transport where time is real.
const REAL_TIME_DURATION: Duration = Duration::from_secs(10);
