//! Both ends' logs of a flow become one record, on the client's clock.
//!
//! The sender's log says what was due and sent, the receiver's what arrived, and what was echoed; the tap that every
//! arena uses counts them. Where the far end's log is missing (it went away), an echoing flow still knows its round
//! trips, and what no end can tell stays unfinished.

use std::collections::BTreeSet;

use talkpath_measure::tap::Ending;
use talkpath_measure::{
    DropCause, Fate, FileRecord, FlowCounters, FlowInfo, FlowRecord, LegRecord, LegTap, MessageRecord,
    Series, SeriesKind,
};
use talkpath_scenario::Flow;
use talkpath_units::{Bytes, Duration, Instant};

use crate::file::MOST_RANGES;
use crate::log::{DropPlace, FlowLog, HostDrop, Sample};
use crate::spec::{FlowSpec, WorkloadSpec};

/// One end's log with the way from its clock to the client's.
pub(crate) struct Timed<'a> {
    pub(crate) log: &'a FlowLog,
    pub(crate) to_ours: &'a dyn Fn(u64) -> Instant,
}

/// How a run ended, as far as fates depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// It drained: a datagram that is not there will not come.
    Drained,
    /// It was cut short: what was sent last may still be under way.
    Cut,
}

/// The record of `flow` from the two ends' logs; `receiver` or `sender` is absent where that end went away.
pub(crate) fn flow_record(
    flow: &Flow,
    spec: &FlowSpec,
    sender: Option<&Timed<'_>>,
    receiver: Option<&Timed<'_>>,
    window: (Instant, Instant),
    end: RunEnd,
    clock_trusted: bool,
) -> FlowRecord {
    let mut forward = Leg::new(spec, end);
    if let Some(sender) = sender {
        forward.offer(sender, u64::MAX);
    }
    let messages = forward.messages;
    if let Some(receiver) = receiver {
        forward.arrive(receiver);
    }
    let mut forward = forward.finish();
    let echo = spec.echo_per_read.is_some().then(|| {
        let mut echo = Leg::new(spec, end);
        match (sender, receiver) {
            (Some(sender), None) => return echo_without_receiver(sender, &mut forward, spec, end),
            (_, Some(receiver)) => echo.offer(receiver, messages),
            (None, None) => {}
        }
        if let Some(sender) = sender {
            echo.arrive(sender);
        }
        echo.finish()
    });
    FlowRecord {
        info: info(flow, spec, sender, clock_trusted),
        forward,
        echo,
        counters: counters(spec, sender, receiver, window),
        file: file(spec, receiver),
        tally: None,
    }
}

/// The state over time of the sender's connection.
pub(crate) fn series(name: &str, sender: &Timed<'_>) -> Vec<Series> {
    // Datagram flows have none of these.
    let packets = |value: u32| (value != u32::MAX).then(|| f64::from(value));
    let rate = |value: u64| (value != u64::MAX).then_some(value as f64);
    let kinds: [(SeriesKind, Value<'_>); 6] = [
        (SeriesKind::Cwnd, &|sample| packets(sample.1)),
        (SeriesKind::Ssthresh, &|sample| packets(sample.2)),
        (SeriesKind::Srtt, &|sample| packets(sample.3).map(|us| us / 1e3)),
        (SeriesKind::Rto, &|sample| packets(sample.4).map(|us| us / 1e3)),
        (SeriesKind::SendBuffer, &|sample| Some(sample.5 as f64)),
        (SeriesKind::PacingRate, &|sample| rate(sample.7)),
    ];
    let mut all = Vec::new();
    for (kind, value) in kinds {
        let mut points: Vec<(Instant, f64)> = Vec::new();
        for sample in &sender.log.samples {
            if let Some(value) = value(sample)
                && points.last().is_none_or(|&(_, last)| last != value)
            {
                points.push(((sender.to_ours)(sample.0), value));
            }
        }
        if !points.is_empty() {
            all.push(Series { entity: name.to_owned(), kind, points });
        }
    }
    all
}

/// What one series takes from a sample.
type Value<'a> = &'a dyn Fn(&Sample) -> Option<f64>;

/// A tap, and what it may be told: rows come from a far end too, which may say anything.
struct Leg {
    tap: LegTap,
    is_stream: bool,
    /// Whether the end that sends tells when each message left it: what did not is still in its own queue.
    is_queued: bool,
    end: RunEnd,
    messages: u64,
    /// Which messages the transport took.
    taken: Vec<bool>,
    /// Messages that left, but no further than this host's kernel.
    unsent: BTreeSet<u64>,
}

impl Leg {
    fn new(spec: &FlowSpec, end: RunEnd) -> Self {
        let (is_stream, is_queued) = (spec.is_stream(), spec.is_dccp());
        let tap = LegTap::new();
        Self { tap, is_stream, is_queued, end, messages: 0, taken: Vec::new(), unsent: BTreeSet::new() }
    }

    /// The messages that `from` wanted to send, their numbers below `bound`.
    fn offer(&mut self, from: &Timed<'_>, bound: u64) {
        let bound = bound.min(if bound == u64::MAX { from.log.sent.len() as u64 } else { bound });
        self.messages = bound;
        self.taken = vec![false; usize::try_from(bound).unwrap_or(0)];
        for row in &from.log.sent {
            let Some(taken) = usize::try_from(row.0).ok().and_then(|seq| self.taken.get_mut(seq)) else {
                continue;
            };
            self.tap.on_due(row.0, Bytes::new(row.1.into()), (from.to_ours)(row.2));
            match row.3 {
                // The echo of a duplicate is a copy of a message that has its row already.
                _ if *taken => {}
                Some(sent) => {
                    *taken = true;
                    let sent = (from.to_ours)(sent);
                    if self.is_stream {
                        self.tap.on_sent_stream(row.0, sent);
                    } else {
                        self.tap.on_sent(row.0, sent);
                    }
                }
                None if row.4 => self.tap.on_refused(row.0),
                None => {}
            }
        }
        for &(seq, at) in &from.log.wires {
            if usize::try_from(seq).is_ok_and(|seq| self.taken.get(seq) == Some(&true)) {
                self.tap.on_wire(seq, (from.to_ours)(at));
            }
        }
        for &HostDrop(seq, place) in &from.log.drops {
            match place {
                DropPlace::SendQueue => self.tap.on_dropped(seq, DropCause::SendQueue),
                DropPlace::Kernel => drop(self.unsent.insert(seq)),
                DropPlace::Inbox => {}
            }
        }
    }

    /// What `to` received.
    fn arrive(&mut self, to: &Timed<'_>) {
        if self.is_stream {
            for &(at, bytes) in &to.log.reads {
                self.tap.on_read(Bytes::new(bytes.min(u64::from(u32::MAX))), (to.to_ours)(at));
            }
            return;
        }
        for &(seq, at) in &to.log.arrivals {
            if usize::try_from(seq).is_ok_and(|seq| self.taken.get(seq) == Some(&true)) {
                self.tap.on_received(seq, (to.to_ours)(at));
            }
        }
        for &HostDrop(seq, place) in &to.log.drops {
            if place == DropPlace::Inbox {
                self.tap.on_dropped(seq, DropCause::SocketBuffer);
            }
        }
    }

    fn finish(self) -> LegRecord {
        let ending = match (self.is_stream, self.end) {
            (true, _) => Ending::Stream,
            (false, RunEnd::Drained) => Ending::Datagrams { every_drop_known: false },
            (false, RunEnd::Cut) => Ending::Datagrams { every_drop_known: true },
        };
        let mut leg = self.tap.finish(ending);
        if !self.is_stream && self.end == RunEnd::Cut {
            miss_overtaken(&mut leg);
        }
        if self.is_queued {
            for row in leg.messages.iter_mut().filter(|row| row.wire.is_none() && row.drop_cause.is_none()) {
                match row.fate {
                    Fate::Missing if !self.unsent.contains(&row.seq) => row.fate = Fate::Unfinished,
                    Fate::Unfinished if self.unsent.contains(&row.seq) => row.fate = Fate::Missing,
                    _ => {}
                }
            }
        }
        leg
    }
}

/// A datagram that a later one overtook is missing, also where the run was cut short.
fn miss_overtaken(leg: &mut LegRecord) {
    let Some(highest) = leg.arrivals.iter().max().copied() else { return };
    for row in &mut leg.messages {
        if row.fate == Fate::Unfinished && row.sent.is_some() && row.seq < highest {
            row.fate = Fate::Missing;
        }
    }
}

/// The round trips that the sender saw of a flow whose echoing end went away, with what they say about the way there.
fn echo_without_receiver(
    sender: &Timed<'_>,
    forward: &mut LegRecord,
    spec: &FlowSpec,
    end: RunEnd,
) -> LegRecord {
    let mut echo = Leg::new(spec, end);
    echo.taken = forward.messages.iter().map(|row| row.sent.is_some()).collect();
    // Nobody knows when the far application read and wrote a message: its row appears with the echo's arrival.
    let mut due_at = vec![None; forward.messages.len()];
    if spec.is_stream() {
        let size = spec.message_size().unwrap_or(u64::MAX).max(1);
        let (mut read, mut next) = (0_u64, 0_usize);
        for &(at, bytes) in &sender.log.reads {
            read += bytes.min(u64::from(u32::MAX));
            while read / size > next as u64 && next < due_at.len() {
                due_at[next] = Some(at);
                next += 1;
            }
        }
    } else {
        for &(seq, at) in &sender.log.arrivals {
            if let Some(due) = usize::try_from(seq).ok().and_then(|seq| due_at.get_mut(seq)) {
                due.get_or_insert(at);
            }
        }
    }
    for (row, due) in forward.messages.iter_mut().zip(&due_at) {
        let Some(at) = *due else { continue };
        let at = (sender.to_ours)(at);
        echo.tap.on_due(row.seq, row.size, at);
        if spec.is_stream() {
            echo.tap.on_sent_stream(row.seq, at);
        } else {
            echo.tap.on_sent(row.seq, at);
        }
        *row = MessageRecord { fate: Fate::Delivered, copies: 1, ..*row };
    }
    echo.arrive(sender);
    let highest = due_at.iter().rposition(Option::is_some).unwrap_or(0);
    if !spec.is_stream() {
        for row in &mut forward.messages[..highest] {
            if row.fate == Fate::Unfinished && row.sent.is_some() {
                row.fate = Fate::Missing;
            }
        }
    }
    echo.finish()
}

fn info(flow: &Flow, spec: &FlowSpec, sender: Option<&Timed<'_>>, clock_trusted: bool) -> FlowInfo {
    FlowInfo {
        name: flow.name.clone(),
        group: flow.group.clone(),
        transport: flow.transport_name.clone(),
        cc: sender.and_then(|sender| sender.log.totals.cc.clone()).or_else(|| spec.cc().map(str::to_owned)),
        start: Instant::from_nanos(spec.start_ns),
        clocked: spec.is_clocked(),
        bounded: flow.workload.is_bounded(),
        clock_trusted,
    }
}

/// What the receiver found of the flow's file; its words are a far end's, so they are cut to what can be true.
fn file(spec: &FlowSpec, receiver: Option<&Timed<'_>>) -> Option<FileRecord> {
    let (WorkloadSpec::File { bytes, .. }, Some(file)) = (spec.workload, &spec.file) else { return None };
    let printable = |text: &String| text.chars().filter(|c| !c.is_control()).take(255).collect();
    let found = receiver.and_then(|receiver| receiver.log.totals.file.as_ref());
    let record = FileRecord {
        name: printable(&file.name),
        bytes: Bytes::new(bytes),
        sha256: file.sha256.clone(),
        ..FileRecord::default()
    };
    let Some(found) = found else { return Some(record) };
    Some(FileRecord {
        received: Some(Bytes::new(found.received.min(bytes))),
        intact: Some(found.is_intact),
        missing: found
            .missing
            .iter()
            .copied()
            .filter(|&(from, to)| from < to && to <= bytes)
            .take(MOST_RANGES)
            .collect(),
        missing_ranges: found.missing_ranges,
        kept_as: found.kept_as.as_ref().map(printable),
        ..record
    })
}

/// What the kernels said of packets of our own transports that they would not take, from the logs of a flow's ends.
pub(crate) fn unsent_warnings(flow: &str, ends: &[(&str, Option<&FlowLog>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, log) in ends.iter().filter_map(|&(place, log)| Some((place, log?))) {
        for (why, count) in log.totals.unsent.iter().take(MOST_WORDS) {
            lines.push(format!("flow {flow}: {place} could not send {count} packets: {}", printable(why)));
        }
    }
    lines
}

/// A few words of what an end says, which may be a far one: it may say anything.
pub(crate) fn printable(why: &str) -> String {
    why.chars().filter(|c| !c.is_control()).take(100).collect()
}

/// What is to be said of a file that is not as it was sent, or was not kept.
pub(crate) fn file_warnings(flow: &FlowRecord, not_kept: Option<&str>) -> Vec<String> {
    let Some(file) = &flow.file else { return Vec::new() };
    let mut lines = Vec::new();
    if file.intact == Some(false) {
        let what = match file.missing_ranges {
            0 => "its SHA-256 is not the sender's".to_owned(),
            ranges => format!(
                "{} of {} B arrived, {ranges} byte ranges are missing (log.txt lists them)",
                file.received.map_or(0, Bytes::get),
                file.bytes.get()
            ),
        };
        lines.push(format!("flow {}: the file {} is not intact: {what}", flow.info.name, file.name));
    }
    if let Some(why) = not_kept {
        let why: String = why.chars().filter(|c| !c.is_control()).take(200).collect();
        lines.push(format!("flow {}: the far host did not keep the file: {why}", flow.info.name));
    }
    lines
}

fn counters(
    spec: &FlowSpec,
    sender: Option<&Timed<'_>>,
    receiver: Option<&Timed<'_>>,
    window: (Instant, Instant),
) -> FlowCounters {
    let Some(sender) = sender else { return FlowCounters::default() };
    // The echoing end sends messages too; a receiving end has none of its own to count.
    let echoing = receiver.filter(|_| spec.echo_per_read.is_some());
    let sum = |of: fn(&FlowLog) -> Option<u64>| {
        Some(of(sender.log)?.saturating_add(echoing.map_or(Some(0), |end| of(end.log))?))
    };
    let points = |of: fn(&Sample) -> Option<f64>| -> Vec<(Instant, f64)> {
        let samples = sender.log.samples.iter();
        samples.filter_map(|sample| Some(((sender.to_ours)(sample.0), of(sample)?))).collect()
    };
    let cwnd = points(|sample| (sample.1 != u32::MAX).then(|| f64::from(sample.1)));
    // Only a stream has a far end's window.
    let offered = if spec.is_stream() {
        points(|sample| (sample.1 != u32::MAX).then(|| f64::from(sample.1.min(sample.6))))
    } else {
        Vec::new()
    };
    let queue = points(|sample| Some(sample.5 as f64));
    let in_window = queue.iter().filter(|&&(at, _)| window.0 <= at && at < window.1);
    FlowCounters {
        data_packets: sum(|log| log.totals.data_packets),
        retransmissions: sum(|log| log.totals.retransmissions),
        timeouts: sum(|log| log.totals.timeouts),
        cwnd_packets_mean: time_weighted_mean(&cwnd, window),
        window_packets_mean: time_weighted_mean(&offered, window),
        send_buffer_mean: time_weighted_mean(&queue, window),
        send_buffer_max: in_window.map(|&(_, value)| value as u64).max(),
        blocked: Some(Duration::from_nanos(sender.log.totals.blocked_ns)),
    }
}

/// So many reasons of an end are told.
pub(crate) const MOST_WORDS: usize = 5;

/// The mean over `window` of a value that holds from each point to the next; `None` where it has no point before its end.
fn time_weighted_mean(points: &[(Instant, f64)], window: (Instant, Instant)) -> Option<f64> {
    let mut area = 0.0;
    let mut time = Duration::ZERO;
    for (index, &(from, value)) in points.iter().enumerate() {
        let until = points.get(index + 1).map_or(window.1, |next| next.0);
        let span = until.min(window.1).since(from.max(window.0));
        area += value * span.as_secs_f64();
        time += span;
    }
    (!time.is_zero()).then(|| area / time.as_secs_f64())
}

#[cfg(test)]
mod tests;
