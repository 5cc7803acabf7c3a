//! Writes files whole or not at all, and reads them again.
//!
//! Begin to read with [`write_whole`], which the other functions that write use.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::Error;

/// The end of a draft's name.
const DRAFT_ENDING: &str = ".draft";

/// The mode of a new file, from which the system takes the umask (open(2)).
const MODE_BEFORE_UMASK: u32 = 0o666;

/// How many bytes are collected for one write. We chose 64 KiB. Record files are made in pieces of 8 KiB, and
/// a system call for each piece takes longer than one more copy.
pub const WRITE_AT_ONCE: usize = 64 * 1024;
/// How many bytes are read before they are searched for a NUL. We chose 1 MiB. At most so many bytes are read
/// in vain, in the first piece of a hole.
const PIECE_BYTES: u64 = 1 << 20;

/// Writes the file `path`: `fill` writes into a draft with another name, which is then renamed to `path`. If
/// anything fails, the draft is removed and an older file at `path` stays.
///
/// No write follows a symbolic link. A link at `path` is replaced by the file. The name of the draft is
/// random, and the draft must not exist (O_EXCL), so nobody can place a link there.
///
/// # Errors
/// Returns the error of `fill`, or [`Error::Write`] if the draft cannot be made, written or renamed.
pub fn write_whole<E: From<Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let unwritten = |why| Error::write(path, why);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The draft is removed when it is dropped, unless it was renamed before.
    let draft = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .suffix(DRAFT_ENDING)
        .permissions(fs::Permissions::from_mode(MODE_BEFORE_UMASK))
        .tempfile_in(folder_of(path))
        .map_err(unwritten)?;
    let (file, draft) = draft.into_parts();
    let mut writer = BufWriter::with_capacity(WRITE_AT_ONCE, file);
    fill(&mut writer)?;
    writer.flush().map_err(unwritten)?;
    draft.persist(path).map_err(|why| unwritten(why.error))?;
    Ok(())
}

/// Writes `bytes` to the file `path`, whole or not at all.
///
/// # Errors
/// Returns [`Error::Write`].
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_whole(path, |writer| writer.write_all(bytes).map_err(|why| Error::write(path, why)))
}

/// Writes `bytes` to the file `path`, whole or not at all. The file is on the disk when this returns, so it
/// survives a loss of power.
///
/// # Errors
/// Returns [`Error::Write`].
pub fn write_lasting(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_whole(path, |writer| {
        let written = writer.write_all(bytes).and_then(|()| writer.flush());
        written.and_then(|()| writer.get_ref().sync_all()).map_err(|why| Error::write(path, why))
    })?;
    sync_folder(folder_of(path))
}

/// Writes the names of the files in `folder` through to the disk. A file that was created or renamed in it
/// before survives a loss of power.
///
/// # Errors
/// Returns [`Error::Write`].
pub fn sync_folder(folder: &Path) -> Result<(), Error> {
    let folder = or_current(folder);
    File::open(folder).and_then(|open| open.sync_all()).map_err(|why| Error::write(folder, why))
}

/// Returns the folder that the file `path` is in.
fn folder_of(path: &Path) -> &Path {
    or_current(path.parent().unwrap_or(Path::new("")))
}

/// Returns `folder`, or the current folder if `folder` is empty. The parent of a plain file name is empty.
fn or_current(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// Reads a JSON file that an earlier command wrote.
///
/// # Errors
/// Returns [`Error::Read`] if the file cannot be read, and [`Error::Unusable`] if it is not a JSON value of
/// type `T`.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let bytes = open_file(path).and_then(read_to_hole).map_err(|why| Error::read(path, why))?;
    serde_json::from_slice(&bytes).map_err(|why| unexpected_json(path, &why))
}

/// Reads `file` piece by piece, up to its end or to the first piece with a NUL byte. JSON has no NUL byte
/// (RFC 8259 §7). A hole in a file reads as NUL bytes, and may be longer than the memory is large.
fn read_to_hole(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let known = bytes.len();
        (&mut file).take(PIECE_BYTES).read_to_end(&mut bytes)?;
        if bytes.len() == known || bytes[known..].contains(&0) {
            return Ok(bytes);
        }
    }
}

/// Returns the error for a file that is not the JSON that it should be.
pub fn unexpected_json(path: &Path, why: &serde_json::Error) -> Error {
    Error::Unusable(format!("{}: not what talkpath writes there: {why}", path.display()))
}

/// Opens a file of a run directory to read it. A device or a pipe is refused, because it may have no end. A
/// directory is not refused, because each read of it fails with a clear error of the system.
///
/// # Errors
/// Returns the error of the system, or an error that says that `path` is not a file.
pub fn open_file(path: &Path) -> io::Result<File> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(io::Error::other("is no file"));
    }
    File::open(path)
}

/// Opens a file that need not exist, as [`open_file`] does. Returns `None` if nothing has the name `path`.
///
/// # Errors
/// Returns the errors of [`open_file`], and an error for a symbolic link to a file that does not exist.
pub fn find_file(path: &Path) -> io::Result<Option<File>> {
    match open_file(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => match fs::symlink_metadata(path) {
            Ok(_) => Err(io::Error::other("is a symbolic link to a file that is not there")),
            Err(_) => Ok(None),
        },
        found => found.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_not_read() {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("summary.json");
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(read_json::<u64>(&path).unwrap_err().to_string().contains("is no file"));
    }

    #[test]
    fn a_file_that_could_not_be_filled_leaves_the_old_one() {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("summary.json");
        let put = |bytes: &'static [u8]| {
            move |writer: &mut BufWriter<File>| {
                writer.write_all(bytes).map_err(|why| Error::write(Path::new("x"), why))
            }
        };
        write_whole(&path, put(b"old")).unwrap();
        let broken = write_whole(&path, |writer| {
            put(b"half")(writer)?;
            Err(Error::Unusable("gone".to_owned()))
        });
        assert!(broken.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_summary_with_a_hole_of_64_gib_is_refused_at_once() {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("summary.json");
        fs::write(&path, b"{}\n").unwrap();
        File::options().write(true).open(&path).unwrap().set_len(64 << 30).unwrap();
        let begun = std::time::Instant::now();
        let why = read_json::<serde_json::Value>(&path).unwrap_err().to_string();
        assert!(why.contains("summary.json: not what talkpath writes there"), "{why}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}
