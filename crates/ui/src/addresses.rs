//! The addresses of this host, for the user who has to type one on the other computer.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kernel's routes of IPv4, with its own addresses as routes of type LOCAL.
const ROUTES: &str = "/proc/net/fib_trie";
/// The kernel's addresses of IPv6: address, interface, prefix, scope and flags in hexadecimal, and a name.
const ADDRESSES: &str = "/proc/net/if_inet6";
/// The scope of an address that others reach (IPV6_ADDR_SCOPE_GLOBAL, include/net/ipv6.h of Linux).
const GLOBAL: &str = "00";
/// The most addresses that are shown. We chose 8: the host of many containers has hundreds.
const MAX_SHOWN: usize = 8;

/// Returns the addresses at which other computers may reach this host. Empty if the kernel shows none.
pub(crate) fn own_addresses() -> Vec<IpAddr> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut addresses: Vec<IpAddr> = v4(&read(ROUTES)).into_iter().map(IpAddr::V4).collect();
    addresses.extend(v6(&read(ADDRESSES)).into_iter().map(IpAddr::V6));
    addresses.truncate(MAX_SHOWN);
    addresses
}

/// An address is a leaf of the trie, and the line below it says that its route is local.
fn v4(routes: &str) -> Vec<Ipv4Addr> {
    let mut found: Vec<Ipv4Addr> = Vec::new();
    let mut leaf = None;
    for line in routes.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse().ok();
        } else if line.starts_with("/32 host LOCAL")
            && let Some(address) = leaf.filter(|address: &Ipv4Addr| !address.is_loopback())
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

fn v6(addresses: &str) -> Vec<Ipv6Addr> {
    let global = addresses.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [address, _, _, GLOBAL, ..] = fields[..] else { return None };
        u128::from_str_radix(address, 16).ok().map(Ipv6Addr::from)
    });
    global.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_host_is_told_from_routes_loopback_and_links() {
        let routes = "Main:\n  +-- 10.9.0.0/24 2 0 2\n     |-- 10.9.0.0\n        /24 link UNICAST\n\
                      Local:\n     |-- 10.9.0.2\n        /32 host LOCAL\n     |-- 127.0.0.1\n        \
                      /32 host LOCAL\n     |-- 10.9.0.255\n        /32 link BROADCAST\n     |-- 10.9.0.2\n        \
                      /32 host LOCAL\n";
        assert_eq!(v4(routes), [Ipv4Addr::new(10, 9, 0, 2)]);
        let addresses = "00000000000000000000000000000001 01 80 10 80       lo\n\
                         20010db8000000000000000000000007 02 40 00 80     eth0\n\
                         fe80000000000000021122fffe334455 02 40 20 80     eth0\n";
        assert_eq!(v6(addresses), ["2001:db8::7".parse::<Ipv6Addr>().unwrap()]);
    }
}
