//! What cannot be meant by the changes of a path: a change that hides another, ramps that overlap, a change
//! that does not end within the run, or that changes nothing, and a queue whose limit in time holds at a
//! higher rate alone.

use std::collections::BTreeMap;

use talkpath_model::Scenario;
use talkpath_path::{Change, ChangeEvent, QueueLimit, RateModel};
use talkpath_units::{Duration, Instant, Rate};

use super::values::{Extremes, ValueKey};
use crate::words::{rate, time};

/// A sentence about one `[[change]]`, or about a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    pub(crate) subject: DoubtSubject,
    pub(crate) message: String,
}

/// What a doubt is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DoubtSubject {
    /// A key of the `[[change]]` with this number, from 1.
    Change(u64, &'static str),
    /// The queue of the link with this name.
    Queue(String),
}

/// Two changes that set the same value of a link: the number of the change whose value does not hold, and
/// that of the other.
type Pair = (u64, u64, ValueKey);

/// A ramp that goes on: the number of its change, its begin and its end.
type Ramp = (usize, Instant, Instant);

/// Collects what two changes do to each other.
pub(super) struct Doubts<'a> {
    changes: &'a [Change],
    /// The number of the `[[change]]` of each change.
    number_of: &'a [u64],
    /// Which change last set a value of a link at once, and when.
    last_set: BTreeMap<(u32, ValueKey), (Instant, usize)>,
    /// For each link and value, the ramps that go on.
    ramps: BTreeMap<(u32, ValueKey), Vec<Ramp>>,
    /// How often one change hides another, and when first.
    hidden: BTreeMap<Pair, (u64, Instant)>,
    /// When one change first sets what a ramp of another is about to set.
    within_ramp: BTreeMap<Pair, Instant>,
}

impl<'a> Doubts<'a> {
    pub(super) const fn new(changes: &'a [Change], number_of: &'a [u64]) -> Self {
        Self {
            changes,
            number_of,
            last_set: BTreeMap::new(),
            ramps: BTreeMap::new(),
            hidden: BTreeMap::new(),
            within_ramp: BTreeMap::new(),
        }
    }

    fn number(&self, change: usize) -> u64 {
        self.number_of.get(change).copied().unwrap_or_default()
    }

    /// Whether the seed draws the times of only one of two changes, or of both with different periods. Then
    /// the two meet by chance.
    fn meet_by_chance(&self, one: usize, two: usize) -> bool {
        let phase = |change: usize| {
            self.changes
                .get(change)
                .filter(|change| change.when.random_phase)
                .and_then(|change| change.when.every)
        };
        phase(one) != phase(two)
    }

    pub(super) fn add(&mut self, event: &ChangeEvent<'_>) {
        let Some(change) = self.changes.get(event.change).filter(|_| event.begins) else { return };
        for key in ValueKey::ALL.into_iter().filter(|key| key.is_in(&change.to)) {
            let place = (change.link, key);
            let going_on = self.ramps.get(&place).cloned().unwrap_or_default();
            for (other, begin, end) in going_on {
                let is_within = (begin < event.at || change.ramp.is_some()) && event.at < end;
                if is_within && other != event.change && !self.meet_by_chance(other, event.change) {
                    let pair = (self.number(event.change), self.number(other), key);
                    self.within_ramp.entry(pair).or_insert(event.at);
                }
            }
            match change.ramp {
                Some(ramp) => {
                    let ramps = self.ramps.entry(place).or_default();
                    ramps.retain(|(_, _, end)| *end > event.at);
                    ramps.push((event.change, event.at, event.at.saturating_add(ramp.over)));
                }
                None => {
                    let earlier = self.last_set.insert(place, (event.at, event.change));
                    if let Some((at, other)) = earlier
                        && at == event.at
                        && self.number(other) != self.number(event.change)
                        && !self.meet_by_chance(other, event.change)
                    {
                        let pair = (self.number(other), self.number(event.change), key);
                        self.hidden.entry(pair).or_insert((0, at)).0 += 1;
                    }
                }
            }
        }
    }

    /// Returns what was found. `end` is when the flows stop sending. `changes_nothing` returns whether a
    /// change has set only values that held before.
    pub(super) fn found(self, end: Option<Duration>, changes_nothing: impl Fn(usize) -> bool) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let mut add = |number: u64, key: &'static str, message: String| {
            let doubt = Doubt { subject: DoubtSubject::Change(number, key), message };
            // Both links of a path have the same.
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        };
        // The links of a path count once.
        for ((hidden, shown, key), (count, first)) in &self.hidden {
            let links = self.links_in_common(*hidden, *shown);
            let more = match count / links.max(1) {
                0 | 1 => String::new(),
                count => format!(", and {} more", talkpath_units::times(count - 1)),
            };
            let name = key.name();
            add(
                *hidden,
                key.name(),
                format!(
                    "at {}{more}, change.{shown} sets the {name} at the same instant; it is later in the file, so its value \
                     holds, and this one is not seen",
                    time(first.since(Instant::ZERO))
                ),
            );
        }
        for ((inner, ramp, key), at) in &self.within_ramp {
            let name = key.name();
            add(
                *inner,
                key.name(),
                format!(
                    "it begins at {} within the ramp of change.{ramp}, whose next step sets the {name} again",
                    time(at.since(Instant::ZERO))
                ),
            );
        }
        for (index, change) in self.changes.iter().enumerate() {
            let number = self.number(index);
            let (length, key, noun) = match (change.ramp, change.outage) {
                (Some(ramp), _) => (ramp.over, "over", "ramp"),
                (_, Some(outage)) => (outage.length, "outage", "outage"),
                _ => (Duration::ZERO, "at", "change"),
            };
            let stops = change.when.first.saturating_add(length);
            let is_cut = |end: &Duration| change.when.first < *end && stops > *end && !length.is_zero();
            if let Some(end) = end.filter(is_cut)
                && !change.when.random_phase
            {
                let message =
                    format!("the {noun} ends at {}, but the run sends for {}", time(stops), time(end));
                add(number, key, message);
            }
            if changes_nothing(index) {
                let values: Vec<String> = ValueKey::ALL
                    .into_iter()
                    .filter_map(|key| Some(format!("{} {}", key.name(), key.in_words(&change.to)?)))
                    .collect();
                let message =
                    format!("it changes nothing: whenever it comes, {} holds already", values.join(", "));
                add(number, key_of_time(change), message);
            }
        }
        doubts
    }

    /// On how many links two tables both make changes.
    fn links_in_common(&self, one: u64, two: u64) -> u64 {
        let links = |number: u64| {
            let changes = self.changes.iter().zip(self.number_of);
            let of_number = changes.filter(move |(_, of)| **of == number).map(|(change, _)| change.link);
            of_number.collect::<std::collections::BTreeSet<u32>>()
        };
        links(one).intersection(&links(two)).count() as u64
    }
}

/// The key that says when a change comes.
const fn key_of_time(change: &Change) -> &'static str {
    if change.when.every.is_some() { "every" } else { "at" }
}

/// Says of queues whose limit is a time how long they take at the lowest rate.
pub(super) fn limits_in_time(scenario: &Scenario, extremes: &[Extremes]) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    for (link, extremes) in scenario.links.iter().zip(extremes) {
        let RateModel::Fixed(first) = link.config.rate else { continue };
        let QueueLimit::Bytes(limit) = link.config.queue.limit() else { continue };
        let Some(slowest) = extremes.slowest().filter(|slowest| *slowest < first) else { continue };
        let takes = |rate: Rate| Duration::from_secs_f64(limit.get() as f64 * 8.0 / rate.as_bps() as f64);
        let message = format!(
            "a limit in time is {} B of the rate at the beginning, {}; at {}, the lowest rate, they take {}. Write the limit in \
             bytes, or change `queue.limit` with the rate",
            limit.get(),
            rate(first),
            rate(slowest),
            time(takes(slowest))
        );
        doubts.push(Doubt { subject: DoubtSubject::Queue(link.name.clone()), message });
    }
    doubts
}
