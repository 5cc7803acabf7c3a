//! Follows the changes of links without sending a packet: the values of a link before and after each change.
//! Commands that describe a path before it runs use it.

use talkpath_units::{Instant, Seed};

use crate::change::{Change, ChangeStep, LinkState, LinkValues, Schedule};
use crate::config::LinkConfig;

/// What a change does to its link at one instant.
#[derive(Clone, Copy, Debug)]
pub struct ChangeEvent<'a> {
    /// When, in the run's time.
    pub at: Instant,
    /// The index of the change in the configuration.
    pub change: usize,
    /// Whether the change, its ramp or its outage begins. Otherwise it is a step of a ramp, or the end of an
    /// outage.
    pub begins: bool,
    /// The values of the link before. Every field is `Some`. An outage is not in `state`, here and in
    /// `after`.
    pub before: &'a LinkValues,
    /// The values that the link has from then on, or until the next event if that is at the same instant. At
    /// the beginning of a ramp they are those of `before`, because the first step comes later.
    pub after: &'a LinkValues,
}

/// Follows `changes` in order of time in a run of this `seed`, as the network makes them, and shows each to
/// `visit`. Stops at `until`, or after `most` events. Returns `None` if no event before `until` is left, or
/// else when the first of those comes that are left.
#[must_use]
pub fn follow_changes(
    changes: &[Change],
    links: &[&LinkConfig],
    seed: Seed,
    until: Instant,
    most: usize,
    mut visit: impl FnMut(ChangeEvent<'_>),
) -> Option<Instant> {
    let mut present: Vec<LinkValues> = links.iter().map(|link| LinkValues::first(link)).collect();
    let mut schedule = Schedule::new(changes, seed);
    for _ in 0..most {
        let at = schedule.next();
        if at >= until {
            return None;
        }
        let (change, begins) = schedule.next_part();
        let of_link = |link: u32| present.get(link as usize).cloned().unwrap_or_default();
        let (link, steps) = schedule.pop(at, of_link)?;
        let Some(values) = present.get_mut(link as usize) else { continue };
        let before = values.clone();
        for step in steps {
            if let ChangeStep::Set { values: to, .. } = step {
                values.set(&to);
            }
        }
        visit(ChangeEvent { at, change, begins, before: &before, after: values });
    }
    Some(schedule.next()).filter(|next| *next < until)
}

impl LinkValues {
    /// The values of a link at the beginning. Every field is `Some`.
    pub fn first(config: &LinkConfig) -> Self {
        Self {
            rate: Some(config.rate.clone()),
            delay: Some(config.delay),
            loss: Some(config.loss.clone()),
            limit: Some(config.queue.limit()),
            state: Some(LinkState::Up),
        }
    }

    /// Takes the values that `to` has.
    fn set(&mut self, to: &Self) {
        let Self { rate, delay, loss, limit, state } = to.clone();
        self.rate = rate.or_else(|| self.rate.take());
        self.delay = delay.or(self.delay);
        self.loss = loss.or_else(|| self.loss.take());
        self.limit = limit.or(self.limit);
        self.state = state.or(self.state);
    }
}
