//! One repetition: two hosts, the emulator between them, the ends of the flows, and the record.

use std::io::{self, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread::ScopedJoinHandle;

use rustix::event::epoll;
use talkpath_arena::{ArenaError, RunPlan};
use talkpath_measure::RunRecord;
use talkpath_scenario::Scenario;
use talkpath_units::{Duration, Instant, Seed};

use super::arrival_log::{LogHeader, LogWriter, MOST_BYTES};
use super::capture::Capture;
use super::conclude::conclude;
use super::connect::{Connecting, connect_flows};
use super::device::Device;
use super::emulator::{EmuFlow, Emulated, Emulator};
use super::host_tcp::HostTcp;
use super::hosts::{check_congestion_controls, device_mtu, sender, socket_plans, token};
use super::network::Network;
use super::packet::{Host, MOST_FLOWS};
use super::report::EmuReport;
use super::slow::{SlowEnd, SlowSocket};
use super::watch::LegWatch;
use super::world::{Setting, World};
use crate::alarm::Alarm;
use crate::clock::{HostClock, RunClock};
use crate::end::{Common, Place, SharedEnd, UdpRoute};
use crate::log::{FlowLog, RowBudget};
use crate::protocol::Progress;
use crate::spec::SessionSpec;
use crate::stolen::StolenTime;
use crate::sys::become_real_time;
use crate::threads::{close_connections, pace, receive_datagrams, sample_interval, serve_connections};

/// What a repetition leaves behind.
pub(super) struct Done {
    pub(super) record: RunRecord,
    pub(super) log: Vec<u8>,
    pub(super) capture: Option<Vec<u8>>,
    pub(super) report: EmuReport,
    pub(super) is_interrupted: bool,
}

/// The ends of all flows, and who serves them.
pub(super) struct Ends {
    pub(super) flows: Vec<FlowEnds>,
    /// What the TCP loop serves: senders at even places, receivers at odd ones.
    all: Vec<Arc<SharedEnd>>,
    datagrams: Vec<(Arc<UdpSocket>, Arc<SharedEnd>)>,
    connecting: Vec<Connecting>,
    slow: Vec<(Arc<SlowEnd>, SlowSocket)>,
    alarm: Arc<Alarm>,
    epoll: Arc<OwnedFd>,
}

/// Both ends of a flow.
pub(super) struct FlowEnds {
    pub(super) near: Arc<SharedEnd>,
    pub(super) far: Far,
    drops: Arc<[AtomicU64; 2]>,
}

pub(super) enum Far {
    Prompt(Arc<SharedEnd>),
    Slow(Arc<SlowEnd>),
}

/// What the threads found.
#[derive(Default)]
pub(super) struct Disturbance {
    pub(super) trouble: Vec<String>,
    pub(super) socket_drops: u64,
    pub(super) device_drops: u64,
    pub(super) is_interrupted: bool,
    /// What a hypervisor took meanwhile.
    pub(super) stolen_share: Option<f64>,
    /// By flow: datagrams that waited in a slow receiver's socket at the end.
    pub(super) unread: Vec<Vec<u64>>,
}

/// Runs `scenario`, keeping `snaplen` bytes of every packet where that is given.
pub(super) fn run(scenario: &Scenario, plan: RunPlan<'_>, snaplen: Option<u32>) -> Result<Done, ArenaError> {
    let spec = SessionSpec::new(scenario, plan.seed, None).map_err(ArenaError::Unsupported)?;
    if scenario.flows.len() > MOST_FLOWS {
        return Err(ArenaError::Unsupported(format!(
            "the emulator has ports for {MOST_FLOWS} flows at most"
        )));
    }
    check_congestion_controls(&spec).map_err(ArenaError::Unsupported)?;
    let mtu = [Host::First, Host::Second].map(|host| device_mtu(scenario, host));
    let host_tcp = HostTcp::of(scenario);
    let settings: Vec<Setting> = host_tcp.settings().collect();
    let plans = socket_plans(scenario, &spec, mtu);
    let mut world = World::build(mtu, &plans, &settings, host_tcp.route())?;
    let mut warnings = host_tcp.warnings(scenario);
    warnings.extend(settings.iter().zip(&world.unset).filter(|(_, unset)| **unset).map(|((path, _), _)| {
        format!("emu: {} cannot be written; the kernel's own value holds", path.to_string_lossy())
    }));
    if world.route_is_unset {
        warnings.push(
            "emu: the routes cannot be made; the kernel's own initial_window and delayed_ack hold".to_owned(),
        );
    }
    let devices = Device::pair(&world.devices, world.mtu).map_err(devices_failed)?;
    let host_clock = HostClock::anchor();
    let clock = host_clock.run_from(host_clock.now_ns() + LEAD.as_nanos() as i64);
    let mut ends = Ends::new(scenario, &spec, plan.seed, core::mem::take(&mut world.sockets), clock)
        .map_err(|error| ArenaError::Unavailable {
            what: format!("a socket cannot be used: {error}"),
            how: "see the limit of open files (ulimit -n)".to_owned(),
        })?;
    let header = LogHeader {
        cell: plan.cell,
        repetition: plan.repetition,
        seed: plan.seed.get(),
        flows: u32::try_from(scenario.flows.len()).unwrap_or(u32::MAX),
        links: u32::try_from(scenario.links.len()).unwrap_or(u32::MAX),
    };
    let emulator = Emulator::new(
        Network::new(scenario, plan.seed, plan.series),
        (LogWriter::new(&header, MOST_BYTES), snaplen.map(Capture::new)),
        devices,
        world.mtu,
        clock,
        emulated_flows(scenario, &spec, &ends),
    );
    let (emulated, mut disturbance, is_interrupted) = ends.measure(emulator, scenario, &plan, clock);
    let emulated = emulated.map_err(devices_failed)?;
    disturbance.device_drops = world.device_drops().map(|drops| drops.from_host + drops.to_host).unwrap_or(0);
    disturbance.is_interrupted = is_interrupted;
    Ok(conclude(scenario, &spec, &plan, &ends, emulated, disturbance, warnings))
}

impl Ends {
    /// Gives each end its socket; `sockets` holds each flow's sender's and receiver's.
    fn new(
        scenario: &Scenario,
        spec: &SessionSpec,
        seed: Seed,
        sockets: Vec<OwnedFd>,
        clock: RunClock,
    ) -> io::Result<Self> {
        let common = Common { clock, budget: RowBudget::new(MOST_ROWS), alarm: Arc::default() };
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let mut ends = Self {
            flows: Vec::new(),
            all: Vec::new(),
            datagrams: Vec::new(),
            connecting: Vec::new(),
            slow: Vec::new(),
            alarm: Arc::clone(&common.alarm),
            epoll,
        };
        let mut sockets = sockets.into_iter();
        for (index, (flow, flow_spec)) in scenario.flows.iter().zip(&spec.flows).enumerate() {
            let (Some(near_socket), Some(far_socket)) = (sockets.next(), sockets.next()) else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            let seed = flow.transport_seed(seed);
            let end = |is_sender| {
                let place = Place { index, is_sender, is_client: is_sender, token: token(index), seed };
                SharedEnd::new(spec, flow_spec, &place, &common)
            };
            let (near, far) = (Arc::new(end(true)), Arc::new(end(false).receiving_file(false)));
            // What reads from a transport of our own is slow by itself.
            far.lock().set_service(flow.receiver.service);
            let slow = (!flow.receiver.service.is_zero() && !flow_spec.is_dccp()).then(|| {
                let log = FlowLog::new(Arc::clone(&common.budget));
                Arc::new(SlowEnd::new(flow_spec, token(index), &flow.receiver, clock, log))
            });
            if flow_spec.is_stream() {
                let slow_reader = slow.as_ref().map(|end| ends.hand_over(end));
                ends.connecting.push(Connecting {
                    index,
                    start: Instant::from_nanos(flow_spec.start_ns),
                    dial: Some(near_socket.into()),
                    listener: Some(far_socket.into()),
                    near: Arc::clone(&near),
                    far: Arc::clone(&far),
                    slow_reader,
                    is_dialled: false,
                });
            } else {
                ends.attach_datagrams(&near, near_socket)?;
                match &slow {
                    Some(end) => ends.slow.push((Arc::clone(end), SlowSocket::Udp(far_socket))),
                    None => ends.attach_datagrams(&far, far_socket)?,
                }
            }
            ends.all.extend([Arc::clone(&near), Arc::clone(&far)]);
            ends.flows.push(FlowEnds {
                near,
                far: slow.map_or(Far::Prompt(far), Far::Slow),
                drops: Arc::new([AtomicU64::new(0), AtomicU64::new(0)]),
            });
        }
        Ok(ends)
    }

    fn attach_datagrams(&mut self, end: &Arc<SharedEnd>, socket: OwnedFd) -> io::Result<()> {
        let socket = Arc::new(UdpSocket::from(socket));
        end.lock().set_route(UdpRoute { socket: Arc::clone(&socket), unconnected: None });
        self.datagrams.push((socket, Arc::clone(end)));
        Ok(())
    }

    /// The way by which a slow receiver gets its connection.
    fn hand_over(&mut self, end: &Arc<SlowEnd>) -> Sender<TcpStream> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.slow.push((Arc::clone(end), SlowSocket::Tcp(receiver)));
        sender
    }

    /// The run itself: the threads and the watch over them.
    fn measure(
        &mut self,
        emulator: Emulator<'_>,
        scenario: &Scenario,
        plan: &RunPlan<'_>,
        clock: RunClock,
    ) -> (io::Result<Emulated>, Disturbance, bool) {
        let (stop, stop_emulator) = (AtomicBool::new(false), AtomicBool::new(false));
        let drops = AtomicU64::new(0);
        let connecting = core::mem::take(&mut self.connecting);
        let slow = core::mem::take(&mut self.slow);
        let has_streams = !connecting.is_empty();
        let paced = self.paced();
        let interval = sample_interval(scenario.duration);
        let (all, datagrams, epoll, alarm) = (&self.all, &self.datagrams, &self.epoll, &self.alarm);
        let mut disturbance = Disturbance::default();
        let _awake = keep_processors_awake();
        let stolen = StolenTime::start();
        std::thread::scope(|scope| {
            let (stop, drops) = (&stop, &drops);
            let emulating = scope.spawn(|| emulator.run(&stop_emulator));
            let mut threads = Vec::new();
            if !datagrams.is_empty() {
                threads.push(scope.spawn(move || in_real_time(|| receive_datagrams(datagrams, stop, drops))));
            }
            if has_streams {
                threads
                    .push(scope.spawn(move || {
                        in_real_time(|| serve_connections(epoll, all, clock, interval, stop))
                    }));
            }
            let slow: Vec<_> = slow
                .into_iter()
                .map(|(end, socket)| {
                    let reader = Arc::clone(&end);
                    (end, scope.spawn(move || in_real_time(|| reader.run(socket, stop))))
                })
                .collect();
            // It waits for the run's beginning by itself, in real time: a busy machine may keep this thread beyond that.
            let pacer = scope.spawn(|| pace(&paced, clock, alarm, stop));
            // The clock reads zero until the run begins, and what starts at zero must not start before.
            clock.sleep_until(Instant::ZERO, LEAD);
            if has_streams {
                threads.push(
                    scope.spawn(move || in_real_time(|| connect_flows(connecting, epoll, clock, stop))),
                );
            }
            // A thread that ended before it was told to will not go on.
            let is_broken = || emulating.is_finished() || threads.iter().any(ScopedJoinHandle::is_finished);
            let is_interrupted = self.watch(scenario, plan, clock, &is_broken);
            if !is_interrupted && !is_broken() {
                let near: Vec<_> = self.flows.iter().map(|flow| Arc::clone(&flow.near)).collect();
                close_connections(&near, clock);
            }
            stop.store(true, Ordering::Relaxed);
            let mut trouble = |what: String| disturbance.trouble.push(what);
            if pacer.join().is_err() {
                trouble("the pacer failed".to_owned());
            }
            for thread in threads {
                match thread.join() {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => trouble(format!("a thread of the endpoints ended: {error}")),
                    Err(_) => trouble("a thread of the endpoints failed".to_owned()),
                }
            }
            let mut unread = vec![Vec::new(); self.flows.len()];
            for (end, thread) in slow {
                let place = self
                    .flows
                    .iter()
                    .position(|it| matches!(&it.far, Far::Slow(it) if Arc::ptr_eq(it, &end)));
                let joined = thread.join();
                let file = end.file();
                end.log().totals.file = file;
                match (joined, place) {
                    (Ok(Ok(left)), Some(place)) => unread[place] = left,
                    (Ok(Err(error)), _) => trouble(format!("a slow receiver ended: {error}")),
                    _ => trouble("a slow receiver failed".to_owned()),
                }
            }
            // Last, so that nothing that the ends wrote is left unread in a device.
            stop_emulator.store(true, Ordering::Relaxed);
            let emulated =
                emulating.join().unwrap_or_else(|_| Err(io::Error::other("the emulator's thread failed")));
            for end in all {
                end.lock().finish();
            }
            for (flow, ends) in scenario.flows.iter().zip(&self.flows) {
                if let Some(why) = &ends.near.lock().base.failure {
                    trouble(format!("flow {}: {why}", flow.name));
                }
            }
            disturbance.socket_drops = drops.load(Ordering::Relaxed);
            disturbance.unread = unread;
            disturbance.stolen_share = stolen.share();
            (emulated, disturbance, is_interrupted)
        })
    }

    /// The ends that have something to do at a time of their own: those that send, and both of a transport of ours.
    fn paced(&self) -> Vec<Arc<SharedEnd>> {
        let far = self.flows.iter().filter_map(|flow| match &flow.far {
            Far::Prompt(end) if end.lock().base.spec.is_dccp() => Some(Arc::clone(end)),
            Far::Prompt(_) | Far::Slow(_) => None,
        });
        self.flows.iter().map(|flow| Arc::clone(&flow.near)).chain(far).collect()
    }

    /// Waits until all is delivered, or nothing was for `drain`; returns whether the user ended it.
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

impl FlowEnds {
    /// Whether all that was sent has arrived, or is known to be dropped, and nothing more will be sent.
    fn is_delivered(&self) -> bool {
        let near = self.near.lock();
        let (spec, sender) = (near.base.spec.clone(), near.progress());
        drop(near);
        let receiver = self.receiver();
        let drops = |way: usize| if spec.is_stream() { 0 } else { self.drops[way].load(Ordering::Relaxed) };
        let is_there = sender.is_done && receiver.is_done && receiver.received + drops(0) >= sender.sent;
        let is_back = match spec.echo_per_read {
            None => true,
            Some(_) if spec.is_stream() => sender.received >= sender.sent,
            Some(_) => sender.received + drops(1) >= receiver.sent,
        };
        is_there && is_back
    }

    fn receiver(&self) -> Progress {
        match &self.far {
            Far::Prompt(end) => end.lock().progress(),
            Far::Slow(end) => end.progress(),
        }
    }

    fn last_arrival(&self) -> Instant {
        let far = match &self.far {
            Far::Prompt(end) => end.lock().base.last_arrival,
            Far::Slow(end) => end.last_arrival(),
        };
        far.max(self.near.lock().base.last_arrival)
    }
}

/// Asks for processors that wake up at once, until the file is closed: the kernel's PM QoS interface, for root.
fn keep_processors_awake() -> Option<std::fs::File> {
    let mut file = std::fs::OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    // The latency that is tolerable, us.
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}

/// Runs an endpoint's loop in real time where that is allowed: what it reads is stamped when it wakes up.
fn in_real_time<T>(run: impl FnOnce() -> T) -> T {
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    // Where it is not allowed the emulator says so, for all threads.
    let _ = become_real_time();
    run()
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn devices_failed(error: io::Error) -> ArenaError {
    ArenaError::Unavailable {
        what: format!("the emulator's devices failed: {error}"),
        how: "is something else removing network namespaces here, or is memory short?".to_owned(),
    }
}

fn emulated_flows(scenario: &Scenario, spec: &SessionSpec, ends: &Ends) -> Vec<EmuFlow> {
    scenario
        .flows
        .iter()
        .zip(&spec.flows)
        .enumerate()
        .map(|(index, (flow, flow_spec))| {
            let watch = || match flow_spec.is_stream() {
                true => LegWatch::stream(),
                false => LegWatch::datagrams(token(index), flow_spec.is_dccp()),
            };
            EmuFlow {
                sender: sender(flow),
                is_dccp: flow_spec.is_dccp(),
                watches: [watch(), watch()],
                drops: Arc::clone(&ends.flows[index].drops),
            }
        })
        .collect()
}

/// The threads are up and waiting when the run begins (chosen: some time slices of a busy machine).
pub(super) const LEAD: Duration = Duration::from_millis(100);
/// How often the run is looked at.
const WATCH: Duration = Duration::from_millis(10);
/// Rows that a run may keep: some gigabytes.
const MOST_ROWS: u64 = 100_000_000;
