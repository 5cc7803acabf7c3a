//! Where a flow's datagrams are sent: a socket and, if the socket is not connected, the addresses.

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
    /// Where they go, if the socket is not connected.
    pub unconnected: Option<Unconnected>,
}

/// What a socket that is not connected needs for each datagram.
#[derive(Clone, Copy, Debug)]
pub struct Unconnected {
    /// From which of our addresses.
    pub from: IpAddr,
    /// To whom.
    pub to: SocketAddr,
    /// Whether the socket is IPv6.
    pub is_v6: bool,
    /// Whether it leaves with ECT(0). A connected socket has that set on it ([`crate::sys::use_ecn`]).
    pub is_ect: bool,
}

impl UdpRoute {
    /// Sends one datagram without blocking. A connected socket reports the ICMP error of an earlier datagram
    /// by refusing the next one with ECONNREFUSED, once. So a datagram that meets ECONNREFUSED is sent a
    /// second time.
    ///
    /// # Errors The system's: EAGAIN and ENOBUFS for want of room, EMSGSIZE for a datagram that is too large,
    /// and others.
    pub fn send(&self, payload: &[u8]) -> io::Result<()> {
        let send = || match self.unconnected {
            None => self.socket.send(payload),
            Some(Unconnected { from, to, is_v6, is_ect }) => {
                send_from(self.socket.as_fd(), is_v6, payload, from, to, is_ect)
            }
        };
        match send() {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => send().map(drop),
            result => result.map(drop),
        }
    }

    /// True if the socket's send buffer has room for a datagram.
    pub(super) fn is_writable(&self) -> bool {
        let mut fds = [PollFd::new(&*self.socket, PollFlags::OUT)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
    }
}
