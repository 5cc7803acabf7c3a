//! Thresholds: what the figures of a run must hold, as `[thresholds]`, `--require` and `--fail-if` say it.
//!
//! ```text
//! FLOW.PATH[@KEY=VALUE[, KEY=VALUE]...] OPERATOR VALUE       call.mos@path.up.loss=0.01 >= 3.6
//! link.NAME.PATH[@...]                  OPERATOR VALUE       link.up.queue_delay_ms.p95 <= 50
//! ```
//!
//! Here they are read, and held against the flows, the links and the sweep of the scenario. Whether the
//! figure itself exists is not known here: who has a run's summary looks for `path` in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use talkpath_model::{Flow, Scenario};

use crate::diagnostic::{Log, Place};
use crate::names::unknown_name;
use crate::pass::sweep::Sweep;
use crate::quantity::{self, Dimension, Measure, Problem, quote};
use crate::read::nearest;
use crate::resolve::link;
use crate::spec::is_same_word;
use crate::threshold::{Bound, bounds};
use crate::tree::{Node, Table};

/// A figure and the bound that it must keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The figure as it was written: `call.mos@path.up.loss=0.01`.
    pub figure: String,
    /// Where it is looked for.
    pub of: ThresholdOf,
    /// The figure below its flow or link in summary.json: `call.mos`, `queue_delay_ms.p95`.
    pub path: String,
    /// What must hold.
    pub bound: Bound,
    /// The cells in which it must, by index; at least one.
    pub cells: Vec<u64>,
}

/// What a threshold's figure belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThresholdOf {
    /// A flow of the scenario, and the names that it, its copies and its two directions have in a summary.
    Flow {
        /// By the scenario's name, or by that of a copy.
        name: String,
        /// In the order of the scenario.
        members: Vec<String>,
    },
    /// A link, by its name in a summary.
    Link {
        /// `up`, `down`, or the key of `[link.NAME]`.
        name: String,
    },
}

/// A cell, as far as a threshold can be about it.
pub(crate) struct Judged<'a> {
    pub(crate) index: u64,
    pub(crate) sweep: &'a BTreeMap<String, Json>,
    pub(crate) names: Names<'a>,
}

/// The flows and links that a threshold can be about.
#[derive(Clone, Copy)]
pub(crate) enum Names<'a> {
    /// Those of the cell.
    Of(&'a Scenario),
    /// What a file with mistakes calls them: its copies are not made.
    Written(&'a Table),
}

impl<'a> Names<'a> {
    fn links(self) -> Vec<&'a str> {
        match self {
            Self::Of(scenario) => scenario.links.iter().map(|link| link.name.as_str()).collect(),
            Self::Written(root) => tables(root, LINK).unwrap_or_else(|| vec!["up", "down"]),
        }
    }

    fn groups(self) -> Vec<&'a str> {
        match self {
            Self::Of(scenario) => scenario.flows.iter().map(|flow| flow.group.as_str()).collect(),
            Self::Written(root) => tables(root, "flow").unwrap_or_default(),
        }
    }

    /// The flows that `name` means.
    fn members(self, name: &str) -> Vec<&'a str> {
        match self {
            Self::Of(scenario) => {
                let is_meant = |flow: &&Flow| flow.name == name || flow.group == name;
                scenario.flows.iter().filter(is_meant).map(|flow| flow.name.as_str()).collect()
            }
            Self::Written(_) => {
                let may_be = |group: &&str| {
                    name.strip_prefix(*group).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                };
                self.groups().into_iter().filter(may_be).collect()
            }
        }
    }
}

/// The names of the tables in the table `key`; `None` without it.
fn tables<'a>(root: &'a Table, key: &str) -> Option<Vec<&'a str>> {
    Some(root.get(key)?.as_table()?.entries.iter().map(|entry| entry.name.as_str()).collect())
}

/// The thresholds of `root`, for these cells.
pub(crate) fn thresholds(root: &Table, cells: &[Judged<'_>], log: &mut Log) -> Vec<Threshold> {
    let Some(table) = root.get("thresholds").and_then(Node::as_table) else { return Vec::new() };
    let mut read = Vec::new();
    for entry in &table.entries {
        let at = format!("thresholds.{}", entry.name);
        // A key to which an option added a bound still has its place in the file.
        let place = bounds(&entry.node).last().map_or(&entry.place, |(place, _)| place);
        let place = if matches!(place, Place::Option(_)) { place } else { &entry.place };
        match figure(&entry.name, cells) {
            Err(problem) => log.mistake(place, &at, problem.message, problem.help),
            Ok(Figure { of, path, cells }) => {
                let of_bound = |bound| Threshold {
                    figure: entry.name.clone(),
                    of: of.clone(),
                    path: path.clone(),
                    bound,
                    cells: cells.clone(),
                };
                // A bound that is wrong is reported already.
                read.extend(bounds(&entry.node).filter_map(|(_, bound)| bound.ok()).map(of_bound));
            }
        }
    }
    read
}

/// Mistakes in the thresholds of a file that has others, as far as they can be known.
pub(crate) fn tell_wrong(root: &Table, sweep: &Sweep, log: &mut Log) {
    if root.get("thresholds").is_none() || sweep.is_wrong() {
        return;
    }
    let mut of_cells = Log::default();
    let cells: Vec<_> = (0..sweep.cells()).map(|index| sweep.cell(index, &mut of_cells).values).collect();
    if of_cells.is_clean() {
        let names = Names::Written(root);
        let judged: Vec<_> =
            cells.iter().zip(0..).map(|(sweep, index)| Judged { index, sweep, names }).collect();
        thresholds(root, &judged, log);
    }
}

/// The figure that a threshold is about.
struct Figure {
    of: ThresholdOf,
    path: String,
    /// The cells, by index.
    cells: Vec<u64>,
}

/// What the left side of a threshold means.
fn figure(text: &str, cells: &[Judged<'_>]) -> Result<Figure, Problem> {
    let (figure, only) = text.split_once('@').map_or((text, ""), |(figure, only)| (figure.trim(), only));
    let cells = selected(only, cells)?;
    let missing =
        || Problem::new(format!("found {}, expected FLOW.FIGURE or link.NAME.FIGURE", quote(figure)));
    let (first, rest) = figure.split_once('.').ok_or_else(missing)?;
    let index = cells.iter().map(|cell| cell.index).collect();
    if first == LINK {
        let (name, path) = rest.split_once('.').ok_or_else(missing)?;
        let links = || cells.iter().flat_map(|cell| cell.names.links());
        if !links().any(|written| link::matches(written, name)) {
            return Err(unknown(name, "link", links()));
        }
        return Ok(Figure {
            of: ThresholdOf::Link { name: name.to_owned() },
            path: path.to_owned(),
            cells: index,
        });
    }
    let mut members: Vec<String> = Vec::new();
    for member in cells.iter().flat_map(|cell| cell.names.members(first)) {
        if !members.iter().any(|it| it == member) {
            members.push(member.to_owned());
        }
    }
    if members.is_empty() {
        return Err(unknown(first, "flow", cells.iter().flat_map(|cell| cell.names.groups())));
    }
    if rest.is_empty() {
        return Err(missing());
    }
    let short = SHORT.iter().find_map(|(short, path)| {
        let behind = rest.strip_prefix(short).filter(|rest| rest.is_empty() || rest.starts_with('.'))?;
        Some(format!("{path}{behind}"))
    });
    let path = short.unwrap_or_else(|| rest.to_owned());
    Ok(Figure { of: ThresholdOf::Flow { name: first.to_owned(), members }, path, cells: index })
}

/// That none of `names` is `name`.
fn unknown<'a>(name: &str, what: &str, names: impl Iterator<Item = &'a str>) -> Problem {
    let names: BTreeSet<_> = names.map(str::to_owned).collect();
    unknown_name(name, what, &names.into_iter().collect::<Vec<_>>())
}

/// The cells whose swept keys have the values of `only`, which is `KEY=VALUE`, with commas between several.
fn selected<'a>(only: &str, cells: &'a [Judged<'a>]) -> Result<Vec<&'a Judged<'a>>, Problem> {
    let mut selected: Vec<&Judged<'_>> = cells.iter().collect();
    let mut given: BTreeSet<&str> = BTreeSet::new();
    for pair in only.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Problem::new(format!(
                "found {} after @, expected KEY=VALUE of the sweep",
                quote(pair)
            )));
        };
        let (key, value) = (key.trim(), value.trim());
        if !given.insert(key) {
            return Err(Problem::new(format!("found {} twice after @", quote(key))).with_help(
                "a threshold is about one value of a key; write another threshold for the other",
            ));
        }
        let keys: BTreeSet<&str> =
            cells.iter().flat_map(|cell| cell.sweep.keys()).map(String::as_str).collect();
        if !keys.contains(key) {
            let problem = Problem::new(format!("found {} after @, which is not swept", quote(key)));
            return Err(match nearest(key, keys.iter().copied()) {
                Some(meant) => problem.with_help(format!("did you mean `{meant}`?")),
                None if keys.is_empty() => {
                    problem.with_help("without a sweep there is one cell: leave @ out")
                }
                None => problem
                    .with_help(format!("swept are: {}", keys.into_iter().collect::<Vec<_>>().join(", "))),
            });
        }
        selected.retain(|cell| cell.sweep.get(key).is_some_and(|swept| is_same_value(swept, value)));
        if selected.is_empty() {
            let values: Vec<_> = cells.iter().filter_map(|cell| cell.sweep.get(key)).map(plain).collect();
            let values: BTreeSet<_> = values.into_iter().collect();
            let message = format!("no cell has {key} = {value}");
            let list = values.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Problem::new(message).with_help(format!("its values are: {list}")));
        }
    }
    Ok(selected)
}

/// Whether a swept value is what the text after `@KEY=` means.
fn is_same_value(swept: &Json, text: &str) -> bool {
    let amount = |text: &str| {
        let any = Dimension::ALL.map(|dimension| Measure { dimension, least: 0, most: u64::MAX });
        quantity::parse(text, &any).ok()
    };
    match swept {
        Json::String(word) => {
            is_same_word(word, text) || amount(word).is_some_and(|swept| amount(text) == Some(swept))
        }
        Json::Number(number) => number.as_f64() == quantity::percentage(text).or_else(|| text.parse().ok()),
        Json::Object(keys) => {
            keys.get("kind").is_some_and(|kind| is_same_value(kind, text)) || plain(swept) == text
        }
        other => plain(other) == text,
    }
}

fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The word before a link's name.
const LINK: &str = "link";
/// A call's figures by their short names, which a statistic may follow: `mos.mean`.
const SHORT: [(&str, &str); 2] = [("mos", "call.mos"), ("usable", "call.usable")];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threshold::Operator;
    use crate::threshold::tests::percent_of;
    use crate::{Diagnostics, Options, Plan, Setting, Source, load};

    const SCENARIO: &str = concat!(
        "duration = \"1 s\"\npath = \"lan\"\n",
        "[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\ndirection = \"both\"\n",
        "[flow.game]\ntransport = \"udp\"\nworkload = { kind = \"cbr\", rate = \"64 kbps\", size = \"160 B\" }\n",
        "[sweep]\n\"path.up.loss\" = [0.0, 0.01]\n\"path.up.rate\" = [\"1 Mbps\", \"2 Mbps\"]\n",
    );

    fn read(thresholds: &str) -> Result<Plan, Diagnostics> {
        let source = Source::new("s.toml", format!("{SCENARIO}[thresholds]\n{thresholds}"));
        load(&source, &Options { percent_of: Some(percent_of), ..Options::default() })
    }

    fn one(figure: &str) -> Threshold {
        read(&format!("{figure:?} = \">= 0.6\"")).unwrap().thresholds.remove(0)
    }

    fn refused(figure: &str) -> String {
        read(&format!("{figure:?} = \">= 0.6\"")).unwrap_err().to_string()
    }

    #[test]
    fn a_flow_means_its_copies_and_directions_and_its_short_names() {
        let found = one("call.mos");
        let members = ["call-up", "call-down"].map(str::to_owned).to_vec();
        assert_eq!(found.of, ThresholdOf::Flow { name: "call".to_owned(), members });
        assert_eq!((found.path.as_str(), found.cells.as_slice()), ("call.mos", &[0, 1, 2, 3][..]));
        assert_eq!(found.bound, Bound { operator: Operator::AtLeast, value: 0.6 });
        assert_eq!(one("call-up.call.mos").path, "call.mos");
        assert_eq!(one("call.mos.mean").path, "call.mos.mean");
        assert_eq!(one("call.mosaic").path, "mosaic");
        assert_eq!(one("call.usable").path, "call.usable");
        assert_eq!(one("game.in_time").path, "in_time");
        let link = one("link.up.queue_delay_ms.p95");
        assert_eq!(link.of, ThresholdOf::Link { name: "up".to_owned() });
        assert_eq!(link.path, "queue_delay_ms.p95");
    }

    #[test]
    fn cells_are_chosen_by_the_value_that_they_mean() {
        let cells = |only: &str| one(&format!("game.in_time@{only}")).cells;
        assert_eq!(cells("path.up.loss=0.01"), [2, 3]);
        assert_eq!(cells("path.up.loss=1e-2"), [2, 3]);
        assert_eq!(cells("path.up.rate=2000 kbps"), [1, 3]);
        assert_eq!(cells("path.up.rate=1Mbps, path.up.loss=0"), [0]);
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        assert!(refused("cal.mos").contains("no flow called \"cal\" (did you mean \"call\"?)"));
        assert!(refused("speech.mos").contains("there are: call, game"));
        assert!(refused("link.upp.lost").contains("did you mean \"up\"?"));
        assert!(refused("mos").contains("expected FLOW.FIGURE"));
        assert!(refused("call.mos@path.up.los=0.01").contains("did you mean `path.up.loss`?"));
        assert!(refused("call.mos@path.up.loss=0.02").contains("its values are: 0.0, 0.01"));
        assert!(
            refused("call.mos@path.up.loss=0,path.up.loss=0.01").contains("\"path.up.loss\" twice after @")
        );
        assert!(refused("call.mos@here").contains("expected KEY=VALUE"));
        for (figure, bound) in
            [("game.in_time", ">= 95"), ("game.loss_rate", "<= 2"), ("call.mos", ">= 3.1%")]
        {
            let why = read(&format!("{figure:?} = [\">= 0\", {bound:?}]")).unwrap_err().to_string();
            assert!(why.contains("share, and found"), "{why}");
        }
        let whole = read("\"game.loss_rate\" = [\"<= 1\", \"<= 100%\"]").unwrap();
        let told: Vec<_> = whole.warnings.iter().map(ToString::to_string).collect();
        assert!(
            told.len() == 1 && told[0].contains("did you mean 1% or 100%? It is read as 100%"),
            "{told:?}"
        );
        let at = read("\"game.in_time\" = 0.95").unwrap_err().to_string();
        assert!(at.contains("s.toml:14:18") && at.contains("found 0.95, expected >="), "{at}");
        for bound in ["3.6", ">= much", "= 3", ">= inf", ">="] {
            assert!(read(&format!("\"call.mos\" = {bound:?}")).is_err(), "{bound}");
        }
    }

    #[test]
    fn a_threshold_s_mistake_is_told_beside_those_of_other_keys() {
        let of = |text: &str| {
            let wrong = format!(
                "{text}[thresholds]\n\"cal.mos\" = \">= 3\"\n\"call-up.mos\" = \">= 3\"\n\"call.mos@path.up.los=0\" = \">= 3\"\n"
            );
            load(&Source::new("s.toml", wrong), &Options::default()).unwrap_err().to_string()
        };
        for wrong in [format!("durrr = 1\n{SCENARIO}"), format!("repeat = 0\n{SCENARIO}")] {
            let said = of(&wrong);
            assert!(said.contains("no flow called \"cal\"") && said.contains("path.up.los"), "{said}");
            assert!(said.lines().count() == 3 && !said.contains("call-up"), "{said}");
        }
        // Where the sweep is wrong, nobody knows what is swept.
        let said = of(&SCENARIO.replace("\"path.up.loss\"", "\"path.up.los\""));
        assert!(said.contains("sweep.path.up.los") && !said.contains("thresholds"), "{said}");
        let text = SCENARIO.replace("path = \"lan\"\n", "[link.\"acc{n}\"]\n[link.wan]\n");
        let text = format!("{text}[thresholds]\n\"link.acc2.lost\" = 0\n\"link.wann.lost\" = \"<= 0\"\n");
        let said = load(&Source::new("s.toml", text), &Options::default()).unwrap_err().to_string();
        assert!(
            said.contains("no link called \"wann\"") && !said.contains("no link called \"acc2"),
            "{said}"
        );
    }

    #[test]
    fn an_option_adds_to_what_the_file_demands_and_stands_in_the_resolved_form() {
        let source = Source::new("s.toml", format!("{SCENARIO}[thresholds]\n\"call.mos\" = \">= 3\"\n"));
        let set = |option: &str, figure: &str| Setting::by(option, &format!("thresholds.{figure}"), "<= 4");
        let options = |figure| Options { set: vec![set("--require it", figure)], ..Options::default() };
        let plan = load(&source, &options("call.mos")).unwrap();
        let bounds: Vec<_> = plan.thresholds.iter().map(|it| it.bound.to_string()).collect();
        assert_eq!(bounds, [">= 3", "<= 4"]);
        let again = load(&Source::new("again", plan.resolved.clone()), &Options::default()).unwrap();
        assert_eq!(again.thresholds, plan.thresholds, "{}", plan.resolved);
        let mistake = load(&source, &options("cal.mos")).unwrap_err();
        assert_eq!(mistake.list[0].option.as_deref(), Some("--require it"), "{mistake}");
    }
}
