//! The findings of a campaign: the tables of its report, computed from the summaries of its records.
//!
//! - A *measurement* is one run between two hosts at one planned time. It has several repetitions.
//! - A *measure* is the section of the campaign file that says what to run.
//! - A *repetition* counts as *disturbed* if a machine was too slow for it. The figures of a valid
//!   measurement come from its undisturbed repetitions.
//!
//! Every figure of a repetition is a figure of its summary. Here only medians over repetitions, their
//! confidence intervals and loss rates are computed (`rows.rs`). Begin to read with [`findings`].

mod record;
mod repetition;
mod rows;
mod tables;

use talkpath_units::{Duration, Instant};

use crate::journal::Entry;
use crate::plan::Plan;
use crate::status::{Status, status};

pub use self::record::Recorded;
use self::repetition::Repetition;
pub(crate) use self::repetition::{PairKey, main_flow, transport_name};
pub use self::tables::{DayRow, Estimate, Findings, HourRow, MatrixRow, Missing, PairThresholds};

/// Computes the findings of the campaign at `now`. `records` holds the measurements that were made. The
/// `entries` of the journal say why the others were not. `version` is the version of talkpath.
pub fn findings(
    plan: &Plan,
    records: &[Recorded<'_>],
    entries: &[Entry],
    now: Instant,
    version: &str,
) -> Findings {
    let repetitions: Vec<Repetition<'_>> = records.iter().flat_map(Repetition::list).collect();
    let Status { missing, later, .. } = status(plan, entries, Duration::ZERO, now);
    let (planned, done) = (plan.measurements.len() as u64, records.len() as u64);
    let not_made = missing.len() as u64;
    Findings {
        name: plan.name.clone(),
        zone: plan.zone.clone(),
        talkpath: version.to_owned(),
        hosts: plan.hosts.clone(),
        planned,
        done,
        open: planned.saturating_sub(done + not_made + later),
        later,
        matrix: rows::matrix(&repetitions, records),
        days: rows::days(&repetitions),
        hours: rows::hours(&repetitions),
        not_valid: records.iter().filter_map(Recorded::not_valid).collect(),
        left_out: records.iter().filter_map(Recorded::left_out).collect(),
        missing: missing
            .into_iter()
            .map(|failing| Missing { measurement: failing.measurement, why: failing.why })
            .collect(),
        // Whoever knows the scenarios of the measures judges them.
        thresholds: Vec::new(),
    }
}
