//! UDP in a scenario: its keys, the configuration that they make, and the messages that a datagram can hold.

use talkpath_config::{Stack, UdpConfig};
use talkpath_units::Bytes;

use super::fit::{Fit, SMALL_HEAD, flood};
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::{Default, Kind, SOME_SIZE, Variant, Words, key, quantity};

pub(super) const UDP: Variant = Variant {
    name: "udp",
    doc: "UDP (RFC 768)",
    keys: &[
        key(
            "stack",
            Kind::Choice(&UDP_STACK),
            Default::Is("\"linux\""),
            "what a receiving socket counts. `linux` charges each datagram its memory there (832 to 2304 B up to Ethernet's size) against twice \
             `socket_buffer`; `rfc` charges the payload. A real kernel has its own rule",
        ),
        key(
            "socket_buffer",
            quantity(SOME_SIZE),
            Default::Is("\"106496 B\""),
            "size given to the receiving socket (SO_RCVBUF); twice this is Linux's `net.core.rmem_default`",
        ),
        key(
            "small_head",
            Kind::Quantity { ranges: SMALL_HEAD, words: &["none"] },
            Default::Is("\"576 B\""),
            "memory that `linux` charges for a small datagram, besides 256 B for its sk_buff; `none` charges the next power of two, as \
             kernels before 6.3 do. Kernels with wireless networks or tunnels have 640 B, or 704 B since 6.14",
        ),
        key(
            "ecn",
            Kind::Flag,
            Default::Is("false"),
            "whether datagrams leave ECN-capable (ECT(0), RFC 3168 §5), so that a queue can mark them instead of dropping them. \
             Nothing answers a mark",
        ),
    ],
};

const UDP_STACK: Words =
    Words { noun: "a stack", known: &[Stack::Linux.name(), Stack::Rfc.name()], later: &[], why: "" };

/// Makes the configuration from the keys in `section`.
pub(super) fn resolve(section: &Section<'_>) -> Option<UdpConfig> {
    Some(UdpConfig {
        stack: Stack::named(section.choice("stack")?)?,
        socket_buffer: section.bytes("socket_buffer")?,
        small_head: section.bytes_or_word("small_head")?,
        ecn: section.flag("ecn")?,
    })
}

/// Returns the largest message that no router fragments on a path with this MTU.
pub(super) fn largest_message(mtu: Bytes) -> Bytes {
    mtu.saturating_sub(UDP_HEADERS)
}

/// Reports a workload that UDP cannot carry.
pub(super) fn fit(config: &UdpConfig, fit: &Fit<'_, '_>, log: &mut Log) {
    if let Some(problem) = flood(fit.demand, "`udp`") {
        let help = "nothing would hold it back: use `cbr` with a rate, or bursts with a `gap`";
        fit.flow.problem("workload", problem.with_help(help), log);
    }
    let room = fit.room.unwrap_or(config.socket_buffer);
    let size = fit.demand.largest_message();
    if let Some(size) = size.filter(|size| *size > LARGEST_DATAGRAM) {
        let message = format!(
            "found messages of {size}, expected at most {LARGEST_DATAGRAM}, which a UDP datagram can hold"
        );
        fit.flow.problem("workload", message, log);
    } else if let Some(size) = size.filter(|size| *size > room && config.stack != Stack::Linux) {
        // An empty socket of Linux takes a datagram of any size.
        fit.report_no_room(size, room, log);
    }
}

/// The largest IPv4 packet less the IPv4 and UDP headers (RFC 791 §3.1, RFC 768).
pub(super) const LARGEST_DATAGRAM: Bytes = Bytes::new(65_535 - 20 - 8);

/// IPv4 and UDP headers (RFC 791 §3.1, RFC 768).
const UDP_HEADERS: Bytes = Bytes::new(20 + 8);
