//! What every workload is: a source of messages.

use talkpath_units::{Bytes, Instant};
use talkpath_wire::Message;

/// What the next message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaits {
    /// Its due time alone.
    Clock,
    /// Room for a message of this size.
    RoomFor(Bytes),
    /// Room: the message is as large as fits.
    Room,
}

/// A source of messages.
///
/// Clocked workloads (voice, cbr) give a message when its due time has come, whatever `writable` says: what
/// the transport then refuses is recorded as refused. Greedy ones (bulk, burst) give one only where it fits.
pub trait Workload {
    /// What its messages wait for.
    fn awaits(&self) -> Awaits;
    /// The transport's messages are at most `size`. Only a workload whose messages are as large as fits keeps
    /// to it: the others have sizes of their own, which the scenario's checks hold against the transport.
    fn limit_messages(&mut self, _size: Bytes) {}
    /// Until then only room can bring a message: a poll without room changes nothing. Zero if a poll may
    /// change something at any time.
    fn wants_room_until(&self) -> Instant {
        Instant::ZERO
    }
    /// The connection is open: the first message is due at `now`.
    fn open(&mut self, now: Instant);
    /// The next message that is due at `now`, given room for `writable` bytes; call until `None`.
    fn poll_message(&mut self, writable: Bytes, now: Instant) -> Option<Message>;
    /// When the next clocked message is due; `None` where the workload waits for room, or has ended.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Whether no message will ever come again.
    fn is_finished(&self) -> bool;
}
