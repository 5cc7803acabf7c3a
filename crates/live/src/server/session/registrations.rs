//! What a session says of the registrations of its flows over UDP.

use super::Session;
use crate::protocol::Registrations;

impl Session<'_> {
    /// What came of its flows' registrations; of a flow that shares a connection, what came of the first's.
    pub(super) fn registrations(&self) -> Registrations {
        let of_flow = |index| {
            let leader = self.spec.leader(index) as u64;
            let joinable = self.joinable.iter().find(|(_, joinable)| joinable.index == leader);
            joinable.and_then(|(_, joinable)| joinable.registration())
        };
        Registrations { client: self.client, flows: (0..self.ends.len()).map(of_flow).collect() }
    }

    /// Says in the log if UDP comes from another address than the control connection, which is not served.
    pub(super) fn say_elsewhere(&self, registrations: &Registrations, log: &(dyn Fn(&str) + Sync)) {
        let mut others = registrations.flows.iter().flatten().filter(|flow| !flow.is_served);
        if let Some(other) = others.next() {
            log(&format!(
                "{}: its UDP comes from {}, which is not served: a router with two lines, or a carrier's translator",
                self.client, other.from
            ));
        }
    }
}
