//! Makes the links of a scenario: the two links of a `path`, or those of the `link` tables.
//!
//! - A *link table* is one `[link.NAME]`. Its name may have `{n}`, such as `access{n}`. It then makes one
//!   link for each number that a route names: `access1`, `access2`.
//! - In a route, `{n}` stands for the number of the flow's copy.
//! - A *named link* is a link by its name in the routes of a flow.
//! - A value *steps* if it is `{ from, step }`, so that it differs from link to link.
//!
//! Begin to read with [`links`].

use std::collections::{BTreeMap, BTreeSet};

use talkpath_model::{Flow, IpVersion, LinkIndex, NamedLink};
use talkpath_path::{
    Check, Damage, DelayVariation, Framing, LinkConfig, LossModel, RateModel, Reordering, TokenBucket,
};
use talkpath_units::{Bytes, Duration, Rate};

use crate::contents::Contents;
use crate::diagnostic::{Log, Place};
use crate::keys::{LINK, REORDERING, TOKEN_BUCKET};
use crate::pass::check::{Checks, check};
use crate::quantity::{Problem, as_percent, quote};
use crate::queues::{self, EmptyingRate, LinkValues};
use crate::read::{KeyPath, unknown_name};
use crate::section::{Section, first_step, for_copy};
use crate::spec::MOST_FLOWS;
use crate::tree::{Entry, Meaning, Node, Table};

use super::cellular::cellular;
use super::wifi;

/// The links of a cell.
pub(crate) struct Links {
    /// All links. `None` if a link has mistakes.
    pub(crate) resolved: Option<Vec<NamedLink>>,
    /// The index of each link by its name. Links with mistakes are here too, so that routes over them are not
    /// reported as wrong.
    by_name: BTreeMap<String, LinkIndex>,
    /// The tables of the links, in the order of the file.
    tables: Vec<LinkTable>,
    /// Whether the links are the two of a `path`.
    pub(crate) is_path: bool,
    /// Whether the scenario has a `path` or `link` tables.
    pub(crate) is_known: bool,
    /// The version of IP that the links carry.
    ip: IpVersion,
}

struct LinkTable {
    /// The name, perhaps with `{n}`.
    name: String,
    place: Place,
}

/// A link's name in the routes of a flow.
pub(crate) struct NameInRoute<'a> {
    /// The name, perhaps with `{n}`.
    pub(crate) name: &'a str,
    pub(crate) copies: u64,
}

/// Replaced by a number in the name of a link.
const NUMBER: &str = "{n}";

/// Makes the links of `root`. `named_links` are the names in the routes of all flows.
pub(crate) fn links(
    root: &Table,
    named_links: &[NameInRoute<'_>],
    contents: &Contents,
    ip: IpVersion,
    log: &mut Log,
) -> Links {
    warn_of_missing_rates(root, log);
    if let (Some(_), Some(link)) = (root.get("path"), root.entry("link")) {
        let message = "found `link` tables beside `path`; a scenario has one or the other";
        log.mistake(&link.place, "link", message);
    }
    let mut links = Links {
        resolved: Some(Vec::new()),
        by_name: BTreeMap::new(),
        tables: Vec::new(),
        is_path: true,
        is_known: true,
        ip,
    };
    match (root.get("path"), root.get("link")) {
        (Some(path), _) => links.add_path(path, contents, log),
        (None, None) => links.add_perfect_path(contents, log),
        (None, Some(link)) => {
            links.is_path = false;
            links.add_tables(link, named_links, contents, log);
        }
    }
    links.check_shared_wifis(log);
    links
}

impl Links {
    /// Adds the two links of a `path`.
    fn add_path(&mut self, path: &Node, contents: &Contents, log: &mut Log) {
        let parent = KeyPath::ROOT.key("path");
        let entries = path.as_table().map_or(&[][..], |table| &table.entries);
        let delay = |entry: &Entry| {
            let table = entry.node.as_table()?;
            Section::new(table, LINK.keys, parent, &entry.place).duration("delay")
        };
        let delays: Option<Vec<Duration>> = entries.iter().map(delay).collect();
        let round_trip =
            delays.map(|delays| delays.into_iter().fold(Duration::ZERO, Duration::saturating_add));
        for entry in entries {
            let place = &entry.node.place;
            let config = match entry.node.as_table() {
                Some(table) => config(table, parent.key(&entry.name), place, round_trip, contents, log),
                None => None,
            };
            self.add(&entry.name, config);
            self.tables.push(LinkTable { name: entry.name.clone(), place: entry.place.clone() });
        }
    }

    /// Adds two links that packets cross at once, for a scenario that has no links. Only a live run needs
    /// none.
    fn add_perfect_path(&mut self, contents: &Contents, log: &mut Log) {
        self.is_known = false;
        let defaults = check(Table::default(), &LINK, Checks::PRESENT, log);
        for name in ["up", "down"] {
            let config = config(&defaults, KeyPath::ROOT.key(name), &Place::START, None, contents, log);
            self.add(name, config);
            self.tables.push(LinkTable { name: name.to_owned(), place: Place::START });
        }
    }

    /// Adds the links of the `link` tables.
    fn add_tables(
        &mut self,
        link_node: &Node,
        named_links: &[NameInRoute<'_>],
        contents: &Contents,
        log: &mut Log,
    ) {
        let entries = link_node.as_table().map_or(&[][..], |table| &table.entries);
        if entries.is_empty() {
            let message = "missing; expected `path`, or `link` tables with routes for the flows";
            let help = "for example path = \"home-adsl\"".to_owned();
            log.mistake(&Place::START, "path", Problem::new(message).with_help(help));
            self.resolved = None;
        }
        let parent = KeyPath::ROOT.key("link");
        let table_names: BTreeSet<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        for entry in entries {
            self.tables.push(LinkTable { name: entry.name.clone(), place: entry.place.clone() });
            let at = parent.key(&entry.name);
            if entry.name.contains(NUMBER) {
                let numbers = named_numbers(&entry.name, named_links);
                self.add_numbered(entry, &numbers, &table_names, at, contents, log);
            } else {
                self.add_single(entry, at, contents, log);
            }
        }
    }

    /// Adds the link of a table whose name has no `{n}`.
    fn add_single(&mut self, entry: &Entry, at: KeyPath<'_>, contents: &Contents, log: &mut Log) {
        let Some(table) = entry.node.as_table() else { return self.add(&entry.name, None) };
        if let Some(step) = first_step(table) {
            let problem = Problem::new("found a step, but this link is made once")
                .with_help(format!("[link.\"{}{{n}}\"] is made once per copy", entry.name));
            log.mistake(&step.place, at, problem);
        }
        self.add(&entry.name, config(table, at, &entry.place, None, contents, log));
    }

    /// Adds a link for each of `numbers`, except for names that have a table of their own.
    fn add_numbered(
        &mut self,
        entry: &Entry,
        numbers: &BTreeSet<u64>,
        table_names: &BTreeSet<&str>,
        at: KeyPath<'_>,
        contents: &Contents,
        log: &mut Log,
    ) {
        let Some(table) = entry.node.as_table() else { return self.add(&entry.name, None) };
        let place = &entry.place;
        let has_steps = first_step(table).is_some();
        let shared_config = if has_steps { None } else { config(table, at, place, None, contents, log) };
        if numbers.is_empty() {
            // No route names the link. Its values are still read, for their mistakes.
            let _ = config(&for_copy(table, 1, at, log), at, place, None, contents, log);
        }
        for number in numbers {
            let name = entry.name.replace(NUMBER, &number.to_string());
            if table_names.contains(name.as_str()) {
                continue;
            }
            if self.by_name.contains_key(&name) {
                let mut earlier_tables = self.tables.iter().map(|table| table.name.as_str());
                let earlier = earlier_tables.find(|earlier| number_in(earlier, &name).is_some());
                let earlier = earlier.unwrap_or_default();
                let message =
                    format!("`{earlier}` and `{}` both make the link {name}; rename one", entry.name);
                log.mistake(place, at, message);
                continue;
            }
            let config = if has_steps {
                config(&for_copy(table, *number, at, log), at, place, None, contents, log)
            } else {
                shared_config.clone()
            };
            self.add(&name, config);
        }
    }

    /// Reports links that share the Wi-Fi of a link which brings none.
    fn check_shared_wifis(&mut self, log: &mut Log) {
        let Some(resolved) = &self.resolved else { return };
        let parent = KeyPath::ROOT.key(if self.is_path { "path" } else { "link" });
        let place_of = |name: &str| {
            let table = self.tables.iter().find(|table| matches(&table.name, name));
            table.map_or(Place::START, |table| table.place.clone())
        };
        if !wifi::check_shared(resolved, place_of, parent, log) {
            self.resolved = None;
        }
    }

    /// Adds one link. `None` is a link with mistakes.
    fn add(&mut self, name: &str, config: Option<LinkConfig>) {
        let index = LinkIndex(u32::try_from(self.by_name.len()).unwrap_or(u32::MAX));
        self.by_name.insert(name.to_owned(), index);
        match (&mut self.resolved, config) {
            (Some(resolved), Some(config)) => resolved.push(NamedLink { name: name.to_owned(), config }),
            (resolved, _) => *resolved = None,
        }
    }

    /// Returns the link that `name` names in the route of the copy `number`.
    ///
    /// # Errors
    /// Returns the most similar name if there is no such link.
    pub(crate) fn find(&self, name: &str, number: u64) -> Result<LinkIndex, Problem> {
        let name = name.replace(NUMBER, &number.to_string());
        self.by_name.get(&name).copied().ok_or_else(|| {
            let table_names: Vec<_> = self.tables.iter().map(|table| table.name.clone()).collect();
            unknown_name(&name, "link", &table_names)
        })
    }

    /// Whether the scenario has a `link` key without any table.
    pub(crate) fn is_missing(&self) -> bool {
        self.tables.is_empty()
    }

    /// Returns the smallest MTU along `route`, as if over IPv4 (`Scenario::path_mtu`). Returns `None` if
    /// links have mistakes.
    pub(crate) fn least_mtu<'a>(&self, route: impl Iterator<Item = &'a LinkIndex>) -> Option<Bytes> {
        let resolved = self.resolved.as_ref()?;
        let mtus = route.filter_map(|index| resolved.get(index.0 as usize)).map(|link| link.config.mtu);
        mtus.min().map(|mtu| mtu.saturating_sub(self.ip.extra_header()))
    }

    /// Whether packets cross every link of `route` at once, however many there are. A token bucket holds the
    /// packets back, or drops them, once its tokens are used up.
    pub(crate) fn is_instant<'a>(&self, mut route: impl Iterator<Item = &'a LinkIndex>) -> bool {
        let resolved = self.resolved.as_deref().unwrap_or_default();
        let is_instant = |link: &NamedLink| {
            let LinkConfig { rate, delay, jitter, policer, shaper, .. } = &link.config;
            let takes_no_time = delay.is_zero() && *jitter == DelayVariation::None;
            takes_no_time && *rate == RateModel::Unlimited && policer.is_none() && shaper.is_none()
        };
        self.is_known && route.all(|index| resolved.get(index.0 as usize).is_some_and(is_instant))
    }

    /// Warns of link tables that no flow uses.
    pub(crate) fn warn_of_unused(&self, flows: &[Flow], log: &mut Log) {
        let Some(resolved) = &self.resolved else { return };
        if self.is_path {
            return;
        }
        let used_links: BTreeSet<_> = flows.iter().flat_map(Flow::all_links).collect();
        let used_names: Vec<&str> = used_links
            .into_iter()
            .filter_map(|index| resolved.get(index.0 as usize))
            .map(|link| link.name.as_str())
            .collect();
        for LinkTable { name, place } in &self.tables {
            if !used_names.iter().any(|used| matches(name, used)) {
                log.warning(place, format!("link.{name}"), "no flow goes over this link");
            }
        }
    }
}

fn named_numbers(table_name: &str, named_links: &[NameInRoute<'_>]) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    for NameInRoute { name, copies } in named_links {
        if name.contains(NUMBER) {
            // `a{n}` in a route may name a link of the table `{n}` as well, so the filled names are compared.
            let filled_names = (1..=*copies).map(|copy| name.replace(NUMBER, &copy.to_string()));
            numbers.extend(filled_names.filter_map(|name| number_in(table_name, &name)));
        } else {
            numbers.extend(number_in(table_name, name));
        }
    }
    numbers
}

/// Returns the number that makes `name` of `template`, or `None` if no number does.
fn number_in(template: &str, name: &str) -> Option<u64> {
    let (before, after) = template.split_once(NUMBER)?;
    let digits = name.strip_prefix(before)?.strip_suffix(after)?;
    let number: u64 = digits.parse().ok()?;
    // "01" and "+1" are also read as 1, but make other names.
    ((1..=MOST_FLOWS).contains(&number) && number.to_string() == digits).then_some(number)
}

/// Whether the table `table_name` makes a link called `name`.
pub(crate) fn matches(table_name: &str, name: &str) -> bool {
    table_name == name || number_in(table_name, name).is_some()
}

/// Warns of links without a `rate` in the file, and without a `shaper`, at which packets would wait.
fn warn_of_missing_rates(root: &Table, log: &mut Log) {
    for parent_name in ["path", "link"] {
        let parent = KeyPath::ROOT.key(parent_name);
        for entry in root.get(parent_name).and_then(Node::as_table).map_or(&[][..], |table| &table.entries) {
            let Some(link) = entry.node.as_table() else { continue };
            if link.get("shaper").is_none() && link.get("rate").is_some_and(|rate| rate.is_default) {
                let key = parent.key(&entry.name).key("rate").to_string();
                let message =
                    "missing; without it nothing ever waits on this link, and its queue never fills";
                let place = if parent_name == "path" { &entry.node.place } else { &entry.place };
                log.warning(place, &key, message);
            }
        }
    }
}

/// Makes one link of its table. `round_trip` is that of the `path` which the link belongs to.
fn config(
    table: &Table,
    at: KeyPath<'_>,
    place: &Place,
    round_trip: Option<Duration>,
    contents: &Contents,
    log: &mut Log,
) -> Option<LinkConfig> {
    let section = Section::new(table, LINK.keys, at, place);
    let mtu = section.bytes("mtu");
    let (rate, framing) = (rate(&section, contents), framing(&section));
    let (policer, shaper) = (token_bucket(&section, "policer"), token_bucket(&section, "shaper"));
    let on_wire = framing.zip(mtu).map(|(framing, mtu)| framing.on_wire(mtu));
    check_shaper(&section, shaper, on_wire, log);
    warn_of_small_policer(&section, policer, on_wire, log);
    let values = LinkValues { mtu, rate: emptying_rate(rate.as_ref(), shaper), round_trip };
    let queue = queues::resolve(&section, &values, log);
    let medium = wifi::medium(&section, rate.as_ref(), framing, log);
    let cellular = cellular(&section, rate.as_ref(), log);
    Some(LinkConfig {
        rate: rate?,
        delay: section.duration("delay")?,
        mtu: mtu?,
        framing: framing?,
        queue: queue?,
        loss: loss_reported(&section, contents, log)?,
        jitter: jitter(&section, contents)?,
        policer,
        shaper,
        reorder: reordering(&section),
        duplicate: duplicate(&section)?,
        damage: damage(&section),
        medium: medium?,
        cellular: cellular?,
    })
}

/// The rate at which the queue of a link with this `rate` empties.
fn emptying_rate(rate: Option<&RateModel>, shaper: Option<TokenBucket>) -> EmptyingRate {
    let Some(rate) = rate else { return EmptyingRate::Wrong };
    let rates = [fixed_rate(rate), shaper.map(|shaper| shaper.rate)];
    rates.into_iter().flatten().min().map_or(EmptyingRate::Unlimited, EmptyingRate::At)
}

/// The rate of a link in the long run. `None` if it is unlimited.
fn fixed_rate(rate: &RateModel) -> Option<Rate> {
    match rate {
        RateModel::Unlimited => None,
        RateModel::Fixed(rate) => Some(*rate),
        RateModel::Trace(trace) => Some(trace.mean_rate()),
    }
}

/// A policer or a shaper. `None` if it is absent, or wrong: its mistake is reported already.
fn token_bucket(link: &Section<'_>, name: &'static str) -> Option<TokenBucket> {
    let node = link.node(name)?;
    let section = Section::new(node.as_table()?, TOKEN_BUCKET.keys, link.at.key(name), &node.place);
    let Meaning::Amount(rate) = section.meaning("rate")? else { return None };
    Some(TokenBucket { rate: Rate::from_bps(rate.count), burst: section.bytes("burst")? })
}

/// Reports a shaper whose bucket never has the tokens of the link's largest packet, which takes `on_wire`.
fn check_shaper(link: &Section<'_>, shaper: Option<TokenBucket>, on_wire: Option<Bytes>, log: &mut Log) {
    if let (Some(shaper), Some(on_wire)) = (shaper, on_wire)
        && shaper.burst < on_wire
    {
        let message = format!(
            "found a burst of {}, expected at least {on_wire}: a packet of the link's `mtu` with its framing. A larger packet would \
             never leave",
            shaper.burst
        );
        link.problem("shaper", message, log);
    }
}

fn warn_of_small_policer(
    link: &Section<'_>,
    policer: Option<TokenBucket>,
    on_wire: Option<Bytes>,
    log: &mut Log,
) {
    if let (Some(policer), Some(on_wire)) = (policer, on_wire)
        && policer.burst < on_wire
    {
        let message = format!(
            "its burst is {}, so a packet of {on_wire} (`mtu` with framing) is always dropped",
            policer.burst
        );
        link.warning("policer", &message, log);
    }
}

fn reordering(link: &Section<'_>) -> Option<Reordering> {
    let node = link.node("reorder")?;
    let section = Section::new(node.as_table()?, REORDERING.keys, link.at.key("reorder"), &node.place);
    Some(Reordering { share: section.number("share")?, by: section.duration("by")? })
}

/// The share of the packets that is repeated. `None` if it is wrong, which is reported already.
fn duplicate(link: &Section<'_>) -> Option<f64> {
    match link.node("duplicate") {
        Some(_) => link.number("duplicate"),
        None => Some(0.0),
    }
}

fn damage(link: &Section<'_>) -> Option<Damage> {
    let (kind, section) = link.tagged("damage")?;
    let check = if kind == "frame-check" { Check::Frame } else { Check::Checksum };
    Some(Damage { share: section.number("share")?, check })
}

/// The loss of a link. A mistake in it is reported.
fn loss_reported(link: &Section<'_>, contents: &Contents, log: &mut Log) -> Option<LossModel> {
    match loss(link, contents) {
        Ok(loss) => loss,
        Err(problem) => {
            link.problem("loss", problem, log);
            None
        }
    }
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
        // `{ trace = "FILE" }`. A mistake in the file is already in the log.
        _ => {
            let trace = link.node("rate")?.as_table()?.get("trace")?.as_text()?;
            contents.rate(trace).cloned().map(RateModel::Trace)
        }
    }
}

/// The loss of a link or of a change. `None` if a single value is wrong, which is reported already.
///
/// # Errors
/// Returns what is wrong with the values together.
pub(super) fn loss(link: &Section<'_>, contents: &Contents) -> Result<Option<LossModel>, Problem> {
    let Some((kind, section)) = link.tagged("loss") else { return Ok(None) };
    if kind == "bursts" {
        let (Some(mean), Some(burst)) = (section.number("mean"), section.number("burst")) else {
            return Ok(None);
        };
        return bursts(mean, burst).map(Some);
    }
    Ok(single_loss(kind, &section, contents))
}

/// Gilbert's two states that lose the share `mean` of the packets, in runs of `burst` packets in the mean.
fn bursts(mean: f64, burst: f64) -> Result<LossModel, Problem> {
    let r = 1.0 / burst;
    let p = mean * r / (1.0 - mean);
    if p <= 1.0 {
        return Ok(LossModel::GilbertElliott { p, r, loss_bad: 1.0, loss_good: 0.0 });
    }
    // Between two runs there is at least one packet that arrives.
    let most = as_percent((burst / (burst + 1.0) * 1e4).floor() / 1e4);
    let message = format!(
        "found a loss of {} in runs of {burst} packets; expected at most {most}, because a packet arrives between two runs",
        as_percent(mean)
    );
    Err(Problem::new(message))
}

/// A loss whose values are right by themselves.
fn single_loss(kind: &str, section: &Section<'_>, contents: &Contents) -> Option<LossModel> {
    match kind {
        "none" => Some(LossModel::None),
        "bernoulli" => Some(LossModel::Bernoulli { rate: section.number("rate")? }),
        "gilbert-elliott" => {
            let (p, r) = (section.number("p")?, section.number("r")?);
            let (loss_bad, loss_good) = (section.number("loss_bad")?, section.number("loss_good")?);
            if section.node("step").is_none() {
                return Some(LossModel::GilbertElliott { p, r, loss_bad, loss_good });
            }
            let step = section.duration("step")?;
            Some(LossModel::GilbertElliottInTime { step, p, r, loss_bad, loss_good })
        }
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
        "normal" => {
            let (sd, memory) = (section.duration("sd")?, section.number("memory")?);
            Some(DelayVariation::Normal { sd, memory, reorder })
        }
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

/// Finds the links of a route for the copy `number`.
///
/// # Errors
/// Returns the place of the first name that is no link, or that comes twice.
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
