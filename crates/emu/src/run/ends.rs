//! The ends of all flows of a repetition, their sockets, and the threads that serve them.

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

/// The ends of all flows, sorted by the threads that serve them.
pub(super) struct Ends {
    pub(super) flows: Vec<FlowEnds>,
    /// All ends, for the TCP loop: senders at even places, receivers at odd places.
    pub(super) all: Vec<Arc<SharedEnd>>,
    pub(super) datagrams: Vec<(Arc<UdpSocket>, Arc<SharedEnd>)>,
    pub(super) connecting: Vec<Connecting>,
    /// Slow receivers of datagrams. Each one reads its socket in a thread of its own.
    pub(super) slow: Vec<(Arc<UdpSocket>, Arc<SharedEnd>)>,
    pub(super) alarm: Arc<Alarm>,
    pub(super) epoll: Arc<OwnedFd>,
}

/// Both ends of a flow.
pub(super) struct FlowEnds {
    pub(super) near: Arc<SharedEnd>,
    pub(super) far: Arc<SharedEnd>,
    /// The sockets that datagrams come to: the receiver's, and the sender's. `None` for TCP, for a stranger's
    /// socket, and for a flow that shares an earlier flow's connection.
    pub(super) sockets: [Option<Arc<UdpSocket>>; 2],
    /// The number of messages that the path dropped, to the receiver and back. Messages of a reliable
    /// transport do not count, because they are sent again.
    pub(super) drops: Arc<[AtomicU64; 2]>,
    /// The notes about the messages in encrypted packets, to the receiver and back.
    pub(super) notes: Option<[Arc<PacketNotes>; 2]>,
    /// True if the far end has deadlines of its own, so that the pacer serves it too.
    pub(super) is_far_paced: bool,
    /// The end whose place a stranger takes.
    pub(super) stranger: Option<Side>,
}

/// A flow whose ends are to be made.
struct FlowPlan<'a> {
    scenario: &'a Scenario,
    session: &'a SessionSpec,
    /// The flow's place in the scenario and in the session.
    index: usize,
    /// The seed that the flow's transport draws from.
    seed: Seed,
    common: &'a EndContext,
    /// The end whose place a stranger takes.
    stranger: Option<Side>,
    /// The keys of our QUIC end, if the other end is a stranger. Without a stranger both ends draw the same
    /// keys and the same certificate from the seed.
    quic_keys: Option<HostKeys>,
}

/// The sockets of a flow's ends. An end has no socket if a stranger has the socket, or if the flow shares an
/// earlier flow's connection.
struct FlowSockets {
    near: Option<OwnedFd>,
    far: Option<OwnedFd>,
}

impl Ends {
    /// Makes the ends of all flows and gives each end its socket. `sockets` holds the sender's and the
    /// receiver's socket of each connection. The socket of a `stranger` is `None`.
    ///
    /// # Errors
    /// Returns the system's error if it has no epoll, and `UnexpectedEof` if there are too few sockets.
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

    /// Makes both ends of a flow, and gives their sockets to the threads that serve them.
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

    /// Makes the UDP thread serve `end` from its socket. Does nothing if `socket` is `None`, which is so for
    /// a stranger's end and for a flow that uses another flow's socket.
    fn attach_datagrams(&mut self, end: &Arc<SharedEnd>, socket: Option<OwnedFd>) -> Option<Arc<UdpSocket>> {
        let socket = Arc::new(UdpSocket::from(socket?));
        end.lock().set_route(route_of(&socket));
        self.datagrams.push((Arc::clone(&socket), Arc::clone(end)));
        Some(socket)
    }

    /// Makes a thread of its own serve `end`, a slow receiver of datagrams, from its socket.
    fn attach_slow(&mut self, end: &Arc<SharedEnd>, socket: Option<OwnedFd>) -> Option<Arc<UdpSocket>> {
        let socket = Arc::new(UdpSocket::from(socket?));
        end.lock().read_from(route_of(&socket));
        self.slow.push((Arc::clone(&socket), Arc::clone(end)));
        Some(socket)
    }

    /// The ends that have deadlines of their own: all senders, both ends of a protocol of ours, and receivers
    /// that read a stream slowly.
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

    /// Makes the sending end, or the receiving end if `is_sender` is false.
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
    /// Returns true if nothing more will be sent, and each message that was sent has arrived or is known to
    /// be dropped. With a stranger the answer is always false, because nobody knows what the stranger sends.
    pub(super) fn is_delivered(&self) -> bool {
        if self.stranger.is_some() {
            return false;
        }
        let near = self.near.lock();
        let (has_echo, sender) = (near.spec.has_echo(), near.progress());
        drop(near);
        let receiver = self.far.lock().progress();
        let drops = |way: usize| self.drops[way].load(Ordering::Relaxed);
        let is_there = sender.is_done && receiver.is_done && receiver.received + drops(0) >= sender.sent;
        is_there && (!has_echo || sender.received + drops(1) >= receiver.sent)
    }

    /// Returns for the sockets of both directions the number of datagrams that were dropped since the run
    /// began, and the messages that still wait. Call it when no thread reads the sockets any more.
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
            // The sockets were made for this run, so all their drops are the run's.
            Some(SocketRest { drops: socket_drops(socket.as_fd()).ok(), unread })
        })
    }

    /// The counts of our end, if the other end is a stranger.
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

/// Makes both ends of a QUIC connection note the messages in their packets, if the connection has messages
/// that are not sent again. The emulator decides the fate of these messages and cannot read the packets. The
/// ends of the connection's first flow note the packets of all its flows.
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

/// The route of an end whose socket is connected to the other end's socket.
fn route_of(socket: &Arc<UdpSocket>) -> UdpRoute {
    UdpRoute { socket: Arc::clone(socket), unconnected: None }
}

/// Returns true if a datagram waits in `socket`.
fn is_readable(socket: &UdpSocket) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}
