//! For how long repetitions that the machine disturbed run again.
//!
//! Once every repetition has run, those that were disturbed past the stated limits run again, in the same
//! order, pass after pass: until none is left, or until they have taken the time that they have in all.
//! Their time is the path's own: a repetition takes the duration that its scenario says. So it does not
//! depend on the machine, and goes on where a killed process stopped.

use talkpath_scenario::Plan;
use talkpath_units::Duration;

use crate::part::{Fresh, Part};

/// The time that disturbed repetitions have in all.
pub(super) struct TimeAgain {
    /// `--run-again`; as long as the plan itself if it is not given.
    stated: Option<Duration>,
    used: Duration,
}

impl TimeAgain {
    /// As `stated`, of which the repetitions that earlier processes `kept` have used some.
    pub(super) fn new(stated: Option<Duration>, plan: &Plan, kept: &Fresh) -> Self {
        let of_part = |part: &Part| {
            let duration = plan.cell(part.id().cell).map_or(Duration::ZERO, |cell| cell.scenario.duration);
            duration.saturating_mul(part.ran_again())
        };
        let used = kept.values().map(of_part).fold(Duration::ZERO, Duration::saturating_add);
        Self { stated, used }
    }

    /// Whether a repetition of `plan` that takes `duration`, and ran again `times` until now, may run once
    /// more; its time is taken.
    pub(super) fn take(&mut self, plan: &Plan, duration: Duration, times: u64) -> bool {
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

/// The time that they have at least, unless it is stated. Chosen: of a short run each can run again, and
/// nobody waits for much longer.
const LEAST: Duration = Duration::from_secs(60);
/// How often one repetition runs again. Chosen: a machine that disturbs two of three leaves one in eleven.
const MOST_TIMES: u64 = 5;
