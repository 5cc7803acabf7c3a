//! DCCP in a scenario: its keys, and the configuration that they make.

use talkpath_config::{CcidKind, DccpConfig, QueuePolicy, Revision};

use super::fit::INITIAL_WINDOW;
use crate::quantity::{Dimension, DimensionRange};
use crate::section::Section;
use crate::spec::{Default, Key, Kind, SOME_PACKETS, SOME_SIZE, Variant, Words, key, quantity, range};

pub(super) const CCID2: Variant = Variant {
    name: CcidKind::Ccid2.transport_name(),
    doc: "DCCP (RFC 4340) with TCP-like congestion control (RFC 4341)",
    keys: CCID2_KEYS,
};

pub(super) const CCID3: Variant = Variant {
    name: CcidKind::Ccid3.transport_name(),
    doc: "DCCP (RFC 4340) with TCP-friendly rate control (RFC 4342)",
    keys: TFRC_KEYS,
};

pub(super) const CCID4: Variant = Variant {
    name: CcidKind::Ccid4.transport_name(),
    doc: "DCCP (RFC 4340) with TCP-friendly rate control for small packets (RFC 5622)",
    keys: TFRC_KEYS,
};

const CCID2_KEYS: &[Key] = &[
    key(
        "initial_window",
        Kind::Quantity { ranges: INITIAL_WINDOW, words: &["default"] },
        Default::Is("\"default\""),
        "congestion window at the beginning; `default` is RFC 3390's, two to four packets",
    ),
    key(
        "initial_ssthresh",
        Kind::Quantity { ranges: SOME_PACKETS, words: &["unlimited"] },
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
    SOCKET_BUFFER,
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
    SOCKET_BUFFER,
    ECN,
    INIT_COOKIE,
    SHORT_SEQNOS,
    CHECKSUM_COVERAGE,
    DATA_CHECKSUM,
];

const CCID2_GROWTH: Words = Words { noun: "a growth", known: &["half", "each-packet"], later: &[], why: "" };

const TFRC: Words = Words { noun: "a specification", known: Revision::WORDS, later: &[], why: "" };

const SEND_QUEUE: Key = key(
    "send_queue",
    Kind::Quantity { ranges: SOME_PACKETS, words: &["unlimited"] },
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
    Kind::Quantity { ranges: SEGMENT, words: &["message"] },
    Default::Is("\"message\""),
    "packet size from which windows and rates are computed; `message` takes the size of what is sent",
);

const SOCKET_BUFFER: Key = key(
    "socket_buffer",
    quantity(SOME_SIZE),
    Default::Is("\"212992 B\""),
    "room of the receiving socket, in payload bytes. The socket is our own in every arena",
);

const ECN: Key = key(
    "ecn",
    Kind::Flag,
    Default::Is("false"),
    "whether packets may be marked instead of dropped (RFC 4340 §12); queues mark with `mark_at`, `ecn` or `ce_threshold`",
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

const QUEUE_POLICY: Words = Words { noun: "a queue policy", known: QueuePolicy::WORDS, later: &[], why: "" };

/// The largest payload of an IPv4 packet (RFC 791 §3.1) with a DCCP header (RFC 4340 §5.1).
const SEGMENT: &[DimensionRange] = &[range(Dimension::Size, 1, DccpConfig::LARGEST_SEGMENT.get())];

/// Makes the configuration of the transport `name` from the keys in `section`.
pub(super) fn resolve(name: &str, section: &Section<'_>) -> Option<DccpConfig> {
    match CcidKind::ALL.into_iter().find(|ccid| ccid.transport_name() == name)? {
        CcidKind::Ccid2 => ccid2(section),
        ccid => tfrc(ccid, section),
    }
}

fn ccid2(section: &Section<'_>) -> Option<DccpConfig> {
    Some(DccpConfig {
        initial_window: section.packets_or_word("initial_window")?,
        initial_ssthresh: section.packets_or_word("initial_ssthresh")?,
        ack_ratio: u16::try_from(section.count("ack_ratio")?).ok()?,
        app_limited_growth: section.flag("app_limited_growth")?,
        growth_by_each: section.choice("growth")? == "each-packet",
        ..common_config(CcidKind::Ccid2, section)?
    })
}

fn tfrc(ccid: CcidKind, section: &Section<'_>) -> Option<DccpConfig> {
    Some(DccpConfig {
        tfrc: Revision::named(section.choice("tfrc")?)?,
        oscillation_prevention: section.flag("oscillation_prevention")?,
        history_discounting: section.flag("history_discounting")?,
        ..common_config(ccid, section)?
    })
}

fn common_config(ccid: CcidKind, section: &Section<'_>) -> Option<DccpConfig> {
    Some(DccpConfig {
        ecn: section.flag("ecn")?,
        init_cookie: section.flag("init_cookie")?,
        short_seqnos: section.flag("short_seqnos")?,
        checksum_coverage: u8::try_from(section.count("checksum_coverage")?).ok()?,
        data_checksum: section.flag("data_checksum")?,
        send_queue: section.packets_or_word("send_queue")?,
        send_queue_policy: QueuePolicy::named(section.choice("send_queue_policy")?)?,
        segment_size: section.bytes_or_word("segment_size")?,
        socket_buffer: section.bytes("socket_buffer")?,
        ..DccpConfig::new(ccid)
    })
}
