//! The server's UDP: one socket for all sessions; a datagram belongs to the flow that its source registered
//! for.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_kernel::end::{UdpRoute, Unconnected};
use talkpath_kernel::sys::{ReceiveBatch, Received};
use talkpath_kernel::wire::{read_registration, registered};

use super::bind::DatagramSocket;
use super::{Joinable, Shared};

/// Serves until the server stops.
pub(super) fn serve(socket: &DatagramSocket, shared: &Shared) {
    let mut batch = ReceiveBatch::default();
    while !shared.stop.load(Ordering::Relaxed) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let _ = poll(&mut [PollFd::new(&*socket.socket, PollFlags::IN)], Some(&timeout));
        // What fails here is news of something sent before: it says nothing of what arrives.
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
    let Some(flow) = shared.flows().by_address.get(&from).cloned() else { return };
    flow.end.handle_datagram(datagram);
}

/// A source shows that it knows a flow's secret: from now on it is that flow's. Unknown secrets get no
/// answer, nor does a source that is not the session's client: nobody can point a flow at somebody else. The
/// client learns of the latter over its control connection.
fn register(socket: &DatagramSocket, shared: &Shared, datagram: &Received<'_>, from: SocketAddr) {
    let Some(secret) = read_registration(datagram.payload) else { return };
    let mut flows = shared.flows();
    let Some(flow) = flows.by_secret.get(&secret).cloned() else { return };
    if !flow.spec.transport.channel_kind().is_udp() {
        return;
    }
    let is_served = from.ip() == flow.client;
    let same = |other: &Arc<Joinable>| Arc::ptr_eq(other, &flow);
    let is_here = flows.by_address.get(&from).is_some_and(same);
    let was_elsewhere = !is_here && flows.by_address.values().any(same);
    flow.note_registration(from.ip(), is_served, is_served && was_elsewhere);
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
    // A flow that changes its address (an address translator forgot it) leaves the old one.
    flows.by_address.retain(|address, other| *address == from || !same(other));
    flows.by_address.insert(from, Arc::clone(&flow));
    drop(flows);
    // The route is set before the client gets its answer: with all flows answered it starts the run.
    flow.end.lock().set_route(route.clone());
    // If the answer is lost, the client repeats its registration.
    let _ = route.send(&answer);
}
