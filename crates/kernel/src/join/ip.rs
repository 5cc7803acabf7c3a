//! Joins what both ends saw in the IP headers of a flow's packets.

use std::collections::BTreeMap;

use talkpath_measure::summary::{IpSeen, IpSummary};
use talkpath_model::{Dscp, Flow};
use talkpath_units::{Ecn, counted};

use crate::ancillary::ecn;
use crate::log::{EndLog, Headers};
use crate::spec::FlowSpec;

/// Makes the summary of the IP headers that arrived in each direction, from the logs of both ends.
pub(super) fn of(
    flow: &Flow,
    spec: &FlowSpec,
    sender: Option<&EndLog>,
    receiver: Option<&EndLog>,
) -> IpSummary {
    let of = |log: Option<&EndLog>| log.map(|log| log.totals.headers.clone()).unwrap_or_default();
    let (sender, receiver) = (of(sender), of(receiver));
    IpSummary {
        dscp: flow.dscp.map(|dscp| dscp.to_string()),
        back: spec.echo_per_read.is_some().then(|| seen(&sender, receiver.path_mtu)),
        forward: seen(&receiver, sender.path_mtu),
    }
}

/// Makes the figures of the end that counted `headers`. `path_mtu` is the MTU of the path to that end.
fn seen(headers: &Headers, path_mtu: Option<u32>) -> IpSeen {
    let by = |name: fn(u8) -> String| {
        let mut counts = BTreeMap::new();
        for (&tos, &count) in &headers.tos {
            // A far host may report any counts, so the sum must not overflow.
            let sum: &mut u64 = counts.entry(name(tos)).or_default();
            *sum = sum.saturating_add(count);
        }
        (headers.unreported == 0).then_some(counts)
    };
    IpSeen {
        dscp: by(|tos| Dscp::of_byte(tos).to_string()),
        ecn: by(|tos| ecn_name(ecn(tos)).to_owned()),
        ttl_min: headers.ttl.map(|(least, _)| least),
        ttl_max: headers.ttl.map(|(_, most)| most),
        path_mtu_bytes: path_mtu,
    }
}

const fn ecn_name(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "not-ect",
        Ecn::Ect0 => "ect0",
        Ecn::Ect1 => "ect1",
        Ecn::Ce => "ce",
    }
}

/// The warnings about a flow whose datagrams arrived with another DSCP than they left with.
pub fn dscp_warnings(flow: &str, ip: &IpSummary) -> Vec<String> {
    let Some(wanted) = &ip.dscp else { return Vec::new() };
    let ways = [("out", Some(&ip.forward)), ("back", ip.back.as_ref())];
    let mut lines = Vec::new();
    for (way, seen) in ways.into_iter().filter_map(|(way, seen)| Some((way, seen?))) {
        let others = || seen.dscp.iter().flatten().filter(|(dscp, _)| *dscp != wanted);
        let changed = others().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        if changed > 0 {
            let names: Vec<_> = others().take(3).map(|(dscp, _)| dscp.as_str()).collect();
            lines.push(format!(
                "flow {flow}: on the way {way} {} came with the DSCP {}, not {wanted}: the path changed it",
                counted(changed, "datagram"),
                names.join(", ")
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dscp_and_ecn_are_counted_apart_and_a_changed_dscp_is_named() {
        let ef = Dscp::named("EF").unwrap().byte();
        let tos = [(ef, 3), (ef | 0b10, 4), (0, 5), (0b11, 6), (0xff, 7)].into();
        let forward = seen(&Headers { tos, ttl: Some((57, 58)), ..Headers::default() }, Some(1400));
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
        let mut ip = IpSummary { dscp: Some("EF".to_owned()), forward, back: None };
        let lines = dscp_warnings("call", &ip);
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].contains("way out 18 datagrams") && lines[0].contains("63, CS0, not EF"),
            "{}",
            lines[0]
        );
        let silent = seen(&Headers { unreported: 3, ..Headers::default() }, None);
        assert_eq!((silent.dscp, silent.ecn), (None, None), "the kernel did not say");
        ip.dscp = None;
        assert!(dscp_warnings("call", &ip).is_empty(), "nothing was asked for");
    }
}
