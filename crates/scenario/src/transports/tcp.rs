//! TCP in a scenario: the keys of `tcp` and `tcp-nodelay`, and the configuration that they make.
//!
//! - The *stack* is the implementation whose defaults hold: `linux`, `rfc` or `bsd-reno`. Its configuration
//!   is a *preset* (`TcpConfig::preset`).
//! - Most keys follow the stack: [`defaults`] writes the preset into the file before [`resolve`] reads it.

use talkpath_config::{CongestionControlKind, DelayedAck, Growth, NagleKind, Stack, TcpConfig, Ticks};
use talkpath_model::MIN_BULK_ROOM;
use talkpath_units::{Bytes, Duration, Packets};

use super::fit::{INITIAL_WINDOW, SMALL_HEAD};
use crate::diagnostic::Log;
use crate::quantity::{Amount, Dimension, DimensionRange};
use crate::section::Section;
use crate::spec::{ANY_DURATION, Default, Key, Kind, SOME_PACKETS, Variant, Words, key, quantity, range};
use crate::tree::{Meaning, Table};

pub(super) const TCP: Variant =
    Variant { name: "tcp", doc: "TCP (RFC 9293) with Nagle's algorithm", keys: TCP_KEYS };

pub(super) const NODELAY: Variant = Variant {
    name: "tcp-nodelay",
    doc: "TCP with TCP_NODELAY: small segments leave at once",
    keys: TCP_KEYS,
};

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
        Kind::Quantity { ranges: MSS, words: &["default"] },
        Default::Is("\"default\""),
        "the largest payload of a segment, before options are subtracted; `default` is the smallest `mtu` of the routes less the headers of IP and TCP, 40 B or with IPv6 60 B. Real sockets take 88 to 32,767 B",
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
    key(
        "min_rto",
        quantity(ANY_DURATION),
        BY_STACK,
        "lower bound of the retransmission timeout; at most the stack's upper bound: `linux` 120 s, `rfc` 60 s, `bsd-reno` 64 s",
    ),
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
        Kind::Quantity { ranges: SOME_PACKETS, words: &["unlimited"] },
        Default::Is("\"unlimited\""),
        "slow start threshold at the beginning",
    ),
    key(
        "send_buffer",
        Kind::Quantity { ranges: SEND_BUFFER, words: &["auto"] },
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
        Kind::Quantity { ranges: SMALL_HEAD, words: &["auto", "none"] },
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

/// The default of a key that [`defaults`] writes out.
const BY_STACK: Default = Default::Follows("`stack`");

const GROWTH: Words = Words { noun: "a way to open the window", known: Growth::WORDS, later: &[], why: "" };

const TICKS: Words = Words { noun: "whose ticks", known: Ticks::WORDS, later: &[], why: "" };

const STACK: Words = Words { noun: "a stack", known: Stack::WORDS, later: &[], why: "" };

const CC: Words = Words {
    noun: "a congestion control",
    known: &[
        "default",
        CongestionControlKind::Tahoe.name(),
        CongestionControlKind::Reno.name(),
        CongestionControlKind::NewReno.name(),
        CongestionControlKind::Cubic.name(),
        CongestionControlKind::Bbr.name(),
    ],
    later: &["vegas", "westwood", "dctcp", "tfrc"],
    why: "",
};

const NAGLE: Words =
    Words { noun: "a form of Nagle's algorithm", known: NagleKind::WORDS, later: &[], why: "" };

/// We chose 48 B as the smallest segment, which is below the bound of every stack. The largest is the largest
/// IPv4 packet without its two headers. A Linux socket takes a smaller range, which the real arenas check.
const MSS: &[DimensionRange] = &[range(Dimension::Size, 48, 65_495)];

/// We chose a range from one TCP header to a memory page.
pub(crate) const HEADER_ROOM: &[DimensionRange] = &[range(Dimension::Size, 64, 4096)];

const RWND: &[DimensionRange] = &[RWND_BYTES[0], range(Dimension::Packets, 1, 1 << 20)];

/// A receive buffer in bytes: from the smallest segment to the largest window.
pub(crate) const RWND_BYTES: &[DimensionRange] = &[range(Dimension::Size, 48, LARGEST_WINDOW.get())];

pub(crate) const INITIAL_RWND: &[DimensionRange] = RWND_BYTES;

/// A send buffer has room for at least the message that a bulk transfer waits for. It is at most as large as
/// the largest window, which is also the limit of Linux for SO_SNDBUF (sock_setsockopt: INT_MAX / 2). The
/// limit is needed because a bulk transfer fills the whole buffer.
pub(crate) const SEND_BUFFER: &[DimensionRange] =
    &[range(Dimension::Size, MIN_BULK_ROOM.get(), LARGEST_WINDOW.get())];

/// We chose one minute as the coarsest timer. That of BSD was 500 ms.
pub(crate) const GRANULARITY: &[DimensionRange] = &[range(Dimension::Duration, 0, 60_000_000_000)];

/// RFC 9293 §3.8.6.3: a delay is below half a second.
const DELAYED_ACK: &[DimensionRange] = &[range(Dimension::Duration, 1, 500_000_000)];

/// RFC 7323 §2.3: a scaled window is at most 1 GiB.
const LARGEST_WINDOW: Bytes = Bytes::new(1 << 30);

/// The headers of IPv4 and TCP without options (RFC 9293 §3.7.1).
const HEADERS: Bytes = Bytes::new(40);

/// Makes the configuration of the transport `name` from the keys in `section`. `mtu` is the smallest MTU of
/// the flow's routes. The keys that ask for a mechanism by name go to `asked_for`
/// ([`talkpath_model::Flow::asked_for`]).
pub(super) fn resolve(
    name: &str,
    section: &Section<'_>,
    mtu: Option<Bytes>,
    asked_for: &mut Vec<&'static str>,
    log: &mut Log,
) -> Option<TcpConfig> {
    let preset = TcpConfig::preset(Stack::named(section.choice("stack")?)?, name == "tcp-nodelay");
    // The keys that are checked together with another key come before the first `?`, so that one mistake does
    // not hide another.
    let mss = mss(section, mtu, log);
    let rwnd = rwnd(section, mss.flatten(), mtu, log);
    let min_rto = min_rto(section, preset.stack, log);
    let growth = growth(section, &preset, log);
    let config = with_mechanisms(&preset, section, asked_for)?;
    let config = with_buffers(&config, section)?;
    let config = with_timers(&config, section)?;
    Some(TcpConfig { mss: mss?, rwnd: rwnd?, min_rto: min_rto?, growth: growth?, ..config })
}

/// Returns `preset` with the mechanisms of the sender that the keys choose.
fn with_mechanisms(
    preset: &TcpConfig,
    section: &Section<'_>,
    asked_for: &mut Vec<&'static str>,
) -> Option<TcpConfig> {
    let cc = match section.choice("cc")? {
        "default" => preset.cc,
        word => {
            asked_for.push("cc");
            Some(CongestionControlKind::named(word)?)
        }
    };
    for key in ["sack", "tlp", "pacing"] {
        if matches!(section.meaning(key)?, Meaning::Flag(_)) {
            asked_for.push(key);
        }
    }
    Some(TcpConfig {
        cc,
        sack: section.flag_or("sack", preset.sack)?,
        tlp: section.flag_or("tlp", preset.tlp)?,
        pacing: section.flag_or("pacing", preset.pacing)?,
        nagle: NagleKind::named(section.choice("nagle")?)?,
        limited_transmit: section.flag("limited_transmit")?,
        cwnd_validation: section.flag("cwnd_validation")?,
        timestamps: section.flag("timestamps")?,
        window_scaling: section.flag("window_scaling")?,
        ecn: section.flag("ecn")?,
        initial_window: section.packets_or_word("initial_window")??,
        initial_ssthresh: section.packets_or_word("initial_ssthresh")?,
        // The key has no default, so that the resolved form of a scenario is the same text as before the key
        // existed.
        multipath: section.node("multipath").is_some() && section.flag("multipath")?,
        ..*preset
    })
}

fn with_buffers(config: &TcpConfig, section: &Section<'_>) -> Option<TcpConfig> {
    let header_room = section.bytes("header_room")?;
    Some(TcpConfig {
        initial_rwnd: section.bytes("initial_rwnd")?,
        send_buffer: section.bytes_or_word("send_buffer")?,
        send_buffer_max: section.bytes("send_buffer_max")?,
        header_room,
        small_head: small_head(section, header_room)?,
        overfill: section.flag("overfill")?,
        ..*config
    })
}

fn with_timers(config: &TcpConfig, section: &Section<'_>) -> Option<TcpConfig> {
    Some(TcpConfig {
        delayed_ack: match section.meaning("delayed_ack")? {
            Meaning::DelayedAck(delayed_ack) => delayed_ack,
            // `true`: the delay of the stack.
            _ => config.delayed_ack,
        },
        timer_granularity: section.duration("timer_granularity")?,
        ticks: Ticks::named(section.choice("ticks")?)?,
        ..*config
    })
}

/// Reads `growth`, and warns of a value that changes nothing.
fn growth(section: &Section<'_>, preset: &TcpConfig, log: &mut Log) -> Option<Growth> {
    let growth = Growth::named(section.choice("growth")?)?;
    if preset.stack == Stack::Linux && growth != preset.growth {
        section.warning("growth", "the window of `linux` counts packets, which this does not change", log);
    }
    Some(growth)
}

/// Reads `min_rto`, which must not be above the largest retransmission timeout of the stack.
fn min_rto(section: &Section<'_>, stack: Stack, log: &mut Log) -> Option<Duration> {
    let (min_rto, max_rto) = (section.duration("min_rto")?, stack.max_rto());
    if min_rto > max_rto {
        let message =
            format!("found {min_rto}, expected at most {max_rto}, the largest timeout of `{}`", stack.name());
        section.problem("min_rto", message, log);
        return None;
    }
    Some(min_rto)
}

/// Reads `mss`. The inner `None` is the word `default`. A segment that the path would fragment is a mistake.
fn mss(section: &Section<'_>, mtu: Option<Bytes>, log: &mut Log) -> Option<Option<Bytes>> {
    let mss = section.bytes_or_word("mss")?;
    if let (Some(mss), Some(mtu)) = (mss, mtu)
        && mss > mtu.saturating_sub(HEADERS)
    {
        let largest = mtu.saturating_sub(HEADERS);
        let message = format!(
            "found {mss}, expected at most {largest}: the smallest `mtu` of the routes, {mtu} (with IPv6 20 B less), less 40 B"
        );
        section.problem("mss", message, log);
        return None;
    }
    Some(mss)
}

/// Reads `small_head`. The inner `None` is the word `none`: the kernel has no such object.
fn small_head(section: &Section<'_>, header_room: Bytes) -> Option<Option<Bytes>> {
    match section.meaning("small_head")? {
        Meaning::Amount(amount) => Some(Some(Bytes::new(amount.count))),
        Meaning::Word("auto") => Some(Some(talkpath_config::small_head(header_room))),
        _ => Some(None),
    }
}

/// Reads `rwnd` in bytes. If it is in packets, each packet has the size of a segment.
fn rwnd(section: &Section<'_>, mss: Option<Bytes>, mtu: Option<Bytes>, log: &mut Log) -> Option<Bytes> {
    let packets = match section.meaning("rwnd")? {
        Meaning::Amount(Amount { dimension: Dimension::Packets, count }) => count,
        Meaning::Amount(amount) => return Some(Bytes::new(amount.count)),
        _ => return None,
    };
    let segment = mss.or(mtu.map(|mtu| mtu.saturating_sub(HEADERS)))?;
    let rwnd = Bytes::new(packets.saturating_mul(segment.get()));
    if rwnd > LARGEST_WINDOW {
        let packets = Packets::new(packets);
        let message = format!("found {packets} of {segment}, expected at most {LARGEST_WINDOW} in all");
        section.problem("rwnd", message, log);
        return None;
    }
    Some(rwnd)
}

/// Returns the defaults of the keys that follow the stack, as TOML. `filled` is the table of the transport.
pub(super) fn defaults(transport: &str, filled: &Table) -> Vec<(&'static str, String)> {
    let Some(Meaning::Word(stack)) = filled.get("stack").and_then(|node| node.meaning) else {
        return Vec::new();
    };
    let Some(stack) = Stack::named(stack) else { return Vec::new() };
    let preset = TcpConfig::preset(stack, transport == "tcp-nodelay");
    let quoted = |text: String| format!("\"{text}\"");
    let delayed_ack = match preset.delayed_ack {
        DelayedAck::Off => "false".to_owned(),
        DelayedAck::After { timeout } => quoted(timeout.to_string()),
        DelayedAck::Tick { period } => format!("{{ tick = \"{period}\" }}"),
        DelayedAck::Linux => quoted("linux".to_owned()),
    };
    let send_buffer = preset.send_buffer.map_or_else(|| "auto".to_owned(), |size| size.to_string());
    vec![
        ("nagle", quoted(preset.nagle.name().to_owned())),
        ("rwnd", quoted(preset.rwnd.to_string())),
        ("delayed_ack", delayed_ack),
        ("limited_transmit", preset.limited_transmit.to_string()),
        ("cwnd_validation", preset.cwnd_validation.to_string()),
        ("growth", quoted(preset.growth.name().to_owned())),
        ("timestamps", preset.timestamps.to_string()),
        ("window_scaling", preset.window_scaling.to_string()),
        ("min_rto", quoted(preset.min_rto.to_string())),
        ("timer_granularity", quoted(preset.timer_granularity.to_string())),
        ("ticks", quoted(preset.ticks.name().to_owned())),
        ("initial_window", quoted(preset.initial_window.to_string())),
        ("send_buffer", quoted(send_buffer)),
    ]
}
