//! The files that flows carry: reads the sender's file, and keeps the received file in the receiver's folder.
//! The application puts a file together and checks it (`flow::file`).
//!
//! Both ends know a file by its name, its size and its SHA-256 (FIPS 180-4; [`FileSpec`]). The sender
//! computes the SHA-256 before the run. A stream carries only the bytes of the file. Over UDP each message
//! carries a header (`wire.rs`) and the next piece of the file. The message's number gives the place of the
//! piece, so the receiver knows to the byte what is missing.
//!
//! Left out: missing pieces are not sent again, because that would be another transport. Files that grow
//! while they are sent are left out too.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, Mode, OFlags, RenameFlags};
use rustix::fs::{accessat, open, openat, renameat_with, unlinkat};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use talkpath_units::to_hex;

use crate::random::random;

/// The largest file that is sent, bytes. We chose 1 GiB, because a file is held in memory.
const MAX_BYTES: u64 = 1 << 30;
/// The largest length of a name, bytes (NAME_MAX of Linux's limits.h).
const MAX_NAME: usize = 255;
/// The largest number of characters in the name of a kept file. With a number the name stays well below
/// NAME_MAX.
const MAX_KEPT_NAME: usize = 100;
/// The largest number of kept files that have the same name.
const MAX_SAME_NAME: u32 = 100;
/// The log of the transfers, beside the kept files. Spoor's (2014, appendix B) is called LANReceiveLog.txt.
/// No kept file has this name.
pub const RECEIVE_LOG: &str = "receive-log.txt";

/// A file as both ends know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileSpec {
    /// The name of the sender's file, without its folder.
    pub name: String,
    /// The SHA-256 of the whole file, in hexadecimal.
    pub sha256: String,
    /// The bytes of the file. Empty at the receiver.
    #[serde(skip)]
    pub content: Arc<Vec<u8>>,
}

impl FileSpec {
    /// Reads the file `source`, which had `bytes` bytes when the scenario was read.
    ///
    /// # Errors
    /// Returns a text that says why the file cannot be sent.
    pub fn read(source: &str, bytes: u64) -> Result<Self, String> {
        if bytes > MAX_BYTES {
            return Err(format!("{source}: {bytes} B; real arenas send files of at most {MAX_BYTES} B"));
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

    /// Checks a description that a far end has sent.
    ///
    /// # Errors
    /// Returns a text that says what is wrong with the description.
    pub fn check(&self) -> Result<(), String> {
        let is_hash = self.sha256.len() == 64 && self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash && self.name.len() <= MAX_NAME {
            Ok(())
        } else {
            Err("a file needs a name of at most 255 B and its SHA-256".to_owned())
        }
    }
}

/// Writes `content` to a file in `folder`. Makes the file's name from `wanted` and returns it.
///
/// The name has no separator and does not begin with a dot. An existing file is never replaced: if the name
/// is taken, the new file gets a number. The file appears whole, because it is written under a hidden name
/// and then renamed.
///
/// # Errors
/// Returns the system's error, or `AlreadyExists` if the folder has a hundred files of that name.
pub fn keep(folder: &Path, wanted: &str, content: &[u8]) -> io::Result<String> {
    let directory = open(folder, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let hidden = format!(".talkpath-{}", to_hex(&random::<8>()?));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let mut file = File::from(openat(&directory, hidden.as_str(), flags, mode)?);
    let named = file.write_all(content).and_then(|()| {
        let name = plain_name(wanted);
        // A client must not write what reads as the server's own log.
        let first_number = if name == RECEIVE_LOG { 2 } else { 1 };
        for number in first_number..=MAX_SAME_NAME {
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
        // The error of the removal is ignored, because the earlier error is returned.
        let _ = unlinkat(&directory, hidden.as_str(), AtFlags::empty());
    }
    named
}

/// Adds `text` to [`RECEIVE_LOG`] in `folder`, which is made if it is not there. A link of that name is not
/// followed.
///
/// # Errors
/// Returns the system's error.
pub fn add_to_log(folder: &Path, text: &str) -> io::Result<()> {
    let directory = open(folder, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    File::from(openat(&directory, RECEIVE_LOG, flags, mode)?).write_all(text.as_bytes())
}

/// Checks that files can be written in `folder`.
///
/// # Errors
/// Returns the system's error if `folder` is no folder or cannot be written to.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    let directory = open(folder, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(accessat(&directory, ".", Access::WRITE_OK, AtFlags::empty())?)
}

/// Returns the last part of `wanted` in plain characters, without points at its beginning.
fn plain_name(wanted: &str) -> String {
    let base = wanted.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let plain: String = base.chars().take(MAX_KEPT_NAME).map(|c| if is_plain(c) { c } else { '-' }).collect();
    match plain.trim_start_matches(['.', '-']) {
        "" => "file".to_owned(),
        name => name.to_owned(),
    }
}

/// Puts a number into a name: `report.pdf` and 2 become `report-2.pdf`.
fn numbered(name: &str, number: u32) -> String {
    match name.rsplit_once('.') {
        Some((stem, ending)) => format!("{stem}-{number}.{ending}"),
        None => format!("{name}-{number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // The server's log is no client's to write.
        assert_eq!(keep(&folder, RECEIVE_LOG, b"forged").unwrap(), "receive-log-2.txt");
        add_to_log(&folder, "a\n").unwrap();
        add_to_log(&folder, "b\n").unwrap();
        assert_eq!(std::fs::read_to_string(folder.join(RECEIVE_LOG)).unwrap(), "a\nb\n");
        assert_eq!(keep(&folder, &"n".repeat(999), b"").unwrap().len(), MAX_KEPT_NAME);
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
