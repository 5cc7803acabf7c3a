//! The contract between a transport and what drives it.
//!
//! A transport takes messages, packets and the time. It gives packets, deliveries and its next deadline. It
//! never knows which arena it is in. The order of calls is fixed, and the application in `flow` keeps it:
//!
//! 1. one input: `open`, `handle_message`, `handle_part`, `handle_packet`, `handle_timeout`, `shutdown` or
//!    `close`;
//! 2. `poll_transmit` until `None`, because what the input released leaves before the application looks;
//! 3. `poll_delivery` until `None`, when the application is ready to read, and then `poll_transmit` again;
//! 4. `poll_timeout` once, for the next deadline. When a deadline has passed, `handle_timeout` follows.
//!
//! The argument `now` comes last and never goes back.

use talkpath_units::{Bytes, Duration, Ecn, Instant, Rate};

use crate::held::HeldTimes;
use crate::packet::Packet;

/// One unit of application data: a voice frame, a chunk of a bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number within the flow, from 0.
    pub seq: u64,
    /// Payload bytes.
    pub size: Bytes,
    /// The time at which the workload wanted it sent.
    pub due: Instant,
}

/// Why a transport would not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The send buffer or send queue has no room for it now.
    #[error("the send buffer has no room")]
    NoRoom,
    /// The send queue is full, and its policy is to drop the newest message.
    #[error("the send queue is full")]
    QueueFull,
    /// The message is larger than this transport can ever carry.
    #[error("the message is larger than the transport can carry, {limit}")]
    TooLarge {
        /// The largest message.
        limit: Bytes,
    },
    /// The connection is not open yet or is closed.
    #[error("the connection is not open")]
    NotOpen,
}

/// A packet that the transport wants on the wire now, with what the taps want to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The packet.
    pub packet: Packet,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// The application data that it carries. `None` for control packets.
    pub payload: Option<PayloadRange>,
    /// True if any of `payload` was sent before.
    pub retransmission: bool,
    /// The value of [`Packet::wire_size`] in bytes, which whoever made the packet knows.
    pub wire_size: u32,
}

/// The application data in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadRange {
    /// One whole message (datagram transports).
    Message {
        /// The number of the message ([`Message::seq`]).
        seq: u64,
    },
    /// Stream bytes `start..end`, counted from 0 at the connection's first data byte.
    Stream {
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
    },
}

/// The result of one read by the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// One message (datagram transports), possibly a duplicate or out of order.
    Message {
        /// The number of the message ([`Message::seq`]).
        seq: u64,
        /// Payload bytes.
        size: Bytes,
    },
    /// The next in-order bytes of the stream.
    Stream {
        /// Bytes read, at least 1.
        bytes: Bytes,
    },
}

/// The state that a transport shows. A value that it does not have is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// The congestion window, in packets of the current segment size.
    pub cwnd: Option<f64>,
    /// The amount that may be in flight, in packets of the same size. It is `cwnd`, or the far end's window
    /// if that is smaller.
    pub window: Option<f64>,
    /// The slow start threshold, in packets. It is infinite before the first loss.
    pub ssthresh: Option<f64>,
    /// The smoothed round-trip time (RFC 6298 §2).
    pub srtt: Option<Duration>,
    /// The retransmission timeout (RFC 6298 §2).
    pub rto: Option<Duration>,
    /// The rate at which segments are paced. `None` if they are not paced, or if the rate follows from
    /// `cwnd`.
    pub pacing_rate: Option<Rate>,
    /// The rate of the bottleneck as the congestion control sees it, of payload alone.
    pub bottleneck_rate: Option<Rate>,
    /// The bytes that the application wrote and the far end has not acknowledged. Without acknowledgements,
    /// the bytes that have not left yet.
    pub send_buffer: Bytes,
    /// The loss recovery of QUIC.
    pub loss_recovery: Option<LossRecovery>,
}

/// The loss recovery of a whole connection of QUIC (RFC 9002).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossRecovery {
    /// The probe timeout before any backoff (RFC 9002 §6.2.1), which QUIC has in the place of an RTO. `None`
    /// before the first sample of the round trip.
    pub pto: Option<Duration>,
    /// The bytes of packets that were sent and are neither acknowledged nor declared lost (RFC 9002 §B.2).
    pub bytes_in_flight: Bytes,
    /// The number of packets that were declared lost since the beginning.
    pub lost_packets: u64,
}

/// The part of [`Observation`] that every run reads and that is averaged over time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Levels {
    /// The same as [`Observation::cwnd`].
    pub cwnd: Option<f64>,
    /// The same as [`Observation::window`].
    pub window: Option<f64>,
    /// The same as [`Observation::send_buffer`].
    pub send_buffer: Bytes,
}

/// The counts of a transport since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The packets with application data that were handed to the wire, with retransmissions.
    pub data_packets: u64,
    /// The packets with data that was sent before.
    pub retransmissions: u64,
    /// The retransmission timeouts that fired. `None` if the protocol does not say.
    pub timeouts: Option<u64>,
    /// The entries into fast recovery.
    pub fast_retransmits: u64,
    /// The datagrams that the receiving socket's buffer had no room for.
    pub socket_buffer_drops: u64,
    /// The messages that the sender's own queue dropped.
    pub send_queue_drops: u64,
    /// How long unsent data was held back.
    pub held: HeldTimes,
    /// The counts of marks.
    pub ecn: EcnCounters,
}

/// The counts of marks at an end of a transport (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounters {
    /// True if the packets of this end take marks.
    pub capable: bool,
    /// The packets that came marked and for which there was room.
    pub marked: u64,
    /// The packets with data that were delivered with a mark, as the acknowledgements that echo marks say.
    /// `None` if the protocol has no such echo.
    pub echoed: Option<u64>,
}

/// Takes the packets that leave. It is the network, or a substitute for it. Any function of a [`Transmit`] is
/// an outlet.
pub trait Outlet {
    /// Takes a packet that leaves now.
    fn take(&mut self, transmit: Transmit);
}

impl<F: FnMut(Transmit)> Outlet for F {
    #[inline]
    fn take(&mut self, transmit: Transmit) {
        self(transmit);
    }
}

/// The contract of a transport. The documentation of this file has the order of calls.
pub trait Transport {
    /// Begins to connect, if the transport connects. The passive side only listens.
    fn open(&mut self, now: Instant);
    /// Returns true if messages are taken.
    fn is_open(&self) -> bool;
    /// Takes one message as one write of the application, whole or not at all.
    ///
    /// # Errors
    /// Returns why the message was not taken. The state of the transport is then as before.
    fn handle_message(&mut self, message: Message, now: Instant) -> Result<(), Refused>;
    /// Takes as much as there is room for of a message that [`Transport::handle_message`] does not take
    /// whole. `rest` bytes of the message are left. Returns how much was taken, which is zero from transports
    /// whose messages are whole. What then leaves may make room at once, so an application calls again until
    /// nothing is taken. `written` is how much it has written since it began to.
    fn handle_part(&mut self, _rest: Bytes, _written: Bytes) -> Bytes {
        Bytes::ZERO
    }
    /// Takes one packet from the network.
    fn handle_packet(&mut self, packet: &Packet, ecn: Ecn, now: Instant);
    /// Does what is due when the deadline has come that `poll_timeout` gave.
    fn handle_timeout(&mut self, now: Instant);
    /// Says that no further messages will come. What was taken is still delivered, and then this direction
    /// ends. The application goes on reading (SHUT_WR of shutdown(2)).
    fn shutdown(&mut self, now: Instant);
    /// Says the same, and that the application reads no further (close(2)). A transport whose far end has to
    /// learn that data was not read tells it.
    fn close(&mut self, now: Instant) {
        self.shutdown(now);
    }
    /// Returns true if a packet may leave now, as far as that can be seen at once.
    fn may_transmit(&self) -> bool {
        true
    }
    /// Takes the next packet to put on the wire, in order.
    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit>;
    /// Gives all packets that may leave now to `out`, as [`Transport::poll_transmit`] does until `None`.
    fn transmit_all(&mut self, now: Instant, out: &mut impl Outlet)
    where
        Self: Sized,
    {
        while let Some(transmit) = self.poll_transmit(now) {
            out.take(transmit);
        }
    }
    /// Makes one read by the application of at most `limit` bytes. A datagram counts as a whole.
    fn poll_delivery(&mut self, limit: Bytes, now: Instant) -> Option<Delivery>;
    /// Returns the number of a message that arrived and found no room in the receiving socket's buffer, one a
    /// call, until `None`. A stream never drops what it has acknowledged.
    fn poll_dropped(&mut self) -> Option<u64>;
    /// Returns the number of a message that was taken and that the sender's own queue then dropped, one a
    /// call, until `None`.
    fn poll_discarded(&mut self) -> Option<u64> {
        None
    }
    /// The time at which `handle_timeout` wants to be called, if ever.
    fn poll_timeout(&self) -> Option<Instant>;
    /// The room for the next message, zero while the transport is not open.
    fn writable(&self) -> Bytes;
    /// Returns true if a message of `size` may be written now. There is then room for it, or for a part if
    /// even an empty buffer would not have room for all.
    fn takes(&self, size: Bytes) -> bool {
        self.writable() >= size
    }
    /// The state to plot.
    fn observe(&self) -> Observation;
    /// The part of the state that is averaged.
    fn levels(&self) -> Levels {
        let Observation { cwnd, window, send_buffer, .. } = self.observe();
        Levels { cwnd, window, send_buffer }
    }
    /// A key of [`Levels::cwnd`] and [`Levels::window`]. While the key is unchanged, so are they, and it is
    /// cheaper to read.
    fn windows_key(&self) -> (u64, u64) {
        let Levels { cwnd, window, .. } = self.levels();
        (cwnd.map_or(0, f64::to_bits), window.map_or(0, f64::to_bits))
    }
    /// [`Levels::send_buffer`].
    fn send_buffer(&self) -> Bytes {
        self.levels().send_buffer
    }
    /// The counts since the beginning.
    fn counters(&self) -> Counters;
}

/// The largest number of bytes that an application writes by one call, in every arena. We chose it. It
/// matters, because the amount that a full socket takes depends on where a call ends.
pub const WRITE: u64 = 128 << 10;
