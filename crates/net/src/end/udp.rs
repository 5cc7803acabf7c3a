//! A flow's end on the kernel's UDP.
//!
//! Every datagram's own send error is recorded: EAGAIN and ENOBUFS (no room), EMSGSIZE and what else the kernel objects
//! to are refusals of that message. ECONNREFUSED is no answer to the datagram being sent but the news of an earlier ICMP
//! error on a connected socket: it is taken note of and the datagram sent again.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_units::{Duration, Instant};

use super::Base;
use super::messages::{Incoming, Outgoing};
use crate::log::Sample;
use crate::protocol::Progress;
use crate::sys::{send_from, send_queue};
use crate::wire::{FILE_HEADER, LARGEST_DATAGRAM, read_header};

/// A UDP flow's end.
pub(crate) struct Datagrams {
    route: Option<UdpRoute>,
    is_open: bool,
    /// A greedy workload waits for room until then.
    retry: Option<Instant>,
    outgoing: Outgoing,
    incoming: Incoming,
    taken: u64,
    /// Since when a greedy workload finds no room.
    blocked_since: Option<Instant>,
}

/// Where a flow's datagrams go.
#[derive(Clone)]
pub(crate) struct UdpRoute {
    /// The client's own connected socket, or the server's, shared by all flows.
    pub(crate) socket: Arc<UdpSocket>,
    /// For a socket that is not connected: from which of our addresses, to whom; and whether the socket is IPv6.
    pub(crate) unconnected: Option<(IpAddr, SocketAddr, bool)>,
}

impl UdpRoute {
    /// Sends one datagram without blocking.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn send(&self, payload: &[u8]) -> io::Result<()> {
        let send = || match self.unconnected {
            None => self.socket.send(payload),
            Some((from, to, is_v6)) => send_from(self.socket.as_fd(), is_v6, payload, from, to),
        };
        match send() {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => send().map(drop),
            result => result.map(drop),
        }
    }

    fn is_writable(&self) -> bool {
        let mut fds = [PollFd::new(&*self.socket, PollFlags::OUT)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
    }
}

impl Datagrams {
    pub(crate) fn new(token: u32, bound: u64) -> Self {
        Self {
            route: None,
            is_open: false,
            retry: None,
            outgoing: Outgoing::new(token),
            incoming: Incoming::new(token, bound),
            taken: 0,
            blocked_since: None,
        }
    }

    /// What this flow's datagrams carry.
    pub(crate) const fn token(&self) -> u32 {
        self.outgoing.token()
    }

    /// From now on datagrams go this way.
    pub(crate) fn set_route(&mut self, route: UdpRoute) {
        self.route = Some(route);
    }

    pub(crate) fn poll_timeout(&self, base: &Base) -> Option<Instant> {
        if !base.is_sender {
            None
        } else if self.is_open {
            self.retry.or(base.workload_timeout())
        } else {
            Some(Instant::from_nanos(base.spec.start_ns))
        }
    }

    pub(crate) fn handle_timeout(&mut self, base: &mut Base, now: Instant) {
        if !base.is_sender {
            return;
        }
        if !self.is_open && now >= Instant::from_nanos(base.spec.start_ns) {
            self.is_open = true;
            base.open_workload(now);
        }
        self.retry = None;
        for _ in 0..MOST_IN_A_TURN {
            // A greedy workload's message is due when there is room; a clocked one's is due whatever the room.
            let is_waiting =
                !base.spec.is_clocked() && !self.route.as_ref().is_some_and(UdpRoute::is_writable);
            let writable = if is_waiting { 0 } else { LARGEST_DATAGRAM };
            let Some((message, row)) = base.poll_message(writable, base.clock.now()) else {
                if is_waiting && !base.is_workload_finished() {
                    self.retry = Some(now.saturating_add(RETRY));
                    self.blocked_since.get_or_insert(now);
                }
                return self.sample(base);
            };
            if let Some(since) = self.blocked_since.take() {
                base.add_blocked(since, base.clock.now());
            }
            let size = message.size.get().min(LARGEST_DATAGRAM);
            let payload = self.outgoing.fill(&base.spec, size, message.seq);
            let sent = base.clock.now();
            let result = self
                .route
                .as_ref()
                .map_or(Err(io::ErrorKind::NotConnected.into()), |route| route.send(payload));
            self.note(base, row, sent, &result);
            base.on_paced(message.due, sent);
        }
        // The other flows have their turn first.
        self.retry = Some(base.clock.now());
        self.sample(base);
    }

    /// What of a greedy sender's datagrams the socket still holds.
    fn sample(&self, base: &mut Base) {
        let Some(route) = self.route.as_ref().filter(|_| !base.spec.is_clocked()) else { return };
        if let Ok(queued) = send_queue(route.socket.as_fd()) {
            let now = base.clock.now().as_nanos();
            base.log.on_sample(Sample(
                now,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                queued,
                u32::MAX,
                u64::MAX,
            ));
        }
    }

    /// A datagram of this flow: counted, and sent back where this end echoes.
    pub(crate) fn handle_datagram(&mut self, base: &mut Base, payload: &[u8], stamp_ns: Option<i64>) {
        let Some(seq) = self.incoming.number(&base.spec, payload) else { return };
        let stamp = base.clock.stamped(stamp_ns);
        if !base.log.on_arrival(seq, stamp) {
            return;
        }
        base.last_arrival = base.last_arrival.max(stamp);
        self.incoming.note(seq);
        if let Some(sink) = &mut base.sink {
            sink.on_piece(seq, payload.get(FILE_HEADER as usize..).unwrap_or_default());
        }
        if base.is_sender || base.spec.echo_per_read.is_none() {
            return;
        }
        let row = base.log.on_due(seq, payload.len() as u64, stamp);
        let sent = base.clock.now();
        let result =
            self.route.as_ref().map_or(Err(io::ErrorKind::NotConnected.into()), |route| route.send(payload));
        self.note(base, row, sent, &result);
    }

    /// A sent datagram, whatever headers it has: its payload is what it ends with.
    pub(crate) fn handle_sent(&self, base: &mut Base, packet: &[u8], stamp_ns: Option<i64>) {
        let size = base.spec.message_size().and_then(|size| usize::try_from(size).ok());
        let (Some(size), Some(_)) = (size, stamp_ns) else { return };
        let payload = packet.len().checked_sub(size).and_then(|begin| packet.get(begin..));
        if let Some(seq) = payload.and_then(|payload| read_header(payload, self.token(), self.taken)) {
            base.log.on_wire(seq, base.clock.stamped(stamp_ns));
        }
    }

    pub(crate) fn progress(&self, base: &Base) -> Progress {
        Progress { is_done: base.is_workload_finished(), sent: self.taken, received: self.incoming.unique() }
    }

    pub(crate) fn finish(&mut self, base: &mut Base, now: Instant) {
        if let Some(since) = self.blocked_since.take() {
            base.add_blocked(since, now);
        }
        base.log.totals.data_packets = Some(self.taken);
    }

    fn note(&mut self, base: &mut Base, row: Option<usize>, sent: Instant, result: &io::Result<()>) {
        let Some(row) = row else { return };
        match result {
            Ok(()) => {
                self.taken += 1;
                base.log.on_sent(row, sent);
            }
            Err(why) => base.log.on_refused(row, why),
        }
    }
}

/// Datagrams that a flow sends before another flow gets its turn (chosen: some 100 us of system calls).
const MOST_IN_A_TURN: usize = 64;
/// How soon a greedy sender looks again whether the socket has room (chosen: the time of two full packets at 100 Mbps).
const RETRY: Duration = Duration::from_micros(250);
