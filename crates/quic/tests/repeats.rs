//! A seed gives the same bytes each time.

use std::time::Duration;

use talkpath_quic::{Protection, configs};

use crate::lab::{Carry, Lab, Packet};

fn run(seed: u64, carries: &[Carry], loss: f64) -> Lab {
    let mut lab = Lab::new(configs(seed, Protection::Encrypted).unwrap(), loss, 1);
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

fn assert_same(first: &[Packet], second: &[Packet]) {
    for (number, (a, b)) in first.iter().zip(second).enumerate() {
        assert_eq!(a, b, "packet {number}");
    }
    assert_eq!(first.len(), second.len());
}
