//! From a scenario to a simulation: links, endpoints, routes.

use talkpath_arena::links::host_delay;
use talkpath_arena::{Endpoint, FlowTaps, RunPlan};
use talkpath_measure::series::SeriesTap;
use talkpath_measure::{FlowInfo, FlowTally, LegTap, SeriesKind};
use talkpath_path::{LINUX_MEMORY, LINUX_TIMEOUT, Link, RateModel, Reassembly};
use talkpath_scenario::workload::AnyWorkload;
use talkpath_scenario::{Flow, LinkIndex, NamedLink, Scenario};
use talkpath_transport::{AnyTransport, CongestionControlKind, Role, TcpConfig, TransportConfig};
use talkpath_units::{Duration, Instant};

use crate::flow::{FlowMeter, SimFlow};
use crate::network::{Direction, Network, Origin, Parcels, Routes, Step, Ticket};
use crate::prefetch;
use crate::queue::{Entity, EventQueue};
use crate::simulation::Simulation;

/// The simulation of `scenario`.
pub(crate) fn build(scenario: &Scenario, plan: &RunPlan<'_>) -> Simulation {
    let window = (Instant::ZERO + scenario.warm_up, Instant::ZERO + scenario.duration);
    let link_names: Vec<String> = scenario.links.iter().map(|link| link.name.clone()).collect();
    let series = if plan.series { link_names.as_slice() } else { &[] };
    let queue_series = series.iter().map(|name| SeriesTap::new(name, SeriesKind::Queue)).collect();
    let measured = |link: &NamedLink| {
        let measured = Link::new(&link.config, plan.seed, &link.name).measuring(window.0, window.1);
        if plan.series { measured.looked_at() } else { measured }
    };
    let mut links: Vec<Link<Ticket>> = scenario.links.iter().map(measured).collect();
    let mut flows = Vec::with_capacity(scenario.flows.len());
    let mut routes = Routes::default();
    for flow in &scenario.flows {
        let transport = simulated_transport(flow);
        let mut out_route = indices(&flow.route);
        if !flow.send_jitter.is_zero() {
            out_route.insert(0, links.len() as u32);
            links.push(host_delay(flow, plan.seed));
        }
        let ends = [
            routes.add(&out_route, flows.len(), Direction::Back),
            routes.add(&indices(&flow.return_route), flows.len(), Direction::Out),
        ];
        let after_first = ends.map(|first| routes.after(first));
        flows.push(build_flow(scenario, flow, &transport, (ends, after_first), window, plan));
    }
    assert!(flows.len() <= Origin::FLOWS, "a parcel has 29 bits for its flow: more flows would need 7 TB");
    Simulation {
        network: Network {
            queue: EventQueue::new(links.len() + 2 * flows.len(), apart(scenario)),
            awake: Entity::NONE,
            links,
            queue_series,
            parcels: Parcels::default(),
            routes,
            dropped: Vec::new(),
            tap: None,
        },
        link_names,
        flows,
        duration: window.1,
        drain: scenario.drain,
        pending: None,
        last_delivery: Instant::ZERO,
        ended: window.1,
        looks_ahead: prefetch::pays_for(scenario.flows.len()),
        expected: None,
    }
}

/// About how far apart events are when all is busy: each slowest link of some route passes full packets, each of which has as many
/// hops as that route.
fn apart(scenario: &Scenario) -> Duration {
    let rate = |link: &LinkIndex| match scenario.links[link.0 as usize].config.rate {
        RateModel::Fixed(rate) => rate.as_bps(),
        RateModel::Unlimited | RateModel::Trace(_) => u64::MAX,
    };
    let mut hops = vec![0; scenario.links.len()];
    for route in scenario.flows.iter().flat_map(|flow| [&flow.route, &flow.return_route]) {
        if let Some(slowest) = route.iter().min_by_key(|link| rate(link)).filter(|link| rate(link) < u64::MAX)
        {
            let hops = &mut hops[slowest.0 as usize];
            *hops = route.len().max(*hops);
        }
    }
    let bps = (0..).zip(hops).map(|(link, hops)| u128::from(rate(&LinkIndex(link))) * hops as u128);
    let bps: u128 = bps.filter(|bps| *bps > 0).sum();
    match u64::try_from(FULL_PACKET_BITS * 1_000_000_000 / bps.max(1)) {
        Ok(apart) if bps > 0 => Duration::from_nanos(apart),
        _ => UNKNOWN_APART,
    }
}

/// Of a packet as large as Ethernet takes it (RFC 894): 1500 B.
const FULL_PACKET_BITS: u128 = 12_000;
/// Where no link has a rate that says it. Chosen: of the order of the time between two events of a fast link.
const UNKNOWN_APART: Duration = Duration::from_micros(8);

fn build_flow(
    scenario: &Scenario,
    flow: &Flow,
    transport: &TransportConfig,
    (routes, after_first): ([Step; 2], [Step; 2]),
    window: (Instant, Instant),
    plan: &RunPlan<'_>,
) -> SimFlow {
    let mtu = scenario.path_mtu(flow);
    let end = |role, buffer| AnyTransport::new(transport, role, mtu, flow.transport_seed(plan.seed), buffer);
    let workload = AnyWorkload::new(&flow.workload, window.1);
    let start = Instant::ZERO
        + plan.seed.stream(&format!("flow/{}/start", flow.name)).span(flow.start.0, flow.start.1);
    let info = flow_info(flow, transport, start);
    let is_stream = matches!(transport, TransportConfig::Tcp(_));
    let sleep = |side: &str| plan.seed.stream(&format!("flow/{}/wake-up/{side}", flow.name));
    let tally = || Box::new(FlowTally::new(&info, window.0..window.1, is_stream, flow.echo.is_some()));
    SimFlow {
        tally: (!plan.rows).then(tally),
        info,
        is_stream,
        has_timeouts: !matches!(transport, TransportConfig::Udp(_)),
        near: Endpoint::near(end(Role::Active, None), workload, window)
            .waking_up_within(flow.wake_up, sleep("near"))
            .late_by(flow.clock_jitter, plan.seed.stream(&format!("flow/{}/clock", flow.name))),
        far: Endpoint::far(end(Role::Passive, flow.receiver.socket_buffer), flow.echo, flow.receiver, window)
            .waking_up_within(flow.wake_up, sleep("far")),
        taps: FlowTaps { forward: LegTap::new(), echo: flow.echo.map(|_| Box::new(LegTap::new())) },
        routes,
        after_first,
        near_reassembly: Reassembly::new(LINUX_TIMEOUT, LINUX_MEMORY),
        far_reassembly: Reassembly::new(LINUX_TIMEOUT, LINUX_MEMORY),
        identifications: [0; 2],
        start,
        opened: false,
        meter: FlowMeter::new(&flow.name, window, plan.series),
    }
}

fn flow_info(flow: &Flow, transport: &TransportConfig, start: Instant) -> FlowInfo {
    FlowInfo {
        name: flow.name.clone(),
        group: flow.group.clone(),
        transport: flow.transport_name.clone(),
        cc: match transport {
            TransportConfig::Tcp(TcpConfig { cc: Some(cc), .. }) => Some(cc.name().to_owned()),
            TransportConfig::Tcp(_) | TransportConfig::Udp(_) | TransportConfig::Dccp(_) => None,
        },
        start,
        clocked: flow.workload.is_clocked(),
        bounded: flow.workload.is_bounded(),
        clock_trusted: true,
    }
}

/// The transport as the simulator has it. What says nothing of its congestion control gets a Linux host's
/// (net.ipv4.tcp_congestion_control).
fn simulated_transport(flow: &Flow) -> TransportConfig {
    let mut transport = flow.transport.clone();
    if let TransportConfig::Tcp(config) = &mut transport {
        config.cc.get_or_insert(CongestionControlKind::Cubic);
    }
    transport
}

fn indices(route: &[LinkIndex]) -> Vec<u32> {
    route.iter().map(|link| link.0).collect()
}
