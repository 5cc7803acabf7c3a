//! Makes the packets and the rows of a simulated run that its directory does not hold. A simulated run
//! depends only on its scenario and its seed, so running it again gives the same packets and rows.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;
use talkpath_arena::RunPlan;
use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::{Options, Plan, Scenario, parse_duration};
use talkpath_units::{Duration, Instant};

use crate::arenas::{self, Arenas, interrupted};
use crate::failure::Failure;
use crate::interrupt;
use crate::scenario_file::load_file;
use crate::summary_file::{Head, head_of};
use talkpath_experiment::choice::ArenaKind;
use talkpath_experiment::part::SUMMARY;
use talkpath_experiment::place::Place;
use talkpath_experiment::run_dir::{PartId, RunDir, SCENARIO};
use talkpath_experiment::store::whole::{open_file, unexpected_json};

/// One repetition of one cell of a simulated run, to be run again.
pub struct Again {
    /// The scenario of the cell.
    pub scenario: Scenario,
    id: PartId,
}

impl Again {
    /// Finds the repetition `id` of the run in `dir`. `path` is the name that the user gave the directory,
    /// and `head` is the head of its summary.
    pub fn load(dir: &RunDir, head: &Head, path: &Path, id: PartId) -> Result<Self, Failure> {
        let unusable = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
        check_repeatable(head).map_err(unusable)?;
        let plan = load_file(&dir.file(SCENARIO), &Options::default())?;
        let (cells, repeat) = (plan.cells.len(), plan.repeat);
        let cell = usize::try_from(id.cell).ok().and_then(|index| plan.cells.into_iter().nth(index));
        let Some(cell) = cell else {
            return Err(unusable(out_of_range("cell", id.cell, cells as u64)));
        };
        if id.repetition >= repeat {
            return Err(unusable(out_of_range("repetition", id.repetition, repeat)));
        }
        Ok(Self { scenario: cell.scenario, id })
    }

    /// Returns the plan to run the repetition.
    pub fn plan<'s>(&self, series: Option<SeriesDetail>, stop: &'s AtomicBool) -> RunPlan<'s> {
        RunPlan {
            cell: self.id.cell,
            repetition: self.id.repetition,
            seed: self.scenario.seed.repetition(self.id.repetition),
            series,
            rows: false,
            interrupt: stop,
            progress: &|_| {},
        }
    }

    /// Reads the part of the run that `--from` and `--for` choose. Without `--for` it ends with the run.
    pub fn window(&self, from: &str, length: Option<&str>) -> Result<(Instant, Instant), Failure> {
        let duration = self.scenario.duration;
        let read = |flag: &str, text: &str| {
            parse_duration(text, Duration::MAX).map_err(|why| Failure::Usage(format!("--{flag}: {why}")))
        };
        let from = read("from", from)?;
        if from >= duration {
            let why =
                format!("the run sends for {} s, and found {} s", duration.as_secs_f64(), from.as_secs_f64());
            return Err(Failure::Usage(format!("--from: expected a time within the run: {why}")));
        }
        let length = length.map(|text| read("for", text)).transpose()?;
        if length.is_some_and(Duration::is_zero) {
            return Err(Failure::Usage("--for: found 0, expected a time above it".to_owned()));
        }
        let to = length.map_or(duration, |length| from.saturating_add(length).min(duration));
        Ok((Instant::ZERO + from, Instant::ZERO + to))
    }
}

/// Says that the run has no cell or repetition `wrong`, because it has only `count` of them.
fn out_of_range(flag: &str, wrong: u64, count: u64) -> String {
    let last = count.saturating_sub(1);
    let range = if last == 0 { "0, the only one".to_owned() } else { format!("0 to {last}") };
    format!("--{flag} {wrong}: the run has no such {flag}, expected {range}")
}

/// The repetitions of a simulated run that kept no rows. Each is run again to get its rows.
pub(crate) struct Repetitions {
    plan: Plan,
    ids: Vec<PartId>,
    worker: talkpath_experiment::place::Worker,
    stop: Arc<AtomicBool>,
}

impl Repetitions {
    /// Finds the repetitions of the run in `dir`. `missing` is the file of rows that the directory does not
    /// have.
    pub(crate) fn open(dir: &RunDir, missing: &Path, arenas: &dyn Arenas) -> Result<Self, Failure> {
        let unusable = |why: String| {
            Failure::Usage(format!(
                "{}: not there: the run was made with --records none or summary, or did not end, and {why}",
                missing.display()
            ))
        };
        check_repeatable(&head_of(dir)?).map_err(unusable)?;
        let plan = load_file(&dir.file(SCENARIO), &Options::default())?;
        let place = Place::new(ArenaKind::Sim, None);
        let Some(worker) = arenas.connect(&place, 1)?.pop() else {
            return Err(unusable("no simulator is here to make it again".to_owned()));
        };
        Ok(Self { plan, ids: repetition_ids(dir)?, worker, stop: interrupt::install()? })
    }

    /// Returns the plan of the run.
    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs the repetitions that are wanted, in the order of the summary, and gives each record to `take`.
    pub(crate) fn each(
        &mut self,
        is_wanted: impl Fn(PartId) -> bool,
        mut take: impl FnMut(RunRecord) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for &id in self.ids.iter().filter(|id| is_wanted(**id)) {
            let Some(cell) = self.plan.cell(id.cell) else { continue };
            let run = RunPlan {
                cell: id.cell,
                repetition: id.repetition,
                seed: cell.scenario.seed.repetition(id.repetition),
                series: Some(SeriesDetail::Sampled),
                rows: true,
                interrupt: &self.stop,
                progress: &|_| {},
            };
            let record = self.worker.run(&cell.scenario, run).map_err(|why| arenas::failure(why).1)?;
            // A simulation that was stopped returns only the beginning of its record.
            if self.stop.load(Ordering::Relaxed) {
                return Err(interrupted());
            }
            take(record)?;
        }
        Ok(())
    }
}

/// Checks that the run with this `head` can be made again packet by packet.
///
/// # Errors
/// Returns the reason why it cannot, as a phrase.
pub(crate) fn check_repeatable(head: &Head) -> Result<(), String> {
    match head.arena.as_str() {
        "sim" if head.talkpath == env!("CARGO_PKG_VERSION") => Ok(()),
        "sim" => Err(format!("version {} ran it, and another may draw other numbers", head.talkpath)),
        "emu" => Err("it ran in emu, and only a simulated run can be made again packet by packet".to_owned()),
        arena => Err(format!(
            "it ran in {arena}, where this program does not see the packets; tcpdump beside it does"
        )),
    }
}

/// Reads which repetitions the summary of `dir` holds. No other key of the file is kept in memory.
fn repetition_ids(dir: &RunDir) -> Result<Vec<PartId>, Failure> {
    #[derive(Deserialize)]
    struct Runs {
        runs: Vec<Run>,
    }
    #[derive(Deserialize)]
    struct Run {
        cell: u64,
        repetition: u64,
    }
    let path: PathBuf = dir.file(SUMMARY);
    let file = open_file(&path).map_err(|why| Failure::read(&path, &why))?;
    let read = serde_json::from_reader(BufReader::new(file));
    let Runs { runs } = read.map_err(|why| unexpected_json(&path, &why))?;
    Ok(runs.into_iter().map(|Run { cell, repetition }| PartId { cell, repetition }).collect())
}
