//! The IP headers of a flow's packets, as they arrived in each direction.

use std::collections::BTreeMap;

use talkpath_config::TransportConfig;
use talkpath_measure::summary::{IpSeen, IpSummary};
use talkpath_model::{Dscp, Flow};
use talkpath_units::{Ecn, counted};

use super::flow_logs::FlowLogs;
use crate::ancillary::ecn;
use crate::log::{EndLog, Headers};

/// The largest number of DSCPs that a warning lists.
const MAX_CHANGED_DSCPS: usize = 3;

/// Makes the summary of the IP headers that arrived in each direction.
pub(super) fn summary(flow: &Flow, logs: FlowLogs<'_>) -> IpSummary {
    let headers = |log: Option<&EndLog>| log.map(|log| log.totals.headers.clone()).unwrap_or_default();
    let (sender, receiver) = (headers(logs.sender), headers(logs.receiver));
    IpSummary {
        dscp: flow.dscp.map(|dscp| dscp.to_string()),
        forward: direction(&receiver, sender.path_mtu),
        back: logs.has_echo().then(|| direction(&sender, receiver.path_mtu)),
        ..IpSummary::default()
    }
}

/// Makes the figures of one direction. `headers` are those that arrived at its receiving end. `path_mtu` is
/// the MTU of the path to that end.
fn direction(headers: &Headers, path_mtu: Option<u32>) -> IpSeen {
    IpSeen {
        dscp: counts_by(headers, |tos| Dscp::from_byte(tos).to_string()),
        ecn: counts_by(headers, |tos| ecn_name(ecn(tos)).to_owned()),
        ttl_min: headers.ttl.map(|(min, _)| min),
        ttl_max: headers.ttl.map(|(_, max)| max),
        path_mtu_bytes: path_mtu,
    }
}

/// Counts the datagrams by a name that is derived from the byte with DSCP and ECN field. Returns `None` if
/// the kernel did not report the byte of each datagram.
fn counts_by(headers: &Headers, name: fn(u8) -> String) -> Option<BTreeMap<String, u64>> {
    if headers.unreported > 0 {
        return None;
    }
    let mut counts = BTreeMap::new();
    for (&tos, &count) in &headers.tos {
        // A far host may report any counts, so the sum must not overflow.
        let sum: &mut u64 = counts.entry(name(tos)).or_default();
        *sum = sum.saturating_add(count);
    }
    Some(counts)
}

const fn ecn_name(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "not-ect",
        Ecn::Ect0 => "ect0",
        Ecn::Ect1 => "ect1",
        Ecn::Ce => "ce",
    }
}

/// Makes the warnings about datagrams that arrived with another DSCP than they left with.
pub fn dscp_warnings(flow: &str, ip: &IpSummary) -> Vec<String> {
    let Some(wanted) = &ip.dscp else { return Vec::new() };
    let mut warnings = Vec::new();
    for (direction, headers) in [("out", Some(&ip.forward)), ("back", ip.back.as_ref())] {
        let changed = || {
            let counts = headers.iter().flat_map(|headers| &headers.dscp).flatten();
            counts.filter(|(dscp, _)| *dscp != wanted)
        };
        let datagrams = changed().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        if datagrams > 0 {
            let names: Vec<_> = changed().take(MAX_CHANGED_DSCPS).map(|(dscp, _)| dscp.as_str()).collect();
            warnings.push(format!(
                "flow {flow}: on the way {direction} {} came with the DSCP {}, not {wanted}: the path changed it",
                counted(datagrams, "datagram"),
                names.join(", ")
            ));
        }
    }
    warnings
}

/// Makes the warnings about a path that sets the ECN field as no queue does (RFC 3168): it marks every
/// datagram, or clears the field of each. A few marks are a queue's signal, and no warning.
pub fn ecn_warnings(flow: &str, transport: &TransportConfig, ip: &IpSummary) -> Vec<String> {
    // QUIC sends ECT(0) at first (RFC 9000 §13.4.2), and UDP if the scenario wants it.
    let sends_ect = match transport {
        TransportConfig::Udp(config) => config.ecn,
        TransportConfig::Quic(_) => true,
        TransportConfig::Tcp(_) | TransportConfig::Encapsulated(_) => false,
    };
    let mut warnings = Vec::new();
    for (direction, headers) in [("out", Some(&ip.forward)), ("back", ip.back.as_ref())] {
        let Some(counts) = headers.and_then(|headers| headers.ecn.as_ref()) else { continue };
        let of = |ecn| counts.get(ecn_name(ecn)).copied().unwrap_or(0);
        let all = counts.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        if all < MIN_ECN_DATAGRAMS {
            continue;
        }
        let datagrams = counted(all, "datagram");
        if of(Ecn::Ce) == all {
            warnings.push(format!(
                "flow {flow}: on the way {direction} all {datagrams} came marked CE: no queue marks every packet, so a \
                 device on the path sets the ECN field wrongly, and its marks say nothing of congestion"
            ));
        } else if sends_ect && of(Ecn::NotEct) == all {
            warnings.push(format!(
                "flow {flow}: on the way {direction} all {datagrams} came as not ECN-capable: the path cleared the ECN \
                 field"
            ));
        }
    }
    warnings
}

/// The smallest number of datagrams that say how a path treats the ECN field. We chose the ten packets after
/// which QUIC's validation gives ECN up (RFC 9000 §13.4.2).
const MIN_ECN_DATAGRAMS: u64 = 10;

#[cfg(test)]
mod tests {
    use talkpath_config::UdpConfig;

    use super::*;

    #[test]
    fn dscp_and_ecn_are_counted_apart_and_a_changed_dscp_is_named() {
        let ef = Dscp::named("EF").unwrap().byte();
        let tos = [(ef, 3), (ef | 0b10, 4), (0, 5), (0b11, 6), (0xff, 7)].into();
        let forward = direction(&Headers { tos, ttl: Some((57, 58)), ..Headers::default() }, Some(1400));
        let counts: Vec<_> =
            forward.dscp.iter().flatten().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(counts, [("63", 7), ("CS0", 11), ("EF", 7)]);
        let counts: Vec<_> =
            forward.ecn.iter().flatten().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(counts, [("ce", 13), ("ect0", 4), ("not-ect", 8)]);
        assert_eq!(
            (forward.ttl_min, forward.ttl_max, forward.path_mtu_bytes),
            (Some(57), Some(58), Some(1400))
        );
        let mut ip = IpSummary { dscp: Some("EF".to_owned()), forward, ..IpSummary::default() };
        let lines = dscp_warnings("call", &ip);
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].contains("way out 18 datagrams") && lines[0].contains("63, CS0, not EF"),
            "{}",
            lines[0]
        );
        let silent = direction(&Headers { unreported: 3, ..Headers::default() }, None);
        assert_eq!((silent.dscp, silent.ecn), (None, None), "the kernel did not say");
        ip.dscp = None;
        assert!(dscp_warnings("call", &ip).is_empty(), "nothing was asked for");
    }

    #[test]
    fn a_path_that_marks_or_clears_every_datagram_is_named_and_a_queue_that_marks_some_is_not() {
        let lines = |transport: TransportConfig, counts: &[(u8, u64)]| {
            let headers = Headers { tos: counts.iter().copied().collect(), ..Headers::default() };
            let ip = IpSummary { forward: direction(&headers, None), ..IpSummary::default() };
            ecn_warnings("call", &transport, &ip)
        };
        let udp = |ecn| TransportConfig::Udp(UdpConfig { ecn, ..UdpConfig::LINUX });
        let (not_ect, ect0, ce) = (0, 0b10, 0b11);
        let all = lines(udp(true), &[(ce, 250)]);
        assert!(all.len() == 1 && all[0].contains("out all 250 datagrams came marked CE"), "{all:?}");
        let cleared = lines(udp(true), &[(not_ect, 250)]);
        assert!(cleared.len() == 1 && cleared[0].contains("the path cleared the ECN field"), "{cleared:?}");
        for (ecn, counts) in [
            (true, &[(ect0, 200), (ce, 50)][..]),
            (true, &[(not_ect, 9)][..]),
            (false, &[(not_ect, 250)][..]),
            (true, &[(ect0, 1), (not_ect, 249)][..]),
        ] {
            assert_eq!(lines(udp(ecn), counts), [] as [&str; 0], "{counts:?}");
        }
    }
}
