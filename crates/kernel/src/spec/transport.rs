//! The transport of a flow as client and server describe it to each other: a socket, what is set on it, and
//! who runs the protocol.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use socket2::Protocol;
use talkpath_config::{
    Carry, CongestionControlKind, NagleKind, QUIC_DATAGRAM_AT_OPENING, TcpConfig, TransportConfig,
    TransportKind,
};
use talkpath_model::{Flow, LARGEST_BULK_MESSAGE};
use talkpath_units::{Bytes, Duration};

use super::bounds::{MAX_STREAM_MESSAGE, is_buffer};
use super::{EncapsulatedSpec, QuicSpec};
use crate::wire::MAX_UDP_PAYLOAD;

/// A socket and what is set on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportSpec {
    /// UDP.
    Udp {
        /// SO_RCVBUF, if the scenario set it.
        receive_buffer: Option<u64>,
        /// Whether datagrams leave with ECT(0) (RFC 3168 §5).
        #[serde(default)]
        ecn: bool,
    },
    /// TCP.
    Tcp {
        /// TCP_NODELAY.
        nodelay: bool,
        /// TCP_CONGESTION.
        cc: String,
        /// TCP_MAXSEG.
        mss: Option<u32>,
        /// SO_SNDBUF of the sender.
        send_buffer: Option<u64>,
        /// SO_RCVBUF of the receiver.
        receive_buffer: Option<u64>,
        /// Whether the socket is one of Multipath TCP (RFC 8684).
        #[serde(default)]
        multipath: bool,
    },
    /// QUIC, in UDP datagrams.
    Quic(QuicSpec),
    /// A protocol of ours, in UDP datagrams. As text it is under its own name, as those above are.
    #[serde(untagged)]
    Encapsulated(EncapsulatedSpec),
}

/// What channel a flow has between two real hosts, and so who opens it and who serves it. An arena matches
/// on this, and not on the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// A UDP socket of each host. The kernel runs the protocol; a datagram is a message.
    Datagrams,
    /// A TCP connection, which one host dials. The kernel runs the protocol.
    Connection,
    /// A UDP socket of each host, whose datagrams are packets of a protocol that runs in this process: both
    /// ends have timers, and a queue of their own from which messages leave.
    OverUdp,
}

impl ChannelKind {
    /// Whether each end has a UDP socket, which must be known to the other.
    pub const fn is_udp(self) -> bool {
        match self {
            Self::Datagrams | Self::OverUdp => true,
            Self::Connection => false,
        }
    }

    /// Whether the protocol runs in this process: then both ends have something to do at times of their own,
    /// and report when each message left its queue.
    pub const fn runs_here(self) -> bool {
        match self {
            Self::OverUdp => true,
            Self::Datagrams | Self::Connection => false,
        }
    }
}

impl TransportSpec {
    /// That of `flow`, on a path of this MTU.
    pub(super) fn new(flow: &Flow, mtu: Bytes) -> Self {
        let receive_buffer = flow.receiver.socket_buffer.map(Bytes::get);
        match &flow.transport {
            // A prompt reader's socket has room for the machine's own delays.
            TransportConfig::Udp(config) => Self::Udp {
                receive_buffer: receive_buffer
                    .or((!flow.receiver.service.is_zero()).then_some(config.socket_buffer.get())),
                ecn: config.ecn,
            },
            TransportConfig::Encapsulated(config) => {
                Self::Encapsulated(EncapsulatedSpec::new(config, flow.receiver.socket_buffer, mtu))
            }
            TransportConfig::Tcp(config) => Self::Tcp {
                nodelay: config.nagle == NagleKind::Off,
                cc: kernel_cc(config).to_owned(),
                mss: config.mss.map(|mss| u32::try_from(mss.get()).unwrap_or(u32::MAX)),
                send_buffer: config.send_buffer.map(Bytes::get),
                receive_buffer,
                multipath: config.multipath,
            },
            TransportConfig::Quic(config) => {
                Self::Quic(QuicSpec::new(config, flow.receiver.socket_buffer, mtu))
            }
        }
    }

    /// Which transport it is.
    pub const fn kind(&self) -> TransportKind {
        match self {
            Self::Udp { .. } => TransportKind::Udp,
            Self::Tcp { .. } => TransportKind::Tcp,
            Self::Encapsulated(spec) => TransportKind::Encapsulated(spec.kind()),
            Self::Quic(spec) => TransportKind::Quic(spec.carry()),
        }
    }

    /// The part that is QUIC's; `None` for another transport.
    pub const fn as_quic(&self) -> Option<&QuicSpec> {
        match self {
            Self::Quic(spec) => Some(spec),
            Self::Udp { .. } | Self::Tcp { .. } | Self::Encapsulated(_) => None,
        }
    }

    /// What channel it has between real hosts.
    pub const fn channel_kind(&self) -> ChannelKind {
        match self {
            Self::Udp { .. } => ChannelKind::Datagrams,
            Self::Tcp { .. } => ChannelKind::Connection,
            Self::Encapsulated(_) | Self::Quic(_) => ChannelKind::OverUdp,
        }
    }

    /// The largest message that it carries, or that a session may have.
    pub(super) fn largest_message(&self) -> u64 {
        match self {
            Self::Udp { .. } => MAX_UDP_PAYLOAD,
            Self::Tcp { .. } => MAX_STREAM_MESSAGE,
            Self::Encapsulated(spec) => spec.largest_message(),
            Self::Quic(spec) => spec.largest_message(),
        }
    }

    /// The largest message of a transfer, which fills what there is.
    pub(super) fn largest_greedy(&self) -> u64 {
        let largest = self.largest_message().min(LARGEST_BULK_MESSAGE.get());
        match self {
            Self::Quic(spec) if spec.carry() == Carry::Datagram => {
                largest.min(QUIC_DATAGRAM_AT_OPENING.get())
            }
            Self::Udp { .. } | Self::Tcp { .. } | Self::Encapsulated(_) | Self::Quic(_) => largest,
        }
    }

    /// What no scenario's check would have let through, in words.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        let check = |key: &str, size: &Option<u64>| match size {
            Some(size) if !is_buffer(*size) => {
                Err(format!("{key} = \"{size} B\": a socket's buffer has at least 1 B and at most 1 GiB"))
            }
            _ => Ok(()),
        };
        match self {
            Self::Udp { receive_buffer, .. } => check("the receiver's socket_buffer", receive_buffer),
            Self::Tcp { cc, .. } if !is_congestion_control(cc) => Err(format!(
                "the name of a congestion control has 1 to {MAX_CC_NAME} of the characters a-z, 0-9, _ and -"
            )),
            Self::Tcp { mss: Some(mss), .. } if !SEGMENT_SIZES.contains(mss) => Err(format!(
                "mss = \"{mss} B\": a socket of Linux takes {} to {} B (TCP_MAXSEG)",
                SEGMENT_SIZES.start(),
                SEGMENT_SIZES.end()
            )),
            Self::Tcp { send_buffer, receive_buffer, .. } => {
                check("send_buffer", send_buffer)?;
                check("receiver.socket_buffer", receive_buffer)
            }
            Self::Encapsulated(spec) => spec.check(),
            Self::Quic(spec) => spec.check(),
        }
    }

    /// A server with this keeps no state before a client's address is shown (RFC 4340 §8.1.4).
    pub(super) fn keep_no_state(&mut self) {
        match self {
            // Who talks QUIC here has registered its address.
            Self::Udp { .. } | Self::Tcp { .. } | Self::Quic(_) => {}
            Self::Encapsulated(spec) => spec.keep_no_state(),
        }
    }

    /// TCP_CONGESTION, if the kernel's TCP carries the flow.
    pub fn cc(&self) -> Option<&str> {
        match self {
            Self::Udp { .. } | Self::Encapsulated(_) | Self::Quic(_) => None,
            Self::Tcp { cc, .. } => Some(cc),
        }
    }

    /// Whether it is Multipath TCP.
    pub const fn is_multipath(&self) -> bool {
        match self {
            Self::Udp { .. } | Self::Encapsulated(_) | Self::Quic(_) => false,
            Self::Tcp { multipath, .. } => *multipath,
        }
    }

    /// The protocol of a socket for its connection.
    pub const fn stream_protocol(&self) -> Protocol {
        if self.is_multipath() { Protocol::MPTCP } else { Protocol::TCP }
    }

    /// TCP_MAXSEG, if the scenario set it.
    pub const fn mss(&self) -> Option<u32> {
        match self {
            Self::Udp { .. } | Self::Encapsulated(_) | Self::Quic(_) => None,
            Self::Tcp { mss, .. } => *mss,
        }
    }

    /// Whether the scenario sets a segment size on a connection of Multipath TCP.
    pub const fn sets_multipath_mss(&self) -> bool {
        self.is_multipath() && self.mss().is_some()
    }

    /// Whether its datagrams leave with ECT(0), set on the socket or beside each of them.
    pub const fn sets_ect(&self) -> bool {
        match self {
            Self::Udp { ecn, .. } => *ecn,
            // Until the engine finds that the path takes no marks (RFC 9000 §13.4.2).
            Self::Quic(_) => true,
            Self::Tcp { .. } | Self::Encapsulated(_) => false,
        }
    }

    /// How long a message is of use from its due time on; `None` for ever.
    pub fn lifetime(&self) -> Option<Duration> {
        match self {
            Self::Quic(spec) => spec.lifetime(),
            Self::Udp { .. } | Self::Tcp { .. } | Self::Encapsulated(_) => None,
        }
    }

    /// SO_RCVBUF of a UDP socket, if the scenario set it. A protocol that runs in this process has a buffer
    /// of its own instead.
    pub const fn datagram_buffer(&self) -> Option<u64> {
        match self {
            Self::Udp { receive_buffer, .. } => *receive_buffer,
            Self::Tcp { .. } | Self::Encapsulated(_) | Self::Quic(_) => None,
        }
    }
}

/// The kernel's name for the congestion control of `config`; its `reno` recovers as NewReno does (RFC 6582).
const fn kernel_cc(config: &TcpConfig) -> &'static str {
    match config.cc {
        // No kernel has it; the socket option says so.
        Some(CongestionControlKind::Tahoe) => "tahoe",
        Some(CongestionControlKind::Reno | CongestionControlKind::NewReno) => "reno",
        Some(CongestionControlKind::Cubic) | None => "cubic",
        Some(CongestionControlKind::Bbr) => "bbr",
    }
}

/// Whether the kernel may have a congestion control of this name. The other host's is quoted on the terminal
/// and in files.
pub(crate) fn is_congestion_control(name: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    (1..=MAX_CC_NAME).contains(&name.len()) && name.bytes().all(is_plain)
}

/// What a socket of Linux takes as TCP_MAXSEG, in bytes: TCP_MIN_MSS to MAX_TCP_WINDOW (net/ipv4/tcp.c,
/// do_tcp_setsockopt; include/net/tcp.h).
pub const SEGMENT_SIZES: RangeInclusive<u32> = 88..=32_767;

/// TCP_CA_NAME_MAX (include/net/tcp.h) is 16 with the NUL at the end.
const MAX_CC_NAME: usize = 15;
