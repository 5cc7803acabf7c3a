//! Makes the flows of a scenario: copies, directions, routes, and the checks between workload and transport.
//!
//! - A *flow table* is one `[flow.NAME]` of the file.
//! - A flow table with `count = 3` makes three *copies*, `NAME-1` to `NAME-3`. With `direction = "both"` each
//!   copy is two flows, `NAME-1-up` and `NAME-1-down`.
//! - All flows of one table are a *group*, which has the name of the table.
//! - A value *steps* if it is `{ from, step }`, so that it differs from copy to copy.
//!
//! Begin to read with [`resolve_flows`].

use talkpath_config::{QuicConfig, TransportConfig};
use talkpath_model::{Direction, Dscp, Due, Flow, LARGEST_BULK_MESSAGE, LinkIndex, Receiver, SecondPath};
use talkpath_units::{Bytes, Duration};

use super::link::{self, Links, NameInRoute};
use crate::contents::Contents;
use crate::diagnostic::{Log, Place};
use crate::keys::{FLOW, RECEIVER};
use crate::quantity::Problem;
use crate::read::KeyPath;
use crate::section::{Section, first_step, for_copy};
use crate::spec::MOST_FLOWS;
use crate::threshold::PROGRAM;
use crate::transports::{self, Fit, Transport};
use crate::tree::{Meaning, Node, Table};
use crate::workloads::{self, FlowTerms, Load};

pub(crate) struct FlowTable<'a> {
    name: &'a str,
    place: &'a Place,
    table: &'a Table,
    /// The number of copies. It is 1 if `count` is wrong, and 0 if the flow is left out.
    copies: u64,
}

/// The parts of a scenario that its flows depend on.
pub(crate) struct FlowContext<'a> {
    pub(crate) links: &'a Links,
    /// The time for which flows send. `None` if the file has a mistake in it.
    pub(crate) duration: Option<Duration>,
    pub(crate) contents: &'a Contents,
}

impl<'a> FlowTable<'a> {
    pub(crate) fn named_links(&self) -> Vec<NameInRoute<'a>> {
        let mut links = Vec::new();
        for key in ["route", "return_route", "second_route", "second_return_route"] {
            if let Some(names) = self.table.get(key).and_then(|node| node.names()) {
                links.extend(names.map(|(name, _)| NameInRoute { name, copies: self.copies }));
            }
        }
        links
    }
}

/// Reads the flow tables of `root`, and checks that they do not make too many flows.
pub(crate) fn flow_tables<'a>(root: &'a Table, log: &mut Log) -> Vec<FlowTable<'a>> {
    let parent = KeyPath::ROOT.key("flow");
    let mut flow_tables = Vec::new();
    let mut flow_count = 0_u64;
    let flow_node = root.get("flow").and_then(Node::as_table);
    let has_program = root.get(PROGRAM).is_some();
    for entry in flow_node.map_or(&[][..], |table| &table.entries) {
        let Some(table) = entry.node.as_table() else { continue };
        if entry.name == PROGRAM && has_program {
            let message = "found a flow called \"program\" beside `[program]`, whose figures thresholds and tables name by this word";
            log.mistake(&entry.place, "flow", Problem::new(message).with_help("give the flow another name"));
        }
        let section = Section::new(table, FLOW.keys, parent.key(&entry.name), &entry.place);
        let copies = section.count("count").unwrap_or(1);
        let directions = if section.choice("direction") == Some("both") { 2 } else { 1 };
        flow_count = flow_count.saturating_add(copies * directions);
        if flow_count > MOST_FLOWS {
            let message = format!(
                "found {flow_count} flows up to here, copies and directions counted; expected at most {MOST_FLOWS}"
            );
            section.problem("count", message, log);
            break;
        }
        flow_tables.push(FlowTable { name: &entry.name, place: &entry.place, table, copies });
    }
    if flow_tables.is_empty() && !has_program {
        log.mistake(
            &Place::START,
            "flow",
            "missing; a scenario needs at least one [flow.NAME], or [program]",
        );
    } else if flow_count == 0 && !has_program {
        let message = "found `count = 0` in every flow; a scenario needs at least one flow, or [program]";
        log.mistake(&Place::START, "flow", message);
    }
    flow_tables
}

/// Makes every flow of `flow_tables`. Returns `None` if a flow has mistakes.
pub(crate) fn resolve_flows(
    flow_tables: &[FlowTable<'_>],
    context: &FlowContext<'_>,
    log: &mut Log,
) -> Option<Vec<Flow>> {
    let mut flows = Vec::new();
    let mut is_complete = true;
    for flow_table in flow_tables {
        // The other tables are read after a mistake, too, so that all mistakes are reported at once.
        match resolve_copies(flow_table, context, log) {
            Some(copies) => flows.extend(copies),
            None => is_complete = false,
        }
    }
    let is_right =
        is_complete && check_names(flow_tables, &flows, log) && check_connections(flow_tables, &flows, log);
    is_right.then_some(flows)
}

/// Reports two flows with one name: the copy `call-1` of the table `call`, and a table `call-1`.
fn check_names(flow_tables: &[FlowTable<'_>], flows: &[Flow], log: &mut Log) -> bool {
    let mut names: Vec<_> = flows.iter().map(|flow| flow.name.as_str()).collect();
    names.sort_unstable();
    let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) else { return true };
    let duplicate = pair[0];
    let last = flows.iter().rev().find(|flow| flow.name == duplicate);
    let flow_table = flow_tables.iter().find(|table| last.is_some_and(|flow| flow.group == table.name));
    let place = flow_table.map_or(&Place::START, |table| table.place);
    let message = format!("two flows come out with the name {duplicate:?}; rename one");
    log.mistake(place, "flow", message);
    false
}

/// Reports flows of one QUIC connection that do not agree on its properties, at most one flow of each table.
fn check_connections(flow_tables: &[FlowTable<'_>], flows: &[Flow], log: &mut Log) -> bool {
    let mut is_right = true;
    for flow_table in flow_tables {
        let mut group = flows.iter().filter(|flow| flow.group == flow_table.name);
        let Some(message) = group.find_map(|flow| connection_conflict(flow, flows)) else { continue };
        log.mistake(flow_table.place, format!("flow.{}.transport", flow_table.name), message);
        is_right = false;
    }
    is_right
}

/// Compares `flow` with the first flow of its connection. A connection has one route, one congestion control,
/// one pair of timers, and one kind of handshake and encryption. Returns the message if `flow` has another
/// one.
fn connection_conflict(flow: &Flow, flows: &[Flow]) -> Option<String> {
    let quic = flow.transport.as_quic()?;
    let connection = quic.connection.as_deref()?;
    let is_member = |other: &&Flow| {
        other.transport.as_quic().is_some_and(|quic| quic.connection.as_deref() == Some(connection))
    };
    let first = flows.iter().find(is_member)?;
    let first_quic = first.transport.as_quic()?;
    let property = if (&flow.route, &flow.return_route) != (&first.route, &first.return_route) {
        "routes"
    } else if quic.cc != first_quic.cc {
        "`cc`"
    } else if quic.zero_rtt != first_quic.zero_rtt {
        "`zero_rtt`"
    } else if quic.idle_timeout != first_quic.idle_timeout {
        "`idle_timeout`"
    } else if quic.keep_alive != first_quic.keep_alive {
        "`keep_alive`"
    } else if quic.encryption != first_quic.encryption {
        "`encryption`"
    } else {
        return None;
    };
    Some(format!(
        "found the connection {connection:?} of the flow {} with another {property}: flows of one connection agree on it",
        first.name
    ))
}

fn resolve_copies(flow_table: &FlowTable<'_>, context: &FlowContext<'_>, log: &mut Log) -> Option<Vec<Flow>> {
    let parent = KeyPath::ROOT.key("flow");
    let at = parent.key(flow_table.name);
    let has_steps = first_step(flow_table.table).is_some();
    let mut flows = Vec::new();
    // Copies without steps differ in their names and routes alone, so everything else is resolved once.
    let mut template = None;
    for number in 1..=flow_table.copies {
        let stepped_table;
        let table = if has_steps {
            stepped_table = for_copy(flow_table.table, number, at, log);
            &stepped_table
        } else {
            flow_table.table
        };
        let section = Section::new(table, FLOW.keys, at, flow_table.place);
        let routes = Routes::read(&section, context.links, number, log);
        let is_both_ways = section.choice("direction")? == "both";
        if has_steps || template.is_none() {
            let mtu = routes.as_ref().and_then(|routes| context.links.least_mtu(routes.links()));
            template = resolve_template(&section, flow_table.name, mtu, context, log);
        }
        let Routes { route, return_route, second_path, direction } = routes?;
        let name = match flow_table.copies {
            1 => flow_table.name.to_owned(),
            _ => format!("{}-{number}", flow_table.name),
        };
        let mut flow = Flow { name, route, return_route, second_path, direction, ..template.clone()? };
        number_connection(&mut flow, flow_table, number);
        if let Err(problem) = check_second_path(&flow) {
            section.problem("second_route", problem, log);
            return None;
        }
        if let Err(problem) = check_time_passes(&flow, context.links) {
            section.problem("workload", problem, log);
            return None;
        }
        if is_both_ways {
            let down = reverse(&flow);
            flows.push(Flow { name: format!("{}-up", flow.name), direction: Direction::Up, ..flow });
            flows.push(down);
        } else {
            flows.push(flow);
        }
    }
    Some(flows)
}

/// Gives each copy a connection of its own: the copies number 2 of several tables share one.
fn number_connection(flow: &mut Flow, flow_table: &FlowTable<'_>, number: u64) {
    if let TransportConfig::Quic(QuicConfig { connection: Some(connection), .. }) = &mut flow.transport
        && flow_table.copies > 1
    {
        connection.push_str(&format!("-{number}"));
    }
}

fn check_second_path(flow: &Flow) -> Result<(), Problem> {
    if flow.second_path.is_some() && !flow.transport.wants_multipath() {
        let message = "found it without `multipath = true` in the `transport`, expected one path";
        return Err(Problem::new(message));
    }
    Ok(())
}

/// Checks that a flow over links without rate and delay does not send forever at one moment of virtual time.
fn check_time_passes(flow: &Flow, links: &Links) -> Result<(), Problem> {
    if takes_time_at_a_host(flow) || !links.is_instant(flow.route.iter().chain(&flow.return_route)) {
        return Ok(());
    }
    match transports::flood(flow.workload.demand(), "links without a `rate` and a `delay`") {
        Some(problem) => Err(problem.with_help("time would stand still: give a link a `rate` or a `delay`")),
        None => Ok(()),
    }
}

/// Whether a host takes time for what `flow` sends, so that a transport that waits for acknowledgements
/// cannot send forever at one moment.
///
/// The time of the receiving application reaches the sender through the window of a reliable transport alone.
/// Other transports also acknowledge a message for which the receiver then has no room. A transport without
/// acknowledgements has a check of its own (`transports::udp`).
fn takes_time_at_a_host(flow: &Flow) -> bool {
    let features = flow.transport.kind().features();
    let reader_takes_time = !flow.wake_up.is_zero() || !flow.receiver.service.is_zero();
    !features.is_acknowledged || !flow.send_jitter.is_zero() || (features.is_reliable && reader_takes_time)
}

/// Returns the flow in the opposite direction of `up`, over the same links.
fn reverse(up: &Flow) -> Flow {
    let second_path = up.second_path.clone();
    Flow {
        name: format!("{}-down", up.name),
        direction: Direction::Down,
        route: up.return_route.clone(),
        return_route: up.route.clone(),
        second_path: second_path
            .map(|path| SecondPath { route: path.return_route, return_route: path.route }),
        ..up.clone()
    }
}

/// The links that the packets of one copy cross.
struct Routes {
    /// The links from the sender to the receiver.
    route: Vec<LinkIndex>,
    /// The links from the receiver to the sender.
    return_route: Vec<LinkIndex>,
    second_path: Option<SecondPath>,
    /// The direction of `route`.
    direction: Direction,
}

impl Routes {
    /// Reads the routes of copy `number`. Returns `None` if a route has mistakes.
    fn read(section: &Section<'_>, links: &Links, number: u64, log: &mut Log) -> Option<Self> {
        // The links that a flow over a `path` crosses if it names none.
        let (direction, default_link, default_return_link) = match section.choice("direction")? {
            "down" => (Direction::Down, "down", "up"),
            _ => (Direction::Up, "up", "down"),
        };
        let reader = RouteReader { section, links, number };
        let route = reader.read("route", Some(default_link), log);
        let return_route = reader.read("return_route", Some(default_return_link), log);
        // A second path needs both of its routes.
        let mut second_path = None;
        if section.node("second_route").is_some() || section.node("second_return_route").is_some() {
            let route = reader.read("second_route", None, log);
            let return_route = reader.read("second_return_route", None, log);
            second_path = Some(SecondPath { route: route?, return_route: return_route? });
        }
        Some(Self { route: route?, return_route: return_route?, second_path, direction })
    }

    fn links(&self) -> impl Iterator<Item = &LinkIndex> {
        let second = self.second_path.iter().flat_map(SecondPath::links);
        self.route.iter().chain(&self.return_route).chain(second)
    }
}

/// Reads the routes of one copy of a flow.
struct RouteReader<'a> {
    section: &'a Section<'a>,
    links: &'a Links,
    /// The number of the copy, from 1.
    number: u64,
}

impl RouteReader<'_> {
    /// Reads the route that `key` names. `default_link` is for a flow over a `path` that has no such key.
    fn read(&self, key: &'static str, default_link: Option<&str>, log: &mut Log) -> Option<Vec<LinkIndex>> {
        let at = self.section.at.key(key);
        let Some(node) = self.section.node(key) else {
            if let Some(default_link) = default_link
                && self.links.is_path
            {
                return self.links.find(default_link, self.number).ok().map(|index| vec![index]);
            }
            if !self.links.is_missing() {
                let message =
                    format!("missing; with `link` tables a flow names its links, as {key} = [\"wan\"]");
                log.mistake(self.section.place, at, message);
            }
            return None;
        };
        let names = node.names()?;
        if self.links.is_missing() {
            return None;
        }
        match link::route(self.links, names, self.number) {
            Ok(route) => Some(route),
            Err((place, problem)) => {
                log.mistake(place, at, problem);
                None
            }
        }
    }
}

/// Makes a flow without its name, its routes and its direction. `mtu` is the smallest MTU of its routes.
fn resolve_template(
    section: &Section<'_>,
    group: &str,
    mtu: Option<Bytes>,
    context: &FlowContext<'_>,
    log: &mut Log,
) -> Option<Flow> {
    let duration = context.duration;
    let transport = transports::resolve(section, mtu, log);
    let is_stream =
        transport.as_ref().is_some_and(|transport| !transport.config.kind().features().keeps_messages);
    let terms = FlowTerms {
        size: &|source| context.contents.size(source),
        file_message: file_message(transport.as_ref(), mtu),
        file_header: file_header(transport.as_ref()),
        is_stream,
    };
    let load = workloads::resolve(section, duration, terms, log);
    let start = start(section, duration, log);
    let receiver = receiver(section);
    if let (Some(transport), Some(load)) = (&transport, &load) {
        let room = receiver.and_then(|receiver| receiver.socket_buffer);
        let fit = Fit { flow: section, demand: load.workload.demand(), room, mtu };
        transports::fit(&transport.config, &fit, log);
    }
    // Everything that can have a mistake was read by now, so `?` hides none.
    let (transport, Load { workload, judging, echo }) = (transport?, load?);
    let dscp = Dscp::named(section.choice("dscp")?);
    if dscp.is_some() && transport.config.wants_multipath() {
        let message = "found it beside `multipath = true`, expected one of the two";
        let help = "a socket of Multipath TCP takes no DSCP over IPv6";
        section.problem("dscp", Problem::new(message).with_help(help), log);
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

/// Returns the size of a file's messages if the scenario does not say: the largest that crosses the routes in
/// one packet, or that of a bulk transfer if the transport has no such limit.
fn file_message(transport: Option<&Transport>, mtu: Option<Bytes>) -> Bytes {
    let largest = match (transport, mtu) {
        (Some(transport), Some(mtu)) => transports::largest_message(&transport.config, mtu),
        _ => None,
    };
    largest.map_or(LARGEST_BULK_MESSAGE, |largest| largest.max(SMALLEST_FILE_MESSAGE))
}

/// We chose 64 B as the smallest message of a file. On a path with a smaller MTU the messages are fragmented.
const SMALLEST_FILE_MESSAGE: Bytes = Bytes::new(64);

/// Returns the number of bytes in each message of a file that do not belong to the file. A stream needs none.
fn file_header(transport: Option<&Transport>) -> Bytes {
    match transport {
        Some(transport) if !transport.config.kind().features().keeps_messages => Bytes::ZERO,
        _ => DATAGRAM_HEADER,
    }
}

/// The flow's token, a sequence number and a tag (docs/models/live.md).
const DATAGRAM_HEADER: Bytes = Bytes::new(16);

/// Reads the range from which the start of a flow is drawn. It must lie before the end of sending.
fn start(section: &Section<'_>, duration: Option<Duration>, log: &mut Log) -> Option<(Duration, Duration)> {
    let Some(Meaning::Range(from, to)) = section.meaning("start") else { return None };
    if let Some(duration) = duration
        && to >= duration
    {
        let message =
            format!("found a start at {to}, expected one before the end of sending, `duration` = {duration}");
        section.problem("start", message, log);
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
