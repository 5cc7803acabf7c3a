//! The arenas that a study may run in, which own the path, and the one that it only judges.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Where a cell's figures come from. They are ordered from the model to the world: if two are compared, the
/// later one is the measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArenaName {
    /// Our protocol machines and our path model under a virtual clock.
    Sim,
    /// The kernel's protocols over our path model, in real time.
    Emu,
    /// Hosts that a campaign has measured: it has run, and is judged.
    Campaign,
}

impl ArenaName {
    /// Those in which a study's cells run, in order.
    pub const RUNNABLE: [Self; 2] = [Self::Sim, Self::Emu];

    /// Whether a run takes as long as what it models, and the machine can disturb it.
    pub const fn is_real_time(self) -> bool {
        match self {
            Self::Sim => false,
            Self::Emu | Self::Campaign => true,
        }
    }

    /// As in `--arena` and in study files.
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

/// `sim,emu`.
pub fn arena_list(arenas: &[ArenaName]) -> String {
    let names: Vec<_> = arenas.iter().map(|arena| arena.name()).collect();
    names.join(",")
}
