//! A run, or a part of one, that an earlier process began and that goes on now.

use std::collections::BTreeSet;
use std::path::Path;

use talkpath_scenario::{Options, Plan, WorkloadConfig};
use talkpath_units::Duration;

use super::conclusion::{conclude_part, conclude_run};
use super::experiment::{new_experiment, options};
use crate::arenas::Arenas;
use crate::args::RunArgs;
use crate::command::Context;
use crate::command::allowed::check_plan;
use crate::failure::Failure;
use crate::output_file::refuse_junit;
use crate::running::{self, TerminalObserver};
use crate::scenario_file::load_file;
use crate::terminal::{program, shell_path, shell_word};
use talkpath_experiment::Experiment;
use talkpath_experiment::place::{Place, Versions};
use talkpath_experiment::run_dir::{RunDir, SCENARIO};
use talkpath_experiment::run_options::RunOptions;
use talkpath_experiment::shard::Shard;

/// A run, or a part of one, that an earlier process began.
pub(super) struct EarlierRun {
    plan: Plan,
    /// What the earlier process wrote down about the run.
    options: RunOptions,
    /// The part of the run that the directory holds, or `None` if it holds a whole run.
    pub(super) shard: Option<Shard>,
    place: Place,
}

impl EarlierRun {
    /// Reads the run in the directory `path`, which the user named with `flag`. Returns [`Failure::Usage`] if
    /// the run cannot go on, or is another run than the one that `args` ask for.
    pub(super) fn open(
        path: &Path,
        flag: &str,
        args: &RunArgs,
        context: Context<'_>,
    ) -> Result<(RunDir, Self), Failure> {
        let refuse = |why: &str| Failure::Usage(format!("{flag} {}: {why}", path.display()));
        let dir = RunDir::open(path)?;
        let mut plan = load_same_plan(&dir, args)?
            .ok_or_else(|| refuse("it ran another scenario (or seed, or repeat) than the one asked for"))?;
        if !dir.has_parts() {
            return Err(refuse(
                "it has no parts to go on with: it is whole, or was put together by `merge`, which is run again \
                 with the parts that were missing",
            ));
        }
        check_plan(&plan, args.allow_program)?;
        let options = RunOptions::read(&dir)?;
        plan.understood.assumed_queues.clone_from(&options.assumed_queues);
        check_program(&options, context.arenas).map_err(|why| refuse(&why))?;
        let place = earlier_place(&options, args)?;
        check_place(&place, args).map_err(|why| refuse(&why))?;
        // A directory from somebody else could name a host of theirs, and files of this machine. So the user
        // has to name that host before it learns anything.
        if args.place.to.is_none()
            && let Some(to) = &place.to
            && let Some(disclosed) = disclosed(&plan, place.key_file.as_deref())
        {
            return Err(refuse(&format!(
                "it runs to {to}: {disclosed}. The directory says so, and whoever made it chose them; --to says that it is meant\n\
                 help: {} run --resume {} --to {}",
                program(),
                shell_path(path),
                shell_word(to)
            )));
        }
        let shard = options.shard()?;
        Ok((dir, Self { plan, options, shard, place }))
    }

    /// Runs the missing repetitions of a whole run, and prints its tables.
    pub(super) fn resume(&self, dir: RunDir, args: &RunArgs, context: Context<'_>) -> Result<(), Failure> {
        refuse_junit(args.demand.junit.as_deref(), &[dir.path()])?;
        let experiment =
            Experiment { takes_turns: args.rounds || self.options.rounds, ..self.experiment(context)? };
        let outcome = running::resume(&experiment, dir, self.options.clone())?;
        conclude_run(outcome, &self.place, &self.plan, args, context)
    }

    /// Runs the missing repetitions of the part `shard`.
    pub(super) fn resume_part(&self, dir: RunDir, shard: Shard, context: Context<'_>) -> Result<(), Failure> {
        let experiment = self.experiment(context)?;
        let part = running::resume_part(&experiment, dir, self.options.clone())?;
        conclude_part(part, shard, context)
    }

    /// Describes the experiment as the earlier process ran it: it keeps writing the same records.
    fn experiment<'p>(&'p self, context: Context<'p>) -> Result<Experiment<'p>, Failure> {
        let records = self.options.records()?;
        Ok(Experiment {
            records,
            exact: self.options.exact,
            series: self.options.series()?,
            observer: Box::new(TerminalObserver::new(context.terminal, records)),
            ..new_experiment(&self.plan, self.shard, self.place.clone(), context)
        })
    }
}

/// Returns the plan of the run in `dir`, or `None` if the command line asks for another plan.
fn load_same_plan(dir: &RunDir, args: &RunArgs) -> Result<Option<Plan>, Failure> {
    let recorded = dir.file(SCENARIO);
    let plan = load_file(&recorded, &Options::default())?;
    // Without a scenario file, the flags change the recorded scenario.
    let asked_file = args.scenario.as_deref().unwrap_or(&recorded);
    let asked = load_file(asked_file, &options(args))?;
    let is_same = asked.resolved == plan.resolved && asked.traces == plan.traces;
    Ok(is_same.then_some(plan))
}

/// Checks that this program draws the same random numbers as the one that began the run. The error says why
/// it may not.
fn check_program(options: &RunOptions, arenas: &dyn Arenas) -> Result<(), String> {
    if options.talkpath != env!("CARGO_PKG_VERSION") {
        return Err(format!("version {} began it, and another may draw other numbers", options.talkpath));
    }
    if let (Some(earlier), Some(own)) = (options.revision(), arenas.revision())
        && earlier != own
    {
        return Err(format!(
            "revision {earlier} began it, this program is {own}, and may draw other numbers"
        ));
    }
    Ok(())
}

/// Returns the place where the earlier process ran. A flag of the command line wins over what that process
/// wrote down, but for the arena and the far host: [`check_place`] refuses others.
fn earlier_place(options: &RunOptions, args: &RunArgs) -> Result<Place, Failure> {
    let asked = &args.place;
    Ok(Place {
        arena: options.arena()?,
        to: options.to.clone(),
        key_file: asked.key_file.clone().or_else(|| options.key_file.clone()),
        ip: match asked.family.versions() {
            Versions::First => Versions::of_number(options.ip),
            asked => asked,
        },
        clocks_synchronised: asked.clocks_synchronised || options.clocks_synchronised,
        capture: asked.capture.snaplen.or(options.capture),
        qlog: asked.qlog || options.qlog,
        mapping_lifetime: asked.mapping_lifetime,
        keep_awake: asked.keep_awake || options.keep_awake,
        run_again: asked.run_again.or(options.run_again_ns.map(Duration::from_nanos)),
        per_flow: options.per_flow,
    })
}

/// Checks that the command line asks for no other arena and no other far host than those of `place`. The
/// error says which one differs.
fn check_place(place: &Place, args: &RunArgs) -> Result<(), String> {
    if args.place.arena.is_some_and(|asked| asked != place.arena) {
        return Err("it ran in another arena".to_owned());
    }
    if let Some(asked) = &args.place.to
        && Some(asked) != place.to.as_ref()
    {
        let recorded = place.to.as_deref().unwrap_or("no far host");
        return Err(format!("it ran to {recorded}, not to {asked}"));
    }
    Ok(())
}

/// Lists what the far host would learn about this machine if `plan` ran, or returns `None` if it would learn
/// nothing.
///
/// The far host receives the contents of files. It also receives the proof that this machine knows a key,
/// and from that proof it can guess a passphrase.
fn disclosed(plan: &Plan, key_file: Option<&Path>) -> Option<String> {
    let mut files: BTreeSet<&str> = BTreeSet::new();
    for flow in plan.cells.iter().flat_map(|cell| &cell.scenario.flows) {
        if let WorkloadConfig::File { source, .. } = &flow.workload {
            files.insert(source);
        }
    }
    let mut disclosed: Vec<String> = files.into_iter().map(|file| format!("sends {file}")).collect();
    if let Some(file) = key_file {
        disclosed.push(format!("shows that it knows the key in {}", file.display()));
    }
    (!disclosed.is_empty()).then(|| disclosed.join(", "))
}
