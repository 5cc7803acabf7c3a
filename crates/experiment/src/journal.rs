//! Small repetitions: one a line, in a file a process, and the files of records that they leave one after the
//! other in another one.
//!
//! ```text
//! figures-0.jsonl  { "part": { ... }, "files": [["packets.parquet", 5120], ["series.parquet", 900]] }
//! figures-0.rows   the bytes of these files, and then those of the next line's
//! ```
//!
//! A folder for each, as large parts have, takes two renames and is created and removed file by file: with
//! repetitions of a few milliseconds that was a tenth of a sweep's time and more, much of it one after the
//! other in the file system.
//!
//! The rows are written before their line, each in one go, and a line counts once its line feed is there. So
//! a process that is killed loses at most the repetition that it was writing down. The next process begins
//! files of its own.

use serde::{Deserialize, Serialize};
use talkpath_measure::RunRecord;

use crate::Error;
use crate::choice::Records;
use crate::part::{Fresh, Kept, Part, PartFiles, packed};
use crate::run_dir::{PARTS, RunDir};
use crate::store::lines::{LineFile, each_line, numbered};
use crate::store::whole::unexpected_json;

/// One process's files, begun with the first line.
#[derive(Default)]
pub struct Journal {
    lines: Option<LineFile>,
    rows: Option<LineFile>,
}

/// A part as it is written down.
pub struct Packed {
    line: Vec<u8>,
    rows: Vec<u8>,
    sizes: Vec<(&'static str, u64)>,
}

#[derive(Serialize)]
struct Line<'a> {
    part: &'a Part,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    files: &'a [(&'static str, u64)],
}

#[derive(Deserialize)]
struct ReadLine {
    part: Part,
    #[serde(default)]
    files: Vec<(String, u64)>,
}

impl Packed {
    /// `part`, of `record`, with the files that it leaves; `None` if they are large and need a folder.
    pub fn new(
        part: &Part,
        record: &RunRecord,
        kept: &Kept,
        records: Records,
    ) -> Result<Option<Self>, Error> {
        let Some(files) = packed(record, kept, records)? else { return Ok(None) };
        let sizes: Vec<_> = files.iter().map(|(name, bytes)| (*name, bytes.len() as u64)).collect();
        let mut line = serde_json::to_vec(&Line { part, files: &sizes }).unwrap_or_default();
        line.push(b'\n');
        Ok(Some(Self { line, rows: files.into_iter().flat_map(|(_, bytes)| bytes).collect(), sizes }))
    }

    /// How much it takes on the disk, B.
    pub fn size(&self) -> u64 {
        (self.line.len() + self.rows.len()) as u64
    }
}

impl Journal {
    /// Writes `packed` down; returns where its files are.
    pub fn add(&mut self, dir: &RunDir, packed: &Packed) -> Result<PartFiles, Error> {
        let lines = match &mut self.lines {
            Some(lines) => lines,
            None => self.lines.insert(LineFile::create_numbered(&dir.file(PARTS), STEM, LINES)?),
        };
        if packed.sizes.is_empty() {
            lines.add(&packed.line)?;
            return Ok(PartFiles::default());
        }
        let rows = match &mut self.rows {
            Some(rows) => rows,
            None => self.rows.insert(LineFile::open_at(&lines.path().with_extension(ROWS), 0)?),
        };
        let from = rows.end();
        rows.add(&packed.rows)?;
        // Rows without a line would be taken for those of the next one.
        lines.add(&packed.line).inspect_err(|_| rows.cut_back(from))?;
        let sizes = packed.sizes.iter().map(|(name, size)| ((*name).to_owned(), *size));
        Ok(PartFiles::new(rows.path(), from, sizes))
    }
}

/// What earlier processes wrote down in `dir`; of a repetition that ran again the last time.
pub fn read(dir: &RunDir) -> Result<Fresh, Error> {
    let folder = dir.file(PARTS);
    let mut kept = Fresh::new();
    for path in numbered(&folder, STEM, LINES)? {
        let (rows, mut end) = (path.with_extension(ROWS), 0_u64);
        each_line(&path, |line| {
            let ReadLine { mut part, files } =
                serde_json::from_slice(line).map_err(|why| unexpected_json(&path, &why))?;
            let from = end;
            end = files.iter().fold(end, |end, (_, size)| end.saturating_add(*size));
            part.files = PartFiles::new(&rows, from, files);
            let is_older = |it: &Part| part.ran_again() < it.ran_again();
            if !kept.get(&(part.id(), false)).is_some_and(is_older) {
                kept.insert((part.id(), false), part);
            }
            Ok::<_, Error>(())
        })?;
    }
    Ok(kept)
}

const STEM: &str = "figures-";
const LINES: &str = ".jsonl";
const ROWS: &str = "rows";

#[cfg(test)]
mod tests {
    use std::fs::{OpenOptions, create_dir};
    use std::io::Write;

    use super::*;
    use crate::fixture;
    use crate::part::{PACKETS, SERIES};
    use crate::run_dir::PartId;

    #[test]
    fn what_a_killed_process_was_writing_is_lost_alone_and_all_rows_stay_with_their_lines() {
        let plan = fixture::plan("repeat = 5");
        let out = tempfile::tempdir().unwrap();
        create_dir(out.path().join("run")).unwrap();
        let dir = RunDir::create_empty(&out.path().join("run")).unwrap();
        create_dir(dir.file(PARTS)).unwrap();
        let none = Kept { arrivals: None, capture: None };
        let keep = |journal: &mut Journal, repetition: u64| {
            let mut record = fixture::record(100 * (repetition + 1));
            record.repetition = repetition;
            let part = Part::new(&record, &plan, &plan.cells[0], false, |_| String::new());
            let packed = Packed::new(&part, &record, &none, Records::All).unwrap().expect("it is small");
            let files = journal.add(&dir, &packed).unwrap();
            [PACKETS, SERIES].map(|name| files.read(name).unwrap().unwrap())
        };
        let mut killed = Journal::default();
        let mut written: Vec<_> = (0..2).map(|repetition| keep(&mut killed, repetition)).collect();
        let add = |name: &str, bytes: &[u8]| {
            let file = OpenOptions::new().append(true).open(dir.file(PARTS).join(name));
            file.unwrap().write_all(bytes).unwrap();
        };
        add("figures-0.rows", b"PAR1");
        add("figures-0.jsonl", b"{\"part\":{\"summ");
        let mut next = Journal::default();
        written.extend((2..4).map(|repetition| keep(&mut next, repetition)));
        let kept = read(&dir).unwrap();
        assert_eq!(kept.len(), 4);
        for (repetition, files) in (0..).zip(&written) {
            let part = &kept[&(PartId { cell: 0, repetition }, false)];
            assert_eq!(&[PACKETS, SERIES].map(|name| part.files.read(name).unwrap().unwrap()), files);
        }
        assert!(written[0][0] != written[1][0] && written[0][0].starts_with(b"PAR1"));
    }
}
