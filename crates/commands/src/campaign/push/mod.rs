//! Copies the records of a campaign to a store: a bucket, or a folder.
//!
//! ```text
//! records/ID/FILE ──► CAMPAIGN/day=.../pair=.../measurement=ID/FILE     (partition, of the campaign crate)
//! plan.json       ──► CAMPAIGN/plan.json
//! ```
//!
//! An object is whole or not there. One that is there with the same size and SHA-256 is left, so that a copy
//! that was cut short goes on with the rest. Records are only read.

mod folder;
#[cfg(feature = "s3")]
mod s3;
mod uploader;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use talkpath_campaign::{Measurement, Upload, Uploads, millis, partition};
use talkpath_scenario::campaign::Destination;
use talkpath_units::to_hex;

use super::now;
use super::store::Store;
use crate::failure::Failure;
use talkpath_experiment::part::SUMMARY;
use talkpath_experiment::run_dir::slug;
use talkpath_experiment::store::lines::add_line;

pub(crate) use uploader::Uploader;

/// Where objects are put. Errors are one sentence for a person, with what would be right.
trait Objects: Send {
    /// The size of each object under `folder`, by key.
    fn list(&self, folder: &str) -> Result<BTreeMap<String, u64>, String>;

    /// The SHA-256 of the object `key`, as lowercase hexadecimals; `None` if the store cannot say.
    fn sha256(&self, key: &str) -> Result<Option<String>, String>;

    /// Makes the object `key` of `file`, whole or not at all.
    fn put(&self, key: &str, file: &Path, sha256: &str) -> Result<(), String>;
}

/// A campaign's directory and the store that it is copied to.
pub(crate) struct Push {
    objects: Box<dyn Objects>,
    directory: Store,
    /// The store's URL.
    url: String,
    /// What the keys of this campaign begin with, without a slash at the end.
    root: String,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Objects that were put.
    pub(crate) copied: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Objects that were there already.
    pub(crate) there: u64,
}

/// Why something was not copied, in words for a person.
#[derive(Debug, thiserror::Error)]
enum Uncopied {
    /// A file of the campaign's directory cannot be read. Of the store that says nothing.
    #[error("{0}")]
    Unread(String),
    /// The store refused, or did not answer.
    #[error("{0}")]
    Store(String),
}

impl Uncopied {
    /// True if the store failed.
    fn is_of_the_store(&self) -> bool {
        matches!(self, Self::Store(_))
    }
}

impl Push {
    /// Opens the store; nothing is sent yet.
    pub(crate) fn new(destination: &Destination, campaign: &str, directory: Store) -> Result<Self, Failure> {
        let (objects, prefix): (Box<dyn Objects>, &str) = match destination {
            Destination::Folder(path) => (Box::new(folder::Folder::new(Path::new(path))), ""),
            Destination::S3 { bucket, prefix, endpoint } => (s3(bucket, endpoint.as_deref())?, prefix),
        };
        let root = [prefix, slug(campaign).as_str()].join("/").trim_start_matches('/').to_owned();
        Ok(Self { objects, directory, url: destination.to_string(), root })
    }

    /// The store's URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Copies the plan and what is measured of `measurements`, as far as it is not there. One that cannot be
    /// copied holds up no other, because what has failed least often comes first. The error is the first one,
    /// or the store's if the store failed too often in a row.
    pub(crate) fn all(&self, measurements: &[Measurement]) -> Result<Copied, String> {
        let there = self.objects.list(&self.root)?;
        let noted = uploads(&self.directory, &self.url);
        let mut copied = Copied::default();
        self.plan(&there, &mut copied).map_err(|why| why.to_string())?;
        let mut measured: Vec<_> = measurements.iter().filter(|it| self.is_measured(it)).collect();
        measured.sort_by_key(|it| noted.failures.get(&it.id).copied().unwrap_or(0));
        let mut failed: Vec<String> = Vec::new();
        // The store's failures since the last measurement that it took.
        let mut in_a_row: Vec<String> = Vec::new();
        for measurement in measured {
            match self.files(measurement, &there, &mut copied) {
                Ok(()) => {
                    in_a_row.clear();
                    if !noted.there.contains(&measurement.id) {
                        self.note(&measurement.id, None);
                    }
                }
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
                return Err(format!(
                    "{first}; given up after the store failed {MOST_IN_A_ROW} times in a row"
                ));
            }
        }
        match failed.as_slice() {
            [] => Ok(copied),
            [only] => Err(only.clone()),
            [first, ..] => Err(format!("{first}; {} measurements failed", failed.len())),
        }
    }

    fn plan(&self, there: &BTreeMap<String, u64>, copied: &mut Copied) -> Result<(), Uncopied> {
        self.copy(&self.directory.plan_file(), &format!("{}/plan.json", self.root), there, copied)
    }

    /// Copies one measurement, as far as it is not there.
    fn one(&self, measurement: &Measurement) -> Result<Copied, Uncopied> {
        let folder = format!("{}/{}", self.root, partition(measurement));
        let there = self.objects.list(&folder).map_err(Uncopied::Store)?;
        let mut copied = Copied::default();
        self.files(measurement, &there, &mut copied)?;
        Ok(copied)
    }

    /// True if its records are whole.
    fn is_measured(&self, measurement: &Measurement) -> bool {
        self.directory.records(&measurement.id).join(SUMMARY).is_file()
    }

    fn files(
        &self,
        measurement: &Measurement,
        there: &BTreeMap<String, u64>,
        copied: &mut Copied,
    ) -> Result<(), Uncopied> {
        let records = self.directory.records(&measurement.id);
        let folder = format!("{}/{}", self.root, partition(measurement));
        for (name, path) in files_below(&records).map_err(|why| Uncopied::Unread(unread(&records, &why)))? {
            self.copy(&path, &format!("{folder}/{name}"), there, copied)?;
        }
        Ok(())
    }

    fn copy(
        &self,
        file: &Path,
        key: &str,
        there: &BTreeMap<String, u64>,
        copied: &mut Copied,
    ) -> Result<(), Uncopied> {
        let (size, digest) = sha256_of(file).map_err(|why| Uncopied::Unread(unread(file, &why)))?;
        let is_there =
            || Ok(there.get(key) == Some(&size) && self.objects.sha256(key)?.as_ref() == Some(&digest));
        if is_there().map_err(Uncopied::Store)? {
            copied.there += 1;
            return Ok(());
        }
        self.objects.put(key, file, &digest).map_err(Uncopied::Store)?;
        copied.copied += 1;
        copied.bytes += size;
        Ok(())
    }

    /// Notes what became of a measurement. A note that cannot be written costs a second look at the store.
    fn note(&self, id: &str, why: Option<&str>) {
        let (id, store, why) = (id.to_owned(), self.url.clone(), why.map(str::to_owned));
        let line = Upload { at_ms: millis(now()), id, store, why }.line();
        let _ = add_line(&self.directory.file(UPLOADS), &line);
    }
}

/// What the notes of the campaign's directory say of the store `url`.
pub(crate) fn uploads(directory: &Store, url: &str) -> Uploads {
    Uploads::parse(&fs::read(directory.file(UPLOADS)).unwrap_or_default(), url)
}

#[cfg(feature = "s3")]
fn s3(bucket: &str, endpoint: Option<&str>) -> Result<Box<dyn Objects>, Failure> {
    Ok(Box::new(s3::S3::new(bucket, endpoint)?))
}

#[cfg(not(feature = "s3"))]
fn s3(_: &str, _: Option<&str>) -> Result<Box<dyn Objects>, Failure> {
    Err(Failure::Unavailable {
        what: "this talkpath was built without S3, so it cannot copy to a bucket".to_owned(),
        how: "from the sources: cargo install --path crates/cli --features s3".to_owned(),
    })
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

/// The size of a file and its SHA-256, as lowercase hexadecimals.
fn sha256_of(file: &Path) -> std::io::Result<(u64, String)> {
    let mut file = File::open(file)?;
    let (mut digest, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((size, to_hex(&digest.finalize())));
        }
        digest.update(&buffer[..read]);
        size += read as u64;
    }
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
