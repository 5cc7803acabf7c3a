//! The sockets of a host: made in its namespace by the child, with what the scenario sets on them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use socket2::{Domain, Protocol, Socket, Type};

use super::endpoint;
use crate::emu::packet::Host;
use crate::emu::sys;
use crate::end::apply_options;
use crate::spec::TransportSpec;
use crate::sys::{SocketSwitch, switch_on};

/// A socket to be made on a host.
pub(in crate::emu) struct SocketPlan<'a> {
    /// Index of the flow: both ends use port [`FIRST_PORT`](crate::emu::packet::FIRST_PORT) + this.
    pub(in crate::emu) flow: usize,
    pub(in crate::emu) host: Host,
    pub(in crate::emu) transport: &'a TransportSpec,
    /// Whether this end sends: it dials, the other listens.
    pub(in crate::emu) is_sender: bool,
    /// What full segments must fit in, where that is less than the device's MTU.
    pub(in crate::emu) path_mtu: Option<u32>,
    /// Largest window that a TCP receiver advertises, where the scenario bounds it.
    pub(in crate::emu) window_clamp: Option<u32>,
    /// Whether a TCP sender's segments are paced whatever its congestion control.
    pub(in crate::emu) is_paced: bool,
}

/// A socket that is ready to be used from anywhere: bound, and connected (UDP) or listening (TCP's receiver). After fork.
pub(super) fn make_socket(plan: &SocketPlan<'_>) -> io::Result<OwnedFd> {
    match plan.transport {
        TransportSpec::Udp { receive_buffer } => datagram_socket(plan, *receive_buffer),
        TransportSpec::Dccp(_) => datagram_socket(plan, None),
        TransportSpec::Tcp { mss, .. } => stream_socket(plan, *mss),
    }
}

fn datagram_socket(plan: &SocketPlan<'_>, receive_buffer: Option<u64>) -> io::Result<OwnedFd> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    // The path fragments: the model's links do not know the don't-fragment flag.
    sys::set_option(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT)?;
    socket.bind(&endpoint(plan.host, plan.flow).into())?;
    socket.connect(&endpoint(plan.host.other(), plan.flow).into())?;
    switch_on(socket.as_fd(), SocketSwitch::KernelStamps)?;
    switch_on(socket.as_fd(), SocketSwitch::DropCounter)?;
    match receive_buffer.filter(|_| !plan.is_sender) {
        Some(bytes) => socket.set_recv_buffer_size(usize::try_from(bytes).unwrap_or(usize::MAX))?,
        // What waits there for a late thread of ours is not for the path to lose; unprivileged, the system's own limit
        // holds, and drops are told.
        None => {
            let forced =
                sys::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER);
            if forced.is_err() {
                let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER as usize);
            }
        }
    }
    Ok(socket.into())
}

fn stream_socket(plan: &SocketPlan<'_>, mss: Option<u32>) -> io::Result<OwnedFd> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    apply_options(&socket, plan.transport, plan.is_sender)?;
    // Closed with data in it, a socket would go on retransmitting for minutes and keep its namespace; an accepted one
    // inherits this.
    socket.set_linger(Some(core::time::Duration::ZERO))?;
    if let Some(mtu) = plan.path_mtu {
        let fits = mtu.saturating_sub(TCP_HEADERS).max(LEAST_MSS);
        socket.set_tcp_mss(mss.map_or(fits, |chosen| fits.min(chosen)))?;
    }
    if let Some(window) = plan.window_clamp.filter(|_| !plan.is_sender) {
        let window = libc::c_int::try_from(window).unwrap_or(libc::c_int::MAX);
        sys::set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, window)?;
    }
    if plan.is_paced && plan.is_sender {
        // Any limit switches pacing on; this one, 17 Gbit/s, is above what an emulated path carries.
        let option = libc::SO_MAX_PACING_RATE;
        sys::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, option, libc::c_int::MAX)?;
    }
    socket.bind(&endpoint(plan.host, plan.flow).into())?;
    if !plan.is_sender {
        socket.listen(1)?;
    }
    Ok(socket.into())
}

/// IPv4 and TCP headers without options.
const TCP_HEADERS: u32 = 40;
/// TCP_MIN_MSS of the Linux kernel's net/tcp.h.
const LEAST_MSS: u32 = 88;
/// SO_RCVBUF where the scenario says nothing: 4 MB, the time slice of a busy machine at a gigabit a second.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;
