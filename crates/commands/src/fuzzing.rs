//! The bodies of the fuzz targets in `fuzz/`. Each function reads bytes that somebody else may have written:
//! a file of a run or a campaign, or a request for the metrics of a monitor. It asserts what must hold for
//! any bytes. The tests here run the committed corpora, so that a target that fails is found without the
//! fuzzer.

use std::collections::BTreeMap;
use std::path::Path;

use talkpath_campaign::{Entry, Plan, Uploads};
use talkpath_capture::{Encoding, Options as CaptureOptions, read as read_capture};
use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::Summary;
use talkpath_report::{Page, Style, html, run_table};
use talkpath_scenario::campaign::Campaign;
use talkpath_scenario::{Files, Located, Options, Source, load_with_files};

use crate::monitor::http::{MAX_HEAD, reply};
use crate::page::run_command;
use talkpath_experiment::part::Part;
use talkpath_experiment::run_options::RunOptions;

const METRICS: &str = "talkpath_fuzzed 1";

/// Reads `bytes` as a summary.json. The table must have no control characters, which could steer the
/// terminal, and the page must have no script but its own.
pub fn summary(bytes: &[u8]) {
    let Ok(summary) = serde_json::from_slice::<Summary>(bytes) else { return };
    let table = run_table(&summary, &Style { width: 100, color: false, explain: true });
    assert!(!table.contains(|c: char| c.is_control() && c != '\n'), "{table:?}");
    let page = Page {
        summary: &summary,
        chart_data: &[],
        scenario_toml: "",
        command: "",
        changes: &[],
        network: None,
        sounds: None,
    };
    assert_eq!(html(&page).matches("<script").count(), 1, "the page has a script of its own");
}

/// Reads `bytes` as each file that keeps the state of a run or of a campaign.
pub fn state_files(bytes: &[u8]) {
    run_state(bytes);
    campaign_state(bytes);
}

/// Reads parts/plan.json of a run, and the file of a repetition.
fn run_state(bytes: &[u8]) {
    if let Ok(options) = serde_json::from_slice::<RunOptions>(bytes) {
        // Reading a value must not panic, whatever the file says.
        let _ = (options.arena(), options.records(), options.series(), options.shard(), options.common());
        let command = run_command(Path::new("scenario.toml"), options.arena_name(), options.to.as_deref());
        assert!(command.starts_with("talkpath run scenario.toml"), "{command}");
    }
    if let Ok(part) = serde_json::from_slice::<Part>(bytes) {
        assert!(part.id().file_name().contains('-'));
    }
}

/// Reads plan.json, journal.jsonl and uploads.jsonl of a campaign.
fn campaign_state(bytes: &[u8]) {
    if let Ok(plan) = serde_json::from_slice::<Plan>(bytes) {
        assert!(plan.measurements.iter().all(|measurement| plan.position(&measurement.id).is_some()));
    }
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match Entry::parse(line) {
            // An entry must survive being written and read again.
            Ok(entry) => assert_eq!(Entry::parse(&entry.line()), Ok(entry)),
            Err(why) => assert!(!why.is_empty()),
        }
    }
    let _ = Uploads::parse(bytes, "rclone copyto");
}

/// Reads `text` as a campaign file. A file that cannot be used must have mistakes with messages.
pub fn campaign_file(text: &str) {
    match Campaign::load(&Source::new("fuzz.toml", text)) {
        Ok(campaign) => assert!(campaign.hosts.iter().all(|host| campaign.host(&host.name).is_some())),
        Err(mistakes) => assert!(!mistakes.list.is_empty() && !mistakes.to_string().is_empty()),
    }
}

/// Reads `text` as the trace of a link. Its first letter says what the trace is of: the rate, the loss or the
/// delay.
pub fn trace(text: &str) {
    let (letter, text) = text.split_at_checked(1).unwrap_or(("", text));
    let key = match letter {
        "r" => "rate = { trace = \"fuzz.trace\" }",
        "l" => "loss = { kind = \"trace\", file = \"fuzz.trace\" }",
        _ => "jitter = { kind = \"trace\", file = \"fuzz.trace\" }",
    };
    let scenario = format!(
        "name = \"fuzz\"\nduration = \"1 s\"\n[path.up]\ndelay = \"5 ms\"\n{key}\n\
         [flow.call]\ntransport = \"udp\"\nworkload = {{ kind = \"voice\" }}\n"
    );
    if let Err(mistakes) =
        load_with_files(&Source::new("fuzz.toml", &scenario), &Options::default(), &OneFile(text))
    {
        assert!(!mistakes.list.is_empty() && !mistakes.to_string().is_empty());
    }
}

/// Reads `bytes` as a capture, of which the speech is wanted. Each stream must have a flow, whose packets and
/// losses are its rows. Odd payload types are Opus, and some even ones RED, so that each has its coding read.
pub fn capture(bytes: &[u8]) {
    let meaning = |number: u8| match number % 4 {
        1 | 3 => Some((number, Encoding::parse("opus")?)),
        2 => Some((number, Encoding::parse("red/8000")?)),
        _ => None,
    };
    let payload_types = (0..128).filter_map(meaning).collect();
    let options = CaptureOptions { payload_types, speech: true, ..CaptureOptions::default() };
    match read_capture(bytes, &options) {
        Err(why) => assert!(!why.to_string().is_empty()),
        Ok(capture) => {
            assert_eq!(capture.streams.len(), capture.record.flows.len());
            for (stream, flow) in capture.streams.iter().zip(&capture.record.flows) {
                assert_eq!(stream.packets + stream.lost, flow.forward.messages.len() as u64);
                assert!(stream.repaired <= stream.lost);
                let speech = capture.speech.get(&stream.flow);
                assert!(speech.is_none_or(|it| it.packets.len() == flow.forward.messages.len()));
            }
            let summary = summarise(&capture.record, &BTreeMap::new());
            assert_eq!(summary.flows.len(), capture.streams.len());
        }
    }
}

/// A folder in which every file has the same text.
struct OneFile<'a>(&'a str);

impl Files for OneFile<'_> {
    fn text(&self, _name: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }

    fn locate(&self, _name: &str) -> Result<Located, String> {
        Err("no such file".to_owned())
    }
}

/// Reads `bytes` as what a scraper of metrics sends. Only a whole request gets an answer, and only a request
/// for `/metrics` gets the metrics.
pub fn metrics_request(bytes: &[u8]) {
    match reply(bytes, &|_| METRICS.to_owned()) {
        None => assert!(bytes.len() < MAX_HEAD),
        Some(answer) => {
            let text = String::from_utf8_lossy(&answer);
            assert!(text.starts_with("HTTP/1.1 ") && text.contains("\r\n\r\n"), "{text}");
            let is_ok = text.starts_with("HTTP/1.1 200 ");
            assert!(is_ok || !text.contains(METRICS), "{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `run` with each file of the corpus of `target`, and returns the number of files.
    fn run_corpus(target: &str, run: impl Fn(&[u8])) -> usize {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.iter().for_each(|file| run(&std::fs::read(file).unwrap()));
        files.len()
    }

    fn text(run: fn(&str)) -> impl Fn(&[u8]) {
        move |bytes| run(core::str::from_utf8(bytes).unwrap())
    }

    #[test]
    fn every_file_of_the_corpora_is_read_or_refused_with_a_reason() {
        assert!(run_corpus("summary_file", summary) >= 2);
        assert!(run_corpus("state_files", state_files) >= 4);
        assert!(run_corpus("campaign_file", text(campaign_file)) >= 2);
        assert!(run_corpus("trace", text(trace)) >= 4);
        assert!(run_corpus("metrics_request", metrics_request) >= 4);
        assert!(run_corpus("capture_file", capture) >= 3);
    }

    #[test]
    fn the_corpora_hold_files_that_are_read() {
        let file = |name: &str| {
            std::fs::read(format!("{}/../../fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
        };
        assert!(serde_json::from_slice::<Summary>(&file("summary_file/v1")).is_ok());
        assert!(serde_json::from_slice::<RunOptions>(&file("state_files/parts-plan")).is_ok());
        let journal = file("state_files/journal");
        let lines = journal.split_inclusive(|byte| *byte == b'\n');
        assert_eq!(lines.filter(|line| Entry::parse(line).is_ok()).count(), 2);
        let answer = reply(&file("metrics_request/get"), &|_| METRICS.to_owned()).unwrap();
        assert!(String::from_utf8_lossy(&answer).contains(METRICS));
    }
}
