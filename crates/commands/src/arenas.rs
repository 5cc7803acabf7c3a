//! The functions of the arenas that the commands use. This crate does not depend on the arenas: only the
//! program knows all three, and gives them to its commands as [`Arenas`]. So after a change in an arena no
//! command has to be compiled again.

use core::sync::atomic::{AtomicBool, AtomicI64};
use std::io::{self, Write};
use std::path::Path;

use serde_json::Value as Json;
use talkpath_arena::{ArenaError, MonitorEvent};
use talkpath_experiment::place::Connect;
#[cfg(test)]
use talkpath_experiment::place::{Place, Worker};
use talkpath_experiment::run_dir::RunDir;
use talkpath_experiment::{Error, FailedRun};
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::{FlowInfo, RunRecord};
use talkpath_scenario::{Flow, IpVersion, Scenario};
use talkpath_units::Seed;

use crate::args::ExportArgs;
use crate::failure::Failure;

/// The functions that the program gives to its commands.
pub trait Arenas: Connect {
    /// Returns the numbers that `talkpath play` would show of a simulated run, or `None` if `stop` became
    /// true. A study compares them with the record of the run.
    fn watched(&self, scenario: &Scenario, seed: Seed, stop: &AtomicBool) -> Option<Json>;

    /// Reads the key in `file`.
    fn read_key(&self, file: &Path) -> Result<Vec<u8>, Failure>;

    /// Measures between two live hosts until the user stops it, and gives each event to `handle`.
    fn monitor(&self, monitored: &Monitored<'_>, handle: &mut dyn FnMut(MonitorEvent))
    -> Result<(), Failure>;

    /// Returns what a record says of a flow that opens when the scenario says so, between hosts whose clocks
    /// are trusted or not.
    fn flow_info(&self, flow: &Flow, clock_trusted: bool) -> FlowInfo;

    /// Returns the payload of a message of each flow, in bytes, or `None` for a flow whose messages differ in
    /// size.
    fn constant_sizes(&self, scenario: &Scenario) -> Result<Vec<Option<u64>>, Failure>;

    /// Writes the packets of a run as pcapng, qlog or nam. `unwritten` makes the failure for a failed write.
    fn export_packets(
        &self,
        dir: &RunDir,
        args: &ExportArgs,
        writer: &mut dyn Write,
        unwritten: &dyn Fn(io::Error) -> Failure,
    ) -> Result<(), Failure>;
}

/// The measurement of [`Arenas::monitor`].
pub struct Monitored<'a> {
    /// The host that runs `talkpath serve`.
    pub host: &'a str,
    /// The version of IP to reach the host over. `None` if the first one that answers is taken.
    pub ip: Option<IpVersion>,
    /// The key that the host demands. It is read once for all sessions, because the key file may be a pipe.
    pub key: Option<&'a [u8]>,
    /// Whether the user says that the clocks of both hosts show the same time.
    pub clocks_synchronised: bool,
    /// The scenario of one session. Its duration is the duration of the session.
    pub scenario: &'a Scenario,
    /// How the sessions sample quantities over time, or `None` if no samples are kept.
    pub series: Option<SeriesDetail>,
    /// Becomes true when the user wants to stop.
    pub interrupt: &'a AtomicBool,
    /// The time until which messages are due in the current session, in ns of CLOCK_MONOTONIC. The monitor
    /// writes it when a session begins, and writes 0 when nothing is measured.
    pub measured_until_ns: &'a AtomicI64,
}

/// Makes the failure for the error of an arena. It comes with the record that was measured before the error.
pub fn failure(error: ArenaError) -> (Option<RunRecord>, Failure) {
    let FailedRun { partial, error } = error.into();
    (partial, error.into())
}

/// Returns the failure for a thread that the system does not start.
pub(crate) fn no_thread(why: &io::Error) -> Failure {
    Error::no_thread(why).into()
}

/// Returns the failure for a command that the user stopped.
pub fn interrupted() -> Failure {
    Error::interrupted().into()
}

/// The arenas of tests: a function that makes the workers for a number of threads.
#[cfg(test)]
pub(crate) struct TestArenas<'a>(pub(crate) &'a (dyn Fn(usize) -> Vec<Worker> + Sync));

/// The arenas of tests that connect to nothing.
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

    fn monitor(&self, _: &Monitored<'_>, _: &mut dyn FnMut(MonitorEvent)) -> Result<(), Failure> {
        Ok(())
    }

    fn flow_info(&self, flow: &Flow, _: bool) -> FlowInfo {
        FlowInfo::on_a_clock(&flow.name)
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
