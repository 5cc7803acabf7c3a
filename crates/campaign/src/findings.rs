//! The findings of a campaign: the tables of its report, computed from the summaries of its records.
//!
//! - A *measurement* is one run between two hosts at one planned time. It has several repetitions.
//! - A *measure* is the section of the campaign file that says what to run.
//! - A *repetition* counts as *disturbed* if a machine was too slow for it. The figures of a valid measurement
//!   come from its undisturbed repetitions.
//!
//! Every figure of a repetition is a figure of its summary. Here only medians over repetitions, their confidence
//! intervals and loss rates are computed (`rows.rs`). Begin to read with [`findings`].

mod repetition;
mod rows;

use serde::{Deserialize, Serialize};
use talkpath_measure::statistic::is_enough;
use talkpath_measure::summary::{RunSummary, Summary};
use talkpath_measure::warning::{reason, which_left_out};
use talkpath_units::{Duration, Instant, counted};

use crate::journal::Entry;
use crate::plan::{Measurement, Plan};
use crate::status::{Status, status};

use self::repetition::Repetition;
pub(crate) use self::repetition::{PairKey, main_flow, transport_name};

/// The content of the report: `talkpath campaign report --json` prints it, and the page shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The name of the campaign.
    pub name: String,
    /// The time zone of all local times.
    pub zone: String,
    /// The version of talkpath that made the report.
    pub talkpath: String,
    /// The names of the hosts, in the order of the file.
    pub hosts: Vec<String>,
    /// The number of measurements in the plan.
    pub planned: u64,
    /// The number of measurements with records.
    pub done: u64,
    /// The number of measurements that are due and not done. They run now, or may still be tried.
    pub open: u64,
    /// The number of measurements that are due later.
    pub later: u64,
    /// One row for each pair of hosts, measure and transport, over the whole campaign.
    pub matrix: Vec<MatrixRow>,
    /// One row for each pair of hosts, measure, day and transport.
    pub days: Vec<DayRow>,
    /// One row for each measure, transport and hour of the day.
    pub hours: Vec<HourRow>,
    /// The measurements that are not valid, because a machine disturbed more than half of their repetitions.
    /// Their figures may be figures of the machine and not of the network.
    pub not_valid: Vec<Missing>,
    /// The valid measurements with disturbed repetitions, which are left out. The reason says how many.
    pub left_out: Vec<Missing>,
    /// The measurements that were not made.
    pub missing: Vec<Missing>,
}

/// A median over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The middle value, or the mean of the two middle values.
    pub median: f64,
    /// The interval that contains the true median with a confidence of at least 95 %. It is `null` for fewer
    /// than 6 repetitions.
    pub ci95: Option<(f64, f64)>,
    /// The number of repetitions that have the figure.
    pub n: u64,
}

/// A pair of hosts over the whole campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in summary.json")]
pub struct MatrixRow {
    pub near: String,
    pub far: String,
    pub measure: String,
    pub transport: String,
    /// The number of measurements of the pair and measure, over all transports.
    pub measurements: u64,
    /// The number of these measurements that are valid.
    pub valid: u64,
    /// The number of these measurements whose clocks were accurate enough for one-way delays.
    pub clock_trusted: u64,
    /// The reason why the clocks were not trusted in the last repetition in which they were not.
    pub clock_why: Option<String>,
    /// Whether the delay is that of the round trip.
    pub is_round_trip: bool,
    pub delay_ms_p50: Option<Estimate>,
    pub delay_ms_p95: Option<Estimate>,
    /// The share of the messages of all repetitions that were lost. Unfinished messages do not count.
    pub loss_rate: Option<f64>,
    /// The number of messages that were sent.
    pub sent: u64,
    /// The number of messages that were still on their way at the end of their repetition. They count neither
    /// in the delay nor in the loss rate.
    pub unfinished: u64,
    pub mos: Option<Estimate>,
    pub in_time: Option<Estimate>,
    pub goodput_bps: Option<Estimate>,
}

/// A pair of hosts on one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in summary.json")]
pub struct DayRow {
    pub near: String,
    pub far: String,
    pub measure: String,
    /// The day of the campaign, from 1.
    pub day: u64,
    pub transport: String,
    pub is_round_trip: bool,
    pub delay_ms_p90: Option<Estimate>,
    pub delay_ms_p95: Option<Estimate>,
    /// The difference of consecutive delays (RFC 3393, without its sign).
    pub ipdv_ms_p90: Option<Estimate>,
    pub ipdv_ms_p95: Option<Estimate>,
    pub loss_rate: Option<f64>,
}

/// One hour of the day, over all pairs and days.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in summary.json")]
pub struct HourRow {
    pub measure: String,
    pub transport: String,
    /// The hour by the clocks of the time zone of the campaign, 0 to 23.
    pub hour: u64,
    /// The median delay of a repetition, less the usual median delay of its pair and transport.
    pub more_delay_ms_p50: Estimate,
    /// The same difference of the 95th percentiles.
    pub more_delay_ms_p95: Estimate,
    pub loss_rate: Option<f64>,
}

/// A measurement whose figures are missing in the tables, at least in part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// The measurement.
    pub measurement: Measurement,
    /// The reason, in words for a person.
    pub why: String,
}

/// A measurement with the summary of its records.
#[derive(Clone, Debug)]
pub struct Recorded<'a> {
    /// The measurement.
    pub measurement: &'a Measurement,
    /// The content of its `summary.json`.
    pub summary: &'a Summary,
}

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
    }
}

impl<'a> Recorded<'a> {
    /// Whether a machine disturbed this repetition past its stated limits.
    pub(crate) fn is_disturbed(&self, run: &RunSummary) -> bool {
        // An older summary has no validity for each repetition, but one for all of them.
        let is_valid = run.machine.as_ref().and_then(|machine| machine.valid);
        !is_valid.unwrap_or(self.summary.valid)
    }

    fn repetition_count(&self) -> u64 {
        self.summary.runs.len() as u64
    }

    fn disturbed_count(&self) -> u64 {
        self.summary.runs.iter().filter(|run| self.is_disturbed(run)).count() as u64
    }

    /// Whether enough repetitions are undisturbed, by the same rule as for a cell of a study.
    fn is_valid(&self) -> bool {
        is_enough(self.repetition_count() - self.disturbed_count(), self.repetition_count())
    }

    /// The repetitions from which figures are computed. These are the undisturbed repetitions of a valid
    /// measurement, and all repetitions of another.
    fn judged_runs(&self) -> impl Iterator<Item = &'a RunSummary> {
        let is_valid = self.is_valid();
        self.summary.runs.iter().filter(move |run| !is_valid || !self.is_disturbed(run))
    }

    /// Says that the measurement is not valid, and why. Returns `None` if it is valid.
    fn not_valid(&self) -> Option<Missing> {
        if self.is_valid() {
            return None;
        }
        Some(Missing { measurement: self.measurement.clone(), why: self.first_reason().to_owned() })
    }

    /// Says how many repetitions of a valid measurement are left out, and why. Returns `None` if none is.
    fn left_out(&self) -> Option<Missing> {
        let disturbed = self.disturbed_count();
        if disturbed == 0 || !self.is_valid() {
            return None;
        }
        let repetitions = counted(self.repetition_count(), "repetition");
        let why = format!("{disturbed} of {repetitions}: {}", self.first_reason());
        Some(Missing { measurement: self.measurement.clone(), why })
    }

    /// The first warning that says how a machine disturbed the measurement.
    fn first_reason(&self) -> &'a str {
        let warnings: &'a [String] = &self.summary.warnings;
        let first_invalid = warnings.iter().find_map(|warning| reason(warning));
        let first_left_out = || warnings.iter().find_map(|warning| which_left_out(warning));
        first_invalid.or_else(first_left_out).unwrap_or("summary.json does not say why")
    }
}
