//! Which paths a run's summary has, by the tables of figures, so that a misspelt metric is found before
//! anything runs.

use serde_json::{Map, Value as Json, json};
use talkpath_measure::figures::{CLOCK, FLOW, GROUP, Getter, LINK, MACHINE, Table};
use talkpath_model::Scenario;

/// The summary of a run of `scenario` with every figure present.
pub(crate) fn shape(scenario: &Scenario) -> Json {
    let mut flow = of(&FLOW);
    for (path, list) in lists() {
        put(&mut flow, path, list);
    }
    // A group of one copy has the figures of its flow.
    let mut group = flow.clone();
    group.extend(of(&GROUP));
    let table = |names: &mut dyn Iterator<Item = &String>, each: Map<String, Json>| -> Json {
        Json::Object(names.map(|name| (name.clone(), Json::Object(each.clone()))).collect())
    };
    json!({
        "flows": table(&mut scenario.flows.iter().map(|flow| &flow.name), flow),
        "groups": table(&mut scenario.flows.iter().map(|flow| &flow.group), group),
        "links": table(&mut scenario.links.iter().map(|link| &link.name), of(&LINK)),
        "machine": of(&MACHINE),
        "clock": of(&CLOCK),
        "watched": {
            "nodes": 0.0,
            "links": table(&mut scenario.links.iter().map(|link| &link.name), watched()),
        },
        "log": table(&mut scenario.flows.iter().map(|flow| &flow.name), logged()),
    })
}

/// Every figure of a table at its path.
fn of<T>(table: &'static Table<T>) -> Map<String, Json> {
    let mut all = Map::new();
    for figure in table.rows() {
        let value = match figure.get {
            Getter::Count(_) | Getter::Number(_) => json!(0.0),
            Getter::Flag(_) => json!(false),
            Getter::Word(_) => json!(""),
            // Their names are those of a run.
            Getter::Counts(_) => continue,
        };
        put(&mut all, figure.path, value);
    }
    all
}

/// Lists of a flow's summary, which are no figures, with one entry each.
fn lists() -> [(&'static str, Json); 5] {
    let outside = json!([{ "input": "", "value": 0.0, "range": [0.0, 0.0] }]);
    [
        ("loss_runs.histogram", json!([0])),
        ("call.outside_model", outside.clone()),
        ("call.other_receiver.outside_model", outside),
        ("breaks", json!([{ "from_s": 0.0, "to_s": 0.0, "why": "" }])),
        ("file.missing", json!([[0, 0]])),
    ]
}

fn put(object: &mut Map<String, Json>, path: &str, value: Json) {
    let Some((key, rest)) = path.split_once('.') else {
        object.insert(path.to_owned(), value);
        return;
    };
    let part = object.entry(key).or_insert_with(|| Json::Object(Map::new()));
    if let Some(part) = part.as_object_mut() {
        put(part, rest, value);
    }
}

/// The fields of a flow in log.txt (`talkpath_measure::log`): the stamps and the time in ms.
fn logged() -> Map<String, Json> {
    let numbers = [
        "start_timestamp",
        "end_timestamp",
        "transfer_time",
        "packet_size",
        "packets_received",
        "packets_expected",
        "receiver_timeout",
    ];
    let numbers = numbers.into_iter().map(|name| (name.to_owned(), json!(0.0)));
    numbers.chain([("protocol".to_owned(), json!(""))]).collect()
}

/// What is watched of a link packet by packet.
fn watched() -> Map<String, Json> {
    ["passed", "dropped", "lost", "queue_max"].into_iter().map(|name| (name.to_owned(), json!(0.0))).collect()
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::FlowSummary;

    use super::*;

    #[test]
    fn every_field_of_a_summary_is_there() {
        let mut flow = of(&FLOW);
        lists().into_iter().for_each(|(path, list)| put(&mut flow, path, list));
        let written = serde_json::to_value(FlowSummary::default()).unwrap();
        for key in written.as_object().unwrap().keys() {
            assert!(flow.contains_key(key), "{key}");
        }
        assert_eq!(flow["round_trip_delay_ms"]["p999"], 0.0);
        assert_eq!((&flow["loss_runs"]["histogram"][0], &flow["file"]["intact"]), (&0.into(), &false.into()));
        assert_eq!(flow["call"]["mouth_to_ear_ms"]["p95"], 0.0);
        assert_eq!(of(&GROUP)["judged"]["worst"], 0.0);
        assert_eq!(of(&LINK)["dropped_by"]["aqm"], 0.0);
        assert_eq!(of(&MACHINE)["emulator_late_ms"]["p99"], 0.0);
        assert_eq!(of(&CLOCK)["trusted"], false);
    }
}
