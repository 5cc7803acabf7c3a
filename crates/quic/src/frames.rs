//! The frames of a packet that carry application data (RFC 9000 §19, RFC 9221 §4).

/// Application data in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataFrame {
    /// Bytes `start..end` of a stream.
    Stream {
        /// The stream's ID.
        id: u64,
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
    },
    /// A datagram.
    Datagram {
        /// Bytes of data.
        size: u64,
    },
}

/// Adds the data frames of a packet's decrypted `payload` to `found`. What it does not know ends it: the
/// engine sends no such frame.
pub(crate) fn read_frames(payload: &[u8], found: &mut Vec<DataFrame>) {
    let mut reader = Reader(payload);
    while let Some(kind) = reader.varint() {
        if reader.frame(kind, found).is_none() {
            return;
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    /// Reads one frame after its type.
    fn frame(&mut self, kind: u64, found: &mut Vec<DataFrame>) -> Option<()> {
        match kind {
            // PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK.
            0x00 | 0x01 | 0x1e | 0x1f => Some(()),
            0x02 | 0x03 => self.ack(kind == 0x03),
            // RESET_STREAM.
            0x04 => self.varints(3),
            // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED.
            0x05 | 0x11 | 0x15 => self.varints(2),
            // CRYPTO.
            0x06 => {
                self.varint()?;
                self.block()
            }
            // NEW_TOKEN.
            0x07 => self.block(),
            0x08..=0x0f => self.stream(kind, found),
            // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID.
            0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => self.varints(1),
            // NEW_CONNECTION_ID: the ID, and a token of 16 B.
            0x18 => {
                self.varints(2)?;
                let length = self.skip(1)?[0];
                self.skip(usize::from(length) + 16).map(drop)
            }
            // PATH_CHALLENGE, PATH_RESPONSE.
            0x1a | 0x1b => self.skip(8).map(drop),
            // CONNECTION_CLOSE.
            0x1c => {
                self.varints(2)?;
                self.block()
            }
            0x1d => {
                self.varints(1)?;
                self.block()
            }
            0x30 | 0x31 => {
                let size = if kind == 0x31 { self.varint()? } else { self.0.len() as u64 };
                self.skip(usize::try_from(size).ok()?)?;
                found.push(DataFrame::Datagram { size });
                Some(())
            }
            // ACK_FREQUENCY (draft-ietf-quic-ack-frequency).
            0xaf => self.varints(4),
            _ => None,
        }
    }

    fn stream(&mut self, kind: u64, found: &mut Vec<DataFrame>) -> Option<()> {
        let id = self.varint()?;
        let start = if kind & 0x04 != 0 { self.varint()? } else { 0 };
        let length = if kind & 0x02 != 0 { self.varint()? } else { self.0.len() as u64 };
        self.skip(usize::try_from(length).ok()?)?;
        found.push(DataFrame::Stream { id, start, end: start + length });
        Some(())
    }

    fn ack(&mut self, has_ecn: bool) -> Option<()> {
        self.varints(2)?;
        let ranges = self.varint()?;
        self.varints(1)?;
        for _ in 0..ranges {
            self.varints(2)?;
        }
        if has_ecn { self.varints(3) } else { Some(()) }
    }

    fn block(&mut self) -> Option<()> {
        let length = self.varint()?;
        self.skip(usize::try_from(length).ok()?).map(drop)
    }

    fn varints(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.varint().map(drop))
    }

    /// RFC 9000 §16.
    fn varint(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.skip(1 << (first >> 6))?;
        Some(bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
    }

    fn skip(&mut self, length: usize) -> Option<&[u8]> {
        let (skipped, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(payload: &[u8]) -> Vec<DataFrame> {
        let mut found = Vec::new();
        read_frames(payload, &mut found);
        found
    }

    #[test]
    fn data_is_found_among_all_other_frames() {
        let mut payload = vec![0x01, 0x03, 0x05, 0x00, 0x01, 0x02, 0x00, 0x01, 0x01, 0x00, 0x02];
        payload.extend([0x18, 0x01, 0x00, 0x02, 0xaa, 0xbb].iter().chain(&[0xcc; 16]));
        // A stream with an offset of 16,384 (four bytes), a length of 3 and FIN.
        payload.extend([0x0f, 0x02, 0x80, 0x00, 0x40, 0x00, 0x03, 9, 9, 9]);
        payload.extend([0x31, 0x02, 7, 7, 0x00, 0x00, 0x0a, 0x06, 0x01, 8]);
        assert_eq!(
            frames(&payload),
            [
                DataFrame::Stream { id: 2, start: 16_384, end: 16_387 },
                DataFrame::Datagram { size: 2 },
                DataFrame::Stream { id: 6, start: 0, end: 1 },
            ]
        );
    }

    #[test]
    fn a_frame_without_a_length_takes_the_rest() {
        assert_eq!(frames(&[0x08, 0x04, 1, 2, 3]), [DataFrame::Stream { id: 4, start: 0, end: 3 }]);
        assert_eq!(frames(&[0x30, 1, 2]), [DataFrame::Datagram { size: 2 }]);
    }

    #[test]
    fn a_cut_frame_is_none() {
        for cut in [&[0x0a_u8, 0x02, 0x05, 1][..], &[0x31, 0x03, 1], &[0x18, 0, 0], &[0x40], &[0x21, 0x31, 0]]
        {
            assert_eq!(frames(cut), [], "{cut:?}");
        }
    }
}
