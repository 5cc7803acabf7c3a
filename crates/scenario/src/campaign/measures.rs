//! Reads the measures of a campaign.

use talkpath_units::Duration;

use super::hosts;
use super::tables::{NamedTable, named_tables};
use super::types::{Host, HostPair, Measure, MeasureScenario};
use crate::compare::ComparedWorkload;
use crate::diagnostic::Log;
use crate::keys::{self, MEASURE};
use crate::quantity::Problem;
use crate::read::{self, KeyPath};
use crate::section::{Section, first_step};
use crate::tree::{Node, Table, Value};

/// Reads every `[measure.NAME]`. `campaign_pairs` are for measures that name no pairs.
pub(super) fn read_measures(
    root: &Table,
    hosts: &[Host],
    campaign_pairs: &[HostPair],
    log: &mut Log,
) -> Vec<Measure> {
    let mut measures = Vec::new();
    for NamedTable { name, table, place } in named_tables(root, "measure") {
        let parent = KeyPath::ROOT.key("measure");
        let at = parent.key(name);
        let section = Section::new(table, MEASURE.keys, at, place);
        if let Some(step) = first_step(table) {
            let problem = Problem::new("found a step, which only copies of flows take");
            log.mistake(&step.place, at, problem);
        }
        let scenario = read_scenario(&section, log);
        let pairs = match section.node("pairs") {
            Some(node) => hosts::read_pairs(node, at, hosts, log),
            None => campaign_pairs.to_vec(),
        };
        let (drain, rounds) = (section.duration("drain"), section.count("rounds"));
        let require =
            section.names("require").into_iter().flatten().map(|(text, _)| text.to_owned()).collect();
        measures.push(Measure { name: name.to_owned(), pairs, scenario, drain, rounds, require });
    }
    measures
}

fn read_scenario(section: &Section<'_>, log: &mut Log) -> MeasureScenario {
    let Some(file) = section.text("scenario") else { return read_comparison(section, log) };
    for key in ["workload", "transports", "duration"] {
        if section.node(key).is_some() {
            let message = "found beside `scenario`, expected one of them: the scenario file has its own";
            section.problem(key, message, log);
        }
    }
    MeasureScenario::File(file.to_owned())
}

fn read_comparison(section: &Section<'_>, log: &mut Log) -> MeasureScenario {
    let workload =
        section.choice("workload").and_then(ComparedWorkload::named).unwrap_or(ComparedWorkload::Voice);
    let transports = match section.node("transports") {
        Some(Node { value: Value::List(items), .. }) => read_transports(items, section.at, log),
        _ => usual_transports(workload).iter().map(|&name| name.to_owned()).collect(),
    };
    let duration = section.duration("duration").unwrap_or(DURATION);
    MeasureScenario::Comparison { workload, transports, duration }
}

/// Returns the transports that `talkpath compare` takes by default. Nothing holds a bulk transfer over UDP
/// back.
const fn usual_transports(workload: ComparedWorkload) -> &'static [&'static str] {
    match workload {
        ComparedWorkload::Bulk => &["tcp"],
        ComparedWorkload::Voice | ComparedWorkload::Game => &["udp", "tcp", "tcp-nodelay"],
    }
}

/// The default duration of `talkpath compare` in `live` (docs/reference/interface.md).
const DURATION: Duration = Duration::from_secs(10);

fn read_transports(items: &[Node], at: KeyPath<'_>, log: &mut Log) -> Vec<String> {
    let mut transports: Vec<String> = Vec::new();
    for item in items {
        let problem = match read::one_of(item, "a transport", keys::transport_names().into_iter(), &[]) {
            Ok(name) if transports.iter().any(|earlier| earlier == name) => {
                Problem::new(format!("found \"{name}\" twice"))
            }
            Ok(name) => {
                transports.push(name.to_owned());
                continue;
            }
            Err(problem) => problem,
        };
        // An item that is no text is a mistake, which the key tables have found.
        if item.as_text().is_some() {
            log.mistake(&item.place, at.key("transports"), problem);
        }
    }
    transports
}

/// Checks that there is a pair of hosts for each measure.
pub(super) fn check_pairs_exist(root: &Table, measures: &[Measure], log: &mut Log) {
    for NamedTable { name, place, .. } in named_tables(root, "measure") {
        if measures.iter().any(|measure| measure.name == name && measure.pairs.is_empty()) {
            let problem = Problem::new("found no pair of hosts").with_help("a measure needs two hosts");
            log.mistake(place, format!("measure.{name}"), problem);
        }
    }
}
