//! The enum of all kinds of channels. The macro `each!` dispatches a call to the kind by a match.

use super::encapsulated::EncapsulatedChannel;
use super::quic::QuicChannel;
use super::setup::ChannelSetup;
use super::tcp::TcpChannel;
use super::udp::UdpChannel;
use crate::spec::TransportSpec;

/// A channel of any kind.
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
    /// Makes the channel of an end, over the flow's transport.
    pub(super) fn new(setup: &ChannelSetup<'_>) -> Self {
        let ChannelSetup { flow, place, bound, common, .. } = *setup;
        match &flow.transport {
            TransportSpec::Udp { .. } => Self::Udp(Box::new(UdpChannel::new(flow, place, bound, common))),
            TransportSpec::Tcp { .. } => Self::Tcp(Box::new(TcpChannel::new(flow, place, bound, common))),
            TransportSpec::Encapsulated(spec) => {
                Self::Encapsulated(Box::new(EncapsulatedChannel::new(setup, spec)))
            }
            TransportSpec::Quic(spec) => Self::Quic(Box::new(QuicChannel::new(setup, spec))),
        }
    }

    /// Returns the channel if it is over the kernel's UDP.
    pub(super) fn udp_mut(&mut self) -> Option<&mut UdpChannel> {
        if let Self::Udp(channel) = self { Some(channel) } else { None }
    }

    /// Returns the channel if it is over the kernel's TCP.
    pub(super) fn tcp_mut(&mut self) -> Option<&mut TcpChannel> {
        if let Self::Tcp(channel) = self { Some(channel) } else { None }
    }

    /// Returns the channel if it is over QUIC.
    pub(super) fn quic_mut(&mut self) -> Option<&mut QuicChannel> {
        if let Self::Quic(channel) = self { Some(channel) } else { None }
    }
}

/// Makes a call on a channel of any kind.
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
