//! Runs one repetition in the emulator.
//!
//! ```text
//!  check ─► make the hosts ─► make the ends of the flows ─► make the emulator ─► run the threads ─► record
//!           hosts.rs          run/ends.rs                   emulator.rs          run/threads.rs     run/record.rs
//! ```
//!
//! - *end*: the sending or the receiving side of one flow, with its log. [`SessionEnds`] has the ends of all
//!   flows.
//! - *stranger*: another program in the place of one end of a flow.
//! - *program*: a program of the user inside the hosts' network. A run with a program lasts as long as the
//!   program.
//!
//! Begin to read with [`Repetition::run`].

mod ends;
mod record;
mod threads;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use talkpath_arena::links::second_paths;
use talkpath_arena::{ArenaError, RunPlan};
use talkpath_kernel::clock::{HostClock, RunClock};
use talkpath_kernel::descriptors;
use talkpath_kernel::end::{EndContext, QuicConnections};
use talkpath_kernel::log::RowBudget;
use talkpath_kernel::spec::SessionSpec;
use talkpath_measure::{RunRecord, warning};
use talkpath_model::Scenario;
use talkpath_units::Duration;
use talkpath_wire::machine::Machines;

use self::ends::SessionEnds;
use self::record::EndedRun;
use self::threads::{HostProgram, ReadyRun};
use crate::arrival_log::{LogHeader, LogWriter, MAX_BYTES};
use crate::capture::Capture;
use crate::decision::DecidingNetwork;
use crate::device::Device;
use crate::emulator::{Emulator, EmulatorSetup};
use crate::hosts::{HostsPlan, check_congestion_controls};
use crate::lanes::Lanes;
use crate::packet::MAX_FLOWS;
use crate::realtime::OwnProcessor;
use crate::report::EmuReport;
use crate::shell::{HostEntry, Program};
use crate::stranger::{OurEnd, Stranger};
use crate::world::World;

/// The time from the start of the threads to the beginning of the run, at which all threads must wait. We
/// chose 100 ms, which is some time slices of a busy machine.
pub(super) const LEAD: Duration = Duration::from_millis(100);
/// The largest number of rows that the logs of a run may have. We chose 100 million, which take some
/// gigabytes.
const MAX_ROWS: u64 = 100_000_000;

/// A repetition that is to be run.
pub(super) struct Repetition<'a, 'b> {
    pub(super) scenario: &'a Scenario,
    pub(super) plan: RunPlan<'a>,
    /// The number of bytes of each packet that the capture keeps. `None` makes no capture.
    pub(super) snaplen: Option<u32>,
    /// True if QUIC connections keep a qlog.
    pub(super) keeps_qlog: bool,
    /// The state machines of flows over our own protocols.
    pub(super) machines: Machines,
    pub(super) stranger: Option<&'a mut Stranger<'b>>,
    pub(super) program: Option<&'a mut (dyn Program + 'static)>,
}

/// The results of a repetition.
pub(super) struct RunResults {
    pub(super) record: RunRecord,
    /// The arrival log.
    pub(super) log: Vec<u8>,
    pub(super) capture: Option<Vec<u8>>,
    /// What the near ends of QUIC connections logged.
    pub(super) qlog: Option<Vec<u8>>,
    pub(super) report: EmuReport,
    pub(super) is_interrupted: bool,
    /// The counts of our end, if the other end is a stranger.
    pub(super) our_end: Option<OurEnd>,
}

impl Repetition<'_, '_> {
    /// Runs the repetition.
    ///
    /// # Errors
    /// Returns [`ArenaError::Unsupported`] if the emulator cannot run the scenario, and the error of a host,
    /// device or thread that cannot be made.
    pub(super) fn run(mut self) -> Result<RunResults, ArenaError> {
        let session = self.check().map_err(ArenaError::Unsupported)?;
        let processor = OwnProcessor::take();
        let hosts = HostsPlan::new(self.scenario, &session, &processor, self.program.is_some())?;
        let mut world = hosts.build()?;
        let mut warnings = hosts.warnings(self.scenario, &world);
        warnings.extend(hosts.report_arrivals(&world.sockets));
        let sockets = self.take_sockets(&mut world)?;
        let mut devices = Device::pair(&world.devices, world.mtu).map_err(devices_failed)?;
        if self.program.is_some() {
            // The user's programs see each packet as it crossed the path, also those that look at the device.
            devices.iter_mut().for_each(|device| device.supports_trains = false);
        }
        let host_clock = HostClock::anchor();
        let clock = host_clock.run_from(host_clock.now_ns() + LEAD.as_nanos() as i64);
        let mut ends = self.make_ends(&session, clock, sockets).map_err(socket_failed)?;
        let emulator = self.make_emulator(&session, &ends, devices, world.mtu, clock);
        let program = match self.program.as_deref_mut() {
            Some(program) => {
                let entries = HostEntry::both(&world.namespaces, world.means).map_err(socket_failed)?;
                Some(HostProgram { program, entries })
            }
            None => None,
        };
        let ready = ReadyRun {
            scenario: self.scenario,
            plan: &self.plan,
            clock,
            processor: &processor,
            ends: &mut ends,
        };
        let (emulated, mut disturbance) = ready.run(emulator, program)?;
        disturbance.add_kernel_counts(&mut world);
        let mut program_outcome = None;
        if let Some(program) = &mut self.program {
            warnings.extend(program.notes().into_iter().map(warning::note));
            program_outcome = program.take_outcome().map_err(|what| ArenaError::Unavailable {
                what,
                how: "is the program installed, and in a folder of $PATH?".to_owned(),
            })?;
        }
        let ended = EndedRun {
            scenario: self.scenario,
            session: &session,
            plan: &self.plan,
            ends: &ends,
            emulated,
            disturbance,
        };
        let mut results = ended.into_results(warnings);
        results.record.program = program_outcome;
        Ok(results)
    }

    /// Checks whether the emulator can run the scenario. Returns the specification of the session.
    fn check(&self) -> Result<SessionSpec, String> {
        self.scenario.check_path_is_known()?;
        if self.program.is_none() {
            self.scenario.has_no_program()?;
        }
        let session = SessionSpec::new(self.scenario, self.plan.seed, None)?;
        if self.scenario.flows.len() > MAX_FLOWS {
            return Err(format!("the emulator has ports for {MAX_FLOWS} flows at most"));
        }
        check_congestion_controls(&session)?;
        if let Some(stranger) = &self.stranger {
            stranger.check(self.scenario, &session)?;
        }
        Ok(session)
    }

    /// Takes the hosts' sockets, and gives a stranger the socket of its end. That socket is `None` in the
    /// returned list.
    fn take_sockets(&mut self, world: &mut World) -> Result<Vec<Option<OwnedFd>>, ArenaError> {
        let mut sockets: Vec<_> = core::mem::take(&mut world.sockets).into_iter().map(Some).collect();
        if let Some(stranger) = &mut self.stranger
            && let Some(socket) = sockets.get_mut(stranger.socket_index()).and_then(Option::take)
        {
            (stranger.take_socket)(socket)
                .map_err(|error| ArenaError::far_end(format!("the socket was not taken: {error}")))?;
        }
        Ok(sockets)
    }

    fn make_ends(
        &self,
        session: &SessionSpec,
        clock: RunClock,
        sockets: Vec<Option<OwnedFd>>,
    ) -> io::Result<SessionEnds> {
        let context = EndContext {
            clock,
            budget: RowBudget::new(MAX_ROWS),
            alarm: Arc::default(),
            connections: QuicConnections::default().keeping_qlogs(self.keeps_qlog),
            machines: self.machines,
        };
        SessionEnds::new(self.scenario, session, self.plan.seed, &context, sockets, self.stranger.as_deref())
    }

    fn make_emulator<'a>(
        &mut self,
        session: &SessionSpec,
        ends: &SessionEnds,
        devices: [Device<'a>; 2],
        mtu: u16,
        clock: RunClock,
    ) -> Emulator<'a> {
        let (scenario, plan) = (self.scenario, &self.plan);
        let count = |items: usize| u32::try_from(items).unwrap_or(u32::MAX);
        let header = LogHeader {
            cell: plan.cell,
            repetition: plan.repetition,
            seed: plan.seed.get(),
            flows: count(scenario.flows.len()),
            links: count(scenario.links.len()),
        };
        // The flows and their second paths have the first lanes of the network.
        let second_lanes = second_paths(scenario).iter().flatten().count();
        let first_program_lane = count(scenario.flows.len() + second_lanes);
        Emulator::new(EmulatorSetup {
            network: DecidingNetwork::new(scenario, plan.seed, plan.series),
            log: LogWriter::new(&header, MAX_BYTES),
            capture: self.snaplen.map(Capture::new),
            devices,
            mtu,
            clock,
            flows: ends.emulated_flows(scenario, session),
            lanes: self.program.as_mut().map(|program| {
                Lanes::new(first_program_lane)
                    .reporting(program.take_reader())
                    .keeping_names(program.keeps_names())
            }),
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn socket_failed(error: io::Error) -> ArenaError {
    ArenaError::Unavailable {
        what: format!("a socket cannot be used: {error}"),
        how: "see the limit of open files (ulimit -n)".to_owned(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn devices_failed(error: io::Error) -> ArenaError {
    if let Some((what, how)) = descriptors::shortage(&error) {
        return ArenaError::Unavailable { what: format!("{what} for the emulator: {error}"), how };
    }
    ArenaError::Unavailable {
        what: format!("the emulator's devices failed: {error}"),
        how: "is something else removing network namespaces here, or is memory short?".to_owned(),
    }
}
