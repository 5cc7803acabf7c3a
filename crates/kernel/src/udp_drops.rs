//! Datagrams that this host's kernel dropped before anybody could read them, and why, as far as the kernel
//! reports it.
//!
//! A socket has one counter of drops (`sk_drops`: SO_RXQ_OVFL and SO_MEMINFO of socket(7) show it), which
//! Linux raises for two causes (net/ipv4/udp.c, Linux 6.18). The receive buffer, or the memory of all UDP
//! sockets together, had no room (`__udp_enqueue_schedule_skb`): the host's doing. Or the checksum was wrong,
//! which Linux finds out when somebody polls (`__first_packet_length`) or reads (`udp_recvmsg`): the path's
//! doing. Datagrams of up to 76 B with their UDP header it checks earlier (CHECKSUM_BREAK in
//! `udp4_csum_init`), without the socket's counter.
//!
//! Each cause has a counter of its own in /proc/net/snmp and snmp6, but of all sockets of the network
//! namespace. So of O drops of a run's sockets, with C checksum errors and R refusals for want of room in the
//! namespace meanwhile, at least O - C found no room, and at most R. Which of the namespace's checksum errors
//! were the run's own cannot be known.

use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};
use talkpath_measure::warning;
use talkpath_units::counted;

use crate::sys::socket_drops;

/// What Linux counted of all UDP sockets of a network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpErrors {
    /// Datagrams with a wrong checksum (InCsumErrors).
    checksum: u64,
    /// Datagrams that a socket or the memory of all sockets had no room for (RcvbufErrors, MemErrors).
    no_room: u64,
}

impl UdpErrors {
    /// Reads the counters of this thread's namespace, since the namespace was made. `None` if the kernel does
    /// not report them.
    pub fn here() -> Option<Self> {
        // The kernel counts the datagrams of IPv4 and of IPv6 in two files, even if one socket takes both. A
        // host without IPv6 does not have the second file.
        let v4 = std::fs::read_to_string("/proc/thread-self/net/snmp").ok()?;
        let v6 = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap_or_default();
        Self::read(&v4, &v6)
    }

    /// Adds the counters of another namespace.
    pub const fn and(self, other: Self) -> Self {
        Self { checksum: self.checksum + other.checksum, no_room: self.no_room + other.no_room }
    }

    /// Reads the counters from the texts of the files snmp and snmp6. In snmp a line of names precedes a line
    /// of figures. In snmp6 each figure has a line. An empty text counts as zero.
    pub fn read(v4: &str, v6: &str) -> Option<Self> {
        let mut lines = v4.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let (names, figures) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
        let of_v4 = |name: &str| {
            let place = names.split_ascii_whitespace().position(|it| it == name)?;
            figures.split_ascii_whitespace().nth(place)?.parse::<u64>().ok()
        };
        let of_v6 = |name: &str| {
            let words = v6.lines().filter_map(|line| line.split_once(char::is_whitespace));
            let figure =
                words.filter(|(it, _)| it.strip_prefix("Udp6") == Some(name)).map(|it| it.1).next()?;
            figure.trim().parse::<u64>().ok()
        };
        let both = |name: &str| match (of_v4(name), of_v6(name)) {
            (Some(v4), v6) => Some(v4.saturating_add(v6.unwrap_or(0))),
            (None, v6) => v6.filter(|_| v4.is_empty()),
        };
        Some(Self {
            checksum: both("InCsumErrors")?,
            // MemErrors is there from Linux 5.11 on.
            no_room: both("RcvbufErrors")?.saturating_add(both("MemErrors").unwrap_or(0)),
        })
    }
}

/// The datagrams that some sockets dropped between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpDrops {
    /// The drops of these sockets, for either cause. `None` if the kernel does not report them.
    pub by_sockets: Option<u64>,
    /// The datagrams with a wrong checksum at all sockets of the namespace. `None` if the kernel does not
    /// report them.
    pub checksum_errors: Option<u64>,
    /// The datagrams that found no room at all sockets of the namespace. `None` if the kernel does not report
    /// them.
    pub room_errors: Option<u64>,
}

impl UdpDrops {
    /// Joins the count of the sockets, which dropped `by_sockets` datagrams, with the `errors` of their
    /// namespace.
    pub fn new(by_sockets: Option<u64>, errors: Option<UdpErrors>) -> Self {
        let (checksum_errors, room_errors) = (errors.map(|it| it.checksum), errors.map(|it| it.no_room));
        Self { by_sockets, checksum_errors, room_errors }
    }

    /// The drops of a run without UDP: none.
    pub const fn none() -> Self {
        Self { by_sockets: Some(0), checksum_errors: Some(0), room_errors: Some(0) }
    }

    /// The least number of these sockets' datagrams that found no room; `None` if the kernel does not report
    /// it.
    pub fn min_without_room(&self) -> Option<u64> {
        Some(self.by_sockets?.saturating_sub(self.checksum_errors.unwrap_or(0)))
    }

    /// The number of further datagrams that may have found no room: their causes cannot be known.
    fn unclear(&self) -> u64 {
        let (all, min) = (self.by_sockets.unwrap_or(0), self.min_without_room().unwrap_or(0));
        self.room_errors.map_or(all, |errors| errors.min(all)).saturating_sub(min)
    }

    /// The warnings about the drops of `place`. Datagrams without room make the run invalid.
    pub fn warnings(&self, place: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let min = self.min_without_room().unwrap_or(0);
        if min > 0 {
            let bound = if self.checksum_errors.unwrap_or(0) > 0 { "at least " } else { "" };
            lines.push(warning::invalid(format!(
                "{place}: {bound}{} found no room in the receiving socket, which is no loss of the path",
                counted(min, "datagram")
            )));
        }
        if let Some(errors @ 1..) = self.checksum_errors {
            let unclear = match self.unclear() {
                0 => String::new(),
                more => format!(
                    "; up to {more} of the run's may instead have found no room in the receiving socket"
                ),
            };
            lines.push(format!(
                "{place}: {} had a wrong checksum, of all that its sockets got: the path did the damage, and the run's own \
                 count as missing{unclear}",
                counted(errors, "UDP datagram")
            ));
        }
        lines
    }
}

/// Counts the datagrams that some sockets drop, from a moment on.
pub struct DropCount {
    errors: Option<UdpErrors>,
    by_sockets: Option<Vec<u32>>,
}

impl DropCount {
    /// Starts to count the drops of `sockets`, which are in this thread's namespace.
    pub fn start<'a>(sockets: impl Iterator<Item = BorrowedFd<'a>>) -> Self {
        // The namespace's counters are read before the sockets' counters here, and after them at the end. So
        // they contain every drop that the sockets' counters contain.
        let errors = UdpErrors::here();
        Self { errors, by_sockets: drops_of(sockets) }
    }

    /// Ends the count for the same `sockets`.
    pub fn finish<'a>(&self, sockets: impl Iterator<Item = BorrowedFd<'a>>) -> UdpDrops {
        let by_sockets = drops_of(sockets).zip(self.by_sockets.as_ref()).map(|(after, before)| {
            // A socket's counter has 32 bits and wraps around.
            after.iter().zip(before).map(|(after, before)| u64::from(after.wrapping_sub(*before))).sum()
        });
        let errors = UdpErrors::here().zip(self.errors).map(|(after, before)| UdpErrors {
            checksum: after.checksum.saturating_sub(before.checksum),
            no_room: after.no_room.saturating_sub(before.no_room),
        });
        UdpDrops::new(by_sockets, errors)
    }
}

/// Reads the number of drops of each socket since it was opened. `None` if the kernel does not report it.
pub fn drops_of<'a>(sockets: impl Iterator<Item = BorrowedFd<'a>>) -> Option<Vec<u32>> {
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
        assert_eq!(UdpErrors::read(SNMP, SNMP6), Some(UdpErrors { checksum: 11, no_room: 6 }));
        assert_eq!(UdpErrors::read(SNMP, ""), Some(UdpErrors { checksum: 7, no_room: 5 }));
        let without_mem_errors = SNMP.replace(" MemErrors", "");
        let errors = UdpErrors::read(&without_mem_errors, "").unwrap();
        assert_eq!(errors.no_room, 3, "older than Linux 5.11");
        assert_eq!(UdpErrors::read("", SNMP6), Some(UdpErrors { checksum: 4, no_room: 1 }));
        assert_eq!(UdpErrors::read("", ""), None);
        for text in ["Ip: 1\n", "Udp: InErrors\nUdp: 3\n", "Udp: InCsumErrors RcvbufErrors\nUdp: x 3\n"] {
            assert_eq!(UdpErrors::read(text, SNMP6), None, "{text}");
        }
        assert!(UdpErrors::here().is_some(), "this kernel tells");
    }

    #[test]
    fn a_wrong_checksum_is_no_want_of_room() {
        let damaged = drops(96, 96, 0);
        assert_eq!(damaged.min_without_room(), Some(0));
        let lines = damaged.warnings("the far host");
        assert!(lines.len() == 1 && lines[0].contains("96 UDP datagrams had a wrong checksum"), "{lines:?}");
        assert!(lines[0].starts_with("the far host: ") && !lines[0].contains("no room"), "{lines:?}");
        // Those of other sockets, or too short to reach the socket's counter.
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
        // Without the namespace's word all that a socket dropped counts as the host's doing.
        let untold = UdpDrops::new(Some(3), None);
        assert_eq!((untold.min_without_room(), untold.warnings("this host").len()), (Some(3), 1));
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
