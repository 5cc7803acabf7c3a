//! Reads the metrics that a study computes (`[metric]`), and their units.

use talkpath_measure::figures::Unit;

use super::Loader;
use crate::file::MetricEntry;
use crate::metric::{self, Derived, Metrics, Units};
use crate::over_time::{OverTime, TimeFigure};
use crate::stretch::Stretch;

/// The units that a study may state for a metric.
const STATED_UNITS: [Unit; 10] = [
    Unit::Ms,
    Unit::Seconds,
    Unit::Bps,
    Unit::Pps,
    Unit::Share,
    Unit::Packets,
    Unit::Bytes,
    Unit::Count,
    Unit::Score,
    Unit::Ppm,
];

impl Loader<'_, '_> {
    pub(super) fn derived_metrics(&mut self) -> Metrics {
        let mut metrics = Metrics::new();
        for (name, entry) in &self.file.metric {
            let key = format!("metric.{name}");
            if let Some(seconds) = entry.get_ref().seconds {
                self.require_stretch(seconds, entry.span(), &format!("{key}.seconds"));
            }
            match derived_metric(entry.get_ref()) {
                Some(Derived::Ratio(first, second) | Derived::Difference(first, second))
                    if first == second =>
                {
                    self.mistakes.add(entry.span(), &key, format!("it compares \"{first}\" with itself"));
                }
                Some(derived) => {
                    metrics.insert(name.clone(), derived);
                }
                None => self.mistakes.add(entry.span(), &key, METRIC_FORMS),
            }
        }
        metrics
    }

    /// Returns the unit of each metric that has one: the unit that the file states, or else the unit that
    /// follows from the parts of the metric.
    pub(super) fn units(&mut self, metrics: &Metrics) -> Units {
        let stated = self.stated_units();
        self.require_unit_of_parts(&stated, metrics);
        let mut units = Units::new();
        for name in metrics.keys() {
            if let Some(unit) = metric::unit(name, metrics, &stated) {
                units.insert(name.clone(), unit);
            }
        }
        units
    }

    fn stated_units(&mut self) -> Units {
        let mut stated = Units::new();
        for (name, entry) in &self.file.metric {
            let Some(word) = &entry.get_ref().unit else { continue };
            match Unit::named(word.get_ref()).filter(|unit| STATED_UNITS.contains(unit)) {
                Some(unit) => {
                    stated.insert(name.clone(), unit);
                }
                None => {
                    let expected = STATED_UNITS.map(Unit::name).join(", ");
                    let message = format!("found \"{}\", expected one of {expected}", word.get_ref());
                    self.mistakes.add(word.span(), &format!("metric.{name}.unit"), message);
                }
            }
        }
        stated
    }

    /// Records a mistake if the stated unit of a metric is not the unit that follows from its parts.
    fn require_unit_of_parts(&mut self, stated: &Units, metrics: &Metrics) {
        for (name, unit) in stated {
            let Some(word) = self.file.metric.get(name).and_then(|entry| entry.get_ref().unit.as_ref())
            else {
                continue;
            };
            let mut others = stated.clone();
            others.remove(name);
            if let Some(unit_of_parts) = metric::unit(name, metrics, &others)
                && unit_of_parts != *unit
            {
                let message =
                    format!("found \"{}\", but it is made of {}", unit.name(), unit_of_parts.name());
                let help = "`scaled` and `by` convert a unit".to_owned();
                self.mistakes.add_with_help(word.span(), &format!("metric.{name}.unit"), message, help);
            }
        }
    }
}

/// The message for a metric that has none of the forms, or several.
const METRIC_FORMS: &str = "expected one of: `ratio` or `difference` with two paths; `sum` or `mean` with paths; \
                            `share` with paths and `above`; `scaled` with a path and `by`; with `seconds`, `correlation` and `cap`, `shared_losses` and \
                            `within`, or `quantile` and `queue`";

/// Returns the metric that `entry` describes. Returns `None` unless the entry has all keys of one form, and
/// no other keys: each arm begins with the number of keys of its form.
fn derived_metric(entry: &MetricEntry) -> Option<Derived> {
    let over_time = |figure: TimeFigure, entity: &String, seconds: Stretch| {
        Derived::OverTime(OverTime { figure, entity: entity.clone(), seconds })
    };
    Some(match (entry.key_count(), entry) {
        (1, MetricEntry { ratio: Some((first, second)), .. }) => {
            Derived::Ratio(first.clone(), second.clone())
        }
        (1, MetricEntry { difference: Some((first, second)), .. }) => {
            Derived::Difference(first.clone(), second.clone())
        }
        (1, MetricEntry { sum: Some(paths), .. }) => Derived::Sum(paths.to_vec()),
        (1, MetricEntry { mean: Some(paths), .. }) => Derived::Mean(paths.to_vec()),
        (2, MetricEntry { scaled: Some(path), by: Some(factor), .. }) => {
            Derived::Scaled(path.clone(), *factor)
        }
        (2, MetricEntry { share: Some(paths), above: Some(above), .. }) => {
            Derived::Share { paths: paths.to_vec(), above: *above }
        }
        (3, &MetricEntry { correlation: Some(ref flow), cap: Some(cap), seconds: Some(seconds), .. }) => {
            over_time(TimeFigure::Correlation { cap }, flow, seconds)
        }
        (
            3,
            &MetricEntry {
                shared_losses: Some(ref flow), within: Some(within), seconds: Some(seconds), ..
            },
        ) => over_time(TimeFigure::SharedLosses { within }, flow, seconds),
        (3, &MetricEntry { queue: Some(ref link), quantile: Some(quantile), seconds: Some(seconds), .. })
            if (0.0..=1.0).contains(&quantile) =>
        {
            over_time(TimeFigure::Quantile(quantile), link, seconds)
        }
        _ => return None,
    })
}
