//! `log.txt`: a run for a person, flow by flow, with the fields that Spoor's transfer log has (2014, appendix
//! B): start and end stamps, transfer time, packet size, packets received and expected, protocol.
//!
//! All fields are about the messages that were due in the window, as in summary.json; for an echo flow a
//! packet is received once its echo is back.

use core::fmt::Write;
use core::ops::Range;

use talkpath_units::Instant;

use crate::metrics::loss::LossCounts;
use crate::metrics::time_to_receive::Stamps;
use crate::{FileRecord, FlowRecord, RunRecord};

/// The log of one repetition; `stamp` writes an instant of the run as a date and a time.
pub fn log_txt(record: &RunRecord, stamp: impl Fn(Instant) -> String) -> String {
    let mut log = String::new();
    for flow in &record.flows {
        let messages = match &flow.tally {
            Some(tally) => {
                Messages { stamps: tally.trips.stamps, counts: tally.trips.counts, sizes: tally.sizes }
            }
            None => of_rows(flow, &(record.window_start..record.window_end)),
        };
        // Writing to a string cannot fail.
        let _ = write_flow(&mut log, record, flow, messages, &stamp);
    }
    log
}

/// What the log says of a flow's messages.
#[derive(Default)]
struct Messages {
    stamps: Stamps,
    counts: LossCounts,
    /// The smallest and the largest payload, bytes; `None` without a message.
    sizes: Option<(u64, u64)>,
}

fn of_rows(flow: &FlowRecord, window: &Range<Instant>) -> Messages {
    let Messages { mut stamps, mut counts, mut sizes } = Messages::default();
    flow.each_trip(window, |trip| {
        stamps.add(&trip);
        counts.add(&trip);
        let size = trip.size.get();
        let (least, most) = sizes.unwrap_or((size, size));
        sizes = Some((least.min(size), most.max(size)));
    });
    Messages { stamps, counts, sizes }
}

fn write_flow(
    log: &mut String,
    record: &RunRecord,
    flow: &FlowRecord,
    Messages { stamps, counts, sizes }: Messages,
    stamp: impl Fn(Instant) -> String,
) -> core::fmt::Result {
    let stamp_or_none = |at: Option<Instant>| at.map_or_else(|| NONE.to_owned(), &stamp);
    let transfer_time = stamps
        .first_sent_to_last_received_ns()
        .filter(|_| flow.echo.is_some() || flow.info.clock_trusted)
        .map_or_else(|| NONE.to_owned(), |ns| format!("{:.3} ms", ns as f64 / 1e6));
    writeln!(log, "Flow: {} (cell {}, repetition {})", flow.info.name, record.cell, record.repetition)?;
    writeln!(log, "Start timestamp: {}", stamp_or_none(stamps.first_sent))?;
    writeln!(log, "End timestamp: {}", stamp_or_none(stamps.last_received))?;
    writeln!(log, "Transfer time: {transfer_time}")?;
    writeln!(log, "Packet size: {}", packet_size(sizes))?;
    writeln!(log, "Packets received: {}", counts.received)?;
    writeln!(log, "Packets expected: {}", counts.sent)?;
    writeln!(log, "Protocol: {}", flow.info.transport)?;
    writeln!(log, "Receiver timeout: {} ms", record.drain.as_millis())?;
    if let Some(file) = &flow.file {
        write_file(log, file)?;
    }
    writeln!(log)
}

fn write_file(log: &mut String, file: &FileRecord) -> core::fmt::Result {
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
        // As HTTP writes them (RFC 9110 §14.1.1): first and last byte.
        let ranges: Vec<_> =
            file.missing.iter().map(|(from, to)| format!("{from}-{}", to.saturating_sub(1))).collect();
        let more = file.missing_ranges.saturating_sub(file.missing.len() as u64);
        let more = if more > 0 { format!(" and {more} more ranges") } else { String::new() };
        writeln!(log, "Missing bytes: {}{more}", ranges.join(", "))?;
    }
    Ok(())
}

fn packet_size(sizes: Option<(u64, u64)>) -> String {
    match sizes {
        Some((least, most)) if least == most => format!("{least} bytes"),
        Some((least, most)) => format!("{least} to {most} bytes"),
        None => NONE.to_owned(),
    }
}

const NONE: &str = "none";

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
                        Receiver timeout: 0 ms\n\n";
        assert_eq!(log, expected);
    }

    #[test]
    fn a_file_is_told_with_what_is_missing_of_it() {
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
    fn a_flow_that_never_came_to_send_says_none() {
        let log = log_txt(&run(vec![flow(&[])]), |_| unreachable!("there is no stamp to write"));
        assert!(
            log.contains(
                "Start timestamp: none\nEnd timestamp: none\nTransfer time: none\nPacket size: none"
            )
        );
    }
}
