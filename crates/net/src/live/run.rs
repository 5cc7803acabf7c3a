//! One session of the client, from the description of its flows to the record.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::time::Timespec;
use talkpath_arena::offset::{Offset, Probe};
use talkpath_arena::{ArenaError, RunPlan};
use talkpath_measure::{ClockRecord, LatenessRecord, MachineRecord, RunRecord};
use talkpath_scenario::Scenario;
use talkpath_units::{Duration, Instant};

use super::far::{Far, FarTotals};
use super::far_end;
use crate::alarm::Alarm;
use crate::clock::{HostClock, RunClock, monotonic};
use crate::end::{Channel, Common, Dial, Place, SharedEnd, UdpRoute, unforeseen_seed};
use crate::join::{
    MOST_WORDS, RunEnd, Timed, file_warnings, flow_record, printable, series, unsent_warnings,
};
use crate::key::from_hex;
use crate::lateness::Lateness;
use crate::log::{FlowLog, RowBudget};
use crate::protocol::{Admission, Progress, Request};
use crate::spec::{FlowSpec, SessionSpec, TransportSpec};
use crate::sys::{ReceiveBatch, SocketSwitch, stamp_transmissions, switch_on};
use crate::threads::{close_connections, pace, receive_datagrams, sample_interval, serve_connections};
use crate::wire::{Secret, registered, registration};

/// A session whose flows have their sockets.
struct Session<'a> {
    scenario: &'a Scenario,
    spec: &'a SessionSpec,
    plan: RunPlan<'a>,
    ends: Vec<Arc<SharedEnd>>,
    sockets: Vec<(Arc<UdpSocket>, Arc<SharedEnd>)>,
    /// By which UDP flows keep their way through address translators open: socket and packet.
    registrations: Vec<(Arc<UdpSocket>, [u8; 32])>,
    epoll: Arc<OwnedFd>,
    budget: Arc<RowBudget>,
    alarm: Arc<Alarm>,
    warnings: Vec<String>,
}

/// Why the run's loop ended.
enum Outcome {
    Drained,
    Interrupted,
    Gone(String),
}

/// Runs `scenario` with the server behind `far`.
pub(super) fn run(
    mut far: Far,
    scenario: &Scenario,
    spec: &SessionSpec,
    plan: RunPlan<'_>,
    mut warnings: Vec<String>,
) -> Result<RunRecord, ArenaError> {
    let (admissions, far_warnings) = far.begin(spec).map_err(far_end)?.map_err(ArenaError::Unsupported)?;
    warnings.extend(far_warnings.into_iter().take(20));
    let host = HostClock::anchor();
    let before = far.probe(host).map_err(far_end)?;
    let offset =
        Offset::new(&before, &[]).ok_or_else(|| far_end("the clocks could not be compared".to_owned()))?;
    let provisional = host.run_from(host.now_ns());
    let budget = RowBudget::new(CLIENT_ROWS);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| unavailable(&error.into()))?;
    let mut session = Session {
        scenario,
        spec,
        plan,
        ends: Vec::new(),
        sockets: Vec::new(),
        registrations: Vec::new(),
        epoll: Arc::new(epoll),
        budget,
        alarm: Arc::default(),
        warnings,
    };
    for (flow, admission) in spec.flows.iter().zip(&admissions) {
        session.open(flow, admission, &far, provisional)?;
    }
    session.register(&far)?;
    session.stamp_transmissions();
    let start = host.now_ns() + LEAD_NS;
    let far_start = far.go(start + offset.at_start()).map_err(far_end)?;
    // The server may have begun later than asked; our clock then begins with it.
    let start = start.max(offset.to_ours(far_start));
    let clock = host.run_from(start);
    for end in &session.ends {
        end.lock().base.clock = clock;
    }
    let (outcome, disturbance) = session.measure(&mut far, clock);
    session.conclude(far, outcome, &before, host, (start, far_start), &disturbance)
}

/// What the machine did to the run.
#[derive(Default)]
struct Disturbance {
    ordinary: Option<String>,
    socket_drops: u64,
    trouble: Option<String>,
}

impl Session<'_> {
    /// Makes this end of one flow.
    fn open(
        &mut self,
        flow: &FlowSpec,
        admission: &Admission,
        far: &Far,
        clock: RunClock,
    ) -> Result<(), ArenaError> {
        let secret = from_hex::<16>(&admission.secret)
            .map(Secret)
            .ok_or_else(|| far_end(format!("{} broke the protocol: a flow has no secret", far.name())))?;
        let index = self.ends.len();
        let place = Place {
            index,
            is_sender: flow.is_up,
            is_client: true,
            token: admission.token,
            seed: unforeseen_seed().map_err(|error| unavailable(&error))?,
        };
        let common = Common { clock, budget: Arc::clone(&self.budget), alarm: Arc::clone(&self.alarm) };
        let end = Arc::new(SharedEnd::new(self.spec, flow, &place, &common));
        if let Channel::Tcp(stream) = &mut end.lock().channel {
            let mut opening = serde_json::to_vec(&Request::Data { secret: admission.secret.clone() })
                .map_err(|error| far_end(error.to_string()))?;
            opening.push(b'\n');
            let epoll = Arc::clone(&self.epoll);
            stream.set_dial(Dial { to: far.address(), opening, epoll, index: index as u64 });
        } else {
            let socket = Arc::new(udp_socket(far, flow).map_err(|error| unavailable(&error))?);
            self.registrations.push((Arc::clone(&socket), registration(&secret)));
            self.sockets.push((socket, Arc::clone(&end)));
        }
        if let Some((socket, _)) = self.sockets.last().filter(|_| !flow.is_stream()) {
            end.lock().set_route(UdpRoute { socket: Arc::clone(socket), unconnected: None });
        }
        self.ends.push(end);
        Ok(())
    }

    /// Shows the server where each UDP flow's datagrams come from, until it has answered for every one.
    fn register(&self, far: &Far) -> Result<(), ArenaError> {
        let mut waiting: Vec<usize> = (0..self.sockets.len()).collect();
        let mut batch = ReceiveBatch::new();
        let begun = monotonic();
        let mut next_try = begun;
        while !waiting.is_empty() {
            if self.plan.interrupt.load(Ordering::Relaxed) {
                return Err(ArenaError::Interrupted { partial: None });
            }
            let now = monotonic();
            if now - begun > REGISTER_NS {
                return Err(far_end(format!(
                    "{} does not answer over UDP; does a firewall let UDP through to this port?",
                    far.name()
                )));
            }
            if now >= next_try {
                next_try = now + RETRY_NS;
                for &index in &waiting {
                    let (socket, packet) = &self.registrations[index];
                    // What is lost, or refused by ICMP, is tried again.
                    let _ = socket.send(packet);
                }
            }
            let mut fds: Vec<_> =
                waiting.iter().map(|&index| PollFd::new(&*self.sockets[index].0, PollFlags::IN)).collect();
            let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 }));
            waiting.retain(|&index| {
                let (socket, end) = &self.sockets[index];
                let Some(token) = end.lock().token() else { return false };
                let answer = registered(token);
                let mut is_answered = false;
                let _ = batch.receive(socket.as_fd(), |datagram| is_answered |= datagram.payload == answer);
                !is_answered
            });
        }
        Ok(())
    }

    /// From now on clocked datagrams come back with the time when they left this host. Where a kernel does not do that, the time
    /// stays unknown.
    fn stamp_transmissions(&self) {
        for (socket, end) in &self.sockets {
            let end = end.lock();
            let is_stamped = end.base.spec.is_clocked() && !end.base.spec.is_dccp();
            let size = end.base.spec.message_size().filter(|_| is_stamped);
            if size.is_some_and(|size| size <= LARGEST_WHOLE) {
                let _ = stamp_transmissions(socket.as_fd());
            }
        }
    }

    /// The run itself: three threads and the watch over them.
    fn measure(&self, far: &mut Far, clock: RunClock) -> (Outcome, Disturbance) {
        let stop = AtomicBool::new(false);
        let drops = AtomicU64::new(0);
        let interval = sample_interval(self.scenario.duration);
        let has_streams = self.spec.flows.iter().any(FlowSpec::is_stream);
        let mut disturbance = Disturbance::default();
        let outcome = std::thread::scope(|scope| {
            let pacer = scope.spawn(|| pace(&self.ends, clock, &self.alarm, &stop));
            let datagrams = (!self.sockets.is_empty())
                .then(|| scope.spawn(|| receive_datagrams(&self.sockets, &stop, &drops)));
            let connections = has_streams
                .then(|| scope.spawn(|| serve_connections(&self.epoll, &self.ends, clock, interval, &stop)));
            let outcome = self.watch(far, clock);
            if matches!(outcome, Outcome::Drained) {
                close_connections(&self.ends, clock);
            }
            stop.store(true, Ordering::Relaxed);
            disturbance.ordinary = pacer.join().unwrap_or_else(|_| Some("the pacer failed".to_owned()));
            for thread in [datagrams, connections].into_iter().flatten() {
                match thread.join() {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        disturbance.trouble = Some(format!("a receiving thread ended: {error}"));
                    }
                    Err(_) => disturbance.trouble = Some("a receiving thread failed".to_owned()),
                }
            }
            outcome
        });
        for end in &self.ends {
            end.lock().finish();
        }
        disturbance.socket_drops = drops.load(Ordering::Relaxed);
        (outcome, disturbance)
    }

    /// Asks the server how far it is, until all is delivered, nothing was for `drain`, or something ends the run.
    fn watch(&self, far: &mut Far, clock: RunClock) -> Outcome {
        let stop = self.spec.stop();
        let drain = Duration::from_nanos(self.spec.drain_ns);
        let mut theirs = vec![Progress::default(); self.ends.len()];
        let mut last_delivery = stop;
        let mut next_ask = Instant::ZERO;
        let mut next_registration = Instant::ZERO.saturating_add(KEEP_OPEN);
        loop {
            let now = clock.now();
            (self.plan.progress)(now);
            if self.plan.interrupt.load(Ordering::Relaxed) {
                return Outcome::Interrupted;
            }
            if now >= next_ask {
                next_ask = now.saturating_add(if now < stop { ASK } else { ASK_DRAINING });
                if let Err(why) = far.ask() {
                    return Outcome::Gone(why);
                }
            }
            if now >= next_registration {
                next_registration = now.saturating_add(KEEP_OPEN);
                self.registrations.iter().for_each(|(socket, packet)| drop(socket.send(packet)));
            }
            match far.hear(if now < stop { 20 } else { 5 }) {
                Ok(Some(progress)) if progress.len() == theirs.len() => {
                    if progress.iter().zip(&theirs).any(|(new, old)| new.received > old.received) {
                        last_delivery = last_delivery.max(clock.now());
                    }
                    theirs = progress;
                }
                Ok(Some(_)) => return Outcome::Gone(format!("{} broke the protocol", far.name())),
                Ok(None) => {}
                Err(why) => return Outcome::Gone(why),
            }
            let mut is_drained = true;
            for (index, end) in self.ends.iter().enumerate() {
                let end = end.lock();
                if let Some(why) = &end.base.failure {
                    let flow = &self.scenario.flows[index].name;
                    return Outcome::Gone(format!("{}, flow {flow}: {why}", far.name()));
                }
                last_delivery = last_delivery.max(end.base.last_arrival);
                is_drained &= is_delivered(&end.base.spec, end.progress(), theirs[index]);
            }
            if self.budget.is_spent() {
                return Outcome::Gone(
                    "this host's limit of rows is reached; make the run shorter".to_owned(),
                );
            }
            if is_drained || clock.now() > last_delivery.saturating_add(drain) {
                return Outcome::Drained;
            }
        }
    }

    /// Collects the far end's logs and writes the record.
    fn conclude(
        mut self,
        mut far: Far,
        outcome: Outcome,
        before: &[Probe],
        host: HostClock,
        (start, far_start): (i64, i64),
        disturbance: &Disturbance,
    ) -> Result<RunRecord, ArenaError> {
        let mut gone = match &outcome {
            Outcome::Gone(why) => Some(why.clone()),
            Outcome::Drained | Outcome::Interrupted => None,
        };
        // Where one flow failed, the control connection may still tell what the others did.
        let collected = self.collect(&mut far, host);
        let (logs, after, totals) = match collected {
            Ok((logs, after, totals)) => (Some(logs), after, totals),
            Err(why) => {
                gone.get_or_insert(why);
                (None, Vec::new(), FarTotals::default())
            }
        };
        if logs.is_some() {
            far.leave();
        }
        let offset = Offset::new(before, &after);
        let end =
            if gone.is_none() && matches!(outcome, Outcome::Drained) { RunEnd::Drained } else { RunEnd::Cut };
        let mut record = self.record(logs.as_deref(), offset, (start, far_start), end);
        self.judge(&mut record, disturbance, &totals);
        let partial = |record| Some(Box::new(record));
        match (gone, outcome) {
            (_, Outcome::Interrupted) => Err(ArenaError::Interrupted { partial: partial(record) }),
            (Some(what), _) => Err(ArenaError::FarEnd { what, partial: partial(record) }),
            (None, _) => Ok(record),
        }
    }

    fn collect(
        &self,
        far: &mut Far,
        host: HostClock,
    ) -> Result<(Vec<FlowLog>, Vec<Probe>, FarTotals), String> {
        let totals = far.stop()?;
        let budget = RowBudget::new(CLIENT_ROWS);
        let logs = (0..self.ends.len()).map(|index| far.report(index, &budget)).collect::<Result<_, _>>()?;
        let after = far.probe(host)?;
        Ok((logs, after, totals))
    }

    fn record(
        &self,
        logs: Option<&[FlowLog]>,
        offset: Option<Offset>,
        (start, far_start): (i64, i64),
        end: RunEnd,
    ) -> RunRecord {
        let clock = offset.map_or_else(ClockRecord::default, |offset| offset.record());
        let window = (Instant::from_nanos(self.spec.warm_up_ns), self.spec.stop());
        let ours = |at: u64| Instant::from_nanos(at);
        let theirs =
            |at: u64| offset.map_or(Instant::from_nanos(at), |offset| offset.correct(at, far_start, start));
        let (mut flows, mut all_series) = (Vec::new(), Vec::new());
        let mut warnings = self.warnings.clone();
        for (index, (flow, spec)) in self.scenario.flows.iter().zip(&self.spec.flows).enumerate() {
            let near = self.ends[index].lock();
            let near = Timed { log: &near.base.log, to_ours: &ours };
            let far = logs.and_then(|logs| logs.get(index)).map(|log| Timed { log, to_ours: &theirs });
            let (sender, receiver) =
                if spec.is_up { (Some(&near), far.as_ref()) } else { (far.as_ref(), Some(&near)) };
            if let Some(sender) = sender.filter(|_| self.plan.series) {
                all_series.extend(series(&flow.name, sender));
            }
            let record = flow_record(flow, spec, sender, receiver, window, end, clock.trusted);
            let file = receiver.and_then(|receiver| receiver.log.totals.file.as_ref());
            warnings.extend(file_warnings(&record, file.and_then(|file| file.not_kept.as_deref())));
            flows.push(record);
        }
        warnings.extend(self.refusals(logs));
        RunRecord {
            cell: self.plan.cell,
            repetition: self.plan.repetition,
            seed: self.plan.seed.get(),
            window_start: window.0,
            window_end: window.1,
            flows,
            links: Vec::new(),
            series: all_series,
            drain: Duration::from_nanos(self.spec.drain_ns),
            machine: None,
            clock,
            valid: true,
            warnings,
        }
    }

    /// What the kernels said of the messages that they would not take.
    fn refusals(&self, logs: Option<&[FlowLog]>) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            let near = self.ends[index].lock();
            let far = logs.and_then(|logs| logs.get(index));
            let ends = [("this host", Some(&near.base.log)), ("the far host", far)];
            for (place, log) in ends.iter().filter_map(|&(place, log)| Some((place, log?))) {
                for (why, count) in log.totals.refusals.iter().take(MOST_WORDS) {
                    let why = printable(why);
                    lines.push(format!("flow {}: {place} refused {count} messages: {why}", flow.name));
                }
            }
            lines.extend(unsent_warnings(&flow.name, &ends));
        }
        lines
    }

    /// Says what disturbed the run, and past the stated limits that it is not valid.
    fn judge(&mut self, record: &mut RunRecord, disturbance: &Disturbance, totals: &FarTotals) {
        let mut lateness = Lateness::new();
        for end in &self.ends {
            lateness.merge(&end.lock().base.lateness);
        }
        let here = lateness.figures();
        record.machine = Some(MachineRecord {
            senders_late: here.map(late),
            far_senders_late: totals.lateness_ns.map(late),
            socket_drops: Some(disturbance.socket_drops + totals.socket_drops),
            real_time: Some(disturbance.ordinary.is_none()),
            ..MachineRecord::default()
        });
        for (place, figures) in [("this host", here), ("the far host", totals.lateness_ns)] {
            let Some([p50, p99, max]) = figures else { continue };
            if p99 > LATE_NS {
                let ms = |ns: u64| ns as f64 / 1e6;
                let hint = disturbance
                    .ordinary
                    .as_ref()
                    .filter(|_| place == "this host")
                    .map_or(String::new(), |why| format!("; real-time scheduling was not allowed ({why})"));
                record.warnings.push(format!(
                    "{place} sent late: p50 {:.3} ms, p99 {:.3} ms, at most {:.3} ms{hint}",
                    ms(p50),
                    ms(p99),
                    ms(max)
                ));
            }
            record.valid &= p99 <= INVALID_LATE_NS;
        }
        for (place, drops) in [("this host", disturbance.socket_drops), ("the far host", totals.socket_drops)]
        {
            if drops > 0 {
                record.warnings.push(format!(
                    "{place}: {drops} datagrams found no room in the receiving socket; the path did not lose them"
                ));
                record.valid = false;
            }
        }
        if let Some(trouble) = &disturbance.trouble {
            record.warnings.push(trouble.clone());
            record.valid = false;
        }
    }
}

/// p50, p99 and maximum, as measured in ns.
fn late([p50, p99, max]: [u64; 3]) -> LatenessRecord {
    let [p50, p99, max] = [p50, p99, max].map(Duration::from_nanos);
    LatenessRecord { p50, p99, max }
}

/// Whether all that was sent on a flow has arrived, and nothing more will be sent.
fn is_delivered(spec: &FlowSpec, near: Progress, far: Progress) -> bool {
    let (sender, receiver) = if spec.is_up { (near, far) } else { (far, near) };
    let is_there = sender.is_done && receiver.received == sender.sent;
    let is_back = spec.echo_per_read.is_none() || sender.received == sender.sent;
    is_there && is_back
}

/// The flow's own socket, connected to the server.
fn udp_socket(far: &Far, flow: &FlowSpec) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddr::new(far.local(), 0))?;
    socket.connect(far.address())?;
    socket.set_nonblocking(true)?;
    switch_on(socket.as_fd(), SocketSwitch::KernelStamps)?;
    switch_on(socket.as_fd(), SocketSwitch::DropCounter)?;
    let TransportSpec::Udp { receive_buffer } = &flow.transport else { return Ok(socket) };
    let reads = !flow.is_up || flow.echo_per_read.is_some();
    match receive_buffer.filter(|_| !flow.is_up) {
        Some(bytes) => {
            rustix::net::sockopt::set_socket_recv_buffer_size(
                &socket,
                usize::try_from(bytes).unwrap_or(usize::MAX),
            )?;
        }
        None if reads => enlarge_receive_buffer(&socket),
        None => {}
    }
    Ok(socket)
}

/// Room for a burst that comes while this thread waits for the processor; as much as the system allows.
pub(crate) fn enlarge_receive_buffer(socket: &UdpSocket) {
    // Forcing takes CAP_NET_ADMIN; without it the system's own limit holds, and the drop counter tells.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER).is_err() {
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER);
    }
}

fn unavailable(error: &std::io::Error) -> ArenaError {
    ArenaError::Unavailable {
        what: format!("a socket cannot be opened: {error}"),
        how: "see the limit of open files (ulimit -n) and of this user's rights".to_owned(),
    }
}

/// Both ends begin this long after the client says so: the word must reach the server first; where it comes late, both
/// begin later.
const LEAD_NS: i64 = 100_000_000;
/// The largest payload that a packet of 1280 B (RFC 8200 §5) carries over IPv6: what is larger may leave in pieces.
const LARGEST_WHOLE: u64 = 1280 - 40 - 8;
/// Registrations are tried so often ...
const RETRY_NS: i64 = 200_000_000;
/// ... and given up after so long.
const REGISTER_NS: i64 = 5_000_000_000;
/// Address translators may forget a way after two minutes (RFC 4787 §4.3, REQ-5), many do after thirty seconds.
const KEEP_OPEN: Duration = Duration::from_secs(15);
/// How often the server is asked how far it is: 200 B each way, which no measured path should notice ...
const ASK: Duration = Duration::from_millis(500);
/// ... and while the run drains.
const ASK_DRAINING: Duration = Duration::from_millis(50);
/// Rows that a run may keep here: 1 GB or so.
const CLIENT_ROWS: u64 = 20_000_000;
/// SO_RCVBUF: 4 MB, the time slice of a busy machine at a gigabit a second.
const RECEIVE_BUFFER: usize = 4 << 20;
/// A pacer whose p99 is later than this is worth a warning ...
const LATE_NS: u64 = 1_000_000;
/// ... and later than this makes the run invalid: a quarter of a codec's frame time (chosen; see docs/live.md).
const INVALID_LATE_NS: u64 = 5_000_000;
