//! What is made of a call.

use crate::g711::Law;

/// What is made of a call.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The length in seconds after which the sound ends.
    pub seconds: u32,
    /// The law of a call in G.711.
    pub law: Law,
}
