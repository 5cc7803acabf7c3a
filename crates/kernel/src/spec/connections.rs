//! The flows of a session that share a QUIC connection, and the options in which they have to agree.

use talkpath_config::Carry;
use talkpath_model::{Demand, Flow};

use super::{FlowSpec, QuicSpec, SessionSpec, TransportSpec, receive_window};

impl SessionSpec {
    /// The place of the first flow of the connection that flow `index` belongs to. This is `index` if no flow
    /// before it has the same connection. The first flow has the sockets of the connection.
    pub fn leader(&self, index: usize) -> usize {
        let quic = self.flows.get(index).and_then(|flow| flow.transport.as_quic());
        quic.and_then(QuicSpec::leader).unwrap_or(index)
    }

    /// Returns true if flow `index` is the first flow of its connection.
    pub fn is_leader(&self, index: usize) -> bool {
        self.leader(index) == index
    }

    /// The flows of the connection that flow `index` belongs to, in their order.
    pub fn members(&self, index: usize) -> Vec<usize> {
        let leader = self.leader(index);
        (0..self.flows.len()).filter(|&other| self.leader(other) == leader).collect()
    }

    /// The place of flow `index` among the flows of its connection.
    pub fn place_in_connection(&self, index: usize) -> usize {
        self.members(index).iter().position(|&member| member == index).unwrap_or(0)
    }

    /// The bytes of memory that a far end can make one end of a QUIC connection hold, without the rows of
    /// logs. They are the unread data on streams in the engine, and twice the room for half messages, because
    /// the buffers of half messages grow. The bytes count for the first flow of the connection. For every
    /// other flow the answer is zero.
    pub fn connection_bytes(&self, index: usize) -> u64 {
        let is_quic = self.flows.get(index).is_some_and(|flow| flow.transport.as_quic().is_some());
        if !is_quic || !self.is_leader(index) {
            return 0;
        }
        self.half_message_room(index).saturating_mul(2).saturating_add(self.receive_window(index).into())
    }

    /// The bytes of unread data on streams that the far end may have sent on the connection of flow `index`.
    pub(crate) fn receive_window(&self, index: usize) -> u32 {
        receive_window(self.members(index).into_iter().all(|member| self.flows[member].is_clocked()))
    }

    /// The bytes that one end of the connection of flow `index` keeps of half messages: messages with a
    /// stream of their own of which only a part has come. We chose at least a receive window, and at least
    /// two of the largest messages of each flow, because most of the next message may come while a lost
    /// packet holds up one message.
    pub(crate) fn half_message_room(&self, index: usize) -> u64 {
        let flows = self.members(index).into_iter().map(|member| &self.flows[member]);
        let is_whole = |flow: &&FlowSpec| {
            flow.transport.as_quic().is_some_and(|quic| quic.carry() == Carry::StreamPerMessage)
        };
        let largest = flows.filter(is_whole).map(FlowSpec::largest_greedy).fold(0, u64::saturating_add);
        u64::from(self.receive_window(index)).max(largest.saturating_mul(2))
    }

    /// Makes flows share a connection if they name the same connection in the scenario.
    pub(super) fn share_connections(&mut self, flows: &[Flow]) {
        let name = |flow: &Flow| flow.transport.as_quic().and_then(|quic| quic.connection.clone());
        for (index, flow) in flows.iter().enumerate() {
            let Some(connection) = name(flow) else { continue };
            let leader = flows[..index].iter().position(|other| name(other).as_ref() == Some(&connection));
            if let (Some(leader), TransportSpec::Quic(spec)) = (leader, &mut self.flows[index].transport) {
                spec.set_leader(u32::try_from(leader).unwrap_or(u32::MAX));
            }
        }
    }

    /// Checks that the flows of each shared connection agree. The server checks it again, because anybody may
    /// send a session to it.
    ///
    /// # Errors
    /// Returns the place of a flow and a text that says what is wrong with it.
    pub fn check_connections(&self) -> Result<(), (usize, String)> {
        for (index, flow) in self.flows.iter().enumerate().filter(|(index, _)| !self.is_leader(*index)) {
            let leader = self.leader(index);
            let first = self.flows.get(leader).filter(|_| leader < index && self.is_leader(leader));
            let (Some(first), Some(quic)) = (first, flow.transport.as_quic()) else {
                return Err((index, "its connection is no earlier flow's".to_owned()));
            };
            let Some(first_quic) = first.transport.as_quic() else {
                return Err((index, "its connection is of a flow without QUIC".to_owned()));
            };
            let differs = if flow.is_up != first.is_up {
                "direction"
            } else if flow.dscp_byte != first.dscp_byte {
                "dscp"
            } else if !quic.fits_connection_of(first_quic) {
                "congestion control, MTU, `zero_rtt`, `idle_timeout` or `keep_alive`"
            } else {
                continue;
            };
            return Err((
                index,
                format!(
                    "found another {differs} than of the first flow of its `connection`, expected the same: \
                     a connection has one"
                ),
            ));
        }
        self.check_names()
    }

    /// Checks that each connection has at most one flow with messages that do not name their flow.
    fn check_names(&self) -> Result<(), (usize, String)> {
        let mut leaders = Vec::new();
        for (index, flow) in self.flows.iter().enumerate().filter(|(_, flow)| !flow.is_named()) {
            if leaders.contains(&self.leader(index)) {
                return Err((
                    index,
                    format!(
                        "found a message below {} B in a second flow of one `connection`, expected in one flow at \
                         most: such a message has no room for its flow's name",
                        talkpath_quic::NAMED
                    ),
                ));
            }
            if flow.transport.as_quic().is_some() {
                leaders.push(self.leader(index));
            }
        }
        Ok(())
    }
}

impl FlowSpec {
    /// Returns true if each message says to the far end which flow of the connection it belongs to. A flow
    /// with one stream for all messages is known by its stream, so its messages need no name.
    pub(crate) fn is_named(&self) -> bool {
        if self.transport.as_quic().is_none_or(|quic| quic.carry() == Carry::Stream) {
            return true;
        }
        let is_named = |size: u64| size >= talkpath_quic::NAMED as u64;
        if let Some(sizes) = self.workload.sizes() {
            return is_named(sizes.smallest().get());
        }
        let last = match self.workload.demand() {
            Demand::Greedy { bytes: Some(bytes), .. } => {
                bytes.get().saturating_sub(1) / self.largest_greedy().max(1)
            }
            Demand::Greedy { bytes: None, .. } | Demand::Clocked { .. } | Demand::Bursts { .. } => 0,
        };
        // All messages of a transfer are as long as the first one, except the last one.
        [0, last].into_iter().all(|seq| self.datagram_size(seq).is_none_or(is_named))
    }
}
