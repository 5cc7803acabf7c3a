//! What the fuzz targets of `fuzz/` call: bytes as a file that somebody else made, and as a request for a
//! monitor's metrics. Each function asserts what must hold. The tests here run the committed corpora.

use std::path::Path;

use talkpath_campaign::{Entry, Plan, Uploads};
use talkpath_measure::summary::Summary;
use talkpath_report::{Page, Style, html, run_table};
use talkpath_scenario::campaign::Campaign;
use talkpath_scenario::{Files, Located, Options, Source, load_with_files};

use crate::monitor::http::{MAX_HEAD, reply};
use crate::page::command_again;
use talkpath_experiment::part::Part;
use talkpath_experiment::run_options::RunOptions;

/// Bytes as the summary.json of a run that is shown: its table moves no cursor, its page has one script.
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
    };
    assert_eq!(html(&page).matches("<script").count(), 1, "the page's own");
}

/// Bytes as the files that keep the state of a run and of a campaign: parts/plan.json and the lines of a
/// repetition, and plan.json, journal.jsonl and uploads.jsonl. What a line says is written as it was read.
pub fn state_files(bytes: &[u8]) {
    if let Ok(options) = serde_json::from_slice::<RunOptions>(bytes) {
        let _ = (options.arena(), options.records(), options.series(), options.shard(), options.common());
        assert!(
            command_again(Path::new("scenario.toml"), options.arena_name(), options.to.as_deref())
                .starts_with("talkpath run scenario.toml")
        );
    }
    if let Ok(part) = serde_json::from_slice::<Part>(bytes) {
        assert!(part.id().file_name().contains('-'));
    }
    if let Ok(plan) = serde_json::from_slice::<Plan>(bytes) {
        assert!(plan.measurements.iter().all(|measurement| plan.position(&measurement.id).is_some()));
    }
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match Entry::parse(line) {
            Ok(entry) => assert_eq!(Entry::parse(&entry.line()), Ok(entry)),
            Err(why) => assert!(!why.is_empty()),
        }
    }
    let _ = Uploads::parse(bytes, "rclone copyto");
}

/// Text as a campaign's file. It is read, or its mistakes are reported.
pub fn campaign_file(text: &str) {
    match Campaign::load(&Source::new("fuzz.toml", text)) {
        Ok(campaign) => assert!(campaign.hosts.iter().all(|host| campaign.host(&host.name).is_some())),
        Err(mistakes) => assert!(!mistakes.list.is_empty() && !mistakes.to_string().is_empty()),
    }
}

/// Text as the trace of a link: of its rate, its loss or its delay, as the first letter says.
pub fn trace(text: &str) {
    let (which, text) = text.split_at_checked(1).unwrap_or(("", text));
    let key = match which {
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

/// Whatever name a scenario has for it.
struct OneFile<'a>(&'a str);

impl Files for OneFile<'_> {
    fn text(&self, _name: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }

    fn locate(&self, _name: &str) -> Result<Located, String> {
        Err("no such file".to_owned())
    }
}

/// Bytes as what a scraper of metrics sends. Only a whole request is answered, and only `/metrics` with the
/// metrics.
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

const METRICS: &str = "talkpath_fuzzed 1";

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs what `fuzz/corpus` has for `target` and gives how many files those are.
    fn each(target: &str, run: impl Fn(&[u8])) -> usize {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.iter().for_each(|file| run(&std::fs::read(file).unwrap()));
        files.len()
    }

    fn text(run: fn(&str)) -> impl Fn(&[u8]) {
        move |bytes| run(core::str::from_utf8(bytes).unwrap())
    }

    #[test]
    fn what_the_corpora_hold_is_read_or_refused_with_a_reason() {
        assert!(each("summary_file", summary) >= 2);
        assert!(each("state_files", state_files) >= 4);
        assert!(each("campaign_file", text(campaign_file)) >= 2);
        assert!(each("trace", text(trace)) >= 4);
        assert!(each("metrics_request", metrics_request) >= 4);
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
