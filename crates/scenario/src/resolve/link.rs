//! Links: the two of a path, or those of the `link` tables, one per copy if a name has `{n}`.

use std::collections::{BTreeMap, BTreeSet};

use talkpath_model::{Flow, IpVersion, LinkIndex, NamedLink};
use talkpath_path::{DelayVariation, Framing, LinkConfig, LossModel, RateModel};
use talkpath_units::{Bytes, Rate};

use crate::contents::Contents;
use crate::diagnostic::{Log, Place};
use crate::keys::LINK;
use crate::names::unknown_name;
use crate::pass::fill::fill_table;
use crate::quantity::{Problem, quote};
use crate::queues;
use crate::read::At;
use crate::section::{Section, first_step, for_copy};
use crate::spec::MOST_FLOWS;
use crate::tree::{Entry, Meaning, Node, Table};

/// The links of a cell.
pub(crate) struct Links {
    /// All links; `None` if a link has mistakes.
    pub(crate) made: Option<Vec<NamedLink>>,
    /// By name. Links with mistakes are here too, so that routes over them are not reported as wrong.
    by_name: BTreeMap<String, LinkIndex>,
    /// The links' tables, in the order of the file.
    written: Vec<WrittenLink>,
    /// Whether they are a path's.
    pub(crate) is_path: bool,
    /// Whether the scenario says what lies between the hosts.
    pub(crate) is_known: bool,
    /// What they carry.
    ip: IpVersion,
}

/// A link's table.
struct WrittenLink {
    /// As the file has it, with `{n}`.
    name: String,
    place: Place,
}

/// A link's name in the routes of a flow.
pub(crate) struct NameInRoute<'a> {
    /// As the file has it, with `{n}`.
    pub(crate) name: &'a str,
    /// How many copies of the flow name it.
    pub(crate) copies: u64,
}

impl Links {
    /// The link that `name` means to copy `number`.
    ///
    /// # Errors
    /// There is none; the nearest is named.
    pub(crate) fn find(&self, name: &str, number: u64) -> Result<LinkIndex, Problem> {
        let name = name.replace(NUMBER, &number.to_string());
        let known = || self.written.iter().map(|link| link.name.clone()).collect::<Vec<_>>();
        self.by_name.get(&name).copied().ok_or_else(|| unknown_name(&name, "link", &known()))
    }

    /// Whether the scenario has neither a path nor links.
    pub(crate) fn is_missing(&self) -> bool {
        self.written.is_empty()
    }

    /// The smallest MTU along `route`, as if over IPv4 (`Scenario::path_mtu`); `None` if links have mistakes.
    pub(crate) fn least_mtu<'a>(&self, route: impl Iterator<Item = &'a LinkIndex>) -> Option<Bytes> {
        let made = self.made.as_ref()?;
        let mtus = route.filter_map(|index| made.get(index.0 as usize)).map(|link| link.config.mtu);
        mtus.min().map(|mtu| mtu.saturating_sub(self.ip.extra_header()))
    }

    /// Whether packets cross every link of `route` at once, however many there are.
    pub(crate) fn is_instant<'a>(&self, mut route: impl Iterator<Item = &'a LinkIndex>) -> bool {
        let made = self.made.as_deref().unwrap_or_default();
        let is_instant = |link: &NamedLink| {
            let LinkConfig { rate, delay, jitter, .. } = &link.config;
            *rate == RateModel::Unlimited && delay.is_zero() && *jitter == DelayVariation::None
        };
        self.is_known && route.all(|index| made.get(index.0 as usize).is_some_and(is_instant))
    }

    /// Warns of links that no flow goes over.
    pub(crate) fn tell_unused(&self, flows: &Option<Vec<Flow>>, log: &mut Log) {
        let (Some(made), Some(flows), false) = (&self.made, flows, self.is_path) else { return };
        let used: BTreeSet<_> = flows.iter().flat_map(Flow::all_links).collect();
        for WrittenLink { name, place } in &self.written {
            let is_used =
                |index: &&LinkIndex| made.get(index.0 as usize).is_some_and(|link| matches(name, &link.name));
            if !used.iter().any(is_used) {
                log.warning(place, &format!("link.{name}"), "no flow goes over this link");
            }
        }
    }
}

/// Makes the links of `root`. `named` are those in the flows' routes.
pub(crate) fn links(
    root: &Table,
    named: &[NameInRoute<'_>],
    contents: &Contents,
    ip: IpVersion,
    log: &mut Log,
) -> Links {
    warn_of_missing_rates(root, log);
    let top = At::ROOT;
    let mut links = Links {
        made: Some(Vec::new()),
        by_name: BTreeMap::new(),
        written: Vec::new(),
        is_path: false,
        is_known: true,
        ip,
    };
    if let (Some(_), Some(link)) = (root.get("path"), root.entry("link")) {
        log.mistake(
            &link.place,
            "link",
            "found `link` tables beside `path`; a scenario has one or the other",
            None,
        );
    }
    if let Some(path) = root.get("path") {
        links.is_path = true;
        let at = top.key("path");
        for entry in path.as_table().map(|table| table.entries.as_slice()).unwrap_or_default() {
            let table = entry.node.as_table();
            links.add(
                &entry.name,
                table.and_then(|table| config(table, at.key(&entry.name), &entry.node.place, contents, log)),
            );
            links.written.push(WrittenLink { name: entry.name.clone(), place: entry.place.clone() });
        }
        return links;
    }
    if root.get("link").is_none() {
        (links.is_path, links.is_known) = (true, false);
        // A link without any key: packets cross it at once.
        let perfect = fill_table(Table::default(), &LINK, &Place::START);
        for name in ["up", "down"] {
            links.add(name, config(&perfect, top.key(name), &Place::START, contents, log));
            links.written.push(WrittenLink { name: name.to_owned(), place: Place::START });
        }
        return links;
    }
    let tables = root.get("link").and_then(|node| node.as_table());
    let Some(tables) = tables.filter(|tables| !tables.entries.is_empty()) else {
        let message = "missing; expected `path`, or `link` tables with routes for the flows";
        let help = "for example path = \"home-adsl\"".to_owned();
        log.mistake(&Place::START, "path", message, Some(help));
        links.made = None;
        return links;
    };
    let at = top.key("link");
    let plain: BTreeSet<_> = tables.entries.iter().map(|entry| entry.name.as_str()).collect();
    for entry in &tables.entries {
        links.written.push(WrittenLink { name: entry.name.clone(), place: entry.place.clone() });
        links.add_written(entry, named, &plain, at.key(&entry.name), contents, log);
    }
    links
}

impl Links {
    /// Makes the link of one table, or one for each number that a route names.
    fn add_written(
        &mut self,
        entry: &Entry,
        named: &[NameInRoute<'_>],
        plain: &BTreeSet<&str>,
        at: At<'_>,
        contents: &Contents,
        log: &mut Log,
    ) {
        let Some(table) = entry.node.as_table() else { return self.add(&entry.name, None) };
        let step = first_step(table);
        if !entry.name.contains(NUMBER) {
            if let Some(step) = step {
                let problem = Problem::new("found a step, but this link is made once")
                    .with_help(format!("[link.\"{}{{n}}\"] is made once per copy", entry.name));
                log.problem(&step.place, at, problem);
            }
            return self.add(&entry.name, config(table, at, &entry.place, contents, log));
        }
        let mut numbers = BTreeSet::new();
        for NameInRoute { name, copies } in named {
            if name.contains(NUMBER) {
                // `access{n}` of a route may also be written with its own braces elsewhere: compare what they
                // make.
                let made = (1..=*copies)
                    .filter_map(|copy| number_in(&entry.name, &name.replace(NUMBER, &copy.to_string())));
                numbers.extend(made);
            } else {
                numbers.extend(number_in(&entry.name, name));
            }
        }
        let shared = if step.is_none() { config(table, at, &entry.place, contents, log) } else { None };
        if numbers.is_empty() {
            // Nobody names it; its values are read all the same, for their mistakes.
            let _ = config(&for_copy(table, 1, at, log), at, &entry.place, contents, log);
        }
        for number in numbers {
            let name = entry.name.replace(NUMBER, &number.to_string());
            if plain.contains(name.as_str()) {
                continue;
            }
            if self.by_name.contains_key(&name) {
                let mut others = self.written.iter().map(|link| link.name.as_str());
                let other = others.find(|other| number_in(other, &name).is_some()).unwrap_or_default();
                let message = format!("`{other}` and `{}` both make the link {name}; rename one", entry.name);
                log.problem(&entry.place, at, Problem::new(message));
                continue;
            }
            let config = match step {
                Some(_) => config(&for_copy(table, number, at, log), at, &entry.place, contents, log),
                None => shared.clone(),
            };
            self.add(&name, config);
        }
    }

    fn add(&mut self, name: &str, config: Option<LinkConfig>) {
        let index = LinkIndex(u32::try_from(self.by_name.len()).unwrap_or(u32::MAX));
        self.by_name.insert(name.to_owned(), index);
        match (&mut self.made, config) {
            (Some(made), Some(config)) => made.push(NamedLink { name: name.to_owned(), config }),
            (made, _) => *made = None,
        }
    }
}

/// Warns of the links of `root` whose rate nobody wrote.
fn warn_of_missing_rates(root: &Table, log: &mut Log) {
    let top = At::ROOT;
    for above in ["path", "link"] {
        let at = top.key(above);
        for entry in root.get(above).and_then(Node::as_table).map_or(&[][..], |table| &table.entries) {
            let at = at.key(&entry.name);
            let rate = entry.node.as_table().and_then(|link| link.get("rate"));
            if rate.is_some_and(|rate| rate.is_default) {
                let message =
                    "missing; without it nothing ever waits on this link, and its queue never fills";
                let place = if above == "path" { &entry.node.place } else { &entry.place };
                log.warning(place, &at.key("rate").to_string(), message);
            }
        }
    }
}

/// Replaced by a copy's number in the name of a link.
const NUMBER: &str = "{n}";

/// The number that makes `template` into `name`.
fn number_in(template: &str, name: &str) -> Option<u64> {
    let (before, after) = template.split_once(NUMBER)?;
    let digits = name.strip_prefix(before)?.strip_suffix(after)?;
    let number: u64 = digits.parse().ok()?;
    // "01" and "+1" make other names.
    ((1..=MOST_FLOWS).contains(&number) && number.to_string() == digits).then_some(number)
}

/// Whether a table of the name `written` makes a link of this name.
pub(crate) fn matches(written: &str, name: &str) -> bool {
    written == name || number_in(written, name).is_some()
}

/// What one link is made of.
fn config(
    table: &Table,
    at: At<'_>,
    place: &Place,
    contents: &Contents,
    log: &mut Log,
) -> Option<LinkConfig> {
    let section = Section::new(table, LINK.keys, at, place);
    let mtu = section.bytes("mtu");
    let queue = queues::resolve(&section, mtu, log);
    Some(LinkConfig {
        rate: rate(&section, contents)?,
        delay: section.duration("delay")?,
        mtu: mtu?,
        framing: framing(&section)?,
        queue: queue?,
        loss: loss(&section, contents)?,
        jitter: jitter(&section, contents)?,
    })
}

fn framing(link: &Section<'_>) -> Option<Framing> {
    let (kind, section) = link.tagged("framing")?;
    match kind {
        "bytes" => Some(Framing::Bytes { overhead: section.bytes("overhead")? }),
        "atm" => Some(Framing::Atm { overhead: section.bytes("overhead")? }),
        _ => Some(Framing::None),
    }
}

fn rate(link: &Section<'_>, contents: &Contents) -> Option<RateModel> {
    match link.meaning("rate")? {
        Meaning::Amount(amount) => Some(RateModel::Fixed(Rate::from_bps(amount.count))),
        Meaning::Word(_) => Some(RateModel::Unlimited),
        // A mistake in the file is reported already.
        _ => {
            let trace = link.node("rate")?.as_table()?.get("trace")?.as_text()?;
            contents.rate(trace).cloned().map(RateModel::Trace)
        }
    }
}

pub(super) fn loss(link: &Section<'_>, contents: &Contents) -> Option<LossModel> {
    let (kind, section) = link.tagged("loss")?;
    match kind {
        "none" => Some(LossModel::None),
        "bernoulli" => Some(LossModel::Bernoulli { rate: section.number("rate")? }),
        "gilbert-elliott" => Some(LossModel::GilbertElliott {
            p: section.number("p")?,
            r: section.number("r")?,
            loss_bad: section.number("loss_bad")?,
            loss_good: section.number("loss_good")?,
        }),
        "periodic" => Some(LossModel::Periodic { period: section.count("period")? }),
        "trace" => contents.loss(section.text("file")?).cloned().map(LossModel::Trace),
        _ => None,
    }
}

fn jitter(link: &Section<'_>, contents: &Contents) -> Option<DelayVariation> {
    let (kind, section) = link.tagged("jitter")?;
    if kind == "none" {
        return Some(DelayVariation::None);
    }
    let reorder = section.flag("reorder")?;
    match kind {
        "normal" => Some(DelayVariation::Normal { sd: section.duration("sd")?, reorder }),
        "uniform" => Some(DelayVariation::Uniform { max: section.duration("max")?, reorder }),
        "pareto" => Some(DelayVariation::Pareto {
            mean: section.duration("mean")?,
            shape: section.number("shape")?,
            reorder,
        }),
        "trace" => {
            let additions = contents.delay(section.text("file")?)?.clone();
            Some(DelayVariation::Trace { additions, reorder })
        }
        _ => None,
    }
}

/// The route that `names` means to copy `number`.
///
/// # Errors
/// Where, and which link there is not, or which comes twice.
pub(crate) fn route<'a>(
    links: &Links,
    names: impl Iterator<Item = (&'a str, &'a Place)>,
    number: u64,
) -> Result<Vec<LinkIndex>, (&'a Place, Problem)> {
    let mut route = Vec::new();
    for (name, place) in names {
        let index = links.find(name, number).map_err(|problem| (place, problem))?;
        if route.contains(&index) {
            let problem = Problem::new(format!("found {} twice in one route", quote(name)));
            return Err((place, problem));
        }
        route.push(index);
    }
    Ok(route)
}
