//! A part: what a run directory keeps of one finished repetition.
//!
//! ```text
//! Part          the figures, warnings and log lines: a line of a journal, or part.json in a folder
//! record files  packets.parquet, series.parquet, arrivals and captures: beside part.json if they are large,
//!               else one after the other in a file of the journal (`PartFiles`)
//! ```
//!
//! Begin to read with [`Part::new`], which makes a part, and [`Part::save`], which writes its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use talkpath_measure::chart_data::{CellChartData, cell_chart_data};
use talkpath_measure::log::{log_txt, summarise_transfer};
use talkpath_measure::record_file::{RecordError, write_packets, write_series};
use talkpath_measure::summarise::{remove_figures_of_copies, summarise};
use talkpath_measure::summary::{Clock, FlowSummary, RunSummary};
use talkpath_measure::{RunRecord, warning};
use talkpath_scenario::{Cell, Plan, ThresholdSubject};
use talkpath_units::Instant;

use crate::Error;
use crate::choice::Records;
use crate::run_dir::{PartId, PartKey, RunDir};
use crate::store::whole::{open_file, write_bytes, write_whole};

// The names of files in a run directory, as docs/reference/interface.md promises them.

/// The rows of messages.
pub const PACKETS: &str = "packets.parquet";
/// The points of states over time.
pub const SERIES: &str = "series.parquet";
/// All figures of the run.
pub const SUMMARY: &str = "summary.json";
/// Start, end and counts of every flow, as text.
pub const LOG: &str = "log.txt";
/// What the program of the user printed in each repetition, as text.
pub const PROGRAM: &str = "program.txt";
/// The report.
pub const REPORT: &str = "report.html";
/// The log of arrivals of a part, and the folder with the logs of a whole run.
pub const ARRIVALS: &str = "arrivals";
/// The capture of a part, and the folder with the captures of a whole run.
pub const CAPTURES: &str = "captures";
/// The qlog of a part, and the folder with the qlogs of a whole run.
pub const QLOGS: &str = "qlogs";
/// The figures of one repetition, in the folder of a part.
pub const PART: &str = "part.json";

/// Estimated size of a row in a record file, B: two times and a number. Few rows take more.
const ROW_BYTES: usize = 16;

/// The estimated size above which the record files of a part have a folder, B. We chose 1 MiB, because the
/// cost of a folder is small beside the cost of writing so many bytes.
const MAX_PACKED: usize = 1 << 20;

/// The largest record file without a folder, B. We chose 16 times [`MAX_PACKED`], because [`ROW_BYTES`] is an
/// estimate. The bound exists because a hole in a damaged file must not fill the memory.
const MAX_PACKED_FILE: u64 = 16 << 20;

/// How many repetitions, cells or flows a warning names before it counts the others. We chose 5.
const MAX_NAMED: usize = 5;

/// The largest number of cells of which the page draws every one. We chose 40, because nobody reads more
/// charts, and the tables have all cells.
const MAX_DRAWN: usize = 40;

/// The figures, warnings and log lines of one repetition.
#[derive(Debug, Serialize, Deserialize)]
pub struct Part {
    /// The figures of the repetition.
    pub summary: RunSummary,
    /// How well the hosts' clocks could be compared.
    pub clock: Clock,
    /// Whether the machine kept to its stated limits.
    pub valid: bool,
    /// What makes the figures doubtful, in words for the user.
    pub warnings: Vec<String>,
    /// The names of the flows that sent no message although none was refused.
    #[serde(skip)]
    silent: Vec<String>,
    /// Whether no flow opened a connection, so that nothing was measured.
    #[serde(default)]
    is_closed: bool,
    /// The lines of the repetition in log.txt.
    pub log: String,
    /// What the program of the user printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program_output: String,
    /// The data of the report's charts; `None` if the report does not draw this repetition.
    #[serde(rename = "figures")]
    pub chart_data: Option<CellChartData>,
    /// The record files, if the part has no folder. Empty if it has one.
    #[serde(skip)]
    pub files: PartFiles,
}

/// The record files of one part in a file of the journal, where the record files of many parts follow each
/// other.
#[derive(Clone, Debug, Default)]
pub struct PartFiles {
    journal_file: PathBuf,
    ranges: Vec<FileRange>,
}

/// The position of one record file.
#[derive(Clone, Debug)]
struct FileRange {
    name: String,
    /// Offset in the file of the journal, B.
    from: u64,
    /// Bytes.
    size: u64,
}

impl PartFiles {
    /// Record files that follow each other in `journal_file` from the offset `from` on. `sizes` has the name
    /// and the number of bytes of each.
    pub fn new(journal_file: &Path, mut from: u64, sizes: impl IntoIterator<Item = (String, u64)>) -> Self {
        let mut ranges = Vec::new();
        for (name, size) in sizes {
            ranges.push(FileRange { name, from, size });
            from = from.saturating_add(size);
        }
        Self { journal_file: journal_file.to_path_buf(), ranges }
    }

    /// Returns whether there is no record file.
    pub const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the path of the file of the journal.
    pub fn path(&self) -> &Path {
        &self.journal_file
    }

    /// Reads the record file `name`. Returns `None` if the part has no such file.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(range) = self.ranges.iter().find(|range| range.name == name) else { return Ok(None) };
        let FileRange { from, size, .. } = *range;
        if size > MAX_PACKED_FILE {
            let bound = MAX_PACKED_FILE >> 20;
            let why = format!("{name} has {size} B there, and a file of more than {bound} MiB has a folder");
            return Err(io::Error::other(why));
        }
        let file = open_file(&self.journal_file)?;
        // The range is checked against the file before memory is taken for it, because the size was read from
        // a file that somebody may have edited.
        let is_in_file = from.checked_add(size).is_some_and(|end| match file.metadata() {
            Ok(metadata) => end <= metadata.len(),
            // The read below gives the error.
            Err(_) => true,
        });
        if !is_in_file {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, from)?;
        Ok(Some(bytes))
    }
}

/// Parts in memory: those that this process made, and those that were read from a journal or a folder.
pub type PartsInMemory = BTreeMap<PartKey, Part>;

/// Returns the keys of all parts of a run: those with a folder in `dir`, and those in memory.
pub fn all_parts(dir: &RunDir, in_memory: &PartsInMemory) -> Result<BTreeSet<PartKey>, Error> {
    let mut keys = BTreeSet::from_iter(dir.parts()?);
    keys.extend(in_memory.keys());
    Ok(keys)
}

/// Adds a part to `in_memory`. Of two parts with the same key, the one of the later attempt stays: an earlier
/// process may have kept an attempt with few rows in the journal, and one with many rows in a folder.
pub(crate) fn add_latest(in_memory: &mut PartsInMemory, key: PartKey, part: Part) {
    let is_older_than_known = in_memory.get(&key).is_some_and(|known| part.reruns() < known.reruns());
    if !is_older_than_known {
        in_memory.insert(key, part);
    }
}

impl Part {
    /// Makes the part of `record`, a repetition of `cell` of `plan`. `stamp` writes an instant of the run as
    /// a date and a time.
    ///
    /// If a flow has many copies, the figures of the single copies are left out, unless `per_flow` is true or
    /// a threshold is held against them.
    pub fn new(
        record: &RunRecord,
        plan: &Plan,
        cell: &Cell,
        per_flow: bool,
        stamp: impl Fn(Instant) -> String,
    ) -> Self {
        let mut summary = summarise(record, &BTreeMap::new());
        // All parts of a cell share the cell's swept values in memory.
        summary.sweep = Arc::clone(&cell.sweep).into();
        // In real time the machine may disturb the first repetition, and the page then draws another one.
        let is_real_time = summary.machine.is_some();
        let may_be_drawn = record.repetition == 0 || is_real_time;
        if is_real_time {
            add_transfers(&mut summary, record, &stamp);
        }

        let did_not_open =
            |name: &str| record.warnings.iter().any(|warning| warning::is_not_open(warning, name));
        let mut silent = Vec::new();
        for (name, flow) in &summary.flows {
            // A warning says so already if the flow did not open.
            if is_silent(flow) && !did_not_open(name) {
                silent.push(name.clone());
            }
        }
        let is_closed =
            !record.flows.is_empty() && record.flows.iter().all(|flow| did_not_open(&flow.info.name));

        if !per_flow {
            remove_figures_of_copies(&mut summary, record, &flows_with_thresholds(plan));
        }
        Self {
            summary,
            clock: Clock::from(&record.clock),
            valid: record.valid,
            warnings: record.warnings.clone(),
            silent,
            is_closed,
            log: log_txt(record, &stamp),
            program_output: record.program.as_ref().map(|program| program.output.clone()).unwrap_or_default(),
            chart_data: (may_be_drawn && is_drawn(plan, cell)).then(|| cell_chart_data(record, &cell.label)),
            files: PartFiles::default(),
        }
    }

    /// Adds a warning about the flows that sent no message although none was refused. A connection takes no
    /// messages during its handshake. Without the warning, a row of zeros looks like an idle flow.
    pub fn warn_of_silence(&mut self) {
        let silent = core::mem::take(&mut self.silent);
        if !silent.is_empty() {
            self.warnings.push(format!(
                "no message was sent by {}: the connection did not open in time, or nothing was due after the \
                 warm-up",
                first_few(silent.into_iter())
            ));
        }
    }

    /// Returns why no flow opened a connection, or `None` if a flow did.
    pub fn why_closed(&self) -> Option<&str> {
        if !self.is_closed {
            return None;
        }
        let reason = self.warnings.iter().find(|warning| warning.contains("did not open"));
        Some(reason.map_or("no flow opened", String::as_str))
    }

    /// Returns whether the machine disturbed the repetition past its stated limits.
    pub fn is_disturbed(&self) -> bool {
        self.summary.is_disturbed()
    }

    /// Returns how many times the repetition has run again because it was disturbed.
    pub fn reruns(&self) -> u64 {
        self.summary.machine.as_ref().map_or(0, |machine| machine.ran_again)
    }

    /// Sets the number that [`Self::reruns`] returns.
    pub fn set_reruns(&mut self, reruns: u64) {
        if reruns > 0 {
            self.summary.machine.get_or_insert_default().ran_again = reruns;
        }
    }

    /// Returns the repetition that the part belongs to.
    pub const fn id(&self) -> PartId {
        PartId { cell: self.summary.cell, repetition: self.summary.repetition }
    }

    /// Writes the part and the record files of `record` into a folder in `dir`. `records` says which record
    /// files there are.
    pub fn save(
        &self,
        dir: &RunDir,
        record: &RunRecord,
        extra_files: &ExtraFiles,
        records: Records,
        is_cut_short: bool,
    ) -> Result<(), Error> {
        let id = PartId { cell: record.cell, repetition: record.repetition };
        dir.save_part(PartKey { id, is_cut_short }, |folder| {
            if records >= Records::All {
                let path = folder.join(PACKETS);
                write_whole(&path, |writer| {
                    write_packets(record, writer).map_err(|why| record_write_error(&path, why))
                })?;
            }
            if let Some(arrivals) = &extra_files.arrivals
                && records >= Records::All
            {
                write_bytes(&folder.join(ARRIVALS), arrivals)?;
            }
            // The user asks for these by flags of their own, so they do not depend on `records`.
            for (name, file) in [(CAPTURES, &extra_files.capture), (QLOGS, &extra_files.qlog)] {
                if let Some(file) = file {
                    write_bytes(&folder.join(name), file)?;
                }
            }
            if records >= Records::Summary {
                let path = folder.join(SERIES);
                write_whole(&path, |writer| {
                    write_series(record, writer).map_err(|why| record_write_error(&path, why))
                })?;
            }
            // The file has no white space, because no person reads it, and it is removed when the run is
            // merged.
            write_bytes(&folder.join(PART), &serde_json::to_vec(self).unwrap_or_default())
        })
    }
}

/// Adds to each burst and each file when it began and ended. `stamp` writes an instant of the run as a date
/// and a time.
fn add_transfers(summary: &mut RunSummary, record: &RunRecord, stamp: &impl Fn(Instant) -> String) {
    let window = record.window_start..record.window_end;
    for flow in record.flows.iter().filter(|flow| flow.info.burst || flow.file.is_some()) {
        if let Some(flow_summary) = summary.flows.get_mut(&flow.info.name) {
            flow_summary.transfer = Some(Box::new(summarise_transfer(flow, &window, stamp)));
        }
    }
}

/// Returns whether a flow sent no message although none was refused. It is given the figures of the flow.
fn is_silent(flow: &FlowSummary) -> bool {
    match flow.ledger {
        Some(ledger) => ledger.not_open == ledger.due,
        None => flow.sent == 0 && flow.refused == 0,
    }
}

/// Returns the names of the flows that thresholds of `plan` are about, each copy by its own name.
fn flows_with_thresholds(plan: &Plan) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for threshold in &plan.thresholds {
        if let ThresholdSubject::Flow { members, .. } = &threshold.subject {
            names.extend(members.iter().map(String::as_str));
        }
    }
    names
}

/// The name of a record file and its bytes.
pub type NamedFile = (&'static str, Vec<u8>);

/// Makes the record files of a repetition in memory. Returns `None` if they are large, so that they need a
/// folder.
pub fn packed(
    record: &RunRecord,
    extra_files: &ExtraFiles,
    records: Records,
) -> Result<Option<Vec<NamedFile>>, Error> {
    if estimated_bytes(record, extra_files, records) > MAX_PACKED {
        return Ok(None);
    }
    let mut files = Vec::new();
    if records >= Records::All {
        let mut packets = Vec::new();
        write_packets(record, &mut packets).map_err(|why| record_write_error(Path::new(PACKETS), why))?;
        files.push((PACKETS, packets));
        files.extend(extra_files.arrivals.as_ref().map(|log| (ARRIVALS, log.clone())));
    }
    if records >= Records::Summary {
        let mut series = Vec::new();
        write_series(record, &mut series).map_err(|why| record_write_error(Path::new(SERIES), why))?;
        files.push((SERIES, series));
    }
    let is_large = files.iter().any(|(_, bytes)| bytes.len() as u64 > MAX_PACKED_FILE);
    Ok((!is_large).then_some(files))
}

/// Estimates the size of the record files, B.
fn estimated_bytes(record: &RunRecord, extra_files: &ExtraFiles, records: Records) -> usize {
    let (mut rows, mut arrivals) = (0, 0);
    if records >= Records::All {
        for flow in &record.flows {
            rows += flow.forward.messages.len() + flow.echo.as_ref().map_or(0, |echo| echo.messages.len());
        }
        arrivals = extra_files.arrivals.as_ref().map_or(0, Vec::len);
    }
    if records >= Records::Summary {
        rows += record.series.iter().map(|series| series.points.len()).sum::<usize>();
    }
    rows.saturating_mul(ROW_BYTES) + arrivals
}

/// Joins the first few of `names`, and says how many more there are.
pub fn first_few(mut names: impl ExactSizeIterator<Item = String>) -> String {
    let mut first: Vec<String> = names.by_ref().take(MAX_NAMED).collect();
    if names.len() > 0 {
        first.push(format!("{} more", names.len()));
    }
    first.join("; ")
}

/// The files of a repetition that the arena writes beside the record.
pub struct ExtraFiles {
    /// The emulator's log of arrivals.
    pub arrivals: Option<Vec<u8>>,
    /// The packets that were captured at both hosts.
    pub capture: Option<Vec<u8>>,
    /// What the near ends of QUIC connections logged.
    pub qlog: Option<Vec<u8>>,
}

/// Returns whether the page draws `cell`. If the plan has at most `MAX_DRAWN` cells, the page draws all. In
/// a larger plan it draws the first and the last cell, and the cells that differ from these in the transport
/// alone.
pub fn is_drawn(plan: &Plan, cell: &Cell) -> bool {
    if plan.cells.len() <= MAX_DRAWN {
        return true;
    }
    let is_transport = |key: &str| key.starts_with("flow.") && key.ends_with(".transport");
    let transport_key = cell.sweep.keys().find(|key| is_transport(key));
    let other_values = |of_cell: &Cell| {
        let mut values = BTreeMap::clone(&of_cell.sweep);
        if let Some(key) = transport_key {
            values.remove(key);
        }
        values
    };
    let ends = [plan.cells.first(), plan.cells.last()];
    ends.into_iter().flatten().any(|end| other_values(end) == other_values(cell))
}

/// Returns the error for a record file that could not be written.
pub fn record_write_error(path: &Path, why: RecordError) -> Error {
    let why = match why {
        RecordError::Io(why) => why,
        other => io::Error::other(other),
    };
    Error::write(path, why)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use talkpath_measure::{FlowInfo, FlowRecord};
    use talkpath_scenario::{Options, Source, load};

    use super::*;
    use crate::fixture;

    #[test]
    fn a_file_among_others_that_is_larger_than_any_can_be_is_not_read_into_memory() {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("figures-0.rows");
        let hole = 4_u64 << 30;
        File::create(&path).unwrap().set_len(hole).unwrap();
        let files = PartFiles::new(&path, 0, [(PACKETS.to_owned(), hole)]);
        let why = files.read(PACKETS).unwrap_err().to_string();
        assert!(why.contains("packets.parquet has 4294967296 B there"), "{why}");
        assert_eq!(
            PartFiles::new(&path, 0, [(PACKETS.to_owned(), 3)]).read(PACKETS).unwrap().unwrap(),
            [0; 3]
        );
    }

    #[test]
    fn rows_that_are_not_written_make_no_repetition_large() {
        let mut record = fixture::record(1_000);
        let messages = &mut record.flows[0].forward.messages;
        let row = messages[0];
        messages.resize(MAX_PACKED / ROW_BYTES + 1, row);
        let kept = ExtraFiles { arrivals: Some(vec![0; MAX_PACKED + 1]), capture: None, qlog: None };
        let names = |records| {
            let files = packed(&record, &kept, records).unwrap();
            files.map(|files| files.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names(Records::All), None);
        assert_eq!(names(Records::Summary), Some(vec![SERIES]));
        assert_eq!(names(Records::None), Some(vec![]));
    }

    #[test]
    fn a_silent_flow_is_named_also_where_its_copies_are_summed_up() {
        let text = "name = \"silent\"\nduration = \"1 s\"\npath = \"home-adsl\"\n[flow.call]\n\
                    transport = \"udp\"\nworkload = { kind = \"voice\" }\n";
        let plan = load(&Source::new("silent.toml", text), &Options::default()).unwrap();
        let copy = |number| {
            let info = FlowInfo::on_a_clock(&format!("call-{number}"));
            FlowRecord::new(FlowInfo { group: "call".to_owned(), ..info })
        };
        let record = RunRecord { flows: (1..=501).map(copy).collect(), ..RunRecord::default() };
        let mut part = Part::new(&record, &plan, &plan.cells[0], false, |_| String::new());
        assert!(part.summary.flows.is_empty() && part.warnings.is_empty());
        part.warn_of_silence();
        let [warning] = part.warnings.as_slice() else { panic!("{:?}", part.warnings) };
        assert!(warning.starts_with("no message was sent by call-1; call-10;"), "{warning}");
        assert!(warning.contains("496 more"), "{warning}");
    }
}
