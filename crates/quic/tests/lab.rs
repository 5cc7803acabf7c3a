//! A client and a server in virtual time, and a link between them that has a rate, a delay and losses.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    Connection, ConnectionError, ConnectionEvent, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event,
    StreamEvent, Transmit,
};
use talkpath_quic::{Configs, SERVER_NAME};
use talkpath_units::{Seed, Stream};

/// A UDP payload as it passed the link's entrance, dropped there or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) at: Duration,
    pub(crate) side: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) ecn: Option<u8>,
}

/// What the client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carry {
    /// A datagram of 160 B each 20 ms.
    Datagrams(u32),
    /// An empty datagram each 20 ms: the smallest packets that there are.
    EmptyDatagrams(u32),
    /// One stream of this many octets, closed after them.
    Stream(usize),
    /// A stream for each message of 160 B, one each 20 ms.
    StreamPerMessage(u32),
    /// One stream of this many octets, given before the handshake as 0-RTT data.
    EarlyStream(usize),
}

pub(crate) const CLIENT: usize = 0;
const SERVER: usize = 1;

/// The two ends and the link.
pub(crate) struct Lab {
    /// The virtual time 0. The engine's instants have no other origin than some reading of the clock.
    epoch: Instant,
    now: Duration,
    ends: [End; 2],
    client: quinn_proto::ClientConfig,
    link: Link,
    /// True if the server wants a token before it opens a connection (RFC 9000 §8.1.2).
    pub(crate) retry: bool,
    /// The client's congestion window when all had arrived.
    pub(crate) window: u64,
    /// Why the client's connection was lost, if it was.
    pub(crate) lost: Option<ConnectionError>,
    pub(crate) packets: Vec<Packet>,
    /// Octets that the server's application has read, from streams and datagrams.
    pub(crate) received: usize,
    /// Messages, each a datagram or a whole stream, that the server's application has read.
    pub(crate) messages: usize,
    /// True if 0-RTT data was sent and the server took it.
    pub(crate) early_accepted: bool,
}

struct End {
    endpoint: Endpoint,
    connections: BTreeMap<usize, (Connection, VecDeque<ConnectionEvent>)>,
}

struct Link {
    loss: f64,
    draws: Stream,
    free: [Duration; 2],
    flight: BTreeMap<(Duration, u64), (usize, Transmit, Vec<u8>)>,
    count: u64,
}

impl Lab {
    /// An empty link that loses this share of its packets.
    pub(crate) fn new(configs: Configs, loss: f64, link_seed: u64) -> Self {
        Self::at(Duration::ZERO, configs, loss, link_seed)
    }

    /// Virtual time begins this much later than the system's clock stands.
    pub(crate) fn at(shift: Duration, configs: Configs, loss: f64, link_seed: u64) -> Self {
        let client_end = Endpoint::new(Arc::new(configs.endpoint_client), None, true, None);
        let server = Some(Arc::new(configs.server));
        let server_end = Endpoint::new(Arc::new(configs.endpoint_server), server, true, None);
        let draws = Seed::new(link_seed).stream("lab/link");
        #[expect(clippy::disallowed_methods, reason = "the origin of virtual time")]
        let epoch = Instant::now() + shift;
        Self {
            epoch,
            now: Duration::ZERO,
            ends: [client_end, server_end].map(|endpoint| End { endpoint, connections: BTreeMap::new() }),
            client: configs.client,
            link: Link { loss, draws, free: [Duration::ZERO; 2], flight: BTreeMap::new(), count: 0 },
            retry: false,
            window: 0,
            lost: None,
            packets: Vec::new(),
            received: 0,
            messages: 0,
            early_accepted: false,
        }
    }

    /// Opens a connection, sends what `carry` says, and closes once all is read or after `limit`.
    pub(crate) fn run(&mut self, carry: Carry, limit: Duration) {
        let address = address(SERVER);
        let opened = self.ends[CLIENT].endpoint.connect(
            self.epoch + self.now,
            self.client.clone(),
            address,
            SERVER_NAME,
        );
        let (handle, connection) = opened.expect("a connection");
        let early = connection.has_0rtt();
        self.ends[CLIENT].connections.insert(handle.0, (connection, VecDeque::new()));
        let mut workload = Workload { carry, sent: 0, due: None, stream: None };
        if let Carry::EarlyStream(_) = carry {
            workload.due = Some(self.now);
        }
        let (end, goal) = (self.now + limit, self.messages + carry.messages());
        let mut closed = false;
        loop {
            self.exchange(handle, &mut workload);
            if !closed && self.messages >= goal && self.link.flight.is_empty() {
                closed = true;
                let now = self.epoch + self.now;
                let connection = self.connection(handle);
                let accepted = early && connection.accepted_0rtt();
                let window = connection.congestion_state().window();
                connection.close(now, 0_u32.into(), Bytes::new());
                (self.early_accepted, self.window) = (self.early_accepted | accepted, window);
                continue;
            }
            match self.next(workload.due) {
                Some(next) if next <= end => self.now = next.max(self.now),
                _ => break,
            }
            if closed && self.ends.iter().all(|end| end.connections.is_empty()) {
                break;
            }
        }
    }

    fn connection(&mut self, handle: ConnectionHandle) -> &mut Connection {
        &mut self.ends[CLIENT].connections.get_mut(&handle.0).expect("the client's connection").0
    }

    /// Everything that happens at this instant.
    fn exchange(&mut self, handle: ConnectionHandle, workload: &mut Workload) {
        self.arrivals();
        if let Some((connection, _)) = self.ends[CLIENT].connections.get_mut(&handle.0) {
            workload.advance(connection, self.now);
        }
        for side in [CLIENT, SERVER] {
            let handles: Vec<usize> = self.ends[side].connections.keys().copied().collect();
            for number in handles {
                self.turn(side, number, workload);
            }
        }
    }

    fn arrivals(&mut self) {
        while let Some(entry) = self.link.flight.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (side, transmit, bytes) = entry.remove();
            let now = self.epoch + self.now;
            let end = &mut self.ends[side];
            let mut buffer = Vec::new();
            let from = address(1 - side);
            let bytes = BytesMut::from(&bytes[..]);
            match end.endpoint.handle(now, from, None, transmit.ecn, bytes, &mut buffer) {
                None => {}
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    end.connections.get_mut(&handle.0).expect("a connection").1.push_back(event);
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let answer = if self.retry && !incoming.remote_address_validated() {
                        end.endpoint.retry(incoming, &mut buffer).ok()
                    } else {
                        match end.endpoint.accept(incoming, now, &mut buffer, None) {
                            Ok((handle, connection)) => {
                                end.connections.insert(handle.0, (connection, VecDeque::new()));
                                None
                            }
                            Err(error) => error.response,
                        }
                    };
                    if let Some(transmit) = answer {
                        let bytes = buffer[..transmit.size].to_vec();
                        self.send(side, transmit, bytes);
                    }
                }
                Some(DatagramEvent::Response(transmit)) => {
                    let bytes = buffer[..transmit.size].to_vec();
                    self.send(side, transmit, bytes);
                }
            }
        }
    }

    /// A connection's input, timers and output.
    fn turn(&mut self, side: usize, number: usize, workload: &mut Workload) {
        let now = self.epoch + self.now;
        let end = &mut self.ends[side];
        let Some((connection, events)) = end.connections.get_mut(&number) else { return };
        let mut output = Vec::new();
        loop {
            while let Some(event) = events.pop_front() {
                connection.handle_event(event);
            }
            if connection.poll_timeout().is_some_and(|timeout| timeout <= now) {
                connection.handle_timeout(now);
            }
            while let Some(event) = connection.poll() {
                if side == SERVER {
                    let (octets, messages) = read(connection, &event);
                    (self.received, self.messages) = (self.received + octets, self.messages + messages);
                } else if let Event::ConnectionLost { reason } = event {
                    self.lost = Some(reason);
                } else if matches!(event, Event::Connected) && workload.due.is_none() {
                    workload.due = Some(self.now);
                    workload.advance(connection, self.now);
                }
            }
            let mut buffer = Vec::new();
            while let Some(transmit) = connection.poll_transmit(now, 1, &mut buffer) {
                let bytes = buffer[..transmit.size].to_vec();
                buffer.clear();
                output.push((transmit, bytes));
            }
            let mut gone = false;
            while let Some(event) = connection.poll_endpoint_events() {
                gone |= event.is_drained();
                if let Some(event) = end.endpoint.handle_event(ConnectionHandle(number), event) {
                    events.push_back(event);
                }
            }
            if gone {
                end.connections.remove(&number);
                break;
            }
            if events.is_empty() && connection.poll_timeout().is_none_or(|timeout| timeout > now) {
                break;
            }
        }
        for (transmit, bytes) in output {
            self.send(side, transmit, bytes);
        }
    }

    /// Puts a packet on the link: it may be lost, else it is serialised and arrives after the delay.
    fn send(&mut self, side: usize, transmit: Transmit, bytes: Vec<u8>) {
        let ecn = transmit.ecn.map(|ecn| ecn as u8);
        self.packets.push(Packet { at: self.now, side, bytes: bytes.clone(), ecn });
        let link = &mut self.link;
        let time = Duration::from_nanos((bytes.len() + 28) as u64 * 8 * 1_000_000_000 / RATE);
        link.free[side] = link.free[side].max(self.now) + time;
        link.count += 1;
        if !link.draws.chance(link.loss) {
            let arrival = link.free[side] + DELAY;
            link.flight.insert((arrival, link.count), (1 - side, transmit, bytes));
        }
    }

    fn next(&mut self, due: Option<Duration>) -> Option<Duration> {
        let timeouts = self.ends.iter_mut().flat_map(|end| end.connections.values_mut());
        let timeouts = timeouts.filter_map(|(connection, _)| connection.poll_timeout());
        let epoch = self.epoch;
        let timeouts = timeouts.map(|timeout| timeout.saturating_duration_since(epoch));
        let arrival = self.link.flight.keys().next().map(|key| key.0);
        timeouts.chain(arrival).chain(due).min()
    }
}

/// Reads what an event announces; octets and finished messages.
fn read(connection: &mut Connection, event: &Event) -> (usize, usize) {
    let (mut octets, mut messages) = (0, 0);
    match event {
        Event::DatagramReceived => {
            while let Some(datagram) = connection.datagrams().recv() {
                (octets, messages) = (octets + datagram.len(), messages + 1);
            }
        }
        Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
            while let Some(id) = connection.streams().accept(Dir::Uni) {
                let more = read(connection, &Event::Stream(StreamEvent::Readable { id }));
                (octets, messages) = (octets + more.0, messages + more.1);
            }
        }
        Event::Stream(StreamEvent::Readable { id }) => {
            let mut stream = connection.recv_stream(*id);
            let Ok(mut chunks) = stream.read(true) else { return (0, 0) };
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => octets += chunk.bytes.len(),
                    Ok(None) => {
                        messages = 1;
                        break;
                    }
                    Err(_) => break,
                }
            }
            let _ = chunks.finalize();
        }
        _ => {}
    }
    (octets, messages)
}

struct Workload {
    carry: Carry,
    sent: usize,
    due: Option<Duration>,
    stream: Option<quinn_proto::StreamId>,
}

impl Workload {
    /// Gives the connection what is due. A stream is written in parts, one each millisecond.
    fn advance(&mut self, connection: &mut Connection, now: Duration) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        match self.carry {
            Carry::Datagrams(count) | Carry::EmptyDatagrams(count) => {
                let size = if let Carry::Datagrams(_) = self.carry { MESSAGE } else { 0 };
                let data = Bytes::from(vec![self.sent as u8; size]);
                connection.datagrams().send(data, true).expect("datagrams are allowed");
                self.next_message(now, count);
            }
            Carry::StreamPerMessage(count) => {
                let id = connection.streams().open(Dir::Uni).expect("a stream is allowed");
                let mut stream = connection.send_stream(id);
                assert_eq!(stream.write(&[self.sent as u8; MESSAGE]), Ok(MESSAGE));
                stream.finish().expect("an open stream");
                self.next_message(now, count);
            }
            Carry::Stream(octets) | Carry::EarlyStream(octets) => {
                let id = *self
                    .stream
                    .get_or_insert_with(|| connection.streams().open(Dir::Uni).expect("a stream is allowed"));
                let data = vec![7; WRITE.min(octets - self.sent)];
                let mut stream = connection.send_stream(id);
                self.sent += stream.write(&data).unwrap_or(0);
                self.due = Some(now + Duration::from_millis(1)).filter(|_| self.sent < octets);
                if self.due.is_none() {
                    stream.finish().expect("an open stream");
                }
            }
        }
        // What was sent in the last turn is not due a second time.
        if self.due.is_none() {
            self.due = Some(Duration::MAX);
        }
    }

    fn next_message(&mut self, now: Duration, count: u32) {
        self.sent += 1;
        self.due = Some(now + Duration::from_millis(20)).filter(|_| self.sent < count as usize);
    }
}

impl Carry {
    pub(crate) fn messages(self) -> usize {
        match self {
            // Some datagrams may be lost: the run ends at its limit then.
            Self::Datagrams(count) | Self::EmptyDatagrams(count) | Self::StreamPerMessage(count) => {
                count as usize
            }
            Self::Stream(_) | Self::EarlyStream(_) => 1,
        }
    }
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + side as u8], 4433))
}

const MESSAGE: usize = 160;
/// Twice and more what the link carries in a millisecond.
const WRITE: usize = 3_000;
/// 10 Mb/s, and 20 ms one way.
const RATE: u64 = 10_000_000;
const DELAY: Duration = Duration::from_millis(20);
