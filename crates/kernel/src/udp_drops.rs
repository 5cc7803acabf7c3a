//! Datagrams that this host's kernel dropped before a program could read them, and the cause of the drops.
//!
//! | cause | whose fault it is | counters |
//! | --- | --- | --- |
//! | no room in the receive buffer, or in the memory of all UDP sockets | this host | socket, namespace |
//! | wrong checksum of a datagram of more than 76 B | the path | socket, namespace |
//! | wrong checksum of a shorter datagram | the path | namespace |
//!
//! The counter of a socket (`sk_drops`; SO_RXQ_OVFL and SO_MEMINFO of socket(7) show it) does not tell the
//! causes apart. The counters of the network namespace do (/proc/net/snmp and snmp6), but they count all
//! sockets of the namespace. So only bounds are known. Let the sockets of a run have S drops, and let the
//! namespace have C checksum errors and R drops for lack of room in the same time. Then at least S - C and at
//! most R datagrams of the run found no room.
//!
//! Source: net/ipv4/udp.c of Linux 6.18. `__udp_enqueue_schedule_skb` drops for lack of room. Linux checks
//! the checksum of a long datagram when somebody polls (`__first_packet_length`) or reads (`udp_recvmsg`),
//! and that of a datagram of up to 76 B with its UDP header earlier (CHECKSUM_BREAK in `udp4_csum_init`).

use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};
use talkpath_measure::warning;
use talkpath_units::counted;

use crate::sys::socket_drops;

/// The errors of all UDP sockets of a network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpErrors {
    /// The number of datagrams with a wrong checksum (InCsumErrors).
    checksum: u64,
    /// The number of datagrams for which a socket, or the memory of all sockets, had no room (RcvbufErrors,
    /// MemErrors).
    no_room: u64,
}

impl UdpErrors {
    /// Reads the counters of this thread's namespace, which count from the beginning of the namespace.
    /// Returns `None` if the kernel does not report them.
    pub fn here() -> Option<Self> {
        // The kernel counts the datagrams of IPv4 and of IPv6 in two files, even if one socket takes both. A
        // host without IPv6 does not have the second file.
        let snmp = std::fs::read_to_string("/proc/thread-self/net/snmp").ok()?;
        let snmp6 = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap_or_default();
        Self::parse(&snmp, &snmp6)
    }

    /// Adds the counters of another namespace.
    pub const fn plus(self, other: Self) -> Self {
        Self { checksum: self.checksum + other.checksum, no_room: self.no_room + other.no_room }
    }

    /// Parses the texts of the files snmp and snmp6. An empty text counts as zero.
    pub fn parse(snmp: &str, snmp6: &str) -> Option<Self> {
        let count = |name: &str| match (snmp_counter(snmp, name), snmp6_counter(snmp6, name)) {
            (Some(v4), v6) => Some(v4.saturating_add(v6.unwrap_or(0))),
            (None, v6) if snmp.is_empty() => v6,
            (None, _) => None,
        };
        Some(Self {
            checksum: count("InCsumErrors")?,
            // Linux has MemErrors since 5.11.
            no_room: count("RcvbufErrors")?.saturating_add(count("MemErrors").unwrap_or(0)),
        })
    }
}

/// Finds a counter in the file snmp. A line with the names precedes a line with the values.
fn snmp_counter(snmp: &str, name: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let index = names.split_ascii_whitespace().position(|other| other == name)?;
    values.split_ascii_whitespace().nth(index)?.parse().ok()
}

/// Finds a counter in the file snmp6. Each counter has a line.
fn snmp6_counter(snmp6: &str, name: &str) -> Option<u64> {
    let mut lines = snmp6.lines().filter_map(|line| line.split_once(char::is_whitespace));
    let (_, value) = lines.find(|(other, _)| other.strip_prefix("Udp6") == Some(name))?;
    value.trim().parse().ok()
}

/// The datagrams that some sockets dropped between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpDrops {
    /// The number of datagrams that these sockets dropped, for either cause. `None` if the kernel does not
    /// report it.
    pub by_sockets: Option<u64>,
    /// The number of datagrams with a wrong checksum at all sockets of the namespace. `None` if the kernel
    /// does not report it.
    pub checksum_errors: Option<u64>,
    /// The number of datagrams that found no room at all sockets of the namespace. `None` if the kernel does
    /// not report it.
    pub room_errors: Option<u64>,
}

impl UdpDrops {
    /// Joins the count of the sockets, which dropped `by_sockets` datagrams, with the `errors` of their
    /// namespace.
    pub fn new(by_sockets: Option<u64>, errors: Option<UdpErrors>) -> Self {
        Self {
            by_sockets,
            checksum_errors: errors.map(|errors| errors.checksum),
            room_errors: errors.map(|errors| errors.no_room),
        }
    }

    /// Makes the drops of a run without UDP, which are none.
    pub const fn none() -> Self {
        Self { by_sockets: Some(0), checksum_errors: Some(0), room_errors: Some(0) }
    }

    /// Returns the least number of these sockets' datagrams that found no room. Returns `None` if the kernel
    /// does not report it.
    pub fn min_without_room(&self) -> Option<u64> {
        Some(self.by_sockets?.saturating_sub(self.checksum_errors.unwrap_or(0)))
    }

    /// Returns the number of further datagrams that may have found no room. Their causes cannot be known.
    fn unclear(&self) -> u64 {
        let dropped = self.by_sockets.unwrap_or(0);
        let max_without_room = self.room_errors.map_or(dropped, |errors| errors.min(dropped));
        max_without_room.saturating_sub(self.min_without_room().unwrap_or(0))
    }

    /// Makes the warnings about the drops at `place`. Datagrams that found no room make the run invalid.
    pub fn warnings(&self, place: &str) -> Vec<String> {
        let mut warnings = Vec::new();
        let min = self.min_without_room().unwrap_or(0);
        if min > 0 {
            let bound = if self.checksum_errors.unwrap_or(0) > 0 { "at least " } else { "" };
            warnings.push(warning::invalid(format!(
                "{place}: {bound}{} found no room in the receiving socket, which is no loss of the path",
                counted(min, "datagram")
            )));
        }
        if let Some(errors @ 1..) = self.checksum_errors {
            let unclear = match self.unclear() {
                0 => String::new(),
                unclear => format!(
                    "; up to {unclear} of the run's may instead have found no room in the receiving socket"
                ),
            };
            warnings.push(format!(
                "{place}: {} had a wrong checksum, of all that its sockets got: the path did the damage, and the run's own \
                 count as missing{unclear}",
                counted(errors, "UDP datagram")
            ));
        }
        warnings
    }
}

/// Counts the datagrams that some sockets drop from now on.
pub struct DropCount {
    /// The errors of the namespace at the beginning.
    errors: Option<UdpErrors>,
    /// The counter of each socket at the beginning.
    by_sockets: Option<Vec<u32>>,
}

impl DropCount {
    /// Starts to count the drops of `sockets`, which are in this thread's namespace.
    pub fn start<'a>(sockets: impl Iterator<Item = BorrowedFd<'a>>) -> Self {
        // The namespace's counters are read before the sockets' counters here, and after them at the end. So
        // they contain each drop that the sockets' counters contain.
        let errors = UdpErrors::here();
        Self { errors, by_sockets: socket_drop_counters(sockets) }
    }

    /// Ends the count for the same `sockets`.
    pub fn finish<'a>(&self, sockets: impl Iterator<Item = BorrowedFd<'a>>) -> UdpDrops {
        let by_sockets = match (&self.by_sockets, socket_drop_counters(sockets)) {
            (Some(before), Some(after)) => Some(growth(before, &after)),
            _ => None,
        };
        let errors = match (self.errors, UdpErrors::here()) {
            (Some(before), Some(after)) => Some(UdpErrors {
                checksum: after.checksum.saturating_sub(before.checksum),
                no_room: after.no_room.saturating_sub(before.no_room),
            }),
            _ => None,
        };
        UdpDrops::new(by_sockets, errors)
    }
}

/// Returns the sum by which the sockets' counters have grown. A counter has 32 bits and wraps around.
fn growth(before: &[u32], after: &[u32]) -> u64 {
    before.iter().zip(after).map(|(before, after)| u64::from(after.wrapping_sub(*before))).sum()
}

/// Reads the number of drops of each socket since it was opened. Returns `None` if the kernel does not report
/// it.
fn socket_drop_counters<'a>(sockets: impl Iterator<Item = BorrowedFd<'a>>) -> Option<Vec<u32>> {
    sockets.map(|socket| socket_drops(socket).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    const SNMP: &str = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
        Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\n\
        Udp: 629 0 12 631 3 0 7 0 2\n\
        UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors\n\
        UdpLite: 1 1 1 1 1 1 1\n";
    const SNMP6: &str = "Ip6InReceives                   \t5\nUdp6InErrors                    \t9\n\
        Udp6RcvbufErrors                \t1\nUdp6InCsumErrors                \t4\nUdpLite6InCsumErrors            \t8\n";

    fn drops(by_sockets: u64, checksum: u64, no_room: u64) -> UdpDrops {
        UdpDrops::new(Some(by_sockets), Some(UdpErrors { checksum, no_room }))
    }

    #[test]
    fn the_kernels_counters_are_found_by_their_names_for_both_versions_of_ip() {
        assert_eq!(UdpErrors::parse(SNMP, SNMP6), Some(UdpErrors { checksum: 11, no_room: 6 }));
        assert_eq!(UdpErrors::parse(SNMP, ""), Some(UdpErrors { checksum: 7, no_room: 5 }));
        let without_mem_errors = SNMP.replace(" MemErrors", "");
        let errors = UdpErrors::parse(&without_mem_errors, "").unwrap();
        assert_eq!(errors.no_room, 3, "older than Linux 5.11");
        assert_eq!(UdpErrors::parse("", SNMP6), Some(UdpErrors { checksum: 4, no_room: 1 }));
        assert_eq!(UdpErrors::parse("", ""), None);
        for text in ["Ip: 1\n", "Udp: InErrors\nUdp: 3\n", "Udp: InCsumErrors RcvbufErrors\nUdp: x 3\n"] {
            assert_eq!(UdpErrors::parse(text, SNMP6), None, "{text}");
        }
        assert!(UdpErrors::here().is_some(), "this kernel reports the counters");
    }

    #[test]
    fn a_wrong_checksum_does_not_count_as_lack_of_room() {
        let damaged = drops(96, 96, 0);
        assert_eq!(damaged.min_without_room(), Some(0));
        let lines = damaged.warnings("the far host");
        assert!(lines.len() == 1 && lines[0].contains("96 UDP datagrams had a wrong checksum"), "{lines:?}");
        assert!(lines[0].starts_with("the far host: ") && !lines[0].contains("no room"), "{lines:?}");
        // The errors belong to other sockets, or to datagrams that are too short for the socket's counter.
        assert_eq!(drops(0, 5, 0).min_without_room(), Some(0));
        assert_eq!(drops(0, 5, 0).warnings("this host").len(), 1);
        assert_eq!(drops(0, 0, 0).warnings("this host"), Vec::<String>::new());
    }

    #[test]
    fn of_drops_and_checksum_errors_the_difference_at_least_found_no_room() {
        let full = drops(4, 0, 4).warnings("this host");
        assert_eq!(
            full,
            [
                "invalid: this host: 4 datagrams found no room in the receiving socket, which is no loss of the path"
            ]
        );
        assert!(drops(1, 0, 1).warnings("this host")[0].contains(": 1 datagram found no room"));
        let mixed = drops(10, 4, 8);
        assert_eq!(mixed.min_without_room(), Some(6));
        let lines = mixed.warnings("this host");
        assert!(lines[0].contains("at least 6 datagrams found no room"), "{lines:?}");
        assert!(
            lines[1].contains("4 UDP datagrams") && lines[1].contains("up to 2 of the run's may"),
            "{lines:?}"
        );
        // Without the counters of the namespace, each drop of a socket counts as lack of room.
        let without_namespace = UdpDrops::new(Some(3), None);
        assert_eq!(
            (without_namespace.min_without_room(), without_namespace.warnings("this host").len()),
            (Some(3), 1)
        );
        assert_eq!(UdpDrops::new(None, None).min_without_room(), None);
    }

    #[test]
    fn a_socket_without_room_counts_what_it_drops_also_where_nothing_comes_after() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&receiver, 1).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let count = DropCount::start([receiver.as_fd()].into_iter());
        for _ in 0..50 {
            sender.send(&[0; 1000]).unwrap();
        }
        let drops = count.finish([receiver.as_fd()].into_iter());
        receiver.set_nonblocking(true).unwrap();
        let mut kept = 0;
        while receiver.recv(&mut [0; 1000]).is_ok() {
            kept += 1;
        }
        assert!(kept < 50, "the buffer is small");
        assert_eq!(drops.by_sockets, Some(50 - kept));
        assert!(drops.room_errors.unwrap() >= 50 - kept, "{drops:?}");
    }
}
