//! One session of a client. One thread serves the control connection, and more threads serve the flows.
//!
//! ```text
//!  admit ─► begin ─► prepare ─► measure ─► keep_files ─► log_transfers ─► report
//!  admit.rs          until      the run    files.rs      transfers.rs      the logs, as the client fetches them
//!                    `go`
//! ```
//!
//! The client may leave at each of these steps. `phases.rs` answers the client's requests in the steps
//! `prepare`, `measure` and `report`.

pub(super) mod admit;
mod files;
mod phases;
mod quic_keys;
mod registrations;
mod summary;
mod transfers;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use rustix::event::epoll;
use socket2::Socket;
use talkpath_kernel::alarm::Alarm;
use talkpath_kernel::clock::{HostClock, RunClock, monotonic};
use talkpath_kernel::descriptors;
use talkpath_kernel::end::{
    EndContext, EndPlace, Fingerprint, QuicConnections, SharedEnd, apply_options, unforeseen_seed,
};
use talkpath_kernel::log::{RowBudget, sample_interval};
use talkpath_kernel::path_probe;
use talkpath_kernel::random::random;
use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::tag::TagKey;
use talkpath_kernel::threads::{StoresOnDrop, pace_with, serve_connections};
use talkpath_kernel::udp_drops::DropCount;
use talkpath_kernel::wire::{Secret, is_usable_token};
use talkpath_model::Receiver;
use talkpath_units::{Duration, to_hex};

use self::admit::admit;
use self::phases::RunOutcome;
use self::quic_keys::{QuicKeys, quic_keys};
use super::origin::Origin;
use super::resumptions::{ClientAddress, Resumption};
use super::{Joinable, Shared};
use crate::protocol::{Admission, Answer, Control, ControlError, OUTAGE_S, Request, SILENCE_S};

/// Serves a client that has described the session `spec`. The session ends when the client leaves or falls
/// silent, or when the server stops.
pub(super) fn serve(
    mut control: Control<Request>,
    from: SocketAddr,
    spec: SessionSpec,
    shared: &Arc<Shared>,
    log: &(dyn Fn(&str) + Sync),
) {
    let admitted = match admit(&spec, Origin::of(from.ip()), shared) {
        Ok(admitted) => admitted,
        Err(refusal) => {
            shared.log_limited(&format!("{from}: refused: {}", refusal.why), log);
            let _ = control.send(&refusal.answer());
            return;
        }
    };
    let session = match Session::begin(&mut control, spec, shared, log, &admitted.warnings) {
        Ok(session) => session,
        Err(error) => return shared.log_limited(&format!("{from}: no session: the client {error}"), log),
    };
    let outcome = session.serve(&mut control);
    if let Err(ControlError::Overtime(why) | ControlError::ThisHost(why)) = &outcome {
        let _ = control.send(&Answer::Refused { why: why.clone(), flow: None });
    }
    let line = format!("{from}: {}", session.describe(outcome.err().as_ref()));
    // Sessions of this kind cost a client nothing, so they must not fill the log.
    if session.is_empty_or_short() { shared.log_limited(&line, log) } else { log(&line) }
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
    client: Arc<ClientAddress>,
    /// The session's secret, and where the client's next control connection comes to.
    resumption: (Secret, Arc<Resumption>),
    epoll: Arc<OwnedFd>,
    budget: Arc<RowBudget>,
    alarm: Arc<Alarm>,
    host_clock: HostClock,
    /// CLOCK_MONOTONIC when the session began.
    begun_ns: i64,
    drops: DropCount,
    log: &'a (dyn Fn(&str) + Sync),
}

impl<'a> Session<'a> {
    fn begin(
        control: &mut Control<Request>,
        spec: SessionSpec,
        shared: &'a Arc<Shared>,
        log: &'a (dyn Fn(&str) + Sync),
        warnings: &[String],
    ) -> Result<Self, ControlError> {
        let epoll = create_epoll(control)?;
        let host_clock = HostClock::anchor();
        let mut session = Self {
            shared,
            ends: Vec::new(),
            joinable: Vec::new(),
            client: Arc::new(ClientAddress::new(control.stream().peer_addr()?.ip())),
            resumption: shared.resumptions.open()?,
            epoll: Arc::new(epoll),
            budget: RowBudget::new(shared.limits.rows),
            alarm: Arc::default(),
            host_clock,
            begun_ns: monotonic(),
            drops: DropCount::start(shared.descriptors()),
            spec,
            log,
        };
        let local = control.stream().local_addr()?.ip().to_canonical();
        let common = EndContext {
            clock: host_clock.run_from(host_clock.now_ns()),
            budget: Arc::clone(&session.budget),
            alarm: Arc::clone(&session.alarm),
            connections: QuicConnections::at_shared_socket(shared.quic_ids.clone()),
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
            let lacks: BTreeSet<_> = shared.sockets.iter().flat_map(|socket| &socket.unreported).collect();
            warnings.extend(lacks.into_iter().map(|lack| format!("the far host's kernel {lack}")));
        }
        let ports = shared.offered_ports(local);
        let resume = to_hex(&session.resumption.0.0);
        control.send(&Answer::Ready { flows: admissions, warnings, ports, resume })?;
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
                client: Arc::clone(&self.client),
                local,
                end,
                epoll: Arc::clone(&self.epoll),
                index: index as u64,
                registration: Mutex::default(),
            });
            self.joinable.push((secret, Arc::clone(&joinable)));
            let mut flows = self.shared.flows();
            if joinable.spec.transport.as_quic().is_some() {
                flows.quic_by_token.entry(token).or_insert_with(|| Arc::clone(&joinable));
            }
            flows.by_secret.insert(secret, joinable);
        }
        Ok(Admission {
            secret: to_hex(&secret.0),
            token,
            tag_key: tag_key.map(|key| to_hex(&key.0)),
            certificate: keys.certificate.map(|Fingerprint(octets)| to_hex(&octets)),
        })
    }

    fn serve(&self, control: &mut Control<Request>) -> Result<(), ControlError> {
        // Before it sends `go`, the client compares the clocks and opens its sockets.
        let Some(start_ns) = self.prepare(control)? else { return Ok(()) };
        let clock = self.host_clock.run_from(start_ns);
        for end in &self.ends {
            end.lock().set_clock(clock);
        }
        control.send(&Answer::Going { start_ns })?;
        let outcome = self.measure(control, clock);
        if matches!(outcome, Ok(RunOutcome::Stopped)) {
            self.keep_files();
        }
        // What a client that went away has sent until then was received all the same.
        self.log_transfers(start_ns);
        match outcome? {
            RunOutcome::SessionOver => Ok(()),
            RunOutcome::Stopped => self.report(control),
        }
    }

    /// Carries out the run: starts the threads that the flows need on this host, and answers the client's
    /// questions until the run ends.
    fn measure(&self, control: &mut Control<Request>, clock: RunClock) -> Result<RunOutcome, ControlError> {
        let stop = AtomicBool::new(false);
        let interval = sample_interval(Duration::from_nanos(self.spec.duration_ns));
        control.set_timeout(OUTAGE_S);
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
            self.answer_during_run(control, clock)
        });
        control.set_timeout(SILENCE_S);
        // What arrives from now on does not belong to the run.
        self.forget();
        for end in &self.ends {
            end.lock().finish();
        }
        outcome
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
        let is_others = |flow: &Joinable| !self.ends.iter().any(|end| Arc::ptr_eq(end, &flow.end));
        flows.by_address.retain(|_, flow| is_others(flow));
        flows.quic_by_token.retain(|_, flow| is_others(flow));
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.shared.resumptions.close(&self.resumption.0);
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

fn random_token() -> std::io::Result<u32> {
    loop {
        let token = u32::from_be_bytes(random::<4>()?);
        if is_usable_token(token) && path_probe::is_usable_token(token) {
            return Ok(token);
        }
    }
}
