//! Flows: copies, directions, routes, and what a workload needs of its transport.

use talkpath_config::{QuicConfig, TransportConfig};
use talkpath_model::{Direction, Dscp, Due, Flow, LARGEST_BULK_MESSAGE, LinkIndex, Receiver, SecondPath};
use talkpath_units::{Bytes, Duration};

use super::link::{self, Links, NameInRoute};
use crate::contents::Contents;
use crate::diagnostic::{Log, Place};
use crate::keys::{FLOW, RECEIVER};
use crate::quantity::Problem;
use crate::read::At;
use crate::section::{Section, first_step, for_copy};
use crate::spec::MOST_FLOWS;
use crate::transports::{self, Fit};
use crate::tree::{Meaning, Table};
use crate::workloads::{self, FileTerms, Load};

/// One `[flow.NAME]` table.
pub(crate) struct FlowTable<'a> {
    name: &'a str,
    place: &'a Place,
    table: &'a Table,
    /// Copies; 1 if the count is wrong.
    count: u64,
}

impl<'a> FlowTable<'a> {
    /// The names of links in its routes.
    pub(crate) fn named_links(&self) -> Vec<NameInRoute<'a>> {
        ["route", "return_route", "second_route", "second_return_route"]
            .iter()
            .filter_map(|key| self.table.get(key)?.names())
            .flat_map(|names| names.map(|(name, _)| NameInRoute { name, copies: self.count }))
            .collect()
    }
}

/// The flows of `root`, not yet multiplied.
pub(crate) fn copies<'a>(root: &'a Table, log: &mut Log) -> Vec<FlowTable<'a>> {
    let top = At::ROOT;
    let at = top.key("flow");
    let mut specs = Vec::new();
    let mut total = 0_u64;
    for entry in root
        .get("flow")
        .and_then(|node| node.as_table())
        .map(|table| table.entries.as_slice())
        .unwrap_or_default()
    {
        let Some(table) = entry.node.as_table() else { continue };
        let section = Section::new(table, FLOW.keys, at.key(&entry.name), &entry.place);
        let count = section.count("count").unwrap_or(1);
        let both = section.choice("direction") == Some("both");
        total = total.saturating_add(count * if both { 2 } else { 1 });
        if total > MOST_FLOWS {
            let message = format!(
                "found {total} flows up to here, copies and directions counted; expected at most {MOST_FLOWS}"
            );
            section.problem("count", Problem::new(message), log);
            break;
        }
        specs.push(FlowTable { name: &entry.name, place: &entry.place, table, count });
    }
    if specs.is_empty() && root.get("flow").is_some() {
        log.mistake(&Place::START, "flow", "missing; a scenario needs at least one [flow.NAME]", None);
    }
    specs
}

/// Every flow of `specs` over `links`; `None` if one has mistakes.
pub(crate) fn flows(
    specs: &[FlowTable<'_>],
    links: &Links,
    duration: Option<Duration>,
    contents: &Contents,
    log: &mut Log,
) -> Option<Vec<Flow>> {
    let top = At::ROOT;
    let at = top.key("flow");
    let mut flows: Option<Vec<Flow>> = Some(Vec::new());
    for spec in specs {
        let at = at.key(spec.name);
        let made = copies_of(spec, links, duration, at, contents, log);
        match (&mut flows, made) {
            (Some(flows), Some(made)) => flows.extend(made),
            (flows, _) => *flows = None,
        }
    }
    let flows = flows?;
    let mut names: Vec<_> = flows.iter().map(|flow| flow.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let group = flows.iter().rev().find(|flow| flow.name == twice[0]).map(|flow| flow.group.as_str());
        let place =
            specs.iter().find(|spec| Some(spec.name) == group).map_or(&Place::START, |spec| spec.place);
        let message = format!("two flows come out with the name {:?}; rename one", twice[0]);
        log.mistake(place, &at.to_string(), message, None);
        return None;
    }
    let mut fits = true;
    for spec in specs {
        fits &= shares_its_connection(spec, &flows, at, log);
    }
    fits.then_some(flows)
}

/// Whether the flows of `spec` agree with the first flow of their connection: there is one of each thing that
/// a connection has.
fn shares_its_connection(spec: &FlowTable<'_>, flows: &[Flow], at: At<'_>, log: &mut Log) -> bool {
    for flow in flows.iter().filter(|flow| flow.group == spec.name) {
        let Some(quic) = flow.transport.as_quic() else { continue };
        let is_same = |it: &&Flow| it.transport.as_quic().is_some_and(|it| it.connection == quic.connection);
        let (Some(name), Some(first)) = (&quic.connection, flows.iter().find(is_same)) else { continue };
        let Some(other) = first.transport.as_quic() else { continue };
        let differs = if (&flow.route, &flow.return_route) != (&first.route, &first.return_route) {
            "routes"
        } else if quic.cc != other.cc {
            "`cc`"
        } else if quic.zero_rtt != other.zero_rtt {
            "`zero_rtt`"
        } else if quic.encryption != other.encryption {
            "`encryption`"
        } else {
            continue;
        };
        let message = format!(
            "found the connection {name:?} of the flow {} with another {differs}: flows of one connection agree on it",
            first.name
        );
        let at = at.key(spec.name);
        log.mistake(spec.place, &at.key("transport").to_string(), message, None);
        return false;
    }
    true
}

fn copies_of(
    spec: &FlowTable<'_>,
    links: &Links,
    duration: Option<Duration>,
    at: At<'_>,
    contents: &Contents,
    log: &mut Log,
) -> Option<Vec<Flow>> {
    let steps = first_step(spec.table).is_some();
    let mut flows = Vec::new();
    let mut shared = None;
    for number in 1..=spec.count {
        let stepped;
        let table = if steps {
            stepped = for_copy(spec.table, number, at, log);
            &stepped
        } else {
            spec.table
        };
        let section = Section::new(table, FLOW.keys, at, spec.place);
        let routes = routes(&section, links, number, log);
        let both = section.choice("direction")? == "both";
        if steps || shared.is_none() {
            let mtu = routes.as_ref().and_then(|routes| {
                let second = routes.second_path.iter().flat_map(SecondPath::links);
                links.least_mtu(routes.route.iter().chain(&routes.return_route).chain(second))
            });
            shared = one(&section, spec.name, mtu, duration, contents, log);
        }
        let flow = shared.clone()?;
        let Routes { route, return_route, second_path, direction } = routes?;
        if second_path.is_some() && !flow.transport.wants_multipath() {
            let message = "found it without `multipath = true` in the `transport`, expected one path";
            section.problem("second_route", Problem::new(message), log);
            return None;
        }
        if !is_held_back(&flow)
            && links.is_instant(route.iter().chain(&return_route))
            && let Some(problem) =
                transports::flood(flow.workload.demand(), "links without a `rate` and a `delay`")
        {
            let help = "time would stand still: give a link a `rate` or a `delay`";
            section.problem("workload", problem.with_help(help), log);
            return None;
        }
        let name = if spec.count == 1 { spec.name.to_owned() } else { format!("{}-{number}", spec.name) };
        let mut up = Flow { name, route, return_route, second_path, direction, ..flow };
        if let TransportConfig::Quic(QuicConfig { connection: Some(connection), .. }) = &mut up.transport
            && spec.count > 1
        {
            connection.push_str(&format!("-{number}"));
        }
        if both {
            let down = way_back(&up);
            flows.push(Flow { name: format!("{}-up", up.name), direction: Direction::Up, ..up });
            flows.push(down);
        } else {
            flows.push(up);
        }
    }
    Some(flows)
}

/// The flow in the other direction of `up`, over its routes the other way.
fn way_back(up: &Flow) -> Flow {
    Flow {
        name: format!("{}-down", up.name),
        direction: Direction::Down,
        route: up.return_route.clone(),
        return_route: up.route.clone(),
        second_path: up
            .second_path
            .clone()
            .map(|path| SecondPath { route: path.return_route, return_route: path.route }),
        ..up.clone()
    }
}

/// Whether a host takes time for what `flow` sends, so that a transport that waits for acknowledgements
/// cannot send for ever at one moment. What the far application takes comes to the sender through the window
/// of a reliable transport alone: the others acknowledge also what then finds no room. What waits for no
/// acknowledgement has its own bound.
fn is_held_back(flow: &Flow) -> bool {
    let features = flow.transport.kind().features();
    let reader_takes_time = !flow.wake_up.is_zero() || !flow.receiver.service.is_zero();
    !features.is_acknowledged || !flow.send_jitter.is_zero() || (features.is_reliable && reader_takes_time)
}

/// Where a copy's packets go.
struct Routes {
    route: Vec<LinkIndex>,
    return_route: Vec<LinkIndex>,
    second_path: Option<SecondPath>,
    /// Of the way there.
    direction: Direction,
}

/// There and back for copy `number`, and the direction of the way there.
fn routes(section: &Section<'_>, links: &Links, number: u64, log: &mut Log) -> Option<Routes> {
    let direction = match section.choice("direction")? {
        "down" => Direction::Down,
        _ => Direction::Up,
    };
    let (there, back) = match direction {
        Direction::Up => ("up", "down"),
        Direction::Down => ("down", "up"),
    };
    let mut find = |key: &'static str, default: Option<&'static str>| -> Option<Vec<LinkIndex>> {
        let at = section.at.key(key);
        let Some(node) = section.node(key) else {
            if let Some(default) = default.filter(|_| links.is_path) {
                return links.find(default, number).ok().map(|index| vec![index]);
            }
            if !links.is_missing() {
                let message =
                    format!("missing; with `link` tables a flow names its links, as {key} = [\"wan\"]");
                log.mistake(section.place, &at.to_string(), message, None);
            }
            return None;
        };
        let names = node.names()?;
        if links.is_missing() {
            return None;
        }
        link::route(links, names, number).map_err(|(place, problem)| log.problem(place, at, problem)).ok()
    };
    let route = find("route", Some(there));
    let return_route = find("return_route", Some(back));
    // Either of the two needs the other.
    let has_second = ["second_route", "second_return_route"].iter().any(|key| section.node(key).is_some());
    let second = has_second.then(|| (find("second_route", None), find("second_return_route", None)));
    let second_path = match second {
        Some((route, return_route)) => Some(SecondPath { route: route?, return_route: return_route? }),
        None => None,
    };
    Some(Routes { route: route?, return_route: return_route?, second_path, direction })
}

/// A flow but for its name, its routes and its direction.
fn one(
    section: &Section<'_>,
    group: &str,
    mtu: Option<Bytes>,
    duration: Option<Duration>,
    contents: &Contents,
    log: &mut Log,
) -> Option<Flow> {
    let transport = transports::resolve(section, mtu, log);
    let largest = |mtu| transports::largest_message(&transport.as_ref()?.config, mtu);
    let message = mtu.and_then(largest).map_or(LARGEST_BULK_MESSAGE, |largest| largest.max(LEAST_MESSAGE));
    let is_stream = transport.as_ref().is_some_and(|it| !it.config.kind().features().keeps_messages);
    let header = if is_stream { Bytes::ZERO } else { FILE_HEADER };
    let load = workloads::resolve(
        section,
        duration,
        FileTerms { size: &|source| contents.size(source), message, header },
        log,
    );
    let start = start(section, duration, log);
    let receiver = receiver(section);
    if let (Some(transport), Some(load)) = (&transport, &load) {
        let room = receiver.and_then(|receiver| receiver.socket_buffer);
        let fit = Fit { flow: section, demand: load.workload.demand(), room, mtu };
        transports::fit(&transport.config, &fit, log);
    }
    let (transport, Load { workload, judging, echo }) = (transport?, load?);
    let dscp = Dscp::named(section.choice("dscp")?);
    if dscp.is_some() && transport.config.wants_multipath() {
        let message = "found it beside `multipath = true`, expected one of the two";
        let why = "a socket of Multipath TCP takes no DSCP over IPv6";
        section.problem("dscp", Problem::new(message).with_help(why), log);
        return None;
    }
    Some(Flow {
        name: String::new(),
        group: group.to_owned(),
        transport: transport.config,
        transport_name: transport.name.to_owned(),
        asked_for: transport.asked_for,
        workload,
        judging,
        echo,
        direction: Direction::Up,
        start: start?,
        due: if section.choice("due")? == "opening" { Due::Opening } else { Due::Start },
        route: Vec::new(),
        return_route: Vec::new(),
        second_path: None,
        send_jitter: section.duration("send_jitter")?,
        wake_up: section.duration("wake_up")?,
        clock_jitter: section.duration("clock_jitter")?,
        dscp,
        receiver: receiver?,
    })
}

fn start(section: &Section<'_>, duration: Option<Duration>, log: &mut Log) -> Option<(Duration, Duration)> {
    let Some(Meaning::Range(from, to)) = section.meaning("start") else { return None };
    if let Some(duration) = duration
        && to >= duration
    {
        let message =
            format!("found a start at {to}, expected one before the end of sending, `duration` = {duration}");
        section.problem("start", Problem::new(message), log);
        return None;
    }
    Some((from, to))
}

fn receiver(flow: &Section<'_>) -> Option<Receiver> {
    let node = flow.node("receiver")?;
    let section = Section::new(node.as_table()?, RECEIVER.keys, flow.at.key("receiver"), &node.place);
    Some(Receiver {
        service: section.duration("service")?,
        per_read: section.choice("service_per")? == "read",
        socket_buffer: section.bytes_or_word("socket_buffer")?,
    })
}

/// What a datagram of a file carries besides: the flow's token, a sequence number and a tag
/// (docs/models/live.md).
const FILE_HEADER: Bytes = Bytes::new(16);

/// Messages of a file over UDP are no smaller, whatever the MTU: fragments are then the scenario's wish.
const LEAST_MESSAGE: Bytes = Bytes::new(64);
