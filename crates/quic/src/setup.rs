//! What a connection is made of, and the engine's options that follow from it.

use quinn_proto::congestion::{CubicConfig, NewRenoConfig};
use quinn_proto::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use talkpath_config::{Carry, QuicConfig, QuicCongestionControl, quic_packet_size};
use talkpath_units::{Bytes, Duration, Seed};

use crate::datagrams::DatagramQueue;
use crate::recovery::SharedRecovery;

/// A connection of one flow or of several.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The options that its flows agree on.
    pub config: QuicConfig,
    /// Its flows.
    pub flows: Vec<FlowSetup>,
    /// The smallest MTU of the path, as far as it is known: packets grow no larger.
    pub path_mtu: Bytes,
    /// Everything random in it follows from this.
    pub seed: Seed,
}

/// One flow of a connection.
#[derive(Clone, Copy, Debug)]
pub struct FlowSetup {
    /// What carries a message.
    pub carry: Carry,
    /// Data of a higher priority leaves first.
    pub priority: u8,
    /// Room for datagrams that the far application has not read; `None` takes quinn's.
    pub receive_buffer: Option<Bytes>,
}

/// The engine's options: quinn-proto's defaults but for what the comments say. `recovery` sees what the
/// congestion control is called with.
pub(crate) fn engine_config(setup: &Setup, recovery: &SharedRecovery) -> TransportConfig {
    let size = u16::try_from(quic_packet_size(setup.path_mtu).get()).unwrap_or(u16::MAX).max(SMALLEST_PACKET);
    let cc = match setup.config.cc {
        QuicCongestionControl::NewReno => recovery.watching(NewRenoConfig::default()),
        QuicCongestionControl::Cubic => recovery.watching(CubicConfig::default()),
    };
    let room = DatagramQueue::new(setup.path_mtu).engine_room();
    let mut search = MtuDiscoveryConfig::default();
    // The engine's step of at least 20 B would end up to 19 B below a path that has less than that to find.
    let step = (size - SMALLEST_PACKET).clamp(1, STEP);
    search.upper_bound(size).minimum_change(step);
    let mut config = TransportConfig::default();
    config
        // Packets of 1200 B at first, which the path must carry (RFC 9000 §14.1), and a search for what it
        // carries besides (RFC 8899).
        .initial_mtu(SMALLEST_PACKET)
        .min_mtu(SMALLEST_PACKET)
        .mtu_discovery_config(Some(search))
        // A scenario may pause for longer than quinn's 30 s, and says so if it may not.
        .max_idle_timeout(setup.config.idle_timeout.map(idle_timeout))
        // Each packet leaves by itself.
        .enable_segmentation_offload(false)
        .max_concurrent_uni_streams(VarInt::from_u32(STREAMS))
        .datagram_send_buffer_size(room)
        .congestion_controller_factory(cc);
    config
}

/// The same as the client has them: it keeps the connection alive.
pub(crate) fn client_config(setup: &Setup, mut config: TransportConfig) -> TransportConfig {
    config.keep_alive_interval(setup.config.keep_alive.map(Into::into));
    config
}

/// The transport parameter, whole milliseconds (RFC 9000 §18.2): rounded up, because 0 is none.
fn idle_timeout(timeout: Duration) -> IdleTimeout {
    let millis = timeout.as_nanos().div_ceil(1_000_000);
    VarInt::from_u64(millis).unwrap_or(VarInt::MAX).into()
}

/// Streams of one end that may be open at once. Chosen, ten times quinn's: a stream for each frame of some
/// calls over seconds of delay never waits for another stream to end.
const STREAMS: u32 = 1000;

/// RFC 9000 §14.1.
const SMALLEST_PACKET: u16 = 1200;
/// quinn's own (`MtuDiscoveryConfig::minimum_change`).
const STEP: u16 = 20;
