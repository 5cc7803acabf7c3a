//! The sockets of a run, which are made before it begins. A flow over UDP gets a socket, which has to
//! register with the server. A stream gets a dial, with which it connects to the server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use talkpath_arena::ArenaError;
use talkpath_arena::offset::Probe;
use talkpath_kernel::clock::{HostClock, monotonic};
use talkpath_kernel::descriptors;
use talkpath_kernel::end::{Dial, EndContext, EndPlace, SharedEnd, UdpRoute, unforeseen_seed};
use talkpath_kernel::spec::{ChannelKind, FlowSpec};
use talkpath_kernel::sys::{
    Unreported, enlarge_receive_buffer, report_arrivals, set_tos, stamp_transmissions,
};
use talkpath_kernel::wire::{Secret, registration};
use talkpath_model::Receiver;
use talkpath_units::{Duration, from_hex};

use super::ways::Way;
use super::{KEEP_ALIVE_NS, Session};
use crate::client::control::ServerControl;
use crate::protocol::{Admission, Request};

impl Session<'_> {
    /// Makes this host's end of one flow, with its socket or its dial.
    pub(super) fn open(
        &mut self,
        flow: &FlowSpec,
        admission: &Admission,
        server: &ServerControl,
        context: &EndContext,
    ) -> Result<(), ArenaError> {
        let broken = |why: &str| ArenaError::far_end(format!("{} broke the protocol: {why}", server.name()));
        let secret = from_hex::<16>(&admission.secret).map(Secret);
        let secret = secret.ok_or_else(|| broken("a flow has no secret"))?;
        let index = self.ends.len();
        let place = EndPlace {
            index,
            is_sender: flow.is_up,
            is_client: true,
            token: admission.token,
            tag_key: admission.tag_key(server.is_sealed()).map_err(broken)?,
            has_trains: true,
            seed: unforeseen_seed().map_err(|error| unavailable(&error))?,
            quic_keys: admission.quic_keys(&flow.transport).map_err(broken)?,
        };
        let end = Arc::new(SharedEnd::new(&self.spec, flow, &place, Receiver::default(), context));
        match flow.transport.channel_kind() {
            ChannelKind::Connection => {
                let mut opening = serde_json::to_vec(&Request::Data { secret: admission.secret.clone() })
                    .map_err(|error| ArenaError::far_end(error.to_string()))?;
                opening.push(b'\n');
                let epoll = Arc::clone(&self.epoll);
                end.lock().set_dial(Dial { to: server.address(), opening, epoll, index: index as u64 });
            }
            // The first flow of a connection has the socket for all flows of the connection.
            ChannelKind::Datagrams | ChannelKind::OverUdp if !self.spec.is_leader(index) => {}
            ChannelKind::Datagrams | ChannelKind::OverUdp => {
                let begun = monotonic();
                let (socket, unreported) = udp_socket(server, flow).map_err(SocketError::unavailable)?;
                let took_ns = u64::try_from(monotonic() - begun).unwrap_or(0);
                end.lock().note_socket(Duration::from_nanos(took_ns));
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
                // Plain UDP gets its route when the server has answered. A connection of DCCP or QUIC gets it
                // now, because it finds out by itself whether its packets are answered.
                if flow.transport.channel_kind().runs_here() {
                    end.lock().set_route(UdpRoute { socket: Arc::clone(&socket), unconnected: None });
                }
                self.sockets.push((socket, Arc::clone(&end)));
            }
        }
        self.ends.push(end);
        Ok(())
    }

    /// Fetches the 0-RTT tickets of flows with `zero_rtt`. Opens a connection for each ticket, one after the
    /// other. Meanwhile compares the clocks now and then, which also shows the server that its client lives.
    /// Returns these comparisons.
    pub(super) fn fetch_tickets(
        &mut self,
        server: &mut ServerControl,
        host_clock: HostClock,
    ) -> Result<Vec<Probe>, ArenaError> {
        let is_over = || self.plan.interrupt.load(Ordering::Relaxed);
        let mut probes = Vec::new();
        let mut next_probe = host_clock.now_ns() + KEEP_ALIVE_NS;
        for (end, flow) in self.ends.iter().zip(&self.scenario.flows) {
            // Without a ticket the flow's connection opens without 0-RTT, or not at all.
            if let Err(why) = end.lock().fetch_ticket(&is_over) {
                self.warnings.push(format!("flow {}: no 0-RTT: {why}", flow.name));
            }
            if host_clock.now_ns() >= next_probe {
                next_probe = host_clock.now_ns() + KEEP_ALIVE_NS;
                probes.push(server.probe_once(host_clock, 0).map_err(ArenaError::far_end)?);
            }
        }
        Ok(probes)
    }

    /// Makes the kernel report when each clocked datagram leaves this host. If a kernel cannot do that, the
    /// times stay unknown.
    pub(super) fn stamp_transmissions(&self) {
        for (socket, end) in &self.sockets {
            let end = end.lock();
            // A protocol that talkpath runs itself knows when its messages leave.
            let is_stamped = end.spec.is_clocked() && !end.spec.transport.channel_kind().runs_here();
            let size = end.spec.largest_size().filter(|_| is_stamped);
            if size.is_some_and(|size| size <= MAX_UNFRAGMENTED) {
                let _ = stamp_transmissions(socket.as_fd());
            }
        }
    }
}

/// The reason why a flow has no socket: the step that failed, by the system's name for it, and the system's
/// error.
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

/// Says what the user can do about a socket that failed with `error`.
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

/// Makes the socket of a flow and connects it to the server. Also returns the facts about arriving datagrams
/// that this kernel does not report.
fn udp_socket(server: &ServerControl, flow: &FlowSpec) -> Result<(UdpSocket, Vec<Unreported>), SocketError> {
    let is_v6 = server.address().is_ipv6();
    let socket = connected(server.local(), server.address())?;
    socket.set_nonblocking(true).map_err(SocketError::at("O_NONBLOCK"))?;
    let unreported = report_arrivals(socket.as_fd(), is_v6);
    if let Some(tos) = flow.tos() {
        let option = if is_v6 { "IPV6_TCLASS" } else { "IP_TOS" };
        set_tos(socket.as_fd(), is_v6, tos).map_err(SocketError::at(option))?;
    }
    if flow.transport.channel_kind().runs_here() {
        return Ok((socket, unreported));
    }
    let reads = !flow.is_up || flow.has_echo();
    match flow.transport.datagram_buffer().filter(|_| !flow.is_up) {
        Some(bytes) => {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, bytes)
                .map_err(|error| SocketError("SO_RCVBUF", error.into()))?;
        }
        None if reads => enlarge_receive_buffer(socket.as_fd()),
        None => {}
    }
    Ok((socket, unreported))
}

/// Makes a UDP socket that is connected to `server` and sends from the address of `local`. If the kernel
/// chooses that address by itself, the socket is not bound to it, so that it can follow this host to another
/// one.
fn connected(mut local: SocketAddr, server: SocketAddr) -> Result<UdpSocket, SocketError> {
    let any: IpAddr =
        if server.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    if let Ok(socket) = UdpSocket::bind((any, 0))
        && socket.connect(server).is_ok()
        && socket.local_addr().is_ok_and(|chosen| chosen.ip() == local.ip())
    {
        return Ok(socket);
    }
    // The local address includes the interface of a link-local IPv6 address.
    local.set_port(0);
    let socket = UdpSocket::bind(local).map_err(SocketError::at("bind"))?;
    socket.connect(server).map_err(SocketError::at("connect"))?;
    Ok(socket)
}

pub(super) fn unavailable(error: &io::Error) -> ArenaError {
    ArenaError::Unavailable { what: format!("this host cannot prepare a run: {error}"), how: help(error) }
}

/// The largest payload that a packet of 1280 B (RFC 8200 §5) carries over IPv6. A larger datagram may leave
/// in several fragments.
const MAX_UNFRAGMENTED: u64 = 1280 - 40 - 8;
