//! Reads thresholds, the requirements on the figures of a run: `[thresholds]` of the file, and the options
//! `--require` and `--fail-if`.
//!
//! ```text
//! FLOW.PATH[@KEY=VALUE[, KEY=VALUE]...] OPERATOR VALUE       call.mos@path.up.loss=0.01 >= 3.6
//! link.NAME.PATH[@...]                  OPERATOR VALUE       link.up.queue_delay_ms.p95 <= 50
//! PROTOCOL-PORT[...].PATH[@...]         OPERATOR VALUE       tcp-443-down.one_way_delay_ms.p95 <= 80
//! program.FIGURE[@...]                  OPERATOR VALUE       program.stalls <= 1
//! ```
//!
//! - A *figure* is a number in summary.json. Its *path* is the keys that lead to it.
//! - The *subject* of a threshold is the flow or the link that the figure is about.
//! - The *selector* is the text after `@`. It selects cells by the values of swept keys.
//! - The *bound* is the operator and the value (`crate::bound`).
//!
//! This crate knows the flows, the links and the sweep of a scenario, but not the figures. Whoever has the
//! summary of a run looks the path up in it. Begin to read with [`read_thresholds`].

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use talkpath_model::{Flow, Scenario};

use crate::bound::{Bound, bounds};
use crate::diagnostic::{Log, Place};
use crate::pass::sweep::Sweep;
use crate::quantity::{Problem, parse_any, percentage, quote};
use crate::read::nearest;
use crate::read::unknown_name;
use crate::resolve::link;
use crate::spec::TAG;
use crate::spec::is_same_word;
use crate::tree::{Entry, Node, Table};

/// A figure and the bound that it must keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The left side as it was written: `call.mos@path.up.loss=0.01`.
    pub figure: String,
    /// The flow or the link that the figure is about.
    pub subject: ThresholdSubject,
    /// The path of the figure below its flow or link in summary.json: `call.mos`, `queue_delay_ms.p95`.
    pub path: String,
    /// The bound of the figure.
    pub bound: Bound,
    /// The indices of the cells in which the figure must keep the bound. There is at least one.
    pub cells: Vec<u64>,
}

/// The flow or the link that a threshold is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThresholdSubject {
    /// A flow of the scenario.
    Flow {
        /// The name in the threshold: that of a `[flow.NAME]`, or that of one of its copies.
        name: String,
        /// The names in summary.json: those of all copies and both directions, in the order of the scenario.
        members: Vec<String>,
    },
    /// The flows of a program of the user (`[program]`). They are known after the run.
    ProgramFlows {
        /// What the names in summary.json have in common: `tcp-443` is each of `tcp-443-1-up`,
        /// `tcp-443-1-down` and `tcp-443-2-up`, and `tcp-443-up` is the first and the third.
        name: String,
    },
    /// The program of the user. The path of the figure is its name.
    Program {
        /// The names of all figures that the program prints.
        figures: Vec<String>,
    },
    /// A link.
    Link {
        /// The name in summary.json: `up`, `down`, or the name of a `[link.NAME]`.
        name: String,
    },
}

/// The parts of a cell that a threshold can name.
pub(crate) struct ThresholdCell<'a> {
    pub(crate) index: u64,
    /// The values of the swept keys.
    pub(crate) sweep: &'a BTreeMap<String, Json>,
    pub(crate) subjects: SubjectNames<'a>,
}

/// The names of the flows and links that a threshold can be about.
#[derive(Clone, Copy)]
pub(crate) enum SubjectNames<'a> {
    /// The names in a cell.
    Scenario(&'a Scenario),
    /// The names in a file with mistakes. Such a file has no cells, so the names of copies are not known.
    File(&'a Table),
}

/// Reads the thresholds of `root`. The mistakes in them go to `log`.
pub(crate) fn read_thresholds(root: &Table, cells: &[ThresholdCell<'_>], log: &mut Log) -> Vec<Threshold> {
    let Some(table) = root.get("thresholds").and_then(Node::as_table) else { return Vec::new() };
    let mut thresholds = Vec::new();
    for entry in &table.entries {
        let left_side = match parse_left_side(&entry.name, cells) {
            Ok(left_side) => left_side,
            Err(problem) => {
                let key = format!("thresholds.{}", entry.name);
                log.mistake(place_of_figure(entry), &key, problem);
                continue;
            }
        };
        // `crate::bound` has reported the bounds that are wrong.
        for bound in bounds(&entry.node).filter_map(|(_, bound)| bound.ok()) {
            let LeftSide { subject, path, cells } = left_side.clone();
            thresholds.push(Threshold { figure: entry.name.clone(), subject, path, bound, cells });
        }
    }
    thresholds
}

/// Returns the option that added a bound to the figure, if there is one, and otherwise the place in the file.
fn place_of_figure(entry: &Entry) -> &Place {
    // Bounds of options come after the bounds of the file.
    match bounds(&entry.node).last() {
        Some((place @ Place::Option(_), _)) => place,
        _ => &entry.place,
    }
}

/// Reports the mistakes in the thresholds of a file that has other mistakes, as far as they can be known.
pub(crate) fn check_without_cells(root: &Table, sweep: &Sweep, log: &mut Log) {
    if root.get("thresholds").is_none() || sweep.has_mistakes() {
        return;
    }
    let mut cell_log = Log::default();
    let swept_values: Vec<_> =
        (0..sweep.cells()).map(|index| sweep.cell(index, &mut cell_log).values).collect();
    if cell_log.is_clean() {
        let subjects = SubjectNames::File(root);
        let cells: Vec<_> =
            (0..).zip(&swept_values).map(|(index, sweep)| ThresholdCell { index, sweep, subjects }).collect();
        read_thresholds(root, &cells, log);
    }
}

/// The meaning of a threshold's left side.
#[derive(Clone)]
struct LeftSide {
    subject: ThresholdSubject,
    path: String,
    /// The indices of the selected cells.
    cells: Vec<u64>,
}

fn parse_left_side(text: &str, cells: &[ThresholdCell<'_>]) -> Result<LeftSide, Problem> {
    let (figure, selector) = text.split_once('@').unwrap_or((text, ""));
    let figure = figure.trim();
    let selected = select_cells(selector, cells)?;
    let incomplete = || incomplete_figure(figure, &selected);
    let (first, after_first) = figure.split_once('.').ok_or_else(incomplete)?;
    let (subject, path) = if first == LINK {
        let (name, path) = after_first.split_once('.').ok_or_else(incomplete)?;
        (find_link(name, &selected)?, path.to_owned())
    } else {
        let subject = find_flow(first, &selected)?;
        if after_first.is_empty() {
            return Err(incomplete());
        }
        (subject, full_path(after_first))
    };
    Ok(LeftSide { subject, path, cells: selected.iter().map(|cell| cell.index).collect() })
}

/// The mistake of a figure without its flow or link. The help names a flow that can have the figure.
fn incomplete_figure(figure: &str, cells: &[&ThresholdCell<'_>]) -> Problem {
    let problem = Problem::new(format!("found {}, expected FLOW.FIGURE or link.NAME.FIGURE", quote(figure)));
    let is_of_calls = full_path(figure) != figure;
    let flow = cells.iter().find_map(|cell| cell.subjects.first_flow(is_of_calls));
    match flow.filter(|_| !figure.is_empty() && !figure.contains('.')) {
        Some(flow) => problem.with_help(format!("did you mean `{flow}.{figure}`?")),
        None => problem,
    }
}

/// The word before the name of a link.
const LINK: &str = "link";

/// The word before the name of a figure of the program.
pub(crate) const PROGRAM: &str = "program";

fn find_link(name: &str, cells: &[&ThresholdCell<'_>]) -> Result<ThresholdSubject, Problem> {
    let links: BTreeSet<&str> = cells.iter().flat_map(|cell| cell.subjects.links()).collect();
    if links.iter().any(|pattern| link::matches(pattern, name)) {
        Ok(ThresholdSubject::Link { name: name.to_owned() })
    } else {
        Err(unknown_subject(name, "link", links))
    }
}

fn find_flow(name: &str, cells: &[&ThresholdCell<'_>]) -> Result<ThresholdSubject, Problem> {
    let mut members: Vec<String> = Vec::new();
    for member in cells.iter().flat_map(|cell| cell.subjects.members(name)) {
        if !members.iter().any(|earlier| earlier == member) {
            members.push(member.to_owned());
        }
    }
    if members.is_empty() && name == PROGRAM && cells.iter().all(|cell| cell.subjects.has_program()) {
        let names: BTreeSet<&str> = cells.iter().flat_map(|cell| cell.subjects.program_figures()).collect();
        return Ok(ThresholdSubject::Program { figures: names.into_iter().map(str::to_owned).collect() });
    }
    if members.is_empty() && is_flow_of_program(name) && cells.iter().all(|cell| cell.subjects.has_program())
    {
        return Ok(ThresholdSubject::ProgramFlows { name: name.to_owned() });
    }
    if members.is_empty() {
        return Err(unknown_subject(
            name,
            "flow",
            cells.iter().flat_map(|cell| cell.subjects.groups()).collect(),
        ));
    }
    Ok(ThresholdSubject::Flow { name: name.to_owned(), members })
}

/// Whether `name` begins as the flows of programs do: with the protocol of their packets, or with `call`,
/// which names the calls of a capture.
fn is_flow_of_program(name: &str) -> bool {
    let protocol = name.split('-').next().unwrap_or(name);
    ["tcp", "udp", "rtp", "call", "sctp", "icmp", "icmpv6", "ip", "others"].contains(&protocol)
}

fn unknown_subject(name: &str, noun: &str, known: BTreeSet<&str>) -> Problem {
    unknown_name(name, noun, &known.into_iter().map(str::to_owned).collect::<Vec<_>>())
}

/// Replaces the short name of a figure, which a statistic may follow: `mos.mean` is `call.mos.mean`.
fn full_path(path: &str) -> String {
    for (short, full) in [("mos", "call.mos"), ("usable", "call.usable")] {
        if let Some(statistic) = path.strip_prefix(short)
            && (statistic.is_empty() || statistic.starts_with('.'))
        {
            return format!("{full}{statistic}");
        }
    }
    path.to_owned()
}

/// Returns the cells that have all values of `selector`, which is `KEY=VALUE` or several of these with
/// commas.
fn select_cells<'a>(
    selector: &str,
    cells: &'a [ThresholdCell<'a>],
) -> Result<Vec<&'a ThresholdCell<'a>>, Problem> {
    let mut selected: Vec<&ThresholdCell<'_>> = cells.iter().collect();
    let mut earlier_keys: BTreeSet<&str> = BTreeSet::new();
    for condition in selector.split(',').map(str::trim).filter(|condition| !condition.is_empty()) {
        let Some((key, value)) = condition.split_once('=') else {
            let message = format!("found {} after @, expected KEY=VALUE of the sweep", quote(condition));
            return Err(Problem::new(message));
        };
        let (key, value) = (key.trim(), value.trim());
        if !earlier_keys.insert(key) {
            let help = "a threshold is about one value of a key; write another threshold for the other";
            return Err(Problem::new(format!("found {} twice after @", quote(key))).with_help(help));
        }
        check_key_is_swept(key, cells)?;
        selected.retain(|cell| cell.sweep.get(key).is_some_and(|swept| is_same_value(swept, value)));
        if selected.is_empty() {
            return Err(no_cell_with_value(key, value, cells));
        }
    }
    Ok(selected)
}

fn check_key_is_swept(key: &str, cells: &[ThresholdCell<'_>]) -> Result<(), Problem> {
    let swept_keys: BTreeSet<&str> =
        cells.iter().flat_map(|cell| cell.sweep.keys()).map(String::as_str).collect();
    if swept_keys.contains(key) {
        return Ok(());
    }
    let help = match nearest(key, swept_keys.iter().copied()) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None if swept_keys.is_empty() => "without a sweep there is one cell: leave @ out".to_owned(),
        None => format!("swept are: {}", swept_keys.into_iter().collect::<Vec<_>>().join(", ")),
    };
    Err(Problem::new(format!("found {} after @, which is not swept", quote(key))).with_help(help))
}

fn no_cell_with_value(key: &str, value: &str, cells: &[ThresholdCell<'_>]) -> Problem {
    let values: BTreeSet<String> =
        cells.iter().filter_map(|cell| cell.sweep.get(key)).map(plain_text).collect();
    let list = values.into_iter().collect::<Vec<_>>().join(", ");
    Problem::new(format!("no cell has {key} = {value}")).with_help(format!("its values are: {list}"))
}

/// Whether the text after `@KEY=` means the value `swept`.
fn is_same_value(swept: &Json, text: &str) -> bool {
    match swept {
        Json::String(word) => {
            let is_same_amount = || parse_any(word).is_some_and(|amount| parse_any(text) == Some(amount));
            is_same_word(word, text) || is_same_amount()
        }
        Json::Number(number) => number.as_f64() == percentage(text).or_else(|| text.parse().ok()),
        // A table may be named by its kind alone: `tcp` for `{ kind = "tcp", cc = "reno" }`.
        Json::Object(keys) => {
            keys.get(TAG).is_some_and(|kind| is_same_value(kind, text)) || plain_text(swept) == text
        }
        other => plain_text(other) == text,
    }
}

/// Writes a swept value without the quotes of a string.
fn plain_text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl<'a> SubjectNames<'a> {
    fn links(self) -> Vec<&'a str> {
        match self {
            Self::Scenario(scenario) => scenario.links.iter().map(|link| link.name.as_str()).collect(),
            // Without `link` tables the links are those of the path.
            Self::File(root) => table_names(root, LINK).unwrap_or_else(|| vec!["up", "down"]),
        }
    }

    /// Whether a program of the user runs beside the flows.
    fn has_program(self) -> bool {
        match self {
            Self::Scenario(scenario) => scenario.program.is_some(),
            Self::File(root) => root.get("program").is_some(),
        }
    }

    /// Returns the names of the figures that the program prints.
    fn program_figures(self) -> Vec<&'a str> {
        match self {
            Self::Scenario(scenario) => {
                let figures = scenario.program.iter().flat_map(|program| &program.figures);
                figures.map(|figure| figure.name.as_str()).collect()
            }
            Self::File(root) => {
                let program = root.get(PROGRAM).and_then(Node::as_table);
                program.and_then(|program| table_names(program, "figures")).unwrap_or_default()
            }
        }
    }

    fn groups(self) -> Vec<&'a str> {
        match self {
            Self::Scenario(scenario) => scenario.flows.iter().map(|flow| flow.group.as_str()).collect(),
            Self::File(root) => table_names(root, "flow").unwrap_or_default(),
        }
    }

    /// Returns the first flow, or the first call, by the name that a threshold gives it.
    fn first_flow(self, is_call: bool) -> Option<&'a str> {
        let is_wanted = |flow: &&Flow| !is_call || flow.workload.voice().is_some();
        match self {
            // The calls of a program are known by this name.
            Self::Scenario(scenario) if scenario.program.is_some() => Some("call"),
            Self::Scenario(scenario) => scenario.flows.iter().find(is_wanted).map(|flow| flow.group.as_str()),
            Self::File(_) => self.groups().first().copied(),
        }
    }

    /// Returns the flows that `name` names: the flow with this name, or all flows of a `[flow.NAME]`.
    fn members(self, name: &str) -> Vec<&'a str> {
        match self {
            Self::Scenario(scenario) => {
                let is_named = |flow: &&Flow| flow.name == name || flow.group == name;
                scenario.flows.iter().filter(is_named).map(|flow| flow.name.as_str()).collect()
            }
            // The name of a copy or a direction is the name of the table, a hyphen and a suffix.
            Self::File(_) => {
                let may_be_named = |group: &&str| {
                    name.strip_prefix(*group)
                        .is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('-'))
                };
                self.groups().into_iter().filter(may_be_named).collect()
            }
        }
    }
}

/// Returns the names of the tables below `key`, or `None` if the file has no such key.
fn table_names<'a>(root: &'a Table, key: &str) -> Option<Vec<&'a str>> {
    Some(root.get(key)?.as_table()?.entries.iter().map(|entry| entry.name.as_str()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::Operator;
    use crate::bound::tests::percent_of;
    use crate::{Diagnostics, Options, Plan, Setting, Source, load};

    const SCENARIO: &str = concat!(
        "duration = \"1 s\"\npath = \"lan\"\n",
        "[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\ndirection = \"both\"\n",
        "[flow.game]\ntransport = \"udp\"\nworkload = { kind = \"cbr\", rate = \"64 kbps\", size = \"160 B\" }\n",
        "[sweep]\n\"path.up.loss\" = [0.0, 0.01]\n\"path.up.rate\" = [\"1 Mbps\", \"2 Mbps\"]\n",
    );

    #[test]
    fn a_flow_of_a_program_is_known_by_its_protocol_if_there_is_a_program() {
        let read = |program: &str, name: &str| {
            let text = format!(
                "duration = \"1 s\"\npath = \"lan\"\n{program}\n[thresholds]\n\"{name}.loss_rate\" = \"<= 0\"\n"
            );
            load(
                &Source::new("s.toml", text),
                &Options { percent_of: Some(percent_of), ..Options::default() },
            )
        };
        let program = "[program]\ncommand = [\"player\"]";
        let plan = read(program, "tcp-443-up").unwrap();
        let expected = ThresholdSubject::ProgramFlows { name: "tcp-443-up".to_owned() };
        assert_eq!(plan.thresholds[0].subject, expected);
        assert!(read(program, "call").is_ok(), "the rated streams of a program");
        let with_figure = "[program]\ncommand = [\"player\"]\nfigures.stalls = { json = \"$.stalls\" }";
        let expected = ThresholdSubject::Program { figures: vec!["stalls".to_owned()] };
        assert_eq!(read(with_figure, "program").unwrap().thresholds[0].subject, expected);
        assert!(read("", "program").is_err());
        assert!(read("", "tcp-443-up").is_err());
    }

    fn read(thresholds: &str) -> Result<Plan, Diagnostics> {
        let source = Source::new("s.toml", format!("{SCENARIO}[thresholds]\n{thresholds}"));
        load(&source, &Options { percent_of: Some(percent_of), ..Options::default() })
    }

    fn read_one(figure: &str) -> Threshold {
        read(&format!("{figure:?} = \">= 0.6\"")).unwrap().thresholds.remove(0)
    }

    fn refused(figure: &str) -> String {
        read(&format!("{figure:?} = \">= 0.6\"")).unwrap_err().to_string()
    }

    #[test]
    fn a_flow_means_its_copies_and_directions_and_its_short_names() {
        let found = read_one("call.mos");
        let members = ["call-up", "call-down"].map(str::to_owned).to_vec();
        assert_eq!(found.subject, ThresholdSubject::Flow { name: "call".to_owned(), members });
        assert_eq!((found.path.as_str(), found.cells.as_slice()), ("call.mos", &[0, 1, 2, 3][..]));
        assert_eq!(found.bound, Bound { operator: Operator::AtLeast, value: 0.6 });
        assert_eq!(read_one("call-up.call.mos").path, "call.mos");
        assert_eq!(read_one("call.mos.mean").path, "call.mos.mean");
        assert_eq!(read_one("call.mosaic").path, "mosaic");
        assert_eq!(read_one("call.usable").path, "call.usable");
        assert_eq!(read_one("game.in_time").path, "in_time");
        let link = read_one("link.up.queue_delay_ms.p95");
        assert_eq!(link.subject, ThresholdSubject::Link { name: "up".to_owned() });
        assert_eq!(link.path, "queue_delay_ms.p95");
    }

    #[test]
    fn cells_are_chosen_by_the_value_that_they_mean() {
        let cells = |only: &str| read_one(&format!("game.in_time@{only}")).cells;
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
        assert!(refused("mos").contains("expected FLOW.FIGURE or link.NAME.FIGURE"));
        assert!(refused("mos").contains("did you mean `call.mos`?"), "{}", refused("mos"));
        assert!(refused("in_time").contains("did you mean `call.in_time`?"));
        assert!(!refused("link.up").contains("did you mean"));
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
        let warnings: Vec<_> = whole.warnings.iter().map(ToString::to_string).collect();
        assert!(
            warnings.len() == 1 && warnings[0].contains("did you mean 1% or 100%? It is read as 100%"),
            "{warnings:?}"
        );
        let at = read("\"game.in_time\" = 0.95").unwrap_err().to_string();
        assert!(at.contains("s.toml:14:18") && at.contains("found 0.95, expected >="), "{at}");
        for bound in ["3.6", ">= much", "= 3", ">= inf", ">="] {
            assert!(read(&format!("\"call.mos\" = {bound:?}")).is_err(), "{bound}");
        }
    }

    #[test]
    fn a_threshold_s_mistake_is_told_beside_those_of_other_keys() {
        let mistakes = |text: &str| {
            let wrong = format!(
                "{text}[thresholds]\n\"cal.mos\" = \">= 3\"\n\"call-up.mos\" = \">= 3\"\n\"call.mos@path.up.los=0\" = \">= 3\"\n"
            );
            load(&Source::new("s.toml", wrong), &Options::default()).unwrap_err().to_string()
        };
        for wrong in [format!("durrr = 1\n{SCENARIO}"), format!("repeat = 0\n{SCENARIO}")] {
            let said = mistakes(&wrong);
            assert!(said.contains("no flow called \"cal\"") && said.contains("path.up.los"), "{said}");
            assert!(said.lines().count() == 3 && !said.contains("call-up"), "{said}");
        }
        // Where the sweep is wrong, nobody knows what is swept.
        let said = mistakes(&SCENARIO.replace("\"path.up.loss\"", "\"path.up.los\""));
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
        let bounds: Vec<_> = plan.thresholds.iter().map(|threshold| threshold.bound.to_string()).collect();
        assert_eq!(bounds, [">= 3", "<= 4"]);
        let again = load(&Source::new("again", plan.resolved.clone()), &Options::default()).unwrap();
        assert_eq!(again.thresholds, plan.thresholds, "{}", plan.resolved);
        let mistake = load(&source, &options("cal.mos")).unwrap_err();
        assert_eq!(mistake.list[0].option.as_deref(), Some("--require it"), "{mistake}");
    }
}
