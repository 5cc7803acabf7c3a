//! Before a run: a socket for each flow over datagrams, which the server has to see once, and a dial for each
//! stream.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use talkpath_arena::ArenaError;
use talkpath_arena::offset::Probe;
use talkpath_kernel::clock::HostClock;
use talkpath_kernel::end::{Dial, EndContext, EndPlace, SharedEnd, UdpRoute, unforeseen_seed};
use talkpath_kernel::spec::{ChannelKind, FlowSpec};
use talkpath_kernel::sys::{SocketSwitch, report_headers, set_tos, stamp_transmissions, switch_on};
use talkpath_kernel::wire::{Secret, registration};
use talkpath_scenario::Receiver;
use talkpath_units::from_hex;

use super::ways::Way;
use super::{SIGN_OF_LIFE_NS, Session};
use crate::client::control::ServerControl;
use crate::protocol::{Admission, Request};

impl Session<'_> {
    /// Makes this end of one flow.
    pub(super) fn open(
        &mut self,
        flow: &FlowSpec,
        admission: &Admission,
        far: &ServerControl,
        common: &EndContext,
    ) -> Result<(), ArenaError> {
        let secret = from_hex::<16>(&admission.secret).map(Secret).ok_or_else(|| {
            ArenaError::far_end(format!("{} broke the protocol: a flow has no secret", far.name()))
        })?;
        let index = self.ends.len();
        let place = EndPlace {
            index,
            is_sender: flow.is_up,
            is_client: true,
            token: admission.token,
            tag_key: admission.tag_key(far.is_sealed()).ok_or_else(|| {
                ArenaError::far_end(format!(
                    "{} broke the protocol: a flow has no key for its datagrams",
                    far.name()
                ))
            })?,
            has_trains: true,
            seed: unforeseen_seed().map_err(|error| unavailable(&error))?,
            quic_keys: admission.quic_keys(&flow.transport).ok_or_else(|| {
                ArenaError::far_end(format!(
                    "{} broke the protocol: a QUIC flow has no certificate",
                    far.name()
                ))
            })?,
        };
        let end = Arc::new(SharedEnd::new(&self.spec, flow, &place, Receiver::default(), common));
        match flow.transport.channel_kind() {
            ChannelKind::Connection => {
                let mut opening = serde_json::to_vec(&Request::Data { secret: admission.secret.clone() })
                    .map_err(|error| ArenaError::far_end(error.to_string()))?;
                opening.push(b'\n');
                let epoll = Arc::clone(&self.epoll);
                end.lock().set_dial(Dial { to: far.address(), opening, epoll, index: index as u64 });
            }
            // The first flow of a connection has its socket.
            ChannelKind::Datagrams | ChannelKind::OverUdp if !self.spec.is_leader(index) => {}
            ChannelKind::Datagrams | ChannelKind::OverUdp => {
                let socket = Arc::new(udp_socket(far, flow).map_err(|error| unavailable(&error))?);
                let pair = (Arc::clone(&socket), Arc::clone(&end));
                let members = self.spec.members(index);
                self.ways.push(Way::new(index, members, pair, registration(&secret)));
                // A connection finds out by itself whether its packets are answered.
                if flow.transport.channel_kind().runs_here() {
                    end.lock().set_route(UdpRoute { socket: Arc::clone(&socket), unconnected: None });
                }
                self.sockets.push((socket, Arc::clone(&end)));
            }
        }
        self.ends.push(end);
        Ok(())
    }

    /// Has the connections that the tickets of flows with `zero_rtt` come from, one after the other. The
    /// server is shown meanwhile that its client lives; returns these comparisons of the clocks.
    pub(super) fn fetch_tickets(
        &mut self,
        far: &mut ServerControl,
        host: HostClock,
    ) -> Result<Vec<Probe>, ArenaError> {
        let is_over = || self.plan.interrupt.load(Ordering::Relaxed);
        let mut probes = Vec::new();
        let mut next_probe = host.now_ns() + SIGN_OF_LIFE_NS;
        for (end, flow) in self.ends.iter().zip(&self.scenario.flows) {
            // Its connection opens without one, or not at all.
            if let Err(why) = end.lock().fetch_ticket(&is_over) {
                self.warnings.push(format!("flow {}: no 0-RTT: {why}", flow.name));
            }
            if host.now_ns() >= next_probe {
                next_probe = host.now_ns() + SIGN_OF_LIFE_NS;
                probes.push(far.probe_once(host, 0).map_err(ArenaError::far_end)?);
            }
        }
        Ok(probes)
    }

    /// From now on clocked datagrams come back with the time when they left this host. If a kernel does not
    /// do that, the time stays unknown.
    pub(super) fn stamp_transmissions(&self) {
        for (socket, end) in &self.sockets {
            let end = end.lock();
            // A protocol that runs here knows by itself when its messages leave.
            let is_stamped = end.spec.is_clocked() && !end.spec.transport.channel_kind().runs_here();
            let size = end.spec.constant_size().filter(|_| is_stamped);
            if size.is_some_and(|size| size <= MAX_UNFRAGMENTED) {
                let _ = stamp_transmissions(socket.as_fd());
            }
        }
    }
}

/// The flow's own socket, connected to the server.
fn udp_socket(far: &ServerControl, flow: &FlowSpec) -> std::io::Result<UdpSocket> {
    // With the interface that an IPv6 address of one link belongs to.
    let mut local = far.local();
    local.set_port(0);
    let socket = UdpSocket::bind(local)?;
    socket.connect(far.address())?;
    socket.set_nonblocking(true)?;
    switch_on(socket.as_fd(), SocketSwitch::KernelStamps)?;
    report_headers(socket.as_fd(), far.address().is_ipv6())?;
    if let Some(tos) = flow.tos() {
        set_tos(socket.as_fd(), far.address().is_ipv6(), tos)?;
    }
    if flow.transport.channel_kind().runs_here() {
        return Ok(socket);
    }
    let reads = !flow.is_up || flow.echo_per_read.is_some();
    match flow.transport.datagram_buffer().filter(|_| !flow.is_up) {
        Some(bytes) => {
            rustix::net::sockopt::set_socket_recv_buffer_size(
                &socket,
                usize::try_from(bytes).unwrap_or(usize::MAX),
            )?;
        }
        None if reads => enlarge_receive_buffer(&socket),
        None => {}
    }
    Ok(socket)
}

/// Room for a burst that comes while this thread waits for the processor; as much as the system allows.
pub(crate) fn enlarge_receive_buffer(socket: &UdpSocket) {
    // Forcing takes CAP_NET_ADMIN; without it the system's own limit holds, and the socket's drop counter
    // shows the effect.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER).is_err() {
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER);
    }
}

pub(super) fn unavailable(error: &std::io::Error) -> ArenaError {
    ArenaError::Unavailable {
        what: format!("a socket cannot be opened: {error}"),
        how: "see the limit of open files (ulimit -n) and of this user's rights".to_owned(),
    }
}

/// The largest payload that a packet of 1280 B (RFC 8200 §5) carries over IPv6: what is larger may leave in
/// pieces.
const MAX_UNFRAGMENTED: u64 = 1280 - 40 - 8;
/// SO_RCVBUF: 4 MB, the time slice of a busy machine at a gigabit a second.
const RECEIVE_BUFFER: usize = 4 << 20;
