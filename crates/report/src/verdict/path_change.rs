//! Says which changes of the path the lost and late messages of a flow belong to.
//!
//! `measure::path_changes` has split the messages in each repetition. Here the repetitions of a transport are
//! added up. An answer names each group of changes that has a share of them, and each frequent group that was
//! compared with the rest of the run and costs no message.

use talkpath_measure::path_changes::LEAST_MESSAGES;
use talkpath_measure::summary::ByChange;

use crate::path_changes::times_words;
use crate::view::CellView;

/// A smaller share of lost and late messages is not worth a sentence. Chosen, as for a call that is heard
/// whole.
const HARDLY_ANY: f64 = 0.001;
/// A group with a smaller share is not named. Chosen: a hundredth of the harm is nobody's concern.
const LEAST_SHARE: f64 = 0.01;
/// A group of at least 5 changes that cost no message is worth a word, because a reader who sees it in the
/// scenario asks for it. Chosen.
const FREQUENT: u64 = 5;

/// The lost and late messages of a flow over one transport, and the changes that they belong to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Blame {
    pub(super) lost: u64,
    pub(super) late: u64,
    /// The groups of changes, in the order of the scenario.
    pub(super) groups: Vec<GroupBlame>,
}

/// What belongs to a group of changes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GroupBlame {
    /// The group in words, with its times: `up: outage (30 to 32.5 s)`.
    pub(super) words: String,
    pub(super) is_silence: bool,
    times: u64,
    lost: u64,
    late: u64,
    /// Whether the group was compared with the rest of each run, and costs no message.
    is_free: bool,
}

/// Lost or late messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harm {
    Lost,
    Late,
}

impl Harm {
    pub(super) const ALL: [Self; 2] = [Self::Lost, Self::Late];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Late => "late",
        }
    }
}

impl Blame {
    /// Adds up what was lost and late of `flow` in `cell`. Returns `None` if the path does not change.
    pub(super) fn find(cell: &CellView<'_>, flow: &str) -> Option<Self> {
        let (mut lost, mut late) = (0, 0);
        let mut groups: Vec<(GroupBlame, Vec<&ByChange>)> = Vec::new();
        for figures in cell.runs.iter().filter_map(|run| run.flows.get(flow)) {
            for (_, lost_then, late_then) in &figures.bad_seconds {
                lost += u64::from(*lost_then);
                late += u64::from(*late_then);
            }
            for (index, by_change) in figures.by_change.iter().enumerate() {
                if groups.len() <= index {
                    groups.push((GroupBlame::new(by_change), Vec::new()));
                }
                groups[index].0.add(by_change);
                groups[index].1.push(by_change);
            }
        }
        let groups = groups.into_iter().map(|(group, of_runs)| group.with_times(&of_runs));
        let blame = Self { lost, late, groups: groups.collect() };
        (!blame.groups.is_empty()).then_some(blame)
    }

    /// The number of messages with this harm.
    pub(super) const fn all(&self, harm: Harm) -> u64 {
        match harm {
            Harm::Lost => self.lost,
            Harm::Late => self.late,
        }
    }

    /// The share of the messages with this harm that belongs to the group of number `group`. Returns `None`
    /// if it is too small to be named, or if there are too few such messages.
    pub(super) fn share(&self, harm: Harm, group: usize) -> Option<f64> {
        let group = self.groups.get(group)?;
        let part = if harm == Harm::Lost { group.lost } else { group.late };
        let share = part as f64 / self.all(harm) as f64;
        (self.all(harm) >= LEAST_MESSAGES && share >= LEAST_SHARE).then_some(share)
    }

    /// Whether hardly a message was lost or late, of the messages that were sent.
    pub(super) fn is_slight(&self, sent: u64) -> bool {
        let bad = self.lost + self.late;
        bad < LEAST_MESSAGES || (bad as f64) < HARDLY_ANY * sent as f64
    }

    /// Whether most late messages are late because no packet leaves for a time.
    pub(super) fn is_late_by_silence(&self) -> bool {
        let silences = self.groups.iter().filter(|group| group.is_silence);
        let late: u64 = silences.map(|group| group.late).sum();
        self.late >= LEAST_MESSAGES && 2 * late >= self.late
    }
}

impl GroupBlame {
    fn new(by_change: &ByChange) -> Self {
        Self {
            words: by_change.change.clone(),
            is_silence: by_change.is_silence,
            times: 0,
            lost: 0,
            late: 0,
            is_free: true,
        }
    }

    fn add(&mut self, by_change: &ByChange) {
        self.times = self.times.max(by_change.times);
        self.lost += by_change.lost;
        self.late += by_change.late;
        self.is_free &= by_change.is_free;
    }

    /// Whether the group costs no message, and is so frequent that this is worth a word.
    pub(super) const fn is_free_and_frequent(&self) -> bool {
        self.is_free && self.times >= FREQUENT
    }

    /// Adds to the words when the changes come.
    fn with_times(self, of_runs: &[&ByChange]) -> Self {
        let Some(first) = of_runs.first() else { return self };
        let same = |other: &&ByChange| {
            (other.times, other.first_s, other.until_s) == (first.times, first.first_s, first.until_s)
        };
        let is_one_span = first.until_s > first.first_s;
        let times = if of_runs.iter().all(same) {
            times_words(if is_one_span { 1 } else { first.times }, first.first_s, first.until_s)
        } else {
            let often =
                if first.times > 1 { format!("{} times, first ", first.times) } else { String::new() };
            format!("{often}at another time in each repetition")
        };
        Self { words: format!("{} ({times})", self.words), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn by_change(change: &str, times: u64, (lost, late): (u64, u64)) -> ByChange {
        ByChange {
            change: change.to_owned(),
            is_silence: change.contains("outage"),
            times,
            first_s: 15.0,
            until_s: 15.0,
            lost,
            late,
            seconds: 8,
            is_free: lost + late == 0,
        }
    }

    /// The blame in two repetitions that each have these bad seconds and these shares.
    fn blame(bad_seconds: &[(u32, u32, u32)], shares: &[ByChange]) -> Option<Blame> {
        let mut summary = fixture::summary(2);
        for run in &mut summary.runs {
            let call = run.flows.get_mut("call").unwrap();
            (call.bad_seconds, call.by_change) = (bad_seconds.to_vec(), shares.to_vec());
        }
        Blame::find(&CellView::all(&summary)[0], "call")
    }

    #[test]
    fn repetitions_are_added_up_and_a_share_is_one_of_its_harm() {
        let shares = [by_change("outage", 19, (0, 95)), by_change("rain", 2, (20, 0))];
        let found = blame(&[(15, 20, 100)], &shares).unwrap();
        assert_eq!((found.lost, found.late), (40, 200));
        assert_eq!((found.share(Harm::Late, 0), found.share(Harm::Lost, 0)), (Some(0.95), None));
        assert_eq!(found.share(Harm::Lost, 1), Some(1.0));
        assert_eq!(found.groups[0].words, "outage (19 times, first at 15 s)");
        let free = |times, cost| blame(&[], &[by_change("handover", times, cost)]).unwrap().groups.remove(0);
        assert!(free(5, (0, 0)).is_free_and_frequent());
        assert!(!free(5, (1, 0)).is_free_and_frequent() && !free(4, (0, 0)).is_free_and_frequent());
        assert!(found.is_late_by_silence());
    }

    #[test]
    fn a_path_that_does_not_change_and_few_messages_have_no_share() {
        assert_eq!(blame(&[(15, 20, 100)], &[]), None);
        let few = blame(&[(15, 0, 4)], &[by_change("outage", 1, (0, 4))]).unwrap();
        assert_eq!(few.share(Harm::Late, 0), None);
        assert!(few.is_slight(100) && !few.is_late_by_silence());
    }

    #[test]
    fn a_random_phase_has_no_first_time() {
        let mut summary = fixture::summary(2);
        for (number, run) in summary.runs.iter_mut().enumerate() {
            let first_s = 15.0 + number as f64;
            let shares = vec![ByChange { first_s, until_s: first_s, ..by_change("handover", 6, (0, 0)) }];
            run.flows.get_mut("call").unwrap().by_change = shares;
        }
        let found = Blame::find(&CellView::all(&summary)[0], "call").unwrap();
        assert_eq!(found.groups[0].words, "handover (6 times, first at another time in each repetition)");
        for run in &mut summary.runs {
            run.flows.get_mut("call").unwrap().by_change[0].times = 1;
        }
        let once = Blame::find(&CellView::all(&summary)[0], "call").unwrap();
        assert_eq!(once.groups[0].words, "handover (at another time in each repetition)");
    }
}
