//! The handshake: connections are strangers until they have described a session.
//!
//! ```text
//!  accepted ─► hello ─► (challenge, proof) ─► welcome ─► session described ─► a thread of its own
//!     │          └─ or `data {secret}`: the stream goes to its flow
//!     └─ two seconds for each step, a bounded number of strangers, the oldest leaves for the newest
//! ```
//!
//! All strangers together take one thread, a bounded number of sockets and a few kB each. If the process has
//! no descriptor for one more connection, the listeners rest for [`REST_NS`] instead of failing without end:
//! clients that wait in their queues are taken when others have left, and those inside are served meanwhile.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_kernel::clock::monotonic;
use talkpath_kernel::descriptors;
use talkpath_kernel::hex::{from_hex, to_hex};
use talkpath_kernel::random::random;
use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::wire::Secret;

use super::bind::DatagramSocket;
use super::{Shared, session};
use crate::key::{Key, Side};
use crate::protocol::{
    Answer, Control, ControlError, HELLO_SIZE, OPENING_LIMIT, REQUEST_LIMIT, Request, VERSION,
};

/// A connection that has not described a session.
struct Stranger {
    control: Control<Request>,
    from: SocketAddr,
    step: Step,
    deadline_ns: i64,
}

enum Step {
    Hello,
    Proof { client: String, server: String },
    Session,
}

/// What one message of a stranger leads to.
enum Next {
    Stay(Stranger),
    Begin(Stranger, SessionSpec),
    Gone,
}

/// Accepts strangers and answers them until `stop`.
pub(super) fn serve_strangers<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    listeners: &'env [TcpListener],
    sockets: &'env [Arc<DatagramSocket>],
    shared: &'env Arc<Shared>,
    stop: &AtomicBool,
    log: &'env (dyn Fn(&str) + Sync),
) {
    let mut strangers: Vec<Stranger> = Vec::new();
    let mut rest = Rest::default();
    while !stop.load(Ordering::Relaxed) {
        let open = if rest.is_over() { listeners } else { &[] };
        wait(open, &strangers);
        for listener in open {
            if let Err(error) = admit(listener, &mut strangers, shared) {
                rest.begin(&error, log);
            }
        }
        let now = monotonic();
        let mut staying = Vec::new();
        for stranger in strangers.drain(..).filter(|stranger| stranger.deadline_ns > now) {
            match hear(stranger, shared) {
                Next::Stay(stranger) => staying.push(stranger),
                Next::Gone => {}
                Next::Begin(stranger, spec) => {
                    let Stranger { control, from, .. } = stranger;
                    scope.spawn(move || session::serve(control, from, spec, sockets, shared, log));
                }
            }
        }
        strangers = staying;
    }
}

fn wait(listeners: &[TcpListener], strangers: &[Stranger]) {
    let mut fds: Vec<PollFd<'_>> =
        listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)).collect();
    fds.extend(strangers.iter().map(|stranger| PollFd::new(stranger.control.stream(), PollFlags::IN)));
    let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 }));
}

/// The listeners' rest while the process has no descriptor for another connection.
#[derive(Default)]
struct Rest {
    /// CLOCK_MONOTONIC of its end.
    until_ns: i64,
    is_said: bool,
}

impl Rest {
    fn is_over(&self) -> bool {
        monotonic() >= self.until_ns
    }

    /// Begins, or goes on. A server that was short of descriptors a minute ago does not say so again.
    fn begin(&mut self, error: &io::Error, log: &(dyn Fn(&str) + Sync)) {
        let now = monotonic();
        if !self.is_said || now - self.until_ns > QUIET_NS {
            self.is_said = true;
            let (what, how) = descriptors::shortage(error)
                .unwrap_or_else(|| ("the kernel has no memory for a connection".to_owned(), String::new()));
            let how = if how.is_empty() { how } else { format!("; {how}") };
            log(&format!(
                "no new connections for now: {what} ({error}){how}; those that are open are served on"
            ));
        }
        self.until_ns = now + REST_NS;
    }
}

/// Takes who waits at `listener`.
///
/// # Errors
/// If there is no descriptor for one more.
fn admit(listener: &TcpListener, strangers: &mut Vec<Stranger>, shared: &Shared) -> io::Result<()> {
    // At most as many as there are places: a flood of connections must not take this thread from the
    // strangers that were accepted.
    for _ in 0..shared.limits.strangers.max(1) {
        let (stream, from) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if descriptors::are_exhausted(&error) => return Err(error),
            // News of a connection that is gone already (accept(2)): others may wait behind it.
            Err(_) => continue,
        };
        let Ok(control) = Control::new(stream, OPENING_LIMIT) else { continue };
        if strangers.len() >= shared.limits.strangers.max(1) {
            strangers.remove(0);
        }
        strangers.push(Stranger { control, from, step: Step::Hello, deadline_ns: monotonic() + STEP_NS });
    }
    Ok(())
}

fn hear(mut stranger: Stranger, shared: &Arc<Shared>) -> Next {
    match stranger.control.receive() {
        Ok(None) => Next::Stay(stranger),
        Ok(Some(request)) => answer(stranger, request, shared),
        // A server says nothing to who does not speak its language.
        Err(
            ControlError::Garbage(_)
            | ControlError::Closed
            | ControlError::Silent(_)
            | ControlError::Unread(_)
            | ControlError::Io(_),
        ) => Next::Gone,
    }
}

fn answer(mut stranger: Stranger, request: Request, shared: &Arc<Shared>) -> Next {
    let step = std::mem::replace(&mut stranger.step, Step::Session);
    match (step, request) {
        (Step::Hello, Request::Hello { version, nonce, filling }) if filling.len() >= HELLO_SIZE => {
            hello(stranger, version, nonce, shared)
        }
        (Step::Hello, Request::Data { secret }) => {
            if let Some(secret) = from_hex::<16>(&secret) {
                shared.join_stream(stranger.control.into_stream(), &Secret(secret));
            }
            Next::Gone
        }
        (Step::Proof { client, server }, Request::Proof { proof }) => {
            let Some(key) = &shared.key else { return Next::Gone };
            if !key.accepts(&proof, Side::Client, &client, &server) {
                return refuse(stranger, "the key is not this server's");
            }
            welcome(stranger, Some((key, &client, &server)))
        }
        (Step::Session, Request::Session(spec)) => Next::Begin(stranger, spec),
        (Step::Session, Request::Bye) => Next::Gone,
        _ => Next::Gone,
    }
}

fn hello(mut stranger: Stranger, version: u32, nonce: String, shared: &Shared) -> Next {
    if version != VERSION {
        let why = format!(
            "it speaks version {VERSION} of the protocol, this client version {version}; use the same talkpath at both ends"
        );
        return refuse(stranger, &why);
    }
    if from_hex::<16>(&nonce).is_none() {
        return Next::Gone;
    }
    if shared.key.is_none() {
        return welcome(stranger, None);
    }
    let Ok(server) = random::<16>() else { return Next::Gone };
    let server = to_hex(&server);
    if stranger.control.send(&Answer::Challenge { nonce: server.clone() }).is_err() {
        return Next::Gone;
    }
    stranger.step = Step::Proof { client: nonce, server };
    stranger.deadline_ns = monotonic() + STEP_NS;
    Next::Stay(stranger)
}

fn welcome(mut stranger: Stranger, key: Option<(&Key, &str, &str)>) -> Next {
    let proof = key.map(|(key, client, server)| key.proof(Side::Server, client, server));
    if stranger.control.send(&Answer::Welcome { proof }).is_err() {
        return Next::Gone;
    }
    stranger.control.set_line_limit(REQUEST_LIMIT);
    stranger.step = Step::Session;
    stranger.deadline_ns = monotonic() + STEP_NS;
    Next::Stay(stranger)
}

fn refuse(mut stranger: Stranger, why: &str) -> Next {
    // Who is refused is not waited for.
    let _ = stranger.control.send(&Answer::Refused { why: why.to_owned(), flow: None });
    Next::Gone
}

/// How long a stranger may take for each step.
const STEP_NS: i64 = 2_000_000_000;
/// How long the listeners rest if there is no descriptor for one more connection (chosen: a client that waits
/// for a session to end does not notice it, and ten failing calls a second cost nothing).
const REST_NS: i64 = 100_000_000;
/// A shortage is said again when there was none for so long.
const QUIET_NS: i64 = 60_000_000_000;
