//! The tables of the report. The names of the fields are the keys of `campaign report --json`.

use serde::{Deserialize, Serialize};
use talkpath_measure::summary::ThresholdSummary;

use crate::plan::Measurement;

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
    /// The thresholds of each measure for each pair, over all its valid measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<PairThresholds>,
}

/// The thresholds of a measure, judged over the measurements of a pair of hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairThresholds {
    /// The name of the measure.
    pub measure: String,
    /// The host that starts the measurements.
    pub near: String,
    /// The host that the near host measures to.
    pub far: String,
    /// The outcome of each threshold. Its repetitions are those of all measurements.
    pub thresholds: Vec<ThresholdSummary>,
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
