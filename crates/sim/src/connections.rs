//! QUIC connections: which flows share one, and the ends that they share.

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use talkpath_flow::{FlowId, Side};
use talkpath_model::{Flow, Scenario};
use talkpath_quic::{End, Ends, FlowSetup, KeyLog, QlogEvent, Setup};
use talkpath_units::Seed;

use crate::endpoint::EndpointTransport;
use crate::member::Member;
use crate::shared::{ConnectionAgenda, SharedPlace};
use crate::tap::CaptureEnd;

/// All QUIC connections of a run.
#[derive(Default)]
pub(crate) struct Connections {
    all: Vec<Connection>,
    /// For each flow of the scenario its connection in `all`, and its place there; `None` without QUIC.
    places: Vec<Option<(usize, u32)>>,
}

/// A connection of one flow or of several.
pub(crate) struct Connection {
    /// Its flows, by index. Its packets bear the number of the first one.
    pub(crate) flows: Vec<u32>,
    near: Rc<RefCell<End>>,
    far: Rc<RefCell<End>>,
    /// Of both ends; unused if it has one flow.
    pub(crate) shared: [ConnectionAgenda; 2],
    key_log: KeyLog,
}

impl Connections {
    pub(crate) fn new(scenario: &Scenario, seed: Seed) -> Self {
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut named: BTreeMap<&str, usize> = BTreeMap::new();
        let mut places = Vec::with_capacity(scenario.flows.len());
        for (index, flow) in (0..).zip(&scenario.flows) {
            places.push(flow.transport.as_quic().map(|quic| {
                // Without a name it has a connection of its own.
                let name = quic.connection.as_deref();
                let group = name.map_or(groups.len(), |name| *named.entry(name).or_insert(groups.len()));
                if group == groups.len() {
                    groups.push(Vec::new());
                }
                groups[group].push(index);
                (group, groups[group].len() as u32 - 1)
            }));
        }
        let all = groups.into_iter().map(|flows| Connection::new(scenario, flows, seed)).collect();
        Self { all, places }
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

    /// The place of flow `index` in its connection; `None` if it shares none.
    pub(crate) fn shared_place(&self, index: usize) -> Option<SharedPlace> {
        let (connection, place) = (*self.places.get(index)?)?;
        let is_shared = self.all[connection].flows.len() > 1;
        is_shared.then_some(SharedPlace { connection, place: place as usize })
    }

    /// The number of connections.
    pub(crate) const fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, connection: usize) -> &Connection {
        &self.all[connection]
    }

    pub(crate) fn get_mut(&mut self, connection: usize) -> &mut Connection {
        &mut self.all[connection]
    }

    /// The connection of flow `index`, and the flow's place in it.
    fn of(&self, index: usize) -> Option<(&Connection, u32)> {
        let (connection, place) = (*self.places.get(index)?)?;
        Some((&self.all[connection], place))
    }

    /// The secrets of all connections so far, as an NSS key log.
    pub(crate) fn key_log(&self) -> String {
        self.all.iter().map(|connection| connection.key_log.text()).collect()
    }

    /// Keeps a qlog of each connection at this end from now on.
    pub(crate) fn keep_qlog(&self, end: CaptureEnd) {
        self.all.iter().for_each(|connection| connection.end(end.side()).borrow_mut().keep_qlog(usize::MAX));
    }

    /// What was kept, a connection an entry: its name, and its events in order of time.
    pub(crate) fn take_qlog(&self, end: CaptureEnd) -> Vec<(String, Vec<QlogEvent>)> {
        self.all.iter().filter_map(|connection| connection.end(end.side()).borrow_mut().take_qlog()).collect()
    }
}

impl Connection {
    /// The connection of `flows`, at least one, all over QUIC.
    fn new(scenario: &Scenario, flows: Vec<u32>, seed: Seed) -> Self {
        let first = &scenario.flows[flows[0] as usize];
        let config = first.transport.as_quic().expect("its flows are over QUIC").clone();
        let setups = flows.iter().map(|&index| {
            let flow = &scenario.flows[index as usize];
            let quic = flow.transport.as_quic().expect("its flows are over QUIC");
            let receive_buffer = flow.receiver.socket_buffer;
            FlowSetup { carry: quic.carry, priority: quic.priority, receive_buffer }
        });
        let setup = Setup {
            config,
            flows: setups.collect(),
            path_mtu: scenario.path_mtu(first),
            seed: first.transport_seed(seed),
        };
        let Ends { client, server, key_log } =
            End::pair(&setup).expect("TLS takes the configurations that are our own");
        let (near, far) = (Rc::new(RefCell::new(client)), Rc::new(RefCell::new(server)));
        // At the near end none is open yet. The far end waits for none.
        let shared = [flows.len() - 1, 0].map(|first_open| ConnectionAgenda::new(flows.len(), first_open));
        Self { flows, near, far, shared, key_log }
    }

    /// The end at `side`. Nobody holds it from one step to the next.
    pub(crate) fn end(&self, side: Side) -> &RefCell<End> {
        match side {
            Side::Near => &self.near,
            Side::Far => &self.far,
        }
    }
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Source, load};

    use super::*;

    #[test]
    fn flows_that_name_a_connection_share_it_and_the_others_have_their_own() {
        let flow = |name: &str, transport: &str| {
            format!(
                "[flow.{name}]\ntransport = {transport}\nworkload = {{ kind = \"voice\", codec = \"g711\" }}\n"
            )
        };
        let shared = "{ kind = \"quic-datagram\", connection = \"one\" }";
        let flows = [
            flow("a", shared),
            flow("b", "\"quic-datagram\""),
            flow("c", "\"udp\""),
            flow("d", "\"quic-datagram\""),
            flow("e", shared),
        ];
        let text = format!(
            "name = \"connections\"\nduration = \"1 s\"\n[path]\nup = {{ rate = \"1 Mbps\", delay = \"1 ms\" }}\n\
             down = {{ rate = \"1 Mbps\", delay = \"1 ms\" }}\n{}",
            flows.concat()
        );
        let plan = load(&Source::new("test.toml", text), &Options::default()).expect("the scenario is right");
        let connections = Connections::new(&plan.cells[0].scenario, Seed::new(1));
        assert_eq!(connections.places, [Some((0, 0)), Some((1, 0)), None, Some((2, 0)), Some((0, 1))]);
        assert_eq!(connections.shared_place(4), Some(SharedPlace { connection: 0, place: 1 }));
        assert_eq!(connections.get(0).flows, [0, 4]);
        assert_eq!([1, 2, 3].map(|index| connections.shared_place(index)), [None, None, None]);
        assert_eq!(connections.of(5).map(|it| it.1), None, "there is no such flow");
    }
}
