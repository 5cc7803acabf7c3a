//! Reads a log.

use talkpath_path::{Direction, DropCause, Dscp, FragmentRange};
use talkpath_units::{Duration, Instant};

use super::format::{
    GOES_BACK, IS_DAMAGED, IS_FRAGMENT, IS_FULL, IS_MARKED, IS_PIECE, KIND_ARRIVAL, KIND_ARRIVAL_WITH_DSCP,
    KIND_DEPARTS, KIND_DROPPED, KIND_END, KIND_LOST, KIND_MASK, KIND_REPEATED, MAGIC, MAX_IPV4_DATAGRAM,
    MORE_FRAGMENTS, ecn,
};
use super::{LogError, LogHeader, Record, VERSION};
use crate::decision::{Arrival, PacketOutcome};

/// The versions that this program can read.
const READABLE: core::ops::RangeInclusive<u16> = 1..=VERSION;

/// A reader of a log.
#[derive(Clone, Debug)]
pub(crate) struct LogReader<'a> {
    bytes: &'a [u8],
    at: usize,
    last_arrival: Instant,
    last_decision: Instant,
    arrivals: u64,
}

impl<'a> LogReader<'a> {
    /// Opens the log `bytes`. Returns its header and the reader of its records.
    ///
    /// # Errors
    /// Returns [`LogError`] if the bytes are no log or of another version.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<(LogHeader, Self), LogError> {
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
    pub(crate) fn next(&mut self) -> Result<Record, LogError> {
        let first = *self.take(1)?.first().ok_or(LogError::NoLog)?;
        match first & KIND_MASK {
            KIND_ARRIVAL | KIND_ARRIVAL_WITH_DSCP => self.arrival(first),
            kind @ (KIND_DEPARTS | KIND_DROPPED | KIND_LOST | KIND_REPEATED) => self.decision(first, kind),
            KIND_END => {
                let at = Instant::from_nanos(self.number()?);
                if self.at < self.bytes.len() {
                    return Err(self.damaged());
                }
                Ok(Record::End { at, is_truncated: first & IS_FULL != 0 })
            }
            _ => Err(self.damaged()),
        }
    }

    fn arrival(&mut self, first: u8) -> Result<Record, LogError> {
        let at = self.last_arrival.saturating_add(Duration::from_nanos(self.number()?));
        let flow = u32::try_from(self.number()?).map_err(|_| self.damaged())?;
        let _identification = self.u16()?;
        let length = self.length()?;
        let offset = if first & IS_FRAGMENT != 0 { self.length()? } else { 0 };
        let dscp = if first & KIND_MASK == KIND_ARRIVAL_WITH_DSCP { self.dscp()? } else { Dscp::BEST_EFFORT };
        self.last_arrival = at;
        self.arrivals += 1;
        let direction = if first & GOES_BACK != 0 { Direction::Back } else { Direction::Out };
        let part = FragmentRange { offset, length, more: first & MORE_FRAGMENTS != 0 };
        Ok(Record::Arrival { arrival: Arrival { flow, direction, part, ecn: ecn(first), dscp }, at })
    }

    fn decision(&mut self, first: u8, kind: u8) -> Result<Record, LogError> {
        let number = self.arrivals.checked_sub(self.number()?).ok_or(self.damaged())?;
        let at = self.last_decision.saturating_add(Duration::from_nanos(self.number()?));
        self.last_decision = at;
        let is_marked = first & IS_MARKED != 0;
        let outcome = match kind {
            KIND_DROPPED => {
                let cause = if is_marked { DropCause::Congestion } else { DropCause::QueueFull };
                PacketOutcome::Dropped { link: self.link()?, cause }
            }
            KIND_LOST => PacketOutcome::Lost { link: self.link()? },
            KIND_REPEATED => PacketOutcome::Repeated { link: self.link()? },
            _ => PacketOutcome::Departs { is_ce: is_marked, is_damaged: first & IS_DAMAGED != 0 },
        };
        let part = if first & IS_PIECE != 0 {
            let length = self.length()?;
            Some(FragmentRange { offset: self.length()?, length, more: first & MORE_FRAGMENTS != 0 })
        } else {
            None
        };
        Ok(Record::Decision { number, at, outcome, part })
    }

    fn dscp(&mut self) -> Result<Dscp, LogError> {
        let number = *self.take(1)?.first().ok_or(LogError::NoLog)?;
        Dscp::numbered(number).ok_or(self.damaged())
    }

    fn link(&mut self) -> Result<u32, LogError> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| self.damaged())
    }

    /// Reads a number of bytes within a datagram.
    fn length(&mut self) -> Result<u32, LogError> {
        let number = self.number()?;
        u32::try_from(number).ok().filter(|&number| number <= MAX_IPV4_DATAGRAM).ok_or(self.damaged())
    }

    /// Reads a LEB128 number.
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
