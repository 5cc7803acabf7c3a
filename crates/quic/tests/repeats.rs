//! A seed gives the same bytes each time.

use std::time::Duration;

use talkpath_quic::{Protection, configs};
use talkpath_units::fnv1a;

use crate::lab::{Carry, Lab, Packet};

fn run(seed: u64, carries: &[Carry], loss: f64) -> Lab {
    let mut lab = Lab::new(configs(seed, Protection::Encrypted).expect("configurations"), loss, 1);
    for &carry in carries {
        lab.run(carry, Duration::from_secs(30));
    }
    lab
}

#[test]
fn a_handshake_completes_and_a_stream_arrives_whole() {
    let lab = run(1, &[Carry::Stream(100_000)], 0.0);
    assert_eq!((lab.received, lab.messages), (100_000, 1));
}

#[test]
fn two_runs_over_loss_give_identical_packets() {
    for carry in [Carry::Datagrams(200), Carry::Stream(300_000), Carry::StreamPerMessage(200)] {
        let (first, second) = (run(1, &[carry], 0.05), run(1, &[carry], 0.05));
        assert!(first.packets.len() > 100, "{carry:?}: {} packets", first.packets.len());
        assert_same(&first.packets, &second.packets);
    }
}

#[test]
fn another_seed_gives_other_packets() {
    let carry = [Carry::Datagrams(10)];
    assert_ne!(run(1, &carry, 0.0).packets, run(2, &carry, 0.0).packets);
}

#[test]
fn a_second_connection_sends_0_rtt_data_and_repeats_too() {
    let carries = [Carry::Datagrams(5), Carry::EarlyStream(20_000)];
    let (first, second) = (run(3, &carries, 0.0), run(3, &carries, 0.0));
    assert!(first.early_accepted);
    assert_eq!(first.received, 5 * 160 + 20_000);
    assert_same(&first.packets, &second.packets);
}

#[test]
fn a_retry_and_its_token_repeat() {
    let run = || {
        let mut lab = Lab::new(configs(4, Protection::Encrypted).unwrap(), 0.0, 1);
        lab.retry = true;
        lab.run(Carry::Datagrams(5), Duration::from_secs(30));
        lab
    };
    let (first, second) = (run(), run());
    assert_eq!(first.messages, 5);
    // RFC 9000 §17.2.5: a Retry packet is a long header of type 3; the fixed bit may be greased.
    assert!(first.packets.iter().any(|packet| packet.bytes[0] & 0xb0 == 0xb0));
    assert_same(&first.packets, &second.packets);
}

#[test]
fn the_clock_at_which_virtual_time_begins_does_not_show() {
    let run = |shift| {
        let mut lab = Lab::at(shift, configs(5, Protection::Encrypted).unwrap(), 0.03, 1);
        lab.run(Carry::Datagrams(50), Duration::from_secs(30));
        lab.run(Carry::EarlyStream(50_000), Duration::from_secs(30));
        lab.packets
    };
    let decade = Duration::from_secs(10 * 365 * 86_400) + Duration::from_nanos(987_654_321);
    assert_same(&run(Duration::ZERO), &run(decade));
}

#[test]
fn a_source_that_is_used_again_gives_what_a_new_one_gives() {
    let carry = [Carry::Datagrams(10)];
    let first = run(6, &carry, 0.0);
    // Other runs take and return sources in between.
    drop(run(7, &carry, 0.0));
    drop(run(8, &carry, 0.0));
    assert_same(&first.packets, &run(6, &carry, 0.0).packets);
}

#[test]
fn the_bytes_never_change_under_recorded_runs() {
    // A change here comes from another version of quinn-proto, rustls or ring, or from our seeds. It changes
    // recorded runs: it needs a word in the changelog.
    let lab = run(1, &[Carry::Datagrams(50), Carry::EarlyStream(20_000)], 0.02);
    let packets = lab.packets.iter();
    let octets = packets.flat_map(|packet| {
        let at = u64::try_from(packet.at.as_nanos()).unwrap().to_le_bytes();
        at.into_iter().chain([packet.side as u8]).chain(packet.bytes.iter().copied())
    });
    assert_eq!((lab.packets.len(), fnv1a(octets)), PINNED);
}

const PINNED: (usize, u64) = (153, 607_794_853_123_337_667);

#[test]
fn a_server_with_another_certificate_is_refused() {
    let mut mixed = configs(1, Protection::Encrypted).unwrap();
    mixed.server = configs(2, Protection::Encrypted).unwrap().server;
    let mut lab = Lab::new(mixed, 0.0, 1);
    lab.run(Carry::Datagrams(1), Duration::from_secs(5));
    assert_eq!(lab.received, 0);
    let lost = format!("{:?}", lab.lost);
    // RFC 9001 §4.8: a TLS alert is error 0x100 and its number; bad_certificate and decrypt_error are such.
    assert!(lost.contains("certificate"), "{lost}");
}

fn assert_same(first: &[Packet], second: &[Packet]) {
    for (number, (a, b)) in first.iter().zip(second).enumerate() {
        assert_eq!(a, b, "packet {number}");
    }
    assert_eq!(first.len(), second.len());
}
