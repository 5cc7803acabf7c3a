//! From `--arena` and `--to` to something that runs a scenario.

use std::fs;
use std::path::{Path, PathBuf};

use talkpath_arena::{Arena, ArenaError};
use talkpath_emu::EmuArena;
use talkpath_live::{Key, LiveArena, LiveOptions};
use talkpath_measure::RunRecord;
use talkpath_sim::SimArena;

use crate::args::{self, ArenaKind, flag_word};
use crate::failure::Failure;

/// An arena of its own for one thread.
pub(crate) type Worker = Box<dyn Arena + Send>;

/// Where a run happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) arena: ArenaKind,
    /// The far end; only in `live`.
    pub(crate) to: Option<String>,
    /// The file with the key that the far end demands.
    pub(crate) key_file: Option<PathBuf>,
    /// The user vouches that both hosts' clocks show one time; only in `live`.
    pub(crate) clocks_synchronised: bool,
    /// Bytes of each packet to keep; only in `emu`.
    pub(crate) capture: Option<u32>,
    /// Whether no processor may sleep meanwhile; only in real time.
    pub(crate) keep_awake: bool,
    /// Whether summary.json has every copy of a flow, however many there are.
    pub(crate) per_flow: bool,
}

impl Place {
    /// What the command line says to run something here: nothing for the simulator.
    pub(crate) fn flags(&self) -> String {
        let arena = match (self.arena, &self.to) {
            (ArenaKind::Sim, _) => String::new(),
            (ArenaKind::Live, Some(to)) => format!(" --to {to}"),
            (arena, _) => format!(" --arena {}", flag_word(&arena)),
        };
        let key =
            self.key_file.as_ref().map_or(String::new(), |file| format!(" --key-file {}", file.display()));
        let clocks = if self.clocks_synchronised { " --clocks-synchronised" } else { "" };
        let awake = if self.keep_awake { " --keep-awake" } else { "" };
        let per_flow = if self.per_flow { " --per-flow" } else { "" };
        format!("{arena}{key}{clocks}{awake}{per_flow}")
    }

    /// As the command line says: `--to` alone means `live`.
    pub(crate) fn new(place: &args::Place) -> Result<Self, Failure> {
        let arena = match (place.arena, &place.to) {
            (Some(arena), _) => arena,
            (None, Some(_)) => ArenaKind::Live,
            (None, None) => ArenaKind::Sim,
        };
        let capture = place.capture;
        if capture.is_some() && arena != ArenaKind::Emu {
            return Err(Failure::Usage(format!(
                "--capture belongs to --arena emu: {}",
                match arena {
                    ArenaKind::Sim => "a simulated run is made again when it is exported",
                    ArenaKind::Emu | ArenaKind::Live => "over a real network tcpdump sees the packets",
                }
            )));
        }
        let clocks_synchronised = place.clocks_synchronised;
        if clocks_synchronised && arena != ArenaKind::Live {
            return Err(Failure::Usage(
                "--clocks-synchronised belongs to --arena live: elsewhere both ends read one clock"
                    .to_owned(),
            ));
        }
        if place.keep_awake && arena == ArenaKind::Sim {
            return Err(Failure::Usage(
                "--keep-awake belongs to --arena emu and live: virtual time waits for every processor"
                    .to_owned(),
            ));
        }
        let (keep_awake, per_flow) = (place.keep_awake, place.per_flow);
        let here =
            Self { arena, to: None, key_file: None, clocks_synchronised, capture, keep_awake, per_flow };
        match (arena, &place.to) {
            (ArenaKind::Live, None) => Err(Failure::Usage(
                "--arena live needs --to HOST, a host that runs `talkpath serve`".to_owned(),
            )),
            (ArenaKind::Live, Some(_)) => {
                Ok(Self { to: place.to.clone(), key_file: place.key_file.clone(), ..here })
            }
            (ArenaKind::Sim | ArenaKind::Emu, Some(_)) => Err(Failure::Usage(format!(
                "--to belongs to --arena live, not to --arena {}",
                flag_word(&arena)
            ))),
            (ArenaKind::Sim | ArenaKind::Emu, None) => Ok(here),
        }
    }
}

/// One arena for each of up to `jobs` threads; a real path is measured by one run at a time.
pub(crate) fn connect(place: &Place, jobs: usize) -> Result<Vec<Worker>, Failure> {
    match place.arena {
        ArenaKind::Sim => Ok((0..jobs.max(1)).map(|_| Box::new(SimArena::new()) as Worker).collect()),
        ArenaKind::Emu => {
            let arena = EmuArena::open().map_err(|why| failure(why).1)?;
            Ok(vec![Box::new(match place.capture {
                Some(snaplen) => arena.capturing(snaplen),
                None => arena,
            })])
        }
        ArenaKind::Live => {
            let key = place.key_file.as_deref().map(read_key).transpose()?;
            let host = place.to.as_deref().unwrap_or_default();
            let options = LiveOptions { key, clocks_synchronised: place.clocks_synchronised };
            let arena = LiveArena::connect(host, options).map_err(|why| failure(why).1)?;
            Ok(vec![Box::new(arena)])
        }
    }
}

/// As [`connect`], but for runs that stand beside each other in real time too: each has a path of its own in
/// `emu`.
pub(crate) fn connect_beside(place: &Place, jobs: usize) -> Result<Vec<Worker>, Failure> {
    let mut workers = connect(place, jobs)?;
    if place.arena == ArenaKind::Emu {
        workers.extend((1..jobs).map(|_| Box::new(EmuArena::default()) as Worker));
    }
    Ok(workers)
}

/// What an arena's error means for the program, with what was measured until then.
pub(crate) fn failure(error: ArenaError) -> (Option<RunRecord>, Failure) {
    match error {
        ArenaError::Unsupported(what) => (None, Failure::Usage(what)),
        ArenaError::Unavailable { what, how } => (None, Failure::Unavailable { what, how }),
        ArenaError::FarEnd { what, partial } => (partial.map(|it| *it), Failure::FarEnd(what)),
        ArenaError::Unwelcome(what) => (None, Failure::FarEnd(what)),
        ArenaError::Interrupted { partial } => (partial.map(|it| *it), interrupted()),
    }
}

/// The user stopped it.
pub(crate) fn interrupted() -> Failure {
    Failure::Interrupted("interrupted".to_owned())
}

/// The key in a file.
pub(crate) fn read_key(path: &Path) -> Result<Key, Failure> {
    let shown = path.display();
    let bytes =
        fs::read(path).map_err(|why| Failure::Usage(format!("--key-file {shown}: cannot be read: {why}")))?;
    Key::new(&bytes).map_err(|why| Failure::Usage(format!("--key-file {shown}: {why}")))
}
