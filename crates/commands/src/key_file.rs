//! The file with the key that a server and its clients share.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The largest file that is read as a key, in bytes. We chose some hundred times the size of a key.
const MAX_KEY_FILE_BYTES: u64 = 8192;

/// Reads the whole file `path`, which may be a pipe.
///
/// # Errors
/// Returns the error of the system, or an error if the file is larger than any key.
pub fn read_key_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A pipe or a device has no size that could be checked before.
    File::open(path)?.take(MAX_KEY_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_KEY_FILE_BYTES {
        return Err(io::Error::other(format!(
            "found more than {MAX_KEY_FILE_BYTES} B, expected a key, as `head -c 32 /dev/urandom | base64` makes one"
        )));
    }
    Ok(bytes)
}

/// Returns a warning if other users of this machine can read the file `path`. A pipe or a device has no key
/// that stays.
pub fn exposure(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mode = metadata.permissions().mode() & 0o777;
    (mode & READABLE_BY_OTHERS != 0).then(|| {
        format!(
            "--key-file {0}: other users of this machine can read it (mode {mode:04o}), and who has the key can measure \
             with it; `chmod 600 {0}`",
            path.display()
        )
    })
}

/// The bits of a file's mode by which its group and all others may read it (chmod(2)).
const READABLE_BY_OTHERS: u32 = 0o044;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_key_is_read_whole_and_a_byte_more_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, [b'a'; MAX_KEY_FILE_BYTES as usize]).unwrap();
        assert_eq!(read_key_file(&path).unwrap().len() as u64, MAX_KEY_FILE_BYTES);
        fs::write(&path, [b'a'; MAX_KEY_FILE_BYTES as usize + 1]).unwrap();
        assert!(read_key_file(&path).unwrap_err().to_string().contains("more than 8192 B"));
    }

    #[test]
    fn a_key_that_others_can_read_is_named_with_its_mode_and_one_of_the_owner_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "key").unwrap();
        for (mode, is_exposed) in
            [(0o600, false), (0o400, false), (0o640, true), (0o644, true), (0o604, true)]
        {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let warning = exposure(&path);
            assert_eq!(warning.is_some(), is_exposed, "{mode:o}: {warning:?}");
            assert!(warning.is_none_or(|warning| warning.contains(&format!("(mode 0{mode:o})"))));
        }
        assert_eq!(exposure(Path::new("/dev/null")), None);
    }
}
