//! The far end: `talkpath serve`.
//!
//! Nobody gets in: strangers on UDP get nothing; on TCP the server says nothing before a whole valid hello,
//! and no answer to a stranger is longer than what it sent. Strangers hold no place for long ([`handshake`]);
//! those let in are held to [`Limits`].

pub(crate) mod bind;
mod datagrams;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod handshake;
pub(crate) mod origin;
mod places;
mod session;
mod trifles;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talkpath_kernel::descriptors;
use talkpath_kernel::end::SharedEnd;
use talkpath_kernel::file::check_folder;
use talkpath_kernel::spec::FlowSpec;
use talkpath_kernel::threads::{Punctuality, StoresOnDrop, try_real_time};
use talkpath_kernel::wire::Secret;
use talkpath_wire::machine::Machines;

use crate::key::Key;
use crate::protocol::{REQUEST_LIMIT, Registration, words};

use bind::DatagramSocket;
use origin::Shares;
use trifles::Trifles;

/// How to serve.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// The addresses to listen on, TCP and UDP on the same port; port 0 lets the system choose. Empty takes
    /// port 7160 of every address, IPv6 and IPv4.
    pub bind: Vec<SocketAddr>,
    /// The key that clients must know; `None` lets everybody in.
    pub key: Option<Key>,
    /// What one client, and all together, may take.
    pub limits: Limits,
    /// The folder that keeps files that arrive intact; `None` keeps none.
    pub keep: Option<PathBuf>,
    /// Whether the threads that pace flows downwards run in SCHED_FIFO: more punctual on a busy host, and
    /// before everything else there, at the word of whoever is served.
    pub real_time: bool,
    /// The state machines of flows over protocols of ours.
    pub machines: Machines,
}

/// What the server gives away at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions at a time; one address has at most half of them.
    pub sessions: usize,
    /// Connections that have not described a session yet. If one more comes, the address with the most loses
    /// one. At most a quarter of the descriptors that the process may have, so that strangers cannot take
    /// them all.
    pub strangers: usize,
    /// Flows of a session.
    pub flows: usize,
    /// Payload that a session's flows send within a second together, as far as they and not the network bound
    /// it; both directions of an echo counted, bits a second.
    pub rate_bps: u64,
    /// Messages that a session has the server hand over within a second, all flows together: those of flows
    /// downwards that come on a clock, or that UDP takes at one moment.
    pub messages_per_s: u64,
    /// Duration and drain of a run together, seconds.
    pub duration_s: u64,
    /// From the description of a session to its `go`, seconds.
    pub prepare_s: u64,
    /// What every session has after its run for its report, seconds; large reports have more.
    pub report_s: u64,
    /// Rows (a message, an arrival, a read, a sample of TCP's state) that a session may keep. A message that
    /// is sent or echoed takes some 90 B, the others up to 50 B. The default is up to 450 MB a session. An
    /// echo has a row for each message before it: a single datagram may cost those of all messages that could
    /// have been sent by then, and they are taken out of this number before they are made.
    pub rows: u64,
    /// Bytes of memory for what is on its way, of all sessions together: files over UDP, all files that are
    /// kept, and what QUIC's streams may hold. One address has at most half.
    pub held_bytes: u64,
    /// Bytes of files that are kept, in all, until the server stops.
    pub kept_bytes: u64,
}

impl Default for Limits {
    /// 16 sessions of 64 flows, 1 Gbps, 10,000 messages a second, an hour and five million rows each; 1,024
    /// strangers; 512 MiB of files and QUIC streams on their way, 4 GiB kept. Until `go` a client has 30 s,
    /// in which ours compares the clocks (1 s or four round trips), registers its flows (5 s), and has the
    /// connections for 0-RTT tickets (two round trips each); after the run 60 s.
    fn default() -> Self {
        Self {
            sessions: 16,
            strangers: 1024,
            flows: 64,
            rate_bps: 1_000_000_000,
            messages_per_s: MESSAGES_PER_S,
            duration_s: 3660,
            prepare_s: 30,
            report_s: 60,
            rows: 5_000_000,
            held_bytes: 512 << 20,
            kept_bytes: 4 << 30,
        }
    }
}

impl Limits {
    /// The longest description of a session that it takes, in bytes: one of as many flows as it serves.
    fn request_bytes(&self) -> usize {
        REQUEST_LIMIT.max(self.flows.saturating_mul(FLOW_BYTES))
    }
}

/// What the description of one flow may take (chosen: a call over UDP takes 140 B).
const FLOW_BYTES: usize = 512;

/// Why the server cannot start, or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port is taken, the address is not ours, or it takes more rights.
    #[error("cannot listen on {address} ({protocol}): {source}{}", hint(source))]
    Bind {
        /// The address and port.
        address: SocketAddr,
        /// TCP or UDP.
        protocol: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Threads cannot be scheduled in real time.
    #[error("real-time scheduling is not allowed here: {source}")]
    RealTime {
        /// The system's error.
        source: io::Error,
    },
    /// Files cannot be kept there.
    #[error("cannot keep files in {}: {source}", folder.display())]
    Keep {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no thread for a socket.
    #[error("this host gives no thread for the server's datagrams: {source}")]
    Thread {
        /// The system's error.
        source: io::Error,
    },
    /// Its sockets cannot be watched.
    #[error("the server cannot watch its connections: {source}")]
    Watch {
        /// The system's error.
        source: io::Error,
    },
}

/// A bound server; [`Server::run`] serves.
pub struct Server {
    listeners: Vec<TcpListener>,
    sockets: Vec<Arc<DatagramSocket>>,
    shared: Arc<Shared>,
}

/// What the server's threads share.
struct Shared {
    key: Option<Key>,
    limits: Limits,
    keep: Option<PathBuf>,
    punctuality: Punctuality,
    machines: Machines,
    /// Places of sessions.
    seats: Shares,
    /// Bytes of memory for files and QUIC streams on their way.
    memory: Shares,
    /// Bytes of files that were kept.
    kept_bytes: AtomicU64,
    flows: Mutex<Flows>,
    trifles: Mutex<Trifles>,
    stop: AtomicBool,
}

/// Flows that may be joined, by their secrets, and UDP flows by the address that registered.
#[derive(Default)]
struct Flows {
    by_secret: BTreeMap<Secret, Arc<Joinable>>,
    by_address: BTreeMap<SocketAddr, Arc<Joinable>>,
}

/// A flow that its client may join.
struct Joinable {
    spec: FlowSpec,
    token: u32,
    /// Only from here: the address of the control connection.
    client: IpAddr,
    /// The server's address on that connection, from which datagrams are sent.
    local: IpAddr,
    end: Arc<SharedEnd>,
    epoll: Arc<rustix::fd::OwnedFd>,
    index: u64,
    /// What came of its registrations.
    registration: Mutex<Option<Registration>>,
}

impl Joinable {
    /// One with the flow's secret came from `from`, and was answered if it `is_served`.
    fn note_registration(&self, from: IpAddr, is_served: bool, has_moved: bool) {
        let mut known = self.registration.lock().unwrap_or_else(PoisonError::into_inner);
        // What comes from elsewhere changes nothing for a flow that is served.
        if !is_served && known.is_some_and(|known| known.is_served) {
            return;
        }
        let moves = known.map_or(0, |known| known.moves).saturating_add(u32::from(has_moved));
        *known = Some(Registration { from, is_served, moves });
    }

    fn registration(&self) -> Option<Registration> {
        *self.registration.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Opens the ports.
    ///
    /// # Errors
    /// [`ServeError`] with the address, the folder or the right, and what is wrong with it.
    pub fn bind(options: ServeOptions) -> Result<Self, ServeError> {
        if let Some(folder) = &options.keep {
            check_folder(folder).map_err(|source| ServeError::Keep { folder: folder.clone(), source })?;
        }
        if options.real_time {
            try_real_time().map_err(|source| ServeError::RealTime { source })?;
        }
        let (mut listeners, mut sockets) = (Vec::new(), Vec::new());
        for (listener, socket) in bind::all(&options.bind)? {
            listeners.push(listener);
            sockets.push(Arc::new(socket));
        }
        let few = usize::try_from(descriptors::limit() / 4).unwrap_or(usize::MAX);
        let strangers = options.limits.strangers.min(few).max(1);
        // Who has shown no key gets no processor for nothing.
        let punctuality = Punctuality { real_time: options.real_time, spins: options.key.is_some() };
        let shared = Shared {
            key: options.key,
            limits: Limits { strangers, ..options.limits },
            keep: options.keep,
            punctuality,
            machines: options.machines,
            seats: Shares::new(options.limits.sessions as u64),
            memory: Shares::new(options.limits.held_bytes),
            kept_bytes: AtomicU64::new(0),
            flows: Mutex::default(),
            trifles: Mutex::default(),
            stop: AtomicBool::new(false),
        };
        Ok(Self { listeners, sockets, shared: Arc::new(shared) })
    }

    /// The first address that it listens on, with the port that the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addrs().next().unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// Every address that it listens on, in the order of [`ServeOptions::bind`].
    pub fn local_addrs(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.socket.local_addr().ok())
    }

    /// Serves until `stop`; running sessions then end at once.
    ///
    /// # Errors
    /// [`ServeError::Thread`] and [`ServeError::Watch`]: what ended it before.
    pub fn run(&self, stop: &AtomicBool) -> Result<(), ServeError> {
        self.run_logged(stop, &|_| {})
    }

    /// As [`Server::run`], with a line for `log` when a session begins, ends or is refused.
    ///
    /// # Errors
    /// The same.
    pub fn run_logged(&self, stop: &AtomicBool, log: &(dyn Fn(&str) + Sync)) -> Result<(), ServeError> {
        self.shared.stop.store(false, Ordering::Relaxed);
        // What is logged may quote a guest.
        let log: &(dyn Fn(&str) + Sync) = &|line| log(&words(line));
        std::thread::scope(|scope| {
            let _stops = StoresOnDrop(&self.shared.stop);
            for socket in &self.sockets {
                socket.unreported.iter().for_each(|what| log(&format!("this host's kernel {what}")));
                let serve = || datagrams::serve(socket, &self.shared);
                let thread = std::thread::Builder::new().spawn_scoped(scope, serve);
                thread.map_err(|source| ServeError::Thread { source })?;
            }
            handshake::serve_strangers(scope, &self.listeners, &self.sockets, &self.shared, stop, log)
                .map_err(|source| ServeError::Watch { source })
        })
    }
}

impl Shared {
    fn flows(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trifles(&self) -> MutexGuard<'_, Trifles> {
        self.trifles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a `line` of a kind that anybody can cause as often as he likes: a few such lines are written, the
    /// others are counted.
    fn say_briefly(&self, line: &str, log: &(dyn Fn(&str) + Sync)) {
        self.trifles().say(line, log);
    }

    /// Whether a session of the client at `address` is under way.
    fn has_session_of(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.flows().by_secret.values().any(|flow| flow.client == address)
    }

    /// Gives `stream`, which opened with `secret` and continued with `unread`, to its flow; drops it if there
    /// is no such flow for this client.
    fn join_stream(&self, stream: TcpStream, unread: &[u8], secret: &Secret) {
        let Some(flow) = self.flows().by_secret.get(secret).cloned() else { return };
        let is_client = stream.peer_addr().is_ok_and(|peer| peer.ip().to_canonical() == flow.client);
        if is_client && !flow.spec.transport.channel_kind().is_udp() {
            session::attach(&flow, stream, unread);
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another program has this port, perhaps another `talkpath serve`",
        io::ErrorKind::AddrNotAvailable => "; this host does not have this address",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need more rights",
        _ if matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT)) => {
            "; this kernel does not have this version of IP"
        }
        _ => "",
    }
}

/// The pacer takes 60 to 70 us of a processor for each message that it hands over alone: 60 us of spinning to
/// its deadline and the system call (measured again since it rests: `cargo test -p talkpath-kernel --lib
/// pacer_cost -- --ignored --nocapture`). This many take two thirds of a processor; with more it rests, and
/// never takes a whole one.
const MESSAGES_PER_S: u64 = 10_000;
