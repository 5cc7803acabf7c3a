//! The closed enum of all channels. A call is dispatched by a match.

use super::channel::{DatagramChannel, OwnProtocol};
use super::encapsulated::EncapsulatedChannel;
use super::quic::QuicChannel;
use super::setup::ChannelSetup;
use super::tcp::TcpChannel;
use super::udp::UdpChannel;
use crate::spec::TransportSpec;

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

    /// The channel over the kernel's UDP, if this is one.
    pub(super) fn udp_mut(&mut self) -> Option<&mut UdpChannel> {
        match self {
            Self::Udp(channel) => Some(channel),
            Self::Tcp(_) | Self::Encapsulated(_) | Self::Quic(_) => None,
        }
    }

    /// The channel over the kernel's TCP, if this is one.
    pub(super) fn tcp_mut(&mut self) -> Option<&mut TcpChannel> {
        match self {
            Self::Tcp(channel) => Some(channel),
            Self::Udp(_) | Self::Encapsulated(_) | Self::Quic(_) => None,
        }
    }

    /// The channel over QUIC, if this is one.
    pub(super) fn quic_mut(&mut self) -> Option<&mut QuicChannel> {
        match self {
            Self::Quic(channel) => Some(channel),
            Self::Udp(_) | Self::Tcp(_) | Self::Encapsulated(_) => None,
        }
    }
}

/// Makes the same call on the channel of any kind.
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
