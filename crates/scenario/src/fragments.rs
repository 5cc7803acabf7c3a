//! Datagrams that IP cuts: how many fragments each is, and what a loss of packets is in messages.
//!
//! A datagram arrives if every fragment does. If packets are lost independently, with the share p, one of n
//! fragments is lost with 1 - (1 - p)^n: of 8 fragments 2 % of packets are 15 % of messages.

use talkpath_model::{Demand, Flow, IpVersion, Scenario, USUAL_MTU};
use talkpath_path::{FragmentRange, IPV4_HEADER, LossModel};
use talkpath_units::Bytes;

/// A line for each flow of `cell` whose datagrams are cut. Copies are alike.
pub(crate) fn of_cell(cell: &Scenario) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for flow in &cell.flows {
        lines.extend(line(cell, flow).filter(|line| !lines.contains(line)));
    }
    lines
}

fn line(scenario: &Scenario, flow: &Flow) -> Option<String> {
    if !flow.transport.kind().features().is_fragmented {
        return None;
    }
    let size = match flow.workload.demand() {
        Demand::Clocked { size, .. } | Demand::Bursts { size, .. } => size,
        Demand::Greedy { largest, .. } => largest?,
    };
    let links: Vec<_> = flow.route.iter().filter_map(|link| scenario.links.get(link.0 as usize)).collect();
    let mtus: Vec<Bytes> = match links.as_slice() {
        // A network that talkpath does not own.
        [] => vec![USUAL_MTU],
        links => links.iter().map(|link| link.config.mtu).collect(),
    };
    let counts = counts(size, scenario.ip, &mtus);
    let most = counts.iter().copied().max().filter(|&most| most > 1)?;
    let (group, mtu) = (&flow.group, mtus.iter().min()?);
    let (up_to, counted) =
        if flow.workload.has_drawn_sizes() { ("up to ", "the largest messages") } else { ("", "messages") };
    let what = format!(
        "The flow {group} sends datagrams of {up_to}{size} over an MTU of {mtu}, {up_to}{most} fragments each"
    );
    let losses: Vec<f64> = links.iter().map(|link| link.config.loss.mean()).collect();
    if losses.iter().all(|loss| *loss <= 0.0) {
        return Some(format!("{what}: one lost fragment is a lost message"));
    }
    // A datagram has fewer than 1,400 fragments.
    let survives = |fragments: u64, loss: f64| (0..fragments).fold(1.0, |share, _| share * (1.0 - loss));
    let packets: f64 = 1.0 - losses.iter().map(|loss| 1.0 - loss).product::<f64>();
    let each = counts.iter().zip(&losses);
    let messages: f64 = 1.0 - each.map(|(&count, &loss)| survives(count, loss)).product::<f64>();
    let is_independent = |loss: &LossModel| matches!(loss, LossModel::None | LossModel::Bernoulli { .. });
    let apart = if links.iter().all(|link| is_independent(&link.config.loss)) {
        ""
    } else {
        " if they are lost independently"
    };
    Some(format!("{what}: {} of packets are {} of {counted}{apart}", percent(packets), percent(messages)))
}

/// The fragments of a UDP datagram with this payload on each link of its route.
fn counts(payload: Bytes, ip: IpVersion, mtus: &[Bytes]) -> Vec<u64> {
    let datagram = payload + UDP_HEADER;
    match ip {
        // A fragment is cut again where a link is smaller.
        IpVersion::V4 => {
            let mut parts = vec![FragmentRange::whole(datagram + IPV4_HEADER)];
            let each = mtus.iter().map(|mtu| {
                parts = parts.iter().flat_map(|part| part.fragments(*mtu)).collect();
                parts.len() as u64
            });
            each.collect()
        }
        // The source alone cuts, for the smallest MTU on the way, and each fragment has a header more (RFC
        // 8200 §4.5).
        IpVersion::V6 => {
            let mtu = mtus.iter().copied().min().unwrap_or(USUAL_MTU);
            let is_whole = datagram + IPV6_HEADER <= mtu;
            let room = mtu.saturating_sub(IPV6_HEADER + FRAGMENT_HEADER).get() / 8 * 8;
            let count = if is_whole { 1 } else { datagram.get().div_ceil(room.max(8)) };
            vec![count; mtus.len()]
        }
    }
}

/// `0.5 %`, `5.9 %`, `15 %`.
fn percent(share: f64) -> String {
    let value = 100.0 * share;
    let decimals = match value {
        10.0.. => 0,
        1.0.. => 1,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// RFC 768.
const UDP_HEADER: Bytes = Bytes::new(8);
/// RFC 8200 §3.
const IPV6_HEADER: Bytes = Bytes::new(40);
/// RFC 8200 §4.5.
const FRAGMENT_HEADER: Bytes = Bytes::new(8);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Source, load};

    fn said(size: &str, path: &str, more: &str) -> Vec<String> {
        let text = format!(
            "duration = \"1 s\"\n{more}[path]\nup = {{ rate = \"10 Mbps\", delay = \"1 ms\"{path} }}\n\
             down = {{ rate = \"10 Mbps\", delay = \"1 ms\" }}\n[flow.cam]\ntransport = \"udp\"\n\
             workload = {{ kind = \"cbr\", message_rate = \"30 Hz\", size = \"{size}\" }}\n"
        );
        load(&Source::new("s.toml", text), &Options::default()).unwrap().understood.fragments
    }

    #[test]
    fn a_loss_of_packets_is_said_in_messages() {
        assert_eq!(
            said("10417 B", ", loss = 0.02", ""),
            [
                "The flow cam sends datagrams of 10417 B over an MTU of 1500 B, 8 fragments each: 2 % of packets are 15 % of \
              messages."
            ]
        );
        assert_eq!(
            said("10417 B", "", ""),
            [
                "The flow cam sends datagrams of 10417 B over an MTU of 1500 B, 8 fragments each: one lost fragment is a lost \
              message."
            ]
        );
        let drawn = said("10417 B\", min_size = \"1 kB", ", loss = 0.02", "");
        assert_eq!(
            drawn,
            [
                "The flow cam sends datagrams of up to 10417 B over an MTU of 1500 B, up to 8 fragments each: 2 % of packets are \
              15 % of the largest messages."
            ]
        );
        let runs = said("10417 B", ", loss = { kind = \"gilbert-elliott\", p = 0.01, r = 0.3 }", "");
        assert!(runs[0].ends_with("of messages if they are lost independently."), "{runs:?}");
    }

    #[test]
    fn a_datagram_is_whole_up_to_the_mtu_of_its_version_of_ip() {
        assert!(
            said("1472 B", "", "").is_empty() && said("1473 B", "", "")[0].contains(", 2 fragments each")
        );
        let of = |payload, ip, mtus: &[u64]| {
            counts(Bytes::new(payload), ip, &mtus.iter().copied().map(Bytes::new).collect::<Vec<_>>())
        };
        assert_eq!(of(1452, IpVersion::V6, &[1500]), [1]);
        assert_eq!(of(1453, IpVersion::V6, &[1500]), [2]);
        // 1448 B of a datagram in each.
        assert_eq!(of(10 * 1448 - 8, IpVersion::V6, &[1500]), [10]);
        assert_eq!(of(10 * 1448 - 7, IpVersion::V6, &[1500, 9000]), [11, 11]);
        assert_eq!(of(10 * 1480 - 8, IpVersion::V4, &[1500]), [10]);
        assert_eq!(of(10 * 1480 - 7, IpVersion::V4, &[1500]), [11]);
        // Whole on the first link, in two on the second, and not put together on the third.
        assert_eq!(of(1472, IpVersion::V4, &[1500, 1000, 1500]), [1, 2, 2]);
    }

    #[test]
    fn a_sweep_over_size_and_loss_has_a_line_for_each_that_is_cut() {
        let lines = said(
            "100 B",
            "",
            "[sweep]\n\"flow.cam.workload.size\" = [\"100 B\", \"3 kB\"]\n\"path.up.loss\" = [0.0, 0.02]\n",
        );
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[1].contains("3 fragments each: 2 % of packets are 5.9 % of messages (in 1 of 4 cells).")
        );
    }
}
