//! Values and reasons in words, the same in the table, on the page and in the JSON.

use talkpath_measure::figures::Unit;
use talkpath_measure::figures::text::{four_digits, rounded};
use talkpath_units::counted;

use crate::arena::{ArenaName, arena_list};
use crate::claim::Verdict;
use crate::claim::{Bound, Check, Claim, ClaimKind, Figure, Tolerance};
use crate::outcome::{CheckOutcome, HeldBy, UnderAssumption, Value};

/// `value` in `unit` for a person: rates in Mb/s or messages a second, shares in %, everything else as it is.
pub fn shown(unit: Option<Unit>, value: f64) -> String {
    Scale::of(unit).text(value)
}

/// `9.31 [9.2, 9.4]`, `1.37 [1.36, 1.38] Mb/s`.
pub fn shown_value(value: &Value) -> String {
    Scale::of(value.unit()).text_with_interval(value.median, value.ci95)
}

/// What follows a figure in `unit`: ` ms`, `/s`, or nothing.
pub fn shown_unit(unit: Option<Unit>) -> &'static str {
    Scale::of(unit).unit
}

/// How a study's figures of one unit are written for a person.
struct Scale {
    /// What a number of summary.json is multiplied by.
    factor: f64,
    /// What stands after it, with its space.
    unit: &'static str,
}

impl Scale {
    const fn of(unit: Option<Unit>) -> Self {
        let (factor, unit) = match unit {
            Some(Unit::Bps) => (1e-6, " Mb/s"),
            Some(Unit::Pps) => (1.0, "/s"),
            Some(Unit::Share) => (100.0, " %"),
            Some(Unit::Ms) => (1.0, " ms"),
            _ => (1.0, ""),
        };
        Self { factor, unit }
    }

    /// Without the unit.
    fn digits(&self, value: f64) -> String {
        four_digits(value * self.factor)
    }

    fn text(&self, value: f64) -> String {
        format!("{}{}", self.digits(value), self.unit)
    }

    /// `2.6 [2.5, 2.7] ms`; if all repetitions are alike, `2.6 ms` says it all.
    fn text_with_interval(&self, value: f64, ci95: Option<(f64, f64)>) -> String {
        match ci95 {
            Some((low, high)) if low < high => {
                let [value, low, high] = [value, low, high].map(|value| self.digits(value));
                format!("{value} [{low}, {high}]{}", self.unit)
            }
            _ => self.text(value),
        }
    }
}

/// `77.1 to 83 ms`, or one figure if both are shown alike; with a number of decimals instead of the usual
/// significant digits if it is given.
pub fn shown_range(unit: Option<Unit>, (low, high): (f64, f64), decimals: Option<usize>) -> String {
    let scale = Scale::of(unit);
    let text = |value: f64| match decimals {
        Some(decimals) => rounded(value * scale.factor, decimals),
        None => scale.digits(value),
    };
    let (low, high, unit) = (text(low), text(high), scale.unit);
    if low == high { format!("{low}{unit}") } else { format!("{low} to {high}{unit}") }
}

/// A check's figure, with its interval and, unless the check is called so, what it is:
/// `ratio 2.6 [2.5, 2.7]`; `None` if it has no figure, or none beside its one median.
pub fn shown_figure(check: &CheckOutcome) -> Option<String> {
    let figure = check.figure.filter(|_| check.values.len() > 1)?;
    Some(match check.must {
        ClaimKind::Agree { .. } => match check.ci95 {
            Some((low, high)) => {
                format!("{:+.1} [{:+.1}, {:+.1}] %", 100.0 * figure, 100.0 * low, 100.0 * high)
            }
            None => format!("{:+.1} %", 100.0 * figure),
        },
        ClaimKind::Figure {
            of: Figure::Ratio | Figure::Difference | Figure::Slope | Figure::RSquared,
            ..
        } => {
            let names = match check.must {
                ClaimKind::Figure { of: Figure::Ratio, .. } => ["ratio ", "over"],
                ClaimKind::Figure { of: Figure::Difference, .. } => ["difference ", "less"],
                ClaimKind::Figure { of: Figure::Slope, .. } => ["slope ", "slope"],
                _ => ["R² ", "R squared"],
            };
            let is_said = names.iter().any(|name| check.name.contains(name.trim_end()));
            let name = if is_said { "" } else { names[0] };
            let text = Scale::of(check.figure_unit()).text_with_interval(figure, check.ci95);
            format!("{name}{text}")
        }
        _ => return None,
    })
}

/// What a check requires: `9.3 ± 1`, `rises`.
pub fn shown_must(check: &CheckOutcome) -> String {
    let unit = check.figure_unit();
    let why = check.one_sided.as_ref().map_or_else(String::new, |why| format!(", one end alone: {why}"));
    match check.must {
        ClaimKind::Figure { bound, .. } => match bound {
            Bound::Near { value, within } => {
                format!("{} ± {}", shown(unit, value), tolerance(unit, within))
            }
            Bound::AtMost { value } => format!("≤ {}{why}", shown(unit, value)),
            Bound::AtLeast { value } => format!("≥ {}{why}", shown(unit, value)),
            Bound::Between { low, high } => format!("{} to {}", shown(unit, low), shown(unit, high)),
        },
        ClaimKind::Rising => order(check, "more"),
        ClaimKind::Falling => order(check, "less"),
        ClaimKind::Same { within } => match compared_labels(check).as_slice() {
            [first, second] => format!("{second} as {first} ± {}", tolerance(unit, within)),
            _ => format!("all as the first ± {}", tolerance(unit, within)),
        },
        ClaimKind::Agree { within } => format!("agree ± {}", tolerance(check.unit(), within)),
    }
}

/// Which way an order goes, with the names of the two that are compared.
fn order(check: &CheckOutcome, than: &str) -> String {
    match compared_labels(check).as_slice() {
        [first, second] => format!("{second} {than} than {first}"),
        _ => format!("each {than} than the one before"),
    }
}

/// What distinguishes the values of a check, one each: their cells, or within one cell what differs in their
/// metrics.
pub fn value_labels(check: &CheckOutcome) -> Vec<String> {
    let named: Vec<_> =
        check.values.iter().map(|value| (value.cell.as_str(), value.metric.as_str())).collect();
    labels(&named)
}

/// As [`value_labels`], also of what did not run.
fn compared_labels(check: &CheckOutcome) -> Vec<String> {
    let named: Vec<_> =
        check.compared.iter().map(|operand| (operand.cell.as_str(), operand.metric.as_str())).collect();
    if named.is_empty() { value_labels(check) } else { labels(&named) }
}

/// What distinguishes each (cell, metric) from the others.
fn labels(named: &[(&str, &str)]) -> Vec<String> {
    let is_one_cell = named.windows(2).all(|pair| pair[0].0 == pair[1].0) && named.len() > 1;
    let parts: Vec<Vec<&str>> = named.iter().map(|(_, metric)| metric.split('.').collect()).collect();
    let differs = |at: usize| parts.iter().any(|it| it.get(at) != parts[0].get(at));
    let label = |(&(cell, _), parts): (&(&str, &str), &Vec<&str>)| {
        let own =
            (0..parts.len()).filter(|&at| differs(at)).map(|at| parts[at]).collect::<Vec<_>>().join(".");
        match (is_one_cell, own.is_empty()) {
            (_, true) => cell.to_owned(),
            (true, false) => own,
            (false, false) => format!("{cell} {own}"),
        }
    };
    named.iter().zip(&parts).map(label).collect()
}

/// A claim's figures under one assumption set: values if one was published, else how many orders hold; and
/// how many checks the shorter run left out.
pub(crate) fn reproduced(under: &UnderAssumption, left_out: usize) -> String {
    let is_printed =
        |check: &&CheckOutcome| check.must.bound().is_some() && under.checks.len() <= MOST_PRINTED;
    let mut parts: Vec<String> = under
        .checks
        .iter()
        .filter(is_printed)
        .filter_map(|check| {
            let value = shown_figure(check).or_else(|| check.values.first().map(shown_value))?;
            Some(format!("{}: {value}", check.name))
        })
        .collect();
    let rest: Vec<_> = under.checks.iter().filter(|check| !is_printed(check)).collect();
    let held = rest.iter().filter(|check| check.holds == Some(true)).count();
    let by_spread = rest.iter().filter(|check| check.held_by == Some(HeldBy::Spread)).count();
    match (rest.as_slice(), by_spread) {
        ([], _) => {}
        ([one], _) => parts.push(in_full(one)),
        (many, 0) => parts.push(format!("{held} of {} checks hold", many.len())),
        (many, _) => parts.push(format!(
            "{held} of {} checks hold, {by_spread} of them by the seeds' spread alone",
            many.len()
        )),
    }
    match left_out {
        0 => {}
        1 => parts.push("1 more is judged without --quick".to_owned()),
        _ => parts.push(format!("{left_out} more are judged without --quick")),
    }
    parts.join("; ")
}

/// A check with its values: `loss, 12 TCP: 0.5 % (het-12), 0.4 % (hom-12)`.
fn in_full(check: &CheckOutcome) -> String {
    let compares_arenas = matches!(check.must, ClaimKind::Agree { .. });
    let values: Vec<_> = check
        .values
        .iter()
        .zip(value_labels(check))
        .map(|(it, label)| {
            let place = if compares_arenas { it.arena.name().to_owned() } else { label };
            format!("{} ({place})", shown_value(it))
        })
        .collect();
    let figure = shown_figure(check).map_or_else(String::new, |figure| format!("{figure}: "));
    let must = match (check.must, check.held_by) {
        (ClaimKind::Agree { within }, Some(HeldBy::Spread)) => {
            let within = tolerance(check.unit(), within);
            format!("further apart than {within}, by less than the seeds' spread")
        }
        // Not "published": many bounds are our reading of a sentence.
        _ => format!("asked: {}", shown_must(check)),
    };
    format!("{}: {figure}{}; {must}", check.name, values.join(", "))
}

fn tolerance(unit: Option<Unit>, within: Tolerance) -> String {
    match within {
        Tolerance::Absolute(most) => shown(unit, most),
        Tolerance::Relative(_) => within.to_string(),
    }
}

/// Why a claim has no verdict.
pub(crate) enum NotTested {
    /// The study cannot check it.
    NoCheck,
    /// It is judged in, or compares, arenas that were not selected for the run.
    Arena(Vec<ArenaName>),
    /// Its cells do not run in this arena, or not with `--quick`.
    LeftOut {
        /// Whether it was the shorter run.
        quick: bool,
    },
    /// The machine disturbed them past its stated limits.
    Disturbed,
    /// They ran, and give no number for this metric.
    NoValue {
        /// The cell.
        cell: String,
        /// The metric that was read.
        metric: String,
    },
    /// They ran, and the figure that a check makes of their numbers has no value.
    NoFigure {
        /// The check's name.
        check: String,
    },
    /// They should have run, or been measured.
    NotRun {
        /// Whether it is a campaign that is judged.
        is_campaign: bool,
    },
}

/// What judging a claim in one arena gave, for its reason in words.
pub(crate) struct Finding<'a> {
    pub(crate) verdict: Verdict,
    pub(crate) not_tested: Option<NotTested>,
    pub(crate) expected: Verdict,
    /// Checks that `--quick` left out.
    pub(crate) left_out: &'a [&'a Check],
}

/// The sets under which a claim was judged, by what came out, and how many more a whole run has.
pub(crate) struct Sets<'a> {
    pub(crate) base: &'a str,
    pub(crate) holding: &'a [String],
    pub(crate) failing: &'a [String],
    /// If the base is undecided, it is in one of the two lists above, too.
    pub(crate) undecided: &'a [String],
    pub(crate) without_effect: &'a [String],
    /// By `--quick`.
    pub(crate) left_out: usize,
    /// Not run, or not to the end.
    pub(crate) not_run: usize,
    /// Run, and without a figure of a check.
    pub(crate) without_figure: usize,
}

impl Sets<'_> {
    /// How many sets give no answer.
    pub(crate) const fn unjudged(&self) -> usize {
        self.left_out + self.not_run + self.without_figure
    }
}

/// How many of a claim's checks were judged.
pub(crate) struct Part {
    pub(crate) judged: usize,
    pub(crate) all: usize,
}

/// Under which sets a claim holds and under which it fails, the base first: `fails under base; holds under a,
/// b`; of a claim that was judged in part, by how many of its checks. Empty if it was judged under none.
pub(crate) fn under(sets: &Sets<'_>, part: Option<Part>) -> String {
    let words = under_sets(sets);
    if words.is_empty() {
        return words;
    }
    let part = part.map_or_else(String::new, |Part { judged, all }| {
        format!("{judged} of {} judged: ", counted(all, "check"))
    });
    let more = match sets.left_out {
        0 => String::new(),
        1 => "; 1 more set is judged without --quick".to_owned(),
        count => format!("; {count} more sets are judged without --quick"),
    };
    let open = match sets.not_run {
        0 => String::new(),
        1 => "; 1 more set did not run to its end".to_owned(),
        count => format!("; {count} more sets did not run to their end"),
    };
    let bare = match sets.without_figure {
        0 => String::new(),
        1 => "; 1 more set gives no figure".to_owned(),
        count => format!("; {count} more sets give no figure"),
    };
    let others: Vec<String> = sets.undecided.iter().filter(|name| *name != sets.base).cloned().collect();
    let undecided = match others.is_empty() {
        true => String::new(),
        false => format!("; undecided under {}", others.join(", ")),
    };
    let idle = match sets.without_effect {
        [] => String::new(),
        [one] => format!("; {one} changes nothing here"),
        many => format!("; {} change nothing here", many.join(", ")),
    };
    format!("{part}{words}{undecided}{idle}{more}{open}{bare}")
}

fn under_sets(sets: &Sets<'_>) -> String {
    let &Sets { base, holding, failing, undecided, without_effect, .. } = sets;
    let is_base_undecided = undecided.iter().any(|name| name == base);
    let others = |names: &[String]| names.iter().filter(|name| *name != base).cloned().collect::<Vec<_>>();
    let holds = holding.iter().any(|name| name == base);
    let fails = failing.iter().any(|name| name == base);
    let (holding, failing) = (others(holding), others(failing));
    let rest = sets.unjudged() + without_effect.len() + undecided.iter().filter(|it| *it != base).count();
    let base = match (base == "base", is_base_undecided) {
        (true, false) => base.to_owned(),
        (true, true) => format!("{base} (undecided)"),
        (false, false) => format!("{base} (base)"),
        (false, true) => format!("{base} (base, undecided)"),
    };
    let also = |names: &[String]| match names {
        [] => String::new(),
        [one] => format!(" and {one}"),
        // "All" would be more than is known.
        many if rest > 0 => format!(", {}", many.join(", ")),
        [_, _] => " and both other sets".to_owned(),
        many => format!(" and all {} other sets", many.len()),
    };
    let list = |verb: &str, names: &[String]| {
        if names.is_empty() { String::new() } else { format!("; {verb} under {}", names.join(", ")) }
    };
    match (holds, fails) {
        (true, _) if failing.is_empty() => format!("holds under {base}{}", also(&holding)),
        (true, _) if holding.is_empty() => format!("holds under {base} alone{}", list("fails", &failing)),
        (true, _) => format!("holds under {base}, {}{}", holding.join(", "), list("fails", &failing)),
        (_, true) if holding.is_empty() => format!("fails under {base}{}", also(&failing)),
        (_, true) => format!("fails under {base}{}{}", list("holds", &holding), list("fails", &failing)),
        _ if holding.is_empty() && failing.is_empty() => String::new(),
        _ => format!("{base} not judged{}{}", list("holds", &holding), list("fails", &failing)),
    }
}

/// Why a verdict is what it is. The study's own words are those of the expected verdict; beside another one
/// they say so.
pub(crate) fn why(claim: &Claim, finding: &Finding<'_>, under_base: Option<&UnderAssumption>) -> String {
    let Finding { verdict, not_tested, expected, left_out } = finding;
    let mut parts = Vec::new();
    match verdict {
        Verdict::NotTested | Verdict::Disturbed => parts.extend(not_tested.as_ref().map(NotTested::words)),
        Verdict::Reproduced | Verdict::Consistent => {}
        Verdict::PartlyJudged => {
            let names: Vec<_> = left_out.iter().take(MOST_LISTED).map(|check| check.name.as_str()).collect();
            let more = left_out.len().saturating_sub(MOST_LISTED);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            parts.push(format!("--quick leaves out what decides: {}{more}", names.join("; ")));
        }
        Verdict::Differs => parts.extend(under_base.map(failed)),
    }
    if verdict == expected {
        parts.push(claim.why.clone());
    } else if not_tested.is_none() {
        parts.push(format!("Of the expected verdict ({expected}) the study says: {}", claim.why));
    }
    parts.join(". ")
}

impl NotTested {
    fn words(&self) -> String {
        match self {
            Self::NoCheck => "the study has no check for it".to_owned(),
            Self::Arena(arenas) => format!("it needs --arena {}", arena_list(arenas)),
            Self::LeftOut { quick: true } => {
                "the shorter run leaves its cells out; run without --quick".to_owned()
            }
            Self::LeftOut { quick: false } => "its cells do not run in this arena".to_owned(),
            Self::Disturbed => {
                "not judged: the machine disturbed its runs past the stated limits; --resume runs those again"
                    .to_owned()
            }
            Self::NoValue { cell, metric } => {
                format!("{cell} ran, and more than half of its repetitions have no number for {metric}")
            }
            Self::NoFigure { check } => {
                format!("{check}: its cells ran, and give no figure: a division by zero, or no spread")
            }
            Self::NotRun { is_campaign: false } => {
                "its cells did not run to their end; --resume goes on".to_owned()
            }
            Self::NotRun { is_campaign: true } => "the campaign has no records of its cells".to_owned(),
        }
    }
}

/// The checks that fail under a set.
fn failed(under: &UnderAssumption) -> String {
    let failed: Vec<_> = under.checks.iter().filter(|check| check.holds == Some(false)).collect();
    let listed: Vec<_> = failed.iter().take(MOST_LISTED).map(|check| in_full(check)).collect();
    let more = failed.len().saturating_sub(MOST_LISTED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!(
        "{} of {} checks fail under {}: {}{more}",
        failed.len(),
        under.checks.len(),
        under.assumption,
        listed.join("; ")
    )
}

/// Checks up to which a claim's figures are printed one by one. Chosen.
const MOST_PRINTED: usize = 8;
/// Failing checks that a reason spells out. Chosen.
const MOST_LISTED: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_comes_first_whatever_it_is_called() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let under = |holding: &[&str], failing: &[&str]| {
            let (holding, failing) = (&names(holding)[..], &names(failing)[..]);
            let (undecided, without_effect) = (&[][..], &[][..]);
            let (left_out, not_run, without_figure) = (0, 0, 0);
            let sets = Sets {
                base: "ns-2",
                holding,
                failing,
                undecided,
                without_effect,
                left_out,
                not_run,
                without_figure,
            };
            under(&sets, None)
        };
        assert_eq!(under(&["ns-2", "a", "b", "c"], &[]), "holds under ns-2 (base) and all 3 other sets");
        assert_eq!(under(&["ns-2", "a"], &["b"]), "holds under ns-2 (base), a; fails under b");
        assert_eq!(under(&["b"], &["ns-2", "a"]), "fails under ns-2 (base); holds under b; fails under a");
        assert_eq!(under(&[], &["ns-2", "a", "b"]), "fails under ns-2 (base) and both other sets");
        assert_eq!(under(&[], &[]), "");
    }

    #[test]
    fn sets_that_leave_it_open_and_sets_that_change_nothing_are_named() {
        let [base, a, b] = ["base", "a", "b"].map(str::to_owned);
        let holding = [base.clone(), a];
        let sets = Sets {
            base: "base",
            holding: &holding,
            failing: &[],
            undecided: &[base, b],
            without_effect: &["c".to_owned()],
            left_out: 0,
            not_run: 0,
            without_figure: 0,
        };
        let words = "holds under base (undecided) and a; undecided under b; c changes nothing here";
        assert_eq!(under(&sets, None), words);
    }

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
    fn an_order_names_both_sides_and_its_direction() {
        let cells = falling([("udp-4", "flows.x.loss_rate"), ("tcp-4", "flows.x.loss_rate")]);
        assert_eq!(shown_must(&cells), "tcp-4 less than udp-4");
        assert_eq!(in_full(&cells), ": 200 % (udp-4), 200 % (tcp-4); asked: tcp-4 less than udp-4");
        let flows = falling([("home", "flows.tcp.delay_ms.p90"), ("home", "flows.udp.delay_ms.p90")]);
        assert_eq!(shown_must(&flows), "udp less than tcp");
        let both = falling([("near", "flows.tcp.delay_ms.p90"), ("far", "flows.udp.delay_ms.p90")]);
        assert_eq!(value_labels(&both), ["near tcp", "far udp"]);
    }

    #[test]
    fn a_range_has_no_negative_zero() {
        assert_eq!(shown_range(None, (-0.001, 0.0), Some(2)), "0.00");
        assert_eq!(shown_range(None, (-0.011, 0.0), Some(2)), "-0.01 to 0.00");
    }

    #[test]
    fn values_carry_four_digits_and_their_unit() {
        assert_eq!(shown(Some(Unit::Bps), 1_370_400.0), "1.37 Mb/s");
        assert_eq!(shown(Some(Unit::Pps), 1249.6), "1250/s");
        assert_eq!(shown(Some(Unit::Share), 0.031_26), "3.126 %");
        assert_eq!(shown(Some(Unit::Packets), 9.304), "9.304");
        assert_eq!(shown(Some(Unit::Count), 4.0), "4");
        assert_eq!(shown(None, 4.0), "4");
    }
}
