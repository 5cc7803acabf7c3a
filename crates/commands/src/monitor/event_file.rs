//! The events of a run directory: events.jsonl beside its other files. Its lines are whole: what a full disk
//! or a kill left of one is cut off.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use crate::failure::Failure;
use crate::run_dir::NOT_THROUGH_A_LINK;

/// Events of a run directory under way.
pub(crate) struct EventFile {
    file: File,
    path: PathBuf,
    /// Where the last whole line ends.
    whole: u64,
}

impl EventFile {
    /// Opens the file `path`; one that is not there is made.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |why| Failure::write(path, why);
        let options = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .custom_flags(NOT_THROUGH_A_LINK)
            .open(path);
        let file = options.map_err(failed)?;
        let (whole, _) = last_line(&file).map_err(failed)?;
        let events = Self { file, path: path.to_path_buf(), whole };
        events.cut().map_err(failed)?;
        Ok(events)
    }

    /// Adds whole lines. Of such as could not be written nothing stays.
    pub(crate) fn add(&mut self, lines: &[u8]) -> Result<(), Failure> {
        // Before, too: what could not be cut off at once must not be glued to the next line.
        let written = self.cut().and_then(|()| self.file.write_all(lines));
        if let Err(why) = written {
            let _ = self.cut();
            return Err(Failure::write(&self.path, why));
        }
        self.whole += lines.len() as u64;
        Ok(())
    }

    /// Cuts off what follows the last whole line.
    fn cut(&self) -> io::Result<()> {
        if self.file.metadata()?.len() > self.whole { self.file.set_len(self.whole) } else { Ok(()) }
    }
}

/// Until when the events in the file `path` go: the time of the newest one, of an interval its end. Without
/// such an event it is when the file was written.
pub(crate) fn last_time(path: &Path) -> Option<DateTime<Utc>> {
    let newest = File::open(path).and_then(|file| last_line(&file)).ok();
    newest
        .and_then(|(_, line)| time_of(&line))
        .or_else(|| Some(fs::metadata(path).ok()?.modified().ok()?.into()))
}

/// When the event of `line` was over.
fn time_of(line: &[u8]) -> Option<DateTime<Utc>> {
    #[derive(Deserialize)]
    struct Line {
        event: String,
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        timestamp: Timestamp,
        sum: Option<Sum>,
    }
    #[derive(Deserialize)]
    struct Timestamp {
        timemillisecs: i64,
    }
    #[derive(Deserialize)]
    struct Sum {
        seconds: f64,
    }
    let Line { event, data } = serde_json::from_slice(line).ok()?;
    let begun = DateTime::from_timestamp_millis(data.timestamp.timemillisecs)?;
    // Of an interval the beginning is given. The sum of `end` is over everything.
    let seconds = data.sum.filter(|_| event == "interval").map_or(0.0, |sum| sum.seconds);
    begun.checked_add_signed(TimeDelta::milliseconds((seconds * 1e3).ceil() as i64))
}

/// Where the last whole line of `file` ends, and that line.
fn last_line(file: &File) -> io::Result<(u64, Vec<u8>)> {
    let length = file.metadata()?.len();
    let mut back = READ_AT_ONCE;
    loop {
        let from = length.saturating_sub(back);
        let mut tail = vec![0; usize::try_from(length - from).map_err(io::Error::other)?];
        file.read_exact_at(&mut tail, from)?;
        let line_end = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n');
        let end = line_end(&tail);
        let begin = end.and_then(|end| line_end(&tail[..end])).map(|before| before + 1);
        match (begin, end) {
            (Some(begin), Some(end)) => return Ok((from + end as u64 + 1, tail[begin..end].to_vec())),
            (None, Some(end)) if from == 0 => return Ok((end as u64 + 1, tail[..end].to_vec())),
            (None, None) if from == 0 => return Ok((0, Vec::new())),
            _ => back = back.saturating_mul(4),
        }
    }
}

/// Bytes from the end in which the last line is first sought (chosen: an interval of a flow takes 3 kB).
const READ_AT_ONCE: u64 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    /// Its file after `lines` and then a fragment, as a full disk leaves it.
    fn cut_short(folder: &Path, lines: &str) -> (PathBuf, EventFile) {
        let path = folder.join("events.jsonl");
        let mut events = EventFile::open(&path).unwrap();
        events.add(lines.as_bytes()).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"eve").unwrap();
        (path, events)
    }

    #[test]
    fn a_line_that_was_written_in_part_is_not_glued_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut events) = cut_short(folder.path(), "{\"a\":1}\n");
        events.add(b"{\"b\":2}\n").unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "{\"a\":1}\n{\"b\":2}\n");
    }

    #[test]
    fn opening_cuts_off_what_follows_the_last_whole_line_however_long_that_is() {
        for line in [String::new(), "{}\n".to_owned(), format!("{{}}\n{}\n", "x".repeat(300_000))] {
            let folder = tempfile::tempdir().unwrap();
            let (path, _) = cut_short(folder.path(), &line);
            EventFile::open(&path).unwrap().add(b"{}\n").unwrap();
            assert!(fs::read_to_string(path).unwrap() == format!("{line}{{}}\n"));
        }
    }

    #[test]
    fn events_go_until_the_end_of_the_newest_one_that_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let line = |event: &str, sum: &str| {
            format!("{{\"event\":\"{event}\",\"data\":{{\"timestamp\":{{\"timemillisecs\":5000}}{sum}}}}}\n")
        };
        let sum = ",\"sum\":{\"start\":3,\"seconds\":2.5}";
        for (lines, expected_ms) in [
            (line("interval", sum), 7_500),
            (line("end", sum), 5_000),
            (line("interval", sum) + &line("outage", ""), 5_000),
        ] {
            let (path, _events) = cut_short(folder.path(), &lines);
            assert_eq!(last_time(&path).map(|at| at.timestamp_millis()), Some(expected_ms), "{lines}");
            fs::remove_file(path).unwrap();
        }
    }
}
