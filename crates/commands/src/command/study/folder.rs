//! A study's directory on disk.
//!
//! ```text
//! 2026-11-21T19-05-07Z-study-sawashima-1997/
//!   parts/lock            locked while a process works here
//!   parts/plan.json       which study and length
//!   parts/CELL.json       one cell in one arena: every repetition's metrics
//!   study/NAME/           the study: study.toml and what it names beside itself
//!   study.json            the outcome, as `--json` prints it
//!   report.html
//! ```
//!
//! Every file is written under another name and renamed, so that a process killed at any moment leaves whole
//! cells. The parts stay: whoever edits a claim judges again with `--resume`, without running anything.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use talkpath_study::{Cell, CellSamples, Form, Study};

use crate::failure::Failure;
use talkpath_experiment::run_dir::{PARTS, PLAN, RunDir, lock_parts};
use talkpath_experiment::stopwatch::began;
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

    /// The repetitions of `cell` that ran in this `form`, in order, as far as they are kept.
    pub(super) fn samples(&self, cell: &Cell, form: &Form) -> Option<CellSamples> {
        let path = self.part(cell);
        let kept = path.is_file().then(|| read_json::<CellSamples>(&path).ok()).flatten()?;
        (kept.fingerprint == form.fingerprint).then_some(kept)
    }

    /// Keeps the repetitions of a cell.
    pub(super) fn keep(&self, cell: &Cell, samples: &CellSamples) -> Result<(), Failure> {
        Ok(write_bytes(&self.part(cell), &serde_json::to_vec(samples).unwrap_or_default())?)
    }

    fn part(&self, cell: &Cell) -> PathBuf {
        self.path.join(PARTS).join(format!("{}-{}-{}.json", cell.arena, cell.assumption, cell.name))
    }

    fn lock(path: PathBuf) -> Result<Self, Failure> {
        let lock = lock_parts(&path)?;
        Ok(Self { path, _lock: lock })
    }
}

fn day(directory: &Path) -> Option<String> {
    began(directory).map(|at| at.format("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
