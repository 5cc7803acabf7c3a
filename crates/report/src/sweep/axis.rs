//! A swept key as an axis: its values, their labels, and their places on a scale.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::view::plain;

/// A swept key with two or more values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub key: String,
    /// The values. Numbers are in ascending order, so that neighbours in this list are neighbours on the
    /// axis. Other values are in the order of the cells.
    pub values: Vec<Value>,
    /// The values as numbers of one unit. `None` if they are not such numbers.
    pub numbers: Option<Numbers>,
}

/// Numbers of one unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Numbers {
    pub values: Vec<f64>,
    /// Empty for numbers without a unit.
    pub unit: &'static str,
}

impl Axis {
    /// Makes an axis of each key that has several values. `swept` has the key and value pairs of all cells.
    pub(crate) fn all<'a>(swept: impl Iterator<Item = (&'a String, &'a Value)>) -> Vec<Self> {
        #[derive(Default)]
        struct Values {
            in_order: Vec<Value>,
            known: BTreeSet<String>,
        }
        let mut values_by_key: BTreeMap<&String, Values> = BTreeMap::new();
        for (key, value) in swept {
            let values = values_by_key.entry(key).or_default();
            if values.known.insert(value.to_string()) {
                values.in_order.push(value.clone());
            }
        }
        let several = values_by_key.into_iter().filter(|(_, values)| values.in_order.len() > 1);
        several.map(|(key, values)| Self::new(key.clone(), values.in_order)).collect()
    }

    fn new(key: String, values: Vec<Value>) -> Self {
        let Some(numbers) = Numbers::parse(&values) else { return Self { key, values, numbers: None } };
        let mut pairs: Vec<(f64, Value)> = numbers.values.into_iter().zip(values).collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (sorted, values) = pairs.into_iter().unzip();
        Self { key, values, numbers: Some(Numbers { values: sorted, unit: numbers.unit }) }
    }

    /// The index of each value, by the value's JSON.
    pub(crate) fn index_by_json(&self) -> BTreeMap<String, usize> {
        self.values.iter().map(Value::to_string).zip(0..).collect()
    }

    /// The place of a value on a scale: its number. A word has its index as its place.
    pub(crate) fn position(&self, index: usize) -> f64 {
        self.numbers.as_ref().map_or(index as f64, |numbers| numbers.values[index])
    }

    /// A value as the scenario writes it.
    pub(crate) fn label(&self, index: usize) -> String {
        self.values.get(index).map(plain).unwrap_or_default()
    }

    /// A value as the scenario writes it, but with a share of lost packets in per cent.
    pub(crate) fn percent_label(&self, index: usize) -> String {
        let is_share = self.key.ends_with(".loss") || self.key.ends_with(".loss.rate");
        let share = self.values.get(index).filter(|_| is_share).and_then(Value::as_f64);
        // 0.011 is 1.1 %, but 0.011 * 100.0 is 1.0999999999999999. Moving the decimal point in the text is
        // exact.
        let percent = share.and_then(|share| format!("{share}e2").parse::<f64>().ok());
        percent.map_or_else(|| self.label(index), |percent| format!("{percent}%"))
    }

    /// The title of the axis with the unit: `path.up.delay, ms`.
    pub(crate) fn title_with_unit(&self) -> String {
        match &self.numbers {
            Some(Numbers { unit, .. }) if !unit.is_empty() => format!("{}, {unit}", self.key),
            _ => self.key.clone(),
        }
    }

    /// The title of the axis in words: `loss, each way (path.*.loss)`. A key that has no words here is the
    /// title.
    pub(crate) fn title_in_words(&self) -> String {
        let words = match &self.key.split('.').collect::<Vec<_>>()[..] {
            ["path", "*", link_key @ ..] => words_of(link_key).map(|words| format!("{words}, each way")),
            ["path", direction, link_key @ ..] => {
                words_of(link_key).map(|words| format!("{words}, {direction}"))
            }
            ["link", "*", link_key @ ..] => words_of(link_key).map(|words| format!("{words}, each link")),
            ["link", name, link_key @ ..] => words_of(link_key).map(|words| format!("{words}, {name}")),
            _ => None,
        };
        words.map_or_else(|| self.key.clone(), |words| format!("{words} ({})", self.key))
    }

    /// Neighbouring values in one text: `1 ms to 30 ms`. Words are listed.
    pub(crate) fn range_label(&self, first: usize, last: usize) -> String {
        if first == last {
            return self.label(first);
        }
        if self.numbers.is_some() {
            return format!("{} to {}", self.label(first), self.label(last));
        }
        (first..=last).map(|index| self.label(index)).collect::<Vec<_>>().join(" | ")
    }
}

/// The words for a key of a link.
fn words_of(link_key: &[&str]) -> Option<&'static str> {
    match link_key {
        ["loss"] | ["loss", "rate"] => Some("loss"),
        ["delay"] => Some("delay"),
        ["rate"] => Some("rate"),
        ["queue"] => Some("queue"),
        ["queue", "limit"] => Some("room in the queue"),
        _ => None,
    }
}

/// A number in the unit of its axis.
struct Quantity {
    number: f64,
    axis_unit: &'static str,
}

/// A unit of scenarios, and the unit of an axis over such values.
struct Unit {
    name: &'static str,
    /// The factor from this unit to the unit of the axis.
    factor: f64,
    axis_unit: &'static str,
}

const fn unit(name: &'static str, factor: f64, axis_unit: &'static str) -> Unit {
    Unit { name, factor, axis_unit }
}

/// The units of scenarios (docs/reference/interface.md).
const UNITS: [Unit; 19] = [
    unit("ns", 1e-6, "ms"),
    unit("us", 1e-3, "ms"),
    unit("ms", 1.0, "ms"),
    unit("s", 1e3, "ms"),
    unit("min", 6e4, "ms"),
    unit("bps", 1e-6, "Mbps"),
    unit("kbps", 1e-3, "Mbps"),
    unit("Mbps", 1.0, "Mbps"),
    unit("Gbps", 1e3, "Mbps"),
    unit("B", 1e-3, "kB"),
    unit("kB", 1.0, "kB"),
    unit("MB", 1e3, "kB"),
    unit("KiB", 1.024, "kB"),
    unit("MiB", 1048.576, "kB"),
    unit("packet", 1.0, "packets"),
    unit("packets", 1.0, "packets"),
    unit("Hz", 1.0, "Hz"),
    unit("%", 1.0, "%"),
    unit("", 1.0, ""),
];

impl Numbers {
    /// Returns `None` if a value is not a number, or if the values have different units.
    fn parse(values: &[Value]) -> Option<Self> {
        let quantities: Vec<Quantity> = values.iter().map(Quantity::parse).collect::<Option<_>>()?;
        let unit = quantities.first()?.axis_unit;
        if quantities.iter().any(|quantity| quantity.axis_unit != unit || !quantity.number.is_finite()) {
            return None;
        }
        Some(Self { values: quantities.into_iter().map(|quantity| quantity.number).collect(), unit })
    }
}

impl Quantity {
    /// Parses a number, or a text with a number and a unit, as scenarios write them.
    fn parse(value: &Value) -> Option<Self> {
        if let Some(number) = value.as_f64() {
            return Some(Self { number, axis_unit: "" });
        }
        let text = value.as_str()?.trim();
        let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, name) = text.split_at(number_end);
        let unit = UNITS.iter().find(|unit| unit.name == name.trim())?;
        let number = digits.parse::<f64>().ok()? * unit.factor;
        Some(Self { number, axis_unit: unit.axis_unit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_of_an_axis_is_in_words_and_its_shares_are_in_per_cent() {
        let axis = |key: &str, values: &[Value]| Axis {
            key: key.to_owned(),
            numbers: Numbers::parse(values),
            values: values.to_vec(),
        };
        let loss = axis("path.*.loss", &[0.0.into(), 0.005.into(), 0.011.into(), 1.into()]);
        assert_eq!([0, 1, 2, 3].map(|index| loss.percent_label(index)), ["0%", "0.5%", "1.1%", "100%"]);
        assert_eq!(loss.title_in_words(), "loss, each way (path.*.loss)");
        let delay = axis("path.up.delay", &["10ms".into()]);
        assert_eq!(
            (delay.percent_label(0), delay.title_in_words()),
            ("10ms".into(), "delay, up (path.up.delay)".into())
        );
        assert_eq!(
            axis("link.wan.queue.limit", &[]).title_in_words(),
            "room in the queue, wan (link.wan.queue.limit)"
        );
        let count = axis("flow.call.count", &[1.into()]);
        assert_eq!((count.percent_label(0), count.title_in_words()), ("1".into(), "flow.call.count".into()));
    }

    #[test]
    fn quantities_of_one_kind_are_numbers_of_one_unit_and_others_are_words() {
        let parse = |values: &[&str]| {
            let values: Vec<Value> = values.iter().map(|value| Value::from(*value)).collect();
            Numbers::parse(&values)
        };
        let numbers = parse(&["500 us", "5 ms", "1.5 s"]).unwrap();
        assert_eq!((numbers.values, numbers.unit), (vec![0.5, 5.0, 1500.0], "ms"));
        assert_eq!(parse(&["8 kB", "64 KiB"]).unwrap().values, [8.0, 65.536]);
        for words in [&["8 kB", "20 packets"][..], &["drop-tail", "codel"], &["1 parsec"]] {
            assert_eq!(parse(words), None, "{words:?}");
        }
    }
}
