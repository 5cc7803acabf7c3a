//! A flow's channel over the kernel's TCP. The socket is non-blocking, and `epoll` reports when it is ready.
//!
//! If the socket takes only a part of a message, the application writes the rest when the socket has room.
//!
//! ```text
//!  client:  idle ─► connecting ─► open (the opening line, and behind it the first message)
//!  server:  idle ─► open (the opening line was read)
//! ```
//!
//! The opening line names the flow. The client sends it as the first bytes of the connection, and the server
//! sends no answer. If the client is the sender and its first message is small, the opening line shares a
//! segment with that message. Otherwise Nagle's algorithm would hold the message back until the opening line
//! is acknowledged. The opening line does not share the segment of a large message. A path may drop a large
//! segment for its size, and then the server would never learn which flow the connection belongs to.

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

/// Without Nagle's algorithm, the largest payload in bytes of a segment that the opening line shares with a
/// message. Every path carries it (RFC 9293 §3.7.1, the default MSS for IPv4).
const SMALL_SEGMENT: u64 = 536;
/// With Nagle's algorithm, the largest payload in bytes of a segment that the opening line shares with a
/// message. Nagle's algorithm delays every message that does not fill a segment. A full segment has
/// Ethernet's MTU minus the headers of IPv4, TCP and the timestamps.
const FULL_SEGMENT: u64 = 1500 - 20 - 20 - 12;
/// The largest number of bytes that one read takes.
const READ_SIZE: usize = 64 * 1024;
/// The slow start threshold of a connection that has none yet: TCP_INFINITE_SSTHRESH of Linux's net/tcp.h.
const UNLIMITED_SSTHRESH: u32 = 0x7fff_ffff;

/// A TCP flow's channel.
pub(super) struct TcpChannel {
    spec: FlowSpec,
    is_sender: bool,
    clock: RunClock,
    socket: Option<TcpStream>,
    state: ConnectionState,
    dial: Option<Dial>,
    opening: Opening,
    /// The frames that separate the messages of the stream. `None` if all messages have one size.
    frames: Option<Frames>,
    /// Bytes of messages that were read from the socket together with the opening line.
    unread: Vec<u8>,
    /// The bytes of the last read.
    buffer: Vec<u8>,
    /// True if a read may find bytes, because no read has found the socket empty since the last event.
    is_readable: bool,
    /// When the serving thread woke up for the last event. If the thread was kept from running, this is the
    /// time at which its timeout would have woken it, because the event may have waited since then.
    woke_at: Instant,
    /// The number of bytes that the socket has taken.
    sent: u64,
    /// The number of bytes that were read.
    received: u64,
    /// True if the connection is open or has been open.
    was_open: bool,
    /// The kernel's counters when the connection opened. They already count the handshake and the opening
    /// line.
    at_open: TcpInfo,
    stamp_trust: StampTrust,
    /// What the kernel has shown of the connection's paths. `None` if the flow does not use Multipath TCP.
    multipath: Option<Multipath>,
    /// The reason why the connection ended before its time, until the end takes it.
    failure: Option<String>,
}

/// Decides whether the kernel's receive stamp of a segment says when the segment's bytes could be read.
///
/// A segment that overtakes an earlier segment has the stamp of its arrival. Its bytes cannot be read before
/// the earlier segment arrives, and the network causes that wait. The kernel only counts the segments that
/// arrive out of order (TCP_INFO). So a stamp is trusted only if it is later than the last growth of that
/// count. Only the ends of an echo flow use the stamps.
#[derive(Default)]
struct StampTrust {
    /// The kernel's count of segments that arrived out of order, when it was last read.
    out_of_order: u32,
    /// When that count was last seen to grow.
    grew_at: Instant,
    /// When the last byte that was read came. It never goes back.
    came_at: Instant,
}

/// When this end opened the connection. The end that accepts it knows none of these times.
#[derive(Clone, Copy, Default)]
struct Opening {
    /// The time that the kernel took to make the socket and to set its options.
    socket: Option<Duration>,
    /// When the first SYN left.
    dialled: Option<Instant>,
    /// When the handshake was over.
    established: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    Idle,
    Connecting,
    Open,
    Closed,
}

impl Channel for TcpChannel {
    /// The number of reads and of written messages in one turn, before another flow gets its turn. We chose
    /// 16, which is about a millisecond of copying.
    const MAX_TURN: usize = 16;
    const IN_PARTS: bool = true;

    fn now(&mut self, _began: Instant) -> Instant {
        self.clock.now()
    }

    fn is_open(&self) -> bool {
        self.state == ConnectionState::Open || self.counts_as_never_sent()
    }

    fn write(&mut self, write: &Write, _now: Instant) -> WriteOutcome {
        if self.counts_as_never_sent() {
            return WriteOutcome::NotOpen;
        }
        let Some(socket) = &mut self.socket else { return WriteOutcome::NoRoom };
        let bytes = match (&mut self.frames, self.spec.file.as_ref().filter(|_| self.is_sender)) {
            (Some(frames), _) => frames.next(write),
            // The socket has taken the first `sent` bytes of the file.
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
                    let is_never_sent = self.counts_as_never_sent();
                    return if is_never_sent { WriteOutcome::NotOpen } else { WriteOutcome::NoRoom };
                }
            }
        }
    }

    fn read(&mut self, _flow: FlowId, limit: Bytes, _now: Instant) -> Option<Read<'_>> {
        let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX).min(READ_SIZE);
        let (count, readable, came_at) = loop {
            let held = self.frames.as_ref().map_or(0, Frames::held);
            let (count, came_at) = self.read_piece(limit.saturating_sub(held).max(1))?;
            self.received += count as u64;
            let readable = match &mut self.frames {
                Some(frames) => frames.take(&self.spec, &self.buffer[..count], came_at),
                None => Some(count as u64),
            };
            match readable {
                // The bytes are only a part of a frame, and the socket may hold more of it.
                Some(0) => {}
                Some(readable) => break (count, readable, came_at),
                None => {
                    self.fail(&io::Error::other(NO_MESSAGE));
                    return None;
                }
            }
        };
        let delivery = Delivery::Stream { bytes: Bytes::new(readable) };
        let held_since = came_at.min(self.woke_at);
        let begun = self.frames.as_ref().map_or(&[][..], Frames::begun);
        let data = &self.buffer[..count];
        Some(Read { delivery, came_at: Some(came_at), held_since: Some(held_since), begun, data })
    }

    /// Returns [`Bytes::MAX`] if the socket takes bytes now, otherwise zero. The socket may then take only a
    /// part of a message, and the application keeps the rest. If the answer is zero, `epoll` reports when the
    /// socket has room again, because the kernel's `tcp_poll` asks for that event when it finds no room.
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
            ConnectionState::Idle if self.dial.is_some() => Instant::from_nanos(self.spec.start_ns),
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
        if self.state == ConnectionState::Idle
            && let Err(error) = self.connect()
        {
            self.fail(&error);
        }
    }

    fn discard(&mut self) {
        for _ in 0..Self::MAX_TURN {
            if self.receive(READ_SIZE).is_none() {
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
        let Opening { socket: made_in, dialled, established } = self.opening;
        totals.socket_ns = made_in.map(Duration::as_nanos);
        totals.handshake_ns = dialled.zip(established).map(|(from, to)| to.since(from).as_nanos());
        let Some(socket) = &self.socket else { return };
        let cc = rustix::net::sockopt::tcp_congestion(socket).ok();
        totals.cc = cc.map(|cc| cc.trim_end_matches('\0').to_owned());
        let is_v6 = socket.local_addr().is_ok_and(|address| address.is_ipv6());
        totals.headers.path_mtu = path_mtu(socket.as_fd(), is_v6).ok();
        totals.multipath = self.multipath;
        if let (Ok(info), ConnectionState::Open | ConnectionState::Closed) =
            (tcp_info(socket.as_fd()), self.state)
        {
            let segments = self.segments(socket, &info);
            totals.data_packets = segments.map(|(all, _)| all);
            totals.takes_marks = Some(info.takes_marks);
            // No segment was marked with CE before the connection opened, because a SYN is not ECN-capable
            // (RFC 3168 §6.1.1). So nothing is subtracted.
            totals.echoed = info.delivered_ce.map(u64::from);
            totals.held.receiver_window_ns = info.receiver_limited_us.unwrap_or(0).saturating_mul(1000);
            totals.retransmissions = segments.map(|(_, resent)| resent);
            // The kernel shows only the timeouts of the first path. With several paths they are unknown.
            let has_one_path = self.multipath.is_none_or(|multipath| multipath.fell_back);
            totals.timeouts = info
                .total_rto
                .filter(|_| has_one_path)
                .map(|total| u64::from(total.wrapping_sub(self.at_open.total_rto.unwrap_or(0))));
        }
    }

    fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Reads the state of an open connection at each regular interval. It also updates `multipath`.
    fn sample(&mut self, occasion: Occasion) -> Option<(Observation, Instant)> {
        if occasion != Occasion::Interval || self.state != ConnectionState::Open {
            return None;
        }
        self.update_multipath();
        // An observation without a congestion window is empty: the system call has failed.
        let observation = Some(self.observe()).filter(|observation| observation.cwnd.is_some())?;
        Some((observation, self.clock.now()))
    }
}

impl TcpChannel {
    /// Makes the channel of the end at `place` of the flow `spec`. The numbers of the flow's messages are
    /// below `bound`.
    pub(super) fn new(spec: &FlowSpec, place: &EndPlace, bound: u64, common: &EndContext) -> Self {
        Self {
            spec: spec.clone(),
            is_sender: place.is_sender,
            clock: common.clock,
            socket: None,
            state: ConnectionState::Idle,
            dial: None,
            opening: Opening::default(),
            frames: Frames::new(spec, place, bound, common),
            unread: Vec::new(),
            buffer: Vec::new(),
            is_readable: false,
            woke_at: Instant::MAX,
            sent: 0,
            received: 0,
            was_open: false,
            at_open: TcpInfo::default(),
            stamp_trust: StampTrust::default(),
            multipath: None,
            failure: None,
        }
    }

    /// Sets the address that a client's end connects to when the flow starts.
    pub(super) fn set_dial(&mut self, dial: Dial) {
        self.dial = Some(dial);
    }

    /// Takes over the open connection `socket`, and the bytes `unread` that were read from it together with
    /// the opening line. Returns true if it takes the connection. If this end already has a connection, the
    /// new one is closed and the answer is false.
    ///
    /// # Errors
    /// Returns the system's error if `epoll` refuses the connection.
    pub(super) fn adopt(
        &mut self,
        socket: TcpStream,
        unread: &[u8],
        epoll: &OwnedFd,
        index: u64,
    ) -> io::Result<bool> {
        if self.state != ConnectionState::Idle {
            return Ok(false);
        }
        watch(epoll, &socket, index)?;
        self.socket = Some(socket);
        unread.clone_into(&mut self.unread);
        self.open();
        Ok(true)
    }

    /// Handles a change of the socket's readiness, for which the calling thread woke up at `woke_at`. Returns
    /// true if the connection is open.
    pub(super) fn handle_ready(&mut self, woke_at: Instant) -> bool {
        (self.woke_at, self.is_readable) = (woke_at, true);
        if self.state == ConnectionState::Connecting
            && let Err(error) = self.finish_connecting()
        {
            self.fail(&error);
        }
        self.state == ConnectionState::Open
    }

    /// Returns true if the connection ended before its time and the workload follows a clock. The channel
    /// then still counts as open, so that the application writes each message that falls due. Each of these
    /// messages counts as never sent. Otherwise they would count as never due.
    fn counts_as_never_sent(&self) -> bool {
        self.state == ConnectionState::Closed && self.was_open && self.spec.is_clocked()
    }

    /// Returns true if the kernel shall stamp the segments that arrive. It does so at both ends of an echo
    /// flow, because the time that a host holds a message would otherwise count as a part of the round trip.
    ///
    /// A connection that may have several paths has no stamps. On it a segment may wait for an earlier
    /// segment on another path, and the stamp does not include that wait. Its bytes count as arrived when
    /// they are read.
    const fn wants_stamps(&self) -> bool {
        self.spec.has_echo() && !self.spec.transport.is_multipath()
    }

    /// Reads how many paths the connection has now, if the flow uses Multipath TCP. Keeps the largest number.
    fn update_multipath(&mut self) {
        let Some(socket) = self.socket.as_ref().filter(|_| self.spec.transport.is_multipath()) else {
            return;
        };
        let Ok(Multipath { fell_back, subflows }) = multipath(socket.as_fd()) else { return };
        let most = self.multipath.map_or(0, |multipath| multipath.subflows);
        self.multipath = Some(Multipath { fell_back, subflows: subflows.max(most) });
    }

    /// Counts the segments with data and the retransmissions of all paths since the connection opened.
    /// Returns `None` if one of the paths is gone, because the kernel has then forgotten that path's
    /// counters.
    fn segments(&self, socket: &TcpStream, first: &TcpInfo) -> Option<(u64, u64)> {
        let all = match self.multipath {
            None | Some(Multipath { fell_back: true, .. }) => vec![*first],
            Some(Multipath { subflows: most, .. }) => {
                let all = subflows(socket.as_fd()).ok()?;
                (all.len() >= most as usize).then_some(all)?
            }
        };
        let sum = |counter: fn(&TcpInfo) -> u32| all.iter().map(|info| u64::from(counter(info))).sum::<u64>();
        let since_open = |now: u64, at_open: u32| now.saturating_sub(u64::from(at_open));
        Some((
            since_open(sum(|info| info.data_segs_out), self.at_open.data_segs_out),
            since_open(sum(|info| info.total_retrans), self.at_open.total_retrans),
        ))
    }

    /// Begins to connect, if this end has an address to connect to. A server's end has none.
    fn connect(&mut self) -> io::Result<()> {
        let Some(dial) = &self.dial else { return Ok(()) };
        let begun = self.clock.now();
        let socket = dial.open(&self.spec, self.is_sender)?;
        let dialled = self.clock.now();
        self.socket = Some(dial.connect(socket)?);
        self.state = ConnectionState::Connecting;
        self.opening.socket = Some(dialled.since(begun));
        self.opening.dialled = Some(dialled);
        Ok(())
    }

    /// Notes that somebody else connects this end's socket now.
    pub(super) fn note_dialled(&mut self) {
        self.opening.dialled = Some(self.clock.now());
    }

    /// Sends the opening line if the connection is established. Does nothing while the handshake goes on.
    fn finish_connecting(&mut self) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Ok(()) };
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        // A socket has no peer before its handshake is complete.
        if socket.peer_addr().is_err() {
            return Ok(());
        }
        let opening = self.dial.as_ref().map_or(&[][..], |dial| &dial.opening);
        // With MORE the kernel keeps the opening line until the first message follows, at most 200 ms
        // (tcp(7), TCP_CORK).
        let shares_segment = self.is_sender && self.first_message_fits_behind(opening.len());
        let flags = if shares_segment { SendFlags::MORE } else { SendFlags::empty() };
        if rustix::net::send(socket, opening, flags)? != opening.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.open();
        Ok(())
    }

    /// Returns true if the workload's largest message fits into one segment behind an opening line of
    /// `opening_bytes`. The first message may be the largest one.
    fn first_message_fits_behind(&self, opening_bytes: usize) -> bool {
        let message = self.spec.workload.sizes().map_or(u64::MAX, |sizes| sizes.largest().get());
        let uses_nagle = matches!(self.spec.transport, TransportSpec::Tcp { nodelay: false, .. });
        let limit = if uses_nagle { FULL_SEGMENT } else { SMALL_SEGMENT };
        message.saturating_add(opening_bytes as u64) <= limit
    }

    /// Makes the channel ready for reads and writes, because the connection is established.
    fn open(&mut self) {
        if let Some(socket) = &self.socket {
            self.at_open = tcp_info(socket.as_fd()).unwrap_or_default();
            if self.wants_stamps() {
                // The error is ignored: without stamps a message counts as arrived when it is read.
                let _ = switch_on(socket.as_fd(), SocketSwitch::KernelStamps);
            }
        }
        self.update_multipath();
        self.buffer = vec![0; READ_SIZE];
        self.was_open = true;
        self.is_readable = true;
        self.opening.established = Some(self.clock.now());
        self.state = ConnectionState::Open;
    }

    /// Reads at most `limit` bytes into the buffer. It takes the bytes that came with the opening line first,
    /// and reads the socket when none of them are left. Returns the number of bytes, and when the last byte
    /// came.
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

    /// Reads at most `limit` bytes from the socket into the buffer. Returns the number of bytes, and when the
    /// last byte came. Returns `None` if the socket is empty or the connection has ended.
    fn receive(&mut self, limit: usize) -> Option<(usize, Instant)> {
        if !self.is_readable || self.state != ConnectionState::Open {
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

    /// Returns the earliest time at which the byte that was read last could have been read. That is the time
    /// of the kernel's stamp, if the stamp can be trusted ([`StampTrust`]), and otherwise now.
    fn arrival(&mut self, stamp_ns: Option<i64>) -> Instant {
        let now = self.clock.now();
        let (Some(stamp_ns), Some(socket)) = (stamp_ns, &self.socket) else { return now };
        let out_of_order = tcp_info(socket.as_fd()).ok().and_then(|info| info.out_of_order);
        let mut came_at = now;
        if out_of_order == Some(self.stamp_trust.out_of_order) {
            let stamp = self.clock.stamped(Some(stamp_ns));
            if stamp > self.stamp_trust.grew_at {
                came_at = stamp.min(now);
            }
        } else {
            (self.stamp_trust.out_of_order, self.stamp_trust.grew_at) = (out_of_order.unwrap_or(0), now);
        }
        // The bytes of a stream come in order, also if the wall clock of the stamps was set back.
        self.stamp_trust.came_at = self.stamp_trust.came_at.max(came_at);
        self.stamp_trust.came_at
    }

    /// Returns true if this end opened the connection and the far end has acknowledged none of its bytes.
    fn nothing_arrived(&self) -> bool {
        let (Some(dial), Some(socket)) = (&self.dial, &self.socket) else { return false };
        let all = self.sent + dial.opening.len() as u64;
        send_queue(socket.as_fd()).is_ok_and(|unacknowledged| unacknowledged >= all)
    }

    /// Closes the channel because of `error`. The first error of a channel becomes its failure.
    fn fail(&mut self, error: &io::Error) {
        self.state = ConnectionState::Closed;
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
