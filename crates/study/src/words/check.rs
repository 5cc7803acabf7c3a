//! Writes a check: what it requires, and what came out.

use talkpath_measure::figures::Unit;

use super::numbers::{Scale, format_median, format_number};
use crate::claim::{Bound, ClaimKind, Formula, Operand, Order, Tolerance};
use crate::outcome::{CheckOutcome, HeldBy, Value};

/// Writes the figure of a check with its interval, such as `ratio 2.6 [2.5, 2.7]`. The word `ratio` is left
/// out if the name of the check says it. Returns `None` if the check has no figure, or if the figure is a
/// median that is written anyway.
pub fn format_figure(check: &CheckOutcome) -> Option<String> {
    let figure = check.figure.filter(|_| check.values.len() > 1)?;
    match check.must {
        ClaimKind::Agree { .. } => {
            let interval = check.ci95.map_or_else(String::new, |(low, high)| {
                format!("[{:+.1}, {:+.1}] ", 100.0 * low, 100.0 * high)
            });
            Some(format!("{:+.1} {interval}%", 100.0 * figure))
        }
        ClaimKind::Figure { formula, .. } => {
            let FigureName { name, synonym } = figure_name(formula)?;
            let number = Scale::new(check.figure_unit()).with_interval(figure, check.ci95);
            let is_named = check.name.contains(name) || check.name.contains(synonym);
            Some(if is_named { number } else { format!("{name} {number}") })
        }
        ClaimKind::Share { .. } => {
            let number = Scale::new(check.figure_unit()).with_interval(figure, check.ci95);
            Some(format!("{number} of the repetitions"))
        }
        ClaimKind::Rising | ClaimKind::Falling | ClaimKind::Same { .. } => None,
    }
}

/// The name of a figure, and another word for it in the names of checks.
struct FigureName {
    name: &'static str,
    synonym: &'static str,
}

const fn figure_name(formula: Formula) -> Option<FigureName> {
    let (name, synonym) = match formula {
        Formula::Median => return None,
        Formula::Ratio => ("ratio", "over"),
        Formula::Difference => ("difference", "less"),
        Formula::Slope => ("slope", "slope"),
        Formula::RSquared => ("R²", "R squared"),
    };
    Some(FigureName { name, synonym })
}

/// Writes what a check requires, such as `9.3 ± 1` or `tcp-4 less than udp-4`.
pub fn format_requirement(check: &CheckOutcome) -> String {
    match check.must {
        ClaimKind::Figure { bound, .. } => bound_in_words(bound, check),
        ClaimKind::Rising => order_in_words(check, "more"),
        ClaimKind::Falling => order_in_words(check, "less"),
        ClaimKind::Share { order, bound, of } => {
            let comparative = match order {
                Order::Rising => "more",
                Order::Falling => "less",
            };
            let order = match of {
                Some(of) => format!("of {of} by {of}, each {comparative} than the one before"),
                None => order_in_words(check, comparative),
            };
            format!("{order}, in {} of the repetitions", bound_in_words(bound, check))
        }
        ClaimKind::Same { within } => {
            let within = tolerance(check.figure_unit(), within);
            match operand_labels(check).as_slice() {
                [first, second] => format!("{second} as {first} ± {within}"),
                _ => format!("all as the first ± {within}"),
            }
        }
        ClaimKind::Agree { within } => format!("agree ± {}", tolerance(check.unit(), within)),
    }
}

fn bound_in_words(bound: Bound, check: &CheckOutcome) -> String {
    let unit = check.figure_unit();
    let reason_for_one_end = match &check.one_sided {
        Some(reason) => format!(", one end alone: {reason}"),
        None => String::new(),
    };
    match bound {
        Bound::Near { value, within } => {
            format!("{} ± {}", format_number(unit, value), tolerance(unit, within))
        }
        Bound::AtMost { value } => format!("≤ {}{reason_for_one_end}", format_number(unit, value)),
        Bound::AtLeast { value } => format!("≥ {}{reason_for_one_end}", format_number(unit, value)),
        Bound::Between { low, high } => {
            format!("{} to {}", format_number(unit, low), format_number(unit, high))
        }
    }
}

/// Writes an order, such as `tcp-4 less than udp-4`. `comparative` is the word `more` or `less`.
fn order_in_words(check: &CheckOutcome, comparative: &str) -> String {
    match operand_labels(check).as_slice() {
        [first, second] => format!("{second} {comparative} than {first}"),
        _ => format!("each {comparative} than the one before"),
    }
}

fn tolerance(unit: Option<Unit>, within: Tolerance) -> String {
    match within {
        Tolerance::Absolute(size) => format_number(unit, size),
        Tolerance::Relative(_) => within.to_string(),
    }
}

/// Returns a label for each value of a check, which distinguishes it from the other values. If all values are
/// of one cell, the label is the part of the metric that differs. Otherwise it is the name of the cell, with
/// that part if the metrics differ, too.
pub fn value_labels(check: &CheckOutcome) -> Vec<String> {
    let mut values = Vec::new();
    for Value { cell, metric, .. } in &check.values {
        values.push(Labelled { cell, metric });
    }
    labels(&values)
}

/// Returns the labels of all operands of a check, also of operands without a value.
fn operand_labels(check: &CheckOutcome) -> Vec<String> {
    // The operands are listed only if one of them has no value.
    if check.compared.is_empty() {
        return value_labels(check);
    }
    let mut operands = Vec::new();
    for Operand { cell, metric } in &check.compared {
        operands.push(Labelled { cell, metric });
    }
    labels(&operands)
}

/// A metric of a cell that needs a label.
struct Labelled<'a> {
    cell: &'a str,
    metric: &'a str,
}

fn labels(labelled: &[Labelled<'_>]) -> Vec<String> {
    let Some(first) = labelled.first() else { return Vec::new() };
    let first_names: Vec<&str> = first.metric.split('.').collect();
    let longest = labelled.iter().map(|labelled| labelled.metric.split('.').count()).max().unwrap_or(0);
    // The positions in a path at which the metrics have different names.
    let differing: Vec<usize> = (0..longest)
        .filter(|&position| {
            let expected = first_names.get(position).copied();
            labelled.iter().any(|labelled| labelled.metric.split('.').nth(position) != expected)
        })
        .collect();
    let is_one_cell = labelled.len() > 1 && labelled.iter().all(|labelled| labelled.cell == first.cell);
    let mut labels = Vec::new();
    for Labelled { cell, metric } in labelled {
        let names = differing.iter().filter_map(|&position| metric.split('.').nth(position));
        let difference = names.collect::<Vec<_>>().join(".");
        labels.push(if difference.is_empty() {
            (*cell).to_owned()
        } else if is_one_cell {
            difference
        } else {
            format!("{cell} {difference}")
        });
    }
    labels
}

/// Writes a check with its values, such as
/// `loss, 12 TCP: 0.5 % (het-12), 0.4 % (hom-12); asked: hom-12 less than het-12`.
pub(super) fn check_with_values(check: &CheckOutcome) -> String {
    let compares_arenas = matches!(check.must, ClaimKind::Agree { .. });
    let mut values = Vec::new();
    for (value, label) in check.values.iter().zip(value_labels(check)) {
        let label = if compares_arenas { value.arena.name().to_owned() } else { label };
        values.push(format!("{} ({label})", format_median(value)));
    }
    let figure = format_figure(check).map_or_else(String::new, |figure| format!("{figure}: "));
    let requirement = match (check.must, check.held_by) {
        (ClaimKind::Agree { within }, Some(HeldBy::Spread)) => {
            let within = tolerance(check.unit(), within);
            format!("further apart than {within}, by less than the seeds' spread")
        }
        // The word is not "published", because many bounds are our reading of a sentence.
        _ => format!("asked: {}", format_requirement(check)),
    };
    format!("{}: {figure}{}; {requirement}", check.name, values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::ArenaName;

    /// A check that falls from the first to the second of (cell, metric).
    fn falling(values: [(&str, &str); 2]) -> CheckOutcome {
        let value = |(cell, metric): (&str, &str)| Value {
            cell: cell.to_owned(),
            arena: ArenaName::Sim,
            metric: metric.to_owned(),
            own_unit: None,
            n: 1,
            median: 2.0,
            ci95: None,
            min: 2.0,
            max: 2.0,
        };
        CheckOutcome {
            name: String::new(),
            metric: String::new(),
            own_unit: None,
            must: ClaimKind::Falling,
            basis: crate::claim::Basis::Predicted,
            one_sided: None,
            values: values.map(value).to_vec(),
            compared: Vec::new(),
            figure: None,
            ci95: None,
            holds: Some(false),
            held_by: None,
            certain: true,
            single_hits: 0,
            single_runs: 1,
        }
    }

    #[test]
    fn a_share_of_repetitions_says_of_what_it_is_one() {
        let share = |of| ClaimKind::Share { order: Order::Falling, bound: Bound::AtLeast { value: 0.5 }, of };
        let must = share(None);
        let order = falling([("udp-4", "flows.x.loss_rate"), ("tcp-4", "flows.x.loss_rate")]);
        let check = CheckOutcome { must, figure: Some(0.6), ci95: Some((0.42, 0.75)), ..order };
        assert_eq!(format_figure(&check).as_deref(), Some("60 [42, 75] % of the repetitions"));
        assert_eq!(format_requirement(&check), "tcp-4 less than udp-4, in ≥ 50 % of the repetitions");
        let pooled = CheckOutcome { must: share(Some(3)), ..check };
        let words = "of 3 by 3, each less than the one before, in ≥ 50 % of the repetitions";
        assert_eq!(format_requirement(&pooled), words);
    }

    #[test]
    fn an_order_names_both_sides_and_its_direction() {
        let cells = falling([("udp-4", "flows.x.loss_rate"), ("tcp-4", "flows.x.loss_rate")]);
        assert_eq!(format_requirement(&cells), "tcp-4 less than udp-4");
        assert_eq!(check_with_values(&cells), ": 200 % (udp-4), 200 % (tcp-4); asked: tcp-4 less than udp-4");
        let flows = falling([("home", "flows.tcp.delay_ms.p90"), ("home", "flows.udp.delay_ms.p90")]);
        assert_eq!(format_requirement(&flows), "udp less than tcp");
        let both = falling([("near", "flows.tcp.delay_ms.p90"), ("far", "flows.udp.delay_ms.p90")]);
        assert_eq!(value_labels(&both), ["near tcp", "far udp"]);
    }
}
