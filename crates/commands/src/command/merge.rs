//! `talkpath merge`: one run of the parts that several machines left, byte for byte that of one machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use talkpath_measure::summary::{Provenance, Swept};
use talkpath_report::run_table;
use talkpath_scenario::{Options, Plan};

use super::{Conclusion, again, conclude, jobs};
use crate::arenas::Arenas;
use crate::args::{Common, MergeArgs};
use crate::failure::Failure;
use crate::page::Pages;
use crate::running::Outcome;
use crate::scenario_file::load_file;
use crate::terminal::{Terminal, program, shell_path, table_style};
use talkpath_experiment::journal;
use talkpath_experiment::merge::{Merging, missing};
use talkpath_experiment::part::{Fresh, SUMMARY, all_parts};
use talkpath_experiment::provenance::provenance;
use talkpath_experiment::resumable::{Resumable, resumable};
use talkpath_experiment::run_dir::{PartId, RunDir, SCENARIO};
use talkpath_experiment::shard::{Division, Shard};
use talkpath_experiment::stopwatch::Stopwatch;
use talkpath_experiment::store::whole::write_bytes;
use talkpath_units::{counted, is_or_are};

/// Merges.
pub fn run(
    args: &MergeArgs,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let mut folders: Vec<PartDir> =
        args.parts.iter().map(|path| PartDir::open(path)).collect::<Result<_, _>>()?;
    let Some(first) = folders.first() else {
        return Err(Failure::Usage("merge needs the directories of parts".to_owned()));
    };
    let plan = load_file(&first.dir.file(SCENARIO), &Options::default())?;
    for other in &folders[1..] {
        first.same_run(other, &plan)?;
    }
    overlaps(&folders)?;
    let division = Division::new(&plan, first.shard.of);
    foreign(&folders, &plan, &division)?;
    if !args.partial {
        complete(&folders, &plan, &division)?;
    }
    let mut dir = RunDir::create_empty(&args.output)?;
    let begun = first.begun.clone().since(earliest(&folders));
    let merging = Merging {
        plan: &plan,
        demanded: &plan,
        begun: &begun,
        jobs: jobs(common),
        watch: &watch,
        failure: None,
        has_rows: true,
        provenance: made_by(&folders, arenas),
        findings: &Pages,
    };
    let mut fresh = Fresh::new();
    folders.iter_mut().for_each(|folder| fresh.append(&mut folder.fresh));
    let merged = write_inputs(&mut dir, &plan).and_then(|()| {
        let from: Vec<&RunDir> = folders.iter().map(|folder| &folder.dir).collect();
        Ok(merging.finish(&dir, &from, fresh)?)
    });
    // A directory that is not whole could not be merged into again.
    let merged = merged.and_then(|merged| merged.unwritten.map_or(Ok(merged.summary), |why| Err(why.into())));
    let summary = merged.inspect_err(|_| dir.discard_if_new())?;
    let table = run_table(&summary, &table_style(args.tables));
    let next_commands = again(&dir, "");
    let conclusion = Conclusion { table: &table, next_commands: &next_commands, junit: None, strict: false };
    conclude(Outcome { dir, summary, failure: None }, &conclusion, common, terminal)
}

/// What belongs to the run and not to its repetitions.
fn write_inputs(dir: &mut RunDir, plan: &Plan) -> Result<(), Failure> {
    for trace in &plan.traces {
        dir.write_trace(trace)?;
    }
    Ok(write_bytes(&dir.file(SCENARIO), plan.resolved.as_bytes())?)
}

/// A part's directory.
struct PartDir {
    path: PathBuf,
    dir: RunDir,
    begun: Resumable,
    shard: Shard,
    /// Repetitions that its journal holds.
    fresh: Fresh,
    /// All of its repetitions.
    ids: BTreeSet<(PartId, bool)>,
}

impl PartDir {
    fn open(path: &Path) -> Result<Self, Failure> {
        let refuse = |why: &str| Err(Failure::Usage(format!("{}: {why}", path.display())));
        if !path.is_dir() {
            return refuse("no such directory");
        }
        if path.join(SUMMARY).is_file() {
            return refuse("a run, not a part of one: there is nothing to merge in it");
        }
        if !RunDir::is_begun(path) {
            let program = program();
            return refuse(&format!(
                "not a part of a run: `{program} run SCENARIO.toml --shard I/N` makes one"
            ));
        }
        let dir = RunDir::open(path)?;
        let begun = resumable(&dir)?;
        let Some(shard) = begun.shard()? else {
            let program = program();
            return refuse(&format!(
                "a run that was interrupted, no part of one: `{program} run --resume` continues it"
            ));
        };
        // No lock is kept: a process cannot hold a file open for each of many parts. Whoever goes on with a
        // part meanwhile changes no whole repetition. The folder of a repetition that was cut short may
        // disappear: a merge that reads it then fails, and names it.
        dir.refuse_company()?;
        let mut fresh = journal::read(&dir)?;
        // The plan has them.
        fresh.values_mut().for_each(|part| part.summary.sweep = Swept::default());
        let ids = all_parts(&dir, &fresh)?;
        Ok(Self { path: path.to_path_buf(), dir, begun, shard, fresh, ids })
    }

    /// Whether `other` has the same scenario.toml and traces, byte for byte. It is the same plan then, which
    /// takes seconds and hundreds of megabytes to understand again if it has 100,000 cells.
    fn has_files_of(&self, other: &Self, plan: &Plan) -> bool {
        let is_same = |name: &str| match [self, other].map(|it| fs::read(it.dir.file(name))) {
            [Ok(ours), Ok(theirs)] => ours == theirs,
            _ => false,
        };
        is_same(SCENARIO) && plan.traces.iter().all(|trace| is_same(&trace.name))
    }

    /// Whether `other` is a part of the same run, divided alike.
    fn same_run(&self, other: &Self, plan: &Plan) -> Result<(), Failure> {
        let refuse = |why: String| Err(Failure::Usage(format!("{}: {why}", other.path.display())));
        let first = self.path.display();
        for ((name, ours), (_, theirs)) in self.begun.common().into_iter().zip(other.begun.common()) {
            if ours != theirs {
                return refuse(format!(
                    "{name} {theirs}, but {first} has {name} {ours}: not parts of one run"
                ));
            }
        }
        if self.shard.of != other.shard.of {
            let (ours, theirs) = (self.shard, other.shard);
            return refuse(format!("part {theirs}, but {first} is part {ours}: not parts of one division"));
        }
        if self.has_files_of(other, plan) {
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
            let differs = |(ours, theirs): &(&str, &str)| ours != theirs;
            let line = plan.resolved.lines().zip(found.resolved.lines()).find(differs);
            let line =
                line.map_or(String::new(), |(ours, theirs)| format!(": `{theirs}` here, `{ours}` there"));
            return refuse(format!("part of another scenario than {first}{line}"));
        }
        if found.traces != plan.traces {
            return refuse(format!("part of another scenario than {first}: a trace differs"));
        }
        Ok(())
    }
}

/// No two folders may be the same part.
fn overlaps(folders: &[PartDir]) -> Result<(), Failure> {
    let mut sorted: Vec<&PartDir> = folders.iter().collect();
    sorted.sort_by_key(|folder| folder.shard.first);
    match sorted.windows(2).find(|pair| pair[1].shard.first <= pair[0].shard.last) {
        None => Ok(()),
        Some(pair) => Err(Failure::Usage(format!(
            "{} and {} both hold part {}/{}: merge one of them",
            pair[0].path.display(),
            pair[1].path.display(),
            pair[1].shard.first,
            pair[1].shard.of
        ))),
    }
}

/// A folder holds its own repetitions alone, as no process of this program leaves others there.
fn foreign(folders: &[PartDir], plan: &Plan, division: &Division) -> Result<(), Failure> {
    for folder in folders {
        let cells = plan.cells.len() as u64;
        let is_foreign = |id: &PartId| {
            id.cell >= cells || id.repetition >= plan.repeat || !folder.shard.holds(division.part(*id))
        };
        if let Some((id, _)) = folder.ids.iter().find(|(id, _)| is_foreign(id)) {
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

/// Every repetition must be there; the error names parts in which some are missing, or that are not there.
fn complete(folders: &[PartDir], plan: &Plan, division: &Division) -> Result<(), Failure> {
    let there = folders.iter().flat_map(|folder| &folder.ids).copied().collect();
    let mut by_part: BTreeMap<u64, u64> = BTreeMap::new();
    for id in missing(plan, &there) {
        *by_part.entry(division.part(id)).or_default() += 1;
    }
    if by_part.is_empty() {
        return Ok(());
    }
    let of = folders.first().map_or(1, |folder| folder.shard.of);
    let holder = |part: u64| folders.iter().find(|folder| folder.shard.holds(part));
    let mut lines = Vec::new();
    for folder in folders {
        let lacks: u64 =
            by_part.iter().filter(|(part, _)| folder.shard.holds(**part)).map(|(_, count)| count).sum();
        if lacks > 0 {
            let (program, path) = (program(), shell_path(&folder.path));
            lines.push(format!(
                "{}: {} missing: {program} run --resume {path}",
                folder.path.display(),
                counted(lacks, "repetition")
            ));
        }
    }
    let absent: Vec<_> = by_part.keys().filter(|part| holder(**part).is_none()).collect();
    if !absent.is_empty() {
        let named: Vec<_> = absent.iter().take(MAX_NAMED).map(|part| format!("{part}/{of}")).collect();
        let more = absent.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("not among the directories: part {}{more}", named.join(", ")));
    }
    let more = lines.len().saturating_sub(MAX_NAMED);
    lines.truncate(MAX_NAMED);
    let more = if more > 0 { format!("\nand {}", counted(more, "more directory")) } else { String::new() };
    let missing: u64 = by_part.values().sum();
    Err(Failure::Usage(format!(
        "{missing} of {} {} missing\n{}{more}\nhelp: --partial merges what is there",
        counted(plan.cells.len() as u64 * plan.repeat, "repetition"),
        is_or_are(missing),
        lines.join("\n")
    )))
}

/// RFC 3339 in UTC sorts as text.
fn earliest(folders: &[PartDir]) -> String {
    folders.iter().map(|folder| folder.begun.started.clone()).min().unwrap_or_default()
}

/// The machines that ran the parts; this one if they do not say.
fn made_by(folders: &[PartDir], arenas: &dyn Arenas) -> Provenance {
    let of: Vec<&Provenance> = folders.iter().filter_map(|folder| folder.begun.provenance.as_ref()).collect();
    let all = |word: fn(&Provenance) -> &String| {
        let mut words: Vec<&str> = of.iter().map(|it| word(it).as_str()).collect();
        words.sort_unstable();
        words.dedup();
        words.join(", ")
    };
    match of.first() {
        None => provenance(arenas.revision()),
        Some(first) => {
            Provenance { kernel: all(|it| &it.kernel), host: all(|it| &it.host), ..(*first).clone() }
        }
    }
}

/// Chosen: an error names this many, and counts the rest.
const MAX_NAMED: usize = 5;
