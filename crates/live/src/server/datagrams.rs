//! The server's UDP. All sessions share one socket for each address that the server listens on. A 1-RTT
//! packet of QUIC belongs to the connection whose ID it has, wherever it comes from. Any other datagram
//! belongs to the flow for which its source address has registered.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_kernel::end::{UdpRoute, Unconnected};
use talkpath_kernel::path_probe::{PathProbe, PathProbeAnswer};
use talkpath_kernel::sys::{ReceiveBatch, Received};
use talkpath_kernel::wire::{read_registration, registered};

use super::bind::DatagramSocket;
use super::{Joinable, Shared};

/// Gives the datagrams of `socket` to their flows until the server stops.
pub(super) fn serve(socket: &DatagramSocket, shared: &Shared) {
    let mut batch = ReceiveBatch::default();
    while !shared.stop.load(Ordering::Relaxed) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let _ = poll(&mut [PollFd::new(&*socket.socket, PollFlags::IN)], Some(&timeout));
        // An error here is a report about a datagram that was sent before. It says nothing about the
        // datagrams that arrive.
        let _ = batch.receive(socket.socket.as_fd(), |datagram| {
            handle(socket, shared, &datagram);
        });
    }
}

fn handle(socket: &DatagramSocket, shared: &Shared, datagram: &Received<'_>) {
    let Some(from) = datagram.from else { return };
    if read_registration(datagram.payload).is_some() {
        return register(socket, shared, datagram, from);
    }
    if let Some(probe) = PathProbe::read(datagram.payload) {
        return answer_probe(socket, shared, datagram, from, probe);
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
    from: SocketAddr,
    probe: PathProbe,
) {
    let Some(flow) = shared.flows().by_secret.get(&probe.secret).cloned() else { return };
    if from.ip() != flow.client {
        return;
    }
    let size = datagram.payload.len();
    let answer = PathProbeAnswer {
        token: flow.token,
        number: probe.number,
        probe_size: u16::try_from(size).unwrap_or(u16::MAX),
        tos: datagram.tos,
        ttl: datagram.ttl,
        from: SocketAddr::new(from.ip().to_canonical(), from.port()),
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
    // An answer that is too large for this host is one that does not come, which is what the client asks.
    let _ = route.send(&answer.write(probe.size_of_answer(size)));
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
    let is_served = from.ip() == flow.client;
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
