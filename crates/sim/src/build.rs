//! From a scenario to a simulation: the network and the endpoints.

use std::ops::Range;

use talkpath_arena::RunPlan;
use talkpath_arena::links::{self, QueueSeries};
use talkpath_config::{CongestionControlKind, Role, TransportConfig};
use talkpath_flow::{AnyWorkload, FlowTaps, flow_info};
use talkpath_measure::{FlowInfo, FlowTally};
use talkpath_model::{Due, Flow, Scenario};
use talkpath_path::{LINUX_MEMORY, LINUX_TIMEOUT, Reassembly};
use talkpath_transport::AnyTransport;
use talkpath_units::Instant;

use crate::connections::Connections;
use crate::endpoint::{Endpoint, EndpointTransport};
use crate::flow::{FlowMeter, SimFlow};
use crate::packets::SimPackets;
use crate::shared::SharedPlace;
use crate::simulation::{MOST_UNDER_WAY, Simulation, timers};

/// The simulation of `scenario`.
pub(crate) fn build(scenario: &Scenario, plan: &RunPlan<'_>) -> Simulation {
    let window = &(Instant::ZERO + scenario.warm_up..Instant::ZERO + scenario.duration);
    let connections = Connections::new(scenario, plan.seed);
    let flows = scenario.flows.iter().enumerate().map(|(index, flow)| {
        let transport = simulated_transport(flow);
        let ends = connections.transports(index, flow);
        let ends = ends.unwrap_or_else(|| own_transports(scenario, flow, &transport, plan));
        let info = sim_flow_info(flow, &transport, plan, !scenario.changes.is_empty());
        build_flow(flow, info, &transport, ends, connections.shared_place(index), window, plan)
    });
    let flows = flows.collect();
    let timers = timers(scenario.flows.len(), connections.len());
    Simulation {
        network: links::network(scenario, plan.seed, timers, plan.series.is_some()),
        seed: plan.seed,
        packets: SimPackets::default(),
        flows,
        connections,
        extra_header: scenario.ip.extra_header().get(),
        queue_series: plan.series.map(|detail| QueueSeries::new(scenario, detail)),
        tap: None,
        duration: window.end,
        drain: scenario.drain,
        draining: None,
        most_under_way: MOST_UNDER_WAY,
    }
}

/// What the record says of a flow. `path_changes` says whether the path changes during the run.
fn sim_flow_info(
    flow: &Flow,
    transport: &TransportConfig,
    plan: &RunPlan<'_>,
    path_changes: bool,
) -> FlowInfo {
    let start = Instant::ZERO
        + plan.seed.stream(&format!("flow/{}/start", flow.name)).span(flow.start.0, flow.start.1);
    let of_tcp = transport.as_tcp().and_then(|config| config.cc).map(CongestionControlKind::name);
    let cc = of_tcp.or(transport.as_quic().map(|config| config.cc.name())).map(str::to_owned);
    let mut info = flow_info(flow, cc, start, true);
    info.terms.path_changes = path_changes;
    info
}

fn build_flow(
    flow: &Flow,
    info: FlowInfo,
    transport: &TransportConfig,
    [near, far]: [EndpointTransport; 2],
    shared: Option<SharedPlace>,
    window: &Range<Instant>,
    plan: &RunPlan<'_>,
) -> SimFlow {
    let workload = AnyWorkload::new(&flow.workload, flow.workload_seed(plan.seed), window.end);
    let start = info.start;
    let features = transport.kind().features();
    let sleep = |side: &str| plan.seed.stream(&format!("flow/{}/wake-up/{side}", flow.name));
    let is_echo = flow.echo.is_some();
    let tally = || Box::new(FlowTally::new(&info, window.clone(), features.keeps_messages, is_echo));
    let near = Endpoint::near(near, workload, window.clone())
        .waking_up_within(flow.wake_up, sleep("near"))
        .late_by(flow.clock_jitter, plan.seed.stream(&format!("flow/{}/clock", flow.name)));
    let near = match flow.due {
        Due::Start => near.with_clock_from(start),
        Due::Opening => near,
    };
    SimFlow {
        tally: (!plan.rows).then(tally),
        info,
        features,
        wants_ecn: transport.wants_ecn(),
        near,
        starts_clock: flow.due == Due::Start && flow.workload.is_clocked(),
        far: Endpoint::far(far, flow.echo, flow.receiver, window.clone())
            .waking_up_within(flow.wake_up, sleep("far")),
        shared,
        taps: FlowTaps::shared(flow.echo.is_some()),
        near_reassembly: Reassembly::new(LINUX_TIMEOUT, LINUX_MEMORY),
        far_reassembly: Reassembly::new(LINUX_TIMEOUT, LINUX_MEMORY),
        identifications: [0; 2],
        start,
        opened: false,
        dscp: flow.dscp.unwrap_or_default(),
        meter: FlowMeter::new(&flow.name, transport.as_quic().is_some(), window, plan.series),
    }
}

/// Both ends of a transport of the flow's own.
fn own_transports(
    scenario: &Scenario,
    flow: &Flow,
    transport: &TransportConfig,
    plan: &RunPlan<'_>,
) -> [EndpointTransport; 2] {
    let (mtu, seed) = (scenario.path_mtu(flow), flow.transport_seed(plan.seed));
    let end = |role, buffer| EndpointTransport::Ours(AnyTransport::new(transport, role, mtu, seed, buffer));
    [end(Role::Active, None), end(Role::Passive, flow.receiver.socket_buffer)]
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
