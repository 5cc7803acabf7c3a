//! A peer that says what it likes, when it likes: an end of our DCCP does not panic, and neither its answers
//! nor its deadlines come without end.
//!
//! The first byte chooses CCID, role and keys; then each record is a wait in tenths of a millisecond (2 B), a
//! length (1 B) and so many bytes of a packet inside UDP. With an even length the sequence numbers become
//! those that the end expects, so that the fuzzer need not guess them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use talkpath_config::{CcidKind, DccpConfig, Role};
use talkpath_transport::dccp::Dccp;
use talkpath_units::{Bytes, Duration, Ecn, Instant, Seed};
use talkpath_wire::dccp::Seq;
use talkpath_wire::dccp::codec::{Carrier, decode};
use talkpath_wire::encapsulated::EncapsulatedPacket;
use talkpath_wire::{Message, Packet, Transport};

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, mut rest)) = bytes.split_first() else { return };
    let ccid = [CcidKind::Ccid2, CcidKind::Ccid3, CcidKind::Ccid4][usize::from(first % 3)];
    let config = DccpConfig {
        init_cookie: first & 0x10 != 0,
        ecn: first & 0x20 != 0,
        data_checksum: first & 0x40 != 0,
        short_seqnos: first & 0x80 != 0,
        history_discounting: first & 0x04 != 0,
        ..DccpConfig::new(ccid)
    };
    let role = if first & 0x08 == 0 { Role::Active } else { Role::Passive };
    let mut end = Dccp::new(&config, role, Bytes::new(1500), Seed::new(1), None);
    let (mut now, mut own, mut peers, mut seq) = (Instant::ZERO, Seq::new(0), Seq::new(77), 0);
    end.open(now);
    loop {
        seq += 1;
        let _ = end.handle_message(Message { seq, size: Bytes::new(160), due: now }, now);
        drain(&mut end, &mut own, now);
        let [high, low, length, ref more @ ..] = *rest else { return };
        let until = now + Duration::from_micros(100 * u64::from(u16::from_be_bytes([high, low])));
        let mut wakes = 0_u32;
        while let Some(at) = end.poll_timeout().filter(|&at| at <= until) {
            assert!(at >= now || wakes == 0, "a deadline in the past, again");
            now = now.max(at);
            end.handle_timeout(now);
            drain(&mut end, &mut own, now);
            wakes += 1;
            assert!(wakes < 100_000, "{wakes} deadlines in {until:?}");
        }
        now = until;
        let (packet, after) = more.split_at(more.len().min(usize::from(length)));
        rest = after;
        let Ok(decoded) = decode(packet, Carrier::Udp) else { continue };
        let mut packet = decoded.packet;
        if length % 2 == 0 {
            peers = peers.next();
            (packet.seq, packet.ack, packet.short) = (peers, own, false);
        }
        end.handle_packet(
            &Packet::Encapsulated(packet.into()),
            [Ecn::Ect0, Ecn::Ce][usize::from(length & 2) / 2],
            now,
        );
    }
});

fn drain(end: &mut Dccp, own: &mut Seq, now: Instant) {
    let mut packets = 0;
    while let Some(transmit) = end.poll_transmit(now) {
        if let Packet::Encapsulated(EncapsulatedPacket::Dccp(packet)) = transmit.packet
            && !packet.short
        {
            *own = packet.seq;
        }
        packets += 1;
        assert!(packets < 10_000, "packets without end at one instant");
    }
    while end.poll_delivery(Bytes::MAX, now).is_some() {}
    while end.poll_dropped().is_some() {}
    while end.poll_discarded().is_some() {}
}
