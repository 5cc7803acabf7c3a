//! A program that is not ours in the place of one end of a flow.
//!
//! The sockets of both hosts belong to this process ([`crate::world`]). So the socket of one end can go to
//! another process, which speaks there with our other end, over the emulated path. That process needs no
//! rights and knows nothing of namespaces: its socket is bound, and connected to our end's.
//!
//! The arrival log has each packet of both ends, so what a stranger and our end count can be held against it
//! ([`ways`]).

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
    /// The flow, by its place in the scenario.
    pub flow: usize,
    /// The end whose place it takes. The near end is the sender, and a connection's client.
    pub side: Side,
    /// The keys of our end of a QUIC connection; `None` draws them from the seed.
    pub quic_keys: Option<HostKeys>,
    /// Gives the socket away. The run begins when it returns.
    pub take_socket: &'a mut dyn FnMut(OwnedFd) -> io::Result<()>,
}

impl Stranger<'_> {
    /// The index of its socket: each flow's sender and receiver have one, in this order.
    pub(crate) const fn socket_index(&self) -> usize {
        let place = match self.side {
            Side::Near => 0,
            Side::Far => 1,
        };
        2 * self.flow + place
    }

    /// Whether it can take part in `scenario`; if not, why.
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

/// What our end counted beside a stranger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OurEnd {
    /// Messages that left; bytes of one stream for all.
    pub sent: u64,
    /// Messages that came, each once; bytes of one stream for all.
    pub received: u64,
    /// What ended the flow before its time.
    pub failure: Option<String>,
}

impl OurEnd {
    /// What `end` counted.
    pub(crate) fn of(end: &SharedEnd) -> Self {
        let end = end.lock();
        let progress = end.progress();
        Self { sent: progress.sent, received: progress.received, failure: end.failure.clone() }
    }
}

/// The packets of one direction and their fates, each as its number of bytes behind the IP header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Those that entered the path.
    pub arrived: Vec<u32>,
    /// Those that were handed to the far host.
    pub departed: Vec<u32>,
    /// Those that a wire ate or a queue dropped.
    pub lost: Vec<u32>,
    /// Whether the last packet that entered the path was lost: a close that did not arrive, say.
    pub is_last_lost: bool,
}

/// The packets in the arrival log `bytes` and their fates: those from the senders, and those to them.
/// Their paths do not cut packets.
///
/// # Errors
/// [`LogError`].
pub fn ways(bytes: &[u8]) -> Result<[Way; 2], LogError> {
    let (_, mut reader) = LogReader::open(bytes)?;
    let mut ways = [Way::default(), Way::default()];
    let mut arrivals: Vec<(usize, u32)> = Vec::new();
    // The last of each way that entered, and that was lost.
    let (mut last_arrived, mut last_lost) = ([None; 2], [None; 2]);
    loop {
        match reader.next()? {
            Record::Arrival { arrival, .. } => {
                let way = usize::from(arrival.direction == Direction::Back);
                last_arrived[way] = Some(arrivals.len() as u64);
                arrivals.push((way, arrival.part.length));
                ways[way].arrived.push(arrival.part.length);
            }
            Record::Decision { number, outcome, .. } => {
                let arrival = usize::try_from(number).ok().and_then(|number| arrivals.get(number));
                let &(way, length) = arrival.ok_or(LogError::Damaged(number))?;
                match outcome {
                    PacketOutcome::Departs { .. } => ways[way].departed.push(length),
                    PacketOutcome::Dropped { .. } | PacketOutcome::Lost { .. } => {
                        last_lost[way] = Some(number);
                        ways[way].lost.push(length);
                    }
                }
            }
            Record::End { .. } => {
                for (way, it) in ways.iter_mut().enumerate() {
                    it.is_last_lost = last_lost[way].is_some() && last_lost[way] == last_arrived[way];
                }
                return Ok(ways);
            }
        }
    }
}
