//! The medium as a whole: closed forms, order, conservation, and shares.

use talkpath_units::{Bytes, Duration, Ecn, Instant, Packets, Rate, Seed};

use super::air::Air;
use super::*;
use crate::queue::test_disciplines::Frame;
use crate::{
    Direction, DropTail, Dscp, FlowRoutes, FragmentRange, LinkConfig, Network, NetworkConfig, NetworkEvent,
    PathPacket, QueueKind, RateModel,
};

const MCS_7: Rate = Rate::from_bps(65_000_000);

fn saturated(count: u32, rate: Rate) -> OtherStations {
    OtherStations { count, rate, up: Offered::Saturated, down: Offered::Nothing, packet: Bytes::new(1500) }
}

fn wifi(aggregate: Bytes, others: Vec<OtherStations>) -> WifiConfig {
    WifiConfig { aggregate, others, ..WifiConfig::plain() }
}

/// The number of packets that each other station of a Wi-Fi delivers in `seconds`.
fn delivered(config: &WifiConfig, seconds: u64) -> Vec<u64> {
    let mut air = Air::new(config, Seed::new(1), "x");
    let links: &mut [crate::Link<Frame>] = &mut [];
    let end = Instant::ZERO + Duration::from_secs(seconds);
    while air.next() < end {
        let now = air.next();
        air.advance(links, now);
    }
    air.delivered()
}

/// Packets a second of all of `stations` saturated stations without aggregation: G. Bianchi, "Performance
/// analysis of the IEEE 802.11 distributed coordination function", IEEE JSAC 18(3), 2000, eq. 13, with the
/// attempt rate for windows that begin again (A. Kumar and others, "New insights from a fixed point analysis
/// of single cell IEEE 802.11 WLANs", INFOCOM 2005, eq. 1): eight windows, of 16 to 1024 slots.
fn bianchi(stations: u32) -> f64 {
    let (slot, aifs) = (9e-6, 16e-6 + 3.0 * 9e-6);
    let data = 228e-6;
    let (success, collision) = (data + 16e-6 + 28e-6 + aifs, data + aifs);
    // Slots from one attempt to the next: the mean backoff, and the attempt's own.
    let slots = |stage: i32| f64::min(16.0 * 2_f64.powi(stage), 1024.0) / 2.0 + 0.5;
    let others = f64::from(stations - 1);
    let attempts = |collides: f64| {
        let sum =
            |term: &dyn Fn(i32) -> f64| (0..8).map(|stage| collides.powi(stage) * term(stage)).sum::<f64>();
        sum(&|_| 1.0) / sum(&slots)
    };
    // The fixed point, by bisection: the collisions that an attempt rate makes fall short of those that it
    // has.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let made = 1.0 - (1.0 - attempts(middle)).powf(others);
        if made > middle { low = middle } else { high = middle }
    }
    let rate = attempts(low);
    let any = 1.0 - (1.0 - rate).powf(f64::from(stations));
    let one = f64::from(stations) * rate * (1.0 - rate).powf(others);
    one / ((1.0 - any) * slot + one * success + (any - one) * collision)
}

#[test]
fn saturation_throughput_is_bianchis() {
    for stations in [1, 2, 5, 10, 20] {
        let config = wifi(Bytes::ZERO, vec![saturated(stations, MCS_7)]);
        let measured = delivered(&config, 20).iter().sum::<u64>() as f64 / 20.0;
        let expected = bianchi(stations);
        assert!((measured / expected - 1.0).abs() < 0.02, "{stations}: {measured}, expected {expected}");
    }
}

#[test]
fn a_station_alone_sends_full_aggregates() {
    // 28 frames of 1544 B: 16 + 8 * 43232 + 6 = 345,878 bit in 1331 symbols of 260 bit; SIFS, block
    // acknowledgement, AIFS, and 7.5 slots in the mean.
    let cycle = 36.0 + 1331.0 * 4.0 + 16.0 + 32.0 + 43.0 + 7.5 * 9.0;
    let expected = 28.0 / cycle * 1e6 * 20.0;
    let measured = delivered(&wifi(LARGEST_AGGREGATE, vec![saturated(1, MCS_7)]), 20)[0] as f64;
    assert!((measured / expected - 1.0).abs() < 0.005, "{measured}, expected {expected}");
}

/// Links `up1` to `upN` from stations, and `down1` to `downN` from the access point, over one Wi-Fi that
/// `up1` brings.
fn network(config: &WifiConfig, stations: u32, rate: impl Fn(u32) -> Rate) -> Network<u64> {
    let link = |number: u32, sender: WifiSender| {
        let is_first = number == 0 && sender == WifiSender::Station;
        let air = if is_first { WifiAir::Own(config.clone()) } else { WifiAir::Of("up1".to_owned()) };
        let rate = rate(number);
        LinkConfig {
            medium: Medium::Wifi(Box::new(WifiLink { sender, rate, air })),
            queue: QueueKind::DropTail(DropTail::of_packets(Packets::new(500))),
            ..LinkConfig::bare(RateModel::Fixed(rate))
        }
    };
    let numbers = 0..stations;
    let up: Vec<_> = numbers.clone().map(|number| link(number, WifiSender::Station)).collect();
    let down: Vec<_> = numbers.clone().map(|number| link(number, WifiSender::AccessPoint)).collect();
    let names: Vec<_> = ["up", "down"]
        .iter()
        .flat_map(|way| (1..=stations).map(move |number| format!("{way}{number}")))
        .collect();
    let flow = |number: u32| FlowRoutes {
        name: "flow",
        out: vec![number],
        back: vec![stations + number],
        send_jitter: Duration::ZERO,
    };
    Network::new(&NetworkConfig {
        links: names.iter().map(String::as_str).zip(up.iter().chain(&down)).collect(),
        changes: Vec::new(),
        flows: numbers.map(flow).collect(),
        seed: Seed::new(1),
        window: (Instant::ZERO, Instant::MAX),
        timers: 0,
        observes_queues: false,
    })
}

/// A packet that comes to the network.
#[derive(Clone, Copy)]
struct Coming {
    at: Instant,
    flow: u32,
    direction: Direction,
    size: u64,
    dscp: &'static str,
}

/// What came out: the packet's number, when, and whether it arrived.
fn carry(network: &mut Network<u64>, mut packets: Vec<Coming>, end: Instant) -> Vec<(usize, Instant, bool)> {
    packets.sort_by_key(|packet| packet.at);
    let mut out = Vec::new();
    let mut poll = |network: &mut Network<u64>, until: Instant| {
        while let Some(output) = network.poll_output(until) {
            match output.event {
                NetworkEvent::Arrived(packet) => out.push((packet.tag as usize, output.at, true)),
                NetworkEvent::Lost { packet, .. } | NetworkEvent::Dropped { packet, .. } => {
                    out.push((packet.tag as usize, output.at, false));
                }
                _ => {}
            }
        }
    };
    for (number, packet) in (0..).zip(&packets) {
        poll(network, packet.at);
        let part = FragmentRange::whole(Bytes::new(packet.size));
        let dscp = Dscp::named(packet.dscp).unwrap();
        let carried = PathPacket::new(packet.flow, packet.direction, part, Ecn::NotEct, number);
        network.handle_packet(carried.with_dscp(dscp), packet.at);
    }
    poll(network, end);
    out
}

/// Packets at a constant interval in microseconds, for a number of seconds.
fn stream(
    flow: u32,
    direction: Direction,
    size: u64,
    every_us: u64,
    seconds: u64,
    dscp: &'static str,
) -> Vec<Coming> {
    let count = seconds * 1_000_000 / every_us;
    // Each stream begins a little later than the one before.
    let at = |number: u64| Instant::from_micros(number * every_us + 37 * u64::from(flow) + 1);
    (0..count).map(|number| Coming { at: at(number), flow, direction, size, dscp }).collect()
}

#[test]
fn packets_are_conserved_and_keep_their_order_in_each_direction_of_a_flow() {
    let config = WifiConfig { frame_error: 0.3, attempts: 3, ..WifiConfig::plain() };
    let mut network = network(&config, 3, |_| MCS_7);
    let mut packets = Vec::new();
    for flow in 0..3 {
        packets.extend(stream(flow, Direction::Out, 1500, 3000, 4, "CS0"));
        packets.extend(stream(flow, Direction::Back, 300, 3000, 4, "CS0"));
    }
    packets.sort_by_key(|packet| packet.at);
    let out = carry(&mut network, packets.clone(), Instant::from_secs(60));
    assert_eq!(out.len(), packets.len());
    assert_eq!(network.held().sum::<usize>(), 0);
    let mut numbers: Vec<_> = out.iter().map(|it| it.0).collect();
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..packets.len()));
    let given_up = out.iter().filter(|it| !it.2).count() as f64 / out.len() as f64;
    // 0.3^3 = 2.7 % of the frames without collisions.
    assert!((0.02..0.1).contains(&given_up), "{given_up}");
    for flow in 0..3 {
        for direction in [Direction::Out, Direction::Back] {
            let is_its =
                |number: &usize| packets[*number].flow == flow && packets[*number].direction == direction;
            let arrived: Vec<_> = out.iter().filter(|it| it.2).map(|it| it.0).filter(is_its).collect();
            assert!(arrived.windows(2).all(|pair| pair[0] < pair[1]), "flow {flow} {direction:?}");
            assert!(arrived.len() > 500);
        }
    }
}

#[test]
fn the_access_point_gives_each_station_the_same_time_and_not_the_same_bytes() {
    // One station at 65 Mb/s and one at 6.5 Mb/s: each has half of the time.
    let rate = |number: u32| Rate::from_bps([65_000_000, 6_500_000][number as usize]);
    let mut network = network(&WifiConfig::plain(), 2, rate);
    let mut packets = stream(0, Direction::Back, 1500, 180, 5, "CS0");
    packets.extend(stream(1, Direction::Back, 1500, 1000, 5, "CS0"));
    packets.sort_by_key(|packet| packet.at);
    let out = carry(&mut network, packets.clone(), Instant::from_secs(5));
    let of = |flow| out.iter().filter(|it| it.2 && packets[it.0].flow == flow).count() as f64;
    let reports = network.reports(Instant::from_secs(5));
    let (fast, slow) = (reports[2].utilisation, reports[3].utilisation);
    assert!((fast / slow - 1.0).abs() < 0.05, "{fast} and {slow} of the time");
    assert!(fast + slow > 0.9, "{fast} and {slow} of the time");
    assert!(of(0) / of(1) > 8.0, "{} and {} packets", of(0), of(1));
}

/// The delays of a flow's packets in ms, sorted.
fn delays(packets: &[Coming], out: &[(usize, Instant, bool)], flow: u32) -> Vec<f64> {
    let its = out.iter().filter(|it| it.2 && packets[it.0].flow == flow);
    let mut delays: Vec<_> = its.map(|it| it.1.since(packets[it.0].at).as_millis_f64()).collect();
    delays.sort_by(f64::total_cmp);
    delays
}

#[test]
fn a_packet_with_ef_waits_shorter_than_best_effort_among_saturated_stations() {
    let config = wifi(LARGEST_AGGREGATE, vec![saturated(5, MCS_7)]);
    let median = |dscp| {
        let mut network = network(&config, 1, |_| MCS_7);
        let packets = stream(0, Direction::Out, 200, 20_000, 30, dscp);
        let out = carry(&mut network, packets.clone(), Instant::from_secs(31));
        let delays = delays(&packets, &out, 0);
        delays[delays.len() / 2]
    };
    let (voice, best_effort) = (median("EF"), median("CS0"));
    assert!(2.0 * voice < best_effort, "{voice} ms and {best_effort} ms");
}

#[test]
fn an_idle_medium_sends_at_the_next_slot_after_the_arrival() {
    let mut network = network(&WifiConfig::plain(), 1, |_| MCS_7);
    let packets = vec![Coming {
        at: Instant::from_millis(1),
        flow: 0,
        direction: Direction::Out,
        size: 1500,
        dscp: "CS0",
    }];
    let out = carry(&mut network, packets, Instant::from_secs(1));
    // The grid has slots 16 us + n 9 us after time 0: the next is at 1006 us. The frame ends with the symbol
    // of its last bit.
    assert_eq!(out, [(0, Instant::from_micros(1006 + 228), true)]);
}

#[test]
fn a_frame_that_loses_against_its_own_station_has_had_an_attempt() {
    // Nobody else sends and no frame is illegible: only the station's own categories are in each other's way.
    let config = WifiConfig { attempts: 1, ..WifiConfig::plain() };
    let mut network = network(&config, 1, |_| MCS_7);
    let mut packets = stream(0, Direction::Out, 1500, 200, 5, "CS0");
    packets.extend(stream(0, Direction::Out, 200, 1000, 5, "EF"));
    packets.sort_by_key(|packet| packet.at);
    let out = carry(&mut network, packets.clone(), Instant::from_secs(60));
    let given_up = |dscp| out.iter().filter(|it| !it.2 && packets[it.0].dscp == dscp).count();
    assert_eq!(out.len(), packets.len());
    assert!(given_up("CS0") > 0);
    assert_eq!(given_up("EF"), 0, "the higher category is sent");
}
