//! `talkpath compare` runs one flow over each transport and says which transport serves it best. It has a
//! default for every choice that the user leaves open.
//!
//! A comparison grows while it runs: if the answer is still open after the first repetitions, more are run
//! (`grow`).

use std::path::Path;

use talkpath_measure::summary::{AnswerKind, Summary};
use talkpath_path::RateModel;
use talkpath_report::{HOPELESS, comparison_table, lacking};
use talkpath_scenario::{
    ByOption, Compared, Comparison, Options, Plan, Setting, Source, preset, presets, with_fq_codel,
    with_repetitions,
};
use talkpath_units::Rate;

use super::run::experiment;
use super::{conclude, files_of_sweep};
use crate::arenas::Arenas;
use crate::args::{Common, CompareArgs, HOME, quoted};
use crate::failure::Failure;
use crate::output_file::refuse_junit;
use crate::place;
use crate::running::{self, TerminalObserver};
use crate::scenario_file::{load_changed, load_source, load_source_beside, read};
use crate::terminal::{Terminal, program, shell_word, table_style};
use crate::thresholds;
use talkpath_experiment::choice::{ArenaKind, Records};
use talkpath_experiment::place::Place;
use talkpath_experiment::{Destination, Error, Experiment};

/// Runs one flow over each transport.
pub fn run(
    args: &CompareArgs,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    let place = place::named(&args.place)?;
    let path = ComparedPath::new(args, &place)?;
    if let (Some(flag), true) = (plc(args), args.workload != Compared::Voice) {
        return Err(Failure::Usage(format!(
            "{flag} belongs to --workload voice: only a call has frames to conceal"
        )));
    }
    let plan = plan(args, &place, &path)?;
    check_choice(args, &place)?;
    // A threshold that the plan cannot hold is refused now, and not after a long run.
    thresholds::before_the_run(&plan)?;
    refuse_junit(args.demand.junit.as_deref(), &[])?;
    let sizes: &[u64] = match (place.arena, args.place.repeat) {
        // A sweep does not grow, because each of its combinations would run again at every size.
        (ArenaKind::Sim, None) if args.change.sweep.is_empty() => &SIZES,
        _ => &[],
    };
    let tries_cure = place.arena != ArenaKind::Live && args.change.sweep.is_empty();
    let growth = |plan: &Plan, summary: &Summary| {
        grow(plan, summary, sizes, tries_cure).map_err(|why| Error::Unusable(why.in_full()))
    };
    let takes_turns = place.arena != ArenaKind::Sim;
    // The simulator can make the rows of a run again at any time, from the scenario and the seed. So it
    // writes them only if the user asks for records, and keeps exact figures instead.
    let exact = common.records.is_none() && place.arena == ArenaKind::Sim;
    let records = if exact { Records::None } else { common.records() };
    let experiment = Experiment {
        growth: Some(&growth),
        takes_turns,
        records,
        exact,
        observer: Box::new(TerminalObserver::new(terminal, records)),
        ..experiment(&plan, None, place, common, arenas, terminal)
    };
    let outcome = running::run(&experiment, Destination::Under(&common.out))?;
    let mut next = String::new();
    if !args.change.sweep.is_empty() {
        next += &files_of_sweep(&outcome.dir, &outcome.summary);
    }
    next +=
        &next_commands(args, &experiment.place, repetitions_to_propose(args.place.repeat, &outcome.summary));
    let table = comparison_table(&outcome.summary, args.workload.flow(), &table_style(args.place.tables));
    let junit = args.demand.junit.as_deref();
    conclude(outcome, &table, &next, junit, common, args.place.strict, terminal)
}

/// The path over which the transports are compared.
struct ComparedPath<'a> {
    /// The name of the path in the run's name.
    name: String,
    /// The scenario text that describes the path.
    source: Source,
    /// The file of `source`, if the user gave a file.
    file: Option<&'a Path>,
}

impl<'a> ComparedPath<'a> {
    /// Finds the path that the user chose: a network, a line of `--up` and `--down`, a file or a preset. With
    /// --path, the flags --up and --down change that path and are applied in [`path_settings`].
    fn new(args: &'a CompareArgs, place: &Place) -> Result<Self, Failure> {
        if let Some(host) = &place.to {
            return Self::network(host, args);
        }
        let own = match (&args.path, &args.up, &args.down) {
            (None, Some(up), Some(down)) => Some(format!("{up} up and {down} down")),
            (None, Some(_), None) => return Err(one_way("--up", "--down")),
            (None, None, Some(_)) => return Err(one_way("--down", "--up")),
            (None, None, None) | (Some(_), _, _) => None,
        };
        if let Some(name) = own {
            return Ok(Self { name, source: Source::path(OURS, ""), file: None });
        }
        let path = args.path.as_deref().unwrap_or(HOME);
        if path.ends_with(".toml") || path.contains('/') {
            let file = Path::new(path);
            let name = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
            return Ok(Self { name, source: Source::path(path, read(file)?), file: Some(file) });
        }
        let Some(preset) = preset(path) else {
            let known: Vec<_> = presets().iter().map(|preset| preset.name).collect();
            return Err(Failure::Usage(format!(
                "--path {path}: no such preset; the presets are {}; a file's name must end in .toml",
                known.join(", ")
            )));
        };
        Ok(Self { name: path.to_owned(), source: Source::path(preset.name, preset.text), file: None })
    }

    /// Describes the network between this host and `host`. Flags that would change a path are refused,
    /// because nobody can change the network.
    fn network(host: &str, args: &CompareArgs) -> Result<Self, Failure> {
        let path_flags = [
            ("--up", args.up.is_some()),
            ("--down", args.down.is_some()),
            ("--queue", args.queue.is_some()),
            ("--loss", args.loss.is_some()),
        ];
        let changed = args.change.set.iter().chain(&args.change.sweep);
        let changed = changed.map(|(key, _)| key.as_str()).filter(|key| is_path_key(key));
        let given = path_flags.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag);
        if let Some(what) = given.chain(changed).next() {
            return Err(Failure::Usage(format!(
                "{what} belongs to sim and emu: between two hosts the path is the network"
            )));
        }
        if args.alone {
            return Err(Failure::Usage(
                "--alone belongs to sim and emu: between two hosts there is no upload unless --load adds one"
                    .into(),
            ));
        }
        // A network's delay is not known, so what is under way at the end of the run has 5 s to arrive.
        Ok(Self { name: host.to_owned(), source: Source::new(OURS, "drain = \"5 s\""), file: None })
    }

    /// Reads the scenario of the path, changed by `options`.
    fn load(&self, options: &Options) -> Result<Plan, Failure> {
        match self.file {
            Some(file) => load_source_beside(file, &self.source, options),
            None => load_source(&self.source, options),
        }
    }
}

/// The error for a line with one direction only.
fn one_way(given: &str, other: &str) -> Failure {
    Failure::Usage(format!(
        "{given} without {other}: a line has an upload and a download; give {other} too, or give --path for the direction that is missing"
    ))
}

/// Makes the plan of the run from the user's choices and from our defaults. Later settings win over earlier
/// ones, so `--set` and `--sweep` win over the flags of the path and of the comparison.
fn plan(args: &CompareArgs, place: &Place, path: &ComparedPath<'_>) -> Result<Plan, Failure> {
    let begin_with = match place.arena {
        ArenaKind::Sim => SIZES[0],
        ArenaKind::Emu | ArenaKind::Live => ROUNDS,
    };
    let load = has_load(args, place.arena);
    let transports = args.transports();
    let controls = controls(args, place);
    let path_settings = path_settings(args);
    let plan_for = |duration: &str| {
        let comparison = Comparison {
            path: &path.name,
            compared: ByOption {
                value: args.workload,
                option: &format!("--workload {}", args.workload.name()),
            },
            transports: ByOption {
                value: &transports,
                option: &format!("--transports {}", transports.join(",")),
            },
            cc: ByOption { value: &controls, option: &format!("--cc {}", controls.join(",")) },
            load,
            duration: ByOption { value: duration, option: &format!("--duration {duration}") },
            // In `emu` this machine's kernel is measured, so defaults are those of this kernel.
            kernel: (place.arena == ArenaKind::Emu).then_some("this"),
        };
        let mut set = path_settings.clone();
        set.extend(comparison.settings());
        if args.no_plc {
            set.push(Setting::by("--no-plc", "flow.call.workload.concealment", quoted("none")));
        }
        set.extend(args.change.settings());
        set.extend(args.demand.settings());
        let repeat = Some(args.place.repeat.unwrap_or(begin_with));
        path.load(&Options { set, seed: args.place.seed, repeat })
    };
    if let Some(duration) = &args.duration {
        return plan_for(duration);
    }
    match place.arena {
        ArenaKind::Sim => match plan_for(SIM_DURATION)? {
            plan if load && is_fast(&plan) => plan_for(SHORT_DURATION),
            plan => Ok(plan),
        },
        ArenaKind::Emu | ArenaKind::Live if load => plan_for(SHORT_DURATION),
        ArenaKind::Emu | ArenaKind::Live => plan_for(ROUND_DURATION),
    }
}

/// The flag about concealment that the user typed.
const fn plc(args: &CompareArgs) -> Option<&'static str> {
    match (args.plc, args.no_plc) {
        (true, _) => Some("--plc"),
        (_, true) => Some("--no-plc"),
        (false, false) => None,
    }
}

/// The congestion controls that the user chose, or for `bulk` the ones that the arena has.
fn controls(args: &CompareArgs, place: &Place) -> Vec<String> {
    match (&args.cc[..], args.workload) {
        ([], Compared::Bulk) => {
            let known: &[&str] = if place.arena == ArenaKind::Sim { &SIM_CONTROLS } else { &KERNEL_CONTROLS };
            known.iter().map(|&name| name.to_owned()).collect()
        }
        (chosen, _) => chosen.to_vec(),
    }
}

/// Refuses a comparison that has only one transport with only one congestion control.
fn check_choice(args: &CompareArgs, place: &Place) -> Result<(), Failure> {
    let transports = args.transports();
    let (tcp, other): (Vec<_>, Vec<_>) = transports.iter().partition(|name| name.starts_with("tcp"));
    if tcp.len() * controls(args, place).len().max(1) + other.len() >= 2 {
        return Ok(());
    }
    let advice_for_sweep = if args.change.sweep.is_empty() {
        String::new()
    } else {
        format!(
            "; compare two over the sweep first: then `talkpath run RUN_DIR/scenario.toml --set flow.{}.transport={}` \
             runs one over the same sweep",
            args.workload.flow(),
            transports.first().map_or("udp", String::as_str)
        )
    };
    Err(Failure::Usage(format!(
        "{} alone: a comparison needs two transports or more, as in --transports udp,tcp, or for TCP two congestion \
         controls, as in --cc cubic,reno; `talkpath run SCENARIO.toml` runs a single one{advice_for_sweep}",
        transports.first().map_or("", String::as_str)
    )))
}

/// The settings of the path that the flags ask for.
fn path_settings(args: &CompareArgs) -> Vec<Setting> {
    let mut set = Vec::new();
    for (name, link) in [("up", &args.up), ("down", &args.down)] {
        set.extend(link.iter().flat_map(|link| link.settings(name)));
    }
    for name in ["up", "down"] {
        if let Some(queue) = &args.queue {
            set.push(Setting::by(&format!("--queue {queue}"), &format!("path.{name}.queue"), quoted(queue)));
        }
        if let Some(loss) = &args.loss {
            set.push(Setting::by(&format!("--loss {loss}"), &format!("path.{name}.loss"), loss.as_toml()));
        }
    }
    set
}

/// Returns the plan to run next, or `None` if the run is complete.
///
/// While the answer is open, the next plan has more repetitions, up to the largest of `sizes`. If the answer
/// is that no transport is usable, the next plan adds the same cells with `fq_codel` on the link with the
/// longest queue.
fn grow(plan: &Plan, summary: &Summary, sizes: &[u64], tries_cure: bool) -> Result<Option<Plan>, Failure> {
    let lacking = lacking(summary);
    let next = sizes.iter().copied().find(|&size| size > plan.repeat).filter(|_| lacking.repetitions);
    let text = match (next, lacking.cure_on.filter(|_| tries_cure)) {
        (Some(repeat), _) => Some(with_repetitions(&plan.resolved, repeat)),
        (None, Some(link)) => with_fq_codel(&plan.resolved, &link),
        (None, None) => None,
    };
    text.map(|text| load_changed(plan, text)).transpose()
}

/// Whether the uplink is so fast that 20 repetitions of 60 s would take long to simulate.
fn is_fast(plan: &Plan) -> bool {
    let links = plan.cells.iter().flat_map(|cell| &cell.scenario.links);
    let up = links.filter(|link| link.name == "up");
    up.into_iter().any(|link| match link.config.rate {
        RateModel::Fixed(rate) => rate > FAST,
        RateModel::Unlimited | RateModel::Trace(_) => false,
    })
}

/// How many repetitions the commands under the answer propose.
///
/// They propose the number that the user has `given`. If that number did not decide, they propose as many as
/// the answer asks for. `None` stands for the arena's own number.
fn repetitions_to_propose(given: Option<u64>, summary: &Summary) -> Option<u64> {
    let given = given?;
    let answers = || summary.comparisons.iter().map(|comparison| &comparison.answer);
    if !answers().any(|answer| answer.outcome == AnswerKind::Undecided) {
        return Some(given);
    }
    let more = answers().filter_map(|answer| answer.more).max()?;
    (more <= HOPELESS).then_some(given + more)
}

/// Whether an upload runs beside the compared flow. On a real network it does so only if the user asks,
/// because an upload fills somebody else's network.
const fn has_load(args: &CompareArgs, arena: ArenaKind) -> bool {
    match arena {
        ArenaKind::Sim | ArenaKind::Emu => !args.alone,
        ArenaKind::Live => args.load,
    }
}

/// Whether `key` is a key of the path.
fn is_path_key(key: &str) -> bool {
    key.split('.').next() == Some("path")
}

/// The commands that run the same comparison in another arena.
fn next_commands(args: &CompareArgs, place: &Place, repeat: Option<u64>) -> String {
    let compare = format!("{} compare", program());
    let flag = |name: &str, value: String| format!(" --{name} {}", shell_word(&value));
    let list = |name: &str, words: &[String]| match words {
        [] => String::new(),
        words => flag(name, words.join(",")),
    };
    let option =
        |name: &str, value: Option<String>| value.map_or_else(String::new, |value| flag(name, value));
    let mut choices = list("transports", &args.transports) + &list("cc", &args.cc);
    if args.workload != Compared::Voice {
        choices += &flag("workload", args.workload.name().to_owned());
    }
    choices += &option("duration", args.duration.clone());
    choices += &option("seed", args.place.seed.map(|seed| seed.to_string()));
    choices += &option("repeat", repeat.map(|repeat| repeat.to_string()));
    if args.no_plc {
        choices += " --no-plc";
    }
    let keys = |wants_path: bool| {
        let set = args.change.set.iter().map(|pair| ("set", pair));
        let all = set.chain(args.change.sweep.iter().map(|pair| ("sweep", pair)));
        let fitting = all.filter(|(_, (key, _))| is_path_key(key) == wants_path);
        fitting.map(|(name, (key, value))| flag(name, format!("{key}={value}"))).collect::<String>()
    };
    choices += &keys(false);
    // The default path is named as well, so that the user sees that the path stays the same. Over a network
    // this text is not printed.
    let path = [
        match (&args.path, &args.up) {
            (None, Some(_)) => String::new(),
            (path, _) => flag("path", path.clone().unwrap_or_else(|| HOME.to_owned())),
        },
        option("up", args.up.as_ref().map(ToString::to_string)),
        option("down", args.down.as_ref().map(ToString::to_string)),
        option("queue", args.queue.clone()),
        option("loss", args.loss.as_ref().map(ToString::to_string)),
        if args.alone { " --alone".to_owned() } else { String::new() },
        keys(true),
    ]
    .concat();
    match place.arena {
        ArenaKind::Sim => format!(
            "The same over real sockets: {compare} --arena emu{path}{choices}\n\
             Between two hosts: `{} serve --open` on the other, then {compare} --to HOST{choices} here\n",
            program()
        ),
        ArenaKind::Emu => {
            let kernel = if args.change.set.iter().any(|(key, _)| key == "kernel") {
                ""
            } else {
                " --set kernel=this"
            };
            format!("The same in the simulator: {compare}{path}{choices}{kernel}\n")
        }
        // No preset is known to be like this network, so the user has to choose the path.
        ArenaKind::Live => {
            let alone = if args.load { "" } else { " --alone" };
            format!("On a simulated path: {compare} --path PATH{alone}{choices}\n")
        }
    }
}

/// The file name in messages about the part of the scenario that this command writes.
const OURS: &str = "talkpath compare";
/// docs/reference/interface.md: what `--workload bulk` compares. A kernel need not have BBR.
const SIM_CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
const KERNEL_CONTROLS: [&str; 2] = ["cubic", "reno"];
/// docs/reference/interface.md: 60 s in `sim`.
const SIM_DURATION: &str = "60 s";
/// docs/reference/interface.md: the numbers of repetitions after which the answer is tried. Each is about
/// twice the one before; `measure::ranking` says what so few tries cost in certainty.
const SIZES: [u64; 5] = [20, 40, 80, 160, 200];
/// docs/reference/interface.md: rounds in real time. In each round every transport runs once.
const ROUNDS: u64 = 5;
/// docs/reference/interface.md: how long a transport runs in a round without an upload.
const ROUND_DURATION: &str = "2 s";
/// docs/reference/interface.md: how long a transport runs in a round beside an upload, and how long a
/// repetition on a fast path is.
const SHORT_DURATION: &str = "10 s";
/// docs/reference/interface.md: an uplink above this rate is fast. A repetition of 60 s then has at least
/// half a million packets.
const FAST: Rate = Rate::from_bps(100_000_000);
