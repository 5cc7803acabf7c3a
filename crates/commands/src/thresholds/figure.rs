//! Looking a figure up by its path in summary.json.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::{FlowSummary, GroupSummary, LinkSummary, RunSummary};
use talkpath_scenario::{Threshold, ThresholdOf, nearest};

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Looked {
    /// A number.
    Figure(f64),
    /// `true` or `false`.
    Flag(bool),
    /// It is `null`.
    Null,
    /// It would be a part of something that is `null`, or not there.
    Below,
    /// There is no such key, or it is no single figure.
    Unknown,
}

impl Looked {
    /// The figure; `true` is 1 and `false` is 0.
    pub(super) fn number(self) -> Option<f64> {
        match self {
            Self::Figure(value) => Some(value),
            Self::Flag(flag) => Some(f64::from(u8::from(flag))),
            Self::Null | Self::Below | Self::Unknown => None,
        }
    }
}

/// A figure in one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Observed {
    pub(super) looked: Looked,
    /// Of how many messages it is a share, if it is one.
    pub(super) messages: Option<u64>,
}

impl From<Looked> for Observed {
    fn from(looked: Looked) -> Self {
        Self { looked, messages: None }
    }
}

/// What stands at `path` below `of`; nothing is known of what is not there.
pub(super) fn look_up(of: Option<&impl Serialize>, path: &str) -> Looked {
    let Some(of) = of else { return Looked::Below };
    let Ok(mut value) = serde_json::to_value(of) else { return Looked::Unknown };
    for key in path.split('.') {
        value = match value.get_mut(key).map(Value::take) {
            Some(inner) => inner,
            None if value.is_null() => return Looked::Below,
            None => return Looked::Unknown,
        };
    }
    match value {
        Value::Null => Looked::Null,
        Value::Bool(flag) => Looked::Flag(flag),
        Value::Number(number) => number.as_f64().map_or(Looked::Unknown, Looked::Figure),
        _ => Looked::Unknown,
    }
}

/// Whether the first key of the threshold's path is one that a flow, its copies together, or a link has: so
/// much is known before the run.
///
/// # Errors
/// In words, what is there.
pub(super) fn known_before(threshold: &Threshold) -> Result<(), String> {
    // What these have in every run; the rest is filled in.
    let group = json!({ "flows": 0, "sent": 0, "received": 0, "lost": 0 });
    let queue = json!({ "mean": 0.0, "p99": 0, "max": 0 });
    let link = json!({ "queue_packets": queue, "forwarded": 0, "dropped": 0, "lost": 0, "utilisation": 0.0 });
    let empty: Vec<Value> = match threshold.of {
        ThresholdOf::Flow { .. } => [
            serde_json::to_value(FlowSummary::default()),
            serde_json::from_value::<GroupSummary>(group).and_then(serde_json::to_value),
        ]
        .into_iter()
        .filter_map(Result::ok)
        .collect(),
        ThresholdOf::Link { .. } => {
            let link = serde_json::from_value::<LinkSummary>(link).and_then(serde_json::to_value);
            link.into_iter().collect()
        }
    };
    let objects = empty.iter().filter_map(Value::as_object);
    let mut keys: BTreeSet<&str> = objects.flatten().map(|(key, _)| key.as_str()).collect();
    if matches!(threshold.of, ThresholdOf::Flow { .. }) {
        // The short names of `call.mos` and `call.usable`.
        keys.extend(["mos", "usable"]);
    }
    let first = threshold.path.split('.').next().unwrap_or_default();
    if keys.contains(first) || keys.is_empty() {
        return Ok(());
    }
    let keys = keys.into_iter().map(str::to_owned).collect();
    Err(unknown(threshold, first, keys))
}

/// That the figure is in no summary of these runs, and what is.
pub(super) fn no_such_figure(threshold: &Threshold, runs: &[&RunSummary]) -> String {
    let mut paths = BTreeSet::new();
    for run in runs {
        match &threshold.of {
            ThresholdOf::Link { name } => figures(run.links.get(name), &mut paths),
            ThresholdOf::Flow { name, members } => {
                members.iter().for_each(|member| figures(run.flows.get(member), &mut paths));
                figures(run.groups.get(name), &mut paths);
            }
        }
    }
    unknown(threshold, &threshold.path, paths)
}

fn unknown(threshold: &Threshold, name: &str, known: BTreeSet<String>) -> String {
    let of = match &threshold.of {
        ThresholdOf::Flow { name, .. } => format!("the flow {name}"),
        ThresholdOf::Link { name } => format!("the link {name}"),
    };
    // A figure, and behind it no statistic.
    let figure = name.rsplit_once('.').map(|(figure, _)| figure).filter(|figure| known.contains(*figure));
    let help = match (figure, nearest(name, known.iter().map(String::as_str))) {
        (Some(figure), _) => {
            let words = Statistic::ALL.map(|it| format!(".{it}")).join(", ");
            format!("of `{figure}` over the repetitions there are {words}")
        }
        (None, Some(meant)) => format!("did you mean `{meant}`?"),
        (None, None) => format!("there are: {}", known.into_iter().collect::<Vec<_>>().join(", ")),
    };
    format!("threshold {}: {of} has no figure `{name}` in summary.json\n  = help: {help}", threshold.figure)
}

/// The paths of all figures of `of`.
fn figures(of: Option<&impl Serialize>, paths: &mut BTreeSet<String>) {
    fn walk(value: &Value, path: &str, paths: &mut BTreeSet<String>) {
        match value {
            Value::Object(keys) => {
                for (key, inner) in keys {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    walk(inner, &path, paths);
                }
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => drop(paths.insert(path.to_owned())),
            Value::String(_) | Value::Array(_) => {}
        }
    }
    if let Some(Ok(value)) = of.map(serde_json::to_value) {
        walk(&value, "", paths);
    }
}
