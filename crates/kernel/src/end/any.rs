//! The closed enum over all channels: dispatch by match.

use talkpath_units::Duration;

use super::context::EndContext;
use super::encapsulated::EncapsulatedChannel;
use super::place::EndPlace;
use super::quic::QuicChannel;
use super::tcp::TcpChannel;
use super::udp::UdpChannel;
use crate::log::sample_interval;
use crate::spec::{FlowSpec, SessionSpec, TransportSpec};

/// Any channel.
pub(super) enum AnyChannel {
    /// The kernel's UDP.
    Udp(Box<UdpChannel>),
    /// The kernel's TCP.
    Tcp(Box<TcpChannel>),
    /// A protocol of ours, over UDP.
    Encapsulated(Box<EncapsulatedChannel>),
    /// QUIC, over UDP.
    Quic(Box<QuicChannel>),
}

impl AnyChannel {
    /// That of an end of the flow `spec`, whose messages are numbered below `bound`.
    pub(super) fn new(
        session: &SessionSpec,
        spec: &FlowSpec,
        place: &EndPlace,
        bound: u64,
        common: &EndContext,
    ) -> Self {
        let interval = sample_interval(Duration::from_nanos(session.duration_ns));
        let timing = (interval, session.stop());
        match &spec.transport {
            TransportSpec::Udp { .. } => Self::Udp(Box::new(UdpChannel::new(spec, place, bound, common))),
            TransportSpec::Tcp { .. } => Self::Tcp(Box::new(TcpChannel::new(spec, place, bound, common))),
            TransportSpec::Encapsulated(own) => Self::Encapsulated(Box::new(EncapsulatedChannel::new(
                (spec, own),
                place,
                bound,
                timing,
                common,
            ))),
            TransportSpec::Quic(quic) => {
                Self::Quic(Box::new(QuicChannel::new(session, (spec, quic), place, bound, timing, common)))
            }
        }
    }
}

/// The same call on any channel.
macro_rules! each {
    ($any:expr, $channel:ident => $call:expr) => {
        match $any {
            AnyChannel::Udp($channel) => $call,
            AnyChannel::Tcp($channel) => $call,
            AnyChannel::Encapsulated($channel) => $call,
            AnyChannel::Quic($channel) => $call,
        }
    };
}

pub(super) use each;
