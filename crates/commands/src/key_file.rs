//! The file with the key that a server and its clients share.

use std::fs::File;
use std::io::{self, Read};
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_key_is_read_whole_and_a_byte_more_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, [b'a'; MAX_KEY_FILE_BYTES as usize]).unwrap();
        assert_eq!(read_key_file(&path).unwrap().len() as u64, MAX_KEY_FILE_BYTES);
        std::fs::write(&path, [b'a'; MAX_KEY_FILE_BYTES as usize + 1]).unwrap();
        assert!(read_key_file(&path).unwrap_err().to_string().contains("more than 8192 B"));
    }
}
