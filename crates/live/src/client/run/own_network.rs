//! This host's own network during a run: whether it still has the address of its control connection, and a
//! route to the server.
//!
//! ```text
//!  the address is there, and a route         the network is up
//!  no route, or the address is gone          the network is down: it may come back, so the run goes on
//!  the address is gone, and the route to     the host has moved, for example to another Wi-Fi or a VPN: the
//!  the server begins at another address      control connection and the flows over UDP follow (`main_loop.rs`),
//!                                            TCP connections cannot. If the server is not reached from there
//!                                            either, the run ends after 10 s of that
//! ```
//!
//! Left out: a network that looks up from here although nothing gets through it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use talkpath_units::{Duration, Instant};

use super::ways::seconds;
use crate::protocol::SILENCE_S;

/// The interval of the checks. We chose 500 ms, in which the server is asked once for its progress.
const INTERVAL: Duration = Duration::from_millis(500);
/// The time after which the run of a host that has moved ends. We chose the time after which either side
/// gives up the other one outside of a run: a Wi-Fi that comes back within it may bring the address back.
const PATIENCE: Duration = Duration::from_secs(SILENCE_S);

/// The time for which a host has to be at another address before the run follows it. We chose 1 s, two
/// checks, so that a route which only flaps moves nothing.
const FOLLOW_AFTER: Duration = Duration::from_secs(1);
/// The interval of the attempts to follow. An attempt may take some seconds itself.
const FOLLOW_AGAIN: Duration = Duration::from_secs(2);

/// Watches this host's network.
pub(super) struct OwnNetwork {
    local: SocketAddr,
    server: SocketAddr,
    next_check: Instant,
    /// Since when the network is down. `None` if it is up.
    down_since: Option<Instant>,
    /// The address that this host has instead, and since when.
    moved: Option<(IpAddr, Instant)>,
    /// When the next attempt to follow may begin.
    next_follow: Instant,
    /// Why the last attempt to follow failed.
    not_followed: Option<String>,
    /// The changes of address that the run followed, in words for the user.
    followed: Vec<String>,
    /// The times in which the network was down, and is up again.
    outages: Vec<Outage>,
}

/// A time in which this host had no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outage {
    from: Instant,
    to: Instant,
}

/// The state of the network at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetworkState {
    Up,
    Down,
    /// The address is gone, and packets to the server would leave from this one.
    MovedTo(IpAddr),
}

/// What a host that has moved has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Reach the server from the new address.
    Follow,
    /// End the run, for this reason.
    End(String),
}

impl OwnNetwork {
    /// Watches the network of the connection from `local` to `server`.
    pub(super) const fn new(local: SocketAddr, server: SocketAddr) -> Self {
        Self {
            local,
            server,
            next_check: Instant::ZERO,
            down_since: None,
            moved: None,
            next_follow: Instant::ZERO,
            not_followed: None,
            followed: Vec::new(),
            outages: Vec::new(),
        }
    }

    /// Checks the network if it is time for that. Returns what to do if this host has moved.
    pub(super) fn check(&mut self, now: Instant) -> Option<Move> {
        if now < self.next_check {
            return None;
        }
        self.next_check = now.saturating_add(INTERVAL);
        self.note(state(self.local, self.server), now)
    }

    /// Notes that the control connection has followed this host to the address `local`.
    pub(super) fn follow(&mut self, local: SocketAddr, now: Instant) {
        let since = self.down_since.take().unwrap_or(now);
        self.followed.push(format!(
            "this host's address changed from {} to {} at {:.1} s of the run, as with another Wi-Fi, a VPN or a new lease: \
             the run continued from there {:.1} s later. Flows over UDP registered anew, QUIC connections followed, TCP \
             connections ended with the old address: what was due on them from then on is lost",
            self.local.ip().to_canonical(),
            local.ip().to_canonical(),
            seconds(since),
            now.since(since).as_millis_f64() / 1e3,
        ));
        self.outages.push(Outage { from: since, to: now });
        (self.local, self.moved, self.not_followed) = (local, None, None);
    }

    /// Notes that the server was not reached from the new address.
    pub(super) fn note_not_followed(&mut self, why: String, now: Instant) {
        self.next_follow = now.saturating_add(FOLLOW_AGAIN);
        self.not_followed = Some(why);
    }

    fn note(&mut self, state: NetworkState, now: Instant) -> Option<Move> {
        if state == NetworkState::Up {
            self.outages.extend(self.down_since.take().map(|from| Outage { from, to: now }));
            self.moved = None;
            return None;
        }
        let since = *self.down_since.get_or_insert(now);
        let NetworkState::MovedTo(other) = state else {
            self.moved = None;
            return None;
        };
        let (other, moved_at) = *self.moved.get_or_insert((other, now));
        if now.since(moved_at) >= PATIENCE {
            return Some(Move::End(self.say_moved(other, since)));
        }
        let is_time = now.since(moved_at) >= FOLLOW_AFTER && now >= self.next_follow;
        is_time.then_some(Move::Follow)
    }

    fn say_moved(&self, other: IpAddr, since: Instant) -> String {
        let why = self.not_followed.as_deref().unwrap_or("the run ended before it could follow");
        format!(
            "this host's address changed from {} to {other} at {:.1} s of the run, as with another Wi-Fi, a VPN or a new \
             lease: its connections ended with the old address, and the server was not reached from the new one \
             ({why}); measure again from there",
            self.local.ip().to_canonical(),
            seconds(since)
        )
    }

    /// Ends the watch at `now`.
    pub(super) fn finish(mut self, now: Instant) -> NetworkHistory {
        let moved = self.moved.map(|(other, at)| self.say_moved(other, self.down_since.unwrap_or(at)));
        self.outages.extend(self.down_since.map(|from| Outage { from, to: now }));
        NetworkHistory { outages: self.outages, moved, followed: self.followed }
    }
}

/// What this host's network did during a run.
#[derive(Debug, Default)]
pub(super) struct NetworkHistory {
    /// The times in which this host had no network.
    pub(super) outages: Vec<Outage>,
    /// That this host has another address at the end of the run, in words for the user.
    pub(super) moved: Option<String>,
    /// The changes of address that the run followed, in words for the user.
    pub(super) followed: Vec<String>,
}

impl Outage {
    /// Returns the part of the outage that lies between `from` and `to`.
    pub(super) fn within(&self, from: Instant, to: Instant) -> Duration {
        let (begin, end) = (self.from.max(from), self.to.min(to));
        if begin < end { end.since(begin) } else { Duration::ZERO }
    }
}

/// Makes an outage for tests of other modules.
#[cfg(test)]
pub(super) const fn outage(from: Instant, to: Instant) -> Outage {
    Outage { from, to }
}

/// Asks the kernel for the state of the network.
fn state(local: SocketAddr, server: SocketAddr) -> NetworkState {
    if reaches(local, server).is_ok() {
        return NetworkState::Up;
    }
    let any: IpAddr =
        if server.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    match reaches((any, 0).into(), server) {
        Ok(other) if other != local.ip() => NetworkState::MovedTo(other),
        Ok(_) | Err(_) => NetworkState::Down,
    }
}

/// Returns the address from which datagrams to `server` would leave a socket that is bound to `local`.
fn reaches(mut local: SocketAddr, server: SocketAddr) -> io::Result<IpAddr> {
    local.set_port(0);
    let socket = UdpSocket::bind(local)?;
    socket.connect(server)?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> OwnNetwork {
        OwnNetwork::new("192.0.2.1:5000".parse().unwrap(), "192.0.2.9:7160".parse().unwrap())
    }

    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 77));

    #[test]
    fn a_host_that_moved_ends_its_run_after_ten_seconds_and_names_both_addresses() {
        let mut network = network();
        let at = Instant::from_millis;
        assert_eq!(network.note(NetworkState::Up, at(0)), None);
        assert_eq!(network.note(NetworkState::Down, at(4_000)), None);
        assert_eq!(network.note(NetworkState::MovedTo(OTHER), at(5_000)), None);
        assert_eq!(network.note(NetworkState::MovedTo(OTHER), at(5_900)), None);
        assert_eq!(network.note(NetworkState::MovedTo(OTHER), at(6_000)), Some(Move::Follow));
        network.note_not_followed("no answer".to_owned(), at(8_000));
        assert_eq!(network.note(NetworkState::MovedTo(OTHER), at(9_900)), None);
        assert_eq!(network.note(NetworkState::MovedTo(OTHER), at(14_900)), Some(Move::Follow));
        let Some(Move::End(why)) = network.note(NetworkState::MovedTo(OTHER), at(15_000)) else { panic!() };
        assert!(why.contains("from 192.0.2.1 to 192.0.2.77 at 4.0 s of the run"), "{why}");
        assert!(why.contains("not reached from the new one (no answer)"), "{why}");
    }

    #[test]
    fn a_run_that_follows_its_host_says_when_and_ends_nothing() {
        let mut network = network();
        let at = Instant::from_millis;
        assert_eq!(network.note(NetworkState::MovedTo(OTHER), at(4_000)), None);
        assert_eq!(network.note(NetworkState::MovedTo(OTHER), at(5_000)), Some(Move::Follow));
        network.follow(SocketAddr::new(OTHER, 6000), at(5_200));
        assert_eq!(network.note(NetworkState::Up, at(20_000)), None);
        let NetworkHistory { outages, moved, followed } = network.finish(at(22_000));
        assert_eq!((outages, moved), (vec![Outage { from: at(4_000), to: at(5_200) }], None));
        assert!(followed[0].contains("from 192.0.2.1 to 192.0.2.77 at 4.0 s of the run"), "{followed:?}");
        assert!(followed[0].contains("continued from there 1.2 s later"), "{followed:?}");
    }

    #[test]
    fn an_address_that_comes_back_ends_nothing_and_the_time_without_it_is_known() {
        let mut network = network();
        let at = Instant::from_millis;
        for (state, ms) in [
            (NetworkState::MovedTo(OTHER), 1_000),
            (NetworkState::MovedTo(OTHER), 9_000),
            (NetworkState::Up, 10_000),
            (NetworkState::MovedTo(OTHER), 12_000),
            (NetworkState::MovedTo(OTHER), 21_000),
        ] {
            let found = network.note(state, at(ms));
            assert!(!matches!(found, Some(Move::End(_))), "{state:?} at {ms} ms: {found:?}");
        }
        let NetworkHistory { outages, moved, .. } = network.finish(at(22_000));
        assert!(moved.is_some_and(|moved| moved.contains("to 192.0.2.77 at 12.0 s")));
        assert_eq!(
            outages,
            [(1_000, 10_000), (12_000, 22_000)].map(|(from, to)| Outage { from: at(from), to: at(to) })
        );
        assert_eq!(outages[0].within(at(8_000), at(11_000)), Duration::from_secs(2));
        assert_eq!(outages[0].within(at(10_000), at(11_000)), Duration::ZERO);
    }

    #[test]
    fn a_host_with_its_address_and_a_route_has_a_network() {
        let local = "127.0.0.1:0".parse().unwrap();
        assert_eq!(state(local, "127.0.0.1:9".parse().unwrap()), NetworkState::Up);
        // RFC 5737: the address is of no host, so it is not of this one.
        let foreign = "192.0.2.1:0".parse().unwrap();
        let moved = NetworkState::MovedTo(Ipv4Addr::LOCALHOST.into());
        assert_eq!(state(foreign, "127.0.0.1:9".parse().unwrap()), moved);
    }
}
