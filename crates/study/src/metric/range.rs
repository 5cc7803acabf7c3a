//! The values that a metric can have, whatever a run measures. A check whose bound includes all of them
//! cannot fail.

use super::derived::{Derived, Metrics, definition};
use super::path::{ValueRange, figure_at};
use crate::over_time::TimeFigure;

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
    if path.starts_with("program.figures.") {
        // A program of the user may print any number.
        return ValueRange::UNLIMITED;
    }
    // A path that is no figure leads to a field of log.txt, to an entry of a list, or to a watched number.
    // These are counts, times and sizes.
    figure_at(path).map_or(ValueRange::NOT_NEGATIVE, |figure| figure.range)
}
