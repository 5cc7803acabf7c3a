//! Where packets wait for the serialiser: one file a discipline. Each file holds its packets and decides what
//! becomes of them; nobody else knows how.
//!
//! A new discipline is a file here, a variant of [`Queue`] and of [`QueueKind`], and its keys in the
//! scenario.

mod discipline;
mod drop_tail;
#[cfg(test)]
pub(crate) mod test_disciplines;

use talkpath_units::{Bytes, Instant};

use crate::carried::Carried;
use crate::config::QueueKind;
pub(crate) use discipline::{Discipline, Drops};
use drop_tail::DropTail;

/// The queue of a link; a variant a discipline.
#[derive(Debug)]
pub(crate) enum Queue<T> {
    DropTail(DropTail<T>),
    #[cfg(test)]
    RoundRobin(test_disciplines::RoundRobin<T>),
    #[cfg(test)]
    DropAtService(test_disciplines::DropAtService<T>),
}

/// What the discipline does.
macro_rules! of_discipline {
    ($queue:expr, $discipline:ident => $does:expr) => {
        match $queue {
            Queue::DropTail($discipline) => $does,
            #[cfg(test)]
            Queue::RoundRobin($discipline) => $does,
            #[cfg(test)]
            Queue::DropAtService($discipline) => $does,
        }
    };
}

impl<T: Carried> Queue<T> {
    /// An empty queue.
    pub(crate) fn new(kind: &QueueKind) -> Self {
        match *kind {
            QueueKind::DropTail { limit, in_service, mark_at } => {
                Self::DropTail(DropTail::new(limit, in_service, mark_at))
            }
        }
    }
}

impl<T: Carried> Discipline<T> for Queue<T> {
    #[inline(always)]
    fn enqueue(&mut self, packet: T, in_service: Bytes, now: Instant, drops: &mut Drops<T>) {
        of_discipline!(self, queue => queue.enqueue(packet, in_service, now, drops));
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Instant, drops: &mut Drops<T>) -> Option<T> {
        of_discipline!(self, queue => queue.dequeue(now, drops))
    }

    #[inline(always)]
    fn pass(&mut self, packet: T, now: Instant, drops: &mut Drops<T>) -> Option<T> {
        of_discipline!(self, queue => queue.pass(packet, now, drops))
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        of_discipline!(self, queue => queue.len())
    }

    #[inline(always)]
    fn drops_at_dequeue(&self) -> bool {
        of_discipline!(self, queue => queue.drops_at_dequeue())
    }
}
