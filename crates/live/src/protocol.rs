//! The control protocol. It runs over TCP and has one JSON object a line. The client sends requests, and the
//! server sends answers.
//!
//! ```text
//!  client                                        server
//!  hello {version, opening, filling}    ─►               (the hello is as long as any answer to it)
//!                                       ◄─  welcome {answer}
//!       with a key, all that follows is sealed (seal.rs)
//!  session {flows, duration, ...}       ─►
//!                                       ◄─  ready {a secret and a token for each flow, QUIC's certificate}
//!  probe                                ─►  ◄─  probe {received, sent}     several times, for the clocks
//!       UDP flows register from their own addresses (wire.rs), before the run and in it
//!  registrations                        ─►  ◄─  registrations            if a flow's was not answered
//!  go {when, on the server's clock}     ─►  ◄─  going
//!       TCP flows connect to the same port and open with `data {secret}`; messages follow at once
//!  ask                                  ─►  ◄─  progress                 during the run: also the keep-alive
//!  stop                                 ─►  ◄─  stopped
//!  report {flow}                        ─►  ◄─  rows, rows, ..., end       for each flow
//!  bye                                  ─►
//! ```
//!
//! If the server cannot do what a request asks, it answers `refused {why}`. The length of a line is limited
//! at both ends. A line that is longer, or that is no such object, ends the connection. The bytes that wait
//! for a peer that does not read are limited too: beyond [`UNSENT_LIMIT`] nothing is read from this peer, and
//! TCP's window closes.

mod registrations;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::net::TcpStream;

use rustix::event::{PollFd, PollFlags, poll};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use talkpath_kernel::clock::monotonic;
use talkpath_kernel::end::{Fingerprint, HostKeys};
use talkpath_kernel::log::Chunk;
use talkpath_kernel::progress::EndProgress;
use talkpath_kernel::spec::{SessionSpec, TransportSpec};
use talkpath_kernel::tag::TagKey;
use talkpath_kernel::udp_drops::UdpDrops;
use talkpath_units::{from_hex, printable};

use crate::seal::Seal;
pub(crate) use registrations::{Registration, Registrations};

/// A message of the client. `hello` opens a control connection, and `data` opens the connection of a flow.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Opens a control connection.
    Hello {
        /// The client's [`VERSION`].
        version: u32,
        /// The first message of the handshake (seal.rs) in hexadecimal; empty without a key. The field is
        /// called `nonce` on the wire, so that servers up to version 7 can read the hello and can say which
        /// version they speak.
        #[serde(rename = "nonce")]
        opening: String,
        /// Characters that make the line longer than [`HELLO_SIZE`] bytes.
        filling: String,
    },
    /// Opens a TCP flow's data connection.
    Data {
        /// The flow's secret, in hexadecimal.
        secret: String,
    },
    /// Describes the run that the client wants.
    Session(SessionSpec),
    /// Requests a reading of the server's clock.
    Probe {
        /// A number that the answer repeats.
        number: u32,
    },
    /// Requests the addresses from which flows over UDP registered.
    Registrations,
    /// Says when the run begins.
    Go {
        /// The beginning of the run on the server's clock, ns since 1970.
        start_ns: i64,
    },
    /// Requests the progress of the flows. It also shows the server that the client lives.
    Ask,
    /// Says that the run is over.
    Stop,
    /// Requests the server's log of a flow.
    Report {
        /// The index of the flow in the session.
        flow: u32,
    },
    /// Says that the client leaves.
    Bye,
}

/// A message of the server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Accepts the hello.
    Welcome {
        /// The server's message of the handshake (seal.rs), if there is a key.
        answer: Option<String>,
    },
    /// Refuses the hello or the session.
    Refused {
        /// The reason, in words for a person.
        why: String,
        /// The index of the flow that the refusal is about, if it is about a single flow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<u32>,
    },
    /// Refuses the session for now, because too few seats or too little memory is left.
    Busy {
        /// The reason, in words for a person.
        why: String,
    },
    /// Accepts the session.
    Ready {
        /// The admission of each flow, in the session's order.
        flows: Vec<Admission>,
        /// The options that the server cannot set, in words for a person.
        warnings: Vec<String>,
    },
    /// Gives a reading of the server's clock.
    Probe {
        /// The number of the request.
        number: u32,
        /// When the server read the request, ns since 1970 on the server's clock.
        received_ns: i64,
        /// When the server wrote this answer, ns since 1970 on the server's clock.
        sent_ns: i64,
    },
    /// Gives the registrations of flows over UDP.
    Registrations(Registrations),
    /// Confirms the beginning of the run.
    Going {
        /// The beginning of the run on the server's clock, ns since 1970. It is later than requested if the
        /// requested time was past.
        start_ns: i64,
    },
    /// Gives the progress of the flows. Its two time stamps also make it a probe of the server's clock.
    Progress {
        /// The progress of each flow, in the session's order.
        flows: Vec<EndProgress>,
        /// When the server read the request, ns since 1970 on the server's clock.
        received_ns: i64,
        /// When the server wrote this answer, ns since 1970 on the server's clock.
        sent_ns: i64,
        /// The reason why the server wants the run to end, if there is one.
        trouble: Option<String>,
    },
    /// Confirms the end of the run.
    Stopped {
        /// The lateness of the server's pacer: p50, p99 and maximum, ns. Absent if it paced nothing.
        lateness_ns: Option<[u64; 3]>,
        /// The number of datagrams that the receiving sockets dropped, and what is known of the causes.
        drops: UdpDrops,
        /// The registrations of the whole session.
        registrations: Registrations,
    },
    /// Gives a part of a flow's log.
    Rows(Box<Chunk>),
    /// Says that the flow's log is complete.
    End,
}

/// The secret and the keys with which a client joins a flow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Admission {
    /// The flow's secret, 16 random bytes in hexadecimal.
    pub(crate) secret: String,
    /// The token that each datagram of the flow carries.
    pub(crate) token: u32,
    /// The key of the tags of the flow's datagrams, 32 random bytes in hexadecimal. Absent without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tag_key: Option<String>,
    /// The SHA-256 of the certificate that the server shows on the flow's QUIC connection, in hexadecimal.
    /// All flows of one connection have the same certificate. Absent for other transports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) certificate: Option<String>,
}

impl Admission {
    /// Returns the keys of the client's end of a flow. The outer `None` is a mistake of the server: a QUIC
    /// flow without a certificate. The inner `None` says that the transport is not QUIC and needs no keys.
    pub(crate) fn quic_keys(&self, transport: &TransportSpec) -> Option<Option<HostKeys>> {
        let fingerprint = self.certificate.as_deref().and_then(from_hex::<32>).map(Fingerprint);
        match (transport, fingerprint) {
            (TransportSpec::Quic(_), Some(fingerprint)) => Some(Some(HostKeys::Client(fingerprint))),
            (TransportSpec::Quic(_), None) => None,
            (TransportSpec::Udp { .. } | TransportSpec::Tcp { .. } | TransportSpec::Encapsulated(_), _) => {
                Some(None)
            }
        }
    }

    /// Returns the key of the tags of the flow's datagrams. The outer `None` is a mistake of the server: a
    /// sealed session without such a key, or an unsealed session with one. The inner `None` says that the
    /// datagrams have no tags.
    pub(crate) fn tag_key(&self, is_sealed: bool) -> Option<Option<TagKey>> {
        match (&self.tag_key, is_sealed) {
            (Some(key), true) => from_hex::<32>(key).map(|key| Some(TagKey(key))),
            (None, false) => Some(None),
            _ => None,
        }
    }
}

/// The reason why a control connection ended. The subject of each text is the other side, for example "the
/// client closed the connection".
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// The other side closed it.
    #[error("closed the connection")]
    Closed,
    /// The other side sent nothing for this many seconds.
    #[error("said nothing for {0} s")]
    Silent(u64),
    /// The other side read none of the waiting bytes for this many seconds.
    #[error("read no answers for {0} s")]
    Unread(u64),
    /// The session took longer than the server allows.
    #[error("took too long: {0}")]
    Overtime(String),
    /// This host lacks the resources to serve the client. The client did nothing wrong.
    #[error("was let go: {0}")]
    ThisHost(String),
    /// The bytes that came are not sealed by the other side.
    #[error("sent what is not sealed with the key: somebody changed it on the way")]
    Unsealed,
    /// The bytes that came are not a message of this protocol. The string is their beginning.
    #[error("sent what is not talkpath's protocol: {0:?}")]
    Garbage(String),
    /// The system reported an error of the connection.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
}

/// One side of a control connection. It reads messages of the type `In`.
pub(crate) struct Control<In> {
    stream: TcpStream,
    /// The seal of both directions; `None` if there is no key.
    seal: Option<Seal>,
    /// Sealed bytes that came and are not a whole piece yet.
    sealed: Vec<u8>,
    unread: Unread,
    unsent: VecDeque<u8>,
    /// The socket has no room for the bytes in `unsent`.
    is_blocked: bool,
    /// The longest line that is read, bytes.
    line_limit: usize,
    /// CLOCK_MONOTONIC of the peer's last sign of life: a byte came, or the peer made room for bytes that
    /// waited.
    heard_ns: i64,
    /// How long the peer may give no sign of life, seconds.
    patience_s: u64,
    reads: PhantomData<In>,
}

impl<In: DeserializeOwned> Control<In> {
    /// Takes over `stream`. Lines that are longer than `line_limit` bytes end the connection.
    ///
    /// # Errors
    /// Returns the system's error if the options of the socket cannot be set.
    pub(crate) fn new(stream: TcpStream, line_limit: usize) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let heard_ns = monotonic();
        let (unread, unsent) = (Unread::default(), VecDeque::new());
        let (seal, sealed) = (None, Vec::new());
        let (is_blocked, patience_s, reads) = (false, SILENCE_S, PhantomData);
        Ok(Self { stream, seal, sealed, unread, unsent, is_blocked, line_limit, heard_ns, patience_s, reads })
    }

    /// Seals all bytes from now on, in both directions.
    pub(crate) fn start_sealing(&mut self, seal: Seal) {
        self.seal = Some(seal);
        // The bytes behind the last line are sealed already.
        let sealed = std::mem::take(&mut self.unread);
        self.sealed.extend_from_slice(sealed.bytes());
    }

    /// Whether the connection is sealed.
    pub(crate) const fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns the socket, and the bytes that were read from the socket behind the last line.
    pub(crate) fn into_stream(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.unread.bytes().to_vec())
    }

    /// Sets the longest line that is read from now on, bytes.
    pub(crate) fn set_line_limit(&mut self, limit: usize) {
        self.line_limit = limit;
    }

    /// Sets how long the peer may be silent from now on.
    pub(crate) fn set_patience(&mut self, seconds: u64) {
        self.patience_s = seconds;
    }

    /// Returns the time since the peer's last sign of life, ns.
    pub(crate) fn silence_ns(&self) -> i64 {
        monotonic() - self.heard_ns
    }

    /// Checks that the peer has given a sign of life in time: within [`SILENCE_S`], or within [`OUTAGE_S`]
    /// during a run ([`Control::set_patience`]).
    ///
    /// # Errors
    /// Returns [`ControlError::Unread`] if bytes wait for a silent peer, and [`ControlError::Silent`] if none
    /// wait.
    pub(crate) fn check_alive(&self) -> Result<(), ControlError> {
        match (self.silence_ns() > self.patience_s as i64 * 1_000_000_000, self.is_blocked) {
            (false, _) => Ok(()),
            (true, false) => Err(ControlError::Silent(self.patience_s)),
            (true, true) => Err(ControlError::Unread(self.patience_s)),
        }
    }

    /// Queues `message`, and writes as much of the queue as the socket takes.
    ///
    /// # Errors
    /// Returns [`ControlError::Io`] or [`ControlError::Closed`] if the socket fails.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> Result<(), ControlError> {
        if let Some(seal) = &mut self.seal {
            let mut line = serde_json::to_vec(message).map_err(io::Error::from)?;
            line.push(b'\n');
            seal.seal(&line, &mut self.unsent).map_err(io::Error::other)?;
        } else {
            serde_json::to_writer(&mut self.unsent, message).map_err(io::Error::from)?;
            self.unsent.push_back(b'\n');
        }
        self.flush()
    }

    /// Returns the number of queued bytes that the socket has not taken yet.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// Reads the next message. Returns `None` if no whole line has come. Never blocks, and reads at most
    /// [`READ_AT_ONCE`] bytes even if the peer sends faster. While more than [`UNSENT_LIMIT`] bytes wait for
    /// the peer to read, returns `None` and reads nothing.
    ///
    /// # Errors
    /// Returns [`ControlError`] if the connection has ended, or if a line is not a message of this protocol.
    pub(crate) fn receive(&mut self) -> Result<Option<In>, ControlError> {
        self.flush()?;
        if self.is_held_back() {
            return Ok(None);
        }
        if let Some(message) = self.parse()? {
            return Ok(Some(message));
        }
        let mut buffer = [0; 16 * 1024];
        let mut read_bytes = 0;
        while read_bytes < READ_AT_ONCE {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ControlError::Closed),
                Ok(count) => {
                    read_bytes += count;
                    self.heard_ns = monotonic();
                    self.take(&buffer[..count])?;
                    if let Some(message) = self.parse()? {
                        return Ok(Some(message));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(reset_is_closed(error)),
            }
        }
        // The socket stays readable (poll(2), epoll(7)), so the rest is read in a later call. Other
        // connections of the same thread are read before that.
        Ok(None)
    }

    /// Waits at most `ms` milliseconds until there is input, or room for queued bytes. Then reads the next
    /// message as [`Control::receive`] does.
    ///
    /// # Errors
    /// Returns the same errors as [`Control::receive`].
    pub(crate) fn receive_within(&mut self, ms: i64) -> Result<Option<In>, ControlError> {
        if let Some(message) = self.receive()? {
            return Ok(Some(message));
        }
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::IN, !self.is_held_back());
        interest.set(PollFlags::OUT, !self.unsent.is_empty());
        let timeout = rustix::time::Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 };
        match poll(&mut [PollFd::new(&self.stream, interest)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.receive(),
            Err(error) => Err(ControlError::Io(error.into())),
        }
    }

    /// Waits up to `seconds` for the next message.
    ///
    /// # Errors
    /// Returns [`ControlError::Silent`] if no whole message came in time, and the same errors as
    /// [`Control::receive`].
    pub(crate) fn expect(&mut self, seconds: u64) -> Result<In, ControlError> {
        let deadline = monotonic() + seconds as i64 * 1_000_000_000;
        while monotonic() < deadline {
            if let Some(message) = self.receive_within(100)? {
                return Ok(message);
            }
        }
        Err(ControlError::Silent(seconds))
    }

    /// Adds `bytes` to the unread bytes. If the connection is sealed, opens the seal first.
    fn take(&mut self, bytes: &[u8]) -> Result<(), ControlError> {
        let Some(seal) = &mut self.seal else {
            self.unread.append(bytes);
            return Ok(());
        };
        self.sealed.extend_from_slice(bytes);
        let unread = &mut self.unread;
        let opened = seal.open(&self.sealed, |piece| unread.append(piece));
        let count = opened.map_err(|_| ControlError::Unsealed)?;
        self.sealed.drain(..count);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ControlError> {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent.as_slices().0) {
                Ok(count) => {
                    // The socket has room again, so the peer has read. That is a sign of life.
                    if std::mem::take(&mut self.is_blocked) {
                        self.heard_ns = monotonic();
                    }
                    self.unsent.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(reset_is_closed(error)),
            }
        }
        Ok(())
    }

    /// Whether the peer has to read some of the waiting bytes before it is read from again.
    fn is_held_back(&self) -> bool {
        self.unsent.len() > UNSENT_LIMIT
    }

    fn parse(&mut self) -> Result<Option<In>, ControlError> {
        let Some(end) = self.unread.line_end() else {
            // A line is an object, or a bare word in quotes (`"end"`). Anything else is refused at its first
            // byte, and not only when it is too long. The line feed may come later than the rest, because TCP
            // does not keep messages together.
            let bytes = self.unread.bytes();
            let is_garbage = bytes.len() > self.line_limit
                || bytes.first().is_some_and(|first| !matches!(first, b'{' | b'"'));
            return if is_garbage { Err(garbage(bytes)) } else { Ok(None) };
        };
        let bytes = self.unread.bytes();
        if end > self.line_limit {
            return Err(garbage(bytes));
        }
        let message = serde_json::from_slice(&bytes[..end]).map_err(|_| garbage(&bytes[..end]))?;
        self.unread.consume(end + 1);
        Ok(Some(message))
    }
}

/// Bytes that came and were not parsed yet. However the input is cut into pieces, each byte is moved at most
/// once, and searched once for a line feed.
#[derive(Default)]
struct Unread {
    bytes: Vec<u8>,
    /// The bytes before this index are parsed.
    begin: usize,
    /// The bytes from `begin` to this index hold no line feed.
    searched: usize,
}

impl Unread {
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    fn append(&mut self, bytes: &[u8]) {
        // This moves only the bytes that came in one read with the end of a parsed line.
        self.bytes.drain(..self.begin);
        self.searched = self.searched.saturating_sub(self.begin);
        self.begin = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the length of the first line, or `None` if no whole line has come.
    fn line_end(&mut self) -> Option<usize> {
        let from = self.searched.max(self.begin);
        match self.bytes[from..].iter().position(|&byte| byte == b'\n') {
            Some(at) => {
                self.searched = from + at;
                Some(from + at - self.begin)
            }
            None => {
                self.searched = self.bytes.len();
                None
            }
        }
    }

    fn consume(&mut self, count: usize) {
        self.begin += count;
    }
}

/// Makes a hello whose filling has [`HELLO_SIZE`] bytes.
pub(crate) fn hello(version: u32, opening: &str) -> Request {
    Request::Hello { version, opening: opening.to_owned(), filling: ".".repeat(HELLO_SIZE) }
}

fn reset_is_closed(error: io::Error) -> ControlError {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ControlError::Closed,
        _ => ControlError::Io(error),
    }
}

/// Makes the error for bytes that are no message, with their beginning in printable characters.
fn garbage(bytes: &[u8]) -> ControlError {
    let shown = &bytes[..bytes.len().min(40)];
    ControlError::Garbage(words(&String::from_utf8_lossy(shown)))
}

/// Makes another host's words printable, and cuts them to [`MAX_SHOWN`] characters.
pub(crate) fn words(text: &str) -> String {
    printable(text, MAX_SHOWN)
}

/// The largest number of characters that are shown of another host's words (chosen: a few lines of a
/// terminal).
const MAX_SHOWN: usize = 500;
/// The version of this protocol. Both sides must speak the same version.
pub(crate) const VERSION: u32 = 13;
/// The length of the hello's filling, bytes. So a hello is longer than the longest answer to it.
pub(crate) const HELLO_SIZE: usize = 512;
/// The longest line that a stranger may send, bytes.
pub(crate) const OPENING_LIMIT: usize = 2 * 1024;
/// The longest line that a client may send, bytes. It is the description of a session with many flows.
pub(crate) const REQUEST_LIMIT: usize = 256 * 1024;
/// The longest line that a server may send in a session of few flows, bytes. It is a chunk of rows. In a
/// session of many flows, an answer with an entry for each flow is longer (`FLOW_ANSWER_BYTES` in
/// client/control.rs).
pub(crate) const ANSWER_LIMIT: usize = 1024 * 1024;
/// If more bytes than this wait for a client, nothing is read from the client until it has read some of them.
/// One more answer may then be queued, for example a chunk of rows of half a megabyte (chosen: two such
/// answers, 1 MiB together). An answer about thousands of flows may be longer.
pub(crate) const UNSENT_LIMIT: usize = 512 * 1024;
/// The largest number of bytes that one call reads from a peer. A peer that sends without end and without a
/// line feed then does not hold the thread (chosen: two lines of the longest kind from a client).
const READ_AT_ONCE: usize = 512 * 1024;
/// Each side takes the other side for dead after this many seconds of silence. On a path with heavy loss the
/// control connection itself needs that long for a few retransmissions (chosen; see docs/models/live.md).
pub(crate) const SILENCE_S: u64 = 10;
/// The same limit while a run is measured, because an outage of the path is a result of the run. After an
/// outage of 15 s TCP sends again after 25 s (RFC 6298 §5.5: its timeout doubles from 200 ms). After an
/// outage of 30 s it sends again after 51 s.
pub(crate) const OUTAGE_S: u64 = 60;

/// The slowest rate at which a client fetches a report, rows a second. A row takes some 40 B, so this is 64
/// kbps (chosen: slower lines carry no call that could be measured).
pub(crate) const ROWS_PER_S: u64 = 200;
