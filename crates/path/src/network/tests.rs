use proptest::prelude::*;
use talkpath_units::{Bytes, Duration, Ecn, Packets, Rate, Seed};

use super::*;
use crate::change::{Change, ChangeTimes, LinkState, LinkValues, Outage, Ramp};
use crate::config::{DelayVariation, LinkConfig, LossModel, RateModel};
use crate::fragment::FragmentRange;
use crate::queue::Queue;
use crate::queue::test_disciplines::{DropAtService, RoundRobin};
use crate::queue::{DropTail, QueueKind, QueueLimit};

/// A packet: microseconds after the one before, its flow, whether it goes back, and its payload.
type AnyPacket = (u64, u32, bool, u32);
/// A link: kb/s (0 is no limit), delay in ms, packets that may wait, MTU, what the wire does, and its
/// discipline.
type AnyLink = (u64, u64, u64, u64, usize, usize);

const FLOWS: u32 = 3;
/// So long that everything is out.
const END: Instant = Instant::from_nanos(u64::MAX - 1);

fn config(&(kbps, ms, limit, mtu, wire, _): &AnyLink) -> LinkConfig {
    let sd = Duration::from_millis(3);
    let losses = LossModel::Periodic { period: 7 };
    let (loss, jitter) = match wire {
        0 => (LossModel::None, DelayVariation::None),
        1 => (losses, DelayVariation::None),
        2 => (LossModel::None, DelayVariation::Normal { sd, memory: 0.0, reorder: false }),
        3 => (losses, DelayVariation::Normal { sd, memory: 0.0, reorder: true }),
        _ => (losses, DelayVariation::None),
    };
    let rate = if kbps == 0 { RateModel::Unlimited } else { RateModel::Fixed(Rate::from_bps(1000 * kbps)) };
    LinkConfig {
        delay: Duration::from_millis(ms),
        mtu: Bytes::new(mtu),
        queue: QueueKind::DropTail(DropTail::of_packets(Packets::new(limit))),
        loss,
        jitter,
        duplicate: if wire == 4 { 0.3 } else { 0.0 },
        ..LinkConfig::bare(rate)
    }
}

/// Three flows over all links, out and back in the opposite order; the second one's host holds its packets.
fn network(links: &[AnyLink]) -> Network<usize> {
    changing_network(links, Vec::new())
}

/// The same with `changes`.
fn changing_network(links: &[AnyLink], changes: Vec<Change>) -> Network<usize> {
    let configs: Vec<LinkConfig> = links.iter().map(config).collect();
    let names: Vec<String> = (0..links.len()).map(|index| format!("link{index}")).collect();
    let flow = |index: u32| FlowRoutes {
        name: ["a", "b", "c"][index as usize],
        out: (0..links.len() as u32).collect(),
        back: (0..links.len() as u32).rev().collect(),
        send_jitter: Duration::from_millis(u64::from(2 * (index % 2))),
    };
    let mut network = Network::new(&NetworkConfig {
        links: names.iter().map(String::as_str).zip(&configs).collect(),
        changes,
        flows: (0..FLOWS).map(flow).collect(),
        seed: Seed::new(7),
        window: (Instant::ZERO, Instant::MAX),
        timers: 2,
        observes_queues: false,
    });
    for (index, &(.., discipline)) in links.iter().enumerate() {
        match discipline {
            0 | 1 => {}
            2 => network.set_queue(index, Queue::other(RoundRobin::new())),
            _ => {
                let discipline = DropAtService::new(Duration::from_millis(4));
                network.set_queue(index, Queue::other(discipline));
            }
        }
    }
    network
}

fn any_link() -> impl Strategy<Value = AnyLink> {
    let kbps = prop_oneof![1 => Just(0_u64), 6 => 500_u64..20_000];
    let mtu = prop_oneof![2 => Just(1500_u64), 1 => Just(9000_u64), 1 => Just(576_u64)];
    (kbps, 0_u64..30, 0_u64..20, mtu, 0_usize..5, 0_usize..4)
}

fn any_packet() -> impl Strategy<Value = AnyPacket> {
    let gap = prop_oneof![2 => Just(0_u64), 3 => 0_u64..5_000, 1 => 0_u64..50_000];
    (gap, 0..FLOWS, any::<bool>(), 0_u32..4_000)
}

fn packet(number: usize, &(_, flow, back, payload): &AnyPacket) -> PathPacket<usize> {
    let direction = if back { Direction::Back } else { Direction::Out };
    let part = FragmentRange { offset: 0, length: payload, more: false };
    PathPacket::new(flow, direction, part, Ecn::NotEct, number)
}

/// What came out of the network, and what each packet's arrival was. It is polled at each of its deadlines if
/// `in_time`, as the simulator does it, and only when a packet comes if not.
fn carry(
    network: &mut Network<usize>,
    packets: &[AnyPacket],
    in_time: bool,
) -> (Vec<NetworkOutput<usize>>, Vec<Instant>) {
    let (mut out, mut came, mut now) = (Vec::new(), Vec::new(), Instant::ZERO);
    let poll = |network: &mut Network<usize>, until: Instant, out: &mut Vec<_>| {
        while let Some(at) = network.poll_timeout().filter(|at| in_time && *at <= until) {
            out.extend(poll_one(network, at));
        }
        out.extend(core::iter::from_fn(|| poll_one(network, until)));
    };
    for (number, any) in packets.iter().enumerate() {
        now += Duration::from_micros(any.0);
        poll(network, now, &mut out);
        network.handle_packet(packet(number, any), now);
        came.push(now);
    }
    poll(network, END, &mut out);
    (out, came)
}

/// The next output. A copy goes on with the tag of its packet.
fn poll_one(network: &mut Network<usize>, until: Instant) -> Option<NetworkOutput<usize>> {
    let output = network.poll_output(until)?;
    if let NetworkEvent::Repeated { packet, .. } = output.event {
        network.handle_copy(packet);
    }
    Some(output)
}

fn packet_of(output: &NetworkOutput<usize>) -> PathPacket<usize> {
    match output.event {
        NetworkEvent::Arrived(packet)
        | NetworkEvent::Repeated { packet, .. }
        | NetworkEvent::Dropped { packet, .. }
        | NetworkEvent::Lost { packet, .. } => packet,
        NetworkEvent::Entered { .. } | NetworkEvent::Timer(_) => panic!("{output:?}"),
    }
}

/// A change: link, ms of its first time, ms of its period (0 is once), what it sets, and a value for that.
type AnyChange = (usize, u64, u64, usize, u64);

/// Changes of these links. They end, so that a test can wait until all is out.
fn changes(any: &[AnyChange], links: usize) -> Vec<Change> {
    let change = |&(link, first, period, what, value): &AnyChange| {
        let ms = Duration::from_millis;
        let limit = QueueLimit::Packets(Packets::new(value % 20));
        let rate = RateModel::Fixed(Rate::from_bps(200_000 + 50_000 * value));
        let none = LinkValues::default();
        let (to, outage) = match what {
            0 => (LinkValues { rate: Some(rate), ..none }, None),
            1 => (LinkValues { delay: Some(ms(value % 40)), ..none }, None),
            2 => (LinkValues { limit: Some(limit), ..none }, None),
            3 => (LinkValues { loss: Some(LossModel::Periodic { period: 1 + value % 9 }), ..none }, None),
            4 => (none, Some(Outage { length: ms(1 + value), drops: value.is_multiple_of(2) })),
            _ => {
                let state = if value.is_multiple_of(2) {
                    LinkState::Up
                } else {
                    LinkState::Down { drops: value % 3 == 1 }
                };
                (LinkValues { state: Some(state), ..none }, None)
            }
        };
        Change {
            link: (link % links) as u32,
            when: ChangeTimes { first: ms(first), every: None, random_phase: false },
            to,
            ramp: (what < 3 && period % 2 == 1)
                .then(|| Ramp { over: ms(period), steps: 1 + (value % 5) as u32 }),
            outage,
            overtake: what == 1 && value.is_multiple_of(2),
        }
    };
    let mut changes: Vec<_> = any.iter().map(change).collect();
    // All links are up in the end.
    changes.extend((0..links as u32).map(|link| Change {
        link,
        when: ChangeTimes { first: Duration::from_secs(100), every: None, random_phase: false },
        to: LinkValues {
            state: Some(LinkState::Up),
            rate: Some(RateModel::Fixed(Rate::from_bps(10_000_000))),
            ..LinkValues::default()
        },
        ramp: None,
        outage: None,
        overtake: false,
    }));
    changes
}

fn any_changes() -> impl Strategy<Value = Vec<AnyChange>> {
    proptest::collection::vec((0_usize..4, 0_u64..400, 0_u64..100, 0_usize..6, 0_u64..100), 0..12)
}

proptest! {
    #![proptest_config(talkpath_testing::properties(200))]

    #[test]
    fn every_byte_of_every_packet_and_of_its_copies_arrives_or_is_dropped_or_lost_once(
        links in proptest::collection::vec(any_link(), 1..5),
        packets in proptest::collection::vec(any_packet(), 1..150),
        any in any_changes(),
    ) {
        let mut network = changing_network(&links, changes(&any, links.len()));
        let (out, came) = carry(&mut network, &packets, false);
        let mut left: Vec<_> = packets.iter().map(|packet| i64::from(packet.3)).collect();
        let (mut dropped, mut lost) = (vec![0; links.len()], vec![0; links.len()]);
        let mut repeated = vec![0; links.len()];
        for output in &out {
            let packet = packet_of(output);
            let length = i64::from(packet.part().length);
            let is_repeated = matches!(output.event, NetworkEvent::Repeated { .. });
            left[packet.tag] += if is_repeated { length } else { -length };
            prop_assert!(output.at >= came[packet.tag]);
            match output.event {
                NetworkEvent::Repeated { link, .. } => repeated[link as usize] += 1,
                NetworkEvent::Dropped { link, .. } => dropped[link as usize] += 1,
                NetworkEvent::Lost { link, .. } => lost[link as usize] += 1,
                _ => {}
            }
        }
        prop_assert!(left.iter().all(|left| *left == 0), "bytes are left over, or came twice: {left:?}");
        prop_assert_eq!(network.held().sum::<usize>(), 0);
        let reports = network.reports(END);
        prop_assert_eq!(reports.iter().map(|report| report.dropped).collect::<Vec<_>>(), dropped);
        prop_assert_eq!(reports.iter().map(|report| report.lost).collect::<Vec<_>>(), lost);
        prop_assert_eq!(reports.iter().map(|report| report.repeated).collect::<Vec<_>>(), repeated);
    }

    #[test]
    fn what_went_in_is_out_or_held_at_any_time(
        links in proptest::collection::vec(any_link(), 1..5),
        packets in proptest::collection::vec(any_packet(), 1..100),
        any in any_changes(),
    ) {
        // None is cut.
        let links: Vec<_> = links.into_iter().map(|(a, b, c, _, d, e)| (a, b, c, 9000, d, e)).collect();
        let mut network = changing_network(&links, changes(&any, links.len()));
        let (mut now, mut out) = (Instant::ZERO, Vec::new());
        for (number, any) in packets.iter().enumerate() {
            now += Duration::from_micros(any.0);
            out.extend(core::iter::from_fn(|| poll_one(&mut network, now)));
            network.handle_packet(packet(number, any), now);
            out.extend(core::iter::from_fn(|| poll_one(&mut network, now)));
            let repeated = out.iter().filter(|it| matches!(it.event, NetworkEvent::Repeated { .. })).count();
            prop_assert_eq!(number + 1 + repeated, out.len() - repeated + network.held().sum::<usize>());
        }
    }

    #[test]
    fn outputs_come_in_the_order_of_time_and_do_not_depend_on_when_they_are_polled(
        links in proptest::collection::vec(any_link(), 1..5),
        packets in proptest::collection::vec(any_packet(), 1..150),
        any in any_changes(),
    ) {
        let network = || changing_network(&links, changes(&any, links.len()));
        let (late, _) = carry(&mut network(), &packets, false);
        prop_assert!(late.is_sorted_by_key(|output| output.at));
        let (in_time, _) = carry(&mut network(), &packets, true);
        prop_assert_eq!(late, in_time);
    }

    #[test]
    fn packets_of_a_flow_arrive_in_their_order_over_links_that_keep_it(
        links in proptest::collection::vec(any_link(), 1..5),
        packets in proptest::collection::vec(any_packet(), 1..150),
        any in any_changes(),
    ) {
        let links: Vec<_> = links.into_iter().map(|(a, b, c, d, wire, _)| (a, b, c, d, wire % 3, 0)).collect();
        let mut changes = changes(&any, links.len());
        changes.iter_mut().for_each(|change| change.overtake = false);
        let (out, _) = carry(&mut changing_network(&links, changes), &packets, false);
        for flow in 0..FLOWS {
            for direction in [Direction::Out, Direction::Back] {
                let arrived = out.iter().filter(|output| matches!(output.event, NetworkEvent::Arrived(_)));
                let places = arrived.map(packet_of).filter(|it| (it.flow(), it.direction()) == (flow, direction));
                prop_assert!(places.map(|packet| (packet.tag, packet.part().offset)).is_sorted());
            }
        }
    }
}

/// A link that takes no time.
const INSTANT: AnyLink = (0, 0, 0, 1500, 0, 0);

#[test]
fn ties_are_broken_by_the_order_of_insertion() {
    let mut network = network(&[(8_000, 1, 9, 1500, 0, 0)]);
    let at = Instant::from_millis(2);
    network.arm_timer(1, at);
    // 1000 bytes: out after 1 ms, at the far end after 2 ms.
    network.handle_packet(packet(0, &(0, 0, false, 980)), Instant::ZERO);
    network.arm_timer(0, at);
    let events: Vec<_> =
        core::iter::from_fn(|| network.poll_output(END)).map(|it| (it.at, it.event)).collect();
    let is_arrival = matches!(events[1].1, NetworkEvent::Arrived(PathPacket { tag: 0, .. }));
    assert!(is_arrival && events.iter().all(|event| event.0 == at), "{events:?}");
    assert_eq!((events[0].1, events[2].1), (NetworkEvent::Timer(1), NetworkEvent::Timer(0)));
}

#[test]
fn what_an_output_brings_about_comes_before_the_links_next_output() {
    let mut network = network(&[(8_000, 0, 9, 1500, 0, 0)]);
    for number in 0..2 {
        network.handle_packet(packet(number, &(0, 0, false, 980)), Instant::ZERO);
    }
    let first = network.poll_output(END).unwrap();
    assert_eq!(first.at, Instant::from_millis(1));
    // The second packet arrives at this very moment too.
    network.arm_timer(0, Instant::from_millis(2));
    assert_eq!(network.poll_output(END).unwrap().event, NetworkEvent::Timer(0));
    assert_eq!(packet_of(&network.poll_output(END).unwrap()).tag, 1);
}

#[test]
fn a_timer_that_is_armed_for_an_earlier_time_stays_so_and_is_off_once_it_went_off() {
    let mut network = network(&[INSTANT]);
    let (early, late) = (Instant::from_millis(3), Instant::from_millis(5));
    network.arm_timer(1, early);
    network.arm_timer(1, late);
    assert_eq!(network.poll_timeout(), Some(early));
    let timer = NetworkOutput { at: early, event: NetworkEvent::Timer(1) };
    assert_eq!((network.poll_output(END), network.poll_output(END)), (Some(timer), None));
    network.arm_timer(1, late);
    assert_eq!(network.poll_output(END).map(|output| output.at), Some(late));
}

#[test]
fn a_host_that_holds_packets_is_a_link_before_the_first_one() {
    let mut network = network(&[INSTANT]);
    assert_eq!(network.held().count(), 2);
    // The second flow's host holds its packets, up to 2 ms.
    network.handle_packet(packet(0, &(0, 1, false, 100)), Instant::ZERO);
    network.handle_packet(packet(1, &(0, 0, false, 100)), Instant::ZERO);
    let tags: Vec<_> =
        core::iter::from_fn(|| network.poll_output(END)).map(|it| packet_of(&it).tag).collect();
    assert_eq!((tags, network.reports(END).len()), (vec![1, 0], 1));
}

#[test]
fn each_change_of_a_queues_length_and_delay_is_kept_until_it_is_taken() {
    let mut network = network(&[(8_000, 0, 9, 1500, 0, 0)]);
    assert!(network.queue_changes(0).is_none(), "nobody observes it");
    network.links[0].observe_queue();
    for number in 0..3 {
        network.handle_packet(packet(number, &(0, 0, false, 980)), Instant::ZERO);
    }
    let ms = Instant::from_millis;
    let changes = network.queue_changes(0).unwrap();
    let lengths: Vec<_> = changes.lengths.drain(..).collect();
    assert_eq!(lengths, [(ms(0), 0), (ms(0), 1), (ms(0), 2)]);
    // Services begin late, and are kept with the instant at which they were due.
    while network.poll_output(END).is_some() {}
    network.reports(END);
    let changes = network.queue_changes(0).unwrap();
    assert_eq!(changes.lengths, [(ms(1), 1), (ms(2), 0)]);
    let delay = |ms: u64| (Instant::from_millis(ms), Duration::from_millis(ms));
    assert_eq!(changes.delays, [delay(0), delay(1), delay(2)]);
}
