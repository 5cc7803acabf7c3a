//! The control protocol: one JSON object a line over TCP, requests from the client, answers from the server.
//!
//! ```text
//!  client                                        server
//!  hello {version, nonce, filling}      ─►               (says nothing before; the hello is as long as any answer to it)
//!                                       ◄─  challenge {nonce}        only with a key
//!  proof {hmac}                         ─►
//!                                       ◄─  welcome {proof, limits}
//!  session {flows, duration, ...}       ─►
//!                                       ◄─  ready {a secret and a token for each flow}
//!  probe                                ─►  ◄─  probe {received, sent}     several times, for the clocks
//!       UDP flows register from their own addresses (wire.rs)
//!  go {when, on the server's clock}     ─►  ◄─  going
//!       TCP flows connect to the same port and open with `data {secret}`; messages follow at once
//!  ask                                  ─►  ◄─  progress                   while the run lasts: also the keep-alive
//!  stop                                 ─►  ◄─  stopped
//!  report {flow}                        ─►  ◄─  rows, rows, ..., end       for each flow
//!  bye                                  ─►
//! ```
//!
//! An answer that cannot be given is `refused {why}`. Lines are limited at both ends; what is longer, or no such object,
//! ends the connection.

use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::net::TcpStream;

use rustix::event::{PollFd, PollFlags, poll};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock::monotonic;
use crate::log::Chunk;
use crate::spec::SessionSpec;

/// What the client says; `hello` and `data` open a connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Opens a control connection.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// 16 random bytes in hexadecimal.
        nonce: String,
        /// Makes the line at least [`HELLO_SIZE`] long.
        filling: String,
    },
    /// Opens a TCP flow's data connection.
    Data {
        /// The flow's secret, in hexadecimal.
        secret: String,
    },
    /// Answers a challenge.
    Proof {
        /// HMAC, in hexadecimal.
        proof: String,
    },
    /// Describes the run.
    Session(SessionSpec),
    /// Asks for the server's clock.
    Probe {
        /// Comes back.
        number: u32,
    },
    /// The run begins.
    Go {
        /// When, on the server's clock, ns since 1970.
        start_ns: i64,
    },
    /// Asks how far the flows are; also says that the client lives.
    Ask,
    /// The run is over.
    Stop,
    /// Asks for a flow's log.
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
    /// A key is needed.
    Challenge {
        /// 16 random bytes in hexadecimal.
        nonce: String,
    },
    /// The client is in.
    Welcome {
        /// The server's own proof, where there is a key.
        proof: Option<String>,
    },
    /// No.
    Refused {
        /// In words for a person.
        why: String,
    },
    /// Not now: every session is taken.
    Busy {
        /// In words for a person.
        why: String,
    },
    /// The session stands.
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
    /// The run begins.
    Going {
        /// When, on the server's clock; later than asked where that was past.
        start_ns: i64,
    },
    /// How far the flows are, in the session's order.
    Progress {
        /// One a flow.
        flows: Vec<Progress>,
        /// What ended the run at the server, if something did.
        trouble: Option<String>,
    },
    /// The run is over here too.
    Stopped {
        /// How late the server's pacer was: p50, p99, maximum, ns; absent where it paced nothing.
        lateness_ns: Option<[u64; 3]>,
        /// Datagrams that a receiving socket's buffer had no room for.
        socket_drops: u64,
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
}

/// How far one end of a flow is. Datagram flows count messages, stream flows bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Nothing more will be sent unless something arrives.
    pub(crate) is_done: bool,
    /// Taken by the transport.
    pub(crate) sent: u64,
    /// Arrived, duplicates left out.
    pub(crate) received: u64,
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
    unread: Vec<u8>,
    unsent: Vec<u8>,
    line_limit: usize,
    /// CLOCK_MONOTONIC of the last byte that came.
    heard_ns: i64,
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
        Ok(Self { stream, unread: Vec::new(), unsent: Vec::new(), line_limit, heard_ns, reads: PhantomData })
    }

    /// The socket below.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Gives up the socket, and what was read of it beyond the last line.
    pub(crate) fn into_stream(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.unread)
    }

    /// From now on lines may be this long.
    pub(crate) fn set_line_limit(&mut self, limit: usize) {
        self.line_limit = limit;
    }

    /// ns since a byte came.
    pub(crate) fn silence_ns(&self) -> i64 {
        monotonic() - self.heard_ns
    }

    /// Queues `message` and writes what the socket takes.
    ///
    /// # Errors
    /// [`ControlError::Io`] or [`ControlError::Closed`].
    pub(crate) fn send(&mut self, message: &impl Serialize) -> Result<(), ControlError> {
        serde_json::to_writer(&mut self.unsent, message).map_err(io::Error::from)?;
        self.unsent.push(b'\n');
        self.flush()
    }

    /// Bytes that the socket has not taken yet.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// The next whole line, if it has come; never blocks.
    ///
    /// # Errors
    /// [`ControlError`].
    pub(crate) fn receive(&mut self) -> Result<Option<In>, ControlError> {
        self.flush()?;
        if let Some(message) = self.parse()? {
            return Ok(Some(message));
        }
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ControlError::Closed),
                Ok(count) => {
                    self.heard_ns = monotonic();
                    self.unread.extend_from_slice(&buffer[..count]);
                    if let Some(message) = self.parse()? {
                        return Ok(Some(message));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(reset_is_closed(error)),
            }
        }
    }

    /// Waits at most `ms` for something to read (or for room to write what is queued), then as [`Control::receive`].
    ///
    /// # Errors
    /// [`ControlError`].
    pub(crate) fn receive_within(&mut self, ms: i64) -> Result<Option<In>, ControlError> {
        if let Some(message) = self.receive()? {
            return Ok(Some(message));
        }
        let mut interest = PollFlags::IN;
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
    /// [`ControlError`], with [`ControlError::Silent`] where nothing whole came in time.
    pub(crate) fn expect(&mut self, seconds: u64) -> Result<In, ControlError> {
        let deadline = monotonic() + seconds as i64 * 1_000_000_000;
        while monotonic() < deadline {
            if let Some(message) = self.receive_within(100)? {
                return Ok(message);
            }
        }
        Err(ControlError::Silent(seconds))
    }

    fn flush(&mut self) -> Result<(), ControlError> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(reset_is_closed(error)),
            }
        }
        Ok(())
    }

    fn parse(&mut self) -> Result<Option<In>, ControlError> {
        let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') else {
            // A line is an object, or a bare word in quotes (`"end"`): anything else is told at once, not when it is
            // long enough. The line feed may come later than the rest: TCP keeps no message together.
            let is_garbage = self.unread.len() > self.line_limit
                || self.unread.first().is_some_and(|first| !matches!(first, b'{' | b'"'));
            return if is_garbage { Err(garbage(&self.unread)) } else { Ok(None) };
        };
        if end > self.line_limit {
            return Err(garbage(&self.unread));
        }
        let message =
            serde_json::from_slice(&self.unread[..end]).map_err(|_| garbage(&self.unread[..end]))?;
        self.unread.drain(..=end);
        Ok(Some(message))
    }
}

/// The hello, filled up to [`HELLO_SIZE`].
pub(crate) fn hello(version: u32, nonce: &str) -> Request {
    Request::Hello { version, nonce: nonce.to_owned(), filling: ".".repeat(HELLO_SIZE) }
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
    ControlError::Garbage(String::from_utf8_lossy(shown).chars().filter(|c| !c.is_control()).collect())
}

/// Version of this protocol; both ends must speak the same.
pub(crate) const VERSION: u32 = 4;
/// The hello's filling, and so more than the longest answer to a hello.
pub(crate) const HELLO_SIZE: usize = 512;
/// The longest line that a stranger may send.
pub(crate) const OPENING_LIMIT: usize = 2 * 1024;
/// The longest line that a client may send: a session of many flows.
pub(crate) const REQUEST_LIMIT: usize = 256 * 1024;
/// The longest line that a server may send: a chunk of rows.
pub(crate) const ANSWER_LIMIT: usize = 1024 * 1024;
/// Either end takes the other for dead after so many seconds without a word; on a path with heavy loss the control
/// connection itself needs that long for a few retransmissions (chosen; see docs/live.md).
pub(crate) const SILENCE_S: u64 = 10;

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
                let (mut far, mut near) = pair();
                far.write_all(&line[..cut]).unwrap();
                while near.unread.len() < cut {
                    assert!(near.receive().unwrap().is_none(), "{cut} bytes are no line");
                }
                far.write_all(&line[cut..]).unwrap();
                let read = near.expect(SILENCE_S).unwrap();
                assert_eq!(serde_json::to_vec(&read).unwrap(), line[..line.len() - 1]);
            }
        }
    }

    #[test]
    fn another_protocol_is_told_by_its_first_byte() {
        let (mut far, mut near) = pair();
        far.write_all(b"SSH-2.0").unwrap();
        let error = near.expect(SILENCE_S).unwrap_err();
        assert!(matches!(error, ControlError::Garbage(what) if what.starts_with('S')));
    }

    fn pair() -> (TcpStream, Control<Answer>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (far, Control::new(listener.accept().unwrap().0, ANSWER_LIMIT).unwrap())
    }
}
