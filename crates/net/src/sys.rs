//! The system calls that no safe library offers: batched receive with kernel stamps, sending from a chosen source
//! address, TCP_INFO, the send queue's fill, the real-time scheduling class.
//!
//! All `unsafe` of the crate is here. Linux only.
#![expect(unsafe_code, reason = "these calls have no safe wrapper; each block says why it is sound")]

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams taken with one system call.
const BATCH: usize = 32;
/// The largest UDP payload over IPv4 is 65,507 B, over IPv6 65,527 B.
const DATAGRAM: usize = 65_536;
/// Room for the control messages that are asked for: stamps, a packet info or an address, a drop counter.
const CONTROL: usize = 256;

/// One received datagram.
pub(crate) struct Received<'a> {
    /// Who sent it; absent where the kernel gave no address.
    pub(crate) from: Option<SocketAddr>,
    /// Which of our addresses it came to, where the socket asked for that.
    pub(crate) to: Option<IpAddr>,
    /// CLOCK_REALTIME at which the kernel took it from the device, ns since 1970.
    pub(crate) stamp_ns: Option<i64>,
    /// Datagrams that this socket's buffer had no room for since it was opened, as of this one.
    pub(crate) drops: Option<u32>,
    /// The payload.
    pub(crate) payload: &'a [u8],
}

/// Buffers for [`ReceiveBatch::receive`], allocated once.
pub(crate) struct ReceiveBatch {
    data: Vec<u8>,
    control: Vec<ControlBuffer>,
    names: Vec<libc::sockaddr_storage>,
}

/// Control messages are aligned as `cmsghdr` is.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct ControlBuffer([u8; CONTROL]);

impl ReceiveBatch {
    /// Buffers for a full batch.
    pub(crate) fn new() -> Self {
        // SAFETY: `sockaddr_storage` is plain old data, for which all zeroes is a valid value.
        let name: libc::sockaddr_storage = unsafe { zeroed() };
        Self {
            data: vec![0; BATCH * DATAGRAM],
            control: vec![ControlBuffer([0; CONTROL]); BATCH],
            names: vec![name; BATCH],
        }
    }

    /// Takes what waits in the socket, at most one batch, without blocking; returns how many datagrams there were.
    ///
    /// # Errors
    /// The system's: `WouldBlock` where nothing waits, and ICMP errors of a connected socket.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        each: impl FnMut(Received<'_>),
    ) -> io::Result<usize> {
        self.take(socket, 0, each)
    }

    /// Takes what came back of sent datagrams ([`stamp_transmissions`]), at most one batch: each with whatever headers it
    /// had, its stamp being the time when the kernel gave it to the device.
    ///
    /// # Errors
    /// The system's: `WouldBlock` where nothing waits.
    pub(crate) fn receive_sent(
        &mut self,
        socket: BorrowedFd<'_>,
        each: impl FnMut(Received<'_>),
    ) -> io::Result<usize> {
        self.take(socket, libc::MSG_ERRQUEUE, each)
    }

    fn take(
        &mut self,
        socket: BorrowedFd<'_>,
        flags: libc::c_int,
        mut each: impl FnMut(Received<'_>),
    ) -> io::Result<usize> {
        // SAFETY: `iovec` and `mmsghdr` are plain old data, for which all zeroes is a valid value.
        let (mut iovecs, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        for index in 0..BATCH {
            iovecs[index].iov_base = self.data[index * DATAGRAM..].as_mut_ptr().cast();
            iovecs[index].iov_len = DATAGRAM;
            let header = &mut headers[index].msg_hdr;
            header.msg_name = (&raw mut self.names[index]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_iov = &raw mut iovecs[index];
            header.msg_iovlen = 1;
            header.msg_control = self.control[index].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL as _;
        }
        // SAFETY: every pointer in `headers` is to a live buffer of the length beside it, exclusively borrowed through
        // `self` and the two local arrays until the call returns.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT | flags,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (index, header) in headers.iter().enumerate().take(count) {
            let length = (header.msg_len as usize).min(DATAGRAM);
            let mut received = Received {
                from: address(&self.names[index]),
                to: None,
                stamp_ns: None,
                drops: None,
                payload: &self.data[index * DATAGRAM..index * DATAGRAM + length],
            };
            read_control(&header.msg_hdr, &mut received);
            each(received);
        }
        Ok(count)
    }
}

/// Reads the control messages of one received datagram.
fn read_control(header: &libc::msghdr, received: &mut Received<'_>) {
    // SAFETY: `header` was filled by the kernel and its control buffer is alive; CMSG_FIRSTHDR gives null or a header
    // inside that buffer.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: `message` is a control header inside the live buffer, as CMSG_FIRSTHDR or CMSG_NXTHDR returned it, and
        // the kernel wrote a payload of the type that level and type name behind it; payloads may be unaligned.
        unsafe {
            let data = libc::CMSG_DATA(message);
            match ((*message).cmsg_level, (*message).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let stamp: libc::timespec = data.cast::<libc::timespec>().read_unaligned();
                    received.stamp_ns =
                        Some(stamp.tv_sec.saturating_mul(1_000_000_000).saturating_add(stamp.tv_nsec));
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    // Three of them; the first is the kernel's own, zero where it has none.
                    let stamp: libc::timespec = data.cast::<libc::timespec>().read_unaligned();
                    let stamp = stamp.tv_sec.saturating_mul(1_000_000_000).saturating_add(stamp.tv_nsec);
                    received.stamp_ns = received.stamp_ns.or((stamp != 0).then_some(stamp));
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    received.drops = Some(data.cast::<u32>().read_unaligned());
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    received.to = Some(IpAddr::V4(u32::from_be(info.ipi_addr.s_addr).into()));
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    received.to = Some(IpAddr::V6(info.ipi6_addr.s6_addr.into()).to_canonical());
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
}

/// The socket address in `storage`, an IPv4 one without its IPv6 mapping.
fn address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the kernel wrote a `sockaddr_in`, which `sockaddr_storage` has room and
            // alignment for.
            let v4 = unsafe { *(&raw const *storage).cast::<libc::sockaddr_in>() };
            let ip = u32::from_be(v4.sin_addr.s_addr).into();
            Some(SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(v4.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: as above, with `sockaddr_in6`.
            let v6 = unsafe { *(&raw const *storage).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let address = SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id);
            Some(canonical(SocketAddr::V6(address)))
        }
        _ => None,
    }
}

/// `address` with an IPv4-mapped IPv6 address written as IPv4.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Sends one datagram from `from` (one of this host's addresses, so that the answer of a host with many comes from the
/// one that was asked) to `to`. `v6_socket` says which family the socket is of: IPv4 then goes mapped.
///
/// # Errors
/// The system's.
pub(crate) fn send_from(
    socket: BorrowedFd<'_>,
    v6_socket: bool,
    payload: &[u8],
    from: IpAddr,
    to: SocketAddr,
) -> io::Result<usize> {
    let to = match (v6_socket, to) {
        (true, SocketAddr::V4(v4)) => {
            SocketAddr::V6(SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0))
        }
        (_, other) => other,
    };
    let to = socket2::SockAddr::from(to);
    let mut control = ControlBuffer([0; CONTROL]);
    let mut iovec = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
    // SAFETY: `msghdr` is plain old data, for which all zeroes is a valid value.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_name = to.as_ptr().cast_mut().cast();
    header.msg_namelen = to.len();
    header.msg_iov = &raw mut iovec;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL as _;
    let used = match (v6_socket, from) {
        (true, IpAddr::V6(ip)) => put_source_v6(&header, ip),
        (true, IpAddr::V4(ip)) => put_source_v6(&header, ip.to_ipv6_mapped()),
        (false, IpAddr::V4(ip)) => put_source_v4(&header, ip),
        (false, IpAddr::V6(_)) => 0,
    };
    header.msg_controllen = used as _;
    if used == 0 {
        header.msg_control = std::ptr::null_mut();
    }
    // SAFETY: every pointer in `header` is to a live buffer of the length beside it; the kernel only reads them.
    let sent = unsafe {
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Writes an IPV6_PKTINFO control message into `header`'s buffer; returns its length.
fn put_source_v6(header: &libc::msghdr, ip: Ipv6Addr) -> usize {
    let info = libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: ip.octets() }, ipi6_ifindex: 0 };
    // SAFETY: the control buffer has CONTROL zeroed bytes, aligned, more than this header and payload take.
    unsafe {
        let message = libc::CMSG_FIRSTHDR(header);
        (*message).cmsg_level = libc::IPPROTO_IPV6;
        (*message).cmsg_type = libc::IPV6_PKTINFO;
        (*message).cmsg_len = libc::CMSG_LEN(size_of::<libc::in6_pktinfo>() as u32) as _;
        libc::CMSG_DATA(message).cast::<libc::in6_pktinfo>().write_unaligned(info);
        libc::CMSG_SPACE(size_of::<libc::in6_pktinfo>() as u32) as usize
    }
}

/// Writes an IP_PKTINFO control message into `header`'s buffer; returns its length.
fn put_source_v4(header: &libc::msghdr, ip: std::net::Ipv4Addr) -> usize {
    let info = libc::in_pktinfo {
        ipi_ifindex: 0,
        ipi_spec_dst: libc::in_addr { s_addr: u32::from(ip).to_be() },
        ipi_addr: libc::in_addr { s_addr: 0 },
    };
    // SAFETY: as in `put_source_v6`.
    unsafe {
        let message = libc::CMSG_FIRSTHDR(header);
        (*message).cmsg_level = libc::IPPROTO_IP;
        (*message).cmsg_type = libc::IP_PKTINFO;
        (*message).cmsg_len = libc::CMSG_LEN(size_of::<libc::in_pktinfo>() as u32) as _;
        libc::CMSG_DATA(message).cast::<libc::in_pktinfo>().write_unaligned(info);
        libc::CMSG_SPACE(size_of::<libc::in_pktinfo>() as u32) as usize
    }
}

/// Switches an integer socket option on.
///
/// # Errors
/// The system's.
pub(crate) fn switch_on(socket: BorrowedFd<'_>, option: SocketSwitch) -> io::Result<()> {
    let (level, name) = match option {
        SocketSwitch::KernelStamps => (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
        SocketSwitch::DropCounter => (libc::SOL_SOCKET, libc::SO_RXQ_OVFL),
        SocketSwitch::PacketInfoV4 => (libc::IPPROTO_IP, libc::IP_PKTINFO),
        SocketSwitch::PacketInfoV6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    };
    let one: libc::c_int = 1;
    // SAFETY: the option value is a live `c_int` of the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const one).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has the kernel hand back a copy of each datagram that `socket` sends, stamped when it goes to the device.
///
/// # Errors
/// The system's.
pub(crate) fn stamp_transmissions(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags = (libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE) as libc::c_int;
    // SAFETY: the option value is a live `c_int` of the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const flags).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What [`switch_on`] switches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SocketSwitch {
    /// SO_TIMESTAMPNS: stamp each datagram when the kernel takes it.
    KernelStamps,
    /// SO_RXQ_OVFL: tell how many datagrams the socket's buffer had no room for.
    DropCounter,
    /// IP_PKTINFO: tell which address a datagram came to.
    PacketInfoV4,
    /// IPV6_RECVPKTINFO: the same for IPv6.
    PacketInfoV6,
}

/// What the kernel's TCP lets one see of a connection (`struct tcp_info` of linux/tcp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    /// Retransmission timeout, us.
    pub(crate) rto_us: u32,
    /// Payload of a full segment, B.
    pub(crate) mss: u32,
    /// The far end's window, B; `None` before Linux 5.4.
    pub(crate) send_window: Option<u32>,
    /// Smoothed round-trip time, us.
    pub(crate) srtt_us: u32,
    /// Slow start threshold, packets; 0x7fff_ffff while unlimited.
    pub(crate) ssthresh: u32,
    /// Congestion window, packets.
    pub(crate) cwnd: u32,
    /// Segments sent again.
    pub(crate) total_retrans: u32,
    /// Segments with data sent, retransmissions included.
    pub(crate) data_segs_out: u32,
    /// Retransmission timeouts that fired; `None` before Linux 6.7.
    pub(crate) total_rto: Option<u16>,
}

/// Reads TCP_INFO.
///
/// # Errors
/// The system's.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut bytes = [0_u8; 512];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: `bytes` has room for `length` bytes, and the kernel writes at most that many and says how many.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // The offsets are those of linux/tcp.h, which only ever grows at its end; a missing field reads as zero.
    let u32_at = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Ok(TcpInfo {
        rto_us: u32_at(8),
        mss: u32_at(16),
        send_window: (length >= 232).then(|| u32_at(228)),
        srtt_us: u32_at(68),
        ssthresh: u32_at(76),
        cwnd: u32_at(80),
        total_retrans: u32_at(100),
        data_segs_out: u32_at(156),
        total_rto: (length >= 242).then(|| u16::from_ne_bytes([bytes[240], bytes[241]])),
    })
}

/// The MTU of the path that `socket` is connected over, as far as the kernel knows it (IP_MTU, IPV6_MTU).
///
/// # Errors
/// The system's: `NotConnected` for a socket that is not.
pub(crate) fn path_mtu(socket: BorrowedFd<'_>, is_v6: bool) -> io::Result<u32> {
    let (level, name) =
        if is_v6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    let mut mtu: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `mtu` is a live `c_int` of the length given, and the kernel writes no more than that.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut mtu).cast(), &raw mut length) };
    if result == 0 { Ok(u32::try_from(mtu).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
}

/// Bytes written to a TCP socket and not acknowledged yet (SIOCOUTQ).
///
/// # Errors
/// The system's.
pub(crate) fn send_queue(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut queued: libc::c_int = 0;
    // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one `c_int` through the pointer.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut queued) };
    if result == 0 { Ok(u64::try_from(queued).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
}

/// Puts the calling thread into SCHED_FIFO at the lowest priority of that class.
///
/// # Errors
/// The system's: `PermissionDenied` without CAP_SYS_NICE or an RLIMIT_RTPRIO.
pub(crate) fn become_real_time() -> io::Result<()> {
    // SAFETY: `sched_param` is plain old data, for which all zeroes is a valid value.
    let mut parameter: libc::sched_param = unsafe { zeroed() };
    parameter.sched_priority = 1;
    // SAFETY: thread 0 is the caller, and the parameter outlives the call.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
