//! The types of summary.json, which tables, reports and scripts read. The field names are a promise to users
//! (docs/reference/records.md).
//!
//! A figure that an arena cannot know is `None`, which is written as `null` and never as 0. The keys are in
//! the order of the fields here. Flows, groups and links are in the order of their names. JSON has no NaN and
//! no infinity, so they would become `null` (RFC 8259 §6). No metric makes them.

mod answer;
mod by_change;
mod call;
pub(crate) mod flow;
mod ip;
mod ledger;
mod legs;
mod link;
mod machine;
mod multipath;
mod opening;
mod path;
mod program;
mod spreads;
mod swept;
mod threshold;
mod waits;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

pub use answer::{Answer, AnswerKind, Comparison, Cure, ReceiverAnswer, TriedChange, TwoOutcomes};
pub use by_change::ByChange;
pub(crate) use call::Stretching;
pub use call::{
    CallSummary, CallWindows, LEAST_MOS, ModelInput, MouthToEarMs, OpeningSecond, OtherReceiver,
    OutsideModel, ReceiverMatters,
};
pub use flow::FlowSummary;
pub use ip::{IpSeen, IpSummary, OnPathMs};
pub use ledger::Ledger;
pub use legs::{BreakSummary, LegSummary, LegsSummary, LossBursts};
pub use link::{DropsByCause, LinkSummary, QueueDelayMs, QueuePackets};
pub use machine::{LateMs, MachineSummary};
pub use multipath::MultipathSummary;
pub use opening::OpeningSummary;
pub use path::{MappingSummary, PathSummary, PathWaySummary};
pub use program::{ProgramFigureSummary, ProgramRunSummary, ProgramSummary};
pub use spreads::Spreads;
pub use swept::Swept;
pub use threshold::{ThresholdOutcome, ThresholdSummary};
pub use waits::{HeldMs, WaitMs, WaitsSummary};

/// The whole of summary.json.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The version of this format: [`SUMMARY_FORMAT`]. A file that does not say has format 1.
    #[serde(default = "first_format")]
    pub format: u32,
    /// The version of talkpath that wrote the file.
    pub talkpath: String,
    /// The scenario's name.
    pub name: String,
    /// `sim`, `emu` or `live`.
    pub arena: String,
    /// The start of the run, in UTC (RFC 3339).
    pub started: String,
    /// The real time that the run took, in seconds.
    pub wall_s: f64,
    /// The CPU time of this process, in seconds.
    pub cpu_s: f64,
    /// False if a repetition is missing, or if the machine disturbed more than half of the repetitions of a
    /// cell.
    pub valid: bool,
    /// Warnings in words.
    pub warnings: Vec<String>,
    /// How percentiles were computed: `exact`, or the name of the histogram and its error.
    pub percentiles: String,
    /// How far the figures of one direction can be trusted.
    pub clock: Clock,
    /// The program of the user (`[program]`). `None` if the scenario has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramSummary>,
    /// One entry for each repetition of each cell.
    pub runs: Vec<RunSummary>,
    /// One entry for each cell, over its repetitions.
    pub cells: Vec<CellSummary>,
    /// Which transport served a flow best. There is one entry for each group of cells that differ in the
    /// transport only.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// Whether the thresholds held: those of the scenario, of `--require` and of `--fail-if`, in this order.
    #[serde(default)]
    pub thresholds: Vec<ThresholdSummary>,
    /// The program and the machine of the run. `None` in summaries of versions that did not write this.
    #[serde(default)]
    pub provenance: Option<Provenance>,
    /// How the scenario was understood. Empty in summaries of versions that did not write this.
    #[serde(default)]
    pub understood: Understood,
}

/// How a scenario was understood, in lines for people. The lines show a user what may be a mistake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Understood {
    /// How long a repetition takes and, if the arena owns the path, what the links are: `60 s a repetition;
    /// up 1 Mb/s, 20 ms; down 8 Mb/s, 15 ms`.
    #[serde(default)]
    pub setting: Vec<String>,
    /// One line for each trace: `x.up: 1000 deliveries, 1.2 Mb/s in the mean, repeats after 10 s`.
    #[serde(default)]
    pub traces: Vec<String>,
    /// One line for each link that loses more than a fifth of the packets: `The path loses 50 % of the
    /// packets each way.`
    #[serde(default)]
    pub losses: Vec<String>,
    /// One line for each flow whose datagrams IP cuts into fragments. It says how many messages a loss of
    /// packets takes.
    #[serde(default)]
    pub fragments: Vec<String>,
    /// The names of the links whose queue has an assumed size, because neither the scenario nor a flag says
    /// how large the queue is: the default of 1000 packets, or what `compare --line` assumes.
    #[serde(default)]
    pub assumed_queues: Vec<String>,
    /// The names of the links that are in a phone's cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links_of_cells: Vec<String>,
}

impl Understood {
    /// The lines that are always printed.
    pub fn lines(&self) -> impl Iterator<Item = &String> {
        self.setting.iter().chain(&self.traces).chain(&self.losses).chain(&self.fragments)
    }
}

/// The version of the summary format that this version of talkpath writes. It is raised if a key is removed,
/// or changes its type, unit or meaning. The reader of the previous format and samples of it stay.
/// docs/reference/format.md tells the history.
pub const SUMMARY_FORMAT: u32 = 3;

/// The arena in the summary of a capture, which ran in none (`talkpath rate`).
pub const CAPTURE: &str = "capture";

/// The format of talkpath 0.2.0, which has no key for the format.
const fn first_format() -> u32 {
    1
}

/// The program and the machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The program's version.
    pub version: String,
    /// The Git revision that the program was built from, with `-dirty` if files differed from the revision.
    /// `None` if the program was not built in a Git checkout.
    pub revision: Option<String>,
    /// The kernel's name, release and machine, as `uname -srm` prints them.
    pub kernel: String,
    /// The machine's name on its network, as `uname -n` prints it.
    pub host: String,
}

impl RunSummary {
    /// The changes of the path, as far as they are known.
    pub fn changes(&self) -> &[PathChange] {
        self.changes.as_ref().map_or(&[], |changes| &changes.0)
    }

    /// The groups whose copies have no figures of their own.
    pub fn summed_up(&self) -> impl Iterator<Item = (&String, &GroupSummary)> {
        let groups = self.groups.iter().map(|(name, group)| (name, group.as_ref()));
        groups.filter(|(_, group)| group.summed_up)
    }
}

impl Summary {
    /// The repetitions that figures rest on. In a valid run these are the repetitions that the machine did
    /// not disturb. In a run that is not valid these are all repetitions.
    pub fn counted_runs(&self) -> impl Iterator<Item = &RunSummary> {
        self.runs.iter().filter(|run| !(self.valid && run.is_disturbed()))
    }

    /// The repetition of each cell that is shown if only one can be shown. It is the first repetition that
    /// counts.
    pub fn shown_repetitions(&self) -> BTreeMap<u64, u64> {
        let mut shown = BTreeMap::new();
        for run in self.counted_runs() {
            let first: &mut u64 = shown.entry(run.cell).or_insert(run.repetition);
            *first = (*first).min(run.repetition);
        }
        shown
    }

    /// Writes summary.json with indented lines, and a line feed at the end.
    ///
    /// # Errors
    /// Returns an error if `out` cannot be written.
    pub fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, self)?;
        out.write_all(b"\n")
    }

    /// Reads summary.json. Unknown keys are ignored, so that the summary of a newer version can still be
    /// read.
    ///
    /// # Errors
    /// Returns an error if `from` cannot be read. Returns [`io::ErrorKind::InvalidData`] with the line and
    /// the column if the text is not a summary.
    pub fn read_json(from: impl Read) -> io::Result<Self> {
        Ok(serde_json::from_reader(io::BufReader::new(from))?)
    }
}

/// How the clocks of the two hosts compare. In `sim` and `emu` there is one clock, which is trusted and has
/// an offset and an uncertainty of 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// The time of the far clock minus the time of the clock here.
    pub offset_ms: Option<f64>,
    /// The drift of the far clock against the clock here.
    pub skew_ppm: Option<f64>,
    /// Half of the smallest round trip. An asymmetric path can put the offset off by so much, in either
    /// direction.
    pub uncertainty_ms: Option<f64>,
    /// By how much more the offset can be off, because the drift of the far clock may have changed during the
    /// run.
    #[serde(default)]
    pub change_uncertainty_ms: Option<f64>,
    /// Whether the user vouches that both hosts have the same time (`--clocks-synchronised`). Time stamps are
    /// then not corrected.
    #[serde(default)]
    pub synchronised: bool,
    /// Whether the figures of one direction are shown.
    pub trusted: bool,
    /// The reason why the clocks are trusted or not.
    pub why: String,
}

/// The figures of one repetition of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Index in the sweep, from 0.
    pub cell: u64,
    /// The sweep's keys and this cell's values.
    pub sweep: Swept,
    /// The number of the repetition, from 0.
    pub repetition: u64,
    /// The seed of the repetition's random numbers.
    pub seed: u64,
    /// The flows by name. Copies that are summed up ([`GroupSummary::summed_up`]) are left out. The values
    /// are boxed, because the smallest `BTreeMap` has room for eleven values, which would take 19 kB in each
    /// repetition.
    pub flows: BTreeMap<String, Box<FlowSummary>>,
    /// The groups of copies by name. The values are boxed for the same reason.
    pub groups: BTreeMap<String, Box<GroupSummary>>,
    /// The links by name. The values are boxed for the same reason.
    pub links: BTreeMap<String, Box<LinkSummary>>,
    /// How the machine kept up with real time. `None` in `sim`.
    #[serde(default)]
    pub machine: Option<Box<MachineSummary>>,
    /// What the path did to probes before the run. `None` unless the run is live and the probes were
    /// answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Box<PathSummary>>,
    /// What came of the program of the user. `None` if the scenario has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<ProgramRunSummary>>,
    /// The changes of the path. `None` if it does not change. If it changes more than [`MOST_CHANGES`] times,
    /// an entry describes all changes of a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Box<PathChanges>>,
}

/// The changes of a path in order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PathChanges(pub Vec<PathChange>);

/// A run lists at most 100 changes of its path one by one. Chosen: each repetition of each cell has the list.
pub const MOST_CHANGES: usize = 100;

/// A change of the path, or all changes of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathChange {
    /// When the change begins, in s from the start of the run.
    pub from_s: f64,
    /// When the ramp or the outage ends. Equal to `from_s` if the change has neither.
    pub until_s: f64,
    /// The change in words: `up: outage`.
    pub text: String,
    /// What the change looks like over time.
    #[serde(default)]
    pub kind: ChangeKind,
    /// The words that all changes of its group share: the `name` in the scenario, or what they change. Empty
    /// in the summary of an earlier version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// How many changes the entry describes. The first begins at `from_s`, and the last ends at `until_s`.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u64,
}

/// What a change of the path looks like over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Values change at once.
    #[default]
    Step,
    /// Values go to their target in steps.
    Ramp,
    /// No packet leaves for a time.
    Silence,
}

const fn once() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_once(times: &u64) -> bool {
    *times == 1
}

impl RunSummary {
    /// Whether the machine disturbed the repetition beyond the stated limits. False if the file does not say
    /// so.
    pub fn is_disturbed(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.valid == Some(false))
    }
}

/// The arrivals of a flow, as tshark's `-z rtp,streams` reports them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RtpStream {
    /// The time from one arrival to the next.
    pub delta_ms: MinMeanMax,
    /// The jitter of RFC 3550 §A.8 after each arrival but the first.
    pub jitter_ms: MinMeanMax,
}

/// The least, the mean and the greatest value of a figure, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct MinMeanMax {
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

/// The ECN marks of one flow (RFC 3168), over the whole run. A number is `None` if it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcnSummary {
    /// Whether the packets of the flow can be marked.
    pub capable: Option<bool>,
    /// Packets that arrived at the receiver with a mark.
    pub marked_forward: Option<u64>,
    /// Packets that arrived at the sender with a mark, for flows with an echo.
    pub marked_return: Option<u64>,
    /// Packets of TCP that were delivered while the receiver echoed a mark. They are more than the marked
    /// packets.
    pub echoed_forward: Option<u64>,
    /// The same number for the return direction, for flows with an echo.
    pub echoed_return: Option<u64>,
}

/// The path that a judged figure was measured on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// One direction, between clocks that are trusted.
    #[default]
    OneWay,
    /// Half of a round trip, because the clocks are not trusted.
    HalfRoundTrip,
    /// A whole round trip.
    RoundTrip,
}

/// A direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The direction of the messages.
    Forward,
    /// The direction of the echoes.
    Return,
}

/// The figure that says how well a flow was served in one repetition. If the flow has copies, it stands for
/// all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedFigure {
    /// The kind of the figure.
    pub by: JudgedBy,
    /// The median over the copies. A copy with two directions counts with the worse one. Without copies it is
    /// the figure of the flow itself.
    pub median: f64,
    /// The figure of the worst copy.
    pub worst: f64,
    /// The name of the worst copy, with its worse direction.
    pub worst_flow: String,
    /// The least figure with which the flow is usable.
    pub floor: f64,
    /// The path that the figure of the worst copy was measured on.
    pub basis: Basis,
    /// The direction that decided. `None` if both directions together did.
    pub direction: Option<Direction>,
    /// Whether gaps bar the call, or any of its copies. The call is then not usable, whatever its figure is.
    #[serde(default)]
    pub barred: bool,
    /// The longest gap of any copy. `None` if the flow is not a call.
    #[serde(default)]
    pub longest_gap_ms: Option<f64>,
}

/// A kind of judged figure. A larger figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgedBy {
    /// Mean opinion score, 1 to 4.5 (ITU-T G.107).
    Mos,
    /// Share of the messages within the deadline, 0 to 1.
    InTime,
    /// Payload bits delivered a second.
    Goodput,
    /// The share of what a call's listener hears that was not concealed, 0 to 1. It judges calls whose coding
    /// has no published impairment, so that they have no score. The delay does not count in it.
    Heard,
}

/// What came of a file, as its receiver found it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileSummary {
    /// The file's own name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The sender's SHA-256, in hexadecimal.
    pub sha256: String,
    /// How much of it arrived, each byte counted once; `None` if the receiver went away.
    pub received_bytes: Option<u64>,
    /// Whether all of it arrived with the sender's SHA-256; `None` if the receiver went away.
    pub intact: Option<bool>,
    /// Byte ranges that did not arrive, from and to (exclusive): the first hundred.
    pub missing: Vec<(u64, u64)>,
    /// How many such ranges there are in all.
    pub missing_ranges: u64,
    /// Under which name the receiver kept it, if it was set to keep it.
    pub kept_as: Option<String>,
}

/// When a transfer began and ended, and the payload of its messages: the fields of Spoor's transfer log
/// (2014, appendix B) that no other figure has. A transfer is a burst, or a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferSummary {
    /// The date and time of the first send, in UTC; `None` if nothing was sent.
    pub start: Option<String>,
    /// The date and time of the last arrival, in UTC; `None` if nothing arrived.
    pub end: Option<String>,
    /// The smallest payload of a message, B; `None` if no message was due.
    pub size_bytes_min: Option<u64>,
    /// The largest payload of a message, B; `None` if no message was due.
    pub size_bytes_max: Option<u64>,
}

/// Runs of consecutive missing messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossRuns {
    /// Longest run.
    pub max: u64,
    /// Mean length; `None` without losses.
    pub mean: Option<f64>,
    /// How many runs of length 1, 2, 3, ...
    pub histogram: Vec<u64>,
}

/// Delay statistics, milliseconds, exact nearest-rank percentiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct DelayMs {
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// Ages of the newest state, milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct StateAgeMs {
    pub p50: f64,
    pub p99: f64,
}

/// How long an echoing host held messages, milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct TurnRoundMs {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

/// Delay variation statistics, milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct IpdvMs {
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// Deliveries second by second, against what the flow offered in the same second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settling {
    /// Seconds from the first message until no second is off by more than a tenth any more; `None` if the
    /// last is.
    pub settled_after_s: Option<u64>,
    /// The largest second.
    pub peak_bps: u64,
    /// Whole seconds from the first message to that one.
    pub peak_at_s: u64,
    /// Seconds more than a tenth above the offer.
    pub seconds_above: u64,
    /// Seconds more than a tenth below it.
    pub seconds_below: u64,
}

/// A mean and a maximum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanMax {
    /// Time-weighted mean.
    pub mean: f64,
    /// Maximum.
    pub max: f64,
}

/// The figures of all copies of a flow together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// The number of copies.
    pub flows: u64,
    /// Whether the copies have no entries of their own in `flows`, because there are more than 500 and
    /// `--per-flow` was not given.
    #[serde(default)]
    pub summed_up: bool,
    /// The transport of the copies.
    #[serde(default)]
    pub transport: String,
    /// The sum over the copies.
    pub sent: u64,
    /// The sum over the copies.
    pub received: u64,
    /// The sum over the copies.
    pub lost: u64,
    /// The sum of lost messages / the sum of sent messages. Unfinished messages are left out of both sums.
    pub loss_rate: Option<f64>,
    /// The sum over the copies.
    pub goodput_bps: Option<f64>,
    /// The mean over the copies.
    pub goodput_bps_mean: Option<f64>,
    /// The mean over the copies.
    pub retransmit_rate: Option<f64>,
    /// The sum over the copies.
    #[serde(default)]
    pub retransmissions: Option<u64>,
    /// The sum over the copies.
    #[serde(default)]
    pub timeouts: Option<u64>,
    /// The mean over the copies.
    pub cwnd_packets: Option<f64>,
    /// The mean over the copies.
    #[serde(default)]
    pub window_packets: Option<f64>,
    /// The mean over the copies of each copy's median one-way delay.
    pub one_way_delay_ms_p50_mean: Option<f64>,
    /// The mean over the copies of each copy's median round trip.
    #[serde(default)]
    pub round_trip_delay_ms_p50_mean: Option<f64>,
    /// Jain's index of the copies' goodputs (Jain, Chiu and Hawe, 1984): (sum x)^2 / (n sum x^2).
    pub jain_index: Option<f64>,
    /// The judged figure of all copies. `None` if the figure of a copy is not known.
    #[serde(default)]
    pub judged: Option<JudgedFigure>,
    /// The judged figure with the second receiver of a call. `None` if there is no such receiver.
    #[serde(default)]
    pub judged_with_other_receiver: Option<JudgedFigure>,
    /// The judged figure with the patient receiver of a call. `None` if there is no such receiver.
    #[serde(default)]
    pub judged_with_patient_receiver: Option<JudgedFigure>,
}

/// One cell over its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSummary {
    /// Index in the sweep, from 0.
    pub cell: u64,
    /// The sweep's keys and this cell's values.
    pub sweep: Swept,
    /// Repetitions.
    pub n: u64,
    /// By flow name, then by metric: `round_trip_delay_ms.p90`, `loss_rate`, ...
    pub flows: BTreeMap<String, Spreads>,
    /// By group name, then by metric, for flows with copies: `goodput_bps`, `jain_index`, ...
    #[serde(default)]
    pub groups: BTreeMap<String, Spreads>,
    /// The figures of the program of the user by their names, over the repetitions that did not fail.
    #[serde(default, skip_serializing_if = "Spreads::is_empty")]
    pub program: Spreads,
}

/// A metric over repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median of the repetitions' values.
    pub median: f64,
    /// Mean of the repetitions' values.
    pub mean: f64,
    /// 95 % confidence interval of the mean (Student's t); `None` with one repetition.
    pub ci95: Option<(f64, f64)>,
    /// How many repetitions know the metric, if not all of the cell do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
}
