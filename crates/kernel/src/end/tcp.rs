//! A flow's channel over the kernel's TCP: non-blocking, driven by readiness.
//!
//! A write that the socket cuts short took a part of the message: the application continues with the rest
//! when there is room.
//!
//! ```text
//!  client:  idle ─► connecting ─► open (the opening line, and behind it the first message)
//!  server:  idle ─► open (the opening line was read)
//! ```
//!
//! The opening line, which names the flow, is answered by nothing. If the client sends and its first message
//! is small, the line shares the segment of that message: alone it would be a small segment in flight, for
//! whose acknowledgement Nagle had to wait. A large message would take the line along into a segment that a
//! path may drop for its size, and the server would never learn what the connection is for.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::SendFlags;
use rustix::time::Timespec;
use talkpath_flow::{Channel, FlowId, FlowTaps, Read, Side, Write, WriteOutcome};
use talkpath_units::{Bytes, Duration, Instant};
use talkpath_wire::{Delivery, Observation};

use super::channel::{HostChannel, Occasion};
use super::context::EndContext;
use super::dial::{Dial, watch};
use super::frames::{Frames, NO_MESSAGE};
use super::place::EndPlace;
use crate::clock::RunClock;
use crate::log::{EndTotals, Multipath};
use crate::multipath::{multipath, subflows};
use crate::progress::EndProgress;
use crate::spec::{FlowSpec, TransportSpec};
use crate::sys::{
    ReceivedOne, SocketSwitch, TcpInfo, path_mtu, receive_one, send_queue, switch_on, tcp_info,
};
use crate::wire::stream_filling;

/// A TCP flow's channel.
pub(super) struct TcpChannel {
    spec: FlowSpec,
    is_sender: bool,
    clock: RunClock,
    socket: Option<TcpStream>,
    state: State,
    dial: Option<Dial>,
    /// The frames around its messages, if their sizes vary.
    frames: Option<Frames>,
    /// Bytes that were read with the opening line.
    unread: Vec<u8>,
    buffer: Vec<u8>,
    /// The socket may have something to read: it was not found empty since the last event.
    is_readable: bool,
    /// When the serving thread would have seen the last event, had it run.
    looked: Instant,
    sent: u64,
    received: u64,
    was_open: bool,
    /// Counted before the first message.
    at_open: TcpInfo,
    order: Order,
    /// What was seen of its paths; `None` if the scenario wants only one.
    multipath: Option<Multipath>,
    /// What ended the connection before its time.
    failure: Option<String>,
}

/// What came out of order on the connection of an echo flow: whether a receive stamp says when a byte could
/// be read.
///
/// A segment that came before an earlier one has a stamp of then, and cannot be read before the hole is
/// filled. That wait is the network's doing. Such segments are only counted (TCP_INFO), so stamps are
/// believed that are later than the last moment at which the count was seen to grow.
#[derive(Default)]
struct Order {
    counted: u32,
    grew_at: Instant,
    /// When the last byte came that was read.
    came_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Connecting,
    Open,
    Closed,
}

impl Channel for TcpChannel {
    /// Reads, and messages written, before another flow gets its turn (chosen: a millisecond or so of
    /// copying).
    const MAX_TURN: usize = 16;
    const IN_PARTS: bool = true;

    fn now(&mut self, _began: Instant) -> Instant {
        self.clock.now()
    }

    fn is_open(&self) -> bool {
        self.state == State::Open || self.is_over()
    }

    fn write(&mut self, write: &Write, _now: Instant) -> WriteOutcome {
        if self.is_over() {
            return WriteOutcome::NotOpen;
        }
        let Some(socket) = &mut self.socket else { return WriteOutcome::NoRoom };
        let bytes = match (&mut self.frames, self.spec.file.as_ref().filter(|_| self.is_sender)) {
            (Some(frames), _) => frames.next(write),
            // A file's next byte is the one after all that the socket has taken.
            (None, Some(file)) => {
                let sent = usize::try_from(self.sent).unwrap_or(usize::MAX);
                file.content.get(sent..).unwrap_or_default()
            }
            (None, None) => stream_filling(),
        };
        let piece = usize::try_from(write.message.size.get()).unwrap_or(usize::MAX).min(bytes.len());
        loop {
            match socket.write(&bytes[..piece]) {
                Ok(0) => return WriteOutcome::NoRoom,
                Ok(count) => {
                    self.sent += count as u64;
                    if let Some(frames) = &mut self.frames {
                        frames.on_taken(count as u64);
                    }
                    return WriteOutcome::Taken(Bytes::new(count as u64));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return WriteOutcome::NoRoom,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.fail(&error);
                    return if self.is_over() { WriteOutcome::NotOpen } else { WriteOutcome::NoRoom };
                }
            }
        }
    }

    fn read(&mut self, _flow: FlowId, limit: Bytes, _now: Instant) -> Option<Read<'_>> {
        let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX).min(READ);
        let (count, readable, came_at) = loop {
            let held = self.frames.as_ref().map_or(0, Frames::held);
            let (count, came_at) = self.read_piece(limit.saturating_sub(held).max(1))?;
            self.received += count as u64;
            let readable = match &mut self.frames {
                Some(frames) => frames.take(&self.spec, &self.buffer[..count], came_at),
                None => Some(count as u64),
            };
            match readable {
                // It was the beginning of a frame, and there may be more.
                Some(0) => {}
                Some(readable) => break (count, readable, came_at),
                None => {
                    self.fail(&io::Error::other(NO_MESSAGE));
                    return None;
                }
            }
        };
        let delivery = Delivery::Stream { bytes: Bytes::new(readable) };
        let held_since = came_at.min(self.looked);
        let begun = self.frames.as_ref().map_or(&[][..], Frames::begun);
        let data = &self.buffer[..count];
        Some(Read { delivery, came_at: Some(came_at), held_since: Some(held_since), begun, data })
    }

    /// What the kernel has no room for waits in the application, begun. If the socket says that it may not be
    /// written to, `epoll` reports when it may (tcp_poll asks to be woken).
    fn writable(&mut self, _flow: FlowId) -> Bytes {
        let Some(socket) = &self.socket else { return Bytes::ZERO };
        let mut fds = [PollFd::new(socket, PollFlags::OUT)];
        let is_writable =
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0);
        if is_writable { Bytes::MAX } else { Bytes::ZERO }
    }

    fn flush(&mut self, _flow: FlowId, _side: Side, _taps: &mut FlowTaps, _now: Instant) {}

    fn poll_timeout(&self) -> Instant {
        match self.state {
            State::Idle if self.dial.is_some() => Instant::from_nanos(self.spec.start_ns),
            _ => Instant::MAX,
        }
    }

    fn observe(&self) -> Observation {
        let Some(socket) = &self.socket else { return Observation::default() };
        let (Ok(info), Ok(queue)) = (tcp_info(socket.as_fd()), send_queue(socket.as_fd())) else {
            return Observation::default();
        };
        let unlimited = info.ssthresh >= UNLIMITED_SSTHRESH;
        let offered = info.send_window.and_then(|bytes| bytes.checked_div(info.mss)).unwrap_or(u32::MAX);
        Observation {
            cwnd: Some(f64::from(info.cwnd)),
            window: Some(f64::from(info.cwnd.min(offered))),
            ssthresh: Some(if unlimited { f64::INFINITY } else { f64::from(info.ssthresh) }),
            srtt: Some(Duration::from_micros(u64::from(info.srtt_us))),
            rto: Some(Duration::from_micros(u64::from(info.rto_us))),
            pacing_rate: None,
            bottleneck_rate: None,
            send_buffer: Bytes::new(queue),
            loss_recovery: None,
        }
    }
}

impl HostChannel for TcpChannel {
    fn set_clock(&mut self, clock: RunClock) {
        self.clock = clock;
    }

    fn was_open(&self) -> bool {
        self.was_open
    }

    fn handle_timeout(&mut self, _now: Instant) {
        if self.state == State::Idle
            && let Err(error) = self.connect()
        {
            self.fail(&error);
        }
    }

    fn discard(&mut self) {
        for _ in 0..Self::MAX_TURN {
            if self.receive(READ).is_none() {
                return;
            }
        }
    }

    fn progress(&self, has_written: bool, is_over: bool) -> EndProgress {
        let is_done = has_written || (is_over && !self.was_open);
        EndProgress { is_done, sent: self.sent, received: self.received }
    }

    fn paid_rows(&self) -> u64 {
        self.frames.as_ref().map_or(0, Frames::paid_rows)
    }

    fn count(&self, totals: &mut EndTotals) {
        let Some(socket) = &self.socket else { return };
        let cc = rustix::net::sockopt::tcp_congestion(socket).ok();
        totals.cc = cc.map(|cc| cc.trim_end_matches('\0').to_owned());
        let is_v6 = socket.local_addr().is_ok_and(|address| address.is_ipv6());
        totals.headers.path_mtu = path_mtu(socket.as_fd(), is_v6).ok();
        totals.multipath = self.multipath;
        if let (Ok(info), State::Open | State::Closed) = (tcp_info(socket.as_fd()), self.state) {
            let segments = self.segments(socket, &info);
            totals.data_packets = segments.map(|(all, _)| all);
            totals.takes_marks = Some(info.takes_marks);
            // None before the connection was open: a SYN takes no marks (RFC 3168 §6.1.1).
            totals.echoed = info.delivered_ce.map(u64::from);
            totals.retransmissions = segments.map(|(_, resent)| resent);
            // The kernel gives those of the first path.
            let is_alone = self.multipath.is_none_or(|seen| seen.fell_back);
            totals.timeouts = info
                .total_rto
                .filter(|_| is_alone)
                .map(|total| u64::from(total.wrapping_sub(self.at_open.total_rto.unwrap_or(0))));
        }
    }

    fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    fn sample(&mut self, occasion: Occasion) -> Option<(Observation, Instant)> {
        let is_wanted = occasion == Occasion::Interval && self.state == State::Open;
        if is_wanted {
            self.look_at_paths();
        }
        // Without a window the system did not say.
        let seen = is_wanted.then(|| self.observe()).filter(|seen| seen.cwnd.is_some())?;
        Some((seen, self.clock.now()))
    }
}

impl TcpChannel {
    /// An end of the flow `spec`, whose messages are numbered below `bound`.
    pub(super) fn new(spec: &FlowSpec, place: &EndPlace, bound: u64, common: &EndContext) -> Self {
        Self {
            spec: spec.clone(),
            is_sender: place.is_sender,
            clock: common.clock,
            socket: None,
            state: State::Idle,
            dial: None,
            frames: Frames::new(spec, place, bound, common),
            unread: Vec::new(),
            buffer: Vec::new(),
            is_readable: false,
            looked: Instant::MAX,
            sent: 0,
            received: 0,
            was_open: false,
            at_open: TcpInfo::default(),
            order: Order::default(),
            multipath: None,
            failure: None,
        }
    }

    /// Sets the address to which a client's end connects when the flow starts.
    pub(super) fn set_dial(&mut self, dial: Dial) {
        self.dial = Some(dial);
    }

    /// Takes over an open connection, and the bytes that were read from it together with the opening line.
    /// Returns true if it does. An end that already has a connection closes the new one.
    ///
    /// # Errors
    /// The system's, if epoll refuses the connection.
    pub(super) fn adopt(
        &mut self,
        socket: TcpStream,
        unread: &[u8],
        epoll: &OwnedFd,
        index: u64,
    ) -> io::Result<bool> {
        if self.state != State::Idle {
            return Ok(false);
        }
        watch(epoll, &socket, index)?;
        self.socket = Some(socket);
        unread.clone_into(&mut self.unread);
        self.open();
        Ok(true)
    }

    /// Handles a change of the socket's readiness. It happened at or after `looked`, when this thread last
    /// polled the socket. Returns true if the connection is open.
    pub(super) fn handle_ready(&mut self, looked: Instant) -> bool {
        (self.looked, self.is_readable) = (looked, true);
        if self.state == State::Connecting
            && let Err(error) = self.finish_connecting()
        {
            self.fail(&error);
        }
        self.state == State::Open
    }

    /// Whether the connection ended before its time and the workload has a clock: the application still hands
    /// over what is due, so that it counts as never sent and not as never due.
    fn is_over(&self) -> bool {
        self.state == State::Closed && self.was_open && self.spec.is_clocked()
    }

    /// Whether the kernel stamps what arrives: at both ends of an echo flow, whose delays are part of its
    /// round trips. Not on a connection with several paths: there a segment may wait for an earlier one that
    /// took another path, and its stamp does not include that wait. Its bytes count as come when they are
    /// read.
    const fn wants_stamps(&self) -> bool {
        self.spec.echo_per_read.is_some() && !self.spec.transport.is_multipath()
    }

    /// Looks at how many paths the connection has, if it may have several.
    fn look_at_paths(&mut self) {
        let Some(socket) = self.socket.as_ref().filter(|_| self.spec.transport.is_multipath()) else {
            return;
        };
        let Ok(Multipath { fell_back, subflows }) = multipath(socket.as_fd()) else { return };
        let most = self.multipath.map_or(0, |seen| seen.subflows);
        self.multipath = Some(Multipath { fell_back, subflows: subflows.max(most) });
    }

    /// The number of segments with data and the number of retransmissions, over all paths; `None` if a path
    /// that carried some is gone.
    fn segments(&self, socket: &TcpStream, first: &TcpInfo) -> Option<(u64, u64)> {
        let all = match self.multipath {
            None | Some(Multipath { fell_back: true, .. }) => vec![*first],
            Some(Multipath { subflows: most, .. }) => {
                let all = subflows(socket.as_fd()).ok()?;
                (all.len() >= most as usize).then_some(all)?
            }
        };
        let sum = |of: fn(&TcpInfo) -> u32| all.iter().map(|info| u64::from(of(info))).sum::<u64>();
        let since = |now: u64, then: u32| now.saturating_sub(u64::from(then));
        Some((
            since(sum(|info| info.data_segs_out), self.at_open.data_segs_out),
            since(sum(|info| info.total_retrans), self.at_open.total_retrans),
        ))
    }

    fn connect(&mut self) -> io::Result<()> {
        let Some(dial) = &self.dial else { return Ok(()) };
        self.socket = Some(dial.connect(&self.spec, self.is_sender)?);
        self.state = State::Connecting;
        Ok(())
    }

    fn finish_connecting(&mut self) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Ok(()) };
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        if socket.peer_addr().is_err() {
            return Ok(());
        }
        let opening = self.dial.as_ref().map_or(&[][..], |dial| &dial.opening);
        // MORE keeps the line until the first message is behind it (tcp(7), TCP_CORK; 200 ms at most).
        let shares = self.is_sender && self.is_small_with(opening.len());
        let follows = if shares { SendFlags::MORE } else { SendFlags::empty() };
        if rustix::net::send(socket, opening, follows)? != opening.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.open();
        Ok(())
    }

    /// Whether the first message, whatever its size, is so small that the `opening` bytes of the line should
    /// share its segment.
    fn is_small_with(&self, opening: usize) -> bool {
        let message = self.spec.workload.sizes().map_or(u64::MAX, |sizes| sizes.largest().get());
        let is_delayed = matches!(self.spec.transport, TransportSpec::Tcp { nodelay: false, .. });
        let limit = if is_delayed { WHOLE_SEGMENT } else { SMALL_SEGMENT };
        message.saturating_add(opening as u64) <= limit
    }

    fn open(&mut self) {
        if let Some(socket) = &self.socket {
            self.at_open = tcp_info(socket.as_fd()).unwrap_or_default();
            if self.wants_stamps() {
                // Without stamps a message counts as come when it is read.
                let _ = switch_on(socket.as_fd(), SocketSwitch::KernelStamps);
            }
        }
        self.look_at_paths();
        self.buffer = vec![0; READ];
        self.was_open = true;
        self.is_readable = true;
        self.state = State::Open;
    }

    /// Reads at most `limit` bytes into the buffer, first those that came with the opening line. Returns how
    /// many it read, and when the last byte came.
    fn read_piece(&mut self, limit: usize) -> Option<(usize, Instant)> {
        match self.unread.len().min(limit) {
            0 => self.receive(limit),
            count => {
                self.buffer[..count].copy_from_slice(&self.unread[..count]);
                self.unread.drain(..count);
                Some((count, self.clock.now()))
            }
        }
    }

    /// Reads at most `limit` bytes from the socket into the buffer. Returns how many it read, and when the
    /// last byte came.
    fn receive(&mut self, limit: usize) -> Option<(usize, Instant)> {
        if !self.is_readable || self.state != State::Open {
            return None;
        }
        let wants_stamps = self.wants_stamps();
        loop {
            let socket = self.socket.as_mut()?;
            let buffer = &mut self.buffer[..limit];
            let read = if wants_stamps {
                receive_one(socket.as_fd(), buffer)
                    .map(|ReceivedOne { count, stamp_ns, .. }| (count, stamp_ns))
            } else {
                socket.read(buffer).map(|count| (count, None))
            };
            match read {
                Ok((0, _)) => self.fail(&io::ErrorKind::UnexpectedEof.into()),
                Ok((count, stamp_ns)) => return Some((count, self.arrival(stamp_ns))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => self.fail(&error),
            }
            return None;
        }
    }

    /// The earliest moment at which the byte that was read last could have been read, as far as the kernel's
    /// stamp says; now, if the stamp cannot be believed.
    fn arrival(&mut self, stamp_ns: Option<i64>) -> Instant {
        let now = self.clock.now();
        let (Some(stamp_ns), Some(socket)) = (stamp_ns, &self.socket) else { return now };
        let counted = tcp_info(socket.as_fd()).ok().and_then(|info| info.out_of_order);
        let mut came_at = now;
        if counted == Some(self.order.counted) {
            let stamp = self.clock.stamped(Some(stamp_ns));
            if stamp > self.order.grew_at {
                came_at = stamp.min(now);
            }
        } else {
            (self.order.counted, self.order.grew_at) = (counted.unwrap_or(0), now);
        }
        // A wall clock that was set back does not make a stream's bytes come out of order.
        self.order.came_at = self.order.came_at.max(came_at);
        self.order.came_at
    }

    /// Whether this end dialled, and the far end has acknowledged none of its bytes.
    fn nothing_arrived(&self) -> bool {
        let (Some(dial), Some(socket)) = (&self.dial, &self.socket) else { return false };
        send_queue(socket.as_fd()).is_ok_and(|waits| waits >= self.sent + dial.opening.len() as u64)
    }

    fn fail(&mut self, error: &io::Error) {
        self.state = State::Closed;
        if self.failure.is_none() {
            let what = match error.kind() {
                io::ErrorKind::UnexpectedEof if self.nothing_arrived() => {
                    "nothing of the data connection arrived at the far end, which gave it up".to_owned()
                }
                io::ErrorKind::UnexpectedEof => "the far end closed the data connection".to_owned(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                    "the data connection was reset".to_owned()
                }
                _ => format!("the data connection failed: {error}"),
            };
            let at_s = self.clock.now().since(Instant::ZERO).as_millis_f64() / 1e3;
            self.failure = Some(format!("{what} {at_s:.1} s into the run"));
        }
    }
}

/// The opening line shares a segment of up to this size, which every path carries (RFC 9293 §3.7.1: the
/// default MSS for IPv4).
const SMALL_SEGMENT: u64 = 536;
/// With Nagle's algorithm it shares every segment that the line would delay: one that is not full (Ethernet's
/// MTU less IPv4's, TCP's and the timestamps' headers).
const WHOLE_SEGMENT: u64 = 1500 - 20 - 20 - 12;
/// Bytes of one read at most.
const READ: usize = 64 * 1024;
/// TCP_INFINITE_SSTHRESH of the Linux kernel's net/tcp.h.
const UNLIMITED_SSTHRESH: u32 = 0x7fff_ffff;
