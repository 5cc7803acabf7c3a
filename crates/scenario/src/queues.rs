//! The queue disciplines of scenarios.
//!
//! Each discipline has a file below `queues/`, with its keys and the function that reads them. A new
//! discipline is a file there and a line in [`queue`], which the compiler demands.

mod classes;
mod codel;
mod discipline;
mod drop_tail;
mod drr;
mod fq;
mod fq_codel;
mod priority;

use talkpath_path::{QueueKind, QueueName};

use self::discipline::Queue;
pub(crate) use self::discipline::{EmptyingRate, LinkValues};
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::{Tagged, Variant, VariantKey};

/// Returns the description of a discipline.
const fn queue(name: QueueName) -> Queue {
    match name {
        QueueName::DropTail => drop_tail::DROP_TAIL,
        QueueName::Codel => codel::CODEL,
        QueueName::FqCodel => fq_codel::FQ_CODEL,
        QueueName::Fq => fq::FQ,
        QueueName::Priority => priority::PRIORITY,
        QueueName::Drr => drr::DRR,
    }
}

/// The value of a link's key `queue`.
pub(crate) static QUEUE: Tagged = Tagged {
    noun: "a queue",
    variants: &VARIANTS,
    later: &["red", "pie", "cake", "dualpi2"],
    by_key: Some(VariantKey { variant: "drop-tail", key: "limit" }),
    quantity: Some(VariantKey { variant: "drop-tail", key: "limit" }),
    ..Tagged::PLAIN
};

/// The words and keys of all disciplines.
const VARIANTS: [Variant; QueueName::ALL.len()] = {
    let mut variants = [queue(QueueName::ALL[0]).keys; QueueName::ALL.len()];
    let mut index = 1;
    while index < variants.len() {
        variants[index] = queue(QueueName::ALL[index]).keys;
        index += 1;
    }
    variants
};

pub(crate) fn resolve(link: &Section<'_>, values: &LinkValues, log: &mut Log) -> Option<QueueKind> {
    let (kind, section) = link.tagged("queue")?;
    let name = QueueName::ALL.iter().find(|name| name.word() == kind)?;
    (queue(*name).read)(&section, values, log)
}
