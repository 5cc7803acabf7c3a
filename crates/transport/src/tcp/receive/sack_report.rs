//! The SACK option that leaves: data beyond a gap (RFC 2018), and duplicates (RFC 2883).
//!
//! ```text
//!   first block    the segment that arrived twice, once, if there is one (D-SACK)
//!   next blocks    the block with the latest segment, then the blocks that were reported most recently
//! ```
//!
//! The order is that of RFC 2018 §4. Four blocks are remembered, and the oldest is forgotten, as in Linux
//! (tcp_sack_new_ofo_skb). An option has room for three blocks beside timestamps.

use talkpath_units::SeqNum;
use talkpath_wire::SackBlock;

use crate::tcp::offset_range::OffsetRange;

/// The ranges that the next option reports.
#[derive(Clone, Debug, Default)]
pub(super) struct SackReport {
    /// The number of valid ranges in `blocks`.
    count: usize,
    /// The range of the segment that arrived twice (RFC 2883 §4). `None` once reported.
    duplicate: Option<OffsetRange>,
    /// Ranges beyond RCV.NXT, the most recent first.
    blocks: [OffsetRange; REMEMBERED],
}

impl SackReport {
    /// Adds `data`, which arrived beyond a gap.
    #[inline]
    pub(super) fn on_out_of_order(&mut self, data: OffsetRange) {
        let [latest, others @ ..] = &mut self.blocks[..self.count] else {
            self.blocks[0] = data;
            self.count = 1;
            return;
        };
        // Most data beyond a gap extends the latest block.
        let extended = latest.span(data);
        if latest.end == data.start && !others.iter().any(|other| other.touches(extended)) {
            *latest = extended;
            return;
        }
        self.merge(data);
    }

    /// Puts `data` first, merged with the blocks that it touches.
    fn merge(&mut self, data: OffsetRange) {
        let mut merged = data;
        let mut kept = 0;
        let mut others = [OffsetRange::EMPTY; REMEMBERED];
        for &block in &self.blocks[..self.count] {
            if block.touches(merged) {
                merged = merged.span(block);
            } else {
                others[kept] = block;
                kept += 1;
            }
        }
        self.blocks[0] = merged;
        self.count = (kept + 1).min(REMEMBERED);
        self.blocks[1..self.count].copy_from_slice(&others[..self.count - 1]);
    }

    /// Removes the blocks that lie before `rcv_nxt`.
    #[inline]
    pub(super) fn on_in_order(&mut self, rcv_nxt: u64) {
        if self.count == 0 {
            return;
        }
        let mut kept = 0;
        for index in 0..self.count {
            if self.blocks[index].start > rcv_nxt {
                self.blocks[kept] = self.blocks[index];
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Takes note that `data` arrived a second time. An empty range is ignored.
    pub(super) const fn on_duplicate(&mut self, data: OffsetRange) {
        if !data.is_empty() {
            self.duplicate = Some(data);
        }
    }

    /// The number of bytes that the option takes now. Zero if there is nothing to report.
    #[inline]
    pub(super) fn option_size(&self) -> u32 {
        match (self.count + usize::from(self.duplicate.is_some())).min(BLOCKS) as u32 {
            0 => 0,
            blocks => OPTION_HEADER + BLOCK * blocks,
        }
    }

    /// Returns the option's blocks, and their number. They fit into `room` bytes, and count from the far
    /// end's initial sequence number `irs`.
    pub(super) fn take(&mut self, irs: SeqNum, room: u32) -> ([SackBlock; BLOCKS], u8) {
        let capacity = (room.saturating_sub(OPTION_HEADER) / BLOCK).min(BLOCKS as u32) as usize;
        let mut option = [SackBlock::default(); BLOCKS];
        let number = |offset: u64| irs.wrapping_add(offset as u32);
        let block = |range: OffsetRange| SackBlock { left: number(range.start), right: number(range.end) };
        let mut count = 0;
        if capacity > 0
            && let Some(duplicate) = self.duplicate.take()
        {
            option[0] = block(duplicate);
            count = 1;
        }
        for (place, &range) in option[count..capacity].iter_mut().zip(&self.blocks[..self.count]) {
            *place = block(range);
            count += 1;
        }
        (option, count as u8)
    }
}

/// The number of blocks that are remembered (Linux: TCP_NUM_SACKS).
const REMEMBERED: usize = 4;
/// The number of blocks in an option: 40 bytes of options less 12 of timestamps hold three (RFC 2018 §3).
const BLOCKS: usize = 3;
/// The bytes of kind, length and two bytes of padding.
const OPTION_HEADER: u32 = 4;
/// The bytes of a block, which is two sequence numbers.
const BLOCK: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(report: &mut SackReport) -> Vec<(u32, u32)> {
        let (blocks, count) = report.take(SeqNum::new(0), 40);
        blocks[..usize::from(count)].iter().map(|block| (block.left.get(), block.right.get())).collect()
    }

    /// RFC 2018 §7, case 3: every second of eight segments is lost.
    #[test]
    fn the_latest_block_comes_first_and_three_fit() {
        let mut report = SackReport::default();
        report.on_out_of_order(OffsetRange::new(5500, 6000));
        assert_eq!(reported(&mut report), [(5500, 6000)]);
        report.on_out_of_order(OffsetRange::new(6500, 7000));
        assert_eq!(reported(&mut report), [(6500, 7000), (5500, 6000)]);
        report.on_out_of_order(OffsetRange::new(7500, 8000));
        report.on_out_of_order(OffsetRange::new(8500, 9000));
        assert_eq!(reported(&mut report), [(8500, 9000), (7500, 8000), (6500, 7000)]);
        report.on_out_of_order(OffsetRange::new(6000, 6500));
        assert_eq!(reported(&mut report), [(5500, 7000), (8500, 9000), (7500, 8000)]);
    }

    #[test]
    fn what_arrived_in_order_is_no_longer_reported() {
        let mut report = SackReport::default();
        report.on_out_of_order(OffsetRange::new(2000, 3000));
        report.on_out_of_order(OffsetRange::new(4000, 5000));
        report.on_in_order(3000);
        assert_eq!((reported(&mut report), report.option_size()), (vec![(4000, 5000)], 12));
        report.on_in_order(5000);
        assert_eq!(report.option_size(), 0);
    }

    /// RFC 2883 §4: in the first block, in one acknowledgement.
    #[test]
    fn a_duplicate_is_reported_once_and_first() {
        let mut report = SackReport::default();
        report.on_out_of_order(OffsetRange::new(4000, 5000));
        report.on_duplicate(OffsetRange::new(1000, 2000));
        assert_eq!(reported(&mut report), [(1000, 2000), (4000, 5000)]);
        assert_eq!(reported(&mut report), [(4000, 5000)]);
    }

    #[test]
    fn only_what_has_room_is_reported() {
        let mut report = SackReport::default();
        report.on_out_of_order(OffsetRange::new(2000, 3000));
        report.on_out_of_order(OffsetRange::new(4000, 5000));
        assert_eq!(report.take(SeqNum::new(0), 12).1, 1);
        assert_eq!(report.take(SeqNum::new(0), 11).1, 0);
    }
}
