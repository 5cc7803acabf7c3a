//! The emulator's log: every arrival and every decision, in the order in which they were made.
//!
//! Version 2, integers little-endian, `v` a LEB128 number (seven bits a byte, lowest first, the top bit says
//! that more come):
//!
//! | part | layout |
//! | --- | --- |
//! | header | `TPEMULOG`, version (u16), cell, repetition, seed (u64 each), flows, links (u32 each) |
//! | arrival | kind 0, ns since the last arrival (v), flow (v), identification (u16), payload bytes (v) |
//! | | then [offset (v)] |
//! | decision | kind 1 to 3, arrivals since that of this packet (v), ns since the last decision (v) |
//! | | then [link (v)], [payload bytes (v), offset (v)] |
//! | end | kind 4, when the run ended, ns (v) |
//!
//! The kind is the low three bits of a record's first byte: 1 departs, 2 dropped, 3 lost (2 and 3 name the
//! link). Bit 3 of an arrival says that it goes back; bit 4 that it is a fragment (the offset is there),
//! bit 5 that more of its datagram follows; bits 6 and 7 are its ECN field, as in its header. Bit 3 of a
//! decision says that it is about a piece of the arrived packet (its place is there), bit 5 that more
//! follows, bit 4 that the packet departs with Congestion Experienced, or was dropped to signal congestion
//! and not for want of room. Bit 3 of the end says that the log was full before.
//!
//! Version 1 had no ECN and no queue that signals congestion. Its bits for them were zero, which means the
//! same here.
//!
//! A packet takes some 16 bytes. Past [`MAX_BYTES`] nothing is added to the log, and the log's end says so.

use talkpath_path::{Direction, DropCause, FragmentRange};
use talkpath_units::{Duration, Ecn, Instant};

use crate::decision::{Arrival, Decision, PacketOutcome};

/// The run that a log belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// The index of the cell in the sweep.
    pub cell: u64,
    /// The number of the repetition, from 0.
    pub repetition: u64,
    /// The repetition's seed.
    pub seed: u64,
    /// The number of flows in the scenario.
    pub flows: u32,
    /// The number of links in the scenario.
    pub links: u32,
}

/// The reason why a log cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The bytes do not begin as a log does.
    #[error("this is no emulator log")]
    NoLog,
    /// The log has a version that this program cannot read.
    #[error("the log has version {0}, this program reads version {VERSION}")]
    Version(u16),
    /// A record ends too early, or follows the end.
    #[error("the log is damaged at byte {0}")]
    Damaged(u64),
}

/// Writes a log.
#[derive(Debug)]
pub(super) struct LogWriter {
    /// The full pieces of [`PIECE`] bytes. One growing vector would be copied as a whole while packets wait.
    pieces: Vec<Vec<u8>>,
    current: Vec<u8>,
    limit: usize,
    is_full: bool,
    last_arrival: Instant,
    last_decision: Instant,
    arrivals: u64,
}

/// A record of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Arrival {
        arrival: Arrival,
        at: Instant,
    },
    /// A decision. `part` is `None` if the decision is about the packet as it arrived.
    Decision {
        number: u64,
        at: Instant,
        outcome: PacketOutcome,
        part: Option<FragmentRange>,
    },
    End {
        at: Instant,
        is_truncated: bool,
    },
}

/// Reads a log.
#[derive(Clone, Debug)]
pub(super) struct LogReader<'a> {
    bytes: &'a [u8],
    at: usize,
    last_arrival: Instant,
    last_decision: Instant,
    arrivals: u64,
}

impl LogWriter {
    /// Begins the log of the run that `header` names, with at most `limit` bytes.
    pub(super) fn new(header: &LogHeader, limit: usize) -> Self {
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
    pub(super) fn arrival(&mut self, arrival: &Arrival, identification: u16, at: Instant) {
        self.arrivals += 1;
        if !self.has_room() {
            return;
        }
        let Arrival { flow, direction, part, ecn } = *arrival;
        let goes_back = if direction == Direction::Back { BIT_3 } else { 0 };
        let is_fragment = if part.is_whole() { 0 } else { BIT_4 };
        self.current.push(KIND_ARRIVAL | goes_back | is_fragment | more(part) | ecn_bits(ecn));
        self.number(at.since(self.last_arrival).as_nanos());
        self.number(u64::from(flow));
        self.current.extend_from_slice(&identification.to_le_bytes());
        self.number(u64::from(part.length));
        if is_fragment != 0 {
            self.number(u64::from(part.offset));
        }
        self.last_arrival = at;
    }

    /// Writes a decision about a packet that arrived as the part `arrived`. Its time is not before the last
    /// decision's.
    pub(super) fn decision(&mut self, decision: &Decision, arrived: FragmentRange) {
        if !self.has_room() {
            return;
        }
        let (kind, link) = match decision.outcome {
            PacketOutcome::Departs { is_ce: false } => (KIND_DEPARTS, None),
            PacketOutcome::Departs { is_ce: true } => (KIND_DEPARTS | BIT_4, None),
            PacketOutcome::Dropped { link, cause: DropCause::QueueFull } => (KIND_DROPPED, Some(link)),
            PacketOutcome::Dropped { link, cause: DropCause::Congestion } => {
                (KIND_DROPPED | BIT_4, Some(link))
            }
            PacketOutcome::Lost { link } => (KIND_LOST, Some(link)),
        };
        let is_piece = if decision.part == arrived { 0 } else { BIT_3 | more(decision.part) };
        self.current.push(kind | is_piece);
        self.number(self.arrivals - decision.number);
        self.number(decision.at.since(self.last_decision).as_nanos());
        if let Some(link) = link {
            self.number(u64::from(link));
        }
        if is_piece != 0 {
            self.number(u64::from(decision.part.length));
            self.number(u64::from(decision.part.offset));
        }
        self.last_decision = decision.at;
    }

    /// Writes the end of the run at `at` and returns the log.
    pub(super) fn finish(mut self, at: Instant) -> Vec<u8> {
        self.current.push(KIND_END | if self.is_full { BIT_3 } else { 0 });
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

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.current.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.current.push(number as u8);
    }
}

impl<'a> LogReader<'a> {
    /// Opens the log `bytes`. Returns its header and the reader of its records.
    ///
    /// # Errors
    /// Returns [`LogError`] if the bytes are no log or of another version.
    pub(super) fn open(bytes: &'a [u8]) -> Result<(LogHeader, Self), LogError> {
        let mut reader =
            Self { bytes, at: 0, last_arrival: Instant::ZERO, last_decision: Instant::ZERO, arrivals: 0 };
        if reader.take(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(LogError::NoLog);
        }
        let version = reader.u16()?;
        if !READABLE.contains(&version) {
            return Err(LogError::Version(version));
        }
        let header = LogHeader {
            cell: reader.u64()?,
            repetition: reader.u64()?,
            seed: reader.u64()?,
            flows: reader.u32()?,
            links: reader.u32()?,
        };
        Ok((header, reader))
    }

    /// Reads the next record. The last record is [`Record::End`].
    ///
    /// # Errors
    /// Returns [`LogError::Damaged`] if the record is not whole, or if bytes follow the end.
    pub(super) fn next(&mut self) -> Result<Record, LogError> {
        let first = *self.take(1)?.first().ok_or(LogError::NoLog)?;
        match first & KIND_MASK {
            KIND_ARRIVAL => self.arrival(first),
            kind @ (KIND_DEPARTS | KIND_DROPPED | KIND_LOST) => self.decision(first, kind),
            KIND_END => {
                let at = Instant::from_nanos(self.number()?);
                let is_over = self.at == self.bytes.len();
                if is_over {
                    Ok(Record::End { at, is_truncated: first & BIT_3 != 0 })
                } else {
                    Err(self.damaged())
                }
            }
            _ => Err(self.damaged()),
        }
    }

    fn arrival(&mut self, first: u8) -> Result<Record, LogError> {
        let at = self.last_arrival.saturating_add(Duration::from_nanos(self.number()?));
        let flow = u32::try_from(self.number()?).map_err(|_| self.damaged())?;
        self.u16()?;
        let length = self.length()?;
        let offset = if first & BIT_4 != 0 { self.length()? } else { 0 };
        self.last_arrival = at;
        self.arrivals += 1;
        let direction = if first & BIT_3 != 0 { Direction::Back } else { Direction::Out };
        let part = FragmentRange { offset, length, more: first & BIT_5 != 0 };
        let ecn = match first >> ECN_SHIFT {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        };
        Ok(Record::Arrival { arrival: Arrival { flow, direction, part, ecn }, at })
    }

    fn decision(&mut self, first: u8, kind: u8) -> Result<Record, LogError> {
        let number = self.arrivals.checked_sub(self.number()?).ok_or(self.damaged())?;
        let at = self.last_decision.saturating_add(Duration::from_nanos(self.number()?));
        self.last_decision = at;
        let mut link = || self.number().and_then(|link| u32::try_from(link).map_err(|_| self.damaged()));
        let outcome = match kind {
            KIND_DROPPED => {
                let cause = if first & BIT_4 != 0 { DropCause::Congestion } else { DropCause::QueueFull };
                PacketOutcome::Dropped { link: link()?, cause }
            }
            KIND_LOST => PacketOutcome::Lost { link: link()? },
            _ => PacketOutcome::Departs { is_ce: first & BIT_4 != 0 },
        };
        let part = if first & BIT_3 != 0 {
            let length = self.length()?;
            Some(FragmentRange { offset: self.length()?, length, more: first & BIT_5 != 0 })
        } else {
            None
        };
        Ok(Record::Decision { number, at, outcome, part })
    }

    /// A number of bytes within a datagram.
    fn length(&mut self) -> Result<u32, LogError> {
        let number = self.number()?;
        u32::try_from(number).ok().filter(|&number| number <= MAX_IPV4_DATAGRAM).ok_or(self.damaged())
    }

    fn number(&mut self) -> Result<u64, LogError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first().ok_or(LogError::NoLog)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.damaged())
    }

    fn u16(&mut self) -> Result<u16, LogError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, LogError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, LogError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LogError> {
        let damaged = self.damaged();
        self.take(N)?.try_into().map_err(|_| damaged)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], LogError> {
        let taken = self.bytes.get(self.at..self.at + count).ok_or(self.damaged())?;
        self.at += count;
        Ok(taken)
    }

    fn damaged(&self) -> LogError {
        LogError::Damaged(self.at as u64)
    }
}

fn more(part: FragmentRange) -> u8 {
    if part.more { BIT_5 } else { 0 }
}

/// RFC 3168 §5, in the two highest bits of an arrival's first byte.
const fn ecn_bits(ecn: Ecn) -> u8 {
    let field = match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    field << ECN_SHIFT
}

/// A log is no longer than this, 256 MiB: 16 million packets (chosen).
pub(super) const MAX_BYTES: usize = 256 << 20;
const MAGIC: &[u8; 8] = b"TPEMULOG";
const VERSION: u16 = 2;
const READABLE: core::ops::RangeInclusive<u16> = 1..=VERSION;
const PIECE: usize = 1 << 20;
/// One byte, four numbers of at most ten, an identification.
const MAX_RECORD: usize = 64;
const KIND_MASK: u8 = 0b111;
const KIND_ARRIVAL: u8 = 0;
const KIND_DEPARTS: u8 = 1;
const KIND_DROPPED: u8 = 2;
const KIND_LOST: u8 = 3;
const KIND_END: u8 = 4;
const BIT_3: u8 = 1 << 3;
const BIT_4: u8 = 1 << 4;
const BIT_5: u8 = 1 << 5;
const ECN_SHIFT: u32 = 6;
/// RFC 791 §3.1: the total length has 16 bits.
const MAX_IPV4_DATAGRAM: u32 = 65_535;

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: LogHeader = LogHeader { cell: 3, repetition: 1, seed: u64::MAX, flows: 2, links: 2 };

    fn part(offset: u32, length: u32, more: bool) -> FragmentRange {
        FragmentRange { offset, length, more }
    }

    fn sample() -> Vec<u8> {
        let mut log = LogWriter::new(&HEADER, MAX_BYTES);
        let whole =
            Arrival { flow: 1, direction: Direction::Back, part: part(0, 168, false), ecn: Ecn::Ect0 };
        let fragment =
            Arrival { flow: 0, direction: Direction::Out, part: part(1480, 1480, true), ecn: Ecn::Ect1 };
        log.arrival(&whole, 7, Instant::from_millis(1));
        log.arrival(&fragment, 65_535, Instant::from_millis(400));
        let decision = |number, at, outcome, part| Decision { number, tag: 0, part, at, outcome };
        log.decision(
            &decision(0, Instant::from_millis(30), PacketOutcome::Departs { is_ce: true }, whole.part),
            whole.part,
        );
        let piece = part(1480, 552, true);
        log.decision(
            &decision(1, Instant::from_secs(1), PacketOutcome::Lost { link: 300 }, piece),
            fragment.part,
        );
        for cause in [DropCause::QueueFull, DropCause::Congestion] {
            let outcome = PacketOutcome::Dropped { link: 1, cause };
            log.decision(&decision(0, Instant::from_secs(1), outcome, whole.part), whole.part);
        }
        log.finish(Instant::from_secs(2))
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let bytes = sample();
        let (header, mut reader) = LogReader::open(&bytes).unwrap();
        assert_eq!(header, HEADER);
        let records: Vec<_> = (0..7).map(|_| reader.next().unwrap()).collect();
        let Record::Arrival { arrival, at } = records[1] else { panic!("{records:?}") };
        assert_eq!((arrival.flow, arrival.part, at), (0, part(1480, 1480, true), Instant::from_millis(400)));
        assert_eq!(arrival.ecn, Ecn::Ect1);
        assert!(matches!(records[0], Record::Arrival { arrival: Arrival { ecn: Ecn::Ect0, .. }, .. }));
        let marked = PacketOutcome::Departs { is_ce: true };
        assert!(matches!(records[2], Record::Decision { outcome, .. } if outcome == marked), "{records:?}");
        assert_eq!(
            records[3],
            Record::Decision {
                number: 1,
                at: Instant::from_secs(1),
                outcome: PacketOutcome::Lost { link: 300 },
                part: Some(part(1480, 552, true)),
            }
        );
        let causes = [4, 5].map(|index| match records[index] {
            Record::Decision { outcome: PacketOutcome::Dropped { link: 1, cause }, .. } => Some(cause),
            _ => None,
        });
        assert_eq!(causes, [Some(DropCause::QueueFull), Some(DropCause::Congestion)]);
        assert_eq!(records[6], Record::End { at: Instant::from_secs(2), is_truncated: false });
    }

    #[test]
    fn a_log_cut_anywhere_is_damaged_and_says_where() {
        let bytes = sample();
        for length in 0..bytes.len() {
            let read = LogReader::open(&bytes[..length])
                .and_then(|(_, mut reader)| (0..7).try_for_each(|_| reader.next().map(drop)));
            assert!(read.is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_full_log_ends_whole_and_says_that_it_is_not_all() {
        let mut log = LogWriter::new(&HEADER, PIECE);
        let arrival =
            Arrival { flow: 0, direction: Direction::Out, part: part(0, 168, false), ecn: Ecn::NotEct };
        for number in 0..200_000 {
            log.arrival(&arrival, 0, Instant::from_micros(number));
        }
        let bytes = log.finish(Instant::from_secs(1));
        assert!(bytes.len() <= PIECE);
        let (_, mut reader) = LogReader::open(&bytes).unwrap();
        let last = core::iter::from_fn(|| reader.next().ok()).last();
        assert_eq!(last, Some(Record::End { at: Instant::from_secs(1), is_truncated: true }));
    }
}
