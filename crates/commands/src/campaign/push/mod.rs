//! Copies the records of a campaign to a store, file by file, by the command that the campaign file names.
//!
//! ```text
//! records/ID/FILE ──► CAMPAIGN/day=.../pair=.../measurement=ID/FILE     (partition, of the campaign crate)
//! plan.json       ──► CAMPAIGN/plan.json
//! ```
//!
//! The command is given the path of a file and its key in the store (`command.rs`). Once it has taken every
//! file of a measurement, a line of `uploads.jsonl` says so. Records are only read, and never change once
//! they are there: nobody asks the store what it holds. A thread of the coordinator copies what is new
//! (`uploader.rs`); `talkpath campaign push` copies what is left.

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

/// A campaign's directory, and the command that copies it to a store.
pub(crate) struct Push {
    command: StoreCommand,
    directory: Store,
    /// The command as notes and messages show it.
    name: String,
    /// What the keys of this campaign begin with, without a slash at the end.
    root: String,
    /// Once it is set, the command is ended and nothing more is copied.
    stop: Arc<AtomicBool>,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Files that the command took.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Measurements that were left out, because they had been copied before.
    pub(crate) before: u64,
}

/// Which measurements [`Push::all`] copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those that no note calls copied.
    Left,
    /// Every one, as for a store that has lost something.
    Every,
}

/// Why something was not copied, in words for a person.
#[derive(Debug, thiserror::Error)]
enum Uncopied {
    /// A file of the campaign's directory cannot be read. Of the store that says nothing.
    #[error("{0}")]
    Unread(String),
    /// The command failed.
    #[error("{0}")]
    Store(String),
    /// Somebody stopped it.
    #[error("interrupted")]
    Stopped,
}

impl Uncopied {
    /// True if the store failed.
    fn is_of_the_store(&self) -> bool {
        matches!(self, Self::Store(_))
    }
}

impl Push {
    /// Nothing is started yet.
    pub(crate) fn new(
        command: &StoreCommand,
        campaign: &str,
        directory: Store,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        let (name, root, stop) = (shown(command), slug(campaign), Arc::clone(stop));
        Self { command: command.clone(), directory, name, root, stop }
    }

    /// The command as notes and messages show it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Copies the plan and what is measured of `measurements`. One that cannot be copied holds up no other,
    /// because what has failed least often comes first.
    ///
    /// # Errors
    /// [`Failure::far_end`] with the first reason, or the store's if the store failed too often in a row;
    /// [`Failure::interrupted`].
    pub(crate) fn all(&self, measurements: &[Measurement], scope: Scope) -> Result<Copied, Failure> {
        let noted = uploads(&self.directory, &self.name);
        let mut copied = Copied::default();
        self.plan(&mut copied).map_err(|why| self.failure(&why))?;
        let mut measured: Vec<_> = measurements.iter().filter(|it| self.is_measured(it)).collect();
        if scope == Scope::Left {
            let all = measured.len();
            measured.retain(|it| !noted.there.contains(&it.id));
            copied.before = (all - measured.len()) as u64;
        }
        measured.sort_by_key(|it| noted.failures.get(&it.id).copied().unwrap_or(0));
        let mut failed: Vec<String> = Vec::new();
        // The store's failures since the last measurement that it took.
        let mut in_a_row: Vec<String> = Vec::new();
        for measurement in measured {
            match self.files(measurement, &mut copied) {
                Ok(()) => {
                    in_a_row.clear();
                    self.note(&measurement.id, None);
                }
                Err(Uncopied::Stopped) => return Err(self.failure(&Uncopied::Stopped)),
                Err(why) => {
                    let what = format!("{}: {why}", measurement.id);
                    in_a_row.extend(why.is_of_the_store().then(|| what.clone()));
                    failed.push(what);
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

    /// How the command `push` ends by `why`.
    fn failure(&self, why: &Uncopied) -> Failure {
        let text = format!("{why}; what is copied stays, and the same command goes on");
        match why {
            Uncopied::Stopped => Failure::interrupted(text),
            Uncopied::Unread(_) | Uncopied::Store(_) => Failure::far_end(text),
        }
    }

    fn plan(&self, copied: &mut Copied) -> Result<(), Uncopied> {
        self.copy(&self.directory.plan_file(), &format!("{}/plan.json", self.root), copied)
    }

    /// True if its records are whole.
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

    fn copy(&self, file: &Path, key: &str, copied: &mut Copied) -> Result<(), Uncopied> {
        // What cannot be opened is this machine's mistake, not the store's.
        let opened = File::open(file).and_then(|open| open.metadata());
        let size = opened.map_err(|why| Uncopied::Unread(unread(file, &why)))?.len();
        command::copy(&self.command, file, key, &self.stop)?;
        copied.files += 1;
        copied.bytes += size;
        Ok(())
    }

    /// Notes what became of a measurement. One whose note cannot be written is copied once more.
    fn note(&self, id: &str, why: Option<&str>) {
        let (id, store, why) = (id.to_owned(), self.name.clone(), why.map(str::to_owned));
        let line = Upload { at_ms: millis(now()), id, store, why }.line();
        let _ = add_line(&self.directory.file(UPLOADS), &line);
    }
}

/// What the notes of the campaign's directory say of the store that the command `name` copies to.
pub(crate) fn uploads(directory: &Store, name: &str) -> Uploads {
    Uploads::parse(&fs::read(directory.file(UPLOADS)).unwrap_or_default(), name)
}

/// Every file below `folder`, with its name from there, in the order of the names. Names that begin with a
/// dot are drafts.
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

/// Failures of the store, one after the other, by which it counts as down. Chosen: with a store that is down
/// a pass ends soon, and two measurements that it refuses hold up no other.
const MOST_IN_A_ROW: usize = 3;
/// The notes.
const UPLOADS: &str = "uploads.jsonl";

#[cfg(test)]
mod tests;
