//! Merges the parts of a run into the files of the run, in the plan's order.
//!
//! A repetition that stayed disturbed does not measure the path. If at least half of the repetitions of each
//! cell are undisturbed, the run is valid: the figures rest on the undisturbed repetitions alone, and a
//! warning names the others. Otherwise the run is not valid, and the figures are those of all repetitions.
//! The rows, and `runs` in summary.json, have all repetitions in either case.
//!
//! Begin to read with [`Merging::finish`].

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
use talkpath_scenario::Plan;

use crate::Error;
use crate::choice::{ArenaKind, Records};
use crate::findings::{Findings, FinishedRun};
use crate::part::{
    ARRIVALS, CAPTURES, LOG, PACKETS, PART, Part, PartFiles, PartsInMemory, REPORT, SERIES, SUMMARY,
    unwritten,
};
use crate::resumable::Resumable;
use crate::run_dir::{PartId, PartKey, RunDir, SCENARIO, own_folder};
use crate::stopwatch::Stopwatch;
use crate::store::whole::{WRITE_AT_ONCE, find_file, read_json, write_bytes, write_whole};
use crate::summary_file::write_summary;
use crate::warnings::{alike_warning, left_out_warning, missing_warning, ran_again_note, warnings};

/// A run whose parts are to be merged.
pub struct Merging<'a> {
    /// The plan that ran.
    pub plan: &'a Plan,
    /// The plan that the user started, before the run grew. The summary is judged against its thresholds.
    pub demanded: &'a Plan,
    /// The options of the run.
    pub begun: &'a Resumable,
    /// The number of threads that write the summary.
    pub jobs: usize,
    /// Measures the time of the run.
    pub watch: &'a Stopwatch,
    /// Why repetitions are missing, if the reason is known.
    pub failure: Option<&'a Error>,
    /// Whether the parts have all the rows that `begun` asks for. If not, no files of rows are written.
    pub has_rows: bool,
    /// The program and the machine that made the run.
    pub provenance: Provenance,
    /// Judges and draws the figures.
    pub findings: &'a dyn Findings,
}

/// The result of a merge.
pub struct Merged {
    /// The figures of the run.
    pub summary: Summary,
    /// Whether every repetition is there and the run did not end early, so that there is nothing to resume.
    pub is_whole: bool,
    /// The first file that could not be written. The summary is right nevertheless.
    pub unwritten: Option<Error>,
}

/// The parts of a run, in the plan's order.
struct SortedParts {
    parts: Vec<Part>,
    /// The record files of each part that has some.
    sources: Vec<(PartId, Source)>,
    missing: Vec<PartId>,
}

/// Which chart data of a cell has been kept, of the parts that were read so far.
#[derive(Default)]
struct ChartDataOfCell {
    is_kept: bool,
    is_undisturbed: bool,
}

impl Merging<'_> {
    /// Merges the parts in the directories `from`, and those `in_memory`, into the files of `dir`. If a file
    /// cannot be written, the other files are written nevertheless.
    pub fn finish(&self, dir: &RunDir, from: &[&RunDir], in_memory: PartsInMemory) -> Result<Merged, Error> {
        let SortedParts { mut parts, sources, missing } = self.sort(from, in_memory)?;
        // The log lines are taken out of the parts, so that the summary of many repetitions takes less
        // memory.
        let log: Vec<String> = parts.iter_mut().map(|part| mem::take(&mut part.log)).collect();
        let mut chart_data: Vec<CellFigures> =
            parts.iter_mut().filter_map(|part| part.figures.take()).collect();

        let summary = self.summary(parts, &missing)?;
        let shown = summary.shown_repetitions();
        chart_data.retain(|data| shown.get(&data.cell) == Some(&data.repetition));
        let run =
            FinishedRun { dir, plan: self.plan, begun: self.begun, summary: &summary, figures: &chart_data };
        let page = self.findings.page(&run);

        let records = self.begun.records()?;
        let results = [
            if self.has_rows { merge_records(dir, &sources, records) } else { Ok(()) },
            copy_each(dir, &sources, ARRIVALS),
            copy_each(dir, &sources, CAPTURES),
            write_log(dir, &log),
            self.write_summary(dir, &summary),
            write_bytes(&dir.file(REPORT), page.as_bytes()),
        ];
        let unwritten = results.into_iter().find_map(Result::err);
        // A run that failed while repetitions ran again can be resumed, although none is missing.
        let is_whole = missing.is_empty() && self.failure.is_none();
        Ok(Merged { summary, is_whole, unwritten })
    }

    /// Reads the parts that are not in memory, and sorts all parts in the plan's order.
    fn sort(&self, from: &[&RunDir], mut in_memory: PartsInMemory) -> Result<SortedParts, Error> {
        let mut folders: BTreeMap<PartKey, PathBuf> = BTreeMap::new();
        for directory in from {
            folders.extend(directory.parts()?.into_iter().map(|key| (key, directory.part_folder(key))));
        }
        let mut keys: BTreeSet<PartKey> = folders.keys().chain(in_memory.keys()).copied().collect();
        // The part of an attempt that was cut short does not count once the repetition has run to its end.
        let whole: BTreeSet<PartId> = keys.iter().filter(|key| !key.is_cut_short).map(|key| key.id).collect();
        keys.retain(|key| !(key.is_cut_short && whole.contains(&key.id)));

        let (mut parts, mut sources) = (Vec::with_capacity(keys.len()), Vec::new());
        let mut chart_data: BTreeMap<u64, ChartDataOfCell> = BTreeMap::new();
        for key in &keys {
            let folder = folders.remove(key);
            let mut part = match (in_memory.remove(key), &folder) {
                (Some(part), _) => part,
                (None, Some(folder)) => read_json::<Part>(&folder.join(PART))?,
                (None, None) => continue,
            };
            chart_data.entry(key.id.cell).or_default().keep_or_drop(&mut part);
            let files = mem::take(&mut part.files);
            if !files.is_empty() {
                sources.push((key.id, Source::Journal(files)));
            } else if let Some(folder) = folder {
                sources.push((key.id, Source::Folder(folder)));
            }
            parts.push(self.with_swept_values(part));
        }
        let missing = missing(self.plan, &keys);
        Ok(SortedParts { parts, sources, missing })
    }

    fn write_summary(&self, dir: &RunDir, summary: &Summary) -> Result<(), Error> {
        let path = dir.file(SUMMARY);
        write_whole(&path, |out| {
            write_summary(summary, self.jobs, out).map_err(|why| Error::write(&path, why))
        })
    }

    /// Gives a part the swept values and the label of its cell. They may differ from those with which it ran,
    /// because a plan that has grown may sweep more keys.
    fn with_swept_values(&self, mut part: Part) -> Part {
        if let Some(cell) = self.plan.cell(part.summary.cell) {
            part.summary.sweep = Arc::clone(&cell.sweep).into();
            part.figures.iter_mut().for_each(|figures| figures.label.clone_from(&cell.label));
        }
        part
    }

    /// Makes the summary of the run, with its warnings and what the findings say.
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
        // Over real sockets repetitions are equal only if nothing was delivered in them.
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
                // `judge` fills this in.
                setting: Vec::new(),
                traces: plan.understood.traces.clone(),
                losses: plan.understood.losses.clone(),
                fragments: plan.understood.fragments.clone(),
                // In a plan that has grown every default is written out, so only the first plan knows which
                // queues the user left to the program.
                assumed_queues: self.demanded.understood.assumed_queues.clone(),
            },
        };
        summary.cells = cell_summaries(summary.counted_runs());
        self.findings.judge(self.demanded, &mut summary);
        Ok(summary)
    }
}

impl ChartDataOfCell {
    /// Keeps the chart data of `part` if the page may draw it, and drops it otherwise. The page draws the
    /// first repetition of a cell, or the first undisturbed one if the first was disturbed and the run is
    /// valid.
    fn keep_or_drop(&mut self, part: &mut Part) {
        let is_needless = self.is_kept && (self.is_undisturbed || part.is_disturbed());
        if is_needless {
            part.figures = None;
        }
        if part.figures.is_some() {
            self.is_kept = true;
            self.is_undisturbed |= !part.is_disturbed();
        }
    }
}

/// Merges the record files of all parts. `records` says which files the run has.
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

/// Writes log.txt from the log lines of each part.
fn write_log(dir: &RunDir, parts: &[String]) -> Result<(), Error> {
    let path = dir.file(LOG);
    write_whole(&path, |out| {
        let written = parts.iter().try_for_each(|part| out.write_all(part.as_bytes()));
        written.map_err(|why| Error::write(&path, why))
    })
}

/// Where the record files of a part are.
enum Source {
    Folder(PathBuf),
    Journal(PartFiles),
}

impl Source {
    /// Opens the record file `name`, which must exist.
    fn open(&self, name: &str) -> io::Result<PartFile<File>> {
        self.find(name)?.ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Opens the record file `name`. Returns `None` if the part has no such file.
    fn find(&self, name: &str) -> io::Result<Option<PartFile<File>>> {
        match self {
            Self::Journal(files) => Ok(files.read(name)?.map(PartFile::from)),
            Self::Folder(folder) => Ok(find_file(&folder.join(name))?.map(PartFile::Open)),
        }
    }

    /// Returns the path of the file on the disk that holds the record file `name`.
    fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Journal(files) => files.path().to_path_buf(),
            Self::Folder(folder) => folder.join(name),
        }
    }
}

/// Returns the error for a record file that could not be read.
fn unread(path: &Path, why: RecordError) -> Error {
    match why {
        RecordError::Io(why) => Error::read(path, why),
        other => Error::Unusable(format!("cannot read {}: {other}", path.display())),
    }
}

/// Copies the file `name` of each part into the folder `name` of `dir`, under the name of the repetition.
/// Logs of arrivals and captures are copied in this way, because they cannot be merged.
fn copy_each(dir: &RunDir, sources: &[(PartId, Source)], name: &str) -> Result<(), Error> {
    let folder = dir.file(name);
    for (id, source) in sources {
        let from = source.path(name);
        let found = source.find(name).map_err(|why| Error::read(&from, why))?;
        let Some(file) = found else { continue };
        own_folder(&folder)?;
        fs::create_dir_all(&folder).map_err(|why| Error::write(&folder, why))?;
        let target = folder.join(id.file_name());
        let mut reader = file.get_read(0).map_err(|why| unread(&from, why.into()))?;
        write_whole(&target, |writer| copy(&mut reader, &from, writer, &target))?;
    }
    Ok(())
}

/// Copies all bytes of `reader` into `writer`. An error names `from` if a read failed, and `target` if a
/// write failed.
fn copy(reader: &mut impl Read, from: &Path, writer: &mut impl Write, target: &Path) -> Result<(), Error> {
    let mut bytes = vec![0; WRITE_AT_ONCE];
    loop {
        match reader.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => writer.write_all(&bytes[..count]).map_err(|why| Error::write(target, why))?,
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(Error::read(from, why)),
        }
    }
}

/// Makes a summary of the parts that are in memory while the run is not over. It has figures only.
pub(crate) fn so_far(plan: &Plan, in_memory: &PartsInMemory) -> Summary {
    let mut runs = Vec::new();
    for (key, part) in in_memory {
        if key.is_cut_short {
            continue;
        }
        let mut run = part.summary.clone();
        run.sweep = plan.cell(run.cell).map(|cell| Arc::clone(&cell.sweep).into()).unwrap_or_default();
        runs.push(run);
    }
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

/// Returns whether at least half of the repetitions of each cell are undisturbed. A study demands the same of
/// its cells.
fn is_mostly_undisturbed(parts: &[Part]) -> bool {
    // A part that is neither valid nor disturbed is of a run that the machine could not judge.
    if !parts.iter().all(|part| part.valid || part.is_disturbed()) {
        return false;
    }
    let mut cells: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for part in parts {
        let (undisturbed, all) = cells.entry(part.id().cell).or_default();
        *undisturbed += u64::from(part.valid);
        *all += 1;
    }
    cells.values().all(|&(undisturbed, all)| is_enough(undisturbed, all))
}

/// Returns how the percentiles were computed. They come from all rows, except in a simulation that keeps no
/// rows.
fn percentiles(options: &Resumable) -> Result<&'static str, Error> {
    let is_simulated = options.arena()? == ArenaKind::Sim;
    let has_rows = options.records()? >= Records::All || options.exact || !is_simulated;
    Ok(if has_rows { "exact" } else { histogram::PERCENTILES })
}

/// Returns the worst clock comparison of all parts, which becomes that of the run. A clock that is not
/// trusted is worse than any trusted one. Between two clocks that are both trusted, or both not, the one
/// with the larger uncertainty is worse.
fn worst_clock(parts: &[&Part]) -> Clock {
    let mut worst: Option<&Clock> = None;
    for part in parts {
        if worst.is_none_or(|worst| is_worse_clock(&part.clock, worst)) {
            worst = Some(&part.clock);
        }
    }
    worst.cloned().unwrap_or_else(|| Clock::from(&ClockRecord::default()))
}

fn is_worse_clock(clock: &Clock, other: &Clock) -> bool {
    if clock.trusted != other.trusted {
        return !clock.trusted;
    }
    // An unknown uncertainty is worse than any known one.
    let uncertainty_ms = |clock: &Clock| match clock.uncertainty_ms {
        Some(uncertainty) => uncertainty + clock.change_uncertainty_ms.unwrap_or(0.0),
        None => f64::INFINITY,
    };
    uncertainty_ms(clock).total_cmp(&uncertainty_ms(other)).is_gt()
}

/// Returns the repetitions of `plan` that have no whole part: no attempt at them ran to its end.
pub fn missing(plan: &Plan, parts: &BTreeSet<PartKey>) -> Vec<PartId> {
    let mut missing = Vec::new();
    for cell in &plan.cells {
        for repetition in 0..plan.repeat {
            let id = PartId { cell: cell.index, repetition };
            if !parts.contains(&PartKey::whole(id)) {
                missing.push(id);
            }
        }
    }
    missing
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
        copy_each(&dir, &sources, ARRIVALS).unwrap();
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
            is_told(&copy_each(&dir, &folder, name).unwrap_err(), name);
        }
        is_told(&copy_each(&dir, &[(id, Source::Journal(rows))], ARRIVALS).unwrap_err(), "figures-0.rows");
        for (records, name) in [(Records::All, PACKETS), (Records::Summary, SERIES)] {
            is_told(&merge_records(&dir, &folder, records).unwrap_err(), name);
        }
    }
}
