//! `talkpath run`: a scenario file, or a part of one, from the beginning or from where it was stopped.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;

use talkpath_report::run_table;
use talkpath_scenario::{Options, Plan, WorkloadConfig};
use talkpath_units::{Duration, counted};

use super::{again, conclude, files_of_sweep, jobs};
use crate::arenas::Arenas;
use crate::args::{Common, RunArgs};
use crate::failure::Failure;
use crate::output_file::refuse_junit;
use crate::page::Pages;
use crate::place;
use crate::running::{self, Outcome, TerminalObserver};
use crate::scenario_file::load_file;
use crate::terminal::{self, Terminal, program, shell_path, shell_word};
use crate::thresholds;
use talkpath_experiment::choice::ArenaKind;
use talkpath_experiment::json::json;
use talkpath_experiment::place::Place;
use talkpath_experiment::resumable::{Resumable, resumable};
use talkpath_experiment::run_dir::{RunDir, SCENARIO};
use talkpath_experiment::shard::Shard;
use talkpath_experiment::{Destination, Experiment, PartOutcome};

/// Runs or resumes.
pub fn run(args: &RunArgs, common: &Common, arenas: &dyn Arenas, terminal: Terminal) -> Result<(), Failure> {
    match (&args.resume, &args.scenario, args.shard.shard) {
        (Some(path), _, _) => {
            let (dir, begun) = EarlierRun::open(path, args, arenas)?;
            match begun.shard {
                Some(shard) => begun.run_part(dir, shard, common, arenas, terminal),
                None => begun.run(dir, args, common, arenas, terminal),
            }
        }
        (None, Some(scenario), None) => start(scenario, args, common, arenas, terminal),
        (None, Some(scenario), Some(shard)) => run_shard(scenario, shard, args, common, arenas, terminal),
        (None, None, _) => Err(Failure::Usage("run needs a scenario file".to_owned())),
    }
}

fn start(
    scenario: &Path,
    args: &RunArgs,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    let place = place::named(&args.place)?;
    let plan = load_file(scenario, &options(args))?;
    refuse_junit(args.demand.junit.as_deref(), &[])?;
    let outcome = run_plan(&plan, place.clone(), args.rounds, common, arenas, terminal)?;
    conclude_run(outcome, &place, &plan, args, common, terminal)
}

/// Prints the tables of a whole run, and what to type next.
fn conclude_run(
    outcome: Outcome,
    place: &Place,
    plan: &Plan,
    args: &RunArgs,
    common: &Common,
    terminal: Terminal,
) -> Result<(), Failure> {
    let table = run_table(&outcome.summary, &terminal::table_style(args.place.tables));
    let mut next_commands = again(&outcome.dir, &place::flags(place));
    if plan.cells.len() > 1 {
        next_commands += &files_of_sweep(&outcome.dir, &outcome.summary);
    }
    let junit = args.demand.junit.as_deref();
    conclude(outcome, &table, &next_commands, junit, common, args.place.strict, terminal)
}

/// Runs all of `plan` in a new directory; each repetition's cells in an order of its own if it `takes_turns`.
pub(super) fn run_plan(
    plan: &Plan,
    place: Place,
    takes_turns: bool,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<Outcome, Failure> {
    thresholds::before_the_run(plan)?;
    let experiment = Experiment { takes_turns, ..experiment(plan, None, place, common, arenas, terminal) };
    running::run(&experiment, Destination::Under(&common.out))
}

/// The experiment that runs `plan`, or its part `shard`, with all else at its default.
pub(super) fn experiment<'p>(
    plan: &'p Plan,
    shard: Option<Shard>,
    place: Place,
    common: &Common,
    arenas: &'p dyn Arenas,
    terminal: Terminal,
) -> Experiment<'p> {
    let at_once = match place.arena {
        ArenaKind::Sim => jobs(common),
        // Unless it is asked for, no run disturbs another one.
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

/// Runs a part, in a directory of its own or where it was begun.
fn run_shard(
    scenario: &Path,
    shard: Shard,
    args: &RunArgs,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    let place = place::named(&args.place)?;
    if place.arena != ArenaKind::Sim {
        return Err(Failure::Usage(
            "--shard belongs to --arena sim: in real time a repetition's figures depend on the machine that runs \
             it, so one machine runs them all"
                .to_owned(),
        ));
    }
    if args.place.strict || args.demand.junit.is_some() {
        return Err(Failure::Usage(
            "--shard: a part has no figures to judge, so it takes neither --strict nor --junit; `merge` judges \
             the scenario's thresholds"
                .to_owned(),
        ));
    }
    if let Some(path) = args.shard.output.as_deref().filter(|path| RunDir::is_begun(path)) {
        let (dir, begun) = EarlierRun::open(path, args, arenas)?;
        return match begun.shard {
            Some(found) if found == shard => begun.run_part(dir, shard, common, arenas, terminal),
            Some(found) => {
                Err(Failure::Usage(format!("{}: holds part {found}, not {shard}", path.display())))
            }
            None => Err(Failure::Usage(format!("{}: holds a whole run, no part", path.display()))),
        };
    }
    let plan = load_file(scenario, &options(args))?;
    thresholds::before_the_run(&plan)?;
    let experiment = experiment(&plan, Some(shard), place, common, arenas, terminal);
    let folder = match &args.shard.output {
        Some(path) => Destination::At(path),
        None => Destination::Under(&common.out),
    };
    conclude_part(running::run_part(&experiment, folder)?, shard, common, terminal)
}

/// Prints what a part has done.
fn conclude_part(
    (outcome, failure): (PartOutcome, Option<Failure>),
    shard: Shard,
    common: &Common,
    terminal: Terminal,
) -> Result<(), Failure> {
    let PartOutcome { dir, done: (done, all), wall_s, cpu_s, .. } = outcome;
    let path = dir.path().display();
    let printed = match common.json() {
        true => terminal::print(&json(&serde_json::json!({
            "dir": dir.path().to_string_lossy(),
            "shard": shard.to_string(),
            "repetitions": all,
            "done": done,
            "wall_s": wall_s,
            "cpu_s": cpu_s,
        }))),
        false => terminal.result(&format!(
            "Part {shard}: {path} has {done} of its {}\n\
             When all parts are there: {} merge DIR... -o RUN\n",
            counted(all, "repetition"),
            program()
        )),
    };
    terminal.end_with([failure, printed.err()])
}

/// A run, or a part of one, that an earlier process began.
struct EarlierRun {
    plan: Plan,
    begun: Resumable,
    /// Which part; `None` of a whole run.
    shard: Option<Shard>,
    place: Place,
}

impl EarlierRun {
    fn open(path: &Path, args: &RunArgs, arenas: &dyn Arenas) -> Result<(RunDir, Self), Failure> {
        let asked = if args.resume.is_some() { "--resume" } else { "-o" };
        let refuse = |why: &str| Failure::Usage(format!("{asked} {}: {why}", path.display()));
        let dir = RunDir::open(path)?;
        let recorded = dir.file(SCENARIO);
        let plan = load_file(&recorded, &Options::default())?;
        let asked_for = load_file(args.scenario.as_deref().unwrap_or(&recorded), &options(args))?;
        if (&asked_for.resolved, &asked_for.traces) != (&plan.resolved, &plan.traces) {
            return Err(refuse("it ran another scenario (or seed, or repeat) than the one asked for"));
        }
        if !dir.has_parts() {
            return Err(refuse(
                "it has no parts to go on with: it is whole, or was put together by `merge`, which is run again \
                 with the parts that were missing",
            ));
        }
        let begun = resumable(&dir)?;
        if begun.talkpath != env!("CARGO_PKG_VERSION") {
            let why = format!("version {} began it, and another may draw other numbers", begun.talkpath);
            return Err(refuse(&why));
        }
        let here = arenas.revision();
        if let (Some(there), Some(here)) = (begun.revision(), here.as_deref())
            && there != here
        {
            let why =
                format!("revision {there} began it, this program is {here}, and may draw other numbers");
            return Err(refuse(&why));
        }
        let asked = &args.place;
        let place = Place {
            arena: begun.arena()?,
            to: begun.to.clone(),
            key_file: asked.key_file.clone().or_else(|| begun.key_file.clone()),
            clocks_synchronised: asked.clocks_synchronised || begun.clocks_synchronised,
            capture: asked.capture.or(begun.capture),
            keep_awake: asked.keep_awake || begun.keep_awake,
            run_again: asked.run_again.or(begun.run_again_ns.map(Duration::from_nanos)),
            per_flow: begun.per_flow,
        };
        if asked.arena.is_some_and(|arena| arena != place.arena) {
            return Err(refuse("it ran in another arena"));
        }
        if let Some(to) = asked.to.as_ref().filter(|to| Some(*to) != place.to.as_ref()) {
            let there = place.to.as_deref().unwrap_or("no far host");
            return Err(refuse(&format!("it ran to {there}, not to {to}")));
        }
        if let (None, Some(to)) = (&asked.to, &place.to)
            && let Some(what) = what_is_given_to(to, &plan, place.key_file.as_deref())
        {
            let (program, path) = (program(), shell_path(path));
            return Err(refuse(&format!(
                "it {what}. The directory says so, and whoever made it chose them; --to says that it is meant\n\
                 help: {program} run --resume {path} --to {}",
                shell_word(to)
            )));
        }
        let shard = begun.shard()?;
        Ok((dir, Self { plan, begun, shard, place }))
    }

    fn experiment<'p>(
        &'p self,
        common: &Common,
        arenas: &'p dyn Arenas,
        terminal: Terminal,
    ) -> Result<Experiment<'p>, Failure> {
        let (records, series) = (self.begun.records()?, self.begun.series()?);
        let exact = self.begun.exact;
        let experiment = experiment(&self.plan, self.shard, self.place.clone(), common, arenas, terminal);
        let observer = Box::new(TerminalObserver::new(terminal, records));
        Ok(Experiment { records, exact, series, observer, ..experiment })
    }

    fn run(
        &self,
        dir: RunDir,
        args: &RunArgs,
        common: &Common,
        arenas: &dyn Arenas,
        terminal: Terminal,
    ) -> Result<(), Failure> {
        refuse_junit(args.demand.junit.as_deref(), &[dir.path()])?;
        let experiment = Experiment {
            takes_turns: args.rounds || self.begun.rounds,
            ..self.experiment(common, arenas, terminal)?
        };
        let outcome = running::resume(&experiment, dir, self.begun.clone())?;
        conclude_run(outcome, &self.place, &self.plan, args, common, terminal)
    }

    fn run_part(
        &self,
        dir: RunDir,
        shard: Shard,
        common: &Common,
        arenas: &dyn Arenas,
        terminal: Terminal,
    ) -> Result<(), Failure> {
        let experiment = self.experiment(common, arenas, terminal)?;
        conclude_part(running::resume_part(&experiment, dir, self.begun.clone())?, shard, common, terminal)
    }
}

/// What of this machine the far host `to` would be given by running `plan`: the contents of files, and the
/// proof that a key is known, from which a passphrase can be guessed.
fn what_is_given_to(to: &str, plan: &Plan, key_file: Option<&Path>) -> Option<String> {
    let flows = plan.cells.iter().flat_map(|cell| &cell.scenario.flows);
    let files: BTreeSet<&str> = flows
        .filter_map(|flow| match &flow.workload {
            WorkloadConfig::File { source, .. } => Some(source.as_str()),
            _ => None,
        })
        .collect();
    let files = files.into_iter().map(|file| format!("sends {file}"));
    let key = key_file.map(|file| format!("shows that it knows the key in {}", file.display()));
    let given: Vec<String> = files.chain(key).collect();
    (!given.is_empty()).then(|| format!("runs to {to}: {}", given.join(", ")))
}

fn options(args: &RunArgs) -> Options {
    Options {
        set: args.change.settings().chain(args.demand.settings()).collect(),
        seed: args.place.seed,
        repeat: args.place.repeat,
    }
}
