//! The place of an end: the flow and the side that it belongs to, and what is its own.

use std::io;

use talkpath_quic::HostKeys;
use talkpath_units::Seed;

use crate::tag::TagKey;

/// The place of an end in a session.
#[derive(Clone, Copy, Debug)]
pub struct EndPlace {
    /// The flow's place in the session.
    pub index: usize,
    /// True if this end sends the workload's messages.
    pub is_sender: bool,
    /// True at the client. The client opens a connection of our own protocols, and the server answers.
    pub is_client: bool,
    /// The token that the flow's datagrams carry.
    pub token: u32,
    /// The key of the tags on the flow's datagrams. `None` if datagrams have no tags.
    pub tag_key: Option<TagKey>,
    /// True if several datagrams of a burst or a bulk transfer may leave by one system call.
    pub has_trains: bool,
    /// The seed of all that our own protocols draw at random.
    pub seed: Seed,
    /// The keys of a QUIC connection. `None` draws them from `seed`.
    pub quic_keys: Option<HostKeys>,
}

/// Draws the seed of a connection from the system, so that nobody can foresee the connection's initial
/// sequence number and its secrets.
///
/// # Errors
/// Returns the system's error if it has no random numbers.
pub fn unforeseen_seed() -> io::Result<Seed> {
    Ok(Seed::new(u64::from_be_bytes(crate::random::random::<8>()?)))
}
