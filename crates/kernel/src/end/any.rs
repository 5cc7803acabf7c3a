//! The closed enum over all channels: dispatch by match.

use talkpath_units::Duration;

use super::channel::{DatagramChannel, OwnProtocol};
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

    /// The calls of a channel whose packets are UDP datagrams; `None` for TCP.
    pub(super) fn datagrams(&self) -> Option<&dyn DatagramChannel> {
        match self {
            Self::Udp(channel) => Some(&**channel),
            Self::Encapsulated(channel) => Some(&**channel),
            Self::Quic(channel) => Some(&**channel),
            Self::Tcp(_) => None,
        }
    }

    /// As [`Self::datagrams`].
    pub(super) fn datagrams_mut(&mut self) -> Option<&mut dyn DatagramChannel> {
        match self {
            Self::Udp(channel) => Some(&mut **channel),
            Self::Encapsulated(channel) => Some(&mut **channel),
            Self::Quic(channel) => Some(&mut **channel),
            Self::Tcp(_) => None,
        }
    }

    /// The calls of a protocol that runs in this process; `None` for the kernel's UDP and TCP.
    pub(super) fn own_protocol(&self) -> Option<&dyn OwnProtocol> {
        match self {
            Self::Encapsulated(channel) => Some(&**channel),
            Self::Quic(channel) => Some(&**channel),
            Self::Udp(_) | Self::Tcp(_) => None,
        }
    }

    /// As [`Self::own_protocol`].
    pub(super) fn own_protocol_mut(&mut self) -> Option<&mut dyn OwnProtocol> {
        match self {
            Self::Encapsulated(channel) => Some(&mut **channel),
            Self::Quic(channel) => Some(&mut **channel),
            Self::Udp(_) | Self::Tcp(_) => None,
        }
    }

    /// The kernel's UDP, if it is that.
    pub(super) fn udp_mut(&mut self) -> Option<&mut UdpChannel> {
        match self {
            Self::Udp(channel) => Some(channel),
            Self::Tcp(_) | Self::Encapsulated(_) | Self::Quic(_) => None,
        }
    }

    /// The kernel's TCP, if it is that.
    pub(super) fn tcp_mut(&mut self) -> Option<&mut TcpChannel> {
        match self {
            Self::Tcp(channel) => Some(channel),
            Self::Udp(_) | Self::Encapsulated(_) | Self::Quic(_) => None,
        }
    }

    /// QUIC, if it is that.
    pub(super) fn quic_mut(&mut self) -> Option<&mut QuicChannel> {
        match self {
            Self::Quic(channel) => Some(channel),
            Self::Udp(_) | Self::Tcp(_) | Self::Encapsulated(_) => None,
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
