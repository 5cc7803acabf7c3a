//! Finds a figure by its path in summary.json.

use std::collections::BTreeSet;

use talkpath_measure::figures::{FLOW, Figure, GROUP, Getter, LINK, Table, Value};
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::{FlowSummary, GroupSummary, LinkSummary};
use talkpath_scenario::{Threshold, ThresholdSubject, nearest};

/// The result of looking a path up in a summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Lookup {
    /// A number.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
    /// The value is `null`.
    Null,
    /// The path leads into something that is `null` or absent.
    Below,
    /// There is no such key, or its value is not a single figure.
    Unknown,
}

impl Lookup {
    /// The value as a number: `true` is 1 and `false` is 0.
    pub(super) fn number(self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(value),
            Self::Flag(flag) => Some(f64::from(u8::from(flag))),
            Self::Null | Self::Below | Self::Unknown => None,
        }
    }
}

/// A figure in one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RepetitionFigure {
    pub(super) lookup: Lookup,
    /// The number of messages that the figure is a share of, if it is a share.
    pub(super) messages: Option<u64>,
    /// The number of messages that the share leaves out because they were unfinished at the end.
    pub(super) unfinished: u64,
}

impl From<Lookup> for RepetitionFigure {
    fn from(lookup: Lookup) -> Self {
        Self { lookup, messages: None, unfinished: 0 }
    }
}

/// The figure at `path` of a flow.
pub(super) fn flow_figure(flow: Option<&FlowSummary>, path: &str) -> RepetitionFigure {
    let absent = if flow.is_none() { Lookup::Below } else { Lookup::Unknown };
    observe(&FLOW, flow, path, absent)
}

/// The figure at `path` of all copies of a flow together.
pub(super) fn group_figure(group: Option<&GroupSummary>, path: &str) -> RepetitionFigure {
    observe(&GROUP, group, path, Lookup::Unknown)
}

/// The figure at `path` of a link.
pub(super) fn link_figure(link: Option<&LinkSummary>, path: &str) -> RepetitionFigure {
    observe(&LINK, link, path, Lookup::Unknown)
}

/// The figure at `path` of `owner`, or `absent` if the table has none there.
fn observe<T>(table: &'static Table<T>, owner: Option<&T>, path: &str, absent: Lookup) -> RepetitionFigure {
    let messages = table.messages(path).zip(owner);
    RepetitionFigure {
        lookup: look_up(table, owner, path).unwrap_or(absent),
        messages: messages.map(|(messages, owner)| (messages.count)(owner)),
        unfinished: messages.map_or(0, |(messages, owner)| (messages.left_out)(owner)),
    }
}

/// The figure at `path` of `owner`, or `None` if the table has no number, flag or named count there.
fn look_up<T>(table: &'static Table<T>, owner: Option<&T>, path: &str) -> Option<Lookup> {
    if let Some((counts, name)) = table.counts(path) {
        let Some(counts) = owner.and_then(counts) else { return Some(Lookup::Below) };
        return Some(counts.get(name).map_or(Lookup::Unknown, |count| Lookup::Number(*count as f64)));
    }
    let figure = table.find(path).filter(|figure| is_bounded(figure))?;
    let Some(owner) = owner else { return Some(Lookup::Below) };
    Some(match figure.value(owner) {
        Some(Value::Number(value)) => Lookup::Number(value),
        Some(Value::Flag(flag)) => Lookup::Flag(flag),
        Some(Value::Word(_)) | None => Lookup::Null,
    })
}

/// Whether a threshold can be about the figure. A word has no bound. Counts by name are not one figure, but
/// each of them is.
const fn is_bounded<T>(figure: &Figure<T>) -> bool {
    !matches!(figure.get, Getter::Word(_) | Getter::Counts(_))
}

/// Checks that a flow, its copies together, or a link can have the figure of the threshold. Nothing needs to
/// run for that.
///
/// # Errors
/// Returns a message that says which figures there are.
pub(super) fn check_figure(threshold: &Threshold) -> Result<(), String> {
    let path = threshold.path.as_str();
    let mut known = paths_of(&threshold.subject);
    // A count by name, such as the drops by one cause, is a figure under any name.
    let is_named = is_about_flow(threshold) && FLOW.counts(path).is_some();
    let is_statistic = Statistic::split(path).is_some_and(|(figure_path, _)| known.contains(figure_path));
    if is_named || is_statistic || known.contains(path) {
        return Ok(());
    }
    if is_about_flow(threshold) {
        // The short names of `call.mos` and `call.usable`.
        known.extend(["mos", "usable"]);
    }
    Err(unknown(threshold, path, &known))
}

const fn is_about_flow(threshold: &Threshold) -> bool {
    match threshold.subject {
        ThresholdSubject::Flow { .. } | ThresholdSubject::ProgramFlows { .. } => true,
        ThresholdSubject::Link { .. } => false,
    }
}

/// The paths of all figures that a threshold about `subject` can have.
fn paths_of(subject: &ThresholdSubject) -> BTreeSet<&'static str> {
    fn paths<T>(table: &'static Table<T>) -> impl Iterator<Item = &'static str> {
        table.rows().filter(|figure| is_bounded(figure)).map(|figure| figure.path)
    }
    match subject {
        ThresholdSubject::Flow { .. } => paths(&FLOW).chain(paths(&GROUP)).collect(),
        ThresholdSubject::ProgramFlows { .. } => paths(&FLOW).collect(),
        ThresholdSubject::Link { .. } => paths(&LINK).collect(),
    }
}

/// The message that no run has the figure of the threshold, with the figures that there are.
pub(super) fn no_such_figure(threshold: &Threshold) -> String {
    let mut paths = paths_of(&threshold.subject);
    // The path itself is not proposed, because only all copies together, or another flow, may have it.
    paths.remove(threshold.path.as_str());
    unknown(threshold, &threshold.path, &paths)
}

/// The message that there is no figure `name`. It proposes one of the `known` figures.
fn unknown(threshold: &Threshold, name: &str, known: &BTreeSet<&str>) -> String {
    let owner = match &threshold.subject {
        ThresholdSubject::Flow { name, .. } | ThresholdSubject::ProgramFlows { name } => {
            format!("the flow {name}")
        }
        ThresholdSubject::Link { name } => format!("the link {name}"),
    };
    // If the name begins with a figure, only its ending is wrong: it is not a statistic.
    let figure = name.rsplit_once('.').map(|(figure, _)| figure).filter(|figure| known.contains(figure));
    let help = match (figure, nearest(name, known.iter().copied())) {
        (Some(figure), _) => {
            let words = Statistic::ALL.map(|word| format!(".{word}")).join(", ");
            format!("of `{figure}` over the repetitions there are {words}")
        }
        (None, Some(meant)) => format!("did you mean `{meant}`?"),
        (None, None) => {
            let keys: BTreeSet<&str> = known.iter().filter_map(|path| path.split('.').next()).collect();
            format!("there are: {}", keys.into_iter().collect::<Vec<_>>().join(", "))
        }
    };
    format!(
        "threshold {}: {owner} has no figure `{name}` in summary.json\n  = help: {help}",
        threshold.figure
    )
}
