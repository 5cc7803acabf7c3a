//! The way of a flow's datagrams to the other host.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::sys::send_from;

/// The destination of a flow's datagrams.
#[derive(Clone)]
pub struct UdpRoute {
    /// The client's own connected socket, or the server's, shared by all flows.
    pub socket: Arc<UdpSocket>,
    /// For a socket that is not connected: from which of our addresses, to whom; and whether the socket is
    /// IPv6.
    pub unconnected: Option<(IpAddr, SocketAddr, bool)>,
}

impl UdpRoute {
    /// Sends one datagram without blocking.
    ///
    /// # Errors
    /// The system's.
    pub fn send(&self, payload: &[u8]) -> io::Result<()> {
        let send = || match self.unconnected {
            None => self.socket.send(payload),
            Some((from, to, is_v6)) => send_from(self.socket.as_fd(), is_v6, payload, from, to),
        };
        match send() {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => send().map(drop),
            result => result.map(drop),
        }
    }

    pub(super) fn is_writable(&self) -> bool {
        let mut fds = [PollFd::new(&*self.socket, PollFlags::OUT)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
    }
}
