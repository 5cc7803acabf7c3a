//! Datagrams that the path must not cut: what QUIC sends (RFC 9000 §14), so that a search for the path's MTU
//! finds the path's and not what the hosts put together again.
//!
//! Linux has a socket option for it, and none for a single datagram. A socket of one flow has the option set
//! for good ([`never_fragment`]). The server's socket carries all flows, and a large datagram of UDP leaves
//! in fragments. There the option is set for each of QUIC's datagrams and set back, and no other leaves in
//! between (`whole`, `any`).

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::{PoisonError, RwLock};

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

/// From now on no datagram of `socket` is fragmented, here or on the path, whatever the kernel has learned of
/// the path's MTU (IP_PMTUDISC_PROBE of ip(7)). One that the device does not take is refused by EMSGSIZE.
///
/// # Errors
/// The system's. Then packets may be fragmented.
pub fn never_fragment(socket: BorrowedFd<'_>, is_v6: bool) -> io::Result<()> {
    if is_v6 {
        sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE)?;
    }
    // An IPv6 socket also sends IPv4, mapped.
    Ok(sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE)?)
}

/// Sends a datagram to `to` by a socket that others share, not to be fragmented. If the system does not let
/// the option be set, it is sent all the same.
pub(crate) fn whole<T>(
    socket: BorrowedFd<'_>,
    to: SocketAddr,
    send: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let _alone = SHARED_SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    if to.is_ipv6() {
        let before = sockopt::ipv6_mtu_discover(socket);
        let _ = sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE);
        let result = send();
        let _ = before.and_then(|before| sockopt::set_ipv6_mtu_discover(socket, before));
        result
    } else {
        let before = sockopt::ip_mtu_discover(socket);
        let _ = sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE);
        let result = send();
        let _ = before.and_then(|before| sockopt::set_ip_mtu_discover(socket, before));
        result
    }
}

/// Sends a datagram by a socket that others share, as the socket does it.
pub(crate) fn any<T>(send: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let _beside_others = SHARED_SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    send()
}

/// Whoever changes the option of a shared socket holds this for writing, whoever sends by one for reading. A
/// server has one or two such sockets, so that one lock is enough.
static SHARED_SOCKETS: RwLock<()> = RwLock::new(());

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_shared_socket_fragments_again_after_a_datagram_that_must_stay_whole() {
        for (bind, to) in
            [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")]
        {
            let Ok(socket) = UdpSocket::bind(bind) else {
                println!("SKIP {bind}: no such socket on this host");
                continue;
            };
            let to: SocketAddr = to.parse().unwrap();
            let modes = || (sockopt::ip_mtu_discover(&socket).ok(), sockopt::ipv6_mtu_discover(&socket).ok());
            let before = modes();
            let inside = whole(socket.as_fd(), to, || Ok(modes())).unwrap();
            match to.is_ipv6() {
                true => assert_eq!(inside.1, Some(Ipv6PathMtuDiscovery::PROBE)),
                false => assert_eq!(inside.0, Some(Ipv4PathMtuDiscovery::PROBE)),
            }
            assert_eq!(any(|| Ok(modes())).unwrap(), before, "{bind}");
        }
    }
}
