//! The log of one end of a flow, and its form on the control connection.
//!
//! The far end's log comes in chunks of rows. Its times are nanoseconds since the run's beginning, on the
//! clock of the end that wrote the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use talkpath_flow::file::FileOutcome;
use talkpath_flow::{FlowTaps, Side, TurnRound};
use talkpath_measure::{DropCause, Fate, LegTap, ReadMessages};
use talkpath_units::{Bytes, Duration, Instant, Rate};
use talkpath_wire::{LossRecovery, Observation};

use crate::spec::FlowSpec;
use crate::wire::FRAMED;

/// What one end of a flow saw.
#[derive(Clone, Debug)]
pub struct EndLog {
    /// The side of the flow that this end is on.
    side: Side,
    /// What became of the messages and the echoes, as far as this end knows.
    pub taps: FlowTaps,
    /// The connection's state over time.
    pub samples: Vec<StateSample>,
    /// The state of QUIC's loss recovery over time. Empty for other transports.
    pub recovery: Vec<RecoverySample>,
    /// The counts of the whole run.
    pub totals: EndTotals,
}

/// One message that this end wanted to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SentTuple", into = "SentTuple")]
pub(crate) struct SentRow {
    /// The message's number.
    pub(crate) seq: u64,
    /// The message's size in bytes, at most `u32::MAX`.
    pub(crate) size: u32,
    /// When the message was due, ns.
    pub(crate) due_ns: u64,
    /// When the transport took the message, ns. `None` if the transport did not take it.
    pub(crate) sent_ns: Option<u64>,
    /// The reason why the transport did not take the message.
    pub(crate) not_taken: Option<NotTaken>,
}

/// The form of a [`SentRow`] on the control connection: its values in the order of its fields.
type SentTuple = (u64, u32, u64, Option<u64>, Option<NotTaken>);

/// The reason why the transport did not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NotTaken {
    /// The transport had no room for the message, or could not carry it.
    Refused,
    /// The host had no network for the message.
    NoNetwork,
    /// The connection was not open.
    NotOpen,
}

/// A message that an end dropped: the message's number, and the place of the drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostDrop(pub u64, pub DropPlace);

/// The place in which an end dropped a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DropPlace {
    /// The transport's own send queue, after the transport had taken the message.
    SendQueue,
    /// The kernel, which would not take the packet.
    Kernel,
    /// The kernel, which had no network for the packet.
    NoNetwork,
    /// The receive buffer, which had no room because the application had not read enough.
    Inbox,
    /// No place: the message had waited for too long, before or after the transport took it.
    Expired,
    /// No place: the far end stopped the message's QUIC stream.
    Stopped,
}

/// A connection's state at one moment. A value that the transport does not know is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StateRow", into = "StateRow")]
pub struct StateSample {
    /// The time of the sample, ns.
    pub at_ns: u64,
    /// Congestion window, whole packets.
    pub cwnd: Option<u32>,
    /// Slow start threshold, whole packets. `None` while it is unlimited.
    pub ssthresh: Option<u32>,
    /// Smoothed round-trip time, us.
    pub srtt_us: Option<u32>,
    /// Retransmission timeout, us.
    pub rto_us: Option<u32>,
    /// Bytes in the send queue.
    pub queued: u64,
    /// [`Observation::window`], whole packets.
    pub window: Option<u32>,
    /// The pacing rate, bit/s.
    pub pacing_bps: Option<u64>,
}

/// The form of a [`StateSample`] on the control connection: its values in the order of its fields.
type StateRow = (u64, Option<u32>, Option<u32>, Option<u32>, Option<u32>, u64, Option<u32>, Option<u64>);

/// The state of QUIC's loss recovery at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RecoveryRow", into = "RecoveryRow")]
pub struct RecoverySample {
    /// The time of the sample, ns.
    pub at_ns: u64,
    /// Probe timeout, us. `None` before the first round trip.
    pub pto_us: Option<u32>,
    /// [`LossRecovery::bytes_in_flight`].
    pub bytes_in_flight: u64,
    /// [`LossRecovery::lost_packets`].
    pub lost_packets: u64,
}

/// The form of a [`RecoverySample`] on the control connection: its values in the order of its fields.
type RecoveryRow = (u64, Option<u32>, u64, u64);

/// The counts of one end of a flow over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndTotals {
    /// The number of packets with application data that this end sent, retransmissions among them.
    pub data_packets: Option<u64>,
    /// The number of retransmissions among the data packets.
    pub retransmissions: Option<u64>,
    /// The number of retransmission timeouts.
    pub timeouts: Option<u64>,
    /// Whether this end's packets are ECN-capable, so that a router may mark them instead of dropping them.
    #[serde(default)]
    pub takes_marks: Option<bool>,
    /// The number of datagrams that came to this end with the ECN mark CE.
    #[serde(default)]
    pub marked: Option<u64>,
    /// The number of this end's segments that the far end acknowledged with an echo of the ECN mark.
    #[serde(default)]
    pub echoed: Option<u64>,
    /// The IP headers of the datagrams that came to this end, and the MTU of the path that this end sends
    /// over.
    #[serde(default)]
    pub headers: Headers,
    /// The time between warm-up and duration during which a message waited for room, ns.
    pub(crate) blocked_ns: u64,
    /// The number of refused messages for each reason, in the system's words.
    pub refusals: std::collections::BTreeMap<String, u64>,
    /// The number of messages without a network for each reason, in the system's words.
    #[serde(default)]
    pub no_network: std::collections::BTreeMap<String, u64>,
    /// The time from the flow's start until a message of this end could leave, ns. `None` if no message could
    /// ever leave, and at an end that does not send.
    #[serde(default)]
    pub opening_ns: Option<u64>,
    /// The longest time in which nothing came to this end, ns. Present only for short messages, if half of
    /// all their possible numbers were due within that time.
    #[serde(default)]
    pub gap_ns: Option<u64>,
    /// The number of packets of our own protocols that did not leave for each reason, in the system's words.
    pub unsent: std::collections::BTreeMap<String, u64>,
    /// How long this end held messages before it echoed them. `None` if it echoed nothing.
    pub turn_round: Option<TurnRound>,
    /// The name of the congestion control: TCP_CONGESTION of the kernel's TCP, or the one of QUIC.
    pub cc: Option<String>,
    /// The reason why this flow ended before its time.
    pub failure: Option<String>,
    /// When this flow failed, ns since the run's beginning.
    #[serde(default)]
    pub failed_ns: Option<u64>,
    /// The outcome of the file that this end received.
    pub file: Option<FileOutcome>,
    /// What this end saw of its connection's paths. `None` unless the flow uses Multipath TCP.
    #[serde(default)]
    pub multipath: Option<Multipath>,
}

/// What an end saw of the paths of a connection that the scenario wants as Multipath TCP (RFC 8684).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Multipath {
    /// True if the connection is plain TCP, because the far end or something on the path does not speak
    /// Multipath TCP.
    pub fell_back: bool,
    /// The largest number of subflows that a sample of the connection showed.
    pub subflows: u32,
}

/// Counts of the IP headers of the datagrams that came to an end, and the MTU of the path that the end sends
/// over. The kernel does not show the headers of a TCP connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headers {
    /// The number of datagrams for each value of the byte that holds the DSCP and the ECN field.
    pub tos: std::collections::BTreeMap<u8, u64>,
    /// The number of datagrams for which the kernel did not report that byte.
    #[serde(default)]
    pub unreported: u64,
    /// The smallest and the largest TTL (or hop limit) of a datagram.
    pub ttl: Option<(u8, u8)>,
    /// The MTU of the path as this end's kernel knows it, B. `None` for a socket that is not connected.
    pub path_mtu: Option<u32>,
}

/// A part of a flow's log. The last part has the totals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    pub(crate) sent: Vec<SentRow>,
    pub(crate) arrivals: Vec<(u64, u64)>,
    pub(crate) reads: Vec<(u64, u64)>,
    pub(crate) wires: Vec<(u64, u64)>,
    pub(crate) drops: Vec<HostDrop>,
    pub(crate) samples: Vec<StateSample>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) recovery: Vec<RecoverySample>,
    /// The counts of the whole run. `None` except in the last part.
    pub totals: Option<EndTotals>,
}

/// The number of rows that a session may still keep. All flows of the session share it.
#[derive(Debug)]
pub struct RowBudget {
    left: AtomicU64,
}

impl RowBudget {
    /// The number of rows that are left.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Makes a budget of `rows`.
    pub fn new(rows: u64) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(rows) })
    }

    /// Returns true if no row is left. The run then ends, because its logs would be incomplete.
    pub fn is_spent(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Takes `rows` from the budget. If fewer rows are left, it takes all of them and returns false.
    pub fn take(&self, rows: u64) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(rows)).is_ok()
            || {
                self.left.store(0, Ordering::Relaxed);
                false
            }
    }
}

impl EndLog {
    /// Makes an empty log of the end on `side` of a flow. `messages` says how the end finds the messages in
    /// the data that it reads.
    pub fn new(side: Side, is_echo: bool, messages: ReadMessages) -> Self {
        let taps = FlowTaps::of_one_end(side, is_echo, messages);
        Self { side, taps, samples: Vec::new(), recovery: Vec::new(), totals: EndTotals::default() }
    }

    /// Makes the log of the end on `side` of the flow `spec` from the rows that the far end has sent.
    /// `to_ours` converts a time of the far end's clock into a time of this end's clock. The far end may send
    /// anything, so messages whose number is not below `bound` are left out.
    pub fn from_rows(
        rows: &Chunk,
        side: Side,
        spec: &FlowSpec,
        bound: u64,
        to_ours: &dyn Fn(u64) -> Instant,
    ) -> Self {
        // The join finds the messages of a stream whose messages have one size, so nothing is found here.
        let messages = if spec.is_framed() { FRAMED } else { ReadMessages::Whole };
        let mut log = Self::new(side, spec.echo_per_read.is_some(), messages);
        log.totals = rows.totals.clone().unwrap_or_default();
        log.totals.failed_ns = log.totals.failed_ns.map(|at| to_ours(at).as_nanos());
        log.samples = on_our_clock(&rows.samples, to_ours);
        log.recovery = on_our_clock(&rows.recovery, to_ours);
        let keeps_messages = spec.features().keeps_messages;
        if let Some(tap) = log.taps.written_by(side) {
            rows.write_to(tap, keeps_messages, bound, to_ours);
        }
        if let Some(tap) = log.taps.read_by(side) {
            rows.read_to(tap, spec, to_ours);
        }
        log
    }

    /// The number of rows in the log.
    pub fn held(&self) -> u64 {
        (self.taps.held() + self.samples.len() + self.recovery.len()) as u64
    }

    /// Takes the observation `seen` of the connection at `now`. It is kept only if it differs from the last
    /// one.
    pub(crate) fn on_observed(&mut self, seen: &Observation, now: Instant) {
        push_if_changed(&mut self.samples, StateSample::of(seen, now));
        if let Some(seen) = &seen.loss_recovery {
            push_if_changed(&mut self.recovery, RecoverySample::of(seen, now));
        }
    }

    /// Cuts the log into chunks of at most `CHUNK_ROWS` rows of each kind. There is at least one chunk.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> + use<> {
        let all = self.rows();
        let lengths = [all.sent.len(), all.arrivals.len(), all.reads.len(), all.wires.len()];
        let longest = lengths
            .into_iter()
            .chain([all.drops.len(), all.samples.len(), all.recovery.len()])
            .max()
            .unwrap_or(0);
        let count = longest.div_ceil(CHUNK_ROWS).max(1);
        (0..count).map(move |index| Chunk {
            sent: piece(&all.sent, index),
            arrivals: piece(&all.arrivals, index),
            reads: piece(&all.reads, index),
            wires: piece(&all.wires, index),
            drops: piece(&all.drops, index),
            samples: piece(&all.samples, index),
            recovery: piece(&all.recovery, index),
            totals: (index + 1 == count).then(|| all.totals.clone()).flatten(),
        })
    }

    /// The whole log in its form on the control connection.
    fn rows(&self) -> Chunk {
        let (written, read) = match self.side {
            Side::Near => (Some(&self.taps.forward), self.taps.echo.as_deref()),
            Side::Far => (self.taps.echo.as_deref(), Some(&self.taps.forward)),
        };
        let mut all = Chunk {
            samples: self.samples.clone(),
            recovery: self.recovery.clone(),
            totals: Some(self.totals.clone()),
            ..Chunk::default()
        };
        for row in written.into_iter().flat_map(LegTap::rows) {
            let size = u32::try_from(row.size.get()).unwrap_or(u32::MAX);
            let sent = row.sent.map(Instant::as_nanos);
            let not_taken = match row.fate {
                Fate::Refused => Some(NotTaken::Refused),
                Fate::NoNetwork if sent.is_none() => Some(NotTaken::NoNetwork),
                Fate::NotOpen => Some(NotTaken::NotOpen),
                _ => None,
            };
            all.sent.push(SentRow {
                seq: row.seq,
                size,
                due_ns: row.due.as_nanos(),
                sent_ns: sent,
                not_taken,
            });
            if let Some(at) = row.wire {
                all.wires.extend((0..row.transmissions).map(|_| (row.seq, at.as_nanos())));
            }
            match (row.fate, row.drop_cause) {
                (_, Some(DropCause::Stopped)) => all.drops.push(HostDrop(row.seq, DropPlace::Stopped)),
                (_, Some(_)) => all.drops.push(HostDrop(row.seq, DropPlace::SendQueue)),
                (Fate::Expired, None) => all.drops.push(HostDrop(row.seq, DropPlace::Expired)),
                (Fate::Missing, None) => all.drops.push(HostDrop(row.seq, DropPlace::Kernel)),
                (Fate::NoNetwork, None) if sent.is_some() => {
                    all.drops.push(HostDrop(row.seq, DropPlace::NoNetwork));
                }
                _ => {}
            }
        }
        if let Some(read) = read {
            all.arrivals = read.arrival_times().map(|(seq, at)| (seq, at.as_nanos())).collect();
            all.reads = read.reads().iter().map(|&(at, bytes)| (at.as_nanos(), bytes.get())).collect();
            all.drops.extend(read.dropped_on_arrival().iter().map(|&seq| HostDrop(seq, DropPlace::Inbox)));
        }
        all
    }
}

impl From<SentTuple> for SentRow {
    fn from((seq, size, due_ns, sent_ns, not_taken): SentTuple) -> Self {
        Self { seq, size, due_ns, sent_ns, not_taken }
    }
}

impl From<SentRow> for SentTuple {
    fn from(SentRow { seq, size, due_ns, sent_ns, not_taken }: SentRow) -> Self {
        (seq, size, due_ns, sent_ns, not_taken)
    }
}

impl StateSample {
    /// Makes a sample of the observation `seen` at `now`.
    pub fn of(seen: &Observation, now: Instant) -> Self {
        let packets =
            |value: Option<f64>| value.filter(|value| *value < f64::from(u32::MAX)).map(|value| value as u32);
        Self {
            at_ns: now.as_nanos(),
            cwnd: packets(seen.cwnd),
            ssthresh: packets(seen.ssthresh),
            srtt_us: micros(seen.srtt),
            rto_us: micros(seen.rto),
            queued: seen.send_buffer.get(),
            window: packets(seen.window),
            pacing_bps: seen.pacing_rate.map(Rate::as_bps),
        }
    }
}

impl From<StateRow> for StateSample {
    fn from((at_ns, cwnd, ssthresh, srtt_us, rto_us, queued, window, pacing_bps): StateRow) -> Self {
        Self { at_ns, cwnd, ssthresh, srtt_us, rto_us, queued, window, pacing_bps }
    }
}

impl From<StateSample> for StateRow {
    fn from(sample: StateSample) -> Self {
        let StateSample { at_ns, cwnd, ssthresh, srtt_us, rto_us, queued, window, pacing_bps } = sample;
        (at_ns, cwnd, ssthresh, srtt_us, rto_us, queued, window, pacing_bps)
    }
}

impl RecoverySample {
    fn of(seen: &LossRecovery, now: Instant) -> Self {
        Self {
            at_ns: now.as_nanos(),
            pto_us: micros(seen.pto),
            bytes_in_flight: seen.bytes_in_flight.get(),
            lost_packets: seen.lost_packets,
        }
    }
}

impl From<RecoveryRow> for RecoverySample {
    fn from((at_ns, pto_us, bytes_in_flight, lost_packets): RecoveryRow) -> Self {
        Self { at_ns, pto_us, bytes_in_flight, lost_packets }
    }
}

impl From<RecoverySample> for RecoveryRow {
    fn from(sample: RecoverySample) -> Self {
        (sample.at_ns, sample.pto_us, sample.bytes_in_flight, sample.lost_packets)
    }
}

/// The state of a connection at one moment.
pub(crate) trait Sample: Copy + PartialEq {
    /// The time of the sample, ns.
    fn at(&self) -> u64;

    /// The same state with the time `at`, ns.
    fn moved_to(self, at: u64) -> Self;
}

impl Sample for StateSample {
    fn at(&self) -> u64 {
        self.at_ns
    }

    fn moved_to(self, at_ns: u64) -> Self {
        Self { at_ns, ..self }
    }
}

impl Sample for RecoverySample {
    fn at(&self) -> u64 {
        self.at_ns
    }

    fn moved_to(self, at_ns: u64) -> Self {
        Self { at_ns, ..self }
    }
}

/// Appends `sample`, unless it differs from the last sample only in its time.
fn push_if_changed<S: Sample>(kept: &mut Vec<S>, sample: S) {
    if kept.last().is_none_or(|last| last.moved_to(sample.at()) != sample) {
        kept.push(sample);
    }
}

/// Converts the times of a far end's samples with `to_ours`.
fn on_our_clock<S: Sample>(samples: &[S], to_ours: &dyn Fn(u64) -> Instant) -> Vec<S> {
    samples.iter().map(|sample| sample.moved_to(to_ours(sample.at()).as_nanos())).collect()
}

/// Converts `span` to microseconds. Returns `None` if it is not known or does not fit.
fn micros(span: Option<Duration>) -> Option<u32> {
    u32::try_from(span?.as_micros()).ok()
}

impl Chunk {
    /// The number of rows about messages that the end wanted to send.
    pub fn sent_rows(&self) -> usize {
        self.sent.len()
    }

    /// The number of rows of all kinds.
    pub fn row_count(&self) -> u64 {
        let events = self.arrivals.len() + self.reads.len() + self.wires.len() + self.drops.len();
        (self.sent.len() + events + self.samples.len() + self.recovery.len()) as u64
    }

    /// Appends the rows of the `next` chunk.
    pub fn extend(&mut self, next: Self) {
        self.sent.extend(next.sent);
        self.arrivals.extend(next.arrivals);
        self.reads.extend(next.reads);
        self.wires.extend(next.wires);
        self.drops.extend(next.drops);
        self.samples.extend(next.samples);
        self.recovery.extend(next.recovery);
        self.totals = next.totals.or(self.totals.take());
    }

    /// Writes to `tap` the messages that the end wanted to send. Leaves out a message whose number is not
    /// below `bound`.
    fn write_to(&self, tap: &mut LegTap, keeps_messages: bool, bound: u64, to_ours: &dyn Fn(u64) -> Instant) {
        let mut taken = vec![false; usize::try_from(bound).unwrap_or(0)];
        for row in &self.sent {
            let Some(taken) = usize::try_from(row.seq).ok().and_then(|seq| taken.get_mut(seq)) else {
                continue;
            };
            tap.on_due(row.seq, Bytes::new(row.size.into()), to_ours(row.due_ns));
            match row.sent_ns {
                // The log has two rows of one message. The first row with a send time stays.
                _ if *taken => {}
                Some(sent) => {
                    *taken = true;
                    if keeps_messages {
                        tap.on_sent(row.seq, to_ours(sent));
                    } else {
                        tap.on_sent_stream(row.seq, to_ours(sent));
                    }
                }
                None => match row.not_taken {
                    Some(NotTaken::Refused) => tap.on_refused(row.seq),
                    Some(NotTaken::NoNetwork) => tap.on_no_network(row.seq),
                    Some(NotTaken::NotOpen) => tap.on_not_open(row.seq),
                    None => {}
                },
            }
        }
        for &(seq, at) in &self.wires {
            if usize::try_from(seq).is_ok_and(|seq| taken.get(seq) == Some(&true)) {
                tap.on_wire(seq, to_ours(at));
            }
        }
        for &HostDrop(seq, place) in &self.drops {
            match place {
                DropPlace::SendQueue => tap.on_dropped(seq, DropCause::SendQueue),
                DropPlace::Kernel => tap.on_unsent(seq),
                DropPlace::NoNetwork => tap.on_no_network(seq),
                DropPlace::Expired => tap.on_expired(seq),
                DropPlace::Stopped => tap.on_dropped(seq, DropCause::Stopped),
                DropPlace::Inbox => {}
            }
        }
    }

    /// Writes to `tap` what the end received.
    fn read_to(&self, tap: &mut LegTap, spec: &FlowSpec, to_ours: &dyn Fn(u64) -> Instant) {
        if !spec.features().keeps_messages {
            for &(at, bytes) in &self.reads {
                tap.on_read(Bytes::new(bytes.min(u64::from(u32::MAX))), to_ours(at));
            }
        }
        if !spec.names_messages() {
            return;
        }
        self.arrivals.iter().for_each(|&(seq, at)| tap.on_received(seq, to_ours(at)));
        for &HostDrop(seq, place) in &self.drops {
            if place == DropPlace::Inbox {
                tap.on_dropped(seq, DropCause::SocketBuffer);
            }
        }
    }
}

fn piece<T: Copy>(rows: &[T], index: usize) -> Vec<T> {
    rows.chunks(CHUNK_ROWS).nth(index).unwrap_or_default().to_vec()
}

/// The interval at which the connections of a run of this `duration` are sampled. It is 20 ms, or longer if
/// that would make more than 3,000 samples (chosen: a chart can still show the series).
pub fn sample_interval(duration: Duration) -> Duration {
    Duration::from_millis(20).max(duration / 3000)
}

/// The largest number of rows of one kind in a chunk. The chunk's JSON is then below half a megabyte, even if
/// every number has all its digits.
const CHUNK_ROWS: usize = 1000;

#[cfg(test)]
mod tests {
    use talkpath_measure::MessageRecord;
    use talkpath_model::WorkloadConfig;

    use super::*;
    use crate::end::fixtures::{UDP, echoing};

    fn written(tap: &LegTap) -> Vec<MessageRecord> {
        tap.rows().copied().collect()
    }

    #[test]
    fn a_log_comes_back_whole_from_its_chunks() {
        let mut log = EndLog::new(Side::Near, true, ReadMessages::Whole);
        let tap = &mut log.taps.forward;
        for seq in 0..2500 {
            tap.on_due(seq, Bytes::new(160), Instant::from_millis(seq));
            match seq % 6 {
                0 | 2 | 4 => tap.on_sent(seq, Instant::from_millis(seq)),
                1 => tap.on_refused(seq),
                3 => tap.on_no_network(seq),
                _ => tap.on_not_open(seq),
            }
        }
        tap.on_wire(4, Instant::from_millis(8));
        tap.on_wire(4, Instant::from_millis(9));
        tap.on_dropped(6, DropCause::SendQueue);
        tap.on_unsent(8);
        tap.on_expired(10);
        tap.on_no_network(14);
        tap.on_dropped(12, DropCause::Stopped);
        // It was never taken.
        tap.on_due(2500, Bytes::new(160), Instant::from_millis(2500));
        tap.on_expired(2500);
        let echo = log.taps.echo.as_mut().unwrap();
        echo.on_received(2, Instant::from_millis(9));
        echo.on_dropped(4, DropCause::SocketBuffer);
        log.totals.blocked_ns = 5;
        let recovery = |at_ns| RecoverySample {
            at_ns,
            pto_us: Some(75_000),
            bytes_in_flight: 1200 * at_ns,
            lost_packets: at_ns,
        };
        log.recovery = (0..1500).map(recovery).collect();
        let state = Observation { cwnd: Some(10.0), ssthresh: Some(f64::INFINITY), ..Observation::default() };
        log.samples = (0..1500).map(|ns| StateSample::of(&state, Instant::from_nanos(ns))).collect();
        let mut copy = Chunk::default();
        for chunk in log.chunks() {
            let text = serde_json::to_string(&chunk).unwrap();
            assert!(text.len() < 500_000);
            copy.extend(serde_json::from_str(&text).unwrap());
        }
        assert_eq!(copy, log.rows());
        let ours = |at: u64| Instant::from_nanos(at);
        let spec = echoing(UDP, WorkloadConfig::G711);
        let copy = EndLog::from_rows(&copy, Side::Near, &spec, 2501, &ours);
        assert_eq!(written(&copy.taps.forward), written(&log.taps.forward));
        let arrivals = |log: &EndLog| log.taps.echo.as_ref().unwrap().arrival_times().collect::<Vec<_>>();
        assert_eq!(arrivals(&copy), arrivals(&log));
        assert_eq!(copy.rows(), log.rows());
    }

    #[test]
    fn a_spent_budget_says_so() {
        let budget = RowBudget::new(2);
        assert!(budget.take(1) && !budget.is_spent());
        assert!(budget.take(1) && budget.is_spent());
        assert!(!budget.take(1));
    }

    #[test]
    fn an_unchanged_sample_is_not_kept() {
        let mut log = EndLog::new(Side::Near, false, ReadMessages::Whole);
        let mut seen = Observation { cwnd: Some(10.0), ..Observation::default() };
        let mut note = |seen: &Observation, ms| log.on_observed(seen, Instant::from_millis(ms));
        note(&seen, 1);
        note(&seen, 2);
        seen.cwnd = Some(11.0);
        note(&seen, 3);
        // QUIC's alone has a loss recovery.
        let mut recovery = LossRecovery { bytes_in_flight: Bytes::new(1200), ..LossRecovery::default() };
        note(&Observation { loss_recovery: Some(recovery), ..seen }, 4);
        note(&Observation { loss_recovery: Some(recovery), ..seen }, 5);
        recovery.pto = Some(Duration::from_millis(75));
        note(&Observation { loss_recovery: Some(recovery), ..seen }, 6);
        assert_eq!(log.samples.iter().map(|it| it.at_ns / 1_000_000).collect::<Vec<_>>(), [1, 3]);
        let recovery = log.recovery.iter().map(|it| (it.at_ns / 1_000_000, it.pto_us)).collect::<Vec<_>>();
        assert_eq!(recovery, [(4, None), (6, Some(75_000))]);
    }
}
