//! Where a scenario runs, and what the commands need of the arenas. The arenas stand above: only the program
//! knows all three, and hands them to its commands as [`Arenas`]. So a change in one compiles no command
//! again.

use core::sync::atomic::{AtomicBool, AtomicI64};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use talkpath_arena::{Arena, ArenaError, Happening};
use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::Scenario;
use talkpath_units::{Duration, Seed};

use crate::args::{self, ExportArgs};
use crate::failure::Failure;
use crate::terminal::{shell_path, shell_word};
use talkpath_experiment::choice::{ArenaKind, Choice};
use talkpath_experiment::run_dir::RunDir;

/// An arena of its own for one thread.
pub type Worker = Box<dyn Arena + Send>;

/// What the program provides to its commands.
pub trait Arenas: Sync {
    /// An arena for each of up to `jobs` threads. Emulated runs have a path of their own each; a real path is
    /// measured by one run at a time.
    fn connect(&self, place: &Place, jobs: usize) -> Result<Vec<Worker>, Failure>;

    /// What `talkpath play` would show of a simulated run, in numbers that a study can hold against the run's
    /// record; `None` if `stop` became true.
    fn watched(&self, scenario: &Scenario, seed: Seed, stop: &AtomicBool) -> Option<Json>;

    /// The bytes of `file`, if they are a key.
    fn read_key(&self, file: &Path) -> Result<Vec<u8>, Failure>;

    /// Measures between two live hosts until its end, and reports what happens.
    fn monitor(&self, monitored: &Monitored<'_>, handle: &mut dyn FnMut(Happening)) -> Result<(), Failure>;

    /// Payload bytes of every message of each flow, `None` of one whose messages differ.
    fn constant_sizes(&self, scenario: &Scenario) -> Result<Vec<Option<u64>>, Failure>;

    /// Writes a run's packets as pcapng, qlog or nam; `unwritten` says what a failed write means.
    fn export_packets(
        &self,
        dir: &RunDir,
        args: &ExportArgs,
        writer: &mut dyn Write,
        unwritten: &dyn Fn(io::Error) -> Failure,
    ) -> Result<(), Failure>;

    /// The Git revision that the program was built from, if it is known.
    fn revision(&self) -> Option<String>;
}

/// What [`Arenas::monitor`] measures.
pub struct Monitored<'a> {
    /// The host that runs `talkpath serve`.
    pub host: &'a str,
    /// The key that it demands, as [`Arenas::read_key`] returned it: a pipe can be read once.
    pub key: Option<&'a [u8]>,
    /// The user vouches that both hosts' clocks show one time.
    pub clocks_synchronised: bool,
    /// What one session measures; its duration is the session's.
    pub scenario: &'a Scenario,
    /// How sessions sample state over time.
    pub series: Option<SeriesDetail>,
    /// Becomes true when the user wants to stop.
    pub interrupt: &'a AtomicBool,
    /// Until when messages are due in the session under way: ns of CLOCK_MONOTONIC, written meanwhile.
    pub measured_until_ns: &'a AtomicI64,
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

    /// What the command line says to run something here: nothing for the simulator.
    pub fn flags(&self) -> String {
        let arena = match (self.arena, &self.to) {
            (ArenaKind::Sim, _) => String::new(),
            (ArenaKind::Live, Some(to)) => format!(" --to {}", shell_word(to)),
            (arena, _) => format!(" --arena {}", arena.word()),
        };
        let key =
            self.key_file.as_ref().map_or(String::new(), |file| format!(" --key-file {}", shell_path(file)));
        let clocks = if self.clocks_synchronised { " --clocks-synchronised" } else { "" };
        let awake = if self.keep_awake { " --keep-awake" } else { "" };
        let again =
            self.run_again.map_or_else(String::new, |time| format!(" --run-again {}s", time.as_secs_f64()));
        let per_flow = if self.per_flow { " --per-flow" } else { "" };
        format!("{arena}{key}{clocks}{awake}{again}{per_flow}")
    }

    /// As the command line says: `--to` alone means `live`.
    pub fn new(place: &args::Place) -> Result<Self, Failure> {
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
        if place.run_again.is_some() && arena == ArenaKind::Sim {
            return Err(Failure::Usage(
                "--run-again belongs to --arena emu and live: in virtual time no machine disturbs a run"
                    .to_owned(),
            ));
        }
        let here = Self {
            clocks_synchronised,
            capture,
            keep_awake: place.keep_awake,
            run_again: place.run_again,
            per_flow: place.per_flow,
            ..Self::of(arena, None)
        };
        match (arena, &place.to) {
            (ArenaKind::Live, None) => Err(Failure::Usage(
                "--arena live needs --to HOST, a host that runs `talkpath serve`".to_owned(),
            )),
            (ArenaKind::Live, Some(_)) => {
                Ok(Self { to: place.to.clone(), key_file: place.key_file.clone(), ..here })
            }
            (ArenaKind::Sim | ArenaKind::Emu, Some(_)) => {
                Err(Failure::Usage(format!("--to belongs to --arena live, not to --arena {}", arena.word())))
            }
            (ArenaKind::Sim | ArenaKind::Emu, None) => Ok(here),
        }
    }
}

/// What an arena's error means for the program, with what was measured until then.
pub fn failure(error: ArenaError) -> (Option<RunRecord>, Failure) {
    match error {
        ArenaError::Unsupported(what) => (None, Failure::Usage(what)),
        ArenaError::Unavailable { what, how } => (None, Failure::Unavailable { what, how }),
        ArenaError::FarEnd { what, partial } => (partial.map(|it| *it), Failure::FarEnd(what)),
        ArenaError::Unwelcome(what) => (None, Failure::FarEnd(what)),
        ArenaError::Interrupted { partial } => (partial.map(|it| *it), interrupted()),
    }
}

/// This machine gives no thread; `why` is the system's.
pub(crate) fn no_thread(why: &io::Error) -> Failure {
    failure(ArenaError::no_thread(why)).1
}

/// The user stopped it.
pub fn interrupted() -> Failure {
    Failure::Interrupted("interrupted".to_owned())
}

/// For tests: the workers that a function makes for a number of threads, and nothing else.
#[cfg(test)]
pub(crate) struct TestArenas<'a>(pub(crate) &'a (dyn Fn(usize) -> Vec<Worker> + Sync));

/// For tests that connect to nothing.
#[cfg(test)]
pub(crate) static NO_ARENAS: TestArenas<'static> = TestArenas(&|_| Vec::new());

#[cfg(test)]
impl Arenas for TestArenas<'_> {
    fn connect(&self, _: &Place, jobs: usize) -> Result<Vec<Worker>, Failure> {
        Ok((self.0)(jobs))
    }

    fn watched(&self, _: &Scenario, _: Seed, _: &AtomicBool) -> Option<Json> {
        None
    }

    fn read_key(&self, _: &Path) -> Result<Vec<u8>, Failure> {
        Ok(Vec::new())
    }

    fn monitor(&self, _: &Monitored<'_>, _: &mut dyn FnMut(Happening)) -> Result<(), Failure> {
        Ok(())
    }

    fn constant_sizes(&self, _: &Scenario) -> Result<Vec<Option<u64>>, Failure> {
        Ok(Vec::new())
    }

    fn export_packets(
        &self,
        _: &RunDir,
        _: &ExportArgs,
        _: &mut dyn Write,
        _: &dyn Fn(io::Error) -> Failure,
    ) -> Result<(), Failure> {
        Ok(())
    }

    fn revision(&self) -> Option<String> {
        None
    }
}
