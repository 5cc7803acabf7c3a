//! The directory of a run of a study.
//!
//! ```text
//! 2026-11-21T19-05-07Z-study-sawashima-1997/
//!   parts/lock            locked while a process works here
//!   parts/plan.json       the study, its seed and its settings
//!   parts/cells-N.jsonl   the metrics of each repetition on a line; each process has its own file
//!   program.txt           what programs of the user printed, if a scenario has one
//!   study/NAME/           a copy of the study: study.toml and the files that it names
//!   records/ARENA/SET/CELL/REPETITION/   with `--records`: packets.parquet and series.parquet
//!   study.json            the outcome, as `--json` prints it
//!   report.html
//! ```
//!
//! A line counts only if its line feed was written. So a process that is killed loses at most the repetition
//! that it was writing. The parts stay in the directory after the run: after a change of a claim, `--resume`
//! judges it again without running anything.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use talkpath_measure::RunRecord;
use talkpath_measure::record_file::{write_packets, write_series};
use talkpath_study::{ArenaName, Cell, CellRepetitions, CellSamples, Study};

use crate::failure::Failure;
use talkpath_experiment::Error;
use talkpath_experiment::choice::Records;
use talkpath_experiment::part::{PACKETS, PROGRAM, SERIES, record_write_error};
use talkpath_experiment::run_dir::{PARTS, PLAN, RunDir, lock_parts};
use talkpath_experiment::stopwatch::start_of_run;
use talkpath_experiment::store::lines::{LineFile, each_line, numbered};
use talkpath_experiment::store::lock::Lock;
use talkpath_experiment::store::whole::{read_json, write_bytes, write_whole};
use talkpath_units::fnv1a;

const STEM: &str = "cells-";
const LINES: &str = ".jsonl";
/// The folder of the record files.
const RECORDS: &str = "records";

/// What identifies a run of a study. A run can go on only where a run with the same identity stopped.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// The version of talkpath. Another version may draw other random numbers.
    talkpath: String,
    study: String,
    quick: bool,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    set: Vec<(String, String)>,
}

/// The folder that holds the copy of the study. The copy has the name of the study.
pub(super) const STUDY_COPY: &str = "study";

/// The directory of a run, opened and locked by this process.
pub(super) struct StudyDir {
    path: PathBuf,
    /// The repetitions that this process and earlier ones have kept, by [`CellName::key`].
    kept: Mutex<BTreeMap<String, CellRepetitions>>,
    /// The file of this process. It is created with the first line.
    lines: Mutex<Option<LineFile>>,
    /// The lock, which keeps a second process from working on the same run.
    _lock: Lock,
}

impl Identity {
    pub(super) fn new(study: &Study, quick: bool) -> Self {
        Self {
            talkpath: env!("CARGO_PKG_VERSION").to_owned(),
            study: study.name.clone(),
            quick,
            seed: study.changes.seed,
            set: study.changes.set.clone(),
        }
    }

    fn title(&self) -> String {
        format!("study {}", self.study)
    }
}

impl StudyDir {
    /// Returns the path of the directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the day on which the run began, in UTC, from the name of the directory. It is `None` if the
    /// directory was renamed.
    pub(super) fn day(&self) -> Option<String> {
        day(&self.path)
    }

    /// Creates a new directory under `out`.
    pub(super) fn create(out: &Path, started: &str, identity: &Identity) -> Result<Self, Failure> {
        let path = RunDir::create(out, started, &identity.title())?.path().to_path_buf();
        let plan = serde_json::to_vec_pretty(identity).unwrap_or_default();
        let opened = Self::lock(path)?;
        write_bytes(&opened.path.join(PARTS).join(PLAN), &plan)?;
        Ok(opened)
    }

    /// Opens the newest directory under `out` whose run has this `identity`.
    pub(super) fn newest(out: &Path, identity: &Identity) -> Result<Self, Failure> {
        let mut found = Vec::new();
        if out.is_dir() {
            for entry in fs::read_dir(out).map_err(|why| Failure::read(out, &why))? {
                found.push(entry.map_err(|why| Failure::read(out, &why))?.path());
            }
        }
        // The names begin with the time, so they sort by time.
        found.sort();
        let fits = |path: &PathBuf| {
            let plan = path.join(PARTS).join(PLAN);
            path.to_string_lossy().contains("-study-")
                && plan.is_file()
                && read_json::<Identity>(&plan).is_ok_and(|found| found == *identity)
        };
        match found.into_iter().rev().find(fits) {
            Some(path) => Ok(Self::lock(path)?),
            None => Err(Failure::Usage(format!(
                "--resume: no run of {} of this length, seed and version under {}",
                identity.study,
                out.display()
            ))),
        }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Copies the files of the study into the directory, so that the directory alone is enough to repeat the
    /// run. Returns the whole path of the folder with the copy.
    pub(super) fn keep_study(&self, study: &Study) -> Result<String, Failure> {
        let copy = self.path.join(STUDY_COPY).join(&study.name);
        fs::create_dir_all(&copy).map_err(|why| Failure::write(&copy, why))?;
        for (name, text) in &study.files {
            write_bytes(&copy.join(name), text.as_bytes())?;
        }
        let whole = copy.canonicalize().map_err(|why| Failure::read(&copy, &why))?;
        Ok(whole.to_string_lossy().into_owned())
    }

    /// Writes the record files of a repetition of the cell `name`, as `records` asks.
    pub(super) fn write_records(
        &self,
        name: CellName<'_>,
        record: &RunRecord,
        records: Records,
    ) -> Result<(), Error> {
        let folder = self.path.join(RECORDS).join(name.folder()).join(record.repetition.to_string());
        fs::create_dir_all(&folder).map_err(|why| Error::write(&folder, why))?;
        if records >= Records::All {
            let path = folder.join(PACKETS);
            write_whole(&path, |out| {
                write_packets(record, out).map_err(|why| record_write_error(&path, why))
            })?;
        }
        let path = folder.join(SERIES);
        write_whole(&path, |out| write_series(record, out).map_err(|why| record_write_error(&path, why)))
    }

    /// Calls `with` on the kept repetitions of the cell `name`, and returns its result. Repetitions that ran
    /// before the cell was edited are among them.
    pub(super) fn cell<T>(&self, name: CellName<'_>, with: impl FnOnce(&mut CellRepetitions) -> T) -> T {
        self.at(name.key(), with)
    }

    fn at<T>(&self, key: String, with: impl FnOnce(&mut CellRepetitions) -> T) -> T {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        with(kept.entry(key).or_default())
    }

    /// Keeps a repetition of `cell` that has just run, as a line of the file.
    pub(super) fn keep(&self, cell: &Cell, repetition: CellSamples) -> Result<(), Error> {
        let key = CellName::of(&repetition).key();
        let kept = self.at(key, |repetitions| repetitions.add(cell, repetition));
        let mut line = serde_json::to_vec(&kept).unwrap_or_default();
        line.push(b'\n');
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *lines {
            Some(file) => file,
            None => lines.insert(LineFile::create_numbered(&self.path.join(PARTS), STEM, LINES)?),
        };
        file.add(&line)
    }

    /// Adds what the program of a repetition printed to program.txt. The lock of `lines` keeps two texts
    /// apart.
    pub(super) fn keep_output(&self, text: &str) -> Result<(), Error> {
        let _only_writer = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.file(PROGRAM);
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|why| Error::write(&path, why))
    }

    /// Locks the directory, and reads the repetitions that earlier processes kept.
    fn lock(path: PathBuf) -> Result<Self, Error> {
        let lock = lock_parts(&path)?;
        let mut kept: BTreeMap<String, CellRepetitions> = BTreeMap::new();
        for file in numbered(&path.join(PARTS), STEM, LINES)? {
            each_line(&file, |line| {
                // A repetition whose line this version cannot read runs again.
                if let Ok(repetition) = serde_json::from_slice::<CellSamples>(line) {
                    kept.entry(CellName::of(&repetition).key()).or_default().insert(repetition);
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(Self { path, kept: Mutex::new(kept), lines: Mutex::new(None), _lock: lock })
    }
}

/// The name of a cell among all cells that a study runs.
#[derive(Clone, Copy)]
pub(super) struct CellName<'a> {
    pub(super) arena: ArenaName,
    /// The name of the set of assumptions.
    pub(super) assumption: &'a str,
    pub(super) cell: &'a str,
}

impl<'a> CellName<'a> {
    fn of(samples: &'a CellSamples) -> Self {
        Self { arena: samples.arena, assumption: &samples.assumption, cell: &samples.cell }
    }

    fn key(self) -> String {
        format!("{}\n{}\n{}", self.arena, self.assumption, self.cell)
    }

    /// Returns the folder of the cell's records. A study may use any text as a name, and no name leads out
    /// of the directory.
    fn folder(self) -> PathBuf {
        let plain = |name: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
            let text: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
            if text.is_empty() || text.starts_with('.') || text != name {
                format!("_{:016x}-{text}", fnv1a(name.bytes()))
            } else {
                text
            }
        };
        PathBuf::from(self.arena.name()).join(plain(self.assumption)).join(plain(self.cell))
    }
}

fn day(directory: &Path) -> Option<String> {
    start_of_run(directory).map(|at| at.format("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use talkpath_study::{Changes, embedded};

    use super::super::find::load_embedded;
    use super::*;

    fn repetition(repetition: u64, seed: u64, fingerprint: &str) -> CellSamples {
        let sample = serde_json::json!({ "repetition": repetition, "seed": seed, "values": {} });
        let cell = serde_json::json!({
            "cell": "a", "arena": "emu", "assumption": "base", "fingerprint": fingerprint,
            "samples": [sample], "warnings": [format!("{seed} was late")],
        });
        serde_json::from_value(cell).unwrap()
    }

    #[test]
    fn repetitions_of_several_processes_are_read_as_one_cell_and_a_later_one_replaces_an_earlier_one() {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().to_path_buf();
        fs::create_dir(path.join(PARTS)).unwrap();
        let name = CellName { arena: ArenaName::Emu, assumption: "base", cell: "a" };
        // The seed of each repetition that ran with `fingerprint`, and all warnings.
        let kept = |dir: &StudyDir, fingerprint: &str| {
            dir.cell(name, |repetitions| {
                repetitions.retain(|one| one.fingerprint == fingerprint);
                let joined = repetitions.joined().unwrap();
                let seeds = joined.samples.iter().map(|sample| (sample.repetition, sample.seed));
                (seeds.collect::<Vec<_>>(), joined.warnings)
            })
        };
        let study = load_embedded(&embedded()[0], &Changes::default()).unwrap();
        let keep = |dir: &StudyDir, one| dir.keep(&study.cells[0], one).unwrap();
        let late = |seeds: &[u64]| seeds.iter().map(|seed| format!("{seed} was late")).collect::<Vec<_>>();
        let killed = StudyDir::lock(path.clone()).unwrap();
        keep(&killed, repetition(1, 1, "x"));
        keep(&killed, repetition(0, 2, "x"));
        let file = path.join(PARTS).join("cells-0.jsonl");
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 2);
        drop(killed);
        fs::write(&file, text + "{\"cell\":\"a").unwrap();
        let next = StudyDir::lock(path.clone()).unwrap();
        assert_eq!(kept(&next, "x"), (vec![(0, 2), (1, 1)], late(&[2, 1])));
        keep(&next, repetition(1, 3, "x"));
        drop(next);
        let last = StudyDir::lock(path.clone()).unwrap();
        assert_eq!(kept(&last, "x"), (vec![(0, 2), (1, 3)], late(&[2, 3])));
        // Somebody edited the cell.
        keep(&last, repetition(0, 4, "y"));
        drop(last);
        assert_eq!(kept(&StudyDir::lock(path).unwrap(), "y"), (vec![(0, 4)], late(&[4])));
    }

    #[test]
    fn a_cell_has_a_folder_of_its_own_whatever_its_name_is() {
        let folder = |assumption, cell| CellName { arena: ArenaName::Sim, assumption, cell }.folder();
        assert_eq!(folder("base", "udp-6-320"), Path::new("sim/base/udp-6-320"));
        let odd = ["../../x", "..", ".", "a/b", "a_b", "", "ä"].map(|name| folder("base", name));
        for (index, path) in odd.iter().enumerate() {
            assert_eq!(path.components().count(), 3, "{path:?}");
            assert!(path.components().all(|part| part.as_os_str() != ".."), "{path:?}");
            assert!(!odd[..index].contains(path), "{path:?}");
        }
    }

    #[test]
    fn a_directory_has_a_day_if_its_name_begins_with_the_time() {
        let of = |name: &str| day(&Path::new("talkpath-runs").join(name));
        assert_eq!(of("2026-11-21T19-05-07Z-study-nor-2010").as_deref(), Some("2026-11-21"));
        for renamed in ["my-Test-study-nor-2010", "2026-11-21-study-nor-2010", "2026-11-21Tea-study-nor-2010"]
        {
            assert_eq!(of(renamed), None, "{renamed}");
        }
    }
}
