//! Locks between processes. A lock is a file that one process at a time locks, until it closes the file or
//! ends.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The flag with which open(2) fails if the last part of the path is a symbolic link.
pub const O_NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// A lock that this process holds. It is released when this is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Why a lock could not be taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds the lock, or the folder of the lock file does not exist. Another process may
    /// have removed the folder.
    Busy,
    /// The lock file could not be opened or locked.
    Io(io::Error),
}

impl Lock {
    /// Takes the lock whose file is `path`. The file is made if it does not exist, but its folder is not.
    ///
    /// The file is never replaced, so all processes that open this name open the same file. It is opened for
    /// writing, because NFS allows an exclusive lock only on such a file (flock(2), "NFS details").
    ///
    /// # Errors
    /// Returns [`LockError::Busy`] if another process holds the lock or the folder does not exist, and
    /// [`LockError::Io`] after an error of the system.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).custom_flags(O_NOFOLLOW);
        let file = match options.open(path) {
            Ok(file) => file,
            Err(why) if why.kind() == ErrorKind::NotFound => return Err(LockError::Busy),
            Err(why) => return Err(LockError::Io(why)),
        };
        file.try_lock().map_err(|why| match why {
            TryLockError::WouldBlock => LockError::Busy,
            TryLockError::Error(why) => LockError::Io(why),
        })?;
        // The process that held the lock may have removed the folder before it released the lock. In that
        // case the locked file is no longer the one that has this name.
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
        match (file.metadata().map(identity), fs::metadata(path).map(identity)) {
            (Ok(locked), Ok(named)) if locked == named => Ok(Self { file }),
            _ => Err(LockError::Busy),
        }
    }

    /// Returns whether a process holds the lock whose file is `path`. This works on a read-only disk, too.
    /// For a moment it takes a shared lock itself, so that [`Self::take`] in another process may fail
    /// meanwhile.
    ///
    /// # Errors
    /// Returns the error of the system if the file cannot be opened or locked.
    pub fn is_held(path: &Path) -> io::Result<bool> {
        let file = match File::open(path) {
            // No process has ever taken the lock.
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

impl Drop for Lock {
    /// Releases the lock at once. To close the file is not enough: a child process that another thread has
    /// just forked has a copy of the descriptor until it calls execve(2), and flock(2) holds a lock until the
    /// last copy is closed.
    fn drop(&mut self) {
        // If this fails, the lock is released when the last copy of the descriptor is closed.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{OFlags, fcntl_getfl};

    use super::*;

    #[test]
    fn what_is_locked_is_open_for_writing_as_nfs_demands() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::take(&folder.path().join("lock")).unwrap();
        assert!(fcntl_getfl(&lock.file).unwrap().contains(OFlags::RDWR));
    }

    #[test]
    fn a_lock_is_released_although_a_forked_child_still_has_its_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::take(&path).unwrap();
        let descriptor_of_the_child = lock.file.try_clone().unwrap();
        assert!(matches!(Lock::take(&path), Err(LockError::Busy)));
        drop(lock);
        Lock::take(&path).unwrap();
        drop(descriptor_of_the_child);
    }
}
