//! What a scenario may choose about a transport, resolved: every default is written out.

use talkpath_units::{Bytes, Duration, Packets};

/// Which transport, with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum TransportConfig {
    /// UDP (RFC 768).
    Udp(UdpConfig),
    /// TCP (RFC 9293).
    Tcp(TcpConfig),
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
    /// Room of the receiving socket, in bytes of payload.
    pub socket_buffer: Bytes,
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
    /// Timestamps and window scaling options (RFC 7323).
    pub timestamps: bool,
    /// Lower bound of the RTO.
    pub min_rto: Duration,
    /// Clock tick G of the retransmission timer (RFC 6298 §2); zero for a clock as fine as the arena's.
    pub timer_granularity: Duration,
    /// Initial congestion window (RFC 6928, RFC 3390, or 1).
    pub initial_window: Packets,
    /// Initial slow start threshold; `None` is unlimited.
    pub initial_ssthresh: Option<Packets>,
    /// Room for written, unacknowledged data; `None` follows the congestion window as Linux's autotuning does.
    pub send_buffer: Option<Bytes>,
}

/// Whose TCP the defaults follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// Linux 6.x.
    Linux,
    /// The RFCs as they stand.
    Rfc,
    /// 4.3BSD-Reno of 1990.
    BsdReno,
}

/// When a segment smaller than the maximum may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NagleKind {
    /// At once: TCP_NODELAY.
    Off,
    /// When nothing is unacknowledged (RFC 896).
    Classic,
    /// When no small segment is unacknowledged (Minshall; Linux).
    Minshall,
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

/// A congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControlKind {
    /// RFC 5681 with Reno's fast recovery: one fast retransmit a window.
    Reno,
    /// RFC 6582.
    NewReno,
    /// RFC 9438: not in the simulator yet.
    Cubic,
}
