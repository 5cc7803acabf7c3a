//! Describes the flows whose datagrams IP fragments: the number of fragments, and the loss of messages.
//!
//! A datagram arrives only if all its fragments arrive. If packets are lost independently with the share p, a
//! datagram of n fragments is lost with the share 1 - (1 - p)^n. For example, with 8 fragments a loss of 2 %
//! of the packets is a loss of 15 % of the messages.

use talkpath_model::{Demand, Flow, IpVersion, NamedLink, Scenario, USUAL_MTU};
use talkpath_path::{FragmentRange, IPV4_HEADER, LossModel};
use talkpath_units::Bytes;
use talkpath_units::text::significant;

/// Returns a line for each flow of a cell whose datagrams are fragmented. Copies of a flow have the same
/// line, which comes once.
pub(crate) fn fragment_lines(cell: &Scenario) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for flow in &cell.flows {
        if let Some(line) = fragment_line(cell, flow)
            && !lines.contains(&line)
        {
            lines.push(line);
        }
    }
    lines
}

/// Returns the line of one flow, or `None` if its datagrams are not fragmented.
fn fragment_line(scenario: &Scenario, flow: &Flow) -> Option<String> {
    if !flow.transport.kind().features().is_fragmented {
        return None;
    }
    let size = match flow.workload.demand() {
        Demand::Clocked { size, .. } | Demand::Bursts { size, .. } => size,
        Demand::Greedy { largest, .. } => largest?,
    };
    let links: Vec<&NamedLink> =
        flow.route.iter().filter_map(|link| scenario.links.get(link.0 as usize)).collect();
    let mut mtus: Vec<Bytes> = links.iter().map(|link| link.config.mtu).collect();
    if mtus.is_empty() {
        // The flow crosses a real network, whose MTU the scenario does not have.
        mtus.push(USUAL_MTU);
    }
    let counts = fragment_counts(size, scenario.ip, &mtus);
    let most = counts.iter().copied().max().filter(|&most| most > 1)?;
    let (group, mtu) = (&flow.group, mtus.iter().min()?);
    let (up_to, messages) =
        if flow.workload.has_drawn_sizes() { ("up to ", "the largest messages") } else { ("", "messages") };
    let line = format!(
        "The flow {group} sends datagrams of {up_to}{size} over an MTU of {mtu}, {up_to}{most} fragments each"
    );
    match Losses::new(&links, &counts) {
        None => Some(format!("{line}: one lost fragment is a lost message")),
        Some(Losses { of_packets, of_messages, is_independent }) => {
            let condition = if is_independent { "" } else { " if they are lost independently" };
            let (of_packets, of_messages) = (percent(of_packets), percent(of_messages));
            Some(format!("{line}: {of_packets} of packets are {of_messages} of {messages}{condition}"))
        }
    }
}

/// The losses along a route, as shares.
struct Losses {
    of_packets: f64,
    of_messages: f64,
    /// Whether the links lose each packet independently of the others.
    is_independent: bool,
}

impl Losses {
    /// Computes the losses over `links`, each with the number of fragments of a datagram on it. Returns
    /// `None` if no link loses a packet.
    fn new(links: &[&NamedLink], fragment_counts: &[u64]) -> Option<Self> {
        let mut arriving_packets = 1.0;
        let mut arriving_messages = 1.0;
        let mut is_independent = true;
        for (link, count) in links.iter().zip(fragment_counts) {
            let loss = &link.config.loss;
            let arriving = 1.0 - loss.mean();
            arriving_packets *= arriving;
            // A datagram has fewer than 1,400 fragments.
            arriving_messages *= (0..*count).fold(1.0, |share, _| share * arriving);
            is_independent &= matches!(loss, LossModel::None | LossModel::Bernoulli { .. });
        }
        let has_loss = links.iter().any(|link| link.config.loss.mean() > 0.0);
        has_loss.then_some(Self {
            of_packets: 1.0 - arriving_packets,
            of_messages: 1.0 - arriving_messages,
            is_independent,
        })
    }
}

/// Returns the number of fragments of a UDP datagram with this payload on each link of its route.
fn fragment_counts(payload: Bytes, ip: IpVersion, mtus: &[Bytes]) -> Vec<u64> {
    let datagram = payload + UDP_HEADER;
    match ip {
        IpVersion::V4 => fragment_counts_v4(datagram, mtus),
        IpVersion::V6 => vec![fragment_count_v6(datagram, mtus); mtus.len()],
    }
}

/// Each router fragments a packet, or a fragment, that is larger than the MTU of its link.
fn fragment_counts_v4(datagram: Bytes, mtus: &[Bytes]) -> Vec<u64> {
    let mut parts = vec![FragmentRange::whole(datagram + IPV4_HEADER)];
    let mut counts = Vec::new();
    for mtu in mtus {
        parts = parts.iter().flat_map(|part| part.fragments(*mtu)).collect();
        counts.push(parts.len() as u64);
    }
    counts
}

/// The source alone fragments, for the smallest MTU of the route. Each fragment has an additional header and,
/// unless it is the last, a multiple of 8 bytes (RFC 8200 §4.5).
fn fragment_count_v6(datagram: Bytes, mtus: &[Bytes]) -> u64 {
    let mtu = mtus.iter().copied().min().unwrap_or(USUAL_MTU);
    if datagram + IPV6_HEADER <= mtu {
        return 1;
    }
    let payload_per_fragment = mtu.saturating_sub(IPV6_HEADER + FRAGMENT_HEADER).get() / 8 * 8;
    datagram.get().div_ceil(payload_per_fragment.max(8))
}

/// RFC 768.
const UDP_HEADER: Bytes = Bytes::new(8);
/// RFC 8200 §3.
const IPV6_HEADER: Bytes = Bytes::new(40);
/// RFC 8200 §4.5.
const FRAGMENT_HEADER: Bytes = Bytes::new(8);

/// `0.5 %`, `5.9 %`, `15 %`.
fn percent(share: f64) -> String {
    format!("{} %", significant(100.0 * share, 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Source, load};

    fn lines(size: &str, path: &str, more: &str) -> Vec<String> {
        let text = format!(
            "duration = \"1 s\"\n{more}[path]\nup = {{ rate = \"10 Mbps\", delay = \"1 ms\"{path} }}\n\
             down = {{ rate = \"10 Mbps\", delay = \"1 ms\" }}\n[flow.cam]\ntransport = \"udp\"\n\
             workload = {{ kind = \"cbr\", message_rate = \"30 Hz\", size = \"{size}\" }}\n"
        );
        load(&Source::new("s.toml", text), &Options::default()).unwrap().understood.fragments
    }

    #[test]
    fn a_loss_of_packets_is_converted_to_a_loss_of_messages() {
        assert_eq!(
            lines("10417 B", ", loss = 0.02", ""),
            [
                "The flow cam sends datagrams of 10417 B over an MTU of 1500 B, 8 fragments each: 2 % of packets are 15 % of \
              messages."
            ]
        );
        assert_eq!(
            lines("10417 B", "", ""),
            [
                "The flow cam sends datagrams of 10417 B over an MTU of 1500 B, 8 fragments each: one lost fragment is a lost \
              message."
            ]
        );
        let drawn = lines("10417 B\", min_size = \"1 kB", ", loss = 0.02", "");
        assert_eq!(
            drawn,
            [
                "The flow cam sends datagrams of up to 10417 B over an MTU of 1500 B, up to 8 fragments each: 2 % of packets are \
              15 % of the largest messages."
            ]
        );
        let runs = lines("10417 B", ", loss = { kind = \"gilbert-elliott\", p = 0.01, r = 0.3 }", "");
        assert!(runs[0].ends_with("of messages if they are lost independently."), "{runs:?}");
    }

    #[test]
    fn a_datagram_is_whole_up_to_the_mtu_of_its_version_of_ip() {
        assert!(
            lines("1472 B", "", "").is_empty() && lines("1473 B", "", "")[0].contains(", 2 fragments each")
        );
        let counts = |payload, ip, mtus: &[u64]| {
            fragment_counts(
                Bytes::new(payload),
                ip,
                &mtus.iter().copied().map(Bytes::new).collect::<Vec<_>>(),
            )
        };
        assert_eq!(counts(1452, IpVersion::V6, &[1500]), [1]);
        assert_eq!(counts(1453, IpVersion::V6, &[1500]), [2]);
        // 1448 B of a datagram in each.
        assert_eq!(counts(10 * 1448 - 8, IpVersion::V6, &[1500]), [10]);
        assert_eq!(counts(10 * 1448 - 7, IpVersion::V6, &[1500, 9000]), [11, 11]);
        assert_eq!(counts(10 * 1480 - 8, IpVersion::V4, &[1500]), [10]);
        assert_eq!(counts(10 * 1480 - 7, IpVersion::V4, &[1500]), [11]);
        // Whole on the first link, in two on the second, and not put together on the third.
        assert_eq!(counts(1472, IpVersion::V4, &[1500, 1000, 1500]), [1, 2, 2]);
    }

    #[test]
    fn a_sweep_over_size_and_loss_has_a_line_for_each_that_is_cut() {
        let cut = lines(
            "100 B",
            "",
            "[sweep]\n\"flow.cam.workload.size\" = [\"100 B\", \"3 kB\"]\n\"path.up.loss\" = [0.0, 0.02]\n",
        );
        assert_eq!(cut.len(), 2, "{cut:?}");
        assert!(cut[1].contains("3 fragments each: 2 % of packets are 5.9 % of messages (in 1 of 4 cells)."));
    }
}
