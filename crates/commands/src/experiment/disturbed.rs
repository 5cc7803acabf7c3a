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
pub(super) struct TimeAgain {
    /// `--run-again`. `None`: as long as the plan itself, and [`LEAST`] at least.
    stated: Option<Duration>,
    /// What repetitions that ran again have cost, those of earlier processes included.
    used: Duration,
}

impl TimeAgain {
    /// The budget that is `stated`, less what the repetitions have cost that earlier processes `kept`.
    pub(super) fn new(stated: Option<Duration>, plan: &Plan, kept: &Fresh) -> Self {
        let of_part = |part: &Part| {
            let duration = plan.cell(part.id().cell).map_or(Duration::ZERO, |cell| cell.scenario.duration);
            duration.saturating_mul(part.ran_again())
        };
        let used = kept.values().map(of_part).fold(Duration::ZERO, Duration::saturating_add);
        Self { stated, used }
    }

    /// Whether a repetition of `plan` that takes `duration`, and has run again `times` until now, may run once
    /// more. If it may, the budget is charged with it.
    pub(super) fn grant(&mut self, plan: &Plan, duration: Duration, times: u64) -> bool {
        let whole = self.stated.unwrap_or_else(|| path_time(plan).max(LEAST));
        let used = self.used.saturating_add(duration);
        let has_time = used <= whole && times < MOST_TIMES;
        if has_time {
            self.used = used;
        }
        has_time
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
