//! `HOST:PORT`, as commands and campaign files write a host.

use core::net::{IpAddr, Ipv6Addr};

/// The name and the port of `HOST`, `HOST:PORT`, an address, or `[V6]:PORT`; `None` without a port.
///
/// # Errors
/// What was found and what would be right, in one line.
pub fn host_and_port(text: &str) -> Result<(&str, Option<u16>), String> {
    if is_address(text)? {
        return Ok((text, None));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, rest)) = rest.split_once(']') else {
            return Err("found a bracket that is not closed, expected [ADDRESS]:PORT".to_owned());
        };
        is_address(address)?;
        return match rest.strip_prefix(':') {
            None if rest.is_empty() => Ok((address, None)),
            None => Err(format!("found {rest:?} after the bracket, expected :PORT")),
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

/// Whether `text` is an address, with its interface if it needs one: `fe80::1%eth0` (RFC 4007 §11).
///
/// # Errors
/// A link-local address without an interface.
fn is_address(text: &str) -> Result<bool, String> {
    let (address, interface) = text.split_once('%').map_or((text, None), |(it, zone)| (it, Some(zone)));
    match (address.parse::<Ipv6Addr>(), interface) {
        (Ok(v6), None) if v6.is_unicast_link_local() => Err(format!(
            "found a link-local address without its interface, expected {text}%INTERFACE, as in {text}%eth0"
        )),
        (Ok(_), zone) => Ok(zone.is_none_or(|zone| !zone.is_empty())),
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
