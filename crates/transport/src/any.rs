//! The closed enum over all transports: dispatch by match, without a virtual call for each packet.

use talkpath_config::{EncapsulatedConfig, EncapsulatedKind, Role, TransportConfig, TransportKind};
use talkpath_units::{Bytes, Ecn, Instant, Seed};
use talkpath_wire::machine::Machine;
use talkpath_wire::{
    Counters, Delivery, Levels, Message, Observation, Outlet, Packet, Refused, Transmit, Transport,
};

use crate::dccp::Dccp;
use crate::tcp::Tcp;
use crate::udp::Udp;

/// Any transport.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one a flow end, never moved while it runs: a box would cost each call"
)]
pub enum AnyTransport {
    /// UDP (RFC 768).
    Udp(Udp),
    /// TCP (RFC 9293).
    Tcp(Tcp),
    /// DCCP (RFC 4340). In a box, because it is twice as large as TCP, and there may be thousands of TCP
    /// ends.
    Dccp(Box<Dccp>),
}

impl AnyTransport {
    /// One end of a flow. Both ends are built from one `config`, with different `role`s.
    ///
    /// `path_mtu` is the smallest MTU of the flow's links, from which TCP derives its segment size, DCCP its
    /// largest message and UDP what a datagram's fragments take; `seed` is the flow's own and draws the
    /// initial sequence numbers; `receive_buffer` takes the place of the config's `socket_buffer` (UDP, DCCP)
    /// or `rwnd` (TCP) at this end.
    ///
    /// # Panics
    /// Of QUIC, which is a connection of the crate `quic`: it may carry several flows.
    pub fn new(
        config: &TransportConfig,
        role: Role,
        path_mtu: Bytes,
        seed: Seed,
        receive_buffer: Option<Bytes>,
    ) -> Self {
        match config {
            TransportConfig::Udp(config) => Self::Udp(Udp::new(config, path_mtu, receive_buffer)),
            TransportConfig::Tcp(config) => Self::Tcp(Tcp::new(config, role, path_mtu, seed, receive_buffer)),
            TransportConfig::Encapsulated(EncapsulatedConfig::Dccp(config)) => {
                Self::Dccp(Box::new(Dccp::new(config, role, path_mtu, seed, receive_buffer)))
            }
            TransportConfig::Quic(_) => panic!("a QUIC connection is no transport of one flow"),
        }
    }

    /// The largest message, if the path bounds it: DCCP neither splits nor joins messages (RFC 4340 §14).
    pub const fn largest_message(&self) -> Option<Bytes> {
        match self {
            Self::Udp(_) | Self::Tcp(_) => None,
            Self::Dccp(dccp) => Some(dccp.largest_message()),
        }
    }

    /// Has `visitor` do its work with the transport, whose type it knows: one match for all of the work.
    #[inline(always)]
    pub fn visit<V: EndVisitor>(&mut self, visitor: V) -> V::Output {
        match self {
            Self::Tcp(tcp) => visitor.visit(tcp),
            Self::Udp(udp) => visitor.visit(udp),
            Self::Dccp(dccp) => visitor.visit(&mut **dccp),
        }
    }

    /// Which transport it is.
    pub const fn kind(&self) -> TransportKind {
        match self {
            Self::Udp(_) => TransportKind::Udp,
            Self::Tcp(_) => TransportKind::Tcp,
            Self::Dccp(_) => TransportKind::Encapsulated(EncapsulatedKind::Dccp),
        }
    }
}

/// One end of a flow over a protocol of ours that real hosts carry in UDP datagrams, with the arguments of
/// [`AnyTransport::new`]. [`talkpath_wire::machine::Machines`] takes it to the channel over real sockets,
/// where a call through a pointer costs nothing beside a system call.
pub fn new_machine(
    config: &EncapsulatedConfig,
    role: Role,
    path_mtu: Bytes,
    seed: Seed,
    receive_buffer: Option<Bytes>,
) -> Box<dyn Machine + Send> {
    match config {
        EncapsulatedConfig::Dccp(config) => Box::new(Dccp::new(config, role, path_mtu, seed, receive_buffer)),
    }
}

/// Work that is compiled for each transport.
pub trait EndVisitor {
    /// What the work returns.
    type Output;

    /// Does it.
    fn visit<T: Transport>(self, transport: &mut T) -> Self::Output;
}

macro_rules! each {
    ($any:expr, $transport:ident => $call:expr) => {
        match $any {
            AnyTransport::Udp($transport) => $call,
            AnyTransport::Tcp($transport) => $call,
            AnyTransport::Dccp($transport) => $call,
        }
    };
}

impl Transport for AnyTransport {
    #[inline]
    fn open(&mut self, now: Instant) {
        each!(self, transport => transport.open(now));
    }

    #[inline]
    fn is_open(&self) -> bool {
        each!(self, transport => transport.is_open())
    }

    #[inline]
    fn handle_message(&mut self, message: Message, now: Instant) -> Result<(), Refused> {
        each!(self, transport => transport.handle_message(message, now))
    }

    fn handle_part(&mut self, rest: Bytes, written: Bytes) -> Bytes {
        each!(self, transport => transport.handle_part(rest, written))
    }

    #[inline]
    fn handle_packet(&mut self, packet: &Packet, ecn: Ecn, now: Instant) {
        each!(self, transport => transport.handle_packet(packet, ecn, now));
    }

    #[inline]
    fn handle_timeout(&mut self, now: Instant) {
        each!(self, transport => transport.handle_timeout(now));
    }

    #[inline]
    fn shutdown(&mut self, now: Instant) {
        each!(self, transport => transport.shutdown(now));
    }

    #[inline]
    fn close(&mut self, now: Instant) {
        each!(self, transport => transport.close(now));
    }

    #[inline]
    fn may_transmit(&self) -> bool {
        each!(self, transport => transport.may_transmit())
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        each!(self, transport => transport.poll_transmit(now))
    }

    #[inline]
    fn transmit_all(&mut self, now: Instant, out: &mut impl Outlet) {
        each!(self, transport => transport.transmit_all(now, out));
    }

    #[inline]
    fn poll_delivery(&mut self, limit: Bytes, now: Instant) -> Option<Delivery> {
        each!(self, transport => transport.poll_delivery(limit, now))
    }

    #[inline]
    fn poll_dropped(&mut self) -> Option<u64> {
        each!(self, transport => transport.poll_dropped())
    }

    #[inline]
    fn poll_discarded(&mut self) -> Option<u64> {
        each!(self, transport => transport.poll_discarded())
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        each!(self, transport => transport.poll_timeout())
    }

    #[inline]
    fn writable(&self) -> Bytes {
        each!(self, transport => transport.writable())
    }

    fn takes(&self, size: Bytes) -> bool {
        each!(self, transport => transport.takes(size))
    }

    #[inline]
    fn observe(&self) -> Observation {
        each!(self, transport => transport.observe())
    }

    #[inline]
    fn levels(&self) -> Levels {
        each!(self, transport => transport.levels())
    }

    #[inline]
    fn windows_key(&self) -> (u64, u64) {
        each!(self, transport => transport.windows_key())
    }

    #[inline]
    fn send_buffer(&self) -> Bytes {
        each!(self, transport => transport.send_buffer())
    }

    #[inline]
    fn counters(&self) -> Counters {
        each!(self, transport => transport.counters())
    }
}
