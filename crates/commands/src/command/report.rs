//! `talkpath report` draws the page of a run again from its directory.
//!
//! A run keeps the rows of its messages in record files, unless it was told not to. If there are no rows, the
//! repetitions that the page draws are run again.

mod labels;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use talkpath_measure::RunRecord;
use talkpath_measure::chart_data::{CellChartData, cell_chart_data};
use talkpath_measure::record_file::{
    PacketRow, RecordError, SeriesRow, read_packets, read_series, restore_runs,
};
use talkpath_measure::summary::{FlowSummary, RunSummary, Summary};
use talkpath_report::{
    CellChanges, ChartFile, Network, Page, RunPart, Sounds, chart_files, html, side_by_side,
};
use talkpath_scenario::{Cell, Options, Plan};
use talkpath_units::{Instant, counted};

use crate::again::{Repetitions, check_repeatable};
use crate::arenas::Arenas;
use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::network::page_network;
use crate::output_file::{refuse_records, write_named_bytes};
use crate::page::command_again;
use crate::path_changes::path_changes;
use crate::scenario_file::load_file;
use crate::summary_file::{head_of, read_summary};
use crate::terminal::Terminal;
use talkpath_experiment::part::{PACKETS, REPORT, SERIES, is_drawn};
use talkpath_experiment::run_dir::{PartId, RunDir, SCENARIO};
use talkpath_experiment::run_options::RunOptions;
use talkpath_experiment::store::whole::{find_file, write_bytes};

/// Writes one page for each run directory. If `-o` is given with several directories, it writes one page that
/// shows all runs side by side.
pub fn run(args: &ReportArgs, arenas: &dyn Arenas, terminal: Terminal) -> Result<(), Failure> {
    let dirs: Vec<RunDir> = args.runs.iter().map(|path| RunDir::open(path)).collect::<Result<_, _>>()?;
    if let Some(target) = &args.output {
        check_output(target, &dirs)?;
    }
    let figures = args.figures.as_deref();
    let has_several_runs = dirs.len() > 1;
    match &args.output {
        Some(target) if has_several_runs => {
            join_runs(&dirs, arenas, terminal)?.write(Some(target), figures, terminal)
        }
        Some(target) => {
            for dir in &dirs {
                StoredRun::read(dir, arenas, terminal)?.write(Some(target), figures, terminal)?;
            }
            Ok(())
        }
        None => {
            if let Some(folder) = figures
                && has_several_runs
            {
                return Err(Failure::Usage(format!(
                    "--figures {}: the figures of several runs have the same names; give -o for one page with all of them, \
                     or one run directory",
                    folder.display()
                )));
            }
            for dir in &dirs {
                write_own_page(dir, figures, arenas, terminal)?;
            }
            Ok(())
        }
    }
}

/// Writes the page of the run in `dir` into `dir`, and its figures if there is a folder for them.
fn write_own_page(
    dir: &RunDir,
    figures: Option<&Path>,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    let run = StoredRun::read(dir, arenas, terminal)?;
    let page = dir.file(REPORT);
    match refuse_lossy_page(dir, &page) {
        Ok(()) => run.write(Some(&page), figures, terminal),
        // The user asked for the figures only, so the old page stays.
        Err(_) if figures.is_some() => run.write(None, figures, terminal),
        Err(why) => Err(why),
    }
}

/// Writes the page of the run in `dir` into `dir`, with `sounds` in it. Returns the page's path.
pub(super) fn write_page_with_sounds(
    dir: &RunDir,
    sounds: Sounds,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<PathBuf, Failure> {
    let run = StoredRun { sounds: Some(sounds), ..StoredRun::read(dir, arenas, terminal)? };
    let path = dir.file(REPORT);
    write_named_bytes(&path, html(&run.page()).as_bytes())?;
    Ok(path)
}

/// Refuses a file of `-o` that is not a page in HTML, or over which a page must not be written.
fn check_output(target: &Path, dirs: &[RunDir]) -> Result<(), Failure> {
    if let Some(ending) = target.extension().and_then(OsStr::to_str)
        && !["html", "htm"].iter().any(|html| ending.eq_ignore_ascii_case(html))
    {
        return Err(Failure::Usage(format!(
            "-o {}: a report is a page in HTML, not .{ending}: name it .html, and print it to PDF from a browser",
            target.display()
        )));
    }
    let paths: Vec<&Path> = dirs.iter().map(RunDir::path).collect();
    refuse_records("-o", target, &paths, Some(REPORT))?;
    for dir in dirs {
        let page = dir.file(REPORT);
        if is_same_file(&page, target) {
            refuse_lossy_page(dir, &page)?;
        }
    }
    Ok(())
}

/// Returns whether both paths lead to the same file. A file that does not exist is not the same as any other.
pub(super) fn is_same_file(path: &Path, other: &Path) -> bool {
    match (fs::canonicalize(path), fs::canonicalize(other)) {
        (Ok(path), Ok(other)) => path == other,
        _ => false,
    }
}

/// Returns whether `dir` has the rows of its messages.
///
/// # Errors
/// Returns a [`Failure`] if the file of the rows exists, but cannot be opened.
fn has_rows(dir: &RunDir) -> Result<bool, Failure> {
    let path = dir.file(PACKETS);
    let found = find_file(&path).map_err(|why| Failure::read(&path, &why))?;
    Ok(found.is_some())
}

/// Returns whether `dir` has no rows, but running it again gives them.
pub(super) fn needs_new_run(dir: &RunDir) -> Result<bool, Failure> {
    Ok(!has_rows(dir)? && head_of(dir).is_ok_and(|head| check_repeatable(&head).is_ok()))
}

/// Draws one repetition of each cell by running it again. `drawn` has the repetition of each cell.
fn draw_by_new_run(
    dir: &RunDir,
    drawn: &BTreeMap<u64, u64>,
    arenas: &dyn Arenas,
) -> Result<Vec<CellChartData>, Failure> {
    let mut repetitions = Repetitions::open(dir, &dir.file(PACKETS), arenas)?;
    let labels: BTreeMap<u64, String> =
        repetitions.plan().cells.iter().map(|cell| (cell.index, cell.label.clone())).collect();
    let mut chart_data = Vec::new();
    let is_drawn = |id: PartId| drawn.get(&id.cell) == Some(&id.repetition);
    repetitions.each(is_drawn, |record| {
        let label = labels.get(&record.cell).map_or("", String::as_str);
        chart_data.push(cell_chart_data(&record, label));
        Ok(())
    })?;
    Ok(chart_data)
}

/// Refuses to write over `page`, the page of the run in `dir`, if a new page would show less.
///
/// The first page was drawn when the run still had all rows in memory. If the run kept no rows, and cannot be
/// run again, a new page lacks the figures that need each message.
pub(super) fn refuse_lossy_page(dir: &RunDir, page: &Path) -> Result<(), Failure> {
    if has_rows(dir)? || !page.exists() || needs_new_run(dir)? {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{}: there is no {PACKETS} beside it (--records summary or none), and a page made again would lack the \
         distribution of delays and the runs of losses that this one has; -o FILE writes another",
        page.display()
    )))
}

/// A run as its directory holds it, with everything that its page needs.
struct StoredRun {
    summary: Summary,
    chart_data: Vec<CellChartData>,
    changes: Vec<CellChanges>,
    scenario_toml: String,
    command: String,
    network: Option<Network>,
    /// The sounds of a call. `None` unless the page plays one.
    sounds: Option<Sounds>,
}

impl StoredRun {
    fn read(dir: &RunDir, arenas: &dyn Arenas, terminal: Terminal) -> Result<Self, Failure> {
        let summary = read_summary(dir, terminal)?;
        let plan = load_file(&dir.file(SCENARIO), &Options::default())?;
        let mut drawn = summary.shown_repetitions();
        drawn.retain(|index, _| plan.cell(*index).is_some_and(|cell| is_drawn(&plan, cell)));
        let chart_data = if needs_new_run(dir)? {
            draw_by_new_run(dir, &drawn, arenas)?
        } else {
            let mut records = stored_records(dir, &drawn)?;
            records.iter_mut().map(|record| draw(record, &plan, &summary)).collect()
        };
        let to = RunOptions::read(dir).ok().and_then(|begun| begun.to);
        let command = command_again(dir, &plan, &summary.arena, to.as_deref());
        let network = page_network(&plan, &summary.arena, dir);
        let changes = path_changes(&plan, &summary, &chart_data);
        let scenario_toml = plan.resolved;
        Ok(Self { summary, chart_data, changes, scenario_toml, command, network, sounds: None })
    }

    /// The content of the page.
    fn page(&self) -> Page<'_> {
        Page {
            summary: &self.summary,
            chart_data: &self.chart_data,
            scenario_toml: &self.scenario_toml,
            command: &self.command,
            changes: &self.changes,
            network: self.network.as_ref(),
            sounds: self.sounds.as_ref(),
        }
    }

    /// Writes the page to `target`, and the figures as SVG files into the folder `figures`. `None` leaves
    /// either out.
    fn write(
        &self,
        target: Option<&Path>,
        figures: Option<&Path>,
        terminal: Terminal,
    ) -> Result<(), Failure> {
        let page = self.page();
        if let Some(target) = target {
            write_named_bytes(target, html(&page).as_bytes())?;
            terminal.result(&format!("Report: {}\n", target.display()))?;
        }
        let Some(folder) = figures else { return Ok(()) };
        fs::create_dir_all(folder).map_err(|why| Failure::write(folder, why))?;
        let files = chart_files(&page);
        for ChartFile { name, svg } in &files {
            write_bytes(&folder.join(format!("{name}.svg")), svg.as_bytes())?;
        }
        terminal.result(&format!("{}: {}\n", counted(files.len(), "figure"), folder.display()))
    }
}

/// Joins several runs into one that shows them side by side, each with a label of its own.
fn join_runs(dirs: &[RunDir], arenas: &dyn Arenas, terminal: Terminal) -> Result<StoredRun, Failure> {
    let runs: Vec<StoredRun> =
        dirs.iter().map(|dir| StoredRun::read(dir, arenas, terminal)).collect::<Result<_, _>>()?;
    let summaries: Vec<&Summary> = runs.iter().map(|run| &run.summary).collect();
    let parts = runs.iter().zip(labels::labels(&summaries, dirs)).map(|(run, label)| RunPart {
        label,
        summary: run.summary.clone(),
        chart_data: run.chart_data.clone(),
    });
    let scenarios: Vec<&str> = runs.iter().map(|run| run.scenario_toml.as_str()).collect();
    let commands: Vec<&str> = runs.iter().map(|run| run.command.as_str()).collect();
    let Some((summary, chart_data)) = side_by_side(&parts.collect::<Vec<_>>()) else {
        return Err(Failure::Usage("no run directory to report".to_owned()));
    };
    Ok(StoredRun {
        summary,
        chart_data,
        // A cell of one run has another number beside other runs.
        changes: Vec::new(),
        scenario_toml: scenarios.join("\n"),
        command: commands.join("\n"),
        network: None,
        sounds: None,
    })
}

/// Reads one repetition of each cell from the record files of `dir`. `drawn` has the repetition of each cell.
pub(super) fn stored_records(dir: &RunDir, drawn: &BTreeMap<u64, u64>) -> Result<Vec<RunRecord>, Failure> {
    let (packets_path, series_path) = (dir.file(PACKETS), dir.file(SERIES));
    let packets = rows(&packets_path, read_packets)?.into_iter().flatten().filter(|row| match row {
        Ok(PacketRow { cell, repetition, .. }) => drawn.get(cell) == Some(repetition),
        Err(_) => true,
    });
    let series = rows(&series_path, read_series)?.into_iter().flatten().filter(|row| match row {
        Ok(SeriesRow { cell, repetition, .. }) => drawn.get(cell) == Some(repetition),
        Err(_) => true,
    });
    restore_runs(packets, series)
        .map_err(|why| Failure::Usage(format!("cannot read the records in {}: {why}", dir.path().display())))
}

/// Opens a record file, or returns `None` if the run kept no such file.
fn rows<T>(path: &Path, read: impl Fn(File) -> Result<T, RecordError>) -> Result<Option<T>, Failure> {
    let found = find_file(path).map_err(|why| Failure::read(path, &why))?;
    let unreadable = |why| Failure::Usage(format!("cannot read {}: {why}", path.display()));
    found.map(|file| read(file).map_err(unreadable)).transpose()
}

/// Draws a repetition. Facts that the record files leave out come from the summary and from the scenario.
fn draw(run: &mut RunRecord, plan: &Plan, summary: &Summary) -> CellChartData {
    let cell = plan.cell(run.cell);
    let run_summary =
        summary.runs.iter().find(|known| (known.cell, known.repetition) == (run.cell, run.repetition));
    if let Some(Cell { scenario, .. }) = cell {
        run.window_start = Instant::ZERO.saturating_add(scenario.warm_up);
        run.window_end = Instant::ZERO.saturating_add(scenario.duration);
    }
    let groups: BTreeMap<&str, &str> = cell
        .iter()
        .flat_map(|cell| &cell.scenario.flows)
        .map(|flow| (flow.name.as_str(), flow.group.as_str()))
        .collect();
    for flow in &mut run.flows {
        if let Some(group) = groups.get(flow.info.name.as_str()) {
            (*group).clone_into(&mut flow.info.group);
        }
        let flow_summary = run_summary.and_then(|run: &RunSummary| run.flows.get(&flow.info.name));
        flow.info.clock_trusted = has_trusted_clock(summary, flow_summary.map(Box::as_ref));
        if let Some(figures) = flow_summary {
            flow.info.transport.clone_from(&figures.transport);
        }
    }
    cell_chart_data(run, cell.map_or("", |cell| &cell.label))
}

/// Returns whether one-way figures of a flow may be shown. The summary describes the clock of its worst
/// repetition. A repetition with a better clock is recognised by its one-way delays, which only a trusted
/// clock gives.
pub(super) fn has_trusted_clock(summary: &Summary, flow: Option<&FlowSummary>) -> bool {
    summary.clock.trusted || flow.is_some_and(|flow| flow.one_way_delay_ms.is_some())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use talkpath_fixtures::summary;
    use talkpath_measure::metrics::histogram::delay_ms;
    use talkpath_units::{Histogram, SignedDuration};

    use super::*;
    use talkpath_experiment::part::SUMMARY;

    #[test]
    fn a_repetition_with_one_way_delays_had_a_trusted_clock_whatever_the_worst_one_had() {
        let mut summary = summary(Vec::new(), 0);
        let mut delays = Histogram::new();
        delays.record(SignedDuration::from_nanos(30_000_000));
        let of = |one_way_delay_ms| FlowSummary { one_way_delay_ms, ..FlowSummary::default() };
        let flows = [Some(of(delay_ms(&delays))), Some(of(None)), None];
        let trusts =
            |summary: &Summary| flows.each_ref().map(|flow| has_trusted_clock(summary, flow.as_ref()));
        assert_eq!(trusts(&summary), [true; 3]);
        summary.clock.trusted = false;
        assert_eq!(trusts(&summary), [true, false, false]);
    }

    #[test]
    fn a_page_is_not_written_over_one_with_figures_that_no_row_can_give_again() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(SCENARIO), "").unwrap();
        let dir = RunDir::open(folder.path()).unwrap();
        let page = dir.file(REPORT);
        assert!(refuse_lossy_page(&dir, &page).is_ok(), "there is no page yet");
        fs::write(&page, "").unwrap();
        let why = refuse_lossy_page(&dir, &page).unwrap_err().to_string();
        assert!(why.contains("--records summary or none") && why.contains("-o FILE"), "{why}");
        fs::write(dir.file(PACKETS), "").unwrap();
        assert!(refuse_lossy_page(&dir, &page).is_ok());
    }

    #[test]
    fn rows_behind_a_link_that_leads_nowhere_are_an_error_and_not_a_run_without_rows() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(SCENARIO), "").unwrap();
        let text = format!(r#"{{ "talkpath": "{}", "arena": "sim" }}"#, env!("CARGO_PKG_VERSION"));
        fs::write(folder.path().join(SUMMARY), text).unwrap();
        let dir = RunDir::open(folder.path()).unwrap();
        assert!(needs_new_run(&dir).unwrap(), "there are none");
        let rows = dir.file(PACKETS);
        for (target, why) in [(rows.clone(), "symbolic links"), (dir.file("gone"), "not there")] {
            symlink(target, &rows).unwrap();
            let message = needs_new_run(&dir).unwrap_err().to_string();
            assert!(message.starts_with(&format!("cannot read {}: ", rows.display())), "{message}");
            assert!(message.contains(why), "{message}");
            fs::remove_file(&rows).unwrap();
        }
    }
}
