//! The workloads of scenarios: what the application of a flow sends.
//!
//! Each workload has a file below `workloads/`, with its keys and the function that reads them. A new
//! workload is a file there, a line in [`WORKLOADS`], and a variant of [`WorkloadConfig`], which computes the
//! messages over time.
//!
//! - A workload's *judging* is the figure by which a flow is judged, with the smallest value that is good
//!   enough.
//! - An *echo* is a message that the receiving application sends back.
//!
//! Begin to read with [`resolve`].

mod bulk;
mod burst;
mod cbr;
mod file;
mod voice;

use talkpath_config::{SILENCE, Scale};
use talkpath_model::{Concealment, EchoWrite, Judging, Playout, WorkloadConfig};
use talkpath_units::{Bytes, Duration};

use crate::diagnostic::Log;
use crate::quantity::{Dimension, DimensionRange, Problem};
use crate::section::Section;
use crate::spec::{Default, Key, Kind, Tagged, Variant, Words, key, range};

const WORKLOADS: &[Workload] = &[voice::VOICE, cbr::CBR, bulk::BULK, burst::BURST, file::FILE];

/// The value of a flow's key `workload`.
pub(crate) static WORKLOAD: Tagged = Tagged { noun: "a workload", variants: &VARIANTS, ..Tagged::PLAIN };

/// The description of one workload.
#[derive(Clone, Copy)]
struct Workload {
    /// The word for the workload, and its keys.
    keys: Variant,
    /// Reads the keys of a section.
    read: fn(&Section<'_>, FlowTerms<'_>, &mut Log) -> Option<MeasuredWorkload>,
}

/// A workload, and the key that decides how many messages it sends.
struct MeasuredWorkload {
    workload: WorkloadConfig,
    count_key: &'static str,
}

/// The words and keys of [`WORKLOADS`].
const VARIANTS: [Variant; WORKLOADS.len()] = {
    let mut variants = [WORKLOADS[0].keys; WORKLOADS.len()];
    let mut index = 1;
    while index < variants.len() {
        variants[index] = WORKLOADS[index].keys;
        index += 1;
    }
    variants
};

/// The values that a workload takes from the rest of the flow.
#[derive(Clone, Copy)]
pub(crate) struct FlowTerms<'a> {
    /// Returns the size of a file. `None` if the file has a mistake, which is already in the log.
    pub(crate) size: &'a dyn Fn(&str) -> Option<Bytes>,
    /// The size of a file's message if the scenario does not say.
    pub(crate) file_message: Bytes,
    /// The number of bytes in each message that do not belong to the file.
    pub(crate) file_header: Bytes,
    /// Whether the transport is a stream of bytes, which keeps no borders between messages.
    pub(crate) is_stream: bool,
}

/// The workload of a flow, the echoes, and the judging.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) workload: WorkloadConfig,
    pub(crate) judging: Judging,
    pub(crate) echo: Option<EchoWrite>,
}

/// Reads the workload of `flow`. `duration` is the time for which the flow sends.
pub(crate) fn resolve(
    flow: &Section<'_>,
    duration: Option<Duration>,
    terms: FlowTerms<'_>,
    log: &mut Log,
) -> Option<Load> {
    let (kind, section) = flow.tagged("workload")?;
    let read = WORKLOADS.iter().find(|workload| workload.keys.name == kind)?.read;
    let MeasuredWorkload { workload, count_key } = read(&section, terms, log)?;
    if let Some(duration) = duration
        && let Err(problem) = check_message_count(&workload, duration)
    {
        section.problem(count_key, problem, log);
        return None;
    }
    let has_echo = section.has_key("echo") && section.flag("echo")?;
    let echo_write = match section.choice("echo_write") {
        Some("per-message") => EchoWrite::PerMessage,
        _ => EchoWrite::PerRead,
    };
    let judging = judging(&section, &workload)?;
    Some(Load { workload, judging, echo: has_echo.then_some(echo_write) })
}

/// Returns the judging. It depends on the keys that the workload has: `playout` for a call, `deadline` for
/// messages.
fn judging(section: &Section<'_>, workload: &WorkloadConfig) -> Option<Judging> {
    if section.has_key("playout") {
        let playout = playout(section)?;
        // Whoever names a receiver of another time is judged with that one alone.
        let others = playout == Playout::Adaptive;
        let concealment = match section.node("concealment") {
            Some(_) if section.choice("concealment")? == SILENCE => Concealment::Silence,
            _ => Concealment::Concealed,
        };
        let floor = match section.node("floor") {
            Some(_) => section.number("floor")?,
            None => {
                let rated = workload.voice().and_then(|voice| voice.coding.rated(true));
                rated.map_or(Scale::Narrow, |rated| rated.scale).floor()
            }
        };
        return Some(Judging::Call { playout, others, concealment, floor });
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
        ("ramjee", _) => Some(Playout::Ramjee),
        _ => Some(Playout::Adaptive),
    }
}

/// Refuses a workload with so many messages that no arena would ever finish.
fn check_message_count(workload: &WorkloadConfig, duration: Duration) -> Result<(), Problem> {
    let messages = workload.demand().messages_within(duration).unwrap_or(0);
    if messages > MOST_MESSAGES {
        let message =
            format!("found {messages} messages within `duration`, expected at most {MOST_MESSAGES}");
        return Err(Problem::new(message));
    }
    Ok(())
}

/// We chose at most a billion messages in a flow. They take hours of simulation and tens of gigabytes of
/// records.
const MOST_MESSAGES: u128 = 1_000_000_000;

/// The payload of one message. A stream could carry more. We chose 1 GB because no application writes more at
/// once.
const MESSAGE: &[DimensionRange] = &[range(Dimension::Size, 1, 1_000_000_000)];

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

const FLOOR: Key = key(
    "floor",
    Kind::Number { above: 0.0, most: 1.0 },
    Default::Is("0.95"),
    "the least share of messages in time that is usable",
);
