//! The description of a queue discipline, and the keys that several disciplines have.

use talkpath_path::{CodelParameters, QueueKind, QueueLimit};
use talkpath_units::{Bytes, Packets};

use crate::diagnostic::Log;
use crate::quantity::{Amount, Dimension, DimensionRange};
use crate::section::Section;
use crate::spec::{
    ANY_DURATION, Default, Key, Kind, LARGEST_SIZE, SOME_DURATION, SOME_PACKETS, SOME_SIZE, Variant, key,
    quantity, range,
};
use crate::tree::Meaning;

/// The description of one discipline.
#[derive(Clone, Copy)]
pub(super) struct Queue {
    /// The word for the discipline, and its keys.
    pub(super) keys: Variant,
    /// Reads the keys of a section. The second argument is the MTU of the link.
    pub(super) read: fn(&Section<'_>, Option<Bytes>, &mut Log) -> Option<QueueKind>,
}

/// Reads `limit`, in packets or bytes.
pub(super) fn queue_limit(section: &Section<'_>, mtu: Option<Bytes>, log: &mut Log) -> Option<QueueLimit> {
    match section.meaning("limit")? {
        Meaning::Amount(Amount { dimension: Dimension::Packets, count }) => {
            Some(QueueLimit::Packets(Packets::new(count)))
        }
        Meaning::Amount(Amount { count, .. }) => {
            warn_of_small_limit("limit", Bytes::new(count), section, mtu, log);
            Some(QueueLimit::Bytes(Bytes::new(count)))
        }
        _ => None,
    }
}

/// Warns of a limit in bytes that is smaller than one full packet. `name` is the key of the limit.
pub(super) fn warn_of_small_limit(
    name: &str,
    limit: Bytes,
    section: &Section<'_>,
    mtu: Option<Bytes>,
    log: &mut Log,
) {
    if let (Some(mtu), Some(node)) = (mtu, section.node(name))
        && limit < mtu
    {
        let message = format!("a packet of {mtu} (`mtu`) never finds room in {limit}");
        log.warning(&node.place, &section.at.key(name).to_string(), message);
    }
}

pub(super) fn codel_parameters(section: &Section<'_>) -> Option<CodelParameters> {
    Some(CodelParameters {
        target: section.duration("target")?,
        interval: section.duration("interval")?,
        ecn: section.flag("ecn")?,
        ce_threshold: section.duration_or_word("ce_threshold")?,
    })
}

pub(super) const LIMIT: Key = key(
    "limit",
    quantity(QUEUE_LIMIT),
    Default::Is("\"1000 packets\""),
    "how many packets or bytes may wait, IP headers included",
);

pub(super) const TARGET: Key = key(
    "target",
    quantity(ANY_DURATION),
    Default::Is("\"5 ms\""),
    "the delay that a standing queue may have",
);

pub(super) const INTERVAL: Key = key(
    "interval",
    quantity(SOME_DURATION),
    Default::Is("\"100 ms\""),
    "how long packets must wait longer than `target` before one is dropped: about the largest round trip",
);

pub(super) const QUANTUM: Key = key(
    "quantum",
    Kind::Quantity { ranges: QUANTUM_SIZE, words: &["mtu"] },
    Default::Is("\"mtu\""),
    "bytes that a flow sends in its turn, IP headers included. Linux counts 14 B of Ethernet header in each packet and in its \
     default of 1514 B: one full packet too",
);

pub(super) const ECN_DOC: &str = "whether a packet is marked instead of dropped (RFC 3168), if its transport takes marks: TCP, DCCP or UDP with `ecn = true`, and QUIC";

pub(super) const CE_THRESHOLD: Key = key(
    "ce_threshold",
    Kind::Quantity { ranges: ANY_DURATION, words: &["never"] },
    Default::Is("\"never\""),
    "a packet that has waited longer than this is marked, if its transport takes marks",
);

const QUEUE_LIMIT: &[DimensionRange] = &[SOME_PACKETS[0], SOME_SIZE[0]];

/// The smallest quantum is that of Linux: sch_fq_codel raises smaller values to it.
const QUANTUM_SIZE: &[DimensionRange] = &[range(Dimension::Size, 256, LARGEST_SIZE)];
