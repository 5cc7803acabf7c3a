//! One session of the client, from the description of the flows to the record.

mod drain;
mod record;
mod report_bound;
mod sender;
mod sockets;
mod ways;

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::epoll;
use talkpath_arena::offset::{Offset, Probe};
use talkpath_arena::{ArenaError, RunPlan};
use talkpath_kernel::alarm::Alarm;
use talkpath_kernel::clock::{HostClock, RunClock};
use talkpath_kernel::end::{EndContext, QuicConnections, SharedEnd};
use talkpath_kernel::join::RunEnd;
use talkpath_kernel::log::{Chunk, RowBudget, sample_interval};
use talkpath_kernel::progress::EndProgress;
use talkpath_kernel::spec::{FlowSpec, SessionSpec};
use talkpath_kernel::stolen::StolenTime;
use talkpath_kernel::sys::Unreported;
use talkpath_kernel::threads::{StoresOnDrop, close_connections, pace, receive_datagrams, serve_connections};
use talkpath_kernel::udp_drops::{DropCount, UdpDrops};
use talkpath_measure::RunRecord;
use talkpath_model::Scenario;
use talkpath_units::{Duration, Instant};

use super::control::{Report, ServerControl, ServerTotals};
use super::{LiveOptions, Notice};
use crate::protocol::{OUTAGE_S, Registrations, SILENCE_S};
use drain::{DrainDeadline, arrived_bytes};
use report_bound::report_bound;
pub(crate) use sockets::enlarge_receive_buffer;
use sockets::unavailable;
use ways::Way;

/// A session whose flows have their sockets.
struct Session<'a> {
    scenario: &'a Scenario,
    spec: SessionSpec,
    /// Whether the user vouches that both clocks show the same time.
    clocks_synchronised: bool,
    plan: RunPlan<'a>,
    /// This host's end of each flow, in the order of `spec`.
    ends: Vec<Arc<SharedEnd>>,
    /// The UDP sockets. Flows that share a connection share the socket of the first of these flows.
    sockets: Vec<(Arc<UdpSocket>, Arc<SharedEnd>)>,
    /// The ways of the flows over UDP, which are explained in ways.rs.
    ways: Vec<Way>,
    /// The registrations that reached the server before the run.
    early_registrations: Registrations,
    notice: Notice,
    /// The facts about arriving datagrams that this kernel does not report.
    unreported: BTreeSet<Unreported>,
    epoll: Arc<OwnedFd>,
    budget: Arc<RowBudget>,
    alarm: Arc<Alarm>,
    warnings: Vec<String>,
}

/// What the main loop of a run ([`Session::watch`]) has observed.
struct Watched {
    outcome: RunOutcome,
    /// The comparisons of the far host's clock with this host's clock during the run.
    probes: Vec<Probe>,
    /// The long times in which nothing came over the control connection.
    silences: Vec<Silence>,
}

/// A time in which nothing came over the control connection.
struct Silence {
    from: Instant,
    length: Duration,
}

/// The reason why the main loop of a run ended.
enum RunOutcome {
    /// Everything was delivered, or nothing was delivered for the time of the drain.
    Drained,
    /// The user stopped the run.
    Interrupted,
    /// The run cannot go on. Either the server is gone or breaks the protocol, or a limit is reached.
    Gone(String),
    /// This host gives no thread for the run.
    NoThread(String),
}

/// The server's report after a run.
struct Collected {
    /// The server's log of each flow.
    logs: Vec<Chunk>,
    /// The comparisons of the far host's clock with this host's clock after the run.
    probes: Vec<Probe>,
    totals: ServerTotals,
}

/// A run that both hosts have agreed on, and for which both hosts have opened their sockets.
pub struct PreparedRun<'a> {
    far: ServerControl,
    session: Session<'a>,
    host: HostClock,
    /// The comparisons of the clocks before the run.
    probes_before: Vec<Probe>,
}

/// A run whose beginning both hosts have agreed on.
pub struct BegunRun<'a> {
    prepared: PreparedRun<'a>,
    start: Starts,
}

/// The beginning of a run on each host's own clock, ns since 1970.
#[derive(Clone, Copy)]
struct Starts {
    this_host: i64,
    far_host: i64,
}

/// Agrees on a run of `scenario` with the server behind `far`, and opens the sockets of this host.
pub(super) fn prepare<'a>(
    mut far: ServerControl,
    scenario: &'a Scenario,
    spec: SessionSpec,
    options: &LiveOptions,
    plan: RunPlan<'a>,
    mut warnings: Vec<String>,
    udp_is_silent: &AtomicBool,
) -> Result<PreparedRun<'a>, ArenaError> {
    let (admissions, far_warnings) =
        far.begin(&spec, &scenario.flows).map_err(ArenaError::far_end)?.map_err(ArenaError::Unsupported)?;
    warnings.extend(far_warnings);
    let host = HostClock::anchor();
    let mut probes_before = far.probe(host).map_err(ArenaError::far_end)?;
    let provisional = host.run_from(host.now_ns());
    let budget = RowBudget::new(CLIENT_ROWS);
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
        early_registrations: Registrations::default(),
        notice: options.notice.clone(),
        unreported: BTreeSet::new(),
        epoll: Arc::new(epoll),
        budget,
        alarm: Arc::default(),
        warnings,
    };
    let common = EndContext {
        clock: provisional,
        budget: Arc::clone(&session.budget),
        alarm: Arc::clone(&session.alarm),
        connections: QuicConnections::default(),
        machines: options.machines,
    };
    for (flow, admission) in flows.iter().zip(&admissions) {
        session.open(flow, admission, &far, &common)?;
    }
    SharedEnd::introduce(&session.spec, &session.ends);
    let unreported = session.unreported.iter().map(|what| format!("this host's kernel {what}"));
    session.warnings.extend(unreported);
    session.register(&mut far, udp_is_silent)?;
    probes_before.extend(session.fetch_tickets(&mut far, host)?);
    session.stamp_transmissions();
    Ok(PreparedRun { far, session, host, probes_before })
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
        let lead = lead_ns(&self.probes_before);
        let at = at_ns.map(|at_ns| self.host.at_monotonic(at_ns));
        if let Some(at) = at {
            self.wait_until(at - lead - GO_AHEAD_NS)?;
        }
        let offset = Offset::new(&self.probes_before, &[], &[])
            .ok_or_else(|| ArenaError::far_end("the clocks could not be compared".to_owned()))?;
        let soonest = self.host.now_ns() + lead;
        let start = at.map_or(soonest, |at| at.max(soonest));
        let asked = start.saturating_add(offset.at_start());
        let far_start = self.far.go(asked).map_err(ArenaError::far_end)?;
        if far_start.saturating_sub(asked) > latest_start_ns(&self.probes_before) {
            return Err(ArenaError::far_end(format!(
                "{} would begin the run later than any server does",
                self.far.name()
            )));
        }
        // If the server begins later than it was asked to, this host begins later, too.
        let start = if far_start > asked { start.max(offset.to_ours(far_start)) } else { start };
        Ok(BegunRun { prepared: self, start: Starts { this_host: start, far_host: far_start } })
    }

    /// Waits until this host's clock shows `until_ns`. Meanwhile compares the clocks now and then, which also
    /// shows the server that its client lives.
    fn wait_until(&mut self, until_ns: i64) -> Result<(), ArenaError> {
        let mut next_probe = self.host.now_ns() + SIGN_OF_LIFE_NS;
        let clock = self.host.run_from(self.host.now_ns());
        while self.host.now_ns() < until_ns {
            if self.session.plan.interrupt.load(Ordering::Relaxed) {
                return Err(ArenaError::Interrupted { partial: None });
            }
            if self.host.now_ns() >= next_probe {
                next_probe = self.host.now_ns() + SIGN_OF_LIFE_NS;
                self.probes_before.push(self.far.probe_once(self.host, 0).map_err(ArenaError::far_end)?);
            }
            let left = u64::try_from(until_ns - self.host.now_ns()).unwrap_or(0);
            clock.sleep_until(Instant::MAX, Duration::from_nanos(left).min(WAIT_SLICE));
        }
        Ok(())
    }
}

impl<'a> BegunRun<'a> {
    /// Returns the beginning of the run, ns of this host's CLOCK_MONOTONIC.
    pub const fn start_ns(&self) -> i64 {
        self.prepared.host.to_monotonic(self.start.this_host)
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
    /// [`ArenaError::Unavailable`] if this host gives no thread.
    pub fn run(self) -> Result<RunRecord, ArenaError> {
        let PreparedRun { mut far, mut session, host, probes_before } = self.prepared;
        // The ways are taken out for the run, because the run changes them and only reads the session.
        let mut ways = std::mem::take(&mut session.ways);
        let clock = host.run_from(self.start.this_host);
        for end in &session.ends {
            end.lock().set_clock(clock);
        }
        let (watched, disturbance) = session.measure(&mut ways, &mut far, host, clock);
        session.ways = ways;
        session.conclude(far, watched, &probes_before, host, self.start, &disturbance)
    }
}

/// How this host disturbed the run.
#[derive(Default)]
struct Disturbance {
    /// The reason why the pacer did not run with real-time priority; `None` if it did. It also says so if the
    /// pacer's thread panicked.
    pacer_problem: Option<String>,
    /// The datagrams that this host's sockets dropped.
    drops: UdpDrops,
    /// The failure of a receiving thread; the last one if several threads failed.
    receiver_failure: Option<String>,
    /// The share of the time that the hypervisor took from this host; `None` if the kernel does not report
    /// it.
    stolen_share: Option<f64>,
}

/// How far all flows of a run are together.
struct RunProgress {
    /// Nothing more will arrive.
    is_drained: bool,
    /// At both ends.
    arrived_bytes: u64,
    /// At this host.
    last_arrival: Instant,
}

impl Session<'_> {
    /// Registers the flows over UDP with the server, and tells the user if the server does not answer. If
    /// nothing came back over UDP in the last session either, the wait is short and the user is not told
    /// again.
    fn register(&mut self, far: &mut ServerControl, udp_is_silent: &AtomicBool) -> Result<(), ArenaError> {
        // The ways are taken out, because the registration changes them and only reads the session.
        let mut ways = std::mem::take(&mut self.ways);
        let was_silent = udp_is_silent.load(Ordering::Relaxed);
        let patience_ns = if was_silent { ways::REGISTER_AGAIN_NS } else { ways::REGISTER_NS };
        ways::register(&mut ways, patience_ns, self)?;
        if ways.iter().any(Way::is_closed) {
            self.early_registrations = far.registrations().map_err(ArenaError::far_end)?;
        }
        match ways::closed(&ways, far, &self.early_registrations) {
            Some((text, is_all)) => {
                udp_is_silent.store(is_all, Ordering::Relaxed);
                if !(is_all && was_silent) {
                    self.notice.give(&text);
                }
            }
            // A session without flows over UDP says nothing about UDP.
            None if ways.is_empty() => {}
            None => udp_is_silent.store(false, Ordering::Relaxed),
        }
        self.ways = ways;
        Ok(())
    }

    /// Carries out the run. Starts up to three threads: the pacer, a thread for datagrams if there are UDP
    /// sockets, and a thread for connections if there are streams. This thread runs the main loop meanwhile.
    fn measure(
        &self,
        ways: &mut [Way],
        far: &mut ServerControl,
        host: HostClock,
        clock: RunClock,
    ) -> (Watched, Disturbance) {
        let stop = AtomicBool::new(false);
        let interval = sample_interval(self.scenario.duration);
        let has_streams = self.spec.flows.iter().any(|flow| !flow.transport.channel_kind().is_udp());
        let mut disturbance = Disturbance { drops: UdpDrops::none(), ..Disturbance::default() };
        let stolen = StolenTime::start();
        let descriptors = || self.sockets.iter().map(|(socket, _)| socket.as_fd());
        let drops = DropCount::start(descriptors());
        let watched = std::thread::scope(|scope| {
            // The guard stops the threads in each case, also after a panic.
            let stop_guard = StoresOnDrop(&stop);
            let thread = || std::thread::Builder::new();
            let pacer = thread().spawn_scoped(scope, || pace(&self.ends, clock, &self.alarm, &stop));
            let mut receivers = Vec::new();
            if !self.sockets.is_empty() {
                let datagrams = || receive_datagrams(&self.sockets, &stop);
                receivers.push(thread().spawn_scoped(scope, datagrams));
            }
            if has_streams {
                let connections = || serve_connections(&self.epoll, &self.ends, clock, interval, &stop);
                receivers.push(thread().spawn_scoped(scope, connections));
            }
            let failed_threads = receivers.iter().filter_map(|thread| thread.as_ref().err());
            let mut watched =
                Watched { outcome: RunOutcome::Drained, probes: Vec::new(), silences: Vec::new() };
            watched.outcome = match pacer.as_ref().err().into_iter().chain(failed_threads).next() {
                Some(error) => RunOutcome::NoThread(error.to_string()),
                None => self.watch(ways, far, host, clock, &mut watched),
            };
            if matches!(watched.outcome, RunOutcome::Drained) {
                close_connections(&self.ends, clock);
            }
            drop(stop_guard);
            disturbance.pacer_problem = pacer
                .map_or(None, |pacer| pacer.join().unwrap_or_else(|_| Some("the pacer failed".to_owned())));
            for thread in receivers.into_iter().flatten() {
                match thread.join() {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        disturbance.receiver_failure = Some(format!("a receiving thread ended: {error}"));
                    }
                    Err(_) => disturbance.receiver_failure = Some("a receiving thread failed".to_owned()),
                }
            }
            watched
        });
        for end in &self.ends {
            end.lock().finish();
        }
        if !self.sockets.is_empty() {
            disturbance.drops = drops.finish(descriptors());
        }
        disturbance.stolen_share = stolen.share();
        (watched, disturbance)
    }

    /// The main loop of a run. Asks the server for its progress and keeps the ways open.
    ///
    /// The run is drained when everything has been delivered, or when nothing has been delivered for the time
    /// of the drain. It ends earlier if the user stops it, if the server is gone, if this host's limit of
    /// rows is reached, or if the drain takes too long ([`DrainDeadline`]).
    fn watch(
        &self,
        ways: &mut [Way],
        far: &mut ServerControl,
        host: HostClock,
        clock: RunClock,
        watched: &mut Watched,
    ) -> RunOutcome {
        let stop = self.spec.stop();
        let drain = Duration::from_nanos(self.spec.drain_ns);
        let mut theirs = vec![EndProgress::default(); self.ends.len()];
        let mut deadline = DrainDeadline::new(stop, drain);
        let mut most_received = vec![0; self.ends.len()];
        let mut last_delivery = stop;
        let mut next_ask = Instant::ZERO;
        let mut next_look = Instant::ZERO;
        loop {
            let now = clock.now();
            (self.plan.progress)(now);
            if self.plan.interrupt.load(Ordering::Relaxed) {
                return RunOutcome::Interrupted;
            }
            if now >= next_ask {
                next_ask = now.saturating_add(if now < stop { ASK } else { ASK_DRAINING });
                if let Err(why) = far.ask(host) {
                    return RunOutcome::Gone(why);
                }
            }
            if now >= next_look {
                next_look = now.saturating_add(LOOK_AT_WAYS);
                ways::keep(ways, &theirs, self, now);
                if now >= stop {
                    ways::note_silence(ways, now);
                }
            }
            match far.hear(if now < stop { 20 } else { 5 }, host) {
                Ok(Some(heard)) if heard.flows.len() == theirs.len() => {
                    watched.probes.extend(heard.probe);
                    watched.silences.extend(heard.silence_ns.map(|ns| silence(clock.now(), ns)));
                    theirs = heard.flows;
                    if self.has_received_more(&theirs, &mut most_received) {
                        last_delivery = last_delivery.max(clock.now());
                    }
                }
                Ok(Some(_)) => return RunOutcome::Gone(format!("{} broke the protocol", far.name())),
                Ok(None) => {}
                Err(why) => return RunOutcome::Gone(why),
            }
            let progress = self.progress(&theirs, now >= stop);
            last_delivery = last_delivery.max(progress.last_arrival);
            if self.budget.is_spent() {
                return RunOutcome::Gone(
                    "this host's limit of rows is reached; make the run shorter".to_owned(),
                );
            }
            deadline.note(progress.arrived_bytes, clock.now());
            if let Some(why) = deadline.overrun(clock.now()) {
                return RunOutcome::Gone(format!("{} {why}", far.name()));
            }
            if progress.is_drained || clock.now() > last_delivery.saturating_add(drain) {
                // A connection that never opened ends the run at once: no look came after the stop.
                ways::note_silence(ways, clock.now());
                return RunOutcome::Drained;
            }
        }
    }

    /// How far all flows are; `theirs` is what the far end said of each. If the run `is_over`, no message is
    /// due any more.
    fn progress(&self, theirs: &[EndProgress], is_over: bool) -> RunProgress {
        let mut all = RunProgress { is_drained: true, arrived_bytes: 0, last_arrival: Instant::ZERO };
        for (end, theirs) in self.ends.iter().zip(theirs) {
            let end = end.lock();
            let ours = end.progress();
            all.last_arrival = all.last_arrival.max(end.last_arrival());
            all.arrived_bytes = all.arrived_bytes.saturating_add(arrived_bytes(&end.spec, ours, *theirs));
            all.is_drained &= match end.failure {
                // Nothing more will come of this flow, but its messages are due until the stop.
                Some(_) => is_over,
                None => is_delivered(&end.spec, ours, *theirs),
            };
        }
        all
    }

    /// Whether the server has received more of this host's messages than it said before. `most` holds the
    /// largest count of each flow so far. The server cannot have received more than this host has sent.
    fn has_received_more(&self, theirs: &[EndProgress], most: &mut [u64]) -> bool {
        let mut has_more = false;
        for ((end, theirs), most) in self.ends.iter().zip(theirs).zip(most) {
            let received = theirs.received.min(end.lock().progress().sent);
            has_more |= received > *most;
            *most = received.max(*most);
        }
        has_more
    }

    /// Ends the run at the server, collects the server's logs, and makes the record. If the logs cannot be
    /// collected, the record holds what this host knows.
    fn conclude(
        mut self,
        mut far: ServerControl,
        Watched { outcome, probes, silences }: Watched,
        probes_before: &[Probe],
        host: HostClock,
        start: Starts,
        disturbance: &Disturbance,
    ) -> Result<RunRecord, ArenaError> {
        let mut gone = match &outcome {
            RunOutcome::Gone(why) => Some(why.clone()),
            RunOutcome::NoThread(error) => return Err(ArenaError::no_thread(error)),
            RunOutcome::Drained | RunOutcome::Interrupted => None,
        };
        // Even if the run could not go on, the server may still have a report. But the server gets less time.
        let patience_s = if matches!(outcome, RunOutcome::Drained) { OUTAGE_S } else { SILENCE_S };
        // A user who has interrupted the run still wants the report, so the interrupt does not end the
        // report. In each other case an interrupt ends the report.
        let interrupt = (!matches!(outcome, RunOutcome::Interrupted)).then_some(self.plan.interrupt);
        let collected = self.collect(&mut far, host, patience_s, interrupt);
        let (logs, after, totals) = match collected {
            Ok(Collected { logs, probes, totals }) => (Some(logs), probes, totals),
            Err(why) => {
                gone.get_or_insert(why);
                (None, Vec::new(), ServerTotals::default())
            }
        };
        let far_port = far.address().port();
        if logs.is_some() {
            far.leave();
        }
        let offset = Offset::new(probes_before, &probes, &after)
            .map(|offset| if self.clocks_synchronised { offset.synchronised() } else { offset });
        let end = if gone.is_none() && matches!(outcome, RunOutcome::Drained) {
            RunEnd::Drained
        } else {
            RunEnd::Cut
        };
        let is_interrupted = matches!(outcome, RunOutcome::Interrupted)
            || logs.is_none() && self.plan.interrupt.load(Ordering::Relaxed);
        let logs = logs.map(|logs| self.far_logs(&logs, offset, start));
        let mut record = self.record(logs.as_deref(), offset, end);
        record.warnings.extend(silences.into_iter().map(silence_warning));
        // The registrations of the whole session are in the report.
        let registrations = if logs.is_some() { &totals.registrations } else { &self.early_registrations };
        record.warnings.extend(self.way_warnings(registrations, far_port));
        self.judge(&mut record, disturbance, &totals, logs.as_deref());
        let partial = |record| Some(Box::new(record));
        match (gone, is_interrupted) {
            (_, true) => Err(ArenaError::Interrupted { partial: partial(record) }),
            (Some(what), false) => Err(ArenaError::FarEnd { what, partial: partial(record) }),
            (None, false) => Ok(record),
        }
    }

    /// Ends the run at the server, and fetches the server's log of each flow. Then compares the clocks again.
    ///
    /// # Errors
    /// Returns one line for a person if the connection fails or the report is interrupted.
    fn collect(
        &self,
        far: &mut ServerControl,
        host: HostClock,
        patience_s: u64,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Collected, String> {
        let totals = far.stop(patience_s)?;
        let progress = self.ends.iter().map(|end| end.lock().progress());
        let rows = report_bound(&self.spec, progress).min(CLIENT_ROWS);
        let report = Report::begin(rows, interrupt);
        let logs = (0..self.ends.len()).map(|index| far.report(index, &report)).collect::<Result<_, _>>()?;
        let probes = far.probe(host)?;
        Ok(Collected { logs, probes, totals })
    }
}

/// Makes a silence of `ns` nanoseconds that ends now.
fn silence(now: Instant, ns: i64) -> Silence {
    let length = Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
    Silence { from: Instant::from_nanos(now.as_nanos().saturating_sub(length.as_nanos())), length }
}

/// Makes the warning about a silence of the control connection.
fn silence_warning(Silence { from, length }: Silence) -> String {
    let from_s = from.since(Instant::ZERO).as_millis_f64() / 1e3;
    let length_s = length.as_millis_f64() / 1e3;
    format!(
        "from {from_s:.1} s of the run the far end was silent for {length_s:.1} s: the path was broken, or the far host stood \
         still; nobody looked at its clock meanwhile"
    )
}

/// Whether everything that was sent on a flow has arrived, and nothing more will be sent.
fn is_delivered(spec: &FlowSpec, near: EndProgress, far: EndProgress) -> bool {
    let (sender, receiver) = if spec.is_up { (near, far) } else { (far, near) };
    let has_arrived = sender.is_done && receiver.received == sender.sent;
    let has_echo = spec.echo_per_read.is_none() || sender.received == sender.sent;
    has_arrived && has_echo
}

/// Returns the time from the client's `go` to the beginning of the run, ns. In this time `go` has to reach
/// the server, the answer has to reach this host, and this host has to start its threads. If `go` still comes
/// too late, both hosts begin later.
fn lead_ns(probes: &[Probe]) -> i64 {
    let slowest = probes.iter().map(Probe::round_trip).max().unwrap_or(0);
    LEAD_NS + slowest.min(MAX_ROUND_TRIP_NS)
}

/// Returns the longest time by which a server may begin later than it was asked to, ns.
fn latest_start_ns(probes: &[Probe]) -> i64 {
    let slowest = probes.iter().map(Probe::round_trip).max().unwrap_or(0);
    LATEST_START_NS.saturating_add(slowest)
}

/// The time for the start of the threads, and for a `go` that takes longer than the probes did (chosen).
const LEAD_NS: i64 = 100_000_000;
/// The longest round trip that [`lead_ns`] allows for. A server begins at most 5 s after it has received
/// `go`.
const MAX_ROUND_TRIP_NS: i64 = 4_000_000_000;
/// The longest delay of the beginning that a server may cause. [`latest_start_ns`] adds the longest round
/// trip, because `go` itself may come late.
const LATEST_START_NS: i64 = 5_000_000_000;
/// How long before the beginning `go` is sent, in addition to the lead (chosen: two retransmissions on a path
/// of 200 ms; a server begins at most 5 s after `go`).
const GO_AHEAD_NS: i64 = 1_000_000_000;
/// The interval at which a waiting client shows that it lives. A server gives up a client that is silent for
/// 10 s.
const SIGN_OF_LIFE_NS: i64 = 2_000_000_000;
/// How often a wait checks whether it has to end.
const WAIT_SLICE: Duration = Duration::from_millis(50);
/// How often the main loop checks the ways of the flows.
const LOOK_AT_WAYS: Duration = Duration::from_millis(100);
/// How often the server is asked for its progress. Each exchange takes 200 B in each direction, which no
/// measured path should notice.
const ASK: Duration = Duration::from_millis(500);
/// How often the server is asked for its progress while the run drains.
const ASK_DRAINING: Duration = Duration::from_millis(50);
/// The number of rows that a run may keep on this host. They take 1 GB or so.
const CLIENT_ROWS: u64 = 20_000_000;
