//! Joins the legs of a flow: the messages from the sender to the receiver, and their echoes.
//!
//! The join pairs the messages of both logs by their numbers, if the messages carry numbers. Datagrams do,
//! and so do messages of varying size on a stream, because they are framed. On a stream whose messages have
//! one size, the join counts bytes from the first message that was sent.

use talkpath_measure::tap::Ending;
use talkpath_measure::{Fate, LegRecord, LegTap, MessageRecord};
use talkpath_units::{Duration, Instant};

use super::flow_logs::{FlowLogs, RunEnd};
use crate::log::EndLog;

/// The largest difference between two readings of this host's clocks. We chose 1 ms, which is several
/// preemptions.
const CLOCK_READING: Duration = Duration::from_millis(1);

/// The legs of a flow.
pub(super) struct Legs {
    pub(super) forward: LegRecord,
    /// `None` if the receiver does not echo the messages.
    pub(super) echo: Option<LegRecord>,
    /// The number of echoes that arrived before their message was sent. They are left out of `echo`, because
    /// somebody has made them up.
    pub(super) early_echoes: u64,
}

impl Legs {
    pub(super) fn join(logs: FlowLogs<'_>) -> Self {
        let sent = logs.sender.map(|log| log.taps.forward.clone());
        let mut forward = join_leg(sent, logs.receiver.map(|log| &log.taps.forward), logs);
        let mut echo = None;
        let mut early_echoes = 0;
        if logs.has_echo() {
            let received = logs.sender.and_then(received_echoes);
            early_echoes = received.as_ref().map_or(0, |received| received.early);
            let received = received.map(|received| received.tap);
            echo = Some(match (logs.sender, logs.receiver) {
                (Some(_), None) => join_echo_without_receiver(received.as_ref(), &mut forward, logs),
                _ => join_leg(sent_echoes(logs), received.as_ref(), logs),
            });
        }
        if logs.has_failed() {
            give_up(&mut forward);
            if let Some(echo) = &mut echo {
                give_up(echo);
            }
        }
        if let Some(echo) = &mut echo {
            early_echoes += remove_early_echoes(echo, &forward);
        }
        Self { forward, echo, early_echoes }
    }
}

/// Joins a leg from the taps of its sending end and its receiving end.
fn join_leg(sent: Option<LegTap>, received: Option<&LegTap>, logs: FlowLogs<'_>) -> LegRecord {
    // The bytes that were read from a stream count even if the sent messages are not known.
    let arrivals_unknown = received.is_none() || (sent.is_none() && logs.spec.features().keeps_messages);
    let sent = sent.unwrap_or_default();
    let tap = match received {
        Some(received) => sent.join(received),
        None => sent,
    };
    LegRecord { arrivals_unknown, ..decide_fates(tap, logs) }
}

/// Decides the fate of each message of a leg.
fn decide_fates(tap: LegTap, logs: FlowLogs<'_>) -> LegRecord {
    if logs.spec.features().is_reliable {
        return tap.finish(Ending::Reliable);
    }
    // A protocol that runs in this process reports when each message left its queue.
    let is_queued = logs.spec.transport.channel_kind().runs_here();
    match logs.run_end {
        RunEnd::Drained => tap.finish(Ending::Unreliable { every_drop_known: false, is_queued }),
        RunEnd::Cut => {
            let mut leg = tap.finish(Ending::Unreliable { every_drop_known: true, is_queued });
            mark_overtaken_as_missing(&mut leg, is_queued);
            leg
        }
    }
}

/// Marks each unfinished message as missing if a later message has arrived. Even if the run was cut short,
/// the message would not have arrived, because an unreliable transport does not send it again.
fn mark_overtaken_as_missing(leg: &mut LegRecord, is_queued: bool) {
    let Some(highest) = leg.arrivals.iter().max().copied() else { return };
    for message in &mut leg.messages {
        let has_left = !is_queued || message.wire.is_some();
        if message.fate == Fate::Unfinished && message.sent.is_some() && has_left && message.seq < highest {
            message.fate = Fate::Missing;
        }
    }
}

/// Ends each unfinished message, because the connection has ended early. A message that was sent is missing.
/// A message that waited for room is never sent.
fn give_up(leg: &mut LegRecord) {
    for message in leg.messages.iter_mut().filter(|message| message.fate == Fate::Unfinished) {
        message.fate = if message.sent.is_some() { Fate::Missing } else { Fate::NotOpen };
    }
}

/// Returns the echoes that the receiver sent.
fn sent_echoes(logs: FlowLogs<'_>) -> Option<LegTap> {
    let echoes = logs.receiver?.taps.echo.as_deref()?.clone();
    let Some(sender) = logs.sender.filter(|_| !logs.spec.names_messages()) else { return Some(echoes) };
    // On a stream without frames the receiver numbers the messages by their arrival. The sender also numbers
    // messages that it has never sent. So the echoes get the numbers of the messages that were sent.
    let sent = sender.taps.forward.rows().filter(|message| message.sent.is_some());
    Some(echoes.renumbered(&sent.map(|message| message.seq).collect::<Vec<_>>()))
}

/// The echoes that the sender received.
struct ReceivedEchoes {
    /// The echoes without the early ones.
    tap: LegTap,
    /// The number of early echoes.
    early: u64,
}

/// Returns the echoes that the sender received. On a stream without frames an echo has no number yet, so
/// [`remove_early_echoes`] finds the early echoes after the join.
fn received_echoes(sender: &EndLog) -> Option<ReceivedEchoes> {
    let sent_at = send_times(&sender.taps.forward);
    let is_early = |seq: u64, arrival: Instant| {
        let sent = usize::try_from(seq).ok().and_then(|seq| sent_at.get(seq).copied().flatten());
        sent.is_none_or(|sent| is_before(arrival, sent))
    };
    let (tap, early) = sender.taps.echo.as_deref()?.without_arrivals(is_early);
    Some(ReceivedEchoes { tap, early })
}

/// Returns when each message was sent, by the message's number.
fn send_times(tap: &LegTap) -> Vec<Option<Instant>> {
    let mut sent_at = Vec::new();
    for message in tap.rows() {
        let Ok(index) = usize::try_from(message.seq) else { continue };
        if sent_at.len() <= index {
            sent_at.resize(index + 1, None);
        }
        sent_at[index] = message.sent;
    }
    sent_at
}

/// Removes each echo that arrived before its message was sent. Its message then has no echo. Returns the
/// number of removed echoes.
fn remove_early_echoes(echoes: &mut LegRecord, forward: &LegRecord) -> u64 {
    let mut early = Vec::new();
    for echo in &mut echoes.messages {
        let index = forward.messages.partition_point(|message| message.seq < echo.seq);
        let message = forward.messages.get(index).filter(|message| message.seq == echo.seq);
        let sent = message.and_then(|message| message.sent);
        if let (Some(received), Some(sent)) = (echo.received, sent)
            && is_before(received, sent)
        {
            (echo.fate, echo.received, echo.copies) = (Fate::Missing, None, 0);
            early.push(echo.seq);
        }
    }
    echoes.arrivals.retain(|seq| early.binary_search(seq).is_err());
    early.len() as u64
}

/// Returns true if `arrival` is before `sent` by more than two clock readings may differ.
fn is_before(arrival: Instant, sent: Instant) -> bool {
    arrival.saturating_add(CLOCK_READING) < sent
}

/// Joins the echoes of a flow whose receiver went away, from the echoes that the sender has received. A
/// message whose echo arrived was delivered, so `forward` is updated too.
fn join_echo_without_receiver(
    received: Option<&LegTap>,
    forward: &mut LegRecord,
    logs: FlowLogs<'_>,
) -> LegRecord {
    let Some(received) = received else { return LegRecord::default() };
    let spec = logs.spec;
    let arrivals = if spec.names_messages() {
        echo_arrivals_by_number(received, forward.messages.len())
    } else {
        echo_arrivals_by_bytes(received, &forward.messages)
    };
    // Nobody knows when the receiver's application read a message and sent its echo. The time of the echo's
    // arrival stands for it.
    let mut sent = LegTap::new();
    for (message, arrival) in forward.messages.iter_mut().zip(&arrivals) {
        let Some(arrival) = *arrival else { continue };
        sent.on_due(message.seq, message.size, arrival);
        if spec.features().keeps_messages {
            sent.on_sent(message.seq, arrival);
        } else {
            sent.on_sent_stream(message.seq, arrival);
        }
        (message.fate, message.copies) = (Fate::Delivered, 1);
    }
    if !spec.features().is_reliable {
        let last_echoed = arrivals.iter().rposition(Option::is_some).unwrap_or(0);
        for message in &mut forward.messages[..last_echoed] {
            if message.fate == Fate::Unfinished && message.sent.is_some() {
                message.fate = Fate::Missing;
            }
        }
    }
    join_leg(Some(sent), Some(received), logs)
}

/// Returns when the first echo of each of `messages` messages arrived.
fn echo_arrivals_by_number(received: &LegTap, messages: usize) -> Vec<Option<Instant>> {
    let mut arrivals = vec![None; messages];
    for (seq, at) in received.arrival_times() {
        if let Some(arrival) = usize::try_from(seq).ok().and_then(|seq| arrivals.get_mut(seq)) {
            arrival.get_or_insert(at);
        }
    }
    arrivals
}

/// Returns when the echo of each message arrived on a stream, which returns the sent messages in their order.
fn echo_arrivals_by_bytes(received: &LegTap, messages: &[MessageRecord]) -> Vec<Option<Instant>> {
    let mut arrivals = vec![None; messages.len()];
    let mut sent = messages.iter().zip(&mut arrivals).filter(|(message, _)| message.sent.is_some());
    let mut next = sent.next();
    let (mut received_bytes, mut echoed_bytes) = (0_u64, 0_u64);
    for &(at, bytes) in received.reads() {
        received_bytes += bytes.get();
        while let Some((message, arrival)) = &mut next
            && echoed_bytes + message.size.get() <= received_bytes
        {
            echoed_bytes += message.size.get();
            **arrival = Some(at);
            next = sent.next();
        }
    }
    arrivals
}
