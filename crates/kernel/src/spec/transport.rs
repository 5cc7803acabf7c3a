//! The transport of a flow, as client and server describe it to each other: the kind of socket and its
//! options.

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

/// A socket and its options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportSpec {
    /// UDP.
    Udp {
        /// SO_RCVBUF, if the scenario set it.
        receive_buffer: Option<u64>,
        /// True if datagrams leave with ECT(0) (RFC 3168 §5).
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
        /// True if the socket is one of Multipath TCP (RFC 8684).
        #[serde(default)]
        multipath: bool,
    },
    /// QUIC, in UDP datagrams.
    Quic(QuicSpec),
    /// A protocol of ours, in UDP datagrams. Its JSON has the protocol's own name as the key, as the other
    /// transports have theirs.
    #[serde(untagged)]
    Encapsulated(EncapsulatedSpec),
}

/// The kind of a flow's channel between two real hosts. It decides who opens the channel and which thread
/// serves it. An arena matches on this kind and not on the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// Each host has a UDP socket. The kernel runs the protocol, and a datagram is a message.
    Datagrams,
    /// A TCP connection, which one host dials. The kernel runs the protocol.
    Connection,
    /// Each host has a UDP socket. Its datagrams are packets of a protocol that runs in this process. Both
    /// ends have timers and a send queue of their own.
    OverUdp,
}

impl ChannelKind {
    /// Returns true if each end has a UDP socket whose address the other end must know.
    pub const fn is_udp(self) -> bool {
        match self {
            Self::Datagrams | Self::OverUdp => true,
            Self::Connection => false,
        }
    }

    /// Returns true if the protocol runs in this process. Both ends then have timers, and they report when
    /// each message left the send queue.
    pub const fn runs_here(self) -> bool {
        match self {
            Self::OverUdp => true,
            Self::Datagrams | Self::Connection => false,
        }
    }
}

impl TransportSpec {
    /// Makes the transport of `flow`, on a path with this MTU.
    pub(super) fn new(flow: &Flow, mtu: Bytes) -> Self {
        let receive_buffer = flow.receiver.socket_buffer.map(Bytes::get);
        match &flow.transport {
            // Without a service time the receiver reads promptly. Its socket then keeps the kernel's usual
            // buffer, which has room for the delays of the machine.
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

    /// Returns the kind of the transport.
    pub const fn kind(&self) -> TransportKind {
        match self {
            Self::Udp { .. } => TransportKind::Udp,
            Self::Tcp { .. } => TransportKind::Tcp,
            Self::Encapsulated(spec) => TransportKind::Encapsulated(spec.kind()),
            Self::Quic(spec) => TransportKind::Quic(spec.carry()),
        }
    }

    /// Returns the name of the protocol, without its options: `TCP`.
    pub fn protocol(&self) -> String {
        match self.kind() {
            TransportKind::Udp => "UDP".to_owned(),
            TransportKind::Tcp => "TCP".to_owned(),
            TransportKind::Quic(_) => "QUIC".to_owned(),
            // The names in scenarios begin with that of the protocol: `dccp-ccid2`.
            TransportKind::Encapsulated(kind) => {
                let name = kind.transport_names().first().copied().unwrap_or_default();
                name.split('-').next().unwrap_or_default().to_uppercase()
            }
        }
    }

    /// Returns the spec of QUIC. Returns `None` for another transport.
    pub const fn as_quic(&self) -> Option<&QuicSpec> {
        if let Self::Quic(spec) = self { Some(spec) } else { None }
    }

    /// Returns the kind of the channel between real hosts.
    pub const fn channel_kind(&self) -> ChannelKind {
        match self {
            Self::Udp { .. } => ChannelKind::Datagrams,
            Self::Tcp { .. } => ChannelKind::Connection,
            Self::Encapsulated(_) | Self::Quic(_) => ChannelKind::OverUdp,
        }
    }

    /// Returns the size in bytes of the largest message that the transport carries and that a session may
    /// have.
    pub(super) fn largest_message(&self) -> u64 {
        match self {
            Self::Udp { .. } => MAX_UDP_PAYLOAD,
            Self::Tcp { .. } => MAX_STREAM_MESSAGE,
            Self::Encapsulated(spec) => spec.largest_message(),
            Self::Quic(spec) => spec.largest_message(),
        }
    }

    /// Returns the size in bytes of the largest message of a transfer. A transfer makes its messages as large
    /// as possible.
    pub(super) fn largest_greedy(&self) -> u64 {
        let largest = self.largest_message().min(LARGEST_BULK_MESSAGE.get());
        let is_quic_datagram = self.as_quic().is_some_and(|spec| spec.carry() == Carry::Datagram);
        if is_quic_datagram { largest.min(QUIC_DATAGRAM_AT_OPENING.get()) } else { largest }
    }

    /// Checks the values as the check of a scenario does, because a far end may have sent the spec.
    ///
    /// # Errors
    /// Returns a text that says what is wrong.
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

    /// Makes the server keep no state before the client has proved its address (RFC 4340 §8.1.4).
    pub(super) fn keep_no_state(&mut self) {
        // A client with another transport is no stranger. Over QUIC it has registered its address.
        if let Self::Encapsulated(spec) = self {
            spec.keep_no_state();
        }
    }

    /// Returns the value of TCP_CONGESTION, if the kernel's TCP carries the flow.
    pub fn cc(&self) -> Option<&str> {
        if let Self::Tcp { cc, .. } = self { Some(cc) } else { None }
    }

    /// Returns true if the transport is Multipath TCP.
    pub const fn is_multipath(&self) -> bool {
        matches!(self, Self::Tcp { multipath: true, .. })
    }

    /// Returns the protocol of the socket of a TCP connection.
    pub const fn stream_protocol(&self) -> Protocol {
        if self.is_multipath() { Protocol::MPTCP } else { Protocol::TCP }
    }

    /// Returns the value of TCP_MAXSEG, if the scenario set it.
    pub const fn mss(&self) -> Option<u32> {
        if let Self::Tcp { mss, .. } = self { *mss } else { None }
    }

    /// Returns true if the scenario sets a segment size on a connection of Multipath TCP.
    pub const fn sets_multipath_mss(&self) -> bool {
        self.is_multipath() && self.mss().is_some()
    }

    /// Returns true if this program makes datagrams leave with ECT(0), by an option of the socket or of each
    /// send.
    pub const fn sets_ect(&self) -> bool {
        match self {
            Self::Udp { ecn, .. } => *ecn,
            // QUIC stops if the engine finds that the path does not pass ECT(0) (RFC 9000 §13.4.2).
            Self::Quic(_) => true,
            Self::Tcp { .. } | Self::Encapsulated(_) => false,
        }
    }

    /// Returns the time after its due time at which a message expires. Returns `None` if messages never
    /// expire.
    pub fn lifetime(&self) -> Option<Duration> {
        self.as_quic().and_then(QuicSpec::lifetime)
    }

    /// Returns the value of SO_RCVBUF of a UDP socket, if the scenario set it. A protocol that runs in this
    /// process has a buffer of its own instead.
    pub const fn datagram_buffer(&self) -> Option<u64> {
        if let Self::Udp { receive_buffer, .. } = self { *receive_buffer } else { None }
    }
}

/// The kernel's name for the congestion control of `config`. The kernel's `reno` recovers as NewReno does
/// (RFC 6582), so it stands for both.
const fn kernel_cc(config: &TcpConfig) -> &'static str {
    match config.cc {
        // No kernel has Tahoe. The error of the socket option says so.
        Some(CongestionControlKind::Tahoe) => "tahoe",
        Some(CongestionControlKind::Reno | CongestionControlKind::NewReno) => "reno",
        Some(CongestionControlKind::Cubic) | None => "cubic",
        Some(CongestionControlKind::Bbr) => "bbr",
    }
}

/// Returns true if a kernel may have a congestion control of this name. The other host's name is printed on
/// the terminal and in files, so it must not contain control characters.
pub(crate) fn is_congestion_control(name: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    (1..=MAX_CC_NAME).contains(&name.len()) && name.bytes().all(is_plain)
}

/// The values in bytes that a socket of Linux takes as TCP_MAXSEG: TCP_MIN_MSS to MAX_TCP_WINDOW
/// (do_tcp_setsockopt of net/ipv4/tcp.c; include/net/tcp.h).
pub const SEGMENT_SIZES: RangeInclusive<u32> = 88..=32_767;

/// The longest name of a congestion control. TCP_CA_NAME_MAX (include/net/tcp.h) is 16 with the NUL at the
/// end.
const MAX_CC_NAME: usize = 15;
