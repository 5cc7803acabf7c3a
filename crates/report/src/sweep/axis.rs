//! One swept key with its values, and what a scale needs to place them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::view::plain;

/// A swept key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub key: String,
    /// Numbers by size, so that neighbours are; all else in the order of the cells.
    pub values: Vec<Value>,
    /// The values as numbers of one unit; `None` if they are no such numbers.
    pub numbers: Option<Numbers>,
}

/// Values of one unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Numbers {
    pub values: Vec<f64>,
    /// Empty for bare numbers.
    pub unit: &'static str,
}

impl Axis {
    /// The keys that have more than one value over all cells, whose keys and values `swept` are.
    pub(crate) fn all<'a>(swept: impl Iterator<Item = (&'a String, &'a Value)>) -> Vec<Self> {
        let mut axes: BTreeMap<&String, (Vec<Value>, BTreeSet<String>)> = BTreeMap::new();
        for (key, value) in swept {
            let (values, known) = axes.entry(key).or_default();
            if known.insert(value.to_string()) {
                values.push(value.clone());
            }
        }
        let axes = axes.into_iter().filter(|(_, (values, _))| values.len() > 1);
        axes.map(|(key, (values, _))| Self::new(key.clone(), values)).collect()
    }

    fn new(key: String, mut values: Vec<Value>) -> Self {
        let mut numbers = Numbers::parse(&values);
        if let Some(numbers) = &mut numbers {
            let mut pairs: Vec<(f64, Value)> = numbers.values.iter().copied().zip(values).collect();
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
            (numbers.values, values) = pairs.into_iter().unzip();
        }
        Self { key, values, numbers }
    }

    /// The index of each value, by its JSON.
    pub(crate) fn places(&self) -> BTreeMap<String, usize> {
        self.values.iter().map(Value::to_string).zip(0..).collect()
    }

    /// A value for people.
    pub(crate) fn label(&self, index: usize) -> String {
        self.values.get(index).map(plain).unwrap_or_default()
    }

    /// A value as one types it: a share of packets in per cent.
    pub(crate) fn typed(&self, index: usize) -> String {
        let is_share = self.key.ends_with(".loss") || self.key.ends_with(".loss.rate");
        let share = self.values.get(index).filter(|_| is_share).and_then(Value::as_f64);
        // Moving the point is exact, where a product is not: 0.011 is 1.1 %.
        let percent = share.and_then(|share| format!("{share}e2").parse::<f64>().ok());
        percent.map_or_else(|| self.label(index), |percent| format!("{percent}%"))
    }

    /// `loss, each way (path.*.loss)`, or the key alone if it has no words here.
    pub(crate) fn in_words(&self) -> String {
        let words = match &self.key.split('.').collect::<Vec<_>>()[..] {
            ["path", direction, rest @ ..] => {
                let direction = match *direction {
                    "*" => "each way",
                    direction => direction,
                };
                what(rest).map(|what| format!("{what}, {direction}"))
            }
            ["link", "*", rest @ ..] => what(rest).map(|what| format!("{what}, each link")),
            ["link", name, rest @ ..] => what(rest).map(|what| format!("{what}, {name}")),
            _ => None,
        };
        words.map_or_else(|| self.key.clone(), |words| format!("{words} ({})", self.key))
    }

    /// `path.up.delay, ms`
    pub(crate) fn title(&self) -> String {
        match &self.numbers {
            Some(Numbers { unit, .. }) if !unit.is_empty() => format!("{}, {unit}", self.key),
            _ => self.key.clone(),
        }
    }

    /// Several neighbouring values in a few words.
    pub(crate) fn span(&self, first: usize, last: usize) -> String {
        match (first == last, self.numbers.is_some()) {
            (true, _) => self.label(first),
            (false, true) => format!("{} to {}", self.label(first), self.label(last)),
            (false, false) => (first..=last).map(|at| self.label(at)).collect::<Vec<_>>().join(" | "),
        }
    }
}

/// A link's key in words.
fn what(key: &[&str]) -> Option<&'static str> {
    match key {
        ["loss"] | ["loss", "rate"] => Some("loss"),
        ["delay"] => Some("delay"),
        ["rate"] => Some("rate"),
        ["queue"] => Some("queue"),
        ["queue", "limit"] => Some("room in the queue"),
        _ => None,
    }
}

impl Numbers {
    fn parse(values: &[Value]) -> Option<Self> {
        let parsed: Vec<(f64, &'static str)> = values.iter().map(number).collect::<Option<_>>()?;
        let unit = parsed.first()?.1;
        let is_one_unit = parsed.iter().all(|(value, other)| *other == unit && value.is_finite());
        is_one_unit.then(|| Self { values: parsed.into_iter().map(|(value, _)| value).collect(), unit })
    }
}

/// A bare number, or a quantity as scenarios write it, in the unit of its kind.
fn number(value: &Value) -> Option<(f64, &'static str)> {
    if let Some(number) = value.as_f64() {
        return Some((number, ""));
    }
    let text = value.as_str()?.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (_, factor, unit) = UNITS.iter().find(|(name, ..)| *name == unit.trim())?;
    Some((digits.parse::<f64>().ok()? * factor, unit))
}

/// Units of scenarios (docs/reference/interface.md), and in which one of their kind an axis is drawn.
const UNITS: [(&str, f64, &str); 19] = [
    ("ns", 1e-6, "ms"),
    ("us", 1e-3, "ms"),
    ("ms", 1.0, "ms"),
    ("s", 1e3, "ms"),
    ("min", 6e4, "ms"),
    ("bps", 1e-6, "Mbps"),
    ("kbps", 1e-3, "Mbps"),
    ("Mbps", 1.0, "Mbps"),
    ("Gbps", 1e3, "Mbps"),
    ("B", 1e-3, "kB"),
    ("kB", 1.0, "kB"),
    ("MB", 1e3, "kB"),
    ("KiB", 1.024, "kB"),
    ("MiB", 1048.576, "kB"),
    ("packet", 1.0, "packets"),
    ("packets", 1.0, "packets"),
    ("Hz", 1.0, "Hz"),
    ("%", 1.0, "%"),
    ("", 1.0, ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_says_its_key_in_words_and_its_shares_in_per_cent() {
        let of = |key: &str, values: &[Value]| Axis {
            key: key.to_owned(),
            numbers: Numbers::parse(values),
            values: values.to_vec(),
        };
        let loss = of("path.*.loss", &[0.0.into(), 0.005.into(), 0.011.into(), 1.into()]);
        assert_eq!([0, 1, 2, 3].map(|at| loss.typed(at)), ["0%", "0.5%", "1.1%", "100%"]);
        assert_eq!(loss.in_words(), "loss, each way (path.*.loss)");
        let delay = of("path.up.delay", &["10ms".into()]);
        assert_eq!((delay.typed(0), delay.in_words()), ("10ms".into(), "delay, up (path.up.delay)".into()));
        assert_eq!(
            of("link.wan.queue.limit", &[]).in_words(),
            "room in the queue, wan (link.wan.queue.limit)"
        );
        let count = of("flow.call.count", &[1.into()]);
        assert_eq!((count.typed(0), count.in_words()), ("1".into(), "flow.call.count".into()));
    }

    #[test]
    fn quantities_of_one_kind_are_numbers_of_one_unit_and_others_are_words() {
        let of =
            |values: &[&str]| Numbers::parse(&values.iter().map(|it| Value::from(*it)).collect::<Vec<_>>());
        let numbers = of(&["500 us", "5 ms", "1.5 s"]).unwrap();
        assert_eq!((numbers.values, numbers.unit), (vec![0.5, 5.0, 1500.0], "ms"));
        assert_eq!(of(&["8 kB", "64 KiB"]).unwrap().values, [8.0, 65.536]);
        for words in [&["8 kB", "20 packets"][..], &["drop-tail", "codel"], &["1 parsec"]] {
            assert_eq!(of(words), None, "{words:?}");
        }
    }
}
