//! Writing summary.json by several threads: nearly all of it are the runs, one after the other, and with many
//! short ones the rest of the machine would wait for one core that writes them down.
//!
//! Each thread writes some of the runs as the only ones of an object, which gives them their indentation, and
//! what surrounds them there is cut off. JSON has no line feed in a string (RFC 8259 §7), so that the place
//! where they belong is found for certain. No more than some runs a thread are held as text at a time.

use std::io::{self, Write};
use std::thread;

use serde::Serialize;
use talkpath_measure::summary::{SUMMARY_FORMAT, Summary};

use crate::json::json;

/// Writes `summary` as its file has it, by up to `jobs` threads; the bytes do not depend on how many.
pub(crate) fn write_summary(summary: &Summary, jobs: usize, out: &mut impl Write) -> io::Result<()> {
    let (before, between, after) = around(summary)?;
    out.write_all(&before)?;
    write_list(&summary.runs, jobs, out)?;
    out.write_all(&between)?;
    write_list(&summary.cells, jobs, out)?;
    out.write_all(&after)
}

/// The file's bytes before the list of runs, between it and that of cells, and after.
fn around(summary: &Summary) -> io::Result<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let text = json(&Summary {
        runs: Vec::new(),
        cells: Vec::new(),
        format: SUMMARY_FORMAT,
        talkpath: summary.talkpath.clone(),
        name: summary.name.clone(),
        arena: summary.arena.clone(),
        started: summary.started.clone(),
        warnings: summary.warnings.clone(),
        percentiles: summary.percentiles.clone(),
        clock: summary.clock.clone(),
        comparisons: summary.comparisons.clone(),
        thresholds: summary.thresholds.clone(),
        provenance: summary.provenance.clone(),
        understood: summary.understood.clone(),
        ..*summary
    });
    let runs = end_of(&text, b"\n  \"runs\": ")?;
    let cells = end_of(&text, b"\n  \"cells\": ")?;
    let rest = |at: usize| text.get(at + EMPTY.len()..).unwrap_or_default();
    let between = text.get(runs + EMPTY.len()..cells).unwrap_or_default();
    Ok((text[..runs].to_vec(), between.to_vec(), rest(cells).to_vec()))
}

/// Where `key` ends in `text`.
fn end_of(text: &[u8], key: &[u8]) -> io::Result<usize> {
    let at = text.windows(key.len()).position(|bytes| bytes == key).ok_or_else(unexpected)?;
    Ok(at + key.len())
}

/// Writes `items` as a list at the file's second level.
fn write_list<T: Serialize + Sync>(items: &[T], jobs: usize, out: &mut impl Write) -> io::Result<()> {
    if items.is_empty() {
        return out.write_all(EMPTY);
    }
    let mut before: &[u8] = b"[\n    ";
    for round in items.chunks(jobs.max(1) * ITEMS_OF_A_THREAD) {
        let texts = thread::scope(|scope| {
            // The last chunk is this thread's.
            let mut chunks: Vec<_> = round.chunks(round.len().div_ceil(jobs.max(1))).collect();
            let last = chunks.pop();
            let others: Vec<_> =
                chunks.into_iter().map(|chunk| scope.spawn(move || text_of(chunk))).collect();
            let last = last.map(text_of);
            let others = others.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(unexpected())));
            others.chain(last).collect::<io::Result<Vec<_>>>()
        })?;
        for text in texts {
            out.write_all(before)?;
            out.write_all(&text)?;
            before = b",\n    ";
        }
    }
    out.write_all(b"\n  ]")
}

/// `items` as they stand in a list at the file's second level, without what surrounds them.
fn text_of<T: Serialize>(items: &[T]) -> io::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Alone<'a, T> {
        items: &'a [T],
    }
    let mut text = serde_json::to_vec_pretty(&Alone { items })?;
    let (begin, end): (&[u8], &[u8]) = (b"{\n  \"items\": [\n    ", b"\n  ]\n}");
    if !(text.starts_with(begin) && text.ends_with(end)) {
        return Err(unexpected());
    }
    text.truncate(text.len() - end.len());
    text.drain(..begin.len());
    Ok(text)
}

fn unexpected() -> io::Error {
    io::Error::other("a summary that has not the form of one")
}

const EMPTY: &[u8] = b"[]";

/// Chosen: some megabytes of text at a time, and work for longer than it takes to begin a thread.
const ITEMS_OF_A_THREAD: usize = 128;

#[cfg(test)]
mod tests {
    use talkpath_fixtures::{run_summary, summary};

    use super::*;

    #[test]
    fn any_number_of_threads_writes_what_one_would_write_at_once() {
        for runs in [0, 1, 2, 3, 7, 300] {
            let summary = summary((0..runs).map(run_summary).collect(), runs as usize / 2);
            let expected = json(&summary);
            for jobs in [0, 1, 2, 3, 8] {
                let mut found = Vec::new();
                write_summary(&summary, jobs, &mut found).unwrap();
                assert_eq!(
                    String::from_utf8_lossy(&found),
                    String::from_utf8_lossy(&expected),
                    "{runs}, {jobs}"
                );
            }
        }
    }
}
