//! Before a run: a socket for each flow over datagrams, which the server has to see once, and a dial for each
//! stream.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use talkpath_arena::ArenaError;
use talkpath_arena::offset::Probe;
use talkpath_kernel::clock::HostClock;
use talkpath_kernel::descriptors;
use talkpath_kernel::end::{Dial, EndContext, EndPlace, SharedEnd, UdpRoute, unforeseen_seed};
use talkpath_kernel::spec::{ChannelKind, FlowSpec};
use talkpath_kernel::sys::{Unreported, report_arrivals, set_tos, stamp_transmissions};
use talkpath_kernel::wire::{Secret, registration};
use talkpath_model::Receiver;
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
                let (socket, unreported) = udp_socket(far, flow).map_err(SocketError::unavailable)?;
                let socket = Arc::new(socket);
                self.unreported.extend(unreported);
                let members = self.spec.members(index);
                self.ways.push(Way::new(
                    index,
                    members,
                    Arc::clone(&socket),
                    Arc::clone(&end),
                    registration(&secret),
                ));
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
            let size = end.spec.largest_size().filter(|_| is_stamped);
            if size.is_some_and(|size| size <= MAX_UNFRAGMENTED) {
                let _ = stamp_transmissions(socket.as_fd());
            }
        }
    }
}

/// Why a flow has no socket: the step, as the system calls it, and its error.
struct SocketError(&'static str, io::Error);

impl SocketError {
    fn at(step: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self(step, error)
    }

    fn unavailable(self) -> ArenaError {
        let Self(step, error) = self;
        ArenaError::Unavailable {
            what: format!("a UDP socket cannot be used: {step}: {error}"),
            how: help(&error),
        }
    }
}

/// What would give the socket that failed with `error`.
fn help(error: &io::Error) -> String {
    if let Some((_, how)) = descriptors::shortage(error) {
        return how;
    }
    match error.raw_os_error() {
        Some(libc::ENOPROTOOPT | libc::EOPNOTSUPP | libc::EINVAL) => {
            "this kernel does not take that socket option; leave out the key of the scenario that needs it, such as dscp or ecn"
                .to_owned()
        }
        Some(libc::EPERM | libc::EACCES) => {
            "this user may not; see the rights of this user, and the sandbox or container that it runs in".to_owned()
        }
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EADDRNOTAVAIL | libc::ENETDOWN) => {
            "see this host's addresses and routes: `ip address`, `ip route get HOST`".to_owned()
        }
        _ => "see this host's memory, and the rights of this user".to_owned(),
    }
}

/// The flow's own socket, connected to the server, and what this kernel does not report of what comes there.
fn udp_socket(far: &ServerControl, flow: &FlowSpec) -> Result<(UdpSocket, Vec<Unreported>), SocketError> {
    // With the interface that an IPv6 address of one link belongs to.
    let mut local = far.local();
    local.set_port(0);
    let is_v6 = far.address().is_ipv6();
    let socket = UdpSocket::bind(local).map_err(SocketError::at("bind"))?;
    socket.connect(far.address()).map_err(SocketError::at("connect"))?;
    socket.set_nonblocking(true).map_err(SocketError::at("O_NONBLOCK"))?;
    let unreported = report_arrivals(socket.as_fd(), is_v6);
    if let Some(tos) = flow.tos() {
        let option = if is_v6 { "IPV6_TCLASS" } else { "IP_TOS" };
        set_tos(socket.as_fd(), is_v6, tos).map_err(SocketError::at(option))?;
    }
    if flow.transport.channel_kind().runs_here() {
        return Ok((socket, unreported));
    }
    let reads = !flow.is_up || flow.echo_per_read.is_some();
    match flow.transport.datagram_buffer().filter(|_| !flow.is_up) {
        Some(bytes) => {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, bytes)
                .map_err(|error| SocketError("SO_RCVBUF", error.into()))?;
        }
        None if reads => enlarge_receive_buffer(&socket),
        None => {}
    }
    Ok((socket, unreported))
}

/// Room for a burst that comes while this thread waits for the processor; as much as the system allows.
pub(crate) fn enlarge_receive_buffer(socket: &UdpSocket) {
    // Forcing takes CAP_NET_ADMIN; without it the system's own limit holds, and the socket's drop counter
    // shows the effect.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER).is_err() {
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER);
    }
}

pub(super) fn unavailable(error: &io::Error) -> ArenaError {
    ArenaError::Unavailable { what: format!("this host cannot prepare a run: {error}"), how: help(error) }
}

/// The largest payload that a packet of 1280 B (RFC 8200 §5) carries over IPv6: what is larger may leave in
/// pieces.
const MAX_UNFRAGMENTED: u64 = 1280 - 40 - 8;
/// SO_RCVBUF: 4 MB, the time slice of a busy machine at a gigabit a second.
const RECEIVE_BUFFER: usize = 4 << 20;
