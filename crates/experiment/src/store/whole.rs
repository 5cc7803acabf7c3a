//! Files that are written whole or not at all, and how they are read again.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::Error;

/// Writes `path` under another name and renames it.
///
/// No symbolic link is written through, neither at `path`, where it is replaced, nor at the other name, which
/// nobody can foresee and which must not be there (O_EXCL).
///
/// # Errors
/// Those of `fill`, and [`Error::Write`]; the file that was there before then stays.
pub fn write_whole<E: From<Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |why| Error::write(path, why);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // What is not renamed in the end is removed.
    let draft = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .suffix(DRAFT)
        .permissions(fs::Permissions::from_mode(AS_THE_UMASK_SAYS))
        .tempfile_in(folder)
        .map_err(failed)?;
    let (file, draft) = draft.into_parts();
    let mut writer = BufWriter::with_capacity(WRITE_AT_ONCE, file);
    fill(&mut writer)?;
    writer.flush().map_err(failed)?;
    draft.persist(path).map_err(|why| failed(why.error))?;
    Ok(())
}

/// Writes `bytes` to `path`, whole or not at all.
///
/// # Errors
/// [`Error::Write`].
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_whole(path, |writer| writer.write_all(bytes).map_err(|why| Error::write(path, why)))
}

/// Writes `bytes` to `path`, whole or not at all; they are on the disk when this returns.
///
/// # Errors
/// [`Error::Write`].
pub fn write_lasting(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_whole(path, |writer| {
        let written = writer.write_all(bytes).and_then(|()| writer.flush());
        written.and_then(|()| writer.get_ref().sync_all()).map_err(|why| Error::write(path, why))
    })?;
    sync_folder(path.parent().unwrap_or(Path::new("")))
}

/// Writes the names in `folder` through to the disk: a file that was created or renamed there outlasts a
/// power cut.
///
/// # Errors
/// [`Error::Write`].
pub fn sync_folder(folder: &Path) -> Result<(), Error> {
    // The parent of a plain name is empty.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder).and_then(|open| open.sync_all()).map_err(|why| Error::write(folder, why))
}

/// A JSON file that an earlier command wrote.
///
/// # Errors
/// [`Error::Read`], or [`Error::Unusable`] if it does not hold what it should.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let bytes = open_file(path).and_then(read_text).map_err(|why| Error::read(path, why))?;
    serde_json::from_slice(&bytes).map_err(|why| unexpected_json(path, &why))
}

/// The bytes of `file`, to the first part of it that has a NUL. No text has one (RFC 8259 §7), and a file
/// with a hole, which reads as NULs, may claim any length.
fn read_text(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let known = bytes.len();
        (&mut file).take(TEXT_PART).read_to_end(&mut bytes)?;
        if bytes.len() == known || bytes[known..].contains(&0) {
            return Ok(bytes);
        }
    }
}

/// What is said of a file that does not hold what it should.
pub fn unexpected_json(path: &Path, why: &serde_json::Error) -> Error {
    Error::Unusable(format!("{}: not what talkpath writes there: {why}", path.display()))
}

/// Opens a file of a run directory to read it. A device or a pipe may have no end.
///
/// # Errors
/// The system's, and that it is no file.
pub fn open_file(path: &Path) -> io::Result<File> {
    let found = fs::metadata(path)?;
    if !found.is_file() && !found.is_dir() {
        return Err(io::Error::other("is no file"));
    }
    File::open(path)
}

/// As [`open_file`], of a file that need not be there: `None` if nothing has its name. A symbolic link that
/// leads nowhere has it.
///
/// # Errors
/// As of [`open_file`].
pub fn find_file(path: &Path) -> io::Result<Option<File>> {
    match open_file(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => match fs::symlink_metadata(path) {
            Ok(_) => Err(io::Error::other("is a symbolic link to a file that is not there")),
            Err(_) => Ok(None),
        },
        found => found.map(Some),
    }
}

/// What the names of files end with that are being written.
const DRAFT: &str = ".draft";

/// The mode of a new file before the umask (open(2)).
const AS_THE_UMASK_SAYS: u32 = 0o666;

/// Chosen: record files come in pieces of 8 KiB, and a call to the system for each takes longer than one more
/// copy.
pub const WRITE_AT_ONCE: usize = 64 * 1024;
/// So many bytes of a text are read before they are looked at. Chosen: a file's first hole costs no more.
const TEXT_PART: u64 = 1 << 20;

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
