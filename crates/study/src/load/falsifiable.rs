//! Refuses checks that say nothing about the publication: a check whose metric no run measures, and a check
//! that cannot fail. Begin to read with [`Loader::require_meaningful`].

use core::ops::Range;

use super::Loader;
use super::lookup::{CellMetric, Lookup};
use crate::arena::ArenaName;
use crate::claim::{Bound, Check, ClaimKind, Formula, Operand};
use crate::metric::{Metrics, ValueRange, value_range};
use crate::study::BASE_SET;

impl Loader<'_, '_> {
    /// Records mistakes if a check reads what no run measures, if it cannot fail, or if its bound lacks an
    /// end without a reason.
    pub(super) fn require_meaningful(&mut self, check: &Check, span: &Range<usize>, lookup: &Lookup<'_>) {
        for Operand { cell, metric } in &check.operands {
            self.require_metric(CellMetric { cell, metric }, span.clone(), "claim.check.metric", lookup);
            if self.is_whole {
                self.require_run_under_base(cell, check, span, lookup);
                self.require_campaign_entry(cell, check, span, lookup);
            }
        }
        if let Some(message) = reason_why_always_true(check, lookup) {
            self.mistakes.add(span.clone(), "claim.check", message);
        } else if check.one_sided.is_none()
            && let Some(message) = missing_end(check, lookup.derived)
        {
            let help = "use `between`, or say in `one_sided` why the claim has no other end".to_owned();
            self.mistakes.add_with_help(span.clone(), "claim.check", message, help);
        }
    }

    /// Records a mistake if a cell runs in an arena of the check, but not under the base set. The verdict of
    /// a claim is that under the base set, so such a check could never be judged.
    fn require_run_under_base(
        &mut self,
        cell_name: &str,
        check: &Check,
        span: &Range<usize>,
        lookup: &Lookup<'_>,
    ) {
        for arena in &check.arenas {
            let is_meant = |cell: &&crate::Cell| cell.arena == *arena && cell.name == cell_name;
            let mut variants = lookup.cells.iter().filter(is_meant).peekable();
            if variants.peek().is_some() && variants.all(|cell| cell.assumption != BASE_SET) {
                let base = self.file.assumption.first().map_or("", |entry| entry.name.get_ref());
                let message = format!(
                    "\"{cell_name}\" does not run under the first set, \"{base}\", in {arena}: a verdict is that under the first set"
                );
                self.mistakes.add(span.clone(), "claim.check", message);
            }
        }
    }

    /// Records a mistake if a check is judged in a campaign, but no campaign measures the cell.
    fn require_campaign_entry(
        &mut self,
        cell_name: &str,
        check: &Check,
        span: &Range<usize>,
        lookup: &Lookup<'_>,
    ) {
        let is_measured =
            lookup.cells.iter().any(|cell| cell.arena == ArenaName::Campaign && cell.name == cell_name);
        if check.arenas.contains(&ArenaName::Campaign) && !is_measured {
            let message =
                format!("the check is judged in campaign, but no [[campaign]] measures \"{cell_name}\"");
            let help = "give the check `arenas`, or add a [[campaign]] with this cell".to_owned();
            self.mistakes.add_with_help(span.clone(), "claim.check.arenas", message, help);
        }
    }
}

/// Returns the reason why a check holds, or fails, whatever the runs measure. Returns `None` if runs decide
/// it.
fn reason_why_always_true(check: &Check, lookup: &Lookup<'_>) -> Option<String> {
    if matches!(check.kind, ClaimKind::Figure { formula: Formula::Slope | Formula::RSquared, .. }) {
        reason_line_over_itself(check).or_else(|| reason_bound_too_wide(check, lookup.derived))
    } else {
        reason_equal_operands(check, lookup).or_else(|| reason_bound_too_wide(check, lookup.derived))
    }
}

/// A line of a metric over the same metric always has the same slope.
fn reason_line_over_itself(check: &Check) -> Option<String> {
    let is_same_metric = check.operands.chunks(2).all(|point| match point {
        [x, y] => x.metric == y.metric,
        _ => true,
    });
    let metric = &check.operands.first()?.metric;
    is_same_metric.then(|| format!("it draws {metric} over itself: a line with slope 1 and R squared 1"))
}

/// Two operands are always equal if they are the same metric of the same cell, or of two cells with the same
/// scenario: a simulation with the same seeds gives the same result.
fn reason_equal_operands(check: &Check, lookup: &Lookup<'_>) -> Option<String> {
    for (index, first) in check.operands.iter().enumerate() {
        for second in &check.operands[index + 1..] {
            if first.metric != second.metric {
                continue;
            }
            let Operand { cell, metric } = first;
            if *cell == second.cell {
                return Some(format!("it compares {metric} of \"{cell}\" with itself"));
            }
            let (Some(scenario), Some(other)) = (lookup.scenario(cell), lookup.scenario(&second.cell)) else {
                continue;
            };
            if scenario == other {
                return Some(format!(
                    "\"{cell}\" and \"{}\" are the same scenario with the same seeds: both sides are the same by construction",
                    second.cell
                ));
            }
        }
    }
    None
}

/// A check always holds if its bound includes every value that its figure can have.
fn reason_bound_too_wide(check: &Check, derived: &Metrics) -> Option<String> {
    let possible = figure_range(check, derived)?;
    let (low, high) = check.kind.bound()?.ends();
    let includes_all = low <= possible.lowest && possible.highest <= high;
    includes_all.then(|| "no value lies outside its bound: it cannot fail".to_owned())
}

/// Returns a message if the bound of a check has one end, and the figure has no limit at the other end.
fn missing_end(check: &Check, derived: &Metrics) -> Option<&'static str> {
    let possible = figure_range(check, derived)?;
    match check.kind.bound()? {
        Bound::AtLeast { .. } if possible.highest.is_infinite() => {
            Some("`at_least` alone lets any larger value pass")
        }
        Bound::AtMost { .. } if possible.lowest.is_infinite() => {
            Some("`at_most` alone lets any smaller value pass")
        }
        _ => None,
    }
}

/// Returns the values that the figure of a check can have. Returns `None` if the check has no figure.
fn figure_range(check: &Check, derived: &Metrics) -> Option<ValueRange> {
    let formula = match check.kind {
        ClaimKind::Figure { formula, .. } => formula,
        ClaimKind::Share { .. } => return Some(ValueRange::SHARE),
        _ => return None,
    };
    let is_never_negative = |operand: &Operand| value_range(&operand.metric, derived).lowest >= 0.0;
    Some(match formula {
        Formula::Median => value_range(&check.operands.first()?.metric, derived),
        Formula::Ratio if check.operands.iter().all(is_never_negative) => ValueRange::NOT_NEGATIVE,
        Formula::Ratio | Formula::Difference | Formula::Slope => ValueRange::UNLIMITED,
        Formula::RSquared => ValueRange::SHARE,
    })
}
