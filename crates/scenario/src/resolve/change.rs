//! Changes of links at stated times: `[[change]]`.
//!
//! A change without `link` is one change for each link. A file is one change for each row.

use talkpath_model::NamedLink;
use talkpath_path::{
    Change, ChangeTable, ChangeTimes, LinkState, LinkValues, LossModel, Outage, QueueKind, QueueLimit, Ramp,
    RateModel,
};
use talkpath_units::{Bytes, Duration, Packets, Rate};

use super::link::{Links, loss, matches};
use crate::contents::Contents;
use crate::diagnostic::Log;
use crate::keys::{CHANGE, CHANGED_QUEUE};
use crate::names::unknown_name;
use crate::quantity::{Amount, Dimension, Problem};
use crate::read::KeyPath;
use crate::section::Section;
use crate::tree::{Meaning, Node, Table, Value};

/// The changes of a cell; `None` if there are mistakes.
pub(crate) fn changes(
    root: &Table,
    links: &Links,
    duration: Option<Duration>,
    contents: &Contents,
    log: &mut Log,
) -> Option<Vec<Change>> {
    let Some(Node { value: Value::List(tables), place, .. }) = root.get("change") else {
        return Some(Vec::new());
    };
    let made = links.resolved.as_ref()?;
    let (top, mut changes, mut is_right) = (KeyPath::ROOT.key("change"), Vec::new(), true);
    if !links.is_known {
        let message = "found changes, and neither a `path` nor `link` tables that they could be for";
        log.mistake(place, "change", message);
        return None;
    }
    for (number, node) in (1_u64..).zip(tables) {
        let number = number.to_string();
        let at = top.key(&number);
        let table = node.as_table()?;
        let section = Section::new(table, CHANGE.keys, at, &node.place);
        match change(&section, made, duration, contents) {
            Ok(Some(of_table)) => {
                warn_of_late_change(&section, &of_table, duration, log);
                changes.extend(of_table);
            }
            // A mistake in a single value is reported already.
            Ok(None) => is_right = false,
            Err((key, problem)) => {
                // What values lack beside each other may follow from a mistyped key.
                if !log.has_mistake_in(&at.to_string()) {
                    section.problem(key, problem, log);
                }
                is_right = false;
            }
        }
    }
    let instants: u64 = changes.iter().map(|change| instants(change, duration)).fold(0, u64::saturating_add);
    if instants > MOST_INSTANTS {
        let message =
            format!("found changes at {instants} instants of the run, expected at most {MOST_INSTANTS}");
        log.mistake(place, "change", message);
        return None;
    }
    is_right.then_some(changes)
}

/// Warns if no change of a table comes before the run's senders stop.
fn warn_of_late_change(section: &Section<'_>, changes: &[Change], duration: Option<Duration>, log: &mut Log) {
    let Some(duration) = duration else { return };
    let first =
        changes.iter().filter(|change| !change.when.random_phase).map(|change| change.when.first).min();
    if let Some(first) = first.filter(|first| *first >= duration) {
        let key = if section.node("at").is_some() { "at" } else { "every" };
        let message = format!("the change comes first at {first}, but the run sends for {duration}");
        section.warning(key, &message, log);
    }
}

/// A key, and what is wrong with its value beside other values.
type Wrong = (&'static str, Problem);

/// The changes of one table.
fn change(
    section: &Section<'_>,
    links: &[NamedLink],
    duration: Option<Duration>,
    contents: &Contents,
) -> Result<Option<Vec<Change>>, Wrong> {
    let has = |key: &str| section.node(key).is_some();
    let indices = of_links(section, links)?;
    let Some(when) = times(section)? else { return Ok(None) };
    let Some(values) = values(section, contents)? else { return Ok(None) };
    let outage = outage(section, &when)?;
    if let Some(file) = section.node("file") {
        let beside = ["rate", "delay", "loss", "queue", "over", "outage", "up"];
        if let Some(key) = beside.into_iter().find(|key| has(key)) {
            return Err((
                key,
                Problem::new(format!("found `{key}` beside `file`; a change has one or the other")),
            ));
        }
        let Some(table) = file.as_text().and_then(|name| contents.changes(name)) else { return Ok(None) };
        return of_table(section, table, &indices, when, duration).map(Some);
    }
    if values == LinkValues::default() && outage.is_none() {
        let message =
            "found a time and no value; expected one of rate, delay, loss, queue.limit, outage, up or file";
        let key = if has("at") { "at" } else { "every" };
        return Err((key, Problem::new(message).with_help("as in delay = \"38 ms\"")));
    }
    let ramp = ramp(section, &when, &values, outage)?;
    for index in &indices {
        fits(&links[*index as usize], &values, ramp.is_some())?;
    }
    let overtake = section.flag("overtake").unwrap_or(false);
    let change = |&link: &u32| Change { link, when, to: values.clone(), ramp, outage, overtake };
    Ok(Some(indices.iter().map(change).collect()))
}

/// The links that the change is for, by index.
fn of_links(section: &Section<'_>, links: &[NamedLink]) -> Result<Vec<u32>, Wrong> {
    let Some(name) = section.text("link") else { return Ok((0..links.len() as u32).collect()) };
    let found: Vec<u32> =
        (0..).zip(links).filter(|(_, link)| matches(name, &link.name)).map(|(index, _)| index).collect();
    if found.is_empty() {
        let names: Vec<_> = links.iter().map(|link| link.name.clone()).collect();
        return Err(("link", unknown_name(name, "link", &names)));
    }
    Ok(found)
}

/// When the change comes.
fn times(section: &Section<'_>) -> Result<Option<ChangeTimes>, Wrong> {
    let has = |key: &str| section.node(key).is_some();
    if !has("at") && !has("every") && !has("file") {
        let problem = Problem::new("missing; expected `at`, `every` or both: when the change comes");
        return Err(("at", problem.with_help("as in at = \"30 s\"")));
    }
    if has("phase") && !has("every") {
        return Err(("phase", Problem::new("found `phase` alone, expected `every` beside it: the period")));
    }
    if ["at", "every", "phase"].into_iter().any(|key| has(key) && section.meaning(key).is_none()) {
        return Ok(None);
    }
    let (at, every, phase) =
        (section.duration("at"), section.duration("every"), section.duration_or_word("phase"));
    let first = match (at, every, phase) {
        (at, Some(every), Some(phase)) => {
            let shifted = at.unwrap_or(Duration::ZERO).saturating_add(phase.unwrap_or(Duration::ZERO));
            Duration::from_nanos(shifted.as_nanos() % every.as_nanos().max(1))
        }
        (Some(at), ..) => at,
        // The values of a file hold from the beginning.
        (None, Some(every), None) if !has("file") => every,
        _ => Duration::ZERO,
    };
    Ok(Some(ChangeTimes { first, every, random_phase: phase == Some(None) }))
}

/// The values that the change sets; `None` if one is wrong, which is reported already.
///
/// # Errors
/// Returns the key whose values together cannot be.
fn values(section: &Section<'_>, contents: &Contents) -> Result<Option<LinkValues>, Wrong> {
    let new_loss = match section.node("loss") {
        Some(_) => loss(section, contents).map_err(|problem| ("loss", problem))?,
        None => None,
    };
    Ok(other_values(section).and_then(|values| match section.node("loss") {
        Some(_) => Some(LinkValues { loss: Some(new_loss?), ..values }),
        None => Some(values),
    }))
}

/// The values of a change without its loss; `None` if one is wrong, which is reported already.
fn other_values(section: &Section<'_>) -> Option<LinkValues> {
    let mut values = LinkValues::default();
    if section.node("rate").is_some() {
        values.rate = Some(match section.meaning("rate")? {
            Meaning::Amount(amount) => RateModel::Fixed(Rate::from_bps(amount.count)),
            _ => RateModel::Unlimited,
        });
    }
    if section.node("delay").is_some() {
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
    if section.node("up").is_some() {
        let drops = drops(section);
        values.state = Some(if section.flag("up")? { LinkState::Up } else { LinkState::Down { drops } });
    }
    Some(values)
}

/// Whether an outage drops what waits.
fn drops(section: &Section<'_>) -> bool {
    section.choice("waiting") == Some("drop")
}

fn outage(section: &Section<'_>, when: &ChangeTimes) -> Result<Option<Outage>, Wrong> {
    let has = |key: &str| section.node(key).is_some();
    if has("outage") && has("up") {
        return Err(("up", Problem::new("found `up` beside `outage`, which has an end of its own")));
    }
    if has("waiting") && !has("outage") && section.flag("up") != Some(false) {
        return Err((
            "waiting",
            Problem::new("found `waiting` without an outage; expected `outage`, or up = false"),
        ));
    }
    let Some(length) = section.duration("outage") else { return Ok(None) };
    if let Some(every) = when.every.filter(|every| *every <= length) {
        let message = format!("found an outage of {length} every {every}, expected a shorter one");
        return Err(("outage", Problem::new(message).with_help("up = false has no end")));
    }
    Ok(Some(Outage { length, drops: drops(section) }))
}

fn ramp(
    section: &Section<'_>,
    when: &ChangeTimes,
    to: &LinkValues,
    outage: Option<Outage>,
) -> Result<Option<Ramp>, Wrong> {
    let has = |key: &str| section.node(key).is_some();
    if has("steps") && !has("over") {
        return Err((
            "steps",
            Problem::new("found `steps` alone, expected `over` beside it: how long the ramp is"),
        ));
    }
    let Some(over) = section.duration("over") else { return Ok(None) };
    if outage.is_some() || to.state.is_some() {
        return Err((
            "over",
            Problem::new("found a ramp of a link that goes up or down, which it does at once"),
        ));
    }
    if let Some(every) = when.every.filter(|every| *every < over) {
        let message =
            format!("found a ramp of {over} every {every}, expected one that ends within its period");
        return Err(("over", Problem::new(message)));
    }
    if to.rate == Some(RateModel::Unlimited) {
        return Err(("rate", Problem::new("found a ramp to \"unlimited\", which is no number")));
    }
    if to.loss.as_ref().is_some_and(|loss| !is_share(loss)) {
        return Err((
            "loss",
            Problem::new("found a ramp to a loss model with memory, expected a share such as 0.01"),
        ));
    }
    let steps = section.count("steps").unwrap_or(USUAL_STEPS) as u32;
    Ok(Some(Ramp { over, steps }))
}

/// Whether `link` can take the values of a change.
fn fits(link: &NamedLink, to: &LinkValues, is_ramp: bool) -> Result<(), Wrong> {
    let NamedLink { name, config } = link;
    if to.limit.is_some_and(|limit| matches!(limit, QueueLimit::Bytes(_)))
        && matches!(config.queue, QueueKind::FqCodel(_))
    {
        let message =
            format!("found a limit in bytes, but the queue of {name} is fq_codel, whose limit is in packets");
        return Err(("queue", Problem::new(message)));
    }
    if is_ramp && to.rate.is_some() && !matches!(config.rate, RateModel::Fixed(_)) {
        let message = format!("found a ramp of the rate of {name}, which has no fixed rate to begin from");
        return Err(("rate", Problem::new(message)));
    }
    if is_ramp && to.loss.is_some() && !is_share(&config.loss) {
        let message = format!("found a ramp of the loss of {name}, which has a loss model with memory");
        return Err(("loss", Problem::new(message)));
    }
    let limit = match &config.queue {
        QueueKind::DropTail(queue) => queue.limit,
        QueueKind::Codel(queue) => queue.limit,
        QueueKind::Fq(queue) => queue.limit,
        QueueKind::FqCodel(queue) => QueueLimit::Packets(queue.limit),
    };
    let is_other_unit = |to: QueueLimit| core::mem::discriminant(&to) != core::mem::discriminant(&limit);
    if is_ramp && to.limit.is_some_and(is_other_unit) {
        let message = format!("found a ramp to a limit in another unit than that of {name}");
        return Err(("queue", Problem::new(message)));
    }
    Ok(())
}

/// One change for each row of `table` and each link.
fn of_table(
    section: &Section<'_>,
    table: &ChangeTable,
    links: &[u32],
    when: ChangeTimes,
    duration: Option<Duration>,
) -> Result<Vec<Change>, Wrong> {
    let last = table.rows().last().map_or(Duration::ZERO, |(time, _)| *time);
    if let Some(every) = when.every.filter(|every| *every <= last) {
        let message = format!(
            "found a period of {every}, but the last row of the file is at {last}; expected a longer one"
        );
        return Err(("every", Problem::new(message)));
    }
    let first = table.rows().first().map_or(Duration::ZERO, |(time, _)| *time);
    if let Some(duration) = duration.filter(|duration| first >= *duration) {
        let message = format!("found times from {first} on, but the run sends for {duration}");
        let help = "times are counted from the run's beginning; subtract the first one: \
                    `awk 'NR == 1 { print; next } NR == 2 { first = $1 } { $1 = $1 - first; print }' FILE > from-zero.txt`";
        return Err(("file", Problem::new(message).with_help(help)));
    }
    let overtake = section.flag("overtake").unwrap_or(false);
    let change = |link: u32, (time, to): &(Duration, LinkValues)| Change {
        link,
        when: ChangeTimes { first: when.first.saturating_add(*time), ..when },
        to: to.clone(),
        ramp: None,
        outage: None,
        overtake,
    };
    let of_link = |&link: &u32| table.rows().iter().map(move |row| change(link, row));
    Ok(links.iter().flat_map(of_link).collect())
}

/// Whether a loss is a share of the packets, each lost independently.
const fn is_share(loss: &LossModel) -> bool {
    matches!(loss, LossModel::None | LossModel::Bernoulli { .. })
}

/// How many instants of a run have a step of this change.
fn instants(change: &Change, duration: Option<Duration>) -> u64 {
    let times = match (change.when.every, duration) {
        (Some(every), Some(duration)) => duration.as_nanos() / every.as_nanos().max(1) + 1,
        _ => 1,
    };
    times.saturating_mul(u64::from(change.ramp.map_or(2, |ramp| ramp.steps)))
}

/// The steps of a ramp without the key: a tenth of the way at once is coarse enough to be seen, and fine
/// enough to follow. Chosen.
const USUAL_STEPS: u64 = 10;
/// Steps of all changes in one run. Chosen: a step costs about a microsecond.
const MOST_INSTANTS: u64 = 2_000_000;
