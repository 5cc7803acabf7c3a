//! The codec against bytes written by hand after RFC 4340 §5, and as a round trip.

use proptest::prelude::*;

use super::*;
use crate::dccp::{FeatureKind, FeatureOption};

const IPV4: Carrier = Carrier::Ipv4 { source: [192, 0, 2, 1], destination: [192, 0, 2, 2] };
const PORTS: Ports = Ports { source: 5000, destination: 6511 };

fn bytes_of(packet: &DccpPacket, data: &[u8], carrier: Carrier) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, PORTS, data, carrier, &mut bytes);
    bytes
}

/// RFC 4340 §5.1, §5.3 and §5.8: the pictures, worked by hand.
#[test]
fn a_response_is_laid_out_as_in_the_pictures() {
    let kind = PacketKind::Response { service: ServiceCode(0x0102_0304) };
    let mut packet = DccpPacket::new(kind, Seq::new(0x1122_3344_5566), Seq::new(0x0000_aabb_ccdd));
    packet.ccval = 5;
    assert!(packet.options.push(DccpOption::Feature(FeatureOption {
        kind: FeatureKind::ChangeR,
        number: 6,
        values: &[1],
    })));
    assert!(packet.options.push(DccpOption::SlowReceiver));
    let bytes = bytes_of(&packet, &[], Carrier::Udp);
    let expected = [
        0x13,
        0x88,
        0x19,
        0x6f, // ports
        9,
        0x50,
        0,
        0, // 36 B of header; CCVal 5, CsCov 0; no checksum inside UDP
        1 << 1 | 1,
        0,
        0x11,
        0x22,
        0x33,
        0x44,
        0x55,
        0x66, // type 1, X = 1
        0,
        0,
        0,
        0,
        0xaa,
        0xbb,
        0xcc,
        0xdd, // acknowledgement
        1,
        2,
        3,
        4, // service code
        34,
        4,
        6,
        1,
        2,
        0,
        0,
        0, // options, padded
    ];
    assert_eq!(bytes, expected);
}

/// RFC 4340 §5.1, X = 0.
#[test]
fn short_numbers_take_24_bits() {
    let packet = DccpPacket {
        short: true,
        ..DccpPacket::new(PacketKind::DataAck, Seq::new(0x01_0203), Seq::new(0x04_0506))
    };
    let bytes = bytes_of(&packet, &[7, 7], Carrier::Udp);
    assert_eq!(bytes[4..], [4, 0, 0, 0, 4 << 1, 1, 2, 3, 0, 4, 5, 6, 7, 7]);
}

/// RFC 4340 §9.1 over a packet small enough to add up: addresses c000 + 0201 + c000 + 0202, protocol 0021,
/// length 0010, words 1388 196f 0400 0500 (type 2, X = 1) 0000 0000 0007; the sum is 1_ba32, folded ba33, its
/// complement 45cc.
#[test]
fn the_checksum_covers_pseudo_header_and_packet() {
    let packet = DccpPacket::new(PacketKind::Data, Seq::new(7), Seq::new(0));
    let bytes = bytes_of(&packet, &[], IPV4);
    assert_eq!(bytes[6..8], [0x45, 0xcc]);
}

/// RFC 3720 §B.4: CRC-32C of 32 bytes of zeros, of ones, and ascending.
#[test]
fn the_data_checksum_is_crc_32c() {
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    assert_eq!(crc32c(&(0..32).collect::<Vec<_>>()), 0x46dd_794e);
}

/// RFC 4340 §9.3 takes SCTP's algorithm, which transmits the low byte first (RFC 3309). RFC 3720 §B.4 prints
/// the bytes in that order: aa 36 91 8a for 32 bytes of zeros.
#[test]
fn the_data_checksum_leaves_with_its_low_byte_first() {
    let mut packet = DccpPacket::new(PacketKind::Data, Seq::new(7), Seq::new(0));
    assert!(packet.options.push(DccpOption::DataChecksum(0)));
    let bytes = bytes_of(&packet, &[0; 32], Carrier::Udp);
    assert_eq!(bytes[16..24], [44, 6, 0xaa, 0x36, 0x91, 0x8a, 0, 0]);
}

/// RFC 4340 §9.2: what lies beyond the coverage may change; what lies within may not.
#[test]
fn partial_coverage_lets_the_rest_be_corrupt() {
    let packet = DccpPacket { cscov: 2, ..DccpPacket::new(PacketKind::Data, Seq::new(7), Seq::new(0)) };
    let bytes = bytes_of(&packet, &[1; 8], IPV4);
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        assert_eq!(decode(&changed, IPV4).is_ok(), place >= 20, "{place}");
    }
}

/// RFC 4340 §9.3: computed over the data alone; such a packet is corrupt, not one that is to be ignored.
#[test]
fn a_data_checksum_that_does_not_fit_marks_the_packet_corrupt() {
    let mut packet = DccpPacket { cscov: 1, ..DccpPacket::new(PacketKind::Data, Seq::new(7), Seq::new(0)) };
    assert!(packet.options.push(DccpOption::SlowReceiver));
    assert!(packet.options.push(DccpOption::DataChecksum(0)));
    let mut bytes = bytes_of(&packet, b"voice", IPV4);
    let found = decode(&bytes, IPV4).unwrap().packet;
    assert!(!found.corrupt);
    assert_eq!(found.options.iter().nth(1), Some(DccpOption::DataChecksum(crc32c(b"voice"))));
    *bytes.last_mut().unwrap() ^= 1;
    assert!(decode(&bytes, IPV4).unwrap().packet.corrupt);
}

/// RFC 4340 §8.5 step 1.
#[test]
fn what_is_no_packet_is_told_by_reason() {
    let ack = bytes_of(&DccpPacket::new(PacketKind::Ack, Seq::new(7), Seq::new(8)), &[], Carrier::Udp);
    let with = |place: usize, byte: u8| {
        let mut bytes = ack.clone();
        bytes[place] = byte;
        decode(&bytes, Carrier::Udp).map(|decoded| decoded.packet.seq)
    };
    assert_eq!(decode(&ack[..11], Carrier::Udp), Err(Malformed::TooShort));
    assert_eq!(decode(&ack[..23], Carrier::Udp), Err(Malformed::TooShort));
    assert_eq!(with(8, 10 << 1 | 1), Err(Malformed::UnknownType(10)));
    assert_eq!(with(8, 8 << 1), Err(Malformed::ShortNumbers(8)));
    assert_eq!(with(4, 5), Err(Malformed::DataOffset(20)));
    assert_eq!(with(4, 7), Err(Malformed::DataOffset(28)));
    assert_eq!(with(5, 2), Err(Malformed::Coverage));
    assert_eq!(with(5, 0x31), Ok(Seq::new(7)));
}

fn any_kind() -> impl Strategy<Value = PacketKind> {
    (0_u8..10, any::<u32>(), any::<[u8; 3]>()).prop_map(|(number, word, data)| match number {
        0 => PacketKind::Request { service: ServiceCode(word) },
        1 => PacketKind::Response { service: ServiceCode(word) },
        2 => PacketKind::Data,
        3 => PacketKind::Ack,
        4 => PacketKind::DataAck,
        5 => PacketKind::CloseReq,
        6 => PacketKind::Close,
        7 => PacketKind::Reset(Reset { code: ResetCode(word as u8), data }),
        8 => PacketKind::Sync,
        _ => PacketKind::SyncAck,
    })
}

prop_compose! {
    fn any_packet()(
        kind in any_kind(),
        numbers in any::<(u64, u64)>(),
        fields in (0_u8..16, any::<bool>(), any::<bool>()),
        options in proptest::collection::vec((1_u8..=255, proptest::collection::vec(any::<u8>(), 0..30)), 0..8),
        data in proptest::collection::vec(any::<u8>(), 0..200),
        cscov in 0_usize..16,
    ) -> (DccpPacket, Vec<u8>) {
        let (ccval, short, _) = fields;
        let mut packet = DccpPacket::new(kind, Seq::new(numbers.0), Seq::new(numbers.1));
        packet.ccval = ccval;
        packet.short = short && kind.may_be_short();
        if packet.short {
            (packet.seq, packet.ack) = (packet.seq.short(), packet.ack.short());
        }
        if !kind.has_ack() {
            packet.ack = Seq::new(0);
        }
        packet.cscov = cscov.min(1 + data.len() / 4) as u8;
        packet.payload = data.len() as u32;
        for (kind, value) in options {
            // A data checksum has to be right: below, once.
            if kind != 44 {
                let data = if kind < 32 { &[][..] } else { &value };
                let _ = packet.options.push(DccpOption::Unknown { kind, data });
            }
        }
        if fields.2 {
            let _ = packet.options.push(DccpOption::DataChecksum(crc32c(&data)));
        }
        (packet, data)
    }
}

proptest! {
    #![proptest_config(talkpath_testing::properties(256))]

    #[test]
    fn what_was_encoded_is_decoded_again((packet, data) in any_packet(), native in any::<bool>()) {
        let carrier = if native { IPV4 } else { Carrier::Udp };
        let bytes = bytes_of(&packet, &data, carrier);
        prop_assert_eq!(bytes.len(), packet.header_size() + data.len());
        prop_assert_eq!(decode(&bytes, carrier), Ok(Decoded { packet, ports: PORTS, data: &data }));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1200)) {
        for carrier in [IPV4, Carrier::Udp] {
            if let Ok(decoded) = decode(&bytes, carrier) {
                prop_assert!(decoded.data.len() < bytes.len());
                prop_assert!(decoded.packet.options.iter().count() <= Options::ROOM);
            }
        }
    }

    /// Bytes near to a packet reach further than random ones.
    #[test]
    fn no_change_of_a_packet_panics(
        (packet, data) in any_packet(),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
        cut in any::<usize>(),
    ) {
        let mut bytes = bytes_of(&packet, &data, Carrier::Udp);
        for (place, byte) in changes {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        bytes.truncate(cut % (bytes.len() + 1));
        if let Ok(decoded) = decode(&bytes, Carrier::Udp)
            && !decoded.packet.corrupt
        {
            let again = bytes_of(&decoded.packet, decoded.data, Carrier::Udp);
            prop_assert_eq!(decode(&again, Carrier::Udp).map(|it| it.packet), Ok(decoded.packet));
        }
    }
}
