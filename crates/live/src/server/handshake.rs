//! The handshake of the control connection. A connection is a stranger until it has said a valid hello, and
//! then a guest until it has described a session.
//!
//! ```text
//!  accepted ─► hello ─► welcome ─► session described ─► a thread of its own
//!     │          └─ or `data {secret}`: the stream goes to its flow
//!     └─ two seconds for each step, and a bounded number of places (places.rs)
//! ```
//!
//! One thread serves all strangers and guests. Each of them takes a socket and a few kB, and their number is
//! limited (`places.rs`). If the process has no descriptor for one more connection, the server accepts no
//! connections for a while, instead of failing again and again (`accept_pause.rs`). It still serves the
//! connections that it has accepted.
//!
//! Begin to read with [`serve_strangers`].

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;
use talkpath_kernel::clock::monotonic;
use talkpath_kernel::descriptors;
use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::wire::Secret;
use talkpath_units::from_hex;

use super::accept_pause::AcceptPause;
use super::origin::Origin;
use super::places::Places;
use super::{Shared, session};
use crate::protocol::{Answer, Control, HELLO_SIZE, OPENING_LIMIT, OUTAGE_S, Request, VERSION};
use crate::seal;

/// The time that a connection has for each message of the handshake, ns.
const MESSAGE_TIME_NS: i64 = 2_000_000_000;
/// The additional time of a stranger whose address has a session, ns. We chose the time that an outage may
/// last.
const JOIN_NS: i64 = OUTAGE_S as i64 * 1_000_000_000;
/// The interval at which connections whose time is over are closed, ns.
const SWEEP_NS: i64 = 20_000_000;
/// The number of connections that are accepted before the accepted ones are read. We chose 64.
const ACCEPTED_AT_ONCE: usize = 64;
/// The memory for the session descriptions of guests, bytes. It limits the number of guests. We chose 64 MiB,
/// which hold 256 guests with 64 flows each. With a key they take about 120 MiB, because the sealed and the
/// opened bytes of a description are in memory at the same time.
const GUEST_BYTES: usize = 64 << 20;
/// More listeners than any server has. The largest `MAX_LISTENERS` numbers belong to listeners.
const MAX_LISTENERS: usize = 1 << 16;

/// A connection that has not described a session yet.
pub(super) struct Stranger {
    pub(super) control: Control<Request>,
    pub(super) from: SocketAddr,
    pub(super) expected: ExpectedMessage,
    /// CLOCK_MONOTONIC until which the message has to arrive.
    pub(super) deadline_ns: i64,
}

/// The message that the server expects next from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedMessage {
    Hello,
    Session,
}

/// The result of reading a connection.
pub(super) enum ReadResult {
    /// The next message has not arrived yet.
    Waiting(Stranger),
    /// The connection has described a session.
    Session(Stranger, SessionSpec),
    /// The connection belongs to the flow with this secret.
    FlowConnection(Stranger, Secret),
    /// The client continues the session with this secret.
    Resumption(Stranger, Secret),
    /// The server has refused the client, and has told it why. The string is a line for the log. The
    /// connection is closed.
    Refused(String),
    /// The connection is closed, or waits in its place.
    Done,
}

/// The connections that have not described a session yet, and the epoll that reports what they send.
struct Entrance {
    epoll: OwnedFd,
    /// The number of the next connection. Listeners have the largest numbers.
    next_number: u64,
    /// The connections that have not said a valid hello.
    strangers: Places<Stranger>,
    /// The guests: connections that have said a valid hello, but have not described a session.
    guests: Places<Stranger>,
}

/// Accepts connections and carries out their handshakes until `stop` is set.
///
/// # Errors
/// Returns the system's error if the sockets cannot be watched.
pub(super) fn serve_strangers<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    listeners: &'env [TcpListener],
    shared: &'env Arc<Shared>,
    stop: &AtomicBool,
    log: &'env (dyn Fn(&str) + Sync),
) -> io::Result<()> {
    let mut entrance = Entrance::new(shared)?;
    entrance.watch_listeners(listeners)?;
    let mut pause = AcceptPause::default();
    let mut next_sweep_ns = 0;
    while !stop.load(Ordering::Relaxed) {
        pause.end_if_over(|| entrance.watch_listeners(listeners), log)?;
        for number in entrance.wait()? {
            if let Some(index) = listener_index(number) {
                // Numbers in the listeners' range that no listener has do not occur.
                let Some(listener) = listeners.get(index) else { continue };
                if let Err(error) = entrance.accept(listener)
                    && !pause.is_active()
                {
                    pause.begin(&error, log);
                    entrance.leave_listeners(listeners);
                }
                continue;
            }
            match entrance.read(number, shared) {
                ReadResult::Session(stranger, spec) => {
                    let serve = move |control, from, spec| {
                        session::serve(control, from, spec, shared, log);
                    };
                    if let Err(line) = start_session(scope, stranger, spec, serve) {
                        shared.log_limited(&line, log);
                    }
                }
                ReadResult::FlowConnection(stranger, secret) => {
                    let (stream, unread) = stranger.control.into_stream();
                    shared.join_stream(stream, &unread, &secret);
                }
                ReadResult::Resumption(stranger, secret) => {
                    if let Err(line) = resume(stranger, &secret, shared) {
                        shared.log_limited(&line, log);
                    }
                }
                ReadResult::Refused(line) => shared.log_limited(&line, log),
                ReadResult::Waiting(_) | ReadResult::Done => {}
            }
        }
        let now_ns = monotonic();
        shared.limited_log().end_if_over(now_ns, log);
        if now_ns >= next_sweep_ns {
            next_sweep_ns = now_ns + SWEEP_NS;
            entrance.close_late(now_ns, shared);
        }
    }
    shared.limited_log().end(log);
    Ok(())
}

/// Starts a thread that calls `serve` for the session that a guest has described.
///
/// # Errors
/// Returns a line for the log if no thread can be started. The guest has then been told that the server is
/// busy.
fn start_session<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    stranger: Stranger,
    spec: SessionSpec,
    serve: impl FnOnce(Control<Request>, SocketAddr, SessionSpec) + Send + 'scope,
) -> Result<(), String> {
    let from = stranger.from;
    // If the thread cannot be started, its closure is dropped. The guest must not be dropped with it, because
    // the guest still gets an answer. So both sides share the guest, and whoever needs the guest takes it.
    let guest = Arc::new(Mutex::new(Some((stranger.control, spec))));
    let guest_of_thread = Arc::clone(&guest);
    let take = |guest: &Mutex<Option<_>>| guest.lock().unwrap_or_else(PoisonError::into_inner).take();
    let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
        if let Some((control, spec)) = take(&guest_of_thread) {
            serve(control, from, spec);
        }
    });
    let Err(error) = thread else { return Ok(()) };
    if let Some((mut control, _)) = take(&guest) {
        let why = "this host cannot start a thread for another session; try again later".to_owned();
        let _ = control.send(&Answer::Busy { why });
    }
    Err(format!("{from}: refused: cannot start a thread: {error}"))
}

/// Gives the session with `secret` the connection of a guest.
///
/// # Errors
/// Returns a line for the log if there is no such session. The guest then has an answer that says so.
fn resume(stranger: Stranger, secret: &Secret, shared: &Shared) -> Result<(), String> {
    let Stranger { control, from, .. } = stranger;
    let Some(mut control) = shared.resumptions.resume(secret, control, from) else { return Ok(()) };
    let why = "there is no such session to continue";
    let _ = control.send(&Answer::Refused { why: why.to_owned(), flow: None });
    Err(format!("{from}: refused: {why}"))
}

impl Entrance {
    fn new(shared: &Shared) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            next_number: 0,
            strangers: Places::new(shared.limits.strangers),
            guests: Places::new(
                shared.limits.strangers.min((GUEST_BYTES / shared.limits.request_bytes()).max(1)),
            ),
        })
    }

    /// Closes the connections whose time is over.
    fn close_late(&mut self, now_ns: i64, shared: &Shared) {
        let is_late = |stranger: &Stranger| stranger.deadline_ns <= now_ns;
        // A late stranger may be the connection of a flow, if the path has lost its first line several times.
        // It has more time if its address has a session.
        let may_join = |stranger: &Stranger| {
            stranger.deadline_ns + JOIN_NS > now_ns && shared.has_session_of(stranger.from.ip())
        };
        self.strangers.sweep(|stranger| is_late(stranger) && !may_join(stranger));
        self.guests.sweep(is_late);
    }

    /// Adds the listeners to the epoll. After an error none of them is watched.
    fn watch_listeners(&self, listeners: &[TcpListener]) -> io::Result<()> {
        for (index, listener) in (0..).zip(listeners) {
            let number = EventData::new_u64(u64::MAX - index);
            if let Err(error) = epoll::add(&self.epoll, listener, number, EventFlags::IN) {
                self.leave_listeners(listeners);
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn leave_listeners(&self, listeners: &[TcpListener]) {
        for listener in listeners {
            // A listener that is not watched gives an error, which does not matter.
            let _ = epoll::delete(&self.epoll, listener);
        }
    }

    /// Waits at most 20 ms for input. Returns the numbers of the connections and listeners that have input.
    /// The listeners come last, because they have the largest numbers.
    fn wait(&self) -> io::Result<Vec<u64>> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(64);
        let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut numbers: Vec<u64> = events.iter().map(|event| event.data.u64()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Accepts as many of the connections that wait at `listener` as there are free places. If no place is
    /// free, accepts one connection. Each accepted connection is read at least once before another connection
    /// can push it out.
    ///
    /// # Errors
    /// Returns the system's error if the process or the system has no descriptor for one more connection.
    fn accept(&mut self, listener: &TcpListener) -> io::Result<()> {
        // The number is bounded, because a flood of new connections must not keep this thread from the
        // connections that it has accepted.
        for _ in 0..ACCEPTED_AT_ONCE.min(self.strangers.free()).max(1) {
            let (stream, from) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if descriptors::are_exhausted(&error) => return Err(error),
                // The error is about a connection that has ended already (accept(2)). More connections may
                // wait behind it.
                Err(_) => continue,
            };
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            let Ok(control) = Control::new(stream, OPENING_LIMIT) else { continue };
            let number = self.next_number;
            self.next_number += 1;
            let data = EventData::new_u64(number);
            // The socket leaves the epoll when it is closed.
            if epoll::add(&self.epoll, control.stream(), data, EventFlags::IN | EventFlags::RDHUP).is_ok() {
                let deadline_ns = monotonic() + MESSAGE_TIME_NS;
                let expected = ExpectedMessage::Hello;
                let stranger = Stranger { control, from, expected, deadline_ns };
                self.strangers.insert(number, Origin::of(from.ip()), stranger);
            }
        }
        Ok(())
    }

    /// Reads the connection with `number`, and returns what to do with it. A connection that has to wait for
    /// its next message is put back into a place.
    fn read(&mut self, number: u64, shared: &Arc<Shared>) -> ReadResult {
        let waiting = self.strangers.remove(number).or_else(|| self.guests.remove(number));
        // The connection may have been pushed out after the epoll had reported it.
        let Some(stranger) = waiting else { return ReadResult::Done };
        match read(stranger, shared) {
            ReadResult::Waiting(stranger) => {
                let places = match stranger.expected {
                    ExpectedMessage::Session => &mut self.guests,
                    ExpectedMessage::Hello => &mut self.strangers,
                };
                places.insert(number, Origin::of(stranger.from.ip()), stranger);
                ReadResult::Done
            }
            next => {
                // Another thread reads the connection from now on.
                if let ReadResult::Session(stranger, _)
                | ReadResult::FlowConnection(stranger, _)
                | ReadResult::Resumption(stranger, _) = &next
                {
                    let _ = epoll::delete(&self.epoll, stranger.control.stream().as_fd());
                }
                next
            }
        }
    }
}

/// Returns the index of the listener that has `number`, or `None` if `number` is in the range of connections.
fn listener_index(number: u64) -> Option<usize> {
    usize::try_from(u64::MAX - number).ok().filter(|index| *index < MAX_LISTENERS)
}

/// Reads the messages of `stranger` one by one, and returns what to do with the connection.
pub(super) fn read(mut stranger: Stranger, shared: &Arc<Shared>) -> ReadResult {
    loop {
        let next = match stranger.control.receive() {
            Ok(None) => return ReadResult::Waiting(stranger),
            Ok(Some(request)) => answer(stranger, request, shared),
            // The server does not answer a peer that does not speak its protocol.
            Err(_) => return ReadResult::Done,
        };
        match next {
            // The next message may have arrived with this one.
            ReadResult::Waiting(waiting) => stranger = waiting,
            next => return next,
        }
    }
}

fn answer(mut stranger: Stranger, request: Request, shared: &Arc<Shared>) -> ReadResult {
    let expected = std::mem::replace(&mut stranger.expected, ExpectedMessage::Session);
    match (expected, request) {
        (ExpectedMessage::Hello, Request::Hello { version, opening, filling })
            if filling.len() >= HELLO_SIZE =>
        {
            hello(stranger, version, &opening, shared)
        }
        (ExpectedMessage::Hello, Request::Data { secret }) => from_hex::<16>(&secret)
            .map_or(ReadResult::Done, |secret| ReadResult::FlowConnection(stranger, Secret(secret))),
        (ExpectedMessage::Session, Request::Session(spec)) => ReadResult::Session(stranger, spec),
        (ExpectedMessage::Session, Request::Resume { secret }) => from_hex::<16>(&secret)
            .map_or(ReadResult::Done, |secret| ReadResult::Resumption(stranger, Secret(secret))),
        (ExpectedMessage::Session, Request::Bye) => ReadResult::Done,
        // The message is out of turn, or the hello is too short. The connection is closed without an answer.
        _ => ReadResult::Done,
    }
}

fn hello(mut stranger: Stranger, version: u32, opening: &str, shared: &Shared) -> ReadResult {
    if version != VERSION {
        let why = format!(
            "it speaks version {VERSION} of the protocol, this client version {version}; use the same talkpath at both ends"
        );
        return refuse(stranger, &why);
    }
    let (answer, seal) = match &shared.key {
        None => (None, None),
        Some(_) if opening.is_empty() => {
            return refuse(stranger, "it asks for a key; give the one that it was started with (--key-file)");
        }
        Some(key) => match seal::answer(key, opening) {
            Some((answer, seal)) => (Some(answer), Some(seal)),
            None => return refuse(stranger, "the key is not this server's"),
        },
    };
    if stranger.control.send(&Answer::Welcome { answer }).is_err() {
        return ReadResult::Done;
    }
    if let Some(seal) = seal {
        stranger.control.start_sealing(seal);
    }
    stranger.control.set_line_limit(shared.limits.request_bytes());
    stranger.expected = ExpectedMessage::Session;
    stranger.deadline_ns = monotonic() + MESSAGE_TIME_NS;
    ReadResult::Waiting(stranger)
}

fn refuse(mut stranger: Stranger, why: &str) -> ReadResult {
    // The connection is closed in each case, so it does not matter whether the client reads the answer.
    let _ = stranger.control.send(&Answer::Refused { why: why.to_owned(), flow: None });
    ReadResult::Refused(format!("{}: refused: {why}", stranger.from))
}
