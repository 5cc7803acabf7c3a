//! The handshake: connections are strangers until they have described a session.
//!
//! ```text
//!  accepted ─► hello ─► welcome ─► session described ─► a thread of its own
//!     │          └─ or `data {secret}`: the stream goes to its flow
//!     └─ two seconds for each step, and a bounded number of places (places.rs)
//! ```
//!
//! All strangers together take one thread, a bounded number of sockets and a few kB each. If the process has
//! no descriptor for one more connection, the listeners rest for [`REST_NS`] instead of failing without end:
//! clients that wait in their queues are taken when others have left, and those inside are served meanwhile.

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
use super::origin::Origin;
use super::places::Places;
use super::trifles::MINUTE_NS;
use super::{Shared, session};
use crate::protocol::{Answer, Control, ControlError, HELLO_SIZE, OPENING_LIMIT, OUTAGE_S, Request, VERSION};
use crate::seal;

/// A connection that has not described a session.
pub(super) struct Stranger {
    pub(super) control: Control<Request>,
    pub(super) from: SocketAddr,
    pub(super) step: Step,
    pub(super) deadline_ns: i64,
}

pub(super) enum Step {
    Hello,
    Session,
}

/// What one message of a stranger leads to.
pub(super) enum Next {
    Stay(Stranger),
    Begin(Stranger, SessionSpec),
    /// A flow's data connection, with its secret.
    Join(Stranger, Secret),
    /// A guest is not let in and knows why; a line for the log.
    Refused(String),
    Gone,
}

/// The guests that have not described a session yet, and the epoll that reports what they send.
struct Door {
    epoll: OwnedFd,
    /// The number of the next connection; listeners have the largest ones.
    next: u64,
    /// Those who have not shown who they are.
    strangers: Places<Stranger>,
    /// Those who were let in, and have yet to say for what.
    welcomed: Places<Stranger>,
}

/// Accepts strangers and answers them until `stop`.
///
/// # Errors
/// The system's, if it cannot watch sockets.
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
                let Some(listener) = listeners.get(index) else { continue };
                if let Err(error) = door.admit(listener)
                    && !rest.is_on()
                {
                    rest.begin(&error, log);
                    door.leave_listeners(listeners);
                }
                continue;
            }
            match door.hear(number, shared) {
                Next::Begin(stranger, spec) => {
                    begin(scope, stranger, spec, move |control, from, spec| {
                        session::serve(control, from, spec, sockets, shared, log);
                    })
                    .unwrap_or_else(|why| shared.say_briefly(&why, log));
                }
                Next::Join(stranger, secret) => {
                    let (stream, unread) = stranger.control.into_stream();
                    shared.join_stream(stream, &unread, &secret);
                }
                Next::Refused(line) => shared.say_briefly(&line, log),
                Next::Stay(_) | Next::Gone => {}
            }
        }
        let now = monotonic();
        shared.trifles().end_if_over(now, log);
        if now >= next_sweep {
            next_sweep = now + SWEEP_NS;
            let is_late = |stranger: &Stranger| stranger.deadline_ns <= now;
            // It may be a flow's connection, whose opening line the path has lost again and again.
            let may_join = |stranger: &Stranger| {
                stranger.deadline_ns + JOIN_NS > now && shared.has_session_of(stranger.from.ip())
            };
            door.strangers.sweep(|stranger| is_late(stranger) && !may_join(stranger));
            door.welcomed.sweep(is_late);
        }
    }
    shared.trifles().end(log);
    Ok(())
}

/// Gives the session that a guest described a thread of its own, which does `serve`.
///
/// # Errors
/// A line for the log, if no thread can be started. The guest gets the answer that the server is busy.
fn begin<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    stranger: Stranger,
    spec: SessionSpec,
    serve: impl FnOnce(Control<Request>, SocketAddr, SessionSpec) + Send + 'scope,
) -> Result<(), String> {
    let from = stranger.from;
    // A thread that does not begin must not take the guest along.
    let guest = Arc::new(Mutex::new(Some((stranger.control, spec))));
    let taken = Arc::clone(&guest);
    let take = |guest: &Mutex<Option<_>>| guest.lock().unwrap_or_else(PoisonError::into_inner).take();
    let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
        if let Some((control, spec)) = take(&taken) {
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
            next: 0,
            strangers: Places::new(shared.limits.strangers),
            welcomed: Places::new(
                shared.limits.strangers.min((WELCOMED_BYTES / shared.limits.request_bytes()).max(1)),
            ),
        })
    }

    /// Watches all of them, or none.
    fn watch_listeners(&self, listeners: &[TcpListener]) -> io::Result<()> {
        let watched = (0..).zip(listeners).try_for_each(|(index, listener)| {
            let number = EventData::new_u64(u64::MAX - index);
            epoll::add(&self.epoll, listener, number, EventFlags::IN)
        });
        watched.inspect_err(|_| self.leave_listeners(listeners)).map_err(io::Error::from)
    }

    fn leave_listeners(&self, listeners: &[TcpListener]) {
        for listener in listeners {
            // One that is not watched is no mistake.
            let _ = epoll::delete(&self.epoll, listener);
        }
    }

    /// The numbers of the guests and listeners that are readable, after at most 20 ms; listeners come last.
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

    /// Takes who waits at `listener`: as many as there are places free, and one if there is none. Whoever was
    /// taken is heard before another takes its place.
    ///
    /// # Errors
    /// If there is no descriptor for one more.
    fn admit(&mut self, listener: &TcpListener) -> io::Result<()> {
        // A flood of connections must not take this thread from those that were accepted.
        for _ in 0..ACCEPTED_AT_ONCE.min(self.strangers.free()).max(1) {
            let (stream, from) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if descriptors::are_exhausted(&error) => return Err(error),
                // News of a connection that is gone already (accept(2)): others may wait behind it.
                Err(_) => continue,
            };
            let Ok(control) = Control::new(stream, OPENING_LIMIT) else { continue };
            let number = self.next;
            self.next += 1;
            let data = EventData::new_u64(number);
            // Closing a socket ends its watch.
            if epoll::add(&self.epoll, control.stream(), data, EventFlags::IN | EventFlags::RDHUP).is_ok() {
                let deadline_ns = monotonic() + STEP_NS;
                let stranger = Stranger { control, from, step: Step::Hello, deadline_ns };
                self.strangers.insert(number, Origin::of(from.ip()), stranger);
            }
        }
        Ok(())
    }

    /// What the connection of `number` has to say. Who stays is back in its place.
    fn hear(&mut self, number: u64, shared: &Arc<Shared>) -> Next {
        let waiting = self.strangers.remove(number).or_else(|| self.welcomed.remove(number));
        let Some(stranger) = waiting else { return Next::Gone };
        match hear(stranger, shared) {
            Next::Stay(stranger) => {
                let places = match stranger.step {
                    Step::Session => &mut self.welcomed,
                    Step::Hello => &mut self.strangers,
                };
                places.insert(number, Origin::of(stranger.from.ip()), stranger);
                Next::Gone
            }
            next => {
                // Another thread reads it from now on.
                if let Next::Begin(stranger, _) | Next::Join(stranger, _) = &next {
                    let _ = epoll::delete(&self.epoll, stranger.control.stream().as_fd());
                }
                next
            }
        }
    }
}

/// Which listener has `number`, if it is a listener's.
fn listener_index(number: u64) -> Option<usize> {
    usize::try_from(u64::MAX - number).ok().filter(|index| *index < MAX_LISTENERS)
}

/// The listeners' rest while the kernel has nothing left for another connection.
#[derive(Default)]
struct Rest {
    /// CLOCK_MONOTONIC of its end; `None` if the listeners are watched.
    until_ns: Option<i64>,
    /// CLOCK_MONOTONIC of the last failure, and the system's number of its error.
    failed: Option<(i64, Option<i32>)>,
}

impl Rest {
    fn is_on(&self) -> bool {
        self.until_ns.is_some()
    }

    /// Ends it if its time is over and `watch` watches the listeners again; if that takes what the kernel has
    /// none left of, it begins anew.
    ///
    /// # Errors
    /// Another one of `watch`.
    fn end(&mut self, watch: impl FnOnce() -> io::Result<()>, log: &(dyn Fn(&str) + Sync)) -> io::Result<()> {
        if self.until_ns.take_if(|until| monotonic() >= *until).is_none() {
            return Ok(());
        }
        match watch() {
            // epoll_ctl(2): no memory, or fs.epoll.max_user_watches reached by all of this user's programs.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::ENOSPC)) => {
                self.begin(&error, log);
                Ok(())
            }
            watched => watched,
        }
    }

    /// Begins. A server that met the same shortage a minute ago does not say so again.
    fn begin(&mut self, error: &io::Error, log: &(dyn Fn(&str) + Sync)) {
        let (now, number) = (monotonic(), error.raw_os_error());
        let before = self.failed.replace((now, number));
        if before.is_none_or(|(at, of)| of != number || now - at > QUIET_NS) {
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

/// Reads what `stranger` said, message by message.
pub(super) fn hear(mut stranger: Stranger, shared: &Arc<Shared>) -> Next {
    loop {
        let next = match stranger.control.receive() {
            Ok(None) => return Next::Stay(stranger),
            Ok(Some(request)) => answer(stranger, request, shared),
            // A server says nothing to who does not speak its language.
            Err(
                ControlError::Garbage(_)
                | ControlError::Closed
                | ControlError::Silent(_)
                | ControlError::Unread(_)
                | ControlError::Overtime(_)
                | ControlError::Own(_)
                | ControlError::Unsealed
                | ControlError::Io(_),
            ) => return Next::Gone,
        };
        match next {
            // More may have come with it.
            Next::Stay(it) => stranger = it,
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
            from_hex::<16>(&secret).map_or(Next::Gone, |secret| Next::Join(stranger, Secret(secret)))
        }
        (Step::Session, Request::Session(spec)) => Next::Begin(stranger, spec),
        (Step::Session, Request::Bye) => Next::Gone,
        _ => Next::Gone,
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
        return Next::Gone;
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
    // Who is refused is not waited for.
    let _ = stranger.control.send(&Answer::Refused { why: why.to_owned(), flow: None });
    Next::Refused(format!("{}: refused: {why}", stranger.from))
}

/// How long a stranger may take for each step.
const STEP_NS: i64 = 2_000_000_000;
/// How much longer one may take whose address has a session (chosen: as long as an outage may last).
const JOIN_NS: i64 = OUTAGE_S as i64 * 1_000_000_000;
/// How often those are dropped whose time is up.
const SWEEP_NS: i64 = 20_000_000;
/// How many connections are accepted before the accepted ones are read (chosen).
const ACCEPTED_AT_ONCE: usize = 64;
/// The memory for the session descriptions of welcomed guests, which sets how many guests there may be. With
/// a key they take some 120 MiB, because sealed bytes wait beside opened ones (chosen: 256 guests with 64
/// flows each).
const WELCOMED_BYTES: usize = 64 << 20;
/// No server has as many; numbers above are listeners'.
const MAX_LISTENERS: usize = 1 << 16;
/// How long the listeners rest if there is no descriptor for one more connection (chosen: a client that waits
/// for a session to end does not notice it, and ten failing calls a second cost nothing).
const REST_NS: i64 = 100_000_000;
/// A shortage is said again when there was none for so long.
const QUIET_NS: i64 = MINUTE_NS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_whose_end_meets_a_shortage_begins_anew_and_ends_no_server() {
        let end = |before: i32, error: Option<i32>| {
            let mut rest = Rest { until_ns: Some(monotonic()), failed: Some((monotonic(), Some(before))) };
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
