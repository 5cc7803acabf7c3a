//! What the application sends.

use talkpath_units::{Bytes, Duration, Rate};

use super::section::Section;
use crate::diagnostic::Log;
use crate::files::Contents;
use crate::model::{Codec, EchoWrite, WorkloadConfig};
use crate::quantity::Problem;
use crate::read::Reading;

/// What the `file` workload takes from elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct FileTerms<'a> {
    /// The files' sizes.
    pub(crate) contents: &'a Contents,
    /// The largest message, if the scenario says nothing.
    pub(crate) message: Bytes,
    /// What of each message is not the file's.
    pub(crate) header: Bytes,
}

/// The workload of `flow`, and its echo.
pub(crate) fn resolve(
    flow: &Section<'_>,
    duration: Option<Duration>,
    file: FileTerms<'_>,
    log: &mut Log,
) -> Option<(WorkloadConfig, Option<EchoWrite>)> {
    let (kind, section) = flow.tagged("workload")?;
    // Each with the key that says how many messages there are.
    let (workload, key) = match kind {
        "voice" => (voice(&section, log)?, "ptime"),
        "cbr" => (cbr(&section, log)?, "rate"),
        "bulk" => (WorkloadConfig::Bulk { bytes: section.bytes_or_word("bytes", log)? }, "bytes"),
        "burst" => (burst(&section, log)?, "count"),
        "file" => (file_workload(&section, file, log)?, "source"),
        _ => return None,
    };
    if let Some(duration) = duration {
        bound(&workload, key, duration, &section, log)?;
    }
    let echo = section.has_key("echo") && section.flag("echo", log)?;
    let write = match section.choice("echo_write", log) {
        Some("per-message") => EchoWrite::PerMessage,
        _ => EchoWrite::PerRead,
    };
    Some((workload, echo.then_some(write)))
}

fn voice(section: &Section<'_>, log: &mut Log) -> Option<WorkloadConfig> {
    let codec = section.choice("codec", log);
    let ptime = section.duration("ptime", log)?;
    if ptime.as_nanos() % NANOS_PER_MS != 0 {
        let message = format!("found {ptime}, expected a whole number of milliseconds");
        section.problem("ptime", Problem::new(message), log);
        return None;
    }
    codec?;
    let size = Bytes::new(ptime.as_millis() * G711_BYTES_PER_MS);
    Some(WorkloadConfig::Voice { codec: Codec::G711, ptime, size })
}

fn cbr(section: &Section<'_>, log: &mut Log) -> Option<WorkloadConfig> {
    let rate = section.reading("rate", log);
    let size = section.bytes("size", log);
    let Reading::Amount(rate) = rate? else { return None };
    Some(WorkloadConfig::Cbr { rate: Rate::from_bps(rate.count), size: size? })
}

fn file_workload(section: &Section<'_>, terms: FileTerms<'_>, log: &mut Log) -> Option<WorkloadConfig> {
    let size = section.bytes_or_word("size", log)?.unwrap_or(terms.message);
    let source = section.text("source", log)?;
    // A mistake in the file is reported already.
    let bytes = terms.contents.size(source)?;
    Some(WorkloadConfig::File { source: source.to_owned(), bytes, size, header: terms.header })
}

fn burst(section: &Section<'_>, log: &mut Log) -> Option<WorkloadConfig> {
    let count = section.count("count", log);
    let size = section.bytes("size", log);
    let repeat = section.count("repeat", log);
    let gap = section.duration("gap", log);
    Some(WorkloadConfig::Burst { count: count?, size: size?, repeat: repeat?, gap: gap? })
}

/// Refuses what no arena would ever finish, because of `key`: `None` then.
fn bound(
    workload: &WorkloadConfig,
    key: &str,
    duration: Duration,
    section: &Section<'_>,
    log: &mut Log,
) -> Option<()> {
    let messages = workload.demand().messages_within(duration).unwrap_or(0);
    if messages > MOST_MESSAGES {
        let message =
            format!("found {messages} messages within `duration`, expected at most {MOST_MESSAGES}");
        section.problem(key, Problem::new(message), log);
        return None;
    }
    Some(())
}

/// ITU-T G.711: 8000 samples of one byte a second.
const G711_BYTES_PER_MS: u64 = 8;

const NANOS_PER_MS: u64 = 1_000_000;

/// Messages of one flow. Chosen: hours of simulation and tens of gigabytes of records.
const MOST_MESSAGES: u128 = 1_000_000_000;
