//! qlog of simulated runs, held against the drafts by a validator that was written from them, and against the
//! run's own series.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value};
use talkpath_arena::{Arena, RunPlan};
use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::{Options, Source, load};
use talkpath_sim::SimArena;
use talkpath_sim::capture::CaptureEnd;
use talkpath_sim::qlog::qlog;

/// The records of a file, as JSON.
struct Log(Vec<Map<String, Value>>);

/// A call and a transfer, both over QUIC, in one connection or in two, on a path that loses packets; with
/// what each end logged.
fn run(carry: &str, keys: &str) -> (RunRecord, [Log; 2]) {
    let text = format!(
        r#"
        duration = "5 s"
        [path]
        up = {{ rate = "1 Mbps", delay = "20 ms", loss = 0.02 }}
        down = {{ rate = "1 Mbps", delay = "20 ms", loss = 0.02 }}
        [flow.transfer]
        transport = {{ kind = "quic-stream" {keys} }}
        workload = "bulk"
        [flow.call]
        transport = {{ kind = "{carry}" {keys} }}
        workload = {{ kind = "voice", codec = "g711", echo = true }}
        "#
    );
    let plan = load(&Source::new("test.toml", &text), &Options::default())
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let run = RunPlan {
        cell: 0,
        repetition: 0,
        seed: plan.seed,
        series: Some(SeriesDetail::Full),
        rows: true,
        interrupt: &AtomicBool::new(false),
        progress: &|_| {},
    };
    let scenario = &plan.cells[0].scenario;
    let record = SimArena::new().run(scenario, run).expect("the simulator can run it");
    let logs = [CaptureEnd::Near, CaptureEnd::Far].map(|end| {
        let mut out = Vec::new();
        qlog(scenario, &run, end, &mut out).expect("a vector takes all bytes");
        Log::read(&out)
    });
    (record, logs)
}

impl Log {
    /// draft-ietf-quic-qlog-main-schema §11.2: each record begins with RS and ends with a line feed.
    fn read(file: &[u8]) -> Self {
        let text = core::str::from_utf8(file).expect("JSON is UTF-8");
        let records = text.strip_prefix('\u{1e}').expect("a record separator comes first").split('\u{1e}');
        let records = records.map(|record| {
            let record = record.strip_suffix('\n').expect("a line feed ends each record");
            match serde_json::from_str(record) {
                Ok(Value::Object(record)) => record,
                other => panic!("{other:?}: {record}"),
            }
        });
        Self(records.collect())
    }

    /// The events of this name, with their times.
    fn events(&self, name: &str) -> impl Iterator<Item = (f64, &Map<String, Value>)> {
        let events = self.0[1..].iter().filter(move |event| event["name"] == name);
        events.map(|event| (number(&event["time"]), object(&event["data"])))
    }

    /// Holds the file against the drafts: every name, every field and its type.
    fn validate(&self, vantage: &str) {
        let head = &self.0[0];
        has(head, &["file_schema", "serialization_format", "trace"], &["title", "description"]);
        assert_eq!(head["file_schema"], "urn:ietf:params:qlog:file:sequential");
        assert_eq!(head["serialization_format"], "application/qlog+json-seq");
        let trace = object(&head["trace"]);
        has(trace, &["event_schemas"], &["title", "description", "common_fields", "vantage_point"]);
        assert_eq!(trace["vantage_point"]["type"], vantage);
        let common = object(&trace["common_fields"]);
        assert_eq!(common["time_format"], "relative_to_epoch");
        // "When using the monotonic clock type, the epoch field MUST have the value unknown."
        assert_eq!(common["reference_time"]["clock_type"], "monotonic");
        assert_eq!(common["reference_time"]["epoch"], "unknown");
        let schemas = trace["event_schemas"].as_array().expect("a list");
        // "MUST append the string - and the corresponding draft number".
        assert!(schemas.iter().any(|schema| schema == "urn:ietf:params:qlog:events:quic-13"), "{schemas:?}");
        let mut before = 0.0;
        for event in &self.0[1..] {
            has(event, &["time", "name", "data"], &["group_id", "time_format", "tuple"]);
            let time = number(&event["time"]);
            assert!(time >= before, "{time} after {before}");
            before = time;
            hexadecimal(&event["group_id"]);
            let data = object(&event["data"]);
            match event["name"].as_str().expect("a text") {
                "quic:packet_sent" | "quic:packet_received" => packet(data),
                "quic:packet_lost" => has(data, &[], &["header", "frames", "trigger"]),
                "quic:recovery_metrics_updated" => metrics(data),
                "quic:parameters_set" => parameters(data),
                "quic:mtu_updated" => {
                    has(data, &["new"], &["old", "done"]);
                    integer(&data["new"]);
                }
                "quic:ecn_state_updated" => {
                    has(data, &["new"], &["old"]);
                    let states = ["testing", "unknown", "failed", "capable"];
                    assert!(data.values().all(|state| states.iter().any(|known| state == known)), "{data:?}");
                }
                "quic:connection_closed" => has(
                    data,
                    &[],
                    &[
                        "initiator",
                        "connection_error",
                        "application_error",
                        "error_code",
                        "reason",
                        "trigger",
                    ],
                ),
                name => panic!("no event of the schema: {name}"),
            }
        }
    }
}

fn packet(data: &Map<String, Value>) {
    has(data, &["header"], &["frames", "raw", "trigger", "datagram_payload_checksum"]);
    raw(&data["raw"], &["length"]);
    let header = object(&data["header"]);
    let long = ["initial", "handshake", "0RTT"];
    let kind = header["packet_type"].as_str().expect("a text");
    integer(&header["packet_number"]);
    if long.contains(&kind) {
        has(header, &["packet_type", "packet_number", "scid", "dcid"], &["token", "length", "version"]);
        hexadecimal(&header["scid"]);
        hexadecimal(&header["dcid"]);
    } else {
        assert_eq!(kind, "1RTT");
        has(header, &["packet_type", "packet_number"], &["spin_bit", "key_phase", "dcid"]);
    }
    let frames = data["frames"].as_array().expect("a list");
    // RFC 9000 §12.4: a packet has at least one frame.
    assert!(!frames.is_empty(), "a packet without frames: {data:?}");
    frames.iter().for_each(|it| frame(object(it)));
}

fn parameters(data: &Map<String, Value>) {
    assert!(["local", "remote"].iter().any(|known| data["initiator"] == *known), "{data:?}");
    for (name, value) in data {
        match name.as_str() {
            "initiator" => {}
            "original_destination_connection_id"
            | "initial_source_connection_id"
            | "retry_source_connection_id"
            | "stateless_reset_token" => hexadecimal(value),
            "disable_active_migration" | "grease_quic_bit" => assert_eq!(value, true),
            "unknown_parameters" => {
                for parameter in value.as_array().expect("a list") {
                    has(object(parameter), &["id"], &["value"]);
                    integer(&parameter["id"]);
                    hexadecimal(&parameter["value"]);
                }
            }
            "max_idle_timeout"
            | "max_udp_payload_size"
            | "ack_delay_exponent"
            | "max_ack_delay"
            | "active_connection_id_limit"
            | "initial_max_data"
            | "initial_max_stream_data_bidi_local"
            | "initial_max_stream_data_bidi_remote"
            | "initial_max_stream_data_uni"
            | "initial_max_streams_bidi"
            | "initial_max_streams_uni"
            | "max_datagram_frame_size" => integer(value),
            name => panic!("no transport parameter: {name}"),
        }
    }
}

/// The frames' definitions, in the draft's order.
fn frame(frame: &Map<String, Value>) {
    let with = |needed: &[&str], optional: &[&str]| {
        let needed: Vec<_> = ["frame_type"].iter().chain(needed).copied().collect();
        let optional: Vec<_> = ["raw"].iter().chain(optional).copied().collect();
        has(frame, &needed, &optional);
        for name in needed.iter().chain(&optional) {
            let Some(value) = frame.get(*name) else { continue };
            match *name {
                "frame_type" | "error" | "stream_type" | "error_space" => assert!(value.is_string()),
                "connection_id" | "stateless_reset_token" | "data" | "reason_bytes" => hexadecimal(value),
                "raw" => raw(value, &[]),
                "fin" => assert!(value.is_boolean()),
                "token" => assert!(value.is_object()),
                "acked_ranges" => ranges(value),
                "ack_delay" => assert!(number(value) >= 0.0),
                _ => integer(value),
            }
        }
    };
    match frame["frame_type"].as_str().expect("a text") {
        "padding" | "ping" | "handshake_done" => with(&[], &[]),
        "ack" => with(&["acked_ranges"], &["ack_delay", "ect0", "ect1", "ce"]),
        "reset_stream" => with(&["stream_id", "error", "final_size"], &["error_code"]),
        "stop_sending" => with(&["stream_id", "error"], &["error_code"]),
        // "The length field of the Crypto frame MUST be logged in the qlog raw.length field."
        "crypto" => {
            with(&["offset", "raw"], &[]);
            raw(&frame["raw"], &["length"]);
        }
        "new_token" => with(&["token"], &[]),
        "stream" => {
            with(&["stream_id"], &["offset", "fin"]);
            raw(&frame["raw"], &["length"]);
        }
        "max_data" => with(&["maximum"], &[]),
        "max_stream_data" => with(&["stream_id", "maximum"], &[]),
        "max_streams" => with(&["stream_type", "maximum"], &[]),
        "data_blocked" => with(&["limit"], &[]),
        "stream_data_blocked" => with(&["stream_id", "limit"], &[]),
        "streams_blocked" => with(&["stream_type", "limit"], &[]),
        "new_connection_id" => with(
            &["sequence_number", "retire_prior_to", "connection_id"],
            &["connection_id_length", "stateless_reset_token"],
        ),
        "retire_connection_id" => with(&["sequence_number"], &[]),
        "path_challenge" | "path_response" => with(&[], &["data"]),
        "connection_close" => with(&[], &["error_space", "error", "error_code", "reason_bytes"]),
        "datagram" => {
            with(&[], &[]);
            raw(&frame["raw"], &["length"]);
        }
        // IMMEDIATE_ACK and ACK_FREQUENCY (draft-ietf-quic-ack-frequency) have no definition in the draft.
        "unknown" => {
            with(&["frame_type_bytes"], &[]);
            assert!([0x1f, 0xaf].contains(&frame["frame_type_bytes"].as_u64().unwrap_or_default()));
        }
        kind => panic!("no frame of QUIC: {kind}"),
    }
}

fn metrics(data: &Map<String, Value>) {
    assert!(!data.is_empty(), "an update of nothing");
    let times = ["min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance"];
    let counts = ["congestion_window", "bytes_in_flight", "ssthresh", "packets_in_flight", "pto_count"];
    for (name, value) in data {
        match name.as_str() {
            // Milliseconds: the path takes 40 of them, and its queues more.
            "min_rtt" => assert!((40.0..1000.0).contains(&number(value)), "{value}"),
            name if times.contains(&name) => assert!(number(value) >= 0.0),
            name if counts.contains(&name) => integer(value),
            name => panic!("no metric: {name}"),
        }
    }
}

fn has(map: &Map<String, Value>, needed: &[&str], optional: &[&str]) {
    needed.iter().for_each(|name| assert!(map.contains_key(*name), "{name} is missing: {map:?}"));
    let is_known = |name: &String| needed.contains(&name.as_str()) || optional.contains(&name.as_str());
    map.keys().for_each(|name| assert!(is_known(name), "{name} is no field: {map:?}"));
}

fn raw(value: &Value, needed: &[&str]) {
    has(object(value), needed, &["length", "payload_length", "data"]);
    object(value).values().for_each(integer);
}

fn ranges(value: &Value) {
    let ranges = value.as_array().expect("a list");
    assert!(!ranges.is_empty());
    for range in ranges {
        let range = range.as_array().expect("a list");
        assert!((1..=2).contains(&range.len()), "{range:?}");
        range.iter().for_each(integer);
    }
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn integer(value: &Value) {
    assert!(value.is_u64(), "no unsigned integer: {value}");
}

fn hexadecimal(value: &Value) {
    let text = value.as_str().unwrap_or_else(|| panic!("no text: {value}"));
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    assert!(text.len().is_multiple_of(2) && text.bytes().all(is_digit), "no hexstring: {text}");
}

const CASES: [(&str, &str); 4] = [
    ("quic-datagram", ""),
    ("quic-stream", ""),
    ("quic-stream-per-message", ", connection = \"one\", expire = \"never\""),
    ("quic-datagram", ", connection = \"one\", zero_rtt = true"),
];

#[test]
fn a_qlog_is_as_the_drafts_have_it() {
    for (carry, keys) in CASES {
        let (_, [near, far]) = run(carry, keys);
        near.validate("client");
        far.validate("server");
        let groups: BTreeSet<_> = near.0[1..].iter().map(|event| event["group_id"].to_string()).collect();
        assert_eq!(groups.len(), if keys.contains("connection") { 1 } else { 2 }, "{carry}{keys}");
        assert!(far.0[1..].iter().all(|event| groups.contains(&event["group_id"].to_string())));
    }
}

/// RFC 9000 §7.4, §14.3, §13.4.2: each end says its parameters, finds the path's MTU, and validates ECN.
#[test]
fn a_qlog_has_the_parameters_of_both_ends_and_what_was_found_of_the_path() {
    let (_, logs) = run("quic-datagram", ", connection = \"one\", idle_timeout = \"8 s\"");
    let mut said = Vec::new();
    for log in &logs {
        let of = |initiator: &str| {
            let is_its = |data: &&Map<String, Value>| data["initiator"] == initiator;
            let mut all = log.events("quic:parameters_set").map(|(_, data)| data).filter(is_its);
            let mut data = all.next().expect("it is logged").clone();
            assert!(all.next().is_none(), "once");
            data.remove("initiator");
            data.remove("unknown_parameters");
            data
        };
        said.push([of("local"), of("remote")]);
        let last = log.events("quic:mtu_updated").last().expect("it searches").1;
        assert_eq!((&last["new"], &last["done"]), (&Value::from(1452), &Value::from(true)));
        let states: Vec<_> = log.events("quic:ecn_state_updated").map(|(_, data)| &data["new"]).collect();
        assert_eq!(states, ["testing", "capable"]);
    }
    assert_eq!(said[0][0]["max_idle_timeout"], 8000);
    // What the client says is what the server hears, and the other way round.
    assert_eq!((&said[0][0], &said[0][1]), (&said[1][1], &said[1][0]));
}

#[test]
fn one_end_receives_only_what_the_other_sent() {
    let key = |data: &Map<String, Value>| {
        (data["header"]["packet_type"].to_string(), data["header"]["packet_number"].as_u64())
    };
    let (record, [near, far]) = run("quic-datagram", ", connection = \"one\"");
    for (from, to) in [(&near, &far), (&far, &near)] {
        let sent: BTreeMap<_, _> = from
            .events("quic:packet_sent")
            .map(|(at, data)| (key(data), (at, &data["frames"], &data["raw"])))
            .collect();
        assert_eq!(sent.len(), from.events("quic:packet_sent").count(), "a packet number came twice");
        let received: Vec<_> = to.events("quic:packet_received").collect();
        assert!(received.len() > 300 && received.len() < sent.len(), "{}", received.len());
        for (at, data) in received {
            let (left, frames, raw) = sent[&key(data)];
            assert!(at >= left + 20.0, "{data:?}");
            assert_eq!((&data["frames"], &data["raw"]), (frames, raw));
        }
    }
    let lost = near.events("quic:packet_lost").count();
    let series = record.series.iter().find(|line| line.kind.name() == "lost_packets").expect("it is QUIC");
    assert!(lost > 5);
    assert_eq!(series.points.last().expect("some were lost").1, lost as f64);
}

#[test]
fn the_metrics_of_a_qlog_are_those_of_the_series() {
    let (record, [near, _]) = run("quic-datagram", ", connection = \"one\"");
    // A packet has 1452 B on this path, and the series count cwnd in packets.
    for (metric, kind, unit) in [
        ("congestion_window", "cwnd", 1452.0),
        ("bytes_in_flight", "bytes_in_flight", 1.0),
        ("smoothed_rtt", "srtt", 1.0),
    ] {
        let mut logged: Vec<(f64, f64)> = Vec::new();
        for (at, data) in near.events("quic:recovery_metrics_updated") {
            let Some(value) = data.get(metric) else { continue };
            // Of several updates at one instant the last one stands.
            logged.pop_if(|last| last.0 == at);
            logged.push((at, number(value)));
        }
        logged.dedup_by_key(|it| it.1);
        let line = record.series.iter().find(|line| line.entity == "transfer" && line.kind.name() == kind);
        let points = &line.unwrap_or_else(|| panic!("no series {kind}")).points;
        let points = points.iter().map(|(at, value)| (at.as_nanos() as f64 / 1e6, value * unit));
        let points: Vec<_> = points.map(|(at, value)| (at, (value * 1e6).round() / 1e6)).collect();
        let logged: Vec<_> = logged.iter().map(|(at, value)| (*at, (value * 1e6).round() / 1e6)).collect();
        assert!(points.len() > 20, "{kind}: {} points", points.len());
        // Whether nothing is in flight before the first packet leaves, only one of the two may say.
        let from_first = |line: Vec<(f64, f64)>| line.into_iter().skip_while(|it| it.1 == 0.0).collect();
        let [points, logged]: [Vec<_>; 2] = [points, logged].map(from_first);
        let differs = points.iter().zip(&logged).find(|(point, logged)| point != logged);
        assert_eq!(differs, None, "{kind}");
        assert_eq!(points.len(), logged.len(), "{kind}");
    }
}

/// What of `ours` is not in `theirs`, each with its place below `path`.
fn missing(path: &str, ours: &Value, theirs: &Value, found: &mut BTreeSet<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in ours {
                missing(&format!("{path}.{key}"), value, theirs.get(key).unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            ours.iter().zip(theirs).for_each(|(ours, theirs)| missing(path, ours, theirs, found));
        }
        // It keeps times of the recovery in 32 bits.
        (Value::Number(ours), Value::Number(theirs)) => {
            let [ours, theirs] = [ours, theirs].map(|number| number.as_f64().unwrap_or(f64::NAN));
            if (ours - theirs).abs() > ours.abs() * 1e-6 {
                found.insert(format!("{path}: {ours}, read as {theirs}"));
            }
        }
        _ if ours == theirs => {}
        _ => drop(found.insert(format!("{path}: {ours}, read as {theirs}"))),
    }
}

/// The reader is quiche's, the crate `qlog`, which has a type for each event and frame of the drafts.
#[test]
fn an_independent_reader_of_qlog_reads_every_record_and_loses_nothing_of_it() {
    let (mut found, mut read) = (BTreeSet::new(), BTreeMap::<String, u64>::new());
    for (carry, keys) in CASES {
        for log in run(carry, keys).1 {
            let head = serde_json::from_value::<qlog::QlogSeq>(Value::Object(log.0[0].clone()));
            match head.map(|head| serde_json::to_value(head).expect("it is JSON")) {
                Ok(head) => missing("head", &Value::Object(log.0[0].clone()), &head, &mut found),
                Err(why) => drop(found.insert(format!("head: {why}"))),
            }
            for record in &log.0[1..] {
                let (name, ours) = (record["name"].as_str().expect("a text"), Value::Object(record.clone()));
                *read.entry(name.to_owned()).or_default() += 1;
                match serde_json::from_value::<qlog::events::Event>(ours.clone()) {
                    Ok(event) => {
                        let theirs = serde_json::to_value(&event).expect("it is JSON");
                        missing(name, &ours, &theirs, &mut found);
                    }
                    Err(why) => drop(found.insert(format!("{name}: {why}"))),
                }
            }
        }
    }
    // One line of each place is enough.
    let mut places = BTreeMap::new();
    for line in found {
        places.entry(line.split(':').take(2).collect::<Vec<_>>().join(":")).or_insert(line);
    }
    assert!(places.is_empty(), "{:#?}", places.into_values().take(40).collect::<Vec<_>>());
    for name in
        ["packet_sent", "packet_received", "packet_lost", "recovery_metrics_updated", "parameters_set"]
    {
        assert!(read[&format!("quic:{name}")] > 0, "{name}");
    }
}
