//! The keys of a flow: `[flow.NAME]`.

use crate::spec::{
    ANY_DURATION, Default, Key, Kind, Listed, MOST_FLOWS, SOME_SIZE, TableSpec, Words, key, quantity,
};
use crate::transports::TRANSPORT;
use crate::workloads::WORKLOAD;

pub(crate) static FLOW: TableSpec = TableSpec { noun: "a flow", keys: FLOW_KEYS };

const FLOW_KEYS: &[Key] = &[
    key("transport", Kind::Tagged(&TRANSPORT), Default::Required, "the transport that carries the flow"),
    key("workload", Kind::Tagged(&WORKLOAD), Default::Required, "the messages that the application sends"),
    key(
        "direction",
        Kind::Choice(&DIRECTION),
        Default::Is("\"up\""),
        "`up` sends towards the second host, `down` towards the first; `both` is a flow each way, `NAME-up` and `NAME-down`",
    ),
    key(
        "start",
        Kind::Start(ANY_DURATION),
        Default::Is("\"0 s\""),
        "the time at which the flow opens its connection: a duration, or `{ from, to }` for a random time, uniform in that range. The first message of a \
         clocked workload is due then",
    ),
    key(
        "due",
        Kind::Choice(&DUE),
        Default::Is("\"start\""),
        "the start of the clock of `voice` and `cbr`: `start` is the flow's `start`, and messages that are due before the connection is open are never sent; \
         `opening` is when the connection is open. Other workloads have no clock",
    ),
    key(
        "count",
        Kind::Count { least: 0, most: MOST_FLOWS },
        Default::Is("1"),
        "copies, called `NAME-1`, `NAME-2` and so on; 0 leaves the flow out",
    ),
    key(
        "route",
        Kind::Names(&LINKS),
        Default::Absent("the `path`'s link in the flow's direction; required with `link` tables"),
        "the links from the sender to the receiver; `{n}` in a name stands for the number of the copy",
    ),
    key(
        "return_route",
        Kind::Names(&LINKS),
        Default::Absent("the `path`'s other link; required with `link` tables"),
        "the links from the receiver to the sender, for acknowledgements and echoes",
    ),
    key(
        "second_route",
        Kind::Names(&LINKS),
        Default::Absent("one path"),
        "the links from a second address of the sender to the receiver, for a `transport` with `multipath = true`; in `emu` alone",
    ),
    key(
        "second_return_route",
        Kind::Names(&LINKS),
        Default::Absent("one path; required with `second_route`"),
        "the links from the receiver to that address",
    ),
    key(
        "send_jitter",
        quantity(ANY_DURATION),
        Default::Is("\"0 s\""),
        "the largest random delay of each packet in the sending host. It is uniform, and packets stay in order",
    ),
    key(
        "wake_up",
        quantity(ANY_DURATION),
        Default::Is("\"0 s\""),
        "the largest time that an application takes to wake up when a packet arrives. It is uniform. Real hosts take their own time",
    ),
    key(
        "clock_jitter",
        quantity(ANY_DURATION),
        Default::Is("\"0 s\""),
        "the largest delay of the sending application behind its own clock. It is uniform. Real hosts have their own delay",
    ),
    key(
        "dscp",
        Kind::Choice(&DSCP),
        Default::Is("\"default\""),
        "the DSCP of the packets in both directions, which asks routers for a treatment (RFC 2474); `\"default\"` is that of the system, or CS0 in `sim`. The queues `priority` and `drr` have classes by it",
    ),
    key("receiver", Kind::Table(&RECEIVER), Default::Is("{}"), "the receiving application and its socket"),
];

/// IPv4's time to live (RFC 791 §3.1) allows at most 255 hops.
static LINKS: Listed =
    Listed { one: "the name of a link", many: "links", example: "[\"access1\", \"wan\"]", most: 255 };

const SERVICE_PER: Words =
    Words { noun: "a unit of service", known: &["message", "read"], later: &[], why: "" };

const DUE: Words =
    Words { noun: "a beginning of the clock", known: &["start", "opening"], later: &[], why: "" };
const DIRECTION: Words = Words { noun: "a direction", known: &["up", "down", "both"], later: &[], why: "" };
/// The names of [`talkpath_model::DSCP_NAMES`].
const DSCP: Words = Words {
    noun: "a DSCP",
    known: &[
        "default", "CS0", "LE", "CS1", "AF11", "AF12", "AF13", "CS2", "AF21", "AF22", "AF23", "CS3", "AF31",
        "AF32", "AF33", "CS4", "AF41", "AF42", "AF43", "CS5", "VA", "EF", "CS6", "CS7",
    ],
    later: &[],
    why: "",
};

/// The receiving host.
pub(crate) static RECEIVER: TableSpec = TableSpec {
    noun: "a receiver",
    keys: &[
        key(
            "service",
            quantity(ANY_DURATION),
            Default::Is("\"0 s\""),
            "the time that the application works on one message before it reads the next one; `\"0 s\"` reads at once",
        ),
        key(
            "service_per",
            Kind::Choice(&SERVICE_PER),
            Default::Is("\"message\""),
            "whether each message or each read takes the `service` time. A read takes everything that a stream's socket holds",
        ),
        key(
            "socket_buffer",
            Kind::Quantity { ranges: SOME_SIZE, words: &["default"] },
            Default::Is("\"default\""),
            "the size of the receiving socket's buffer; `\"default\"` is the transport's `socket_buffer` or `rwnd`. Over QUIC only datagrams have one. Real sockets take at most 1 GiB",
        ),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dscp_is_any_that_has_a_name_or_the_systems() {
        let names = talkpath_model::DSCP_NAMES.iter().map(|(name, _)| *name);
        assert!(core::iter::once("default").chain(names).eq(DSCP.known.iter().copied()));
    }
}
