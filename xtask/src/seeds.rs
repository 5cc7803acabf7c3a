//! `compare` on every path preset with twenty other seeds: an answer is worth nothing if the next seed gives
//! another one.
//!
//! No two seeds may name different winners, and at least 19 of 20 must have the same outcome (distinct,
//! alike, undecided, unusable).

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The seeds: other ones than `compare` takes by itself.
const SEEDS: core::ops::RangeInclusive<u32> = 2..=21;
/// How many seeds may have another outcome.
const MAX_OTHERS: usize = 1;

/// What one seed said.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    outcome: String,
    best: String,
}

impl Said {
    /// Reads a line that was kept: the outcome and the best.
    fn parse(line: &str) -> Option<Self> {
        let (outcome, best) = line.split_once(' ')?;
        Some(Self { outcome: outcome.to_owned(), best: best.to_owned() })
    }
}

/// Runs all seeds with the release build in `target`. Each answer is kept in the folder `kept` until all
/// agree, so that a run that was cut short continues with the next seed.
///
/// # Errors
/// The paths whose seeds disagree, or what could not be run.
pub(crate) fn run(root: &Path, kept: &Path, deadline: Instant) -> Result<String, String> {
    fs::create_dir_all(kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    let mut wrong = Vec::new();
    let mut paths = presets(root)?;
    paths.sort();
    for path in &paths {
        let file = kept.join(path);
        let mut said = answers(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        for seed in SEEDS.skip(said.len()) {
            if Instant::now() > deadline {
                return Err(format!("{path}: the time is over at seed {seed}; the next run continues there"));
            }
            let answer = compare(root, path, seed)?;
            let line = format!("{} {}\n", answer.outcome, answer.best);
            let kept = OpenOptions::new().create(true).append(true).open(&file);
            kept.and_then(|mut file| file.write_all(line.as_bytes()))
                .map_err(|error| format!("{}: {error}", file.display()))?;
            said.push(answer);
        }
        match agree(&said) {
            Ok(what) => println!("seeds: {path}: {what}"),
            Err(why) => wrong.push(format!("{path}: {why}")),
        }
    }
    if wrong.is_empty() {
        let _ = fs::remove_dir_all(kept);
        Ok(format!("{} seeds agree on each of {} paths", SEEDS.count(), paths.len()))
    } else {
        Err(wrong.join("; "))
    }
}

/// The answers that `file` keeps, one a line. A kill may have cut its last line: that one is taken out of the
/// file, so that its seed is asked again and the next answer begins a line.
fn answers(file: &Path) -> io::Result<Vec<Said>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let mut said = Vec::new();
    let mut whole = 0;
    for line in text.split_inclusive('\n') {
        let Some(answer) = line.strip_suffix('\n').and_then(Said::parse) else { break };
        said.push(answer);
        whole += line.len();
    }
    if whole < text.len() {
        OpenOptions::new().write(true).open(file)?.set_len(whole as u64)?;
    }
    Ok(said)
}

fn presets(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("scenarios").join("paths");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let name =
        |entry: fs::DirEntry| entry.file_name().to_string_lossy().strip_suffix(".toml").map(str::to_owned);
    Ok(entries.flatten().filter_map(name).collect())
}

fn compare(root: &Path, path: &str, seed: u32) -> Result<Said, String> {
    let out = root.join("target").join("seeds");
    let _ = fs::remove_dir_all(&out);
    let output = Command::new(root.join("target").join("release").join("talkpath"))
        .args([
            "compare",
            "--quiet",
            "--json",
            "--records",
            "none",
            "--path",
            path,
            "--seed",
            &seed.to_string(),
        ])
        .env("TALKPATH_OUT", &out)
        .output()
        .map_err(|error| format!("talkpath: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    said(&text)
        .ok_or_else(|| format!("{path}, seed {seed}: no answer: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The first answer in a summary.json.
fn said(summary: &str) -> Option<Said> {
    let (_, comparisons) = summary.split_once("\"comparisons\":")?;
    let after = |key: &str, end: char| {
        let (_, rest) = comparisons.split_once(key)?;
        rest.split_once(end).map(|(value, _)| value.split_whitespace().collect::<String>().replace('"', ""))
    };
    Some(Said { outcome: after("\"outcome\":", ',')?, best: after("\"best\": [", ']')? })
}

/// What most answers say, or how they disagree.
fn agree(said: &[Said]) -> Result<String, String> {
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    said.iter().for_each(|it| *outcomes.entry(&it.outcome).or_default() += 1);
    let mut winners: Vec<&str> =
        said.iter().filter(|it| it.outcome == "distinct").map(|it| it.best.as_str()).collect();
    winners.sort_unstable();
    winners.dedup();
    let most = outcomes.values().max().copied().unwrap_or_default();
    let told: Vec<String> =
        outcomes.iter().map(|(outcome, count)| format!("{outcome} {count} times")).collect();
    let told = format!("{}; winners: {}", told.join(", "), winners.join(" and "));
    if winners.len() > 1 || said.len() - most > MAX_OTHERS { Err(told) } else { Ok(told) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(outcome: &str, best: &str) -> Said {
        Said { outcome: outcome.to_owned(), best: best.to_owned() }
    }

    #[test]
    fn the_first_answer_of_a_summary_is_read() {
        let text = "{ \"runs\": [ { \"outcome\": 1 } ],\n \"comparisons\": [ { \"answer\": {\n  \"best\": [\n \"udp\",\n \"tcp\"\n],\n \
                    \"outcome\": \"alike\",\n \"line\": \"\" } } ] }";
        assert_eq!(said(text), Some(of("alike", "udp,tcp")));
        assert_eq!(said("{}"), None);
    }

    #[test]
    fn an_answer_that_a_kill_cut_is_asked_again() {
        let file = std::env::temp_dir().join(format!("talkpath-seeds-{}", std::process::id()));
        fs::write(&file, "distinct udp\nalike udp,tcp\ndistinct tcp-no").unwrap();
        let said = answers(&file).unwrap();
        let left = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(said, [of("distinct", "udp"), of("alike", "udp,tcp")]);
        assert_eq!(left, "distinct udp\nalike udp,tcp\n");
        assert_eq!(answers(&file).unwrap(), []);
    }

    #[test]
    fn one_other_outcome_is_borne_and_two_or_two_winners_are_not() {
        let mut said = vec![of("distinct", "udp"); 19];
        said.push(of("undecided", "udp,tcp"));
        assert!(agree(&said).is_ok());
        said[0] = of("alike", "udp,tcp");
        assert!(agree(&said).is_err());
        said[0] = of("distinct", "tcp");
        assert!(agree(&said).is_err());
    }
}
