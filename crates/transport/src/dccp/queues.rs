//! What waits at an end: messages to be sent, and messages to be read.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Packets};

use talkpath_config::QueuePolicy;
use talkpath_wire::{Message, Refused};

/// The sender's own queue (RFC 4340 §1.1: the application keeps control of what is sent late).
#[derive(Clone, Debug)]
pub(super) struct SendQueue {
    messages: VecDeque<Message>,
    size: Bytes,
    limit: u64,
    policy: QueuePolicy,
    /// Messages that were taken and dropped, not yet polled.
    discarded: VecDeque<u64>,
    pub(super) drops: u64,
}

impl SendQueue {
    pub(super) fn new(limit: Option<Packets>, policy: QueuePolicy) -> Self {
        Self {
            messages: VecDeque::new(),
            size: Bytes::ZERO,
            limit: limit.map_or(u64::MAX, Packets::get),
            policy,
            discarded: VecDeque::new(),
            drops: 0,
        }
    }

    /// Takes a message, perhaps in place of the oldest.
    pub(super) fn push(&mut self, message: Message) -> Result<(), Refused> {
        if self.messages.len() as u64 >= self.limit {
            self.drops += 1;
            match self.policy {
                QueuePolicy::DropNewest => return Err(Refused::QueueFull),
                QueuePolicy::DropOldest => {
                    if let Some(oldest) = self.pop() {
                        self.discarded.push_back(oldest.seq);
                    }
                }
            }
        }
        self.size += message.size;
        self.messages.push_back(message);
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.size -= message.size;
        Some(message)
    }

    pub(super) fn front(&self) -> Option<&Message> {
        self.messages.front()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) const fn size(&self) -> Bytes {
        self.size
    }

    /// Whether an application that sends as fast as it may should send now: while a bounded queue has room,
    /// or an unbounded one is empty.
    pub(super) fn invites(&self) -> bool {
        if self.limit == u64::MAX {
            self.messages.is_empty()
        } else {
            (self.messages.len() as u64) < self.limit
        }
    }

    pub(super) fn poll_discarded(&mut self) -> Option<u64> {
        self.discarded.pop_front()
    }
}

/// The receiving socket: what the application has not read, up to `limit` bytes.
#[derive(Clone, Debug)]
pub(super) struct Inbox {
    messages: VecDeque<(u64, Bytes)>,
    size: Bytes,
    limit: Bytes,
    /// Messages that found no room, not yet polled.
    dropped: VecDeque<u64>,
    pub(super) drops: u64,
}

impl Inbox {
    pub(super) const fn new(limit: Bytes) -> Self {
        Self { messages: VecDeque::new(), size: Bytes::ZERO, limit, dropped: VecDeque::new(), drops: 0 }
    }

    /// Whether there was room.
    pub(super) fn push(&mut self, seq: u64, size: Bytes) -> bool {
        let after = self.size.saturating_add(size);
        if after > self.limit {
            self.drops += 1;
            self.dropped.push_back(seq);
            return false;
        }
        self.size = after;
        self.messages.push_back((seq, size));
        true
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Bytes)> {
        let message = self.messages.pop_front()?;
        self.size -= message.1;
        Some(message)
    }

    /// Whether the application reads too slowly: three quarters of the room are taken. Chosen; RFC 4340 §11.6
    /// leaves it open.
    pub(super) fn is_slow(&self) -> bool {
        self.size.get() > self.limit.get() / 4 * 3
    }

    pub(super) fn poll_dropped(&mut self) -> Option<u64> {
        self.dropped.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Instant;

    use super::*;

    #[test]
    fn a_full_queue_refuses_the_newest_or_drops_the_oldest() {
        for (policy, refused, kept, discarded) in [
            (QueuePolicy::DropNewest, Err(Refused::QueueFull), [0, 1], None),
            (QueuePolicy::DropOldest, Ok(()), [1, 2], Some(0)),
        ] {
            let mut queue = SendQueue::new(Some(Packets::new(2)), policy);
            let message = |seq| Message { seq, size: Bytes::new(160), due: Instant::ZERO };
            assert_eq!((queue.push(message(0)), queue.push(message(1))), (Ok(()), Ok(())));
            assert!(!queue.invites());
            assert_eq!(queue.push(message(2)), refused);
            assert_eq!((queue.size(), queue.drops, queue.poll_discarded()), (Bytes::new(320), 1, discarded));
            assert_eq!([queue.pop().unwrap().seq, queue.pop().unwrap().seq], kept);
            assert_eq!(queue.size(), Bytes::ZERO);
        }
    }
}
