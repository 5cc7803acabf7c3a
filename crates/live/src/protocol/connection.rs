//! One side of a control connection.
//!
//! - *message*: a value in JSON, on a line of its own.
//! - *seal*: the encryption of both directions, if both sides hold a key (`seal.rs`).
//! - *peer*: the other side of the connection.
//! - *sign of life*: bytes that arrive from the peer, or space in the socket because the peer has read.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::net::TcpStream;

use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;
use talkpath_kernel::clock::monotonic;

use super::line_buffer::LineBuffer;
use super::{SILENCE_S, UNSENT_LIMIT, words};
use crate::seal::Seal;

/// The largest number of bytes that one call reads from a peer. So a peer that sends without end and without
/// a line feed does not hold the thread. We chose 512 KiB, which is twice the longest line of a client.
const READ_AT_ONCE: usize = 512 * 1024;
/// The reason why a control connection ended. The subject of each text is the other side, for example "the
/// client closed the connection".
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// The peer closed the connection.
    #[error("closed the connection")]
    Closed,
    /// The peer sent nothing for this many seconds.
    #[error("said nothing for {0} s")]
    Silent(u64),
    /// The peer read none of the queued bytes for this many seconds.
    #[error("read no answers for {0} s")]
    Unread(u64),
    /// The session took longer than the server allows.
    #[error("took too long: {0}")]
    Overtime(String),
    /// This host lacks the resources to serve the client. The client did nothing wrong.
    #[error("was let go: {0}")]
    ThisHost(String),
    /// The bytes that came are not sealed by the peer.
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
    /// The seal of both directions. `None` if there is no key.
    seal: Option<Seal>,
    /// The received bytes whose seal cannot be opened before the rest of their piece has come.
    sealed_input: Vec<u8>,
    input: LineBuffer,
    /// The bytes that the socket has not taken yet.
    unsent: VecDeque<u8>,
    /// True if the socket has no room for the bytes in `unsent`.
    is_blocked: bool,
    /// The longest line that is read, bytes.
    line_limit: usize,
    /// CLOCK_MONOTONIC of the peer's last sign of life: a byte arrived, or the peer made room for bytes that
    /// waited.
    last_sign_ns: i64,
    /// The longest time without a sign of life, s.
    timeout_s: u64,
    messages: PhantomData<In>,
}

impl<In: DeserializeOwned> Control<In> {
    /// Takes over `stream`. Lines that are longer than `line_limit` bytes end the connection.
    ///
    /// # Errors
    /// Returns the system's error if the options of the socket cannot be set.
    pub(crate) fn new(stream: TcpStream, line_limit: usize) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            seal: None,
            sealed_input: Vec::new(),
            input: LineBuffer::default(),
            unsent: VecDeque::new(),
            is_blocked: false,
            line_limit,
            last_sign_ns: monotonic(),
            timeout_s: SILENCE_S,
            messages: PhantomData,
        })
    }

    /// Seals all bytes from now on, in both directions.
    pub(crate) fn start_sealing(&mut self, seal: Seal) {
        self.seal = Some(seal);
        // The peer has sealed all bytes that came after the last line.
        let input = std::mem::take(&mut self.input);
        self.sealed_input.extend_from_slice(input.bytes());
    }

    /// Returns true if the connection is sealed.
    pub(crate) const fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns the socket, and the bytes after the last line that were already read from the socket.
    pub(crate) fn into_stream(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.input.bytes().to_vec())
    }

    /// Returns the longest line that is read, bytes.
    pub(crate) const fn line_limit(&self) -> usize {
        self.line_limit
    }

    /// Sets the longest line that is read from now on, bytes.
    pub(crate) fn set_line_limit(&mut self, limit: usize) {
        self.line_limit = limit;
    }

    /// Returns the longest time without a sign of life, seconds.
    pub(crate) const fn timeout(&self) -> u64 {
        self.timeout_s
    }

    /// Sets the longest time without a sign of life from now on.
    pub(crate) fn set_timeout(&mut self, seconds: u64) {
        self.timeout_s = seconds;
    }

    /// Returns the time since the peer's last sign of life, ns.
    pub(crate) fn silence_ns(&self) -> i64 {
        monotonic() - self.last_sign_ns
    }

    /// Checks that the peer has given a sign of life in time: within [`SILENCE_S`], or within
    /// [`OUTAGE_S`](super::OUTAGE_S) during a run ([`Control::set_timeout`]).
    ///
    /// # Errors
    /// If the peer gave no sign of life in time, returns [`ControlError::Unread`] if queued bytes wait for
    /// the peer, and otherwise [`ControlError::Silent`].
    pub(crate) fn check_alive(&self) -> Result<(), ControlError> {
        if self.silence_ns() <= self.timeout_s as i64 * 1_000_000_000 {
            Ok(())
        } else if self.is_blocked {
            Err(ControlError::Unread(self.timeout_s))
        } else {
            Err(ControlError::Silent(self.timeout_s))
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
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    /// Reads the next message. Returns `None` if no whole line was received. Never blocks, and reads at most
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
                    self.last_sign_ns = monotonic();
                    self.add_input(&buffer[..count])?;
                    if let Some(message) = self.parse()? {
                        return Ok(Some(message));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(reset_is_closed(error)),
            }
        }
        // poll(2) and epoll(7) still report the socket as readable, so a later call reads the rest. Before
        // that call, the thread reads its other connections.
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
    pub(crate) fn wait_for_message(&mut self, seconds: u64) -> Result<In, ControlError> {
        let deadline = monotonic() + seconds as i64 * 1_000_000_000;
        while monotonic() < deadline {
            if let Some(message) = self.receive_within(100)? {
                return Ok(message);
            }
        }
        Err(ControlError::Silent(seconds))
    }

    /// Adds `bytes` to the input. If the connection is sealed, opens the seal first.
    fn add_input(&mut self, bytes: &[u8]) -> Result<(), ControlError> {
        let Some(seal) = &mut self.seal else {
            self.input.append(bytes);
            return Ok(());
        };
        self.sealed_input.extend_from_slice(bytes);
        let input = &mut self.input;
        let opened = seal.open(&self.sealed_input, |piece| input.append(piece));
        let count = opened.map_err(|_| ControlError::Unsealed)?;
        self.sealed_input.drain(..count);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ControlError> {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent.as_slices().0) {
                Ok(count) => {
                    // The socket has space again, so the peer has read. That is a sign of life.
                    if std::mem::take(&mut self.is_blocked) {
                        self.last_sign_ns = monotonic();
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

    /// Returns true if so many bytes are queued for the peer that no message of the peer is read.
    fn is_held_back(&self) -> bool {
        self.unsent.len() > UNSENT_LIMIT
    }

    fn parse(&mut self) -> Result<Option<In>, ControlError> {
        let Some(end) = self.input.line_end() else {
            // A line is an object, or a bare word in quotes (`"end"`). Anything else is refused at its first
            // byte, and not only when it is too long. The line feed may come later than the rest, because TCP
            // does not keep messages together.
            let bytes = self.input.bytes();
            let is_garbage = bytes.len() > self.line_limit
                || bytes.first().is_some_and(|first| !matches!(first, b'{' | b'"'));
            return if is_garbage { Err(garbage(bytes)) } else { Ok(None) };
        };
        let bytes = self.input.bytes();
        if end > self.line_limit {
            return Err(garbage(bytes));
        }
        let message = serde_json::from_slice(&bytes[..end]).map_err(|_| garbage(&bytes[..end]))?;
        self.input.consume(end + 1);
        Ok(Some(message))
    }
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

#[cfg(test)]
mod tests;
