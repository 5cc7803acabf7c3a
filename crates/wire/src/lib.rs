//! What goes on wires: packets, messages, and the contract that every transport keeps ([`Transport`]).
//!
//! The state machines are in `transport`, and a QUIC connection in `quic`. What carries packets, or reads
//! their bytes, depends on this crate alone: a changed line in TCP compiles no channel over sockets again.

pub mod carrier;
mod contract;
pub mod dccp;
pub mod encapsulated;
pub mod machine;
mod packet;

pub use contract::{
    Counters, Delivery, EcnCounters, Levels, LossRecovery, Message, Observation, Outlet, PayloadRange,
    Refused, Transmit, Transport, WRITE,
};
pub use packet::{
    Datagram, Flags, IPV4_HEADER, Packet, QuicPacket, QuicPiece, SackBlock, Segment, SegmentOptions,
    TCP_HEADER, UDP_HEADER,
};
