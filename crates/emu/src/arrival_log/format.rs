//! The bits of a log, as the head of `arrival_log.rs` shows them.

use talkpath_path::FragmentRange;
use talkpath_units::Ecn;

pub(super) const MAGIC: &[u8; 8] = b"TPEMULOG";

/// The bits of the first byte that hold the kind of the record.
pub(super) const KIND_MASK: u8 = 0b111;
pub(super) const KIND_ARRIVAL: u8 = 0;
pub(super) const KIND_DEPARTS: u8 = 1;
pub(super) const KIND_DROPPED: u8 = 2;
pub(super) const KIND_LOST: u8 = 3;
pub(super) const KIND_END: u8 = 4;
pub(super) const KIND_ARRIVAL_WITH_DSCP: u8 = 5;
pub(super) const KIND_REPEATED: u8 = 6;

/// In an arrival: the packet goes back to the sender of its flow.
pub(super) const GOES_BACK: u8 = 1 << 3;
/// In an arrival: the packet is a fragment.
pub(super) const IS_FRAGMENT: u8 = 1 << 4;
/// In a decision: it is about a piece of the packet.
pub(super) const IS_PIECE: u8 = 1 << 3;
/// In a decision: the packet departs marked, or was dropped to signal congestion.
pub(super) const IS_MARKED: u8 = 1 << 4;
/// In a decision: the packet departs damaged.
pub(super) const IS_DAMAGED: u8 = 1 << 6;
/// In the end: the log was full before the end of the run.
pub(super) const IS_FULL: u8 = 1 << 3;
/// In an arrival and a decision: more fragments of the datagram follow.
pub(super) const MORE_FRAGMENTS: u8 = 1 << 5;
/// The position of the ECN field in an arrival.
const ECN_SHIFT: u32 = 6;

/// The largest number of bytes of an IPv4 datagram, whose total length has 16 bits (RFC 791 §3.1).
pub(super) const MAX_IPV4_DATAGRAM: u32 = 65_535;

/// Returns `flag` if `condition` holds, otherwise 0.
pub(super) const fn flag_if(condition: bool, flag: u8) -> u8 {
    if condition { flag } else { 0 }
}

pub(super) const fn more_fragments(part: FragmentRange) -> u8 {
    flag_if(part.more, MORE_FRAGMENTS)
}

/// Writes the ECN field (RFC 3168 §5) into the first byte of an arrival.
pub(super) const fn ecn_bits(ecn: Ecn) -> u8 {
    let field = match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    field << ECN_SHIFT
}

/// Reads the ECN field from the first byte of an arrival.
pub(super) const fn ecn(first_byte: u8) -> Ecn {
    match first_byte >> ECN_SHIFT {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}
