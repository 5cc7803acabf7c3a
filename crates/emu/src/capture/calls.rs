//! Calls in an exported capture: packets of RTP in the place of talkpath's own header.
//!
//! Over a kernel's sockets a message begins with talkpath's token, number and tag, 16 B
//! (`kernel/src/wire.rs`). The flow counts the 12 B of RTP's header in the size of a message, but does not
//! write them. The export writes them over the first 12 B, so other programs recognise the call. A simulated
//! run's export does the same. The sizes, the times and the numbers of the packets stay as they are.

use std::collections::BTreeMap;

use talkpath_config::TransportKind;
use talkpath_measure::Codec;
use talkpath_model::{Scenario, WorkloadConfig};

use super::wrapped::{UDP_HEADER, WrappedPacket, fold};
use crate::packet::{FIRST_PORT, sum};

/// The calls of a run that are exported as RTP: voice with G.711 over the kernel's UDP. Each is known by the
/// port of both its ends.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// By how much the timestamp grows from packet to packet, by port.
    samples: BTreeMap<u16, u32>,
}

impl Calls {
    /// Finds the calls of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let mut samples = BTreeMap::new();
        for (index, flow) in scenario.flows.iter().enumerate() {
            let port = u16::try_from(usize::from(FIRST_PORT) + index);
            if let (Ok(port), TransportKind::Udp, WorkloadConfig::Voice(voice)) =
                (port, flow.transport.kind(), &flow.workload)
                && voice.codec() == Codec::G711
                && voice.sender.is_none()
            {
                // A packet of G.711 has 8 samples each millisecond.
                samples.insert(port, u32::try_from(voice.ptime.as_micros() * 8 / 1000).unwrap_or(0));
            }
        }
        Self { samples }
    }

    /// Writes RTP's header into a message of a call. `bytes` are the captured bytes of an IP packet, which
    /// had `original` bytes. Returns `None` if it is no message of a call, or if too few bytes were captured.
    pub(super) fn as_rtp(&self, bytes: &[u8], original: u32) -> Option<Vec<u8>> {
        let wrapped = WrappedPacket::parse(bytes, original, OWN_HEADER)?;
        let [a, b, c, d, ..] = *wrapped.udp_header else { return None };
        let port = u16::from_be_bytes([a, b]);
        let samples = self.samples.get(&port).filter(|_| [a, b] == [c, d])?;
        let number = u32::from_be_bytes(wrapped.inner.get(NUMBER)?.try_into().ok()?);
        let mut header = [0; RTP_HEADER];
        // RFC 3550 §5.1: version 2. The first packet of a talkspurt has the marker, and payload type 0 is
        // PCMU.
        header[0] = 0x80;
        header[1] = if number == 0 { 0x80 } else { 0 };
        header[2..4].copy_from_slice(&(number as u16).to_be_bytes());
        header[4..8].copy_from_slice(&number.wrapping_mul(*samples).to_be_bytes());
        header[8..12].copy_from_slice(&u32::from(port).to_be_bytes());

        let udp_at = wrapped.ip_header.len();
        let payload_at = udp_at + UDP_HEADER;
        let checksum_at = udp_at + 6;
        let mut written = bytes.to_vec();
        let old = &wrapped.inner[..RTP_HEADER];
        let checksum = u16::from_be_bytes([bytes[checksum_at], bytes[checksum_at + 1]]);
        // RFC 768: 0 says that there is no checksum.
        if checksum != 0 {
            // RFC 1624 §3 eq. 3: the complement of the old sum, without the old bytes and with the new ones.
            let without_old: u32 = old.chunks(2).map(|pair| sum(&[!pair[0], !pair[1]])).sum();
            let sum = u32::from(!checksum) + without_old + sum(&header);
            let checksum = match !fold(sum) {
                0 => u16::MAX,
                other => other,
            };
            written[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        written[payload_at..payload_at + RTP_HEADER].copy_from_slice(&header);
        Some(written)
    }
}

/// The bytes of talkpath's own header: token, number and tag (`kernel/src/wire.rs`).
const OWN_HEADER: usize = 16;
/// The place of the number in it.
const NUMBER: core::ops::Range<usize> = 4..8;
/// RTP's header without contributing sources and without an extension (RFC 3550 §5.1).
const RTP_HEADER: usize = 12;

#[cfg(test)]
mod tests {
    use talkpath_measure::rtp::RtpHeader;

    use super::*;

    /// A message of flow 0 in UDP in IPv4, with a right checksum.
    fn message(number: u32) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 200, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        for field in [FIRST_PORT, FIRST_PORT, 180, 0] {
            bytes.extend(field.to_be_bytes());
        }
        bytes.extend(0xdead_beef_u32.to_be_bytes());
        bytes.extend(number.to_be_bytes());
        bytes.extend((0..164_u32).map(|byte| (byte * 31 % 251) as u8));
        let pseudo = sum(&bytes[12..20]) + 17 + 180;
        let checksum = !fold(pseudo + sum(&bytes[20..]));
        bytes[26..28].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    #[test]
    fn a_message_of_a_call_becomes_rtp_with_a_right_checksum() {
        let calls = Calls { samples: BTreeMap::from([(FIRST_PORT, 160)]) };
        for number in [0, 1, 65_537, u32::MAX] {
            let rtp = calls.as_rtp(&message(number), 200).unwrap();
            let header = RtpHeader::read(&rtp[28..]).unwrap();
            assert_eq!((header.payload_type, header.payload), (0, 160), "{number}");
            assert_eq!(header.sequence, number as u16);
            assert_eq!(header.timestamp, number.wrapping_mul(160));
            let all = sum(&rtp[12..20]) + 17 + 180 + sum(&rtp[20..]);
            assert_eq!(fold(all), 0xffff, "data and pseudo-header sum up to all ones: {number}");
        }
    }

    #[test]
    fn packets_of_other_flows_and_cut_packets_stay_as_they_are() {
        let other = Calls { samples: BTreeMap::from([(FIRST_PORT + 1, 160)]) };
        assert_eq!(other.as_rtp(&message(7), 200), None);
        let calls = Calls { samples: BTreeMap::from([(FIRST_PORT, 160)]) };
        for length in 0..28 + OWN_HEADER {
            assert_eq!(calls.as_rtp(&message(7)[..length], 200), None, "{length}");
        }
        assert!(calls.as_rtp(&message(7)[..64], 200).is_some(), "a capture may cut packets to 64 B");
    }
}
