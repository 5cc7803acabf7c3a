//! From what the user typed to addresses, and from the system's errors to a line that helps.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;

use talkpath_kernel::sys;
use talkpath_kernel::wire::DEFAULT_PORT;
use talkpath_scenario::USUAL_MTU;
use talkpath_units::Bytes;

/// The host with its port, as text and as addresses to try in order.
///
/// # Errors
/// What is wrong with it, in one line.
pub(super) fn resolve(host: &str) -> Result<(String, Vec<SocketAddr>), String> {
    resolve_at(host, DEFAULT_PORT)
}

/// The same with another port for a host without one.
///
/// # Errors
/// The same.
pub(crate) fn resolve_at(host: &str, default_port: u16) -> Result<(String, Vec<SocketAddr>), String> {
    let host = host.trim();
    let (name, port) = split(host, default_port)?;
    let addresses: Vec<SocketAddr> = (name, port)
        .to_socket_addrs()
        .map_err(|error| {
            format!("no such host: {name} ({error}); give a name or an address, as HOST or HOST:PORT")
        })?
        .collect();
    if addresses.is_empty() {
        return Err(format!("no such host: {name} has no address"));
    }
    let shown = if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
    Ok((shown, addresses))
}

/// Name and port of `HOST`, `HOST:PORT`, an address, or `[V6]:PORT`.
fn split(host: &str, default_port: u16) -> Result<(&str, u16), String> {
    if host.is_empty() {
        return Err("the host is empty; give a name or an address, as HOST or HOST:PORT".to_owned());
    }
    if host.parse::<IpAddr>().is_ok() {
        return Ok((host, default_port));
    }
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, rest)) = rest.split_once(']') else {
            return Err(format!("{host}: the bracket is not closed; write [ADDRESS]:PORT"));
        };
        return match rest.strip_prefix(':') {
            None if rest.is_empty() => Ok((address, default_port)),
            None => Err(format!("{host}: after the bracket only :PORT may follow")),
            Some(port) => Ok((address, parse_port(host, port)?)),
        };
    }
    match host.rsplit_once(':') {
        None => Ok((host, default_port)),
        Some((name, _)) if name.contains(':') => {
            Err(format!("{host} is no IPv6 address; with a port, write [ADDRESS]:PORT"))
        }
        Some((name, port)) => Ok((name, parse_port(host, port)?)),
    }
}

/// The MTU of the path to `address`, as if over IPv4: Ethernet's, or what the kernel knows to be less. IPv6's
/// header takes 20 B more of it.
pub(super) fn path_mtu(address: SocketAddr) -> Bytes {
    let is_v6 = address.is_ipv6() && matches!(address.ip().to_canonical(), IpAddr::V6(_));
    let any = if address.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let known = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(address)?;
        sys::path_mtu(socket.as_fd(), address.is_ipv6())
    });
    let known = known.map_or(USUAL_MTU, |mtu| Bytes::new(u64::from(mtu)));
    known.min(USUAL_MTU).saturating_sub(if is_v6 { Bytes::new(20) } else { Bytes::ZERO })
}

fn parse_port(host: &str, port: &str) -> Result<u16, String> {
    match port.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("{host}: the port must be a number from 1 to 65535, not {port:?}")),
    }
}

/// Why a connection to `host` failed, and what would be right.
pub(super) fn explain(host: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("{host} refused the connection; is `talkpath serve` running there, on this port?")
        }
        io::ErrorKind::TimedOut => {
            format!(
                "{host} did not answer within 5 s; is it reachable, and does a firewall let TCP and UDP through?"
            )
        }
        _ => format!("{host} cannot be reached: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_7160(host: &str) -> Result<(&str, u16), String> {
        split(host, DEFAULT_PORT)
    }

    #[test]
    fn a_host_may_come_with_or_without_a_port() {
        assert_eq!(at_7160("example.net").unwrap(), ("example.net", 7160));
        assert_eq!(at_7160("example.net:80").unwrap(), ("example.net", 80));
        assert_eq!(at_7160("192.0.2.1:9").unwrap(), ("192.0.2.1", 9));
        assert_eq!(at_7160("2001:db8::1").unwrap(), ("2001:db8::1", 7160));
        assert_eq!(at_7160("[2001:db8::1]:9").unwrap(), ("2001:db8::1", 9));
        assert_eq!(at_7160("[2001:db8::1]").unwrap(), ("2001:db8::1", 7160));
    }

    #[test]
    fn a_bad_host_says_what_would_be_right() {
        for (host, word) in [
            ("", "empty"),
            ("a:b:c", "[ADDRESS]:PORT"),
            ("a:0", "1 to 65535"),
            ("a:x", "1 to 65535"),
            ("[::1", "closed"),
        ] {
            assert!(at_7160(host).unwrap_err().contains(word), "{host}");
        }
    }
}
