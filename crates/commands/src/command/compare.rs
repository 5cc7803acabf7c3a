//! `talkpath compare` runs one flow over each transport and says which transport serves it best. It has a
//! default for every choice that the user leaves open.
//!
//! A comparison grows while it runs: if the answer is still open after the first repetitions, more are run
//! (`GrowthRule`).

mod next_commands;
pub(super) mod path;

use talkpath_measure::summary::Summary;
use talkpath_path::{LinkConfig, Medium, RateModel};
use talkpath_report::{comparison_table, lacking};
use talkpath_scenario::{
    ByOption, ComparedWorkload, Comparison, Options, Plan, Setting, Transfer, Variants, with_queue_limit,
    with_repetitions, with_variants,
};
use talkpath_units::Rate;

use self::next_commands::next_commands;
use self::path::{ComparedPath, UPLINK, UPLOAD, apply_line, is_path_key};
use super::run::new_experiment;
use super::until_decided::UntilDecided;
use super::{Conclusion, Context, conclude, files_of_sweep};
use crate::args::{CompareArgs, quoted};
use crate::failure::Failure;
use crate::output_file::refuse_junit;
use crate::place;
use crate::running::{self, Outcome, TerminalObserver};
use crate::scenario_file::{load_changed, note_path};
use crate::terminal::table_style;
use crate::thresholds;
use talkpath_experiment::choice::{ArenaKind, Records};
use talkpath_experiment::place::Place;
use talkpath_experiment::{Destination, Error, Experiment};

/// The congestion controls that `--workload bulk` compares in `sim` (docs/reference/interface.md).
const SIM_CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
/// The congestion controls that `--workload bulk` compares over a kernel, which need not have BBR
/// (docs/reference/interface.md).
const KERNEL_CONTROLS: [&str; 2] = ["cubic", "reno"];
/// How long a transport that carries a call or a transfer runs in `sim` (docs/reference/interface.md).
const SIM_DURATION: &str = "60 s";
/// How long a transport that carries a game runs in `sim`. It is shorter than a call, which is rated in
/// windows of 10 s, because each state of a game counts, and there are 1800 in this time
/// (docs/reference/interface.md).
const SIM_DURATION_OF_GAME: &str = "30 s";
/// The numbers of repetitions after which `sim` tries the answer (docs/reference/interface.md). Each is about
/// twice the one before; `measure::ranking` says what so few tries cost in certainty.
const REPETITIONS_TRIED: [u64; 5] = [20, 40, 80, 160, 200];
/// How many rounds run in real time. In each round every transport runs once (docs/reference/interface.md).
const ROUNDS: u64 = 5;
/// How long a transport runs in a round without an upload, if it carries no call
/// (docs/reference/interface.md).
const ROUND_DURATION: &str = "2 s";
/// How long a transport runs in a round beside an upload or with a call, and in `sim` on a fast path
/// (docs/reference/interface.md).
const SHORT_DURATION: &str = "10 s";
/// An uplink above this rate is fast: a repetition of 60 s has at least half a million packets
/// (docs/reference/interface.md).
const FAST: Rate = Rate::from_bps(100_000_000);

/// Runs the comparison, prints its answer and proposes what to type next.
pub fn run(args: &CompareArgs, context: Context<'_>) -> Result<(), Failure> {
    let place = place::from_flags(&args.place)?;
    let path = ComparedPath::choose(args, &place)?;
    if let Some(line) = &args.links.line {
        context.terminal.note(&line.assumptions());
    }
    refuse_speech_without_a_call(args)?;
    let plan = make_plan(args, &place, &path)?;
    note_path(&plan, context.terminal);
    refuse_single_candidate(args, &place)?;
    // A threshold about a figure that no run has is refused now, and not after a long run.
    thresholds::refuse_unknown_figures(&plan)?;
    refuse_junit(args.demand.junit.as_deref(), &[])?;

    let outcome = run_comparison(&plan, args, place.clone(), context)?;

    let mut next = String::new();
    if !args.change.sweep.is_empty() {
        next += &files_of_sweep(&outcome.dir, &outcome.summary);
    }
    let uplink = lowest_rate(&plan, UPLINK).filter(|_| has_load(args, place.arena));
    next += &next_commands(args, place.arena, &outcome.summary, uplink);
    let style = table_style(args.place.tables);
    let table = comparison_table(&outcome.summary, args.workload.flow(), &style);
    let conclusion = Conclusion { table: &table, next_commands: &next, demand: Some(&args.demand) };
    conclude(outcome, &conclusion, context)
}

/// Refuses a flag about speech if the compared flow is not a call.
fn refuse_speech_without_a_call(args: &CompareArgs) -> Result<(), Failure> {
    if args.workload == ComparedWorkload::Voice {
        return Ok(());
    }
    let flags = [
        ("--plc", args.plc, "frames to conceal"),
        ("--no-plc", args.no_plc, "frames to conceal"),
        ("--codec", args.codec.is_some(), "a codec"),
        ("--ptime", args.ptime.is_some(), "packets of speech"),
    ];
    match flags.iter().find(|(_, is_set, _)| *is_set) {
        None => Ok(()),
        Some((flag, _, what)) => {
            Err(Failure::Usage(format!("{flag} belongs to --workload voice: only a call has {what}")))
        }
    }
}

/// Refuses a comparison of a single transport with a single congestion control, unless it sweeps a key: then
/// it compares the values of that key.
fn refuse_single_candidate(args: &CompareArgs, place: &Place) -> Result<(), Failure> {
    let transports = args.transports();
    let (over_tcp, others): (Vec<_>, Vec<_>) = transports.iter().partition(|name| name.starts_with("tcp"));
    // Each TCP transport runs once with each congestion control. If none is named, it runs with the default.
    let controls = congestion_controls(args, place).len().max(1);
    if over_tcp.len() * controls + others.len() >= 2 || !args.change.sweep.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} alone: a comparison needs two transports or more, as in --transports udp,tcp, or for TCP two congestion \
         controls, as in --cc cubic,reno, or two values of a key of the flow, as in \
         --sweep flow.call.workload.red=0,1, or of the path, as in --sweep path.up.queue.limit=20ms,200ms; \
         `talkpath run SCENARIO.toml` runs a single one",
        transports.first().map_or("", String::as_str)
    )))
}

/// Makes the plan of the run. The duration is the one that the user chose. If the user chose none, it depends
/// on the arena, on the upload beside the compared flow, and in `sim` on the rate of the path.
fn make_plan(args: &CompareArgs, place: &Place, path: &ComparedPath) -> Result<Plan, Failure> {
    if let Some(duration) = &args.duration {
        return plan_with_duration(duration, args, place, path);
    }
    let load = has_load(args, place.arena);
    match place.arena {
        ArenaKind::Sim => {
            // The rate of the path is known only when the plan has been made.
            let duration = match args.workload {
                ComparedWorkload::Game => SIM_DURATION_OF_GAME,
                ComparedWorkload::Voice | ComparedWorkload::Bulk => SIM_DURATION,
            };
            let plan = plan_with_duration(duration, args, place, path)?;
            if load && has_fast_uplink(&plan) {
                return plan_with_duration(SHORT_DURATION, args, place, path);
            }
            Ok(plan)
        }
        ArenaKind::Emu | ArenaKind::Live => {
            // A call is rated in windows of 8 to 10 s.
            let is_call = args.workload == ComparedWorkload::Voice;
            let duration = if load || is_call { SHORT_DURATION } else { ROUND_DURATION };
            plan_with_duration(duration, args, place, path)
        }
    }
}

/// Makes the plan of a run in which each transport runs for `duration`.
///
/// The settings are applied in the order of the list, and a later one wins over an earlier one. So `--set`
/// and `--sweep` win over the flags of the path and of the comparison.
fn plan_with_duration(
    duration: &str,
    args: &CompareArgs,
    place: &Place,
    path: &ComparedPath,
) -> Result<Plan, Failure> {
    let transports = args.transports();
    let controls = congestion_controls(args, place);
    let comparison = Comparison {
        path: path.name(),
        workload: ByOption { value: args.workload, option: &format!("--workload {}", args.workload.name()) },
        transports: ByOption {
            value: &transports,
            option: &format!("--transports {}", transports.join(",")),
        },
        cc: ByOption { value: &controls, option: &format!("--cc {}", controls.join(",")) },
        load: has_load(args, place.arena),
        duration: ByOption { value: duration, option: &format!("--duration {duration}") },
        // In `emu` this machine's kernel is measured, so its defaults are the defaults of the scenario.
        kernel: (place.arena == ArenaKind::Emu).then_some("this"),
    };
    let mut set = args.links.settings();
    set.extend(comparison.settings());
    if args.no_plc {
        set.push(Setting::by("--no-plc", "flow.call.workload.concealment", quoted("none")));
    }
    if let Some(codec) = args.codec {
        let option = format!("--codec {}", codec.name());
        set.push(Setting::by(&option, "flow.call.workload.codec", quoted(codec.name())));
    }
    if let Some(ptime) = &args.ptime {
        set.push(Setting::by(&format!("--ptime {ptime}"), "flow.call.workload.ptime", quoted(ptime)));
    }
    set.extend(args.change.settings());
    set.extend(args.demand.settings());
    let first_repetitions = match place.arena {
        ArenaKind::Sim => REPETITIONS_TRIED[0],
        ArenaKind::Emu | ArenaKind::Live => ROUNDS,
    };
    let repeat = args.place.repeat.unwrap_or(first_repetitions);
    let mut plan =
        path.load(&Options { set, seed: args.place.seed, repeat: Some(repeat), ..Options::default() })?;
    apply_line(args.path.as_deref(), &args.links, chooses_queue(args), &mut plan)?;
    Ok(plan)
}

/// Returns whether the user chose a queue of the path by its key.
fn chooses_queue(args: &CompareArgs) -> bool {
    let mut changed_keys = args.change.set.iter().chain(&args.change.sweep).map(|(key, _)| key);
    changed_keys.any(|key| is_path_key(key) && key.contains("queue"))
}

/// Returns whether an upload runs beside the compared flow. On a real network it does so only if the user
/// asks, because an upload fills somebody else's network.
const fn has_load(args: &CompareArgs, arena: ArenaKind) -> bool {
    match arena {
        ArenaKind::Sim | ArenaKind::Emu => !args.alone,
        ArenaKind::Live => args.load,
    }
}

/// Returns the congestion controls that the user chose. For `bulk` the default is to compare those that the
/// arena has.
fn congestion_controls(args: &CompareArgs, place: &Place) -> Vec<String> {
    if !args.cc.is_empty() || args.workload != ComparedWorkload::Bulk {
        return args.cc.clone();
    }
    let compared: &[&str] = match place.arena {
        ArenaKind::Sim => &SIM_CONTROLS,
        ArenaKind::Emu | ArenaKind::Live => &KERNEL_CONTROLS,
    };
    compared.iter().map(|&name| name.to_owned()).collect()
}

/// Returns whether the uplink is so fast that 20 repetitions of 60 s would take long to simulate.
fn has_fast_uplink(plan: &Plan) -> bool {
    rate_of_link(plan, UPLINK).is_some_and(|rate| rate > FAST)
}

/// Returns a link of the first cell.
fn link_of<'plan>(plan: &'plan Plan, name: &str) -> Option<&'plan LinkConfig> {
    let link = plan.cells.first()?.scenario.links.iter().find(|link| link.name == name)?;
    Some(&link.config)
}

/// Returns the rate of a link in the first cell. `None` if there is no such link, or if its rate is not
/// fixed.
fn rate_of_link(plan: &Plan, name: &str) -> Option<Rate> {
    match link_of(plan, name)?.rate {
        RateModel::Fixed(rate) => Some(rate),
        RateModel::Unlimited | RateModel::Trace(_) => None,
    }
}

/// Returns the lowest rate above zero that a link has over time, in the first cell. `None` if there is no
/// such link, or if its rate is not fixed.
fn lowest_rate(plan: &Plan, name: &str) -> Option<Rate> {
    let scenario = &plan.cells.first()?.scenario;
    let index = scenario.links.iter().position(|link| link.name == name)?;
    let changed = scenario.changes.iter().filter(|change| change.link as usize == index);
    let changed = changed.filter_map(|change| match change.to.rate {
        Some(RateModel::Fixed(rate)) => Some(rate),
        _ => None,
    });
    changed
        .chain(rate_of_link(plan, name))
        .filter(|rate| rate.as_bps() > 0)
        .min()
        .filter(|_| rate_of_link(plan, name).is_some())
}

/// Runs `plan`, and more repetitions or cells as long as the answer is open.
fn run_comparison(
    plan: &Plan,
    args: &CompareArgs,
    place: Place,
    context: Context<'_>,
) -> Result<Outcome, Failure> {
    let arena = place.arena;
    let rule = GrowthRule::new(args, arena);
    let until = UntilDecided::begin(args.until.until_decided, plan, context.terminal)?;
    let next_plan = |plan: &Plan, summary: &Summary| match (rule.next_plan(plan, summary)?, &until) {
        (None, Some(until)) => until.next_plan(plan, summary),
        (larger_plan, _) => Ok(larger_plan),
    };
    let growth = |plan: &Plan, summary: &Summary| {
        next_plan(plan, summary).map_err(|why| Error::Unusable(why.in_full()))
    };
    // The simulator can make the rows of a run again at any time, from the scenario and the seed. So it
    // writes them only if the user asks for records, and keeps exact figures instead.
    let exact = context.common.records.is_none() && arena == ArenaKind::Sim;
    let records = if exact { Records::None } else { context.common.records() };
    let experiment = Experiment {
        growth: Some(&growth),
        // In real time the network changes meanwhile. Taking turns spreads the changes over all transports.
        takes_turns: arena != ArenaKind::Sim,
        records,
        exact,
        observer: Box::new(TerminalObserver::new(context.terminal, records)),
        ..new_experiment(plan, None, place, context)
    };
    running::run(&experiment, Destination::Under(&context.common.out))
}

/// How a comparison grows while its answer is open.
struct GrowthRule {
    /// The numbers of repetitions after which the answer is tried, in rising order. The list is empty if the
    /// comparison keeps the number with which it began.
    repetitions_tried: &'static [u64],
    /// Whether the same cells run with `fq_codel` on the link with the longest queue if no transport is
    /// usable.
    tries_fq_codel: bool,
    /// Whether they also run without the upload, with the upload held to a rate, and with other sizes of an
    /// assumed queue. In real time each would take as long as the whole comparison, so the next commands name
    /// the held upload instead.
    tries_more: bool,
}

impl GrowthRule {
    fn new(args: &CompareArgs, arena: ArenaKind) -> Self {
        // A sweep does not grow, because each of its combinations would run again at every size.
        let is_sweep = !args.change.sweep.is_empty();
        let has_open_size = arena == ArenaKind::Sim && args.place.repeat.is_none() && !is_sweep;
        Self {
            repetitions_tried: if has_open_size { &REPETITIONS_TRIED } else { &[] },
            // The queues of a real network cannot be replaced.
            tries_fq_codel: arena != ArenaKind::Live && !is_sweep,
            tries_more: arena == ArenaKind::Sim && !is_sweep,
        }
    }

    /// Returns the plan to run after `plan`, whose figures are in `summary`, or `None` if the run is
    /// complete.
    fn next_plan(&self, plan: &Plan, summary: &Summary) -> Result<Option<Plan>, Failure> {
        // Beside the transport a comparison sweeps the keys of its variants alone.
        let has_variants = plan.cells.first().is_some_and(|cell| cell.sweep.len() > 1);
        let lacking = lacking(summary);
        if lacking.repetitions
            && let Some(&repeat) = self.repetitions_tried.iter().find(|&&tried| tried > plan.repeat)
        {
            return load_changed(plan, with_repetitions(&plan.resolved, repeat)).map(Some);
        }
        if has_variants {
            let next = lacking.next_size.filter(|_| self.tries_more);
            let grown = next.and_then(|size| {
                with_queue_limit(&plan.resolved, &size.link, &size.limit, &lacking.variants_of)
            });
            return grown.map(|text| load_changed(plan, text)).transpose();
        }
        let cure_on = lacking.cure_on.filter(|_| self.tries_fq_codel);
        let full_queue = plan.understood.assumed_queues.iter().find(|link| was_full(summary, link));
        let full_queue = full_queue.filter(|_| self.tries_more);
        let Some(link) = cure_on.as_ref().or(full_queue) else { return Ok(None) };
        let config = link_of(plan, link);
        // The rate of a Wi-Fi is that of its frames, which no upload reaches.
        let is_wire = config.is_some_and(|link| link.medium == Medium::Wire);
        // The queue of a phone is in the phone and its cell: no router is before it that could have fq_codel.
        let is_of_cell = config.is_some_and(|link| link.cellular.is_some());
        let fills_link = self.tries_more && cure_on.is_some() && link == UPLINK && is_wire;
        let variants = Variants {
            link,
            fq_codel: cure_on.is_some() && !is_of_cell,
            shaped_below: rate_of_link(plan, link).filter(|_| is_wire && !changes_rate(plan, link)),
            sizes: full_queue == Some(link),
            transfer: fills_link.then(|| Transfer {
                flow: UPLOAD,
                // All phones of a cell share its rate: a cap stays below what the upload got.
                lowest_rate: if is_of_cell { rate_of_upload(summary) } else { lowest_rate(plan, link) },
            }),
            of_cells: &lacking.variants_of,
        };
        with_variants(&plan.resolved, &variants).map(|text| load_changed(plan, text)).transpose()
    }
}

/// Returns the mean goodput of the upload over all repetitions so far. `None` if nothing arrived.
fn rate_of_upload(summary: &Summary) -> Option<Rate> {
    let goodputs = summary.runs.iter().filter_map(|run| run.flows.get(UPLOAD)?.goodput_bps);
    let goodputs: Vec<f64> = goodputs.collect();
    let mean = goodputs.iter().sum::<f64>() / goodputs.len().max(1) as f64;
    (mean >= 1.0).then(|| Rate::from_bps(mean as u64))
}

/// Returns whether the rate of a link changes over time in the first cell. A router cannot be shaped to such
/// a rate.
fn changes_rate(plan: &Plan, name: &str) -> bool {
    let Some(cell) = plan.cells.first() else { return false };
    let index = cell.scenario.links.iter().position(|link| link.name == name);
    let mut changes = cell.scenario.changes.iter();
    changes.any(|change| Some(change.link as usize) == index && change.to.rate.is_some())
}

/// Returns whether the queue of `link` dropped a packet in any repetition. The size of a queue that was never
/// full does not matter.
fn was_full(summary: &Summary, link: &str) -> bool {
    summary.runs.iter().any(|run| run.links.get(link).is_some_and(|figures| figures.dropped > 0))
}
