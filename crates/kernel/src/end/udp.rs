//! A flow's channel over the kernel's UDP.
//!
//! ```text
//!   the sending end                                 the receiving end
//!   write ─► Outgoing ─► UdpRoute ────────────────► ReceivedDatagrams ─► read
//!   read ◄─ ReceivedDatagrams ◄──────────────────── UdpRoute ◄─ echo ◄─ write
//! ```
//!
//! The lower line exists only if the flow has an echo: then the receiving end sends each message back.
//!
//! | field | sender | receiver | receiver that echoes |
//! | --- | --- | --- | --- |
//! | `role` | when it opens, when it tries again | - | - |
//! | `outgoing`, `sent`, `refusals`, `no_network` | the workload's messages | unused | the echoes |
//! | `received` | the echoes | the workload's messages | the same, and their bytes for the echo |
//!
//! - *route*: a socket and the address that it sends to.
//! - *train*: several datagrams that one system call sends. The kernel takes all of them or none.
//! - *leg*: one direction of a flow. Its *tap* keeps a row of the record for each message.
//!
//! **Errors of the send call.** With EAGAIN, ENOBUFS and EMSGSIZE the kernel has no room for a datagram, or
//! the datagram is too large. Its message is then refused for good. With ENETUNREACH, EPERM and the like
//! ([`SendFailure`]) there is no network for the message. The text of the error is counted in both cases.
//! ECONNREFUSED is an exception, because it reports an ICMP error of an earlier datagram
//! ([`UdpRoute::send`]).
//!
//! **Reading.** The UDP thread reads the datagrams of a prompt receiver and hands each datagram in. A slow
//! receiver has a socket of its own and reads it when its application is ready. Until then the datagrams wait
//! in the socket's buffer, and the kernel drops the datagrams for which the buffer has no room.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

use talkpath_flow::{Channel, FlowId, FlowTaps, Read, Side, Write, WriteOutcome};
use talkpath_measure::{Fate, LegTap};
use talkpath_units::{Bytes, Duration, Ecn, Instant};
use talkpath_wire::{Delivery, Observation};

use super::channel::{HostChannel, Occasion};
use super::context::EndContext;
use super::headers::HeaderCount;
use super::messages::{Incoming, Outgoing};
use super::place::EndPlace;
use super::route::{SendFailure, UdpRoute};
use super::train::{Train, Unsent};
use crate::ancillary::ecn;
use crate::clock::RunClock;
use crate::log::EndTotals;
use crate::progress::EndProgress;
use crate::spec::FlowSpec;
use crate::sys::{Received, ReceivedOne, receive_one, send_queue};
use crate::wire::{FILE_HEADER, MAX_UDP_PAYLOAD, read_header};

/// The largest number of bytes before a UDP header in a packet: Ethernet's header with two tags and IPv4's
/// header with all its options (14 + 8 + 60). An IPv6 header is shorter.
const MAX_HEADERS: usize = 82;
/// The time after which a sender that found no room tries again. We chose 250 us, which two full packets take
/// at 100 Mbps.
const RETRY: Duration = Duration::from_micros(250);
/// The size of a buffer that holds any datagram, bytes. The length in a UDP header has 16 bits (RFC 768).
const MAX_DATAGRAM: usize = 65_536;

/// A UDP flow's channel.
pub(super) struct UdpChannel {
    spec: FlowSpec,
    role: Role,
    clock: RunClock,
    /// The socket, and the address that datagrams go to. `None` until the flow's route is known.
    route: Option<UdpRoute>,
    /// Makes the bytes of each message that this end sends.
    outgoing: Outgoing,
    /// The number of messages that the kernel took.
    sent: u64,
    /// One more than the largest number of a message that left. An echo has the number of what it answers, so
    /// this is not how many left.
    next_seq: u64,
    /// The number of messages that the kernel refused, by the error's text.
    refusals: BTreeMap<String, u64>,
    /// The number of messages for which there was no network, by the error's text.
    no_network: BTreeMap<String, u64>,
    /// The datagrams that wait to leave by one system call. The train is empty unless the flow is a bulk
    /// flow.
    train: Train,
    received: ReceivedDatagrams,
}

/// What this end does with the workload's messages.
enum Role {
    /// It sends them.
    Sender(SenderTimers),
    /// It reads them.
    Receiver,
    /// It reads them and sends each one back.
    Echo,
}

/// When the sending end acts without an input.
struct SenderTimers {
    /// When the flow starts and messages are taken. `None` once that time has come.
    opens_at: Option<Instant>,
    /// When a bulk workload tries again to fill the socket. `None` if the socket had room at the last try.
    retry_at: Option<Instant>,
}

/// The datagrams that this end has received.
struct ReceivedDatagrams {
    /// Tells which message a datagram carries, and counts each message once.
    messages: Incoming,
    /// The message that was handed in and is not yet read by the application.
    unread: Option<Arrived>,
    /// The bytes of the latest datagram. Empty if neither an echo nor a file needs them.
    bytes: Vec<u8>,
    /// The number of the message in `bytes`.
    message_in_bytes: Option<u64>,
    /// True if this end reads the socket by itself (a slow receiver), false if the UDP thread hands datagrams
    /// in.
    reads_socket: bool,
    /// The number of datagrams that arrived marked.
    marked: u64,
    headers: HeaderCount,
}

/// A message that has arrived.
#[derive(Clone, Copy)]
struct Arrived {
    seq: u64,
    /// The size of the datagram, bytes.
    size: usize,
    /// When the kernel received the datagram. `None` for a slow receiver, because the delay of its messages
    /// ends when the application reads them.
    received_at: Option<Instant>,
}

impl Channel for UdpChannel {
    const MAX_TURN: usize = 64;

    /// Returns the time now. The beginning of the turn would be too early, because each datagram of a turn
    /// takes time.
    fn now(&mut self, _began: Instant) -> Instant {
        self.clock.now()
    }

    /// Returns true from the flow's start on. The receiving end is always open, because UDP has no
    /// connection.
    fn is_open(&self) -> bool {
        match &self.role {
            Role::Sender(timers) => timers.opens_at.is_none(),
            Role::Receiver | Role::Echo => true,
        }
    }

    /// Returns the flow's start, because messages are due from then on. `now` is later if this host woke up
    /// late.
    fn opened_at(&self, now: Instant) -> Instant {
        now.min(Instant::from_nanos(self.spec.start_ns))
    }

    /// Sends the message as one datagram, alone or in a train. The message is refused if the kernel refuses
    /// the datagram.
    fn write(&mut self, write: &Write, _now: Instant) -> WriteOutcome {
        let message = write.message;
        // An echo carries the bytes of the message that it answers, unless a later message has replaced them.
        let answered = match self.role {
            Role::Echo => self.received.bytes_of(message.seq, message.size),
            Role::Sender(_) | Role::Receiver => None,
        };
        let payload = match answered {
            Some(bytes) => self.outgoing.echo(bytes),
            None => self.outgoing.fill(&self.spec, message.size.get(), message.seq),
        };
        let result = match &self.route {
            // The message counts as sent now. If the kernel refuses the train, `depart` corrects the count.
            Some(route) if self.train.takes(payload.len() as u64) => {
                self.train.push(message.seq, payload, route);
                Ok(())
            }
            Some(route) => route.send(payload),
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        match result {
            Ok(()) => {
                self.sent += 1;
                self.next_seq = self.next_seq.max(message.seq.saturating_add(1));
                WriteOutcome::Taken(message.size)
            }
            Err(why) => {
                let failure = SendFailure::of(&why);
                self.note_failure(failure, why.to_string());
                failure.outcome()
            }
        }
    }

    /// Returns the message that was handed in. A slow receiver reads the next message from its socket.
    fn read(&mut self, _flow: FlowId, _limit: Bytes, _now: Instant) -> Option<Read<'_>> {
        let handed_in = self.received.unread.take();
        let Arrived { seq, size, received_at } = match handed_in {
            Some(arrived) => arrived,
            None => self.received.read_socket(&self.spec, self.route.as_ref()?, self.clock)?,
        };
        // Each message counts once, even if its datagram was duplicated.
        self.received.messages.note(seq);
        // In a flow that carries a file, the file's bytes follow the header. In all others the rest of a
        // message is filling without meaning.
        let data = self.received.bytes.get(FILE_HEADER as usize..size).unwrap_or_default();
        let delivery = Delivery::Message { seq, size: Bytes::new(size as u64) };
        Some(Read { delivery, came_at: received_at, held_since: None, begun: &[], data })
    }

    /// Returns [`MAX_UDP_PAYLOAD`] if the socket takes another datagram now, otherwise zero. A bulk workload
    /// writes until there is no room. Then the sender's timer makes it try again after [`RETRY`].
    ///
    /// The kernel takes a whole train if it has any room. So only the first message of a train checks for
    /// room.
    fn writable(&mut self, _flow: FlowId) -> Bytes {
        if self.train.is_joinable() || self.route.as_ref().is_some_and(UdpRoute::is_writable) {
            return Bytes::new(MAX_UDP_PAYLOAD);
        }
        if let Role::Sender(timers) = &mut self.role {
            timers.retry_at = Some(self.clock.now().saturating_add(RETRY));
        }
        Bytes::ZERO
    }

    /// Does nothing, because a datagram leaves when it is written, or with its train in `depart`.
    fn flush(&mut self, _flow: FlowId, _side: Side, _taps: &mut FlowTaps, _now: Instant) {}

    /// Returns the time at which the sender opens, and after that the time at which it tries again. A
    /// receiver has no timers.
    fn poll_timeout(&self) -> Instant {
        match &self.role {
            Role::Sender(timers) => timers.opens_at.or(timers.retry_at).unwrap_or(Instant::MAX),
            Role::Receiver | Role::Echo => Instant::MAX,
        }
    }

    /// Returns the number of bytes in the socket's send buffer.
    fn observe(&self) -> Observation {
        let queued = self.route.as_ref().and_then(|route| send_queue(route.socket.as_fd()).ok());
        Observation { send_buffer: Bytes::new(queued.unwrap_or(0)), ..Observation::default() }
    }
}

impl HostChannel for UdpChannel {
    fn set_clock(&mut self, clock: RunClock) {
        self.clock = clock;
    }

    /// Starts the flow, or lets a bulk workload try again. The application's turn follows in both cases.
    fn handle_timeout(&mut self, now: Instant) {
        if let Role::Sender(timers) = &mut self.role {
            timers.retry_at = None;
            if timers.opens_at.is_some_and(|at| at <= now) {
                timers.opens_at = None;
            }
        }
    }

    fn progress(&self, has_written: bool, _is_over: bool) -> EndProgress {
        EndProgress { is_done: has_written, sent: self.sent, received: self.received.messages.unique() }
    }

    fn paid_rows(&self) -> u64 {
        self.received.messages.paid_rows()
    }

    fn count(&self, totals: &mut EndTotals) {
        totals.data_packets = Some(self.sent);
        totals.refusals.clone_from(&self.refusals);
        totals.gap_ns = self.received.messages.gap().map(Duration::as_nanos);
        totals.no_network.clone_from(&self.no_network);
        let takes_marks = self.spec.transport.sets_ect();
        totals.takes_marks = Some(takes_marks);
        totals.marked =
            Some(self.received.marked).filter(|_| takes_marks && self.received.headers.are_whole());
        let path_mtu = self.route.as_ref().and_then(UdpRoute::path_mtu);
        totals.headers = self.received.headers.figures(path_mtu);
    }

    /// Does nothing, because the next datagram replaces a datagram that nobody read.
    fn discard(&mut self) {}

    /// Returns `None`, because UDP has no connection that could fail.
    fn take_failure(&mut self) -> Option<String> {
        None
    }

    /// Returns the same as `is_open`, because UDP has no connection that could close.
    fn was_open(&self) -> bool {
        self.is_open()
    }

    /// Samples the send buffer of a bulk sender each time its timer expires. Senders that follow a clock
    /// hardly fill the buffer, so they are not sampled.
    fn sample(&mut self, occasion: Occasion) -> Option<(Observation, Instant)> {
        let is_bulk_sender = matches!(self.role, Role::Sender(_)) && !self.spec.is_clocked();
        let is_sampled = is_bulk_sender && occasion == Occasion::Timeout;
        is_sampled.then(|| (self.observe(), self.clock.now()))
    }

    fn token(&self) -> Option<u32> {
        Some(self.outgoing.token())
    }

    fn set_route(&mut self, route: UdpRoute) {
        self.route = Some(route);
    }

    /// Handles a datagram that the UDP thread received. Returns false if it carries no message of this flow.
    fn handle_datagram(&mut self, datagram: &Received<'_>, _wants_data: bool) -> bool {
        let payload = datagram.payload;
        let received_at = self.clock.stamped(datagram.stamp_ns);
        let Some(seq) = self.received.messages.number_in(&self.spec, payload, received_at) else {
            return false;
        };
        // The bytes are kept only where they are needed: for an echo, and for a file.
        if matches!(self.role, Role::Echo) || self.spec.file.is_some() {
            payload.clone_into(&mut self.received.bytes);
            self.received.message_in_bytes = Some(seq);
        }
        self.received.marked += u64::from(datagram.ecn() == Ecn::Ce);
        self.received.headers.note_datagram(datagram);
        let received_at = Some(received_at);
        self.received.unread = Some(Arrived { seq, size: payload.len(), received_at });
        true
    }
}

impl UdpChannel {
    /// Makes the channel at `place`. The numbers of the flow's messages are below `bound`. A datagram with
    /// another number is not of this flow.
    pub(super) fn new(spec: &FlowSpec, place: &EndPlace, bound: u64, common: &EndContext) -> Self {
        let opens_at = Some(Instant::from_nanos(spec.start_ns));
        let role = match (place.is_sender, spec.echo_per_read) {
            (true, _) => Role::Sender(SenderTimers { opens_at, retry_at: None }),
            (false, None) => Role::Receiver,
            (false, Some(_)) => Role::Echo,
        };
        Self {
            spec: spec.clone(),
            role,
            clock: common.clock,
            route: None,
            outgoing: Outgoing::new(place),
            sent: 0,
            next_seq: 0,
            refusals: BTreeMap::new(),
            no_network: BTreeMap::new(),
            // A clocked workload sends each message at its own time, and the emulator takes packets one by
            // one. Only other senders have trains.
            train: Train::new(place.is_sender && place.has_trains && !spec.is_clocked()),
            received: ReceivedDatagrams {
                messages: Incoming::new(spec, place, bound, common),
                unread: None,
                bytes: Vec::new(),
                message_in_bytes: None,
                reads_socket: false,
                marked: 0,
                headers: HeaderCount::new(),
            },
        }
    }

    /// Makes this end send over `route`, and read the route's socket by itself.
    pub(super) fn read_from(&mut self, route: UdpRoute) {
        self.route = Some(route);
        self.received.reads_socket = true;
        self.received.bytes = vec![0; MAX_DATAGRAM];
    }

    /// Sends the train, at the end of the application's turn. All its messages were counted as sent when they
    /// were written. Those that the kernel does not take are taken back.
    pub(super) fn depart(&mut self, tap: Option<&mut LegTap>) {
        // An end without a tap writes no messages, so it has no train.
        let (Some(route), Some(tap)) = (&self.route, tap) else { return };
        self.train.leave(route);
        for Unsent { seq, failure, why } in self.train.take_unsent() {
            self.sent -= 1;
            self.note_failure(failure, why);
            match failure {
                SendFailure::NoNetwork => tap.on_given_back(seq, Fate::NoNetwork),
                SendFailure::Refused | SendFailure::NotOpen => tap.on_given_back(seq, Fate::Refused),
            }
        }
    }

    /// Empties the socket of a slow receiver, and returns the numbers of the messages in it. The application
    /// never read them, so they are not counted as received.
    pub(super) fn drain_socket(&mut self) -> Vec<u64> {
        let mut unread = Vec::new();
        let Some(route) = &self.route else { return unread };
        while let Some(arrived) = self.received.read_socket(&self.spec, route, self.clock) {
            self.received.messages.expect_after(arrived.seq);
            unread.push(arrived.seq);
        }
        unread
    }

    /// Returns the number of the message in a packet that left this host, and the time at which it left.
    /// Returns `None` for a transfer.
    pub(super) fn sent_message(&self, packet: &[u8], stamp_ns: Option<i64>) -> Option<(u64, Instant)> {
        let payload = match self.spec.constant_size() {
            // The message is the last bytes of the packet, whatever headers precede it.
            Some(size) => {
                let header_bytes = packet.len().checked_sub(usize::try_from(size).ok()?)?;
                packet.split_at_checked(header_bytes)?.1
            }
            None if self.spec.workload.has_drawn_sizes() => udp_payload(packet, self.outgoing.token())?,
            None => return None,
        };
        // The header has the low bits of the number, and the number is near that of the newest message.
        let seq = read_header(payload, self.outgoing.token(), self.next_seq)?;
        Some((seq, self.clock.stamped(Some(stamp_ns?))))
    }

    /// Counts a message that the kernel did not take.
    fn note_failure(&mut self, failure: SendFailure, why: String) {
        let counts = match failure {
            SendFailure::Refused => &mut self.refusals,
            SendFailure::NoNetwork => &mut self.no_network,
            // The flow had no route yet. The time until its opening shows that, so nothing is counted.
            SendFailure::NotOpen => return,
        };
        *counts.entry(why).or_default() += 1;
    }
}

impl ReceivedDatagrams {
    /// Returns the bytes of message `seq`, which has `size` bytes, if the latest datagram carried the
    /// message.
    fn bytes_of(&mut self, seq: u64, size: Bytes) -> Option<&mut [u8]> {
        let size = usize::try_from(size.get()).ok()?;
        self.bytes.get_mut(..size).filter(|_| self.message_in_bytes == Some(seq))
    }

    /// Reads the next message from the socket, if this end reads the socket by itself.
    fn read_socket(&mut self, spec: &FlowSpec, route: &UdpRoute, clock: RunClock) -> Option<Arrived> {
        if !self.reads_socket {
            return None;
        }
        loop {
            match receive_one(route.socket.as_fd(), &mut self.bytes) {
                Ok(ReceivedOne { count: size, tos, ttl, .. }) => {
                    self.message_in_bytes = self.messages.number_in(spec, &self.bytes[..size], clock.now());
                    if let Some(seq) = self.message_in_bytes {
                        self.marked += u64::from(tos.map(ecn) == Some(Ecn::Ce));
                        self.headers.note(tos, ttl);
                        return Some(Arrived { seq, size, received_at: None });
                    }
                }
                // An ICMP error for a datagram that this end sent earlier. Reading the error clears it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

/// Finds the UDP payload in a packet with all headers. The payload begins with `token`, and the UDP header
/// before it says that the datagram reaches to the packet's end (RFC 768).
fn udp_payload(packet: &[u8], token: u32) -> Option<&[u8]> {
    (0..=packet.len().min(MAX_HEADERS)).find_map(|begin| {
        let datagram = packet.get(begin..)?;
        let (header, payload) = datagram.split_first_chunk::<8>()?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        (length == datagram.len() && payload.starts_with(&token.to_be_bytes())).then_some(payload)
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::Arc;

    use talkpath_model::WorkloadConfig;
    use talkpath_wire::Message;

    use super::*;
    use crate::end::fixtures::{UDP, context, echoing, place};
    use crate::end::pair::datagram;

    /// The echoing end of a call, and the socket of the other end.
    fn echoing_end() -> (UdpChannel, UdpSocket) {
        let spec = echoing(UDP, WorkloadConfig::G711);
        let mut channel = UdpChannel::new(&spec, &place(false), 100, &context(0, 100));
        let [own, peer] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        own.connect(peer.local_addr().unwrap()).unwrap();
        peer.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        channel.set_route(UdpRoute { socket: Arc::new(own), unconnected: None });
        (channel, peer)
    }

    fn write(channel: &mut UdpChannel, seq: u64, size: u64) -> WriteOutcome {
        let message = Message { seq, size: Bytes::new(size), due: Instant::ZERO };
        let flow = FlowId::default();
        let write = Write { flow, message, is_begun: false, written: Bytes::ZERO, expires: None };
        channel.write(&write, Instant::ZERO)
    }

    /// RFC 768 and RFC 791: 65,535 - 20 - 8 bytes of payload at most. A part of a message is no message.
    #[test]
    fn a_message_that_no_datagram_holds_is_refused_and_not_cut() {
        let (mut channel, peer) = echoing_end();
        assert_eq!(write(&mut channel, 0, MAX_UDP_PAYLOAD + 1), WriteOutcome::Refused);
        assert_eq!((channel.sent, channel.refusals.values().sum::<u64>()), (0, 1));
        assert_eq!(write(&mut channel, 1, 160), WriteOutcome::Taken(Bytes::new(160)));
        assert_eq!(peer.recv(&mut [0; 200]).unwrap(), 160, "nothing left before");
    }

    /// A second message has arrived before the first is answered: the echo is of the first all the same.
    #[test]
    fn an_echo_carries_no_other_messages_bytes() {
        let (mut channel, peer) = echoing_end();
        let mut payload = [0; 160];
        for seq in [3, 4] {
            crate::wire::write_header(&mut payload, 7, seq);
            payload[159] = seq as u8;
            assert!(channel.handle_datagram(&datagram(&payload), false));
            if seq == 3 {
                channel.read(FlowId::default(), Bytes::MAX, Instant::ZERO).unwrap();
            }
        }
        for (seq, last_byte) in [(4, Some(4)), (3, None)] {
            write(&mut channel, seq, 160);
            let mut echo = [0; 200];
            let size = peer.recv(&mut echo).unwrap();
            assert_eq!(read_header(&echo[..size], 7, 3), Some(seq));
            assert!(last_byte.is_none_or(|byte| echo[159] == byte), "it is the message's own");
        }
    }

    /// RFC 768: ports, length, checksum.
    #[test]
    fn a_sent_message_of_any_size_is_found_behind_the_headers_of_its_packet() {
        for (headers, size) in [(0, 8), (20, 8), (34, 1200), (42, 65_507), (82 - 1, 16), (82, 16)] {
            let mut message = crate::wire::filling(size);
            crate::wire::write_header(&mut message, 7, 5);
            let length = (size as u16 + 8).to_be_bytes();
            let mut packet = vec![0x45; headers];
            packet.extend_from_slice(&[0, 9, 0, 9, length[0], length[1], 0, 0]);
            packet.extend_from_slice(&message);
            assert!(udp_payload(&packet, 7) == Some(&message), "{size} B behind {headers} B");
            assert_eq!(udp_payload(&packet, 8), None, "another flow's");
        }
    }
}
