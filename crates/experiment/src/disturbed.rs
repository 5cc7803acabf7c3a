//! The budget of time in which disturbed repetitions run again.
//!
//! Once every repetition has run, those that the machine disturbed past the stated limits run again, in the
//! same order, pass after pass. That ends when none is disturbed, when each has run again [`MOST_TIMES`], or
//! when the budget has no room for the next one. The budget is in path time: a repetition costs the duration
//! of its scenario, however long the machine took for it. So the budget is the same on every machine, and a
//! run that is resumed after a kill has what was left of it.

use talkpath_scenario::Plan;
use talkpath_units::Duration;

use crate::part::{Fresh, Part};

/// The budget of a run.
pub(crate) struct TimeAgain {
    /// `--run-again`. `None`: as long as the plan itself, and [`LEAST`] at least.
    stated: Option<Duration>,
    /// What repetitions that ran again have cost, those of earlier processes included.
    used: Duration,
}

impl TimeAgain {
    /// The budget that is `stated`, less what the repetitions have cost that earlier processes `kept`.
    pub(crate) fn new(stated: Option<Duration>, plan: &Plan, kept: &Fresh) -> Self {
        let of_part = |part: &Part| {
            let duration = plan.cell(part.id().cell).map_or(Duration::ZERO, |cell| cell.scenario.duration);
            duration.saturating_mul(part.ran_again())
        };
        let used = kept.values().map(of_part).fold(Duration::ZERO, Duration::saturating_add);
        Self { stated, used }
    }

    /// Whether a repetition of `plan` that takes `duration`, and has run again `times` until now, may run
    /// once more. If it may, the budget is charged with it.
    pub(crate) fn grant(&mut self, plan: &Plan, duration: Duration, times: u64) -> bool {
        let used = self.used.saturating_add(duration);
        let has_time = used <= self.whole(plan) && times < MOST_TIMES;
        if has_time {
            self.used = used;
        }
        has_time
    }

    /// The path time that repetitions of `plan` may still take at most, each given by its duration and by how
    /// often it has run again.
    pub(crate) fn at_most(&self, plan: &Plan, each: impl Iterator<Item = (Duration, u64)>) -> Duration {
        let of_one =
            |(duration, times): (Duration, u64)| duration.saturating_mul(MOST_TIMES.saturating_sub(times));
        let wanted = each.map(of_one).fold(Duration::ZERO, Duration::saturating_add);
        wanted.min(self.whole(plan).saturating_sub(self.used))
    }

    fn whole(&self, plan: &Plan) -> Duration {
        self.stated.unwrap_or_else(|| path_time(plan).max(LEAST))
    }
}

/// What all repetitions of `plan` take by their scenarios.
fn path_time(plan: &Plan) -> Duration {
    let durations = plan.cells.iter().map(|cell| cell.scenario.duration);
    durations.fold(Duration::ZERO, Duration::saturating_add).saturating_mul(plan.repeat)
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
        let (long, none) = (Duration::from_secs(10), Fresh::new());
        let at_most = |time: &TimeAgain, each: &[u64]| {
            time.at_most(&plan, each.iter().map(|&times| (long, times))).as_nanos() / 1_000_000_000
        };
        let mut time = TimeAgain::new(None, &plan, &none);
        assert_eq!(at_most(&time, &[0]), 50);
        assert_eq!(at_most(&time, &[4, 5]), 10);
        assert_eq!(at_most(&time, &[0; 20]), 300, "as long as all repetitions take once");
        assert!(time.grant(&plan, long, 0));
        assert_eq!(at_most(&time, &[0; 20]), 290);
        let stated = TimeAgain::new(Some(Duration::from_secs(25)), &plan, &none);
        assert_eq!(at_most(&stated, &[0]), 25);
    }
}
