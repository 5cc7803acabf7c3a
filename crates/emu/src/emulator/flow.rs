//! A flow as the emulator knows it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use talkpath_config::TransportKind;

use crate::packet::Host;
use crate::watch::LegWatch;

/// A flow as the emulator knows it.
pub(crate) struct EmuFlow {
    pub(crate) sender: Host,
    /// The protocol of its packets.
    pub(crate) transport: TransportKind,
    /// True if the flow's connection may use several paths. Each path then has TCP sequence numbers of its
    /// own, which do not number the bytes of the stream.
    pub(crate) is_multipath: bool,
    /// The number of the flow's second path in the network, if it has one.
    pub(crate) second_path: Option<u32>,
    /// The watches of both directions: from the sender, and back to it.
    pub(crate) watches: [LegWatch; 2],
    /// The number of packets that were handed over with the ECN mark CE, in both directions.
    pub(crate) marked: [u64; 2],
    /// The number of times that a packet of the flow was late by more than [`LATE`](crate::stops::LATE), in
    /// its arrival or its departure.
    pub(crate) late: u64,
    /// The number of datagram messages that were dropped or lost in both directions. The thread that waits
    /// for the run's end reads it. There is one pair for each flow of the connection.
    pub(crate) drops: Vec<Arc<[AtomicU64; 2]>>,
}
