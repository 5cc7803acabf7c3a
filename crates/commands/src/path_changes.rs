//! The changes of a path, in words and in groups, for answers and for the time axes of a page.
//!
//! Changes are a group if they have the same `name`, or else if they change the same keys of the same links,
//! such as the two delays between which a satellite's handovers alternate. The rows of a file are a group,
//! and its rows with a rate of 0 are another: a silence.

mod mark;
mod worse;

use std::collections::BTreeMap;

use talkpath_measure::chart_data::CellChartData;
use talkpath_measure::path_changes::{ChangeGroup, FlowOfRun, split};
use talkpath_measure::summary::{
    ByChange, ChangeKind, MOST_CHANGES, PathChange, PathChanges, RunSummary, Summary,
};
use talkpath_path::{
    Change, ChangeMark, LinkConfig, LinkState, LinkValues, LossModel, QueueLimit, RateModel, change_marks,
};
use talkpath_report::CellChanges;
use talkpath_scenario::{Plan, Scenario};
use talkpath_units::{Duration, Instant, Rate, Seed, counted};

use self::mark::{Mark, bits};
use self::worse::{merged, worse_times};

/// Returns the changes of each cell in `chart_data`. A change with a random phase is where the drawn
/// repetition had it.
pub(crate) fn path_changes(plan: &Plan, summary: &Summary, chart_data: &[CellChartData]) -> Vec<CellChanges> {
    let of_cell = |drawn: &CellChartData| {
        let scenario = &plan.cell(drawn.cell)?.scenario;
        let is_drawn = |cell, repetition| (cell, repetition) == (drawn.cell, drawn.repetition);
        let run = summary.runs.iter().find(|run| is_drawn(run.cell, run.repetition))?;
        let Timeline { changes, groups } = Timeline::new(scenario, Seed::new(run.seed));
        let seconds = scenario.duration.as_secs_f64();
        let worse = groups.into_iter().map(|group| (group.words, group.worse)).collect();
        (!changes.is_empty()).then_some(CellChanges { cell: drawn.cell, changes, worse, seconds })
    };
    chart_data.iter().filter_map(of_cell).collect()
}

/// Notes in each repetition of `summary` how the path of its cell in `plan` changes, and which lost and late
/// messages belong to which changes.
pub(crate) fn note_changes(plan: &Plan, summary: &mut Summary) {
    let mut runs_by_cell: BTreeMap<u64, Vec<&mut RunSummary>> = BTreeMap::new();
    for run in &mut summary.runs {
        runs_by_cell.entry(run.cell).or_default().push(run);
    }
    for (cell, mut runs) in runs_by_cell {
        let Some(cell) = plan.cell(cell).filter(|cell| !cell.scenario.changes.is_empty()) else { continue };
        let timelines: Vec<Timeline> =
            runs.iter().map(|run| Timeline::new(&cell.scenario, Seed::new(run.seed))).collect();
        note_shares(&mut runs, &timelines, cell.scenario.duration);
        for (run, timeline) in runs.into_iter().zip(timelines) {
            run.changes = Some(Box::new(PathChanges(timeline.listed())));
        }
    }
}

/// Notes in each flow of `runs`, the repetitions of a cell, what belongs to each group of changes.
fn note_shares(runs: &mut [&mut RunSummary], timelines: &[Timeline], duration: Duration) {
    let mut names: Vec<String> = runs.iter().flat_map(|run| run.flows.keys().cloned()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let with_flow = || runs.iter().zip(timelines).filter(|(run, _)| run.flows.contains_key(&name));
        let of_runs: Vec<FlowOfRun<'_>> = with_flow()
            .map(|(run, timeline)| FlowOfRun {
                groups: &timeline.groups,
                bad_seconds: &run.flows[&name].bad_seconds,
                seconds: duration.as_secs_f64(),
            })
            .collect();
        let mut claimed = split(&of_runs).into_iter();
        for (run, timeline) in runs.iter_mut().zip(timelines) {
            let Some(flow) = run.flows.get_mut(&name) else { continue };
            let claimed = claimed.next().unwrap_or_default();
            let shares = timeline.groups.iter().zip(claimed).map(|(group, claimed)| ByChange {
                change: group.words.clone(),
                is_silence: !group.silences.is_empty(),
                times: group.times,
                first_s: group.range.0,
                until_s: group.until_s(),
                lost: claimed.lost,
                late: claimed.late,
                seconds: claimed.seconds,
                is_free: claimed.is_free,
            });
            flow.by_change = shares.collect();
        }
    }
}

/// How often the path of `scenario` changes, without the ends of outages and ramps.
pub(crate) fn number_of_changes(scenario: &Scenario) -> usize {
    Timeline::new(scenario, scenario.seed).changes.len()
}

/// Names the keys of the link `name` that change in `scenario`: `rate and loss change over time`. Returns
/// `None` if none does.
pub(crate) fn changing_keys(scenario: &Scenario, name: &str) -> Option<String> {
    let is_of_link =
        |change: &&Change| scenario.links.get(change.link as usize).is_some_and(|link| link.name == name);
    let mut keys = Keys::default();
    for change in scenario.changes.iter().filter(is_of_link) {
        keys = keys.with(Keys::of(change));
    }
    let names = keys.names();
    let verb = if names.len() == 1 { "changes" } else { "change" };
    (!names.is_empty()).then(|| format!("{} {verb} over time", and(&names)))
}

/// Joins words: `a`, `a and b`, `a, b and c`.
fn and(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => words.concat(),
    }
}

/// The changes of a run.
struct Timeline {
    /// Every change in order of time. Links that change in the same manner at the same time are one change.
    changes: Vec<PathChange>,
    /// The groups, in the order of the scenario.
    groups: Vec<ChangeGroup>,
}

/// The keys that a change sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Keys {
    rate: bool,
    delay: bool,
    loss: bool,
    limit: bool,
    /// Whether a link is silent for a time.
    silence: bool,
}

impl Keys {
    fn of(change: &Change) -> Self {
        let LinkValues { rate, delay, loss, limit, state } = &change.to;
        Self {
            rate: rate.is_some(),
            delay: delay.is_some(),
            loss: loss.is_some(),
            limit: limit.is_some(),
            silence: state.is_some() || change.outage.is_some(),
        }
    }

    const fn with(self, other: Self) -> Self {
        Self {
            rate: self.rate || other.rate,
            delay: self.delay || other.delay,
            loss: self.loss || other.loss,
            limit: self.limit || other.limit,
            silence: self.silence || other.silence,
        }
    }

    fn names(self) -> Vec<&'static str> {
        let all = [
            (self.rate, "rate"),
            (self.delay, "delay"),
            (self.loss, "loss"),
            (self.limit, "queue"),
            (self.silence, "outages"),
        ];
        all.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect()
    }
}

/// What the changes of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GroupKey {
    Named(String),
    Alike { links: Vec<u32>, keys: Keys },
    Rows { table: u32 },
    SilentRows { table: u32 },
}

/// Changes of several links in the same manner at the same time.
struct Joined {
    from: Instant,
    until: Instant,
    what: String,
    links: Vec<u32>,
    kind: ChangeKind,
    group: usize,
    /// Whether the change ends a silence. It then does not count as a change.
    ends_silence: bool,
}

impl Timeline {
    fn new(scenario: &Scenario, seed: Seed) -> Self {
        let end = Instant::ZERO + scenario.duration;
        let (keys, group_of_change) = group_changes(scenario);
        let marks = marks(scenario, seed, end, &group_of_change);
        let joined = join(&marks);
        let mut groups: Vec<ChangeGroup> = (0..keys.len())
            .map(|group| ChangeGroup {
                words: words_of_group(scenario, &keys[group], group, &marks),
                ..ChangeGroup::default()
            })
            .collect();
        for change in &joined {
            let group = &mut groups[change.group];
            let (from, until) = (change.from.as_secs_f64(), change.until.as_secs_f64());
            group.range.0 = if group.times == 0 { from } else { group.range.0 };
            group.range.1 = group.range.1.max(until);
            if change.ends_silence {
                continue;
            }
            group.times += 1;
            match (change.kind, &keys[change.group]) {
                (ChangeKind::Silence, _) => group.silences.push((from, until)),
                // The rows of a file are no events: they say what holds from one row to the next.
                (ChangeKind::Step, GroupKey::Rows { .. }) | (ChangeKind::Ramp, _) => {}
                (ChangeKind::Step, _) => group.steps.push(from),
            }
        }
        for (group, from, until) in worse_times(scenario, &marks, end) {
            if let Some(group) = groups.get_mut(group) {
                group.worse.push((from.as_secs_f64(), until.as_secs_f64()));
            }
        }
        for (group, key) in groups.iter_mut().zip(&keys) {
            group.worse = merged(core::mem::take(&mut group.worse));
            // What matters of the rows of a file is how often they are bad.
            if let GroupKey::Rows { .. } = key {
                group.times = group.worse.len() as u64;
                let (first, last) = (group.worse.first(), group.worse.last());
                group.range = (first.map_or(0.0, |span| span.0), last.map_or(0.0, |span| span.1));
            }
        }
        let changes = joined.iter().map(|change| change.path_change(scenario, &groups)).collect();
        Self { changes, groups }
    }

    /// The changes that a summary lists: each change, or if there are more than [`MOST_CHANGES`] an entry for
    /// each group.
    fn listed(self) -> Vec<PathChange> {
        if self.changes.len() <= MOST_CHANGES {
            return self.changes;
        }
        let mut listed: Vec<PathChange> = Vec::new();
        for change in self.changes {
            match listed.iter_mut().find(|known| known.group == change.group && known.kind == change.kind) {
                Some(known) => {
                    known.until_s = known.until_s.max(change.until_s);
                    known.times += 1;
                }
                None => listed.push(PathChange { text: change.group.clone(), ..change }),
            }
        }
        listed
    }
}

impl Joined {
    fn path_change(&self, scenario: &Scenario, groups: &[ChangeGroup]) -> PathChange {
        PathChange {
            from_s: self.from.as_secs_f64(),
            until_s: self.until.as_secs_f64(),
            text: on_links(scenario, &self.links, &self.what),
            kind: self.kind,
            group: groups[self.group].words.clone(),
            times: 1,
        }
    }
}

/// Writes which links change, if not all do: `up: outage`.
fn on_links(scenario: &Scenario, links: &[u32], what: &str) -> String {
    let name = |link: &u32| scenario.links.get(*link as usize).map_or("", |link| link.name.as_str());
    if links.len() < scenario.links.len() {
        format!("{}: {what}", and(&links.iter().map(name).collect::<Vec<_>>()))
    } else {
        what.to_owned()
    }
}

/// Returns the groups of the changes of `scenario`, and the group of each change. A row of a file that makes
/// a link silent is of another group than the file's other rows.
fn group_changes(scenario: &Scenario) -> (Vec<GroupKey>, Vec<usize>) {
    let mut links_of_table: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (change, origin) in scenario.changes.iter().zip(&scenario.change_origins) {
        let links = links_of_table.entry(origin.table).or_default();
        if !links.contains(&change.link) {
            links.push(change.link);
        }
    }
    let mut keys: Vec<GroupKey> = Vec::new();
    let mut group_of_change = Vec::new();
    for (change, origin) in scenario.changes.iter().zip(&scenario.change_origins) {
        let key = if origin.is_of_file && is_silent(change) {
            GroupKey::SilentRows { table: origin.table }
        } else if let Some(name) = &origin.name {
            GroupKey::Named(name.to_string())
        } else if origin.is_of_file {
            GroupKey::Rows { table: origin.table }
        } else {
            let links = links_of_table.get(&origin.table).cloned().unwrap_or_default();
            GroupKey::Alike { links, keys: Keys::of(change) }
        };
        let group = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            keys.push(key);
            keys.len() - 1
        });
        group_of_change.push(group);
    }
    (keys, group_of_change)
}

/// Whether no packet leaves after the change.
const fn is_silent(change: &Change) -> bool {
    has_no_rate(change) || is_down(change)
}

const fn has_no_rate(change: &Change) -> bool {
    matches!(&change.to.rate, Some(RateModel::Fixed(rate)) if rate.as_bps() == 0)
}

const fn is_down(change: &Change) -> bool {
    matches!(change.to.state, Some(LinkState::Down { .. }))
}

/// Returns every change at its time. A rate of 0 lasts until the link has another rate, and a link that is
/// down stays so until it is up again, whatever rate it is given meanwhile.
fn marks<'a>(scenario: &'a Scenario, seed: Seed, end: Instant, group_of_change: &[usize]) -> Vec<Mark<'a>> {
    let all: Vec<ChangeMark> = change_marks(&scenario.changes, seed, end);
    // When each link next has a rate, and when it is next up, from the last mark to the first.
    let (mut next_rate, mut next_up) = (BTreeMap::new(), BTreeMap::new());
    let mut marks = Vec::new();
    for mark in all.iter().rev() {
        let change = &scenario.changes[mark.change];
        let next = |ends: &BTreeMap<u32, Instant>| ends.get(&change.link).copied().unwrap_or(end);
        let until = match (has_no_rate(change), is_down(change)) {
            (true, true) => next(&next_rate).max(next(&next_up)),
            (true, false) => next(&next_rate),
            (false, true) => next(&next_up),
            (false, false) => mark.until,
        };
        if change.to.rate.is_some() && !has_no_rate(change) {
            next_rate.insert(change.link, mark.at);
        }
        if change.to.state == Some(LinkState::Up) {
            next_up.insert(change.link, mark.at);
        }
        let is_silence = is_silent(change) || change.outage.is_some();
        let group = group_of_change.get(mark.change).copied().unwrap_or(0);
        let is_of_file = scenario.change_origins.get(mark.change).is_some_and(|origin| origin.is_of_file);
        marks.push(Mark { at: mark.at, until, change, group, is_silence, is_of_file });
    }
    marks.reverse();
    // A row of a file that repeats a rate of 0 goes on with the silence before it.
    let mut silent_until: BTreeMap<u32, Instant> = BTreeMap::new();
    marks.retain(|mark| {
        if !is_silent(mark.change) {
            return true;
        }
        let before = silent_until.insert(mark.change.link, mark.until);
        before != Some(mark.until)
    });
    marks
}

/// Joins changes of several links that do the same at the same time.
fn join(marks: &[Mark<'_>]) -> Vec<Joined> {
    let mut all: Vec<Joined> = Vec::new();
    for mark in marks {
        let kind = match mark {
            Mark { is_silence: true, .. } => ChangeKind::Silence,
            Mark { change: Change { ramp: Some(_), .. }, .. } => ChangeKind::Ramp,
            _ => ChangeKind::Step,
        };
        let what = describe_change(mark.change);
        // The marks are in order of time, so an equal one is among the last.
        let mut same = all.iter_mut().rev().take_while(|known| known.from == mark.at);
        let same = same.find(|known| known.until == mark.until && known.what == what);
        match same {
            Some(known) => known.links.push(mark.change.link),
            None => all.push(Joined {
                from: mark.at,
                until: mark.until,
                what,
                links: vec![mark.change.link],
                kind,
                group: mark.group,
                ends_silence: mark.change.to.state == Some(LinkState::Up),
            }),
        }
    }
    all
}

/// Writes what the changes of a group have in common: `up: rate down to 2 Mb/s, loss up to 2 %`.
fn words_of_group(scenario: &Scenario, key: &GroupKey, group: usize, marks: &[Mark<'_>]) -> String {
    let of_group = || marks.iter().filter(|mark| mark.group == group).map(|mark| mark.change);
    let mut links: Vec<u32> = of_group().map(|change| change.link).collect();
    links.sort_unstable();
    links.dedup();
    let what = match key {
        GroupKey::Named(name) => return name.clone(),
        GroupKey::SilentRows { .. } => "silence (rate 0)".to_owned(),
        GroupKey::Rows { .. } => "a rate of the table below half of its mean".to_owned(),
        GroupKey::Alike { .. } => {
            let mut texts: Vec<String> = of_group().map(describe_change).collect();
            texts.dedup();
            texts.sort();
            texts.dedup();
            match (&texts[..], links.first().and_then(|link| scenario.links.get(*link as usize))) {
                ([only], _) => only.clone(),
                (_, Some(link)) => furthest(&link.config, of_group()),
                (_, None) => String::new(),
            }
        }
    };
    on_links(scenario, &links, &what)
}

/// Writes for each key the value of `changes` that is furthest on the worse side of what the link begins
/// with: `rate down to 2 Mb/s, loss up to 2 %`.
fn furthest<'a>(link: &LinkConfig, changes: impl Iterator<Item = &'a Change>) -> String {
    let (mut rates, mut delays, mut losses, mut limits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut has_silence = false;
    for change in changes {
        let LinkValues { rate, delay, loss, limit, .. } = &change.to;
        rates.extend(rate.as_ref().map(bits));
        delays.extend(*delay);
        losses.extend(loss.as_ref().map(LossModel::mean));
        limits.extend(*limit);
        has_silence |= is_silent(change) || change.outage.is_some();
    }
    let mut parts = Vec::new();
    if let Some(least) = rates.iter().copied().reduce(f64::min) {
        let way = if least < bits(&link.rate) { "down" } else { "up" };
        let words =
            if least.is_finite() { rate(Rate::from_bps(least as u64)) } else { "unlimited".to_owned() };
        parts.push(format!("rate {way} to {words}"));
    }
    if let Some(longest) = delays.iter().copied().max() {
        let way = if longest < link.delay { "down" } else { "up" };
        parts.push(format!("delay {way} to {} ms", longest.as_millis_f64()));
    }
    if let Some(most) = losses.iter().copied().reduce(f64::max) {
        let way = if most < link.loss.mean() { "down" } else { "up" };
        parts.push(format!("loss {way} to {}", percent(most)));
    }
    if !limits.is_empty() {
        parts.push("queue".to_owned());
    }
    if has_silence {
        parts.push("outage".to_owned());
    }
    parts.join(", ")
}

/// Describes what a change does to a link: `rate 12.4 Mb/s, delay 38 ms`.
fn describe_change(change: &Change) -> String {
    let outage = change.outage.map(|_| "outage".to_owned());
    let values = Some(describe_values(&change.to)).filter(|values| !values.is_empty());
    values.into_iter().chain(outage).collect::<Vec<_>>().join(", ")
}

/// Describes values of a link: `rate 12.4 Mb/s, delay 38 ms`.
fn describe_values(values: &LinkValues) -> String {
    let LinkValues { rate: to_rate, delay, loss, limit, state } = values;
    let to_rate = to_rate.as_ref().map(|to| match to {
        RateModel::Fixed(to) if to.as_bps() == 0 => "rate 0".to_owned(),
        RateModel::Fixed(to) => format!("rate {}", rate(*to)),
        RateModel::Unlimited => "unlimited rate".to_owned(),
        RateModel::Trace(_) => "rate of a trace".to_owned(),
    });
    let delay = delay.map(|delay| format!("delay {} ms", delay.as_millis_f64()));
    let loss = loss.as_ref().map(|loss| match loss {
        LossModel::None => "no loss".to_owned(),
        loss => format!("loss {}", percent(loss.mean())),
    });
    let limit = limit.map(|limit| match limit {
        QueueLimit::Packets(count) => format!("queue {}", counted(count.get(), "packet")),
        QueueLimit::Bytes(bytes) => format!("queue {} B", bytes.get()),
    });
    let state = state.map(|state| match state {
        LinkState::Up => "up again".to_owned(),
        LinkState::Down { .. } => "down".to_owned(),
    });
    [to_rate, delay, loss, limit, state].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Describes a link as it begins: `15 Mb/s, 20 ms, queue 187500 B`.
pub(crate) fn describe_link(config: &LinkConfig) -> String {
    let values = LinkValues {
        rate: Some(config.rate.clone()),
        delay: Some(config.delay),
        loss: Some(config.loss.clone()).filter(|loss| *loss != LossModel::None),
        limit: Some(config.queue.limit()),
        state: None,
    };
    describe_values(&values)
}

/// Writes a share in per cent. Nine digits hide what the multiplication by 100 adds to a decimal number.
fn percent(share: f64) -> String {
    format!("{} %", (share * 1e9).round() / 1e7)
}

/// Writes a rate in Mb/s, or below 1 Mb/s in kb/s.
pub(crate) fn rate(rate: Rate) -> String {
    if rate.as_bps() >= 1_000_000 {
        format!("{} Mb/s", rate.as_bps() as f64 / 1e6)
    } else {
        format!("{} kb/s", rate.as_bps() as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests;
