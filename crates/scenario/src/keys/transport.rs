//! The keys of a transport.

use super::{
    ANY_DURATION, Default, Dimension, Key, Kind, LARGEST_SIZE, LONGEST_NS, Measure, Tagged, Variant, Words,
    key, measure, quantity,
};

/// A transport.
pub(crate) static TRANSPORT: Tagged = Tagged {
    noun: "a transport",
    variants: &[
        Variant {
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
                    quantity(BUFFER),
                    Default::Is("\"106496 B\""),
                    "size given to the receiving socket (SO_RCVBUF); twice this is Linux's `net.core.rmem_default`",
                ),
                key(
                    "small_head",
                    Kind::Quantity { measures: SMALL_HEAD, words: &["none"] },
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
        },
        Variant { name: "tcp", doc: "TCP (RFC 9293) with Nagle's algorithm", keys: TCP_KEYS },
        Variant {
            name: "tcp-nodelay",
            doc: "TCP with TCP_NODELAY: small segments leave at once",
            keys: TCP_KEYS,
        },
        Variant {
            name: "dccp-ccid2",
            doc: "DCCP (RFC 4340) with TCP-like congestion control (RFC 4341)",
            keys: CCID2_KEYS,
        },
        Variant {
            name: "dccp-ccid3",
            doc: "DCCP (RFC 4340) with TCP-friendly rate control (RFC 4342)",
            keys: TFRC_KEYS,
        },
        Variant {
            name: "dccp-ccid4",
            doc: "DCCP (RFC 4340) with TCP-friendly rate control for small packets (RFC 5622)",
            keys: TFRC_KEYS,
        },
        Variant {
            name: "quic",
            doc: "QUIC (RFC 9000); `carry` says what carries a message",
            keys: QUIC_KEYS,
        },
        Variant {
            name: "quic-datagram",
            doc: "QUIC whose messages are DATAGRAM frames (RFC 9221), which are not sent again",
            keys: QUIC_CARRY_KEYS,
        },
        Variant {
            name: "quic-stream",
            doc: "QUIC with one stream for all messages, in order",
            keys: QUIC_CARRY_KEYS,
        },
        Variant {
            name: "quic-stream-per-message",
            doc: "QUIC with a stream for each message, so that a lost message delays no other",
            keys: QUIC_CARRY_KEYS,
        },
    ],
    later: &["sctp", "webrtc"],
    number: None,
};

const QUIC_KEYS: &[Key] = &[
    key("carry", Kind::Choice(&CARRY), Default::Is("\"datagram\""), "what carries a message"),
    QUIC_CC_KEY,
    EXPIRE,
    PRIORITY,
    ZERO_RTT,
    CONNECTION,
    ENCRYPTION,
];

/// Those of the names that say what carries a message.
const QUIC_CARRY_KEYS: &[Key] = &[QUIC_CC_KEY, EXPIRE, PRIORITY, ZERO_RTT, CONNECTION, ENCRYPTION];

const CARRY: Words = Words {
    noun: "what carries a message",
    known: &["datagram", "stream", "stream-per-message"],
    later: &[],
    why: "",
};

const QUIC_CC_KEY: Key =
    key("cc", Kind::Choice(&QUIC_CC), Default::Is("\"cubic\""), "congestion control of both ends");

const QUIC_CC: Words = Words {
    noun: "a congestion control of QUIC",
    known: &["cubic", "newreno"],
    later: &["bbr"],
    why: "quinn's BBR draws random numbers that no seed sets, so a run would not repeat",
};

const EXPIRE: Key = key(
    "expire",
    Kind::Quantity { measures: EXPIRY, words: &["never"] },
    Default::Is("\"never\""),
    "a message that is older than this is not put into a packet: a datagram is dropped (RFC 9221 §5.4), a stream whose one \
     message has not left whole is reset. With one stream for all messages it is an error",
);

const PRIORITY: Key = key(
    "priority",
    Kind::Count { least: 0, most: 255 },
    Default::Is("0"),
    "of the flows of one connection, data with a higher priority leaves first. DATAGRAM frames leave before streams whatever it says",
);

const ZERO_RTT: Key = key(
    "zero_rtt",
    Kind::Flag,
    Default::Is("false"),
    "whether the client sends messages in its first flight (RFC 9001 §4.6), with the ticket of an earlier connection",
);

const CONNECTION: Key = key(
    "connection",
    Kind::Text { longest: 64 },
    Default::Absent("a connection of its own"),
    "flows with the same name share one connection. They have the same routes; copies share it number by number",
);

const ENCRYPTION: Key = key(
    "encryption",
    Kind::Flag,
    Default::Is("true"),
    "`false` saves the arithmetic of AES-GCM in large sweeps: packets keep their sizes, and every figure stays. Real sockets encrypt anyway",
);

/// From a millisecond to what any run lasts.
const EXPIRY: &[Measure] = &[measure(Dimension::Duration, 1_000_000, LONGEST_NS)];

const CCID2_KEYS: &[Key] = &[
    key(
        "initial_window",
        Kind::Quantity { measures: INITIAL_WINDOW, words: &["default"] },
        Default::Is("\"default\""),
        "congestion window at the beginning; `default` is RFC 3390's, two to four packets",
    ),
    key(
        "initial_ssthresh",
        Kind::Quantity { measures: WINDOW, words: &["unlimited"] },
        Default::Is("\"unlimited\""),
        "slow start threshold at the beginning",
    ),
    key(
        "ack_ratio",
        Kind::Count { least: 1, most: 65_535 },
        Default::Is("2"),
        "data packets for each acknowledgement at the beginning (RFC 4340 §11.3); the sender adapts the ratio",
    ),
    key(
        "app_limited_growth",
        Kind::Flag,
        Default::Is("true"),
        "whether the window grows while the application does not fill it (RFC 4341 §5.1; RFC 7661 says no)",
    ),
    key(
        "growth",
        Kind::Choice(&CCID2_GROWTH),
        Default::Is("\"half\""),
        "how much slow start opens the window for each acknowledged packet: half a packet (RFC 4341 §5), or a whole packet with \
         `each-packet`, as ns-2's agent does",
    ),
    SEND_QUEUE,
    SEND_QUEUE_POLICY,
    SEGMENT_SIZE,
    DCCP_SOCKET_BUFFER,
    ECN,
    INIT_COOKIE,
    SHORT_SEQNOS,
    CHECKSUM_COVERAGE,
    DATA_CHECKSUM,
];

const TFRC_KEYS: &[Key] = &[
    key(
        "tfrc",
        Kind::Choice(&TFRC),
        Default::Is("\"rfc5348\""),
        "which specification the rate follows: RFC 5348, or RFC 3448, which it obsoletes",
    ),
    key(
        "oscillation_prevention",
        Kind::Flag,
        Default::Is("true"),
        "whether the rate falls at once when the round trip grows (RFC 5348 §4.5)",
    ),
    key(
        "history_discounting",
        Kind::Flag,
        Default::Is("false"),
        "whether earlier loss intervals count for less after a long time without loss (RFC 5348 §5.5, optional there)",
    ),
    SEND_QUEUE,
    SEND_QUEUE_POLICY,
    SEGMENT_SIZE,
    DCCP_SOCKET_BUFFER,
    ECN,
    INIT_COOKIE,
    SHORT_SEQNOS,
    CHECKSUM_COVERAGE,
    DATA_CHECKSUM,
];

const CCID2_GROWTH: Words = Words { noun: "a growth", known: &["half", "each-packet"], later: &[], why: "" };

const TFRC: Words = Words { noun: "a specification", known: &["rfc5348", "rfc3448"], later: &[], why: "" };

const SEND_QUEUE: Key = key(
    "send_queue",
    Kind::Quantity { measures: WINDOW, words: &["unlimited"] },
    Default::Is("\"unlimited\""),
    "how many messages may wait in the sender's own queue",
);

const SEND_QUEUE_POLICY: Key = key(
    "send_queue_policy",
    Kind::Choice(&QUEUE_POLICY),
    Default::Is("\"drop-newest\""),
    "what a full send queue does: `drop-newest` refuses the message, `drop-oldest` drops the one that has waited longest",
);

const SEGMENT_SIZE: Key = key(
    "segment_size",
    Kind::Quantity { measures: SEGMENT, words: &["message"] },
    Default::Is("\"message\""),
    "packet size from which windows and rates are computed; `message` takes the size of what is sent",
);

const DCCP_SOCKET_BUFFER: Key = key(
    "socket_buffer",
    quantity(BUFFER),
    Default::Is("\"212992 B\""),
    "room of the receiving socket, in payload bytes. The socket is our own in every arena",
);

const ECN: Key = key(
    "ecn",
    Kind::Flag,
    Default::Is("false"),
    "whether packets may be marked instead of dropped (RFC 4340 §12); a queue's `mark_at` marks them",
);

const INIT_COOKIE: Key = key(
    "init_cookie",
    Kind::Flag,
    Default::Is("false"),
    "whether the server keeps no state before the handshake is complete (RFC 4340 §8.1.4)",
);

const SHORT_SEQNOS: Key = key(
    "short_seqnos",
    Kind::Flag,
    Default::Is("false"),
    "whether data and acknowledgements have sequence numbers of 24 bits, which saves 4 to 8 B a packet (RFC 4340 §7.6)",
);

const CHECKSUM_COVERAGE: Key = key(
    "checksum_coverage",
    Kind::Count { least: 0, most: 15 },
    Default::Is("0"),
    "Checksum Coverage of data, and the minimum that is accepted: 0 covers all, 1 the header alone, n also the first 4 (n - 1) B of \
     data (RFC 4340 §9.2)",
);

const DATA_CHECKSUM: Key = key(
    "data_checksum",
    Kind::Flag,
    Default::Is("false"),
    "whether data carries a checksum of its own, 8 B a packet, which the far end must check (RFC 4340 §9.3)",
);

const QUEUE_POLICY: Words =
    Words { noun: "a queue policy", known: &["drop-newest", "drop-oldest"], later: &[], why: "" };

/// The largest payload of an IPv4 packet (RFC 791 §3.1) with a DCCP header (RFC 4340 §5.1).
const SEGMENT: &[Measure] = &[measure(Dimension::Size, 1, 65_499)];

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
        "congestion control; `default` is the stack's (`linux`: cubic, `rfc`: newreno, `bsd-reno`: reno), or the nearest one in the \
         arena",
    ),
    key(
        "nagle",
        Kind::Choice(&NAGLE),
        Default::Follows("`stack`; `off` for `tcp-nodelay`"),
        "when a segment smaller than the maximum may leave",
    ),
    key(
        "mss",
        Kind::Quantity { measures: MSS, words: &["default"] },
        Default::Is("\"default\""),
        "the largest payload of a segment, before options are subtracted; `default` is the smallest `mtu` of the routes less the headers of IP and TCP, 40 B or with IPv6 60 B",
    ),
    key(
        "rwnd",
        quantity(RWND),
        BY_STACK,
        "receive buffer of the far end. It bounds the window that the far end advertises; a packet counts as `mss`",
    ),
    key(
        "initial_rwnd",
        quantity(INITIAL_RWND),
        Default::Is("\"65536 B\""),
        "what of `rwnd` a `linux` receiver offers at first: half of `net.ipv4.tcp_rmem[1]`. It grows as the application reads",
    ),
    key(
        "delayed_ack",
        Kind::DelayedAck(DELAYED_ACK),
        BY_STACK,
        "`false` acknowledges every segment at once. A duration is the longest wait for a second segment. `{ tick = \"200 ms\" }` waits for \
         the next tick of a clock. `\"linux\"` adapts as Linux does. `true` is the stack's own",
    ),
    key(
        "sack",
        Kind::FlagOrDefault,
        Default::Is("\"default\""),
        "selective acknowledgements (RFC 2018); `default` is the stack's, if the arena has them",
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
        "whether a congestion window that was not filled stays as it is (RFC 7661). With `false`, every acknowledgement opens it",
    ),
    key(
        "growth",
        Kind::Choice(&GROWTH),
        BY_STACK,
        "how congestion avoidance opens a window that counts bytes (`rfc`, `bsd-reno`). `counted` adds a segment for each acknowledged \
         window; `each-ack` adds a share for each acknowledgement (RFC 5681 §3.1 eq. 3); `bsd` adds an eighth of a segment more, as \
         4.3BSD-Reno did",
    ),
    key("timestamps", Kind::Flag, BY_STACK, "timestamps (RFC 7323 §3)"),
    key(
        "window_scaling",
        Kind::Flag,
        BY_STACK,
        "window scaling (RFC 7323 §2). Without it a window is at most 65,535 B",
    ),
    key(
        "ecn",
        Kind::Flag,
        Default::Is("false"),
        "whether both ends offer explicit congestion notification (RFC 3168), so that a queue can mark packets instead of dropping them",
    ),
    key("min_rto", quantity(ANY_DURATION), BY_STACK, "lower bound of the retransmission timeout"),
    key(
        "timer_granularity",
        quantity(GRANULARITY),
        BY_STACK,
        "tick of the retransmission timer (G of RFC 6298 §2); `\"0 s\"` is as fine as the arena's clock",
    ),
    key(
        "ticks",
        Kind::Choice(&TICKS),
        BY_STACK,
        "when the clocks of timers (`timer_granularity`, `delayed_ack = { tick = ... }`) tick: `own` in a phase of each host, as hosts that \
         were not started together; `common` all at once",
    ),
    key(
        "initial_window",
        quantity(INITIAL_WINDOW),
        BY_STACK,
        "congestion window at the beginning (RFC 6928)",
    ),
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
        "room for written, unacknowledged data. `auto` follows the congestion window as Linux does. A size is given to `linux` as SO_SNDBUF; \
         `linux` takes twice that as memory, and each segment's head takes a part of it. `rfc` and `bsd-reno` hold the size as payload",
    ),
    key(
        "send_buffer_max",
        quantity(SEND_BUFFER),
        Default::Is("\"4194304 B\""),
        "memory that `send_buffer = \"auto\"` grows to (`net.ipv4.tcp_wmem[2]`)",
    ),
    key(
        "header_room",
        quantity(HEADER_ROOM),
        Default::Is("\"320 B\""),
        "memory that the sending kernel keeps free for headers in each segment. `linux` charges it to the send buffer: 320 B if wireless \
         networks or tunnels are built in, else 192 B. A real kernel has its own value",
    ),
    key(
        "small_head",
        Kind::Quantity { measures: SMALL_HEAD, words: &["auto", "none"] },
        Default::Is("\"auto\""),
        "memory of the object in which `linux` keeps a segment's head. `auto` follows `header_room`: 640 B for 320 B, 576 B for 192 B. `none` \
         takes the next power of two, as kernels before 6.3 do",
    ),
    key(
        "overfill",
        Kind::Flag,
        Default::Is("false"),
        "whether the send buffer takes a whole message, however large, while it is not full, as Winsock's does",
    ),
    key(
        "multipath",
        Kind::Flag,
        Default::Absent("one path"),
        "whether the connection is one of Multipath TCP (RFC 8684), in `emu` and `live`, where the kernels run it. In `emu` the flow's \
         `second_route` is its other path. Not with `dscp`",
    ),
];

const GROWTH: Words =
    Words { noun: "a way to open the window", known: &["counted", "each-ack", "bsd"], later: &[], why: "" };

const TICKS: Words = Words { noun: "whose ticks", known: &["own", "common"], later: &[], why: "" };

const STACK: Words = Words { noun: "a stack", known: &["linux", "rfc", "bsd-reno"], later: &[], why: "" };

const UDP_STACK: Words = Words { noun: "a stack", known: &["linux", "rfc"], later: &[], why: "" };

const CC: Words = Words {
    noun: "a congestion control",
    known: &["default", "tahoe", "reno", "newreno", "cubic", "bbr"],
    later: &["vegas", "westwood", "dctcp", "tfrc"],
    why: "",
};

const NAGLE: Words = Words {
    noun: "a form of Nagle's algorithm",
    known: &["off", "classic", "minshall"],
    later: &[],
    why: "",
};

/// From what Linux takes at least (TCP_MIN_MSS is 48) to the largest IPv4 packet less two headers.
const MSS: &[Measure] = &[measure(Dimension::Size, 48, 65_495)];

/// Chosen: from a TCP header up to a page.
pub(super) const HEADER_ROOM: &[Measure] = &[measure(Dimension::Size, 64, 4096)];

/// Chosen: from a skb_shared_info of 320 B and a cache line up to two pages.
pub(super) const SMALL_HEAD: &[Measure] = &[measure(Dimension::Size, 384, 8192)];

/// RFC 7323 §2.3 scales windows to 1 GiB at most.
const RWND: &[Measure] = &[RWND_BYTES[0], measure(Dimension::Packets, 1, 1 << 20)];

/// The same in bytes alone.
pub(super) const RWND_BYTES: &[Measure] = &[measure(Dimension::Size, 48, 1 << 30)];

/// At least a segment of Linux's smallest (TCP_MIN_MSS), at most the largest window.
pub(super) const INITIAL_RWND: &[Measure] = RWND_BYTES;

/// Chosen: past any path in packets.
const WINDOW: &[Measure] = &[measure(Dimension::Packets, 1, 1_000_000_000)];

/// Chosen: a greedy flow without a receiver's window (DCCP) sends so much at one moment, which memory has to
/// hold.
const INITIAL_WINDOW: &[Measure] = &[measure(Dimension::Packets, 1, 1_000_000)];

/// From one byte to [`LARGEST_SIZE`].
pub(super) const BUFFER: &[Measure] = &[measure(Dimension::Size, 1, LARGEST_SIZE)];

/// At least what a bulk transfer waits for, and at most as large as the largest window: this is also the
/// limit of Linux for SO_SNDBUF (sock_setsockopt: INT_MAX / 2). A greedy application fills all of it.
pub(super) const SEND_BUFFER: &[Measure] = &[measure(Dimension::Size, crate::MIN_BULK_ROOM.get(), 1 << 30)];

/// Up to a minute; BSD's was 500 ms.
pub(super) const GRANULARITY: &[Measure] = &[measure(Dimension::Duration, 0, 60_000_000_000)];

/// RFC 9293 §3.8.6.3: below half a second.
const DELAYED_ACK: &[Measure] = &[measure(Dimension::Duration, 1, 500_000_000)];
