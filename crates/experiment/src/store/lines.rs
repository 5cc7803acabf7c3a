//! Files to which lines are added.
//!
//! A *whole line* ends with a line feed. A full disk or a kill may leave a *fragment* of a line at the end of
//! the file. Readers ignore the fragment, and the next process that adds to the file removes it.
//!
//! Begin to read with [`LineFile::add`], which writes, and [`each_line`], which reads.

use core::ops::Range;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::lock::O_NOFOLLOW;
use super::whole::open_file;
use crate::Error;

/// The longest line, B. We chose 64 MiB. A line with the figures of a repetition takes about 1 MiB. A damaged
/// file may have a hole of any size without a line feed, and reading it must not fill the memory.
const MAX_LINE: u64 = 64 << 20;
const TOO_LONG: &str = "a line is longer than 64 MiB";
/// The number of bytes at the end of a file in which the last line is searched first. We chose 64 KiB,
/// because a line about an interval of a flow takes 3 kB.
const FIRST_TAIL: u64 = 65_536;

/// A file of lines to which this process alone adds.
#[derive(Debug)]
pub struct LineFile {
    file: File,
    path: PathBuf,
    /// The offset at which the last whole line ends, B.
    end: u64,
}

impl LineFile {
    /// Opens the file `path`, or makes it if it does not exist.
    ///
    /// # Errors
    /// Returns [`Error::Write`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = append_options().read(true).open(path);
        let file = file.map_err(|why| Error::write(path, why))?;
        let end = last_line(&file).map_err(|why| Error::write(path, why))?.end;
        Self::begin(file, path, end)
    }

    /// Opens the file `path`. `end` is the offset at which its last whole line ends.
    ///
    /// # Errors
    /// Returns [`Error::Write`].
    pub fn open_at(path: &Path, end: u64) -> Result<Self, Error> {
        let file = append_options().open(path).map_err(|why| Error::write(path, why))?;
        Self::begin(file, path, end)
    }

    /// Makes a new file in `folder`. Its name is `stem`, then the first number that no other process has
    /// taken, and `ending`.
    ///
    /// # Errors
    /// Returns [`Error::Write`].
    pub fn create_numbered(folder: &Path, stem: &str, ending: &str) -> Result<Self, Error> {
        let mut number = 0_u64;
        loop {
            let path = folder.join(format!("{stem}{number}{ending}"));
            match append_options().create_new(true).open(&path) {
                Ok(file) => return Self::begin(file, &path, 0),
                Err(why) if why.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(why) => return Err(Error::write(&path, why)),
            }
        }
    }

    fn begin(file: File, path: &Path, end: u64) -> Result<Self, Error> {
        let lines = Self { file, path: path.to_path_buf(), end };
        lines.remove_fragment().map_err(|why| Error::write(path, why))?;
        Ok(lines)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the offset at which the last whole line ends, B.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Adds whole lines, with their line feeds. If they cannot be written, none of their bytes stays in the
    /// file.
    ///
    /// # Errors
    /// Returns [`Error::Write`].
    pub fn add(&mut self, lines: &[u8]) -> Result<(), Error> {
        self.add_and(lines, |_| Ok(()))
    }

    /// Adds whole lines as [`Self::add`] does. The lines are on the disk when this returns.
    ///
    /// # Errors
    /// Returns [`Error::Write`].
    pub fn add_lasting(&mut self, lines: &[u8]) -> Result<(), Error> {
        self.add_and(lines, File::sync_data)
    }

    /// Adds `lines` and calls `finish` with the file.
    fn add_and(&mut self, lines: &[u8], finish: impl Fn(&File) -> io::Result<()>) -> Result<(), Error> {
        // An earlier failed write may have left a fragment that could not be removed then. The new lines must
        // not follow it.
        let written = self
            .remove_fragment()
            .and_then(|()| self.file.write_all(lines))
            .and_then(|()| finish(&self.file));
        if let Err(why) = written {
            let _ = self.remove_fragment();
            return Err(Error::write(&self.path, why));
        }
        self.end += lines.len() as u64;
        Ok(())
    }

    /// Removes all lines after the offset `end`, at which a line ends.
    pub fn remove_after(&mut self, end: u64) {
        self.end = end;
        // If this fails, the lines are removed before the next line is added.
        let _ = self.remove_fragment();
    }

    /// Removes the fragment after the last whole line.
    fn remove_fragment(&self) -> io::Result<()> {
        if self.file.metadata()?.len() > self.end { self.file.set_len(self.end) } else { Ok(()) }
    }
}

/// Returns the files in `folder` that [`LineFile::create_numbered`] made, in the order of their numbers.
///
/// # Errors
/// Returns [`Error::Read`].
pub fn numbered(folder: &Path, stem: &str, ending: &str) -> Result<Vec<PathBuf>, Error> {
    let read_error = |why| Error::read(folder, why);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(read_error)? {
        let path = entry.map_err(read_error)?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let Some(digits) = name.strip_prefix(stem).and_then(|name| name.strip_suffix(ending)) else {
            continue;
        };
        if let Ok(number) = digits.parse::<u64>() {
            files.push((number, path));
        }
    }
    files.sort_unstable();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

fn append_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).append(true).custom_flags(O_NOFOLLOW);
    options
}

/// Adds `line` to the file `path`, to which other processes may add at the same time.
///
/// If the file ends with a fragment, a line feed is written before the line. The fragment cannot be removed,
/// because it may be the beginning of another process's line. Everything is written in one call, so that the
/// lines of two processes do not mix.
///
/// # Errors
/// Returns the error of the system.
pub fn add_line(path: &Path, line: &[u8]) -> io::Result<()> {
    let ends_with_fragment = last_byte(path).is_ok_and(|last| last.is_some_and(|last| last != b'\n'));
    let line = if ends_with_fragment { [b"\n", line].concat() } else { line.to_vec() };
    append_options().open(path)?.write_all(&line)
}

/// Returns the last byte of the file `path`, or `None` if the file is empty.
fn last_byte(path: &Path) -> io::Result<Option<u8>> {
    let file = open_file(path)?;
    let Some(offset) = file.metadata()?.len().checked_sub(1) else { return Ok(None) };
    let mut last = [0];
    file.read_exact_at(&mut last, offset)?;
    Ok(Some(last[0]))
}

/// Calls `handle` with each whole line of the file `path`, with its line feed. Only one line is in memory at
/// a time, because a file may have 100,000 lines.
///
/// # Errors
/// Returns the error of `handle`, or [`Error::Read`] if the file cannot be read or has a line longer than 64
/// MiB.
pub fn each_line<E: From<Error>>(
    path: &Path,
    mut handle: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let read_error = |why: io::Error| Error::read(path, why);
    let mut file = BufReader::new(open_file(path).map_err(read_error)?);
    let mut line = Vec::new();
    while (&mut file).take(MAX_LINE).read_until(b'\n', &mut line).map_err(read_error)? > 0 {
        if !line.ends_with(b"\n") {
            if line.len() as u64 == MAX_LINE {
                return Err(read_error(io::Error::other(TOO_LONG)).into());
            }
            // The file ends with a fragment.
            break;
        }
        handle(&line)?;
        line.clear();
    }
    Ok(())
}

/// The last whole line of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LastLine {
    /// The offset behind the line feed, B. It is 0 if the file has no whole line.
    pub end: u64,
    /// The line without its line feed.
    pub text: Vec<u8>,
}

/// Finds the last whole line of `file`. Only the end of the file is read, because the file may be long.
///
/// # Errors
/// Returns an error if the file cannot be read, or if the last line or the bytes after it are longer than
/// `MAX_LINE`.
pub fn last_line(file: &File) -> io::Result<LastLine> {
    let length = file.metadata()?.len();
    let mut tail_length = FIRST_TAIL;
    while tail_length <= MAX_LINE {
        let start = length.saturating_sub(tail_length);
        let mut tail = vec![0; usize::try_from(length - start).map_err(io::Error::other)?];
        file.read_exact_at(&mut tail, start)?;
        match last_line_in(&tail) {
            LineInTail::Whole(line) => {
                return Ok(LastLine { end: start + line.end as u64 + 1, text: tail[line].to_vec() });
            }
            LineInTail::EndOnly(end) if start == 0 => {
                return Ok(LastLine { end: end as u64 + 1, text: tail[..end].to_vec() });
            }
            LineInTail::None if start == 0 => return Ok(LastLine::default()),
            LineInTail::EndOnly(_) | LineInTail::None => tail_length *= 4,
        }
    }
    Err(io::Error::other(TOO_LONG))
}

/// The part of a file's last line that is in the tail of the file.
enum LineInTail {
    /// The line is whole. The range is without the line feed.
    Whole(Range<usize>),
    /// The line begins before the tail. Its line feed is at this index.
    EndOnly(usize),
    /// The tail has no line feed.
    None,
}

fn last_line_in(tail: &[u8]) -> LineInTail {
    let last_feed = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n');
    let Some(end) = last_feed(tail) else { return LineInTail::None };
    match last_feed(&tail[..end]) {
        Some(feed_before) => LineInTail::Whole(feed_before + 1..end),
        None => LineInTail::EndOnly(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file after `lines` and then a fragment, as a full disk leaves it.
    fn cut_short(folder: &Path, lines: &str) -> (PathBuf, LineFile) {
        let path = folder.join("lines.jsonl");
        let mut file = LineFile::open(&path).unwrap();
        file.add(lines.as_bytes()).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"eve").unwrap();
        (path, file)
    }

    #[test]
    fn a_hole_in_a_file_of_lines_does_not_fill_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines.jsonl");
        fs::write(&path, "1\n").unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let mut lines = Vec::new();
        let ended = each_line(&path, |line| {
            lines.push(line.to_vec());
            Ok::<_, Error>(())
        });
        assert!(ended.unwrap_err().to_string().contains(TOO_LONG));
        assert_eq!(lines, [b"1\n"]);
        let why = LineFile::open(&path).unwrap_err().to_string();
        assert!(why.contains(TOO_LONG), "{why}");
        assert!(fs::metadata(&path).unwrap().len() == 1 << 40, "a damaged file is not changed");
    }

    #[test]
    fn a_line_that_was_written_in_part_is_not_glued_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut file) = cut_short(folder.path(), "{\"a\":1}\n");
        file.add(b"{\"b\":2}\n").unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "{\"a\":1}\n{\"b\":2}\n");
    }

    #[test]
    fn opening_cuts_off_what_follows_the_last_whole_line_however_long_that_is() {
        for line in [String::new(), "{}\n".to_owned(), format!("{{}}\n{}\n", "x".repeat(300_000))] {
            let folder = tempfile::tempdir().unwrap();
            let (path, _) = cut_short(folder.path(), &line);
            LineFile::open(&path).unwrap().add(b"{}\n").unwrap();
            assert!(fs::read_to_string(path).unwrap() == format!("{line}{{}}\n"));
        }
    }

    #[test]
    fn a_fragment_at_the_end_is_no_line_and_whoever_adds_beside_others_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _file) = cut_short(folder.path(), "a\nb\n");
        let read = || {
            let mut lines = Vec::new();
            each_line(&path, |line| {
                lines.push(String::from_utf8_lossy(line).into_owned());
                Ok::<_, Error>(())
            })
            .unwrap();
            lines
        };
        assert_eq!(read(), ["a\n", "b\n"]);
        add_line(&path, b"c\n").unwrap();
        assert_eq!(read(), ["a\n", "b\n", "{\"eve\n", "c\n"]);
    }

    #[test]
    fn each_process_begins_a_file_of_its_own_and_they_are_found_in_that_order() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..11).map(|number| format!("lines-{number}.jsonl")).collect();
        for name in &names {
            LineFile::create_numbered(folder.path(), "lines-", ".jsonl").unwrap().add(b"{}\n").unwrap();
            assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"{}\n");
        }
        for other in ["lines-a.jsonl", "lines-1.rows", "lines-.jsonl"] {
            fs::write(folder.path().join(other), "").unwrap();
        }
        let found = numbered(folder.path(), "lines-", ".jsonl").unwrap();
        assert_eq!(found, names.iter().map(|name| folder.path().join(name)).collect::<Vec<_>>());
    }
}
