//! The options of each transport with all defaults filled in, and the table of voice codecs.
//!
//! Scenarios, studies and reports need these types, but not the protocols. So after a change in a protocol
//! they do not have to be compiled again.
//!
//! - *stack*: the implementation that a transport's defaults follow: Linux, the RFCs, or 4.3BSD-Reno.
//! - *kind*: a transport without its options.
//! - *feature*: what a transport provides to an application, such as whole messages (RFC 8303 §2).
//! - *encapsulated*: a protocol of ours that real hosts carry in UDP datagrams.
//! - *carry*: the part of QUIC that carries a message: a datagram, the one stream, or a stream for each
//!   message.
//! - *small head*: Linux's memory object for the head of a small packet (skbuff_small_head).
//! - *row*: the facts about a voice codec.
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

pub use codec::{
    Bandwidth, ChosenFrames, Codec, CodecConcealment, CodecRow, Coding, FrameShape, Frames, G711_FRAMES,
    Impairment, Rated, SILENCE, Scale, SilenceShape,
};
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

/// The largest window or queue. We chose a billion packets, which is more than any path holds.
pub const LARGEST_WINDOW: Packets = Packets::new(1_000_000_000);

/// The largest initial window. A greedy flow without a window of the receiver (DCCP) sends the whole window
/// at once, so we chose a million packets, which fit in memory.
pub const LARGEST_INITIAL_WINDOW: Packets = Packets::new(1_000_000);

/// A transport with its options.
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

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that opens the connection.
    Active,
    /// The side that waits for the connection.
    Passive,
}

/// The options of UDP.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpConfig {
    /// The implementation. With Linux the receive buffer counts memory, with the others it counts payload.
    pub stack: Stack,
    /// The size of the receive buffer. For Linux it is the value given to SO_RCVBUF, which Linux doubles.
    pub socket_buffer: Bytes,
    /// See [`TcpConfig::small_head`].
    pub small_head: Option<Bytes>,
    /// Whether the datagrams may get ECN marks: they are sent as ECT(0) (RFC 3168 §5). UDP itself does not
    /// react to a mark.
    pub ecn: bool,
}

/// The options of TCP. The preset of `stack` fills them, and each key of the scenario replaces one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// The implementation whose preset is used.
    pub stack: Stack,
    /// Nagle's algorithm: the rule by which a small segment waits for acknowledgements.
    pub nagle: NagleKind,
    /// The congestion control, or `None` for the default of the arena.
    pub cc: Option<CongestionControlKind>,
    /// The largest payload of a segment without options (MSS). `None` stands for the MTU of the path minus 40
    /// bytes.
    pub mss: Option<Bytes>,
    /// The receive buffer of the far end. It limits the advertised window.
    pub rwnd: Bytes,
    /// The window that Linux advertises at first: half of `net.ipv4.tcp_rmem[1]`.
    pub initial_rwnd: Bytes,
    /// The rule by which the receiver delays acknowledgements.
    pub delayed_ack: DelayedAck,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Tail loss probe (RFC 8985 §7).
    pub tlp: bool,
    /// Whether segments are spread over the round trip (pacing).
    pub pacing: bool,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// Whether the congestion window stays as it is while the sender does not fill it (RFC 7661 §1;
    /// tcp_is_cwnd_limited). If not, every acknowledgement opens the window, up to the largest window that
    /// the far end could offer.
    pub cwnd_validation: bool,
    /// The rule by which congestion avoidance opens a window that counts bytes.
    pub growth: Growth,
    /// The timestamps option (RFC 7323 §3).
    pub timestamps: bool,
    /// The window scale option (RFC 7323 §2), which is agreed on separately.
    pub window_scaling: bool,
    /// Whether queues may mark packets instead of dropping them (ECN, RFC 3168), if both ends agree.
    pub ecn: bool,
    /// The lower bound of the retransmission timeout (RTO).
    pub min_rto: Duration,
    /// The tick G of the clock of the retransmission timer (RFC 6298 §2). Zero stands for a clock as fine as
    /// that of the arena.
    pub timer_granularity: Duration,
    /// Whether the timers of all hosts tick at the same time.
    pub ticks: Ticks,
    /// The initial congestion window (RFC 6928, RFC 3390, or 1).
    pub initial_window: Packets,
    /// The initial slow start threshold, or `None` if it is unlimited.
    pub initial_ssthresh: Option<Packets>,
    /// The size of the send buffer, which holds data until it is acknowledged. For Linux it is the value
    /// given to SO_SNDBUF, for the others it counts payload. With `None` it follows the congestion window, as
    /// the autotuning of Linux does.
    pub send_buffer: Option<Bytes>,
    /// The size up to which an autotuned send buffer grows, in memory: `net.ipv4.tcp_wmem[2]`.
    pub send_buffer_max: Bytes,
    /// The space that the sending kernel keeps free for headers before the payload of a segment
    /// (MAX_TCP_HEADER). The send buffer of Linux counts it too. It is 320 B in a kernel with wireless
    /// networks or tunnels, else 192 B.
    pub header_room: Bytes,
    /// The memory object for the head of a small packet, with its skb_shared_info (skbuff_small_head of Linux
    /// 6.3 and later). With `None` the object has the next power of two as its size, as in earlier kernels.
    pub small_head: Option<Bytes>,
    /// Whether the send buffer takes a whole message of any size as long as it is not full.
    pub overfill: bool,
    /// Whether the connection may use several paths (Multipath TCP, RFC 8684). Only a kernel does that; the
    /// simulator does not model it.
    pub multipath: bool,
}

impl TransportConfig {
    /// Whether the packets may get ECN marks (RFC 3168).
    pub fn wants_ecn(&self) -> bool {
        match self {
            Self::Udp(config) => config.ecn,
            Self::Tcp(config) => config.ecn,
            Self::Encapsulated(config) => config.options().wants_ecn(),
            // RFC 9000 §13.4: QUIC packets may always get marks, until the path turns out not to carry marks.
            Self::Quic(_) => true,
        }
    }

    /// Whether the transport is TCP and may use several paths.
    pub const fn wants_multipath(&self) -> bool {
        matches!(self, Self::Tcp(TcpConfig { multipath: true, .. }))
    }

    /// UDP with the options of a Linux host.
    pub const fn udp_default() -> Self {
        Self::Udp(UdpConfig::LINUX)
    }

    /// TCP with the preset of `stack`. `nodelay` switches off Nagle's algorithm.
    pub const fn tcp_preset(stack: Stack, nodelay: bool) -> Self {
        Self::Tcp(TcpConfig::preset(stack, nodelay))
    }
}

impl UdpConfig {
    /// Half of `net.core.rmem_default` of Linux. Linux doubles this value, so it describes a socket that sets
    /// nothing.
    pub const DEFAULT_ROOM: Bytes = Bytes::new(106_496);

    /// The options of a Linux host whose kernel has neither wireless networks nor tunnels.
    pub const LINUX: Self = Self {
        stack: Stack::Linux,
        socket_buffer: Self::DEFAULT_ROOM,
        small_head: Some(small_head(Bytes::new(192))),
        ecn: false,
    };
}

impl TcpConfig {
    /// The options of `stack` if the scenario sets none. `nodelay` switches off Nagle's algorithm.
    pub const fn preset(stack: Stack, nodelay: bool) -> Self {
        let preset = match stack {
            Stack::Linux => Self::LINUX,
            Stack::Rfc => Self::RFC,
            Stack::BsdReno => Self::BSD_RENO,
        };
        Self { nagle: if nodelay { NagleKind::Off } else { preset.nagle }, ..preset }
    }

    /// Linux 6.x with the default values of its sysctls.
    const LINUX: Self = Self {
        stack: Stack::Linux,
        // tcp_output.c, tcp_nagle_check with tcp_minshall_check.
        nagle: NagleKind::Minshall,
        cc: None,
        mss: None,
        // Half of tcp_rmem[2] = 32 MiB (since Linux 6.16): the other half is left for overhead. The window
        // grows from 64 KiB up to this (tcp/receive/tuning.rs).
        rwnd: Bytes::new(16 << 20),
        initial_rwnd: INITIAL_RWND,
        delayed_ack: DelayedAck::Linux,
        // net.ipv4.tcp_sack = 1, tcp_early_retrans = 3.
        sack: true,
        tlp: true,
        // sk_pacing_status is set only by BBR or the fq qdisc.
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
        // TCP_RTO_MIN = HZ / 5. In Linux it is the lower bound of the variance term, and not of the whole
        // timeout.
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

    /// The RFCs, with everything that they recommend.
    const RFC: Self = Self {
        stack: Stack::Rfc,
        // RFC 9293 §3.7.4.
        nagle: NagleKind::Classic,
        cc: Some(CongestionControlKind::NewReno),
        mss: None,
        // We chose 1 MiB, which is enough for every preset path; see docs/models/transports.md.
        rwnd: Bytes::new(1 << 20),
        initial_rwnd: INITIAL_RWND,
        // RFC 9293 §3.8.6.3 and RFC 5681 §4.2 allow 500 ms; 200 ms is BSD's, widely copied.
        delayed_ack: DelayedAck::After { timeout: Duration::from_millis(200) },
        sack: true,
        tlp: false,
        pacing: false,
        // RFC 5681 §3.2 step 1.
        limited_transmit: true,
        // RFC 7661 §1: a window that the sender did not fill says nothing about the path.
        cwnd_validation: true,
        growth: Growth::Counted,
        timestamps: true,
        window_scaling: true,
        // RFC 3168 leaves it to the host whether it offers ECN.
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
        // tcp_recvspace is 8 KiB in Net/2, and 16 KiB in FreeBSD 2 and NetBSD 1. We chose the larger.
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

/// The options of QUIC, which are the same at both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct QuicConfig {
    /// The part of QUIC that carries a message.
    pub carry: Carry,
    /// The congestion control of both ends.
    pub cc: QuicCongestionControl,
    /// A message that has waited longer than this is not sent any more. With `None` messages never expire.
    pub expire: Option<Duration>,
    /// Among the flows of one connection, data of a higher priority is sent first.
    pub priority: u8,
    /// Whether the client sends data in its first flight, with the ticket of an earlier connection.
    pub zero_rtt: bool,
    /// The name of a connection that several flows share. With `None` the flow has a connection of its own.
    pub connection: Option<String>,
    /// A connection on which nothing came for this long is over (RFC 9000 §10.1). With `None` it never is.
    pub idle_timeout: Option<Duration>,
    /// The client sends a PING when nothing has come for this long. With `None` it never does.
    pub keep_alive: Option<Duration>,
    /// Whether packets are encrypted. Without encryption packets have the same sizes, and the simulator is
    /// faster.
    pub encryption: bool,
}

impl QuicConfig {
    /// The options if the scenario sets only how messages are carried.
    pub const fn new(carry: Carry) -> Self {
        Self {
            carry,
            // The default of quinn, and of TCP in Linux.
            cc: QuicCongestionControl::Cubic,
            expire: None,
            priority: 0,
            zero_rtt: false,
            connection: None,
            idle_timeout: None,
            keep_alive: None,
            encryption: true,
        }
    }
}

words! {
    /// The implementation that the defaults of a transport follow.
    pub enum Stack {
        /// Linux 6.x.
        Linux = "linux",
        /// The RFCs.
        Rfc = "rfc",
        /// 4.3BSD-Reno of 1990.
        BsdReno = "bsd-reno",
    }
}

words! {
    /// The phase of the timer clocks of the simulated hosts.
    pub enum Ticks {
        /// Each host ticks in a phase of its own, which is drawn from the seed of the flow. This is right for
        /// hosts that were not started together.
        Own = "own",
        /// All hosts tick together, from the beginning of the run.
        Common = "common",
    }
}

words! {
    /// The rule for a segment that is smaller than the maximum (Nagle's algorithm).
    pub enum NagleKind {
        /// It is sent at once (TCP_NODELAY).
        Off = "off",
        /// It is sent when no data is unacknowledged (RFC 896).
        Classic = "classic",
        /// It is sent when no small segment is unacknowledged (Minshall; Linux).
        Minshall = "minshall",
    }
}

/// The rule by which the receiver delays an acknowledgement if it has no data to send with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAck {
    /// It sends one at once for every segment.
    Off,
    /// It sends one for every second full segment, or after `timeout` (RFC 9293 §3.8.6.3, RFC 5681 §4.2).
    After {
        /// The timeout, at most 500 ms.
        timeout: Duration,
    },
    /// It sends one for every second full segment, or at the next tick of a clock (the fast timer of BSD, 200
    /// ms).
    Tick {
        /// The period of the clock.
        period: Duration,
    },
    /// The rule of Linux: at once at the start and after an idle time, later after an adaptive time from 40
    /// to 200 ms.
    Linux,
}

words! {
    /// The rule by which congestion avoidance opens a window that counts bytes. Each variant opens it by
    /// about one SMSS in a round trip.
    #[derive(Default)]
    pub enum Growth {
        /// The window grows by one SMSS each time that a whole `cwnd` was acknowledged, as RFC 5681 §3.1
        /// recommends.
        #[default]
        Counted = "counted",
        /// The window grows by SMSS * SMSS / `cwnd`, and by at least one byte, with each acknowledgement of
        /// new data (RFC 5681 §3.1 eq. 3).
        EachAck = "each-ack",
        /// As in 4.3BSD-Reno, the window grows by an eighth of SMSS more than that with each acknowledgement.
        /// RFC 5681 §3.1 calls this addition incorrect. A window equal to `ssthresh` counts as slow start.
        Bsd = "bsd",
    }
}

impl Stack {
    /// The upper bound of the retransmission timeout.
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
