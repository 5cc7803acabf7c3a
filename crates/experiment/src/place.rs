//! The place of an experiment: its arena, and the options of that arena.

use std::path::PathBuf;

use talkpath_arena::Arena;
use talkpath_scenario::IpVersion;
use talkpath_units::Duration;

use crate::Error;
use crate::choice::ArenaKind;

/// An arena that one thread runs repetitions in.
pub type Worker = Box<dyn Arena + Send>;

/// Makes workers. The program implements this trait, because this crate does not know the arenas.
pub trait Connect: Sync {
    /// Makes workers for up to `jobs` threads. A simulated or emulated run has a path of its own, so each
    /// thread gets a worker. The runs over a real path would disturb each other, so `live` has one worker.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] if this machine does not have the arena, and [`Error::FarEnd`] if the
    /// far host does not answer.
    fn connect(&self, place: &Place, jobs: usize) -> Result<Vec<Worker>, Error>;

    /// Returns the Git revision that the program was built from, if it is known.
    fn revision(&self) -> Option<String>;
}

/// The arena of an experiment, and the options of that arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// `sim`, `emu` or `live`.
    pub arena: ArenaKind,
    /// `live`: the far host, as the user wrote it.
    pub to: Option<String>,
    /// `live`: the version of IP to reach the far host over.
    pub ip: Versions,
    /// `live`: the file with the key that the far host demands.
    pub key_file: Option<PathBuf>,
    /// `live`: whether the user vouches that the clocks of both hosts show the same time.
    pub clocks_synchronised: bool,
    /// `emu`: how many bytes of each packet are captured. `None` if packets are not captured.
    pub capture: Option<u32>,
    /// `emu` and `live`: whether the near ends of QUIC connections keep a qlog.
    pub qlog: bool,
    /// `live`: whether a run finds out how long the path keeps a UDP mapping.
    pub mapping_lifetime: bool,
    /// `emu` and `live`: whether no processor may sleep during the experiment.
    pub keep_awake: bool,
    /// `emu` and `live`: for how long disturbed repetitions may run again, in total and in the time of the
    /// path. `None` stands for the time that all repetitions take once, but at least a minute.
    pub run_again: Option<Duration>,
    /// Whether summary.json has every copy of a flow, however many copies there are.
    pub per_flow: bool,
}

/// The versions of IP over which the far host is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// The version of the first address that answers.
    #[default]
    First,
    /// This version alone.
    Only(IpVersion),
    /// Both: each cell runs over the version that its scenario names.
    Each,
}

impl Versions {
    /// Returns the number of this choice in plan.json: 4, 6, or 46 for both. The first version that answers
    /// has no number.
    pub const fn number(self) -> Option<u8> {
        match self {
            Self::First => None,
            Self::Only(IpVersion::V4) => Some(4),
            Self::Only(IpVersion::V6) => Some(6),
            Self::Each => Some(46),
        }
    }

    /// Returns the choice with this number.
    pub const fn of_number(number: Option<u8>) -> Self {
        match number {
            Some(4) => Self::Only(IpVersion::V4),
            Some(6) => Self::Only(IpVersion::V6),
            Some(46) => Self::Each,
            _ => Self::First,
        }
    }

    /// Returns the flags of this choice, each with a space before it.
    pub const fn flags(self) -> &'static str {
        match self {
            Self::First => "",
            Self::Only(IpVersion::V4) => " -4",
            Self::Only(IpVersion::V6) => " -6",
            Self::Each => " -4 -6",
        }
    }
}

impl Place {
    /// Makes a place with the default options of the arena. `to` is the far host of a `live` run.
    pub fn new(arena: ArenaKind, to: Option<&str>) -> Self {
        Self {
            arena,
            to: to.map(str::to_owned),
            ip: Versions::First,
            key_file: None,
            clocks_synchronised: false,
            capture: None,
            qlog: false,
            mapping_lifetime: false,
            keep_awake: false,
            run_again: None,
            per_flow: false,
        }
    }

    /// Returns whether the arena runs in real time, so that a busy machine can disturb it.
    pub fn is_real_time(&self) -> bool {
        self.arena != ArenaKind::Sim
    }
}
