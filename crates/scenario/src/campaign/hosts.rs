//! Reads the hosts of a campaign and the pairs of hosts, and checks that each host can play its part.

use core::net::IpAddr;

use talkpath_model::host_and_port;

use super::tables::{NamedTable, named_tables};
use super::types::{Host, HostPair, Measure};
use crate::diagnostic::Log;
use crate::keys::HOST;
use crate::quantity::{Problem, quote};
use crate::read::{KeyPath, nearest};
use crate::section::Section;
use crate::tree::{Node, Table, Value};

/// Reads every `[host.NAME]`. `campaign_key_file` is for hosts that name no `key_file`.
pub(super) fn read_hosts(root: &Table, campaign_key_file: Option<&str>, log: &mut Log) -> Vec<Host> {
    let mut hosts = Vec::new();
    for NamedTable { name, table, place } in named_tables(root, "host") {
        let parent = KeyPath::ROOT.key("host");
        let section = Section::new(table, HOST.keys, parent.key(name), place);
        let host = read_host(name, &section, campaign_key_file);
        check_host(&host, &section, log);
        if host.starts_server {
            check_started_server(&host, &section, log);
        }
        hosts.push(host);
    }
    hosts
}

fn read_host(name: &str, section: &Section<'_>, campaign_key_file: Option<&str>) -> Host {
    let text = |key: &str| section.text(key).map(str::to_owned);
    let via = section.names("via").map(|words| words.map(|(word, _)| word.to_owned()).collect());
    Host {
        name: name.to_owned(),
        address: text("address"),
        key_file: text("key_file").or_else(|| campaign_key_file.map(str::to_owned)),
        ssh: text("ssh"),
        local: section.flag("local").unwrap_or(false),
        via: via.unwrap_or_default(),
        program: text("program").unwrap_or_else(|| "talkpath".to_owned()),
        starts_server: section.choice("server") == Some("start"),
        bind: text("bind"),
        at_once: section.count("at_once").unwrap_or(1),
        emulated: text("emulated"),
    }
}

/// Checks the keys of one host together.
fn check_host(host: &Host, section: &Section<'_>, log: &mut Log) {
    if host.local && host.ssh.is_some() {
        let message = "found `local = true` and an `ssh` name, expected one of them";
        section.problem("ssh", message, log);
    }
    if let Some(address) = &host.address
        && let Err(why) = host_and_port(address)
    {
        section.problem("address", why, log);
    }
    if host.emulated.is_some() && (host.address.is_some() || host.starts_server) {
        let message = "found an emulated path to a host with an address, expected one of them";
        section.problem("emulated", message, log);
    }
}

/// Checks that measurements can start a server on `host`, and that nobody else can use the server.
fn check_started_server(host: &Host, section: &Section<'_>, log: &mut Log) {
    if host.ssh.is_none() && !host.local {
        let message = "found \"start\" for a host on which talkpath cannot start a program";
        section.problem("server", Problem::new(message).with_help(SSH_OR_LOCAL), log);
    }
    if host.address.is_none() {
        let message = "found \"start\" without an `address`, expected the address of the server";
        section.problem("server", message, log);
    }
    if host.at_once > 1 {
        // Two servers cannot listen on one address.
        let message = format!("found {}, expected 1: each measurement starts its own server", host.at_once);
        let help = "keep one server running there: `talkpath serve`";
        section.problem("at_once", Problem::new(message).with_help(help), log);
    }
    if host.key_file.is_none() && !host.address.as_deref().is_some_and(is_loopback) {
        let message =
            "found \"start\" without a `key_file`, expected one: otherwise anybody could use the server";
        section.problem("server", message, log);
    }
}

/// Whether only programs of the same machine reach `address`.
fn is_loopback(address: &str) -> bool {
    let Ok((host, _)) = host_and_port(address) else { return false };
    host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Reads `between`, the pairs of measures that name no pairs.
pub(super) fn read_between(section: &Section<'_>, hosts: &[Host], log: &mut Log) -> Vec<HostPair> {
    let Some((kind, choice)) = section.tagged("between") else { return Vec::new() };
    match kind {
        "hub" => read_hub(&choice, hosts, log),
        "pairs" => choice.node("pairs").map_or_else(Vec::new, |node| read_pairs(node, choice.at, hosts, log)),
        _ => mesh(hosts.len()),
    }
}

/// Returns each pair of hosts once. The host that the file names first is the near one.
fn mesh(host_count: usize) -> Vec<HostPair> {
    let mut pairs = Vec::new();
    for near in 0..host_count {
        pairs.extend((near + 1..host_count).map(|far| HostPair { near, far }));
    }
    pairs
}

fn read_hub(choice: &Section<'_>, hosts: &[Host], log: &mut Log) -> Vec<HostPair> {
    let Some(name) = choice.text("hub") else { return Vec::new() };
    match find_host(name, hosts) {
        Ok(near) => (0..hosts.len()).filter(|far| *far != near).map(|far| HostPair { near, far }).collect(),
        Err(problem) => {
            choice.problem("hub", problem, log);
            Vec::new()
        }
    }
}

/// Reads a list of pairs such as `"berlin > tokyo"`. `at` is the table that holds the key `pairs`.
pub(super) fn read_pairs(node: &Node, at: KeyPath<'_>, hosts: &[Host], log: &mut Log) -> Vec<HostPair> {
    let Value::List(items) = &node.value else { return Vec::new() };
    let mut pairs = Vec::new();
    for item in items {
        // An item that is no text is a mistake, which the key tables have found.
        let Some(text) = item.as_text() else { continue };
        match parse_pair(text, hosts) {
            Ok(pair) if pairs.contains(&pair) => {
                let problem = Problem::new(format!("found {} twice", quote(text)));
                log.mistake(&item.place, at.key("pairs"), problem);
            }
            Ok(pair) => pairs.push(pair),
            Err(problem) => log.mistake(&item.place, at.key("pairs"), problem),
        }
    }
    pairs
}

fn parse_pair(text: &str, hosts: &[Host]) -> Result<HostPair, Problem> {
    let Some((near, far)) = text.split_once('>') else {
        let message = format!("found {}, expected a pair such as \"berlin > tokyo\"", quote(text));
        return Err(Problem::new(message));
    };
    let pair = HostPair { near: find_host(near.trim(), hosts)?, far: find_host(far.trim(), hosts)? };
    if pair.near == pair.far {
        return Err(Problem::new(format!("found {}, expected two different hosts", quote(text))));
    }
    Ok(pair)
}

fn find_host(name: &str, hosts: &[Host]) -> Result<usize, Problem> {
    if let Some(index) = hosts.iter().position(|host| host.name == name) {
        return Ok(index);
    }
    let known_names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let help = match nearest(name, known_names.iter().copied()) {
        Some(similar) => format!("did you mean \"{similar}\"?"),
        None => format!("hosts: {}", known_names.join(", ")),
    };
    Err(Problem::new(format!("found {}, expected the name of a host", quote(name))).with_help(help))
}

/// Checks that each host can do what its pairs require: near hosts start programs, far hosts have an address.
pub(super) fn check_roles(root: &Table, hosts: &[Host], measures: &[Measure], log: &mut Log) {
    let pairs: Vec<HostPair> = measures.iter().flat_map(|measure| measure.pairs.iter().copied()).collect();
    for (index, host) in hosts.iter().enumerate() {
        let Some(entry) = root.get("host").and_then(Node::as_table).and_then(|table| table.entry(&host.name))
        else {
            continue;
        };
        let key = format!("host.{}", host.name);
        let is_near = pairs.iter().any(|pair| pair.near == index);
        if is_near && host.ssh.is_none() && !host.local {
            let message = "measurements start on this host, but talkpath cannot start a program there";
            log.mistake(&entry.place, &key, Problem::new(message).with_help(SSH_OR_LOCAL));
        }
        let is_far = pairs.iter().any(|pair| pair.far == index);
        if is_far && host.address.is_none() && host.emulated.is_none() {
            let message = "other hosts measure to this host, but it has no `address`";
            let help = "give `address = \"HOST:PORT\"` of its server".to_owned();
            log.mistake(&entry.place, &key, Problem::new(message).with_help(help));
        }
        let remote_pair = pairs.iter().find(|pair| pair.far == index && !hosts[pair.near].local);
        if let (Some(_), Some(pair)) = (&host.emulated, remote_pair) {
            let near = &hosts[pair.near].name;
            let message = format!("the path to this host is emulated on {near}, which is not `local`");
            log.mistake(&entry.place, &key, message);
        }
    }
}

const SSH_OR_LOCAL: &str = "give `ssh = \"NAME\"`, or `local = true`";
