//! `talkpath compare`: the main job, with every choice made.

use talkpath_measure::summary::Summary;
use talkpath_path::RateModel;
use talkpath_report::{comparison_table, lacking};
use talkpath_scenario::{Options, Plan, compare_scenario, preset, presets, with_fq_codel, with_repetitions};
use talkpath_units::{Duration, Rate};

use super::{conclude, jobs, program};
use crate::arenas::Place;
use crate::args::{ArenaKind, Common, CompareArgs, HOME, TRANSPORTS};
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
    let begin_with = match place.arena {
        ArenaKind::Sim => SIZES[0],
        ArenaKind::Emu | ArenaKind::Live => ROUNDS,
    };
    let repeat = Some(args.place.repeat.unwrap_or(begin_with));
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
        load_text(COMPARED, text, &options)
    };
    let plan = match place.arena {
        ArenaKind::Sim => match plan_for(SIM_DURATION)? {
            plan if load && is_fast(&plan) => plan_for(SHORT_DURATION)?,
            plan => plan,
        },
        ArenaKind::Emu | ArenaKind::Live if load => plan_for(SHORT_DURATION)?,
        ArenaKind::Emu | ArenaKind::Live => plan_for(ROUND_DURATION)?,
    };
    let way_on = way_on(args, &place);
    let sizes: &[u64] = match (place.arena, args.place.repeat) {
        (ArenaKind::Sim, None) => &SIZES,
        _ => &[],
    };
    let tries_cure = place.arena != ArenaKind::Live;
    let growth = |plan: &Plan, summary: &Summary| grow(plan, summary, sizes, tries_cure);
    let experiment = Experiment {
        plan: &plan,
        growth: Some(&growth),
        takes_turns: place.arena != ArenaKind::Sim,
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

/// The plan to go on with: more repetitions, up to the largest of `sizes`, until the answer is settled; and
/// if nothing is usable, the same cells with `fq_codel` on the link whose queue is longest.
fn grow(plan: &Plan, summary: &Summary, sizes: &[u64], tries_cure: bool) -> Result<Option<Plan>, Failure> {
    let lacking = lacking(summary);
    let next = sizes.iter().copied().find(|&size| size > plan.repeat).filter(|_| lacking.repetitions);
    let text = match (next, lacking.cure_on.filter(|_| tries_cure)) {
        (Some(repeat), _) => Some(with_repetitions(&plan.resolved, repeat)),
        (None, Some(link)) => with_fq_codel(&plan.resolved, &link),
        (None, None) => None,
    };
    text.map(|text| load_text(COMPARED, text, &Options::default())).transpose()
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
    let transports = args.transports.join(",");
    if transports != TRANSPORTS {
        choices += &format!(" --transports {transports}");
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

/// How its scenario is called where it is wrong.
const COMPARED: &str = "the scenario of `talkpath compare`";
/// The flow that is compared, as the scenario names it.
const CALL: &str = "call";
/// docs/reference/interface.md: 60 s in `sim`.
const SIM_DURATION: Duration = Duration::from_secs(60);
/// docs/reference/interface.md: with how many repetitions the answer is tried, until it is settled. Each time
/// about twice as many: `measure::ranking` says what so few tries cost in certainty.
const SIZES: [u64; 5] = [20, 40, 80, 160, 200];
/// docs/reference/interface.md: rounds in real time, in each of which every transport has its turn.
const ROUNDS: u64 = 5;
/// docs/reference/interface.md: a call's turn without a load.
const ROUND_DURATION: Duration = Duration::from_secs(2);
/// docs/reference/interface.md: a call's turn beside a load, and a repetition on a fast path.
const SHORT_DURATION: Duration = Duration::from_secs(10);
/// docs/reference/interface.md. On a faster uplink 60 s of an upload are at least half a million packets a
/// repetition.
const FAST: Rate = Rate::from_bps(100_000_000);
