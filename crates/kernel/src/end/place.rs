//! Which end of which flow.

use std::io;

use talkpath_quic::HostKeys;
use talkpath_units::Seed;

use crate::tag::TagKey;

/// Which end of which flow.
#[derive(Clone, Copy, Debug)]
pub struct EndPlace {
    /// The flow's place in the session.
    pub index: usize,
    /// Whether this end sends the workload's messages.
    pub is_sender: bool,
    /// Whether this end opens a connection of our own transports; the other answers.
    pub is_client: bool,
    /// What the flow's datagrams carry.
    pub token: u32,
    /// With what they are tagged, if they are.
    pub tag_key: Option<TagKey>,
    /// Whether datagrams of a burst or a bulk transfer may leave by one call.
    pub has_trains: bool,
    /// Draws what our own transports draw.
    pub seed: Seed,
    /// The keys of a QUIC connection; `None` draws them from `seed`.
    pub quic_keys: Option<HostKeys>,
}

/// The seed of a connection that nobody shall foresee: its initial sequence number and its secrets.
///
/// # Errors
/// The system has no random numbers.
pub fn unforeseen_seed() -> io::Result<Seed> {
    Ok(Seed::new(u64::from_be_bytes(crate::random::random::<8>()?)))
}
