//! QUIC connections: which flows share one, and the ends that they share.

use core::cell::RefCell;
use std::rc::Rc;

use talkpath_flow::{EndpointTransport, FlowId, Member};
use talkpath_quic::{End, FlowSetup, QlogEvent, Setup};
use talkpath_scenario::{Flow, Scenario};
use talkpath_units::Seed;

use crate::tap::CaptureEnd;

/// All QUIC connections of a run.
#[derive(Default)]
pub(crate) struct Connections(Vec<Connection>);

/// The flows that share a connection, by index. Its packets are the first one's.
pub(crate) type Members = Rc<[u32]>;

struct Connection {
    /// Its flows.
    flows: Members,
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

    /// The transports of both ends of the flow `flow`, which is number `index`; `None` without QUIC.
    pub(crate) fn transports(&self, index: usize, flow: &Flow) -> Option<[EndpointTransport; 2]> {
        let quic = flow.transport.as_quic()?;
        let (connection, place) = self.of(index)?;
        let transport = |end: &Rc<RefCell<End>>| {
            EndpointTransport::Quic(Member::new(Rc::clone(end), FlowId(place), quic.carry, quic.expire))
        };
        Some([transport(&connection.near), transport(&connection.far)])
    }

    /// The flows of the connection of flow `index`; `None` if it shares none.
    pub(crate) fn members(&self, index: usize) -> Option<Members> {
        let (connection, _) = self.of(index).filter(|it| it.0.flows.len() > 1)?;
        Some(Rc::clone(&connection.flows))
    }

    /// The connection of flow `index`, and the flow's place in it.
    fn of(&self, index: usize) -> Option<(&Connection, u32)> {
        let place = |it: &Connection| it.flows.iter().position(|&flow| flow as usize == index);
        self.0.iter().find_map(|it| Some((it, place(it)? as u32)))
    }

    /// The secrets of all connections so far, as an NSS key log.
    pub(crate) fn key_log(&self) -> String {
        self.0.iter().map(|connection| connection.near.borrow().key_log()).collect()
    }

    /// Keeps a qlog of each connection at this end from now on.
    pub(crate) fn keep_qlog(&self, end: CaptureEnd) {
        self.0.iter().for_each(|connection| connection.end(end).borrow_mut().keep_qlog());
    }

    /// What was kept, a connection an entry: its name, and its events in order of time.
    pub(crate) fn take_qlog(&self, end: CaptureEnd) -> Vec<(String, Vec<QlogEvent>)> {
        self.0.iter().filter_map(|connection| connection.end(end).borrow_mut().take_qlog()).collect()
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
        let (near, far) = (Rc::new(RefCell::new(near)), Rc::new(RefCell::new(far)));
        Some(Self { flows: flows.into(), near, far })
    }

    fn end(&self, end: CaptureEnd) -> &RefCell<End> {
        match end {
            CaptureEnd::Near => &self.near,
            CaptureEnd::Far => &self.far,
        }
    }
}
