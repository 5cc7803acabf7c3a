//! Traces of the crate netem-trace in JSON, as a table of times and values.
//!
//! ```text
//! {"RepeatedBwPatternConfig": {"pattern": [{"StaticBwConfig": {"bw": "12Mbps", "duration": "1s"}}], "count": 0}}
//! ```
//!
//! Read are constant steps and repeated patterns of them: of a rate (`bw`), a delay or a loss. Amounts are
//! texts such as `"12Mbps"` and `"1s"`, or tables such as `{"gbps": 0, "bps": 12000000}` and `{"secs": 1,
//! "nanos": 0}`, as the crate writes them with and without its feature `human`. A pattern with the count 0
//! repeats without end; the table then has one round of it. Models that draw their values are refused,
//! because a table would be one draw of many.

use core::fmt::Write as _;

use serde_json::Value;
use talkpath_units::{Duration, counted};

/// The steps of a trace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NetemTrace {
    quantity: Quantity,
    steps: Vec<Step>,
    /// True if the steps begin again at their end.
    is_endless: bool,
}

/// What a trace sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Rate,
    Delay,
    Loss,
}

/// A value, and for how long it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    length: Duration,
    /// In bit/s, ns, or as a share.
    value: f64,
}

/// The largest number of steps of a trace. We chose a million, which is a step each second for 11 days.
const MAX_STEPS: usize = 1_000_000;

impl NetemTrace {
    /// Reads a trace.
    ///
    /// # Errors
    /// Returns what was found, where, and what is read.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let root: Value = serde_json::from_str(text).map_err(|why| format!("no JSON: {why}"))?;
        let mut steps = Vec::new();
        let (mut quantity, mut is_endless) = (None, false);
        add_steps(&root, "", &mut quantity, &mut steps, Some(&mut is_endless))?;
        let Some(quantity) = quantity else { return Err("found a pattern without a step".to_owned()) };
        // A step that takes no time sets nothing.
        steps.retain(|step| !step.length.is_zero());
        if steps.is_empty() {
            return Err("found only steps whose duration is 0".to_owned());
        }
        Ok(Self { quantity, steps, is_endless })
    }

    /// The time from the first step to the end of the last one.
    pub(crate) fn length(&self) -> Duration {
        self.steps.iter().map(|step| step.length).fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Describes how the trace ends.
    pub(crate) fn ending(&self) -> String {
        let steps = counted(self.steps.len(), "step");
        let halves = if self.has_halved_end() {
            "; the last one is two rows, because the last row of a table lasts as long as the row before it"
        } else {
            ""
        };
        let length = self.length();
        match self.is_endless {
            true => {
                format!("{steps} in {length}{halves}, repeated: write every = \"{length}\" in [[change]]")
            }
            false => format!(
                "{steps} in {length}{halves}; in [[change]] without `every` the last value stays, and --path repeats all"
            ),
        }
    }

    /// Whether the last step does not last as long as the step before it. Without a step before it, it is
    /// compared with 1 s.
    fn has_halved_end(&self) -> bool {
        let before = self.steps.iter().rev().nth(1).map_or(Duration::from_secs(1), |step| step.length);
        self.steps.last().is_some_and(|last| last.length != before)
    }

    /// Writes the steps as the table that `file` of `[[change]]` reads. The last row of a table lasts as long
    /// as the row before it, and the only row of a table lasts 1 s (`ChangeTable::period`). So a last step of
    /// another length is written in two halves.
    pub(crate) fn as_table(&self) -> String {
        let (column, scale) = match self.quantity {
            Quantity::Rate => ("rate_bps", 1.0),
            Quantity::Delay => ("delay_ms", 1e-6),
            Quantity::Loss => ("loss", 1.0),
        };
        let mut table = format!("time_s {column}\n");
        let mut at = Duration::ZERO;
        for (number, Step { length, value }) in (1..).zip(&self.steps) {
            let _ = writeln!(table, "{} {}", at.as_secs_f64(), value * scale);
            let is_last = number == self.steps.len();
            if is_last && self.has_halved_end() {
                let _ = writeln!(table, "{} {}", at.saturating_add(*length / 2).as_secs_f64(), value * scale);
            }
            at = at.saturating_add(*length);
        }
        table
    }
}

/// Adds the steps of one model. `path` names the model in messages. `is_endless` is set if the model is the
/// outermost one and repeats without end.
fn add_steps(
    model: &Value,
    path: &str,
    quantity: &mut Option<Quantity>,
    steps: &mut Vec<Step>,
    is_endless: Option<&mut bool>,
) -> Result<(), String> {
    let entry = model.as_object().filter(|object| object.len() == 1).and_then(|object| object.iter().next());
    let Some((name, fields)) = entry else {
        return Err(format!("{}: expected one model such as {{\"StaticBwConfig\": ...}}", place(path)));
    };
    let here = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
    if let Some((_, found, field)) = CONSTANT.iter().find(|(known, ..)| known == name) {
        if quantity.replace(*found).is_some_and(|earlier| earlier != *found) {
            return Err(format!("{here}: found values of two kinds in one pattern"));
        }
        let value =
            value_of(*found, fields.get(field)).ok_or_else(|| wrong(&here, field, fields.get(field)))?;
        let length = fields.get("duration");
        let length = length.and_then(duration).ok_or_else(|| wrong(&here, "duration", length))?;
        steps.push(Step { length, value });
        return if steps.len() > MAX_STEPS { Err(too_many(&here)) } else { Ok(()) };
    }
    if !REPEATED.contains(&name.as_str()) {
        return Err(format!(
            "{here}: this model is not read; read are StaticBwConfig, StaticDelayConfig, StaticLossConfig and repeated patterns of them"
        ));
    }
    let pattern = fields.get("pattern").and_then(Value::as_array);
    let pattern = pattern.ok_or_else(|| wrong(&here, "pattern", fields.get("pattern")))?;
    let count = fields.get("count").map_or(Some(0), Value::as_u64);
    let count = count.ok_or_else(|| wrong(&here, "count", fields.get("count")))?;
    let rounds = match (count, is_endless) {
        (0, Some(is_endless)) => {
            *is_endless = true;
            1
        }
        (0, None) => {
            return Err(format!(
                "{here}: a pattern within a pattern repeats without end, so nothing follows it"
            ));
        }
        (count, _) => count,
    };
    for _ in 0..rounds {
        let before = steps.len();
        for (index, inner) in pattern.iter().enumerate() {
            add_steps(inner, &format!("{here}.pattern[{index}]"), quantity, steps, None)?;
        }
        if steps.len() == before {
            break;
        }
    }
    Ok(())
}

/// The models of a constant: their names, what they set, and the field of the value.
const CONSTANT: [(&str, Quantity, &str); 3] = [
    ("StaticBwConfig", Quantity::Rate, "bw"),
    ("StaticDelayConfig", Quantity::Delay, "delay"),
    ("StaticLossConfig", Quantity::Loss, "loss"),
];

/// The models that repeat other models.
const REPEATED: [&str; 3] =
    ["RepeatedBwPatternConfig", "RepeatedDelayPatternConfig", "RepeatedLossPatternConfig"];

fn place(path: &str) -> &str {
    if path.is_empty() { "the file" } else { path }
}

fn wrong(path: &str, field: &str, found: Option<&Value>) -> String {
    let found = found.map_or_else(|| "nothing".to_owned(), |value| shortened(&value.to_string()));
    let form = match field {
        "bw" => "a rate such as \"12Mbps\"",
        "delay" | "duration" => "a time such as \"100ms\"",
        "loss" => "one share such as [0.01]; shares after a loss are not read",
        "count" => "a whole number",
        _ => "a list of models",
    };
    format!("{path}.{field}: found {found}, expected {form}")
}

fn too_many(path: &str) -> String {
    format!("{path}: found more than {MAX_STEPS} steps")
}

/// The first characters of a text. We chose 40, which show what it is.
fn shortened(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() { format!("{short}...") } else { short }
}

fn value_of(quantity: Quantity, value: Option<&Value>) -> Option<f64> {
    let value = value?;
    match quantity {
        Quantity::Rate => rate_bps(value),
        Quantity::Delay => duration(value).map(|delay| delay.as_nanos() as f64),
        // The list has the probability of a loss, and then those after one, two, ... losses.
        Quantity::Loss => match value.as_array()?.as_slice() {
            [share] => share.as_f64().filter(|share| (0.0..=1.0).contains(share)),
            _ => None,
        },
    }
}

fn rate_bps(value: &Value) -> Option<f64> {
    if let Some(text) = value.as_str() {
        let prefix = |unit: &str| match unit.strip_suffix("bps")? {
            "" => Some(1.0),
            "K" | "k" => Some(1e3),
            "M" => Some(1e6),
            "G" => Some(1e9),
            "T" => Some(1e12),
            _ => None,
        };
        return sum_of_parts(text, prefix);
    }
    let part = |name: &str| value.get(name).map_or(Some(0.0), Value::as_f64);
    value.as_object().filter(|object| object.contains_key("bps"))?;
    Some(part("gbps")? * 1e9 + part("bps")?)
}

fn duration(value: &Value) -> Option<Duration> {
    let nanos = match value.as_str() {
        // The units of the crate humantime up to a day.
        Some(text) => sum_of_parts(text, |unit| match unit {
            "ns" | "nsec" => Some(1.0),
            "us" | "usec" => Some(1e3),
            "ms" | "msec" => Some(1e6),
            "s" | "sec" | "second" | "seconds" => Some(1e9),
            "m" | "min" | "minute" | "minutes" => Some(60e9),
            "h" | "hr" | "hour" | "hours" => Some(3600e9),
            "d" | "day" | "days" => Some(86_400e9),
            _ => None,
        })?,
        None => value.get("secs")?.as_f64()? * 1e9 + value.get("nanos").map_or(Some(0.0), Value::as_f64)?,
    };
    // As scenarios have it: eleven days and a half.
    (0.0..=1e15).contains(&nanos).then(|| Duration::from_nanos(nanos.round() as u64))
}

/// Adds up the parts of a text such as `1s 500ms`. `unit` tells the factor of a unit.
fn sum_of_parts(text: &str, unit: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let (mut rest, mut sum) = (text.trim(), None);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (name, next) = after.split_at(end);
        sum = Some(sum.unwrap_or(0.0) + number.parse::<f64>().ok()? * unit(name)?);
        rest = next.trim_start();
    }
    sum
}

#[cfg(test)]
mod tests {
    use talkpath_path::ChangeTable;

    use super::*;

    fn table(text: &str) -> String {
        let trace = NetemTrace::read(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        trace.as_table().parse::<ChangeTable>().expect("a scenario reads it");
        trace.as_table()
    }

    #[test]
    fn a_step_that_takes_no_time_is_no_row() {
        let pattern = |first: &str, last: &str| {
            format!(
                r#"{{"RepeatedBwPatternConfig":{{"pattern":[{{"StaticBwConfig":{{"bw":"12Mbps","duration":"{first}"}}}},
                {{"StaticBwConfig":{{"bw":"24Mbps","duration":"{last}"}}}}],"count":1}}}}"#
            )
        };
        let found = table(&pattern("2s", "0s"));
        assert_eq!(found, "time_s rate_bps\n0 12000000\n1 12000000\n");
        assert_eq!(found.parse::<ChangeTable>().unwrap().period(), Duration::from_secs(2));
        let none = NetemTrace::read(&pattern("0s", "0s")).unwrap_err();
        assert_eq!(none, "found only steps whose duration is 0");
    }

    #[test]
    fn both_forms_of_the_crate_are_the_same_table() {
        let human = r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":"12Mbps","duration":"1s 500ms"}},
                       {"StaticBwConfig":{"bw":"24Mbps","duration":"1s"}}],"count":2}}"#;
        let plain = r#"{"RepeatedBwPatternConfig":{"pattern":[
            {"StaticBwConfig":{"bw":{"gbps":0,"bps":12000000},"duration":{"secs":1,"nanos":500000000}}},
            {"StaticBwConfig":{"bw":{"gbps":0,"bps":24000000},"duration":{"secs":1,"nanos":0}}}],"count":2}}"#;
        assert_eq!(
            table(human),
            "time_s rate_bps\n0 12000000\n1.5 24000000\n2.5 12000000\n4 24000000\n4.5 24000000\n"
        );
        assert_eq!(table(human), table(plain));
    }

    #[test]
    fn delays_and_losses_are_tables_too_and_an_endless_pattern_is_one_round() {
        assert_eq!(
            table(r#"{"StaticDelayConfig":{"delay":"20ms","duration":"1s"}}"#),
            "time_s delay_ms\n0 20\n"
        );
        let endless = r#"{"RepeatedLossPatternConfig":{"pattern":[{"StaticLossConfig":{"loss":[0.1],"duration":"1s"}},
                         {"StaticLossConfig":{"loss":[0.0],"duration":"9s"}}],"count":0}}"#;
        // The last row lasts as long as the one before it, so a round of the table is 10 s long.
        assert_eq!(table(endless), "time_s loss\n0 0.1\n1 0\n5.5 0\n");
        assert_eq!(table(endless).parse::<ChangeTable>().unwrap().period(), Duration::from_secs(10));
        let trace = NetemTrace::read(endless).unwrap();
        assert_eq!(
            trace.ending(),
            "2 steps in 10 s; the last one is two rows, because the last row of a table lasts as long as the row before it, repeated: write every = \"10 s\" in [[change]]"
        );
    }

    #[test]
    fn what_cannot_be_a_table_is_refused_with_its_place() {
        for (text, why) in [
            ("{", "no JSON: "),
            ("[]", "the file: expected one model"),
            (r#"{"NormalizedBwConfig":{"mean":"12Mbps"}}"#, "NormalizedBwConfig: this model is not read"),
            (
                r#"{"StaticBwConfig":{"bw":"12","duration":"1s"}}"#,
                "StaticBwConfig.bw: found \"12\", expected a rate",
            ),
            (r#"{"StaticBwConfig":{"bw":"12Mbps"}}"#, "StaticBwConfig.duration: found nothing"),
            (
                r#"{"StaticLossConfig":{"loss":[0.1,0.5],"duration":"1s"}}"#,
                "StaticLossConfig.loss: found [0.1,0.5], expected one share",
            ),
            (
                r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticDelayConfig":{"delay":"1s","duration":"1s"}},
                   {"StaticBwConfig":{"bw":"1bps","duration":"1s"}}],"count":1}}"#,
                "RepeatedBwPatternConfig.pattern[1].StaticBwConfig: found values of two kinds",
            ),
            (
                r#"{"RepeatedBwPatternConfig":{"pattern":[],"count":9000000000}}"#,
                "found a pattern without a step",
            ),
            (
                r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":"1bps","duration":"1s"}}],"count":9000000000}}"#,
                "RepeatedBwPatternConfig.pattern[0].StaticBwConfig: found more than 1000000 steps",
            ),
        ] {
            let refused = NetemTrace::read(text).unwrap_err();
            assert!(refused.starts_with(why), "{text}: {refused}");
        }
    }
}
