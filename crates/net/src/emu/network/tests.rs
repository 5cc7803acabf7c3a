use talkpath_path::{DelayVariation, Framing, LinkConfig, LossModel, QueueKind, QueueLimit, RateModel};
use talkpath_scenario::{
    Codec, Direction as Way, Flow, LinkIndex, NamedLink as ScenarioLink, Receiver, WorkloadConfig,
};
use talkpath_transport::TransportConfig;
use talkpath_units::{Duration, Packets, Rate};

use super::*;

fn link(name: &str, mtu: u64, loss: f64) -> ScenarioLink {
    let config = LinkConfig {
        rate: RateModel::Fixed(Rate::from_bps(10_000_000)),
        delay: Duration::from_millis(5),
        mtu: Bytes::new(mtu),
        framing: Framing::None,
        queue: QueueKind::DropTail {
            limit: QueueLimit::Packets(Packets::new(4)),
            in_service: false,
            mark_at: None,
        },
        loss: LossModel::Bernoulli { rate: loss },
        jitter: DelayVariation::Normal { sd: Duration::from_millis(1), reorder: false },
    };
    ScenarioLink { name: name.to_owned(), config }
}

/// One flow over two links in a row, and back over a third; its host waits up to 2 ms.
fn scenario() -> Scenario {
    let flow = Flow {
        name: "call".to_owned(),
        group: "call".to_owned(),
        transport: TransportConfig::udp_default(),
        transport_name: "udp".to_owned(),
        asked_for: Vec::new(),
        workload: WorkloadConfig::Voice {
            codec: Codec::G711,
            ptime: Duration::from_millis(20),
            size: Bytes::new(160),
        },
        echo: None,
        direction: Way::Up,
        start: (Duration::ZERO, Duration::ZERO),
        route: vec![LinkIndex(0), LinkIndex(1)],
        return_route: vec![LinkIndex(2)],
        send_jitter: Duration::from_millis(2),
        wake_up: Duration::ZERO,
        clock_jitter: Duration::ZERO,
        receiver: Receiver::default(),
    };
    Scenario {
        name: "test".to_owned(),
        duration: Duration::from_secs(60),
        drain: Duration::from_secs(5),
        warm_up: Duration::ZERO,
        seed: Seed::new(1),
        repeat: 1,
        far_clock: None,
        links: vec![link("access", 1500, 0.05), link("wan", 576, 0.0), link("home", 1500, 0.1)],
        flows: vec![flow],
    }
}

/// Packets of many sizes, both ways, in bursts of five; after each the path is asked at `moments` later.
fn decide(moments: &[u64]) -> (Vec<Decision>, Vec<LinkRecord>) {
    let mut network = Network::new(&scenario(), Seed::new(7), false);
    let mut decisions = Vec::new();
    for number in 0..2000_u32 {
        let now = Instant::from_millis(u64::from(number / 5) * 7);
        let direction = if number % 3 == 0 { Direction::Back } else { Direction::Out };
        let part = FragmentRange::whole(Bytes::new(40 + u64::from(number * 97 % 1461)));
        let arrival = Arrival { flow: 0, direction, part };
        assert_eq!(network.handle_arrival(arrival, number, now, &mut decisions), u64::from(number));
        if number % 5 == 4 {
            moments.iter().for_each(|&us| network.advance(now + Duration::from_micros(us), &mut decisions));
        }
    }
    let end = Instant::from_secs(60);
    network.advance(end, &mut decisions);
    assert!(decisions.is_sorted_by_key(|decision| decision.at));
    (decisions, network.finish(end).0)
}

#[test]
fn decisions_do_not_depend_on_when_they_are_asked_for() {
    let (often, links) = decide(&[1, 500, 1234, 3000, 5001, 6999]);
    let (late, links_late) = decide(&[]);
    assert_eq!(often, late);
    assert_eq!(links, links_late);
}

#[test]
fn every_byte_of_every_packet_is_decided_about_once() {
    let (decisions, links) = decide(&[]);
    let mut left: Vec<i64> = (0..2000_i64).map(|number| 20 + number * 97 % 1461).collect();
    let (mut departed, mut dropped, mut lost) = (0, 0, 0);
    for decision in &decisions {
        assert_eq!(u64::from(decision.tag), decision.number);
        left[decision.tag as usize] -= i64::from(decision.part.length);
        match decision.outcome {
            Outcome::Departs => departed += 1,
            Outcome::Dropped { .. } => dropped += 1,
            Outcome::Lost { .. } => lost += 1,
        }
    }
    assert!(left.iter().all(|&left| left == 0), "some of a packet is left, or came twice");
    assert_eq!(links.iter().map(|link| link.dropped).sum::<u64>(), dropped);
    assert_eq!(links.iter().map(|link| link.lost).sum::<u64>(), lost);
    assert_eq!(links[1].forwarded + links[2].forwarded, departed);
    assert!(
        departed > 1000 && dropped > 10 && lost > 50,
        "{departed} departed, {dropped} dropped, {lost} lost"
    );
    assert!(decisions.iter().any(|decision| !decision.part.is_whole()), "the second link cuts");
}
