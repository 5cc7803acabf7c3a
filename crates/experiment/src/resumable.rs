//! How a run was started, which its directory keeps as long as the run has parts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summary::Provenance;

use crate::Error;
use crate::choice::{ArenaKind, Choice, Records};
use crate::run_dir::{PARTS, PLAN, RunDir};
use crate::shard::Shard;
use crate::store::whole::read_json;

/// What `--resume` and `merge` have to know, beside the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resumable {
    /// Another version may draw other numbers.
    pub talkpath: String,
    /// RFC 3339, UTC.
    pub started: String,
    /// `--arena`.
    pub arena: String,
    /// `--to`.
    pub to: Option<String>,
    /// `--records`.
    pub records: String,
    /// Whether figures come from all rows although none is written, as `compare` does in `sim`.
    #[serde(default)]
    pub exact: bool,
    /// `--series`.
    pub series: String,
    /// `--per-flow`.
    #[serde(default)]
    pub per_flow: bool,
    /// `--rounds`, as `compare` has it by itself.
    #[serde(default)]
    pub rounds: bool,
    /// `--key-file`; the key itself is not kept.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// `--clocks-synchronised`.
    #[serde(default)]
    pub clocks_synchronised: bool,
    /// `--capture`: bytes of each packet.
    #[serde(default)]
    pub capture: Option<u32>,
    /// `--keep-awake`.
    #[serde(default)]
    pub keep_awake: bool,
    /// `--run-again`, ns.
    #[serde(default)]
    pub run_again_ns: Option<u64>,
    /// `--shard`; a whole run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// The program and the machine that began it.
    #[serde(default)]
    pub provenance: Option<Provenance>,
}

impl Resumable {
    /// The arena's name, as summary.json has it.
    pub fn arena_name(&self) -> &str {
        &self.arena
    }

    /// Where it runs.
    ///
    /// # Errors
    /// plan.json has no word of an arena there. The same of the next two.
    pub fn arena(&self) -> Result<ArenaKind, Error> {
        chosen("arena", &self.arena)
    }

    /// Which record files it leaves.
    pub fn records(&self) -> Result<Records, Error> {
        chosen("records", &self.records)
    }

    /// How its states over time are sampled.
    pub fn series(&self) -> Result<SeriesDetail, Error> {
        chosen("series", &self.series)
    }

    /// Which part of a run it is; `None` of a whole one.
    pub fn shard(&self) -> Result<Option<Shard>, Error> {
        let parse = |text: &String| text.parse().map_err(|why| Error::Unusable(format!("{PLAN}: {why}")));
        self.shard.as_ref().map(parse).transpose()
    }

    /// The same of a run whose first part was started at `started`.
    pub fn since(self, started: String) -> Self {
        Self { started, ..self }
    }

    /// The Git revision that its program was built from.
    pub fn revision(&self) -> Option<&str> {
        self.provenance.as_ref().and_then(|of| of.revision.as_deref())
    }

    /// What must be the same of all parts of a run, each with its flag's or its own name.
    pub fn common(&self) -> [(&'static str, &str); 6] {
        [
            ("talkpath", self.talkpath.as_str()),
            ("revision", self.revision().unwrap_or("unknown")),
            ("--arena", self.arena.as_str()),
            ("--records", self.records.as_str()),
            ("--series", self.series.as_str()),
            ("--per-flow", if self.per_flow { "given" } else { "not given" }),
        ]
    }
}

/// The choice that `key` of plan.json has the word of.
fn chosen<T: Choice>(key: &str, word: &str) -> Result<T, Error> {
    let known = || T::ALL.iter().map(|choice| choice.word()).collect::<Vec<_>>().join(", ");
    T::named(word).ok_or_else(|| {
        Error::Unusable(format!("{PLAN}: {key}: found \"{word}\", expected one of {}", known()))
    })
}

/// How the run in `dir` was started.
pub fn resumable(dir: &RunDir) -> Result<Resumable, Error> {
    read_json(&dir.file(&plan_file()))
}

/// Where it stands in a run directory.
pub fn plan_file() -> String {
    format!("{PARTS}/{PLAN}")
}
