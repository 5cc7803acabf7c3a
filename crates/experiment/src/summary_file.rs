//! Writes summary.json on several threads.
//!
//! Most of the file is the list of runs, with the list of cells second. If there are many short runs, one
//! thread that wrote them all would keep the other processors waiting at the end.
//!
//! Each thread turns a few items of a list into text. It writes them as the only list of a small object,
//! because this gives them the right indentation, and then cuts off the text around the list. The text around
//! the list can be found with certainty, because a JSON string has no line feed (RFC 8259 §7).

use std::io::{self, Write};
use std::thread;

use serde::Serialize;
use talkpath_measure::summary::{SUMMARY_FORMAT, Summary};

use crate::json::json;

/// How many items a thread turns into text at a time. We chose 128. This is more work than the start of a
/// thread, and the text of all threads takes some megabytes of memory.
const ITEMS_PER_THREAD: usize = 128;

/// An empty list in the file.
const EMPTY_LIST: &[u8] = b"[]";

/// The bytes of summary.json around its two long lists.
struct Frame {
    before_runs: Vec<u8>,
    between_runs_and_cells: Vec<u8>,
    after_cells: Vec<u8>,
}

/// Writes `summary` on up to `jobs` threads. The bytes do not depend on the number of threads.
pub(crate) fn write_summary(summary: &Summary, jobs: usize, out: &mut impl Write) -> io::Result<()> {
    let frame = Frame::new(summary)?;
    out.write_all(&frame.before_runs)?;
    write_list(&summary.runs, jobs, out)?;
    out.write_all(&frame.between_runs_and_cells)?;
    write_list(&summary.cells, jobs, out)?;
    out.write_all(&frame.after_cells)
}

impl Frame {
    /// Writes `summary` with empty lists, and cuts the text where the lists are.
    fn new(summary: &Summary) -> io::Result<Self> {
        let text = json(&without_lists(summary));
        let (before_runs, text) = split_at_list(&text, b"\n  \"runs\": ")?;
        let (between_runs_and_cells, after_cells) = split_at_list(text, b"\n  \"cells\": ")?;
        Ok(Self {
            before_runs: before_runs.to_vec(),
            between_runs_and_cells: between_runs_and_cells.to_vec(),
            after_cells: after_cells.to_vec(),
        })
    }
}

/// Copies `summary` without its runs and cells, which would take much memory.
fn without_lists(summary: &Summary) -> Summary {
    Summary {
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
        program: summary.program.clone(),
        comparisons: summary.comparisons.clone(),
        thresholds: summary.thresholds.clone(),
        provenance: summary.provenance.clone(),
        understood: summary.understood.clone(),
        ..*summary
    }
}

/// Splits `text` into what comes before the empty list of `key` and what comes after it.
fn split_at_list<'a>(text: &'a [u8], key: &[u8]) -> io::Result<(&'a [u8], &'a [u8])> {
    let key_start = text.windows(key.len()).position(|bytes| bytes == key).ok_or_else(unexpected_form)?;
    let (before, from_list) = text.split_at(key_start + key.len());
    let after = from_list.strip_prefix(EMPTY_LIST).ok_or_else(unexpected_form)?;
    Ok((before, after))
}

/// Writes `items` as a list that is a value of the file's top-level object.
fn write_list<T: Serialize + Sync>(items: &[T], jobs: usize, out: &mut impl Write) -> io::Result<()> {
    if items.is_empty() {
        return out.write_all(EMPTY_LIST);
    }
    let mut separator: &[u8] = b"[\n    ";
    // One round at a time bounds the memory for the texts.
    for round in items.chunks(jobs.max(1) * ITEMS_PER_THREAD) {
        for text in texts_of_round(round, jobs)? {
            out.write_all(separator)?;
            out.write_all(&text)?;
            separator = b",\n    ";
        }
    }
    out.write_all(b"\n  ]")
}

/// Turns `items` into texts on up to `jobs` threads, this thread included. Each text has the items of one
/// thread, and the texts are in the order of the items.
fn texts_of_round<T: Serialize + Sync>(items: &[T], jobs: usize) -> io::Result<Vec<Vec<u8>>> {
    let mut chunks: Vec<&[T]> = items.chunks(items.len().div_ceil(jobs.max(1))).collect();
    let Some(last_chunk) = chunks.pop() else { return Ok(Vec::new()) };
    thread::scope(|scope| {
        let threads: Vec<_> =
            chunks.into_iter().map(|chunk| scope.spawn(move || text_of_items(chunk))).collect();
        let last_text = text_of_items(last_chunk);
        let mut texts = Vec::new();
        for thread in threads {
            texts.push(thread.join().unwrap_or_else(|_| Err(unexpected_form()))?);
        }
        texts.push(last_text?);
        Ok(texts)
    })
}

/// Returns the text of `items` in a list of the top-level object, without the list's brackets.
fn text_of_items<T: Serialize>(items: &[T]) -> io::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct OnlyList<'a, T> {
        items: &'a [T],
    }
    const BEFORE: &[u8] = b"{\n  \"items\": [\n    ";
    const AFTER: &[u8] = b"\n  ]\n}";

    let mut text = serde_json::to_vec_pretty(&OnlyList { items })?;
    if !(text.starts_with(BEFORE) && text.ends_with(AFTER)) {
        return Err(unexpected_form());
    }
    text.truncate(text.len() - AFTER.len());
    text.drain(..BEFORE.len());
    Ok(text)
}

fn unexpected_form() -> io::Error {
    io::Error::other("a summary that has not the form of one")
}

#[cfg(test)]
mod tests {
    use talkpath_fixtures::{run_summary, summary};

    use super::*;

    #[test]
    fn any_number_of_threads_writes_the_same_bytes_as_a_single_call() {
        for runs in [0, 1, 2, 3, 7, 300] {
            let summary = summary((0..runs).map(run_summary).collect(), runs as usize / 2);
            let expected = json(&summary);
            for jobs in [0, 1, 2, 3, 8] {
                let mut written = Vec::new();
                write_summary(&summary, jobs, &mut written).unwrap();
                assert_eq!(
                    String::from_utf8_lossy(&written),
                    String::from_utf8_lossy(&expected),
                    "{runs} runs, {jobs} jobs"
                );
            }
        }
    }
}
