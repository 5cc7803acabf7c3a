//! The system calls that make the two hosts: namespaces, and descriptors handed from process to process. Their devices are
//! made in `link.rs`.
//!
//! What is marked "after fork" allocates nothing and takes no lock, so that it may run in the child of a process with
//! several threads (signal-safety(7)).
#![expect(unsafe_code, reason = "these calls have no safe wrapper; each block says why it is sound")]

use std::ffi::CStr;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Descriptors that one message carries at most; the kernel's SCM_MAX_FD is 253.
pub(super) const MOST_DESCRIPTORS: usize = 200;

/// What becomes of the caller of [`fork`].
pub(super) enum Forked {
    /// This is the child.
    Child,
    /// The parent, and the child's process id.
    Parent(libc::pid_t),
}

/// Splits the process. The child has the calling thread alone: it may only do what is marked "after fork".
///
/// # Errors
/// The system's.
pub(super) fn fork() -> io::Result<Forked> {
    // SAFETY: the child's contract is this function's, and its only caller keeps it (`world.rs`, `be_helper`).
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        child => Ok(Forked::Parent(child)),
    }
}

/// Ends this process at once, running nothing of what a normal exit runs. After fork.
pub(super) fn exit_now() -> ! {
    // SAFETY: `_exit` has no preconditions and does not return.
    unsafe { libc::_exit(0) }
}

/// Has the kernel kill this process when the thread that forked it ends. After fork.
pub(super) fn die_with_parent() {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Waits for a child to end; one that somebody else has waited for is as good.
pub(super) fn reap(child: libc::pid_t) {
    // SAFETY: a null status pointer is allowed.
    while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Leaves for new namespaces. After fork.
///
/// # Errors
/// The system's.
pub(super) fn unshare(user_too: bool) -> io::Result<()> {
    let flags = libc::CLONE_NEWNET | if user_too { libc::CLONE_NEWUSER } else { 0 };
    // SAFETY: `unshare` takes flags alone.
    check(unsafe { libc::unshare(flags) })
}

/// Writes `text` to a file that exists. After fork.
///
/// # Errors
/// The system's.
pub(super) fn write_file(path: &CStr, text: &[u8]) -> io::Result<()> {
    let file = open(path, libc::O_WRONLY | libc::O_CLOEXEC)?;
    // SAFETY: the pointer is to `text.len()` live bytes, which the kernel reads.
    let written = unsafe { libc::write(file.as_raw_fd(), text.as_ptr().cast(), text.len()) };
    if written == text.len() as isize { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Opens a file for reading. After fork.
///
/// # Errors
/// The system's.
pub(super) fn open_file(path: &CStr) -> io::Result<OwnedFd> {
    open(path, libc::O_RDONLY | libc::O_CLOEXEC)
}

pub(super) fn open(path: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: `path` is a live C string; no file is created, so there is no mode.
    let fd = unsafe { libc::open(path.as_ptr(), flags) };
    check(fd)?;
    // SAFETY: the call has just given us this descriptor, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets an integer socket option. After fork.
///
/// # Errors
/// The system's.
pub(super) fn set_option(
    fd: RawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the option value is a live `c_int` of the length given.
    check(unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })
}

/// Sends `text` and the descriptors `fds`, at most [`MOST_DESCRIPTORS`], in one message. After fork.
///
/// # Errors
/// The system's.
pub(super) fn send_descriptors(socket: BorrowedFd<'_>, text: &[u8], fds: &[OwnedFd]) -> io::Result<()> {
    let mut control = Control([0; CONTROL]);
    let mut iovec = libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len() };
    // SAFETY: `msghdr` is plain old data, for which all zeroes is a valid value.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut iovec;
    header.msg_iovlen = 1;
    let fds = &fds[..fds.len().min(MOST_DESCRIPTORS)];
    if !fds.is_empty() {
        let bytes = size_of_val(fds) as u32;
        header.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: CMSG_SPACE and CMSG_LEN compute; the buffer has room for MOST_DESCRIPTORS descriptors behind one
        // aligned header, which CMSG_FIRSTHDR finds at its beginning.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(bytes) as _;
            let message = libc::CMSG_FIRSTHDR(&raw const header);
            (*message).cmsg_level = libc::SOL_SOCKET;
            (*message).cmsg_type = libc::SCM_RIGHTS;
            (*message).cmsg_len = libc::CMSG_LEN(bytes) as _;
            let data = libc::CMSG_DATA(message).cast::<RawFd>();
            for (index, fd) in fds.iter().enumerate() {
                data.add(index).write_unaligned(fd.as_raw_fd());
            }
        }
    }
    // SAFETY: every pointer in `header` is to a live buffer of the length beside it; the kernel only reads them.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
    if sent == text.len() as isize { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives one message of [`send_descriptors`] into `text`, its descriptors appended to `fds`; returns its length, zero
/// where the other end is gone.
///
/// # Errors
/// The system's.
pub(super) fn receive_descriptors(
    socket: BorrowedFd<'_>,
    text: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut control = Control([0; CONTROL]);
    let mut iovec = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: text.len() };
    // SAFETY: `msghdr` is plain old data, for which all zeroes is a valid value.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut iovec;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL as _;
    let length = loop {
        // SAFETY: every pointer in `header` is to a live buffer of the length beside it, exclusively borrowed here.
        let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC) };
        match usize::try_from(length) {
            Ok(length) => break length,
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    };
    // SAFETY: the kernel filled `header`; CMSG_FIRSTHDR gives null or a header inside the live buffer, whose payload is as
    // long as its length says; a descriptor in SCM_RIGHTS is new and ours alone.
    unsafe {
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        if !message.is_null()
            && (*message).cmsg_level == libc::SOL_SOCKET
            && (*message).cmsg_type == libc::SCM_RIGHTS
        {
            let bytes = ((*message).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            let data = libc::CMSG_DATA(message).cast::<RawFd>();
            for index in 0..bytes / size_of::<RawFd>() {
                fds.push(OwnedFd::from_raw_fd(data.add(index).read_unaligned()));
            }
        }
    }
    Ok(length)
}

/// Puts the calling thread into SCHED_FIFO one step above the endpoints' threads: what they send then wakes the emulator
/// on their own processor at once, where it would otherwise wait for a sleeping one (measured; docs/emulation.md).
///
/// # Errors
/// The system's: `PermissionDenied` without CAP_SYS_NICE or an RLIMIT_RTPRIO of 2.
pub(super) fn become_emulator() -> io::Result<()> {
    // SAFETY: `sched_param` is plain old data, for which all zeroes is a valid value.
    let mut parameter: libc::sched_param = unsafe { zeroed() };
    parameter.sched_priority = 2;
    // SAFETY: thread 0 is the caller, and the parameter outlives the call.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) })
}

pub(super) fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Control messages are aligned as `cmsghdr` is.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Room for one header and [`MOST_DESCRIPTORS`] descriptors.
const CONTROL: usize = 16 + 4 * MOST_DESCRIPTORS + 16;
