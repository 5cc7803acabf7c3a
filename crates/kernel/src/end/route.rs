//! The route of a flow's datagrams: a socket and, if the socket is not connected, the addresses.

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
    /// The connected socket that belongs to this flow (client), or the socket that all flows share (server).
    pub socket: Arc<UdpSocket>,
    /// The addresses of the datagrams, if the socket is not connected.
    pub unconnected: Option<Unconnected>,
}

/// The reason why a datagram was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendFailure {
    /// The kernel had no room for the datagram, or cannot carry it.
    Refused,
    /// The kernel has no network for the datagram: no route, device or address, or a rule of this host
    /// forbids it.
    NoNetwork,
    /// The flow has no route yet.
    NotOpen,
}

impl SendFailure {
    /// Finds the reason in the error of a send (send(2), udp(7), netfilter's `nf_hook_slow`).
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
                // The socket is connected anew, because this host has another address.
                | libc::EDESTADDRREQ
                // The source address is no longer this host's (`ip_route_output_key_hash_rcu`).
                | libc::EINVAL,
            ) => Self::NoNetwork,
            _ => Self::Refused,
        }
    }

    /// The outcome of the application's write.
    pub(super) const fn outcome(self) -> WriteOutcome {
        match self {
            Self::Refused => WriteOutcome::Refused,
            Self::NoNetwork => WriteOutcome::NoNetwork,
            Self::NotOpen => WriteOutcome::NotOpen,
        }
    }
}

impl UdpRoute {
    /// Makes sure that from now on neither this host nor a router fragments a datagram of this route.
    pub(super) fn keep_whole(&mut self) {
        match &mut self.unconnected {
            Some(unconnected) => unconnected.is_whole = true,
            None => {
                let is_v6 = self.socket.local_addr().is_ok_and(|address| address.is_ipv6());
                // The error is ignored. If the system refuses, a search for the path's MTU may find a value
                // that is too large.
                let _ = never_fragment(self.socket.as_fd(), is_v6);
            }
        }
    }

    /// Sends one datagram without blocking. A connected socket reports the ICMP error of an earlier datagram
    /// by refusing the next one with ECONNREFUSED, once. So a datagram that meets ECONNREFUSED is sent a
    /// second time.
    ///
    /// # Errors
    /// Returns the system's error: EAGAIN or ENOBUFS if there is no room, EMSGSIZE if the datagram is too
    /// large, and others.
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

    /// Sends `payload` by one system call. The kernel cuts it into datagrams of `size` bytes, of which the
    /// last may be shorter.
    ///
    /// # Errors
    /// Returns the errors of [`UdpRoute::send`], and an error if the kernel or the device cannot cut the
    /// payload.
    pub(super) fn send_train(&self, payload: &[u8], size: usize) -> io::Result<()> {
        let size = u16::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
        let send = || self.send_as(payload, Some(size));
        match send() {
            Err(error) if may_be_about_earlier_datagram(&error) => send().map(drop),
            result => result.map(drop),
        }
    }

    /// Sends a datagram that must not be fragmented. An EMSGSIZE may be about an earlier datagram, so this
    /// datagram is then sent a second time.
    ///
    /// # Errors
    /// Returns the errors of [`UdpRoute::send`].
    pub(super) fn send_whole(&self, payload: &[u8]) -> io::Result<()> {
        match self.send(payload) {
            Err(error) if may_be_about_earlier_datagram(&error) => self.send(payload),
            result => result,
        }
    }

    fn send_as(&self, payload: &[u8], size: Option<u16>) -> io::Result<usize> {
        send_with(self.socket.as_fd(), payload, self.unconnected, size)
    }

    /// Returns true if the datagrams of this route have an IPv6 header.
    pub(super) fn is_over_v6(&self) -> bool {
        let to = self.unconnected.map(|unconnected| unconnected.to).or_else(|| self.socket.peer_addr().ok());
        to.is_some_and(|to| to.ip().to_canonical().is_ipv6())
    }

    /// Returns the MTU of the path as the kernel knows it. Returns `None` if the socket is not connected.
    pub(super) fn path_mtu(&self) -> Option<u32> {
        let is_v6 = self.socket.local_addr().ok()?.is_ipv6();
        path_mtu(self.socket.as_fd(), is_v6).ok().filter(|_| self.unconnected.is_none())
    }

    /// Returns true if the socket's send buffer has room for a datagram.
    pub(super) fn is_writable(&self) -> bool {
        self.is_ready(PollFlags::OUT, Duration::ZERO)
    }

    /// Returns true if a datagram waits in the socket, or comes within `max`.
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

/// Returns true if the error may be about an earlier datagram. A connected socket reports the ICMP message of
/// an earlier datagram once, at the next send: nobody listens at the port, or the datagram was larger than
/// the path's MTU (`__udp4_lib_err` of net/ipv4/udp.c).
fn may_be_about_earlier_datagram(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused || error.raw_os_error() == Some(libc::EMSGSIZE)
}
