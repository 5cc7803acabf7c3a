//! Writes a log.

use talkpath_path::{Direction, DropCause, Dscp, FragmentRange};
use talkpath_units::Instant;

use super::format::{
    GOES_BACK, IS_DAMAGED, IS_FRAGMENT, IS_FULL, IS_MARKED, IS_PIECE, KIND_ARRIVAL, KIND_ARRIVAL_WITH_DSCP,
    KIND_DEPARTS, KIND_DROPPED, KIND_END, KIND_LOST, KIND_REPEATED, MAGIC, ecn_bits, flag_if, more_fragments,
};
use super::{LogHeader, VERSION};
use crate::decision::{Arrival, Decision, PacketOutcome};

/// The size of a piece of the log in memory, bytes.
pub(crate) const PIECE: usize = 1 << 20;
/// An upper bound on the size of a record: one byte, four numbers of at most ten bytes, and an
/// identification.
const MAX_RECORD: usize = 64;

/// A writer of a log.
#[derive(Debug)]
pub(crate) struct LogWriter {
    /// The full pieces of [`PIECE`] bytes. One growing vector would be copied as a whole while packets wait.
    pieces: Vec<Vec<u8>>,
    current: Vec<u8>,
    limit: usize,
    is_full: bool,
    last_arrival: Instant,
    last_decision: Instant,
    arrivals: u64,
}

impl LogWriter {
    /// Begins the log of the run that `header` names, with at most `limit` bytes.
    pub(crate) fn new(header: &LogHeader, limit: usize) -> Self {
        let mut current = Vec::with_capacity(PIECE);
        current.extend_from_slice(MAGIC);
        current.extend_from_slice(&VERSION.to_le_bytes());
        for number in [header.cell, header.repetition, header.seed] {
            current.extend_from_slice(&number.to_le_bytes());
        }
        for number in [header.flows, header.links] {
            current.extend_from_slice(&number.to_le_bytes());
        }
        Self {
            pieces: Vec::new(),
            current,
            limit,
            is_full: false,
            last_arrival: Instant::ZERO,
            last_decision: Instant::ZERO,
            arrivals: 0,
        }
    }

    /// Writes the arrival of a packet. `at` is not before the last arrival.
    pub(crate) fn arrival(&mut self, arrival: &Arrival, identification: u16, at: Instant) {
        self.arrivals += 1;
        if !self.has_room() {
            return;
        }
        let Arrival { flow, direction, part, ecn, dscp } = *arrival;
        let has_dscp = dscp != Dscp::BEST_EFFORT;
        let is_fragment = !part.is_whole();
        let flags = flag_if(direction == Direction::Back, GOES_BACK) | flag_if(is_fragment, IS_FRAGMENT);
        let kind = if has_dscp { KIND_ARRIVAL_WITH_DSCP } else { KIND_ARRIVAL };
        self.current.push(kind | flags | more_fragments(part) | ecn_bits(ecn));
        self.number(at.since(self.last_arrival).as_nanos());
        self.number(u64::from(flow));
        self.current.extend_from_slice(&identification.to_le_bytes());
        self.number(u64::from(part.length));
        if is_fragment {
            self.number(u64::from(part.offset));
        }
        if has_dscp {
            self.current.push(dscp.number());
        }
        self.last_arrival = at;
    }

    /// Writes a decision about a packet that arrived as the part `arrived`. Its time is not before the last
    /// decision's.
    pub(crate) fn decision(&mut self, decision: &Decision, arrived: FragmentRange) {
        if !self.has_room() {
            return;
        }
        let (kind, link) = match decision.outcome {
            PacketOutcome::Departs { is_ce, is_damaged } => {
                (KIND_DEPARTS | flag_if(is_ce, IS_MARKED) | flag_if(is_damaged, IS_DAMAGED), None)
            }
            PacketOutcome::Repeated { link } => (KIND_REPEATED, Some(link)),
            PacketOutcome::Dropped { link, cause: DropCause::QueueFull } => (KIND_DROPPED, Some(link)),
            PacketOutcome::Dropped { link, cause: DropCause::Congestion } => {
                (KIND_DROPPED | IS_MARKED, Some(link))
            }
            PacketOutcome::Lost { link } => (KIND_LOST, Some(link)),
        };
        let is_piece = decision.part != arrived;
        let piece_flags = flag_if(is_piece, IS_PIECE | more_fragments(decision.part));
        self.current.push(kind | piece_flags);
        self.number(self.arrivals - decision.number);
        self.number(decision.at.since(self.last_decision).as_nanos());
        if let Some(link) = link {
            self.number(u64::from(link));
        }
        if is_piece {
            self.number(u64::from(decision.part.length));
            self.number(u64::from(decision.part.offset));
        }
        self.last_decision = decision.at;
    }

    /// Writes the end of the run at `at` and returns the log.
    pub(crate) fn finish(mut self, at: Instant) -> Vec<u8> {
        self.current.push(KIND_END | flag_if(self.is_full, IS_FULL));
        self.number(at.as_nanos());
        self.pieces.push(self.current);
        self.pieces.concat()
    }

    /// Returns true if the log has room for another record. Once it is full it stays full, because a log with
    /// a hole could not be replayed.
    fn has_room(&mut self) -> bool {
        if self.current.len() > PIECE - MAX_RECORD {
            if (self.pieces.len() + 2) * PIECE > self.limit {
                self.is_full = true;
            } else {
                let full = core::mem::replace(&mut self.current, Vec::with_capacity(PIECE));
                self.pieces.push(full);
            }
        }
        !self.is_full
    }

    /// Writes a LEB128 number.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.current.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.current.push(number as u8);
    }
}
