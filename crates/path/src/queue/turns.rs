//! Turns of queues: deficit round robin (Shreedhar and Varghese, "Efficient fair queueing using deficit round
//! robin", SIGCOMM 1995).
//!
//! In its turn a queue may send its quantum, and what is left of the last one. A queue that has nothing more
//! to send loses the rest.

use std::collections::VecDeque;

use talkpath_units::Bytes;

use crate::queue::fq_codel::signed;

/// Whose turn it is. Queues have numbers, from 0.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Queues that hold packets, in the order of their turns. A queue whose packets were all dropped for room
    /// stays until its turn.
    order: VecDeque<u32>,
    shares: Vec<Share>,
}

/// What one queue may send.
#[derive(Debug)]
struct Share {
    quantum: i64,
    /// Bytes that the queue may still send in this turn.
    deficit: i64,
    /// Whether the queue is in `order`.
    is_active: bool,
}

impl Turns {
    /// Adds a queue that may send this many bytes in its turn, at least 1. Its number is one more than that
    /// of the queue before.
    pub(crate) fn add(&mut self, quantum: Bytes) {
        self.shares.push(Share { quantum: signed(quantum).max(1), deficit: 0, is_active: false });
    }

    /// Notes that a packet came into a queue.
    pub(crate) fn join(&mut self, queue: u32) {
        let share = &mut self.shares[queue as usize];
        if !share.is_active {
            share.is_active = true;
            share.deficit = share.quantum;
            self.order.push_back(queue);
        }
    }

    /// Returns the queue that sends its first packet now, and charges the packet to it. `None` if no packet
    /// waits. `size` tells the size of the first packet of a queue.
    pub(crate) fn next(&mut self, size: impl Fn(u32) -> Option<Bytes>) -> Option<u32> {
        loop {
            let queue = *self.order.front()?;
            let share = &mut self.shares[queue as usize];
            let Some(size) = size(queue).map(signed) else {
                self.leave();
                continue;
            };
            if share.deficit < size {
                share.deficit += share.quantum;
                self.order.rotate_left(1);
                continue;
            }
            share.deficit -= size;
            return Some(queue);
        }
    }

    /// Ends the turn of the queue that sent last, because it is empty.
    pub(crate) fn leave(&mut self) {
        if let Some(queue) = self.order.pop_front() {
            self.shares[queue as usize].is_active = false;
        }
    }

    /// Whether no queue has a turn.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
