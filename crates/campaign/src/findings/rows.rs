//! The rows of the tables: repetitions with the same key are one row.

use std::collections::BTreeMap;

use talkpath_study::median;

use super::record::Recorded;
use super::repetition::{PairKey, Repetition};
use super::tables::{DayRow, Estimate, HourRow, MatrixRow};

/// The repetitions of one row.
struct Group<'r, 'a> {
    repetitions: Vec<&'r Repetition<'a>>,
}

/// Groups repetitions by a key, in the order of the keys.
fn group_by<'r, 'a, K: Ord>(
    repetitions: &'r [Repetition<'a>],
    key: impl Fn(&'r Repetition<'a>) -> K,
) -> BTreeMap<K, Group<'r, 'a>> {
    let mut groups = BTreeMap::new();
    for repetition in repetitions {
        let group = groups.entry(key(repetition)).or_insert_with(|| Group { repetitions: Vec::new() });
        group.repetitions.push(repetition);
    }
    groups
}

impl Group<'_, '_> {
    /// Returns the median of a figure over the repetitions that have it.
    fn estimate(&self, figure: impl Fn(&Repetition<'_>) -> Option<f64>) -> Option<Estimate> {
        let values: Vec<f64> = self.repetitions.iter().filter_map(|repetition| figure(repetition)).collect();
        let median = median(&values)?;
        Some(Estimate { median: median.median, ci95: median.ci95, n: median.n })
    }

    fn is_round_trip(&self) -> bool {
        self.repetitions.iter().any(|repetition| repetition.is_round_trip())
    }

    fn sent(&self) -> u64 {
        self.repetitions.iter().map(|repetition| repetition.flow.sent).sum()
    }

    fn unfinished(&self) -> u64 {
        self.repetitions.iter().map(|repetition| repetition.flow.unfinished).sum()
    }

    /// Returns the share of the messages that were lost, over all repetitions. A message that was still on
    /// its way at the end of its repetition is neither lost nor delivered, so it does not count.
    fn loss_rate(&self) -> Option<f64> {
        let (mut lost, mut finished) = (0, 0);
        for Repetition { flow, .. } in &self.repetitions {
            lost += flow.lost;
            finished += flow.sent.saturating_sub(flow.unfinished);
        }
        (finished > 0).then(|| lost as f64 / finished as f64)
    }

    /// Returns why the clocks were not trusted in the last repetition in which they were not.
    fn clock_reason(&self) -> Option<String> {
        let untrusted = self.repetitions.iter().rev().find(|repetition| !repetition.clock.trusted)?;
        Some(untrusted.clock.why.clone())
    }
}

/// The number of measurements of a pair.
#[derive(Clone, Copy, Default)]
struct MeasurementCounts {
    made: u64,
    valid: u64,
    clock_trusted: u64,
}

/// Makes a row for each pair of hosts, measure and transport.
pub(super) fn matrix(repetitions: &[Repetition<'_>], records: &[Recorded<'_>]) -> Vec<MatrixRow> {
    let mut counts: BTreeMap<PairKey<'_>, MeasurementCounts> = BTreeMap::new();
    for record in records {
        let pair = counts.entry(PairKey::new(record.measurement)).or_default();
        pair.made += 1;
        pair.valid += u64::from(record.is_valid());
        pair.clock_trusted += u64::from(record.summary.clock.trusted);
    }
    let groups = group_by(repetitions, |repetition| (repetition.pair(), &repetition.transport));
    let mut rows = Vec::new();
    for ((pair, transport), group) in groups {
        let MeasurementCounts { made, valid, clock_trusted } = counts.get(&pair).copied().unwrap_or_default();
        rows.push(MatrixRow {
            near: pair.near.to_owned(),
            far: pair.far.to_owned(),
            measure: pair.measure.to_owned(),
            transport: transport.clone(),
            measurements: made,
            valid,
            clock_trusted,
            clock_why: group.clock_reason(),
            is_round_trip: group.is_round_trip(),
            delay_ms_p50: group.estimate(|repetition| repetition.delay_ms("p50")),
            delay_ms_p95: group.estimate(|repetition| repetition.delay_ms("p95")),
            loss_rate: group.loss_rate(),
            sent: group.sent(),
            unfinished: group.unfinished(),
            mos: group.estimate(|repetition| repetition.figure("call.mos")),
            in_time: group.estimate(|repetition| repetition.figure("in_time")),
            goodput_bps: group.estimate(|repetition| repetition.figure("goodput_bps")),
        });
    }
    rows
}

/// Makes a row for each pair of hosts, measure, day and transport.
pub(super) fn days(repetitions: &[Repetition<'_>]) -> Vec<DayRow> {
    let groups = group_by(repetitions, |repetition| {
        (repetition.pair(), repetition.measurement.day, &repetition.transport)
    });
    let mut rows = Vec::new();
    for ((pair, day, transport), group) in groups {
        rows.push(DayRow {
            near: pair.near.to_owned(),
            far: pair.far.to_owned(),
            measure: pair.measure.to_owned(),
            day,
            transport: transport.clone(),
            is_round_trip: group.is_round_trip(),
            delay_ms_p90: group.estimate(|repetition| repetition.delay_ms("p90")),
            delay_ms_p95: group.estimate(|repetition| repetition.delay_ms("p95")),
            ipdv_ms_p90: group.estimate(|repetition| repetition.figure("ipdv_ms.p90")),
            ipdv_ms_p95: group.estimate(|repetition| repetition.figure("ipdv_ms.p95")),
            loss_rate: group.loss_rate(),
        });
    }
    rows
}

/// The median delays of a pair and transport over the whole campaign.
struct UsualDelay {
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
}

/// The delays of a repetition, less the usual delays. They may be negative.
struct ExtraDelay {
    p50_ms: f64,
    p95_ms: f64,
}

impl UsualDelay {
    fn new(group: &Group<'_, '_>) -> Self {
        let usual =
            |statistic| group.estimate(|repetition| repetition.delay_ms(statistic)).map(|delay| delay.median);
        Self { p50_ms: usual("p50"), p95_ms: usual("p95") }
    }

    /// Returns `None` if a delay of the repetition is not known.
    fn extra_of(&self, repetition: &Repetition<'_>) -> Option<ExtraDelay> {
        Some(ExtraDelay {
            p50_ms: repetition.delay_ms("p50")? - self.p50_ms?,
            p95_ms: repetition.delay_ms("p95")? - self.p95_ms?,
        })
    }
}

/// Makes a row for each measure, transport and hour of the day. A row holds differences from the usual delay
/// of the pair, because the delays of two pairs differ more than the delays of two hours.
pub(super) fn hours(repetitions: &[Repetition<'_>]) -> Vec<HourRow> {
    let mut usual_delays = BTreeMap::new();
    for (key, group) in group_by(repetitions, |repetition| (repetition.pair(), &repetition.transport)) {
        usual_delays.insert(key, UsualDelay::new(&group));
    }
    let groups = group_by(repetitions, |repetition| {
        (&repetition.measurement.measure, &repetition.transport, repetition.planned_hour())
    });
    let mut rows = Vec::new();
    for ((measure, transport, hour), group) in groups {
        let extra = |repetition: &Repetition<'_>| {
            usual_delays.get(&(repetition.pair(), &repetition.transport))?.extra_of(repetition)
        };
        let extra_p50 = group.estimate(|repetition| Some(extra(repetition)?.p50_ms));
        let extra_p95 = group.estimate(|repetition| Some(extra(repetition)?.p95_ms));
        let (Some(more_delay_ms_p50), Some(more_delay_ms_p95)) = (extra_p50, extra_p95) else {
            // No repetition of this hour has a delay.
            continue;
        };
        rows.push(HourRow {
            measure: measure.clone(),
            transport: transport.clone(),
            hour,
            more_delay_ms_p50,
            more_delay_ms_p95,
            loss_rate: group.loss_rate(),
        });
    }
    rows
}
