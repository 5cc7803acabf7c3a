//! The frames of a packet (RFC 9000 §19, RFC 9221 §4), as far as the engine sends them.

/// A frame. Times and codes are as in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// PADDING frames in a row.
    Padding {
        length: u64,
    },
    Ping,
    Ack {
        largest: u64,
        delay: u64,
        /// How many packet numbers the first range has besides the largest one.
        first_range: u64,
        /// The other ranges: gap and length in turn (RFC 9000 §19.3.1).
        ranges: &'a [u8],
        /// ECT(0), ECT(1), CE.
        ecn: Option<[u64; 3]>,
    },
    ResetStream {
        id: u64,
        error: u64,
        final_size: u64,
    },
    StopSending {
        id: u64,
        error: u64,
    },
    Crypto {
        offset: u64,
        length: u64,
    },
    NewToken {
        length: u64,
    },
    /// Bytes `start..end` of a stream.
    Stream {
        id: u64,
        start: u64,
        end: u64,
        is_last: bool,
    },
    MaxData(u64),
    MaxStreamData {
        id: u64,
        limit: u64,
    },
    MaxStreams {
        is_unidirectional: bool,
        limit: u64,
    },
    DataBlocked(u64),
    StreamDataBlocked {
        id: u64,
        limit: u64,
    },
    StreamsBlocked {
        is_unidirectional: bool,
        limit: u64,
    },
    NewConnectionId {
        sequence: u64,
        retire_prior_to: u64,
        id: &'a [u8],
        reset_token: &'a [u8],
    },
    RetireConnectionId(u64),
    PathChallenge(&'a [u8]),
    PathResponse(&'a [u8]),
    ConnectionClose {
        is_application: bool,
        error: u64,
        reason: &'a [u8],
    },
    HandshakeDone,
    /// A DATAGRAM with `size` bytes of data.
    Datagram {
        size: u64,
    },
    /// Another frame without a length of its own: IMMEDIATE_ACK, ACK_FREQUENCY
    /// (draft-ietf-quic-ack-frequency).
    Other(u64),
}

impl Frame<'_> {
    /// Whether a packet of such frames alone does not count in flight (RFC 9002 §2: padding makes a packet
    /// count). The engine declares its packets with a CONNECTION_CLOSE neither acknowledged nor lost.
    pub(crate) fn is_out_of_flight(&self) -> bool {
        matches!(self, Self::Ack { .. } | Self::ConnectionClose { .. })
    }
}

/// The frames of a packet's decrypted payload. What is not known ends them: the engine sends no such frame.
pub(crate) struct Frames<'a>(Reader<'a>);

impl<'a> Frames<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        Self(Reader(payload))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let kind = self.0.varint()?;
        let frame = self.0.frame(kind);
        if frame.is_none() {
            self.0.0 = &[];
        }
        frame
    }
}

/// The ranges of an ACK frame, from and to, the largest first.
pub(crate) fn acked_ranges(largest: u64, first_range: u64, ranges: &[u8]) -> Vec<(u64, u64)> {
    let mut reader = Reader(ranges);
    let mut found = vec![(largest.saturating_sub(first_range), largest)];
    while let (Some(gap), Some(length)) = (reader.varint(), reader.varint()) {
        let to = found[found.len() - 1].0.saturating_sub(gap + 2);
        found.push((to.saturating_sub(length), to));
    }
    found
}

pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// Reads one frame after its type.
    fn frame(&mut self, kind: u64) -> Option<Frame<'a>> {
        Some(match kind {
            0x00 => self.padding(),
            0x01 => Frame::Ping,
            0x02 | 0x03 => self.ack(kind == 0x03)?,
            0x04 => {
                Frame::ResetStream { id: self.varint()?, error: self.varint()?, final_size: self.varint()? }
            }
            0x05 => Frame::StopSending { id: self.varint()?, error: self.varint()? },
            0x06 => Frame::Crypto { offset: self.varint()?, length: self.block()?.len() as u64 },
            0x07 => Frame::NewToken { length: self.block()?.len() as u64 },
            0x08..=0x0f => self.stream(kind)?,
            0x10 => Frame::MaxData(self.varint()?),
            0x11 => Frame::MaxStreamData { id: self.varint()?, limit: self.varint()? },
            0x12 | 0x13 => Frame::MaxStreams { is_unidirectional: kind == 0x13, limit: self.varint()? },
            0x14 => Frame::DataBlocked(self.varint()?),
            0x15 => Frame::StreamDataBlocked { id: self.varint()?, limit: self.varint()? },
            0x16 | 0x17 => Frame::StreamsBlocked { is_unidirectional: kind == 0x17, limit: self.varint()? },
            0x18 => self.new_connection_id()?,
            0x19 => Frame::RetireConnectionId(self.varint()?),
            0x1a => Frame::PathChallenge(self.take(8)?),
            0x1b => Frame::PathResponse(self.take(8)?),
            0x1c | 0x1d => {
                let error = self.varint()?;
                if kind == 0x1c {
                    // The type of the frame that was wrong.
                    self.varint()?;
                }
                Frame::ConnectionClose { is_application: kind == 0x1d, error, reason: self.block()? }
            }
            0x1e => Frame::HandshakeDone,
            0x30 => Frame::Datagram { size: self.take(self.0.len())?.len() as u64 },
            0x31 => Frame::Datagram { size: self.block()?.len() as u64 },
            0x1f => Frame::Other(kind),
            0xaf => {
                for _ in 0..4 {
                    self.varint()?;
                }
                Frame::Other(kind)
            }
            _ => return None,
        })
    }

    fn padding(&mut self) -> Frame<'a> {
        let more = self.0.iter().take_while(|byte| **byte == 0).count();
        self.0 = &self.0[more..];
        Frame::Padding { length: 1 + more as u64 }
    }

    fn stream(&mut self, kind: u64) -> Option<Frame<'a>> {
        let id = self.varint()?;
        let start = if kind & 0x04 != 0 { self.varint()? } else { 0 };
        let length = if kind & 0x02 != 0 { self.varint()? } else { self.0.len() as u64 };
        self.take(usize::try_from(length).ok()?)?;
        Some(Frame::Stream { id, start, end: start + length, is_last: kind & 0x01 != 0 })
    }

    fn ack(&mut self, has_ecn: bool) -> Option<Frame<'a>> {
        let (largest, delay) = (self.varint()?, self.varint()?);
        let count = self.varint()?;
        let first_range = self.varint()?;
        let before = self.0;
        for _ in 0..count {
            self.varint()?;
            self.varint()?;
        }
        let ranges = &before[..before.len() - self.0.len()];
        let ecn = if has_ecn { Some([self.varint()?, self.varint()?, self.varint()?]) } else { None };
        Some(Frame::Ack { largest, delay, first_range, ranges, ecn })
    }

    fn new_connection_id(&mut self) -> Option<Frame<'a>> {
        let (sequence, retire_prior_to) = (self.varint()?, self.varint()?);
        let length = self.take(1)?[0];
        let id = self.take(usize::from(length))?;
        // RFC 9000 §19.15: the token has 128 bits.
        Some(Frame::NewConnectionId { sequence, retire_prior_to, id, reset_token: self.take(16)? })
    }

    /// A length, and as many bytes.
    pub(crate) fn block(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.take(usize::try_from(length).ok()?)
    }

    /// RFC 9000 §16.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.take(1 << (first >> 6))?;
        Some(bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(payload: &[u8]) -> Vec<Frame<'_>> {
        Frames::new(payload).collect()
    }

    #[test]
    fn a_packets_frames_are_read_in_turn() {
        let mut payload = vec![0x01, 0x03, 0x05, 0x00, 0x01, 0x02, 0x00, 0x01, 0x01, 0x00, 0x02];
        payload.extend([0x18, 0x01, 0x00, 0x02, 0xaa, 0xbb].iter().chain(&[0xcc; 16]));
        // A stream with an offset of 16,384 (four bytes), a length of 3 and FIN.
        payload.extend([0x0f, 0x02, 0x80, 0x00, 0x40, 0x00, 0x03, 9, 9, 9]);
        payload.extend([0x31, 0x02, 7, 7, 0x00, 0x00, 0x0a, 0x06, 0x01, 8]);
        assert_eq!(
            frames(&payload),
            [
                Frame::Ping,
                Frame::Ack { largest: 5, delay: 0, first_range: 2, ranges: &[0, 1], ecn: Some([1, 0, 2]) },
                Frame::NewConnectionId {
                    sequence: 1,
                    retire_prior_to: 0,
                    id: &[0xaa, 0xbb],
                    reset_token: &[0xcc; 16]
                },
                Frame::Stream { id: 2, start: 16_384, end: 16_387, is_last: true },
                Frame::Datagram { size: 2 },
                Frame::Padding { length: 2 },
                Frame::Stream { id: 6, start: 0, end: 1, is_last: false },
            ]
        );
    }

    #[test]
    fn a_frame_without_a_length_takes_the_rest() {
        let stream = Frame::Stream { id: 4, start: 0, end: 3, is_last: false };
        assert_eq!(frames(&[0x08, 0x04, 1, 2, 3]), [stream]);
        assert_eq!(frames(&[0x30, 1, 2]), [Frame::Datagram { size: 2 }]);
    }

    #[test]
    fn a_cut_frame_is_none() {
        for cut in [&[0x0a_u8, 0x02, 0x05, 1][..], &[0x31, 0x03, 1], &[0x18, 0, 0], &[0x40], &[0x21, 0x31, 0]]
        {
            assert_eq!(frames(cut), [], "{cut:?}");
        }
    }

    #[test]
    fn acknowledged_ranges_are_read_from_gaps_and_lengths() {
        // RFC 9000 §19.3.1: smallest = largest - range; next largest = smallest - gap - 2.
        assert_eq!(acked_ranges(10, 2, &[0, 1, 1, 0]), [(8, 10), (5, 6), (2, 2)]);
    }
}
