//! The budget of time in which disturbed repetitions run again.
//!
//! A repetition is disturbed if the machine ran it later than the stated limits allow. Once every repetition
//! has run, the disturbed ones run again, in the same order, pass after pass. The passes end when no
//! repetition is disturbed, when each disturbed one has run again [`MAX_RERUNS`] times, or when the budget is
//! too small for the next one.
//!
//! The budget is in path time: a repetition costs the duration of its scenario, however long the machine took
//! to run it. So the budget is the same on every machine, and a run that is resumed after a kill has the
//! remaining budget.

use talkpath_units::Duration;

use crate::tasks::CellPlan;

/// The smallest budget, unless the user states one. We chose a minute. In this time the repetitions of a
/// short run can run again several times, and nobody waits longer.
const MIN_BUDGET: Duration = Duration::from_secs(60);
/// How many times one repetition may run again. We chose 5. If a machine disturbs two of three repetitions,
/// independently of each other, then (2/3)^6 of them stay disturbed after six attempts, which is one in
/// eleven.
const MAX_RERUNS: u64 = 5;

/// The budget of one run.
#[derive(Debug)]
pub(crate) struct RerunBudget {
    /// The value of `--run-again`. If it is `None`, the budget is the path time that all repetitions take
    /// once, and at least [`MIN_BUDGET`].
    stated: Option<Duration>,
    /// The path time that reruns have cost, those of earlier processes included.
    used: Duration,
}

/// How many times a repetition has run again, and how long it takes each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PastReruns {
    /// The duration of the repetition's scenario.
    pub(crate) duration: Duration,
    pub(crate) reruns: u64,
}

impl RerunBudget {
    /// Returns a budget of which nothing is used yet.
    pub(crate) const fn new(stated: Option<Duration>) -> Self {
        Self { stated, used: Duration::ZERO }
    }

    /// Charges the budget with the reruns of an earlier process.
    pub(crate) fn charge(&mut self, past: PastReruns) {
        self.used = self.used.saturating_add(past.duration.saturating_mul(past.reruns));
    }

    /// Returns whether a repetition of `cells` may run again, and charges the budget with the rerun if so.
    pub(crate) fn grant(&mut self, cells: &[CellPlan<'_>], past: PastReruns) -> bool {
        let used = self.used.saturating_add(past.duration);
        if used > self.total(cells) || past.reruns >= MAX_RERUNS {
            return false;
        }
        self.used = used;
        true
    }

    /// Returns the largest path time that these repetitions may still cost, over all their future reruns.
    pub(crate) fn at_most(
        &self,
        cells: &[CellPlan<'_>],
        repetitions: impl Iterator<Item = PastReruns>,
    ) -> Duration {
        let mut demand = Duration::ZERO;
        for past in repetitions {
            let future_reruns = MAX_RERUNS.saturating_sub(past.reruns);
            demand = demand.saturating_add(past.duration.saturating_mul(future_reruns));
        }
        demand.min(self.total(cells).saturating_sub(self.used))
    }

    fn total(&self, cells: &[CellPlan<'_>]) -> Duration {
        if let Some(stated) = self.stated {
            return stated;
        }
        let all_once =
            cells.iter().map(|cell| cell.path_time()).fold(Duration::ZERO, Duration::saturating_add);
        all_once.max(MIN_BUDGET)
    }
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Source, load};

    use super::*;

    #[test]
    fn what_runs_again_adds_five_durations_at_most_or_what_is_left_of_the_budget() {
        let text = "name = \"a\"\nduration = \"10 s\"\npath = \"lan\"\nrepeat = 30\n[flow.call]\n\
                    transport = \"udp\"\nworkload = { kind = \"voice\" }\n";
        let plan = load(&Source::new("a.toml", text), &Options::default()).unwrap();
        let (duration, cells) = (Duration::from_secs(10), CellPlan::all_of(&plan));
        let at_most = |budget: &RerunBudget, each: &[u64]| {
            budget.at_most(&cells, each.iter().map(|&reruns| PastReruns { duration, reruns })).as_nanos()
                / 1_000_000_000
        };
        let mut budget = RerunBudget::new(None);
        assert_eq!(at_most(&budget, &[0]), 50);
        assert_eq!(at_most(&budget, &[4, 5]), 10);
        assert_eq!(at_most(&budget, &[0; 20]), 300, "as long as all repetitions take once");
        assert!(budget.grant(&cells, PastReruns { duration, reruns: 0 }));
        assert_eq!(at_most(&budget, &[0; 20]), 290);
        budget.charge(PastReruns { duration, reruns: 28 });
        assert_eq!(at_most(&budget, &[0; 20]), 10, "an earlier process has used the rest");
        let stated = RerunBudget::new(Some(Duration::from_secs(25)));
        assert_eq!(at_most(&stated, &[0]), 25);
    }
}
