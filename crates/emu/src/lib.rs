//! The emulated arena. The kernel's TCP and UDP, and our own DCCP and QUIC, run on two emulated hosts. Our
//! path model carries their packets in real time.
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
//! | `hosts` | the plan of the two hosts of a scenario |
//! | `host_tcp` | the TCP settings that belong to a host |
//! | `decision` | the decisions of the path's network about each packet |
//! | `emulator` | reads, decides, writes at the promised time |
//! | `realtime` | priority and processor of the emulator's thread |
//! | `device` | the emulator's end of a cable: receives packets, writes them alone or in trains |
//! | `packet` | reads and cuts packets, and finds their flow |
//! | `watch` | what became of each message on the path |
//! | `arrival_log`, `replay` | the log, and the proof by it |
//! | `capture` | packets as the hosts saw them |
//! | `connect` | opens the connections |
//! | `run` | one repetition, from the scenario to the record |
//! | `stranger` | another program in the place of one end |
//! | `lanes`, `flow_interval` | the packets of the user's programs |
//! | `shell` | programs of the user inside the hosts' namespaces |
//! | `report` | how the machine disturbed a run, and whether the figures are valid |
//! | `probe`, `forwarding` | what this machine can do |
//!
//! The ends of the flows, which the live arena has too, and the system calls that make the hosts and their
//! cables are in `talkpath_kernel`. docs/models/emulation.md says what the emulator needs, its limits and
//! what was measured.
//!
//! Left out are greedy flows over UDP and echoes of bulk transfers, as in the live arena, the don't-fragment
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
use talkpath_model::Scenario;
use talkpath_wire::machine::Machines;

use crate::shell::Program;

pub use arrival_log::{LogError, LogHeader};
pub use capture::{Calls, CaptureError, export_capture};
pub use flow_interval::FlowInterval;
pub use forwarding::{Forwarding, Handover, measure_forwarding, measure_plain_loop};
pub use preemption::{Preemption, PreemptionModel};
pub use probe::{Capabilities, probe};
pub use replay::{ReplayError, ReplayReport, log_header, replay};
pub use report::EmuReport;
pub use stranger::{DirectionPackets, OurEnd, Stranger, read_directions};
pub use world::Means;

/// Two namespaces and the path between them. Runs share only the machine. Concurrent runs delay each other,
/// and each run's report shows how much. `default()` does not check whether this machine allows the arena.
#[derive(Default)]
pub struct EmuArena {
    log: Option<Vec<u8>>,
    /// The number of bytes of each packet that the capture keeps. `None` makes no capture.
    snaplen: Option<u32>,
    capture: Option<Vec<u8>>,
    /// True if QUIC connections keep a qlog.
    keeps_qlog: bool,
    qlog: Option<Vec<u8>>,
    report: Option<EmuReport>,
    machines: Machines,
    /// The user's program.
    program: Option<Box<dyn Program>>,
}

impl EmuArena {
    /// Makes the arena, after a check whether this machine allows it.
    ///
    /// # Errors
    /// Returns [`ArenaError::Unavailable`], which says what is missing and how to get it.
    pub fn open() -> Result<Self, ArenaError> {
        world::World::build(&world::WorldPlan::bare())?;
        Ok(Self::default())
    }

    /// Makes the arena keep up to `snaplen` bytes of every packet for [`Arena::take_capture`].
    #[must_use]
    pub const fn capturing(mut self, snaplen: u32) -> Self {
        self.snaplen = Some(snaplen);
        self
    }

    /// Makes the arena keep a qlog of each QUIC connection for [`Arena::take_qlog`], if `keeps_qlog` is true.
    #[must_use]
    pub const fn keeping_qlog(mut self, keeps_qlog: bool) -> Self {
        self.keeps_qlog = keeps_qlog;
        self
    }

    /// Sets the state machines of flows over our own protocols.
    #[must_use]
    pub const fn with_machines(mut self, machines: Machines) -> Self {
        self.machines = machines;
        self
    }

    /// Makes a program of the user run on the path of each scenario that has a `program`. Such a run lasts
    /// until the program has ended.
    #[must_use]
    pub fn with_program(mut self, program: Box<dyn Program>) -> Self {
        self.program = Some(program);
        self
    }

    /// Runs the scenario with a `stranger` in the place of one end. The record has no values of that end.
    /// Also returns the counts of our end.
    ///
    /// # Errors
    /// Returns the errors of [`Arena::run`]. Returns [`ArenaError::Unsupported`] if the scenario has no such
    /// flow over datagrams or has a far clock, and [`ArenaError::FarEnd`] if the stranger does not take its
    /// socket.
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
        (self.log, self.report, self.capture, self.qlog) = (None, None, None, None);
        let probed = far_clock::with_probes(scenario);
        let scenario = probed.as_ref().unwrap_or(scenario);
        let repetition = run::Repetition {
            scenario,
            plan,
            snaplen: self.snaplen,
            keeps_qlog: self.keeps_qlog,
            machines: self.machines,
            stranger,
            program: scenario.program.as_ref().and(self.program.as_deref_mut()),
        };
        let mut results = repetition.run()?;
        far_clock::apply_far_clock(&mut results.record, scenario);
        (self.log, self.report) = (Some(results.log), Some(results.report));
        (self.capture, self.qlog) = (results.capture, results.qlog);
        if results.is_interrupted {
            return Err(ArenaError::Interrupted { partial: Some(Box::new(results.record)) });
        }
        Ok((results.record, results.our_end))
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

    fn take_qlog(&mut self) -> Option<Vec<u8>> {
        self.qlog.take()
    }
}
