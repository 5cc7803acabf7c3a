//! The smallest and the largest payload of a flow's messages.

use talkpath_units::Bytes;

/// The sizes of payloads, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadSizes {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl PayloadSizes {
    /// Adds a message to `sizes`, which are `None` before the first message.
    #[inline(always)]
    pub(crate) fn add(sizes: &mut Option<Self>, payload: Bytes) {
        let bytes = payload.get();
        match sizes {
            // Most messages of a flow have about the same size, so this is the usual case.
            Some(sizes) if sizes.min <= bytes && bytes <= sizes.max => {}
            Some(sizes) => *sizes = Self { min: sizes.min.min(bytes), max: sizes.max.max(bytes) },
            None => *sizes = Some(Self { min: bytes, max: bytes }),
        }
    }
}
