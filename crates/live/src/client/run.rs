//! One session of the client, from the description of its flows to the record.

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
    /// The user vouches for both clocks.
    clocks_synchronised: bool,
    plan: RunPlan<'a>,
    ends: Vec<Arc<SharedEnd>>,
    sockets: Vec<(Arc<UdpSocket>, Arc<SharedEnd>)>,
    /// The routes of the flows over datagrams.
    ways: Vec<Way>,
    /// The registrations that reached the server before the run.
    seen: Registrations,
    notice: Notice,
    /// What this kernel does not report about datagrams that arrive.
    unreported: BTreeSet<Unreported>,
    epoll: Arc<OwnedFd>,
    budget: Arc<RowBudget>,
    alarm: Arc<Alarm>,
    warnings: Vec<String>,
}

/// What the watch over a run saw.
struct Watched {
    outcome: RunOutcome,
    /// The far clock against ours, during the run.
    probes: Vec<Probe>,
    /// When nothing at all came over the control connection for long.
    silences: Vec<Silence>,
}

/// A time in which nothing came over the control connection.
struct Silence {
    from: Instant,
    length: Duration,
}

/// Why the run's loop ended.
enum RunOutcome {
    Drained,
    Interrupted,
    Gone(String),
    /// This host gives no thread for the run.
    NoThread(String),
}

/// What the server reports after a run.
struct Collected {
    /// Of each flow the far end's log.
    logs: Vec<Chunk>,
    /// The far clock against ours, after the run.
    probes: Vec<Probe>,
    totals: ServerTotals,
}

/// A run that both hosts have agreed on and opened their ports for.
pub struct PreparedRun<'a> {
    far: ServerControl,
    session: Session<'a>,
    host: HostClock,
    before: Vec<Probe>,
}

/// A run whose beginning both hosts have agreed on.
pub struct BegunRun<'a> {
    prepared: PreparedRun<'a>,
    start: Starts,
}

/// When a run begins, ns since 1970 on each host's own clock.
#[derive(Clone, Copy)]
struct Starts {
    ours: i64,
    theirs: i64,
}

/// Agrees on a run of `scenario` with the server behind `far`.
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
    let mut before = far.probe(host).map_err(ArenaError::far_end)?;
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
        seen: Registrations::default(),
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
    before.extend(session.fetch_tickets(&mut far, host)?);
    session.stamp_transmissions();
    Ok(PreparedRun { far, session, host, before })
}

impl<'a> PreparedRun<'a> {
    /// Agrees with the server on the beginning: `at_ns` of CLOCK_MONOTONIC, or soon if that is past or
    /// `None`. Waits until shortly before it; the server holds a session for 30 s before it begins.
    ///
    /// # Errors
    /// The far end is gone, or the user stopped it.
    pub fn begin(mut self, at_ns: Option<i64>) -> Result<BegunRun<'a>, ArenaError> {
        let lead = lead_ns(&self.before);
        let at = at_ns.map(|at_ns| self.host.at_monotonic(at_ns));
        if let Some(at) = at {
            self.wait_until(at - lead - GO_AHEAD_NS)?;
        }
        let offset = Offset::new(&self.before, &[], &[])
            .ok_or_else(|| ArenaError::far_end("the clocks could not be compared".to_owned()))?;
        let soonest = self.host.now_ns() + lead;
        let start = at.map_or(soonest, |at| at.max(soonest));
        let asked = start.saturating_add(offset.at_start());
        let far_start = self.far.go(asked).map_err(ArenaError::far_end)?;
        if far_start.saturating_sub(asked) > latest_start_ns(&self.before) {
            return Err(ArenaError::far_end(format!(
                "{} would begin the run later than any server does",
                self.far.name()
            )));
        }
        // The server may have begun later than asked; our clock then begins with it.
        let start = if far_start > asked { start.max(offset.to_ours(far_start)) } else { start };
        Ok(BegunRun { prepared: self, start: Starts { ours: start, theirs: far_start } })
    }

    /// Waits until this host's clock shows `until_ns`. The server is shown that its client lives, and the
    /// clocks are compared anew.
    fn wait_until(&mut self, until_ns: i64) -> Result<(), ArenaError> {
        let mut next_probe = self.host.now_ns() + SIGN_OF_LIFE_NS;
        let clock = self.host.run_from(self.host.now_ns());
        while self.host.now_ns() < until_ns {
            if self.session.plan.interrupt.load(Ordering::Relaxed) {
                return Err(ArenaError::Interrupted { partial: None });
            }
            if self.host.now_ns() >= next_probe {
                next_probe = self.host.now_ns() + SIGN_OF_LIFE_NS;
                self.before.push(self.far.probe_once(self.host, 0).map_err(ArenaError::far_end)?);
            }
            let left = u64::try_from(until_ns - self.host.now_ns()).unwrap_or(0);
            clock.sleep_until(Instant::MAX, Duration::from_nanos(left).min(WAIT_SLICE));
        }
        Ok(())
    }
}

impl<'a> BegunRun<'a> {
    /// CLOCK_MONOTONIC of this host when it begins, ns.
    pub const fn start_ns(&self) -> i64 {
        self.prepared.host.to_monotonic(self.start.ours)
    }

    /// The same run, with `progress` called now and then with its own time.
    pub fn watched_by<'b>(self, progress: &'b (dyn Fn(Instant) + Sync)) -> BegunRun<'b>
    where
        'a: 'b,
    {
        let mut begun: BegunRun<'b> = self;
        begun.prepared.session.plan.progress = progress;
        begun
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// [`ArenaError`] with what was measured.
    pub fn run(self) -> Result<RunRecord, ArenaError> {
        let PreparedRun { mut far, mut session, host, before } = self.prepared;
        let mut ways = std::mem::take(&mut session.ways);
        let clock = host.run_from(self.start.ours);
        for end in &session.ends {
            end.lock().set_clock(clock);
        }
        let (watched, disturbance) = session.measure(&mut ways, &mut far, host, clock);
        session.ways = ways;
        session.conclude(far, watched, &before, host, self.start, &disturbance)
    }
}

/// What the machine did to the run.
#[derive(Default)]
struct Disturbance {
    realtime_denied: Option<String>,
    drops: UdpDrops,
    trouble: Option<String>,
    stolen_share: Option<f64>,
}

impl Session<'_> {
    /// Registers the flows over datagrams. Where nothing came back over UDP in the session before, that is
    /// not waited for again, and not said again.
    fn register(&mut self, far: &mut ServerControl, udp_is_silent: &AtomicBool) -> Result<(), ArenaError> {
        let mut ways = std::mem::take(&mut self.ways);
        let was_silent = udp_is_silent.load(Ordering::Relaxed);
        let patience_ns = if was_silent { ways::REGISTER_AGAIN_NS } else { ways::REGISTER_NS };
        ways::register(&mut ways, patience_ns, self)?;
        if ways.iter().any(Way::is_closed) {
            self.seen = far.registrations().map_err(ArenaError::far_end)?;
        }
        match ways::closed(&ways, far, &self.seen) {
            Some((text, is_all)) => {
                udp_is_silent.store(is_all, Ordering::Relaxed);
                if !(is_all && was_silent) {
                    self.notice.give(&text);
                }
            }
            None if ways.is_empty() => {}
            None => udp_is_silent.store(false, Ordering::Relaxed),
        }
        self.ways = ways;
        Ok(())
    }

    /// The run itself: three threads and the watch over them.
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
            // However this ends, the threads end with it.
            let stops = StoresOnDrop(&stop);
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
            let refused = receivers.iter().filter_map(|thread| thread.as_ref().err());
            let mut watched =
                Watched { outcome: RunOutcome::Drained, probes: Vec::new(), silences: Vec::new() };
            watched.outcome = match pacer.as_ref().err().into_iter().chain(refused).next() {
                Some(error) => RunOutcome::NoThread(error.to_string()),
                None => self.watch(ways, far, host, clock, &mut watched),
            };
            if matches!(watched.outcome, RunOutcome::Drained) {
                close_connections(&self.ends, clock);
            }
            drop(stops);
            disturbance.realtime_denied = pacer
                .map_or(None, |pacer| pacer.join().unwrap_or_else(|_| Some("the pacer failed".to_owned())));
            for thread in receivers.into_iter().flatten() {
                match thread.join() {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        disturbance.trouble = Some(format!("a receiving thread ended: {error}"));
                    }
                    Err(_) => disturbance.trouble = Some("a receiving thread failed".to_owned()),
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

    /// Asks the server how far it is, until all is delivered, nothing was for `drain`, or something ends the
    /// run.
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
            let mut is_drained = true;
            let mut arrived = 0_u64;
            for (end, theirs) in self.ends.iter().zip(&theirs) {
                let end = end.lock();
                let (progress, last_arrival) = (end.progress(), end.last_arrival());
                last_delivery = last_delivery.max(last_arrival);
                arrived = arrived.saturating_add(arrived_bytes(&end.spec, progress, *theirs));
                is_drained &= match end.failure {
                    // Nothing more will come of this flow, but its messages are due until the stop.
                    Some(_) => now >= stop,
                    None => is_delivered(&end.spec, progress, *theirs),
                };
            }
            if self.budget.is_spent() {
                return RunOutcome::Gone(
                    "this host's limit of rows is reached; make the run shorter".to_owned(),
                );
            }
            deadline.note(arrived, clock.now());
            if let Some(why) = deadline.overrun(clock.now()) {
                return RunOutcome::Gone(format!("{} {why}", far.name()));
            }
            if is_drained || clock.now() > last_delivery.saturating_add(drain) {
                // A connection that never opened ends the run at once: no look came after the stop.
                ways::note_silence(ways, clock.now());
                return RunOutcome::Drained;
            }
        }
    }

    /// Whether the far end says that it received more than ever, of what was sent from here.
    fn has_received_more(&self, theirs: &[EndProgress], most: &mut [u64]) -> bool {
        let mut has_more = false;
        for ((end, theirs), most) in self.ends.iter().zip(theirs).zip(most) {
            let received = theirs.received.min(end.lock().progress().sent);
            has_more |= received > *most;
            *most = received.max(*most);
        }
        has_more
    }

    /// Collects the far end's logs and writes the record.
    fn conclude(
        mut self,
        mut far: ServerControl,
        Watched { outcome, probes, silences }: Watched,
        before: &[Probe],
        host: HostClock,
        start: Starts,
        disturbance: &Disturbance,
    ) -> Result<RunRecord, ArenaError> {
        let mut gone = match &outcome {
            RunOutcome::Gone(why) => Some(why.clone()),
            RunOutcome::NoThread(error) => return Err(ArenaError::no_thread(error)),
            RunOutcome::Drained | RunOutcome::Interrupted => None,
        };
        // If one flow failed, the control connection may still report what the others did.
        let patience_s = if matches!(outcome, RunOutcome::Drained) { OUTAGE_S } else { SILENCE_S };
        // Who interrupted the run wants its report still; who interrupts the report does not.
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
        let offset = Offset::new(before, &probes, &after)
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
        let seen = if logs.is_some() { &totals.registrations } else { &self.seen };
        record.warnings.extend(self.way_warnings(seen, far_port));
        self.judge(&mut record, disturbance, &totals, logs.as_deref());
        let partial = |record| Some(Box::new(record));
        match (gone, is_interrupted) {
            (_, true) => Err(ArenaError::Interrupted { partial: partial(record) }),
            (Some(what), false) => Err(ArenaError::FarEnd { what, partial: partial(record) }),
            (None, false) => Ok(record),
        }
    }

    fn collect(
        &self,
        far: &mut ServerControl,
        host: HostClock,
        patience_s: u64,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Collected, String> {
        let totals = far.stop(patience_s)?;
        let moved = self.ends.iter().map(|end| end.lock().progress());
        let rows = report_bound(&self.spec, moved).min(CLIENT_ROWS);
        let report = Report::begin(rows, interrupt);
        let logs = (0..self.ends.len()).map(|index| far.report(index, &report)).collect::<Result<_, _>>()?;
        let probes = far.probe(host)?;
        Ok(Collected { logs, probes, totals })
    }
}

/// A silence of `ns` that ends now.
fn silence(now: Instant, ns: i64) -> Silence {
    let length = Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
    Silence { from: Instant::from_nanos(now.as_nanos().saturating_sub(length.as_nanos())), length }
}

/// The words for a silence of the control connection.
fn silence_warning(Silence { from, length }: Silence) -> String {
    let from_s = from.since(Instant::ZERO).as_millis_f64() / 1e3;
    let length_s = length.as_millis_f64() / 1e3;
    format!(
        "from {from_s:.1} s of the run the far end was silent for {length_s:.1} s: the path was broken, or the far host stood \
         still; nobody looked at its clock meanwhile"
    )
}

/// Whether all that was sent on a flow has arrived, and nothing more will be sent.
fn is_delivered(spec: &FlowSpec, near: EndProgress, far: EndProgress) -> bool {
    let (sender, receiver) = if spec.is_up { (near, far) } else { (far, near) };
    let is_there = sender.is_done && receiver.received == sender.sent;
    let is_back = spec.echo_per_read.is_none() || sender.received == sender.sent;
    is_there && is_back
}

/// How long after the client's word both ends begin: the word must have reached the server, and its answer
/// this host, whose threads must be ready to begin in time. If the word comes late all the same, both begin
/// later.
fn lead_ns(probes: &[Probe]) -> i64 {
    let slowest = probes.iter().map(Probe::round_trip).max().unwrap_or(0);
    LEAD_NS + slowest.min(MAX_ROUND_TRIP_NS)
}

/// The most that a server begins later than it was asked to.
fn latest_start_ns(probes: &[Probe]) -> i64 {
    let slowest = probes.iter().map(Probe::round_trip).max().unwrap_or(0);
    LATEST_START_NS.saturating_add(slowest)
}

/// For the threads, and for what the word takes longer than the probes did (chosen).
const LEAD_NS: i64 = 100_000_000;
/// A server begins at most 5 s after it hears the word.
const MAX_ROUND_TRIP_NS: i64 = 4_000_000_000;
/// The same, plus the longest round trip, is what a client believes: the word itself may come late.
const LATEST_START_NS: i64 = 5_000_000_000;
/// How long before the beginning the word goes out, beyond what the word itself takes (chosen: two
/// retransmissions on a path of 200 ms; a server begins at most 5 s after it).
const GO_AHEAD_NS: i64 = 1_000_000_000;
/// A server lets a client go that says nothing for 10 s.
const SIGN_OF_LIFE_NS: i64 = 2_000_000_000;
/// How often a wait looks whether it shall end.
const WAIT_SLICE: Duration = Duration::from_millis(50);
/// How often is looked whether the ways of flows are open.
const LOOK_AT_WAYS: Duration = Duration::from_millis(100);
/// How often the server is asked how far it is: 200 B each way, which no measured path should notice ...
const ASK: Duration = Duration::from_millis(500);
/// ... and while the run drains.
const ASK_DRAINING: Duration = Duration::from_millis(50);
/// Rows that a run may keep here: 1 GB or so.
const CLIENT_ROWS: u64 = 20_000_000;
