//! The speech of a packet, and that of packets before it which it also has, by RED or by Opus's in-band FEC.

use std::collections::BTreeMap;

use talkpath_measure::rtp::RtpPacket;

use crate::opus::{OpusPacket, has_earlier_frame};
use crate::red::{RedBlocks, RedHead};
use crate::stream::{Stream, opus_packet};

/// The speech of a packet in a later packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repair {
    /// The number of the later packet in the stream.
    pub(crate) by: usize,
    /// When that one was captured.
    pub(crate) seen_ns: i128,
}

impl Stream<'_> {
    /// Returns the packets whose speech a later packet also has, with the first of those that was captured.
    /// Packets before a silence are none of them: the coder begins anew after it (RFC 6716 §4.5.2), and RED
    /// repeats what came just before.
    pub(crate) fn repairs(&self) -> BTreeMap<usize, Repair> {
        let mut repairs: BTreeMap<usize, Repair> = BTreeMap::new();
        let Some(frame_ns) = self.frame.map(|frame| i128::from(frame.as_nanos())) else { return repairs };
        for (by, row) in self.rows.iter().enumerate() {
            let Some(seen_ns) = row.seen_ns else { continue };
            for distance in 1..=self.earlier_packets(by) {
                let Some(number) = by.checked_sub(distance) else { break };
                let passed_ns = row.due_ns - self.rows[number].due_ns;
                if (passed_ns - distance as i128 * frame_ns).abs() > frame_ns / 2 {
                    break;
                }
                let repair = Repair { by, seen_ns };
                let first = repairs.entry(number).or_insert(repair);
                if seen_ns < first.seen_ns {
                    *first = repair;
                }
            }
        }
        repairs
    }

    /// The number of packets before the packet with this number whose speech it also has.
    fn earlier_packets(&self, number: usize) -> usize {
        let by_red = self.red_head(number).map_or(0, |head| usize::from(head.earlier));
        let has_fec = || self.opus_packet(number).is_some_and(has_earlier_frame);
        let shows_fec = self.opus.is_some() && !self.is_encrypted;
        if by_red == 0 && shows_fec { usize::from(has_fec()) } else { by_red }
    }

    /// Returns the coded speech that one packet has of another one before it, by RED. It is empty if it was
    /// not kept.
    pub(crate) fn earlier_speech(&self, number: usize, by: usize) -> &[u8] {
        let payload = self.payload(by);
        let block = RedBlocks::parse(payload, payload.len()).and_then(|blocks| {
            let at = blocks.earlier.len().checked_sub(by.checked_sub(number)?)?;
            blocks.earlier.get(at).map(|(_, place)| place.clone())
        });
        block.and_then(|place| payload.get(place)).unwrap_or_default()
    }

    /// The packet with this number, if it came and has speech.
    fn packet(&self, number: usize) -> Option<&RtpPacket> {
        let packet = self.found.packets.packets().get(self.rows.get(number)?.packet? as usize)?;
        (packet.payload_type == self.payload_type()).then_some(packet)
    }

    /// What a packet has behind the header of RTP. It is empty if that was not kept.
    fn payload(&self, number: usize) -> &[u8] {
        self.packet(number).map_or(&[], |packet| self.found.speech(packet.row))
    }

    /// The coded speech of a packet, without that of earlier packets.
    pub(crate) fn own_speech(&self, number: usize) -> &[u8] {
        let payload = self.payload(number);
        if self.red_type.is_none() {
            return payload;
        }
        let blocks = RedBlocks::parse(payload, payload.len());
        blocks.and_then(|blocks| payload.get(blocks.begins..)).unwrap_or_default()
    }

    /// The blocks of a packet of RED.
    pub(crate) fn red_head(&self, number: usize) -> Option<RedHead> {
        self.red_type?;
        self.found.row(self.packet(number)?.row).red
    }

    /// A packet as one of Opus. `None` if its first bytes were not kept.
    fn opus_packet(&self, number: usize) -> Option<OpusPacket> {
        opus_packet(self.found, self.packet(number)?, self.red_type.is_some(), false)
    }
}
