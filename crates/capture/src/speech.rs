//! The coded speech of a stream, for those who want to hear it.

use talkpath_config::Coding;

/// The coded speech of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Speech {
    /// The coding, as far as the packets show it.
    pub coding: Coding,
    /// The name of the encoding: `PCMU` and `PCMA` are the laws of G.711. `None` if nothing says it.
    pub encoding: Option<String>,
    /// Whether the speech is encrypted, as far as the capture shows it.
    pub is_encrypted: bool,
    /// The speech of each message of the flow, in their order. It is empty if the packet did not come, if it
    /// has something else than speech, such as a digit or comfort noise, and if the capture did not keep it.
    pub packets: Vec<Box<[u8]>>,
}
