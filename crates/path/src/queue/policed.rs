//! A policer before a queue: a packet that finds too few tokens is dropped (RFC 2697 and Linux's act_police
//! with one rate, and `drop` for what exceeds it).
//!
//! ```text
//!  ─► [ tokens there? ] ─yes─► [ queue ] ─►
//!            └─no─► dropped: no room in the bucket
//! ```
//!
//! A policer holds no packet, so it adds no delay. It drops in the middle of a burst, whether the link is
//! busy or not. The cause of the drop is that of a full queue.

use talkpath_units::{Bytes, Instant};

use crate::carried::{Carried, DropCause};
use crate::framing::Framing;
use crate::queue::discipline::{Discipline, Queued, Signals};
use crate::queue::limit::QueueLimit;
use crate::token_bucket::{TokenBucket, Tokens};
use crate::wifi::AccessCategory;

/// A queue with a policer before it.
#[derive(Debug)]
pub(crate) struct PolicedQueue<Q> {
    tokens: Tokens,
    /// A packet takes tokens for its bytes on the wire.
    framing: Framing,
    queue: Q,
}

impl<Q> PolicedQueue<Q> {
    /// `queue` behind a full bucket.
    pub(crate) fn new(policer: &TokenBucket, framing: Framing, queue: Q) -> Self {
        Self { tokens: Tokens::new(policer), framing, queue }
    }

    /// Returns the packet if its tokens are there, and drops it if they are not.
    fn police<T: Carried>(&mut self, packet: T, now: Instant, signals: &mut Signals<T>) -> Option<T> {
        if self.tokens.take(self.framing.on_wire(packet.wire_size()), now) {
            return Some(packet);
        }
        signals.drop(packet, DropCause::QueueFull, now);
        None
    }
}

impl<T: Carried, Q: Discipline<T>> Discipline<T> for PolicedQueue<Q> {
    fn enqueue(&mut self, packet: T, in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        if let Some(packet) = self.police(packet, now, signals) {
            self.queue.enqueue(packet, in_service, now, signals);
        }
    }

    fn dequeue(&mut self, now: Instant, signals: &mut Signals<T>) -> Option<Queued<T>> {
        self.queue.dequeue(now, signals)
    }

    fn pass(&mut self, packet: T, now: Instant, signals: &mut Signals<T>) -> Option<T> {
        let packet = self.police(packet, now, signals)?;
        self.queue.pass(packet, now, signals)
    }

    fn set_limit(&mut self, limit: QueueLimit, in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        self.queue.set_limit(limit, in_service, now, signals);
    }

    fn len(&self) -> u32 {
        self.queue.len()
    }

    fn len_of(&self, category: AccessCategory) -> u32 {
        self.queue.len_of(category)
    }

    fn serve(&mut self, category: AccessCategory) {
        self.queue.serve(category);
    }

    fn drops_at_dequeue(&self) -> bool {
        self.queue.drops_at_dequeue()
    }
}
