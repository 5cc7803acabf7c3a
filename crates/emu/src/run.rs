//! One repetition: two hosts, the emulator between them, the ends of the flows, and the record.

mod ends;
mod record;

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};

use talkpath_arena::links::second_paths;
use talkpath_arena::{ArenaError, RunPlan};
use talkpath_config::TransportKind;
use talkpath_kernel::clock::{HostClock, RunClock};
use talkpath_kernel::descriptors;
use talkpath_kernel::end::{EndContext, QuicConnections};
use talkpath_kernel::keep_awake::ShallowSleep;
use talkpath_kernel::log::{RowBudget, sample_interval};
use talkpath_kernel::spec::{ChannelKind, SessionSpec};
use talkpath_kernel::stolen::StolenTime;
use talkpath_kernel::sys::{become_real_time, report_arrivals};
use talkpath_kernel::threads::{
    StoresOnDrop, close_connections, pace, read_slowly, receive_datagrams, serve_connections,
};
use talkpath_kernel::udp_drops::UdpErrors;
use talkpath_measure::{RunRecord, warning};
use talkpath_model::{Flow, IpVersion, Scenario};
use talkpath_units::{Duration, Instant};
use talkpath_wire::machine::Machines;

use crate::arrival_log::{LogHeader, LogWriter, MAX_BYTES};
use crate::capture::Capture;
use crate::connect::connect_flows;
use crate::decision::DecidingNetwork;
use crate::device::Device;
use crate::emulator::{EmuFlow, Emulated, Emulator, EmulatorSetup};
use crate::host_tcp::HostTcp;
use crate::hosts::{
    PROGRAM_SETTINGS, check_congestion_controls, check_segment_sizes, device_mtu, program_mtu,
    program_settings, second_addresses, sender, socket_plans, token,
};
use crate::lanes::Lanes;
use crate::packet::{Host, MAX_FLOWS};
use crate::realtime::{OwnProcessor, STEERING};
use crate::report::EmuReport;
use crate::shell::{HostEntry, Program};
use crate::stranger::{OurEnd, Stranger};
use crate::watch::{LegWatch, SocketRest};
use crate::world::{Families, Setting, SocketPlan, World};
use ends::{Ends, FlowEnds};
use record::FinishedRun;

/// The results of a repetition.
pub(super) struct Done {
    pub(super) record: RunRecord,
    pub(super) log: Vec<u8>,
    pub(super) capture: Option<Vec<u8>>,
    pub(super) report: EmuReport,
    pub(super) is_interrupted: bool,
    /// The counts of our end, if the other end is a stranger.
    pub(super) beside: Option<OurEnd>,
}

/// The disturbances and failures that the threads found.
#[derive(Default)]
pub(super) struct Disturbance {
    pub(super) trouble: Vec<String>,
    /// For each flow, the datagrams that its sockets did not hand over, at the receiver and at the sender
    /// ([`FlowEnds::sockets`]).
    pub(super) sockets: Vec<[Option<SocketRest>; 2]>,
    /// The UDP errors that the hosts' kernels counted.
    pub(super) udp_errors: Option<UdpErrors>,
    pub(super) device_drops: u64,
    pub(super) is_interrupted: bool,
    /// The share of processor time that a hypervisor gave to others during the run.
    pub(super) stolen_share: Option<f64>,
}

/// What takes part in a run besides our own ends.
pub(super) struct Beside<'a, 'b> {
    /// Another program in the place of one end of a flow.
    pub(super) stranger: Option<&'a mut Stranger<'b>>,
    /// A program of the user inside the hosts' network.
    pub(super) program: Option<&'a mut (dyn Program + 'static)>,
}

/// Runs `scenario` once. If `snaplen` is given, it captures that many bytes of every packet.
pub(super) fn run(
    scenario: &Scenario,
    plan: RunPlan<'_>,
    snaplen: Option<u32>,
    machines: Machines,
    Beside { mut stranger, mut program }: Beside<'_, '_>,
) -> Result<Done, ArenaError> {
    scenario.check_path_is_known().map_err(ArenaError::Unsupported)?;
    if program.is_none() {
        scenario.has_no_program().map_err(ArenaError::Unsupported)?;
    }
    let spec = SessionSpec::new(scenario, plan.seed, None).map_err(ArenaError::Unsupported)?;
    check(scenario, &spec, stranger.as_deref()).map_err(ArenaError::Unsupported)?;
    let (mtu, families) = match program {
        Some(_) => ([program_mtu(scenario)?; 2], Families::Both(scenario.ip)),
        None => {
            let mtu = [Host::First, Host::Second].map(|host| device_mtu(scenario, host));
            (mtu, Families::Only(scenario.ip))
        }
    };
    let host_tcp = HostTcp::new(scenario);
    let place = OwnProcessor::take();
    let of_programs = if program.is_some() { program_settings() } else { Vec::new() };
    let settings: Vec<Setting> =
        host_tcp.sysctls().into_iter().chain(place.steering()).chain(of_programs).collect();
    let plans = socket_plans(scenario, &spec, mtu);
    let second = second_addresses(scenario, &spec)?;
    check_segment_sizes(&plans).map_err(ArenaError::Unsupported)?;
    let mut world = World::build(families, mtu, &plans, &settings, host_tcp.route(), second)?;
    let mut warnings = host_tcp.warnings(scenario);
    warnings.extend(unset_warnings(&settings, &world));
    let mut sockets: Vec<_> = core::mem::take(&mut world.sockets).into_iter().map(Some).collect();
    warnings.extend(unreported(&sockets, &plans, scenario.ip));
    let unusable = |error: io::Error| ArenaError::Unavailable {
        what: format!("a socket cannot be used: {error}"),
        how: "see the limit of open files (ulimit -n)".to_owned(),
    };
    if let Some(stranger) = &mut stranger {
        give_socket_away(stranger, &mut sockets)?;
    }
    let mut devices = Device::pair(&world.devices, world.mtu).map_err(devices_failed)?;
    if program.is_some() {
        // The user's programs see each packet as it crossed the path, also those that look at the device.
        devices.iter_mut().for_each(|device| device.supports_trains = false);
    }
    let host_clock = HostClock::anchor();
    let clock = host_clock.run_from(host_clock.now_ns() + LEAD.as_nanos() as i64);
    let common = EndContext {
        clock,
        budget: RowBudget::new(MAX_ROWS),
        alarm: Arc::default(),
        connections: QuicConnections::default(),
        machines,
    };
    let mut ends =
        Ends::new(scenario, &spec, plan.seed, &common, sockets, stranger.as_deref()).map_err(unusable)?;
    let emulator = Emulator::new(EmulatorSetup {
        network: DecidingNetwork::new(scenario, plan.seed, plan.series),
        log: LogWriter::new(&log_header(scenario, &plan), MAX_BYTES),
        capture: snaplen.map(Capture::new),
        devices,
        mtu: world.mtu,
        clock,
        flows: emulated_flows(scenario, &spec, &ends),
        lanes: program
            .as_mut()
            .map(|program| Lanes::new(first_lane(scenario)).reporting(program.take_reader())),
    });
    let entries = match program {
        Some(_) => Some(HostEntry::both(&world.namespaces, world.means).map_err(unusable)?),
        None => None,
    };
    let mut inside = program.zip(entries).map(|(program, entries)| Inside::new(program, entries));
    let measuring = Measuring { place: &place, scenario, plan: &plan, clock };
    let Measured { emulated, mut disturbance } = ends.measure(emulator, &measuring, inside.as_mut())?;
    match world.device_drops() {
        Ok(drops) => disturbance.device_drops = drops.from_host + drops.to_host,
        Err(why) => disturbance.trouble.push(format!("what the devices dropped cannot be read: {why}")),
    }
    disturbance.udp_errors = world.udp_errors();
    if let Some(inside) = &inside {
        warnings.extend(inside.program.notes().into_iter().map(warning::note));
    }
    let finished = FinishedRun { scenario, spec: &spec, plan: &plan, ends: &ends, emulated, disturbance };
    Ok(finished.done(warnings))
}

/// Whether the emulator can carry the flows; else why not.
fn check(scenario: &Scenario, spec: &SessionSpec, stranger: Option<&Stranger<'_>>) -> Result<(), String> {
    if scenario.flows.len() > MAX_FLOWS {
        return Err(format!("the emulator has ports for {MAX_FLOWS} flows at most"));
    }
    check_congestion_controls(spec)?;
    stranger.map_or(Ok(()), |stranger| stranger.check(scenario, spec))
}

/// What the log of arrivals says of its run.
fn log_header(scenario: &Scenario, plan: &RunPlan<'_>) -> LogHeader {
    LogHeader {
        cell: plan.cell,
        repetition: plan.repetition,
        seed: plan.seed.get(),
        flows: u32::try_from(scenario.flows.len()).unwrap_or(u32::MAX),
        links: u32::try_from(scenario.links.len()).unwrap_or(u32::MAX),
    }
}

/// The warnings about values that the scenario asks of the hosts' kernels and that could not be set.
fn unset_warnings(settings: &[Setting], world: &World) -> Vec<String> {
    // A missing packet steering has no warning of its own. The emulator's thread then does the hosts' work
    // too, and the lateness in the report shows the effect.
    // A setting for programs that is missing is one that an older kernel does not have.
    let is_quiet = |path: &CStr| path == STEERING || PROGRAM_SETTINGS.contains(&path);
    let unset = settings.iter().zip(&world.unset).filter(|((path, _), unset)| **unset && !is_quiet(path));
    let line = |path: &CStr| {
        format!("emu: {} cannot be written; the kernel's own value holds", path.to_string_lossy())
    };
    let mut warnings: Vec<_> = unset.map(|((path, _), _)| line(path)).collect();
    if world.route_is_unset {
        warnings.push(
            "emu: the routes cannot be made; the kernel's own initial_window and delayed_ack hold".to_owned(),
        );
    }
    warnings
}

/// Gives the stranger the socket of the end whose place the stranger takes.
fn give_socket_away(stranger: &mut Stranger<'_>, sockets: &mut [Option<OwnedFd>]) -> Result<(), ArenaError> {
    let Some(socket) = sockets.get_mut(stranger.socket_index()).and_then(Option::take) else {
        return Ok(());
    };
    (stranger.take_socket)(socket)
        .map_err(|error| ArenaError::far_end(format!("the socket was not taken: {error}")))
}

/// Makes the kernel report stamps and headers of what arrives at the hosts' UDP sockets. Returns a warning
/// for each thing that this kernel does not report.
fn unreported(sockets: &[Option<OwnedFd>], plans: &[SocketPlan<'_>], ip: IpVersion) -> Vec<String> {
    let of_datagrams = |plan: &SocketPlan<'_>| plan.transport.channel_kind().is_udp();
    let pairs = sockets.iter().zip(plans).filter(|(_, plan)| of_datagrams(plan));
    let all: BTreeSet<_> = pairs
        .filter_map(|(socket, _)| socket.as_ref())
        .flat_map(|socket| report_arrivals(socket.as_fd(), ip == IpVersion::V6))
        .collect();
    all.into_iter().map(|what| format!("emu: this host's kernel {what}")).collect()
}

/// The number of the first lane in the network: those of the flows and of their second paths come before.
fn first_lane(scenario: &Scenario) -> u32 {
    let seconds = second_paths(scenario).iter().flatten().count();
    u32::try_from(scenario.flows.len() + seconds).unwrap_or(u32::MAX)
}

/// A program of the user in a run, and what it needs to start.
struct Inside<'a> {
    program: &'a mut (dyn Program + 'static),
    /// `None` once the program was started.
    entries: Option<[HostEntry; 2]>,
}

impl<'a> Inside<'a> {
    const fn new(program: &'a mut (dyn Program + 'static), entries: [HostEntry; 2]) -> Self {
        Self { program, entries: Some(entries) }
    }

    /// Starts the program.
    fn start(&mut self) -> io::Result<()> {
        self.entries.take().map_or(Ok(()), |entries| self.program.start(entries))
    }
}

/// What a repetition is, for the threads that run it.
struct Measuring<'a> {
    place: &'a OwnProcessor,
    scenario: &'a Scenario,
    plan: &'a RunPlan<'a>,
    clock: RunClock,
}

/// What the run itself gave.
struct Measured {
    emulated: Emulated,
    disturbance: Disturbance,
}

/// The threads that serve the ends of flows, all in real time if that is allowed.
struct EndThreads<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    /// The emulator's processor, which they leave to it.
    place: &'env OwnProcessor,
    running: Vec<ScopedJoinHandle<'scope, io::Result<()>>>,
}

impl<'scope> EndThreads<'scope, '_> {
    fn start(&mut self, serve: impl FnOnce() -> io::Result<()> + Send + 'scope) -> Result<(), ArenaError> {
        let place = self.place;
        let serving = thread::Builder::new().spawn_scoped(self.scope, move || in_real_time(place, serve));
        self.running.push(serving.map_err(ArenaError::no_thread)?);
        Ok(())
    }

    /// Whether one of them has ended.
    fn has_ended(&self) -> bool {
        self.running.iter().any(ScopedJoinHandle::is_finished)
    }

    /// Waits for all of them; says which failed.
    fn join(self) -> impl Iterator<Item = String> {
        self.running.into_iter().filter_map(|thread| match thread.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("a thread of the endpoints ended: {error}")),
            Err(_) => Some("a thread of the endpoints failed".to_owned()),
        })
    }
}

impl Ends {
    /// Runs the repetition: starts the threads, watches over them and joins them.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started, or if a device failed.
    fn measure(
        &mut self,
        emulator: Emulator<'_>,
        measuring: &Measuring<'_>,
        inside: Option<&mut Inside<'_>>,
    ) -> Result<Measured, ArenaError> {
        let Measuring { place, scenario, plan, clock } = *measuring;
        let (stop, stop_emulator) = (AtomicBool::new(false), AtomicBool::new(false));
        let connecting = core::mem::take(&mut self.connecting);
        let slow = core::mem::take(&mut self.slow);
        let has_streams = !connecting.is_empty();
        let paced = self.paced();
        // A run with a program lasts as long as the program, which nobody knows.
        let known = if scenario.program.is_some() { Duration::ZERO } else { scenario.duration };
        let interval = sample_interval(known);
        let (all, datagrams, epoll, alarm) = (&self.all, &self.datagrams, &self.epoll, &self.alarm);
        let _shallow = ShallowSleep::begin();
        let stolen = StolenTime::start();
        thread::scope(|scope| {
            let stop = &stop;
            // The scope waits for its threads, so they must end however this function ends.
            let _stops = [stop, &stop_emulator].map(StoresOnDrop);
            let thread = thread::Builder::new;
            let emulating = || emulator.run(place, &stop_emulator);
            let emulating = thread().spawn_scoped(scope, emulating).map_err(ArenaError::no_thread)?;
            let mut threads = EndThreads { scope, place, running: Vec::new() };
            if !datagrams.is_empty() {
                threads.start(move || receive_datagrams(datagrams, stop))?;
            }
            if has_streams {
                threads.start(move || serve_connections(epoll, all, clock, interval, stop))?;
            }
            for (socket, end) in slow {
                threads.start(move || read_slowly(&socket, &end, clock, stop))?;
            }
            // The pacer waits for the run's beginning by itself and in real time, because a busy machine may
            // delay this thread beyond the beginning.
            let pacer = || {
                place.leave();
                pace(&paced, clock, alarm, stop)
            };
            let pacer = thread().spawn_scoped(scope, pacer).map_err(ArenaError::no_thread)?;
            // The clock reads zero until the run begins. Without this sleep a flow that starts at zero would
            // start before the run.
            clock.sleep_until(Instant::ZERO, LEAD);
            if has_streams {
                threads.start(move || connect_flows(connecting, epoll, clock, stop))?;
            }
            // A thread that ended before the stop ends the run.
            let is_broken = || emulating.is_finished() || threads.has_ended();
            let is_interrupted = match inside {
                Some(inside) => {
                    inside.start().map_err(program_failed)?;
                    watch_program(inside.program, plan, clock, &is_broken);
                    false
                }
                None => self.watch(scenario, plan, clock, &is_broken),
            };
            if !is_interrupted && !is_broken() {
                let near: Vec<_> = self.flows.iter().map(|flow| Arc::clone(&flow.near)).collect();
                close_connections(&near, clock);
            }
            stop.store(true, Ordering::Relaxed);
            let failed_pacer = pacer.join().is_err().then(|| "the pacer failed".to_owned());
            let mut trouble: Vec<String> = failed_pacer.into_iter().chain(threads.join()).collect();
            // The emulator stops after the ends, so that no packet of theirs is left in a device.
            stop_emulator.store(true, Ordering::Relaxed);
            let emulated =
                emulating.join().unwrap_or_else(|_| Err(io::Error::other("the emulator's thread failed")));
            // The sockets are drained after the emulator has stopped, so that nothing more comes.
            let sockets = self.flows.iter().map(FlowEnds::drain_sockets).collect();
            trouble.extend(self.finish(scenario));
            let stolen_share = stolen.share();
            let disturbance =
                Disturbance { trouble, sockets, is_interrupted, stolen_share, ..Disturbance::default() };
            Ok(Measured { emulated: emulated.map_err(devices_failed)?, disturbance })
        })
    }

    /// Ends the logs; says which flows failed, and why.
    fn finish(&self, scenario: &Scenario) -> Vec<String> {
        for end in &self.all {
            end.lock().finish();
        }
        let failed = |(flow, ends): (&Flow, &FlowEnds)| {
            let near = ends.near.lock();
            near.failure.as_ref().map(|why| format!("flow {}: {why}", flow.name))
        };
        scenario.flows.iter().zip(&self.flows).filter_map(failed).collect()
    }

    /// Waits for the end of the run: until all messages are delivered, or until none has arrived for the
    /// scenario's `drain`. Returns true if the user has interrupted the run.
    fn watch(
        &self,
        scenario: &Scenario,
        plan: &RunPlan<'_>,
        clock: RunClock,
        is_broken: &dyn Fn() -> bool,
    ) -> bool {
        let stop = Instant::ZERO + scenario.duration;
        loop {
            let now = clock.now();
            (plan.progress)(now);
            if plan.interrupt.load(Ordering::Relaxed) {
                return true;
            }
            if is_broken() {
                return false;
            }
            if now >= stop {
                let last = self.flows.iter().map(FlowEnds::last_arrival).fold(stop, Instant::max);
                if self.flows.iter().all(FlowEnds::is_delivered) || now > last.saturating_add(scenario.drain)
                {
                    return false;
                }
            }
            clock.sleep_until(now.saturating_add(WATCH), WATCH);
        }
    }
}

/// Waits until the program has ended, or until a thread of the run has. If the user stops the run, the
/// program is asked to end.
fn watch_program(
    program: &mut (dyn Program + 'static),
    plan: &RunPlan<'_>,
    clock: RunClock,
    is_broken: &dyn Fn() -> bool,
) {
    while !program.is_over() {
        let now = clock.now();
        (plan.progress)(now);
        if plan.interrupt.load(Ordering::Relaxed) || is_broken() {
            program.ask_to_end();
        }
        clock.sleep_until(now.saturating_add(WATCH), WATCH);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn program_failed(error: io::Error) -> ArenaError {
    ArenaError::Unavailable {
        what: format!("the program cannot be started inside the network: {error}"),
        how: "see the limits of processes and open files (ulimit -u, ulimit -n)".to_owned(),
    }
}

/// Runs an endpoint's loop in a real-time thread if that is allowed, because some times are taken when the
/// thread wakes up.
fn in_real_time<T>(emulator: &OwnProcessor, run: impl FnOnce() -> T) -> T {
    emulator.leave();
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    // The error is ignored here, because the emulator's report says whether real-time priority is allowed.
    let _ = become_real_time();
    run()
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

fn emulated_flows(scenario: &Scenario, spec: &SessionSpec, ends: &Ends) -> Vec<EmuFlow> {
    let seconds = second_paths(scenario);
    scenario
        .flows
        .iter()
        .zip(&spec.flows)
        .enumerate()
        .map(|(index, (flow, flow_spec))| {
            let transport = flow_spec.transport.kind();
            let flow_ends = &ends.flows[index];
            let members = spec.members(index);
            let are_reliable =
                || members.iter().map(|&member| spec.flows[member].features().is_reliable).collect();
            let watch = |way: usize| match (flow_spec.transport.channel_kind(), transport, &flow_ends.notes) {
                (_, _, Some(notes)) => LegWatch::packets(Arc::clone(&notes[way]), are_reliable()),
                (ChannelKind::Connection, ..) | (_, TransportKind::Quic(_), _) => LegWatch::stream(),
                (kind @ (ChannelKind::Datagrams | ChannelKind::OverUdp), ..) => {
                    LegWatch::datagrams(token(index), transport, kind.runs_here())
                }
            };
            EmuFlow {
                sender: sender(flow),
                transport,
                is_multipath: flow_spec.transport.is_multipath(),
                second_path: seconds[index],
                watches: [watch(0), watch(1)],
                marked: [0; 2],
                late: 0,
                drops: members.iter().map(|&member| Arc::clone(&ends.flows[member].drops)).collect(),
            }
        })
        .collect()
}

/// The time from the start of the threads to the beginning of the run, at which all threads must wait
/// (chosen: some time slices of a busy machine).
pub(super) const LEAD: Duration = Duration::from_millis(100);
/// The interval at which the run's state is checked.
const WATCH: Duration = Duration::from_millis(10);
/// The largest number of rows that a run may keep (chosen: some gigabytes).
const MAX_ROWS: u64 = 100_000_000;
