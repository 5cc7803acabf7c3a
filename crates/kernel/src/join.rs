//! Joins the logs of both ends of a flow into the flow's record, on the client's clock.
//!
//! The sender's log says which messages were due and sent. The receiver's log says which messages arrived and
//! which echoes were sent. [`LegTap::join`] joins the two halves of a leg, in every arena.
//!
//! The log of the far end is missing if the far end went away. A flow with an echo then still knows its round
//! trips. A message whose fate neither end knows stays unfinished, and no figure is made of it
//! ([`LegRecord::arrivals_unknown`]).
//!
//! The join pairs messages by their numbers, if the messages carry numbers. Datagrams do, and so do messages
//! of varying size on a stream, which have frames. On a stream whose messages have one size, the join counts
//! bytes from the first message that was sent.

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
use talkpath_units::{Bytes, Duration, Instant, counted, printable};

use crate::log::{EndLog, EndTotals, RecoverySample, Sample, StateSample};
use crate::spec::{FlowSpec, is_congestion_control};

pub use ip::dscp_warnings;

/// How a run ended. The fate of messages that have not arrived depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The run waited for deliveries to its end. A datagram that has not arrived by then never will.
    Drained,
    /// The run was cut short. The last messages may still be on their way.
    Cut,
}

/// Makes the record of `flow` from the logs of its two ends. A log is `None` if that end went away.
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
    // Without the receiver's log and without an echo nobody knows what arrived, so outages are not known.
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

/// Lists the outages of the flow, and the end of its connection if the connection ended before its time.
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
        // An outage that never ended and the end of the connection are one break. The break began with the
        // outage, before an end noticed that the connection had failed.
        let began = breaks.pop_if(|outage| outage.to.is_none()).map_or(at, |outage| at.min(outage.from));
        breaks.push(BreakRecord { from: began, to: None, why });
    }
    breaks
}

/// Makes the series of the sender's connection: its state over time. `name` is the name of the flow. A series
/// that the transport does not have is left out.
pub fn series(name: &str, sender: &EndLog) -> Vec<Series> {
    let ms = |us: Option<u32>| us.map(|us| f64::from(us) / 1e3);
    let kinds: [(SeriesKind, Value<'_, StateSample>); 6] = [
        (SeriesKind::Cwnd, &|sample| sample.cwnd.map(f64::from)),
        (SeriesKind::Ssthresh, &|sample| sample.ssthresh.map(f64::from)),
        (SeriesKind::Srtt, &|sample| ms(sample.srtt_us)),
        (SeriesKind::Rto, &|sample| ms(sample.rto_us)),
        (SeriesKind::SendBuffer, &|sample| Some(sample.queued as f64)),
        (SeriesKind::PacingRate, &|sample| sample.pacing_bps.map(|bps| bps as f64)),
    ];
    // Only QUIC has these.
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

/// Takes the value of one series from a sample.
type Value<'a, T> = &'a dyn Fn(&T) -> Option<f64>;

/// Lists the points at which the `value` of a sample differs from the point before.
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

/// Makes the record of a leg from the taps of its writing end and its reading end.
fn leg(writer: Option<LegTap>, reader: Option<&LegTap>, spec: &FlowSpec, end: RunEnd) -> LegRecord {
    // The bytes that were read from a stream count even if the writer's messages are not known.
    let arrivals_unknown = reader.is_none() || (writer.is_none() && spec.features().keeps_messages);
    let writer = writer.unwrap_or_default();
    let tap = match reader {
        Some(reader) => writer.join(reader),
        None => writer,
    };
    LegRecord { arrivals_unknown, ..finish(tap, spec, end) }
}

/// Decides the fate of each message of a leg.
fn finish(tap: LegTap, spec: &FlowSpec, end: RunEnd) -> LegRecord {
    if spec.features().is_reliable {
        return tap.finish(Ending::Reliable);
    }
    // A protocol that runs in this process reports when each message left its queue.
    let is_queued = spec.transport.channel_kind().runs_here();
    let mut leg = tap.finish(Ending::Unreliable { every_drop_known: end == RunEnd::Cut, is_queued });
    if end == RunEnd::Cut {
        miss_overtaken(&mut leg, is_queued);
    }
    leg
}

/// The echoes that the receiver wrote. On a stream without frames the receiver numbers the messages from the
/// first one that arrived. Messages that were never sent have numbers too, so the echoes get the numbers of
/// the messages that were sent.
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

/// The echoes that came to the sender, and the number of early echoes that are left out of them. An early
/// echo came before its message was sent, so it cannot be an echo of that message. On a stream without frames
/// an echo has no number yet, and [`drop_early`] finds the early echoes after the join.
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
    Some(sender.taps.echo.as_deref()?.without_arrivals(is_early))
}

/// Makes each echo missing that came before its message was sent. Returns the number of these echoes.
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

/// Returns true if `at` is before `sent` by more than two readings of this host's clocks may differ.
fn is_before(at: Instant, sent: Instant) -> bool {
    at.saturating_add(CLOCK_READING) < sent
}

/// Ends each unfinished message, because the connection ended before its time. A message that was sent is
/// missing. A message that waited for room is never sent.
fn give_up(leg: &mut LegRecord) {
    for row in leg.messages.iter_mut().filter(|row| row.fate == Fate::Unfinished) {
        row.fate = if row.sent.is_some() { Fate::Missing } else { Fate::NotOpen };
    }
}

/// Makes each unfinished message missing that a later message has overtaken. It is missing even if the run
/// was cut short, because an unreliable transport does not send it again.
fn miss_overtaken(leg: &mut LegRecord, is_queued: bool) {
    let Some(highest) = leg.arrivals.iter().max().copied() else { return };
    for row in &mut leg.messages {
        let has_left = !is_queued || row.wire.is_some();
        if row.fate == Fate::Unfinished && row.sent.is_some() && has_left && row.seq < highest {
            row.fate = Fate::Missing;
        }
    }
}

/// Makes the record of the echoes of a flow whose receiver went away, from the echoes that the sender read. A
/// message whose echo came back was delivered, so `forward` is updated too.
fn echo_without_receiver(
    read: Option<&LegTap>,
    forward: &mut LegRecord,
    spec: &FlowSpec,
    end: RunEnd,
) -> LegRecord {
    let mut echo = LegTap::new();
    let Some(read) = read else { return LegRecord::default() };
    // Nobody knows when the receiver's application read a message and wrote its echo. The echo counts as
    // written when it arrives.
    let mut due_at = vec![None; forward.messages.len()];
    if spec.names_messages() {
        for (seq, at) in read.arrival_times() {
            if let Some(due) = usize::try_from(seq).ok().and_then(|seq| due_at.get_mut(seq)) {
                due.get_or_insert(at);
            }
        }
    } else {
        // The stream brings the sent messages back in their order.
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
    // The name of the congestion control may come from the far host, which may send anything.
    let used = sender.and_then(|sender| sender.totals.cc.clone()).filter(|name| is_congestion_control(name));
    let cc = used.or_else(|| spec.transport.cc().map(str::to_owned));
    flow_info(flow, cc, Instant::from_nanos(spec.start_ns), clock_trusted)
}

/// Makes the flow's record of ECN marks from the counts of both ends. `None` if the flow does not use ECN.
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

/// What both ends saw of the flow's paths. `None` unless the scenario wants Multipath TCP.
fn multipath(flow: &Flow, sender: Option<&EndLog>, receiver: Option<&EndLog>) -> Option<MultipathSummary> {
    let seen = || [sender, receiver].into_iter().flatten().filter_map(|log| log.totals.multipath);
    flow.transport.wants_multipath().then(|| MultipathSummary {
        // One end that fell back to plain TCP is enough to know that the connection is plain TCP.
        fell_back: seen().map(|seen| seen.fell_back).max(),
        // The kernel that opens a subflow counts it before the other end has answered, so the smaller of the
        // two numbers is right.
        subflows_max: seen().map(|seen| seen.subflows).min(),
    })
}

/// The warning about echoes that came before their message was sent, if there were any.
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

/// The warning about a connection that should have used several paths and did not.
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

/// Makes the record of the flow's file from what the receiver reports. The receiver may be a far end and may
/// report anything, so its figures are limited to what is possible.
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

/// The warnings about messages that are too short to carry a whole number. Such a message may get a wrong
/// number after a time in which half of all possible numbers went by without an arrival. With a clock, the
/// time of arrival decides the number then. Without a clock, the number is a guess.
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

/// The warnings about messages for which a host had no network, from the logs of a flow's ends.
pub fn no_network_warnings(flow: &str, ends: &[(&str, Option<&EndLog>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, log) in ends.iter().filter_map(|&(place, log)| Some((place, log?))) {
        for (why, count) in log.totals.no_network.iter().take(MAX_WORDS) {
            let why = few_words(why);
            lines.push(format!(
                "flow {flow}: {place} had no network for {}, never sent: {why}",
                counted(*count, "message")
            ));
        }
    }
    lines
}

/// The warnings about packets of our own protocols that a kernel did not take, from the logs of a flow's
/// ends.
pub fn unsent_warnings(flow: &str, ends: &[(&str, Option<&EndLog>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, log) in ends.iter().filter_map(|&(place, log)| Some((place, log?))) {
        for (why, count) in log.totals.unsent.iter().take(MAX_WORDS) {
            let packets = counted(*count, "packet");
            lines.push(format!("flow {flow}: {place} could not send {packets}: {}", few_words(why)));
        }
    }
    lines
}

/// Cuts a text to at most 100 printable characters, because a far end may have written anything into it.
pub fn few_words(why: &str) -> String {
    printable(why, 100)
}

/// The warnings about a file that arrived damaged, and about a file that the far host did not keep.
pub fn file_warnings(flow: &FlowRecord, not_kept: Option<&str>) -> Vec<String> {
    let Some(file) = &flow.file else { return Vec::new() };
    let mut lines = Vec::new();
    if file.intact == Some(false) {
        let what = match file.missing_ranges {
            0 => "its SHA-256 is not the sender's".to_owned(),
            ranges => format!(
                "{} of {} B arrived; {} missing, which log.txt lists",
                file.received.map_or(0, Bytes::get),
                file.bytes.get(),
                counted(ranges, "byte range")
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

/// Makes the flow's counters. They are empty without the sender's log.
fn counters(
    spec: &FlowSpec,
    sender: Option<&EndLog>,
    receiver: Option<&EndLog>,
    window: &Range<Instant>,
) -> FlowCounters {
    let Some(sender) = sender else { return FlowCounters::default() };
    // A receiver sends messages only if it echoes. Otherwise it has no sent messages to count.
    let echoing = receiver.filter(|_| spec.echo_per_read.is_some());
    let sum = |of: fn(&EndLog) -> Option<u64>| Some(of(sender)?.saturating_add(echoing.map_or(Some(0), of)?));
    let points = |of: fn(&StateSample) -> Option<f64>| -> Vec<(Instant, f64)> {
        let samples = sender.samples.iter();
        samples.filter_map(|sample| Some((Instant::from_nanos(sample.at_ns), of(sample)?))).collect()
    };
    let cwnd = points(|sample| sample.cwnd.map(f64::from));
    // Only a reliable transport has a receive window. Other transports drop what finds no room at the
    // receiver.
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

/// How much two readings of this host's clocks may differ (chosen: some preemptions).
const CLOCK_READING: Duration = Duration::from_millis(1);
/// The largest number of reasons that are listed for one end.
pub const MAX_WORDS: usize = 5;
/// The longest name of a file on Linux (NAME_MAX).
const MAX_FILE_NAME: usize = 255;

/// The mean over `window` of a value that holds from each point to the next point. `None` if there is no
/// point before the window's end.
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
