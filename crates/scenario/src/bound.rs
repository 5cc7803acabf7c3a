//! Reads the bounds of thresholds, such as `>= 3.6`, and tells whether a figure keeps a bound.
//!
//! - A *figure* is a number in the summary of a run, such as the share of messages in time.
//! - A *share* is a figure from 0 to 1. A bound of a share may be in per cent: `>= 95%`.
//!
//! The figure of a threshold is read in `crate::threshold`. Begin to read with [`Bound`], and for the command
//! line with [`split_threshold`].

use core::cmp::Ordering;
use core::fmt;

use crate::diagnostic::{Log, Place};
use crate::options::{Percent, PercentOf};
use crate::quantity::{self, Problem, quote};
use crate::read::wrong;
use crate::tree::{Node, Table, Value};

/// An operator and a value: `>= 3.6`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The comparison of the figure with the value.
    pub operator: Operator,
    /// The value, in the unit of the figure. `true` is 1, `false` is 0, and 95% is 0.95.
    pub value: f64,
}

/// A comparison of a figure with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `>=`
    AtLeast,
    /// `>`
    Above,
    /// `<=`
    AtMost,
    /// `<`
    Below,
    /// `==`
    Equal,
    /// `!=`
    Different,
}

impl Operator {
    /// All operators. `>=` comes before `>`, and `<=` before `<`, so that the first one that a text begins
    /// with is the right one.
    const ALL: [Self; 6] =
        [Self::AtLeast, Self::AtMost, Self::Equal, Self::Different, Self::Above, Self::Below];

    /// Returns the operator as it is written.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::AtLeast => ">=",
            Self::Above => ">",
            Self::AtMost => "<=",
            Self::Below => "<",
            Self::Equal => "==",
            Self::Different => "!=",
        }
    }

    /// Returns the operator that holds for a number exactly if this operator does not.
    pub const fn opposite(self) -> Self {
        match self {
            Self::AtLeast => Self::Below,
            Self::Above => Self::AtMost,
            Self::AtMost => Self::Above,
            Self::Below => Self::AtLeast,
            Self::Equal => Self::Different,
            Self::Different => Self::Equal,
        }
    }
}

impl Bound {
    /// Whether `figure` keeps the bound. A figure that is not a number keeps no bound.
    pub fn holds(self, figure: f64) -> bool {
        let Some(order) = figure.partial_cmp(&self.value) else { return false };
        match self.operator {
            Operator::AtLeast => order != Ordering::Less,
            Operator::Above => order == Ordering::Greater,
            Operator::AtMost => order != Ordering::Greater,
            Operator::Below => order == Ordering::Less,
            Operator::Equal => order == Ordering::Equal,
            Operator::Different => order != Ordering::Equal,
        }
    }

    /// Reads a bound such as `>= 3.6`.
    fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim();
        let Some(operator) = Operator::ALL.into_iter().find(|operator| text.starts_with(operator.sign()))
        else {
            return Err(Problem::new(format!("found {}, expected {BOUND_FORM}", quote(text))));
        };
        let value = text[operator.sign().len()..].trim();
        let number = match value {
            "true" => Some(1.0),
            "false" => Some(0.0),
            _ => quantity::percentage(value).or_else(|| value.parse().ok()),
        };
        match number.filter(|number| number.is_finite()) {
            Some(value) => Ok(Self { operator, value }),
            None => Err(Problem::new(format!("found the value {}, expected {VALUE_FORM}", quote(value)))),
        }
    }
}

const BOUND_FORM: &str = ">=, <=, >, <, == or != and a number, as in \">= 3.6\"";
const VALUE_FORM: &str = "a number in the figure's own unit, a percentage such as 95%, true or false";

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operator.sign(), self.value)
    }
}

/// Splits the value of an option, `call.mos >= 3.6`, into the figure `call.mos` and the bound `>= 3.6`.
///
/// For `--fail-if "call.mos < 3.6"` set `is_opposite`. The result is then the bound that must hold so that
/// the run does not fail, `>= 3.6`. `percent_of` tells which figures are shares.
///
/// # Errors
/// Returns what was found and what was expected, on one line.
pub fn split_threshold(
    text: &str,
    is_opposite: bool,
    percent_of: PercentOf,
) -> Result<(String, String), String> {
    // The value of a selected key may hold one equals sign, so `=` alone does not begin a bound.
    let operator_at = text.find(['<', '>']).or_else(|| text.find("==")).or_else(|| text.find("!="));
    let (figure, bound_text) = operator_at.map_or((text, ""), |at| text.split_at(at));
    if bound_text.is_empty() || figure.trim().is_empty() {
        return Err(format!("expected FLOW.FIGURE, {OPERATORS} and a number, as in \"call.mos >= 3.6\""));
    }
    if let Some(mistake) = unit_mistake(figure, bound_text, percent_of) {
        return Err(mistake);
    }
    let bound = Bound::parse(bound_text).map_err(|problem| problem.message)?;
    let operator = if is_opposite { bound.operator.opposite() } else { bound.operator };
    // A percentage keeps its sign. Without the sign, 1 would be read as a share that may be meant in per
    // cent.
    let value = value_text(bound_text);
    let bound = match quantity::percentage(value) {
        Some(_) => format!("{} {value}", operator.sign()),
        None => Bound { operator, ..bound }.to_string(),
    };
    Ok((figure.trim().to_owned(), bound))
}

const OPERATORS: &str = ">=, <=, >, <, == or !=";

/// Returns the mistake in the unit of a bound. It is either a share such as `loss_rate <= 1`, which may be
/// meant in per cent, or a percentage as the bound of a figure that is not a share.
fn unit_mistake(figure: &str, bound: &str, percent_of: PercentOf) -> Option<String> {
    let KnownFigure { name, percent } = find_figure(figure, percent_of)?;
    let value = value_text(bound);
    if quantity::percentage(value).is_some() {
        return (percent == Percent::Never)
            .then(|| format!("{name} is no share, and found {value}: expected a number in its own unit"));
    }
    let number: f64 = value.parse().ok()?;
    if percent != Percent::Share || !(1.0..=100.0).contains(&number) {
        return None;
    }
    let or_all = if number == 1.0 { " or 100%" } else { "" };
    Some(format!("{name} is a share, and found {value}: did you mean {value}%{or_all}?"))
}

/// Returns the text after the operator of a bound.
fn value_text(bound: &str) -> &str {
    bound.trim().trim_start_matches(['<', '>', '=', '!']).trim()
}

/// A figure that summaries have.
struct KnownFigure<'a> {
    /// The last name in the path of the figure: `loss_rate` in `call.loss_rate.mean@KEY=VALUE`.
    name: &'a str,
    percent: Percent,
}

/// Returns the figure on the left side of a threshold, or `None` if there is no such figure.
fn find_figure(left_side: &str, percent_of: PercentOf) -> Option<KnownFigure<'_>> {
    let path = left_side.split('@').next().unwrap_or_default().trim();
    // The name of a flow is one word, and that of a link is two. So the figure begins after one of the
    // points.
    for (point, _) in path.match_indices('.') {
        let figure = &path[point + 1..];
        for candidate in [Some(figure), without_statistic(figure)].into_iter().flatten() {
            if let Some(percent) = percent_of(candidate) {
                let without_statistic = without_statistic(candidate).unwrap_or(candidate);
                return Some(KnownFigure { name: without_statistic.rsplit('.').next()?, percent });
            }
        }
    }
    None
}

/// Returns the path before a statistic: `mos` for `mos.p10`. Returns `None` if no statistic follows.
fn without_statistic(path: &str) -> Option<&str> {
    let (before, word) = path.rsplit_once('.')?;
    let is_percentile = word.strip_prefix('p').is_some_and(|rank| rank.parse::<f64>().is_ok());
    (is_percentile || matches!(word, "mean" | "median" | "min" | "max")).then_some(before)
}

/// Checks the bounds of one figure in `[thresholds]`: one bound or a list. `key` is the key in messages.
pub(crate) fn check(node: &Node, figure: &str, key: &str, percent_of: Option<PercentOf>, log: &mut Log) {
    for WrittenBound { place, text, bound } in written_bounds(node) {
        if let Err(problem) = bound {
            log.mistake(place, key, problem);
            continue;
        }
        let (Some(text), Some(percent_of)) = (text, percent_of) else { continue };
        let Some(mistake) = unit_mistake(figure, text, percent_of) else { continue };
        if value_text(text).parse() == Ok(1.0) {
            // Files of earlier versions write the whole as 1.
            log.warning(place, key, format!("{mistake} It is read as 100%"));
        } else {
            log.mistake(place, key, mistake);
        }
    }
}

/// Adds a bound to the figure `name`. The bounds that are there remain, because a later bound removes none.
pub(crate) fn add(table: &mut Table, name: &str, bound: Node) {
    let Some(present) = table.get_mut(name) else { return table.set(name, bound) };
    match &mut present.value {
        Value::List(bounds) => bounds.push(bound),
        _ => {
            let place = present.place.clone();
            let first = core::mem::replace(present, Node::new(Value::List(Vec::new()), place));
            present.value = Value::List(vec![first, bound]);
        }
    }
}

pub(crate) fn bounds(node: &Node) -> impl Iterator<Item = (&Place, Result<Bound, Problem>)> {
    written_bounds(node).map(|WrittenBound { place, bound, .. }| (place, bound))
}

/// A bound in a file.
struct WrittenBound<'a> {
    place: &'a Place,
    /// The text of the bound. `None` if the value is not a text, which is a mistake.
    text: Option<&'a str>,
    bound: Result<Bound, Problem>,
}

fn written_bounds(node: &Node) -> impl Iterator<Item = WrittenBound<'_>> {
    let nodes = match &node.value {
        Value::List(list) if !list.is_empty() => list.as_slice(),
        _ => core::slice::from_ref(node),
    };
    nodes.iter().map(|node| {
        let text = node.as_text();
        let bound = text.map_or_else(|| Err(wrong(node, BOUND_FORM)), Bound::parse);
        WrittenBound { place: &node.place, text, bound }
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A table of figures as small as these tests need. The whole table is in another crate.
    pub(crate) fn percent_of(path: &str) -> Option<Percent> {
        match path {
            "loss_rate" | "in_time" | "utilisation" => Some(Percent::Share),
            "jain_index" | "judged.worst" => Some(Percent::Possible),
            "mos"
            | "call.mos"
            | "call.r"
            | "round_trip_delay_ms.p99"
            | "goodput_bps"
            | "lost"
            | "ledger.missing"
            | "queue_packets.max" => Some(Percent::Never),
            _ => None,
        }
    }

    #[test]
    fn each_operator_holds_what_it_says_and_its_opposite_the_rest() {
        let at = |operator| Bound { operator, value: 2.0 };
        for (operator, holds) in [
            (Operator::AtLeast, [false, true, true]),
            (Operator::Above, [false, false, true]),
            (Operator::AtMost, [true, true, false]),
            (Operator::Below, [true, false, false]),
            (Operator::Equal, [false, true, false]),
            (Operator::Different, [true, false, true]),
        ] {
            assert_eq!([1.0, 2.0, 3.0].map(|figure| at(operator).holds(figure)), holds, "{operator:?}");
            assert_eq!(
                [1.0, 2.0, 3.0].map(|figure| !at(operator.opposite()).holds(figure)),
                holds,
                "{operator:?}"
            );
            assert!(!at(operator).holds(f64::NAN), "{operator:?}");
        }
    }

    #[test]
    fn an_option_is_split_at_its_operator_and_its_opposite_is_turned_round() {
        let split = |text, opposite| split_threshold(text, opposite, percent_of);
        assert_eq!(split("call.mos>=3.6", false), Ok(("call.mos".to_owned(), ">= 3.6".to_owned())));
        assert_eq!(
            split("call.mos@path.up.loss=0.01 < 3.6", true),
            Ok(("call.mos@path.up.loss=0.01".to_owned(), ">= 3.6".to_owned()))
        );
        assert_eq!(split("doc.file.intact == true", false).unwrap().1, "== 1");
        assert_eq!(split("game.in_time >= 95%", false).unwrap().1, ">= 95%");
        assert_eq!(split("game.loss_rate < 100 %", true).unwrap().1, ">= 100 %");
        for text in ["call.mos", "call.mos = 3", ">= 3", "call.mos >= x", ""] {
            assert!(split(text, false).is_err(), "{text}");
        }
    }

    #[test]
    fn a_percentage_is_of_shares_alone() {
        for text in [
            "call.mos >= 3.1%",
            "call.call.mos.mean >= 70%",
            "call.call.r > 70%",
            "game.round_trip_delay_ms.p99 <= 1%",
            "game.goodput_bps >= 80%",
            "game.lost <= 1%",
            "game.ledger.missing <= 1%",
            "link.up.queue_packets.max@path.up.loss=1% < 50%",
        ] {
            let why = split_threshold(text, false, percent_of).unwrap_err();
            assert!(why.contains("is no share, and found"), "{text}: {why}");
        }
        for text in [
            "game.loss_rate <= 1%",
            "link.up.utilisation <= 80%",
            "g.jain_index >= 95%",
            // There is no such figure. The mistake is reported where the figure is looked up.
            "game.loss <= 1%",
            "g.judged.worst > 9%",
        ] {
            assert!(split_threshold(text, false, percent_of).is_ok(), "{text}");
        }
        assert!(
            split_threshold("link.up.utilisation <= 80", false, percent_of)
                .unwrap_err()
                .contains("did you mean 80%")
        );
    }
}
