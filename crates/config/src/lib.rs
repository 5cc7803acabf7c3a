//! What a scenario may choose about a transport, resolved: every default is written out. And the table of
//! voice codecs, which scenarios choose from and figures are made by.
//!
//! Scenarios, studies and reports need these types and not the protocols, so a change in a protocol does not
//! compile them again.
//!
//! - *stack*: the implementation that a transport's defaults follow: Linux, the RFCs, or 4.3BSD-Reno.
//! - *kind*: which transport it is, without its options.
//! - *feature*: what a transport provides to an application, such as whole messages (RFC 8303 §2).
//! - *encapsulated*: a protocol of ours that real hosts carry in UDP datagrams.
//! - *carry*: what carries a message over QUIC: a datagram, the one stream, or a stream of its own.
//! - *small head*: Linux's memory object for the head of a small packet (skbuff_small_head).
//! - *row*: what is known of a voice codec.
//!
//! Begin to read with [`TransportConfig`], then `features.rs`.

mod codec;
mod congestion;
mod encapsulated;
mod features;
mod kind;
mod quic;
mod size;
mod words;

pub use codec::{Codec, CodecRow, Concealed, FrameShape, G711_FRAMES, Impairment, SILENCE};
pub use congestion::CongestionControlKind;
pub use encapsulated::*;
pub use features::Features;
pub use kind::TransportKind;
pub use quic::{
    Carry, QUIC_DATAGRAM_AT_OPENING, QuicCongestionControl, SMALLEST_QUIC_MTU, largest_quic_datagram,
    quic_packet_size,
};
pub use size::{CACHE_LINE, SHARED_INFO, UDP_OVER_IPV4, small_head};

use talkpath_units::{Bytes, Duration, Packets};

/// Of windows and queues. Chosen: past any path in packets.
pub const LARGEST_WINDOW: Packets = Packets::new(1_000_000_000);

/// Of initial windows. Chosen: a greedy flow without a receiver's window (DCCP) sends the whole window at one
/// moment, which memory has to hold.
pub const LARGEST_INITIAL_WINDOW: Packets = Packets::new(1_000_000);

/// Which transport, with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum TransportConfig {
    /// UDP (RFC 768).
    Udp(UdpConfig),
    /// TCP (RFC 9293).
    Tcp(TcpConfig),
    /// A protocol of ours that real hosts carry in UDP datagrams.
    Encapsulated(EncapsulatedConfig),
    /// QUIC (RFC 9000, RFC 9221).
    Quic(QuicConfig),
}

/// Which side of a connection a transport is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opens the connection.
    Active,
    /// Waits for it.
    Passive,
}

/// UDP's options.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpConfig {
    /// What the receiving socket's room is counted in: memory (Linux), or payload (the others).
    pub stack: Stack,
    /// Room of the receiving socket: of Linux the value given to SO_RCVBUF, which it doubles.
    pub socket_buffer: Bytes,
    /// See [`TcpConfig::small_head`].
    pub small_head: Option<Bytes>,
    /// Whether its datagrams take marks, ECT(0) of RFC 3168 §5. Nothing here answers a mark.
    pub ecn: bool,
}

/// TCP's options. The `stack` presets fill them; each key of the scenario overrides one.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// Which implementation the presets come from.
    pub stack: Stack,
    /// Whether and how small segments wait for acknowledgements.
    pub nagle: NagleKind,
    /// Congestion control; `None` takes the arena's default.
    pub cc: Option<CongestionControlKind>,
    /// Largest payload of a segment, options not counted off; `None` takes the path's MTU less 40 bytes.
    pub mss: Option<Bytes>,
    /// Receive buffer of the far end, which bounds the advertised window.
    pub rwnd: Bytes,
    /// The part of `rwnd` that Linux offers at first: half of `net.ipv4.tcp_rmem[1]`.
    pub initial_rwnd: Bytes,
    /// When the receiver acknowledges.
    pub delayed_ack: DelayedAck,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Tail loss probe (RFC 8985 §7).
    pub tlp: bool,
    /// Whether segments are spread over the round trip.
    pub pacing: bool,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// Whether a congestion window that was not filled stays as it is (RFC 7661 §1; tcp_is_cwnd_limited). If
    /// not, every acknowledgement opens it, up to the largest window that the far end could offer.
    pub cwnd_validation: bool,
    /// How congestion avoidance opens a window that counts bytes.
    pub growth: Growth,
    /// The timestamps option (RFC 7323 §3).
    pub timestamps: bool,
    /// The window scale option (RFC 7323 §2), which is agreed on separately.
    pub window_scaling: bool,
    /// Whether packets may be marked instead of dropped (RFC 3168), if both ends agree.
    pub ecn: bool,
    /// Lower bound of the RTO.
    pub min_rto: Duration,
    /// Clock tick G of the retransmission timer (RFC 6298 §2); zero for a clock as fine as the arena's.
    pub timer_granularity: Duration,
    /// Whether each host's timers tick in a phase of their own.
    pub ticks: Ticks,
    /// Initial congestion window (RFC 6928, RFC 3390, or 1).
    pub initial_window: Packets,
    /// Initial slow start threshold; `None` is unlimited.
    pub initial_ssthresh: Option<Packets>,
    /// Room for written, unacknowledged data: of Linux the value given to SO_SNDBUF, of the others payload;
    /// `None` follows the congestion window as Linux's autotuning does.
    pub send_buffer: Option<Bytes>,
    /// Memory that an autotuned send buffer grows to: `net.ipv4.tcp_wmem[2]`.
    pub send_buffer_max: Bytes,
    /// What the sending kernel keeps free for headers before a segment's payload (MAX_TCP_HEADER), which
    /// Linux's send buffer is charged too: 320 B with wireless networks or tunnels built in, 192 B without.
    pub header_room: Bytes,
    /// The allocator's object for the head of a small packet, its skb_shared_info included (skbuff_small_head
    /// of Linux 6.3 and later). `None` takes the next power of two, as earlier kernels do.
    pub small_head: Option<Bytes>,
    /// Whether the send buffer takes a whole message, however large, as long as it holds less than its room.
    pub overfill: bool,
    /// Whether the connection may use several paths (RFC 8684). It is the kernel's doing: nothing here models
    /// it.
    pub multipath: bool,
}

impl TransportConfig {
    /// Whether its packets are to take marks (RFC 3168).
    pub fn wants_ecn(&self) -> bool {
        match self {
            Self::Udp(config) => config.ecn,
            Self::Tcp(config) => config.ecn,
            Self::Encapsulated(config) => config.options().wants_ecn(),
            // RFC 9000 §13.4: its packets always do until the path proves that it does not carry marks.
            Self::Quic(_) => true,
        }
    }

    /// Whether it is TCP that may use several paths.
    pub const fn wants_multipath(&self) -> bool {
        matches!(self, Self::Tcp(TcpConfig { multipath: true, .. }))
    }

    /// UDP as a Linux host has it.
    pub const fn udp_default() -> Self {
        Self::Udp(UdpConfig::LINUX)
    }

    /// TCP with the presets of `stack`; `nodelay` switches Nagle's algorithm off.
    pub const fn tcp_preset(stack: Stack, nodelay: bool) -> Self {
        Self::Tcp(TcpConfig::preset(stack, nodelay))
    }
}

impl UdpConfig {
    /// Half of Linux's `net.core.rmem_default`, so that a socket that sets nothing has twice as much.
    pub const DEFAULT_ROOM: Bytes = Bytes::new(106_496);

    /// A Linux host without wireless networks or tunnels.
    pub const LINUX: Self = Self {
        stack: Stack::Linux,
        socket_buffer: Self::DEFAULT_ROOM,
        small_head: Some(small_head(Bytes::new(192))),
        ecn: false,
    };
}

impl TcpConfig {
    /// What `stack` does if the scenario says nothing; `nodelay` switches Nagle's algorithm off.
    pub const fn preset(stack: Stack, nodelay: bool) -> Self {
        let preset = match stack {
            Stack::Linux => Self::LINUX,
            Stack::Rfc => Self::RFC,
            Stack::BsdReno => Self::BSD_RENO,
        };
        Self { nagle: if nodelay { NagleKind::Off } else { preset.nagle }, ..preset }
    }

    /// Linux 6.x with its sysctls untouched.
    const LINUX: Self = Self {
        stack: Stack::Linux,
        // tcp_output.c, tcp_nagle_check with tcp_minshall_check.
        nagle: NagleKind::Minshall,
        cc: None,
        mss: None,
        // Half of tcp_rmem[2] = 32 MiB (since Linux 6.16): the other half is left to overhead. The window
        // grows there from 64 KiB (tcp/receive/tuning.rs).
        rwnd: Bytes::new(16 << 20),
        initial_rwnd: INITIAL_RWND,
        delayed_ack: DelayedAck::Linux,
        // net.ipv4.tcp_sack = 1, tcp_early_retrans = 3.
        sack: true,
        tlp: true,
        // sk_pacing_status is set by BBR or the fq qdisc alone.
        pacing: false,
        // tcp_limited_transmit follows from counting duplicate ACKs as SACKed segments (tcp_add_reno_sack).
        limited_transmit: true,
        // tcp_is_cwnd_limited.
        cwnd_validation: true,
        growth: Growth::Counted,
        // net.ipv4.tcp_timestamps = 1, tcp_window_scaling = 1.
        timestamps: true,
        window_scaling: true,
        // net.ipv4.tcp_ecn = 2: accepted, but not offered.
        ecn: false,
        // TCP_RTO_MIN = HZ / 5: in Linux the floor of the variance term, not of the whole.
        min_rto: Duration::from_millis(200),
        // A jiffy at HZ = 1000.
        timer_granularity: Duration::from_millis(1),
        // The two hosts of the emulated arena share a kernel.
        ticks: Ticks::Common,
        // TCP_INIT_CWND (RFC 6928).
        initial_window: Packets::new(10),
        initial_ssthresh: None,
        // tcp_sndbuf_expand.
        send_buffer: None,
        send_buffer_max: SEND_BUFFER_MAX,
        header_room: HEADER_ROOM,
        small_head: Some(small_head(HEADER_ROOM)),
        overfill: false,
        multipath: false,
    };

    /// The RFCs to the letter, with what they recommend.
    const RFC: Self = Self {
        stack: Stack::Rfc,
        // RFC 9293 §3.7.4.
        nagle: NagleKind::Classic,
        cc: Some(CongestionControlKind::NewReno),
        mss: None,
        // Chosen: wide enough for every preset path; see docs/models/transports.md.
        rwnd: Bytes::new(1 << 20),
        initial_rwnd: INITIAL_RWND,
        // RFC 9293 §3.8.6.3 and RFC 5681 §4.2 allow 500 ms; 200 ms is BSD's, widely copied.
        delayed_ack: DelayedAck::After { timeout: Duration::from_millis(200) },
        sack: true,
        tlp: false,
        pacing: false,
        // RFC 5681 §3.2 step 1.
        limited_transmit: true,
        // RFC 7661 §1: a window that was not filled says nothing about the path.
        cwnd_validation: true,
        growth: Growth::Counted,
        timestamps: true,
        window_scaling: true,
        // RFC 3168 leaves the offer to the host.
        ecn: false,
        // RFC 6298 §2.4.
        min_rto: Duration::from_secs(1),
        timer_granularity: Duration::ZERO,
        ticks: Ticks::Own,
        // RFC 6928 §2.
        initial_window: Packets::new(10),
        initial_ssthresh: None,
        send_buffer: None,
        send_buffer_max: SEND_BUFFER_MAX,
        header_room: HEADER_ROOM,
        small_head: Some(small_head(HEADER_ROOM)),
        overfill: false,
        multipath: false,
    };

    /// 4.3BSD-Reno of 1990.
    const BSD_RENO: Self = Self {
        stack: Stack::BsdReno,
        nagle: NagleKind::Classic,
        cc: Some(CongestionControlKind::Reno),
        mss: None,
        // tcp_recvspace: 8 KiB in Net/2, 16 KiB in FreeBSD 2 and NetBSD 1; the larger is chosen.
        rwnd: Bytes::new(16 << 10),
        initial_rwnd: INITIAL_RWND,
        // PR_FASTHZ = 5: tcp_fasttimo runs every 200 ms.
        delayed_ack: DelayedAck::Tick { period: Duration::from_millis(200) },
        sack: false,
        tlp: false,
        pacing: false,
        limited_transmit: false,
        // tcp_input opens the window at every acknowledgement of new data, up to TCP_MAXWIN.
        cwnd_validation: false,
        // tcp_input: maxseg * maxseg / cwnd, and an eighth of maxseg.
        growth: Growth::Bsd,
        timestamps: false,
        window_scaling: false,
        ecn: false,
        // TCPTV_MIN = 1 * PR_SLOWHZ = 2 ticks of tcp_slowtimo, 500 ms each.
        min_rto: Duration::from_secs(1),
        timer_granularity: Duration::from_millis(500),
        ticks: Ticks::Own,
        initial_window: Packets::new(1),
        initial_ssthresh: None,
        // tcp_sendspace, as tcp_recvspace.
        send_buffer: Some(Bytes::new(16 << 10)),
        send_buffer_max: SEND_BUFFER_MAX,
        header_room: HEADER_ROOM,
        small_head: Some(small_head(HEADER_ROOM)),
        overfill: false,
        multipath: false,
    };
}

/// Half of `net.ipv4.tcp_rmem[1]` = 131,072 B.
const INITIAL_RWND: Bytes = Bytes::new(64 << 10);
/// `net.ipv4.tcp_wmem[2]`.
const SEND_BUFFER_MAX: Bytes = Bytes::new(4 << 20);
/// MAX_TCP_HEADER with wireless networks or tunnels.
const HEADER_ROOM: Bytes = Bytes::new(320);

/// QUIC's options, the same at both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct QuicConfig {
    /// What carries a message.
    pub carry: Carry,
    /// Congestion control of both ends.
    pub cc: QuicCongestionControl,
    /// A message that has waited longer than this is not put into a packet any more; `None` never expires.
    pub expire: Option<Duration>,
    /// Data of a higher priority leaves first, among the flows of one connection.
    pub priority: u8,
    /// Whether the client sends data in its first flight, with the ticket of an earlier connection.
    pub zero_rtt: bool,
    /// The connection that the flow shares with others of the same name; `None` is one of its own.
    pub connection: Option<String>,
    /// Whether packets are encrypted. Without it they keep their sizes, and the simulator saves the
    /// arithmetic.
    pub encryption: bool,
}

impl QuicConfig {
    /// What `carry` does if the scenario says nothing.
    pub const fn new(carry: Carry) -> Self {
        Self {
            carry,
            // quinn's default, and Linux's of TCP.
            cc: QuicCongestionControl::Cubic,
            expire: None,
            priority: 0,
            zero_rtt: false,
            connection: None,
            encryption: true,
        }
    }
}

words! {
    /// Whose TCP the defaults follow.
    pub enum Stack {
        /// Linux 6.x.
        Linux = "linux",
        /// The RFCs to the letter.
        Rfc = "rfc",
        /// 4.3BSD-Reno of 1990.
        BsdReno = "bsd-reno",
    }
}

words! {
    /// When the clocks tick that the timers of a simulation's hosts fall on.
    pub enum Ticks {
        /// Each in a phase of its own, drawn from the flow's seed: hosts that were not started together.
        Own = "own",
        /// All at once, from the beginning of the run on.
        Common = "common",
    }
}

words! {
    /// When a segment smaller than the maximum may leave.
    pub enum NagleKind {
        /// At once: TCP_NODELAY.
        Off = "off",
        /// When nothing is unacknowledged (RFC 896).
        Classic = "classic",
        /// When no small segment is unacknowledged (Minshall; Linux).
        Minshall = "minshall",
    }
}

/// When the receiver sends an acknowledgement that nothing else carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAck {
    /// At once for every segment.
    Off,
    /// At the second full segment or after `timeout` (RFC 9293 §3.8.6.3, RFC 5681 §4.2).
    After {
        /// At most 500 ms.
        timeout: Duration,
    },
    /// At the second full segment or at the next tick of one clock of this period (BSD's fast timer, 200 ms).
    Tick {
        /// The clock's period.
        period: Duration,
    },
    /// Linux: quick acknowledgements at the start and after idle, then an adaptive 40 to 200 ms.
    Linux,
}

words! {
    /// How congestion avoidance opens a window that counts bytes: about one SMSS a round trip.
    #[derive(Default)]
    pub enum Growth {
        /// By one SMSS each time that a whole `cwnd` was acknowledged, which RFC 5681 §3.1 recommends.
        #[default]
        Counted = "counted",
        /// By SMSS * SMSS / `cwnd`, and one byte at least, with each acknowledgement of new data (RFC 5681
        /// §3.1 eq. 3).
        EachAck = "each-ack",
        /// By an eighth of SMSS more with each acknowledgement, as 4.3BSD-Reno did, which takes a window
        /// equal to `ssthresh` for one in slow start. RFC 5681 §3.1 calls the addition incorrect.
        Bsd = "bsd",
    }
}

impl Stack {
    /// The upper bound of its retransmission timeout.
    pub const fn max_rto(self) -> Duration {
        match self {
            // TCP_RTO_MAX.
            Self::Linux => Duration::from_secs(120),
            // RFC 6298 §2.5: at least 60 s.
            Self::Rfc => Duration::from_secs(60),
            // TCPTV_REXMTMAX.
            Self::BsdReno => Duration::from_secs(64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5681 §4.2, RFC 9293 §3.8.6.3 (MUST-40). Linux's timer has a bound of its own (ATO_MAX).
    #[test]
    fn no_preset_delays_an_acknowledgement_by_half_a_second() {
        let half_a_second = Duration::from_millis(500);
        for stack in [Stack::Rfc, Stack::BsdReno] {
            match TcpConfig::preset(stack, false).delayed_ack {
                DelayedAck::After { timeout: wait } | DelayedAck::Tick { period: wait } => {
                    assert!(wait < half_a_second, "{stack:?}: {wait:?}");
                }
                other => panic!("{stack:?}: {other:?}"),
            }
        }
        assert_eq!(TcpConfig::preset(Stack::Linux, false).delayed_ack, DelayedAck::Linux);
    }
}
