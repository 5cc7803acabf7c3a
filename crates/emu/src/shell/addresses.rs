//! The addresses of the two ends of a path.

use std::net::IpAddr;

use talkpath_model::IpVersion;

use crate::packet::Host;
use crate::world::address;

/// The addresses of the two ends of the path, as a person reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndAddresses {
    /// The addresses of the near end, IPv4 and IPv6.
    pub near: [IpAddr; 2],
    /// The addresses of the far end.
    pub far: [IpAddr; 2],
}

/// The addresses of both ends, which are the same in every run.
pub const END_ADDRESSES: EndAddresses = EndAddresses {
    near: [address(Host::First, IpVersion::V4), address(Host::First, IpVersion::V6)],
    far: [address(Host::Second, IpVersion::V4), address(Host::Second, IpVersion::V6)],
};
