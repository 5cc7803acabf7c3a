//! How a run was started, which its directory keeps as long as the run has parts.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use talkpath_measure::summary::Provenance;

use crate::args::{ArenaKind, Records, SeriesPoints};
use crate::failure::Failure;
use crate::run_dir::{PARTS, PLAN, RunDir};
use crate::shard::Shard;
use crate::terminal::{shell_path, shell_word};
use talkpath_experiment::store::whole::read_json;

/// What `--resume` and `merge` have to know, beside the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Resumable {
    /// Another version may draw other numbers.
    pub(crate) talkpath: String,
    /// RFC 3339, UTC.
    pub(crate) started: String,
    /// `--arena`.
    pub(crate) arena: String,
    /// `--to`.
    pub(crate) to: Option<String>,
    /// `--records`.
    pub(crate) records: String,
    /// Whether figures come from all rows although none is written, as `compare` does in `sim`.
    #[serde(default)]
    pub(crate) exact: bool,
    /// `--series`.
    pub(crate) series: String,
    /// `--per-flow`.
    #[serde(default)]
    pub(crate) per_flow: bool,
    /// `--rounds`, as `compare` has it by itself.
    #[serde(default)]
    pub(crate) rounds: bool,
    /// `--key-file`; the key itself is not kept.
    #[serde(default)]
    pub(crate) key_file: Option<PathBuf>,
    /// `--clocks-synchronised`.
    #[serde(default)]
    pub(crate) clocks_synchronised: bool,
    /// `--capture`: bytes of each packet.
    #[serde(default)]
    pub(crate) capture: Option<u32>,
    /// `--keep-awake`.
    #[serde(default)]
    pub(crate) keep_awake: bool,
    /// `--run-again`, ns.
    #[serde(default)]
    pub(crate) run_again_ns: Option<u64>,
    /// `--shard`; a whole run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shard: Option<String>,
    /// The program and the machine that began it.
    #[serde(default)]
    pub(crate) provenance: Option<Provenance>,
}

impl Resumable {
    /// The arena's name, as summary.json has it.
    pub(crate) fn arena_name(&self) -> &str {
        &self.arena
    }

    /// What runs `scenario` in the same place again.
    pub(crate) fn command(&self, scenario: &Path) -> String {
        command_again(scenario, &self.arena, self.to.as_deref())
    }

    pub(crate) fn arena(&self) -> Result<ArenaKind, Failure> {
        flag_value(&self.arena)
    }

    pub(crate) fn records(&self) -> Result<Records, Failure> {
        flag_value(&self.records)
    }

    pub(crate) fn series(&self) -> Result<SeriesPoints, Failure> {
        flag_value(&self.series)
    }

    /// Which part of a run it is; `None` of a whole one.
    pub(crate) fn shard(&self) -> Result<Option<Shard>, Failure> {
        let parse = |text: &String| text.parse().map_err(|why| Failure::Usage(format!("{PLAN}: {why}")));
        self.shard.as_ref().map(parse).transpose()
    }

    /// The same of a run whose first part was started at `started`.
    pub(crate) fn since(self, started: String) -> Self {
        Self { started, ..self }
    }

    /// The Git revision that its program was built from.
    pub(crate) fn revision(&self) -> Option<&str> {
        self.provenance.as_ref().and_then(|of| of.revision.as_deref())
    }

    /// What must be the same of all parts of a run, each with its flag's or its own name.
    pub(crate) fn common(&self) -> [(&'static str, &str); 6] {
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

/// What runs `scenario` again in `arena`. If the far host of a live run is not known, `HOST` stands for it.
pub(crate) fn command_again(scenario: &Path, arena: &str, to: Option<&str>) -> String {
    let to = to.or_else(|| (arena == "live").then_some("HOST"));
    let to = to.map_or_else(String::new, |to| format!(" --to {}", shell_word(to)));
    format!("talkpath run {} --arena {arena}{to}", shell_path(scenario))
}

fn flag_value<T: ValueEnum>(word: &str) -> Result<T, Failure> {
    T::from_str(word, false).map_err(|why| Failure::Usage(format!("{PLAN}: {why}")))
}

/// How the run in `dir` was started.
pub(crate) fn resumable(dir: &RunDir) -> Result<Resumable, Failure> {
    Ok(read_json(&dir.file(&plan_file()))?)
}

/// Where it stands in a run directory.
pub(crate) fn plan_file() -> String {
    format!("{PARTS}/{PLAN}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_repeats_a_run_is_one_that_a_shell_and_the_program_take() {
        let of = |path: &str, arena: &str, to: Option<&str>| command_again(Path::new(path), arena, to);
        assert_eq!(
            of("my runs/scenario.toml", "sim", None),
            "talkpath run 'my runs/scenario.toml' --arena sim"
        );
        assert_eq!(
            of("a.toml", "live", Some("h.example")),
            "talkpath run a.toml --arena live --to h.example"
        );
        // Its directory keeps the host as long as the run has parts.
        assert_eq!(of("a.toml", "live", None), "talkpath run a.toml --arena live --to HOST");
    }
}
