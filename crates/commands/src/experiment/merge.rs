//! All finished repetitions of a run become its files, in the plan's order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use talkpath_measure::ClockRecord;
use talkpath_measure::chart_data::CellFigures;
use talkpath_measure::metrics::histogram;
use talkpath_measure::record_file::{merge_packets, merge_series};
use talkpath_measure::summarise::cell_summaries;
use talkpath_measure::summary::{Clock, Provenance, RunSummary, SUMMARY_FORMAT, Summary, Understood};
use talkpath_measure::warning;
use talkpath_report::{Page, comparisons, html};
use talkpath_scenario::{Cell, Plan};

use crate::args::{ArenaKind, Records};
use crate::failure::Failure;
use crate::network::page_network;
use crate::part::{
    ARRIVALS, CAPTURES, Fresh, LOG, PACKETS, PART, Part, REPORT, SERIES, SUMMARY, named, unwritten,
};
use crate::resumable::Resumable;
use crate::run_dir::{PartId, RunDir, SCENARIO, open_file, own_folder, read_json, write_bytes, write_whole};
use crate::stopwatch::Stopwatch;
use crate::summary_file::write_summary;
use crate::thresholds;

/// What makes one run of finished repetitions.
pub(crate) struct Merging<'a> {
    pub(crate) plan: &'a Plan,
    /// What its thresholds are held against: without what was added to it during the run.
    pub(crate) demanded: &'a Plan,
    /// How the run was started.
    pub(crate) begun: &'a Resumable,
    pub(crate) jobs: usize,
    pub(crate) watch: &'a Stopwatch,
    /// Why repetitions are missing, if one knows.
    pub(crate) failure: Option<&'a Failure>,
    /// Whether the folders hold the rows of every repetition that the run is to have rows of.
    pub(crate) has_rows: bool,
    pub(crate) provenance: Provenance,
}

/// What came of it.
pub(crate) struct Merged {
    pub(crate) summary: Summary,
    /// Whether every repetition is there.
    pub(crate) is_whole: bool,
    /// What could not be written; the summary is right all the same.
    pub(crate) unwritten: Option<Failure>,
}

impl Merging<'_> {
    /// Puts the parts that the folders `from` hold, and the `fresh` ones, together into the files of `dir`,
    /// in the plan's order. Each file is tried also where one before it could not be written.
    pub(crate) fn finish(&self, dir: &RunDir, from: &[&RunDir], mut fresh: Fresh) -> Result<Merged, Failure> {
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
        let mut parts = Vec::with_capacity(ids.len());
        for at in &ids {
            let part = match (fresh.remove(at), folders.get(at)) {
                (Some(part), _) => part,
                (None, Some(folder)) => read_json::<Part>(&folder.join(PART))?,
                (None, None) => continue,
            };
            parts.push(self.placed(part));
        }
        let missing = missing(self.plan, &ids);
        // Nothing else needs the text: a run of many repetitions holds it no longer.
        let log: Vec<String> = parts.iter_mut().map(|part| mem::take(&mut part.log)).collect();
        let drawn: Vec<CellFigures> = parts.iter_mut().filter_map(|part| part.figures.take()).collect();
        let summary = self.summary(parts, &missing)?;
        let rows = if self.has_rows { self.merge_records(dir, &folders) } else { Ok(()) };
        let page = page_text(dir, self.plan, &summary, &drawn, self.begun);
        let written = [
            rows,
            keep_apart(dir, &folders, ARRIVALS),
            keep_apart(dir, &folders, CAPTURES),
            write_log(dir, &log),
            self.write_summary(dir, &summary),
            write_bytes(&dir.file(REPORT), page.as_bytes()),
        ];
        let unwritten = written.into_iter().find_map(Result::err);
        Ok(Merged { summary, is_whole: missing.is_empty(), unwritten })
    }

    fn write_summary(&self, dir: &RunDir, summary: &Summary) -> Result<(), Failure> {
        let path = dir.file(SUMMARY);
        write_whole(&path, |out| {
            write_summary(summary, self.jobs, out).map_err(|why| Failure::write(&path, why))
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

    fn merge_records(
        &self,
        dir: &RunDir,
        folders: &BTreeMap<(PartId, bool), PathBuf>,
    ) -> Result<(), Failure> {
        let records = self.begun.records()?;
        let parts = |name: &'static str| folders.values().map(move |folder| open_part(folder, name));
        if records >= Records::All {
            let path = dir.file(PACKETS);
            write_whole(&path, |writer| {
                merge_packets(parts(PACKETS), writer).map_err(|why| unwritten(&path, why))
            })?;
        }
        if records >= Records::Summary {
            let path = dir.file(SERIES);
            write_whole(&path, |writer| {
                merge_series(parts(SERIES), writer).map_err(|why| unwritten(&path, why))
            })?;
        }
        Ok(())
    }

    fn summary(&self, parts: Vec<Part>, missing: &[PartId]) -> Result<Summary, Failure> {
        let Self { plan, begun, watch, failure, .. } = *self;
        let valid = parts.iter().all(|part| part.valid) && missing.is_empty() && failure.is_none();
        let clock = worst_clock(&parts);
        let mut warnings = warnings(plan, &parts);
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
            cells: cell_summaries(&runs),
            runs,
            comparisons: Vec::new(),
            thresholds: Vec::new(),
            provenance: Some(self.provenance.clone()),
            understood: Understood {
                traces: plan.understood.traces.clone(),
                losses: plan.understood.losses.clone(),
                fragments: plan.understood.fragments.clone(),
                // A plan that has grown has every default written out.
                assumed_queues: self.demanded.understood.assumed_queues.clone(),
            },
        };
        summary.comparisons = comparisons(&summary);
        summary.thresholds = thresholds::judge(self.demanded, &summary);
        Ok(summary)
    }
}

/// Writes log.txt of what each part has of it.
fn write_log(dir: &RunDir, parts: &[String]) -> Result<(), Failure> {
    let path = dir.file(LOG);
    write_whole(&path, |out| {
        let written = parts.iter().try_for_each(|part| out.write_all(part.as_bytes()));
        written.map_err(|why| Failure::write(&path, why))
    })
}

/// Arrival logs and captures are not merged: each stands for itself, under its repetition's name.
fn keep_apart(dir: &RunDir, folders: &BTreeMap<(PartId, bool), PathBuf>, name: &str) -> Result<(), Failure> {
    for ((id, _), part) in folders {
        let log = part.join(name);
        if log.is_file() {
            let folder = dir.file(name);
            own_folder(&folder)?;
            fs::create_dir_all(&folder).map_err(|why| Failure::write(&folder, why))?;
            let target = folder.join(id.file_name());
            let mut source = open_file(&log).map_err(|why| Failure::read(&log, &why))?;
            write_whole(&target, |out| {
                io::copy(&mut source, out).map(drop).map_err(|why| Failure::write(&target, why))
            })?;
        }
    }
    Ok(())
}

fn open_part(folder: &Path, name: &str) -> io::Result<File> {
    open_file(&folder.join(name))
}

/// The repetitions in hand as a summary, to see what they say so far.
pub(super) fn so_far(plan: &Plan, kept: &Fresh) -> Summary {
    let sweep = |cell: u64| plan.cell(cell).map(|cell| Arc::clone(&cell.sweep).into());
    let run = |part: &Part| {
        let run = part.summary.clone();
        RunSummary { sweep: sweep(run.cell).unwrap_or_default(), ..run }
    };
    let runs: Vec<RunSummary> = kept.values().map(run).collect();
    Summary {
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
        cells: cell_summaries(&runs),
        runs,
        comparisons: Vec::new(),
        thresholds: Vec::new(),
        provenance: None,
        understood: Understood::default(),
    }
}

/// If no rows are kept, the simulator keeps none in memory either; a real-time arena has them anyway.
fn percentiles(begun: &Resumable) -> Result<&'static str, Failure> {
    let keeps_rows = begun.records()? >= Records::All || begun.exact || begun.arena()? != ArenaKind::Sim;
    Ok(if keeps_rows { "exact" } else { histogram::PERCENTILES })
}

/// The file's warnings, then the repetitions'.
fn warnings(plan: &Plan, parts: &[Part]) -> Vec<String> {
    let of_file =
        plan.warnings.iter().map(|warning| format!("{SCENARIO}: {}: {}", warning.key, warning.message));
    let of_parts: Vec<_> = parts
        .iter()
        .map(|part| {
            let RunSummary { cell, repetition, .. } = part.summary;
            let label = label(plan, cell);
            let name = match (label.is_empty(), plan.repeat > 1) {
                (true, _) => format!("repetition {repetition}"),
                (false, false) => label.to_owned(),
                (false, true) => format!("{label}, repetition {repetition}"),
            };
            (name, part.warnings.as_slice())
        })
        .collect();
    of_file.chain(gathered(&of_parts, &copies(plan))).collect()
}

/// The copies of the plan's flows, each with its flow's name in the file.
fn copies(plan: &Plan) -> BTreeMap<&str, &str> {
    let flows = plan.cells.iter().flat_map(|cell| &cell.scenario.flows);
    let names = flows.map(|flow| (flow.name.as_str(), flow.group.as_str()));
    names.filter(|(name, group)| name != group).collect()
}

/// A warning that repetitions and copies have in common.
struct Gathered<'a> {
    pieces: Pieces,
    /// The repetitions that warn, in order.
    names: Vec<&'a str>,
    /// The copies that it is about, if it is about copies, and their flow.
    copies: BTreeSet<&'a str>,
    of: &'a str,
    /// The largest last number, and whose it is.
    worst: (f64, &'a str),
}

/// Each warning once, in the order in which they first came. Warnings that differ in their numbers alone, or
/// in the copy of a flow that they are about, are one, with the range of each number. What only some
/// repetitions warn of says which, or how many.
fn gathered(parts: &[(String, &[String])], copies: &BTreeMap<&str, &str>) -> Vec<String> {
    let mut found: Vec<Gathered<'_>> = Vec::new();
    for (name, warning) in parts.iter().flat_map(|(name, of)| of.iter().map(move |it| (name, it))) {
        let copy = named_flow(warning).and_then(|copy| Some((copy, *copies.get(copy)?)));
        let pieces = match copy {
            Some((copy, group)) => Pieces::of(&renamed(warning, copy, group)),
            None => Pieces::of(warning),
        };
        let last = pieces.last();
        let (copy, of) = copy.unwrap_or_default();
        let at = found.iter().position(|it| it.of == of && it.pieces.words == pieces.words);
        let entry = match at {
            Some(at) => {
                found[at].pieces.widen(&pieces);
                &mut found[at]
            }
            None => {
                let (names, copies) = (Vec::new(), BTreeSet::new());
                found.push(Gathered { pieces, names, copies, of, worst: (f64::NEG_INFINITY, copy) });
                let newest = found.len() - 1;
                &mut found[newest]
            }
        };
        if entry.names.last() != Some(&name.as_str()) {
            entry.names.push(name);
        }
        entry.copies.insert(copy);
        if last > entry.worst.0 {
            entry.worst = (last, copy);
        }
    }
    let all = |group: &str| copies.values().filter(|it| **it == group).count();
    let told = |Gathered { pieces, names, copies, of, worst }: Gathered<'_>| {
        let text = match (of, copies.len()) {
            ("", _) => pieces.text(),
            (_, 1) => renamed(&pieces.text(), of, worst.1),
            (_, count) if worst.0.is_finite() => {
                format!("{} (in {count} of {} copies, worst {})", pieces.text(), all(of), worst.1)
            }
            (_, count) => format!("{} (in {count} of {} copies)", pieces.text(), all(of)),
        };
        match names[..] {
            [name] if parts.len() > 1 => format!("{text} ({name})"),
            _ if names.len() < parts.len() => {
                format!("{text} ({} of {} repetitions)", names.len(), parts.len())
            }
            _ => text,
        }
    };
    found.into_iter().map(told).collect()
}

/// The flow that a warning is about: `flow call-3: ...`.
fn named_flow(warning: &str) -> Option<&str> {
    let (_, after) = warning.split_once(FLOW)?;
    after.split_once(": ").map(|(name, _)| name)
}

/// The warning with another name in place of that of its flow.
fn renamed(warning: &str, name: &str, other: &str) -> String {
    warning.replacen(&format!("{FLOW}{name}: "), &format!("{FLOW}{other}: "), 1)
}

/// What stands before a flow's name in a warning.
const FLOW: &str = "flow ";

/// A text in words, and the numbers between them: each as its smallest and its largest.
struct Pieces {
    words: Vec<String>,
    numbers: Vec<(String, String)>,
}

impl Pieces {
    /// A number stands by itself: digits with at most one point within, no part of a word.
    fn of(text: &str) -> Self {
        let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | ':' | '-' | '/');
        let (mut words, mut numbers, mut from, mut at) = (Vec::new(), Vec::new(), 0, 0);
        while let Some(length) = text[at..].find(|c: char| !is_inner(c)).or(Some(text.len() - at)) {
            // A point at the end belongs to the sentence.
            let number = text[at..at + length].trim_end_matches(['.', ':']);
            let is_number = number.parse::<f64>().is_ok() && number.starts_with(|c: char| c.is_ascii_digit());
            if is_number && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
                words.push(text[from..at].to_owned());
                numbers.push((number.to_owned(), number.to_owned()));
                from = at + number.len();
            }
            at += length;
            let Some(next) = text[at..].chars().next() else { break };
            at += next.len_utf8();
        }
        words.push(text[from..].to_owned());
        Self { words, numbers }
    }

    fn widen(&mut self, other: &Self) {
        let value = |text: &str| text.parse::<f64>().unwrap_or(0.0);
        for ((least, most), (low, high)) in self.numbers.iter_mut().zip(&other.numbers) {
            if value(low) < value(least) {
                least.clone_from(low);
            }
            if value(high) > value(most) {
                most.clone_from(high);
            }
        }
    }

    /// The last number: of a percentile or a count it is how bad it is.
    fn last(&self) -> f64 {
        let value = |(_, most): &(String, String)| most.parse().ok();
        self.numbers.last().and_then(value).unwrap_or(f64::NEG_INFINITY)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (index, word) in self.words.iter().enumerate() {
            text.push_str(word);
            match self.numbers.get(index) {
                Some((least, most)) if least == most => text.push_str(least),
                Some((least, most)) => text.push_str(&format!("{least} to {most}")),
                None => {}
            }
        }
        text
    }
}

/// What distinguishes a cell from the others; empty if there is only one cell.
fn label(plan: &Plan, cell: u64) -> &str {
    plan.cell(cell).map_or("", |it| it.label.as_str())
}

/// One run has one clock entry: an untrusted one speaks for all, else the least certain.
fn worst_clock(parts: &[Part]) -> Clock {
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
pub(crate) fn missing(plan: &Plan, parts: &BTreeSet<(PartId, bool)>) -> Vec<PartId> {
    let of_cell = |cell: &Cell| {
        let cell = cell.index;
        (0..plan.repeat).map(move |repetition| PartId { cell, repetition })
    };
    plan.cells.iter().flat_map(of_cell).filter(|id| !parts.contains(&(*id, false))).collect()
}

fn missing_warning(plan: &Plan, missing: &[PartId], failure: Option<&Failure>) -> String {
    let name = |id: &PartId| {
        let label = label(plan, id.cell);
        let cell = if label.is_empty() { String::new() } else { format!("{label} ") };
        format!("{cell}repetition {}", id.repetition)
    };
    let named = named(missing.iter().map(name));
    let why = failure.map_or(String::new(), |failure| {
        format!(" ({})", failure.to_string().lines().next().unwrap_or_default())
    });
    let all = plan.cells.len() as u64 * plan.repeat;
    format!("{} of {all} repetitions are missing or cut short{why}: {named}", missing.len())
}

/// If nothing random affects a cell, its repetitions are identical, and an interval over them would suggest
/// certainty. Of some cells of a sweep it is a note: the others vary. Cells in which nothing was delivered
/// have no figures that could be equal, and are left out.
fn alike_warning(runs: &[RunSummary]) -> Option<String> {
    let mut by_cell: BTreeMap<u64, Vec<&RunSummary>> = BTreeMap::new();
    runs.iter().for_each(|run| by_cell.entry(run.cell).or_default().push(run));
    by_cell.retain(|_, runs| runs.iter().any(|run| has_figures(run)));
    let same = |a: &RunSummary, b: &RunSummary| (&a.flows, &a.links) == (&b.flows, &b.links);
    let all_alike = |runs: &[&RunSummary]| runs.len() > 1 && runs.iter().all(|run| same(run, runs[0]));
    let sweeps: Vec<(&BTreeMap<String, Value>, bool)> =
        by_cell.values().map(|runs| (&*runs[0].sweep, all_alike(runs))).collect();
    let alike = sweeps.iter().filter(|(_, is_alike)| *is_alike).count();
    if alike == 0 {
        return None;
    }
    if alike == sweeps.len() {
        return Some(
            "all repetitions are the same: nothing random touched them, and intervals over them say nothing; \
             give a flow `start = { from = \"0 s\", to = \"1 s\" }` or `send_jitter` to see how much hangs on chance"
                .to_owned(),
        );
    }
    Some(warning::note(format!(
        "the repetitions of {} are the same, because nothing random happens there: their intervals have no width. \
         `--set 'flow.*.start={{ from = \"0 s\", to = \"1 s\" }}'` varies them.",
        alike_cells(&sweeps, alike)
    )))
}

/// Whether any message of any flow was delivered.
fn has_figures(run: &RunSummary) -> bool {
    run.flows.values().any(|flow| flow.received > 0) || run.groups.values().any(|group| group.received > 0)
}

/// The cells of `sweeps` that are alike: `all cells with path.*.loss=0`, `3 of the 6 cells with
/// path.*.loss=0`, or `3 of 12 cells`.
fn alike_cells(sweeps: &[(&BTreeMap<String, Value>, bool)], alike: usize) -> String {
    let pairs = sweeps.iter().find(|(_, is_alike)| *is_alike).into_iter().flat_map(|(sweep, _)| *sweep);
    let counted = pairs.filter_map(|(key, value)| {
        let with = || sweeps.iter().filter(|(sweep, _)| sweep.get(key) == Some(value));
        let holds =
            with().filter(|(_, is_alike)| *is_alike).count() == alike && with().count() < sweeps.len();
        holds.then(|| (with().count(), key, value))
    });
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match counted.min_by_key(|(count, ..)| *count) {
        Some((count, key, only)) if count == alike => format!("all cells with {key}={}", value(only)),
        Some((count, key, only)) => format!("{alike} of the {count} cells with {key}={}", value(only)),
        None => format!("{alike} of {} cells", sweeps.len()),
    }
}

fn page_text(
    dir: &RunDir,
    plan: &Plan,
    summary: &Summary,
    figures: &[CellFigures],
    begun: &Resumable,
) -> String {
    let command = begun.command(&dir.file(SCENARIO));
    let network = page_network(plan, &summary.arena, dir);
    html(&Page {
        summary,
        figures,
        scenario_toml: &plan.resolved,
        command: &command,
        network: network.as_ref(),
    })
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::FlowSummary;

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
        let folders = BTreeMap::from([((PartId { cell: 0, repetition: 0 }, false), part)]);
        keep_apart(&dir, &folders, ARRIVALS).unwrap();
        assert_eq!([&target, &opened].map(|path| fs::read_to_string(path).unwrap()), ["new", "old"]);
    }

    #[test]
    fn what_one_repetition_warns_of_is_named_after_it_and_what_several_do_is_told_once() {
        let (late, ignored) = ("sent late: p99 2 ms".to_owned(), "mss is ignored".to_owned());
        let (both, one) = ([ignored.clone(), late.clone()], [ignored.clone()]);
        let parts = [("transport = udp".to_owned(), &one[..]), ("transport = tcp".to_owned(), &both[..])];
        assert_eq!(
            gathered(&parts, &BTreeMap::new()),
            [ignored.as_str(), "sent late: p99 2 ms (transport = tcp)"]
        );
        assert_eq!(gathered(&parts[1..], &BTreeMap::new()), [ignored, late], "alone it needs no name");
    }

    #[test]
    fn warnings_that_differ_in_their_numbers_alone_are_one_with_ranges() {
        let held = |p99: &str, count| {
            vec![format!("flow a-1: the far host held its {count} echoes for p99 {p99} ms.")]
        };
        let all = [held("1.25", 100), held("10.5", 99), vec![], held("2.0", 100)];
        let parts: Vec<_> =
            (0..).zip(&all).map(|(at, of): (u64, _)| (format!("repetition {at}"), &of[..])).collect();
        let told =
            "flow a-1: the far host held its 99 to 100 echoes for p99 1.25 to 10.5 ms. (3 of 4 repetitions)";
        assert_eq!(gathered(&parts, &BTreeMap::new()), [told]);
        let other = ["stream 1 of 10.0.0.1:80 é".to_owned(), "stream 2 of 10.0.0.2:80 é".to_owned()];
        assert_eq!(gathered(&[(String::new(), &other)], &BTreeMap::new()), other, "an address is no number");
    }

    #[test]
    fn what_many_copies_of_a_flow_warn_of_is_one_line_with_the_worst() {
        let names: Vec<String> = (1..=700).map(|copy| format!("call-{copy}")).collect();
        let copies: BTreeMap<&str, &str> = names.iter().map(|name| (name.as_str(), "call")).collect();
        let of = |(name, late): (&String, u64)| {
            format!("invalid: emu: flow {name}: held its echoes for p99 {late} ms")
        };
        let late: Vec<u64> = (0..700).map(|copy| if copy == 16 { 900 } else { 1 + copy % 7 }).collect();
        let mut warnings: Vec<String> = names.iter().zip(late).map(of).collect();
        warnings.push("flow call-3: its file is not intact".to_owned());
        let told = gathered(&[("repetition 0".to_owned(), &warnings)], &copies);
        assert_eq!(
            told,
            [
                "invalid: emu: flow call: held its echoes for p99 1 to 900 ms (in 700 of 700 copies, worst call-17)",
                "flow call-3: its file is not intact"
            ]
        );
    }

    #[test]
    fn cells_whose_repetitions_are_all_the_same_are_named() {
        let run = |cell, repetition, received, loss: f64, delay: &str| RunSummary {
            cell,
            repetition,
            seed: repetition,
            sweep: [("path.*.loss".to_owned(), loss.into()), ("path.*.delay".to_owned(), delay.into())]
                .into(),
            flows: [("call".to_owned(), Box::new(FlowSummary { received, ..FlowSummary::default() }))].into(),
            groups: BTreeMap::new(),
            links: BTreeMap::new(),
            machine: None,
        };
        let alike = |cell, loss, delay: &str| [run(cell, 0, 50, loss, delay), run(cell, 1, 50, loss, delay)];
        let varied = |cell, loss, delay: &str| [run(cell, 0, 49, loss, delay), run(cell, 1, 48, loss, delay)];
        let begins = |runs: &[[RunSummary; 2]], text: &str| {
            let told = alike_warning(&runs.concat()).expect("some are the same");
            assert!(told.starts_with(text), "{told}");
        };
        begins(&[alike(0, 0.0, "1ms")], "all repetitions are the same:");
        begins(
            &[alike(0, 0.0, "1ms"), alike(1, 0.0, "2ms"), varied(2, 0.1, "1ms"), varied(3, 0.1, "2ms")],
            "note: the repetitions of all cells with path.*.loss=0.0 are the same, ",
        );
        begins(
            &[alike(0, 0.0, "1ms"), varied(1, 0.0, "1ms"), varied(2, 0.1, "1ms")],
            "note: the repetitions of 1 of the 2 cells with path.*.loss=0.0 are the same, ",
        );
        begins(
            &[alike(0, 0.0, "1ms"), alike(1, 0.1, "2ms"), varied(2, 0.1, "1ms")],
            "note: the repetitions of 2 of 3 cells are the same, ",
        );
        // What delivered nothing is the same, too, and is neither counted nor named.
        let silent = |cell, loss, delay: &str| [run(cell, 0, 0, loss, delay), run(cell, 1, 0, loss, delay)];
        begins(
            &[alike(0, 0.0, "1ms"), silent(1, 1.0, "1ms"), varied(2, 0.1, "1ms")],
            "note: the repetitions of all cells with path.*.loss=0.0 are the same, ",
        );
        assert_eq!(alike_warning(&[silent(0, 1.0, "1ms"), silent(1, 1.0, "2ms")].concat()), None);
        assert_eq!(alike_warning(&[silent(0, 1.0, "1ms"), varied(1, 0.1, "1ms")].concat()), None);
        assert_eq!(alike_warning(&varied(1, 0.1, "1ms")), None);
        assert_eq!(alike_warning(&alike(0, 0.0, "1ms")[..1]), None, "one repetition has no interval");
    }
}
