//! The options with which a run was started. A run directory keeps them in parts/plan.json as long as the run
//! has parts, so that `--resume` and `merge` can go on with the same options.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summary::Provenance;

use crate::Error;
use crate::choice::{ArenaKind, Choice, Records};
use crate::run_dir::{PARTS, PLAN, RunDir};
use crate::shard::Shard;
use crate::store::whole::read_json;

/// The contents of parts/plan.json: all that `--resume` and `merge` need beside the scenario.
///
/// Most fields have the value of a flag of `talkpath run`. A default is the value in files of versions that
/// did not have the flag yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// The version of talkpath. Another version may draw other random numbers.
    pub talkpath: String,
    /// The start of the run, in UTC (RFC 3339).
    pub started: String,
    /// `--arena`, as a word: `sim`, `emu` or `live`.
    pub arena: String,
    /// `--to`: the far host.
    pub to: Option<String>,
    /// `--records`, as a word: which record files the run writes.
    pub records: String,
    /// Whether the figures come from all rows although no rows are written. `compare` runs the simulator in
    /// this way.
    #[serde(default)]
    pub exact: bool,
    /// `--series`, as a word: how states over time are sampled.
    pub series: String,
    /// `--per-flow`: whether summary.json has every copy of a flow.
    #[serde(default)]
    pub per_flow: bool,
    /// `--rounds`: whether all cells run once before any cell runs again. `compare` runs them in this order
    /// without the flag.
    #[serde(default)]
    pub rounds: bool,
    /// `--key-file`: the path of the key file. The key itself is not kept.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// `-4` or `-6`: the number of the version of IP, 46 with both flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<u8>,
    /// `--clocks-synchronised`.
    #[serde(default)]
    pub clocks_synchronised: bool,
    /// `--capture`: how many bytes of each packet are captured.
    #[serde(default)]
    pub capture: Option<u32>,
    /// `--qlog`: whether QUIC connections keep a qlog.
    #[serde(default)]
    pub qlog: bool,
    /// `--keep-awake`: whether no processor may sleep during the run.
    #[serde(default)]
    pub keep_awake: bool,
    /// `--run-again`: for how long disturbed repetitions may run again, ns.
    #[serde(default)]
    pub run_again_ns: Option<u64>,
    /// The links whose queue has an assumed size. The scenario in the directory states a size for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed_queues: Vec<String>,
    /// `--shard`, for example `2/4`. `None` if one machine runs all repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// The program and the machine that started the run.
    #[serde(default)]
    pub provenance: Option<Provenance>,
}

/// An option that must be the same in all shards of a run.
pub struct CommonOption<'a> {
    /// The flag of the option, or the key in plan.json if it has no flag.
    pub name: &'static str,
    /// The value in words.
    pub value: &'a str,
}

impl RunOptions {
    /// Reads the options of the run in `dir`.
    ///
    /// # Errors
    /// Returns an error if parts/plan.json cannot be read, or does not hold options.
    pub fn read(dir: &RunDir) -> Result<Self, Error> {
        read_json(&dir.file(&plan_file()))
    }

    /// Returns the arena's name as summary.json has it.
    pub fn arena_name(&self) -> &str {
        &self.arena
    }

    /// Returns the arena.
    ///
    /// # Errors
    /// Returns [`Error::Unusable`] if no arena has the name in plan.json.
    pub fn arena(&self) -> Result<ArenaKind, Error> {
        parse_choice("arena", &self.arena)
    }

    /// Returns which record files the run writes.
    ///
    /// # Errors
    /// Returns [`Error::Unusable`] if plan.json has another word.
    pub fn records(&self) -> Result<Records, Error> {
        parse_choice("records", &self.records)
    }

    /// Returns how states over time are sampled.
    ///
    /// # Errors
    /// Returns [`Error::Unusable`] if plan.json has another word.
    pub fn series(&self) -> Result<SeriesDetail, Error> {
        parse_choice("series", &self.series)
    }

    /// Returns the shard that the directory holds, or `None` if it holds a whole run.
    ///
    /// # Errors
    /// Returns [`Error::Unusable`] if plan.json has something else than a shard there.
    pub fn shard(&self) -> Result<Option<Shard>, Error> {
        let Some(text) = &self.shard else { return Ok(None) };
        let shard = text.parse::<Shard>().map_err(|why| Error::Unusable(format!("{PLAN}: {why}")))?;
        Ok(Some(shard))
    }

    /// Returns the same options with another start of the run.
    pub fn with_start(self, started: String) -> Self {
        Self { started, ..self }
    }

    /// Returns the Git revision that the program was built from, if it is known.
    pub fn revision(&self) -> Option<&str> {
        self.provenance.as_ref()?.revision.as_deref()
    }

    /// Returns the options that must be the same in all shards of a run.
    pub fn common(&self) -> [CommonOption<'_>; 6] {
        let common = |name, value| CommonOption { name, value };
        [
            common("talkpath", self.talkpath.as_str()),
            common("revision", self.revision().unwrap_or("unknown")),
            common("--arena", self.arena.as_str()),
            common("--records", self.records.as_str()),
            common("--series", self.series.as_str()),
            common("--per-flow", if self.per_flow { "given" } else { "not given" }),
        ]
    }
}

/// Returns the name of the file in a run directory that holds the options.
pub fn plan_file() -> String {
    format!("{PARTS}/{PLAN}")
}

/// Returns the choice with the name `word`, which plan.json has under `key`.
fn parse_choice<T: Choice>(key: &str, word: &str) -> Result<T, Error> {
    T::find(word).ok_or_else(|| {
        let words: Vec<&str> = T::ALL.iter().map(|choice| choice.word()).collect();
        let expected = words.join(", ");
        Error::Unusable(format!("{PLAN}: {key}: found \"{word}\", expected one of {expected}"))
    })
}
