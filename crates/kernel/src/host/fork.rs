//! The system calls that make the two hosts: namespaces, and descriptors handed from process to process.
//! Their devices are made in `cable.rs`.
//!
//! A function that is marked "after fork" allocates nothing and takes no lock. So it may run in the child of
//! a process with several threads (signal-safety(7)).
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

/// Descriptors that one message carries at most; the kernel's SCM_MAX_FD is 253.
pub const MAX_DESCRIPTORS: usize = 200;

/// The side of [`fork`] on which its caller is.
pub enum Forked {
    /// This is the child.
    Child,
    /// The parent, and the child's process id.
    Parent(Pid),
}

/// Splits the process. The child has only the calling thread, so it may only call functions that are marked
/// "after fork". rustix has no fork that leaves libc's state whole.
///
/// # Errors
/// The system's.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: fork(2) itself has no preconditions. What the child may do is this function's contract, which
    // its only caller keeps (`be_helper` of `emu`).
    let result = unsafe { libc::fork() };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // A process id is positive: `from_raw` takes 0 for none.
    Ok(Pid::from_raw(result).map_or(Forked::Child, Forked::Parent))
}

/// Ends this process at once, without the work of a normal exit. rustix has no such call. After fork.
pub fn exit_now() -> ! {
    // SAFETY: `_exit` has no preconditions and does not return.
    unsafe { libc::_exit(0) }
}

/// Makes the kernel kill this process when the thread that forked it ends. After fork.
pub fn die_with_parent() {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}

/// Waits for a child to end. The error is ignored if somebody else has already waited for the child.
pub fn reap(child: Pid) {
    let _ = rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(child), WaitOptions::empty()));
}

/// Moves the calling process into a new network namespace, and with `user_too` into a new user namespace.
/// After fork.
///
/// # Errors
/// The system's.
pub fn unshare(user_too: bool) -> io::Result<()> {
    let user = if user_too { UnshareFlags::NEWUSER } else { UnshareFlags::empty() };
    unshare_namespaces(UnshareFlags::NEWNET | user)
}

/// Moves the calling process into a new mount namespace. After fork.
///
/// # Errors
/// Returns the system's error. It is `EPERM` without CAP_SYS_ADMIN in this process's user namespace.
pub(super) fn unshare_mounts() -> io::Result<()> {
    unshare_namespaces(UnshareFlags::NEWNS)
}

/// Moves the calling process into new namespaces. `flags` must not have [`UnshareFlags::FILES`].
fn unshare_namespaces(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: without that flag the table of descriptors stays shared.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Writes `text` to a file that exists. After fork.
///
/// # Errors
/// The system's.
pub fn write_file(path: &CStr, text: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    if rustix::io::write(file, text)? == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Opens a file for reading. After fork.
///
/// # Errors
/// The system's.
pub fn open_file(path: &CStr) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Sends `text` and the descriptors `fds`, at most [`MAX_DESCRIPTORS`], in one message. After fork.
///
/// # Errors
/// The system's.
pub fn send_descriptors(socket: BorrowedFd<'_>, text: &[u8], fds: &[OwnedFd]) -> io::Result<()> {
    let fds = &fds[..fds.len().min(MAX_DESCRIPTORS)];
    let mut borrowed = [socket; MAX_DESCRIPTORS];
    for (place, fd) in borrowed.iter_mut().zip(fds) {
        *place = fd.as_fd();
    }
    let mut space = [MaybeUninit::uninit(); CONTROL];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        // There is room for all that may be sent.
        control.push(SendAncillaryMessage::ScmRights(&borrowed[..fds.len()]));
    }
    let text_parts = [io::IoSlice::new(text)];
    let sent = rustix::net::sendmsg(socket, &text_parts, &mut control, SendFlags::NOSIGNAL)?;
    if sent == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives one message of [`send_descriptors`] into `text`, and appends its descriptors to `fds`. Returns
/// its length, which is zero if the other end is gone.
///
/// # Errors
/// The system's.
pub fn receive_descriptors(
    socket: BorrowedFd<'_>,
    text: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); CONTROL];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::io::retry_on_intr(|| {
        let mut text_parts = [io::IoSliceMut::new(text)];
        rustix::net::recvmsg(socket, &mut text_parts, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            fds.extend(received);
        }
    }
    Ok(message.bytes)
}

/// Puts the calling thread into SCHED_FIFO one step above the endpoints' threads. A packet that they send
/// then wakes the emulator at once on their own processor. Otherwise the emulator would wait for a sleeping
/// processor (measured; docs/models/emulation.md).
///
/// # Errors
/// The system's: `PermissionDenied` without CAP_SYS_NICE or an RLIMIT_RTPRIO of 2.
pub fn become_emulator() -> io::Result<()> {
    become_fifo(2)
}

/// The space for [`MAX_DESCRIPTORS`] descriptors.
const CONTROL: usize = rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS));
