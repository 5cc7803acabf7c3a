//! The emulated arena: the kernel's TCP and UDP, our own DCCP and QUIC on two hosts of our own, our path
//! model between them in real time.
//!
//! ```text
//!  first host (namespace)                                        second host (namespace)
//!   senders, echoes ─ sockets ─ veth ══► Emulator: Network ══► veth ─ sockets ─ receivers, echoes
//!                                          │ arrivals, decisions
//!                                          └─► log ─► replay: the same decisions again
//! ```
//!
//! - *host*: a network namespace, with the sockets of one end of every flow. The *world* is both hosts.
//! - *cable*: a virtual Ethernet cable from a host to the emulator, whose end of it is the *device*.
//! - *stamp*: the time at which the kernel took a packet from its host.
//! - *arrival*: the entry of a packet into the path, at its stamp or later. The difference is the *backlog*.
//! - *decision*: the outcome of a packet or fragment on the path, with its time: departs, dropped or lost.
//! - *lateness*: how much later than its decided departure the emulator wrote a packet.
//! - *stop*: a time in which the emulator's thread did not run although it had something to do.
//! - *train*: several datagrams of a flow that one write hands over.
//!
//! Begin to read with `run.rs`, then `emulator.rs`.
//!
//! | file | what it does |
//! | --- | --- |
//! | `world` | makes the two hosts, their devices and sockets, without a name and without root |
//! | `hosts` | what a scenario asks of the two hosts |
//! | `host_tcp` | what of the flows' TCP a host is set to |
//! | `decision` | what the path's network decides about each packet |
//! | `emulator` | reads, decides, writes at the promised time |
//! | `realtime` | what lets its thread be on time |
//! | `device` | a cable as the emulator has it: packets taken, datagrams handed over in trains |
//! | `packet` | whose flow a packet is of; fragments |
//! | `watch` | what became of each message on its way |
//! | `arrival_log`, `replay` | the log, and the proof by it |
//! | `capture` | packets as the hosts saw them |
//! | `connect` | opens the connections |
//! | `run` | one repetition, from the scenario to the record |
//! | `stranger` | another program in the place of one end |
//! | `lanes`, `flow_interval` | the packets of the user's programs |
//! | `shell` | programs of the user inside the hosts' namespaces |
//! | `report` | what the machine did to it, and whether the figures stand |
//! | `probe`, `forwarding` | what this machine can do |
//!
//! The ends of the flows, which the live arena has too, and the system calls that make the hosts and their
//! cables are in `talkpath_kernel`. docs/models/emulation.md says what the emulator needs, its limits and
//! what was measured.
//!
//! Left out: bulk without an end over UDP and the echo of bulk, as in the live arena; the don't-fragment
//! flag, and the ICMP of routers.

mod arrival_log;
mod capture;
mod connect;
mod decision;
mod device;
mod emulator;
mod flow_interval;
mod forwarding;
mod host_tcp;
mod hosts;
mod lanes;
mod packet;
mod preemption;
mod probe;
mod realtime;
mod replay;
mod report;
mod run;
pub mod shell;
mod stops;
mod stranger;
mod watch;
mod world;

use talkpath_arena::{Arena, ArenaError, RunPlan, far_clock};
use talkpath_measure::RunRecord;
use talkpath_model::{IpVersion, Scenario};
use talkpath_wire::machine::Machines;

use crate::shell::Program;

pub use arrival_log::{LogError, LogHeader};
pub use capture::{CaptureError, export_capture};
pub use flow_interval::FlowInterval;
pub use forwarding::{Forwarding, Handover, measure_forwarding, measure_plain_loop};
pub use preemption::{Preemption, PreemptionModel};
pub use probe::{Capabilities, probe};
pub use replay::{ReplayError, ReplayReport, log_header, replay};
pub use report::{EmuReport, LatenessFigures};
pub use stranger::{OurEnd, Stranger, Way, ways};
pub use world::Means;

/// Two namespaces and the path between them. Runs share only the machine. Concurrent runs delay each other,
/// and each run's report shows how much. `default()` does not check whether this machine allows the arena.
#[derive(Default)]
pub struct EmuArena {
    log: Option<Vec<u8>>,
    /// The number of bytes of each packet that the capture keeps. `None` makes no capture.
    snaplen: Option<u32>,
    capture: Option<Vec<u8>>,
    report: Option<EmuReport>,
    machines: Machines,
    /// The user's program, which runs once.
    program: Option<Box<dyn Program>>,
}

impl EmuArena {
    /// Makes the arena, after a check whether this machine allows it.
    ///
    /// # Errors
    /// Returns [`ArenaError::Unavailable`], which says what is missing and how to get it.
    pub fn open() -> Result<Self, ArenaError> {
        world::World::build(world::Families::Only(IpVersion::V4), [1500; 2], &[], &[], None, None)?;
        Ok(Self::default())
    }

    /// The same, keeping up to `snaplen` bytes of every packet for [`Arena::take_capture`].
    #[must_use]
    pub const fn capturing(mut self, snaplen: u32) -> Self {
        self.snaplen = Some(snaplen);
        self
    }

    /// The same, with the state machines of flows over protocols of ours.
    #[must_use]
    pub const fn with_machines(mut self, machines: Machines) -> Self {
        self.machines = machines;
        self
    }

    /// The same, with a program of the user on the path of the scenario, which must have a `program`. The run
    /// lasts until the program has ended.
    #[must_use]
    pub fn with_program(mut self, program: Box<dyn Program>) -> Self {
        self.program = Some(program);
        self
    }

    /// As [`Arena::run`], with a `stranger` in the place of one end. What the record says of that end is
    /// empty; our end's counts come with it.
    ///
    /// # Errors
    /// As [`Arena::run`]; [`ArenaError::Unsupported`] if the scenario has no such flow over datagrams, or has
    /// a far clock; [`ArenaError::FarEnd`] if the stranger does not take its socket.
    pub fn run_beside(
        &mut self,
        scenario: &Scenario,
        plan: RunPlan<'_>,
        stranger: &mut Stranger<'_>,
    ) -> Result<(RunRecord, OurEnd), ArenaError> {
        let (record, ours) = self.run_once(scenario, plan, Some(stranger))?;
        Ok((record, ours.unwrap_or_default()))
    }

    /// The report about how the machine disturbed the last run.
    pub fn report(&self) -> Option<&EmuReport> {
        self.report.as_ref()
    }

    /// Runs the scenario once. If there is a `stranger`, it also returns the counts of our end.
    fn run_once(
        &mut self,
        scenario: &Scenario,
        plan: RunPlan<'_>,
        stranger: Option<&mut Stranger<'_>>,
    ) -> Result<(RunRecord, Option<OurEnd>), ArenaError> {
        (self.log, self.report, self.capture) = (None, None, None);
        let probed = far_clock::with_probes(scenario);
        let scenario = probed.as_ref().unwrap_or(scenario);
        let beside = run::Beside { stranger, program: self.program.as_deref_mut() };
        let mut done = run::run(scenario, plan, self.snaplen, self.machines, beside)?;
        far_clock::apply_far_clock(&mut done.record, scenario);
        (self.log, self.report, self.capture) = (Some(done.log), Some(done.report), done.capture);
        if done.is_interrupted {
            return Err(ArenaError::Interrupted { partial: Some(Box::new(done.record)) });
        }
        Ok((done.record, done.beside))
    }
}

impl core::fmt::Debug for EmuArena {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { snaplen, report, .. } = self;
        f.debug_struct("EmuArena").field("snaplen", snaplen).field("report", report).finish_non_exhaustive()
    }
}

impl Arena for EmuArena {
    fn run(&mut self, scenario: &Scenario, plan: RunPlan<'_>) -> Result<RunRecord, ArenaError> {
        self.run_once(scenario, plan, None).map(|(record, _)| record)
    }

    fn take_arrival_log(&mut self) -> Option<Vec<u8>> {
        self.log.take()
    }

    fn take_capture(&mut self) -> Option<Vec<u8>> {
        self.capture.take()
    }
}
