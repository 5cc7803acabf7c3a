//! Where an experiment runs, and who runs it there.

use std::path::PathBuf;

use talkpath_arena::Arena;
use talkpath_units::Duration;

use crate::Error;
use crate::choice::ArenaKind;

/// An arena of its own for one thread.
pub type Worker = Box<dyn Arena + Send>;

/// What makes workers. Only the program knows which arenas there are.
pub trait Connect: Sync {
    /// An arena for each of up to `jobs` threads. Emulated runs have a path of their own each; a real path is
    /// measured by one run at a time.
    ///
    /// # Errors
    /// The arena is not available here, or the far end is not there.
    fn connect(&self, place: &Place, jobs: usize) -> Result<Vec<Worker>, Error>;

    /// The Git revision that the program was built from, if it is known.
    fn revision(&self) -> Option<String>;
}

/// Where a run happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Simulated, emulated or live.
    pub arena: ArenaKind,
    /// The far end; only in `live`.
    pub to: Option<String>,
    /// The file with the key that the far end demands.
    pub key_file: Option<PathBuf>,
    /// The user vouches that both hosts' clocks show one time; only in `live`.
    pub clocks_synchronised: bool,
    /// Bytes of each packet to keep; only in `emu`.
    pub capture: Option<u32>,
    /// Whether no processor may sleep meanwhile; only in real time.
    pub keep_awake: bool,
    /// For how long repetitions that the machine disturbed run again in all, in the path's own time; `None`
    /// is for as long as all take once, and at least a minute. Only in real time.
    pub run_again: Option<Duration>,
    /// Whether summary.json has every copy of a flow, however many there are.
    pub per_flow: bool,
}

impl Place {
    /// There, with nothing else asked for.
    pub fn of(arena: ArenaKind, to: Option<&str>) -> Self {
        Self {
            arena,
            to: to.map(str::to_owned),
            key_file: None,
            clocks_synchronised: false,
            capture: None,
            keep_awake: false,
            run_again: None,
            per_flow: false,
        }
    }

    /// Whether the machine can disturb what runs there.
    pub fn is_real_time(&self) -> bool {
        self.arena != ArenaKind::Sim
    }
}
