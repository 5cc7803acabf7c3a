//! Changes at stated times: each rule of `link/changing.rs` by a case that can be checked by hand.

use talkpath_units::{Duration, Ecn, Packets, Rate, Seed};

use super::*;
use crate::change::{Change, ChangeTimes, LinkState, LinkValues, Outage, Ramp};
use crate::config::{LinkConfig, LossModel, RateModel};
use crate::fragment::FragmentRange;
use crate::queue::{DropTail, QueueKind, QueueLimit};

const END: Instant = Instant::from_nanos(u64::MAX - 1);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A link of 1 Mb/s with a delay of 10 ms, on which a packet of 1000 B takes 8 ms.
fn link() -> LinkConfig {
    LinkConfig {
        delay: ms(10),
        queue: QueueKind::DropTail(DropTail::of_packets(Packets::new(100))),
        ..LinkConfig::bare(RateModel::Fixed(Rate::from_bps(1_000_000)))
    }
}

fn network(changes: Vec<Change>) -> Network<usize> {
    Network::new(&NetworkConfig {
        links: vec![("up", &link())],
        changes,
        flows: vec![FlowRoutes { name: "a", out: vec![0], back: vec![], send_jitter: Duration::ZERO }],
        seed: Seed::new(1),
        window: (Instant::ZERO, Instant::from_secs(1)),
        timers: 0,
        observes_queues: false,
    })
}

fn change(at_ms: u64, to: LinkValues) -> Change {
    let when = ChangeTimes { first: ms(at_ms), every: None, random_phase: false };
    Change { link: 0, when, to, ramp: None, outage: None, overtake: false }
}

fn rate(bps: u64) -> LinkValues {
    LinkValues { rate: Some(RateModel::Fixed(Rate::from_bps(bps))), ..LinkValues::default() }
}

fn delay(of: Duration) -> LinkValues {
    LinkValues { delay: Some(of), ..LinkValues::default() }
}

fn outage(at_ms: u64, length: u64, drops: bool) -> Change {
    let outage = Some(Outage { length: ms(length), drops });
    Change { outage, ..change(at_ms, LinkValues::default()) }
}

/// Packets of 1000 B that come at these times; what became of each, in order: its number, a letter, and when
/// in us.
fn carry(network: &mut Network<usize>, came_ms: &[u64]) -> Vec<(usize, char, u64)> {
    let mut out = Vec::new();
    for (number, at) in came_ms.iter().enumerate() {
        let at = Instant::from_millis(*at);
        out.extend(core::iter::from_fn(|| network.poll_output(at)));
        let part = FragmentRange { offset: 0, length: 980, more: false };
        network.handle_packet(PathPacket::new(0, Direction::Out, part, Ecn::NotEct, number), at);
    }
    out.extend(core::iter::from_fn(|| network.poll_output(END)));
    let told = |output: NetworkOutput<usize>| {
        let (packet, letter) = match output.event {
            NetworkEvent::Arrived(packet) => (packet, 'a'),
            NetworkEvent::Dropped { packet, .. } => (packet, 'd'),
            NetworkEvent::Lost { packet, .. } => (packet, 'l'),
            other => panic!("{other:?}"),
        };
        (packet.tag, letter, output.at.as_nanos() / 1000)
    };
    out.into_iter().map(told).collect()
}

#[test]
fn the_packet_in_service_ends_at_the_old_rate_and_the_next_one_has_the_new() {
    // The second packet begins at 8 ms, and the rate is four times as high from 12 ms on.
    let out = carry(&mut network(vec![change(12, rate(4_000_000))]), &[0, 0, 0, 0]);
    let expected = [(0, 'a', 18_000), (1, 'a', 26_000), (2, 'a', 28_000), (3, 'a', 30_000)];
    assert_eq!(out, expected);
}

#[test]
fn a_service_that_begins_at_the_instant_of_a_change_has_the_new_rate() {
    let out = carry(&mut network(vec![change(8, rate(4_000_000))]), &[0, 0]);
    assert_eq!(out, [(0, 'a', 18_000), (1, 'a', 20_000)]);
}

#[test]
fn a_shorter_delay_keeps_the_order_unless_the_change_lets_packets_overtake() {
    let shorter = change(20, delay(ms(1)));
    // The first packet arrives at 58 ms; the second, with the new delay, could do so at 29 ms.
    let first = change(0, delay(ms(50)));
    let out = carry(&mut network(vec![first.clone(), shorter.clone()]), &[0, 20, 30]);
    assert_eq!(out, [(0, 'a', 58_000), (1, 'a', 58_000), (2, 'a', 58_000)]);
    let overtaking = Change { overtake: true, ..shorter };
    let out = carry(&mut network(vec![first, overtaking]), &[0, 20, 30]);
    assert_eq!(out, [(1, 'a', 29_000), (2, 'a', 39_000), (0, 'a', 58_000)]);
}

#[test]
fn a_smaller_limit_drops_the_packets_that_came_last() {
    let limit = LinkValues { limit: Some(QueueLimit::Packets(Packets::new(2))), ..LinkValues::default() };
    let out = carry(&mut network(vec![change(1, limit)]), &[0, 0, 0, 0, 0]);
    let expected = [(4, 'd', 1_000), (3, 'd', 1_000), (0, 'a', 18_000), (1, 'a', 26_000), (2, 'a', 34_000)];
    assert_eq!(out, expected);
}

#[test]
fn what_waits_in_an_outage_goes_on_at_its_end_and_the_packet_in_service_is_not_stopped() {
    let mut network = network(vec![outage(4, 100, false)]);
    let out = carry(&mut network, &[0, 0, 50]);
    // The first service ends at 8 ms. The others follow from 104 ms on.
    assert_eq!(out, [(0, 'a', 18_000), (1, 'a', 122_000), (2, 'a', 130_000)]);
    // The serialiser was busy for 8 ms and for 16 ms of the second that is measured.
    let report = &network.reports(Instant::from_secs(1))[0];
    assert!((report.utilisation - 0.024).abs() < 1e-9, "{}", report.utilisation);
}

#[test]
fn an_outage_that_drops_empties_the_queue_and_takes_no_packet_until_its_end() {
    let out = carry(&mut network(vec![outage(4, 100, true)]), &[0, 0, 50, 104]);
    let expected = [(1, 'd', 4_000), (2, 'd', 50_000), (0, 'a', 18_000), (3, 'a', 122_000)];
    let mut sorted = expected;
    sorted.sort_by_key(|(_, _, at)| *at);
    assert_eq!(out, sorted);
}

#[test]
fn a_link_that_goes_down_holds_its_packets_until_it_is_up_and_so_does_a_rate_of_zero() {
    let state = |state| LinkValues { state: Some(state), ..LinkValues::default() };
    let down = [change(4, state(LinkState::Down { drops: false })), change(104, state(LinkState::Up))];
    let expected = [(0, 'a', 18_000), (1, 'a', 122_000)];
    assert_eq!(carry(&mut network(down.to_vec()), &[0, 0]), expected);
    assert_eq!(
        carry(&mut network(vec![change(4, rate(0)), change(104, rate(1_000_000))]), &[0, 0]),
        expected
    );
}

#[test]
fn outages_that_overlap_end_with_the_last_one() {
    let out = carry(&mut network(vec![outage(10, 100, false), outage(20, 30, false)]), &[15]);
    assert_eq!(out, [(0, 'a', 128_000)]);
}

#[test]
fn a_loss_holds_for_the_packets_whose_service_begins_in_its_time() {
    let loss = |loss| LinkValues { loss: Some(loss), ..LinkValues::default() };
    let all = change(20, loss(LossModel::Bernoulli { rate: 1.0 }));
    let out = carry(&mut network(vec![all, change(40, loss(LossModel::None))]), &[0, 20, 30, 40]);
    assert_eq!(out, [(0, 'a', 18_000), (1, 'l', 38_000), (2, 'l', 48_000), (3, 'a', 58_000)]);
}

#[test]
fn a_ramp_goes_from_the_present_value_in_equal_steps() {
    let ramp = Some(Ramp { over: ms(40), steps: 4 });
    let out =
        carry(&mut network(vec![Change { ramp, ..change(100, delay(ms(50))) }]), &[100, 115, 125, 135, 145]);
    let expected =
        [(0, 'a', 118_000), (1, 'a', 143_000), (2, 'a', 163_000), (3, 'a', 183_000), (4, 'a', 203_000)];
    assert_eq!(out, expected);
}

/// At a rate that halves each period, n packets that wait take the sum of their services (closed form).
#[test]
fn services_over_many_changes_add_up() {
    let changes = (0..10).map(|n| change(80 * n, rate(1_000_000 >> (n % 3)))).collect();
    let out = carry(&mut network(changes), &[0; 40]);
    // Each service has the rate that holds when it begins.
    let mut free_at = 0;
    for (number, letter, at) in out {
        let period = free_at / 80_000;
        free_at += 8_000 << (period.min(9) % 3);
        assert_eq!((letter, at), ('a', free_at + 10_000), "packet {number}");
    }
}
