//! `talkpath play`: a page on which a simulated run's packets move over its network.

use std::io::Write as _;

use talkpath_measure::series::SeriesDetail;
use talkpath_measure::{DropCause, SeriesKind};
use talkpath_path::{LinkConfig, QueueKind, QueueLimit, RateModel};
use talkpath_report::{
    Animation, Network, Place, PlayFate, PlayFlow, PlayHop, PlayLink, PlayNode, play_page,
};
use talkpath_scenario::{Plan, Scenario, Topology};
use talkpath_sim::journey::{Hop, HopFate, Journeys, journeys};
use talkpath_units::Instant;

use crate::again::Again;
use crate::arenas::interrupted;
use crate::args::PlayArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::run_dir::{PartId, RunDir, write_whole};
use crate::terminal::{Terminal, program};

/// Runs the simulation again and writes the page.
pub(crate) fn run(args: &PlayArgs, terminal: Terminal) -> Result<(), Failure> {
    let dir = RunDir::open(&args.run)?;
    let id = PartId { cell: args.cell, repetition: args.repetition };
    let again = Again::load(&dir, &args.run, id)?;
    let window = again.window(&args.from, Some(&args.length))?;
    let stop = interrupt::install()?;
    let plan = again.plan(Some(SeriesDetail::Full), &stop);
    let seen = journeys(&again.scenario, &plan, window, MOST_HOPS).ok_or_else(interrupted)?;
    let mut animation = animation(&again.scenario, &seen);
    animation.about = format!(
        "cell {}, repetition {}, {} to {} s of run time",
        id.cell,
        id.repetition,
        seen.window.0.as_secs_f64(),
        seen.window.1.as_secs_f64()
    );
    if seen.is_cut {
        animation.warnings.push(format!(
            "A page holds {MOST_HOPS} hops of packets at most: this one ends at {:.3} s; --from begins later",
            seen.window.1.as_secs_f64()
        ));
    }
    let path = args.output.clone().unwrap_or_else(|| dir.file(PLAY));
    write_whole(&path, |writer| {
        let page = play_page(&animation, env!("CARGO_PKG_VERSION"));
        writer.write_all(page.as_bytes()).map_err(|why| Failure::write(&path, why))
    })?;
    terminal.result(&format!("{} hops of packets: {}\n", animation.hops.len(), path.display()))
}

/// What the page plays of `seen`, a run of `scenario`.
fn animation(scenario: &Scenario, seen: &Journeys) -> Animation {
    let from = micros(seen.window.0);
    let mut animation = network(scenario);
    animation.hops = seen.hops.iter().filter_map(|hop| play_hop(hop, from)).collect();
    animation.from = from;
    animation.length = micros(seen.window.1).saturating_sub(from).max(1);
    for flow in &mut animation.flows {
        let line = seen.series.iter().find(|it| it.kind == SeriesKind::Cwnd && it.entity == flow.name);
        let mut points: Vec<(u64, f64)> = Vec::new();
        for (at, value) in line.iter().flat_map(|line| &line.points) {
            let at = micros(*at).saturating_sub(from);
            // Of the values before the page begins the last one holds.
            if at == 0 {
                points.clear();
            }
            points.push((at, (100.0 * value).round() / 100.0));
        }
        flow.cwnd = points;
    }
    animation
}

/// The nodes, links and flows of `scenario`.
pub(crate) fn network(scenario: &Scenario) -> Animation {
    let topology = Topology::of(scenario);
    let label = |flows: &[usize]| match flows {
        [] => None,
        [one] => scenario.flows.get(*one).map(|flow| flow.name.clone()),
        [first, rest @ ..] => {
            scenario.flows.get(*first).map(|flow| format!("{} and {} more", flow.name, rest.len()))
        }
    };
    let nodes = topology.nodes.iter().map(|node| PlayNode {
        label: label(&node.senders).or_else(|| label(&node.receivers)).unwrap_or_default(),
        place: Place { x: node.x, y: node.y },
    });
    let links = scenario.links.iter().zip(&topology.links).map(|(link, ends)| PlayLink {
        name: link.name.clone(),
        about: about(&link.config),
        ends: *ends,
    });
    let mut sender = vec![0; scenario.flows.len()];
    for (at, node) in topology.nodes.iter().enumerate() {
        node.senders.iter().for_each(|flow| sender[*flow] = at);
    }
    let flows = scenario.flows.iter().enumerate().map(|(index, flow)| PlayFlow {
        name: flow.name.clone(),
        transport: flow.transport_name.clone(),
        sender: sender[index],
        cwnd: Vec::new(),
    });
    Animation {
        name: scenario.name.clone(),
        nodes: nodes.collect(),
        links: links.collect(),
        flows: flows.collect(),
        ..Animation::default()
    }
}

/// What a report shows of the network of `plan`'s first cell, whose run is in `dir`: of cells with other
/// networks the rates and delays differ, rarely the nodes. A live run's network is not known.
pub(crate) fn page_network(plan: &Plan, arena: &str, dir: &RunDir) -> Option<Network> {
    let cell = plan.cells.first().filter(|cell| cell.scenario.has_path && arena != "live")?;
    let play = (arena == "sim").then(|| format!("{} play {}", program(), dir.path().display()));
    Some(Network { animation: network(&cell.scenario), play })
}

/// Rate, delay and, if it is short, the queue's limit.
fn about(link: &LinkConfig) -> String {
    let rate = match &link.rate {
        RateModel::Unlimited => "no rate".to_owned(),
        RateModel::Fixed(rate) if rate.as_bps() >= 1_000_000 => {
            format!("{} Mb/s", rate.as_bps() as f64 / 1e6)
        }
        RateModel::Fixed(rate) => format!("{} kb/s", rate.as_bps() as f64 / 1e3),
        RateModel::Trace(_) => "rate of a trace".to_owned(),
    };
    let queue = match &link.queue {
        QueueKind::DropTail(queue) => match queue.limit {
            QueueLimit::Packets(count) if count.get() <= NARROW_PACKETS => {
                format!(", {} packets", count.get())
            }
            QueueLimit::Bytes(bytes) if bytes.get() <= NARROW_BYTES => format!(", {} B", bytes.get()),
            _ => String::new(),
        },
        _ => format!(", {}", link.queue.name().word()),
    };
    format!("{rate}, {} ms{queue}", link.delay.as_millis_f64())
}

/// What was under way at the end of the run has no known place and is left out.
fn play_hop(hop: &Hop, from: u64) -> Option<PlayHop> {
    let at = |at: Instant| micros(at) as i64 - from as i64;
    let fate = match hop.fate {
        HopFate::Passed => PlayFate::Passed,
        HopFate::Gone(DropCause::Loss) => PlayFate::Lost,
        HopFate::Gone(_) => PlayFate::Dropped,
        HopFate::UnderWay => return None,
    };
    Some(PlayHop {
        flow: hop.flow,
        link: hop.link,
        fate,
        size: u32::try_from(hop.size.get()).unwrap_or(u32::MAX),
        entered: at(hop.entered),
        began: at(hop.began),
        sent: at(hop.sent),
        left: at(hop.left),
    })
}

fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1000
}

/// Queues up to these limits are named beside their link; the usual ones are larger. Chosen.
const NARROW_PACKETS: u64 = 500;
const NARROW_BYTES: u64 = 1_000_000;
/// The page in a run directory.
pub(crate) const PLAY: &str = "play.html";
/// Hops on one page: some 30 bytes each, so that a page has a few MB. Chosen.
const MOST_HOPS: usize = 200_000;
