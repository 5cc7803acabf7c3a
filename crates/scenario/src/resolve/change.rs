//! Changes of links at stated times: `[[change]]`.
//!
//! - A table without `link` is one change of each link. A table with `file` is one change for each row of the
//!   file and each link.
//! - A *ramp* changes a value in equal steps over a time. An *outage* stops a link for a time.
//!
//! Begin to read with [`changes`], then [`changes_of_table`].

use std::sync::Arc;

use talkpath_model::{ChangeOrigin, NamedLink};
use talkpath_path::{
    Change, ChangeTable, ChangeTimes, LinkState, LinkValues, LossModel, Medium, Outage, QueueKind,
    QueueLimit, Ramp, RateModel,
};
use talkpath_units::{Bytes, Duration, Packets, Rate};

use super::link::{Links, loss, matches};
use crate::contents::Contents;
use crate::diagnostic::Log;
use crate::keys::{CHANGE, CHANGED_QUEUE};
use crate::quantity::{Amount, Dimension, Problem};
use crate::read::{KeyPath, unknown_name};
use crate::section::Section;
use crate::tree::{Meaning, Node, Table, Value};

/// We chose 10 steps for a ramp without `steps`, because a tenth of the way is coarse enough to be seen and
/// fine enough to follow.
const DEFAULT_STEPS: u64 = 10;
/// We chose at most two million steps of all changes in one run, because a step takes about a microsecond.
const MAX_STEPS: u64 = 2_000_000;

/// Returns the changes of a cell and where each comes from, or `None` if there are mistakes.
pub(crate) fn changes(
    root: &Table,
    links: &Links,
    duration: Option<Duration>,
    contents: &Contents,
    log: &mut Log,
) -> Option<(Vec<Change>, Vec<ChangeOrigin>)> {
    let Some(Node { value: Value::List(tables), place, .. }) = root.get("change") else {
        return Some((Vec::new(), Vec::new()));
    };
    let resolved_links = links.resolved.as_ref()?;
    if !links.is_known {
        let message = "found changes, and neither a `path` nor `link` tables that they could be for";
        log.mistake(place, "change", message);
        return None;
    }
    let list_path = KeyPath::ROOT.key("change");
    let mut changes = Vec::new();
    let mut origins = Vec::new();
    let mut is_right = true;
    for (number, node) in (1_u32..).zip(tables) {
        let key = number.to_string();
        let section = Section::new(node.as_table()?, CHANGE.keys, list_path.key(&key), &node.place);
        match changes_of_table(&section, resolved_links, duration, contents) {
            Ok(Some(changes_of_table)) => {
                warn_of_late_change(&section, &changes_of_table, duration, log);
                let name = section.text("name").map(Arc::from);
                let origin = ChangeOrigin { table: number, name, is_of_file: has(&section, "file") };
                origins.extend(changes_of_table.iter().map(|_| origin.clone()));
                changes.extend(changes_of_table);
            }
            // The pass `check` has reported the value that is wrong.
            Ok(None) => is_right = false,
            Err(KeyProblem { key, problem }) => {
                // If another key of the table is mistyped, the problem may follow from it.
                if !log.has_mistake_in(&section.at.to_string()) {
                    section.problem(key, problem, log);
                }
                is_right = false;
            }
        }
    }
    let steps = changes.iter().map(|change| steps_in_run(change, duration)).fold(0, u64::saturating_add);
    if steps > MAX_STEPS {
        let message = format!("found changes at {steps} instants of the run, expected at most {MAX_STEPS}");
        log.mistake(place, "change", message);
        return None;
    }
    is_right.then_some((changes, origins))
}

/// The changes of a cell that come from one `[[change]]`.
#[derive(Clone, Debug)]
pub(crate) struct ChangeSpan {
    /// The number of the `[[change]]`, from 1.
    pub(crate) number: u64,
    /// How many changes it makes: one for each link, and with a file one for each row and link.
    pub(crate) changes: usize,
    /// The file with its values.
    pub(crate) file: Option<String>,
}

/// Returns how the changes of a cell, whose tree is `root`, come from its tables, in their order.
pub(crate) fn change_spans(root: &Table, links: &[NamedLink], contents: &Contents) -> Vec<ChangeSpan> {
    let Some(Node { value: Value::List(tables), .. }) = root.get("change") else { return Vec::new() };
    let span = |(number, node): (u64, &Node)| {
        let section = Section::new(node.as_table()?, CHANGE.keys, KeyPath::ROOT, &node.place);
        let indices = indices_of_links(&section, links).ok()?;
        let file = section.node("file").and_then(Node::as_text);
        let changes_of = |index: &u32| match file {
            None => 1,
            Some(file) => {
                let rows =
                    contents.changes(file).and_then(|table| table.rows_of(&links[*index as usize].name));
                rows.map_or(0, <[_]>::len)
            }
        };
        let changes = indices.iter().map(changes_of).sum();
        Some(ChangeSpan { number, changes, file: file.map(str::to_owned) })
    };
    (1..).zip(tables).filter_map(span).collect()
}

/// Warns if the first change of a table comes after the senders of the run stop.
fn warn_of_late_change(section: &Section<'_>, changes: &[Change], duration: Option<Duration>, log: &mut Log) {
    let Some(duration) = duration else { return };
    let fixed = changes.iter().filter(|change| !change.when.random_phase);
    if let Some(first) = fixed.map(|change| change.when.first).min().filter(|first| *first >= duration) {
        let message = format!(
            "the change comes first at {first}, but the run sends for {duration}; `duration`, or --duration of \
                               compare, makes it longer"
        );
        section.warning(time_key(section), &message, log);
    }
}

fn steps_in_run(change: &Change, duration: Option<Duration>) -> u64 {
    let times = match (change.when.every, duration) {
        (Some(every), Some(duration)) => duration.as_nanos() / every.as_nanos().max(1) + 1,
        _ => 1,
    };
    // An outage has two steps, its beginning and its end.
    times.saturating_mul(u64::from(change.ramp.map_or(2, |ramp| ramp.steps)))
}

/// The reason why the value of a key does not fit the other values of its table.
struct KeyProblem {
    key: &'static str,
    problem: Problem,
}

impl KeyProblem {
    fn new(key: &'static str, problem: impl Into<Problem>) -> Self {
        Self { key, problem: problem.into() }
    }
}

fn has(section: &Section<'_>, key: &str) -> bool {
    section.node(key).is_some()
}

/// Returns the key of the table that says when the change comes.
fn time_key(section: &Section<'_>) -> &'static str {
    if has(section, "at") { "at" } else { "every" }
}

/// Returns the changes of one table, or `Ok(None)` if a single value is wrong.
///
/// # Errors
/// Returns a problem if the values of the table do not fit together.
fn changes_of_table(
    section: &Section<'_>,
    links: &[NamedLink],
    duration: Option<Duration>,
    contents: &Contents,
) -> Result<Option<Vec<Change>>, KeyProblem> {
    let indices = indices_of_links(section, links)?;
    let Some(when) = times(section)? else { return Ok(None) };
    let Some(values) = values(section, contents)? else { return Ok(None) };
    let outage = outage(section, &when)?;
    if let Some(file) = section.node("file") {
        let other_keys = ["rate", "delay", "loss", "queue", "over", "outage", "up"];
        if let Some(key) = other_keys.into_iter().find(|key| has(section, key)) {
            let message = format!("found `{key}` beside `file`; a change has one or the other");
            return Err(KeyProblem::new(key, message));
        }
        let Some(rows) = file.as_text().and_then(|name| contents.changes(name)) else { return Ok(None) };
        return changes_of_rows(section, rows, (&indices, links), when, duration).map(Some);
    }
    if values == LinkValues::default() && outage.is_none() {
        let message =
            "found a time and no value; expected one of rate, delay, loss, queue.limit, outage, up or file";
        let problem = Problem::new(message).with_help("as in delay = \"38 ms\"");
        return Err(KeyProblem::new(time_key(section), problem));
    }
    let ramp = ramp(section, &when, &values, outage)?;
    for index in &indices {
        check_wifi_takes_values(&links[*index as usize], &values, outage.is_some())?;
        check_link_takes_values(&links[*index as usize], &values, ramp.is_some())?;
    }
    let overtake = section.flag("overtake").unwrap_or(false);
    let change = |&link: &u32| Change { link, when, to: values.clone(), ramp, outage, overtake };
    Ok(Some(indices.iter().map(change).collect()))
}

fn indices_of_links(section: &Section<'_>, links: &[NamedLink]) -> Result<Vec<u32>, KeyProblem> {
    let Some(name) = section.text("link") else { return Ok((0..links.len() as u32).collect()) };
    let named = (0..).zip(links).filter(|(_, link)| matches(name, &link.name));
    let indices: Vec<u32> = named.map(|(index, _)| index).collect();
    if indices.is_empty() {
        let names: Vec<_> = links.iter().map(|link| link.name.clone()).collect();
        return Err(KeyProblem::new("link", unknown_name(name, "link", &names)));
    }
    Ok(indices)
}

/// Returns the times of the change, or `Ok(None)` if one of the keys is wrong.
fn times(section: &Section<'_>) -> Result<Option<ChangeTimes>, KeyProblem> {
    if !["at", "every", "file"].into_iter().any(|key| has(section, key)) {
        let problem = Problem::new("missing; expected `at`, `every` or both: when the change comes");
        return Err(KeyProblem::new("at", problem.with_help("as in at = \"30 s\"")));
    }
    if has(section, "phase") && !has(section, "every") {
        let message = "found `phase` alone, expected `every` beside it: the period";
        return Err(KeyProblem::new("phase", message));
    }
    if ["at", "every", "phase"].into_iter().any(|key| has(section, key) && section.meaning(key).is_none()) {
        return Ok(None);
    }
    let (at, every) = (section.duration("at"), section.duration("every"));
    let phase = section.duration_or_word("phase");
    let first = match (at, every, phase) {
        (at, Some(every), Some(phase)) => {
            let shifted = at.unwrap_or(Duration::ZERO).saturating_add(phase.unwrap_or(Duration::ZERO));
            Duration::from_nanos(shifted.as_nanos() % every.as_nanos().max(1))
        }
        (Some(at), ..) => at,
        // The values of a file begin with the run.
        (None, Some(every), None) if !has(section, "file") => every,
        _ => Duration::ZERO,
    };
    Ok(Some(ChangeTimes { first, every, random_phase: phase == Some(None) }))
}

/// Returns the values that the change sets, or `Ok(None)` if one of them is wrong.
fn values(section: &Section<'_>, contents: &Contents) -> Result<Option<LinkValues>, KeyProblem> {
    let Some(values) = values_without_loss(section) else { return Ok(None) };
    if !has(section, "loss") {
        return Ok(Some(values));
    }
    let loss = loss(section, contents).map_err(|problem| KeyProblem::new("loss", problem))?;
    Ok(loss.map(|loss| LinkValues { loss: Some(loss), ..values }))
}

/// Returns the values of a change but its loss, or `None` if one of them is wrong.
fn values_without_loss(section: &Section<'_>) -> Option<LinkValues> {
    let mut values = LinkValues::default();
    if has(section, "rate") {
        values.rate = Some(match section.meaning("rate")? {
            Meaning::Amount(amount) => RateModel::Fixed(Rate::from_bps(amount.count)),
            _ => RateModel::Unlimited,
        });
    }
    if has(section, "delay") {
        values.delay = Some(section.duration("delay")?);
    }
    if let Some(queue) = section.node("queue") {
        let queue = Section::new(queue.as_table()?, CHANGED_QUEUE.keys, section.at, section.place);
        let Meaning::Amount(Amount { dimension, count }) = queue.meaning("limit")? else { return None };
        values.limit = Some(match dimension {
            Dimension::Packets => QueueLimit::Packets(Packets::new(count)),
            _ => QueueLimit::Bytes(Bytes::new(count)),
        });
    }
    if has(section, "up") {
        let down = LinkState::Down { drops: drops_waiting(section) };
        values.state = Some(if section.flag("up")? { LinkState::Up } else { down });
    }
    Some(values)
}

fn drops_waiting(section: &Section<'_>) -> bool {
    section.choice("waiting") == Some("drop")
}

fn outage(section: &Section<'_>, when: &ChangeTimes) -> Result<Option<Outage>, KeyProblem> {
    if has(section, "outage") && has(section, "up") {
        return Err(KeyProblem::new("up", "found `up` beside `outage`, which has an end of its own"));
    }
    if has(section, "waiting") && !has(section, "outage") && section.flag("up") != Some(false) {
        let message = "found `waiting` without an outage; expected `outage`, or up = false";
        return Err(KeyProblem::new("waiting", message));
    }
    let Some(length) = section.duration("outage") else { return Ok(None) };
    if let Some(every) = when.every.filter(|every| *every <= length) {
        let message = format!("found an outage of {length} every {every}, expected a shorter one");
        return Err(KeyProblem::new("outage", Problem::new(message).with_help("up = false has no end")));
    }
    Ok(Some(Outage { length, drops: drops_waiting(section) }))
}

fn ramp(
    section: &Section<'_>,
    when: &ChangeTimes,
    to: &LinkValues,
    outage: Option<Outage>,
) -> Result<Option<Ramp>, KeyProblem> {
    if has(section, "steps") && !has(section, "over") {
        let message = "found `steps` alone, expected `over` beside it: how long the ramp is";
        return Err(KeyProblem::new("steps", message));
    }
    let Some(over) = section.duration("over") else { return Ok(None) };
    if outage.is_some() || to.state.is_some() {
        let message = "found a ramp of a link that goes up or down, which it does at once";
        return Err(KeyProblem::new("over", message));
    }
    if let Some(every) = when.every.filter(|every| *every < over) {
        let message =
            format!("found a ramp of {over} every {every}, expected one that ends within its period");
        return Err(KeyProblem::new("over", message));
    }
    if to.rate == Some(RateModel::Unlimited) {
        return Err(KeyProblem::new("rate", "found a ramp to \"unlimited\", which is no number"));
    }
    if to.loss.as_ref().is_some_and(|loss| !is_share(loss)) {
        let message = "found a ramp to a loss model with memory, expected a share such as 0.01";
        return Err(KeyProblem::new("loss", message));
    }
    let steps = section.count("steps").unwrap_or(DEFAULT_STEPS) as u32;
    Ok(Some(Ramp { over, steps }))
}

/// A link over Wi-Fi keeps its rate, and is always up.
fn check_wifi_takes_values(link: &NamedLink, to: &LinkValues, has_outage: bool) -> Result<(), KeyProblem> {
    let key = match to {
        _ if has_outage => "outage",
        LinkValues { rate: Some(_), .. } => "rate",
        LinkValues { state: Some(_), .. } => "up",
        _ => return Ok(()),
    };
    if link.config.medium == Medium::Wire {
        return Ok(());
    }
    let message = format!(
        "found a change of {}, which is over Wi-Fi: its rate does not change, and it has no outages. `delay`, `loss` and `queue` change",
        link.name
    );
    Err(KeyProblem::new(key, message))
}

fn check_link_takes_values(link: &NamedLink, to: &LinkValues, is_ramp: bool) -> Result<(), KeyProblem> {
    let NamedLink { name, config } = link;
    let limit = config.queue.limit();
    let is_fq_codel = matches!(config.queue, QueueKind::FqCodel(_));
    let has_other_unit = |to: QueueLimit| core::mem::discriminant(&to) != core::mem::discriminant(&limit);
    if is_fq_codel && matches!(to.limit, Some(QueueLimit::Bytes(_))) {
        let message =
            format!("found a limit in bytes, but the queue of {name} is fq_codel, whose limit is in packets");
        return Err(KeyProblem::new("queue", message));
    }
    if config.cellular.is_some() && to.rate == Some(RateModel::Unlimited) {
        let message = format!("found an unlimited rate of {name}, which is a user's share of a cell");
        return Err(KeyProblem::new("rate", message));
    }
    if is_ramp && to.rate.is_some() && !matches!(config.rate, RateModel::Fixed(_)) {
        let message = format!("found a ramp of the rate of {name}, which has no fixed rate to begin from");
        return Err(KeyProblem::new("rate", message));
    }
    if is_ramp && to.loss.is_some() && !is_share(&config.loss) {
        let message = format!("found a ramp of the loss of {name}, which has a loss model with memory");
        return Err(KeyProblem::new("loss", message));
    }
    if is_ramp && to.limit.is_some_and(has_other_unit) {
        let message = format!("found a ramp to a limit in another unit than that of {name}");
        return Err(KeyProblem::new("queue", message));
    }
    Ok(())
}

/// Whether packets are lost independently, each with the same probability. Only such a loss can have a ramp.
const fn is_share(loss: &LossModel) -> bool {
    matches!(loss, LossModel::None | LossModel::Bernoulli { .. })
}

/// Returns a change for each row of a file and each link.
fn changes_of_rows(
    section: &Section<'_>,
    file: &ChangeTable,
    (indices, links): (&[u32], &[NamedLink]),
    when: ChangeTimes,
    duration: Option<Duration>,
) -> Result<Vec<Change>, KeyProblem> {
    // Both directions have the same times.
    let (rows, _) = file.directions();
    let last = rows.last().map_or(Duration::ZERO, |(time, _)| *time);
    if let Some(every) = when.every.filter(|every| *every <= last) {
        let message = format!(
            "found a period of {every}, but the last row of the file is at {last}; expected a longer one"
        );
        return Err(KeyProblem::new("every", message));
    }
    let first = rows.first().map_or(Duration::ZERO, |(time, _)| *time);
    if let Some(duration) = duration.filter(|duration| first >= *duration) {
        let message = format!("found times from {first} on, but the run sends for {duration}");
        let help = "times are counted from the run's beginning: `talkpath trace FILE -o NEW.csv` writes them from zero, and \
                    `--path FILE` counts from the first row";
        return Err(KeyProblem::new("file", Problem::new(message).with_help(help)));
    }
    let overtake = section.flag("overtake").unwrap_or(false);
    let mut changes = Vec::new();
    for &link in indices {
        let NamedLink { name, .. } = &links[link as usize];
        let Some(rows) = file.rows_of(name) else {
            let message = format!(
                "found columns of `up` and `down` in the file, but the link {name:?}; expected columns without a direction, or \
                 link = \"up\" or \"down\""
            );
            return Err(KeyProblem::new("file", message));
        };
        for (time, to) in rows {
            check_wifi_takes_values(&links[link as usize], to, false)
                .map_err(|problem| KeyProblem { key: "file", ..problem })?;
            let when = ChangeTimes { first: when.first.saturating_add(*time), ..when };
            changes.push(Change { link, when, to: to.clone(), ramp: None, outage: None, overtake });
        }
    }
    Ok(changes)
}
