//! A receiver that takes its time: one thread that reads one message, works on it for the service time, and then reads the
//! next, as the simulator's endpoint does.
//!
//! What it does not read stays in the kernel's socket: TCP closes its window, UDP drops what finds no room. Messages are
//! stamped when they are read, not when they came. With `service_per = "read"` a stream is read as far as the socket holds, and
//! the service time is that of the read.
//!
//! What waits while the receiver works is begun when that work is done, and not when the machine lets the thread run again: a
//! thread that wakes up late for each message would otherwise be a slower receiver.

use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_units::{Duration, Instant};

use crate::clock::RunClock;
use crate::file::{FileOutcome, FileSink};
use crate::log::FlowLog;
use crate::protocol::Progress;
use crate::spec::FlowSpec;
use crate::wire::{FILE_HEADER, filling, read_header};

/// The far end of a flow whose receiver is slow.
pub(super) struct SlowEnd {
    spec: FlowSpec,
    token: u32,
    service: Duration,
    per_read: bool,
    clock: RunClock,
    log: Mutex<FlowLog>,
    sink: Mutex<Option<FileSink>>,
    /// As in [`Progress`].
    sent: AtomicU64,
    received: AtomicU64,
    last_arrival_ns: AtomicU64,
    /// The connection, once it was read for the last time: closed with what waits unread in it, a kernel would reset it
    /// (RFC 1122 §4.2.2.13), and the sender take the run's end for a failure.
    finished: Mutex<Option<TcpStream>>,
}

/// Where a slow end's socket comes from.
pub(super) enum SlowSocket {
    /// It is there.
    Udp(OwnedFd),
    /// Whoever accepts the connection sends it.
    Tcp(Receiver<TcpStream>),
}

impl SlowEnd {
    pub(super) fn new(
        spec: &FlowSpec,
        token: u32,
        receiver: &talkpath_scenario::Receiver,
        clock: RunClock,
        log: FlowLog,
    ) -> Self {
        Self {
            spec: spec.clone(),
            token,
            service: receiver.service,
            per_read: receiver.per_read,
            clock,
            log: Mutex::new(log),
            sink: Mutex::new(spec.file_sink(false)),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            last_arrival_ns: AtomicU64::new(0),
            finished: Mutex::new(None),
        }
    }

    /// What it saw.
    pub(super) fn log(&self) -> MutexGuard<'_, FlowLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of the file, where it is one.
    pub(super) fn file(&self) -> Option<FileOutcome> {
        self.sink().as_ref().map(FileSink::outcome)
    }

    fn sink(&self) -> MutexGuard<'_, Option<FileSink>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is.
    pub(super) fn progress(&self) -> Progress {
        Progress {
            is_done: true,
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
        }
    }

    /// When it last read something.
    pub(super) fn last_arrival(&self) -> Instant {
        Instant::from_nanos(self.last_arrival_ns.load(Ordering::Relaxed))
    }

    /// Reads until `stop`; returns the numbers of the datagrams that then still waited in the socket.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn run(&self, socket: SlowSocket, stop: &AtomicBool) -> io::Result<Vec<u64>> {
        match socket {
            SlowSocket::Udp(socket) => self.run_udp(&UdpSocket::from(socket), stop),
            SlowSocket::Tcp(accepted) => {
                while !stop.load(Ordering::Relaxed) {
                    if let Ok(stream) = accepted.recv_timeout(std::time::Duration::from_nanos(POLL_NS)) {
                        let result = self.run_tcp(&stream, stop);
                        *self.finished.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
                        result?;
                    }
                }
                Ok(Vec::new())
            }
        }
    }

    fn run_udp(&self, socket: &UdpSocket, stop: &AtomicBool) -> io::Result<Vec<u64>> {
        let mut buffer = vec![0; 65_536];
        let mut expected = 0;
        let mut free_at = None;
        while !stop.load(Ordering::Relaxed) {
            let length = match socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if is_passing(&error) => {
                    free_at = None;
                    wait(socket, PollFlags::IN)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let now = self.clock.now();
            let Some(seq) = read_header(&buffer[..length], self.token, expected) else { continue };
            expected = expected.max(seq + 1);
            self.log().on_arrival(seq, now);
            self.count_arrival(1, now);
            if let Some(sink) = self.sink().as_mut() {
                sink.on_piece(seq, buffer.get(FILE_HEADER as usize..length).unwrap_or_default());
            }
            if self.spec.echo_per_read.is_some() {
                let row = self.log().on_due(seq, length as u64, now);
                let result = socket.send(&buffer[..length]);
                self.note_echo(row, result.as_ref().err(), 1);
            }
            free_at = Some(self.work(free_at.unwrap_or(now), stop));
        }
        let mut unread = Vec::new();
        while let Ok(length) = socket.recv(&mut buffer) {
            if let Some(seq) = read_header(&buffer[..length], self.token, expected) {
                expected = expected.max(seq + 1);
                unread.push(seq);
            }
        }
        Ok(unread)
    }

    fn run_tcp(&self, mut stream: &TcpStream, stop: &AtomicBool) -> io::Result<()> {
        let size = self.spec.message_size().unwrap_or(BULK_MESSAGE).max(1);
        let echo = filling(usize::try_from(size).unwrap_or(0));
        let room = if self.per_read { BULK_MESSAGE } else { size.min(BULK_MESSAGE) };
        let mut buffer = vec![0; usize::try_from(room).unwrap_or(1)];
        let (mut left, mut seq) = (size, 0);
        let mut free_at = None;
        while !stop.load(Ordering::Relaxed) {
            let one = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let wanted = if self.per_read { buffer.len() } else { one };
            let mut count = match stream.read(&mut buffer[..wanted]) {
                Ok(0) => return Ok(()),
                Ok(count) => count as u64,
                Err(error) if is_passing(&error) => {
                    free_at = None;
                    wait(stream, PollFlags::IN)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let now = self.clock.now();
            if let Some(sink) = self.sink().as_mut() {
                sink.on_read(&buffer[..usize::try_from(count).unwrap_or(0)]);
            }
            self.log().on_read(count, now);
            self.count_arrival(count, now);
            let completed = count >= left;
            while count >= left {
                count -= left;
                left = size;
                if self.spec.echo_per_read.is_some() {
                    let row = self.log().on_due(seq, size, now);
                    seq += 1;
                    if self.write_all(stream, &echo, stop)? {
                        self.note_echo(row, None, size);
                    }
                }
            }
            left -= count;
            if completed || self.per_read {
                free_at = Some(self.work(free_at.unwrap_or(now), stop));
            }
        }
        Ok(())
    }

    /// Writes `bytes`, however long the socket takes; false where the run ended before.
    fn write_all(&self, mut stream: &TcpStream, mut bytes: &[u8], stop: &AtomicBool) -> io::Result<bool> {
        while !bytes.is_empty() {
            match stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_passing(&error) => wait(stream, PollFlags::OUT)?,
                Err(error) => return Err(error),
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(bytes.is_empty());
            }
        }
        Ok(true)
    }

    fn count_arrival(&self, count: u64, now: Instant) {
        self.received.fetch_add(count, Ordering::Relaxed);
        self.last_arrival_ns.fetch_max(now.as_nanos(), Ordering::Relaxed);
    }

    fn note_echo(&self, row: Option<usize>, refusal: Option<&io::Error>, count: u64) {
        let Some(row) = row else { return };
        match refusal {
            None => {
                self.sent.fetch_add(count, Ordering::Relaxed);
                self.log().on_sent(row, self.clock.now());
            }
            Some(why) => self.log().on_refused(row, why),
        }
    }

    /// Takes the service time from `since`, when the last message's work was done or, where nothing waited then, this one
    /// was read; returns when it is over.
    fn work(&self, since: Instant, stop: &AtomicBool) -> Instant {
        let until = since.saturating_add(self.service);
        while self.clock.now() < until && !stop.load(Ordering::Relaxed) {
            self.clock.sleep_until(until, Duration::from_nanos(POLL_NS));
        }
        until
    }
}

/// Whether `error` says to try again, or tells of an ICMP message about something sent before.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused
    )
}

/// Waits until `socket` is ready, at most [`POLL_NS`].
fn wait(socket: &impl AsFd, flags: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(socket, flags)], Some(&Timespec { tv_sec: 0, tv_nsec: POLL_NS as i64 })) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The longest that a receiver goes without looking whether it shall stop.
const POLL_NS: u64 = 20_000_000;
/// A message of a bulk transfer is 64 KiB, since a stream's sender offers that much room.
const BULK_MESSAGE: u64 = 64 * 1024;
