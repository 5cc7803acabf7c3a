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
//! bounded. If the process has no descriptor for one more connection, the listeners rest for [`REST_NS`]
//! instead of failing again and again. The clients in the listeners' queues are then accepted when other
//! clients have left. The clients that were accepted before are served meanwhile.

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

use super::bind::DatagramSocket;
use super::limited_log::MINUTE_NS;
use super::origin::Origin;
use super::places::Places;
use super::{Shared, session};
use crate::protocol::{Answer, Control, ControlError, HELLO_SIZE, OPENING_LIMIT, OUTAGE_S, Request, VERSION};
use crate::seal;

/// A connection that has not described a session yet.
pub(super) struct Stranger {
    pub(super) control: Control<Request>,
    pub(super) from: SocketAddr,
    pub(super) step: Step,
    pub(super) deadline_ns: i64,
}

/// The message that the server expects next from a connection.
pub(super) enum Step {
    Hello,
    Session,
}

/// What the server does after it has read a message of a connection.
pub(super) enum Next {
    /// Wait for the next message.
    Stay(Stranger),
    /// Begin the session that the connection has described.
    Begin(Stranger, SessionSpec),
    /// Give the connection to the flow with this secret.
    Join(Stranger, Secret),
    /// Close the connection. The client has been told why; the string is a line for the log.
    Refused(String),
    /// Nothing: the connection is closed, or waits in its place.
    Done,
}

/// The connections that have not described a session yet, and the epoll that reports what they send.
struct Door {
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
    sockets: &'env [Arc<DatagramSocket>],
    shared: &'env Arc<Shared>,
    stop: &AtomicBool,
    log: &'env (dyn Fn(&str) + Sync),
) -> io::Result<()> {
    let mut door = Door::new(shared)?;
    door.watch_listeners(listeners)?;
    let mut rest = Rest::default();
    let mut next_sweep = 0;
    while !stop.load(Ordering::Relaxed) {
        rest.end(|| door.watch_listeners(listeners), log)?;
        for number in door.wait()? {
            if let Some(index) = listener_index(number) {
                // Numbers in the listeners' range that no listener has do not occur.
                let Some(listener) = listeners.get(index) else { continue };
                if let Err(error) = door.accept(listener)
                    && !rest.is_on()
                {
                    rest.begin(&error, log);
                    door.leave_listeners(listeners);
                }
                continue;
            }
            match door.read(number, shared) {
                Next::Begin(stranger, spec) => {
                    begin(scope, stranger, spec, move |control, from, spec| {
                        session::serve(control, from, spec, sockets, shared, log);
                    })
                    .unwrap_or_else(|why| shared.log_limited(&why, log));
                }
                Next::Join(stranger, secret) => {
                    let (stream, unread) = stranger.control.into_stream();
                    shared.join_stream(stream, &unread, &secret);
                }
                Next::Refused(line) => shared.log_limited(&line, log),
                Next::Stay(_) | Next::Done => {}
            }
        }
        let now = monotonic();
        shared.limited_log().end_if_over(now, log);
        if now >= next_sweep {
            next_sweep = now + SWEEP_NS;
            let is_late = |stranger: &Stranger| stranger.deadline_ns <= now;
            // A late connection may be the connection of a flow, if the path has lost its first line several
            // times. It has more time if its address has a session.
            let may_join = |stranger: &Stranger| {
                stranger.deadline_ns + JOIN_NS > now && shared.has_session_of(stranger.from.ip())
            };
            door.strangers.sweep(|stranger| is_late(stranger) && !may_join(stranger));
            door.guests.sweep(is_late);
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
fn begin<'scope, 'env>(
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
        let why = "this host gives it no thread for one more session; try again later".to_owned();
        let _ = control.send(&Answer::Busy { why });
    }
    Err(format!("{from}: refused: this host gives no thread: {error}"))
}

impl Door {
    fn new(shared: &Shared) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            next_number: 0,
            strangers: Places::new(shared.limits.strangers),
            guests: Places::new(
                shared.limits.strangers.min((WELCOMED_BYTES / shared.limits.request_bytes()).max(1)),
            ),
        })
    }

    /// Adds the listeners to the epoll. After an error none of them is watched.
    fn watch_listeners(&self, listeners: &[TcpListener]) -> io::Result<()> {
        let watched = (0..).zip(listeners).try_for_each(|(index, listener)| {
            let number = EventData::new_u64(u64::MAX - index);
            epoll::add(&self.epoll, listener, number, EventFlags::IN)
        });
        watched.inspect_err(|_| self.leave_listeners(listeners)).map_err(io::Error::from)
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
            let Ok(control) = Control::new(stream, OPENING_LIMIT) else { continue };
            let number = self.next_number;
            self.next_number += 1;
            let data = EventData::new_u64(number);
            // The socket leaves the epoll when it is closed.
            if epoll::add(&self.epoll, control.stream(), data, EventFlags::IN | EventFlags::RDHUP).is_ok() {
                let deadline_ns = monotonic() + STEP_NS;
                let stranger = Stranger { control, from, step: Step::Hello, deadline_ns };
                self.strangers.insert(number, Origin::of(from.ip()), stranger);
            }
        }
        Ok(())
    }

    /// Reads the connection with `number`, and returns what to do with it. A connection that has to wait for
    /// its next message is put back into a place.
    fn read(&mut self, number: u64, shared: &Arc<Shared>) -> Next {
        let waiting = self.strangers.remove(number).or_else(|| self.guests.remove(number));
        // The connection may have been pushed out after the epoll had reported it.
        let Some(stranger) = waiting else { return Next::Done };
        match read(stranger, shared) {
            Next::Stay(stranger) => {
                let places = match stranger.step {
                    Step::Session => &mut self.guests,
                    Step::Hello => &mut self.strangers,
                };
                places.insert(number, Origin::of(stranger.from.ip()), stranger);
                Next::Done
            }
            next => {
                // Another thread reads the connection from now on.
                if let Next::Begin(stranger, _) | Next::Join(stranger, _) = &next {
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

/// The time in which the listeners rest, because the kernel has no resources for another connection.
#[derive(Default)]
struct Rest {
    /// CLOCK_MONOTONIC when the rest ends; `None` if the listeners are watched.
    until_ns: Option<i64>,
    /// CLOCK_MONOTONIC of the last shortage, and the number of the system's error.
    last_shortage: Option<(i64, Option<i32>)>,
}

impl Rest {
    fn is_on(&self) -> bool {
        self.until_ns.is_some()
    }

    /// Ends the rest if its time is over and `watch` can watch the listeners again. If `watch` fails because
    /// the kernel lacks resources, the rest begins again.
    ///
    /// # Errors
    /// Returns each other error of `watch`.
    fn end(&mut self, watch: impl FnOnce() -> io::Result<()>, log: &(dyn Fn(&str) + Sync)) -> io::Result<()> {
        if self.until_ns.take_if(|until| monotonic() >= *until).is_none() {
            return Ok(());
        }
        match watch() {
            // epoll_ctl(2): there is no memory, or the programs of this user together have reached
            // fs.epoll.max_user_watches.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::ENOSPC)) => {
                self.begin(&error, log);
                Ok(())
            }
            watched => watched,
        }
    }

    /// Begins the rest. Logs the shortage, unless the server met the same shortage within the last minute.
    fn begin(&mut self, error: &io::Error, log: &(dyn Fn(&str) + Sync)) {
        let (now, number) = (monotonic(), error.raw_os_error());
        let previous = self.last_shortage.replace((now, number));
        if previous.is_none_or(|(at, its_number)| its_number != number || now - at > QUIET_NS) {
            let (what, how) = descriptors::shortage(error).unwrap_or_else(|| match number {
                Some(libc::ENOSPC) => (
                    "this user's programs watch as many sockets as the system lets them".to_owned(),
                    "raise `sysctl fs.epoll.max_user_watches`".to_owned(),
                ),
                _ => ("the kernel has no memory for a connection".to_owned(), String::new()),
            });
            let how = if how.is_empty() { how } else { format!("; {how}") };
            log(&format!(
                "no new connections for now: {what} ({error}){how}; those that are open are served on"
            ));
        }
        self.until_ns = Some(now + REST_NS);
    }
}

/// Reads the messages of `stranger` one by one, and returns what to do with the connection.
pub(super) fn read(mut stranger: Stranger, shared: &Arc<Shared>) -> Next {
    loop {
        let next = match stranger.control.receive() {
            Ok(None) => return Next::Stay(stranger),
            Ok(Some(request)) => answer(stranger, request, shared),
            // The server does not answer a peer that does not speak its protocol.
            Err(
                ControlError::Garbage(_)
                | ControlError::Closed
                | ControlError::Silent(_)
                | ControlError::Unread(_)
                | ControlError::Overtime(_)
                | ControlError::ThisHost(_)
                | ControlError::Unsealed
                | ControlError::Io(_),
            ) => return Next::Done,
        };
        match next {
            // The next message may have arrived with this one.
            Next::Stay(waiting) => stranger = waiting,
            next => return next,
        }
    }
}

fn answer(mut stranger: Stranger, request: Request, shared: &Arc<Shared>) -> Next {
    let step = std::mem::replace(&mut stranger.step, Step::Session);
    match (step, request) {
        (Step::Hello, Request::Hello { version, opening, filling }) if filling.len() >= HELLO_SIZE => {
            hello(stranger, version, &opening, shared)
        }
        (Step::Hello, Request::Data { secret }) => {
            from_hex::<16>(&secret).map_or(Next::Done, |secret| Next::Join(stranger, Secret(secret)))
        }
        (Step::Session, Request::Session(spec)) => Next::Begin(stranger, spec),
        (Step::Session, Request::Bye) => Next::Done,
        // The message is out of turn, or the hello is too short. The connection is closed without an answer.
        _ => Next::Done,
    }
}

fn hello(mut stranger: Stranger, version: u32, opening: &str, shared: &Shared) -> Next {
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
        return Next::Done;
    }
    if let Some(seal) = seal {
        stranger.control.start_sealing(seal);
    }
    stranger.control.set_line_limit(shared.limits.request_bytes());
    stranger.step = Step::Session;
    stranger.deadline_ns = monotonic() + STEP_NS;
    Next::Stay(stranger)
}

fn refuse(mut stranger: Stranger, why: &str) -> Next {
    // The connection is closed in each case, so it does not matter whether the client reads the answer.
    let _ = stranger.control.send(&Answer::Refused { why: why.to_owned(), flow: None });
    Next::Refused(format!("{}: refused: {why}", stranger.from))
}

/// The time that a connection has for each step of the handshake.
const STEP_NS: i64 = 2_000_000_000;
/// The additional time of a stranger whose address has a session (chosen: as long as an outage may last).
const JOIN_NS: i64 = OUTAGE_S as i64 * 1_000_000_000;
/// The interval at which connections whose time is over are closed.
const SWEEP_NS: i64 = 20_000_000;
/// How many connections are accepted before the accepted ones are read (chosen).
const ACCEPTED_AT_ONCE: usize = 64;
/// The memory for the session descriptions of welcomed guests, which sets how many guests there may be. With
/// a key they take some 120 MiB, because sealed bytes wait beside opened ones (chosen: 256 guests with 64
/// flows each).
const WELCOMED_BYTES: usize = 64 << 20;
/// More listeners than any server has. The largest `MAX_LISTENERS` numbers belong to listeners.
const MAX_LISTENERS: usize = 1 << 16;
/// How long the listeners rest if there is no descriptor for one more connection (chosen: a client that waits
/// for a session to end does not notice this time, and ten failing calls a second cost nothing).
const REST_NS: i64 = 100_000_000;
/// A shortage is logged again if the last one is longer ago than this.
const QUIET_NS: i64 = MINUTE_NS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_whose_end_meets_a_shortage_begins_anew_and_ends_no_server() {
        let end = |before: i32, error: Option<i32>| {
            let mut rest =
                Rest { until_ns: Some(monotonic()), last_shortage: Some((monotonic(), Some(before))) };
            let watch = || error.map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)));
            let said = Mutex::new(String::new());
            let ended = rest.end(watch, &|line| said.lock().unwrap().push_str(line));
            (ended.is_ok(), rest.is_on(), said.into_inner().unwrap())
        };
        for same in [libc::ENOMEM, libc::ENOSPC] {
            assert_eq!(end(same, Some(same)), (true, true, String::new()), "it was said a moment ago");
        }
        let (_, is_on, said) = end(libc::EMFILE, Some(libc::ENOSPC));
        assert!(is_on && said.contains("fs.epoll.max_user_watches"), "{said}");
        assert_eq!(end(libc::EMFILE, Some(libc::EBADF)), (false, false, String::new()));
        assert_eq!(end(libc::EMFILE, None), (true, false, String::new()));
    }
}
