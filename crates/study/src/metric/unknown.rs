//! Finds misspelt metrics before anything runs, by the shape of a summary (`shape.rs`).

use serde_json::{Map, Value as Json};

use super::derived::{Derived, Metrics, definition};
use super::path;
use crate::over_time::{OverTime, TimeFigure};

/// The message for a metric that a run does not have, and a line with the names that would be right.
pub(crate) struct UnknownMetric {
    pub(crate) message: String,
    pub(crate) help: String,
}

/// Returns what is wrong with the metric called `name`. Returns `None` if a run whose summary has this
/// `shape` has the metric.
pub(crate) fn unknown_metric(shape: &Json, name: &str, metrics: &Metrics) -> Option<UnknownMetric> {
    unknown_at_depth(shape, name, metrics, 0)
}

fn unknown_at_depth(shape: &Json, name: &str, metrics: &Metrics, depth: usize) -> Option<UnknownMetric> {
    let Some(derived) = definition(name, metrics, depth) else {
        return unknown_path(shape, name, metrics);
    };
    if let Derived::OverTime(over_time) = derived {
        return unknown_entity(shape, name, over_time);
    }
    derived.parts().into_iter().find_map(|part| unknown_at_depth(shape, part, metrics, depth + 1))
}

/// Returns what is wrong if a figure of series names a flow or a link that the run does not have.
fn unknown_entity(shape: &Json, name: &str, over_time: &OverTime) -> Option<UnknownMetric> {
    let (table, entity_kind) = match over_time.figure {
        TimeFigure::Quantile(_) => ("links", "link"),
        TimeFigure::Correlation { .. } | TimeFigure::SharedLosses { .. } => ("groups", "flow"),
    };
    let entity = &over_time.entity;
    let known = shape.get(table).and_then(Json::as_object);
    if known.is_some_and(|known| known.contains_key(entity)) {
        return None;
    }
    Some(UnknownMetric {
        message: format!("the metric \"{name}\" reads the {entity_kind} \"{entity}\", which does not exist"),
        help: format!("there are: {}", known.map_or_else(String::new, keys)),
    })
}

const SUMMARY: &str = "a run's summary";

fn unknown_path(shape: &Json, path: &str, metrics: &Metrics) -> Option<UnknownMetric> {
    let (path_of_value, is_word_wanted) = match path.split_once('=') {
        Some((path_of_value, _)) => (path_of_value, true),
        None => (path, false),
    };
    let mut value = shape;
    let mut walked = SUMMARY.to_owned();
    for name in path_of_value.split('.') {
        let Some(child) = first_child(value, name) else {
            let children = value.as_object().map_or_else(|| "a number, 0 or more".to_owned(), keys);
            let derived = if walked == SUMMARY && !metrics.is_empty() {
                let names: Vec<&str> = metrics.keys().map(String::as_str).collect();
                format!("; of the study: {}", names.join(", "))
            } else {
                String::new()
            };
            return Some(UnknownMetric {
                message: format!("there is no metric \"{path}\": {walked} has no \"{name}\""),
                help: format!("{walked} has: {children}{derived}"),
            });
        };
        value = child;
        walked = if walked == SUMMARY { name.to_owned() } else { format!("{walked}.{name}") };
    }
    let (message, help) = match value {
        Json::Number(_) if !is_word_wanted => return None,
        Json::String(_) | Json::Bool(_) if is_word_wanted => return None,
        Json::String(_) | Json::Bool(_) => (
            format!("\"{path}\" is a word, not a number"),
            format!("\"{path}=WORD\" is 1 if the word is WORD, and 0 if it is not"),
        ),
        Json::Number(_) => (
            format!("\"{path_of_value}\" is a number, not a word"),
            format!("read it as \"{path_of_value}\""),
        ),
        Json::Object(table) => {
            (format!("\"{path}\" is a table, not a number"), format!("{walked} has: {}", keys(table)))
        }
        Json::Array(_) | Json::Null => {
            (format!("\"{path}\" is a list, not a number"), format!("its first entry is \"{path}.0\""))
        }
    };
    Some(UnknownMetric { message, help })
}

/// Returns the child called `name`, in which `*` matches any text. Every entry of a list has the same shape,
/// and the list of a shape has one entry, so any index leads to the first entry.
fn first_child<'a>(json: &'a Json, name: &str) -> Option<&'a Json> {
    match json {
        Json::Array(list) => list.first().filter(|_| name.parse::<usize>().is_ok()),
        table => path::matching(table, name).into_iter().next().filter(|found| !found.is_null()),
    }
}

fn keys(table: &Map<String, Json>) -> String {
    table.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}
