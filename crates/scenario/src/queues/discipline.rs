//! The description of a queue discipline, and the keys that several disciplines have.

use talkpath_path::{CodelParameters, QueueKind, QueueLimit};
use talkpath_units::{Bytes, Duration, Packets, Rate};

use crate::diagnostic::Log;
use crate::quantity::{Amount, Dimension, DimensionRange, Problem};
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
    /// Reads the keys of a section, on a link with these values.
    pub(super) read: fn(&Section<'_>, &LinkValues, &mut Log) -> Option<QueueKind>,
}

/// Values of the link that a queue belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkValues {
    /// `None` if the value is wrong, which is reported already.
    pub(crate) mtu: Option<Bytes>,
    pub(crate) rate: EmptyingRate,
    /// The delays of both directions of a path together. `None` if the link is not one of a `path`.
    pub(crate) round_trip: Option<Duration>,
}

/// The rate at which a queue empties: that of its link, or that of the link's shaper if the shaper is slower.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EmptyingRate {
    At(Rate),
    Unlimited,
    /// The rate has a mistake, which is reported already.
    Wrong,
}

/// Reads `limit`, in packets, bytes, time or bandwidth-delay products.
pub(super) fn queue_limit(section: &Section<'_>, link: &LinkValues, log: &mut Log) -> Option<QueueLimit> {
    let Meaning::Amount(amount) = section.meaning("limit")? else { return None };
    let bytes = match amount.dimension {
        Dimension::Packets => return Some(QueueLimit::Packets(Packets::new(amount.count))),
        Dimension::Duration | Dimension::DelayProduct => {
            let bytes = match link.rate {
                EmptyingRate::At(rate) => bytes_of(amount, rate, link.round_trip),
                EmptyingRate::Unlimited => Err(no_rate(amount)),
                EmptyingRate::Wrong => return None,
            };
            match bytes {
                Ok(bytes) => bytes,
                Err(problem) => {
                    section.problem("limit", problem, log);
                    return None;
                }
            }
        }
        _ => Bytes::new(amount.count),
    };
    warn_of_small_limit("limit", bytes, section, link.mtu, log);
    Some(QueueLimit::Bytes(bytes))
}

/// The bytes of a limit in time or in bandwidth-delay products, rounded up.
///
/// # Errors
/// Returns what the link lacks, or that the bytes are too few or too many.
fn bytes_of(limit: Amount, rate: Rate, round_trip: Option<Duration>) -> Result<Bytes, Problem> {
    // The time in thousandths of a nanosecond.
    let time = match (limit.dimension, round_trip) {
        (Dimension::Duration, _) => u128::from(limit.count) * 1_000,
        (_, Some(round_trip)) => u128::from(limit.count) * u128::from(round_trip.as_nanos()),
        (_, None) => {
            let message =
                format!("found {limit}, but only a `path` has a round trip; a `link` may be part of several");
            return Err(Problem::new(message).with_help("write a time such as \"50 ms\", or bytes"));
        }
    };
    let bytes = time.saturating_mul(u128::from(rate.as_bps())).div_ceil(8 * 1_000_000_000_000);
    match u64::try_from(bytes) {
        Ok(bytes) if (1..=LARGEST_SIZE).contains(&bytes) => Ok(Bytes::new(bytes)),
        _ => Err(Problem::new(format!(
            "found {limit}, which is {bytes} B at {rate}; expected from 1 B to {}",
            Bytes::new(LARGEST_SIZE)
        ))),
    }
}

fn no_rate(limit: Amount) -> Problem {
    let message = format!("found {limit}, but the link has no rate to count its bytes with");
    Problem::new(message).with_help("write `rate` too, or the limit in packets or bytes")
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
        log.warning(&node.place, section.at.key(name), message);
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
    "how many packets or bytes may wait, IP headers included. A time such as `\"50 ms\"` is the bytes that leave at `rate` (or at the \
     shaper's) in that time; `\"1 bdp\"` is those of the path's round trip, the `delay` of both directions",
);

/// The limit of a discipline with classes.
pub(super) const CLASS_LIMIT: Key = Key {
    doc: "how many packets or bytes may wait in each class, IP headers included. A time such as `\"50 ms\"` is the bytes that leave at \
          `rate` (or at the shaper's) in that time; `\"1 bdp\"` is those of the path's round trip, the `delay` of both directions",
    ..LIMIT
};

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

/// The quantum of one class.
pub(super) const CLASS_QUANTUM: Key = Key {
    default: Default::Absent("the `quantum` of the queue"),
    doc: "bytes that the class sends in its turn. Its share of a busy link is this divided by the sum over all classes that have packets",
    ..QUANTUM
};

pub(super) const ECN_DOC: &str = "whether a packet is marked instead of dropped (RFC 3168), if its transport takes marks: TCP, DCCP or UDP with `ecn = true`, and QUIC";

pub(super) const CE_THRESHOLD: Key = key(
    "ce_threshold",
    Kind::Quantity { ranges: ANY_DURATION, words: &["never"] },
    Default::Is("\"never\""),
    "a packet that has waited longer than this is marked, if its transport takes marks",
);

const QUEUE_LIMIT: &[DimensionRange] = &[
    SOME_PACKETS[0],
    SOME_SIZE[0],
    SOME_DURATION[0],
    // We chose a thousandth of the product to a thousand products.
    range(Dimension::DelayProduct, 1, 1_000_000),
];

/// The smallest quantum is that of Linux: sch_fq_codel raises smaller values to it.
const QUANTUM_SIZE: &[DimensionRange] = &[range(Dimension::Size, 256, LARGEST_SIZE)];
