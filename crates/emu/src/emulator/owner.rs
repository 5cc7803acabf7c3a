//! Finds the flow or the program that a packet belongs to.

use std::net::IpAddr;

use super::flow::EmuFlow;
use crate::packet::{FIRST_PORT, Host, Parsed, addresses};
use crate::world::second_address;

/// The flow or the program that a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Flow(FlowPacket),
    /// One of the user's programs. A later fragment belongs to the conversation of its first fragment. The
    /// conversation of another packet follows from its addresses and ports.
    Program {
        conversation: Option<u32>,
    },
}

/// The flow that a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowPacket {
    pub(super) flow: u32,
    /// The number of the packet's path in the network.
    pub(super) path: u32,
    /// For a later fragment, the number of its datagram. `None` if the flow's watch does not know the
    /// datagram, for example if another program has sent it.
    pub(super) datagram: Option<u64>,
}

/// The owners of fragmented datagrams. A later fragment has no ports, so its identification leads to the
/// owner.
pub(super) struct FragmentOwners {
    /// For each host and identification, the owner of the latest datagram that began with a fragment.
    by_identification: [Box<[Option<Owner>]>; 2],
}

impl FragmentOwners {
    pub(super) fn new() -> Self {
        let none = || vec![None; 1 << 16].into_boxed_slice();
        Self { by_identification: [none(), none()] }
    }

    /// Records the owner of a datagram whose first fragment `host` has sent.
    pub(super) fn record(&mut self, host: Host, identification: u16, owner: Owner) {
        self.by_identification[host.index()][usize::from(identification)] = Some(owner);
    }

    fn get(&self, host: Host, identification: u16) -> Option<Owner> {
        self.by_identification[host.index()][usize::from(identification)]
    }
}

/// Finds the owner of a packet that `host` has sent.
pub(super) fn find_owner(
    packet: &[u8],
    parsed: &Parsed,
    host: Host,
    flows: &[EmuFlow],
    fragments: &FragmentOwners,
) -> Owner {
    let is_later_fragment = parsed.ports.is_none() && parsed.part.offset > 0;
    let owner = if is_later_fragment {
        fragments.get(host, parsed.identification)
    } else {
        let flow_packet = first_path(parsed, flows).or_else(|| second_path(packet, parsed, flows));
        flow_packet.map(Owner::Flow)
    };
    owner.unwrap_or(Owner::Program { conversation: None })
}

/// Finds the flow of a packet by its ports. Both ends of flow f use the port [`FIRST_PORT`] + f.
fn first_path(parsed: &Parsed, flows: &[EmuFlow]) -> Option<FlowPacket> {
    let (source, destination) = parsed.ports?;
    let flow = source.checked_sub(FIRST_PORT)?;
    if source != destination || usize::from(flow) >= flows.len() {
        return None;
    }
    Some(FlowPacket { flow: flow.into(), path: flow.into(), datagram: None })
}

/// Finds the flow of a packet on the second path of a connection. One host uses its second address there, and
/// a port that its kernel chose. The other host uses the flow's port.
fn second_path(packet: &[u8], parsed: &Parsed, flows: &[EmuFlow]) -> Option<FlowPacket> {
    let (source, destination) = parsed.ports?;
    let is_second =
        |address: IpAddr| Host::BOTH.into_iter().any(|host| second_address(host, parsed.ip) == address);
    let (from, to) = addresses(packet, parsed.ip)?;
    let port = match (is_second(from), is_second(to)) {
        (true, false) => destination,
        (false, true) => source,
        _ => return None,
    };
    let flow = port.checked_sub(FIRST_PORT)?;
    let path = flows.get(usize::from(flow))?.second_path?;
    Some(FlowPacket { flow: flow.into(), path, datagram: None })
}
