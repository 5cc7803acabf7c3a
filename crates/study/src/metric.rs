//! What a study reads of a run: a number at a path of its summary, or one that the study makes of several.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// A number that the study makes of a run's own, for each repetition by itself. Paths may name other metrics
/// of the study; `*` in a path stands for any part of a name, so that one path means all copies of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Derived {
    /// The first over the second.
    Ratio(String, String),
    /// The first less the second.
    Difference(String, String),
    /// Of all that the paths mean.
    Sum(Vec<String>),
    /// Of all that the paths mean.
    Mean(Vec<String>),
    /// Of what the paths mean, the share that lies above a bound.
    Share {
        /// The paths of the values.
        paths: Vec<String>,
        /// The bound, in their unit.
        above: f64,
    },
}

/// A study's own metrics by name.
pub type Metrics = BTreeMap<String, Derived>;

/// The number that `name` means in `run`; `None` if the arena could not know it.
pub(crate) fn value(run: &Json, name: &str, metrics: &Metrics) -> Option<f64> {
    look_up(run, name, metrics, 0)
}

fn look_up(run: &Json, name: &str, metrics: &Metrics, depth: usize) -> Option<f64> {
    let Some(derived) = metrics.get(name).filter(|_| depth <= metrics.len()) else {
        return metric(run, name);
    };
    let one = |path: &String| look_up(run, path, metrics, depth + 1);
    let made = match derived {
        Derived::Ratio(first, second) => one(first)? / one(second)?,
        Derived::Difference(first, second) => one(first)? - one(second)?,
        Derived::Sum(paths) => all(run, paths, metrics, depth)?.iter().sum(),
        Derived::Mean(paths) => {
            let values = all(run, paths, metrics, depth)?;
            values.iter().sum::<f64>() / values.len() as f64
        }
        Derived::Share { paths, above } => {
            let values = all(run, paths, metrics, depth)?;
            values.iter().filter(|value| *value > above).count() as f64 / values.len() as f64
        }
    };
    made.is_finite().then_some(made)
}

/// Everything that `paths` mean; `None` if one of them is not known or nothing is meant.
fn all(run: &Json, paths: &[String], metrics: &Metrics, depth: usize) -> Option<Vec<f64>> {
    let mut values = Vec::new();
    for path in paths {
        if !path.contains('*') {
            values.push(look_up(run, path, metrics, depth + 1)?);
            continue;
        }
        let names: Vec<&str> = path.split('.').collect();
        for found in matching(run, &names) {
            values.push(found.as_f64()?);
        }
    }
    (!values.is_empty()).then_some(values)
}

/// The number at `path` of a run's summary. A group of one copy is its flow: there, `groups.NAME.KEY` is
/// `flows.NAME.KEY`. `PATH=WORD` is 1 if the word at PATH (or `true`, `false`) is
/// WORD, else 0.
fn metric(run: &Json, path: &str) -> Option<f64> {
    if let Some((path, word)) = path.split_once('=') {
        let names: Vec<&str> = path.split('.').collect();
        let is_word = match at(run, &names)? {
            Json::String(found) => found == word,
            Json::Bool(found) => found.to_string() == word,
            _ => return None,
        };
        return Some(f64::from(u8::from(is_word)));
    }
    let names: Vec<&str> = path.split('.').collect();
    let found = at(run, &names).and_then(Json::as_f64);
    match names.as_slice() {
        ["groups", rest @ ..] if found.is_none() => {
            let flow: Vec<&str> = core::iter::once("flows").chain(rest.iter().copied()).collect();
            at(run, &flow).and_then(Json::as_f64)
        }
        _ => found,
    }
}

fn at<'a>(json: &'a Json, names: &[&str]) -> Option<&'a Json> {
    names.iter().try_fold(json, |json, name| match json {
        Json::Array(list) => list.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    })
}

/// What lies at a path with `*` in its names, in the order of the names; `null` if the rest of a path leads
/// nowhere.
fn matching<'a>(json: &'a Json, names: &[&str]) -> Vec<&'a Json> {
    const NOWHERE: &Json = &Json::Null;
    let Some((first, rest)) = names.split_first() else { return vec![json] };
    let Some((before, after)) = first.split_once('*') else {
        return at(json, &[first]).map_or_else(|| vec![NOWHERE], |found| matching(found, rest));
    };
    let Some(object) = json.as_object() else { return Vec::new() };
    let fits = |name: &str| {
        name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
    };
    object.iter().filter(|(name, _)| fits(name)).flat_map(|(_, found)| matching(found, rest)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Json {
        serde_json::json!({
            "flows": {
                "call": { "is_steady": false, "loss_rate": 0.25, "loss_runs": { "histogram": [7, 2] }, "rtt": null, "verdict": "great" },
                "nagle-1": { "rtt": { "p50": 20.0 } },
                "nagle-2": { "rtt": { "p50": 40.0 } },
                "nagle-10": { "rtt": { "p50": 60.0 } },
            },
            "groups": { "ftp": { "goodput_bps": 5.0 } },
        })
    }

    #[test]
    fn a_path_leads_through_tables_and_lists_and_a_group_of_one_is_its_flow() {
        let of = |path| value(&run(), path, &Metrics::new());
        assert_eq!(of("flows.call.loss_runs.histogram.1"), Some(2.0));
        assert_eq!(of("groups.call.loss_rate"), Some(0.25));
        assert_eq!(of("groups.ftp.goodput_bps"), Some(5.0));
        assert_eq!(of("flows.call.rtt"), None);
        assert_eq!(of("links.wan.dropped"), None);
        assert_eq!(of("flows.call.verdict=great"), Some(1.0));
        assert_eq!(of("flows.call.verdict=bad"), Some(0.0));
        assert_eq!(of("flows.call.is_steady=false"), Some(1.0));
        assert_eq!(of("flows.call.word=bad"), None);
    }

    #[test]
    fn a_study_makes_numbers_of_others_and_knows_none_where_one_is_unknown() {
        let text = |text: &str| text.to_owned();
        let metrics = Metrics::from([
            (text("slow"), Derived::Share { paths: vec![text("flows.nagle-*.rtt.p50")], above: 30.0 }),
            (text("mean"), Derived::Mean(vec![text("flows.nagle-*.rtt.p50")])),
            (text("excess"), Derived::Difference(text("mean"), text("flows.nagle-1.rtt.p50"))),
            (text("times"), Derived::Ratio(text("excess"), text("flows.call.loss_rate"))),
            (text("unknown"), Derived::Sum(vec![text("mean"), text("flows.call.rtt.p50")])),
            (text("circle"), Derived::Sum(vec![text("circle")])),
        ]);
        let of = |name| value(&run(), name, &metrics);
        assert_eq!(of("slow"), Some(2.0 / 3.0));
        assert_eq!((of("mean"), of("excess"), of("times")), (Some(40.0), Some(20.0), Some(80.0)));
        assert_eq!((of("unknown"), of("circle")), (None, None));
    }
}
