//! A mount namespace of one's own, in which files of this machine are covered by others.
//!
//! ip-netns(8) does the same for the resolver's file. The mounts are gone when the last process in the
//! namespace has ended, and no other process sees them.
#![expect(unsafe_code, reason = "mount(2) has no safe wrapper here; each block says why it is sound")]

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use super::fork::enter_mount_namespace;

/// The mount namespace of this process, which no other process shares.
#[derive(Debug)]
pub struct OwnMounts(());

impl OwnMounts {
    /// Moves this process into a mount namespace of its own. Mounts that are made outside later appear in the
    /// namespace, too. The process must have one thread only.
    ///
    /// # Errors
    /// Returns the system's error. It is `EPERM` without CAP_SYS_ADMIN in this process's user namespace.
    pub fn enter() -> io::Result<Self> {
        enter_mount_namespace()?;
        mount(None, c"/", None, libc::MS_REC | libc::MS_SLAVE)?;
        Ok(Self(()))
    }

    /// Covers the file `target` with the file `source`. A `target` that is a symbolic link stands for the
    /// file to which it leads.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn cover(&self, target: &Path, source: &Path) -> io::Result<()> {
        mount(Some(&terminated(source)?), &terminated(target)?, None, libc::MS_BIND)
    }

    /// Covers the file `target` with a file that holds `text`.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn cover_with_text(&self, target: &Path, text: &str) -> io::Result<()> {
        // The file is made on a file system in memory. That file system is taken away again, and stays alive
        // under `target` alone.
        mount(Some(c"talkpath"), STAGE, Some(c"tmpfs"), libc::MS_NOSUID | libc::MS_NODEV)?;
        let file = Path::new("/tmp/text");
        let covered = fs::write(file, text).and_then(|()| self.cover(target, file));
        // SAFETY: the path ends with a zero byte.
        let taken_away = check(unsafe { libc::umount2(STAGE.as_ptr(), libc::MNT_DETACH) });
        covered.and(taken_away)
    }
}

fn mount(source: Option<&CStr>, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: each pointer is null or leads to a text that ends with a zero byte. The kernel ignores a null
    // source or kind where the flags need none. The last argument may be null.
    check(unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, ptr::null()) })
}

fn terminated(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The directory on which the file system in memory lies for a moment.
const STAGE: &CStr = c"/tmp";
