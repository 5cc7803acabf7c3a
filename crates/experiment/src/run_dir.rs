//! A run's directory on disk, and what makes it survive being killed.
//!
//! ```text
//! 2026-11-21T19-05-07Z-voice-beside-an-upload/
//!   scenario.toml                     written before the first repetition starts
//!   traces/NAME                       the traces that it names, if any
//!   parts/lock                        locked while a process works here
//!   parts/plan.json                   what --resume has to know
//!   parts/figures-N.jsonl             finished repetitions, one a line (`journal.rs`)
//!   parts/figures-N.rows              the files of records that they leave, if those are small
//!   parts/CELL-REPETITION/            one finished repetition with large records
//!   parts/CELL-REPETITION-unfinished/ one that was cut short, until it has run again
//!   summary.json packets.parquet ...  written at the end, when parts/ goes
//! ```
//!
//! Every file (`store/`) and every part is written under a name that begins with a dot and then renamed, so
//! that a name which is there is whole, whenever the process died.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use talkpath_scenario::Trace;

use crate::Error;
use crate::store::lock::{Lock, LockError};
use crate::store::whole::write_bytes;

/// An open run directory.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Whether this process made it.
    is_new: bool,
    /// Held so that no second process resumes the same run.
    lock: Option<Lock>,
}

/// One repetition of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartId {
    /// Index of the cell in the sweep.
    pub cell: u64,
    /// Repetition, from 0.
    pub repetition: u64,
}

impl RunDir {
    /// A new directory under `out`, named after `started` (`2026-11-21T19-05-07Z`) and the scenario.
    pub fn create(out: &Path, started: &str, name: &str) -> Result<Self, Error> {
        let unmade = |path: &Path, why| Error::NoRunDirectory { what: path.display().to_string(), why };
        fs::create_dir_all(out).map_err(|why| Error::NoRunDirectory { what: unmakeable(out), why })?;
        let base = format!("{started}-{}", slug(name));
        // A number distinguishes runs that start in the same second; creating a directory is atomic.
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

    /// A new directory at `path`; one that is there must be empty, or hold only what a process left that died
    /// before it had begun.
    pub fn create_at(path: &Path) -> Result<Self, Error> {
        let parts = path.join(PARTS);
        // The scenario is written last: one that is there already is somebody's own.
        let is_left = || parts.is_dir() && !path.join(SCENARIO).exists();
        let created = Self::create_unless_used(path, &parts, is_left);
        // Whoever begins here found none that had begun: another process has since.
        created.map_err(|why| if Self::is_begun(path) { is_busy(path) } else { why })
    }

    /// A new directory at `path` for what is put together from others; one that is there must be empty.
    pub fn create_empty(path: &Path) -> Result<Self, Error> {
        Self::create_unless_used(path, path, || false)
    }

    /// Makes `folder`, which is `path` or lies in it. Nothing may be in `path` but what `is_left` there.
    fn create_unless_used(path: &Path, folder: &Path, is_left: impl Fn() -> bool) -> Result<Self, Error> {
        let failed = |why| Error::Write { what: unmakeable(path), why };
        if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
            fs::create_dir_all(above).map_err(failed)?;
        }
        // Of two processes that come at once, one has made it.
        let is_new = match fs::create_dir(path) {
            Ok(()) => true,
            Err(_) if path.is_dir() => false,
            Err(why) => return Err(failed(why)),
        };
        if !is_new && holds_something(path)? && !is_left() {
            let path = path.display();
            return Err(Error::Unusable(format!("{path}: is there already; name a directory that is not")));
        }
        fs::create_dir_all(folder).map_err(failed)?;
        Ok(Self { path: path.to_path_buf(), is_new, lock: None })
    }

    /// Whether a process has begun to run a part in `path`.
    pub fn is_begun(path: &Path) -> bool {
        path.join(SCENARIO).is_file() && path.join(PARTS).join(PLAN).is_file()
    }

    /// The existing run directory `path`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if !path.join(SCENARIO).is_file() {
            return Err(Error::Unusable(format!(
                "{}: not a run directory: no {SCENARIO} in it",
                path.display()
            )));
        }
        // What a process left that was killed while it removed parts. Whoever only reads may not be allowed
        // to.
        let _ = remove_folder(&path.join(DEAD));
        Ok(Self { path: path.to_path_buf(), is_new: false, lock: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether finished repetitions wait to be put together.
    pub fn has_parts(&self) -> bool {
        self.path.join(PARTS).is_dir()
    }

    /// Keeps other processes out until this one ends, or has removed the parts.
    pub fn lock(&mut self) -> Result<(), Error> {
        let lock = lock_parts(&self.path);
        // One in which another process works is that one's.
        self.is_new &= !matches!(lock, Err(Error::Unusable(_) | Error::Busy(_)));
        self.lock = Some(lock?);
        Ok(())
    }

    /// As [`Self::lock`], of a directory in which nothing has begun.
    pub fn lock_new(&mut self) -> Result<(), Error> {
        self.lock()?;
        // Another process may have begun since this one looked, and have ended.
        if self.file(SCENARIO).exists() {
            (self.is_new, self.lock) = (false, None);
            return Err(is_busy(&self.path));
        }
        Ok(())
    }

    /// Refuses a directory in which another process works. It may be on a disk that is only read.
    pub fn refuse_company(&self) -> Result<(), Error> {
        let path = self.path.join(PARTS).join(LOCK);
        match Lock::is_held(&path).map_err(|why| Error::read(&path, why))? {
            true => Err(is_busy(&self.path)),
            false => Ok(()),
        }
    }

    /// Keeps one repetition: `fill` writes its files into the folder that it is given.
    ///
    /// An `unfinished` one counts in the figures and is run again by `--resume`. What was kept of the same
    /// repetition goes when the new one is whole.
    pub fn save_part(
        &self,
        id: PartId,
        unfinished: bool,
        fill: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let target = self.part(id, unfinished);
        let beside = |ending: &str| target.with_file_name(format!(".{}{ending}", id.name(unfinished)));
        let (draft, before) = (beside(""), beside(".before"));
        remove_folder(&draft)?;
        fs::create_dir(&draft).map_err(|why| Error::write(&draft, why))?;
        fill(&draft)?;
        remove_folder(&before)?;
        match fs::rename(&target, &before) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(Error::write(&target, why)),
            _ => {}
        }
        fs::rename(&draft, &target).map_err(|why| Error::write(&target, why))?;
        remove_folder(&before)
    }

    /// The folder of a part.
    pub fn part(&self, id: PartId, unfinished: bool) -> PathBuf {
        self.path.join(PARTS).join(id.name(unfinished))
    }

    /// Every whole part in order, with whether it is unfinished.
    pub fn parts(&self) -> Result<Vec<(PartId, bool)>, Error> {
        let folder = self.path.join(PARTS);
        let read = |why: io::Error| Error::read(&folder, why);
        let mut parts = Vec::new();
        for entry in fs::read_dir(&folder).map_err(read)? {
            let name = entry.map_err(read)?.file_name();
            parts.extend(name.to_str().and_then(PartId::parse));
        }
        parts.sort_unstable();
        Ok(parts)
    }

    /// Removes what was kept of a repetition that was cut short: it has run again.
    pub fn discard_unfinished(&self, id: PartId) -> Result<(), Error> {
        remove_folder(&self.part(id, true))
    }

    /// The run is whole: its parts are in the merged files now.
    ///
    /// They go all at once, by another name: a process that is killed here leaves no half of them, which the
    /// next one would take for the whole.
    pub fn remove_parts(&mut self) -> Result<(), Error> {
        let (parts, dead) = (self.path.join(PARTS), self.path.join(DEAD));
        remove_folder(&dead)?;
        match fs::rename(&parts, &dead) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(Error::write(&parts, why)),
            _ => {}
        }
        // NFS keeps a file that is open, under another name in its folder, which then cannot be removed.
        self.lock = None;
        // They are no parts any more: what cannot be removed goes when the directory is opened.
        let _ = remove_folder(&dead);
        Ok(())
    }

    /// Keeps a trace under the name that scenario.toml here calls it by.
    pub fn write_trace(&self, trace: &Trace) -> Result<(), Error> {
        write_trace(&self.path, trace)
    }

    /// Takes a directory away that this process made and in which nothing was measured.
    pub fn discard_if_new(&mut self) {
        if !self.is_new {
            return;
        }
        // By another name, under which nobody looks for it once the lock is let go. Already on the way out
        // with an error: what cannot be removed stays.
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let dead = self.path.with_file_name(format!(".{name}.dead"));
        if fs::rename(&self.path, &dead).is_ok() {
            self.lock = None;
            let _ = fs::remove_dir_all(&dead);
        }
    }
}

impl PartId {
    /// `CELL-REPETITION`.
    pub fn file_name(self) -> String {
        self.name(false)
    }

    fn name(self, unfinished: bool) -> String {
        format!("{}-{}{}", self.cell, self.repetition, if unfinished { UNFINISHED } else { "" })
    }

    fn parse(name: &str) -> Option<(Self, bool)> {
        let (id, unfinished) = match name.strip_suffix(UNFINISHED) {
            Some(id) => (id, true),
            None => (name, false),
        };
        let (cell, repetition) = id.split_once('-')?;
        Some((Self { cell: cell.parse().ok()?, repetition: repetition.parse().ok()? }, unfinished))
    }
}

/// Keeps other processes out of the run directory `path` until the lock that it gives is dropped.
///
/// # Errors
/// [`Error::Busy`] if another process works there; else what the system says.
pub fn lock_parts(path: &Path) -> Result<Lock, Error> {
    own_folder(&path.join(PARTS))?;
    let lock = path.join(PARTS).join(LOCK);
    Lock::take(&lock).map_err(|why| match why {
        LockError::Busy => is_busy(path),
        LockError::Io(why) => Error::write(&lock, why),
    })
}

/// Refuses a folder of a run directory that is a symbolic link: what is written into it would go elsewhere.
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

/// A folder that cannot be made, as an error names it.
fn unmakeable(path: &Path) -> String {
    format!("the folder {}, which cannot be made", path.display())
}

/// Keeps a trace under the name that scenario.toml in `beside` calls it by.
pub fn write_trace(beside: &Path, trace: &Trace) -> Result<(), Error> {
    let path = beside.join(&trace.name);
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

/// Letters, digits and single dashes, so that a shell needs no quotes.
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

/// The scenario as resolved.
pub const SCENARIO: &str = "scenario.toml";
/// What a resumed run has to know.
pub const PLAN: &str = "plan.json";
/// What a process locks that works in the directory.
const LOCK: &str = "lock";
/// Where finished repetitions wait.
pub const PARTS: &str = "parts";
const UNFINISHED: &str = "-unfinished";
/// What parts are called while they are removed.
const DEAD: &str = ".parts.dead";

/// Chosen: keeps a directory's name well under the 255 bytes that file systems allow.
const MAX_SLUG: usize = 60;

/// Chosen: nobody starts more runs of one name in one second.
const MAX_SAME_SECOND: u32 = 10_000;

#[cfg(test)]
#[path = "run_dir_tests.rs"]
mod tests;
