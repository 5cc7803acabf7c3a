//! Connects to the first of a host's addresses that answers (RFC 8305, "Happy Eyeballs").
//!
//! ```text
//!   0 ms     first address           the system's resolver has sorted them (RFC 6724)
//! 250 ms     first address of the other version of IP, if the first one has not answered yet
//! 500 ms     second address of the first version, and so on
//! ```
//!
//! The next attempt begins earlier if an attempt fails. Attempts that are late still run: the first one that
//! opens wins. So a host whose IPv6 is broken costs 250 ms, and not the timeout of a connection.
//!
//! Left out: a resolver that is asked for both versions at a time (RFC 8305 §3), and the times that
//! addresses took before (§4).

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use socket2::{Domain, Protocol, Socket, Type};

/// A segment size that every path carries, bytes (RFC 9293 §3.7.1: the default MSS for IPv4).
const CONTROL_MSS: u32 = 536;
/// The longest time in which a connection has to open. We chose 5 s, in which a SYN is retransmitted several
/// times.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time from one attempt to the next (RFC 8305 §5: "Connection Attempt Delay", recommended 250 ms).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The longest single wait for the attempts that run.
const POLL_SLICE: Duration = Duration::from_millis(20);

/// Attempts to connect to the addresses of a host.
pub(super) struct Attempts {
    waiting: VecDeque<SocketAddr>,
    running: Vec<Attempt>,
    /// When the next attempt begins.
    next_start: Instant,
    /// The attempts that failed, in the order in which they failed.
    pub(super) failed: Vec<(SocketAddr, io::Error)>,
}

struct Attempt {
    address: SocketAddr,
    socket: Socket,
    deadline: Instant,
}

impl Attempts {
    /// Makes the attempts for `addresses`, which are in the order of preference.
    pub(super) fn new(addresses: &[SocketAddr]) -> Self {
        Self {
            waiting: interleaved(addresses).into(),
            running: Vec::new(),
            next_start: Instant::now(),
            failed: Vec::new(),
        }
    }

    /// Returns the next connection that opens. Returns `None` if all attempts have failed.
    pub(super) fn next_opened(&mut self) -> Option<(SocketAddr, TcpStream)> {
        loop {
            let now = Instant::now();
            self.start_next(now);
            if self.waiting.is_empty() && self.running.is_empty() {
                return None;
            }
            self.wait(now);
            if let Some(opened) = self.take_finished() {
                return Some(opened);
            }
        }
    }

    /// Returns the addresses whose attempts have not ended.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = SocketAddr> {
        self.running.iter().map(|attempt| attempt.address)
    }

    /// Starts the next attempt if it is due, or if no attempt runs.
    fn start_next(&mut self, now: Instant) {
        while now >= self.next_start || self.running.is_empty() {
            let Some(address) = self.waiting.pop_front() else { return };
            match Attempt::start(address, now) {
                Ok(attempt) => {
                    self.running.push(attempt);
                    self.next_start = now + ATTEMPT_DELAY;
                }
                Err(error) => self.failed.push((address, error)),
            }
        }
    }

    /// Waits until an attempt may have ended, for a short time at most.
    fn wait(&self, now: Instant) {
        let left = match self.waiting.is_empty() {
            true => POLL_SLICE,
            false => self.next_start.saturating_duration_since(now).min(POLL_SLICE),
        };
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut fds: Vec<_> =
            self.running.iter().map(|attempt| PollFd::new(&attempt.socket, PollFlags::OUT)).collect();
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// Takes an attempt that has opened. Attempts that have failed go to the failed ones.
    fn take_finished(&mut self) -> Option<(SocketAddr, TcpStream)> {
        let mut index = 0;
        while index < self.running.len() {
            let state = self.running[index].state();
            if matches!(state, Ok(false)) {
                index += 1;
                continue;
            }
            let Attempt { address, socket, .. } = self.running.remove(index);
            match state.and_then(|_| socket.set_nonblocking(false)) {
                Ok(()) => return Some((address, socket.into())),
                Err(error) => {
                    self.failed.push((address, error));
                    // RFC 8305 §5: the next attempt does not wait for the delay.
                    self.next_start = Instant::now();
                }
            }
        }
        None
    }
}

impl Attempt {
    fn start(address: SocketAddr, now: Instant) -> io::Result<Self> {
        let socket = new_socket(address)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&address.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        Ok(Self { address, socket, deadline: now + CONNECT_TIMEOUT })
    }

    /// Returns true if the connection is open, and false if that is not decided yet.
    ///
    /// # Errors
    /// Returns the reason why the connection cannot open.
    fn state(&self) -> io::Result<bool> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        if self.socket.peer_addr().is_ok() {
            return Ok(true);
        }
        if Instant::now() >= self.deadline { Err(io::ErrorKind::TimedOut.into()) } else { Ok(false) }
    }
}

/// Opens a control connection to one address. Also returns how long that took, which is a round trip of
/// TCP's handshake.
pub(super) fn open(address: SocketAddr) -> io::Result<(TcpStream, Duration)> {
    open_within(address, CONNECT_TIMEOUT)
}

/// Does the same as [`open`], but waits no longer than `timeout`.
pub(super) fn open_within(address: SocketAddr, timeout: Duration) -> io::Result<(TcpStream, Duration)> {
    let socket = new_socket(address)?;
    let begun = Instant::now();
    socket.connect_timeout(&address.into(), timeout)?;
    Ok((socket.into(), begun.elapsed()))
}

/// Names a device on the path that opens connections in place of the server (RFC 3135 §2.4: split
/// connections). `handshake` is the round trip of TCP's handshake, and `answered_ns` the shortest round trip
/// of the server's own answers over that connection. Returns `None` if the server may have opened the
/// connection itself.
pub(super) fn split_connection(handshake: Duration, answered_ns: Option<i64>) -> Option<String> {
    let answered = Duration::from_nanos(u64::try_from(answered_ns?).ok()?);
    if handshake * 2 > answered || answered - handshake < LEAST_DIFFERENCE {
        return None;
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Some(format!(
        "TCP's handshake took {:.1} ms, and the server's own answers over this connection take {:.1} ms or more: a device \
         on the path opens TCP connections in place of the server, as a proxy does. The figures of TCP are those of two \
         connections, one behind the other, and UDP and QUIC pass that device as they are",
        ms(handshake),
        ms(answered)
    ))
}

/// The least difference of the two round trips. We chose 10 ms: a busy host may answer some milliseconds
/// late, but hardly each of eight times.
const LEAST_DIFFERENCE: Duration = Duration::from_millis(10);

/// Makes the socket of a control connection. Its segments are small in both directions (TCP_MAXSEG before
/// SYN, tcp(7)), so that a path that drops large packets cannot keep the server's report back.
fn new_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_mss(CONTROL_MSS)?;
    Ok(socket)
}

/// Returns true if packets to `address` are packets of IPv6.
pub(super) fn is_v6(address: IpAddr) -> bool {
    address.to_canonical().is_ipv6()
}

/// Returns the name of the version of IP of packets to `address`.
pub(super) fn version(address: IpAddr) -> &'static str {
    if is_v6(address) { "IPv6" } else { "IPv4" }
}

/// Orders addresses so that the versions of IP alternate, beginning with the first address (RFC 8305 §4).
/// Within a version the order stays.
fn interleaved(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(|first| is_v6(first.ip()));
    let (mut first, mut second): (VecDeque<_>, VecDeque<_>) =
        addresses.iter().partition(|address| is_v6(address.ip()) == first_is_v6);
    let mut ordered = Vec::new();
    while let Some(address) = first.pop_front() {
        ordered.push(address);
        std::mem::swap(&mut first, &mut second);
        if first.is_empty() {
            std::mem::swap(&mut first, &mut second);
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn addresses(text: &str) -> Vec<SocketAddr> {
        text.split(' ').map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn the_versions_of_ip_alternate_and_keep_their_order() {
        for (found, expected) in [
            ("[::1]:1 [::2]:1 [::3]:1 1.0.0.1:1 1.0.0.2:1", "[::1]:1 1.0.0.1:1 [::2]:1 1.0.0.2:1 [::3]:1"),
            ("1.0.0.1:1 [::1]:1 [::2]:1", "1.0.0.1:1 [::1]:1 [::2]:1"),
            ("1.0.0.1:1 1.0.0.2:1", "1.0.0.1:1 1.0.0.2:1"),
        ] {
            assert_eq!(interleaved(&addresses(found)), addresses(expected));
        }
    }

    #[test]
    fn a_proxy_that_opens_connections_is_named_and_a_path_or_a_busy_host_is_not() {
        let ms = Duration::from_millis;
        let split = split_connection(ms(4), Some(80_000_000)).unwrap();
        assert!(split.contains("handshake took 4.0 ms") && split.contains("take 80.0 ms"), "{split}");
        for (handshake, answered_ms) in
            [(80, Some(80)), (41, Some(80)), (1, Some(10)), (90, Some(80)), (1, None)]
        {
            let answered_ns = answered_ms.map(|ms: i64| ms * 1_000_000);
            assert_eq!(split_connection(ms(handshake), answered_ns), None, "{handshake} and {answered_ms:?}");
        }
    }

    #[test]
    fn an_address_that_refuses_costs_no_delay_and_is_noted() {
        let open = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let begun = Instant::now();
        let mut attempts = Attempts::new(&[closed, open.local_addr().unwrap()]);
        let (address, _) = attempts.next_opened().unwrap();
        assert_eq!(address, open.local_addr().unwrap());
        assert!(begun.elapsed() < CONNECT_TIMEOUT, "{:?}", begun.elapsed());
        assert_eq!(attempts.failed.len(), 1);
        assert_eq!(attempts.failed[0].0, closed);
        assert!(attempts.next_opened().is_none());
    }

    /// The queue of a listener that accepts nobody is full, and Linux drops further SYNs.
    #[test]
    fn an_address_that_does_not_answer_costs_the_delay_and_not_the_timeout() {
        let silent = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        silent.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        silent.listen(0).unwrap();
        let silent_address = silent.local_addr().unwrap().as_socket().unwrap();
        let _filling: Vec<_> = (0..2)
            .filter_map(|_| TcpStream::connect_timeout(&silent_address, Duration::from_millis(100)).ok())
            .collect();
        let open = TcpListener::bind("127.0.0.1:0").unwrap();
        let begun = Instant::now();
        let mut attempts = Attempts::new(&[silent_address, open.local_addr().unwrap()]);
        let (address, _) = attempts.next_opened().unwrap();
        assert_eq!(address, open.local_addr().unwrap());
        assert!(begun.elapsed() >= ATTEMPT_DELAY, "{:?}", begun.elapsed());
        assert_eq!(attempts.unanswered().collect::<Vec<_>>(), [silent_address]);
    }
}
