//! Addresses of servers: from the host that the user typed to addresses, and from the system's errors to a
//! line that helps the user.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;

use talkpath_kernel::ports::DEFAULT_PORT;
use talkpath_kernel::sys;
use talkpath_model::{IpVersion, USUAL_MTU, host_and_port};
use talkpath_units::Bytes;

use super::connect::is_v6;

/// Resolves a host. Returns the host with its port as text, and the addresses to try in order. With `ip` only
/// the addresses of that version of IP are taken.
///
/// # Errors
/// Returns in one line what is wrong with `host`.
pub(super) fn resolve(host: &str, ip: Option<IpVersion>) -> Result<(String, Vec<SocketAddr>), String> {
    resolve_at(host, DEFAULT_PORT, ip)
}

/// Does the same as [`resolve`], but takes `default_port` for a host without a port.
///
/// # Errors
/// Returns the same errors as [`resolve`].
pub(crate) fn resolve_at(
    host: &str,
    default_port: u16,
    ip: Option<IpVersion>,
) -> Result<(String, Vec<SocketAddr>), String> {
    let host = host.trim();
    if host.is_empty() {
        return Err("the host is empty; give a name or an address, as HOST or HOST:PORT".to_owned());
    }
    let (name, port) = host_and_port(host).map_err(|why| format!("{host}: {why}"))?;
    let port = port.unwrap_or(default_port);
    let mut addresses: Vec<SocketAddr> = (name, port)
        .to_socket_addrs()
        .map_err(|error| {
            format!("no such host: {name} ({error}); give a name or an address, as HOST or HOST:PORT")
        })?
        .collect();
    if let Some(SocketAddr::V6(link)) = addresses.iter().find(|address| is_unscoped(address)) {
        let ip = link.ip();
        return Err(format!(
            "{name}: {ip} belongs to one link: give the interface, as {ip}%eth0 (`ip link` lists them)"
        ));
    }
    if addresses.is_empty() {
        return Err(format!("no such host: {name} has no address"));
    }
    if let Some(version) = ip {
        addresses.retain(|address| (version == IpVersion::V6) == is_v6(address.ip()));
        let (flag, missing) = if version == IpVersion::V6 { ("-6", "IPv6") } else { ("-4", "IPv4") };
        if addresses.is_empty() {
            return Err(format!("{name} has no address of {missing}, which {flag} asks for"));
        }
    }
    let shown = if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
    Ok((shown, addresses))
}

/// Returns true if `address` is link-local (RFC 4291 §2.5.6) and has no interface.
fn is_unscoped(address: &SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

/// Returns the MTU of the path to `address`: the MTU of Ethernet, or less if the kernel knows a smaller one.
/// For IPv6 the result is 20 B smaller, because IPv6's header is 20 B larger. So the result can be used as if
/// the path were IPv4.
pub(super) fn path_mtu(address: SocketAddr) -> Bytes {
    let any = if address.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let known = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(address)?;
        sys::path_mtu(socket.as_fd(), address.is_ipv6())
    });
    let known = known.map_or(USUAL_MTU, |mtu| Bytes::new(u64::from(mtu)));
    known.min(USUAL_MTU).saturating_sub(more_header(address))
}

/// Turns the result of [`path_mtu`] back into the size of a packet to `address`.
pub(super) fn with_ipv6(mtu: Bytes, address: SocketAddr) -> Bytes {
    mtu + more_header(address)
}

/// Returns the bytes by which the IP header of a packet to `address` is larger than IPv4's header.
fn more_header(address: SocketAddr) -> Bytes {
    if is_v6(address.ip()) { Bytes::new(20) } else { Bytes::ZERO }
}

/// Says why a connection to `host` failed, and what the user can do about it.
pub(super) fn explain(host: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("{host} refused the connection; is `talkpath serve` running there, on this port?")
        }
        io::ErrorKind::TimedOut => {
            format!(
                "{host} did not answer within 5 s over TCP, which every run needs for its control connection; is it \
                 reachable, and does a firewall let TCP through to this port?"
            )
        }
        _ => format!("{host} cannot be reached: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_host_is_refused_by_its_name() {
        assert!(resolve("", None).unwrap_err().contains("empty"));
        let says = "a:x: found the port \"x\", expected a number from 1 to 65535";
        assert_eq!(resolve(" a:x ", None).unwrap_err(), says);
    }

    #[test]
    fn an_address_of_one_link_is_asked_for_its_interface() {
        for host in ["fe80::1", "[fe80::1]:7160"] {
            let why = resolve(host, None).unwrap_err();
            assert!(why.contains("expected fe80::1%INTERFACE, as in fe80::1%eth0"), "{why}");
        }
    }

    #[test]
    fn a_version_of_ip_leaves_the_addresses_of_the_other_one_out() {
        assert_eq!(resolve("192.0.2.1", Some(IpVersion::V4)).unwrap().1.len(), 1);
        let why = resolve("192.0.2.1", Some(IpVersion::V6)).unwrap_err();
        assert_eq!(why, "192.0.2.1 has no address of IPv6, which -6 asks for");
        let why = resolve("[2001:db8::1]:9", Some(IpVersion::V4)).unwrap_err();
        assert_eq!(why, "2001:db8::1 has no address of IPv4, which -4 asks for");
    }

    #[test]
    fn an_address_comes_with_the_usual_port() {
        assert_eq!(resolve("192.0.2.1", None).unwrap().0, "192.0.2.1:7160");
        assert_eq!(resolve_at("[2001:db8::1]", 862, None).unwrap().0, "[2001:db8::1]:862");
    }
}
