//! The bytes of a message on their way into the engine.

use bytes::Bytes;

/// What is left to write of a message.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// So many zeros: no application of the simulator looks at its data.
    Zeros(u64),
    /// An application's own bytes.
    Real(Bytes),
}

impl Content {
    /// How many bytes are left.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Zeros(count) => *count,
            Self::Real(bytes) => bytes.len() as u64,
        }
    }

    /// The next bytes, as many as lie in one piece. If a datagram holds the message, these are all.
    pub(crate) fn piece(&self) -> Bytes {
        match self {
            Self::Zeros(count) => zeros(usize::try_from(*count).unwrap_or(usize::MAX)),
            Self::Real(bytes) => bytes.clone(),
        }
    }

    /// The next `count` bytes.
    pub(crate) fn first(&self, count: u64) -> Self {
        match self {
            Self::Zeros(left) => Self::Zeros(count.min(*left)),
            Self::Real(bytes) => Self::Real(bytes.slice(..bytes.len().min(count as usize))),
        }
    }

    /// The next `count` bytes were written.
    pub(crate) fn skip(&mut self, count: usize) {
        match self {
            Self::Zeros(left) => *left = left.saturating_sub(count as u64),
            Self::Real(bytes) => drop(bytes.split_to(count.min(bytes.len()))),
        }
    }
}

/// Zeros, at most 64 KiB.
fn zeros(count: usize) -> Bytes {
    Bytes::from_static(&ZEROS[..count.min(ZEROS.len())])
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
