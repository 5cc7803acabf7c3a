//! How a capture is read.

use std::collections::BTreeMap;

use talkpath_config::Codec;
use talkpath_units::Duration;

use crate::encoding::Encoding;

/// How a capture is read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The meaning of payload types, which goes before what the capture says.
    pub payload_types: BTreeMap<u8, Encoding>,
    /// The codec of streams whose payload type nothing explains.
    pub codec: Option<Codec>,
    /// The smallest one-way delay from the senders to the place of the capture. `None` if it is not known.
    pub one_way: Option<Duration>,
    /// Whether the result has addresses.
    pub names: bool,
    /// Whether the result has the coded speech of calls.
    pub speech: bool,
}
