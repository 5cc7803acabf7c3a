//! Sends datagrams that must not be fragmented. QUIC needs this (RFC 9000 §14): otherwise its search for the
//! path's MTU would find the size of datagrams that the hosts put together from fragments.
//!
//! Linux has an option for this on a socket, but not for a single datagram. A socket of one flow has the
//! option set for good ([`never_fragment`]). The server's socket carries all flows, and a large datagram of a
//! UDP flow has to leave in fragments. On that socket the option is set for each datagram of QUIC and set
//! back afterwards. No other datagram leaves in between (`whole`, `any`).

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::{PoisonError, RwLock};

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

/// Makes sure that from now on no datagram of `socket` is fragmented, neither by this host nor on the path.
/// The MTU that the kernel knows of the path is ignored (IP_PMTUDISC_PROBE of ip(7)). A datagram that is too
/// large for the device is refused with EMSGSIZE.
///
/// # Errors
/// Returns the system's error. Datagrams may then be fragmented.
pub fn never_fragment(socket: BorrowedFd<'_>, is_v6: bool) -> io::Result<()> {
    if is_v6 {
        sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE)?;
    }
    // A socket of IPv6 also sends packets of IPv4, to mapped addresses.
    Ok(sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE)?)
}

/// Sends a datagram that must not be fragmented to `to`, by a socket that other flows share. If the system
/// refuses the option, the datagram is sent all the same.
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

/// Sends a datagram by a socket that other flows share, without a change of its options.
pub(crate) fn any<T>(send: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let _beside_others = SHARED_SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    send()
}

/// The lock of all shared sockets. A thread that changes the option holds it for writing, and a thread that
/// only sends holds it for reading. A server has one or two such sockets, so one lock is enough.
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
