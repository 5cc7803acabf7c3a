//! Transports: the stack's preset, with the scenario's keys over it.

use talkpath_config::Growth;
use talkpath_config::Revision;
use talkpath_config::{
    Carry, CcidKind, CongestionControlKind, DccpConfig, DelayedAck, EncapsulatedConfig, NagleKind,
    QueuePolicy, QuicConfig, QuicCongestionControl, SMALLEST_QUIC_MTU, Stack, TcpConfig, Ticks,
    TransportConfig, UdpConfig,
};
use talkpath_units::Bytes;

use super::section::Section;
use crate::diagnostic::Log;
use crate::keys::{Kind, TRANSPORT};
use crate::model::KernelProfile;
use crate::quantity::{Amount, Dimension, Problem};
use crate::read::{self, Reading};
use crate::tree::{Node, Table};

/// A flow's transport.
pub(crate) struct Transport {
    pub(crate) config: TransportConfig,
    pub(crate) name: &'static str,
    /// See [`crate::Flow::asked_for`].
    pub(crate) asked_for: Vec<&'static str>,
}

/// The transport of `flow`, whose routes carry packets of at most `mtu`.
pub(crate) fn resolve(flow: &Section<'_>, mtu: Option<Bytes>, log: &mut Log) -> Option<Transport> {
    let (name, section) = flow.tagged("transport")?;
    if name == "udp" {
        let stack = section.choice("stack", log).and_then(stack);
        let socket_buffer = section.bytes("socket_buffer", log);
        let small_head = section.bytes_or_word("small_head", log);
        let ecn = section.flag("ecn", log);
        let config =
            UdpConfig { stack: stack?, socket_buffer: socket_buffer?, small_head: small_head?, ecn: ecn? };
        let config = TransportConfig::Udp(config);
        return Some(Transport { config, name, asked_for: Vec::new() });
    }
    if let Some(ccid) = ccid(name) {
        let config = if ccid == CcidKind::Ccid2 { ccid2(&section, log) } else { tfrc(ccid, &section, log) };
        let config = TransportConfig::Encapsulated(EncapsulatedConfig::Dccp(config?));
        return Some(Transport { config, name, asked_for: Vec::new() });
    }
    if name.starts_with("quic") {
        let config = quic(name, &section, mtu, log)?;
        let name = config.carry.transport_name();
        return Some(Transport { config: TransportConfig::Quic(config), name, asked_for: Vec::new() });
    }
    let mut asked_for = Vec::new();
    let config = tcp(name, &section, mtu, &mut asked_for, log)?;
    Some(Transport { config: TransportConfig::Tcp(config), name, asked_for })
}

fn tcp(
    name: &str,
    section: &Section<'_>,
    mtu: Option<Bytes>,
    asked_for: &mut Vec<&'static str>,
    log: &mut Log,
) -> Option<TcpConfig> {
    let preset = TcpConfig::preset(stack(section.choice("stack", log)?)?, name == "tcp-nodelay");
    let cc = match section.choice("cc", log) {
        Some("default") => Some(preset.cc),
        Some(word) => {
            asked_for.push("cc");
            Some(congestion_control(word))
        }
        None => None,
    };
    let mut mechanism = |key: &'static str, own: bool| {
        let asked = section.flag_or_default(key, log)?;
        if asked.is_some() {
            asked_for.push(key);
        }
        Some(asked.unwrap_or(own))
    };
    let sack = mechanism("sack", preset.sack);
    let tlp = mechanism("tlp", preset.tlp);
    let pacing = mechanism("pacing", preset.pacing);
    let nagle = section.choice("nagle", log).and_then(nagle);
    let mss = mss(section, mtu, log);
    let rwnd = rwnd(section, mss.flatten(), mtu, log);
    let initial_rwnd = section.bytes("initial_rwnd", log);
    let delayed_ack = delayed_ack(section, preset.delayed_ack, log);
    let limited_transmit = section.flag("limited_transmit", log);
    let cwnd_validation = section.flag("cwnd_validation", log);
    let growth = section.choice("growth", log).and_then(growth);
    let timestamps = section.flag("timestamps", log);
    let window_scaling = section.flag("window_scaling", log);
    let ecn = section.flag("ecn", log);
    let min_rto = section.duration("min_rto", log);
    let timer_granularity = section.duration("timer_granularity", log);
    let ticks = section.choice("ticks", log).and_then(ticks);
    let initial_window = section.packets_or_word("initial_window", log);
    let initial_ssthresh = section.packets_or_word("initial_ssthresh", log);
    let send_buffer = section.bytes_or_word("send_buffer", log);
    let send_buffer_max = section.bytes("send_buffer_max", log);
    let header_room = section.bytes("header_room", log);
    let small_head = small_head(section, header_room, log);
    let overfill = section.flag("overfill", log);
    // A scenario that says nothing of it stays the text that it was.
    let multipath = match section.node("multipath") {
        Some(_) => section.flag("multipath", log),
        None => Some(false),
    };
    Some(TcpConfig {
        nagle: nagle?,
        cc: cc?,
        mss: mss?,
        rwnd: rwnd?,
        initial_rwnd: initial_rwnd?,
        delayed_ack: delayed_ack?,
        sack: sack?,
        tlp: tlp?,
        pacing: pacing?,
        limited_transmit: limited_transmit?,
        cwnd_validation: cwnd_validation?,
        growth: growth?,
        timestamps: timestamps?,
        window_scaling: window_scaling?,
        ecn: ecn?,
        min_rto: min_rto?,
        timer_granularity: timer_granularity?,
        ticks: ticks?,
        initial_window: initial_window??,
        initial_ssthresh: initial_ssthresh?,
        send_buffer: send_buffer?,
        send_buffer_max: send_buffer_max?,
        header_room: header_room?,
        small_head: small_head?,
        overfill: overfill?,
        multipath: multipath?,
        ..preset
    })
}

fn ccid2(section: &Section<'_>, log: &mut Log) -> Option<DccpConfig> {
    let config = dccp(CcidKind::Ccid2, section, log);
    let initial_window = section.packets_or_word("initial_window", log);
    let initial_ssthresh = section.packets_or_word("initial_ssthresh", log);
    let ack_ratio = section.count("ack_ratio", log);
    let app_limited_growth = section.flag("app_limited_growth", log);
    let growth = section.choice("growth", log);
    Some(DccpConfig {
        initial_window: initial_window?,
        initial_ssthresh: initial_ssthresh?,
        ack_ratio: u16::try_from(ack_ratio?).ok()?,
        app_limited_growth: app_limited_growth?,
        growth_by_each: growth? == "each-packet",
        ..config?
    })
}

fn tfrc(ccid: CcidKind, section: &Section<'_>, log: &mut Log) -> Option<DccpConfig> {
    let config = dccp(ccid, section, log);
    let tfrc = section.choice("tfrc", log).and_then(revision);
    let oscillation_prevention = section.flag("oscillation_prevention", log);
    let history_discounting = section.flag("history_discounting", log);
    Some(DccpConfig {
        tfrc: tfrc?,
        oscillation_prevention: oscillation_prevention?,
        history_discounting: history_discounting?,
        ..config?
    })
}

/// The keys that all CCIDs have.
fn dccp(ccid: CcidKind, section: &Section<'_>, log: &mut Log) -> Option<DccpConfig> {
    let send_queue = section.packets_or_word("send_queue", log);
    let send_queue_policy = section.choice("send_queue_policy", log).and_then(queue_policy);
    let segment_size = section.bytes_or_word("segment_size", log);
    let socket_buffer = section.bytes("socket_buffer", log);
    let ecn = section.flag("ecn", log);
    let init_cookie = section.flag("init_cookie", log);
    let short_seqnos = section.flag("short_seqnos", log);
    let checksum_coverage = section.count("checksum_coverage", log);
    let data_checksum = section.flag("data_checksum", log);
    Some(DccpConfig {
        ecn: ecn?,
        init_cookie: init_cookie?,
        short_seqnos: short_seqnos?,
        checksum_coverage: u8::try_from(checksum_coverage?).ok()?,
        data_checksum: data_checksum?,
        send_queue: send_queue?,
        send_queue_policy: send_queue_policy?,
        segment_size: segment_size?,
        socket_buffer: socket_buffer?,
        ..DccpConfig::new(ccid)
    })
}

fn quic(name: &str, section: &Section<'_>, mtu: Option<Bytes>, log: &mut Log) -> Option<QuicConfig> {
    let carry = match name {
        "quic" => section.choice("carry", log)?,
        name => name.strip_prefix("quic-")?,
    };
    let carry = Carry::ALL.into_iter().find(|it| it.name() == carry)?;
    let named = |word: &str| QuicCongestionControl::ALL.into_iter().find(|it| it.name() == word);
    let cc = section.choice("cc", log).and_then(named);
    let expire = section.duration_or_word("expire", log);
    let priority = section.count("priority", log);
    let zero_rtt = section.flag("zero_rtt", log);
    let encryption = section.flag("encryption", log);
    let connection = section.node("connection").is_some().then(|| section.text("connection", log));
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
        log.problem(section.place, section.at, Problem::new(message));
        return None;
    }
    let connection = match connection {
        Some(name) => Some(name?.to_owned()),
        None => None,
    };
    Some(QuicConfig {
        carry,
        cc: cc?,
        expire: expire?,
        priority: u8::try_from(priority?).ok()?,
        zero_rtt: zero_rtt?,
        connection,
        encryption: encryption?,
    })
}

/// The segment size, or (`None` inside) the path's; one that the path would fragment is a mistake.
fn mss(section: &Section<'_>, mtu: Option<Bytes>, log: &mut Log) -> Option<Option<Bytes>> {
    let mss = section.bytes_or_word("mss", log)?;
    if let (Some(mss), Some(mtu)) = (mss, mtu)
        && mss > mtu.saturating_sub(HEADERS)
    {
        let most = mtu.saturating_sub(HEADERS);
        let message = format!(
            "found {mss}, expected at most {most}: the smallest `mtu` of the routes, {mtu} (with IPv6 20 B less), less 40 B"
        );
        section.problem("mss", Problem::new(message), log);
        return None;
    }
    Some(mss)
}

/// The object of a small head, or (`None` inside) that there is none.
fn small_head(section: &Section<'_>, header_room: Option<Bytes>, log: &mut Log) -> Option<Option<Bytes>> {
    match section.reading("small_head", log)? {
        Reading::Amount(amount) => Some(Some(Bytes::new(amount.count))),
        Reading::Word("auto") => Some(Some(talkpath_config::small_head(header_room?))),
        Reading::Word(_) => Some(None),
    }
}

/// The receive buffer in bytes; packets are of one segment each.
fn rwnd(section: &Section<'_>, mss: Option<Bytes>, mtu: Option<Bytes>, log: &mut Log) -> Option<Bytes> {
    match section.reading("rwnd", log)? {
        Reading::Amount(Amount { dimension: Dimension::Packets, count }) => {
            let segment = mss.or(mtu.map(|mtu| mtu.saturating_sub(HEADERS)))?;
            let room = Bytes::new(count.saturating_mul(segment.get()));
            if room > LARGEST_WINDOW {
                let message =
                    format!("found {count} packets of {segment}, expected at most {LARGEST_WINDOW} in all");
                section.problem("rwnd", Problem::new(message), log);
                return None;
            }
            Some(room)
        }
        Reading::Amount(amount) => Some(Bytes::new(amount.count)),
        Reading::Word(_) => None,
    }
}

fn delayed_ack(section: &Section<'_>, own: DelayedAck, log: &mut Log) -> Option<DelayedAck> {
    let Kind::DelayedAck(measures) = TRANSPORT.variant("tcp")?.key("delayed_ack")?.kind else { return None };
    let node = section.node("delayed_ack")?;
    Some(read::delayed_ack(node, measures, section.at.key("delayed_ack"), log)?.unwrap_or(own))
}

/// What the tagged table `filled` of this kind has for the keys that follow another, as TOML.
pub(crate) fn defaults(kind: &str, filled: &Table) -> Vec<(&'static str, String)> {
    match KernelProfile::named(kind) {
        Some(profile) => profile.values().into(),
        None => stack_defaults(kind, filled),
    }
}

/// What the stack of a TCP's table `filled` has for the keys that follow it.
fn stack_defaults(kind: &str, filled: &Table) -> Vec<(&'static str, String)> {
    let Some(stack) = filled.get("stack").and_then(Node::as_text).and_then(stack) else { return Vec::new() };
    let preset = TcpConfig::preset(stack, kind == "tcp-nodelay");
    let quoted = |text: String| format!("\"{text}\"");
    let nagle = match preset.nagle {
        NagleKind::Off => "off",
        NagleKind::Classic => "classic",
        NagleKind::Minshall => "minshall",
    };
    let delayed_ack = match preset.delayed_ack {
        DelayedAck::Off => "false".to_owned(),
        DelayedAck::After { timeout } => quoted(timeout.to_string()),
        DelayedAck::Tick { period } => format!("{{ tick = \"{period}\" }}"),
        DelayedAck::Linux => quoted("linux".to_owned()),
    };
    vec![
        ("nagle", quoted(nagle.to_owned())),
        ("rwnd", quoted(preset.rwnd.to_string())),
        ("delayed_ack", delayed_ack),
        ("limited_transmit", preset.limited_transmit.to_string()),
        ("cwnd_validation", preset.cwnd_validation.to_string()),
        ("growth", quoted(growth_word(preset.growth).to_owned())),
        ("timestamps", preset.timestamps.to_string()),
        ("window_scaling", preset.window_scaling.to_string()),
        ("min_rto", quoted(preset.min_rto.to_string())),
        ("timer_granularity", quoted(preset.timer_granularity.to_string())),
        ("ticks", quoted(ticks_word(preset.ticks).to_owned())),
        ("initial_window", quoted(preset.initial_window.to_string())),
        (
            "send_buffer",
            quoted(preset.send_buffer.map_or_else(|| "auto".to_owned(), |size| size.to_string())),
        ),
    ]
}

fn stack(word: &str) -> Option<Stack> {
    match word {
        "linux" => Some(Stack::Linux),
        "rfc" => Some(Stack::Rfc),
        "bsd-reno" => Some(Stack::BsdReno),
        _ => None,
    }
}

fn ticks(word: &str) -> Option<Ticks> {
    [Ticks::Own, Ticks::Common].into_iter().find(|ticks| ticks_word(*ticks) == word)
}

const fn ticks_word(ticks: Ticks) -> &'static str {
    match ticks {
        Ticks::Own => "own",
        Ticks::Common => "common",
    }
}

fn growth(word: &str) -> Option<Growth> {
    [Growth::Counted, Growth::EachAck, Growth::Bsd].into_iter().find(|growth| growth_word(*growth) == word)
}

const fn growth_word(growth: Growth) -> &'static str {
    match growth {
        Growth::Counted => "counted",
        Growth::EachAck => "each-ack",
        Growth::Bsd => "bsd",
    }
}

fn congestion_control(word: &str) -> Option<CongestionControlKind> {
    match word {
        "tahoe" => Some(CongestionControlKind::Tahoe),
        "reno" => Some(CongestionControlKind::Reno),
        "newreno" => Some(CongestionControlKind::NewReno),
        "cubic" => Some(CongestionControlKind::Cubic),
        "bbr" => Some(CongestionControlKind::Bbr),
        _ => None,
    }
}

fn ccid(word: &str) -> Option<CcidKind> {
    match word {
        "dccp-ccid2" => Some(CcidKind::Ccid2),
        "dccp-ccid3" => Some(CcidKind::Ccid3),
        "dccp-ccid4" => Some(CcidKind::Ccid4),
        _ => None,
    }
}

fn revision(word: &str) -> Option<Revision> {
    match word {
        "rfc5348" => Some(Revision::Rfc5348),
        "rfc3448" => Some(Revision::Rfc3448),
        _ => None,
    }
}

fn queue_policy(word: &str) -> Option<QueuePolicy> {
    match word {
        "drop-newest" => Some(QueuePolicy::DropNewest),
        "drop-oldest" => Some(QueuePolicy::DropOldest),
        _ => None,
    }
}

fn nagle(word: &str) -> Option<NagleKind> {
    match word {
        "off" => Some(NagleKind::Off),
        "classic" => Some(NagleKind::Classic),
        "minshall" => Some(NagleKind::Minshall),
        _ => None,
    }
}

/// IPv4 and TCP headers without options (RFC 9293 §3.7.1).
const HEADERS: Bytes = Bytes::new(40);

/// RFC 7323 §2.3: a scaled window never passes 1 GiB.
const LARGEST_WINDOW: Bytes = Bytes::new(1 << 30);
