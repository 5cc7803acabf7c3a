//! Says what is implausible in a table of values over time: rows that are missing, and units that are
//! probably others.

use talkpath_units::{Duration, Rate, counted, is_or_are};

use crate::change::LinkValues;
use crate::config::RateModel;

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

/// Says that the rows come in steps which no log has. `None` if they do not.
pub(super) fn implausible_steps(rows: &[(Duration, LinkValues)]) -> Option<String> {
    let step = regular_step(rows)?;
    (!USUAL_STEPS.contains(&step.as_nanos()))
        .then(|| format!("a row comes every {step}, which no log has: is the unit of the times right?"))
}

/// We chose 1 ms, a slot of LTE, to 1 h.
const USUAL_STEPS: core::ops::RangeInclusive<u64> = 1_000_000..=3_600_000_000_000;

/// Says that the rates are probably in another unit. `unit` is that of the column in bit/s. `None` if they
/// are plausible.
pub(super) fn implausible_rates(rows: &[(Duration, LinkValues)], unit: f64) -> Option<String> {
    let rates = rows.iter().filter_map(|(_, values)| match values.rate {
        Some(RateModel::Fixed(rate)) => Some(rate.as_bps()),
        _ => None,
    });
    let largest = rates.max().filter(|largest| *largest > 0)?;
    let others: [(&str, f64); 3] = [("rate_mbps", 1e6), ("rate_kbps", 1e3), ("rate_bps", 1.0)];
    let written = |bps: f64| match bps {
        1e9.. => format!("{} Gb/s", bps / 1e9),
        1e6.. => format!("{} Mb/s", bps / 1e6),
        _ => format!("{} kb/s", bps / 1e3),
    };
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
    None
}

const FASTEST: Rate = Rate::from_bps(20_000_000_000);
/// We chose 1 kb/s, below which no modem is.
const SLOWEST: Rate = Rate::from_bps(1_000);
/// We chose what access lines have as the rates that are proposed.
const PLAUSIBLE_BPS: core::ops::RangeInclusive<f64> = 1e4..=2e10;
