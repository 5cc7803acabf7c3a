//! Merges the parts of a run into the files of the run.
//!
//! A *part* is what a run directory keeps of one repetition: its figures, and its record files with rows. The
//! merge reads the parts in the order of the plan, so a run is the same on any number of threads and
//! machines.
//!
//! A disturbed repetition does not measure the path, so its figures are left out if enough others remain. If
//! at least half of the repetitions of each cell are undisturbed, the run is valid: its figures come from the
//! undisturbed repetitions, and a warning names the others. Otherwise the run is not valid, and its figures
//! come from all repetitions. The rows and the list `runs` in summary.json have all repetitions in either
//! case.
//!
//! Begin to read with [`Merging::finish`]. The record files are merged in `merge/record_files.rs`.

mod record_files;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;

use talkpath_measure::ClockRecord;
use talkpath_measure::chart_data::CellChartData;
use talkpath_measure::metrics::histogram;
use talkpath_measure::statistic::is_enough;
use talkpath_measure::summarise::{cell_summaries, summary_of_runs};
use talkpath_measure::summary::{
    Clock, ProgramFigureSummary, ProgramSummary, Provenance, RunSummary, Summary, Understood,
};
use talkpath_measure::warning;
use talkpath_scenario::{Cell, Plan};

use self::record_files::{
    PartRecords, RecordFiles, copy_each, merge_records, write_log, write_program_outputs,
};
use crate::Error;
use crate::choice::{ArenaKind, Records};
use crate::findings::{Findings, FinishedRun};
use crate::part::{ARRIVALS, CAPTURES, PART, Part, PartsInMemory, QLOGS, REPORT, SUMMARY};
use crate::run_dir::{PartId, PartKey, RunDir, SCENARIO};
use crate::run_options::RunOptions;
use crate::stopwatch::Stopwatch;
use crate::store::whole::{read_json, write_bytes, write_whole};
use crate::summary_file::write_summary;
use crate::warnings::{
    failed_program_warning, identical_warning, left_out_warning, missing_warning, part_name, rerun_note,
    warnings_of_run,
};

/// A run whose parts are to be merged.
pub struct Merging<'a> {
    /// The plan that ran.
    pub plan: &'a Plan,
    /// The plan that the user started, before the run grew. The summary is judged against its thresholds.
    pub demanded: &'a Plan,
    /// The options of the run.
    pub options: &'a RunOptions,
    /// The number of threads that write the summary.
    pub jobs: usize,
    /// Measures the time of the run.
    pub watch: &'a Stopwatch,
    /// Why repetitions are missing, if the reason is known.
    pub failure: Option<&'a Error>,
    /// Whether the parts have all the rows that `options` asks for. If not, no files of rows are written.
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
    /// Whether the run is complete, so that there is nothing to resume.
    pub is_complete: bool,
    /// The error of the first file that could not be written. The summary is right nevertheless.
    pub write_error: Option<Error>,
}

/// The parts of a run, in the order of the plan.
struct SortedParts {
    parts: Vec<Part>,
    /// The record files of those parts that have any.
    records: Vec<PartRecords>,
    missing: Vec<PartId>,
}

/// The parts of a run, divided by whether the figures include them.
struct PartsByUse<'a> {
    counted: Vec<&'a Part>,
    left_out: Vec<&'a Part>,
}

impl Merging<'_> {
    /// Merges the parts in the directories `from` and those `in_memory` into the files of `dir`. If one file
    /// cannot be written, the other files are written nevertheless.
    ///
    /// # Errors
    /// Returns an error if a part cannot be read, or if the options of the run are unknown to this program.
    pub fn finish(&self, dir: &RunDir, from: &[&RunDir], in_memory: PartsInMemory) -> Result<Merged, Error> {
        let SortedParts { mut parts, records, missing } = self.sort(from, in_memory)?;
        // The log lines are moved out of the parts, so that the summary of many repetitions needs less
        // memory.
        let log: Vec<String> = parts.iter_mut().map(|part| mem::take(&mut part.log)).collect();
        let outputs: Vec<String> =
            parts.iter_mut().filter_map(|part| take_program_output(self.plan, part)).collect();
        let mut chart_data: Vec<CellChartData> =
            parts.iter_mut().filter_map(|part| part.chart_data.take()).collect();

        let summary = self.summary(parts, &missing)?;
        let drawn_repetitions = summary.shown_repetitions();
        chart_data.retain(|data| drawn_repetitions.get(&data.cell) == Some(&data.repetition));
        let page = self.findings.page(&FinishedRun {
            dir,
            plan: self.plan,
            options: self.options,
            summary: &summary,
            chart_data: &chart_data,
        });

        let record_level = self.options.records()?;
        let results = [
            if self.has_rows { merge_records(dir, &records, record_level) } else { Ok(()) },
            copy_each(dir, &records, ARRIVALS),
            copy_each(dir, &records, CAPTURES),
            copy_each(dir, &records, QLOGS),
            write_log(dir, &log),
            write_program_outputs(dir, &outputs),
            self.write_summary(dir, &summary),
            write_bytes(&dir.file(REPORT), page.as_bytes()),
        ];
        let write_error = results.into_iter().find_map(Result::err);
        // A run that failed while repetitions ran again can be resumed, although no repetition is missing.
        let is_complete = missing.is_empty() && self.failure.is_none();
        Ok(Merged { summary, is_complete, write_error })
    }

    /// Reads the parts that are not in memory, and sorts all parts in the order of the plan.
    fn sort(&self, from: &[&RunDir], mut in_memory: PartsInMemory) -> Result<SortedParts, Error> {
        let mut folders = part_folders(from)?;
        let keys = keys_to_merge(folders.keys().chain(in_memory.keys()));
        let (mut parts, mut records) = (Vec::with_capacity(keys.len()), Vec::new());
        let mut chart_data: BTreeMap<u64, ChartDataOfCell> = BTreeMap::new();
        for key in &keys {
            let folder = folders.remove(key);
            let mut part = match (in_memory.remove(key), &folder) {
                (Some(part), _) => part,
                (None, Some(folder)) => read_json::<Part>(&folder.join(PART))?,
                (None, None) => continue,
            };
            chart_data.entry(key.id.cell).or_default().keep_or_drop(&mut part);
            let journal_files = mem::take(&mut part.files);
            if !journal_files.is_empty() {
                records.push(PartRecords { id: key.id, files: RecordFiles::InJournal(journal_files) });
            } else if let Some(folder) = folder {
                records.push(PartRecords { id: key.id, files: RecordFiles::InFolder(folder) });
            }
            parts.push(self.with_swept_values(part));
        }
        let missing = missing_repetitions(self.plan, &keys);
        Ok(SortedParts { parts, records, missing })
    }

    /// Gives a part the swept values and the label of its cell. They may differ from those with which it ran,
    /// because a plan that has grown may sweep more keys.
    fn with_swept_values(&self, mut part: Part) -> Part {
        if let Some(cell) = self.plan.cell(part.summary.cell) {
            part.summary.sweep = Arc::clone(&cell.sweep).into();
            if let Some(chart_data) = &mut part.chart_data {
                chart_data.label.clone_from(&cell.label);
            }
        }
        part
    }

    /// Makes the summary of the run, with its warnings and what the findings say.
    fn summary(&self, parts: Vec<Part>, missing: &[PartId]) -> Result<Summary, Error> {
        let Self { plan, demanded, options, watch, .. } = *self;
        let valid = missing.is_empty() && is_mostly_undisturbed(&parts);
        let (left_out, counted) = parts.iter().partition(|part| valid && part.is_disturbed());
        let by_use = PartsByUse { counted, left_out };
        let clock = worst_clock(&by_use.counted);
        let warnings = self.warnings(&parts, &by_use, missing)?;
        let runs: Vec<RunSummary> = parts.into_iter().map(|part| part.summary).collect();
        let mut summary = Summary {
            talkpath: env!("CARGO_PKG_VERSION").to_owned(),
            arena: options.arena_name().to_owned(),
            started: options.started.clone(),
            wall_s: watch.wall_s(),
            cpu_s: watch.cpu_s(),
            valid,
            warnings,
            percentiles: percentile_method(options)?.to_owned(),
            clock,
            program: program_of(plan),
            runs,
            provenance: Some(self.provenance.clone()),
            understood: Understood {
                // `judge` fills in the setting.
                setting: Vec::new(),
                traces: plan.understood.traces.iter().chain(&plan.understood.tables).cloned().collect(),
                losses: plan.understood.losses.clone(),
                fragments: plan.understood.fragments.clone(),
                // In a plan that has grown every default is written out, so only the first plan knows which
                // queues the user left to the program.
                assumed_queues: demanded.understood.assumed_queues.clone(),
                links_of_cells: links_of_cells(plan),
            },
            ..summary_of_runs(&plan.name, Vec::new())
        };
        summary.cells = cell_summaries(summary.counted_runs());
        self.findings.judge(demanded, &mut summary);
        Ok(summary)
    }

    /// Returns the warnings of the run. Those that make it invalid come first, and notes come last.
    fn warnings(
        &self,
        parts: &[Part],
        by_use: &PartsByUse<'_>,
        missing: &[PartId],
    ) -> Result<Vec<String>, Error> {
        let is_simulated = self.options.arena()? == ArenaKind::Sim;
        let mut warnings = warnings_of_run(self.plan, &by_use.counted);
        warnings.extend(left_out_warning(self.plan, parts.len(), &by_use.left_out));
        warnings.extend(rerun_note(parts));
        warnings.extend(failed_program_warning(self.plan, parts));
        if is_simulated {
            for (key, message) in &self.plan.understood.not_in_sim {
                warnings.push(format!("{SCENARIO}: {key}: {message}"));
            }
        }
        if !missing.is_empty() {
            warnings.push(warning::invalid(missing_warning(self.plan, missing, self.failure)));
        }
        // Over real sockets repetitions are identical only if nothing was delivered in them.
        if is_simulated {
            warnings.extend(identical_warning(parts.iter().map(|part| &part.summary)));
        }
        warning::sort(&mut warnings);
        Ok(warnings)
    }

    fn write_summary(&self, dir: &RunDir, summary: &Summary) -> Result<(), Error> {
        let path = dir.file(SUMMARY);
        write_whole(&path, |out| {
            write_summary(summary, self.jobs, out).map_err(|why| Error::write(&path, why))
        })
    }
}

/// Returns the folder of each part that has one.
fn part_folders(directories: &[&RunDir]) -> Result<BTreeMap<PartKey, PathBuf>, Error> {
    let mut folders = BTreeMap::new();
    for directory in directories {
        for key in directory.parts()? {
            folders.insert(key, directory.part_folder(key));
        }
    }
    Ok(folders)
}

/// Returns the parts that the run is made of, each once. If an attempt was cut short, and the same repetition
/// ran to its end later, only the later part is used.
fn keys_to_merge<'a>(keys: impl Iterator<Item = &'a PartKey>) -> BTreeSet<PartKey> {
    let all_keys: BTreeSet<PartKey> = keys.copied().collect();
    let is_replaced = |key: &PartKey| key.is_cut_short && all_keys.contains(&PartKey::whole(key.id));
    all_keys.iter().copied().filter(|key| !is_replaced(key)).collect()
}

/// Returns the repetitions of `plan` that did not run to their end.
pub fn missing_repetitions(plan: &Plan, parts: &BTreeSet<PartKey>) -> Vec<PartId> {
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

/// Which chart data of a cell was kept, among the parts that were read so far.
#[derive(Default)]
struct ChartDataOfCell {
    is_kept: bool,
    is_undisturbed: bool,
}

impl ChartDataOfCell {
    /// Keeps the chart data of `part` if the page may draw it, and drops it otherwise. The page draws one
    /// repetition of a cell: the first undisturbed one if the run is valid, and the first one if it is not.
    /// Returns whether the run is valid is not known before all parts are read, so both are kept.
    fn keep_or_drop(&mut self, part: &mut Part) {
        let is_needless = self.is_kept && (self.is_undisturbed || part.is_disturbed());
        if is_needless {
            part.chart_data = None;
        }
        if part.chart_data.is_some() {
            self.is_kept = true;
            self.is_undisturbed |= !part.is_disturbed();
        }
    }
}

/// Makes a summary of the parts in memory while the run goes on. The summary has figures, and no warnings.
pub(crate) fn summary_so_far(plan: &Plan, in_memory: &PartsInMemory) -> Summary {
    let mut runs = Vec::new();
    for (key, part) in in_memory {
        if key.is_cut_short {
            continue;
        }
        let mut run = part.summary.clone();
        run.sweep = plan.cell(run.cell).map(|cell| Arc::clone(&cell.sweep).into()).unwrap_or_default();
        runs.push(run);
    }
    // Only where the size of a queue is assumed is another size a variant.
    let assumed_queues = plan.understood.assumed_queues.clone();
    let understood = Understood { assumed_queues, ..Understood::default() };
    Summary { program: program_of(plan), understood, ..summary_of_runs(&plan.name, runs) }
}

/// The names of the links that are in a phone's cell, in any cell of the sweep.
fn links_of_cells(plan: &Plan) -> Vec<String> {
    let links = plan.cells.iter().flat_map(|cell| &cell.scenario.links);
    let names: BTreeSet<&String> =
        links.filter(|link| link.config.cellular.is_some()).map(|link| &link.name).collect();
    names.into_iter().cloned().collect()
}

/// Describes the program of the user, if the plan has one whose end is a result.
fn program_of(plan: &Plan) -> Option<ProgramSummary> {
    plan.cells.first().and_then(program_summary)
}

/// Describes the program of the user, if the cell has one whose end is a result.
fn program_summary(cell: &Cell) -> Option<ProgramSummary> {
    let program = cell.scenario.program.as_ref().filter(|program| !program.is_of_shell)?;
    let figures = program.figures.iter().map(|figure| {
        let (unit, less_is_better) = (figure.unit.clone(), figure.less_is_better);
        (figure.name.clone(), ProgramFigureSummary { unit, less_is_better })
    });
    Some(ProgramSummary { command: program.command.clone(), figures: figures.collect() })
}

/// Takes what the program of a repetition printed, below a line that names the repetition and its outcome.
fn take_program_output(plan: &Plan, part: &mut Part) -> Option<String> {
    let output = mem::take(&mut part.program_output);
    let outcome = part.summary.program.as_ref()?;
    Some(outcome.with_output(&part_name(plan, part), &output))
}

/// Returns whether enough repetitions of each cell are undisturbed. `is_enough` says how many that is: at
/// least half. A study demands the same of its cells.
fn is_mostly_undisturbed(parts: &[Part]) -> bool {
    #[derive(Default)]
    struct Repetitions {
        undisturbed: u64,
        total: u64,
    }
    let mut cells: BTreeMap<u64, Repetitions> = BTreeMap::new();
    for part in parts {
        if !part.valid && !part.is_disturbed() {
            // The part has no figures of the machine, so nobody can say whether the machine disturbed it.
            return false;
        }
        let cell = cells.entry(part.id().cell).or_default();
        cell.undisturbed += u64::from(part.valid);
        cell.total += 1;
    }
    cells.values().all(|cell| is_enough(cell.undisturbed, cell.total))
}

/// Returns how the percentiles were computed. They are exact, except in a simulation that keeps no rows:
/// there they come from a histogram.
fn percentile_method(options: &RunOptions) -> Result<&'static str, Error> {
    let is_simulated = options.arena()? == ArenaKind::Sim;
    let has_rows = options.records()? >= Records::All || options.exact || !is_simulated;
    Ok(if has_rows { "exact" } else { histogram::PERCENTILES })
}

/// Returns the worst clock comparison of all parts. The run has the same clock comparison.
fn worst_clock(parts: &[&Part]) -> Clock {
    let mut worst: Option<&Clock> = None;
    for part in parts {
        if worst.is_none_or(|worst| is_worse_clock(&part.clock, worst)) {
            worst = Some(&part.clock);
        }
    }
    worst.cloned().unwrap_or_else(|| Clock::from(&ClockRecord::default()))
}

/// Returns whether `clock` is worse than `other`. A clock that is not trusted is worse than a trusted one.
/// If both or neither are trusted, the clock with the larger uncertainty is worse.
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
