//! The tables of a campaign's report, from the summaries of its records.
//!
//! Every figure is one of a repetition's summary, so all come from the analysis of any run. What is computed
//! here is the median over repetitions with the confidence interval of `study`. "Delay" is that of the round
//! trip if the far host sends back what comes, else one way; one way it is absent where the clocks are not
//! trusted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use talkpath_measure::figures::FLOW;
use talkpath_measure::statistic::is_enough;
use talkpath_measure::summary::{FlowSummary, RunSummary, Summary};
use talkpath_measure::warning::{reason, which_left_out};
use talkpath_study::median;
use talkpath_units::{Duration, Instant, counted};

use crate::journal::Entry;
use crate::plan::{Measurement, Plan};
use crate::status::{Status, status};

/// What `talkpath campaign report --json` prints, and the page shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The campaign's name.
    pub name: String,
    /// The time zone of all local times.
    pub zone: String,
    /// The version of talkpath that wrote it.
    pub talkpath: String,
    /// Hosts in the order of the file.
    pub hosts: Vec<String>,
    /// Measurements in the plan.
    pub planned: u64,
    /// Measurements that are in the records.
    pub done: u64,
    /// Measurements due by now: at work, or still to be tried.
    pub open: u64,
    /// Measurements not due yet.
    pub later: u64,
    /// One row a pair, measure and transport, over the whole campaign.
    pub matrix: Vec<MatrixRow>,
    /// One row a pair, measure, day and transport.
    pub days: Vec<DayRow>,
    /// One row a measure, transport and hour of the day.
    pub hours: Vec<HourRow>,
    /// What was measured and is not valid, since a machine disturbed more than half of its repetitions: the
    /// figures may be the machines', not the network's.
    pub not_valid: Vec<Missing>,
    /// Valid measurements with repetitions left out, because a machine disturbed them, with how many and the
    /// first reason.
    pub left_out: Vec<Missing>,
    /// What was not measured.
    pub missing: Vec<Missing>,
}

/// A median over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// At least 95 % confidence; `None` below 6 repetitions.
    pub ci95: Option<(f64, f64)>,
    /// Repetitions that have the figure.
    pub n: u64,
}

/// Two hosts over the whole campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in summary.json")]
pub struct MatrixRow {
    pub near: String,
    pub far: String,
    pub measure: String,
    pub transport: String,
    /// Measurements.
    pub measurements: u64,
    /// Measurements that are valid.
    pub valid: u64,
    /// Of these, with clocks by which one-way figures are shown.
    pub clock_trusted: u64,
    /// Why not, of the last one that was not.
    pub clock_why: Option<String>,
    /// Whether delay is that of the round trip.
    pub is_round_trip: bool,
    pub delay_ms_p50: Option<Estimate>,
    pub delay_ms_p95: Option<Estimate>,
    /// Of all messages of all repetitions, without those that were unfinished.
    pub loss_rate: Option<f64>,
    /// Messages that were sent.
    pub sent: u64,
    /// Of these, still on their way at the end of their repetition: neither in delay nor in loss.
    pub unfinished: u64,
    pub mos: Option<Estimate>,
    pub in_time: Option<Estimate>,
    pub goodput_bps: Option<Estimate>,
}

/// Two hosts on one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in summary.json")]
pub struct DayRow {
    pub near: String,
    pub far: String,
    pub measure: String,
    pub day: u64,
    pub transport: String,
    pub is_round_trip: bool,
    pub delay_ms_p90: Option<Estimate>,
    pub delay_ms_p95: Option<Estimate>,
    /// Difference of consecutive delays (RFC 3393, unsigned).
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
    /// By the clocks of the campaign's zone, 0 to 23.
    pub hour: u64,
    /// How much more the median delay of a repetition was than the median of its pair and transport.
    pub more_delay_ms_p50: Estimate,
    /// The same of the 95th percentile.
    pub more_delay_ms_p95: Estimate,
    pub loss_rate: Option<f64>,
}

/// A measurement without records, or with such as are not valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// Which.
    pub measurement: Measurement,
    /// In words for a person.
    pub why: String,
}

/// A measurement and its summary.
#[derive(Clone, Debug)]
pub struct Recorded<'a> {
    /// Which.
    pub measurement: &'a Measurement,
    /// `summary.json` of its records.
    pub summary: &'a Summary,
}

impl<'a> Recorded<'a> {
    /// Whether a machine disturbed this repetition past its stated limits.
    pub(crate) fn is_disturbed(&self, run: &RunSummary) -> bool {
        // A file that does not say it of each repetition says it of all.
        let is_valid = run.machine.as_ref().and_then(|machine| machine.valid);
        !is_valid.unwrap_or(self.summary.valid)
    }

    fn all(&self) -> u64 {
        self.summary.runs.len() as u64
    }

    fn disturbed(&self) -> u64 {
        self.summary.runs.iter().filter(|run| self.is_disturbed(run)).count() as u64
    }

    /// Whether enough of its repetitions are undisturbed, as of a study's cell.
    fn is_valid(&self) -> bool {
        is_enough(self.all() - self.disturbed(), self.all())
    }

    /// The repetitions that figures are made of: if it is valid, those that are undisturbed.
    fn judged(&self) -> impl Iterator<Item = &'a RunSummary> {
        let is_valid = self.is_valid();
        self.summary.runs.iter().filter(move |run| !(is_valid && self.is_disturbed(run)))
    }

    /// What a machine did to it, the first reason.
    fn reason(&self) -> &'a str {
        let warnings: &'a [String] = &self.summary.warnings;
        let mut reasons = warnings.iter().filter_map(|it| reason(it));
        let left_out = || warnings.iter().find_map(|it| which_left_out(it));
        reasons.next().or_else(left_out).unwrap_or("summary.json does not say why")
    }

    fn with_reason(&self, why: String) -> Missing {
        Missing { measurement: self.measurement.clone(), why }
    }
}

/// One repetition of one transport.
struct Seen<'a> {
    of: &'a Measurement,
    transport: String,
    flow: &'a FlowSummary,
    is_trusted: bool,
    clock_why: &'a str,
}

/// The tables, from what was measured; `entries` say why the rest was not.
pub fn findings(
    plan: &Plan,
    measured: &[Recorded<'_>],
    entries: &[Entry],
    now: Instant,
    version: &str,
) -> Findings {
    let seen: Vec<Seen<'_>> = measured.iter().flat_map(repetitions).collect();
    let Status { missing, later, .. } = status(plan, entries, Duration::ZERO, now);
    let (planned, done) = (plan.measurements.len() as u64, measured.len() as u64);
    Findings {
        name: plan.name.clone(),
        zone: plan.zone.clone(),
        talkpath: version.to_owned(),
        hosts: plan.hosts.clone(),
        planned,
        done,
        open: planned.saturating_sub(done + missing.len() as u64 + later),
        later,
        matrix: matrix(&seen, measured),
        days: by_day(&seen),
        hours: hours(&seen),
        not_valid: measured.iter().filter_map(not_valid).collect(),
        left_out: measured.iter().filter_map(left_out).collect(),
        missing: missing.into_iter().map(|it| Missing { measurement: it.measurement, why: it.why }).collect(),
    }
}

fn not_valid(measured: &Recorded<'_>) -> Option<Missing> {
    (!measured.is_valid()).then(|| measured.with_reason(measured.reason().to_owned()))
}

fn left_out(measured: &Recorded<'_>) -> Option<Missing> {
    let (some, all) = (measured.disturbed(), measured.all());
    let why = || format!("{some} of {}: {}", counted(all, "repetition"), measured.reason());
    (some > 0 && measured.is_valid()).then(|| measured.with_reason(why()))
}

fn repetitions<'a>(measured: &Recorded<'a>) -> Vec<Seen<'a>> {
    let Recorded { measurement, summary } = *measured;
    let one = |run: &'a RunSummary| {
        let name = main_flow(run)?;
        let flow = run.flows.get(name)?;
        Some(Seen {
            of: measurement,
            transport: transport(run, name, flow),
            flow,
            is_trusted: summary.clock.trusted,
            clock_why: &summary.clock.why,
        })
    };
    measured.judged().filter_map(one).collect()
}

/// The flow that the run is about: whose transport is swept, else the first call, else the first.
pub(crate) fn main_flow(run: &RunSummary) -> Option<&str> {
    let swept = run.sweep.keys().find_map(|key| key.strip_prefix("flow.")?.strip_suffix(".transport"));
    let swept = swept.and_then(|name| run.flows.keys().find(|flow| *flow == name));
    let call = || run.flows.iter().find(|(_, flow)| flow.call.is_some()).map(|(name, _)| name);
    swept.or_else(call).or_else(|| run.flows.keys().next()).map(String::as_str)
}

/// As the scenario has it.
pub(crate) fn transport(run: &RunSummary, name: &str, flow: &FlowSummary) -> String {
    match run.sweep.get(&format!("flow.{name}.transport")) {
        Some(Value::String(word)) => word.clone(),
        Some(Value::Object(keys)) => {
            let words =
                keys.values().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            words.collect::<Vec<_>>().join(" ")
        }
        _ => flow.transport.clone(),
    }
}

impl Seen<'_> {
    /// The figure at this path of summary.json; `None` if it is not known.
    fn figure(&self, path: &str) -> Option<f64> {
        FLOW.row(path).number(self.flow)
    }

    /// A statistic of the delay, such as `p90`: of the round trip, or one way of a flow without an echo. An
    /// echo flow without any echo has none: its one-way delay would not be comparable with round trips.
    fn delay_ms(&self, statistic: &str) -> Option<f64> {
        let delay = if self.is_round_trip() { "round_trip_delay_ms" } else { "one_way_delay_ms" };
        self.figure(&format!("{delay}.{statistic}"))
    }

    /// Whether the far host sends back what comes.
    fn is_round_trip(&self) -> bool {
        self.flow.lost_return.is_some() || self.flow.round_trip_delay_ms.is_some()
    }

    fn ends(&self) -> (&str, &str, &str) {
        (&self.of.near, &self.of.far, &self.of.measure)
    }
}

/// `seen` in groups of one `key`, in the order of the keys.
fn groups<'s, 'a, K: Ord>(
    seen: &'s [Seen<'a>],
    key: impl Fn(&'s Seen<'a>) -> K,
) -> BTreeMap<K, Vec<&'s Seen<'a>>> {
    let mut groups: BTreeMap<K, Vec<_>> = BTreeMap::new();
    for one in seen {
        groups.entry(key(one)).or_default().push(one);
    }
    groups
}

fn estimate(values: impl Iterator<Item = f64>) -> Option<Estimate> {
    let values: Vec<f64> = values.collect();
    median(&values).map(|it| Estimate { median: it.median, ci95: it.ci95, n: it.n })
}

fn of<'s, 'a: 's>(
    group: &'s [&'s Seen<'a>],
    figure: impl Fn(&Seen<'a>) -> Option<f64> + 's,
) -> Option<Estimate> {
    estimate(group.iter().filter_map(|one| figure(one)))
}

/// Lost of sent, over all repetitions of a group.
fn loss_rate(group: &[&Seen<'_>]) -> Option<f64> {
    let (lost, sent) = group.iter().fold((0, 0), |(lost, sent), one| {
        (lost + one.flow.lost, sent + one.flow.sent.saturating_sub(one.flow.unfinished))
    });
    (sent > 0).then(|| lost as f64 / sent as f64)
}

fn matrix(seen: &[Seen<'_>], measured: &[Recorded<'_>]) -> Vec<MatrixRow> {
    let mut counts: BTreeMap<Ends<'_>, (u64, u64, u64)> = BTreeMap::new();
    for it in measured {
        let of = it.measurement;
        let (all, valid, trusted) = counts.entry((&of.near, &of.far, &of.measure)).or_default();
        *all += 1;
        *valid += u64::from(it.is_valid());
        *trusted += u64::from(it.summary.clock.trusted);
    }
    let row = |((ends, transport), group): ((Ends<'_>, &String), Vec<&Seen<'_>>)| {
        let (near, far, measure) = ends;
        let (measurements, valid, clock_trusted) = counts.get(&ends).copied().unwrap_or_default();
        let untrusted = group.iter().rev().find(|one| !one.is_trusted);
        MatrixRow {
            near: near.to_owned(),
            far: far.to_owned(),
            measure: measure.to_owned(),
            transport: transport.clone(),
            measurements,
            valid,
            clock_trusted,
            clock_why: untrusted.map(|one| one.clock_why.to_owned()),
            is_round_trip: group.iter().any(|one| one.is_round_trip()),
            delay_ms_p50: of(&group, |one| one.delay_ms("p50")),
            delay_ms_p95: of(&group, |one| one.delay_ms("p95")),
            loss_rate: loss_rate(&group),
            sent: group.iter().map(|one| one.flow.sent).sum(),
            unfinished: group.iter().map(|one| one.flow.unfinished).sum(),
            mos: of(&group, |one| one.figure("call.mos")),
            in_time: of(&group, |one| one.figure("in_time")),
            goodput_bps: of(&group, |one| one.figure("goodput_bps")),
        }
    };
    groups(seen, |one| (one.ends(), &one.transport)).into_iter().map(row).collect()
}

fn by_day(seen: &[Seen<'_>]) -> Vec<DayRow> {
    let row = |(((near, far, measure), day, transport), group): (_, Vec<&Seen<'_>>)| {
        let (near, far, measure): (&str, &str, &str) = (near, far, measure);
        let transport: &String = transport;
        DayRow {
            near: near.to_owned(),
            far: far.to_owned(),
            measure: measure.to_owned(),
            day,
            transport: transport.clone(),
            is_round_trip: group.iter().any(|one| one.is_round_trip()),
            delay_ms_p90: of(&group, |one| one.delay_ms("p90")),
            delay_ms_p95: of(&group, |one| one.delay_ms("p95")),
            ipdv_ms_p90: of(&group, |one| one.figure("ipdv_ms.p90")),
            ipdv_ms_p95: of(&group, |one| one.figure("ipdv_ms.p95")),
            loss_rate: loss_rate(&group),
        }
    };
    groups(seen, |one| (one.ends(), one.of.day, &one.transport)).into_iter().map(row).collect()
}

/// Pairs differ more than hours do: each repetition is held against the median of its own pair.
fn hours(seen: &[Seen<'_>]) -> Vec<HourRow> {
    let usual: BTreeMap<_, _> = groups(seen, |one| (one.ends(), &one.transport))
        .into_iter()
        .map(|(key, group)| {
            let p50 = of(&group, |one| one.delay_ms("p50")).map(|it| it.median);
            let p95 = of(&group, |one| one.delay_ms("p95")).map(|it| it.median);
            (key, (p50, p95))
        })
        .collect();
    let row = |((measure, transport, hour), group): ((&String, &String, u64), Vec<&Seen<'_>>)| {
        let more = |one: &Seen<'_>| {
            let (p50, p95) = usual.get(&(one.ends(), &one.transport))?;
            Some((one.delay_ms("p50")? - (*p50)?, one.delay_ms("p95")? - (*p95)?))
        };
        Some(HourRow {
            measure: measure.clone(),
            transport: transport.clone(),
            hour,
            more_delay_ms_p50: of(&group, |one| more(one).map(|it| it.0))?,
            more_delay_ms_p95: of(&group, |one| more(one).map(|it| it.1))?,
            loss_rate: loss_rate(&group),
        })
    };
    groups(seen, |one| (&one.of.measure, &one.transport, hour(&one.of.local)))
        .into_iter()
        .filter_map(row)
        .collect()
}

/// Of `2026-12-01 06:00:00`.
fn hour(local: &str) -> u64 {
    local.split([' ', ':']).nth(1).and_then(|hour| hour.parse().ok()).unwrap_or(0)
}

type Ends<'s> = (&'s str, &'s str, &'s str);
