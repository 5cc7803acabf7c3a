//! The directory of a run on disk. A process that is killed while it writes leaves a directory that another
//! process can go on with.
//!
//! ```text
//! 2026-11-21T19-05-07Z-voice-beside-an-upload/
//!   scenario.toml                     written before the first repetition starts
//!   traces/NAME                       the traces that the scenario names
//!   parts/lock                        locked while a process works in the directory
//!   parts/plan.json                   the options of the run, for --resume and merge (`run_options.rs`)
//!   parts/figures-N.jsonl             small parts, one part per line (`journal.rs`)
//!   parts/figures-N.rows              the record files of these parts
//!   parts/CELL-REPETITION/            the part of one finished repetition with large record files
//!   parts/CELL-REPETITION-unfinished/ the part of a repetition that was cut short, until it has run again
//!   summary.json packets.parquet ...  written at the end, when parts/ is removed
//! ```
//!
//! Every file (`store/`) and every folder of a part is written under a name that begins with a dot, and is
//! renamed when it is whole. So a file or folder with its final name is whole, even after a kill.
//!
//! Begin to read with [`RunDir::create`] and [`RunDir::save_part`].

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use talkpath_scenario::Trace;

use crate::Error;
use crate::store::lock::{Lock, LockError};
use crate::store::whole::write_bytes;

/// The scenario with every default written out.
pub const SCENARIO: &str = "scenario.toml";
/// The options of the run, which a resumed run needs.
pub const PLAN: &str = "plan.json";
/// The file that a process locks while it works in the directory.
const LOCK: &str = "lock";
/// The folder of the parts.
pub const PARTS: &str = "parts";
/// The end of the folder's name if the attempt was cut short.
const UNFINISHED: &str = "-unfinished";
/// The name of the folder of the parts while it is removed.
const DEAD: &str = ".parts.dead";

/// The longest slug, in characters. We chose 60, because file systems allow 255 bytes for a name, and the
/// name of a run directory has a time, too.
const MAX_SLUG: usize = 60;

/// The largest number of runs with the same name that start in the same second. We chose 10,000, which is
/// more than anybody starts.
const MAX_SAME_SECOND: u32 = 10_000;

/// An open run directory.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Whether this process made it.
    is_new: bool,
    /// The lock that keeps a second process from resuming the same run.
    lock: Option<Lock>,
}

/// The repetition that a part belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartId {
    /// The index of the cell in the plan.
    pub cell: u64,
    /// The number of the repetition, from 0.
    pub repetition: u64,
}

/// The name of a part in a run directory. One repetition may have two parts: one of an attempt that was cut
/// short, and one of a later attempt that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartKey {
    /// The repetition.
    pub id: PartId,
    /// Whether the attempt ended before the scenario's duration was over.
    pub is_cut_short: bool,
}

impl RunDir {
    /// Makes a directory in the folder `out`. The name of the directory has the time `started`, in the form
    /// `2026-11-21T19-05-07Z`, and then the scenario's `name`.
    pub fn create(out: &Path, started: &str, name: &str) -> Result<Self, Error> {
        let unmade = |path: &Path, why| Error::NoRunDirectory { what: path.display().to_string(), why };
        fs::create_dir_all(out).map_err(|why| Error::NoRunDirectory { what: unmakeable(out), why })?;
        let base = format!("{started}-{}", slug(name));
        // Runs that start in the same second get different numbers. Of two processes that create the
        // same directory only one succeeds (mkdir(2)).
        for attempt in 1..=MAX_SAME_SECOND {
            let folder = if attempt == 1 { base.clone() } else { format!("{base}-{attempt}") };
            let path = out.join(folder);
            match fs::create_dir(&path) {
                Ok(()) => {
                    fs::create_dir(path.join(PARTS)).map_err(|why| unmade(&path, why))?;
                    return Ok(Self { path, is_new: true, lock: None });
                }
                Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
                Err(why) => return Err(unmade(&path, why)),
            }
        }
        Err(Error::write(&out.join(base), ErrorKind::AlreadyExists.into()))
    }

    /// Makes the directory `path`. If it exists, it must be empty, or hold only the files of a process that
    /// died before it had written the scenario.
    pub fn create_at(path: &Path) -> Result<Self, Error> {
        let parts = path.join(PARTS);
        // A run writes the scenario last. So a scenario beside a folder of parts belongs to somebody else.
        let is_leftover = || parts.is_dir() && !path.join(SCENARIO).exists();
        let created = Self::create_unless_used(path, &parts, is_leftover);
        // The caller has checked that no run has begun in `path`. If one has by now, another process began it
        // in between.
        created.map_err(|why| if Self::is_begun(path) { is_busy(path) } else { why })
    }

    /// Makes the directory `path` for the merged files of other directories. If it exists, it must be empty.
    pub fn create_empty(path: &Path) -> Result<Self, Error> {
        Self::create_unless_used(path, path, || false)
    }

    /// Makes the directory `path`, and `folder`, which is `path` or a folder in it. If `path` holds
    /// something, this fails unless `is_leftover` returns true.
    fn create_unless_used(path: &Path, folder: &Path, is_leftover: impl Fn() -> bool) -> Result<Self, Error> {
        let failed = |why| Error::Write { what: unmakeable(path), why };
        if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
            fs::create_dir_all(above).map_err(failed)?;
        }
        // If two processes begin at once, one of them makes the directory and the other one finds it.
        let is_new = match fs::create_dir(path) {
            Ok(()) => true,
            Err(_) if path.is_dir() => false,
            Err(why) => return Err(failed(why)),
        };
        if !is_new && holds_something(path)? && !is_leftover() {
            let path = path.display();
            return Err(Error::Unusable(format!("{path}: is there already; name a directory that is not")));
        }
        fs::create_dir_all(folder).map_err(failed)?;
        Ok(Self { path: path.to_path_buf(), is_new, lock: None })
    }

    /// Returns whether a process has begun a run in the directory `path`.
    pub fn is_begun(path: &Path) -> bool {
        path.join(SCENARIO).is_file() && path.join(PARTS).join(PLAN).is_file()
    }

    /// Opens the existing run directory `path`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if !path.join(SCENARIO).is_file() {
            return Err(Error::Unusable(format!(
                "{}: not a run directory: no {SCENARIO} in it",
                path.display()
            )));
        }
        // A process that was killed while it removed the parts has left them under this name. A user who may
        // only read the directory cannot remove them, which does no harm.
        let _ = remove_folder(&path.join(DEAD));
        Ok(Self { path: path.to_path_buf(), is_new: false, lock: None })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file `name` in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns whether there are parts that have not been merged.
    pub fn has_parts(&self) -> bool {
        self.path.join(PARTS).is_dir()
    }

    /// Takes the lock of the directory. It is held until this process ends or removes the parts.
    ///
    /// # Errors
    /// Returns [`Error::Busy`] if another process holds the lock.
    pub fn lock(&mut self) -> Result<(), Error> {
        let lock = lock_parts(&self.path);
        // If another process works in the directory, it belongs to that process, so this one may not discard
        // it.
        self.is_new &= !matches!(lock, Err(Error::Unusable(_) | Error::Busy(_)));
        self.lock = Some(lock?);
        Ok(())
    }

    /// Takes the lock of a directory in which no run has begun, as [`Self::lock`] does.
    ///
    /// # Errors
    /// Returns [`Error::Busy`], also if another process has begun a run in the directory since.
    pub fn lock_new(&mut self) -> Result<(), Error> {
        self.lock()?;
        // Another process may have begun a run since this one checked, and may have ended.
        if self.file(SCENARIO).exists() {
            self.is_new = false;
            self.lock = None;
            return Err(is_busy(&self.path));
        }
        Ok(())
    }

    /// Checks that no other process works in the directory. This works on a read-only disk, too.
    ///
    /// # Errors
    /// Returns [`Error::Busy`] if another process holds the lock.
    pub fn refuse_company(&self) -> Result<(), Error> {
        let path = self.path.join(PARTS).join(LOCK);
        let is_held = Lock::is_held(&path).map_err(|why| Error::read(&path, why))?;
        if is_held { Err(is_busy(&self.path)) } else { Ok(()) }
    }

    /// Makes the folder of the part `key`. `fill` writes the files into the folder whose path it is given.
    ///
    /// The folder has its final name only once it is whole. An older folder of the same part is replaced.
    pub fn save_part(
        &self,
        key: PartKey,
        fill: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let target = self.part_folder(key);
        let draft = target.with_file_name(format!(".{}", key.folder_name()));
        let replaced = target.with_file_name(format!(".{}.before", key.folder_name()));
        remove_folder(&draft)?;
        fs::create_dir(&draft).map_err(|why| Error::write(&draft, why))?;
        fill(&draft)?;
        remove_folder(&replaced)?;
        match fs::rename(&target, &replaced) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(Error::write(&target, why)),
            _ => {}
        }
        fs::rename(&draft, &target).map_err(|why| Error::write(&target, why))?;
        remove_folder(&replaced)
    }

    /// Returns the path of the folder of the part `key`, whether or not there is such a folder.
    pub fn part_folder(&self, key: PartKey) -> PathBuf {
        self.path.join(PARTS).join(key.folder_name())
    }

    /// Returns the keys of all parts that have a folder, in order.
    pub fn parts(&self) -> Result<Vec<PartKey>, Error> {
        let folder = self.path.join(PARTS);
        let unread = |why: io::Error| Error::read(&folder, why);
        let mut parts = Vec::new();
        for entry in fs::read_dir(&folder).map_err(unread)? {
            let name = entry.map_err(unread)?.file_name();
            parts.extend(name.to_str().and_then(PartKey::parse));
        }
        parts.sort_unstable();
        Ok(parts)
    }

    /// Removes the part of the attempt at `id` that was cut short, if there is one. The repetition has run to
    /// its end by now.
    pub fn discard_cut_short(&self, id: PartId) -> Result<(), Error> {
        remove_folder(&self.part_folder(PartKey::cut_short(id)))
    }

    /// Removes the parts, because the merged files hold all of them.
    ///
    /// The folder of the parts is renamed before its files are removed. If the process is killed in between,
    /// the next process finds no parts. Otherwise it would find some of them, and take them for all.
    pub fn remove_parts(&mut self) -> Result<(), Error> {
        let (parts, dead) = (self.path.join(PARTS), self.path.join(DEAD));
        remove_folder(&dead)?;
        match fs::rename(&parts, &dead) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(Error::write(&parts, why)),
            _ => {}
        }
        // If a file that is open is removed on NFS, it stays in its folder under another name, and the folder
        // cannot be removed. So the lock is closed first.
        self.lock = None;
        // Files that cannot be removed now are removed when the directory is opened the next time.
        let _ = remove_folder(&dead);
        Ok(())
    }

    /// Writes a trace under the name that scenario.toml gives it.
    pub fn write_trace(&self, trace: &Trace) -> Result<(), Error> {
        write_trace(&self.path, trace)
    }

    /// Removes the directory if this process made it. The caller has measured nothing in it.
    pub fn discard_if_new(&mut self) {
        if !self.is_new {
            return;
        }
        // The directory is renamed first, so that no other process finds it once the lock is released. The
        // caller already returns an error, so an error of this removal is ignored.
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let dead = self.path.with_file_name(format!(".{name}.dead"));
        if fs::rename(&self.path, &dead).is_ok() {
            self.lock = None;
            let _ = fs::remove_dir_all(&dead);
        }
    }
}

impl PartId {
    /// Returns `CELL-REPETITION`.
    pub fn file_name(self) -> String {
        format!("{}-{}", self.cell, self.repetition)
    }

    fn parse(name: &str) -> Option<Self> {
        let (cell, repetition) = name.split_once('-')?;
        Some(Self { cell: cell.parse().ok()?, repetition: repetition.parse().ok()? })
    }
}

impl PartKey {
    /// Makes the part of an attempt that ran to its end.
    pub const fn whole(id: PartId) -> Self {
        Self { id, is_cut_short: false }
    }

    /// Makes the part of an attempt that was cut short.
    pub const fn cut_short(id: PartId) -> Self {
        Self { id, is_cut_short: true }
    }

    fn folder_name(self) -> String {
        let ending = if self.is_cut_short { UNFINISHED } else { "" };
        format!("{}{ending}", self.id.file_name())
    }

    fn parse(name: &str) -> Option<Self> {
        match name.strip_suffix(UNFINISHED) {
            Some(id) => PartId::parse(id).map(Self::cut_short),
            None => PartId::parse(name).map(Self::whole),
        }
    }
}

/// Takes the lock of the run directory `path`. It is held until the returned value is dropped.
///
/// # Errors
/// Returns [`Error::Busy`] if another process holds the lock, and [`Error::Write`] if the lock file cannot be
/// opened or locked.
pub fn lock_parts(path: &Path) -> Result<Lock, Error> {
    own_folder(&path.join(PARTS))?;
    let lock = path.join(PARTS).join(LOCK);
    Lock::take(&lock).map_err(|why| match why {
        LockError::Busy => is_busy(path),
        LockError::Io(why) => Error::write(&lock, why),
    })
}

/// Checks that a folder of a run directory is not a symbolic link, because files that are written into it
/// would go to another place.
///
/// # Errors
/// Returns [`Error::Unusable`] if it is a symbolic link.
pub fn own_folder(folder: &Path) -> Result<(), Error> {
    if fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink()) {
        return Err(Error::Unusable(format!(
            "{}: is a symbolic link, and a run writes into its own directory alone; put the folder itself there",
            folder.display()
        )));
    }
    Ok(())
}

fn is_busy(path: &Path) -> Error {
    Error::Busy(path.to_path_buf())
}

/// Names a folder that cannot be made, for an error.
fn unmakeable(path: &Path) -> String {
    format!("the folder {}, which cannot be made", path.display())
}

/// Writes a trace into `directory`, under the name that the scenario.toml there gives it.
pub fn write_trace(directory: &Path, trace: &Trace) -> Result<(), Error> {
    let path = directory.join(&trace.name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|why| Error::write(folder, why))?;
    }
    write_bytes(&path, trace.text.as_bytes())
}

fn holds_something(folder: &Path) -> Result<bool, Error> {
    Ok(fs::read_dir(folder).map_err(|why| Error::read(folder, why))?.next().is_some())
}

fn remove_folder(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(Error::write(path, why)),
        _ => Ok(()),
    }
}

/// Returns `name` in lower-case letters, digits and single dashes, so that it needs no quotes in a shell.
pub fn slug(name: &str) -> String {
    let mut slug = String::new();
    for character in name.chars().take(MAX_SLUG) {
        match character {
            c if c.is_ascii_alphanumeric() => slug.push(c.to_ascii_lowercase()),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    match slug.trim_end_matches('-') {
        "" => "run".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

#[cfg(test)]
#[path = "run_dir_tests.rs"]
mod tests;
