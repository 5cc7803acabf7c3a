//! `--until-decided`: a run that goes on until its thresholds are decided, or its answers if it has no
//! thresholds.
//!
//! ```text
//!  all repetitions have run ─► decided, at 99 %? ─► yes: the run is complete
//!             ▲                       │ no
//!             └── more repetitions ◄──┴── as many as are needed, at most as many again as have run, and as many as
//!                                         fit into the longest time
//! ```
//!
//! Whoever looks several times is wrong more often, so a run ends early only if the 99 % intervals decide.
//! Each look has half as many repetitions more than the one before, up to twice as many, so there are few
//! looks (`measure::ranking`, "When to stop").

use std::time::{Duration as StdDuration, Instant};

use talkpath_measure::metrics::confidence::Level;
use talkpath_measure::summary::{Summary, ThresholdOutcome, ThresholdSummary};
use talkpath_report::lacking;
use talkpath_scenario::{Plan, with_repetitions};
use talkpath_units::Duration;

use crate::failure::Failure;
use crate::scenario_file::load_changed;
use crate::terminal::Terminal;
use crate::thresholds;

/// The largest number of repetitions of a cell. We chose 100,000: a cell of a second then runs for a day.
const MAX_REPETITIONS: u64 = 100_000;

/// Makes larger plans until a run is decided.
pub(super) struct UntilDecided {
    longest: Duration,
    begun: Instant,
    terminal: Terminal,
}

impl UntilDecided {
    /// The rule of a run that begins now. Returns `None` without the flag.
    ///
    /// # Errors
    /// Returns an error if the run has nothing to decide: no threshold, and fewer than two cells to compare.
    pub(super) fn begin(
        longest: Option<Duration>,
        plan: &Plan,
        terminal: Terminal,
    ) -> Result<Option<Self>, Failure> {
        let Some(longest) = longest else { return Ok(None) };
        if plan.thresholds.is_empty() && plan.cells.len() < 2 {
            return Err(Failure::Usage(
                "--until-decided: nothing is to be decided; it needs a threshold (--require \"call.mos >= 3.6\") \
                 or a sweep over transports"
                    .to_owned(),
            ));
        }
        Ok(Some(Self { longest, begun: Instant::now(), terminal }))
    }

    /// Returns the plan with more repetitions, or `None` if everything is decided or the time is over.
    pub(super) fn next_plan(&self, plan: &Plan, summary: &Summary) -> Result<Option<Plan>, Failure> {
        let Some(wanted) = wanted_repetitions(plan, summary) else { return Ok(None) };
        let affordable = affordable_repetitions(plan.repeat, self.begun.elapsed(), self.longest);
        let repeat = wanted.min(affordable).min(MAX_REPETITIONS);
        if repeat <= plan.repeat {
            self.terminal.note(&format!(
                "not decided after {} repetitions, and more do not fit into --until-decided {}",
                plan.repeat, self.longest
            ));
            return Ok(None);
        }
        load_changed(plan, with_repetitions(&plan.resolved, repeat)).map(Some)
    }
}

/// Returns how many repetitions to run in all before the next look. Returns `None` if everything is decided.
fn wanted_repetitions(plan: &Plan, summary: &Summary) -> Option<u64> {
    let ran = plan.repeat;
    let most = ran.saturating_mul(2);
    if plan.thresholds.is_empty() {
        return lacking(summary).repetitions.then_some(most);
    }
    let judged = thresholds::judge_at(plan, summary, Level::Early);
    let undecided = judged.iter().filter(|threshold| threshold.outcome == ThresholdOutcome::Undecided);
    let wanted = undecided.map(|threshold| needed_repetitions(threshold, ran).unwrap_or(most)).max()?;
    // A look after few repetitions more would hardly see anything else.
    Some(wanted.clamp(ran + ran.div_ceil(2), most))
}

/// Returns how many repetitions an undecided threshold needs in all. Returns `None` if that is not known.
fn needed_repetitions(threshold: &ThresholdSummary, ran: u64) -> Option<u64> {
    let of_messages = || {
        let messages = threshold.messages.filter(|messages| *messages > 0)?;
        Some(threshold.needed?.saturating_mul(ran).div_ceil(messages))
    };
    threshold.needed_repetitions.max(of_messages())
}

/// Returns how many repetitions fit into the `longest` time, if each takes as long as the `ran` ones took in
/// the mean.
fn affordable_repetitions(ran: u64, elapsed: StdDuration, longest: Duration) -> u64 {
    let each_s = elapsed.as_secs_f64() / ran.max(1) as f64;
    (longest.as_secs_f64() / each_s) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undecided(needed: Option<u64>, needed_repetitions: Option<u64>) -> ThresholdSummary {
        ThresholdSummary {
            figure: "call.loss_rate".to_owned(),
            bound: "<= 0.01".to_owned(),
            outcome: ThresholdOutcome::Undecided,
            statistic: None,
            found: None,
            flow: None,
            cell: String::new(),
            repetitions: 2,
            cells: 1,
            failing: 0,
            undecided: 1,
            messages: Some(200),
            interval: None,
            needed,
            needed_repetitions,
            text: String::new(),
        }
    }

    #[test]
    fn what_is_needed_is_counted_in_repetitions() {
        assert_eq!(needed_repetitions(&undecided(Some(3_000), None), 2), Some(30));
        assert_eq!(needed_repetitions(&undecided(Some(3_001), Some(12)), 2), Some(31));
        assert_eq!(needed_repetitions(&undecided(None, Some(12)), 2), Some(12));
        assert_eq!(needed_repetitions(&undecided(None, None), 2), None);
    }

    #[test]
    fn no_more_repetitions_are_begun_than_fit_into_the_longest_time() {
        let at =
            |elapsed_s| affordable_repetitions(5, StdDuration::from_secs(elapsed_s), Duration::from_secs(60));
        assert_eq!((at(10), at(50), at(60), at(100)), (30, 6, 5, 3));
    }
}
