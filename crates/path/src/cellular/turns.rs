//! Whose turn it is: the scheduler of a cell.
//!
//! A TTI goes first to the repetitions that are due, each with the share that its block had. What is left is
//! for new blocks:
//!
//! - *proportional fair*: to the user who had the least in the mean, among those who have data. With R the
//!   mean and W the window in TTIs, each TTI makes R (1 - 1/W) + x / W of it, where x is 1 for the user who
//!   had the TTI and else 0. A TTI of repetitions alone moves no mean. ns-3's `PfFfMacScheduler` does the
//!   same.
//! - *round robin*: equally to the users who have data and do not repeat a block, in turn, at most a number
//!   of users at once. So ns-3's schedulers share the uplink, with at least 3 of the 25 resource blocks for
//!   each.

use std::collections::VecDeque;

use talkpath_units::Duration;

use super::config::{Cellular, Scheduler, ttis};
use super::errors::Errors;

/// The scheduler, and what it has promised.
#[derive(Debug)]
pub(super) struct Turns {
    rule: Rule,
    /// Users, this one included. This user is number 0.
    users: u32,
    /// The repetitions that are due in the next TTIs: first those of the next TTI.
    due: VecDeque<Vec<Repeat>>,
}

#[derive(Debug)]
enum Rule {
    ProportionalFair {
        /// 1 / W.
        weight: f64,
        /// The mean share of each user.
        means: Vec<f64>,
    },
    RoundRobin {
        at_once: u32,
        /// Who is next.
        next: u32,
    },
}

/// A block that is sent again.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    user: u32,
    /// The share of the TTI that it takes.
    share: u128,
    /// The repetitions that follow this one.
    more: u32,
}

/// This user's block in a TTI.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnBlock {
    /// What it takes, in the unit of the cell's capacity.
    pub(super) share: u128,
    /// How much later than its TTI it is read.
    pub(super) later: Duration,
}

/// This user's number.
const OWN: u32 = 0;

impl Turns {
    pub(super) fn new(cell: &Cellular) -> Self {
        let users = cell.others.saturating_add(1);
        let rule = match cell.scheduler {
            Scheduler::ProportionalFair { window } => Rule::ProportionalFair {
                weight: 1.0 / (window.as_secs_f64() / cell.tti.as_secs_f64()).max(1.0),
                means: vec![0.0; users as usize],
            },
            Scheduler::RoundRobin { at_once } => Rule::RoundRobin { at_once: at_once.max(1), next: OWN },
        };
        let delay = ttis(cell.harq.delay, cell.tti).max(1);
        Self { rule, users, due: (0..=delay).map(|_| Vec::new()).collect() }
    }

    /// Gives away the next TTI, in which the cell carries `capacity`. Returns what this user gets, if it
    /// `has_data` as far as the base station knows.
    pub(super) fn give(&mut self, has_data: bool, capacity: u128, errors: &mut Errors) -> Option<OwnBlock> {
        let mut repeats = self.due.pop_front().unwrap_or_default();
        let taken = repeats.iter().map(|repeat| repeat.share).sum();
        let mut left = capacity.saturating_sub(taken);
        // The list of this TTI is the one that is used in `due.len() + 1` TTIs.
        let after = self.due.len().saturating_sub(1);
        if let Some(later) = self.due.get_mut(after) {
            let again = repeats.iter().filter(|repeat| repeat.more > 0);
            later.extend(again.map(|repeat| Repeat { more: repeat.more - 1, ..*repeat }));
        }
        let mut own = None;
        match &mut self.rule {
            Rule::ProportionalFair { weight, means } => {
                if left > 0 {
                    let first = if has_data { OWN } else { OWN + 1 };
                    let user = least(means, first, &repeats);
                    for (index, mean) in (0..).zip(means.iter_mut()) {
                        *mean = (1.0 - *weight) * *mean + if Some(index) == user { *weight } else { 0.0 };
                    }
                    if let Some(user) = user {
                        send(user, left, errors, self.due.get_mut(after), &mut own);
                    }
                }
            }
            Rule::RoundRobin { at_once, next } => {
                let active = self.users - u32::from(!has_data);
                let at_once = active.min(*at_once);
                if at_once > 0 {
                    let share = capacity / u128::from(at_once);
                    let mut served = repeats.len() as u32;
                    let mut user = *next;
                    for _ in 0..self.users {
                        if served >= at_once || left == 0 {
                            break;
                        }
                        let is_idle = user == OWN && !has_data;
                        if !is_idle && repeats.iter().all(|repeat| repeat.user != user) {
                            let taken = share.min(left);
                            send(user, taken, errors, self.due.get_mut(after), &mut own);
                            left -= taken;
                            served += 1;
                        }
                        user = if user + 1 == self.users { OWN } else { user + 1 };
                    }
                    *next = user;
                }
            }
        }
        repeats.clear();
        self.due.push_back(repeats);
        own
    }
}

/// Sends a new block of `user`. Its repetitions go into `later`, and if it is this user's, into `own`.
fn send(
    user: u32,
    share: u128,
    errors: &mut Errors,
    later: Option<&mut Vec<Repeat>>,
    own: &mut Option<OwnBlock>,
) {
    let fate = errors.draw();
    if let (Some(more), Some(later)) = (fate.repeats.checked_sub(1), later) {
        later.push(Repeat { user, share, more });
    }
    if user == OWN {
        *own = Some(OwnBlock { share, later: fate.later });
    }
}

/// The user from `first` on with the least mean who repeats no block now. The first of several.
fn least(means: &[f64], first: u32, repeats: &[Repeat]) -> Option<u32> {
    let mut least: Option<(f64, u32)> = None;
    for (user, mean) in (0..).zip(means.iter().copied()).skip(first as usize) {
        let is_less = least.is_none_or(|(known, _)| mean < known);
        if is_less && repeats.iter().all(|repeat| repeat.user != user) {
            least = Some((mean, user));
        }
    }
    least.map(|(_, user)| user)
}
