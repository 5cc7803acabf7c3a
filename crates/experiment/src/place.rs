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
    /// `live`: the version of IP to reach the far host over. `None` if the first one that answers is taken.
    pub ip: Option<IpVersion>,
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

/// Returns the number of a version of IP: 4 or 6.
pub const fn ip_number(version: IpVersion) -> u8 {
    match version {
        IpVersion::V4 => 4,
        IpVersion::V6 => 6,
    }
}

/// Returns the version of IP with this number. Returns `None` for other numbers than 4 and 6.
pub const fn ip_of_number(number: u8) -> Option<IpVersion> {
    match number {
        4 => Some(IpVersion::V4),
        6 => Some(IpVersion::V6),
        _ => None,
    }
}

impl Place {
    /// Makes a place with the default options of the arena. `to` is the far host of a `live` run.
    pub fn new(arena: ArenaKind, to: Option<&str>) -> Self {
        Self {
            arena,
            to: to.map(str::to_owned),
            ip: None,
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
