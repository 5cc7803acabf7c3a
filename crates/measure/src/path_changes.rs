//! Splits the lost and late messages of a flow by the changes of its path.
//!
//! Changes of one kind, such as the handovers of a satellite, are a *group*. A message belongs to at most one
//! group. The seconds in which messages were bad are claimed in three passes, the lost messages apart from
//! the late ones:
//!
//! | pass | the time of a group |
//! | --- | --- |
//! | silences | each silence, and 2 s after it, or as long again as it took |
//! | steps | 2 s from each change that holds at once |
//! | spans | all time in which a value is worse than at the start, and 2 s after it |
//!
//! In each pass the groups with at least four times as many bad messages a second as the seconds outside, and
//! more than chance puts there, are to blame. The group to blame with the most bad messages claims its
//! seconds, the first in the file if several have as many. Then the groups are counted again without these
//! seconds. So the rain that falls during handovers stays rain, if there are handovers without rain:
//!
//! ```text
//!  lost in a second   0  0  0  0  3  4  3  4  3  4  3  0  0  0  0  0
//!  handovers          ├──┤        ├──┤        ├──┤        ├──┤   14 in 8 s, 10 in 8 s outside: none
//!  rain                           ├─────────────────┤             24 in 9 s, none outside: all
//! ```
//!
//! A group is *free* if its time was compared with seconds outside and has no more bad messages than chance
//! puts there. A group that claims nothing need not be free: others may have claimed all its seconds, or it
//! covers the whole run, so that there is nothing to compare it with.
//!
//! All repetitions of a cell are taken together, so that few messages in each repetition decide as well. Only
//! the first hour of a run is looked at, because bad seconds are counted up to there.

use std::cmp::Reverse;

use crate::metrics::bad_seconds::{BadSecond, MOST_SECONDS};

/// The time after a change that still belongs to it, in s. A retransmission timer of 1 s (RFC 6298 §2.1) that
/// fires just before the change is over has backed off to 2 s (§5.5), and fires again at most 2 s after it. A
/// timer that backs off during a longer silence waits at most as long again as the silence took.
const AFTERMATH_S: f64 = 2.0;
/// A group claims its seconds if they have at least this many times as many bad messages a second as the
/// seconds outside. Chosen: a change that makes less of a difference is not what a user looks for.
const LEAST_RATIO: f64 = 4.0;
/// A group claims its seconds if the bad messages in them would be there by chance once in a thousand times
/// at most. Chosen.
const BY_CHANCE_TO_BLAME: f64 = 0.001;
/// A group is not free if the bad messages in its seconds would be there by chance once in twenty times at
/// most. Chosen, as for an interval of 95 %.
const BY_CHANCE_TO_DOUBT: f64 = 0.05;
/// A group claims no lost messages if fewer are lost in its time, and likewise no late messages. Chosen.
pub const LEAST_MESSAGES: u64 = 10;

/// The changes of one kind in one run. All times are in s from the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeGroup {
    /// The words that name the group, or what it changes.
    pub words: String,
    /// The number of changes. Changes of several links at one instant count once.
    pub times: u64,
    /// When the first change begins, and when the last outage or ramp ends.
    pub range: (f64, f64),
    /// The times in which no packet leaves.
    pub silences: Vec<(f64, f64)>,
    /// The instants from which values hold.
    pub steps: Vec<f64>,
    /// The times in which a value is worse than at the start of the run.
    pub worse: Vec<(f64, f64)>,
}

/// A flow in one repetition of a cell.
#[derive(Clone, Copy, Debug)]
pub struct FlowOfRun<'a> {
    /// The groups of changes. All repetitions of a cell have the same groups, at their own times.
    pub groups: &'a [ChangeGroup],
    /// The seconds with bad messages, each second once. Those after the first hour do not count.
    pub bad_seconds: &'a [BadSecond],
    /// The length of the run in s.
    pub seconds: f64,
}

/// What belongs to a group in one repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The lost messages.
    pub lost: u64,
    /// The late messages.
    pub late: u64,
    /// The seconds in the time of the group, within the first hour of the run.
    pub seconds: u64,
    /// Whether the group is free, over all repetitions.
    pub is_free: bool,
}

impl ChangeGroup {
    /// When the group is over, for a reader: the end of its only outage, ramp, or time with a worse value.
    /// The beginning if it has several.
    pub fn until_s(&self) -> f64 {
        let (first, last) = self.range;
        match (&self.worse[..], self.times) {
            (_, 0 | 1) => last.max(first),
            ([(from, until)], _) if *from == first && self.silences.is_empty() => *until,
            _ => first,
        }
    }

    /// The seconds of a run that belong to the group in `pass`, each true or false. A second of which a part
    /// belongs to the group is the group's.
    fn mask(&self, pass: Pass, seconds: usize) -> Vec<bool> {
        let mut mask = vec![false; seconds];
        let mut mark = |from: f64, until: f64| {
            let first = from.max(0.0).floor() as usize;
            let end = (until.ceil().max(0.0) as usize).min(seconds);
            mask.get_mut(first.min(end)..end).into_iter().flatten().for_each(|second| *second = true);
        };
        match pass {
            Pass::Silences => {
                for &(from, until) in &self.silences {
                    mark(from, until + AFTERMATH_S.max(until - from));
                }
            }
            Pass::Steps => self.steps.iter().for_each(|&at| mark(at, at + AFTERMATH_S)),
            Pass::Spans => self.worse.iter().for_each(|&(from, until)| mark(from, until + AFTERMATH_S)),
        }
        mask
    }

    /// The seconds of a run that belong to the group in any pass.
    fn mask_of_all(&self, seconds: usize) -> Vec<bool> {
        let masks = PASSES.map(|pass| self.mask(pass, seconds));
        (0..seconds).map(|second| masks.iter().any(|mask| mask[second])).collect()
    }
}

#[derive(Clone, Copy, Debug)]
enum Pass {
    Silences,
    Steps,
    Spans,
}

const PASSES: [Pass; 3] = [Pass::Silences, Pass::Steps, Pass::Spans];

/// Splits the bad messages of one flow in all repetitions of a cell. Returns for each repetition what belongs
/// to each group.
pub fn split(runs: &[FlowOfRun<'_>]) -> Vec<Vec<Claimed>> {
    let group_count = runs.iter().map(|run| run.groups.len()).min().unwrap_or(0);
    let mut claimed = vec![vec![Claimed::default(); group_count]; runs.len()];
    let lost = Split::new(runs, group_count, |(_, lost, _)| *lost);
    let late = Split::new(runs, group_count, |(_, _, late)| *late);
    for (run, of_run) in claimed.iter_mut().enumerate() {
        let seconds = count_seconds(&runs[run]);
        for (group, of_group) in of_run.iter_mut().enumerate() {
            let mask = runs[run].groups[group].mask_of_all(seconds);
            *of_group = Claimed {
                lost: lost.claimed[run][group],
                late: late.claimed[run][group],
                seconds: mask.into_iter().filter(|is_inside| *is_inside).count() as u64,
                is_free: lost.free[group] && late.free[group],
            };
        }
    }
    claimed
}

/// The number of seconds of a run in which bad messages are counted: up to its end, or to its last bad second
/// if that is later, but no more than an hour.
fn count_seconds(run: &FlowOfRun<'_>) -> usize {
    let last_bad = run.bad_seconds.iter().map(|(second, ..)| (*second as usize).saturating_add(1)).max();
    let seconds = (run.seconds.max(0.0).ceil() as usize).max(last_bad.unwrap_or(0));
    seconds.min(MOST_SECONDS as usize)
}

/// What belongs to the groups of the lost messages, or of the late ones.
struct Split {
    /// The bad messages of each group, in each run.
    claimed: Vec<Vec<u64>>,
    /// Whether each group is free.
    free: Vec<bool>,
}

impl Split {
    /// Lets the groups claim the bad messages that `count` counts.
    fn new(runs: &[FlowOfRun<'_>], group_count: usize, count: fn(&BadSecond) -> u32) -> Self {
        // The bad messages of each second of each run that no group has claimed. `None` if it is claimed.
        let mut open: Vec<Vec<Option<u64>>> = Vec::new();
        for run in runs {
            let mut seconds = vec![Some(0); count_seconds(run)];
            for bad in run.bad_seconds {
                if let Some(second) = seconds.get_mut(bad.0 as usize) {
                    *second = Some(u64::from(count(bad)));
                }
            }
            open.push(seconds);
        }
        let mut claimed = vec![vec![0; group_count]; runs.len()];
        for pass in PASSES {
            let in_pass = |group: &ChangeGroup, seconds| group.mask(pass, seconds);
            let mut waiting: Vec<usize> = (0..group_count).collect();
            loop {
                let found = waiting.iter().map(|&group| (group, Counted::new(runs, group, in_pass, &open)));
                let to_blame = found.filter(|(_, counted)| counted.is_to_blame());
                let most = to_blame.max_by_key(|(group, found)| (found.inside, Reverse(*group)));
                let Some((group, _)) = most else { break };
                waiting.retain(|other| *other != group);
                for ((run, open), claimed) in runs.iter().zip(&mut open).zip(&mut claimed) {
                    let mask = run.groups[group].mask(pass, open.len());
                    for (second, _) in open.iter_mut().zip(mask).filter(|(_, is_inside)| *is_inside) {
                        claimed[group] += second.take().unwrap_or(0);
                    }
                }
            }
        }
        let is_free = |group: usize| {
            let claims = claimed.iter().any(|of_run| of_run[group] > 0);
            !claims && Counted::new(runs, group, ChangeGroup::mask_of_all, &open).is_no_denser()
        };
        let free = (0..group_count).map(is_free).collect();
        Self { claimed, free }
    }
}

/// The bad messages that no group has claimed, in the time of a group and outside.
struct Counted {
    inside: u64,
    inside_s: u64,
    outside: u64,
    outside_s: u64,
}

impl Counted {
    /// Counts with the seconds that `mask` gives the group.
    fn new(
        runs: &[FlowOfRun<'_>],
        group: usize,
        mask: impl Fn(&ChangeGroup, usize) -> Vec<bool>,
        open: &[Vec<Option<u64>>],
    ) -> Self {
        let mut counted = Self { inside: 0, inside_s: 0, outside: 0, outside_s: 0 };
        for (run, seconds) in runs.iter().zip(open) {
            let mask = mask(&run.groups[group], seconds.len());
            for (bad, is_inside) in seconds.iter().zip(mask) {
                let Some(bad) = bad else { continue };
                let (messages, seconds) = match is_inside {
                    true => (&mut counted.inside, &mut counted.inside_s),
                    false => (&mut counted.outside, &mut counted.outside_s),
                };
                *messages += bad;
                *seconds += 1;
            }
        }
        counted
    }

    /// Whether the group claims what is in its time.
    fn is_to_blame(&self) -> bool {
        let Self { inside, inside_s, outside, outside_s } = *self;
        let is_denser = inside as f64 * outside_s as f64 >= LEAST_RATIO * outside as f64 * inside_s as f64;
        inside >= LEAST_MESSAGES && is_denser && self.chance() <= BY_CHANCE_TO_BLAME
    }

    /// Whether the time of the group was compared, and has no more bad messages than chance puts there.
    fn is_no_denser(&self) -> bool {
        self.inside_s > 0 && self.outside_s > 0 && self.chance() > BY_CHANCE_TO_DOUBT
    }

    /// An upper bound of the chance that as many bad messages fall inside if they are equally likely in every
    /// second: the Chernoff bound exp(-n D) of the binomial distribution of all n messages (Hoeffding 1963,
    /// theorem 1), with the relative entropy D of the share of the messages inside and that of the seconds. 1
    /// if the messages are no denser inside, or if there is no second outside.
    fn chance(&self) -> f64 {
        let Self { inside, inside_s, outside, outside_s } = *self;
        let messages = (inside + outside) as f64;
        let of_seconds = inside_s as f64 / (inside_s + outside_s) as f64;
        let of_messages = inside as f64 / messages;
        // Also if one of the two is not a number, because there are no messages or no seconds.
        if of_messages.is_nan() || of_seconds.is_nan() || of_messages <= of_seconds {
            return 1.0;
        }
        let term =
            |share: f64, expected: f64| if share > 0.0 { share * (share / expected).ln() } else { 0.0 };
        let entropy = term(of_messages, of_seconds) + term(1.0 - of_messages, 1.0 - of_seconds);
        (-messages * entropy).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 120 s with an outage of 2 s each 45 s, a handover each 15 s, and rain from 30 to 80 s.
    fn groups() -> [ChangeGroup; 3] {
        let outages = [45.0, 90.0].map(|at| (at, at + 2.0)).to_vec();
        let steps = (1..8).map(|number| f64::from(15 * number)).collect();
        [
            ChangeGroup { words: "outage".into(), times: 2, silences: outages, ..ChangeGroup::default() },
            ChangeGroup { words: "handover".into(), times: 7, steps, ..ChangeGroup::default() },
            ChangeGroup {
                words: "rain".into(),
                times: 2,
                worse: vec![(30.0, 80.0)],
                ..ChangeGroup::default()
            },
        ]
    }

    fn of(bad_seconds: &[BadSecond]) -> Vec<(u64, u64)> {
        let groups = groups();
        let run = FlowOfRun { groups: &groups, bad_seconds, seconds: 120.0 };
        split(&[run])[0].iter().map(|claimed| (claimed.lost, claimed.late)).collect()
    }

    #[test]
    fn what_is_late_in_outages_and_lost_in_rain_is_split_and_handovers_cost_nothing() {
        let mut bad: Vec<BadSecond> = (30..80).map(|second| (second, 1, 0)).collect();
        for outage in [45, 46] {
            bad[outage - 30].2 = 50;
        }
        bad.extend([(90, 0, 50), (91, 0, 50)]);
        assert_eq!(of(&bad), [(0, 200), (0, 0), (50, 0)]);
    }

    fn free(groups: &[ChangeGroup], bad_seconds: &[BadSecond], seconds: f64) -> Vec<(u64, bool)> {
        let run = FlowOfRun { groups, bad_seconds, seconds };
        split(&[run])[0].iter().map(|claimed| (claimed.lost, claimed.is_free)).collect()
    }

    #[test]
    fn what_is_free_was_compared_and_has_no_more_than_chance_puts_there() {
        let rain: Vec<BadSecond> = (30..80).map(|second| (second, 1, 0)).collect();
        assert_eq!(free(&groups(), &rain, 120.0), [(0, true), (0, true), (50, false)]);
        let outage = |every: f64, lasts: f64| ChangeGroup {
            times: 10,
            silences: (0..40).map(|number| f64::from(number) * every).map(|at| (at, at + lasts)).collect(),
            ..ChangeGroup::default()
        };
        let all: Vec<BadSecond> = (0..120).map(|second| (second, 1, 0)).collect();
        assert_eq!(free(&[outage(4.0, 2.0)], &all, 120.0), [(0, false)], "it covers the run");
        let few: Vec<BadSecond> = [(0, 3, 0), (12, 3, 0), (24, 3, 0)].to_vec();
        assert_eq!(free(&[outage(12.0, 1.0)], &few, 120.0), [(0, false)], "too few to be claimed");
        assert_eq!(free(&[outage(12.0, 1.0)], &[(8, 3, 0)], 120.0), [(0, true)]);
    }

    #[test]
    fn seconds_outside_that_are_good_by_chance_blame_nobody() {
        let steps = (0..59).map(|number| f64::from(3 + 2 * number)).collect();
        let from_3_s = [ChangeGroup { times: 59, steps, ..ChangeGroup::default() }];
        let bad: Vec<BadSecond> = (3..120).map(|second| (second, 1, 0)).collect();
        assert_eq!(free(&from_3_s, &bad, 120.0), [(0, true)], "three good seconds of 120 are chance");
    }

    #[test]
    fn of_two_groups_at_the_same_instants_the_first_claims_and_the_second_is_not_free() {
        let steps: Vec<f64> = (1..8).map(|number| f64::from(15 * number)).collect();
        let group = ChangeGroup { times: 7, steps, ..ChangeGroup::default() };
        let bad: Vec<BadSecond> = (1..8).map(|number| (15 * number, 4, 0)).collect();
        assert_eq!(free(&[group.clone(), group], &bad, 120.0), [(28, false), (0, false)]);
    }

    #[test]
    fn what_follows_each_handover_is_the_handovers() {
        let bad: Vec<BadSecond> = (1..8).map(|number| (15 * number, 4, 2)).collect();
        assert_eq!(of(&bad), [(0, 0), (28, 14), (0, 0)]);
    }

    #[test]
    fn what_comes_all_the_time_or_hardly_at_all_belongs_to_no_change() {
        let everywhere: Vec<BadSecond> = (0..120).map(|second| (second, 1, 0)).collect();
        assert_eq!(of(&everywhere), [(0, 0); 3]);
        assert_eq!(of(&[(45, 9, 0)]), [(0, 0); 3], "too few");
        assert_eq!(of(&[(10, 50, 0)]), [(0, 0); 3], "it came before");
    }

    #[test]
    fn the_seconds_after_the_first_hour_are_not_taken_as_good() {
        let groups = groups();
        let bad_seconds: Vec<BadSecond> = (0..3600).map(|second| (second, 1, 0)).collect();
        let a_day = FlowOfRun { groups: &groups, bad_seconds: &bad_seconds, seconds: 86_400.0 };
        assert_eq!(split(&[a_day])[0].iter().map(|claimed| claimed.lost).sum::<u64>(), 0);
    }

    #[test]
    fn seconds_of_a_damaged_file_end_no_program() {
        assert_eq!(of(&[(u32::MAX, 20, 0), (46, 0, 20), (7, 0, 1)]), [(0, 20), (0, 0), (0, 0)]);
    }

    #[test]
    fn repetitions_are_taken_together_and_each_keeps_its_own() {
        let groups = groups();
        let (first, second) = ([(45, 0, 6)], [(91, 0, 5)]);
        let runs =
            [&first, &second].map(|bad_seconds| FlowOfRun { groups: &groups, bad_seconds, seconds: 120.0 });
        let late: Vec<u64> = split(&runs).iter().map(|run| run[0].late).collect();
        assert_eq!(late, [6, 5]);
    }

    #[test]
    fn a_group_is_over_with_its_only_outage_or_the_only_time_with_a_worse_value() {
        let [outage, handover, mut rain] = groups();
        rain.range = (30.0, 80.0);
        assert_eq!((rain.until_s(), handover.until_s(), outage.until_s()), (80.0, 0.0, 0.0));
        let once = ChangeGroup { times: 1, range: (30.0, 32.5), ..ChangeGroup::default() };
        assert_eq!(once.until_s(), 32.5);
    }
}
