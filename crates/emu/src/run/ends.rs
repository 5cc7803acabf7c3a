//! The ends of all flows of a repetition: which sockets they have, and which thread serves them.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::time::Timespec;
use talkpath_config::TransportKind;
use talkpath_flow::Side;
use talkpath_kernel::alarm::Alarm;
use talkpath_kernel::end::{EndContext, EndPlace, HostKeys, PacketNotes, SharedEnd, UdpRoute};
use talkpath_kernel::spec::{ChannelKind, FlowSpec, SessionSpec};
use talkpath_kernel::sys::socket_drops;
use talkpath_model::{Flow, Scenario};
use talkpath_units::{Instant, Seed};

use crate::connect::Connecting;
use crate::hosts::{sender, token};
use crate::stranger::{OurEnd, Stranger};
use crate::watch::SocketRest;
use crate::world::endpoint;

/// The ends of all flows, and who serves them.
pub(super) struct Ends {
    pub(super) flows: Vec<FlowEnds>,
    /// What the TCP loop serves: senders at even places, receivers at odd ones.
    pub(super) all: Vec<Arc<SharedEnd>>,
    pub(super) datagrams: Vec<(Arc<UdpSocket>, Arc<SharedEnd>)>,
    pub(super) connecting: Vec<Connecting>,
    /// Receivers that read their datagrams from the socket when they are ready, each in a thread of its own.
    pub(super) slow: Vec<(Arc<UdpSocket>, Arc<SharedEnd>)>,
    pub(super) alarm: Arc<Alarm>,
    pub(super) epoll: Arc<OwnedFd>,
}

/// Both ends of a flow.
pub(super) struct FlowEnds {
    pub(super) near: Arc<SharedEnd>,
    pub(super) far: Arc<SharedEnd>,
    /// The sockets that datagrams come to, there and back. `None` for TCP, for a stranger's socket, and in a
    /// flow that shares an earlier flow's connection.
    pub(super) sockets: [Option<Arc<UdpSocket>>; 2],
    /// Messages that the path dropped, there and back; none of a connection's, which are sent again.
    pub(super) drops: Arc<[AtomicU64; 2]>,
    /// What is in encrypted packets, there and back.
    pub(super) notes: Option<[Arc<PacketNotes>; 2]>,
    /// The far end has something to do at a time of its own.
    pub(super) is_far_paced: bool,
    /// The end whose place a stranger takes.
    pub(super) stranger: Option<Side>,
}

/// A flow whose ends are to be made.
struct FlowPlan<'a> {
    scenario: &'a Scenario,
    session: &'a SessionSpec,
    /// The flow's place in both.
    index: usize,
    /// What its transport draws from.
    seed: Seed,
    common: &'a EndContext,
    /// The end whose place a stranger takes.
    stranger: Option<Side>,
    /// The keys of our end beside a stranger. Without one both ends draw the same, certificate and all.
    quic_keys: Option<HostKeys>,
}

/// The sockets of a flow's ends. An end has none if a stranger has it, or if the flow shares an earlier
/// flow's connection.
struct FlowSockets {
    near: Option<OwnedFd>,
    far: Option<OwnedFd>,
}

impl Ends {
    /// Makes the ends of all flows and gives each its socket. `sockets` holds the sender's and the receiver's
    /// of each connection, but for that of a `stranger`.
    ///
    /// # Errors
    /// The system's, if there is no epoll; `UnexpectedEof` if there are too few sockets.
    pub(super) fn new(
        scenario: &Scenario,
        session: &SessionSpec,
        seed: Seed,
        common: &EndContext,
        sockets: Vec<Option<OwnedFd>>,
        stranger: Option<&Stranger<'_>>,
    ) -> io::Result<Self> {
        let mut ends = Self {
            flows: Vec::new(),
            all: Vec::new(),
            datagrams: Vec::new(),
            connecting: Vec::new(),
            slow: Vec::new(),
            alarm: Arc::clone(&common.alarm),
            epoll: Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?),
        };
        let mut sockets = sockets.into_iter();
        for (index, flow) in scenario.flows.iter().enumerate() {
            let mut next = || if session.is_leader(index) { sockets.next() } else { Some(None) };
            let (Some(near), Some(far)) = (next(), next()) else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            let seed = flow.transport_seed(seed);
            let stranger = stranger.filter(|stranger| stranger.flow == index);
            let quic_keys = stranger.and_then(|stranger| stranger.quic_keys);
            let stranger = stranger.map(|stranger| stranger.side);
            let plan = FlowPlan { scenario, session, index, seed, common, stranger, quic_keys };
            ends.add(&plan, FlowSockets { near, far });
        }
        let near: Vec<_> = ends.flows.iter().map(|flow| Arc::clone(&flow.near)).collect();
        let far: Vec<_> = ends.flows.iter().map(|flow| Arc::clone(&flow.far)).collect();
        SharedEnd::introduce(session, &near);
        SharedEnd::introduce(session, &far);
        Ok(ends)
    }

    /// Makes both ends of a flow, and has their sockets served.
    fn add(&mut self, plan: &FlowPlan<'_>, sockets: FlowSockets) {
        let (near, far) = (Arc::new(plan.end(true)), Arc::new(plan.end(false).receiving_file(false)));
        let kind = plan.spec().transport.channel_kind();
        let is_slow = !plan.flow().receiver.service.is_zero();
        let datagram_sockets = match kind {
            ChannelKind::Connection => {
                self.connecting.push(plan.connecting(&near, &far, sockets));
                [None, None]
            }
            ChannelKind::Datagrams | ChannelKind::OverUdp => {
                let back = self.attach_datagrams(&near, sockets.near);
                let reads_by_itself = is_slow && kind == ChannelKind::Datagrams;
                let there = if reads_by_itself {
                    self.attach_slow(&far, sockets.far)
                } else {
                    self.attach_datagrams(&far, sockets.far)
                };
                [there, back]
            }
        };
        let is_far_paced = match kind {
            ChannelKind::Connection => is_slow,
            // A slow receiver of datagrams has a thread of its own.
            ChannelKind::Datagrams => false,
            ChannelKind::OverUdp => true,
        };
        self.all.extend([Arc::clone(&near), Arc::clone(&far)]);
        self.flows.push(FlowEnds {
            notes: noted(plan.session, plan.index, [&near, &far]),
            near,
            far,
            is_far_paced,
            sockets: datagram_sockets,
            stranger: plan.stranger,
            drops: Arc::new([AtomicU64::new(0), AtomicU64::new(0)]),
        });
    }

    /// Has the UDP thread serve `end` from its socket. A stranger's end has none, nor has one that uses
    /// another flow's.
    fn attach_datagrams(&mut self, end: &Arc<SharedEnd>, socket: Option<OwnedFd>) -> Option<Arc<UdpSocket>> {
        let socket = Arc::new(UdpSocket::from(socket?));
        end.lock().set_route(route_of(&socket));
        self.datagrams.push((Arc::clone(&socket), Arc::clone(end)));
        Some(socket)
    }

    /// Has a thread of its own serve `end`, a slow receiver of datagrams, from its socket.
    fn attach_slow(&mut self, end: &Arc<SharedEnd>, socket: Option<OwnedFd>) -> Option<Arc<UdpSocket>> {
        let socket = Arc::new(UdpSocket::from(socket?));
        end.lock().read_from(route_of(&socket));
        self.slow.push((Arc::clone(&socket), Arc::clone(end)));
        Some(socket)
    }

    /// The ends that have something to do at a time of their own: those that send, both of a transport of
    /// ours, and those that read a stream slowly.
    pub(super) fn paced(&self) -> Vec<Arc<SharedEnd>> {
        let near = self.flows.iter().filter(|flow| flow.stranger != Some(Side::Near)).map(|flow| &flow.near);
        let far = self.flows.iter().filter(|flow| flow.is_far_paced && flow.stranger != Some(Side::Far));
        near.chain(far.map(|flow| &flow.far)).map(Arc::clone).collect()
    }
}

impl FlowPlan<'_> {
    fn flow(&self) -> &Flow {
        &self.scenario.flows[self.index]
    }

    fn spec(&self) -> &FlowSpec {
        &self.session.flows[self.index]
    }

    /// The sending end, or the receiving one.
    fn end(&self, is_sender: bool) -> SharedEnd {
        let place = EndPlace {
            index: self.index,
            is_sender,
            is_client: is_sender,
            token: token(self.index),
            tag_key: None,
            has_trains: false,
            seed: self.seed,
            quic_keys: self.quic_keys,
        };
        SharedEnd::new(self.session, self.spec(), &place, self.flow().receiver, self.common)
    }

    /// The connection that is opened when the flow starts.
    fn connecting(&self, near: &Arc<SharedEnd>, far: &Arc<SharedEnd>, sockets: FlowSockets) -> Connecting {
        Connecting {
            index: self.index,
            start: Instant::from_nanos(self.spec().start_ns),
            dial: sockets.near.map(Into::into),
            listener: sockets.far.map(Into::into),
            is_multipath: self.spec().transport.is_multipath(),
            joined_at: None,
            near: Arc::clone(near),
            far: Arc::clone(far),
            there: endpoint(sender(self.flow()).other(), self.scenario.ip, self.index),
            is_dialled: false,
        }
    }
}

impl FlowEnds {
    /// Whether all that was sent has arrived, or is known to be dropped, and nothing more will be sent.
    /// Nobody knows that of a stranger.
    pub(super) fn is_delivered(&self) -> bool {
        if self.stranger.is_some() {
            return false;
        }
        let near = self.near.lock();
        let (has_echo, sender) = (near.spec.echo_per_read.is_some(), near.progress());
        drop(near);
        let receiver = self.far.lock().progress();
        let drops = |way: usize| self.drops[way].load(Ordering::Relaxed);
        let is_there = sender.is_done && receiver.is_done && receiver.received + drops(0) >= sender.sent;
        is_there && (!has_echo || sender.received + drops(1) >= receiver.sent)
    }

    /// What the sockets of both ways dropped since the run began, and what waits in them. Nobody else reads
    /// them any more.
    pub(super) fn drain_sockets(&self) -> [Option<SocketRest>; 2] {
        let readers = [&self.far, &self.near];
        [0, 1].map(|way: usize| {
            let socket = self.sockets[way].as_ref()?;
            let mut unread = Vec::new();
            // An end that reads by itself has a buffer for the largest datagram, so few ends should need one.
            if is_readable(socket) {
                let mut reader = readers[way].lock();
                reader.read_from(route_of(socket));
                unread = reader.drain_socket();
            }
            // The sockets are as old as the run.
            Some(SocketRest { drops: socket_drops(socket.as_fd()).ok(), unread })
        })
    }

    /// What our end counted, if the other one is a stranger's.
    pub(super) fn beside(&self) -> Option<OurEnd> {
        let ours = match self.stranger? {
            Side::Near => &self.far,
            Side::Far => &self.near,
        };
        Some(OurEnd::of(ours))
    }

    pub(super) fn last_arrival(&self) -> Instant {
        let far = self.far.lock().last_arrival();
        far.max(self.near.lock().last_arrival())
    }
}

/// Has both ends of a connection, at its first flow, note what is in their packets, if the emulator cannot
/// read them and has to know it: it decides the fate of messages that are not sent again.
fn noted(spec: &SessionSpec, index: usize, ends: [&Arc<SharedEnd>; 2]) -> Option<[Arc<PacketNotes>; 2]> {
    let is_decided = |member: usize| {
        let kind = spec.flows[member].transport.kind();
        matches!(kind, TransportKind::Quic(_)) && !kind.features().is_reliable
    };
    let is_wanted = spec.is_leader(index) && spec.members(index).into_iter().any(is_decided);
    is_wanted.then(|| {
        ends.map(|end| {
            let notes = Arc::<PacketNotes>::default();
            end.lock().note_packets(Arc::clone(&notes));
            notes
        })
    })
}

/// The route of an end whose socket is connected to the other end's.
fn route_of(socket: &Arc<UdpSocket>) -> UdpRoute {
    UdpRoute { socket: Arc::clone(socket), unconnected: None }
}

/// Whether a datagram waits in `socket`.
fn is_readable(socket: &UdpSocket) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}
