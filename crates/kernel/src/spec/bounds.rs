//! The limits on what one end may ask of the other end.

/// The largest message of a stream flow, bytes. We chose 1 MiB, which is far above what any codec or record
/// writes at once.
pub(super) const MAX_STREAM_MESSAGE: u64 = 1 << 20;

/// Returns true if one end may ask the other end for a buffer of `size` bytes. We chose the size of the
/// largest file as the limit, because a file is the largest thing that a session holds.
pub(super) fn is_buffer(size: u64) -> bool {
    (1..=1 << 30).contains(&size)
}
