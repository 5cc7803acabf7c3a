//! Redundant audio data (RFC 2198): a packet has the speech of earlier packets before its own.
//!
//! ```text
//!  1│ type │ earlier by │ length     0│ type │ earlier speech │ own speech │
//!   └──────── 4 bytes for each earlier block ─┘└ 1 byte for the own block
//! ```

use core::ops::Range;

/// The blocks of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedBlocks {
    /// The earlier speech, the newest last: by how many units of the clock its timestamp is earlier, and its
    /// place behind the header of RTP.
    pub(crate) earlier: Vec<(u16, Range<usize>)>,
    /// The payload type of the packet's own speech.
    pub(crate) payload_type: u8,
    /// Where the packet's own speech begins.
    pub(crate) begins: usize,
}

/// What is kept of the blocks of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RedHead {
    /// The payload type of the packet's own speech.
    pub(crate) payload_type: u8,
    /// The number of earlier packets whose speech the packet has, without a hole.
    pub(crate) earlier: u8,
    /// The time between two of them, in units of the clock.
    pub(crate) step: u16,
    /// Where the packet's own speech begins behind the header of RTP.
    pub(crate) begins: u16,
    /// The first two bytes of the packet's own speech. `None` if they were not kept.
    pub(crate) head: Option<[u8; 2]>,
}

impl RedBlocks {
    /// Reads the blocks of a packet with `length` bytes behind the header of RTP, of which `kept` were kept.
    /// Returns `None` if it has no such blocks.
    pub(crate) fn parse(kept: &[u8], length: usize) -> Option<Self> {
        let mut headers = Vec::new();
        let mut at = 0;
        let payload_type = loop {
            let first = *kept.get(at)?;
            if first & FOLLOWED == 0 {
                at += 1;
                break first;
            }
            let [_, high, middle, low] = *kept.get(at..at + 4)? else { return None };
            let offset = u16::from(high) << 6 | u16::from(middle) >> 2;
            headers.push((offset, usize::from(middle & 3) << 8 | usize::from(low)));
            at += 4;
            if headers.len() > MOST_BLOCKS {
                return None;
            }
        };
        let mut earlier = Vec::with_capacity(headers.len());
        for (offset, size) in headers {
            earlier.push((offset, at..at + size));
            at += size;
        }
        (at <= length).then_some(Self { earlier, payload_type, begins: at })
    }

    /// Returns what is kept of the blocks.
    pub(crate) fn head(&self, kept: &[u8]) -> RedHead {
        let head = kept.get(self.begins..self.begins + 2).and_then(|head| head.try_into().ok());
        // A sender may leave blocks out, or give speech of an hour ago. Those without a hole count.
        let step = self.earlier.last().map_or(0, |(offset, _)| *offset);
        let follows = |(number, (offset, _)): &(u32, &(u16, Range<usize>))| {
            step > 0 && u32::from(*offset) == *number * u32::from(step)
        };
        let earlier = (1..).zip(self.earlier.iter().rev()).take_while(follows).count();
        RedHead {
            payload_type: self.payload_type,
            earlier: u8::try_from(earlier).unwrap_or(u8::MAX),
            step,
            begins: u16::try_from(self.begins).unwrap_or(u16::MAX),
            head,
        }
    }
}

/// The bit of a block's header that says that another header follows (RFC 2198 §3, F).
const FOLLOWED: u8 = 0x80;
/// The largest number of earlier blocks that are read. We chose 32: a block may be 16,383 units of the clock
/// earlier, which are 17 packets of 20 ms at 48 kHz.
const MOST_BLOCKS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with speech that is earlier by these times, each of 3 bytes, and its own.
    fn packet(offsets: &[u16]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for offset in offsets {
            bytes.extend([0x80 | 111, (offset >> 6) as u8, (offset << 2) as u8, 3]);
        }
        bytes.push(111);
        bytes.extend(offsets.iter().flat_map(|_| [7, 7, 7]));
        bytes.extend([1, 2, 3, 4]);
        bytes
    }

    #[test]
    fn each_block_is_found_where_it_is() {
        let bytes = packet(&[1_920, 960]);
        let blocks = RedBlocks::parse(&bytes, bytes.len()).unwrap();
        assert_eq!(blocks.earlier, [(1_920, 9..12), (960, 12..15)]);
        assert_eq!((blocks.payload_type, &bytes[blocks.begins..]), (111, &[1, 2, 3, 4][..]));
        let head = blocks.head(&bytes);
        assert_eq!((head.earlier, head.step, head.begins, head.head), (2, 960, 15, Some([1, 2])));
        // The first packet has no earlier speech.
        let first = packet(&[]);
        assert_eq!(RedBlocks::parse(&first, first.len()).unwrap().head(&first).earlier, 0);
    }

    #[test]
    fn speech_beyond_a_hole_does_not_count() {
        for (offsets, expected) in [(&[2_880, 960][..], 1), (&[0], 0), (&[480, 960], 1), (&[16_383], 1)] {
            let bytes = packet(offsets);
            let head = RedBlocks::parse(&bytes, bytes.len()).unwrap().head(&bytes);
            assert_eq!(head.earlier, expected, "{offsets:?}");
        }
    }

    #[test]
    fn what_is_cut_or_longer_than_the_packet_is_no_red() {
        let bytes = packet(&[1_920, 960]);
        for length in 0..9 {
            assert_eq!(RedBlocks::parse(&bytes[..length], bytes.len()), None, "{length}");
        }
        assert_eq!(RedBlocks::parse(&bytes, 14), None);
        assert!(RedBlocks::parse(&bytes[..9], bytes.len()).is_some(), "the speech need not be kept");
        assert_eq!(RedBlocks::parse(&[0xff; 400], 400), None);
    }
}
