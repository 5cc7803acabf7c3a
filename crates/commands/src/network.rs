//! A scenario's network as pages draw it.

use talkpath_path::{LinkConfig, QueueKind, QueueLimit, RateModel};
use talkpath_report::{Animation, Network, Place, PlayFlow, PlayLink, PlayNode};
use talkpath_scenario::{Plan, Scenario, Topology};

use crate::terminal::{program, shell_path};
use talkpath_experiment::run_dir::RunDir;

/// The nodes, links and flows of `scenario`.
pub fn network(scenario: &Scenario) -> Animation {
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
    let play = (arena == "sim").then(|| {
        let dir = shell_path(dir.path());
        format!("{} play {dir}", program())
    });
    Some(Network { animation: network(&cell.scenario), play })
}

/// Rate, delay and, if it is short, the queue's limit; nothing of a link that adds no time.
fn about(link: &LinkConfig) -> String {
    if matches!(link.rate, RateModel::Unlimited) && link.delay.is_zero() {
        return String::new();
    }
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

/// Queues up to these limits are named beside their link; the usual ones are larger. Chosen.
const NARROW_PACKETS: u64 = 500;
const NARROW_BYTES: u64 = 1_000_000;
