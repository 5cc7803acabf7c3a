//! The process that makes the emulated hosts: it is forked, enters namespaces, and sends the parent the
//! descriptors that it has opened there.
//!
//! ```text
//!  parent ── fork ──► child: enter a namespace ─► open sockets and files ─► send_descriptors ─► exit_now
//!    └─ receive_descriptors ◄──────────────────────────────────────────────────────┘
//! ```
//!
//! The parent has several threads. The child has only the thread that called [`fork`], and a lock that
//! another thread held at the fork stays locked in the child for ever. So the child must call only
//! *fork-safe* functions: functions that allocate no memory and take no lock (signal-safety(7)). All
//! functions here are fork-safe, except [`fork`] and [`receive_descriptors`].
#![expect(unsafe_code, reason = "these calls have no safe wrapper; each block says why it is sound")]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::thread::UnshareFlags;

use crate::sys::become_fifo;

/// The largest number of descriptors in one message. We chose 200. The kernel's limit is 253 (SCM_MAX_FD).
pub const MAX_DESCRIPTORS: usize = 200;
/// The size of the control data of a message with [`MAX_DESCRIPTORS`] descriptors, bytes.
const CONTROL_SIZE: usize = rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS));
/// The priority of the emulator's thread in SCHED_FIFO. The threads of the flows' ends have priority 1.
const EMULATOR_PRIORITY: libc::c_int = 2;

/// The process in which [`fork`] returned.
pub enum Forked {
    /// The caller is the child.
    Child,
    /// The caller is the parent of the child with this process id.
    Parent(Pid),
}

/// Forks this process. The child must call only fork-safe functions, and must end by [`exit_now`].
///
/// # Errors
/// Returns the system's error if no process can be made.
pub fn fork() -> io::Result<Forked> {
    // rustix has only a fork that leaves libc's own state inconsistent.
    // SAFETY: fork(2) has no preconditions. All callers run only fork-safe functions in the child.
    let result = unsafe { libc::fork() };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // fork(2) returns 0 in the child. `Pid::from_raw` returns `None` for 0.
    Ok(Pid::from_raw(result).map_or(Forked::Child, Forked::Parent))
}

/// Ends the calling process at once. Destructors and exit handlers do not run.
pub fn exit_now() -> ! {
    // SAFETY: `_exit` has no preconditions and does not return.
    unsafe { libc::_exit(0) }
}

/// Makes the kernel kill the calling process when the thread that forked it ends.
pub fn die_with_parent() {
    // The error is ignored. The call fails only for an invalid signal (prctl(2), PR_SET_PDEATHSIG).
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}

/// Waits until the process `child` has ended.
pub fn reap(child: Pid) {
    // The error is ignored. The call fails only if somebody else has already waited for the child.
    let _ = rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(child), WaitOptions::empty()));
}

/// Moves the calling process into a new network namespace.
///
/// # Errors
/// Returns the system's error. It is `EPERM` without CAP_SYS_ADMIN in the user namespace of the process.
pub fn enter_network_namespace() -> io::Result<()> {
    enter_namespaces(UnshareFlags::NEWNET)
}

/// Moves the calling process into a new user namespace, and into a new network namespace that belongs to it.
///
/// # Errors
/// Returns the system's error. It is `EINVAL` if the process has several threads, and `EPERM` or `ENOSPC` if
/// this machine does not allow user namespaces.
pub fn enter_user_and_network_namespace() -> io::Result<()> {
    enter_namespaces(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)
}

/// Moves the calling process into a new mount namespace.
///
/// # Errors
/// Returns the system's error. It is `EPERM` without CAP_SYS_ADMIN in the user namespace of the process.
pub(super) fn enter_mount_namespace() -> io::Result<()> {
    enter_namespaces(UnshareFlags::NEWNS)
}

/// Moves the calling process into new namespaces. `namespaces` has only flags of namespaces.
fn enter_namespaces(namespaces: UnshareFlags) -> io::Result<()> {
    // SAFETY: unshare(2) is unsafe only with CLONE_FILES. With that flag, each thread has a table of
    // descriptors of its own, and an `OwnedFd` of another thread is not valid any more. Callers do not set
    // it.
    Ok(unsafe { rustix::thread::unshare_unsafe(namespaces) }?)
}

/// Writes `content` to the file `path`, which must exist.
///
/// # Errors
/// Returns the system's error, and `WriteZero` if the file took only a part.
pub fn write_file(path: &CStr, content: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    check_whole(rustix::io::write(file, content)?, content)
}

/// Opens the file `path` for reading.
///
/// # Errors
/// Returns the system's error.
pub fn open_file(path: &CStr) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Sends one message over the Unix socket `socket`: the bytes `payload`, and copies of `descriptors`.
///
/// # Errors
/// Returns the system's error, and `InvalidInput` if there are more than [`MAX_DESCRIPTORS`] descriptors.
pub fn send_descriptors(socket: BorrowedFd<'_>, payload: &[u8], descriptors: &[OwnedFd]) -> io::Result<()> {
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // A `Vec` would allocate memory, so this is an array of the largest size. `socket` only fills the
    // elements that are not sent.
    let mut borrowed = [socket; MAX_DESCRIPTORS];
    for (element, descriptor) in borrowed.iter_mut().zip(descriptors) {
        *element = descriptor.as_fd();
    }
    let mut control_space = [MaybeUninit::uninit(); CONTROL_SIZE];
    let mut control = SendAncillaryBuffer::new(&mut control_space);
    if !descriptors.is_empty() {
        // `push` returns false if `control_space` is too small. It is large enough for MAX_DESCRIPTORS.
        control.push(SendAncillaryMessage::ScmRights(&borrowed[..descriptors.len()]));
    }
    let parts = [io::IoSlice::new(payload)];
    check_whole(rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)?, payload)
}

/// Receives one message of [`send_descriptors`]. Copies the bytes of the message into `payload`, and appends
/// the descriptors to `descriptors`. Returns the number of bytes. It is zero if the other process has closed
/// its socket.
///
/// # Errors
/// Returns the system's error.
pub fn receive_descriptors(
    socket: BorrowedFd<'_>,
    payload: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut control_space = [MaybeUninit::uninit(); CONTROL_SIZE];
    let mut control = RecvAncillaryBuffer::new(&mut control_space);
    let message = rustix::io::retry_on_intr(|| {
        let mut parts = [io::IoSliceMut::new(payload)];
        rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    for ancillary in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = ancillary {
            descriptors.extend(received);
        }
    }
    Ok(message.bytes)
}

fn check_whole(written: usize, bytes: &[u8]) -> io::Result<()> {
    if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Gives the calling thread the real-time priority of the emulator, which is above that of the flows' ends. A
/// packet that an end sends then wakes the emulator at once on the processor of that end. At the same
/// priority the emulator would wait until another processor has woken up (measured;
/// docs/models/emulation.md).
///
/// # Errors
/// Returns the system's error. It is `PermissionDenied` without CAP_SYS_NICE and without an RLIMIT_RTPRIO of
/// 2.
pub fn take_emulator_priority() -> io::Result<()> {
    become_fifo(EMULATOR_PRIORITY)
}
