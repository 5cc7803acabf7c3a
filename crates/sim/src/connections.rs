//! QUIC connections: which flows share one, and the ends that they share.

use core::cell::RefCell;
use std::rc::Rc;

use talkpath_flow::{Carrier, FlowId, Member};
use talkpath_quic::{End, FlowSetup, Setup};
use talkpath_scenario::{Flow, Scenario};
use talkpath_units::Seed;

/// All QUIC connections of a run.
pub(crate) struct Connections(Vec<Connection>);

struct Connection {
    /// Its flows, by index.
    flows: Vec<u32>,
    near: Rc<RefCell<End>>,
    far: Rc<RefCell<End>>,
}

impl Connections {
    pub(crate) fn new(scenario: &Scenario, seed: Seed) -> Self {
        let mut groups: Vec<(Option<&str>, Vec<u32>)> = Vec::new();
        for (index, flow) in (0..).zip(&scenario.flows) {
            let Some(quic) = flow.transport.as_quic() else { continue };
            let name = quic.connection.as_deref();
            match groups.iter_mut().find(|(other, _)| name.is_some() && *other == name) {
                Some((_, flows)) => flows.push(index),
                None => groups.push((name, vec![index])),
            }
        }
        Self(groups.into_iter().filter_map(|(_, flows)| Connection::new(scenario, flows, seed)).collect())
    }

    /// Both ends of the flow `flow`, which is number `index`, and the flows of its connection if there are
    /// several; `None` if it is not over QUIC.
    pub(crate) fn carriers(&self, index: usize, flow: &Flow) -> Option<([Carrier; 2], Box<[u32]>)> {
        let quic = flow.transport.as_quic()?;
        let place = |it: &Connection| it.flows.iter().position(|&flow| flow as usize == index);
        let (connection, id) = self.0.iter().find_map(|it| Some((it, FlowId(place(it)? as u32))))?;
        let carrier =
            |end: &Rc<RefCell<End>>| Carrier::Quic(Member::new(Rc::clone(end), id, quic.carry, quic.expire));
        let members =
            if connection.flows.len() > 1 { connection.flows.clone().into() } else { Box::default() };
        Some(([carrier(&connection.near), carrier(&connection.far)], members))
    }
}

impl Connection {
    fn new(scenario: &Scenario, flows: Vec<u32>, seed: Seed) -> Option<Self> {
        let first = &scenario.flows[*flows.first()? as usize];
        let setups = flows.iter().filter_map(|&index| {
            let flow = &scenario.flows[index as usize];
            let quic = flow.transport.as_quic()?;
            let receive_buffer = flow.receiver.socket_buffer;
            Some(FlowSetup { carry: quic.carry, priority: quic.priority, receive_buffer })
        });
        let setup = Setup {
            config: first.transport.as_quic()?.clone(),
            flows: setups.collect(),
            path_mtu: scenario.path_mtu(first),
            seed: first.transport_seed(seed),
        };
        let (near, far) = End::pair(&setup).expect("TLS takes the configurations that are our own");
        Some(Self { flows, near: Rc::new(RefCell::new(near)), far: Rc::new(RefCell::new(far)) })
    }
}
