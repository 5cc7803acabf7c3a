//! Reads `HOST:PORT`, the form of hosts on the command line and in campaign files.

use core::net::{IpAddr, Ipv6Addr};

/// Splits `HOST`, `HOST:PORT`, an address, or `[V6]:PORT` into the host and the port. The port is `None` if
/// there is none.
///
/// # Errors
/// Returns what was found and what was expected, on one line.
pub fn host_and_port(text: &str) -> Result<(&str, Option<u16>), String> {
    if is_address(text)? {
        return Ok((text, None));
    }
    if let Some(inside) = text.strip_prefix('[') {
        let Some((address, after)) = inside.split_once(']') else {
            return Err("found a bracket that is not closed, expected [ADDRESS]:PORT".to_owned());
        };
        is_address(address)?;
        return match after.strip_prefix(':') {
            None if after.is_empty() => Ok((address, None)),
            None => Err(format!("found {after:?} after the bracket, expected :PORT")),
            Some(port) => Ok((address, Some(parse_port(port)?))),
        };
    }
    match text.rsplit_once(':') {
        None => Ok((text, None)),
        Some((name, _)) if name.contains(':') => {
            Err("found no IPv6 address, expected one, or [ADDRESS]:PORT".to_owned())
        }
        Some((name, port)) => Ok((name, Some(parse_port(port)?))),
    }
}

/// Whether `text` is an IP address. An IPv6 address may have an interface: `fe80::1%eth0` (RFC 4007 §11).
///
/// # Errors
/// Returns a message if a link-local address has no interface.
fn is_address(text: &str) -> Result<bool, String> {
    let (address, interface) =
        text.split_once('%').map_or((text, None), |(address, interface)| (address, Some(interface)));
    match (address.parse::<Ipv6Addr>(), interface) {
        (Ok(v6), None) if v6.is_unicast_link_local() => Err(format!(
            "found a link-local address without its interface, expected {text}%INTERFACE, as in {text}%eth0"
        )),
        (Ok(_), interface) => Ok(interface.is_none_or(|interface| !interface.is_empty())),
        (Err(_), _) => Ok(text.parse::<IpAddr>().is_ok()),
    }
}

fn parse_port(port: &str) -> Result<u16, String> {
    match port.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("found the port {port:?}, expected a number from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_come_with_or_without_a_port() {
        let parts = |text| host_and_port(text).unwrap();
        assert_eq!(parts("example.net"), ("example.net", None));
        assert_eq!(parts("example.net:80"), ("example.net", Some(80)));
        assert_eq!(parts("192.0.2.1:9"), ("192.0.2.1", Some(9)));
        assert_eq!(parts("2001:db8::1"), ("2001:db8::1", None));
        assert_eq!(parts("[2001:db8::1]:9"), ("2001:db8::1", Some(9)));
        assert_eq!(parts("[2001:db8::1]"), ("2001:db8::1", None));
        assert_eq!(parts("fe80::1%eth0"), ("fe80::1%eth0", None));
        assert_eq!(parts("[fe80::1%eth0]:9"), ("fe80::1%eth0", Some(9)));
    }

    #[test]
    fn a_bad_host_says_what_would_be_right() {
        for (text, word) in [
            ("a:b:c", "[ADDRESS]:PORT"),
            ("a:0", "1 to 65535"),
            ("a:x", "1 to 65535"),
            ("a:70000", "1 to 65535"),
            ("[::1", "closed"),
            ("fe80::1", "fe80::1%INTERFACE"),
            ("[fe80::1]:9", "fe80::1%INTERFACE"),
            ("[::1]9", ":PORT"),
        ] {
            assert!(host_and_port(text).unwrap_err().contains(word), "{text}");
        }
    }
}
