//! What holds in every topology: no packet appears or vanishes, time does not go back, and nothing that could
//! move is forgotten. (That no window is exceeded is watched segment by segment in
//! `transport/tests/properties.rs`.)
//!
//! Topologies are random in-trees: each link leads to one other or to the end, so that what comes into a link
//! is known from what its predecessors and the hosts on it sent, and has to be what came out, was dropped,
//! lost, or is inside.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use talkpath_arena::RunPlan;
use talkpath_path::Direction;
use talkpath_scenario::{Options, Source, load};
use talkpath_units::Instant;

use crate::build::build;
use crate::simulation::Simulation;

/// A link: kb/s, delay in ms, packets that may wait, what the wire does, and how many links further the next
/// link is.
type AnyLink = (u64, u64, u64, usize, usize);
/// A flow: the link that it starts at, its transport, its workload.
type AnyFlow = (usize, usize, usize);

fn any_link() -> impl Strategy<Value = AnyLink> {
    (200_u64..20_000, 0_u64..60, 1_u64..40, 0..WIRES.len(), 1_usize..4)
}

const WIRES: [&str; 6] = [
    "",
    "loss = { kind = \"bernoulli\", rate = 0.03 }",
    "jitter = { kind = \"normal\", sd = \"2 ms\" }",
    "loss = { kind = \"periodic\", period = 23 }\njitter = { kind = \"normal\", sd = \"3 ms\", reorder = true }",
    "duplicate = \"5%\"\nloss = 0.02",
    "damage = \"3%\"\nduplicate = 0.02\njitter = { kind = \"normal\", sd = \"2 ms\", reorder = true }",
];
const TRANSPORTS: [&str; 11] = [
    "\"udp\"",
    "\"tcp\"",
    "{ kind = \"tcp\", cc = \"newreno\", stack = \"rfc\" }",
    "{ kind = \"tcp\", stack = \"bsd-reno\", rwnd = \"8 packets\" }",
    "{ kind = \"tcp-nodelay\", cc = \"newreno\", sack = false }",
    "{ kind = \"tcp\", cc = \"bbr\" }",
    "\"dccp-ccid2\"",
    "\"dccp-ccid3\"",
    "{ kind = \"quic-datagram\", encryption = false }",
    "{ kind = \"quic-stream\", encryption = false }",
    "{ kind = \"quic-stream-per-message\", encryption = false }",
];
const WORKLOADS: [&str; 5] = [
    "{ kind = \"voice\", codec = \"g711\" }",
    "{ kind = \"cbr\", rate = \"300 kbps\", size = \"1100 B\", echo = true }",
    "{ kind = \"cbr\", message_rate = \"60 Hz\", min_size = \"8 B\", size = \"1100 B\", echo = true }",
    "{ kind = \"burst\", count = 20, size = \"900 B\", repeat = 5, gap = \"700 ms\" }",
    "{ kind = \"bulk\" }",
];

/// The links that a packet crosses from `start` on.
fn route(links: &[AnyLink], start: usize) -> Vec<usize> {
    std::iter::successors(Some(start % links.len()), |&at| {
        Some(at + links[at].4).filter(|&next| next < links.len())
    })
    .collect()
}

fn scenario(links: &[AnyLink], flows: &[AnyFlow]) -> String {
    let mut text = "name = \"any\"\nduration = \"8 s\"\n".to_owned();
    for (side, (index, (kbps, ms, limit, wire, _))) in
        ["out", "back"].iter().flat_map(|side| links.iter().enumerate().map(move |link| (side, link)))
    {
        let queue = format!("queue = {{ kind = \"drop-tail\", limit = \"{limit} packets\" }}");
        let wire = WIRES[*wire];
        writeln!(text, "[link.{side}{index}]\nrate = \"{kbps} kbps\"\ndelay = \"{ms} ms\"\n{queue}\n{wire}")
            .unwrap();
    }
    for (number, &(start, transport, workload)) in flows.iter().enumerate() {
        // Nothing holds bulk back over a transport that never pushes back: the scenario refuses it.
        let workload = if transport == 0 { workload % (WORKLOADS.len() - 1) } else { workload };
        let names = |side: &str| {
            let names: Vec<_> = route(links, start).iter().map(|link| format!("\"{side}{link}\"")).collect();
            format!("[{}]", names.join(", "))
        };
        writeln!(
            text,
            "[flow.f{number}]\ntransport = {}\nworkload = {}\nroute = {}\nreturn_route = {}",
            TRANSPORTS[transport],
            WORKLOADS[workload],
            names("out"),
            names("back")
        )
        .unwrap();
    }
    text
}

/// What came into each link is what came out of it, was dropped, lost, or is inside.
fn conserves(simulation: &mut Simulation, links: &[AnyLink], flows: &[AnyFlow], now: Instant) {
    let held: Vec<_> = simulation.network.held().collect();
    let reports = simulation.network.reports(now);
    let under_way = simulation.packets.under_way();
    assert_eq!(held.iter().sum::<usize>(), under_way, "packets on links and in the slab at {now}");
    for (direction, first) in [(Direction::Out, 0), (Direction::Back, links.len())] {
        let mut come = vec![0_u64; links.len()];
        for (flow, &(start, ..)) in simulation.flows.iter().zip(flows) {
            come[start % links.len()] += u64::from(flow.identifications[direction as usize]);
        }
        for index in 0..links.len() {
            let (inside, report) = (held[first + index] as u64, &reports[first + index]);
            let gone = report.forwarded + report.dropped + report.lost;
            assert_eq!(
                come[index] + report.repeated,
                gone + inside,
                "{direction:?} link {index} at {now}: {report:?}"
            );
            if let Some(come) = come.get_mut(index + links[index].4) {
                *come += report.forwarded;
            }
        }
    }
}

/// A reliable transport that holds data has a deadline for it.
fn waits_for_something(simulation: &Simulation, now: Instant) {
    for flow in simulation.flows.iter().filter(|flow| flow.features.is_reliable) {
        for end in [&flow.near, &flow.far] {
            let waits = end.observe().send_buffer.get() > 0;
            assert!(!waits || end.poll_timeout() < Instant::MAX, "{} stalls at {now}", flow.info.name);
        }
    }
}

proptest! {
    #![proptest_config(talkpath_testing::properties(48))]
    #[test]
    fn in_any_topology_packets_are_conserved_time_goes_on_and_nothing_stalls(
        links in proptest::collection::vec(any_link(), 1..6),
        flows in proptest::collection::vec((0_usize..6, 0..TRANSPORTS.len(), 0..WORKLOADS.len()), 1..5),
        rows in any::<bool>(),
    ) {
        let text = scenario(&links, &flows);
        let source = Source::new("any.toml", text.clone());
        let plan = load(&source, &Options::default()).unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{text}"));
        let interrupt = AtomicBool::new(false);
        let run = RunPlan { cell: 0, repetition: 0, seed: plan.seed, series: None, rows, interrupt: &interrupt, progress: &|_| {} };
        let mut simulation = build(&plan.cells[0].scenario, &run);
        simulation.start_flows();
        let (mut before, mut steps) = (Instant::ZERO, 0_u32);
        while let Some(now) = simulation.handle_outputs(1) {
            prop_assert!(now >= before, "{} after {}", now, before);
            before = now;
            steps += 1;
            // What was dropped just now comes out next. The links count up to the run's duration.
            let is_settled = simulation.network.poll_timeout().is_none_or(|next| next > now);
            if steps.is_multiple_of(31) && is_settled && now < simulation.duration {
                conserves(&mut simulation, &links, &flows, now);
                waits_for_something(&simulation, now);
            }
        }
        let pending: u64 = simulation.flows.iter().map(|flow| flow.taps.pending()).sum();
        let is_idle = simulation.network.poll_timeout().is_none();
        prop_assert!(pending == 0 || !is_idle, "{pending} messages are pending, and nothing will happen any more");
        prop_assert!(steps > 5);
    }
}
