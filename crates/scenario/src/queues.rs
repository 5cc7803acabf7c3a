//! Queue disciplines in a scenario, a file each: its keys beside what they mean.
//!
//! A new one is a file here and its line in [`queue`]. The compiler demands both.

mod codel;
mod drop_tail;
mod fq;
mod fq_codel;

use talkpath_path::{CodelParameters, QueueKind, QueueLimit, QueueName};
use talkpath_units::{Bytes, Packets};

use crate::diagnostic::Log;
use crate::quantity::{Amount, Dimension, Measure};
use crate::read::Reading;
use crate::section::Section;
use crate::spec::{
    ANY_DURATION, Default, Key, Kind, LARGEST_SIZE, SOME_DURATION, SOME_PACKETS, SOME_SIZE, Tagged, Variant,
    key, measure, quantity,
};

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

/// One discipline.
#[derive(Clone, Copy)]
struct Queue {
    /// Its word and its keys.
    keys: Variant,
    /// What the keys in a section mean, on a link of this MTU.
    read: fn(&Section<'_>, Option<Bytes>, &mut Log) -> Option<QueueKind>,
}

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

fn queue_limit(section: &Section<'_>, mtu: Option<Bytes>, log: &mut Log) -> Option<QueueLimit> {
    match section.reading("limit", log)? {
        Reading::Amount(Amount { dimension: Dimension::Packets, count }) => {
            Some(QueueLimit::Packets(Packets::new(count)))
        }
        Reading::Amount(Amount { count, .. }) => {
            warn_of_small_limit("limit", Bytes::new(count), section, mtu, log);
            Some(QueueLimit::Bytes(Bytes::new(count)))
        }
        Reading::Word(_) => None,
    }
}

fn warn_of_small_limit(name: &str, limit: Bytes, section: &Section<'_>, mtu: Option<Bytes>, log: &mut Log) {
    if let (Some(mtu), Some(node)) = (mtu, section.node(name))
        && limit < mtu
    {
        let message = format!("a packet of {mtu} (`mtu`) never finds room in {limit}");
        log.warning(&node.place, &section.at.key(name).to_string(), message);
    }
}

fn codel_parameters(section: &Section<'_>, log: &mut Log) -> Option<CodelParameters> {
    let target = section.duration("target", log);
    let interval = section.duration("interval", log);
    let ecn = section.flag("ecn", log);
    let ce_threshold = section.duration_or_word("ce_threshold", log);
    Some(CodelParameters { target: target?, interval: interval?, ecn: ecn?, ce_threshold: ce_threshold? })
}

const LIMIT: Key = key(
    "limit",
    quantity(QUEUE_LIMIT),
    Default::Is("\"1000 packets\""),
    "how many packets or bytes may wait, IP headers included",
);

const TARGET: Key = key(
    "target",
    quantity(ANY_DURATION),
    Default::Is("\"5 ms\""),
    "the delay that a standing queue may have",
);

const INTERVAL: Key = key(
    "interval",
    quantity(SOME_DURATION),
    Default::Is("\"100 ms\""),
    "how long packets must wait longer than `target` before one is dropped: about the largest round trip",
);

const QUANTUM: Key = key(
    "quantum",
    Kind::Quantity { measures: QUANTUM_SIZE, words: &["mtu"] },
    Default::Is("\"mtu\""),
    "bytes that a flow sends in its turn, IP headers included. Linux counts 14 B of Ethernet header in each packet and in its \
     default of 1514 B: one full packet too",
);

const ECN_DOC: &str = "whether a packet is marked instead of dropped (RFC 3168), if its transport takes marks: TCP, DCCP or UDP with `ecn = true`, and QUIC";

const CE_THRESHOLD: Key = key(
    "ce_threshold",
    Kind::Quantity { measures: ANY_DURATION, words: &["never"] },
    Default::Is("\"never\""),
    "a packet that has waited longer than this is marked, if its transport takes marks",
);

const QUEUE_LIMIT: &[Measure] = &[SOME_PACKETS[0], SOME_SIZE[0]];

/// From the least that Linux takes (sch_fq_codel raises smaller ones to it).
const QUANTUM_SIZE: &[Measure] = &[measure(Dimension::Size, 256, LARGEST_SIZE)];
