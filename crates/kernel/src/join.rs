//! Both ends' logs of a flow become one record, on the client's clock.
//!
//! The sender's log says what was due and sent, the receiver's what arrived, and what was echoed; the tap
//! that every arena uses joins them ([`LegTap::join`]). If the far end's log is missing (it went away), an
//! echoing flow still knows its round trips, and what no end knows stays unfinished: no figure is made from
//! it ([`LegRecord::arrivals_unknown`]).
//!
//! Messages with numbers are joined by them: datagrams, and messages of varying size, whose frames have them.
//! Of a stream with messages of one size the join counts bytes, from the first message that was sent.

mod ip;

use std::ops::Range;

use talkpath_flow::file::MAX_RANGES;
use talkpath_flow::flow_info;
use talkpath_measure::breaks::outages;
use talkpath_measure::metrics::legs;
use talkpath_measure::summary::MultipathSummary;
use talkpath_measure::tap::Ending;
use talkpath_measure::{
    BreakRecord, EcnRecord, Fate, FileRecord, FlowCounters, FlowInfo, FlowRecord, LegRecord, LegTap,
    MessageRecord, Series, SeriesKind,
};
use talkpath_model::{Flow, WorkloadConfig};
use talkpath_units::{Bytes, Duration, Instant, printable};

use crate::log::{EndLog, EndTotals, RecoverySample, Sample, StateSample};
use crate::spec::{FlowSpec, is_congestion_control};

pub use ip::dscp_warnings;

/// How a run ended, as far as fates depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It drained: a datagram that is not there will not come.
    Drained,
    /// It was cut short: what was sent last may still be under way.
    Cut,
}

/// The record of `flow` from the two ends' logs; `receiver` or `sender` is absent if that end went away.
pub fn flow_record(
    flow: &Flow,
    spec: &FlowSpec,
    sender: Option<&EndLog>,
    receiver: Option<&EndLog>,
    window: &Range<Instant>,
    end: RunEnd,
    clock_trusted: bool,
) -> FlowRecord {
    let forward_of = |log: &'_ EndLog| log.taps.forward.clone();
    let mut forward = leg(sender.map(forward_of), receiver.map(|log| &log.taps.forward), spec, end);
    let mut early_echoes = 0;
    let mut echo = spec.echo_per_read.is_some().then(|| {
        let (read, early) = sender.and_then(believed_echoes).unzip();
        early_echoes = early.unwrap_or(0);
        match (sender, receiver) {
            (Some(_), None) => echo_without_receiver(read.as_ref(), &mut forward, spec, end),
            _ => leg(written_echoes(spec, sender, receiver), read.as_ref(), spec, end),
        }
    });
    let has_failed = |end: Option<&EndLog>| end.is_some_and(|end| end.totals.failure.is_some());
    if has_failed(sender) || has_failed(receiver) {
        core::iter::once(&mut forward).chain(&mut echo).for_each(give_up);
    }
    early_echoes += echo.as_mut().map_or(0, |echo| drop_early(echo, &forward));
    let mut record = FlowRecord {
        info: info(flow, spec, sender, clock_trusted),
        forward,
        echo,
        counters: counters(spec, sender, receiver, window),
        ecn: ecn(flow, spec, sender, receiver),
        file: file(spec, receiver),
        tally: None,
    };
    // Who only sends does not know what arrived.
    if receiver.is_some() || record.echo.is_some() {
        record.counters.breaks = breaks(&record, spec, sender, receiver, window.end, end);
    }
    record.counters.early_echoes = early_echoes;
    record.counters.ip = Some(ip::of(flow, spec, sender, receiver));
    record.counters.multipath = multipath(flow, sender, receiver);
    if sender.is_some() && receiver.is_some() {
        record.counters.legs = Some(legs::of(&record, window));
    }
    record
}

/// The outages of the flow and the end of its connection.
fn breaks(
    record: &FlowRecord,
    spec: &FlowSpec,
    sender: Option<&EndLog>,
    receiver: Option<&EndLog>,
    stop: Instant,
    end: RunEnd,
) -> Vec<BreakRecord> {
    let failed = [sender, receiver].into_iter().flatten().filter_map(|log| {
        let at = Instant::from_nanos(log.totals.failed_ns?);
        Some((at, few_words(log.totals.failure.as_deref()?)))
    });
    let failed = failed.min_by_key(|(at, _)| *at);
    let last_due = record.forward.messages.last().map_or(Instant::ZERO, |row| row.due);
    let until = if end == RunEnd::Cut { stop.min(last_due) } else { stop };
    let mut breaks = outages(record, spec.features().is_reliable, until);
    if let Some((at, why)) = failed {
        // What waits for a connection that ended is no outage of its own. It began before it was noticed.
        let began = breaks.pop_if(|it| it.to.is_none()).map_or(at, |outage| at.min(outage.from));
        breaks.push(BreakRecord { from: began, to: None, why });
    }
    breaks
}

/// The state over time of the sender's connection.
pub fn series(name: &str, sender: &EndLog) -> Vec<Series> {
    // A datagram flow has no such state.
    let ms = |us: Option<u32>| us.map(|us| f64::from(us) / 1e3);
    let kinds: [(SeriesKind, Value<'_, StateSample>); 6] = [
        (SeriesKind::Cwnd, &|sample| sample.cwnd.map(f64::from)),
        (SeriesKind::Ssthresh, &|sample| sample.ssthresh.map(f64::from)),
        (SeriesKind::Srtt, &|sample| ms(sample.srtt_us)),
        (SeriesKind::Rto, &|sample| ms(sample.rto_us)),
        (SeriesKind::SendBuffer, &|sample| Some(sample.queued as f64)),
        (SeriesKind::PacingRate, &|sample| sample.pacing_bps.map(|bps| bps as f64)),
    ];
    // QUIC's alone.
    let recovery: [(SeriesKind, Value<'_, RecoverySample>); 3] = [
        (SeriesKind::Pto, &|sample| ms(sample.pto_us)),
        (SeriesKind::BytesInFlight, &|sample| Some(sample.bytes_in_flight as f64)),
        (SeriesKind::LostPackets, &|sample| Some(sample.lost_packets as f64)),
    ];
    let of_state = kinds.map(|(kind, value)| (kind, changes(&sender.samples, value)));
    let of_recovery = recovery.map(|(kind, value)| (kind, changes(&sender.recovery, value)));
    of_state
        .into_iter()
        .chain(of_recovery)
        .filter(|(_, points)| !points.is_empty())
        .map(|(kind, points)| Series { entity: name.to_owned(), kind, points })
        .collect()
}

/// What one series takes from a sample.
type Value<'a, T> = &'a dyn Fn(&T) -> Option<f64>;

/// A value of `samples` where it changes.
fn changes<S: Sample>(samples: &[S], value: Value<'_, S>) -> Vec<(Instant, f64)> {
    let mut points: Vec<(Instant, f64)> = Vec::new();
    for sample in samples {
        if let Some(value) = value(sample)
            && points.last().is_none_or(|&(_, last)| last != value)
        {
            points.push((Instant::from_nanos(sample.at()), value));
        }
    }
    points
}

/// The record of a leg from the halves of its two ends.
fn leg(writer: Option<LegTap>, reader: Option<&LegTap>, spec: &FlowSpec, end: RunEnd) -> LegRecord {
    // What was read of a stream counts without its messages.
    let arrivals_unknown = reader.is_none() || (writer.is_none() && spec.features().keeps_messages);
    let writer = writer.unwrap_or_default();
    let tap = match reader {
        Some(reader) => writer.join(reader),
        None => writer,
    };
    LegRecord { arrivals_unknown, ..finish(tap, spec, end) }
}

fn finish(tap: LegTap, spec: &FlowSpec, end: RunEnd) -> LegRecord {
    if spec.features().is_reliable {
        return tap.finish(Ending::Reliable);
    }
    // A protocol that runs here reports when each message left its queue.
    let is_queued = spec.transport.channel_kind().runs_here();
    let mut leg = tap.finish(Ending::Unreliable { every_drop_known: end == RunEnd::Cut, is_queued });
    if end == RunEnd::Cut {
        miss_overtaken(&mut leg, is_queued);
    }
    leg
}

/// What the far end wrote back. Of a stream without frames it counts messages from the first one that came:
/// those that were never sent before have numbers, too.
fn written_echoes(spec: &FlowSpec, sender: Option<&EndLog>, receiver: Option<&EndLog>) -> Option<LegTap> {
    let written = receiver?.taps.echo.as_deref()?.clone();
    match sender.filter(|_| !spec.names_messages()) {
        None => Some(written),
        Some(sender) => {
            let taken = sender.taps.forward.rows().filter(|row| row.sent.is_some());
            Some(written.renumbered(&taken.map(|row| row.seq).collect::<Vec<_>>()))
        }
    }
}

/// The echoes that came to the sender, without those that came before their message was sent, and how many
/// these are: such an echo is none. On a stream without frames they have no numbers ([`drop_early`]).
fn believed_echoes(sender: &EndLog) -> Option<(LegTap, u64)> {
    let mut sent = Vec::new();
    for row in sender.taps.forward.rows() {
        let Ok(index) = usize::try_from(row.seq) else { continue };
        if sent.len() <= index {
            sent.resize(index + 1, None);
        }
        sent[index] = row.sent;
    }
    let sent_at = |seq: u64| usize::try_from(seq).ok().and_then(|seq| sent.get(seq).copied().flatten());
    let is_early = |seq, at| sent_at(seq).is_none_or(|sent| is_before(at, sent));
    Some(sender.taps.echo.as_deref()?.without(is_early))
}

/// Takes back the echoes that came before their message was sent; returns how many there were.
fn drop_early(echo: &mut LegRecord, forward: &LegRecord) -> u64 {
    let mut early = Vec::new();
    for row in &mut echo.messages {
        let at = forward.messages.partition_point(|sent| sent.seq < row.seq);
        let sent = forward.messages.get(at).filter(|sent| sent.seq == row.seq).and_then(|sent| sent.sent);
        if let (Some(received), Some(sent)) = (row.received, sent)
            && is_before(received, sent)
        {
            (row.fate, row.received, row.copies) = (Fate::Missing, None, 0);
            early.push(row.seq);
        }
    }
    echo.arrivals.retain(|seq| early.binary_search(seq).is_err());
    early.len() as u64
}

/// Whether `at` is before `sent`, by more than two readings of this host's clocks may differ.
fn is_before(at: Instant, sent: Instant) -> bool {
    at.saturating_add(CLOCK_READING) < sent
}

/// The connection ended before its time: what was sent and not read never comes, and what waited for room is
/// never sent.
fn give_up(leg: &mut LegRecord) {
    for row in leg.messages.iter_mut().filter(|row| row.fate == Fate::Unfinished) {
        row.fate = if row.sent.is_some() { Fate::Missing } else { Fate::NotOpen };
    }
}

/// A message that a later one overtook is missing, even if the run was cut short: nobody sends it again.
fn miss_overtaken(leg: &mut LegRecord, is_queued: bool) {
    let Some(highest) = leg.arrivals.iter().max().copied() else { return };
    for row in &mut leg.messages {
        let has_left = !is_queued || row.wire.is_some();
        if row.fate == Fate::Unfinished && row.sent.is_some() && has_left && row.seq < highest {
            row.fate = Fate::Missing;
        }
    }
}

/// The round trips that the sender saw of a flow whose echoing end went away, with what they say about the
/// way there.
fn echo_without_receiver(
    read: Option<&LegTap>,
    forward: &mut LegRecord,
    spec: &FlowSpec,
    end: RunEnd,
) -> LegRecord {
    let mut echo = LegTap::new();
    let Some(read) = read else { return LegRecord::default() };
    // Nobody knows when the far application read and wrote a message: its row appears with the echo's
    // arrival.
    let mut due_at = vec![None; forward.messages.len()];
    if spec.names_messages() {
        for (seq, at) in read.arrival_times() {
            if let Some(due) = usize::try_from(seq).ok().and_then(|seq| due_at.get_mut(seq)) {
                due.get_or_insert(at);
            }
        }
    } else {
        // The stream brings back what was sent, message by message.
        let mut sent = forward.messages.iter().zip(&mut due_at).filter(|(row, _)| row.sent.is_some());
        let (mut total, mut end) = (0_u64, 0_u64);
        let mut next = sent.next();
        for &(at, bytes) in read.reads() {
            total += bytes.get();
            while let Some((row, due)) = &mut next
                && end + row.size.get() <= total
            {
                end += row.size.get();
                **due = Some(at);
                next = sent.next();
            }
        }
    }
    for (row, due) in forward.messages.iter_mut().zip(&due_at) {
        let Some(at) = *due else { continue };
        echo.on_due(row.seq, row.size, at);
        if spec.features().keeps_messages {
            echo.on_sent(row.seq, at);
        } else {
            echo.on_sent_stream(row.seq, at);
        }
        *row = MessageRecord { fate: Fate::Delivered, copies: 1, ..*row };
    }
    let highest = due_at.iter().rposition(Option::is_some).unwrap_or(0);
    if !spec.features().is_reliable {
        for row in &mut forward.messages[..highest] {
            if row.fate == Fate::Unfinished && row.sent.is_some() {
                row.fate = Fate::Missing;
            }
        }
    }
    leg(Some(echo), Some(read), spec, end)
}

fn info(flow: &Flow, spec: &FlowSpec, sender: Option<&EndLog>, clock_trusted: bool) -> FlowInfo {
    // The far host says it, and may say anything.
    let used = sender.and_then(|sender| sender.totals.cc.clone()).filter(|name| is_congestion_control(name));
    let cc = used.or_else(|| spec.transport.cc().map(str::to_owned));
    flow_info(flow, cc, Instant::from_nanos(spec.start_ns), clock_trusted)
}

/// What both ends know of marks.
fn ecn(
    flow: &Flow,
    spec: &FlowSpec,
    sender: Option<&EndLog>,
    receiver: Option<&EndLog>,
) -> Option<EcnRecord> {
    let is_echo = spec.echo_per_read.is_some();
    let of = |end: Option<&EndLog>, pick: fn(&EndTotals) -> Option<u64>| pick(&end?.totals);
    let capable = sender.and_then(|sender| sender.totals.takes_marks);
    (flow.transport.wants_ecn() || capable == Some(true)).then(|| EcnRecord {
        capable,
        marked_forward: of(receiver, |totals| totals.marked),
        marked_return: of(sender, |totals| totals.marked).filter(|_| is_echo),
        echoed_forward: of(sender, |totals| totals.echoed),
        echoed_return: of(receiver, |totals| totals.echoed).filter(|_| is_echo),
    })
}

/// What both ends saw of the flow's paths, if the scenario wants several.
fn multipath(flow: &Flow, sender: Option<&EndLog>, receiver: Option<&EndLog>) -> Option<MultipathSummary> {
    let seen = || [sender, receiver].into_iter().flatten().filter_map(|log| log.totals.multipath);
    flow.transport.wants_multipath().then(|| MultipathSummary {
        // An end that gave Multipath TCP up has shown that it is none.
        fell_back: seen().map(|seen| seen.fell_back).max(),
        // The kernel that opens a subflow counts it before the other end has answered.
        subflows_max: seen().map(|seen| seen.subflows).min(),
    })
}

/// What to say of echoes that came before their message was sent.
pub fn early_echo_warnings(flow: &FlowRecord) -> Vec<String> {
    let line = |count: u64| {
        format!(
            "flow {}: {} before its message was sent, and is not counted: the far host, or something on the path, makes \
             echoes up",
            flow.info.name,
            if count == 1 { "an echo came".to_owned() } else { format!("each of {count} echoes came") }
        )
    };
    Some(flow.counters.early_echoes).filter(|&count| count > 0).map(line).into_iter().collect()
}

/// What to say of a connection that was to use several paths, and did not.
pub fn multipath_warnings(flow: &FlowRecord) -> Vec<String> {
    let Some(MultipathSummary { fell_back: Some(fell_back), subflows_max }) = flow.counters.multipath else {
        return Vec::new();
    };
    let name = &flow.info.name;
    match (fell_back, subflows_max) {
        (true, _) => vec![format!(
            "flow {name}: multipath = true, and the connection was plain TCP: the far host, or something on the path, \
             does not speak Multipath TCP"
        )],
        (false, Some(0 | 1)) => vec![format!(
            "flow {name}: multipath = true, and the connection of Multipath TCP had one path: the host that opened it has no \
             second address for it (`ip mptcp endpoint`), or nothing came through over that"
        )],
        (false, _) => Vec::new(),
    }
}

/// What the receiver found of the flow's file; its words are a far end's, so they are cut to what can be
/// true.
fn file(spec: &FlowSpec, receiver: Option<&EndLog>) -> Option<FileRecord> {
    let (WorkloadConfig::File { bytes, .. }, Some(file)) = (&spec.workload, &spec.file) else { return None };
    let bytes = bytes.get();
    let name = |text: &String| printable(text, MAX_FILE_NAME);
    let found = receiver.and_then(|receiver| receiver.totals.file.as_ref());
    let record = FileRecord {
        name: name(&file.name),
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
            .take(MAX_RANGES)
            .collect(),
        missing_ranges: found.missing_ranges,
        kept_as: found.kept_as.as_ref().map(name),
        ..record
    })
}

/// What to say of messages whose numbers are short, after times in which half of the numbers passed unseen;
/// and of those without a clock, whose numbers nobody can tell after so many losses.
pub fn short_number_warnings(
    flow: &FlowRecord,
    spec: &FlowSpec,
    ends: &[(&str, Option<&EndLog>)],
) -> Vec<String> {
    let name = &flow.info.name;
    let range = match spec.constant_size() {
        Some(1) => 1 << 8,
        Some(2 | 3) => 1 << 16,
        _ => return Vec::new(),
    };
    if !spec.features().keeps_messages {
        return Vec::new();
    }
    if spec.is_clocked() {
        let gaps = ends.iter().filter_map(|&(place, log)| Some((place, log?.totals.gap_ns?)));
        let line = |(place, gap_ns)| {
            format!(
                "flow {name}: nothing came to {place} for {:.1} s, and its messages have only {range} numbers: those after it \
                 were numbered by their time of arrival; messages of 4 B or more have numbers enough",
                gap_ns as f64 / 1e9
            )
        };
        return gaps.map(line).collect();
    }
    let mut run = 0_u64;
    let mut longest = 0;
    for row in &flow.forward.messages {
        run = if row.fate == Fate::Missing { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let line = format!(
        "flow {name}: {longest} messages in a row are missing, and they have only {range} numbers: those after it may be others \
         than they are taken for, so that losses and delays are not certain; messages of 4 B or more have numbers enough"
    );
    (longest >= range / 2).then_some(line).into_iter().collect()
}

/// What the kernels said of messages for which there was no network, from the logs of a flow's ends.
pub fn no_network_warnings(flow: &str, ends: &[(&str, Option<&EndLog>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, log) in ends.iter().filter_map(|&(place, log)| Some((place, log?))) {
        for (why, count) in log.totals.no_network.iter().take(MAX_WORDS) {
            let why = few_words(why);
            lines.push(format!(
                "flow {flow}: {place} had no network for {count} messages, which are lost: {why}"
            ));
        }
    }
    lines
}

/// What the kernels said of packets of our own transports that they would not take, from the logs of a flow's
/// ends.
pub fn unsent_warnings(flow: &str, ends: &[(&str, Option<&EndLog>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, log) in ends.iter().filter_map(|&(place, log)| Some((place, log?))) {
        for (why, count) in log.totals.unsent.iter().take(MAX_WORDS) {
            lines.push(format!("flow {flow}: {place} could not send {count} packets: {}", few_words(why)));
        }
    }
    lines
}

/// A few words of what an end says, which may be a far one: it may say anything.
pub fn few_words(why: &str) -> String {
    printable(why, 100)
}

/// What is to be said of a file that is not as it was sent, or was not kept.
pub fn file_warnings(flow: &FlowRecord, not_kept: Option<&str>) -> Vec<String> {
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
        let why = printable(why, 200);
        lines.push(format!("flow {}: the far host did not keep the file: {why}", flow.info.name));
    }
    lines
}

fn counters(
    spec: &FlowSpec,
    sender: Option<&EndLog>,
    receiver: Option<&EndLog>,
    window: &Range<Instant>,
) -> FlowCounters {
    let Some(sender) = sender else { return FlowCounters::default() };
    // The echoing end sends messages too; a receiving end has none of its own to count.
    let echoing = receiver.filter(|_| spec.echo_per_read.is_some());
    let sum = |of: fn(&EndLog) -> Option<u64>| Some(of(sender)?.saturating_add(echoing.map_or(Some(0), of)?));
    let points = |of: fn(&StateSample) -> Option<f64>| -> Vec<(Instant, f64)> {
        let samples = sender.samples.iter();
        samples.filter_map(|sample| Some((Instant::from_nanos(sample.at_ns), of(sample)?))).collect()
    };
    let cwnd = points(|sample| sample.cwnd.map(f64::from));
    // Only a reliable transport has a far end's window: others drop what finds no room there.
    let offered = if spec.features().is_reliable {
        points(|sample| {
            sample.cwnd.map(|cwnd| f64::from(sample.window.map_or(cwnd, |window| cwnd.min(window))))
        })
    } else {
        Vec::new()
    };
    let queue = points(|sample| Some(sample.queued as f64));
    let in_window = queue.iter().filter(|(at, _)| window.contains(at));
    FlowCounters {
        data_packets: sum(|log| log.totals.data_packets),
        retransmissions: sum(|log| log.totals.retransmissions),
        timeouts: sum(|log| log.totals.timeouts),
        cwnd_packets_mean: time_weighted_mean(&cwnd, window),
        window_packets_mean: time_weighted_mean(&offered, window),
        send_buffer_mean: time_weighted_mean(&queue, window),
        send_buffer_max: in_window.map(|&(_, value)| value as u64).max(),
        blocked: Some(Duration::from_nanos(sender.totals.blocked_ns)),
        breaks: Vec::new(),
        legs: None,
        ip: None,
        multipath: None,
        opening: sender.totals.opening_ns.map(Duration::from_nanos),
        early_echoes: 0,
    }
}

/// How far two readings of this host's clocks may be apart (chosen: some preemptions).
const CLOCK_READING: Duration = Duration::from_millis(1);
/// Reasons that are listed of one end.
pub const MAX_WORDS: usize = 5;
/// The longest name of a file on Linux (NAME_MAX).
const MAX_FILE_NAME: usize = 255;

/// The mean over `window` of a value that holds from each point to the next; `None` if it has no point before
/// the window's end.
fn time_weighted_mean(points: &[(Instant, f64)], window: &Range<Instant>) -> Option<f64> {
    let mut area = 0.0;
    let mut time = Duration::ZERO;
    for (index, &(from, value)) in points.iter().enumerate() {
        let until = points.get(index + 1).map_or(window.end, |next| next.0);
        let span = until.min(window.end).since(from.max(window.start));
        area += value * span.as_secs_f64();
        time += span;
    }
    (!time.is_zero()).then(|| area / time.as_secs_f64())
}

#[cfg(test)]
mod tests;
