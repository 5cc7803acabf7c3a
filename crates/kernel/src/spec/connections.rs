//! Which flows of a session share a QUIC connection, and on what they have to agree.

use talkpath_config::Carry;
use talkpath_model::{Demand, Flow};

use super::{FlowSpec, QuicSpec, SessionSpec, TransportSpec, receive_window};

impl SessionSpec {
    /// The first flow of the connection that flow `index` belongs to: the flow itself, if no flow before it
    /// has the same connection. That flow has the sockets of the connection.
    pub fn leader(&self, index: usize) -> usize {
        let quic = self.flows.get(index).and_then(|flow| flow.transport.as_quic());
        quic.and_then(QuicSpec::leader).unwrap_or(index)
    }

    /// Whether flow `index` is the first one of its connection.
    pub fn is_leader(&self, index: usize) -> bool {
        self.leader(index) == index
    }

    /// The flows of the connection that flow `index` belongs to, in their order.
    pub fn members(&self, index: usize) -> Vec<usize> {
        let leader = self.leader(index);
        (0..self.flows.len()).filter(|&other| self.leader(other) == leader).collect()
    }

    /// Which of the flows of its connection flow `index` is.
    pub fn place_in_connection(&self, index: usize) -> usize {
        self.members(index).iter().position(|&member| member == index).unwrap_or(0)
    }

    /// Bytes of memory that a far end can make one end of the connection of flow `index` hold beside rows: on
    /// QUIC's streams what nobody has read, once in the engine, and twice the room for half messages, whose
    /// buffers grow. They count for the connection's first flow.
    pub fn connection_bytes(&self, index: usize) -> u64 {
        let is_quic = self.flows.get(index).is_some_and(|flow| flow.transport.as_quic().is_some());
        if !is_quic || !self.is_leader(index) {
            return 0;
        }
        self.half_message_room(index).saturating_mul(2).saturating_add(self.receive_window(index).into())
    }

    /// Bytes on streams that the far end of the connection of flow `index` may send and nobody has read.
    pub(crate) fn receive_window(&self, index: usize) -> u32 {
        receive_window(self.members(index).into_iter().all(|member| self.flows[member].is_clocked()))
    }

    /// Bytes that one end of that connection keeps of messages of which a part came, each on a stream of its
    /// own. Chosen: a window, and of each flow two of its largest messages, because one that a lost packet
    /// holds up lets most of the next one come.
    pub(crate) fn half_message_room(&self, index: usize) -> u64 {
        let flows = self.members(index).into_iter().map(|member| &self.flows[member]);
        let is_whole = |flow: &&FlowSpec| {
            flow.transport.as_quic().is_some_and(|quic| quic.carry() == Carry::StreamPerMessage)
        };
        let largest = flows.filter(is_whole).map(FlowSpec::largest_greedy).fold(0, u64::saturating_add);
        u64::from(self.receive_window(index)).max(largest.saturating_mul(2))
    }

    /// Makes flows that name the same connection in the scenario share it.
    pub(super) fn share_connections(&mut self, flows: &[Flow]) {
        let name = |flow: &Flow| flow.transport.as_quic().and_then(|quic| quic.connection.clone());
        for (index, flow) in flows.iter().enumerate() {
            let Some(connection) = name(flow) else { continue };
            let leader = flows[..index].iter().position(|other| name(other).as_ref() == Some(&connection));
            if let (Some(leader), TransportSpec::Quic(spec)) = (leader, &mut self.flows[index].transport) {
                spec.follow(u32::try_from(leader).unwrap_or(u32::MAX));
            }
        }
    }

    /// What a connection of several flows cannot do, in words, and the flow that it is about. The server
    /// checks it again, since anybody may write a session.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_connections(&self) -> Result<(), (usize, String)> {
        for (index, flow) in self.flows.iter().enumerate().filter(|(index, _)| !self.is_leader(*index)) {
            let leader = self.leader(index);
            let first = self.flows.get(leader).filter(|_| leader < index && self.is_leader(leader));
            let (Some(first), Some(quic)) = (first, flow.transport.as_quic()) else {
                return Err((index, "its connection is no earlier flow's".to_owned()));
            };
            let Some(of_first) = first.transport.as_quic() else {
                return Err((index, "its connection is of a flow without QUIC".to_owned()));
            };
            let differs = if flow.is_up != first.is_up {
                "direction"
            } else if flow.dscp_byte != first.dscp_byte {
                "dscp"
            } else if !quic.fits_connection_of(of_first) {
                "congestion control, MTU or `zero_rtt`"
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

    /// Whether each connection has at most one flow whose messages do not all name it.
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
    /// Whether the far end can see of each of its messages which flow of a connection it belongs to. A flow
    /// on one stream is known by that, and has no messages to name.
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
        // All are as long as the first, but for the last one of a transfer.
        [0, last].into_iter().all(|seq| self.datagram_size(seq).is_none_or(is_named))
    }
}
