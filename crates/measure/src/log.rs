//! Writes log.txt, which describes a run for a person, flow by flow. It has the fields of Spoor's transfer
//! log (2014, appendix B): start and end, transfer time, packet size, packets received and expected,
//! protocol. His client logs the packets that it sent and his server those that it received of the packets
//! that it expected; here one log has both. `talkpath serve` writes [`TransferLog`] alone, which has what a
//! receiver knows.
//!
//! As in summary.json, only messages that were due in the window count. A packet of an echo flow counts as
//! received when its echo is back.

use core::fmt::{self, Write};
use core::ops::Range;

use talkpath_units::Instant;

use crate::metrics::loss::LossCounts;
use crate::metrics::payload_sizes::PayloadSizes;
use crate::metrics::time_to_receive::Stamps;
use crate::summary::TransferSummary;
use crate::{FileRecord, FlowRecord, RunRecord};

/// The value of a field that is unknown, or that the flow does not have.
const NONE: &str = "none";

/// What the log says about the messages of a flow.
#[derive(Default)]
struct LoggedMessages {
    stamps: Stamps,
    counts: LossCounts,
    /// `None` if there is no message.
    sizes: Option<PayloadSizes>,
}

impl LoggedMessages {
    fn new(flow: &FlowRecord, window: &Range<Instant>) -> Self {
        match &flow.tally {
            Some(tally) => {
                Self { stamps: tally.trips.stamps, counts: tally.trips.counts, sizes: tally.sizes }
            }
            None => Self::from_rows(flow, window),
        }
    }

    fn from_rows(flow: &FlowRecord, window: &Range<Instant>) -> Self {
        let mut messages = Self::default();
        flow.each_trip(window, |trip| {
            messages.stamps.add(&trip);
            messages.counts.add(&trip);
            PayloadSizes::add(&mut messages.sizes, trip.size);
        });
        messages
    }
}

/// The seven fields of a transfer in Spoor's log (2014, appendix B), in his words and in his order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferLog {
    /// The date and time of the beginning.
    pub start: Option<String>,
    /// The date and time of the end.
    pub end: Option<String>,
    /// The time from the beginning to the end, ns.
    pub duration_ns: Option<i64>,
    /// The smallest and the largest payload of a packet, B.
    pub size_bytes: Option<(u64, u64)>,
    /// How many packets arrived, each counted once.
    pub received: u64,
    /// How many packets the sender meant to send.
    pub expected: u64,
    /// The transport's name in scenarios.
    pub protocol: String,
}

impl fmt::Display for TransferLog {
    /// Writes a line for each field, each with its line feed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |field: &Option<String>| field.clone().unwrap_or_else(|| NONE.to_owned());
        let time = self.duration_ns.map(|ns| format!("{:.3} ms", ns as f64 / 1e6));
        let size = self.size_bytes.map(|(min, max)| {
            if min == max { format!("{min} bytes") } else { format!("{min} to {max} bytes") }
        });
        writeln!(f, "Start timestamp: {}", or_none(&self.start))?;
        writeln!(f, "End timestamp: {}", or_none(&self.end))?;
        writeln!(f, "Transfer time: {}", or_none(&time))?;
        writeln!(f, "Packet size: {}", or_none(&size))?;
        writeln!(f, "Packets received: {}", self.received)?;
        writeln!(f, "Packets expected: {}", self.expected)?;
        writeln!(f, "Protocol: {}", self.protocol)
    }
}

/// Returns when the transfer of `flow` began and ended, and its payloads. Only messages that were due within
/// `window` count. `format_instant` writes an instant of the run as a date and a time.
pub fn summarise_transfer(
    flow: &FlowRecord,
    window: &Range<Instant>,
    format_instant: impl Fn(Instant) -> String,
) -> TransferSummary {
    let LoggedMessages { stamps, sizes, .. } = LoggedMessages::new(flow, window);
    TransferSummary {
        start: stamps.first_sent.map(&format_instant),
        end: stamps.last_received.map(&format_instant),
        size_bytes_min: sizes.map(|sizes| sizes.min),
        size_bytes_max: sizes.map(|sizes| sizes.max),
    }
}

/// Returns the log of one repetition. `format_instant` writes an instant of the run as a date and a time.
pub fn log_txt(record: &RunRecord, format_instant: impl Fn(Instant) -> String) -> String {
    let mut log = String::new();
    for flow in &record.flows {
        // Writing to a string cannot fail.
        let _ = write_flow(&mut log, record, flow, &format_instant);
    }
    log
}

fn write_flow(
    log: &mut String,
    record: &RunRecord,
    flow: &FlowRecord,
    format_instant: impl Fn(Instant) -> String,
) -> fmt::Result {
    let window = record.window_start..record.window_end;
    let LoggedMessages { stamps, counts, sizes } = LoggedMessages::new(flow, &window);
    let fields = TransferLog {
        start: stamps.first_sent.map(&format_instant),
        end: stamps.last_received.map(&format_instant),
        duration_ns: transfer_time_ns(flow, &stamps),
        size_bytes: sizes.map(|PayloadSizes { min, max }| (min, max)),
        received: counts.received,
        expected: counts.sent,
        protocol: flow.info.transport.clone(),
    };
    writeln!(log, "Flow: {} (cell {}, repetition {})", flow.info.name, record.cell, record.repetition)?;
    write!(log, "{fields}")?;
    let unsent = counts.no_network.saturating_add(counts.not_open);
    writeln!(log, "Packets sent: {}", counts.sent.saturating_sub(unsent))?;
    writeln!(log, "Receiver timeout: {} ms", record.drain.as_millis())?;
    if let Some(file) = &flow.file {
        write_file(log, file)?;
    }
    writeln!(log)
}

/// Returns the time from the first message that was sent to the last one that was received, in ns. If the two
/// ends read clocks that cannot be compared, the time is unknown.
fn transfer_time_ns(flow: &FlowRecord, stamps: &Stamps) -> Option<i64> {
    let is_one_clock = flow.echo.is_some() || flow.info.clock_trusted;
    stamps.first_sent_to_last_received_ns().filter(|_| is_one_clock)
}

fn write_file(log: &mut String, file: &FileRecord) -> fmt::Result {
    writeln!(log, "File: {}, {} bytes", file.name, file.bytes.get())?;
    writeln!(log, "File SHA-256: {}", file.sha256)?;
    let received = file.received.map_or_else(|| NONE.to_owned(), |received| received.get().to_string());
    writeln!(log, "File bytes received: {received}")?;
    let check = match file.intact {
        Some(true) => "intact",
        Some(false) => "not intact",
        None => "not checked: the receiver went away",
    };
    writeln!(log, "File check: {check}")?;
    if let Some(name) = &file.kept_as {
        writeln!(log, "File kept as: {name}")?;
    }
    if !file.missing.is_empty() {
        writeln!(log, "Missing bytes: {}", missing_bytes(file))?;
    }
    Ok(())
}

/// Returns the ranges of bytes that did not arrive, in the form of HTTP: first and last byte (RFC 9110
/// §14.1.1).
fn missing_bytes(file: &FileRecord) -> String {
    let mut ranges = Vec::new();
    for (start, end) in &file.missing {
        ranges.push(format!("{start}-{}", end.saturating_sub(1)));
    }
    let listed = ranges.join(", ");
    match file.missing_ranges.saturating_sub(file.missing.len() as u64) {
        0 => listed,
        unlisted => format!("{listed} and {unlisted} more ranges"),
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Bytes;

    use super::*;
    use crate::testing::{flow, run};

    #[test]
    fn every_field_of_the_log_is_there() {
        let log = log_txt(&run(vec![flow(&[Some(30), None, Some(31)])]), |at| format!("T+{at}"));
        let expected = "Flow: call (cell 0, repetition 0)\n\
                        Start timestamp: T+0.000000000 s\n\
                        End timestamp: T+0.071000000 s\n\
                        Transfer time: 71.000 ms\n\
                        Packet size: 160 bytes\n\
                        Packets received: 2\n\
                        Packets expected: 3\n\
                        Protocol: udp\n\
                        Packets sent: 3\n\
                        Receiver timeout: 0 ms\n\n";
        assert_eq!(log, expected);
    }

    #[test]
    fn the_log_of_a_file_names_the_bytes_that_are_missing() {
        let mut flow = flow(&[Some(30)]);
        flow.file = Some(FileRecord {
            name: "talk.wav".to_owned(),
            bytes: Bytes::new(4000),
            sha256: "ab".to_owned(),
            received: Some(Bytes::new(2000)),
            intact: Some(false),
            missing: vec![(0, 1000), (3000, 4000)],
            missing_ranges: 3,
            kept_as: None,
        });
        let log = log_txt(&run(vec![flow]), |at| format!("T+{at}"));
        let expected = "File: talk.wav, 4000 bytes\n\
                        File SHA-256: ab\n\
                        File bytes received: 2000\n\
                        File check: not intact\n\
                        Missing bytes: 0-999, 3000-3999 and 1 more ranges\n\n";
        assert!(log.ends_with(expected), "{log}");
    }

    #[test]
    fn the_log_of_a_flow_that_sent_nothing_says_none() {
        let log = log_txt(&run(vec![flow(&[])]), |_| unreachable!("there is no instant to write"));
        assert!(
            log.contains(
                "Start timestamp: none\nEnd timestamp: none\nTransfer time: none\nPacket size: none"
            )
        );
    }
}
