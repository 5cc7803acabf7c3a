//! What the application sends.

use talkpath_units::{Bytes, Duration, Rate};

use super::section::Section;
use crate::diagnostic::Log;
use crate::files::Contents;
use crate::model::{Codec, Concealment, EchoWrite, Judging, Playout, WorkloadConfig};
use crate::quantity::{Dimension, Problem};
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

/// What a flow sends, what comes back, and what it is judged by.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) workload: WorkloadConfig,
    pub(crate) judging: Judging,
    pub(crate) echo: Option<EchoWrite>,
}

/// The workload of `flow`.
pub(crate) fn resolve(
    flow: &Section<'_>,
    duration: Option<Duration>,
    file: FileTerms<'_>,
    log: &mut Log,
) -> Option<Load> {
    let (kind, section) = flow.tagged("workload")?;
    // Each with the key that says how many messages there are.
    let (workload, key) = match kind {
        "voice" => (voice(&section, log)?, "ptime"),
        "cbr" => (cbr(&section, log)?, clock_key(&section)),
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
    let judging = judging(&section, log)?;
    Some(Load { workload, judging, echo: echo.then_some(write) })
}

/// By the keys that the workload has.
fn judging(section: &Section<'_>, log: &mut Log) -> Option<Judging> {
    if section.has_key("playout") {
        let playout = playout(section, log);
        let concealment = match section.choice("concealment", log)? {
            "none" => Concealment::Silence,
            _ => Concealment::G711AppendixI,
        };
        return Some(Judging::Call { playout: playout?, concealment, floor: section.number("floor", log)? });
    }
    if !section.has_key("deadline") {
        return Some(Judging::Unjudged);
    }
    let deadline = match section.node("deadline") {
        Some(_) => Some(section.duration("deadline", log)?),
        None => None,
    };
    let is_state = section.has_key("state") && section.flag("state", log)?;
    Some(Judging::InTime { deadline, is_state, floor: section.number("floor", log)? })
}

fn playout(section: &Section<'_>, log: &mut Log) -> Option<Playout> {
    match section.tagged("playout")? {
        ("fixed", fixed) => Some(Playout::Fixed(fixed.duration("delay", log)?)),
        _ => Some(Playout::Adaptive),
    }
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
    let size = section.bytes("size", log);
    let clock = match (section.node("rate"), section.node("message_rate")) {
        (Some(_), None) | (None, Some(_)) => section.reading(clock_key(section), log),
        (Some(_), Some(_)) => {
            section.problem(
                "message_rate",
                Problem::new("found both `rate` and `message_rate`, expected one"),
                log,
            );
            None
        }
        (None, None) => {
            let problem = Problem::new("missing; expected a rate such as \"1.5 Mbps\"")
                .with_help("or `message_rate`, such as \"60 Hz\"");
            section.problem("rate", problem, log);
            None
        }
    };
    let (Some(Reading::Amount(clock)), Some(size)) = (clock, size) else { return None };
    let bps = match clock.dimension {
        Dimension::Frequency => bps_of(clock.count, size),
        _ => Some(clock.count),
    };
    let Some(bps) = bps else {
        let message = format!("found {clock} of {size}, expected at least 1 bps and at most 100 Tbps");
        section.problem("message_rate", Problem::new(message), log);
        return None;
    };
    Some(WorkloadConfig::Cbr { rate: Rate::from_bps(bps), size })
}

/// The key that sets the clock of a `cbr`.
fn clock_key(cbr: &Section<'_>) -> &'static str {
    if cbr.node("message_rate").is_some() { "message_rate" } else { "rate" }
}

/// The rate of messages of `size`, `millihertz` of them in 1000 s, rounded to the nearest; `None` if no link
/// could have it.
fn bps_of(millihertz: u64, size: Bytes) -> Option<u64> {
    let thousandths = u128::from(millihertz) * u128::from(size.get()) * 8;
    let bps = u64::try_from((thousandths + 500) / 1_000).ok()?;
    (1..=MAX_BPS).contains(&bps).then_some(bps)
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

/// As the bound of `rate`.
const MAX_BPS: u64 = 100_000_000_000_000;

/// ITU-T G.711: 8000 samples of one byte a second.
const G711_BYTES_PER_MS: u64 = 8;

const NANOS_PER_MS: u64 = 1_000_000;

/// Messages of one flow. Chosen: hours of simulation and tens of gigabytes of records.
const MOST_MESSAGES: u128 = 1_000_000_000;
