//! The path manager of a host's Multipath TCP (RFC 8684), set by the generic netlink family `mptcp_pm`
//! (Documentation/netlink/specs/mptcp_pm.yaml of the kernel).
//!
//! A connection begins over the addresses that it was opened between. The host that opened it then adds a
//! subflow from each of its *endpoints*, its further addresses, up to a limit that both hosts have.
//!
//! The number of the family is the same in every namespace, so it is looked up before the fork, and the
//! requests are built before the fork. Left out are endpoints of the host that is dialled, which that host
//! would announce, and endpoints that are used only when others fail.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, socket_with};

use super::netlink::{NETLINK_HEADER, NetlinkRequest, attribute, nest, number};

/// The name of the family: MPTCP_PM_NAME of linux/mptcp_pm.h.
const NAME: &[u8] = b"mptcp_pm\0";
/// linux/genetlink.h. The header is a command, a version and two bytes of nothing.
const GENL_HEADER: usize = 4;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// linux/mptcp_pm.h and linux/mptcp.h.
const MPTCP_PM_VERSION: u8 = 1;
const MPTCP_PM_CMD_ADD_ADDR: u8 = 1;
const MPTCP_PM_CMD_SET_LIMITS: u8 = 5;
const MPTCP_PM_ATTR_ADDR: u16 = 1;
const MPTCP_PM_ATTR_RCV_ADD_ADDRS: u16 = 2;
const MPTCP_PM_ATTR_SUBFLOWS: u16 = 3;
const MPTCP_PM_ADDR_ATTR_FAMILY: u16 = 1;
const MPTCP_PM_ADDR_ATTR_ADDR4: u16 = 3;
const MPTCP_PM_ADDR_ATTR_ADDR6: u16 = 4;
const MPTCP_PM_ADDR_ATTR_FLAGS: u16 = 6;
const MPTCP_PM_ADDR_FLAG_SUBFLOW: u32 = 2;

/// The kernel's path manager, with the number of its generic netlink family.
#[derive(Clone, Copy, Debug)]
pub struct PathManager {
    family: u16,
}

impl PathManager {
    /// Looks the family of the path manager up.
    ///
    /// # Errors
    /// Returns the system's error. It is `NotFound` if the kernel has no Multipath TCP.
    pub fn find() -> io::Result<Self> {
        let name = attribute(CTRL_ATTR_FAMILY_NAME, NAME);
        let request = NetlinkRequest::generic(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, &[name]);
        let socket = generic_socket()?;
        rustix::net::send(&socket, request.bytes(), SendFlags::empty())?;
        let mut answer = [0_u8; 4096];
        let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
        parse_family(&answer[..length]).map(|family| Self { family })
    }

    /// Makes the request that limits the subflows of a connection besides its first one.
    pub fn limit(self, subflows: u32) -> NetlinkRequest {
        let attributes = [number(MPTCP_PM_ATTR_RCV_ADD_ADDRS, 0), number(MPTCP_PM_ATTR_SUBFLOWS, subflows)];
        NetlinkRequest::generic(self.family, MPTCP_PM_CMD_SET_LIMITS, MPTCP_PM_VERSION, &attributes)
    }

    /// Makes the request for an address from which a host adds a subflow to each connection that it opens.
    pub fn endpoint(self, address: IpAddr) -> NetlinkRequest {
        let (family, kind, octets) = match address {
            IpAddr::V4(ip) => (libc::AF_INET, MPTCP_PM_ADDR_ATTR_ADDR4, ip.octets().to_vec()),
            IpAddr::V6(ip) => (libc::AF_INET6, MPTCP_PM_ADDR_ATTR_ADDR6, ip.octets().to_vec()),
        };
        let endpoint = [
            attribute(MPTCP_PM_ADDR_ATTR_FAMILY, &(family as u16).to_ne_bytes()),
            attribute(kind, &octets),
            number(MPTCP_PM_ADDR_ATTR_FLAGS, MPTCP_PM_ADDR_FLAG_SUBFLOW),
        ];
        let endpoint = nest(MPTCP_PM_ATTR_ADDR | libc::NLA_F_NESTED as u16, &[], &endpoint);
        NetlinkRequest::generic(self.family, MPTCP_PM_CMD_ADD_ADDR, MPTCP_PM_VERSION, &[endpoint])
    }
}

/// Makes a socket for requests to the caller's namespace. Fork-safe (`fork.rs`).
///
/// # Errors
/// Returns the system's error.
pub fn generic_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::GENERIC))?)
}

/// Reads the number of the family in an answer to CTRL_CMD_GETFAMILY.
fn parse_family(answer: &[u8]) -> io::Result<u16> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let kind = answer.get(4..6).ok_or_else(invalid)?;
    if kind == (libc::NLMSG_ERROR as u16).to_ne_bytes() {
        let code = answer.get(NETLINK_HEADER..NETLINK_HEADER + 4).ok_or_else(invalid)?;
        let code = i32::from_ne_bytes([code[0], code[1], code[2], code[3]]);
        return Err(io::Error::from_raw_os_error(code.saturating_neg()));
    }
    let mut rest = answer.get(NETLINK_HEADER + GENL_HEADER..).ok_or_else(invalid)?;
    // Each attribute: its length with these four bytes, its kind, its value. The next one begins at a
    // multiple of 4.
    while let [a, b, c, d, ..] = *rest {
        let (length, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
        let value = rest.get(4..length).ok_or_else(invalid)?;
        if let (CTRL_ATTR_FAMILY_ID, &[low, high]) = (kind, value) {
            return Ok(u16::from_ne_bytes([low, high]));
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Err(invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_found_by_its_name_or_the_kernel_says_that_it_has_none() {
        match PathManager::find() {
            // Numbers below 16 are the kernel's own.
            Ok(manager) => assert!(manager.family > 16, "{manager:?}"),
            Err(why) => eprintln!("SKIP: no Multipath TCP here: {why}"),
        }
        assert_eq!(parse_family(&[0; 8]).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let mut none = vec![0; 36];
        none[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        none[16..20].copy_from_slice(&(-libc::ENOENT).to_ne_bytes());
        assert_eq!(parse_family(&none).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_endpoint_is_an_address_from_which_subflows_are_opened() {
        let request = PathManager { family: 30 }.endpoint(IpAddr::from([192, 0, 2, 5]));
        // The command and its version, then the nested address: family, address, flags.
        let expected = [
            1, 1, 0, 0, 28, 0, 1, 0x80, 6, 0, 1, 0, 2, 0, 0, 0, 8, 0, 3, 0, 192, 0, 2, 5, 8, 0, 6, 0, 2, 0,
            0, 0,
        ];
        assert_eq!(request.bytes()[NETLINK_HEADER..], expected);
    }
}
