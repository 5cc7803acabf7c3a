//! Queue disciplines in a scenario, a file each: its keys beside what they mean.
//!
//! A new one is a file here and its line in [`queue`]. The compiler demands both.

mod codel;
mod discipline;
mod drop_tail;
mod fq;
mod fq_codel;

use talkpath_path::{QueueKind, QueueName};
use talkpath_units::Bytes;

use self::discipline::Queue;
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::{Tagged, Variant};

/// The keys of a discipline, and what they mean.
const fn queue(name: QueueName) -> Queue {
    match name {
        QueueName::DropTail => drop_tail::DROP_TAIL,
        QueueName::Codel => codel::CODEL,
        QueueName::FqCodel => fq_codel::FQ_CODEL,
        QueueName::Fq => fq::FQ,
    }
}

/// A queue.
pub(crate) static QUEUE: Tagged = Tagged {
    noun: "a queue",
    variants: &VARIANTS,
    later: &["red", "pie", "cake", "dualpi2"],
    number: None,
    quantity: Some(("drop-tail", "limit")),
};

/// The keys of every discipline.
const VARIANTS: [Variant; QueueName::ALL.len()] = {
    let mut variants = [queue(QueueName::ALL[0]).keys; QueueName::ALL.len()];
    let mut at = 1;
    while at < variants.len() {
        variants[at] = queue(QueueName::ALL[at]).keys;
        at += 1;
    }
    variants
};

/// The queue of `link`, whose MTU is `mtu`.
pub(crate) fn resolve(link: &Section<'_>, mtu: Option<Bytes>, log: &mut Log) -> Option<QueueKind> {
    let (kind, section) = link.tagged("queue")?;
    let name = QueueName::ALL.iter().find(|name| name.word() == kind)?;
    (queue(*name).read)(&section, mtu, log)
}
