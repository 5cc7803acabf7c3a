//! `talkpath compare`: the main job, with every choice made.

use talkpath_path::RateModel;
use talkpath_report::comparison_table;
use talkpath_scenario::{Options, Plan, compare_scenario, preset, presets};
use talkpath_units::{Duration, Rate};

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
    let repeat = match place.arena {
        ArenaKind::Sim => Some(args.place.repeat.unwrap_or(SIM_REPETITIONS)),
        ArenaKind::Emu | ArenaKind::Live => args.place.repeat,
    };
    // Somebody else's network is not filled unasked.
    let load = args.load || place.arena != ArenaKind::Live;
    // A live run's path is the network: it is named after where it went.
    let name = place.to.as_ref().map(|host| ("name".to_owned(), format!("voice to {host}")));
    let set = name.into_iter().chain(args.set.iter().cloned()).collect();
    // The kernel's own hosts are compared with hosts as this kernel makes them.
    let kernel = (place.arena == ArenaKind::Emu).then_some("this");
    let options = Options { set, seed: args.place.seed, repeat };
    let plan_for = |duration| {
        let text = compare_scenario(&args.path, &args.transports(), load, duration, kernel);
        load_text("the scenario of `talkpath compare`", text, &options)
    };
    let plan = match place.arena {
        ArenaKind::Sim => match plan_for(SIM_DURATION)? {
            plan if load && is_fast(&plan) => plan_for(SHORT_DURATION)?,
            plan => plan,
        },
        ArenaKind::Emu | ArenaKind::Live => plan_for(SHORT_DURATION)?,
    };
    let way_on = way_on(args, &place);
    let experiment = Experiment {
        plan: &plan,
        place,
        records: common.records,
        series: common.series,
        jobs: jobs(common),
        terminal,
    };
    let outcome = experiment.run(&common.out)?;
    let table = comparison_table(&outcome.summary, CALL, &terminal::style());
    conclude(outcome, &table, &way_on, common, args.place.strict, terminal)
}

/// Whether an upload over the path has too many packets for 20 repetitions of 60 s without a long wait.
fn is_fast(plan: &Plan) -> bool {
    let links = plan.cells.iter().flat_map(|cell| &cell.scenario.links);
    let up = links.filter(|link| link.name == "up");
    up.into_iter().any(|link| match link.config.rate {
        RateModel::Fixed(rate) => rate > FAST,
        RateModel::Unlimited | RateModel::Trace(_) => false,
    })
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
    for (key, value) in &args.set {
        choices += &format!(" --set '{key}={value}'");
    }
    // Between two hosts the path is the network.
    let path = if args.path == HOME { String::new() } else { format!(" --path {}", args.path) };
    match place.arena {
        ArenaKind::Sim => format!(
            "The same over real sockets: {compare} --arena emu{path}{choices}\n\
             Between two hosts: `{} serve` on the other, then {compare} --to HOST{choices} here\n",
            program()
        ),
        ArenaKind::Emu => {
            let kernel =
                if args.set.iter().any(|(key, _)| key == "kernel") { "" } else { " --set kernel=this" };
            format!("The same in the simulator: {compare}{path}{choices}{kernel}\n")
        }
        ArenaKind::Live => format!("The same in the simulator: {compare}{choices}\n"),
    }
}

/// The flow that is compared, as the scenario names it.
const CALL: &str = "call";
/// docs/reference/interface.md: 60 s in `sim`.
const SIM_DURATION: Duration = Duration::from_secs(60);
/// docs/reference/interface.md. The winner of one seed is often not that of the next: 20 seeds on `wifi-busy`
/// name four different ones.
const SIM_REPETITIONS: u64 = 20;
/// docs/reference/interface.md: 10 s a transport in real time, and on a fast path.
const SHORT_DURATION: Duration = Duration::from_secs(10);
/// docs/reference/interface.md. On a faster uplink 60 s of an upload are at least half a million packets a
/// repetition.
const FAST: Rate = Rate::from_bps(100_000_000);
