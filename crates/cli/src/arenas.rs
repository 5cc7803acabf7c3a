//! From `--arena` and `--to` to something that runs a scenario.

use talkpath_arena::Arena;
use talkpath_sim::SimArena;

use crate::args::{self, ArenaKind};
use crate::experiment::flag_word;
use crate::failure::Failure;

/// An arena of its own for one thread.
pub(crate) type Worker = Box<dyn Arena + Send>;

/// Where a run happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) arena: ArenaKind,
    pub(crate) to: Option<String>,
}

impl Place {
    /// As asked for: `--to` alone means `live`.
    pub(crate) fn new(place: &args::Place) -> Result<Self, Failure> {
        let arena = match (place.arena, &place.to) {
            (Some(arena), _) => arena,
            (None, Some(_)) => ArenaKind::Live,
            (None, None) => ArenaKind::Sim,
        };
        match (arena, &place.to) {
            (ArenaKind::Live, None) => Err(Failure::Usage(
                "--arena live needs --to HOST, a host that runs `talkpath serve`".to_owned(),
            )),
            (ArenaKind::Live, Some(to)) => Ok(Self { arena, to: Some(to.clone()) }),
            (ArenaKind::Sim | ArenaKind::Emu, Some(_)) => Err(Failure::Usage(format!(
                "--to belongs to --arena live, not to --arena {}",
                flag_word(&arena)
            ))),
            (ArenaKind::Sim | ArenaKind::Emu, None) => Ok(Self { arena, to: None }),
        }
    }
}

/// One arena for each of up to `jobs` threads; a real path is measured by one run at a time.
pub(crate) fn connect(place: &Place, jobs: usize) -> Result<Vec<Worker>, Failure> {
    match place.arena {
        ArenaKind::Sim => Ok((0..jobs.max(1)).map(|_| Box::new(SimArena::new()) as Worker).collect()),
        ArenaKind::Emu => Err(emu_is_missing()),
        ArenaKind::Live => live(place.to.as_deref().unwrap_or_default()),
    }
}

fn live(_to: &str) -> Result<Vec<Worker>, Failure> {
    Err(emu_is_missing())
}

/// The emulator is promised and not there yet.
pub(crate) fn emu_is_missing() -> Failure {
    Failure::Unavailable {
        what: "--arena emu is not built yet: this version has sim and live".to_owned(),
        how: "use --arena sim, or --arena live with `talkpath serve` on another host".to_owned(),
    }
}
