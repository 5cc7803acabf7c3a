//! What one end may ask of the other.

/// The largest message of a stream flow (chosen: far above what any codec or record writes at once).
pub(super) const MAX_STREAM_MESSAGE: u64 = 1 << 20;

/// Whether one end may have the other keep a buffer of `size` bytes (chosen: up to what a file may have,
/// which is the largest thing that a session holds).
pub(super) fn is_buffer(size: u64) -> bool {
    (1..=1 << 30).contains(&size)
}
