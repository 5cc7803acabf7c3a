//! The header of a packet of RTP.

/// The header of a packet of RTP (RFC 3550 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpHeader {
    /// The payload type, 0 to 127.
    pub payload_type: u8,
    /// Whether the marker bit is set. Audio sets it at the beginning of a talkspurt (RFC 3551 §4.1).
    pub is_marked: bool,
    /// The sequence number.
    pub sequence: u16,
    /// The timestamp, in units of the clock rate.
    pub timestamp: u32,
    /// The synchronisation source (SSRC).
    pub source: u32,
    /// The number of bytes behind the header, with padding and the authentication tag of SRTP.
    pub payload: u32,
    /// The first byte behind the header. `None` if the packet was cut before it.
    pub first_byte: Option<u8>,
}

impl RtpHeader {
    /// Reads the header of a whole datagram's payload. Returns `None` if the datagram is not RTP.
    pub fn read(datagram: &[u8]) -> Option<Self> {
        Self::read_cut(datagram, datagram.len())
    }

    /// Reads the header of a datagram's payload that had `length` bytes, and of which a capture kept the
    /// first bytes. Returns `None` if the datagram is not RTP, or if the header was not kept.
    pub fn read_cut(kept: &[u8], length: usize) -> Option<Self> {
        let [first, second, ..] = *kept else { return None };
        let payload_type = second & 0x7f;
        // RFC 5761 §4: these payload types are packets of RTCP.
        if first >> 6 != VERSION || (64..=95).contains(&payload_type) {
            return None;
        }
        let mut header = FIXED_HEADER + 4 * usize::from(first & 0x0f);
        if first & 0x10 != 0 {
            header += 4 + 4 * usize::from(u16::from_be_bytes(bytes_at(kept, header + 2)?));
        }
        let payload = length.checked_sub(header).filter(|payload| *payload > 0)?;
        Some(Self {
            payload_type,
            is_marked: second & 0x80 != 0,
            sequence: u16::from_be_bytes(bytes_at(kept, 2)?),
            timestamp: u32::from_be_bytes(bytes_at(kept, 4)?),
            source: u32::from_be_bytes(bytes_at(kept, 8)?),
            payload: u32::try_from(payload).ok()?,
            first_byte: kept.get(header).copied(),
        })
    }
}

fn bytes_at<const N: usize>(datagram: &[u8], at: usize) -> Option<[u8; N]> {
    datagram.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// RFC 3550 §5.1.
const VERSION: u8 = 2;
/// The bytes of a header without contributing sources and without an extension (RFC 3550 §5.1).
const FIXED_HEADER: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(payload_type: u8, sequence: u16, timestamp: u32) -> Vec<u8> {
        let mut bytes = vec![0x80, payload_type];
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(timestamp.to_be_bytes());
        bytes.extend(7_u32.to_be_bytes());
        bytes.extend([0; 160]);
        bytes
    }

    #[test]
    fn a_header_is_read_with_its_sources_and_extension_and_other_protocols_are_none() {
        let mut bytes = packet(0x80 | 111, 9, 960);
        let header = RtpHeader::read(&bytes).unwrap();
        let expected = RtpHeader {
            payload_type: 111,
            is_marked: true,
            sequence: 9,
            timestamp: 960,
            source: 7,
            payload: 160,
            first_byte: Some(0),
        };
        assert_eq!(header, expected);
        // Two contributing sources, and an extension of one word.
        bytes[0] = 0x92;
        bytes[22..24].copy_from_slice(&1_u16.to_be_bytes());
        assert_eq!(RtpHeader::read(&bytes).unwrap().payload, 160 - 8 - 8);
        // RTCP, DTLS, STUN, QUIC with a long and a short header, and a header without payload.
        for (first, second) in [(0x81, 200), (22, 254), (0, 1), (0xc0, 0), (0x40, 0)] {
            let mut other = packet(0, 9, 960);
            other[..2].copy_from_slice(&[first, second]);
            assert_eq!(RtpHeader::read(&other), None, "{first} {second}");
        }
        assert_eq!(RtpHeader::read(&packet(0, 1, 1)[..12]), None);
        assert_eq!(RtpHeader::read(&[0x80]), None);
    }

    #[test]
    fn a_packet_that_the_capture_cut_has_its_whole_size() {
        let bytes = packet(0, 9, 960);
        let header = RtpHeader::read_cut(&bytes[..12], 172).unwrap();
        assert_eq!((header.payload, header.first_byte), (160, None));
        assert_eq!(RtpHeader::read_cut(&bytes[..11], 172), None);
    }
}
