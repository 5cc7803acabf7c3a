//! The names that the command looks up where the path has a way out.
//!
//! The file resolv.conf(5) of this machine may name a resolver that only this machine reaches, such as the
//! stub of systemd-resolved at 127.0.0.53. So the command sees another file in its place, which names the
//! addresses that pasta carries to this machine's first resolver. Everything else in the file stays. The
//! sockets by which libc asks services of this machine for names are covered, because their answers would not
//! cross the path (nss-resolve(8), nscd(8)).

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use talkpath_kernel::host::mounts::OwnMounts;

/// Makes this process, and the command that it becomes, ask the resolvers of the way out. The process must
/// have one thread only.
///
/// # Errors
/// Returns why names do not resolve, as a sentence for the user.
pub(super) fn look_up_by_way_out() -> Result<(), String> {
    let ours =
        fs::read_to_string(RESOLV_CONF).map_err(|why| format!("{RESOLV_CONF} cannot be read: {why}"))?;
    let text = with_way_out(&ours).ok_or_else(|| format!("{RESOLV_CONF} names no resolver"))?;
    let covered = || -> io::Result<()> {
        let mounts = OwnMounts::enter()?;
        mounts.cover_with_text(Path::new(RESOLV_CONF), &text)?;
        let there = SERVICES.iter().map(Path::new).filter(|path| path.exists());
        for service in there {
            mounts.cover(service, Path::new("/dev/null"))?;
        }
        Ok(())
    };
    covered().map_err(|why| format!("{RESOLV_CONF} cannot be covered: {why}"))
}

/// The text of a resolv.conf with the resolvers of the way out in the place of its own. `None` if it names
/// none.
fn with_way_out(text: &str) -> Option<String> {
    let server = |line: &str| -> Option<IpAddr> {
        let address = line.strip_prefix("nameserver")?.split_ascii_whitespace().next()?;
        // An address of a link has the link behind a `%`.
        address.split('%').next()?.parse().ok()
    };
    let servers: Vec<IpAddr> = text.lines().filter_map(server).collect();
    let reached = [RESOLVER_V4, RESOLVER_V6]
        .into_iter()
        .filter(|ours| servers.iter().any(|theirs| theirs.is_ipv4() == ours.is_ipv4()));
    let lines: Vec<String> = reached.map(|address| format!("nameserver {address}")).collect();
    if lines.is_empty() {
        return None;
    }
    let others = text.lines().filter(|line| !line.starts_with("nameserver")).map(str::to_owned);
    Some(lines.into_iter().chain(others).map(|line| line + "\n").collect())
}

/// The addresses of the resolvers inside the path. They are from TEST-NET-2 (RFC 5737) and from the range for
/// documentation (RFC 3849), so they hide nothing.
pub(super) const RESOLVER_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 53));
pub(super) const RESOLVER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0x53, 0, 0, 0, 0, 0x53));
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// The sockets of services that look up names.
const SERVICES: [&str; 2] = ["/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolvers_are_replaced_and_the_rest_of_the_file_stays() {
        let stub = "# a comment\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch example.org\n";
        let expected = "nameserver 198.51.100.53\n# a comment\noptions edns0 trust-ad\nsearch example.org\n";
        assert_eq!(with_way_out(stub).as_deref(), Some(expected));
        let both = "nameserver fe80::1%eth0\nnameserver 192.168.1.1";
        let expected = "nameserver 198.51.100.53\nnameserver 2001:db8:53::53\n";
        assert_eq!(with_way_out(both).as_deref(), Some(expected));
        assert_eq!(with_way_out("nameserver nonsense\nsearch a\n"), None);
    }
}
