//! A swept key as an axis of a chart or a table.
//!
//! - An *axis* is a swept key with its values. A value has an *index*, which counts from 0 along the axis.
//! - The *position* of a value is its place on the scale of a chart.
//!
//! Begin to read with [`Axis::all`].

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::view::plain;

/// A swept key with two or more values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub key: String,
    /// The values. Numbers are in ascending order, so that neighbours in this list are neighbours on the
    /// axis. Other values are in the order of the cells.
    pub values: Vec<AxisValue>,
    /// The unit of the numbers, which may be empty. `None` if a value is not a number, or if the values have
    /// different units.
    unit: Option<&'static str>,
}

/// A value of a swept key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisValue {
    /// The value as the scenario has it.
    json: Value,
    /// The value in the unit of the axis. On an axis without a unit it has no meaning.
    number: f64,
}

impl Axis {
    /// Makes an axis of each key that has two or more values. `pairs` are the swept keys of all cells with
    /// their values.
    pub(crate) fn all<'a>(pairs: impl Iterator<Item = (&'a String, &'a Value)>) -> Vec<Self> {
        let mut values_by_key: BTreeMap<&String, Vec<Value>> = BTreeMap::new();
        let mut known_values = BTreeSet::new();
        for (key, value) in pairs {
            if known_values.insert((key, value.to_string())) {
                values_by_key.entry(key).or_default().push(value.clone());
            }
        }
        let axes = values_by_key.into_iter().filter(|(_, values)| values.len() > 1);
        axes.map(|(key, values)| Self::new(key, values)).collect()
    }

    fn new(key: &str, values: Vec<Value>) -> Self {
        let numbers: Vec<Option<Number>> = values.iter().map(Number::parse).collect();
        let unit = common_unit(&numbers);
        let mut axis_values = Vec::new();
        for (json, number) in values.into_iter().zip(numbers) {
            axis_values.push(AxisValue { json, number: number.map_or(0.0, |number| number.value) });
        }
        if unit.is_some() {
            axis_values.sort_by(|a, b| a.number.total_cmp(&b.number));
        }
        Self { key: key.to_owned(), values: axis_values, unit }
    }

    /// Whether the values are numbers of one unit.
    pub(crate) const fn is_numeric(&self) -> bool {
        self.unit.is_some()
    }

    pub(crate) fn index_by_json(&self) -> BTreeMap<String, usize> {
        self.values.iter().map(|value| value.json.to_string()).zip(0..).collect()
    }

    /// The position of a number is the number. The position of any other value is its index.
    pub(crate) fn position(&self, index: usize) -> f64 {
        if self.is_numeric() { self.values[index].number } else { index as f64 }
    }

    /// The value in the words of the scenario.
    pub(crate) fn label(&self, index: usize) -> String {
        plain(&self.values[index].json)
    }

    /// The name of the links whose loss the values are, with `*` for all links: `up` of `path.up.loss.mean`.
    /// `None` if the values are no shares of lost packets.
    pub(crate) fn link_of_loss(&self) -> Option<&str> {
        let (_, link_key) = self.key.split_once('.')?;
        let (link, loss) = link_key.split_once('.')?;
        let is_of_link = self.key.starts_with("path.") || self.key.starts_with("link.");
        (is_of_link && ["loss", "loss.rate", "loss.mean"].contains(&loss)).then_some(link)
    }

    /// The label, but with a share of lost packets in per cent.
    pub(crate) fn percent_label(&self, index: usize) -> String {
        let share = self.values[index].json.as_f64().filter(|_| self.link_of_loss().is_some());
        // 0.011 is 1.1 %, but 0.011 * 100.0 is 1.0999999999999999. The exponent in the text is exact.
        let percent = share.and_then(|share| format!("{share}e2").parse::<f64>().ok());
        percent.map_or_else(|| self.label(index), |percent| format!("{percent}%"))
    }

    /// The key and the unit: `path.up.delay, ms`.
    pub(crate) fn title_with_unit(&self) -> String {
        match self.unit {
            None | Some("") => self.key.clone(),
            Some(unit) => format!("{}, {unit}", self.key),
        }
    }

    /// The key in words: `loss, each way (path.*.loss)`. A key that has no words stays as it is.
    pub(crate) fn title_in_words(&self) -> String {
        let (place, link_key) = match &self.key.split('.').collect::<Vec<_>>()[..] {
            ["path", "*", link_key @ ..] => ("each way", link_key.join(".")),
            ["link", "*", link_key @ ..] => ("each link", link_key.join(".")),
            ["path" | "link", name, link_key @ ..] => (*name, link_key.join(".")),
            _ => return self.key.clone(),
        };
        let words = match link_key.as_str() {
            "loss" | "loss.rate" | "loss.mean" => "loss",
            "delay" | "rate" | "queue" => link_key.as_str(),
            "queue.limit" => "room in the queue",
            _ => return self.key.clone(),
        };
        format!("{words}, {place} ({})", self.key)
    }

    /// Neighbouring values in one text: `1 ms to 30 ms`. Values that are not numbers are listed.
    pub(crate) fn range_label(&self, first: usize, last: usize) -> String {
        if first < last && self.is_numeric() {
            return format!("{} to {}", self.label(first), self.label(last));
        }
        (first..=last).map(|index| self.label(index)).collect::<Vec<_>>().join(" | ")
    }
}

/// A number in a unit that suits an axis.
struct Number {
    value: f64,
    unit: &'static str,
}

impl Number {
    /// Reads a number, or a quantity as scenarios write it. Returns `None` for any other value.
    fn parse(value: &Value) -> Option<Self> {
        if let Some(value) = value.as_f64() {
            return Some(Self { value, unit: "" });
        }
        let text = value.as_str()?.trim();
        let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, name) = text.split_at(digits_end);
        let Unit { factor, axis_unit, .. } = UNITS.iter().find(|unit| unit.name == name.trim())?;
        Some(Self { value: digits.parse::<f64>().ok()? * factor, unit: axis_unit })
    }
}

/// A unit of scenarios.
struct Unit {
    name: &'static str,
    /// The factor from this unit to the unit of the axis.
    factor: f64,
    axis_unit: &'static str,
}

const fn unit(name: &'static str, factor: f64, axis_unit: &'static str) -> Unit {
    Unit { name, factor, axis_unit }
}

/// The units of scenarios (docs/reference/interface.md). The crates do not share a table of them, because
/// this crate does not know the language of scenarios.
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

/// Returns the unit of all numbers, or `None` if a number is missing or if the units differ.
fn common_unit(numbers: &[Option<Number>]) -> Option<&'static str> {
    let unit = numbers.first()?.as_ref()?.unit;
    let has_unit =
        |number: &Option<Number>| number.as_ref().is_some_and(|n| n.unit == unit && n.value.is_finite());
    numbers.iter().all(has_unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_of_an_axis_is_in_words_and_its_shares_are_in_per_cent() {
        let axis = |key: &str, values: &[Value]| Axis::new(key, values.to_vec());
        let loss = axis("path.*.loss", &[0.0.into(), 0.005.into(), 0.011.into(), 1.into()]);
        assert_eq!([0, 1, 2, 3].map(|index| loss.percent_label(index)), ["0%", "0.5%", "1.1%", "100%"]);
        assert_eq!(loss.title_in_words(), "loss, each way (path.*.loss)");
        assert_eq!(loss.link_of_loss(), Some("*"));
        assert_eq!(axis("link.wan.loss.mean", &[]).link_of_loss(), Some("wan"));
        assert_eq!(axis("path.up.loss.burst", &[]).link_of_loss(), None);
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
        let axis =
            |values: &[&str]| Axis::new("key", values.iter().map(|value| Value::from(*value)).collect());
        let positions =
            |axis: &Axis| (0..axis.values.len()).map(|index| axis.position(index)).collect::<Vec<_>>();
        let delays = axis(&["1.5 s", "500 us", "5 ms"]);
        assert_eq!((positions(&delays), delays.unit), (vec![0.5, 5.0, 1500.0], Some("ms")));
        assert_eq!(positions(&axis(&["8 kB", "64 KiB"])), [8.0, 65.536]);
        for words in [&["8 kB", "20 packets"][..], &["drop-tail", "codel"], &["1 parsec"]] {
            assert!(!axis(words).is_numeric(), "{words:?}");
        }
    }
}
