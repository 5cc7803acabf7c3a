//! Any bytes as a DCCP packet, native and in UDP: none panics, what is taken out is bounded, and what was
//! decoded is encoded and decoded to the same again (RFC 4340 §5, RFC 6773).
#![no_main]

use libfuzzer_sys::fuzz_target;
use talkpath_transport::dccp::{ack_vector, drop_code};
use talkpath_wire::dccp::codec::{Carrier, decode, encode};
use talkpath_wire::dccp::{Options, Seq};

fuzz_target!(|bytes: &[u8]| {
    for carrier in [Carrier::Ipv4 { source: [10, 0, 0, 1], destination: [10, 128, 0, 1] }, Carrier::Udp] {
        let Ok(decoded) = decode(bytes, carrier) else { continue };
        let packet = decoded.packet;
        assert!(decoded.data.len() < bytes.len());
        assert!(packet.options.as_bytes().len() <= Options::ROOM);
        assert!(packet.options.iter().count() <= Options::ROOM);
        assert!(ack_vector(packet.ack, &packet.options).count() <= Options::ROOM);
        let _ = drop_code(packet.ack, &packet.options, Seq::new(packet.ack.get() / 2));
        if packet.corrupt {
            continue;
        }
        let mut again = Vec::new();
        encode(&packet, decoded.ports, decoded.data, carrier, &mut again);
        assert_eq!(decode(&again, carrier), Ok(decoded));
    }
});
