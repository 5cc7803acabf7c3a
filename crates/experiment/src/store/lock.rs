//! A file that one process at a time holds, until it closes the file or ends.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The lock of a directory in which one process at a time works. It is let go when this is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why a lock was not taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it, or has removed the folder in which it is.
    Busy,
    /// What the system says.
    Io(io::Error),
}

impl Lock {
    /// Takes the lock `path`; a file that is not there is made, its folder is not.
    ///
    /// The file is never replaced, so that all who open its name have the same one. It is open for writing:
    /// on NFS nothing else can be locked against all others (flock(2), "NFS details").
    ///
    /// # Errors
    /// [`LockError`].
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).custom_flags(NOT_THROUGH_A_LINK);
        let file = match options.open(path) {
            Ok(file) => file,
            Err(why) if why.kind() == ErrorKind::NotFound => return Err(LockError::Busy),
            Err(why) => return Err(LockError::Io(why)),
        };
        file.try_lock().map_err(|why| match why {
            TryLockError::WouldBlock => LockError::Busy,
            TryLockError::Error(why) => LockError::Io(why),
        })?;
        // Whoever held it may have removed the folder before it let go.
        let identity = |found: Metadata| (found.dev(), found.ino());
        match (file.metadata().map(identity), fs::metadata(path).map(identity)) {
            (Ok(ours), Ok(named)) if ours == named => Ok(Self { _file: file }),
            _ => Err(LockError::Busy),
        }
    }

    /// Whether a process holds the lock `path`. It may be on a disk that is only read.
    ///
    /// # Errors
    /// The system's.
    pub fn is_held(path: &Path) -> io::Result<bool> {
        let file = match File::open(path) {
            // No process has worked there.
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(why)) => Err(why),
        }
    }
}

/// open(2): an error where the name is a symbolic link.
pub const NOT_THROUGH_A_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

#[cfg(test)]
mod tests {
    use rustix::fs::{OFlags, fcntl_getfl};

    use super::*;

    #[test]
    fn what_is_locked_is_open_for_writing_as_nfs_demands() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::take(&folder.path().join("lock")).unwrap();
        assert!(fcntl_getfl(&lock._file).unwrap().contains(OFlags::RDWR));
    }
}
