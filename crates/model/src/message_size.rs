//! The sizes of a workload's messages.

use serde::{Deserialize, Serialize};
use talkpath_units::Bytes;

/// The payload of a workload's messages. In JSON a constant size is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MessageSize {
    /// All messages have this size.
    Constant(Bytes),
    /// The sender chooses each size at random from `min` to `max`, both included: uniformly, but for a call.
    /// The message tells its size to the receiver.
    Uniform {
        /// The smallest size.
        min: Bytes,
        /// The largest size.
        max: Bytes,
    },
}

impl MessageSize {
    /// Returns the smallest payload of a message.
    pub const fn smallest(self) -> Bytes {
        match self {
            Self::Constant(size) => size,
            Self::Uniform { min, .. } => min,
        }
    }

    /// Returns the largest payload of a message.
    pub const fn largest(self) -> Bytes {
        match self {
            Self::Constant(size) => size,
            Self::Uniform { max, .. } => max,
        }
    }

    /// Returns the payload of all messages, or `None` if the sizes differ.
    pub const fn constant(self) -> Option<Bytes> {
        match self {
            Self::Constant(size) => Some(size),
            Self::Uniform { .. } => None,
        }
    }

    /// Whether a message may have this payload.
    pub fn allows(self, size: Bytes) -> bool {
        (self.smallest()..=self.largest()).contains(&size)
    }

    /// Returns twice the mean payload. Unlike the mean it is always a whole number of bytes.
    pub const fn twice_mean(self) -> u64 {
        self.smallest().get().saturating_add(self.largest().get())
    }
}

impl From<Bytes> for MessageSize {
    fn from(size: Bytes) -> Self {
        Self::Constant(size)
    }
}
