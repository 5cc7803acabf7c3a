//! The units of metrics.

use talkpath_measure::figures::Unit;

use super::derived::{Derived, Metrics, Units, definition};
use super::path::figure_at;

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
