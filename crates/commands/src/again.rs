//! A simulated run once more: it is a function of its scenario and seed, so what its directory does not hold
//! is made by running it again, packets and rows.

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

/// One repetition of one cell of a simulated run.
pub struct Again {
    /// What ran.
    pub scenario: Scenario,
    id: PartId,
}

impl Again {
    /// That of `dir`, which the user named `path`. `head` is that of its summary.
    pub fn load(dir: &RunDir, head: &Head, path: &Path, id: PartId) -> Result<Self, Failure> {
        let unusable = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
        is_repeatable(head).map_err(unusable)?;
        let plan = load_file(&dir.file(SCENARIO), &Options::default())?;
        let (cells, repeat) = (plan.cells.len(), plan.repeat);
        let cell = usize::try_from(id.cell).ok().and_then(|index| plan.cells.into_iter().nth(index));
        match cell {
            Some(cell) if id.repetition < repeat => Ok(Self { scenario: cell.scenario, id }),
            found => {
                let (flag, wrong, count) = match found {
                    None => ("cell", id.cell, cells as u64),
                    Some(_) => ("repetition", id.repetition, repeat),
                };
                let last = count.saturating_sub(1);
                let range = if last == 0 { "0, the only one".to_owned() } else { format!("0 to {last}") };
                Err(unusable(format!("--{flag} {wrong}: the run has no such {flag}, expected {range}")))
            }
        }
    }

    /// How it runs.
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

    /// From `--from` on for the time `--for`, within the run's duration; to its end without `--for`.
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

/// The repetitions of a simulated run that kept no rows, with their rows.
pub(crate) struct Repetitions {
    plan: Plan,
    ids: Vec<PartId>,
    worker: talkpath_experiment::place::Worker,
    stop: Arc<AtomicBool>,
}

impl Repetitions {
    /// Those of `dir`, in the plan's order. `lacks` is the file of rows that it does not have.
    pub(crate) fn open(dir: &RunDir, lacks: &Path, arenas: &dyn Arenas) -> Result<Self, Failure> {
        let unusable = |why: String| {
            Failure::Usage(format!(
                "{}: not there: the run was made with --records none or summary, or did not end, and {why}",
                lacks.display()
            ))
        };
        is_repeatable(&head_of(dir)?).map_err(unusable)?;
        let plan = load_file(&dir.file(SCENARIO), &Options::default())?;
        let place = Place::of(ArenaKind::Sim, None);
        let Some(worker) = arenas.connect(&place, 1)?.pop() else {
            return Err(unusable("no simulator is here to make it again".to_owned()));
        };
        Ok(Self { plan, ids: measured(dir)?, worker, stop: interrupt::install()? })
    }

    /// The plan that they belong to.
    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs those for which `is_wanted` holds, and gives each to `take`.
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
            // A simulation that was stopped ends early: what it gave is a part.
            if self.stop.load(Ordering::Relaxed) {
                return Err(interrupted());
            }
            take(record)?;
        }
        Ok(())
    }
}

/// Whether the run of this `head` can be made again packet by packet.
///
/// # Errors
/// Why not, as a phrase.
pub(crate) fn is_repeatable(head: &Head) -> Result<(), String> {
    match head.arena.as_str() {
        "sim" if head.talkpath == env!("CARGO_PKG_VERSION") => Ok(()),
        "sim" => Err(format!("version {} ran it, and another may draw other numbers", head.talkpath)),
        "emu" => Err("it ran in emu, and only a simulated run can be made again packet by packet".to_owned()),
        arena => Err(format!(
            "it ran in {arena}, where this program does not see the packets; tcpdump beside it does"
        )),
    }
}

/// The repetitions in the summary of `dir`. Nothing else of that file is kept.
fn measured(dir: &RunDir) -> Result<Vec<PartId>, Failure> {
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
