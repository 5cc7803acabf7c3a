//! The server's UDP. All sessions share one socket for each address that the server listens on. A 1-RTT
//! packet of QUIC belongs to the connection whose ID it has, wherever it comes from. Any other datagram
//! belongs to the flow for which its source address has registered.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_kernel::clock::monotonic;
use talkpath_kernel::end::{UdpRoute, Unconnected};
use talkpath_kernel::path_probe::{PathProbe, PathProbeAnswer, Second};
use talkpath_kernel::sys::{ReceiveBatch, Received};
use talkpath_kernel::wire::{Secret, read_registration, registered};

use super::bind::DatagramSocket;
use super::{Joinable, Shared};

/// At most this many second answers to probes wait at a socket, for all clients. We chose 4096, which are
/// those of 340 clients, and take 0.5 MB.
const MAX_SECOND_ANSWERS: usize = 4096;

/// A second answer to a probe, which waits for its time.
struct SecondAnswer {
    /// When it leaves, ns of CLOCK_MONOTONIC.
    at_ns: i64,
    secret: Secret,
    route: UdpRoute,
    packet: Vec<u8>,
}

/// Gives the datagrams of `socket` to their flows until the server stops.
pub(super) fn serve(socket: &DatagramSocket, shared: &Shared) {
    let mut batch = ReceiveBatch::default();
    let mut waiting: Vec<SecondAnswer> = Vec::new();
    while !shared.stop.load(Ordering::Relaxed) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let _ = poll(&mut [PollFd::new(&*socket.socket, PollFlags::IN)], Some(&timeout));
        // An error here is a report about a datagram that was sent before. It says nothing about the
        // datagrams that arrive.
        let _ = batch.receive(socket.socket.as_fd(), |datagram| {
            handle(socket, shared, &datagram, &mut waiting);
        });
        send_due(&mut waiting, shared);
    }
}

/// Sends the second answers whose time has come. An answer to a session that has ended is dropped.
fn send_due(waiting: &mut Vec<SecondAnswer>, shared: &Shared) {
    let now_ns = monotonic();
    if waiting.iter().all(|answer| answer.at_ns > now_ns) {
        return;
    }
    let flows = shared.flows();
    waiting.retain(|answer| {
        let is_due = answer.at_ns <= now_ns;
        if is_due && flows.by_secret.contains_key(&answer.secret) {
            // An answer that this host cannot send is one that does not come.
            let _ = answer.route.send(&answer.packet);
        }
        !is_due
    });
}

/// Handles a datagram. If it is a probe that wants a second answer, the answer is added to those `waiting`.
fn handle(
    socket: &DatagramSocket,
    shared: &Shared,
    datagram: &Received<'_>,
    waiting: &mut Vec<SecondAnswer>,
) {
    let Some(from) = datagram.from else { return };
    if read_registration(datagram.payload).is_some() {
        return register(socket, shared, datagram, from);
    }
    if let Some(probe) = PathProbe::read(datagram.payload) {
        return answer_probe(socket, shared, datagram, &probe, waiting);
    }
    let flows = shared.flows();
    // A QUIC connection is known by its IDs. It checks itself whether a packet is its client's, and sends an
    // address that it does not know no more than came from there.
    let owner = shared.quic_ids.owner(datagram.payload).and_then(|token| flows.quic_by_token.get(&token));
    let Some(flow) = owner.or_else(|| flows.by_address.get(&from)).cloned() else { return };
    drop(flows);
    flow.end.handle_datagram(datagram);
}

/// Answers a probe of the path. A probe with an unknown secret gets no answer, and neither does one from
/// another address than that of its client. A probe changes nothing for the flow whose secret it shows.
fn answer_probe(
    socket: &DatagramSocket,
    shared: &Shared,
    datagram: &Received<'_>,
    probe: &PathProbe,
    waiting: &mut Vec<SecondAnswer>,
) {
    let Some(from) = datagram.from else { return };
    let Some(flow) = shared.flows().by_secret.get(&probe.secret).cloned() else { return };
    if from.ip() != flow.client.get() {
        return;
    }
    let size = datagram.payload.len();
    // Both answers together are no larger than the probe, with their headers.
    let wants_second = probe.again_after_s > 0 && size >= 3 * probe.size_of_answer(size);
    let answer = PathProbeAnswer {
        token: flow.token,
        number: probe.number,
        probe_size: u16::try_from(size).unwrap_or(u16::MAX),
        tos: datagram.tos,
        ttl: datagram.ttl,
        from: SocketAddr::new(from.ip().to_canonical(), from.port()),
        second: if wants_second && has_place(waiting, shared) { Second::Follows } else { Second::None },
    };
    let route = UdpRoute {
        socket: Arc::clone(&socket.socket),
        unconnected: Some(Unconnected {
            from: datagram.to.unwrap_or(flow.local),
            to: from,
            is_v6: socket.is_v6,
            tos: Some(probe.answer_tos),
            is_whole: true,
        }),
    };
    let size = probe.size_of_answer(size);
    // An answer that is too large for this host is one that does not come, which is what the client asks.
    let _ = route.send(&answer.write(size));
    if answer.second == Second::Follows {
        waiting.push(SecondAnswer {
            at_ns: monotonic() + i64::from(probe.again_after_s) * 1_000_000_000,
            secret: probe.secret,
            route,
            packet: PathProbeAnswer { second: Second::This, ..answer }.write(size),
        });
    }
}

/// Returns whether one more second answer may wait. Those to sessions that have ended make place.
fn has_place(waiting: &mut Vec<SecondAnswer>, shared: &Shared) -> bool {
    if waiting.len() >= MAX_SECOND_ANSWERS {
        let flows = shared.flows();
        waiting.retain(|answer| flows.by_secret.contains_key(&answer.secret));
    }
    waiting.len() < MAX_SECOND_ANSWERS
}

/// Registers the source address `from` for the flow whose secret the datagram shows. A datagram with an
/// unknown secret gets no answer. A source that is not the session's client gets no answer either, so nobody
/// can direct a flow at somebody else. The client then learns over its control connection where its
/// registration came from.
fn register(socket: &DatagramSocket, shared: &Shared, datagram: &Received<'_>, from: SocketAddr) {
    let Some(secret) = read_registration(datagram.payload) else { return };
    let mut flows = shared.flows();
    let Some(flow) = flows.by_secret.get(&secret).cloned() else { return };
    if !flow.spec.transport.channel_kind().is_udp() {
        return;
    }
    let is_served = from.ip() == flow.client.get();
    let is_this_flow = |other: &Arc<Joinable>| Arc::ptr_eq(other, &flow);
    let is_known_address = flows.by_address.get(&from).is_some_and(is_this_flow);
    let is_another = !is_known_address && flows.by_address.values().any(is_this_flow);
    if is_served {
        // A flow has one address. It may change, for example if an address translator forgot the flow.
        flows.by_address.retain(|address, other| *address == from || !is_this_flow(other));
        flows.by_address.insert(from, Arc::clone(&flow));
    }
    drop(flows);
    // An open QUIC connection follows its client without a registration.
    let follows = || flow.spec.transport.as_quic().is_some() && flow.end.lock().was_open();
    flow.note_registration(from.ip(), is_served, is_served && is_another && !follows());
    if !is_served {
        return;
    }
    let route = UdpRoute {
        socket: Arc::clone(&socket.socket),
        unconnected: Some(Unconnected {
            from: datagram.to.unwrap_or(flow.local),
            to: from,
            is_v6: socket.is_v6,
            tos: flow.spec.tos(),
            is_whole: false,
        }),
    };
    let answer = registered(flow.token);
    // The route is set before the client gets its answer, because the client starts the run when all of its
    // flows have been answered.
    flow.end.lock().set_route(route.clone());
    // If the answer is lost, the client repeats its registration.
    let _ = route.send(&answer);
}
