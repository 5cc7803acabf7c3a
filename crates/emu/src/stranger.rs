//! A stranger: another program in the place of one end of a flow.
//!
//! The sockets of both hosts belong to this process ([`crate::world`]). So this process can give the socket
//! of one end to another process, which then speaks with our other end over the emulated path. The other
//! process needs no rights and knows nothing of namespaces, because its socket is bound, and connected to the
//! socket of our end.
//!
//! The arrival log has each packet of both ends. So the counts of the stranger and of our end can be compared
//! with the log ([`read_directions`]).

use std::io;
use std::os::fd::OwnedFd;

use talkpath_flow::Side;
use talkpath_kernel::end::{HostKeys, SharedEnd};
use talkpath_kernel::spec::{ChannelKind, QuicSpec, SessionSpec};
use talkpath_model::Scenario;
use talkpath_path::Direction;

use crate::arrival_log::{LogError, LogReader, Record};
use crate::decision::PacketOutcome;

/// A program that takes the place of one end of a flow over datagrams.
pub struct Stranger<'a> {
    /// The place of the flow in the scenario.
    pub flow: usize,
    /// The end whose place the stranger takes. The near end is the sender, and the client of a connection.
    pub side: Side,
    /// The keys of our end of a QUIC connection. `None` draws them from the seed.
    pub quic_keys: Option<HostKeys>,
    /// Gives the socket away. The run begins when it returns.
    pub take_socket: &'a mut dyn FnMut(OwnedFd) -> io::Result<()>,
}

impl Stranger<'_> {
    /// The index of the stranger's socket. Each flow has two sockets: the sender's, then the receiver's.
    pub(crate) const fn socket_index(&self) -> usize {
        let place = match self.side {
            Side::Near => 0,
            Side::Far => 1,
        };
        2 * self.flow + place
    }

    /// Checks that a stranger can take part in `scenario`. Returns the reason if not.
    pub(crate) fn check(&self, scenario: &Scenario, spec: &SessionSpec) -> Result<(), String> {
        let Some(flow) = spec.flows.get(self.flow) else {
            let (place, flows) = (self.flow, spec.flows.len());
            return Err(format!("another program in flow {place}, counted from 0: there are only {flows}"));
        };
        if flow.transport.channel_kind() == ChannelKind::Connection {
            return Err("another program in a flow over TCP: only in one over datagrams".to_owned());
        }
        if flow.transport.as_quic().is_some_and(QuicSpec::zero_rtt) {
            return Err(
                "another program in a flow with `zero_rtt`: it has no ticket of an earlier connection"
                    .to_owned(),
            );
        }
        if (0..spec.flows.len()).any(|flow| !spec.is_leader(flow)) {
            return Err(
                "another program in a scenario whose flows share a `connection`: each of its own".to_owned()
            );
        }
        if scenario.far_clock.is_some() {
            return Err("another program in a scenario with far_clock: its stamps are not known".to_owned());
        }
        Ok(())
    }
}

/// The counts of our end, whose other end is a stranger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OurEnd {
    /// The number of messages that left. With one stream for all messages, the number of bytes.
    pub sent: u64,
    /// The number of messages that came, without duplicates. With one stream for all messages, the number of
    /// bytes.
    pub received: u64,
    /// The reason why the flow ended before its time.
    pub failure: Option<String>,
}

impl OurEnd {
    /// Reads the counts of `end`.
    pub(crate) fn of(end: &SharedEnd) -> Self {
        let end = end.lock();
        let progress = end.progress();
        Self { sent: progress.sent, received: progress.received, failure: end.failure.clone() }
    }
}

/// The packets of one direction, listed by their fates. A packet is given by its number of bytes after the IP
/// header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionPackets {
    /// The packets that entered the path.
    pub arrived: Vec<u32>,
    /// The packets that were handed to the far host.
    pub departed: Vec<u32>,
    /// The packets that a wire lost or a queue dropped.
    pub lost: Vec<u32>,
    /// True if the last packet that entered the path was lost. It may have been the close of a connection.
    pub is_last_lost: bool,
}

/// Reads the packets and their fates from the arrival log `bytes`: the packets from the senders, and the
/// packets to them. The path of the run must not cut packets.
///
/// # Errors
/// Returns [`LogError`] if the log is damaged or of another version.
pub fn read_directions(bytes: &[u8]) -> Result<[DirectionPackets; 2], LogError> {
    let (_, mut reader) = LogReader::open(bytes)?;
    let mut directions = [DirectionPackets::default(), DirectionPackets::default()];
    let mut arrivals: Vec<(usize, u32)> = Vec::new();
    // For each direction, the number of the last packet that entered the path, and of the last packet that
    // was lost.
    let (mut last_arrived, mut last_lost) = ([None; 2], [None; 2]);
    loop {
        match reader.next()? {
            Record::Arrival { arrival, .. } => {
                let direction = usize::from(arrival.direction == Direction::Back);
                last_arrived[direction] = Some(arrivals.len() as u64);
                arrivals.push((direction, arrival.part.length));
                directions[direction].arrived.push(arrival.part.length);
            }
            Record::Decision { number, outcome, .. } => {
                let arrival = usize::try_from(number).ok().and_then(|number| arrivals.get(number));
                let &(direction, length) = arrival.ok_or(LogError::Damaged(number))?;
                match outcome {
                    PacketOutcome::Departs { .. } => directions[direction].departed.push(length),
                    // The copy has a decision of its own.
                    PacketOutcome::Repeated { .. } => {}
                    PacketOutcome::Dropped { .. } | PacketOutcome::Lost { .. } => {
                        last_lost[direction] = Some(number);
                        directions[direction].lost.push(length);
                    }
                }
            }
            Record::End { .. } => {
                for (index, packets) in directions.iter_mut().enumerate() {
                    let last_lost = last_lost[index];
                    packets.is_last_lost = last_lost.is_some() && last_lost == last_arrived[index];
                }
                return Ok(directions);
            }
        }
    }
}
