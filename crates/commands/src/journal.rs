//! Repetitions of which only figures are kept (`--records none`): one a line, in a file a worker.
//!
//! A folder for each, as other parts have, takes two renames and is created and removed file by file: with
//! repetitions of a few milliseconds that was a tenth of a sweep's time, much of it one after the other in
//! the file system.
//!
//! A line is written in one go and counts once its line feed is there, so a process that is killed loses at
//! most the repetition that it was writing down. The next process begins files of its own.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::path::PathBuf;

use crate::failure::Failure;
use crate::part::{Fresh, Part};
use crate::run_dir::{PARTS, RunDir, open_file, unexpected_json};

/// One worker's file, begun with its first line.
#[derive(Default)]
pub(crate) struct Journal {
    file: Option<(File, PathBuf)>,
}

impl Journal {
    /// Keeps `part`.
    pub(crate) fn append(&mut self, dir: &RunDir, part: &Part) -> Result<(), Failure> {
        let (file, path) = match &mut self.file {
            Some(begun) => begun,
            None => self.file.insert(begin(dir)?),
        };
        let mut line = serde_json::to_vec(part).unwrap_or_default();
        line.push(b'\n');
        file.write_all(&line).map_err(|why| Failure::write(path, why))
    }
}

/// A file that nobody has begun.
fn begin(dir: &RunDir) -> Result<(File, PathBuf), Failure> {
    let mut number = 0_u64;
    loop {
        let path = dir.file(PARTS).join(format!("{STEM}{number}{ENDING}"));
        match File::create_new(&path) {
            Ok(file) => return Ok((file, path)),
            Err(why) if why.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(why) => return Err(Failure::write(&path, why)),
        }
    }
}

/// What earlier processes wrote down in `dir`.
pub(crate) fn read(dir: &RunDir) -> Result<Fresh, Failure> {
    let folder = dir.file(PARTS);
    let mut kept = Fresh::new();
    for entry in fs::read_dir(&folder).map_err(|why| Failure::read(&folder, &why))? {
        let name = entry.map_err(|why| Failure::read(&folder, &why))?.file_name();
        let name = name.to_string_lossy();
        if !(name.starts_with(STEM) && name.ends_with(ENDING)) {
            continue;
        }
        let path = folder.join(&*name);
        let read = |why: io::Error| Failure::read(&path, &why);
        let mut file = BufReader::new(open_file(&path).map_err(read)?);
        let mut line = Vec::new();
        // A line at a time: the text of 100,000 repetitions takes as much memory as their figures.
        while file.read_until(b'\n', &mut line).map_err(read)? > 0 && line.ends_with(b"\n") {
            let part: Part = serde_json::from_slice(&line).map_err(|why| unexpected_json(&path, &why))?;
            kept.insert((part.id(), false), part);
            line.clear();
        }
    }
    Ok(kept)
}

const STEM: &str = "figures-";
const ENDING: &str = ".jsonl";
