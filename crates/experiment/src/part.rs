//! One finished repetition on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use talkpath_measure::chart_data::{CellFigures, figures};
use talkpath_measure::log::log_txt;
use talkpath_measure::record_file::{RecordError, write_packets, write_series};
use talkpath_measure::summarise::{remove_figures_of_copies, summarise};
use talkpath_measure::summary::{Clock, FlowSummary, RunSummary};
use talkpath_measure::{FlowRecord, RunRecord, warning};
use talkpath_scenario::{Cell, Plan, ThresholdOf};
use talkpath_units::Instant;

use crate::Error;
use crate::choice::Records;
use crate::run_dir::{PartId, RunDir};
use crate::store::whole::{open_file, write_bytes, write_whole};

/// What is kept of one repetition, beside its rows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Part {
    /// Its figures.
    pub summary: RunSummary,
    /// How well the hosts' clocks could be compared.
    pub clock: Clock,
    /// Whether the machine kept to its stated limits.
    pub valid: bool,
    /// What bends its figures, in words for a person.
    pub warnings: Vec<String>,
    /// Flows that sent nothing and met no refusal, before copies were summed up.
    #[serde(skip)]
    silent: Vec<String>,
    /// Whether no flow opened, so that nothing was measured.
    #[serde(default)]
    is_closed: bool,
    /// Its part of log.txt.
    pub log: String,
    /// What the report draws, if it may draw this repetition.
    pub figures: Option<CellFigures>,
    /// Its files, if they have no folder of their own.
    #[serde(skip)]
    pub files: PartFiles,
}

/// Where a part's files are that lie one after the other in a file of their process.
#[derive(Clone, Debug, Default)]
pub struct PartFiles {
    file: PathBuf,
    /// By name: from where, and how many bytes.
    ranges: Vec<(String, u64, u64)>,
}

impl PartFiles {
    /// In `file`, from `from` on, those of these names and sizes.
    pub fn new(file: &Path, mut from: u64, sizes: impl IntoIterator<Item = (String, u64)>) -> Self {
        let range = |(name, size): (String, u64)| {
            let at = from;
            from = from.saturating_add(size);
            (name, at, size)
        };
        Self { file: file.to_path_buf(), ranges: sizes.into_iter().map(range).collect() }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The file in which they lie.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// The bytes of the file `name`; `None` if there is no such one.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let Some((_, from, size)) = self.ranges.iter().find(|(it, ..)| it == name) else { return Ok(None) };
        if *size > LARGEST_PACKED {
            let bound = LARGEST_PACKED >> 20;
            let why = format!("{name} has {size} B there, and a file of more than {bound} MiB has a folder");
            return Err(io::Error::other(why));
        }
        let file = open_file(&self.file)?;
        // What the line says must be there: a size that somebody made up takes no memory.
        if from.checked_add(*size).is_none_or(|end| file.metadata().is_ok_and(|of| of.len() < end)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; usize::try_from(*size).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, *from)?;
        Ok(Some(bytes))
    }
}

/// Parts that need not be read from their folders, with whether each is unfinished: this process made them,
/// or an earlier one's journal holds them.
pub type Fresh = BTreeMap<(PartId, bool), Part>;

/// Every part of `dir`, whether it has a folder or is only among the `fresh`, in order.
pub fn all_parts(dir: &RunDir, fresh: &Fresh) -> Result<BTreeSet<(PartId, bool)>, Error> {
    Ok(dir.parts()?.into_iter().chain(fresh.keys().copied()).collect())
}

impl Part {
    /// What is kept of `record`, a repetition of `cell` of `plan` whose first instant `stamp` writes as a
    /// date and a time. Many copies of a flow are summed up, unless it is to be `per_flow` or a threshold is
    /// on them.
    pub fn new(
        record: &RunRecord,
        plan: &Plan,
        cell: &Cell,
        per_flow: bool,
        stamp: impl Fn(Instant) -> String,
    ) -> Self {
        let mut summary = summarise(record, &BTreeMap::new());
        // Over real sockets the machine may disturb the first repetition, and another is drawn.
        let may_be_shown = record.repetition == 0 || summary.machine.is_some();
        let is_drawn = may_be_shown && is_drawn(plan, cell);
        // The cell's own, and no copy of them.
        summary.sweep = Arc::clone(&cell.sweep).into();
        let is_told = |name: &str| record.warnings.iter().any(|told| warning::is_not_open(told, name));
        let is_silent = |flow: &FlowSummary| {
            flow.ledger.map_or(flow.sent == 0 && flow.refused == 0, |ledger| ledger.not_open == ledger.due)
        };
        let silent = summary.flows.iter().filter(|(_, flow)| is_silent(flow));
        let silent = silent.map(|(name, _)| name.clone()).filter(|name| !is_told(name)).collect();
        if !per_flow {
            // A threshold is held against each copy.
            let members = plan.thresholds.iter().filter_map(|threshold| match &threshold.of {
                ThresholdOf::Flow { members, .. } => Some(members),
                ThresholdOf::Link { .. } => None,
            });
            let wanted = members.flatten().map(String::as_str).collect();
            remove_figures_of_copies(&mut summary, record, &wanted);
        }
        Self {
            summary,
            clock: Clock::from(&record.clock),
            valid: record.valid,
            warnings: record.warnings.clone(),
            silent,
            is_closed: !record.flows.is_empty() && record.flows.iter().all(|flow| is_told(&flow.info.name)),
            log: log_txt(record, stamp),
            figures: is_drawn.then(|| figures(record, &cell.label)),
            files: PartFiles::default(),
        }
    }

    /// Warns of the flows that sent nothing and met no refusal: a connection in its handshake takes no
    /// messages, and a table of zeros looks like an idle flow, one of losses like a bad path.
    pub fn warn_of_silence(&mut self) {
        let silent = core::mem::take(&mut self.silent);
        if !silent.is_empty() {
            self.warnings.push(format!(
                "no message was sent by {}: the connection did not open in time, or nothing was due after the \
                 warm-up",
                named(silent.into_iter())
            ));
        }
    }

    /// Why no flow of it opened; `None` if one did.
    pub fn why_closed(&self) -> Option<&str> {
        let is_reason = |warning: &&String| warning.contains("did not open");
        let why = || self.warnings.iter().find(is_reason).map_or("no flow opened", String::as_str);
        self.is_closed.then(why)
    }

    /// Whether the machine disturbed it past its stated limits.
    pub fn is_disturbed(&self) -> bool {
        self.summary.is_disturbed()
    }

    /// How often it ran again because it had been disturbed.
    pub fn ran_again(&self) -> u64 {
        self.summary.machine.as_ref().map_or(0, |machine| machine.ran_again)
    }

    /// As [`Self::ran_again`] will say.
    pub fn set_ran_again(&mut self, times: u64) {
        if times > 0 {
            self.summary.machine.get_or_insert_default().ran_again = times;
        }
    }

    /// Which repetition it is.
    pub const fn id(&self) -> PartId {
        PartId { cell: self.summary.cell, repetition: self.summary.repetition }
    }

    /// Writes the part into `dir`, whole or not at all.
    pub fn save(
        &self,
        dir: &RunDir,
        record: &RunRecord,
        kept: &Kept,
        records: Records,
        unfinished: bool,
    ) -> Result<(), Error> {
        let id = PartId { cell: record.cell, repetition: record.repetition };
        dir.save_part(id, unfinished, |folder| {
            if records >= Records::All {
                let path = folder.join(PACKETS);
                write_whole(&path, |writer| {
                    write_packets(record, writer).map_err(|why| unwritten(&path, why))
                })?;
            }
            for (name, bytes) in [(ARRIVALS, &kept.arrivals), (CAPTURES, &kept.capture)] {
                if let Some(bytes) = bytes.as_ref().filter(|_| records >= Records::All || name == CAPTURES) {
                    write_bytes(&folder.join(name), bytes)?;
                }
            }
            if records >= Records::Summary {
                let path = folder.join(SERIES);
                write_whole(&path, |writer| {
                    write_series(record, writer).map_err(|why| unwritten(&path, why))
                })?;
            }
            // No person reads it, and it goes when the run is whole: it has no white space.
            write_bytes(&folder.join(PART), &serde_json::to_vec(self).unwrap_or_default())
        })
    }
}

/// A file's name and its bytes.
pub type NamedFile = (&'static str, Vec<u8>);

/// The files that a repetition leaves beside its figures, in memory; `None` if they are large.
pub fn packed(record: &RunRecord, kept: &Kept, records: Records) -> Result<Option<Vec<NamedFile>>, Error> {
    if about_bytes(record, kept, records) > MOST_PACKED {
        return Ok(None);
    }
    let mut files = Vec::new();
    if records >= Records::All {
        let mut packets = Vec::new();
        write_packets(record, &mut packets).map_err(|why| unwritten(Path::new(PACKETS), why))?;
        files.push((PACKETS, packets));
        files.extend(kept.arrivals.as_ref().map(|log| (ARRIVALS, log.clone())));
    }
    if records >= Records::Summary {
        let mut series = Vec::new();
        write_series(record, &mut series).map_err(|why| unwritten(Path::new(SERIES), why))?;
        files.push((SERIES, series));
    }
    let is_large = files.iter().any(|(_, bytes)| bytes.len() as u64 > LARGEST_PACKED);
    Ok((!is_large).then_some(files))
}

/// About how large those files are, B.
fn about_bytes(record: &RunRecord, kept: &Kept, records: Records) -> usize {
    let legs = |flow: &FlowRecord| {
        flow.forward.messages.len() + flow.echo.as_ref().map_or(0, |echo| echo.messages.len())
    };
    let rows = || record.flows.iter().map(legs).sum::<usize>();
    let points = || record.series.iter().map(|series| series.points.len()).sum::<usize>();
    let (rows, arrivals) = match records {
        Records::All => (rows(), kept.arrivals.as_ref().map_or(0, Vec::len)),
        Records::Summary | Records::None => (0, 0),
    };
    let points = if records >= Records::Summary { points() } else { 0 };
    (rows + points).saturating_mul(ROW_BYTES) + arrivals
}

/// The first few of these, and how many more there are.
pub fn named(mut names: impl ExactSizeIterator<Item = String>) -> String {
    let mut first: Vec<String> = names.by_ref().take(MAX_NAMED).collect();
    if names.len() > 0 {
        first.push(format!("{} more", names.len()));
    }
    first.join("; ")
}

/// What a repetition leaves besides its record.
pub struct Kept {
    /// The emulator's log of arrivals.
    pub arrivals: Option<Vec<u8>>,
    /// The hosts' packets.
    pub capture: Option<Vec<u8>>,
}

/// Whether the page can draw this cell: every cell of a few, and of a large sweep the transports of the first
/// and of the last combination. Of these the first repetition that counts is drawn.
pub fn is_drawn(plan: &Plan, cell: &Cell) -> bool {
    let key = cell.sweep.keys().find(|key| key.starts_with("flow.") && key.ends_with(".transport"));
    let is_beside = |other: &Cell| {
        let rest = |of: &Cell| {
            of.sweep
                .iter()
                .filter(|(it, _)| Some(*it) != key)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect::<Vec<_>>()
        };
        rest(other) == rest(cell)
    };
    plan.cells.len() <= MAX_DRAWN
        || [plan.cells.first(), plan.cells.last()].into_iter().flatten().any(is_beside)
}

/// What a record that could not be written means.
pub fn unwritten(path: &Path, why: RecordError) -> Error {
    let why = match why {
        RecordError::Io(why) => why,
        other => io::Error::other(other),
    };
    Error::write(path, why)
}

/// Names in a run directory, as docs/reference/interface.md promises them.
/// The rows of messages.
pub const PACKETS: &str = "packets.parquet";
/// The points of states over time.
pub const SERIES: &str = "series.parquet";
/// Every figure.
pub const SUMMARY: &str = "summary.json";
/// Start, end and counts of every flow, for a person.
pub const LOG: &str = "log.txt";
/// The page.
pub const REPORT: &str = "report.html";
/// A part's arrival log, and the folder that holds those of a whole run.
pub const ARRIVALS: &str = "arrivals";
/// The same of captures.
pub const CAPTURES: &str = "captures";
/// What is kept of one repetition, in the folder of a part.
pub const PART: &str = "part.json";

/// A row takes this much in a file at most, as a rule: two stamps and a number.
const ROW_BYTES: usize = 16;

/// Chosen: beyond it a file of its own costs little beside its bytes.
const MOST_PACKED: usize = 1 << 20;

/// Bytes of one file at most that lies among others. Chosen: [`ROW_BYTES`] is a guess, and 16 times more than
/// it allows is none; a hole in somebody else's file must not fill the memory.
const LARGEST_PACKED: u64 = 16 << 20;

/// Chosen: a warning names this many repetitions, cells or flows, and counts the rest.
const MAX_NAMED: usize = 5;

/// Chosen: nobody reads more cells than this on one page, and the tables hold them all.
const MAX_DRAWN: usize = 40;

#[cfg(test)]
mod tests {
    use std::fs::File;

    use talkpath_measure::FlowInfo;
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
        messages.resize(MOST_PACKED / ROW_BYTES + 1, row);
        let kept = Kept { arrivals: Some(vec![0; MOST_PACKED + 1]), capture: None };
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
