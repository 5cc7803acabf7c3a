//! The summary of a run directory: what the tables, the report and scripts read. Field names are a promise
//! (docs/reference/records.md). A figure that an arena cannot know is `None`, written as `null`, never 0. The
//! keys come in the order of the fields here; flows, groups and links in the order of their names. JSON has
//! no NaN and no infinity: they would become `null` (RFC 8259 §6), and no metric makes them.

mod answer;
mod call;
pub(crate) mod flow;
mod ip;
mod ledger;
mod legs;
mod link;
mod multipath;
mod spreads;
mod swept;
mod threshold;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

pub use answer::{Answer, AnswerKind, Comparison, Cure, ReceiverAnswer, TwoOutcomes};
pub use call::{CallSummary, ModelInput, MouthToEarMs, OtherReceiver, OutsideModel, ReceiverMatters};
pub use flow::FlowSummary;
pub use ip::{IpSeen, IpSummary};
pub use ledger::Ledger;
pub use legs::{BreakSummary, LegSummary, LegsSummary, LossBursts};
pub use link::{DropsByCause, LinkSummary, QueueDelayMs, QueuePackets};
pub use multipath::MultipathSummary;
pub use spreads::Spreads;
pub use swept::Swept;
pub use threshold::{ThresholdOutcome, ThresholdSummary};

/// `summary.json`, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The version of this format: [`SUMMARY_FORMAT`]. A file that does not say has format 1.
    #[serde(default = "first_format")]
    pub format: u32,
    /// The version that wrote it.
    pub talkpath: String,
    /// The scenario's name.
    pub name: String,
    /// `sim`, `emu` or `live`.
    pub arena: String,
    /// RFC 3339, UTC.
    pub started: String,
    /// Elapsed real time.
    pub wall_s: f64,
    /// CPU time of this process.
    pub cpu_s: f64,
    /// False if a repetition is missing, or the machine disturbed more than half of the repetitions of a cell
    /// past its stated limits.
    pub valid: bool,
    /// In words for a person.
    pub warnings: Vec<String>,
    /// `exact`, or the histogram and its error.
    pub percentiles: String,
    /// How far one-way figures can be trusted.
    pub clock: Clock,
    /// One entry a repetition of a cell.
    pub runs: Vec<RunSummary>,
    /// One entry a cell, over its repetitions.
    pub cells: Vec<CellSummary>,
    /// Which transport served a flow best, one entry a group of cells that differ in nothing else.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// What became of the scenario's thresholds and those of `--require` and `--fail-if`, in their order.
    #[serde(default)]
    pub thresholds: Vec<ThresholdSummary>,
    /// What made it and where; `None` in summaries of versions that did not say.
    #[serde(default)]
    pub provenance: Option<Provenance>,
    /// As what the scenario was read where a slip is likely; empty in summaries of versions that did not say.
    #[serde(default)]
    pub understood: Understood,
}

/// As what a scenario was read, in lines for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Understood {
    /// How long a repetition takes and, where we own the path, what its links are: `60 s a repetition; up 1
    /// Mb/s, 20 ms; down 8 Mb/s, 15 ms`.
    #[serde(default)]
    pub setting: Vec<String>,
    /// One for each trace: `x.up: 1000 deliveries, 1.2 Mb/s in the mean, repeats after 10 s`.
    #[serde(default)]
    pub traces: Vec<String>,
    /// Of links that lose more than a fifth of the packets: `The path loses 50 % of the packets each way.`
    #[serde(default)]
    pub losses: Vec<String>,
    /// Flows whose datagrams IP cuts, and what a loss of packets is in messages.
    #[serde(default)]
    pub fragments: Vec<String>,
    /// Links whose queue is as large as it is because the scenario does not say how large: 1000 packets.
    #[serde(default)]
    pub assumed_queues: Vec<String>,
}

impl Understood {
    /// The lines that are always said.
    pub fn lines(&self) -> impl Iterator<Item = &String> {
        self.setting.iter().chain(&self.traces).chain(&self.losses).chain(&self.fragments)
    }
}

/// The format of the summaries that this version writes. Raised if a key goes, or changes its type, unit or
/// meaning; the reader of the format before, and samples of it, stay. docs/reference/format.md has its
/// history.
pub const SUMMARY_FORMAT: u32 = 3;

/// That of talkpath 0.2.0, which has no key for it.
const fn first_format() -> u32 {
    1
}

/// The program and the machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The program's version.
    pub version: String,
    /// The Git revision that it was built from, with `-dirty` if files differed from it; `None` if it was not
    /// built in a Git checkout.
    pub revision: Option<String>,
    /// The kernel's name, release and machine, as `uname -srm` prints them.
    pub kernel: String,
    /// The machine's name on its network, as `uname -n` prints it.
    pub host: String,
}

impl RunSummary {
    /// The flows whose copies are summed up.
    pub fn summed_up(&self) -> impl Iterator<Item = (&String, &GroupSummary)> {
        let groups = self.groups.iter().map(|(name, group)| (name, group.as_ref()));
        groups.filter(|(_, group)| group.summed_up)
    }
}

impl Summary {
    /// The repetitions that figures rest on: of a valid run those that the machine did not disturb, else all.
    pub fn counted_runs(&self) -> impl Iterator<Item = &RunSummary> {
        self.runs.iter().filter(|run| !(self.valid && run.is_disturbed()))
    }

    /// The repetition that stands for each cell where only one is shown: the first that counts.
    pub fn shown_repetitions(&self) -> BTreeMap<u64, u64> {
        let mut shown = BTreeMap::new();
        for run in self.counted_runs() {
            let first: &mut u64 = shown.entry(run.cell).or_insert(run.repetition);
            *first = (*first).min(run.repetition);
        }
        shown
    }

    /// Writes `summary.json`: indented, with a line feed at its end.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, self)?;
        out.write_all(b"\n")
    }

    /// Reads `summary.json`; unknown keys are passed over, so that a newer version's summary can still be
    /// read.
    ///
    /// # Errors
    /// Those of `from`, and [`io::ErrorKind::InvalidData`] with line and column if it is no summary.
    pub fn read_json(from: impl Read) -> io::Result<Self> {
        Ok(serde_json::from_reader(io::BufReader::new(from))?)
    }
}

/// Two hosts' clocks against each other. One clock (`sim`, `emu`): offset 0, uncertainty 0, trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// The far clock minus ours.
    pub offset_ms: Option<f64>,
    /// Drift of the far clock against ours.
    pub skew_ppm: Option<f64>,
    /// Half the smallest round trip: how far an asymmetry of the path can put the offset off, either way.
    pub uncertainty_ms: Option<f64>,
    /// How far the far clock can have left its straight line during the run, beyond that; either way.
    #[serde(default)]
    pub change_uncertainty_ms: Option<f64>,
    /// The user vouches that both hosts read one time (`--clocks-synchronised`), and stamps are not
    /// corrected.
    #[serde(default)]
    pub synchronised: bool,
    /// Whether one-way figures are shown.
    pub trusted: bool,
    /// Why, or why not.
    pub why: String,
}

/// One repetition of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Index in the sweep, from 0.
    pub cell: u64,
    /// The sweep's keys and this cell's values.
    pub sweep: Swept,
    /// From 0.
    pub repetition: u64,
    /// The seed that it ran with.
    pub seed: u64,
    /// By flow name. Copies that are summed up ([`GroupSummary::summed_up`]) are not among them. Boxed,
    /// because the smallest `BTreeMap` has room for eleven values: of flows that would be 19 kB in each
    /// repetition.
    pub flows: BTreeMap<String, Box<FlowSummary>>,
    /// By group name, for flows with copies. Boxed likewise.
    pub groups: BTreeMap<String, Box<GroupSummary>>,
    /// By link name. Boxed likewise.
    pub links: BTreeMap<String, Box<LinkSummary>>,
    /// What the machine did to it; `None` in `sim`.
    #[serde(default)]
    pub machine: Option<Box<MachineSummary>>,
}

impl RunSummary {
    /// Whether the machine disturbed it past its stated limits; false if the file does not say.
    pub fn is_disturbed(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.valid == Some(false))
    }
}

/// What a machine did to a real-time repetition. Milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineSummary {
    /// Whether it stayed within the stated limits, so that the figures are the network's; `None` in files
    /// that did not say it of each repetition.
    #[serde(default)]
    pub valid: Option<bool>,
    /// How often the repetition ran again because the machine had disturbed it past the stated limits. What
    /// is here is of the last time.
    #[serde(default)]
    pub ran_again: u64,
    /// From a packet's promised departure to the emulator's write.
    pub emulator_late_ms: Option<LateMs>,
    /// For how long, at most, packets waited behind others before the emulator read them.
    pub emulator_backlog_ms: Option<LateMs>,
    /// From a clocked message's due time to its hand-over to the socket, on this host.
    pub senders_late_ms: Option<LateMs>,
    /// The same on the far host.
    pub far_senders_late_ms: Option<LateMs>,
    /// Packets that the emulator carried.
    pub packets: Option<u64>,
    /// Packets that a device had no room for, or the emulator no memory.
    pub device_drops: Option<u64>,
    /// Lower bound of the datagrams that found no room in a socket whose buffer the scenario leaves to the
    /// tool.
    pub socket_drops: Option<u64>,
    /// UDP datagrams with a wrong checksum, of all sockets of this host (of both emulated hosts).
    #[serde(default)]
    pub checksum_errors: Option<u64>,
    /// The same of the far host.
    #[serde(default)]
    pub far_checksum_errors: Option<u64>,
    /// Share of one processor that the emulator's thread took, 0 to 1.
    pub emulator_cpu_share: Option<f64>,
    /// Whether the timed threads had real-time priority.
    pub real_time: Option<bool>,
    /// Share of all processors' time that a hypervisor gave to others during the run, 0 to 1.
    #[serde(default)]
    pub stolen_share: Option<f64>,
    /// How often the emulator's thread did not run for more than a millisecond, so that the whole path stood
    /// still; `None` if no emulator ran.
    #[serde(default)]
    pub stops: Option<u64>,
    /// For how long at most.
    #[serde(default)]
    pub longest_stop_ms: Option<f64>,
}

/// How late something was, milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct LateMs {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// Arrivals one after the other, as tshark's `-z rtp,streams` reports them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RtpStream {
    /// From one arrival to the next.
    pub delta_ms: MinMeanMax,
    /// RFC 3550 §A.8 after each arrival but the first.
    pub jitter_ms: MinMeanMax,
}

/// A figure's extremes and mean, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct MinMeanMax {
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

/// Explicit congestion notification of one flow (RFC 3168), over the whole run; `None` if it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcnSummary {
    /// Whether its packets take marks.
    pub capable: Option<bool>,
    /// Packets that came to the receiver marked.
    pub marked_forward: Option<u64>,
    /// Packets that came back to the sender marked, for echo flows.
    pub marked_return: Option<u64>,
    /// Packets of TCP delivered under an echo of a mark; more than were marked.
    pub echoed_forward: Option<u64>,
    /// The same of the way back, for echo flows.
    pub echoed_return: Option<u64>,
}

/// What a judged figure was measured along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// One way, between clocks that are trusted.
    #[default]
    OneWay,
    /// Half the way there and back, because the clocks are not trusted.
    HalfRoundTrip,
    /// There and back.
    RoundTrip,
}

/// Which way of a flow's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the flow's sender.
    Forward,
    /// The echo.
    Return,
}

/// What a flow is judged by in one repetition: all its copies together, if it has some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedFigure {
    /// The figure's kind.
    pub by: JudgedBy,
    /// The median over the copies, of which the worse direction counts where there are two; the flow's own
    /// figure without copies.
    pub median: f64,
    /// The worst copy's figure.
    pub worst: f64,
    /// That copy's name, with its worse direction.
    pub worst_flow: String,
    /// Below this it is not usable.
    pub floor: f64,
    /// What the worst copy's figure was measured along.
    pub basis: Basis,
    /// Which way of an echo flow decided; `None` if both together did.
    pub direction: Option<Direction>,
    /// Whether the gaps of a call, of any of its copies, bar it from being usable, whatever its figure is.
    #[serde(default)]
    pub barred: bool,
    /// The longest gap of any copy; `None` if it is no call.
    #[serde(default)]
    pub longest_gap_ms: Option<f64>,
}

/// A kind of judged figure; of each more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgedBy {
    /// Mean opinion score, 1 to 4.5 (ITU-T G.107).
    Mos,
    /// Share of the messages within the deadline, 0 to 1.
    InTime,
    /// Payload bits delivered a second.
    Goodput,
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

/// A flow's copies together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// How many copies.
    pub flows: u64,
    /// True if there are more than 500 copies and `--per-flow` was not given. The repetition's `flows` then
    /// has no entry for any of them.
    #[serde(default)]
    pub summed_up: bool,
    /// As the copies have it.
    #[serde(default)]
    pub transport: String,
    /// Sums over copies.
    pub sent: u64,
    /// Sum.
    pub received: u64,
    /// Sum.
    pub lost: u64,
    /// Sum of lost / sum of sent without unfinished ones.
    pub loss_rate: Option<f64>,
    /// Sum.
    pub goodput_bps: Option<f64>,
    /// Mean over copies.
    pub goodput_bps_mean: Option<f64>,
    /// Mean over copies.
    pub retransmit_rate: Option<f64>,
    /// Sum.
    #[serde(default)]
    pub retransmissions: Option<u64>,
    /// Sum.
    #[serde(default)]
    pub timeouts: Option<u64>,
    /// Mean over copies.
    pub cwnd_packets: Option<f64>,
    /// Mean over copies.
    #[serde(default)]
    pub window_packets: Option<f64>,
    /// Mean over copies of each copy's median one-way delay.
    pub one_way_delay_ms_p50_mean: Option<f64>,
    /// Mean over copies of each copy's median round trip.
    #[serde(default)]
    pub round_trip_delay_ms_p50_mean: Option<f64>,
    /// Jain's index of the copies' goodputs (Jain, Chiu and Hawe, 1984): (sum x)^2 / (n sum x^2).
    pub jain_index: Option<f64>,
    /// What the flow is judged by; `None` if a copy's figure is not known.
    #[serde(default)]
    pub judged: Option<JudgedFigure>,
    /// The same with the second receiver of a call; `None` if there is none.
    #[serde(default)]
    pub judged_with_other_receiver: Option<JudgedFigure>,
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
