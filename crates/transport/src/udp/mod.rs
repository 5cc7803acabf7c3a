//! UDP (RFC 768): each message is a datagram, nothing is acknowledged or repeated, nothing waits to be sent.
//!
//! The receiving socket holds what the application has not read; a datagram that finds no room is dropped,
//! counted and named.
//!
//! ```text
//!   Linux (__udp_enqueue_schedule_skb, udp_rmem_release; 6.18):
//!     room     twice the value given to SO_RCVBUF, in memory
//!     taken    if its memory fits beside what is charged, or nothing is
//!     reader   takes over all that waits, and reads it one by one
//!     charged  until a quarter of the room has been read, or all that the reader took over
//!   others:    payload, until it is read
//! ```
//!
//! Left out: checksums (nothing here corrupts packets), ports and ICMP; the system's bound on all sockets
//! together (udp_mem); what a socket takes beyond its room in kernels before 6.16, one datagram.

use std::collections::VecDeque;

use talkpath_config::{Stack, UdpConfig};
use talkpath_units::{Bytes, Ecn, Instant};
use talkpath_wire::{
    Counters, Datagram, Delivery, EcnCounters, HeldTimes, Message, Observation, Packet, PayloadRange,
    Refused, Transmit, Transport,
};

use crate::skb::{self, Heads};

/// One end of a UDP flow. It needs no opening, and closing it changes nothing.
#[derive(Clone, Debug)]
pub struct Udp {
    /// Written and not yet polled: emptied at every turn of the driver.
    outbox: VecDeque<Datagram>,
    /// Arrived and unread.
    inbox: VecDeque<Datagram>,
    /// Payload bytes in `outbox`.
    outbox_size: Bytes,
    socket: Socket,
    /// Numbers of datagrams that found no room, not yet polled.
    dropped: VecDeque<u64>,
    counters: Counters,
}

/// How much the receiving socket holds.
#[derive(Clone, Copy, Debug)]
struct Socket {
    /// The path's MTU and the kernel's heads, if memory is charged (Linux), and not payload.
    memory: Option<(u64, Heads)>,
    room: u64,
    /// sk_rmem_alloc.
    charged: u64,
    /// Read, and charged still (forward_deficit).
    read: u64,
    /// What the reader has taken over and not read (reader_queue), datagrams.
    taken_over: usize,
}

impl Udp {
    /// An end over a path whose packets are of at most `path_mtu`; `receive_buffer` takes the place of
    /// `config`'s socket buffer.
    pub fn new(config: &UdpConfig, path_mtu: Bytes, receive_buffer: Option<Bytes>) -> Self {
        let asked = receive_buffer.unwrap_or(config.socket_buffer).get();
        Self {
            outbox: VecDeque::new(),
            inbox: VecDeque::new(),
            outbox_size: Bytes::ZERO,
            socket: if config.stack == Stack::Linux {
                let room = asked.saturating_mul(2).max(SOCK_MIN_RCVBUF);
                let memory = Some((path_mtu.get(), Heads::new(config.small_head)));
                Socket { memory, ..Socket::payload(room) }
            } else {
                Socket::payload(asked)
            },
            dropped: VecDeque::new(),
            counters: Counters {
                data_packets: 0,
                retransmissions: 0,
                timeouts: Some(0),
                fast_retransmits: 0,
                socket_buffer_drops: 0,
                send_queue_drops: 0,
                held: HeldTimes::default(),
                ecn: EcnCounters { capable: config.ecn, marked: 0, echoed: None },
            },
        }
    }
}

impl Socket {
    const fn payload(room: u64) -> Self {
        Self { memory: None, room, charged: 0, read: 0, taken_over: 0 }
    }

    fn charge(&self, payload: u32) -> u64 {
        let payload = u64::from(payload);
        self.memory.map_or(payload, |(mtu, heads)| skb::datagram(payload, mtu, heads))
    }

    /// Whether a datagram that has come finds room, and then takes it.
    fn take(&mut self, payload: u32) -> bool {
        let charged = self.charged.saturating_add(self.charge(payload));
        let fits = charged <= self.room || (self.charged == 0 && self.memory.is_some());
        if fits {
            self.charged = charged;
        }
        fits
    }

    /// A datagram is read, with `left` waiting behind it.
    fn release(&mut self, payload: u32, left: usize) {
        self.taken_over = self.taken_over.checked_sub(1).unwrap_or(left);
        self.read += self.charge(payload);
        if self.taken_over == 0 || self.memory.is_none() || self.read >= self.room / 4 {
            self.charged -= self.read;
            self.read = 0;
        }
    }
}

impl Transport for Udp {
    fn open(&mut self, _now: Instant) {}

    fn is_open(&self) -> bool {
        true
    }

    fn handle_message(&mut self, message: Message, _now: Instant) -> Result<(), Refused> {
        let payload = match u32::try_from(message.size.get()) {
            Ok(payload) if message.size <= LARGEST_DATAGRAM => payload,
            _ => return Err(Refused::TooLarge { limit: LARGEST_DATAGRAM }),
        };
        self.outbox.push_back(Datagram { seq: message.seq, payload });
        self.outbox_size += message.size;
        Ok(())
    }

    fn handle_packet(&mut self, packet: &Packet, ecn: Ecn, _now: Instant) {
        let &Packet::Udp(datagram) = packet else { return };
        if self.socket.take(datagram.payload) {
            self.inbox.push_back(datagram);
            self.counters.ecn.marked += u64::from(ecn == Ecn::Ce);
        } else {
            self.counters.socket_buffer_drops += 1;
            self.dropped.push_back(datagram.seq);
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn shutdown(&mut self, _now: Instant) {}

    #[inline]
    fn may_transmit(&self) -> bool {
        !self.outbox.is_empty()
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Transmit> {
        let datagram = self.outbox.pop_front()?;
        self.outbox_size -= Bytes::new(u64::from(datagram.payload));
        self.counters.data_packets += 1;
        let packet = Packet::Udp(datagram);
        Some(Transmit {
            wire_size: packet.wire_size().get() as u32,
            packet,
            ecn: if self.counters.ecn.capable { Ecn::Ect0 } else { Ecn::NotEct },
            payload: Some(PayloadRange::Message { seq: datagram.seq }),
            retransmission: false,
        })
    }

    /// A datagram is read whole, however small `limit` is; a `limit` of zero reads nothing.
    fn poll_delivery(&mut self, limit: Bytes, _now: Instant) -> Option<Delivery> {
        if limit == Bytes::ZERO {
            return None;
        }
        let datagram = self.inbox.pop_front()?;
        self.socket.release(datagram.payload, self.inbox.len());
        Some(Delivery::Message { seq: datagram.seq, size: Bytes::new(u64::from(datagram.payload)) })
    }

    fn poll_dropped(&mut self) -> Option<u64> {
        self.dropped.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The largest datagram: what is written leaves with the next poll.
    fn writable(&self) -> Bytes {
        LARGEST_DATAGRAM
    }

    fn observe(&self) -> Observation {
        Observation { send_buffer: self.outbox_size, ..Observation::default() }
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// An IPv4 packet of 65,535 bytes (RFC 791 §3.1) less its header and UDP's.
const LARGEST_DATAGRAM: Bytes = Bytes::new(65_507);
/// SOCK_MIN_RCVBUF: 2048 B and a struct sk_buff.
const SOCK_MIN_RCVBUF: u64 = 2048 + skb::SK_BUFF;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(seq: u64, size: u64) -> Message {
        Message { seq, size: Bytes::new(size), due: Instant::ZERO }
    }

    fn send(from: &mut Udp, to: &mut Udp, message: Message) {
        from.handle_message(message, Instant::ZERO).unwrap();
        while let Some(transmit) = from.poll_transmit(Instant::ZERO) {
            to.handle_packet(&transmit.packet, transmit.ecn, Instant::ZERO);
        }
    }

    fn end(stack: Stack, socket_buffer: u64) -> Udp {
        let config = UdpConfig { stack, socket_buffer: Bytes::new(socket_buffer), ..UdpConfig::LINUX };
        Udp::new(&config, Bytes::new(1500), None)
    }

    fn read(from: &mut Udp) -> Option<u64> {
        match from.poll_delivery(Bytes::MAX, Instant::ZERO)? {
            Delivery::Message { seq, .. } => Some(seq),
            Delivery::Stream { .. } => None,
        }
    }

    #[test]
    fn a_message_crosses_as_one_datagram() {
        let (mut sender, mut receiver) = (end(Stack::Linux, 106_496), end(Stack::Linux, 106_496));
        send(&mut sender, &mut receiver, message(3, 160));
        assert_eq!(
            receiver.poll_delivery(Bytes::MAX, Instant::ZERO),
            Some(Delivery::Message { seq: 3, size: Bytes::new(160) })
        );
        assert_eq!(receiver.poll_delivery(Bytes::MAX, Instant::ZERO), None);
        assert_eq!(sender.counters().data_packets, 1);
    }

    #[test]
    fn a_full_socket_buffer_drops_the_newcomer_and_names_it() {
        let (mut sender, mut receiver) = (end(Stack::Rfc, 320), end(Stack::Rfc, 320));
        for seq in 0..3 {
            send(&mut sender, &mut receiver, message(seq, 160));
        }
        assert_eq!(receiver.counters().socket_buffer_drops, 1);
        assert_eq!(receiver.poll_dropped(), Some(2));
        assert_eq!(receiver.poll_dropped(), None);
        assert_eq!(read(&mut receiver), Some(0));
        send(&mut sender, &mut receiver, message(3, 160));
        assert_eq!(receiver.poll_dropped(), None);
    }

    /// Linux 6.18: 24,000 B hold 18 datagrams of 250 B, 1280 B each.
    #[test]
    fn a_linux_socket_is_charged_for_memory_and_told_late_of_what_was_read() {
        let (mut sender, mut receiver) = (end(Stack::Linux, 12_000), end(Stack::Linux, 12_000));
        let mut next = 0;
        let mut taken = |receiver: &mut Udp, count: u64| {
            let before = receiver.counters().socket_buffer_drops;
            for _ in 0..count {
                send(&mut sender, receiver, message(next, 250));
                next += 1;
            }
            count - (receiver.counters().socket_buffer_drops - before)
        };
        assert_eq!(taken(&mut receiver, 25), 18);
        // Four of them are less than a quarter of the room, five are more.
        for seq in 0..4 {
            assert_eq!(read(&mut receiver), Some(seq));
            assert_eq!(taken(&mut receiver, 1), 0);
        }
        assert_eq!(read(&mut receiver), Some(4));
        assert_eq!(taken(&mut receiver, 6), 5);
        // The reader had taken 18 over; with the last of those everything is released.
        for seq in 5..18 {
            assert_eq!(read(&mut receiver), Some(seq));
        }
        assert_eq!(taken(&mut receiver, 20), 13);
    }

    #[test]
    fn an_empty_linux_socket_takes_any_datagram() {
        let (mut sender, mut receiver) = (end(Stack::Linux, 100), end(Stack::Linux, 100));
        send(&mut sender, &mut receiver, message(0, 5000));
        send(&mut sender, &mut receiver, message(1, 1));
        assert_eq!((read(&mut receiver), read(&mut receiver)), (Some(0), None));
        send(&mut sender, &mut receiver, message(2, 1));
        assert_eq!(read(&mut receiver), Some(2));
    }

    #[test]
    fn a_datagram_above_65507_bytes_is_refused() {
        let mut sender = end(Stack::Linux, 0);
        assert_eq!(sender.handle_message(message(0, 65_507), Instant::ZERO), Ok(()));
        for size in [65_508, u64::MAX] {
            assert_eq!(
                sender.handle_message(message(1, size), Instant::ZERO),
                Err(Refused::TooLarge { limit: Bytes::new(65_507) })
            );
        }
    }
}
