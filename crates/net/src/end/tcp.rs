//! A flow's end on the kernel's TCP: non-blocking, driven by readiness.
//!
//! Clocked messages wait in the application until the socket takes them, oldest first; their due time stays, so a
//! blocked sender cannot hide a delay. A write that was cut short goes on where it stopped. The echoing application reads
//! what there is and writes it back: per message, each one when it is whole; per read, the bytes as they came.
//!
//! ```text
//!  client:  idle ─► connecting ─► open (the opening line, and behind it the first message)
//!  server:  idle ─► open (the opening line was read)
//! ```
//!
//! The opening line, which names the flow, is answered by nothing. Where the client sends, the line shares the segment of
//! the first message: alone it would be a small segment in flight, for whose acknowledgement Nagle had to wait.

mod dial;

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::SendFlags;
use rustix::time::Timespec;
use talkpath_transport::tcp::WRITE;
use talkpath_units::Instant;

use super::Base;
use crate::log::Sample;
use crate::protocol::Progress;
use crate::sys::{TcpInfo, send_queue, tcp_info};
use crate::wire::filling;
use dial::watch;
pub(crate) use dial::{Dial, apply_options};

/// A TCP flow's end.
pub(crate) struct Stream {
    socket: Option<TcpStream>,
    state: State,
    dial: Option<Dial>,
    writes: VecDeque<Pending>,
    blocked_since: Option<Instant>,
    /// The socket would take more than the pacer's turn let it have: it has to come back, as no event will tell.
    is_unfinished: bool,
    /// The sequence number of the next message to be read: whole, or its first byte where the echo is per read.
    next_read: u64,
    sent: u64,
    received: u64,
    /// Counted before the first message.
    at_open: TcpInfo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Connecting,
    Open,
    Closed,
}

/// One write of the application that the socket has not taken whole.
struct Pending {
    left: u64,
    /// Rows of the log that this write carries: first and count; absent where the log was full.
    rows: Option<(usize, usize)>,
    is_begun: bool,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Self {
            socket: None,
            state: State::Idle,
            dial: None,
            writes: VecDeque::new(),
            blocked_since: None,
            is_unfinished: false,
            next_read: 0,
            sent: 0,
            received: 0,
            at_open: TcpInfo::default(),
        }
    }

    /// Tells a client's end whom to connect to when the flow starts.
    pub(crate) fn set_dial(&mut self, dial: Dial) {
        self.dial = Some(dial);
    }

    /// Gives this end a connection that is open already, of which `unread` was read with the opening line: a sender's first
    /// message is due now. An end that has its connection lets go of another.
    ///
    /// # Errors
    /// The system's, where the connection cannot be watched.
    pub(crate) fn adopt(
        &mut self,
        base: &mut Base,
        (socket, unread): (TcpStream, &[u8]),
        epoll: &OwnedFd,
        index: u64,
    ) -> io::Result<()> {
        if self.state != State::Idle {
            return Ok(());
        }
        watch(epoll, &socket, index)?;
        self.socket = Some(socket);
        self.open(base, base.clock.now());
        if !unread.is_empty()
            && let Err(error) = self.on_read(base, unread)
        {
            self.fail(base, &error);
        }
        Ok(())
    }

    fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Closed)
    }

    pub(crate) fn poll_timeout(&self, base: &Base) -> Option<Instant> {
        match self.state {
            State::Idle if self.dial.is_some() => Some(Instant::from_nanos(base.spec.start_ns)),
            State::Open if self.is_unfinished => Some(Instant::ZERO),
            State::Open => base.workload_timeout(),
            _ => None,
        }
    }

    pub(crate) fn handle_timeout(&mut self, base: &mut Base, now: Instant) {
        match self.state {
            State::Idle => {
                if let Err(error) = self.connect(base) {
                    self.fail(base, &error);
                }
            }
            State::Open => self.offer(base, now),
            State::Connecting | State::Closed => {}
        }
    }

    /// Reads and writes what there is, within bounds; returns whether there is more to do at once.
    pub(crate) fn handle_ready(&mut self, base: &mut Base) -> bool {
        match self.go_on(base) {
            Ok(more) => more,
            Err(error) => {
                self.fail(base, &error);
                false
            }
        }
    }

    pub(crate) fn sample(&self, base: &mut Base) {
        let Some(socket) = self.socket.as_ref().filter(|_| self.state == State::Open) else { return };
        if let (Ok(info), Ok(queue)) = (tcp_info(socket.as_fd()), send_queue(socket.as_fd())) {
            let ssthresh = if info.ssthresh >= UNLIMITED_SSTHRESH { u32::MAX } else { info.ssthresh };
            let now = base.clock.now().as_nanos();
            let offered = info.send_window.and_then(|bytes| bytes.checked_div(info.mss)).unwrap_or(u32::MAX);
            let unpaced = u64::MAX;
            base.log.on_sample(Sample(
                now,
                info.cwnd,
                ssthresh,
                info.srtt_us,
                info.rto_us,
                queue,
                offered,
                unpaced,
            ));
        }
    }

    pub(crate) fn progress(&self, base: &Base) -> Progress {
        let never_opened = !self.is_open() && base.clock.now() >= base.stop;
        let is_done = (base.is_workload_finished() && self.writes.is_empty()) || never_opened;
        Progress { is_done, sent: self.sent, received: self.received }
    }

    pub(crate) fn finish(&mut self, base: &mut Base, now: Instant) {
        if let Some(since) = self.blocked_since.take() {
            base.add_blocked(since, now);
        }
        let Some(socket) = &self.socket else { return };
        let cc = rustix::net::sockopt::tcp_congestion(socket).ok();
        base.log.totals.cc = cc.map(|cc| cc.trim_end_matches('\0').to_owned());
        if let (Ok(info), State::Open | State::Closed) = (tcp_info(socket.as_fd()), self.state) {
            let since = |now: u32, then: u32| u64::from(now.wrapping_sub(then));
            base.log.totals.data_packets = Some(since(info.data_segs_out, self.at_open.data_segs_out));
            base.log.totals.retransmissions = Some(since(info.total_retrans, self.at_open.total_retrans));
            base.log.totals.timeouts = info
                .total_rto
                .map(|total| u64::from(total.wrapping_sub(self.at_open.total_rto.unwrap_or(0))));
        }
    }

    fn connect(&mut self, base: &Base) -> io::Result<()> {
        let Some(dial) = &self.dial else { return Ok(()) };
        self.socket = Some(dial.connect(base)?);
        self.state = State::Connecting;
        Ok(())
    }

    fn go_on(&mut self, base: &mut Base) -> io::Result<bool> {
        let Some(socket) = &mut self.socket else { return Ok(false) };
        match self.state {
            State::Idle | State::Closed => Ok(false),
            State::Connecting => {
                if let Some(error) = socket.take_error()? {
                    return Err(error);
                }
                if socket.peer_addr().is_err() {
                    return Ok(false);
                }
                let opening = self.dial.as_ref().map_or(&[][..], |dial| &dial.opening);
                // MORE keeps the line until the first message is behind it (tcp(7), TCP_CORK; 200 ms at most).
                let follows = if base.is_sender { SendFlags::MORE } else { SendFlags::empty() };
                if rustix::net::send(&*socket, opening, follows)? != opening.len() {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                self.open(base, base.clock.now());
                Ok(true)
            }
            State::Open => {
                let read_more = self.read(base)?;
                let write_more = self.write(base)?;
                Ok(read_more || write_more)
            }
        }
    }

    fn open(&mut self, base: &mut Base, now: Instant) {
        if let Some(socket) = &self.socket {
            self.at_open = tcp_info(socket.as_fd()).unwrap_or_default();
        }
        self.state = State::Open;
        base.open_workload(now);
        if base.spec.is_clocked() {
            self.offer(base, now);
        }
    }

    /// Takes every clocked message that is due and writes what the socket takes.
    fn offer(&mut self, base: &mut Base, now: Instant) {
        if base.spec.is_clocked() {
            while let Some((message, row)) = base.poll_message(u64::MAX, now) {
                let rows = row.map(|row| (row, 1));
                self.writes.push_back(Pending { left: message.size.get(), rows, is_begun: false });
                base.on_paced(message.due, base.clock.now());
            }
        } else if !self.writes.is_empty() {
            // Room is what the next message waits for, and no more the clock.
            let _ = base.poll_message(0, now);
        }
        match self.write(base) {
            Ok(more) => self.is_unfinished = more,
            Err(error) => self.fail(base, &error),
        }
    }

    /// Writes what waits, and then what a greedy workload has; returns whether the socket would take more.
    fn write(&mut self, base: &mut Base) -> io::Result<bool> {
        for _ in 0..ROUNDS {
            if self.writes.is_empty() && !self.refill(base) {
                return Ok(false);
            }
            if !self.flush(base)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Asks a greedy workload for its next message, which is due when the socket is found writable: without room it is
    /// asked all the same, so that it waits for room and no more for its clock.
    fn refill(&mut self, base: &mut Base) -> bool {
        if base.spec.is_clocked() || base.is_workload_finished() {
            return false;
        }
        let (is_writable, now) = (self.is_writable(), base.clock.now());
        // What the kernel has no room for waits here, begun.
        let room = if is_writable { u64::MAX } else { 0 };
        let Some((message, row)) = base.poll_message(room, now) else {
            let waits_for_clock = base.workload_timeout().is_some() || base.is_workload_finished();
            if !is_writable && !waits_for_clock {
                self.blocked_since.get_or_insert(now);
            }
            return false;
        };
        if let Some(since) = self.blocked_since.take() {
            base.add_blocked(since, now);
        }
        self.writes.push_back(Pending {
            left: message.size.get(),
            rows: row.map(|row| (row, 1)),
            is_begun: false,
        });
        true
    }

    /// Whether the socket says that it may be written to; where it does not, `epoll` tells when it does (tcp_poll asks
    /// to be woken).
    fn is_writable(&self) -> bool {
        let Some(socket) = &self.socket else { return false };
        let mut fds = [PollFd::new(socket, PollFlags::OUT)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
    }

    /// Writes until nothing waits (true) or the socket takes no more (false).
    fn flush(&mut self, base: &mut Base) -> io::Result<bool> {
        let Some(socket) = &mut self.socket else { return Ok(false) };
        while let Some(pending) = self.writes.front_mut() {
            // A file's next byte is the one after all that the socket has taken.
            let bytes = match base.spec.file.as_ref().filter(|_| base.is_sender) {
                Some(file) => {
                    let sent = usize::try_from(self.sent).unwrap_or(usize::MAX);
                    file.content.get(sent..).unwrap_or_default()
                }
                None => outgoing(),
            };
            let piece = usize::try_from(pending.left).unwrap_or(usize::MAX).min(bytes.len());
            let now = base.clock.now();
            match socket.write(&bytes[..piece]) {
                Ok(count) => {
                    if !pending.is_begun {
                        pending.is_begun = true;
                        let (first, rows) = pending.rows.unwrap_or((0, 0));
                        (first..first + rows).for_each(|row| base.log.on_sent(row, now));
                    }
                    self.sent += count as u64;
                    pending.left -= count as u64;
                    if pending.left == 0 {
                        self.writes.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked_since.get_or_insert(now);
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(since) = self.blocked_since.take() {
            base.add_blocked(since, base.clock.now());
        }
        Ok(true)
    }

    /// Reads what there is, at most a few buffers; returns whether there may be more.
    fn read(&mut self, base: &mut Base) -> io::Result<bool> {
        let mut buffer = [0; READ];
        for _ in 0..ROUNDS {
            let Some(socket) = &mut self.socket else { return Ok(false) };
            match socket.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.on_read(base, &buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// One read returned `bytes`.
    fn on_read(&mut self, base: &mut Base, bytes: &[u8]) -> io::Result<()> {
        let (now, count) = (base.clock.now(), bytes.len() as u64);
        if let Some(sink) = &mut base.sink {
            sink.on_read(bytes);
        }
        base.log.on_read(count, now);
        base.last_arrival = now;
        self.received += count;
        let (Some(size), false, Some(per_read)) =
            (base.spec.message_size(), base.is_sender, base.spec.echo_per_read)
        else {
            return Ok(());
        };
        // Written per read, the bytes go back as they came, whole messages or not: a message is begun with its first
        // byte. Written per message, one goes back when it is whole.
        let messages = if per_read { self.received.div_ceil(size) } else { self.received / size };
        let first = base.log.sent.len();
        for seq in self.next_read..messages {
            let row = base.log.on_due(seq, size, now);
            if !per_read {
                self.writes.push_back(Pending { left: size, rows: row.map(|row| (row, 1)), is_begun: false });
            }
        }
        self.next_read = messages;
        if per_read {
            let rows = Some((first, base.log.sent.len() - first));
            self.writes.push_back(Pending { left: count, rows, is_begun: false });
        }
        self.flush(base).map(drop)
    }

    fn fail(&mut self, base: &mut Base, error: &io::Error) {
        self.state = State::Closed;
        if base.failure.is_none() {
            let why = match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                    "the far end closed the data connection".to_owned()
                }
                _ => format!("the data connection failed: {error}"),
            };
            base.failure = Some(why);
        }
    }
}

/// What streams carry.
fn outgoing() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| filling(WRITE as usize))
}

/// Bytes that one read asks for.
const READ: usize = 64 * 1024;
/// Reads, and writes, before another flow gets its turn (chosen: a millisecond or so of copying).
const ROUNDS: usize = 16;
/// TCP_INFINITE_SSTHRESH of the Linux kernel's net/tcp.h.
const UNLIMITED_SSTHRESH: u32 = 0x7fff_ffff;
