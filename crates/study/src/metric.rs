//! What a study reads of a run: a number at a path of its summary, or one that the study makes of several.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use talkpath_measure::figures::{CLOCK, FLOW, GROUP, LINK, MACHINE, Table, Unit};

use crate::over_time::{OverTime, TimeFigure};

/// A number that the study makes of a run's own, for each repetition by itself. Paths may name other metrics
/// of the study; `*` in a path matches any part of a name, so that one path means all copies of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Derived {
    /// The first over the second.
    Ratio(String, String),
    /// The first less the second.
    Difference(String, String),
    /// The value times a factor.
    Scaled(String, f64),
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
    /// Of the series of a repetition.
    OverTime(OverTime),
}

impl Derived {
    /// What it is made of.
    pub(crate) fn parts(&self) -> Vec<&str> {
        match self {
            Self::Ratio(first, second) | Self::Difference(first, second) => vec![first, second],
            Self::Scaled(path, _) => vec![path],
            Self::Sum(paths) | Self::Mean(paths) | Self::Share { paths, .. } => {
                paths.iter().map(String::as_str).collect()
            }
            Self::OverTime(_) => Vec::new(),
        }
    }
}

/// Where [`value`] finds what was watched of a run packet by packet.
pub(crate) const WATCHED: &str = "watched";
/// Where [`value`] finds what was made of series.
pub(crate) const OVER_TIME: &str = "over_time";

/// A study's own metrics by name.
pub type Metrics = BTreeMap<String, Derived>;

/// The units of a study's own metrics by name, for metrics that have a unit.
pub type Units = BTreeMap<String, Unit>;

/// The unit of `name`. A metric of the study's own has the unit that is `stated`, or the common unit of the
/// metrics in its difference, sum or mean. Any other metric has the unit of its figure. `None` if it has no
/// unit, or if none is stated.
pub(crate) fn unit(name: &str, metrics: &Metrics, stated: &Units) -> Option<Unit> {
    unit_at(name, metrics, stated, 0)
}

fn unit_at(name: &str, metrics: &Metrics, stated: &Units, depth: usize) -> Option<Unit> {
    let Some(derived) = metrics.get(name).filter(|_| depth <= metrics.len()) else {
        return figure_at(name).map(|(unit, _)| unit);
    };
    if let Some(unit) = stated.get(name) {
        return Some(*unit);
    }
    match derived {
        Derived::Difference(..) | Derived::Sum(_) | Derived::Mean(_) => {
            let parts = derived.parts().into_iter();
            let mut units = parts.map(|part| unit_at(part, metrics, stated, depth + 1));
            let first = units.next()??;
            units.all(|unit| unit == Some(first)).then_some(first)
        }
        Derived::Ratio(..) | Derived::Scaled(..) | Derived::Share { .. } | Derived::OverTime(_) => None,
    }
}

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
        Derived::Scaled(path, by) => one(path)? * by,
        Derived::Sum(paths) => all(run, paths, metrics, depth)?.iter().sum(),
        Derived::Mean(paths) => {
            let values = all(run, paths, metrics, depth)?;
            values.iter().sum::<f64>() / values.len() as f64
        }
        Derived::Share { paths, above } => {
            let values = all(run, paths, metrics, depth)?;
            values.iter().filter(|value| *value > above).count() as f64 / values.len() as f64
        }
        Derived::OverTime(_) => run.get(OVER_TIME)?.get(name)?.as_f64()?,
    };
    made.is_finite().then_some(made)
}

/// Everything that `paths` mean; `None` if a value is not known or nothing is meant.
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

/// What is wrong with `name` and which names there are, if it is no metric of a run with this `shape`.
pub(crate) fn unknown(shape: &Json, name: &str, metrics: &Metrics) -> Option<(String, String)> {
    unknown_at(shape, name, metrics, 0)
}

fn unknown_at(shape: &Json, name: &str, metrics: &Metrics, depth: usize) -> Option<(String, String)> {
    let Some(derived) = metrics.get(name).filter(|_| depth <= metrics.len()) else {
        return unknown_path(shape, name, metrics);
    };
    if let Derived::OverTime(over_time) = derived {
        let (place, what) = match over_time.figure {
            TimeFigure::Quantile(_) => ("links", "link"),
            TimeFigure::Correlation { .. } | TimeFigure::SharedLosses { .. } => ("groups", "flow"),
        };
        let names = shape.get(place).and_then(Json::as_object);
        let is_there = names.is_some_and(|names| names.contains_key(&over_time.entity));
        let message =
            format!("the metric \"{name}\" is of the {what} \"{}\", which is not there", over_time.entity);
        return (!is_there)
            .then(|| (message, format!("there are: {}", names.map_or_else(String::new, names_of))));
    }
    derived.parts().into_iter().find_map(|part| unknown_at(shape, part, metrics, depth + 1))
}

fn unknown_path(shape: &Json, path: &str, metrics: &Metrics) -> Option<(String, String)> {
    let (names, word) = match path.split_once('=') {
        Some((names, _)) => (names, true),
        None => (path, false),
    };
    let mut here = shape;
    let mut before = "a run's summary".to_owned();
    for name in names.split('.') {
        let found = match here {
            Json::Array(list) => list.first().filter(|_| name.parse::<usize>().is_ok()),
            other => matching(other, &[name]).into_iter().next().filter(|found| !found.is_null()),
        };
        let Some(found) = found else {
            let keys = here.as_object().map_or_else(|| "a number, 0 or more".to_owned(), names_of);
            let own = if before == "a run's summary" && !metrics.is_empty() {
                let own: Vec<_> = metrics.keys().map(String::as_str).collect();
                format!("; of the study: {}", own.join(", "))
            } else {
                String::new()
            };
            return Some((
                format!("there is no metric \"{path}\": {before} has no \"{name}\""),
                format!("{before} has: {keys}{own}"),
            ));
        };
        here = found;
        before = if before == "a run's summary" { name.to_owned() } else { format!("{before}.{name}") };
    }
    match here {
        Json::Number(_) if !word => None,
        Json::String(_) | Json::Bool(_) if word => None,
        Json::String(_) | Json::Bool(_) => Some((
            format!("\"{path}\" is a word, not a number"),
            format!("\"{path}=WORD\" is 1 where the word is WORD, else 0"),
        )),
        Json::Number(_) => {
            Some((format!("\"{names}\" is a number, not a word"), format!("read it as \"{names}\"")))
        }
        Json::Object(keys) => Some((
            format!("\"{path}\" is a table, not a number"),
            format!("{before} has: {}", names_of(keys)),
        )),
        _ => {
            Some((format!("\"{path}\" is a list, not a number"), format!("its first entry is \"{path}.0\"")))
        }
    }
}

fn names_of(table: &serde_json::Map<String, Json>) -> String {
    table.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The smallest and the largest value that `name` can have.
pub(crate) fn range(name: &str, metrics: &Metrics) -> (f64, f64) {
    range_at(name, metrics, 0)
}

fn range_at(name: &str, metrics: &Metrics, depth: usize) -> (f64, f64) {
    let Some(derived) = metrics.get(name).filter(|_| depth <= metrics.len()) else {
        return match figure_at(name) {
            _ if name.contains('=') => (0.0, 1.0),
            Some((_, range)) => range,
            // Of log.txt, of a list, or watched: counts, times and sizes.
            None => (0.0, f64::INFINITY),
        };
    };
    let is_positive = derived.parts().into_iter().all(|part| range_at(part, metrics, depth + 1).0 >= 0.0);
    match derived {
        Derived::Share { .. } => (0.0, 1.0),
        Derived::OverTime(OverTime { figure: TimeFigure::Correlation { .. }, .. }) => (-1.0, 1.0),
        Derived::OverTime(OverTime { figure: TimeFigure::SharedLosses { .. }, .. }) => (0.0, 1.0),
        Derived::OverTime(OverTime { figure: TimeFigure::Quantile(_), .. }) => (0.0, f64::INFINITY),
        Derived::Ratio(..) | Derived::Sum(_) | Derived::Mean(_) if is_positive => (0.0, f64::INFINITY),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

/// The unit of the figure at a path of a run, and the least and the most that it can be; `None` if it is none
/// of the summary's figures.
pub(crate) fn figure_at(path: &str) -> Option<(Unit, (f64, f64))> {
    fn of<T>(table: &'static Table<T>, path: &str) -> Option<(Unit, (f64, f64))> {
        table.find(path).map(|figure| (figure.unit, figure.range))
    }
    let (place, rest) = path.split_once('.')?;
    let below_its_name = rest.split_once('.').map(|(_, path)| path);
    match place {
        "flows" => of(&FLOW, below_its_name?),
        "groups" => of(&GROUP, below_its_name?).or_else(|| of(&FLOW, below_its_name?)),
        "links" => of(&LINK, below_its_name?),
        "machine" => of(&MACHINE, rest),
        "clock" => of(&CLOCK, rest),
        _ => None,
    }
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
    fn a_metric_has_the_unit_that_is_stated_or_that_its_parts_share_and_never_that_of_its_name() {
        let text = |text: &str| text.to_owned();
        let (p90, mean) = ("flows.*.round_trip_delay_ms.p90", "flows.udp.one_way_delay_ms.mean");
        let metrics = Metrics::from([
            (text("excess"), Derived::Difference(text(p90), text(mean))),
            (text("mean"), Derived::Mean(vec![text("excess"), text(p90)])),
            (text("half_ms"), Derived::Scaled(text(p90), 0.5)),
            (text("half"), Derived::Scaled(text(p90), 0.5)),
            (text("mixed_ms"), Derived::Sum(vec![text(p90), text("flows.udp.goodput_bps")])),
            (text("times_ms"), Derived::Ratio(text(p90), text(mean))),
            (text("log_ms"), Derived::Mean(vec![text("log.call.end_timestamp")])),
            (text("circle"), Derived::Sum(vec![text("circle")])),
        ]);
        let stated = Units::from([(text("half"), Unit::Ms)]);
        let of = |name| unit(name, &metrics, &stated);
        for name in ["excess", "mean", "half", p90] {
            assert_eq!(of(name), Some(Unit::Ms), "{name}");
        }
        for name in ["half_ms", "mixed_ms", "times_ms", "log_ms", "circle", "delay_ms"] {
            assert_eq!(of(name), None, "{name}");
        }
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
            (text("half"), Derived::Scaled(text("mean"), 0.5)),
        ]);
        let of = |name| value(&run(), name, &metrics);
        assert_eq!(of("slow"), Some(2.0 / 3.0));
        assert_eq!((of("mean"), of("excess"), of("times")), (Some(40.0), Some(20.0), Some(80.0)));
        assert_eq!((of("unknown"), of("circle"), of("half")), (None, None, Some(20.0)));
    }
}
