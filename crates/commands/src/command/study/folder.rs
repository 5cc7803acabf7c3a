//! A study's directory on disk.
//!
//! ```text
//! 2026-11-21T19-05-07Z-study-sawashima-1997/
//!   parts/lock            locked while a process works here
//!   parts/plan.json       which study and length
//!   parts/cells-N.jsonl   each repetition's metrics, a line each, a file for each process
//!   study/NAME/           the study: study.toml and what it names beside itself
//!   study.json            the outcome, as `--json` prints it
//!   report.html
//! ```
//!
//! A line counts once its line feed is there, so that a process killed at any moment loses at most the
//! repetition that it was writing down. The parts stay: whoever edits a claim judges again with `--resume`,
//! without running anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use talkpath_study::{ArenaName, Cell, CellRepetitions, CellSamples, Study};

use crate::failure::Failure;
use talkpath_experiment::Error;
use talkpath_experiment::run_dir::{PARTS, PLAN, RunDir, lock_parts};
use talkpath_experiment::stopwatch::began;
use talkpath_experiment::store::lines::{LineFile, each_line, numbered};
use talkpath_experiment::store::lock::Lock;
use talkpath_experiment::store::whole::{read_json, write_bytes};

/// What two runs must share so that one can go on where the other stopped.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// Another version may draw other numbers.
    talkpath: String,
    study: String,
    quick: bool,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    set: Vec<(String, String)>,
}

/// The folder of the study's copy, which is called as the study.
pub(super) const STUDY_COPY: &str = "study";

/// An open directory of a study's run.
pub(super) struct StudyDir {
    path: PathBuf,
    /// What this and earlier processes kept, by [`CellName::key`].
    kept: Mutex<BTreeMap<String, CellRepetitions>>,
    /// The lines of this process, begun with the first.
    lines: Mutex<Option<LineFile>>,
    /// Held so that no second process works on the same run.
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
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The day on which the run began, UTC, by its directory's name; `None` if somebody renamed it.
    pub(super) fn day(&self) -> Option<String> {
        day(&self.path)
    }

    /// A new one under `out`.
    pub(super) fn create(out: &Path, started: &str, identity: &Identity) -> Result<Self, Failure> {
        let path = RunDir::create(out, started, &identity.title())?.path().to_path_buf();
        let plan = serde_json::to_vec_pretty(identity).unwrap_or_default();
        let opened = Self::lock(path)?;
        write_bytes(&opened.path.join(PARTS).join(PLAN), &plan)?;
        Ok(opened)
    }

    /// The newest one under `out` that holds a run like `identity`.
    pub(super) fn newest(out: &Path, identity: &Identity) -> Result<Self, Failure> {
        let mut found = Vec::new();
        if out.is_dir() {
            for entry in fs::read_dir(out).map_err(|why| Failure::read(out, &why))? {
                found.push(entry.map_err(|why| Failure::read(out, &why))?.path());
            }
        }
        // The names begin with the time.
        found.sort();
        let fits = |path: &PathBuf| {
            let plan = path.join(PARTS).join(PLAN);
            path.to_string_lossy().contains("-study-")
                && plan.is_file()
                && read_json::<Identity>(&plan).is_ok_and(|it| it == *identity)
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

    /// Keeps the files of the study that is judged, so that the directory alone repeats it.
    pub(super) fn keep_study(&self, study: &Study) -> Result<(), Failure> {
        let copy = self.path.join(STUDY_COPY).join(&study.name);
        fs::create_dir_all(&copy).map_err(|why| Failure::write(&copy, why))?;
        for (name, text) in &study.files {
            write_bytes(&copy.join(name), text.as_bytes())?;
        }
        Ok(())
    }

    /// What `with` makes of the repetitions that are kept of the cell `name`, whatever they ran with.
    pub(super) fn cell<T>(&self, name: CellName<'_>, with: impl FnOnce(&mut CellRepetitions) -> T) -> T {
        self.at(name.key(), with)
    }

    fn at<T>(&self, key: String, with: impl FnOnce(&mut CellRepetitions) -> T) -> T {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        with(kept.entry(key).or_default())
    }

    /// Keeps the repetition `one` of `cell`, which has just run, as a line.
    pub(super) fn keep(&self, cell: &Cell, one: CellSamples) -> Result<(), Error> {
        let kept = self.at(CellName::of(&one).key(), |repetitions| repetitions.add(cell, one));
        let mut line = serde_json::to_vec(&kept).unwrap_or_default();
        line.push(b'\n');
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *lines {
            Some(file) => file,
            None => lines.insert(LineFile::create_numbered(&self.path.join(PARTS), STEM, LINES)?),
        };
        file.add(&line)
    }

    fn lock(path: PathBuf) -> Result<Self, Error> {
        let lock = lock_parts(&path)?;
        let mut kept: BTreeMap<String, CellRepetitions> = BTreeMap::new();
        for file in numbered(&path.join(PARTS), STEM, LINES)? {
            each_line(&file, |line| {
                // What this version does not understand runs again.
                if let Ok(one) = serde_json::from_slice::<CellSamples>(line) {
                    kept.entry(CellName::of(&one).key()).or_default().insert(one);
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(Self { path, kept: Mutex::new(kept), lines: Mutex::new(None), _lock: lock })
    }
}

/// A cell among all that a study runs.
#[derive(Clone, Copy)]
pub(super) struct CellName<'a> {
    pub(super) arena: ArenaName,
    /// The name of its assumption set.
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
}

const STEM: &str = "cells-";
const LINES: &str = ".jsonl";

fn day(directory: &Path) -> Option<String> {
    began(directory).map(|at| at.format("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use talkpath_study::{Changes, embedded};

    use super::super::load_embedded;
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
    fn what_several_processes_kept_of_a_cell_is_read_as_one_and_what_ran_again_takes_its_place() {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().to_path_buf();
        fs::create_dir(path.join(PARTS)).unwrap();
        let name = CellName { arena: ArenaName::Emu, assumption: "base", cell: "a" };
        // By repetition its seed, and all warnings; of those that ran with `fingerprint`.
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
    fn a_directory_has_a_day_if_its_name_begins_with_the_time() {
        let of = |name: &str| day(&Path::new("talkpath-runs").join(name));
        assert_eq!(of("2026-11-21T19-05-07Z-study-nor-2010").as_deref(), Some("2026-11-21"));
        for renamed in ["my-Test-study-nor-2010", "2026-11-21-study-nor-2010", "2026-11-21Tea-study-nor-2010"]
        {
            assert_eq!(of(renamed), None, "{renamed}");
        }
    }
}
