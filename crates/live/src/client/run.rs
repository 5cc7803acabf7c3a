//! One run of the client, from the description of the flows to the record.
//!
//! ```text
//!  prepare   agree on the flows ─► compare the clocks ─► open the sockets ─► register the flows over UDP
//!  begin     agree on the beginning ─► wait
//!  run       threads.rs: the threads send and receive; main_loop.rs asks the server for its progress
//!            conclude.rs: stop ─► fetch the server's logs ─► compare the clocks ─► record.rs: make the record
//! ```
//!
//! - *run clock*: a clock that reads zero at the beginning of the run.
//! - *host clock*: this host's clock, ns since 1970.
//! - *probe*: a comparison of the server's clock with the host clock.
//! - *way*: the UDP socket of a flow with its registration at the server (`ways.rs`).
//! - *drain*: the time after the end of sending in which messages still arrive.
//!
//! Begin to read with [`prepare`], then [`PreparedRun::begin`] and [`BegunRun::run`].

mod conclude;
mod drain;
mod main_loop;
mod own_network;
mod record;
mod report_bound;
mod sender;
mod sockets;
mod threads;
mod ways;

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::event::epoll;
use talkpath_arena::offset::{Offset, Probe};
use talkpath_arena::{ArenaError, RunPlan};
use talkpath_kernel::alarm::Alarm;
use talkpath_kernel::clock::HostClock;
use talkpath_kernel::end::{EndContext, QuicConnections, SharedEnd};
use talkpath_kernel::log::RowBudget;
use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::sys::Unreported;
use talkpath_kernel::wire::Secret;
use talkpath_measure::RunRecord;
use talkpath_model::Scenario;
use talkpath_units::{Duration, Instant, from_hex};

use super::connect::split_connection;
use super::control::{ServerControl, SessionAnswer};
use super::mapping::MappingProbes;
use super::path_facts::{self, PathFacts};
use super::{LiveOptions, Notice, QlogSlot};
use crate::protocol::{Admission, Registrations};
use sockets::unavailable;
use ways::Way;

/// The time from `go` to the beginning of the run, in addition to the longest round trip, ns. In this time
/// the threads start, and a `go` that takes longer than the probes did still arrives. We chose 100 ms.
const LEAD_NS: i64 = 100_000_000;
/// The longest round trip that [`lead_ns`] allows for, ns. It is below the 5 s after `go` within which a
/// server begins the run.
const MAX_ROUND_TRIP_NS: i64 = 4_000_000_000;
/// The longest delay of the beginning that a server may cause, ns. [`max_delay_ns`] adds the longest round
/// trip, because `go` itself may arrive late.
const MAX_START_DELAY_NS: i64 = 5_000_000_000;
/// The time before the beginning at which `go` is sent, in addition to the lead, ns. We chose 1 s, which is
/// enough for two retransmissions on a path of 200 ms. A server begins the run at most 5 s after `go`.
const GO_AHEAD_NS: i64 = 1_000_000_000;
/// The interval at which a waiting client sends something to the server, ns. A server ends the session of a
/// client that is silent for 10 s.
const KEEP_ALIVE_NS: i64 = 2_000_000_000;
/// The interval at which a wait checks whether the user has interrupted it.
const WAIT_SLICE: Duration = Duration::from_millis(50);
/// The number of rows that a run may keep on this host. They take about 1 GB.
const CLIENT_ROWS: u64 = 20_000_000;

/// A session whose flows have their sockets.
struct Session<'a> {
    scenario: &'a Scenario,
    spec: SessionSpec,
    /// True if the user states that both clocks show the same time.
    clocks_synchronised: bool,
    plan: RunPlan<'a>,
    /// This host's end of each flow, in the order of `spec`.
    ends: Vec<Arc<SharedEnd>>,
    /// The UDP sockets. Flows that share a connection share the socket of the first of these flows.
    sockets: Vec<(Arc<UdpSocket>, Arc<SharedEnd>)>,
    ways: Vec<Way>,
    /// The server's port for flows over UDP.
    udp_port: u16,
    /// The warning that this is not the port of the control connection, because UDP is blocked there.
    port_warning: Option<String>,
    /// The registrations that reached the server before the run.
    early_registrations: Registrations,
    /// How long the resolver took for the server's name, once for all runs.
    name_time: Option<Duration>,
    /// What the path does to packets, if it was explored.
    path: Option<PathFacts>,
    /// The probes that show how long the path keeps a UDP mapping.
    mapping: Option<MappingProbes>,
    /// The place of the run's qlog.
    qlog: QlogSlot,
    notice: Notice,
    /// The facts about arriving datagrams that this kernel does not report.
    unreported: BTreeSet<Unreported>,
    epoll: Arc<OwnedFd>,
    budget: Arc<RowBudget>,
    alarm: Arc<Alarm>,
    warnings: Vec<String>,
}

/// What a client knows of its server from before a session.
pub(super) struct Memory<'a> {
    /// True if nothing came back over UDP in the last session that had flows over UDP.
    pub(super) udp_is_silent: &'a AtomicBool,
    /// The port over which the last session reached the server over UDP, if it is another one than that of
    /// the control connection. Zero otherwise.
    pub(super) other_udp_port: &'a AtomicU16,
    /// An address of the server over the other version of IP, if it has one.
    pub(super) other_address: Option<SocketAddr>,
    /// How long the resolver took for the server's name. `None` if the user gave an address.
    pub(super) name_time: Option<std::time::Duration>,
    /// What the path does to packets, once it was explored.
    pub(super) path: &'a OnceLock<Option<PathFacts>>,
    /// The round trip of TCP's handshake on the session's control connection.
    pub(super) handshake: std::time::Duration,
    /// The place of the run's qlog.
    pub(super) qlog: &'a QlogSlot,
}

/// A run that both hosts have agreed on, and for which both hosts have opened their sockets.
pub struct PreparedRun<'a> {
    server: ServerControl,
    session: Session<'a>,
    host_clock: HostClock,
    /// The comparisons of the clocks before the run.
    probes_before: Vec<Probe>,
}

/// A run whose beginning both hosts have agreed on.
pub struct BegunRun<'a> {
    prepared: PreparedRun<'a>,
    start: StartTimes,
}

/// The beginning of a run on each host's own clock, ns since 1970.
#[derive(Clone, Copy)]
struct StartTimes {
    this_host: i64,
    far_host: i64,
}

/// Agrees on a run of `scenario` with `server`, and opens the sockets of this host.
pub(super) fn prepare<'a>(
    mut server: ServerControl,
    scenario: &'a Scenario,
    spec: SessionSpec,
    options: &LiveOptions,
    plan: RunPlan<'a>,
    mut warnings: Vec<String>,
    memory: &Memory<'_>,
) -> Result<PreparedRun<'a>, ArenaError> {
    let answer = server.begin(&spec, &scenario.flows).map_err(ArenaError::far_end)?;
    let (admissions, other_ports) = match answer {
        SessionAnswer::Ready { admissions, warnings: server_warnings, other_ports } => {
            warnings.extend(server_warnings);
            (admissions, other_ports)
        }
        SessionAnswer::Refused(why) => return Err(ArenaError::Unsupported(why)),
    };
    let host_clock = HostClock::anchor();
    let mut probes_before = server.probe(host_clock).map_err(ArenaError::far_end)?;
    let answered_ns = probes_before.iter().map(Probe::round_trip).min();
    warnings.extend(split_connection(memory.handshake, answered_ns));
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| unavailable(&error.into()))?;
    let flows = spec.flows.clone();
    let mut session = Session {
        scenario,
        spec,
        clocks_synchronised: options.clocks_synchronised,
        plan,
        ends: Vec::new(),
        sockets: Vec::new(),
        ways: Vec::new(),
        udp_port: server.address().port(),
        port_warning: None,
        early_registrations: Registrations::default(),
        name_time: memory.name_time.map(to_duration),
        path: None,
        mapping: None,
        qlog: Arc::clone(memory.qlog),
        notice: options.notice.clone(),
        unreported: BTreeSet::new(),
        epoll: Arc::new(epoll),
        budget: RowBudget::new(CLIENT_ROWS),
        alarm: Arc::default(),
        warnings,
    };
    let context = EndContext {
        // The beginning is not known yet. `BegunRun::run` sets the clock of the run.
        clock: host_clock.run_from(host_clock.now_ns()),
        budget: Arc::clone(&session.budget),
        alarm: Arc::clone(&session.alarm),
        connections: QuicConnections::default().keeping_qlogs(options.keeps_qlog),
        machines: options.machines,
    };
    for (flow, admission) in flows.iter().zip(&admissions) {
        session.open(flow, admission, &server, &context)?;
    }
    SharedEnd::introduce(&session.spec, &session.ends);
    let unreported = session.unreported.iter().map(|fact| format!("this host's kernel {fact}"));
    session.warnings.extend(unreported);
    session.register(&mut server, &other_ports, memory)?;
    if options.explores_path {
        session.path = session.explore(&server, &admissions, memory);
    }
    if options.times_mapping {
        session.mapping = session.time_mapping(&server, &admissions);
    }
    probes_before.extend(session.fetch_tickets(&mut server, host_clock)?);
    session.stamp_transmissions();
    Ok(PreparedRun { server, session, host_clock, probes_before })
}

impl Session<'_> {
    /// Explores the path before the first run to this server. Returns what is known of the path.
    fn explore(
        &self,
        server: &ServerControl,
        admissions: &[Admission],
        memory: &Memory<'_>,
    ) -> Option<PathFacts> {
        let admission = admissions.first()?;
        let secret = Secret(from_hex::<16>(&admission.secret)?);
        let explore = || {
            let (local, mut far) = (server.local(), server.address());
            far.set_port(self.udp_port);
            path_facts::explore(local, far, secret, admission.token, self.plan.interrupt)
        };
        memory.path.get_or_init(explore).clone()
    }

    /// Begins to find out how long the path keeps a UDP mapping. Pauses are as long as the run at most.
    fn time_mapping(&self, server: &ServerControl, admissions: &[Admission]) -> Option<MappingProbes> {
        let admission = admissions.first()?;
        let secret = Secret(from_hex::<16>(&admission.secret)?);
        let longest_s = (self.spec.duration_ns + self.spec.drain_ns) / 1_000_000_000;
        let (local, mut far) = (server.local(), server.address());
        far.set_port(self.udp_port);
        MappingProbes::begin(local, far, secret, admission.token, longest_s).ok()
    }

    /// Registers the flows over UDP with the server, over the port of the control connection or, if nothing
    /// comes back over it, over one of `other_ports`. Tells the user if the server does not answer. If
    /// nothing came back over UDP in the last session either, the wait is short and the user is not told
    /// again.
    fn register(
        &mut self,
        server: &mut ServerControl,
        other_ports: &[u16],
        memory: &Memory<'_>,
    ) -> Result<(), ArenaError> {
        // The ways are taken out, because the registration changes them and only reads the session.
        let mut ways = std::mem::take(&mut self.ways);
        let was_silent = memory.udp_is_silent.load(Ordering::Relaxed);
        let was_other = memory.other_udp_port.load(Ordering::Relaxed) != 0;
        let is_known = was_silent || was_other;
        let patience_ns = if is_known { ways::REGISTER_AGAIN_NS } else { ways::REGISTER_NS };
        ways::register(&mut ways, patience_ns, self)?;
        if ways.iter().any(Way::is_closed) {
            if ways.iter().all(Way::is_closed) {
                memory.other_address.into_iter().for_each(|other| ways::try_other_version(&ways, other));
            }
            self.early_registrations = server.registrations().map_err(ArenaError::far_end)?;
        }
        let closed = ways::describe_closed(&ways, server, self.udp_port, &self.early_registrations);
        if closed.as_ref().is_some_and(|closed| closed.is_all) {
            self.try_other_ports(&mut ways, server, other_ports)?;
        }
        let main_port = server.address().port();
        let other_port = if self.udp_port == main_port { 0 } else { self.udp_port };
        memory.other_udp_port.store(other_port, Ordering::Relaxed);
        if other_port != 0 {
            // The change of the port may count as a move of the flows.
            self.early_registrations = server.registrations().map_err(ArenaError::far_end)?;
        }
        match closed {
            Some(closed) if other_port != 0 => {
                let port = self.udp_port;
                let text = format!(
                    "{}; the flows over UDP use its port {port}, which it offers as well",
                    closed.what
                );
                if !was_other {
                    self.notice.give(&text);
                }
                self.port_warning = Some(text);
                memory.udp_is_silent.store(false, Ordering::Relaxed);
            }
            Some(closed) => {
                memory.udp_is_silent.store(closed.is_all, Ordering::Relaxed);
                if !(closed.is_all && was_silent) {
                    let tried = also_tried(other_ports, closed.is_all);
                    self.notice.give(&format!(
                        "{}{tried}. The run goes on; flows over UDP open if that changes",
                        closed.what
                    ));
                }
            }
            // A session without flows over UDP says nothing about UDP.
            None if ways.is_empty() => {}
            None => memory.udp_is_silent.store(false, Ordering::Relaxed),
        }
        self.ways = ways;
        Ok(())
    }

    /// Turns the ways to the first of `other_ports` over which the server answers. If it answers over none,
    /// the ways turn back to the port of the control connection.
    fn try_other_ports(
        &mut self,
        ways: &mut [Way],
        server: &ServerControl,
        other_ports: &[u16],
    ) -> Result<(), ArenaError> {
        // The address has the interface of a link-local address.
        let to = |port| {
            let mut address = server.address();
            address.set_port(port);
            address
        };
        for &port in other_ports {
            ways::turn_to(ways, to(port));
            ways::register(ways, ways::OTHER_PORT_NS, self)?;
            if !ways.iter().all(Way::is_closed) {
                self.udp_port = port;
                return Ok(());
            }
        }
        if !other_ports.is_empty() {
            ways::turn_to(ways, server.address());
        }
        Ok(())
    }
}

/// Says which other ports nothing came back over either.
fn also_tried(other_ports: &[u16], is_all: bool) -> String {
    if other_ports.is_empty() || !is_all {
        return String::new();
    }
    let ports: Vec<String> = other_ports.iter().map(u16::to_string).collect();
    format!(", and nothing over {} either", ports.join(", "))
}

impl<'a> PreparedRun<'a> {
    /// Agrees with the server on the beginning of the run, and waits until shortly before the beginning. The
    /// run begins at `at_ns` of CLOCK_MONOTONIC. If `at_ns` is past or `None`, the run begins as soon as
    /// possible. `at_ns` must not be too late, because the server holds a session for only 30 s before it
    /// begins.
    ///
    /// # Errors
    /// Returns [`ArenaError::FarEnd`] if the server is gone or begins too late, and
    /// [`ArenaError::Interrupted`] if the user stops the run.
    pub fn begin(mut self, at_ns: Option<i64>) -> Result<BegunRun<'a>, ArenaError> {
        let lead_ns = lead_ns(&self.probes_before);
        let planned_ns = at_ns.map(|at_ns| self.host_clock.at_monotonic(at_ns));
        if let Some(planned_ns) = planned_ns {
            self.wait_until(planned_ns - lead_ns - GO_AHEAD_NS)?;
        }
        let offset = Offset::new(&self.probes_before, &[], &[])
            .ok_or_else(|| ArenaError::far_end("the clocks could not be compared".to_owned()))?;
        let soonest_ns = self.host_clock.now_ns() + lead_ns;
        let this_host = planned_ns.map_or(soonest_ns, |planned_ns| planned_ns.max(soonest_ns));
        let requested_ns = this_host.saturating_add(offset.at_start());
        let far_host = self.server.go(requested_ns).map_err(ArenaError::far_end)?;
        if far_host.saturating_sub(requested_ns) > max_delay_ns(&self.probes_before) {
            return Err(ArenaError::far_end(format!(
                "{} would begin the run later than any server does",
                self.server.name()
            )));
        }
        let is_delayed = far_host > requested_ns;
        // If the server begins later than requested, this host begins later, too.
        let this_host = if is_delayed { this_host.max(offset.to_ours(far_host)) } else { this_host };
        Ok(BegunRun { prepared: self, start: StartTimes { this_host, far_host } })
    }

    /// Waits until the host clock reads `until_ns`. It compares the clocks now and then, so that the server
    /// knows that the client is alive.
    fn wait_until(&mut self, until_ns: i64) -> Result<(), ArenaError> {
        let host_clock = self.host_clock;
        let clock = host_clock.run_from(host_clock.now_ns());
        let mut next_probe_ns = host_clock.now_ns() + KEEP_ALIVE_NS;
        while host_clock.now_ns() < until_ns {
            if self.session.plan.interrupt.load(Ordering::Relaxed) {
                return Err(ArenaError::Interrupted { partial: None });
            }
            if host_clock.now_ns() >= next_probe_ns {
                next_probe_ns = host_clock.now_ns() + KEEP_ALIVE_NS;
                let probe = self.server.probe_once(host_clock, 0).map_err(ArenaError::far_end)?;
                self.probes_before.push(probe);
            }
            let left_ns = u64::try_from(until_ns - host_clock.now_ns()).unwrap_or(0);
            clock.sleep_until(Instant::MAX, Duration::from_nanos(left_ns).min(WAIT_SLICE));
        }
        Ok(())
    }
}

impl<'a> BegunRun<'a> {
    /// Returns the beginning of the run, ns of this host's CLOCK_MONOTONIC.
    pub const fn start_ns(&self) -> i64 {
        self.prepared.host_clock.to_monotonic(self.start.this_host)
    }

    /// Returns the beginning of the run by this host's clock, ns since 1970.
    pub(super) const fn start_since_1970_ns(&self) -> i64 {
        self.start.this_host
    }

    /// Makes the run call `progress` now and then, with the time since its beginning.
    pub fn watched_by<'b>(self, progress: &'b (dyn Fn(Instant) + Sync)) -> BegunRun<'b>
    where
        'a: 'b,
    {
        let mut begun: BegunRun<'b> = self;
        begun.prepared.session.plan.progress = progress;
        begun
    }

    /// Carries out the run until its end, and returns its record.
    ///
    /// # Errors
    /// Returns [`ArenaError::FarEnd`] if the server is gone or a limit is reached, and
    /// [`ArenaError::Interrupted`] if the user stops the run. Both hold what was measured until then. Returns
    /// [`ArenaError::Unavailable`] if this host cannot start a thread.
    pub fn run(self) -> Result<RunRecord, ArenaError> {
        let PreparedRun { mut server, mut session, host_clock, probes_before } = self.prepared;
        // The ways are taken out for the run, because the run changes them and only reads the session.
        let mut ways = std::mem::take(&mut session.ways);
        let clock = host_clock.run_from(self.start.this_host);
        for end in &session.ends {
            end.lock().set_clock(clock);
        }
        let measured = session.measure(&mut ways, &mut server, host_clock, clock);
        session.ways = ways;
        session.conclude(server, measured, &probes_before, host_clock, self.start)
    }
}

/// Returns the time from the client's `go` to the beginning of the run, ns. In this time `go` has to reach
/// the server, the answer has to reach this host, and this host has to start its threads. If `go` still comes
/// too late, both hosts begin later.
fn lead_ns(probes: &[Probe]) -> i64 {
    LEAD_NS + longest_round_trip_ns(probes).min(MAX_ROUND_TRIP_NS)
}

/// Returns the longest time by which a server may begin later than requested, ns.
fn max_delay_ns(probes: &[Probe]) -> i64 {
    MAX_START_DELAY_NS.saturating_add(longest_round_trip_ns(probes))
}

fn to_duration(time: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn longest_round_trip_ns(probes: &[Probe]) -> i64 {
    probes.iter().map(Probe::round_trip).max().unwrap_or(0)
}
