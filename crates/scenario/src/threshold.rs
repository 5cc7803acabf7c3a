//! The bounds of thresholds, `>= 3.6`: how they are written, and when a figure holds one.
//!
//! What a threshold's figure is about, `demand` finds out.

use core::cmp::Ordering;
use core::fmt;

use crate::diagnostic::{Log, Place};
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
/// `is_opposite` the bound is what must hold if the text must not: `--fail-if "call.mos < 3.6"`.
///
/// # Errors
/// What was found and what would be right, in one line.
pub fn split_threshold(text: &str, is_opposite: bool) -> Result<(String, String), String> {
    // A swept value may hold an equals sign, and no other.
    let at = text.find(['<', '>']).or_else(|| text.find("==")).or_else(|| text.find("!="));
    let (figure, bound) = at.map_or((text, ""), |at| text.split_at(at));
    if bound.is_empty() || figure.trim().is_empty() {
        return Err(format!("expected FLOW.FIGURE, {OPERATORS} and a number, as in \"call.mos >= 3.6\""));
    }
    if let Some(why) = bare_share(figure, bound) {
        return Err(why);
    }
    let bound = Bound::read(bound).map_err(|problem| problem.message)?;
    let operator = if is_opposite { bound.operator.opposite() } else { bound.operator };
    Ok((figure.trim().to_owned(), Bound { operator, ..bound }.to_string()))
}

/// The mistake in a bound on a share, such as `loss_rate <= 1`, that has no percent sign and may be meant in
/// per cent.
fn bare_share(figure: &str, bound: &str) -> Option<String> {
    let path = figure.split('@').next()?.trim();
    let is_statistic = |name: &&str| {
        let percentile = name.strip_prefix('p').is_some_and(|rank| rank.parse::<f64>().is_ok());
        percentile || matches!(*name, "mean" | "median" | "min" | "max")
    };
    let name = path.rsplit('.').find(|name| !is_statistic(name))?;
    if !(name.ends_with("_rate") || name.ends_with("_share") || SHARES.contains(&name)) {
        return None;
    }
    let bare = bound.trim_start_matches(['<', '>', '=', '!']).trim();
    let value: f64 = bare.parse().ok().filter(|value| (1.0..=100.0).contains(value))?;
    let or_all = if value == 1.0 { " or 100%" } else { "" };
    Some(format!("{name} is a share, and found {bare}: did you mean {bare}%{or_all}?"))
}

/// Figures that are shares, besides those whose names say it (docs/reference/metrics.md).
const SHARES: [&str; 4] = ["in_time", "density", "gap_density", "utilisation"];

/// Checks the form of one value of `[thresholds]`: a bound, or a list of bounds.
pub(crate) fn check(node: &Node, at: &str, log: &mut Log) {
    for (place, bound) in bounds(node) {
        if let Err(problem) = bound {
            log.mistake(place, at, problem.message, problem.help);
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
            let first = core::mem::replace(old, Node { value: Value::List(Vec::new()), place });
            old.value = Value::List(vec![first, bound]);
        }
    }
}

/// One or more bounds, each with its place.
pub(crate) fn bounds(node: &Node) -> impl Iterator<Item = (&Place, Result<Bound, Problem>)> {
    let nodes = match &node.value {
        Value::List(list) if !list.is_empty() => list.as_slice(),
        _ => core::slice::from_ref(node),
    };
    nodes.iter().map(|node| {
        let bound = match node.as_text() {
            Some(text) => Bound::read(text),
            None => Err(wrong(node, FORM)),
        };
        (&node.place, bound)
    })
}

const FORM: &str = ">=, <=, >, <, == or != and a number, as in \">= 3.6\"";
/// What stands between the two on the command line.
const OPERATORS: &str = ">=, <=, >, <, == or !=";
const VALUE: &str = "a number in the figure's own unit, a percentage such as 95%, true or false";

#[cfg(test)]
mod tests {
    use super::*;

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
        let split = |text, opposite| split_threshold(text, opposite);
        assert_eq!(split("call.mos>=3.6", false), Ok(("call.mos".to_owned(), ">= 3.6".to_owned())));
        assert_eq!(
            split("call.mos@path.up.loss=0.01 < 3.6", true),
            Ok(("call.mos@path.up.loss=0.01".to_owned(), ">= 3.6".to_owned()))
        );
        assert_eq!(split("doc.file.intact == true", false).unwrap().1, "== 1");
        assert_eq!(split("game.in_time >= 95%", false).unwrap().1, ">= 0.95");
        for text in ["call.mos", "call.mos = 3", ">= 3", "call.mos >= x", ""] {
            assert!(split(text, false).is_err(), "{text}");
        }
    }
}
