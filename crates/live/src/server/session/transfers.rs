//! The log of the transfers that a session received: a line each for the server's log, and with a folder for
//! the log the seven fields of Spoor's log (2014, appendix B), whose server writes them too. A file has three
//! fields more: its name, its SHA-256, and whether it came intact.
//!
//! A transfer begins with its first arrival at this host and ends with its last, by this host's clock. So its
//! time is Foderaro's time to receive.

use std::path::Path;

use chrono::{DateTime, Utc};
use talkpath_kernel::end::ReceivedTransfer;
use talkpath_kernel::file::{FileSpec, RECEIVE_LOG, add_to_log};
use talkpath_measure::log::TransferLog;
use talkpath_units::Instant;

use super::Session;
use crate::protocol::words;

impl Session<'_> {
    /// Logs each transfer that this host received. The run began at `start_ns`, in ns since 1970.
    pub(super) fn log_transfers(&self, start_ns: i64) {
        for end in &self.ends {
            let (transfer, protocol, file, file_fields) = {
                let end = end.lock();
                let Some(transfer) = end.received_transfer() else { continue };
                let outcome = end.log.totals.file.as_ref();
                let check = outcome.map(|file| if file.is_intact { "intact" } else { "NOT intact" });
                let fields =
                    end.spec.file.as_ref().zip(check).map(|(FileSpec { name, sha256, .. }, check)| {
                        // The client has chosen the name.
                        format!("File: {}\nSHA-256: {sha256}\nArrived: {check}\n", words(name))
                    });
                (transfer, end.spec.transport.protocol(), check, fields.unwrap_or_default())
            };
            let log = transfer_log(&transfer, protocol, start_ns);
            let line = format!("{}: {}", self.client.get(), transfer_line(&log, file));
            // A transfer of which nothing arrived costs a client nothing, so it must not fill the log.
            if transfer.received == 0 {
                self.shared.log_limited(&line, self.log);
            } else {
                (self.log)(&line);
            }
            if let Some(folder) = self.shared.log.as_deref().filter(|_| transfer.received > 0) {
                self.add_to_folder(folder, &format!("{log}{file_fields}\n"));
            }
        }
    }

    /// Adds the fields of a transfer to the log in `folder`, if the limit of all kept files allows it.
    fn add_to_folder(&self, folder: &Path, text: &str) {
        let size = text.len() as u64;
        let added = self.reserve_kept_bytes(size).and_then(|()| {
            add_to_log(folder, text).map_err(|error| {
                self.release_kept_bytes(size);
                error.to_string()
            })
        });
        let Err(why) = added else { return };
        self.shared.log_limited(&format!("{RECEIVE_LOG} was not written: {why}"), self.log);
    }
}

/// Makes the fields of the log from what the receiver counted.
fn transfer_log(transfer: &ReceivedTransfer, protocol: String, start_ns: i64) -> TransferLog {
    let ReceivedTransfer { first, last, size_bytes, received, expected } = *transfer;
    let stamp = |at: Instant| {
        let ns = start_ns.saturating_add(i64::try_from(at.as_nanos()).unwrap_or(i64::MAX));
        DateTime::<Utc>::from_timestamp_nanos(ns).format("%Y-%m-%d %H:%M:%S%.6f").to_string()
    };
    TransferLog {
        start: first.map(stamp),
        end: last.map(stamp),
        duration_ns: first.zip(last).map(|(first, last)| last.signed_since(first).as_nanos()),
        size_bytes: Some(size_bytes),
        received,
        expected,
        protocol,
    }
}

/// Writes a transfer in one line. `file` says whether a file came whole.
fn transfer_line(log: &TransferLog, file: Option<&str>) -> String {
    let TransferLog { duration_ns, size_bytes, received, expected, protocol, .. } = log;
    let (min, max) = size_bytes.unwrap_or_default();
    let size = if min == max { format!("{max} B") } else { format!("{min} to {max} B") };
    let time = duration_ns.map_or_else(String::new, |ns| format!(" in {:.3} ms", ns as f64 / 1e6));
    let file = file.map_or_else(String::new, |check| format!("; the file is {check}"));
    format!("transfer over {protocol}: received {received} of {expected} packets of {size}{time}{file}")
}
