//! A scenario's network as pages draw it.

use talkpath_path::{LinkConfig, QueueKind, QueueLimit, RateModel};
use talkpath_report::{Animation, Network, Place, PlayFlow, PlayLink, PlayNode};
use talkpath_scenario::{Plan, Scenario, Topology};

use crate::terminal::{program, shell_path};
use talkpath_experiment::run_dir::RunDir;
use talkpath_units::counted;

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

/// How long a repetition of `plan` takes, and what its links are, if the path is ours. What the cells do not
/// share is said to be swept.
pub(crate) fn setting(plan: &Plan, arena: &str) -> String {
    let scenarios = || plan.cells.iter().map(|cell| &cell.scenario);
    let Some(first) = scenarios().next() else { return String::new() };
    let shortest = scenarios().map(|scenario| scenario.duration).min().unwrap_or(first.duration);
    let longest = scenarios().map(|scenario| scenario.duration).max().unwrap_or(first.duration);
    let duration = if shortest == longest { longest.to_string() } else { format!("{shortest} to {longest}") };
    let links = first.links.iter().filter(|_| first.has_path && arena != "live");
    let links = links.map(|link| {
        let own = about(&link.config);
        let is_shared = |scenario: &Scenario| {
            let same = scenario.links.iter().find(|other| other.name == link.name);
            same.is_some_and(|other| about(&other.config) == own)
        };
        match scenarios().all(is_shared) {
            true if own.is_empty() => format!("{} without a rate or delay", link.name),
            true => format!("{} {own}", link.name),
            false => format!("{} is swept", link.name),
        }
    });
    let mut parts: Vec<String> = [format!("{duration} a repetition")].into_iter().chain(links).collect();
    let more = parts.len().saturating_sub(MOST_LINKS + 1);
    if more > 0 {
        parts.truncate(MOST_LINKS + 1);
        parts.push(counted(more, "more link"));
    }
    parts.join("; ")
}

/// Links that a heading describes. Chosen: a line of text.
const MOST_LINKS: usize = 4;

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
                format!(", queue {}", counted(count.get(), "packet"))
            }
            QueueLimit::Bytes(bytes) if bytes.get() <= NARROW_BYTES => format!(", queue {} B", bytes.get()),
            _ => String::new(),
        },
        _ => format!(", {}", link.queue.name().word()),
    };
    format!("{rate}, {} ms{queue}", link.delay.as_millis_f64())
}

/// Queues up to these limits are named beside their link; the usual ones are larger. Chosen.
const NARROW_PACKETS: u64 = 500;
const NARROW_BYTES: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Source, load};

    use super::*;

    #[test]
    fn a_queue_of_one_packet_has_no_plural() {
        let about_limit = |limit: &str| {
            let text = format!(
                "name = \"x\"\nduration = \"10 s\"\n[path.up]\nrate = \"1 Mbps\"\ndelay = \"20 ms\"\n\
                 queue = {{ kind = \"drop-tail\", limit = \"{limit}\" }}\n[path.down]\nrate = \"1 Mbps\"\n\
                 delay = \"20 ms\"\n[flow.call]\ntransport = \"udp\"\nworkload = {{ kind = \"voice\" }}\n"
            );
            let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap();
            about(&plan.cells[0].scenario.links[0].config)
        };
        assert_eq!(about_limit("1 packet"), "1 Mb/s, 20 ms, queue 1 packet");
        assert_eq!(about_limit("2 packets"), "1 Mb/s, 20 ms, queue 2 packets");
    }

    #[test]
    fn a_heading_says_how_long_a_repetition_is_and_which_links_the_cells_share() {
        let text = "name = \"x\"\nduration = \"10 s\"\npath = \"home-adsl\"\n[flow.call]\n\
                    transport = \"udp\"\nworkload = { kind = \"voice\" }\n";
        let plan = |more: &str| {
            let source = Source::new("x.toml", format!("{text}{more}"));
            load(&source, &Options::default()).unwrap()
        };
        let alone = setting(&plan(""), "sim");
        assert!(alone.starts_with("10 s a repetition; up 1 Mb/s, 20 ms, queue 64000 B"), "{alone}");
        assert!(alone.contains("; down "), "{alone}");
        assert_eq!(setting(&plan(""), "live"), "10 s a repetition");
        let swept = setting(&plan("[sweep]\n\"path.up.delay\" = [\"1 ms\", \"2 ms\"]\n"), "sim");
        assert!(swept.starts_with("10 s a repetition; up is swept; down "), "{swept}");
    }
}
