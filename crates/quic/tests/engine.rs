//! What docs/models/quic.md says of the engine, so that another version cannot change it unseen.

use std::time::Duration;

use talkpath_quic::{Protection, configs};

use crate::lab::{CLIENT, Carry, Lab};

fn run(carry: Carry) -> Lab {
    let mut lab = Lab::new(configs(1, Protection::SizesOnly).expect("configurations"), 0.0, 1);
    lab.run(carry, Duration::from_secs(60));
    assert_eq!(lab.messages, carry.messages());
    lab
}

#[test]
fn a_call_leaves_the_window_at_its_initial_12000_octets() {
    // RFC 9002 §7.2 and §7.8: ten packets of 1200 B, and no growth while the application is the limit.
    assert_eq!(run(Carry::Datagrams(500)).window, 12_000);
    assert_eq!(run(Carry::StreamPerMessage(500)).window, 12_000);
    assert!(run(Carry::Stream(500_000)).window > 100_000);
}

#[test]
fn every_packet_is_ect_0_and_the_mtu_that_is_found_is_1452() {
    let lab = run(Carry::Stream(500_000));
    // RFC 3168 §5: 10 is ECT(0).
    assert!(lab.packets.iter().all(|packet| packet.ecn == Some(0b10)));
    assert_eq!(lab.packets.iter().map(|packet| packet.bytes.len()).max(), Some(1_452));
}

#[test]
fn every_second_packet_is_acknowledged() {
    let lab = run(Carry::Stream(1_000_000));
    let sent = lab.packets.iter().filter(|packet| packet.side == CLIENT).count();
    let acknowledgements = lab.packets.len() - sent;
    // RFC 9000 §13.2.2.
    assert!((sent / 2..sent / 2 + 20).contains(&acknowledgements), "{acknowledgements} to {sent}");

    // A datagram each 20 ms: the second of two is acknowledged as it comes.
    let lab = run(Carry::Datagrams(500));
    let sent = lab.packets.iter().filter(|packet| packet.side == CLIENT).count();
    let acknowledgements = lab.packets.len() - sent;
    assert!((sent / 2 - 5..sent / 2 + 20).contains(&acknowledgements), "{acknowledgements} to {sent}");
}
