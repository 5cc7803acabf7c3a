//! Values and reasons in words, the same in the table, on the page and in the JSON.

use crate::claim::{Claim, Kind};
use crate::outcome::{CheckOutcome, UnderAssumption, Value, Verdict};
use crate::study::Study;

/// `value` of `metric` for a person: rates in Mb/s, shares in %, everything else as it is.
pub fn shown(metric: &str, value: f64) -> String {
    let (scale, unit) = unit(metric);
    format!("{}{unit}", digits(value * scale))
}

/// `9.31 [9.2, 9.4]`, `1.37 [1.36, 1.38] Mb/s`.
pub fn shown_value(metric: &str, value: &Value) -> String {
    let (scale, unit) = unit(metric);
    let median = digits(value.median * scale);
    match value.ci95 {
        Some((low, high)) => format!("{median} [{}, {}]{unit}", digits(low * scale), digits(high * scale)),
        None => format!("{median}{unit}"),
    }
}

/// What a metric is multiplied by for a person, and the unit after it.
fn unit(metric: &str) -> (f64, &'static str) {
    match metric.rsplit('.').next().unwrap_or(metric) {
        name if name.contains("_bps") => (1e-6, " Mb/s"),
        "loss_rate" | "retransmit_rate" | "utilisation" => (100.0, " %"),
        _ => (1.0, ""),
    }
}

/// Three significant digits below 1 and four above, and no fewer than the whole number has.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1000.0 || size == 0.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A claim's figures under one assumption set: values where one was published, else how many orders hold.
pub(crate) fn reproduced(under: &UnderAssumption) -> String {
    let values: Vec<String> = under
        .checks
        .iter()
        .filter(|check| check.must.value().is_some())
        .filter_map(|check| {
            let value = check.values.first()?;
            Some(format!("{} {}", check.name, shown_value(&check.metric, value)))
        })
        .collect();
    let orders: Vec<_> = under.checks.iter().filter(|check| check.must.value().is_none()).collect();
    let held = orders.iter().filter(|check| check.holds == Some(true)).count();
    let mut parts = values;
    match orders.as_slice() {
        [] => {}
        [one] => parts.push(in_full(one)),
        many => parts.push(format!("{held} of {} comparisons hold", many.len())),
    }
    parts.join("; ")
}

/// A check with its values: `loss, 12 TCP: 0.5 % (het-12), 0.4 % (hom-12)`.
fn in_full(check: &CheckOutcome) -> String {
    let metric = &check.metric;
    let values: Vec<_> =
        check.values.iter().map(|it| format!("{} ({})", shown_value(metric, it), it.cell)).collect();
    let must = match check.must {
        Kind::Near { value, within } => {
            format!(", published {} within {}", shown(metric, value), tolerance(metric, within))
        }
        Kind::Rising => ", should rise".to_owned(),
        Kind::Falling => ", should fall".to_owned(),
        Kind::Same { within } => format!(", should be the same within {within}"),
        Kind::AtMost { value } => format!(", should be at most {}", shown(metric, value)),
        Kind::AtLeast { value } => format!(", should be at least {}", shown(metric, value)),
    };
    format!("{}: {}{must}", check.name, values.join(", "))
}

fn tolerance(metric: &str, within: crate::Tolerance) -> String {
    match within {
        crate::Tolerance::Absolute(most) => shown(metric, most),
        crate::Tolerance::Relative(_) => within.to_string(),
    }
}

/// Why a verdict is what it is; empty only for what is reproduced under every tested set.
pub(crate) fn why(
    study: &Study,
    claim: &Claim,
    verdict: Verdict,
    holding: &[String],
    failing: &[String],
    by_assumption: &[UnderAssumption],
    quick: bool,
) -> String {
    let mut parts = Vec::new();
    match verdict {
        Verdict::NotTested if claim.checks.is_empty() => {
            parts.push("the study has no check for it".to_owned());
        }
        Verdict::NotTested => parts.push(match quick {
            true => "the shorter run leaves its cells out; run without --quick".to_owned(),
            false => "its cells did not run to their end; --resume goes on".to_owned(),
        }),
        Verdict::Reproduced if failing.is_empty() => return String::new(),
        Verdict::Reproduced => {
            let (some, all) = (holding.len(), holding.len() + failing.len());
            parts.push(format!(
                "holds under {some} of {all} assumption sets ({}), not under {}",
                holding.join(", "),
                failing.join(", ")
            ));
        }
        Verdict::Differs => {
            let failed =
                |it: &&UnderAssumption| it.checks.iter().filter(|it| it.holds == Some(false)).count();
            let tested = by_assumption.iter().filter(|it| it.holds.is_some());
            if let Some(nearest) = tested.min_by_key(failed) {
                let checks = nearest.checks.iter().filter(|it| it.holds == Some(false));
                let listed: Vec<_> = checks.take(MOST_LISTED).map(in_full).collect();
                let more = failed(&nearest).saturating_sub(MOST_LISTED);
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                parts.push(format!(
                    "{} of {} checks fail under {}, the nearest of {} sets: {}{more}",
                    failed(&nearest),
                    nearest.checks.len(),
                    nearest.assumption,
                    failing.len(),
                    listed.join("; ")
                ));
            }
        }
    }
    if verdict != Verdict::NotTested || claim.expected == Verdict::NotTested {
        parts.extend(claim.why.clone());
    }
    if parts.is_empty() {
        // A tested claim with no words of its own: the study's set-up is what there is to say.
        parts.push(study.set_up.clone());
    }
    parts.join(". ")
}

/// Failing checks that a reason spells out. Chosen.
const MOST_LISTED: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_carry_four_digits_and_their_unit() {
        assert_eq!(shown("groups.ftp.goodput_bps", 1_370_400.0), "1.37 Mb/s");
        assert_eq!(shown("flows.call.loss_rate", 0.031_26), "3.126 %");
        assert_eq!(shown("links.wan.queue_packets.mean", 9.304), "9.304");
        assert_eq!(shown("flows.call.loss_runs.max", 4.0), "4");
    }
}
