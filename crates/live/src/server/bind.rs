//! Binding of TCP and UDP sockets to the same port.
//!
//! The listener speaks Multipath TCP (RFC 8684) if this kernel has it. A client without Multipath TCP gets a
//! socket of plain TCP from such a listener.

use std::collections::BTreeSet;
use std::io;
use std::iter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};
use talkpath_kernel::ports::DEFAULT_PORT;
use talkpath_kernel::sys::{SocketSwitch, Unreported, enlarge_receive_buffer, report_arrivals, switch_on};

use super::ServeError;

/// A UDP socket that all sessions share.
pub(crate) struct DatagramSocket {
    pub(crate) socket: std::sync::Arc<UdpSocket>,
    pub(crate) is_v6: bool,
    /// The facts about arriving datagrams that this kernel does not report.
    pub(crate) unreported: Vec<Unreported>,
}

/// Binds the sockets of every address of `bind`, or of the default port of all addresses if `bind` is empty.
/// Binds each port of `also` at the same IP addresses.
///
/// # Errors
/// Returns [`ServeError::Bind`] for the first address that cannot be bound.
pub(super) fn bind_all(
    bind: &[SocketAddr],
    also: &[u16],
) -> Result<Vec<(TcpListener, DatagramSocket)>, ServeError> {
    if !bind.is_empty() {
        let ips: BTreeSet<IpAddr> = bind.iter().map(SocketAddr::ip).collect();
        let others = ips.iter().flat_map(|&ip| also.iter().map(move |&port| SocketAddr::new(ip, port)));
        let others = others.filter(|other| !bind.contains(other));
        return bind.iter().copied().chain(others).map(bind_address).collect();
    }
    let everywhere = |ip: IpAddr| {
        let others = also.iter().copied().filter(|port| *port != DEFAULT_PORT);
        let ports = iter::once(DEFAULT_PORT).chain(others);
        ports.map(|port| bind_address(SocketAddr::new(ip, port))).collect()
    };
    // One IPv6 socket serves IPv4 too. If the host has no IPv6, the server listens on IPv4 alone.
    match everywhere(Ipv6Addr::UNSPECIFIED.into()) {
        Err(ServeError::Bind { source, .. })
            if matches!(source.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)) =>
        {
            everywhere(Ipv4Addr::UNSPECIFIED.into())
        }
        result => result,
    }
}

/// Binds a TCP listener and a UDP socket to the same port of `address`.
fn bind_address(address: SocketAddr) -> Result<(TcpListener, DatagramSocket), ServeError> {
    let fail = |protocol| move |source| ServeError::Bind { address, protocol, source };
    let mut tries = 0;
    loop {
        let listener = listen(address).map_err(fail("TCP"))?;
        // Only the port is taken from the listener, because a listener of Multipath TCP does not say which
        // interface its address belongs to.
        let mut chosen = address;
        chosen.set_port(listener.local_addr().map_err(fail("TCP"))?.port());
        match datagrams(chosen) {
            Ok(socket) => return Ok((listener, socket)),
            // The system chose a port that is free for TCP and taken for UDP. Another choice may be free for
            // both.
            Err(error) if address.port() == 0 && error.kind() == io::ErrorKind::AddrInUse && tries < 20 => {
                tries += 1;
            }
            Err(source) => return Err(ServeError::Bind { address: chosen, protocol: "UDP", source }),
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let domain = Domain::for_address(address);
    let open = |protocol| Socket::new(domain, Type::STREAM.nonblocking(), Some(protocol));
    let socket = open(Protocol::MPTCP).or_else(|_| open(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    // A server that starts again can bind its port although old connections are still in TIME-WAIT (RFC 9293
    // §3.6.1).
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    // The longest queue that the kernel allows (listen(2): net.core.somaxconn, 4096). A flood of connections
    // waits in this queue.
    socket.listen(4096)?;
    Ok(socket.into())
}

/// Binds a UDP socket that does not block to `address`. The kernel reports the headers and the arrival times
/// of its datagrams, as far as this kernel can.
///
/// # Errors
/// Returns the system's error if the socket cannot be made or bound.
pub(crate) fn datagrams(address: SocketAddr) -> io::Result<DatagramSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())?;
    let socket = UdpSocket::from(socket);
    let is_v6 = address.is_ipv6();
    let info = if is_v6 { SocketSwitch::PacketInfoV6 } else { SocketSwitch::PacketInfoV4 };
    // If the kernel refuses, answers leave from the server's address on the control connection.
    let _ = switch_on(socket.as_fd(), info);
    let unreported = report_arrivals(socket.as_fd(), is_v6);
    enlarge_receive_buffer(socket.as_fd());
    Ok(DatagramSocket { socket: std::sync::Arc::new(socket), is_v6, unreported })
}
