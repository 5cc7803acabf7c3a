//! The queues in which packets wait for the serialiser, one file per discipline. A discipline owns its
//! packets, and no other code depends on how it stores them.
//!
//! A new discipline is a file here, a line in [`disciplines!`], its keys in the scenario, and an entry in the
//! report's display table. The compiler demands the keys and the code that reads them; a test demands the
//! entry.

mod categories;
mod classes;
mod codel;
mod discipline;
mod drop_tail;
mod drr;
mod fq;
mod fq_codel;
#[cfg(test)]
mod kernel_codel;
mod limit;
mod policed;
mod priority;
#[cfg(test)]
pub(crate) mod test_disciplines;
mod turns;

use talkpath_units::{Bytes, Instant};

use crate::carried::Carried;
use crate::framing::Framing;
use crate::token_bucket::TokenBucket;
use crate::wifi::AccessCategory;
pub use classes::Classes;
pub use codel::{Codel, CodelParameters};
pub(crate) use discipline::{Discipline, LinkFacts, Queued, Signals};
pub use drop_tail::DropTail;
use drop_tail::DropTailQueue;
pub use drr::Drr;
pub use fq::Fq;
pub use fq_codel::FqCodel;
pub use limit::QueueLimit;
pub use priority::Priority;

/// Registers the disciplines, one per line: its name, its word, its configuration and its queue.
macro_rules! disciplines {
    ($($(#[$doc:meta])* $name:ident = $word:literal: $config:ty => $queue:ty,)*) => {
        /// The discipline of the queue before the serialiser.
        #[derive(Clone, Debug, PartialEq)]
        pub enum QueueKind {
            $($(#[$doc])* $name($config),)*
        }

        /// The name of a discipline, without its configuration.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum QueueName {
            $($(#[$doc])* $name,)*
        }

        impl QueueName {
            /// Every discipline.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The discipline's word in scenarios and summaries.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }

        impl QueueKind {
            /// The name of the discipline that this configures.
            pub const fn name(&self) -> QueueName {
                match self {
                    $(Self::$name(_) => QueueName::$name,)*
                }
            }
        }

        /// An empty queue behind a pointer.
        fn boxed<T: Carried>(kind: &QueueKind, link: &LinkFacts) -> Box<dyn Discipline<T> + Send> {
            match kind {
                $(QueueKind::$name(config) => Box::new(<$queue>::new(config, link)),)*
            }
        }
    };
}

disciplines! {
    /// First in, first out. A packet that finds no room is dropped.
    DropTail = "drop-tail": DropTail => DropTailQueue<T>,
    /// First in, first out. Drops or marks while packets wait too long (RFC 8289).
    Codel = "codel": Codel => codel::CodelQueue<T>,
    /// Each flow in turn, each with CoDel, sparse flows first (RFC 8290).
    FqCodel = "fq_codel": FqCodel => fq_codel::FqCodelQueue<T>,
    /// Each flow in turn, with an equal share of the bytes (deficit round robin).
    Fq = "fq": Fq => fq::FqQueue<T>,
    /// Classes by DSCP, the first of those that hold packets before all others.
    Priority = "priority": Priority => priority::PriorityQueue<T>,
    /// Classes by DSCP in turn, each with its share of the bytes (deficit round robin).
    Drr = "drr": Drr => drr::DrrQueue<T>,
}

impl QueueKind {
    /// How much may wait in the queue, or in each class of a queue with classes.
    pub const fn limit(&self) -> QueueLimit {
        match self {
            Self::DropTail(config) => config.limit,
            Self::Codel(config) => config.limit,
            Self::Fq(config) => config.limit,
            Self::FqCodel(config) => QueueLimit::Packets(config.limit),
            Self::Priority(config) => config.limit,
            Self::Drr(config) => config.limit,
        }
    }

    /// Whether packets have classes by their DSCP.
    pub const fn has_classes(&self) -> bool {
        matches!(self, Self::Priority(_) | Self::Drr(_))
    }
}

/// The queue of a link.
///
/// Nearly all links have drop-tail, so it lies in the link itself. Every other discipline is behind a
/// pointer: its code is then not part of each place where a packet enters or leaves a link, and no link is
/// larger for it.
#[derive(Debug)]
pub(crate) enum Queue<T> {
    DropTail(DropTailQueue<T>),
    Other(Box<dyn Discipline<T> + Send>),
}

impl<T: Carried> Queue<T> {
    /// An empty queue.
    pub(crate) fn new(kind: &QueueKind, link: &LinkFacts) -> Self {
        match kind {
            QueueKind::DropTail(config) => Self::DropTail(DropTailQueue::new(config, link)),
            other => Self::Other(boxed(other, link)),
        }
    }

    /// A queue of this kind for each access category, each with the limit to itself.
    pub(crate) fn of_categories(kind: &QueueKind, link: &LinkFacts) -> Self {
        Self::Other(Box::new(categories::CategoryQueues::new(|| Self::new(kind, link))))
    }

    /// The same queue behind a policer.
    pub(crate) fn policed(self, policer: &TokenBucket, framing: Framing) -> Self {
        Self::Other(Box::new(policed::PolicedQueue::new(policer, framing, self)))
    }

    /// A queue of any discipline.
    #[cfg(test)]
    pub(crate) fn other(queue: impl Discipline<T> + Send + 'static) -> Self {
        Self::Other(Box::new(queue))
    }
}

impl<T: Carried> Discipline<T> for Queue<T> {
    #[inline(always)]
    fn enqueue(&mut self, packet: T, in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        match self {
            Self::DropTail(queue) => queue.enqueue(packet, in_service, now, signals),
            Self::Other(queue) => queue.enqueue(packet, in_service, now, signals),
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Instant, signals: &mut Signals<T>) -> Option<Queued<T>> {
        match self {
            Self::DropTail(queue) => queue.dequeue(now, signals),
            Self::Other(queue) => queue.dequeue(now, signals),
        }
    }

    #[inline(always)]
    fn pass(&mut self, packet: T, now: Instant, signals: &mut Signals<T>) -> Option<T> {
        match self {
            Self::DropTail(queue) => queue.pass(packet, now, signals),
            Self::Other(queue) => queue.pass(packet, now, signals),
        }
    }

    fn set_limit(&mut self, limit: QueueLimit, in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        match self {
            Self::DropTail(queue) => queue.set_limit(limit, in_service, now, signals),
            Self::Other(queue) => queue.set_limit(limit, in_service, now, signals),
        }
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        match self {
            Self::DropTail(queue) => queue.len(),
            Self::Other(queue) => queue.len(),
        }
    }

    fn len_of(&self, category: AccessCategory) -> u32 {
        match self {
            Self::DropTail(queue) => queue.len_of(category),
            Self::Other(queue) => queue.len_of(category),
        }
    }

    fn serve(&mut self, category: AccessCategory) {
        match self {
            Self::DropTail(queue) => queue.serve(category),
            Self::Other(queue) => queue.serve(category),
        }
    }

    #[inline(always)]
    fn drops_at_dequeue(&self) -> bool {
        match self {
            Self::DropTail(queue) => queue.drops_at_dequeue(),
            Self::Other(queue) => queue.drops_at_dequeue(),
        }
    }
}
