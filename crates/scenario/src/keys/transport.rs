//! The keys of a transport.

use super::flow::BUFFER;
use super::{
    ANY_DURATION, Default, Dimension, Key, Kind, LARGEST_SIZE, Measure, Tagged, Variant, Words, key, measure,
    quantity,
};

/// A transport.
pub(crate) static TRANSPORT: Tagged = Tagged {
    noun: "a transport",
    variants: &[
        Variant {
            name: "udp",
            doc: "UDP (RFC 768)",
            keys: &[key(
                "socket_buffer",
                quantity(BUFFER),
                Default::Is("\"212992 B\""),
                "room of the receiving socket, in payload bytes; Linux's `net.core.rmem_default`",
            )],
        },
        Variant { name: "tcp", doc: "TCP (RFC 9293) with Nagle's algorithm", keys: TCP_KEYS },
        Variant {
            name: "tcp-nodelay",
            doc: "TCP with TCP_NODELAY: small segments leave at once",
            keys: TCP_KEYS,
        },
    ],
    later: &["dccp-ccid2", "dccp-ccid3", "dccp-ccid4", "quic-datagram", "quic-stream", "sctp", "webrtc"],
    number: None,
};

const BY_STACK: Default = Default::Follows("`stack`");

const TCP_KEYS: &[Key] = &[
    key(
        "stack",
        Kind::Choice(&STACK),
        Default::Is("\"linux\""),
        "whose TCP the defaults of the other keys follow",
    ),
    key(
        "cc",
        Kind::Choice(&CC),
        Default::Is("\"default\""),
        "congestion control; `default` is the stack's (`linux`: cubic, `rfc`: newreno, `bsd-reno`: reno), or the nearest that \
         the arena has",
    ),
    key(
        "nagle",
        Kind::Choice(&NAGLE),
        Default::Follows("`stack`; `off` for `tcp-nodelay`"),
        "when a segment below the maximum may leave",
    ),
    key(
        "mss",
        Kind::Quantity { measures: MSS, words: &["default"] },
        Default::Is("\"default\""),
        "the largest payload of a segment, options not counted off; `default` is the smallest `mtu` of the routes less 40 B",
    ),
    key(
        "rwnd",
        quantity(RWND),
        BY_STACK,
        "receive buffer of the far end, which bounds the window that it advertises; packets are of `mss` each",
    ),
    key(
        "delayed_ack",
        Kind::DelayedAck(DELAYED_ACK),
        BY_STACK,
        "`false` acknowledges every segment at once; a duration is the longest wait for a second segment; `{ tick = \"200 ms\" }` \
         waits for the next tick of one clock; `\"linux\"` adapts as Linux does; `true` is the stack's own",
    ),
    key(
        "sack",
        Kind::FlagOrDefault,
        Default::Is("\"default\""),
        "selective acknowledgements (RFC 2018); `default` is the stack's, where the arena has them",
    ),
    key(
        "tlp",
        Kind::FlagOrDefault,
        Default::Is("\"default\""),
        "tail loss probe (RFC 8985 §7); `default` as for `sack`",
    ),
    key(
        "pacing",
        Kind::FlagOrDefault,
        Default::Is("\"default\""),
        "whether segments are spread over the round trip; `default` as for `sack`",
    ),
    key("limited_transmit", Kind::Flag, BY_STACK, "limited transmit (RFC 3042)"),
    key(
        "cwnd_validation",
        Kind::Flag,
        BY_STACK,
        "whether a congestion window that was not filled stays as it is (RFC 7661); `false` lets every acknowledgement open it",
    ),
    key("timestamps", Kind::Flag, BY_STACK, "timestamps and window scaling (RFC 7323)"),
    key("min_rto", quantity(ANY_DURATION), BY_STACK, "lower bound of the retransmission timeout"),
    key(
        "timer_granularity",
        quantity(GRANULARITY),
        BY_STACK,
        "tick of the retransmission timer (G of RFC 6298 §2); `\"0 s\"` is as fine as the arena's clock",
    ),
    key("initial_window", quantity(WINDOW), BY_STACK, "congestion window at the beginning (RFC 6928)"),
    key(
        "initial_ssthresh",
        Kind::Quantity { measures: WINDOW, words: &["unlimited"] },
        Default::Is("\"unlimited\""),
        "slow start threshold at the beginning",
    ),
    key(
        "send_buffer",
        Kind::Quantity { measures: SEND_BUFFER, words: &["auto"] },
        BY_STACK,
        "room for written, unacknowledged data; `auto` follows the congestion window as Linux does",
    ),
    key(
        "overfill",
        Kind::Flag,
        Default::Is("false"),
        "whether the send buffer takes a whole message, however large, as long as it holds less than its room, as \
         Winsock's does",
    ),
];

const STACK: Words = Words { noun: "a stack", known: &["linux", "rfc", "bsd-reno"], later: &[] };

const CC: Words = Words {
    noun: "a congestion control",
    known: &["default", "tahoe", "reno", "newreno", "cubic", "bbr"],
    later: &["vegas", "westwood", "dctcp", "tfrc"],
};

const NAGLE: Words =
    Words { noun: "a form of Nagle's algorithm", known: &["off", "classic", "minshall"], later: &[] };

/// From what Linux takes at least (TCP_MIN_MSS is 48) to the largest IPv4 packet less two headers.
const MSS: &[Measure] = &[measure(Dimension::Size, 48, 65_495)];

/// RFC 7323 §2.3 scales windows to 1 GiB at most.
const RWND: &[Measure] = &[measure(Dimension::Size, 48, 1 << 30), measure(Dimension::Packets, 1, 1 << 20)];

/// Chosen: past any path in packets.
const WINDOW: &[Measure] = &[measure(Dimension::Packets, 1, 1_000_000_000)];

/// At least what a bulk transfer waits for.
const SEND_BUFFER: &[Measure] = &[measure(Dimension::Size, crate::workload::LEAST_ROOM_BYTES, LARGEST_SIZE)];

/// Up to a minute; BSD's was 500 ms.
const GRANULARITY: &[Measure] = &[measure(Dimension::Duration, 0, 60_000_000_000)];

/// RFC 9293 §3.8.6.3: below half a second.
const DELAYED_ACK: &[Measure] = &[measure(Dimension::Duration, 1, 500_000_000)];
