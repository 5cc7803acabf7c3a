//! A run's directory on disk, and what makes it survive being killed.
//!
//! ```text
//! 2026-11-21T19-05-07Z-voice-beside-an-upload/
//!   scenario.toml                     written before the first repetition starts
//!   traces/NAME                       the traces that it names, if any
//!   parts/plan.json                   what --resume has to know; locked while a process works here
//!   parts/CELL-REPETITION/            one finished repetition: its records, summary and figures
//!   parts/figures-N.jsonl             finished repetitions without records, one a line (`journal.rs`)
//!   summary.json packets.parquet ...  written at the end, when parts/ goes
//! ```
//!
//! Every file and every part is written under a name that begins with a dot and then renamed, so that a name
//! which is there is whole, whenever the process died. A machine that loses power is another matter: nothing
//! is synced.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use talkpath_scenario::Trace;

use crate::failure::Failure;

/// An open run directory.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Whether this process made it.
    is_new: bool,
    /// Held so that no second process resumes the same run.
    _lock: Option<File>,
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
    pub(crate) fn create(out: &Path, started: &str, name: &str) -> Result<Self, Failure> {
        fs::create_dir_all(out).map_err(|why| Failure::folder(out, why))?;
        let base = format!("{started}-{}", slug(name));
        // A number distinguishes runs that start in the same second; creating a directory is atomic.
        for attempt in 1..=MAX_SAME_SECOND {
            let folder = if attempt == 1 { base.clone() } else { format!("{base}-{attempt}") };
            let path = out.join(folder);
            match fs::create_dir(&path) {
                Ok(()) => {
                    fs::create_dir(path.join(PARTS)).map_err(|why| Failure::write(&path, why))?;
                    return Ok(Self { path, is_new: true, _lock: None });
                }
                Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
                Err(why) => return Err(Failure::write(&path, why)),
            }
        }
        Err(Failure::write(&out.join(base), ErrorKind::AlreadyExists.into()))
    }

    /// A new directory at `path`; one that is there must be empty, or hold only what a process left that died
    /// before it had begun.
    pub(crate) fn create_at(path: &Path) -> Result<Self, Failure> {
        let parts = path.join(PARTS);
        // The scenario is written last: one that is there already is somebody's own.
        let is_left = parts.is_dir() && !path.join(SCENARIO).exists();
        Self::create_unless_used(path, &parts, !is_left)
    }

    /// A new directory at `path` for what is put together from others; one that is there must be empty.
    pub(crate) fn create_empty(path: &Path) -> Result<Self, Failure> {
        Self::create_unless_used(path, path, true)
    }

    /// Makes `folder`, which is `path` or lies in it; if `must_be_empty`, nothing may be in `path`.
    fn create_unless_used(path: &Path, folder: &Path, must_be_empty: bool) -> Result<Self, Failure> {
        let is_new = !path.is_dir();
        if !is_new && must_be_empty && holds_something(path)? {
            let path = path.display();
            return Err(Failure::Usage(format!("{path}: is there already; name a directory that is not")));
        }
        fs::create_dir_all(folder).map_err(|why| Failure::folder(path, why))?;
        Ok(Self { path: path.to_path_buf(), is_new, _lock: None })
    }

    /// Whether a process has begun to run a part in `path`.
    pub(crate) fn is_begun(path: &Path) -> bool {
        path.join(SCENARIO).is_file() && path.join(PARTS).join(PLAN).is_file()
    }

    /// The existing run directory `path`.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if !path.join(SCENARIO).is_file() {
            return Err(Failure::Usage(format!(
                "{}: not a run directory: no {SCENARIO} in it",
                path.display()
            )));
        }
        // What a process left that was killed while it removed parts. Whoever only reads may not be allowed
        // to.
        let _ = remove_folder(&path.join(DEAD));
        Ok(Self { path: path.to_path_buf(), is_new: false, _lock: None })
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
    pub(crate) fn has_parts(&self) -> bool {
        self.path.join(PARTS).is_dir()
    }

    /// Keeps other processes out until this one ends.
    pub(crate) fn lock(&mut self) -> Result<(), Failure> {
        let path = self.path.join(PARTS).join(PLAN);
        let file = File::open(&path).map_err(|why| Failure::read(&path, &why))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Usage(format!("{}: another process works on it", self.path.display())));
            }
            Err(TryLockError::Error(why)) => return Err(Failure::write(&path, why)),
        }
        self._lock = Some(file);
        Ok(())
    }

    /// Keeps one repetition: `fill` writes its files into the folder that it is given.
    ///
    /// An `unfinished` one counts in the figures and is run again by `--resume`.
    pub(crate) fn save_part(
        &self,
        id: PartId,
        unfinished: bool,
        fill: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let target = self.part(id, unfinished);
        let draft = target.with_file_name(format!(".{}", id.name(unfinished)));
        remove_folder(&draft)?;
        remove_folder(&target)?;
        fs::create_dir(&draft).map_err(|why| Failure::write(&draft, why))?;
        fill(&draft)?;
        fs::rename(&draft, &target).map_err(|why| Failure::write(&target, why))
    }

    /// The folder of a part.
    pub(crate) fn part(&self, id: PartId, unfinished: bool) -> PathBuf {
        self.path.join(PARTS).join(id.name(unfinished))
    }

    /// Every whole part in order, with whether it is unfinished.
    pub(crate) fn parts(&self) -> Result<Vec<(PartId, bool)>, Failure> {
        let folder = self.path.join(PARTS);
        let read = |why: io::Error| Failure::read(&folder, &why);
        let mut parts = Vec::new();
        for entry in fs::read_dir(&folder).map_err(read)? {
            let name = entry.map_err(read)?.file_name();
            parts.extend(name.to_str().and_then(PartId::parse));
        }
        parts.sort_unstable();
        Ok(parts)
    }

    /// Removes what an earlier process left half-done or cut short.
    pub(crate) fn discard_unfinished_parts(&self) -> Result<(), Failure> {
        for (id, unfinished) in self.parts()? {
            if unfinished {
                remove_folder(&self.part(id, unfinished))?;
            }
        }
        Ok(())
    }

    /// The run is whole: its parts are in the merged files now.
    ///
    /// They go all at once, by another name: a process that is killed here leaves no half of them, which the
    /// next one would take for the whole.
    pub(crate) fn remove_parts(&self) -> Result<(), Failure> {
        let (parts, dead) = (self.path.join(PARTS), self.path.join(DEAD));
        remove_folder(&dead)?;
        match fs::rename(&parts, &dead) {
            Err(why) if why.kind() != ErrorKind::NotFound => Err(Failure::write(&parts, why)),
            _ => remove_folder(&dead),
        }
    }

    /// Keeps a trace under the name that scenario.toml here calls it by.
    pub(crate) fn write_trace(&self, trace: &Trace) -> Result<(), Failure> {
        write_trace(&self.path, trace)
    }

    /// Takes a directory away that this process made and in which nothing was measured.
    pub(crate) fn discard_if_new(&self) {
        if self.is_new {
            // Already on the way out with an error: what cannot be removed stays.
            let _ = fs::remove_dir_all(&self.path);
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

/// Writes `path` under another name and renames it. The end of a symbolic link is written, and a device or a
/// pipe (`/dev/stdout`) is written into: it cannot be replaced.
pub fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let file = File::options().write(true).open(path).map_err(|why| Failure::write(path, why))?;
        let mut writer = BufWriter::with_capacity(WRITE_AT_ONCE, file);
        fill(&mut writer)?;
        return writer.flush().map_err(|why| Failure::write(path, why));
    }
    let end = match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path).ok(),
        _ => None,
    };
    let path = end.as_deref().unwrap_or(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.draft"));
    let written = File::create(&draft).map_err(|why| Failure::write(path, why)).and_then(|file| {
        let mut writer = BufWriter::with_capacity(WRITE_AT_ONCE, file);
        fill(&mut writer)?;
        writer.flush().map_err(|why| Failure::write(path, why))?;
        fs::rename(&draft, path).map_err(|why| Failure::write(path, why))
    });
    if written.is_err() {
        // The error that is reported came first; a draft that cannot be removed changes nothing.
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Writes `bytes` to `path`, whole or not at all.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, |writer| writer.write_all(bytes).map_err(|why| Failure::write(path, why)))
}

/// Writes `bytes` to `path`, whole or not at all; they are on the disk when this returns.
pub(crate) fn write_lasting(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, |writer| {
        let written = writer.write_all(bytes).and_then(|()| writer.flush());
        written.and_then(|()| writer.get_ref().sync_all()).map_err(|why| Failure::write(path, why))
    })?;
    sync_folder(path.parent().unwrap_or(Path::new("")))
}

/// Writes the names in `folder` through to the disk: a file that was created or renamed there outlasts a
/// power cut.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Failure> {
    // The parent of a plain name is empty.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder).and_then(|open| open.sync_all()).map_err(|why| Failure::write(folder, why))
}

/// Keeps a trace under the name that scenario.toml in `beside` calls it by.
pub(crate) fn write_trace(beside: &Path, trace: &Trace) -> Result<(), Failure> {
    let path = beside.join(&trace.name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|why| Failure::write(folder, why))?;
    }
    write_bytes(&path, trace.text.as_bytes())
}

/// A JSON file that an earlier command wrote.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let bytes = fs::read(path).map_err(|why| Failure::read(path, &why))?;
    serde_json::from_slice(&bytes)
        .map_err(|why| Failure::Usage(format!("{}: not what talkpath writes there: {why}", path.display())))
}

fn holds_something(folder: &Path) -> Result<bool, Failure> {
    Ok(fs::read_dir(folder).map_err(|why| Failure::read(folder, &why))?.next().is_some())
}

fn remove_folder(path: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(path) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(Failure::write(path, why)),
        _ => Ok(()),
    }
}

/// Letters, digits and single dashes, so that a shell needs no quotes.
pub(crate) fn slug(name: &str) -> String {
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
pub(crate) const PLAN: &str = "plan.json";
/// Where finished repetitions wait.
pub(crate) const PARTS: &str = "parts";
const UNFINISHED: &str = "-unfinished";
/// What parts are called while they are removed.
const DEAD: &str = ".parts.dead";

/// Chosen: record files come in pieces of 8 KiB, and a call to the system for each takes longer than one more
/// copy.
const WRITE_AT_ONCE: usize = 64 * 1024;

/// Chosen: keeps a directory's name well under the 255 bytes that file systems allow.
const MAX_SLUG: usize = 60;

/// Chosen: nobody starts more runs of one name in one second.
const MAX_SAME_SECOND: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    const STARTED: &str = "2026-11-21T19-05-07Z";

    #[test]
    fn two_runs_in_the_same_second_get_different_directories() {
        let out = tempfile::tempdir().unwrap();
        let first = RunDir::create(out.path(), STARTED, "A call").unwrap();
        let second = RunDir::create(out.path(), STARTED, "A call").unwrap();
        assert_eq!(first.path(), out.path().join("2026-11-21T19-05-07Z-a-call"));
        assert_eq!(second.path(), out.path().join("2026-11-21T19-05-07Z-a-call-2"));
    }

    #[test]
    fn a_name_becomes_a_word_that_a_shell_takes() {
        assert_eq!(slug("Voice beside: an  upload!"), "voice-beside-an-upload");
        assert_eq!(slug("../../etc"), "etc");
        assert_eq!(slug("通話"), "run");
        assert_eq!(slug(&"x".repeat(300)).len(), MAX_SLUG);
    }

    #[test]
    fn a_link_is_followed_and_a_pipe_is_written_into() {
        let out = tempfile::tempdir().unwrap();
        let (end, link, pipe) = (out.path().join("end"), out.path().join("link"), out.path().join("pipe"));
        std::os::unix::fs::symlink("end", &link).unwrap();
        fs::write(&end, "old").unwrap();
        write_bytes(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&end).unwrap(), b"new");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write_bytes(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
    }

    #[test]
    fn somebodys_own_scenario_beside_a_folder_of_parts_is_not_taken_for_a_part() {
        let out = tempfile::tempdir().unwrap();
        fs::create_dir(out.path().join(PARTS)).unwrap();
        assert!(RunDir::create_at(out.path()).is_ok(), "a process died there before it began");
        fs::write(out.path().join(SCENARIO), "# mine").unwrap();
        let refused = RunDir::create_at(out.path()).unwrap_err();
        assert!(refused.to_string().contains("is there already"), "{refused}");
    }

    #[test]
    fn a_part_is_there_only_when_it_is_whole() {
        let out = tempfile::tempdir().unwrap();
        let dir = RunDir::create(out.path(), STARTED, "parts").unwrap();
        let id = |cell, repetition| PartId { cell, repetition };
        let fails = |_: &Path| Err(Failure::FarEnd("gone".to_owned()));
        assert!(dir.save_part(id(0, 1), false, fails).is_err());
        assert!(dir.parts().unwrap().is_empty());
        for (cell, repetition) in [(10, 0), (2, 11), (2, 3)] {
            dir.save_part(id(cell, repetition), false, |_| Ok(())).unwrap();
        }
        dir.save_part(id(3, 0), true, |_| Ok(())).unwrap();
        let expected = [(id(2, 3), false), (id(2, 11), false), (id(3, 0), true), (id(10, 0), false)];
        assert_eq!(dir.parts().unwrap(), expected);
        dir.discard_unfinished_parts().unwrap();
        assert_eq!(dir.parts().unwrap().len(), 3);
    }

    #[test]
    fn parts_that_were_half_removed_are_no_parts_and_go_when_the_directory_is_opened() {
        let out = tempfile::tempdir().unwrap();
        let dir = RunDir::create(out.path(), STARTED, "parts").unwrap();
        write_bytes(&dir.file(SCENARIO), b"").unwrap();
        let left = dir.file(DEAD).join("0-0");
        fs::create_dir_all(&left).unwrap();
        dir.save_part(PartId { cell: 0, repetition: 1 }, false, |_| Ok(())).unwrap();
        dir.remove_parts().unwrap();
        assert!(!dir.has_parts() && !dir.file(DEAD).is_dir());
        dir.remove_parts().unwrap();
        fs::create_dir_all(&left).unwrap();
        let opened = RunDir::open(dir.path()).unwrap();
        assert!(!opened.has_parts() && !opened.file(DEAD).is_dir());
    }

    #[test]
    fn a_file_that_could_not_be_filled_leaves_the_old_one() {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("summary.json");
        let put = |bytes: &'static [u8]| {
            move |writer: &mut BufWriter<File>| {
                writer.write_all(bytes).map_err(|why| Failure::write(Path::new("x"), why))
            }
        };
        write_whole(&path, put(b"old")).unwrap();
        let broken = write_whole(&path, |writer| {
            put(b"half")(writer)?;
            Err(Failure::FarEnd("gone".to_owned()))
        });
        assert!(broken.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
    }
}
