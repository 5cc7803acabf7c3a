//! What a server tells a client about the registrations of flows over UDP.

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

/// The registrations of a session's flows that reached the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Registrations {
    /// The client's address on the control connection. The server serves flows only from this address.
    pub(crate) client: IpAddr,
    /// The registration of each flow, in the session's order. `None` if no datagram with the flow's secret
    /// came.
    pub(crate) flows: Vec<Option<Registration>>,
}

impl Default for Registrations {
    /// The registrations of a session without flows.
    fn default() -> Self {
        Self { client: IpAddr::V4(Ipv4Addr::UNSPECIFIED), flows: Vec::new() }
    }
}

/// What the server knows of the registrations of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registration {
    /// The address from which the last registration came.
    pub(crate) from: IpAddr,
    /// True if the server answered the registration. It does so if `from` is the address of the control
    /// connection.
    pub(crate) is_served: bool,
    /// How often the flow has moved to another address or port.
    pub(crate) moves: u32,
}
