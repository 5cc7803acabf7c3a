//! How long a translator or a firewall on the path keeps the mapping of a UDP flow to which this host sends
//! nothing (RFC 4787 §4.3, the mapping refresh timer).
//!
//! ```text
//!   this host                                            far host
//!   a socket for each pause: a probe, "answer at once and after 30 s"  ──►
//!   ◄──────────────────────────────────────────────────  the answer at once: the probe came
//!      this host sends nothing over this socket
//!   ◄──────────────────────────────────────────────────  the answer after 30 s: the mapping is still there
//! ```
//!
//! All pauses run at the same time, beside the flows of the run, from before its beginning. So a run shows
//! pauses up to its own length. Each socket sends its probe at most [`ROUNDS`] times, until an answer comes:
//! 6 kB in all. An answer of the far host may refresh a mapping, too (RFC 4787 REQ-6 allows it), so that
//! nothing comes between the two.
//!
//! Left out: pauses between those of [`PAUSES_S`]; mappings of TCP.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_kernel::clock::monotonic;
use talkpath_kernel::path_probe::{MIN_PROBE, PathProbe, PathProbeAnswer, Second};
use talkpath_kernel::wire::Secret;
use talkpath_measure::summary::MappingSummary;
use talkpath_measure::warning;

/// The pauses that are tried, s. They are around the usual timers: 30 s and 120 s of Linux
/// (nf_conntrack_udp_timeout, nf_conntrack_udp_timeout_stream), and the least of 120 s and the recommended
/// 300 s of RFC 4787 REQ-5. We chose those between.
const PAUSES_S: [u16; 12] = [5, 10, 20, 35, 50, 65, 95, 125, 185, 305, 605, 1805];
/// The size of a probe, B. It is three times that of an answer, because the far host sends no more than it
/// gets, with the headers of both answers.
const PROBE: usize = 3 * MIN_PROBE;
/// How often a probe is sent until its first answer comes. We chose 3 and 0.4 s, so that the beginning of a
/// run waits for 1.2 s at most.
const ROUNDS: usize = 3;
const ROUND_NS: i64 = 400_000_000;
/// An answer may be this late, beyond its pause, before it counts as missing, ns. We chose 2 s: the far host
/// looks 50 times a second, and a round trip is shorter.
const PATIENCE_NS: i64 = 2_000_000_000;

/// The probes that wait for their answers.
#[derive(Debug)]
pub(crate) struct MappingProbes(Vec<MappingProbe>);

#[derive(Debug)]
struct MappingProbe {
    socket: UdpSocket,
    token: u32,
    pause_s: u16,
    /// When the probe was sent whose answer came first, ns of CLOCK_MONOTONIC.
    sent_ns: i64,
    /// Whether the far host has the probe, and will answer a second time.
    has_come: AtomicBool,
    /// Whether the answer after the pause came.
    has_lasted: AtomicBool,
}

/// How long a mapping lasts without packets from this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MappingLifetime {
    /// The longest pause, s, after which an answer came.
    pub(crate) lasts_s: Option<u64>,
    /// The shortest longer pause, s, after which none came.
    pub(crate) is_gone_s: Option<u64>,
}

impl MappingProbes {
    /// Sends a probe for each pause that is at most `longest_s`, to the flow with this secret and token.
    pub(crate) fn begin(
        local: SocketAddr,
        server: SocketAddr,
        secret: Secret,
        token: u32,
        longest_s: u64,
    ) -> io::Result<Self> {
        let mut probes = Vec::new();
        for pause_s in PAUSES_S.into_iter().filter(|pause_s| u64::from(*pause_s) <= longest_s) {
            let socket = UdpSocket::bind((local.ip(), 0))?;
            socket.connect(server)?;
            socket.set_nonblocking(true)?;
            probes.push(MappingProbe {
                socket,
                token,
                pause_s,
                sent_ns: 0,
                has_come: AtomicBool::new(false),
                has_lasted: AtomicBool::new(false),
            });
        }
        let mut probes = Self(probes);
        for _ in 0..ROUNDS {
            let begun = monotonic();
            for probe in probes.0.iter_mut().filter(|probe| !probe.has_come()) {
                probe.send(secret);
            }
            while probes.0.iter().any(|probe| !probe.has_come()) && monotonic() - begun < ROUND_NS {
                probes.receive(20_000_000);
            }
        }
        Ok(probes)
    }

    /// Takes the answers that came until now.
    pub(crate) fn finish(&self) -> MappingLifetime {
        self.receive(0);
        lifetime(&self.0, monotonic())
    }

    /// Waits for `ns` nanoseconds at most until an answer comes, and takes all that came.
    fn receive(&self, ns: i64) {
        let mut fds: Vec<PollFd<'_>> = self
            .0
            .iter()
            .map(|probe| PollFd::from_borrowed_fd(probe.socket.as_fd(), PollFlags::IN))
            .collect();
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: ns }));
        self.0.iter().for_each(MappingProbe::receive);
    }
}

impl MappingProbe {
    fn send(&mut self, secret: Secret) {
        let probe = PathProbe {
            secret,
            number: self.pause_s,
            answer_size: MIN_PROBE as u16,
            answer_tos: 0,
            again_after_s: self.pause_s,
        };
        self.sent_ns = monotonic();
        // A probe that this host cannot send has no answer.
        let _ = self.socket.send(&probe.write(PROBE));
    }

    fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Relaxed)
    }

    fn has_lasted(&self) -> bool {
        self.has_lasted.load(Ordering::Relaxed)
    }

    fn receive(&self) {
        let mut packet = [0; 2 * MIN_PROBE];
        while let Ok(size) = self.socket.recv(&mut packet) {
            let answer = PathProbeAnswer::read(&packet[..size]);
            let is_ours =
                |answer: &PathProbeAnswer| answer.token == self.token && answer.number == self.pause_s;
            if let Some(answer) = answer.filter(is_ours) {
                self.has_come.fetch_or(answer.second != Second::None, Ordering::Relaxed);
                self.has_lasted.fetch_or(answer.second == Second::This, Ordering::Relaxed);
            }
        }
    }
}

/// Finds the lifetime in what came until `now_ns`. A probe that the far host did not get, or whose pause is
/// not over, shows nothing. Neither does a pause without an answer below a longer one with an answer: that
/// answer was lost.
fn lifetime(probes: &[MappingProbe], now_ns: i64) -> MappingLifetime {
    let lasts_s =
        probes.iter().filter(|probe| probe.has_lasted()).map(|probe| u64::from(probe.pause_s)).max();
    let is_over = |probe: &&MappingProbe| {
        now_ns - probe.sent_ns >= i64::from(probe.pause_s) * 1_000_000_000 + PATIENCE_NS
    };
    let missing = probes.iter().filter(|probe| probe.has_come() && !probe.has_lasted()).filter(is_over);
    let is_gone_s =
        missing.map(|probe| u64::from(probe.pause_s)).filter(|pause_s| Some(*pause_s) > lasts_s).min();
    MappingLifetime { lasts_s, is_gone_s }
}

impl MappingLifetime {
    /// Makes the entry of summary.json.
    pub(crate) fn summary(self) -> MappingSummary {
        let Self { lasts_s, is_gone_s } = self;
        MappingSummary { lasts_s, is_gone_s }
    }

    /// Makes the note for the user, if anything was found.
    pub(crate) fn note(self) -> Option<String> {
        let words = self.words();
        (!words.is_empty()).then(|| warning::note(format!("path over UDP: {words}")))
    }

    fn words(self) -> String {
        match (self.lasts_s, self.is_gone_s) {
            (Some(lasts), Some(gone)) => {
                format!("a mapping without packets from here lasts {lasts} s, and is gone after {gone} s")
            }
            (Some(lasts), None) => format!(
                "a mapping without packets from here lasts {lasts} s or longer: the run was too short for longer pauses"
            ),
            (None, Some(gone)) => {
                format!("a mapping without packets from here is gone after {gone} s or less")
            }
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probes that were sent at 0, with what came of them.
    fn probes(came: &[(u16, bool, bool)]) -> Vec<MappingProbe> {
        let probe = |&(pause_s, has_come, has_lasted): &(u16, bool, bool)| MappingProbe {
            socket: UdpSocket::bind("127.0.0.1:0").unwrap(),
            token: 1,
            pause_s,
            sent_ns: 0,
            has_come: AtomicBool::new(has_come),
            has_lasted: AtomicBool::new(has_lasted),
        };
        came.iter().map(probe).collect()
    }

    #[test]
    fn a_mapping_lasts_as_long_as_the_longest_pause_with_an_answer() {
        let came =
            [(5, true, true), (10, true, false), (20, true, true), (35, true, false), (50, true, false)];
        let at = |seconds: i64| lifetime(&probes(&came), seconds * 1_000_000_000);
        let found = |lasts_s, is_gone_s| MappingLifetime { lasts_s, is_gone_s };
        assert_eq!(at(60), found(Some(20), Some(35)), "the answer after 10 s was lost");
        assert_eq!(at(30), found(Some(20), None), "35 s are not over");
        let none = [(5, true, false), (10, false, false)];
        assert_eq!(lifetime(&probes(&none), 60_000_000_000), found(None, Some(5)));
        assert_eq!(lifetime(&probes(&[(5, false, false)]), 60_000_000_000), found(None, None));
    }

    #[test]
    fn what_was_found_is_said_with_its_bounds() {
        let words = |lasts_s, is_gone_s| MappingLifetime { lasts_s, is_gone_s }.words();
        assert!(words(Some(20), Some(35)).ends_with("lasts 20 s, and is gone after 35 s"));
        assert!(words(Some(20), None).contains("lasts 20 s or longer: the run was too short"));
        assert!(words(None, Some(5)).ends_with("is gone after 5 s or less"));
        assert_eq!(words(None, None), "");
    }
}
