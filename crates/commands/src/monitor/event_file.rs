//! Reads the file of events in a run directory of a monitor, events.jsonl.

use std::fs::{self, File};
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use talkpath_experiment::store::lines::last_line;

/// Returns the end of the newest event in the file `path`. If the file has no event that can be read, it
/// returns the time at which the file was written.
pub(crate) fn last_time(path: &Path) -> Option<DateTime<Utc>> {
    let newest = File::open(path).and_then(|file| last_line(&file)).ok();
    newest
        .and_then(|line| time_of(&line.text))
        .or_else(|| Some(fs::metadata(path).ok()?.modified().ok()?.into()))
}

/// Returns the time at which the event of `line` ended.
fn time_of(line: &[u8]) -> Option<DateTime<Utc>> {
    #[derive(Deserialize)]
    struct Line {
        event: String,
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        timestamp: Timestamp,
        sum: Option<Sum>,
    }
    #[derive(Deserialize)]
    struct Timestamp {
        timemillisecs: i64,
    }
    #[derive(Deserialize)]
    struct Sum {
        seconds: f64,
    }
    let Line { event, data } = serde_json::from_slice(line).ok()?;
    let begun = DateTime::from_timestamp_millis(data.timestamp.timemillisecs)?;
    // The time of an interval is its beginning, so its length is added. The event `end` has a sum over the
    // whole monitor, which must not be added.
    let seconds = data.sum.filter(|_| event == "interval").map_or(0.0, |sum| sum.seconds);
    begun.checked_add_signed(TimeDelta::milliseconds((seconds * 1e3).ceil() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_go_until_the_end_of_the_newest_one_that_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let line = |event: &str, sum: &str| {
            format!("{{\"event\":\"{event}\",\"data\":{{\"timestamp\":{{\"timemillisecs\":5000}}{sum}}}}}\n")
        };
        let sum = ",\"sum\":{\"start\":3,\"seconds\":2.5}";
        for (lines, expected_ms) in [
            (line("interval", sum), 7_500),
            (line("end", sum), 5_000),
            (line("interval", sum) + &line("outage", ""), 5_000),
        ] {
            fs::write(&path, lines.clone() + "{\"eve").unwrap();
            assert_eq!(last_time(&path).map(|at| at.timestamp_millis()), Some(expected_ms), "{lines}");
        }
    }
}
