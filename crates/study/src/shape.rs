//! The shape of a run's summary: a summary with every path that a run of a scenario can have. A metric that
//! is not in it is misspelt, and this is found before anything runs. The values mean nothing; only their
//! types do.

use serde_json::{Map, Value as Json, json};
use talkpath_measure::figures::{CLOCK, FLOW, GROUP, Getter, LINK, MACHINE, Table};
use talkpath_model::Scenario;

/// Returns the shape of the summary of a run of `scenario`.
pub(crate) fn summary_shape(scenario: &Scenario) -> Json {
    let flow = flow_figures();
    // A group of one copy has the figures of its flow, too.
    let mut group = flow.clone();
    group.extend(table_figures(&GROUP));
    let flow_names = || scenario.flows.iter().map(|flow| &flow.name);
    let group_names = scenario.flows.iter().map(|flow| &flow.group);
    let link_names = || scenario.links.iter().map(|link| &link.name);
    let mut shape = json!({
        "flows": by_name(flow_names(), &flow),
        "groups": by_name(group_names, &group),
        "links": by_name(link_names(), &table_figures(&LINK)),
        "machine": table_figures(&MACHINE),
        "clock": table_figures(&CLOCK),
        "watched": {
            "nodes": 0.0,
            "links": by_name(link_names(), &watched_figures()),
        },
        "log": by_name(flow_names(), &log_fields()),
    });
    if let Some(program) = &scenario.program {
        let figures = program.figures.iter().map(|figure| (figure.name.clone(), json!(0.0)));
        shape["program"] = json!({ "seconds": 0.0, "figures": figures.collect::<Map<_, _>>() });
    }
    shape
}

/// Returns a table with the same entry under each name.
fn by_name<'a>(names: impl Iterator<Item = &'a String>, entry: &Map<String, Json>) -> Json {
    Json::Object(names.map(|name| (name.clone(), Json::Object(entry.clone()))).collect())
}

/// Returns the figures of a flow, and the lists in its summary, which are not figures. Each list has one
/// entry.
fn flow_figures() -> Map<String, Json> {
    let mut figures = table_figures(&FLOW);
    let outside_model = json!([{ "input": "", "value": 0.0, "range": [0.0, 0.0] }]);
    insert(&mut figures, "loss_runs.histogram", json!([0]));
    insert(&mut figures, "call.outside_model", outside_model.clone());
    insert(&mut figures, "call.other_receiver.outside_model", outside_model);
    insert(&mut figures, "breaks", json!([{ "from_s": 0.0, "to_s": 0.0, "why": "" }]));
    insert(&mut figures, "file.missing", json!([[0, 0]]));
    figures
}

/// Every figure of a table of figures, at its path.
fn table_figures<T>(table: &'static Table<T>) -> Map<String, Json> {
    let mut figures = Map::new();
    for figure in table.rows() {
        let value = match figure.get {
            Getter::Count(_) | Getter::Number(_) => json!(0.0),
            Getter::Flag(_) => json!(false),
            Getter::Word(_) => json!(""),
            // The keys of these counts are known only after a run.
            Getter::Counts(_) => continue,
        };
        insert(&mut figures, figure.path, value);
    }
    figures
}

/// Inserts `value` at `path`, and the tables that lead to it.
fn insert(table: &mut Map<String, Json>, path: &str, value: Json) {
    let Some((name, path_below)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return;
    };
    let child = table.entry(name).or_insert_with(|| Json::Object(Map::new()));
    if let Some(child) = child.as_object_mut() {
        insert(child, path_below, value);
    }
}

/// Returns the fields of a flow in log.txt (`talkpath_measure::log`). Time stamps and times are in ms.
fn log_fields() -> Map<String, Json> {
    let numbers = [
        "start_timestamp",
        "end_timestamp",
        "transfer_time",
        "packet_size",
        "packets_received",
        "packets_expected",
        "packets_sent",
        "receiver_timeout",
    ];
    let numbers = numbers.into_iter().map(|name| (name.to_owned(), json!(0.0)));
    numbers.chain([("protocol".to_owned(), json!(""))]).collect()
}

/// Returns the counts of a link that are watched packet by packet.
fn watched_figures() -> Map<String, Json> {
    ["passed", "dropped", "lost", "queue_max"].into_iter().map(|name| (name.to_owned(), json!(0.0))).collect()
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::FlowSummary;

    use super::*;

    #[test]
    fn every_field_of_a_summary_is_there() {
        let flow = flow_figures();
        let written = serde_json::to_value(FlowSummary::default()).unwrap();
        for key in written.as_object().unwrap().keys() {
            assert!(flow.contains_key(key), "{key}");
        }
        assert_eq!(flow["round_trip_delay_ms"]["p999"], 0.0);
        assert_eq!((&flow["loss_runs"]["histogram"][0], &flow["file"]["intact"]), (&0.into(), &false.into()));
        assert_eq!(flow["call"]["mouth_to_ear_ms"]["p95"], 0.0);
        assert_eq!(table_figures(&GROUP)["judged"]["worst"], 0.0);
        assert_eq!(table_figures(&LINK)["dropped_by"]["aqm"], 0.0);
        assert_eq!(table_figures(&MACHINE)["emulator_late_ms"]["p99"], 0.0);
        assert_eq!(table_figures(&CLOCK)["trusted"], false);
    }
}
