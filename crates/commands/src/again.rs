//! A simulated run once more: it is a function of its scenario and seed, and what its records do not hold is
//! seen by running it again.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use talkpath_arena::RunPlan;
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::{Options, Scenario, parse_duration};
use talkpath_units::{Duration, Instant};

use crate::failure::Failure;
use crate::run_dir::{PartId, RunDir, SCENARIO};
use crate::scenario_file::load_file;
use crate::summary_file::Head;

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
        if head.arena != "sim" {
            let arena = &head.arena;
            return Err(unusable(match arena.as_str() {
                "emu" => {
                    "it ran in emu, and only a simulated run can be made again packet by packet".to_owned()
                }
                _ => format!(
                    "it ran in {arena}, where this program does not see the packets; tcpdump beside it does"
                ),
            }));
        }
        if head.talkpath != env!("CARGO_PKG_VERSION") {
            return Err(unusable(format!(
                "version {} ran it, and another may draw other numbers",
                head.talkpath
            )));
        }
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
