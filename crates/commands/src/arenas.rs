//! Where a scenario runs, and what the commands need of the arenas. This crate depends on no arena: only the
//! program knows all three, and hands them to its commands as [`Arenas`]. So a change in an arena compiles no
//! command again.

use core::sync::atomic::{AtomicBool, AtomicI64};
use std::io::{self, Write};
use std::path::Path;

use serde_json::Value as Json;
use talkpath_arena::{ArenaError, Happening};
use talkpath_experiment::Error;
use talkpath_experiment::place::Connect;
#[cfg(test)]
use talkpath_experiment::place::{Place, Worker};
use talkpath_experiment::run_dir::RunDir;
use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::Scenario;
use talkpath_units::Seed;

use crate::args::ExportArgs;
use crate::failure::Failure;

/// What the program provides to its commands.
pub trait Arenas: Connect {
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

/// What an arena's error means for the program, with what was measured until then.
pub fn failure(error: ArenaError) -> (Option<RunRecord>, Failure) {
    let (partial, error) = Error::ended(error);
    (partial, error.into())
}

/// This machine gives no thread; `why` is the system's.
pub(crate) fn no_thread(why: &io::Error) -> Failure {
    Error::no_thread(why).into()
}

/// The user stopped it.
pub fn interrupted() -> Failure {
    Error::interrupted().into()
}

/// For tests: the workers that a function makes for a number of threads, and nothing else.
#[cfg(test)]
pub(crate) struct TestArenas<'a>(pub(crate) &'a (dyn Fn(usize) -> Vec<Worker> + Sync));

/// For tests that connect to nothing.
#[cfg(test)]
pub(crate) static NO_ARENAS: TestArenas<'static> = TestArenas(&|_| Vec::new());

#[cfg(test)]
impl Connect for TestArenas<'_> {
    fn connect(&self, _: &Place, jobs: usize) -> Result<Vec<Worker>, Error> {
        Ok((self.0)(jobs))
    }

    fn revision(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
impl Arenas for TestArenas<'_> {
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
}
