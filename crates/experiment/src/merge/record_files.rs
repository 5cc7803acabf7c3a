//! Merges the record files of all parts: the rows of messages and series, logs of arrivals, captures, and the
//! text of log.txt.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use talkpath_measure::record_file::{
    ChunkReader, MergeError, PartFile, RecordError, merge_packets, merge_series,
};

use crate::Error;
use crate::choice::Records;
use crate::part::{LOG, PACKETS, PROGRAM, PartFiles, SERIES, record_write_error};
use crate::run_dir::{PartId, RunDir, own_folder};
use crate::store::whole::{WRITE_AT_ONCE, find_file, write_bytes, write_whole};

/// The record files of one part.
pub(super) struct PartRecords {
    pub(super) id: PartId,
    pub(super) files: RecordFiles,
}

/// Where the record files of a part are.
pub(super) enum RecordFiles {
    /// Each record file is a file in the folder of the part.
    InFolder(PathBuf),
    /// The record files of many small parts are in one file of the journal.
    InJournal(PartFiles),
}

impl RecordFiles {
    /// Opens the record file `name`, which must exist.
    fn open(&self, name: &str) -> io::Result<PartFile<File>> {
        self.find(name)?.ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Opens the record file `name`. Returns `None` if the part has no such file.
    fn find(&self, name: &str) -> io::Result<Option<PartFile<File>>> {
        match self {
            Self::InFolder(folder) => Ok(find_file(&folder.join(name))?.map(PartFile::Open)),
            Self::InJournal(files) => Ok(files.read(name)?.map(PartFile::from)),
        }
    }

    /// Returns the path of the file on the disk that holds the record file `name`.
    fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::InFolder(folder) => folder.join(name),
            Self::InJournal(files) => files.path().to_path_buf(),
        }
    }
}

/// Merges packets.parquet and series.parquet of all parts, as far as `level` asks for these files.
pub(super) fn merge_records(dir: &RunDir, parts: &[PartRecords], level: Records) -> Result<(), Error> {
    let open_each = |name: &'static str| parts.iter().map(move |part| part.files.open(name));
    if level >= Records::All {
        let path = dir.file(PACKETS);
        write_whole(&path, |out| {
            merge_packets(open_each(PACKETS), out).map_err(|why| merge_error(why, parts, PACKETS, &path))
        })?;
    }
    if level >= Records::Summary {
        let path = dir.file(SERIES);
        write_whole(&path, |out| {
            merge_series(open_each(SERIES), out).map_err(|why| merge_error(why, parts, SERIES, &path))
        })?;
    }
    Ok(())
}

/// Returns the error of a merge, which names the file that is at fault: the file `name` of a part if that
/// could not be read, and the merged file `path` otherwise.
fn merge_error(why: MergeError, parts: &[PartRecords], name: &str, path: &Path) -> Error {
    match why {
        MergeError::Part { index, why } => match parts.get(index) {
            Some(part) => record_read_error(&part.files.path(name), why),
            None => record_write_error(path, why),
        },
        MergeError::Out(why) => record_write_error(path, why),
    }
}

/// Returns the error for a record file that could not be read.
fn record_read_error(path: &Path, why: RecordError) -> Error {
    match why {
        RecordError::Io(why) => Error::read(path, why),
        other => Error::Unusable(format!("cannot read {}: {other}", path.display())),
    }
}

/// Copies the file `name` of each part into the folder `name` of `dir`. Each copy has the name of its
/// repetition. Logs of arrivals and captures are copied in this way, because they cannot be merged.
pub(super) fn copy_each(dir: &RunDir, parts: &[PartRecords], name: &str) -> Result<(), Error> {
    let folder = dir.file(name);
    for PartRecords { id, files } in parts {
        let source = files.path(name);
        let Some(file) = files.find(name).map_err(|why| Error::read(&source, why))? else { continue };
        own_folder(&folder)?;
        fs::create_dir_all(&folder).map_err(|why| Error::write(&folder, why))?;
        let mut reader = file.get_read(0).map_err(|why| record_read_error(&source, why.into()))?;
        copy_whole(&mut reader, &source, &folder.join(id.file_name()))?;
    }
    Ok(())
}

/// Copies all bytes of `reader`, which reads the file `source`, into the file `target`.
fn copy_whole(reader: &mut impl Read, source: &Path, target: &Path) -> Result<(), Error> {
    let mut buffer = vec![0; WRITE_AT_ONCE];
    // `io::copy` would not say whether a read or a write failed, and the error names the file at fault.
    write_whole(target, |writer| {
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => writer.write_all(&buffer[..count]).map_err(|why| Error::write(target, why))?,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(Error::read(source, why)),
            }
        }
    })
}

/// Writes log.txt. `logs` has the log lines of each part.
pub(super) fn write_log(dir: &RunDir, logs: &[String]) -> Result<(), Error> {
    let path = dir.file(LOG);
    write_whole(&path, |out| {
        for log in logs {
            out.write_all(log.as_bytes()).map_err(|why| Error::write(&path, why))?;
        }
        Ok(())
    })
}

/// Writes program.txt, which has `outputs`, the texts of the repetitions whose program printed something. A
/// run without them has no such file.
pub(super) fn write_program_outputs(dir: &RunDir, outputs: &[String]) -> Result<(), Error> {
    match outputs {
        [] => Ok(()),
        outputs => write_bytes(&dir.file(PROGRAM), outputs.join("\n").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::part::{ARRIVALS, CAPTURES};

    #[test]
    fn a_copied_log_of_arrivals_replaces_an_older_file_and_does_not_write_into_it() {
        let out = tempfile::tempdir().unwrap();
        let dir = RunDir::create_empty(out.path()).unwrap();
        let part_folder = out.path().join("part");
        let target = dir.file(ARRIVALS).join("0-0");
        for folder in [&part_folder, &dir.file(ARRIVALS)] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(part_folder.join(ARRIVALS), "new").unwrap();
        fs::write(&target, "old").unwrap();
        // A process that has opened the older file goes on reading it.
        let opened = out.path().join("opened");
        fs::hard_link(&target, &opened).unwrap();
        let id = PartId { cell: 0, repetition: 0 };
        let parts = [PartRecords { id, files: RecordFiles::InFolder(part_folder) }];
        copy_each(&dir, &parts, ARRIVALS).unwrap();
        assert_eq!([&target, &opened].map(|path| fs::read_to_string(path).unwrap()), ["new", "old"]);
    }

    #[test]
    fn an_error_names_the_file_of_a_part_that_cannot_be_read_and_not_the_merged_file() {
        let out = tempfile::tempdir().unwrap();
        fs::create_dir(out.path().join("run")).unwrap();
        let dir = RunDir::create_empty(&out.path().join("run")).unwrap();
        let part_folder = out.path().join("part");
        fs::create_dir_all(part_folder.join(CAPTURES)).unwrap();
        for name in [ARRIVALS, PACKETS] {
            // A symbolic link to itself cannot be opened.
            symlink(part_folder.join(name), part_folder.join(name)).unwrap();
        }
        fs::write(part_folder.join(SERIES), "no parquet").unwrap();
        let journal_file = part_folder.join("figures-0.rows");
        let in_journal = PartFiles::new(&journal_file, 0, [(ARRIVALS.to_owned(), 1)]);

        let assert_names = |why: Error, file: &str| {
            let expected = format!("cannot read {}: ", part_folder.join(file).display());
            let message = why.to_string();
            assert!(message.starts_with(&expected), "{message}");
            assert!(matches!(why, Error::Read { .. } | Error::Unusable(_)), "{message}");
        };
        let id = PartId { cell: 0, repetition: 0 };
        let in_folder = [PartRecords { id, files: RecordFiles::InFolder(part_folder.clone()) }];
        for name in [ARRIVALS, CAPTURES] {
            assert_names(copy_each(&dir, &in_folder, name).unwrap_err(), name);
        }
        let in_journal = [PartRecords { id, files: RecordFiles::InJournal(in_journal) }];
        assert_names(copy_each(&dir, &in_journal, ARRIVALS).unwrap_err(), "figures-0.rows");
        for (level, name) in [(Records::All, PACKETS), (Records::Summary, SERIES)] {
            assert_names(merge_records(&dir, &in_folder, level).unwrap_err(), name);
        }
    }
}
