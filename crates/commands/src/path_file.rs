//! Files that describe a path: what kind a file is, and the path that is made of it for `path = "FILE"` and
//! `--path FILE`.
//!
//! | kind | the path |
//! | --- | --- |
//! | a path file: `[up]`, `[down]`, `[[change]]` | as it is |
//! | a table of changes: CSV whose first line names its columns | both directions follow it; it repeats |
//! | a *netem-trace* file: JSON of the crate netem-trace | as the table that it becomes |
//! | a *Mahimahi* file: in each line the time at which a packet was delivered | both directions follow it |
//! | *tc*: commands of Linux that shape traffic | the first device is `up`, the second one `down` |
//! | a *capture*, pcap or pcapng, of RTP | its delay and loss, as a table; rates are needed beside it |
//!
//! What a file does not say is assumed, and a note says so. Begin to read with [`read_path`].

pub(crate) mod deliveries;
pub(crate) mod netem_trace;
pub(crate) mod rtp;
pub(crate) mod table;
mod tc;
mod tc_line;
pub(crate) mod tc_links;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use talkpath_path::{RateTrace, without_mark};
use talkpath_scenario::PathText;

use self::deliveries::Deliveries;
use self::netem_trace::NetemTrace;
use self::rtp::{StreamPath, StreamWanted};
use self::table::{Assumed, link_line, path_of_table};
use crate::args::{TraceKind, quoted};
use crate::path_changes::rate as rate_in_words;

/// The largest file of a path, in bytes. Captures may be larger. We chose 256 MiB because a trace of hours at
/// hundreds of megabits per second is smaller.
const MAX_BYTES: u64 = 256 << 20;

/// Reads `file`, which a scenario or an option calls `name`, as a path.
///
/// # Errors
/// Returns why the file is no path, with the name.
pub(crate) fn read_path(file: &Path, name: &str) -> Result<PathText, String> {
    let of_file = |why: String| format!("{name}: {why}");
    if rtp::is_capture(file) {
        let stream = StreamPath::read(file, name, &StreamWanted::default())?;
        let table_name = format!("{name}.csv");
        let made = PathText {
            made: vec![(table_name.clone(), stream.table.clone())],
            notes: vec![format!("--path {}", stream.description)],
            doubts: stream.doubts,
            ..PathText::default()
        };
        return path_of_table(name, &table_name, &stream.table, made).map_err(of_file);
    }
    let text = read_file(file).map_err(of_file)?;
    if name.ends_with(".toml") || is_toml(&text) {
        let folder = name.rfind('/').map_or("", |slash| &name[..=slash]).to_owned();
        return Ok(PathText { text, file: Some(name.to_owned()), folder, ..PathText::default() });
    }
    match guess_kind(&text) {
        Some(TraceKind::Csv) => path_of_table(name, name, &text, PathText::default()).map_err(of_file),
        Some(TraceKind::NetemTrace) => {
            let table = NetemTrace::read(&text).map_err(of_file)?.as_table();
            let table_name = format!("{name}.csv");
            let made = PathText { made: vec![(table_name.clone(), table.clone())], ..PathText::default() };
            path_of_table(name, &table_name, &table, made).map_err(of_file)
        }
        Some(TraceKind::Mahimahi) => path_of_deliveries(name, &text).map_err(of_file),
        Some(TraceKind::Tc) => path_of_tc(name, &text).map_err(of_file),
        // A capture is no text.
        Some(TraceKind::Rtp) | None => Err(of_file(no_kind(&text))),
    }
}

fn read_file(file: &Path) -> Result<String, String> {
    let in_words = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
        std::io::ErrorKind::IsADirectory => "a directory, not a file".to_owned(),
        _ => error.to_string(),
    };
    let mut bytes = Vec::new();
    File::open(file).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(in_words)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("larger than {} MiB, which no trace is", MAX_BYTES >> 20));
    }
    let text = String::from_utf8(bytes).map_err(|_| "neither text nor a capture".to_owned())?;
    Ok(without_mark(&text).to_owned())
}

/// The first line that is neither empty nor a comment.
fn first_line(text: &str) -> Option<&str> {
    without_mark(text).lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Whether a text is TOML, by its first line: `[up]` or `up = { ... }`.
pub(crate) fn is_toml(text: &str) -> bool {
    let Some(line) = first_line(text) else { return false };
    let is_header = line.starts_with('[')
        && line[1..].trim_start_matches('[').starts_with(|c: char| c.is_ascii_alphabetic());
    let is_key = line.split_once('=').is_some_and(|(key, _)| {
        let key = key.trim();
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "._-\"".contains(c))
    });
    is_header || is_key
}

/// Guesses the kind of a trace by its first line that is neither empty nor a comment. Returns `None` if the
/// line fits no kind.
pub(crate) fn guess_kind(text: &str) -> Option<TraceKind> {
    let line = first_line(text)?;
    if tc_line::is_tc_line(line) {
        return Some(TraceKind::Tc);
    }
    if line.starts_with(['{', '[']) && !is_toml(text) {
        return Some(TraceKind::NetemTrace);
    }
    if is_shown_by_tc(line) || is_toml(text) {
        return None;
    }
    // The header of a table names its columns, such as `time_s`. Names that are not known are refused with
    // those that are.
    if line.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some(TraceKind::Csv);
    }
    // A line of a Mahimahi file is a whole number.
    let is_whole_number = line.bytes().all(|byte| byte.is_ascii_digit());
    is_whole_number.then_some(TraceKind::Mahimahi)
}

/// Whether a line is what `tc qdisc show` prints.
fn is_shown_by_tc(line: &str) -> bool {
    line.starts_with("qdisc ") || line.starts_with("class ")
}

/// Says why a text is of no kind.
pub(crate) fn no_kind(text: &str) -> String {
    let is_shown = first_line(text).is_some_and(is_shown_by_tc);
    if is_shown {
        return "this is what `tc qdisc show` prints; read is the command that made it, as in `tc qdisc add dev eth0 root netem \
                delay 20ms`"
            .to_owned();
    }
    "found neither whole numbers, a header, a line of tc nor JSON. For a table of times and values add a first line that names \
     its columns, such as `time_s rate_mbps`; --as of `talkpath trace` says what a file is"
        .to_owned()
}

/// The path of a Mahimahi file.
fn path_of_deliveries(name: &str, text: &str) -> Result<PathText, String> {
    let deliveries = Deliveries::read(text, None)?;
    let mut path = PathText { assumes_queues: true, ..PathText::default() };
    let mut from = String::new();
    let mut trace = text.parse::<RateTrace>();
    if deliveries.begins_elsewhere() {
        let made = deliveries.as_trace();
        trace = made.parse();
        path.made.push((name.to_owned(), made));
        from = format!(" from its first delivery on ({})", deliveries.first_in_words());
    }
    for link in ["up", "down"] {
        path.text += &link_line(link, &format!("{{ trace = {} }}", quoted(name)), None);
    }
    // The queues have their sizes by this rate. A trace that cannot be read is refused with the scenario.
    let mean =
        trace.map_or_else(|_| String::new(), |trace| format!(" ({})", rate_in_words(trace.mean_rate())));
    path.notes.push(format!(
        "--path {name}: both directions follow the trace{from}, which repeats; {} at its mean rate{mean}; a path file says otherwise, \
         with rate = {{ trace = \"FILE\" }}",
        Assumed::of_both().in_words()
    ));
    Ok(path)
}

/// The path of lines of tc.
fn path_of_tc(name: &str, text: &str) -> Result<PathText, String> {
    let links = tc_links::read_links(text)?;
    let (mut notes, mut doubts) = (Vec::new(), Vec::new());
    for (link, direction) in links.iter().zip(["up", "down"]) {
        let of_link = link.link.notes.iter().map(|note| format!("--path {name}: {direction}: {note}"));
        notes.extend(of_link);
        doubts.extend(link.link.doubts.iter().map(|doubt| format!("{direction}: {doubt}")));
    }
    notes.push(format!("--path {name}: {}", tc_links::directions_in_words(&links)));
    Ok(PathText { text: tc_links::path_file(&links)?, notes, doubts, ..PathText::default() })
}

#[cfg(test)]
mod tests;
