//! Says what is implausible in a table of values over time: rows that are missing, and units that are
//! probably others.

use talkpath_units::{Duration, Rate, counted, is_or_are};

use super::clock::TimeColumn;
use crate::change::LinkValues;
use crate::config::{LossModel, RateModel};

/// A pause of the rows that is longer than their usual step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    from: Duration,
    length: Duration,
    missing_rows: u64,
}

/// Says which rows are missing. `None` if none is, or if the rows have no regular step.
pub(super) fn missing_rows(rows: &[(Duration, LinkValues)]) -> Option<String> {
    let step = regular_step(rows)?;
    let steps = rows.windows(2).map(|pair| (pair[0].0, pair[1].0.saturating_sub(pair[0].0)));
    let gaps: Vec<Gap> = steps
        .filter(|(_, length)| length.as_nanos() * 2 > step.as_nanos() * 3)
        .map(|(from, length)| {
            let missing_rows = (length.as_nanos() + step.as_nanos() / 2) / step.as_nanos() - 1;
            Gap { from, length, missing_rows }
        })
        .collect();
    let longest = gaps.iter().rev().max_by_key(|gap| gap.length)?;
    let missing: u64 = gaps.iter().map(|gap| gap.missing_rows).sum();
    Some(format!(
        "{} {} missing in {} (a row comes every {step}); the longest is {} from {} on. The values of the row before hold; \
         where nothing was delivered write a row with the rate 0",
        counted(missing, "row"),
        is_or_are(missing),
        counted(gaps.len() as u64, "gap"),
        longest.length,
        longest.from
    ))
}

/// The step from row to row, if nine of ten steps are the same within a tenth. We chose these shares, and at
/// least 8 rows: a table of changes has rows where values change, and nothing is missing in it.
fn regular_step(rows: &[(Duration, LinkValues)]) -> Option<Duration> {
    let mut steps: Vec<u64> =
        rows.windows(2).map(|pair| pair[1].0.as_nanos() - pair[0].0.as_nanos()).collect();
    if steps.len() + 1 < 8 {
        return None;
    }
    steps.sort_unstable();
    let usual = steps[steps.len() / 2];
    let is_usual = |step: &&u64| step.abs_diff(usual) <= usual / 10;
    let usual_steps = steps.iter().filter(is_usual).count();
    (usual > 0 && usual_steps * 10 >= steps.len() * 9).then(|| Duration::from_nanos(usual))
}

/// Says that rows have the time of the row before. `None` if none has.
pub(super) fn times_twice(rows: &[(Duration, LinkValues)]) -> Option<String> {
    let mut twice = rows.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].0);
    let first = twice.next()?;
    let count = 1 + twice.count() as u64;
    let has = if count == 1 { "has" } else { "have" };
    Some(format!(
        "{} {has} the time of the row before, first at {first}: of two rows the later one holds",
        counted(count, "row")
    ))
}

/// Says that no log has rows in these steps. `None` if logs have. `times` is the column of times.
pub(super) fn implausible_steps(rows: &[(Duration, LinkValues)], times: TimeColumn) -> Option<String> {
    let step = regular_step(rows)?;
    if !USUAL_STEPS.contains(&step.as_nanos()) {
        return Some(format!("a row comes every {step}, which no log has: is the unit of the times right?"));
    }
    let TimeColumn::Number(unit) = times else { return None };
    let ends = rows.last()?.0;
    let is_short = unit < 1e9 && ends < SHORT && step.as_nanos() as f64 <= unit * 10.0;
    is_short.then(|| {
        let seconds = |time: Duration| time.as_nanos() as f64 / unit;
        format!(
            "a row comes every {step}, and the last one at {ends}: is the unit of the times right? In time_s that is {} s and {} s",
            seconds(step),
            seconds(ends)
        )
    })
}

/// We chose 10 s. A log with a row a second that is read as milliseconds is shorter, if it has less than 2 h
/// 46 min.
const SHORT: Duration = Duration::from_secs(10);

/// In nanoseconds. We chose 1 ms, a subframe of LTE, to 1 h.
const USUAL_STEPS: core::ops::RangeInclusive<u64> = 1_000_000..=3_600_000_000_000;

/// Says that the rates are probably in another unit. `unit` is that of the column in bit/s. `None` if they
/// are plausible.
pub(super) fn implausible_rates(rows: &[(Duration, LinkValues)], unit: f64) -> Option<String> {
    let largest = rates(rows).max().filter(|largest| *largest > 0)?;
    let others: [(&str, f64); 3] = [("rate_mbps", 1e6), ("rate_kbps", 1e3), ("rate_bps", 1.0)];
    let proposal = |is_right: &dyn Fn(f64) -> bool| {
        let in_unit = |other: f64| largest as f64 / unit * other;
        let mut fitting = others.into_iter();
        let found = fitting.find(|(_, other)| is_right(*other) && PLAUSIBLE_BPS.contains(&in_unit(*other)));
        found.map_or_else(String::new, |(name, other)| {
            format!(" In that of {name} it is {}", written(in_unit(other)))
        })
    };
    let largest_written = written(largest as f64);
    if Rate::from_bps(largest) > FASTEST {
        let proposal = proposal(&|other| other < unit);
        return Some(format!(
            "the largest rate is {largest_written}, above the {} of 5G's fastest downlink (ITU-R M.2410-0 §4.1): is the unit right?{proposal}",
            written(FASTEST.as_bps() as f64)
        ));
    }
    if Rate::from_bps(largest) < SLOWEST {
        let proposal = proposal(&|other| other > unit);
        return Some(format!(
            "the largest rate is {largest} b/s, slower than any modem: is the unit right?{proposal}"
        ));
    }
    // A log in kb/s has numbers above 1000 on any line of today.
    let mean = mean_rate(rows)?;
    (unit == 1e3 && mean < SLOW_MEAN && regular_step(rows).is_some()).then(|| {
        format!(
            "the mean rate is {}: is the unit right? In that of rate_mbps it is {}",
            written(mean.round()),
            written((mean * 1e3).round())
        )
    })
}

/// Says that one direction is much faster than the other. `None` if it is not.
pub(super) fn unequal_directions(
    up: &[(Duration, LinkValues)],
    down: &[(Duration, LinkValues)],
) -> Option<String> {
    let (up, down) = (mean_rate(up)?, mean_rate(down)?);
    (up > 0.0 && down > 0.0 && (down / up >= MOST_DOWN || up / down >= MOST_UP)).then(|| {
        format!(
            "the mean rate is {} up and {} down, which no access line has: are the units of both columns right?",
            written(up.round()),
            written(down.round())
        )
    })
}

/// Says that the delays are probably in another unit. `unit` is that of the column in nanoseconds, and `name`
/// the column's name without its unit. `None` if the delays are plausible.
pub(super) fn implausible_delays(rows: &[(Duration, LinkValues)], unit: f64, name: &str) -> Option<String> {
    let largest = rows.iter().filter_map(|(_, values)| values.delay).max()?;
    if largest.is_zero() || USUAL_DELAYS.contains(&(largest.as_nanos() as f64)) {
        return None;
    }
    let in_unit = |other: f64| largest.as_nanos() as f64 / unit * other;
    let others = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
    let (other, nanos) = others.into_iter().find(|(_, other)| USUAL_DELAYS.contains(&in_unit(*other)))?;
    Some(format!(
        "the largest delay is {largest}: is the unit right? In that of {name}_{other} it is {}",
        Duration::from_nanos(in_unit(nanos).round() as u64)
    ))
}

/// Says that shares of loss are probably per cent. `None` if they are plausible.
pub(super) fn implausible_losses(rows: &[(Duration, LinkValues)]) -> Option<String> {
    let losses = || rows.iter().filter_map(|(_, values)| values.loss.as_ref().map(LossModel::mean));
    let least = losses().filter(|loss| *loss > 0.0).reduce(f64::min)?;
    let mean = losses().sum::<f64>() / losses().count() as f64;
    // All packets of a row may be lost in an outage.
    let is_high = mean >= HIGH_LOSS || (HIGH_LOSS..1.0).contains(&least);
    is_high.then(|| {
        let percent = |share: f64| (share * 1e4).round() / 100.0;
        format!(
            "the loss is {} % in the mean, and {} % or more where there is some: `loss` has shares from 0 to 1, and `loss_percent` per cent",
            percent(mean),
            percent(least)
        )
    })
}

/// The rates of rows in bit/s.
fn rates(rows: &[(Duration, LinkValues)]) -> impl Iterator<Item = u64> {
    rows.iter().filter_map(|(_, values)| match values.rate {
        Some(RateModel::Fixed(rate)) => Some(rate.as_bps()),
        _ => None,
    })
}

/// The mean of the rows in bit/s. `None` if no row has a rate.
fn mean_rate(rows: &[(Duration, LinkValues)]) -> Option<f64> {
    let count = rates(rows).count();
    (count > 0).then(|| rates(rows).map(|rate| rate as f64).sum::<f64>() / count as f64)
}

fn written(bps: f64) -> String {
    match bps {
        1e9.. => format!("{} Gb/s", bps / 1e9),
        1e6.. => format!("{} Mb/s", bps / 1e6),
        _ => format!("{} kb/s", bps / 1e3),
    }
}

/// In bit/s. We chose 1 Mb/s, which 3G has.
const SLOW_MEAN: f64 = 1e6;
/// We chose 300, because cable has 1000 Mb/s down and 20 up, and a wrong unit is a factor of 1000; and 30 the
/// other way, because no line that is sold is faster up than down.
const MOST_DOWN: f64 = 300.0;
const MOST_UP: f64 = 30.0;
/// We chose 1 ms to 10 s, in nanoseconds: a path between two sites is longer, and no queue holds packets as
/// long.
const USUAL_DELAYS: core::ops::RangeInclusive<f64> = 1e6..=1e10;
/// We chose 25 %, with which no call is of use.
const HIGH_LOSS: f64 = 0.25;

/// The peak downlink rate that 5G has to reach (ITU-R M.2410-0 §4.1).
const FASTEST: Rate = Rate::from_bps(20_000_000_000);
/// We chose 1 kb/s, below which no modem is.
const SLOWEST: Rate = Rate::from_bps(1_000);
/// The rates in bit/s that a proposal may have. We chose those of access lines.
const PLAUSIBLE_BPS: core::ops::RangeInclusive<f64> = 1e4..=2e10;
