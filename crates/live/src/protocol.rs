//! The control protocol: one JSON object a line over TCP, requests from the client, answers from the server.
//!
//! ```text
//!  client                                        server
//!  hello {version, opening, filling}    ─►               (silent before; the hello is as long as any answer)
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
//! An answer that cannot be given is `refused {why}`. Lines are limited at both ends; what is longer, or no
//! such object, ends the connection. What waits for a peer that does not read is limited too: beyond
//! [`UNSENT_LIMIT`] nothing is read from this peer, and TCP's window closes.

mod registrations;

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

/// What the client says; `hello` and `data` open a connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Opens a control connection.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// The first word of the handshake (seal.rs) in hexadecimal; empty without a key. A server of a
        /// version up to 7 finds a nonce here, and so can say which version it speaks.
        #[serde(rename = "nonce")]
        opening: String,
        /// Makes the line at least [`HELLO_SIZE`] long.
        filling: String,
    },
    /// Opens a TCP flow's data connection.
    Data {
        /// The flow's secret, in hexadecimal.
        secret: String,
    },
    /// Describes the run.
    Session(SessionSpec),
    /// Requests a reading of the server's clock.
    Probe {
        /// Comes back.
        number: u32,
    },
    /// Asks from which addresses flows over UDP registered.
    Registrations,
    /// The run begins.
    Go {
        /// When, on the server's clock, ns since 1970.
        start_ns: i64,
    },
    /// Asks how far the flows are; also says that the client lives.
    Ask,
    /// The run is over.
    Stop,
    /// Requests a flow's log.
    Report {
        /// Index in the session.
        flow: u32,
    },
    /// The client leaves.
    Bye,
}

/// What the server says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The client is in.
    Welcome {
        /// The server's word of the handshake (seal.rs), if there is a key.
        answer: Option<String>,
    },
    /// No.
    Refused {
        /// In words for a person.
        why: String,
        /// The flow of the session that the refusal is about, if it is about a single flow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<u32>,
    },
    /// Not now: every session is taken.
    Busy {
        /// In words for a person.
        why: String,
    },
    /// The session is ready.
    Ready {
        /// One a flow.
        flows: Vec<Admission>,
        /// What bends the run on the server's side.
        warnings: Vec<String>,
    },
    /// The server's clock.
    Probe {
        /// Of the request.
        number: u32,
        /// When the request was read, ns since 1970 on the server's clock.
        received_ns: i64,
        /// When this was written.
        sent_ns: i64,
    },
    /// What came of the registrations of flows over UDP.
    Registrations(Registrations),
    /// The run begins.
    Going {
        /// When, on the server's clock; later than requested if that was past.
        start_ns: i64,
    },
    /// How far the flows are, in the session's order. With its two stamps it is a probe of the server's
    /// clock, too.
    Progress {
        /// One a flow.
        flows: Vec<EndProgress>,
        /// When the question was read, ns since 1970 on the server's clock.
        received_ns: i64,
        /// When this was written.
        sent_ns: i64,
        /// What ended the run at the server, if something did.
        trouble: Option<String>,
    },
    /// The run is over here too.
    Stopped {
        /// How late the server's pacer was: p50, p99, maximum, ns; absent if it paced nothing.
        lateness_ns: Option<[u64; 3]>,
        /// Datagrams that the receiving sockets dropped, and what may be known of the causes.
        drops: UdpDrops,
        /// Of the whole session.
        registrations: Registrations,
    },
    /// Part of a flow's log.
    Rows(Box<Chunk>),
    /// The flow's log is complete.
    End,
}

/// How a flow is joined.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Admission {
    /// 16 random bytes in hexadecimal.
    pub(crate) secret: String,
    /// What datagrams carry.
    pub(crate) token: u32,
    /// With what they are tagged, 32 random bytes in hexadecimal; absent without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tag_key: Option<String>,
    /// SHA-256 of the certificate that the server shows on the flow's QUIC connection, in hexadecimal, the
    /// same for all flows of one connection; absent for other transports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) certificate: Option<String>,
}

impl Admission {
    /// With what the client's end of a QUIC flow begins; `None` inside of another transport. `None` if a QUIC
    /// flow has no certificate.
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

    /// With what the flow's datagrams are tagged, if they are. `None` if a session that `is_sealed` has no
    /// key for them, or another one has.
    pub(crate) fn tag_key(&self, is_sealed: bool) -> Option<Option<TagKey>> {
        match (&self.tag_key, is_sealed) {
            (Some(key), true) => from_hex::<32>(key).map(|key| Some(TagKey(key))),
            (None, false) => Some(None),
            _ => None,
        }
    }
}

/// Why a control connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// The other side closed it.
    #[error("closed the connection")]
    Closed,
    /// Nothing came in time.
    #[error("said nothing for {0} s")]
    Silent(u64),
    /// Answers wait, and the client took none in time.
    #[error("read no answers for {0} s")]
    Unread(u64),
    /// The session took longer than the server allows.
    #[error("took too long: {0}")]
    Overtime(String),
    /// Nothing of the client's: this host cannot serve it further.
    #[error("was let go: {0}")]
    Own(String),
    /// What came does not bear the other end's seal.
    #[error("sent what is not sealed with the key: somebody changed it on the way")]
    Unsealed,
    /// What came is not this protocol.
    #[error("sent what is not talkpath's protocol: {0:?}")]
    Garbage(String),
    /// The system's error.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
}

/// One end of a control connection that reads `In`.
pub(crate) struct Control<In> {
    stream: TcpStream,
    /// What those who hold a key seal with.
    seal: Option<Seal>,
    /// What came sealed and is not a whole piece yet.
    sealed: Vec<u8>,
    unread: Unread,
    unsent: VecDeque<u8>,
    /// The socket has no room for what is unsent.
    is_blocked: bool,
    line_limit: usize,
    /// CLOCK_MONOTONIC of the last sign of life: a byte came, or the peer made room for answers that waited.
    heard_ns: i64,
    /// How long the peer may give no sign of life, seconds.
    patience_s: u64,
    reads: PhantomData<In>,
}

impl<In: DeserializeOwned> Control<In> {
    /// Takes over `stream`; lines longer than `line_limit` bytes are garbage.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn new(stream: TcpStream, line_limit: usize) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let heard_ns = monotonic();
        let (unread, unsent) = (Unread::default(), VecDeque::new());
        let (seal, sealed) = (None, Vec::new());
        let (is_blocked, patience_s, reads) = (false, SILENCE_S, PhantomData);
        Ok(Self { stream, seal, sealed, unread, unsent, is_blocked, line_limit, heard_ns, patience_s, reads })
    }

    /// From now on all is sealed, both ways.
    pub(crate) fn start_sealing(&mut self, seal: Seal) {
        self.seal = Some(seal);
        let came = std::mem::take(&mut self.unread);
        self.sealed.extend_from_slice(came.bytes());
    }

    /// Whether all is sealed.
    pub(crate) const fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// The socket below.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Gives up the socket, and the bytes that were read from it beyond the last line.
    pub(crate) fn into_stream(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.unread.bytes().to_vec())
    }

    /// From now on lines may be this long.
    pub(crate) fn set_line_limit(&mut self, limit: usize) {
        self.line_limit = limit;
    }

    /// From now on the peer may be silent for this long.
    pub(crate) fn set_patience(&mut self, seconds: u64) {
        self.patience_s = seconds;
    }

    /// ns since the peer's last sign of life.
    pub(crate) fn silence_ns(&self) -> i64 {
        monotonic() - self.heard_ns
    }

    /// Whether the peer gave a sign of life within [`SILENCE_S`], or [`OUTAGE_S`] of a run.
    ///
    /// # Errors
    /// [`ControlError::Silent`], or [`ControlError::Unread`] if answers wait for it.
    pub(crate) fn check_alive(&self) -> Result<(), ControlError> {
        match (self.silence_ns() > self.patience_s as i64 * 1_000_000_000, self.is_blocked) {
            (false, _) => Ok(()),
            (true, false) => Err(ControlError::Silent(self.patience_s)),
            (true, true) => Err(ControlError::Unread(self.patience_s)),
        }
    }

    /// Queues `message` and writes what the socket takes.
    ///
    /// # Errors
    /// [`ControlError::Io`] or [`ControlError::Closed`].
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

    /// Bytes that the socket has not taken yet.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// The next whole line, if it has come; never blocks, and reads at most [`READ_AT_ONCE`] however fast
    /// more comes. Nothing is read, and no line given, while more than [`UNSENT_LIMIT`] waits for the peer
    /// to read.
    ///
    /// # Errors
    /// [`ControlError`].
    pub(crate) fn receive(&mut self) -> Result<Option<In>, ControlError> {
        self.flush()?;
        if self.is_held_back() {
            return Ok(None);
        }
        if let Some(message) = self.parse()? {
            return Ok(Some(message));
        }
        let mut buffer = [0; 16 * 1024];
        let mut came = 0;
        while came < READ_AT_ONCE {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ControlError::Closed),
                Ok(count) => {
                    came += count;
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
        // The socket still tells that it has more (poll(2), epoll(7)); others have their turn before.
        Ok(None)
    }

    /// Waits at most `ms` for something to read (or for room to write what is queued), then as
    /// [`Control::receive`].
    ///
    /// # Errors
    /// [`ControlError`].
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

    /// The next line, waiting up to `seconds` for it.
    ///
    /// # Errors
    /// [`ControlError`], with [`ControlError::Silent`] if nothing whole came in time.
    pub(crate) fn expect(&mut self, seconds: u64) -> Result<In, ControlError> {
        let deadline = monotonic() + seconds as i64 * 1_000_000_000;
        while monotonic() < deadline {
            if let Some(message) = self.receive_within(100)? {
                return Ok(message);
            }
        }
        Err(ControlError::Silent(seconds))
    }

    /// Takes in what came, out of its seal if there is one.
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
                    // What the socket had no room for goes when the peer has read.
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

    /// Whether the peer has to read before it is read from.
    fn is_held_back(&self) -> bool {
        self.unsent.len() > UNSENT_LIMIT
    }

    fn parse(&mut self) -> Result<Option<In>, ControlError> {
        let Some(end) = self.unread.line_end() else {
            // A line is an object, or a bare word in quotes (`"end"`): anything else is refused at once, not
            // only when it is too long. The line feed may come later than the rest: TCP keeps no message
            // together.
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

/// Bytes that came and were not parsed. However the lines are cut, each byte is moved at most once and
/// searched once for a line feed.
#[derive(Default)]
struct Unread {
    bytes: Vec<u8>,
    /// Bytes before this are parsed.
    begin: usize,
    /// Bytes before this hold no line feed but parsed ones.
    searched: usize,
}

impl Unread {
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    fn append(&mut self, more: &[u8]) {
        // Only what came behind a parsed line, in one read with its end, is moved.
        self.bytes.drain(..self.begin);
        self.searched = self.searched.saturating_sub(self.begin);
        self.begin = 0;
        self.bytes.extend_from_slice(more);
    }

    /// How long the first line is, if it is whole.
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

/// The hello, filled up to [`HELLO_SIZE`].
pub(crate) fn hello(version: u32, opening: &str) -> Request {
    Request::Hello { version, opening: opening.to_owned(), filling: ".".repeat(HELLO_SIZE) }
}

fn reset_is_closed(error: io::Error) -> ControlError {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ControlError::Closed,
        _ => ControlError::Io(error),
    }
}

/// The beginning of what came, printable.
fn garbage(bytes: &[u8]) -> ControlError {
    let shown = &bytes[..bytes.len().min(40)];
    ControlError::Garbage(words(&String::from_utf8_lossy(shown)))
}

/// Another host's words, fit for a terminal.
pub(crate) fn words(text: &str) -> String {
    printable(text, MAX_SHOWN)
}

/// The longest that is shown of another host's words (chosen: a few lines of a terminal).
const MAX_SHOWN: usize = 500;
/// Version of this protocol; both ends must speak the same.
pub(crate) const VERSION: u32 = 13;
/// The hello's filling, and so more than the longest answer to a hello.
pub(crate) const HELLO_SIZE: usize = 512;
/// The longest line that a stranger may send.
pub(crate) const OPENING_LIMIT: usize = 2 * 1024;
/// The longest line that a client may send: a session of many flows.
pub(crate) const REQUEST_LIMIT: usize = 256 * 1024;
/// The longest line that a server may send of a session of few flows: a chunk of rows. Of many, an answer
/// that has something of each flow is longer (`FLOW_ANSWER_BYTES` in client/control.rs).
pub(crate) const ANSWER_LIMIT: usize = 1024 * 1024;
/// Above this, nothing is read from a client until it has read its answers. One answer may come on top: a
/// chunk of rows of half a megabyte, 1 MiB in all (chosen: two such answers), or more of thousands of flows.
pub(crate) const UNSENT_LIMIT: usize = 512 * 1024;
/// What is read of a peer in one go at most, so that one that sends without end and without a line holds no
/// thread (chosen: two lines of the longest kind from a client).
const READ_AT_ONCE: usize = 512 * 1024;
/// Either end takes the other for dead after this many seconds of silence; on a path with heavy loss the
/// control connection itself needs that long for a few retransmissions (chosen; see docs/models/live.md).
pub(crate) const SILENCE_S: u64 = 10;
/// The same while a run is measured. An outage of the path is a result of the run. After one of 15 s TCP
/// sends again after 25 s (RFC 6298 §5.5: its timeout doubles from 200 ms), and after one of 30 s after 51 s.
pub(crate) const OUTAGE_S: u64 = 60;

/// The slowest that a report comes: a row takes some 40 B, so this is 64 kbps (chosen: slower lines carry no
/// call that could be measured).
pub(crate) const ROWS_PER_S: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_line_that_comes_in_two_pieces_is_read_wherever_it_is_cut() {
        let probe = Answer::Probe { number: 7, received_ns: 1, sent_ns: 2 };
        for answer in [Answer::End, probe] {
            let mut line = serde_json::to_vec(&answer).unwrap();
            line.push(b'\n');
            for cut in 1..line.len() {
                let (mut far, mut near) = pair::<Answer>();
                far.write_all(&line[..cut]).unwrap();
                while near.unread.bytes().len() < cut {
                    assert!(near.receive().unwrap().is_none(), "{cut} bytes are no line");
                }
                far.write_all(&line[cut..]).unwrap();
                let read = near.expect(SILENCE_S).unwrap();
                assert_eq!(serde_json::to_vec(&read).unwrap(), line[..line.len() - 1]);
            }
        }
    }

    #[test]
    fn who_sends_without_end_holds_no_thread() {
        let (mut far, mut near) = pair::<Request>();
        near.set_line_limit(usize::MAX);
        let sender = std::thread::spawn(move || {
            far.write_all(&vec![b'{'; 8 << 20]).unwrap();
            far
        });
        let mut came = 0;
        while came < 8 << 20 {
            assert!(near.receive().unwrap().is_none());
            let all = near.unread.bytes().len();
            assert!(all - came < READ_AT_ONCE + (16 << 10), "{} B at once", all - came);
            came = all;
        }
        drop(sender.join().unwrap());
    }

    #[test]
    fn what_is_shown_of_another_host_moves_no_cursor() {
        assert_eq!(words("a\u{1b}[2J\r\nb\u{9b}c"), r"a\u{1b}[2J\r\nb\u{9b}c");
        assert_eq!(words(&"x".repeat(1000)).len(), MAX_SHOWN);
    }

    #[test]
    fn another_protocol_is_told_by_its_first_byte() {
        let (mut far, mut near) = pair::<Answer>();
        far.write_all(b"SSH-2.0").unwrap();
        let error = near.expect(SILENCE_S).unwrap_err();
        assert!(matches!(error, ControlError::Garbage(what) if what.starts_with('S')));
    }

    #[test]
    fn who_reads_no_answers_is_read_no_further_and_goes_on_when_it_reads() {
        let (mut far, mut near) = pair::<Request>();
        far.set_nonblocking(true).unwrap();
        for socket in [socket2::SockRef::from(&far), socket2::SockRef::from(near.stream())] {
            socket.set_recv_buffer_size(128 * 1024).unwrap();
            socket.set_send_buffer_size(128 * 1024).unwrap();
        }
        let flows = vec![EndProgress { is_done: false, sent: 1 << 40, received: 1 << 40 }; 64];
        let answer = Answer::Progress { flows, received_ns: i64::MIN, sent_ns: i64::MIN, trouble: None };
        // Blanks, so that the kernel's buffers hold fewer of them.
        let question = format!("\"ask\"{}\n", " ".repeat(94));
        let questions = question.repeat(1000).into_bytes();
        let (mut asked, mut answered, mut max_kept) = (0, 0, 0);
        let mut turn = |far: &mut TcpStream, near: &mut Control<Request>| {
            let asked_before = asked;
            while let Ok(count) = far.write(&questions[asked % questions.len()..]) {
                asked += count;
                if asked - asked_before > 100_000 {
                    break;
                }
            }
            let mut is_stuck = asked == asked_before;
            while near.receive().unwrap().is_some() {
                is_stuck = false;
                near.send(&answer).unwrap();
                answered += 1;
                max_kept = max_kept.max(near.unsent() + near.unread.bytes.len());
                assert!(max_kept <= 1 << 20, "{max_kept} B kept after {answered} answers");
            }
            (is_stuck, asked / question.len(), answered)
        };
        while !turn(&mut far, &mut near).0 {}
        assert!(near.is_held_back());
        let (_, asked, answered) = turn(&mut far, &mut near);
        assert!(answered < asked, "{asked} questions wait, {answered} were answered");
        near.heard_ns -= 1_000_000_000 * (SILENCE_S as i64 + 1);
        assert!(matches!(near.check_alive(), Err(ControlError::Unread(SILENCE_S))));
        // It reads again: all is answered, and more.
        let (mut read, mut buffer) = (0, vec![0; 1 << 20]);
        while read < asked + 100 {
            while let Ok(count @ 1..) = far.read(&mut buffer) {
                read += buffer[..count].iter().filter(|&&byte| byte == b'\n').count();
            }
            turn(&mut far, &mut near);
        }
        assert!(near.check_alive().is_ok());
    }

    #[test]
    fn lines_are_read_one_by_one_from_what_came_at_once() {
        let (mut far, mut near) = pair::<Request>();
        far.write_all(b"\"ask\"\n{\"probe\":{\"number\":7}}\n\"stop\"\n\"b").unwrap();
        assert!(matches!(near.expect(SILENCE_S), Ok(Request::Ask)));
        assert!(matches!(near.expect(SILENCE_S), Ok(Request::Probe { number: 7 })));
        assert!(matches!(near.expect(SILENCE_S), Ok(Request::Stop)));
        assert!(near.receive().unwrap().is_none());
        assert_eq!(near.unread.bytes(), b"\"b");
        far.write_all(b"ye\"\n").unwrap();
        assert!(matches!(near.expect(SILENCE_S), Ok(Request::Bye)));
    }

    fn pair<In: DeserializeOwned>() -> (TcpStream, Control<In>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (far, Control::new(listener.accept().unwrap().0, ANSWER_LIMIT).unwrap())
    }
}
