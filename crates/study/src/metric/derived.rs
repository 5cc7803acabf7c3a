//! The metrics that a study computes from other metrics.

use std::collections::BTreeMap;

use talkpath_measure::figures::Unit;

use crate::over_time::OverTime;

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
    /// Returns the metrics that this metric is computed from.
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

/// Finds the derived metric called `name`. Returns `None` if `name` is a path.
///
/// `depth` is the number of definitions that led to this name. A chain of more definitions than there are
/// metrics is a circle, such as a metric that is a part of itself. The name is then read as a path, and no
/// run has such a path, so the metric has no value.
pub(super) fn definition<'m>(name: &str, metrics: &'m Metrics, depth: usize) -> Option<&'m Derived> {
    if depth > metrics.len() { None } else { metrics.get(name) }
}
