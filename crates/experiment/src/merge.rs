//! All finished repetitions of a run become its files, in the plan's order.
//!
//! A repetition that stayed disturbed is no measurement of the path. Where half of each cell's repetitions or
//! more are undisturbed, the figures rest on these alone, and the run is valid: the others are left out, and
//! a warning says so. Else the run is not valid, and its figures are those of all. Rows and `runs` are of all
//! repetitions in either case.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use talkpath_measure::ClockRecord;
use talkpath_measure::chart_data::CellFigures;
use talkpath_measure::metrics::histogram;
use talkpath_measure::record_file::{
    ChunkReader, MergeError, PartFile, RecordError, merge_packets, merge_series,
};
use talkpath_measure::statistic::is_enough;
use talkpath_measure::summarise::cell_summaries;
use talkpath_measure::summary::{Clock, Provenance, RunSummary, SUMMARY_FORMAT, Summary, Understood};
use talkpath_measure::warning;
use talkpath_scenario::{Cell, Plan};

use crate::Error;
use crate::choice::{ArenaKind, Records};
use crate::findings::{Findings, FinishedRun};
use crate::part::{
    ARRIVALS, CAPTURES, Fresh, LOG, PACKETS, PART, Part, PartFiles, REPORT, SERIES, SUMMARY, unwritten,
};
use crate::resumable::Resumable;
use crate::run_dir::{PartId, RunDir, SCENARIO, own_folder};
use crate::stopwatch::Stopwatch;
use crate::store::whole::{WRITE_AT_ONCE, find_file, read_json, write_bytes, write_whole};
use crate::summary_file::write_summary;
use crate::warnings::{alike_warning, left_out_warning, missing_warning, ran_again_note, warnings};

/// What makes one run of finished repetitions.
pub struct Merging<'a> {
    /// What ran.
    pub plan: &'a Plan,
    /// What its thresholds are held against: without what was added to it during the run.
    pub demanded: &'a Plan,
    /// How the run was started.
    pub begun: &'a Resumable,
    /// Threads that write the summary.
    pub jobs: usize,
    /// Since when it runs.
    pub watch: &'a Stopwatch,
    /// Why repetitions are missing, if one knows.
    pub failure: Option<&'a Error>,
    /// Whether the folders hold the rows of every repetition that the run is to have rows of.
    pub has_rows: bool,
    /// The program and the machine that made it.
    pub provenance: Provenance,
    /// What is made of its figures.
    pub findings: &'a dyn Findings,
}

/// Which repetitions of a cell can be drawn, of those that were read so far.
#[derive(Default)]
struct CellDrawn {
    has_first: bool,
    has_undisturbed: bool,
}

/// What came of it.
pub struct Merged {
    /// Its figures.
    pub summary: Summary,
    /// Whether every repetition is there, and none is still to run again.
    pub is_whole: bool,
    /// What could not be written; the summary is right all the same.
    pub unwritten: Option<Error>,
}

impl Merging<'_> {
    /// Puts the parts that the folders `from` hold, and the `fresh` ones, together into the files of `dir`,
    /// in the plan's order. Each file is tried also where one before it could not be written.
    pub fn finish(&self, dir: &RunDir, from: &[&RunDir], mut fresh: Fresh) -> Result<Merged, Error> {
        let mut folders: BTreeMap<(PartId, bool), PathBuf> = BTreeMap::new();
        for source in from {
            let parts = source.parts()?.into_iter();
            folders.extend(parts.map(|(id, unfinished)| ((id, unfinished), source.part(id, unfinished))));
        }
        let mut ids: BTreeSet<_> = folders.keys().chain(fresh.keys()).copied().collect();
        // Of a repetition that has run again, what was cut short may be there still.
        let has_run_again =
            |id: PartId| folders.contains_key(&(id, false)) || fresh.contains_key(&(id, false));
        ids.retain(|&(id, unfinished)| !(unfinished && has_run_again(id)));
        folders.retain(|at, _| ids.contains(at));
        let (mut parts, mut sources) = (Vec::with_capacity(ids.len()), Vec::new());
        let mut drawn_of: BTreeMap<u64, CellDrawn> = BTreeMap::new();
        for at in &ids {
            let mut part = match (fresh.remove(at), folders.get(at)) {
                (Some(part), _) => part,
                (None, Some(folder)) => read_json::<Part>(&folder.join(PART))?,
                (None, None) => continue,
            };
            // The first repetition is drawn if it counts, else the first one that is undisturbed.
            let CellDrawn { has_first, has_undisturbed } = drawn_of.entry(at.0.cell).or_default();
            if *has_first && (*has_undisturbed || part.is_disturbed()) {
                part.figures = None;
            }
            *has_first |= part.figures.is_some();
            *has_undisturbed |= part.figures.is_some() && !part.is_disturbed();
            let files = mem::take(&mut part.files);
            let source = match files.is_empty() {
                true => folders.get(at).cloned().map(Source::Folder),
                false => Some(Source::Files(files)),
            };
            sources.extend(source.map(|source| (at.0, source)));
            parts.push(self.placed(part));
        }
        let missing = missing(self.plan, &ids);
        // Nothing else needs the text: a run of many repetitions holds it no longer.
        let log: Vec<String> = parts.iter_mut().map(|part| mem::take(&mut part.log)).collect();
        let mut drawn: Vec<CellFigures> = parts.iter_mut().filter_map(|part| part.figures.take()).collect();
        let summary = self.summary(parts, &missing)?;
        let shown = summary.shown_repetitions();
        drawn.retain(|figures| shown.get(&figures.cell) == Some(&figures.repetition));
        let records = self.begun.records()?;
        let rows = if self.has_rows { merge_records(dir, &sources, records) } else { Ok(()) };
        let run = FinishedRun { dir, plan: self.plan, begun: self.begun, summary: &summary, figures: &drawn };
        let page = self.findings.page(&run);
        let written = [
            rows,
            keep_apart(dir, &sources, ARRIVALS),
            keep_apart(dir, &sources, CAPTURES),
            write_log(dir, &log),
            self.write_summary(dir, &summary),
            write_bytes(&dir.file(REPORT), page.as_bytes()),
        ];
        let unwritten = written.into_iter().find_map(Result::err);
        // What ended early while repetitions ran again can go on with them.
        let is_whole = missing.is_empty() && self.failure.is_none();
        Ok(Merged { summary, is_whole, unwritten })
    }

    fn write_summary(&self, dir: &RunDir, summary: &Summary) -> Result<(), Error> {
        let path = dir.file(SUMMARY);
        write_whole(&path, |out| {
            write_summary(summary, self.jobs, out).map_err(|why| Error::write(&path, why))
        })
    }

    /// A part as a repetition of the plan: one that has grown may sweep more keys than the one it ran in.
    fn placed(&self, mut part: Part) -> Part {
        if let Some(cell) = self.plan.cell(part.summary.cell) {
            part.summary.sweep = Arc::clone(&cell.sweep).into();
            part.figures.iter_mut().for_each(|figures| figures.label.clone_from(&cell.label));
        }
        part
    }

    fn summary(&self, parts: Vec<Part>, missing: &[PartId]) -> Result<Summary, Error> {
        let Self { plan, begun, watch, failure, .. } = *self;
        let valid = missing.is_empty() && is_mostly_undisturbed(&parts);
        let (left_out, counted): (Vec<&Part>, Vec<&Part>) =
            parts.iter().partition(|part| valid && part.is_disturbed());
        let clock = worst_clock(&counted);
        let mut warnings = warnings(plan, &counted);
        warnings.extend(left_out_warning(plan, parts.len(), &left_out));
        warnings.extend(ran_again_note(&parts));
        if begun.arena()? == ArenaKind::Sim {
            let passed_over = plan.understood.not_in_sim.iter();
            warnings.extend(passed_over.map(|(key, message)| format!("{SCENARIO}: {key}: {message}")));
        }
        if !missing.is_empty() {
            warnings.push(warning::invalid(missing_warning(plan, missing, failure)));
        }
        let runs: Vec<RunSummary> = parts.into_iter().map(|part| part.summary).collect();
        // Over real sockets what is equal to the digit is empty.
        if begun.arena()? == ArenaKind::Sim {
            warnings.extend(alike_warning(&runs));
        }
        warning::sort(&mut warnings);
        let mut summary = Summary {
            format: SUMMARY_FORMAT,
            talkpath: env!("CARGO_PKG_VERSION").to_owned(),
            name: plan.name.clone(),
            arena: begun.arena_name().to_owned(),
            started: begun.started.clone(),
            wall_s: watch.wall_s(),
            cpu_s: watch.cpu_s(),
            valid,
            warnings,
            percentiles: percentiles(begun)?.to_owned(),
            clock,
            cells: Vec::new(),
            runs,
            comparisons: Vec::new(),
            thresholds: Vec::new(),
            provenance: Some(self.provenance.clone()),
            understood: Understood {
                // The findings have it.
                setting: Vec::new(),
                traces: plan.understood.traces.clone(),
                losses: plan.understood.losses.clone(),
                fragments: plan.understood.fragments.clone(),
                // A plan that has grown has every default written out.
                assumed_queues: self.demanded.understood.assumed_queues.clone(),
            },
        };
        summary.cells = cell_summaries(summary.counted_runs());
        self.findings.judge(self.demanded, &mut summary);
        Ok(summary)
    }
}

/// Puts the record files of all parts together, as far as `records` wants them.
fn merge_records(dir: &RunDir, sources: &[(PartId, Source)], records: Records) -> Result<(), Error> {
    let parts = |name: &'static str| sources.iter().map(move |(_, source)| source.open(name));
    let unmerged = |path: &Path, name: &str, why: MergeError| match why {
        MergeError::Part { index, why } => match sources.get(index) {
            Some((_, source)) => unread(&source.path(name), why),
            None => unwritten(path, why),
        },
        MergeError::Out(why) => unwritten(path, why),
    };
    if records >= Records::All {
        let path = dir.file(PACKETS);
        write_whole(&path, |writer| {
            merge_packets(parts(PACKETS), writer).map_err(|why| unmerged(&path, PACKETS, why))
        })?;
    }
    if records >= Records::Summary {
        let path = dir.file(SERIES);
        write_whole(&path, |writer| {
            merge_series(parts(SERIES), writer).map_err(|why| unmerged(&path, SERIES, why))
        })?;
    }
    Ok(())
}

/// Writes log.txt of what each part has of it.
fn write_log(dir: &RunDir, parts: &[String]) -> Result<(), Error> {
    let path = dir.file(LOG);
    write_whole(&path, |out| {
        let written = parts.iter().try_for_each(|part| out.write_all(part.as_bytes()));
        written.map_err(|why| Error::write(&path, why))
    })
}

/// Where the files of a repetition are.
enum Source {
    Folder(PathBuf),
    Files(PartFiles),
}

impl Source {
    /// The file `name`, which it has.
    fn open(&self, name: &str) -> io::Result<PartFile<File>> {
        self.find(name)?.ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// The file `name`; `None` if it has no such one.
    fn find(&self, name: &str) -> io::Result<Option<PartFile<File>>> {
        match self {
            Self::Files(files) => Ok(files.read(name)?.map(PartFile::from)),
            Self::Folder(folder) => Ok(find_file(&folder.join(name))?.map(PartFile::Open)),
        }
    }

    /// Which file on the disk holds the file `name`.
    fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Files(files) => files.path().to_path_buf(),
            Self::Folder(folder) => folder.join(name),
        }
    }
}

/// What it means that the file `path` of a part could not be read.
fn unread(path: &Path, why: RecordError) -> Error {
    match why {
        RecordError::Io(why) => Error::read(path, why),
        other => Error::Unusable(format!("cannot read {}: {other}", path.display())),
    }
}

/// Arrival logs and captures are not merged: each stands for itself, under its repetition's name.
fn keep_apart(dir: &RunDir, sources: &[(PartId, Source)], name: &str) -> Result<(), Error> {
    for (id, source) in sources {
        let (from, target) = (source.path(name), dir.file(name).join(id.file_name()));
        let found = source.find(name).map_err(|why| Error::read(&from, why))?;
        let Some(file) = found else { continue };
        let folder = dir.file(name);
        own_folder(&folder)?;
        fs::create_dir_all(&folder).map_err(|why| Error::write(&folder, why))?;
        let mut source = file.get_read(0).map_err(|why| unread(&from, why.into()))?;
        write_whole(&target, |out| copy((&mut source, &from), (out, &target)))?;
    }
    Ok(())
}

/// Copies all that `source` gives into `out`; a failure names the file of the two that it is about.
fn copy(
    (source, from): (&mut impl Read, &Path),
    (out, target): (&mut impl Write, &Path),
) -> Result<(), Error> {
    let mut bytes = vec![0; WRITE_AT_ONCE];
    loop {
        match source.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(read) => out.write_all(&bytes[..read]).map_err(|why| Error::write(target, why))?,
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(Error::read(from, why)),
        }
    }
}

/// The repetitions in hand as a summary, to see what they say so far.
pub(crate) fn so_far(plan: &Plan, kept: &Fresh) -> Summary {
    let sweep = |cell: u64| plan.cell(cell).map(|cell| Arc::clone(&cell.sweep).into());
    let run = |part: &Part| {
        let run = part.summary.clone();
        RunSummary { sweep: sweep(run.cell).unwrap_or_default(), ..run }
    };
    let whole = kept.iter().filter(|((_, unfinished), _)| !unfinished);
    let runs = whole.map(|(_, part)| run(part)).collect();
    let mut summary = Summary {
        format: SUMMARY_FORMAT,
        talkpath: String::new(),
        name: plan.name.clone(),
        arena: String::new(),
        started: String::new(),
        wall_s: 0.0,
        cpu_s: 0.0,
        valid: true,
        warnings: Vec::new(),
        percentiles: String::new(),
        clock: Clock::from(&ClockRecord::default()),
        cells: Vec::new(),
        runs,
        comparisons: Vec::new(),
        thresholds: Vec::new(),
        provenance: None,
        understood: Understood::default(),
    };
    summary.cells = cell_summaries(summary.counted_runs());
    summary
}

/// Whether half of the repetitions of each cell or more are undisturbed, as a study demands of its cells.
fn is_mostly_undisturbed(parts: &[Part]) -> bool {
    let mut cells: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for part in parts {
        let (undisturbed, all) = cells.entry(part.id().cell).or_default();
        *undisturbed += u64::from(part.valid);
        *all += 1;
    }
    let is_known = |part: &Part| part.valid || part.is_disturbed();
    parts.iter().all(is_known) && cells.values().all(|&(undisturbed, all)| is_enough(undisturbed, all))
}

/// If no rows are kept, the simulator keeps none in memory either; a real-time arena has them anyway.
fn percentiles(begun: &Resumable) -> Result<&'static str, Error> {
    let keeps_rows = begun.records()? >= Records::All || begun.exact || begun.arena()? != ArenaKind::Sim;
    Ok(if keeps_rows { "exact" } else { histogram::PERCENTILES })
}

/// One run has one clock entry: an untrusted one speaks for all, else the least certain.
fn worst_clock(parts: &[&Part]) -> Clock {
    let known = |clock: &Clock| Some(clock.uncertainty_ms? + clock.change_uncertainty_ms.unwrap_or(0.0));
    let doubt = |clock: &Clock| (!clock.trusted, known(clock).unwrap_or(f64::INFINITY));
    let worse = |a: &Clock, b: &Clock| {
        let (a, b) = (doubt(a), doubt(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    };
    let worst = parts.iter().map(|part| &part.clock).rev().max_by(|a, b| worse(a, b));
    worst.cloned().unwrap_or_else(|| Clock::from(&ClockRecord::default()))
}

/// Repetitions that are not there whole.
pub fn missing(plan: &Plan, parts: &BTreeSet<(PartId, bool)>) -> Vec<PartId> {
    let of_cell = |cell: &Cell| {
        let cell = cell.index;
        (0..plan.repeat).map(move |repetition| PartId { cell, repetition })
    };
    plan.cells.iter().flat_map(of_cell).filter(|id| !parts.contains(&(*id, false))).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_log_of_arrivals_takes_the_place_of_an_older_one_whole() {
        let out = tempfile::tempdir().unwrap();
        let dir = RunDir::create_empty(out.path()).unwrap();
        let part = out.path().join("part");
        let target = dir.file(ARRIVALS).join("0-0");
        for folder in [&part, &dir.file(ARRIVALS)] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(part.join(ARRIVALS), "new").unwrap();
        fs::write(&target, "old").unwrap();
        // Whoever opened the old one goes on reading it.
        let opened = out.path().join("opened");
        fs::hard_link(&target, &opened).unwrap();
        let sources = [(PartId { cell: 0, repetition: 0 }, Source::Folder(part))];
        keep_apart(&dir, &sources, ARRIVALS).unwrap();
        assert_eq!([&target, &opened].map(|path| fs::read_to_string(path).unwrap()), ["new", "old"]);
    }

    #[test]
    fn a_file_of_a_part_that_cannot_be_read_is_named_and_not_the_file_that_it_would_go_into() {
        let out = tempfile::tempdir().unwrap();
        fs::create_dir(out.path().join("run")).unwrap();
        let dir = RunDir::create_empty(&out.path().join("run")).unwrap();
        let part = out.path().join("part");
        fs::create_dir_all(part.join(CAPTURES)).unwrap();
        for name in [ARRIVALS, PACKETS] {
            symlink(part.join(name), part.join(name)).unwrap();
        }
        fs::write(part.join(SERIES), "no parquet").unwrap();
        let rows = PartFiles::new(&part.join("figures-0.rows"), 0, [(ARRIVALS.to_owned(), 1)]);
        let is_told = |why: &Error, file: &str| {
            let (told, expected) = (why.to_string(), format!("cannot read {}: ", part.join(file).display()));
            assert!(
                told.starts_with(&expected) && matches!(why, Error::Read { .. } | Error::Unusable(_)),
                "{told}"
            );
        };
        let id = PartId { cell: 0, repetition: 0 };
        let folder = [(id, Source::Folder(part.clone()))];
        for name in [ARRIVALS, CAPTURES] {
            is_told(&keep_apart(&dir, &folder, name).unwrap_err(), name);
        }
        is_told(&keep_apart(&dir, &[(id, Source::Files(rows))], ARRIVALS).unwrap_err(), "figures-0.rows");
        for (records, name) in [(Records::All, PACKETS), (Records::Summary, SERIES)] {
            is_told(&merge_records(&dir, &folder, records).unwrap_err(), name);
        }
    }
}
