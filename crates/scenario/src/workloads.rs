//! Workloads in a scenario, a file each: its keys beside what they mean.
//!
//! A new one is a file here and its line in [`WORKLOADS`]; what it sends over time, its variant of
//! [`WorkloadConfig`] answers.

mod bulk;
mod burst;
mod cbr;
mod file;
mod voice;

use talkpath_config::SILENCE;
use talkpath_model::{Concealment, EchoWrite, Judging, Playout, WorkloadConfig};
use talkpath_units::{Bytes, Duration};

use crate::diagnostic::Log;
use crate::quantity::{Dimension, Measure, Problem};
use crate::section::Section;
use crate::spec::{Default, Key, Kind, Tagged, Variant, Words, key, measure};

/// Every workload.
const WORKLOADS: &[Workload] = &[voice::VOICE, cbr::CBR, bulk::BULK, burst::BURST, file::FILE];

/// A workload's table.
pub(crate) static WORKLOAD: Tagged =
    Tagged { noun: "a workload", variants: &VARIANTS, later: &[], number: None, quantity: None };

/// One workload.
#[derive(Clone, Copy)]
struct Workload {
    /// Its word and its keys.
    keys: Variant,
    /// What the keys in a section mean.
    read: fn(&Section<'_>, FileTerms<'_>, &mut Log) -> Option<Counted>,
}

/// What a workload sends.
struct Counted {
    workload: WorkloadConfig,
    /// The key that decides how many messages there are.
    by: &'static str,
}

/// The keys of [`WORKLOADS`].
const VARIANTS: [Variant; WORKLOADS.len()] = {
    let mut variants = [WORKLOADS[0].keys; WORKLOADS.len()];
    let mut at = 1;
    while at < variants.len() {
        variants[at] = WORKLOADS[at].keys;
        at += 1;
    }
    variants
};

/// What the `file` workload takes from elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct FileTerms<'a> {
    /// The size of a file; `None` if there is a mistake in it, which is reported already.
    pub(crate) size: &'a dyn Fn(&str) -> Option<Bytes>,
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
    let read = WORKLOADS.iter().find(|workload| workload.keys.name == kind)?.read;
    let Counted { workload, by } = read(&section, file, log)?;
    if let Some(duration) = duration {
        bound(&workload, by, duration, &section, log)?;
    }
    let echo = section.has_key("echo") && section.flag("echo")?;
    let write = match section.choice("echo_write") {
        Some("per-message") => EchoWrite::PerMessage,
        _ => EchoWrite::PerRead,
    };
    let judging = judging(&section)?;
    Some(Load { workload, judging, echo: echo.then_some(write) })
}

/// By the keys that the workload has.
fn judging(section: &Section<'_>) -> Option<Judging> {
    if section.has_key("playout") {
        // An unnamed playout is no mistake; one that is wrong is.
        let playout = match section.node("playout") {
            Some(_) => Some(playout(section)?),
            None => None,
        };
        let concealment = match section.choice("concealment")? {
            SILENCE => Concealment::Silence,
            _ => Concealment::Concealed,
        };
        return Some(Judging::Call { playout, concealment, floor: section.number("floor")? });
    }
    if !section.has_key("deadline") {
        return Some(Judging::Unjudged);
    }
    let deadline = match section.node("deadline") {
        Some(_) => Some(section.duration("deadline")?),
        None => None,
    };
    let is_state = section.has_key("state") && section.flag("state")?;
    Some(Judging::InTime { deadline, is_state, floor: section.number("floor")? })
}

fn playout(section: &Section<'_>) -> Option<Playout> {
    match section.tagged("playout")? {
        ("fixed", fixed) => Some(Playout::Fixed(fixed.duration("delay")?)),
        _ => Some(Playout::Adaptive),
    }
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

/// Payload of one message. A stream could carry more, but an application does not write more at once. Chosen.
const MESSAGE: &[Measure] = &[measure(Dimension::Size, 1, 1_000_000_000)];

const ECHO_WRITE: Words =
    Words { noun: "a write pattern", known: &["per-read", "per-message"], later: &[], why: "" };

const ECHO: Key =
    key("echo", Kind::Flag, Default::Is("false"), "whether the far application sends every message back");

const ECHO_WRITE_KEY: Key = key(
    "echo_write",
    Kind::Choice(&ECHO_WRITE),
    Default::Is("\"per-read\""),
    "how the far application writes what one read returned: all in one write, or one write for each message",
);

/// The least share of messages in time.
const FLOOR: Key = key(
    "floor",
    Kind::Number { above: 0.0, most: 1.0 },
    Default::Is("0.95"),
    "the least share of messages in time that is usable",
);

/// Messages of one flow. Chosen: hours of simulation and tens of gigabytes of records.
const MOST_MESSAGES: u128 = 1_000_000_000;
