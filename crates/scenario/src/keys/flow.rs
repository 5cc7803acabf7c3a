//! The keys of a flow: `[flow.NAME]`.

use crate::spec::{
    ANY_DURATION, Default, Key, Kind, Listed, MOST_FLOWS, SOME_SIZE, TableSpec, Words, key, quantity,
};
use crate::transports::TRANSPORT;
use crate::workloads::WORKLOAD;

/// A flow.
pub(crate) static FLOW: TableSpec = TableSpec { noun: "a flow", keys: FLOW_KEYS };

const FLOW_KEYS: &[Key] = &[
    key("transport", Kind::Tagged(&TRANSPORT), Default::Required, "which protocol carries it"),
    key("workload", Kind::Tagged(&WORKLOAD), Default::Required, "what the application sends, and when"),
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
        "when the connection is asked for: a duration, or `{ from, to }` for a moment drawn uniformly from that range. A clock's first message is \
         due then",
    ),
    key(
        "due",
        Kind::Choice(&DUE),
        Default::Is("\"start\""),
        "when the clock of voice and cbr starts: `start` at the flow's `start`, and what is due before the connection is open is lost; `opening` \
         when the connection is open. Other workloads have no clock",
    ),
    key(
        "count",
        Kind::Count { least: 1, most: MOST_FLOWS },
        Default::Is("1"),
        "copies, called `NAME-1`, `NAME-2` and so on",
    ),
    key(
        "route",
        Kind::Names(&LINKS),
        Default::Absent("the `path`'s link in the flow's direction; required with `link` tables"),
        "links from the sender to the receiver; `{n}` in a name is the copy's number",
    ),
    key(
        "return_route",
        Kind::Names(&LINKS),
        Default::Absent("the `path`'s other link; required with `link` tables"),
        "links back, for acknowledgements and echoes",
    ),
    key(
        "second_route",
        Kind::Names(&LINKS),
        Default::Absent("one path"),
        "links from the second address of the sender's host to the receiver, for a `transport` with `multipath = true`; in `emu` alone",
    ),
    key(
        "second_return_route",
        Kind::Names(&LINKS),
        Default::Absent("one path; required with `second_route`"),
        "links back to that address",
    ),
    key(
        "send_jitter",
        quantity(ANY_DURATION),
        Default::Is("\"0 s\""),
        "a delay in the sending host before each packet, uniform from 0 to this; packets stay in order",
    ),
    key(
        "wake_up",
        quantity(ANY_DURATION),
        Default::Is("\"0 s\""),
        "how long an application still sleeps after something came, uniform from 0 to this; real hosts take their own time",
    ),
    key(
        "clock_jitter",
        quantity(ANY_DURATION),
        Default::Is("\"0 s\""),
        "how late the sender's application is to its own clock, uniform from 0 to this; real hosts have their own lateness",
    ),
    key(
        "dscp",
        Kind::Choice(&DSCP),
        Default::Is("\"default\""),
        "which treatment its packets ask of routers, both ways (RFC 2474); `\"default\"` is the system's. Links treat all packets alike",
    ),
    key("receiver", Kind::Table(&RECEIVER), Default::Is("{}"), "how the receiving application reads"),
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
            "time to work through one message before the next read; `\"0 s\"` reads at once",
        ),
        key(
            "service_per",
            Kind::Choice(&SERVICE_PER),
            Default::Is("\"message\""),
            "what takes the `service` time: each message, or each read. A read takes all that a stream's socket holds",
        ),
        key(
            "socket_buffer",
            Kind::Quantity { ranges: SOME_SIZE, words: &["default"] },
            Default::Is("\"default\""),
            "room of the receiving socket; `\"default\"` is the transport's `socket_buffer` or `rwnd`. Over QUIC only datagrams have one. Real sockets take at most 1 GiB",
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
