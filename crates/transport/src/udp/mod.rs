//! UDP (RFC 768): each message is a datagram, nothing is acknowledged or repeated, nothing waits to be sent.
//!
//! The receiving socket holds what the application has not read, up to a number of payload bytes; a datagram that
//! finds no room is dropped, counted and named. Left out: checksums (nothing here corrupts packets), ports and ICMP.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Instant};

use crate::{
    Counters, Datagram, Delivery, Ecn, Message, Observation, Packet, PayloadRange, Refused, Transmit,
    Transport,
};

/// One end of a UDP flow. It needs no opening, and closing it changes nothing.
#[derive(Clone, Debug)]
pub struct Udp {
    /// Written and not yet polled: emptied at every turn of the driver.
    outbox: VecDeque<Datagram>,
    /// Arrived and unread.
    inbox: VecDeque<Datagram>,
    /// Payload bytes in `outbox`.
    outbox_size: Bytes,
    /// Payload bytes in `inbox`.
    inbox_size: Bytes,
    socket_buffer: Bytes,
    /// Numbers of datagrams that found no room, not yet polled.
    dropped: VecDeque<u64>,
    counters: Counters,
}

impl Udp {
    /// An end whose receiving socket holds `socket_buffer` bytes of payload.
    pub const fn new(socket_buffer: Bytes) -> Self {
        Self {
            outbox: VecDeque::new(),
            inbox: VecDeque::new(),
            outbox_size: Bytes::ZERO,
            inbox_size: Bytes::ZERO,
            socket_buffer,
            dropped: VecDeque::new(),
            counters: Counters {
                data_packets: 0,
                retransmissions: 0,
                timeouts: 0,
                fast_retransmits: 0,
                socket_buffer_drops: 0,
                send_queue_drops: 0,
            },
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

    fn handle_packet(&mut self, packet: &Packet, _ecn: Ecn, _now: Instant) {
        let &Packet::Udp(datagram) = packet else { return };
        let size = self.inbox_size.saturating_add(Bytes::new(u64::from(datagram.payload)));
        if size > self.socket_buffer {
            self.counters.socket_buffer_drops += 1;
            self.dropped.push_back(datagram.seq);
        } else {
            self.inbox_size = size;
            self.inbox.push_back(datagram);
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn close(&mut self, _now: Instant) {}

    #[inline]
    fn may_transmit(&self) -> bool {
        !self.outbox.is_empty()
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Transmit> {
        let datagram = self.outbox.pop_front()?;
        self.outbox_size -= Bytes::new(u64::from(datagram.payload));
        self.counters.data_packets += 1;
        Some(Transmit {
            packet: Packet::Udp(datagram),
            ecn: Ecn::NotEct,
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
        let size = Bytes::new(u64::from(datagram.payload));
        self.inbox_size -= size;
        Some(Delivery::Message { seq: datagram.seq, size })
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

    #[test]
    fn a_message_crosses_as_one_datagram() {
        let (mut sender, mut receiver) = (Udp::new(Bytes::MAX), Udp::new(Bytes::MAX));
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
        let (mut sender, mut receiver) = (Udp::new(Bytes::MAX), Udp::new(Bytes::new(320)));
        for seq in 0..3 {
            send(&mut sender, &mut receiver, message(seq, 160));
        }
        assert_eq!(receiver.counters().socket_buffer_drops, 1);
        assert_eq!(receiver.poll_dropped(), Some(2));
        assert_eq!(receiver.poll_dropped(), None);
        receiver.poll_delivery(Bytes::MAX, Instant::ZERO).unwrap();
        send(&mut sender, &mut receiver, message(3, 160));
        assert_eq!(receiver.poll_dropped(), None);
    }

    #[test]
    fn a_datagram_above_65507_bytes_is_refused() {
        let mut sender = Udp::new(Bytes::MAX);
        assert_eq!(sender.handle_message(message(0, 65_507), Instant::ZERO), Ok(()));
        for size in [65_508, u64::MAX] {
            assert_eq!(
                sender.handle_message(message(1, size), Instant::ZERO),
                Err(Refused::TooLarge { limit: Bytes::new(65_507) })
            );
        }
    }
}
