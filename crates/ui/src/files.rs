//! Files and folders under the folder of runs: which names the page may use, and how they are opened. No name
//! leads out of the folder, and no symbolic link is followed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use talkpath_experiment::Error;
use talkpath_experiment::store::lock::O_NOFOLLOW;

/// The private folder of the window, in the folder of runs: its lock, its address, and what it started.
pub(crate) const PRIVATE: &str = ".talkpath-ui";
/// The folder of the files that the user gave to the page: files to send, keys and scenarios.
pub(crate) const GIVEN: &str = "given";
/// The folder in which a far end keeps files, and its log.
pub(crate) const RECEIVED: &str = "received";
/// Rights of a folder that only its owner enters.
const OWNER_FOLDER: u32 = 0o700;
/// Rights of a file that only its owner reads.
const OWNER_FILE: u32 = 0o600;
/// The longest name (NAME_MAX of Linux's file systems).
const MAX_NAME: usize = 255;

/// Returns `folder/name` if `name` is the name of a file or folder right in `folder`: no path, not hidden.
pub(crate) fn within(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let is_plain = !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.starts_with('.')
        && !name.contains(['/', '\\', '\0'])
        && !name.chars().any(char::is_control);
    if is_plain {
        return Ok(folder.join(name));
    }
    Err(format!("{name:?}: expected a name in the folder of runs, without `/` and not beginning with a dot"))
}

/// Returns the directory `name` right in `folder`, which is no symbolic link.
pub(crate) fn directory_within(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let path = within(folder, name)?;
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => Ok(path),
        Ok(found) if found.is_symlink() => {
            Err(format!("{name:?}: is a link, which may lead out of the folder"))
        }
        Ok(_) => Err(format!("{name:?}: is no directory")),
        Err(why) if why.kind() == ErrorKind::NotFound => {
            Err(format!("{name}: it is not in the folder of runs any more; somebody has deleted it"))
        }
        Err(why) => Err(format!("{name:?}: {why}")),
    }
}

/// Reads the file `path`, of at most `most` bytes, if it is a regular file and no link.
pub(crate) fn read_plain(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // A pipe would wait for a writer without O_NONBLOCK; of a regular file it has no effect (open(2)).
    let flags = O_NOFOLLOW | rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "no regular file"));
    }
    if found.len() > most {
        let text = format!("{} B, more than the {most} B that the page shows", found.len());
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Makes a folder that only its owner enters. One that is there is taken if it is a directory and no link.
pub(crate) fn make_private_folder(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(OWNER_FOLDER).create(path) {
        Ok(()) => Ok(()),
        Err(why) if why.kind() == ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(path).map_err(|why| Error::write(path, why))?;
            if !found.is_dir() {
                return Err(Error::Unusable(format!("{}: is no directory", path.display())));
            }
            fs::set_permissions(path, fs::Permissions::from_mode(OWNER_FOLDER))
                .map_err(|why| Error::write(path, why))
        }
        Err(why) => Err(Error::write(path, why)),
    }
}

/// Begins the new file `path`, which only its owner reads. A file that is there is not replaced.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(OWNER_FILE).open(path)
}

/// Writes a file that only its owner reads, in place of one that is there.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let written = || {
        match fs::remove_file(path) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        let mut file = create_private(path)?;
        file.write_all(bytes)
    };
    written().map_err(|why| Error::write(path, why))
}

/// The names of the regular files right in `folder`, sorted. Empty if there is no such folder.
pub(crate) fn names_of_files(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    let files = entries.flatten().filter(is_file);
    let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_out_of_the_folder_is_refused() {
        let out = tempfile::tempdir().unwrap();
        for name in ["..", ".", "../x", "a/b", "/etc/passwd", "", ".talkpath-ui", "a\0b", "a\nb", "a\\b"] {
            assert!(within(out.path(), name).is_err(), "{name:?}");
        }
        assert!(within(out.path(), &"x".repeat(MAX_NAME + 1)).is_err());
        assert_eq!(within(out.path(), "2026-run").unwrap(), out.path().join("2026-run"));
    }

    #[test]
    fn a_link_in_place_of_a_directory_or_a_file_is_not_followed() {
        let (out, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(elsewhere.path(), out.path().join("link")).unwrap();
        assert!(directory_within(out.path(), "link").unwrap_err().contains("link"));
        fs::write(elsewhere.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("secret"), out.path().join("file")).unwrap();
        assert!(read_plain(&out.path().join("file"), 10).is_err());
        fs::write(out.path().join("plain"), "12345").unwrap();
        assert_eq!(read_plain(&out.path().join("plain"), 5).unwrap(), b"12345");
        assert_eq!(read_plain(&out.path().join("plain"), 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(read_plain(out.path(), 10).is_err());
    }

    #[test]
    fn what_is_private_is_read_by_its_owner_alone() {
        let out = tempfile::tempdir().unwrap();
        let folder = out.path().join(PRIVATE);
        make_private_folder(&folder).unwrap();
        make_private_folder(&folder).unwrap();
        write_private(&folder.join(LOCKED), b"a").unwrap();
        write_private(&folder.join(LOCKED), b"b").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(LOCKED))), (OWNER_FOLDER, OWNER_FILE));
        assert_eq!(fs::read(folder.join(LOCKED)).unwrap(), b"b");
    }

    const LOCKED: &str = "address";
}
