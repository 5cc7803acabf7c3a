//! What the server tells a client about the registrations of its flows over UDP.

use std::net::IpAddr;

use super::Session;
use crate::protocol::{Registration, Registrations};

impl Session<'_> {
    /// Returns the registration of each flow. A flow that shares a connection has the registration of the
    /// connection's first flow.
    pub(super) fn registrations(&self) -> Registrations {
        let find_registration = |index| {
            let leader = self.spec.leader(index) as u64;
            let joinable = self.joinable.iter().find(|(_, joinable)| joinable.index == leader);
            joinable.and_then(|(_, joinable)| joinable.registration())
        };
        Registrations {
            client: self.client.get(),
            flows: (0..self.ends.len()).map(find_registration).collect(),
        }
    }

    /// Writes a line to the log if the UDP of a flow comes from another address than the control connection.
    /// The server does not serve such a flow. A registration over the other version of IP is a question of
    /// the client, whether UDP gets through there.
    pub(super) fn log_other_address(&self, registrations: &Registrations) {
        let is_v6 = |address: IpAddr| address.to_canonical().is_ipv6();
        let client = self.client.get();
        let is_other_line = |flow: &&Registration| !flow.is_served && is_v6(flow.from) == is_v6(client);
        let mut unserved = registrations.flows.iter().flatten().filter(is_other_line);
        if let Some(registration) = unserved.next() {
            (self.log)(&format!(
                "{client}: its UDP comes from {}, which is not served: a router with two lines, or a carrier's translator",
                registration.from
            ));
        }
    }
}
