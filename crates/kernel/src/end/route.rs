//! Where a flow's datagrams are sent: a socket and, if the socket is not connected, the addresses.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_flow::WriteOutcome;
use talkpath_units::Duration;

use crate::fragments::never_fragment;
pub use crate::sys::Unconnected;
use crate::sys::{path_mtu, send_with};

/// The destination of a flow's datagrams.
#[derive(Clone)]
pub struct UdpRoute {
    /// The client's own connected socket, or the server's, shared by all flows.
    pub socket: Arc<UdpSocket>,
    /// Where they go, if the socket is not connected.
    pub unconnected: Option<Unconnected>,
}

/// Why the kernel did not take a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendFailure {
    /// It had no room for it, or cannot carry it.
    Refused,
    /// It has no network for it: no route, device or address, or a rule of this host forbids it.
    NoNetwork,
    /// The flow has no route yet.
    NotOpen,
}

impl SendFailure {
    /// What the error of a send says (send(2), udp(7), netfilter's `nf_hook_slow`).
    pub(super) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            None if error.kind() == io::ErrorKind::NotConnected => Self::NotOpen,
            Some(
                libc::ENETUNREACH
                | libc::ENETDOWN
                | libc::ENONET
                | libc::EHOSTUNREACH
                | libc::EHOSTDOWN
                | libc::EADDRNOTAVAIL
                | libc::ENODEV
                | libc::ENXIO
                | libc::EPERM
                | libc::EACCES
                // The source address is no longer this host's (`ip_route_output_key_hash_rcu`).
                | libc::EINVAL,
            ) => Self::NoNetwork,
            _ => Self::Refused,
        }
    }

    /// What that is to the application.
    pub(super) const fn outcome(self) -> WriteOutcome {
        match self {
            Self::Refused => WriteOutcome::Refused,
            Self::NoNetwork => WriteOutcome::NoNetwork,
            Self::NotOpen => WriteOutcome::NotOpen,
        }
    }
}

impl UdpRoute {
    /// From now on no datagram on this route is fragmented, neither by this host nor by a router.
    pub(super) fn keep_whole(&mut self) {
        match &mut self.unconnected {
            Some(unconnected) => unconnected.is_whole = true,
            None => {
                let is_v6 = self.socket.local_addr().is_ok_and(|address| address.is_ipv6());
                // If the system does not let it, a search for the path's MTU may find too much.
                let _ = never_fragment(self.socket.as_fd(), is_v6);
            }
        }
    }

    /// Sends one datagram without blocking. A connected socket reports the ICMP error of an earlier datagram
    /// by refusing the next one with ECONNREFUSED, once. So a datagram that meets ECONNREFUSED is sent a
    /// second time.
    ///
    /// # Errors The system's: EAGAIN and ENOBUFS for want of room, EMSGSIZE for a datagram that is too large,
    /// and others.
    pub fn send(&self, payload: &[u8]) -> io::Result<()> {
        let send = || match self.unconnected {
            None => self.socket.send(payload),
            Some(_) => self.send_as(payload, None),
        };
        match send() {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => send().map(drop),
            result => result.map(drop),
        }
    }

    /// Sends `payload`, cut into datagrams of `size` bytes (the last may have less), by one call.
    ///
    /// # Errors
    /// As [`UdpRoute::send`], and those of a kernel or a device that does not cut.
    pub(super) fn send_train(&self, payload: &[u8], size: usize) -> io::Result<()> {
        let size = u16::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
        let send = || self.send_as(payload, Some(size));
        match send() {
            Err(error) if is_of_an_earlier(&error) => send().map(drop),
            result => result.map(drop),
        }
    }

    /// As [`UdpRoute::send`], of a datagram that must not be fragmented.
    ///
    /// # Errors
    /// As there.
    pub(super) fn send_whole(&self, payload: &[u8]) -> io::Result<()> {
        match self.send(payload) {
            Err(error) if is_of_an_earlier(&error) => self.send(payload),
            result => result,
        }
    }

    fn send_as(&self, payload: &[u8], size: Option<u16>) -> io::Result<usize> {
        send_with(self.socket.as_fd(), payload, self.unconnected, size)
    }

    /// Whether its datagrams have IPv6's header.
    pub(super) fn is_over_v6(&self) -> bool {
        let to = self.unconnected.map(|unconnected| unconnected.to).or_else(|| self.socket.peer_addr().ok());
        to.is_some_and(|to| to.ip().to_canonical().is_ipv6())
    }

    /// The MTU of the path, as far as the kernel knows it: of a connected socket.
    pub(super) fn path_mtu(&self) -> Option<u32> {
        let is_v6 = self.socket.local_addr().ok()?.is_ipv6();
        path_mtu(self.socket.as_fd(), is_v6).ok().filter(|_| self.unconnected.is_none())
    }

    /// True if the socket's send buffer has room for a datagram.
    pub(super) fn is_writable(&self) -> bool {
        self.is_ready(PollFlags::OUT, Duration::ZERO)
    }

    /// True if a datagram waits in the socket, or comes within `max`.
    pub(super) fn wait_readable(&self, max: Duration) -> bool {
        self.is_ready(PollFlags::IN, max)
    }

    fn is_ready(&self, flags: PollFlags, max: Duration) -> bool {
        let mut fds = [PollFd::new(&*self.socket, flags)];
        let nanos = i64::try_from(max.as_nanos()).unwrap_or(i64::MAX);
        let timeout = Timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 };
        poll(&mut fds, Some(&timeout)).is_ok_and(|count| count > 0)
    }
}

/// Whether a connected socket may say this of an earlier datagram, by its ICMP message: that nobody listens
/// at the port, or that it was larger than the path's MTU (`__udp4_lib_err` of net/ipv4/udp.c). It says so
/// once.
fn is_of_an_earlier(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused || error.raw_os_error() == Some(libc::EMSGSIZE)
}
