//! What every workload is: a source of messages.

use talkpath_transport::Message;
use talkpath_units::{Bytes, Instant};

/// A source of messages.
///
/// Clocked workloads (voice, cbr) give a message when its due time has come, whatever `writable` says: what
/// the transport then refuses is recorded as refused. Greedy ones (bulk, burst) give one only where it fits.
pub trait Workload {
    /// The connection is open: the first message is due at `now`.
    fn open(&mut self, now: Instant);
    /// The next message that is due at `now`, given room for `writable` bytes; call until `None`.
    fn poll_message(&mut self, writable: Bytes, now: Instant) -> Option<Message>;
    /// When the next clocked message is due; `None` where the workload waits for room, or has ended.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Whether no message will ever come again.
    fn is_finished(&self) -> bool;
}
