//! The journal: files that hold the small parts of a run, one part per line. The record files of these parts
//! follow each other in a second file.
//!
//! ```text
//! figures-0.jsonl  { "part": { ... }, "files": [["packets.parquet", 5120], ["series.parquet", 900]] }
//! figures-0.rows   the bytes of these two files, and then the files of the next line
//! ```
//!
//! A large part has a folder instead (`part.rs`). A folder takes two renames, and its files are created and
//! removed one by one. In a sweep with repetitions of a few milliseconds that took at least a tenth of the
//! time.
//!
//! Each process begins files of its own. It writes the record files of a part before the line, each with one
//! write, and a line counts once its line feed is there. So a process that is killed loses at most the part
//! that it was writing.
//!
//! Begin to read with [`Journal::add`], which writes a part, and [`read`], which reads all of them.

use serde::{Deserialize, Serialize};
use talkpath_measure::RunRecord;

use crate::Error;
use crate::choice::Records;
use crate::part::{ExtraFiles, Part, PartFiles, PartsInMemory, add_latest, packed};
use crate::run_dir::{PARTS, PartKey, RunDir};
use crate::store::lines::{LineFile, each_line, numbered};
use crate::store::whole::unexpected_json;

/// The names of the files: `figures-N.jsonl` and `figures-N.rows`.
const STEM: &str = "figures-";
const LINES: &str = ".jsonl";
const ROWS: &str = "rows";

/// The two files of this process. They are created with the first part.
#[derive(Default)]
pub struct Journal {
    lines: Option<LineFile>,
    rows: Option<LineFile>,
}

/// A part in the form in which the journal holds it.
pub struct Packed {
    /// The line of the part, with its line feed.
    line: Vec<u8>,
    /// The record files, one after the other.
    rows: Vec<u8>,
    /// The name and the size of each record file, B.
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
    /// Packs `part` with the record files of `record`. Returns `None` if these are large and need a folder.
    pub fn new(
        part: &Part,
        record: &RunRecord,
        extra_files: &ExtraFiles,
        records: Records,
    ) -> Result<Option<Self>, Error> {
        let Some(files) = packed(record, extra_files, records)? else { return Ok(None) };
        let sizes: Vec<_> = files.iter().map(|(name, bytes)| (*name, bytes.len() as u64)).collect();
        let mut line = serde_json::to_vec(&Line { part, files: &sizes }).unwrap_or_default();
        line.push(b'\n');
        let rows = files.into_iter().flat_map(|(_, bytes)| bytes).collect();
        Ok(Some(Self { line, rows, sizes }))
    }

    /// Returns the size on the disk, B.
    pub fn size(&self) -> u64 {
        (self.line.len() + self.rows.len()) as u64
    }
}

impl Journal {
    /// Writes a part into the journal in `dir`. Returns the positions of its record files.
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
        // Without this, the record files of the part would be taken for those of the next line.
        lines.add(&packed.line).inspect_err(|_| rows.remove_after(from))?;
        let sizes = packed.sizes.iter().map(|(name, size)| ((*name).to_owned(), *size));
        Ok(PartFiles::new(rows.path(), from, sizes))
    }
}

/// Reads all parts in the journals of `dir`. Of a repetition that ran again it returns the last attempt.
pub fn read(dir: &RunDir) -> Result<PartsInMemory, Error> {
    let folder = dir.file(PARTS);
    let mut parts = PartsInMemory::new();
    for path in numbered(&folder, STEM, LINES)? {
        let rows = path.with_extension(ROWS);
        // Where the record files of the next line begin.
        let mut end = 0_u64;
        each_line(&path, |line| {
            let ReadLine { mut part, files } =
                serde_json::from_slice(line).map_err(|why| unexpected_json(&path, &why))?;
            let from = end;
            for (_, size) in &files {
                end = end.saturating_add(*size);
            }
            part.files = PartFiles::new(&rows, from, files);
            add_latest(&mut parts, PartKey::whole(part.id()), part);
            Ok::<_, Error>(())
        })?;
    }
    Ok(parts)
}

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
        let none = ExtraFiles { arrivals: None, capture: None, qlog: None };
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
            let part = &kept[&PartKey::whole(PartId { cell: 0, repetition })];
            assert_eq!(&[PACKETS, SERIES].map(|name| part.files.read(name).unwrap().unwrap()), files);
        }
        assert!(written[0][0] != written[1][0] && written[0][0].starts_with(b"PAR1"));
    }
}
