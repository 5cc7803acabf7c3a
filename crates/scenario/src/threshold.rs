//! The bounds of thresholds, `>= 3.6`: how they are written, and when a figure holds one.
//!
//! What a threshold's figure is about, `demand` finds out.

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
    /// How the figure must compare with the value.
    pub operator: Operator,
    /// In the figure's own unit; `true` is 1 and `false` is 0.
    pub value: f64,
}

/// How a figure compares with a value.
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
    const ALL: [Self; 6] =
        [Self::AtLeast, Self::AtMost, Self::Equal, Self::Different, Self::Above, Self::Below];

    /// As it is written.
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

    /// What holds if this does not, of a figure that is known.
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
    /// Whether `figure` holds it.
    pub fn holds(self, figure: f64) -> bool {
        let found = figure.partial_cmp(&self.value);
        match self.operator {
            Operator::AtLeast => matches!(found, Some(Ordering::Greater | Ordering::Equal)),
            Operator::Above => found == Some(Ordering::Greater),
            Operator::AtMost => matches!(found, Some(Ordering::Less | Ordering::Equal)),
            Operator::Below => found == Some(Ordering::Less),
            Operator::Equal => found == Some(Ordering::Equal),
            Operator::Different => matches!(found, Some(Ordering::Less | Ordering::Greater)),
        }
    }

    /// Reads `>= 3.6`.
    fn read(text: &str) -> Result<Self, Problem> {
        let text = text.trim();
        let Some(operator) = Operator::ALL.into_iter().find(|it| text.starts_with(it.sign())) else {
            return Err(Problem::new(format!("found {}, expected {FORM}", quote(text))));
        };
        let value = text[operator.sign().len()..].trim();
        let number = match value {
            "true" => Some(1.0),
            "false" => Some(0.0),
            _ => quantity::percentage(value).or_else(|| value.parse().ok()),
        };
        match number.filter(|number| number.is_finite()) {
            Some(value) => Ok(Self { operator, value }),
            None => Err(Problem::new(format!("found the value {}, expected {VALUE}", quote(value)))),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operator.sign(), self.value)
    }
}

/// Splits `call.mos >= 3.6`, as `--require` has it, into the figure and its bound, `>= 3.6`; with
/// `is_opposite` the bound is what must hold if the text must not: `--fail-if "call.mos < 3.6"`. Which
/// figures are shares says `percent_of`.
///
/// # Errors
/// What was found and what would be right, in one line.
pub fn split_threshold(
    text: &str,
    is_opposite: bool,
    percent_of: PercentOf,
) -> Result<(String, String), String> {
    // A swept value may hold an equals sign, and no other.
    let at = text.find(['<', '>']).or_else(|| text.find("==")).or_else(|| text.find("!="));
    let (figure, bound) = at.map_or((text, ""), |at| text.split_at(at));
    if bound.is_empty() || figure.trim().is_empty() {
        return Err(format!("expected FLOW.FIGURE, {OPERATORS} and a number, as in \"call.mos >= 3.6\""));
    }
    if let Some(why) = misread_unit(figure, bound, percent_of) {
        return Err(why);
    }
    let value = value_of(bound);
    let bound = Bound::read(bound).map_err(|problem| problem.message)?;
    let operator = if is_opposite { bound.operator.opposite() } else { bound.operator };
    // A percentage stays one: without its sign a whole share could be meant in per cent again.
    let bound = match quantity::percentage(value) {
        Some(_) => format!("{} {value}", operator.sign()),
        None => Bound { operator, ..bound }.to_string(),
    };
    Ok((figure.trim().to_owned(), bound))
}

/// The mistake in the unit of a bound: a share such as `loss_rate <= 1` without a percent sign, which may be
/// meant in per cent, or a percentage of what is no share.
fn misread_unit(figure: &str, bound: &str, percent_of: PercentOf) -> Option<String> {
    let (name, percent) = measured(figure, percent_of)?;
    let found = value_of(bound);
    if quantity::percentage(found).is_some() {
        return (percent == Percent::Never)
            .then(|| format!("{name} is no share, and found {found}: expected a number in its own unit"));
    }
    let value: f64 = found.parse().ok().filter(|value| (1.0..=100.0).contains(value))?;
    let or_all = if value == 1.0 { " or 100%" } else { "" };
    (percent == Percent::Share)
        .then(|| format!("{name} is a share, and found {found}: did you mean {found}%{or_all}?"))
}

/// What follows a bound's operator.
fn value_of(bound: &str) -> &str {
    bound.trim().trim_start_matches(['<', '>', '=', '!']).trim()
}

/// The last name in the path of the figure that `text` has, and whether the figure is a share: of
/// `call.loss_rate.mean@KEY=VALUE` the name is `loss_rate`. `None` if there is no such figure.
fn measured(text: &str, percent_of: PercentOf) -> Option<(&str, Percent)> {
    let path = text.split('@').next().unwrap_or_default().trim();
    // The first name is that of the flow, and of a link the first two.
    let below = path.match_indices('.').map(|(at, _)| &path[at + 1..]);
    below.flat_map(|path| [Some(path), without_statistic(path)]).flatten().find_map(|path| {
        let percent = percent_of(path)?;
        Some((without_statistic(path).unwrap_or(path).rsplit('.').next()?, percent))
    })
}

/// The path before a statistic: `mos` of `mos.p10`.
fn without_statistic(path: &str) -> Option<&str> {
    let (path, word) = path.rsplit_once('.')?;
    // A word that is no statistic is reported later, where the figure is looked up.
    let is_percentile = word.strip_prefix('p').is_some_and(|rank| rank.parse::<f64>().is_ok());
    (is_percentile || matches!(word, "mean" | "median" | "min" | "max")).then_some(path)
}

/// Checks one value of `[thresholds]`, a bound or a list of bounds of `figure`. Which figures are shares says
/// `percent_of`.
pub(crate) fn check(node: &Node, figure: &str, at: &str, percent_of: Option<PercentOf>, log: &mut Log) {
    for Written { place, text, bound } in written(node) {
        let misread = || {
            let text = text?;
            Some((text, misread_unit(figure, text, percent_of?)?))
        };
        match bound.map(|_| misread()) {
            Err(problem) => log.mistake(place, at, problem.message, problem.help),
            // Files of earlier versions have the whole as 1.
            Ok(Some((text, why))) if value_of(text).parse() == Ok(1.0) => {
                log.warning(place, at, format!("{why} It is read as 100%"));
            }
            Ok(Some((_, why))) => log.mistake(place, at, why, None),
            Ok(None) => {}
        }
    }
}

/// Adds a bound of the figure `name` to those that are there: one that comes later lifts none.
pub(crate) fn add(table: &mut Table, name: &str, bound: Node) {
    let Some(old) = table.get_mut(name) else { return table.set(name, bound) };
    match &mut old.value {
        Value::List(list) => list.push(bound),
        _ => {
            let place = old.place.clone();
            let first = core::mem::replace(old, Node::new(Value::List(Vec::new()), place));
            old.value = Value::List(vec![first, bound]);
        }
    }
}

/// One or more bounds, each with its place.
pub(crate) fn bounds(node: &Node) -> impl Iterator<Item = (&Place, Result<Bound, Problem>)> {
    written(node).map(|Written { place, bound, .. }| (place, bound))
}

/// A bound as it was written.
struct Written<'a> {
    place: &'a Place,
    text: Option<&'a str>,
    bound: Result<Bound, Problem>,
}

/// One or more bounds as they were written.
fn written(node: &Node) -> impl Iterator<Item = Written<'_>> {
    let nodes = match &node.value {
        Value::List(list) if !list.is_empty() => list.as_slice(),
        _ => core::slice::from_ref(node),
    };
    nodes.iter().map(|node| {
        let bound = match node.as_text() {
            Some(text) => Bound::read(text),
            None => Err(wrong(node, FORM)),
        };
        Written { place: &node.place, text: node.as_text(), bound }
    })
}

const FORM: &str = ">=, <=, >, <, == or != and a number, as in \">= 3.6\"";
/// What is between figure and value on the command line.
const OPERATORS: &str = ">=, <=, >, <, == or !=";
const VALUE: &str = "a number in the figure's own unit, a percentage such as 95%, true or false";

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
            assert_eq!([1.0, 2.0, 3.0].map(|it| at(operator).holds(it)), holds, "{operator:?}");
            assert_eq!([1.0, 2.0, 3.0].map(|it| !at(operator.opposite()).holds(it)), holds, "{operator:?}");
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
