//! The packets of a source, and whether they are a stream.

use std::collections::BTreeMap;

use super::header::RtpHeader;

/// The sources of RTP of one direction of a conversation.
#[derive(Clone, Debug, Default)]
pub struct RtpSources {
    by_source: BTreeMap<u32, RtpSource>,
}

/// The packets of a synchronisation source.
#[derive(Clone, Debug, Default)]
pub struct RtpSource {
    pub(super) packets: Vec<RtpPacket>,
    /// How many packets have the sequence number behind that of the packet before.
    consecutive: usize,
    /// Whether the packets were found not to be a stream, so that none of them is kept.
    is_refused: bool,
}

/// A packet of RTP, in the order in which the packets were seen.
#[derive(Clone, Copy, Debug)]
pub struct RtpPacket {
    /// The number of the packet's row in its leg.
    pub row: u32,
    /// The sequence number.
    pub sequence: u16,
    /// The timestamp, in units of the clock rate.
    pub timestamp: u32,
    /// The number of bytes behind the header.
    pub payload: u16,
    /// The payload type.
    pub payload_type: u8,
    /// Whether the marker bit is set.
    pub is_marked: bool,
    /// The first byte behind the header. `None` if it was not kept.
    pub first_byte: Option<u8>,
}

impl RtpSources {
    /// Takes note of a packet whose row in its leg has the number `row`. Returns whether the packet was kept.
    /// Beyond 64 sources no source is noted.
    pub fn note(&mut self, header: RtpHeader, row: u32) -> bool {
        let RtpHeader { payload_type, is_marked, sequence, timestamp, source, payload, first_byte } = header;
        if !self.by_source.contains_key(&source) && self.by_source.len() >= MOST_SOURCES {
            return false;
        }
        let source = self.by_source.entry(source).or_default();
        if source.is_refused {
            return false;
        }
        let is_next = source.packets.last().is_some_and(|last| sequence == last.sequence.wrapping_add(1));
        source.consecutive += usize::from(is_next);
        // A UDP datagram has less than 64 KiB.
        let payload = u16::try_from(payload).unwrap_or(u16::MAX);
        source.packets.push(RtpPacket {
            row,
            sequence,
            timestamp,
            payload,
            payload_type,
            is_marked,
            first_byte,
        });
        if source.packets.len() == DECIDING_PACKETS && !source.is_stream() {
            *source = RtpSource { is_refused: true, ..RtpSource::default() };
        }
        true
    }

    /// Returns the streams with their synchronisation sources, in the order of their first packets.
    pub fn streams(&self) -> Vec<(u32, &RtpSource)> {
        let all = self.by_source.iter().map(|(source, packets)| (*source, packets));
        let mut streams: Vec<_> = all.filter(|(_, source)| source.is_stream()).collect();
        streams.sort_by_key(|(_, source)| source.packets.first().map(|packet| packet.row));
        streams
    }
}

impl RtpSource {
    fn is_stream(&self) -> bool {
        self.packets.len() >= LEAST_PACKETS && self.consecutive * 2 > self.packets.len()
    }

    /// Returns the packets in the order in which they were seen.
    pub fn packets(&self) -> &[RtpPacket] {
        &self.packets
    }

    /// Returns the payload type of the most packets. A source may also send comfort noise (RFC 3389) and
    /// telephone events (RFC 4733) between its packets of speech.
    pub fn payload_type(&self) -> u8 {
        let mut counts = [0_usize; 128];
        for packet in &self.packets {
            counts[usize::from(packet.payload_type & 0x7f)] += 1;
        }
        let most = (0_u8..).zip(counts).max_by_key(|(number, count)| (*count, core::cmp::Reverse(*number)));
        most.map_or(0, |(number, _)| number)
    }

    /// Returns the most frequent step of the timestamps from one packet to the next by number. Returns `None`
    /// if no timestamp grows.
    pub fn usual_step(&self) -> Option<u32> {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        let main = self.payload_type();
        for pair in self.packets.windows(2) {
            let are_neighbours = pair[1].sequence == pair[0].sequence.wrapping_add(1)
                && pair[0].payload_type == main
                && pair[1].payload_type == main;
            let step = pair[1].timestamp.wrapping_sub(pair[0].timestamp);
            if are_neighbours
                && step.cast_signed() > 0
                && (counts.len() < MOST_STEPS || counts.contains_key(&step))
            {
                *counts.entry(step).or_default() += 1;
            }
        }
        // Of two steps that are equally frequent the smaller one is the frame, because a pause is longer.
        let most = counts.into_iter().max_by_key(|(step, count)| (*count, core::cmp::Reverse(*step)));
        most.map(|(step, _)| step)
    }
}

/// The least number of packets of a stream. We chose 16 because other datagrams hardly look like RTP so
/// often.
pub const LEAST_PACKETS: usize = 16;
/// The largest number of sources that are noted in each direction of a conversation. We chose 64 because a
/// conference has fewer.
const MOST_SOURCES: usize = 64;
/// The number of packets after which a source that is no stream is given up, so that it takes no more memory.
/// We chose 512: a stream has recovered from a bad beginning by then, which is 10 s of speech.
const DECIDING_PACKETS: usize = 512;
/// The largest number of different steps that are counted. We chose 64 because speech has a few, and video's
/// steps need no count.
const MOST_STEPS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(payload_type: u8, sequence: u16, timestamp: u32) -> RtpHeader {
        let (is_marked, source, payload, first_byte) = (false, 7, 160, Some(0));
        RtpHeader { payload_type, is_marked, sequence, timestamp, source, payload, first_byte }
    }

    #[test]
    fn datagrams_that_only_look_like_rtp_are_no_stream_and_take_no_memory() {
        let mut sources = RtpSources::default();
        let kept =
            (0..2000_u32).filter(|&number| sources.note(header(96, (number * 7919) as u16, number), number));
        assert_eq!(kept.count(), DECIDING_PACKETS);
        assert!(sources.streams().is_empty());
        assert!(sources.by_source[&7].packets.is_empty());
    }

    #[test]
    fn comfort_noise_and_events_belong_to_the_stream_of_their_source() {
        let mut sources = RtpSources::default();
        for number in 0..100_u16 {
            let payload_type = match number {
                40..45 => 101,
                50 => 13,
                _ => 0,
            };
            sources.note(header(payload_type, number, 160 * u32::from(number)), number.into());
        }
        let streams = sources.streams();
        assert_eq!((streams.len(), streams[0].1.packets().len()), (1, 100));
        assert_eq!((streams[0].1.payload_type(), streams[0].1.usual_step()), (0, Some(160)));
    }
}
