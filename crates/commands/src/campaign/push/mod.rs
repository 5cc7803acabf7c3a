//! Copies the records of a campaign to a store, file by file, by the command that the campaign file names.
//!
//! ```text
//! records/ID/FILE ──► CAMPAIGN/day=.../pair=.../measurement=ID/FILE     (partition, of the campaign crate)
//! plan.json       ──► CAMPAIGN/plan.json
//! ```
//!
//! The command receives the path of a file and its key in the store (`command.rs`). When all files of a
//! measurement have been copied, a line of `uploads.jsonl` says so. Records never change after they have been
//! written, so the store need not be asked what it holds. A thread of the coordinator copies new records
//! (`uploader.rs`), and `talkpath campaign push` copies those that were not copied yet.

mod command;
mod uploader;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use talkpath_campaign::{Measurement, Upload, Uploads, millis, partition};
use talkpath_scenario::campaign::StoreCommand;
use talkpath_units::counted;

use super::now;
use super::store::Store;
use crate::failure::Failure;
use talkpath_experiment::part::SUMMARY;
use talkpath_experiment::run_dir::slug;
use talkpath_experiment::store::lines::add_line;

pub(crate) use command::shown;
pub(crate) use uploader::Uploader;

/// The directory of a campaign, and the command that copies it to a store.
pub(crate) struct Push {
    command: StoreCommand,
    directory: Store,
    /// The text of the command in uploads.jsonl and in messages.
    name: String,
    /// The beginning of all keys of this campaign, without a slash at its end.
    root: String,
    /// When this becomes true, the command is ended and nothing more is copied.
    stop: Arc<AtomicBool>,
}

/// How much was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// How many files were copied.
    pub(crate) files: u64,
    /// The size of these files, in bytes.
    pub(crate) bytes: u64,
    /// How many measurements were left out because they had been copied before.
    pub(crate) before: u64,
}

/// Which measurements [`Push::all`] copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Only measurements that uploads.jsonl does not call copied.
    Left,
    /// Every measurement. This helps if the store has lost something.
    Every,
}

/// Why something was not copied, in words for a person.
#[derive(Debug, thiserror::Error)]
enum Uncopied {
    /// A file in the directory of the campaign cannot be read. The store has not failed.
    #[error("{0}")]
    Unread(String),
    /// The command failed.
    #[error("{0}")]
    Store(String),
    /// The user stopped the command.
    #[error("interrupted")]
    Stopped,
}

impl Uncopied {
    /// Whether the store failed.
    fn is_of_the_store(&self) -> bool {
        matches!(self, Self::Store(_))
    }
}

impl Push {
    /// Describes the copying. Nothing is started yet.
    pub(crate) fn new(
        command: &StoreCommand,
        campaign: &str,
        directory: Store,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        let (name, root, stop) = (shown(command), slug(campaign), Arc::clone(stop));
        Self { command: command.clone(), directory, name, root, stop }
    }

    /// The text of the command in uploads.jsonl and in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Copies the plan, and the records of finished measurements. The measurements that have failed least
    /// often are copied first, so that one that always fails does not delay the others.
    ///
    /// # Errors
    /// Returns [`Failure::far_end`] with the first reason if something could not be copied. It gives up early
    /// if the store fails [`MOST_IN_A_ROW`] times in a row. Returns [`Failure::interrupted`] if the user
    /// stopped it.
    pub(crate) fn all(&self, measurements: &[Measurement], scope: Scope) -> Result<Copied, Failure> {
        let noted = uploads(&self.directory, &self.name);
        let mut copied = Copied::default();
        self.plan(&mut copied).map_err(|why| self.failure(&why))?;
        let mut measured: Vec<_> =
            measurements.iter().filter(|measurement| self.is_measured(measurement)).collect();
        if scope == Scope::Left {
            let all = measured.len();
            measured.retain(|measurement| !noted.there.contains(&measurement.id));
            copied.before = (all - measured.len()) as u64;
        }
        measured.sort_by_key(|measurement| noted.failures.get(&measurement.id).copied().unwrap_or(0));
        let mut failed: Vec<String> = Vec::new();
        // The failures of the store since the last measurement that was copied.
        let mut in_a_row: Vec<String> = Vec::new();
        for measurement in measured {
            match self.files(measurement, &mut copied) {
                Ok(()) => {
                    in_a_row.clear();
                    self.note(&measurement.id, None);
                }
                Err(Uncopied::Stopped) => return Err(self.failure(&Uncopied::Stopped)),
                Err(why) => {
                    let message = format!("{}: {why}", measurement.id);
                    if why.is_of_the_store() {
                        in_a_row.push(message.clone());
                    }
                    failed.push(message);
                    self.note(&measurement.id, Some(&why.to_string()));
                }
            }
            if let Some(first) = in_a_row.first()
                && in_a_row.len() == MOST_IN_A_ROW
            {
                let why = format!("{first}; given up after the store failed {MOST_IN_A_ROW} times in a row");
                return Err(self.failure(&Uncopied::Store(why)));
            }
        }
        match failed.as_slice() {
            [] => Ok(copied),
            [only] => Err(self.failure(&Uncopied::Store(only.clone()))),
            [first, ..] => {
                let why = format!("{first}; {} failed", counted(failed.len(), "measurement"));
                Err(self.failure(&Uncopied::Store(why)))
            }
        }
    }

    /// Makes the failure of `campaign push`.
    fn failure(&self, why: &Uncopied) -> Failure {
        let text = format!("{why}; what is copied stays, and the same command goes on");
        match why {
            Uncopied::Stopped => Failure::interrupted(text),
            Uncopied::Unread(_) | Uncopied::Store(_) => Failure::far_end(text),
        }
    }

    /// Copies the plan.
    fn plan(&self, copied: &mut Copied) -> Result<(), Uncopied> {
        self.copy(&self.directory.plan_file(), &format!("{}/plan.json", self.root), copied)
    }

    /// Whether the records of the measurement are complete.
    fn is_measured(&self, measurement: &Measurement) -> bool {
        self.directory.records(&measurement.id).join(SUMMARY).is_file()
    }

    /// Copies the files of one measurement.
    fn files(&self, measurement: &Measurement, copied: &mut Copied) -> Result<(), Uncopied> {
        let records = self.directory.records(&measurement.id);
        let folder = format!("{}/{}", self.root, partition(measurement));
        for (name, path) in files_below(&records).map_err(|why| Uncopied::Unread(unread(&records, &why)))? {
            self.copy(&path, &format!("{folder}/{name}"), copied)?;
        }
        Ok(())
    }

    /// Copies one file, and counts it.
    fn copy(&self, file: &Path, key: &str, copied: &mut Copied) -> Result<(), Uncopied> {
        // The file is opened first: if that fails, it is not a failure of the store.
        let opened = File::open(file).and_then(|open| open.metadata());
        let size = opened.map_err(|why| Uncopied::Unread(unread(file, &why)))?.len();
        command::copy(&self.command, file, key, &self.stop)?;
        copied.files += 1;
        copied.bytes += size;
        Ok(())
    }

    /// Writes to uploads.jsonl whether a measurement was copied. If that fails, the measurement is copied
    /// once more.
    fn note(&self, id: &str, why: Option<&str>) {
        let (id, store, why) = (id.to_owned(), self.name.clone(), why.map(str::to_owned));
        let line = Upload { at_ms: millis(now()), id, store, why }.line();
        let _ = add_line(&self.directory.file(UPLOADS), &line);
    }
}

/// Reads from uploads.jsonl what was copied by the command `name`.
pub(crate) fn uploads(directory: &Store, name: &str) -> Uploads {
    Uploads::parse(&fs::read(directory.file(UPLOADS)).unwrap_or_default(), name)
}

/// Lists every file below `folder` with its path from there, in the order of the paths. Names that begin with
/// a dot are drafts, and are left out.
fn files_below(folder: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    let mut open = vec![(String::new(), folder.to_path_buf())];
    while let Some((above, folder)) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let name = format!("{above}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push((format!("{name}/"), entry.path()));
            } else if kind.is_file() {
                files.push((name, entry.path()));
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn unread(path: &Path, why: &std::io::Error) -> String {
    format!("cannot read {}: {why}", path.display())
}

/// The store counts as down after this number of failures in a row (chosen). So a pass ends soon if it is
/// down, and two measurements that the store refuses do not keep the others from being copied.
const MOST_IN_A_ROW: usize = 3;
/// The file that says what was copied.
const UPLOADS: &str = "uploads.jsonl";

#[cfg(test)]
mod tests;
