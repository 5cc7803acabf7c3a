//! TCP (RFC 9293): its place, until the machine itself follows.

use talkpath_units::{Bytes, Instant, Seed};

use crate::{
    Counters, Delivery, Ecn, Message, Observation, Packet, Refused, Role, TcpConfig, Transmit, Transport,
};

/// One end of a TCP connection.
#[derive(Clone, Debug)]
pub struct Tcp {}

impl Tcp {
    /// One end; see [`crate::AnyTransport::new`].
    pub const fn new(_: &TcpConfig, _: Role, _: Bytes, _: Seed, _: Option<Bytes>) -> Self {
        Self {}
    }
}

impl Transport for Tcp {
    fn open(&mut self, _now: Instant) {}
    fn is_open(&self) -> bool {
        false
    }
    fn handle_message(&mut self, _message: Message, _now: Instant) -> Result<(), Refused> {
        Err(Refused::NotOpen)
    }
    fn handle_packet(&mut self, _packet: Packet, _ecn: Ecn, _now: Instant) {}
    fn handle_timeout(&mut self, _now: Instant) {}
    fn close(&mut self, _now: Instant) {}
    fn poll_transmit(&mut self, _now: Instant) -> Option<Transmit> {
        None
    }
    fn poll_delivery(&mut self, _limit: Bytes, _now: Instant) -> Option<Delivery> {
        None
    }
    fn poll_dropped(&mut self) -> Option<u64> {
        None
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn writable(&self) -> Bytes {
        Bytes::ZERO
    }
    fn observe(&self) -> Observation {
        Observation::default()
    }
    fn counters(&self) -> Counters {
        Counters::default()
    }
}
