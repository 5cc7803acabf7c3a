//! The contract between DCCP's core and a congestion control (CCID; RFC 4340 §10).
//!
//! A connection is two half-connections. Each has a sending half, which decides when data may leave, and a
//! receiving half at the other end, which decides when and with what to acknowledge:
//!
//! ```text
//!   queue ─► HcSender: clearance ──► data packet ──► HcReceiver: on_packet
//!            on_sent                                 acknowledge_at
//!            on_ack     ◄── Ack or DataAck ◄──       put_options, on_acknowledged
//! ```
//!
//! The core owns sequence numbers, validity, the handshake, features, the Ack Vector and its history, NDP
//! counts and the queue; what arrives here is valid. Order of calls: `on_packet` and `on_ack` for what a
//! packet brings (first the receiving half, then the sending one), `on_timeout` at `deadline`, and then
//! `clearance` until it is not [`Clearance::Now`]. Times are `now`, last, and never go back.

mod any;
mod ccid2;
mod tfrc;

use talkpath_units::{Bytes, Duration, Ecn, Instant};
use talkpath_wire::Observation;
use talkpath_wire::dccp::{Options, Seq};

pub use any::{HcReceiver, HcSender};
pub use ccid2::{Ccid2Receiver, Ccid2Sender};
pub(super) use tfrc::knows_option;
pub use tfrc::{TfrcReceiver, TfrcSender};

/// When the next data packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clearance {
    /// Now.
    Now,
    /// At this time, unless something arrives before: a rate-based sender.
    At(Instant),
    /// When an acknowledgement, or `deadline`, has made room: a window-based sender.
    Blocked,
}

/// A packet of ours that has just left, data or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its sequence number.
    pub seq: Seq,
    /// Whether it carries application data.
    pub is_data: bool,
    /// Bytes of application data.
    pub payload: Bytes,
    /// Data packets that still wait behind it: none if the application, not we, limits the rate.
    pub queued: usize,
}

/// A packet of the peer's with an acknowledgement: Ack or DataAck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement<'a> {
    /// The packet's own sequence number; acknowledgements may be lost and overtaken.
    pub seq: Seq,
    /// Acknowledgement Number: the greatest number received (RFC 4340 §7.1).
    pub ack: Seq,
    /// Whether the packet carries data as well.
    pub is_data: bool,
    /// Packets of the peer's, data or not, that have been inferred as lost since the last acknowledgement,
    /// and this packet if it is marked.
    pub peer_lost: u64,
    /// Its options; [`ack_vector`](super::ack_vector()) reads the Ack Vector, if there is one.
    pub options: &'a Options,
}

/// A packet of the peer's that arrived, data or not, for the receiving half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its sequence number; not always the greatest yet.
    pub seq: Seq,
    /// Whether it carries application data.
    pub is_data: bool,
    /// Bytes of application data.
    pub payload: Bytes,
    /// CCVal, which the peer's sending half set.
    pub ccval: u8,
    /// NDP Count option: packets without data sent just before this one (RFC 4340 §7.7).
    pub ndp_count: Option<u64>,
    /// The IP header's ECN field.
    pub ecn: Ecn,
}

/// What a sending half has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CcidCounters {
    /// Transmit or nofeedback timeouts.
    pub timeouts: u64,
    /// Reductions for a loss or a mark that was reported.
    pub congestion_events: u64,
}

/// The sending half of a half-connection.
pub trait CcidSender {
    /// When the next data packet, of `payload` bytes, may leave.
    fn clearance(&self, payload: Bytes, now: Instant) -> Clearance;
    /// CCVal of a packet that is about to leave (RFC 4340 §5.1).
    fn ccval(&mut self, _now: Instant) -> u8 {
        0
    }
    /// Adds what the CCID wants to say on a data packet that is about to leave.
    fn put_options(&mut self, _options: &mut Options, _now: Instant) {}
    /// The handshake took this round trip; called before anything is sent, and not at all if the round trip
    /// was not measured.
    fn on_handshake(&mut self, _rtt: Duration, _now: Instant) {}
    /// A packet has left.
    fn on_sent(&mut self, sent: &Sent, now: Instant);
    /// A valid acknowledgement has arrived, possibly an old one.
    fn on_ack(&mut self, ack: &Acknowledgement<'_>, now: Instant);
    /// The deadline has come.
    fn on_timeout(&mut self, now: Instant);
    /// When `on_timeout` wants to be called.
    fn deadline(&self) -> Option<Instant>;
    /// Whether the next data packet shall acknowledge the peer's acknowledgements, so that the peer can
    /// forget (RFC 4340 §11.1).
    fn wants_to_acknowledge(&self) -> bool {
        false
    }
    /// A packet with an acknowledgement has left.
    fn on_acknowledged(&mut self) {}
    /// The Ack Ratio that the sender wants the peer to have (RFC 4340 §11.3).
    fn wanted_ack_ratio(&self) -> Option<u16> {
        None
    }
    /// The value of a feature of this half-connection is now this: Ack Ratio, or a CCID-specific one.
    fn on_feature(&mut self, _number: u8, _value: u64) {}
    /// The state to plot; the core fills in the send buffer.
    fn observe(&self) -> Observation;
    /// The counts since the beginning.
    fn counters(&self) -> CcidCounters;
}

/// The receiving half of a half-connection.
pub trait CcidReceiver {
    /// The handshake took this round trip; the first packet may have arrived before.
    fn on_handshake(&mut self, _rtt: Duration) {}
    /// A packet has arrived and is valid.
    fn on_packet(&mut self, arrived: &Arrived, now: Instant);
    /// When an acknowledgement has to leave, alone if need be; in the past or now if it is due.
    fn acknowledge_at(&self) -> Option<Instant>;
    /// Whether a data packet that leaves now should carry an acknowledgement.
    fn has_news(&self) -> bool;
    /// Adds what the CCID wants on an Ack or DataAck that is about to leave; the core adds the Ack Vector
    /// behind it if that is negotiated.
    fn put_options(&mut self, _options: &mut Options, _now: Instant) {}
    /// An Ack or DataAck has left.
    fn on_acknowledged(&mut self, now: Instant);
    /// The value of a feature of this half-connection is now this: Ack Ratio, or a CCID-specific one.
    fn on_feature(&mut self, _number: u8, _value: u64) {}
}
