//! Without encryption every packet has the same size at the same time.

use std::time::Duration;

use talkpath_quic::{Protection, configs};

use crate::lab::{Carry, Lab};

/// Which end sent how many octets when, with which ECN codepoint.
type Sent = (Duration, usize, usize, Option<u8>);

fn run(protection: Protection, seed: u64, carries: &[Carry], loss: f64) -> (Vec<Sent>, Lab) {
    let mut lab = Lab::new(configs(seed, protection).expect("configurations"), loss, seed);
    for &carry in carries {
        lab.run(carry, Duration::from_secs(60));
    }
    let sent = lab.packets.iter().map(|packet| (packet.at, packet.side, packet.bytes.len(), packet.ecn));
    (sent.collect(), lab)
}

#[test]
fn sizes_and_times_are_those_of_encrypted_packets() {
    let carries: [&[Carry]; 5] = [
        &[Carry::Datagrams(300)],
        // Packets that are padded until a stateless reset could be one of them (RFC 9000 §10.3).
        &[Carry::EmptyDatagrams(20)],
        // Past 1000 packets the keys have been updated (`key_phase_size`, quinn-proto's `connection/mod.rs`).
        &[Carry::Stream(3_000_000)],
        &[Carry::StreamPerMessage(300)],
        &[Carry::Datagrams(5), Carry::EarlyStream(50_000)],
    ];
    for carry in carries {
        for (seed, loss) in [(1, 0.0), (2, 0.03), (3, 0.1)] {
            let (encrypted, lab) = run(Protection::Encrypted, seed, carry, loss);
            let (plain, other) = run(Protection::SizesOnly, seed, carry, loss);
            assert!(lab.messages > 0, "{carry:?}");
            for (number, pair) in encrypted.iter().zip(&plain).enumerate() {
                assert_eq!(pair.0, pair.1, "{carry:?}, loss {loss}: packet {number}");
            }
            assert_eq!(encrypted.len(), plain.len());
            assert_eq!((lab.received, lab.messages), (other.received, other.messages));
            assert_eq!(lab.early_accepted, other.early_accepted);
        }
    }
}

#[test]
fn without_encryption_the_message_is_readable_on_the_wire_and_with_it_not() {
    let message = [3; 160];
    let readable = |protection| {
        let (_, lab) = run(protection, 1, &[Carry::Datagrams(5)], 0.0);
        lab.packets.iter().any(|packet| packet.bytes.windows(message.len()).any(|part| part == message))
    };
    assert!(readable(Protection::SizesOnly));
    assert!(!readable(Protection::Encrypted));
}

#[test]
fn an_end_that_encrypts_and_one_that_does_not_never_talk() {
    let mut configs_mixed = configs(1, Protection::Encrypted).unwrap();
    configs_mixed.client = configs(1, Protection::SizesOnly).unwrap().client;
    let mut lab = Lab::new(configs_mixed, 0.0, 1);
    lab.run(Carry::Datagrams(1), Duration::from_secs(5));
    assert_eq!(lab.received, 0);
}

#[test]
fn a_retry_has_the_same_sizes() {
    let run = |protection| {
        let mut lab = Lab::new(configs(4, protection).unwrap(), 0.0, 1);
        lab.retry = true;
        lab.run(Carry::Datagrams(5), Duration::from_secs(30));
        assert_eq!(lab.messages, 5);
        lab.packets.iter().map(|packet| (packet.at, packet.side, packet.bytes.len())).collect::<Vec<_>>()
    };
    assert_eq!(run(Protection::Encrypted), run(Protection::SizesOnly));
}
