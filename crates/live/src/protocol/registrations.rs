//! What a server says of the registrations of flows over UDP.

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

/// What the server saw of the registrations of a session's flows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Registrations {
    /// The client's address on the control connection, from which alone flows are served.
    pub(crate) client: IpAddr,
    /// One a flow, in the session's order; `None` if none with the flow's secret came.
    pub(crate) flows: Vec<Option<Registration>>,
}

impl Default for Registrations {
    /// Of no flow.
    fn default() -> Self {
        Self { client: IpAddr::V4(Ipv4Addr::UNSPECIFIED), flows: Vec::new() }
    }
}

/// The registrations of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registration {
    /// Where the last one came from.
    pub(crate) from: IpAddr,
    /// Whether it was answered: `from` is the address of the control connection.
    pub(crate) is_served: bool,
    /// How often the flow has moved to another address or port.
    pub(crate) moves: u32,
}
