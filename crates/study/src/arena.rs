//! The arenas of a study. Cells run in `sim` and `emu`, where talkpath models the path. The measurements of a
//! `campaign` are only judged.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Where the figures of a cell come from. The arenas are ordered from the model to the world. If two arenas
/// are compared, the later one is the measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArenaName {
    /// Our protocol machines and our path model under a virtual clock.
    Sim,
    /// The kernel's protocols over our path model, in real time.
    Emu,
    /// Real hosts that a campaign has measured.
    Campaign,
}

impl ArenaName {
    /// The arenas in which cells run, in order.
    pub const RUNNABLE: [Self; 2] = [Self::Sim, Self::Emu];

    /// Returns whether a run takes as long as the time that it models. The machine can disturb such a run.
    pub const fn is_real_time(self) -> bool {
        match self {
            Self::Sim => false,
            Self::Emu | Self::Campaign => true,
        }
    }

    /// Returns the name in `--arena` and in study files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Emu => "emu",
            Self::Campaign => "campaign",
        }
    }
}

impl fmt::Display for ArenaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Joins the names of arenas, such as `sim,emu`.
pub fn arena_list(arenas: &[ArenaName]) -> String {
    let names: Vec<_> = arenas.iter().map(|arena| arena.name()).collect();
    names.join(",")
}
