//! The system calls that make the two hosts: namespaces, TUN devices, and descriptors handed from process to process.
//!
//! What is marked "after fork" allocates nothing and takes no lock, so that it may run in the child of a process with
//! several threads (signal-safety(7)).
#![expect(unsafe_code, reason = "these calls have no safe wrapper; each block says why it is sound")]

use std::ffi::CStr;
use std::io;
use std::mem::{size_of, zeroed};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Descriptors that one message carries at most; the kernel's SCM_MAX_FD is 253.
pub(super) const MOST_DESCRIPTORS: usize = 200;

/// `struct ifreq` of linux/if.h: a name and 24 bytes of whatever the request is about.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    value: [u8; 24],
}

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

fn open(path: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: `path` is a live C string; no file is created, so there is no mode.
    let fd = unsafe { libc::open(path.as_ptr(), flags) };
    check(fd)?;
    // SAFETY: the call has just given us this descriptor, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes a TUN device of this network namespace: IPv4 packets, one a read and one a write, each behind a `virtio_net_hdr`.
/// After fork.
///
/// # Errors
/// The system's.
pub(super) fn open_tun(name: &CStr) -> io::Result<OwnedFd> {
    let tun = open(c"/dev/net/tun", libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC)?;
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
    let mut request = InterfaceRequest::new(name);
    request.value[..2].copy_from_slice(&flags.to_ne_bytes());
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which `request` is.
    check(unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    Ok(tun)
}

/// Offers the host of the TUN device `tun` to cut its super-packets and to complete its checksums; returns whether that holds
/// for UDP too.
pub(super) fn offer_offloads(tun: &OwnedFd) -> bool {
    // SAFETY: TUNSETOFFLOAD takes its flags by value and touches no memory.
    let offer =
        |flags: libc::c_ulong| unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETOFFLOAD as _, flags) } == 0;
    let takes_all = offer(OFFLOAD_CHECKSUM | OFFLOAD_TSO4 | OFFLOAD_USO);
    if !takes_all {
        // Linux before 6.2. Where this is refused too, the host cuts and sums for itself.
        offer(OFFLOAD_CHECKSUM | OFFLOAD_TSO4);
    }
    takes_all
}

/// Gives the device its MTU, its queue's length and its address in a network of four, and brings it up; returns its index.
/// After fork.
///
/// # Errors
/// The system's.
pub(super) fn bring_up(name: &CStr, address: Ipv4Addr, mtu: u16) -> io::Result<i32> {
    // SAFETY: `socket` takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(fd)?;
    // SAFETY: the call has just given us this descriptor, which nobody else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let set = |request: libc::c_ulong, value: &[u8]| {
        let mut interface = InterfaceRequest::new(name);
        interface.value[..value.len()].copy_from_slice(value);
        // SAFETY: each of these requests reads one `ifreq`, which `interface` is.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw mut interface) })
    };
    set(libc::SIOCSIFMTU, &i32::from(mtu).to_ne_bytes())?;
    set(libc::SIOCSIFADDR, &inet_address(address))?;
    set(libc::SIOCSIFNETMASK, &inet_address(NETWORK_OF_FOUR))?;
    let mut interface = InterfaceRequest::new(name);
    // SAFETY: SIOCGIFINDEX writes one `ifreq`, which `interface` is.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFINDEX as _, &raw mut interface) })?;
    let [a, b, c, d, ..] = interface.value;
    let index = i32::from_ne_bytes([a, b, c, d]);
    set_queue_length(index)?;
    let up = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    set(libc::SIOCSIFFLAGS, &up.to_ne_bytes())?;
    Ok(index)
}

/// What a route says of TCP (ip-route(8)); zero leaves it to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RouteTcp {
    /// `initcwnd`: the initial congestion window, in segments.
    pub(super) initial_window: u32,
    /// `quickack`: whether every segment is acknowledged at once.
    pub(super) quick_acks: bool,
}

/// Makes a route to the host `to` over the device `index` that says this of TCP. After fork.
///
/// # Errors
/// The system's.
pub(super) fn add_route(index: i32, to: Ipv4Addr, tcp: RouteTcp) -> io::Result<()> {
    // nlmsghdr; rtmsg: family, length of the destination, ..., table, protocol, scope, type, flags; destination, device, and
    // the metrics, which are attributes in an attribute.
    let mut request = [0_u8; 64];
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    request[0..4].copy_from_slice(&64_u32.to_ne_bytes());
    request[4..6].copy_from_slice(&libc::RTM_NEWROUTE.to_ne_bytes());
    request[6..8].copy_from_slice(&(flags as u16).to_ne_bytes());
    request[16] = libc::AF_INET as u8;
    request[17] = 32;
    request[20] = libc::RT_TABLE_MAIN;
    request[21] = libc::RTPROT_STATIC;
    request[22] = libc::RT_SCOPE_LINK;
    request[23] = libc::RTN_UNICAST;
    let mut attribute = |at: usize, length: u16, kind: u16, value: [u8; 4]| {
        request[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        request[at + 2..at + 4].copy_from_slice(&kind.to_ne_bytes());
        request[at + 4..at + 8].copy_from_slice(&value);
    };
    attribute(28, 8, libc::RTA_DST, to.octets());
    attribute(36, 8, libc::RTA_OIF, index.to_ne_bytes());
    // The value of RTA_METRICS begins with the first attribute inside, which the next two lines write.
    attribute(44, 20, libc::RTA_METRICS, [0; 4]);
    attribute(48, 8, RTAX_INITCWND, tcp.initial_window.to_ne_bytes());
    attribute(56, 8, RTAX_QUICKACK, u32::from(tcp.quick_acks).to_ne_bytes());
    ask_rtnetlink(&request)
}

/// Sets a device's txqueuelen by rtnetlink(7): the ioctl for it wants the machine's root, this the namespace's.
fn set_queue_length(index: i32) -> io::Result<()> {
    // nlmsghdr: length, type, flags, sequence, port; ifinfomsg: family, type, index, flags, change; rtattr: length, type.
    let mut request = [0_u8; 40];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    request[0..4].copy_from_slice(&40_u32.to_ne_bytes());
    request[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    request[20..24].copy_from_slice(&index.to_ne_bytes());
    request[32..34].copy_from_slice(&8_u16.to_ne_bytes());
    request[34..36].copy_from_slice(&libc::IFLA_TXQLEN.to_ne_bytes());
    request[36..40].copy_from_slice(&QUEUE_LENGTH.to_ne_bytes());
    ask_rtnetlink(&request)
}

/// Sends a request to rtnetlink(7) and reads the answer.
fn ask_rtnetlink(request: &[u8]) -> io::Result<()> {
    // SAFETY: `socket` takes no pointers.
    let fd =
        unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
    check(fd)?;
    // SAFETY: the call has just given us this descriptor, which nobody else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the pointer is to the live bytes of the request, which the kernel reads.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if sent != request.len() as isize {
        return Err(io::Error::last_os_error());
    }
    let mut answer = [0_u8; 256];
    // SAFETY: the pointer is to 256 live bytes, exclusively borrowed, which the kernel writes at most.
    let received = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
    if received < 20 {
        return Err(io::Error::last_os_error());
    }
    // nlmsgerr: zero, or the error's number below zero.
    match i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

/// The first 8 bytes of a `sockaddr_in`: family, no port, address.
fn inet_address(address: Ipv4Addr) -> [u8; 8] {
    let family = (libc::AF_INET as u16).to_ne_bytes();
    let [a, b, c, d] = address.octets();
    [family[0], family[1], 0, 0, a, b, c, d]
}

impl InterfaceRequest {
    fn new(name: &CStr) -> Self {
        let mut request = Self { name: [0; 16], value: [0; 24] };
        // The last byte stays zero: names are shorter.
        for (to, from) in request.name[..15].iter_mut().zip(name.to_bytes()) {
            *to = *from;
        }
        request
    }
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

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Control messages are aligned as `cmsghdr` is.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Room for one header and [`MOST_DESCRIPTORS`] descriptors.
const CONTROL: usize = 16 + 4 * MOST_DESCRIPTORS + 16;
/// Packets that wait in the device for the emulator (txqueuelen): a sender's whole window leaves in one go, and what
/// finds no room is no decision of the path's (chosen: 45 MB of full packets).
const QUEUE_LENGTH: i32 = 32_768;
/// linux/if_tun.h: `_IOW('T', 208, unsigned int)`.
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
/// TUN_F_CSUM, TUN_F_TSO4 of the same.
const OFFLOAD_CHECKSUM: libc::c_ulong = 0x01;
const OFFLOAD_TSO4: libc::c_ulong = 0x02;
/// TUN_F_USO4 and TUN_F_USO6, which the kernel takes together only.
const OFFLOAD_USO: libc::c_ulong = 0x20 | 0x40;
/// RTAX_INITCWND and RTAX_QUICKACK of linux/rtnetlink.h.
const RTAX_INITCWND: u16 = 11;
const RTAX_QUICKACK: u16 = 15;
/// 255.255.255.252: the two hosts and nobody else.
const NETWORK_OF_FOUR: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 252);
