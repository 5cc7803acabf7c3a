//! The timeline of a path: when its links change, and from which value to which.
//!
//! ```text
//! [[change]] ─► the network's schedule ─► the values before and after each change ─► lines
//!               ([`follow_changes`])    └► what cannot be meant (`timeline/doubts.rs`)
//! ```
//!
//! Begin to read with [`timeline`].

mod doubts;
mod values;

use std::collections::BTreeSet;

use talkpath_model::Scenario;
use talkpath_path::{Change, ChangeEvent, LinkConfig, follow_changes};
use talkpath_units::{Duration, Instant, counted};

use self::doubts::Doubts;
pub(crate) use self::doubts::{Doubt, DoubtSubject};
use self::values::{Extremes, ValueKey};
use crate::resolve::ChangeSpan;
use crate::words::{file_name, time};

/// When the links of a path change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// What each `[[change]]` does to each link, in the order of the file. Links to which it does the same
    /// are together.
    pub changes: Vec<TimelineChange>,
    /// For each link that changes, its name and the extremes of its values.
    pub extremes: Vec<(String, String)>,
}

/// What one `[[change]]` does to links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineChange {
    /// The number of the `[[change]]`, from 1, as in the key `change.1.delay`.
    pub number: u64,
    /// Its key `name`.
    pub name: Option<String>,
    /// The names of the links.
    pub links: Vec<String>,
    /// When it first comes. `None` if the seed of a repetition draws it.
    pub first: Option<Duration>,
    /// The time from one occurrence to the next. `None` if it comes once.
    pub every: Option<Duration>,
    /// How often it comes while the flows send. `None` if no run is known, or if the run has too many changes
    /// to follow.
    pub times: Option<u64>,
    /// When it comes, in words.
    pub when: String,
    /// What it does, in words: `delay from 20 ms to 38 ms`.
    pub what: String,
}

impl Timeline {
    /// Returns a line for each change, and one for the extremes of each link.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let change = |change: &TimelineChange| {
            let TimelineChange { number, name, links, when, what, .. } = change;
            let name = name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
            format!("change.{number}{name}, {}: {when}: {what}", links.join(" and "))
        };
        let changes = self.changes.iter().map(change);
        changes.chain(self.extremes.iter().map(|(link, text)| format!("{link} in all: {text}")))
    }
}

/// The changes of a cell, and what else is known about the changes.
#[derive(Clone, Copy)]
pub(crate) struct Followed<'a> {
    pub(crate) scenario: &'a Scenario,
    /// Which of its changes come from which `[[change]]`, in the order of the file.
    pub(crate) spans: &'a [ChangeSpan],
    /// Whether the flows send for the scenario's duration. Otherwise no run is known.
    pub(crate) has_run: bool,
}

/// Follows the changes of a cell. Returns `None` if its links do not change.
pub(crate) fn timeline(followed: &Followed<'_>) -> Option<(Timeline, Vec<Doubt>)> {
    let Followed { scenario, spans, has_run } = *followed;
    let changes = &scenario.changes;
    if changes.is_empty() {
        return None;
    }
    let number_of: Vec<u64> =
        spans.iter().flat_map(|span| core::iter::repeat_n(span.number, span.changes)).collect();
    let until = if has_run { scenario.duration } else { enough_time(changes) };
    let mut seen = vec![Seen::default(); changes.len()];
    let mut extremes: Vec<Extremes> =
        scenario.links.iter().map(|link| Extremes::of_link(&link.config)).collect();
    let mut doubts = Doubts::new(changes, &number_of);
    let links: Vec<&LinkConfig> = scenario.links.iter().map(|link| &link.config).collect();
    let cut_at =
        follow_changes(changes, &links, scenario.seed, Instant::ZERO + until, MOST_EVENTS, |event| {
            if let (Some(seen), Some(change)) = (seen.get_mut(event.change), changes.get(event.change)) {
                seen.add(&event, change);
                if let Some(extremes) = extremes.get_mut(change.link as usize) {
                    extremes.add(&event, change);
                }
            }
            doubts.add(&event);
        });
    extremes.iter_mut().for_each(Extremes::end);
    // Of a part of the run no counts are known.
    let followed = &Followed { has_run: has_run && cut_at.is_none(), ..*followed };
    let end = has_run.then_some(scenario.duration);
    // A row of a table may repeat the values of the row before.
    let of_file: Vec<bool> =
        spans.iter().flat_map(|span| core::iter::repeat_n(span.file.is_some(), span.changes)).collect();
    let changes_nothing = |change: usize| {
        cut_at.is_none()
            && of_file.get(change) == Some(&false)
            && seen.get(change).is_some_and(Seen::changes_nothing)
    };
    let mut doubts = doubts.found(end, changes_nothing);
    doubts.extend(doubts::limits_in_time(scenario, &extremes));
    let mut lines = Vec::new();
    let mut begin = 0;
    for span in spans {
        let of_span = begin..begin + span.changes;
        let name = scenario.change_origins.get(begin).and_then(|origin| origin.name.as_deref());
        begin += span.changes;
        let (changes, seen) = (changes.get(of_span.clone()), seen.get(of_span));
        let lines_of_span =
            lines_of_span(followed, span, changes.unwrap_or_default(), seen.unwrap_or_default());
        let named = |line| TimelineChange { name: name.map(str::to_owned), ..line };
        lines.extend(lines_of_span.into_iter().map(named));
    }
    let changed: BTreeSet<u32> = changes.iter().map(|change| change.link).collect();
    let part = cut_at.map_or_else(String::new, |at| {
        format!("; those of the first {MOST_EVENTS} changes, until {}", time(at.since(Instant::ZERO)))
    });
    let of_link = |link: &u32| {
        let (name, extremes) = (scenario.links.get(*link as usize)?, extremes.get(*link as usize)?);
        Some((name.name.clone(), extremes.in_words(followed.has_run) + &part))
    };
    Some((Timeline { changes: lines, extremes: changed.iter().filter_map(of_link).collect() }, doubts))
}

/// We chose to follow at most 100,000 events, a table of a row a second for a day.
const MOST_EVENTS: usize = 100_000;

/// A time in which each change comes, and each period can be seen twice.
fn enough_time(changes: &[Change]) -> Duration {
    let end = |change: &Change| {
        let length = change.ramp.map(|ramp| ramp.over).or(change.outage.map(|outage| outage.length));
        let periods = change.when.every.map_or(Duration::ZERO, |every| every.saturating_mul(2));
        change.when.first.saturating_add(periods).saturating_add(length.unwrap_or_default())
    };
    let last = changes.iter().map(end).max().unwrap_or_default();
    last.saturating_add(Duration::from_nanos(1))
}

/// What one change found when it came.
#[derive(Clone, Debug, Default)]
struct Seen {
    times: u64,
    last: Instant,
    /// For each key, the values in words that it found, each once, and no more than three.
    found: [Vec<String>; ValueKey::COUNT],
    /// How often it found other values than its own.
    changed: u64,
}

impl Seen {
    fn add(&mut self, event: &ChangeEvent<'_>, change: &Change) {
        if !event.begins {
            return;
        }
        self.times += 1;
        self.last = event.at;
        let mut is_changed = change.outage.is_some();
        for (key, found) in ValueKey::ALL.into_iter().zip(&mut self.found) {
            let Some(to) = key.in_words(&change.to) else { continue };
            let Some(before) = key.in_words(event.before) else { continue };
            is_changed |= before != to;
            if !found.contains(&before) && found.len() <= MOST_FOUND {
                found.push(before);
            }
        }
        self.changed += u64::from(is_changed);
    }

    const fn changes_nothing(&self) -> bool {
        self.times > 0 && self.changed == 0
    }
}

/// We chose to name at most two values that a change finds, as the two sides of a handover.
const MOST_FOUND: usize = 2;

/// Describes what one `[[change]]` does.
fn lines_of_span(
    followed: &Followed<'_>,
    span: &ChangeSpan,
    changes: &[Change],
    seen: &[Seen],
) -> Vec<TimelineChange> {
    let mut lines: Vec<TimelineChange> = Vec::new();
    let links: BTreeSet<u32> = changes.iter().map(|change| change.link).collect();
    for link in links {
        let of_link: Vec<(&Change, &Seen)> =
            changes.iter().zip(seen).filter(|(change, _)| change.link == link).collect();
        let line = match (&span.file, &of_link[..]) {
            (Some(file), rows) => line_of_file(followed, span.number, file, rows),
            (None, [(change, seen)]) => Some(line_of_change(followed, span.number, change, seen)),
            (None, _) => None,
        };
        let name = followed.scenario.links.get(link as usize).map(|link| link.name.clone());
        let (Some(line), Some(name)) = (line, name) else { continue };
        match lines.iter_mut().find(|known| known.what == line.what && known.when == line.when) {
            Some(known) => known.links.push(name),
            None => lines.push(TimelineChange { links: vec![name], ..line }),
        }
    }
    lines
}

fn line_of_change(followed: &Followed<'_>, number: u64, change: &Change, seen: &Seen) -> TimelineChange {
    let parts: Vec<String> = ValueKey::ALL
        .into_iter()
        .zip(&seen.found)
        .filter_map(|(key, found)| key.change_in_words(found, MOST_FOUND, &change.to))
        .collect();
    let mut what = parts.join(", ");
    if let Some(ramp) = change.ramp {
        what += &format!(", in {}", counted(u64::from(ramp.steps), "step"));
    }
    if let Some(outage) = change.outage {
        let waiting = if outage.drops { "dropped" } else { "kept" };
        let beside = if what.is_empty() { "" } else { ", " };
        what += &format!("{beside}no service for {}, packets that wait are {waiting}", time(outage.length));
    }
    let length = change.ramp.map(|ramp| ramp.over);
    line(followed, number, change, length, Some(seen), what)
}

fn line_of_file(
    followed: &Followed<'_>,
    number: u64,
    file: &str,
    rows: &[(&Change, &Seen)],
) -> Option<TimelineChange> {
    let (first, last) = (rows.first()?.0, rows.last()?.0);
    let mut extremes = Extremes::default();
    for (change, _) in rows {
        extremes.add_values(&change.to, change.when.first);
    }
    let used = rows.iter().filter(|(_, seen)| seen.times > 0).count();
    let mut what = format!(
        "{} of {} to {}: {}",
        counted(rows.len(), "row"),
        file_name(file),
        time(last.when.first),
        extremes.in_words(true)
    );
    if followed.has_run && used < rows.len() {
        what += &format!("; the run of {} sees {used} of the rows", time(followed.scenario.duration));
    }
    Some(line(followed, number, first, None, None, what))
}

/// A line without the names of its links. `seen` is `None` for a file, whose rows come at times of their own.
fn line(
    followed: &Followed<'_>,
    number: u64,
    change: &Change,
    length: Option<Duration>,
    seen: Option<&Seen>,
    what: String,
) -> TimelineChange {
    let when = change.when;
    let times = seen.map(|seen| seen.times).filter(|_| followed.has_run);
    let first = (!when.random_phase).then_some(when.first);
    let begin = match length {
        Some(length) => format!("from {} to {}", time(when.first), time(when.first.saturating_add(length))),
        None => format!("at {}", time(when.first)),
    };
    let often = match times {
        Some(times) => format!(", {} in the run", talkpath_units::times(times)),
        None => String::new(),
    };
    let in_words = match when.every {
        Some(every) if when.random_phase => {
            format!("every {}, first at a time that the seed draws{often}", time(every))
        }
        Some(every) => format!("{begin} and then every {}{often}", time(every)),
        None => begin,
    };
    TimelineChange {
        number,
        name: None,
        links: Vec::new(),
        first,
        every: when.every,
        times,
        when: in_words,
        what,
    }
}
