//! One session of a client. One thread serves the control connection, and more threads serve the flows.

pub(super) mod admit;
mod quic_keys;
mod registrations;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::event::epoll;
use socket2::Socket;
use talkpath_flow::lateness_ns;
use talkpath_kernel::alarm::Alarm;
use talkpath_kernel::clock::{HostClock, RunClock, monotonic};
use talkpath_kernel::descriptors;
use talkpath_kernel::end::{
    EndContext, EndPlace, Fingerprint, QuicConnections, SharedEnd, apply_options, unforeseen_seed,
};
use talkpath_kernel::file::keep;
use talkpath_kernel::log::{RowBudget, sample_interval};
use talkpath_kernel::random::random;
use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::tag::TagKey;
use talkpath_kernel::threads::{StoresOnDrop, pace_with, serve_connections};
use talkpath_kernel::udp_drops::{DropCount, UdpDrops};
use talkpath_kernel::wire::{Secret, is_usable_token};
use talkpath_model::Receiver;
use talkpath_units::{Duration, Histogram, counted, to_hex};

use self::admit::admit;
use self::quic_keys::{QuicKeys, quic_keys};
use super::bind::DatagramSocket;
use super::origin::Origin;
use super::{Joinable, Shared};
use crate::protocol::{Admission, Answer, Control, ControlError, OUTAGE_S, ROWS_PER_S, Request, SILENCE_S};

/// Serves a client that has described the session `spec`. The session ends when the client leaves or falls
/// silent, or when the server stops.
pub(super) fn serve(
    mut control: Control<Request>,
    from: SocketAddr,
    spec: SessionSpec,
    sockets: &[Arc<DatagramSocket>],
    shared: &Arc<Shared>,
    log: &(dyn Fn(&str) + Sync),
) {
    match admit(&spec, Origin::of(from.ip()), shared) {
        Err(refusal) => {
            shared.log_limited(&format!("{from}: refused: {}", refusal.why), log);
            let _ = control.send(&refusal.answer());
        }
        Ok(admitted) => {
            let session = match Session::begin(&mut control, spec, shared, sockets, &admitted.warnings) {
                Ok(session) => session,
                Err(error) => {
                    return shared.log_limited(&format!("{from}: no session: the client {error}"), log);
                }
            };
            let outcome = session.serve(&mut control, shared, log);
            if let Err(ControlError::Overtime(why) | ControlError::ThisHost(why)) = &outcome {
                let _ = control.send(&Answer::Refused { why: why.clone(), flow: None });
            }
            let line = format!("{from}: {}", session.summary(outcome.err().as_ref()));
            // Sessions of this kind cost a client nothing, so they must not fill the log.
            if session.is_empty_or_short() { shared.log_limited(&line, log) } else { log(&line) }
        }
    }
}

/// A session whose flows the client may join.
struct Session<'a> {
    spec: SessionSpec,
    shared: &'a Arc<Shared>,
    /// This host's end of each flow, in the order of `spec`.
    ends: Vec<Arc<SharedEnd>>,
    /// The flows that the client may join, with their secrets. If several flows share a connection, only the
    /// first of these flows (the leader) is in the list.
    joinable: Vec<(Secret, Arc<Joinable>)>,
    /// The client's address on the control connection.
    client: IpAddr,
    epoll: Arc<OwnedFd>,
    budget: Arc<RowBudget>,
    alarm: Arc<Alarm>,
    host_clock: HostClock,
    /// CLOCK_MONOTONIC when the session began.
    begun_ns: i64,
    sockets: &'a [Arc<DatagramSocket>],
    drops: DropCount,
}

/// The time limit of one part of a session. It holds even if the client goes on talking.
struct Deadline {
    /// CLOCK_MONOTONIC after which the part has taken too long.
    at_ns: i64,
    /// The words for the client and for the log if the part has taken too long.
    why: String,
}

impl Deadline {
    fn after(seconds: u64, why: impl FnOnce() -> String) -> Self {
        let ns = i64::try_from(seconds.saturating_mul(1_000_000_000)).unwrap_or(i64::MAX);
        Self { at_ns: monotonic().saturating_add(ns), why: why() }
    }

    fn check(&self) -> Result<(), ControlError> {
        if monotonic() > self.at_ns { Err(ControlError::Overtime(self.why.clone())) } else { Ok(()) }
    }
}

/// How the server's part of a run ended.
enum RunOutcome {
    /// The client stopped the run, and will fetch the report.
    Stopped,
    /// The client left, or the server stops. Nobody will fetch the report.
    SessionOver,
}

impl<'a> Session<'a> {
    fn begin(
        control: &mut Control<Request>,
        spec: SessionSpec,
        shared: &'a Arc<Shared>,
        sockets: &'a [Arc<DatagramSocket>],
        warnings: &[String],
    ) -> Result<Self, ControlError> {
        let epoll = create_epoll(control)?;
        let host_clock = HostClock::anchor();
        let mut session = Self {
            shared,
            ends: Vec::new(),
            joinable: Vec::new(),
            client: control.stream().peer_addr()?.ip().to_canonical(),
            epoll: Arc::new(epoll),
            budget: RowBudget::new(shared.limits.rows),
            alarm: Arc::default(),
            host_clock,
            begun_ns: monotonic(),
            sockets,
            drops: DropCount::start(descriptors(sockets)),
            spec,
        };
        let local = control.stream().local_addr()?.ip().to_canonical();
        let common = EndContext {
            clock: host_clock.run_from(host_clock.now_ns()),
            budget: Arc::clone(&session.budget),
            alarm: Arc::clone(&session.alarm),
            connections: QuicConnections::default(),
            machines: shared.machines,
        };
        let mut admissions = Vec::new();
        let mut all_keys: Vec<QuicKeys> = Vec::new();
        for index in 0..session.spec.flows.len() {
            // Flows that share a connection use the keys and the registration of the first of these flows.
            let keys = match all_keys.get(session.spec.leader(index)) {
                Some(leader_keys) => *leader_keys,
                None => quic_keys(&session.spec.flows[index].transport)?,
            };
            all_keys.push(keys);
            admissions.push(session.open_flow(index, keys, local, &common)?);
        }
        SharedEnd::introduce(&session.spec, &session.ends);
        let mut warnings = warnings.to_vec();
        if session.has_datagrams() {
            // Each lack is said once, even if several sockets have it. The client shows these words to its
            // user, so this host is the far host in them.
            let lacks: BTreeSet<_> = sockets.iter().flat_map(|socket| &socket.unreported).collect();
            warnings.extend(lacks.into_iter().map(|lack| format!("the far host's kernel {lack}")));
        }
        control.send(&Answer::Ready { flows: admissions, warnings })?;
        Ok(session)
    }

    /// Makes this host's end of flow `index`, and lets the client join the flow. Returns the secret and the
    /// keys that the client needs to join.
    ///
    /// # Errors
    /// Returns [`ControlError::Io`] if the kernel gives no random bytes.
    fn open_flow(
        &mut self,
        index: usize,
        keys: QuicKeys,
        local: IpAddr,
        common: &EndContext,
    ) -> Result<Admission, ControlError> {
        let flow = self.spec.flows[index].served();
        let secret = Secret(random::<16>()?);
        let token = random_token()?;
        let tag_key = if self.shared.key.is_some() { Some(TagKey(random::<32>()?)) } else { None };
        let place = EndPlace {
            index,
            is_sender: !flow.is_up,
            is_client: false,
            token,
            tag_key,
            has_trains: true,
            seed: unforeseen_seed()?,
            quic_keys: keys.host,
        };
        let end = SharedEnd::new(&self.spec, &flow, &place, Receiver::default(), common);
        let end = Arc::new(end.receiving_file(self.shared.keep.is_some()));
        self.ends.push(Arc::clone(&end));
        if self.spec.is_leader(index) {
            let joinable = Arc::new(Joinable {
                spec: flow,
                token,
                client: self.client,
                local,
                end,
                epoll: Arc::clone(&self.epoll),
                index: index as u64,
                registration: Mutex::default(),
            });
            self.joinable.push((secret, Arc::clone(&joinable)));
            self.shared.flows().by_secret.insert(secret, joinable);
        }
        Ok(Admission {
            secret: to_hex(&secret.0),
            token,
            tag_key: tag_key.map(|key| to_hex(&key.0)),
            certificate: keys.certificate.map(|Fingerprint(octets)| to_hex(&octets)),
        })
    }

    fn serve(
        &self,
        control: &mut Control<Request>,
        shared: &Shared,
        log: &(dyn Fn(&str) + Sync),
    ) -> Result<(), ControlError> {
        // Before it sends `go`, the client compares the clocks and opens its sockets.
        let Some(start_ns) = self.prepare(control, shared, log)? else { return Ok(()) };
        let clock = self.host_clock.run_from(start_ns);
        for end in &self.ends {
            end.lock().set_clock(clock);
        }
        control.send(&Answer::Going { start_ns })?;
        match self.measure(control, shared, clock)? {
            RunOutcome::SessionOver => Ok(()),
            RunOutcome::Stopped => {
                self.keep_files(shared, log);
                self.report(control, shared)
            }
        }
    }

    /// Answers the client until it sends `go`. Returns the beginning of the run in ns since 1970 on this
    /// host's clock, or `None` if the client leaves or the server stops.
    fn prepare(
        &self,
        control: &mut Control<Request>,
        shared: &Shared,
        log: &(dyn Fn(&str) + Sync),
    ) -> Result<Option<i64>, ControlError> {
        let seconds = shared.limits.prepare_s;
        let deadline = Deadline::after(seconds, || format!("the run did not begin within {seconds} s"));
        loop {
            match self.next(control, shared, &deadline)? {
                None | Some(Request::Bye) => return Ok(None),
                Some(Request::Probe { number }) => self.answer_probe(control, number)?,
                Some(Request::Registrations) => {
                    let registrations = self.registrations();
                    self.log_other_address(&registrations, log);
                    control.send(&Answer::Registrations(registrations))?;
                }
                // A run cannot begin in the past. A run that begins too late would hold a seat for nothing.
                Some(Request::Go { start_ns }) => {
                    let now = self.host_clock.now_ns();
                    return Ok(Some(start_ns.clamp(now, now.saturating_add(LATEST_START_NS))));
                }
                Some(other) => return Err(out_of_turn(&other)),
            }
        }
    }

    /// Carries out the run: starts the threads that the flows need on this host, and answers the client's
    /// questions until the run ends.
    fn measure(
        &self,
        control: &mut Control<Request>,
        shared: &Shared,
        clock: RunClock,
    ) -> Result<RunOutcome, ControlError> {
        let stop = AtomicBool::new(false);
        let interval = sample_interval(Duration::from_nanos(self.spec.duration_ns));
        control.set_patience(OUTAGE_S);
        let outcome = std::thread::scope(|scope| {
            // The guard stops the threads in each case, also after an error or a panic.
            let _stop_guard = StoresOnDrop(&stop);
            let no_thread = |error| ControlError::ThisHost(format!("cannot start a thread for it: {error}"));
            let thread = || std::thread::Builder::new();
            if self.spec.flows.iter().any(|flow| !flow.is_up || flow.transport.channel_kind().runs_here()) {
                let pacer = || pace_with(self.shared.punctuality, &self.ends, clock, &self.alarm, &stop);
                thread().spawn_scoped(scope, pacer).map_err(no_thread)?;
            }
            if self.spec.flows.iter().any(|flow| !flow.transport.channel_kind().is_udp()) {
                let connections = || serve_connections(&self.epoll, &self.ends, clock, interval, &stop);
                thread().spawn_scoped(scope, connections).map_err(no_thread)?;
            }
            self.answer(control, shared, clock)
        });
        control.set_patience(SILENCE_S);
        // What arrives from now on does not belong to the run.
        self.forget();
        for end in &self.ends {
            end.lock().finish();
        }
        outcome
    }

    /// Answers the client's questions during the run, until the client stops the run or leaves.
    fn answer(
        &self,
        control: &mut Control<Request>,
        shared: &Shared,
        clock: RunClock,
    ) -> Result<RunOutcome, ControlError> {
        // After this time the client is told that the run takes too long.
        let limit = Duration::from_secs(shared.limits.duration_s.saturating_add(SILENCE_S));
        // The session is broken off later, so that the client has time to stop the run and to fetch its
        // report.
        let seconds = shared.limits.duration_s.saturating_add(3 * SILENCE_S);
        let deadline = Deadline::after(seconds, || format!("the run did not end within {seconds} s"));
        loop {
            match self.next(control, shared, &deadline)? {
                None | Some(Request::Bye) => return Ok(RunOutcome::SessionOver),
                Some(Request::Stop) => return Ok(RunOutcome::Stopped),
                Some(Request::Ask) => {
                    let received_ns = self.host_clock.now_ns();
                    let flows = self.ends.iter().map(|end| end.lock().progress()).collect();
                    let is_overdue = clock.now().since(talkpath_units::Instant::ZERO) > limit;
                    let trouble = if self.budget.is_spent() {
                        Some(format!("its limit of {} rows a session is reached", shared.limits.rows))
                    } else if is_overdue {
                        Some("the run took longer than its duration and drain".to_owned())
                    } else {
                        None
                    };
                    let sent_ns = self.host_clock.now_ns();
                    control.send(&Answer::Progress { flows, received_ns, sent_ns, trouble })?;
                }
                Some(other) => return Err(out_of_turn(&other)),
            }
        }
    }

    /// Writes each file that arrived intact to the server's folder. Does nothing if the server has no folder
    /// for files. The flow's log then says under which name the file was kept, or why it was not kept.
    fn keep_files(&self, shared: &Shared, log: &(dyn Fn(&str) + Sync)) {
        let Some(folder) = &shared.keep else { return };
        for end in &self.ends {
            let mut end = end.lock();
            let end = &mut *end;
            let is_intact = end.log.totals.file.as_ref().is_some_and(|outcome| outcome.is_intact);
            let (Some(file), Some(sink), true) = (&end.spec.file, end.sink(), is_intact) else { continue };
            let size = sink.content().len() as u64;
            let room = shared.kept_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |kept| {
                kept.checked_add(size).filter(|kept| *kept <= shared.limits.kept_bytes)
            });
            let kept = match room {
                Ok(_) => keep(folder, &file.name, sink.content()).map_err(|error| {
                    // The file was not written, so it takes no room.
                    shared.kept_bytes.fetch_sub(size, Ordering::Relaxed);
                    error.to_string()
                }),
                Err(_) => Err(format!("its limit of {} B is reached", shared.limits.kept_bytes)),
            };
            let Some(outcome) = &mut end.log.totals.file else { continue };
            match kept {
                Ok(name) => {
                    log(&format!("kept a file of {size} B as {name}"));
                    outcome.kept_as = Some(name);
                }
                Err(why) => {
                    shared.log_limited(&format!("a file of {size} B could not be kept: {why}"), log);
                    outcome.not_kept = Some(why);
                }
            }
        }
    }

    /// Says what the run was, and sends the client the logs of the flows that it asks for, until the client
    /// leaves.
    fn report(&self, control: &mut Control<Request>, shared: &Shared) -> Result<(), ControlError> {
        let mut lateness = Histogram::new();
        for end in &self.ends {
            end.lock().add_lateness(&mut lateness);
        }
        let drops = self.drops.finish(descriptors(self.sockets));
        let drops = if self.has_datagrams() { drops } else { UdpDrops::none() };
        let registrations = self.registrations();
        control.send(&Answer::Stopped { lateness_ns: lateness_ns(&lateness), drops, registrations })?;
        let rows = shared.limits.rows.saturating_sub(self.budget.left());
        let seconds = shared.limits.report_s.saturating_add(rows / ROWS_PER_S);
        let deadline = Deadline::after(seconds, || format!("the report was not fetched within {seconds} s"));
        loop {
            match self.next(control, shared, &deadline)? {
                None | Some(Request::Bye) => return Ok(()),
                Some(Request::Probe { number }) => self.answer_probe(control, number)?,
                Some(Request::Report { flow }) => {
                    let end = usize::try_from(flow).ok().and_then(|index| self.ends.get(index));
                    if let Some(end) = end {
                        // The lock is released before the chunks are sent, because a slow client could hold
                        // it for long.
                        let chunks = end.lock().log.chunks();
                        for chunk in chunks {
                            control.send(&Answer::Rows(Box::new(chunk)))?;
                            drain(control, shared, &deadline)?;
                        }
                    }
                    control.send(&Answer::End)?;
                }
                // The client sent this question before it stopped the run. Nobody waits for the answer.
                Some(Request::Ask) => {}
                Some(other) => return Err(out_of_turn(&other)),
            }
        }
    }

    fn answer_probe(&self, control: &mut Control<Request>, number: u32) -> Result<(), ControlError> {
        let received_ns = self.host_clock.now_ns();
        control.send(&Answer::Probe { number, received_ns, sent_ns: self.host_clock.now_ns() })
    }

    /// Waits for the client's next request. Returns `None` if the server stops.
    ///
    /// # Errors
    /// Returns [`ControlError`] if the connection ends, if the client falls silent, or if `deadline` is over.
    fn next(
        &self,
        control: &mut Control<Request>,
        shared: &Shared,
        deadline: &Deadline,
    ) -> Result<Option<Request>, ControlError> {
        loop {
            deadline.check()?;
            if shared.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if let Some(request) = control.receive_within(20)? {
                return Ok(Some(request));
            }
            control.check_alive()?;
        }
    }

    /// Makes the line of the log about the session: its flows, its length, what it carried and how it ended.
    fn summary(&self, error: Option<&ControlError>) -> String {
        // Received, then sent.
        let (mut messages, mut bytes) = ([0, 0], [0, 0]);
        for end in &self.ends {
            let end = end.lock();
            let progress = end.progress();
            let is_stream = !end.spec.features().keeps_messages;
            let sums = if is_stream { &mut bytes } else { &mut messages };
            for (sum, count) in sums.iter_mut().zip([progress.received, progress.sent]) {
                *sum += count;
            }
        }
        let seconds = (monotonic() - self.begun_ns) as f64 / 1e9;
        let amount = |direction: usize| match (messages[direction], bytes[direction]) {
            (messages, 0) => counted(messages, "message"),
            (0, bytes) => format!("{bytes} B of streams"),
            (messages, bytes) => format!("{} and {bytes} B of streams", counted(messages, "message")),
        };
        let ending = error.map_or_else(|| "ended".to_owned(), |why| format!("broken off: the client {why}"));
        format!(
            "session of {}, {seconds:.1} s: received {}, sent {}; {ending}",
            counted(self.ends.len(), "flow"),
            amount(0),
            amount(1),
        )
    }

    /// Whether the session carried nothing, or ended before a run could have taken place.
    fn is_empty_or_short(&self) -> bool {
        let has_carried = |end: &Arc<SharedEnd>| {
            let progress = end.lock().progress();
            progress.received > 0 || progress.sent > 0
        };
        monotonic() - self.begun_ns < SHORTEST_RUN_NS || !self.ends.iter().any(has_carried)
    }

    fn has_datagrams(&self) -> bool {
        self.spec.flows.iter().any(|flow| flow.transport.channel_kind().is_udp())
    }

    /// Closes the session's flows to clients: no connection and no datagram reaches them any more.
    fn forget(&self) {
        let mut flows = self.shared.flows();
        for (secret, _) in &self.joinable {
            flows.by_secret.remove(secret);
        }
        flows.by_address.retain(|_, flow| !self.ends.iter().any(|end| Arc::ptr_eq(end, &flow.end)));
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Makes the epoll for the connections of a session.
///
/// # Errors
/// Returns [`ControlError::ThisHost`] if the kernel gives no epoll. The client has then been told why.
fn create_epoll(control: &mut Control<Request>) -> Result<OwnedFd, ControlError> {
    let error = match epoll::create(epoll::CreateFlags::CLOEXEC).map_err(std::io::Error::from) {
        Ok(epoll) => return Ok(epoll),
        Err(error) => error,
    };
    let why = if descriptors::are_exhausted(&error) {
        "it has no file descriptor left; try again later".to_owned()
    } else {
        format!("it cannot watch the flows: {error}")
    };
    control.send(&Answer::Busy { why })?;
    Err(ControlError::ThisHost(error.to_string()))
}

/// Gives a data connection to its flow. `unread` holds the bytes that were read together with the opening
/// line. If the connection's options cannot be set, the connection is closed, which the client notices.
pub(super) fn attach(flow: &Joinable, stream: std::net::TcpStream, unread: &[u8]) {
    flow.end.work(|end| {
        let socket = Socket::from(stream);
        if apply_options(&socket, &flow.spec.transport, flow.spec.tos(), end.is_sender).is_ok() {
            let _ = end.adopt(socket.into(), unread, &flow.epoll, flow.index);
        }
    });
}

/// Waits until the socket has taken everything that is queued, so that a report does not fill the memory.
fn drain(control: &mut Control<Request>, shared: &Shared, deadline: &Deadline) -> Result<(), ControlError> {
    while control.unsent() > 0 && !shared.stop.load(Ordering::Relaxed) {
        deadline.check()?;
        // The client has to be quiet while it reads a report, so each request is out of turn.
        if let Some(request) = control.receive_within(20)? {
            return Err(out_of_turn(&request));
        }
        control.check_alive()?;
    }
    Ok(())
}

fn descriptors(sockets: &[Arc<DatagramSocket>]) -> impl Iterator<Item = BorrowedFd<'_>> {
    sockets.iter().map(|socket| socket.socket.as_fd())
}

fn random_token() -> std::io::Result<u32> {
    loop {
        let token = u32::from_be_bytes(random::<4>()?);
        if is_usable_token(token) {
            return Ok(token);
        }
    }
}

fn out_of_turn(request: &Request) -> ControlError {
    let name = format!("{request:?}");
    ControlError::Garbage(name.chars().take(20).collect())
}

/// A session that is shorter than this cannot have measured. Before its run a client compares the clocks,
/// which takes a second.
const SHORTEST_RUN_NS: i64 = 500_000_000;

/// The longest time from the client's `go` to the beginning of the run.
const LATEST_START_NS: i64 = 5_000_000_000;
