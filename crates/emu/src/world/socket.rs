//! The sockets of a host. The child makes them in the host's namespace, with the options of the scenario.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery};
use socket2::{Domain, Protocol, Socket, Type};
use talkpath_kernel::end::apply_options;
use talkpath_kernel::spec::{ChannelKind, SEGMENT_SIZES, TransportSpec};
use talkpath_kernel::sys::{enlarge_receive_buffer, set_option, set_tos};
use talkpath_model::IpVersion;

use super::endpoint;
use crate::packet::Host;

/// A socket to be made on a host.
pub(crate) struct SocketPlan<'a> {
    /// The index of the flow. Both ends use the port [`FIRST_PORT`](crate::packet::FIRST_PORT) plus this
    /// index.
    pub(crate) flow: usize,
    pub(crate) host: Host,
    pub(crate) transport: &'a TransportSpec,
    /// The byte of the IP header with the DSCP, and for datagrams with the ECN field, if the flow sets it.
    pub(crate) tos: Option<u8>,
    /// True at the sender, which dials a TCP connection. The receiver listens.
    pub(crate) is_sender: bool,
    /// The MTU of the flow's path, if it is smaller than the device's MTU.
    pub(crate) path_mtu: Option<u32>,
    /// The largest window that a TCP receiver advertises, if the scenario sets it.
    pub(crate) window_clamp: Option<u32>,
    /// True if the segments of a TCP sender are paced whatever its congestion control.
    pub(crate) is_paced: bool,
}

/// Makes a socket of the plan. It is bound, and connected (UDP) or listening (TCP's receiver), so any process
/// can use it. Fork-safe.
pub(super) fn make_socket(plan: &SocketPlan<'_>, ip: IpVersion) -> io::Result<OwnedFd> {
    match plan.transport.channel_kind() {
        ChannelKind::Datagrams | ChannelKind::OverUdp => {
            datagram_socket(plan, ip, plan.transport.datagram_buffer())
        }
        ChannelKind::Connection => stream_socket(plan, ip, plan.transport.mss()),
    }
}

fn datagram_socket(plan: &SocketPlan<'_>, ip: IpVersion, receive_buffer: Option<u64>) -> io::Result<OwnedFd> {
    let socket = Socket::new(domain(ip), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    match (ip, plan.path_mtu) {
        // The path fragments datagrams, because the model's links do not know the don't-fragment flag.
        (IpVersion::V4, _) => sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DONT)?,
        // The sender fragments datagrams, as if it had discovered the path's MTU (RFC 8201).
        (IpVersion::V6, Some(mtu)) => {
            let mtu = libc::c_int::try_from(mtu).unwrap_or(libc::c_int::MAX);
            set_option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU, [mtu])?;
        }
        (IpVersion::V6, None) => {}
    }
    socket.bind(&endpoint(plan.host, ip, plan.flow).into())?;
    socket.connect(&endpoint(plan.host.other(), ip, plan.flow).into())?;
    if let Some(tos) = plan.tos {
        set_tos(socket.as_fd(), ip == IpVersion::V6, tos)?;
    }
    match receive_buffer.filter(|_| !plan.is_sender) {
        Some(bytes) => socket.set_recv_buffer_size(usize::try_from(bytes).unwrap_or(usize::MAX))?,
        None => enlarge_receive_buffer(socket.as_fd()),
    }
    Ok(socket.into())
}

fn stream_socket(plan: &SocketPlan<'_>, ip: IpVersion, mss: Option<u32>) -> io::Result<OwnedFd> {
    let protocol = plan.transport.stream_protocol();
    let socket = Socket::new(domain(ip), Type::STREAM.nonblocking(), Some(protocol))?;
    apply_options(&socket, plan.transport, plan.tos, plan.is_sender)?;
    // Without this option, a socket that is closed with data in it would retransmit for minutes and keep its
    // namespace. An accepted socket inherits the option.
    socket.set_linger(Some(core::time::Duration::ZERO))?;
    if let Some(mtu) = plan.path_mtu {
        let headers = TCP_HEADERS + ip.extra_header().get() as u32;
        let fits = mtu.saturating_sub(headers).clamp(*SEGMENT_SIZES.start(), *SEGMENT_SIZES.end());
        socket.set_tcp_mss(mss.map_or(fits, |chosen| fits.min(chosen)))?;
    }
    if let Some(window) = plan.window_clamp.filter(|_| !plan.is_sender) {
        let window = libc::c_int::try_from(window).unwrap_or(libc::c_int::MAX);
        set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, [window])?;
    }
    if plan.is_paced && plan.is_sender {
        // Any limit switches pacing on. This limit of 17 Gbit/s is above what an emulated path carries.
        set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, [libc::c_int::MAX])?;
    }
    socket.bind(&endpoint(plan.host, ip, plan.flow).into())?;
    if !plan.is_sender {
        socket.listen(1)?;
    }
    Ok(socket.into())
}

const fn domain(ip: IpVersion) -> Domain {
    match ip {
        IpVersion::V4 => Domain::IPV4,
        IpVersion::V6 => Domain::IPV6,
    }
}

/// IPv4 and TCP headers without options.
const TCP_HEADERS: u32 = 40;
