//! Opening TCP and UDP on the same port.
//!
//! The listener speaks Multipath TCP (RFC 8684) if this kernel has it: a client that does not speak it gets a
//! socket of plain TCP from such a listener.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};
use talkpath_kernel::ports::DEFAULT_PORT;
use talkpath_kernel::sys::{SocketSwitch, Unreported, report_arrivals, switch_on};

use super::ServeError;
use crate::client::enlarge_receive_buffer;

/// A UDP socket for all sessions.
pub(crate) struct DatagramSocket {
    pub(crate) socket: std::sync::Arc<UdpSocket>,
    pub(crate) is_v6: bool,
    /// What this kernel does not report of what arrives there.
    pub(crate) unreported: Vec<Unreported>,
}

/// Listens on every address of `bind`, or on the default port of all addresses if it is empty.
///
/// # Errors
/// [`ServeError::Bind`] for the first that fails.
pub(super) fn all(bind: &[SocketAddr]) -> Result<Vec<(TcpListener, DatagramSocket)>, ServeError> {
    if !bind.is_empty() {
        return bind.iter().map(|&address| both(address)).collect();
    }
    // One IPv6 socket takes IPv4 too; if the host has no IPv6, IPv4 alone.
    let everywhere = both(SocketAddr::from((Ipv6Addr::UNSPECIFIED, DEFAULT_PORT)));
    let is_without_v6 = |error: &ServeError| match error {
        ServeError::Bind { source, .. } => {
            matches!(source.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL))
        }
        ServeError::Keep { .. }
        | ServeError::RealTime { .. }
        | ServeError::Thread { .. }
        | ServeError::Watch { .. } => false,
    };
    match everywhere {
        Err(error) if is_without_v6(&error) => {
            both(SocketAddr::from((Ipv4Addr::UNSPECIFIED, DEFAULT_PORT))).map(|pair| vec![pair])
        }
        result => result.map(|pair| vec![pair]),
    }
}

fn both(address: SocketAddr) -> Result<(TcpListener, DatagramSocket), ServeError> {
    let fail = |protocol| move |source| ServeError::Bind { address, protocol, source };
    let mut tries = 0;
    loop {
        let listener = listen(address).map_err(fail("TCP"))?;
        // Only its port: a listener of Multipath TCP does not say which link its address belongs to.
        let mut chosen = address;
        chosen.set_port(listener.local_addr().map_err(fail("TCP"))?.port());
        match datagrams(chosen) {
            Ok(socket) => return Ok((listener, socket)),
            // The system chose a TCP port whose UDP twin is taken: another choice will do.
            Err(error) if address.port() == 0 && error.kind() == io::ErrorKind::AddrInUse && tries < 20 => {
                tries += 1;
            }
            Err(source) => return Err(ServeError::Bind { address: chosen, protocol: "UDP", source }),
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let domain = Domain::for_address(address);
    let of = |protocol| Socket::new(domain, Type::STREAM.nonblocking(), Some(protocol));
    let socket = of(Protocol::MPTCP).or_else(|_| of(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    // A server that comes back finds its port although old connections linger in TIME-WAIT (RFC 9293 §3.6.1).
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    // As many as the kernel allows (listen(2): net.core.somaxconn, 4096): a flood waits here in turn.
    socket.listen(4096)?;
    Ok(socket.into())
}

/// A socket at `address` that takes datagrams without blocking, and whose kernel reports their headers and
/// when they came, if it can.
///
/// # Errors
/// The system's.
pub(crate) fn datagrams(address: SocketAddr) -> io::Result<DatagramSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())?;
    let socket = UdpSocket::from(socket);
    let is_v6 = address.is_ipv6();
    let info = if is_v6 { SocketSwitch::PacketInfoV6 } else { SocketSwitch::PacketInfoV4 };
    // Without it, answers leave from the address of the control connection.
    let _ = switch_on(socket.as_fd(), info);
    let unreported = report_arrivals(socket.as_fd(), is_v6);
    enlarge_receive_buffer(&socket);
    Ok(DatagramSocket { socket: std::sync::Arc::new(socket), is_v6, unreported })
}
