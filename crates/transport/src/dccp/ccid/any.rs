//! The closed enums over the CCIDs' halves: dispatch by match.

use talkpath_config::{CcidKind, DccpConfig};
use talkpath_units::{Bytes, Duration, Instant};
use talkpath_wire::Observation;
use talkpath_wire::dccp::Options;

use super::{
    Acknowledgement, Arrived, Ccid2Receiver, Ccid2Sender, CcidCounters, CcidReceiver, CcidSender, Clearance,
    Sent, TfrcReceiver, TfrcSender,
};
use crate::tfrc::{TfrcConfig, Variant};

/// Any sending half.
#[derive(Clone, Debug)]
pub enum HcSender {
    /// RFC 4341.
    Ccid2(Ccid2Sender),
    /// RFC 4342, or RFC 5622.
    Tfrc(TfrcSender),
}

/// Any receiving half.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one a connection, never moved while it runs")]
pub enum HcReceiver {
    /// RFC 4341.
    Ccid2(Ccid2Receiver),
    /// RFC 4342, or RFC 5622.
    Tfrc(TfrcReceiver),
}

impl HcSender {
    /// The sending half of `config`'s CCID on a path of this MTU.
    pub fn new(config: &DccpConfig, path_mtu: Bytes) -> Self {
        match config.ccid {
            CcidKind::Ccid2 => Self::Ccid2(Ccid2Sender::new(config)),
            CcidKind::Ccid3 => Self::Tfrc(TfrcSender::new(tfrc(config, Variant::Standard, path_mtu))),
            CcidKind::Ccid4 => Self::Tfrc(TfrcSender::new(tfrc(config, Variant::SmallPackets, path_mtu))),
        }
    }
}

impl HcReceiver {
    /// The receiving half of `config`'s CCID on a path of this MTU.
    pub const fn new(config: &DccpConfig, path_mtu: Bytes) -> Self {
        match config.ccid {
            CcidKind::Ccid2 => Self::Ccid2(Ccid2Receiver::new()),
            CcidKind::Ccid3 => Self::Tfrc(TfrcReceiver::new(tfrc(config, Variant::Standard, path_mtu))),
            CcidKind::Ccid4 => Self::Tfrc(TfrcReceiver::new(tfrc(config, Variant::SmallPackets, path_mtu))),
        }
    }
}

/// TFRC as `config` has it: the CCID decides the variant.
const fn tfrc(config: &DccpConfig, variant: Variant, path_mtu: Bytes) -> TfrcConfig {
    TfrcConfig {
        segment_size: config.segment_size,
        oscillation_prevention: config.oscillation_prevention,
        history_discounting: config.history_discounting,
        ..TfrcConfig::new(config.tfrc, variant).on_path(path_mtu)
    }
}

macro_rules! each {
    ($any:expr, $kind:ident, $half:ident => $call:expr) => {
        match $any {
            $kind::Ccid2($half) => $call,
            $kind::Tfrc($half) => $call,
        }
    };
}

impl CcidSender for HcSender {
    fn clearance(&self, payload: Bytes, now: Instant) -> Clearance {
        each!(self, Self, half => half.clearance(payload, now))
    }

    fn ccval(&mut self, now: Instant) -> u8 {
        each!(self, Self, half => half.ccval(now))
    }

    fn put_options(&mut self, options: &mut Options, now: Instant) {
        each!(self, Self, half => half.put_options(options, now));
    }

    fn on_handshake(&mut self, rtt: Duration, now: Instant) {
        each!(self, Self, half => half.on_handshake(rtt, now));
    }

    fn on_sent(&mut self, sent: &Sent, now: Instant) {
        each!(self, Self, half => half.on_sent(sent, now));
    }

    fn on_ack(&mut self, ack: &Acknowledgement<'_>, now: Instant) {
        each!(self, Self, half => half.on_ack(ack, now));
    }

    fn on_timeout(&mut self, now: Instant) {
        each!(self, Self, half => half.on_timeout(now));
    }

    fn deadline(&self) -> Option<Instant> {
        each!(self, Self, half => half.deadline())
    }

    fn wants_to_acknowledge(&self) -> bool {
        each!(self, Self, half => half.wants_to_acknowledge())
    }

    fn on_acknowledged(&mut self) {
        each!(self, Self, half => half.on_acknowledged());
    }

    fn wanted_ack_ratio(&self) -> Option<u16> {
        each!(self, Self, half => half.wanted_ack_ratio())
    }

    fn on_feature(&mut self, number: u8, value: u64) {
        each!(self, Self, half => half.on_feature(number, value));
    }

    fn observe(&self) -> Observation {
        each!(self, Self, half => half.observe())
    }

    fn counters(&self) -> CcidCounters {
        each!(self, Self, half => half.counters())
    }
}

impl CcidReceiver for HcReceiver {
    fn on_handshake(&mut self, rtt: Duration) {
        each!(self, Self, half => half.on_handshake(rtt));
    }

    fn on_packet(&mut self, arrived: &Arrived, now: Instant) {
        each!(self, Self, half => half.on_packet(arrived, now));
    }

    fn acknowledge_at(&self) -> Option<Instant> {
        each!(self, Self, half => half.acknowledge_at())
    }

    fn has_news(&self) -> bool {
        each!(self, Self, half => half.has_news())
    }

    fn put_options(&mut self, options: &mut Options, now: Instant) {
        each!(self, Self, half => half.put_options(options, now));
    }

    fn on_acknowledged(&mut self, now: Instant) {
        each!(self, Self, half => half.on_acknowledged(now));
    }

    fn on_feature(&mut self, number: u8, value: u64) {
        each!(self, Self, half => half.on_feature(number, value));
    }
}
