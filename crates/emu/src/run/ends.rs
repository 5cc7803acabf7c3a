//! The ends of all flows of a repetition, with their sockets.
//!
//! The *near* end of a flow is its sender, and the *far* end is its receiver. Messages go *forward* to the
//! far end, and echoes go *back*. Each end is served by a thread: the thread of its kind of socket, or one of
//! its own if the receiver is slow. The pacer calls the ends that send by a clock or have timers.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::time::Timespec;
use talkpath_arena::links::second_paths;
use talkpath_config::TransportKind;
use talkpath_flow::Side;
use talkpath_kernel::alarm::Alarm;
use talkpath_kernel::end::{EndContext, EndPlace, HostKeys, PacketNotes, SharedEnd, UdpRoute};
use talkpath_kernel::spec::{ChannelKind, FlowSpec, SessionSpec};
use talkpath_kernel::sys::socket_drops;
use talkpath_model::{Flow, Scenario};
use talkpath_units::{Instant, Seed};

use crate::connect::Connecting;
use crate::emulator::EmuFlow;
use crate::hosts::{sender, token};
use crate::stranger::{OurEnd, Stranger};
use crate::watch::{DrainedSocket, LegWatch};
use crate::world::endpoint;

/// The ends of all flows, with lists for the threads that serve them.
pub(super) struct SessionEnds {
    pub(super) flows: Vec<FlowEnds>,
    /// The ends of all flows, for the server of connections. The near end of flow `index` has the place
    /// `2 * index`, and the far end has the next place.
    pub(super) all: Vec<Arc<SharedEnd>>,
    /// The sockets that the receiver of datagrams reads.
    pub(super) datagrams: Vec<(Arc<UdpSocket>, Arc<SharedEnd>)>,
    /// The connections that are not open yet.
    pub(super) connecting: Vec<Connecting>,
    /// The sockets of slow receivers of datagrams. Each socket is read by a thread of its own.
    pub(super) slow_receivers: Vec<(Arc<UdpSocket>, Arc<SharedEnd>)>,
    pub(super) alarm: Arc<Alarm>,
    pub(super) epoll: Arc<OwnedFd>,
}

/// Both ends of a flow.
pub(super) struct FlowEnds {
    pub(super) near: Arc<SharedEnd>,
    pub(super) far: Arc<SharedEnd>,
    /// The sockets that datagrams come to: the far end's, and the near end's. A socket is `None` for TCP, for
    /// a stranger's end, and for a flow that shares an earlier flow's connection.
    pub(super) sockets: [Option<Arc<UdpSocket>>; 2],
    /// The number of messages that the path dropped, forward and back. Messages of a reliable transport do
    /// not count, because they are sent again.
    pub(super) drops: Arc<[AtomicU64; 2]>,
    /// The notes about the messages in encrypted packets, forward and back.
    pub(super) notes: Option<[Arc<PacketNotes>; 2]>,
    /// True if the pacer calls the far end too, because it has timers of its own.
    pub(super) is_far_paced: bool,
    /// The end whose place a stranger takes.
    pub(super) stranger: Option<Side>,
}

/// A flow whose ends are to be made.
struct FlowPlan<'a> {
    scenario: &'a Scenario,
    session: &'a SessionSpec,
    /// The index of the flow in the scenario and in the session.
    index: usize,
    /// The seed that the flow's transport draws from.
    seed: Seed,
    context: &'a EndContext,
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

impl SessionEnds {
    /// Makes the ends of all flows and gives each end its socket. `sockets` holds the sender's and the
    /// receiver's socket of each connection. The socket of a `stranger` is `None`.
    ///
    /// # Errors
    /// Returns the system's error if it has no epoll, and `UnexpectedEof` if there are too few sockets.
    pub(super) fn new(
        scenario: &Scenario,
        session: &SessionSpec,
        seed: Seed,
        context: &EndContext,
        sockets: Vec<Option<OwnedFd>>,
        stranger: Option<&Stranger<'_>>,
    ) -> io::Result<Self> {
        let mut ends = Self {
            flows: Vec::new(),
            all: Vec::new(),
            datagrams: Vec::new(),
            connecting: Vec::new(),
            slow_receivers: Vec::new(),
            alarm: Arc::clone(&context.alarm),
            epoll: Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?),
        };
        let mut sockets = sockets.into_iter();
        for (index, flow) in scenario.flows.iter().enumerate() {
            // Only the first flow of a connection has sockets.
            let mut next_socket = || if session.is_leader(index) { sockets.next() } else { Some(None) };
            let (Some(near), Some(far)) = (next_socket(), next_socket()) else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            let stranger = stranger.filter(|stranger| stranger.flow == index);
            let plan = FlowPlan {
                scenario,
                session,
                index,
                seed: flow.transport_seed(seed),
                context,
                stranger: stranger.map(|stranger| stranger.side),
                quic_keys: stranger.and_then(|stranger| stranger.quic_keys),
            };
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
                let near_socket = self.attach_datagrams(&near, sockets.near);
                let far_socket = if is_slow && kind == ChannelKind::Datagrams {
                    self.attach_slow_receiver(&far, sockets.far)
                } else {
                    self.attach_datagrams(&far, sockets.far)
                };
                [far_socket, near_socket]
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
            notes: note_packets(plan.session, plan.index, [&near, &far]),
            near,
            far,
            is_far_paced,
            sockets: datagram_sockets,
            stranger: plan.stranger,
            drops: Arc::new([AtomicU64::new(0), AtomicU64::new(0)]),
        });
    }

    /// Makes the receiver of datagrams serve `end` from its socket. Does nothing if `socket` is `None`.
    fn attach_datagrams(&mut self, end: &Arc<SharedEnd>, socket: Option<OwnedFd>) -> Option<Arc<UdpSocket>> {
        let socket = Arc::new(UdpSocket::from(socket?));
        end.lock().set_route(route_of(&socket));
        self.datagrams.push((Arc::clone(&socket), Arc::clone(end)));
        Some(socket)
    }

    /// Makes a thread of its own serve the slow receiver `end` from its socket. Does nothing if `socket` is
    /// `None`.
    fn attach_slow_receiver(
        &mut self,
        end: &Arc<SharedEnd>,
        socket: Option<OwnedFd>,
    ) -> Option<Arc<UdpSocket>> {
        let socket = Arc::new(UdpSocket::from(socket?));
        end.lock().read_from(route_of(&socket));
        self.slow_receivers.push((Arc::clone(&socket), Arc::clone(end)));
        Some(socket)
    }

    /// The ends that the pacer calls: all senders, both ends of our own protocols, and receivers that read a
    /// stream slowly.
    pub(super) fn paced(&self) -> Vec<Arc<SharedEnd>> {
        let near = self.flows.iter().filter(|flow| flow.stranger != Some(Side::Near)).map(|flow| &flow.near);
        let far = self.flows.iter().filter(|flow| flow.is_far_paced && flow.stranger != Some(Side::Far));
        near.chain(far.map(|flow| &flow.far)).map(Arc::clone).collect()
    }
    /// Makes what the emulator knows and observes of each flow.
    pub(super) fn emulated_flows(&self, scenario: &Scenario, session: &SessionSpec) -> Vec<EmuFlow> {
        let second_lanes = second_paths(scenario);
        let emulated_flow = |index: usize| {
            let transport = &session.flows[index].transport;
            let members = session.members(index).into_iter();
            EmuFlow {
                sender: sender(&scenario.flows[index]),
                transport: transport.kind(),
                is_multipath: transport.is_multipath(),
                second_path: second_lanes[index],
                watches: [0, 1].map(|direction| self.watch(session, index, direction)),
                marked: [0; 2],
                late: 0,
                drops: members.map(|member| Arc::clone(&self.flows[member].drops)).collect(),
            }
        };
        (0..scenario.flows.len()).map(emulated_flow).collect()
    }

    /// Makes the watch of the flow's messages forward (`direction` 0) or back (`direction` 1).
    fn watch(&self, session: &SessionSpec, index: usize, direction: usize) -> LegWatch {
        let transport = &session.flows[index].transport;
        if let Some(notes) = &self.flows[index].notes {
            let members = session.members(index).into_iter();
            let are_reliable = members.map(|member| session.flows[member].features().is_reliable).collect();
            return LegWatch::packets(Arc::clone(&notes[direction]), are_reliable);
        }
        match (transport.channel_kind(), transport.kind()) {
            (ChannelKind::Connection, _) | (_, TransportKind::Quic(_)) => LegWatch::stream(),
            (kind @ (ChannelKind::Datagrams | ChannelKind::OverUdp), transport) => {
                LegWatch::datagrams(token(index), transport, kind.runs_here())
            }
        }
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
        SharedEnd::new(self.session, self.spec(), &place, self.flow().receiver, self.context)
    }

    /// Makes the connection, which is opened when the flow starts.
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
        let (has_echo, sender) = {
            let near = self.near.lock();
            (near.spec.has_echo(), near.progress())
        };
        let receiver = self.far.lock().progress();
        let [dropped_forward, dropped_back] =
            self.drops.each_ref().map(|drops| drops.load(Ordering::Relaxed));
        sender.is_done
            && receiver.is_done
            && receiver.received + dropped_forward >= sender.sent
            && (!has_echo || sender.received + dropped_back >= receiver.sent)
    }

    /// Reads the messages that still wait in the flow's sockets, in the order of [`FlowEnds::sockets`]. Call
    /// it when no thread reads the sockets any more.
    pub(super) fn drain_sockets(&self) -> [Option<DrainedSocket>; 2] {
        let drain = |socket: &Option<Arc<UdpSocket>>, reader: &SharedEnd| {
            let socket = socket.as_ref()?;
            let mut unread = Vec::new();
            // An end that reads by itself has a buffer for the largest datagram, so few ends should need one.
            if is_readable(socket) {
                let mut reader = reader.lock();
                reader.read_from(route_of(socket));
                unread = reader.drain_socket();
            }
            // The sockets were made for this run, so all their drops are the run's.
            Some(DrainedSocket { drops: socket_drops(socket.as_fd()).ok(), unread })
        };
        let [far_socket, near_socket] = &self.sockets;
        [drain(far_socket, &self.far), drain(near_socket, &self.near)]
    }

    /// Returns the counts of our end, if the other end is a stranger.
    pub(super) fn our_end(&self) -> Option<OurEnd> {
        Some(match self.stranger? {
            Side::Near => OurEnd::of(&self.far),
            Side::Far => OurEnd::of(&self.near),
        })
    }

    /// Returns the time of the last arrival of a message at either end.
    pub(super) fn last_arrival(&self) -> Instant {
        let far = self.far.lock().last_arrival();
        far.max(self.near.lock().last_arrival())
    }
}

/// Makes both ends of a QUIC connection note the messages in their packets, if the connection has messages
/// that are not sent again. The emulator decides the fate of these messages and cannot read the packets. The
/// ends of the connection's first flow note the packets of all its flows.
fn note_packets(
    session: &SessionSpec,
    index: usize,
    ends: [&Arc<SharedEnd>; 2],
) -> Option<[Arc<PacketNotes>; 2]> {
    let has_unreliable_messages = |member: usize| {
        let kind = session.flows[member].transport.kind();
        matches!(kind, TransportKind::Quic(_)) && !kind.features().is_reliable
    };
    if !session.is_leader(index) || !session.members(index).into_iter().any(has_unreliable_messages) {
        return None;
    }
    Some(ends.map(|end| {
        let notes = Arc::<PacketNotes>::default();
        end.lock().note_packets(Arc::clone(&notes));
        notes
    }))
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
