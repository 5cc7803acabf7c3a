//! What goes on wires: packets, messages, and the contract that every transport keeps ([`Transport`]).
//!
//! The state machines are in `transport`, and a QUIC connection in `quic`. What carries packets, or reads
//! their bytes, depends on this crate alone: a changed line in TCP compiles no channel over sockets again.
//!
//! - *message*: one unit of application data, such as a voice frame.
//! - *packet*: an IP packet as typed fields and a payload length. Bytes exist only in a *codec*.
//! - *delivery*: what one read by the application returned.
//! - *outlet*: takes the packets that leave a transport.
//! - *observation*: what a transport shows of its state, such as `cwnd`.
//! - *machine*: a protocol of ours, as a channel over real sockets drives it.
//! - *carrier*: what carries a packet as bytes: UDP between real hosts, IP in captures.
//!
//! Begin to read with `contract.rs`, then `packet.rs`.

pub mod carrier;
mod contract;
pub mod dccp;
pub mod encapsulated;
mod held;
pub mod machine;
mod packet;

pub use contract::{
    Counters, Delivery, EcnCounters, Levels, LossRecovery, Message, Observation, Outlet, PayloadRange,
    Refused, Transmit, Transport, WRITE,
};
pub use held::{HeldTimes, HoldCause, HoldClock};
pub use packet::{
    Datagram, Flags, IPV4_HEADER, Packet, QuicPacket, QuicPiece, SackBlock, Segment, SegmentOptions,
    TCP_HEADER, UDP_HEADER,
};
