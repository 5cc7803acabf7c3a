//! The budget of time in which disturbed repetitions run again.
//!
//! Once every repetition has run, those that the machine disturbed past the stated limits run again, in the
//! same order, pass after pass. That ends when none is disturbed, when each has run again [`MOST_TIMES`], or
//! when the budget has no room for the next one. The budget is in path time: a repetition costs the duration
//! of its scenario, however long the machine took for it. So the budget is the same on every machine, and a
//! run that is resumed after a kill has what was left of it.

use talkpath_units::Duration;

use crate::tasks::CellPlan;

/// The budget of a run.
#[derive(Debug)]
pub(crate) struct TimeAgain {
    /// `--run-again`. `None`: as long as all repetitions take once, and [`LEAST`] at least.
    stated: Option<Duration>,
    /// What repetitions that ran again have cost, those of earlier processes included.
    used: Duration,
}

impl TimeAgain {
    /// The budget that is `stated`, of which nothing is used yet.
    pub(crate) const fn new(stated: Option<Duration>) -> Self {
        Self { stated, used: Duration::ZERO }
    }

    /// An earlier process ran a repetition of `duration` again so many `times`.
    pub(crate) fn charge(&mut self, duration: Duration, times: u64) {
        self.used = self.used.saturating_add(duration.saturating_mul(times));
    }

    /// Whether a repetition of `cells` that takes `duration`, and has run again `times` until now, may run
    /// once more. If it may, the budget is charged with it.
    pub(crate) fn grant(&mut self, cells: &[CellPlan<'_>], duration: Duration, times: u64) -> bool {
        let used = self.used.saturating_add(duration);
        let has_time = used <= self.whole(cells) && times < MOST_TIMES;
        if has_time {
            self.used = used;
        }
        has_time
    }

    /// The path time that repetitions of `cells` may still take at most, each given by its duration and by
    /// how often it has run again.
    pub(crate) fn at_most(
        &self,
        cells: &[CellPlan<'_>],
        each: impl Iterator<Item = (Duration, u64)>,
    ) -> Duration {
        let of_one =
            |(duration, times): (Duration, u64)| duration.saturating_mul(MOST_TIMES.saturating_sub(times));
        let wanted = each.map(of_one).fold(Duration::ZERO, Duration::saturating_add);
        wanted.min(self.whole(cells).saturating_sub(self.used))
    }

    fn whole(&self, cells: &[CellPlan<'_>]) -> Duration {
        let path_time = || cells.iter().map(|cell| cell.path_time());
        self.stated.unwrap_or_else(|| path_time().fold(Duration::ZERO, Duration::saturating_add).max(LEAST))
    }
}

/// The budget at least, unless it is stated. Chosen: repetitions of a short run can run again several times,
/// and nobody waits for more than a minute.
const LEAST: Duration = Duration::from_secs(60);
/// How often one repetition runs again. Chosen: where the budget allows it, a machine that disturbs two of
/// three repetitions, each independently, leaves (2/3)^6 of them disturbed, which is one in eleven.
const MOST_TIMES: u64 = 5;

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Source, load};

    use super::*;

    #[test]
    fn what_runs_again_adds_five_durations_at_most_or_what_is_left_of_the_budget() {
        let text = "name = \"a\"\nduration = \"10 s\"\npath = \"lan\"\nrepeat = 30\n[flow.call]\n\
                    transport = \"udp\"\nworkload = { kind = \"voice\" }\n";
        let plan = load(&Source::new("a.toml", text), &Options::default()).unwrap();
        let (long, cells) = (Duration::from_secs(10), CellPlan::all_of(&plan));
        let at_most = |time: &TimeAgain, each: &[u64]| {
            time.at_most(&cells, each.iter().map(|&times| (long, times))).as_nanos() / 1_000_000_000
        };
        let mut time = TimeAgain::new(None);
        assert_eq!(at_most(&time, &[0]), 50);
        assert_eq!(at_most(&time, &[4, 5]), 10);
        assert_eq!(at_most(&time, &[0; 20]), 300, "as long as all repetitions take once");
        assert!(time.grant(&cells, long, 0));
        assert_eq!(at_most(&time, &[0; 20]), 290);
        time.charge(long, 28);
        assert_eq!(at_most(&time, &[0; 20]), 10, "an earlier process has used the rest");
        let stated = TimeAgain::new(Some(Duration::from_secs(25)));
        assert_eq!(at_most(&stated, &[0]), 25);
    }
}
