//! QUIC in a scenario: its keys, the configuration that they make, and the messages that a frame can hold.
//!
//! The *carry* of a flow is what carries a message: a DATAGRAM frame, the one stream of the flow, or a stream
//! for each message.

use talkpath_config::{
    Carry, QUIC_DATAGRAM_AT_OPENING, QuicConfig, QuicCongestionControl, SMALLEST_QUIC_MTU,
    largest_quic_datagram,
};
use talkpath_units::Bytes;

use super::fit::Fit;
use crate::diagnostic::Log;
use crate::quantity::{Dimension, DimensionRange, Problem};
use crate::section::Section;
use crate::spec::{Default, Key, Kind, LONGEST_NS, Variant, Words, key, range};

pub(super) const QUIC: Variant =
    Variant { name: "quic", doc: "QUIC (RFC 9000); `carry` says what carries a message", keys: QUIC_KEYS };

pub(super) const DATAGRAM: Variant = Variant {
    name: Carry::Datagram.transport_name(),
    doc: "QUIC whose messages are DATAGRAM frames (RFC 9221), which are not sent again",
    keys: QUIC_CARRY_KEYS,
};

pub(super) const STREAM: Variant = Variant {
    name: Carry::Stream.transport_name(),
    doc: "QUIC with one stream for all messages, in order",
    keys: QUIC_CARRY_KEYS,
};

pub(super) const STREAM_PER_MESSAGE: Variant = Variant {
    name: Carry::StreamPerMessage.transport_name(),
    doc: "QUIC with a stream for each message, so that a lost message delays no other",
    keys: QUIC_CARRY_KEYS,
};

const QUIC_KEYS: &[Key] = &[
    key("carry", Kind::Choice(&CARRY), Default::Is("\"datagram\""), "what carries a message"),
    QUIC_CC_KEY,
    EXPIRE,
    PRIORITY,
    ZERO_RTT,
    CONNECTION,
    IDLE_TIMEOUT,
    KEEP_ALIVE,
    ENCRYPTION,
];

/// The keys of the names that include the carry, such as `quic-stream`.
const QUIC_CARRY_KEYS: &[Key] =
    &[QUIC_CC_KEY, EXPIRE, PRIORITY, ZERO_RTT, CONNECTION, IDLE_TIMEOUT, KEEP_ALIVE, ENCRYPTION];

const CARRY: Words = Words { noun: "what carries a message", known: Carry::WORDS, later: &[], why: "" };

const QUIC_CC_KEY: Key =
    key("cc", Kind::Choice(&QUIC_CC), Default::Is("\"cubic\""), "congestion control of both ends");

const QUIC_CC: Words = Words {
    noun: "a congestion control of QUIC",
    known: QuicCongestionControl::WORDS,
    later: &["bbr"],
    why: "quinn's BBR draws random numbers that no seed sets, so a run would not repeat",
};

const EXPIRE: Key = key(
    "expire",
    Kind::Quantity { ranges: EXPIRY, words: &["never"] },
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

const IDLE_TIMEOUT: Key = key(
    "idle_timeout",
    Kind::Quantity { ranges: IDLE, words: &["never"] },
    Default::Is("\"never\""),
    "when nothing has come for this long, each end gives the connection up without a word (RFC 9000 §10.1), but not before \
     three probe timeouts. It counts in whole milliseconds",
);

const KEEP_ALIVE: Key = key(
    "keep_alive",
    Kind::Quantity { ranges: IDLE, words: &["never"] },
    Default::Is("\"never\""),
    "when nothing has come for this long, the client sends a PING (RFC 9000 §10.1.2), which keeps the connection and the \
     mapping of an address translator",
);

const ENCRYPTION: Key = key(
    "encryption",
    Kind::Flag,
    Default::Is("true"),
    "`false` saves the arithmetic of AES-GCM in large sweeps: packets keep their sizes, and every figure stays. Real sockets encrypt anyway",
);

/// We chose a range from one millisecond to the longest run.
const EXPIRY: &[DimensionRange] = &[range(Dimension::Duration, 1_000_000, LONGEST_NS)];

/// We chose a range from ten milliseconds to the longest run.
const IDLE: &[DimensionRange] = &[range(Dimension::Duration, 10_000_000, LONGEST_NS)];

/// Makes the configuration of the transport `name` from the keys in `section`.
pub(super) fn resolve(
    name: &str,
    section: &Section<'_>,
    mtu: Option<Bytes>,
    log: &mut Log,
) -> Option<QuicConfig> {
    let carry = match name {
        "quic" => Carry::named(section.choice("carry")?)?,
        name => Carry::ALL.into_iter().find(|carry| carry.transport_name() == name)?,
    };
    let expire = section.duration_or_word("expire");
    if let (Some(Some(expire)), Carry::Stream) = (expire, carry) {
        let problem = Problem::new(format!(
            "found {expire} with one stream for all messages, expected \"never\": a stream has no gaps"
        ));
        let problem =
            problem.with_help("`carry = \"datagram\"` or `\"stream-per-message\"` can leave a message out");
        section.problem("expire", problem, log);
        return None;
    }
    if let Some(mtu) = mtu.filter(|mtu| *mtu < SMALLEST_QUIC_MTU) {
        let message = format!(
            "found an mtu of {mtu} on its routes, expected {SMALLEST_QUIC_MTU} or more: QUIC's packets have up to 1200 B \
             (RFC 9000 §14)"
        );
        log.mistake(section.place, section.at, message);
        return None;
    }
    let (idle_timeout, keep_alive) =
        (section.duration_or_word("idle_timeout")?, section.duration_or_word("keep_alive")?);
    if let (Some(idle_timeout), Some(keep_alive)) = (idle_timeout, keep_alive)
        && keep_alive >= idle_timeout
    {
        let message = format!(
            "found {keep_alive} and an `idle_timeout` of {idle_timeout}, expected less: the connection is over before its \
             first PING"
        );
        section.problem("keep_alive", Problem::new(message), log);
        return None;
    }
    let connection = match section.node("connection") {
        Some(_) => Some(section.text("connection")?.to_owned()),
        None => None,
    };
    Some(QuicConfig {
        carry,
        cc: QuicCongestionControl::named(section.choice("cc")?)?,
        expire: expire?,
        priority: u8::try_from(section.count("priority")?).ok()?,
        zero_rtt: section.flag("zero_rtt")?,
        connection,
        idle_timeout,
        keep_alive,
        encryption: section.flag("encryption")?,
    })
}

/// Returns the largest message of a file on a path with this MTU, or `None` if a message may have any size.
pub(super) fn largest_message(config: &QuicConfig, mtu: Bytes) -> Option<Bytes> {
    match config.carry {
        Carry::Datagram => Some(largest_quic_datagram(mtu).min(QUIC_DATAGRAM_AT_OPENING)),
        Carry::Stream | Carry::StreamPerMessage => None,
    }
}

/// Reports a workload that QUIC cannot carry.
pub(super) fn fit(config: &QuicConfig, fit: &Fit<'_, '_>, log: &mut Log) {
    if config.carry == Carry::Datagram {
        fit.check_largest(fit.mtu.map(largest_quic_datagram), "one DATAGRAM frame", log);
    } else if let Some(room) = fit.room {
        let message = format!(
            "found a `socket_buffer` of {room} over a QUIC stream, which has no socket of its own; expected \"default\""
        );
        fit.flow.problem("receiver", message, log);
    }
}
