//! A flow in summary.json: its figures as fields of a type, and as rows of the table of figures.

use serde::{Deserialize, Serialize};

use super::{
    BreakSummary, ByChange, CallSummary, DelayMs, EcnSummary, FileSummary, IpSummary, IpdvMs, Ledger,
    LegsSummary, LossRuns, MeanMax, MultipathSummary, OpeningSummary, RtpStream, Settling, StateAgeMs,
    TransferSummary, TurnRoundMs, WaitsSummary,
};
use crate::figures::row::Figure;
use crate::figures::unit::Unit;
use crate::metrics::bad_seconds::BadSecond;

/// The figures of one flow in one repetition. docs/reference/metrics.md defines them. Fields that are always
/// `None` in the simulator are boxed, because a large sweep has many flows in memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// `udp`, `tcp`, `tcp-nodelay`, ...
    pub transport: String,
    /// The congestion control. `None` if the transport has none.
    pub cc: Option<String>,
    /// Messages that were due after the warm-up and that the transport did not refuse. A message that never
    /// left because there was no network or no open connection counts as sent and lost.
    pub sent: u64,
    /// Sent messages that were delivered. With an echo, the echo had to come back.
    pub received: u64,
    /// Sent messages that were lost. They are found by their sequence numbers, so a duplicate never hides a
    /// loss.
    pub lost: u64,
    /// Messages that were lost on the way to the receiver. `None` if it is not known.
    pub lost_forward: Option<u64>,
    /// Echoes that were lost on the way back. `None` if it is not known, or if the flow has no echo.
    pub lost_return: Option<u64>,
    /// lost / sent. Unfinished messages are left out of both numbers.
    pub loss_rate: Option<f64>,
    /// Second and further copies of messages that arrived.
    pub duplicates: u64,
    /// Arrivals whose sequence number is below one that came before (RFC 4737 §3).
    pub reordered: u64,
    /// Messages that were still queued or in flight at the end.
    pub unfinished: u64,
    /// Messages that the transport would not take.
    pub refused: u64,
    /// Lost messages that their sender gave up, because they were older than the transport's `expire`.
    #[serde(default)]
    pub expired: u64,
    /// The fates of all messages that were due. `None` in files of a format before 3.
    #[serde(default)]
    pub ledger: Option<Ledger>,
    /// The time from the start of the flow until its sender could let the first message leave. `None` if the
    /// sender never could, and in files of a format before 3.
    #[serde(default)]
    pub opening_ms: Option<f64>,
    /// The parts of the opening. `None` if no part is known, and in files of earlier versions.
    #[serde(default)]
    pub opening: Option<Box<OpeningSummary>>,
    /// How many independent messages tell as much about `loss_rate`, because losses come in runs. `None` in
    /// files of earlier versions.
    #[serde(default)]
    pub loss_independent: Option<f64>,
    /// Runs of consecutive lost messages.
    pub loss_runs: LossRuns,
    /// The exact share of the messages that met the deadline of the flow. A message that was lost, refused
    /// or unfinished did not. `None` if the workload has no deadline, and for one direction between clocks
    /// that are not trusted.
    #[serde(default)]
    pub in_time: Option<f64>,
    /// How many independent messages tell as much about `in_time`, because late and lost messages come in
    /// runs. `None` where `in_time` is, and in files of earlier versions.
    #[serde(default)]
    pub in_time_independent: Option<f64>,
    /// The longest delay with which a message is not late. With an echo it is the delay until the echo
    /// arrives. `None` if the workload has no deadline.
    #[serde(default)]
    pub deadline_ms: Option<f64>,
    /// How a call sounds, by its playout and the E-model (docs/reference/metrics.md). `None` if the workload
    /// is not voice, and for one direction between clocks that are not trusted.
    #[serde(default)]
    pub call: Option<Box<CallSummary>>,
    /// The least MOS of a usable call, or the least share in time of any other usable flow; `None` if
    /// neither is known of the workload.
    #[serde(default)]
    pub floor: Option<f64>,
    /// How old the newest state was at each tick. `None` if the workload does not send states, and for one
    /// direction between clocks that are not trusted.
    #[serde(default)]
    pub state_age_ms: Option<StateAgeMs>,
    /// The time from the moment when a message was due until the receiver read it.
    pub one_way_delay_ms: Option<DelayMs>,
    /// The time from the moment when a message was due until the sender read the echo.
    pub round_trip_delay_ms: Option<DelayMs>,
    /// The part of a round trip that the echoing host took to answer. `None` in `sim`, and if the flow has
    /// no echo.
    #[serde(default)]
    pub turn_round_ms: Option<TurnRoundMs>,
    /// |D(i) - D(i-1)| over consecutive delivered messages (RFC 3393, unsigned).
    pub ipdv_ms: Option<IpdvMs>,
    /// The jitter of RFC 3550 §A.8 at the end of the run.
    pub rtp_jitter_ms: Option<f64>,
    /// What an RTP receiver would report on the flow, whatever its transport is. `None` with fewer than two
    /// arrivals.
    #[serde(default)]
    pub rtp_stream: Option<RtpStream>,
    /// Payload bits that were delivered per second of the window.
    pub goodput_bps: Option<f64>,
    /// When the flow begins to deliver in each second what is offered in it. `None` if the workload has no
    /// clock.
    #[serde(default)]
    pub settling: Option<Settling>,
    /// received / (last received - first received) (Foderaro 1995).
    pub net_rate_pps: Option<f64>,
    /// net rate x received / sent (Foderaro 1995).
    pub error_adjusted_rate_pps: Option<f64>,
    /// The time from the first send to the last arrival.
    pub first_sent_to_last_received_ms: Option<f64>,
    /// The time from the first arrival to the last arrival.
    pub first_to_last_received_ms: Option<f64>,
    /// The time during which the workload had a message and the transport had no room for it.
    pub blocked_ms: Option<f64>,
    /// retransmitted data packets / data packets.
    pub retransmit_rate: Option<f64>,
    /// Data packets that were retransmissions.
    #[serde(default)]
    pub retransmissions: Option<u64>,
    /// Retransmission timeouts.
    #[serde(default)]
    pub timeouts: Option<u64>,
    /// The time-weighted mean of the congestion window.
    pub cwnd_packets: Option<f64>,
    /// The time-weighted mean of the congestion window, capped by the receiver's window.
    #[serde(default)]
    pub window_packets: Option<f64>,
    /// Bytes that were written and not yet acknowledged.
    pub send_buffer_bytes: Option<MeanMax>,
    /// How long messages waited at their sender and for lost data. `None` if none did, or if it is unknown.
    #[serde(default)]
    pub waits: Option<Box<WaitsSummary>>,
    /// The ECN marks. `None` if the scenario does not ask for ECN, and the hosts did not agree on ECN by
    /// themselves.
    #[serde(default)]
    pub ecn: Option<EcnSummary>,
    /// What the IP headers of the packets carried, and the MTU of the path. `None` in `sim`.
    #[serde(default)]
    pub ip: Option<Box<IpSummary>>,
    /// What was observed of the subflows of Multipath TCP. `None` if the scenario does not ask for several
    /// paths.
    #[serde(default)]
    pub multipath: Option<MultipathSummary>,
    /// The figures of each direction. `None` in `sim`, and if the records of the far host are missing.
    #[serde(default)]
    pub legs: Option<Box<LegsSummary>>,
    /// The times in the whole run when the flow delivered nothing although it should have. These are outages
    /// of a second or more, and the end of the connection. In `sim` it is only the time before the
    /// connection was open.
    #[serde(default)]
    pub breaks: Vec<BreakSummary>,
    /// If the path changes: the seconds of the first hour in which messages were due that were lost, or came
    /// after the deadline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad_seconds: Vec<BadSecond>,
    /// If the path changes: the lost and late messages of `bad_seconds` that belong to each group of changes
    /// ([`crate::path_changes`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_change: Vec<ByChange>,
    /// Foderaro's "real time performance" in words: great, good, bad, horrible. `None` if the workload is not
    /// a burst.
    pub verdict: Option<String>,
    /// The file that the flow carried. `None` in `sim`, and for other workloads.
    #[serde(default)]
    pub file: Option<Box<FileSummary>>,
    /// When a burst or a file began and ended, by the clock of the host that wrote the summary. `None` in
    /// `sim`, whose time is not that of a clock, and for other workloads.
    #[serde(default)]
    pub transfer: Option<Box<TransferSummary>>,
}

type Row = Figure<FlowSummary>;

/// A time of a part of the summary.
macro_rules! time {
    ($part:ident.$key:ident, $name:expr, $definition:expr) => {
        Row::number_of(concat!(stringify!($part), ".", stringify!($key)), Unit::Ms, $name, $definition, |f| {
            Some(f.$part.as_ref()?.$key)
        })
        .less()
    };
}

macro_rules! one_way {
    ($key:ident, $short:literal, $words:literal) => {
        time!(
            one_way_delay_ms.$key,
            concat!("one way ", $short),
            concat!("from due until the far application read it (RFC 7679): ", $words)
        )
        .short($short)
    };
}

macro_rules! round_trip {
    ($key:ident, $short:literal, $words:literal) => {
        time!(
            round_trip_delay_ms.$key,
            concat!("round trip ", $short),
            concat!("from due until its echo was read, without the turn-round (RFC 2681): ", $words)
        )
        .short($short)
    };
}

/// With as many decimals as the lateness of the sender, which is listed beside it.
macro_rules! turn_round {
    ($key:ident, $short:literal, $words:literal) => {
        time!(
            turn_round_ms.$key,
            concat!("turn-round ", $short),
            concat!(
                $words,
                " of what the echoing host took, from its kernel's receive stamp to the echo's hand-over; not in the round trip"
            )
        )
        .decimals(3)
    };
}

macro_rules! ipdv {
    ($key:ident, $words:literal) => {
        time!(
            ipdv_ms.$key,
            concat!("IPDV ", stringify!($key)),
            concat!(
                $words,
                " of the unsigned IPDV |D(i) - D(i-1)| over consecutive delivered messages (RFC 3393)"
            )
        )
    };
}

/// With as many decimals as tshark's `-z rtp,streams` has, so that the two can be laid side by side.
macro_rules! rtp {
    ($part:ident.$key:ident, $name:literal, $definition:literal) => {
        Row::number_of(
            concat!("rtp_stream.", stringify!($part), ".", stringify!($key)),
            Unit::Ms,
            concat!($name, " ", stringify!($key)),
            $definition,
            |f| Some(f.rtp_stream.as_ref()?.$part.$key),
        )
        .decimals(3)
        .less()
    };
}

pub(crate) const MESSAGES: &[Row] = &[
    Row::word("transport", "transport", "as the scenario has it", |f| Some(&f.transport)),
    Row::word("cc", "congestion control", "the transport's congestion control; null if it has none", |f| f.cc.as_deref()),
    Row::count(
        "sent",
        "messages due, not refused",
        "received, lost and unfinished messages: all that were due in the window and not refused, also those that never left",
        |f| Some(f.sent),
    )
    .short("sent"),
    Row::count(
        "received",
        "messages received",
        "of those sent, the ones that came to their end: read by the far application, with an echo back again",
        |f| Some(f.received),
    )
    .more(),
    Row::count(
        "lost",
        "messages lost",
        "of those sent, the missing, the expired and the ones that never left, by sequence number: a duplicate never hides a loss",
        |f| Some(f.lost),
    )
    .short("lost")
    .less(),
    Row::count("lost_forward", "lost on the way out", "of those lost, the ones of the way out; null if it is not known", |f| {
        f.lost_forward
    })
    .less(),
    Row::count("lost_return", "lost on the way back", "of those lost, the ones of the way back; null without an echo", |f| {
        f.lost_return
    })
    .less(),
    Row::number_of("loss_rate", Unit::Share, "loss", "lost / (sent - unfinished) (RFC 7680, RFC 6673)", |f| f.loss_rate)
        .of_ended_messages(|f| f.received + f.lost, |f| f.sent.saturating_sub(f.received + f.lost))
        .in_runs(|f| f.loss_independent)
        .less(),
    Row::count("duplicates", "duplicates", "extra copies that arrived", |f| Some(f.duplicates)),
    Row::count(
        "reordered",
        "reordered",
        "arrivals whose sequence number is below one that came before (RFC 4737 §3)",
        |f| Some(f.reordered),
    )
    .less(),
    Row::count("unfinished", "unfinished", "messages still queued or in flight at the end", |f| Some(f.unfinished)),
    Row::count("refused", "refused", "messages that the transport would not take", |f| Some(f.refused)).less(),
    Row::count("expired", "expired", "of those lost, given up by their sender as older than the transport's `expire`", |f| {
        Some(f.expired)
    })
    .less(),
];

pub(crate) const LEDGER: &[Row] = &[
    Row::count("ledger.due", "messages due", "messages that the workload wanted sent in the window", |f| {
        Some(f.ledger?.due)
    }),
    Row::count("ledger.delivered", "delivered", "of those due, came to their end, in time or late", |f| {
        Some(f.ledger?.delivered)
    })
    .more(),
    Row::count(
        "ledger.expired",
        "lost: expired",
        "of those due, given up by their sender, or their echo's, as too old",
        |f| Some(f.ledger?.expired),
    )
    .less(),
    Row::count("ledger.refused", "not sent: refused", "of those due, not taken by the transport", |f| {
        Some(f.ledger?.refused)
    })
    .less(),
    Row::count(
        "ledger.no_network",
        "lost: never sent, no network",
        "of those due, never sent: their host had no network, or no right to send",
        |f| Some(f.ledger?.no_network),
    )
    .less(),
    Row::count(
        "ledger.not_open",
        "lost: never sent, connection not open",
        "of those due, never sent: the connection was not open, not yet or not any more",
        |f| Some(f.ledger?.not_open),
    )
    .less(),
    Row::count("ledger.missing", "lost: missing", "of those due, sent and never delivered", |f| {
        Some(f.ledger?.missing)
    })
    .less(),
    Row::count(
        "ledger.unfinished",
        "not ended: unfinished",
        "of those due, still queued or in flight when the run ended",
        |f| Some(f.ledger?.unfinished),
    ),
];

pub(crate) const LOSSES: &[Row] = &[
    Row::number_of(
        "loss_independent",
        Unit::One,
        "independent messages of the loss",
        "how many independent messages tell as much about `loss_rate`: losses in runs tell less",
        |f| f.loss_independent,
    )
    .decimals(0),
    Row::count(
        "loss_runs.max",
        "longest run of missing messages",
        "most consecutive lost messages (RFC 3357 §5)",
        |f| Some(f.loss_runs.max),
    )
    .less(),
    Row::number_of(
        "loss_runs.mean",
        Unit::One,
        "mean run of missing messages",
        "mean number of consecutive lost messages; null without losses",
        |f| f.loss_runs.mean,
    )
    .decimals(2)
    .less(),
    Row::number_of(
        "in_time",
        Unit::Share,
        "in time",
        "of all that were due, the messages within their deadline; a lost, refused or unfinished one is not",
        |f| f.in_time,
    )
    .of_messages(|f| f.sent + f.refused)
    .in_runs(|f| f.in_time_independent)
    .more(),
    Row::number_of(
        "in_time_independent",
        Unit::One,
        "independent messages of the share in time",
        "how many independent messages tell as much about `in_time`: late and lost ones in runs tell less",
        |f| f.in_time_independent,
    )
    .decimals(0),
    Row::number_of(
        "deadline_ms",
        Unit::Ms,
        "deadline",
        "from a message's due time until it is late, with an echo to the echo; null of a workload without one",
        |f| f.deadline_ms,
    ),
];

pub(crate) const STATE: &[Row] = &[
    Row::number_of(
        "floor",
        Unit::Judged,
        "usable from",
        "the least figure of a usable flow: MOS of a call, share in time of another flow on a clock; null if neither is judged",
        |f| f.floor,
    ),
    Row::number_of(
        "state_age_ms.p50",
        Unit::Ms,
        "age of the newest state p50",
        "how old the newest state was at each tick: median",
        |f| Some(f.state_age_ms.as_ref()?.p50),
    )
    .less(),
    Row::number_of(
        "state_age_ms.p99",
        Unit::Ms,
        "age of the newest state p99",
        "how old the newest state was at each tick: 99th percentile",
        |f| Some(f.state_age_ms.as_ref()?.p99),
    )
    .less(),
];

pub(crate) const ONE_WAY: &[Row] = &[
    one_way!(min, "min", "smallest"),
    one_way!(mean, "mean", "mean"),
    one_way!(p50, "p50", "median"),
    one_way!(p90, "p90", "90th percentile"),
    one_way!(p95, "p95", "95th percentile"),
    one_way!(p99, "p99", "99th percentile"),
    one_way!(p999, "p99.9", "99.9th percentile"),
    one_way!(max, "max", "largest"),
];

pub(crate) const ROUND_TRIP: &[Row] = &[
    round_trip!(min, "min", "smallest"),
    round_trip!(mean, "mean", "mean"),
    round_trip!(p50, "p50", "median"),
    round_trip!(p90, "p90", "90th percentile"),
    round_trip!(p95, "p95", "95th percentile"),
    round_trip!(p99, "p99", "99th percentile"),
    round_trip!(p999, "p99.9", "99.9th percentile"),
    round_trip!(max, "max", "largest"),
];

pub(crate) const TURN_ROUND: &[Row] = &[
    turn_round!(p50, "p50", "median"),
    turn_round!(p90, "p90", "90th percentile"),
    turn_round!(p99, "p99", "99th percentile"),
    turn_round!(max, "max", "largest"),
];

pub(crate) const VARIATION: &[Row] = &[
    ipdv!(p50, "median"),
    ipdv!(p90, "90th percentile").short("jitter"),
    ipdv!(p95, "95th percentile"),
    ipdv!(p99, "99th percentile"),
    ipdv!(max, "largest"),
    Row::number_of(
        "rtp_jitter_ms",
        Unit::Ms,
        "RTP jitter (RFC 3550 §A.8)",
        "interarrival jitter after the last arrival (RFC 3550 §A.8), with due as the media clock",
        |f| f.rtp_jitter_ms,
    )
    .less(),
    rtp!(delta_ms.min, "RTP delta", "from one arrival to the next: smallest"),
    rtp!(delta_ms.mean, "RTP delta", "from one arrival to the next: mean"),
    rtp!(delta_ms.max, "RTP delta", "from one arrival to the next: largest"),
    rtp!(jitter_ms.min, "RTP jitter", "interarrival jitter after each arrival but the first: smallest"),
    rtp!(jitter_ms.mean, "RTP jitter", "interarrival jitter after each arrival but the first: mean"),
    rtp!(jitter_ms.max, "RTP jitter", "interarrival jitter after each arrival but the first: largest"),
];

pub(crate) const RATES: &[Row] = &[
    Row::number_of("goodput_bps", Unit::Bps, "goodput", "payload delivered a second", |f| f.goodput_bps).more(),
    Row::whole(
        "settling.settled_after_s",
        Unit::Seconds,
        "settled after",
        "seconds from the first message until no second is off the offer by more than a tenth; null if the last is",
        |f| f.settling.as_ref()?.settled_after_s,
    )
    .less(),
    Row::whole("settling.peak_bps", Unit::Bps, "largest second", "bits delivered in the largest second", |f| {
        Some(f.settling.as_ref()?.peak_bps)
    }),
    Row::whole("settling.peak_at_s", Unit::Seconds, "largest second at", "seconds from the first message to the largest second", |f| {
        Some(f.settling.as_ref()?.peak_at_s)
    }),
    Row::count("settling.seconds_above", "seconds above the offer", "seconds more than a tenth above the offer", |f| {
        Some(f.settling.as_ref()?.seconds_above)
    }),
    Row::count("settling.seconds_below", "seconds below the offer", "seconds more than a tenth below the offer", |f| {
        Some(f.settling.as_ref()?.seconds_below)
    })
    .less(),
    Row::number_of(
        "net_rate_pps",
        Unit::Pps,
        "net rate",
        "received / (last received - first received) (Foderaro 1995)",
        |f| f.net_rate_pps,
    )
    .more(),
    Row::number_of(
        "error_adjusted_rate_pps",
        Unit::Pps,
        "error adjusted rate",
        "net rate x received / sent (Foderaro 1995)",
        |f| f.error_adjusted_rate_pps,
    )
    .more(),
    Row::number_of(
        "first_sent_to_last_received_ms",
        Unit::Ms,
        "first sent to last received",
        "from the first send to the last arrival (Spoor 2014)",
        |f| f.first_sent_to_last_received_ms,
    )
    .less(),
    Row::number_of(
        "first_to_last_received_ms",
        Unit::Ms,
        "first to last received",
        "from the first arrival to the last (Foderaro 1995)",
        |f| f.first_to_last_received_ms,
    )
    .less(),
];

pub(crate) const TRANSPORT: &[Row] = &[
    Row::number_of(
        "blocked_ms",
        Unit::Ms,
        "blocked",
        "time during which the workload had a message and the transport no room",
        |f| f.blocked_ms,
    )
    .less(),
    Row::number_of(
        "retransmit_rate",
        Unit::Share,
        "resent",
        "data packets sent again / data packets sent: what the queue dropped or the wire lost",
        |f| f.retransmit_rate,
    )
    .less(),
    Row::count("retransmissions", "resent, packets", "data packets sent again, over the whole run", |f| {
        f.retransmissions
    })
    .less(),
    Row::count("timeouts", "timeouts", "retransmission timeouts, over the whole run", |f| f.timeouts).less(),
    Row::number_of(
        "cwnd_packets",
        Unit::Packets,
        "mean cwnd",
        "congestion window, mean weighted by time",
        |f| f.cwnd_packets,
    ),
    Row::number_of(
        "window_packets",
        Unit::Packets,
        "mean of the smaller of cwnd and receiver's window",
        "the smaller of cwnd and the receiver's window, mean weighted by time",
        |f| f.window_packets,
    ),
    Row::number_of(
        "send_buffer_bytes.mean",
        Unit::Bytes,
        "mean send buffer",
        "bytes that the sending end holds, mean weighted by time",
        |f| Some(f.send_buffer_bytes.as_ref()?.mean),
    ),
    Row::number_of(
        "send_buffer_bytes.max",
        Unit::Bytes,
        "largest send buffer",
        "the most bytes that the sending end held",
        |f| Some(f.send_buffer_bytes.as_ref()?.max),
    ),
];

pub(crate) const MARKS: &[Row] = &[
    Row::flag("ecn.capable", "takes marks (ECN)", "whether the flow's packets take marks (RFC 3168)", |f| {
        f.ecn?.capable
    }),
    Row::count(
        "ecn.marked_forward",
        "marked on the way out, packets",
        "packets that came to the receiver marked, over the whole run",
        |f| f.ecn?.marked_forward,
    ),
    Row::count(
        "ecn.marked_return",
        "marked on the way back, packets",
        "packets that came back to the sender marked, over the whole run; of echo flows",
        |f| f.ecn?.marked_return,
    ),
    Row::count(
        "ecn.echoed_forward",
        "delivered under an echoed mark, out, packets",
        "packets of TCP delivered under an echo of a mark, over the whole run: more than were marked",
        |f| f.ecn?.echoed_forward,
    ),
    Row::count(
        "ecn.echoed_return",
        "delivered under an echoed mark, back, packets",
        "the same of the way back; of echo flows",
        |f| f.ecn?.echoed_return,
    ),
];

pub(crate) const FILE: &[Row] = &[
    Row::word(
        "verdict",
        "in words (Foderaro 1995)",
        "how Foderaro (1995) would call a burst, by the mean delay",
        |f| f.verdict.as_deref(),
    ),
    Row::word("file.name", "file", "the file's own name", |f| Some(&f.file.as_ref()?.name)),
    Row::whole("file.bytes", Unit::Bytes, "file size", "the size of the file", |f| {
        Some(f.file.as_ref()?.bytes)
    }),
    Row::word("file.sha256", "SHA-256 of the file", "the sender's SHA-256, in hexadecimal", |f| {
        Some(&f.file.as_ref()?.sha256)
    }),
    Row::whole(
        "file.received_bytes",
        Unit::Bytes,
        "file received",
        "how much of the file arrived, each byte counted once; null if the receiver went away",
        |f| f.file.as_ref()?.received_bytes,
    )
    .more(),
    Row::flag("file.intact", "file intact", "whether all of it arrived with the sender's SHA-256", |f| {
        f.file.as_ref()?.intact
    })
    .more(),
    Row::count(
        "file.missing_ranges",
        "missing byte ranges of the file",
        "how many byte ranges did not arrive",
        |f| Some(f.file.as_ref()?.missing_ranges),
    )
    .less(),
    Row::word(
        "file.kept_as",
        "file kept as",
        "under which name the receiver kept it; null if it was not set to keep it",
        |f| f.file.as_ref()?.kept_as.as_deref(),
    ),
    Row::word("transfer.start", "start of the transfer", "date and time of the first send, in UTC", |f| {
        f.transfer.as_ref()?.start.as_deref()
    }),
    Row::word("transfer.end", "end of the transfer", "date and time of the last arrival, in UTC", |f| {
        f.transfer.as_ref()?.end.as_deref()
    }),
    Row::whole(
        "transfer.size_bytes_min",
        Unit::Bytes,
        "smallest payload of the transfer",
        "the smallest payload of a message",
        |f| f.transfer.as_ref()?.size_bytes_min,
    ),
    Row::whole(
        "transfer.size_bytes_max",
        Unit::Bytes,
        "largest payload of the transfer",
        "the largest payload of a message",
        |f| f.transfer.as_ref()?.size_bytes_max,
    ),
];
