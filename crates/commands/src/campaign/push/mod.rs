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

pub(crate) use command::quoted_command;
pub(crate) use uploader::Uploader;

/// The file that says what was copied.
const UPLOADS: &str = "uploads.jsonl";
/// After this number of failures in a row the store counts as down. We chose 3, so that copying ends soon if
/// the store is down, but two measurements that the store refuses do not keep the others from being copied.
const MAX_FAILURES_IN_A_ROW: usize = 3;

/// The directory of a campaign, and the command that copies it to a store.
pub(crate) struct Push {
    command: StoreCommand,
    directory: Store,
    /// The text of the command in uploads.jsonl and in messages.
    name: String,
    /// The beginning of all keys of this campaign, without a slash at its end.
    root: String,
    /// When this becomes true, the command is stopped and nothing more is copied.
    stop: Arc<AtomicBool>,
}

/// The amount that was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// The number of files that were copied.
    pub(crate) files: u64,
    /// The size of these files, in bytes.
    pub(crate) bytes: u64,
    /// The number of measurements that were left out because they had been copied before.
    pub(crate) before: u64,
}

/// The measurements that [`Push::all`] copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Only measurements that uploads.jsonl does not call copied.
    Left,
    /// Every measurement. This helps if the store has lost something.
    Every,
}

/// The reason why a file was not copied, in words for a person.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    /// A file in the directory of the campaign cannot be read. The store has not failed.
    #[error("{0}")]
    Read(String),
    /// The command failed.
    #[error("{0}")]
    Store(String),
    /// The user stopped the command.
    #[error("interrupted")]
    Stopped,
}

impl CopyError {
    fn read(path: &Path, error: &std::io::Error) -> Self {
        Self::Read(format!("cannot read {}: {error}", path.display()))
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
        let (name, root, stop) = (quoted_command(command), slug(campaign), Arc::clone(stop));
        Self { command: command.clone(), directory, name, root, stop }
    }

    /// Returns the text of the command in uploads.jsonl and in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Copies the plan, and the records of finished measurements. The measurements that have failed least
    /// often are copied first, so that one that always fails does not delay the others.
    ///
    /// # Errors
    /// Returns [`Failure::far_end`] with the first reason if something could not be copied. Copying ends
    /// early if the store fails [`MAX_FAILURES_IN_A_ROW`] times in a row. Returns [`Failure::interrupted`] if
    /// the user stopped it.
    pub(crate) fn all(&self, measurements: &[Measurement], scope: Scope) -> Result<Copied, Failure> {
        let mut copied = Copied::default();
        self.copy_plan(&mut copied).map_err(|error| self.failure(&error))?;
        let measured = self.measurements_to_copy(measurements, scope, &mut copied);
        let mut failed: Vec<String> = Vec::new();
        // The failures of the store since the last measurement that was copied.
        let mut failed_in_a_row: Vec<String> = Vec::new();
        for measurement in measured {
            match self.copy_measurement(measurement, &mut copied) {
                Ok(()) => {
                    failed_in_a_row.clear();
                    self.write_note(&measurement.id, None);
                }
                Err(CopyError::Stopped) => return Err(self.failure(&CopyError::Stopped)),
                Err(error) => {
                    let message = format!("{}: {error}", measurement.id);
                    if let CopyError::Store(_) = error {
                        failed_in_a_row.push(message.clone());
                    }
                    failed.push(message);
                    self.write_note(&measurement.id, Some(&error.to_string()));
                }
            }
            if let Some(first) = failed_in_a_row.first()
                && failed_in_a_row.len() == MAX_FAILURES_IN_A_ROW
            {
                let message = format!(
                    "{first}; given up after the store failed {MAX_FAILURES_IN_A_ROW} times in a row"
                );
                return Err(self.failure(&CopyError::Store(message)));
            }
        }
        match failed.as_slice() {
            [] => Ok(copied),
            [only] => Err(self.failure(&CopyError::Store(only.clone()))),
            [first, ..] => {
                let message = format!("{first}; {} failed", counted(failed.len(), "measurement"));
                Err(self.failure(&CopyError::Store(message)))
            }
        }
    }

    /// Returns the measurements to copy, in their order. Counts those that were copied before.
    fn measurements_to_copy<'m>(
        &self,
        measurements: &'m [Measurement],
        scope: Scope,
        copied: &mut Copied,
    ) -> Vec<&'m Measurement> {
        let notes = uploads(&self.directory, &self.name);
        let mut to_copy: Vec<&Measurement> = Vec::new();
        for measurement in measurements.iter().filter(|measurement| self.is_measured(measurement)) {
            if scope == Scope::Left && notes.there.contains(&measurement.id) {
                copied.before += 1;
            } else {
                to_copy.push(measurement);
            }
        }
        to_copy.sort_by_key(|measurement| notes.failures.get(&measurement.id).copied().unwrap_or(0));
        to_copy
    }

    /// Makes the failure of `campaign push`.
    fn failure(&self, error: &CopyError) -> Failure {
        let text = format!("{error}; what is copied stays, and the same command goes on");
        match error {
            CopyError::Stopped => Failure::interrupted(text),
            CopyError::Read(_) | CopyError::Store(_) => Failure::far_end(text),
        }
    }

    fn copy_plan(&self, copied: &mut Copied) -> Result<(), CopyError> {
        self.copy(&self.directory.plan_file(), &format!("{}/plan.json", self.root), copied)
    }

    /// Returns whether the records of the measurement are complete.
    fn is_measured(&self, measurement: &Measurement) -> bool {
        self.directory.records(&measurement.id).join(SUMMARY).is_file()
    }

    /// Copies the files of one measurement.
    fn copy_measurement(&self, measurement: &Measurement, copied: &mut Copied) -> Result<(), CopyError> {
        let records = self.directory.records(&measurement.id);
        let folder = format!("{}/{}", self.root, partition(measurement));
        let files = files_below(&records).map_err(|error| CopyError::read(&records, &error))?;
        for (name, path) in files {
            self.copy(&path, &format!("{folder}/{name}"), copied)?;
        }
        Ok(())
    }

    /// Copies one file, and counts it.
    fn copy(&self, file: &Path, key: &str, copied: &mut Copied) -> Result<(), CopyError> {
        // The file is opened first: if that fails, it is not a failure of the store.
        let metadata = File::open(file).and_then(|open| open.metadata());
        let size = metadata.map_err(|error| CopyError::read(file, &error))?.len();
        command::copy(&self.command, file, key, &self.stop)?;
        copied.files += 1;
        copied.bytes += size;
        Ok(())
    }

    /// Writes to uploads.jsonl whether a measurement was copied. If that fails, the measurement is copied
    /// once more.
    fn write_note(&self, id: &str, why: Option<&str>) {
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
    let mut unvisited = vec![(String::new(), folder.to_path_buf())];
    while let Some((prefix, folder)) = unvisited.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let name = format!("{prefix}{name}");
            let file_type = entry.file_type()?;
            if file_type.is_dir() {
                unvisited.push((format!("{name}/"), entry.path()));
            } else if file_type.is_file() {
                files.push((name, entry.path()));
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests;
