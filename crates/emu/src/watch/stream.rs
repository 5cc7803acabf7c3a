//! The watch of a TCP stream.

use talkpath_measure::LegRecord;
use talkpath_units::{Instant, SeqNum};

use super::messages::MAX_WATCHED;
use crate::packet::SegmentRange;

/// The watch of a stream.
#[derive(Debug)]
pub(crate) struct StreamWatch {
    /// The sequence number of the stream's first byte. `None` before the SYN.
    first_byte: Option<u32>,
    /// The offset in the stream after the last byte so far.
    sent_end: u64,
    segments: Vec<Segment>,
}

/// A segment that left its host.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// The offset of the segment's first byte in the stream.
    begin: u64,
    /// The offset after the segment's last byte.
    end: u64,
    left_at: Instant,
}

impl StreamWatch {
    pub(super) const fn new() -> Self {
        Self { first_byte: None, sent_end: 0, segments: Vec::new() }
    }

    pub(super) fn on_segment(&mut self, range: &SegmentRange, now: Instant) {
        let SegmentRange { sequence, is_syn, payload } = *range;
        if is_syn {
            // The SYN has a sequence number of its own (RFC 9293 §3.4).
            self.first_byte = Some(sequence.wrapping_add(1));
        }
        let Some(first_byte) = self.first_byte.filter(|_| payload > 0) else { return };
        let begin = SeqNum::new(sequence.wrapping_sub(first_byte)).extend(self.sent_end);
        let end = begin + u64::from(payload);
        self.sent_end = self.sent_end.max(end);
        if self.segments.len() < MAX_WATCHED {
            self.segments.push(Segment { begin, end, left_at: now });
        }
    }

    /// Adds the wire times and the transmissions. A message leaves its host when a segment with its first
    /// byte leaves. Each further segment with this byte is another transmission of the message.
    pub(super) fn complete(&self, leg: &mut LegRecord) {
        if self.segments.is_empty() {
            return;
        }
        // The offset of each sent message in the stream, and its index in the record.
        let (mut offsets, mut indices) = (Vec::new(), Vec::new());
        let mut offset = 0;
        for (index, message) in leg.messages.iter().enumerate() {
            if message.sent.is_some() {
                offsets.push(offset);
                indices.push(index);
                offset += message.size.get();
            }
        }
        for segment in &self.segments {
            let first = offsets.partition_point(|&offset| offset < segment.begin);
            let after_last = offsets.partition_point(|&offset| offset < segment.end);
            for &index in &indices[first..after_last] {
                let message = &mut leg.messages[index];
                message.wire.get_or_insert(segment.left_at);
                message.transmissions = message.transmissions.saturating_add(1);
            }
        }
    }
}
