//! The reports of RTCP (RFC 3550 §6.4): round trips, and what receivers counted.
//!
//! ```text
//!   sender ──── capture ──── receiver
//!     SR ──────── t1 ──────────►│  the receiver holds the report for DLSR
//!     ◄────────── t2 ────────── RR    t2 - t1 - DLSR: round trip from the capture to the receiver
//! ```
//!
//! The round trip from the capture to the sender comes from the reports about the stream in the other
//! direction. Encrypted RTCP (SRTCP) says nothing: its length does not fit its headers.

use std::collections::BTreeMap;

/// What the reports of a capture say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    /// When each sender report was captured, by its source and the middle 32 bits of its NTP time stamp.
    sender_reports: BTreeMap<(u32, u32), i64>,
    /// The smallest round trip from the capture to a receiver, by the source of the stream and the receiver's
    /// own source, ns.
    round_trips: BTreeMap<(u32, u32), i64>,
    /// The last report about each source.
    latest: BTreeMap<u32, ReceiverReport>,
}

/// What a receiver reported of a stream in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiverReport {
    /// The number of packets lost since the beginning. Duplicates make it smaller, so it can be negative.
    pub(crate) lost: i32,
    /// The jitter in units of the clock rate.
    pub(crate) jitter: u32,
}

impl Reports {
    /// Reads a datagram that was captured at `at_ns`. Returns false if it is not RTCP. `kept` are the bytes
    /// of the payload that were kept, and `length` is its size.
    pub(crate) fn take(&mut self, kept: &[u8], length: usize, at_ns: i64) -> bool {
        if !is_compound(kept, length) {
            return false;
        }
        let mut unread = kept;
        while let Some((packet, following)) = split_packet(unread) {
            self.take_packet(packet, at_ns);
            unread = following;
        }
        true
    }

    /// Returns the smallest round trip between the sender of the stream `source` and its receiver, ns.
    /// Returns `None` unless both sides reported.
    pub(crate) fn round_trip_ns(&self, source: u32) -> Option<i64> {
        let to_receivers = self.round_trips.range((source, 0)..=(source, u32::MAX));
        let both = to_receivers.filter_map(|((_, receiver), to_receiver)| {
            let to_sender = self.round_trips.get(&(*receiver, source))?;
            Some(to_receiver.saturating_add(*to_sender))
        });
        both.min()
    }

    /// Returns the last report about the stream `source`.
    pub(crate) fn latest(&self, source: u32) -> Option<ReceiverReport> {
        self.latest.get(&source).copied()
    }

    fn take_packet(&mut self, packet: &[u8], at_ns: i64) {
        let (Some(&first), Some(&kind), Some(reporter)) = (packet.first(), packet.get(1), u32_at(packet, 4))
        else {
            return;
        };
        let blocks_at = match kind {
            SENDER_REPORT => SENDER_REPORT_BLOCKS,
            RECEIVER_REPORT => RECEIVER_REPORT_BLOCKS,
            _ => return,
        };
        if kind == SENDER_REPORT
            && let (Some(high), Some(low)) = (u32_at(packet, 8), u32_at(packet, 12))
        {
            if self.sender_reports.len() >= MOST_REPORTS {
                self.sender_reports.clear();
            }
            self.sender_reports.insert((reporter, high << 16 | low >> 16), at_ns);
        }
        for index in 0..usize::from(first & 0x1f) {
            self.take_block(packet, blocks_at + index * BLOCK, reporter, at_ns);
        }
    }

    /// Reads a report block (RFC 3550 §6.4.1).
    fn take_block(&mut self, packet: &[u8], at: usize, reporter: u32, at_ns: i64) {
        let words = [0, 4, 12, 16, 20].map(|offset| u32_at(packet, at + offset));
        let [Some(source), Some(lost), Some(jitter), Some(last_report), Some(delay)] = words else { return };
        // The lower 24 bits are a signed number. The shift brings its sign to the highest bit.
        let lost = (lost << 8).cast_signed() >> 8;
        if self.latest.len() < MOST_REPORTS || self.latest.contains_key(&source) {
            self.latest.insert(source, ReceiverReport { lost, jitter });
        }
        let Some(sent_ns) = self.sender_reports.get(&(source, last_report)) else { return };
        // The delay is in units of 1/65,536 s.
        let held_ns = i64::from(delay) * 1_000_000_000 / 65_536;
        let round_trip = at_ns.saturating_sub(*sent_ns).saturating_sub(held_ns);
        // Below zero by more than the rounding the two reports do not belong together.
        if round_trip < -LARGEST_ROUNDING_NS || self.round_trips.len() >= MOST_REPORTS {
            return;
        }
        let least = self.round_trips.entry((source, reporter)).or_insert(i64::MAX);
        *least = (*least).min(round_trip.max(0));
    }
}

/// Whether a payload is a compound packet of RTCP that is not encrypted: it begins with a report, and the
/// lengths of its packets add up to its size (RFC 3550 appendix A.2).
fn is_compound(kept: &[u8], length: usize) -> bool {
    if !matches!(kept.get(1), Some(&(SENDER_REPORT | RECEIVER_REPORT))) {
        return false;
    }
    let mut at = 0;
    while let Some(size) = packet_size(kept.get(at..).unwrap_or(&[])) {
        at += size;
        if at >= kept.len() {
            break;
        }
    }
    // Of a cut packet only the first headers can be checked.
    if kept.len() < length { at <= length && at > 0 } else { at == length }
}

/// The first packet of a compound packet, and what follows it. A packet that was cut is there as far as it
/// was kept.
fn split_packet(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = packet_size(bytes)?.min(bytes.len());
    Some(bytes.split_at(size))
}

fn packet_size(bytes: &[u8]) -> Option<usize> {
    let [first, _, high, low, ..] = *bytes else { return None };
    (first >> 6 == VERSION).then_some((usize::from(u16::from_be_bytes([high, low])) + 1) * 4)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// RFC 3550 §6.4.1 and §12.1.
const VERSION: u8 = 2;
const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
/// Where the report blocks begin, and the size of one, bytes.
const SENDER_REPORT_BLOCKS: usize = 28;
const RECEIVER_REPORT_BLOCKS: usize = 8;
const BLOCK: usize = 24;
/// By how much rounding may make a round trip too small, ns: two units of 1/65,536 s.
const LARGEST_ROUNDING_NS: i64 = 2 * 1_000_000_000 / 65_536;
/// The largest number of reports that are kept. We chose 65,536, which takes a few megabytes of memory.
const MOST_REPORTS: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn sender_report(source: u32, ntp: u64) -> Vec<u8> {
        let mut bytes = vec![0x80, 200, 0, 6];
        bytes.extend(source.to_be_bytes());
        bytes.extend(ntp.to_be_bytes());
        bytes.extend([0; 12]);
        bytes
    }

    fn receiver_report(reporter: u32, about: u32, last: u32, held_ms: u32) -> Vec<u8> {
        let mut bytes = vec![0x81, 201, 0, 7];
        let lost = 0x00ff_fffe_u32;
        for word in [reporter, about, lost, 0, 33, last, held_ms * 65_536 / 1000] {
            bytes.extend(word.to_be_bytes());
        }
        bytes
    }

    #[test]
    fn a_round_trip_is_the_sum_of_both_sides_of_the_capture() {
        let mut reports = Reports::default();
        let mut take = |bytes: &[u8], at: i64| assert!(reports.take(bytes, bytes.len(), at * MS));
        // 7 sends, 8 receives: 30 ms from the capture to 8 and back, and 50 ms to 7 and back.
        take(&sender_report(7, 5 << 32), 1000);
        take(&receiver_report(8, 7, 5 << 16, 500), 1530);
        assert_eq!(reports.round_trip_ns(7), None);
        let mut take = |bytes: &[u8], at: i64| assert!(reports.take(bytes, bytes.len(), at * MS));
        take(&sender_report(8, 6 << 32), 2000);
        take(&receiver_report(7, 8, 6 << 16, 250), 2300);
        let round_trip = reports.round_trip_ns(7).unwrap();
        assert!((round_trip - 80 * MS).abs() < MS / 10, "{round_trip}");
        assert_eq!(reports.round_trip_ns(8), Some(round_trip));
        assert_eq!(reports.latest(7), Some(ReceiverReport { lost: -2, jitter: 33 }));
    }

    #[test]
    fn encrypted_and_damaged_reports_are_no_rtcp() {
        let report = receiver_report(8, 7, 0, 0);
        let encrypted = [&report[..], &[0; 14]].concat();
        assert!(!Reports::default().take(&encrypted, encrypted.len(), 0));
        for length in 0..report.len() {
            assert!(!Reports::default().take(&report[..length], length, 0), "{length}");
        }
        // The capture kept the first bytes.
        assert!(Reports::default().take(&report[..20], report.len(), 0));
    }
}
