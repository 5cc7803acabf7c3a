//! summary.json's bytes, made by several threads: nearly all of it are the runs, one after the other, and
//! with many short ones the rest of the machine would wait for one core that writes them down.
//!
//! Each thread writes some of the runs as the only ones of an object, which gives them their indentation, and
//! what surrounds them there is cut off. JSON has no line feed in a string (RFC 8259 §7), so that the place
//! where they belong is found for certain.

use std::thread;

use serde::Serialize;
use talkpath_measure::summary::{RunSummary, Summary};

use crate::json::json;

/// `summary` as the bytes of its file, written by up to `jobs` threads; the bytes do not depend on how many.
pub(crate) fn summary_json(summary: &mut Summary, jobs: usize) -> Vec<u8> {
    let runs = core::mem::take(&mut summary.runs);
    let around = json(summary);
    let each = runs.len().div_ceil(jobs.max(1)).max(1);
    let texts: Vec<Vec<u8>> = thread::scope(|scope| {
        // The last chunk is this thread's.
        let mut chunks: Vec<_> = runs.chunks(each).collect();
        let last = chunks.pop();
        let others: Vec<_> = chunks.into_iter().map(|chunk| scope.spawn(move || runs_text(chunk))).collect();
        let last = last.map(runs_text);
        let whole = others.into_iter().map(|thread| thread.join().unwrap_or_default());
        whole.chain(last).collect()
    });
    summary.runs = runs;
    let at = around.windows(EMPTY.len()).position(|bytes| bytes == EMPTY);
    let (Some(at), false) = (at, texts.iter().any(Vec::is_empty) || texts.is_empty()) else {
        return json(summary);
    };
    let mut bytes = Vec::with_capacity(around.len() + texts.iter().map(|text| text.len() + 8).sum::<usize>());
    bytes.extend_from_slice(&around[..at]);
    bytes.extend_from_slice(BEFORE);
    for (number, text) in texts.iter().enumerate() {
        if number > 0 {
            bytes.extend_from_slice(BETWEEN);
        }
        bytes.extend_from_slice(text);
    }
    bytes.extend_from_slice(AFTER);
    bytes.extend_from_slice(&around[at + EMPTY.len()..]);
    bytes
}

/// `runs` as they stand in the file, without what surrounds them; nothing if that is not as expected.
fn runs_text(runs: &[RunSummary]) -> Vec<u8> {
    #[derive(Serialize)]
    struct Alone<'a> {
        runs: &'a [RunSummary],
    }
    let mut text = serde_json::to_vec_pretty(&Alone { runs }).unwrap_or_default();
    let begin = b"{".len() + BEFORE.len();
    let end = text.len().saturating_sub(AFTER.len() + b"\n}".len());
    if text.get(b"{".len()..begin) != Some(BEFORE) || text.get(end..end + AFTER.len()) != Some(AFTER) {
        return Vec::new();
    }
    text.truncate(end);
    text.drain(..begin);
    text
}

/// The key and its value if there are no runs.
const EMPTY: &[u8] = b"\n  \"runs\": []";
const BEFORE: &[u8] = b"\n  \"runs\": [\n    ";
const BETWEEN: &[u8] = b",\n    ";
const AFTER: &[u8] = b"\n  ]";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use talkpath_measure::ClockRecord;
    use talkpath_measure::summary::Clock;

    use super::*;

    fn run(repetition: u64) -> RunSummary {
        let name = "flow.call.workload\n  \"runs\": []".to_owned();
        RunSummary {
            cell: 0,
            sweep: BTreeMap::from([(name, serde_json::json!(["a", { "b": 1 }]))]),
            repetition,
            seed: 7 + repetition,
            flows: BTreeMap::new(),
            groups: BTreeMap::new(),
            links: BTreeMap::new(),
            machine: None,
        }
    }

    #[test]
    fn any_number_of_threads_writes_what_one_would_write_at_once() {
        for runs in [0, 1, 2, 3, 7] {
            let mut summary = Summary {
                talkpath: "0".to_owned(),
                name: "\n  \"runs\": [] ]".to_owned(),
                arena: "sim".to_owned(),
                started: String::new(),
                wall_s: 0.5,
                cpu_s: 0.25,
                valid: true,
                warnings: vec!["\"runs\": []".to_owned()],
                percentiles: "exact".to_owned(),
                clock: Clock::from(&ClockRecord::default()),
                runs: (0..runs).map(run).collect(),
                cells: Vec::new(),
                comparisons: Vec::new(),
                provenance: None,
            };
            let expected = json(&summary);
            for jobs in [0, 1, 2, 3, 8] {
                let found = summary_json(&mut summary, jobs);
                assert_eq!(
                    String::from_utf8_lossy(&found),
                    String::from_utf8_lossy(&expected),
                    "{runs}, {jobs}"
                );
                assert_eq!(summary.runs.len() as u64, runs, "they are still there");
                assert!(runs == 0 || !runs_text(&summary.runs).is_empty(), "cut where it was expected");
            }
        }
    }
}
