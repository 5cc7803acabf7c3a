//! `talkpath report`: the page again, from what a run directory holds.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{self, Path, PathBuf};

use talkpath_measure::RunRecord;
use talkpath_measure::chart_data::{CellFigures, figures};
use talkpath_measure::record_file::{
    PacketRow, RecordError, SeriesRow, read_packets, read_series, restore_runs,
};
use talkpath_measure::summary::{FlowSummary, RunSummary, Summary};
use talkpath_report::{Network, Page, RunPart, figure_files, html, side_by_side};
use talkpath_scenario::{Cell, Options, Plan};
use talkpath_units::{Instant, counted};

use crate::again::{Repetitions, is_repeatable};
use crate::arenas::Arenas;
use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::network::page_network;
use crate::output_file::{refuse_records, write_named_bytes};
use crate::page::command_again;
use crate::scenario_file::load_file;
use crate::summary_file::{head_of, read_summary};
use crate::terminal::Terminal;
use talkpath_experiment::part::{PACKETS, REPORT, SERIES, is_drawn};
use talkpath_experiment::resumable::resumable;
use talkpath_experiment::run_dir::{PartId, RunDir, SCENARIO};
use talkpath_experiment::store::whole::{find_file, write_bytes};

/// Writes one page a run directory, or with `-o` one page that lays them all side by side.
pub fn run(args: &ReportArgs, arenas: &dyn Arenas, terminal: Terminal) -> Result<(), Failure> {
    let dirs: Vec<RunDir> = args.runs.iter().map(|path| RunDir::open(path)).collect::<Result<_, _>>()?;
    if let Some(target) = &args.output
        && let Some(ending) = target.extension().and_then(OsStr::to_str)
        && !["html", "htm"].iter().any(|it| ending.eq_ignore_ascii_case(it))
    {
        return Err(Failure::Usage(format!(
            "-o {}: a report is a page in HTML, not .{ending}: name it .html, and print it to PDF from a browser",
            target.display()
        )));
    }
    if let Some(target) = &args.output {
        let given: Vec<&Path> = dirs.iter().map(RunDir::path).collect();
        refuse_records("-o", target, &given, Some(REPORT))?;
        let mut over = dirs.iter().filter(|dir| same_file(&dir.file(REPORT), target));
        over.try_for_each(|dir| loses_nothing(dir, &dir.file(REPORT)))?;
    }
    if let (Some(target), 2..) = (&args.output, dirs.len()) {
        return several(&dirs, arenas, terminal)?.write(Some(target), args.figures.as_deref(), terminal);
    }
    if let (Some(folder), 2..) = (&args.figures, dirs.len()) {
        return Err(Failure::Usage(format!(
            "--figures {}: the figures of several runs have the same names; give -o for one page with all of them, \
             or one run directory",
            folder.display()
        )));
    }
    for dir in &dirs {
        let run = StoredRun::read(dir, arenas, terminal)?;
        let page = dir.file(REPORT);
        let target = match (&args.output, loses_nothing(dir, &page)) {
            (Some(target), _) => Some(target.clone()),
            (None, Ok(())) => Some(page),
            // The figures alone were asked for: the page stays.
            (None, Err(_)) if args.figures.is_some() => None,
            (None, Err(why)) => return Err(why),
        };
        run.write(target.as_deref(), args.figures.as_deref(), terminal)?;
    }
    Ok(())
}

/// Whether both paths lead to one file that is there.
fn same_file(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).is_ok_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}

/// Whether `dir` has the rows of its messages.
///
/// # Errors
/// Something has their name, and cannot be opened.
fn has_rows(dir: &RunDir) -> Result<bool, Failure> {
    let path = dir.file(PACKETS);
    let found = find_file(&path).map_err(|why| Failure::read(&path, &why))?;
    Ok(found.is_some())
}

/// Whether the rows of `dir` are not there and can be had by running it again.
fn is_made_again(dir: &RunDir) -> Result<bool, Failure> {
    Ok(!has_rows(dir)? && head_of(dir).is_ok_and(|head| is_repeatable(&head).is_ok()))
}

/// The repetition that is `drawn` of each cell, run again.
fn drawn_again(
    dir: &RunDir,
    drawn: &BTreeMap<u64, u64>,
    arenas: &dyn Arenas,
) -> Result<Vec<CellFigures>, Failure> {
    let mut again = Repetitions::open(dir, &dir.file(PACKETS), arenas)?;
    let labels: BTreeMap<u64, String> =
        again.plan().cells.iter().map(|cell| (cell.index, cell.label.clone())).collect();
    let mut made = Vec::new();
    let is_drawn = |id: PartId| drawn.get(&id.cell) == Some(&id.repetition);
    again.each(is_drawn, |record| {
        made.push(figures(&record, labels.get(&record.cell).map_or("", String::as_str)));
        Ok(())
    })?;
    Ok(made)
}

/// Whether the page can be written over the one of the run: that has figures of each message also where the
/// run kept no rows, from which they could be drawn again.
fn loses_nothing(dir: &RunDir, page: &Path) -> Result<(), Failure> {
    if has_rows(dir)? || !page.exists() || is_made_again(dir)? {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{}: there is no {PACKETS} beside it (--records summary or none), and a page made again would lack the \
         distribution of delays and the runs of losses that this one has; -o FILE writes another",
        page.display()
    )))
}

/// What a run directory holds.
struct StoredRun {
    summary: Summary,
    figures: Vec<CellFigures>,
    scenario_toml: String,
    command: String,
    network: Option<Network>,
}

impl StoredRun {
    fn read(dir: &RunDir, arenas: &dyn Arenas, terminal: Terminal) -> Result<Self, Failure> {
        let summary = read_summary(dir, terminal)?;
        let scenario = dir.file(SCENARIO);
        let plan = load_file(&scenario, &Options::default())?;
        let mut drawn = summary.shown_repetitions();
        drawn.retain(|index, _| plan.cell(*index).is_some_and(|cell| is_drawn(&plan, cell)));
        let figures = match is_made_again(dir)? {
            true => drawn_again(dir, &drawn, arenas)?,
            false => runs(dir, &drawn)?.iter_mut().map(|run| draw(run, &plan, &summary)).collect(),
        };
        let to = resumable(dir).ok().and_then(|begun| begun.to);
        let command = command_again(&scenario, &summary.arena, to.as_deref());
        let network = page_network(&plan, &summary.arena, dir);
        Ok(Self { summary, figures, scenario_toml: plan.resolved, command, network })
    }

    /// Writes the page where there is a place for it, and its figures if there is a folder for them.
    fn write(
        &self,
        target: Option<&Path>,
        figures: Option<&Path>,
        terminal: Terminal,
    ) -> Result<(), Failure> {
        let page = Page {
            summary: &self.summary,
            figures: &self.figures,
            scenario_toml: &self.scenario_toml,
            command: &self.command,
            network: self.network.as_ref(),
        };
        if let Some(target) = target {
            write_named_bytes(target, html(&page).as_bytes())?;
            terminal.result(&format!("Report: {}\n", target.display()))?;
        }
        let Some(folder) = figures else { return Ok(()) };
        fs::create_dir_all(folder).map_err(|why| Failure::write(folder, why))?;
        let files = figure_files(&page);
        for (name, svg) in &files {
            write_bytes(&folder.join(format!("{name}.svg")), svg.as_bytes())?;
        }
        terminal.result(&format!("{}: {}\n", counted(files.len(), "figure"), folder.display()))
    }
}

/// The runs as one, each named by what tells it from the others: the arena, the scenario's name, or both;
/// else the part of the directory's name that the others do not share.
fn several(dirs: &[RunDir], arenas: &dyn Arenas, terminal: Terminal) -> Result<StoredRun, Failure> {
    let runs: Vec<StoredRun> =
        dirs.iter().map(|dir| StoredRun::read(dir, arenas, terminal)).collect::<Result<_, _>>()?;
    let labels = labels(&runs, dirs);
    let parts = runs.iter().zip(labels).map(|(run, label)| RunPart {
        label,
        summary: run.summary.clone(),
        figures: run.figures.clone(),
    });
    let joined = |of: &dyn Fn(&StoredRun) -> &str| runs.iter().map(of).collect::<Vec<_>>().join("\n");
    let (scenario_toml, command) = (joined(&|run| &run.scenario_toml), joined(&|run| &run.command));
    let Some((summary, figures)) = side_by_side(&parts.collect::<Vec<_>>()) else {
        return Err(Failure::Usage("no run directory to report".to_owned()));
    };
    Ok(StoredRun { summary, figures, scenario_toml, command, network: None })
}

fn labels(runs: &[StoredRun], dirs: &[RunDir]) -> Vec<String> {
    let arena = |run: &StoredRun| run.summary.arena.clone();
    let name = |run: &StoredRun| run.summary.name.clone();
    let both = |run: &StoredRun| format!("{}, {}", run.summary.name, run.summary.arena);
    let of: [&dyn Fn(&StoredRun) -> String; 3] = [&arena, &name, &both];
    for label in of {
        let labels: Vec<String> = runs.iter().map(label).collect();
        if labels.iter().collect::<BTreeSet<_>>().len() == labels.len() {
            return labels;
        }
    }
    let paths = dirs.iter().map(|dir| path::absolute(dir.path()).unwrap_or_else(|_| dir.path().to_owned()));
    directory_labels(&paths.collect::<Vec<_>>())
}

/// What tells the directories apart: the part of their names that they do not share; of directories with one
/// name, as many of the folders above as it takes.
fn directory_labels(paths: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<String>> = paths
        .iter()
        .map(|path| path.components().map(|it| it.as_os_str().to_string_lossy().into_owned()).collect())
        .collect();
    let names = |depth: usize| -> Vec<String> {
        parts.iter().map(|parts| parts[parts.len().saturating_sub(depth)..].join("/")).collect()
    };
    let are_distinct = |names: &[String]| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let deepest = parts.iter().map(Vec::len).max().unwrap_or(0);
    match (1..=deepest).find(|depth| are_distinct(&names(*depth))) {
        Some(depth @ 2..) => names(depth),
        _ => own_parts(&names(1)),
    }
}

/// The names without the words that all begin or end with.
fn own_parts(names: &[String]) -> Vec<String> {
    let words: Vec<Vec<&str>> = names.iter().map(|name| name.split('-').collect()).collect();
    let shortest = words.iter().map(Vec::len).min().unwrap_or(0);
    let is_shared = |at: &dyn Fn(&Vec<&str>) -> usize| {
        let word = |words: &Vec<&str>| words.get(at(words)).map(|word| (*word).to_owned());
        words.first().is_some_and(|first| words.iter().all(|other| word(other) == word(first)))
    };
    // Each keeps a word of its own.
    let first = (0..shortest.saturating_sub(1)).take_while(|&at| is_shared(&|_| at)).count();
    let room = shortest.saturating_sub(first + 1);
    let last = (0..room).take_while(|&at| is_shared(&|words: &Vec<&str>| words.len() - 1 - at)).count();
    words.iter().map(|words| words[first.min(words.len() - 1)..words.len() - last].join("-")).collect()
}

/// The repetition that is `drawn` of each cell, as far as the record files hold them.
fn runs(dir: &RunDir, drawn: &BTreeMap<u64, u64>) -> Result<Vec<RunRecord>, Failure> {
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

/// The rows of a record file; none if the run kept none.
fn rows<T>(path: &Path, read: impl Fn(File) -> Result<T, RecordError>) -> Result<Option<T>, Failure> {
    let found = find_file(path).map_err(|why| Failure::read(path, &why))?;
    let unreadable = |why| Failure::Usage(format!("cannot read {}: {why}", path.display()));
    found.map(|file| read(file).map_err(unreadable)).transpose()
}

/// Fills in what the record files leave out, from the summary and the scenario, and draws.
fn draw(run: &mut RunRecord, plan: &Plan, summary: &Summary) -> CellFigures {
    let cell = plan.cell(run.cell);
    let of_summary = summary.runs.iter().find(|it| (it.cell, it.repetition) == (run.cell, run.repetition));
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
        let of_flow = of_summary.and_then(|it: &RunSummary| it.flows.get(&flow.info.name));
        flow.info.clock_trusted = has_trusted_clock(summary, of_flow.map(Box::as_ref));
        if let Some(figures) = of_flow {
            flow.info.transport.clone_from(&figures.transport);
        }
    }
    figures(run, cell.map_or("", |cell| &cell.label))
}

/// Whether one-way figures of a flow may be shown. The clock of the summary is that of its worst repetition;
/// a repetition that was trusted has one-way delays.
fn has_trusted_clock(summary: &Summary, flow: Option<&FlowSummary>) -> bool {
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
        assert!(loses_nothing(&dir, &page).is_ok(), "there is none");
        fs::write(&page, "").unwrap();
        let why = loses_nothing(&dir, &page).unwrap_err().to_string();
        assert!(why.contains("--records summary or none") && why.contains("-o FILE"), "{why}");
        fs::write(dir.file(PACKETS), "").unwrap();
        assert!(loses_nothing(&dir, &page).is_ok());
    }

    #[test]
    fn rows_behind_a_link_that_leads_nowhere_are_an_error_and_not_a_run_without_rows() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(SCENARIO), "").unwrap();
        let text = format!(r#"{{ "talkpath": "{}", "arena": "sim" }}"#, env!("CARGO_PKG_VERSION"));
        fs::write(folder.path().join(SUMMARY), text).unwrap();
        let dir = RunDir::open(folder.path()).unwrap();
        assert!(is_made_again(&dir).unwrap(), "there are none");
        let rows = dir.file(PACKETS);
        for (target, why) in [(rows.clone(), "symbolic links"), (dir.file("gone"), "not there")] {
            symlink(target, &rows).unwrap();
            let told = is_made_again(&dir).unwrap_err().to_string();
            assert!(told.starts_with(&format!("cannot read {}: ", rows.display())), "{told}");
            assert!(told.contains(why), "{told}");
            fs::remove_file(&rows).unwrap();
        }
    }

    #[test]
    fn of_directories_with_one_name_the_label_has_the_folder_above() {
        let of = |paths: &[&str]| directory_labels(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["/runs/a/x", "/runs/b/x"]), ["a/x", "b/x"]);
        assert_eq!(of(&["/a/runs/x", "/b/runs/x", "/b/runs/y"]), ["a/runs/x", "b/runs/x", "b/runs/y"]);
        assert_eq!(of(&["/runs/x-monday", "/runs/x-tuesday"]), ["monday", "tuesday"]);
    }

    #[test]
    fn of_several_directories_the_label_is_what_they_do_not_share() {
        let of = |names: &[&str]| own_parts(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let two = ["2026-11-23T06-17-42Z-voice-over-lte", "2026-11-23T06-18-05Z-voice-over-lte"];
        assert_eq!(of(&two), ["17-42Z", "18-05Z"]);
        assert_eq!(of(&["monday", "tuesday"]), ["monday", "tuesday"]);
        assert_eq!(of(&["same", "same"]), ["same", "same"]);
        assert_eq!(of(&["run", "run-2"]), ["run", "run-2"]);
    }
}
