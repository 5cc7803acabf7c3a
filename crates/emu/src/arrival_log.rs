//! The emulator's log: each arrival and each decision of a run, in the order in which they were made. From
//! the arrivals, `replay.rs` makes the same decisions again.
//!
//! Version 3. Integers are little-endian. `v` is a LEB128 number: seven bits a byte, the lowest first. The
//! top bit says that more bytes follow.
//!
//! | part | layout |
//! | --- | --- |
//! | header | `TPEMULOG`, version (u16), cell, repetition, seed (u64 each), flows, links (u32 each) |
//! | arrival | first byte, ns since the last arrival (v), flow (v), identification (u16), payload bytes (v) |
//! | | then the offset, if the packet is a fragment (v), and the DSCP (u8), if the packet has one |
//! | decision | first byte, arrivals since that of the packet (v), ns since the last decision (v) |
//! | | then the link, if the packet was dropped, lost or repeated (v) |
//! | | then the payload bytes and the offset, if the decision is about a piece (v, v) |
//! | end | first byte, ns from the beginning of the run to its end (v) |
//!
//! The first byte of a record:
//!
//! ```text
//!  bit        7 6   5                4          3           2 1 0
//!  arrival    ECN   more fragments   fragment   goes back   0; 5 with a DSCP other than CS0
//!  decision   dam.  more fragments   marked     piece       1 departs, 2 dropped, 3 lost, 6 repeated
//!  end                                          log full    4
//! ```
//!
//! A *piece* is a fragment that a link has cut from the packet. *Marked* says that the packet departs with
//! the ECN mark CE, or that a queue dropped it to signal congestion, and not because the queue was full.
//!
//! *Damaged* (bit 6) says that the packet departs with a change that no link noticed.
//!
//! Version 2 had no kinds 5 and 6 and nothing damaged. Version 1 had no ECN and no queue that signals
//! congestion. Its bits for them were zero, which has the same meaning here.
//!
//! A packet takes about 16 bytes. If the log is longer than [`MAX_BYTES`], no more records are added, and the
//! end of the log says so.

mod format;
mod reader;
mod writer;

use talkpath_path::FragmentRange;
use talkpath_units::Instant;

use crate::decision::{Arrival, PacketOutcome};

pub(super) use self::reader::LogReader;
pub(super) use self::writer::LogWriter;

/// The largest size of a log, bytes. We chose 256 MiB, which hold 16 million packets.
pub(super) const MAX_BYTES: usize = 256 << 20;
/// The version of the logs that are written.
const VERSION: u16 = 3;

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

/// A record of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
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

#[cfg(test)]
mod tests {
    use talkpath_path::{Direction, DropCause, Dscp};
    use talkpath_units::Ecn;

    use super::writer::PIECE;
    use super::*;
    use crate::decision::Decision;

    const HEADER: LogHeader = LogHeader { cell: 3, repetition: 1, seed: u64::MAX, flows: 2, links: 2 };

    fn part(offset: u32, length: u32, more: bool) -> FragmentRange {
        FragmentRange { offset, length, more }
    }

    fn sample() -> Vec<u8> {
        let mut log = LogWriter::new(&HEADER, MAX_BYTES);
        let whole = Arrival {
            flow: 1,
            direction: Direction::Back,
            part: part(0, 168, false),
            ecn: Ecn::Ect0,
            dscp: Dscp::BEST_EFFORT,
        };
        let fragment = Arrival {
            flow: 0,
            direction: Direction::Out,
            part: part(1480, 1480, true),
            ecn: Ecn::Ect1,
            dscp: Dscp::named("EF").unwrap(),
        };
        log.arrival(&whole, 7, Instant::from_millis(1));
        log.arrival(&fragment, 65_535, Instant::from_millis(400));
        let decision = |number, at, outcome, part| Decision { number, tag: 0, part, at, outcome };
        log.decision(
            &decision(
                0,
                Instant::from_millis(30),
                PacketOutcome::Departs { is_ce: true, is_damaged: true },
                whole.part,
            ),
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
        let outcome = PacketOutcome::Repeated { link: 1 };
        log.decision(&decision(0, Instant::from_secs(1), outcome, whole.part), whole.part);
        log.finish(Instant::from_secs(2))
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let bytes = sample();
        let (header, mut reader) = LogReader::open(&bytes).unwrap();
        assert_eq!(header, HEADER);
        let records: Vec<_> = (0..8).map(|_| reader.next().unwrap()).collect();
        let Record::Arrival { arrival, at } = records[1] else { panic!("{records:?}") };
        assert_eq!((arrival.flow, arrival.part, at), (0, part(1480, 1480, true), Instant::from_millis(400)));
        assert_eq!((arrival.ecn, arrival.dscp.to_string().as_str()), (Ecn::Ect1, "EF"));
        assert!(matches!(records[0], Record::Arrival { arrival: Arrival { ecn: Ecn::Ect0, .. }, .. }));
        let marked = PacketOutcome::Departs { is_ce: true, is_damaged: true };
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
        assert!(matches!(records[6], Record::Decision { outcome: PacketOutcome::Repeated { link: 1 }, .. }));
        assert_eq!(records[7], Record::End { at: Instant::from_secs(2), is_truncated: false });
    }

    #[test]
    fn a_log_cut_anywhere_is_damaged_and_says_where() {
        let bytes = sample();
        for length in 0..bytes.len() {
            let read = LogReader::open(&bytes[..length])
                .and_then(|(_, mut reader)| (0..8).try_for_each(|_| reader.next().map(drop)));
            assert!(read.is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_full_log_ends_whole_and_says_that_it_is_not_all() {
        let mut log = LogWriter::new(&HEADER, PIECE);
        let arrival = Arrival {
            flow: 0,
            direction: Direction::Out,
            part: part(0, 168, false),
            ecn: Ecn::NotEct,
            dscp: Dscp::BEST_EFFORT,
        };
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
