//! What changes on links at stated times: a rate, a delay, a loss, a queue's limit, or whether the link is
//! up.
//!
//! ```text
//!  step       value ┌────      ramp     value     ┌──      outage   up ──┐      ┌──
//!              ─────┘                        ┌──┘                    │      │
//!                   at                  ──┘ at  .. + over           └──────┘
//!                                                                     at      + length
//! ```
//!
//! The network's agenda has one entry for the next change of any link, so a change is an event like any
//! other. [`Link::change`](crate::link::Link) says what happens to the packets of the link.
//!
//! A periodic change may have a random phase: the seed draws where in the period the change comes. All
//! changes with the same period share the draw, so the two directions of a handover change at the same
//! instant.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use talkpath_units::{Bytes, Duration, Instant, Packets, Rate, Seed};

use crate::config::{LossModel, RateModel};
use crate::queue::QueueLimit;

/// A change of one link.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The link, by its index in the network.
    pub link: u32,
    /// When the change comes.
    pub when: ChangeTimes,
    /// The values that it sets.
    pub to: LinkValues,
    /// `None` if the values hold at once.
    pub ramp: Option<Ramp>,
    /// `None` if no outage begins.
    pub outage: Option<Outage>,
    /// True if packets that come after the change may overtake earlier packets. They can if the change makes
    /// the delay shorter.
    pub overtake: bool,
}

/// When a change comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeTimes {
    /// The first time, or with a random phase the place in the period to which the phase is added.
    pub first: Duration,
    /// The time from one occurrence to the next. `None` if the change comes once.
    pub every: Option<Duration>,
    /// True if a draw shifts the change within its period.
    pub random_phase: bool,
}

/// A value that goes to its target in steps of equal duration and equal size. The first step comes after one
/// such duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// The time from the beginning to the last step.
    pub over: Duration,
    /// The number of steps, at least 1.
    pub steps: u32,
}

/// A time during which no service begins on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The time from the beginning to the end.
    pub length: Duration,
    /// True if the queue has no room during the outage: what waits and what comes is dropped.
    pub drops: bool,
}

/// Values of a link. `None` leaves a value as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkValues {
    /// The rate of the serialiser. A rate of zero holds all packets, like an outage.
    pub rate: Option<RateModel>,
    /// The propagation delay.
    pub delay: Option<Duration>,
    /// Which packets the wire loses.
    pub loss: Option<LossModel>,
    /// The limit of the queue.
    pub limit: Option<QueueLimit>,
    /// Whether the link is up.
    pub state: Option<LinkState>,
}

/// Whether services may begin on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Services begin.
    Up,
    /// No service begins, as in an [`Outage`] without an end.
    Down {
        /// True if the queue has no room meanwhile.
        drops: bool,
    },
}

/// What a link does at one instant of a change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChangeStep {
    Set {
        values: LinkValues,
        /// True if packets that come later may overtake the earlier ones.
        overtake: bool,
    },
    BeginOutage {
        /// True if the queue has no room during the outage.
        drops: bool,
    },
    /// Ends the outage that began with the same `drops`.
    EndOutage { drops: bool },
}

/// A change that happened, for charts.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeMark {
    /// When it began.
    pub at: Instant,
    /// When its ramp or outage was over; `at` if it has neither.
    pub until: Instant,
    /// The index of the change in the configuration.
    pub change: usize,
}

/// The changes of a network, and when each comes next.
#[derive(Debug)]
pub(crate) struct Schedule {
    changes: Vec<Scheduled>,
    /// The next instant of each change, ties in the order of the configuration.
    next: BinaryHeap<Reverse<(Instant, u32)>>,
}

#[derive(Debug)]
struct Scheduled {
    change: Change,
    /// When the present occurrence begins.
    start: Instant,
    /// The next part of the occurrence: 0 is its beginning.
    part: u32,
    /// The link's values when the ramp began.
    from: LinkValues,
}

impl Change {
    /// Returns when the change first comes in a run of this `seed`.
    fn first(&self, seed: Seed) -> Instant {
        let ChangeTimes { first, every, random_phase } = self.when;
        let Some(every) = every.filter(|_| random_phase) else { return Instant::ZERO.saturating_add(first) };
        let period = every.as_nanos().max(1);
        let shift = seed.stream(&format!("change/every/{period}")).below(period);
        Instant::from_nanos(
            (u128::from(first.as_nanos()) + u128::from(shift)).rem_euclid(u128::from(period)) as u64
        )
    }

    /// The number of instants of one occurrence.
    fn parts(&self) -> u32 {
        let ends = u32::from(self.outage.is_some());
        1 + self.ramp.map_or(ends, |ramp| ramp.steps.max(1))
    }

    /// Returns when `part` of an occurrence comes that begins at `start`.
    fn part_at(&self, start: Instant, part: u32) -> Instant {
        let after = match (part, self.ramp, self.outage) {
            (0, ..) => Duration::ZERO,
            (_, Some(Ramp { over, steps }), _) => {
                let nanos = u128::from(over.as_nanos()) * u128::from(part) / u128::from(steps.max(1));
                Duration::from_nanos(nanos as u64)
            }
            (_, None, outage) => outage.map_or(Duration::ZERO, |outage| outage.length),
        };
        start.saturating_add(after)
    }

    /// True if packets that come after the change may leave the link before packets that came earlier.
    pub(crate) fn may_overtake(&self) -> bool {
        self.overtake && self.to.delay.is_some()
    }
}

/// The beginnings and ends of all `changes` before `until`, in order of time.
pub fn change_marks(changes: &[Change], seed: Seed, until: Instant) -> Vec<ChangeMark> {
    let mut marks = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        let mut start = change.first(seed);
        while start < until && marks.len() < MOST_MARKS {
            let last = change.part_at(start, change.parts() - 1);
            marks.push(ChangeMark { at: start, until: last, change: index });
            let Some(every) = change.when.every.filter(|every| !every.is_zero()) else { break };
            start = start.saturating_add(every);
        }
    }
    marks.sort_by_key(|mark| (mark.at, mark.change));
    marks
}

/// The largest number of marks of one run. We chose 10,000 because a chart with more marks shows nothing.
const MOST_MARKS: usize = 10_000;

impl Schedule {
    /// The schedule of `changes` in a run of this `seed`.
    pub(crate) fn new(changes: &[Change], seed: Seed) -> Self {
        let changes: Vec<_> = changes
            .iter()
            .map(|change| Scheduled {
                start: change.first(seed),
                part: 0,
                from: LinkValues::default(),
                change: change.clone(),
            })
            .collect();
        let next = (0..).zip(&changes).map(|(index, scheduled)| Reverse((scheduled.start, index))).collect();
        Self { changes, next }
    }

    /// Returns when the next change comes. [`Instant::MAX`] if none comes.
    pub(crate) fn next(&self) -> Instant {
        self.next.peek().map_or(Instant::MAX, |Reverse((at, _))| *at)
    }

    /// Returns the index of the next change, and whether it begins then. The index is `usize::MAX` if there
    /// is no next change.
    pub(crate) fn next_part(&self) -> (usize, bool) {
        let index = self.next.peek().map_or(usize::MAX, |Reverse((_, index))| *index as usize);
        (index, self.changes.get(index).is_some_and(|scheduled| scheduled.part == 0))
    }

    /// Takes the next change if it comes by `now`. Returns the link and its steps. `present` returns the
    /// present values of a link, from which a ramp begins.
    pub(crate) fn pop(
        &mut self,
        now: Instant,
        present: impl FnOnce(u32) -> LinkValues,
    ) -> Option<(u32, Vec<ChangeStep>)> {
        let Reverse((at, index)) = *self.next.peek()?;
        if at > now {
            return None;
        }
        self.next.pop();
        let scheduled = self.changes.get_mut(index as usize)?;
        let steps = scheduled.steps(present);
        scheduled.part += 1;
        let mut next = Some(scheduled.change.part_at(scheduled.start, scheduled.part));
        if scheduled.part >= scheduled.change.parts() {
            scheduled.part = 0;
            next = scheduled.change.when.every.filter(|every| !every.is_zero()).map(|every| {
                scheduled.start = scheduled.start.saturating_add(every);
                scheduled.start
            });
        }
        if let Some(next) = next.filter(|next| *next < Instant::MAX) {
            self.next.push(Reverse((next, index)));
        }
        Some((scheduled.change.link, steps))
    }
}

impl Scheduled {
    /// Returns what the link does at the present part of the occurrence.
    fn steps(&mut self, present: impl FnOnce(u32) -> LinkValues) -> Vec<ChangeStep> {
        let Change { link, to, ramp, outage, overtake, .. } = &self.change;
        match (self.part, ramp, outage) {
            (0, Some(_), _) => {
                self.from = present(*link);
                Vec::new()
            }
            (part, Some(ramp), _) => {
                let values = to.between(&self.from, part, ramp.steps.max(1));
                vec![ChangeStep::Set { values, overtake: *overtake }]
            }
            (0, None, outage) => {
                let mut steps = vec![ChangeStep::Set { values: to.clone(), overtake: *overtake }];
                steps.extend(outage.map(|outage| ChangeStep::BeginOutage { drops: outage.drops }));
                steps
            }
            (_, None, Some(outage)) => vec![ChangeStep::EndOutage { drops: outage.drops }],
            (_, None, None) => Vec::new(),
        }
    }
}

impl LinkValues {
    /// The values at step `part` of `steps` on the way from `from` to `self`. A value that cannot go in steps
    /// has its target from the first step on.
    fn between(&self, from: &Self, part: u32, steps: u32) -> Self {
        let (part, steps) = (u128::from(part), u128::from(steps));
        let whole = |from: u64, to: u64| {
            let (from, to) = (u128::from(from), u128::from(to));
            // Rounded towards the start, and exact at the last step.
            let value = if to >= from {
                from + (to - from) * part / steps
            } else {
                from - (from - to) * part / steps
            };
            value as u64
        };
        let rate = match (&from.rate, &self.rate) {
            (Some(RateModel::Fixed(from)), Some(RateModel::Fixed(to))) => {
                Some(RateModel::Fixed(Rate::from_bps(whole(from.as_bps(), to.as_bps()))))
            }
            (_, to) => to.clone(),
        };
        let delay = match (from.delay, self.delay) {
            (Some(from), Some(to)) => Some(Duration::from_nanos(whole(from.as_nanos(), to.as_nanos()))),
            (_, to) => to,
        };
        let loss = match (from.loss.as_ref().and_then(share), self.loss.as_ref().and_then(share)) {
            (Some(from), Some(to)) => {
                let rate = if part == steps { to } else { from + (to - from) * part as f64 / steps as f64 };
                Some(LossModel::Bernoulli { rate })
            }
            _ => self.loss.clone(),
        };
        let limit = match (from.limit, self.limit) {
            (Some(QueueLimit::Packets(from)), Some(QueueLimit::Packets(to))) => {
                Some(QueueLimit::Packets(Packets::new(whole(from.get(), to.get()))))
            }
            (Some(QueueLimit::Bytes(from)), Some(QueueLimit::Bytes(to))) => {
                Some(QueueLimit::Bytes(Bytes::new(whole(from.get(), to.get()))))
            }
            (_, to) => to,
        };
        Self { rate, delay, loss, limit, state: self.state }
    }
}

/// The probability of a loss without memory.
fn share(loss: &LossModel) -> Option<f64> {
    match loss {
        LossModel::None => Some(0.0),
        LossModel::Bernoulli { rate } => Some(*rate),
        LossModel::GilbertElliott { .. }
        | LossModel::GilbertElliottInTime { .. }
        | LossModel::Periodic { .. }
        | LossModel::Trace(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(first: u64, every: Option<u64>) -> Change {
        Change {
            link: 0,
            when: ChangeTimes {
                first: Duration::from_secs(first),
                every: every.map(Duration::from_secs),
                random_phase: false,
            },
            to: LinkValues { delay: Some(Duration::from_millis(100)), ..LinkValues::default() },
            ramp: None,
            outage: None,
            overtake: false,
        }
    }

    /// Every instant up to `until`, in seconds, and what the link does then.
    fn instants(changes: &[Change], until: u64) -> Vec<(f64, ChangeStep)> {
        let mut schedule = Schedule::new(changes, Seed::new(5));
        let mut all = Vec::new();
        let from = || LinkValues { delay: Some(Duration::ZERO), ..LinkValues::default() };
        while schedule.next() <= Instant::from_secs(until) {
            let at = schedule.next();
            let (_, steps) = schedule.pop(at, |_| from()).unwrap();
            all.extend(steps.into_iter().map(|step| (at.as_secs_f64(), step)));
        }
        all
    }

    #[test]
    fn a_period_repeats_from_its_first_time() {
        let times: Vec<_> = instants(&[change(12, Some(15))], 60).into_iter().map(|(at, _)| at).collect();
        assert_eq!(times, [12.0, 27.0, 42.0, 57.0]);
        assert_eq!(instants(&[change(12, None)], 60).len(), 1);
    }

    #[test]
    fn a_ramp_reaches_its_target_in_equal_steps() {
        let ramp = Some(Ramp { over: Duration::from_secs(1), steps: 4 });
        let steps = instants(&[Change { ramp, ..change(2, None) }], 60);
        let delays: Vec<_> = steps
            .into_iter()
            .map(|(at, step)| match step {
                ChangeStep::Set { values, .. } => (at, values.delay.unwrap().as_millis()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(delays, [(2.25, 25), (2.5, 50), (2.75, 75), (3.0, 100)]);
    }

    #[test]
    fn an_outage_ends_after_its_length_and_comes_again() {
        let outage = Some(Outage { length: Duration::from_secs(2), drops: false });
        let to = LinkValues::default();
        let steps = instants(&[Change { outage, to, ..change(5, Some(10)) }], 18);
        let held: Vec<_> =
            steps.into_iter().filter(|(_, step)| !matches!(step, ChangeStep::Set { .. })).collect();
        let (close, open) =
            (ChangeStep::BeginOutage { drops: false }, ChangeStep::EndOutage { drops: false });
        assert_eq!(held, [(5.0, close.clone()), (7.0, open.clone()), (15.0, close), (17.0, open)]);
    }

    #[test]
    fn changes_of_one_period_share_their_random_phase_and_seeds_differ() {
        let random = |first| {
            let mut change = change(first, Some(15));
            change.when.random_phase = true;
            change
        };
        let first = |change: &Change, seed| change.first(Seed::new(seed)).as_nanos();
        let phases: std::collections::BTreeSet<_> = (0..50).map(|seed| first(&random(0), seed)).collect();
        assert_eq!(phases.len(), 50);
        assert!(phases.iter().all(|phase| *phase < 15_000_000_000));
        for seed in 0..50 {
            let apart = (first(&random(5), seed) + 15_000_000_000 - first(&random(0), seed)) % 15_000_000_000;
            assert_eq!(apart, 5_000_000_000);
        }
    }

    #[test]
    fn marks_have_each_change_with_its_end() {
        let outage = Some(Outage { length: Duration::from_secs(2), drops: true });
        let changes = [change(3, None), Change { outage, ..change(1, Some(4)) }];
        let marks = change_marks(&changes, Seed::new(1), Instant::from_secs(6));
        let marks: Vec<_> =
            marks.iter().map(|mark| (mark.at.as_secs_f64(), mark.until.as_secs_f64(), mark.change)).collect();
        assert_eq!(marks, [(1.0, 3.0, 1), (3.0, 3.0, 0), (5.0, 7.0, 1)]);
    }
}
