//! The server, which `talkpath serve` runs.
//!
//! The server trusts nobody. It does not answer strangers on UDP. On TCP it says nothing before it has read a
//! whole valid hello, and no answer to a stranger is longer than what the stranger sent. A stranger can wait
//! only for a short time ([`handshake`]). Clients that were let in have to keep within [`Limits`].

mod accept_pause;
pub(crate) mod bind;
mod datagrams;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod handshake;
mod limited_log;
pub(crate) mod origin;
mod places;
mod resumptions;
mod session;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talkpath_kernel::descriptors;
use talkpath_kernel::end::{IdTable, SharedEnd};
use talkpath_kernel::file::check_folder;
use talkpath_kernel::spec::FlowSpec;
use talkpath_kernel::threads::{Punctuality, StoresOnDrop, try_real_time};
use talkpath_kernel::wire::Secret;
use talkpath_wire::machine::Machines;

use crate::key::Key;
use crate::protocol::{REQUEST_LIMIT, Registration, words};

use bind::DatagramSocket;
use limited_log::LimitedLog;
use origin::Shares;
use resumptions::{ClientAddress, Resumptions};

/// The options of a server.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// The addresses to listen on, with TCP and UDP on the same port. Port 0 lets the system choose a port.
    /// If the list is empty, the server listens on port 7160 of every address, IPv6 and IPv4.
    pub bind: Vec<SocketAddr>,
    /// More ports to listen on, at the same IP addresses. A client whose UDP does not get through on its
    /// first port tries these.
    pub also: Vec<u16>,
    /// The key that clients must know. With `None` the server lets everybody in.
    pub key: Option<Key>,
    /// The limits for one client and for all clients together.
    pub limits: Limits,
    /// The folder in which the server keeps files that arrive intact. With `None` it keeps no files.
    pub keep: Option<PathBuf>,
    /// The folder in which the server keeps its log of all transfers. With `None` it is the folder of `keep`.
    pub log: Option<PathBuf>,
    /// True if the threads that pace flows from server to client run in SCHED_FIFO. The threads are then more
    /// punctual on a busy host. They also run before everything else on this host whenever a client wants it.
    pub real_time: bool,
    /// The state machines of flows whose protocol talkpath implements itself.
    pub machines: Machines,
}

/// The limits of what the server gives to its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of concurrent sessions. One address has at most half of the sessions.
    pub sessions: usize,
    /// The number of connections that have not described a session yet. If one more connection comes, the
    /// address with the most connections loses one. The server lowers this limit to a quarter of the
    /// descriptors that the process may have, so that strangers cannot take all descriptors.
    pub strangers: usize,
    /// The number of flows of a session.
    pub flows: usize,
    /// The payload that the flows of a session send together, bits a second. Only flows whose rate is not set
    /// by the network count. Both directions of an echo count.
    pub rate_bps: u64,
    /// The number of messages that the server sends for a session within a second, all flows together. The
    /// messages that count are those of flows from server to client that are sent by a clock, or that are
    /// given to UDP at one moment.
    pub messages_per_s: u64,
    /// The duration and the drain of a run together, seconds.
    pub duration_s: u64,
    /// The time from the description of a session to its `go`, seconds.
    pub prepare_s: u64,
    /// The time that every session has after its run to fetch the report, seconds. Large reports have more
    /// time.
    pub report_s: u64,
    /// The number of rows that a session may keep. A row is a message, an arrival, a read or a sample of
    /// TCP's state. A row of a message that is sent or echoed takes some 90 B, the other rows take up to 50
    /// B. The default allows up to 450 MB a session. An echo has a row for each message before it. So a
    /// single datagram may cost a row for each message that could have been sent by then. These rows are
    /// subtracted from the limit before they are made.
    pub rows: u64,
    /// The memory for data on its way, of all sessions together, bytes: files over UDP, all files that the
    /// server keeps, and the data in QUIC's streams. One address has at most half of the memory.
    pub held_bytes: u64,
    /// The size of all files that the server keeps until it stops, bytes.
    pub kept_bytes: u64,
}

impl Default for Limits {
    /// 16 sessions, each with 64 flows, 1 Gbps, 10,000 messages a second, an hour and five million rows.
    /// 1,024 strangers. 512 MiB of files and QUIC streams on their way, and 4 GiB of kept files. A client has
    /// 30 s until `go`. In this time talkpath's client compares the clocks (1 s or four round trips),
    /// registers its flows (3 s), and opens the connections for 0-RTT tickets (two round trips each). After
    /// the run a client has 60 s.
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
    /// The longest description of a session that the server reads, bytes. It has room for as many flows as
    /// the server serves.
    fn request_bytes(&self) -> usize {
        REQUEST_LIMIT.max(self.flows.saturating_mul(FLOW_BYTES))
    }
}

/// The space for the description of one flow, bytes. We chose 512, because a call over UDP takes 140 B.
const FLOW_BYTES: usize = 512;

/// The reason why the server cannot start or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The server cannot listen: the port is taken, this host does not have the address, or the process lacks
    /// the right.
    #[error("cannot listen on {address} ({protocol}): {source}{}", hint(source))]
    Bind {
        /// The address and port.
        address: SocketAddr,
        /// TCP or UDP.
        protocol: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The system does not allow real-time scheduling for this process.
    #[error("real-time scheduling is not allowed here: {source}")]
    RealTime {
        /// The system's error.
        source: io::Error,
    },
    /// The server cannot write files to the folder.
    #[error("cannot keep files in {}: {source}", folder.display())]
    Keep {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A thread for a socket cannot be started.
    #[error("cannot start a thread for the server's datagrams: {source}")]
    Thread {
        /// The system's error.
        source: io::Error,
    },
    /// The system does not let the server watch its sockets.
    #[error("the server cannot watch its connections: {source}")]
    Watch {
        /// The system's error.
        source: io::Error,
    },
}

/// A server whose sockets are bound. [`Server::run`] serves clients.
pub struct Server {
    listeners: Vec<TcpListener>,
    shared: Arc<Shared>,
}

/// The state that the server's threads share.
struct Shared {
    key: Option<Key>,
    /// The UDP sockets, one for each listener.
    sockets: Vec<Arc<DatagramSocket>>,
    limits: Limits,
    /// True if clients may use another port than that of their control connection.
    offers_ports: bool,
    keep: Option<PathBuf>,
    /// The folder of the log of all transfers.
    log: Option<PathBuf>,
    punctuality: Punctuality,
    machines: Machines,
    /// The seats of sessions.
    seats: Shares,
    /// The memory for files and QUIC streams on their way, bytes.
    memory: Shares,
    /// The size of all files that the server has kept, bytes.
    kept_bytes: AtomicU64,
    flows: Mutex<Flows>,
    /// The sessions whose clients may come back from another address.
    resumptions: Resumptions,
    /// The IDs of all QUIC connections, with the token of each one's first flow.
    quic_ids: IdTable,
    limited_log: Mutex<LimitedLog>,
    stop: AtomicBool,
}

/// The flows that clients may join.
#[derive(Default)]
struct Flows {
    /// Each flow by its secret.
    by_secret: BTreeMap<Secret, Arc<Joinable>>,
    /// Each flow over UDP by the address that registered for it.
    by_address: BTreeMap<SocketAddr, Arc<Joinable>>,
    /// The first flow of each QUIC connection by its token.
    quic_by_token: BTreeMap<u32, Arc<Joinable>>,
}

/// A flow that its client may join.
struct Joinable {
    spec: FlowSpec,
    token: u32,
    /// The client's address on the control connection. Only this address may join.
    client: Arc<ClientAddress>,
    /// The server's address on the control connection. Datagrams to the client leave from it.
    local: IpAddr,
    end: Arc<SharedEnd>,
    epoll: Arc<rustix::fd::OwnedFd>,
    index: u64,
    /// The last registration that counts. `None` if the client has sent none.
    registration: Mutex<Option<Registration>>,
}

impl Joinable {
    /// Notes that a registration with the flow's secret came from `from`. `is_served` says whether the server
    /// answers it, and `has_moved` whether the flow had another address before.
    fn note_registration(&self, from: IpAddr, is_served: bool, has_moved: bool) {
        let mut known = self.registration.lock().unwrap_or_else(PoisonError::into_inner);
        // A registration from an address that is not served changes nothing for a flow that is served.
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
    /// Binds the sockets of the server, and checks its folder and its right to real-time scheduling.
    ///
    /// # Errors
    /// Returns [`ServeError`] if a socket cannot be bound, if the folder cannot be written, or if the right
    /// is missing.
    pub fn bind(options: ServeOptions) -> Result<Self, ServeError> {
        for folder in options.keep.iter().chain(&options.log) {
            check_folder(folder).map_err(|source| ServeError::Keep { folder: folder.clone(), source })?;
        }
        if options.real_time {
            try_real_time().map_err(|source| ServeError::RealTime { source })?;
        }
        let (mut listeners, mut sockets) = (Vec::new(), Vec::new());
        for (listener, socket) in bind::bind_all(&options.bind, &options.also)? {
            listeners.push(listener);
            sockets.push(Arc::new(socket));
        }
        let quarter = usize::try_from(descriptors::limit() / 4).unwrap_or(usize::MAX);
        let strangers = options.limits.strangers.min(quarter).max(1);
        // The pacer spins, which costs processor time, only for clients that have shown a key.
        let punctuality = Punctuality { real_time: options.real_time, spins: options.key.is_some() };
        let shared = Shared {
            key: options.key,
            sockets,
            limits: Limits { strangers, ..options.limits },
            offers_ports: !options.also.is_empty(),
            log: options.log.or_else(|| options.keep.clone()),
            keep: options.keep,
            punctuality,
            machines: options.machines,
            seats: Shares::new(options.limits.sessions as u64),
            memory: Shares::new(options.limits.held_bytes),
            kept_bytes: AtomicU64::new(0),
            flows: Mutex::default(),
            resumptions: Resumptions::default(),
            quic_ids: IdTable::default(),
            limited_log: Mutex::default(),
            stop: AtomicBool::new(false),
        };
        Ok(Self { listeners, shared: Arc::new(shared) })
    }

    /// Returns the first address that the server listens on, with the port that the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addrs().next().unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// Returns every address that the server listens on, in the order of [`ServeOptions::bind`].
    pub fn local_addrs(&self) -> impl Iterator<Item = SocketAddr> {
        self.shared.sockets.iter().filter_map(|socket| socket.socket.local_addr().ok())
    }

    /// Serves clients until `stop` is set. Running sessions then end at once.
    ///
    /// # Errors
    /// Returns [`ServeError::Thread`] or [`ServeError::Watch`] if the system does not let the server go on.
    pub fn run(&self, stop: &AtomicBool) -> Result<(), ServeError> {
        self.run_logged(stop, &|_| {})
    }

    /// Does the same as [`Server::run`], and gives `log` a line when a session ends or is refused.
    ///
    /// # Errors
    /// Returns the same errors as [`Server::run`].
    pub fn run_logged(&self, stop: &AtomicBool, log: &(dyn Fn(&str) + Sync)) -> Result<(), ServeError> {
        self.shared.stop.store(false, Ordering::Relaxed);
        // A line may quote a client, so it is made printable first.
        let log: &(dyn Fn(&str) + Sync) = &|line| log(&words(line));
        std::thread::scope(|scope| {
            let _stop_guard = StoresOnDrop(&self.shared.stop);
            for socket in &self.shared.sockets {
                socket.unreported.iter().for_each(|lack| log(&format!("this host's kernel {lack}")));
                let serve = || datagrams::serve(socket, &self.shared);
                let thread = std::thread::Builder::new().spawn_scoped(scope, serve);
                thread.map_err(|source| ServeError::Thread { source })?;
            }
            handshake::serve_strangers(scope, &self.listeners, &self.shared, stop, log)
                .map_err(|source| ServeError::Watch { source })
        })
    }
}

impl Shared {
    fn flows(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the ports on which the server takes UDP at its address `local`. The list is empty if the
    /// server offers no more ports than that of the control connection.
    fn offered_ports(&self, local: IpAddr) -> Vec<u16> {
        let addresses = self.sockets.iter().filter_map(|socket| socket.socket.local_addr().ok());
        let serves = |address: &SocketAddr| {
            address.ip().is_unspecified() || address.ip().to_canonical() == local.to_canonical()
        };
        addresses
            .filter(|address| self.offers_ports && serves(address))
            .map(|address| address.port())
            .collect()
    }

    /// Returns the descriptors of the UDP sockets.
    fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(|socket| socket.socket.as_fd())
    }

    fn limited_log(&self) -> MutexGuard<'_, LimitedLog> {
        self.limited_log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a `line` of a kind that anybody can cause as often as he likes. The log has a few such lines a
    /// minute, and the number of the others.
    fn log_limited(&self, line: &str, log: &(dyn Fn(&str) + Sync)) {
        self.limited_log().write(line, log);
    }

    /// Returns true if a session of the client at `address` is under way.
    fn has_session_of(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.flows().by_secret.values().any(|flow| flow.client.get() == address)
    }

    /// Gives `stream` to the flow that has `secret`. `unread` holds the bytes that followed the secret. The
    /// stream is closed if this client has no such flow.
    fn join_stream(&self, stream: TcpStream, unread: &[u8], secret: &Secret) {
        let Some(flow) = self.flows().by_secret.get(secret).cloned() else { return };
        let is_client = stream.peer_addr().is_ok_and(|peer| peer.ip().to_canonical() == flow.client.get());
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

/// The default of [`Limits::messages_per_s`]. The pacer takes 60 to 70 us of a processor for each message
/// that it sends alone: 60 us in which it spins until the deadline, and the system call (measured: `cargo
/// test -p talkpath-kernel --lib pacer_cost -- --ignored --nocapture`). So 10,000 messages take two thirds of
/// a processor. With more messages the pacer rests in between, so it never takes a whole processor.
const MESSAGES_PER_S: u64 = 10_000;
