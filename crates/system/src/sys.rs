//! The system calls that no safe library offers as we need them: batched receive with kernel stamps,
//! TCP_INFO, the fill of the send queue, and the real-time scheduling class. Linux only.
//!
//! socket2 and rustix do the sending, the addresses and most options. Each function here says why it calls
//! the system itself. The emulator's own calls are in `host/fork.rs`, `host/ring.rs` and `host/cable.rs` of
//! the crate `kernel`. No other file outside of tests is unsafe.
#![expect(unsafe_code, reason = "these calls have no safe wrapper; each block says why it is sound")]

mod arrivals;

use std::io::{self, IoSlice};
use std::mem::zeroed;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::ioctl::{Getter, ioctl};
use rustix::net::sockopt;
use socket2::{MsgHdr, SockAddr, SockAddrStorage, SockRef};
use talkpath_units::Ecn;

use crate::ancillary::{self, ControlMessage, ecn, messages};
use crate::fragments;

pub use arrivals::{Unreported, report_arrivals};

/// The largest number of datagrams that one system call receives.
const BATCH: usize = 32;
/// The size of the buffer for a datagram. The largest UDP payload has 65,507 B over IPv4 and 65,527 B over
/// IPv6.
const DATAGRAM: usize = 65_536;
/// The size for SO_RCVBUF, bytes. We chose 4 MB, which arrive at a gigabit a second in the time slice of a
/// busy machine.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A received datagram.
pub struct Received<'a> {
    /// The address of the sender, if the kernel gave one.
    pub from: Option<SocketAddr>,
    /// The address of this host that the datagram came to, if the socket reports it.
    pub to: Option<IpAddr>,
    /// When the kernel took the datagram from the device, CLOCK_REALTIME, ns since 1970.
    pub stamp_ns: Option<i64>,
    /// The byte of the IP header with DSCP and ECN field, if the socket reports it ([`report_arrivals`]).
    pub tos: Option<u8>,
    /// The TTL (or hop limit) of the IP header, if the socket reports it ([`report_arrivals`]).
    pub ttl: Option<u8>,
    /// The payload.
    pub payload: &'a [u8],
}

/// Buffers for [`ReceiveBatch::receive`], allocated once.
pub struct ReceiveBatch {
    data: Vec<u8>,
    control: Vec<ancillary::Buffer>,
    names: Vec<SockAddrStorage>,
}

impl Default for ReceiveBatch {
    /// Makes buffers for a full batch.
    fn default() -> Self {
        Self {
            data: vec![0; BATCH * DATAGRAM],
            control: vec![ancillary::Buffer::new(); BATCH],
            names: (0..BATCH).map(|_| SockAddrStorage::zeroed()).collect(),
        }
    }
}

impl Received<'_> {
    /// The ECN field of the datagram. If the socket does not report it, the datagram counts as not
    /// ECN-capable.
    pub fn ecn(&self) -> Ecn {
        self.tos.map_or(Ecn::NotEct, ecn)
    }
}

impl ReceiveBatch {
    /// Takes the datagrams that wait in the socket, at most one batch, without blocking. Returns the number
    /// of datagrams.
    ///
    /// # Errors
    /// Returns the system's error: `WouldBlock` if nothing waits, or an ICMP error of a connected socket.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, each: impl FnMut(Received<'_>)) -> io::Result<usize> {
        self.take(socket, 0, each)
    }

    /// Takes the kernel's copies of sent datagrams ([`stamp_transmissions`]), at most one batch. Each copy
    /// has all headers of the packet. Its stamp is the time at which the kernel gave the packet to the
    /// device.
    ///
    /// # Errors
    /// Returns the system's error. It is `WouldBlock` if nothing waits.
    pub fn receive_sent(
        &mut self,
        socket: BorrowedFd<'_>,
        each: impl FnMut(Received<'_>),
    ) -> io::Result<usize> {
        self.take(socket, libc::MSG_ERRQUEUE, each)
    }

    /// Receives by recvmmsg(2). rustix and socket2 lack the call. nix has it, but does not reset the lengths
    /// of addresses and control buffers between calls, so that its headers would have to be allocated anew
    /// for each batch.
    fn take(
        &mut self,
        socket: BorrowedFd<'_>,
        flags: libc::c_int,
        mut each: impl FnMut(Received<'_>),
    ) -> io::Result<usize> {
        let mut iovecs = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: DATAGRAM }; BATCH];
        let mut headers = [libc::mmsghdr { msg_hdr: empty_header(), msg_len: 0 }; BATCH];
        // Each pointer comes from a borrow of its own slot only, so that the borrow of the next slot leaves
        // it valid.
        let slots = self.data.chunks_exact_mut(DATAGRAM).zip(&mut self.control).zip(&mut self.names);
        for ((header, iovec), ((data, control), name)) in headers.iter_mut().zip(&mut iovecs).zip(slots) {
            iovec.iov_base = data.as_mut_ptr().cast();
            let header = &mut header.msg_hdr;
            header.msg_name = (&raw mut *name).cast();
            header.msg_namelen = size_of::<SockAddrStorage>() as libc::socklen_t;
            header.msg_iov = &raw mut *iovec;
            header.msg_iovlen = 1;
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = control.0.len() as _;
        }
        // SAFETY: every pointer in `headers` is to a live buffer of the length beside it, exclusively
        // borrowed through `self` and the two local arrays until the call returns.
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
            let name = std::mem::replace(&mut self.names[index], SockAddrStorage::zeroed());
            let mut received = Received {
                from: address(name, header.msg_hdr.msg_namelen),
                to: None,
                stamp_ns: None,
                tos: None,
                ttl: None,
                payload: &self.data[index * DATAGRAM..index * DATAGRAM + length],
            };
            for message in messages(filled(&self.control[index], &header.msg_hdr)) {
                match message {
                    ControlMessage::Stamp(stamp) => received.stamp_ns = received.stamp_ns.or(Some(stamp)),
                    ControlMessage::To(address) => received.to = Some(address),
                    ControlMessage::Tos(tos) => received.tos = Some(tos),
                    ControlMessage::Ttl(ttl) => received.ttl = Some(ttl),
                }
            }
            each(received);
        }
        Ok(count)
    }
}

/// A header without buffers. It is not written as a literal because some libcs have private padding in it.
fn empty_header() -> libc::msghdr {
    // SAFETY: `msghdr` is plain old data, for which all zeroes is a valid value.
    unsafe { zeroed() }
}

/// The bytes that the kernel wrote into `buffer`, which was the control buffer of `header`.
fn filled<'a>(buffer: &'a ancillary::Buffer, header: &libc::msghdr) -> &'a [u8] {
    let length: usize = header.msg_controllen as _;
    &buffer.0[..length.min(buffer.0.len())]
}

/// The address that the kernel wrote into `storage`. An IPv4-mapped IPv6 address is returned as IPv4.
fn address(storage: SockAddrStorage, length: libc::socklen_t) -> Option<SocketAddr> {
    // SAFETY: the storage was all zeroes before the kernel wrote an address of `length` bytes into it. Zeroes
    // alone are of the family AF_UNSPEC.
    let address = unsafe { SockAddr::new(storage, length) }.as_socket()?;
    Some(match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => {
            canonical(SocketAddr::V6(SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id())))
        }
    })
}

/// Converts an IPv4-mapped IPv6 address to IPv4. Other addresses stay as they are.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

/// The values that a send needs for each datagram if the socket is not connected.
#[derive(Clone, Copy, Debug)]
pub struct Unconnected {
    /// The source address. A host with several addresses has to answer from the address that was asked.
    pub from: IpAddr,
    /// The destination.
    pub to: SocketAddr,
    /// True if the socket is one of IPv6. Addresses of IPv4 are then mapped.
    pub is_v6: bool,
    /// The byte of the IP header with DSCP and ECN field, if the flow sets it. A connected socket has the
    /// byte as an option ([`set_tos`]).
    pub tos: Option<u8>,
    /// True if the datagram must not be fragmented. A connected socket has this as an option
    /// ([`never_fragment`](crate::fragments::never_fragment)).
    pub is_whole: bool,
}

/// Sends `payload` as one datagram, or cut into datagrams of `size` bytes (UDP_SEGMENT of udp(7)). `to` has
/// the addresses if the socket is not connected.
///
/// # Errors
/// Returns the system's error.
pub fn send_with(
    socket: BorrowedFd<'_>,
    payload: &[u8],
    to: Option<Unconnected>,
    size: Option<u16>,
) -> io::Result<usize> {
    let mut control = ancillary::Buffer::new();
    let mut end = 0;
    let mut address = None;
    if let Some(Unconnected { from, to, is_v6, tos, is_whole: _ }) = to {
        let mapped = match (is_v6, to) {
            (true, SocketAddr::V4(v4)) => {
                SocketAddr::V6(SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0))
            }
            (_, other) => other,
        };
        address = Some(SockAddr::from(mapped));
        end = match (is_v6, from) {
            (true, IpAddr::V4(ip)) => control.put_source(0, IpAddr::V6(ip.to_ipv6_mapped())),
            (true, IpAddr::V6(_)) | (false, IpAddr::V4(_)) => control.put_source(0, from),
            (false, IpAddr::V6(_)) => 0,
        };
        if let Some(tos) = tos {
            // A datagram to a mapped address has the header of IPv4.
            end = control.put_tos(end, to.is_ipv6(), tos);
        }
    }
    if let Some(size) = size {
        end = control.put_segment(end, size);
    }
    let buffers = [IoSlice::new(payload)];
    let mut header = MsgHdr::new().with_buffers(&buffers).with_control(&control.0[..end]);
    if let Some(address) = &address {
        header = header.with_addr(address);
    }
    let send = || SockRef::from(&socket).sendmsg(&header, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
    match to {
        Some(Unconnected { to, is_whole: true, .. }) => fragments::whole(socket, to, send),
        Some(_) => fragments::any(send),
        None => send(),
    }
}

/// Reads from a stream, or one datagram from a connected socket, into `buffer` without blocking. The kernel's
/// ancillary data is returned too.
///
/// It calls libc because rustix's recvmsg reads only descriptors and credentials. The buffers of socket2's
/// recvmsg may be uninitialised, and `buffer` cannot be converted to such a buffer safely.
///
/// # Errors
/// Returns the system's error. It is `WouldBlock` if nothing waits.
pub fn receive_one(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<ReceivedOne> {
    let mut control = ancillary::Buffer::new();
    let mut iovec = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut header = empty_header();
    header.msg_iov = &raw mut iovec;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len() as _;
    // SAFETY: every pointer in `header` is to a live buffer of the length beside it, exclusively borrowed
    // here until the call returns.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    let mut received = ReceivedOne { count, stamp_ns: None, tos: None, ttl: None };
    for message in messages(filled(&control, &header)) {
        match message {
            ControlMessage::Stamp(stamp) => received.stamp_ns = received.stamp_ns.or(Some(stamp)),
            ControlMessage::Tos(tos) => received.tos = Some(tos),
            ControlMessage::Ttl(ttl) => received.ttl = Some(ttl),
            ControlMessage::To(_) => {}
        }
    }
    Ok(received)
}

/// The result of [`receive_one`].
#[derive(Clone, Copy, Debug)]
pub struct ReceivedOne {
    /// The number of bytes that were read.
    pub count: usize,
    /// When the kernel took the segment with the last byte, CLOCK_REALTIME, ns since 1970. `None` if
    /// [`SocketSwitch::KernelStamps`] is off. The kernel merges segments that wait. Merged segments have the
    /// stamp of the segment that was merged last (`tcp_try_coalesce` of net/ipv4/tcp_input.c).
    pub stamp_ns: Option<i64>,
    /// See [`Received::tos`].
    pub tos: Option<u8>,
    /// See [`Received::tos`].
    pub ttl: Option<u8>,
}

/// Switches a socket option on.
///
/// # Errors
/// Returns the system's error if the kernel does not have the option.
pub fn switch_on(socket: BorrowedFd<'_>, option: SocketSwitch) -> io::Result<()> {
    let (level, name) = match option {
        SocketSwitch::KernelStamps => (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
        SocketSwitch::PacketInfoV4 => (libc::IPPROTO_IP, libc::IP_PKTINFO),
        SocketSwitch::PacketInfoV6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        SocketSwitch::MarksV4 => (libc::IPPROTO_IP, libc::IP_RECVTOS),
        SocketSwitch::MarksV6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
        SocketSwitch::TtlV4 => (libc::IPPROTO_IP, libc::IP_RECVTTL),
        SocketSwitch::TtlV6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT),
    };
    set_option(socket, level, name, [1])
}

/// Enlarges the receive buffer of `socket` to 4 MB, or as far as the system allows. Datagrams that wait for a
/// late thread then find room. Without CAP_NET_ADMIN the system's limit holds, and the
/// socket's drop counter shows the effect.
pub fn enlarge_receive_buffer(socket: BorrowedFd<'_>) {
    if sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER);
    }
}

/// Sets the byte of the IP header with DSCP and ECN field for all packets of `socket`. For a stream the
/// kernel sets the ECN field by itself.
///
/// # Errors
/// Returns the system's error.
pub fn set_tos(socket: BorrowedFd<'_>, is_v6: bool, tos: u8) -> io::Result<()> {
    if is_v6 {
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, [libc::c_int::from(tos)])?;
    }
    // A socket of IPv6 sends packets of IPv4 too.
    set_option(socket, libc::IPPROTO_IP, libc::IP_TOS, [libc::c_int::from(tos)])
}

/// Returns true if the kernel's clock is synchronised to an outer source, and the largest error of the clock,
/// ns (adjtimex(2): STA_UNSYNC, maxerror).
pub fn clock_error() -> (bool, u64) {
    // SAFETY: `timex` is plain old data, for which all zeroes is a valid value: no mode, so the call only
    // reads the clock's state, into live memory of its type.
    let (state, timex) = unsafe {
        let mut timex: libc::timex = zeroed();
        (libc::adjtimex(&raw mut timex), timex)
    };
    let is_synchronised = state >= 0 && state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0;
    let max_us =
        if state >= 0 { u64::try_from(timex.maxerror).unwrap_or(UNKNOWN_ERROR_US) } else { UNKNOWN_ERROR_US };
    (is_synchronised, max_us.saturating_mul(1000))
}

/// Makes the kernel return a copy of each datagram that `socket` sends, with the time at which the datagram
/// goes to the device.
///
/// # Errors
/// Returns the system's error.
pub fn stamp_transmissions(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags = (libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE) as libc::c_int;
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, [flags])
}

/// Sets a socket option of one or more integers. It is for options that neither rustix nor socket2 has:
/// stamps, packet infos, packet sockets, pacing, the window clamp and the segmentation of UDP.
///
/// # Errors
/// Returns the system's error.
pub fn set_option<const N: usize>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: [libc::c_int; N],
) -> io::Result<()> {
    // SAFETY: the option value is live memory of the length given. The kernel reads it and writes nothing of
    // ours.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The socket options that [`option`] reads.
#[derive(Clone, Copy, Debug)]
pub enum ReadableOption {
    /// TCP_INFO.
    TcpInfo,
    /// SO_MEMINFO.
    MemoryInfo,
    /// PACKET_STATISTICS.
    PacketStatistics,
    /// MPTCP_INFO.
    MultipathInfo,
    /// MPTCP_TCPINFO.
    SubflowInfos,
}

/// Reads a socket option into `words`. Returns the number of bytes that the kernel wrote. It is for
/// structures that grow from kernel to kernel, which neither rustix nor socket2 has.
///
/// # Errors
/// Returns the system's error.
pub fn option(socket: BorrowedFd<'_>, option: ReadableOption, words: &mut [u32]) -> io::Result<usize> {
    let (level, name) = match option {
        ReadableOption::TcpInfo => (libc::IPPROTO_TCP, libc::TCP_INFO),
        ReadableOption::MemoryInfo => (libc::SOL_SOCKET, libc::SO_MEMINFO),
        ReadableOption::PacketStatistics => (libc::SOL_PACKET, PACKET_STATISTICS),
        ReadableOption::MultipathInfo => (SOL_MPTCP, MPTCP_INFO),
        ReadableOption::SubflowInfos => (SOL_MPTCP, MPTCP_TCPINFO),
    };
    let mut length = size_of_val(words) as libc::socklen_t;
    // SAFETY: `words` has room for `length` bytes. For these options the kernel writes at most that many, any
    // bits of which are numbers, and says how many.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, words.as_mut_ptr().cast(), &raw mut length)
    };
    if result == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

/// The options that [`switch_on`] switches on.
#[derive(Clone, Copy, Debug)]
pub enum SocketSwitch {
    /// SO_TIMESTAMPNS: stamp each datagram when the kernel takes it.
    KernelStamps,
    /// IP_PKTINFO: report which address a datagram came to.
    PacketInfoV4,
    /// IPV6_RECVPKTINFO: the same for IPv6.
    PacketInfoV6,
    /// IP_RECVTOS: report DSCP and ECN field of datagrams with IPv4's header.
    MarksV4,
    /// IPV6_RECVTCLASS: the same for IPv6.
    MarksV6,
    /// IP_RECVTTL: report how many hops datagrams with IPv4's header had left.
    TtlV4,
    /// IPV6_RECVHOPLIMIT: the same for IPv6.
    TtlV6,
}

/// The state of a connection of the kernel's TCP (`struct tcp_info` of linux/tcp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Retransmission timeout, us.
    pub rto_us: u32,
    /// Payload of a full segment, B.
    pub mss: u32,
    /// The receive window of the far end, B. `None` before Linux 5.4.
    pub send_window: Option<u32>,
    /// Smoothed round-trip time, us.
    pub srtt_us: u32,
    /// Slow start threshold, packets. 0x7fff_ffff while unlimited.
    pub ssthresh: u32,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// The number of retransmitted segments.
    pub total_retrans: u32,
    /// The number of segments that came before an earlier segment of the stream. `None` before Linux 5.4.
    pub out_of_order: Option<u32>,
    /// The number of segments with data that were sent, retransmissions included.
    pub data_segs_out: u32,
    /// The number of retransmission timeouts. `None` before Linux 6.7.
    pub total_rto: Option<u16>,
    /// How long the receive window of the far end was the limit, us. `None` before Linux 4.9.
    pub receiver_limited_us: Option<u64>,
    /// True if both ends agreed on ECN (TCPI_OPT_ECN).
    pub takes_marks: bool,
    /// The number of segments with data that the far end acknowledged with an echo of the ECN mark. `None`
    /// before Linux 4.18.
    pub delivered_ce: Option<u32>,
}

/// Reads TCP_INFO of a connection.
///
/// # Errors
/// Returns the system's error.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    // 248 bytes in Linux 6.18, with room for more.
    let mut words = [0; 128];
    let length = option(socket, ReadableOption::TcpInfo, &mut words)?;
    Ok(TcpInfo::read(&words, length))
}

impl TcpInfo {
    /// Reads the state from the first `length` bytes of `words`, which the kernel has written.
    pub fn read(words: &[u32], length: usize) -> Self {
        // The offsets are those of linux/tcp.h, which only ever grows at its end. A missing field reads as
        // zero.
        let u32_at = |at: usize| words.get(at / size_of::<u32>()).copied().unwrap_or(0);
        let [low, high, ..] = u32_at(240).to_ne_bytes();
        let u64_at = |at: usize| {
            let halves = [u32_at(at).to_ne_bytes(), u32_at(at + 4).to_ne_bytes()];
            halves.as_flattened().try_into().map_or(0, u64::from_ne_bytes)
        };
        Self {
            rto_us: u32_at(8),
            mss: u32_at(16),
            send_window: (length >= 232).then(|| u32_at(228)),
            out_of_order: (length >= 228).then(|| u32_at(224)),
            srtt_us: u32_at(68),
            ssthresh: u32_at(76),
            cwnd: u32_at(80),
            total_retrans: u32_at(100),
            data_segs_out: u32_at(156),
            total_rto: (length >= 242).then(|| u16::from_ne_bytes([low, high])),
            receiver_limited_us: (length >= 184).then(|| u64_at(176)),
            takes_marks: u32_at(4).to_ne_bytes()[1] & TCPI_OPT_ECN != 0,
            delivered_ce: (length >= 200).then(|| u32_at(196)),
        }
    }
}

/// The number of datagrams that `socket` has dropped since it was opened, for any cause (SO_MEMINFO of
/// socket(7), from Linux 4.12 on). The count has 32 bits and wraps around.
///
/// # Errors
/// Returns the system's error, or `Unsupported` if the kernel does not report the count.
pub fn socket_drops(socket: BorrowedFd<'_>) -> io::Result<u32> {
    // Nine figures in Linux 6.18 (SK_MEMINFO_VARS of linux/sock_diag.h), with room for more.
    let mut figures = [0; 32];
    let length = option(socket, ReadableOption::MemoryInfo, &mut figures)?;
    if length <= DROPS * size_of::<u32>() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(figures[DROPS])
}

/// linux/mptcp.h.
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;
const MPTCP_TCPINFO: libc::c_int = 2;
/// linux/tcp.h.
const TCPI_OPT_ECN: u8 = 8;
/// SK_MEMINFO_DROPS of linux/sock_diag.h.
const DROPS: usize = 8;
/// linux/if_packet.h.
const PACKET_STATISTICS: libc::c_int = 6;

/// The MTU of the path that `socket` is connected over, as far as the kernel knows it (IP_MTU, IPV6_MTU).
///
/// # Errors
/// Returns the system's error. It is `NotConnected` if the socket is not connected.
pub fn path_mtu(socket: BorrowedFd<'_>, is_v6: bool) -> io::Result<u32> {
    Ok(if is_v6 { sockopt::ipv6_mtu(socket)? } else { sockopt::ip_mtu(socket)? })
}

/// Returns the number of bytes written to a TCP socket and not acknowledged yet (SIOCOUTQ).
///
/// # Errors
/// Returns the system's error.
pub fn send_queue(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one `c_int`.
    let queued = unsafe { ioctl(socket, Getter::<{ libc::TIOCOUTQ as _ }, libc::c_int>::new()) }?;
    Ok(u64::try_from(queued).unwrap_or(0))
}

/// Puts the calling thread into SCHED_FIFO at the lowest priority of that class.
///
/// # Errors
/// Returns the system's error. It is `PermissionDenied` without CAP_SYS_NICE and without an RLIMIT_RTPRIO.
pub fn become_real_time() -> io::Result<()> {
    become_fifo(1)
}

/// Puts the calling thread into SCHED_FIFO at `priority`.
///
/// # Errors
/// Returns the system's error. It is `PermissionDenied` without CAP_SYS_NICE and without an RLIMIT_RTPRIO of
/// `priority`.
pub fn become_fifo(priority: libc::c_int) -> io::Result<()> {
    set_scheduler(libc::SCHED_FIFO, priority)
}

/// Puts the calling thread into SCHED_IDLE. It then runs only when no other thread wants the processor
/// (sched(7)).
///
/// # Errors
/// Returns the system's error.
pub(crate) fn become_idle() -> io::Result<()> {
    set_scheduler(libc::SCHED_IDLE, 0)
}

/// Sets the scheduling policy of the calling thread. The call is libc's, because rustix leaves out
/// sched_setscheduler(2), which some libcs do not implement.
fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // SAFETY: `sched_param` is plain old data, for which all zeroes is a valid value. Thread 0 is the caller,
    // and the parameter outlives the call.
    let result = unsafe {
        let mut parameter: libc::sched_param = zeroed();
        parameter.sched_priority = priority;
        libc::sched_setscheduler(0, policy, &raw const parameter)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The error of a clock that nobody disciplines, us (NTP_PHASE_LIMIT of linux/timex.h, 16 s).
const UNKNOWN_ERROR_US: u64 = 16_000_000;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;
    use std::time::Duration;

    use super::*;

    /// Returns the ECN field, the DSCP byte and the TTL with which a datagram comes that `send` gives to the
    /// address of `socket`.
    fn came_with(
        socket: &UdpSocket,
        send: impl Fn(SocketAddr) -> io::Result<usize>,
    ) -> (Ecn, u8, Option<u8>) {
        let to = socket.local_addr().unwrap();
        assert_eq!(send(to).unwrap(), 4);
        std::thread::sleep(Duration::from_millis(20));
        let mut found = None;
        let mut take = |datagram: Received<'_>| {
            found = Some((datagram.ecn(), datagram.tos.unwrap_or(0) & !0b11, datagram.ttl));
        };
        ReceiveBatch::default().receive(socket.as_fd(), &mut take).unwrap();
        found.unwrap()
    }

    /// RFC 3168 §5 and RFC 2474, over IPv4, IPv6, and IPv4 through a socket of IPv6 as a server's is.
    #[test]
    fn datagrams_leave_with_dscp_and_codepoint_and_what_came_is_read() {
        // Of a host's own packets no hop is taken (net.ipv4.ip_default_ttl).
        let ttl = Some(64);
        for (near, far, is_v6) in [("127.0.0.1:0", "127.0.0.1:0", false), ("[::1]:0", "[::1]:0", true)] {
            let (near, far) = (UdpSocket::bind(near).unwrap(), UdpSocket::bind(far).unwrap());
            assert_eq!(report_arrivals(far.as_fd(), is_v6), []);
            assert_eq!(came_with(&far, |to| near.send_to(b"data", to)), (Ecn::NotEct, 0, ttl));
            set_tos(near.as_fd(), is_v6, EF | 0b10).unwrap();
            assert_eq!(came_with(&far, |to| near.send_to(b"data", to)), (Ecn::Ect0, EF, ttl));
            // What a router would write.
            set_tos(near.as_fd(), is_v6, EF | 0b11).unwrap();
            assert_eq!(came_with(&far, |to| near.send_to(b"data", to)), (Ecn::Ce, EF, ttl));
            let mut buffer = [0; 8];
            near.send_to(b"data", far.local_addr().unwrap()).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            let one = receive_one(far.as_fd(), &mut buffer).unwrap();
            assert_eq!((one.count, one.tos, one.ttl), (4, Some(EF | 0b11), ttl));
        }
        let server = UdpSocket::bind("[::]:0").unwrap();
        assert_eq!(report_arrivals(server.as_fd(), true), []);
        for (client, is_v6, from) in [("127.0.0.1:0", false, "127.0.0.1"), ("[::1]:0", true, "::1")] {
            let client = UdpSocket::bind(client).unwrap();
            assert_eq!(report_arrivals(client.as_fd(), is_v6), []);
            for (tos, expected) in [
                (None, (Ecn::NotEct, 0, ttl)),
                (Some(2), (Ecn::Ect0, 0, ttl)),
                (Some(EF), (Ecn::NotEct, EF, ttl)),
            ] {
                let from = from.parse().unwrap();
                let send = |to| {
                    send_with(
                        server.as_fd(),
                        b"data",
                        Some(Unconnected { from, to, is_v6: true, tos, is_whole: false }),
                        None,
                    )
                };
                assert_eq!(came_with(&client, send), expected);
            }
            set_tos(client.as_fd(), is_v6, EF | 0b10).unwrap();
            let port = server.local_addr().unwrap().port();
            let to = SocketAddr::new(from.parse().unwrap(), port);
            assert_eq!(came_with(&server, |_| client.send_to(b"data", to)), (Ecn::Ect0, EF, ttl), "{from}");
        }
    }

    /// RFC 3246.
    const EF: u8 = 46 << 2;
}
