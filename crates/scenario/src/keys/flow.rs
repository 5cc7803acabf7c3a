//! The keys of a flow: `[flow.NAME]`.

use super::transport::BUFFER;
use super::{
    ANY_DURATION, ANY_RATE, Default, Dimension, Key, Kind, LARGEST_SIZE, LONGEST_PATH, Listed, Measure,
    SOME_DURATION, TableSpec, Tagged, Variant, Words, key, measure, quantity,
};

/// A flow.
pub(crate) static FLOW: TableSpec = TableSpec { noun: "a flow", keys: FLOW_KEYS };

const FLOW_KEYS: &[Key] = &[
    key("transport", Kind::Tagged(&super::TRANSPORT), Default::Required, "which protocol carries it"),
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
        "when the connection opens: a duration, or `{ from, to }` for a moment drawn uniformly from that range. The first message is due when \
         the connection is open",
    ),
    key(
        "count",
        Kind::Count { least: 1, most: 50_000 },
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
pub(crate) static LINKS: Listed =
    Listed { one: "the name of a link", many: "links", example: "[\"access1\", \"wan\"]", most: 255 };

const SERVICE_PER: Words =
    Words { noun: "a unit of service", known: &["message", "read"], later: &[], why: "" };

const DIRECTION: Words = Words { noun: "a direction", known: &["up", "down", "both"], later: &[], why: "" };
/// The names of [`crate::DSCP_NAMES`].
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
            Kind::Quantity { measures: BUFFER, words: &["default"] },
            Default::Is("\"default\""),
            "room of the receiving socket; `\"default\"` is the transport's `socket_buffer` or `rwnd`. Over QUIC only datagrams have one",
        ),
    ],
};

/// Payload of one message. A stream could carry more, but an application does not write more at once. Chosen.
const MESSAGE: &[Measure] = &[measure(Dimension::Size, 1, 1_000_000_000)];

/// What G.711 and receivers in general can do: RFC 3551 §4.2 has receivers accept 0 to 200 ms.
const PTIME: &[Measure] = &[measure(Dimension::Duration, 1_000_000, 200_000_000)];

const CODEC: Words =
    Words { noun: "a codec", known: &["g711"], later: &["g729", "g726", "amr-wb", "opus"], why: "" };

const ECHO_WRITE: Words =
    Words { noun: "a write pattern", known: &["per-read", "per-message"], later: &[], why: "" };

const ECHO: Key =
    key("echo", Kind::Flag, Default::Is("false"), "whether the far application sends every message back");

const ECHO_WRITE_KEY: Key = key(
    "echo_write",
    Kind::Choice(&ECHO_WRITE),
    Default::Is("\"per-read\""),
    "how the far application writes what one read returned: all in one write, or one write for each message",
);

/// What a receiver of speech plays where a frame is missing.
const CONCEALMENT: Words =
    Words { noun: "a concealment", known: &["none", "g711-appendix-i"], later: &[], why: "" };

/// When the receiver of a call plays its frames.
static PLAYOUT: Tagged = Tagged {
    noun: "a playout",
    variants: &[
        Variant {
            name: "adaptive",
            doc: "the wait follows the delay and its variation, and is chosen anew for each talkspurt (Ramjee et al. 1994, algorithm 4)",
            keys: &[],
        },
        Variant {
            name: "fixed",
            doc: "the first frame that comes waits for `delay`, and every other is played as long after it was due as the first",
            keys: &[key(
                "delay",
                quantity(SOME_DURATION),
                Default::Required,
                "how long the first frame waits",
            )],
        },
    ],
    later: &[],
    number: None,
};

/// From the least to the most that the E-model gives (ITU-T G.107, Annex B).
const MOS: Kind = Kind::Number { above: 1.0, most: 4.5 };

/// The least share of messages in time.
const FLOOR: Key = key(
    "floor",
    Kind::Number { above: 0.0, most: 1.0 },
    Default::Is("0.95"),
    "the least share of messages in time that is usable",
);

/// A workload.
pub(crate) static WORKLOAD: Tagged = Tagged {
    noun: "a workload",
    variants: &[
        Variant {
            name: "voice",
            doc: "a frame on the codec's clock, whatever the network does",
            keys: &[
                key(
                    "codec",
                    Kind::Choice(&CODEC),
                    Default::Is("\"g711\""),
                    "`g711`: 64 kbps, 160 B every 20 ms",
                ),
                key(
                    "ptime",
                    quantity(PTIME),
                    Default::Is("\"20 ms\""),
                    "time between frames, a whole number of milliseconds; the frame grows with it",
                ),
                key(
                    "playout",
                    Kind::Tagged(&PLAYOUT),
                    Default::Is("\"adaptive\""),
                    "when the receiver plays a frame: `adaptive`, or `{ kind = \"fixed\", delay = \"60 ms\" }`, where the first frame that \
                     comes waits for `delay`, and every other is played as long after it was due",
                ),
                key(
                    "concealment",
                    Kind::Choice(&CONCEALMENT),
                    Default::Is("\"none\""),
                    "what is played where a frame is missing: `none` is silence, `g711-appendix-i` repeats and fades what was last heard \
                     (ITU-T G.711 Appendix I). In the opinion score, Bpl is 4.3 or 25.1 (ITU-T G.113)",
                ),
                key("floor", MOS, Default::Is("3.1"), "the least opinion score (MOS) of a usable call"),
                ECHO,
                ECHO_WRITE_KEY,
            ],
        },
        Variant {
            name: "cbr",
            doc: "constant bit rate: `size` bytes on the clock that `rate` or `message_rate` sets",
            keys: &[
                key(
                    "rate",
                    quantity(ANY_RATE),
                    Default::Absent("what `message_rate` sets; one of the two is required"),
                    "payload bits a second",
                ),
                key(
                    "message_rate",
                    quantity(MESSAGE_RATE),
                    Default::Absent("what `rate` sets"),
                    "messages a second, rounded to a whole `rate`",
                ),
                key("size", quantity(MESSAGE), Default::Required, "payload of a message"),
                key(
                    "deadline",
                    quantity(SOME_DURATION),
                    Default::Absent("150 ms, with `echo` 300 ms (ITU-T G.114)"),
                    "until when a message, with `echo` its echo, is in time; counted from when the message was due",
                ),
                key(
                    "state",
                    Kind::Flag,
                    Default::Is("false"),
                    "whether each message replaces those before it, so that the age of the newest one counts",
                ),
                FLOOR,
                ECHO,
                ECHO_WRITE_KEY,
            ],
        },
        Variant {
            name: "bulk",
            doc: "as much as the transport takes. Messages are as large as fits, up to 64 KiB; each waits for room for 1 KiB",
            keys: &[key(
                "bytes",
                Kind::Quantity { measures: BULK_BYTES, words: &["unlimited"] },
                Default::Is("\"unlimited\""),
                "how much in all; `\"unlimited\"` continues until `duration`",
            )],
        },
        Variant {
            name: "burst",
            doc: "`count` messages as fast as the transport takes them, again and again",
            keys: &[
                key(
                    "count",
                    Kind::Count { least: 1, most: 1_000_000_000 },
                    Default::Required,
                    "messages in a burst",
                ),
                key("size", quantity(MESSAGE), Default::Required, "payload of a message"),
                key("repeat", Kind::Count { least: 1, most: 1_000_000_000 }, Default::Is("1"), "bursts"),
                key(
                    "gap",
                    quantity(ANY_DURATION),
                    Default::Is("\"0 s\""),
                    "time from the last message of a burst to the first of the next",
                ),
                key(
                    "deadline",
                    quantity(SOME_DURATION),
                    Default::Absent("no share in time is counted"),
                    "until when a message is in time, counted from when there was room for it",
                ),
                FLOOR,
            ],
        },
        Variant {
            name: "file",
            doc: "the bytes of a file, sent as `bulk`. In real arenas the far end checks their SHA-256, and over UDP lists what is \
                  missing",
            keys: &[
                key(
                    "source",
                    Kind::Text { longest: LONGEST_PATH },
                    Default::Required,
                    "the file, relative to the scenario's folder; it is not copied",
                ),
                key(
                    "size",
                    Kind::Quantity { measures: FILE_MESSAGE, words: &["auto"] },
                    Default::Is("\"auto\""),
                    "the largest message; `\"auto\"` is 64 KiB, over UDP what crosses the routes' smallest `mtu` unfragmented",
                ),
            ],
        },
    ],
    later: &[],
    number: None,
};

/// From what a sequence number and a byte take to the largest message of `bulk`.
const FILE_MESSAGE: &[Measure] = &[measure(Dimension::Size, 64, 64 * 1024)];

/// From one message in a quarter of an hour to a message a nanosecond, in mHz. Chosen.
const MESSAGE_RATE: &[Measure] = &[measure(Dimension::Frequency, 1, 1_000_000_000_000)];

const BULK_BYTES: &[Measure] = &[measure(Dimension::Size, 1, 1_000 * LARGEST_SIZE)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dscp_is_any_that_has_a_name_or_the_systems() {
        let names = crate::DSCP_NAMES.iter().map(|(name, _)| *name);
        assert!(core::iter::once("default").chain(names).eq(DSCP.known.iter().copied()));
    }
}
