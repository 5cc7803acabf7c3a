//! The metrics of a study.
//!
//! A *metric* is a number that a study reads of each run. Its name is one of these:
//!
//! - a *path* into the run's summary, such as `flows.call.loss_rate`;
//! - the name of a *derived* metric, which the study computes from other metrics ([`Derived`]).

mod path;
mod unknown;

use std::collections::BTreeMap;

use serde_json::Value as Json;
use talkpath_measure::figures::Unit;

use crate::over_time::{OverTime, TimeFigure};

pub(crate) use self::path::figure_at;
pub(crate) use self::unknown::unknown_metric;

/// A metric that the study computes in each repetition. Its parts are paths or the names of other derived
/// metrics. `*` in a path matches any part of a name, so that one path can name all copies of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Derived {
    /// The first metric divided by the second.
    Ratio(String, String),
    /// The first metric less the second.
    Difference(String, String),
    /// A metric multiplied by a factor.
    Scaled(String, f64),
    /// The sum of all metrics that the paths name.
    Sum(Vec<String>),
    /// The mean of all metrics that the paths name.
    Mean(Vec<String>),
    /// The share of the metrics whose value lies above a bound.
    Share {
        /// The paths of the metrics.
        paths: Vec<String>,
        /// The bound, in the unit of the metrics.
        above: f64,
    },
    /// A figure of the series of the repetition.
    OverTime(OverTime),
}

impl Derived {
    /// The metrics that this metric is computed from.
    pub(crate) fn parts(&self) -> Vec<&str> {
        match self {
            Self::Ratio(first, second) | Self::Difference(first, second) => vec![first, second],
            Self::Scaled(path, _) => vec![path],
            Self::Sum(paths) | Self::Mean(paths) | Self::Share { paths, .. } => {
                paths.iter().map(String::as_str).collect()
            }
            Self::OverTime(_) => Vec::new(),
        }
    }
}

/// The derived metrics of a study by name.
pub type Metrics = BTreeMap<String, Derived>;

/// The units of the derived metrics by name. A metric without a unit is absent.
pub type Units = BTreeMap<String, Unit>;

/// The table of a run's summary with what a study watches packet by packet.
pub(crate) const WATCHED: &str = "watched";
/// The table of a run's summary with the metrics that are figures of series.
pub(crate) const OVER_TIME: &str = "over_time";

/// Finds the derived metric called `name`. Returns `None` if `name` is a path.
///
/// `depth` is the number of definitions that led to this name. A chain of more definitions than there are
/// metrics is a circle, such as a metric that is a part of itself. The name is then read as a path, and no run
/// has such a path, so the metric has no value.
fn definition<'m>(name: &str, metrics: &'m Metrics, depth: usize) -> Option<&'m Derived> {
    if depth > metrics.len() { None } else { metrics.get(name) }
}

/// Returns the unit of the metric called `name`. A derived metric has the unit that is `stated`, or else the
/// common unit of the parts of its difference, sum or mean. A path has the unit of its figure.
pub(crate) fn unit(name: &str, metrics: &Metrics, stated: &Units) -> Option<Unit> {
    unit_at_depth(name, metrics, stated, 0)
}

fn unit_at_depth(name: &str, metrics: &Metrics, stated: &Units, depth: usize) -> Option<Unit> {
    let Some(derived) = definition(name, metrics, depth) else {
        return figure_at(name).map(|figure| figure.unit);
    };
    if let Some(unit) = stated.get(name) {
        return Some(*unit);
    }
    match derived {
        Derived::Difference(..) | Derived::Sum(_) | Derived::Mean(_) => {
            let parts = derived.parts().into_iter();
            let mut units = parts.map(|part| unit_at_depth(part, metrics, stated, depth + 1));
            let first = units.next()??;
            units.all(|unit| unit == Some(first)).then_some(first)
        }
        Derived::Ratio(..) | Derived::Scaled(..) | Derived::Share { .. } | Derived::OverTime(_) => None,
    }
}

/// Returns the value of the metric called `name`. `run` is the summary of the run as JSON. Returns `None` if
/// the arena could not know the value.
pub(crate) fn value(run: &Json, name: &str, metrics: &Metrics) -> Option<f64> {
    ValueReader { run, metrics }.value(name, 0)
}

/// Reads the metrics of one run.
struct ValueReader<'a> {
    run: &'a Json,
    metrics: &'a Metrics,
}

impl ValueReader<'_> {
    fn value(&self, name: &str, depth: usize) -> Option<f64> {
        let Some(derived) = definition(name, self.metrics, depth) else {
            return path::number(self.run, name);
        };
        let part = |name: &String| self.value(name, depth + 1);
        let value = match derived {
            Derived::Ratio(first, second) => part(first)? / part(second)?,
            Derived::Difference(first, second) => part(first)? - part(second)?,
            Derived::Scaled(path, factor) => part(path)? * factor,
            Derived::Sum(paths) => self.values(paths, depth)?.iter().sum(),
            Derived::Mean(paths) => {
                let values = self.values(paths, depth)?;
                values.iter().sum::<f64>() / values.len() as f64
            }
            Derived::Share { paths, above } => {
                let values = self.values(paths, depth)?;
                values.iter().filter(|value| *value > above).count() as f64 / values.len() as f64
            }
            Derived::OverTime(_) => self.run.get(OVER_TIME)?.get(name)?.as_f64()?,
        };
        value.is_finite().then_some(value)
    }

    /// Returns the values of all metrics that `paths` name. Returns `None` if one of them is not known, or if
    /// there are none.
    fn values(&self, paths: &[String], depth: usize) -> Option<Vec<f64>> {
        let mut values = Vec::new();
        for path in paths {
            if path.contains('*') {
                for found in path::matching(self.run, path) {
                    values.push(found.as_f64()?);
                }
            } else {
                values.push(self.value(path, depth + 1)?);
            }
        }
        (!values.is_empty()).then_some(values)
    }
}

/// The smallest and the largest value that a figure can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueRange {
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

impl ValueRange {
    pub(crate) const UNLIMITED: Self = Self { lowest: f64::NEG_INFINITY, highest: f64::INFINITY };
    pub(crate) const NOT_NEGATIVE: Self = Self { lowest: 0.0, highest: f64::INFINITY };
    /// From 0 to 1.
    pub(crate) const SHARE: Self = Self { lowest: 0.0, highest: 1.0 };
    const CORRELATION: Self = Self { lowest: -1.0, highest: 1.0 };
}

/// Returns the values that the metric called `name` can have.
pub(crate) fn value_range(name: &str, metrics: &Metrics) -> ValueRange {
    range_at_depth(name, metrics, 0)
}

fn range_at_depth(name: &str, metrics: &Metrics, depth: usize) -> ValueRange {
    let Some(derived) = definition(name, metrics, depth) else {
        return path_range(name);
    };
    let is_never_negative = |part: &str| range_at_depth(part, metrics, depth + 1).lowest >= 0.0;
    match derived {
        Derived::Share { .. } => ValueRange::SHARE,
        Derived::OverTime(over_time) => match over_time.figure {
            TimeFigure::Correlation { .. } => ValueRange::CORRELATION,
            TimeFigure::SharedLosses { .. } => ValueRange::SHARE,
            TimeFigure::Quantile(_) => ValueRange::NOT_NEGATIVE,
        },
        Derived::Ratio(..) | Derived::Sum(_) | Derived::Mean(_)
            if derived.parts().into_iter().all(is_never_negative) =>
        {
            ValueRange::NOT_NEGATIVE
        }
        Derived::Ratio(..)
        | Derived::Difference(..)
        | Derived::Scaled(..)
        | Derived::Sum(_)
        | Derived::Mean(_) => ValueRange::UNLIMITED,
    }
}

fn path_range(path: &str) -> ValueRange {
    if path.contains('=') {
        // `PATH=WORD` is 0 or 1.
        return ValueRange::SHARE;
    }
    // A path that is no figure leads to a field of log.txt, to an entry of a list, or to a watched number.
    // These are counts, times and sizes.
    figure_at(path).map_or(ValueRange::NOT_NEGATIVE, |figure| figure.range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Json {
        serde_json::json!({
            "flows": {
                "call": { "is_steady": false, "loss_rate": 0.25, "loss_runs": { "histogram": [7, 2] }, "rtt": null, "verdict": "great" },
                "nagle-1": { "rtt": { "p50": 20.0 } },
                "nagle-2": { "rtt": { "p50": 40.0 } },
                "nagle-10": { "rtt": { "p50": 60.0 } },
            },
            "groups": { "ftp": { "goodput_bps": 5.0 } },
        })
    }

    #[test]
    fn a_path_leads_through_tables_and_lists_and_a_group_of_one_is_its_flow() {
        let value_of = |path| value(&run(), path, &Metrics::new());
        assert_eq!(value_of("flows.call.loss_runs.histogram.1"), Some(2.0));
        assert_eq!(value_of("groups.call.loss_rate"), Some(0.25));
        assert_eq!(value_of("groups.ftp.goodput_bps"), Some(5.0));
        assert_eq!(value_of("flows.call.rtt"), None);
        assert_eq!(value_of("links.wan.dropped"), None);
        assert_eq!(value_of("flows.call.verdict=great"), Some(1.0));
        assert_eq!(value_of("flows.call.verdict=bad"), Some(0.0));
        assert_eq!(value_of("flows.call.is_steady=false"), Some(1.0));
        assert_eq!(value_of("flows.call.word=bad"), None);
    }

    #[test]
    fn a_metric_has_the_unit_that_is_stated_or_that_its_parts_share_and_never_that_of_its_name() {
        let text = |text: &str| text.to_owned();
        let (p90, mean) = ("flows.*.round_trip_delay_ms.p90", "flows.udp.one_way_delay_ms.mean");
        let metrics = Metrics::from([
            (text("excess"), Derived::Difference(text(p90), text(mean))),
            (text("mean"), Derived::Mean(vec![text("excess"), text(p90)])),
            (text("half_ms"), Derived::Scaled(text(p90), 0.5)),
            (text("half"), Derived::Scaled(text(p90), 0.5)),
            (text("mixed_ms"), Derived::Sum(vec![text(p90), text("flows.udp.goodput_bps")])),
            (text("times_ms"), Derived::Ratio(text(p90), text(mean))),
            (text("log_ms"), Derived::Mean(vec![text("log.call.end_timestamp")])),
            (text("circle"), Derived::Sum(vec![text("circle")])),
        ]);
        let stated = Units::from([(text("half"), Unit::Ms)]);
        let unit_of = |name| unit(name, &metrics, &stated);
        for name in ["excess", "mean", "half", p90] {
            assert_eq!(unit_of(name), Some(Unit::Ms), "{name}");
        }
        for name in ["half_ms", "mixed_ms", "times_ms", "log_ms", "circle", "delay_ms"] {
            assert_eq!(unit_of(name), None, "{name}");
        }
    }

    #[test]
    fn a_study_makes_numbers_of_others_and_knows_none_where_one_is_unknown() {
        let text = |text: &str| text.to_owned();
        let metrics = Metrics::from([
            (text("slow"), Derived::Share { paths: vec![text("flows.nagle-*.rtt.p50")], above: 30.0 }),
            (text("mean"), Derived::Mean(vec![text("flows.nagle-*.rtt.p50")])),
            (text("excess"), Derived::Difference(text("mean"), text("flows.nagle-1.rtt.p50"))),
            (text("times"), Derived::Ratio(text("excess"), text("flows.call.loss_rate"))),
            (text("unknown"), Derived::Sum(vec![text("mean"), text("flows.call.rtt.p50")])),
            (text("circle"), Derived::Sum(vec![text("circle")])),
            (text("half"), Derived::Scaled(text("mean"), 0.5)),
        ]);
        let value_of = |name| value(&run(), name, &metrics);
        assert_eq!(value_of("slow"), Some(2.0 / 3.0));
        assert_eq!(
            (value_of("mean"), value_of("excess"), value_of("times")),
            (Some(40.0), Some(20.0), Some(80.0))
        );
        assert_eq!((value_of("unknown"), value_of("circle"), value_of("half")), (None, None, Some(20.0)));
    }
}
