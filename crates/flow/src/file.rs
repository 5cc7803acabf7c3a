//! A file as its receiver puts it together and checks it.
//!
//! A stream carries the file's bytes and nothing else. Over datagrams each message carries a header and the
//! next piece of the file: a sequence number says which piece it is, and what is missing is known to the
//! byte.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use talkpath_units::to_hex;

/// What came of a file at its receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOutcome {
    /// Bytes of the file that arrived, each counted once.
    pub received: u64,
    /// Whether the whole file arrived and its SHA-256 is the sender's.
    pub is_intact: bool,
    /// Byte ranges that did not arrive, from and to (exclusive): the first [`MAX_RANGES`].
    pub missing: Vec<(u64, u64)>,
    /// How many such ranges there are in all.
    pub missing_ranges: u64,
    /// Under which name it was kept there.
    pub kept_as: Option<String>,
    /// Why it was not kept, if it should have been.
    pub not_kept: Option<String>,
}

/// Puts a file together as it arrives.
pub struct FileSink {
    bytes: u64,
    sha256: String,
    /// File bytes in each datagram but the last; `None` for a stream.
    piece: Option<u64>,
    /// Whether the bytes are wanted after the check.
    keeps: bool,
    hasher: Sha256,
    /// A stream's bytes so far where they are wanted; datagrams' in their places.
    held: Vec<u8>,
    /// Which datagrams arrived.
    seen: Vec<bool>,
    received: u64,
}

impl FileSink {
    /// For the file of `bytes` bytes whose SHA-256 is `sha256`, in hexadecimal, in datagrams of `piece` file
    /// bytes or as a stream; `keeps` where its bytes are wanted after the check.
    pub fn new(sha256: &str, bytes: u64, piece: Option<u64>, keeps: bool) -> Self {
        let (mut held, mut seen) = (Vec::new(), Vec::new());
        if let Some(piece) = piece {
            // Zeroed memory is the system's until it is written: a file that never comes costs nothing.
            held = vec![0; usize::try_from(bytes).unwrap_or(0)];
            seen = vec![false; usize::try_from(bytes.div_ceil(piece.max(1))).unwrap_or(0)];
        }
        Self {
            bytes,
            sha256: sha256.to_ascii_lowercase(),
            piece,
            keeps,
            hasher: Sha256::new(),
            held,
            seen,
            received: 0,
        }
    }

    /// The next bytes of the stream.
    pub fn on_read(&mut self, data: &[u8]) {
        let left = usize::try_from(self.bytes - self.received).unwrap_or(usize::MAX);
        let data = &data[..data.len().min(left)];
        self.hasher.update(data);
        self.received += data.len() as u64;
        if self.keeps {
            self.held.extend_from_slice(data);
        }
    }

    /// Piece number `seq`, without its header.
    pub fn on_piece(&mut self, seq: u64, data: &[u8]) {
        let Some(piece) = self.piece else { return };
        let index = usize::try_from(seq).unwrap_or(usize::MAX);
        let (Some(seen), Some(begin)) = (self.seen.get_mut(index), seq.checked_mul(piece)) else { return };
        let end = (begin + piece).min(self.bytes);
        let place = usize::try_from(begin).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX);
        if let Some(place) = self.held.get_mut(place).filter(|place| !*seen && place.len() == data.len()) {
            place.copy_from_slice(data);
            *seen = true;
            self.received += data.len() as u64;
        }
    }

    /// What has arrived of the file until now.
    pub fn outcome(&self) -> FileOutcome {
        let ranges = self.missing();
        let is_whole = ranges.is_empty();
        let digest = match self.piece {
            Some(_) if is_whole => Sha256::digest(&self.held),
            _ => self.hasher.clone().finalize(),
        };
        FileOutcome {
            received: self.received,
            is_intact: is_whole && to_hex(&digest) == self.sha256,
            missing_ranges: ranges.len() as u64,
            missing: ranges.into_iter().take(MAX_RANGES).collect(),
            kept_as: None,
            not_kept: None,
        }
    }

    /// The file's bytes; meaningful where the outcome is intact and they were wanted.
    pub fn content(&self) -> &[u8] {
        &self.held
    }

    fn missing(&self) -> Vec<(u64, u64)> {
        let Some(piece) = self.piece else {
            return if self.received < self.bytes { vec![(self.received, self.bytes)] } else { Vec::new() };
        };
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (number, _) in (0_u64..).zip(&self.seen).filter(|(_, seen)| !**seen) {
            let (begin, end) = (number * piece, ((number + 1) * piece).min(self.bytes));
            match ranges.last_mut() {
                Some(last) if last.1 == begin => last.1 = end,
                _ => ranges.push((begin, end)),
            }
        }
        ranges
    }
}

/// Missing ranges that are listed one by one (chosen: a page).
pub const MAX_RANGES: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn sha256(content: &[u8]) -> String {
        to_hex(&Sha256::digest(content))
    }

    #[test]
    fn a_stream_is_checked_as_it_comes_and_reports_where_it_ended() {
        let content: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        let mut sink = FileSink::new(&sha256(&content), 100_000, None, false);
        sink.on_read(&content[..60_000]);
        let early = sink.outcome();
        assert_eq!((early.received, early.is_intact), (60_000, false));
        assert_eq!(early.missing, [(60_000, 100_000)]);
        sink.on_read(&content[60_000..]);
        assert!(sink.outcome().is_intact);
        let mut wrong = FileSink::new(&sha256(&content), 100_000, None, false);
        wrong.on_read(&vec![7; 100_000]);
        assert_eq!((wrong.outcome().is_intact, wrong.outcome().missing_ranges), (false, 0));
    }

    #[test]
    fn pieces_come_in_any_order_and_twice_and_what_is_missing_is_listed_in_ranges() {
        let content: Vec<u8> = (0..1050_u32).map(|n| (n * 7) as u8).collect();
        let mut sink = FileSink::new(&sha256(&content), 1050, Some(100), false);
        let piece = |seq: u64| &content[seq as usize * 100..(seq as usize * 100 + 100).min(1050)];
        for seq in [10, 3, 0, 3, 99, 5] {
            sink.on_piece(seq, if seq == 99 { &[] } else { piece(seq) });
        }
        // A piece of the wrong length, and one past the end, are none.
        sink.on_piece(1, &content[..99]);
        sink.on_piece(u64::MAX, &content[..100]);
        let some = sink.outcome();
        assert_eq!((some.received, some.missing_ranges), (350, 3));
        assert_eq!(some.missing, [(100, 300), (400, 500), (600, 1000)]);
        (0..11).rev().for_each(|seq| sink.on_piece(seq, piece(seq)));
        assert!(sink.outcome().is_intact && sink.outcome().received == 1050);
        assert_eq!(sink.content(), content);
    }

    #[test]
    fn more_missing_ranges_than_a_page_are_counted() {
        let content = vec![1; 1000];
        let mut sink = FileSink::new(&sha256(&content), 1000, Some(1), false);
        (0..1000).step_by(2).for_each(|seq| sink.on_piece(seq, &[1]));
        let outcome = sink.outcome();
        assert_eq!((outcome.missing.len(), outcome.missing_ranges), (MAX_RANGES, 500));
    }
}
