//! The network of a scenario, as pages draw it and as tables describe it.

use talkpath_path::{LinkConfig, Medium, QueueKind, QueueLimit, RateModel};
use talkpath_report::{Animation, Network, Place, PlayFlow, PlayLink, PlayNode};
use talkpath_scenario::{Plan, Scenario, Topology};

use crate::path_changes::{changing_keys, number_of_changes, rate};
use crate::terminal::{program, shell_path};
use talkpath_experiment::run_dir::RunDir;
use talkpath_units::counted;

/// A heading describes at most this many links. We chose 4 because they fit on a line.
const MAX_LINKS: usize = 4;
/// A queue up to these limits is short, so the description of its link names it. We chose them below the
/// limits of usual queues.
const SHORT_QUEUE_PACKETS: u64 = 500;
const SHORT_QUEUE_BYTES: u64 = 1_000_000;

/// Lays out the nodes, links and flows of `scenario`.
pub fn network(scenario: &Scenario) -> Animation {
    let topology = Topology::new(scenario);
    let label = |flows: &[usize]| {
        let first = scenario.flows.get(*flows.first()?)?;
        match flows.len() - 1 {
            0 => Some(first.name.clone()),
            others => Some(format!("{} and {others} more", first.name)),
        }
    };
    let nodes = topology.nodes.iter().map(|node| PlayNode {
        label: label(&node.senders).or_else(|| label(&node.receivers)).unwrap_or_default(),
        place: Place { x: node.x, y: node.y },
    });
    let links = scenario.links.iter().zip(&topology.links).map(|(link, ends)| PlayLink {
        name: link.name.clone(),
        about: match changing_keys(scenario, &link.name) {
            Some(changes) => format!("{}; {changes}", describe_link(&link.config)),
            None => describe_link(&link.config),
        },
        ends: ends.map(|ends| (ends.from, ends.to)),
    });
    let mut sender_node = vec![0; scenario.flows.len()];
    for (index, node) in topology.nodes.iter().enumerate() {
        for &flow in &node.senders {
            sender_node[flow] = index;
        }
    }
    let flows = scenario.flows.iter().enumerate().map(|(index, flow)| PlayFlow {
        name: flow.name.clone(),
        transport: flow.transport_name.clone(),
        sender: sender_node[index],
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

/// Returns the network that the report of the run in `dir` shows, or `None` for a live run, whose network is
/// not known.
///
/// It is the network of the plan's first cell. The networks of other cells differ in rates and delays, and
/// rarely in their nodes.
pub(crate) fn page_network(plan: &Plan, arena: &str, dir: &RunDir) -> Option<Network> {
    let cell = plan.cells.first().filter(|cell| cell.scenario.has_path && arena != "live")?;
    let play = (arena == "sim").then(|| {
        let dir = shell_path(dir.path());
        format!("{} play {dir}", program())
    });
    Some(Network { animation: network(&cell.scenario), play })
}

/// Describes how long a repetition of `plan` takes, and the links of its path. A link that is not the same in
/// all cells is called swept. The links of a live run are not known.
pub(crate) fn setting(plan: &Plan, arena: &str) -> String {
    let scenarios = || plan.cells.iter().map(|cell| &cell.scenario);
    let Some(first) = scenarios().next() else { return String::new() };
    let shortest = scenarios().map(|scenario| scenario.duration).min().unwrap_or(first.duration);
    let longest = scenarios().map(|scenario| scenario.duration).max().unwrap_or(first.duration);
    let duration = if shortest == longest { longest.to_string() } else { format!("{shortest} to {longest}") };
    let length = match first.program {
        Some(_) => "until the program ended".to_owned(),
        None => format!("{duration} a repetition"),
    };
    let mut parts = vec![length];
    if first.has_path && arena != "live" {
        for link in first.links.iter().take(MAX_LINKS) {
            let description = describe_link(&link.config);
            let has_same_link = |scenario: &Scenario| {
                let same_name = scenario.links.iter().find(|other| other.name == link.name);
                same_name.is_some_and(|other| describe_link(&other.config) == description)
            };
            parts.push(if !scenarios().all(has_same_link) {
                format!("{} is swept", link.name)
            } else if description.is_empty() {
                format!("{} without a rate or delay", link.name)
            } else {
                format!("{} {description}", link.name)
            });
        }
        let more = first.links.len().saturating_sub(MAX_LINKS);
        if more > 0 {
            parts.push(counted(more, "more link"));
        }
        let changes = scenarios().map(number_of_changes).max().unwrap_or(0);
        if changes > 0 {
            parts.push(format!("the path changes {}", counted(changes, "time")));
        }
    }
    parts.join("; ")
}

/// Describes the rate and the delay of a link, and its queue if the queue is short or is not a plain one. The
/// text is empty if the link adds no time.
fn describe_link(link: &LinkConfig) -> String {
    let buckets = [("shaped", link.shaper), ("policed", link.policer)];
    let buckets: String = buckets
        .iter()
        .filter_map(|(verb, bucket)| bucket.map(|bucket| format!(", {verb} to {}", rate(bucket.rate))))
        .collect();
    if matches!(link.rate, RateModel::Unlimited) && link.delay.is_zero() && buckets.is_empty() {
        return String::new();
    }
    let line_rate = match (&link.medium, &link.rate) {
        (_, RateModel::Unlimited) => "no rate".to_owned(),
        (Medium::Wire, RateModel::Fixed(fixed)) => rate(*fixed),
        (Medium::Wifi(_), RateModel::Fixed(fixed)) => format!("Wi-Fi at {}", rate(*fixed)),
        (_, RateModel::Trace(_)) => "rate of a trace".to_owned(),
    };
    let queue = match &link.queue {
        QueueKind::DropTail(queue) => match queue.limit {
            QueueLimit::Packets(count) if count.get() <= SHORT_QUEUE_PACKETS => {
                format!(", queue {}", counted(count.get(), "packet"))
            }
            QueueLimit::Bytes(bytes) if bytes.get() <= SHORT_QUEUE_BYTES => {
                format!(", queue {} B", bytes.get())
            }
            _ => String::new(),
        },
        _ => format!(", {}", link.queue.name().word()),
    };
    let others = link.cellular.as_ref().map(|cell| counted(cell.others, "other user"));
    let cell = others.map_or_else(String::new, |others| format!(" in a cell with {others}"));
    format!("{line_rate}{cell}{buckets}, {} ms{queue}", link.delay.as_millis_f64())
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Source, load};

    use super::*;

    #[test]
    fn a_users_share_of_a_cell_is_described_with_the_others() {
        let text = "name = \"x\"\nduration = \"10 s\"\npath = \"lte\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n";
        let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap();
        let links = &plan.cells[0].scenario.links;
        let expected = "14.3 Mb/s in a cell with 4 other users, 33 ms, queue 812000 B";
        assert_eq!(describe_link(&links[1].config), expected);
    }

    #[test]
    fn a_queue_of_one_packet_has_no_plural() {
        let about_limit = |limit: &str| {
            let text = format!(
                "name = \"x\"\nduration = \"10 s\"\n[path.up]\nrate = \"1 Mbps\"\ndelay = \"20 ms\"\n\
                 queue = {{ kind = \"drop-tail\", limit = \"{limit}\" }}\n[path.down]\nrate = \"1 Mbps\"\n\
                 delay = \"20 ms\"\n[flow.call]\ntransport = \"udp\"\nworkload = {{ kind = \"voice\" }}\n"
            );
            let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap();
            describe_link(&plan.cells[0].scenario.links[0].config)
        };
        assert_eq!(about_limit("1 packet"), "1 Mb/s, 20 ms, queue 1 packet");
        assert_eq!(about_limit("2 packets"), "1 Mb/s, 20 ms, queue 2 packets");
    }

    #[test]
    fn a_link_with_a_token_bucket_alone_is_described_by_its_rate() {
        let text = "duration = \"10 s\"\n[path]\nup = { shaper = { rate = \"2 Mbps\", burst = \"9 kB\" } }\n\
                    down = {}\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n";
        let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap();
        let links = &plan.cells[0].scenario.links;
        assert_eq!(describe_link(&links[0].config), "no rate, shaped to 2 Mb/s, 0 ms");
        let warnings: Vec<String> = plan.warnings.iter().map(ToString::to_string).collect();
        assert!(!warnings.iter().any(|line| line.contains("path.up.rate")), "{warnings:?}");
        assert!(warnings.iter().any(|line| line.contains("path.down.rate: missing")), "{warnings:?}");
    }

    #[test]
    fn a_link_over_wifi_is_described_by_the_rate_of_its_frames() {
        let text = "duration = \"10 s\"\n[path]\nup = { rate = \"65 Mbps\", wifi = { sender = \"station\" } }\n\
                    down = { rate = \"13 Mbps\", wifi = { sender = \"access-point\", with = \"up\" } }\n\
                    [flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n";
        let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap();
        let links = &plan.cells[0].scenario.links;
        assert_eq!(describe_link(&links[1].config), "Wi-Fi at 13 Mb/s, 0 ms");
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
        let change = "[[change]]\nevery = \"4 s\"\ndelay = \"9 ms\"\n";
        assert!(setting(&plan(change), "sim").ends_with("; the path changes 2 times"));
        let swept = setting(&plan("[sweep]\n\"path.up.delay\" = [\"1 ms\", \"2 ms\"]\n"), "sim");
        assert!(swept.starts_with("10 s a repetition; up is swept; down "), "{swept}");
    }
}
