//! Dialling: opens a socket with the scenario's options and connects it to the far end.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;
use socket2::{Domain, SockRef, Socket, Type};

use crate::spec::{FlowSpec, TransportSpec};
use crate::sys::set_tos;

/// How a client reaches the server's data port.
pub struct Dial {
    /// The server's address and data port.
    pub to: SocketAddr,
    /// The opening line, which the client sends first.
    pub opening: Vec<u8>,
    /// The epoll instance that watches the connection.
    pub epoll: Arc<OwnedFd>,
    /// The number under which `epoll` reports the connection.
    pub index: u64,
}

impl Dial {
    /// Opens a socket for the flow `spec`.
    ///
    /// # Errors
    /// Returns the system's error if the socket cannot be opened or set up.
    pub(super) fn open(&self, spec: &FlowSpec, is_sender: bool) -> io::Result<Socket> {
        let protocol = spec.transport.stream_protocol();
        let socket = Socket::new(Domain::for_address(self.to), Type::STREAM.nonblocking(), Some(protocol))?;
        apply_options(&socket, &spec.transport, spec.tos(), is_sender)?;
        Ok(socket)
    }

    /// Begins to connect `socket`. The connection is not established yet when this returns.
    ///
    /// # Errors
    /// Returns the system's error if the socket cannot be connected or watched.
    pub(super) fn connect(&self, socket: Socket) -> io::Result<TcpStream> {
        match socket.connect(&self.to.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let socket = TcpStream::from(socket);
        watch(&self.epoll, &socket, self.index)?;
        Ok(socket)
    }
}

/// Sets the scenario's options on a TCP socket before it connects. Does nothing for another transport.
///
/// # Errors
/// Returns the system's error. It is `NotFound` if the kernel does not have the congestion control.
pub fn apply_options(
    socket: &Socket,
    transport: &TransportSpec,
    tos: Option<u8>,
    is_sender: bool,
) -> io::Result<()> {
    let TransportSpec::Tcp { nodelay, cc, mss, send_buffer, receive_buffer, multipath: _ } = transport else {
        return Ok(());
    };
    if let Some(tos) = tos {
        set_tos(socket.as_fd(), socket.domain()? == Domain::IPV6, tos)?;
    }
    socket.set_tcp_nodelay(*nodelay)?;
    SockRef::from(socket).set_tcp_congestion(cc.as_bytes())?;
    if let Some(mss) = mss {
        socket.set_tcp_mss(*mss)?;
    }
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    match (is_sender, send_buffer, receive_buffer) {
        (true, Some(bytes), _) => socket.set_send_buffer_size(size(*bytes)),
        (false, _, Some(bytes)) => socket.set_recv_buffer_size(size(*bytes)),
        _ => Ok(()),
    }
}

/// Makes `epoll` report every change of the readiness of `socket` under the number `index`.
pub(super) fn watch(epoll: &OwnedFd, socket: &TcpStream, index: u64) -> io::Result<()> {
    let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
    Ok(epoll::add(epoll, socket, epoll::EventData::new_u64(index), flags)?)
}
