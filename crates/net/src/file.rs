//! Files on their way: what the sender reads, what the receiver puts together and checks, and where it may keep it.
//!
//! Both ends know a file by [`FileSpec`]: its name, size and SHA-256 (FIPS 180-4), which the sender works out before the run. A stream
//! carries the file's bytes and nothing else. Over UDP each message carries its header (`wire.rs`) and the next piece of
//! the file, so that a sequence number says where the piece belongs, and what is missing is known to the byte.
//!
//! Left out: sending again what is missing (that would be another transport), and files that grow while they are sent.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, Mode, OFlags, RenameFlags};
use rustix::fs::{accessat, open, openat, renameat_with, unlinkat};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::key::{random, to_hex};

/// A file as both ends know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileSpec {
    /// The source's own name, without its folder.
    pub(crate) name: String,
    /// Of the whole file, in hexadecimal.
    pub(crate) sha256: String,
    /// What is sent; only the sender has it.
    #[serde(skip)]
    pub(crate) content: Arc<Vec<u8>>,
}

/// What came of a file at its receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileOutcome {
    /// Bytes of the file that arrived, each counted once.
    pub(crate) received: u64,
    /// Whether all of it arrived and its SHA-256 is the sender's.
    pub(crate) is_intact: bool,
    /// Byte ranges that did not arrive, from and to (exclusive): the first [`MOST_RANGES`].
    pub(crate) missing: Vec<(u64, u64)>,
    /// How many such ranges there are in all.
    pub(crate) missing_ranges: u64,
    /// Under which name it was kept there.
    pub(crate) kept_as: Option<String>,
    /// Why it was not, where that was asked for.
    pub(crate) not_kept: Option<String>,
}

/// Puts a file together as it arrives.
pub(crate) struct FileSink {
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

impl FileSpec {
    /// Reads `source`, which had `bytes` bytes when the scenario was read.
    ///
    /// # Errors
    /// Why it cannot be sent, in words.
    pub(crate) fn read(source: &str, bytes: u64) -> Result<Self, String> {
        if bytes > MOST_BYTES {
            return Err(format!("{source}: {bytes} B; real arenas send files of at most {MOST_BYTES} B"));
        }
        let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        File::open(source)
            .and_then(|file| file.take(bytes + 1).read_to_end(&mut content))
            .map_err(|error| format!("{source}: {error}"))?;
        if content.len() as u64 != bytes {
            return Err(format!("{source}: it had {bytes} B when the scenario was read, and has not now"));
        }
        let sha256 = to_hex(&Sha256::digest(&content));
        let name = Path::new(source).file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, sha256, content: Arc::new(content) })
    }

    /// What a stranger's description must be, in words.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_hash = self.sha256.len() == 64 && self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        match is_hash && self.name.len() <= LONGEST_NAME {
            true => Ok(()),
            false => Err("a file needs a name of at most 255 B and its SHA-256".to_owned()),
        }
    }
}

impl FileSink {
    /// For the file `spec` of `bytes` bytes, in datagrams of `piece` file bytes or as a stream; `keeps` where its bytes are
    /// wanted after the check.
    pub(crate) fn new(spec: &FileSpec, bytes: u64, piece: Option<u64>, keeps: bool) -> Self {
        let (mut held, mut seen) = (Vec::new(), Vec::new());
        if let Some(piece) = piece {
            // Zeroed memory is the system's until it is written: a file that never comes costs nothing.
            held = vec![0; usize::try_from(bytes).unwrap_or(0)];
            seen = vec![false; usize::try_from(bytes.div_ceil(piece.max(1))).unwrap_or(0)];
        }
        Self {
            bytes,
            sha256: spec.sha256.to_ascii_lowercase(),
            piece,
            keeps,
            hasher: Sha256::new(),
            held,
            seen,
            received: 0,
        }
    }

    /// The next bytes of the stream.
    pub(crate) fn on_read(&mut self, data: &[u8]) {
        let left = usize::try_from(self.bytes - self.received).unwrap_or(usize::MAX);
        let data = &data[..data.len().min(left)];
        self.hasher.update(data);
        self.received += data.len() as u64;
        if self.keeps {
            self.held.extend_from_slice(data);
        }
    }

    /// Piece number `seq`, without its header.
    pub(crate) fn on_piece(&mut self, seq: u64, data: &[u8]) {
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

    /// What came of it until now.
    pub(crate) fn outcome(&self) -> FileOutcome {
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
            missing: ranges.into_iter().take(MOST_RANGES).collect(),
            kept_as: None,
            not_kept: None,
        }
    }

    /// The file's bytes; meaningful where the outcome is intact and they were wanted.
    pub(crate) fn content(&self) -> &[u8] {
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

/// Keeps `content` in `folder` under a name made from `wanted`; returns that name.
///
/// The name has no separator, does not begin with a point, and is nobody else's: what is there already is never
/// replaced, a number tells them apart. The file appears whole: it is written under a hidden name and renamed.
///
/// # Errors
/// The system's; `AlreadyExists` where a hundred of that name are there.
pub(crate) fn keep(folder: &Path, wanted: &str, content: &[u8]) -> io::Result<String> {
    let directory = open(folder, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let hidden = format!(".talkpath-{}", to_hex(&random::<8>()?));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let mut file = File::from(openat(&directory, hidden.as_str(), flags, mode)?);
    let named = file.write_all(content).and_then(|()| {
        let name = plain_name(wanted);
        for number in 1..=MOST_OF_A_NAME {
            let name = if number == 1 { name.clone() } else { numbered(&name, number) };
            match renameat_with(
                &directory,
                hidden.as_str(),
                &directory,
                name.as_str(),
                RenameFlags::NOREPLACE,
            ) {
                Ok(()) => return Ok(name),
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    });
    if named.is_err() {
        // The error that is told came first.
        let _ = unlinkat(&directory, hidden.as_str(), AtFlags::empty());
    }
    named
}

/// Whether `folder` is one in which files can be kept.
///
/// # Errors
/// The system's.
pub(crate) fn check_folder(folder: &Path) -> io::Result<()> {
    let directory = open(folder, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(accessat(&directory, ".", Access::WRITE_OK, AtFlags::empty())?)
}

/// `wanted`'s last part in plain characters, without points at its beginning.
fn plain_name(wanted: &str) -> String {
    let base = wanted.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let plain: String = base.chars().take(LONGEST_KEPT).map(|c| if is_plain(c) { c } else { '-' }).collect();
    match plain.trim_start_matches(['.', '-']) {
        "" => "file".to_owned(),
        name => name.to_owned(),
    }
}

/// `report.pdf` and 2 become `report-2.pdf`.
fn numbered(name: &str, number: u32) -> String {
    match name.rsplit_once('.') {
        Some((stem, ending)) => format!("{stem}-{number}.{ending}"),
        None => format!("{name}-{number}"),
    }
}

/// The largest file that is sent: it is held in memory (chosen).
const MOST_BYTES: u64 = 1 << 30;
/// Missing ranges that are told one by one (chosen: a page).
pub(crate) const MOST_RANGES: usize = 100;
/// NAME_MAX of Linux's limits.h.
const LONGEST_NAME: usize = 255;
/// Characters of a kept file's name (chosen: with a number well under NAME_MAX).
const LONGEST_KEPT: usize = 100;
/// Files of one name (chosen).
const MOST_OF_A_NAME: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(content: &[u8]) -> FileSpec {
        let sha256 = to_hex(&Sha256::digest(content));
        FileSpec { name: "a".to_owned(), sha256, content: Arc::new(content.to_vec()) }
    }

    #[test]
    fn a_stream_is_checked_as_it_comes_and_tells_where_it_ended() {
        let content: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        let mut sink = FileSink::new(&spec(&content), 100_000, None, false);
        sink.on_read(&content[..60_000]);
        let early = sink.outcome();
        assert_eq!((early.received, early.is_intact), (60_000, false));
        assert_eq!(early.missing, [(60_000, 100_000)]);
        sink.on_read(&content[60_000..]);
        assert!(sink.outcome().is_intact);
        let mut wrong = FileSink::new(&spec(&content), 100_000, None, false);
        wrong.on_read(&vec![7; 100_000]);
        assert_eq!((wrong.outcome().is_intact, wrong.outcome().missing_ranges), (false, 0));
    }

    #[test]
    fn pieces_come_in_any_order_and_twice_and_what_is_missing_is_told_in_ranges() {
        let content: Vec<u8> = (0..1050_u32).map(|n| (n * 7) as u8).collect();
        let mut sink = FileSink::new(&spec(&content), 1050, Some(100), false);
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
        let mut sink = FileSink::new(&spec(&content), 1000, Some(1), false);
        (0..1000).step_by(2).for_each(|seq| sink.on_piece(seq, &[1]));
        let outcome = sink.outcome();
        assert_eq!((outcome.missing.len(), outcome.missing_ranges), (MOST_RANGES, 500));
    }

    #[test]
    fn a_kept_file_stays_in_its_folder_and_replaces_nothing() {
        let outside = std::env::temp_dir().join(format!("talkpath-keep-{}", std::process::id()));
        let folder = outside.join("in");
        std::fs::create_dir_all(&folder).unwrap();
        let names =
            ["../../x/evil.txt", "/etc/evil.txt", "..\\evil.txt", ".bashrc", "..", "", "a b\n.t", "-rf"];
        let kept: Vec<_> = names.iter().map(|name| keep(&folder, name, b"new").unwrap()).collect();
        let expected = ["evil.txt", "evil-2.txt", "evil-3.txt", "bashrc", "file", "file-2", "a-b-.t", "rf"];
        assert_eq!(kept, expected);
        assert_eq!(keep(&folder, &"n".repeat(999), b"").unwrap().len(), LONGEST_KEPT);
        // A link that waits under the wanted name is not followed, and not replaced.
        std::os::unix::fs::symlink(outside.join("target"), folder.join("link")).unwrap();
        assert_eq!(keep(&folder, "link", b"new").unwrap(), "link-2");
        assert!(!outside.join("target").exists());
        assert!(
            std::fs::read_dir(&folder)
                .unwrap()
                .all(|entry| { !entry.unwrap().file_name().to_string_lossy().starts_with('.') })
        );
        std::fs::remove_dir_all(&outside).unwrap();
    }
}
