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
use talkpath_study::{Cell, CellSamples, Form, Study};

use crate::failure::Failure;
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
    /// What earlier processes kept, by [`key`].
    kept: BTreeMap<String, CellSamples>,
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
            Some(path) => Self::lock(path),
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

    /// The repetitions of `cell` under `assumption` that ran in this `form`, in order, as far as earlier
    /// processes kept them.
    pub(super) fn samples(&self, cell: &Cell, assumption: &str, form: &Form) -> Option<CellSamples> {
        let wanted = CellSamples::begin(cell, assumption, &form.fingerprint);
        self.kept.get(&key(&wanted)).filter(|kept| kept.fingerprint == form.fingerprint).cloned()
    }

    /// Keeps the repetitions `samples`, which this process ran, a line each.
    pub(super) fn keep(&self, samples: &CellSamples) -> Result<(), Failure> {
        let mut text = Vec::new();
        for sample in &samples.samples {
            let alone = samples.only(|repetition| repetition == sample.repetition);
            text.extend(serde_json::to_vec(&alone).unwrap_or_default());
            text.push(b'\n');
        }
        if text.is_empty() {
            return Ok(());
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *lines {
            Some(file) => file,
            None => lines.insert(LineFile::create_numbered(&self.path.join(PARTS), STEM, LINES)?),
        };
        Ok(file.add(&text)?)
    }

    fn lock(path: PathBuf) -> Result<Self, Failure> {
        let lock = lock_parts(&path)?;
        let mut kept: BTreeMap<String, CellSamples> = BTreeMap::new();
        for file in numbered(&path.join(PARTS), STEM, LINES)? {
            each_line(&file, |line| {
                // What this version does not understand runs again.
                let Ok(later) = serde_json::from_slice::<CellSamples>(line) else { return Ok(()) };
                match kept.get_mut(&key(&later)).filter(|kept| kept.fingerprint == later.fingerprint) {
                    Some(kept) => kept.take_in(later),
                    None => _ = kept.insert(key(&later), later),
                }
                Ok::<_, Failure>(())
            })?;
        }
        Ok(Self { path, kept, lines: Mutex::new(None), _lock: lock })
    }
}

/// A cell among all that a study runs: its arena, assumption set and name.
fn key(samples: &CellSamples) -> String {
    format!("{}\n{}\n{}", samples.arena, samples.assumption, samples.cell)
}

const STEM: &str = "cells-";
const LINES: &str = ".jsonl";

fn day(directory: &Path) -> Option<String> {
    began(directory).map(|at| at.format("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
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
        let kept = |dir: &StudyDir| {
            let of = |it: &CellSamples| {
                let seeds =
                    it.samples.iter().map(|sample| (sample.repetition, sample.seed)).collect::<Vec<_>>();
                (it.fingerprint.clone(), seeds, it.warnings.len())
            };
            dir.kept.values().map(of).collect::<Vec<_>>()
        };
        let killed = StudyDir::lock(path.clone()).unwrap();
        killed.keep(&repetition(1, 1, "x")).unwrap();
        killed.keep(&repetition(0, 2, "x")).unwrap();
        let file = path.join(PARTS).join("cells-0.jsonl");
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 2);
        drop(killed);
        fs::write(&file, text + "{\"cell\":\"a").unwrap();
        let next = StudyDir::lock(path.clone()).unwrap();
        assert_eq!(kept(&next), [("x".to_owned(), vec![(0, 2), (1, 1)], 2)]);
        next.keep(&repetition(1, 3, "x")).unwrap();
        drop(next);
        let last = StudyDir::lock(path.clone()).unwrap();
        assert_eq!(kept(&last), [("x".to_owned(), vec![(0, 2), (1, 3)], 3)]);
        // Somebody edited the cell.
        last.keep(&repetition(0, 4, "y")).unwrap();
        drop(last);
        assert_eq!(kept(&StudyDir::lock(path).unwrap()), [("y".to_owned(), vec![(0, 4)], 1)]);
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
