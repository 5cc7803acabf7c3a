//! `talkpath report`: the page again, from what a run directory holds.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use talkpath_measure::RunRecord;
use talkpath_measure::figures::{CellFigures, figures};
use talkpath_measure::record_file::{
    PacketRow, RecordError, SeriesRow, read_packets, read_series, restore_runs,
};
use talkpath_measure::summary::{RunSummary, Summary};
use talkpath_report::{Network, Page, RunPart, html, side_by_side};
use talkpath_scenario::{Cell, Options, Plan};
use talkpath_units::Instant;

use crate::args::ReportArgs;
use crate::command::play::page_network;
use crate::failure::Failure;
use crate::part::{PACKETS, REPORT, SERIES, SUMMARY, is_drawn};
use crate::run_dir::{RunDir, SCENARIO, read_json, write_bytes};
use crate::scenario_file::load_file;
use crate::terminal::Terminal;

/// Writes one page a run directory, or with `-o` one page that lays them all side by side.
pub(crate) fn run(args: &ReportArgs, terminal: Terminal) -> Result<(), Failure> {
    let dirs: Vec<RunDir> = args.runs.iter().map(|path| RunDir::open(path)).collect::<Result<_, _>>()?;
    if let (Some(target), 2..) = (&args.output, dirs.len()) {
        return write(target, &page_of_several(&dirs)?, terminal);
    }
    for dir in &dirs {
        let told = Told::read(dir)?;
        let target = args.output.clone().unwrap_or_else(|| dir.file(REPORT));
        write(&target, &told.page(), terminal)?;
    }
    Ok(())
}

fn write(target: &Path, page: &str, terminal: Terminal) -> Result<(), Failure> {
    write_bytes(target, page.as_bytes())?;
    terminal.result(&format!("Report: {}\n", target.display()))
}

/// What a run directory holds.
struct Told {
    summary: Summary,
    figures: Vec<CellFigures>,
    scenario_toml: String,
    command: String,
    network: Option<Network>,
}

impl Told {
    fn read(dir: &RunDir) -> Result<Self, Failure> {
        let summary: Summary = read_json(&dir.file(SUMMARY))?;
        let scenario = dir.file(SCENARIO);
        let plan = load_file(&scenario, &Options::default())?;
        let figures = runs(dir)?.iter_mut().map(|run| draw(run, &plan, &summary)).collect();
        let command = format!("talkpath run {} --arena {}", scenario.display(), summary.arena);
        let network = page_network(&plan, &summary.arena, dir);
        Ok(Self { summary, figures, scenario_toml: plan.resolved, command, network })
    }

    fn page(&self) -> String {
        html(&Page {
            summary: &self.summary,
            figures: &self.figures,
            scenario_toml: &self.scenario_toml,
            command: &self.command,
            network: self.network.as_ref(),
        })
    }
}

/// The runs are distinguished by their arenas, or by their directories if an arena repeats.
fn page_of_several(dirs: &[RunDir]) -> Result<String, Failure> {
    let told: Vec<Told> = dirs.iter().map(Told::read).collect::<Result<_, _>>()?;
    let mut arenas: Vec<&str> = told.iter().map(|told| told.summary.arena.as_str()).collect();
    arenas.sort_unstable();
    arenas.dedup();
    let by_arena = arenas.len() == told.len();
    let parts = told.iter().zip(dirs).map(|(told, dir)| RunPart {
        label: match (by_arena, dir.path().file_name()) {
            (false, Some(name)) => name.to_string_lossy().into_owned(),
            (true, _) | (_, None) => told.summary.arena.clone(),
        },
        summary: told.summary.clone(),
        figures: told.figures.clone(),
    });
    let joined = |of: &dyn Fn(&Told) -> &str| told.iter().map(of).collect::<Vec<_>>().join("\n");
    let (scenario_toml, command) = (joined(&|told| &told.scenario_toml), joined(&|told| &told.command));
    let Some((summary, figures)) = side_by_side(&parts.collect::<Vec<_>>()) else {
        return Err(Failure::Usage("no run directory to report".to_owned()));
    };
    Ok(Told { summary, figures, scenario_toml, command, network: None }.page())
}

/// The repetitions that are drawn, as far as the record files hold them.
fn runs(dir: &RunDir) -> Result<Vec<RunRecord>, Failure> {
    let (packets_path, series_path) = (dir.file(PACKETS), dir.file(SERIES));
    let packets = rows(&packets_path, read_packets)?.into_iter().flatten().filter(|row| match row {
        Ok(PacketRow { cell, repetition, .. }) => is_drawn(*cell, *repetition),
        Err(_) => true,
    });
    let series = rows(&series_path, read_series)?.into_iter().flatten().filter(|row| match row {
        Ok(SeriesRow { cell, repetition, .. }) => is_drawn(*cell, *repetition),
        Err(_) => true,
    });
    restore_runs(packets, series)
        .map_err(|why| Failure::Usage(format!("cannot read the records in {}: {why}", dir.path().display())))
}

/// The rows of a record file; none if the run kept none.
fn rows<T>(path: &PathBuf, read: impl Fn(File) -> Result<T, RecordError>) -> Result<Option<T>, Failure> {
    match File::open(path) {
        Ok(file) => read(file)
            .map(Some)
            .map_err(|why| Failure::Usage(format!("cannot read {}: {why}", path.display()))),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
        Err(why) => Err(Failure::read(path, &why)),
    }
}

/// Fills in what the record files leave out, from the summary and the scenario, and draws.
fn draw(run: &mut RunRecord, plan: &Plan, summary: &Summary) -> CellFigures {
    let cell = plan.cells.iter().find(|cell| cell.index == run.cell);
    let told = summary.runs.iter().find(|told| (told.cell, told.repetition) == (run.cell, run.repetition));
    if let Some(Cell { scenario, .. }) = cell {
        run.window_start = Instant::ZERO.saturating_add(scenario.warm_up);
        run.window_end = Instant::ZERO.saturating_add(scenario.duration);
    }
    for flow in &mut run.flows {
        flow.info.clock_trusted = summary.clock.trusted;
        if let Some(told) = told.and_then(|told: &RunSummary| told.flows.get(&flow.info.name)) {
            flow.info.transport.clone_from(&told.transport);
        }
    }
    figures(run, cell.map_or("", |cell| &cell.label))
}
