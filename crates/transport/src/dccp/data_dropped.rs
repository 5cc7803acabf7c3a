//! The Data Dropped option (RFC 4340 §11.7): data that arrived and did not reach the application.
//!
//! ```text
//!   0 | run length, 7 bits           normal: n packets, stored as n - 1
//!   1 | drop code, 3 | run length, 4
//! ```

use std::collections::VecDeque;

use talkpath_wire::dccp::{DccpOption, Options, Seq};

/// Why data did not reach the application (RFC 4340 §11.7, table 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropCode(pub u8);

impl DropCode {
    /// Such as a checksum coverage that is too small.
    pub const PROTOCOL_CONSTRAINTS: Self = Self(0);
    /// The application has stopped reading.
    pub const NOT_LISTENING: Self = Self(1);
    /// The receive buffer had no room.
    pub const RECEIVE_BUFFER: Self = Self(2);
    /// The data was corrupt.
    pub const CORRUPT: Self = Self(3);
}

/// What a packet that acknowledges `ack` says of the data of packet `seq`; `None` if it was delivered, or not
/// reported.
pub fn drop_code(ack: Seq, options: &Options, seq: Seq) -> Option<DropCode> {
    let mut behind = u64::try_from(ack.distance_from(seq)).ok()?;
    for option in options {
        let DccpOption::DataDropped(blocks) = option else { continue };
        for &block in blocks {
            let (code, count) = match block >> 7 {
                0 => (None, u64::from(block) + 1),
                _ => (Some(DropCode(block >> 4 & 0x7)), u64::from(block & 0xf) + 1),
            };
            if behind < count {
                return code;
            }
            behind -= count;
        }
    }
    None
}

/// The drops that a receiving end still reports.
#[derive(Clone, Debug, Default)]
pub(super) struct DropLog {
    /// In the order of their numbers, each number once.
    drops: VecDeque<(Seq, DropCode)>,
}

impl DropLog {
    /// The data of packet `seq` was dropped. A copy of that packet changes nothing; of too many, the oldest
    /// is forgotten.
    pub(super) fn on_drop(&mut self, seq: Seq, code: DropCode) {
        let place = self.drops.partition_point(|&(other, _)| other.is_before(seq));
        if self.drops.get(place).is_some_and(|&(other, _)| other == seq) {
            return;
        }
        self.drops.insert(place, (seq, code));
        if self.drops.len() > MOST_DROPS {
            self.drops.pop_front();
        }
    }

    /// Forgets what lies before `oldest`, which no acknowledgement covers any more.
    pub(super) fn forget_before(&mut self, oldest: Seq) {
        while self.drops.pop_front_if(|&mut (seq, _)| seq.is_before(oldest)).is_some() {}
    }

    /// Adds the option to a packet that acknowledges `ack`, as far back as `room` bytes reach; nothing if
    /// nothing was dropped.
    pub(super) fn put(&self, options: &mut Options, ack: Seq, room: usize) {
        let room = room.min(options.room()).saturating_sub(2);
        let mut blocks = [0; Options::ROOM];
        let mut size = 0;
        let mut next = ack;
        for &(seq, code) in self.drops.iter().rev() {
            let mut normal = next.distance_from(seq);
            let needed = (normal.max(0) as usize).div_ceil(LONGEST_NORMAL as usize) + 1;
            if normal < 0 || size + needed > room {
                break;
            }
            while normal > 0 {
                let count = normal.min(LONGEST_NORMAL);
                blocks[size] = (count - 1) as u8;
                (size, normal) = (size + 1, normal - count);
            }
            blocks[size] = 0x80 | code.0 << 4;
            size += 1;
            next = seq.wrapping_sub(1);
        }
        if size > 0 {
            let fits = options.push(DccpOption::DataDropped(&blocks[..size]));
            debug_assert!(fits, "the size was bounded by the room");
        }
    }
}

/// RFC 4340 §11.7: 128 packets a normal block.
const LONGEST_NORMAL: i64 = 128;
/// Chosen: the most drops that one packet's option can report.
const MOST_DROPS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4340 §11.7's example, 0,160,3,162 from 100: it gives 99 to drop code 2, 98 to 95 as received, and
    /// the three behind them to drop code 2 (the text names 95 twice; by its own run lengths they are 94 to
    /// 92).
    #[test]
    fn the_rfcs_example_is_read() {
        let mut options = Options::EMPTY;
        assert!(options.push(DccpOption::DataDropped(&[0, 160, 3, 162])));
        for seq in 90..=101 {
            let expected = [99, 94, 93, 92].contains(&seq).then_some(DropCode::RECEIVE_BUFFER);
            assert_eq!(drop_code(Seq::new(100), &options, Seq::new(seq)), expected, "{seq}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut log = DropLog::default();
        let drops =
            [(400, DropCode::CORRUPT), (98, DropCode::RECEIVE_BUFFER), (99, DropCode(0)), (70, DropCode(2))];
        for (seq, code) in drops {
            log.on_drop(Seq::new(seq), code);
        }
        log.forget_before(Seq::new(98));
        let mut options = Options::EMPTY;
        log.put(&mut options, Seq::new(410), Options::ROOM);
        for seq in 60..=410 {
            let expected = drops[..3].iter().find(|drop| drop.0 == seq).map(|drop| drop.1);
            assert_eq!(drop_code(Seq::new(410), &options, Seq::new(seq)), expected, "{seq}");
        }
    }

    /// Two blocks for each of the drops: ten bytes hold two type and length bytes and the latest four drops.
    #[test]
    fn the_latest_drops_are_reported_within_the_room() {
        let mut log = DropLog::default();
        for n in 0..MOST_DROPS as u64 {
            log.on_drop(Seq::new(2 * n), DropCode::CORRUPT);
        }
        let ack = Seq::new(2 * MOST_DROPS as u64 - 1);
        let mut options = Options::EMPTY;
        log.put(&mut options, ack, 10);
        assert_eq!(options.as_bytes(), [40, 10, 0, 0xb0, 0, 0xb0, 0, 0xb0, 0, 0xb0]);
    }

    /// A packet is one entry, with the code of its first copy, and hides no older one.
    #[test]
    fn a_copy_of_a_dropped_packet_changes_nothing() {
        let mut log = DropLog::default();
        for (seq, code) in [(97, 2), (99, 3), (99, 2), (97, 0)] {
            log.on_drop(Seq::new(seq), DropCode(code));
        }
        let mut options = Options::EMPTY;
        log.put(&mut options, Seq::new(99), Options::ROOM);
        assert_eq!(options.as_bytes(), [40, 5, 0xb0, 0, 0xa0]);
    }

    #[test]
    fn of_too_many_drops_the_oldest_is_forgotten() {
        let mut log = DropLog::default();
        for seq in 1..=MOST_DROPS as u64 {
            log.on_drop(Seq::new(seq), DropCode::CORRUPT);
        }
        log.on_drop(Seq::new(0), DropCode::CORRUPT);
        assert_eq!(log.drops.front().map(|drop| drop.0), Some(Seq::new(1)));
        log.on_drop(Seq::new(MOST_DROPS as u64 + 1), DropCode::CORRUPT);
        assert_eq!((log.drops.len(), log.drops[0].0), (MOST_DROPS, Seq::new(2)));
    }
}
