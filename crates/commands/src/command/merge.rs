//! `talkpath merge` joins the parts of a run that several machines made. The result is byte for byte the run
//! that one machine would have made.
//!
//! - *run*: all repetitions of all cells of a scenario.
//! - *part* (or *shard*): the repetitions that `run --shard I/N` made on one machine, in a directory of their
//!   own.
//!
//! Before anything is written, [`run`] refuses parts of different runs, a part that is given twice,
//! repetitions that belong to another part, and, without `--partial`, missing repetitions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use talkpath_measure::summary::{Provenance, Summary, Swept};
use talkpath_report::run_table;
use talkpath_scenario::{Options, Plan};

use super::{Conclusion, Context, again, conclude, jobs};
use crate::arenas::Arenas;
use crate::args::MergeArgs;
use crate::failure::Failure;
use crate::page::Pages;
use crate::running::Outcome;
use crate::scenario_file::load_file;
use crate::terminal::{program, shell_path, table_style};
use talkpath_experiment::journal;
use talkpath_experiment::merge::{Merging, missing_repetitions};
use talkpath_experiment::part::{PartsInMemory, SUMMARY, all_parts};
use talkpath_experiment::provenance::provenance;
use talkpath_experiment::run_dir::{PartId, PartKey, RunDir, SCENARIO};
use talkpath_experiment::run_options::RunOptions;
use talkpath_experiment::shard::{Shard, ShardAssignment};
use talkpath_experiment::stopwatch::Stopwatch;
use talkpath_experiment::store::whole::write_bytes;
use talkpath_units::{counted, is_or_are};

/// A failure names at most this many directories or parts, and counts the others. We chose 5 so that the
/// message fits on a screen.
const MAX_NAMED: usize = 5;

/// Checks that the parts belong to one run, merges them and prints the tables of the run.
pub fn run(args: &MergeArgs, context: Context<'_>) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let mut folders: Vec<PartDir> =
        args.parts.iter().map(|path| PartDir::open(path)).collect::<Result<_, _>>()?;
    let Some(first) = folders.first() else {
        return Err(Failure::Usage("merge needs the directories of parts".to_owned()));
    };
    let plan = load_file(&first.dir.file(SCENARIO), &Options::default())?;
    for other in &folders[1..] {
        first.check_same_run(other, &plan)?;
    }
    refuse_overlap(&folders)?;
    let assignment = ShardAssignment::new(&plan, first.shard.total);
    refuse_foreign_repetitions(&folders, &plan, &assignment)?;
    if !args.partial {
        refuse_missing_repetitions(&folders, &plan, &assignment)?;
    }
    let mut dir = RunDir::create_empty(&args.output)?;
    let options = first.options.clone().with_start(earliest_start(&folders));
    let merging = Merging {
        plan: &plan,
        // `compare` may add repetitions to its plan until it can decide. A run of parts never does.
        demanded: &plan,
        options: &options,
        jobs: jobs(context.common),
        watch: &watch,
        // No reason is known why repetitions are missing: `--partial` accepts that they are.
        failure: None,
        has_rows: true,
        provenance: joined_provenance(&folders, context.arenas),
        findings: &Pages,
    };
    let mut in_journals = PartsInMemory::new();
    for folder in &mut folders {
        in_journals.append(&mut folder.in_journal);
    }
    let part_dirs: Vec<&RunDir> = folders.iter().map(|folder| &folder.dir).collect();
    // If the run cannot be written completely, its directory is removed, so that the same command can be
    // given again: `merge` only writes into a new directory.
    let summary =
        write_run(&mut dir, &merging, &part_dirs, in_journals).inspect_err(|_| dir.discard_if_new())?;
    let table = run_table(&summary, &table_style(args.tables));
    let next_commands = again(&dir, "");
    let conclusion = Conclusion { table: &table, next_commands: &next_commands, demand: None };
    conclude(Outcome { dir, summary, failure: None }, &conclusion, context)
}

/// Writes the scenario, the traces and the merged repetitions to `dir`.
fn write_run(
    dir: &mut RunDir,
    merging: &Merging<'_>,
    part_dirs: &[&RunDir],
    in_journals: PartsInMemory,
) -> Result<Summary, Failure> {
    for trace in &merging.plan.traces {
        dir.write_trace(trace)?;
    }
    write_bytes(&dir.file(SCENARIO), merging.plan.resolved.as_bytes())?;
    let merged = merging.finish(dir, part_dirs, in_journals)?;
    match merged.write_error {
        Some(why) => Err(why.into()),
        None => Ok(merged.summary),
    }
}

/// The directory of a part.
struct PartDir {
    path: PathBuf,
    dir: RunDir,
    /// The options with which the part was run, and the machine.
    options: RunOptions,
    shard: Shard,
    /// The repetitions that the journal of the part holds.
    in_journal: PartsInMemory,
    /// All repetitions of the part, in its journal or in folders.
    keys: BTreeSet<PartKey>,
}

impl PartDir {
    /// Opens the directory of a part, and reads which repetitions it holds.
    fn open(path: &Path) -> Result<Self, Failure> {
        let refuse = |why: &str| Err(Failure::Usage(format!("{}: {why}", path.display())));
        if !path.is_dir() {
            return refuse("no such directory");
        }
        if path.join(SUMMARY).is_file() {
            return refuse("a run, not a part of one: there is nothing to merge in it");
        }
        if !RunDir::is_begun(path) {
            return refuse(&format!(
                "not a part of a run: `{} run SCENARIO.toml --shard I/N` makes one",
                program()
            ));
        }
        let dir = RunDir::open(path)?;
        let options = RunOptions::read(&dir)?;
        let Some(shard) = options.shard()? else {
            return refuse(&format!(
                "a run that was interrupted, not a part of one: `{} run --resume` continues it",
                program()
            ));
        };
        // No lock is kept, because a process cannot hold a file open for each of many parts. If another
        // process goes on with the part meanwhile, finished repetitions do not change. The folder of a
        // repetition that was cut short may disappear. In that case the merge fails, and names the folder.
        dir.refuse_company()?;
        let mut in_journal = journal::read(&dir)?;
        // The swept values are in the plan, so they need no memory for each repetition.
        for part in in_journal.values_mut() {
            part.summary.sweep = Swept::default();
        }
        let keys = all_parts(&dir, &in_journal)?;
        Ok(Self { path: path.to_path_buf(), dir, options, shard, in_journal, keys })
    }

    /// Returns whether `other` has the same scenario.toml and the same traces, byte for byte. In that case it
    /// has the same plan, which need not be made again. A plan of 100,000 cells takes seconds and hundreds of
    /// megabytes.
    fn has_same_files(&self, other: &Self, plan: &Plan) -> bool {
        let is_same = |name: &str| {
            let (first, second) = (fs::read(self.dir.file(name)), fs::read(other.dir.file(name)));
            matches!((first, second), (Ok(first), Ok(second)) if first == second)
        };
        is_same(SCENARIO) && plan.traces.iter().all(|trace| is_same(&trace.name))
    }

    /// Checks that `other` is a part of the same run, which was divided into the same number of parts.
    fn check_same_run(&self, other: &Self, plan: &Plan) -> Result<(), Failure> {
        let refuse = |why: String| Err(Failure::Usage(format!("{}: {why}", other.path.display())));
        let first = self.path.display();
        for (ours, theirs) in self.options.common().into_iter().zip(other.options.common()) {
            if ours.value != theirs.value {
                let (name, ours, theirs) = (ours.name, ours.value, theirs.value);
                return refuse(format!(
                    "{name} {theirs}, but {first} has {name} {ours}: not parts of one run"
                ));
            }
        }
        if self.shard.total != other.shard.total {
            let (ours, theirs) = (self.shard, other.shard);
            return refuse(format!("part {theirs}, but {first} is part {ours}: not parts of one division"));
        }
        if self.has_same_files(other, plan) {
            return Ok(());
        }
        let found = load_file(&other.dir.file(SCENARIO), &Options::default())?;
        if found.seed != plan.seed {
            let (theirs, ours) = (found.seed.get(), plan.seed.get());
            return refuse(format!("seed {theirs}, but {first} has seed {ours}: not parts of one run"));
        }
        if found.repeat != plan.repeat {
            let (theirs, ours) = (found.repeat, plan.repeat);
            return refuse(format!(
                "{}, but {first} has {ours}: not parts of one run",
                counted(theirs, "repetition")
            ));
        }
        if found.resolved != plan.resolved {
            let mut lines = plan.resolved.lines().zip(found.resolved.lines());
            let difference = match lines.find(|(ours, theirs)| ours != theirs) {
                Some((ours, theirs)) => format!(": `{theirs}` here, `{ours}` there"),
                None => String::new(),
            };
            return refuse(format!("part of another scenario than {first}{difference}"));
        }
        if found.traces != plan.traces {
            return refuse(format!("part of another scenario than {first}: a trace differs"));
        }
        Ok(())
    }
}

/// Refuses two folders that hold the same part.
fn refuse_overlap(folders: &[PartDir]) -> Result<(), Failure> {
    let mut sorted: Vec<&PartDir> = folders.iter().collect();
    sorted.sort_by_key(|folder| folder.shard.first);
    for (folder, next) in sorted.iter().zip(sorted.iter().skip(1)) {
        if next.shard.first <= folder.shard.last {
            return Err(Failure::Usage(format!(
                "{} and {} both hold part {}/{}: merge one of them",
                folder.path.display(),
                next.path.display(),
                next.shard.first,
                next.shard.total
            )));
        }
    }
    Ok(())
}

/// Refuses a folder with a repetition of another part. This program never leaves such a repetition in a
/// folder.
fn refuse_foreign_repetitions(
    folders: &[PartDir],
    plan: &Plan,
    assignment: &ShardAssignment,
) -> Result<(), Failure> {
    let cells = plan.cells.len() as u64;
    for folder in folders {
        let is_foreign = |id: &PartId| {
            id.cell >= cells
                || id.repetition >= plan.repeat
                || !folder.shard.contains(assignment.shard_of(*id))
        };
        if let Some(PartKey { id, .. }) = folder.keys.iter().find(|key| is_foreign(&key.id)) {
            return Err(Failure::Usage(format!(
                "{}: holds cell {} repetition {}, which does not belong to part {}",
                folder.path.display(),
                id.cell,
                id.repetition,
                folder.shard
            )));
        }
    }
    Ok(())
}

/// Refuses the merge if a repetition is missing. The failure names the folders that lack repetitions, and the
/// parts that have no folder.
fn refuse_missing_repetitions(
    folders: &[PartDir],
    plan: &Plan,
    assignment: &ShardAssignment,
) -> Result<(), Failure> {
    let present = folders.iter().flat_map(|folder| &folder.keys).copied().collect();
    let mut missing_of_part: BTreeMap<u64, u64> = BTreeMap::new();
    for id in missing_repetitions(plan, &present) {
        *missing_of_part.entry(assignment.shard_of(id)).or_default() += 1;
    }
    if missing_of_part.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<String> =
        folders.iter().filter_map(|folder| incomplete_folder_line(folder, &missing_of_part)).collect();
    lines.extend(absent_parts_line(folders, &missing_of_part));
    let more = lines.len().saturating_sub(MAX_NAMED);
    lines.truncate(MAX_NAMED);
    let more = if more > 0 { format!("\nand {}", counted(more, "more directory")) } else { String::new() };
    let missing: u64 = missing_of_part.values().sum();
    Err(Failure::Usage(format!(
        "{missing} of {} {} missing\n{}{more}\nhelp: --partial merges what is there",
        counted(plan.cells.len() as u64 * plan.repeat, "repetition"),
        is_or_are(missing),
        lines.join("\n")
    )))
}

/// Says how many repetitions `folder` lacks and how to run them, or returns `None` if it lacks none.
fn incomplete_folder_line(folder: &PartDir, missing_of_part: &BTreeMap<u64, u64>) -> Option<String> {
    let parts_of_folder = missing_of_part.iter().filter(|(part, _)| folder.shard.contains(**part));
    let missing: u64 = parts_of_folder.map(|(_, count)| count).sum();
    (missing > 0).then(|| {
        format!(
            "{}: {} missing: {} run --resume {}",
            folder.path.display(),
            counted(missing, "repetition"),
            program(),
            shell_path(&folder.path)
        )
    })
}

/// Names the parts that no folder holds, or returns `None` if each part has a folder.
fn absent_parts_line(folders: &[PartDir], missing_of_part: &BTreeMap<u64, u64>) -> Option<String> {
    let has_folder = |part: u64| folders.iter().any(|folder| folder.shard.contains(part));
    let absent: Vec<u64> = missing_of_part.keys().copied().filter(|&part| !has_folder(part)).collect();
    if absent.is_empty() {
        return None;
    }
    let all_parts = folders.first().map_or(1, |folder| folder.shard.total);
    let named: Vec<_> = absent.iter().take(MAX_NAMED).map(|part| format!("{part}/{all_parts}")).collect();
    let more = absent.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("not among the directories: part {}{more}", named.join(", ")))
}

/// Returns the time at which the first of the parts began. Times in UTC in the form of RFC 3339 sort as text.
fn earliest_start(folders: &[PartDir]) -> String {
    folders.iter().map(|folder| folder.options.started.clone()).min().unwrap_or_default()
}

/// Returns the machines that ran the parts. If no part names its machine, it is this machine.
fn joined_provenance(folders: &[PartDir], arenas: &dyn Arenas) -> Provenance {
    let machines: Vec<&Provenance> =
        folders.iter().filter_map(|folder| folder.options.provenance.as_ref()).collect();
    let Some(first) = machines.first() else {
        return provenance(arenas.revision());
    };
    let kernels: BTreeSet<&str> = machines.iter().map(|machine| machine.kernel.as_str()).collect();
    let hosts: BTreeSet<&str> = machines.iter().map(|machine| machine.host.as_str()).collect();
    let listed = |words: BTreeSet<&str>| words.into_iter().collect::<Vec<_>>().join(", ");
    Provenance { kernel: listed(kernels), host: listed(hosts), ..(*first).clone() }
}
