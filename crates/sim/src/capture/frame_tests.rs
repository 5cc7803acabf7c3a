//! Frames: their sizes, their checksums, and every packet that a state machine could ever speak of.

use proptest::prelude::*;
use talkpath_units::SeqNum;
use talkpath_wire::dccp::codec::decode;
use talkpath_wire::dccp::{DccpOption, DccpPacket, PacketKind, Reset, ResetCode, Seq, ServiceCode};
use talkpath_wire::{SackBlock, SegmentOptions};

use super::*;

const VOICE: RtpFrame = RtpFrame { payload_type: 0, samples_per_packet: 160, extensions: 0, head: None };

fn envelope(rtp: Option<RtpFrame>) -> Envelope<'static> {
    Envelope {
        flow: 1,
        is_outward: true,
        identification: 7,
        ecn: Ecn::NotEct,
        dscp: Dscp::BEST_EFFORT,
        rtp,
        spoken: None,
        is_encapsulated: false,
    }
}

/// RFC 1071: a sum that includes its own checksum is all ones, so that its complement is 0.
fn checks(bytes: &[u8]) -> (u16, u16) {
    let upper = &bytes[20..];
    let pseudo = word_sum(&bytes[12..20]) + u32::from(bytes[9]) + upper.len() as u32;
    (checksum(word_sum(&bytes[..20])), checksum(pseudo + word_sum(upper)))
}

#[test]
fn frames_have_the_sizes_that_the_simulator_counts_and_right_checksums() {
    let options = SegmentOptions::default()
        .with_mss(1460)
        .with_window_scale(Some(7))
        .with_sack_permitted(true)
        .with_timestamps(Some((1, 0)));
    let syn = Segment { flags: Flags::SYN, options, ..Segment::default() };
    let data = Segment { flags: Flags::ACK, payload: 333, sack_count: 2, ..Segment::default() };
    let ack = DccpPacket { payload: 161, ..DccpPacket::new(PacketKind::DataAck, Seq::new(5), Seq::new(9)) };
    let packets = [
        Packet::Udp(Datagram { seq: 3, payload: 160 }),
        Packet::Tcp(syn),
        Packet::Tcp(data),
        Packet::Encapsulated(ack.into()),
        Packet::Encapsulated(DccpPacket { short: true, ..ack }.into()),
    ];
    for packet in packets {
        let bytes = encode_frame(&packet, &envelope(Some(VOICE)));
        assert_eq!(bytes.len() as u64, packet.wire_size().get(), "{packet:?}");
        assert_eq!(checks(&bytes), (0, 0), "{packet:?}");
    }
}

/// RFC 4340 §9.2: coverage 1 leaves the data out.
#[test]
fn partial_coverage_checks_the_header_alone() {
    let data = |payload| DccpPacket {
        cscov: 1,
        payload,
        ..DccpPacket::new(PacketKind::Data, Seq::new(5), Seq::new(0))
    };
    let bytes = encode_frame(&Packet::Encapsulated(data(160).into()), &envelope(Some(VOICE)));
    let pseudo = word_sum(&bytes[12..20]) + 33 + (bytes.len() - 20) as u32;
    assert_eq!(checksum(pseudo + word_sum(&bytes[20..36])), 0);
}

/// RFC 6773 §3.2 and §3.3.
#[test]
fn an_encapsulated_packet_has_udps_checksum_and_none_of_its_own() {
    let packet = Packet::Encapsulated(DccpPacket::new(PacketKind::Sync, Seq::new(5), Seq::new(9)).into());
    let bytes = encode_frame(&packet, &Envelope { is_encapsulated: true, ..envelope(None) });
    assert_eq!((bytes[9], &bytes[20..24], &bytes[34..36]), (17, &[0x19, 0x6f, 0x19, 0x6f][..], &[0, 0][..]));
    assert_eq!(checks(&bytes), (0, 0));
}

/// RFC 3550 §5.1.
#[test]
fn a_voice_frame_without_rtp_is_captured_as_rtp_within_its_own_size() {
    let bytes = encode_frame(&Packet::Udp(Datagram { seq: 258, payload: 160 }), &envelope(Some(VOICE)));
    assert_eq!(bytes[28..40], [0x80, 0, 1, 2, 0, 0, 0xa1, 0x40, 0, 0, 0, 3]);
    assert_eq!(bytes.len(), 188);
}

/// RFC 3550 §5.1 and §5.3.1: a header of 12 B, extensions of 8 B with their header, and 160 samples.
#[test]
fn a_packet_of_a_call_has_its_header_its_extensions_and_whole_frames_of_samples() {
    let voice = RtpFrame { extensions: 8, ..VOICE };
    let bytes = encode_frame(&Packet::Udp(Datagram { seq: 258, payload: 180 }), &envelope(Some(voice)));
    assert_eq!(bytes[28..40], [0x90, 0, 1, 2, 0, 0, 0xa1, 0x40, 0, 0, 0, 3]);
    assert_eq!(bytes[40..48], [0xbe, 0xde, 0, 1, 0, 0, 0, 0]);
    assert_eq!(
        (bytes.len(), bytes[48..].iter().filter(|&&sample| sample == PCMU_SILENCE).count()),
        (208, 160)
    );
}

fn any_dccp() -> impl Strategy<Value = DccpPacket> {
    let kind = (0_u8..10, any::<[u8; 4]>()).prop_map(|(number, [code, data @ ..])| match number {
        0 => PacketKind::Request { service: ServiceCode(u32::from(code)) },
        1 => PacketKind::Response { service: ServiceCode(u32::from(code)) },
        2 => PacketKind::Data,
        3 => PacketKind::Ack,
        4 => PacketKind::DataAck,
        5 => PacketKind::CloseReq,
        6 => PacketKind::Close,
        7 => PacketKind::Reset(Reset { code: ResetCode(code), data }),
        8 => PacketKind::Sync,
        _ => PacketKind::SyncAck,
    });
    let fields = (any::<u64>(), any::<u64>(), 0_u8..16, 0_u8..16, any::<bool>(), any::<bool>());
    let options = prop::collection::vec(any::<u8>(), 0..60);
    (kind, fields, 0_u32..1440, options).prop_map(|(kind, fields, payload, vector)| {
        let (seq, ack, ccval, cscov, short, summed) = fields;
        let short = short && kind.may_be_short();
        let number = |value| if short { Seq::new(value).short() } else { Seq::new(value) };
        let ack = if kind.has_ack() { number(ack) } else { Seq::new(0) };
        // Coverage that there is data for (RFC 4340 §9.2).
        let cscov = cscov.min(1 + (payload / 4).min(14) as u8);
        let mut packet =
            DccpPacket { ccval, cscov, short, payload, ..DccpPacket::new(kind, number(seq), ack) };
        let _ = packet.options.push(DccpOption::AckVector { nonce: false, runs: &vector });
        if summed {
            let _ = packet.options.push(DccpOption::DataChecksum(0));
        }
        packet
    })
}

/// RFC 3168 §23.1 and §23.2: the ECN field of the IP header, and the two bits above URG.
#[test]
fn ecn_stands_in_both_headers_and_the_dscp_in_that_of_ip() {
    let flags = Flags::SYN.with(Flags::ECE).with(Flags::CWR);
    let packet = Packet::Tcp(Segment { flags, ..Segment::default() });
    for (ecn, bits) in [(Ecn::NotEct, 0), (Ecn::Ect1, 1), (Ecn::Ect0, 2), (Ecn::Ce, 3)] {
        let bytes = encode_frame(&packet, &Envelope { ecn, ..envelope(None) });
        assert_eq!((bytes[1], bytes[20 + 13]), (bits, 0b1100_0010));
        let dscp = Dscp::named("EF").unwrap();
        let bytes = encode_frame(&packet, &Envelope { ecn, dscp, ..envelope(None) });
        // RFC 3246 §2.7: 101110.
        assert_eq!(bytes[1], 0b1011_1000 | bits);
    }
}

fn any_segment() -> impl Strategy<Value = Segment> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u16>(), 0_u32..1449);
    (numbers, any::<[bool; 4]>(), 0_u8..4).prop_map(
        |((seq, ack, window, payload), [syn, fin, stamps, sacks], blocks)| {
            let mut flags = if syn { Flags::SYN } else { Flags::ACK };
            if fin {
                flags = flags.with(Flags::FIN);
            }
            if sacks {
                flags = flags.with(Flags::ECE).with(Flags::CWR);
            }
            let block = SackBlock { left: SeqNum::new(ack), right: SeqNum::new(ack.wrapping_add(9)) };
            let stamped = SegmentOptions::default().with_timestamps(stamps.then_some((seq, ack)));
            let on_syn = stamped.with_mss(1460).with_window_scale(Some(7)).with_sack_permitted(sacks);
            Segment {
                seq: SeqNum::new(seq),
                ack: SeqNum::new(ack),
                flags,
                window,
                payload: if syn { 0 } else { payload },
                sack: [block; 3],
                // Three blocks and timestamps fill the 40 B that there are (RFC 9293 §3.1).
                sack_count: if syn { 0 } else { blocks },
                options: if syn { on_syn } else { stamped },
            }
        },
    )
}

fn any_packet() -> impl Strategy<Value = Packet> {
    prop_oneof![
        any_dccp().prop_map(|packet| Packet::Encapsulated(packet.into())),
        any_segment().prop_map(Packet::Tcp),
        (any::<u64>(), 0_u32..1473).prop_map(|(seq, payload)| Packet::Udp(Datagram { seq, payload })),
    ]
}

proptest! {
    #![proptest_config(talkpath_testing::properties(256))]

    /// As long as the simulator reckons, with the right checksums; and DCCP is read again as it was
    /// (RFC 4340 §5).
    #[test]
    fn every_packet_makes_a_whole_frame(
        packet in any_packet(), flow in 1_u16.., outward: bool, voice: bool, encapsulated: bool,
    ) {
        let envelope = Envelope {
            flow, is_outward: outward, is_encapsulated: encapsulated, ecn: Ecn::Ce, dscp: Dscp::BEST_EFFORT,
            rtp: voice.then_some(VOICE), spoken: None, identification: flow,
        };
        let bytes = encode_frame(&packet, &envelope);
        let around = if matches!(packet, Packet::Encapsulated(_)) && encapsulated { 8 } else { 0 };
        prop_assert_eq!(bytes.len() as u64, packet.wire_size().get() + around);
        prop_assert_eq!(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), bytes.len());
        let (header, upper) = checks(&bytes);
        prop_assert_eq!(header, 0);
        let Packet::Encapsulated(EncapsulatedPacket::Dccp(packet)) = packet else {
            prop_assert_eq!(upper, 0);
            return Ok(());
        };
        let Addresses { source, destination } = addresses(&envelope);
        let (inner, carrier) = if encapsulated {
            prop_assert_eq!(upper, 0);
            (&bytes[28..], Carrier::Udp)
        } else {
            (&bytes[20..], Carrier::Ipv4 { source, destination })
        };
        let found = decode(inner, carrier);
        prop_assert!(found.is_ok(), "{:?}", found);
        let found = found.unwrap().packet;
        prop_assert!(!found.corrupt);
        let same = DccpPacket { options: packet.options, message: packet.message, ..found };
        prop_assert_eq!(same, *packet);
        prop_assert_eq!(found.options.as_bytes().len(), packet.options.as_bytes().len());
    }
}
