//! What a connection is made of, and the engine's options that follow from it.

use quinn_proto::congestion::{CubicConfig, NewRenoConfig};
use quinn_proto::{TransportConfig, VarInt};
use talkpath_config::{Carry, QuicConfig, QuicCongestionControl, largest_quic_datagram, quic_packet_size};
use talkpath_units::{Bytes, Seed};

use crate::datagrams::DatagramQueue;
use crate::recovery::SharedRecovery;

/// A connection of one flow or of several.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The options that its flows agree on.
    pub config: QuicConfig,
    /// Its flows.
    pub flows: Vec<FlowSetup>,
    /// The smallest MTU of the path.
    pub path_mtu: Bytes,
    /// What everything random of it follows from.
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
    let size = u16::try_from(quic_packet_size(setup.path_mtu).get()).unwrap_or(u16::MAX);
    let cc = match setup.config.cc {
        QuicCongestionControl::NewReno => recovery.watching(NewRenoConfig::default()),
        QuicCongestionControl::Cubic => recovery.watching(CubicConfig::default()),
    };
    let room = DatagramQueue::new(largest_quic_datagram(setup.path_mtu)).engine_room();
    let mut config = TransportConfig::default();
    config
        // The path's MTU is known, as TCP's segment size is here: no probes, and packets of one size.
        .initial_mtu(size)
        .min_mtu(size)
        .mtu_discovery_config(None)
        // A scenario may pause for longer than quinn's 30 s.
        .max_idle_timeout(None)
        // Each packet leaves by itself.
        .enable_segmentation_offload(false)
        .max_concurrent_uni_streams(VarInt::from_u32(STREAMS))
        .datagram_send_buffer_size(room)
        .congestion_controller_factory(cc);
    config
}

/// Streams of one end that may be open at once. Chosen, ten times quinn's: a stream for each frame of some
/// calls over seconds of delay never waits for another stream to end.
const STREAMS: u32 = 1000;
