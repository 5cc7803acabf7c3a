//! A campaign file: which hosts are measured with which, over what, and when.
//!
//! ```text
//! text ─► tree (spans) ─► key tables (all mistakes at once) ─► Campaign
//! ```
//!
//! The tree, the key tables and the messages are the scenarios' own. What a measurement runs is a scenario:
//! that of its file, or one made of `workload`, `transports` and `duration` ([`Measure::source`]).

use core::fmt::Write as _;
use core::net::IpAddr;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use talkpath_model::host_and_port;
use talkpath_units::{Duration, counted};
use toml_edit::{DocumentMut, Item};

use crate::compare::Compared;
use crate::diagnostic::{Diagnostics, Log, Place, Source};
use crate::keys::{self, CAMPAIGN};
use crate::options::{Setting, fitting_name};
use crate::pass::check::{self, Checks};
use crate::pass::fill;
use crate::quantity::{Problem, quote};
use crate::read::{self, At, nearest};
use crate::section::{Section, first_step};
use crate::spec::{Kind, TableSpec};
pub use crate::store_command::StoreCommand;
use crate::store_command::{OLD_KEYS, refuse_old_keys};
use crate::tree::{self, Table};

/// A campaign file, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Campaign {
    /// What the directory and the report are called.
    pub name: String,
    /// Everything random follows from it.
    pub seed: u64,
    /// In the order of the file.
    pub hosts: Vec<Host>,
    /// In the order of the file.
    pub measures: Vec<Measure>,
    /// When.
    pub schedule: Schedule,
    /// What copies records to a store.
    pub store_command: Option<StoreCommand>,
}

/// A place to measure from or to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name in the file, in tables and in file names.
    pub name: String,
    /// `HOST[:PORT]` of its server.
    pub address: Option<String>,
    /// The key of its server.
    pub key_file: Option<String>,
    /// What `ssh` calls it.
    pub ssh: Option<String>,
    /// Whether it is the machine that coordinates.
    pub local: bool,
    /// Words before each command.
    pub via: Vec<String>,
    /// What `talkpath` is called there.
    pub program: String,
    /// Whether each measurement starts a server there.
    pub starts_server: bool,
    /// Where a server that is started listens.
    pub bind: Option<String>,
    /// Measurements at the same time.
    pub at_once: u64,
    /// The file that describes the emulated way to it.
    pub emulated: Option<String>,
}

/// What runs between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Its name in the file.
    pub name: String,
    /// Indices of the hosts that it runs between: near, far.
    pub pairs: Vec<(usize, usize)>,
    /// What it runs.
    pub what: What,
    /// As a scenario's key; `None` leaves the scenario's.
    pub drain: Option<Duration>,
    /// Rounds of one measurement; `None` leaves the scenario's `repeat`.
    pub rounds: Option<u64>,
}

/// What a measurement runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A scenario file.
    File(String),
    /// A workload over each of several transports.
    Made {
        /// What is carried.
        workload: Compared,
        /// Over what.
        transports: Vec<String>,
        /// How long each sends in a round.
        duration: Duration,
    },
}

/// When a campaign runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// A zone of the IANA database.
    pub zone: String,
    /// When the first day begins by that zone's clocks; `None` is when the plan is made.
    pub start: Option<DateTime>,
    /// From one measurement of a pair to the next.
    pub every: Duration,
    /// How many days.
    pub days: u64,
    /// How long a day is.
    pub day: Duration,
    /// The range that the start is drawn from.
    pub start_within: Duration,
    /// Until when after its time a measurement may begin.
    pub window: Duration,
    /// The first wait after a failure.
    pub retry: Duration,
}

impl Campaign {
    /// Reads a campaign file.
    ///
    /// # Errors
    /// Every mistake in it, in the order of the file.
    pub fn load(source: &Source) -> Result<Self, Diagnostics> {
        let mut log = Log::default();
        let mut root = tree::parse(&source.text, &mut log);
        let is_toml = log.is_clean();
        if is_toml && root.entries.is_empty() {
            let message =
                "found nothing; a campaign needs [host.NAME] and [measure.NAME] tables and a [schedule]";
            log.mistake(&Place::START, "", message, None);
        }
        let checks = if is_toml && log.is_clean() { Checks::ALL } else { Checks::PRESENT };
        let is_old = |entry: &tree::Entry| OLD_KEYS.contains(&entry.name.as_str());
        let (old, entries) = root.entries.into_iter().partition::<Vec<_>, _>(is_old);
        root.entries = entries;
        refuse_old_keys(&old, &mut log);
        let root = check::check(root, &CAMPAIGN, checks, &mut log);
        let filled = fill::fill_table(root, &CAMPAIGN, &Place::START);
        let campaign = campaign(&filled, &source.name, &mut log);
        let (list, _) = log.finish(source, &[]);
        match campaign {
            Some(campaign) if list.is_empty() => Ok(campaign),
            _ => Err(Diagnostics { source: source.name.clone(), list }),
        }
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

impl Measure {
    /// The scenario of a [`What::Made`] one.
    pub fn source(&self) -> Option<Source> {
        let What::Made { workload, transports, duration } = &self.what else { return None };
        let drain = self.drain.unwrap_or(DRAIN);
        let (flow, workload) = (workload.flow(), workload.toml());
        let transports: Vec<String> = transports.iter().map(|name| format!("{name:?}")).collect();
        let mut text = String::new();
        let _ = write!(
            text,
            "name = {:?}\nduration = \"{duration}\"\ndrain = \"{drain}\"\nrepeat = {}\n\n[flow.{flow}]\n\
             transport = \"tcp\"\nworkload = {workload}\n\n[sweep]\n\"flow.{flow}.transport\" = [{}]\n",
            self.name,
            self.rounds.unwrap_or(ROUNDS),
            transports.join(", ")
        );
        Some(Source::new(format!("measure.{}", self.name), text))
    }

    /// What it changes in the scenario of a file.
    pub fn settings(&self) -> Vec<Setting> {
        let own = |key: &str, value: String| {
            Setting::by(&format!("measure.{}: {key} = {value}", self.name), key, value)
        };
        let drain = self.drain.map(|drain| own("drain", format!("\"{drain}\"")));
        let rounds = self.rounds.map(|rounds| own("repeat", rounds.to_string()));
        if matches!(self.what, What::File(_)) {
            drain.into_iter().chain(rounds).collect()
        } else {
            Vec::new()
        }
    }
}

impl Host {
    /// The keys that `text`, the file of [`Host::emulated`], sets in `scenario`. Its flows come beside the
    /// scenario's own.
    ///
    /// # Errors
    /// Why it cannot, as a phrase.
    pub fn emulated_settings(&self, text: &str, scenario: &Source) -> Result<Vec<Setting>, String> {
        let parsed =
            |text: &str| text.parse::<DocumentMut>().map_err(|why| why.to_string().trim().to_owned());
        let document = parsed(text)?;
        let name = self.emulated.as_deref().unwrap_or_default();
        let mut settings = Vec::new();
        for (key, item) in document.iter() {
            let inline = |item: &Item| item.clone().into_value().ok().map(|value| value.to_string());
            let mut set = |key: String, item: &Item| -> Result<(), String> {
                let value = inline(item).ok_or_else(|| format!("{key} is not a value"))?;
                settings.push(Setting::by(&format!("{name}: {key}"), &key, value.trim()));
                Ok(())
            };
            match (key, item.as_table_like()) {
                ("flow", Some(flows)) => {
                    // A scenario that is no TOML is a mistake of its own.
                    let own = parsed(&scenario.text).unwrap_or_default();
                    let mut all =
                        own.get("flow").cloned().unwrap_or_else(|| Item::Table(toml_edit::Table::new()));
                    let Some(table) = all.as_table_like_mut() else { continue };
                    for (flow, item) in flows.iter() {
                        if table.insert(flow, item.clone()).is_some() {
                            return Err(format!("the scenario has a flow {flow} of its own"));
                        }
                    }
                    set("flow".to_owned(), &all)?;
                }
                ("path" | "link" | "far_clock" | "kernel", _) => set(key.to_owned(), item)?,
                _ => {
                    return Err(format!(
                        "found the key {key}, expected path, far_clock, kernel or flow tables"
                    ));
                }
            }
        }
        Ok(settings)
    }
}

/// The campaign of a filled tree; `None` if there are mistakes that leave none.
fn campaign(root: &Table, file: &str, log: &mut Log) -> Option<Campaign> {
    let section = Section::new(root, CAMPAIGN.keys, At::ROOT, &Place::START);
    let name = match section.text("name") {
        Some(name) => name.to_owned(),
        None => fitting_name(stem(file)),
    };
    let seed = section.count("seed");
    let key_file = section.text("key_file").map(str::to_owned);
    let hosts = hosts(root, key_file.as_deref(), log);
    let pairs = between(&section, &hosts, log);
    let measures = measures(root, &hosts, &pairs, log);
    let schedule = schedule(root, log);
    let store_command = store_command(&section, log);
    if log.is_clean() {
        uses(&hosts, &measures, root, log);
    }
    Some(Campaign { name, seed: seed?, hosts, measures, schedule: schedule?, store_command })
}

/// What copies records to a store.
fn store_command(section: &Section<'_>, log: &mut Log) -> Option<StoreCommand> {
    let timeout = section.duration("store_timeout");
    let Some(words) = section.names("store_command") else {
        if timeout.is_some() && section.node("store_command").is_none() {
            section.problem("store_timeout", Problem::new("found it without `store_command`"), log);
        }
        return None;
    };
    let words = words.map(|(word, _)| word.to_owned()).collect();
    StoreCommand::new(words, timeout.unwrap_or(STORE_TIMEOUT))
        .map_err(|problem| section.problem("store_command", problem, log))
        .ok()
}

/// A table `[MAP.NAME]`.
struct Named<'a> {
    name: &'a str,
    table: &'a Table,
    place: &'a Place,
}

/// The tables of `[MAP.*]`, in the order of the file.
fn each<'a>(root: &'a Table, map: &str) -> impl Iterator<Item = Named<'a>> {
    let entries = root.get(map).and_then(|node| node.as_table());
    entries.into_iter().flat_map(|table| &table.entries).filter_map(|entry| {
        Some(Named { name: &entry.name, table: entry.node.as_table()?, place: &entry.place })
    })
}

fn spec(map: &str) -> &'static TableSpec {
    match CAMPAIGN.key(map).map(|key| &key.kind) {
        Some(Kind::Map(spec) | Kind::Table(spec)) => spec,
        _ => &CAMPAIGN,
    }
}

fn hosts(root: &Table, key_file: Option<&str>, log: &mut Log) -> Vec<Host> {
    let mut hosts = Vec::new();
    for Named { name, table, place } in each(root, "host") {
        let of = At::ROOT.key("host");
        let section = Section::new(table, spec("host").keys, of.key(name), place);
        let text = |key: &str| section.text(key).map(str::to_owned);
        let via = section.names("via").map(|words| words.map(|(word, _)| word.to_owned()).collect());
        let host = Host {
            name: name.to_owned(),
            address: text("address"),
            key_file: text("key_file").or_else(|| key_file.map(str::to_owned)),
            ssh: text("ssh"),
            local: section.flag("local").unwrap_or(false),
            via: via.unwrap_or_default(),
            program: text("program").unwrap_or_else(|| "talkpath".to_owned()),
            starts_server: section.choice("server") == Some("start"),
            bind: text("bind"),
            at_once: section.count("at_once").unwrap_or(1),
            emulated: text("emulated"),
        };
        if host.local && host.ssh.is_some() {
            let message = "found `local = true` and an `ssh` name, expected one of them";
            section.problem("ssh", Problem::new(message), log);
        }
        if let Some(Err(why)) = host.address.as_deref().map(host_and_port) {
            section.problem("address", Problem::new(why), log);
        }
        if host.emulated.is_some() && (host.address.is_some() || host.starts_server) {
            let message = "found an emulated way to a host with an address, expected one of them";
            section.problem("emulated", Problem::new(message), log);
        }
        if host.starts_server && host.ssh.is_none() && !host.local {
            let message = "found \"start\" for a host on which nothing can be started";
            let help = "give `ssh = \"NAME\"`, or `local = true`";
            section.problem("server", Problem::new(message).with_help(help), log);
        }
        if host.starts_server && host.address.is_none() {
            let message = "found \"start\" without an `address`, expected where the server is reached";
            section.problem("server", Problem::new(message), log);
        }
        if host.starts_server && host.at_once > 1 {
            let message = "found more than 1 for a host whose server each measurement starts";
            let help = "let a server stand there: `talkpath serve`";
            section.problem("at_once", Problem::new(message).with_help(help), log);
        }
        if host.starts_server && host.key_file.is_none() && !is_loopback(host.address.as_deref()) {
            let message = "found \"start\" without a `key_file`, expected one: nobody else is to be served";
            section.problem("server", Problem::new(message), log);
        }
        hosts.push(host);
    }
    hosts
}

/// Whether only programs of the same machine reach `address`.
fn is_loopback(address: Option<&str>) -> bool {
    let host = address.and_then(|text| host_and_port(text).ok());
    host.and_then(|(host, _)| host.parse::<IpAddr>().ok()).is_some_and(|address| address.is_loopback())
}

fn between(section: &Section<'_>, hosts: &[Host], log: &mut Log) -> Vec<(usize, usize)> {
    let Some((kind, inner)) = section.tagged("between") else { return Vec::new() };
    match kind {
        "hub" => {
            let Some(name) = inner.text("hub") else { return Vec::new() };
            match find(name, hosts) {
                Ok(hub) => (0..hosts.len()).filter(|far| *far != hub).map(|far| (hub, far)).collect(),
                Err(problem) => {
                    inner.problem("hub", problem, log);
                    Vec::new()
                }
            }
        }
        "pairs" => inner.node("pairs").map_or_else(Vec::new, |node| pairs(node, inner.at, hosts, log)),
        _ => (0..hosts.len()).flat_map(|near| (near + 1..hosts.len()).map(move |far| (near, far))).collect(),
    }
}

/// A list of `"NEAR > FAR"`.
fn pairs(node: &tree::Node, at: At<'_>, hosts: &[Host], log: &mut Log) -> Vec<(usize, usize)> {
    let tree::Value::List(list) = &node.value else { return Vec::new() };
    let mut found: Vec<(usize, usize)> = Vec::new();
    for item in list {
        let Some(text) = item.as_text() else { continue };
        match pair(text, hosts) {
            Ok(pair) if found.contains(&pair) => {
                log.problem(
                    &item.place,
                    at.key("pairs"),
                    Problem::new(format!("found {} twice", quote(text))),
                );
            }
            Ok(pair) => found.push(pair),
            Err(problem) => log.problem(&item.place, at.key("pairs"), problem),
        }
    }
    found
}

fn pair(text: &str, hosts: &[Host]) -> Result<(usize, usize), Problem> {
    let Some((near, far)) = text.split_once('>') else {
        return Err(Problem::new(format!(
            "found {}, expected a pair such as \"berlin > tokyo\"",
            quote(text)
        )));
    };
    let (near, far) = (find(near.trim(), hosts)?, find(far.trim(), hosts)?);
    if near == far {
        return Err(Problem::new(format!("found {}, expected two hosts", quote(text))));
    }
    Ok((near, far))
}

fn find(name: &str, hosts: &[Host]) -> Result<usize, Problem> {
    hosts.iter().position(|host| host.name == name).ok_or_else(|| {
        let names = hosts.iter().map(|host| host.name.as_str());
        let problem = Problem::new(format!("found {}, expected the name of a host", quote(name)));
        match nearest(name, names.clone()) {
            Some(meant) => problem.with_help(format!("did you mean \"{meant}\"?")),
            None => problem.with_help(format!("hosts: {}", names.collect::<Vec<_>>().join(", "))),
        }
    })
}

fn measures(root: &Table, hosts: &[Host], all: &[(usize, usize)], log: &mut Log) -> Vec<Measure> {
    let mut measures = Vec::new();
    for Named { name, table, place } in each(root, "measure") {
        let of = At::ROOT.key("measure");
        let at = of.key(name);
        let section = Section::new(table, spec("measure").keys, at, place);
        if let Some(step) = first_step(table) {
            log.problem(&step.place, at, Problem::new("found a step, which only copies of flows take"));
        }
        let what = match section.text("scenario") {
            Some(file) => {
                for key in ["workload", "transports", "duration"] {
                    if section.node(key).is_some() {
                        let message = "found beside `scenario`, which says it itself";
                        section.problem(key, Problem::new(message), log);
                    }
                }
                What::File(file.to_owned())
            }
            None => made(&section, log),
        };
        let pairs = match section.node("pairs") {
            Some(node) => pairs(node, at, hosts, log),
            None => all.to_vec(),
        };
        let (drain, rounds) = (section.duration("drain"), section.count("rounds"));
        measures.push(Measure { name: name.to_owned(), pairs, what, drain, rounds });
    }
    measures
}

fn made(section: &Section<'_>, log: &mut Log) -> What {
    let workload = section.choice("workload").and_then(Compared::named).unwrap_or(Compared::Voice);
    let usual: &[&str] = if workload == Compared::Bulk { &["tcp"] } else { &["udp", "tcp", "tcp-nodelay"] };
    let mut transports: Vec<String> = usual.iter().map(|&name| name.to_owned()).collect();
    if let Some(tree::Node { value: tree::Value::List(list), .. }) = section.node("transports") {
        transports.clear();
        for item in list {
            match read::one_of(item, "a transport", keys::transport_names().into_iter(), &[]) {
                Ok(name) if transports.iter().any(|known| known == name) => {
                    let problem = Problem::new(format!("found \"{name}\" twice"));
                    log.problem(&item.place, section.at.key("transports"), problem);
                }
                Ok(name) => transports.push(name.to_owned()),
                Err(problem) if item.as_text().is_some() => {
                    log.problem(&item.place, section.at.key("transports"), problem);
                }
                // The key tables said that it is no text.
                Err(_) => {}
            }
        }
    }
    What::Made { workload, transports, duration: section.duration("duration").unwrap_or(DURATION) }
}

fn schedule(root: &Table, log: &mut Log) -> Option<Schedule> {
    let entry = root.entry("schedule")?;
    let section =
        Section::new(entry.node.as_table()?, spec("schedule").keys, At::ROOT.key("schedule"), &entry.place);
    let zone = section.text("zone")?.to_owned();
    if let Err(problem) = time_zone(&zone) {
        section.problem("zone", problem, log);
    }
    let start = section.text("start").map(str::to_owned).map(|text| moment(&text));
    let start = match start.transpose() {
        Ok(start) => start,
        Err(problem) => {
            section.problem("start", problem, log);
            None
        }
    };
    let every = section.duration("every");
    let days = section.count("days");
    let day = section.duration("day")?;
    let start_within = section.duration("start_within")?;
    let window = section.duration("window").or(every);
    if let Some(window) = window
        && start_within > window
    {
        let message = format!(
            "found {start_within}, expected at most {window}, the window in which a measurement may begin"
        );
        section.problem("start_within", Problem::new(message), log);
    }
    let (every, days, window) = (every?, days?, window?);
    if every > day.saturating_mul(days) {
        let message =
            format!("found {every}, expected at most the whole campaign, {} of {day}", counted(days, "day"));
        section.problem("every", Problem::new(message), log);
    }
    if u128::from(day.as_nanos()) * u128::from(days) / u128::from(every.as_nanos()) > u128::from(MOST_SLOTS) {
        let message = format!("found {every}, expected at most {MOST_SLOTS} times in the whole campaign");
        section.problem("every", Problem::new(message), log);
    }
    Some(Schedule { zone, start, every, days, day, start_within, window, retry: section.duration("retry")? })
}

/// The zone of this name in the database that is built in.
fn time_zone(name: &str) -> Result<TimeZone, Problem> {
    let database = jiff::tz::TimeZoneDatabase::bundled();
    database.get(name).map_err(|_| {
        let problem =
            Problem::new(format!("found {}, expected a zone of the IANA time zone database", quote(name)));
        let names: Vec<String> = database.available().map(|zone| zone.to_string()).collect();
        match nearest(name, names.iter().map(String::as_str)) {
            Some(meant) => problem.with_help(format!("did you mean \"{meant}\"?")),
            None => problem.with_help("such as \"UTC\" or \"Europe/Berlin\""),
        }
    })
}

/// `2026-12-01 06:00`, with seconds if need be.
fn moment(text: &str) -> Result<DateTime, Problem> {
    text.trim().parse().map_err(|_| {
        Problem::new(format!(
            "found {}, expected a date and a time such as \"2026-12-01 06:00\"",
            quote(text)
        ))
    })
}

/// What the hosts must be able to do for what is planned.
fn uses(hosts: &[Host], measures: &[Measure], root: &Table, log: &mut Log) {
    for Named { name, place, .. } in each(root, "measure") {
        if measures.iter().any(|measure| measure.name == name && measure.pairs.is_empty()) {
            let key = format!("measure.{name}");
            log.mistake(
                place,
                &key,
                "there is no pair of hosts for it",
                Some("it takes two hosts".to_owned()),
            );
        }
    }
    for (at, Named { name, place, .. }) in each(root, "host").enumerate() {
        let Some(host) = hosts.get(at) else { continue };
        let key = format!("host.{name}");
        let pairs = || measures.iter().flat_map(|measure| &measure.pairs);
        let is_near = pairs().any(|pair| pair.0 == at);
        if is_near && host.ssh.is_none() && !host.local {
            let message = "measurements start here, and nothing can be started here";
            log.mistake(place, &key, message, Some("give `ssh = \"NAME\"`, or `local = true`".to_owned()));
        }
        let is_far = pairs().any(|pair| pair.1 == at);
        if is_far && host.address.is_none() && host.emulated.is_none() {
            let message = "measurements come here, and it has no `address`";
            log.mistake(
                place,
                &key,
                message,
                Some("give `address = \"HOST:PORT\"` of its server".to_owned()),
            );
        }
        let remote = pairs().find(|pair| pair.1 == at && !hosts[pair.0].local);
        if let (Some(_), Some((near, _))) = (&host.emulated, remote) {
            let message = format!("the way here is emulated on {}, which is not `local`", hosts[*near].name);
            log.mistake(place, &key, message, None);
        }
    }
}

/// The file's name without its folder and its ending.
fn stem(name: &str) -> &str {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    name.strip_suffix(".toml").filter(|stem| !stem.is_empty()).unwrap_or("campaign")
}

/// docs/reference/interface.md: what `compare` takes over the network, too.
const DURATION: Duration = Duration::from_secs(10);
/// A scenario's default.
const DRAIN: Duration = Duration::from_secs(5);
/// Chosen: with four times a day a day has 12 values, enough for the interval of a median.
const ROUNDS: u64 = 3;
/// Of `store_command`. Chosen: 75 MB at 1 Mb/s, far more than a measurement's largest file.
const STORE_TIMEOUT: Duration = Duration::from_secs(600);
/// Times of measurement. Chosen: one a minute for two months.
const MOST_SLOTS: u64 = 100_000;

#[cfg(test)]
#[path = "campaign_tests.rs"]
mod tests;
