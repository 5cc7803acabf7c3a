//! The values of metrics in one run.

use serde_json::Value as Json;

use super::derived::{Derived, Metrics, definition};
use super::path;

/// The table of a run's summary with what a study watches packet by packet.
pub(crate) const WATCHED: &str = "watched";
/// The table of a run's summary with the metrics that are figures of series.
pub(crate) const OVER_TIME: &str = "over_time";

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
