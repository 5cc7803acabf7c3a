//! The ways of flows over UDP to the server: how a way opens, how it stays open, and what the user reads if
//! it does not open. A way is the UDP socket of a flow with its registration at the server.
//!
//! The server takes a flow's datagrams from one address only. This address has to be registered with the
//! flow's secret.
//!
//! ```text
//!  before the run   every flow registers, again and again, for up to 3 s
//!  in the run       a flow without an answer registers once a second, because its way may still open
//!                   a flow that sends and gets nothing back for a second registers again, and so does a flow
//!                   whose connection does not open, because a NAT may have given it another port
//!                   all other flows register every 15 s, so that a NAT does not forget them
//! ```
//!
//! Only the client's end of plain UDP has to know whether its way is open. A connection of DCCP or QUIC finds
//! out by itself whether its packets are answered, and one of QUIC follows its client to another address by
//! itself. If its client is silent and waits for nothing, a PING shows the server the address.
//!
//! If nothing comes back over the port of the control connection, the ways try the other ports that the
//! server offers (`serve --also`), one after the other, and the run uses the first over which an answer
//! comes. If this host's IP address changes, the ways register from the new address once the control
//! connection has followed.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::connect_unspec;
use rustix::time::Timespec;
use talkpath_arena::ArenaError;
use talkpath_kernel::clock::monotonic;
use talkpath_kernel::end::{FlowEnd, SharedEnd, UdpRoute};
use talkpath_kernel::progress::EndProgress;
use talkpath_kernel::sys::ReceiveBatch;
use talkpath_measure::warning;
use talkpath_units::{Duration, Instant, times};

use super::Session;
use crate::client::connect::{is_v6, version};
use crate::client::control::ServerControl;
use crate::protocol::{Registration, Registrations};

/// The way of a flow, or of all flows of one connection.
pub(super) struct Way {
    /// The index of the way's first flow in the session.
    pub(super) index: usize,
    /// The indices of all flows of the way.
    members: Vec<usize>,
    socket: Arc<UdpSocket>,
    end: Arc<SharedEnd>,
    /// The datagram that registers the flow.
    packet: [u8; 32],
    /// True if the server has answered a registration.
    is_open: bool,
    /// The count of received messages ([`Traffic::received`]) at its last change.
    received: u64,
    /// The count of sent messages ([`Traffic::sent`]) at that time.
    sent: u64,
    /// CLOCK_MONOTONIC since when messages were sent and nothing came back. `None` if the way is not silent.
    silent_since_ns: Option<i64>,
    /// CLOCK_MONOTONIC of the last registration.
    tried_ns: i64,
    /// CLOCK_MONOTONIC of the first registration, the first datagram of the way. 0 before it.
    begun_ns: i64,
    /// CLOCK_MONOTONIC at which something was last received.
    heard_ns: i64,
    /// A silence that lasted until the run stopped sending.
    silence: Option<LastingSilence>,
}

/// A silence that lasted until the run stopped sending.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LastingSilence {
    /// Its beginning on the run's clock.
    from: Instant,
    /// The age of the way then: the time since its first datagram.
    age: Duration,
}

impl Way {
    pub(super) fn new(
        index: usize,
        members: Vec<usize>,
        socket: Arc<UdpSocket>,
        end: Arc<SharedEnd>,
        packet: [u8; 32],
    ) -> Self {
        Self {
            index,
            members,
            socket,
            end,
            packet,
            is_open: false,
            received: 0,
            sent: 0,
            silent_since_ns: None,
            tried_ns: 0,
            begun_ns: 0,
            heard_ns: 0,
            silence: None,
        }
    }

    /// Returns true if the server has answered no registration yet.
    pub(super) const fn is_closed(&self) -> bool {
        !self.is_open
    }

    /// Sends a registration, which shows the server the source address of the flow's datagrams. An error
    /// does not matter, because the registration is repeated.
    fn register(&mut self, now_ns: i64) {
        self.tried_ns = now_ns;
        if self.begun_ns == 0 {
            self.begun_ns = now_ns;
        }
        let _ = self.socket.send(&self.packet);
    }

    /// Opens the way, because the server has answered. The end may then send.
    fn open(&mut self) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.end.lock().set_route(UdpRoute { socket: Arc::clone(&self.socket), unconnected: None });
        }
    }

    /// Sends to `to` from now on, from the address and port that the kernel chooses anew. An error does not
    /// matter, because a way that reaches nobody is silent.
    fn turn_to(&mut self, to: SocketAddr) {
        // A socket that is connected keeps its source address. This call takes it back (connect(2),
        // AF_UNSPEC), unless the socket was bound to that address.
        let _ = connect_unspec(&*self.socket);
        let _ = self.socket.connect(to);
    }

    /// Notes the traffic of the way, and sends a registration if one is due.
    fn keep_open(&mut self, traffic: Traffic, now_ns: i64) {
        let Traffic { sent, received, is_opening } = traffic;
        if self.end.lock().registration_answers() > 0 {
            self.open();
        }
        if received != self.received {
            (self.received, self.sent, self.silent_since_ns) = (received, sent, None);
            self.heard_ns = now_ns;
        } else if sent > self.sent || is_opening {
            self.silent_since_ns.get_or_insert(now_ns);
        }
        let is_silent = self.silent_since_ns.is_some_and(|since| now_ns - since >= SILENCE_NS);
        let interval = if is_silent || !self.is_open { AGAIN_NS } else { KEEP_OPEN_NS };
        if now_ns - self.tried_ns >= interval {
            self.register(now_ns);
            if is_silent {
                self.end.work(FlowEnd::ping);
            }
        }
    }
}

/// The traffic of a way so far.
#[derive(Clone, Copy)]
struct Traffic {
    /// The sum of what both ends have sent.
    sent: u64,
    /// The sum of what both ends have received.
    received: u64,
    /// True if a connection of DCCP or QUIC should be open and is not. The packets that open it are not
    /// counted in `sent`, because they are no messages.
    is_opening: bool,
}

/// Registers all ways, again and again. Returns when the server has answered for every way, or after
/// `patience_ns`.
///
/// # Errors
/// Returns [`ArenaError::Interrupted`] if the user stops the run.
pub(super) fn register(ways: &mut [Way], patience_ns: i64, session: &Session<'_>) -> Result<(), ArenaError> {
    let mut batch = ReceiveBatch::default();
    let begun = monotonic();
    while ways.iter().any(|way| !way.is_open) && monotonic() - begun <= patience_ns {
        if session.plan.interrupt.load(Ordering::Relaxed) {
            return Err(ArenaError::Interrupted { partial: None });
        }
        let now = monotonic();
        let due = |way: &&mut Way| !way.is_open && now - way.tried_ns >= RETRY_NS;
        ways.iter_mut().filter(due).for_each(|way| way.register(now));
        let sockets = ways.iter().filter(|way| !way.is_open).map(|way| &*way.socket);
        let mut fds: Vec<_> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 }));
        for way in ways.iter_mut().filter(|way| !way.is_open) {
            let mut is_answered = false;
            let end = Arc::clone(&way.end);
            let _ = batch.receive(way.socket.as_fd(), |datagram| {
                is_answered |= end.lock().is_registered_by(datagram.payload);
            });
            if is_answered {
                way.open();
            }
        }
    }
    Ok(())
}

/// Turns all ways to another port of the server.
pub(super) fn turn_to(ways: &mut [Way], to: SocketAddr) {
    for way in ways {
        way.turn_to(to);
        way.tried_ns = 0;
    }
}

/// Lets all ways continue from this host's new address, to the server at `to`.
pub(super) fn follow(ways: &mut [Way], to: SocketAddr) {
    let now_ns = monotonic();
    for way in ways {
        way.turn_to(to);
        way.register(now_ns);
        way.silent_since_ns = None;
        way.end.work(FlowEnd::ping);
    }
}

/// Sends the registration of the first way to an address of the server over the other version of IP, a few
/// times. The server does not serve that address, but notes that the registration came. So the client learns
/// whether UDP gets through over the other version.
pub(super) fn try_other_version(ways: &[Way], address: SocketAddr) {
    let any: SocketAddr =
        if address.is_ipv6() { (Ipv6Addr::UNSPECIFIED, 0).into() } else { (Ipv4Addr::UNSPECIFIED, 0).into() };
    // Without a socket or a route of that version, nothing gets through over it.
    let Ok(socket) = UdpSocket::bind(any) else { return };
    for way in ways.iter().take(1) {
        for _ in 0..OTHER_VERSION_TRIES {
            let _ = socket.send_to(&way.packet, address);
            // The last datagram gets the same time to arrive, because the next request goes by another path.
            let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: RETRY_NS }));
        }
    }
}

/// Keeps the ways open during the run. `server_progress` is the progress of each flow at the server.
pub(super) fn keep(ways: &mut [Way], server_progress: &[EndProgress], session: &Session<'_>, now: Instant) {
    let now_ns = monotonic();
    for way in ways {
        let mut traffic = Traffic { sent: 0, received: way.end.datagrams(), is_opening: false };
        for &member in &way.members {
            let near = session.ends[member].lock();
            let has_started = now.as_nanos() >= near.spec.start_ns;
            traffic.is_opening |=
                near.spec.transport.channel_kind().runs_here() && has_started && !near.was_open();
            let (near, far) = (near.progress(), server_progress.get(member).copied().unwrap_or_default());
            traffic.sent = traffic.sent.saturating_add(near.sent).saturating_add(far.sent);
            traffic.received = traffic.received.saturating_add(far.received);
        }
        way.keep_open(traffic, now_ns);
    }
}

/// Notes which ways are silent at `now`, when the run has stopped sending.
pub(super) fn note_silence(ways: &mut [Way], now: Instant) {
    let now_ns = monotonic();
    for way in ways.iter_mut().filter(|way| way.silence.is_none()) {
        let silence = way.silent_since_ns.map_or(0, |since| now_ns - since);
        if way.is_open && silence >= DEAD_NS {
            // It began when something came for the last time, and not when the next message was missed. A way
            // that heard nothing in the run has been silent since a message was due.
            let since = way.silent_since_ns.unwrap_or(now_ns);
            let began = if way.heard_ns > 0 { way.heard_ns.min(since) } else { since };
            let nanos = |span: i64| u64::try_from(span).unwrap_or(0);
            let from = now.as_nanos().saturating_sub(nanos(now_ns - began));
            let age = Duration::from_nanos(nanos(began - way.begun_ns));
            way.silence = Some(LastingSilence { from: Instant::from_nanos(from), age });
        }
    }
}

/// The ways that have not opened before the run.
pub(super) struct ClosedWays {
    /// What does not come back and why, for the user.
    pub(super) what: String,
    /// True if no way has opened.
    pub(super) is_all: bool,
}

/// Describes the ways that have not opened before the run over UDP port `port`. Returns `None` if all ways
/// are open.
pub(super) fn describe_closed(
    ways: &[Way],
    server: &ServerControl,
    port: u16,
    registrations: &Registrations,
) -> Option<ClosedWays> {
    let first = ways.iter().find(|way| way.is_closed())?;
    let why = why_closed(registrations, first.index);
    let is_all = ways.iter().all(Way::is_closed);
    let what = if is_all { "nothing comes" } else { "of some flows nothing comes" };
    let what = format!("{}: {what} back over UDP port {port} ({why})", server.name());
    Some(ClosedWays { what, is_all })
}

/// Says why the way of flow `index` did not open, as far as the server's registrations show.
fn why_closed(registrations: &Registrations, index: usize) -> String {
    match registrations.flows.get(index).copied().flatten() {
        None => "nothing of it arrived at the server, so a firewall may drop UDP on the way there".to_owned(),
        Some(Registration { is_served: true, .. }) => {
            "it arrives at the server, and the answers do not come back, so a firewall may drop UDP on the way back"
                .to_owned()
        }
        Some(Registration { from, is_served: false, .. })
            if is_v6(from) != is_v6(registrations.client) =>
        {
            let (other, number) = if is_v6(from) { ("IPv6", 6) } else { ("IPv4", 4) };
            format!(
                "over {} nothing of it arrived at the server, over {other} it does, so a firewall may drop UDP over {0} \
                 alone; -{number} measures over {other}",
                version(registrations.client)
            )
        }
        Some(Registration { from, is_served: false, .. }) => format!(
            "your UDP comes from {from}, your TCP from {}: a router with two lines, or a carrier's translator; \
             only the address of the TCP connection is served",
            registrations.client
        ),
    }
}

impl Session<'_> {
    /// Returns warnings about flows that did not open, that moved to another address, or that were silent at
    /// the end. `tcp_port` is the port of the control connection. `has_report` says that the control
    /// connection lasted until the server's report. Without it a way's silence says nothing of UDP.
    /// `own_moves` is how often this host's address changed, which the user reads elsewhere.
    pub(super) fn way_warnings(
        &self,
        registrations: &Registrations,
        tcp_port: u16,
        own_moves: u32,
        has_report: bool,
    ) -> Vec<String> {
        let mut lines: Vec<String> = self.port_warning.iter().cloned().collect();
        let port = self.udp_port;
        for (index, (flow, end)) in self.scenario.flows.iter().zip(&self.ends).enumerate() {
            let leader = self.spec.leader(index);
            let way = self.ways.iter().find(|way| way.index == leader);
            let (name, end) = (&flow.name, end.lock());
            let why_not = why_not_open(&end, way, registrations, tcp_port, port);
            let has_opened = why_not.is_none();
            lines.extend(why_not.map(|why| warning::not_open(name, why)));
            let (Some(way), registration) = (way, registrations.flows.get(leader).copied().flatten()) else {
                continue;
            };
            let moves = registration.map_or(0, |registration| registration.moves);
            let before = self.early_registrations.flows.get(leader).copied().flatten();
            let known = before.map_or(own_moves, |before| before.moves.saturating_add(own_moves));
            if moves > known {
                lines.push(moved(name, moves - known));
            }
            if let Some(LastingSilence { from, age }) = way.silence.filter(|_| has_opened && has_report) {
                lines.push(format!(
                    "flow {name}: from about {:.0} s of the run on, {:.0} s after its first datagram, nothing came over UDP port \
                     {port}, while the control connection over TCP went on: a firewall or translator may end a flow over \
                     UDP at that age, and a new flow then lives as long; what helps is its limit for UDP, or TCP",
                    seconds(from),
                    age.as_secs_f64()
                ));
            }
        }
        lines
    }
}

/// Says why a flow did not open during the run. Returns `None` if the flow opened.
fn why_not_open(
    end: &FlowEnd,
    way: Option<&Way>,
    registrations: &Registrations,
    tcp_port: u16,
    port: u16,
) -> Option<String> {
    match way {
        Some(way) if way.is_closed() => {
            Some(format!("nothing came back over UDP port {port}: {}", why_closed(registrations, way.index)))
        }
        // Plain UDP has no connection, so the flow is open once its way is open.
        Some(_) if !end.spec.transport.channel_kind().runs_here() => None,
        _ if end.was_open() => None,
        Some(way) => {
            Some(why_no_connection(end.failure.as_deref(), way.silence.map(|silence| silence.from), port))
        }
        None => Some(match &end.failure {
            Some(failure) => failure.clone(),
            None => format!("no answer over TCP port {tcp_port} until the run ended"),
        }),
    }
}

/// Says why a connection over UDP did not open although its flow was registered. Either nothing came back
/// from `silent_from` on, or small datagrams are answered and the connection's first packets are not.
fn why_no_connection(failure: Option<&str>, silent_from: Option<Instant>, port: u16) -> String {
    match (silent_from, failure) {
        (Some(from), _) => format!(
            "from {:.1} s of the run on nothing came over UDP port {port}, small datagrams neither, though they \
             did before: a firewall or translator between the hosts may have closed it",
            seconds(from)
        ),
        (None, Some(failure)) => format!("{failure}; small datagrams over UDP port {port} get through"),
        (None, None) => format!(
            "its first packets have no answer, though small datagrams over UDP port {port} do; does the path \
             drop large ones, as one with a small MTU?"
        ),
    }
}

/// Returns the time since the beginning of the run, seconds.
pub(super) fn seconds(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_millis_f64() / 1e3
}

/// Makes the warning about a flow whose address changed during the run.
fn moved(name: &str, moves: u32) -> String {
    format!(
        "flow {name}: its address or port changed {} during the run, as a translator's: the server hears a flow again \
         once it has registered anew, about a second later: what was sent meanwhile counts as lost",
        times(moves.into())
    )
}

/// The number of registrations that are sent over the other version of IP. We chose 3, which all fail once
/// in 64 on a path that loses a quarter of all packets.
const OTHER_VERSION_TRIES: u32 = 3;
/// The interval of registrations before the run.
const RETRY_NS: i64 = 200_000_000;
/// The longest wait for the answers before the run, ns. We chose 3 s, in which a QUIC client sends its first
/// three packets (RFC 9002 §6.2.2). On a path that loses half of all packets in each direction, all 15 tries
/// fail once in 75.
pub(super) const REGISTER_NS: i64 = 3_000_000_000;
/// The longest wait if nothing came back over UDP in the last session, ns. We chose 0.5 s, which is enough
/// for two tries over most paths. The flows go on registering during the run.
pub(super) const REGISTER_AGAIN_NS: i64 = 500_000_000;
/// The longest wait for the answers over another port of the server, ns. We chose 1 s, which is five tries.
pub(super) const OTHER_PORT_NS: i64 = 1_000_000_000;
/// The silence after which a flow that sends registers again, ns. We chose 1 s, which is the shortest outage
/// that a record lists.
const SILENCE_NS: i64 = 1_000_000_000;
/// The interval of registrations of a way that is silent or closed. Each registration has 32 B.
const AGAIN_NS: i64 = 1_000_000_000;
/// The interval of registrations of each other way. A NAT may forget a way after two minutes (RFC 4787 §4.3,
/// REQ-5), and many forget it after thirty seconds.
const KEEP_OPEN_NS: i64 = 15_000_000_000;
/// The silence at the end of the run above which it is reported, ns. We chose the value for the control
/// connection.
const DEAD_NS: i64 = 3_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_blames_the_port_if_nothing_came_over_it_and_the_mtu_only_if_small_datagrams_did() {
        let failure = Some("the QUIC connection did not open: no answer to its first packets of 1228 B");
        for failure in [failure, None] {
            let blocked = why_no_connection(failure, Some(Instant::from_millis(1_500)), 7160);
            assert!(
                blocked.contains("from 1.5 s of the run on nothing came over UDP port 7160"),
                "{blocked}"
            );
            assert!(!blocked.contains("MTU") && !blocked.contains("1228 B"), "{blocked}");
            let large = why_no_connection(failure, None, 7160);
            assert!(large.contains("small datagrams over UDP port 7160"), "{large}");
        }
    }
}
