//! Finds numbers in the summary of a run by their paths.
//!
//! A path is a list of names with dots between them, such as `flows.call.loss_rate`. A number in a path is
//! the index of an entry of a list.

use serde_json::Value as Json;
use talkpath_measure::figures::{CLOCK, FLOW, GROUP, LINK, MACHINE, Table, Unit};

/// Returns the number at `path` of a run's summary.
///
/// - `PATH=WORD` is 1 if the word at `PATH` is `WORD`, and 0 if it is another word. The words of a flag are
///   `true` and `false`.
/// - A flow without copies has no group of its own. `groups.NAME.KEY` is then `flows.NAME.KEY`.
pub(super) fn number(run: &Json, path: &str) -> Option<f64> {
    if let Some((path, word)) = path.split_once('=') {
        let is_word = match find(run, path)? {
            Json::String(found) => found == word,
            Json::Bool(flag) => flag.to_string() == word,
            _ => return None,
        };
        return Some(f64::from(u8::from(is_word)));
    }
    let number = find(run, path).and_then(Json::as_f64);
    match path.strip_prefix("groups.") {
        Some(flow_path) if number.is_none() => find(run.get("flows")?, flow_path)?.as_f64(),
        _ => number,
    }
}

fn find<'a>(json: &'a Json, path: &str) -> Option<&'a Json> {
    path.split('.').try_fold(json, child)
}

fn child<'a>(json: &'a Json, name: &str) -> Option<&'a Json> {
    match json {
        Json::Array(list) => list.get(name.parse::<usize>().ok()?),
        table => table.get(name),
    }
}

/// Returns all values at a path whose names may contain `*`, in the order of the names. A `*` matches any
/// text. If a name matches but the path after it leads nowhere, the value is `null`, so that the caller sees
/// that a number is missing.
pub(super) fn matching<'a>(json: &'a Json, path: &str) -> Vec<&'a Json> {
    const NOWHERE: &Json = &Json::Null;
    let (name, after) = match path.split_once('.') {
        Some((name, after)) => (name, Some(after)),
        None => (path, None),
    };
    let below = |found: &'a Json| after.map_or_else(|| vec![found], |after| matching(found, after));
    let Some((prefix, suffix)) = name.split_once('*') else {
        return child(json, name).map_or_else(|| vec![NOWHERE], below);
    };
    let Some(table) = json.as_object() else { return Vec::new() };
    let is_match = |key: &str| {
        key.len() >= prefix.len() + suffix.len() && key.starts_with(prefix) && key.ends_with(suffix)
    };
    table.iter().filter(|(key, _)| is_match(key)).flat_map(|(_, found)| below(found)).collect()
}

/// The smallest and the largest value that a figure can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueRange {
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

impl ValueRange {
    pub(crate) const UNLIMITED: Self = Self { lowest: f64::NEG_INFINITY, highest: f64::INFINITY };
    pub(crate) const NOT_NEGATIVE: Self = Self { lowest: 0.0, highest: f64::INFINITY };
    pub(crate) const SHARE: Self = Self { lowest: 0.0, highest: 1.0 };
    pub(super) const CORRELATION: Self = Self { lowest: -1.0, highest: 1.0 };
}

/// What is known of a figure of the summary before a run.
pub(crate) struct FigureFacts {
    pub(crate) unit: Unit,
    pub(crate) range: ValueRange,
}

/// Returns the unit and the range of the figure at `path`. Returns `None` if the path is not that of a
/// figure.
pub(crate) fn figure_at(path: &str) -> Option<FigureFacts> {
    let (table, below_table) = path.split_once('.')?;
    let below_entity = below_table.split_once('.').map(|(_, path)| path);
    match table {
        "flows" => facts(&FLOW, below_entity?),
        // A group has figures of its own, and the figures of its only flow.
        "groups" => facts(&GROUP, below_entity?).or_else(|| facts(&FLOW, below_entity?)),
        "links" => facts(&LINK, below_entity?),
        "machine" => facts(&MACHINE, below_table),
        "clock" => facts(&CLOCK, below_table),
        _ => None,
    }
}

fn facts<T>(table: &'static Table<T>, path: &str) -> Option<FigureFacts> {
    let figure = table.find(path)?;
    let (lowest, highest) = figure.range;
    Some(FigureFacts { unit: figure.unit, range: ValueRange { lowest, highest } })
}
