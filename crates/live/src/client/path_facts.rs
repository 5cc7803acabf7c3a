//! What the path does to packets, found out by probes (`kernel/src/path_probe.rs`) before the first run.
//!
//! ```text
//!  round 1     a probe of each size of LADDER with an answer of the same size; small ones with ECT(0) or EF
//!  rounds 2-5  the sizes without an answer again, with an answer of that size and with a small one
//! ```
//!
//! A size passes on the way there if any answer to such a probe comes, and on the way back if an answer of
//! that size comes. No packet may be fragmented, and the MTU that the kernel knows is ignored. One
//! exploration sends at most 0.2 MB, 1.5 MB/s, and the server sends no more than it gets.
//!
//! Left out: sizes between those of the ladder, and MTUs above that of this host's device.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_kernel::clock::monotonic;
use talkpath_kernel::fragments::never_fragment;
use talkpath_kernel::path_probe::{MIN_PROBE, PathProbe, PathProbeAnswer};
use talkpath_kernel::sys::{ReceiveBatch, path_mtu, report_arrivals, set_tos};
use talkpath_kernel::wire::Secret;
use talkpath_measure::summary::{PathSummary, PathWaySummary};
use talkpath_measure::warning;
use talkpath_model::Dscp;
use talkpath_units::Ecn;

use super::connect::{is_v6, version};

/// The sizes of packets that are tried, bytes with the IP header. They are the MTUs of Ethernet (1500),
/// PPPoE (1492, RFC 2516), tunnels (1480 of RFC 4213, 1420 and 1280 of WireGuard and Tailscale), the minima
/// of IPv6 (1280, RFC 8200) and IPv4 (576, RFC 791), and sizes between them, which we chose.
const LADDER: [u32; 14] = [576, 1024, 1200, 1280, 1340, 1380, 1400, 1420, 1440, 1454, 1460, 1480, 1492, 1500];
/// The largest size that is tried if the device has a larger MTU than Ethernet's (jumbo frames).
const JUMBO: u32 = 9000;
/// The number of rounds. We chose 5: on a path that loses a fifth of the packets in each direction, a size
/// that passes has no answer in any round once in 160.
const ROUNDS: usize = 5;
/// The number of small probes with each TOS.
const SMALL_PROBES: usize = 4;
/// The time from one probe to the next, ns. We chose 1 ms, so that a full probe each makes 12 Mb/s at most.
const GAP_NS: i64 = 1_000_000;
/// The longest wait for answers in a round, ns. We chose 1 s, which is longer than the round trip of a
/// geostationary satellite. After the first answer the wait is three round trips and 50 ms.
const WAIT_NS: i64 = 1_000_000_000;
const MARGIN_NS: i64 = 50_000_000;

/// The largest number of answers that are kept, so that a far end which repeats them takes no memory. We
/// chose 1024, six times the probes of all rounds.
const MAX_ANSWERS: usize = 1024;

/// The byte with ECT(0) (RFC 3168 §5) and the byte with EF (RFC 3246).
const ECT0: u8 = 0b10;
const EF: u8 = 46 << 2;

/// What the path does to packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathFacts {
    /// This host's address and port of the probes.
    local: SocketAddr,
    /// The address and port that the server saw.
    seen: SocketAddr,
    /// The way to the server.
    pub(crate) out: WayFacts,
    /// The way back.
    pub(crate) back: WayFacts,
    /// The MTU of the path that this host's kernel knows after the probes, bytes.
    known_mtu: Option<u32>,
}

/// What one direction of the path does to packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WayFacts {
    /// The largest tried size that passes, bytes.
    pub(crate) passes: Option<u32>,
    /// The smallest tried size above it, which does not pass. `None` if the largest tried size passes.
    pub(crate) fails: Option<u32>,
    /// The smallest TTL with which a packet arrived.
    ttl: Option<u8>,
    /// The ECN fields with which packets with ECT(0) arrived.
    ecn: BTreeSet<u8>,
    /// The DSCPs with which packets with EF arrived.
    dscp: BTreeSet<u8>,
}

/// A probe that was sent.
#[derive(Clone, Copy)]
struct SentProbe {
    /// The size of the packet.
    size: u32,
    /// The size of the answer's packet.
    answer_size: u32,
    tos: u8,
    sent_ns: i64,
}

/// An answer that came.
struct Arrival {
    answer: PathProbeAnswer,
    /// The size of the packet.
    size: u32,
    tos: Option<u8>,
    ttl: Option<u8>,
}

/// Explores the path from `local` to `server` with the secret of a flow, whose token is `token`. Returns
/// `None` if no answer comes, or if `interrupt` becomes true.
pub(crate) fn explore(
    local: SocketAddr,
    server: SocketAddr,
    secret: Secret,
    token: u32,
    interrupt: &AtomicBool,
) -> Option<PathFacts> {
    let mut explorer = Explorer::open(local, server, secret, token).ok()?;
    let sizes = explorer.sizes();
    let mut questions = Vec::new();
    for tos in [ECT0, EF] {
        questions.extend([(MIN_PACKET, MIN_PACKET, tos); SMALL_PROBES]);
    }
    questions.extend(sizes.iter().map(|&size| (size, size, 0)));
    for round in 0..ROUNDS {
        explorer.ask(&questions, interrupt);
        if interrupt.load(Ordering::Relaxed) || round > 0 && explorer.arrivals.is_empty() {
            return None;
        }
        questions.clear();
        for &size in sizes.iter().filter(|size| !explorer.came_back(**size)) {
            questions.push((size, size, 0));
            questions.push((size, MIN_PACKET, 0));
        }
        if questions.is_empty() {
            break;
        }
    }
    explorer.facts(&sizes)
}

/// The smallest packet: a small probe with the headers of IPv4 and UDP. Over IPv6 it is 20 B larger.
const MIN_PACKET: u32 = MIN_PROBE as u32 + 28;

struct Explorer {
    socket: UdpSocket,
    server: SocketAddr,
    secret: Secret,
    token: u32,
    batch: ReceiveBatch,
    sent: Vec<SentProbe>,
    arrivals: Vec<Arrival>,
    shortest_ns: Option<i64>,
}

impl Explorer {
    fn open(mut local: SocketAddr, server: SocketAddr, secret: Secret, token: u32) -> io::Result<Self> {
        local.set_port(0);
        let socket = UdpSocket::bind(local)?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        never_fragment(socket.as_fd(), server.is_ipv6())?;
        report_arrivals(socket.as_fd(), server.is_ipv6());
        Ok(Self {
            socket,
            server,
            secret,
            token,
            batch: ReceiveBatch::default(),
            sent: Vec::new(),
            arrivals: Vec::new(),
            shortest_ns: None,
        })
    }

    /// Returns the sizes to try: those of the ladder that the device takes, and the device's own MTU.
    fn sizes(&self) -> Vec<u32> {
        let device = path_mtu(self.socket.as_fd(), self.server.is_ipv6()).unwrap_or(LADDER[LADDER.len() - 1]);
        let mut sizes: BTreeSet<u32> = LADDER.into_iter().filter(|size| *size <= device).collect();
        sizes.insert(device.min(JUMBO));
        sizes.into_iter().collect()
    }

    /// Sends probes, each with the size of its packet, the size of the answer's packet, and its TOS. Then
    /// waits for the answers.
    fn ask(&mut self, questions: &[(u32, u32, u8)], interrupt: &AtomicBool) {
        for &(size, answer_size, tos) in questions {
            let number = u16::try_from(self.sent.len()).unwrap_or(u16::MAX);
            let payload = |size: u32| usize::try_from(size.saturating_sub(self.headers())).unwrap_or(0);
            let probe = PathProbe {
                secret: self.secret,
                number,
                answer_size: u16::try_from(payload(answer_size)).unwrap_or(u16::MAX),
                answer_tos: tos,
                again_after_s: 0,
            };
            let packet = probe.write(payload(size));
            // Without the option the packet says nothing of the TOS.
            if set_tos(self.socket.as_fd(), self.server.is_ipv6(), tos).is_err() {
                continue;
            }
            self.sent.push(SentProbe { size, answer_size, tos, sent_ns: monotonic() });
            // An error may be about an earlier probe that was too big, so the probe is sent a second time. A
            // probe that is too big for this host has no answer.
            let _ = self.socket.send(&packet).or_else(|_| self.socket.send(&packet));
            self.receive(GAP_NS);
        }
        let begun = monotonic();
        loop {
            let patience = self.shortest_ns.map_or(WAIT_NS, |rtt| (3 * rtt + MARGIN_NS).min(WAIT_NS));
            let is_complete = self.arrivals.len() >= self.sent.len();
            if is_complete || monotonic() - begun >= patience || interrupt.load(Ordering::Relaxed) {
                return;
            }
            self.receive(10_000_000);
        }
    }

    /// Waits for `ns` nanoseconds at most, and takes the answers that are there.
    fn receive(&mut self, ns: i64) {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: ns }));
        let (headers, token) = (self.headers(), self.token);
        let Self { batch, socket, arrivals, sent, shortest_ns, .. } = self;
        let _ = batch.receive(socket.as_fd(), |datagram| {
            let Some(answer) = PathProbeAnswer::read(datagram.payload) else { return };
            let Some(probe) = sent.get(usize::from(answer.number)) else { return };
            if answer.token != token || arrivals.len() >= MAX_ANSWERS {
                return;
            }
            let rtt = monotonic() - probe.sent_ns;
            *shortest_ns = Some(shortest_ns.map_or(rtt, |shortest| shortest.min(rtt)));
            let size = headers + u32::try_from(datagram.payload.len()).unwrap_or(0);
            arrivals.push(Arrival { answer, size, tos: datagram.tos, ttl: datagram.ttl });
        });
    }

    /// Returns the size of the headers of IP and UDP.
    fn headers(&self) -> u32 {
        if is_v6(self.server.ip()) { 48 } else { 28 }
    }

    /// Returns true if an answer of this size came back.
    fn came_back(&self, size: u32) -> bool {
        self.arrivals.iter().any(|arrival| arrival.size == size)
    }

    fn facts(&self, sizes: &[u32]) -> Option<PathFacts> {
        let seen = self.arrivals.first()?.answer.from;
        let probe_of = |arrival: &Arrival| self.sent[usize::from(arrival.answer.number)];
        let went_out: BTreeSet<u32> = self.arrivals.iter().map(|arrival| probe_of(arrival).size).collect();
        let came_back: BTreeSet<u32> =
            self.arrivals.iter().map(|arrival| probe_of(arrival).answer_size.min(arrival.size)).collect();
        let mut out = WayFacts::new(sizes, &went_out);
        let mut back = WayFacts::new(sizes, &came_back);
        for arrival in &self.arrivals {
            let tos = probe_of(arrival).tos;
            out.note(tos, arrival.answer.tos, arrival.answer.ttl);
            back.note(tos, arrival.tos, arrival.ttl);
        }
        let socket = UdpSocket::bind((self.socket.local_addr().ok()?.ip(), 0)).ok()?;
        let known_mtu = socket
            .connect(self.server)
            .ok()
            .and_then(|()| path_mtu(socket.as_fd(), self.server.is_ipv6()).ok());
        Some(PathFacts { local: self.socket.local_addr().ok()?, seen, out, back, known_mtu })
    }
}

impl WayFacts {
    /// Makes the facts about sizes: `passed` are those of `tried` that passed.
    fn new(tried: &[u32], passed: &BTreeSet<u32>) -> Self {
        let passes = tried.iter().copied().filter(|size| passed.contains(size)).max();
        let fails = tried.iter().copied().filter(|size| passes.is_none_or(|passes| *size > passes)).min();
        Self { passes, fails, ..Self::default() }
    }

    /// Notes a packet that left with `sent` and arrived with `tos` and `ttl`.
    fn note(&mut self, sent: u8, tos: Option<u8>, ttl: Option<u8>) {
        self.ttl = self.ttl.into_iter().chain(ttl).min();
        match (sent, tos) {
            (ECT0, Some(tos)) => drop(self.ecn.insert(tos & 0b11)),
            (EF, Some(tos)) => drop(self.dscp.insert(tos >> 2)),
            _ => {}
        }
    }

    /// Says in words what passes in this direction. `is_silent` says that no router reports the limit.
    fn words(&self, direction: &str, is_silent: bool) -> String {
        let mut parts = vec![match (self.passes, self.fails) {
            (Some(passes), None) => format!("packets of {passes} B pass"),
            (Some(passes), Some(fails)) => {
                let silent = if is_silent { " (and no router says so)" } else { "" };
                format!("packets of {passes} B pass, and of {fails} B do not{silent}")
            }
            (None, _) => "no size is known to pass".to_owned(),
        }];
        parts.extend(self.ttl.map(|ttl| format!("they arrive with a TTL of {ttl}")));
        parts.extend(self.changed_dscp().map(|dscp| format!("the DSCP EF becomes {dscp}")));
        match self.ecn_fate() {
            Some(Ecn::NotEct) => parts.push("the ECN field is cleared".to_owned()),
            Some(Ecn::Ce) => parts.push("every packet is marked CE".to_owned()),
            _ => {}
        }
        format!("on the way {direction} {}", parts.join(", "))
    }

    /// Makes the entry of summary.json. `is_reported` says whether a router reports the limit, if that is
    /// known.
    fn summary(&self, is_reported: Option<bool>) -> PathWaySummary {
        let names =
            |fields: &BTreeSet<u8>, name: fn(u8) -> String| fields.iter().map(|field| name(*field)).collect();
        PathWaySummary {
            passes_bytes: self.passes.map(u64::from),
            fails_bytes: self.fails.map(u64::from),
            is_reported,
            ttl: self.ttl,
            ecn: names(&self.ecn, |field| ECN_NAMES[usize::from(field & 0b11)].to_owned()),
            dscp: names(&self.dscp, |dscp| Dscp::from_byte(dscp << 2).to_string()),
        }
    }

    /// Returns what EF becomes, if it is always the same and not EF.
    fn changed_dscp(&self) -> Option<Dscp> {
        let dscp = *self.dscp.first().filter(|_| self.dscp.len() == 1)?;
        (dscp != EF >> 2).then(|| Dscp::from_byte(dscp << 2))
    }

    /// Returns what ECT(0) becomes, if it is always the same.
    fn ecn_fate(&self) -> Option<Ecn> {
        match self.ecn.first().filter(|_| self.ecn.len() == 1)? {
            0b00 => Some(Ecn::NotEct),
            0b01 => Some(Ecn::Ect1),
            0b10 => Some(Ecn::Ect0),
            _ => Some(Ecn::Ce),
        }
    }
}

impl PathFacts {
    /// Makes the entry of summary.json.
    pub(crate) fn summary(&self) -> PathSummary {
        let has_limit = self.out.fails.is_some() && self.out.passes.is_some();
        PathSummary {
            version: if is_v6(self.local.ip()) { 6 } else { 4 },
            near: plain(self.local).to_string(),
            mapped: plain(self.seen).to_string(),
            mapping: None,
            forward: self.out.summary(has_limit.then(|| self.silent_limit(&self.out).is_none())),
            // What routers report of the way back, they report to the far host.
            back: self.back.summary(None),
        }
    }

    /// Makes the note for the user. It is the same for all runs of an exploration.
    pub(crate) fn note(&self) -> String {
        let (local, seen) = (self.local.ip().to_canonical(), self.seen.ip());
        let translated = if local == seen && self.local.port() == self.seen.port() {
            format!("{local} at both ends, no translator")
        } else if local == seen {
            format!("{local} at both ends, but the port is translated")
        } else {
            format!("{local} here is {seen} there, by a translator")
        };
        let silent_limit = self.silent_limit(&self.out);
        let helps = silent_limit.map_or_else(String::new, |passes| {
            format!(
                "; what helps: \"too big\" messages of ICMP let through where packets are lost, or an MTU of {passes} B on this host"
            )
        });
        warning::note(format!(
            "path over {}: {translated}; {}; {}{helps}",
            version(local),
            self.out.words("there", silent_limit.is_some()),
            // What routers say of the way back, they say to the far host.
            self.back.words("back", false)
        ))
    }

    /// Returns the largest size that passes in the direction `way`, if larger packets are lost and no router
    /// says so: this host's kernel does not know the limit. It only learns those of the way there.
    pub(crate) fn silent_limit(&self, way: &WayFacts) -> Option<u32> {
        let (passes, fails) = (way.passes?, way.fails?);
        let is_known = self.known_mtu.is_some_and(|known| known < fails);
        (!is_known).then_some(passes)
    }

    /// Returns the size of the headers of IP and UDP on this path, bytes.
    pub(crate) fn headers(&self) -> u32 {
        if is_v6(self.local.ip()) { 48 } else { 28 }
    }
}

/// The names of the ECN field (RFC 3168 §5), by its value.
const ECN_NAMES: [&str; 4] = ["Not-ECT", "ECT(1)", "ECT(0)", "CE"];

/// Returns the address without the prefix that an IPv4 address has on a socket of both versions.
const fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(passed: &[u32]) -> WayFacts {
        WayFacts::new(&LADDER, &passed.iter().copied().collect())
    }

    fn facts(out: WayFacts, back: WayFacts, known_mtu: u32) -> PathFacts {
        PathFacts {
            local: "192.168.1.5:4000".parse().unwrap(),
            seen: "203.0.113.7:51000".parse().unwrap(),
            out,
            back,
            known_mtu: Some(known_mtu),
        }
    }

    #[test]
    fn a_limit_that_no_router_reports_is_told_from_one_that_the_kernel_has_learned() {
        let tunnel = [576, 1024, 1200, 1280, 1340, 1380, 1400, 1420];
        let facts = |known| facts(way(&tunnel), way(&LADDER), known);
        assert_eq!(facts(1500).silent_limit(&way(&tunnel)), Some(1420));
        assert_eq!(facts(1420).silent_limit(&way(&tunnel)), None);
        assert_eq!(facts(1500).silent_limit(&way(&LADDER)), None);
        let note = facts(1500).note();
        assert!(note.contains("192.168.1.5 here is 203.0.113.7 there"), "{note}");
        assert!(
            note.contains("there packets of 1420 B pass, and of 1440 B do not (and no router says so)"),
            "{note}"
        );
        assert!(note.contains("back packets of 1500 B pass; what helps: "), "{note}");
        assert!(note.ends_with("or an MTU of 1420 B on this host"), "{note}");
        assert!(!facts(1420).note().contains("what helps"), "{}", facts(1420).note());
    }

    #[test]
    fn the_summary_has_the_facts_of_both_ways() {
        let mut out = way(&[576, 1200, 1280]);
        for tos in [0b10, 0b11] {
            out.note(ECT0, Some(tos), Some(61));
        }
        out.note(EF, Some(0), Some(60));
        let summary = |known| facts(out.clone(), way(&LADDER), known).summary();
        let silent = summary(1500);
        assert_eq!((silent.version, silent.near.as_str()), (4, "192.168.1.5:4000"));
        assert_eq!(silent.mapped, "203.0.113.7:51000");
        let forward = PathWaySummary {
            passes_bytes: Some(1280),
            fails_bytes: Some(1340),
            is_reported: Some(false),
            ttl: Some(60),
            ecn: vec!["ECT(0)".to_owned(), "CE".to_owned()],
            dscp: vec!["CS0".to_owned()],
        };
        assert_eq!(silent.forward, forward);
        assert_eq!(summary(1280).forward.is_reported, Some(true));
        let back = PathWaySummary { passes_bytes: Some(1500), ..PathWaySummary::default() };
        assert_eq!(silent.back, back);
    }

    /// A size that was lost by chance below one that passed is no limit.
    #[test]
    fn the_limit_is_above_the_largest_size_that_passed() {
        let way = way(&[576, 1200, 1500]);
        assert_eq!((way.passes, way.fails), (Some(1500), None));
    }

    #[test]
    fn a_path_that_changes_every_dscp_or_ecn_field_is_named_and_a_queue_that_marks_some_is_not() {
        let words = |sent: u8, arrived: &[u8]| {
            let mut way = way(&LADDER);
            arrived.iter().for_each(|tos| way.note(sent, Some(*tos), Some(60)));
            way.words("there", false)
        };
        assert!(words(EF, &[0, 0]).ends_with("with a TTL of 60, the DSCP EF becomes CS0"));
        assert!(words(EF, &[EF]).ends_with("with a TTL of 60"));
        assert!(words(ECT0, &[0, 0]).ends_with("the ECN field is cleared"));
        assert!(words(ECT0, &[3, 3]).ends_with("every packet is marked CE"));
        assert!(words(ECT0, &[3, 2]).ends_with("with a TTL of 60"));
    }
}
